#include "build/prepare.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "base/parallel.h"
#include "build/keys.h"
#include "util/limits.h"
#include "util/text.h"

namespace kc::build {
namespace {

using base::Error;
using base::ErrorKind;

// Larger than any kernel source; a size that is refused before memory is taken.
constexpr uint64_t kMaxSource = 256ULL << 20;

// Hashing and reading are bound by memory and disk: more threads than this gained nothing.
constexpr unsigned kReadThreads = 8;

using Failure = std::unexpected<ErrorKind>;

Failure report(Listener& listener, const std::vector<Error>& errors) {
  ErrorKind worst = ErrorKind::kFailed;
  for (const Error& error : errors) {
    listener.error(error);
    // The first that applies, as the exit codes are ordered: 4, 2, 3, 1.
    const auto rank = [](ErrorKind kind) {
      switch (kind) {
        case ErrorKind::kInternal:
          return 3;
        case ErrorKind::kInput:
          return 2;
        case ErrorKind::kEnvironment:
          return 1;
        case ErrorKind::kFailed:
          return 0;
      }
      return 3;
    };
    if (rank(error.kind) > rank(worst)) worst = error.kind;
  }
  return Failure(worst);
}

std::vector<manifest::BackendRules> rules() {
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
    out.push_back(std::move(rule));
  }
  return out;
}

bool is_glob(std::string_view text) {
  return text.find_first_of("*?[") != std::string_view::npos;
}

// Marks the units that `pattern` names; false when there are none.
bool mark_named(const manifest::Plan& plan, const std::string& pattern, std::vector<bool>& chosen) {
  const bool glob = is_glob(pattern);
  bool any = false;
  for (size_t i = 0; i < plan.units.size(); ++i) {
    const manifest::Unit& unit = plan.units[i];
    const std::string& kernel = plan.kernels[unit.kernel].name;
    // A name without `@target` stands for all its targets.
    const bool without_target = unit.name.size() > pattern.size() && unit.name.starts_with(pattern) &&
                                unit.name[pattern.size()] == '@';
    const bool matches =
        without_target || pattern == unit.name || pattern == kernel ||
        (glob && (util::glob_match(pattern, unit.name) || util::glob_match(pattern, kernel)));
    if (matches) chosen[i] = any = true;
  }
  return any;
}

// The units that the filters leave, as a mask over Plan::units.
std::vector<bool> choose(const manifest::Plan& plan, const Options& options, std::vector<Error>& errors) {
  std::vector<bool> chosen(plan.units.size(), options.units.empty());
  for (const std::string& pattern : options.units) {
    if (mark_named(plan, pattern, chosen)) continue;
    std::vector<std::string> names;
    for (const manifest::Kernel& kernel : plan.kernels) names.push_back(kernel.name);
    for (const manifest::Unit& unit : plan.units) names.push_back(unit.name);
    errors.push_back({ErrorKind::kInput,
                      util::format("no unit or kernel is named \"{}\"", util::escape(pattern)),
                      {},
                      util::did_you_mean(pattern, names)});
  }
  if (options.targets.empty()) return chosen;
  std::set<std::string> wanted;
  std::set<std::string> present;
  for (const manifest::Unit& unit : plan.units) present.insert(unit.target.text);
  for (const std::string& text : options.targets) {
    const auto target = target::parse_target(text);
    if (!target) {
      errors.push_back(target.error());
    } else if (!present.contains(target->text)) {
      const std::vector<std::string> names(present.begin(), present.end());
      errors.push_back({ErrorKind::kInput,
                        util::format("no unit of the manifest is for {}", text),
                        {},
                        "its targets are " + util::listed(names)});
    } else {
      wanted.insert(target->text);
    }
  }
  bool any = false;
  for (size_t i = 0; i < chosen.size(); ++i) {
    chosen[i] = chosen[i] && wanted.contains(plan.units[i].target.text);
    any = any || chosen[i];
  }
  if (!any && errors.empty()) {
    errors.push_back({ErrorKind::kInput, "the named units and --target have no unit in common", {}, {}});
  }
  return chosen;
}

void read_sources(Prepared& prepared, std::vector<Error>& errors) {
  std::vector<bool> needed(prepared.plan.sources.size());
  for (size_t i = 0; i < prepared.units.size(); ++i) {
    for (const uint32_t source : prepared.unit(i).sources) needed[source] = true;
  }
  prepared.sources.resize(needed.size());
  std::vector<std::optional<Error>> failed(needed.size());
  base::parallel_for(needed.size(), std::min(util::allowed_cpus(), kReadThreads), [&](size_t i) {
    if (!needed[i]) return;
    SourceContent& content = prepared.sources[i];
    auto bytes = base::read_file(prepared.plan.sources[i].path, kMaxSource, &content.tuple);
    if (!bytes) {
      failed[i] = bytes.error();
      return;
    }
    content.bytes = std::move(*bytes);
    content.digest = base::sha256(content.bytes);
  });
  for (size_t i = 0; i < failed.size(); ++i) {
    if (!failed[i]) continue;
    Error error = std::move(*failed[i]);
    if (!error.place.file.empty()) error.message = error.place.file + " " + error.message;
    error.place = prepared.plan.sources[i].place;
    errors.push_back(std::move(error));
  }
}

// A look at the sources: what no compiler could take, and entries that are not there.
void look_at_sources(Prepared& prepared) {
  struct Look {
    std::optional<Error> refused;
    std::optional<std::vector<std::string>> entries;
  };
  std::map<std::pair<std::string, uint32_t>, Look> looks;
  for (size_t i = 0; i < prepared.units.size(); ++i) {
    const std::string& backend = prepared.kernel(i).backend;
    ChosenUnit& chosen = prepared.units[i];
    const manifest::Unit& unit = prepared.unit(i);
    std::vector<const std::vector<std::string>*> lists;
    for (const uint32_t source : unit.sources) {
      const auto [at, added] = looks.try_emplace({backend, source});
      if (added) {
        const base::Bytes& bytes = prepared.sources[source].bytes;
        const std::string& name = prepared.plan.sources[source].identifier;
        if (auto checked = backend::check_source(backend, name, bytes); !checked) {
          at->second.refused = checked.error();
        } else if (auto entries = backend::entries_of(backend, bytes)) {
          at->second.entries = std::move(*entries);
        }
      }
      if (at->second.refused && !chosen.refused) {
        chosen.refused = at->second.refused;
        chosen.refused->kind = ErrorKind::kFailed;  // its content is at fault, not that it cannot be read
      }
      if (at->second.entries) lists.push_back(&*at->second.entries);
    }
    // A source whose entries cannot be read without the compiler may hold any.
    if (chosen.refused || lists.size() != unit.sources.size()) continue;
    const bool is_there = std::any_of(lists.begin(), lists.end(), [&](const std::vector<std::string>* list) {
      return std::find(list->begin(), list->end(), unit.entry) != list->end();
    });
    if (!is_there) {
      std::vector<std::string> all;
      for (const std::vector<std::string>* list : lists) all.insert(all.end(), list->begin(), list->end());
      const std::string& source = prepared.plan.sources[unit.sources.front()].identifier;
      std::string hint = util::did_you_mean(unit.entry, all);
      chosen.refused = Error{ErrorKind::kFailed,
                             util::format("{} has no entry \"{}\"; it has {}", util::escape(source),
                                          unit.entry, all.empty() ? "none" : util::escape(util::listed(all))),
                             prepared.kernel(i).place, std::move(hint)};
    }
  }
}

void find_compilers(Prepared& prepared, const Options& options, const State* earlier,
                    std::vector<Error>& errors) {
  std::map<std::string, std::vector<size_t>> users;
  for (size_t i = 0; i < prepared.units.size(); ++i) users[prepared.kernel(i).backend].push_back(i);
  for (const auto& [name, units] : users) {
    const backend::Description* description = backend::find_description(name);
    if (description == nullptr || !description->available) {
      errors.push_back({ErrorKind::kEnvironment,
                        util::format("the backend {} is not part of this version of kc; {} ({}{}) need it",
                                     name, util::counted(units.size(), "unit"),
                                     prepared.unit(units.front()).name, units.size() > 1 ? ", ..." : ""),
                        prepared.kernel(units.front()).place,
                        "build the other units by name, or with --target"});
      continue;
    }
    const auto known =
        earlier != nullptr ? known_digests(earlier->compilers, earlier->recorded_ns) : backend::KnownDigest();
    auto found = backend::find_compiler(name, options.search, known);
    if (found) {
      prepared.compilers.push_back(std::move(*found));
    } else {
      errors.push_back(found.error());
    }
  }
}

}  // namespace

