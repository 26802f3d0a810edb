// kc: ahead-of-time GPU kernel bundles. Options are parsed in options.cpp; each command has a file of its
// own.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "cli/console.h"
#include "cli/options.h"

int main(int argc, char** argv) {
  // A caller may have closed descriptors 0 to 2; a file of kc's own must not get their numbers and its
  // messages.
  for (int fd = 0; fd >= 0 && fd <= 2;) fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  signal(SIGXFSZ, SIG_IGN);  // a file-size limit is then an error of write() that kc can explain
  kc::cli::Parsed parsed = kc::cli::parse(argc, argv);
  if (!parsed.command) {
    std::fputs(parsed.text.c_str(), parsed.code == 0 ? stdout : stderr);
    return parsed.code;
  }
  auto environment = kc::config::read_environment();
  if (environment) parsed.common.environment = std::move(*environment);
  parsed.common.terminal = kc::config::read_terminal();
  kc::cli::Console console(parsed.common);
  if (!environment) {
    return console.fail(environment.error());
  }
  auto settings = kc::config::read_user_settings(parsed.common.environment);
  if (!settings) return console.fail(settings.error());
  parsed.common.settings = std::move(*settings);
  kc::config::apply(parsed.common.settings, parsed.common.environment);
  const std::string& directory = parsed.common.directory;
  if (!directory.empty() && chdir(directory.c_str()) != 0) {
    const auto error = kc::base::fail_errno(kc::base::ErrorKind::kInput, "change into", directory, errno);
    return console.fail(error.error());
  }
  const int code = parsed.command(parsed.common, console);
  if (code != 0 || console.output_error() == 0) return code;
  const auto error =
      kc::base::fail_errno(kc::base::ErrorKind::kEnvironment, "write to", "stdout", console.output_error());
  return console.fail(error.error());
}
