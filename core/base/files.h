// Files by descriptor: opening, bounded reading, complete writing, identity by stat. All calls restart on
// EINTR, finish short reads and writes, and open with O_CLOEXEC.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

namespace kc::base {

/// Owns one file descriptor; move-only; -1 means none.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() { reset(); }
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = other.release();
    }
    return *this;
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }
  void reset();

 private:
  int fd_ = -1;
};

/// What tells one version of a file from another without reading it (DESIGN: compiler identity, state).
struct FileTuple {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t size = 0;
  int64_t mtime_ns = 0;  // since the epoch
  int64_t ctime_ns = 0;

  bool operator==(const FileTuple&) const = default;
};
FileTuple tuple_of(const struct stat& status);
/// Of the file that `path` leads to (symbolic links followed).
Result<FileTuple> stat_tuple(const std::string& path);
void write_tuple(ByteWriter& out, const FileTuple& tuple);
FileTuple read_tuple(ByteReader& in);

/// A file whose times are younger than this when its tuple is taken could change again without the tuple
/// showing it (coarse clocks; a write within the same tick), so such a tuple is not trusted later.
inline constexpr int64_t kSettledNs = 2'000'000'000;
/// Nanoseconds since the epoch on the clock that file times come from.
int64_t wall_clock_ns();
inline bool is_settled(const FileTuple& tuple, int64_t now_ns) {
  return tuple.mtime_ns <= now_ns - kSettledNs && tuple.ctime_ns <= now_ns - kSettledNs;
}

/// openat(2) with O_CLOEXEC added. `kind` is what a failure means to the caller.
Result<FileDescriptor> open_at(int directory, const std::string& path, int flags, mode_t mode = 0,
                               ErrorKind kind = ErrorKind::kInput);

/// The whole of a regular file of at most `limit` bytes. A directory, device or larger file is an error that
/// says so, before memory is taken. `tuple`, when given, is that of the descriptor that was read.
Result<Bytes> read_file(const std::string& path, uint64_t limit, FileTuple* tuple = nullptr,
                        ErrorKind kind = ErrorKind::kInput);
Result<Bytes> read_descriptor(int fd, std::string_view name, uint64_t limit, FileTuple* tuple = nullptr,
                              ErrorKind kind = ErrorKind::kInput);

/// Exactly `size` bytes at `offset`; fewer in the file is ErrorKind::kFailed ("ends early").
Result<Bytes> pread_exact(int fd, uint64_t offset, size_t size, std::string_view name);
/// The same, into memory of the caller, all of it.
Result<void> pread_into(int fd, uint64_t offset, std::span<uint8_t> out, std::string_view name);
Result<void> write_all(int fd, ByteView bytes, std::string_view name);
Result<void> pwrite_all(int fd, ByteView bytes, uint64_t offset, std::string_view name);

/// Makes `path` and what is missing above it (mode 0777 less umask unless given for the last one).
Result<void> make_directories(const std::string& path, mode_t mode = 0777);
/// Removes a tree without following symbolic links. What is missing is no error.
Result<void> remove_tree(const std::string& path);
/// Names in a directory, without `.` and `..`, sorted bytewise.
Result<std::vector<std::string>> list_directory(int directory, const std::string& path);

/// Lexical only, no file is touched: `a/./b//c` -> `a/b/c`; `..` is kept where it stands.
std::string join_path(std::string_view directory, std::string_view name);
std::string parent_path(std::string_view path);
std::string file_name(std::string_view path);
/// Absolute and lexically normal (`.` and `..` resolved without touching the disk), from the working
/// directory.
Result<std::string> absolute_path(std::string_view path);

}  // namespace kc::base
