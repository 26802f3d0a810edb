// Where things lie in a store and who may have put them there (docs/store-format.md: The folder).
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/digest.h"
#include "base/error.h"
#include "base/files.h"

namespace kc::store {

enum class Access : uint8_t {
  kRead,    // nothing is made or changed; root's folders are as good as the user's own
  kChange,  // files may be removed, but a store that is not there is not made
  kMake,    // what is missing is made
};

inline constexpr unsigned kShards = 256;  // two-digit folders below e/ and r/

/// The files that are named by a key.
enum class Kind : uint8_t {
  kEntry,   // e/, by content key
  kRecord,  // r/, by request key
};
inline constexpr Kind kKinds[] = {Kind::kEntry, Kind::kRecord};

/// Nothing when only `euid` (or, to read, root) can have written what `status` describes; else what is wrong.
/// `hint` gets what to do.
std::optional<std::string> distrust(const struct stat& status, Access access, uid_t euid, std::string& hint);

/// The open folders of one store. Immutable once open, so any thread may use it. Everything is reached from
/// these descriptors and no symbolic link below the root is followed.
class Layout {
 public:
  /// Nothing when the store is not there and `access` does not make it. Folders that belong to another user
  /// or that others can write, links or files in the place of folders, and whatever cannot be made are
  /// ErrorKind::kEnvironment.
  static base::Result<std::optional<Layout>> open(const std::string& root, Access access);
  /// A store that is looked into under the user's own: entries and records alone, for reading. What else lies
  /// there is nobody else's business and may be out of reach.
  static base::Result<std::optional<Layout>> open_read_only(const std::string& root);

  const std::string& path() const { return path_; }  // absolute, without symbolic links
  Access access() const { return access_; }
  int version() const { return version_.get(); }  // v1/
  // -1 when missing, which only happens without Access::kMake, or not opened.
  int folder(Kind kind) const { return (kind == Kind::kEntry ? entries_ : records_).get(); }
  int states() const { return states_.get(); }
  int temporary() const { return temporary_.get(); }
  int statistics() const { return statistics_.get(); }

  /// Folder of the files whose keys start with `shard`; holds no descriptor when it is missing and not
  /// `make`.
  base::Result<base::FileDescriptor> open_shard(Kind kind, unsigned shard, bool make) const;
  /// roots/, the folder of the pins; holds no descriptor when it is missing and not `make`.
  base::Result<base::FileDescriptor> open_roots(bool make) const;

 private:
  // Nothing when root or v1/ is not there.
  static base::Result<std::optional<Layout>> open_entries(const std::string& root, Access access);
  // A folder in v1/.
  base::Result<base::FileDescriptor> open_inner(const char* name) const;
  std::string shown_version() const { return base::join_path(path_, "v1"); }

  std::string path_;
  Access access_ = Access::kRead;
  base::FileDescriptor root_, version_, entries_, records_, states_, temporary_, statistics_;
};

inline unsigned shard_of(const base::Digest& key) {
  return key.bytes[0];
}
/// `<64 hex>.kce`, `<64 hex>.kcr`.
std::string stored_name(Kind kind, const base::Digest& key);
/// `e/<2 hex>/<64 hex>.kce`, for messages.
std::string stored_path(Kind kind, const base::Digest& key);
/// The key of exactly such a name in the folder where it belongs.
std::optional<base::Digest> parse_stored_name(Kind kind, std::string_view name, unsigned shard);

enum class TemporaryKind : uint8_t { kNew, kBad, kFailed, kJob };
struct TemporaryName {
  TemporaryKind kind = TemporaryKind::kNew;
  pid_t pid = 0;  // of kNew and kJob
};
/// Nothing for any name that is not exactly one that kc makes in tmp/.
std::optional<TemporaryName> parse_temporary_name(std::string_view name);
std::string new_file_name();
std::string bad_name(const base::Digest& key);
std::string failed_name(const base::Digest& key);
std::string job_name();

/// `<pid>-<counter>-<16 hex>`, a file of stats.d.
bool is_statistics_name(std::string_view name);

/// Bytes that a file takes, as the limit counts them.
inline uint64_t counted_bytes(const struct stat& status) {
  const auto size = static_cast<uint64_t>(status.st_size);
  const auto blocks = static_cast<uint64_t>(status.st_blocks) * 512;
  return size > blocks ? size : blocks;
}
inline int64_t mtime_ns(const struct stat& status) {
  return base::tuple_of(status).mtime_ns;
}
inline constexpr int64_t kSecondNs = 1'000'000'000;

}  // namespace kc::store
