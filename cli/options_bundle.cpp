// kc show, verify, check, load, diff, extract, keygen and sign.
#include "cli/loader_commands.h"
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
  kc verify build/demo.kcb --key release.pub --name demo --min-release 3
)";
constexpr std::string_view kKeygenFooter = R"(
The private key is encrypted with the passphrase in KC_KEY_PASSPHRASE, if there
is one.

Examples:
  kc keygen release              writes release.key and release.pub
  kc keygen -o /secure/ci.key    writes ci.pub beside it
)";
constexpr std::string_view kSignFooter = R"(
Examples:
  kc sign build/demo.kcb --key release.key
  kc sign build/demo.kcb --export message
  openssl pkeyutl -sign -rawin -inkey release.key -in message -out signature
  kc sign build/demo.kcb --attach signature --key release.pub
)";

constexpr std::string_view kExtractFooter = R"(
Examples:
  kc extract build/demo.kcb vec_add@sm_90 -o vec_add.cubin
  kc extract build/demo.kcb --all cubins/
)";

}  // namespace

void add_bundle_commands(CLI::App& app, Arguments& a, Commands& commands) {
  commands.add(
      app, "show", "What is in a bundle", kShowFooter,
      [&a](CLI::App* show) {
        show->add_option("BUNDLE", a.bundle.bundle, "The .kcb file")->required();
        show->add_option("UNIT", a.bundle.units, "Units, kernels or globs");
      },
      [&a](const Common& c, Console& out) { return command_show(c, a.bundle, out); });
  commands.add(
      app, "verify", "Check every byte of a bundle", kVerifyFooter,
      [&a](CLI::App* verify) { add_policy(verify, a.verify, "May lack units, also with --key"); },
      [&a](const Common& c, Console& out) { return command_verify(c, a.verify, out); });
  commands.add(
      app, "check", kCheckText, {}, [&a](CLI::App* check) { add_check_options(check, a.check, "kc"); },
      [&a](const Common&, Console& out) { return check_bundle(a.check, out); });
  commands.add(
      app, "load", kLoadText, {}, [&a](CLI::App* load) { add_load_options(load, a.load, "kc"); },
      [&a](const Common&, Console& out) { return load_bundle(a.load, out); });
  commands.add(
      app, "diff", "Compare two bundles", kDiffFooter,
      [&a](CLI::App* diff) {
        diff->add_option("BEFORE", a.diff.before, "The .kcb file to compare with")->required();
        diff->add_option("AFTER", a.diff.after, "The .kcb file that is compared")->required();
        diff->add_option("UNIT", a.diff.units, "Units, kernels or globs");
        diff->add_option("--fail-on", a.diff.fail_on, "Exit 1 when one of these holds, comma-separated")
            ->delimiter(',')
            ->allow_extra_args(false)  // what follows is a bundle or a unit
            ->type_name("CONDITION");
      },
      [&a](const Common& c, Console& out) { return command_diff(c, a.diff, out); });
  commands.add(
      app, "extract", "Take code objects out of a bundle", kExtractFooter,
      [&a](CLI::App* extract) {
        extract->add_option("BUNDLE", a.bundle.bundle, "The .kcb file")->required();
        extract->add_option("UNIT", a.bundle.units, "One unit, with -o")->expected(0, 1);
        extract->add_option("-o,--output", a.bundle.output, "Where the unit's code object goes")
            ->type_name("FILE");
        extract->add_option("--all", a.bundle.directory, "All units, each in a file below DIR")
            ->type_name("DIR");
      },
      [&a](const Common& c, Console& out) { return command_extract(c, a.bundle, out); });
  commands.add(
      app, "keygen", "Make a key that signs bundles", kKeygenFooter,
      [&a](CLI::App* keygen) {
        keygen->add_option("NAME", a.keygen.name, "Writes NAME.key and NAME.pub");
        keygen->add_option("-o,--output", a.keygen.output, "Where the private key goes")->type_name("FILE");
        keygen->add_flag("--passphrase", a.keygen.ask_passphrase, "Ask for a passphrase on the terminal");
      },
      [&a](const Common& c, Console& out) { return command_keygen(c, a.keygen, out); });
  commands.add(
      app, "sign", "Sign a bundle", kSignFooter,
      [&a](CLI::App* sign) {
        sign->add_option("BUNDLE", a.sign.bundle, "The .kcb file")->required();
        sign->add_option("--key", a.sign.key, "The private key; with --attach the public one")
            ->type_name("KEY");
        sign->add_option("--export", a.sign.export_to, "Write what is to be signed there, sign nothing")
            ->type_name("FILE");
        sign->add_option("--attach", a.sign.attach, "Add a signature that was made elsewhere: 64 raw bytes")
            ->type_name("FILE");
        sign->add_flag("--passphrase", a.sign.ask_passphrase, "Ask for the key's passphrase on the terminal");
      },
      [&a](const Common& c, Console& out) { return command_sign(c, a.sign, out); });
}

}  // namespace kc::cli
