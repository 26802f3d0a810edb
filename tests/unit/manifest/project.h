// A folder with sources, backends to plan for, and what load() says as short text.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "manifest/plan.h"
#include "support/temp_folder.h"

namespace kc::test {

/// What stands behind `word` in the lines of a source for tests that begins with the line `module`; nothing
/// of any other source, as of one that only its compiler can read.
inline std::optional<std::vector<std::string>> words_behind(std::string_view word, base::ByteView bytes) {
  std::string_view text = base::as_text(bytes);
  if (!text.starts_with("module\n")) return std::nullopt;
  std::vector<std::string> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with(word) && line.substr(word.size()).starts_with(' ')) {
      out.emplace_back(line.substr(word.size() + 1));
    }
  }
  return out;
}

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
  tileiras.exported_entries = [](const std::string& /*path*/, base::ByteView bytes) {
    return words_behind("export", bytes);
  };
  manifest::BackendRules loom;
  loom.name = "loom";
  loom.vendor = target::Vendor::kAmd;
  loom.suffixes = {".loom", ".loombc"};
  loom.options = {{"report", {"none", "summary", "details"}}};
  loom.takes_configuration = true;
  loom.takes_libraries = true;
  loom.exported_entries = [](const std::string& /*path*/, base::ByteView bytes) {
    return words_behind("export", bytes);
  };
  loom.declared_keys = [](const std::string& /*path*/, base::ByteView bytes) {
    return words_behind("key", bytes);
  };
  manifest::BackendRules cutile;
  cutile.name = "cutile";
  cutile.vendor = target::Vendor::kNvidia;
  cutile.suffixes = {".py"};
  cutile.takes_configuration = true;
  cutile.takes_parameters = true;
  cutile.opens_files = true;
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

  manifest::Loaded load(std::string_view text, uint64_t max_units = manifest::kMaxUnits) const {
    folder_.write("kernels.yaml", text);
    return manifest::load(path(), backends_, max_units);
  }
  /// What to plan for from now on.
  std::vector<manifest::BackendRules>& rules() { return backends_; }

  /// Of a manifest without errors.
  manifest::Plan plan(std::string_view text) const {
    manifest::Loaded loaded = load(text);
    for (const base::Error& error : loaded.errors) MESSAGE(error.text());
    REQUIRE(loaded.plan.has_value());
    return std::move(*loaded.plan);
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
  std::vector<manifest::BackendRules> backends_ = backends();
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
