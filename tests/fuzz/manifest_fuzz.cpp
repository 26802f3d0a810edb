// Manifests with what they include, their tables and lists: a plan or errors, never both; errors that lead to
// their place, plans that keep to the grammar and the limits.
//
// An input is several files: what follows a line `#### NAME`, NAME one of kFiles, is that file's content, up
// to the next such line; what stands before the first is the manifest. To YAML, lists and Loom the line is a
// comment.
#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/files.h"
#include "build/rules.h"
#include "bundle/grammar.h"
#include "fuzz/fuzz.h"
#include "manifest/names.h"
#include "manifest/plan.h"
#include "support/temp_folder.h"
#include "target/target.h"
#include "util/text.h"

namespace kc::fuzz {
namespace {

using manifest::Loaded;
using manifest::Plan;
using manifest::Unit;

// What a plan may take of time and memory is in proportion to this; a million units would be neither a
// minute's worth of tries nor 512 MiB.
constexpr uint64_t kMostUnits = 20'000;

constexpr std::string_view kManifest = "kernels.yaml";
constexpr std::array<std::string_view, 5> kFiles = {"more.yaml", "sub/less.yaml", "tuned.csv", "list.txt",
                                                    "a.loom"};
// Sources that are always there.
constexpr std::array<std::string_view, 8> kSources = {"a.tilebc", "b.tilebc", "k_1.tilebc", "k_2.tilebc",
                                                      "b.loom",   "c.py",     "c.json",     "sub/c.loom"};

using Files = std::map<std::string, std::string, std::less<>>;  // name -> content

Files split(std::string_view input) {
  constexpr std::string_view kMark = "#### ";
  Files out;
  std::string name(kManifest);
  out[name];
  while (!input.empty()) {
    const size_t end = std::min(input.find('\n'), input.size() - 1) + 1;
    const std::string_view line = input.substr(0, end);
    input.remove_prefix(end);
    if (line.starts_with(kMark) && line.ends_with('\n')) {
      const std::string_view named = line.substr(kMark.size(), line.size() - kMark.size() - 1);
      if (std::ranges::find(kFiles, named) != kFiles.end()) {
        name = named;
        out[name].clear();
        continue;
      }
    }
    out[name] += line;
  }
  return out;
}

/// The folder that manifests are read from. What does not change from input to input is not written again.
class Project {
 public:
  Project() {
    for (const std::string_view source : kSources) folder_.write(source, "");
  }
  void fill(const Files& files) {
    for (const std::string_view name : kFiles) {
      if (!files.contains(name) && written_.contains(name)) {
        std::filesystem::remove(folder_ / name);
        written_.erase(std::string(name));
      }
    }
    for (const auto& [name, content] : files) {
      const auto known = written_.find(name);
      if (known != written_.end() && known->second == content) continue;
      folder_.write(name, content);
      written_[name] = content;
    }
  }
  std::string operator/(std::string_view name) const { return folder_ / name; }

