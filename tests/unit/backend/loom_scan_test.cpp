#include "backend/loom/scan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "base/bytes.h"

namespace {

using kc::backend::check_source;
using kc::backend::declared_keys_of;
using kc::backend::entries_of;
using kc::backend::loom::declared_keys;
using kc::backend::loom::exported_kernels;
using Names = std::vector<std::string>;

// Two exported kernels and a private one, two keys, and what only looks like more of them.
constexpr std::string_view kSource = R"loom(// config.decl @in.comment : index
config.decl @tuner.width : %v: index where [range(%v, 32, 256), mul(%v, 32)]
config.def @scale.factor = 3 : i32 // config.def @behind.it = 1 : i32
config.def @scale.name = "config.decl @in.string : index // no comment" : i32
func.decl import("config.def @k") @config.decl(%x: i32) -> (i32)

kernel.def export("double_i32") @double_i32(%n: index) {
  %kernel.def = config.get @not.declared : index
  kernel.launch.config workgroups(%n, %n, %n) workgroup_size(%n, %n, %n) : index
} launch(%n: index, %in: buffer) {
  kernel.return
}
// kernel.def export("commented") @commented() {
kernel.def @private_i32() {
}
kernel.decl @elsewhere(%n: index) launch(%n: index)
amdgpu.target<gfx11-generic> @wave32
kernel.def retain target(@wave32) export("shared_name") @triple_i32_wave32() {
}
)loom";

std::string repeated(std::string_view part, size_t bytes) {
  std::string out;
  out.reserve(bytes + part.size());
  while (out.size() < bytes) out += part;
  return out;
}

}  // namespace

TEST_CASE("exported kernels are named by their symbols in the order of the text") {
  CHECK(exported_kernels(kSource) == Names{"double_i32", "triple_i32_wave32"});
}

TEST_CASE("declared keys are sorted and those of comments and strings are none") {
  CHECK(declared_keys(kSource) == Names{"scale.factor", "scale.name", "tuner.width"});
}

TEST_CASE("white space and comments may stand between any two tokens") {
  CHECK(exported_kernels("kernel.def// x\r\n\texport\n( // \"\n\"a\"\r)\n@a(") == Names{"a"});
  CHECK(declared_keys("config.def//\n@a=1:index config.decl@b:index//x") == Names{"a", "b"});
  // A carriage return ends no comment, as the compiler has it.
  CHECK(declared_keys("// x\rconfig.def @a = 1 : index").empty());
}

