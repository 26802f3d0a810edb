// Source: the System V ABI, "Object Files".
#include "artifact/elf/image.h"

#include <cstring>
#include <utility>

#include "util/text.h"

namespace kc::artifact::elf {

using base::ByteView;

std::unexpected<base::Error> not_whole(const Format& format, std::string_view why) {
  return base::fail(base::ErrorKind::kFailed, util::format("not a whole {}: {}", format.name, why));
}

base::Result<Image> Image::open(ByteView code, const Format& format) {
  static const bool is_ready = elf_version(EV_CURRENT) != EV_NONE;
  if (!is_ready) return base::fail(base::ErrorKind::kInternal, "libelf is older than its header");
  if (code.size() < sizeof(Elf64_Ehdr) || std::memcmp(code.data(), ELFMAG, SELFMAG) != 0) {
    return not_whole(format, "it does not begin with an ELF header");
  }
  if (code[EI_CLASS] != ELFCLASS64 || code[EI_DATA] != ELFDATA2LSB) {
    return not_whole(format, "it is not 64-bit little-endian ELF");
  }
  Image out(format);
  out.bytes_ = std::make_unique<base::Bytes>(code.begin(), code.end());
  out.elf_.reset(elf_memory(reinterpret_cast<char*>(out.bytes_->data()), out.bytes_->size()));
  if (!out.elf_ || elf_kind(out.elf_.get()) != ELF_K_ELF ||
      gelf_getehdr(out.elf_.get(), &out.header_) == nullptr) {
    return not_whole(format, "libelf does not take it as ELF");
  }
  if (out.header_.e_machine != format.machine) {
    return not_whole(format,
                     util::format("its ELF machine is {}, not {}", out.header_.e_machine, format.machine));
  }
  KC_TRY(out.read_segments());
  KC_TRY(out.read_sections());
  return out;
}

// The program headers stand at the end of what ptxas writes: whoever does not look at them takes a file that
// was cut short for a whole one.
base::Result<void> Image::read_segments() {
  if (header_.e_phnum == 0) return {};
  if (header_.e_phentsize != sizeof(Elf64_Phdr) ||
      !within(header_.e_phoff, uint64_t{header_.e_phnum} * sizeof(Elf64_Phdr), bytes_->size())) {
    return not_whole(format_, "its program headers lie outside the file");
  }
  if (header_.e_phnum > kMostSegments) return not_whole(format_, "it has too many program headers");
  segments_.resize(header_.e_phnum);
  std::memcpy(segments_.data(), bytes_->data() + header_.e_phoff, segments_.size() * sizeof(Elf64_Phdr));
  for (const Elf64_Phdr& segment : segments_) {
    if (!within(segment.p_offset, segment.p_filesz, bytes_->size())) {
      return not_whole(format_, "a segment lies outside the file");
    }
  }
  return {};
}

base::Result<void> Image::read_sections() {
  if (header_.e_shnum == 0 || header_.e_shentsize != sizeof(Elf64_Shdr) ||
      !within(header_.e_shoff, uint64_t{header_.e_shnum} * sizeof(Elf64_Shdr), bytes_->size())) {
    return not_whole(format_, "its section headers are missing or lie outside the file");
  }
  sections_.reserve(header_.e_shnum);
  by_name_.reserve(header_.e_shnum);
  uint64_t total = 0;
  for (Elf_Scn* scn = elf_nextscn(elf_.get(), nullptr); scn != nullptr; scn = elf_nextscn(elf_.get(), scn)) {
    GElf_Shdr shdr;
    if (gelf_getshdr(scn, &shdr) == nullptr) return not_whole(format_, "a section header cannot be read");
    Section section{shdr.sh_type, shdr.sh_size, {}};
    if (shdr.sh_type != SHT_NOBITS && shdr.sh_type != SHT_NULL) {
      if (!within(shdr.sh_offset, shdr.sh_size, bytes_->size())) {
        return not_whole(format_, "a section lies outside the file");
      }
      section.data = ByteView(*bytes_).subspan(shdr.sh_offset, shdr.sh_size);
      total += shdr.sh_size;
      if (total > kMostReads * bytes_->size()) return not_whole(format_, "its sections overlap");
    }
    if (shdr.sh_type == SHT_SYMTAB && symbols_ == nullptr) symbols_ = scn;
    if (shdr.sh_type == SHT_DYNSYM && dynamic_symbols_ == nullptr) dynamic_symbols_ = scn;
    const char* name = elf_strptr(elf_.get(), header_.e_shstrndx, shdr.sh_name);
    if (name == nullptr || strnlen(name, kLongestName) == kLongestName) {
      return not_whole(format_, "a section's name cannot be read");
    }
    if (!by_name_.emplace(name, sections_.size()).second) repeated_names_.emplace_back(name);
    sections_.push_back(section);
  }
  return {};
}

const Section* Image::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &sections_[found->second];
}

bool Image::has_table(uint32_t table_type) const {
  return (table_type == SHT_DYNSYM ? dynamic_symbols_ : symbols_) != nullptr;
}

base::Result<std::vector<Symbol>> Image::symbols(uint32_t table_type,
                                                 bool (*is_wanted)(const GElf_Sym& symbol)) const {
  Elf_Scn* table = table_type == SHT_DYNSYM ? dynamic_symbols_ : symbols_;
  if (table == nullptr) return not_whole(format_, "it has no symbol table");
  GElf_Shdr shdr;
  Elf_Data* data = elf_getdata(table, nullptr);
  if (gelf_getshdr(table, &shdr) == nullptr || data == nullptr || shdr.sh_entsize != sizeof(Elf64_Sym)) {
    return not_whole(format_, "its symbol table cannot be read");
  }
  std::vector<Symbol> out;
  const size_t count = data->d_size / sizeof(Elf64_Sym);
  for (size_t i = 0; i < count; ++i) {
    GElf_Sym symbol;
    if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) {
      return not_whole(format_, "a symbol cannot be read");
    }
    if (!is_wanted(symbol)) continue;
    const char* name = elf_strptr(elf_.get(), shdr.sh_link, symbol.st_name);
    if (name == nullptr || *name == 0 || strnlen(name, kLongestName) == kLongestName) {
      return not_whole(format_, "an entry has no usable name");
    }
    if (out.size() == kMostKernels) return not_whole(format_, "it has too many entries");
    out.push_back({static_cast<uint32_t>(i), name, symbol});
  }
  return out;
}

}  // namespace kc::artifact::elf
