// Reads MessagePack, which compilers write into code objects, out of bytes that may be hostile. Not by the
// JSON reader: a kernel's metadata are a hundred small values, and as a tree they cost as much as the rest of
// its facts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

namespace kc::util {

/// What a reader accepts at most. Each is checked before memory is taken for what is counted; the defaults
/// are far above the metadata of any code object and keep the memory taken below a hundred times the input.
struct MessagePackLimits {
  size_t bytes = 16U << 20;  // below 4 GiB
  size_t depth = 16;         // of maps and lists within each other; metadata of kernels have 5
  size_t values = 1U << 20;  // all together, keys not counted; a kernel of ten arguments has 80
  size_t keys = 128;         // of one map; the metadata of a kernel know about 40
};

/// One value and all that it is made of. Text points into the bytes that were read, which must outlive it.
class MessagePack {
 public:
  enum class Kind : uint8_t {
    kNumber,  // written as unsigned
    kText,    // any bytes
    kList,
    kMap,
    kOther,  // nothing, a truth value, a signed or broken number: nobody asks which
  };

 private:
  // In the order of the bytes; each key of a map is one before its value.
  struct Node {
    Kind kind = Kind::kOther;
    uint32_t count = 0;  // of bytes, parts or keys
    uint32_t after = 0;  // the node behind this and all that it is made of
    union {
      uint64_t number = 0;
      const char* text;
    };
  };

 public:
  /// Part of a MessagePack that outlives it.
  class Value {
   public:
    Kind kind() const { return node().kind; }
    /// Of a number; 0 for all else.
    uint64_t number() const { return kind() == Kind::kNumber ? node().number : 0; }
    /// Of a text; empty for all else.
    std::string_view text() const {
      return kind() == Kind::kText ? std::string_view(node().text, node().count) : std::string_view();
    }
    /// The parts of a list or the keys of a map; 0 for all else.
    size_t size() const { return kind() == Kind::kList || kind() == Kind::kMap ? node().count : 0; }
    /// The parts of a list in their order.
    std::vector<Value> parts() const;
    /// The keys and values of a map in their order; no key comes twice.
    std::vector<std::pair<std::string_view, Value>> members() const;

   private:
    friend class MessagePack;
    Value(const MessagePack& pack, size_t at) : pack_(&pack), at_(at) {}
    const Node& node() const { return pack_->nodes_[at_]; }
    Value after() const { return {*pack_, node().after}; }
    Value inner() const { return {*pack_, at_ + 1}; }

    const MessagePack* pack_;
    size_t at_;
  };

  using Member = std::pair<std::string_view, Value>;

  Value root() const { return {*this, 0}; }

 private:
  friend class MessagePackReader;
  std::vector<Node> nodes_;
};

/// The one value that `bytes` are. Maps have no key twice; binary data and extensions are refused.
/// ErrorKind::kFailed otherwise, with what is wrong. Safe to call from several threads.
base::Result<MessagePack> read_message_pack(base::ByteView bytes, const MessagePackLimits& limits = {});

}  // namespace kc::util
