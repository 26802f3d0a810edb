#include "store/layout.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <limits>
#include <system_error>

#include "base/atomic_file.h"
#include "base/file_system.h"
#include "util/text.h"

namespace kc::store {
namespace {

using base::ErrorKind;
using base::FileDescriptor;
using base::Result;

constexpr std::string_view kOtherStore = "name another store with --store or KC_STORE_DIR";

// https://bford.info/cachedir/
constexpr std::string_view kCacheTag =
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This folder is a store of kc: compiled GPU kernels that can be made again. Backups may skip it.\n"
    "# See https://bford.info/cachedir/\n";

Result<void> check_folder(int fd, const std::string& shown, Access access) {
  struct stat status;
  if (base::file_system().fstat(fd, &status) != 0)
    return base::fail_errno(ErrorKind::kEnvironment, "stat", shown, errno);
  std::string hint;
  if (const auto why = distrust(status, access, geteuid(), hint)) {
    return base::fail_at(ErrorKind::kEnvironment, {shown}, *why, hint);
  }
  return {};
}

// A folder in `parent`, checked. Missing and not to be made: no descriptor.
Result<FileDescriptor> open_folder(int parent, const std::string& name, const std::string& shown,
                                   Access access, bool make) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
  auto fd = base::open_at(parent, name, kFlags, 0, ErrorKind::kEnvironment);
  if (!fd && fd.error().sys_errno == ENOENT) {
    if (!make) return FileDescriptor();
    if (base::file_system().mkdirat(parent, name.c_str(), 0700) != 0 && errno != EEXIST) {
      return base::fail_errno(ErrorKind::kEnvironment, "make directory", shown, errno);
    }
    fd = base::open_at(parent, name, kFlags, 0, ErrorKind::kEnvironment);
  }
  if (!fd) {
    const int error = fd.error().sys_errno;
    if (error == ENOTDIR || error == ELOOP) {
      return base::fail_at(ErrorKind::kEnvironment, {shown},
                           "is a symbolic link or a file where the store needs a folder",
                           std::string("remove it, or ") + std::string(kOtherStore));
    }
    return base::fail_errno(ErrorKind::kEnvironment, "open", shown, error);
  }
  KC_TRY(check_folder(fd->get(), shown, access));
  return fd;
}

// The root with all links in its path resolved; empty when it is not there.
Result<std::string> resolve_root(const std::string& root, Access access) {
  if (root.empty()) return base::fail(ErrorKind::kEnvironment, "the path of the store is empty");
  KC_ASSIGN(const std::string absolute, base::absolute_path(root));
  if (access == Access::kMake) {
    if (auto made = base::make_directories(absolute, 0700); !made) {
      made.error().hint = kOtherStore;
      return std::unexpected(std::move(made).error());
    }
  }
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(absolute, error);
  if (error == std::errc::no_such_file_or_directory) return std::string();
  if (error) return base::fail_errno(ErrorKind::kEnvironment, "resolve", absolute, error.value());
  return real.string();
}

void write_cache_tag(int root) {
  // Only for the comfort of backup programs: a store without it works, so nothing is said when it fails.
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
  if (const auto fd = base::open_at(root, "CACHEDIR.TAG", kFlags, 0644)) {
    (void)base::write_all(fd->get(), base::as_bytes(kCacheTag), "CACHEDIR.TAG");
  }
}

constexpr const char* folder_name(Kind kind) {
  return kind == Kind::kEntry ? "e" : "r";
}
constexpr const char* suffix_of(Kind kind) {
  return kind == Kind::kEntry ? ".kce" : ".kcr";
}

std::string shard_name(unsigned shard) {
  return util::format("{:02x}", shard);
}

bool is_hex(std::string_view text, size_t digits) {
  return text.size() == digits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::string random_hex() {
  return util::format("{:016x}", base::random_u64());
}

// Removes a plain decimal number and the `-` behind it from the front of `text`.
std::optional<uint64_t> take_number(std::string_view& text) {
  const size_t dash = text.find('-');
  if (dash == std::string_view::npos || dash == 0 || (text[0] == '0' && dash > 1)) return std::nullopt;
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + dash, value);
  if (error != std::errc() || end != text.data() + dash) return std::nullopt;
  text.remove_prefix(dash + 1);
  return value;
}

std::optional<pid_t> take_pid(std::string_view& text) {
  const auto value = take_number(text);
  if (!value || *value == 0 || *value > static_cast<uint64_t>(std::numeric_limits<pid_t>::max())) {
    return std::nullopt;
  }
  return static_cast<pid_t>(*value);
}

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

}  // namespace

