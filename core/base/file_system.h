// The file operations of the store, the state and the bundle writer, one method a system call, so that a test
// can stand between kc and the kernel: fail the n-th operation, write short, forget what was not synced.
//
// Every method does and returns what the system call of its name does, errno included. Nothing restarts on
// EINTR and nothing finishes a short write here: base/files.h does both for its callers.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>

namespace kc::base {

/// The kernel itself. Thread-safe; a derived class must be, too.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  virtual int openat(int directory, const char* path, int flags, mode_t mode);
  virtual int close(int fd);
  virtual ssize_t read(int fd, void* out, size_t size);
  virtual ssize_t pread(int fd, void* out, size_t size, off_t offset);
  virtual ssize_t write(int fd, const void* bytes, size_t size);
  virtual ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset);
  virtual int fsync(int fd);
  virtual int fstat(int fd, struct stat* out);
  virtual int fstatat(int directory, const char* path, struct stat* out, int flags);
  virtual int linkat(int from_directory, const char* from, int to_directory, const char* to, int flags);
  virtual int renameat(int from_directory, const char* from, int to_directory, const char* to);
  virtual int unlinkat(int directory, const char* path, int flags);
  virtual int mkdirat(int directory, const char* path, mode_t mode);
  virtual int futimens(int fd, const timespec* times);
  virtual int utimensat(int directory, const char* path, const timespec* times, int flags);
  virtual DIR* fdopendir(int fd);
  virtual dirent* readdir(DIR* stream);
  /// fcntl(fd, F_OFD_SETLK, range)
  virtual int set_lock(int fd, struct flock* range);
};

/// The one in use; the kernel unless a test has put another in its place.
FileSystem& file_system();

/// For tests: puts `replacement` in the kernel's place while it lives. Precondition: no other thread uses
/// files when it is made and when it ends.
class ReplacedFileSystem {
 public:
  explicit ReplacedFileSystem(FileSystem& replacement);
  ~ReplacedFileSystem();
  ReplacedFileSystem(const ReplacedFileSystem&) = delete;
  ReplacedFileSystem& operator=(const ReplacedFileSystem&) = delete;

 private:
  FileSystem* before_;
};

}  // namespace kc::base