TEST_CASE("a string ends at its quote and not at one that is escaped") {
  CHECK(declared_keys(R"(import("\" config.def @a = 1") config.def @b = 1)") == Names{"b"});
  CHECK(declared_keys(R"(import("\\") config.def @b = 1)") == Names{"b"});
  CHECK(exported_kernels(R"(kernel.def export("a\") @b(") @c()") == Names{"c"});
  // The compiler refuses one without end; the lines behind it are still read.
  CHECK(declared_keys("import(\"x) config.def @a = 1\nconfig.def @b = 1") == Names{"b"});
  CHECK(declared_keys("\"x\\\nconfig.def @b = 1") == Names{"b"});
}

TEST_CASE("only whole words in their place count") {
  CHECK(declared_keys("my.config.def @a config.defs @b config.def.x @c config.def-x @d").empty());
  CHECK(declared_keys("%config.def @a #config.decl @b @config.def @c ^config.def @d").empty());
  CHECK(declared_keys("config.def @ a config.def \"@a\" config.def %a config.def").empty());
  CHECK(declared_keys("config.def @a.b-c_d$e:f") == Names{"a.b-c_d$e"});
  CHECK(exported_kernels("kernel.decl export(\"a\") @a(").empty());
  CHECK(exported_kernels("func.def export(\"a\") @a(").empty());
  CHECK(exported_kernels("kernel.def @a() { export(\"b\") @b").empty());
  CHECK(exported_kernels("kernel.def export @a( kernel.def export() @b( kernel.def export(@c) @c(").empty());
  CHECK(exported_kernels("kernel.def import(\"export\", export(\"a\")) @a(").empty());
  CHECK(exported_kernels("kernel.def export(\"a\") { @a").empty());
  // A head that breaks off hides nothing behind it.
  CHECK(exported_kernels("kernel.def export(\"a\") kernel.def export(\"b\") @b(") == Names{"b"});
}

TEST_CASE("names that come twice are given once") {
  CHECK(exported_kernels(
            "kernel.def export(\"x\") @b( kernel.def export(\"y\") @a( kernel.def export(\"z\") @b(") ==
        Names{"b", "a"});
  CHECK(declared_keys("config.decl @b : index config.decl @a : index config.def @b = 1 : index") ==
        Names{"a", "b"});
}

TEST_CASE("a source cut at any length gives names of the whole one or one that is cut") {
  const Names entries = exported_kernels(kSource);
  const Names keys = declared_keys(kSource);
  for (size_t length = 0; length <= kSource.size(); ++length) {
    CAPTURE(length);
    const std::string_view cut = kSource.substr(0, length);
    const auto belongs = [](const Names& found, const Names& whole) {
      return std::ranges::all_of(found, [&](const std::string& name) {
        return std::ranges::any_of(whole, [&](const std::string& one) { return one.starts_with(name); });
      });
    };
    CHECK(belongs(exported_kernels(cut), entries));
    CHECK(belongs(declared_keys(cut), keys));
    CHECK(exported_kernels(cut).size() <= entries.size());
    CHECK(declared_keys(cut).size() <= keys.size());
  }
}

TEST_CASE("no bytes are read beyond the end or for ever") {
  std::mt19937 random(7);
  constexpr std::string_view kPieces[] = {"kernel.def ", "export", "(",  ")",  "\"",       "\\",   "@",
                                          "config.def ", "@a.b",   "//", "\n", "\xC3\xA9", "\xFF", "{",
                                          "target(@t)",  "9",      " ",  "\r", "-"};
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (size_t pieces = random() % 40; pieces > 0; --pieces) text += kPieces[random() % std::size(kPieces)];
    if (random() % 4 == 0) text += '\0';
    CAPTURE(text);
    for (const std::string& name : exported_kernels(text)) CHECK(text.find("@" + name) != std::string::npos);
    for (const std::string& name : declared_keys(text)) CHECK(text.find("@" + name) != std::string::npos);
    (void)check_source("loom", "a.loom", kc::base::as_bytes(text));
  }
}

TEST_CASE("large sources without end of anything are scanned in one pass") {
  CHECK(exported_kernels(repeated("@", 8 << 20)).empty());
  // What is quadratic takes hours here, what is linear some seconds, even under sanitizers.
  constexpr size_t kBytes = 256 << 10;
  for (const std::string_view part :
       {"@", "\"", "\"\n", "\\", "/", "//", "(", "kernel.def ", "kernel.def(", "kernel.def x(", "config.def ",
        "kernel.def export(\"a\") ", "kernel.def export(\"", "kernel.def export(\"a\"(", "\xFF", "%", "a"}) {
    CAPTURE(part);
    const std::string text = repeated(part, kBytes);
    CHECK(exported_kernels(text).empty());
    CHECK(declared_keys(text).empty());
  }
  std::string many;
  size_t count = 0;
  for (; many.size() < kBytes; ++count) {
    many += "config.def @k" + std::to_string(count) + "\nkernel.def export(\"x\") @s" +
            std::to_string(count) + "(";
  }
  CHECK(declared_keys(many).size() == count);
  CHECK(exported_kernels(many).size() == count);
}

TEST_CASE("loom text answers for entries and keys and bytecode leaves both to the compiler") {
  const auto bytes = kc::base::as_bytes(kSource);
  const auto entries = entries_of("loom", "kernels/a.loom", bytes);
  REQUIRE(entries);
  CHECK(entries->size() == 2);
  const auto keys = declared_keys_of("loom", "kernels/a.loom", bytes);
  REQUIRE(keys);
  CHECK(keys->size() == 3);
  CHECK(declared_keys_of("loom", "a.loom", kc::base::as_bytes("func.def @f")) == Names{});

  const auto unknown = entries_of("loom", "a.loombc", bytes);
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().kind == kc::base::ErrorKind::kInput);
  CHECK(unknown.error().message.find("only the compiler can tell") != std::string::npos);
  CHECK_FALSE(declared_keys_of("loom", "a.loombc", bytes));
  CHECK_FALSE(entries_of("cutile", "a.py", bytes));
  CHECK_FALSE(declared_keys_of("cutile", "a.py", bytes));
  CHECK_FALSE(declared_keys_of("tileiras", "a.tilebc", bytes));
  CHECK_FALSE(entries_of("nvrtc", "a.cu", bytes));
}

