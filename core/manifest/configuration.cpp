#include "manifest/configuration.h"

#include <algorithm>
#include <utility>

#include "manifest/options.h"
#include "manifest/resolve.h"

namespace kc::manifest {
namespace {

// "did you mean", else what there is.
std::string hint_among(std::string_view key, const std::vector<std::string>& names, std::string_view what,
                       const Faults& faults) {
  // A search through more would cost more than the hint is worth.
  constexpr size_t kMost = 1000;
  if (!faults.wants_hints() || names.size() > kMost) return {};
  std::string hint = util::did_you_mean(key, names);
  if (hint.empty() && !names.empty()) hint = util::format("{}: {}", what, util::listed(names));
  return hint;
}

void warn_of_silent(const KernelParts& parts, const std::string& file, Faults& faults) {
  faults.warning(
      parts.draft->place,
      util::format("the configuration keys of {} are not checked: only its compiler can tell which "
                   "ones {} declares",
                   parts.described(), in_quotes(file)));
}

struct Declared {
  std::optional<DeclaredKeys> keys;  // nothing: not known
  std::string silent;                // the first file that only its compiler can tell about
  bool is_readable = true;
};

// By sources of which this is told, with the libraries of the kernel.
Declared declared_by(const KernelParts& parts, const Modules::Told& sources, const ResolveContext& context) {
  Declared out{std::nullopt, sources.silent, sources.is_readable};
  KeyNames libraries;
  if (parts.libraries != nullptr) {
    const Modules::Told& told = context.state->modules.keys_of(*parts.backend, parts.libraries->files);
    out.is_readable = out.is_readable && told.is_readable;
    if (out.silent.empty()) out.silent = told.silent;
    libraries = told.keys;
  }
  if (out.is_readable && out.silent.empty()) out.keys = DeclaredKeys(sources.keys, std::move(libraries));
  return out;
}

class ConfigurationCheck {
 public:
  ConfigurationCheck(KernelParts& parts, const SpecializationKeys& keys, const ResolveContext& context)
      : parts_(parts),
        draft_(*parts.draft),
        specializations_(specializations_of(parts)),
        keys_(keys),
        context_(context),
        faults_(context.faults) {}

  void check() {
    check_default();
    take_own();
    const bool templates_good = parts_.are_sources_good && (parts_.entry || draft_.entries.written);
    if (!templates_good || draft_.config.is_faulty()) return;
    for (const KernelSource& source : parts_.sources) check_used(source.name.path, "\"sources\"");
    if (parts_.entry) check_used(*parts_.entry, "\"entry\"");
    if (parts_.backend == nullptr) return check_present();
    const BackendRules& backend = *parts_.backend;
    if (backend.takes_parameters) {
      check_parameters();
    } else if (!backend.takes_configuration) {
      check_useful();
    } else if (!backend.declared_keys) {
      parts_.takes_offered = true;
    } else if (std::any_of(parts_.sources.begin(), parts_.sources.end(),
                           [](const KernelSource& source) { return !source.name.path.is_literal(); })) {
      parts_.declares_by_sources = true;
      parts_.takes_offered = true;
    } else {
      check_declared_by_files();
    }
    check_present();
  }

 private:
  void check_default() {
    if (!specializations_.default_selection) return;
    for (const NamedText& pair : specializations_.default_selection->pairs) {
      const std::string& key = pair.key.text;
      if (keys_.find(key) == nullptr) {
        faults_.error(pair.key.place,
                      util::format("\"default\" names {}, which no specialization has", in_quotes(key)),
                      faults_.wants_hints() ? util::did_you_mean(key, keys_.sorted_names()) : "");
        parts_.is_default_good = false;
      } else if (is_option_key(key) && parts_.backend != nullptr &&
                 find_option(*parts_.backend, option_name(key)) != nullptr &&
                 !check_option(*parts_.backend, option_name(key), pair.key.place, pair.value, faults_)) {
        parts_.is_default_good = false;
      }
    }
  }

  void take_own() {
    if (!draft_.config) return;
    for (const NamedText& pair : *draft_.config) {
      parts_.config.emplace_back(pair.key.text, pair.value.text);
    }
    std::sort(parts_.config.begin(), parts_.config.end());
  }

  void check_used(const Template& text, std::string_view label) {
    for (const std::string& key : text.keys()) {
      // Reported once, where it is used first.
      if (!parts_.used_keys.insert(key).second || find_value(parts_.config, key) != nullptr) continue;
      if (keys_.find(key) != nullptr) {
        must_have_.push_back({key, util::format("which {} uses", label)});
        continue;
      }
      faults_.error(
          text.text().place,
          util::format("{} in {} is no configuration key of this kernel", in_quotes("{" + key + "}"), label),
          hint_for_unknown(key));
    }
  }

