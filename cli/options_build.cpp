// kc build, plan, pack, lock and schema.
#include "base/compress.h"
#include "cli/options_parts.h"
#include "config/settings.h"

namespace kc::cli {
namespace {

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
constexpr std::string_view kLockFooter = R"(
Examples:
  kc lock                        write kc.lock beside kernels.yaml
  kc lock --check                in CI: is it up to date?
)";
constexpr std::string_view kWarmFooter = R"(
Examples:
  kc warm -f kernels.yaml --target sm_90
  kc warm --from build/demo.kcb --key release.pub
)";
constexpr std::string_view kSchemaFooter = R"(
Examples:
  kc schema > kernels.schema.json
  kc schema | jq '."$defs" | keys'
)";

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

void add_plan_options(CLI::App* app, BuildArguments& b) {
  app->add_option("UNIT", b.units, "Units, kernels or globs; all when none is named");
  app->add_option("-f,--file", b.manifest, "The manifest [kernels.yaml]")
      ->each([&b](const std::string&) { b.names_manifest = true; })
      ->type_name("FILE");
  app->add_option("--target", b.targets, "Only these targets, comma-separated")
      ->delimiter(',')
      ->allow_extra_args(false)  // what follows is a unit
      ->type_name("T");
  app->add_flag("--locked", b.locked, "The compilers must be those of kc.lock");
  app->add_option("--identity-from", b.identity_from,
                  "Where there is no compiler: that of this bundle's code")
      ->type_name("BUNDLE");
}

void add_pack_options(CLI::App* app, BuildArguments& b) {
  app->add_option("-o,--output", b.output, "The bundle; UNIT and --target pack only with it")
      ->type_name("FILE");
  checked_option(app, "--level", b.level, &parse_level, "a zstd level from 1 to 19",
                 "Compression, 1 to 19 [3]", "N");
  checked_option(app, "--frame-size", b.frame_size, &parse_frame_size, "a size from 4KiB to 64MiB",
                 "Raw bytes a frame holds at most [256KiB]", "SIZE");
  checked_option(app, "--release", b.release, &parse_count, "a number", "Release number in the bundle", "N");
  app->add_flag("--allow-partial", b.allow_partial, "Pack what there is; marks the bundle partial");
}

void add_sign_options(CLI::App* app, BuildArguments& b) {
  CLI::Option* sign = app->add_option("--sign", b.sign, "Sign the bundle with this private key");
  sign->type_name("KEY");
  add_keys(app, b.keys, "With --sign: may have signed what was imported");
  // docs/security.md tells of them; few builds need them, and the help has to fit a screen.
  for (const char* name : {"--key", "--key-dir"}) app->get_option(name)->needs(sign)->group(kUnlisted);
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

}  // namespace

void add_build_commands(CLI::App& app, Arguments& a, Commands& commands) {
  commands.add(
      app, "build", "Compile what is missing and pack the bundle", kBuildFooter,
      [&a](CLI::App* build) {
        add_plan_options(build, a.build);
        add_pack_options(build, a.build);
        add_sign_options(build, a.build);
        add_build_options(build, a.build);
        add_store(build, a.build.store, true);
      },
      [&a](const Common& c, Console& out) { return command_build(c, a.build, out); });
  commands.add(
      app, "plan", "The units, their keys, hit or miss; compiles nothing", kPlanFooter,
      [&a](CLI::App* plan) {
        add_plan_options(plan, a.build);
        plan->add_flag("--summary", a.build.summary, "One line a kernel instead of one a unit");
        add_store(plan, a.build.store, false);
      },
      [&a](const Common& c, Console& out) { return command_plan(c, a.build, out); });
  commands.add(
      app, "pack", "Pack what the store holds; compiles nothing", kPackFooter,
      [&a](CLI::App* pack) {
        add_plan_options(pack, a.build);
        add_pack_options(pack, a.build);
        add_sign_options(pack, a.build);
        add_store(pack, a.build.store, false);
      },
      [&a](const Common& c, Console& out) { return command_pack(c, a.build, out); });
  commands.add(
      app, "warm", "Fill the store, pack nothing", kWarmFooter,
      [&a](CLI::App* warm) {
        add_plan_options(warm, a.build);
        add_build_options(warm, a.build);
        warm->add_option("--from", a.build.from, "Take what this bundle has; needs no compiler")
            ->type_name("BUNDLE");
        add_import_keys(warm, a.build.keys);
        add_store(warm, a.build.store, true);
      },
      [&a](const Common& c, Console& out) { return command_warm(c, a.build, out); });
  commands.add(
      app, "lock", "Write which compilers are used into kc.lock", kLockFooter,
      [&a](CLI::App* lock) {
        lock->add_option("-f,--file", a.lock.manifest, "The manifest [kernels.yaml]")->type_name("FILE");
        lock->add_flag("--check", a.lock.check, "Write nothing; exit 1 when it is not up to date");
      },
      [&a](const Common& c, Console& out) { return command_lock(c, a.lock, out); });
  commands.add(
      app, "schema", "The JSON schema of manifests, for editors", kSchemaFooter, [](CLI::App*) {},
      [](const Common& c, Console& out) { return command_schema(c, out); });
}

}  // namespace kc::cli
