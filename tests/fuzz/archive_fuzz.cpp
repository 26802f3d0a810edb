// Archives of the store: what is read twice gives the same items in order, and those give the archive again.
#include <fcntl.h>
#include <cstddef>
#include <string>
#include <tuple>
#include <vector>

#include "base/digest.h"
#include "base/files.h"
#include "bundle/signature.h"
#include "fuzz/fuzz.h"
#include "fuzz/memory_file.h"
#include "fuzz/repair.h"
#include "store/archive.h"
#include "store/entry_codec.h"
#include "store/record_codec.h"

namespace kc::fuzz {
namespace {

using base::ByteView;
using base::Digest;
using store::Kind;

// True when every item is an entry or a record, and what is behind them are signatures.
bool check_archive(ByteView file) {
  static MemoryFile on_disk;
  on_disk.fill(file);
  const auto reader = store::ArchiveReader::open(on_disk.path());
  if (!reader) {
    KC_PROMISE(!reader.error().message.empty());
    return false;
  }
  KC_PROMISE(reader->blocks().size() < file.size());
  const size_t content = file.size() - reader->blocks().size();
  KC_PROMISE(reader->content_digest() == base::sha256(file.first(content)));
  uint64_t entries = 0, records = 0;
  bool whole = true;
  std::vector<std::tuple<Kind, Digest>> before;
  const auto read = reader->visit_items([&](Kind kind, const Digest& key, ByteView item) {
    if (!before.empty()) KC_PROMISE(before.back() < std::tuple(kind, key));
    before.assign({{kind, key}});
    ++(kind == Kind::kEntry ? entries : records);
    whole &= kind == Kind::kEntry ? store::decode_entry(item, key).has_value()
                                  : store::decode_record(item, key).has_value();
    return base::Result<void>();
  });
  KC_PROMISE(read);
  KC_PROMISE(entries == reader->counts().entries);
  KC_PROMISE(records == reader->counts().records);
  const auto signatures = bundle::read_blocks(reader->blocks());
  return whole && signatures;
}

}  // namespace

bool check(ByteView input) {
  const bool whole = check_archive(input);
  if (!whole) check_archive(repair_archive(input));
  return whole;
}

}  // namespace kc::fuzz