  std::string hint_for_unknown(const std::string& key) const {
    if (parts_.defaults->offered.contains(key)) {
      return "\"defaults\" offers it to modules; write it in the \"config\" of the kernel";
    }
    std::vector<std::string> known = keys_.sorted_names();
    for (const auto& pair : parts_.config) known.push_back(pair.first);
    std::sort(known.begin(), known.end());
    known.erase(std::unique(known.begin(), known.end()), known.end());
    return hint_among(key, known, "its keys", faults_);
  }

  // The constants are the keys, and each has a value.
  void check_parameters() {
    if (!draft_.parameters) return;
    std::vector<std::string> constants;
    for (const ParameterDraft& parameter : *draft_.parameters) {
      if (parameter.constant) constants.push_back(parameter.name.text);
    }
    parts_.declared = DeclaredKeys(make_key_names(std::move(constants)));
    parts_.takes_offered = true;
    for (const ParameterDraft& parameter : *draft_.parameters) {
      const std::string& key = parameter.name.text;
      if (!parameter.constant || find_value(parts_.config, key) != nullptr ||
          parts_.defaults->offered.contains(key))
        continue;
      if (keys_.find(key) != nullptr) {
        must_have_.push_back({key, "which is a constant of \"parameters\""});
      } else if (parts_.are_defaults_good) {
        faults_.error(parameter.name.place, util::format("the constant {} has no value", in_quotes(key)),
                      "give it one in \"config\" or in every specialization");
      }
    }
    check_own_keys([&](const Text& key) {
      faults_.error(key.place,
                    util::format("the key {} is no constant of \"parameters\"", in_quotes(key.text)),
                    hint_among(key.text, parts_.declared->sorted(), "constants", faults_));
    });
  }

  void check_declared_by_files() {
    if (!parts_.are_libraries_good) return;
    std::vector<KernelFile> files;
    for (const KernelSource& source : parts_.sources) {
      if (!source.index) return;  // reported
      const Text& text = source.name.path.text();
      files.push_back({*source.index, text.text, text.place});
    }
    const Declared declared =
        declared_by(parts_, context_.state->modules.keys_of(*parts_.backend, files), context_);
    if (!declared.is_readable) return;
    parts_.declared = declared.keys;
    parts_.takes_offered = true;
    if (!declared.keys) {
      if (has_own_keys() || !parts_.defaults->offered.is_empty()) {
        warn_of_silent(parts_, declared.silent, faults_);
      }
      return;
    }
    check_own_keys([&](const Text& key) {
      faults_.error(
          key.place,
          util::format("the key {} is declared by no source or library of this kernel", in_quotes(key.text)),
          hint_among(key.text, declared.keys->sorted(), "declared", faults_));
    });
  }

  bool has_own_keys() const {
    return !parts_.config.empty() || std::any_of(keys_.all().begin(), keys_.all().end(),
                                                 [](const Text* key) { return !is_option_key(key->text); });
  }

  // Calls `report` for each key, where it is written first, that is neither declared nor used.
  template <typename Report>
  void check_own_keys(Report&& report) {
    std::unordered_set<std::string_view> seen;
    const auto check = [&](const Text& key) {
      if (is_option_key(key.text) || parts_.used_keys.contains(key.text)) return;
      if (parts_.declared && parts_.declared->contains(key.text)) return;
      if (seen.insert(key.text).second) report(key);
    };
    if (draft_.config) {
      for (const NamedText& pair : *draft_.config) check(pair.key);
    }
    for (const Text* key : keys_.all()) check(*key);
  }

  void check_useful() {
    check_own_keys([&](const Text& key) {
      faults_.error(key.place,
                    util::format("the key {} could change nothing: sources for {} have no configuration",
                                 in_quotes(key.text), parts_.backend->name),
                    util::format("use it as {{{}}} in sources or entry, or leave it out", key.text));
    });
  }

  struct NeededKey {
    std::string key;
    std::string why;  // `which "sources" uses`
  };

  // The first key that each of matrix, includes and rows lacks.
  void check_present() {
    if (must_have_.empty()) return;
    const auto report = [&](YamlPlace place, std::string_view what, const NeededKey& needed) {
      faults_.error(place, util::format("{} has no key {}, {}", what, in_quotes(needed.key), needed.why));
    };
    if (specializations_.matrix) {
      const auto missing = std::find_if(must_have_.begin(), must_have_.end(), [&](const NeededKey& needed) {
        return !keys_.is_in_matrix(needed.key);
      });
      if (missing != must_have_.end()) report(specializations_.matrix_place, "the matrix", *missing);
    }
    if (specializations_.include) {
      for (const Selection& include : *specializations_.include) {
        if (const NeededKey* missing = missing_of(include.pairs))
          report(include.place, "this include", *missing);
      }
    }
    if (parts_.rows != nullptr) check_present_in_rows();
  }

  const NeededKey* missing_of(const std::vector<NamedText>& pairs) const {
    std::unordered_set<std::string_view> keys;
    for (const NamedText& pair : pairs) keys.insert(pair.key.text);
    const auto missing = std::find_if(must_have_.begin(), must_have_.end(),
                                      [&](const NeededKey& needed) { return !keys.contains(needed.key); });
    return missing == must_have_.end() ? nullptr : &*missing;
  }

