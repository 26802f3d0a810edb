#include "base/bytes.h"

namespace kc::base {

// Out of line: inlined into callers with constant sizes, GCC 12 warns of overflows that cannot happen.
void ByteWriter::raw(ByteView bytes) {
  out_.insert(out_.end(), bytes.begin(), bytes.end());
}

}  // namespace kc::base
