#include "store/local_tier.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "base/atomic_file.h"
#include "base/file_system.h"
#include "store/collector.h"
#include "store/entry_codec.h"
#include "store/record_codec.h"
#include "store/removal.h"
#include "store/stored_file.h"

namespace kc::store {
namespace {

using base::Bytes;
using base::Digest;
using base::ErrorKind;
using base::FileDescriptor;

// Blocks of this size are what small files take on the usual file systems.
constexpr uint64_t kBlock = 4096;

std::unexpected<Refusal> unreadable(const base::Error& error) {
  return std::unexpected(Refusal{Flaw::kUnreadable, error.text()});
}

Refusal named(Refusal refusal, Kind kind, const Digest& key) {
  refusal.why = stored_path(kind, key) + ": " + refusal.why;
  return refusal;
}

// Imported, and signed by nobody who is trusted.
template <typename Stored>
bool is_nobodys(const Stored& stored) {
  return stored.imported && stored.signer.empty();
}

// Whether a record makes way for one that is put.
bool gives_way(const Record& there, const Record& put) {
  if (is_nobodys(there) != is_nobodys(put)) return is_nobodys(there);
  return there.content != put.content;
}

}  // namespace

bool LocalTier::is_missing(Kind kind, const Digest& key) const {
  struct stat status;
  return base::file_system().fstatat(layout_.version(), stored_path(kind, key).c_str(), &status,
                                     AT_SYMLINK_NOFOLLOW) != 0 &&
         errno == ENOENT;
}

template <typename Stored>
Checked<std::optional<Stored>> LocalTier::look_up(Kind kind, const Digest& key, Reader<Stored> read) {
  if (is_missing(kind, key)) return std::nullopt;
  const auto shard = layout_.open_shard(kind, shard_of(key), false);
  if (!shard) return unreadable(shard.error());
  if (!*shard) return std::nullopt;
  const auto file = open_stored(layout_, shard->get(), stored_name(kind, key));
  if (file && !*file) return std::nullopt;
  const struct stat* status = file ? &(*file)->status : nullptr;
  auto stored =
      file ? read((*file)->fd.get(), key, (*file)->size()) : Checked<Stored>(std::unexpected(file.error()));
  if (!stored) {
    if (stored.error().flaw == Flaw::kDamaged && writes()) move_aside(kind, shard->get(), key, status);
    return std::unexpected(named(std::move(stored).error(), kind, key));
  }
  if (writes() && is_off_by(*status, kTouchHit) &&
      base::file_system().futimens((*file)->fd.get(), nullptr) != 0) {
    const std::string path = stored_path(kind, key);
    survived(base::fail_errno(ErrorKind::kEnvironment, "touch", path, errno).error().text());
  }
  return std::move(*stored);
}

template <typename Stored>
Checked<std::optional<Stored>> LocalTier::peek(Kind kind, const Digest& key, Reader<Stored> read) const {
  if (is_missing(kind, key)) return std::nullopt;
  const auto shard = layout_.open_shard(kind, shard_of(key), false);
  if (!shard) return unreadable(shard.error());
  if (!*shard) return std::nullopt;
  return in_place(kind, shard->get(), key, read);
}

template <typename Stored>
Checked<std::optional<Stored>> LocalTier::in_place(Kind kind, int shard, const Digest& key,
                                                   Reader<Stored> read) const {
  auto file = open_stored(layout_, shard, stored_name(kind, key));
  if (!file) return std::unexpected(named(std::move(file).error(), kind, key));
  if (!*file) return std::nullopt;
  auto stored = read((*file)->fd.get(), key, (*file)->size());
  if (!stored) return std::unexpected(named(std::move(stored).error(), kind, key));
  return std::move(*stored);
}

void LocalTier::move_aside(Kind kind, int shard, const Digest& key, const struct stat* status) {
  const auto moved = store::move_aside(layout_, kind, shard, key, status);
  if (!moved) survived(moved.error().text());
}

Checked<std::optional<Entry>> LocalTier::do_get(const Digest& key, Deadline) {
  return look_up<Entry>(Kind::kEntry, key, read_entry);
}

Checked<std::optional<Record>> LocalTier::do_get_record(const Digest& request, Deadline) {
  return look_up<Record>(Kind::kRecord, request, read_record);
}

Checked<Held> LocalTier::do_holds(const Digest& key, Deadline) {
  KC_ASSIGN(const auto header, peek<EntryHeader>(Kind::kEntry, key, read_entry_header));
  if (!header) return Held::kNothing;
  return header->entry.unsupported ? Held::kUnsupported : Held::kCode;
}

Checked<std::optional<Digest>> LocalTier::do_recorded(const Digest& request, Deadline) {
  KC_ASSIGN(const auto record, peek<Record>(Kind::kRecord, request, read_record));
  return record ? std::optional(record->content) : std::nullopt;
}

void LocalTier::draw_collection(size_t bytes) {
  const uint64_t taken = (bytes + kBlock - 1) / kBlock * kBlock;
  if (draws_collection(taken, limit_bytes_, random_draw())) collection_due_ = true;
}

Checked<LocalTier::Put> LocalTier::do_put(const Entry& entry, Deadline) {
  if (!writes()) return Put::kDeclined;
  const auto bytes = encode_entry(entry);
  if (!bytes && bytes.error().kind == ErrorKind::kFailed) return Put::kDeclined;
  if (!bytes) return unreadable(bytes.error());
  if (limit_bytes_ != 0 && bytes->size() > low_mark(limit_bytes_)) return Put::kDeclined;
  const auto shard = layout_.open_shard(Kind::kEntry, shard_of(entry.key), true);
  if (!shard) return unreadable(shard.error());
  auto file = NewFile::write(layout_, *bytes, 0444);
  if (!file) return unreadable(file.error());
  KC_ASSIGN(const Put put, link_entry(*file, shard->get(), entry));
  draw_collection(bytes->size());
  return put;
}

Checked<LocalTier::Put> LocalTier::link_entry(NewFile& file, int shard, const Entry& entry) {
  const std::string name = stored_name(Kind::kEntry, entry.key);
  bool replaces = mode_ == Mode::kRefresh;
  // Twice: something damaged may have to be moved out of the way.
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (!replaces) {
      const auto placed = file.place(shard, name);
      if (!placed) return unreadable(placed.error());
      if (*placed) return Put::kNew;
    }
    auto there = in_place<Entry>(Kind::kEntry, shard, entry.key, read_entry);
    if (there && *there && !replaces) {
      // Somebody else was faster with the same key.
      if (!is_nobodys((*there)->origin) || is_nobodys(entry.origin)) return Put::kThere;
      replaces = true;
    } else if (!there && there.error().flaw == Flaw::kDamaged) {
      damaged(there.error().why);
      move_aside(Kind::kEntry, shard, entry.key, nullptr);
    } else if (!there && (there.error().flaw == Flaw::kNewer || !replaces)) {
      return std::unexpected(std::move(there).error());  // nothing can be said of it, and it stays
    }
    if (!replaces) continue;
    if (const auto replaced = file.replace(shard, name); !replaced) return unreadable(replaced.error());
    return Put::kNew;
  }
  return std::unexpected(Refusal{Flaw::kUnreadable, stored_path(Kind::kEntry, entry.key) +
                                                        ": something that is not an entry is in its place"});
}

