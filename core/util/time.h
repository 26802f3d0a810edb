// Durations: as manifests and flags write them, as people read them.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace kc::util {

using Nanoseconds = std::chrono::nanoseconds;
using Clock = std::chrono::steady_clock;

/// `500ms`, `60s`, `10m`, `2h`, `30d`; a number without a unit is seconds. Nothing on other text or over 10
/// years.
std::optional<Nanoseconds> parse_duration(std::string_view text);
/// `0.35 s`, `12 s`, `3 min 20 s`.
std::string duration_text(double seconds);

/// Seconds since construction.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  Clock::time_point start_ = Clock::now();
};

}  // namespace kc::util
