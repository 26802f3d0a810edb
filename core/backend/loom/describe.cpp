#include <cstdint>

#include "backend/loom/loom.h"

namespace kc::backend::loom {
namespace {

// Raised when the call sequence, the options sent or the facts taken change: entries made before are then
// compiled again.
constexpr uint32_t kAdapterRevision = 1;

}  // namespace

Description description() {
  Description out;
  out.name = kName;
  out.vendor = target::Vendor::kAmd;
  out.suffixes = {".loom", ".loombc"};
  out.options = {{"report", {"none", "summary", "details"}},
                 {"processor_mode", {"default", "compute_unit", "workgroup_processor"}}};
  // No rule between options: `report` is free, and which targets have processor modes is the library's to say
  // (an explicit one on anything but gfx11 and gfx12 fails the unit, as does any with a library that knows
  // none).
  out.takes_configuration = true;
  out.has_front_half = true;
  out.available = true;
  out.run = RunKind::kThreads;
  out.adapter_revision = kAdapterRevision;
  out.takes_libraries = true;
  out.entry_is_symbol = false;  // `kernel.def export("name") @symbol`
  return out;
}

}  // namespace kc::backend::loom
