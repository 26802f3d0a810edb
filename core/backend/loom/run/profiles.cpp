#include "backend/loom/run/profiles.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "util/text.h"

namespace kc::backend::loom {
namespace {

abi::FeatureState state_of(target::Feature feature) {
  switch (feature) {
    case target::Feature::kOn:
      return abi::kOn;
    case target::Feature::kOff:
      return abi::kOff;
    case target::Feature::kAny:
      break;
  }
  return abi::kAny;
}

abi::ProfileOptions options_for(const target::Target& target) {
  abi::ProfileOptions out;
  out.header = {abi::kProfileType, sizeof out, nullptr};
  out.target = abi::view(target.processor);
  out.sramecc = state_of(target.sramecc);
  out.xnack = state_of(target.xnack);
  return out;
}

bool is_about_layout(const Problem& problem) {
  return problem.text.find("structure_size") != std::string::npos ||
         problem.text.find("extension") != std::string::npos;
}

// A library without a target says so with one of three codes; the same codes stand for faults of the call.
bool means_unsupported(const Problem& problem) {
  const bool is_code = problem.code == abi::kInvalidArgument || problem.code == abi::kUnimplemented ||
                       problem.code == abi::kUnavailable;
  return is_code && !is_about_layout(problem);
}

Explanation fault(const Problem& problem, const target::Target& target) {
  Explanation out;
  out.message = util::format("the Loom library does not take the target {}: {}", target.text,
                             util::escape(problem.text));
  out.is_own_answer = problem.code != abi::kResourceExhausted;
  return out;
}

}  // namespace

const std::vector<std::string>& Profiles::available() {
  if (!available_.empty()) return available_;
  for (const std::string_view name : target::amd_processors()) {
    target::Target target;
    target.processor = name;
    Object object;
    if (!api_.make_profile(options_for(target), object)) available_.emplace_back(name);
  }
  return available_;
}

void Profiles::set_processor_mode(abi::ProfileOptions options, const target::Target& target,
                                  abi::ProcessorMode mode, Profile& out) const {
  const std::string_view name = mode == abi::kComputeUnit ? "compute_unit" : "workgroup_processor";
  for (const uint32_t type : abi::kProcessorModeTypes) {
    abi::ProcessorModeOptions extension;
    extension.header = {type, sizeof extension, nullptr};
    extension.mode = mode;
    options.header.next = &extension;
    const auto problem = api_.make_profile(options, out.object);
    if (!problem) return;
    out.object.reset();
    // A type that it does not know, or any extension at all where it knows none.
    if (problem->code == abi::kUnimplemented && is_about_layout(*problem)) continue;
    out.refusal = fault(*problem, target);
    out.refusal.message = util::format("processor_mode: {} is not possible for {}: {}", name, target.text,
                                       util::escape(problem->text));
    out.refusal.hint = "leave processor_mode out for this target, with an override";
    return;
  }
  out.refusal.message = util::format(
      "processor_mode: {} needs a Loom library that knows processor modes; this one ({}) does not", name,
      api_.version());
  out.refusal.hint = "leave processor_mode out, or use a vendor's build of the library that has it";
}

Profiles::Profile Profiles::make(const target::Target& target, abi::ProcessorMode mode) {
  Profile out;
  const abi::ProfileOptions options = options_for(target);
  const auto problem = api_.make_profile(options, out.object);
  if (!problem) {
    if (mode == abi::kDefaultMode) return out;
    out.object.reset();
    set_processor_mode(options, target, mode, out);
    return out;
  }
  out.object.reset();
  out.refusal = fault(*problem, target);
  if (!means_unsupported(*problem)) return out;
  const std::vector<std::string>& names = available();
  const bool has_processor = std::ranges::find(names, target.processor) != names.end();
  out.refusal.status = Status::kUnsupported;
  if (has_processor) {
    out.refusal.message = util::format("this Loom library ({}) has {}, but not as {}: {}", api_.version(),
                                       target.processor, target.text, util::escape(problem->text));
  } else {
    out.refusal.message =
        util::format("this Loom library ({}) has no {}; it has {}", api_.version(), target.processor,
                     names.empty() ? "no target at all" : util::listed(names, names.size()));
  }
  return out;
}

std::shared_ptr<const Profiles::Profile> Profiles::get(const target::Target& target,
                                                       abi::ProcessorMode mode) {
  const Key key(target.processor, target.sramecc, target.xnack, mode);
  const std::lock_guard lock(mutex_);
  const auto found = all_.find(key);
  if (found != all_.end()) return found->second;
  auto made = std::make_shared<const Profile>(make(target, mode));
  // What may be gone next time, such as too little memory, is not kept.
  if (made->object || made->refusal.is_own_answer) all_.emplace(key, made);
  return made;
}

}  // namespace kc::backend::loom
