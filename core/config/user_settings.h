// The user's settings file, `$XDG_CONFIG_HOME/kc/config.yaml` or `$HOME/.config/kc/config.yaml`: what holds
// for all builds of one person or machine. It names the keys that code is taken from, so only its owner may
// write it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/settings.h"
#include "util/time.h"

namespace kc::config {

/// As written; paths are absolute, those of the file being relative to its folder.
struct UserSettings {
  std::string path;  // of the file; empty: there is none
  std::vector<std::string> trusted_keys;
  std::optional<std::string> store_dir;
  std::optional<std::string> store_mode;
  std::optional<uint64_t> store_limit;
  std::optional<std::vector<std::string>> store_read_only_dirs;
  std::optional<unsigned> jobs;
  // A manifest's `settings:` come before these four.
  std::optional<uint64_t> keep_going;
  std::optional<util::Nanoseconds> timeout;
  std::optional<int> level;
  std::optional<uint64_t> frame_size;
};

/// Where the file would be; empty when neither variable is set.
std::string user_settings_path(const Environment& environment);
/// None of them when there is no file. ErrorKind::kInput, with its place, for the first thing that is wrong
/// with it; also when others than its owner, or root, can write it or its folder.
base::Result<UserSettings> read_user_settings(const Environment& environment);

/// Fills in what no variable says, of those that no manifest comes before.
void apply(const UserSettings& settings, Environment& environment);

/// Refuses a file that belongs to another user than this one or root, or that group or others can write:
/// ErrorKind::kInput, "`what` FILE ...".
base::Result<void> check_only_owner_writes(const std::string& path, const std::string& what);

}  // namespace kc::config
