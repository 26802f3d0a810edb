// Artifacts become results: facts, limits, spool.
#include <algorithm>
#include <expected>

#include "backend/backend.h"
#include "build/work.h"
#include "util/text.h"

namespace kc::build {
namespace {

using base::Error;
using base::ErrorKind;

void add_excess(std::vector<std::string>& out, std::string_view what, uint64_t value,
                const std::optional<uint64_t>& limit, bool bytes) {
  if (!limit || value <= *limit) return;
  if (bytes) {
    out.push_back(util::format("{} {} bytes, at most {}", what, value, *limit));
  } else {
    out.push_back(util::format("{} {}, at most {}", what, value, *limit));
  }
}

std::string kernels_of(const artifact::Facts& facts) {
  std::vector<std::string> names;
  for (const artifact::KernelFacts& kernel : facts.kernels) names.push_back(kernel.symbol);
  return names.empty() ? "none" : util::escape(util::listed(names));
}

// The unit's kernel in its code object: the one that the manifest names, else the one of the entry's name, or
// where the backend gives it another name, the only one.
std::expected<const artifact::KernelFacts*, Error> kernel_in(const manifest::Unit& unit,
                                                             const manifest::Kernel& kernel,
                                                             const artifact::Facts& facts) {
  const backend::Description* backend = backend::find_description(kernel.backend);
  const bool is_named = !unit.symbol.empty() || backend == nullptr || backend->entry_is_symbol;
  if (!is_named && facts.kernels.size() == 1) return &facts.kernels.front();
  if (!is_named && !facts.kernels.empty()) {
    return base::fail_at(ErrorKind::kFailed, kernel.place,
                         util::format("its code object has {}: {}",
                                      util::counted(facts.kernels.size(), "kernel"), kernels_of(facts)),
                         "say with `symbol` which of them it is");
  }
  const std::string& symbol = unit.symbol.empty() ? unit.entry : unit.symbol;
  if (const artifact::KernelFacts* found = facts.find(symbol)) return found;
  return base::fail_at(ErrorKind::kFailed, kernel.place,
                       util::format("its code object has no kernel \"{}\"; it has {}", util::escape(symbol),
                                    kernels_of(facts)));
}

// What is known of how a unit ended, but not what is known of its keys.
void take_details(Work& work, size_t index, const UnitResult& details) {
  UnitResult& result = work.results[index];
  const std::optional<base::Digest> known = result.key;
  result = details;
  result.key = known;
  set_keys(work, index, details.key);
}

}  // namespace

std::optional<Error> exceeded_limits(const manifest::Limits& limits, const base::Place& place,
                                     const UnitResult& result) {
  if (limits.spills && !result.facts.spills) {
    return Error{ErrorKind::kFailed, "its limit of spills cannot be checked: the compiler does not tell them",
                 place, "the option `report: summary` makes Loom count them"};
  }
  std::vector<std::string> excess;
  add_excess(excess, "registers", result.facts.registers, limits.registers, false);
  add_excess(excess, "local memory", result.facts.local_memory, limits.local_memory, true);
  if (result.facts.spills) add_excess(excess, "spills", *result.facts.spills, limits.spills, false);
  add_excess(excess, "shared memory", result.facts.shared_memory, limits.shared_memory, true);
  add_excess(excess, "code", result.code_bytes, limits.code, true);
  if (excess.empty()) return std::nullopt;
  return Error{ErrorKind::kFailed, "exceeds its limits: " + util::join(excess, "; "), place,
               "change the kernel, or the limits in the manifest"};
}

void set_keys(Work& work, size_t index, const std::optional<base::Digest>& content) {
  const ChosenUnit& chosen = work.prepared.units[index];
  UnitResult& result = work.results[index];
  if (!chosen.has_request) {
    result.key = chosen.key;
    return;
  }
  result.request_key = chosen.key;
  if (content) result.key = content;
}

void reject(Work& work, const base::Digest& key, const Error& error, const UnitResult& details) {
  for (const uint32_t index : work.by_key.at(key)) {
    UnitResult& result = work.results[index];
    if (result.state != UnitState::kPending) continue;
    take_details(work, index, details);
    result.state = UnitState::kFailed;
    result.error = error;
    ++work.progress.failed;
    ++work.progress.done;
    work.listener.failed(work.prepared.plan, work.prepared.unit(index), result);
  }
}

bool skip(Work& work, const base::Digest& key, const Error& why, const UnitResult& details) {
  bool any = false;
  for (const uint32_t index : work.by_key.at(key)) {
    UnitResult& result = work.results[index];
    if (result.state != UnitState::kPending || !work.prepared.kernel(index).skip_unsupported) continue;
    take_details(work, index, details);
    result.state = UnitState::kSkipped;
    result.error = why;
    ++work.progress.done;
    any = true;
  }
  return any;
}

base::Result<void> accept(Work& work, const base::Digest& key, const artifact::Artifact& artifact,
                          const Arrival& arrival) {
  Spool::Place place;
  if (work.spool) {
    KC_ASSIGN(place, work.spool->add(artifact.code, arrival.code_digest));
  }
  for (const uint32_t index : work.by_key.at(key)) {
    const manifest::Unit& unit = work.prepared.unit(index);
    UnitResult& result = work.results[index];
    if (result.state != UnitState::kPending) continue;
    result.state = arrival.state;
    set_keys(work, index, arrival.content_key);
    result.seconds = arrival.seconds;
    result.peak_bytes = arrival.peak_bytes;
    result.code_bytes = artifact.code.size();
    result.compiler_version = artifact.compiler_version;
    result.toolkit = artifact.facts.toolkit;
    result.found_target = artifact.facts.found_target;
    result.signers = arrival.signers;
    result.diagnostics = artifact.diagnostics;
    work.places[index] = place;
    if (arrival.state == UnitState::kCompiled) {
      const auto known = work.memory.find(unit.name);
      if (known != work.memory.end()) result.last = known->second->numbers;
    }
    std::optional<Error> fault;
    if (const auto kernel = kernel_in(unit, work.prepared.kernel(index), artifact.facts)) {
      result.facts = **kernel;
      fault = exceeded_limits(work.prepared.limits(index), work.prepared.kernel(index).place, result);
    } else {
      fault = kernel.error();
      if (!arrival.signers.empty()) {
        fault->hint =
            "it was imported, with the kernels that whoever made it had named; `--store-mode refresh` "
            "compiles it here";
      }
    }
    ++work.progress.done;
    if (arrival.state == UnitState::kHit) ++work.progress.hits;
    if (!fault) continue;
    result.state = UnitState::kFailed;
    result.error = std::move(*fault);
    ++work.progress.failed;
    work.listener.failed(work.prepared.plan, unit, result);
  }
  return {};
}

}  // namespace kc::build
