#include "base/files.h"

#include "base/file_system.h"

#include <dirent.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>

namespace kc::base {
namespace {

int64_t to_ns(const timespec& t) {
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

// Repeats a system call while a signal interrupts it.
template <typename Call>
auto restarting(Call call) {
  for (;;) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

Result<void> remove_entry(int directory, const std::string& name, const std::string& shown) {
  if (file_system().unlinkat(directory, name.c_str(), 0) == 0 || errno == ENOENT) return {};
  if (errno != EISDIR && errno != EPERM) return fail_errno(ErrorKind::kEnvironment, "remove", shown, errno);
  const int fd = restarting([&] {
    return file_system().openat(directory, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
  });
  if (fd < 0) {
    if (errno == ENOENT) return {};
    return fail_errno(ErrorKind::kEnvironment, "open", shown, errno);
  }
  const FileDescriptor inner(fd);
  KC_ASSIGN(const std::vector<std::string> names, list_directory(inner.get(), "."));
  for (const std::string& child : names) KC_TRY(remove_entry(inner.get(), child, join_path(shown, child)));
  if (file_system().unlinkat(directory, name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) {
    return fail_errno(ErrorKind::kEnvironment, "remove", shown, errno);
  }
  return {};
}

}  // namespace

void FileDescriptor::reset() {
  if (fd_ >= 0) file_system().close(fd_);
  fd_ = -1;
}

FileTuple tuple_of(const struct stat& status) {
  return {status.st_dev, status.st_ino, static_cast<uint64_t>(status.st_size), to_ns(status.st_mtim),
          to_ns(status.st_ctim)};
}

Result<FileTuple> stat_tuple(const std::string& path) {
  struct stat status;
  if (file_system().fstatat(AT_FDCWD, path.c_str(), &status, 0) != 0)
    return fail_errno(ErrorKind::kInput, "stat", path, errno);
  return tuple_of(status);
}

void write_tuple(ByteWriter& out, const FileTuple& tuple) {
  out.u64(tuple.device);
  out.u64(tuple.inode);
  out.u64(tuple.size);
  out.i64(tuple.mtime_ns);
  out.i64(tuple.ctime_ns);
}

FileTuple read_tuple(ByteReader& in) {
  FileTuple tuple;
  tuple.device = in.u64();
  tuple.inode = in.u64();
  tuple.size = in.u64();
  tuple.mtime_ns = in.i64();
  tuple.ctime_ns = in.i64();
  return tuple;
}

int64_t wall_clock_ns() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return to_ns(now);
}

Result<FileDescriptor> open_at(int directory, const std::string& path, int flags, mode_t mode,
                               ErrorKind kind) {
  const int fd =
      restarting([&] { return file_system().openat(directory, path.c_str(), flags | O_CLOEXEC, mode); });
  if (fd < 0) return fail_errno(kind, (flags & O_CREAT) != 0 ? "create" : "open", path, errno);
  return FileDescriptor(fd);
}

Result<Bytes> read_descriptor(int fd, std::string_view name, uint64_t limit, FileTuple* tuple,
                              ErrorKind kind) {
  struct stat status;
  if (file_system().fstat(fd, &status) != 0) return fail_errno(kind, "stat", name, errno);
  if (S_ISDIR(status.st_mode)) return fail_at(kind, {std::string(name)}, "is a directory, not a file");
  if (!S_ISREG(status.st_mode)) return fail_at(kind, {std::string(name)}, "is not a regular file");
  const auto size = static_cast<uint64_t>(status.st_size);
  if (size > limit) {
    return fail_at(kind, {std::string(name)},
                   "has " + std::to_string(size) + " bytes; at most " + std::to_string(limit) + " are read");
  }
  Bytes out(size);
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t got =
        restarting([&] { return file_system().read(fd, out.data() + done, out.size() - done); });
    if (got < 0) return fail_errno(kind, "read", name, errno);
    if (got == 0) break;  // it shrank while being read; what was read is what is used
    done += static_cast<size_t>(got);
  }
  out.resize(done);
  if (tuple != nullptr) *tuple = tuple_of(status);
  return out;
}

Result<Bytes> read_file(const std::string& path, uint64_t limit, FileTuple* tuple, ErrorKind kind) {
  // O_NONBLOCK: opening a FIFO must not hang; it has no effect on regular files.
  KC_ASSIGN(const FileDescriptor fd, open_at(AT_FDCWD, path, O_RDONLY | O_NONBLOCK, 0, kind));
  return read_descriptor(fd.get(), path, limit, tuple, kind);
}

Result<Bytes> pread_exact(int fd, uint64_t offset, size_t size, std::string_view name) {
  Bytes out(size);
  KC_TRY(pread_into(fd, offset, out, name));
  return out;
}

Result<void> pread_into(int fd, uint64_t offset, std::span<uint8_t> out, std::string_view name) {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t got = restarting([&] {
      return file_system().pread(fd, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    });
    if (got < 0) return fail_errno(ErrorKind::kEnvironment, "read", name, errno);
    if (got == 0) {
      return fail_at(ErrorKind::kFailed, {std::string(name)},
                     "ends early: " + std::to_string(out.size()) + " bytes expected at offset " +
                         std::to_string(offset));
    }
    done += static_cast<size_t>(got);
  }
  return {};
}

Result<void> write_all(int fd, ByteView bytes, std::string_view name) {
  while (!bytes.empty()) {
    const ssize_t put = restarting([&] { return file_system().write(fd, bytes.data(), bytes.size()); });
    if (put < 0) return fail_errno(ErrorKind::kEnvironment, "write", name, errno);
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
  return {};
}

Result<void> pwrite_all(int fd, ByteView bytes, uint64_t offset, std::string_view name) {
  while (!bytes.empty()) {
    const ssize_t put = restarting(
        [&] { return file_system().pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset)); });
    if (put < 0) return fail_errno(ErrorKind::kEnvironment, "write", name, errno);
    offset += static_cast<uint64_t>(put);
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
  return {};
}

Result<void> make_directories(const std::string& path, mode_t mode) {
  if (path.empty() || path == "/") return {};
  if (file_system().mkdirat(AT_FDCWD, path.c_str(), mode) == 0) return {};
  const int first_error = errno;
  struct stat status;
  if (file_system().fstatat(AT_FDCWD, path.c_str(), &status, 0) == 0) {
    if (S_ISDIR(status.st_mode)) return {};
    return fail_errno(ErrorKind::kEnvironment, "make directory", path, ENOTDIR);
  }
  if (first_error != ENOENT) return fail_errno(ErrorKind::kEnvironment, "make directory", path, first_error);
  KC_TRY(make_directories(parent_path(path)));
  if (file_system().mkdirat(AT_FDCWD, path.c_str(), mode) != 0 && errno != EEXIST) {
    return fail_errno(ErrorKind::kEnvironment, "make directory", path, errno);
  }
  return {};
}

Result<void> remove_tree(const std::string& path) {
  return remove_entry(AT_FDCWD, path, path);
}

Result<std::vector<std::string>> list_directory(int directory, const std::string& path) {
  KC_ASSIGN(FileDescriptor fd, open_at(directory, path, O_RDONLY | O_DIRECTORY));
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(file_system().fdopendir(fd.get()), closedir);
  if (stream == nullptr) return fail_errno(ErrorKind::kEnvironment, "list", path, errno);
  fd.release();  // the stream owns it now
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* entry = file_system().readdir(stream.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) return fail_errno(ErrorKind::kEnvironment, "list", path, errno);
  std::sort(names.begin(), names.end());
  return names;
}

std::string join_path(std::string_view directory, std::string_view name) {
  if (directory.empty() || name.starts_with('/')) return std::string(name);
  std::string out(directory);
  if (!out.ends_with('/')) out += '/';
  return out += name;
}

std::string parent_path(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return slash == 0 ? "/" : std::string(path.substr(0, slash));
}

std::string file_name(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

Result<std::string> absolute_path(std::string_view path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(std::filesystem::path(path), error);
  if (error) {
    return fail(ErrorKind::kEnvironment, "the working directory is unknown: " + error.message());
  }
  std::string out = absolute.lexically_normal().string();
  if (out.size() > 1 && out.ends_with('/')) out.pop_back();
  return out;
}

}  // namespace kc::base
