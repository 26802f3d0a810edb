#include "store/store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <utility>

#include "base/atomic_file.h"
#include "base/lock.h"
#include "store/collector.h"
#include "store/entry_codec.h"
#include "store/key_locks.h"
#include "store/layout.h"
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
using base::FileDescriptor;
using base::Result;

// Hits set the time of last use this seldom: a write a hit would cost more than the hit.
constexpr int64_t kTouchHit = 3600 * kSecondNs;
constexpr int64_t kTouchUnchanged = 24 * kTouchHit;
constexpr int64_t kFailureLife = 60 * kSecondNs;

// Of what a state or a failure makes a reader allocate: a state of 100,000 units has some 50 MB, and a
// failure two outputs of at most 4 MiB.
constexpr uint64_t kMaxState = 256ULL << 20;
constexpr uint64_t kMaxFailure = 16ULL << 20;

// A process that ends folds all counters into one file once in this many times, so that stats.d stays small
// on machines where nothing is ever put.
constexpr uint64_t kFoldEvery = 64;

// Blocks of this size are what small entries take on the usual file systems.
constexpr uint64_t kBlock = 4096;

bool is_off_by(const struct stat& status, int64_t most) {
  const int64_t age = base::wall_clock_ns() - mtime_ns(status);
  return age > most || age < -most;  // a time in the future would keep it for ever
}

std::unique_ptr<KeyLocks> open_locks(FileDescriptor file) {
  const auto probe = base::try_lock_byte(file.get(), kProbeOffset);
  if (!probe) return nullptr;
  if (*probe) (void)base::unlock_byte(file.get(), kProbeOffset);
  return std::make_unique<KeyLocks>(std::move(file));
}

/// A store in a folder of this machine. `layout_` is empty when the mode is kOff, or kReadOnly and the folder
/// is not there: then everything is a miss.
class LocalStore final : public Store {
 public:
  LocalStore(Options options, std::optional<Layout> layout, std::unique_ptr<KeyLocks> locks)
      : options_(std::move(options)), layout_(std::move(layout)), locks_(std::move(locks)) {}
  ~LocalStore() override { save_counters(); }

  std::optional<Entry> get(const Digest& key) override {
    auto entry = look_up(key);
    ++(entry ? counters_.hits : counters_.misses);
    return entry;
  }

  bool put(const Entry& entry) override;
  Held holds(const Digest& key) override;
  void touch(const std::vector<Digest>& keys) override;
  KeyLocks* locks() override { return locks_.get(); }
  void remember_failure(const Digest& key, ByteView what) override;
  std::optional<Bytes> recent_failure(const Digest& key) override;
  std::string keep_output(const Digest& key, ByteView output) override;
  Result<std::string> make_work_folder() override;
  std::optional<Bytes> load_state(const Digest& id) override;
  bool save_state(const Digest& id, ByteView bytes) override;
  void collect_if_due() override;

  const Counters& counters() const override { return counters_; }
  std::string first_trouble() const override {
    const std::lock_guard guard(mutex_);
    return trouble_;
  }
  const Options& options() const override { return options_; }

 private:
  bool writes() const { return options_.mode == Mode::kReadWrite || options_.mode == Mode::kRefresh; }
  bool reads() const {
    return layout_ && (options_.mode == Mode::kReadWrite || options_.mode == Mode::kReadOnly);
  }

  // Counts one soft error; false, so that a put can return it.
  bool survived(const std::string& what) {
    ++counters_.soft_errors;
    const std::lock_guard guard(mutex_);
    if (trouble_.empty()) trouble_ = what;
    return false;
  }

  void damaged(const std::string& what) {
    ++counters_.corrupt;
    const std::lock_guard guard(mutex_);
    if (trouble_.empty()) trouble_ = what;
  }

  std::optional<Entry> look_up(const Digest& key);
  void refused(const Refusal& refusal, int shard, const Digest& key, const struct stat* status);
  void move_aside(int shard, const Digest& key, const struct stat* status);
  std::optional<Flaw> check_in_place(int shard, const Digest& key, bool& there);
  bool write_entry(const Digest& key, ByteView bytes);
  bool link_entry(NewFile& file, int shard, const Digest& key);
  std::optional<Bytes> read_sealed(int folder, const std::string& name, std::string_view magic,
                                   const Digest& id, uint64_t limit, struct stat& status);
  void save_counters();

