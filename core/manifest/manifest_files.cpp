#include "manifest/manifest_files.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/bytes.h"
#include "base/files.h"
#include "config/yaml_reader.h"
#include "manifest/inputs.h"
#include "manifest/paths.h"
#include "manifest/source_lists.h"

namespace kc::manifest {
namespace {

size_t size_of(const FileDefaults& defaults) {
  size_t out = defaults.config.size() + defaults.libraries.size();
  for (const DefaultsDraft::BackendOptions& backend : defaults.options) out += 1 + backend.options.size();
  return out;
}

bool is_same_file(const base::FileTuple& a, const base::FileTuple& b) {
  return a.device == b.device && a.inode == b.inode;
}

}  // namespace

void ManifestFiles::read(std::string_view text) {
  const Input top = inputs_.back();
  add(base::file_name(top.path), top, text, nullptr);
}

void ManifestFiles::add(std::string identifier, const Input& input, std::string_view text,
                        const ManifestFile* includer) {
  bytes_ += text.size();
  ManifestFile& file = files_.emplace_back();
  file.identifier = std::move(identifier);
  file.tuple = input.tuple;
  config::YamlLimits limits;
  limits.bytes = kMaxManifestBytes;
  config::YamlRead yaml = config::read_yaml(input.path, text, limits, faults_.add_file(input.path));
  faults_.append(std::move(yaml.errors));
  if (yaml.document) file.draft = read_manifest(yaml.document->root(), faults_);
  yaml.document.reset();  // not kept while further files are read
  file.defaults = defaults_of(file, includer);
  defaults_ += size_of(file.defaults);
  if (includer != nullptr && file.draft.allow_absolute_paths) {
    faults_.warning(file.draft.allow_absolute_paths_place,
                    "\"allow_absolute_paths\" counts in the top manifest only", "it is ignored here");
  }
  open_.push_back(&file);
  if (file.draft.include) {
    for (const Text& path : *file.draft.include) include(file, path);
  }
  open_.pop_back();
  in_kernel_order_.push_back(&file);
}

void ManifestFiles::include(const ManifestFile& from, const Text& path) {
  const auto refuse = [&](std::string message) { faults_.error(path.place, std::move(message)); };
  std::string fault = path_fault("the manifest", path.text, files_.front().draft.allow_absolute_paths);
  if (!fault.empty()) return refuse(std::move(fault));
  std::string identifier = identifier_of(from.defaults.base, path.text);
  const std::string opened = opened_path(folder_, identifier);
  if (const base::Result<base::FileTuple> tuple = base::stat_tuple(opened)) {
    for (size_t i = 0; i < open_.size(); ++i) {
      if (is_same_file(open_[i]->tuple, *tuple)) return refuse("this include never ends: " + cycle(i));
    }
    const auto is_this = [&](const ManifestFile& file) { return is_same_file(file.tuple, *tuple); };
    if (std::any_of(files_.begin(), files_.end(), is_this)) return;
  } else if (kind_of_path(path.text) != PathKind::kPath) {
    return faults_.error(path.place, util::format("the manifest {} does not exist", in_quotes(path.text)),
                         "an include is one file; patterns and lists are for sources");
  }
  if (open_.size() == kMaxIncludeDepth) {
    return refuse(util::format("manifests include each other deeper than {} levels", kMaxIncludeDepth));
  }
  if (files_.size() == kMaxManifestFiles) {
    return refuse(
        util::format("a manifest may have {} files in all, and this is one more", kMaxManifestFiles));
  }
  if (defaults_ > kMaxDefaults) {
    return refuse(
        util::format("the defaults of the files before come to more than {} values, counted in each "
                     "file that has them",
                     kMaxDefaults));
  }
  const std::optional<base::Bytes> bytes =
      read_input("the manifest", path, opened, kMaxManifestBytes, inputs_, faults_);
  if (!bytes) return;
  if (bytes_ + bytes->size() > kMaxManifestTotal) {
    return refuse(util::format("the files of a manifest may have {} bytes in all, and with {} they have more",
                               kMaxManifestTotal, in_quotes(path.text)));
  }
  const Input input = inputs_.back();
  add(std::move(identifier), input, base::as_text(*bytes), &from);
}

FileDefaults ManifestFiles::defaults_of(const ManifestFile& file, const ManifestFile* includer) const {
  FileDefaults out;
  if (includer != nullptr) out = includer->defaults;
  out.base = base_of(file.identifier);
  if (file.draft.targets.written) out.targets = &file.draft.targets;
  out.is_faulty = out.is_faulty || file.draft.defaults.is_faulty();
  if (!file.draft.defaults) return out;
  const DefaultsDraft& own = *file.draft.defaults;
  out.is_faulty = out.is_faulty || own.is_faulty;
  out.options.insert(out.options.begin(), own.options.begin(), own.options.end());
  out.config.insert(out.config.begin(), own.config.begin(), own.config.end());
  if (own.libraries.written) {
    out.libraries = own.libraries.value.value_or(std::vector<Text>());
    out.libraries_base = out.base;
  }
  return out;
}

std::string ManifestFiles::cycle(size_t begin) const {
  std::string out;
  for (size_t i = begin; i < open_.size(); ++i) out += util::escape(open_[i]->identifier) + " -> ";
  return out + util::escape(open_[begin]->identifier);
}

}  // namespace kc::manifest
