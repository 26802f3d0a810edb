// The content-addressed store: entries by content key, verified on every read (docs/store-format.md).
//
// Trouble with the store never fails a build: get() answers "miss", put() answers "not stored", and both
// count what happened in `Counters`. One Store may be used from several threads at once.
#pragma once

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

/// Who made an artifact.
struct Origin {
  bool imported = false;
  std::string signer;      // of an imported one: 64 hex digits, the trusted key; empty: nobody
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
  // Of artifact.code. An entry that was read has it, checked; zero in one that is put: it is made then.
  base::Digest code_digest;
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
  bool imported = false;  // as Origin: who leads a request to other code is trusted as much as who made it
  std::string signer;     // of an imported one
};

/// Who vouches for code that came from elsewhere: the signers of the entry and of the record, if any, that
/// led to it, each an id as in Origin, "" for one that nobody trusted has signed. None: both were made here.
inline std::vector<std::string> signers_of(const Entry& entry, const Record* record) {
  std::vector<std::string> out;
  if (entry.origin.imported) out.push_back(entry.origin.signer);
  if (record != nullptr && record->imported && (out.empty() || out.front() != record->signer)) {
    out.push_back(record->signer);
  }
  return out;
}

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
  /// Roots of stores that are looked into, in this order, when `directory` has nothing; never written. One
  /// that is missing is an empty one, one that is refused is left out and counted as a soft error.
  std::vector<std::string> read_only_directories = {};
};

/// Of this object, since it was opened. The first three and `saved_ms` are of entries, the others of records
/// and all other files, too.
struct Counters {
  uint64_t hits = 0;
  uint64_t misses = 0;  // asked for and not there; a record that is not there is one, its entry was asked for
  uint64_t puts = 0;
  uint64_t corrupt = 0;      // moved aside, or left in a read-only store
  uint64_t soft_errors = 0;  // I/O that failed and was survived, a store that is left out
  uint64_t declined = 0;     // newer version in place, or larger than 80 % of the limit
  uint64_t saved_ms = 0;     // that the hits took to compile

  bool operator==(const Counters&) const = default;
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

  /// A verified entry of this store or of one under it, or nothing. Touches mtime at most once an hour.
  virtual std::optional<Entry> get(const base::Digest& key) = 0;
  /// The same miss, found after all: by the engine, which knows more keys and looked later. `seconds` as of
  /// the entry.
  virtual void found_later(double seconds) = 0;
  /// True when the entry is in the store afterwards. An entry of the same key that is there already is as
  /// good as this one and stays, except with kRefresh, and except that one that was imported without a
  /// trusted signer makes way for any other. What is under this store does not count.
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
  /// True when a record is in the store afterwards. One of the same content key that is there already stays;
  /// one of another is replaced. Before that: one that was imported without a trusted signer makes way for
  /// any other, and never takes the place of one.
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
  /// ErrorKind::kEnvironment when that is not possible, as with kReadOnly and kOff, or when there is no room.
  virtual base::Result<std::string> make_work_folder() = 0;

  /// The state file of a build, whole and verified against its digest, or nothing.
  /// Also with kRefresh: durations and order are still true, "unchanged" is not for the caller to conclude.
  virtual std::optional<base::Bytes> load_state(const base::Digest& id) = 0;
  virtual bool save_state(const base::Digest& id, base::ByteView bytes) = 0;

  /// Runs the automatic collection if a put of this process drew it. Call once after the last unit.
  virtual void collect_if_due() = 0;

  virtual Counters counters() const = 0;
  /// First soft error in words, for the one warning line at the end of a build; before it that a store is
  /// not asked any more.
  virtual std::string first_trouble() const = 0;
  virtual const Options& options() const = 0;
};

}  // namespace kc::store
