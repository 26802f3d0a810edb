#include "config/yaml_reader.h"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using kc::config::read_yaml;
using kc::config::YamlKind;
using kc::config::YamlLimits;
using kc::config::YamlNode;
using kc::config::YamlPair;
using kc::config::YamlRead;

std::string repeat(std::string_view piece, size_t times) {
  std::string out;
  out.reserve(piece.size() * times);
  for (size_t i = 0; i < times; ++i) out += piece;
  return out;
}

// The document as one line: maps in {}, lists in [], `~` for null, quoted scalars in '', each with its place
// when asked for.
std::string print(const YamlNode& node, bool places) {
  std::string out;
  switch (node.kind()) {
    case YamlKind::kNull:
      out = "~";
      break;
    case YamlKind::kScalar:
      out = node.is_plain() ? std::string(node.text()) : "'" + std::string(node.text()) + "'";
      break;
    case YamlKind::kSequence:
      for (const YamlNode item : node.items()) out += (out.empty() ? "" : " ") + print(item, places);
      out = "[" + out + "]";
      break;
    case YamlKind::kMap:
      for (const YamlPair pair : node.pairs()) {
        out += (out.empty() ? "" : " ") + print(pair.key, places) + "=" + print(pair.value, places);
      }
      out = "{" + out + "}";
      break;
  }
  if (places) out += "@" + std::to_string(node.place().line) + ":" + std::to_string(node.place().column);
  return out;
}

std::string document_of(std::string_view text, bool places = false) {
  const YamlRead read = read_yaml("m.yaml", text);
  for (const kc::base::Error& error : read.errors) MESSAGE(error.text());
  REQUIRE(read.errors.empty());
  REQUIRE(read.document.has_value());
  return print(read.document->root(), places);
}

std::vector<std::string> errors_of(std::string_view text, const YamlLimits& limits = {}) {
  std::vector<std::string> out;
  for (const kc::base::Error& error : read_yaml("m.yaml", text, limits).errors) {
    CHECK(error.kind == kc::base::ErrorKind::kInput);
    out.push_back(error.text());
  }
  return out;
}

