// The commands of kc store that look at single entries and move them.
#include <map>
#include <string>

#include "cli/options_parts.h"

namespace kc::cli {
namespace {

constexpr std::string_view kListFooter = R"(
Examples:
  kc store ls --sort=size
  kc store ls 'matmul*' --format=json
)";
constexpr std::string_view kShowFooter = R"(
Examples:
  kc store show 3fa94c2b71d0
  kc store show matmul:TM=64,TN=128@sm_90
)";
constexpr std::string_view kRemoveFooter = R"(
Examples:
  kc store rm 3fa94c2b71d0
  kc store rm --dry-run 'matmul*'
)";

constexpr std::string_view kExportFooter = R"(
Examples:
  kc store export store.kca --sign release.key
  kc store export demo.kca -f kernels.yaml --target sm_90
)";
constexpr std::string_view kImportFooter = R"(
Examples:
  kc store import store.kca --key release.pub
  kc store import mine.kca --trust-unsigned
)";

const std::map<std::string, EntrySort> kSorts = {{"kernel", EntrySort::kKernel},
                                                 {"age", EntrySort::kAge},
                                                 {"size", EntrySort::kSize},
                                                 {"seconds", EntrySort::kSeconds}};

void add_listing_commands(CLI::App& store, Arguments& a, Commands& commands) {
  commands.add(
      store, "ls", "The entries of the store", kListFooter,
      [&a](CLI::App* ls) {
        ls->add_option("GLOB", a.list.names, "Units, kernels or globs; all when none is named");
        ls->add_option_function<std::string>(
              "--sort", [&a](const std::string& text) { a.list.sort = kSorts.at(text); },
              "kernel; age, size or seconds: most first [kernel]")
            ->check(CLI::IsMember({"kernel", "age", "size", "seconds"}))
            ->type_name("BY");
        add_store(ls, a.list.store, false);
      },
      [&a](const Common& c, Console& out) { return command_store_ls(c, a.list, out); });
  commands.add(
      store, "show", "All that is known of an entry or a record", kShowFooter,
      [&a](CLI::App* show) {
        show->add_option("KEY", a.stored.names, "Keys (6 digits or more), units, kernels or globs")
            ->required();
        add_store(show, a.stored.store, false);
      },
      [&a](const Common& c, Console& out) { return command_store_show(c, a.stored, out); });
  commands.add(
      store, "rm", "Remove entries, and the records that lead to them", kRemoveFooter,
      [&a](CLI::App* rm) {
        rm->add_option("KEY", a.remove.names, "Keys (6 digits or more), units, kernels or globs")->required();
        rm->add_flag("-n,--dry-run", a.remove.dry_run, "Only say what would go");
        rm->add_flag("--force", a.remove.force, "Also what a pin keeps");
        add_store(rm, a.remove.store, false);
      },
      [&a](const Common& c, Console& out) { return command_store_rm(c, a.remove, out); });
}

void add_archive_commands(CLI::App& store, Arguments& a, Commands& commands) {
  commands.add(
      store, "export", "Write entries and records into one archive", kExportFooter,
      [&e = a.export_to](CLI::App* out) {
        out->add_option("ARCHIVE", e.archive, "The .kca file to write")->required();
        out->add_option("UNIT", e.build.units, "With -f: units, kernels or globs");
        out->add_option("-f,--file", e.manifest, "Only what this manifest needs")->type_name("FILE");
        out->add_option("--target", e.build.targets, "With -f: only these targets, comma-separated")
            ->delimiter(',')
            ->allow_extra_args(false)  // what follows is a unit
            ->type_name("T");
        out->add_flag("--allow-partial", e.build.allow_partial, "With -f: leave out what the store has not");
        out->add_option("--identity-from", e.build.identity_from,
                        "With -f: a bundle that names missing compilers")
            ->type_name("BUNDLE");
        out->add_option("--sign", e.build.sign, "Sign with this private key")->type_name("KEY");
        add_store(out, e.build.store, false);
      },
      [&a](const Common& c, Console& to) { return command_store_export(c, a.export_to, to); });
  commands.add(
      store, "import", "Put what is in an archive into the store", kImportFooter,
      [&a](CLI::App* in) {
        in->add_option("ARCHIVE", a.import_from.archive, "The .kca file")->required();
        add_import_keys(in, a.import_from.keys);
        add_store(in, a.import_from.store, false);
      },
      [&a](const Common& c, Console& to) { return command_store_import(c, a.import_from, to); });
}

}  // namespace

void add_entry_commands(CLI::App& store, Arguments& a, Commands& commands) {
  add_listing_commands(store, a, commands);
  add_archive_commands(store, a, commands);
}

}  // namespace kc::cli
