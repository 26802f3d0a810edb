// Pass: every unit whose artifact the store holds gets it, verified.
#include <algorithm>
#include <utility>

#include "base/parallel.h"
#include "build/work.h"
#include "util/limits.h"
#include "util/text.h"

namespace kc::build {
namespace {

// Entries are read and checked in batches of this many, so that memory stays small however many units there
// are.
constexpr size_t kBatch = 64;

// Sources that no unit needs any more: only those of misses travel to the engine.
void release_sources(Work& work) {
  std::vector<bool> needed(work.prepared.sources.size());
  for (size_t i = 0; i < work.prepared.units.size(); ++i) {
    if (work.results[i].state != UnitState::kPending) continue;
    for (const uint32_t source : work.prepared.unit(i).sources) needed[source] = true;
    for (const uint32_t library : work.prepared.kernel(i).libraries) needed[library] = true;
  }
  for (size_t i = 0; i < needed.size(); ++i) {
    if (!needed[i]) work.prepared.sources[i].bytes = {};
  }
}

// The stored answer that a compiler has no code for a target. Where the manifest does not allow that, the
// units stay misses: they are compiled again, to say why in full.
void take_answer(Work& work, const base::Digest& key, const store::Entry& entry) {
  UnitResult details;
  details.key = entry.key;
  details.seconds = entry.seconds;
  details.peak_bytes = entry.peak_bytes;
  details.compiler_version = entry.artifact.compiler_version;
  details.diagnostics = entry.artifact.diagnostics;
  const auto first = std::ranges::find(entry.artifact.diagnostics, artifact::Severity::kError,
                                       &artifact::Diagnostic::severity);
  const base::Error why{base::ErrorKind::kFailed,
                        first != entry.artifact.diagnostics.end()
                            ? first->message
                            : util::format("{} has no code for {}", entry.backend, entry.target),
                        {},
                        {}};
  skip(work, key, why, details);
  for (const uint32_t index : work.by_key.at(key)) {
    UnitResult& result = work.results[index];
    if (result.state != UnitState::kPending) continue;
    result.error = why;
    set_keys(work, index, entry.key);
  }
}

// What the store has for one job.
struct Found {
  std::optional<base::Digest> content;  // of a job with two keys: what its record says
  std::optional<store::Entry> entry;
  std::vector<std::string> signers = {};
};

Found find(store::Store& store, const Prepared& prepared, size_t index) {
  const ChosenUnit& chosen = prepared.units[index];
  if (!chosen.has_request) {
    std::optional<store::Entry> entry = store.get(chosen.key);
    std::vector<std::string> signers;
    if (entry) signers = store::signers_of(*entry, nullptr);
    return {{}, std::move(entry), std::move(signers)};
  }
  const std::optional<store::Record> record = store.get_record(chosen.key);
  if (!record) return {};
  std::optional<store::Entry> entry = store.get(record->content);
  const manifest::Unit& unit = prepared.unit(index);
  if (entry && !store::is_of(*entry, prepared.kernel(index).backend, unit.target.text, unit.entry)) return {};
  std::vector<std::string> signers;
  if (entry) signers = store::signers_of(*entry, &*record);
  return {record->content, std::move(entry), std::move(signers)};
}

}  // namespace

base::Result<void> look_up(Work& work) {
  for (uint32_t i = 0; i < work.prepared.units.size(); ++i) {
    work.by_key[work.prepared.units[i].key].push_back(i);
    set_keys(work, i, {});
  }
  std::vector<uint32_t> jobs;  // the first unit of each, in plan order, so that the spool is too
  for (uint32_t i = 0; i < work.prepared.units.size(); ++i) {
    const ChosenUnit& chosen = work.prepared.units[i];
    if (work.by_key.at(chosen.key).front() != i) continue;
    if (chosen.refused) {
      reject(work, chosen.key, *chosen.refused, {});
    } else {
      jobs.push_back(i);
    }
  }
  if (work.store == nullptr) return {};
  const unsigned threads = util::allowed_cpus();
  std::vector<Found> batch(kBatch);
  for (size_t start = 0; start < jobs.size() && !work.interrupted(); start += kBatch) {
    const size_t count = std::min(kBatch, jobs.size() - start);
    base::parallel_for(count, threads,
                       [&](size_t i) { batch[i] = find(*work.store, work.prepared, jobs[start + i]); });
    for (size_t i = 0; i < count; ++i) {
      const base::Digest& key = work.prepared.units[jobs[start + i]].key;
      const Found found = std::move(batch[i]);
      if (!found.entry) {
        for (const uint32_t index : work.by_key.at(key)) set_keys(work, index, found.content);
      } else if (found.entry->unsupported) {
        take_answer(work, key, *found.entry);
      } else {
        KC_TRY(accept(work, key, found.entry->artifact,
                      {UnitState::kHit, found.entry->seconds, found.entry->peak_bytes,
                       found.entry->code_digest, found.content, found.signers}));
      }
    }
  }
  release_sources(work);
  return {};
}

}  // namespace kc::build