  const Options options_;
  const std::optional<Layout> layout_;
  const std::unique_ptr<KeyLocks> locks_;
  Counters counters_;
  std::atomic<bool> collection_due_{false};
  mutable std::mutex mutex_;
  std::string trouble_;  // guarded by mutex_
};

std::optional<Entry> LocalStore::look_up(const Digest& key) {
  if (!reads()) return std::nullopt;
  const auto shard = layout_->open_shard(shard_of(key), false);
  if (!shard) {
    survived(shard.error().text());
    return std::nullopt;
  }
  if (!*shard) return std::nullopt;
  const auto file = open_stored(*layout_, shard->get(), entry_name(key));
  if (!file) {
    refused(file.error(), shard->get(), key, nullptr);
    return std::nullopt;
  }
  if (!*file) return std::nullopt;
  const int fd = (*file)->fd.get();
  const struct stat& status = (*file)->status;
  auto entry = read_entry(fd, key, (*file)->size());
  if (!entry) {
    refused(entry.error(), shard->get(), key, &status);
    return std::nullopt;
  }
  if (writes() && is_off_by(status, kTouchHit) && futimens(fd, nullptr) != 0) {
    survived(base::fail_errno(ErrorKind::kEnvironment, "touch", entry_path(key), errno).error().text());
  }
  return std::move(*entry);
}

// What follows when an entry was not what it should be. `status` is that of the file that was read, or null.
void LocalStore::refused(const Refusal& refusal, int shard, const Digest& key, const struct stat* status) {
  switch (refusal.flaw) {
    case Flaw::kNewer:
      return;
    case Flaw::kUnreadable:
      survived(entry_path(key) + ": " + refusal.why);
      return;
    case Flaw::kDamaged:
      damaged(entry_path(key) + ": " + refusal.why);
      if (writes()) move_aside(shard, key, status);
      return;
  }
}

