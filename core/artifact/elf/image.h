// An ELF file as the readers of facts see it: opened with libelf over a copy of its bytes, whole, and
// bounded.
#pragma once

#include <elf.h>
#include <gelf.h>
#include <libelf.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

namespace kc::artifact::elf {

/// What a file should be: the number of its machine, and the words for it in errors.
struct Format {
  uint16_t machine = 0;
  std::string_view name;
};

// Real code objects have a handful; these keep a hostile one from taking memory out of proportion.
inline constexpr size_t kMostKernels = 4096;
inline constexpr size_t kMostSegments = 1024;
inline constexpr size_t kMostArguments = 4096;
inline constexpr size_t kLongestName = 16384;
// Reading every section, or every note, once may cost so many times the file's size. tileiras lets equal
// sections of cubins for sm_100 and up share their bytes when they have line tables: 1.3 times; far more is
// made to cost time.
inline constexpr uint64_t kMostReads = 4;

/// "not a whole <format>: <why>", ErrorKind::kFailed.
std::unexpected<base::Error> not_whole(const Format& format, std::string_view why);

/// Whether a range lies within `total` bytes; no sum of it overflows.
constexpr bool within(uint64_t offset, uint64_t size, uint64_t total) {
  return offset <= total && size <= total - offset;
}

struct Section {
  uint32_t type = 0;
  uint64_t size = 0;
  base::ByteView data;  // empty for SHT_NOBITS
};

struct Symbol {
  uint32_t index = 0;  // in its table
  std::string name;    // never empty
  GElf_Sym entry{};
};

/// 64-bit little-endian ELF of one machine whose sections and segments lie in the file. Views and names are
/// valid as long as it lives. For one thread at a time.
class Image {
 public:
  static base::Result<Image> open(base::ByteView code, const Format& format);

  const GElf_Ehdr& header() const { return header_; }
  base::ByteView bytes() const { return *bytes_; }
  const std::vector<Elf64_Phdr>& segments() const { return segments_; }
  const Section* find(std::string_view name) const;
  /// Names that more than one section has: `find` would answer by chance.
  const std::vector<std::string>& repeated_names() const { return repeated_names_; }
  /// Those of the first table of the type SHT_SYMTAB or SHT_DYNSYM that `is_wanted`; at most kMostKernels.
  base::Result<std::vector<Symbol>> symbols(uint32_t table_type,
                                            bool (*is_wanted)(const GElf_Sym& symbol)) const;
  bool has_table(uint32_t table_type) const;

 private:
  struct End {
    void operator()(Elf* elf) const { elf_end(elf); }
  };
  explicit Image(const Format& format) : format_(format) {}
  base::Result<void> read_segments();
  base::Result<void> read_sections();

  Format format_;
  std::unique_ptr<base::Bytes>
      bytes_;  // before elf_, which points into it; libelf wants it writable, aligned
  std::unique_ptr<Elf, End> elf_;
  GElf_Ehdr header_{};
  std::vector<Elf64_Phdr> segments_;
  std::vector<Section> sections_;
  std::unordered_map<std::string_view, size_t> by_name_;  // names lie in elf_
  std::vector<std::string> repeated_names_;
  Elf_Scn* symbols_ = nullptr;
  Elf_Scn* dynamic_symbols_ = nullptr;
};

}  // namespace kc::artifact::elf
