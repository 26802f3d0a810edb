#include "config/settings.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "base/compress.h"
#include "base/files.h"
#include "util/text.h"

namespace kc::config {
namespace {

using base::ErrorKind;
using base::Result;

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

// Sets `out` from the variable `name` with `parse`, which gives nothing for nonsense.
template <typename T, typename Parse>
Result<void> checked(const char* name, std::string_view expected, std::optional<T>& out, Parse parse) {
  const std::optional<std::string> text = variable(name);
  if (!text) return {};
  const auto value = parse(*text);
  if (!value) {
    return base::fail(
        ErrorKind::kInput,
        util::format("the variable {} is \"{}\"; expected {}", name, util::escape(*text), expected),
        "correct it or unset it");
  }
  out = static_cast<T>(*value);
  return {};
}

// Paths separated by colons. A relative one would be another store in each folder, and an empty one is a
// mistake of whoever put them together.
std::optional<std::vector<std::string>> parse_folders(const std::string& text) {
  std::vector<std::string> out = util::split(text, ':');
  const bool is_good =
      std::ranges::all_of(out, [](const std::string& path) { return path.starts_with('/'); });
  return is_good ? std::optional(std::move(out)) : std::nullopt;
}

auto number_between(uint64_t least, uint64_t most) {
  return [least, most](const std::string& text) { return util::parse_number(text, least, most); };
}

}  // namespace

Result<Environment> read_environment() {
  Environment env;
  env.store_dir = variable("KC_STORE_DIR");
  KC_TRY(checked("KC_STORE_MODE", "rw, ro, off or refresh", env.store_mode,
                 [](const std::string& text) -> std::optional<std::string> {
                   return is_store_mode(text) ? std::optional(text) : std::nullopt;
                 }));
  KC_TRY(checked("KC_STORE_LIMIT", "a size such as 5GiB, or 0 for none", env.store_limit,
                 [](const std::string& text) { return util::parse_size(text); }));
  KC_TRY(checked("KC_STORE_READ_ONLY_DIRS", "absolute paths separated by colons", env.store_read_only_dirs,
                 parse_folders));
  KC_TRY(checked("KC_JOBS", util::format("a whole number from 1 to {}", kMaxJobs), env.jobs,
                 number_between(1, kMaxJobs)));
  KC_TRY(checked("KC_KEEP_GOING", "a number of failures, 0 for never stop", env.keep_going,
                 number_between(0, UINT64_MAX)));
  KC_TRY(checked("KC_TIMEOUT", "a duration such as 60s or 10m", env.timeout,
                 [](const std::string& text) { return util::parse_duration(text); }));
  KC_TRY(checked("KC_LEVEL", util::format("a zstd level from {} to {}", base::kMinLevel, base::kMaxLevel),
                 env.level, number_between(base::kMinLevel, base::kMaxLevel)));
  KC_TRY(checked(
      "KC_FRAME_SIZE",
      util::format("a size from {} to {}", util::size_text(kMinFrameSize), util::size_text(kMaxFrameSize)),
      env.frame_size, [](const std::string& text) -> std::optional<uint64_t> {
        const auto size = util::parse_size(text);
        if (!size || *size < kMinFrameSize || *size > kMaxFrameSize) return std::nullopt;
        return size;
      }));
  env.tileiras = variable("KC_TILEIRAS");
  env.loom_library = variable("KC_LOOM_LIBRARY");
  env.key_passphrase = variable("KC_KEY_PASSPHRASE");
  env.cutile_tileiras_path = variable("CUTILE_TILEIRAS_PATH");
  env.virtual_env = variable("VIRTUAL_ENV");
  env.path = variable("PATH");
  env.cuda_home = variable("CUDA_HOME");
  env.hrx_loom_library = variable("HRX_LOOM_LIBRARY");
  env.library_path = variable("LD_LIBRARY_PATH");
  env.xdg_cache_home = variable("XDG_CACHE_HOME");
  env.xdg_config_home = variable("XDG_CONFIG_HOME");
  env.home = variable("HOME");
  env.tmpdir = variable("TMPDIR");
  return env;
}

bool is_store_mode(std::string_view text) {
  constexpr std::array<std::string_view, 4> kModes{"rw", "ro", "off", "refresh"};
  return std::find(kModes.begin(), kModes.end(), text) != kModes.end();
}

std::string store_directory(const std::optional<std::string>& flag, const Environment& environment) {
  if (flag) return *flag;
  if (environment.store_dir) return *environment.store_dir;
  // The base directory specification: a relative path in XDG_CACHE_HOME is invalid and ignored.
  if (environment.xdg_cache_home && environment.xdg_cache_home->starts_with('/')) {
    return base::join_path(*environment.xdg_cache_home, "kc");
  }
  if (environment.home && environment.home->starts_with('/')) {
    return base::join_path(*environment.home, ".cache/kc");
  }
  return {};
}

std::string temporary_folder(const Environment& environment) {
  return environment.tmpdir.value_or("/tmp");
}

}  // namespace kc::config
