#include "store/roots.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "base/file_system.h"
#include "store/collector.h"
#include "store/leads.h"
#include "store/new_file.h"
#include "store/sealed.h"
#include "store/stored_file.h"
#include "util/text.h"

namespace kc::store {
namespace {

using base::Bytes;
using base::Digest;
using base::ErrorKind;
using base::FileDescriptor;
using base::Result;

constexpr size_t kMaxName = 64;

// Two million keys; what a pin makes a reader allocate is a few times this.
constexpr uint64_t kMaxPin = 64ULL << 20;

// A collection removes some 100,000 files in a second. One that takes longer than this hangs in its disk.
constexpr std::chrono::seconds kLongestWait{30};
constexpr std::chrono::milliseconds kPoll{20};

std::string shown_path(const Layout& layout, const std::string& name) {
  return layout.path() + "/v1/roots/" + name;
}

void write_keys(base::ByteWriter& out, const std::unordered_set<Digest>& keys) {
  std::vector<Digest> sorted(keys.begin(), keys.end());
  std::sort(sorted.begin(), sorted.end());
  out.u32(static_cast<uint32_t>(sorted.size()));
  for (const Digest& key : sorted) out.raw(key.view());
}

bool read_keys(base::ByteReader& in, std::unordered_set<Digest>& out) {
  const uint32_t count = in.count(sizeof(Digest));
  out.reserve(count);
  Digest last;
  for (uint32_t i = 0; i < count; ++i) {
    const Digest key = base::read_digest(in);
    if (i != 0 && key <= last) return false;
    out.insert(key);
    last = key;
  }
  return in.ok();
}

Bytes encode_pin(const Pin& pin) {
  base::ByteWriter out;
  out.i64(pin.time_s);
  out.text(pin.source);
  write_keys(out, pin.keys.entries);
  write_keys(out, pin.keys.records);
  return out.take();
}

Checked<Pin> decode_pin(base::ByteView payload, const std::string& name) {
  base::ByteReader in(payload);
  Pin pin;
  pin.name = name;
  pin.time_s = in.i64();
  pin.source = in.text();
  if (!read_keys(in, pin.keys.entries) || !read_keys(in, pin.keys.records) || !in.complete()) {
    return damaged("has fields that do not add up");
  }
  return pin;
}

// Nothing when it was removed since it was listed.
Checked<std::optional<Pin>> read_pin(const Layout& layout, int folder, const std::string& name) {
  KC_ASSIGN(const auto file, open_stored(layout, folder, name));
  if (!file) return std::nullopt;
  KC_ASSIGN(const Bytes payload,
            unseal(file->fd.get(), kPinMagic, base::sha256(name), file->size(), kMaxPin));
  KC_ASSIGN(Pin pin, decode_pin(payload, name));
  return pin;
}

Result<std::vector<std::string>> names_in(int folder) {
  KC_ASSIGN(std::vector<std::string> names, base::list_directory(folder, "."));
  std::erase_if(names, [](const std::string& name) { return !is_pin_name(name); });
  return names;
}

// Names on disk: of the pin, and of the folders that may have been made for it.
Result<void> sync_names(const Layout& layout, int roots) {
  KC_TRY(base::sync_all(roots, layout.path() + "/v1/roots"));
  KC_TRY(base::sync_all(layout.version(), layout.path() + "/v1"));
  KC_ASSIGN(const FileDescriptor root,
            base::open_at(layout.version(), "..", O_RDONLY | O_DIRECTORY, 0, ErrorKind::kEnvironment));
  return base::sync_all(root.get(), layout.path());
}

// gc.lock, for which a collection that runs is waited for.
Result<FileDescriptor> collection_lock(const Layout& layout) {
  const auto until = std::chrono::steady_clock::now() + kLongestWait;
  for (;;) {
    KC_ASSIGN(FileDescriptor lock, try_collection_lock(layout));
    if (lock) return lock;
    if (std::chrono::steady_clock::now() > until) {
      return base::fail_at(ErrorKind::kEnvironment, {layout.path()},
                           "a collection of this store has been at work for half a minute",
                           "try again when it has ended");
    }
    std::this_thread::sleep_for(kPoll);
  }
}

// Counts the files of `keys`, which are sorted.
Result<void> count_files(const Layout& layout, Kind kind, const std::vector<Digest>& keys, Holding& out) {
  FileDescriptor folder;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (i == 0 || shard_of(keys[i]) != shard_of(keys[i - 1])) {
      KC_ASSIGN(folder, layout.open_shard(kind, shard_of(keys[i]), false));
    }
    struct stat status;
    const std::string name = stored_name(kind, keys[i]);
    if (!folder ||
        base::file_system().fstatat(folder.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(status.st_mode)) {
      ++out.missing;
      continue;
    }
    out.bytes += counted_bytes(status);
    ++(kind == Kind::kEntry ? out.entries : out.records);
  }
  return {};
}

}  // namespace

void KeySet::add(const KeySet& other) {
  entries.insert(other.entries.begin(), other.entries.end());
  records.insert(other.records.begin(), other.records.end());
}

bool is_pin_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxName && util::is_letter_or_digit(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return util::is_letter_or_digit(c) || c == '.' || c == '_' || c == '-'; });
}

