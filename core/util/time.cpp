#include "util/time.h"

#include <cstdint>

#include "util/text.h"

namespace kc::util {
namespace {

struct Unit {
  std::string_view name;
  int64_t nanoseconds;
};
constexpr int64_t kSecond = 1'000'000'000;
constexpr Unit kUnits[] = {{"ms", kSecond / 1000},
                           {"s", kSecond},
                           {"m", 60 * kSecond},
                           {"h", 60 * 60 * kSecond},
                           {"d", 24 * 60 * 60 * kSecond}};
// Long enough for any time limit or age, and far below what 64 bits of nanoseconds hold (292 years).
constexpr int64_t kLongest = int64_t{3653} * 24 * 60 * 60 * kSecond;

}  // namespace

std::optional<Nanoseconds> parse_duration(std::string_view text) {
  size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
  const std::string_view name = digits == text.size() ? "s" : text.substr(digits);
  for (const Unit& unit : kUnits) {
    if (unit.name != name) continue;
    const auto most = static_cast<uint64_t>(kLongest / unit.nanoseconds);
    const std::optional<uint64_t> count = parse_number(text.substr(0, digits), 0, most);
    if (!count) return std::nullopt;
    return Nanoseconds(static_cast<int64_t>(*count) * unit.nanoseconds);
  }
  return std::nullopt;
}

std::string duration_text(double seconds) {
  if (!(seconds > 0)) seconds = 0;  // NaN and -0.0 too
  // Beyond what a 64-bit count of seconds holds nothing is meant; the cast below must stay defined.
  constexpr double kMost = 1e15;
  if (seconds > kMost) seconds = kMost;
  // Each limit is where rounding would carry into the next form: never `10.0 s` nor `60 s`.
  if (seconds < 9.995) return util::format("{:.2f} s", seconds);
  const auto whole = static_cast<uint64_t>(seconds + 0.5);
  if (whole < 60) return util::format("{} s", whole);
  const auto with_rest = [](uint64_t count, std::string_view unit, uint64_t rest,
                            std::string_view rest_unit) {
    return rest == 0 ? util::format("{} {}", count, unit)
                     : util::format("{} {} {} {}", count, unit, rest, rest_unit);
  };
  if (whole < 3600) return with_rest(whole / 60, "min", whole % 60, "s");
  const uint64_t minutes = (whole + 30) / 60;
  if (minutes < 24 * 60) return with_rest(minutes / 60, "h", minutes % 60, "min");
  const uint64_t hours = (minutes + 30) / 60;
  return with_rest(hours / 24, "d", hours % 24, "h");
}

}  // namespace kc::util
