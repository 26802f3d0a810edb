// kcload: what can be asked of a bundle where only the loader is.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "cli/console.h"
#include "cli/kcload/options.h"

int main(int argc, char** argv) {
  // A caller may have closed descriptors 0 to 2; a file of ours must not get their numbers and our messages.
  for (int fd = 0; fd >= 0 && fd <= 2;) fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  kc::cli::LoaderParsed parsed = kc::cli::parse_loader(argc, argv);
  if (!parsed.command) {
    std::fputs(parsed.text.c_str(), parsed.code == 0 ? stdout : stderr);
    return parsed.code;
  }
  parsed.manner.terminal = kc::config::read_terminal();
  kc::cli::Console console(parsed.manner);
  const std::string& directory = parsed.manner.directory;
  if (!directory.empty() && chdir(directory.c_str()) != 0) {
    const auto error = kc::base::fail_errno(kc::base::ErrorKind::kInput, "change into", directory, errno);
    return console.fail(error.error());
  }
  const int code = parsed.command(console);
  if (code != 0 || console.output_error() == 0) return code;
  const auto error =
      kc::base::fail_errno(kc::base::ErrorKind::kEnvironment, "write to", "stdout", console.output_error());
  return console.fail(error.error());
}
