#include "util/process.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "support/temp_folder.h"
#include "util/pseudo_file.h"
#include "util/text.h"

using namespace kc::util;
using namespace std::chrono_literals;
using kc::base::ErrorKind;
using kc::base::FileDescriptor;
using kc::test::TempFolder;

namespace {

ProcessSpec shell(std::string script) {
  ProcessSpec spec;
  spec.program = "/bin/sh";
  spec.arguments = {"-c", std::move(script)};
  spec.environment = {"PATH=/usr/bin:/bin"};
  return spec;
}

ProcessResult run(const ProcessSpec& spec, const ProcessHooks& hooks = {}) {
  auto result = run_process(spec, hooks);
  REQUIRE_MESSAGE(result.has_value(), (result ? "" : result.error().text()));
  return std::move(*result);
}

std::string start_error(const ProcessSpec& spec) {
  const auto result = run_process(spec);
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().kind == ErrorKind::kEnvironment);
  return result.error().text();
}

// One letter of /proc/<pid>/stat: R, S, Z ...; nothing when there is no such process.
std::string state_of(pid_t pid) {
  const std::string text = read_pseudo_file("/proc/" + std::to_string(pid) + "/stat").value_or("");
  const size_t end = text.rfind(')');
  return end == std::string::npos ? "" : text.substr(end + 2, 1);
}

