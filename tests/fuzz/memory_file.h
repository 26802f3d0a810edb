// A file without a name for readers that want a descriptor or a path.
#pragma once

#include <string>

#include "base/bytes.h"
#include "base/files.h"

namespace kc::fuzz {

/// A file in memory with a content that can be replaced, so that a million inputs make no million files.
class MemoryFile {
 public:
  MemoryFile();

  void fill(base::ByteView content);
  int fd() const { return fd_.get(); }
  /// Opens to a descriptor of its own. Valid as long as this object and this process.
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_.get()); }

 private:
  base::FileDescriptor fd_;
};

}  // namespace kc::fuzz
