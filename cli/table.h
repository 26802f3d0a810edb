// Lines that fit a terminal: a table, and text that is wrapped.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kc::cli {

/// `text` in at most `width` bytes, with `..` for its middle; UTF-8 sequences stay whole.
std::string elide(std::string_view text, size_t width);

/// `head` and behind it `text`, broken at its blanks into lines of at most `width` bytes (0 = one line),
/// those behind the first indented by `indent` blanks. A longer word is not cut: so what is long can be
/// copied.
std::vector<std::string> wrap(std::string_view head, std::string_view text, size_t width, size_t indent);

/// A table made in two passes over its rows, so that they need not be in memory: measure() all of them,
/// fit(), then line() each. Cells are ASCII, or measured as more columns than they take. For one thread.
class Table {
 public:
  struct Column {
    std::string title;
    bool is_right = false;  // numbers
    unsigned rank = 0;      // on a narrow terminal the highest goes first
    bool is_shown = true;
  };
  using Row = std::vector<std::string>;

  /// The first column always stays, and its cells may be elided, down to `least_first` before others go.
  Table(std::vector<Column> columns, size_t least_first);
  /// As many cells as there are columns.
  void measure(const Row& row);
  /// Chooses columns and widths for a terminal of `width` columns; 0 = none, all is shown whole, and a first
  /// cell far longer than most moves the rest of its own line only.
  void fit(size_t width);
  void hide(size_t column) { columns_[column].is_shown = false; }
  std::string head() const;
  std::string line(const Row& row) const;

 private:
  size_t others() const;

  std::vector<Column> columns_;
  size_t least_first_;
  std::vector<size_t> widths_;
  bool is_cut_ = false;  // to the terminal
};

}  // namespace kc::cli