const backend::Compiler* Prepared::compiler(std::string_view backend) const {
  const auto found = std::find_if(compilers.begin(), compilers.end(),
                                  [&](const backend::Compiler& c) { return c.backend == backend; });
  return found == compilers.end() ? nullptr : &*found;
}

std::vector<base::Digest> Prepared::source_digests(size_t index) const {
  std::vector<base::Digest> digests;
  for (const uint32_t source : unit(index).sources) digests.push_back(sources[source].digest);
  return digests;
}

std::expected<Prepared, ErrorKind> prepare(const Options& options, const State* earlier, Listener& listener) {
  manifest::Loaded loaded = manifest::load(options.manifest, rules());
  for (const Error& warning : loaded.warnings) listener.warning(warning);
  if (!loaded.plan) return report(listener, loaded.errors);

  Prepared prepared;
  prepared.plan = std::move(*loaded.plan);
  prepared.warnings = loaded.warnings.size();
  std::vector<Error> errors;
  const std::vector<bool> chosen = choose(prepared.plan, options, errors);
  if (!errors.empty()) return report(listener, errors);
  for (uint32_t i = 0; i < chosen.size(); ++i) {
    if (!chosen[i]) continue;
    ChosenUnit unit;
    unit.unit = i;
    unit.timeout = options.timeout.value_or(prepared.plan.kernels[prepared.plan.units[i].kernel].timeout);
    prepared.units.push_back(std::move(unit));
  }

  read_sources(prepared, errors);
  find_compilers(prepared, options, earlier, errors);
  if (!errors.empty()) return report(listener, errors);
  look_at_sources(prepared);

  for (size_t i = 0; i < prepared.units.size(); ++i) {
    const std::string& backend = prepared.kernel(i).backend;
    prepared.units[i].key = content_key(prepared.unit(i), *backend::find_description(backend),
                                        prepared.compiler(backend)->identity, prepared.source_digests(i));
  }
  return prepared;
}

}  // namespace kc::build
