#include "backend/loom/run/index_cache.h"

#include <set>
#include <string_view>
#include <utility>

namespace kc::backend::loom {
namespace {

// An error for each name that two files have: what the compiler says of one could be meant of the other.
std::vector<artifact::Diagnostic> same_names(const std::vector<Source>& files) {
  std::vector<artifact::Diagnostic> out;
  std::set<std::string_view> names;
  for (const Source& file : files) {
    if (names.insert(file.identifier).second) continue;
    out.push_back(
        {artifact::Severity::kError, {}, "two files of this kernel have this name", file.identifier, 0, 0});
  }
  return out;
}

}  // namespace

std::shared_ptr<IndexCache::Slot> IndexCache::slot_for(const SourceSet& sources) {
  const std::lock_guard lock(mutex_);
  const auto [at, is_new] = entries_.try_emplace(sources.id);
  Entry& entry = at->second;
  if (is_new) {
    entry.slot = std::make_shared<Slot>();
    entry.place = order_.insert(order_.begin(), sources.id);
    for (const Source& file : sources.files) entry.bytes += file.bytes.size();
    bytes_ += entry.bytes;
  } else {
    order_.splice(order_.begin(), order_, entry.place);
  }
  std::shared_ptr<Slot> out = entry.slot;
  // The one just asked for stays, whatever its size.
  while (order_.size() > 1 && (order_.size() > limits_.sets || bytes_ > limits_.source_bytes)) {
    const auto oldest = entries_.find(order_.back());
    bytes_ -= oldest->second.bytes;
    entries_.erase(oldest);
    order_.pop_back();
  }
  return out;
}

std::shared_ptr<const IndexCache::Index> IndexCache::make(
    const std::shared_ptr<const SourceSet>& sources) const {
  auto out = std::make_shared<Index>();
  out->sources = sources;
  out->diagnostics = same_names(sources->files);
  if (!out->diagnostics.empty()) return out;
  Reply reply = api_.make_index(sources->files, out->object);
  out->problem = std::move(reply.problem);
  if (reply.result) api_.take_diagnostics(reply.result.get(), out->diagnostics);
  if (!reply.succeeded) out->object.reset();
  return out;
}

std::shared_ptr<const IndexCache::Index> IndexCache::get(const std::shared_ptr<const SourceSet>& sources) {
  const std::shared_ptr<Slot> slot = slot_for(*sources);
  const std::lock_guard lock(slot->mutex);
  if (slot->index) return slot->index;
  std::shared_ptr<const Index> made = make(sources);
  // A problem, such as too little memory, may be gone next time; what the sources are stays.
  if (!made->problem) slot->index = made;
  return made;
}

size_t IndexCache::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace kc::backend::loom
