// Source: what cuobjdump -elf of CUDA 13.4 prints for code objects of tileiras 13.4 (names of its EIATTR_
// records are given where they are read).
#include <elf.h>
#include <gelf.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "artifact/elf/elf_facts.h"
#include "artifact/elf/image.h"
#include "target/target.h"
#include "util/text.h"

namespace kc::artifact::elf {
namespace {

using base::ByteView;

constexpr Format kCubin = {190, "cubin"};  // EM_CUDA
constexpr uint8_t kEntryBit = 0x10;        // in st_other: a kernel, not a device function
constexpr uint32_t kWarp = 32;

enum Record : uint8_t {
  kMaxThreads = 0x05,     // EIATTR_MAX_THREADS: u32 x, y, z
  kParamBank = 0x0a,      // EIATTR_PARAM_CBANK: u32 symbol, u16 offset, u16 size
  kRequiredBlock = 0x10,  // EIATTR_REQNTID: u32 x, y, z
  kFrameSize = 0x11,      // EIATTR_FRAME_SIZE: u32 symbol, u32 bytes
  kMinStack = 0x12,       // EIATTR_MIN_STACK_SIZE: u32 symbol, u32 bytes, with what it calls
  kParam = 0x17,  // EIATTR_KPARAM_INFO: u32 index, u16 ordinal, u16 offset, size in bits 18-31 of a u32
  kParamBankSize = 0x19,  // EIATTR_CBANK_PARAM_SIZE: the u16 of the record itself
  kRegisters = 0x2f,      // EIATTR_REGCOUNT: u32 symbol, u32 count
  kParamV2 = 0x45,        // EIATTR_KPARAM_INFO_V2: u32 index, u16 ordinal, u16 offset, u16 size, u16 of flags
};
enum Format : uint8_t { kNoValue = 1, kByteValue = 2, kHalfValue = 3, kSizedValue = 4 };

std::unexpected<base::Error> not_whole(std::string_view why) {
  return not_whole(kCubin, why);
}

// The description of the first note in a section: namesz, descsz, type, name and description padded to 4.
std::optional<ByteView> note_description(const Section* section) {
  if (section == nullptr) return std::nullopt;
  base::ByteReader in(section->data);
  const uint32_t name_size = in.u32();
  const uint32_t size = in.u32();
  in.u32();  // type
  in.raw((uint64_t{name_size} + 3) / 4 * 4);
  const ByteView out = in.raw(size);
  return in.ok() ? std::optional(out) : std::nullopt;
}

struct ToolInfo {
  std::string version;    // "Cuda compilation tools, release 13.4, V13.4.92"
  std::string arguments;  // "-O 3 -arch sm_90a "
};

// .note.nv.tkinfo: u32 version 2, u32 offsets of object name, tool, tool version, branch, arguments in the
// strings that follow.
std::optional<ToolInfo> tool_info(ByteView note) {
  constexpr uint32_t kVersion = 2;
  base::ByteReader in(note);
  if (in.u32() != kVersion) return std::nullopt;
  uint32_t offsets[5];
  for (uint32_t& offset : offsets) offset = in.u32();
  const std::string_view strings = base::as_text(in.raw(in.left()));
  const auto text = [&](uint32_t offset) {
    if (offset >= strings.size()) return std::string();
    const std::string_view rest = strings.substr(offset);
    return std::string(rest.substr(0, rest.find('\0')));
  };
  if (!in.ok()) return std::nullopt;
  return ToolInfo{text(offsets[2]), text(offsets[4])};
}

// The value of the last `-arch X`, `-arch=X`, `--gpu-name X`.
std::optional<std::string> architecture_in(const std::string& arguments) {
  std::optional<std::string> out;
  const std::vector<std::string> words = util::split(arguments, ' ');
  for (size_t i = 0; i < words.size(); ++i) {
    for (const std::string_view option : {"-arch", "--arch", "--gpu-name", "-gpu-name"}) {
      if (words[i] == option && i + 1 < words.size()) out = words[i + 1];
      if (words[i].starts_with(std::string(option) + "=")) out = words[i].substr(option.size() + 1);
    }
  }
  return out;
}

// Up to ABI version 7 (CUDA 12) the SM number is the low byte of e_flags, from 8 on the one above it.
uint32_t sm_in_flags(const GElf_Ehdr& header) {
  constexpr uint8_t kFirstAbiWithSmAbove = 8;
  const bool is_above = header.e_ident[EI_ABIVERSION] >= kFirstAbiWithSmAbove;
  return is_above ? (header.e_flags >> 8) & 0xFF : header.e_flags & 0xFF;
}

base::Result<std::string> found_target(const GElf_Ehdr& header, const std::optional<ToolInfo>& tool,
                                       bool has_note) {
  const uint32_t sm = sm_in_flags(header);
  if (!has_note) {
    std::string name = util::format("sm_{}", sm);
    if (!target::parse_target(name)) return not_whole(util::format("its header names SM {}", sm));
    return name;
  }
  // With the note there but unreadable, e_flags must not answer: they do not tell sm_90 from sm_90a.
  const auto name = tool ? architecture_in(tool->arguments) : std::nullopt;
  if (!name) return not_whole("its .note.nv.tkinfo does not say for which architecture it is");
  const auto target = target::parse_target(*name);
  if (!target || target->vendor != target::Vendor::kNvidia) {
    return not_whole(util::format("its .note.nv.tkinfo names the architecture {}", util::escape(*name)));
  }
  if (target->sm != sm) {
    return not_whole(util::format("its .note.nv.tkinfo says {}, its header SM {}", *name, sm));
  }
  return *name;
}

// .note.nv.cuinfo: u16 version, u16 SM, u32 toolkit as 10 * major + minor.
std::string toolkit_version(const std::optional<ByteView>& cuinfo, const std::optional<ToolInfo>& tool) {
  if (cuinfo && cuinfo->size() >= 8) {
    const uint32_t version = base::load_le<uint32_t>(*cuinfo, 4);
    return util::format("{}.{}", version / 10, version % 10);
  }
  constexpr std::string_view kRelease = "release ";
  const size_t at = tool ? tool->version.find(kRelease) : std::string::npos;
  if (at == std::string::npos) return {};
  const std::string_view rest = std::string_view(tool->version).substr(at + kRelease.size());
  const std::string_view version = rest.substr(0, rest.find_first_not_of("0123456789."));
  return version.size() <= kMaxName ? std::string(version) : std::string();  // what an entry can hold
}

// Calls `use(record, value)` for each record of an .nv.info section; `value` of a record without bytes of its
// own is its two-byte field.
template <typename Use>
base::Result<void> each_record(const Section& section, Use use) {
  base::ByteReader in(section.data);
  while (in.left() > 0) {
    const uint8_t format = in.u8();
    const uint8_t record = in.u8();
    ByteView value = in.raw(2);
    if (in.ok() && format == kSizedValue) value = in.raw(base::load_le<uint16_t>(value, 0));
    if (!in.ok() || format < kNoValue || format > kSizedValue)
      return not_whole("an .nv.info record is damaged");
    KC_TRY(use(record, value));
  }
  return {};
}

base::Result<std::array<uint32_t, 3>> three_numbers(ByteView value) {
  base::ByteReader in(value);
  const std::array<uint32_t, 3> out = {in.u32(), in.u32(), in.u32()};
  if (!in.ok()) return not_whole("a record of block sizes is too short");
  return out;
}

base::Result<void> read_kernel_records(const Section& section, KernelFacts& kernel) {
  std::optional<uint32_t> bank;
  std::optional<uint32_t> bank_by_size;
  const auto use = [&](uint8_t record, ByteView value) -> base::Result<void> {
    base::ByteReader in(value);
    if (record == kParam || record == kParamV2) {
      in.u32();  // index
      in.u16();  // ordinal: offsets ascend with it
      Argument argument;
      argument.offset = in.u16();
      argument.size = record == kParamV2 ? in.u16() : in.u32() >> 18;
      if (!in.ok()) return not_whole("a parameter record is too short");
      if (kernel.arguments.size() == kMostArguments) return not_whole("a kernel has too many parameters");
      kernel.arguments.push_back(argument);
    } else if (record == kParamBank) {
      in.u32();  // symbol of the constant bank
      in.u16();  // where in it the parameters begin
      bank = in.u16();
      if (!in.ok()) return not_whole("a parameter bank record is too short");
    } else if (record == kParamBankSize) {
      bank_by_size = in.u16();
    } else if (record == kRequiredBlock) {
      KC_ASSIGN(kernel.required_block, three_numbers(value));
    } else if (record == kMaxThreads) {
      KC_ASSIGN(const auto limits, three_numbers(value));
      uint64_t product = 1;
      for (const uint32_t limit : limits) product = std::min<uint64_t>(product * limit, UINT32_MAX);
      kernel.max_threads = static_cast<uint32_t>(product);
    }
    return {};
  };
  KC_TRY(each_record(section, use));
  kernel.argument_bytes = bank.value_or(bank_by_size.value_or(0));
  std::ranges::sort(kernel.arguments, {}, &Argument::offset);
  for (const Argument& argument : kernel.arguments) {
    if (uint64_t{argument.offset} + argument.size > kernel.argument_bytes) {
      return not_whole(util::format("a parameter of {} lies outside its parameter block of {} bytes",
                                    util::escape(kernel.symbol), kernel.argument_bytes));
    }
  }
  return {};
}

// Registers and stack stand in .nv.info, by symbol.
base::Result<void> read_common_records(const Section& section,
                                       const std::unordered_map<uint32_t, size_t>& kernel_of,
                                       std::vector<KernelFacts>& kernels, std::vector<bool>& has_registers) {
  return each_record(section, [&](uint8_t record, ByteView value) -> base::Result<void> {
    if (record != kRegisters && record != kFrameSize && record != kMinStack) return {};
    base::ByteReader in(value);
    const uint32_t symbol = in.u32();
    const uint32_t number = in.u32();
    if (!in.ok()) return not_whole("a record of registers or stack is too short");
    const auto found = kernel_of.find(symbol);
    if (found == kernel_of.end()) return {};  // a device function
    KernelFacts& kernel = kernels[found->second];
    if (record == kRegisters) {
      kernel.registers = number;
      has_registers[found->second] = true;
    } else {
      kernel.local_memory = std::max(kernel.local_memory, number);
    }
    return {};
  });
}

}  // namespace

base::Result<Facts> read_cubin(ByteView code) {
  KC_ASSIGN(const Image image, Image::open(code, kCubin));
  for (const std::string& name : image.repeated_names()) {
    // Facts are found by name: with two sections of one name it would be chance which one is read.
    if (name.find(".nv.") != std::string::npos) {
      return not_whole(util::format("two sections are named {}", util::escape(name)));
    }
  }
  Facts out;
  const Section* tkinfo = image.find(".note.nv.tkinfo");
  const auto tool_note = note_description(tkinfo);
  const auto tool = tool_note ? tool_info(*tool_note) : std::nullopt;
  KC_ASSIGN(out.found_target, found_target(image.header(), tool, tkinfo != nullptr));
  out.toolkit = toolkit_version(note_description(image.find(".note.nv.cuinfo")), tool);

  std::unordered_map<uint32_t, size_t> kernel_of;
  KC_ASSIGN(const auto entries, image.symbols(SHT_SYMTAB, [](const GElf_Sym& symbol) {
    return GELF_ST_TYPE(symbol.st_info) == STT_FUNC && (symbol.st_other & kEntryBit) != 0;
  }));
  // Before their records are read: thousands of one name would each get those of the one section of that
  // name.
  std::unordered_set<std::string_view> names;
  for (const auto& [index, name, symbol] : entries) {
    if (!names.insert(name).second) {
      return not_whole(util::format("it has two entries named {}", util::escape(name)));
    }
    kernel_of.emplace(index, out.kernels.size());
    KernelFacts& kernel = out.kernels.emplace_back();
    kernel.symbol = name;
    kernel.wave_size = kWarp;
  }
  std::vector<bool> has_registers(out.kernels.size());
  if (const Section* info = image.find(".nv.info")) {
    KC_TRY(read_common_records(*info, kernel_of, out.kernels, has_registers));
  }
  for (size_t i = 0; i < out.kernels.size(); ++i) {
    KernelFacts& kernel = out.kernels[i];
    if (!has_registers[i]) {
      return not_whole(
          util::format("it does not say how many registers {} takes", util::escape(kernel.symbol)));
    }
    if (const Section* info = image.find(".nv.info." + kernel.symbol))
      KC_TRY(read_kernel_records(*info, kernel));
    if (const Section* shared = image.find(".nv.shared." + kernel.symbol)) {
      if (shared->size > UINT32_MAX) return not_whole("a kernel's shared memory is out of range");
      kernel.shared_memory = static_cast<uint32_t>(shared->size);
    }
  }
  std::ranges::sort(out.kernels, {}, &KernelFacts::symbol);
  return out;
}

}  // namespace kc::artifact::elf
