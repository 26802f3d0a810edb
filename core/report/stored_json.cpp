#include "report/stored_json.h"

#include "report/json_lines.h"

namespace kc::report {
namespace {

using util::Json;

// A list, not an object: several fields may have one name.
Json fields_json(const std::vector<std::pair<std::string, std::string>>& fields) {
  Json out = Json::array();
  for (const auto& [name, value] : fields) out.push_back({{"name", name}, {"value", value}});
  return out;
}

}  // namespace

std::string kernel_of(const std::string& unit) {
  return unit.substr(0, unit.find_first_of(":@"));
}

Json entry_json(const store::Listed& listed, const store::EntryHeader& header) {
  const store::Entry& entry = header.entry;
  return {{"event", "entry"},
          {"key", listed.key.hex()},
          {"unit", entry.kernel},
          {"kernel", kernel_of(entry.kernel)},
          {"backend", entry.backend},
          {"target", entry.target},
          {"entry", entry.entry},
          {"unsupported", entry.unsupported},
          {"compiler", entry.artifact.compiler},
          {"compiler_version", entry.artifact.compiler_version},
          {"imported", entry.origin.imported},
          {"signer", entry.origin.signer},
          {"kc_version", entry.origin.kc_version},
          {"host", entry.origin.host},
          {"user", entry.origin.user},
          {"made", entry.origin.time_s},
          {"used", listed.used_s},
          {"seconds", entry.seconds},
          {"peak_bytes", entry.peak_bytes},
          {"file_bytes", listed.file_bytes},
          {"disk_bytes", listed.disk_bytes},
          {"code_bytes", header.code_size},
          {"report_bytes", header.report_size},
          {"code_digest", header.code_digest.hex()}};
}

Json whole_entry_json(const store::Listed& listed, const store::EntryHeader& header,
                      const store::Entry& entry, const std::vector<LeadingRecord>& records) {
  Json out = entry_json(listed, header);
  Json kernels = Json::array();
  for (const artifact::KernelFacts& facts : entry.artifact.facts.kernels)
    kernels.push_back(facts_json(facts));
  Json leading = Json::array();
  for (const auto& [request, unit] : records)
    leading.push_back({{"request_key", request.hex()}, {"unit", unit}});
  out["found_target"] = entry.artifact.facts.found_target;
  out["toolkit"] = entry.artifact.facts.toolkit;
  out["facts"] = std::move(kernels);
  out["diagnostics"] = diagnostics_json(entry.artifact.diagnostics);
  out["key_fields"] = fields_json(entry.key_fields);
  out["records"] = std::move(leading);
  return out;
}

Json stored_record_json(const store::Listed& listed, const store::Record& record, bool has_entry) {
  return {{"event", "record"},
          {"request_key", listed.key.hex()},
          {"key", record.content.hex()},
          {"unit", record.unit},
          {"kernel", kernel_of(record.unit)},
          {"has_entry", has_entry},
          {"imported", record.imported},
          {"signer", record.signer},
          {"made", record.time_s},
          {"used", listed.used_s},
          {"file_bytes", listed.file_bytes},
          {"disk_bytes", listed.disk_bytes},
          {"key_fields", fields_json(record.key_fields)}};
}

}  // namespace kc::report
