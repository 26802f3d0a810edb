#include "cli/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "util/text.h"

namespace kc::cli {
namespace {

constexpr auto kRedrawEvery = std::chrono::milliseconds(50);  // 20 times a second
constexpr auto kPlainEvery = std::chrono::seconds(10);
constexpr size_t kLeastStatusWidth = 20;

unsigned terminal_width(int fd, const config::Environment& environment) {
  if (isatty(fd) == 0) return 0;
  if (environment.columns) {
    if (const auto columns = util::parse_number(*environment.columns, 1, 10'000)) {
      return static_cast<unsigned>(*columns);
    }
  }
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col != 0) return size.ws_col;
  return 80;
}

// The conventions of no-color.org and bixense.com/clicolors.
bool wants_color(const Common& common, int fd) {
  if (common.color == "always") return true;
  if (common.color == "never") return false;
  const config::Environment& environment = common.environment;
  if (environment.no_color) return false;
  if (environment.clicolor_force && *environment.clicolor_force != "0") return true;
  return isatty(fd) != 0 && environment.term.value_or("dumb") != "dumb";
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

// Cut in the middle, since the beginning says what and the end says which.
std::string elided(std::string_view text, size_t width) {
  if (text.size() <= width) return std::string(text);
  const size_t head = (width - 3) / 2;
  const size_t tail = width - 3 - head;
  return util::format("{}...{}", text.substr(0, head), text.substr(text.size() - tail));
}

}  // namespace

Console::Console(const Common& common)
    : json_(common.format == Format::kJson),
      verbosity_(common.verbosity),
      color_out_(wants_color(common, STDOUT_FILENO)),
      color_err_(wants_color(common, STDERR_FILENO)),
      out_width_(terminal_width(STDOUT_FILENO, common.environment)) {
  err_width_ = terminal_width(STDERR_FILENO, common.environment);
  const bool shows = common.progress != "none" && verbosity_ >= 0;
  live_ = shows && common.progress == "auto" && err_width_ >= kLeastStatusWidth &&
          common.environment.term.value_or("dumb") != "dumb";
  plain_ = shows && !live_;
  last_status_ = util::Clock::now();
}

Console::~Console() {
  clear_status();
}

bool Console::result(std::string_view text) {
  clear_status();
  if (out_failed_) return false;
  out_failed_ = std::fwrite(text.data(), 1, text.size(), stdout) != text.size() ||
                std::fputc('\n', stdout) == EOF || std::fflush(stdout) != 0;
  return !out_failed_;
}

bool Console::json(const util::Json& object) {
  return result(util::dump_line(object));
}

void Console::line(std::string_view head, Style style, std::string_view text) {
  clear_status();
  const std::string out = util::format("kc: {}{}\n", painted(color_err_, style, head), text);
  std::fwrite(out.data(), 1, out.size(), stderr);
}

void Console::error(const base::Error& error) {
  const std::string place = error.place.text();
  line("error: ", Style::kRed, util::escape(place.empty() ? error.message : place + ": " + error.message));
  if (!error.hint.empty()) {
    std::fputs(util::format("  {}\n", util::escape(error.hint, true)).c_str(), stderr);
  }
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

void Console::status(std::string_view text) {
  const auto now = util::Clock::now();
  if (live_) {
    if (status_shown_ && now - last_status_ < kRedrawEvery) return;
    const std::string out = util::format("\r\x1b[K{}", elided(text, err_width_ - 1));
    std::fwrite(out.data(), 1, out.size(), stderr);
    status_shown_ = true;
  } else if (plain_) {
    if (now - last_status_ < kPlainEvery) return;
    line("", Style::kPlain, text);
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
