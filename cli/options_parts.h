// What the files that define commands share: options_build.cpp, options_bundle.cpp, options_store.cpp,
// options_entries.cpp. CLI11 is included in cli/options*.cpp and here only.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/options_frame.h"

namespace kc::cli {

/// All arguments of one run; the subcommands' callbacks refer into it.
struct Arguments {
  Common common;
  BuildArguments build;
  LockArguments lock;
  BundleArguments bundle;
  PolicyArguments verify;
  CheckArguments check;
  LoadArguments load;
  KeygenArguments keygen;
  SignArguments sign;
  DiffArguments diff;
  GcArguments gc;
  PinArguments pin;
  StoreVerifyArguments store_verify;
  StoreArguments store;
  StoredArguments stored;
  ListArguments list;
  RemoveArguments remove;
  ExportArguments export_to;
  ImportArguments import_from;
};

/// The subcommands and what each runs, in the order of the help.
class Commands {
 public:
  using Define = std::function<void(CLI::App*)>;
  using Run = std::function<int(const Common&, Console&)>;

  explicit Commands(Arguments& arguments) : arguments_(arguments) {}
  /// A new subcommand of `parent`. `define` adds its options to those that all have once the command is met
  /// on the command line: making those of all commands would be a quarter of kc's start. `examples`, the
  /// lines below "Examples:", must last as long.
  void add(CLI::App& parent, const char* name, const char* description, std::string_view examples,
           Define define, Run run);
  /// One that has commands of its own, which `define` adds; it runs none itself.
  void add_family(CLI::App& parent, const char* name, const char* description, std::string_view examples,
                  Define define);
  const std::vector<std::pair<CLI::App*, Run>>& all() const { return commands_; }

 private:
  CLI::App* add_named(CLI::App& parent, const char* name, const char* description, std::string_view examples,
                      Define define);

  Arguments& arguments_;
  std::vector<std::pair<CLI::App*, Run>> commands_;
};

void add_build_commands(CLI::App& app, Arguments& a, Commands& commands);
void add_bundle_commands(CLI::App& app, Arguments& a, Commands& commands);
void add_store_commands(CLI::App& app, Arguments& a, Commands& commands);
/// Those of `kc store` that look at single entries and move them; `store` is that command.
void add_entry_commands(CLI::App& store, Arguments& a, Commands& commands);

/// The end of the help of a command of kc.
std::string footer(std::string_view examples);
void add_store(CLI::App* app, StoreArguments& store, bool with_mode);
/// The same with --trust-unsigned, for what brings code into the store.
void add_import_keys(CLI::App* app, KeyArguments& keys);

}  // namespace kc::cli
