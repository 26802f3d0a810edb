// Source: the MessagePack specification, "Formats".
#include "util/message_pack.h"

#include <algorithm>
#include <string>

#include "util/text.h"

namespace kc::util {

using base::Result;
using Kind = MessagePack::Kind;

std::vector<MessagePack::Value> MessagePack::Value::parts() const {
  std::vector<Value> out;
  if (kind() != Kind::kList) return out;
  out.reserve(size());
  Value part = inner();
  for (size_t i = 0; i < size(); ++i, part = part.after()) out.push_back(part);
  return out;
}

std::vector<std::pair<std::string_view, MessagePack::Value>> MessagePack::Value::members() const {
  std::vector<std::pair<std::string_view, Value>> out;
  if (kind() != Kind::kMap) return out;
  out.reserve(size());
  Value key = inner();
  for (size_t i = 0; i < size(); ++i) {
    const Value value = key.after();
    out.emplace_back(key.text(), value);
    key = value.after();
  }
  return out;
}

// Goes through the bytes once, without recursion: how deep they may be nested is the caller's to say. What
// fails leaves the reason in fault_.
class MessagePackReader {
 public:
  MessagePackReader(base::ByteView bytes, const MessagePackLimits& limits) : bytes_(bytes), limits_(limits) {}

  Result<MessagePack> read() {
    if (bytes_.size() > limits_.bytes) {
      refuse(util::format("it is larger than {}", size_text(limits_.bytes)));
    } else if (read_all() && at_ != bytes_.size()) {
      damaged(at_);
    }
    if (!fault_.empty()) return base::fail(base::ErrorKind::kFailed, std::move(fault_));
    return std::move(pack_);
  }

 private:
  struct Open {
    size_t node;
    uint64_t left;  // parts, or keys with their values
    bool is_map;
  };

  bool refuse(std::string why) {
    fault_ = std::move(why);
    return false;
  }
  // People count from 1.
  bool damaged(size_t place) { return refuse(util::format("it is damaged at byte {}", place + 1)); }
  bool too_many_values() { return refuse(util::format("it has more than {} values", limits_.values)); }

  bool read_all() {
    pack_.nodes_.reserve(std::min(bytes_.size() / kBytesOfNode, limits_.values));
    do {
      if (!open_.empty() && open_.back().is_map && !read_key()) return false;
      if (!read_value()) return false;
      while (!open_.empty() && open_.back().left == 0) close();
    } while (!open_.empty());
    return true;
  }

  // `size` bytes, at most 8; every number is big-endian.
  bool take(size_t size, uint64_t& out) {
    if (bytes_.size() - at_ < size) return damaged(bytes_.size());
    out = 0;
    for (const size_t end = at_ + size; at_ < end; ++at_) out = out << 8 | bytes_[at_];
    return true;
  }

  MessagePack::Node& add(Kind kind, uint64_t count = 0) {
    MessagePack::Node& node = pack_.nodes_.emplace_back();
    node.kind = kind;
    node.count = static_cast<uint32_t>(count);
    node.after = static_cast<uint32_t>(pack_.nodes_.size());
    return node;
  }

  bool add_text(uint64_t size) {
    if (bytes_.size() - at_ < size) return damaged(bytes_.size());
    add(Kind::kText, size).text = reinterpret_cast<const char*>(bytes_.data() + at_);
    at_ += size;
    return true;
  }

  bool add_number(size_t size) {
    uint64_t number = 0;
    if (!take(size, number)) return false;
    add(Kind::kNumber).number = number;
    return true;
  }

  bool add_other(size_t size) {
    uint64_t passed_over = 0;
    if (!take(size, passed_over)) return false;
    add(Kind::kOther);
    return true;
  }

  bool open(Kind kind, uint64_t count) {
    if (kind == Kind::kMap && count > limits_.keys) {
      return refuse(util::format("a map of it has more than {} keys", limits_.keys));
    }
    if (open_.size() == limits_.depth)
      return refuse(util::format("it is nested deeper than {}", limits_.depth));
    if (count > limits_.values - values_) return too_many_values();
    add(kind, count);
    open_.push_back({pack_.nodes_.size() - 1, count, kind == Kind::kMap});
    return true;
  }

