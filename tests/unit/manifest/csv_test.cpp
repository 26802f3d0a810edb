#include "manifest/csv.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "manifest/table.h"
#include "support/temp_folder.h"
#include "unit/manifest/project.h"

namespace {

using kc::manifest::CsvCell;
using kc::manifest::CsvReader;
using kc::manifest::Faults;
using kc::manifest::TableRow;
using kc::test::joined;
using kc::test::Lines;

// Each row as `line:column=text|...`, then the errors.
Lines read(std::string_view text) {
  Faults faults("t.csv");
  CsvReader reader(text, 0, faults);
  Lines out;
  std::vector<CsvCell> row;
  while (reader.next(row)) {
    if (!reader.is_good()) continue;
    std::string line;
    for (const CsvCell& cell : row) {
      if (!line.empty()) line += '|';
      line += std::to_string(cell.place.line) + ':' + std::to_string(cell.place.column) + '=' + cell.text;
    }
    out.push_back(line);
  }
  for (const kc::base::Error& error : faults.take_errors()) out.push_back(error.text());
  return out;
}

TEST_CASE("rows and cells are those of the grammar with their places") {
  CHECK(read("").empty());
  CHECK(read("a") == Lines{"1:1=a"});
  CHECK(read("a,b\n1,2\n") == Lines{"1:1=a|1:3=b", "2:1=1|2:3=2"});
  CHECK(read("a,b\r\n1,2") == Lines{"1:1=a|1:3=b", "2:1=1|2:3=2"});
  CHECK(read("a,,c\n,,\n") == Lines{"1:1=a|1:3=|1:4=c", "2:1=|2:2=|2:3="});
  // A comma at the end begins a cell; a line end alone is a row of one empty cell.
  CHECK(read("a,") == Lines{"1:1=a|1:3="});
  CHECK(read("\n\na") == Lines{"1:1=", "2:1=", "3:1=a"});
  // Blanks count.
  CHECK(read(" a , b\n") == Lines{"1:1= a |1:5= b"});
  // Columns count bytes.
  CHECK(read("\xc3\xa4,b") == Lines{"1:1=\xc3\xa4|1:4=b"});
}

TEST_CASE("quoted cells hold commas line ends and doubled quotes") {
  CHECK(read("\"a,b\",c") == Lines{"1:1=a,b|1:7=c"});
  CHECK(read("\"a\"\"b\",\"\"\"\"") == Lines{"1:1=a\"b|1:8=\""});
  CHECK(read("\"\",x\n") == Lines{"1:1=|1:4=x"});
  CHECK(read("\"a\r\nb\nc\",d\ne,f") == Lines{"1:1=a\r\nb\nc|3:4=d", "4:1=e|4:3=f"});
  CHECK(read("\"a\"\r\nb") == Lines{"1:1=a", "2:1=b"});
}

TEST_CASE("wrong quotes and carriage returns are named where they stand and cost one line") {
  CHECK(
      read("a,b\"c\nd\n") ==
      Lines{"2:1=d",
            "t.csv:1:4: a quote within a cell that does not begin with one (put the whole cell in quotes and "
            "double those that it holds)"});
  CHECK(
      read("\"a\" ,b\nd\n") ==
      Lines{"2:1=d",
            "t.csv:1:4: text behind the closing quote of a cell (a comma or the end of the line must follow; "
            "double a quote that the cell holds)"});
  CHECK(read("a\n\"b,c\nd\n") == Lines{"1:1=a", "t.csv:2:1: a quote that opens here is never closed"});
  CHECK(read("a\rb\nc") ==
        Lines{"2:1=c", "t.csv:1:2: a carriage return alone ends no line (end lines with a line feed)"});
  CHECK(read("a\r") == Lines{"t.csv:1:2: a carriage return alone ends no line (end lines with a line feed)"});
}

TEST_CASE("a row of too many cells is refused before they are kept") {
  CHECK(read(std::string(9'999, ',') + "\nx").size() == 2);
  CHECK(read(std::string(10'000, ',') + "\nx") ==
        Lines{"2:1=x", "t.csv:1:10001: more than 10000 cells in one row"});
}

// The rows of a table in a folder of its own, as `line:column key=value ... @target when.key=value`, then the
// errors without the folder.
class TableTest {
 public:
  explicit TableTest(std::string_view text) {
    folder_.write("sub/t.csv", text);
    rows_ = tables_.rows(path_, "sub", false);
  }
  Lines lines() {
    Lines out;
    for (const TableRow& row : rows_ != nullptr ? *rows_ : std::vector<TableRow>()) {
      std::string line =
          std::to_string(row.selection.place.line) + ':' + std::to_string(row.selection.place.column);
      for (const auto& pair : row.selection.pairs) line += ' ' + pair.key.text + '=' + pair.value.text;
      if (row.target) line += " @" + row.target->text;
      for (const auto& pair : row.when) line += " when." + pair.key.text + '=' + pair.value.text;
      out.push_back(line);
    }
    for (const kc::base::Error& error : faults_.take_errors()) {
      std::string text = error.text();
      const size_t at = text.find(folder_.path());
      if (at != std::string::npos) text.erase(at, folder_.path().size() + 1);
      out.push_back(text);
    }
    CHECK((rows_ == nullptr) == (faults_.count() != 0));
    return out;
  }
  const std::vector<TableRow>* rows() const { return rows_; }
  const std::vector<TableRow>* rows_again() { return tables_.rows(path_, "sub", false); }
  const std::vector<kc::manifest::Input>& inputs() const { return inputs_; }
  const kc::test::TempFolder& folder() const { return folder_; }

 private:
  kc::test::TempFolder folder_;
  std::vector<kc::manifest::Input> inputs_;
  Faults faults_{"kernels.yaml"};
  kc::manifest::Tables tables_{folder_.path(), inputs_, faults_};
  kc::manifest::Text path_{"t.csv", {3, 4, 0}};
  const std::vector<TableRow>* rows_ = nullptr;
};

Lines table(std::string_view text) {
  return TableTest(text).lines();
}

TEST_CASE("a table gives a selection for each row with its target and selection data") {
  CHECK(table("\xef\xbb\xbfTM,option.opt,target,when.m\n064,3,sm_90,1\n,,,2\n32,,,\n") ==
        Lines{"2:1 TM=064 option.opt=3 @sm_90 when.m=1", "3:1 when.m=2", "4:1 TM=32"});
  TableTest test("TM,TN\n64,128\n");
  REQUIRE(test.rows() != nullptr);
  const auto& pair = test.rows()->at(0).selection.pairs.at(1);
  CHECK(pair.key.place.line == 1);
  CHECK(pair.key.place.column == 4);
  CHECK(pair.value.place.line == 2);
  CHECK(pair.value.place.column == 4);
  CHECK(pair.value.place.file == 1);
  // Read once, and an input with its digest.
  CHECK(test.rows_again() == test.rows());
  REQUIRE(test.inputs().size() == 1);
  CHECK(test.inputs()[0].path == test.folder() / "sub/t.csv");
  CHECK(test.inputs()[0].pattern.empty());
  CHECK(test.inputs()[0].digest == kc::base::sha256(std::string_view("TM,TN\n64,128\n")));
  CHECK(test.inputs()[0].tuple.size == 13);
}

TEST_CASE("what is wrong in a table is named by its own line and column") {
  const auto header = [](const std::string& name) {
    return "the column " + name +
           " is no configuration key, nor `option.` or `when.` with one behind it, nor `target`";
  };
  CHECK(table("TM,TN,TM\n1,2,3\n") ==
        Lines{"sub/t.csv:1:7: the column \"TM\" is there twice: as column 1 and column 3"});
  CHECK(table("T M,,option.,when.,when.3,9\n1,2,3,4,5,6\n") ==
        Lines{"sub/t.csv:1:1: " + header("\"T M\""), "sub/t.csv:1:5: a column without a name",
              "sub/t.csv:1:6: " + header("\"option.\""), "sub/t.csv:1:14: " + header("\"when.\""),
              "sub/t.csv:1:20: " + header("\"when.3\""), "sub/t.csv:1:27: " + header("\"9\"")});
  CHECK(
      table("TM,TN\n1\n1,2,3\n\n,\n1,2\n") ==
      Lines{
          "sub/t.csv:2:1: this row has 1 cell, and the header 2",
          "sub/t.csv:3:5: this row has 3 cells, and the header 2",
          "sub/t.csv:4:1: a row in which every cell is empty (an empty cell means that the row has not that "
          "key)",
          "sub/t.csv:5:1: a row in which every cell is empty (an empty cell means that the row has not that "
          "key)"});
  CHECK(table("TM\n" + std::string(1025, 'x') + "\n" + std::string(1024, 'x') + "\n") ==
        Lines{"sub/t.csv:2:1: a value of 1025 bytes; at most 1024 are allowed"});
  CHECK(table("") == Lines{"sub/t.csv: the table is empty (its first row names its columns)"});
  CHECK(table("TM,TN\r\n") ==
        Lines{"sub/t.csv: the table has no row behind its header (a row is a specialization)"});
  CHECK(table("TM\n\"1\n") == Lines{"sub/t.csv:2:1: a quote that opens here is never closed"});
  CHECK(table(std::string_view("TM\n1\0\n", 6)) ==
        Lines{"sub/t.csv:2:2: the control byte 0x00 is not allowed here"});
  CHECK(table("TM\n1\n\xff\n") == Lines{"sub/t.csv:3:1: not UTF-8: the byte 0xff is misplaced"});
}

TEST_CASE("a table at fault is reported once and a missing one wherever it is named") {
  TableTest test("TM\n\"");
  CHECK(test.rows_again() == nullptr);
  CHECK(test.lines().size() == 1);
  std::vector<kc::manifest::Input> inputs;
  Faults faults("kernels.yaml");
  kc::manifest::Tables tables(test.folder().path(), inputs, faults);
  CHECK(tables.rows({"u.csv", {3, 4, 0}}, "sub", false) == nullptr);
  CHECK(tables.rows({"sub/u.csv", {5, 6, 0}}, "", false) == nullptr);
  CHECK(tables.rows({"sub", {7, 8, 0}}, "", false) == nullptr);
  CHECK(tables.rows({"/t.csv", {9, 1, 0}}, "", false) == nullptr);
  CHECK(inputs.empty());
  Lines lines;
  for (const kc::base::Error& error : faults.take_errors()) lines.push_back(error.text());
  CHECK(lines == Lines{"kernels.yaml:3:4: the table \"u.csv\" does not exist (did you mean \"t.csv\"?)",
                       "kernels.yaml:5:6: the table \"sub/u.csv\" does not exist (did you mean \"t.csv\"?)",
                       "kernels.yaml:7:8: the table \"sub\" is a directory, not a file",
                       "kernels.yaml:9:1: the table \"/t.csv\" is an absolute path: absolute paths need "
                       "`allow_absolute_paths: true` in the top manifest"});
  CHECK(tables.rows({test.folder() / "sub/t.csv", {9, 1, 0}}, "", true) == nullptr);
  CHECK(inputs.size() == 1);
}

TEST_CASE("tables of twenty thousand rows are read") {
  std::string text = "k0,k1,k2,k3,k4,k5,k6,k7,k8,k9\n";
  for (int row = 0; row < 20'000; ++row) {
    const std::string number = std::to_string(row);
    for (int i = 0; i < 10; ++i) text += number + (i == 9 ? '\n' : ',');
  }
  TableTest test(text);
  REQUIRE(test.rows() != nullptr);
  CHECK(test.rows()->size() == 20'000);
  CHECK(test.rows()->back().selection.pairs.size() == 10);
  CHECK(test.rows()->back().selection.pairs.back().value.text == "19999");
}

TEST_CASE("the cells of all tables are counted together before they are kept") {
  const kc::test::TempFolder folder;
  folder.write("t.csv", "a,b\n1,2\n3,4\n");
  folder.write("u.csv", "a\n1\n2\n3\n");
  std::vector<kc::manifest::Input> inputs;
  Faults faults("m");
  kc::manifest::Tables tables(folder.path(), inputs, faults, 6);
  CHECK(tables.rows({"t.csv", {1, 1, 0}}, "", false) != nullptr);
  CHECK(tables.rows({"u.csv", {1, 1, 0}}, "", false) == nullptr);
  const std::vector<kc::base::Error> errors = faults.take_errors();
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].text() ==
        (folder / "u.csv") +
            ":4:1: the tables of the manifest have too many cells with this row (they may "
            "have 2000000 in all)");
}

}  // namespace
