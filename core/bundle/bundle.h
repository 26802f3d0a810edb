// The bundle, `.kcb`: many artifacts, an index, digests over all of it (docs/bundle-format.md).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "artifact/artifact.h"
#include "base/bytes.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/files.h"
#include "bundle/signature.h"

namespace kc::bundle {

inline constexpr uint16_t kMajor = 1;
inline constexpr uint16_t kMinor = 0;

/// Raw bytes of the largest frame, so of the largest code object too: what one load may take of memory.
inline constexpr uint32_t kMaxFrameBytes = 256U << 20;
/// The least `WriteOptions::frame_size`.
inline constexpr uint32_t kLeastFrameSize = 4096;

/// One artifact of a bundle, as its index describes it.
struct Record {
  std::string kernel;
  std::string specialization;  // canonical text, `TM=64,TN=128`, empty without configuration
  std::string target;          // as asked
  std::string found_target;    // in the code object
  std::string backend;
  std::string entry;
  std::string symbol;  // name in the code object
  bool is_default = false;
  std::string compiler, compiler_version;
  base::Digest compiler_identity;
  std::string toolkit;
  uint32_t lowest_driver = 0;  // NVIDIA: major, 0 = no rule known
  base::Digest content_key;
  artifact::KernelFacts facts;                                // of the entry
  std::vector<std::pair<std::string, std::string>> metadata;  // sorted by name
  // Filled in by the writer, given by the reader. A caller of the writer that knows digest and size may set
  // both: then the code object is read once instead of twice (its digest is checked all the same).
  base::Digest artifact_digest;
  uint64_t artifact_size = 0;
  uint32_t frame = 0;
  uint32_t frame_offset = 0;  // within the frame's raw data

  /// `kernel:specialization@target`.
  std::string unit() const;
};

struct Info {
  std::string name;
  uint64_t release = 0;
  bool partial = false;  // units of the plan are missing
  bool subset = false;   // made of a narrowed plan
};

struct WriteOptions {
  int level = 3;                     // zstd, 1 to 19
  uint32_t frame_size = 256U << 10;  // raw bytes a frame holds at most, unless one artifact is larger;
                                     // kLeastFrameSize to kMaxFrameBytes
  unsigned threads = 1;
};

/// Gives the code object of `records[index]`. Called from several threads; must give the same bytes each
/// time, and those of the digest that the record states: other ones are found, and fail the bundle with
/// ErrorKind::kEnvironment.
using ArtifactSource = std::function<base::Result<base::Bytes>(size_t index)>;

/// Writes a whole bundle to `fd` (an empty file open for reading and writing). The bytes depend on info,
/// records, artifacts, level and frame size alone. Records may come in any order; two of one unit name are
/// ErrorKind::kInternal.
base::Result<void> write_bundle(int fd, const Info& info, std::vector<Record> records,
                                const ArtifactSource& artifacts, const WriteOptions& options);

/// Signs what write_bundle() has written to `fd`: one block behind it. `name` is for messages.
base::Result<Signature> sign_bundle(int fd, const PrivateKey& key, std::string_view name);

struct ReadOptions {
  /// The raw bytes of the frame that was read last are kept when they are at most so many.
  uint64_t largest_kept_frame = kMaxFrameBytes;
};

/// A checked code object, and what keeps its bytes: a frame that others may share.
struct Code {
  std::shared_ptr<const void> owner;  // nullptr when they lie in memory that the bundle was opened from
  base::ByteView bytes;
};

/// A bundle open for reading; every byte it hands out was checked against the chain of digests. Of a file,
/// bytes are read into private memory before they are checked and used: one that is cut, rewritten or
/// replaced while it is open makes calls fail and nothing else. Thread-safe: all but moving and ending it may
/// be called by any threads at once; reading, checking and decompressing block nobody. Errors:
/// ErrorKind::kFailed for what is damaged, foreign or newer, kInput for what cannot be opened, kEnvironment
/// for what cannot be read.
class Reader {
 public:
  static base::Result<Reader> open(const std::string& path, const ReadOptions& options = {});
  /// `name` is what messages call it, and path().
  static base::Result<Reader> open(base::FileDescriptor fd, std::string name,
                                   const ReadOptions& options = {});
  /// Nothing of `memory` is copied but what is compressed: it must stay as it is as long as this reader and
  /// all Code of it. A page that was found right is not checked again.
  static base::Result<Reader> open(base::ByteView memory, std::string name, const ReadOptions& options = {});
  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;
  ~Reader();

