// Facts of code objects: bounded, in order, and such that an entry can hold them.
#include <algorithm>
#include <cstdint>

#include "artifact/artifact.h"
#include "artifact/elf/elf_facts.h"
#include "fuzz/fuzz.h"
#include "target/target.h"

namespace kc::fuzz {

bool check(base::ByteView input) {
  const base::Result<artifact::Facts> facts = artifact::elf::read_cubin(input);
  if (!facts) {
    KC_PROMISE(facts.error().kind == base::ErrorKind::kFailed);
    KC_PROMISE(!facts.error().message.empty());
    return false;
  }
  KC_PROMISE(facts->kernels.size() <= input.size());
  KC_PROMISE(std::ranges::is_sorted(facts->kernels, {}, &artifact::KernelFacts::symbol));
  const auto same_name = [](const auto& a, const auto& b) { return a.symbol == b.symbol; };
  KC_PROMISE(std::ranges::adjacent_find(facts->kernels, same_name) == facts->kernels.end());
  for (const artifact::KernelFacts& kernel : facts->kernels) {
    KC_PROMISE(!kernel.symbol.empty() && kernel.symbol.size() <= input.size());
    KC_PROMISE(kernel.arguments.size() <= input.size());
    KC_PROMISE(std::ranges::is_sorted(kernel.arguments, {}, &artifact::Argument::offset));
    for (const artifact::Argument& argument : kernel.arguments) {
      KC_PROMISE(uint64_t{argument.offset} + argument.size <= kernel.argument_bytes);
    }
    KC_PROMISE(kernel.wave_size == 32 && !kernel.spills);
    KC_PROMISE(facts->find(kernel.symbol) == &kernel);
  }
  const auto target = target::parse_target(facts->found_target);
  KC_PROMISE(target && target->vendor == target::Vendor::kNvidia);

  base::ByteWriter out;
  artifact::write_facts(out, *facts);
  base::ByteReader in(out.bytes());
  KC_PROMISE(artifact::read_facts(in) == *facts);
  KC_PROMISE(in.complete());
  return true;
}

}  // namespace kc::fuzz
