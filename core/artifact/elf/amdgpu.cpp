// Source: LLVM, "User Guide for AMDGPU Backend": "ELF Code Object", "Kernel Descriptor".
#include <elf.h>
#include <gelf.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "artifact/elf/amdgpu_machs.h"
#include "artifact/elf/amdgpu_metadata.h"
#include "artifact/elf/elf_facts.h"
#include "artifact/elf/image.h"
#include "target/target.h"
#include "util/text.h"

namespace kc::artifact::elf {
namespace {

using base::ByteView;
using base::Result;

constexpr uint8_t kHsaAbi = 64;          // ELFOSABI_AMDGPU_HSA
constexpr uint8_t kFirstAbiVersion = 2;  // code objects of version 4; before it the features were other bits
constexpr uint8_t kLastAbiVersion = 4;   // of version 6
constexpr uint8_t kFirstAbiWithGeneric = 4;
constexpr std::string_view kNoteOwner{"AMDGPU\0", 7};
constexpr uint32_t kMetadataNote = 32;  // NT_AMDGPU_METADATA
constexpr std::string_view kDescriptorEnd = ".kd";
constexpr uint64_t kDescriptorSize = 64;
constexpr size_t kEntryOffset = 16;  // in a descriptor: i64, from it to the code

std::unexpected<base::Error> not_whole(std::string_view why) {
  return not_whole(kAmdCodeObject, why);
}

Result<void> check_header(const GElf_Ehdr& header) {
  const uint8_t abi = header.e_ident[EI_OSABI];
  const uint8_t version = header.e_ident[EI_ABIVERSION];
  if (abi != kHsaAbi) return not_whole(util::format("its OS/ABI is {}, not {} (HSA)", abi, kHsaAbi));
  if (version < kFirstAbiVersion || version > kLastAbiVersion) {
    return not_whole(util::format("its ABI version is {}; kc reads {} to {} (code objects of version 4 to 6)",
                                  version, kFirstAbiVersion, kLastAbiVersion));
  }
  if (header.e_type != ET_DYN)
    return not_whole("it is not linked: its ELF type is not that of a shared object");
  return {};
}

// The state of a feature: unsupported 0, any 1, off 2, on 3.
std::string feature_text(std::string_view name, uint32_t state) {
  if (state < 2) return {};
  return util::format(":{}{}", name, state == 3 ? '+' : '-');
}

Result<std::string> target_in_flags(const GElf_Ehdr& header) {
  const uint32_t flags = header.e_flags;
  const uint32_t mach = flags & 0xFF;
  const uint32_t generic_version = flags >> 24;
  const std::string_view processor = amdgpu_processor(mach);
  if (processor.empty()) return not_whole(util::format("its header names processor number 0x{:x}", mach));
  const bool is_generic = processor.ends_with("-generic");
  if (is_generic && header.e_ident[EI_ABIVERSION] < kFirstAbiWithGeneric) {
    return not_whole(util::format("it is for {}, which code objects have from version 6 on", processor));
  }
  if (is_generic != (generic_version != 0)) {
    return not_whole(util::format("it is for {} and has the generic version {}", processor, generic_version));
  }
  std::string out = util::format("{}{}{}", processor, feature_text("sramecc", flags >> 10 & 3),
                                 feature_text("xnack", flags >> 8 & 3));
  if (!target::parse_target(out))
    return not_whole(util::format("its header names {}, which kc does not know", out));
  return out;
}

// Notes stand one behind the other: namesz, descsz, type, name and description padded to 4. Loaders look for
// them by the program headers.
Result<std::optional<ByteView>> metadata_in(ByteView notes) {
  const auto padded = [](uint32_t size) { return (uint64_t{size} + 3) / 4 * 4; };
  std::optional<ByteView> out;
  base::ByteReader in(notes);
  while (in.left() > 0) {
    const uint32_t name_size = in.u32();
    const uint32_t size = in.u32();
    const uint32_t type = in.u32();
    const ByteView name = in.raw(padded(name_size));
    const ByteView description = in.raw(size);
    in.raw(std::min<uint64_t>(padded(size) - size, in.left()));  // the last one may do without
    if (!in.ok()) return not_whole("a note is damaged");
    if (type != kMetadataNote || base::as_text(name.first(name_size)) != kNoteOwner) continue;
    if (out) return not_whole("it has metadata twice");
    out = description;
  }
  return out;
}

Result<ByteView> find_metadata(const Image& image) {
  std::optional<ByteView> out;
  uint64_t total = 0;
  for (const Elf64_Phdr& segment : image.segments()) {
    if (segment.p_type != PT_NOTE) continue;
    total += segment.p_filesz;
    if (total > kMostReads * image.bytes().size()) return not_whole("its notes overlap");
    KC_ASSIGN(const auto found, metadata_in(image.bytes().subspan(segment.p_offset, segment.p_filesz)));
    if (out && found) return not_whole("it has metadata twice");
    if (found) out = found;
  }
  if (!out) return not_whole("it has no metadata note");
  return *out;
}

// The file's bytes at an address of the loaded image; nothing when they are not in the file.
std::optional<ByteView> at_address(const Image& image, uint64_t address, uint64_t size, uint32_t flags) {
  for (const Elf64_Phdr& segment : image.segments()) {
    if (segment.p_type != PT_LOAD || (segment.p_flags & flags) != flags || address < segment.p_vaddr)
      continue;
    const uint64_t offset = address - segment.p_vaddr;
    if (within(offset, size, segment.p_filesz)) return image.bytes().subspan(segment.p_offset + offset, size);
  }
  return std::nullopt;
}

// What a runtime launches: a kernel that is in the metadata alone cannot be.
Result<void> check_descriptors(const Image& image, const std::vector<KernelFacts>& kernels) {
  const uint32_t table = image.has_table(SHT_DYNSYM) ? SHT_DYNSYM : SHT_SYMTAB;
  KC_ASSIGN(const auto symbols, image.symbols(table, [](const GElf_Sym& symbol) {
    return GELF_ST_TYPE(symbol.st_info) == STT_OBJECT && symbol.st_shndx != SHN_UNDEF &&
           symbol.st_size == kDescriptorSize;
  }));
  std::unordered_map<std::string_view, uint64_t> address_of;
  for (const Symbol& symbol : symbols) {
    if (!address_of.emplace(symbol.name, symbol.entry.st_value).second) {
      return not_whole(util::format("it has two objects named {}", util::escape(symbol.name)));
    }
  }
  for (const KernelFacts& kernel : kernels) {
    const std::string name = kernel.symbol + std::string(kDescriptorEnd);
    const auto address = address_of.find(name);
    if (address == address_of.end())
      return not_whole(util::format("it has no descriptor {}", util::escape(name)));
    const auto descriptor = at_address(image, address->second, kDescriptorSize, PF_R);
    if (!descriptor) return not_whole(util::format("{} lies outside the file", util::escape(name)));
    const uint64_t entry = address->second + base::load_le<uint64_t>(*descriptor, kEntryOffset);
    if (!at_address(image, entry, 1, PF_X)) {
      return not_whole(util::format("the code of {} lies outside the file", util::escape(kernel.symbol)));
    }
  }
  return {};
}

}  // namespace

Result<Facts> read_amdgpu(ByteView code) {
  KC_ASSIGN(const Image image, Image::open(code, kAmdCodeObject));
  KC_TRY(check_header(image.header()));
  Facts out;
  KC_ASSIGN(out.found_target, target_in_flags(image.header()));
  KC_ASSIGN(const ByteView note, find_metadata(image));
  KC_ASSIGN(AmdgpuMetadata metadata, read_amdgpu_metadata(note));
  const auto stated = target::parse_target(metadata.target);
  if (!stated || !target::found_answers_asked(*stated, *target::parse_target(out.found_target))) {
    return not_whole(util::format("its metadata is for {}, its header for {}", util::escape(metadata.target),
                                  out.found_target));
  }
  KC_TRY(check_descriptors(image, metadata.kernels));
  out.kernels = std::move(metadata.kernels);
  return out;
}

}  // namespace kc::artifact::elf
