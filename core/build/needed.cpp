#include "build/needed.h"

#include <optional>
#include <unordered_set>
#include <utility>

#include "build/prepare.h"
#include "bundle/bundle.h"

namespace kc::build {

std::expected<Needed, base::ErrorKind> needed_by_manifest(const Options& options, store::Store* store,
                                                          Listener& listener) {
  const auto prepared = prepare(options, nullptr, listener);
  if (!prepared) return std::unexpected(prepared.error());
  Needed out;
  out.units = prepared->units.size();
  for (const ChosenUnit& unit : prepared->units) {
    if (!unit.has_request) {
      out.keys.entries.insert(unit.key);
      continue;
    }
    out.keys.records.insert(unit.key);
    const std::optional<base::Digest> content = store == nullptr ? std::nullopt : store->recorded(unit.key);
    if (content) {
      out.keys.entries.insert(*content);
    } else {
      ++out.without_record;
    }
  }
  return out;
}

base::Result<Needed> needed_by_bundle(const std::string& path, const std::string& root) {
  KC_ASSIGN(bundle::Reader reader, bundle::Reader::open(path));
  Needed out;
  out.units = reader.record_count();
  for (uint32_t i = 0; i < reader.record_count(); ++i) {
    KC_ASSIGN(const bundle::Record record, reader.record(i));
    out.keys.entries.insert(record.content_key);
  }
  KC_ASSIGN(out.keys.records, store::records_leading_to(root, out.keys.entries));
  return out;
}

}  // namespace kc::build
