// The files of jobs, made once for all jobs that share them. Inner to core/build.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "build/prepare.h"
#include "engine/supervisor.h"

namespace kc::build {

/// Of each distinct list of sources and libraries one copy exists, from the first job that asks for it until
/// the last one that was counted in has ended. `prepared` must outlive it. One thread only.
///
/// Order of calls: count() for all jobs, then for each of them of() any number of times, then ended() once.
class JobFiles {
 public:
  explicit JobFiles(const Prepared& prepared) : prepared_(prepared), set_of_(prepared.units.size()) {}

  /// `unit` is an index into Prepared::units, as below.
  void count(uint32_t unit);
  engine::SharedFiles of(uint32_t unit);
  void ended(uint32_t unit);

 private:
  struct Set {
    engine::SharedFiles files;  // null before the first of() and after the last ended()
    uint32_t left = 0;          // jobs that have not ended
  };
  // Indices into Plan::sources.
  using Lists = std::pair<std::vector<uint32_t>, std::vector<uint32_t>>;

  const Prepared& prepared_;
  std::vector<uint32_t> set_of_;  // parallel to Prepared::units
  std::vector<Set> sets_;
  std::map<Lists, uint32_t> known_;
  const manifest::Unit* last_ = nullptr;  // that was counted
  uint32_t last_set_ = 0;
};

}  // namespace kc::build
