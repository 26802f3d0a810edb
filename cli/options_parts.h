// What the files that define commands share: options_build.cpp, options_bundle.cpp, options_store.cpp,
// options_entries.cpp. CLI11 is included in cli/options*.cpp and here only.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "util/text.h"

namespace kc::cli {

/// All arguments of one run; the subcommands' callbacks refer into it.
struct Arguments {
  Common common;
  BuildArguments build;
  LockArguments lock;
  BundleArguments bundle;
  VerifyArguments verify;
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
  bool verbose = false;
  bool quiet = false;
};

/// The subcommands and what each runs, in the order of the help.
class Commands {
 public:
  using Run = std::function<int(const Common&, Console&)>;

  explicit Commands(Arguments& arguments) : arguments_(arguments) {}
  /// A new subcommand of `parent` with the options that all have. `examples` are the lines below "Examples:".
  CLI::App* add(CLI::App& parent, const char* name, const char* description, std::string_view examples,
                Run run);
  const std::vector<std::pair<CLI::App*, Run>>& all() const { return commands_; }

 private:
  Arguments& arguments_;
  std::vector<std::pair<CLI::App*, Run>> commands_;
};

void add_build_commands(CLI::App& app, Arguments& a, Commands& commands);
void add_bundle_commands(CLI::App& app, Arguments& a, Commands& commands);
void add_store_commands(CLI::App& app, Arguments& a, Commands& commands);
/// Those of `kc store` that look at single entries and move them; `store` is that command.
void add_entry_commands(CLI::App& store, Arguments& a, Commands& commands);

/// The group of options that a command's help leaves out: those that kEverywhere names, and few others.
inline constexpr const char* kUnlisted = "Everywhere";

/// The end of a command's help: examples, options that every command takes, exit codes.
std::string footer(std::string_view examples);
void add_common(CLI::App* app, Arguments& a);
void add_store(CLI::App* app, StoreArguments& store, bool with_mode);
/// --key and --key-dir.
void add_keys(CLI::App* app, KeyArguments& keys, const char* what);
/// The same with --trust-unsigned, for what brings code into the store.
void add_import_keys(CLI::App* app, KeyArguments& keys);

/// An option whose text is checked by kc's own readers, the same as those of manifest and variables.
template <typename T>
CLI::Option* checked_option(CLI::App* app, const std::string& name, std::optional<T>& out,
                            std::optional<T> (*parse_text)(std::string_view), const std::string& expected,
                            const std::string& description, const std::string& kind) {
  CLI::Option* option = app->add_option_function<std::string>(
      name,
      [&out, parse_text, expected, name](const std::string& text) {
        out = parse_text(text);
        if (!out)
          throw CLI::ValidationError(name, util::format("\"{}\" is not {}", util::escape(text), expected));
      },
      description);
  return option->type_name(kind);
}

}  // namespace kc::cli
