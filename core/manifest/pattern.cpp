#include "manifest/pattern.h"

#include <algorithm>
#include <cerrno>
#include <set>
#include <unordered_set>
#include <utility>

#include "base/files.h"
#include "manifest/faults.h"
#include "manifest/paths.h"
#include "util/text.h"

namespace kc::manifest {
namespace {

using base::ErrorKind;
using base::fail;

// The parts of a pattern: those before the first with a wildcard as one path, the others one by one.
struct Parts {
  std::string start;
  std::vector<std::string> parts;
};

Parts parts_of(std::string_view pattern) {
  Parts out;
  std::string start = pattern.starts_with('/') ? "/" : "";
  for (std::string& part : util::split(pattern, '/')) {
    if (part.empty() || part == ".") continue;
    if (out.parts.empty() && !is_pattern(part)) {
      start = base::join_path(start, part);
    } else if (part != "**" || out.parts.empty() || out.parts.back() != "**") {
      out.parts.push_back(std::move(part));
    }
  }
  if (!start.empty()) out.start = normal_path(start);
  if (out.start == ".") out.start.clear();
  // All files below.
  if (out.parts.back() == "**") out.parts.emplace_back("*");
  return out;
}

}  // namespace

bool is_pattern(std::string_view path) {
  return path.find_first_of("*?[") != std::string_view::npos;
}

std::string_view pattern_fault(std::string_view pattern) {
  if (pattern.ends_with('/')) return "ends in a slash, and only files can be named";
  bool wild = false;
  for (const std::string& part : util::split(pattern, '/')) {
    wild = wild || is_pattern(part);
    if (wild && part == "..") return "has \"..\" behind its first wildcard";
  }
  return {};
}

// One search.
class PatternSearch::Walk {
 public:
  Walk(PatternSearch& search, const std::string& base, const Parts& parts)
      : search_(search), base_(base), parts_(parts.parts) {}

  // `folder` is relative to the base. Calls itself at most once for each folder above and each `**`.
  base::Result<void> visit(const std::string& folder, size_t index, size_t depth) {
    if (!visited_.insert(folder + '\0' + std::to_string(index)).second) return {};
    if (depth > kMaxFolderDepth) {
      return fail(ErrorKind::kInput, util::format("meets folders nested deeper than {} levels, at {}",
                                                  kMaxFolderDepth, in_quotes(folder)));
    }
    folders_.insert(folder);
    if (folders_.size() > kMaxFoldersSeen) {
      return fail(ErrorKind::kInput, util::format("looks into more than {} folders", kMaxFoldersSeen));
    }
    const std::string& part = parts_[index];
    if (part == "**") {
      KC_TRY(visit(folder, index + 1, depth));
      return visit_each(folder, "**/", index, depth);
    }
    if (index + 1 < parts_.size()) return visit_each(folder, part + '/', index + 1, depth);
    KC_ASSIGN(const std::vector<std::string>* names, names_in(folder, part));
    for (const std::string& name : *names) found_.insert(base::join_path(folder, name));
    if (found_.size() > kMaxFilesFound) {
      return fail(ErrorKind::kInput, util::format("finds more than {} files", kMaxFilesFound));
    }
    return {};
  }

  std::vector<std::string> found() const { return {found_.begin(), found_.end()}; }

 private:
  base::Result<void> visit_each(const std::string& folder, const std::string& pattern, size_t index,
                                size_t depth) {
    KC_ASSIGN(const std::vector<std::string>* names, names_in(folder, pattern));
    for (const std::string& name : *names) KC_TRY(visit(base::join_path(folder, name), index, depth + 1));
    return {};
  }

  base::Result<const std::vector<std::string>*> names_in(const std::string& folder,
                                                         const std::string& pattern) {
    return search_.names(opened_path(search_.folder_, identifier_of(base_, folder)), pattern);
  }

  PatternSearch& search_;
  const std::string& base_;
  const std::vector<std::string>& parts_;
  std::unordered_set<std::string> visited_;  // folder and part
  std::unordered_set<std::string> folders_;
  std::set<std::string> found_;
};

base::Result<std::vector<std::string>> PatternSearch::find(const std::string& base,
                                                           const std::string& pattern) {
  const Parts parts = parts_of(pattern);
  Walk walk(*this, base, parts);
  if (base::Result<void> done = walk.visit(parts.start, 0, 0); !done) {
    const int cause = done.error().sys_errno;
    if (cause == ENOENT || cause == ENOTDIR) return std::vector<std::string>();
    base::Error error = std::move(done.error());
    if (cause != 0) error.message = "cannot be followed: " + error.message;
    error.place = {};
    return std::unexpected(std::move(error));
  }
  return walk.found();
}

base::Result<const std::vector<std::string>*> PatternSearch::names(const std::string& opened,
                                                                   const std::string& pattern) {
  const auto [found, is_new] = listed_.try_emplace(opened + '\0' + pattern);
  if (!is_new) return &found->second;
  base::Result<Listing> listing = list_folder(opened, pattern);
  if (!listing) {
    listed_.erase(found);
    return std::unexpected(std::move(listing.error()));
  }
  inputs_.push_back({opened, pattern, listing->tuple, listing->digest});
  found->second = std::move(listing->names);
  return &found->second;
}

}  // namespace kc::manifest
