// kc gc and the commands of kc store that look after the whole of it.
#include "cli/options_parts.h"
#include "cli/store_choice.h"

namespace kc::cli {
namespace {

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

}  // namespace

void add_store_commands(CLI::App& app, Arguments& a, Commands& commands) {
  CLI::App* gc = commands.add(app, "gc", "Make the store smaller, oldest entries first", kGcFooter,
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
  add_store(
      commands.add(*store, "stats", "Entries, bytes, hits and misses", kStoreFooter,
                   [&a](const Common& c, Console& out) { return command_store_stats(c, a.store, out); }),
      a.store, false);
  add_store(commands.add(*store, "path", "Where the store is", kStoreFooter,
                         [&a](const Common& c, Console& out) { return command_store_path(c, a.store, out); }),
            a.store, false);
  add_store(
      commands.add(*store, "verify", "Read and check every entry and record", kStoreFooter,
                   [&a](const Common& c, Console& out) { return command_store_verify(c, a.store, out); }),
      a.store, false);
  add_entry_commands(*store, a, commands);
}

}  // namespace kc::cli
