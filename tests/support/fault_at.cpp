// Runs a command and does something to one of its processes at its N-th system call: kills it, as by kill -9,
// sends it another signal, or has the call fail.
//
//   fault_at PROGRAM FOLDER N signal=S REPORT COMMAND...
//   fault_at PROGRAM FOLDER N error=E@NAME REPORT COMMAND...
//
// PROGRAM is the file name of the process that is meant: the first one of the command, or below it, that
// executes a file of this name. Its calls count from the first one on that names a path below FOLDER, those
// of all its threads together; what only asks the kernel for memory, time or a lock inside the process does
// not count. At call N, before the kernel does it, the process gets signal S; or the first call of that NAME
// from call N on is not done and gives error E. REPORT gets the calls that counted, a line each with name and
// file, and a `!` before the one that met its fault; with N = 0 nothing happens, which tells what there is to
// choose from.
//
// Ends when all processes have, with the command's exit code, or 128 + the signal that ended it; 98 when
// something goes on for 20 seconds after a signal (it is killed then, and named on stderr); 77 when processes
// cannot be traced here.
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kNotRun = 77;
constexpr int kGoesOn = 98;
constexpr auto kPatience = std::chrono::seconds(20);

struct Call {
  uint64_t number;
  const char* name;
  int path;  // index of the argument that is one; -1: none
};
#define KC_CALL(name, path) \
  { SYS_##name, #name, path }
const Call kCalls[] = {
#ifdef SYS_open  // x86-64 has the older ones beside those that all have
    KC_CALL(open, 0),       KC_CALL(stat, 0),        KC_CALL(lstat, 0),       KC_CALL(access, 0),
    KC_CALL(mkdir, 0),      KC_CALL(rmdir, 0),       KC_CALL(rename, 0),      KC_CALL(link, 0),
    KC_CALL(unlink, 0),     KC_CALL(readlink, 0),    KC_CALL(poll, -1),       KC_CALL(vfork, -1),
    KC_CALL(fork, -1),      KC_CALL(pipe, -1),       KC_CALL(epoll_wait, -1),
#endif
    KC_CALL(openat, 1),     KC_CALL(newfstatat, 1),  KC_CALL(statx, 1),       KC_CALL(faccessat, 1),
    KC_CALL(mkdirat, 1),    KC_CALL(unlinkat, 1),    KC_CALL(renameat, 1),    KC_CALL(renameat2, 1),
    KC_CALL(linkat, 1),     KC_CALL(readlinkat, 1),  KC_CALL(utimensat, 1),   KC_CALL(execve, 0),
    KC_CALL(close, -1),     KC_CALL(read, -1),       KC_CALL(pread64, -1),    KC_CALL(write, -1),
    KC_CALL(pwrite64, -1),  KC_CALL(fsync, -1),      KC_CALL(fstat, -1),      KC_CALL(fcntl, -1),
    KC_CALL(ftruncate, -1), KC_CALL(getdents64, -1), KC_CALL(getrandom, -1),  KC_CALL(memfd_create, -1),
    KC_CALL(sendto, -1),    KC_CALL(sendmsg, -1),    KC_CALL(recvfrom, -1),   KC_CALL(recvmsg, -1),
    KC_CALL(ppoll, -1),     KC_CALL(clone, -1),      KC_CALL(clone3, -1),     KC_CALL(wait4, -1),
    KC_CALL(waitid, -1),    KC_CALL(kill, -1),       KC_CALL(pipe2, -1),      KC_CALL(socketpair, -1),
    KC_CALL(dup3, -1),      KC_CALL(exit_group, -1),
};
#undef KC_CALL

const Call* find_call(uint64_t number) {
  const Call* found = std::find_if(std::begin(kCalls), std::end(kCalls),
                                   [&](const Call& call) { return call.number == number; });
  return found == std::end(kCalls) ? nullptr : found;
}

std::string text_at(pid_t pid, uint64_t address) {
  char text[4096];
  size_t size = 0;
  // To the end of the page at most: the next one may not be there.
  const size_t most = std::min<size_t>(sizeof text, 4096 - address % 4096);
  iovec local{text, most};
  iovec remote{reinterpret_cast<void*>(address), most};  // NOLINT: an address of another process
  const ssize_t got = process_vm_readv(pid, &local, 1, &remote, 1, 0);
  if (got > 0) size = strnlen(text, static_cast<size_t>(got));
  return {text, size};
}

pid_t process_of(pid_t thread) {
  std::ifstream status("/proc/" + std::to_string(thread) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Tgid:")) return std::atoi(line.c_str() + 5);
  }
  return thread;
}

std::string link_of(pid_t pid, const std::string& name) {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/" + name, error);
}

// The file that a call is about, as far as it says; for one of two names the first.
std::string target_of(pid_t thread, const Call& call, const __ptrace_syscall_info& info) {
  const auto descriptor = [&](size_t index) {
    return link_of(thread, "fd/" + std::to_string(static_cast<int>(info.entry.args[index])));
  };
  if (call.path < 0) return descriptor(0);
  std::string path = text_at(thread, info.entry.args[call.path]);
  if (path.starts_with('/') || call.path == 0) return path;
  if (static_cast<int>(info.entry.args[0]) == AT_FDCWD) return path;
  return descriptor(0) + "/" + path;
}

std::string program_of(pid_t pid) {
  return std::filesystem::path(link_of(pid, "exe")).filename();
}

// At a call's entry: the kernel finds no such call. At its exit: what it gives.
#if defined(__x86_64__)
void skip_call(pid_t thread) {
  user_regs_struct registers{};
  ptrace(PTRACE_GETREGS, thread, nullptr, &registers);
  registers.orig_rax = ~0ULL;
  ptrace(PTRACE_SETREGS, thread, nullptr, &registers);
}
void set_result(pid_t thread, int error) {
  user_regs_struct registers{};
  ptrace(PTRACE_GETREGS, thread, nullptr, &registers);
  registers.rax = static_cast<uint64_t>(-int64_t{error});
  ptrace(PTRACE_SETREGS, thread, nullptr, &registers);
}
#elif defined(__aarch64__)
void skip_call(pid_t thread) {
  int number = -1;
  iovec part{&number, sizeof number};
  ptrace(PTRACE_SETREGSET, thread, NT_ARM_SYSTEM_CALL, &part);
}
void set_result(pid_t thread, int error) {
  user_regs_struct registers{};
  iovec part{&registers, sizeof registers};
  ptrace(PTRACE_GETREGSET, thread, NT_PRSTATUS, &part);
  registers.regs[0] = static_cast<uint64_t>(-int64_t{error});
  ptrace(PTRACE_SETREGSET, thread, NT_PRSTATUS, &part);
}
#endif

struct Fault {
  uint64_t number = 0;
  int signal = 0;
  int error = 0;
  std::string name;  // of the call that ends with the error
};

class Tracer {
 public:
  Tracer(std::string program, std::string folder, Fault fault, std::ofstream report)
      : program_(std::move(program)),
        folder_(std::move(folder)),
        fault_(std::move(fault)),
        report_(std::move(report)) {}

  // Of the command that was started and has stopped before its exec.
  int run(pid_t command) {
    command_ = command;
    processes_[command] = command;
    resume(command, 0);
    // Until the kernel knows of none: one that was just made may not have been seen yet.
    for (;;) {
      int status = 0;
      const pid_t thread = waitpid(-1, &status, __WALL | (signalled_ ? WNOHANG : 0));
      if (thread < 0 && errno == ECHILD) break;
      if (thread < 0 && errno == EINTR) continue;
      if (thread == 0) {
        if (Clock::now() - *signalled_ > kPatience) return end_rest();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        continue;
      }
      see(thread, status);
    }
    return exit_code_;
  }

 private:
  void see(pid_t thread, int status) {
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      processes_.erase(thread);
      if (thread == command_) {
        exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      }
      return;
    }
    if (!WIFSTOPPED(status)) return;
    // A new one stops before anything is known of it.
    const bool is_new = processes_.try_emplace(thread, 0).second || processes_[thread] == 0;
    if (is_new) processes_[thread] = process_of(thread);
    const int signal = WSTOPSIG(status);
    const int event = status >> 16;
    if (signal == (SIGTRAP | 0x80)) {
      at_call(thread);
      return resume(thread, 0);
    }
    if (event == PTRACE_EVENT_EXEC && watched_ == 0 && program_of(thread) == program_) watched_ = thread;
    const bool is_own = event != 0 || signal == SIGTRAP || (is_new && signal == SIGSTOP);
    resume(thread, is_own ? 0 : signal);
  }

  void at_call(pid_t thread) {
    if (signalled_) return;
    __ptrace_syscall_info info{};
    if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info) <= 0) return;
    if (info.op == PTRACE_SYSCALL_INFO_EXIT && thread == failing_) {
      set_result(thread, fault_.error);
      failing_ = 0;
    }
    if (info.op != PTRACE_SYSCALL_INFO_ENTRY) return;
    const Call* call = find_call(info.entry.nr);
    if (call == nullptr) return;
    if (!is_counting_) {
      is_counting_ = call->path >= 0 && text_at(thread, info.entry.args[call->path]).starts_with(folder_);
      if (!is_counting_) return;
    }
    ++count_;
    const bool is_due = fault_.error != 0 ? count_ >= fault_.number && call->name == fault_.name && !is_done_
                                          : count_ == fault_.number;
    is_done_ = is_done_ || is_due;
    report_ << (is_due ? "!" : "") << call->name << ' ' << target_of(thread, *call, info) << "\n";
    if (!is_due) return;
    if (fault_.error != 0) {
      skip_call(thread);
      failing_ = thread;
      return;
    }
    signalled_ = Clock::now();
    kill(watched_, fault_.signal);
  }

  // All that is not watched runs at its own speed.
  void resume(pid_t thread, int signal) {
    const bool is_watched = watched_ != 0 && !signalled_ && processes_[thread] == watched_;
    ptrace(is_watched ? PTRACE_SYSCALL : PTRACE_CONT, thread, 0, signal);
  }

  int end_rest() {
    for (const auto& [thread, process] : processes_) {
      std::fprintf(stderr, "fault_at: %s (%d) goes on\n", program_of(process).c_str(), process);
      kill(process, SIGKILL);
    }
    return kGoesOn;
  }

  const std::string program_, folder_;
  const Fault fault_;
  std::ofstream report_;
  pid_t command_ = 0;
  pid_t watched_ = 0;
  bool is_counting_ = false;
  uint64_t count_ = 0;
  bool is_done_ = false;
  pid_t failing_ = 0;  // thread whose call was not done
  std::optional<Clock::time_point> signalled_;
  std::map<pid_t, pid_t> processes_;  // of each thread
  int exit_code_ = 1;
};

}  // namespace

int main(int count, char** words) {
  if (count < 7) {
    std::fputs("usage: fault_at PROGRAM FOLDER N WHAT REPORT COMMAND...\n", stderr);
    return 2;
  }
  const pid_t command = fork();
  if (command == 0) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(kNotRun);
    raise(SIGSTOP);
    execv(words[6], words + 6);
    std::perror(words[6]);
    _exit(127);
  }
  int status = 0;
  if (command < 0 || waitpid(command, &status, 0) != command || !WIFSTOPPED(status)) return kNotRun;
  constexpr long kOptions = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                            PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
  if (ptrace(PTRACE_SETOPTIONS, command, 0, kOptions) != 0) {
    kill(command, SIGKILL);
    return kNotRun;
  }
  Fault fault;
  fault.number = std::strtoull(words[3], nullptr, 10);
  const std::string what = words[4];
  const size_t at = what.find('@');
  (at == std::string::npos ? fault.signal : fault.error) = std::atoi(what.c_str() + what.find('=') + 1);
  if (at != std::string::npos) fault.name = what.substr(at + 1);
  std::ofstream report(words[5]);
  if (!report) {
    std::perror(words[5]);
    return 2;
  }
  return Tracer(words[1], words[2], std::move(fault), std::move(report)).run(command);
}
