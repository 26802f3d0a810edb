#include "cli/options.h"

#include <memory>
#include <string_view>
#include <utility>

#include "cli/options_parts.h"
#include "cli/store_choice.h"
#include "engine/wire.h"
#include "util/text.h"

namespace kc::cli {
namespace {

constexpr std::string_view kExitCodes = R"(
Exit codes: 0 done; 1 a unit failed, or a bundle or store is damaged; 2 usage,
manifest or input; 3 environment (no compiler, disk full, ...); 4 a fault of kc;
128+n ended by signal n.
)";

constexpr std::string_view kMainFooter = R"(
Examples:
  kc build                       build kernels.yaml of this folder
  kc show build/demo.kcb         what is in a bundle
`kc COMMAND --help` tells more.
)";

}  // namespace

std::string footer(std::string_view examples) {
  return footer(examples, kExitCodes);
}

void add_store(CLI::App* app, StoreArguments& store, bool with_mode) {
  app->add_option("--store", store.directory, "The store's folder")->type_name("DIR");
  if (!with_mode) return;
  app->add_option_function<std::string>(
         "--store-mode", [&store](const std::string& text) { store.mode = parse_mode(text); },
         "rw, ro, off or refresh")
      ->check(CLI::IsMember({"rw", "ro", "off", "refresh"}))
      ->option_text("MODE");  // the check would add its list to the name
  app->add_flag("--strict-store", store.strict, "Trouble with the store is an error");
}

void add_import_keys(CLI::App* app, KeyArguments& keys) {
  add_keys(app, keys, "Trust this public key, too; repeatable");
  app->add_flag("--trust-unsigned", keys.trust_unsigned, "Take it whoever made it; --sign refuses it later");
}

CLI::App* Commands::add_named(CLI::App& parent, const char* name, const char* description,
                              std::string_view examples, Define define) {
  CLI::App* sub = parent.add_subcommand(name, description);
  sub->preparse_callback([this, sub, examples, define = std::move(define)](size_t) {
    sub->footer(footer(examples));
    add_everywhere(sub, arguments_.common);
    define(sub);
  });
  return sub;
}

void Commands::add(CLI::App& parent, const char* name, const char* description, std::string_view examples,
                   Define define, Run run) {
  commands_.emplace_back(add_named(parent, name, description, examples, std::move(define)), std::move(run));
}

void Commands::add_family(CLI::App& parent, const char* name, const char* description,
                          std::string_view examples, Define define) {
  add_named(parent, name, description, examples, std::move(define))->require_subcommand(1);
}

Parsed parse(int argc, char** argv) {
  // Shared with the command that is returned, which runs after this function has ended.
  const auto arguments = std::make_shared<Arguments>();
  CLI::App app("kc turns a manifest of GPU kernels into one bundle of ready machine code.", "kc");
  app.set_version_flag("--version", util::format("kc {}", engine::build_id()));
  app.formatter(help_formatter());
  app.footer(footer(kMainFooter));
  app.require_subcommand(1);
  add_everywhere(&app, arguments->common);
  Commands commands(*arguments);
  add_build_commands(app, *arguments, commands);
  add_bundle_commands(app, *arguments, commands);
  add_store_commands(app, *arguments, commands);
  Parsed parsed;
  if (std::optional<Ending> ending = parse_line(app, argc, argv)) {
    parsed.text = std::move(ending->text);
    parsed.code = ending->code;
    return parsed;
  }
  parsed.common = arguments->common;
  for (const auto& [sub, run] : commands.all()) {
    if (!sub->parsed()) continue;
    parsed.command = [arguments, run = run](const Common& common, Console& console) {
      return run(common, console);
    };
  }
  return parsed;
}

}  // namespace kc::cli
