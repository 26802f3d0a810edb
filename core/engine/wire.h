// The protocol between kc and kc-engine, version 1, over a stream socket pair.
//
// Frame: u32-LE length of what follows (1 to kMaxFrame), u8 type, payload. Integers little-endian, strings
// with a u32-LE length, blobs with a u64-LE length, as base/bytes.h writes them. A frame that is too long, of
// an unknown type, or whose payload does not read to its last byte ends the connection: the two programs come
// from one build, so it can only be damage.
//
//   engine -> kc   Greeting   first frame: protocol version and build id; both must equal kc's own
//   kc -> engine   Setup      once: compilers, store, work folder, slots
//   kc -> engine   Job        a unit; at most `slots` are under way
//   engine -> kc   Started    the job has a slot and holds its key
//   engine -> kc   Group      a child's process group begins or ends (kc kills what a dead engine left)
//   engine -> kc   Done       how the job ended, with the artifact's bytes
//   kc -> engine   Release    kc has put, or will not put, what a job made: the key's lock is let go
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

inline constexpr uint32_t kProtocolVersion = 1;
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
  store::Mode store_mode = store::Mode::kReadWrite;
  std::string work_folder;  // job folders are made below it; kc removes it
  uint32_t slots = 1;
};

struct JobSource {
  std::string identifier;
  base::Bytes bytes;
};

struct Job {
  uint32_t id = 0;
  std::string backend;
  std::string unit;  // for messages only
  base::Digest key;
  std::string entry;
  std::string target;
  backend::Pairs options;
  backend::Pairs config;
  std::vector<JobSource> sources;
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
};

struct Done {
  uint32_t id = 0;
  JobState state = JobState::kFailed;
  artifact::Artifact artifact;
  std::string message;
  std::string hint;
  std::string output;  // all that the compiler printed
  double seconds = 0;
  uint64_t peak_bytes = 0;
  bool holds_key = false;  // the engine keeps the key locked until Release
};

struct Release {
  base::Digest key;
};

using Message = std::variant<Greeting, Setup, Job, Started, Group, Done, Release>;

/// The whole frame of a message.
base::Bytes encode(const Message& message);
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

/// Identifies the sources that a program was built from (generated at build time).
const char* build_id();

}  // namespace kc::engine
