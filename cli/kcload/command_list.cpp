// kcload list: what is in a bundle.
#include <cstdint>
#include <kc/loader.hpp>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/kcload/commands.h"
#include "cli/loader_policy.h"
#include "cli/table.h"
#include "util/text.h"

namespace kc::cli {
namespace {

using base::Result;

constexpr size_t kLeastName = 20;

Table make_table() {
  return Table({{.title = "KERNEL"},
                {.title = "TARGET", .rank = 1},
                {.title = "REGS", .is_right = true, .rank = 2},
                {.title = "LOCAL", .is_right = true, .rank = 3},
                {.title = "SHARED", .is_right = true, .rank = 5},
                {.title = "CODE", .is_right = true, .rank = 4}},
               kLeastName);
}

Table::Row row_of(const kc_entry_info& info) {
  std::string name = info.kernel;
  if (*info.configuration != '\0') name += util::format(":{}", info.configuration);
  if (info.is_default != 0) name += " (default)";
  std::string target = info.target;
  if (target != info.found_target) target += util::format(" ({})", info.found_target);
  return {util::escape(name),
          util::escape(target),
          std::to_string(info.registers),
          std::to_string(info.local_memory),
          std::to_string(info.shared_memory),
          std::to_string(info.code_size)};
}

std::string hex(const uint8_t* bytes, size_t size) {
  std::string out;
  for (size_t i = 0; i < size; ++i) out += util::format("{:02x}", bytes[i]);
  return out;
}

util::Json known(uint32_t number) {
  return number == KC_UNKNOWN ? util::Json() : util::Json(number);
}

util::Json entry_json(const kc_entry_info& info) {
  util::Json arguments = util::Json::array();
  for (size_t i = 0; i < info.argument_count; ++i) {
    arguments.push_back({{"offset", info.arguments[i].offset}, {"size", info.arguments[i].size}});
  }
  util::Json metadata = util::Json::object();
  for (size_t i = 0; i < info.metadata_count; ++i) {
    const kc_metadata& one = info.metadata[i];
    metadata[one.name] = std::string(one.value, one.value_size);
  }
  return {{"event", "entry"},
          {"unit", info.unit},
          {"kernel", info.kernel},
          {"configuration", info.configuration},
          {"target", info.target},
          {"found_target", info.found_target},
          {"backend", info.backend},
          {"entry", info.entry},
          {"symbol", info.symbol},
          {"is_default", info.is_default != 0},
          {"compiler", info.compiler},
          {"compiler_version", info.compiler_version},
          {"toolkit", info.toolkit},
          {"lowest_driver", info.lowest_driver},
          {"content_key", hex(info.content_key, sizeof info.content_key)},
          {"code_digest", hex(info.code_digest, sizeof info.code_digest)},
          {"code_bytes", info.code_size},
          {"registers", info.registers},
          {"scalar_registers", known(info.scalar_registers)},
          {"spills", known(info.spills)},
          {"local_memory", info.local_memory},
          {"shared_memory", info.shared_memory},
          {"argument_bytes", info.argument_bytes},
          {"arguments", arguments},
          {"required_block", {info.required_block[0], info.required_block[1], info.required_block[2]}},
          {"max_threads", info.max_threads},
          {"wave_size", info.wave_size},
          {"metadata", metadata},
          {"when", info.when == nullptr ? util::Json() : util::Json(info.when)}};
}

// Goes over the entries until `visit` gives false.
template <typename Visit>
Result<void> each_entry(const kcload::Bundle& bundle, Visit&& visit) {
  kcload::Error error;
  for (size_t i = 0; i < bundle.entry_count(); ++i) {
    const kcload::Entry entry = bundle.entry(i, error);
    if (error) return std::unexpected(error_of(error, bundle.file().path));
    if (!visit(entry.info())) break;
  }
  return {};
}

Result<void> list(const PolicyArguments& arguments, Console& console) {
  KC_ASSIGN(const kcload::Bundle bundle, open_bundle(arguments));
  const kc_file_info& file = bundle.file();
  if (console.is_json()) {
    console.json({{"event", "bundle"},
                  {"path", file.path},
                  {"name", file.name},
                  {"release", file.release},
                  {"partial", file.partial != 0},
                  {"subset", file.subset != 0},
                  {"entries", file.entry_count}});
    return each_entry(bundle, [&](const kc_entry_info& info) { return console.json(entry_json(info)); });
  }
  // Entries are read twice instead of kept: the first pass measures, and finds damage before any output.
  Table table = make_table();
  KC_TRY(each_entry(bundle, [&](const kc_entry_info& info) {
    table.measure(row_of(info));
    return true;
  }));
  console.result(util::format("{}: {}, release {}, {}{}{}", util::escape(file.path), util::escape(file.name),
                              file.release, util::counted(file.entry_count, "unit"),
                              file.partial != 0 ? ", partial" : "", file.subset != 0 ? ", subset" : ""));
  if (file.entry_count == 0) return {};
  table.fit(console.width());
  console.result(console.styled(Console::Style::kDim, table.head()));
  return each_entry(bundle,
                    [&](const kc_entry_info& info) { return console.result(table.line(row_of(info))); });
}

}  // namespace

int list_bundle(const PolicyArguments& arguments, Console& console) {
  const Result<void> result = list(arguments, console);
  return result ? 0 : console.fail(result.error());
}

}  // namespace kc::cli
