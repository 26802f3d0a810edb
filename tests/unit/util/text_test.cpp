#include "util/text.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "util/json.h"

using namespace kc::util;
using Names = std::vector<std::string>;

TEST_CASE("escape leaves text and well-formed UTF-8 as it is") {
  CHECK(escape("a b\\c \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80") ==
        "a b\\c \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80");
  CHECK(escape("").empty());
}

TEST_CASE("escape shows every control byte as hexadecimal") {
  for (int c = 0; c < 0x20; ++c)
    CHECK(escape(std::string(1, static_cast<char>(c))) == format("\\x{:02x}", c));
  CHECK(escape("\x1b[31m") == "\\x1b[31m");
  CHECK(escape("\x7f") == "\\x7f");
}

TEST_CASE("escape shows C1 and bidirectional controls byte by byte") {
  CHECK(escape("\xc2\x9b"
               "31m") == "\\xc2\\x9b31m");
  CHECK(escape("\xc2\xa0") == "\xc2\xa0");
  CHECK(escape("\xe2\x80\xaa") == "\\xe2\\x80\\xaa");  // U+202A
  CHECK(escape("\xe2\x80\xae") == "\\xe2\\x80\\xae");  // U+202E
  CHECK(escape("\xe2\x80\xaf") == "\xe2\x80\xaf");     // U+202F, a space
  CHECK(escape("\xe2\x81\xa6") == "\\xe2\\x81\\xa6");  // U+2066
  CHECK(escape("\xe2\x81\xa9") == "\\xe2\\x81\\xa9");  // U+2069
}

TEST_CASE("escape keeps line feeds and tabs only in multi-line text") {
  CHECK(escape("a\n\tb\r") == "a\\x0a\\x09b\\x0d");
  CHECK(escape("a\n\tb\r", true) == "a\n\tb\\x0d");
}

TEST_CASE("malformed UTF-8 is found in each of its forms") {
  const Names malformed = {"\x80",              // a continuation alone
                           "\xc3",              // cut
                           "\xc0\xaf",          // overlong /
                           "\xe0\x80\x80",      // overlong
                           "\xed\xa0\x80",      // a surrogate
                           "\xf4\x90\x80\x80",  // above U+10FFFF
                           "\xf5\x80\x80\x80",
                           "\xff",
                           "\xc3"
                           "A"};
  for (const std::string& text : malformed) {
    CHECK_FALSE(is_valid_utf8(text));
    CHECK(escape(text).starts_with("\\x"));
  }
  CHECK(is_valid_utf8("\xf4\x8f\xbf\xbf"));
}

TEST_CASE("the nearest name is the one at the least distance") {
  const Names names = {"targets", "sources", "entry", "symbol"};
  CHECK(nearest("target", names) == "targets");
  CHECK(nearest("soruces", names) == "sources");
  CHECK(nearest("ENTRY", names) == "entry");
  CHECK(nearest("banana", names) == std::nullopt);
  CHECK(nearest("x", Names{"y"}) == "y");
  CHECK(nearest("", names) == std::nullopt);
  CHECK(nearest("entry", Names{}) == std::nullopt);
  CHECK(did_you_mean("entyr", names) == "did you mean \"entry\"?");
  CHECK(did_you_mean("banana", names).empty());
}

TEST_CASE("a very long name has no nearest and costs nothing") {
  const std::string name(1 << 20, 'a');
  CHECK(nearest(name, Names{name}) == std::nullopt);
}

TEST_CASE("counts and lists read as English") {
  CHECK(counted(0, "unit") == "0 units");
  CHECK(counted(1, "unit") == "1 unit");
  CHECK(counted(2, "entry", "entries") == "2 entries");
  CHECK(listed(Names{}).empty());
  CHECK(listed(Names{"a"}) == "a");
  CHECK(listed(Names{"a", "b"}) == "a and b");
  CHECK(listed(Names{"a", "b", "c"}) == "a, b and c");
  CHECK(listed(Names{"a", "b", "c", "d"}, 2) == "a, b and 2 more");
}

