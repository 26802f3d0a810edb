#include "artifact/elf/amdgpu_metadata.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "util/json.h"
#include "util/message_pack.h"
#include "util/text.h"

namespace kc::artifact::elf {
namespace {

using base::Result;
using util::Json;

std::unexpected<base::Error> faulty(std::string_view why) {
  return not_whole(kAmdCodeObject, util::format("its metadata: {}", why));
}

// One map of the metadata, and what it is called in errors.
class Fields {
 public:
  Fields(const Json& map, std::string name)
      : map_(map.get_ref<const Json::object_t&>()), name_(std::move(name)) {}

  const std::string& name() const { return name_; }

  const Json* find(std::string_view key) const {
    const auto found =
        std::ranges::find(map_, key, [](const auto& member) { return std::string_view(member.first); });
    return found == map_.end() ? nullptr : &found->second;
  }

  Result<std::optional<uint32_t>> number_if_there(std::string_view key) const {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    return as_number(*value, key);
  }
  Result<uint32_t> number(std::string_view key) const {
    const Json* value = find(key);
    if (value == nullptr) return missing(key);
    return as_number(*value, key);
  }
  Result<std::string_view> text(std::string_view key) const {
    const Json* value = find(key);
    if (value == nullptr) return missing(key);
    if (!value->is_string()) return wrong(key, "is not text");
    const std::string_view text = value->get_ref<const std::string&>();
    if (text.empty() || text.size() >= kLongestName || text.find('\0') != std::string_view::npos) {
      return wrong(key, "is no name");
    }
    return text;
  }
  /// Nothing when the key is not there.
  Result<const Json::array_t*> list(std::string_view key, size_t most) const {
    const Json* value = find(key);
    if (value == nullptr) return nullptr;
    if (!value->is_array()) return wrong(key, "is not a list");
    const auto& list = value->get_ref<const Json::array_t&>();
    if (list.size() > most) return wrong(key, util::format("has more than {} parts", most));
    return &list;
  }
  /// As `list`, of exactly `size` numbers.
  template <size_t size>
  Result<std::optional<std::array<uint32_t, size>>> numbers(std::string_view key) const {
    KC_ASSIGN(const Json::array_t* list, this->list(key, size));
    if (list == nullptr) return std::nullopt;
    if (list->size() != size) return wrong(key, util::format("has not {} parts", size));
    std::array<uint32_t, size> out{};
    for (size_t i = 0; i < size; ++i) {
      KC_ASSIGN(out[i], as_number((*list)[i], key));
    }
    return out;
  }
  std::unexpected<base::Error> wrong(std::string_view key, std::string_view why) const {
    return faulty(util::format("{} of {} {}", key, name_, why));
  }
  std::unexpected<base::Error> missing(std::string_view key) const {
    return faulty(util::format("{} has no {}", name_, key));
  }

 private:
  Result<uint32_t> as_number(const Json& value, std::string_view key) const {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > UINT32_MAX) {
      return wrong(key, "is not a number below 2^32");
    }
    return value.get<uint32_t>();
  }

  const Json::object_t& map_;
  std::string name_;
};

// Those that a runtime fills in itself are checked as the others are.
Result<void> read_arguments(const Fields& fields, KernelFacts& kernel) {
  KC_ASSIGN(const Json::array_t* list, fields.list(".args", kMostArguments));
  if (list == nullptr) return {};
  for (const Json& value : *list) {
    if (!value.is_object()) return fields.wrong(".args", "has a part that is not a map");
    const Fields argument(value, util::format("an argument of {}", fields.name()));
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

Result<KernelFacts> read_kernel(const Json& value) {
  constexpr std::string_view kDescriptorEnd = ".kd";
  if (!value.is_object()) return faulty("a kernel is not a map");
  const Fields unnamed(value, "a kernel");
  KC_ASSIGN(const std::string_view name, unnamed.text(".name"));
  const Fields fields(value, util::escape(name));
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
  const Result<Json> root = util::read_message_pack(note);
  if (!root) return faulty(root.error().message);
  if (!root->is_object()) return faulty("it is not a map");
  const Fields fields(*root, "the code object");
  KC_ASSIGN(const auto version, fields.numbers<2>("amdhsa.version"));
  if (!version) return fields.missing("amdhsa.version");
  if ((*version)[0] != kMajor) {
    return faulty(util::format("its version is {}.{}, kc reads {}.x", (*version)[0], (*version)[1], kMajor));
  }
  AmdgpuMetadata out;
  KC_ASSIGN(out.target, read_target(fields));
  KC_ASSIGN(const Json::array_t* kernels, fields.list("amdhsa.kernels", kMostKernels));
  if (kernels != nullptr) {
    out.kernels.reserve(kernels->size());
    for (const Json& kernel : *kernels) {
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
