#include "engine/source_sets.h"

#include <algorithm>

namespace kc::engine {

uint32_t SourceSets::take(const SharedFiles& files) {
  const auto [found, is_new] = by_object_.try_emplace(files.get(), last_ + 1);
  if (is_new) sets_[++last_].files = files;
  add_user(found->second);
  return found->second;
}

void SourceSets::give_back(uint32_t set) {
  const auto found = sets_.find(set);
  if (--found->second.users != 0) return;
  by_object_.erase(found->second.files.get());
  sets_.erase(found);
}

EngineSets::~EngineSets() {
  for (const auto& [set, jobs] : live_) all_->give_back(set);
}

bool EngineSets::use(uint32_t set) {
  const auto [found, is_new] = live_.try_emplace(set, 0);
  if (is_new) {
    all_->add_user(set);
  } else if (found->second == 0) {
    idle_.erase(std::ranges::find(idle_, set));
  }
  ++found->second;
  return is_new;
}

std::optional<uint32_t> EngineSets::leave(uint32_t set) {
  const auto found = live_.find(set);
  if (--found->second != 0) return std::nullopt;
  idle_.push_back(set);
  if (idle_.size() <= most_idle_) return std::nullopt;
  const uint32_t oldest = idle_.front();
  idle_.pop_front();
  live_.erase(oldest);
  all_->give_back(oldest);
  return oldest;
}

}  // namespace kc::engine
