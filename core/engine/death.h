// How an engine ended, and how that is told.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "util/time.h"

namespace kc::engine {

struct Death {
  enum class Cause : uint8_t {
    kExit,     // `number` is its exit code
    kSignal,   // `number` is the signal
    kDamage,   // what it sent was no frame, or out of turn; it was killed
    kForeign,  // it is from another build; it was killed
    kSilent,   // it did not greet in time; it was killed
  };
  Cause cause = Cause::kExit;
  int number = 0;
  std::string log;     // the end of what it printed, escaped, several lines
  std::string detail;  // kForeign: its build
};

/// `ended by SIGSEGV`, `ended with exit code 3`: with "an engine was" or "kc-engine" before it.
std::string how_it_ended(const Death& death);
/// Of an engine of which no job had begun: it is at fault itself.
base::Error engine_fault(const Death& death);
/// What the only job of an engine is told to have done, as the verb after the unit's name:
/// `crashed the compiler (SIGSEGV)`.
std::string guilt(const Death& death);
/// `took longer than 10m`.
std::string overdue(util::Nanoseconds timeout);

}  // namespace kc::engine
