#include "cli/options.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <string_view>
#include <utility>

#include "base/compress.h"
#include "cli/store_choice.h"
#include "config/settings.h"
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
constexpr std::string_view kBuildFooter = R"(
Examples:
  kc build -f kernels.yaml -o build/kernels.kcb
  kc build 'matmul*' --target sm_90 -v
)";
constexpr std::string_view kPlanFooter = R"(
Examples:
  kc plan -f kernels.yaml
  kc plan --format=json | jq -r 'select(.state=="miss").unit'
)";
constexpr std::string_view kPackFooter = R"(
Examples:
  kc pack -f kernels.yaml -o build/kernels.kcb
  kc pack --level 19
)";
constexpr std::string_view kDiffFooter = R"(
CONDITION: METRIC (has grown), METRIC+N or METRIC+N% (by more than that), METRIC-N or
METRIC-N% (has shrunk by more), added, removed, changed. METRIC: registers,
local_memory, spills, shared_memory, code; N of bytes may be a size (4KiB).

Examples:
  kc diff old.kcb new.kcb
  kc diff old.kcb new.kcb --fail-on spills,local_memory,registers+10%
)";
constexpr std::string_view kSchemaFooter = R"(
Examples:
  kc schema > kernels.schema.json
  kc schema | jq '."$defs" | keys'
)";
constexpr std::string_view kShowFooter = R"(
Examples:
  kc show build/demo.kcb
  kc show build/demo.kcb 'matmul*' --format=json
)";
constexpr std::string_view kVerifyFooter = R"(
Examples:
  kc verify build/demo.kcb
  kc verify build/demo.kcb && scp build/demo.kcb server:
)";
constexpr std::string_view kExtractFooter = R"(
Examples:
  kc extract build/demo.kcb vec_add@sm_90 -o vec_add.cubin
  kc extract build/demo.kcb --all cubins/
)";
constexpr std::string_view kGcFooter = R"(
Examples:
  kc gc --max-size 2GiB
  kc gc --max-age 30d --dry-run
)";
constexpr std::string_view kStoreFooter = R"(
Examples:
  kc store stats
  kc store verify --store /var/cache/kc
)";

std::string footer(std::string_view examples) {
  return std::string(examples) + std::string(kEverywhere) + std::string(kExitCodes);
}

// An option whose text is checked by kc's own readers, the same as those of manifest and variables.
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

std::optional<unsigned> parse_jobs(std::string_view text) {
  const auto number = util::parse_number(text, 1, config::kMaxJobs);
  return number ? std::optional(static_cast<unsigned>(*number)) : std::nullopt;
}
std::optional<uint64_t> parse_count(std::string_view text) {
  return util::parse_number(text, 0, UINT64_MAX);
}
std::optional<int> parse_level(std::string_view text) {
  const auto number = util::parse_number(text, base::kMinLevel, base::kMaxLevel);
  return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
}
std::optional<uint64_t> parse_frame_size(std::string_view text) {
  const auto size = util::parse_size(text);
  return size && *size >= config::kMinFrameSize && *size <= config::kMaxFrameSize ? size : std::nullopt;
}

// All arguments of one run; the subcommands' callbacks refer into it.
struct Arguments {
  Common common;
  BuildArguments build;
  BundleArguments bundle;
  DiffArguments diff;
  GcArguments gc;
  StoreArguments store;
  bool verbose = false;
  bool quiet = false;
};

// Leaves out the group of the options that kEverywhere names. (CLI11 leaves out a group without a name, too,
// but then its errors lack the option's name.)
constexpr const char* kUnlisted = "Everywhere";
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override {
    return group == kUnlisted ? "" : CLI::Formatter::make_group(group, is_positional, options);
  }
};

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
      ->type_name("MODE");
  app->add_flag("--strict-store", store.strict, "Trouble with the store is an error");
}