// Peak resident bytes that reading `text` adds, in a process of its own so that nothing else is counted.
uint64_t peak_bytes_of(const std::string& text) {
  int pipe_ends[2];
  REQUIRE(pipe(pipe_ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    rusage before{};
    getrusage(RUSAGE_SELF, &before);
    const YamlRead read = read_yaml("m.yaml", text);
    rusage after{};
    getrusage(RUSAGE_SELF, &after);
    const uint64_t grown = static_cast<uint64_t>(after.ru_maxrss - before.ru_maxrss) * 1024;
    const bool told = write(pipe_ends[1], &grown, sizeof grown) == sizeof grown && !read.errors.empty();
    _exit(told ? 0 : 1);
  }
  REQUIRE(child > 0);
  close(pipe_ends[1]);
  uint64_t grown = 0;
  REQUIRE(read(pipe_ends[0], &grown, sizeof grown) == sizeof grown);
  close(pipe_ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  return grown;
}

struct Case {
  std::string text;
  std::string expected;
};

TEST_CASE("scalars keep the text that was written and say whether they were quoted") {
  const std::vector<Case> cases = {
      {"[064, 1.0, true, 1e3, 0x10, No]", "[064 1.0 true 1e3 0x10 No]"},
      {"['064', \"1.0\"]", "['064' '1.0']"},
      {"['it''s', \"\\\"\", &a \"b\", &c'd 'e', '']", "['it's' '\"' 'b' 'e' '']"},
      {"a: \"null\"", "{a='null'}"},
      {"a: |\n  two\n  lines\nb: >\n  folded\n  line\n", "{a='two\nlines\n' b='folded line\n'}"},
      {"a: one\n  two", "{a=one two}"},
      {"a: \"\\u00e9\\x41\"", "{a='\xc3\xa9\x41'}"},
      {"\xef\xbb\xbf"
       "a: 1",
       "{a=1}"},
      {"a: 1\r\nb: 2\r\n", "{a=1 b=2}"},
      {"--- # one\na: 1\n...\n# end\n", "{a=1}"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    CHECK(document_of(c.text) == c.expected);
  }
}

TEST_CASE("null is told from empty text") {
  CHECK(document_of("{a: , b: ~, c: null, d: '', e: \"\"}") == "{a=~ b=~ c=~ d='' e=''}");
  CHECK(document_of("a:\nb:\n  -\n  - ''\n") == "{a=~ b=[~ '']}");
}

TEST_CASE("every node knows its line and column from 1") {
  CHECK(document_of("a: 1\nbb:\n  - x\n  - {c: 'd'}\n", true) ==
        "{a@1:1=1@1:4 bb@2:1=[x@3:5 {c@4:6='d'@4:9}@4:5]@3:3}@1:1");
}

TEST_CASE("an alias reads as what it stands for with the place of that") {
  CHECK(document_of("a: &x {b: [1, 2]}\nc: *x\nd: [*x]\n") == "{a={b=[1 2]} c={b=[1 2]} d=[{b=[1 2]}]}");
  CHECK(document_of("a: &x v\nb: *x\n*x : 1\n", true) == "{a@1:1=v@1:4 b@2:1=v@1:4 v@1:4=1@3:6}@1:1");
  CHECK(document_of("[&x 1, &x 2, *x]") == "[1 2 2]");
}

TEST_CASE("a text that cannot be read gives one error with its cause and place") {
  const std::vector<Case> cases = {
      {"", "m.yaml: is empty"},
      {"# only this\n", "m.yaml: is empty: it holds no YAML but comments"},
      {"---\n", "m.yaml: is empty: it holds no YAML but comments"},
      {"~", "m.yaml: is empty: it holds no YAML but comments"},
      {"a: 1\nb: caf\xe9\n", "m.yaml:2:7: not UTF-8: the byte 0xe9 is misplaced"},
      {"a: \xc0\xaf", "m.yaml:1:4: not UTF-8: the byte 0xc0 is misplaced"},
      {"a: \xed\xa0\x80", "m.yaml:1:4: not UTF-8: the byte 0xed is misplaced"},
      {"a: \xf4\x90\x80\x80", "m.yaml:1:4: not UTF-8: the byte 0xf4 is misplaced"},
      {"a: \xe2\x82", "m.yaml:1:4: not UTF-8: the byte 0xe2 is misplaced"},
      {"\xff\xfe"
       "a",
       "m.yaml:1:1: not UTF-8: the byte 0xff is misplaced"},
      {"a: 1\nb: \x1b[2J", "m.yaml:2:4: the control byte 0x1b is not allowed in YAML"},
      {"a: 1\x04", "m.yaml:1:5: the control byte 0x04 is not allowed in YAML"},
      {std::string("a\0: 1", 5), "m.yaml:1:2: the control byte 0x00 is not allowed in YAML"},
      {"a: 1\n---\nb: 2\n", "m.yaml:2:1: a second document begins here; a file holds one"},
      {",", "m.yaml:1:1: not YAML: unexpected text behind the end of the document"},
      {"a: [1, 2\n", "m.yaml:2:1: not YAML: end of sequence flow not found"},
      {"a: 'x", "m.yaml:1:6: not YAML: illegal EOF in scalar"},
      {"a: 'x\n", "m.yaml:1:4: not YAML: a quote that opens here is never closed"},
      {"a: \"x\\\"\nb: 1\n", "m.yaml:1:4: not YAML: a quote that opens here is never closed"},
      {"a: &b 'it''s\n", "m.yaml:1:4: not YAML: a quote that opens here is never closed"},
      {"a: \"\u00e9\\", "m.yaml:1:8: not YAML: the text ends behind a backslash within quotes"},
      {"a: 1\nb: \"x\\", "m.yaml:2:7: not YAML: the text ends behind a backslash within quotes"},
      {"a: b: c\n", "m.yaml:1:5: not YAML: illegal map value"},
      {"a: *b\n", "m.yaml:1:4: not YAML: the referenced anchor is not defined"},
      {"a: &a [1, *a]\n", "m.yaml:1:11: an alias within the anchor that it stands for: it would never end"},
      {"a: &a {b: {c: *a}}\n",
       "m.yaml:1:15: an alias within the anchor that it stands for: it would never end"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const YamlRead read = read_yaml("m.yaml", c.text);
    CHECK(!read.document.has_value());
    REQUIRE(read.errors.size() == 1);
    CHECK(read.errors[0].text().starts_with(c.expected));
    CHECK(read.errors[0].kind == kc::base::ErrorKind::kInput);
  }
}

TEST_CASE("faults that leave a document are all reported in order of place") {
  CHECK(errors_of("a: 1\nb: {c: 1, d: 2, c: 3}\na: !!int 4\n'a': 5\n") ==
        std::vector<std::string>{"m.yaml:2:17: the key \"c\" is written twice, first at line 2, column 5",
                                 "m.yaml:3:1: the key \"a\" is written twice, first at line 1, column 1",
                                 "m.yaml:3:4: the tag \"tag:yaml.org,2002:int\" is not supported (values are "
                                 "text as written; leave the "
                                 "tag out)",
                                 "m.yaml:4:1: the key \"a\" is written twice, first at line 3, column 1"});
  CHECK(errors_of("a: {[1]: 2, ~: 3}\n? {b: c}\n: 4\n") ==
        std::vector<std::string>{"m.yaml:1:5: a key must be a value, not a collection",
                                 "m.yaml:1:13: a key is missing",
                                 "m.yaml:2:3: a key must be a value, not a collection"});
  CHECK(read_yaml("m.yaml", "a: 1\na: 2\n").document.has_value());
}

TEST_CASE("a key written by an alias counts for duplicates") {
  CHECK(errors_of("b: &x a\n*x : 1\na: 2\n") ==
        std::vector<std::string>{"m.yaml:3:1: the key \"a\" is written twice, first at line 1, column 4"});
}

TEST_CASE("errors that a hostile text could give by the million are cut off") {
  CHECK(errors_of(repeat("a: 1\n", 5000)).size() == 1000);
}

TEST_CASE("nodes are counted up to the limit and not beyond") {
  YamlLimits limits;
  limits.nodes = 10;
  CHECK(errors_of("[1, 2, 3, 4, 5, 6, 7, 8, 9]", limits).empty());
  CHECK(errors_of("[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]", limits) ==
        std::vector<std::string>{
            "m.yaml:1:29: more than 10 nodes (an alias counts as all that it stands for)"});
  CHECK(errors_of("a: &x [1, 2]\nb: *x\n", limits).empty());         // 1 + 1 + 3 + 1 + 3
  CHECK(errors_of("a: &x [1, 2, 3]\nb: *x\n", limits).size() == 1);  // 1 + 1 + 4 + 1 + 4
  CHECK(errors_of("- - - - - - - - - 1\n", limits).empty());         // block nodes as well
  CHECK(errors_of("- - - - - - - - - - 1\n", limits).size() == 1);
}

TEST_CASE("depth is bounded in brackets and in block style and through aliases") {
  YamlLimits limits;
  limits.depth = 4;
  const std::string deeper = "collections nested deeper than 4 levels";
  CHECK(errors_of("[[[[1]]]]", limits).empty());
  CHECK(errors_of("[[[[[1]]]]]", limits) == std::vector<std::string>{"m.yaml:1:5: " + deeper});
  CHECK(errors_of("- - - - 1", limits).empty());
  CHECK(errors_of("- - - - - 1", limits) == std::vector<std::string>{"m.yaml:1:9: " + deeper});
  CHECK(errors_of("a:\n b:\n  c:\n   d: 1\n", limits).empty());
  CHECK(errors_of("a:\n b:\n  c:\n   d:\n    e: 1\n", limits) ==
        std::vector<std::string>{"m.yaml:5:5: " + deeper});
  CHECK(errors_of("- &x [[1]]\n- [*x]\n", limits).empty());
  CHECK(errors_of("- &x [[1]]\n- &y [*x]\n- [*y]\n", limits) ==
        std::vector<std::string>{"m.yaml:3:4: " + deeper});
}

TEST_CASE("bytes are bounded") {
  YamlLimits limits;
  limits.bytes = 4;
  CHECK(errors_of("a: 1", limits).empty());
  CHECK(errors_of("a: 12", limits) == std::vector<std::string>{"m.yaml: has 5 bytes; at most 4 are read"});
}

TEST_CASE("ten levels of tenfold aliases are refused by counting") {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    text +=
        "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + last + repeat(", " + last, 9) + "]\n";
  }
  const std::vector<std::string> errors = errors_of(text);
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].find("more than 1000000 nodes") != std::string::npos);
  CHECK(errors[0].starts_with("m.yaml:6:"));
}

