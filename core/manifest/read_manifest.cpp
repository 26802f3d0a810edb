// The top level of a manifest, and `settings`.
#include <algorithm>
#include <string_view>
#include <utility>

#include "base/compress.h"
#include "base/files.h"
#include "config/settings.h"
#include "manifest/draft.h"
#include "manifest/names.h"

namespace kc::manifest {
namespace {

constexpr uint64_t kVersion = 1;

class SettingsReader {
 public:
  explicit SettingsReader(Faults& faults) : faults_(faults) {}

  Settings read(const std::vector<Field>& fields) {
    static constexpr Handler<SettingsReader> kHandlers[] = {
        {"level", &SettingsReader::level},
        {"timeout", &SettingsReader::timeout},
        {"frame_size", &SettingsReader::frame_size},
        {"keep_going", &SettingsReader::keep_going},
    };
    read_fields<SettingsReader>(fields, kHandlers, *this, "settings", faults_);
    return settings_;
  }

 private:
  void level(const Field& field) {
    if (const auto level = read_number(field, base::kMinLevel, base::kMaxLevel, faults_)) {
      settings_.level = static_cast<int>(*level);
    }
  }
  void timeout(const Field& field) { settings_.timeout = read_duration(field, faults_); }
  void frame_size(const Field& field) {
    settings_.frame_size = read_size(field, config::kMinFrameSize, config::kMaxFrameSize, faults_);
  }
  void keep_going(const Field& field) { settings_.keep_going = read_number(field, 0, kMaxUnits, faults_); }

  Faults& faults_;
  Settings settings_;
};

class ManifestReader {
 public:
  explicit ManifestReader(Faults& faults) : faults_(faults) {}

  ManifestDraft read(const YamlNode& root) {
    const std::optional<std::vector<Field>> fields = top_level(root);
    if (!fields) return std::move(draft_);
    draft_.is_read = true;
    static constexpr Handler<ManifestReader> kHandlers[] = {
        {"version", &ManifestReader::version},
        {"name", &ManifestReader::name},
        {"release", &ManifestReader::release},
        {"output", &ManifestReader::output},
        {"include", &ManifestReader::include},
        {"targets", &ManifestReader::targets},
        {"settings", &ManifestReader::settings},
        {"defaults", &ManifestReader::defaults},
        {"allow_absolute_paths", &ManifestReader::allow_absolute_paths},
        {"kernels", &ManifestReader::kernels},
    };
    const Misspelled misspelled =
        read_fields<ManifestReader>(*fields, kHandlers, *this, "a manifest", faults_);
    if (!draft_.version.written && !misspelled.contains("version"))
      faults_.error(root.place(), "\"version\" is missing", "add `version: 1`");
    const bool has_kernels = draft_.kernels.written || draft_.include.written ||
                             misspelled.contains("kernels") || misspelled.contains("include");
    if (!has_kernels) {
      faults_.error(root.place(), "\"kernels\" is missing",
                    "a manifest lists at least one kernel or includes a manifest");
    }
    return std::move(draft_);
  }

 private:
  // The fields that matter: keys that begin with `x-` are the user's own. Nothing when the document is of a
  // newer version, whose other fields this kc cannot judge.
  std::optional<std::vector<Field>> top_level(const YamlNode& root) {
    if (!root.is_map()) {
      faults_.error(root.place(),
                    util::format("a manifest must be a map, not {}", config::kind_name(root.kind())),
                    "it begins with `version: 1`");
      return std::nullopt;
    }
    std::optional<std::vector<Field>> fields = read_map({"the manifest", root.place(), root}, faults_);
    if (!fields) return std::nullopt;
    std::erase_if(*fields, [](const Field& field) { return field.name.starts_with("x-"); });
    for (const Field& field : *fields) {
      if (field.name != "version" || !field.value.is_scalar()) continue;
      const std::optional<uint64_t> number = util::parse_number(field.value.text(), 0, UINT64_MAX);
      if (number && *number > kVersion) {
        faults_.error(field.value.place(),
                      util::format("manifest version {} is newer than this version of kc reads ({})", *number,
                                   kVersion),
                      "use a newer kc");
        return std::nullopt;
      }
    }
    return fields;
  }

  void version(const Field& field) { draft_.version.set(read_number(field, kVersion, kVersion, faults_)); }

  void name(const Field& field) {
    std::optional<Text> text = read_text(field, faults_);
    if (text && !is_kernel_name(text->text)) {
      faults_.error(text->place, in_quotes(text->text) + " cannot be the name of a bundle",
                    "letters, digits, _, . and -, at most 128 bytes, not . or - first");
      text.reset();
    }
    draft_.name.set(std::move(text));
  }

  void release(const Field& field) { draft_.release.set(read_number(field, 0, UINT64_MAX, faults_)); }

  void output(const Field& field) {
    std::optional<Text> text = read_text(field, faults_);
    if (text) {
      const std::string why = output_fault(text->text);
      if (!why.empty()) {
        faults_.error(text->place, util::format("\"output\" {}, not {}", why, in_quotes(text->text)),
                      "-o can name any file");
        text.reset();
      }
    }
    draft_.output.set(std::move(text));
  }

  static std::string output_fault(const std::string& path) {
    if (path.starts_with('/')) return "must be a path relative to the manifest's folder";
    for (const std::string& part : util::split(path, '/')) {
      if (part == "..") return "must lie below the manifest's folder, without \"..\"";
    }
    const std::string name = base::file_name(path);
    if (!name.ends_with(".kcb") || name == ".kcb") return "must be a file that ends in .kcb";
    const bool control = std::any_of(
        path.begin(), path.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
    return control ? "must be a path without control bytes" : "";
  }

  void include(const Field& field) {
    const size_t before = faults_.count();
    std::vector<Text> paths;
    const auto read = [&](const Field& from) {
      if (std::optional<Text> path = read_path(from, faults_)) paths.push_back(std::move(*path));
    };
    if (field.value.is_scalar()) {
      read(field);
    } else if (const auto items = read_list(field, "[attention.yaml]", faults_)) {
      for (const Field& item : *items) read(item);
    }
    draft_.include.set(faults_.count() == before ? std::optional(std::move(paths)) : std::nullopt);
  }

  void targets(const Field& field) { draft_.targets.set(read_targets(field, faults_)); }
  void defaults(const Field& field) { draft_.defaults.set(read_defaults(field, faults_)); }

  void allow_absolute_paths(const Field& field) {
    draft_.allow_absolute_paths = read_boolean(field, faults_).value_or(false);
    draft_.allow_absolute_paths_place = field.place;
  }

  void settings(const Field& field) {
    const std::optional<std::vector<Field>> fields = read_map(field, faults_);
    draft_.settings.set(fields ? std::optional(SettingsReader(faults_).read(*fields)) : std::nullopt);
  }

  void kernels(const Field& field) {
    const std::optional<std::vector<Field>> items =
        read_list(field, "[{ name: ..., sources: ... }]", faults_);
    std::vector<KernelDraft> kernels;
    if (items) {
      kernels.reserve(items->size());
      for (const Field& item : *items) {
        if (std::optional<KernelDraft> kernel = read_kernel(item, faults_))
          kernels.push_back(std::move(*kernel));
      }
    }
    draft_.kernels.set(std::move(kernels));
  }

  Faults& faults_;
  ManifestDraft draft_;
};

}  // namespace

ManifestDraft read_manifest(const YamlNode& root, Faults& faults) {
  return ManifestReader(faults).read(root);
}

}  // namespace kc::manifest
