#include "util/elf_object.h"

#include <elf.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include "util/text.h"

namespace kc::util {
namespace {

// Real libraries have about ten program headers, thirty entries in the dynamic section, a dozen needed
// libraries, notes of a hundred bytes, names of a few dozen.
constexpr uint16_t kMostHeaders = 256;
constexpr uint64_t kLargestDynamic = 64U << 10;
constexpr uint64_t kLargestNotes = 64U << 10;
constexpr size_t kMostNeeded = 256;
constexpr size_t kLongestString = 4096;
constexpr size_t kLongestBuildId = 64;

class Reader {
 public:
  Reader(int fd, std::string_view name, uint64_t size) : fd_(fd), name_(name), size_(size) {}

  std::unexpected<base::Error> damaged(std::string_view why) const {
    return base::fail(base::ErrorKind::kEnvironment,
                      util::format("{} is a damaged ELF file: {}", escape(name_), why));
  }

  bool has(uint64_t offset, uint64_t count) const { return offset <= size_ && count <= size_ - offset; }

  base::Result<base::Bytes> bytes(uint64_t offset, uint64_t count, std::string_view what) const {
    if (!has(offset, count)) return damaged(util::format("{} lies beyond its end", what));
    base::Bytes out(static_cast<size_t>(count));
    KC_ASSIGN(const size_t got, read_at(offset, out));
    if (got != out.size()) return damaged(util::format("{} ends early", what));
    return out;
  }

  /// A text that ends in a zero byte.
  base::Result<std::string> string(uint64_t offset) const {
    if (offset >= size_) return damaged("a name lies beyond its end");
    base::Bytes out(static_cast<size_t>(std::min<uint64_t>(kLongestString, size_ - offset)));
    KC_ASSIGN(const size_t got, read_at(offset, out));
    const std::string_view text = base::as_text(base::ByteView(out).first(got));
    const size_t end = text.find('\0');
    if (end == std::string_view::npos) return damaged("a name does not end");
    return std::string(text.substr(0, end));
  }

