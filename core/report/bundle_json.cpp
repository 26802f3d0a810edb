#include "report/bundle_json.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "bundle/grammar.h"
#include "manifest/plan.h"
#include "report/json_lines.h"
#include "util/text.h"

namespace kc::report {
namespace {

using bundle::Reader;
using bundle::Record;
using util::Json;

std::optional<std::string> decoded(std::string_view value) {
  std::string out;
  for (size_t i = 0; i < value.size(); ++i) {
    if (value[i] != '%') {
      out += value[i];
      continue;
    }
    const std::optional<char> byte = bundle::escaped_byte(value.substr(i));
    if (!byte) return std::nullopt;
    out += *byte;
    i += 2;
  }
  return out;
}

bool has_name_twice(const Pairs& pairs) {
  std::vector<std::string_view> names;
  names.reserve(pairs.size());
  for (const auto& [name, value] : pairs) names.push_back(name);
  std::sort(names.begin(), names.end());
  return std::adjacent_find(names.begin(), names.end()) != names.end();
}

Json driver_json(uint32_t driver) {
  return driver == 0 ? Json(nullptr) : Json(driver);
}

Json whole_json(const Reader& reader) {
  const bundle::Info& info = reader.info();
  return {{"path", reader.path()},
          {"name", info.name},
          {"release", info.release},
          {"partial", info.partial},
          {"subset", info.subset},
          {"bytes", reader.file_size()},
          {"records", reader.record_count()},
          {"header_digest", reader.header_digest().hex()}};
}

Json side_json(const std::optional<Record>& record) {
  if (!record) return nullptr;
  const artifact::Numbers numbers = artifact::numbers_of(record->facts, record->artifact_size);
  Json out = Json::object();
  for (const artifact::Metric metric : artifact::kMetrics) {
    const std::optional<uint64_t> number = numbers.of(metric);
    out[std::string(artifact::metric_name(metric))] = number ? Json(*number) : Json(nullptr);
  }
  const Json facts = facts_json(record->facts);
  for (const char* name :
       {"scalar_registers", "argument_bytes", "arguments", "required_block", "max_threads", "wave_size"}) {
    out[name] = facts[name];
  }
  out["code_digest"] = record->artifact_digest.hex();
  out["key"] = record->content_key.hex();
  out["found_target"] = record->found_target;
  out["symbol"] = record->symbol;
  out["default"] = record->is_default;
  out["lowest_driver"] = driver_json(record->lowest_driver);
  out["compiler"] = record->compiler;
  out["compiler_version"] = record->compiler_version;
  out["compiler_identity"] = record->compiler_identity.hex();
  out["toolkit"] = record->toolkit;
  out["metadata"] = pairs_json(record->metadata);
  return out;
}

}  // namespace

std::optional<Pairs> parse_configuration(std::string_view text) {
  Pairs out;
  if (text.empty()) return out;
  for (const std::string& part : util::split(text, ',')) {
    const size_t equals = part.find('=');
    if (equals == std::string::npos || equals == 0) return std::nullopt;
    std::optional<std::string> value = decoded(std::string_view(part).substr(equals + 1));
    if (!value) return std::nullopt;
    out.emplace_back(part.substr(0, equals), *std::move(value));
  }
  if (has_name_twice(out)) return std::nullopt;
  return out;
}

Json config_json(std::string_view text) {
  const std::optional<Pairs> pairs = parse_configuration(text);
  return pairs ? pairs_json(*pairs) : Json(nullptr);
}

Json selection_json(std::string_view text) {
  Json out = Json::array();
  if (text.empty()) return out;
  for (const std::string& part : util::split(text, ';')) {
    Json row = config_json(part);
    if (row.is_null()) return row;
    out.push_back(std::move(row));
  }
  return out;
}

std::string_view selection_of(const Record& record) {
  const auto found = std::find_if(record.metadata.begin(), record.metadata.end(),
                                  [](const auto& pair) { return pair.first == manifest::kSelectionName; });
  return found == record.metadata.end() ? std::string_view() : std::string_view(found->second);
}

Json bundle_json(const Reader& reader, const Pairs& metadata,
                 const std::vector<Reader::SignatureBlock>& signature_blocks) {
  Json signatures = Json::array();
  for (const Reader::SignatureBlock& block : signature_blocks) {
    signatures.push_back({{"type", block.type}, {"offset", block.offset}, {"bytes", block.payload_size}});
  }
  Json out{{"event", "bundle"}};
  out.update(whole_json(reader));
  out["frames"] = reader.frame_count();
  out["metadata"] = pairs_json(metadata);
  out["signatures"] = std::move(signatures);
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
          {"lowest_driver", driver_json(record.lowest_driver)},
          {"key", record.content_key.hex()},
          {"code_digest", record.artifact_digest.hex()},
          {"code_bytes", record.artifact_size},
          {"frame", record.frame},
          {"frame_offset", record.frame_offset},
          {"facts", facts_json(record.facts)},
          {"selection", selection_json(selection_of(record))},
          {"metadata", pairs_json(record.metadata)}};
}

Json bundles_json(const Reader& before, const Reader& after) {
  return {{"event", "bundles"}, {"before", whole_json(before)}, {"after", whole_json(after)}};
}

Json diff_json(const UnitDiff& diff, const std::vector<std::string>& failed_on) {
  const Record& record = diff.record();
  Json changes = Json::array();
  for (const artifact::Change& change : diff.numbers) {
    changes.push_back({{"metric", artifact::metric_name(change.metric)},
                       {"before", change.before},
                       {"after", change.after}});
  }
  Json others = Json::array();
  for (const Difference& other : diff.others) others.push_back(other.field);
  return {{"event", change_name(diff.change)},
          {"unit", record.unit()},
          {"kernel", record.kernel},
          {"target", record.target},
          {"config", config_json(record.specialization)},
          {"before", side_json(diff.before)},
          {"after", side_json(diff.after)},
          {"changes", std::move(changes)},
          {"differs", std::move(others)},
          {"failed_on", failed_on}};
}

}  // namespace kc::report
