#include "fuzz/memory_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include "fuzz/fuzz.h"

namespace kc::fuzz {

MemoryFile::MemoryFile() : fd_(memfd_create("kc-fuzz", MFD_CLOEXEC)) {
  KC_PROMISE(fd_);
}

void MemoryFile::fill(base::ByteView content) {
  KC_PROMISE(ftruncate(fd_.get(), 0) == 0);
  KC_PROMISE(base::pwrite_all(fd_.get(), content, 0, "the file in memory"));
}

}  // namespace kc::fuzz
