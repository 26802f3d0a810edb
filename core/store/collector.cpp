#include "store/collector.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/atomic_file.h"
#include "base/file_system.h"
#include "base/lock.h"
#include "store/leads.h"
#include "store/leftovers.h"
#include "store/statistics.h"

namespace kc::store {
namespace {

using base::Digest;
using base::ErrorKind;
using base::FileDescriptor;
using base::Result;
using Clock = std::chrono::steady_clock;

// By how much the marks of last use of a record and of its entry differ: an unchanged build sets each when it
// is more than a day off.
constexpr int64_t kUsedTogether = 24 * 3600 * kSecondNs;

// What is pinned or asked for.
Result<KeySet> named_keys(const Layout& layout, const GcOptions& options) {
  KeySet kept;
  if (options.keep != nullptr) kept = *options.keep;
  KC_ASSIGN(const std::vector<Pin> pins, read_pins_in(layout));
  for (const Pin& pin : pins) kept.add(pin.keys);
  return kept;
}

// One collection: what it may take, what it has seen and done.
class Collection {
 public:
  Collection(const Layout& layout, const GcOptions& options, KeySet kept,
             std::optional<std::chrono::milliseconds> time_limit)
      : layout_(layout),
        options_(options),
        kept_(std::move(kept)),
        now_(base::wall_clock_ns()),
        time_limit_(time_limit) {}

  Result<GcReport> run() {
    scan();
    KC_TRY(set_kept_apart());
    remove_oldest();
    remove_leftovers(layout_, options_, now_, report_);
    if (!options_.dry_run) fold_tallies(layout_);
    return std::move(report_);
  }

 private:
  struct Found {
    int64_t mtime;
    uint64_t bytes;
    Kind kind;
    bool is_gone;
    Digest key;
  };

  void scan() {
    std::optional<Clock::time_point> until;
    if (time_limit_) until = Clock::now() + *time_limit_ / 2;
    // A random first shard, so that scans which run out of time do not always see the same ones.
    const unsigned first = until ? static_cast<unsigned>(base::random_u64() % kShards) : 0;
    for (; shards_ < kShards; ++shards_) {
      if (until && shards_ > 0 && Clock::now() > *until) break;
      for (const Kind kind : kKinds) scan_shard(kind, (first + shards_) % kShards);
    }
  }

  void scan_shard(Kind kind, unsigned shard) {
    const auto visited =
        visit_shard(layout_, kind, shard, [&](int folder, const char* name, const Digest& key) {
          struct stat status;
          if (base::file_system().fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
            if (errno != ENOENT) {
              const std::string path = stored_path(kind, key);
              trouble(base::fail_errno(ErrorKind::kEnvironment, "stat", path, errno).error().text());
            }
            return;
          }
          if (!S_ISREG(status.st_mode)) return;
          found_.push_back({mtime_ns(status), counted_bytes(status), kind, false, key});
          report_.bytes_before += found_.back().bytes;
          ++(kind == Kind::kEntry ? report_.entries_before : report_.records_before);
        });
    // One folder that cannot be trusted or read must not keep the others over their limit.
    if (!visited) trouble(visited.error().text());
  }

  // What no limit takes: what was named, and what the records among it lead to. They are read behind the
  // scan, so that of what it has seen nothing is taken that a record put meanwhile leads to.
  Result<void> set_kept_apart() {
    std::vector<Digest> requests(kept_.records.begin(), kept_.records.end());
    std::sort(requests.begin(), requests.end());
    const Leads leads = read_leads(layout_, requests);
    if (!leads.unknown.empty()) {
      return base::fail_at(ErrorKind::kEnvironment, {layout_.path()},
                           "it is not known which entry a kept record leads to: " + leads.unknown,
                           "use the newest kc that uses this store, or remove that file");
    }
    for (const std::optional<Digest>& content : leads.content) {
      if (content) kept_.entries.insert(*content);
    }
    if (kept_.entries.empty() && kept_.records.empty()) return {};
    std::erase_if(found_, [this](const Found& found) {
      const bool is_entry = found.kind == Kind::kEntry;
      if (!(is_entry ? kept_.entries : kept_.records).contains(found.key)) return false;
      report_.bytes_kept += found.bytes;
      ++(is_entry ? report_.entries_kept : report_.records_kept);
      return true;
    });
    return {};
  }

  // Entries and records alike. A hit uses both, so a record is as old as what it leads to.
  void remove_oldest() {
    if (!options_.max_size && !options_.max_age && !options_.only_keep) return;
    std::sort(found_.begin(), found_.end(), [](const Found& a, const Found& b) {
      return std::tie(a.mtime, a.kind, a.key) < std::tie(b.mtime, b.kind, b.key);
    });
    std::optional<Clock::time_point> read_until, until;
    if (time_limit_) {
      read_until = Clock::now() + *time_limit_ / 4;
      until = Clock::now() + *time_limit_ / 2;
    }
    uint64_t left = report_.bytes_before;
    const std::unordered_multimap<Digest, size_t> records = find_records_of_due(left, read_until);
    for (Found& found : found_) {
      if (!is_due(found, left)) break;
      if (until && Clock::now() > *until) break;
      if (!take(found, left) || found.kind != Kind::kEntry) continue;
      const auto [first, last] = records.equal_range(found.key);
      for (auto at = first; at != last; ++at) take(found_[at->second], left);
    }
  }

