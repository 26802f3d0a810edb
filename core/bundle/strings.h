// The strings section while it is being made.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "base/bytes.h"
#include "bundle/format.h"

namespace kc::bundle {

/// Keeps each item once, in the order of its first addition.
class StringArea {
 public:
  /// Empty items are 0, 0. Beyond kMaxStringsSize nothing more is added and `full()` holds.
  Ref add(base::ByteView item);
  Ref add(std::string_view item) { return add(base::as_bytes(item)); }
  bool full() const { return full_; }
  const base::Bytes& bytes() const { return bytes_; }

 private:
  base::Bytes bytes_;
  std::unordered_map<std::string, Ref> known_;
  bool full_ = false;
};

}  // namespace kc::bundle
