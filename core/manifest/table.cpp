#include "manifest/table.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "manifest/csv.h"
#include "manifest/inputs.h"
#include "manifest/names.h"
#include "manifest/paths.h"

namespace kc::manifest {
namespace {

constexpr std::string_view kWhenPrefix = "when.";

struct Column {
  enum class Kind { kKey, kTarget, kWhen } kind = Kind::kKey;
  Text key;  // of kWhen without `when.`
};

/// Rows of one table, from its text.
class TableReader {
 public:
  TableReader(std::string_view text, const std::string& opened, uint64_t& cells_left, Faults& faults)
      : opened_(opened),
        csv_(text, faults.add_file(opened), faults),
        cells_left_(cells_left),
        faults_(faults) {}

  std::vector<TableRow> read() {
    std::vector<TableRow> out;
    std::vector<CsvCell> row;
    if (!csv_.next(row)) {
      fail_file("the table is empty", "its first row names its columns");
      return out;
    }
    if (!csv_.is_good() || !read_header(row)) return out;
    const size_t before = faults_.count();
    while (csv_.next(row)) {
      if (!csv_.is_good()) continue;
      if (row.size() > cells_left_) {
        faults_.error(row.front().place, "the tables of the manifest have too many cells with this row",
                      util::format("they may have {} in all", kMaxTableCells));
        return out;
      }
      cells_left_ -= row.size();
      if (check_row(row)) out.push_back(read_row(row));
    }
    if (out.empty() && faults_.count() == before) {
      fail_file("the table has no row behind its header", "a row is a specialization");
    }
    return out;
  }

 private:
  void fail_file(std::string message, std::string hint) {
    faults_.error({0, 0, faults_.add_file(opened_)}, std::move(message), std::move(hint));
  }

  bool read_header(std::vector<CsvCell>& row) {
    const size_t before = faults_.count();
    std::unordered_map<std::string, size_t> seen;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string& name = row[i].text;
      const auto [first, is_new] = seen.emplace(name, i + 1);
      if (!is_new && !name.empty()) {
        faults_.error(row[i].place, util::format("the column {} is there twice: as column {} and column {}",
                                                 in_quotes(name), first->second, i + 1));
      } else {
        columns_.push_back(column(row[i]));
      }
    }
    return faults_.count() == before;
  }

  Column column(CsvCell& cell) {
    Column out;
    if (cell.text == "target") out.kind = Column::Kind::kTarget;
    if (cell.text.starts_with(kWhenPrefix)) {
      out.kind = Column::Kind::kWhen;
      cell.text.erase(0, kWhenPrefix.size());
      check_key(cell, is_configuration_key(cell.text), kWhenPrefix);
    } else if (cell.text.empty()) {
      faults_.error(cell.place, "a column without a name");
    } else {
      check_key(cell, is_specialization_key(cell.text), "");
    }
    out.key = {std::move(cell.text), cell.place};
    return out;
  }

  void check_key(const CsvCell& cell, bool good, std::string_view prefix) {
    if (good) return;
    faults_.error(cell.place, util::format("the column {} is no configuration key, nor `option.` or `when.` "
                                           "with one behind it, nor `target`",
                                           in_quotes(std::string(prefix) + cell.text)));
  }

  bool check_row(const std::vector<CsvCell>& row) {
    const size_t before = faults_.count();
    const bool is_empty =
        std::all_of(row.begin(), row.end(), [](const CsvCell& cell) { return cell.text.empty(); });
    if (is_empty) {
      faults_.error(row.front().place, "a row in which every cell is empty",
                    "an empty cell means that the row has not that key");
    } else if (row.size() != columns_.size()) {
      const CsvCell& at = row.size() > columns_.size() ? row[columns_.size()] : row.front();
      faults_.error(at.place, util::format("this row has {}, and the header {}",
                                           util::counted(row.size(), "cell"), columns_.size()));
    } else {
      for (const CsvCell& cell : row) {
        if (cell.text.size() > kMaxValueBytes) {
          faults_.error(cell.place, util::format("a value of {} bytes; at most {} are allowed",
                                                 cell.text.size(), kMaxValueBytes));
        }
      }
    }
    return faults_.count() == before;
  }

  TableRow read_row(const std::vector<CsvCell>& row) {
    TableRow out;
    out.selection.place = row.front().place;
    out.selection.pairs.reserve(count(row, Column::Kind::kKey));
    out.when.reserve(count(row, Column::Kind::kWhen));
    for (size_t i = 0; i < row.size(); ++i) {
      if (row[i].text.empty()) continue;
      Text value{row[i].text, row[i].place};
      switch (columns_[i].kind) {
        case Column::Kind::kKey:
          out.selection.pairs.push_back({columns_[i].key, std::move(value)});
          break;
        case Column::Kind::kTarget:
          out.target = std::move(value);
          break;
        case Column::Kind::kWhen:
          out.when.push_back({columns_[i].key, std::move(value)});
          break;
      }
    }
    return out;
  }

  size_t count(const std::vector<CsvCell>& row, Column::Kind kind) const {
    size_t out = 0;
    for (size_t i = 0; i < row.size(); ++i) out += columns_[i].kind == kind && !row[i].text.empty() ? 1 : 0;
    return out;
  }

  const std::string& opened_;
  CsvReader csv_;
  uint64_t& cells_left_;
  Faults& faults_;
  std::vector<Column> columns_;
};

}  // namespace

const std::vector<TableRow>* Tables::rows(const Text& path, const std::string& base, bool allow_absolute) {
  const std::string identifier = identifier_of(base, path.text);
  const auto found = tables_.find(identifier);
  if (found != tables_.end()) return found->second ? &*found->second : nullptr;
  const std::string fault = path_fault("the table", path.text, allow_absolute);
  if (!fault.empty()) {
    faults_.error(path.place, fault);
    return nullptr;
  }
  const std::string opened = opened_path(folder_, identifier);
  const std::optional<base::Bytes> bytes =
      read_input("the table", path, opened, kMaxTableBytes, inputs_, faults_);
  if (!bytes) return nullptr;
  std::optional<std::vector<TableRow>>& rows = tables_[identifier];
  rows = parse(base::as_text(*bytes), opened);
  return rows ? &*rows : nullptr;
}

std::optional<std::vector<TableRow>> Tables::parse(std::string_view text, const std::string& opened) {
  const std::string_view content = without_mark(text);
  if (!check_text(content, faults_.add_file(opened), faults_)) return std::nullopt;
  const size_t before = faults_.count();
  std::vector<TableRow> out = TableReader(content, opened, cells_left_, faults_).read();
  if (faults_.count() != before) return std::nullopt;
  return out;
}

}  // namespace kc::manifest
