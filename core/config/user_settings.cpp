#include "config/user_settings.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "base/compress.h"
#include "base/file_system.h"
#include "base/files.h"
#include "config/yaml_reader.h"
#include "util/text.h"

namespace kc::config {
namespace {

using base::Error;
using base::ErrorKind;
using base::Place;
using base::Result;

// A few settings and some keys: what is larger is another file.
constexpr uint64_t kMaxFile = 256U << 10;
constexpr YamlLimits kLimits{kMaxFile, 10'000, 1'000, 8};

// What is wrong with who may write a file; empty when nothing is.
std::string distrust(const struct stat& status) {
  if (status.st_uid != geteuid() && status.st_uid != 0) {
    return util::format("belongs to user {}, not to you", status.st_uid);
  }
  return (status.st_mode & 022) != 0 ? "can be written by others" : "";
}

std::unexpected<Error> distrusted(const std::string& path, const std::string& why, const std::string& what) {
  return base::fail_at(ErrorKind::kInput, {path}, util::format("{} {}, so it is not used", what, why),
                       util::format("make it your own: chmod go-w {}", util::escape(path)));
}

// Whether a text has nothing but comments, which is no fault of a settings file.
bool is_blank(std::string_view text) {
  return std::ranges::all_of(util::split(text, '\n'), [](const std::string& line) {
    const std::string_view rest = util::trim(line);
    return rest.empty() || rest.starts_with('#');
  });
}

// Reads the pairs of the one map; the first fault ends it.
class Reader {
 public:
  explicit Reader(std::string path) : path_(std::move(path)), folder_(base::parent_path(path_)) {
    out_.path = path_;
  }

  Result<UserSettings> read(const YamlNode& root);

 private:
  using Read = Result<void> (Reader::*)(std::string_view key, const YamlNode& value);
  struct Handler {
    std::string_view key;
    Read read;
  };
  static const std::array<Handler, 10> kHandlers;

  Result<void> trusted_keys(std::string_view key, const YamlNode& value) {
    return paths(key, value, out_.trusted_keys);
  }
  Result<void> store_dir(std::string_view key, const YamlNode& value);
  Result<void> store_mode(std::string_view key, const YamlNode& value);
  Result<void> store_limit(std::string_view key, const YamlNode& value) {
    return parsed(key, value, out_.store_limit, "a size such as 5GiB, or 0 for none",
                  [](std::string_view text) { return util::parse_size(text); });
  }
  Result<void> store_read_only_dirs(std::string_view key, const YamlNode& value) {
    return paths(key, value, out_.store_read_only_dirs.emplace());
  }
  Result<void> jobs(std::string_view key, const YamlNode& value) {
    return number(key, value, out_.jobs, 1, kMaxJobs, util::format("a whole number from 1 to {}", kMaxJobs));
  }
  Result<void> keep_going(std::string_view key, const YamlNode& value) {
    return number(key, value, out_.keep_going, 0, UINT64_MAX, "a number of failures, 0 for never stop");
  }
  Result<void> timeout(std::string_view key, const YamlNode& value) {
    return parsed(key, value, out_.timeout, "a duration such as 60s or 10m",
                  [](std::string_view text) { return util::parse_duration(text); });
  }
  Result<void> level(std::string_view key, const YamlNode& value) {
    return number(key, value, out_.level, base::kMinLevel, base::kMaxLevel, "a zstd level from 1 to 19");
  }
  Result<void> frame_size(std::string_view key, const YamlNode& value) {
    return parsed(key, value, out_.frame_size, "a size from 4KiB to 64MiB",
                  [](std::string_view text) -> std::optional<uint64_t> {
                    const auto size = util::parse_size(text);
                    return size && *size >= kMinFrameSize && *size <= kMaxFrameSize ? size : std::nullopt;
                  });
  }

  Place at(YamlPlace place) const { return {path_, place.line, place.column}; }
  std::unexpected<Error> expected(std::string_view key, const YamlNode& value, std::string_view what) const;
  Result<void> paths(std::string_view key, const YamlNode& value, std::vector<std::string>& out);
  std::string resolved(std::string_view path) const {
    return path.starts_with('/') ? std::string(path) : base::join_path(folder_, path);
  }
  template <typename T, typename Parse>
  Result<void> parsed(std::string_view key, const YamlNode& value, std::optional<T>& out,
                      std::string_view what, Parse parse) {
    const auto read = value.is_scalar() ? parse(value.text()) : std::nullopt;
    if (!read) return expected(key, value, what);
    out = static_cast<T>(*read);
    return {};
  }
  template <typename T>
  Result<void> number(std::string_view key, const YamlNode& value, std::optional<T>& out, uint64_t least,
                      uint64_t most, std::string_view what) {
    return parsed(key, value, out, what,
                  [&](std::string_view text) { return util::parse_number(text, least, most); });
  }

