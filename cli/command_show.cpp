// kc show: what is in a bundle.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bundle/bundle.h"
#include "cli/command.h"
#include "cli/console.h"
#include "report/json_lines.h"
#include "util/text.h"

namespace kc::cli {
namespace {

using bundle::Record;
using util::Json;

// A value of a canonical specialization, `%XX` decoded. The reader has checked the grammar.
std::string decoded(std::string_view value) {
  std::string out;
  for (size_t i = 0; i < value.size(); ++i) {
    if (value[i] != '%') {
      out += value[i];
      continue;
    }
    const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'A' + 10; };
    out += static_cast<char>(digit(value[i + 1]) * 16 + digit(value[i + 2]));
    i += 2;
  }
  return out;
}

Json config_json(const std::string& specialization) {
  Json out = Json::object();
  if (specialization.empty()) return out;
  for (const std::string& part : util::split(specialization, ',')) {
    const size_t equals = part.find('=');
    out[part.substr(0, equals)] = decoded(std::string_view(part).substr(equals + 1));
  }
  return out;
}

Json pairs_json(const std::vector<std::pair<std::string, std::string>>& pairs) {
  Json out = Json::object();
  for (const auto& [name, value] : pairs) out[name] = value;
  return out;
}

Json record_json(const Record& record) {
  return {{"event", "record"},
          {"unit", record.unit()},
          {"kernel", record.kernel},
          {"specialization", record.specialization},
          {"config", config_json(record.specialization)},
          {"default", record.is_default},
          {"target", record.target},
          {"found_target", record.found_target},
          {"backend", record.backend},
          {"entry", record.entry},
          {"symbol", record.symbol},
          {"compiler", record.compiler},
          {"compiler_version", record.compiler_version},
          {"compiler_identity", record.compiler_identity.hex()},
          {"toolkit", record.toolkit},
          {"lowest_driver", record.lowest_driver == 0 ? Json(nullptr) : Json(record.lowest_driver)},
          {"key", record.content_key.hex()},
          {"code_digest", record.artifact_digest.hex()},
          {"code_bytes", record.artifact_size},
          {"frame", record.frame},
          {"frame_offset", record.frame_offset},
          {"facts", report::facts_json(record.facts)},
          {"metadata", pairs_json(record.metadata)}};
}

// Everything about the bundle as a whole. The parts are read first, so that a damaged one shows before any
// output.
struct Summary {
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<bundle::Reader::SignatureBlock> signatures;
};

base::Result<Summary> summary_of(bundle::Reader& reader) {
  Summary out;
  KC_ASSIGN(out.metadata, reader.metadata());
  KC_ASSIGN(out.signatures, reader.signature_blocks());
  return out;
}

Json bundle_json(const std::string& path, const bundle::Reader& reader, const Summary& summary) {
  Json signatures = Json::array();
  for (const bundle::Reader::SignatureBlock& block : summary.signatures) {
    signatures.push_back({{"type", block.type}, {"offset", block.offset}, {"bytes", block.payload_size}});
  }
  const bundle::Info& info = reader.info();
  return {{"event", "bundle"},
          {"path", path},
          {"name", info.name},
          {"release", info.release},
          {"partial", info.partial},
          {"subset", info.subset},
          {"bytes", reader.file_size()},
          {"records", reader.record_count()},
          {"frames", reader.frame_count()},
          {"header_digest", reader.header_digest().hex()},
          {"metadata", pairs_json(summary.metadata)},
          {"signatures", std::move(signatures)}};
}

void print_bundle(const std::string& path, const bundle::Reader& reader, const Summary& summary,
                  Console& console) {
  const bundle::Info& info = reader.info();
  std::string line =
      util::format("{}: {}, release {}, {} in {}, {}", util::escape(path), util::escape(info.name),
                   info.release, util::counted(reader.record_count(), "unit"),
                   util::counted(reader.frame_count(), "frame"), util::size_text(reader.file_size()));
  if (info.partial) line += ", partial: units of the plan are missing";
  if (info.subset) line += ", subset: made of a narrowed plan";
  if (!summary.signatures.empty()) line += ", " + util::counted(summary.signatures.size(), "signature block");
  console.result(console.styled(Console::Style::kBold, line));
  if (console.verbosity() <= 0) return;
  console.result(util::format("header digest {}", reader.header_digest().hex()));
  for (const auto& [name, value] : summary.metadata) {
    console.result(util::format("{} {}", util::escape(name), util::escape(value)));
  }
}

// A table whose columns are as wide as their widest cell, but for the first, which is cut in the middle when
// a row would not fit the terminal.
class Table {
 public:
  static constexpr size_t kColumns = 6;
  using Row = std::array<std::string, kColumns>;

