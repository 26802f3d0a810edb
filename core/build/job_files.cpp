#include "build/job_files.h"

#include <memory>

namespace kc::build {

void JobFiles::count(uint32_t unit) {
  const manifest::Unit& asked = prepared_.unit(unit);
  // Units of one kernel follow one another, and most of them have the same files.
  if (last_ == nullptr || last_->kernel != asked.kernel || last_->sources != asked.sources) {
    const auto [at, is_new] = known_.try_emplace({asked.sources, prepared_.kernel(unit).libraries},
                                                 static_cast<uint32_t>(sets_.size()));
    if (is_new) sets_.emplace_back();
    last_ = &asked;
    last_set_ = at->second;
  }
  set_of_[unit] = last_set_;
  ++sets_[last_set_].left;
}

engine::SharedFiles JobFiles::of(uint32_t unit) {
  Set& set = sets_[set_of_[unit]];
  if (set.files) return set.files;
  auto files = std::make_shared<std::vector<backend::Source>>();
  const auto add = [&](const std::vector<uint32_t>& indices, backend::Role role) {
    for (const uint32_t i : indices) {
      files->push_back({prepared_.plan.sources[i].identifier, role, prepared_.sources[i].bytes});
    }
  };
  files->reserve(prepared_.unit(unit).sources.size() + prepared_.kernel(unit).libraries.size());
  add(prepared_.unit(unit).sources, backend::Role::kSource);
  add(prepared_.kernel(unit).libraries, backend::Role::kLibrary);
  set.files = std::move(files);
  return set.files;
}

void JobFiles::ended(uint32_t unit) {
  Set& set = sets_[set_of_[unit]];
  if (--set.left == 0) set.files.reset();
}

}  // namespace kc::build
