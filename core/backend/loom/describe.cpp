#include "backend/loom/loom.h"

namespace kc::backend::loom {

Description description() {
  Description out;
  out.name = kName;
  out.vendor = target::Vendor::kAmd;
  out.suffixes = {".loom", ".loombc"};
  out.options = {{"report", {"none", "summary", "details"}},
                 {"processor_mode", {"default", "compute_unit", "workgroup_processor"}}};
  out.takes_configuration = true;
  out.has_front_half = true;
  out.run = RunKind::kThreads;
  out.takes_libraries = true;
  return out;
}

}  // namespace kc::backend::loom
