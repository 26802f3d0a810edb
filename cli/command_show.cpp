// kc show: what is in a bundle.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bundle/bundle.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/table.h"
#include "manifest/plan.h"
#include "report/bundle_json.h"
#include "report/unit_filter.h"
#include "util/text.h"

namespace kc::cli {
namespace {

using base::Result;
using bundle::Reader;
using bundle::Record;

// Everything about the bundle as a whole. The parts are read first, so that a damaged one shows before any
// output.
struct Summary {
  report::Pairs metadata;
  std::vector<Reader::SignatureBlock> signatures;
};

Result<Summary> summary_of(Reader& reader) {
  Summary out;
  KC_ASSIGN(out.metadata, reader.metadata());
  KC_ASSIGN(out.signatures, reader.signature_blocks());
  return out;
}

void print_bundle(const Reader& reader, const Summary& summary, Console& console) {
  const bundle::Info& info = reader.info();
  const size_t width = console.width();
  const std::string path = util::escape(reader.path()) + ":";
  std::string text =
      util::format("{} {}, release {}, {} in {}, {}", width == 0 ? path : elide(path, width),
                   util::escape(info.name), info.release, util::counted(reader.record_count(), "unit"),
                   util::counted(reader.frame_count(), "frame"), util::size_text(reader.file_size()));
  if (info.partial) text += ", partial: units of the plan are missing";
  if (info.subset) text += ", subset: made of a narrowed plan";
  if (!summary.signatures.empty()) text += ", " + util::counted(summary.signatures.size(), "signature block");
  for (const std::string& line : wrap({}, text, width, 2)) {
    console.result(console.styled(Console::Style::kBold, line));
  }
  if (console.verbosity() <= 0) return;
  console.result(util::format("header digest {}", reader.header_digest().hex()));
  for (const auto& [name, value] : summary.metadata) {
    console.result(util::format("{} {}", util::escape(name), util::escape(value)));
  }
}

enum : size_t { kUnit, kTarget, kRegisters, kLocal, kSpills, kShared, kCode };

// On a narrow terminal the name and the target, which tell units apart, stay longest; of the numbers those
// that say least about speed go first.
Table make_table() {
  constexpr size_t kLeastName = 16;
  return Table({{.title = "UNIT"},
                {.title = "TARGET", .rank = 1},
                {.title = "REGS", .is_right = true, .rank = 2},
                {.title = "LOCAL", .is_right = true, .rank = 4},
                {.title = "SPILLS", .is_right = true, .rank = 3},
                {.title = "SHARED", .is_right = true, .rank = 6},
                {.title = "CODE", .is_right = true, .rank = 5}},
               kLeastName);
}

Table::Row row_of(const Record& record) {
  std::string name = record.kernel;
  if (!record.specialization.empty()) name += ":" + record.specialization;
  if (record.is_default) name += " (default)";
  // What the code was found to be for is told where it is not what was asked for.
  std::string target = record.target;
  if (record.found_target != record.target) target += " (" + record.found_target + ")";
  return {util::escape(name),
          util::escape(target),
          std::to_string(record.facts.registers),
          std::to_string(record.facts.local_memory),
          record.facts.spills ? std::to_string(*record.facts.spills) : "-",
          std::to_string(record.facts.shared_memory),
          std::to_string(record.artifact_size)};
}

std::string driver_text(uint32_t driver) {
  return driver == 0 ? std::string("not known") : util::format("{} or newer", driver);
}

std::string block_text(const artifact::KernelFacts& facts) {
  const std::array<uint32_t, 3>& block = facts.required_block;
  std::string out = block == std::array<uint32_t, 3>{}
                        ? std::string("any")
                        : util::format("{}x{}x{}", block[0], block[1], block[2]);
  if (facts.max_threads != 0) out += util::format(", at most {} threads", facts.max_threads);
  if (facts.wave_size != 0) out += util::format(", wave size {}", facts.wave_size);
  return out;
}

std::string arguments_text(const artifact::KernelFacts& facts) {
  std::string out = util::format("{} in {} B", facts.arguments.size(), facts.argument_bytes);
  std::string_view separator = ": ";
  for (const artifact::Argument& argument : facts.arguments) {
    out += util::format("{}{} B at {}", separator, argument.size, argument.offset);
    separator = ", ";
  }
  return out;
}

// Selection data, a line for each row of the table that it came from; as it stands when it cannot be read.
std::vector<std::string> selection_text(std::string_view text) {
  if (text.empty()) return {};
  std::vector<std::string> out;
  for (const std::string& part : util::split(text, ';')) {
    const auto pairs = report::parse_configuration(part);
    if (!pairs) return {std::string(text)};
    std::vector<std::string> words;
    for (const auto& [name, value] : *pairs) words.push_back(util::format("{}={}", name, value));
    out.push_back(words.empty() ? "anything" : util::join(words, ", "));
  }
  return out;
}

// What -v tells beyond the table.
void print_details(const Record& record, Console& console) {
  const auto say = [&](std::string_view label, std::string_view text) {
    // A digest still fits 80 columns behind it.
    const std::string head = util::format("    {:<10}", label);
    for (const std::string& line : wrap(head, util::escape(text), console.width(), head.size())) {
      console.result(line);
    }
  };
  say("unit", record.unit());
  say("entry", record.entry);
  say("symbol", record.symbol);
  say("backend", record.backend);
  say("compiler", util::format("{} {}", record.compiler, record.compiler_version));
  say("identity", record.compiler_identity.hex());
  say("toolkit", record.toolkit.empty() ? "not known" : record.toolkit);
  say("driver", driver_text(record.lowest_driver));
  say("key", record.content_key.hex());
  say("digest", record.artifact_digest.hex());
  say("place", util::format("frame {}, offset {}", record.frame, record.frame_offset));
  say("arguments", arguments_text(record.facts));
  say("block", block_text(record.facts));
  if (const auto& scalar = record.facts.scalar_registers) say("scalar", util::counted(*scalar, "register"));
  for (const std::string& row : selection_text(report::selection_of(record))) say("when", row);
  for (const auto& [name, value] : record.metadata) {
    if (name != manifest::kSelectionName) say("metadata", util::format("{}: {}", name, value));
  }
}

// Goes over the chosen records until `visit` gives false.
template <typename Visit>
Result<void> each_record(Reader& reader, const std::vector<std::string>& patterns, Visit&& visit) {
  for (uint32_t i = 0; i < reader.record_count(); ++i) {
    KC_ASSIGN(const Record record, reader.record(i));
    if (report::is_named(record, patterns) && !visit(record)) break;
  }
  return {};
}

Result<void> show(const BundleArguments& arguments, Console& console) {
  KC_ASSIGN(Reader reader, Reader::open(arguments.bundle));
  KC_ASSIGN(const Summary summary, summary_of(reader));
  Reader* const bundles[] = {&reader};
  KC_TRY(report::check_patterns(arguments.units, bundles));
  // Records are read twice instead of kept: the first pass measures, and finds damage before any output.
  Table table = make_table();
  uint64_t count = 0;
  bool has_spills = false;
  KC_TRY(each_record(reader, arguments.units, [&](const Record& record) {
    ++count;
    has_spills = has_spills || record.facts.spills.has_value();
    if (!console.is_json()) table.measure(row_of(record));
    return true;
  }));
  if (console.is_json()) {
    console.json(report::bundle_json(reader, summary.metadata, summary.signatures));
    return each_record(reader, arguments.units,
                       [&](const Record& record) { return console.json(report::record_json(record)); });
  }
  print_bundle(reader, summary, console);
  if (count == 0) return {};
  if (!has_spills) table.hide(kSpills);
  table.fit(console.width());
  console.result(console.styled(Console::Style::kDim, table.head()));
  return each_record(reader, arguments.units, [&](const Record& record) {
    const bool is_told = console.result(table.line(row_of(record)));
    if (console.verbosity() > 0) print_details(record, console);
    return is_told;
  });
}

}  // namespace

int command_show(const Common&, const BundleArguments& arguments, Console& console) {
  const Result<void> result = show(arguments, console);
  return result ? 0 : console.fail(result.error());
}

}  // namespace kc::cli
