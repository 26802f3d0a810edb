// Writes ELF files of which only what a search reads is there: a header, the dynamic section, a build id.
// Nothing of them can be loaded.
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace kc::test {

struct SharedObject {
  uint16_t machine =
#if defined(__x86_64__)
      EM_X86_64;
#else
      EM_AARCH64;
#endif
  uint16_t type = ET_DYN;
  std::vector<std::string> needed;
  std::string run_path;  // DT_RUNPATH
  std::string r_path;    // DT_RPATH
  uint64_t flags_1 = 0;
  std::string build_id = "0123456789abcdef0123";
  std::string tail;  // tells files of equal content apart
};

inline std::string write_shared_object(const SharedObject& object) {
  std::string strings(1, '\0');
  const auto add = [&](const std::string& text) {
    const uint64_t at = strings.size();
    strings += text + '\0';
    return at;
  };
  std::vector<Elf64_Dyn> dynamic;
  const auto entry = [&](int64_t tag, uint64_t value) {
    Elf64_Dyn out{};
    out.d_tag = tag;
    out.d_un.d_val = value;
    dynamic.push_back(out);
  };
  for (const std::string& name : object.needed) entry(DT_NEEDED, add(name));
  if (!object.run_path.empty()) entry(DT_RUNPATH, add(object.run_path));
  if (!object.r_path.empty()) entry(DT_RPATH, add(object.r_path));
  if (object.flags_1 != 0) entry(DT_FLAGS_1, object.flags_1);

  constexpr uint64_t kBase = 0x10000;  // addresses are no file offsets
  const uint64_t headers_end = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Phdr);
  const uint64_t dynamic_size = (dynamic.size() + 3) * sizeof(Elf64_Dyn);
  const uint64_t strings_at = headers_end + dynamic_size;
  const uint64_t note_at = (strings_at + strings.size() + 3) / 4 * 4;
  std::string note;
  if (!object.build_id.empty()) {
    Elf64_Nhdr head{4, static_cast<uint32_t>(object.build_id.size()), NT_GNU_BUILD_ID};
    note.append(reinterpret_cast<const char*>(&head), sizeof head);
    note.append("GNU\0", 4);
    note += object.build_id;
    note.resize((note.size() + 3) / 4 * 4);
  }
  entry(DT_STRTAB, kBase + strings_at);
  entry(DT_STRSZ, strings.size());
  entry(DT_NULL, 0);

  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = object.type;
  header.e_machine = object.machine;
  header.e_version = EV_CURRENT;
  header.e_phoff = sizeof header;
  header.e_ehsize = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 3;
  const uint64_t end = note_at + note.size();
  const auto segment = [&](uint32_t type, uint64_t at, uint64_t size) {
    Elf64_Phdr out{};
    out.p_type = type;
    out.p_offset = at;
    out.p_vaddr = kBase + at;
    out.p_filesz = out.p_memsz = size;
    out.p_align = 4;
    return out;
  };
  const Elf64_Phdr segments[] = {segment(PT_LOAD, 0, end), segment(PT_DYNAMIC, headers_end, dynamic_size),
                                 segment(PT_NOTE, note_at, note.size())};
  std::string out(reinterpret_cast<const char*>(&header), sizeof header);
  out.append(reinterpret_cast<const char*>(segments), sizeof segments);
  out.append(reinterpret_cast<const char*>(dynamic.data()), dynamic.size() * sizeof(Elf64_Dyn));
  out += strings;
  out.resize(note_at);
  return out + note + object.tail;
}

}  // namespace kc::test
