// Opening what lies in a store, before a byte of it is believed.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/files.h"
#include "store/frozen.h"
#include "store/layout.h"

namespace kc::store {

struct StoredFile {
  base::FileDescriptor fd;
  struct stat status {};

  uint64_t size() const { return static_cast<uint64_t>(status.st_size); }
};

/// Opens a regular file for reading; nothing when there is none. Links, devices and folders, files of other
/// users and files that others can write are Flaw::kDamaged.
Checked<std::optional<StoredFile>> open_stored(const Layout& layout, int folder, const std::string& name);

}  // namespace kc::store
