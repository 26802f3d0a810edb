#include "manifest/source_table.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/files.h"
#include "manifest/faults.h"
#include "util/text.h"

namespace kc::manifest {

std::string normal_path(std::string_view path) {
  std::vector<std::string> out;
  for (std::string& part : util::split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == ".." && !out.empty() && out.back() != "..") {
      out.pop_back();
    } else {
      out.push_back(std::move(part));
    }
  }
  return out.empty() ? "." : util::join(out, "/");
}

const SourceTable::Entry& SourceTable::add(const std::string& path, const base::Place& place) {
  const auto [found, is_new] = by_path_.try_emplace(path);
  Entry& entry = found->second;
  if (!is_new) return entry;
  entry.fault = fault_of(path);
  if (!entry.fault.empty()) return entry;
  std::string identifier = normal_path(path);
  const auto [known, is_new_file] =
      by_identifier_.try_emplace(identifier, static_cast<uint32_t>(sources_.size()));
  entry.index = known->second;
  if (is_new_file) {
    std::string opened = folder_ == "." ? identifier : base::join_path(folder_, identifier);
    sources_.push_back({std::move(opened), std::move(identifier), place});
  }
  return entry;
}

std::string SourceTable::fault_of(const std::string& path) const {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::any_of(path.begin(), path.end(), is_control)) {
    return util::format("the source {} has control bytes in its name", in_quotes(path));
  }
  if (path.starts_with('/')) {
    return util::format("the source {} is an absolute path, which this version of kc does not support",
                        in_quotes(path));
  }
  struct stat status {};
  if (::stat(base::join_path(folder_, normal_path(path)).c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR)
      return util::format("the source {} does not exist", in_quotes(path));
    return base::fail_errno(base::ErrorKind::kInput, "look at the source", in_quotes(path), errno)
        .error()
        .message;
  }
  if (S_ISDIR(status.st_mode)) return util::format("the source {} is a folder", in_quotes(path));
  if (!S_ISREG(status.st_mode)) return util::format("the source {} is not a regular file", in_quotes(path));
  return {};
}

std::string SourceTable::hint_for(const std::string& path) const {
  if (path.starts_with('/')) return "write it relative to the manifest's folder";
  const std::string full = base::join_path(folder_, normal_path(path));
  struct stat status {};
  if (::stat(full.c_str(), &status) == 0) return {};
  const std::string parent = base::parent_path(full);
  const base::Result<std::vector<std::string>> names = base::list_directory(AT_FDCWD, parent);
  if (!names) return util::format("there is no folder {}", in_quotes(parent));
  return util::did_you_mean(base::file_name(full), *names);
}

}  // namespace kc::manifest
