// What lies in a store, file by file: for `kc store ls`, `show`, `rm`, `export`, and whoever else must see
// all of it. Nothing is moved aside, touched or counted, whatever is found.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/digest.h"
#include "base/error.h"
#include "store/entry_codec.h"
#include "store/frozen.h"
#include "store/layout.h"
#include "store/store.h"

namespace kc::store {

/// A file of the store, as its name and its inode tell.
struct Listed {
  Kind kind = Kind::kEntry;
  base::Digest key;         // content key of an entry, request key of a record
  uint64_t file_bytes = 0;  // its size
  uint64_t disk_bytes = 0;  // as the limit counts it: allocated, or the size where that is more
  int64_t used_s = 0;       // last use, since the epoch
};

/// One store, for reading or for removing. Any thread may use it.
class Listing {
 public:
  /// A store that is not there is an empty one. Refuses a root as Store::open does.
  static base::Result<Listing> open(const std::string& root, Access access = Access::kRead);
  /// One under the user's own: as Store::open opens it.
  static base::Result<Listing> open_read_only(const std::string& root);

  /// Gets each file with what its header says, or why that cannot be believed. False stops the visit.
  using EntryVisitor = std::function<bool(const Listed&, const Checked<EntryHeader>&)>;
  using RecordVisitor = std::function<bool(const Listed&, const Checked<Record>&)>;
  /// All entries (records) in the order of their keys. Takes memory for the keys of one 256th of them and for
  /// one header. Files that go while this runs are left out. Returns the folders that could not be read, and
  /// why: what is in them was not visited.
  [[nodiscard]] std::vector<std::string> entries(const EntryVisitor& visit) const;
  [[nodiscard]] std::vector<std::string> records(const RecordVisitor& visit) const;

  /// Those whose names start with `hex`, of 2 to 64 lower-case digits, in order. Only names are read.
  base::Result<std::vector<base::Digest>> with_prefix(Kind kind, std::string_view hex) const;

  /// One of them; nothing when there is none.
  std::optional<std::pair<Listed, Checked<EntryHeader>>> entry(const base::Digest& key) const;
  std::optional<std::pair<Listed, Checked<Record>>> record(const base::Digest& request) const;
  /// A whole entry, its payload checked too.
  Checked<std::optional<Entry>> whole_entry(const base::Digest& key) const;
  /// A file as it stands, checked as whole_entry() does; nothing when there is none.
  Checked<std::optional<base::Bytes>> bytes(Kind kind, const base::Digest& key) const;

  /// False when there was none. Needs Access::kChange.
  base::Result<bool> remove(Kind kind, const base::Digest& key) const;

 private:
  explicit Listing(std::optional<Layout> layout) : layout_(std::move(layout)) {}

  std::optional<Layout> layout_;  // nothing: the store is not there
};

}  // namespace kc::store
