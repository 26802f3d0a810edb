#include <algorithm>

#include "backend/tileiras/tileiras.h"

namespace kc::backend::tileiras {
namespace {

// Raised when arguments, environment or fact extraction change: entries made before are then compiled again.
constexpr uint32_t kAdapterRevision = 1;

std::string_view value_of(const Pairs& options, std::string_view name, std::string_view otherwise) {
  const auto found = std::ranges::find(options, name, &Pairs::value_type::first);
  return found == options.end() ? otherwise : std::string_view(found->second);
}

std::optional<std::string> check_options(const Pairs& options) {
  if (value_of(options, "debug", "false") == "true" && value_of(options, "opt", "3") != "0") {
    return "option debug needs opt: 0 (tileiras refuses to debug optimized code)";
  }
  return std::nullopt;
}

}  // namespace

Description description() {
  Description out;
  out.name = kName;
  out.vendor = target::Vendor::kNvidia;
  out.suffixes = {".tilebc"};
  out.options = {{"opt", {"3", "0", "1", "2"}},
                 {"lineinfo", {"false", "true"}},
                 {"debug", {"false", "true"}},
                 {"sanitize", {"none", "memcheck"}},
                 {"report", {"none", "remarks"}}};
  out.available = true;
  out.run = RunKind::kChild;
  out.adapter_revision = kAdapterRevision;
  out.check_options = check_options;
  out.max_sources = 1;
  return out;
}

}  // namespace kc::backend::tileiras
