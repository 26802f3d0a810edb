// A manifest as it was written: every field read and checked on its own, nothing combined yet.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
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

/// A map of configuration values that stands for one specialization or a set of them.
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
};

struct LimitsDraft {
  Limits limits;
  YamlPlace spills_place;
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
};

struct ManifestDraft {
  Slot<uint64_t> version;
  Slot<Text> name;
  Slot<uint64_t> release;
  Slot<Text> output;
  Slot<std::vector<TargetDraft>> targets;
  Slot<Settings> settings;
  Slot<std::vector<KernelDraft>> kernels;
};

/// Reads the whole document. A newer version is the only fault reported when there is one.
ManifestDraft read_manifest(const YamlNode& root, Faults& faults);

// Parts of read_manifest, one a file.
std::optional<KernelDraft> read_kernel(const Field& item, Faults& faults);
std::optional<SpecializationsDraft> read_specializations(const Field& field, Faults& faults);
/// A list of targets, each by the grammar of core/target, none twice.
std::optional<std::vector<TargetDraft>> read_targets(const Field& field, Faults& faults);

}  // namespace kc::manifest
