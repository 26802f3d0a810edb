// A manifest as it was written: every field read and checked on its own, nothing combined yet.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "manifest/fields.h"
#include "manifest/plan.h"
#include "target/target.h"
#include "util/time.h"

namespace kc::manifest {

struct TargetDraft {
  target::Target target;
  YamlPlace place;
};

/// A map of configuration values that stands for one specialization or a set of them. Keys may begin with
/// `option.`.
struct Selection {
  YamlPlace place;
  std::vector<NamedText> pairs;
};

/// One key of a matrix with its values in the order written.
struct Axis {
  Text key;
  std::vector<Text> values;
};

struct SpecializationsDraft {
  YamlPlace place;         // of the key `specializations`
  YamlPlace matrix_place;  // of the key `matrix`
  Slot<std::vector<Axis>> matrix;
  Slot<std::vector<Selection>> include;
  Slot<std::vector<Selection>> exclude;
  Slot<Selection> default_selection;
  Slot<Text> table;  // path of a CSV file, as written
};

/// A row of a table (table.h).
struct TableRow {
  Selection selection;          // without the columns `target` and `when.*`; may be empty
  std::optional<Text> target;   // of the column `target`
  std::vector<NamedText> when;  // of the columns `when.*`, keys without `when.`
};

struct LimitsDraft {
  Limits limits;
  YamlPlace spills_place;
};

/// An item of `overrides`; at least one of its effects is written.
struct OverrideDraft {
  YamlPlace place;
  std::vector<NamedText> when;  // keys of specializations, and `target`; at least one
  Slot<std::vector<NamedText>> options;
  YamlPlace options_place;
  Slot<util::Nanoseconds> timeout;
  Slot<LimitsDraft> limits;
  bool skip = false;
};

/// `entries`: a list of names, or `exported`.
struct EntriesDraft {
  YamlPlace place;
  bool exported = false;
  std::vector<Text> names;
};

/// A parameter of a cuTile kernel. Not a constant: `words` hold at least `dtype`; with `ndim` it is an array,
/// else a scalar and `dtype` all there is.
struct ParameterDraft {
  Text name;
  bool constant = false;
  Pairs words;  // sorted by name; of lists the items joined by commas, `none` for what is not known
};

struct KernelDraft {
  YamlPlace place;         // of the name, or of the map when it has none
  bool is_faulty = false;  // some field of it was reported
  Slot<Text> name;
  Slot<std::vector<Text>> sources;
  Slot<Text> entry;
  Slot<Text> symbol;
  Slot<Text> backend;
  Slot<std::vector<TargetDraft>> targets;
  Slot<std::vector<NamedText>> config;
  Slot<std::vector<NamedText>> options;
  YamlPlace options_place;
  Slot<util::Nanoseconds> timeout;
  Slot<LimitsDraft> limits;
  Slot<SpecializationsDraft> specializations;
  Slot<Pairs> metadata;
  Slot<std::vector<Text>> libraries;
  Slot<EntriesDraft> entries;  // then the name holds `{entry}`
  Slot<std::vector<OverrideDraft>> overrides;
  Slot<bool> skip_unsupported;
  Slot<std::vector<Text>> depends;
  Slot<std::vector<ParameterDraft>> parameters;
  YamlPlace parameters_place;
};

/// `defaults`: for every kernel of a file. What is right of it, when some is at fault.
struct DefaultsDraft {
  struct BackendOptions {
    Text backend;
    std::vector<NamedText> options;
  };
  std::vector<BackendOptions> options;
  Slot<std::vector<Text>> libraries;
  std::vector<NamedText> config;  // offered: a kernel takes the keys that its module declares
  bool is_faulty = false;         // some of it was reported; what is good is here all the same
};

struct ManifestDraft {
  Slot<uint64_t> version;
  Slot<Text> name;
  Slot<uint64_t> release;
  Slot<Text> output;
  Slot<std::vector<Text>> include;  // paths as written
  Slot<DefaultsDraft> defaults;
  bool allow_absolute_paths = false;  // counts in the top manifest only
  Slot<std::vector<TargetDraft>> targets;
  Slot<Settings> settings;
  Slot<std::vector<KernelDraft>> kernels;
  YamlPlace allow_absolute_paths_place;
  bool is_read = false;  // a map of a version that this kc reads
};

/// Reads the whole document, and nothing but the document: no file that it names is looked at. A newer
/// version is the only fault reported when there is one.
ManifestDraft read_manifest(const YamlNode& root, Faults& faults);

// Parts of read_manifest.
std::optional<KernelDraft> read_kernel(const Field& item, Faults& faults);
std::optional<DefaultsDraft> read_defaults(const Field& field, Faults& faults);
std::optional<SpecializationsDraft> read_specializations(const Field& field, Faults& faults);
std::optional<std::vector<OverrideDraft>> read_overrides(const Field& field, Faults& faults);
std::optional<std::vector<ParameterDraft>> read_parameters(const Field& field, Faults& faults);
/// A path that is taken as it stands: not empty.
std::optional<Text> read_path(const Field& field, Faults& faults);
/// `sources`, `libraries`, `depends`: a path or a list of paths, patterns and `@lists`, each right on its own
/// (check_path in source_lists.h). `like` is an example of a list for the message.
std::optional<std::vector<Text>> read_paths(const Field& field, std::string_view like, Faults& faults);
/// A map of options to values, may be empty. Names and values are the backend's to check.
std::optional<std::vector<NamedText>> read_options(const Field& field, Faults& faults);
std::optional<LimitsDraft> read_limits(const Field& field, Faults& faults);
/// A list of targets, each by the grammar of core/target, none twice.
std::optional<std::vector<TargetDraft>> read_targets(const Field& field, Faults& faults);

}  // namespace kc::manifest
