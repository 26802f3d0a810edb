#include "manifest/source_lists.h"

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "manifest/inputs.h"
#include "manifest/paths.h"

namespace kc::manifest {
namespace {

constexpr std::string_view kBlanks = " \t\r";

// Without a comment and the blanks around. Gives the offset of what is left.
std::string_view without_comment(std::string_view line, size_t& offset) {
  for (size_t at = line.find('#'); at != std::string_view::npos; at = line.find('#', at + 1)) {
    if (at != 0 && kBlanks.find(line[at - 1]) == std::string_view::npos) continue;
    line = line.substr(0, at);
    break;
  }
  offset = std::min(line.find_first_not_of(kBlanks), line.size());
  line.remove_prefix(offset);
  return line.substr(0, line.find_last_not_of(kBlanks) + 1);  // npos + 1 is 0
}

}  // namespace

PathKind kind_of_path(std::string_view text) {
  if (text.starts_with('@')) return PathKind::kList;
  return is_pattern(text) ? PathKind::kPattern : PathKind::kPath;
}

bool check_path(const Text& text, std::string_view label, Faults& faults) {
  const auto refuse = [&](std::string message, std::string hint = {}) {
    faults.error(text.place, std::move(message), std::move(hint));
    return false;
  };
  if (text.text.empty()) return refuse(util::format("{} is empty; expected a path", label));
  const bool has_braces = text.text.find_first_of("{}") != std::string::npos;
  switch (kind_of_path(text.text)) {
    case PathKind::kPath:
      break;
    case PathKind::kList:
      if (text.text == "@") return refuse(util::format("{} is \"@\" without the path of a list", label));
      if (has_braces || is_pattern(text.text)) {
        return refuse(
            util::format("the path of a list is taken as it stands, without patterns and {{key}}: {}",
                         in_quotes(text.text)));
      }
      break;
    case PathKind::kPattern:
      if (has_braces) {
        return refuse(util::format("the pattern {} holds a brace: patterns and {{key}} do not mix",
                                   in_quotes(text.text)));
      }
      if (const std::string_view fault = pattern_fault(text.text); !fault.empty()) {
        return refuse(util::format("the pattern {} {}", in_quotes(text.text), fault));
      }
      break;
  }
  return true;
}

// One call of expand().
class SourceLists::Expansion {
 public:
  Expansion(SourceLists& lists, std::string_view label, bool allow_absolute)
      : lists_(lists), faults_(lists.faults_), label_(label), allow_absolute_(allow_absolute) {}

  void add_item(const Text& item, const std::string& base) {
    if (kind_of_path(item.text) != PathKind::kList) return add_path(item, base);
    const List* list = lists_.list_at(item, base, allow_absolute_);
    good_ = good_ && list != nullptr;
    if (list == nullptr) return;
    for (const Text& path : list->paths) add_path(path, list->base);
  }

  std::optional<std::vector<SourceName>> take() {
    if (!good_) return std::nullopt;
    return std::move(names_);
  }

 private:
  // What has been named already.
  struct Seen {
    YamlPlace place;
    bool by_name = false;
  };

  void add_path(const Text& path, const std::string& base) {
    if (kind_of_path(path.text) == PathKind::kPattern) return add_pattern(path, base);
    const auto [seen, is_new] = seen_.try_emplace(identifier_of(base, path.text), Seen{path.place, true});
    if (is_new) {
      std::optional<Template> parsed = Template::parse(path, label_, faults_);
      if (!parsed) {
        good_ = false;
      } else {
        add({std::move(*parsed), base}, path);
      }
    } else if (seen->second.by_name) {
      fail(path, util::format("{} is listed twice in {}, first at {}", in_quotes(path.text), label_,
                              faults_.located(seen->second.place).text()));
    } else {
      seen->second = {path.place, true};
    }
  }

