#include "support/loom_bridge/processor_mode.h"

#include <elf.h>

#include <cstring>
#include <mutex>
#include <string_view>
#include <unordered_set>

namespace kc::test::bridge {
namespace {

class HandleSet {
 public:
  void set(Handle handle, bool in) {
    const std::lock_guard lock(mutex_);
    if (in) {
      handles_.insert(handle);
    } else {
      handles_.erase(handle);
    }
  }
  bool has(Handle handle) {
    const std::lock_guard lock(mutex_);
    return handles_.contains(handle);
  }

 private:
  std::mutex mutex_;
  std::unordered_set<Handle> handles_;
};

HandleSet g_profiles;
HandleSet g_sequences;

// Calls `visit` with the file offset of each kernel descriptor (symbol NAME.kd).
template <typename Visit>
void each_descriptor(const uint8_t* elf, size_t size, Visit visit) {
  constexpr size_t kDescriptorSize = 64;
  Elf64_Ehdr head;
  if (size < sizeof head) return;
  std::memcpy(&head, elf, sizeof head);
  if (head.e_shoff > size || (size - head.e_shoff) / sizeof(Elf64_Shdr) < head.e_shnum) return;
  const auto* sections = reinterpret_cast<const Elf64_Shdr*>(elf + head.e_shoff);
  for (int i = 0; i < head.e_shnum; ++i) {
    if (sections[i].sh_type != SHT_DYNSYM || sections[i].sh_link >= head.e_shnum) continue;
    const char* strings = reinterpret_cast<const char*>(elf + sections[sections[i].sh_link].sh_offset);
    const auto* symbols = reinterpret_cast<const Elf64_Sym*>(elf + sections[i].sh_offset);
    for (size_t j = 0; j < sections[i].sh_size / sizeof(Elf64_Sym); ++j) {
      const std::string_view name = strings + symbols[j].st_name;
      if (!name.ends_with(".kd") || symbols[j].st_shndx >= head.e_shnum) continue;
      const Elf64_Shdr& home = sections[symbols[j].st_shndx];
      const uint64_t at = symbols[j].st_value - home.sh_addr + home.sh_offset;
      if (at + kDescriptorSize <= size) visit(at);
    }
  }
}

}  // namespace

void CuSequences::add(Handle sequence) {
  g_sequences.set(sequence, true);
  mine_.push_back(sequence);
}

void CuSequences::clear() {
  for (const Handle sequence : mine_) g_sequences.set(sequence, false);
  mine_.clear();
}

bool CuSequences::has(Handle sequence) {
  return g_sequences.has(sequence);
}

void set_cu_profile(Handle profile, bool is_cu) {
  g_profiles.set(profile, is_cu);
}

bool is_cu_profile(Handle profile) {
  return g_profiles.has(profile);
}

void clear_wgp_mode(ByteSpan code_object) {
  // The span was made for the caller, who owns it.
  auto* elf = const_cast<uint8_t*>(code_object.data);
  // ENABLE_WGP_MODE: bit 29 of compute_pgm_rsrc1, the word at 48 of the descriptor.
  each_descriptor(elf, code_object.size, [&](uint64_t at) { elf[at + 51] = elf[at + 51] & 0xDF; });
}

}  // namespace kc::test::bridge
