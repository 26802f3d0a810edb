#include "cli/key_choice.h"

#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

namespace kc::cli {
namespace {

using base::ErrorKind;
using base::Result;

// Longer ones are pasted by mistake.
constexpr size_t kMaxPassphrase = 1024;

// The terminal without echo. Keys that end programs are plain bytes, so that the echo always comes back.
class SilentTerminal {
 public:
  SilentTerminal() {
    if (tcgetattr(STDIN_FILENO, &before_) != 0) return;
    termios silent = before_;
    silent.c_lflag &= ~static_cast<tcflag_t>(ECHO | ICANON | ISIG);
    silent.c_cc[VMIN] = 1;
    silent.c_cc[VTIME] = 0;
    is_silent_ = tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent) == 0;
  }
  ~SilentTerminal() {
    if (is_silent_) tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
  }
  SilentTerminal(const SilentTerminal&) = delete;
  SilentTerminal& operator=(const SilentTerminal&) = delete;
  explicit operator bool() const { return is_silent_; }

 private:
  termios before_{};
  bool is_silent_ = false;
};

constexpr char kInterrupt = 3;   // Ctrl-C
constexpr char kEndOfInput = 4;  // Ctrl-D
constexpr char kBackspace = 8;
constexpr char kDelete = 127;

// One line that is not shown; nothing when the user gave up.
Result<std::optional<std::string>> type_line(const char* prompt) {
  std::string line;
  std::optional<char> end;
  {
    const SilentTerminal terminal;  // before anybody is asked: what is typed from then on counts
    if (!terminal) return base::fail(ErrorKind::kInput, "the terminal cannot be told to hide a passphrase");
    std::fputs(prompt, stderr);
    std::fflush(stderr);
    while (!end) {
      char c = 0;
      const ssize_t got = ::read(STDIN_FILENO, &c, 1);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) c = kEndOfInput;
      if (c == '\n' || c == '\r' || c == kInterrupt || c == kEndOfInput) {
        end = c;
      } else if (c == kBackspace || c == kDelete) {
        if (!line.empty()) line.pop_back();
      } else if (line.size() < kMaxPassphrase) {
        line += c;
      }
    }
  }
  std::fputs("\n", stderr);
  if (*end == kInterrupt) ::raise(SIGINT);
  if (*end == kInterrupt || *end == kEndOfInput) return std::optional<std::string>();
  return std::optional(std::move(line));
}

}  // namespace

Result<build::Trust> choose_trust(const Common& common, const KeyArguments& arguments) {
  build::Trust trust;
  trust.unsigned_too = arguments.trust_unsigned;
  KC_ASSIGN(trust.keys, read_keys(arguments));
  for (const std::string& path : common.settings.trusted_keys) {
    KC_TRY(config::check_only_owner_writes(path, "a trusted key"));
    KC_ASSIGN(const bundle::PublicKey key, bundle::read_public_key(path));
    if (std::ranges::find(trust.keys, key) == trust.keys.end()) trust.keys.push_back(key);
  }
  return trust;
}

Result<std::optional<std::string>> choose_passphrase(const Common& common, bool ask, bool twice) {
  if (!ask) return common.environment.key_passphrase;
  if (isatty(STDIN_FILENO) == 0 || isatty(STDERR_FILENO) == 0) {
    return base::fail(ErrorKind::kInput, "there is no terminal to ask for a passphrase on",
                      "set KC_KEY_PASSPHRASE instead of --passphrase");
  }
  KC_ASSIGN(auto typed, type_line("passphrase: "));
  if (typed && twice) {
    KC_ASSIGN(const auto again, type_line("the same again: "));
    if (again && *again != *typed) {
      return base::fail(ErrorKind::kInput, "the two passphrases are not the same; nothing was written");
    }
    if (!again) typed.reset();
  }
  if (!typed || typed->empty()) return base::fail(ErrorKind::kInput, "no passphrase was given");
  return typed;
}

}  // namespace kc::cli
