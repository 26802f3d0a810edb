// Open bundles: one file behind its policy, and several files as one set. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "bundle/bundle.h"
#include "loader/failure.h"
#include "target/target.h"

namespace kc::loader {

/// kc_policy with its keys read.
struct Policy {
  std::vector<bundle::PublicKey> keys;
  size_t required_signatures = 0;
  std::optional<std::string> name;
  uint64_t min_release = 0;
  bool allow_partial = false;
  uint64_t max_file_size = 0;
  uint64_t max_code_size = 0;
};
/// KC_ERROR_ARGUMENT for a struct that contradicts itself, KC_ERROR_UNTRUSTED for a key file without a key.
Result<Policy> policy_of(const kc_policy* policy);

/// One bundle that its policy lets in.
class File {
 public:
  static Result<std::shared_ptr<File>> open(const std::string& path, const Policy& policy);
  /// The descriptor is duplicated.
  static Result<std::shared_ptr<File>> open(int fd, const Policy& policy);
  /// Not copied: `bytes` must outlive the file.
  static Result<std::shared_ptr<File>> open(base::ByteView bytes, const Policy& policy);

  const bundle::Info& info() const;
  const std::string& path() const;
  /// Keys of the policy whose valid signatures it has, in the policy's order.
  const std::vector<bundle::PublicKey>& signers() const;
  bundle::Reader& reader();  // thread-safe
  uint64_t max_code_size() const;

  /// Where the records of one kernel are.
  struct KernelPlace {
    uint32_t begin = 0;
    std::optional<uint32_t> first_default;  // of those flagged default
  };
  /// Nothing when it has no such kernel. Remembered, so that a second look-up reads nothing.
  Result<std::optional<KernelPlace>> kernel(std::string_view name);

  ~File();

 private:
  struct Impl;
  explicit File(std::unique_ptr<Impl> impl);
  template <typename Open, typename IsNewer>
  static Result<std::shared_ptr<File>> checked(const Policy& policy, const Open& open,
                                               const IsNewer& is_newer_one);

  std::unique_ptr<Impl> impl_;
};

/// An entry with what keeps it readable.
struct Entry {
  std::shared_ptr<File> file;
  bundle::Record record;

  /// The code object, every digest checked; the frame that holds it is not copied. KC_ERROR_POLICY: larger
  /// than the policy allows.
  Result<bundle::Code> image() const;
  /// The same, copied.
  Result<base::Bytes> code() const;
};

/// One file or several, looked through in their order.
class Set {
 public:
  explicit Set(std::vector<std::shared_ptr<File>> files);

  const std::vector<std::shared_ptr<File>>& files() const { return files_; }
  size_t entry_count() const;
  Result<Entry> entry(size_t index) const;

  /// All entries of one configuration of a kernel whose code runs on `device`, best match first
  /// (target::better), equal ones in the files' order, one artifact once. Never empty: KC_ERROR_NOT_FOUND
  /// names near kernels or the kernel's configurations, KC_ERROR_NO_CODE the targets that there are and what
  /// to add to the manifest. `configuration`: pairs in any order, empty for none, nothing for the kernel's
  /// default. In a set the default is that of the first file that has the kernel. An entry that is damaged
  /// fails the call where it is the best match; where it is a worse one it is left out.
  Result<std::vector<Entry>> candidates(std::string_view kernel,
                                        std::optional<std::string_view> configuration,
                                        const target::Target& device) const;
  /// The first of these alone, which reads less.
  Result<Entry> best(std::string_view kernel, std::optional<std::string_view> configuration,
                     const target::Target& device) const;

 private:
  struct Match;
  /// What runs on `device`, best first, never empty.
  Result<std::vector<Match>> matches(std::string_view kernel, std::optional<std::string_view> configuration,
                                     const target::Target& device) const;
  Result<Entry> entry_of(const Match& match) const;
  Failure no_kernel(std::string_view kernel) const;
  Failure no_configuration(std::string_view kernel, std::optional<std::string_view> configuration) const;

  std::vector<std::shared_ptr<File>> files_;
};

}  // namespace kc::loader
