#include "support/hostile_install.h"

#include <fcntl.h>

#include <string_view>

#include "base/atomic_file.h"
#include "base/files.h"

namespace kc::test {

base::Result<std::string> install_hostile_loom(const std::string& library, const std::string& folder,
                                               char variant) {
  constexpr std::string_view kMark = "kc-hostile-variant=1";
  constexpr uint64_t kLargestLibrary = 256U << 20;  // with debug information and sanitizers
  KC_ASSIGN(base::Bytes bytes, base::read_file(library, kLargestLibrary));
  const size_t at = base::as_text(bytes).find(kMark);
  if (at == std::string_view::npos) {
    return base::fail(base::ErrorKind::kInput, library + " is no stand-in for Loom");
  }
  bytes[at + kMark.size() - 1] = static_cast<uint8_t>(variant);
  KC_TRY(base::make_directories(folder));
  const std::string path = base::join_path(folder, "libloomc.so");
  KC_ASSIGN(base::AtomicFile file, base::AtomicFile::create(AT_FDCWD, path, 0755));
  KC_TRY(file.write(bytes));
  KC_TRY(file.commit(base::Sync::kNone));
  return path;
}

}  // namespace kc::test
