#include "support/hsaco_writer.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "util/json.h"

namespace kc::test {
namespace {

using base::Bytes;
using base::ByteView;
using util::Json;

constexpr uint16_t kAmdGpuMachine = 224;
constexpr uint8_t kHsaAbi = 64;
constexpr uint32_t kMetadataNote = 32;
constexpr uint64_t kPage = 4096;
constexpr uint64_t kDescriptorSize = 64;

struct Processor {
  std::string_view name;
  uint32_t number;
  bool has_sramecc;
  bool has_xnack;
};
constexpr Processor kProcessors[] = {
    {"gfx90a", 0x3f, true, true},          {"gfx942", 0x4c, true, true},
    {"gfx950", 0x4f, true, true},          {"gfx1036", 0x45, false, false},
    {"gfx1100", 0x41, false, false},       {"gfx1101", 0x46, false, false},
    {"gfx1102", 0x47, false, false},       {"gfx1103", 0x44, false, false},
    {"gfx1150", 0x43, false, false},       {"gfx1151", 0x4a, false, false},
    {"gfx1152", 0x55, false, false},       {"gfx1153", 0x58, false, false},
    {"gfx1200", 0x48, false, false},       {"gfx1201", 0x4e, false, false},
    {"gfx1250", 0x49, false, false},       {"gfx9-4-generic", 0x5f, true, true},
    {"gfx11-generic", 0x54, false, false}, {"gfx12-generic", 0x59, false, false},
};

// Bits of one feature in e_flags: any 1, off 2, on 3; 0 where the processor has none.
uint32_t feature(std::string_view target, std::string_view name, bool is_supported) {
  if (!is_supported) return 0;
  const size_t at = target.find(name);
  if (at == std::string_view::npos || at + name.size() >= target.size()) return 1;
  return target[at + name.size()] == '+' ? 3 : 2;
}

struct Section {
  std::string name;
  uint32_t type = SHT_PROGBITS;
  uint64_t flags = 0;
  uint64_t alignment = 1;
  Bytes data = {};
  uint32_t link = 0;
  uint32_t info = 0;
  uint64_t entry_size = 0;
  uint64_t offset = 0;  // and address, of those that are loaded
};

// Section numbers; 0 is the empty one.
enum Place : uint16_t { kNote = 1, kDynsym, kHash, kDynstr, kRodata, kText, kDynamic, kShstrtab, kEnd };

template <typename T>
void append(Bytes& out, const T& value) {
  const size_t at = out.size();
  out.resize(at + sizeof value);
  std::memcpy(out.data() + at, &value, sizeof value);
}

void append_bytes(Bytes& out, ByteView bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void pad(Bytes& out, uint64_t alignment) {
  while (out.size() % alignment != 0) out.push_back(0);
}

uint32_t add_string(Bytes& table, std::string_view text) {
  const auto at = static_cast<uint32_t>(table.size());
  append_bytes(table, base::as_bytes(text));
  table.push_back(0);
  return at;
}

Json argument_metadata(const HsacoArgument& argument) {
  Json out;
  if (argument.value_kind == "global_buffer") out[".address_space"] = "global";
  if (!argument.name.empty()) out[".name"] = argument.name;
  out[".offset"] = argument.offset;
  out[".size"] = argument.size;
  out[".value_kind"] = argument.value_kind;
  return out;
}

// The keys in order, as LLVM writes them.
Json kernel_metadata(const HsacoKernel& kernel) {
  Json out;
  if (kernel.agprs) out[".agpr_count"] = *kernel.agprs;
  if (!kernel.arguments.empty()) {
    out[".args"] = Json::array();
    for (const HsacoArgument& argument : kernel.arguments)
      out[".args"].push_back(argument_metadata(argument));
  }
  out[".group_segment_fixed_size"] = kernel.group_segment;
  out[".kernarg_segment_align"] = 8U;
  out[".kernarg_segment_size"] = kernel.argument_bytes;
  out[".max_flat_workgroup_size"] = kernel.max_threads;
  out[".name"] = kernel.symbol;
  out[".private_segment_fixed_size"] = kernel.private_segment;
  if (kernel.required_block != std::array<uint32_t, 3>{}) out[".reqd_workgroup_size"] = kernel.required_block;
  out[".sgpr_count"] = kernel.sgprs;
  if (kernel.sgpr_spills) out[".sgpr_spill_count"] = *kernel.sgpr_spills;
  out[".symbol"] = kernel.symbol + ".kd";
  if (kernel.has_dynamic_stack) out[".uses_dynamic_stack"] = true;
  out[".vgpr_count"] = kernel.vgprs;
  if (kernel.vgpr_spills) out[".vgpr_spill_count"] = *kernel.vgpr_spills;
  out[".wavefront_size"] = kernel.wave_size;
  return out;
}

Bytes metadata(const Hsaco& hsaco) {
  if (hsaco.metadata) return *hsaco.metadata;
  Json out;
  out["amdhsa.kernels"] = Json::array();
  for (const HsacoKernel& kernel : hsaco.kernels) {
    if (kernel.has_metadata) out["amdhsa.kernels"].push_back(kernel_metadata(kernel));
  }
  out["amdhsa.target"] = "amdgcn-amd-amdhsa--" + hsaco.target;
  out["amdhsa.version"] = {1U, 2U};
  return Json::to_msgpack(out);
}

Bytes note(std::string_view owner, ByteView description) {
  Bytes out;
  append(out, static_cast<uint32_t>(owner.size() + 1));
  append(out, static_cast<uint32_t>(description.size()));
  append(out, kMetadataNote);
  add_string(out, owner);
  pad(out, 4);
  append_bytes(out, description);
  pad(out, 4);
  return out;
}

// The parts of a kernel descriptor that say something without a device: sizes, and the wave size's bit.
Bytes descriptor(const HsacoKernel& kernel) {
  constexpr uint16_t kWave32 = 1U << 10;  // kernel_code_properties.ENABLE_WAVEFRONT_SIZE32
  Bytes out;
  append(out, kernel.group_segment);
  append(out, kernel.private_segment);
  append(out, kernel.argument_bytes);
  out.resize(56, 0);
  append(out, static_cast<uint16_t>(kernel.wave_size == 32 ? kWave32 : 0));
  out.resize(kDescriptorSize, 0);
  return out;
}

// A SysV hash table with one bucket: every symbol is in its chain.
Bytes hash_table(uint32_t symbols) {
  Bytes out;
  append(out, uint32_t{1});
  append(out, symbols);
  append(out, symbols > 1 ? uint32_t{1} : uint32_t{0});
  for (uint32_t i = 0; i < symbols; ++i) append(out, i == 0 || i + 1 == symbols ? uint32_t{0} : i + 1);
  return out;
}

struct Symbol {
  std::string name;
  bool is_code = false;
  uint64_t offset = 0;  // in .text or .rodata
  uint64_t size = 0;
};

// Fills .rodata and .text; tells where each kernel's code and descriptor came to lie.
std::vector<Symbol> lay_kernels(const Hsaco& hsaco, Section& rodata, Section& text) {
  std::vector<Symbol> out;
  for (const HsacoKernel& kernel : hsaco.kernels) {
    pad(text.data, 256);
    out.push_back({kernel.symbol, true, text.data.size(), kernel.text.size()});
    append_bytes(text.data, kernel.text);
    if (!kernel.has_descriptor) continue;
    out.push_back({kernel.symbol + ".kd", false, rodata.data.size(), kDescriptorSize});
    append_bytes(rodata.data, descriptor(kernel));
  }
  return out;
}

std::vector<Section> sections_of(const Hsaco& hsaco, std::vector<Symbol>& symbols) {
  std::vector<Section> out(kEnd);
  out[kNote] = {.name = ".note", .type = SHT_NOTE, .flags = SHF_ALLOC, .alignment = 4};
  out[kDynsym] = {.name = ".dynsym",
                  .type = SHT_DYNSYM,
                  .flags = SHF_ALLOC,
                  .alignment = 8,
                  .link = kDynstr,
                  .info = 1,
                  .entry_size = sizeof(Elf64_Sym)};
  out[kHash] = {.name = ".hash",
                .type = SHT_HASH,
                .flags = SHF_ALLOC,
                .alignment = 4,
                .link = kDynsym,
                .entry_size = 4};
  out[kDynstr] = {.name = ".dynstr", .type = SHT_STRTAB, .flags = SHF_ALLOC, .data = {0}};
  out[kRodata] = {.name = ".rodata", .flags = SHF_ALLOC, .alignment = 64};
  out[kText] = {.name = ".text", .flags = SHF_ALLOC | SHF_EXECINSTR, .alignment = kPage};
  out[kDynamic] = {.name = ".dynamic",
                   .type = SHT_DYNAMIC,
                   .flags = SHF_ALLOC | SHF_WRITE,
                   .alignment = kPage,
                   .link = kDynstr,
                   .entry_size = sizeof(Elf64_Dyn)};
  out[kShstrtab] = {.name = ".shstrtab", .type = SHT_STRTAB, .data = {0}};
  out[kNote].data = note(hsaco.note_owner, metadata(hsaco));
  symbols = lay_kernels(hsaco, out[kRodata], out[kText]);
  // Sized now, filled when their addresses are known.
  out[kDynsym].data.resize((symbols.size() + 1) * sizeof(Elf64_Sym));
  out[kDynamic].data.resize(6 * sizeof(Elf64_Dyn));
  out[kHash].data = hash_table(static_cast<uint32_t>(symbols.size() + 1));
  for (const Symbol& symbol : symbols) append_bytes(out[kDynstr].data, base::as_bytes(symbol.name + '\0'));
  return out;
}

void fill_symbols(std::vector<Section>& sections, const std::vector<Symbol>& symbols) {
  Bytes table;
  append(table, Elf64_Sym{});
  uint32_t name = 1;
  for (const Symbol& symbol : symbols) {
    const uint16_t home = symbol.is_code ? kText : kRodata;
    Elf64_Sym entry{};
    entry.st_name = name;
    entry.st_info = ELF64_ST_INFO(STB_GLOBAL, symbol.is_code ? STT_FUNC : STT_OBJECT);
    entry.st_other = STV_PROTECTED;
    entry.st_shndx = home;
    entry.st_value = sections[home].offset + symbol.offset;
    entry.st_size = symbol.size;
    append(table, entry);
    name += static_cast<uint32_t>(symbol.name.size() + 1);
  }
  sections[kDynsym].data = std::move(table);
}

// Each descriptor says how far from it its kernel's code is.
void fill_descriptors(std::vector<Section>& sections, const std::vector<Symbol>& symbols) {
  constexpr size_t kEntryOffset = 16;  // KERNEL_CODE_ENTRY_BYTE_OFFSET
  uint64_t code = 0;                   // of the kernel at hand
  for (const Symbol& symbol : symbols) {
    if (symbol.is_code) {
      code = sections[kText].offset + symbol.offset;
      continue;
    }
    const uint64_t distance = code - (sections[kRodata].offset + symbol.offset);
    std::memcpy(sections[kRodata].data.data() + symbol.offset + kEntryOffset, &distance, sizeof distance);
  }
}

void fill_dynamic(std::vector<Section>& sections) {
  Bytes table;
  const std::pair<int64_t, uint64_t> entries[] = {
      {DT_HASH, sections[kHash].offset},     {DT_STRTAB, sections[kDynstr].offset},
      {DT_SYMTAB, sections[kDynsym].offset}, {DT_STRSZ, sections[kDynstr].data.size()},
      {DT_SYMENT, sizeof(Elf64_Sym)},        {DT_NULL, 0}};
  for (const auto& [tag, value] : entries) {
    Elf64_Dyn entry{};
    entry.d_tag = tag;
    entry.d_un.d_val = value;
    append(table, entry);
  }
  sections[kDynamic].data = std::move(table);
}

Elf64_Phdr segment(uint32_t type, uint32_t flags, uint64_t offset, uint64_t size, uint64_t alignment) {
  Elf64_Phdr out{};
  out.p_type = type;
  out.p_flags = flags;
  out.p_offset = out.p_vaddr = out.p_paddr = offset;
  out.p_filesz = out.p_memsz = size;
  out.p_align = alignment;
  return out;
}

constexpr uint64_t kSegments = 6;
constexpr uint64_t kHeadSize = sizeof(Elf64_Ehdr) + kSegments * sizeof(Elf64_Phdr);

std::vector<Elf64_Phdr> segments_of(const std::vector<Section>& sections) {
  const auto of = [&](Place place, uint32_t type, uint32_t flags, uint64_t alignment) {
    return segment(type, flags, sections[place].offset, sections[place].data.size(), alignment);
  };
  const uint64_t first_end = sections[kRodata].offset + sections[kRodata].data.size();
  return {segment(PT_PHDR, PF_R, sizeof(Elf64_Ehdr), kSegments * sizeof(Elf64_Phdr), 8),
          segment(PT_LOAD, PF_R, 0, first_end, kPage),
          of(kText, PT_LOAD, PF_R | PF_X, kPage),
          of(kDynamic, PT_LOAD, PF_R | PF_W, kPage),
          of(kDynamic, PT_DYNAMIC, PF_R | PF_W, 8),
          of(kNote, PT_NOTE, PF_R, 4)};
}

Elf64_Ehdr head_of(const Hsaco& hsaco, uint64_t section_headers) {
  Elf64_Ehdr out{};
  std::memcpy(out.e_ident, ELFMAG, SELFMAG);
  out.e_ident[EI_CLASS] = ELFCLASS64;
  out.e_ident[EI_DATA] = ELFDATA2LSB;
  out.e_ident[EI_VERSION] = EV_CURRENT;
  out.e_ident[EI_OSABI] = kHsaAbi;
  out.e_ident[EI_ABIVERSION] = hsaco.abi_version;
  out.e_type = ET_DYN;
  out.e_machine = kAmdGpuMachine;
  out.e_version = EV_CURRENT;
  out.e_flags = hsaco.flags.value_or(hsaco_flags(hsaco.target));
  out.e_ehsize = sizeof(Elf64_Ehdr);
  out.e_phoff = sizeof(Elf64_Ehdr);
  out.e_phentsize = sizeof(Elf64_Phdr);
  out.e_phnum = kSegments;
  out.e_shoff = section_headers;
  out.e_shentsize = sizeof(Elf64_Shdr);
  out.e_shnum = kEnd;
  out.e_shstrndx = kShstrtab;
  return out;
}

Elf64_Shdr header_of(const Section& section, uint32_t name) {
  Elf64_Shdr out{};
  out.sh_name = name;
  out.sh_type = section.type;
  out.sh_flags = section.flags;
  out.sh_addr = (section.flags & SHF_ALLOC) != 0 ? section.offset : 0;
  out.sh_offset = section.offset;
  out.sh_size = section.data.size();
  out.sh_link = section.link;
  out.sh_info = section.info;
  out.sh_addralign = section.alignment;
  out.sh_entsize = section.entry_size;
  return out;
}

}  // namespace

uint32_t hsaco_flags(std::string_view target) {
  constexpr uint32_t kGenericVersion = 1U << 24;
  const std::string_view name = target.substr(0, target.find(':'));
  const auto* processor = std::ranges::find(kProcessors, name, &Processor::name);
  if (processor == std::end(kProcessors)) return 0;
  return processor->number | feature(target, ":xnack", processor->has_xnack) << 8 |
         feature(target, ":sramecc", processor->has_sramecc) << 10 |
         (name.ends_with("-generic") ? kGenericVersion : 0);
}

Bytes write_hsaco(const Hsaco& hsaco) {
  std::vector<Symbol> symbols;
  std::vector<Section> sections = sections_of(hsaco, symbols);
  std::vector<Elf64_Shdr> headers(1);
  std::vector<uint32_t> names;
  for (size_t i = 1; i < sections.size(); ++i)
    names.push_back(add_string(sections[kShstrtab].data, sections[i].name));

  uint64_t end = kHeadSize;
  for (size_t i = 1; i < sections.size(); ++i) {
    Section& section = sections[i];
    end += (section.alignment - end % section.alignment) % section.alignment;
    section.offset = end;
    end += section.data.size();
  }
  fill_symbols(sections, symbols);
  fill_descriptors(sections, symbols);
  fill_dynamic(sections);

  Bytes out(kHeadSize, 0);
  for (size_t i = 1; i < sections.size(); ++i) {
    out.resize(sections[i].offset, 0);
    append_bytes(out, sections[i].data);
    headers.push_back(header_of(sections[i], names[i - 1]));
  }
  pad(out, 8);
  const Elf64_Ehdr head = head_of(hsaco, out.size());
  for (const Elf64_Shdr& header : headers) append(out, header);
  Bytes front;
  append(front, head);
  for (const Elf64_Phdr& part : segments_of(sections)) append(front, part);
  std::ranges::copy(front, out.begin());
  return out;
}

}  // namespace kc::test