void add_plan_options(CLI::App* app, BuildArguments& b) {
  app->add_option("UNIT", b.units, "Units, kernels or globs; all when none is named");
  app->add_option("-f,--file", b.manifest, "The manifest [kernels.yaml]")->type_name("FILE");
  app->add_option("--target", b.targets, "Only these targets, comma-separated")
      ->delimiter(',')
      ->allow_extra_args(false)  // what follows is a unit
      ->type_name("T");
}

void add_pack_options(CLI::App* app, BuildArguments& b) {
  app->add_option("-o,--output", b.output,
                  "The bundle; wins over the manifest's output;\nUNIT and --target pack only with it")
      ->type_name("FILE");
  checked_option(app, "--level", b.level, &parse_level, "a zstd level from 1 to 19",
                 "Compression, 1 to 19 [3]", "N");
  checked_option(app, "--frame-size", b.frame_size, &parse_frame_size, "a size from 4KiB to 64MiB",
                 "Raw bytes a frame holds at most [256KiB]", "SIZE");
  checked_option(app, "--release", b.release, &parse_count, "a number", "Release number in the bundle", "N");
  app->add_flag("--allow-partial", b.allow_partial, "Pack what there is; marks the bundle partial");
}

void add_build_options(CLI::App* app, BuildArguments& b) {
  checked_option(app, "-j,--jobs", b.jobs, &parse_jobs,
                 util::format("a number from 1 to {}", config::kMaxJobs),
                 "Compiles at a time [the CPUs allowed]", "N");
  checked_option(app, "-k,--keep-going", b.keep_going, &parse_count, "a number of failures",
                 "Stop after N failures; 0 = never [0]", "N");
  app->add_flag("-n,--dry-run", b.dry_run, "Say what would be compiled");
  checked_option(app, "--timeout", b.timeout, &util::parse_duration, "a duration such as 60s",
                 "For each unit [10m]", "D");
  checked_option(app, "--lock-timeout", b.lock_timeout, &util::parse_duration, "a duration such as 60s",
                 "Wait this long for another build's unit", "D");
  app->add_flag("--require-cached", b.require_cached, "Fail when a unit is not in the store");
}

using Run = std::function<int(const Common&, Console&)>;