 private:
  test::TempFolder folder_;
  Files written_;
};

bool is_printable(std::string_view text) {
  return util::escape(text) == text;
}

// An error or warning names a place in one of the files that were there.
void check_message(const base::Error& error, const Project& project, const Files& files) {
  KC_PROMISE(!error.message.empty());
  KC_PROMISE(is_printable(error.message));
  KC_PROMISE(is_printable(error.hint));
  const base::Place& place = error.place;
  const auto file = std::ranges::find_if(
      files, [&](const auto& candidate) { return place.file == project / candidate.first; });
  KC_PROMISE(file != files.end());
  KC_PROMISE((place.line == 0) <= (place.column == 0));
  if (place.line == 0) return;
  // The end of a file counts as one more line, the end of a line as one more column.
  std::string_view text = file->second;
  for (uint32_t line = 1; line < place.line; ++line) {
    const size_t end = text.find('\n');
    KC_PROMISE(end != std::string_view::npos || line + 1 == place.line);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  KC_PROMISE(place.column <= std::min(text.find('\n'), text.size()) + 1);
}

// Each key once, in order.
bool is_sorted(const manifest::Pairs& pairs) {
  return std::ranges::adjacent_find(pairs, [](const auto& a, const auto& b) { return a.first >= b.first; }) ==
         pairs.end();
}

void check_indices(const std::vector<uint32_t>& indices, const Plan& plan) {
  for (const uint32_t index : indices) KC_PROMISE(index < plan.sources.size());
}

void check_unit(const Unit& unit, const Plan& plan) {
  KC_PROMISE(unit.kernel < plan.kernels.size());
  const manifest::Kernel& kernel = plan.kernels[unit.kernel];
  KC_PROMISE(unit.name == manifest::unit_name(kernel.name, unit.specialization_text, unit.target.text));
  KC_PROMISE(unit.specialization_text == manifest::canonical_configuration(unit.specialization));
  KC_PROMISE(unit.specialization_text.size() <= manifest::kMaxSpecializationBytes);
  KC_PROMISE(unit.selection.size() <= manifest::kMaxSelectionBytes);
  // What a bundle must be able to hold.
  KC_PROMISE(bundle::is_specialization(unit.specialization_text));
  KC_PROMISE(target::parse_target(unit.target.text));
  KC_PROMISE(manifest::is_symbol(unit.entry));
  KC_PROMISE(unit.symbol.empty() || manifest::is_symbol(unit.symbol));
  KC_PROMISE(is_sorted(unit.specialization) && is_sorted(unit.config) && is_sorted(unit.options));
  for (const auto& pair : unit.config) KC_PROMISE(!pair.first.starts_with(manifest::kOptionPrefix));
  KC_PROMISE(!unit.sources.empty());
  check_indices(unit.sources, plan);
  KC_PROMISE(unit.limits < plan.limits.size());
  KC_PROMISE(unit.timeout.count() > 0);
}

void check_plan(const Plan& plan, const Project& project) {
  KC_PROMISE(manifest::is_kernel_name(plan.name));
  KC_PROMISE(plan.output.starts_with(project / "") && plan.output.ends_with(".kcb"));
  KC_PROMISE(!plan.inputs.empty() && plan.inputs.front().path == project / kManifest);
  std::set<std::pair<std::string, std::string>> inputs;
  for (const manifest::Input& input : plan.inputs)
    KC_PROMISE(inputs.emplace(input.path, input.pattern).second);

  std::unordered_set<std::string_view> names;
  for (const manifest::Kernel& kernel : plan.kernels) {
    KC_PROMISE(bundle::is_kernel_name(kernel.name));
    KC_PROMISE(names.insert(kernel.name).second);
    KC_PROMISE(bundle::is_metadata(kernel.metadata));
    check_indices(kernel.libraries, plan);
    check_indices(kernel.depends, plan);
  }
  std::unordered_set<std::string_view> identifiers;
  for (const manifest::Source& source : plan.sources)
    KC_PROMISE(identifiers.insert(source.identifier).second);

  KC_PROMISE(plan.units.size() <= kMostUnits);
  names.clear();
  uint32_t kernel = 0;
  for (const Unit& unit : plan.units) {
    check_unit(unit, plan);
    KC_PROMISE(names.insert(unit.name).second);
    KC_PROMISE(unit.kernel >= kernel);
    kernel = unit.kernel;
  }
}

}  // namespace

bool check(base::ByteView input) {
  static Project project;
  static const std::vector<manifest::BackendRules> rules = build::backend_rules();
  const Files files = split(base::as_text(input));
  project.fill(files);
  const Loaded loaded = manifest::load(project / kManifest, rules, kMostUnits);
  KC_PROMISE(loaded.plan.has_value() == loaded.errors.empty());
  std::set<std::string> said;
  for (const base::Error& error : loaded.errors) {
    check_message(error, project, files);
    KC_PROMISE(error.kind == base::ErrorKind::kInput);
    KC_PROMISE(said.insert(error.text()).second);
  }
  for (const base::Error& warning : loaded.warnings) check_message(warning, project, files);
  if (!loaded.plan) return false;
  check_plan(*loaded.plan, project);
  return true;
}

}  // namespace kc::fuzz
