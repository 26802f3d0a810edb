#include "manifest/resolve.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/files.h"

namespace kc::manifest {
namespace {

std::string_view vendor_name(target::Vendor vendor) {
  return vendor == target::Vendor::kNvidia ? "NVIDIA" : "AMD";
}

// Whose file it is by its suffix; nothing when no backend has it.
const BackendRules* backend_of(std::string_view path, const std::vector<BackendRules>& backends) {
  const std::string name = base::file_name(path);
  for (const BackendRules& backend : backends) {
    for (const std::string& suffix : backend.suffixes) {
      if (name.size() > suffix.size() && name.ends_with(suffix)) return &backend;
    }
  }
  return nullptr;
}

constexpr std::string_view kNotHere = "not in this version";

std::string known_suffixes(const std::vector<BackendRules>& backends) {
  std::vector<std::string> out;
  for (const BackendRules& backend : backends) {
    for (const std::string& suffix : backend.suffixes) {
      out.push_back(backend.available ? util::format("{} ({})", suffix, backend.name)
                                      : util::format("{} ({}, {})", suffix, backend.name, kNotHere));
    }
  }
  return "known: " + util::listed(out, out.size());
}

std::string known_backends(const std::vector<BackendRules>& backends) {
  std::vector<std::string> out;
  for (const BackendRules& backend : backends) {
    out.push_back(backend.available ? backend.name : util::format("{} ({})", backend.name, kNotHere));
  }
  return "known: " + util::listed(out, out.size());
}

class Resolver {
 public:
  Resolver(const KernelDraft& draft, const ResolveContext& context)
      : draft_(draft), context_(context), faults_(context.faults) {}

  ResolvedKernel resolve() {
    const size_t before = faults_.count();
    out_.draft = &draft_;
    out_.backend = find_backend();
    parse_templates();
    if (out_.backend != nullptr) {
      check_source_count();
      resolve_options();
      check_limits();
      resolve_targets();
    }
    if (draft_.config) {
      for (const NamedText& pair : *draft_.config) out_.config.emplace_back(pair.key.text, pair.value.text);
      std::sort(out_.config.begin(), out_.config.end());
    }
    check_configuration();
    out_.is_good = !draft_.is_faulty && faults_.count() == before;
    return std::move(out_);
  }

 private:
  const BackendRules* find_backend() {
    if (draft_.backend.is_faulty()) return nullptr;
    return draft_.backend ? named_backend() : backend_by_suffix();
  }

  const BackendRules* named_backend() {
    const std::string& name = draft_.backend->text;
    const BackendRules* found = nullptr;
    std::vector<std::string> names;
    for (const BackendRules& backend : context_.backends) {
      names.push_back(backend.name);
      if (backend.name == name) found = &backend;
    }
    if (found == nullptr) {
      std::string hint = util::did_you_mean(name, names);
      if (hint.empty()) hint = known_backends(context_.backends);
      faults_.error(draft_.backend->place, "unknown backend " + in_quotes(name), std::move(hint));
      return nullptr;
    }
    if (!draft_.sources) return found;
    for (const Text& source : *draft_.sources) {
      const BackendRules* other = backend_of(source.text, context_.backends);
      if (other == nullptr || other == found) continue;
      faults_.error(source.place, util::format("{} is a source for {}, and \"backend\" says {}",
                                               in_quotes(source.text), other->name, found->name));
    }
    return found;
  }

  const BackendRules* backend_by_suffix() {
    if (!draft_.sources) return nullptr;
    const BackendRules* found = nullptr;
    const Text* first = nullptr;
    bool good = true;
    for (const Text& source : *draft_.sources) {
      const BackendRules* backend = backend_of(source.text, context_.backends);
      if (backend == nullptr) {
        report_no_backend(source);
        good = false;
      } else if (found == nullptr) {
        found = backend;
        first = &source;
      } else if (backend != found) {
        faults_.error(source.place,
                      util::format("{} is a source for {}, but {} is one for {}", in_quotes(source.text),
                                   backend->name, in_quotes(first->text), found->name),
                      "a kernel has one backend");
        good = false;
      }
    }
    return good ? found : nullptr;
  }