 private:
  base::Result<size_t> read_at(uint64_t offset, base::Bytes& out) const {
    size_t done = 0;
    while (done < out.size()) {
      const ssize_t got = pread(fd_, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return base::fail_errno(base::ErrorKind::kEnvironment, "read", name_, errno);
      if (got == 0) break;
      done += static_cast<size_t>(got);
    }
    return done;
  }

  const int fd_;
  const std::string_view name_;
  const uint64_t size_;
};

template <typename T>
T load(base::ByteView bytes, size_t offset) {
  T out;
  std::memcpy(&out, bytes.data() + offset, sizeof out);
  return out;
}

/// Where the file holds what is mapped at `address`; nothing when no segment does.
std::optional<uint64_t> offset_of(const std::vector<Elf64_Phdr>& headers, uint64_t address) {
  for (const Elf64_Phdr& header : headers) {
    if (header.p_type != PT_LOAD || address < header.p_vaddr) continue;
    const uint64_t inside = address - header.p_vaddr;
    if (inside < header.p_filesz && header.p_offset <= UINT64_MAX - inside) return header.p_offset + inside;
  }
  return std::nullopt;
}

base::Result<void> read_dynamic(const Reader& reader, const std::vector<Elf64_Phdr>& headers,
                                const Elf64_Phdr& dynamic, ElfObject& out) {
  if (dynamic.p_filesz > kLargestDynamic) return reader.damaged("its dynamic section is too large");
  KC_ASSIGN(const base::Bytes bytes, reader.bytes(dynamic.p_offset, dynamic.p_filesz, "its dynamic section"));
  std::vector<uint64_t> needed;
  std::optional<uint64_t> strings, strings_size, run_path, r_path;
  for (size_t at = 0; at + sizeof(Elf64_Dyn) <= bytes.size(); at += sizeof(Elf64_Dyn)) {
    const auto entry = load<Elf64_Dyn>(bytes, at);
    if (entry.d_tag == DT_NULL) break;
    const uint64_t value = entry.d_un.d_val;
    if (entry.d_tag == DT_NEEDED) needed.push_back(value);
    if (entry.d_tag == DT_STRTAB) strings = value;
    if (entry.d_tag == DT_STRSZ) strings_size = value;
    if (entry.d_tag == DT_RUNPATH) run_path = value;
    if (entry.d_tag == DT_RPATH) r_path = value;
    if (entry.d_tag == DT_FLAGS_1 && (value & DF_1_PIE) != 0) out.is_shared = false;
  }
  if (needed.size() > kMostNeeded) return reader.damaged("it needs too many libraries");
  const auto string = [&](uint64_t index) -> base::Result<std::string> {
    if (!strings || !strings_size || index >= *strings_size) return reader.damaged("a name has no place");
    const auto offset = offset_of(headers, *strings);
    if (!offset || *offset > UINT64_MAX - index) return reader.damaged("its names are not in the file");
    return reader.string(*offset + index);
  };
  for (const uint64_t index : needed) {
    KC_ASSIGN(std::string name, string(index));
    out.needed.push_back(std::move(name));
  }
  // DT_RPATH counts only where there is no DT_RUNPATH.
  if (const auto path = run_path ? run_path : r_path) {
    KC_ASSIGN(const std::string text, string(*path));
    out.search_path = split(text, ':');
  }
  return {};
}

base::Result<void> read_notes(const Reader& reader, const Elf64_Phdr& notes, ElfObject& out) {
  KC_ASSIGN(const base::Bytes bytes, reader.bytes(notes.p_offset, notes.p_filesz, "a note"));
  // Notes of 8-byte alignment (program properties) come in segments of their own.
  const uint64_t alignment = notes.p_align == 8 ? 8 : 4;
  const auto rounded = [&](uint64_t size) { return (size + alignment - 1) / alignment * alignment; };
  uint64_t at = 0;
  while (at + sizeof(Elf64_Nhdr) <= bytes.size()) {
    const auto note = load<Elf64_Nhdr>(bytes, static_cast<size_t>(at));
    const uint64_t name = at + sizeof note;
    const uint64_t content = name + rounded(note.n_namesz);
    const uint64_t next = content + rounded(note.n_descsz);
    if (content + note.n_descsz > bytes.size()) break;
    const base::ByteView view(bytes);
    const bool is_gnu = note.n_namesz == sizeof ELF_NOTE_GNU &&
                        std::memcmp(bytes.data() + name, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0;
    if (is_gnu && note.n_type == NT_GNU_BUILD_ID && note.n_descsz > 0 && note.n_descsz <= kLongestBuildId) {
      const base::ByteView id = view.subspan(static_cast<size_t>(content), note.n_descsz);
      out.build_id.assign(id.begin(), id.end());
      return {};
    }
    at = next;
  }
  return {};
}

struct Machine {
  uint16_t number;
  std::string_view name;
};
constexpr std::array<Machine, 11> kMachines = {{{EM_386, "i386"},
                                                {EM_MIPS, "MIPS"},
                                                {EM_PPC64, "PowerPC64"},
                                                {EM_S390, "S/390"},
                                                {EM_ARM, "ARM"},
                                                {EM_X86_64, "x86-64"},
                                                {EM_AARCH64, "AArch64"},
                                                {EM_CUDA, "NVIDIA CUDA"},
                                                {EM_AMDGPU, "AMDGPU"},
                                                {EM_RISCV, "RISC-V"},
                                                {EM_LOONGARCH, "LoongArch"}}};

}  // namespace

base::Result<ElfObject> read_elf_object(int fd, std::string_view name) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return base::fail_errno(base::ErrorKind::kEnvironment, "stat", name, errno);
  const Reader reader(fd, name, static_cast<uint64_t>(status.st_size));
  const auto is_elf = [](base::ByteView head) {
    return head.size() >= SELFMAG && std::memcmp(head.data(), ELFMAG, SELFMAG) == 0;
  };
  // A text or an empty file is no damaged ELF file.
  const uint64_t head_size = std::min<uint64_t>(sizeof(Elf64_Ehdr), static_cast<uint64_t>(status.st_size));
  KC_ASSIGN(const base::Bytes head, reader.bytes(0, head_size, "its header"));
  if (!is_elf(head)) {
    return base::fail(base::ErrorKind::kEnvironment,
                      util::format("{} is {}", escape(name), head.empty() ? "empty" : "no ELF file"));
  }
  ElfObject out;
  if (head.size() < 20) return reader.damaged("its header ends early");
  const bool is_big = head[EI_DATA] == ELFDATA2MSB;
  out.machine = static_cast<uint16_t>(is_big ? head[18] << 8 | head[19] : head[19] << 8 | head[18]);
  out.is_64 = head[EI_CLASS] == ELFCLASS64 && head[EI_DATA] == ELFDATA2LSB;
  if (!out.is_64) return out;
  if (head.size() < sizeof(Elf64_Ehdr)) return reader.damaged("its header ends early");
  const auto header = load<Elf64_Ehdr>(head, 0);
  out.is_shared = header.e_type == ET_DYN;
  if (header.e_phnum == 0) return out;
  if (header.e_phentsize != sizeof(Elf64_Phdr))
    return reader.damaged("its program headers have another size");
  if (header.e_phnum > kMostHeaders) return reader.damaged("it has too many program headers");
  KC_ASSIGN(
      const base::Bytes table,
      reader.bytes(header.e_phoff, uint64_t{header.e_phnum} * sizeof(Elf64_Phdr), "its program headers"));
  std::vector<Elf64_Phdr> headers(header.e_phnum);
  std::memcpy(headers.data(), table.data(), table.size());
  // A dynamic loader that touches what the file does not have is ended by SIGBUS.
  for (const Elf64_Phdr& segment : headers) {
    if (segment.p_type == PT_LOAD && !reader.has(segment.p_offset, segment.p_filesz)) {
      return reader.damaged("a segment lies beyond its end");
    }
  }
  const auto dynamic = std::ranges::find(headers, uint32_t{PT_DYNAMIC}, &Elf64_Phdr::p_type);
  if (dynamic != headers.end()) KC_TRY(read_dynamic(reader, headers, *dynamic, out));
  uint64_t left = kLargestNotes;
  for (const Elf64_Phdr& segment : headers) {
    if (segment.p_type != PT_NOTE || !out.build_id.empty()) continue;
    if (segment.p_filesz > left) break;  // nothing that a linker writes; the build id is then not known
    left -= segment.p_filesz;
    KC_TRY(read_notes(reader, segment, out));
  }
  return out;
}

std::string elf_machine_name(uint16_t machine) {
  const auto found = std::ranges::find(kMachines, machine, &Machine::number);
  return found == kMachines.end() ? util::format("machine {}", machine) : std::string(found->name);
}

uint16_t host_elf_machine() {
#if defined(__x86_64__)
  return EM_X86_64;
#elif defined(__aarch64__)
  return EM_AARCH64;
#else
#error "kc runs on x86-64 and aarch64 hosts"
#endif
}

}  // namespace kc::util
