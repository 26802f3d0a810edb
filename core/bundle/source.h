// Where the bytes of an open bundle come from: a file, read into private memory each time, or memory of the
// caller, of which nothing is copied. Inner to core/bundle.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "base/files.h"

namespace kc::bundle {

/// Bytes and what keeps them. Copies share them.
struct Piece {
  std::shared_ptr<const base::Buffer> owner;  // nullptr for memory of the caller
  base::ByteView bytes;
};

/// Thread-safe.
class ByteSource {
 public:
  /// Takes a descriptor of a regular file. ErrorKind::kInput: it is something else.
  static base::Result<ByteSource> of_file(base::FileDescriptor fd, std::string name);
  /// `memory` must stay as it is as long as this and all pieces of it.
  static ByteSource of_memory(base::ByteView memory, std::string name);

  /// As it was opened: for messages.
  const std::string& name() const { return name_; }
  uint64_t size() const { return size_; }
  bool is_memory() const { return !fd_; }
  /// Precondition: not of memory.
  int fd() const { return fd_.get(); }

  /// `size` bytes at `offset`. Fewer there are ErrorKind::kFailed ("ends early"), before memory is taken.
  base::Result<Piece> read(uint64_t offset, uint64_t size) const;

 private:
  ByteSource(base::FileDescriptor fd, base::ByteView memory, uint64_t size, std::string name)
      : fd_(std::move(fd)), memory_(memory), size_(size), name_(std::move(name)) {}

  base::FileDescriptor fd_;
  base::ByteView memory_;
  uint64_t size_;
  std::string name_;
};

}  // namespace kc::bundle
