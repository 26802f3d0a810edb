// kc build, kc pack and kc plan.
#include <memory>

#include "build/build.h"
#include "cli/build_text.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/store_choice.h"
#include "report/json_lines.h"
#include "util/process.h"

namespace kc::cli {
namespace {

base::Result<build::Options> options_of(const Common& common, const BuildArguments& arguments) {
  const config::Environment& environment = common.environment;
  build::Options options;
  options.manifest = arguments.manifest;
  options.output = arguments.output;
  options.units = arguments.units;
  options.targets = arguments.targets;
  options.jobs = arguments.jobs ? arguments.jobs : environment.jobs;
  options.keep_going = arguments.keep_going ? arguments.keep_going : environment.keep_going;
  options.timeout = arguments.timeout ? arguments.timeout : environment.timeout;
  options.level = arguments.level ? arguments.level : environment.level;
  options.frame_size = arguments.frame_size ? arguments.frame_size : environment.frame_size;
  options.release = arguments.release;
  options.lock_timeout = arguments.lock_timeout;
  options.dry_run = arguments.dry_run;
  options.require_cached = arguments.require_cached;
  options.allow_partial = arguments.allow_partial;
  options.store = choose_store(common, arguments.store);
  KC_ASSIGN(options.program, util::self_path());
  options.search = {environment.tileiras,
                    environment.cutile_tileiras_path,
                    environment.virtual_env,
                    environment.path,
                    environment.cuda_home,
                    environment.loom_library,
                    environment.hrx_loom_library,
                    environment.library_path,
                    base::parent_path(options.program)};
  return options;
}

int run(const build::Options& options, Console& console, BuildText::What what) {
  util::SignalWatch signals;
  using Kind = report::JsonLines::Kind;
  const Kind kind = !what.is_plan ? Kind::kBuild : what.is_plan_summary ? Kind::kPlanSummary : Kind::kPlan;
  what.results = !console.is_json();
  BuildText text(console, what);
  report::JsonLines json(
      kind, [&](const util::Json& object) { console.json(object); }, text);
  build::Listener& listener = console.is_json() ? static_cast<build::Listener&>(json) : text;
  const int code = what.is_plan ? build::plan(options, listener) : build::build(options, listener, signals);
  if (const auto signal = signals.pending()) return 128 + *signal;
  return code;
}

}  // namespace

int command_build(const Common& common, const BuildArguments& arguments, Console& console) {
  const auto options = options_of(common, arguments);
  if (!options) return console.fail(options.error());
  BuildText::What what;
  what.is_dry_run = arguments.dry_run;
  // Named units are what the user wants to hear about.
  what.list_units = arguments.dry_run || (!arguments.units.empty() && !arguments.output);
  return run(*options, console, what);
}

int command_plan(const Common& common, const BuildArguments& arguments, Console& console) {
  const auto options = options_of(common, arguments);
  if (!options) return console.fail(options.error());
  BuildText::What what;
  what.is_plan = true;
  what.is_plan_summary = arguments.summary;
  what.list_units = !arguments.summary;
  return run(*options, console, what);
}

int command_pack(const Common& common, const BuildArguments& arguments, Console& console) {
  auto options = options_of(common, arguments);
  if (!options) return console.fail(options.error());
  if (options->narrowed() && !options->output) {
    return console.fail({base::ErrorKind::kInput,
                         "units or targets are named, so the bundle is not the manifest's",
                         {},
                         "say with -o where it goes"});
  }
  options->pack_only = true;
  // KC_STORE_MODE=refresh is about compiling anew; here only what there is counts.
  if (options->store.mode == store::Mode::kRefresh) options->store.mode = store::Mode::kReadWrite;
  BuildText::What what;
  what.is_pack = true;
  return run(*options, console, what);
}

}  // namespace kc::cli
