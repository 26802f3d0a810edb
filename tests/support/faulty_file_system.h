// Stands between kc and the kernel (base/file_system.h): counts file operations, lets chosen ones fail, be
// cut short or be done with their answer lost, and forgets what was not synced, as a power cut does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file_system.h"

namespace kc::test {

enum class Operation : uint8_t {
  kOpen,
  kClose,
  kRead,
  kWrite,  // read and write: with and without an offset
  kSync,
  kStat,
  kLink,
  kRename,
  kUnlink,
  kMakeFolder,
  kSetTimes,
  kList,
  kLock,
};
inline constexpr size_t kOperations = 13;
const char* name_of(Operation operation);
/// What a signal ends early without SA_RESTART (signal(7)), so that it is to be done again. A close is, too,
/// but its descriptor is gone and it is never repeated.
bool can_be_interrupted(Operation operation);

/// What a power cut takes of what was not synced. File systems differ, so a test tries each.
enum class Lost : uint8_t {
  kContent,          // files are as long as at their last sync: the names are there, empty
  kContentAsZeros,   // files are as long as they were, with zeros where nothing was synced
  kNames,            // files are whole, but names made, moved or removed since their folder's sync are undone
  kContentAndNames,  // both
};
inline constexpr Lost kLosses[] = {Lost::kContent, Lost::kContentAsZeros, Lost::kNames,
                                   Lost::kContentAndNames};

/// Thread-safe. Operations are numbered from 1 since start(). A read or write that is cut short does half.
class FaultyFileSystem final : public base::FileSystem {
 public:
  /// Numbers and faults start again.
  void start();
  /// Operation `number` does nothing and ends with `error`; a close closes all the same.
  void fail(uint64_t number, int error) { fail_from(number, error, 1); }
  /// The same for `count` operations from `number` on.
  void fail_from(uint64_t number, int error, uint64_t count);
  /// Operation `number`, if it is of those that a network file system does and whose answer it can lose
  /// (link, make folder, rename, unlink), is done; then it says what a repetition of it says.
  void lose_answer(uint64_t number);
  /// Each read and write is cut short; every second operation that a signal can interrupt is interrupted.
  void hinder();
  /// From operation `number` on the power is off: nothing is done, everything ends with EIO. Files written
  /// and names made from now on are remembered for lose(). `morgue` is an empty folder of the same file
  /// system, where removed files are kept.
  void cut_power(uint64_t number, const std::string& morgue);
  /// After cut_power(): makes the files what they are after a restart.
  void lose(Lost what);

  uint64_t count() const;
  uint64_t count(Operation operation) const;
  /// What operation was the one that failed; nothing when it was never reached.
  std::optional<Operation> failed() const;

  int openat(int directory, const char* path, int flags, mode_t mode) override;
  int close(int fd) override;
  ssize_t read(int fd, void* out, size_t size) override;
  ssize_t pread(int fd, void* out, size_t size, off_t offset) override;
  ssize_t write(int fd, const void* bytes, size_t size) override;
  ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset) override;
  int fsync(int fd) override;
  int fstat(int fd, struct stat* out) override;
  int fstatat(int directory, const char* path, struct stat* out, int flags) override;
  int linkat(int from_directory, const char* from, int to_directory, const char* to, int flags) override;
  int renameat(int from_directory, const char* from, int to_directory, const char* to) override;
  int unlinkat(int directory, const char* path, int flags) override;
  int mkdirat(int directory, const char* path, mode_t mode) override;
  int futimens(int fd, const timespec* times) override;
  int utimensat(int directory, const char* path, const timespec* times, int flags) override;
  DIR* fdopendir(int fd) override;
  dirent* readdir(DIR* stream) override;
  int set_lock(int fd, struct flock* range) override;

 private:
  using Inode = std::pair<dev_t, ino_t>;
  enum class Was : uint8_t { kNothing, kFile, kFolder };
  // What one name was before it changed.
  struct Change {
    Inode folder;
    std::string path;
    Was was = Was::kNothing;
    std::string before;  // of a file: its link in the morgue
  };
  enum class Fate : uint8_t { kDo, kFail, kShort, kLoseAnswer };

  Fate next(Operation operation);
  int lost_or(Fate fate, int result, int repeated) const;
  std::string grave();
  void will_write(int fd);
  void has_synced(int fd);
  void will_change(int directory, const char* path);
  static void undo(const Change& change);

  mutable std::mutex mutex_;
  uint64_t count_ = 0;
  uint64_t counts_[kOperations] = {};
  uint64_t fail_first_ = 0, fail_count_ = 0;
  int fail_error_ = 0;
  uint64_t lose_answer_ = 0;
  bool hindered_ = false;
  std::optional<Operation> failed_;

  std::string morgue_;  // empty: no power cut
  uint64_t buried_ = 0;
  struct Written {
    std::string link;    // in the morgue, so that it can be reached whatever its names are
    std::string synced;  // content at the last sync
  };
  std::map<Inode, Written> written_;
  std::vector<Change> changes_;
};

/// Calls `attempt(n)` for n = `first`, `first` + 1, ... until operation n is not reached; gives how many
/// were. `attempt` tells `files` what happens to operation n.
template <typename Attempt>
uint64_t at_each_operation(FaultyFileSystem& files, Attempt attempt, uint64_t first = 1) {
  for (uint64_t n = first;; ++n) {
    files.start();
    attempt(n);
    if (files.count() < n) return n - first;
  }
}

}  // namespace kc::test
