#include "cli/kcload/options.h"

#include <kc/loader.h>

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/kcload/commands.h"
#include "cli/loader_commands.h"
#include "cli/options_frame.h"

namespace kc::cli {
namespace {

constexpr std::string_view kExitCodes = R"(
Exit codes: 0 done; 1 the bundle is damaged or not what was demanded, or code is
missing or does not load; 2 usage or input; 3 no device or driver; 4 a fault of kcload;
128+n ended by signal n.
)";
constexpr std::string_view kMainFooter = R"(
Examples:
  kcload list demo.kcb                    what is in a bundle
  kcload verify demo.kcb --key release.pub
`kcload COMMAND --help` tells more.
)";
constexpr std::string_view kListFooter = R"(
Examples:
  kcload list demo.kcb
  kcload list demo.kcb --format=json
)";
constexpr std::string_view kVerifyFooter = R"(
Examples:
  kcload verify demo.kcb
  kcload verify demo.kcb --key release.pub --name demo --min-release 3
)";

struct Arguments {
  Manner manner;
  PolicyArguments list, verify;
  CheckArguments check;
  LoadArguments load;
};

}  // namespace

LoaderParsed parse_loader(int argc, char** argv) {
  // Shared with the command that is returned, which runs after this function has ended.
  const auto a = std::make_shared<Arguments>();
  a->manner.program = "kcload";
  CLI::App app("kcload looks into bundles of GPU kernels, checks them and loads them.", "kcload");
  app.set_version_flag("--version", util::format("kcload {}", kc_loader_version()));
  app.formatter(help_formatter());
  app.footer(footer(kMainFooter, kExitCodes));
  app.require_subcommand(1);
  add_everywhere(&app, a->manner);
  std::vector<std::pair<CLI::App*, std::function<int(Console&)>>> commands;
  const auto add = [&](const char* name, const char* text, std::function<int(Console&)> run) {
    CLI::App* sub = app.add_subcommand(name, text);
    add_everywhere(sub, a->manner);
    commands.emplace_back(sub, std::move(run));
    return sub;
  };

  CLI::App* list =
      add("list", "What is in a bundle", [a](Console& out) { return list_bundle(a->list, out); });
  add_policy(list, a->list, "May lack units");
  list->footer(footer(kListFooter, kExitCodes));
  CLI::App* verify = add("verify", "Check every byte of a bundle",
                         [a](Console& out) { return verify_bundle(a->verify, out); });
  add_policy(verify, a->verify, "May lack units");
  verify->footer(footer(kVerifyFooter, kExitCodes));
  add_check_options(add("check", kCheckText, [a](Console& out) { return check_bundle(a->check, out); }),
                    a->check, "kcload");
  add_load_options(add("load", kLoadText, [a](Console& out) { return load_bundle(a->load, out); }), a->load,
                   "kcload");

  LoaderParsed parsed;
  if (std::optional<Ending> ending = parse_line(app, argc, argv)) {
    parsed.text = std::move(ending->text);
    parsed.code = ending->code;
    return parsed;
  }
  parsed.manner = a->manner;
  for (auto& [sub, run] : commands) {
    if (sub->parsed()) parsed.command = run;
  }
  return parsed;
}

}  // namespace kc::cli