Result<void> check_pin_name(std::string_view name) {
  if (is_pin_name(name)) return {};
  return base::fail(ErrorKind::kInput, util::format("\"{}\" is no name for a pin", name),
                    "1 to 64 letters, digits, \".\", \"_\" and \"-\", the first a letter or digit");
}

Result<void> write_pin(const std::string& root, const Pin& pin) {
  KC_TRY(check_pin_name(pin.name));
  const Bytes payload = encode_pin(pin);
  if (payload.size() > kMaxPin) {
    return base::fail(ErrorKind::kInput, "these are more keys than a pin may hold, which is two million",
                      "make several pins");
  }
  KC_ASSIGN(const auto layout, Layout::open(root, Access::kMake));
  KC_ASSIGN(const FileDescriptor lock, collection_lock(*layout));
  KC_ASSIGN(const FileDescriptor roots, layout->open_roots(true));
  KC_ASSIGN(NewFile file, NewFile::write(*layout, seal(kPinMagic, base::sha256(pin.name), payload), 0600,
                                         base::Sync::kFull));
  KC_TRY(file.replace(roots.get(), pin.name));
  return sync_names(*layout, roots.get());
}

Result<bool> remove_pin(const std::string& root, const std::string& name) {
  if (!is_pin_name(name)) return false;
  KC_ASSIGN(const auto layout, Layout::open(root, Access::kChange));
  if (!layout) return false;
  KC_ASSIGN(const FileDescriptor roots, layout->open_roots(false));
  if (!roots) return false;
  if (base::file_system().unlinkat(roots.get(), name.c_str(), 0) != 0) {
    if (errno == ENOENT) return false;
    return base::fail_errno(ErrorKind::kEnvironment, "remove", shown_path(*layout, name), errno);
  }
  KC_TRY(base::sync_all(roots.get(), layout->path() + "/v1/roots"));
  return true;
}

Result<std::vector<std::string>> pin_names(const std::string& root) {
  KC_ASSIGN(const auto layout, Layout::open(root, Access::kRead));
  if (!layout) return std::vector<std::string>();
  KC_ASSIGN(const FileDescriptor roots, layout->open_roots(false));
  if (!roots) return std::vector<std::string>();
  return names_in(roots.get());
}

Result<std::vector<Pin>> read_pins(const std::string& root) {
  KC_ASSIGN(const auto layout, Layout::open(root, Access::kRead));
  if (!layout) return std::vector<Pin>();
  return read_pins_in(*layout);
}

Result<std::vector<Pin>> read_pins_in(const Layout& layout) {
  std::vector<Pin> out;
  KC_TRY(visit_pins(layout, [&](const std::string& name, Checked<Pin> pin) -> Result<void> {
    if (!pin) {
      return base::fail_at(ErrorKind::kEnvironment, {shown_path(layout, name)},
                           "the pin " + pin.error().why + ", so it is not known what it keeps",
                           pin.error().flaw == Flaw::kNewer
                               ? "use the kc that made it"
                               : "make it again with `kc store pin`, or remove it with `kc store unpin`");
    }
    out.push_back(std::move(*pin));
    return {};
  }));
  return out;
}

Result<void> visit_pins(const Layout& layout,
                        const std::function<Result<void>(const std::string& name, Checked<Pin> pin)>& visit) {
  KC_ASSIGN(const FileDescriptor roots, layout.open_roots(false));
  if (!roots) return {};
  KC_ASSIGN(const std::vector<std::string> names, names_in(roots.get()));
  for (const std::string& name : names) {
    Checked<std::optional<Pin>> pin = read_pin(layout, roots.get(), name);
    if (!pin) {
      KC_TRY(visit(name, std::unexpected(std::move(pin).error())));
    } else if (*pin) {
      KC_TRY(visit(name, std::move(**pin)));
    }
  }
  return {};
}

Result<Holding> holding(const std::string& root, const KeySet& keys) {
  const auto sorted = [](const std::unordered_set<Digest>& set) {
    std::vector<Digest> out(set.begin(), set.end());
    std::sort(out.begin(), out.end());
    return out;
  };
  const std::vector<Digest> records = sorted(keys.records);
  Holding out;
  KC_ASSIGN(const auto layout, Layout::open(root, Access::kRead));
  if (!layout) {
    out.missing = keys.entries.size() + records.size();
    return out;
  }
  std::unordered_set<Digest> entries = keys.entries;
  for (const std::optional<Digest>& content : read_leads(*layout, records).content) {
    if (content) entries.insert(*content);
  }
  KC_TRY(count_files(*layout, Kind::kEntry, sorted(entries), out));
  KC_TRY(count_files(*layout, Kind::kRecord, records, out));
  return out;
}

}  // namespace kc::store
