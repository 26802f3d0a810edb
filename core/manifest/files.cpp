#include "manifest/files.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files.h"
#include "manifest/resolve.h"

namespace kc::manifest {
namespace {

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

// Of a file in the table of sources; what a message calls it is `label`.
std::optional<uint32_t> find_file(const SourceName& name, std::string_view label,
                                  const ResolveContext& context) {
  constexpr std::string_view kSource = "the source";
  const Text& text = name.path.text();
  Faults& faults = context.faults;
  const SourceTable::Entry& entry = context.sources.add(name.base, text.text, faults.located(text.place));
  if (entry.fault.empty()) return entry.index;
  std::string fault = entry.fault;
  if (fault.starts_with(kSource)) fault.replace(0, kSource.size(), label);
  faults.error(text.place, std::move(fault),
               faults.wants_hints() ? context.sources.hint_for(name.base, text.text) : "");
  return std::nullopt;
}

class SourceResolver {
 public:
  SourceResolver(KernelParts& parts, const FileDefaults& defaults, const ResolveContext& context)
      : parts_(parts),
        draft_(*parts.draft),
        defaults_(defaults),
        context_(context),
        faults_(context.faults) {}

  void resolve() {
    std::optional<std::vector<SourceName>> names;
    if (draft_.sources) {
      names = context_.lists.expand(*draft_.sources, defaults_.base, "\"sources\"",
                                    context_.sources.allow_absolute());
    }
    if (draft_.backend) {
      parts_.backend = find_backend(*draft_.backend, context_);
      // Which of both was meant is not known, so nothing more is said by either.
      if (parts_.backend != nullptr && names && !check_suffixes(*names)) parts_.backend = nullptr;
    } else if (!draft_.backend.is_faulty()) {
      parts_.backend = names ? backend_by_suffix(*names) : backend_as_written();
    }
    if (!names) return;
    parts_.are_sources_good = true;
    for (SourceName& name : *names) {
      KernelSource source{std::move(name), std::nullopt};
      // A file that no backend takes was reported; that it is not there either adds nothing.
      const std::string& path = source.name.path.text().text;
      const bool is_taken = draft_.backend || backend_of(path, context_.backends) != nullptr;
      if (source.name.path.is_literal() && is_taken) {
        source.index = find_file(source.name, "the source", context_);
      }
      parts_.sources.push_back(std::move(source));
    }
    if (parts_.backend != nullptr) check_count();
  }

 private:
  bool check_suffixes(const std::vector<SourceName>& names) {
    bool good = true;
    for (const SourceName& name : names) {
      const Text& source = name.path.text();
      const BackendRules* other = backend_of(source.text, context_.backends);
      if (other == nullptr || other == parts_.backend) continue;
      faults_.error(source.place, util::format("{} is a source for {}, and \"backend\" says {}",
                                               in_quotes(source.text), other->name, parts_.backend->name));
      good = false;
    }
    return good;
  }

