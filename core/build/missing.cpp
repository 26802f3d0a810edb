// Pass: what the store lacks, where it must not or cannot be compiled.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "build/work.h"
#include "util/text.h"

namespace kc::build {
namespace {

using base::Error;
using base::ErrorKind;

bool is_missing(const Work& work, size_t index) {
  return work.results[index].state == UnitState::kPending;
}

// One error a unit of `units`, whose first has the hint: once is enough.
void list(Work& work, const std::vector<size_t>& units, std::string hint) {
  for (const size_t index : units) {
    const std::string& name = work.prepared.unit(index).name;
    const std::string& why =
        work.results[index].error.message;  // of an answer that the manifest does not allow
    work.listener.error({ErrorKind::kFailed,
                         why.empty() ? name + " is not in the store"
                                     : util::format("{} has no code in the store: {}", name, why),
                         {},
                         std::exchange(hint, {})});
  }
}

}  // namespace

std::optional<ErrorKind> stop_for_missing(Work& work) {
  const bool has_all_compilers = work.prepared.identities.absent.empty();
  const bool is_forbidden = work.options.require_cached || work.options.pack_only;
  if (has_all_compilers && !is_forbidden) return std::nullopt;
  std::vector<size_t> units;
  for (size_t i = 0; i < work.results.size(); ++i) {
    const bool is_beyond_us = work.prepared.absent(work.prepared.kernel(i).backend) != nullptr;
    if (is_missing(work, i) && (is_forbidden || is_beyond_us)) units.push_back(i);
  }
  if (units.empty()) return std::nullopt;
  if (is_forbidden) {
    list(work, units,
         has_all_compilers ? "`kc build` compiles what is missing"
                           : "`kc build` compiles what is missing, where there is a compiler");
    return ErrorKind::kFailed;
  }
  list(work, units, {});
  for (const AbsentCompiler& absent : work.prepared.identities.absent) {
    const auto count = static_cast<uint64_t>(std::ranges::count_if(
        units, [&](size_t index) { return work.prepared.kernel(index).backend == absent.compiler.backend; }));
    if (count == 0) continue;
    Error error = absent.why;
    error.message =
        util::format("{} cannot be compiled here: {}", util::counted(count, "unit"), error.message);
    work.listener.error(error);
  }
  return ErrorKind::kEnvironment;
}

}  // namespace kc::build
