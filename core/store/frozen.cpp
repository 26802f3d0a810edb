#include "store/frozen.h"

#include <algorithm>
#include <utility>

#include "base/digest.h"
#include "base/files.h"

namespace kc::store {
namespace {

constexpr size_t kDigestAt = 32;

// What the first read takes: a header of usual size at once.
constexpr uint64_t kFirstRead = 4096;

base::Digest header_digest(base::ByteView header) {
  return base::Sha256().update(header.first(kDigestAt)).update(header.subspan(kFrozenSize)).finish();
}

Checked<base::Bytes> read_at(int fd, uint64_t offset, uint64_t size) {
  auto bytes = base::pread_exact(fd, offset, static_cast<size_t>(size), "file");
  if (bytes) return std::move(*bytes);
  const Flaw flaw = bytes.error().kind == base::ErrorKind::kFailed ? Flaw::kDamaged : Flaw::kUnreadable;
  return std::unexpected(Refusal{flaw, bytes.error().message});
}

}  // namespace

base::Bytes build_header(std::string_view magic, uint32_t version, uint32_t flags, base::ByteView fields,
                         uint64_t payload_size) {
  base::ByteWriter out;
  out.raw(base::as_bytes(magic));
  out.u32(version);
  out.u32(flags);
  out.u64(kFrozenSize + fields.size());
  out.u64(payload_size);
  out.raw(base::Digest{}.view());
  out.raw(fields);
  base::Bytes header = out.take();
  const base::Digest digest = header_digest(header);
  std::copy(digest.bytes.begin(), digest.bytes.end(), header.begin() + kDigestAt);
  return header;
}

Checked<Frozen> read_frozen(base::ByteView head, std::string_view magic, uint64_t file_size) {
  if (head.size() < kFrozenSize) return damaged("is too short for a header");
  base::ByteReader in(head.first(kFrozenSize));
  if (base::as_text(in.raw(magic.size())) != magic) return damaged("does not start as such a file does");
  Frozen frozen;
  frozen.version = in.u32();
  frozen.flags = in.u32();
  frozen.header_size = in.u64();
  frozen.payload_size = in.u64();
  if (frozen.header_size < kFrozenSize || frozen.header_size > kMaxHeader || frozen.header_size > file_size) {
    return damaged("has an impossible header size");
  }
  return frozen;
}

Checked<void> check_header(base::ByteView header, const Frozen& frozen, uint32_t known_flags,
                           uint64_t file_size) {
  if (header_digest(header) != base::digest_from(header.subspan(kDigestAt, 32))) {
    return damaged("has a header that does not match its digest");
  }
  if (frozen.version != kVersion) {
    return std::unexpected(Refusal{
        Flaw::kNewer, "has version " + std::to_string(frozen.version) + ", which this kc does not read"});
  }
  if ((frozen.flags & ~known_flags) != 0) return damaged("has flags that its version does not define");
  if (frozen.payload_size != file_size - frozen.header_size) {
    return damaged("does not have the size that its header states");
  }
  return {};
}

Checked<HeaderBytes> read_header(int fd, std::string_view magic, uint32_t known_flags, uint64_t file_size) {
  KC_ASSIGN(base::Bytes head, read_at(fd, 0, std::min(file_size, kFirstRead)));
  KC_ASSIGN(const Frozen frozen, read_frozen(head, magic, file_size));
  if (frozen.header_size > head.size()) {
    KC_ASSIGN(head, read_at(fd, 0, frozen.header_size));
  }
  head.resize(static_cast<size_t>(frozen.header_size));
  KC_TRY(check_header(head, frozen, known_flags, file_size));
  return HeaderBytes{frozen, std::move(head)};
}

Checked<base::Bytes> read_payload(int fd, const Frozen& frozen) {
  return read_at(fd, frozen.header_size, frozen.payload_size);
}

}  // namespace kc::store
