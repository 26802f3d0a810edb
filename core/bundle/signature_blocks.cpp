// The blocks behind a bundle's content. Here they are only walked; what a signature is worth is decided by
// who demands one.
#include <algorithm>
#include <utility>

#include "base/digest.h"
#include "bundle/blocks.h"
#include "bundle/format.h"
#include "bundle/reader_impl.h"
#include "bundle/signature.h"

namespace kc::bundle {
namespace {

// Precondition: the payload of a block of type kSignatureEd25519.
Signature signature_of(base::ByteView payload) {
  Signature out;
  std::copy_n(payload.begin(), out.key.bytes.size(), out.key.bytes.begin());
  std::copy_n(payload.begin() + static_cast<std::ptrdiff_t>(out.key.bytes.size()), out.bytes.size(),
              out.bytes.begin());
  return out;
}

base::Digest block_digest(base::ByteView head, base::ByteView payload) {
  return base::Sha256().update(head).update(payload).finish();
}

}  // namespace

base::Result<void> walk_blocks(uint64_t begin, uint64_t end, const BlockBytes& read, const BlockFault& fault,
                               const std::function<void(Block)>& visit) {
  uint32_t count = 0;
  for (uint64_t at = begin; at < end;) {
    const std::string where = "signature block at offset " + std::to_string(at) + ": ";
    const uint64_t left = end - at;
    if (left < kSignatureHeaderSize) return fault(where + "it is cut short");
    KC_ASSIGN(const base::Bytes head, read(at, kSignatureHeaderSize));
    if (base::as_text(head).substr(0, kSignatureMagic.size()) != kSignatureMagic) {
      return fault(std::to_string(left) + " bytes from offset " + std::to_string(at) +
                   " on are no signature block");
    }
    if (count++ == kMaxSignatures) {
      return fault("it has more than " + std::to_string(kMaxSignatures) + " signature blocks");
    }
    const auto type = base::load_le<uint32_t>(head, 8);
    const auto payload_size = base::load_le<uint32_t>(head, 12);
    if (payload_size > kMaxSignaturePayload) {
      return fault(where + "it claims " + std::to_string(payload_size) + " bytes");
    }
    if (type == kSignatureEd25519 && payload_size != kEd25519PayloadSize) {
      return fault(where + "an Ed25519 block has " + std::to_string(kEd25519PayloadSize) + " bytes, not " +
                   std::to_string(payload_size));
    }
    const uint64_t size = align_to(kSignatureHeaderSize + payload_size, kAlignment);
    if (size > left) return fault(where + "it is cut short");
    KC_ASSIGN(const base::Bytes block, read(at, size));
    const base::ByteView view = block;
    const base::ByteView payload = view.subspan(kSignatureHeaderSize, payload_size);
    if (block_digest(view.first(16), payload) != base::digest_from(view.subspan(16, kDigestSize))) {
      return fault(where + "its digest is wrong");
    }
    for (const uint8_t byte : view.subspan(kSignatureHeaderSize + payload_size)) {
      if (byte != 0) return fault(where + "its padding is not zero");
    }
    // What was read last counts: the file may have changed since its head was read.
    if (!std::equal(head.begin(), head.begin() + 16, block.begin())) return fault(where + "it changes");
    visit({type, at, base::Bytes(payload.begin(), payload.end())});
    at += size;
  }
  return {};
}

base::Bytes encode_block(const Signature& signature) {
  base::ByteWriter payload;
  payload.raw(signature.key.bytes);
  payload.raw(signature.bytes);
  base::ByteWriter out;
  out.raw(base::as_bytes(kSignatureMagic));
  out.u32(kSignatureEd25519);
  out.u32(kEd25519PayloadSize);
  out.raw(block_digest(out.bytes(), payload.bytes()).view());
  out.raw(payload.bytes());
  out.pad_to(kAlignment);
  return out.take();
}

base::Result<std::vector<Signature>> read_blocks(base::ByteView blocks) {
  std::vector<Signature> out;
  const auto read = [&](uint64_t offset, size_t size) -> base::Result<base::Bytes> {
    const base::ByteView part = blocks.subspan(static_cast<size_t>(offset), size);
    return base::Bytes(part.begin(), part.end());
  };
  const auto fault = [](const std::string& what) { return base::fail(base::ErrorKind::kFailed, what); };
  KC_TRY(walk_blocks(0, blocks.size(), read, fault, [&](const Block& block) {
    if (block.type == kSignatureEd25519) out.push_back(signature_of(block.payload));
  }));
  return out;
}

base::Result<void> Reader::Impl::walk_signatures(const std::function<void(Block)>& visit) const {
  const auto read = [&](uint64_t offset, size_t size) -> base::Result<base::Bytes> {
    KC_ASSIGN(const Piece piece, source->read(offset, size));
    return base::Bytes(piece.bytes.begin(), piece.bytes.end());
  };
  const auto fault = [&](const std::string& what) { return damaged(what); };
  return walk_blocks(header.layout.content_size, source->size(), read, fault, visit);
}

base::Result<std::vector<Reader::SignatureBlock>> Reader::Impl::signature_blocks() const {
  std::vector<SignatureBlock> blocks;
  KC_TRY(walk_signatures([&](const Block& block) {
    blocks.push_back({block.type, block.offset, static_cast<uint32_t>(block.payload.size())});
  }));
  return blocks;
}

base::Result<std::vector<Signature>> Reader::signatures() {
  std::vector<Signature> out;
  KC_TRY(impl_->walk_signatures([&](const Block& block) {
    if (block.type == kSignatureEd25519) out.push_back(signature_of(block.payload));
  }));
  return out;
}

}  // namespace kc::bundle
