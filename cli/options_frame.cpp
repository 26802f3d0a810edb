#include "cli/options_frame.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace kc::cli {
namespace {

constexpr std::string_view kEverywhere = R"(
Everywhere: -C DIR, -v, -q, --color=auto|always|never, --progress=auto|plain|none,
--format=text|json.
)";

// Leaves out the group of the options that the end of each help names. (CLI11 leaves out a group without a
// name, too, but then its errors lack the option's name.)
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

std::optional<uint64_t> parse_release(std::string_view text) {
  return util::parse_number(text, 0, UINT64_MAX);
}

// As it goes to stderr.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  const CLI::App* at = deepest(&app);
  std::string message = util::escape(error.what());
  const std::string program = app.get_name();
  std::string command = program;
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
  std::string text = util::format("{}: error: {}\n", program, message);
  if (!hint.empty()) text += util::format("  {}\n", hint);
  return text + util::format("  see `{} --help`\n", command);
}

}  // namespace

std::shared_ptr<CLI::Formatter> help_formatter() {
  return std::make_shared<HelpFormatter>();
}

std::optional<Ending> parse_line(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForVersion& version) {
    return Ending{std::string(version.what()) + "\n", 0};
  } catch (const CLI::CallForHelp&) {
    return Ending{app.help(), 0};
  } catch (const CLI::ParseError& error) {
    return Ending{argc <= 1 ? app.help() : usage_error(app, error, argc, argv), 2};
  }
  return std::nullopt;
}

// `examples`, if any, begins with a new line; the help has one there already.
std::string footer(std::string_view examples, std::string_view exit_codes) {
  if (!examples.empty()) examples.remove_prefix(1);
  return std::string(examples) + std::string(kEverywhere) + std::string(exit_codes);
}

void add_everywhere(CLI::App* app, Manner& manner) {
  app->add_option("-C", manner.directory, "Change into this folder first")->group(kUnlisted);
  // -q wins.
  app->add_flag_callback(
         "-v,--verbose", [&manner] { manner.verbosity = manner.verbosity < 0 ? -1 : 1; }, "Say more")
      ->group(kUnlisted);
  app->add_flag_callback(
         "-q,--quiet", [&manner] { manner.verbosity = -1; }, "Only failures")
      ->group(kUnlisted);
  app->add_option("--color", manner.color, "auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->group(kUnlisted);
  app->add_option("--progress", manner.progress, "auto, plain or none")
      ->check(CLI::IsMember({"auto", "plain", "none"}))
      ->group(kUnlisted);
  app->add_option_function<std::string>(
         "--format",
         [&manner](const std::string& text) {
           manner.format = text == "json" ? Format::kJson : Format::kText;
         },
         "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->group(kUnlisted);
}

void add_keys(CLI::App* app, KeyArguments& keys, const char* what) {
  app->add_option("--key", keys.keys, what)->allow_extra_args(false)->type_name("PUB");
  app->add_option("--key-dir", keys.folder, "The same with all *.pem and *.pub files of DIR")
      ->type_name("DIR");
}

void add_policy(CLI::App* app, PolicyArguments& policy, const char* partial) {
  app->add_option("BUNDLE", policy.bundle, "The .kcb file")->required();
  add_keys(app, policy.keys, "Must be signed by this key; repeatable: by any");
  app->add_option("--name", policy.name, "Must have this name")->type_name("NAME");
  checked_option(app, "--min-release", policy.min_release, &parse_release, "a number",
                 "Must have this release or a later one", "N");
  app->add_flag("--allow-partial", policy.allow_partial, partial);
}

}  // namespace kc::cli
