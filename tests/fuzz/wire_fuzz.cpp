// The stream between kc and kc-engine: the same messages however it is cut, and each message is exactly the
// bytes that it was read from.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/wire.h"
#include "fuzz/fuzz.h"

namespace kc::fuzz {
namespace {

struct Stream {
  std::vector<base::Bytes> frames;  // each message encoded again
  bool ended_badly = false;

  bool operator==(const Stream&) const = default;
};

// Takes all messages that are there; false when the stream is at an error.
bool drain(engine::FrameReader& reader, Stream& out) {
  for (;;) {
    const auto message = reader.next();
    if (!message) {
      KC_PROMISE(message.error().kind == base::ErrorKind::kInternal);
      out.ended_badly = true;
      return false;
    }
    if (!message->has_value()) return true;
    out.frames.push_back(engine::encode(**message));
  }
}

Stream read_whole(base::ByteView bytes) {
  Stream out;
  engine::FrameReader reader;
  reader.feed(bytes);
  drain(reader, out);
  return out;
}

// In pieces of 1 to 64 bytes that follow from the bytes themselves.
Stream read_in_pieces(base::ByteView bytes) {
  Stream out;
  engine::FrameReader reader;
  uint32_t state = 1;
  for (size_t at = 0; at < bytes.size();) {
    state = state * 1664525 + bytes[at] + 1013904223;  // Numerical Recipes' generator
    const size_t size = std::min<size_t>(1 + (state >> 26), bytes.size() - at);
    reader.feed(bytes.subspan(at, size));
    if (!drain(reader, out)) break;
    at += size;
  }
  return out;
}

}  // namespace

bool check(base::ByteView input) {
  const Stream stream = read_whole(input);
  KC_PROMISE(read_in_pieces(input) == stream);

  // The frames, one behind the other, are the stream as far as it was taken.
  size_t at = 0;
  for (const base::Bytes& frame : stream.frames) {
    KC_PROMISE(frame.size() <= input.size() - at);
    KC_PROMISE(std::ranges::equal(frame, input.subspan(at, frame.size())));
    constexpr size_t kLength = 4;
    const std::optional<engine::Message> message = engine::decode(base::ByteView(frame).subspan(kLength));
    KC_PROMISE(message);
    KC_PROMISE(engine::encode(*message) == frame);
    at += frame.size();
  }
  return !stream.frames.empty() && at == input.size() && !stream.ended_badly;
}

}  // namespace kc::fuzz
