#include "support/stub_driver/image.h"

#include <elf.h>
#include <cstring>

namespace kc::stub {
namespace {

template <typename T>
T at(const char* base, uint64_t offset) {
  T value;
  std::memcpy(&value, base + offset, sizeof value);
  return value;
}

}  // namespace

Image read_image(const void* image) {
  Image out;
  const char* const base = static_cast<const char*>(image);
  if (base == nullptr || std::memcmp(base, ELFMAG, SELFMAG) != 0) return out;
  const auto header = at<Elf64_Ehdr>(base, 0);
  out.valid = true;
  out.machine = header.e_machine;
  out.flags = header.e_flags;
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    const auto section = at<Elf64_Shdr>(base, header.e_shoff + uint64_t{i} * header.e_shentsize);
    if (section.sh_type != SHT_SYMTAB && section.sh_type != SHT_DYNSYM) continue;
    const auto strings =
        at<Elf64_Shdr>(base, header.e_shoff + uint64_t{section.sh_link} * header.e_shentsize);
    for (uint64_t offset = 0; offset + sizeof(Elf64_Sym) <= section.sh_size; offset += sizeof(Elf64_Sym)) {
      const auto symbol = at<Elf64_Sym>(base, section.sh_offset + offset);
      out.symbols.insert(base + strings.sh_offset + symbol.st_name);
    }
  }
  return out;
}

}  // namespace kc::stub
