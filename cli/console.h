// The terminal: results on stdout, progress and diagnostics on stderr, colour, one status line.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "cli/manner.h"
#include "util/json.h"
#include "util/time.h"

namespace kc::cli {

/// Used by one thread. Text handed in may be untrusted: everything is escaped here but what result() is
/// given.
class Console {
 public:
  explicit Console(const Manner& manner);
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  /// A line of result on stdout; the caller escapes untrusted parts with util::escape. False when stdout is
  /// gone.
  bool result(std::string_view line);
  /// One JSON object on a line of stdout.
  bool json(const util::Json& object);

  /// `kc: error: place: message` (with the program's name), the hint on a line of its own.
  void error(const base::Error& error);
  /// error(), and what it means as an exit code.
  int fail(const base::Error& error);
  void warning(const base::Error& warning);
  /// A plain line on stderr, dropped with -q.
  void note(std::string_view text);
  /// A block of untrusted text on stderr, indented (a compiler's output).
  void block(std::string_view text);

  /// Shows or replaces the status line, as many of `parts` as fit from the first on; at most 20 times a
  /// second on a terminal, otherwise a plain line every 10 s at most.
  void status(std::span<const std::string> parts);
  void clear_status();

  /// Why stdout could not be written, 0 when all went well.
  int output_error() const { return output_error_; }
  bool is_json() const { return json_; }
  int verbosity() const { return verbosity_; }
  /// Columns of stdout's terminal, 0 when it is none.
  unsigned width() const { return out_width_; }
  enum class Style : uint8_t { kPlain, kBold, kRed, kGreen, kYellow, kDim };
  /// For stdout: coloured when it is to be.
  std::string styled(Style style, std::string_view text) const;

 private:
  void line(std::string_view head, Style style, std::string_view text);

  std::string program_;
  bool json_ = false;
  int verbosity_ = 0;
  bool color_out_ = false;
  bool color_err_ = false;
  bool live_ = false;   // stderr is a terminal that is redrawn
  bool plain_ = false;  // plain progress lines
  bool status_shown_ = false;
  int output_error_ = 0;  // errno of the first write to stdout that failed
  unsigned out_width_ = 0;
  std::optional<std::string> columns_;
  util::Clock::time_point last_status_{};
};

}  // namespace kc::cli