  const std::string path_;
  const std::string folder_;
  UserSettings out_;
};

const std::array<Reader::Handler, 10> Reader::kHandlers{{
    {"trusted_keys", &Reader::trusted_keys},
    {"store_dir", &Reader::store_dir},
    {"store_mode", &Reader::store_mode},
    {"store_limit", &Reader::store_limit},
    {"store_read_only_dirs", &Reader::store_read_only_dirs},
    {"jobs", &Reader::jobs},
    {"keep_going", &Reader::keep_going},
    {"timeout", &Reader::timeout},
    {"level", &Reader::level},
    {"frame_size", &Reader::frame_size},
}};

std::unexpected<Error> Reader::expected(std::string_view key, const YamlNode& value,
                                        std::string_view what) const {
  const std::string is = value.is_scalar() ? util::format("\"{}\"", util::escape(value.text()))
                                           : std::string(kind_name(value.kind()));
  return base::fail_at(ErrorKind::kInput, at(value.place()),
                       util::format("\"{}\" is {}; expected {}", key, is, what));
}

Result<void> Reader::paths(std::string_view key, const YamlNode& value, std::vector<std::string>& out) {
  if (!value.is_sequence()) return expected(key, value, "a list of paths");
  for (const YamlNode item : value.items()) {
    if (!item.is_scalar() || item.text().empty()) return expected(key, item, "a list of paths");
    out.push_back(resolved(item.text()));
  }
  return {};
}

Result<void> Reader::store_dir(std::string_view key, const YamlNode& value) {
  if (!value.is_scalar() || value.text().empty()) return expected(key, value, "a path");
  out_.store_dir = resolved(value.text());
  return {};
}

Result<void> Reader::store_mode(std::string_view key, const YamlNode& value) {
  return parsed(key, value, out_.store_mode, "rw, ro, off or refresh",
                [](std::string_view text) -> std::optional<std::string> {
                  return is_store_mode(text) ? std::optional(std::string(text)) : std::nullopt;
                });
}

Result<UserSettings> Reader::read(const YamlNode& root) {
  if (!root.is_map()) {
    return base::fail_at(ErrorKind::kInput, at(root.place()),
                         util::format("the user's settings are a map, not {}", kind_name(root.kind())));
  }
  for (const auto [key, value] : root.pairs()) {
    const auto handler = std::ranges::find(kHandlers, key.text(), &Handler::key);
    if (handler == kHandlers.end()) {
      std::vector<std::string> known;
      for (const Handler& other : kHandlers) known.emplace_back(other.key);
      std::string hint = util::did_you_mean(key.text(), known);
      if (hint.empty()) hint = "there are " + util::listed(known, known.size());
      return base::fail_at(ErrorKind::kInput, at(key.place()),
                           util::format("unknown setting \"{}\"", util::escape(key.text())), std::move(hint));
    }
    KC_TRY((this->*handler->read)(handler->key, value));
  }
  return std::move(out_);
}

}  // namespace

std::string user_settings_path(const Environment& environment) {
  // The base directory specification: a relative path in XDG_CONFIG_HOME is invalid and ignored.
  if (environment.xdg_config_home && environment.xdg_config_home->starts_with('/')) {
    return base::join_path(*environment.xdg_config_home, "kc/config.yaml");
  }
  if (environment.home && environment.home->starts_with('/')) {
    return base::join_path(*environment.home, ".config/kc/config.yaml");
  }
  return {};
}

Result<UserSettings> read_user_settings(const Environment& environment) {
  const std::string path = user_settings_path(environment);
  if (path.empty()) return UserSettings();
  const auto fd = base::open_at(AT_FDCWD, path, O_RDONLY | O_NONBLOCK);
  if (!fd) {
    if (fd.error().sys_errno == ENOENT || fd.error().sys_errno == ENOTDIR) return UserSettings();
    return std::unexpected(fd.error());
  }
  struct stat status;
  const std::string folder = base::parent_path(path);
  if (base::file_system().fstat(fd->get(), &status) != 0) {
    return base::fail_errno(ErrorKind::kInput, "stat", path, errno);
  }
  constexpr const char* kWhat = "the user's settings file";
  if (const std::string why = distrust(status); !why.empty()) return distrusted(path, why, kWhat);
  KC_TRY(check_only_owner_writes(folder, "the folder of the user's settings file"));
  KC_ASSIGN(const base::Bytes bytes, base::read_descriptor(fd->get(), path, kMaxFile));
  const std::string_view text = base::as_text(bytes);
  if (is_blank(text)) {
    UserSettings none;
    none.path = path;
    return none;
  }
  const YamlRead read = read_yaml(path, text, kLimits);
  if (!read.errors.empty()) return std::unexpected(read.errors.front());
  return Reader(path).read(read.document->root());
}

void apply(const UserSettings& settings, Environment& environment) {
  const auto fill = [](auto& out, const auto& from) {
    if (!out) out = from;
  };
  fill(environment.store_dir, settings.store_dir);
  fill(environment.store_mode, settings.store_mode);
  fill(environment.store_limit, settings.store_limit);
  fill(environment.store_read_only_dirs, settings.store_read_only_dirs);
  fill(environment.jobs, settings.jobs);
}

Result<void> check_only_owner_writes(const std::string& path, const std::string& what) {
  struct stat status;
  if (base::file_system().fstatat(AT_FDCWD, path.c_str(), &status, 0) != 0) {
    return base::fail_errno(ErrorKind::kInput, "stat", path, errno);
  }
  if (const std::string why = distrust(status); !why.empty()) return distrusted(path, why, what);
  return {};
}

}  // namespace kc::config
