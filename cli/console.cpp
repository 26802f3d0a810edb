#include "cli/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>

#include "util/text.h"

namespace kc::cli {
namespace {

constexpr auto kRedrawEvery = std::chrono::milliseconds(50);  // 20 times a second
constexpr auto kPlainEvery = std::chrono::seconds(10);
constexpr size_t kLeastStatusWidth = 20;

// `columns` is the user's word ($COLUMNS) and wins.
unsigned terminal_width(int fd, const std::optional<std::string>& columns) {
  if (isatty(fd) == 0) return 0;
  if (columns) {
    if (const auto number = util::parse_number(*columns, 1, 10'000)) return static_cast<unsigned>(*number);
  }
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col != 0) return size.ws_col;
  return 80;
}

// The conventions of no-color.org and bixense.com/clicolors.
bool wants_color(const Manner& manner, int fd) {
  if (manner.color == "always") return true;
  if (manner.color == "never") return false;
  const config::Terminal& terminal = manner.terminal;
  if (terminal.no_color) return false;
  if (terminal.clicolor_force && *terminal.clicolor_force != "0") return true;
  return isatty(fd) != 0 && terminal.term.value_or("dumb") != "dumb";
}

std::string_view code_of(Console::Style style) {
  switch (style) {
    case Console::Style::kPlain:
      return "";
    case Console::Style::kBold:
      return "\x1b[1m";
    case Console::Style::kRed:
      return "\x1b[1;31m";
    case Console::Style::kGreen:
      return "\x1b[32m";
    case Console::Style::kYellow:
      return "\x1b[1;33m";
    case Console::Style::kDim:
      return "\x1b[2m";
  }
  return "";
}

std::string painted(bool color, Console::Style style, std::string_view text) {
  if (!color || style == Console::Style::kPlain) return std::string(text);
  return util::format("{}{}\x1b[0m", code_of(style), text);
}

// As many parts as fit into `width` columns, at least the first.
std::string fitting(std::span<const std::string> parts, size_t width) {
  std::string out;
  for (const std::string& part : parts) {
    const std::string_view separator = out.empty() ? "" : out.ends_with(']') ? " " : ", ";
    if (!out.empty() && out.size() + separator.size() + part.size() > width) break;
    out += separator;
    out += part;
  }
  return out;
}

}  // namespace

Console::Console(const Manner& manner)
    : program_(manner.program),
      json_(manner.format == Format::kJson),
      verbosity_(manner.verbosity),
      color_out_(wants_color(manner, STDOUT_FILENO)),
      color_err_(wants_color(manner, STDERR_FILENO)),
      out_width_(terminal_width(STDOUT_FILENO, manner.terminal.columns)),
      columns_(manner.terminal.columns) {
  const bool shows = manner.progress != "none" && verbosity_ >= 0;
  live_ = shows && manner.progress == "auto" &&
          terminal_width(STDERR_FILENO, columns_) >= kLeastStatusWidth &&
          manner.terminal.term.value_or("dumb") != "dumb";
  plain_ = shows && !live_;
  last_status_ = util::Clock::now();
}

Console::~Console() {
  clear_status();
}

bool Console::result(std::string_view text) {
  clear_status();
  if (output_error_ != 0) return false;
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fputc('\n', stdout) == EOF ||
      std::fflush(stdout) != 0) {
    output_error_ = errno != 0 ? errno : EIO;
  }
  return output_error_ == 0;
}

bool Console::json(const util::Json& object) {
  return result(util::dump_line(object));
}

void Console::line(std::string_view head, Style style, std::string_view text) {
  clear_status();
  const std::string out = util::format("{}: {}{}\n", program_, painted(color_err_, style, head), text);
  std::fwrite(out.data(), 1, out.size(), stderr);
}

void Console::error(const base::Error& error) {
  const std::string place = error.place.text();
  line("error: ", Style::kRed, util::escape(place.empty() ? error.message : place + ": " + error.message));
  if (!error.hint.empty()) {
    std::fputs(util::format("  {}\n", util::escape(error.hint, true)).c_str(), stderr);
  }
}

int Console::fail(const base::Error& problem) {
  error(problem);
  return static_cast<int>(problem.kind);
}

void Console::warning(const base::Error& warning) {
  if (verbosity_ < 0) return;
  const std::string place = warning.place.text();
  line("warning: ", Style::kYellow,
       util::escape(place.empty() ? warning.message : place + ": " + warning.message));
  if (!warning.hint.empty()) {
    std::fputs(util::format("  {}\n", util::escape(warning.hint, true)).c_str(), stderr);
  }
}

void Console::note(std::string_view text) {
  if (verbosity_ >= 0) line("", Style::kPlain, util::escape(text));
}

void Console::block(std::string_view text) {
  clear_status();
  for (const std::string& row : util::split(util::trim(text), '\n')) {
    std::fputs(util::format("    {}\n", util::escape(row)).c_str(), stderr);
  }
}

void Console::status(std::span<const std::string> parts) {
  const auto now = util::Clock::now();
  if (live_) {
    if (status_shown_ && now - last_status_ < kRedrawEvery) return;
    // Asked each time: a terminal may be resized while a build runs.
    const unsigned width = terminal_width(STDERR_FILENO, columns_);
    const std::string out = util::format("\r\x1b[K{}", fitting(parts, width - 1));
    std::fwrite(out.data(), 1, out.size(), stderr);
    status_shown_ = true;
  } else if (plain_) {
    if (now - last_status_ < kPlainEvery) return;
    line("", Style::kPlain, fitting(parts, SIZE_MAX));
  } else {
    return;
  }
  last_status_ = now;
}

void Console::clear_status() {
  if (!status_shown_) return;
  std::fputs("\r\x1b[K", stderr);
  status_shown_ = false;
}

std::string Console::styled(Style style, std::string_view text) const {
  return painted(color_out_, style, text);
}

}  // namespace kc::cli