  void report_no_backend(const Text& source) {
    const std::string name = base::file_name(source.text);
    const size_t dot = name.rfind('.');
    const std::string suffix = dot == std::string::npos || dot == 0 ? "" : name.substr(dot);
    if (suffix.find_first_of("{}") != std::string::npos) {
      faults_.error(source.place, util::format("the backend cannot be told from {}", in_quotes(source.text)),
                    "name it with `backend:`");
    } else {
      faults_.error(source.place,
                    suffix.empty() ? util::format("the source {} has no suffix that says its backend",
                                                  in_quotes(source.text))
                                   : util::format("no backend takes sources that end in {} ({})",
                                                  in_quotes(suffix), in_quotes(source.text)),
                    known_suffixes(context_.backends));
    }
  }

  void parse_templates() {
    if (draft_.sources) {
      std::unordered_set<std::string_view> seen;
      for (const Text& source : *draft_.sources) {
        std::optional<Template> parsed = Template::parse(source, "\"sources\"", faults_);
        if (!parsed) continue;
        if (!seen.insert(source.text).second) {
          faults_.error(source.place, util::format("the source {} is listed twice", in_quotes(source.text)));
          continue;
        }
        // A file that no backend takes was reported; that it is not there either adds nothing.
        const bool is_taken = draft_.backend || backend_of(source.text, context_.backends) != nullptr;
        if (parsed->is_literal() && is_taken) check_file(source);
        out_.sources.push_back(std::move(*parsed));
      }
    }
    if (draft_.entry) {
      out_.entry = Template::parse(*draft_.entry, "\"entry\"", faults_);
    } else if (!draft_.entry.written && draft_.name) {
      out_.entry = Template::parse(*draft_.name, "\"entry\"", faults_);
    }
  }

  // Of a source without `{key}`, whatever else is wrong with its kernel; the others are looked at when their
  // names are known.
  void check_file(const Text& source) {
    const SourceTable::Entry& entry = context_.sources.add(source.text, faults_.located(source.place));
    if (!entry.fault.empty()) {
      faults_.error(source.place, entry.fault,
                    faults_.wants_hints() ? context_.sources.hint_for(source.text) : "");
    }
  }

  // At the first source that is one too many.
  void check_source_count() {
    const uint32_t most = out_.backend->max_sources;
    if (!draft_.sources || most == 0 || draft_.sources->size() <= most) return;
    faults_.error((*draft_.sources)[most].place,
                  util::format("{} takes {} a kernel, and this has {}", out_.backend->name,
                               util::counted(most, "source"), draft_.sources->size()),
                  "write a kernel for each");
  }

  void resolve_options() {
    const std::vector<BackendRules::Option>& known = out_.backend->options;
    for (const BackendRules::Option& option : known)
      out_.options.emplace_back(option.name, option.values.front());
    std::sort(out_.options.begin(), out_.options.end());
    if (!draft_.options) return;
    const size_t before = faults_.count();
    for (const NamedText& pair : *draft_.options) {
      const auto option = std::find_if(
          known.begin(), known.end(),
          [&](const BackendRules::Option& candidate) { return candidate.name == pair.key.text; });
      if (option == known.end()) {
        report_unknown_option(pair.key);
      } else if (std::find(option->values.begin(), option->values.end(), pair.value.text) ==
                 option->values.end()) {
        std::string hint = util::did_you_mean(pair.value.text, option->values);
        if (hint.empty()) hint = "one of " + util::listed(option->values, option->values.size());
        faults_.error(pair.value.place,
                      util::format("{} is no value of the option {}", in_quotes(pair.value.text),
                                   in_quotes(pair.key.text)),
                      std::move(hint));
      } else {
        const auto at = std::lower_bound(out_.options.begin(), out_.options.end(),
                                         std::pair(pair.key.text, std::string()));
        at->second = pair.value.text;
      }
    }
    if (faults_.count() != before || !out_.backend->check_options) return;
    if (const std::optional<std::string> fault = out_.backend->check_options(out_.options)) {
      faults_.error(draft_.options_place, *fault);
    }
  }