  void add(Row row) { rows_.push_back(std::move(row)); }

  void print(Console& console) const {
    std::array<size_t, kColumns> widths{};
    for (const Row& row : rows_) {
      for (size_t c = 0; c < kColumns; ++c) widths[c] = std::max(widths[c], row[c].size());
    }
    size_t others = 0;
    for (size_t c = 1; c < kColumns; ++c) others += 2 + widths[c];
    if (console.width() != 0 && widths[0] + others > console.width()) {
      widths[0] = std::max(kLeastName, console.width() - std::min<size_t>(others, console.width()));
    }
    for (const Row& row : rows_) {
      std::string line = util::format("{:<{}}  {:<{}}", cut(row[0], widths[0]), widths[0], row[1], widths[1]);
      for (size_t c = 2; c < kColumns; ++c) line += util::format("  {:>{}}", row[c], widths[c]);
      const bool is_head = &row == &rows_.front();
      if (!console.result(is_head ? console.styled(Console::Style::kDim, line) : line)) return;
    }
  }

 private:
  static constexpr size_t kLeastName = 16;

  static std::string cut(const std::string& text, size_t width) {
    if (text.size() <= width) return text;
    const size_t head = (width - 2) / 2;
    return text.substr(0, head) + ".." + text.substr(text.size() - (width - 2 - head));
  }

  std::vector<Row> rows_;
};

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
          std::to_string(record.facts.shared_memory),
          std::to_string(record.artifact_size)};
}

bool matches(const Record& record, const std::string& pattern) {
  return pattern == record.kernel || pattern == record.unit() || util::glob_match(pattern, record.unit()) ||
         util::glob_match(pattern, record.kernel);
}

// Which records the patterns choose; each pattern must choose one.
base::Result<std::vector<uint32_t>> choose(bundle::Reader& reader, const std::vector<std::string>& patterns) {
  std::vector<uint32_t> chosen;
  std::vector<bool> used(patterns.size());
  std::vector<std::string> names;
  for (uint32_t i = 0; i < reader.record_count(); ++i) {
    if (patterns.empty()) {
      chosen.push_back(i);
      continue;
    }
    KC_ASSIGN(const Record record, reader.record(i));
    bool any = false;
    for (size_t p = 0; p < patterns.size(); ++p) {
      if (!matches(record, patterns[p])) continue;
      used[p] = any = true;
    }
    if (any) chosen.push_back(i);
    if (names.empty() || names.back() != record.kernel) names.push_back(record.kernel);
  }
  for (size_t p = 0; p < patterns.size(); ++p) {
    if (used[p]) continue;
    return base::fail(
        base::ErrorKind::kInput,
        util::format("no unit or kernel in the bundle is named \"{}\"", util::escape(patterns[p])),
        util::did_you_mean(patterns[p], names));
  }
  return chosen;
}

base::Result<void> show(const BundleArguments& arguments, Console& console) {
  KC_ASSIGN(bundle::Reader reader, bundle::Reader::open(arguments.bundle));
  KC_ASSIGN(const Summary summary, summary_of(reader));
  KC_ASSIGN(const std::vector<uint32_t> chosen, choose(reader, arguments.units));
  if (console.is_json()) {
    console.json(bundle_json(arguments.bundle, reader, summary));
    for (const uint32_t i : chosen) {
      KC_ASSIGN(const Record record, reader.record(i));
      if (!console.json(record_json(record))) break;
    }
    return {};
  }
  print_bundle(arguments.bundle, reader, summary, console);
  if (chosen.empty()) return {};
  Table table;
  table.add({"UNIT", "TARGET", "REGS", "LOCAL", "SHARED", "CODE"});
  for (const uint32_t i : chosen) {
    KC_ASSIGN(const Record record, reader.record(i));
    table.add(row_of(record));
  }
  table.print(console);
  return {};
}

}  // namespace

int command_show(const Common&, const BundleArguments& arguments, Console& console) {
  const base::Result<void> result = show(arguments, console);
  return result ? 0 : console.fail(result.error());
}

}  // namespace kc::cli