  bool is_due(const Found& found, uint64_t left) const {
    if (options_.only_keep) return true;
    if (options_.max_age && (now_ - found.mtime) / kSecondNs > options_.max_age->count()) return true;
    return options_.max_size && left > share_of(*options_.max_size);
  }
  // What of `bytes` is for the shards that were scanned.
  uint64_t share_of(uint64_t bytes) const {
    return bytes / kShards * shards_ + bytes % kShards * shards_ / kShards;
  }

  // For each entry that may have to go, where the records that lead to it are in found_.
  std::unordered_multimap<Digest, size_t> find_records_of_due(uint64_t left,
                                                              std::optional<Clock::time_point> until) const {
    std::unordered_multimap<Digest, size_t> out;
    size_t due = 0;
    const Found* youngest = nullptr;  // entry that must go
    for (; due < found_.size() && is_due(found_[due], left); ++due) {
      left -= found_[due].bytes;
      if (found_[due].kind == Kind::kEntry) youngest = &found_[due];
    }
    if (youngest == nullptr || due == found_.size()) return out;  // all go by themselves
    std::vector<std::pair<Digest, size_t>> records;
    for (size_t i = 0; i < found_.size() && found_[i].mtime <= youngest->mtime + kUsedTogether; ++i) {
      if (found_[i].kind == Kind::kRecord) records.emplace_back(found_[i].key, i);
    }
    std::sort(records.begin(), records.end());
    std::vector<Digest> requests;
    for (const auto& [request, index] : records) requests.push_back(request);
    const Leads leads = read_leads(layout_, requests, until);
    for (size_t i = 0; i < records.size(); ++i) {
      if (leads.content[i]) out.emplace(*leads.content[i], records[i].second);
    }
    return out;
  }

  // True when it is gone now, or would be.
  bool take(Found& found, uint64_t& left) {
    if (found.is_gone) return false;
    if (!options_.dry_run && !remove(found)) return false;
    found.is_gone = true;
    left -= found.bytes;
    ++(found.kind == Kind::kEntry ? report_.entries_removed : report_.records_removed);
    report_.bytes_removed += found.bytes;
    if (options_.dry_run || options_.list_removed) {
      report_.removed.push_back(stored_path(found.kind, found.key));
    }
    return true;
  }

  bool remove(const Found& found) {
    const unsigned shard = shard_of(found.key);
    FileDescriptor& folder = folders_[static_cast<size_t>(found.kind)][shard];
    if (!folder) {
      auto opened = layout_.open_shard(found.kind, shard, false);
      if (!opened) return trouble(opened.error().text());
      folder = std::move(*opened);
    }
    if (base::file_system().unlinkat(folder.get(), stored_name(found.kind, found.key).c_str(), 0) == 0 ||
        errno == ENOENT) {
      return true;
    }
    const std::string path = stored_path(found.kind, found.key);
    return trouble(base::fail_errno(ErrorKind::kEnvironment, "remove", path, errno).error().text());
  }

  bool trouble(std::string text) {
    if (report_.trouble.empty()) report_.trouble = std::move(text);
    return false;
  }

  const Layout& layout_;
  const GcOptions& options_;
  KeySet kept_;
  const int64_t now_;
  const std::optional<std::chrono::milliseconds> time_limit_;
  unsigned shards_ = 0;       // scanned
  std::vector<Found> found_;  // that may go, once set_kept_apart() was there
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

Result<std::vector<Digest>> keys_in_shard(const Layout& layout, Kind kind, unsigned shard) {
  std::vector<Digest> keys;
  KC_TRY(visit_shard(layout, kind, shard, [&](int, const char*, const Digest& key) { keys.push_back(key); }));
  std::sort(keys.begin(), keys.end());
  return keys;
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
  // Behind the lock: a pin is written under it, too.
  KC_ASSIGN(KeySet kept, named_keys(layout, options));
  return Collection(layout, options, std::move(kept), time_limit).run();
}

bool draws_collection(uint64_t bytes, uint64_t limit_bytes, uint64_t draw) {
  if (limit_bytes == 0) return false;
  const uint64_t step = std::max<uint64_t>(limit_bytes / 32, 1);
  if (bytes >= step) return true;
  // draw / 2^64 < bytes / step, in whole numbers and with all 64 bits of the draw.
  return static_cast<unsigned __int128>(draw) * step < static_cast<unsigned __int128>(bytes) << 64;
}

uint64_t random_draw() {
  return base::random_u64();
}

}  // namespace kc::store
