#include "manifest/source_table.h"

#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "base/digest.h"
#include "base/files.h"
#include "manifest/faults.h"
#include "util/text.h"

namespace kc::manifest {

const SourceTable::Entry& SourceTable::add(const std::string& base, const std::string& path,
                                           const base::Place& place) {
  std::string key = base;
  key += '\0';
  key += path;
  const auto [found, is_new] = by_path_.try_emplace(std::move(key));
  Entry& entry = found->second;
  if (!is_new) return entry;
  std::string identifier = identifier_of(base, path);
  entry.fault = fault_of(path, identifier);
  if (!entry.fault.empty()) return entry;
  const auto [known, is_new_file] =
      by_identifier_.try_emplace(identifier, static_cast<uint32_t>(sources_.size()));
  entry.index = known->second;
  if (is_new_file) {
    std::string opened = opened_path(folder_, identifier);
    sources_.push_back({std::move(opened), std::move(identifier), place, std::nullopt});
  }
  return entry;
}

std::string SourceTable::fault_of(const std::string& path, const std::string& identifier) const {
  std::string fault = path_fault("the source", path, allow_absolute_);
  if (!fault.empty()) return fault;
  const std::string opened = opened_path(folder_, identifier);
  struct stat status {};
  if (::stat(opened.c_str(), &status) != 0) {
    const int why = errno;
    if (::lstat(opened.c_str(), &status) == 0 && (why == ENOENT || why == ELOOP))
      return util::format("the source {} is a link that leads nowhere", in_quotes(path));
    if (why == ENOENT || why == ENOTDIR) return util::format("the source {} does not exist", in_quotes(path));
    return base::fail_errno(base::ErrorKind::kInput, "look at the source", in_quotes(path), why)
        .error()
        .message;
  }
  if (S_ISDIR(status.st_mode)) return util::format("the source {} is a folder", in_quotes(path));
  if (!S_ISREG(status.st_mode)) return util::format("the source {} is not a regular file", in_quotes(path));
  return {};
}

std::string SourceTable::hint_for(const std::string& base, const std::string& path) const {
  if (path.starts_with('/') && !allow_absolute_) return "write it relative to the file that names it";
  const std::string opened = opened_path(folder_, identifier_of(base, path));
  struct stat status {};
  if (::lstat(opened.c_str(), &status) == 0) return {};
  return hint_for_missing(opened);
}

base::Result<const SourceContent*> SourceTable::content(uint32_t index) {
  Source& source = sources_[index];
  if (!source.content) {
    SourceContent content;
    KC_ASSIGN(content.bytes, base::read_file(source.path, kMaxSourceBytes, &content.tuple));
    content.digest = base::sha256(base::ByteView(content.bytes));
    source.content = std::move(content);
  }
  return &*source.content;
}

}  // namespace kc::manifest
