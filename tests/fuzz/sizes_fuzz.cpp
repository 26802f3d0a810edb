// Numbers, sizes and durations as people write them: the same value as by the plain reading of their grammar,
// and texts for people that never surprise.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "fuzz/fuzz.h"
#include "util/text.h"
#include "util/time.h"

namespace kc::fuzz {
namespace {

constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();

// `digits` times `factor`, kept in 128 bits so that nothing is lost before it is compared.
std::optional<uint64_t> product(std::string_view digits, uint64_t factor, uint64_t most) {
  if (digits.empty()) return std::nullopt;
  __extension__ using Wide = unsigned __int128;
  Wide value = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + static_cast<unsigned>(c - '0');
    if (value > kMost) return std::nullopt;
  }
  value *= factor;
  if (value > most) return std::nullopt;
  return static_cast<uint64_t>(value);
}

struct Unit {
  std::string_view name;
  uint64_t factor;
};

// The value by the first unit that `text` ends in and that leaves only digits.
template <size_t N>
std::optional<uint64_t> reading(std::string_view text, const Unit (&units)[N], uint64_t most) {
  for (const Unit& unit : units) {
    if (!text.ends_with(unit.name)) continue;
    const auto value = product(text.substr(0, text.size() - unit.name.size()), unit.factor, most);
    if (value) return value;
  }
  return std::nullopt;
}

constexpr Unit kSizes[] = {{"", 1},          {"B", 1},          {"K", 1U << 10}, {"KB", 1U << 10},
                           {"Ki", 1U << 10}, {"KiB", 1U << 10}, {"M", 1U << 20}, {"MB", 1U << 20},
                           {"Mi", 1U << 20}, {"MiB", 1U << 20}, {"G", 1U << 30}, {"GB", 1U << 30},
                           {"Gi", 1U << 30}, {"GiB", 1U << 30}};
constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint64_t kSecond = 1000 * kMillisecond;
constexpr Unit kDurations[] = {{"", kSecond},       {"ms", kMillisecond},  {"s", kSecond},
                               {"m", 60 * kSecond}, {"h", 3600 * kSecond}, {"d", 86'400 * kSecond}};
constexpr uint64_t kTenYears = 3653 * 86'400 * kSecond;

void check_texts(uint64_t number) {
  const std::string size = util::size_text(number);
  // `1023.9 KiB` is the longest.
  KC_PROMISE(!size.empty() && size.size() <= 10 && size.back() == 'B');
  const auto count = static_cast<double>(number);
  // The last may be anything that a double can be: infinite, no number.
  for (const double seconds : {count, count / 1e9, std::bit_cast<double>(number)}) {
    const std::string duration = util::duration_text(seconds);
    KC_PROMISE(!duration.empty() && duration.size() <= 32);
    KC_PROMISE(duration[0] >= '0' && duration[0] <= '9');
  }
}

}  // namespace

bool check(base::ByteView input) {
  const std::string_view text = base::as_text(input);
  const auto number = util::parse_number(text, 0, kMost);
  KC_PROMISE(number == product(text, 1, kMost));
  if (number) {
    KC_PROMISE(util::parse_number(text, *number, *number) == number);
    KC_PROMISE(*number == 0 || !util::parse_number(text, 0, *number - 1));
    KC_PROMISE(*number == kMost || !util::parse_number(text, *number + 1, kMost));
  }

  const auto size = util::parse_size(text);
  KC_PROMISE(size == reading(text, kSizes, kMost));
  if (size) {
    KC_PROMISE(util::parse_size(std::to_string(*size)) == size);
    KC_PROMISE(util::parse_size(std::to_string(*size) + "B") == size);
  }

  const auto duration = util::parse_duration(text);
  const auto nanoseconds = reading(text, kDurations, kTenYears);
  KC_PROMISE(duration.has_value() == nanoseconds.has_value());
  if (duration) {
    KC_PROMISE(static_cast<uint64_t>(duration->count()) == *nanoseconds);
    check_texts(*nanoseconds);
  }
  if (size) check_texts(*size);
  uint64_t bits = 0;
  for (const uint8_t byte : input.first(std::min(sizeof bits, input.size()))) bits = bits << 8 | byte;
  check_texts(bits);
  return number || size || duration;
}

}  // namespace kc::fuzz