bool ends_soon(pid_t pid) {
  for (int i = 0; i < 200; ++i) {
    const std::string state = state_of(pid);
    if (state.empty() || state == "Z" || state == "X") return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a process gives its exit code and both outputs") {
  const ProcessResult result = run(shell("echo out; echo err >&2; exit 7"));
  CHECK(result.exit_code == 7);
  CHECK(result.signal == 0);
  CHECK_FALSE(result.timed_out);
  CHECK(result.out == "out\n");
  CHECK(result.err == "err\n");
  CHECK(result.seconds > 0);
}

TEST_CASE("a process ended by a signal gives the signal") {
  const ProcessResult result = run(shell("kill -TERM $$"));
  CHECK(result.exit_code == -1);
  CHECK(result.signal == SIGTERM);
  CHECK_FALSE(result.timed_out);
}

TEST_CASE("arguments reach the program unchanged and standard input is empty") {
  ProcessSpec spec = shell("cat; printf '[%s]' \"$0\" \"$@\"");
  spec.arguments.insert(spec.arguments.end(), {"zero", "", "a b", "$HOME\n*"});
  CHECK(run(spec).out == "[zero][][a b][$HOME\n*]");
}

TEST_CASE("a timeout kills the process and all that it started") {
  ProcessSpec spec = shell("sleep 100 & echo $!; trap '' TERM; sleep 100; sleep 100");
  spec.timeout = 300ms;
  const ProcessResult result = run(spec);
  CHECK(result.timed_out);
  CHECK(result.signal == SIGKILL);
  CHECK(result.seconds >= 0.3);
  CHECK(result.seconds < 10);
  const auto grandchild = parse_number(trim(result.out), 2, 1U << 30);
  REQUIRE(grandchild.has_value());
  CHECK(ends_soon(static_cast<pid_t>(*grandchild)));
}

TEST_CASE("what a process leaves running in its group is killed when it ends") {
  const Stopwatch watch;
  const ProcessResult result = run(shell("sleep 100 & echo $!"));
  CHECK(result.exit_code == 0);
  CHECK(watch.seconds() < 10);
  const auto left = parse_number(trim(result.out), 2, 1U << 30);
  REQUIRE(left.has_value());
  CHECK(ends_soon(static_cast<pid_t>(*left)));
}

TEST_CASE("a process that leaves nothing behind costs no waiting") {
  double least = 1e9;
  for (int i = 0; i < 5; ++i) {
    const Stopwatch watch;
    run(shell("exit 0"));
    least = std::min(least, watch.seconds());
  }
  CHECK(least < 0.1);
}

TEST_CASE("a pipe held open by one that left the group is not waited for") {
  const TempFolder folder;
  const std::string pid_file = folder / "pid";
  const Stopwatch watch;
  // It has left the group when it writes its number; its outputs are the pipes.
  run(shell("setsid sh -c 'echo $$ >" + pid_file + "; exec sleep 100' & while [ ! -s " + pid_file +
            " ]; do sleep 0.01; done"));
  CHECK(watch.seconds() < 10);
  const auto escaped = parse_number(trim(kc::test::content_of(pid_file)), 2, 1U << 30);
  REQUIRE(escaped.has_value());
  CHECK_FALSE(state_of(static_cast<pid_t>(*escaped)).empty());
  kill(static_cast<pid_t>(*escaped), SIGKILL);
}

TEST_CASE("output beyond the limit is read and dropped") {
  ProcessSpec spec = shell("head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2; echo end >&2; exit 3");
  spec.output_limit = 1000;
  spec.timeout = 60s;
  const ProcessResult result = run(spec);
  CHECK(result.exit_code == 3);
  CHECK(result.out == std::string(1000, '\0'));
  CHECK(result.err == std::string(1000, '\0'));
}

TEST_CASE("output that has not been read when the process ends is complete") {
  const ProcessResult result = run(shell("head -c 60000 /dev/zero"));
  CHECK(result.out.size() == 60'000);
}

TEST_CASE("the environment is exactly what was given") {
  ProcessSpec spec;
  spec.program = "/usr/bin/env";
  spec.environment = {"A=1", "B=two words"};
  setenv("KC_TEST_LEAK", "1", 1);
  CHECK(run(spec).out == "A=1\nB=two words\n");
  spec.environment.clear();
  CHECK(run(spec).out.empty());
  unsetenv("KC_TEST_LEAK");
}

TEST_CASE("no descriptor but the first three reaches the child") {
  // One without O_CLOEXEC, as a library or a parent might leave it.
  const FileDescriptor foreign(fcntl(STDERR_FILENO, F_DUPFD, 50));
  REQUIRE(foreign);
  // The shell's own look at the folder is not there any more when the test runs.
  const ProcessResult result =
      run(shell("for f in /proc/$$/fd/*; do test -e $f -o -L $f && echo ${f##*/}; done; exit 0"));
  CHECK(result.out == "0\n1\n2\n");
}

TEST_CASE("the child has a group of its own and default signals with none blocked") {
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const auto old_handler = signal(SIGPIPE, SIG_IGN);
  const ProcessResult by_term = run(shell("kill -TERM $$; exit 5"));
  const ProcessResult by_pipe = run(shell("kill -PIPE $$; exit 5"));
  signal(SIGPIPE, old_handler);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  CHECK(by_term.signal == SIGTERM);
  CHECK(by_pipe.signal == SIGPIPE);
  const std::vector<std::string> fields = split(run(shell("cat /proc/$$/stat; exit 0")).out, ' ');
  REQUIRE(fields.size() > 5);
  CHECK(fields[0] == fields[4]);  // pid and pgrp; the name, field 2, is (sh)
}

TEST_CASE("a closed gate lets nothing start") {
  kc::util::StartGate gate;
  bool started = false;
  ProcessHooks hooks;
  hooks.started = [&](pid_t) { started = true; };
  hooks.gate = &gate;
  CHECK(kc::util::run_process(shell("exit 0"), hooks));
  CHECK(started);
  gate.close();
  started = false;
  const auto refused = kc::util::run_process(shell("exit 0"), hooks);
  REQUIRE(!refused);
  CHECK(refused.error().kind == kc::base::ErrorKind::kEnvironment);
  CHECK(!started);
}

TEST_CASE("the hooks get the group while its number cannot be another's") {
  pid_t started = 0;
  pid_t ended = 0;
  std::string state_at_end;
  const ProcessHooks hooks = {[&](pid_t group) {
                                started = group;
                                CHECK(getpgid(group) == group);
                              },
                              [&](pid_t group) {
                                ended = group;
                                state_at_end = state_of(group);
                              },
                              nullptr};
  const ProcessResult result = run(shell("echo $$"), hooks);
  CHECK(result.out == std::to_string(started) + "\n");
  CHECK(ended == started);
  CHECK(state_at_end == "Z");
  CHECK(waitpid(started, nullptr, WNOHANG) == -1);  // reaped
}

TEST_CASE("a process runs in the directory that was asked for") {
  const TempFolder folder;
  ProcessSpec spec = shell("pwd -P");
  spec.directory = folder.path();
  CHECK(run(spec).out == std::filesystem::canonical(folder.path()).string() + "\n");
  // A relative program is meant from the caller's directory.
  spec.program = std::filesystem::relative("/bin/sh").string();
  REQUIRE_FALSE(spec.program.starts_with("/"));
  CHECK(run(spec).out == std::filesystem::canonical(folder.path()).string() + "\n");
}

TEST_CASE("a program that cannot be started is named with the reason") {
  const TempFolder folder;
  ProcessSpec spec;
  spec.program = folder / "missing";
  CHECK(start_error(spec) == "cannot start " + spec.program + ": No such file or directory");
  spec.program = folder.path();
  CHECK(start_error(spec) == "cannot start " + spec.program + ": it is a directory");
  spec.program = folder.write("text", "hello\n");
  CHECK(contains(start_error(spec), "the file is not executable"));
  std::filesystem::permissions(spec.program, std::filesystem::perms::owner_all);
  CHECK(contains(start_error(spec), "it is not a program for this machine"));
  spec.program = folder.write("script", "#!/no/such/interpreter\n");
  std::filesystem::permissions(spec.program, std::filesystem::perms::owner_all);
  CHECK(contains(start_error(spec), "not the interpreter or loader that it names"));
  spec.program = "";
  CHECK(contains(start_error(spec), "No such file"));
  spec = shell("true");
  spec.directory = folder / "nowhere";
  CHECK(contains(start_error(spec), "in the directory " + spec.directory));
}

TEST_CASE("the peak of memory is summed over the group") {
  // tail keeps all of it until its input ends.
  const ProcessResult result =
      run(shell("{ head -c 70000000 /dev/zero; sleep 0.5; } | tail -c 70000000 >/dev/null; exit 0"));
  CHECK(result.peak_bytes > 70'000'000);
  CHECK(result.peak_bytes < 512'000'000);
}

TEST_CASE("several threads run processes at once") {
  std::vector<std::string> outputs(8);
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < outputs.size(); ++i) {
      threads.emplace_back([&outputs, i] {
        const auto result =
            run_process(shell("sleep 0.0" + std::to_string(i) + "; echo " + std::to_string(i)));
        if (result) outputs[i] = result->out;
      });
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i) CHECK(outputs[i] == std::to_string(i) + "\n");
}

TEST_CASE("a lost exit status is an error and not a success") {
  const auto old_handler = signal(SIGCHLD, SIG_IGN);
  const auto result = run_process(shell("exit 0"));
  signal(SIGCHLD, old_handler);
  REQUIRE_FALSE(result.has_value());
  CHECK(contains(result.error().text(), "was lost"));
}

TEST_CASE("a peer is talked to over descriptor 3 and logs to a file") {
  const TempFolder folder;
  const FileDescriptor log(open((folder / "log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  const FileDescriptor foreign(fcntl(STDERR_FILENO, F_DUPFD, 50));
  auto peer = spawn_peer(shell("for f in /proc/$$/fd/*; do test -L $f && echo ${f##*/}; done; echo to-err "
                               ">&2; cat <&3 >&3; exit 4"),
                         log.get());
  REQUIRE(peer.has_value());
  CHECK(getpgid(peer->pid) == peer->pid);
  CHECK((fcntl(peer->socket.get(), F_GETFD) & FD_CLOEXEC) != 0);
  CHECK((fcntl(peer->pidfd.get(), F_GETFD) & FD_CLOEXEC) != 0);
  REQUIRE(send(peer->socket.get(), "hello", 5, MSG_NOSIGNAL) == 5);
  shutdown(peer->socket.get(), SHUT_WR);
  char buffer[16] = {};
  CHECK(recv(peer->socket.get(), buffer, 5, MSG_WAITALL) == 5);
  CHECK(std::string(buffer) == "hello");
  CHECK(recv(peer->socket.get(), buffer, 1, 0) == 0);  // its end closed with it
  pollfd ended{peer->pidfd.get(), POLLIN, 0};
  CHECK(poll(&ended, 1, 10'000) == 1);
  int status = 0;
  REQUIRE(waitpid(peer->pid, &status, 0) == peer->pid);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 4);
  CHECK(kc::test::content_of(folder / "log") == "0\n1\n2\n3\nto-err\n");
}

TEST_CASE("a peer that cannot be started is an error") {
  ProcessSpec spec;
  spec.program = "/no/such/program";
  const auto peer = spawn_peer(spec, STDERR_FILENO);
  REQUIRE_FALSE(peer.has_value());
  CHECK(peer.error().kind == ErrorKind::kEnvironment);
}

TEST_CASE("the path of the running program leads to this test") {
  const auto path = self_path();
  REQUIRE(path.has_value());
  CHECK(std::filesystem::equivalent(*path, "/proc/self/exe"));
  CHECK(path->starts_with("/"));
}
