// Settings and where they come from. The environment is read here and nowhere else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "util/time.h"

namespace kc::config {

/// The variables that kc reads; an empty one counts as unset.
struct Environment {
  // kc's own, checked: nonsense is an error that names the variable.
  std::optional<std::string> store_dir;   // KC_STORE_DIR
  std::optional<std::string> store_mode;  // KC_STORE_MODE: rw, ro, off, refresh
  std::optional<uint64_t> store_limit;    // KC_STORE_LIMIT, a size; 0 = none
  // KC_STORE_READ_ONLY_DIRS, separated by colons, each absolute
  std::optional<std::vector<std::string>> store_read_only_dirs;
  std::optional<unsigned> jobs;              // KC_JOBS
  std::optional<uint64_t> keep_going;        // KC_KEEP_GOING
  std::optional<util::Nanoseconds> timeout;  // KC_TIMEOUT
  std::optional<int> level;                  // KC_LEVEL
  std::optional<uint64_t> frame_size;        // KC_FRAME_SIZE
  std::optional<std::string> tileiras;       // KC_TILEIRAS
  std::optional<std::string> loom_library;   // KC_LOOM_LIBRARY
  // KC_KEY_PASSPHRASE: of the private key that signs; unlike all else never shown
  std::optional<std::string> key_passphrase;
  // Other people's.
  std::optional<std::string> cutile_tileiras_path, virtual_env, path, cuda_home;
  std::optional<std::string> hrx_loom_library, library_path;  // HRX_LOOM_LIBRARY, LD_LIBRARY_PATH
  std::optional<std::string> xdg_cache_home, xdg_config_home, home, tmpdir;
};

base::Result<Environment> read_environment();

/// One of `rw`, `ro`, `off` and `refresh`.
bool is_store_mode(std::string_view text);

/// Ranges of the numbers that flags, variables and manifests share.
inline constexpr unsigned kMaxJobs = 1024;
inline constexpr uint64_t kMinFrameSize = 4ULL << 10;
inline constexpr uint64_t kMaxFrameSize = 64ULL << 20;
inline constexpr uint64_t kDefaultFrameSize = 256ULL << 10;
inline constexpr int kDefaultLevel = 3;
inline constexpr uint64_t kDefaultStoreLimit = 5ULL << 30;

/// Where the store is: `--store` > KC_STORE_DIR > $XDG_CACHE_HOME/kc > $HOME/.cache/kc, else empty: a
/// temporary store has to do. Never a passwd look-up.
std::string store_directory(const std::optional<std::string>& flag, const Environment& environment);

/// $TMPDIR or /tmp.
std::string temporary_folder(const Environment& environment);

}  // namespace kc::config
