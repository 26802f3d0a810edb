// Comma-separated values by RFC 4180: cells with their places. What the cells mean is the caller's to say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "manifest/faults.h"

namespace kc::manifest {

struct CsvCell {
  std::string text;  // without its quotes, doubled ones as one
  YamlPlace place;   // of its first byte, the quote when there is one
};

/// Of one row; far more than a specialization can have keys.
inline constexpr size_t kMaxRowCells = 10'000;

/// Rows of a text, one after the other. Cells are separated by commas, rows end with LF or CR LF, the last
/// one also with the text. A cell in quotes may hold commas, line ends and, doubled, quotes; a quote anywhere
/// else is an error, as is a CR without LF outside of quotes. Blanks count. Not for concurrent use.
class CsvReader {
 public:
  /// `text`, without a byte order mark, must outlive the reader; `file` is for the places.
  CsvReader(std::string_view text, uint32_t file, Faults& faults)
      : text_(text), file_(file), faults_(faults) {}

  /// Whether there is a further row, and its cells: at least one, empty when the line is. What is wrong in a
  /// row is reported; the row is then given as far as it makes sense, is_good() says false, and the rest of
  /// its line is skipped.
  bool next(std::vector<CsvCell>& row);
  bool is_good() const { return good_; }

 private:
  bool at_end() const { return at_ >= text_.size(); }
  YamlPlace here() const;
  void plain_cell(std::string& out);
  void quoted_cell(std::string& out);
  bool at_row_end() const;
  void take_line_end();
  void skip_line();
  void fail(YamlPlace place, std::string message, std::string hint = {});

  std::string_view text_;
  uint32_t file_;
  Faults& faults_;
  size_t at_ = 0;
  size_t line_begin_ = 0;
  uint32_t line_ = 1;
  bool good_ = true;  // the row that next() gave last
};

}  // namespace kc::manifest
