#include "util/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace kc::util {
namespace {

using base::ErrorKind;

// The child's ends are moved above all numbers that the file actions write to, so that no action overwrites a
// descriptor that a later one still needs (a caller may have started with its own 0 to 2 closed).
constexpr int kFirstFree = 4;

class FileActions {
 public:
  FileActions() { error_ = posix_spawn_file_actions_init(&actions_); }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;

  void open_null(int fd) { note(posix_spawn_file_actions_addopen(&actions_, fd, "/dev/null", O_RDONLY, 0)); }
  void dup(int from, int to) { note(posix_spawn_file_actions_adddup2(&actions_, from, to)); }
  void close_from(int fd) { note(posix_spawn_file_actions_addclosefrom_np(&actions_, fd)); }
  void change_directory(const char* path) { note(posix_spawn_file_actions_addchdir_np(&actions_, path)); }
  int error() const { return error_; }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  void note(int error) {
    if (error_ == 0) error_ = error;
  }
  posix_spawn_file_actions_t actions_{};
  int error_ = 0;
};

class Attributes {
 public:
  Attributes() {
    error_ = posix_spawnattr_init(&attributes_);
    if (error_ != 0) return;
    sigset_t all;
    sigfillset(&all);
    sigdelset(&all, SIGKILL);
    sigdelset(&all, SIGSTOP);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    error_ = posix_spawnattr_setflags(&attributes_,
                                      POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  }
  ~Attributes() { posix_spawnattr_destroy(&attributes_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;

  int error() const { return error_; }
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_{};
  int error_ = 0;
};

base::Result<base::FileDescriptor> moved_up(int fd, std::string_view program) {
  base::FileDescriptor copy(fcntl(fd, F_DUPFD_CLOEXEC, kFirstFree));
  if (!copy) return base::fail_errno(ErrorKind::kEnvironment, "start", program, errno);
  return copy;
}

// posix_spawn gives one errno for exec and for every file action; this finds the cause where it can be seen.
std::unexpected<base::Error> spawn_failure(const ProcessSpec& spec, const std::string& path, int error) {
  auto failure = base::fail_errno(ErrorKind::kEnvironment, "start", spec.program, error);
  struct stat status {};
  if (!spec.directory.empty() && (::stat(spec.directory.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
                                  ::access(spec.directory.c_str(), X_OK) != 0)) {
    failure.error().message += ", in the directory " + spec.directory;
    return failure;
  }
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) {
    failure.error().message = "cannot start " + spec.program + ": it is a directory";
  } else if (error == ENOENT && exists) {
    failure.error().message += "; the file is there, but not the interpreter or loader that it names";
  } else if (error == EACCES && exists && (status.st_mode & 0111) == 0) {
    failure.error().hint = "the file is not executable";
  } else if (error == ENOEXEC) {
    failure.error().message = "cannot start " + spec.program + ": it is not a program for this machine";
    failure.error().hint = "an ELF executable, or a script whose first line begins with #!, is needed";
  } else if (error == EAGAIN) {
    failure.error().hint = "the limit of processes (ulimit -u, or the pids cgroup) is reached";
  }
  return failure;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

}  // namespace

base::Result<pid_t> spawn(const ProcessSpec& spec, const ChildDescriptors& descriptors) {
  // The program is looked up after the change of directory, and its path was meant from here.
  std::string path = spec.program;
  if (!path.starts_with('/') && !spec.directory.empty()) {
    std::error_code error;
    const std::filesystem::path here = std::filesystem::current_path(error);
    if (error)
      return base::fail(ErrorKind::kEnvironment, "the working directory is unknown: " + error.message());
    path = base::join_path(here.string(), path);
  }
  KC_ASSIGN(const base::FileDescriptor out, moved_up(descriptors.out, spec.program));
  KC_ASSIGN(const base::FileDescriptor err, moved_up(descriptors.err, spec.program));
  base::FileDescriptor socket;
  FileActions actions;
  actions.open_null(0);
  actions.dup(out.get(), 1);
  actions.dup(err.get(), 2);
  if (descriptors.socket >= 0) {
    KC_ASSIGN(socket, moved_up(descriptors.socket, spec.program));
    actions.dup(socket.get(), 3);
  }
  actions.close_from(descriptors.socket >= 0 ? 4 : 3);
  if (!spec.directory.empty()) actions.change_directory(spec.directory.c_str());

  std::vector<std::string> arguments = {spec.program};
  arguments.insert(arguments.end(), spec.arguments.begin(), spec.arguments.end());
  const std::vector<char*> argv = pointers(arguments);
  const std::vector<char*> envp = pointers(spec.environment);
  const Attributes attributes;
  pid_t pid = -1;
  int error = actions.error() != 0 ? actions.error() : attributes.error();
  if (error == 0)
    error = posix_spawn(&pid, path.c_str(), actions.get(), attributes.get(), argv.data(), envp.data());
  if (error != 0) return spawn_failure(spec, path, error);
  return pid;
}

base::FileDescriptor open_pidfd(pid_t pid) {
  // Through syscall(): the wrapper came with glibc 2.36. The kernel sets O_CLOEXEC itself.
  return base::FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

void kill_group(pid_t group) {
  if (group > 1) ::kill(-group, SIGKILL);
}

}  // namespace kc::util