// The subcommands and what each runs, in the order of the help.
std::vector<std::pair<CLI::App*, Run>> add_commands(CLI::App& app, Arguments& a) {
  std::vector<std::pair<CLI::App*, Run>> commands;
  const auto add = [&](CLI::App* parent, const char* name, const char* description, std::string_view examples,
                       Run run) {
    CLI::App* sub = parent->add_subcommand(name, description);
    sub->footer(footer(examples));
    add_common(sub, a);
    commands.emplace_back(sub, std::move(run));
    return sub;
  };
  CLI::App* build = add(&app, "build", "Compile what is missing and pack the bundle", kBuildFooter,
                        [&a](const Common& c, Console& out) { return command_build(c, a.build, out); });
  add_plan_options(build, a.build);
  add_pack_options(build, a.build);
  add_build_options(build, a.build);
  add_store(build, a.build.store, true);

  CLI::App* plan = add(&app, "plan", "The units, their keys, hit or miss; compiles nothing", kPlanFooter,
                       [&a](const Common& c, Console& out) { return command_plan(c, a.build, out); });
  add_plan_options(plan, a.build);
  plan->add_flag("--summary", a.build.summary, "One line a kernel instead of one a unit");
  add_store(plan, a.build.store, false);

  CLI::App* pack = add(&app, "pack", "Pack what the store holds; compiles nothing", kPackFooter,
                       [&a](const Common& c, Console& out) { return command_pack(c, a.build, out); });
  add_plan_options(pack, a.build);
  add_pack_options(pack, a.build);
  add_store(pack, a.build.store, false);

  CLI::App* show = add(&app, "show", "What is in a bundle", kShowFooter,
                       [&a](const Common& c, Console& out) { return command_show(c, a.bundle, out); });
  show->add_option("BUNDLE", a.bundle.bundle, "The .kcb file")->required();
  show->add_option("UNIT", a.bundle.units, "Units, kernels or globs");

  CLI::App* verify = add(&app, "verify", "Check every byte of a bundle", kVerifyFooter,
                         [&a](const Common& c, Console& out) { return command_verify(c, a.bundle, out); });
  verify->add_option("BUNDLE", a.bundle.bundle, "The .kcb file")->required();

  CLI::App* diff = add(&app, "diff", "Compare two bundles", kDiffFooter,
                       [&a](const Common& c, Console& out) { return command_diff(c, a.diff, out); });
  diff->add_option("BEFORE", a.diff.before, "The .kcb file to compare with")->required();
  diff->add_option("AFTER", a.diff.after, "The .kcb file that is compared")->required();
  diff->add_option("UNIT", a.diff.units, "Units, kernels or globs");
  diff->add_option("--fail-on", a.diff.fail_on, "Exit 1 when one of these holds, comma-separated")
      ->delimiter(',')
      ->allow_extra_args(false)  // what follows is a bundle or a unit
      ->type_name("CONDITION");

  CLI::App* extract = add(&app, "extract", "Take code objects out of a bundle", kExtractFooter,
                          [&a](const Common& c, Console& out) { return command_extract(c, a.bundle, out); });
  extract->add_option("BUNDLE", a.bundle.bundle, "The .kcb file")->required();
  extract->add_option("UNIT", a.bundle.units, "One unit, with -o")->expected(0, 1);
  extract->add_option("-o,--output", a.bundle.output, "Where the unit's code object goes")->type_name("FILE");
  extract->add_option("--all", a.bundle.directory, "All units, each in a file below DIR")->type_name("DIR");

  CLI::App* gc = add(&app, "gc", "Make the store smaller, oldest entries first", kGcFooter,
                     [&a](const Common& c, Console& out) { return command_gc(c, a.gc, out); });
  checked_option(gc, "--max-size", a.gc.max_size, &util::parse_size, "a size such as 2GiB",
                 "Down to this size [5GiB, when no age is given]", "SIZE");
  checked_option(gc, "--max-age", a.gc.max_age, &util::parse_duration, "a duration such as 30d",
                 "Remove what was not used for this long", "D");
  gc->add_flag("-n,--dry-run", a.gc.dry_run, "Only say what would go");
  add_store(gc, a.gc.store, false);

  CLI::App* store = app.add_subcommand("store", "stats, path, verify: look after the store");
  store->require_subcommand(1);
  add_common(store, a);
  store->footer(footer(kStoreFooter));
  add_store(add(store, "stats", "Entries, bytes, hits and misses", kStoreFooter,
                [&a](const Common& c, Console& out) { return command_store_stats(c, a.store, out); }),
            a.store, false);
  add_store(add(store, "path", "Where the store is", kStoreFooter,
                [&a](const Common& c, Console& out) { return command_store_path(c, a.store, out); }),
            a.store, false);
  add_store(add(store, "verify", "Read and check every entry and record", kStoreFooter,
                [&a](const Common& c, Console& out) { return command_store_verify(c, a.store, out); }),
            a.store, false);
  add(&app, "schema", "The JSON schema of manifests, for editors", kSchemaFooter,
      [](const Common& c, Console& out) { return command_schema(c, out); });
  return commands;
}

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

Parsed parse(int argc, char** argv) {
  // Shared with the command that is returned, which runs after this function has ended.
  const auto arguments = std::make_shared<Arguments>();
  CLI::App app("kc turns a manifest of GPU kernels into one bundle of ready machine code.", "kc");
  app.set_version_flag("--version", util::format("kc {}", engine::build_id()));
  app.formatter(std::make_shared<HelpFormatter>());  // before the subcommands, which inherit it
  app.footer(footer(kMainFooter));
  app.require_subcommand(1);
  add_common(&app, *arguments);
  const auto commands = add_commands(app, *arguments);
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
  for (const auto& [sub, run] : commands) {
    if (!sub->parsed()) continue;
    parsed.command = [arguments, run = run](const Common& common, Console& console) {
      return run(common, console);
    };
  }
  return parsed;
}

}  // namespace kc::cli