  // A column that is not there is one fault, an empty cell is one of its row.
  void check_present_in_rows() {
    std::vector<std::pair<YamlPlace, const NeededKey*>> lacking;
    std::unordered_map<const NeededKey*, size_t> count;
    for (const TableRow& row : *parts_.rows) {
      if (const NeededKey* missing = missing_of(row.selection.pairs)) {
        lacking.emplace_back(row.selection.place, missing);
        ++count[missing];
      }
    }
    for (const auto& [place, missing] : lacking) {
      const bool in_all = count[missing] == parts_.rows->size();
      const auto text = util::format("{} has no key {}, {}", in_all ? "this table" : "this row",
                                     in_quotes(missing->key), missing->why);
      faults_.error(in_all ? specializations_.table->place : place, text);
      if (in_all) return;
    }
  }

  KernelParts& parts_;
  const KernelDraft& draft_;
  const SpecializationsDraft& specializations_;
  const SpecializationKeys& keys_;
  const ResolveContext& context_;
  Faults& faults_;
  std::vector<NeededKey> must_have_;  // not in `config`: each specialization must have it
};

bool reaches_compiler(std::string_view key, const std::optional<DeclaredKeys>& declared) {
  return !is_option_key(key) && (!declared || declared->contains(key));
}

}  // namespace

void check_configuration(KernelParts& parts, const SpecializationKeys& keys, const ResolveContext& context) {
  ConfigurationCheck(parts, keys, context).check();
}

UnitConfig::UnitConfig(const KernelParts& parts, const ResolveContext& context)
    : parts_(parts), context_(context) {
  if (!parts.declares_by_sources) fixed_ = base(parts.declared);
}

UnitConfig::Base UnitConfig::base(std::optional<DeclaredKeys> declared) const {
  Base out;
  out.declared = std::move(declared);
  for (const auto& pair : parts_.config) {
    if (reaches_compiler(pair.first, out.declared)) out.pairs.push_back(pair);
  }
  if (parts_.takes_offered) {
    const auto offered = parts_.defaults->offered.take(out.declared ? &*out.declared : nullptr);
    for (const auto& pair : *offered) {
      if (find_value(parts_.config, pair.first) == nullptr) out.pairs.push_back(pair);
    }
  }
  std::sort(out.pairs.begin(), out.pairs.end());
  return out;
}

const UnitConfig::Base& UnitConfig::base_of(const std::vector<KernelFile>& sources) {
  const Modules::Told& told = context_.state->modules.keys_of(*parts_.backend, sources);
  const auto [found, is_new] = by_sources_.try_emplace(&told);
  if (!is_new) return found->second;
  const Declared declared = declared_by(parts_, told, context_);
  if (!declared.is_readable) return found->second;
  if (declared.keys) {
    check_declared(parts_.config, *declared.keys, sources);
  } else if (!std::exchange(warned_, true)) {
    warn_of_silent(parts_, declared.silent, context_.faults);
  }
  return found->second = base(declared.keys);
}

Pairs UnitConfig::make(const Pairs& specialization, const std::vector<KernelFile>& sources) {
  if (!parts_.backend->takes_configuration) return {};
  const Base& base = parts_.declares_by_sources ? base_of(sources) : fixed_;
  if (parts_.declares_by_sources && base.declared) {
    check_declared(specialization, *base.declared, sources);
  }
  // Two sorted lists; of a key in both the specialization's value counts.
  Pairs out;
  out.reserve(specialization.size() + base.pairs.size());
  auto other = base.pairs.begin();
  for (const auto& pair : specialization) {
    if (!reaches_compiler(pair.first, base.declared)) continue;
    for (; other != base.pairs.end() && other->first < pair.first; ++other) out.push_back(*other);
    if (other != base.pairs.end() && other->first == pair.first) ++other;
    out.push_back(pair);
  }
  out.insert(out.end(), other, base.pairs.end());
  return out;
}

void UnitConfig::check_declared(const Pairs& pairs, const DeclaredKeys& declared,
                                const std::vector<KernelFile>& sources) {
  for (const auto& pair : pairs) {
    const std::string& key = pair.first;
    if (declared.contains(key) || is_option_key(key) || parts_.used_keys.contains(key)) continue;
    if (!reported_.insert(key).second) continue;
    context_.faults.error(
        place_of(key),
        util::format("the key {} is declared by no source or library of this kernel with {}", in_quotes(key),
                     in_quotes(sources.front().path)),
        hint_among(key, declared.sorted(), "declared", context_.faults));
  }
}

YamlPlace UnitConfig::place_of(std::string_view key) {
  if (places_.empty()) {
    if (parts_.draft->config) {
      for (const NamedText& pair : *parts_.draft->config) places_.emplace(pair.key.text, pair.key.place);
    }
    const SpecializationKeys keys(parts_);
    for (const Text* text : keys.all()) places_.emplace(text->text, text->place);
  }
  return places_.at(key);
}

}  // namespace kc::manifest