  void report_unknown_option(const Text& key) {
    std::vector<std::string> names;
    for (const BackendRules::Option& option : out_.backend->options) names.push_back(option.name);
    std::string hint = util::did_you_mean(key.text, names);
    if (hint.empty()) hint = "known: " + util::listed(names, names.size());
    faults_.error(key.place, util::format("{} has no option {}", out_.backend->name, in_quotes(key.text)),
                  std::move(hint));
  }

  void check_limits() {
    if (!draft_.limits || !draft_.limits->limits.spills || out_.backend->vendor != target::Vendor::kNvidia)
      return;
    faults_.error(draft_.limits->spills_place,
                  "\"spills\" is AMD's count: an NVIDIA code object does not tell it",
                  "use local_memory, in bytes a thread");
  }

  void resolve_targets() {
    if (draft_.targets.is_faulty()) return;
    const BackendRules& backend = *out_.backend;
    if (draft_.targets) {
      for (const TargetDraft& target : *draft_.targets) {
        if (target.target.vendor != backend.vendor) {
          faults_.error(
              target.place,
              util::format("{} is a target of {}, and {} compiles for {}", in_quotes(target.target.text),
                           vendor_name(target.target.vendor), backend.name, vendor_name(backend.vendor)));
        }
        out_.targets.push_back(&target.target);
      }
      return;
    }
    if (context_.default_targets.is_faulty()) return;
    if (!context_.default_targets) {
      faults_.error(draft_.place, util::format("{} has no targets", described()),
                    "list them in the kernel or at the top of the manifest");
      return;
    }
    for (const TargetDraft& target : *context_.default_targets) {
      if (target.target.vendor == backend.vendor) out_.targets.push_back(&target.target);
    }
    if (out_.targets.empty()) {
      faults_.error(draft_.place,
                    util::format("{} is left without targets: none of the manifest's is of {}, which {} "
                                 "compiles for",
                                 described(), vendor_name(backend.vendor), backend.name));
    }
  }

  std::string described() const {
    return draft_.name ? "the kernel " + in_quotes(draft_.name->text) : std::string("this kernel");
  }

  // Each `{key}` has a value in every specialization, each key of a backend without configuration is in some
  // `{key}`, `default` names keys that exist.
  void check_configuration() {
    const bool templates_good = draft_.sources && out_.sources.size() == draft_.sources->size() && out_.entry;
    if (!templates_good || draft_.config.is_faulty() || draft_.specializations.is_faulty()) return;
    collect_keys();
    for (const Template& source : out_.sources) check_keys_used(source, "\"sources\"");
    check_keys_used(*out_.entry, "\"entry\"");
    check_keys_present();
    if (out_.backend != nullptr && !out_.backend->takes_configuration) check_keys_useful();
    if (!draft_.specializations || !draft_.specializations->default_selection) return;
    for (const NamedText& pair : draft_.specializations->default_selection->pairs) {
      if (specialized_.contains(pair.key.text)) continue;
      faults_.error(
          pair.key.place,
          util::format("\"default\" names {}, which no specialization has", in_quotes(pair.key.text)),
          faults_.wants_hints() ? util::did_you_mean(pair.key.text, names_of(specialized_)) : "");
    }
  }

  using Keys = std::unordered_set<std::string_view>;

  static std::vector<std::string> names_of(const Keys& keys) {
    std::vector<std::string> out(keys.begin(), keys.end());
    std::sort(out.begin(), out.end());
    return out;
  }

  void collect_keys() {
    for (const auto& [key, value] : out_.config) configured_.insert(key);
    if (!draft_.specializations) return;
    const SpecializationsDraft& specializations = *draft_.specializations;
    if (specializations.matrix) {
      for (const Axis& axis : *specializations.matrix) in_matrix_.insert(axis.key.text);
    }
    specialized_ = in_matrix_;
    if (!specializations.include) return;
    for (const Selection& include : *specializations.include) {
      for (const NamedText& pair : include.pairs) specialized_.insert(pair.key.text);
    }
  }

