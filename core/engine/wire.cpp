#include "engine/wire.h"

#include <sys/socket.h>

#include <cerrno>

namespace kc::engine {
namespace {

using base::ByteReader;
using base::ByteWriter;

constexpr size_t kHeadSize = 4;
// The shortest a source can be: two lengths and its role.
constexpr size_t kLeastSource = 4 + 1 + 8;
constexpr size_t kLeastText = 4;

void write_pairs(ByteWriter& out, const backend::Pairs& pairs) {
  out.u32(static_cast<uint32_t>(pairs.size()));
  for (const auto& [name, value] : pairs) {
    out.text(name);
    out.text(value);
  }
}

backend::Pairs read_pairs(ByteReader& in) {
  backend::Pairs pairs(in.count(8));
  for (auto& [name, value] : pairs) {
    name = in.text();
    value = in.text();
  }
  return pairs;
}

// An enumerator at or below `last`; anything else is damage.
template <typename Enum>
Enum read_enum(ByteReader& in, Enum last) {
  const uint8_t value = in.u8();
  if (value > static_cast<uint8_t>(last)) in.fail();
  return static_cast<Enum>(value);
}

void write_optional_digest(ByteWriter& out, const std::optional<base::Digest>& digest) {
  out.boolean(digest.has_value());
  if (digest) write_digest(out, *digest);
}

std::optional<base::Digest> read_optional_digest(ByteReader& in) {
  if (!in.boolean()) return std::nullopt;
  return read_digest(in);
}

// Only kc itself says the one behind it.
constexpr JobState kLastOfEngine = JobState::kTainted;

void write(ByteWriter& out, const Greeting& m) {
  out.u32(m.protocol);
  out.text(m.build_id);
}
void read(ByteReader& in, Greeting& m) {
  m.protocol = in.u32();
  m.build_id = in.text();
}

void write(ByteWriter& out, const Setup& m) {
  out.u32(static_cast<uint32_t>(m.compilers.size()));
  for (const backend::Compiler& compiler : m.compilers) backend::write_compiler(out, compiler);
  out.text(m.store_directory);
  out.u32(static_cast<uint32_t>(m.read_only_directories.size()));
  for (const std::string& directory : m.read_only_directories) out.text(directory);
  out.u8(static_cast<uint8_t>(m.store_mode));
  out.text(m.work_folder);
  out.u32(m.slots);
}
void read(ByteReader& in, Setup& m) {
  m.compilers.resize(in.count(32));
  for (backend::Compiler& compiler : m.compilers) compiler = backend::read_compiler(in);
  m.store_directory = in.text();
  m.read_only_directories.resize(in.count(kLeastText));
  for (std::string& directory : m.read_only_directories) directory = in.text();
  m.store_mode = read_enum(in, store::Mode::kRefresh);
  m.work_folder = in.text();
  m.slots = in.u32();
}

void write(ByteWriter& out, const Sources& m) {
  out.u32(m.set);
  out.u32(static_cast<uint32_t>(m.files.size()));
  for (const backend::Source& file : m.files) {
    out.text(file.identifier);
    out.u8(static_cast<uint8_t>(file.role));
    out.blob(file.bytes);
  }
}
void read(ByteReader& in, Sources& m) {
  m.set = in.u32();
  m.files.resize(in.count(kLeastSource));
  for (backend::Source& file : m.files) {
    file.identifier = in.text();
    file.role = read_enum(in, backend::Role::kLibrary);
    const base::ByteView bytes = in.blob();
    file.bytes.assign(bytes.begin(), bytes.end());
  }
}

void write(ByteWriter& out, const Forget& m) {
  out.u32(m.set);
}
void read(ByteReader& in, Forget& m) {
  m.set = in.u32();
}

void write(ByteWriter& out, const Job& m) {
  out.u32(m.id);
  out.text(m.backend);
  out.text(m.unit);
  write_digest(out, m.key);
  out.text(m.entry);
  out.text(m.target);
  write_pairs(out, m.options);
  write_pairs(out, m.config);
  out.u32(m.sources);
  out.i64(m.timeout.count());
  out.boolean(m.ignore_lock);
  out.boolean(m.waited);
}
void read(ByteReader& in, Job& m) {
  m.id = in.u32();
  m.backend = in.text();
  m.unit = in.text();
  m.key = read_digest(in);
  m.entry = in.text();
  m.target = in.text();
  m.options = read_pairs(in);
  m.config = read_pairs(in);
  m.sources = in.u32();
  m.timeout = util::Nanoseconds(in.i64());
  m.ignore_lock = in.boolean();
  m.waited = in.boolean();
}

void write(ByteWriter& out, const Started& m) {
  out.u32(m.id);
}
void read(ByteReader& in, Started& m) {
  m.id = in.u32();
}

void write(ByteWriter& out, const Group& m) {
  out.u32(m.id);
  out.u32(static_cast<uint32_t>(m.group));
  out.boolean(m.begins);
}
void read(ByteReader& in, Group& m) {
  m.id = in.u32();
  m.group = static_cast<int32_t>(in.u32());
  m.begins = in.boolean();
  if (m.group <= 1) in.fail();  // kill(-1) and kill(0) reach others; no child of ours has such a group
}

void write(ByteWriter& out, const Done& m) {
  out.u32(m.id);
  out.u8(static_cast<uint8_t>(m.state));
  write_optional_digest(out, m.module);
  write_optional_digest(out, m.content_key);
  artifact::write_artifact(out, m.artifact);
  out.text(m.message);
  out.text(m.hint);
  out.text(m.output);
  out.f64(m.seconds);
  out.u64(m.peak_bytes);
  out.u32(static_cast<uint32_t>(m.signers.size()));
  for (const std::string& signer : m.signers) out.text(signer);
  out.boolean(m.holds_key);
}
void read(ByteReader& in, Done& m) {
  m.id = in.u32();
  m.state = read_enum(in, kLastOfEngine);
  m.module = read_optional_digest(in);
  m.content_key = read_optional_digest(in);
  m.artifact = artifact::read_artifact(in);
  m.message = in.text();
  m.hint = in.text();
  m.output = in.text();
  m.seconds = in.f64();
  m.peak_bytes = in.u64();
  m.signers.resize(in.count(kLeastText));
  for (std::string& signer : m.signers) signer = in.text();
  m.holds_key = in.boolean();
}

void write(ByteWriter& out, const Release& m) {
  out.u32(m.id);
}
void read(ByteReader& in, Release& m) {
  m.id = in.u32();
}

// Tries alternative I, whose type byte is I + 1.
template <size_t I = 0>
std::optional<Message> decode_alternative(uint8_t type, ByteReader& in) {
  if constexpr (I < std::variant_size_v<Message>) {
    if (type != I + 1) return decode_alternative<I + 1>(type, in);
    std::variant_alternative_t<I, Message> message;
    read(in, message);
    if (!in.complete()) return std::nullopt;
    return message;
  } else {
    return std::nullopt;
  }
}

}  // namespace

base::Bytes encode(const Message& message) {
  ByteWriter out;
  out.u32(0);  // the length, known at the end
  out.u8(static_cast<uint8_t>(message.index() + 1));
  std::visit([&](const auto& m) { write(out, m); }, message);
  base::Bytes frame = out.take();
  const auto length = static_cast<uint32_t>(frame.size() - kHeadSize);
  std::memcpy(frame.data(), &length, sizeof length);
  return frame;
}

std::optional<Message> decode(base::ByteView frame) {
  ByteReader in(frame);
  const uint8_t type = in.u8();
  return decode_alternative(type, in);
}

void FrameReader::feed(base::ByteView bytes) {
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

base::Result<std::optional<Message>> FrameReader::next() {
  const base::ByteView waiting = base::ByteView(buffer_).subspan(at_);
  if (waiting.size() < kHeadSize) return std::optional<Message>();
  const auto length = base::load_le<uint32_t>(waiting, 0);
  if (length == 0 || length > kMaxFrame) {
    return base::fail(base::ErrorKind::kInternal, "the engine connection carries a frame of a bad length");
  }
  if (waiting.size() < kHeadSize + length) return std::optional<Message>();
  std::optional<Message> message = decode(waiting.subspan(kHeadSize, length));
  if (!message) {
    return base::fail(base::ErrorKind::kInternal, "the engine connection carries a damaged frame");
  }
  at_ += kHeadSize + length;
  if (at_ == buffer_.size() || at_ > (1U << 20)) {  // moves the rest rarely, keeps the buffer small
    buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<ptrdiff_t>(at_));
    at_ = 0;
  }
  return message;
}

base::Result<base::Bytes> encode_bounded(const Message& message) {
  base::Bytes frame = encode(message);
  if (frame.size() - kHeadSize > kMaxFrame) {
    return base::fail(base::ErrorKind::kFailed, "a source or code object is too large to hand to the engine");
  }
  return frame;
}

base::Bytes encode_answer(const Message& message, size_t most) {
  base::Bytes frame = encode(message);
  const Done* whole = std::get_if<Done>(&message);
  if (whole == nullptr || frame.size() - kHeadSize <= most) return frame;
  Done said;
  said.id = whole->id;
  said.state = JobState::kFailed;
  said.message = "its code object or report is too large to hand back from the engine";
  said.seconds = whole->seconds;
  said.peak_bytes = whole->peak_bytes;
  said.holds_key = whole->holds_key;
  return encode(said);
}

base::Result<void> send(int socket, const Message& message) {
  KC_ASSIGN(const base::Bytes frame, encode_bounded(message));
  return send_frames(socket, frame);
}

base::Result<void> send_frames(int socket, base::ByteView frames) {
  base::ByteView rest = frames;
  while (!rest.empty()) {
    const ssize_t put = ::send(socket, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      return base::fail_errno(base::ErrorKind::kInternal, "write to", "the engine connection", errno);
    }
    rest = rest.subspan(static_cast<size_t>(put));
  }
  return {};
}

}  // namespace kc::engine