void LocalStore::move_aside(int shard, const Digest& key, const struct stat* status) {
  const std::string name = entry_name(key);
  struct stat now;
  if (fstatat(shard, name.c_str(), &now, AT_SYMLINK_NOFOLLOW) != 0) return;
  // Another process may have moved it and put a good one in its place.
  if (status != nullptr && (now.st_dev != status->st_dev || now.st_ino != status->st_ino)) return;
  const std::string bad = bad_name(key);
  if (renameat(shard, name.c_str(), layout_->temporary(), bad.c_str()) != 0) {
    if (errno == ENOENT) return;
    survived(base::fail_errno(ErrorKind::kEnvironment, "move aside", entry_path(key), errno).error().text());
    return;
  }
  // From now on its age is that of the move. Without it, gc removes it sooner.
  (void)utimensat(layout_->temporary(), bad.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

bool LocalStore::put(const Entry& entry) {
  if (!writes()) return false;
  const auto bytes = encode_entry(entry);
  if (!bytes) {
    if (bytes.error().kind != ErrorKind::kFailed) return survived(bytes.error().text());
    ++counters_.declined;
    return false;
  }
  if (options_.limit_bytes != 0 && bytes->size() > low_mark(options_.limit_bytes)) {
    ++counters_.declined;
    return false;
  }
  return write_entry(entry.key, *bytes);
}

bool LocalStore::write_entry(const Digest& key, ByteView bytes) {
  const auto shard = layout_->open_shard(shard_of(key), true);
  if (!shard) return survived(shard.error().text());
  auto file = NewFile::write(*layout_, bytes, 0444);
  if (!file) return survived(file.error().text());
  if (!link_entry(*file, shard->get(), key)) return false;
  const uint64_t taken = (bytes.size() + kBlock - 1) / kBlock * kBlock;
  if (draws_collection(taken, options_.limit_bytes, base::random_u64())) collection_due_ = true;
  return true;
}

// What is wrong with the entry that has this name now, if anything. `there`: something has it.
std::optional<Flaw> LocalStore::check_in_place(int shard, const Digest& key, bool& there) {
  const auto file = open_stored(*layout_, shard, entry_name(key));
  there = !file || *file;
  if (!file) return file.error().flaw;
  if (!*file) return std::nullopt;
  const auto entry = read_entry((*file)->fd.get(), key, (*file)->size());
  if (entry) return std::nullopt;
  return entry.error().flaw;
}

bool LocalStore::link_entry(NewFile& file, int shard, const Digest& key) {
  const std::string name = entry_name(key);
  bool there = false;
  // Twice: something damaged may have to be moved out of the way.
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (options_.mode != Mode::kRefresh) {
      const auto placed = file.place(shard, name);
      if (!placed) return survived(placed.error().text());
      if (*placed) {
        ++counters_.puts;
        return true;
      }
    }
    const std::optional<Flaw> flaw = check_in_place(shard, key, there);
    if (flaw == Flaw::kNewer) {
      ++counters_.declined;
      return false;
    }
    if (flaw == Flaw::kDamaged) {
      damaged(entry_path(key) + ": damaged");
      move_aside(shard, key, nullptr);
    } else if (there && options_.mode != Mode::kRefresh) {
      // Somebody else was faster with the same key; or nothing can be said, and it stays.
      return !flaw || survived(entry_path(key) + ": cannot be read");
    }
    if (options_.mode == Mode::kRefresh) {
      if (const auto replaced = file.replace(shard, name); !replaced)
        return survived(replaced.error().text());
      ++counters_.puts;
      return true;
    }
  }
  return survived(entry_path(key) + ": something that is not an entry is in its place");
}

Held LocalStore::holds(const Digest& key) {
  if (!reads()) return Held::kNothing;
  const auto shard = layout_->open_shard(shard_of(key), false);
  if (!shard || !*shard) return Held::kNothing;
  const auto file = open_stored(*layout_, shard->get(), entry_name(key));
  if (!file || !*file) return Held::kNothing;
  const auto header = read_entry_header((*file)->fd.get(), key, (*file)->size());
  if (!header) return Held::kNothing;
  return header->entry.unsupported ? Held::kUnsupported : Held::kCode;
}

void LocalStore::touch(const std::vector<Digest>& keys) {
  if (!layout_ || !writes()) return;
  std::vector<Digest> sorted = keys;  // so that each shard is opened once
  std::sort(sorted.begin(), sorted.end());
  FileDescriptor shard;
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (i == 0 || shard_of(sorted[i]) != shard_of(sorted[i - 1])) {
      auto opened = layout_->open_shard(shard_of(sorted[i]), false);
      shard = opened ? std::move(*opened) : FileDescriptor();
    }
    if (!shard) continue;
    const std::string name = entry_name(sorted[i]);
    struct stat status;
    if (fstatat(shard.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!S_ISREG(status.st_mode) || !is_off_by(status, kTouchUnchanged)) continue;
    if (utimensat(shard.get(), name.c_str(), nullptr, AT_SYMLINK_NOFOLLOW) != 0 && errno != ENOENT) {
      survived(
          base::fail_errno(ErrorKind::kEnvironment, "touch", entry_path(sorted[i]), errno).error().text());
    }
  }
}

void LocalStore::remember_failure(const Digest& key, ByteView what) {
  if (!layout_ || !writes() || what.size() > kMaxFailure) return;
  auto file = NewFile::write(*layout_, seal(kFailureMagic, key, what), 0600);
  if (!file) {
    survived(file.error().text());
  } else if (const auto named = file->replace(layout_->temporary(), failed_name(key)); !named) {
    survived(named.error().text());
  }
}

std::optional<Bytes> LocalStore::recent_failure(const Digest& key) {
  if (!layout_ || layout_->temporary() < 0) return std::nullopt;
  struct stat status;
  auto what = read_sealed(layout_->temporary(), failed_name(key), kFailureMagic, key, kMaxFailure, status);
  if (!what || is_off_by(status, kFailureLife)) return std::nullopt;
  return what;
}

std::string LocalStore::keep_output(const Digest& key, ByteView output) {
  if (!layout_ || !writes()) return {};
  auto kept = write_repro(*layout_, key, output);
  if (kept) return *kept;
  survived(kept.error().text());
  return {};
}

Result<std::string> LocalStore::make_work_folder() {
  if (!layout_ || !writes()) {
    return base::fail(ErrorKind::kEnvironment,
                      "the store is not in use for writing, so jobs have no folder there");
  }
  const std::string name = job_name();
  const std::string path = layout_->path() + "/v1/tmp/" + name;
  if (mkdirat(layout_->temporary(), name.c_str(), 0700) != 0) {
    return base::fail_errno(ErrorKind::kEnvironment, "make directory", path, errno);
  }
  return path;
}

// The payload of a sealed file, or nothing; damage and trouble are counted, a newer version is not.
std::optional<Bytes> LocalStore::read_sealed(int folder, const std::string& name, std::string_view magic,
                                             const Digest& id, uint64_t limit, struct stat& status) {
  const auto read = [&]() -> Checked<std::optional<Bytes>> {
    KC_ASSIGN(const auto file, open_stored(*layout_, folder, name));
    if (!file) return std::nullopt;
    status = file->status;
    KC_ASSIGN(Bytes payload, unseal(file->fd.get(), magic, id, file->size(), limit));
    return payload;
  };
  auto bytes = read();
  if (bytes) return std::move(*bytes);
  if (bytes.error().flaw == Flaw::kDamaged) damaged(name + ": " + bytes.error().why);
  if (bytes.error().flaw == Flaw::kUnreadable) survived(bytes.error().why);
  return std::nullopt;
}

std::optional<Bytes> LocalStore::load_state(const Digest& id) {
  if (!layout_ || layout_->states() < 0) return std::nullopt;
  struct stat status;
  auto bytes = read_sealed(layout_->states(), id.hex(), kStateMagic, id, kMaxState, status);
  if (bytes && writes() && is_off_by(status, kTouchUnchanged)) {
    if (utimensat(layout_->states(), id.hex().c_str(), nullptr, AT_SYMLINK_NOFOLLOW) != 0) {
      survived(base::fail_errno(ErrorKind::kEnvironment, "touch", "state/" + id.hex(), errno).error().text());
    }
  }
  return bytes;
}

bool LocalStore::save_state(const Digest& id, ByteView bytes) {
  if (!layout_ || !writes()) return false;
  if (bytes.size() > kMaxState) return survived("the state of this build is larger than a state may be");
  auto file = NewFile::write(*layout_, seal(kStateMagic, id, bytes), 0600);
  if (!file) return survived(file.error().text());
  const auto named = file->replace(layout_->states(), id.hex());
  return named ? true : survived(named.error().text());
}

void LocalStore::collect_if_due() {
  if (!layout_ || !collection_due_.exchange(false)) return;
  GcOptions options;
  options.max_size = low_mark(options_.limit_bytes);
  const auto report = collect_in(*layout_, options, kAutomaticTime);
  if (!report) {
    survived(report.error().text());
  } else if (!report->trouble.empty()) {
    survived(report->trouble);
  }
}

void LocalStore::save_counters() {
  if (!layout_ || !writes()) return;
  const Tally tally{.hits = counters_.hits,
                    .misses = counters_.misses,
                    .puts = counters_.puts,
                    .corrupt = counters_.corrupt,
                    .soft_errors = counters_.soft_errors,
                    .declined = counters_.declined};
  if (tally == Tally{}) return;
  write_tally(*layout_, tally);
  if (base::random_u64() % kFoldEvery != 0) return;
  const auto lock = try_collection_lock(*layout_);
  if (lock && *lock) fold_tallies(*layout_);
}

}  // namespace

Result<std::unique_ptr<Store>> Store::open(const Options& options) {
  if (options.mode == Mode::kOff) return std::make_unique<LocalStore>(options, std::nullopt, nullptr);
  const bool writes = options.mode != Mode::kReadOnly;
  KC_ASSIGN(auto layout, Layout::open(options.directory, writes ? Access::kMake : Access::kRead));
  std::unique_ptr<KeyLocks> locks;
  if (writes) {
    // The one file that is opened for writing before anything is put: it tells whether that is possible.
    auto file = base::open_at(layout->version(), "locks", O_RDWR | O_CREAT | O_NOFOLLOW, 0600,
                              ErrorKind::kEnvironment);
    if (!file) {
      file.error().message = "the store cannot be written: " + file.error().message;
      file.error().place.file = layout->path();
      file.error().hint = "use it with --store-mode=ro, or name another one with --store or KC_STORE_DIR";
      return std::unexpected(std::move(file).error());
    }
    locks = open_locks(std::move(*file));
  }
  return std::make_unique<LocalStore>(options, std::move(layout), std::move(locks));
}

}  // namespace kc::store
