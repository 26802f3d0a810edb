#include "backend/loom/run/generation.h"

#include <cstring>
#include <vector>

#include "util/text.h"

namespace kc::backend::loom {
namespace {

constexpr std::string_view kKnown = "kc works with the generations G3 and G4: use a newer library";

std::unexpected<base::Error> refuse(std::string message) {
  return base::fail(base::ErrorKind::kEnvironment, std::move(message), std::string(kKnown));
}

uint32_t word_at(const void* row, size_t offset) {
  uint32_t out = 0;
  std::memcpy(&out, static_cast<const std::byte*>(row) + offset, sizeof out);
  return out;
}

}  // namespace

base::Result<Generation> recognise(const Marks& marks) {
  if (marks.target_selection) {
    return refuse(
        "the library is of Loom's ABI generation G1 (or G1b): loomc_target_selection_create_from_profile is "
        "there; "
        "compilers of that generation put wrong code for gfx12*");
  }
  if (marks.compile_artifact) return Generation::kG4;
  if (marks.import_cxx || marks.diagnostic_size == sizeof(abi::DiagnosticG3)) return Generation::kG3;
  if (marks.byte_sequences) {
    return refuse(
        "the library is of Loom's ABI generation G2: loomc_byte_sequence_clone is there, but neither "
        "loomc_compile_artifact (G4) nor loomc_module_import_cxx (G3); kc has no adapter for it");
  }
  return refuse(
      "the library is of no generation of Loom's ABI that is known: none of "
      "loomc_target_selection_create_from_profile (G1), loomc_byte_sequence_clone (G2 on), "
      "loomc_module_import_cxx (G3) "
      "and loomc_compile_artifact (G4) is there");
}

base::Result<void> check_diagnostic(Generation generation, const void* row, uint32_t line) {
  constexpr size_t kG3Line = offsetof(abi::DiagnosticG3, range) + offsetof(abi::SourceRange, start_line);
  constexpr size_t kG4Line = offsetof(abi::DiagnosticG4, range) + offsetof(abi::SourceRange, start_line);
  const std::string_view name = generation == Generation::kG4 ? "G4" : "G3";
  if (row == nullptr) {
    return refuse(util::format(
        "the library looks like Loom's ABI generation {}, but found nothing wrong with a text that is",
        name));
  }
  // The shorter layout first: beyond its end nothing may be read.
  const bool is_early = word_at(row, kG3Line) == line;
  if (generation == Generation::kG3 ? is_early : !is_early && word_at(row, kG4Line) == line) return {};
  return refuse(
      util::format("the library looks like Loom's ABI generation {}, but its diagnostics hold their place {}",
                   name, is_early ? "where G2 and G3 do" : "elsewhere"));
}

std::string_view probe_text() {
  return "// kc asks where this library puts the line of a diagnostic.\n"
         "//\n"
         "//\n"
         "//\n"
         "//\n"
         "//\n"
         "this is no Loom\n";
}

}  // namespace kc::backend::loom
