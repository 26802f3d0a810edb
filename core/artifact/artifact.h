// What a compiler returned for one unit, as plain data, and how it is written down in entries, messages and
// bundles.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

namespace kc::artifact {

enum class Severity : uint8_t { kNote, kRemark, kWarning, kError };
std::string_view severity_name(Severity severity);  // "note", "remark", "warning", "error"

struct Diagnostic {
  Severity severity = Severity::kError;
  std::string code;  // the compiler's own, may be empty
  std::string message;
  std::string file;   // as the compiler printed it, may be empty
  uint32_t line = 0;  // from 1, 0 = unknown
  uint32_t column = 0;

  bool operator==(const Diagnostic&) const = default;
};

/// One argument of a kernel in its parameter block, both in bytes.
struct Argument {
  uint32_t offset = 0;
  uint32_t size = 0;
  bool operator==(const Argument&) const = default;
};

/// What a code object says about one of its entries.
struct KernelFacts {
  std::string symbol;
  uint32_t registers = 0;                    // a thread: 32-bit registers (NVIDIA) or VGPRs (AMD)
  uint32_t local_memory = 0;                 // bytes a thread: stack frame (NVIDIA) or private segment (AMD)
  std::optional<uint32_t> spills;            // AMD's count of VGPR and SGPR spills; a cubin does not tell
  std::optional<uint32_t> scalar_registers;  // AMD: SGPRs of a wave
  uint32_t shared_memory = 0;                // static bytes a block (NVIDIA) or LDS bytes (AMD)
  uint32_t argument_bytes = 0;               // size of the parameter block
  std::vector<Argument> arguments;           // by offset; without those that a runtime fills in itself
  std::array<uint32_t, 3> required_block{};  // 0,0,0 = the code object asks for none
  uint32_t max_threads = 0;                  // a block, 0 = not stated
  uint32_t wave_size = 0;                    // 32 or 64

  bool operator==(const KernelFacts&) const = default;
};

struct Facts {
  std::string found_target;  // the architecture the code object was assembled for, `sm_90a`
  std::string toolkit;       // version of the tool that assembled it, `13.4`; empty when it does not say
  std::vector<KernelFacts> kernels;  // by symbol

  bool operator==(const Facts&) const = default;
  const KernelFacts* find(std::string_view symbol) const;
};

struct Artifact {
  base::Bytes code;  // the code object as the compiler wrote it
  Facts facts;
  std::vector<Diagnostic> diagnostics;
  base::Bytes report;            // what the backend's `report` option asked for, else empty
  std::string compiler;          // "tileiras"
  std::string compiler_version;  // "13.4.92"

  bool operator==(const Artifact&) const = default;
};

// What readers accept at most; each is far above what a compiler makes, and keeps hostile bytes from taking
// memory. Writers cut diagnostics to these, so that a compiler that prints without end cannot make an entry
// that is unreadable; facts beyond them are written as they are and refused when read.
inline constexpr size_t kMaxMessage = 1U << 20;        // bytes of one diagnostic; two pages are a long one
inline constexpr uint32_t kMaxDiagnostics = 1U << 16;  // remarks of a large kernel: thousands
inline constexpr uint32_t kMaxKernels = 1U << 16;      // entries of one code object
inline constexpr uint32_t kMaxArguments = 1U << 15;  // of one kernel; CUDA's parameter block has 32,764 bytes
inline constexpr size_t kMaxSymbol = 1U << 16;       // bytes; mangled C++ names reach thousands
inline constexpr size_t kMaxPath = 1U << 14;         // bytes; four times PATH_MAX, for escaped ones
inline constexpr size_t kMaxName = 256;              // bytes of a target, a version, a compiler, a tag

// Codecs. Readers take hostile bytes, set `in.fail()` on any nonsense, and bound every count; what they
// return then is empty.
void write_facts(base::ByteWriter& out, const Facts& facts);
Facts read_facts(base::ByteReader& in);
void write_kernel_facts(base::ByteWriter& out, const KernelFacts& facts);
KernelFacts read_kernel_facts(base::ByteReader& in);
void write_diagnostics(base::ByteWriter& out, const std::vector<Diagnostic>& diagnostics);
std::vector<Diagnostic> read_diagnostics(base::ByteReader& in);
void write_artifact(base::ByteWriter& out, const Artifact& artifact);
Artifact read_artifact(base::ByteReader& in);

}  // namespace kc::artifact
