#include "store/sealed.h"

namespace kc::store {

base::Bytes seal(std::string_view magic, const base::Digest& id, base::ByteView payload) {
  base::ByteWriter fields;
  fields.raw(id.view());
  fields.raw(base::sha256(payload).view());
  base::Bytes out = build_header(magic, kVersion, 0, fields.bytes(), payload.size());
  out.insert(out.end(), payload.begin(), payload.end());
  return out;
}

Checked<base::Bytes> unseal(int fd, std::string_view magic, const base::Digest& id, uint64_t file_size,
                            uint64_t limit) {
  KC_ASSIGN(const HeaderBytes header, read_header(fd, magic, 0, file_size));
  base::ByteReader in(base::ByteView(header.bytes).subspan(kFrozenSize));
  const base::ByteView stored_id = in.raw(32);
  const base::ByteView digest = in.raw(32);
  if (!in.complete()) return damaged("has a header of the wrong size");
  if (base::digest_from(stored_id) != id) return damaged("belongs under another name");
  if (header.frozen.payload_size > limit) return damaged("is larger than such a file may be");
  KC_ASSIGN(base::Bytes payload, read_payload(fd, header.frozen));
  if (base::sha256(payload) != base::digest_from(digest)) return damaged("does not match its digest");
  return payload;
}

}  // namespace kc::store
