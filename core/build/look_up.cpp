// Pass: every unit whose artifact the store holds gets it, verified.
#include <algorithm>

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
  }
  for (size_t i = 0; i < needed.size(); ++i) {
    if (!needed[i]) work.prepared.sources[i].bytes = {};
  }
}

// The stored answer that a compiler has no code for a target. Where the manifest does not allow that, the
// units stay misses: they are compiled again, to say why in full.
void take_answer(Work& work, const base::Digest& key, const store::Entry& entry) {
  UnitResult details;
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
    if (work.results[index].state == UnitState::kPending) work.results[index].error = why;
  }
}

}  // namespace

base::Result<void> look_up(Work& work) {
  for (uint32_t i = 0; i < work.prepared.units.size(); ++i) {
    work.by_key[work.prepared.units[i].key].push_back(i);
  }
  std::vector<base::Digest> keys;  // in plan order, so that the spool is too
  for (uint32_t i = 0; i < work.prepared.units.size(); ++i) {
    const ChosenUnit& chosen = work.prepared.units[i];
    if (work.by_key.at(chosen.key).front() != i) continue;
    if (chosen.refused) {
      reject(work, chosen.key, *chosen.refused, {});
    } else {
      keys.push_back(chosen.key);
    }
  }
  if (work.store == nullptr) return {};
  const unsigned threads = util::allowed_cpus();
  std::vector<std::optional<store::Entry>> entries(kBatch);
  for (size_t start = 0; start < keys.size() && !work.interrupted(); start += kBatch) {
    const size_t count = std::min(kBatch, keys.size() - start);
    base::parallel_for(count, threads, [&](size_t i) { entries[i] = work.store->get(keys[start + i]); });
    for (size_t i = 0; i < count; ++i) {
      if (!entries[i]) continue;
      const store::Entry entry = std::move(*entries[i]);
      if (entry.unsupported) {
        take_answer(work, keys[start + i], entry);
        continue;
      }
      KC_TRY(
          accept(work, keys[start + i], entry.artifact, {UnitState::kHit, entry.seconds, entry.peak_bytes}));
    }
  }
  release_sources(work);
  return {};
}

}  // namespace kc::build
