// A test case in a process of its own, for what a process can do once.
#pragma once

#include <doctest/doctest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

namespace kc::test {

/// Runs the case `name` of this program, which has the decorator doctest::skip() so that nothing else runs
/// it, in a process of its own with `variable` (NAME=value) in its environment, and checks that it passes.
inline void run_apart(const std::string& name, const std::string& variable) {
  const std::string start = variable.substr(0, variable.find('=') + 1);
  std::vector<std::string> environment{variable};
  for (char** at = environ; *at != nullptr; ++at) {
    if (!std::string_view(*at).starts_with(start)) environment.emplace_back(*at);
  }
  std::vector<char*> variables;
  for (std::string& text : environment) variables.push_back(text.data());
  variables.push_back(nullptr);
  std::string program = "/proc/self/exe";
  std::string filter = "-tc=" + name;
  std::string hidden = "--no-skip";
  std::string quiet = "--minimal";
  char* arguments[] = {program.data(), filter.data(), hidden.data(), quiet.data(), nullptr};
  pid_t child = 0;
  REQUIRE(posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments, variables.data()) == 0);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CAPTURE(variable);
  CHECK(status == 0);
}

}  // namespace kc::test
