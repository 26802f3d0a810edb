// The protocol between kc and kc-engine, version 3, over a stream socket pair.
//
// Frame: u32-LE length of what follows (1 to kMaxFrame), u8 type, payload. Integers little-endian, strings
// with a u32-LE length, blobs with a u64-LE length, as base/bytes.h writes them. A frame that is too long, of
// an unknown type, or whose payload does not read to its last byte ends the connection: the two programs come
// from one build, so it can only be damage.
//
//   engine -> kc   Greeting   first frame: protocol version and build id; both must equal kc's own
//   kc -> engine   Setup      once: compilers, store, work folder, slots
//   kc -> engine   Sources    files that jobs are compiled from, once for all jobs that share them
//   kc -> engine   Forget     no further job names these files
//   kc -> engine   Job        a unit; a few more than `slots` may be under way, so that no slot waits for kc
//   engine -> kc   Started    the job has a slot and holds its key; whatever it does to the process comes
//   later engine -> kc   Group      a child's process group begins or ends (kc kills what a dead engine left)
//   engine -> kc   Done       how the job ended, with the artifact's bytes
//   kc -> engine   Release    kc has put, or will not put, what a job made: the locks of its keys are let go
//
// A job that was Started and is not Done may have done anything to the process. Frames come in the order of
// what they tell: two jobs of which each was Started before the other was Done ran side by side, no others
// did.
//
// Closing kc's end is the order to stop: the engine kills its groups and ends. There is no other farewell.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "artifact/artifact.h"
#include "backend/backend.h"
#include "base/bytes.h"
#include "base/digest.h"
#include "base/error.h"
#include "store/store.h"
#include "util/time.h"

namespace kc::engine {

inline constexpr uint32_t kProtocolVersion = 3;
/// A code object of a kernel has at most a few MiB; its debug form with line tables ten times that. More than
/// this is damage or an attack, and is refused before memory is taken.
inline constexpr uint32_t kMaxFrame = 512U << 20;

struct Greeting {
  uint32_t protocol = kProtocolVersion;
  std::string build_id;
};

struct Setup {
  std::vector<backend::Compiler> compilers;
  std::string store_directory;
  std::vector<std::string> read_only_directories;  // stores under it
  store::Mode store_mode = store::Mode::kReadWrite;
  std::string work_folder;  // job folders are made below it; Supervisor removes it
  uint32_t slots = 1;
};

struct Sources {
  uint32_t set = 0;  // a number that no other files of this engine ever have
  std::vector<backend::Source> files;
};

struct Forget {
  uint32_t set = 0;
};

struct Job {
  uint32_t id = 0;
  std::string backend;
  std::string unit;  // for messages only
  base::Digest key;  // the request key of a backend with a front half, else the content key
  std::string entry;
  std::string target;
  backend::Pairs options;
  backend::Pairs config;
  uint32_t sources = 0;  // a set that came before
  util::Nanoseconds timeout{};
  bool ignore_lock = false;  // compile even when another process holds the key
  bool waited = false;       // it was kBusy before: a failure that the other process left is taken over
};

struct Started {
  uint32_t id = 0;
};

struct Group {
  uint32_t id = 0;
  int32_t group = 0;
  bool begins = true;
};

enum class JobState : uint8_t {
  kCompiled,
  kHit,   // somebody else put it meanwhile
  kBusy,  // another process compiles the key: ask again later
  kFailed,
  kUnsupported,
  kTimeout,
  kChanged,  // the compiler changed on disk
  kEnvironment,
  // A compile in process changed what belongs to all (working directory, locale, signal mask, rounding mode),
  // or threw: this one or one that ran beside it. `message` says what.
  kTainted,
  // Only the supervisor says so, never an engine: it died while it compiled this job alone.
  kCrashed,
};

struct Done {
  uint32_t id = 0;
  JobState state = JobState::kFailed;
  // With a front half, and if it came so far: the digest of the linked module and the content key over it.
  std::optional<base::Digest> module;
  std::optional<base::Digest> content_key;
  artifact::Artifact artifact;
  std::string message;
  std::string hint;
  std::string output;  // all that the compiler printed
  double seconds = 0;
  uint64_t peak_bytes = 0;
  std::vector<std::string> signers;  // of a kHit: store::signers_of()
  bool holds_key = false;            // the engine keeps its keys locked until Release
};

struct Release {
  uint32_t id = 0;  // of the job
};

using Message = std::variant<Greeting, Setup, Sources, Forget, Job, Started, Group, Done, Release>;

/// The whole frame of a message.
base::Bytes encode(const Message& message);
/// The same; ErrorKind::kFailed when the frame is larger than kMaxFrame.
base::Result<base::Bytes> encode_bounded(const Message& message);
/// The whole frame of what an engine says. A Done larger than `most` becomes a kFailed without artifact that
/// says so, since each job must be answered.
base::Bytes encode_answer(const Message& message, size_t most = kMaxFrame);
/// Reads the payload of a frame (type and what follows it). Nothing on any damage.
std::optional<Message> decode(base::ByteView frame);

/// Cuts a byte stream into frames. Feed it what was read; it bounds what it keeps.
class FrameReader {
 public:
  void feed(base::ByteView bytes);
  /// The next whole message, nothing when more bytes are needed. An error is final (ErrorKind::kInternal).
  base::Result<std::optional<Message>> next();

 private:
  base::Bytes buffer_;
  size_t at_ = 0;
};

/// Writes one frame, blocking until it is taken. ErrorKind::kInternal when the other side is gone.
base::Result<void> send(int socket, const Message& message);
/// The same for frames that are encoded already, one behind the other.
base::Result<void> send_frames(int socket, base::ByteView frames);

/// Identifies the sources that a program was built from (generated at build time).
const char* build_id();

}  // namespace kc::engine