TEST_CASE("sizes are printed in powers of 1024 and never as 1024 of a unit") {
  CHECK(size_text(0) == "0 B");
  CHECK(size_text(1023) == "1023 B");
  CHECK(size_text(23245) == "22.7 KiB");
  CHECK(size_text((1U << 20) - 1) == "1.0 MiB");
  CHECK(size_text(UINT64_MAX) == "16.0 EiB");
}

TEST_CASE("sizes are read with and without unit") {
  CHECK(parse_size("4096") == 4096);
  CHECK(parse_size("12B") == 12);
  CHECK(parse_size("64KiB") == 64 << 10);
  CHECK(parse_size("64KB") == 64 << 10);
  CHECK(parse_size("2G") == 2ULL << 30);
  CHECK(parse_size("3Mi") == 3 << 20);
  CHECK(parse_size("17179869183G") == 17179869183ULL << 30);
  for (const char* text : {"", "K", "-1", "1.5G", "1 K", "1k", "1T", "1KiBs", "1iB", "17179869184G",
                           "18446744073709551616", "99999999999999999999K"}) {
    CHECK(parse_size(text) == std::nullopt);
  }
}

TEST_CASE("numbers are decimal digits within bounds") {
  CHECK(parse_number("0", 0, 9) == 0);
  CHECK(parse_number("18446744073709551615", 0, UINT64_MAX) == UINT64_MAX);
  for (const char* text : {"", "+1", "-1", " 1", "1 ", "0x1", "10", "18446744073709551616"}) {
    CHECK(parse_number(text, 0, 9) == std::nullopt);
  }
  CHECK(parse_number("2", 3, 9) == std::nullopt);
}

TEST_CASE("a glob matches the whole text") {
  CHECK(glob_match("matmul:*@sm_90", "matmul:TM=64@sm_90"));
  CHECK_FALSE(glob_match("matmul", "matmul:TM=64"));
  CHECK(glob_match("*", ""));
  CHECK(glob_match("", ""));
  CHECK_FALSE(glob_match("?", ""));
  CHECK(glob_match("a?c", "abc"));
  CHECK(glob_match("*a*b*", "xxaxxbxx"));
  CHECK_FALSE(glob_match("*a*b", "xxaxxbxx"));
  CHECK(glob_match("sm_[89]?", "sm_86"));
  CHECK(glob_match("[a-c]x", "bx"));
  CHECK_FALSE(glob_match("[a-c]x", "dx"));
  CHECK(glob_match("[!a-c]x", "dx"));
  CHECK_FALSE(glob_match("[!a-c]x", "ax"));
  CHECK(glob_match("[]]", "]"));
  CHECK(glob_match("[a-]", "-"));
  CHECK(glob_match("a[b", "a[b"));
  CHECK(glob_match("*[0-9]*[0-9]", "a1b22"));
}

TEST_CASE("a glob of many stars ends soon") {
  std::string pattern;
  for (int i = 0; i < 100; ++i) pattern += "*a";
  CHECK_FALSE(glob_match(pattern + "b", std::string(10'000, 'a')));
}

TEST_CASE("split and join are each other's reverse") {
  CHECK(split("", ',') == Names{""});
  CHECK(split("a,,b,", ',') == Names{"a", "", "b", ""});
  CHECK(join(split("a,,b,", ','), ",") == "a,,b,");
  CHECK(join(Names{}, ",").empty());
}

TEST_CASE("trim removes white space at both ends alone") {
  CHECK(trim(" \t a b \r\n") == "a b");
  CHECK(trim(" \n").empty());
}

TEST_CASE("a JSON line is printable ASCII whatever it says") {
  const std::string line = dump_line(Json{{"b", "x\ny"}, {"a", "\xff"}});
  CHECK(line == R"({"b":"x\ny","a":"\ufffd"})");
  // DEL, a C1 control, a right-to-left override, a line separator, and what lies beyond 16 bits.
  const std::string odd = "\x7f \xc2\x9b \xe2\x80\xae \xe2\x80\xa8 \xf0\x9f\x8c\x8d \x1b";
  CHECK(dump_line(Json(odd)) == R"("\u007f \u009b \u202e \u2028 \ud83c\udf0d \u001b")");
  CHECK(Json::parse(dump_line(Json(odd))) == odd);
}
