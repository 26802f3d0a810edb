#include "backend/cutile/cutile.h"
#include "backend/tileiras/tileiras.h"

namespace kc::backend::cutile {

Description description() {
  const Description tileiras = tileiras::description();
  Description out;
  out.name = kName;
  out.vendor = tileiras.vendor;
  out.suffixes = {".py"};
  out.options = tileiras.options;  // of the second step; the first has none
  out.check_options = tileiras.check_options;
  out.takes_configuration = true;
  out.has_front_half = true;
  out.run = RunKind::kChild;
  out.max_sources = 1;
  out.opens_files = true;
  out.takes_parameters = true;
  return out;
}

}  // namespace kc::backend::cutile
