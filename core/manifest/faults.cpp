#include "manifest/faults.h"

#include <algorithm>
#include <iterator>
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

std::vector<Error> sorted(std::vector<Error> errors) {
  std::stable_sort(errors.begin(), errors.end(), [](const Error& a, const Error& b) {
    return std::pair(a.place.line, a.place.column) < std::pair(b.place.line, b.place.column);
  });
  // A map that two places take by alias is read twice, and is wrong once.
  const auto same = [](const Error& a, const Error& b) {
    return a.place == b.place && a.message == b.message;
  };
  errors.erase(std::unique(errors.begin(), errors.end(), same), errors.end());
  return errors;
}

}  // namespace

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
  errors_.insert(errors_.end(), std::make_move_iterator(errors.begin()),
                 std::make_move_iterator(errors.end()));
}

std::vector<Error> Faults::take_errors() {
  const size_t dropped = count_ - errors_.size();
  std::vector<Error> out = sorted(std::move(errors_));
  if (dropped != 0) {
    out.push_back(
        {ErrorKind::kInput, util::format("{} more errors are not listed", dropped), {file_}, {}, 0});
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
