#include "store/collector.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/atomic_file.h"
#include "base/file_system.h"
#include "base/lock.h"
#include "store/statistics.h"

namespace kc::store {
namespace {

using base::Digest;
using base::ErrorKind;
using base::FileDescriptor;
using base::Result;
using Clock = std::chrono::steady_clock;

// Longer than any file takes to write or any job takes to touch its folder.
constexpr int64_t kTemporaryAge = 3600 * kSecondNs;
constexpr int64_t kQuarantineAge = 24 * kTemporaryAge;
constexpr int64_t kFailureAge = 60 * kSecondNs;
constexpr int64_t kStateAge = 90 * kQuarantineAge;

// One collection: what it may take, what it has seen and done.
class Collection {
 public:
  Collection(const Layout& layout, const GcOptions& options,
             std::optional<std::chrono::milliseconds> time_limit)
      : layout_(layout), options_(options), now_(base::wall_clock_ns()) {
    if (time_limit) {
      scan_until_ = Clock::now() + *time_limit / 2;
      until_ = Clock::now() + *time_limit;
    }
  }

  Result<GcReport> run() {
    scan();
    remove_oldest();
    remove_temporaries();
    remove_states();
    if (!options_.dry_run) fold_tallies(layout_);
    return std::move(report_);
  }

 private:
  struct Found {
    int64_t mtime;
    uint64_t bytes;
    Kind kind;
    Digest key;
  };

  void scan() {
    // A random first shard, so that scans which run out of time do not always see the same ones.
    const unsigned first = scan_until_ ? static_cast<unsigned>(base::random_u64() % kShards) : 0;
    for (; shards_ < kShards; ++shards_) {
      if (scan_until_ && shards_ > 0 && Clock::now() > *scan_until_) break;
      for (const Kind kind : kKinds) scan_shard(kind, (first + shards_) % kShards);
    }
  }

  void scan_shard(Kind kind, unsigned shard) {
    const auto visited =
        visit_shard(layout_, kind, shard, [&](int folder, const char* name, const Digest& key) {
          struct stat status;
          if (base::file_system().fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0) return;
          if (!S_ISREG(status.st_mode)) return;
          found_.push_back({mtime_ns(status), counted_bytes(status), kind, key});
          report_.bytes_before += found_.back().bytes;
          ++(kind == Kind::kEntry ? report_.entries_before : report_.records_before);
        });
    // One folder that cannot be trusted or read must not keep the others over their limit.
    if (!visited) trouble(visited.error().text());
  }

  // Entries and records alike. A hit uses both, so a record is as old as what it leads to.
  void remove_oldest() {
    if (!options_.max_size && !options_.max_age) return;
    std::sort(found_.begin(), found_.end(), [](const Found& a, const Found& b) {
      return std::tie(a.mtime, a.kind, a.key) < std::tie(b.mtime, b.kind, b.key);
    });
    const bool sized = options_.max_size.has_value();
    const uint64_t most =
        sized ? *options_.max_size / kShards * shards_ + *options_.max_size % kShards * shards_ / kShards : 0;
    uint64_t left = report_.bytes_before;
    for (const Found& found : found_) {
      const bool old = options_.max_age && (now_ - found.mtime) / kSecondNs > options_.max_age->count();
      if (!old && !(sized && left > most)) break;
      if (until_ && Clock::now() > *until_) break;
      if (!remove_found(found)) continue;
      left -= found.bytes;
      ++(found.kind == Kind::kEntry ? report_.entries_removed : report_.records_removed);
      report_.bytes_removed += found.bytes;
    }
  }

  bool remove_found(const Found& found) {
    const unsigned shard = shard_of(found.key);
    if (!options_.dry_run) {
      FileDescriptor& folder = folders_[static_cast<size_t>(found.kind)][shard];
      if (!folder) {
        auto opened = layout_.open_shard(found.kind, shard, false);
        if (!opened) return trouble(opened.error().text());
        folder = std::move(*opened);
      }
      if (base::file_system().unlinkat(folder.get(), stored_name(found.kind, found.key).c_str(), 0) != 0 &&
          errno != ENOENT) {
        return trouble(stored_path(found.kind, found.key), errno);
      }
    }
    note(stored_path(found.kind, found.key));
    return true;
  }

  void remove_temporaries() {
    for_each(layout_.temporary(), [this](const std::string& name, const struct stat& status, int64_t age) {
      const auto parsed = parse_temporary_name(name);
      if (!parsed || (parsed->kind == TemporaryKind::kJob) != S_ISDIR(status.st_mode)) return;
      bool due = false;
      switch (parsed->kind) {
        case TemporaryKind::kNew:
          due = age > kTemporaryAge;
          break;
        case TemporaryKind::kBad:
          due = age > kQuarantineAge;
          break;
        case TemporaryKind::kFailed:
          due = age > kFailureAge;
          break;
        case TemporaryKind::kJob:
          due = age > kTemporaryAge && kill(parsed->pid, 0) != 0 && errno == ESRCH;
          break;
      }
      if (due && remove(layout_.temporary(), "tmp/" + name, name, S_ISDIR(status.st_mode))) {
        ++report_.temporaries_removed;
      }
    });
  }

