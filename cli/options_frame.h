// What the command lines of kc and kcload share. CLI11 is included in options files only.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cli/loader_arguments.h"
#include "cli/manner.h"
#include "util/text.h"

namespace kc::cli {

class Console;

/// The group of options that a command's help leaves out: those that the end of each help names, and few
/// others.
inline constexpr const char* kUnlisted = "Everywhere";

/// For the root of a program, before its subcommands, which inherit it.
std::shared_ptr<CLI::Formatter> help_formatter();
/// The options that every command takes; named once at the end of each help instead of in each list.
void add_everywhere(CLI::App* app, Manner& manner);
/// The end of a command's help: examples, options that every command takes, exit codes.
std::string footer(std::string_view examples, std::string_view exit_codes);
/// What a program that runs no command prints, and its exit code: on stdout with 0, else on stderr.
struct Ending {
  std::string text;
  int code = 0;
};
/// Parses a command line. An ending for help, the version, or what is wrong, with the nearest name that there
/// is; nothing when a command was named.
std::optional<Ending> parse_line(CLI::App& app, int argc, char** argv);

/// --key and --key-dir.
void add_keys(CLI::App* app, KeyArguments& keys, const char* what);
/// A bundle and all that it can be demanded to be. `partial` says what --allow-partial does.
void add_policy(CLI::App* app, PolicyArguments& policy, const char* partial);

/// Options, examples and exit codes of commands that both programs have; `app` is the command.
void add_check_options(CLI::App* app, CheckArguments& check, std::string_view program);
void add_load_options(CLI::App* app, LoadArguments& load, std::string_view program);
inline constexpr const char* kCheckText = "Has every kernel code for these devices?";
inline constexpr const char* kLoadText = "Load all that fits on the GPUs of this machine, report";

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
