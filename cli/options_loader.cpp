// kc check and kc load, which kcload has too.
#include <limits>
#include <string>

#include "cli/options_frame.h"

namespace kc::cli {
namespace {

constexpr std::string_view kExitCodes = R"(
Exit codes: 0 done; 1 not all is covered, or loads, or the bundle is damaged or not
what was demanded; 2 usage or input; 3 no device or driver; 4 a fault of PROGRAM;
128+n ended by signal n.
)";

// An architecture counts as covered by rule where a driver may still refuse.
constexpr std::string_view kCheckFooter = R"(
Cells: exact; by rule: should run there, but a driver may refuse it; driver too old;
no; 2 of 3: that many of the kernel's configurations have code. No GPU is asked.

Examples:
  PROGRAM check build/demo.kcb --device sm_90,gfx1151
  PROGRAM check build/demo.kcb --device sm_121 --driver 580 --key release.pub
)";
constexpr std::string_view kLoadFooter = R"(
Without --device: all GPUs. A kernel that has code for the maker of a GPU must load
on it in one configuration at least, and no driver may refuse one.

Examples:
  PROGRAM load build/demo.kcb
  PROGRAM load build/demo.kcb --device cuda:0 --device hip --format=json
)";

// The texts say PROGRAM where its name belongs.
std::string with_program(std::string_view text, std::string_view program) {
  constexpr std::string_view kPlace = "PROGRAM";
  std::string out(text);
  for (size_t at = 0; (at = out.find(kPlace, at)) != std::string::npos; at += program.size()) {
    out.replace(at, kPlace.size(), program);
  }
  return out;
}

std::optional<uint32_t> parse_branch(std::string_view text) {
  const auto number = util::parse_number(text, 1, std::numeric_limits<uint32_t>::max());
  return number ? std::optional(static_cast<uint32_t>(*number)) : std::nullopt;
}

void add_footer(CLI::App* app, std::string_view examples, std::string_view program) {
  app->footer(footer(with_program(examples, program), with_program(kExitCodes, program)));
}

}  // namespace

void add_check_options(CLI::App* app, CheckArguments& check, std::string_view program) {
  add_policy(app, check.policy, "May lack units");
  app->add_option("--device", check.devices, "Architectures, comma-separated; repeatable")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->required()
      ->type_name("ARCH");
  checked_option(app, "--driver", check.driver, &parse_branch, "a driver branch such as 580",
                 "Only code that this branch of NVIDIA's driver takes", "N");
  add_footer(app, kCheckFooter, program);
}

void add_load_options(CLI::App* app, LoadArguments& load, std::string_view program) {
  add_policy(app, load.policy, "May lack units");
  app->add_option("--device", load.devices, "cuda:N, hip:N, cuda or hip; repeatable")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("DEVICE");
  add_footer(app, kLoadFooter, program);
}

}  // namespace kc::cli
