#include "engine/death.h"

#include <signal.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>
#include <utility>

#include "engine/wire.h"
#include "util/text.h"

namespace kc::engine {
namespace {

using base::ErrorKind;

constexpr size_t kLogTold = 4096;  // of its log, the end, in an error of one line

std::string signal_name(int number) {
  const char* name = sigabbrev_np(number);
  return name != nullptr ? util::format("SIG{}", name) : util::format("signal {}", number);
}

// As a manifest writes durations.
std::string written(util::Nanoseconds time) {
  using std::chrono::duration_cast;
  using std::chrono::milliseconds;
  constexpr std::array<std::pair<int64_t, std::string_view>, 3> kUnits = {
      {{3'600'000, "h"}, {60'000, "m"}, {1000, "s"}}};
  const int64_t count = duration_cast<milliseconds>(time).count();
  for (const auto& [size, name] : kUnits) {
    if (count != 0 && count % size == 0) return util::format("{}{}", count / size, name);
  }
  return util::format("{}ms", count);
}

}  // namespace

std::string how_it_ended(const Death& death) {
  switch (death.cause) {
    case Death::Cause::kExit:
      return util::format("ended with exit code {}", death.number);
    case Death::Cause::kSignal:
      return "was ended by " + signal_name(death.number);
    case Death::Cause::kDamage:
      return "sent what is no message";
    case Death::Cause::kForeign:
      return "is from another build";
    case Death::Cause::kSilent:
      return "does not answer";
  }
  return "ended";
}

base::Error engine_fault(const Death& death) {
  base::Error error;
  error.kind = death.cause == Death::Cause::kDamage ? ErrorKind::kInternal : ErrorKind::kEnvironment;
  error.message = "kc-engine " + how_it_ended(death);
  if (death.cause == Death::Cause::kForeign) {
    error.message =
        util::format("kc-engine is from another build ({}) than kc ({})", death.detail, build_id());
    error.hint = "install both programs again";
  }
  const std::string_view log = util::trim(death.log);
  if (!log.empty()) {
    error.message += ": ";
    error.message += log.substr(log.size() - std::min(log.size(), kLogTold));
  }
  return error;
}

std::string guilt(const Death& death) {
  switch (death.cause) {
    case Death::Cause::kExit:
      return util::format("ended the engine with exit code {}", death.number);
    case Death::Cause::kSignal:
      if (death.number == SIGKILL) return "was killed (SIGKILL), perhaps for its memory";
      return util::format("crashed the compiler ({})", signal_name(death.number));
    case Death::Cause::kDamage:
    case Death::Cause::kForeign:
    case Death::Cause::kSilent:
      break;
  }
  return "wrote to the connection of the engine";
}

std::string overdue(util::Nanoseconds timeout) {
  return "took longer than " + written(timeout);
}

}  // namespace kc::engine
