#include "bundle/pages.h"

#include <algorithm>
#include <cstring>

#include "base/digest.h"
#include "base/files.h"

namespace kc::bundle {

base::Result<base::ByteView> Pages::page(uint32_t number) {
  if (const auto known = cache_.find(number); known != cache_.end()) return base::ByteView(known->second);
  ++loads_;
  const uint64_t offset = pages_.offset + number * kPageSize;
  base::Result<base::Bytes> bytes = base::pread_exact(fd_, offset, kPageSize, path_);
  if (!bytes) {
    ++failures_;
    return std::unexpected(std::move(bytes).error());
  }
  const base::ByteView expected = base::ByteView(table_).subspan(number * kDigestSize, kDigestSize);
  if (base::sha256(*bytes) != base::digest_from(expected)) {
    ++failures_;
    return base::fail_at(base::ErrorKind::kFailed, {path_},
                         "the bundle is damaged: the digest of page " + std::to_string(number) +
                             " at offset " + std::to_string(offset) + " is wrong");
  }
  if (cache_.size() == kMostCached) cache_.clear();
  return base::ByteView(cache_.emplace(number, std::move(*bytes)).first->second);
}

base::Result<void> Pages::read(uint64_t offset, std::span<uint8_t> out) {
  uint64_t at = offset - pages_.offset;
  while (!out.empty()) {
    KC_ASSIGN(const base::ByteView bytes, page(static_cast<uint32_t>(at / kPageSize)));
    const base::ByteView part = bytes.subspan(at % kPageSize);
    const size_t size = std::min(part.size(), out.size());
    std::memcpy(out.data(), part.data(), size);
    out = out.subspan(size);
    at += size;
  }
  return {};
}

}  // namespace kc::bundle
