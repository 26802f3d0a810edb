// What a signature may vouch for: code that was compiled here, or that somebody trusted has signed.
#include <algorithm>
#include <utility>

#include "build/work.h"
#include "util/text.h"

namespace kc::build {
namespace {

// More lines than this tell nobody anything; the JSON events have all.
constexpr uint64_t kMostLines = 20;

bool has_code(const UnitResult& result) {
  return result.state == UnitState::kHit || result.state == UnitState::kCompiled;
}

std::string why_not(const UnitResult& result) {
  if (std::ranges::find(result.signers, std::string()) != result.signers.end()) {
    return "was imported without a trusted signature";
  }
  return "was imported, signed by " + util::listed(result.signers) + ", which is not trusted here";
}

}  // namespace

uint64_t refuse_imported(Work& work, const Trust& trust) {
  uint64_t count = 0;
  std::string hint = "`--store-mode refresh` compiles them here; `kc store rm` takes them out of the store";
  for (size_t i = 0; i < work.results.size(); ++i) {
    const UnitResult& result = work.results[i];
    if (!has_code(result) || may_be_signed(trust, result.signers)) continue;
    if (++count > kMostLines) continue;
    work.listener.error(
        {base::ErrorKind::kFailed,
         util::format("{} {}, so it is not signed", work.prepared.unit(i).name, why_not(result)),
         {},
         std::exchange(hint, {})});
  }
  if (count > kMostLines) {
    work.listener.error({base::ErrorKind::kFailed,
                         util::format("{} that may not be signed",
                                      util::counted(count - kMostLines, "more unit", "more units"))});
  }
  return count;
}

}  // namespace kc::build
