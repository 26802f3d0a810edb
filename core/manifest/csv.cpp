#include "manifest/csv.h"

#include <algorithm>
#include <utility>

#include "util/text.h"

namespace kc::manifest {

bool CsvReader::next(std::vector<CsvCell>& row) {
  good_ = true;
  size_t count = 0;
  if (at_end()) {
    row.clear();
    return false;
  }
  for (;;) {
    if (count == kMaxRowCells) {
      fail(here(), util::format("more than {} cells in one row", kMaxRowCells));
      skip_line();
      break;
    }
    // Cells of the row before keep their memory.
    if (count == row.size()) row.emplace_back();
    CsvCell& cell = row[count++];
    cell.text.clear();
    cell.place = here();
    const bool is_quoted = !at_end() && text_[at_] == '"';
    is_quoted ? quoted_cell(cell.text) : plain_cell(cell.text);
    if (!good_) {
      skip_line();
      break;
    }
    if (at_end()) break;
    if (at_row_end()) {
      take_line_end();
      break;
    }
    ++at_;  // the comma
  }
  row.resize(count);
  return true;
}

YamlPlace CsvReader::here() const {
  return {line_, static_cast<uint32_t>(at_ - line_begin_ + 1), file_};
}

bool CsvReader::at_row_end() const {
  return text_[at_] == '\n' || text_.substr(at_, 2) == "\r\n";
}

void CsvReader::take_line_end() {
  at_ += text_[at_] == '\r' ? 2 : 1;
  line_begin_ = at_;
  ++line_;
}

void CsvReader::plain_cell(std::string& out) {
  const size_t end = std::min(text_.find_first_of(",\"\r\n", at_), text_.size());
  out = text_.substr(at_, end - at_);
  at_ = end;
  if (at_end() || text_[at_] == ',' || at_row_end()) return;
  if (text_[at_] == '"') {
    fail(here(), "a quote within a cell that does not begin with one",
         "put the whole cell in quotes and double those that it holds");
  } else {
    fail(here(), "a carriage return alone ends no line", "end lines with a line feed");
  }
}

void CsvReader::quoted_cell(std::string& out) {
  const YamlPlace begin = here();
  ++at_;
  for (;;) {
    const size_t end = text_.find('"', at_);
    const std::string_view piece = text_.substr(at_, end - at_);
    if (end == std::string_view::npos) {
      fail(begin, "a quote that opens here is never closed");
      at_ = text_.size();
      return;
    }
    out += piece;
    for (size_t lf = piece.find('\n'); lf != std::string_view::npos; lf = piece.find('\n', lf + 1)) {
      line_begin_ = at_ + lf + 1;
      ++line_;
    }
    at_ = end + 1;
    if (at_end() || text_[at_] != '"') break;
    out += '"';
    ++at_;
  }
  if (at_end() || text_[at_] == ',' || at_row_end()) return;
  fail(here(), "text behind the closing quote of a cell",
       "a comma or the end of the line must follow; double a quote that the cell holds");
}

void CsvReader::skip_line() {
  const size_t end = text_.find('\n', at_);
  if (end == std::string_view::npos) {
    at_ = text_.size();
    return;
  }
  at_ = end;
  take_line_end();
}

void CsvReader::fail(YamlPlace place, std::string message, std::string hint) {
  good_ = false;
  faults_.error(place, std::move(message), std::move(hint));
}

}  // namespace kc::manifest