TEST_CASE("commas and brackets count as nodes before anything is parsed wherever they stand") {
  YamlLimits limits;
  limits.nodes = 5;
  CHECK(errors_of("[,,,,,,,,", limits) == std::vector<std::string>{"m.yaml:1:6: more than 5 nodes"});
  // Behind the # of what looks like a comment a quote may end: all of it counts.
  CHECK(errors_of("a: [\"b\n #\",c,c,c,c,c,c]\n", limits) ==
        std::vector<std::string>{"m.yaml:2:12: more than 5 nodes"});
  CHECK(errors_of("a: \"b\r#\"\nc: [[[[[[\n", limits) ==
        std::vector<std::string>{"m.yaml:2:9: more than 5 nodes"});
}

TEST_CASE("text behind a hash in a quote cannot hide a collection in brackets") {
  std::string text = "x-a: [\"a\n #\"," + repeat("[", 50);
  text += repeat("{a: b},", ((8U << 20) - text.size() - 60) / 7);
  CHECK(peak_bytes_of(text) < (64U << 20));
}

TEST_CASE("text that aliases stand for is bounded by what a file may have") {
  const std::string expected = "more than 8388608 bytes of text (an alias counts as all that it stands for)";
  const std::string big = "x-a: &a '" + repeat("x", 4U << 20) + "'\n";
  CHECK(errors_of(big + "b: *a\n").size() == 1);  // 4 MiB twice and the keys beside them
  CHECK(errors_of(big + "sources: [" + repeat("*a ,", 1500) + "*a ]\n") ==
        std::vector<std::string>{"m.yaml:2:11: " + expected});
  YamlLimits limits;
  limits.bytes = 40;
  // Through a collection: 1 + 6 bytes, and 1 + 6 for each alias.
  CHECK(errors_of("a: &x [abcdef]\nb: *x\nc: [*x]\n", limits).empty());
  CHECK(errors_of("a: &x [abcdefghi]\nb: [*x, *x, *x]\n", limits).empty());
  CHECK(errors_of("a: &x [abcdefghi]\nb: [*x,*x,*x,*x]\n", limits) ==
        std::vector<std::string>{
            "m.yaml:2:14: more than 40 bytes of text (an alias counts as all that it stands for)"});
  // A key counts as well.
  CHECK(errors_of("&x abcdefghij : 1\n[*x,*x,*x,*x]: 2\n", limits).size() == 1);
}

