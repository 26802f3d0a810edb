#include "store/leads.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/files.h"
#include "base/parallel.h"
#include "store/collector.h"
#include "store/record_codec.h"
#include "store/roots.h"
#include "store/stored_file.h"

namespace kc::store {
namespace {

using base::Digest;
using base::Result;
using Clock = std::chrono::steady_clock;

// A record is one open, one read and one digest of some hundred bytes: the kernel bounds this.
constexpr unsigned kThreads = 8;

// The content key of one record; nothing when it is missing or damaged, which leads nowhere either.
Checked<std::optional<Digest>> lead_of(const Layout& layout, int folder, const Digest& request) {
  const auto read = [&]() -> Checked<std::optional<Digest>> {
    KC_ASSIGN(const auto file, open_stored(layout, folder, stored_name(Kind::kRecord, request)));
    if (!file) return std::nullopt;
    KC_ASSIGN(const Record record, read_record(file->fd.get(), request, file->size()));
    return record.content;
  };
  auto content = read();
  if (!content && content.error().flaw == Flaw::kDamaged) return std::nullopt;
  return content;
}

std::string shown(const Digest& request, const Refusal& refusal) {
  return stored_path(Kind::kRecord, request) + ": " + refusal.why;
}

}  // namespace

Leads read_leads(const Layout& layout, const std::vector<Digest>& requests,
                 std::optional<Clock::time_point> until) {
  Leads out;
  out.content.resize(requests.size());
  // Each thread takes a folder, so that it is opened once.
  std::array<std::string, kShards> unknown;
  base::parallel_for(kShards, kThreads, [&](size_t shard) {
    const auto first = std::partition_point(requests.begin(), requests.end(),
                                            [&](const Digest& key) { return shard_of(key) < shard; });
    const auto last = std::partition_point(first, requests.end(),
                                           [&](const Digest& key) { return shard_of(key) <= shard; });
    if (first == last) return;
    const auto folder = layout.open_shard(Kind::kRecord, static_cast<unsigned>(shard), false);
    if (!folder) unknown[shard] = folder.error().text();
    if (!folder || !*folder) return;
    for (auto at = first; at != last; ++at) {
      if (until && Clock::now() > *until) return;
      auto content = lead_of(layout, folder->get(), *at);
      if (content) {
        out.content[static_cast<size_t>(at - requests.begin())] = *content;
      } else if (unknown[shard].empty()) {
        unknown[shard] = shown(*at, content.error());
      }
    }
  });
  for (std::string& text : unknown) {
    if (out.unknown.empty()) out.unknown = std::move(text);
  }
  return out;
}

Result<std::unordered_set<Digest>> records_leading_to(const std::string& root,
                                                      const std::unordered_set<Digest>& entries) {
  std::unordered_set<Digest> out;
  KC_ASSIGN(const auto layout, Layout::open(root, Access::kRead));
  if (!layout) return out;
  struct Shard {
    std::vector<Digest> requests;
    std::optional<base::Error> error;
  };
  std::array<Shard, kShards> shards;
  base::parallel_for(kShards, kThreads, [&](size_t i) {
    Shard& shard = shards[i];
    const auto visit = [&](int folder, const char*, const Digest& request) {
      const auto content = lead_of(*layout, folder, request);
      if (content && *content && entries.contains(**content)) shard.requests.push_back(request);
      // A newer one was made by a kc that keeps it by its own rules.
      if (!content && content.error().flaw == Flaw::kUnreadable && !shard.error) {
        shard.error = base::Error{base::ErrorKind::kEnvironment, shown(request, content.error())};
      }
    };
    const auto visited = visit_shard(*layout, Kind::kRecord, static_cast<unsigned>(i), visit);
    if (!visited) shard.error = visited.error();
  });
  for (Shard& shard : shards) {
    if (shard.error) return std::unexpected(std::move(*shard.error));
    out.insert(shard.requests.begin(), shard.requests.end());
  }
  return out;
}

}  // namespace kc::store
