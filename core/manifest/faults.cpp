#include "manifest/faults.h"

#include <algorithm>
#include <compare>
#include <iterator>
#include <unordered_set>
#include <utility>

#include "util/text.h"

namespace kc::manifest {
namespace {

using base::Error;
using base::ErrorKind;

// A text of 8 MiB can hold half a million faults; what is beyond this number is counted and not kept.
constexpr size_t kMostKept = 10'000;

// Long enough for any name by its grammar.
constexpr size_t kMostQuoted = 140;

}  // namespace

uint32_t Faults::add_file(const std::string& path) {
  const auto [found, is_new] = numbers_.try_emplace(path, static_cast<uint32_t>(files_.size()));
  if (is_new) files_.push_back(path);
  return found->second;
}

void Faults::error(YamlPlace place, std::string message, std::string hint) {
  ++count_;
  if (errors_.size() >= kMostKept) return;
  errors_.push_back({ErrorKind::kInput, std::move(message), located(place), std::move(hint), 0});
}

void Faults::warning(YamlPlace place, std::string message, std::string hint) {
  if (warnings_.size() >= kMostKept) return;
  warnings_.push_back({ErrorKind::kInput, std::move(message), located(place), std::move(hint), 0});
}

void Faults::append(std::vector<Error> errors) {
  count_ += errors.size();
  errors.resize(std::min(errors.size(), kMostKept - std::min(kMostKept, errors_.size())));
  errors_.insert(errors_.end(), std::make_move_iterator(errors.begin()),
                 std::make_move_iterator(errors.end()));
}

std::vector<Error> Faults::sorted(std::vector<Error> errors) const {
  // Errors of files that nobody added, if there are any, stand behind all others.
  const auto number_of = [&](const Error& error) {
    const auto found = numbers_.find(error.place.file);
    return found == numbers_.end() ? files_.size() : found->second;
  };
  struct Key {
    size_t file;
    uint32_t line, column;
    size_t index;  // so that two of one place stay in the order reported
    auto operator<=>(const Key&) const = default;
  };
  std::vector<Key> keys;
  keys.reserve(errors.size());
  for (const Error& error : errors) {
    keys.push_back({number_of(error), error.place.line, error.place.column, keys.size()});
  }
  std::sort(keys.begin(), keys.end());
  // A map that two places take by alias is read twice, and is wrong once; so is a list that two kernels name.
  std::vector<Error> out;
  out.reserve(errors.size());
  std::unordered_set<std::string_view> said;  // at the place of the last one
  for (const Key& key : keys) {
    Error& error = errors[key.index];
    if (!out.empty() && out.back().place != error.place) said.clear();
    if (said.contains(error.message)) continue;
    out.push_back(std::move(error));
    said.insert(out.back().message);  // stays where it is: `out` has room for all
  }
  return out;
}

std::vector<Error> Faults::take_errors() {
  const size_t dropped = count_ - errors_.size();
  std::vector<Error> out = sorted(std::move(errors_));
  if (dropped != 0) {
    out.push_back(
        {ErrorKind::kInput, util::format("{} more errors are not listed", dropped), {files_[0]}, {}, 0});
  }
  return out;
}

std::vector<Error> Faults::take_warnings() {
  return sorted(std::move(warnings_));
}

std::string in_quotes(std::string_view text) {
  const bool cut = text.size() > kMostQuoted;
  size_t size = std::min(text.size(), kMostQuoted);
  // Not through the middle of a UTF-8 sequence.
  while (cut && size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0U) == 0x80U) --size;
  return '"' + util::escape(text.substr(0, size)) + (cut ? "...\"" : "\"");
}

}  // namespace kc::manifest
