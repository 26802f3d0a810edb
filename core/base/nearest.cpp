#include "base/nearest.h"

#include <algorithm>
#include <array>
#include <utility>

namespace kc::base {
namespace {

// Names are at most 128 bytes by grammar; anything much longer is not a typo of one, and the work grows with
// the product of both lengths.
constexpr size_t kMaxName = 256;

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

using Row = std::array<size_t, kMaxName + 1>;

// Optimal string alignment distance with three rows. Precondition: both are at most kMaxName long.
size_t distance(std::string_view a, std::string_view b) {
  std::array<Row, 3> rows{};
  Row* before = &rows[0];
  Row* previous = &rows[1];
  Row* current = &rows[2];
  for (size_t j = 0; j <= b.size(); ++j) (*previous)[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    (*current)[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const char x = lower(a[i - 1]);
      const char y = lower(b[j - 1]);
      size_t best =
          std::min({(*previous)[j] + 1, (*current)[j - 1] + 1, (*previous)[j - 1] + (x == y ? 0 : 1)});
      if (i > 1 && j > 1 && x == lower(b[j - 2]) && lower(a[i - 2]) == y) {
        best = std::min(best, (*before)[j - 2] + 1);
      }
      (*current)[j] = best;
    }
    std::swap(before, previous);
    std::swap(previous, current);
  }
  return (*previous)[b.size()];
}

}  // namespace

std::optional<size_t> nearest_index(std::string_view name, std::span<const std::string_view> candidates) {
  if (name.size() > kMaxName) return std::nullopt;
  std::optional<size_t> best;
  size_t best_distance = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const std::string_view candidate = candidates[i];
    if (candidate.size() > kMaxName) continue;
    const size_t longer = std::max(name.size(), candidate.size());
    const size_t allowed = std::max<size_t>(1, longer / 3);
    const size_t length_difference = longer - std::min(name.size(), candidate.size());
    if (length_difference > allowed || (best && length_difference >= best_distance)) continue;
    const size_t found = distance(name, candidate);
    if (found > allowed || (best && found >= best_distance)) continue;
    best = i;
    best_distance = found;
  }
  return best;
}

}  // namespace kc::base
