// Facts of code objects of both vendors: bounded, in order, and such that an entry can hold them.
#include <algorithm>
#include <cstdint>

#include "artifact/artifact.h"
#include "artifact/elf/elf_facts.h"
#include "fuzz/fuzz.h"
#include "target/target.h"

namespace kc::fuzz {
namespace {

void check_kernel(const artifact::KernelFacts& kernel, target::Vendor vendor, size_t input_size) {
  KC_PROMISE(!kernel.symbol.empty() && kernel.symbol.size() <= input_size);
  KC_PROMISE(kernel.arguments.size() <= input_size);
  KC_PROMISE(std::ranges::is_sorted(kernel.arguments, {}, &artifact::Argument::offset));
  for (const artifact::Argument& argument : kernel.arguments) {
    KC_PROMISE(uint64_t{argument.offset} + argument.size <= kernel.argument_bytes);
  }
  if (vendor == target::Vendor::kNvidia) {
    KC_PROMISE(kernel.wave_size == 32 && !kernel.spills && !kernel.scalar_registers);
  } else {
    KC_PROMISE((kernel.wave_size == 32 || kernel.wave_size == 64) && kernel.scalar_registers);
    KC_PROMISE((kernel.required_block[0] == 0) == (kernel.required_block[2] == 0));
  }
}

// Whether the reader of that vendor takes the input.
bool check_as(const base::Result<artifact::Facts>& facts, target::Vendor vendor, size_t input_size) {
  if (!facts) {
    KC_PROMISE(facts.error().kind == base::ErrorKind::kFailed);
    KC_PROMISE(!facts.error().message.empty());
    return false;
  }
  KC_PROMISE(facts->kernels.size() <= input_size);
  KC_PROMISE(std::ranges::is_sorted(facts->kernels, {}, &artifact::KernelFacts::symbol));
  const auto same_name = [](const auto& a, const auto& b) { return a.symbol == b.symbol; };
  KC_PROMISE(std::ranges::adjacent_find(facts->kernels, same_name) == facts->kernels.end());
  for (const artifact::KernelFacts& kernel : facts->kernels) {
    check_kernel(kernel, vendor, input_size);
    KC_PROMISE(facts->find(kernel.symbol) == &kernel);
  }
  const auto target = target::parse_target(facts->found_target);
  KC_PROMISE(target && target->vendor == vendor);

  base::ByteWriter out;
  artifact::write_facts(out, *facts);
  base::ByteReader in(out.bytes());
  KC_PROMISE(artifact::read_facts(in) == *facts);
  KC_PROMISE(in.complete());
  return true;
}

}  // namespace

bool check(base::ByteView input) {
  const bool is_nvidia = check_as(artifact::elf::read_cubin(input), target::Vendor::kNvidia, input.size());
  const bool is_amd = check_as(artifact::elf::read_amdgpu(input), target::Vendor::kAmd, input.size());
  KC_PROMISE(!is_nvidia || !is_amd);
  return is_nvidia || is_amd;
}

}  // namespace kc::fuzz
