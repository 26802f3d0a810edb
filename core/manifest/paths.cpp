#include "manifest/paths.h"

#include <fcntl.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/files.h"
#include "manifest/faults.h"
#include "util/text.h"

namespace kc::manifest {

namespace {

// Most paths are; they are asked for a million times.
bool is_normal(std::string_view path) {
  if (path.starts_with('/')) path.remove_prefix(1);
  for (;;) {
    const size_t end = path.find('/');
    const std::string_view part = path.substr(0, end);
    if (part.empty() || part == "." || part == "..") return false;
    if (end == std::string_view::npos) return true;
    path.remove_prefix(end + 1);
  }
}

}  // namespace

std::string normal_path(std::string_view path) {
  if (is_normal(path)) return std::string(path);
  const bool absolute = path.starts_with('/');
  std::vector<std::string> out;
  for (std::string& part : util::split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == ".." && !out.empty() && out.back() != "..") {
      out.pop_back();
    } else if (part != ".." || !absolute) {  // above the root is the root
      out.push_back(std::move(part));
    }
  }
  if (absolute) return "/" + util::join(out, "/");
  return out.empty() ? "." : util::join(out, "/");
}

std::string identifier_of(std::string_view base, std::string_view path) {
  return normal_path(base::join_path(base, path));
}

std::string base_of(std::string_view identifier) {
  std::string folder = base::parent_path(identifier);
  return folder == "." ? std::string() : folder;
}

std::string opened_path(const std::string& folder, const std::string& identifier) {
  if (folder == ".") return identifier;
  return identifier == "." ? folder : base::join_path(folder, identifier);
}

std::string path_fault(std::string_view what, std::string_view path, bool allow_absolute) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::any_of(path.begin(), path.end(), is_control)) {
    return util::format("{} {} has control bytes in its name", what, in_quotes(path));
  }
  // Names that a pattern found may be any bytes; those of a bundle and of reports are text.
  if (!util::is_valid_utf8(path)) {
    return util::format("{} {} has a name that is not UTF-8", what, in_quotes(path));
  }
  if (path.starts_with('/') && !allow_absolute) {
    return util::format("{} {} is an absolute path: {}", what, in_quotes(path), kAbsoluteNeeds);
  }
  return {};
}

std::string hint_for_missing(const std::string& opened) {
  const std::string parent = base::parent_path(opened);
  const base::Result<std::vector<std::string>> names = base::list_directory(AT_FDCWD, parent);
  if (!names) return util::format("there is no folder {}", in_quotes(parent));
  return util::did_you_mean(base::file_name(opened), *names);
}

}  // namespace kc::manifest
