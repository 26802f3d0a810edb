// The store in a folder of this machine, as store.cpp (entries and records) and local_files.cpp (everything
// else) implement it. Inner to core/store.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/files.h"
#include "store/entry_codec.h"
#include "store/frozen.h"
#include "store/key_locks.h"
#include "store/layout.h"
#include "store/new_file.h"
#include "store/store.h"

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

/// A store in a folder of this machine. `layout_` is empty when the mode is kOff, or kReadOnly and the folder
/// is not there: then everything is a miss.
class LocalStore final : public Store {
 public:
  LocalStore(Options options, std::optional<Layout> layout, std::unique_ptr<KeyLocks> locks)
      : options_(std::move(options)), layout_(std::move(layout)), locks_(std::move(locks)) {}
  ~LocalStore() override { save_counters(); }

  std::optional<Entry> get(const base::Digest& key) override {
    auto entry = look_up<Entry>(Kind::kEntry, key, read_entry);
    ++(entry ? counters_.hits : counters_.misses);
    return entry;
  }

  bool put(const Entry& entry) override;
  Held holds(const base::Digest& key) override;
  void touch(const std::vector<base::Digest>& keys) override { touch_all(Kind::kEntry, keys); }
  std::optional<Record> get_record(const base::Digest& request) override;
  bool put_record(const Record& record) override;
  std::optional<base::Digest> recorded(const base::Digest& request) override;
  void touch_records(const std::vector<base::Digest>& requests) override {
    touch_all(Kind::kRecord, requests);
  }
  KeyLocks* locks() override { return locks_.get(); }
  void remember_failure(const base::Digest& key, base::ByteView what) override;
  std::optional<base::Bytes> recent_failure(const base::Digest& key) override;
  std::string keep_output(const base::Digest& key, base::ByteView output) override;
  std::string keep_repro(const base::Digest& key, const Repro& repro) override;
  base::Result<std::string> make_work_folder() override;
  std::optional<base::Bytes> load_state(const base::Digest& id) override;
  bool save_state(const base::Digest& id, base::ByteView bytes) override;
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

  template <typename Stored>
  using Reader = Checked<Stored> (*)(int fd, const base::Digest& key, uint64_t file_size);
  // The file of `key`, marked as used; nothing when there is none, or none that is right.
  template <typename Stored>
  std::optional<Stored> look_up(Kind kind, const base::Digest& key, Reader<Stored> read);
  // The same without touching, moving or counting anything.
  template <typename Stored>
  std::optional<Stored> peek(Kind kind, const base::Digest& key, Reader<Stored> read) const;
  // What has this name now: nothing, something right, or why not.
  template <typename Stored>
  Checked<std::optional<Stored>> in_place(Kind kind, int shard, const base::Digest& key,
                                          Reader<Stored> read) const;
  void refused(const Refusal& refusal, Kind kind, int shard, const base::Digest& key,
               const struct stat* status);
  void move_aside(Kind kind, int shard, const base::Digest& key, const struct stat* status);
  void touch_all(Kind kind, std::vector<base::Digest> keys);
  bool write_entry(const base::Digest& key, base::ByteView bytes);
  bool link_entry(NewFile& file, int shard, const base::Digest& key);
  bool write_record(const Record& record, base::ByteView bytes);
  void draw_collection(size_t bytes);
  std::optional<base::Bytes> read_sealed(int folder, const std::string& name, std::string_view magic,
                                         const base::Digest& id, uint64_t limit, struct stat& status);
  void save_counters();

  const Options options_;
  const std::optional<Layout> layout_;
  const std::unique_ptr<KeyLocks> locks_;
  Counters counters_;
  std::atomic<bool> collection_due_{false};
  mutable std::mutex mutex_;
  std::string trouble_;  // guarded by mutex_
};

}  // namespace kc::store
