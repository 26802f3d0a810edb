#include "bundle/source.h"

#include <sys/stat.h>

#include <cerrno>

#include "base/file_system.h"

namespace kc::bundle {

using base::ErrorKind;

base::Result<ByteSource> ByteSource::of_file(base::FileDescriptor fd, std::string name) {
  struct stat status;
  if (base::file_system().fstat(fd.get(), &status) != 0) {
    return base::fail_errno(ErrorKind::kInput, "stat", name, errno);
  }
  if (!S_ISREG(status.st_mode)) {
    return base::fail_at(ErrorKind::kInput, {name},
                         S_ISDIR(status.st_mode) ? "is a directory, not a file" : "is not a regular file");
  }
  return ByteSource(std::move(fd), {}, static_cast<uint64_t>(status.st_size), std::move(name));
}

ByteSource ByteSource::of_memory(base::ByteView memory, std::string name) {
  return ByteSource({}, memory, memory.size(), std::move(name));
}

base::Result<Piece> ByteSource::read(uint64_t offset, uint64_t size) const {
  if (offset > size_ || size > size_ - offset) {
    return base::fail_at(
        ErrorKind::kFailed, {name_},
        "ends early: " + std::to_string(size) + " bytes expected at offset " + std::to_string(offset));
  }
  if (is_memory()) return Piece{nullptr, memory_.subspan(offset, size)};
  auto buffer = std::make_shared<base::Buffer>(size);
  KC_TRY(base::pread_into(fd_.get(), offset, buffer->span(), name_));
  const base::ByteView bytes = buffer->view();
  return Piece{std::move(buffer), bytes};
}

}  // namespace kc::bundle
