#include "build/look.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "util/text.h"

namespace kc::build {
namespace {

using base::Error;
using base::ErrorKind;

// What a look at one file shows.
struct Look {
  std::optional<Error> refused;
  std::optional<std::vector<std::string>> entries;  // in the order of the source
  std::unordered_set<std::string_view> names;       // the same, to find one of thousands
};

class Looker {
 public:
  explicit Looker(Prepared& prepared) : prepared_(prepared) {}

  std::optional<Error> look_at(size_t index);

 private:
  const Look& look(const std::string& backend, uint32_t file);
  std::optional<Error> find_entry(size_t index);
  std::optional<Error> missing_entry(size_t index) const;
  std::string export_hint(size_t index) const;
  bool is_in_text(size_t index) const;

  std::string_view text_of(uint32_t file) const { return base::as_text(prepared_.sources[file].bytes); }
  const std::string& name_of(uint32_t file) const { return prepared_.plan.sources[file].identifier; }

  Prepared& prepared_;
  std::map<std::pair<std::string, uint32_t>, Look> looks_;
};

const Look& Looker::look(const std::string& backend, uint32_t file) {
  const auto [at, is_new] = looks_.try_emplace({backend, file});
  Look& look = at->second;
  if (!is_new) return look;
  const base::Bytes& bytes = prepared_.sources[file].bytes;
  if (auto checked = backend::check_source(backend, name_of(file), bytes); !checked) {
    look.refused = checked.error();
    look.refused->kind = ErrorKind::kFailed;  // its content is at fault, not that it cannot be read
  } else if (auto entries = backend::entries_of(backend, name_of(file), bytes)) {
    look.entries = std::move(*entries);
    look.names.insert(look.entries->begin(), look.entries->end());
  }
  return look;
}

// Whether `symbol` stands in `text`, and not only as the beginning of a longer one.
bool has_symbol(std::string_view text, std::string_view symbol) {
  const auto goes_on = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$';
  };
  for (size_t at = text.find(symbol); at != std::string_view::npos; at = text.find(symbol, at + 1)) {
    const size_t end = at + symbol.size();
    if (end == text.size() || !goes_on(text[end])) return true;
  }
  return false;
}

// Whether a text of the unit, a library perhaps, has the entry as a symbol somewhere: then the compiler knows
// better than a scan why it is not an entry.
bool Looker::is_in_text(size_t index) const {
  const std::string symbol = "@" + prepared_.unit(index).entry;
  const auto has = [&](uint32_t file) { return has_symbol(text_of(file), symbol); };
  return std::ranges::any_of(prepared_.unit(index).sources, has) ||
         std::ranges::any_of(prepared_.kernel(index).libraries, has);
}

// Why a source holds the entry and does not export it; empty when that is not so.
std::string Looker::export_hint(size_t index) const {
  for (const uint32_t source : prepared_.unit(index).sources) {
    std::string hint =
        backend::missing_export_hint(prepared_.kernel(index).backend, prepared_.unit(index).entry,
                                     name_of(source), prepared_.sources[source].bytes);
    if (!hint.empty()) return hint;
  }
  return {};
}

std::optional<Error> Looker::missing_entry(size_t index) const {
  const manifest::Unit& unit = prepared_.unit(index);
  const manifest::Kernel& kernel = prepared_.kernel(index);
  const std::string entry = util::escape(unit.entry);
  const bool is_one = unit.sources.size() == 1;
  const std::string where = is_one ? util::escape(name_of(unit.sources.front()))
                                   : util::format("none of the {} of {}",
                                                  util::counted(unit.sources.size(), "source"), kernel.name);
  if (std::string hint = export_hint(index); !hint.empty()) {
    return Error{
        ErrorKind::kFailed,
        util::format("{} {} the kernel \"{}\"", where, is_one ? "does not export" : "exports", entry),
        kernel.place, std::move(hint)};
  }
  std::vector<std::string> all;
  for (const uint32_t source : unit.sources) {
    const Look& look = looks_.at({kernel.backend, source});
    all.insert(all.end(), look.entries->begin(), look.entries->end());
  }
  // Of a text that was only scanned: one without any entry may be no text of that language at all.
  const bool is_scanned = !backend::find_description(kernel.backend)->entry_is_symbol;
  if (is_scanned && (all.empty() || is_in_text(index))) return std::nullopt;
  return Error{
      ErrorKind::kFailed,
      util::format("{} {} entry \"{}\"; {} {}", where, is_one ? "has no" : "has an", entry,
                   is_one ? "it has" : "they have", all.empty() ? "none" : util::escape(util::listed(all))),
      kernel.place, util::did_you_mean(unit.entry, all)};
}

std::optional<Error> Looker::find_entry(size_t index) {
  const manifest::Unit& unit = prepared_.unit(index);
  const std::string& backend = prepared_.kernel(index).backend;
  bool is_known = true;  // a source whose entries cannot be read without the compiler may hold any
  for (const uint32_t source : unit.sources) {
    const Look& seen = look(backend, source);
    if (seen.names.contains(unit.entry)) return std::nullopt;
    is_known = is_known && seen.entries.has_value();
  }
  return is_known ? missing_entry(index) : std::nullopt;
}

std::optional<Error> Looker::look_at(size_t index) {
  const std::string& backend = prepared_.kernel(index).backend;
  for (const auto* files : {&prepared_.unit(index).sources, &prepared_.kernel(index).libraries}) {
    for (const uint32_t file : *files) {
      if (const Look& seen = look(backend, file); seen.refused) return seen.refused;
    }
  }
  return find_entry(index);
}

}  // namespace

void look_at_sources(Prepared& prepared) {
  Looker looker(prepared);
  for (size_t i = 0; i < prepared.units.size(); ++i) {
    if (i != 0) {  // units of one kernel follow one another, and most ask for the same
      const manifest::Unit& last = prepared.unit(i - 1);
      const manifest::Unit& unit = prepared.unit(i);
      if (last.kernel == unit.kernel && last.entry == unit.entry && last.sources == unit.sources) {
        prepared.units[i].refused = prepared.units[i - 1].refused;
        continue;
      }
    }
    prepared.units[i].refused = looker.look_at(i);
  }
}

}  // namespace kc::build
