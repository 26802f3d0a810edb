// kc build, kc pack and kc plan.
#include "cli/build_options.h"
#include "cli/build_run.h"
#include "cli/command.h"
#include "cli/console.h"

namespace kc::cli {
int command_build(const Common& common, const BuildArguments& arguments, Console& console) {
  const auto options = build_options(common, arguments);
  if (!options) return console.fail(options.error());
  BuildText::What what;
  what.is_dry_run = arguments.dry_run;
  // Named units are what the user wants to hear about.
  what.list_units = arguments.dry_run || (!arguments.units.empty() && !arguments.output);
  return run_build(*options, console, what);
}

int command_plan(const Common& common, const BuildArguments& arguments, Console& console) {
  const auto options = build_options(common, arguments);
  if (!options) return console.fail(options.error());
  BuildText::What what;
  what.is_plan = true;
  what.is_plan_summary = arguments.summary;
  what.list_units = !arguments.summary;
  return run_build(*options, console, what);
}

int command_pack(const Common& common, const BuildArguments& arguments, Console& console) {
  auto options = build_options(common, arguments);
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
  return run_build(*options, console, what);
}

}  // namespace kc::cli
