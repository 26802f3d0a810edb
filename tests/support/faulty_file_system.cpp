#include "support/faulty_file_system.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "base/files.h"
#include "support/temp_folder.h"

namespace kc::test {
namespace {

namespace fs = std::filesystem;
using base::FileSystem;

// A test that cannot stage its fault must not pass.
void must(bool done, const char* what) {
  if (!done) throw std::system_error(errno, std::generic_category(), what);
}

size_t half(size_t size) {
  return std::max<size_t>(size / 2, std::min<size_t>(size, 1));
}

}  // namespace

const char* name_of(Operation operation) {
  static constexpr const char* kNames[kOperations] = {"open",      "close", "read",   "write",  "sync",
                                                      "stat",      "link",  "rename", "unlink", "make folder",
                                                      "set times", "list",  "lock"};
  return kNames[static_cast<size_t>(operation)];
}

bool can_be_interrupted(Operation operation) {
  return operation == Operation::kOpen || operation == Operation::kRead || operation == Operation::kWrite ||
         operation == Operation::kSync || operation == Operation::kLock;
}

void FaultyFileSystem::start() {
  const std::lock_guard lock(mutex_);
  count_ = fail_first_ = fail_count_ = lose_answer_ = 0;
  std::fill(std::begin(counts_), std::end(counts_), 0);
  hindered_ = false;
  failed_.reset();
  morgue_.clear();
  written_.clear();
  changes_.clear();
}

void FaultyFileSystem::fail_from(uint64_t number, int error, uint64_t count) {
  const std::lock_guard lock(mutex_);
  fail_first_ = number;
  fail_count_ = count;
  fail_error_ = error;
}

void FaultyFileSystem::lose_answer(uint64_t number) {
  const std::lock_guard lock(mutex_);
  lose_answer_ = number;
}

void FaultyFileSystem::hinder() {
  const std::lock_guard lock(mutex_);
  hindered_ = true;
}

void FaultyFileSystem::cut_power(uint64_t number, const std::string& morgue) {
  fail_from(number, EIO, UINT64_MAX - number);
  const std::lock_guard lock(mutex_);
  morgue_ = morgue;
}

uint64_t FaultyFileSystem::count() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

uint64_t FaultyFileSystem::count(Operation operation) const {
  const std::lock_guard lock(mutex_);
  return counts_[static_cast<size_t>(operation)];
}

std::optional<Operation> FaultyFileSystem::failed() const {
  const std::lock_guard lock(mutex_);
  return failed_;
}

FaultyFileSystem::Fate FaultyFileSystem::next(Operation operation) {
  const uint64_t nth = ++counts_[static_cast<size_t>(operation)];
  ++count_;
  if (fail_first_ != 0 && count_ >= fail_first_ && count_ - fail_first_ < fail_count_) {
    if (!failed_) failed_ = operation;
    errno = fail_error_;
    return Fate::kFail;
  }
  const bool is_repeatable = operation == Operation::kLink || operation == Operation::kRename ||
                             operation == Operation::kUnlink || operation == Operation::kMakeFolder;
  if (count_ == lose_answer_ && is_repeatable) {
    failed_ = operation;
    return Fate::kLoseAnswer;
  }
  if (!hindered_) return Fate::kDo;
  if (can_be_interrupted(operation) && nth % 2 == 1) {
    errno = EINTR;
    return Fate::kFail;
  }
  return Fate::kShort;
}

// `repeated` is what doing the same once more would say.
int FaultyFileSystem::lost_or(Fate fate, int result, int repeated) const {
  if (fate != Fate::kLoseAnswer || result != 0) return result;
  errno = repeated;
  return -1;
}

std::string FaultyFileSystem::grave() {
  return morgue_ + "/" + std::to_string(++buried_);
}

void FaultyFileSystem::will_write(int fd) {
  if (morgue_.empty()) return;
  struct stat status;
  must(::fstat(fd, &status) == 0, "stat of a file that is written");
  const Inode inode(status.st_dev, status.st_ino);
  if (written_.contains(inode)) return;
  const std::string own = "/proc/self/fd/" + std::to_string(fd);
  Written written{grave(), content_of(own)};
  // A file without a name leaves nothing behind that could be looked at.
  if (::linkat(AT_FDCWD, own.c_str(), AT_FDCWD, written.link.c_str(), AT_SYMLINK_FOLLOW) == 0) {
    written_.emplace(inode, std::move(written));
  }
}

void FaultyFileSystem::has_synced(int fd) {
  if (morgue_.empty()) return;
  struct stat status;
  must(::fstat(fd, &status) == 0, "stat of what is synced");
  const Inode inode(status.st_dev, status.st_ino);
  if (const auto found = written_.find(inode); found != written_.end()) {
    found->second.synced = content_of(found->second.link);
  }
  std::erase_if(changes_, [&](const Change& change) { return change.folder == inode; });
}

// Before it does: remembers what the name leads to.
void FaultyFileSystem::will_change(int directory, const char* path) {
  if (morgue_.empty()) return;
  const std::string above = base::parent_path(path);
  // Not a FileDescriptor: that closes through this very object.
  const int folder = ::openat(directory, above.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;  // then nothing changes either
  struct stat status;
  must(::fstat(folder, &status) == 0, "stat of a folder");
  Change change;
  change.folder = {status.st_dev, status.st_ino};
  change.path = fs::read_symlink("/proc/self/fd/" + std::to_string(folder)) / base::file_name(path);
  ::close(folder);
  if (::lstat(change.path.c_str(), &status) == 0) {
    change.was = S_ISDIR(status.st_mode) ? Was::kFolder : Was::kFile;
  }
  if (change.was == Was::kFile) {
    change.before = grave();
    fs::create_hard_link(change.path, change.before);
  }
  changes_.push_back(std::move(change));
}

void FaultyFileSystem::undo(const Change& change) {
  const fs::file_status now = fs::symlink_status(change.path);
  if (change.was == Was::kFolder && fs::is_directory(now)) return;
  fs::remove_all(change.path);
  if (change.was == Was::kFolder) {
    fs::create_directory(change.path);
    fs::permissions(change.path, fs::perms::owner_all);
  }
  if (change.was == Was::kFile) fs::create_hard_link(change.before, change.path);
}

void FaultyFileSystem::lose(Lost what) {
  const std::lock_guard lock(mutex_);
  must(!morgue_.empty(), "no power cut was asked for");
  if (what != Lost::kNames) {
    for (const auto& [inode, file] : written_) {
      const auto size = fs::file_size(file.link);
      fs::permissions(file.link, fs::perms::owner_write, fs::perm_options::add);
      std::string content = file.synced;
      if (what == Lost::kContentAsZeros) content.resize(std::max<size_t>(size, content.size()), '\0');
      std::ofstream(file.link, std::ios::binary | std::ios::trunc) << content;
      fs::permissions(file.link, fs::perms::owner_write, fs::perm_options::remove);
    }
  }
  if (what == Lost::kNames || what == Lost::kContentAndNames) {
    for (auto change = changes_.rbegin(); change != changes_.rend(); ++change) undo(*change);
  }
  written_.clear();
  changes_.clear();
}

int FaultyFileSystem::openat(int directory, const char* path, int flags, mode_t mode) {
  const std::lock_guard lock(mutex_);
  if (next(Operation::kOpen) == Fate::kFail) return -1;
  if ((flags & O_CREAT) != 0) will_change(directory, path);
  return FileSystem::openat(directory, path, flags, mode);
}

int FaultyFileSystem::close(int fd) {
  const std::lock_guard lock(mutex_);
  const Fate fate = next(Operation::kClose);
  const int error = errno;
  const int result = FileSystem::close(fd);
  if (fate != Fate::kFail) return result;
  errno = error;
  return -1;
}

ssize_t FaultyFileSystem::read(int fd, void* out, size_t size) {
  const std::lock_guard lock(mutex_);
  const Fate fate = next(Operation::kRead);
  if (fate == Fate::kFail) return -1;
  return FileSystem::read(fd, out, fate == Fate::kShort ? half(size) : size);
}

ssize_t FaultyFileSystem::pread(int fd, void* out, size_t size, off_t offset) {
  const std::lock_guard lock(mutex_);
  const Fate fate = next(Operation::kRead);
  if (fate == Fate::kFail) return -1;
  return FileSystem::pread(fd, out, fate == Fate::kShort ? half(size) : size, offset);
}

ssize_t FaultyFileSystem::write(int fd, const void* bytes, size_t size) {
  const std::lock_guard lock(mutex_);
  const Fate fate = next(Operation::kWrite);
  if (fate == Fate::kFail) return -1;
  will_write(fd);
  return FileSystem::write(fd, bytes, fate == Fate::kShort ? half(size) : size);
}

ssize_t FaultyFileSystem::pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  const std::lock_guard lock(mutex_);
  const Fate fate = next(Operation::kWrite);
  if (fate == Fate::kFail) return -1;
  will_write(fd);
  return FileSystem::pwrite(fd, bytes, fate == Fate::kShort ? half(size) : size, offset);
}

// Not the kernel's own, which would take its time: who looks at the files afterwards sees them all the same.
int FaultyFileSystem::fsync(int fd) {
  const std::lock_guard lock(mutex_);
  if (next(Operation::kSync) == Fate::kFail) return -1;
  has_synced(fd);
  return 0;
}

int FaultyFileSystem::fstat(int fd, struct stat* out) {
  const std::lock_guard lock(mutex_);
  return next(Operation::kStat) == Fate::kFail ? -1 : FileSystem::fstat(fd, out);
}

int FaultyFileSystem::fstatat(int directory, const char* path, struct stat* out, int flags) {
  const std::lock_guard lock(mutex_);
  return next(Operation::kStat) == Fate::kFail ? -1 : FileSystem::fstatat(directory, path, out, flags);
}

int FaultyFileSystem::linkat(int from_directory, const char* from, int to_directory, const char* to,
                             int flags) {
  const std::lock_guard lock(mutex_);
  const Fate fate = next(Operation::kLink);
  if (fate == Fate::kFail) return -1;
  will_change(to_directory, to);
  return lost_or(fate, FileSystem::linkat(from_directory, from, to_directory, to, flags), EEXIST);
}

int FaultyFileSystem::renameat(int from_directory, const char* from, int to_directory, const char* to) {
  const std::lock_guard lock(mutex_);
  const Fate fate = next(Operation::kRename);
  if (fate == Fate::kFail) return -1;
  will_change(to_directory, to);
  will_change(from_directory, from);
  return lost_or(fate, FileSystem::renameat(from_directory, from, to_directory, to), ENOENT);
}

int FaultyFileSystem::unlinkat(int directory, const char* path, int flags) {
  const std::lock_guard lock(mutex_);
  const Fate fate = next(Operation::kUnlink);
  if (fate == Fate::kFail) return -1;
  will_change(directory, path);
  return lost_or(fate, FileSystem::unlinkat(directory, path, flags), ENOENT);
}

int FaultyFileSystem::mkdirat(int directory, const char* path, mode_t mode) {
  const std::lock_guard lock(mutex_);
  const Fate fate = next(Operation::kMakeFolder);
  if (fate == Fate::kFail) return -1;
  will_change(directory, path);
  return lost_or(fate, FileSystem::mkdirat(directory, path, mode), EEXIST);
}

int FaultyFileSystem::futimens(int fd, const timespec* times) {
  const std::lock_guard lock(mutex_);
  return next(Operation::kSetTimes) == Fate::kFail ? -1 : FileSystem::futimens(fd, times);
}

int FaultyFileSystem::utimensat(int directory, const char* path, const timespec* times, int flags) {
  const std::lock_guard lock(mutex_);
  return next(Operation::kSetTimes) == Fate::kFail ? -1
                                                   : FileSystem::utimensat(directory, path, times, flags);
}

DIR* FaultyFileSystem::fdopendir(int fd) {
  const std::lock_guard lock(mutex_);
  return next(Operation::kList) == Fate::kFail ? nullptr : FileSystem::fdopendir(fd);
}

dirent* FaultyFileSystem::readdir(DIR* stream) {
  const std::lock_guard lock(mutex_);
  return next(Operation::kList) == Fate::kFail ? nullptr : FileSystem::readdir(stream);
}

int FaultyFileSystem::set_lock(int fd, struct flock* range) {
  const std::lock_guard lock(mutex_);
  return next(Operation::kLock) == Fate::kFail ? -1 : FileSystem::set_lock(fd, range);
}

}  // namespace kc::test
