// `defaults` of a file and of those around it, by name.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "manifest/draft.h"
#include "manifest/modules.h"
#include "manifest/plan.h"

namespace kc::manifest {

struct FileDefaults;

/// The configuration keys that `defaults.config` offers. Not for concurrent use.
class Offered {
 public:
  /// Of one key the first of `pairs` counts.
  explicit Offered(const std::vector<NamedText>& pairs);
  Offered(const Offered&) = delete;
  Offered& operator=(const Offered&) = delete;

  bool is_empty() const { return pairs_.empty(); }
  /// Of all keys and values.
  uint64_t bytes() const { return bytes_; }
  bool contains(std::string_view key) const { return by_key_.contains(key); }
  /// The pairs whose keys are declared, sorted; all of them when `declared` is null. They count as taken from
  /// now on.
  std::shared_ptr<const Pairs> take(const DeclaredKeys* declared);
  /// Where the keys stand that some kernel declares, those behind a nearer one of the same name included.
  void add_taken_places(std::vector<YamlPlace>& places) const;

 private:
  std::vector<NamedText> pairs_;
  std::unordered_map<std::string_view, std::vector<uint32_t>>
      by_key_;               // in pairs_, first the one that counts
  std::vector<bool> taken_;  // as pairs_
  uint64_t bytes_ = 0;
  std::shared_ptr<const Pairs> all_;  // made when first asked for
};

/// Files with the plan's indices, in order.
struct FileSet {
  std::vector<KernelFile> files;
  std::unordered_map<uint32_t, YamlPlace> places;  // by index
};

/// FileDefaults as kernels ask for them, made once a file.
struct DefaultsIndex {
  explicit DefaultsIndex(const FileDefaults& defaults);

  /// Null when no file has it. It may be no option, or no value of one: that was reported.
  const NamedText* option(std::string_view backend, std::string_view name) const;

  Offered offered;
  /// The default libraries as a backend takes them; null: some are at fault, which was reported.
  std::unordered_map<std::string, std::shared_ptr<const FileSet>> libraries;

 private:
  std::unordered_map<std::string, std::unordered_map<std::string, NamedText>> options_;  // backend, name
};

}  // namespace kc::manifest
