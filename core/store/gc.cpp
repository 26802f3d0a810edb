#include "store/gc.h"

#include <algorithm>
#include <array>
#include <thread>
#include <utility>

#include "base/parallel.h"
#include "store/collector.h"
#include "store/entry_codec.h"
#include "store/layout.h"
#include "store/record_codec.h"
#include "store/removal.h"
#include "store/stored_file.h"

namespace kc::store {
namespace {

using base::Digest;
using base::Result;

// Reading and hashing bounds this; more threads than that only take memory for one entry each.
constexpr unsigned kMaxVerifyThreads = 8;

// What is wrong with one shard's entries and records, in the order of their names.
struct ShardReport {
  uint64_t entries = 0, records = 0, repaired = 0;
  std::vector<std::pair<std::string, Flaw>> wrong;  // path and why
  std::string trouble;
};

// `found` is that of the file that was checked, if it could be opened.
Checked<void> check_file(const Layout& layout, Kind kind, int folder, const char* name, const Digest& key,
                         std::optional<struct stat>& found) {
  KC_ASSIGN(const auto file, open_stored(layout, folder, name));
  if (!file) return {};  // collected since it was listed
  found = file->status;
  if (kind == Kind::kEntry) {
    KC_TRY(read_entry(file->fd.get(), key, file->size()));
  } else {
    KC_TRY(read_record(file->fd.get(), key, file->size()));
  }
  return {};
}

void verify_file(const Layout& layout, Kind kind, int folder, const char* name, const Digest& key,
                 bool repair, ShardReport& out) {
  std::optional<struct stat> found;
  const auto checked = check_file(layout, kind, folder, name, key, found);
  if (checked) return;
  out.wrong.emplace_back(stored_path(kind, key) + ": " + checked.error().why, checked.error().flaw);
  if (!repair || checked.error().flaw != Flaw::kDamaged) return;
  const auto moved = move_aside(layout, kind, folder, key, found ? &*found : nullptr);
  if (moved) {
    ++out.repaired;  // by another process, if there is nothing to move any more
  } else if (out.trouble.empty()) {
    out.trouble = moved.error().text();
  }
}

ShardReport verify_shard(const Layout& layout, unsigned shard, bool repair) {
  ShardReport report;
  for (const Kind kind : kKinds) {
    const auto keys = keys_in_shard(layout, kind, shard);
    const auto folder = layout.open_shard(kind, shard, false);
    if (!keys || !folder) {
      report.wrong.emplace_back(keys ? folder.error().text() : keys.error().text(), Flaw::kUnreadable);
      continue;
    }
    (kind == Kind::kEntry ? report.entries : report.records) += keys->size();
    if (!*folder) continue;
    for (const Digest& key : *keys) {
      verify_file(layout, kind, folder->get(), stored_name(kind, key).c_str(), key, repair, report);
    }
  }
  return report;
}

Result<void> verify_pins(const Layout& layout, VerifyReport& out) {
  return visit_pins(layout, [&](const std::string& name, const Checked<Pin>& pin) -> Result<void> {
    ++out.pins;
    if (pin) return {};
    (pin.error().flaw == Flaw::kNewer ? out.newer : out.damaged)
        .push_back("roots/" + name + ": " + pin.error().why);
    return {};
  });
}

}  // namespace

Result<GcReport> collect(const std::string& root, const GcOptions& options) {
  KC_ASSIGN(const auto layout, Layout::open(root, options.dry_run ? Access::kRead : Access::kChange));
  if (!layout) return GcReport{};
  return collect_in(*layout, options, std::nullopt);
}

Result<VerifyReport> verify(const std::string& root, bool repair) {
  KC_ASSIGN(const auto layout, Layout::open(root, repair ? Access::kChange : Access::kRead));
  VerifyReport out;
  if (!layout) return out;
  std::array<ShardReport, kShards> shards;
  const unsigned threads = std::clamp(std::thread::hardware_concurrency(), 1U, kMaxVerifyThreads);
  base::parallel_for(kShards, threads, [&](size_t shard) {
    shards[shard] = verify_shard(*layout, static_cast<unsigned>(shard), repair);
  });
  for (ShardReport& shard : shards) {
    out.entries += shard.entries;
    out.records += shard.records;
    out.repaired += shard.repaired;
    if (out.trouble.empty()) out.trouble = std::move(shard.trouble);
    for (auto& [text, flaw] : shard.wrong) {
      (flaw == Flaw::kNewer ? out.newer : out.damaged).push_back(std::move(text));
    }
  }
  if (const auto pins = verify_pins(*layout, out); !pins) out.damaged.push_back(pins.error().text());
  return out;
}

}  // namespace kc::store
