// A folder with sources, backends to plan for, and what load() says as short text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "manifest/plan.h"
#include "support/temp_folder.h"

namespace kc::test {

inline std::vector<manifest::BackendRules> backends() {
  manifest::BackendRules tileiras;
  tileiras.name = "tileiras";
  tileiras.vendor = target::Vendor::kNvidia;
  tileiras.suffixes = {".tilebc"};
  tileiras.options = {
      {"opt", {"3", "0", "1", "2"}}, {"debug", {"false", "true"}}, {"lineinfo", {"false", "true"}}};
  tileiras.check_options = [](const manifest::Pairs& options) -> std::optional<std::string> {
    bool debug = false;
    bool optimized = true;
    for (const auto& [name, value] : options) {
      if (name == "debug") debug = value == "true";
      if (name == "opt") optimized = value != "0";
    }
    if (debug && optimized) return "debug needs opt 0";
    return std::nullopt;
  };
  tileiras.max_sources = 1;
  manifest::BackendRules loom;
  loom.name = "loom";
  loom.vendor = target::Vendor::kAmd;
  loom.suffixes = {".loom", ".loombc"};
  loom.options = {{"report", {"none", "summary", "details"}}};
  loom.takes_configuration = true;
  manifest::BackendRules cutile;
  cutile.name = "cutile";
  cutile.vendor = target::Vendor::kNvidia;
  cutile.suffixes = {".py"};
  cutile.takes_configuration = true;
  cutile.available = false;
  return {tileiras, loom, cutile};
}

/// a.tilebc, b.tilebc, k_1.tilebc, k_2.tilebc, a.loom, b.loom, lib/c.loom lie beside kernels.yaml.
class Project {
 public:
  Project() {
    for (const char* name :
         {"a.tilebc", "b.tilebc", "k_1.tilebc", "k_2.tilebc", "a.loom", "b.loom", "lib/c.loom"}) {
      folder_.write(name, "");
    }
  }
  const TempFolder& folder() const { return folder_; }
  std::string path() const { return folder_ / "kernels.yaml"; }

  manifest::Loaded load(std::string_view text) const {
    folder_.write("kernels.yaml", text);
    return manifest::load(path(), backends());
  }

  /// `line:column: message (hint)`, without the file, which all of them have.
  std::vector<std::string> texts(const std::vector<base::Error>& errors) const {
    std::vector<std::string> out;
    for (const base::Error& error : errors) {
      std::string text = error.text();
      for (size_t at = text.find(path()); at != std::string::npos; at = text.find(path(), at)) {
        text.erase(at, path().size() + (at == 0 ? 1 : 0));
        if (at == 0 && text.starts_with(' ')) text.erase(0, 1);
      }
      out.push_back(text);
    }
    return out;
  }
  std::vector<std::string> errors(std::string_view text) const { return texts(load(text).errors); }
  std::vector<std::string> warnings(std::string_view text) const { return texts(load(text).warnings); }

  std::vector<std::string> units(std::string_view text) const {
    const manifest::Loaded loaded = load(text);
    if (!loaded.plan) return texts(loaded.errors);
    std::vector<std::string> out;
    for (const manifest::Unit& unit : loaded.plan->units) out.push_back(unit.name);
    return out;
  }

 private:
  TempFolder folder_;
};

/// A manifest of one kernel `k` for sm_90 with `fields` as further lines, from line 7 on.
inline std::string one_kernel(std::string_view fields, std::string_view source = "a.tilebc",
                              std::string_view target = "sm_90") {
  std::string out = "version: 1\nkernels:\n  - name: k\n    sources: ";
  out += source;
  out += "\n    entry: main\n    targets: [";
  out += target;
  out += "]\n";
  return out += fields;
}

using Lines = std::vector<std::string>;
/// As doctest can show it.
inline std::string joined(const Lines& lines) {
  std::string out;
  for (const std::string& line : lines) out += "\n" + line;
  return out;
}

}  // namespace kc::test
