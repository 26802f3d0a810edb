#include "base/file_system.h"

#include <stdio.h>  // renameat
#include <unistd.h>

#include <atomic>

namespace kc::base {
namespace {

FileSystem& kernel() {
  static FileSystem instance;
  return instance;
}

std::atomic<FileSystem*> replacement{nullptr};

}  // namespace

int FileSystem::openat(int directory, const char* path, int flags, mode_t mode) {
  return ::openat(directory, path, flags, mode);
}
int FileSystem::close(int fd) {
  return ::close(fd);
}
ssize_t FileSystem::read(int fd, void* out, size_t size) {
  return ::read(fd, out, size);
}
ssize_t FileSystem::pread(int fd, void* out, size_t size, off_t offset) {
  return ::pread(fd, out, size, offset);
}
ssize_t FileSystem::write(int fd, const void* bytes, size_t size) {
  return ::write(fd, bytes, size);
}
ssize_t FileSystem::pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  return ::pwrite(fd, bytes, size, offset);
}
int FileSystem::fsync(int fd) {
  return ::fsync(fd);
}
int FileSystem::fstat(int fd, struct stat* out) {
  return ::fstat(fd, out);
}
int FileSystem::fstatat(int directory, const char* path, struct stat* out, int flags) {
  return ::fstatat(directory, path, out, flags);
}
int FileSystem::linkat(int from_directory, const char* from, int to_directory, const char* to, int flags) {
  return ::linkat(from_directory, from, to_directory, to, flags);
}
int FileSystem::renameat(int from_directory, const char* from, int to_directory, const char* to) {
  return ::renameat(from_directory, from, to_directory, to);
}
int FileSystem::unlinkat(int directory, const char* path, int flags) {
  return ::unlinkat(directory, path, flags);
}
int FileSystem::mkdirat(int directory, const char* path, mode_t mode) {
  return ::mkdirat(directory, path, mode);
}
int FileSystem::futimens(int fd, const timespec* times) {
  return ::futimens(fd, times);
}
int FileSystem::utimensat(int directory, const char* path, const timespec* times, int flags) {
  return ::utimensat(directory, path, times, flags);
}
DIR* FileSystem::fdopendir(int fd) {
  return ::fdopendir(fd);
}
dirent* FileSystem::readdir(DIR* stream) {
  return ::readdir(stream);
}
int FileSystem::set_lock(int fd, struct flock* range) {
  return ::fcntl(fd, F_OFD_SETLK, range);
}

FileSystem& file_system() {
  FileSystem* other = replacement.load(std::memory_order_acquire);
  return other != nullptr ? *other : kernel();
}

ReplacedFileSystem::ReplacedFileSystem(FileSystem& other)
    : before_(replacement.exchange(&other, std::memory_order_acq_rel)) {}

ReplacedFileSystem::~ReplacedFileSystem() {
  replacement.store(before_, std::memory_order_release);
}

}  // namespace kc::base
