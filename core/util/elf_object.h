// What kc itself wants to know of a shared library: for which machine it is, which others it needs, its build
// id. A small reader of its own, since kc links no libelf; the engine reads code objects with that.
//
// Takes hostile files: every size is checked against the file and a bound before memory is taken, at most
// a MiB or so is read, and what does not fit is an error. Source: System V ABI, "Object Files" and
// "Dynamic Linking"; ld.so(8) for the search path.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

namespace kc::util {

struct ElfObject {
  uint16_t machine = 0;                  // e_machine, for any class and byte order
  bool is_64 = false;                    // 64 bits, little-endian; only then is anything below filled in
  bool is_shared = false;                // ET_DYN, and not marked as a program (DF_1_PIE)
  std::vector<std::string> needed;       // DT_NEEDED, in order
  std::vector<std::string> search_path;  // parts of DT_RUNPATH, else of DT_RPATH, as written
  base::Bytes build_id;                  // NT_GNU_BUILD_ID, empty without one
};

/// Reads the file behind `fd`; `name` is for messages. ErrorKind::kEnvironment: cannot be read, is not ELF,
/// or is damaged.
base::Result<ElfObject> read_elf_object(int fd, std::string_view name);

/// `x86-64`, `AArch64`, `machine 999`.
std::string elf_machine_name(uint16_t machine);
/// Of the processor that this kc was compiled for.
uint16_t host_elf_machine();

}  // namespace kc::util
