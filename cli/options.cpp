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

// Options that every command takes; named here once instead of in each list of options.
constexpr std::string_view kEverywhere = R"(
Everywhere: -C DIR, -v, -q, --color=auto|always|never, --progress=auto|plain|none,
--format=text|json.
)";
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

// Leaves out the group of the options that kEverywhere names. (CLI11 leaves out a group without a name, too,
// but then its errors lack the option's name.)
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override {
    return group == kUnlisted ? "" : CLI::Formatter::make_group(group, is_positional, options);
  }
};

// The deepest subcommand that was parsed: its help and its options' names are what the user wants.
const CLI::App* deepest(const CLI::App* app) {
  for (;;) {
    const auto parsed = app->get_subcommands();
    if (parsed.empty()) return app;
    app = parsed.front();
  }
}

std::string usage_error(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  const CLI::App* at = deepest(&app);
  std::string message = util::escape(error.what());
  std::string command = "kc";
  if (at != &app)
    command += " " + (at->get_parent() != &app ? at->get_parent()->get_name() + " " : "") + at->get_name();
  std::string hint;
  const bool is_extra = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  const bool is_required = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  if (is_extra || is_required) {
    std::vector<std::string> known;
    for (const CLI::Option* option : at->get_options()) {
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    }
    for (const CLI::App* sub : at->get_subcommands({})) known.push_back(sub->get_name());
    for (int i = 1; i < argc && hint.empty(); ++i) {
      std::string_view word = argv[i];
      word = word.substr(0, word.find('='));
      if (std::find(known.begin(), known.end(), word) != known.end() || !util::is_valid_utf8(word)) continue;
      if (is_required && word.starts_with('-')) continue;
      if (is_extra && message.find(word) == std::string::npos) continue;
      hint = util::did_you_mean(word, known);
    }
  }
  if (is_required && !at->get_subcommands({}).empty()) {
    for (const std::string& word : at->remaining()) {
      if (!word.starts_with('-'))
        message = util::format("{} has no command \"{}\"", command, util::escape(word));
    }
  }
  std::string text = util::format("kc: error: {}\n", message);
  if (!hint.empty()) text += util::format("  {}\n", hint);
  return text + util::format("  see `{} --help`\n", command);
}

}  // namespace

// `examples` begins with a new line; the help has one there already.
std::string footer(std::string_view examples) {
  return std::string(examples.substr(1)) + std::string(kEverywhere) + std::string(kExitCodes);
}

void add_common(CLI::App* app, Arguments& a) {
  app->add_option("-C", a.common.directory, "Change into this folder first")->group(kUnlisted);
  app->add_flag("-v,--verbose", a.verbose, "Say more")->group(kUnlisted);
  app->add_flag("-q,--quiet", a.quiet, "Only failures")->group(kUnlisted);
  app->add_option("--color", a.common.color, "auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->group(kUnlisted);
  app->add_option("--progress", a.common.progress, "auto, plain or none")
      ->check(CLI::IsMember({"auto", "plain", "none"}))
      ->group(kUnlisted);
  app->add_option_function<std::string>(
         "--format",
         [&a](const std::string& text) { a.common.format = text == "json" ? Format::kJson : Format::kText; },
         "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->group(kUnlisted);
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

void add_keys(CLI::App* app, KeyArguments& keys, const char* what) {
  app->add_option("--key", keys.keys, what)->allow_extra_args(false)->type_name("PUB");
  app->add_option("--key-dir", keys.folder, "The same with all *.pem and *.pub files of DIR")
      ->type_name("DIR");
}

void add_import_keys(CLI::App* app, KeyArguments& keys) {
  add_keys(app, keys, "Trust this public key, too; repeatable");
  app->add_flag("--trust-unsigned", keys.trust_unsigned, "Take it whoever made it; --sign refuses it later");
}

CLI::App* Commands::add(CLI::App& parent, const char* name, const char* description,
                        std::string_view examples, Run run) {
  CLI::App* sub = parent.add_subcommand(name, description);
  sub->footer(footer(examples));
  add_common(sub, arguments_);
  commands_.emplace_back(sub, std::move(run));
  return sub;
}

Parsed parse(int argc, char** argv) {
  // Shared with the command that is returned, which runs after this function has ended.
  const auto arguments = std::make_shared<Arguments>();
  CLI::App app("kc turns a manifest of GPU kernels into one bundle of ready machine code.", "kc");
  app.set_version_flag("--version", util::format("kc {}", engine::build_id()));
  app.formatter(std::make_shared<HelpFormatter>());  // before the subcommands, which inherit it
  app.footer(footer(kMainFooter));
  app.require_subcommand(1);
  add_common(&app, *arguments);
  Commands commands(*arguments);
  add_build_commands(app, *arguments, commands);
  add_bundle_commands(app, *arguments, commands);
  add_store_commands(app, *arguments, commands);
  Parsed parsed;
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForVersion& version) {
    parsed.text = std::string(version.what()) + "\n";
    return parsed;
  } catch (const CLI::CallForHelp&) {
    parsed.text = app.help();
    return parsed;
  } catch (const CLI::ParseError& error) {
    parsed.text = argc <= 1 ? app.help() : usage_error(app, error, argc, argv);
    parsed.code = 2;
    return parsed;
  }
  arguments->common.verbosity = arguments->quiet ? -1 : arguments->verbose ? 1 : 0;
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
