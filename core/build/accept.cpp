// Artifacts become results: facts, limits, spool.
#include <algorithm>

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
  return names.empty() ? "none" : util::listed(names);
}

}  // namespace

std::optional<Error> exceeded_limits(const manifest::Limits& limits, const base::Place& place,
                                     const UnitResult& result) {
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

void reject(Work& work, const base::Digest& key, const Error& error, const UnitResult& details) {
  for (const uint32_t index : work.by_key.at(key)) {
    UnitResult& result = work.results[index];
    if (result.state != UnitState::kPending) continue;
    result = details;
    result.state = UnitState::kFailed;
    result.key = key;
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
    result = details;
    result.state = UnitState::kSkipped;
    result.key = key;
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
    KC_ASSIGN(place, work.spool->add(artifact.code));
  }
  for (const uint32_t index : work.by_key.at(key)) {
    const manifest::Unit& unit = work.prepared.unit(index);
    UnitResult& result = work.results[index];
    if (result.state != UnitState::kPending) continue;
    result.state = arrival.state;
    result.key = key;
    result.seconds = arrival.seconds;
    result.peak_bytes = arrival.peak_bytes;
    result.code_bytes = artifact.code.size();
    result.compiler_version = artifact.compiler_version;
    result.toolkit = artifact.facts.toolkit;
    result.found_target = artifact.facts.found_target;
    result.diagnostics = artifact.diagnostics;
    work.places[index] = place;
    if (arrival.state == UnitState::kCompiled) {
      const auto known = work.memory.find(unit.name);
      if (known != work.memory.end()) result.last = known->second->numbers;
    }
    const std::string& symbol = unit.symbol.empty() ? unit.entry : unit.symbol;
    std::optional<Error> fault;
    if (const artifact::KernelFacts* facts = artifact.facts.find(symbol)) {
      result.facts = *facts;
      fault = exceeded_limits(work.prepared.limits(index), work.prepared.kernel(index).place, result);
    } else {
      fault = Error{
          ErrorKind::kFailed,
          util::format("its code object has no kernel \"{}\"; it has {}", symbol, kernels_of(artifact.facts)),
          work.prepared.kernel(index).place,
          {}};
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
