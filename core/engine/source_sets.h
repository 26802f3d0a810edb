// Which files have which number, and which engine has which of them. No process is touched here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "backend/backend.h"

namespace kc::engine {

/// The files of jobs; the same object for all jobs that share them, so that they travel once.
using SharedFiles = std::shared_ptr<const std::vector<backend::Source>>;

/// Numbers of file lists, by object: two objects of equal content have two numbers. A number is kept as long
/// as a job or an engine has it and is never given again. One thread only.
class SourceSets {
 public:
  /// The number of `files`, for one job more.
  uint32_t take(const SharedFiles& files);
  /// One job less.
  void give_back(uint32_t set);
  /// Precondition: a job or an engine has `set`.
  const SharedFiles& files(uint32_t set) const { return sets_.at(set).files; }
  size_t size() const { return sets_.size(); }

 private:
  friend class EngineSets;
  struct Set {
    SharedFiles files;
    size_t users = 0;  // jobs and engines
  };
  void add_user(uint32_t set) { ++sets_.at(set).users; }

  std::unordered_map<const void*, uint32_t> by_object_;
  std::unordered_map<uint32_t, Set> sets_;
  uint32_t last_ = 0;
};

/// The sets that one engine has. Those that none of its jobs is compiled from are told to be forgotten,
/// oldest first, when there are more than `most_idle`.
class EngineSets {
 public:
  /// Files stay with an engine as long as units that need them are likely to come: a kernel's units may lie
  /// far apart in the order of compiles. More than this many kernels' files at once would only take memory.
  static constexpr size_t kMostIdle = 64;

  explicit EngineSets(SourceSets& all, size_t most_idle = kMostIdle) : all_(&all), most_idle_(most_idle) {}
  ~EngineSets();
  EngineSets(const EngineSets&) = delete;
  EngineSets& operator=(const EngineSets&) = delete;

  /// For a job that is about to be sent. True: the files must be sent before it.
  bool use(uint32_t set);
  /// For a job that has ended. The set to be forgotten now, if any.
  std::optional<uint32_t> leave(uint32_t set);

 private:
  SourceSets* all_;
  size_t most_idle_;
  std::map<uint32_t, size_t> live_;  // jobs under way
  std::deque<uint32_t> idle_;        // longest idle first
};

}  // namespace kc::engine
