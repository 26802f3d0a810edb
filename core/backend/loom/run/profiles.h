// What the library calls a target, made once each and shared by all workers.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "backend/loom/run/api.h"
#include "backend/run.h"
#include "target/target.h"

namespace kc::backend::loom {

/// Why a unit ends without code, in kc's words.
struct Explanation {
  Status status = Status::kFailed;
  std::string message;
  std::string hint;
  bool is_own_answer = true;  // asked again the library would say the same
};

/// Targets with their features and processor mode. Thread-safe.
class Profiles {
 public:
  explicit Profiles(const LoomApi& api) : api_(api) {}

  struct Profile {
    Object object;
    Explanation refusal;  // when there is no object
  };
  std::shared_ptr<const Profile> get(const target::Target& target, abi::ProcessorMode mode);

 private:
  Profile make(const target::Target& target, abi::ProcessorMode mode);
  void set_processor_mode(abi::ProfileOptions options, const target::Target& target, abi::ProcessorMode mode,
                          Profile& out) const;
  const std::vector<std::string>& available();

  // What of a target the library is told.
  using Key = std::tuple<std::string, target::Feature, target::Feature, abi::ProcessorMode>;

  const LoomApi& api_;
  std::mutex mutex_;
  std::map<Key, std::shared_ptr<const Profile>> all_;
  std::vector<std::string> available_;  // names of what the library has, asked for when one is missing
};

}  // namespace kc::backend::loom
