// Entries and records in a folder of this machine.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "store/layout.h"
#include "store/new_file.h"
#include "store/tier.h"

namespace kc::store {

/// Whether the time of last use is more than `most` ns away from now, on either side: one in the future would
/// keep a file for ever.
inline bool is_off_by(const struct stat& status, int64_t most) {
  const int64_t age = base::wall_clock_ns() - mtime_ns(status);
  return age > most || age < -most;
}

// Hits set the time of last use this seldom: a write a hit would cost more than the hit.
inline constexpr int64_t kTouchHit = 3600 * kSecondNs;
inline constexpr int64_t kTouchUnchanged = 24 * kTouchHit;

/// Any thread may call. A system call cannot be told when to be done, so that deadlines are only seen to be
/// exceeded afterwards.
class LocalTier final : public Tier {
 public:
  /// kReadOnly: nothing is put, removed, moved or touched. kRefresh: a put replaces what is there. kOff is no
  /// use of a tier.
  LocalTier(Layout layout, Mode mode, uint64_t limit_bytes, std::string label, Patience patience)
      : Tier(std::move(label), patience),
        layout_(std::move(layout)),
        mode_(mode),
        limit_bytes_(limit_bytes) {}

  const Layout& layout() const { return layout_; }
  bool writes() const { return mode_ == Mode::kReadWrite || mode_ == Mode::kRefresh; }
  /// Marks files as used that were not for a day.
  void touch(Kind kind, std::vector<base::Digest> keys);
  /// Whether a put since the last call decided that the folder is to be collected.
  bool take_due() { return collection_due_.exchange(false); }

 private:
  Checked<std::optional<Entry>> do_get(const base::Digest& key, Deadline deadline) override;
  Checked<std::optional<Record>> do_get_record(const base::Digest& request, Deadline deadline) override;
  Checked<Held> do_holds(const base::Digest& key, Deadline deadline) override;
  Checked<std::optional<base::Digest>> do_recorded(const base::Digest& request, Deadline deadline) override;
  Checked<Put> do_put(const Entry& entry, Deadline deadline) override;
  Checked<Put> do_put_record(const Record& record, Deadline deadline) override;
  Checked<bool> do_remove(Kind kind, const base::Digest& key, Deadline deadline) override;
  Checked<void> do_list(Kind kind, const Visit& visit, Deadline deadline) override;

  template <typename Stored>
  using Reader = Checked<Stored> (*)(int fd, const base::Digest& key, uint64_t file_size);
  // One system call where looking with care takes five: an engine looks for what kc has just missed.
  bool is_missing(Kind kind, const base::Digest& key) const;
  // The file of `key`, marked as used; nothing when there is none. What is damaged is moved aside.
  template <typename Stored>
  Checked<std::optional<Stored>> look_up(Kind kind, const base::Digest& key, Reader<Stored> read);
  // The same without touching or moving anything.
  template <typename Stored>
  Checked<std::optional<Stored>> peek(Kind kind, const base::Digest& key, Reader<Stored> read) const;
  // What has this name now: nothing, something right, or why not.
  template <typename Stored>
  Checked<std::optional<Stored>> in_place(Kind kind, int shard, const base::Digest& key,
                                          Reader<Stored> read) const;
  void move_aside(Kind kind, int shard, const base::Digest& key, const struct stat* status);
  Checked<Put> link_entry(NewFile& file, int shard, const Entry& entry);
  void draw_collection(size_t bytes);

  const Layout layout_;
  const Mode mode_;
  const uint64_t limit_bytes_;
  std::atomic<bool> collection_due_{false};
};

}  // namespace kc::store
