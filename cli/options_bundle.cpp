// kc show, verify, diff and extract.
#include "cli/options_parts.h"

namespace kc::cli {
namespace {

constexpr std::string_view kDiffFooter = R"(
CONDITION: METRIC (has grown), METRIC+N or METRIC+N% (by more than that), METRIC-N or
METRIC-N% (has shrunk by more), added, removed, changed. METRIC: registers,
local_memory, spills, shared_memory, code; N of bytes may be a size (4KiB).

Examples:
  kc diff old.kcb new.kcb
  kc diff old.kcb new.kcb --fail-on spills,local_memory,registers+10%
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

}  // namespace

void add_bundle_commands(CLI::App& app, Arguments& a, Commands& commands) {
  CLI::App* show =
      commands.add(app, "show", "What is in a bundle", kShowFooter,
                   [&a](const Common& c, Console& out) { return command_show(c, a.bundle, out); });
  show->add_option("BUNDLE", a.bundle.bundle, "The .kcb file")->required();
  show->add_option("UNIT", a.bundle.units, "Units, kernels or globs");

  CLI::App* verify =
      commands.add(app, "verify", "Check every byte of a bundle", kVerifyFooter,
                   [&a](const Common& c, Console& out) { return command_verify(c, a.bundle, out); });
  verify->add_option("BUNDLE", a.bundle.bundle, "The .kcb file")->required();

  CLI::App* diff = commands.add(app, "diff", "Compare two bundles", kDiffFooter,
                                [&a](const Common& c, Console& out) { return command_diff(c, a.diff, out); });
  diff->add_option("BEFORE", a.diff.before, "The .kcb file to compare with")->required();
  diff->add_option("AFTER", a.diff.after, "The .kcb file that is compared")->required();
  diff->add_option("UNIT", a.diff.units, "Units, kernels or globs");
  diff->add_option("--fail-on", a.diff.fail_on, "Exit 1 when one of these holds, comma-separated")
      ->delimiter(',')
      ->allow_extra_args(false)  // what follows is a bundle or a unit
      ->type_name("CONDITION");

  CLI::App* extract =
      commands.add(app, "extract", "Take code objects out of a bundle", kExtractFooter,
                   [&a](const Common& c, Console& out) { return command_extract(c, a.bundle, out); });
  extract->add_option("BUNDLE", a.bundle.bundle, "The .kcb file")->required();
  extract->add_option("UNIT", a.bundle.units, "One unit, with -o")->expected(0, 1);
  extract->add_option("-o,--output", a.bundle.output, "Where the unit's code object goes")->type_name("FILE");
  extract->add_option("--all", a.bundle.directory, "All units, each in a file below DIR")->type_name("DIR");
}

}  // namespace kc::cli
