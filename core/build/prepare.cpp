#include "build/prepare.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/parallel.h"
#include "build/look.h"
#include "build/rules.h"
#include "manifest/names.h"
#include "manifest/source_table.h"
#include "util/limits.h"
#include "util/text.h"

namespace kc::build {
namespace {

using base::Error;
using base::ErrorKind;

// Hashing and reading are bound by memory and disk: more threads than this gained nothing.
constexpr unsigned kReadThreads = 8;

// Units whose keys one thread computes at a time: some hundred microseconds of work.
constexpr size_t kKeyBlock = 32;

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

// Marks the units that `pattern` names; false when there are none.
bool mark_named(const manifest::Plan& plan, const std::string& pattern, std::vector<bool>& chosen) {
  bool any = false;
  for (size_t i = 0; i < plan.units.size(); ++i) {
    const manifest::Unit& unit = plan.units[i];
    if (manifest::is_named(pattern, unit.name, plan.kernels[unit.kernel].name)) chosen[i] = any = true;
  }
  return any;
}

// The units that the filters leave, as a mask over Plan::units.
std::vector<bool> choose(const manifest::Plan& plan, const Options& options, std::vector<Error>& errors) {
  std::vector<bool> chosen(plan.units.size(), options.units.empty());
  std::vector<std::string> names;  // for hints, made when the first is wanted
  for (const std::string& pattern : options.units) {
    if (mark_named(plan, pattern, chosen)) continue;
    if (names.empty()) {
      for (const manifest::Kernel& kernel : plan.kernels) names.push_back(kernel.name);
      for (const manifest::Unit& unit : plan.units) names.push_back(unit.name);
    }
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
      const std::vector<std::string> known(present.begin(), present.end());
      errors.push_back({ErrorKind::kInput,
                        util::format("no unit of the manifest is for {}", text),
                        {},
                        "its targets are " + util::listed(known)});
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
  std::vector<manifest::Source>& sources = prepared.plan.sources;
  std::vector<bool> needed(sources.size());
  const auto need = [&](const std::vector<uint32_t>& indices) {
    for (const uint32_t index : indices) needed[index] = true;
  };
  for (size_t i = 0; i < prepared.units.size(); ++i) {
    need(prepared.unit(i).sources);
    need(prepared.kernel(i).libraries);
    need(prepared.kernel(i).depends);
  }
  prepared.sources.resize(sources.size());
  // What planning has read decided the plan, so it is an input even when no chosen unit is made from it.
  for (size_t i = 0; i < sources.size(); ++i) {
    if (!sources[i].content) continue;
    prepared.sources[i] = std::move(*sources[i].content);
    sources[i].content.reset();
    needed[i] = false;
  }
  std::vector<std::optional<Error>> failed(needed.size());
  base::parallel_for(needed.size(), std::min(util::allowed_cpus(), kReadThreads), [&](size_t i) {
    if (!needed[i]) return;
    manifest::SourceContent& content = prepared.sources[i];
    auto bytes = base::read_file(sources[i].path, manifest::kMaxSourceBytes, &content.tuple);
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

void find_compilers(Prepared& prepared, const Options& options, const State* earlier, Listener& listener,
                    std::vector<Error>& errors) {
  std::map<std::string, std::vector<size_t>> users;
  for (size_t i = 0; i < prepared.units.size(); ++i) users[prepared.kernel(i).backend].push_back(i);
  std::vector<std::string> backends;
  for (const auto& [name, units] : users) {
    const backend::Description* description = backend::find_description(name);
    if (description != nullptr && description->available) {
      backends.push_back(name);
      continue;
    }
    errors.push_back(
        {ErrorKind::kEnvironment,
         util::format(
             "the backend {} is not part of this version of kc, and {} ({}{}) would be built with it", name,
             util::counted(units.size(), "unit"), prepared.unit(units.front()).name,
             units.size() > 1 ? ", ..." : ""),
         prepared.kernel(units.front()).place, "build the other units by name, or with --target"});
  }
  prepared.identities = find_identities(backends, prepared.plan.folder, options, earlier, listener, errors);
  prepared.compilers = std::move(prepared.identities.found);
}

// Units of one kernel follow one another and most are made from the same files: each thread lists them once a
// run of such units.
void compute_keys(Prepared& prepared) {
  const size_t blocks = (prepared.units.size() + kKeyBlock - 1) / kKeyBlock;
  base::parallel_for(blocks, std::min(util::allowed_cpus(), kReadThreads), [&](size_t block) {
    const size_t end = std::min(prepared.units.size(), (block + 1) * kKeyBlock);
    InputFiles files;
    const manifest::Unit* listed = nullptr;
    for (size_t i = block * kKeyBlock; i < end; ++i) {
      const manifest::Unit& unit = prepared.unit(i);
      if (listed == nullptr || listed->kernel != unit.kernel || listed->sources != unit.sources) {
        files = prepared.input_files(i);
        listed = &unit;
      }
      const std::string& name = prepared.kernel(i).backend;
      const backend::Description& backend = *backend::find_description(name);
      const base::Digest& compiler = prepared.compiler(name)->identity;
      ChosenUnit& chosen = prepared.units[i];
      chosen.has_request = backend.has_front_half;
      chosen.key = chosen.has_request
                       ? request_key(unit, backend, compiler, files)
                       : backend::content_key(content_key_inputs(unit, backend, compiler, files));
    }
  });
}

// The user's settings come behind the manifest's.
void take_defaults(manifest::Settings& settings, const UserDefaults& defaults) {
  if (!settings.keep_going) settings.keep_going = defaults.keep_going;
  if (!settings.level) settings.level = defaults.level;
  if (!settings.frame_size) settings.frame_size = defaults.frame_size;
}

}  // namespace

const backend::Compiler* Prepared::compiler(std::string_view backend) const {
  const auto found = std::ranges::find(compilers, backend, &backend::Compiler::backend);
  if (found != compilers.end()) return &*found;
  const AbsentCompiler* missing = absent(backend);
  return missing == nullptr ? nullptr : &missing->compiler;
}

const AbsentCompiler* Prepared::absent(std::string_view backend) const {
  const auto found = std::ranges::find_if(
      identities.absent, [&](const AbsentCompiler& absent) { return absent.compiler.backend == backend; });
  return found == identities.absent.end() ? nullptr : &*found;
}

InputFiles Prepared::input_files(size_t index) const {
  const auto list = [&](const std::vector<uint32_t>& indices) {
    std::vector<InputFile> out;
    out.reserve(indices.size());
    for (const uint32_t i : indices) out.push_back({plan.sources[i].identifier, sources[i].digest});
    return out;
  };
  return {list(unit(index).sources), list(kernel(index).libraries), list(kernel(index).depends)};
}

std::expected<Prepared, ErrorKind> prepare(const Options& options, const State* earlier, Listener& listener) {
  manifest::Loaded loaded = manifest::load(options.manifest, backend_rules(), manifest::kMaxUnits,
                                           options.defaults.timeout.value_or(manifest::kDefaultTimeout));
  for (const Error& warning : loaded.warnings) listener.warning(warning);
  if (!loaded.plan) return report(listener, loaded.errors);

  Prepared prepared;
  prepared.plan = std::move(*loaded.plan);
  take_defaults(prepared.plan.settings, options.defaults);
  prepared.warnings = loaded.warnings.size();
  std::vector<Error> errors;
  const std::vector<bool> chosen = choose(prepared.plan, options, errors);
  if (!errors.empty()) return report(listener, errors);
  prepared.units.reserve(static_cast<size_t>(std::ranges::count(chosen, true)));
  for (uint32_t i = 0; i < chosen.size(); ++i) {
    if (!chosen[i]) continue;
    ChosenUnit unit;
    unit.unit = i;
    unit.timeout = options.timeout.value_or(prepared.plan.units[i].timeout);
    prepared.units.push_back(std::move(unit));
  }

  read_sources(prepared, errors);
  find_compilers(prepared, options, earlier, listener, errors);
  if (!errors.empty()) return report(listener, errors);
  look_at_sources(prepared);

  compute_keys(prepared);
  return prepared;
}

}  // namespace kc::build
