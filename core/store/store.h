// The content-addressed store: entries by content key, verified on every read (docs/store-format.md).
//
// Trouble with the store never fails a build: get() answers "miss", put() answers "not stored", and both
// count what happened in `Counters`. One Store may be used from several threads at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "artifact/artifact.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/files.h"

namespace kc::store {

enum class Mode : uint8_t {
  kReadWrite,
  kReadOnly,  // hits, no puts, nothing moved or touched
  kOff,       // no hits, no puts
  kRefresh,   // no hits, all puts
};

/// Who made an artifact. Imported ones come with issue "trust"; the place for them is in the format.
struct Origin {
  bool imported = false;
  std::string signer;      // of an imported one
  std::string kc_version;  // of a compiled one
  int64_t time_s = 0;      // since the epoch
  std::string host, user;  // of a compiled one; user in decimal; may be empty
};

struct Entry {
  base::Digest key;  // content key
  std::string backend;
  std::string target;  // as asked
  std::string entry;   // the symbol asked for
  std::string kernel;  // name of the first unit that made it, for listings only
  artifact::Artifact artifact;
  bool unsupported = false;  // "not for this target": no code, the answer is what is kept
  double seconds = 0;        // the compile took
  uint64_t peak_bytes = 0;
  Origin origin;
  // What the content key was made of, name and value, for listings and `explain`; no paths of this machine.
  std::vector<std::pair<std::string, std::string>> key_fields;
};

/// Whether an entry that a record led to is of what was asked. A record names no more than a content key,
/// and nobody can tell whether that is of this request; with another backend, target or symbol it is not.
inline bool is_of(const Entry& entry, std::string_view backend, std::string_view target,
                  std::string_view symbol) {
  return entry.backend == backend && entry.target == target && entry.entry == symbol;
}

/// The small file that leads from a request key to a content key, for backends with a front half.
struct Record {
  base::Digest request;
  base::Digest content;
  std::string unit;  // of the first that made it, for listings only
  int64_t time_s = 0;
  // What the request key was made of, name and value, for listings and `explain`; no paths of this machine.
  std::vector<std::pair<std::string, std::string>> key_fields;
};

/// What somebody needs to see a failure again: the files as they were compiled and how.
struct Repro {
  struct File {
    std::string path;  // relative, inside the folder; `..` and absolute ones are refused
    base::Bytes bytes;
  };
  base::Bytes output;        // all that the compiler printed: output.txt
  std::vector<File> inputs;  // below inputs/
  std::string manifest;      // kernels.yaml, which `kc build -f` can run
  std::string command;       // command.txt
};

struct Options {
  std::string directory;  // root; made 0700 when missing
  Mode mode = Mode::kReadWrite;
  uint64_t limit_bytes = 5ULL << 30;  // soft; 0 = none
};

struct Counters {
  std::atomic<uint64_t> hits{0};
  std::atomic<uint64_t> misses{0};
  std::atomic<uint64_t> puts{0};
  std::atomic<uint64_t> corrupt{0};      // moved aside, or left in a read-only store
  std::atomic<uint64_t> soft_errors{0};  // I/O that failed and was survived
  std::atomic<uint64_t> declined{0};     // newer version in place, or larger than 80 % of the limit
  // `corrupt`, `soft_errors` and `declined` count records too, the first three entries alone.
};

/// What the store has of a key, as far as an entry's header tells.
enum class Held : uint8_t {
  kNothing,
  kCode,
  kUnsupported,  // the compiler's answer "not for this target"
};

class KeyLocks;

class Store {
 public:
  /// Refuses a root that is not the user's own or that group or others can write (ErrorKind::kEnvironment).
  static base::Result<std::unique_ptr<Store>> open(const Options& options);
  virtual ~Store() = default;

  /// A verified entry, or nothing. Touches mtime at most once an hour.
  virtual std::optional<Entry> get(const base::Digest& key) = 0;
  /// True when the entry is in the store afterwards. An entry of the same key that is there already is as
  /// good as this one and stays, except with kRefresh.
  virtual bool put(const Entry& entry) = 0;
  /// Whether get() would look at a payload, and of what kind: header, key and sizes are checked, nothing else
  /// is read, moved or counted.
  virtual Held holds(const base::Digest& key) = 0;
  bool contains(const base::Digest& key) { return holds(key) != Held::kNothing; }
  /// Marks the keys of an unchanged build as used, for those not touched within a day.
  virtual void touch(const std::vector<base::Digest>& keys) = 0;

  /// The verified record of a request key, or nothing. That its entry is still there is for the caller to
  /// see. Touches mtime as get() does.
  virtual std::optional<Record> get_record(const base::Digest& request) = 0;
  /// True when the record is in the store afterwards. One of the same content key that is there already
  /// stays; one of another is replaced.
  virtual bool put_record(const Record& record) = 0;
  /// The content key of a record, without touching, moving or counting anything.
  virtual std::optional<base::Digest> recorded(const base::Digest& request) = 0;
  /// As touch(), for records.
  virtual void touch_records(const std::vector<base::Digest>& requests) = 0;

  /// Single flight over all processes that share this store (see key_locks.h). Null when mode is not
  /// kReadWrite or kRefresh, or the file system has no locks.
  virtual KeyLocks* locks() = 0;

  /// What a failed compile of `key` left for those who waited for it: diagnostics and message, at most a
  /// minute old.
  virtual void remember_failure(const base::Digest& key, base::ByteView what) = 0;
  virtual std::optional<base::Bytes> recent_failure(const base::Digest& key) = 0;

  /// Keeps what a compiler printed for the failed unit of `key`, for a person to read: gives the file's path,
  /// empty when it could not be kept. The newest 20 are kept.
  virtual std::string keep_output(const base::Digest& key, base::ByteView output) = 0;
  /// The same with all that is needed to see the failure again: gives the folder's path.
  virtual std::string keep_repro(const base::Digest& key, const Repro& repro) = 0;

  /// A new empty folder below v1/tmp for the jobs of this process, absolute path. The caller removes it.
  /// ErrorKind::kEnvironment when that is not possible, as with kReadOnly and kOff.
  virtual base::Result<std::string> make_work_folder() = 0;

  /// The state file of a build, whole and verified against its digest, or nothing.
  /// Also with kRefresh: durations and order are still true, "unchanged" is not for the caller to conclude.
  virtual std::optional<base::Bytes> load_state(const base::Digest& id) = 0;
  virtual bool save_state(const base::Digest& id, base::ByteView bytes) = 0;

  /// Runs the automatic collection if a put of this process drew it. Call once after the last unit.
  virtual void collect_if_due() = 0;

  virtual const Counters& counters() const = 0;
  /// First soft error in words, for the one warning line at the end of a build.
  virtual std::string first_trouble() const = 0;
  virtual const Options& options() const = 0;
};

}  // namespace kc::store
