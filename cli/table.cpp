#include "cli/table.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "util/text.h"

namespace kc::cli {
namespace {

constexpr std::string_view kGap = "  ";
constexpr std::string_view kCut = "..";

// What the first column is filled up to without a terminal. One name of 64 KiB would else make as much of
// each line of a million.
constexpr size_t kMostFilled = 120;

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

}  // namespace

std::string elide(std::string_view text, size_t width) {
  if (text.size() <= width) return std::string(text);
  if (width <= kCut.size()) return std::string(kCut.substr(0, width));
  size_t head = (width - kCut.size()) / 2;
  size_t tail = text.size() - (width - kCut.size() - head);
  while (head > 0 && is_continuation(text[head])) --head;
  while (tail < text.size() && is_continuation(text[tail])) ++tail;
  return util::format("{}{}{}", text.substr(0, head), kCut, text.substr(tail));
}

std::vector<std::string> wrap(std::string_view head, std::string_view text, size_t width, size_t indent) {
  std::vector<std::string> lines;
  std::string line(head);
  bool has_word = false;
  for (const std::string& word : util::split(text, ' ')) {
    if (has_word && width != 0 && line.size() + 1 + word.size() > width) {
      lines.push_back(std::move(line));
      line = std::string(indent, ' ');
      has_word = false;
    }
    if (has_word) line += ' ';
    line += word;
    has_word = true;
  }
  lines.push_back(std::move(line));
  return lines;
}

Table::Table(std::vector<Column> columns, size_t least_first)
    : columns_(std::move(columns)), least_first_(least_first) {
  for (const Column& column : columns_) widths_.push_back(column.title.size());
}

void Table::measure(const Row& row) {
  for (size_t c = 0; c < columns_.size(); ++c) widths_[c] = std::max(widths_[c], row[c].size());
}

// What the columns that are shown take behind the first.
size_t Table::others() const {
  size_t out = 0;
  for (size_t c = 1; c < columns_.size(); ++c) {
    if (columns_[c].is_shown) out += kGap.size() + widths_[c];
  }
  return out;
}

void Table::fit(size_t width) {
  is_cut_ = width != 0;
  if (!is_cut_) {
    widths_[0] = std::min(widths_[0], kMostFilled);
    return;
  }
  const size_t least = std::min(least_first_, widths_[0]);
  while (least + others() > width) {
    Column* last = nullptr;
    for (size_t c = 1; c < columns_.size(); ++c) {
      Column& column = columns_[c];
      if (column.is_shown && (last == nullptr || column.rank > last->rank)) last = &column;
    }
    if (last == nullptr) break;
    last->is_shown = false;
  }
  widths_[0] = std::min(widths_[0], width - others());
}

std::string Table::head() const {
  Row titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  return line(titles);
}

std::string Table::line(const Row& row) const {
  std::string out;
  bool is_first = true;
  for (size_t c = 0; c < columns_.size(); ++c) {
    if (!columns_[c].is_shown) continue;
    if (!is_first) out += kGap;
    is_first = false;
    const std::string cell = is_cut_ ? elide(row[c], widths_[c]) : row[c];
    const std::string blanks(widths_[c] - std::min(widths_[c], cell.size()), ' ');
    out += columns_[c].is_right ? blanks + cell : cell + blanks;
  }
  out.erase(out.find_last_not_of(' ') + 1);
  return out;
}

}  // namespace kc::cli