  // What is whole is one part of what it stands in, which has counted it already.
  void close() {
    pack_.nodes_[open_.back().node].after = static_cast<uint32_t>(pack_.nodes_.size());
    open_.pop_back();
  }

  bool read_key() {
    uint64_t code = 0;
    if (!take(1, code)) return false;
    const auto is_text = [](uint64_t f) { return (f >= 0xa0 && f <= 0xbf) || (f >= 0xd9 && f <= 0xdb); };
    if (!is_text(code)) return damaged(at_ - 1);
    const size_t added = pack_.nodes_.size();
    if (!read_format(static_cast<uint8_t>(code))) return false;
    const std::vector<MessagePack::Node>& nodes = pack_.nodes_;
    const auto text_of = [&](size_t at) { return std::string_view(nodes[at].text, nodes[at].count); };
    // A map has few keys: looking through them costs less than an index of them.
    for (size_t at = open_.back().node + 1; at != added; at = nodes[at + 1].after) {
      if (text_of(at) != text_of(added)) continue;
      return refuse(util::format("a map of it has the key {} twice", escape(text_of(added))));
    }
    return true;
  }

  bool read_value() {
    if (!open_.empty()) --open_.back().left;
    uint64_t code = 0;
    if (!take(1, code)) return false;
    if (!read_format(static_cast<uint8_t>(code))) return false;
    return ++values_ <= limits_.values || too_many_values();
  }

  bool read_format(uint8_t code) {
    if (code <= 0x7f) {
      add(Kind::kNumber).number = code;
      return true;
    }
    if (code <= 0x8f) return open(Kind::kMap, code & 0x0f);
    if (code <= 0x9f) return open(Kind::kList, code & 0x0f);
    if (code <= 0xbf) return add_text(code & 0x1f);
    if (code >= 0xe0) return add_other(0);  // -32 to -1
    const auto size_from = [code](uint8_t first) { return size_t{1} << (code - first); };
    const auto counted = [&](size_t size, auto&& then) {
      uint64_t count = 0;
      return take(size, count) && then(count);
    };
    switch (code) {
      case 0xc0:  // nothing
      case 0xc2:  // false
      case 0xc3:  // true
        return add_other(0);
      case 0xca:  // f32
      case 0xcb:  // f64
        return add_other(4 * size_from(0xca));
      case 0xcc:  // u8 to u64
      case 0xcd:
      case 0xce:
      case 0xcf:
        return add_number(size_from(0xcc));
      case 0xd0:  // i8 to i64
      case 0xd1:
      case 0xd2:
      case 0xd3:
        return add_other(size_from(0xd0));
      case 0xd9:  // text with a length of u8 to u32
      case 0xda:
      case 0xdb:
        return counted(size_from(0xd9), [this](uint64_t count) { return add_text(count); });
      case 0xdc:  // list with a count of u16 or u32
      case 0xdd:
        return counted(2 * size_from(0xdc), [this](uint64_t count) { return open(Kind::kList, count); });
      case 0xde:  // map with a count of u16 or u32
      case 0xdf:
        return counted(2 * size_from(0xde), [this](uint64_t count) { return open(Kind::kMap, count); });
      case 0xc1:  // means nothing
        return damaged(at_ - 1);
      default:
        return refuse("it holds binary data or an extension");
    }
  }

  // About: the shortest nodes take one byte, keys of metadata twenty.
  static constexpr size_t kBytesOfNode = 8;

  base::ByteView bytes_;
  const MessagePackLimits limits_;
  size_t at_ = 0;
  size_t values_ = 0;
  MessagePack pack_;
  std::vector<Open> open_;
  std::string fault_;
};

Result<MessagePack> read_message_pack(base::ByteView bytes, const MessagePackLimits& limits) {
  return MessagePackReader(bytes, limits).read();
}

}  // namespace kc::util
