#include "support/cubin_writer.h"

#include <elf.h>

#include <array>
#include <bit>
#include <cstring>
#include <initializer_list>
#include <string_view>
#include <utility>

namespace kc::test {
namespace {

using base::Bytes;
using base::ByteView;
using base::ByteWriter;

constexpr uint16_t kCudaMachine = 190;
constexpr uint8_t kCudaAbi = 0x41;
constexpr uint8_t kCudaAbiVersion = 8;
constexpr uint32_t kFlags = 0x6000004;         // what tileiras 13.4 sets besides the SM number
constexpr uint32_t kInfoSection = 0x70000000;  // SHT_CUDA_INFO
constexpr uint32_t kToolNote = 2000;
constexpr uint32_t kCudaNote = 1000;

struct Section {
  std::string name;
  uint32_t type = SHT_PROGBITS;
  uint64_t flags = 0;
  Bytes data = {};
  uint64_t nobits_size = 0;
  uint32_t link = 0;
  uint32_t info = 0;
  uint64_t alignment = 4;
  uint64_t entry_size = 0;
};

Bytes note(uint32_t type, ByteView description) {
  constexpr std::string_view kOwner{"NVIDIA Corp\0", 12};
  ByteWriter out;
  out.bytes().reserve(32 + kOwner.size() + description.size());
  out.u32(kOwner.size());
  out.u32(static_cast<uint32_t>(description.size()));
  out.u32(type);
  out.raw(base::as_bytes(kOwner));
  out.raw(description);
  out.pad_to(4);
  return out.take();
}

Bytes tool_info(const Cubin& cubin) {
  const std::array<std::string, 5> strings = {"", "ptxas", cubin.tool_version, "Build fake",
                                              cubin.tool_options + " -arch " + cubin.architecture + " "};
  ByteWriter offsets;
  ByteWriter text;
  offsets.u32(2);
  for (const std::string& string : strings) {
    offsets.u32(static_cast<uint32_t>(text.size()));
    text.raw(base::as_bytes(string));
    text.u8(0);
  }
  text.pad_to(4);
  offsets.raw(text.bytes());
  return note(kToolNote, offsets.bytes());
}

Bytes cuda_info(const Cubin& cubin) {
  ByteWriter out;
  out.u16(2);
  out.u16(static_cast<uint16_t>(cubin.sm));
  out.u32(cubin.toolkit);
  return note(kCudaNote, out.bytes());
}

void record(ByteWriter& out, uint8_t type, std::initializer_list<uint32_t> words) {
  out.u8(4);
  out.u8(type);
  out.u16(static_cast<uint16_t>(words.size() * sizeof(uint32_t)));
  for (const uint32_t word : words) out.u32(word);
}

Bytes kernel_info(const CubinKernel& kernel) {
  ByteWriter out;
  for (size_t i = kernel.parameters.size(); i-- > 0;) {  // last first, as ptxas writes them
    const CubinParameter& parameter = kernel.parameters[i];
    const uint32_t place = static_cast<uint32_t>(i) | uint32_t{parameter.offset} << 16;
    if (kernel.has_new_parameter_records) {
      record(out, 0x45, {0, place, parameter.size});
    } else {
      record(out, 0x17, {0, place, uint32_t{parameter.size} << 18 | 0x1f000});
    }
  }
  if (kernel.required_block != std::array<uint32_t, 3>{}) {
    record(out, 0x10, {kernel.required_block[0], kernel.required_block[1], kernel.required_block[2]});
  }
  if (kernel.max_threads != std::array<uint32_t, 3>{}) {
    record(out, 0x05, {kernel.max_threads[0], kernel.max_threads[1], kernel.max_threads[2]});
  }
  out.u8(3);  // a record whose value is its own two bytes
  out.u8(0x19);
  out.u16(kernel.parameter_bytes);
  record(out, 0x0a, {0, 0x210U | uint32_t{kernel.parameter_bytes} << 16});
  return out.take();
}

uint32_t add_string(Bytes& table, const std::string& text) {
  const auto at = static_cast<uint32_t>(table.size());
  table.insert(table.end(), text.begin(), text.end());
  table.push_back(0);
  return at;
}

template <typename T>
void append(Bytes& out, const T& value) {
  const auto raw = std::bit_cast<std::array<uint8_t, sizeof(T)>>(value);
  out.insert(out.end(), raw.begin(), raw.end());
}

// Sections 1 to 3 are .shstrtab, .strtab and .symtab; the kernels' symbols begin at index 1.
std::vector<Section> sections_of(const Cubin& cubin) {
  std::vector<Section> out(3);
  out[0] = {.name = ".shstrtab", .type = SHT_STRTAB, .data = {0}, .alignment = 1};
  out[1] = {.name = ".strtab", .type = SHT_STRTAB, .data = {0}, .alignment = 1};
  out[2] = {.name = ".symtab",
            .type = SHT_SYMTAB,
            .link = 2,
            .info = 1,
            .alignment = 8,
            .entry_size = sizeof(Elf64_Sym)};
  append(out[2].data, Elf64_Sym{});
  if (!cubin.architecture.empty()) {
    out.push_back({.name = ".note.nv.tkinfo", .type = SHT_NOTE, .data = tool_info(cubin)});
  }
  out.push_back({.name = ".note.nv.cuinfo", .type = SHT_NOTE, .data = cuda_info(cubin)});
  ByteWriter common;
  uint32_t symbol = 0;
  for (const CubinKernel& kernel : cubin.kernels) {
    ++symbol;
    record(common, 0x2f, {symbol, kernel.registers});
    record(common, 0x11, {symbol, kernel.frame_size});
    record(common, 0x12, {symbol, kernel.min_stack});
  }
  out.push_back({.name = ".nv.info", .type = kInfoSection, .data = common.take(), .link = 3});
  for (const CubinKernel& kernel : cubin.kernels) {
    out.push_back(
        {.name = ".nv.info." + kernel.symbol, .type = kInfoSection, .data = kernel_info(kernel), .link = 3});
    const size_t text_index = out.size() + 1;
    out.push_back({.name = ".text." + kernel.symbol,
                   .flags = SHF_ALLOC | SHF_EXECINSTR,
                   .data = kernel.text,
                   .link = 3,
                   .alignment = 128});
    if (kernel.shared_memory != 0) {
      out.push_back({.name = ".nv.shared." + kernel.symbol,
                     .type = SHT_NOBITS,
                     .flags = SHF_ALLOC | SHF_WRITE,
                     .nobits_size = kernel.shared_memory,
                     .alignment = 16});
    }
    Elf64_Sym entry{};
    entry.st_name = add_string(out[1].data, kernel.symbol);
    entry.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    entry.st_other = kernel.is_entry ? 0x10 : 0;
    entry.st_shndx = static_cast<Elf64_Section>(text_index);
    entry.st_size = kernel.text.size();
    append(out[2].data, entry);
  }
  return out;
}

}  // namespace

Bytes write_cubin(const Cubin& cubin) {
  std::vector<Section> sections = sections_of(cubin);
  std::vector<Elf64_Shdr> headers(1);
  for (const Section& section : sections) {
    Elf64_Shdr header{};
    header.sh_name = add_string(sections[0].data, section.name);
    headers.push_back(header);
  }
  Bytes out(sizeof(Elf64_Ehdr), 0);
  for (size_t i = 0; i < sections.size(); ++i) {
    const Section& section = sections[i];
    while (out.size() % section.alignment != 0) out.push_back(0);
    Elf64_Shdr& header = headers[i + 1];
    header.sh_type = section.type;
    header.sh_flags = section.flags;
    header.sh_offset = out.size();
    header.sh_size = section.type == SHT_NOBITS ? section.nobits_size : section.data.size();
    header.sh_link = section.link;
    header.sh_info = section.info;
    header.sh_addralign = section.alignment;
    header.sh_entsize = section.entry_size;
    out.insert(out.end(), section.data.begin(), section.data.end());
  }
  while (out.size() % 8 != 0) out.push_back(0);

  Elf64_Ehdr head{};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_ident[EI_DATA] = ELFDATA2LSB;
  head.e_ident[EI_VERSION] = EV_CURRENT;
  head.e_ident[EI_OSABI] = kCudaAbi;
  head.e_ident[EI_ABIVERSION] = kCudaAbiVersion;
  head.e_type = ET_EXEC;
  head.e_machine = kCudaMachine;
  head.e_version = EV_CURRENT;
  head.e_flags = kFlags | cubin.sm << 8;
  head.e_ehsize = sizeof(Elf64_Ehdr);
  head.e_shentsize = sizeof(Elf64_Shdr);
  head.e_shnum = static_cast<Elf64_Half>(headers.size());
  head.e_shstrndx = 1;
  head.e_shoff = out.size();
  for (const Elf64_Shdr& header : headers) append(out, header);
  head.e_phentsize = sizeof(Elf64_Phdr);
  head.e_phnum = 1;
  head.e_phoff = out.size();
  Elf64_Phdr segment{};
  segment.p_type = PT_PHDR;
  segment.p_flags = PF_R | PF_X;
  segment.p_offset = head.e_phoff;
  segment.p_filesz = sizeof segment;
  segment.p_memsz = sizeof segment;
  segment.p_align = 8;
  append(out, segment);
  std::memcpy(out.data(), &head, sizeof head);
  return out;
}

}  // namespace kc::test
