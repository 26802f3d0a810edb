// A YAML document as plain data: text and places, no types. What kc reads as a number, size or flag is the
// caller's to say, so scalars keep the text as written (`064`, `1.0`, `true`).
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <iterator>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "base/error.h"

namespace kc::config {

enum class YamlKind : uint8_t { kNull, kScalar, kSequence, kMap };

/// "nothing", "a value", "a list", "a map": for messages.
std::string_view kind_name(YamlKind kind);

/// Where a node begins: lines and columns count from 1, columns in bytes; 0 = the file as a whole.
struct YamlPlace {
  uint32_t line = 0;
  uint32_t column = 0;
  uint32_t file = 0;  // whose: the number that the caller of read_yaml() gave it
  bool operator==(const YamlPlace&) const = default;
  auto operator<=>(const YamlPlace& other) const {
    return std::tie(file, line, column) <=> std::tie(other.file, other.line, other.column);
  }
};

class YamlDocument;
class YamlNode;
struct YamlPair;
template <typename Element>
class YamlRange;
using YamlItems = YamlRange<YamlNode>;
using YamlPairs = YamlRange<YamlPair>;

/// One node of a document: a handle of two words that lives as long as the document does. An alias is never
/// seen: it is the node that it stands for, with that node's place.
class YamlNode {
 public:
  YamlNode(const YamlDocument& document, uint32_t index);

  YamlKind kind() const;
  bool is_map() const { return kind() == YamlKind::kMap; }
  bool is_sequence() const { return kind() == YamlKind::kSequence; }
  bool is_scalar() const { return kind() == YamlKind::kScalar; }
  YamlPlace place() const;
  /// Of a scalar; empty for every other kind.
  std::string_view text() const;
  /// A scalar that was written without quotes (`<<` merges only then).
  bool is_plain() const;
  /// Items of a sequence, pairs of a map, otherwise 0.
  uint32_t size() const;
  YamlItems items() const;  // empty unless a sequence
  YamlPairs pairs() const;  // empty unless a map; in the order written

 private:
  const YamlDocument* document_;
  uint32_t index_;
};

struct YamlPair {
  YamlNode key;
  YamlNode value;
};

/// Nodes in one array, text in one string: 24 bytes a node beside its text. Immutable once read; may be read
/// by several threads.
class YamlDocument {
 public:
  YamlNode root() const { return {*this, 0}; }

 private:
  friend class YamlNode;
  template <typename Element>
  friend class YamlRange;
  friend class YamlBuilder;

  enum class Tag : uint8_t { kNull, kPlain, kQuoted, kSequence, kMap, kAlias };
  struct Record {
    uint32_t line = 0;
    uint32_t column = 0;
    uint32_t first = 0;  // scalar: offset of its text; collection: its first child; alias: what it stands for
    uint32_t count = 0;  // scalar: bytes of text; sequence: items; map: pairs
    uint32_t next = 0;   // the node behind it in its collection (a map's: key, value, key, value...)
    Tag tag = Tag::kNull;
  };
  std::deque<Record> records_;  // grows without a copy of what is there
  std::string text_;
  uint32_t file_ = 0;  // of all places
};

/// What a range-for over a sequence (of YamlNode) or a map (of YamlPair) needs.
template <typename Element>
class YamlRange {
 public:
  class Iterator {
   public:
    Iterator(const YamlDocument& document, uint32_t index, uint32_t left)
        : document_(&document), index_(index), left_(left) {}
    Element operator*() const {
      if constexpr (kIsMap) {
        return {YamlNode(*document_, index_), YamlNode(*document_, behind(index_))};
      } else {
        return {*document_, index_};
      }
    }
    Iterator& operator++() {
      index_ = behind(index_);
      if constexpr (kIsMap) index_ = behind(index_);
      --left_;
      return *this;
    }
    bool operator==(std::default_sentinel_t) const { return left_ == 0; }

   private:
    static constexpr bool kIsMap = std::is_same_v<Element, YamlPair>;
    uint32_t behind(uint32_t index) const { return document_->records_[index].next; }

    const YamlDocument* document_;
    uint32_t index_;
    uint32_t left_;
  };
  YamlRange(const YamlDocument& document, uint32_t first, uint32_t count)
      : document_(&document), first_(first), count_(count) {}
  Iterator begin() const { return {*document_, first_, count_}; }
  std::default_sentinel_t end() const { return {}; }

 private:
  const YamlDocument* document_;
  uint32_t first_;
  uint32_t count_;
};

}  // namespace kc::config
