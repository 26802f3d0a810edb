// What a store keeps besides entries and records: failures, states, work folders, counters.
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <climits>

#include "base/atomic_file.h"
#include "base/file_system.h"
#include "store/collector.h"
#include "store/local_store.h"
#include "store/new_file.h"
#include "store/repro.h"
#include "store/sealed.h"
#include "store/statistics.h"
#include "store/stored_file.h"

namespace kc::store {
namespace {

using base::Bytes;
using base::ByteView;
using base::Digest;
using base::ErrorKind;
using base::Result;

constexpr int64_t kFailureLife = 60 * kSecondNs;

// Of what a state or a failure makes a reader allocate: a state of 100,000 units has some 50 MB, and a
// failure two outputs of at most 4 MiB.
constexpr uint64_t kMaxState = 256ULL << 20;
constexpr uint64_t kMaxFailure = 16ULL << 20;

// A process that ends folds all counters into one file once in this many times, so that stats.d stays small
// on machines where nothing is ever put.
constexpr uint64_t kFoldEvery = 64;

// What the jobs of a process find room for at least where they work: sources and code objects of a few.
// Enough for a disk that is full, or a quota, to show, and written in a tenth of a millisecond.
constexpr size_t kWorkRoom = 256U << 10;
// Longer than what is made below a work folder: `engine-<number>/<number>/` and a compiler's own names.
constexpr size_t kWorkNames = 200;

}  // namespace

void LocalStore::remember_failure(const Digest& key, ByteView what) {
  if (!writes() || what.size() > kMaxFailure) return;
  auto file = NewFile::write(layout(), seal(kFailureMagic, key, what), 0600);
  if (!file) {
    survived(file.error().text());
  } else if (const auto named = file->replace(layout().temporary(), failed_name(key)); !named) {
    survived(named.error().text());
  }
}

std::optional<Bytes> LocalStore::recent_failure(const Digest& key) {
  if (own_ == nullptr || layout().temporary() < 0) return std::nullopt;
  struct stat status;
  auto what = read_sealed(layout().temporary(), failed_name(key), kFailureMagic, key, kMaxFailure, status);
  if (!what || is_off_by(status, kFailureLife)) return std::nullopt;
  return what;
}

std::string LocalStore::keep_output(const Digest& key, ByteView output) {
  if (!writes()) return {};
  Repro repro;
  repro.output.assign(output.begin(), output.end());
  auto kept = write_repro(layout(), key, repro);
  if (kept) return base::join_path(*kept, kReproOutput);
  survived(kept.error().text());
  return {};
}

std::string LocalStore::keep_repro(const Digest& key, const Repro& repro) {
  if (!writes()) return {};
  auto kept = write_repro(layout(), key, repro);
  if (kept) return *kept;
  survived(kept.error().text());
  return {};
}

Result<std::string> LocalStore::make_work_folder() {
  if (!writes()) {
    return base::fail(ErrorKind::kEnvironment,
                      "the store is not in use for writing, so jobs have no folder there");
  }
  const std::string name = job_name();
  const std::string path = layout().path() + "/v1/tmp/" + name;
  if (path.size() + kWorkNames > PATH_MAX) {
    return base::fail_errno(ErrorKind::kEnvironment, "make directory", path, ENAMETOOLONG);
  }
  // On a full disk a store costs hits, not builds: jobs go elsewhere.
  KC_TRY(NewFile::write(layout(), Bytes(kWorkRoom), 0600));
  if (base::file_system().mkdirat(layout().temporary(), name.c_str(), 0700) != 0) {
    return base::fail_errno(ErrorKind::kEnvironment, "make directory", path, errno);
  }
  return path;
}

// The payload of a sealed file, or nothing; damage and trouble are counted, a newer version is not.
std::optional<Bytes> LocalStore::read_sealed(int folder, const std::string& name, std::string_view magic,
                                             const Digest& id, uint64_t limit, struct stat& status) {
  const auto read = [&]() -> Checked<std::optional<Bytes>> {
    KC_ASSIGN(const auto file, open_stored(layout(), folder, name));
    if (!file) return std::nullopt;
    status = file->status;
    KC_ASSIGN(Bytes payload, unseal(file->fd.get(), magic, id, file->size(), limit));
    return payload;
  };
  auto bytes = read();
  if (bytes) return std::move(*bytes);
  if (bytes.error().flaw == Flaw::kDamaged) ledger_.damaged(name + ": " + bytes.error().why);
  if (bytes.error().flaw == Flaw::kUnreadable) survived(bytes.error().why);
  return std::nullopt;
}

std::optional<Bytes> LocalStore::load_state(const Digest& id) {
  if (own_ == nullptr || layout().states() < 0) return std::nullopt;
  struct stat status;
  auto bytes = read_sealed(layout().states(), id.hex(), kStateMagic, id, kMaxState, status);
  if (bytes && writes() && is_off_by(status, kTouchUnchanged)) {
    if (base::file_system().utimensat(layout().states(), id.hex().c_str(), nullptr, AT_SYMLINK_NOFOLLOW) !=
        0) {
      survived(base::fail_errno(ErrorKind::kEnvironment, "touch", "state/" + id.hex(), errno).error().text());
    }
  }
  return bytes;
}

bool LocalStore::save_state(const Digest& id, ByteView bytes) {
  if (!writes()) return false;
  if (bytes.size() > kMaxState) return survived("the state of this build is larger than a state may be");
  auto file = NewFile::write(layout(), seal(kStateMagic, id, bytes), 0600);
  if (!file) return survived(file.error().text());
  const auto named = file->replace(layout().states(), id.hex());
  return named ? true : survived(named.error().text());
}

void LocalStore::collect_if_due() {
  if (own_ == nullptr || !own_->take_due()) return;
  GcOptions options;
  options.max_size = low_mark(options_.limit_bytes);
  const auto report = collect_in(layout(), options, kAutomaticTime);
  if (!report) {
    survived(report.error().text());
  } else if (!report->trouble.empty()) {
    survived(report->trouble);
  }
}

void LocalStore::save_counters() {
  if (!writes()) return;
  const Counters tally = counters();
  if (tally == Counters{}) return;
  write_tally(layout(), tally);
  if (base::random_u64() % kFoldEvery != 0) return;
  const auto lock = try_collection_lock(layout());
  if (lock && *lock) fold_tallies(layout());
}

}  // namespace kc::store
