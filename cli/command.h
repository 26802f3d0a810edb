// The commands: each takes its arguments as plain data and gives kc's exit code. Options are parsed in
// options.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/settings.h"
#include "store/store.h"
#include "util/time.h"

namespace kc::cli {

class Console;

enum class Format : uint8_t { kText, kJson };

/// Everywhere (docs: `kc --help`).
struct Common {
  std::string directory;  // -C, already changed into
  int verbosity = 0;      // -1 with -q, 1 with -v
  std::string color = "auto";
  std::string progress = "auto";
  Format format = Format::kText;
  config::Environment environment;
};

struct StoreArguments {
  std::optional<std::string> directory;  // --store
  std::optional<store::Mode> mode;       // --store-mode
  bool strict = false;
};

struct BuildArguments {
  std::string manifest = "kernels.yaml";
  std::optional<std::string> output;
  std::vector<std::string> units;    // unit, kernel or glob
  std::vector<std::string> targets;  // --target
  std::optional<unsigned> jobs;
  std::optional<uint64_t> keep_going;
  std::optional<util::Nanoseconds> timeout;
  std::optional<util::Nanoseconds> lock_timeout;
  std::optional<int> level;
  std::optional<uint64_t> frame_size;
  std::optional<uint64_t> release;
  bool dry_run = false;
  bool require_cached = false;
  bool allow_partial = false;
  bool summary = false;  // plan
  StoreArguments store;
};

struct BundleArguments {  // show, verify, extract
  std::string bundle;
  std::vector<std::string> units;        // extract: one; show: filters
  std::optional<std::string> output;     // extract -o
  std::optional<std::string> directory;  // extract --all
};

struct DiffArguments {
  std::string before, after;         // bundles
  std::vector<std::string> units;    // filters: unit, kernel or glob
  std::vector<std::string> fail_on;  // conditions, as written
};

struct GcArguments {
  std::optional<uint64_t> max_size;
  std::optional<util::Nanoseconds> max_age;
  bool dry_run = false;
  StoreArguments store;
};

int command_build(const Common& common, const BuildArguments& arguments, Console& console);
int command_plan(const Common& common, const BuildArguments& arguments, Console& console);
int command_pack(const Common& common, const BuildArguments& arguments, Console& console);
int command_diff(const Common& common, const DiffArguments& arguments, Console& console);
int command_schema(const Common& common, Console& console);
int command_show(const Common& common, const BundleArguments& arguments, Console& console);
int command_verify(const Common& common, const BundleArguments& arguments, Console& console);
int command_extract(const Common& common, const BundleArguments& arguments, Console& console);
int command_gc(const Common& common, const GcArguments& arguments, Console& console);
int command_store_stats(const Common& common, const StoreArguments& arguments, Console& console);
int command_store_path(const Common& common, const StoreArguments& arguments, Console& console);
int command_store_verify(const Common& common, const StoreArguments& arguments, Console& console);

}  // namespace kc::cli
