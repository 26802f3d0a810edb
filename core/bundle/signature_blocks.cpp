// The blocks behind a bundle's content. Here they are only walked; what a signature is worth is decided by
// who demands one.
#include "base/digest.h"
#include "bundle/format.h"
#include "bundle/reader_impl.h"

namespace kc::bundle {

base::Result<std::vector<Reader::SignatureBlock>> Reader::Impl::signature_blocks() {
  std::vector<SignatureBlock> blocks;
  for (uint64_t at = header.layout.content_size; at < file_size;) {
    const std::string where = "signature block at offset " + std::to_string(at) + ": ";
    const uint64_t left = file_size - at;
    if (left < kSignatureHeaderSize) return damaged(where + "it is cut short");
    KC_ASSIGN(const base::Bytes head, base::pread_exact(fd.get(), at, kSignatureHeaderSize, path));
    if (base::as_text(head).substr(0, kSignatureMagic.size()) != kSignatureMagic) {
      return damaged(std::to_string(left) + " bytes from offset " + std::to_string(at) +
                     " on are no signature block");
    }
    if (blocks.size() == kMaxSignatures) {
      return damaged("it has more than " + std::to_string(kMaxSignatures) + " signature blocks");
    }
    const auto type = base::load_le<uint32_t>(head, 8);
    const auto payload_size = base::load_le<uint32_t>(head, 12);
    if (payload_size > kMaxSignaturePayload) {
      return damaged(where + "it claims " + std::to_string(payload_size) + " bytes");
    }
    if (type == kSignatureEd25519 && payload_size != kEd25519PayloadSize) {
      return damaged(where + "an Ed25519 block has " + std::to_string(kEd25519PayloadSize) + " bytes, not " +
                     std::to_string(payload_size));
    }
    const uint64_t size = align_to(kSignatureHeaderSize + payload_size, kAlignment);
    if (size > left) return damaged(where + "it is cut short");
    KC_ASSIGN(const base::Bytes block, base::pread_exact(fd.get(), at, size, path));
    const base::ByteView view = block;
    const base::ByteView payload = view.subspan(kSignatureHeaderSize, payload_size);
    if (base::Sha256().update(view.first(16)).update(payload).finish() !=
        base::digest_from(view.subspan(16, kDigestSize))) {
      return damaged(where + "its digest is wrong");
    }
    for (const uint8_t byte : view.subspan(kSignatureHeaderSize + payload_size)) {
      if (byte != 0) return damaged(where + "its padding is not zero");
    }
    blocks.push_back({type, at, payload_size});
    at += size;
  }
  return blocks;
}

}  // namespace kc::bundle
