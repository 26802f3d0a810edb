#include "build/rules.h"

#include <optional>
#include <string>
#include <utility>

#include "backend/backend.h"

namespace kc::build {

std::vector<manifest::BackendRules> backend_rules() {
  std::vector<manifest::BackendRules> out;
  for (const backend::Description& description : backend::descriptions()) {
    manifest::BackendRules rule;
    rule.name = description.name;
    rule.vendor = description.vendor;
    rule.suffixes = description.suffixes;
    for (const backend::Option& option : description.options)
      rule.options.push_back({option.name, option.values});
    rule.takes_configuration = description.takes_configuration;
    rule.check_options = description.check_options;
    rule.max_sources = description.max_sources;
    rule.available = description.available;
    rule.takes_libraries = description.takes_libraries;
    rule.opens_files = description.opens_files;
    rule.takes_parameters = description.takes_parameters;
    rule.exported_entries = [name = description.name](const std::string& path, base::ByteView bytes) {
      auto entries = backend::entries_of(name, path, bytes);
      return entries ? std::optional(std::move(*entries)) : std::nullopt;
    };
    // A backend without configuration declares nothing, and is asked nothing.
    if (description.takes_configuration) {
      rule.declared_keys = [name = description.name](const std::string& path, base::ByteView bytes) {
        return backend::declared_keys_of(name, path, bytes);
      };
    }
    out.push_back(std::move(rule));
  }
  return out;
}

}  // namespace kc::build
