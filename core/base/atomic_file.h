// Writing a file so that its name always leads to the old content or the new one, never to half of either.
//
// Order of calls: create(), write() any number of times, then commit() or nothing. Before commit() the
// content lies under a temporary name in the same directory; the destructor removes it unless commit()
// succeeded. A process that is killed leaves it, as `.<name>.kc-tmp-<pid>-...`.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/error.h"
#include "base/files.h"

namespace kc::base {

enum class Sync {
  kNone,  // the content may be torn after a power cut: only for files whose reader checks a digest
  kFull,  // file, then rename, then directory are on disk when commit() returns
};

class AtomicFile {
 public:
  /// `directory` is an open descriptor (or AT_FDCWD) that must outlive the object; `name` is relative to it.
  static Result<AtomicFile> create(int directory, const std::string& name, mode_t mode);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  Result<void> write(ByteView bytes);
  /// Descriptor of the temporary file, for reading back what was written.
  int descriptor() const { return fd_.get(); }
  /// Replaces what `name` leads to.
  Result<void> commit(Sync sync);

 private:
  AtomicFile(int directory, std::string name, std::string temporary, FileDescriptor fd)
      : directory_(directory), name_(std::move(name)), temporary_(std::move(temporary)), fd_(std::move(fd)) {}

  int directory_;
  std::string name_;
  std::string temporary_;  // empty once committed or moved from
  FileDescriptor fd_;
};

/// fsync(2), of a file or a folder, restarted on EINTR.
Result<void> sync_all(int fd, std::string_view name);
/// A name that no other process or thread makes: `<prefix><pid>-<counter>-<64 random bits>`.
std::string unique_name(std::string_view prefix);
/// 64 bits from the kernel's generator.
uint64_t random_u64();

}  // namespace kc::base
