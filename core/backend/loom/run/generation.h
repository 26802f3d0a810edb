// Which generation of the interface a library has: by the symbols it exports and by a probe of what they
// cannot tell.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "backend/loom/run/abi.h"
#include "backend/loom/run/functions.h"
#include "base/error.h"

namespace kc::backend::loom {

enum class Generation : uint8_t { kG3, kG4 };

/// What tells generations apart.
struct Marks {
  bool target_selection = false;          // loomc_target_selection_create_from_profile: G1, G1b
  bool compile_artifact = false;          // loomc_compile_artifact: G4
  bool import_cxx = false;                // loomc_module_import_cxx: an optional part from G3 on
  bool byte_sequences = false;            // loomc_byte_sequence_clone: G2 on
  std::optional<size_t> diagnostic_size;  // loomc_hrx_diagnostic_size, of vendor builds
};

/// The generation that kc can call. ErrorKind::kEnvironment for the others, each by its name with the reason
/// why not, and for what is none of them, with what was found and what is known.
base::Result<Generation> recognise(const Marks& marks);

/// Where a diagnostic holds its place: compares what a probe's diagnostic holds at the two known offsets with
/// the line that its error is on. `row` may be null. ErrorKind::kEnvironment when it is at neither, or at the
/// other generation's.
base::Result<void> check_diagnostic(Generation generation, const void* row, uint32_t line);

/// A text whose only error is on kProbeLine, and does not begin at the byte of that number.
std::string_view probe_text();
inline constexpr uint32_t kProbeLine = 7;

}  // namespace kc::backend::loom
