#include "artifact/elf/amdgpu_metadata.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "util/message_pack.h"
#include "util/text.h"

namespace kc::artifact::elf {
namespace {

using base::Result;
using util::MessagePack;
using Kind = MessagePack::Kind;

std::unexpected<base::Error> faulty(std::string_view why) {
  return not_whole(kAmdCodeObject, util::format("its metadata: {}", why));
}

// One map of the metadata, and what it is called in errors: `a kernel`, or `an argument of` a kernel.
class Fields {
 public:
  Fields(const MessagePack::Value& map, std::string_view name, std::string_view name_before = {})
      : members_(map.members()), name_before_(name_before), name_(name) {}

  void rename(std::string_view name) { name_ = name; }
  std::string name() const { return util::format("{}{}", name_before_, util::escape(name_)); }

  const MessagePack::Value* find(std::string_view key) const {
    const auto found = std::ranges::find(members_, key, &MessagePack::Member::first);
    return found == members_.end() ? nullptr : &found->second;
  }

  Result<std::optional<uint32_t>> number_if_there(std::string_view key) const {
    const MessagePack::Value* value = find(key);
    if (value == nullptr) return std::nullopt;
    return as_number(*value, key);
  }
  Result<uint32_t> number(std::string_view key) const {
    const MessagePack::Value* value = find(key);
    if (value == nullptr) return missing(key);
    return as_number(*value, key);
  }
  Result<std::string_view> text(std::string_view key) const {
    const MessagePack::Value* value = find(key);
    if (value == nullptr) return missing(key);
    if (value->kind() != Kind::kText) return wrong(key, "is not text");
    const std::string_view text = value->text();
    if (text.empty() || text.size() >= kLongestName || text.find('\0') != std::string_view::npos) {
      return wrong(key, "is no name");
    }
    return text;
  }
  /// Nothing when the key is not there.
  Result<std::optional<std::vector<MessagePack::Value>>> list(std::string_view key, size_t most) const {
    const MessagePack::Value* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (value->kind() != Kind::kList) return wrong(key, "is not a list");
    if (value->size() > most) return wrong(key, util::format("has more than {} parts", most));
    return value->parts();
  }
  /// As `list`, of exactly `size` numbers.
  template <size_t size>
  Result<std::optional<std::array<uint32_t, size>>> numbers(std::string_view key) const {
    KC_ASSIGN(const auto list, this->list(key, size));
    if (!list) return std::nullopt;
    if (list->size() != size) return wrong(key, util::format("has not {} parts", size));
    std::array<uint32_t, size> out{};
    for (size_t i = 0; i < size; ++i) {
      KC_ASSIGN(out[i], as_number((*list)[i], key));
    }
    return out;
  }
  std::unexpected<base::Error> wrong(std::string_view key, std::string_view why) const {
    return faulty(util::format("{} of {} {}", key, name(), why));
  }
  std::unexpected<base::Error> missing(std::string_view key) const {
    return faulty(util::format("{} has no {}", name(), key));
  }

 private:
  Result<uint32_t> as_number(const MessagePack::Value& value, std::string_view key) const {
    if (value.kind() != Kind::kNumber || value.number() > UINT32_MAX) {
      return wrong(key, "is not a number below 2^32");
    }
    return static_cast<uint32_t>(value.number());
  }