TEST_CASE("a key is bounded whether written or by an alias") {
  const std::string longest(1024, 'k');
  CHECK(errors_of("? " + longest + "\n: 1\n").empty());
  CHECK(errors_of("? " + longest + "k\n: 1\n") ==
        std::vector<std::string>{"m.yaml:1:3: a key of 1025 bytes; at most 1024 are read"});
  CHECK(errors_of("a: &a " + longest + "k\n*a : 1\n") ==
        std::vector<std::string>{"m.yaml:2:1: a key of 1025 bytes; at most 1024 are read"});
  CHECK(errors_of("a: &a " + longest + "\n*a : 1\n").empty());
}

TEST_CASE("a hundred thousand tags cost no time to look for quotes behind them") {
  const auto seconds = [](const std::string& text) {
    const std::clock_t start = std::clock();
    CHECK(!read_yaml("m.yaml", text).errors.empty());
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  };
  const std::string tail = "]\n";
  CHECK(seconds("x-a: [" + repeat("!a,", 100'000) + "!a" + tail) < 5);
  CHECK(seconds("x-a: [" + repeat("!,", 100'000) + "!a" + tail) < 5);
  CHECK(seconds("x-a: [" + repeat("!a\"b\",", 100'000) + "!a" + tail) < 5);
}

TEST_CASE("a quote that is never closed is found behind tags and anchors of any form") {
  const std::string open = "not YAML: a quote that opens here is never closed";
  for (const char* text : {"a: ! 'x\n", "a: !\"x\n", "a: &b ! \"x\n", "a: &b'c \"x\n"}) {
    CAPTURE(text);
    CHECK(errors_of(text) == std::vector<std::string>{"m.yaml:1:4: " + open});
  }
  CHECK(document_of("a: ! 'x'\nb: [!,! ,! '']\nc: &d ''\n") == "{a='x' b=['' '' ''] c=''}");
}

TEST_CASE("tabs that indent and carriage returns that end no line are named in a hint") {
  for (const char* text : {"a:\n\tb: 1\n", "a:\n  b: 1\n\tc: 2\n", "a:\n  - b\n\t- c\n"}) {
    CAPTURE(text);
    const std::vector<std::string> errors = errors_of(text);
    REQUIRE(errors.size() == 1);
    CHECK(errors[0].ends_with("(a tab indents this line; indent with spaces)"));
  }
  const std::vector<std::string> errors = errors_of("version: 1\rkernels:\r  - name: k\r");
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].ends_with("(a carriage return alone ends no line; end lines with a line feed)"));
  CHECK(errors_of("a: 1\r\nb: c: d\r\n") ==
        std::vector<std::string>{"m.yaml:2:5: not YAML: illegal map value"});
}

TEST_CASE("patterns and templates without quotes get a hint to quote them") {
  const std::string pattern = "(quote a pattern that begins with *, which is YAML's alias otherwise)";
  const std::string first = "(quote a value that begins with @, ` or %)";
  const std::string brackets = "(quote a value that holds brackets or braces)";
  const std::string alias = "(an alias stands behind its anchor, which begins with &)";
  const std::pair<const char*, const std::string&> cases[] = {
      {"a: *.loom\n", pattern},
      {"a: **/b\n", pattern},
      {"a: [b, *.c]\n", pattern},
      {"a: *.loom", pattern},
      {"a: @list.txt\n", first},
      {"a: `b`\n", first},
      {"a: {T}.loom\n", brackets},
      {"a: [b_{T}.loom]\n", brackets},
      {"a: [xy].loom\n", brackets},
      {"a: { b: c_{T} }\n", brackets},
      {"a: *b\n", alias},
      {"a: { <<: *b }\n", alias},
      {"a: *b", alias},
  };
  for (const auto& [text, hint] : cases) {
    CAPTURE(text);
    const std::vector<std::string> errors = errors_of(text);
    REQUIRE(errors.size() == 1);
    CHECK(errors[0].ends_with(hint));
  }
  for (const char* text : {"a: b: c\n", "a: [b\n", "a: [b}\n"}) {
    CAPTURE(text);
    const std::vector<std::string> errors = errors_of(text);
    REQUIRE(errors.size() == 1);
    CHECK(!errors[0].ends_with(")"));
  }
}

TEST_CASE("a file of a thousand deep brackets or dashes or question marks ends in an error") {
  for (const char* piece : {"[", "{", "- ", "? ", "{a: ", "[[a: ", "!a [", "&a [", "- [", "? - "}) {
    CAPTURE(piece);
    CHECK(errors_of(repeat(piece, 1000)).size() >= 1);
    CHECK(errors_of(repeat(piece, 100'000)).size() >= 1);
  }
}

TEST_CASE("every short text of indicators is read or refused") {
  // yaml-cpp is built with its assertions in some distributions: one that fails would end the process.
  const std::string alphabet = "[]{},:?-!&*'\"#|>%@\n a<.";
  std::string text;
  for (const char a : alphabet) {
    for (const char b : alphabet) {
      for (const char c : alphabet) {
        text = {a, b, c};
        const YamlRead read = read_yaml("m.yaml", text);
        CHECK_MESSAGE((read.document.has_value() || read.errors.size() == 1), text);
      }
    }
  }
}

TEST_CASE("two million nodes in brackets are refused within 64 MB") {
  CHECK(peak_bytes_of("[" + repeat("1,", 2U << 20) + "1]") < (64U << 20));
  CHECK(peak_bytes_of(repeat("[", 4U << 20)) < (64U << 20));
  CHECK(peak_bytes_of("a: {" + repeat("b: 1, ", 1'200'000) + "}") < (64U << 20));
}

TEST_CASE("four MiB of lists in lists written in lines are refused within 64 MB") {
  // AddressSanitizer surrounds each of yaml-cpp's many small blocks.
#ifdef __SANITIZE_ADDRESS__
  constexpr uint64_t kMost = 512U << 20;
#else
  constexpr uint64_t kMost = 64U << 20;
#endif
  CHECK(peak_bytes_of(repeat(repeat("- ", 60) + "x\n", (4U << 20) / 122)) < kMost);
}

TEST_CASE("lists and maps written in lines have a number of their own") {
  YamlLimits limits;
  limits.block_collections = 3;
  CHECK(errors_of("- a\n- [b, {c: d}, [e]]\n- f: g\n- - h\n", limits).empty());
  CHECK(
      errors_of("- a: b\n- c: d\n- - e\n", limits) ==
      std::vector<std::string>{"m.yaml:3:3: more than 3 lists and maps that are written in lines (write the "
                               "small ones in brackets)"});
}

TEST_CASE("tokens that hold no comma cannot pile up in one collection") {
  for (const char* piece : {"? ", "\"\"", "&a "}) {
    CAPTURE(piece);
    const std::string text = "[" + repeat(piece, 1'510'000);
    const std::vector<std::string> errors = errors_of(text);
    REQUIRE(errors.size() == 1);
    CHECK(errors[0] == "m.yaml:1:1: a collection in brackets that begins behind here is too large");
  }
}

TEST_CASE("a manifest written as one JSON line is read however large") {
  std::string text = "{\"kernels\": [{\"name\": \"k\", \"list\": [1, 2, 3]}";
  text += repeat(",{\"name\":\"k\",\"list\":[1,2,3]}", 30'000) + "]}";
  const YamlRead read = read_yaml("m.yaml", text);
  CHECK(read.errors.empty());
  REQUIRE(read.document.has_value());
  for (const YamlPair pair : read.document->root().pairs()) CHECK(pair.value.size() == 30'001);
}

TEST_CASE("every node of a file carries the number of the file and places sort by it first") {
  const YamlRead read = read_yaml("m.yaml", "a: &x [1, {b: 2}]\nc: *x\n", {}, 7);
  REQUIRE(read.document.has_value());
  const YamlNode root = read.document->root();
  CHECK(root.place().file == 7);
  for (const YamlPair pair : root.pairs()) {
    CHECK(pair.key.place().file == 7);
    for (const YamlNode item : pair.value.items()) CHECK(item.place().file == 7);
  }
  CHECK(read_yaml("m.yaml", "a: 1").document->root().place().file == 0);
  using kc::config::YamlPlace;
  CHECK(YamlPlace{9, 9, 0} < YamlPlace{1, 1, 1});
  CHECK(YamlPlace{1, 9, 1} < YamlPlace{2, 1, 1});
  CHECK(YamlPlace{2, 1, 1} < YamlPlace{2, 2, 1});
  CHECK(YamlPlace{2, 1, 1} == YamlPlace{2, 1, 1});
}

}  // namespace
