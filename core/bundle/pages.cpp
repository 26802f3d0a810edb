#include "bundle/pages.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/digest.h"

namespace kc::bundle {
namespace {

constexpr uint32_t kBits = 64;  // of one word of Pages::checked_

}  // namespace

Pages::Pages(const ByteSource& source, Section pages, Piece table)
    : source_(source),
      pages_(pages),
      table_(std::move(table)),
      checked_(source.is_memory() ? (pages.size / kPageSize + kBits - 1) / kBits : 0) {}

base::Result<Piece> Pages::load(uint32_t number) {
  loads_.fetch_add(1, std::memory_order_relaxed);
  const uint64_t offset = pages_.offset + number * kPageSize;
  base::Result<Piece> page = source_.read(offset, kPageSize);
  if (page) {
    const base::ByteView expected = table_.bytes.subspan(number * kDigestSize, kDigestSize);
    if (base::sha256(page->bytes) == base::digest_from(expected)) return page;
    page = base::fail_at(base::ErrorKind::kFailed, {source_.name()},
                         "the bundle is damaged: the digest of page " + std::to_string(number) +
                             " at offset " + std::to_string(offset) + " is wrong");
  }
  failures_.fetch_add(1, std::memory_order_relaxed);
  return page;
}

bool Pages::is_checked(uint32_t number) const {
  return (checked_[number / kBits].load(std::memory_order_relaxed) >> (number % kBits) & 1) != 0;
}

base::Result<Piece> Pages::page(uint32_t number) {
  if (source_.is_memory()) {
    if (is_checked(number)) return source_.read(pages_.offset + number * kPageSize, kPageSize);
    base::Result<Piece> page = load(number);
    if (page) checked_[number / kBits].fetch_or(uint64_t{1} << (number % kBits), std::memory_order_relaxed);
    return page;
  }
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = cache_.find(number); known != cache_.end()) return known->second;
  }
  base::Result<Piece> page = load(number);
  if (page) {
    const std::lock_guard lock(mutex_);
    if (cache_.size() == kMostCached) cache_.clear();
    cache_.insert_or_assign(number, *page);
  }
  return page;
}

base::Result<void> Pages::read(uint64_t offset, std::span<uint8_t> out) {
  uint64_t at = offset - pages_.offset;
  while (!out.empty()) {
    KC_ASSIGN(const Piece piece, page(static_cast<uint32_t>(at / kPageSize)));
    const base::ByteView part = piece.bytes.subspan(at % kPageSize);
    const size_t size = std::min(part.size(), out.size());
    std::memcpy(out.data(), part.data(), size);
    out = out.subspan(size);
    at += size;
  }
  return {};
}

base::Result<int> Pages::compare(uint64_t offset, uint64_t size, std::string_view text) {
  uint64_t at = offset - pages_.offset;
  while (size > 0 && !text.empty()) {
    KC_ASSIGN(const Piece piece, page(static_cast<uint32_t>(at / kPageSize)));
    const base::ByteView part = piece.bytes.subspan(at % kPageSize);
    const size_t length = std::min({part.size(), static_cast<size_t>(size), text.size()});
    const int order = std::memcmp(part.data(), text.data(), length);
    if (order != 0) return order;
    text.remove_prefix(length);
    at += length;
    size -= length;
  }
  return size > 0 ? 1 : text.empty() ? 0 : -1;
}

}  // namespace kc::bundle
