#include "store/store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/atomic_file.h"
#include "base/file_system.h"
#include "base/lock.h"
#include "store/collector.h"
#include "store/local_store.h"
#include "store/record_codec.h"
#include "store/stored_file.h"

namespace kc::store {
namespace {

using base::Bytes;
using base::ByteView;
using base::Digest;
using base::ErrorKind;
using base::FileDescriptor;
using base::Result;

// Blocks of this size are what small files take on the usual file systems.
constexpr uint64_t kBlock = 4096;

std::unique_ptr<KeyLocks> open_locks(FileDescriptor file) {
  const auto probe = base::try_lock_byte(file.get(), kProbeOffset);
  if (!probe) return nullptr;
  if (*probe) (void)base::unlock_byte(file.get(), kProbeOffset);
  return std::make_unique<KeyLocks>(std::move(file));
}

}  // namespace

template <typename Stored>
std::optional<Stored> LocalStore::look_up(Kind kind, const Digest& key, Reader<Stored> read) {
  if (!reads()) return std::nullopt;
  const auto shard = layout_->open_shard(kind, shard_of(key), false);
  if (!shard) {
    survived(shard.error().text());
    return std::nullopt;
  }
  if (!*shard) return std::nullopt;
  const auto file = open_stored(*layout_, shard->get(), stored_name(kind, key));
  if (!file) {
    refused(file.error(), kind, shard->get(), key, nullptr);
    return std::nullopt;
  }
  if (!*file) return std::nullopt;
  const int fd = (*file)->fd.get();
  const struct stat& status = (*file)->status;
  auto stored = read(fd, key, (*file)->size());
  if (!stored) {
    refused(stored.error(), kind, shard->get(), key, &status);
    return std::nullopt;
  }
  if (writes() && is_off_by(status, kTouchHit) && base::file_system().futimens(fd, nullptr) != 0) {
    const std::string path = stored_path(kind, key);
    survived(base::fail_errno(ErrorKind::kEnvironment, "touch", path, errno).error().text());
  }
  return std::move(*stored);
}

template <typename Stored>
std::optional<Stored> LocalStore::peek(Kind kind, const Digest& key, Reader<Stored> read) const {
  if (!reads()) return std::nullopt;
  const auto shard = layout_->open_shard(kind, shard_of(key), false);
  if (!shard || !*shard) return std::nullopt;
  auto stored = in_place(kind, shard->get(), key, read);
  return stored ? std::move(*stored) : std::nullopt;
}

template <typename Stored>
Checked<std::optional<Stored>> LocalStore::in_place(Kind kind, int shard, const Digest& key,
                                                    Reader<Stored> read) const {
  KC_ASSIGN(const auto file, open_stored(*layout_, shard, stored_name(kind, key)));
  if (!file) return std::nullopt;
  KC_ASSIGN(Stored stored, read(file->fd.get(), key, file->size()));
  return stored;
}

// What follows when a file was not what it should be. `status` is that of the file that was read, or null.
void LocalStore::refused(const Refusal& refusal, Kind kind, int shard, const Digest& key,
                         const struct stat* status) {
  switch (refusal.flaw) {
    case Flaw::kNewer:
      return;
    case Flaw::kUnreadable:
      survived(stored_path(kind, key) + ": " + refusal.why);
      return;
    case Flaw::kDamaged:
      damaged(stored_path(kind, key) + ": " + refusal.why);
      if (writes()) move_aside(kind, shard, key, status);
      return;
  }
}

void LocalStore::move_aside(Kind kind, int shard, const Digest& key, const struct stat* status) {
  const std::string name = stored_name(kind, key);
  struct stat now;
  if (base::file_system().fstatat(shard, name.c_str(), &now, AT_SYMLINK_NOFOLLOW) != 0) return;
  // Another process may have moved it and put a good one in its place.
  if (status != nullptr && (now.st_dev != status->st_dev || now.st_ino != status->st_ino)) return;
  const std::string bad = bad_name(key);
  if (base::file_system().renameat(shard, name.c_str(), layout_->temporary(), bad.c_str()) != 0) {
    if (errno == ENOENT) return;
    const std::string path = stored_path(kind, key);
    survived(base::fail_errno(ErrorKind::kEnvironment, "move aside", path, errno).error().text());
    return;
  }
  // From now on its age is that of the move. Without it, gc removes it sooner.
  (void)base::file_system().utimensat(layout_->temporary(), bad.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

void LocalStore::draw_collection(size_t bytes) {
  const uint64_t taken = (bytes + kBlock - 1) / kBlock * kBlock;
  if (draws_collection(taken, options_.limit_bytes, base::random_u64())) collection_due_ = true;
}

bool LocalStore::put(const Entry& entry) {
  if (!writes()) return false;
  const auto bytes = encode_entry(entry);
  if (!bytes) {
    if (bytes.error().kind != ErrorKind::kFailed) return survived(bytes.error().text());
    ++counters_.declined;
    return false;
  }
  if (options_.limit_bytes != 0 && bytes->size() > low_mark(options_.limit_bytes)) {
    ++counters_.declined;
    return false;
  }
  return write_entry(entry.key, *bytes);
}

bool LocalStore::write_entry(const Digest& key, ByteView bytes) {
  const auto shard = layout_->open_shard(Kind::kEntry, shard_of(key), true);
  if (!shard) return survived(shard.error().text());
  auto file = NewFile::write(*layout_, bytes, 0444);
  if (!file) return survived(file.error().text());
  if (!link_entry(*file, shard->get(), key)) return false;
  draw_collection(bytes.size());
  return true;
}

bool LocalStore::link_entry(NewFile& file, int shard, const Digest& key) {
  const std::string name = stored_name(Kind::kEntry, key);
  const std::string path = stored_path(Kind::kEntry, key);
  // Twice: something damaged may have to be moved out of the way.
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (options_.mode != Mode::kRefresh) {
      const auto placed = file.place(shard, name);
      if (!placed) return survived(placed.error().text());
      if (*placed) {
        ++counters_.puts;
        return true;
      }
    }
    const auto there = in_place<Entry>(Kind::kEntry, shard, key, read_entry);
    if (!there && there.error().flaw == Flaw::kNewer) {
      ++counters_.declined;
      return false;
    }
    if (!there && there.error().flaw == Flaw::kDamaged) {
      damaged(path + ": " + there.error().why);
      move_aside(Kind::kEntry, shard, key, nullptr);
    } else if (options_.mode != Mode::kRefresh) {
      // Somebody else was faster with the same key; or nothing can be said, and it stays.
      if (!there) return survived(path + ": cannot be read");
      if (*there) return true;
    }
    if (options_.mode == Mode::kRefresh) {
      if (const auto replaced = file.replace(shard, name); !replaced)
        return survived(replaced.error().text());
      ++counters_.puts;
      return true;
    }
  }
  return survived(path + ": something that is not an entry is in its place");
}

Held LocalStore::holds(const Digest& key) {
  const auto header = peek<EntryHeader>(Kind::kEntry, key, read_entry_header);
  if (!header) return Held::kNothing;
  return header->entry.unsupported ? Held::kUnsupported : Held::kCode;
}

std::optional<Record> LocalStore::get_record(const Digest& request) {
  return look_up<Record>(Kind::kRecord, request, read_record);
}

std::optional<Digest> LocalStore::recorded(const Digest& request) {
  const auto record = peek<Record>(Kind::kRecord, request, read_record);
  return record ? std::optional(record->content) : std::nullopt;
}

bool LocalStore::put_record(const Record& record) {
  if (!writes()) return false;
  const auto bytes = encode_record(record);
  if (bytes) return write_record(record, *bytes);
  if (bytes.error().kind != ErrorKind::kFailed) return survived(bytes.error().text());
  ++counters_.declined;
  return false;
}

bool LocalStore::write_record(const Record& record, ByteView bytes) {
  const auto shard = layout_->open_shard(Kind::kRecord, shard_of(record.request), true);
  if (!shard) return survived(shard.error().text());
  const auto there = in_place<Record>(Kind::kRecord, shard->get(), record.request, read_record);
  if (!there) {
    const std::string what = stored_path(Kind::kRecord, record.request) + ": " + there.error().why;
    switch (there.error().flaw) {
      case Flaw::kNewer:
        ++counters_.declined;
        return false;
      case Flaw::kUnreadable:
        return survived(what);
      case Flaw::kDamaged:
        damaged(what);
        move_aside(Kind::kRecord, shard->get(), record.request, nullptr);
    }
  } else if (*there && (*there)->content == record.content && options_.mode != Mode::kRefresh) {
    return true;
  }
  // Renamed, not linked: whoever comes between has put a record that is as good.
  auto file = NewFile::write(*layout_, bytes, 0444);
  if (!file) return survived(file.error().text());
  const auto named = file->replace(shard->get(), stored_name(Kind::kRecord, record.request));
  if (!named) return survived(named.error().text());
  draw_collection(bytes.size());
  return true;
}

void LocalStore::touch_all(Kind kind, std::vector<Digest> keys) {
  if (!layout_ || !writes()) return;
  std::sort(keys.begin(), keys.end());  // so that each shard is opened once
  FileDescriptor shard;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (i == 0 || shard_of(keys[i]) != shard_of(keys[i - 1])) {
      auto opened = layout_->open_shard(kind, shard_of(keys[i]), false);
      shard = opened ? std::move(*opened) : FileDescriptor();
    }
    if (!shard) continue;
    const std::string name = stored_name(kind, keys[i]);
    struct stat status;
    if (base::file_system().fstatat(shard.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!S_ISREG(status.st_mode) || !is_off_by(status, kTouchUnchanged)) continue;
    if (base::file_system().utimensat(shard.get(), name.c_str(), nullptr, AT_SYMLINK_NOFOLLOW) != 0 &&
        errno != ENOENT) {
      const std::string path = stored_path(kind, keys[i]);
      survived(base::fail_errno(ErrorKind::kEnvironment, "touch", path, errno).error().text());
    }
  }
}

Result<std::unique_ptr<Store>> Store::open(const Options& options) {
  if (options.mode == Mode::kOff) return std::make_unique<LocalStore>(options, std::nullopt, nullptr);
  const bool writes = options.mode != Mode::kReadOnly;
  KC_ASSIGN(auto layout, Layout::open(options.directory, writes ? Access::kMake : Access::kRead));
  std::unique_ptr<KeyLocks> locks;
  if (writes) {
    // The one file that is opened for writing before anything is put: it tells whether that is possible.
    auto file = base::open_at(layout->version(), "locks", O_RDWR | O_CREAT | O_NOFOLLOW, 0600,
                              ErrorKind::kEnvironment);
    if (!file) {
      file.error().message = "the store cannot be written: " + file.error().message;
      file.error().place.file = layout->path();
      file.error().hint = "use it with --store-mode=ro, or name another one with --store or KC_STORE_DIR";
      return std::unexpected(std::move(file).error());
    }
    locks = open_locks(std::move(*file));
  }
  return std::make_unique<LocalStore>(options, std::move(layout), std::move(locks));
}

}  // namespace kc::store