  void remove_states() {
    for_each(layout_.states(), [this](const std::string& name, const struct stat& status, int64_t age) {
      if (!S_ISREG(status.st_mode) || !base::parse_digest(name) || age <= kStateAge) return;
      if (remove(layout_.states(), "state/" + name, name, false)) ++report_.states_removed;
    });
  }

  template <typename Visit>
  void for_each(int folder, Visit visit) {
    if (folder < 0) return;
    const auto names = base::list_directory(folder, ".");
    if (!names) {
      trouble(names.error().text());
      return;
    }
    for (const std::string& name : *names) {
      struct stat status;
      if (base::file_system().fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
      if (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) visit(name, status, now_ - mtime_ns(status));
    }
  }

  bool remove(int folder, const std::string& shown, const std::string& name, bool tree) {
    if (!options_.dry_run) {
      if (tree) {
        const auto removed = base::remove_tree(layout_.path() + "/v1/" + shown);
        if (!removed) return trouble(removed.error().text());
      } else if (base::file_system().unlinkat(folder, name.c_str(), 0) != 0 && errno != ENOENT) {
        return trouble(shown, errno);
      }
    }
    note(shown);
    return true;
  }

  void note(std::string shown) {
    if (options_.dry_run || options_.list_removed) report_.removed.push_back(std::move(shown));
  }
  bool trouble(std::string text) {
    if (report_.trouble.empty()) report_.trouble = std::move(text);
    return false;
  }
  bool trouble(const std::string& shown, int error_number) {
    return trouble(base::fail_errno(ErrorKind::kEnvironment, "remove", shown, error_number).error().text());
  }

  const Layout& layout_;
  const GcOptions& options_;
  const int64_t now_;
  std::optional<Clock::time_point> scan_until_, until_;
  unsigned shards_ = 0;  // scanned
  std::vector<Found> found_;
  // By kind; opened when something in them is removed.
  std::array<std::array<FileDescriptor, kShards>, std::size(kKinds)> folders_;
  GcReport report_;
};

}  // namespace

Result<void> visit_shard(const Layout& layout, Kind kind, unsigned shard,
                         const std::function<void(int folder, const char* name, const Digest& key)>& visit) {
  KC_ASSIGN(FileDescriptor fd, layout.open_shard(kind, shard, false));
  if (!fd) return {};
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(base::file_system().fdopendir(fd.get()), closedir);
  if (stream == nullptr) return base::fail_errno(ErrorKind::kEnvironment, "list", layout.path(), errno);
  const int folder = fd.release();  // the stream owns it now
  for (;;) {
    errno = 0;
    const dirent* entry = base::file_system().readdir(stream.get());
    if (entry == nullptr) break;
    if (const auto key = parse_stored_name(kind, entry->d_name, shard)) visit(folder, entry->d_name, *key);
  }
  if (errno != 0) return base::fail_errno(ErrorKind::kEnvironment, "list", layout.path(), errno);
  return {};
}

Result<FileDescriptor> try_collection_lock(const Layout& layout) {
  KC_ASSIGN(FileDescriptor fd, base::open_at(layout.version(), "gc.lock", O_RDWR | O_CREAT | O_NOFOLLOW, 0600,
                                             ErrorKind::kEnvironment));
  const auto locked = base::try_lock_byte(fd.get(), 0);
  if (locked && !*locked) return FileDescriptor();
  return fd;
}

Result<GcReport> collect_in(const Layout& layout, const GcOptions& options,
                            std::optional<std::chrono::milliseconds> time_limit) {
  FileDescriptor lock;
  if (!options.dry_run) {
    KC_ASSIGN(lock, try_collection_lock(layout));
    if (!lock) {
      GcReport report;
      report.busy = true;
      return report;
    }
  }
  return Collection(layout, options, time_limit).run();
}

bool draws_collection(uint64_t bytes, uint64_t limit_bytes, uint64_t draw) {
  if (limit_bytes == 0) return false;
  const uint64_t step = std::max<uint64_t>(limit_bytes / 32, 1);
  if (bytes >= step) return true;
  // draw / 2^64 < bytes / step, in whole numbers and with all 64 bits of the draw.
  return static_cast<unsigned __int128>(draw) * step < static_cast<unsigned __int128>(bytes) << 64;
}

}  // namespace kc::store