TEST_CASE("loom sources are text or bytecode as their suffix says") {
  const auto check = [](std::string_view name, std::string_view text) {
    return check_source("loom", name, kc::base::as_bytes(text));
  };
  CHECK(check("a.loom", kSource));
  CHECK(check("a.loombc", "LOOM'\0\1"));
  CHECK(check("a.loom",
              "// latin-1 in a comment is the author's business: \xE9 \xFF\n" + std::string(kSource)));
  CHECK(
      check("a.loom", "func.decl import(\"\xC3\xA9\") @f() \xC3\xA9"));  // the compiler says where, and more

  const auto refused = [&](std::string_view name, std::string_view text, std::string_view part) {
    const auto checked = check(name, text);
    REQUIRE_FALSE(checked);
    CHECK(checked.error().kind == kc::base::ErrorKind::kInput);
    CHECK_MESSAGE(checked.error().text().find(part) != std::string::npos, checked.error().text());
  };
  refused("a.loom", "", "a.loom: the file is empty; expected Loom text");
  refused("a.loombc", "", "a.loombc: the file is empty");
  refused("a.loombc", "LOO", "does not begin with LOOM");
  refused("a.loombc", kSource, "does not begin with LOOM");
  refused("a.loom", "LOOM'", "give bytecode the suffix .loombc");
  refused("a.loom", "// first\nkernel.def target(@t) export(\"a b\") @k() {",
          "a.loom:2:30: \"a b\" cannot be the name of a kernel");
  refused("a.loom", "config.def @a\n  \"x\xE9\"", "a.loom:2:5: not UTF-8 text: byte 0xE9");
  refused("a.loom", "config.def \xC3\xA9\xC3 @a", "a.loom:1:14: not UTF-8 text: byte 0xC3");
  refused("a.loom", std::string_view("c\0o\0", 4),
          "a.loom:1:2: not UTF-8 text: byte 0x00 (is it a binary file");
}

TEST_CASE("kernels without an export are private and found as such") {
  const Names found = kc::backend::loom::private_kernels(kSource);
  REQUIRE_FALSE(found.empty());
  CHECK(found.front() == "private_i32");
  for (const std::string& name : exported_kernels(kSource)) CHECK(std::ranges::count(found, name) == 0);
}

TEST_CASE("names that no code object can have are found before they are compiled") {
  using kc::backend::loom::find_bad_export;
  const auto kernel = [](std::string_view name) {
    return "kernel.def export(\"" + std::string(name) + "\") @k() {";
  };
  for (const char* good : {"a", "_a9", "a.b", "$a", "A_9.$", ""}) CHECK_FALSE(find_bad_export(kernel(good)));
  for (const char* bad : {"1a", "a b", "a-b", "a@b", "\xC3\xA4", "a\\\\b"}) {
    const auto found = find_bad_export(kernel(bad));
    REQUIRE_MESSAGE(found, bad);
    CHECK(found->name == bad);
    CHECK(found->at == 18);
  }
  CHECK_FALSE(find_bad_export("// export(\"a b\")\nfunc.def export(\"a b\") @f()"));
}

TEST_CASE("the declaration of a key is found with its place and its line") {
  using kc::backend::loom::find_declaration;
  const auto found = find_declaration(kSource, "tuner.width");
  REQUIRE(found);
  CHECK(found->line == 2);
  CHECK(found->column == 1);
  CHECK(found->text == "config.decl @tuner.width : %v: index where [range(%v, 32, 256), mul(%v, 32)]");
  CHECK(find_declaration(kSource, "scale.factor")->text == "config.def @scale.factor = 3 : i32");
  CHECK_FALSE(find_declaration(kSource, "in.comment"));
  CHECK_FALSE(find_declaration(kSource, "in.string"));
  CHECK_FALSE(find_declaration(kSource, "tuner"));
  CHECK_FALSE(find_declaration("", "a"));
}
