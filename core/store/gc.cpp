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

// What is wrong with one shard's entries and records, in the order of their names.
struct ShardReport {
  uint64_t entries = 0, records = 0;
  std::vector<std::pair<std::string, Flaw>> wrong;  // path and why
};

Checked<void> verify_file(const Layout& layout, Kind kind, int folder, const char* name, const Digest& key) {
  KC_ASSIGN(const auto file, open_stored(layout, folder, name));
  if (!file) return {};  // collected since it was listed
  if (kind == Kind::kEntry) {
    KC_TRY(read_entry(file->fd.get(), key, file->size()));
  } else {
    KC_TRY(read_record(file->fd.get(), key, file->size()));
  }
  return {};
}

ShardReport verify_shard(const Layout& layout, unsigned shard) {
  ShardReport report;
  for (const Kind kind : kKinds) {
    const auto visited =
        visit_shard(layout, kind, shard, [&](int folder, const char* name, const Digest& key) {
          ++(kind == Kind::kEntry ? report.entries : report.records);
          if (const auto checked = verify_file(layout, kind, folder, name, key); !checked) {
            report.wrong.emplace_back(stored_path(kind, key) + ": " + checked.error().why,
                                      checked.error().flaw);
          }
        });
    if (!visited) report.wrong.emplace_back(visited.error().text(), Flaw::kDamaged);
  }
  std::sort(report.wrong.begin(), report.wrong.end());
  return report;
}

// The records of one shard, as far as their names and sizes tell.
base::Result<void> count_records(const Layout& layout, unsigned shard, Stats& out) {
  return visit_shard(layout, Kind::kRecord, shard, [&](int folder, const char* name, const Digest&) {
    const auto file = open_stored(layout, folder, name);
    if (!file || !*file) return;
    ++out.records;
    out.bytes += counted_bytes((*file)->status);
  });
}

// Reading and hashing bounds this; more threads than that only take memory for one entry each.
constexpr unsigned kMaxVerifyThreads = 8;

}  // namespace

Result<GcReport> collect(const std::string& root, const GcOptions& options) {
  KC_ASSIGN(const auto layout, Layout::open(root, options.dry_run ? Access::kRead : Access::kChange));
  if (!layout) return GcReport{};
  return collect_in(*layout, options, std::nullopt);
}

Result<Stats> stats(const std::string& root) {
  KC_ASSIGN(const auto layout, Layout::open(root, Access::kRead));
  Stats out;
  if (!layout) return out;
  for (unsigned shard = 0; shard < kShards; ++shard) {
    const auto entries = [&](int folder, const char* name, const Digest& key) {
      const auto file = open_stored(*layout, folder, name);
      if (!file || !*file) return;
      const int64_t used_s = mtime_ns((*file)->status) / kSecondNs;
      out.oldest_s = out.entries == 0 ? used_s : std::min(out.oldest_s, used_s);
      out.newest_s = out.entries == 0 ? used_s : std::max(out.newest_s, used_s);
      ++out.entries;
      out.bytes += counted_bytes((*file)->status);
      const auto header = read_entry_header((*file)->fd.get(), key, (*file)->size());
      if (!header) return;  // counted, but nobody can say of what
      ++out.by_backend_target[header->entry.backend + " " + header->entry.target];
      out.compile_seconds += header->entry.seconds;
    };
    const auto visited = visit_shard(*layout, Kind::kEntry, shard, entries);
    if (!visited) out.unreadable.push_back(visited.error().text());
    const auto counted = count_records(*layout, shard, out);
    if (!counted) out.unreadable.push_back(counted.error().text());
  }
  count_temporaries(*layout, out);
  count_states(*layout, out);
  const Tally tally = read_tallies(*layout);
  out.hits = tally.hits;
  out.misses = tally.misses;
  out.puts = tally.puts;
  out.soft_errors = tally.soft_errors;
  out.corrupt = tally.corrupt;
  out.declined = tally.declined;
  return out;
}

Result<VerifyReport> verify(const std::string& root) {
  KC_ASSIGN(const auto layout, Layout::open(root, Access::kRead));
  VerifyReport out;
  if (!layout) return out;
  std::array<ShardReport, kShards> shards;
  const unsigned threads = std::clamp(std::thread::hardware_concurrency(), 1U, kMaxVerifyThreads);
  base::parallel_for(kShards, threads, [&](size_t shard) {
    shards[shard] = verify_shard(*layout, static_cast<unsigned>(shard));
  });
  for (ShardReport& shard : shards) {
    out.entries += shard.entries;
    out.records += shard.records;
    for (auto& [text, flaw] : shard.wrong) {
      (flaw == Flaw::kNewer ? out.newer : out.damaged).push_back(std::move(text));
    }
  }
  return out;
}

}  // namespace kc::store
