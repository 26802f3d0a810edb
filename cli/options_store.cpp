// kc gc and the commands of kc store that look after the whole of it.
#include "cli/options_parts.h"
#include "cli/store_choice.h"

namespace kc::cli {
namespace {

constexpr std::string_view kGcFooter = R"(
Examples:
  kc gc --max-size 2GiB
  kc gc --max-age 30d --dry-run
  kc gc --only-keep --keep kernels.yaml --keep release.kcb
What is pinned (`kc store pin`) or needed by a --keep survives any limit.
)";
constexpr std::string_view kVerifyFooter = R"(
Examples:
  kc store verify --store /var/cache/kc
  kc store verify --repair       what is damaged is compiled again when needed
)";
constexpr std::string_view kPinFooter = R"(
Examples:
  kc store pin release-1 -f release-1.kcb
  kc store pin nightly -f kernels.yaml --target sm_90
The pin is of the keys as they are now: pin again when the manifest changes.
)";
constexpr std::string_view kUnpinFooter = R"(
Examples:
  kc store unpin release-1
  kc store unpin nightly --store /var/cache/kc
)";
constexpr std::string_view kPinsFooter = R"(
Examples:
  kc store pins
  kc store pins --format=json
)";
constexpr std::string_view kStoreFooter = R"(
Examples:
  kc store stats
  kc store verify --store /var/cache/kc
)";

constexpr std::string_view kDoctorFooter = R"(
Examples:
  kc doctor
  kc doctor --format=json
Exit code 3 when kc cannot work here: its engine does not start, or the store cannot be
used. A machine without compilers or GPUs is none of that.
)";

// For commands that take no more than which store.
Commands::Define store_alone(Arguments& a) {
  return [&a](CLI::App* app) { add_store(app, a.store, false); };
}

void add_pin_commands(CLI::App& store, Arguments& a, Commands& commands) {
  commands.add(
      store, "pin", "Keep what a manifest or bundle needs, whatever is collected", kPinFooter,
      [&a](CLI::App* pin) {
        pin->add_option("NAME", a.pin.name, "The pin's name; one of this name is replaced")->required();
        pin->add_option("-f,--file", a.pin.file, "The manifest or bundle [kernels.yaml]")->type_name("FILE");
        pin->add_option("--target", a.pin.targets, "Only these targets of a manifest")
            ->delimiter(',')
            ->allow_extra_args(false)
            ->type_name("T");
        add_store(pin, a.pin.store, false);
      },
      [&a](const Common& c, Console& out) { return command_store_pin(c, a.pin, out); });
  commands.add(
      store, "unpin", "Remove a pin, not what it kept", kUnpinFooter,
      [&a](CLI::App* unpin) {
        unpin->add_option("NAME", a.pin.name, "The pin's name")->required();
        add_store(unpin, a.pin.store, false);
      },
      [&a](const Common& c, Console& out) { return command_store_unpin(c, a.pin, out); });
  commands.add(store, "pins", "What is pinned, and how much of it is there", kPinsFooter, store_alone(a),
               [&a](const Common& c, Console& out) { return command_store_pins(c, a.store, out); });
}

void add_commands_of_store(CLI::App& store, Arguments& a, Commands& commands) {
  commands.add(store, "stats", "Entries, bytes, hits and misses", kStoreFooter, store_alone(a),
               [&a](const Common& c, Console& out) { return command_store_stats(c, a.store, out); });
  commands.add(store, "path", "Where the store is", kStoreFooter, store_alone(a),
               [&a](const Common& c, Console& out) { return command_store_path(c, a.store, out); });
  commands.add(
      store, "verify", "Read and check every entry, record and pin", kVerifyFooter,
      [&a](CLI::App* verify) {
        verify->add_flag("--repair", a.store_verify.repair, "Move what is damaged aside");
        add_store(verify, a.store_verify.store, false);
      },
      [&a](const Common& c, Console& out) { return command_store_verify(c, a.store_verify, out); });
  add_pin_commands(store, a, commands);
  add_entry_commands(store, a, commands);
}

}  // namespace

void add_store_commands(CLI::App& app, Arguments& a, Commands& commands) {
  commands.add(
      app, "gc", "Make the store smaller, oldest entries first", kGcFooter,
      [&a](CLI::App* gc) {
        checked_option(gc, "--max-size", a.gc.max_size, &util::parse_size, "a size such as 2GiB",
                       "Down to this size [5GiB, without age and --only-keep]", "SIZE");
        checked_option(gc, "--max-age", a.gc.max_age, &util::parse_duration, "a duration such as 30d",
                       "Remove what was not used for this long", "D");
        gc->add_option("--keep", a.gc.keep, "What this manifest or bundle needs stays; several times")
            ->allow_extra_args(false)
            ->type_name("FILE");
        gc->add_flag("--only-keep", a.gc.only_keep, "All that is neither kept nor pinned goes");
        gc->add_flag("-n,--dry-run", a.gc.dry_run, "Only say what would go");
        add_store(gc, a.gc.store, false);
      },
      [&a](const Common& c, Console& out) { return command_gc(c, a.gc, out); });
  commands.add(app, "doctor", "Compilers, store, limits, drivers and GPUs that kc finds here", kDoctorFooter,
               store_alone(a),
               [&a](const Common& c, Console& out) { return command_doctor(c, a.store, out); });
  commands.add_family(app, "store", "stats, verify, pin and more: look after the store", kStoreFooter,
                      [&a, &commands](CLI::App* store) { add_commands_of_store(*store, a, commands); });
}

}  // namespace kc::cli