  std::vector<MessagePack::Member> members_;
  std::string_view name_before_;
  std::string_view name_;
};

// Those that a runtime fills in itself are checked as the others are.
Result<void> read_arguments(const Fields& fields, KernelFacts& kernel) {
  KC_ASSIGN(const auto list, fields.list(".args", kMostArguments));
  if (!list) return {};
  for (const MessagePack::Value& value : *list) {
    if (value.kind() != Kind::kMap) return fields.wrong(".args", "has a part that is not a map");
    const Fields argument(value, kernel.symbol, "an argument of ");
    Argument out;
    KC_ASSIGN(out.offset, argument.number(".offset"));
    KC_ASSIGN(out.size, argument.number(".size"));
    KC_ASSIGN(const std::string_view kind, argument.text(".value_kind"));
    if (!within(out.offset, out.size, kernel.argument_bytes)) {
      return faulty(util::format("an argument of {} lies outside its kernarg segment of {} bytes",
                                 fields.name(), kernel.argument_bytes));
    }
    if (!kind.starts_with("hidden_")) kernel.arguments.push_back(out);
  }
  std::ranges::sort(kernel.arguments, {}, &Argument::offset);
  return {};
}

// Both kinds together; unknown when a compiler states neither.
Result<std::optional<uint32_t>> read_spills(const Fields& fields) {
  KC_ASSIGN(const std::optional<uint32_t> vector, fields.number_if_there(".vgpr_spill_count"));
  KC_ASSIGN(const std::optional<uint32_t> scalar, fields.number_if_there(".sgpr_spill_count"));
  if (!vector && !scalar) return std::nullopt;
  const uint64_t sum = uint64_t{vector.value_or(0)} + scalar.value_or(0);
  if (sum > UINT32_MAX) return faulty(util::format("the spills of {} are out of range", fields.name()));
  return static_cast<uint32_t>(sum);
}

Result<KernelFacts> read_kernel(const MessagePack::Value& value) {
  constexpr std::string_view kDescriptorEnd = ".kd";
  if (value.kind() != Kind::kMap) return faulty("a kernel is not a map");
  Fields fields(value, "a kernel");
  KC_ASSIGN(const std::string_view name, fields.text(".name"));
  fields.rename(name);
  // A runtime finds the descriptor by .symbol, and programs ask it for .name.
  KC_ASSIGN(const std::string_view symbol, fields.text(".symbol"));
  if (!symbol.ends_with(kDescriptorEnd) || symbol.substr(0, symbol.size() - kDescriptorEnd.size()) != name) {
    return fields.wrong(".symbol", util::format("is {}, not its name and .kd", util::escape(symbol)));
  }
  KernelFacts out;
  out.symbol = name;
  KC_ASSIGN(out.registers, fields.number(".vgpr_count"));
  KC_ASSIGN(out.scalar_registers, fields.number(".sgpr_count"));
  KC_ASSIGN(out.spills, read_spills(fields));
  KC_ASSIGN(out.local_memory, fields.number(".private_segment_fixed_size"));
  KC_ASSIGN(out.shared_memory, fields.number(".group_segment_fixed_size"));
  KC_ASSIGN(out.argument_bytes, fields.number(".kernarg_segment_size"));
  KC_TRY(read_arguments(fields, out));
  KC_ASSIGN(out.max_threads, fields.number(".max_flat_workgroup_size"));
  KC_ASSIGN(out.wave_size, fields.number(".wavefront_size"));
  if (out.wave_size != 32 && out.wave_size != 64)
    return fields.wrong(".wavefront_size", "is neither 32 nor 64");
  KC_ASSIGN(const auto block, fields.numbers<3>(".reqd_workgroup_size"));
  if (block && std::ranges::count(*block, 0U) != 0) return fields.wrong(".reqd_workgroup_size", "has a 0");
  if (block) out.required_block = *block;
  return out;
}

// `amdgcn-amd-amdhsa--gfx942:xnack-`; LLVM writes the environment, between the last two dashes, as nothing or
// as `unknown`.
Result<std::string> read_target(const Fields& fields) {
  constexpr std::string_view kTriple = "amdgcn-amd-amdhsa-";
  KC_ASSIGN(const std::string_view target, fields.text("amdhsa.target"));
  const size_t dash = target.find('-', kTriple.size());
  if (!target.starts_with(kTriple) || dash == std::string_view::npos) {
    return fields.wrong("amdhsa.target", util::format("is {}", util::escape(target)));
  }
  return std::string(target.substr(dash + 1));
}

}  // namespace

Result<AmdgpuMetadata> read_amdgpu_metadata(base::ByteView note) {
  constexpr uint32_t kMajor = 1;
  const Result<MessagePack> pack = util::read_message_pack(note);
  if (!pack) return faulty(pack.error().message);
  if (pack->root().kind() != Kind::kMap) return faulty("it is not a map");
  const Fields fields(pack->root(), "the code object");
  KC_ASSIGN(const auto version, fields.numbers<2>("amdhsa.version"));
  if (!version) return fields.missing("amdhsa.version");
  if ((*version)[0] != kMajor) {
    return faulty(util::format("its version is {}.{}, kc reads {}.x", (*version)[0], (*version)[1], kMajor));
  }
  AmdgpuMetadata out;
  KC_ASSIGN(out.target, read_target(fields));
  KC_ASSIGN(const auto kernels, fields.list("amdhsa.kernels", kMostKernels));
  if (kernels) {
    out.kernels.reserve(kernels->size());
    for (const MessagePack::Value& kernel : *kernels) {
      KC_ASSIGN(KernelFacts facts, read_kernel(kernel));
      out.kernels.push_back(std::move(facts));
    }
  }
  std::ranges::sort(out.kernels, {}, &KernelFacts::symbol);
  const auto twice = std::ranges::adjacent_find(out.kernels, {}, &KernelFacts::symbol);
  if (twice != out.kernels.end()) {
    return faulty(util::format("two kernels are named {}", util::escape(twice->symbol)));
  }
  return out;
}

}  // namespace kc::artifact::elf
