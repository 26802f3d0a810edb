#include "store/stats.h"

#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/files.h"
#include "base/lock.h"
#include "store/collector.h"
#include "store/entry_codec.h"
#include "store/key_locks.h"
#include "store/layout.h"
#include "store/local_tier.h"
#include "store/roots.h"
#include "store/statistics.h"
#include "store/stored_file.h"

namespace kc::store {
namespace {

using base::Digest;
using base::Result;

void count_temporaries(const Layout& layout, Stats& out) {
  if (layout.temporary() < 0) return;
  const auto names = base::list_directory(layout.temporary(), ".");
  if (!names) return;
  for (const std::string& name : *names) {
    if (const auto parsed = parse_temporary_name(name)) {
      ++(parsed->kind == TemporaryKind::kBad ? out.quarantined : out.temporaries);
    }
  }
}

void count_states(const Layout& layout, Stats& out) {
  if (layout.states() < 0) return;
  const auto names = base::list_directory(layout.states(), ".");
  if (!names) return;
  for (const std::string& name : *names) out.states += base::parse_digest(name) ? 1 : 0;
}

// Opens the file of `name` as far as it may be believed by its owner and mode.
std::optional<StoredFile> open_file(const Layout& layout, int folder, const char* name) {
  auto file = open_stored(layout, folder, name);
  return file ? std::move(*file) : std::nullopt;
}

// The records of one shard, as far as their names and sizes tell.
Result<void> count_records(const Layout& layout, unsigned shard, Stats& out) {
  return visit_shard(layout, Kind::kRecord, shard, [&](int folder, const char* name, const Digest&) {
    const auto file = open_file(layout, folder, name);
    if (!file) return;
    ++out.records;
    out.bytes += counted_bytes(file->status);
  });
}

Result<void> count_entries(const Layout& layout, unsigned shard, Stats& out) {
  return visit_shard(layout, Kind::kEntry, shard, [&](int folder, const char* name, const Digest& key) {
    const auto file = open_file(layout, folder, name);
    if (!file) return;
    const int64_t used_s = mtime_ns(file->status) / kSecondNs;
    out.oldest_s = out.entries == 0 ? used_s : std::min(out.oldest_s, used_s);
    out.newest_s = out.entries == 0 ? used_s : std::max(out.newest_s, used_s);
    ++out.entries;
    out.bytes += counted_bytes(file->status);
    const auto header = read_entry_header(file->fd.get(), key, file->size());
    if (!header) return;  // counted, but nobody can say of what
    ++out.by_backend_target[header->entry.backend + " " + header->entry.target];
    out.compile_seconds += header->entry.seconds;
  });
}

// Locks a byte that stands for no key for an instant. The file is that of single flight and is not made here.
std::optional<bool> probe_locks(const Layout& layout) {
  const auto file = base::open_at(layout.version(), "locks", O_RDWR | O_NOFOLLOW);
  if (!file) return std::nullopt;
  return base::try_lock_byte(file->get(), kProbeOffset).has_value();
}

// A million files over a slow network.
constexpr std::chrono::minutes kListTime{30};

TierStats stats_of_tier(const std::string& directory) {
  TierStats out;
  out.directory = directory;
  auto layout = Layout::open_read_only(directory);
  if (!layout) out.trouble = layout.error().text();
  if (!layout || !*layout) return out;
  LocalTier tier(std::move(**layout), Mode::kReadOnly, 0, directory, Patience{});
  for (const Kind kind : kKinds) {
    tier.list(kind, kListTime, [&](const Digest&, uint64_t bytes) {
      ++(kind == Kind::kEntry ? out.entries : out.records);
      out.bytes += bytes;
    });
  }
  out.trouble = tier.trouble();
  return out;
}

}  // namespace

Result<Stats> stats(const std::string& root) {
  KC_ASSIGN(const auto layout, Layout::open(root, Access::kRead));
  Stats out;
  if (!layout) return out;
  for (unsigned shard = 0; shard < kShards; ++shard) {
    const auto entries = count_entries(*layout, shard, out);
    if (!entries) out.unreadable.push_back(entries.error().text());
    const auto records = count_records(*layout, shard, out);
    if (!records) out.unreadable.push_back(records.error().text());
  }
  count_temporaries(*layout, out);
  count_states(*layout, out);
  out.has_locks = probe_locks(*layout);
  const auto pins = pin_names(root);
  if (!pins) out.unreadable.push_back(pins.error().text());
  out.pins = pins ? pins->size() : 0;
  out.counters = read_tallies(*layout);
  return out;
}

std::vector<TierStats> tier_stats(const std::vector<std::string>& directories) {
  std::vector<TierStats> out;
  for (const std::string& directory : directories) out.push_back(stats_of_tier(directory));
  return out;
}

}  // namespace kc::store