  const BackendRules* backend_by_suffix(const std::vector<SourceName>& names) {
    const BackendRules* found = nullptr;
    const Text* first = nullptr;
    bool good = true;
    for (const SourceName& name : names) {
      const Text& source = name.path.text();
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

  // When lists and patterns have a fault, what is written may still tell what the rest is checked by.
  const BackendRules* backend_as_written() const {
    if (!draft_.sources) return nullptr;
    const BackendRules* found = nullptr;
    for (const Text& item : *draft_.sources) {
      if (item.text.starts_with('@')) continue;
      const BackendRules* backend = backend_of(item.text, context_.backends);
      if (backend == nullptr || (found != nullptr && backend != found)) return nullptr;
      found = backend;
    }
    return found;
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

  // At the first source that is one too many.
  void check_count() {
    const uint32_t most = parts_.backend->max_sources;
    if (most == 0 || parts_.sources.size() <= most) return;
    faults_.error(parts_.sources[most].name.path.text().place,
                  util::format("{} takes {} a kernel, and this has {}", parts_.backend->name,
                               util::counted(most, "source"), parts_.sources.size()),
                  "write a kernel for each");
  }

  KernelParts& parts_;
  const KernelDraft& draft_;
  const FileDefaults& defaults_;
  const ResolveContext& context_;
  Faults& faults_;
};

// Files whose names hold no `{key}`. Null, and reported, when some are at fault.
std::shared_ptr<FileSet> find_files(const std::vector<Text>& items, const std::string& base,
                                    std::string_view field, std::string_view label,
                                    const ResolveContext& context) {
  Faults& faults = context.faults;
  const std::string quoted = '"' + std::string(field) + '"';
  const std::optional<std::vector<SourceName>> names =
      context.lists.expand(items, base, quoted, context.sources.allow_absolute());
  if (!names) return nullptr;
  const size_t before = faults.count();
  auto out = std::make_shared<FileSet>();
  for (const SourceName& name : *names) {
    const Text& text = name.path.text();
    if (!name.path.is_literal()) {
      faults.error(text.place, util::format("{} stands for nothing in {}: these files are the same for all "
                                            "specializations",
                                            in_quotes("{" + name.path.keys().front() + "}"), quoted));
      continue;
    }
    const std::optional<uint32_t> index = find_file(name, label, context);
    if (!index) continue;
    out->files.push_back({*index, text.text, text.place});
    out->places.emplace(*index, text.place);
  }
  return faults.count() == before ? out : nullptr;
}

std::shared_ptr<const FileSet> find_libraries(const std::vector<Text>& items, const std::string& base,
                                              const BackendRules& backend, const ResolveContext& context) {
  std::shared_ptr<FileSet> out = find_files(items, base, "libraries", "the library", context);
  if (out == nullptr) return nullptr;
  bool good = true;
  for (const KernelFile& file : out->files) {
    if (backend_of(file.path, context.backends) == &backend) continue;
    context.faults.error(file.place,
                         util::format("{} is no library for {}", in_quotes(file.path), backend.name),
                         "its libraries end in " + util::listed(backend.suffixes, backend.suffixes.size()));
    good = false;
  }
  return good ? out : nullptr;
}

// The place of a field whose draft keeps those of its items alone.
YamlPlace place_of(const std::vector<Text>& items, const KernelDraft& draft) {
  return items.empty() ? draft.place : items.front().place;
}

}  // namespace

const BackendRules* find_backend(const Text& name, const ResolveContext& context) {
  std::vector<std::string> names;
  for (const BackendRules& backend : context.backends) {
    if (backend.name == name.text) return &backend;
    names.push_back(backend.name);
  }
  std::string hint = util::did_you_mean(name.text, names);
  if (hint.empty()) hint = known_backends(context.backends);
  context.faults.error(name.place, "unknown backend " + in_quotes(name.text), std::move(hint));
  return nullptr;
}

void resolve_sources(KernelParts& parts, const FileDefaults& defaults, const ResolveContext& context) {
  SourceResolver(parts, defaults, context).resolve();
}

void resolve_further_files(KernelParts& parts, const FileDefaults& defaults, const ResolveContext& context) {
  const KernelDraft& draft = *parts.draft;
  const BackendRules& backend = *parts.backend;
  Faults& faults = context.faults;
  if (draft.libraries && !backend.takes_libraries) {
    faults.error(place_of(*draft.libraries, draft),
                 util::format("{} links no libraries: \"libraries\" could change nothing", backend.name));
  } else if (draft.libraries) {
    parts.libraries = find_libraries(*draft.libraries, defaults.base, backend, context);
    parts.are_libraries_good = parts.libraries != nullptr;
  } else if (!draft.libraries.written && backend.takes_libraries && !defaults.libraries.empty()) {
    const auto [found, is_new] = parts.defaults->libraries.try_emplace(backend.name);
    if (is_new) {
      found->second = find_libraries(defaults.libraries, defaults.libraries_base, backend, context);
    }
    parts.libraries = found->second;
    parts.are_libraries_good = parts.libraries != nullptr;
  } else {
    // Which it lacks is not known when its files have a fault.
    parts.are_libraries_good = !draft.libraries.is_faulty() && (draft.libraries || parts.are_defaults_good);
  }
  for (const KernelSource& source : parts.sources) {
    if (source.index) check_source_is_no_library(parts, *source.index, source.name.path.text(), faults);
  }
  if (!draft.depends) return;
  if (!backend.opens_files) {
    faults.error(
        place_of(*draft.depends, draft),
        util::format("sources for {} open no files: \"depends\" could change nothing", backend.name));
    return;
  }
  const std::shared_ptr<FileSet> files =
      find_files(*draft.depends, defaults.base, "depends", "the file", context);
  if (files == nullptr) return;
  for (const KernelFile& file : files->files) parts.depends.push_back(file.index);
}

bool check_source_is_no_library(const KernelParts& parts, uint32_t index, const Text& source,
                                Faults& faults) {
  if (parts.libraries == nullptr) return true;
  const auto found = parts.libraries->places.find(index);
  if (found == parts.libraries->places.end()) return true;
  if (parts.draft->libraries) {
    faults.error(found->second,
                 util::format("{} is a source of this kernel and a library at once", in_quotes(source.text)),
                 "a source is linked whole: leave the library out");
  } else {
    faults.error(source.place,
                 util::format("{} is a source of this kernel and by \"defaults\" a library at once",
                              in_quotes(source.text)),
                 "give the kernel its own \"libraries\"");
  }
  return false;
}

}  // namespace kc::manifest
