// The commands: each takes its arguments as plain data and gives kc's exit code. Options are parsed in
// options.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/loader_arguments.h"
#include "cli/manner.h"
#include "config/settings.h"
#include "config/user_settings.h"
#include "store/store.h"
#include "util/time.h"

namespace kc::cli {

class Console;

/// Everywhere (docs: `kc --help`).
struct Common : Manner {
  config::Environment environment;  // and what the user's settings say where it says nothing
  config::UserSettings settings;
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
  bool locked = false;
  std::optional<std::string> identity_from;
  bool summary = false;             // plan
  std::optional<std::string> sign;  // --sign, a private key
  std::optional<std::string> from;  // warm --from
  bool names_manifest = false;      // -f was given
  KeyArguments keys;
  StoreArguments store;
};

struct LockArguments {
  std::string manifest = "kernels.yaml";
  bool check = false;
};

struct BundleArguments {  // show, extract
  std::string bundle;
  std::vector<std::string> units;        // extract: one; show: filters
  std::optional<std::string> output;     // extract -o
  std::optional<std::string> directory;  // extract --all
};

struct KeygenArguments {
  std::string name;                   // NAME.key and NAME.pub; empty with output
  std::optional<std::string> output;  // of the private key
  bool ask_passphrase = false;
};

struct SignArguments {
  std::string bundle;
  std::optional<std::string> key;        // private; with attach public
  std::optional<std::string> export_to;  // what is to be signed goes there
  std::optional<std::string> attach;     // a signature that was made elsewhere
  bool ask_passphrase = false;
};

struct DiffArguments {
  std::string before, after;         // bundles
  std::vector<std::string> units;    // filters: unit, kernel or glob
  std::vector<std::string> fail_on;  // conditions, as written
};

struct GcArguments {
  std::optional<uint64_t> max_size;
  std::optional<util::Nanoseconds> max_age;
  std::vector<std::string> keep;  // manifests and bundles
  bool only_keep = false;
  bool dry_run = false;
  StoreArguments store;
};

struct PinArguments {  // kc store pin, unpin
  std::string name;
  std::string file = "kernels.yaml";  // a manifest or a bundle
  std::vector<std::string> targets;   // of a manifest; empty = all
  StoreArguments store;
};

struct StoreVerifyArguments {
  bool repair = false;
  StoreArguments store;
};

struct StoredArguments {           // store show
  std::vector<std::string> names;  // keys, starts of keys, units, kernels, globs
  StoreArguments store;
};

enum class EntrySort : uint8_t { kKernel, kAge, kSize, kSeconds };
struct ListArguments {             // store ls
  std::vector<std::string> names;  // units, kernels, globs
  EntrySort sort = EntrySort::kKernel;
  StoreArguments store;
};

struct RemoveArguments {  // store rm
  std::vector<std::string> names;
  bool force = false;
  bool dry_run = false;
  StoreArguments store;
};

struct ExportArguments {
  std::string archive;
  std::optional<std::string> manifest;  // without: the whole store
  BuildArguments build;                 // what else chooses units, the store, the key to sign with
};

struct ImportArguments {
  std::string archive;
  KeyArguments keys;
  StoreArguments store;
};

int command_build(const Common& common, const BuildArguments& arguments, Console& console);
int command_plan(const Common& common, const BuildArguments& arguments, Console& console);
int command_pack(const Common& common, const BuildArguments& arguments, Console& console);
int command_lock(const Common& common, const LockArguments& arguments, Console& console);
int command_diff(const Common& common, const DiffArguments& arguments, Console& console);
int command_schema(const Common& common, Console& console);
int command_show(const Common& common, const BundleArguments& arguments, Console& console);
int command_verify(const Common& common, const PolicyArguments& arguments, Console& console);
int command_keygen(const Common& common, const KeygenArguments& arguments, Console& console);
int command_sign(const Common& common, const SignArguments& arguments, Console& console);
int command_warm(const Common& common, const BuildArguments& arguments, Console& console);
int command_extract(const Common& common, const BundleArguments& arguments, Console& console);
int command_gc(const Common& common, const GcArguments& arguments, Console& console);
int command_store_stats(const Common& common, const StoreArguments& arguments, Console& console);
int command_doctor(const Common& common, const StoreArguments& arguments, Console& console);
int command_store_path(const Common& common, const StoreArguments& arguments, Console& console);
int command_store_ls(const Common& common, const ListArguments& arguments, Console& console);
int command_store_show(const Common& common, const StoredArguments& arguments, Console& console);
int command_store_rm(const Common& common, const RemoveArguments& arguments, Console& console);
int command_store_export(const Common& common, const ExportArguments& arguments, Console& console);
int command_store_import(const Common& common, const ImportArguments& arguments, Console& console);
int command_store_verify(const Common& common, const StoreVerifyArguments& arguments, Console& console);
int command_store_pin(const Common& common, const PinArguments& arguments, Console& console);
int command_store_unpin(const Common& common, const PinArguments& arguments, Console& console);
int command_store_pins(const Common& common, const StoreArguments& arguments, Console& console);

}  // namespace kc::cli
