// Times as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace kc::cli {

/// `2026-03-01 12:34 UTC`, of seconds since the epoch.
std::string time_text(int64_t seconds);
/// `12 s`, `5 min`, `7 h`, `12 d`: how long something lies back. What lies ahead is `0 s`.
std::string age_text(int64_t seconds);

}  // namespace kc::cli
