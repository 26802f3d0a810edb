#include "util/message_pack.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "util/json.h"

namespace {

using kc::base::Bytes;
using kc::util::Json;
using kc::util::MessagePack;
using kc::util::MessagePackLimits;
using kc::util::read_message_pack;

std::string fault_of(const Bytes& bytes, const MessagePackLimits& limits = {}) {
  const auto value = read_message_pack(bytes, limits);
  REQUIRE_FALSE(value);
  CHECK(value.error().kind == kc::base::ErrorKind::kFailed);
  return value.error().message;
}

Json as_json(const MessagePack::Value& value) {
  switch (value.kind()) {
    case MessagePack::Kind::kNumber:
      return value.number();
    case MessagePack::Kind::kText:
      return value.text();
    case MessagePack::Kind::kList: {
      Json out = Json::array();
      for (const MessagePack::Value& part : value.parts()) out.push_back(as_json(part));
      return out;
    }
    case MessagePack::Kind::kMap: {
      Json out = Json::object();
      for (const auto& [key, part] : value.members()) out[std::string(key)] = as_json(part);
      return out;
    }
    case MessagePack::Kind::kOther:
      break;
  }
  return nullptr;
}

Json many_keys(unsigned count) {
  Json out = Json::object();
  for (unsigned i = 0; i < count; ++i) out[std::to_string(i)] = i;
  return out;
}

}  // namespace

TEST_CASE("a value reads back as it was written and keeps the order of its keys") {
  const Json value = {
      {"z", {1U, "text \xff", std::string(40, 'a'), std::string(300, 'b'), std::string(70'000, 'c')}},
      {"a", {{"b", Json::array()}, {"c", Json::object()}, {"d", UINT64_MAX}}},
      {"", {Json::array({Json::array({"deep"})})}},
      {"numbers", {0U, 127U, 128U, 255U, 256U, 65'535U, 65'536U, UINT32_MAX, uint64_t{1} << 32}},
      {"long list", Json(std::vector<unsigned>(70'000, 3U))},
      {"many keys", many_keys(100)}};
  const Bytes bytes = Json::to_msgpack(value);
  const auto read = read_message_pack(bytes);
  REQUIRE_MESSAGE(read, read.error().text());
  CHECK(as_json(read->root()) == value);
  CHECK(read->root().members().front().first == "z");
}

TEST_CASE("what nobody asks for is passed over and is neither a number nor a text") {
  const Json value = {nullptr, true, false, -1, -128, -40'000, INT64_MIN, 2.5F, 1e300, 7U};
  const Bytes bytes = Json::to_msgpack(value);
  const auto read = read_message_pack(bytes);
  REQUIRE_MESSAGE(read, read.error().text());
  const auto parts = read->root().parts();
  REQUIRE(parts.size() == value.size());
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    CHECK(parts[i].kind() == MessagePack::Kind::kOther);
    CHECK(parts[i].number() == 0);
    CHECK(parts[i].text().empty());
    CHECK(parts[i].size() == 0);
  }
  CHECK(parts.back().number() == 7);
  const Bytes positive_but_signed = {0xd0, 5};
  CHECK(read_message_pack(positive_but_signed)->root().kind() == MessagePack::Kind::kOther);
}

TEST_CASE("what is cut short or followed by more or no MessagePack is refused with the place") {
  const Bytes whole = Json::to_msgpack({{"a", {1U, 2U, "three"}}});
  for (size_t size = 0; size < whole.size(); ++size) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    CHECK(fault_of(cut).starts_with("it is damaged at byte "));
  }
  Bytes longer = whole;
  longer.push_back(0);
  CHECK(fault_of(longer) == "it is damaged at byte 13");
  CHECK(fault_of({0xc1}) == "it is damaged at byte 1");  // never used by MessagePack
}

TEST_CASE("a key that comes twice is refused") {
  CHECK(fault_of({0x82, 0xa1, 'k', 1, 0xa1, 'k', 2}) == "a map of it has the key k twice");
}

TEST_CASE("keys that are not text are refused") {
  CHECK(fault_of({0x81, 0x01, 0x02}).starts_with("it is damaged"));
}

TEST_CASE("binary data and extensions are refused") {
  CHECK(fault_of({0xc4, 1, 7}) == "it holds binary data or an extension");
  CHECK(fault_of({0xd4, 1, 7}) == "it holds binary data or an extension");
}

TEST_CASE("each limit refuses what is beyond it and takes what is at it") {
  MessagePackLimits limits;
  limits.depth = 2;
  CHECK(read_message_pack(Bytes{0x91, 0x91, 1}, limits));
  CHECK(fault_of({0x91, 0x91, 0x91, 1}, limits) == "it is nested deeper than 2");
  limits = {};
  limits.values = 3;
  CHECK(read_message_pack(Bytes{0x92, 1, 2}, limits));
  CHECK(fault_of({0x93, 1, 2, 3}, limits) == "it has more than 3 values");
  CHECK(fault_of({0x92, 1, 0x91, 2}, limits) == "it has more than 3 values");
  limits = {};
  limits.keys = 1;
  CHECK(read_message_pack(Bytes{0x81, 0xa1, 'a', 1}, limits));
  CHECK(fault_of({0x82, 0xa1, 'a', 1, 0xa1, 'b', 1}, limits) == "a map of it has more than 1 keys");
  limits = {};
  limits.bytes = 2;
  CHECK(fault_of({0x92, 1, 2}, limits) == "it is larger than 2 B");
}

TEST_CASE("counts beyond the input take no memory") {
  // An array of 2^32 - 1 and a map of as many and a text of as many bytes.
  CHECK(fault_of({0xdd, 0xff, 0xff, 0xff, 0xff}) == "it has more than 1048576 values");
  CHECK(fault_of({0xdf, 0xff, 0xff, 0xff, 0xff}) == "a map of it has more than 128 keys");
  CHECK(fault_of({0xdb, 0xff, 0xff, 0xff, 0xff, 'a'}).starts_with("it is damaged"));
  CHECK(fault_of(Bytes(1U << 20, 0x91)) == "it is nested deeper than 16");
}
