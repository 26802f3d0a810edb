#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "backend/tileiras/tileiras.h"
#include "base/files.h"

namespace {

using kc::backend::check_source;
using kc::backend::entries_of;
using kc::base::Bytes;
using kc::base::ByteView;
using kc::base::ByteWriter;

Bytes header(uint8_t major = 13, uint8_t minor = 3) {
  ByteWriter out;
  out.raw(kc::base::as_bytes(std::string_view{"\x7FTileIR\0", 8}));
  out.u8(major);
  out.u8(minor);
  out.u16(0);
  return out.take();
}

struct Function {
  uint8_t name = 0;
  uint8_t flags = 2;
  Bytes attributes = {};  // behind the location
  Bytes body = {1, 2, 3};
};

// A file of the sections that hold names; numbers below 128 are their own LEB128.
Bytes file(const std::vector<std::string>& strings, const std::vector<Function>& functions,
           uint8_t minor = 3) {
  ByteWriter func;
  func.u8(static_cast<uint8_t>(functions.size()));
  for (const Function& function : functions) {
    func.u8(function.name);
    func.u8(9);  // signature
    func.u8(function.flags);
    func.u8(1);  // location
    func.raw(function.attributes);
    func.u8(static_cast<uint8_t>(function.body.size()));
    func.raw(function.body);
  }
  ByteWriter text;
  text.u8(static_cast<uint8_t>(strings.size()));
  while (text.size() % 4 != 0) text.u8(0xCB);
  uint32_t offset = 0;
  for (const std::string& string : strings) {
    text.u32(offset);
    offset += static_cast<uint32_t>(string.size());
  }
  for (const std::string& string : strings) text.raw(kc::base::as_bytes(string));

  ByteWriter out;
  out.raw(header(13, minor));
  const auto section = [&](uint8_t id, uint8_t alignment, const Bytes& data) {
    out.u8(id | 0x80);
    out.u8(static_cast<uint8_t>(data.size()));
    out.u8(alignment);
    while (out.size() % alignment != 0) out.u8(0xCB);
    out.raw(data);
  };
  section(2, 8, func.bytes());
  section(1, 4, text.bytes());
  out.u8(0);
  return out.take();
}

// optimization_hints = { sm_90 = { occupancy = 2 : i32, flag = true, names = ["a"] } }
const Bytes kHints = {11, 1, 0, 10, 3, 1, 1, 3, 2, 1, 3, 1, 2, 6, 1, 5, 0};

std::string refusal(ByteView bytes) {
  const auto result = check_source("tileiras", "kernels/a.tilebc", bytes);
  REQUIRE_FALSE(result);
  CHECK(result.error().kind == kc::base::ErrorKind::kInput);
  CHECK(result.error().place.file == "kernels/a.tilebc");
  return result.error().message;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("what cannot be bytecode is refused with what it looks like") {
  CHECK(contains(refusal({}), "empty"));
  const Bytes whole = header();
  for (size_t length = 1; length < whole.size(); ++length) {
    CHECK(contains(refusal(ByteView(whole).first(length)), "cut short"));
  }
  CHECK(contains(refusal(kc::base::as_bytes("cuda_tile.module @m {\n}\n")), "MLIR text"));
  CHECK(contains(refusal(kc::base::as_bytes("hello\n")), "a text file"));
  CHECK(contains(refusal(kc::base::as_bytes("ML\xEFR\x06MLIR20\0")), "MLIR bytecode"));
  CHECK(contains(refusal(kc::base::as_bytes("\x7F"
                                            "ELF\x02\x01\x01")),
                 "ELF"));
  const Bytes random = {0x00, 0x9C, 0x13, 0xFE, 0x01, 0x02, 0x03, 0x88, 0x91, 0xA0, 0xB1, 0xC2, 0x04};
  CHECK(contains(refusal(random), "7F 54 69 6C 65 49 52 00"));
}

TEST_CASE("a version that is not known is left to the compiler") {
  CHECK(check_source("tileiras", "a.tilebc", header(13, 9)));
  CHECK(check_source("tileiras", "a.tilebc", header(14, 0)));
}

TEST_CASE("entries are named in the order of the file and device functions are not among them") {
  const Bytes bytes =
      file({"helper", "first", "second"}, {{.name = 1}, {.name = 0, .flags = 0}, {.name = 2}});
  const auto entries = entries_of("tileiras", "k.tilebc", bytes);
  REQUIRE(entries);
  CHECK(*entries == std::vector<std::string>{"first", "second"});
}

TEST_CASE("hints before a function's body are read over") {
  const Bytes old_form = file({"sm_90", "occupancy", "a", "k", "l"},
                              {{.name = 3, .flags = 6, .attributes = kHints}, {.name = 4}});
  const auto entries = entries_of("tileiras", "k.tilebc", old_form);
  REQUIRE(entries);
  CHECK(*entries == std::vector<std::string>{"k", "l"});

  // From 13.5 on hints of entries and argument attributes are always there, without a flag.
  Bytes both = kHints;
  both.insert(both.end(), {6, 0});
  const Bytes new_form =
      file({"sm_90", "occupancy", "a", "k", "l"},
           {{.name = 3, .attributes = both}, {.name = 4, .flags = 0, .attributes = {6, 0}}}, 5);
  const auto newer = entries_of("tileiras", "k.tilebc", new_form);
  REQUIRE(newer);
  CHECK(*newer == std::vector<std::string>{"k"});
}

TEST_CASE("names that cannot be read are an error and not a guess") {
  CHECK_FALSE(entries_of("tileiras", "k.tilebc", header()));
  CHECK_FALSE(entries_of("tileiras", "k.tilebc", header(13, 9)));
  // An attribute of a kind whose length is not known.
  CHECK_FALSE(
      entries_of("tileiras", "k.tilebc", file({"k"}, {{.name = 0, .flags = 6, .attributes = {7, 1, 2}}})));
  // A name index outside the string table.
  CHECK_FALSE(entries_of("tileiras", "k.tilebc", file({"k"}, {{.name = 1}})));
  // Attributes nested without end.
  CHECK_FALSE(
      entries_of("tileiras", "k.tilebc", file({"k"}, {{.name = 0, .flags = 6, .attributes = Bytes(60, 6)}})));
}

TEST_CASE("damaged bytecode never makes the reader of names fail otherwise than by an error") {
  const Bytes whole = file({"sm_90", "occupancy", "a", "k", "l"},
                           {{.name = 3, .flags = 6, .attributes = kHints}, {.name = 4}});
  for (size_t length = 0; length < whole.size(); ++length) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    CHECK_FALSE(entries_of("tileiras", "k.tilebc", cut));
  }
  for (size_t at = 0; at < whole.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      Bytes changed = whole;
      changed[at] = static_cast<uint8_t>(value);
      const auto entries = entries_of("tileiras", "k.tilebc", changed);
      if (entries) CHECK(entries->size() <= 2);
    }
  }
}