  void add_pattern(const Text& pattern, const std::string& base) {
    const std::string fault = path_fault("the pattern", pattern.text, allow_absolute_);
    if (!fault.empty()) return fail(pattern, fault);
    const std::string named = "the pattern " + in_quotes(pattern.text) + ' ';
    const base::Result<std::vector<std::string>> found = lists_.search_.find(base, pattern.text);
    if (!found) return fail(pattern, named + found.error().message);
    if (found->empty()) return fail(pattern, named + "matches no file");
    for (const std::string& file : *found) {
      if (!seen_.try_emplace(identifier_of(base, file), Seen{pattern.place, false}).second) continue;
      add({Template::literal({file, pattern.place}), base}, pattern);
    }
  }

  void add(SourceName name, const Text& item) {
    if (++lists_.names_ > lists_.most_names_) {
      if (lists_.names_ == lists_.most_names_ + 1) {
        fail(item,
             util::format("the kernels name more than {} files in all, each as often as a kernel names it",
                          lists_.most_names_));
      }
      good_ = false;
      return;
    }
    names_.push_back(std::move(name));
  }

  void fail(const Text& item, std::string message) {
    faults_.error(item.place, std::move(message));
    good_ = false;
  }

  SourceLists& lists_;
  Faults& faults_;
  std::string_view label_;
  bool allow_absolute_;
  std::vector<SourceName> names_;
  std::unordered_map<std::string, Seen> seen_;  // by identifier
  bool good_ = true;
};

std::optional<std::vector<SourceName>> SourceLists::expand(const std::vector<Text>& items,
                                                           const std::string& base, std::string_view label,
                                                           bool allow_absolute) {
  Expansion expansion(*this, label, allow_absolute);
  for (const Text& item : items) expansion.add_item(item, base);
  return expansion.take();
}

const SourceLists::List* SourceLists::list_at(const Text& item, const std::string& base,
                                              bool allow_absolute) {
  const Text path{item.text.substr(1), item.place};
  const std::string identifier = identifier_of(base, path.text);
  const auto found = lists_.find(identifier);
  if (found != lists_.end()) return found->second.is_faulty ? nullptr : &found->second;
  const std::string fault = path_fault("the list", path.text, allow_absolute);
  if (!fault.empty()) {
    faults_.error(path.place, fault);
    return nullptr;
  }
  const std::optional<base::Bytes> bytes =
      read_input("the list", path, opened_path(folder_, identifier), kMaxListBytes, inputs_, faults_);
  if (!bytes) return nullptr;
  const size_t before = faults_.count();
  List& list = lists_[identifier];
  list = parse_list(base::as_text(*bytes), path, identifier);
  list.is_faulty = faults_.count() != before;
  return list.is_faulty ? nullptr : &list;
}

SourceLists::List SourceLists::parse_list(std::string_view text, const Text& path,
                                          const std::string& identifier) {
  List out;
  out.base = base_of(identifier);
  const uint32_t file = faults_.add_file(opened_path(folder_, identifier));
  std::string_view rest = without_mark(text);
  if (!check_text(rest, file, faults_)) return out;
  const size_t before = faults_.count();
  for (uint32_t number = 1; !rest.empty(); ++number) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    size_t offset = 0;
    const std::string_view line = without_comment(rest.substr(0, end), offset);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.empty()) continue;
    Text item{std::string(line), {number, static_cast<uint32_t>(offset + 1), file}};
    if (kind_of_path(line) == PathKind::kList) {
      faults_.error(item.place, "a list names no further list: " + in_quotes(line));
    } else if (out.paths.size() == kMaxFilesFound) {
      faults_.error(item.place, util::format("a list may have {} paths, and this has more", kMaxFilesFound));
      break;
    } else if (check_path(item, "a path", faults_)) {
      out.paths.push_back(std::move(item));
    }
  }
  if (out.paths.empty() && faults_.count() == before) {
    faults_.error(path.place, util::format("the list {} names no file", in_quotes(path.text)));
  }
  return out;
}

}  // namespace kc::manifest
