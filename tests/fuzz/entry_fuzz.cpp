// Entries and records of the store: what decodes is what was encoded, from memory and from a file alike.
#include <cstddef>
#include <utility>

#include "base/digest.h"
#include "fuzz/fuzz.h"
#include "fuzz/memory_file.h"
#include "fuzz/repair.h"
#include "store/entry_codec.h"
#include "store/record_codec.h"

namespace kc::fuzz {
namespace {

using store::Entry;

// The key in the header, so that any file can be asked for under its own name.
base::Digest key_of(base::ByteView file) {
  constexpr size_t kKeyAt = store::kFrozenSize;
  constexpr size_t kKeySize = 32;
  if (file.size() < kKeyAt + kKeySize) return {};
  return base::digest_from(file.subspan(kKeyAt, kKeySize));
}

base::Bytes encoded(const Entry& entry) {
  auto bytes = store::encode_entry(entry);
  KC_PROMISE(bytes);
  return std::move(*bytes);
}

bool check_file(base::ByteView file) {
  const base::Digest key = key_of(file);
  const store::Checked<Entry> entry = store::decode_entry(file, key);
  static MemoryFile on_disk;
  on_disk.fill(file);
  const store::Checked<Entry> read = store::read_entry(on_disk.fd(), key, file.size());
  KC_PROMISE(read.has_value() == entry.has_value());
  if (!entry) {
    KC_PROMISE(!entry.error().why.empty());
    KC_PROMISE(entry.error().why == read.error().why || read.error().flaw == entry.error().flaw);
    return false;
  }
  KC_PROMISE(entry->key == key);
  KC_PROMISE(entry->unsupported == entry->artifact.code.empty());
  const base::Bytes bytes = encoded(*entry);
  KC_PROMISE(encoded(*read) == bytes);
  const store::Checked<Entry> again = store::decode_entry(bytes, key);
  KC_PROMISE(again);
  KC_PROMISE(again->artifact == entry->artifact);
  KC_PROMISE(encoded(*again) == bytes);

  base::Digest other = key;
  other.bytes[0] ^= 1;
  KC_PROMISE(!store::decode_entry(file, other));
  return true;
}

bool is_record(base::ByteView file) {
  return file.size() >= store::kRecordMagic.size() &&
         base::as_text(file.first(store::kRecordMagic.size())) == store::kRecordMagic;
}

bool check_record(base::ByteView file) {
  const base::Digest key = key_of(file);
  const store::Checked<store::Record> record = store::decode_record(file, key);
  static MemoryFile on_disk;
  on_disk.fill(file);
  const store::Checked<store::Record> read = store::read_record(on_disk.fd(), key, file.size());
  KC_PROMISE(read.has_value() == record.has_value());
  if (!record) {
    KC_PROMISE(!record.error().why.empty());
    return false;
  }
  KC_PROMISE(record->request == key);
  const auto bytes = store::encode_record(*record);
  KC_PROMISE(bytes);
  KC_PROMISE(base::as_text(*bytes) == base::as_text(file));  // there is one way to write a record
  base::Digest other = key;
  other.bytes[0] ^= 1;
  KC_PROMISE(!store::decode_record(file, other));
  return true;
}

}  // namespace

bool check(base::ByteView input) {
  if (is_record(input)) {
    const bool whole = check_record(input);
    if (!whole) check_record(repair_record(input));
    return whole;
  }
  const bool whole = check_file(input);
  if (!whole) check_file(repair_entry(input));
  return whole;
}

}  // namespace kc::fuzz
