#include "store/listing.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>

#include "base/file_system.h"
#include "base/files.h"
#include "store/collector.h"
#include "store/record_codec.h"
#include "store/removal.h"
#include "store/stored_file.h"

namespace kc::store {
namespace {

using base::Digest;
using base::ErrorKind;
using base::Result;

void take_status(Listed& listed, const struct stat& status) {
  listed.file_bytes = static_cast<uint64_t>(status.st_size);
  listed.disk_bytes = counted_bytes(status);
  listed.used_s = mtime_ns(status) / kSecondNs;
}

template <typename Stored>
using Reader = Checked<Stored> (*)(int fd, const Digest& key, uint64_t file_size);

// One file in an open two-digit folder; nothing when it has gone.
template <typename Stored>
std::optional<std::pair<Listed, Checked<Stored>>> look_at(const Layout& layout, Kind kind, int folder,
                                                          const Digest& key, Reader<Stored> read) {
  Listed listed{.kind = kind, .key = key};
  const std::string name = stored_name(kind, key);
  auto file = open_stored(layout, folder, name);
  if (!file) {
    // A link, a device or another user's: its size is told all the same.
    struct stat status;
    if (base::file_system().fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
      take_status(listed, status);
    }
    return std::pair(listed, Checked<Stored>(std::unexpected(std::move(file).error())));
  }
  if (!*file) return std::nullopt;
  take_status(listed, (*file)->status);
  return std::pair(listed, read((*file)->fd.get(), key, (*file)->size()));
}

template <typename Stored, typename Visitor>
std::vector<std::string> visit_all(const Layout& layout, Kind kind, Reader<Stored> read,
                                   const Visitor& visit) {
  std::vector<std::string> unread;
  for (unsigned shard = 0; shard < kShards; ++shard) {
    const auto keys = keys_in_shard(layout, kind, shard);
    if (!keys) {
      unread.push_back(keys.error().text());
      continue;
    }
    if (keys->empty()) continue;
    const auto folder = layout.open_shard(kind, shard, false);
    if (!folder) {
      unread.push_back(folder.error().text());
      continue;
    }
    if (!*folder) continue;
    for (const Digest& key : *keys) {
      const auto seen = look_at<Stored>(layout, kind, folder->get(), key, read);
      if (seen && !visit(seen->first, seen->second)) return unread;
    }
  }
  return unread;
}

template <typename Stored>
std::optional<std::pair<Listed, Checked<Stored>>> look_up(const std::optional<Layout>& layout, Kind kind,
                                                          const Digest& key, Reader<Stored> read) {
  if (!layout) return std::nullopt;
  const auto folder = layout->open_shard(kind, shard_of(key), false);
  if (!folder) {
    return std::pair(Listed{.kind = kind, .key = key},
                     Checked<Stored>(std::unexpected(Refusal{Flaw::kUnreadable, folder.error().text()})));
  }
  if (!*folder) return std::nullopt;
  return look_at<Stored>(*layout, kind, folder->get(), key, read);
}

Checked<base::Bytes> read_whole(int fd, uint64_t size, uint64_t limit) {
  if (size > limit) return damaged("is larger than such a file may be");
  auto bytes = base::pread_exact(fd, 0, static_cast<size_t>(size), "file");
  if (bytes) return std::move(*bytes);
  const Flaw flaw = bytes.error().kind == ErrorKind::kFailed ? Flaw::kDamaged : Flaw::kUnreadable;
  return std::unexpected(Refusal{flaw, bytes.error().message});
}

Checked<base::Bytes> entry_bytes(int fd, const Digest& key, uint64_t size) {
  KC_TRY(read_entry_header(fd, key, size));  // so that nothing else makes this take memory
  KC_ASSIGN(base::Bytes bytes, read_whole(fd, size, kMaxHeader + kMaxPayload));
  KC_TRY(decode_entry(bytes, key));
  return bytes;
}

Checked<base::Bytes> record_bytes(int fd, const Digest& key, uint64_t size) {
  KC_ASSIGN(base::Bytes bytes, read_whole(fd, size, kMaxHeader));
  KC_TRY(decode_record(bytes, key));
  return bytes;
}

// What look_up() gave, without the part that only lists want.
template <typename Stored>
Checked<std::optional<Stored>> without_listed(std::optional<std::pair<Listed, Checked<Stored>>> seen) {
  if (!seen) return std::nullopt;
  KC_ASSIGN(Stored stored, std::move(seen->second));
  return stored;
}

}  // namespace

Result<Listing> Listing::open(const std::string& root, Access access) {
  KC_ASSIGN(auto layout, Layout::open(root, access));
  return Listing(std::move(layout));
}

Result<Listing> Listing::open_read_only(const std::string& root) {
  KC_ASSIGN(auto layout, Layout::open_read_only(root));
  return Listing(std::move(layout));
}

std::vector<std::string> Listing::entries(const EntryVisitor& visit) const {
  if (!layout_) return {};
  return visit_all<EntryHeader>(*layout_, Kind::kEntry, read_entry_header, visit);
}

std::vector<std::string> Listing::records(const RecordVisitor& visit) const {
  if (!layout_) return {};
  return visit_all<Record>(*layout_, Kind::kRecord, read_record, visit);
}

Result<std::vector<Digest>> Listing::with_prefix(Kind kind, std::string_view hex) const {
  unsigned shard = 0;
  const auto parsed = std::from_chars(hex.data(), hex.data() + std::min<size_t>(hex.size(), 2), shard, 16);
  if (hex.size() < 2 || parsed.ptr != hex.data() + 2) {
    return base::fail(ErrorKind::kInternal, "a prefix of a key is at least two hexadecimal digits");
  }
  if (!layout_) return std::vector<Digest>();
  KC_ASSIGN(std::vector<Digest> keys, keys_in_shard(*layout_, kind, shard));
  std::erase_if(keys, [&](const Digest& key) { return !key.hex().starts_with(hex); });
  return keys;
}

std::optional<std::pair<Listed, Checked<EntryHeader>>> Listing::entry(const Digest& key) const {
  return look_up<EntryHeader>(layout_, Kind::kEntry, key, read_entry_header);
}

std::optional<std::pair<Listed, Checked<Record>>> Listing::record(const Digest& request) const {
  return look_up<Record>(layout_, Kind::kRecord, request, read_record);
}

Checked<std::optional<Entry>> Listing::whole_entry(const Digest& key) const {
  return without_listed(look_up<Entry>(layout_, Kind::kEntry, key, read_entry));
}

Checked<std::optional<base::Bytes>> Listing::bytes(Kind kind, const Digest& key) const {
  return without_listed(
      look_up<base::Bytes>(layout_, kind, key, kind == Kind::kEntry ? entry_bytes : record_bytes));
}

Result<bool> Listing::remove(Kind kind, const Digest& key) const {
  if (!layout_) return false;
  if (layout_->access() == Access::kRead) {
    return base::fail(ErrorKind::kInternal, "a store that was opened for reading is not changed");
  }
  return remove_stored(*layout_, kind, key);
}

}  // namespace kc::store