TEST_CASE("names are bounded in length and number before they are copied") {
  // Every function may be an entry of the same name, which is copied for each.
  const auto many = [](uint32_t functions, uint32_t name_size) {
    const auto number = [](ByteWriter& out, uint64_t value) {
      for (; value >= 0x80; value >>= 7) out.u8(static_cast<uint8_t>(value | 0x80));
      out.u8(static_cast<uint8_t>(value));
    };
    ByteWriter func;
    number(func, functions);
    for (uint32_t i = 0; i < functions; ++i) func.raw(Bytes{0, 9, 2, 1, 0});
    ByteWriter text;
    text.raw(Bytes{1, 0xCB, 0xCB, 0xCB, 0, 0, 0, 0});
    text.raw(Bytes(name_size, 'n'));
    ByteWriter out;
    out.raw(header());
    out.u8(2);
    number(out, func.size());
    out.raw(func.bytes());
    out.u8(1);
    number(out, text.size());
    out.raw(text.bytes());
    out.u8(0);
    return entries_of("tileiras", "k.tilebc", out.bytes());
  };
  CHECK(many(4096, 10).value().size() == 4096);
  CHECK(many(1, 16 << 10).value().front().size() == 16 << 10);
  REQUIRE_FALSE(many(4097, 10));
  CHECK(contains(many(4097, 10).error().message, "more than 4096 entries"));
  REQUIRE_FALSE(many(1, (16 << 10) + 1));
  CHECK(contains(many(1, (16 << 10) + 1).error().message, "more than 16384 bytes"));
}

TEST_CASE("the names of a kernel that cuTile wrote are read") {
  const auto bytes =
      kc::base::read_file(KC_SOURCE_DIR "/manifests/demo/bytecode/row_sum_f32.tilebc", 1 << 20);
  REQUIRE(bytes);
  CHECK(check_source("tileiras", "row_sum_f32.tilebc", *bytes));
  const auto entries = entries_of("tileiras", "k.tilebc", *bytes);
  REQUIRE(entries);
  CHECK(*entries == std::vector<std::string>{"row_sum_512", "row_sum_2048"});
}