  /// As it was opened: for messages.
  const std::string& path() const;
  const Info& info() const;
  base::Digest header_digest() const;
  uint64_t file_size() const;
  uint32_t record_count() const;
  uint32_t frame_count() const;
  /// Records are sorted by (kernel, specialization, target), bytewise.
  base::Result<Record> record(uint32_t index);
  /// Binary search; touches only the pages it needs.
  base::Result<std::optional<uint32_t>> find(std::string_view kernel, std::string_view specialization,
                                             std::string_view target);
  /// The first record that is not before these three in the order; record_count() when all are.
  base::Result<uint32_t> lower_bound(std::string_view kernel, std::string_view specialization,
                                     std::string_view target);

  /// The part of a record that a search looks at: cheaper than all of it.
  struct Names {
    std::string kernel, specialization, target, found_target;
    bool is_default = false;
    uint32_t lowest_driver = 0;
  };
  base::Result<Names> names(uint32_t index);
  /// The first record from `index` on that has the kernel of that one and is flagged default. Reads the index
  /// alone, as does
  base::Result<std::optional<uint32_t>> first_default(uint32_t index);
  /// the first record behind `index` that has another kernel; record_count() when all have the same.
  base::Result<uint32_t> next_kernel(uint32_t index);
  /// Calls `visit` with each record, from `index` on, of the kernel and specialization of that one, one a
  /// target, until it returns false.
  using VisitVariant =
      std::function<bool(uint32_t index, const std::string& target, const std::string& found_target)>;
  base::Result<void> variants(uint32_t index, const VisitVariant& visit);

  /// `record` is one that this reader gave. The last frame is kept, so asking in order of `frame` is cheap.
  base::Result<Code> code(const Record& record);
  /// The same, copied.
  base::Result<base::Bytes> artifact(const Record& record);

  struct FrameInfo {
    uint64_t offset, stored_size, raw_size;
  };
  base::Result<FrameInfo> frame(uint32_t index);

  /// Of the bundle as a whole, sorted by name: what besides plan and artifacts decided its bytes.
  base::Result<std::vector<std::pair<std::string, std::string>>> metadata();

  struct SignatureBlock {
    uint32_t type;  // 1 = Ed25519; others are of a newer kc
    uint64_t offset;
    uint32_t payload_size;
  };
  /// Walks the blocks behind the content; each one's own digest is checked, no signature is.
  base::Result<std::vector<SignatureBlock>> signature_blocks();
  /// The Ed25519 signatures among them, in the order of the file; none of them is checked: bundle_message()
  /// of header_digest() is what each of them should be of.
  base::Result<std::vector<Signature>> signatures();
  /// Where the signature blocks begin: all before it is what they are about.
  uint64_t content_size() const;

  /// Replaces the file by one with this signature behind the others, at once (temporary file, sync, rename);
  /// this reader goes on with the old one. Precondition: opened by path. False: it has a valid one of that
  /// key already. ErrorKind::kFailed: it is no signature of this bundle, or there is no room for one more.
  base::Result<bool> add_signature(const Signature& signature);

  /// Reads and checks everything: all pages, frames, artifacts, padding, order, and that no byte is
  /// uncovered. All faults that can be told apart are reported, up to a thousand.
  std::vector<base::Error> verify_all();

  /// Pages read so far, but for those that verify_all() read.
  uint64_t page_loads() const;

 private:
  struct Impl;
  struct Verifier;
  explicit Reader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Whether `start`, the first bytes of a file (4,096 or all that it has), begin a sound bundle of a format
/// that this kc does not know yet. Reader::open() refuses it as it does a damaged one; this tells them apart.
bool is_newer_bundle(base::ByteView start);

/// True when the file starts as a bundle does, whatever its version or state: such a file may be replaced.
bool looks_like_bundle(const std::string& path);

}  // namespace kc::bundle
