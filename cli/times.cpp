#include "cli/times.h"

#include <ctime>

#include "util/text.h"

namespace kc::cli {
namespace {

constexpr int64_t kMinute = 60;
constexpr int64_t kHour = 60 * kMinute;
constexpr int64_t kDay = 24 * kHour;

}  // namespace

std::string time_text(int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  if (gmtime_r(&time, &parts) == nullptr) return std::to_string(seconds);
  return util::format("{:04}-{:02}-{:02} {:02}:{:02} UTC", parts.tm_year + 1900, parts.tm_mon + 1,
                      parts.tm_mday, parts.tm_hour, parts.tm_min);
}

std::string age_text(int64_t seconds) {
  if (seconds < 0) seconds = 0;
  if (seconds < 2 * kMinute) return util::format("{} s", seconds);
  if (seconds < 2 * kHour) return util::format("{} min", seconds / kMinute);
  if (seconds < 2 * kDay) return util::format("{} h", seconds / kHour);
  return util::format("{} d", seconds / kDay);
}

}  // namespace kc::cli
