#include "bundle/pages.h"

#include <algorithm>
#include <cstring>
#include <optional>
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
  base::Result<Piece> page = source_.read(pages_.offset + number * kPageSize, kPageSize);
  if (!page) failures_.fetch_add(1, std::memory_order_relaxed);
  return page;
}

base::Result<void> Pages::check(uint32_t number, const Piece& piece) {
  const base::ByteView expected = table_.bytes.subspan(number * kDigestSize, kDigestSize);
  if (base::sha256(piece.bytes) == base::digest_from(expected)) return {};
  failures_.fetch_add(1, std::memory_order_relaxed);
  return base::fail_at(base::ErrorKind::kFailed, {source_.name()},
                       "the bundle is damaged: the digest of page " + std::to_string(number) + " at offset " +
                           std::to_string(pages_.offset + number * kPageSize) + " is wrong");
}

base::Result<Piece> Pages::page_of_memory(uint32_t number, Trust trust) {
  std::atomic<uint64_t>& word = checked_[number / kBits];
  const uint64_t bit = uint64_t{1} << (number % kBits);
  if (trust == Trust::kGuess || (word.load(std::memory_order_relaxed) & bit) != 0) {
    return source_.read(pages_.offset + number * kPageSize, kPageSize);
  }
  KC_ASSIGN(Piece piece, load(number));
  KC_TRY(check(number, piece));
  word.fetch_or(bit, std::memory_order_relaxed);
  return piece;
}

base::Result<Piece> Pages::page(uint32_t number, Trust trust) {
  if (source_.is_memory()) return page_of_memory(number, trust);
  std::optional<Piece> piece;
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = cache_.find(number); known != cache_.end()) {
      if (known->second.is_checked || trust == Trust::kGuess) return known->second.piece;
      piece = known->second.piece;  // private memory: what is checked now stays so
    }
  }
  if (!piece) {
    KC_ASSIGN(piece, load(number));
  }
  const bool is_checked = trust == Trust::kChecked;
  base::Result<void> checked;
  if (is_checked) checked = check(number, *piece);
  const std::lock_guard lock(mutex_);
  if (!checked) {
    // The next one reads it anew: a guess may have read the file while somebody wrote it.
    if (const auto known = cache_.find(number); known != cache_.end() && !known->second.is_checked) {
      cache_.erase(known);
    }
    return std::unexpected(std::move(checked).error());
  }
  if (cache_.size() == kMostCached) cache_.clear();
  const auto [at, is_new] = cache_.try_emplace(number, Kept{*piece, is_checked});
  if (!is_new && is_checked && !at->second.is_checked) at->second = {*piece, true};
  return std::move(*piece);
}

base::Result<void> Pages::read(uint64_t offset, std::span<uint8_t> out, Trust trust) {
  uint64_t at = offset - pages_.offset;
  while (!out.empty()) {
    KC_ASSIGN(const Piece piece, page(static_cast<uint32_t>(at / kPageSize), trust));
    const base::ByteView part = piece.bytes.subspan(at % kPageSize);
    const size_t size = std::min(part.size(), out.size());
    std::memcpy(out.data(), part.data(), size);
    out = out.subspan(size);
    at += size;
  }
  return {};
}

base::Result<int> Pages::compare(uint64_t offset, uint64_t size, std::string_view text, Trust trust) {
  uint64_t at = offset - pages_.offset;
  while (size > 0 && !text.empty()) {
    KC_ASSIGN(const Piece piece, page(static_cast<uint32_t>(at / kPageSize), trust));
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