Checked<LocalTier::Put> LocalTier::do_put_record(const Record& record, Deadline) {
  if (!writes()) return Put::kDeclined;
  const auto bytes = encode_record(record);
  if (!bytes && bytes.error().kind == ErrorKind::kFailed) return Put::kDeclined;
  if (!bytes) return unreadable(bytes.error());
  const auto shard = layout_.open_shard(Kind::kRecord, shard_of(record.request), true);
  if (!shard) return unreadable(shard.error());
  auto there = in_place<Record>(Kind::kRecord, shard->get(), record.request, read_record);
  if (!there) {
    if (there.error().flaw != Flaw::kDamaged) return std::unexpected(std::move(there).error());
    damaged(there.error().why);
    move_aside(Kind::kRecord, shard->get(), record.request, nullptr);
  } else if (*there && mode_ != Mode::kRefresh && !gives_way(**there, record)) {
    return Put::kThere;
  }
  // Renamed, not linked: whoever comes between has put a record that is as good.
  auto file = NewFile::write(layout_, *bytes, 0444);
  if (!file) return unreadable(file.error());
  const auto replaced = file->replace(shard->get(), stored_name(Kind::kRecord, record.request));
  if (!replaced) return unreadable(replaced.error());
  draw_collection(bytes->size());
  return Put::kNew;
}

Checked<bool> LocalTier::do_remove(Kind kind, const Digest& key, Deadline) {
  if (!writes()) return false;
  const auto removed = remove_stored(layout_, kind, key);
  if (!removed) return unreadable(removed.error());
  return *removed;
}

Checked<void> LocalTier::do_list(Kind kind, const Visit& visit, Deadline deadline) {
  std::optional<base::Error> first;
  for (unsigned shard = 0; shard < kShards; ++shard) {
    if (now() > deadline) return std::unexpected(Refusal{Flaw::kUnreadable, "took too long to list"});
    const auto visited =
        visit_shard(layout_, kind, shard, [&](int folder, const char* name, const Digest& key) {
          const auto file = open_stored(layout_, folder, name);
          if (file && *file) visit(key, counted_bytes((*file)->status));
        });
    if (!visited && !first) first = visited.error();
  }
  if (first) return unreadable(*first);
  return {};
}

void LocalTier::touch(Kind kind, std::vector<Digest> keys) {
  if (!writes()) return;
  std::sort(keys.begin(), keys.end());  // so that each shard is opened once
  FileDescriptor shard;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (i == 0 || shard_of(keys[i]) != shard_of(keys[i - 1])) {
      auto opened = layout_.open_shard(kind, shard_of(keys[i]), false);
      if (!opened) survived(opened.error().text());
      shard = opened ? std::move(*opened) : FileDescriptor();
    }
    if (!shard) continue;
    const std::string name = stored_name(kind, keys[i]);
    struct stat status;
    if (base::file_system().fstatat(shard.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno != ENOENT) {
        const std::string path = stored_path(kind, keys[i]);
        survived(base::fail_errno(ErrorKind::kEnvironment, "stat", path, errno).error().text());
      }
      continue;
    }
    if (!S_ISREG(status.st_mode) || !is_off_by(status, kTouchUnchanged)) continue;
    if (base::file_system().utimensat(shard.get(), name.c_str(), nullptr, AT_SYMLINK_NOFOLLOW) != 0 &&
        errno != ENOENT) {
      const std::string path = stored_path(kind, keys[i]);
      survived(base::fail_errno(ErrorKind::kEnvironment, "touch", path, errno).error().text());
    }
  }
}

}  // namespace kc::store