  void check_keys_used(const Template& text, std::string_view label) {
    for (const std::string& key : text.keys()) {
      // Reported once, where it is used first.
      if (!used_.insert(key).second || configured_.contains(key)) continue;
      if (specialized_.contains(key)) {
        must_have_.push_back({key, label});
        continue;
      }
      std::string hint;
      if (faults_.wants_hints()) {
        Keys known = configured_;
        known.insert(specialized_.begin(), specialized_.end());
        hint = util::did_you_mean(key, names_of(known));
        if (hint.empty() && !known.empty()) hint = "its keys: " + util::listed(names_of(known));
      }
      faults_.error(
          text.text().place,
          util::format("{} in {} is no configuration key of this kernel", in_quotes("{" + key + "}"), label),
          std::move(hint));
    }
  }

  // The first key that each of matrix and includes lacks.
  void check_keys_present() {
    if (must_have_.empty()) return;
    const SpecializationsDraft& specializations = *draft_.specializations;
    const auto missing_of = [&](const Keys& keys) {
      return std::find_if(must_have_.begin(), must_have_.end(),
                          [&](const UsedKey& used) { return !keys.contains(used.key); });
    };
    if (specializations.matrix) {
      if (const auto missing = missing_of(in_matrix_); missing != must_have_.end()) {
        faults_.error(specializations.matrix_place, util::format("the matrix has no key {}, which {} uses",
                                                                 in_quotes(missing->key), missing->label));
      }
    }
    if (!specializations.include) return;
    for (const Selection& include : *specializations.include) {
      Keys keys;
      for (const NamedText& pair : include.pairs) keys.insert(pair.key.text);
      if (const auto missing = missing_of(keys); missing != must_have_.end()) {
        faults_.error(include.place, util::format("this include has no key {}, which {} uses",
                                                  in_quotes(missing->key), missing->label));
      }
    }
  }

  void check_keys_useful() {
    Keys seen;
    const auto check = [&](const Text& key) {
      if (used_.contains(key.text) || !seen.insert(key.text).second) return;
      faults_.error(key.place,
                    util::format("the key {} could change nothing: sources for {} have no configuration",
                                 in_quotes(key.text), out_.backend->name),
                    util::format("use it as {{{}}} in sources or entry, or leave it out", key.text));
    };
    if (draft_.config) {
      for (const NamedText& pair : *draft_.config) check(pair.key);
    }
    if (!draft_.specializations) return;
    if (draft_.specializations->matrix) {
      for (const Axis& axis : *draft_.specializations->matrix) check(axis.key);
    }
    if (!draft_.specializations->include) return;
    for (const Selection& include : *draft_.specializations->include) {
      for (const NamedText& pair : include.pairs) check(pair.key);
    }
  }

  const KernelDraft& draft_;
  const ResolveContext& context_;
  Faults& faults_;
  ResolvedKernel out_;
  Keys configured_;   // keys of `config`
  Keys in_matrix_;    // of the matrix
  Keys specialized_;  // of the matrix and the includes
  Keys used_;         // between braces; points into out_'s templates
  // Used, and not in `config`: each specialization must have it.
  struct UsedKey {
    std::string_view key;
    std::string_view label;  // where it is used
  };
  std::vector<UsedKey> must_have_;
};

}  // namespace

ResolvedKernel resolve_kernel(const KernelDraft& draft, const ResolveContext& context) {
  return Resolver(draft, context).resolve();
}

void warn_of_unused_targets(const Slot<std::vector<TargetDraft>>& default_targets,
                            const std::vector<ResolvedKernel>& kernels, Faults& faults) {
  if (!default_targets) return;
  std::unordered_set<const target::Target*> taken;
  for (const ResolvedKernel& kernel : kernels) taken.insert(kernel.targets.begin(), kernel.targets.end());
  for (const TargetDraft& target : *default_targets) {
    if (taken.contains(&target.target)) continue;
    faults.warning(target.place,
                   util::format("no kernel takes the target {}", in_quotes(target.target.text)));
  }
}

}  // namespace kc::manifest