std::optional<std::string> distrust(const struct stat& status, Access access, uid_t euid, std::string& hint) {
  if (status.st_uid != euid && !(access == Access::kRead && status.st_uid == 0)) {
    hint = kOtherStore;
    return util::format("belongs to user {}, not to the user who runs kc ({})", status.st_uid, euid);
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    hint = util::format("chmod go-w, if nobody else has written there, or {}", kOtherStore);
    return util::format("can be written by {} (mode {:04o}), and what is stored runs on devices",
                        (status.st_mode & S_IWOTH) != 0 ? "others" : "its group", status.st_mode & 07777U);
  }
  return std::nullopt;
}

Result<std::optional<Layout>> Layout::open_entries(const std::string& root, Access access) {
  KC_ASSIGN(const std::string real, resolve_root(root, access));
  if (real.empty()) return std::nullopt;
  const bool make = access == Access::kMake;
  Layout layout;
  layout.path_ = real;
  layout.access_ = access;
  KC_ASSIGN(layout.root_, open_folder(AT_FDCWD, real, real, access, false));
  if (!layout.root_) return std::nullopt;
  const std::string shown = layout.shown_version();
  KC_ASSIGN(layout.version_, open_folder(layout.root_.get(), "v1", shown, access, make));
  if (!layout.version_) return std::nullopt;
  KC_ASSIGN(layout.entries_, layout.open_inner("e"));
  KC_ASSIGN(layout.records_, layout.open_inner("r"));
  return layout;
}

Result<std::optional<Layout>> Layout::open_read_only(const std::string& root) {
  return open_entries(root, Access::kRead);
}

Result<std::optional<Layout>> Layout::open(const std::string& root, Access access) {
  KC_ASSIGN(std::optional<Layout> layout, open_entries(root, access));
  if (!layout) return std::nullopt;
  KC_ASSIGN(layout->states_, layout->open_inner("state"));
  KC_ASSIGN(layout->temporary_, layout->open_inner("tmp"));
  KC_ASSIGN(layout->statistics_, layout->open_inner("stats.d"));
  if (access == Access::kMake) write_cache_tag(layout->root_.get());
  return layout;
}

Result<FileDescriptor> Layout::open_inner(const char* name) const {
  return open_folder(version_.get(), name, base::join_path(shown_version(), name), access_,
                     access_ == Access::kMake);
}

Result<FileDescriptor> Layout::open_shard(Kind kind, unsigned shard, bool make) const {
  if (folder(kind) < 0) return FileDescriptor();
  const std::string name = shard_name(shard);
  return open_folder(folder(kind), name, path_ + "/v1/" + folder_name(kind) + "/" + name, access_, make);
}

Result<FileDescriptor> Layout::open_roots(bool make) const {
  return open_folder(version(), "roots", path_ + "/v1/roots", access_, make);
}

std::string stored_name(Kind kind, const base::Digest& key) {
  return key.hex() + suffix_of(kind);
}

std::string stored_path(Kind kind, const base::Digest& key) {
  return util::format("{}/{}/{}", folder_name(kind), shard_name(shard_of(key)), stored_name(kind, key));
}

std::optional<base::Digest> parse_stored_name(Kind kind, std::string_view name, unsigned shard) {
  if (name.size() != 68 || !name.ends_with(suffix_of(kind))) return std::nullopt;
  const auto key = base::parse_digest(name.substr(0, 64));
  if (!key || shard_of(*key) != shard) return std::nullopt;
  return key;
}

std::optional<TemporaryName> parse_temporary_name(std::string_view name) {
  if (take_prefix(name, "new-")) {
    const auto pid = take_pid(name);
    if (!pid || !take_number(name) || !is_hex(name, 16)) return std::nullopt;
    return TemporaryName{TemporaryKind::kNew, *pid};
  }
  if (take_prefix(name, "job-")) {
    const auto pid = take_pid(name);
    if (!pid || !is_hex(name, 16)) return std::nullopt;
    return TemporaryName{TemporaryKind::kJob, *pid};
  }
  if (take_prefix(name, "bad-")) {
    if (name.size() != 81 || !is_hex(name.substr(0, 64), 64) || name[64] != '-') return std::nullopt;
    if (!is_hex(name.substr(65), 16)) return std::nullopt;
    return TemporaryName{TemporaryKind::kBad, 0};
  }
  if (take_prefix(name, "failed-")) {
    if (!is_hex(name, 64)) return std::nullopt;
    return TemporaryName{TemporaryKind::kFailed, 0};
  }
  return std::nullopt;
}

std::string new_file_name() {
  return base::unique_name("new-");
}

std::string bad_name(const base::Digest& key) {
  return "bad-" + key.hex() + "-" + random_hex();
}

std::string failed_name(const base::Digest& key) {
  return "failed-" + key.hex();
}

std::string job_name() {
  return util::format("job-{}-{}", getpid(), random_hex());
}

bool is_statistics_name(std::string_view name) {
  return take_pid(name) && take_number(name) && is_hex(name, 16);
}

}  // namespace kc::store
