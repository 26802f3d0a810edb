// Tile IR bytecode as far as kc looks into it. Source of the format: the reader and writer that NVIDIA
// publishes with Tile IR (header, section framing, function table, string table), measured against
// tileiras 13.4.
#include <algorithm>
#include <array>

#include "backend/tileiras/tileiras.h"
#include "util/text.h"

namespace kc::backend::tileiras {
namespace {

constexpr std::array<uint8_t, 8> kMagic = {0x7F, 'T', 'i', 'l', 'e', 'I', 'R', 0x00};
constexpr size_t kHeaderSize = 12;  // magic, u8 major, u8 minor, u16 tag
constexpr uint8_t kEndSection = 0;
constexpr uint8_t kStringSection = 1;
constexpr uint8_t kFuncSection = 2;
constexpr uint8_t kAlignedBit = 0x80;
constexpr uint8_t kEntryFlag = 0x02;
constexpr uint8_t kHintsFlag = 0x04;
constexpr uint8_t kLastKnownMinor = 5;  // 13.5 writes its hints and argument attributes without a flag
constexpr uint64_t kLargestAlignment = 4096;
// Real hints nest two deep (architecture, then a dictionary of numbers).
constexpr int kDeepestAttribute = 16;
// All functions may share one name, and each gets a copy: together these bound what the names take to 64 MiB.
constexpr size_t kMaxEntries = 4096;
constexpr uint64_t kMaxNameSize = 16ULL << 10;

std::unexpected<base::Error> unreadable(std::string why) {
  return base::fail(base::ErrorKind::kInput, "the names in this bytecode cannot be read: " + std::move(why));
}

// ByteReader with the two things it lacks: LEB128 numbers and padding relative to its start.
class TileReader : public base::ByteReader {
 public:
  using base::ByteReader::ByteReader;

  uint64_t leb128() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const uint8_t byte = u8();
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    fail();
    return 0;
  }
  void align(uint64_t alignment) {
    if (alignment == 0 || alignment > kLargestAlignment || (alignment & (alignment - 1)) != 0) return fail();
    raw((alignment - position() % alignment) % alignment);
  }
};

// Reads over one self-contained attribute. The kinds that hints are made of are enough; another one fails the
// reader, since its length cannot be told.
void skip_attribute(TileReader& in, int depth) {
  enum Tag : uint8_t {
    kInteger = 1,
    kBool = 3,
    kType = 4,
    kString = 5,
    kArray = 6,
    kDictionary = 10,
    kHints = 11
  };
  if (depth > kDeepestAttribute) return in.fail();
  switch (in.u8()) {
    case kInteger:
      in.leb128();  // type
      in.leb128();  // value
      return;
    case kBool:
      in.u8();
      return;
    case kType:
    case kString:
      in.leb128();
      return;
    case kArray:
      for (uint64_t left = in.leb128(); left > 0 && in.ok(); --left) skip_attribute(in, depth + 1);
      return;
    case kDictionary:
    case kHints:
      for (uint64_t left = in.leb128(); left > 0 && in.ok(); --left) {
        in.leb128();  // key
        skip_attribute(in, depth + 1);
      }
      return;
    default:
      in.fail();
  }
}

// String indices of the entry functions.
base::Result<std::vector<uint64_t>> read_functions(base::ByteView section, uint8_t minor) {
  TileReader in(section);
  const uint64_t count = in.leb128();
  std::vector<uint64_t> out;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t name = in.leb128();
    in.leb128();  // signature
    const uint8_t flags = in.u8();
    in.leb128();  // location
    const bool is_entry = (flags & kEntryFlag) != 0;
    if ((flags & kHintsFlag) != 0 || (minor >= 5 && is_entry)) skip_attribute(in, 0);
    if (minor >= 5) skip_attribute(in, 0);
    in.raw(in.leb128());  // body
    if (!in.ok()) return unreadable("its function table is damaged or of an unknown kind");
    if (!is_entry) continue;
    if (out.size() == kMaxEntries)
      return unreadable(util::format("it has more than {} entries", kMaxEntries));
    out.push_back(name);
  }
  return out;
}

base::Result<std::vector<std::string>> read_strings(base::ByteView section,
                                                    const std::vector<uint64_t>& wanted) {
  TileReader in(section);
  const uint64_t count = in.leb128();
  if (count > in.left() / sizeof(uint32_t)) return unreadable("its string table is damaged");
  in.align(sizeof(uint32_t));
  const base::ByteView offsets = in.raw(count * sizeof(uint32_t));
  const base::ByteView data = in.raw(in.left());
  if (!in.ok()) return unreadable("its string table is damaged");
  std::vector<std::string> out;
  for (const uint64_t index : wanted) {
    if (index >= count) return unreadable("a function's name is not in its string table");
    const uint64_t begin = base::load_le<uint32_t>(offsets, index * sizeof(uint32_t));
    const uint64_t end =
        index + 1 < count ? base::load_le<uint32_t>(offsets, (index + 1) * sizeof(uint32_t)) : data.size();
    if (begin > end || end > data.size()) return unreadable("its string table is damaged");
    if (end - begin > kMaxNameSize) {
      return unreadable(util::format("the name of an entry has more than {} bytes", kMaxNameSize));
    }
    out.emplace_back(base::as_text(data.subspan(begin, end - begin)));
  }
  return out;
}

bool begins_with(base::ByteView bytes, base::ByteView prefix) {
  return bytes.size() >= prefix.size() && std::ranges::equal(bytes.first(prefix.size()), prefix);
}

bool is_text(base::ByteView bytes) {
  const base::ByteView head = bytes.first(std::min<size_t>(bytes.size(), 4096));
  return std::ranges::all_of(
      head, [](uint8_t c) { return c >= 0x80 || (c >= 0x20 && c != 0x7F) || (c >= '\t' && c <= '\r'); });
}

}  // namespace

std::optional<BytecodeVersion> bytecode_version(base::ByteView bytes) {
  if (bytes.size() < kHeaderSize || !begins_with(bytes, kMagic)) return std::nullopt;
  return BytecodeVersion{bytes[8], bytes[9]};
}

base::Result<void> check_source(std::string_view name, base::ByteView bytes) {
  if (bytecode_version(bytes)) return {};
  const auto refuse = [&](std::string message, std::string hint = {}) {
    return base::fail_at(base::ErrorKind::kInput, {std::string(name)}, std::move(message), std::move(hint));
  };
  if (bytes.empty()) return refuse("the file is empty; expected Tile IR bytecode");
  const size_t common = std::min(bytes.size(), kMagic.size());
  if (begins_with(bytes, base::ByteView(kMagic).first(common))) {
    return refuse(util::format("cut short: {}, the header of Tile IR bytecode alone has {}",
                               util::counted(bytes.size(), "byte"), kHeaderSize));
  }
  if (is_text(bytes)) {
    const std::string_view text = base::as_text(bytes.first(std::min<size_t>(bytes.size(), 1U << 16)));
    for (const std::string_view word : {"cuda_tile", "module", "entry @", "func."}) {
      if (text.find(word) != std::string_view::npos) {
        return refuse("looks like Tile IR assembly (MLIR text); kc takes bytecode",
                      "translate it first: cuda-tile-translate --mlir-to-cudatilebc");
      }
    }
    return refuse("a text file, not Tile IR bytecode");
  }
  if (begins_with(bytes, base::as_bytes("ML\xEFR"))) {
    return refuse("general MLIR bytecode, not Tile IR bytecode",
                  "translate it first: cuda-tile-translate --mlir-to-cudatilebc");
  }
  if (begins_with(bytes, base::as_bytes("\x7F"
                                        "ELF"))) {
    return refuse("an ELF file, not Tile IR bytecode: is it compiled already?");
  }
  return refuse("not Tile IR bytecode: it does not begin with the bytes 7F 54 69 6C 65 49 52 00");
}

base::Result<std::vector<std::string>> entries_of(base::ByteView bytes) {
  const auto version = bytecode_version(bytes);
  if (!version) return unreadable("it has no Tile IR header");
  if (version->major != 13 || version->minor < 1 || version->minor > kLastKnownMinor) {
    return unreadable(util::format("version {}.{} is not known", version->major, version->minor));
  }
  std::optional<base::ByteView> functions;
  std::optional<base::ByteView> strings;
  TileReader in(bytes);
  in.raw(kHeaderSize);
  for (uint8_t head = in.u8(); in.ok() && head != kEndSection; head = in.u8()) {
    const uint64_t length = in.leb128();
    if ((head & kAlignedBit) != 0) in.align(in.leb128());
    const base::ByteView data = in.raw(length);
    const uint8_t id = head & static_cast<uint8_t>(~kAlignedBit);
    if (id == kFuncSection) functions = data;
    if (id == kStringSection) strings = data;
  }
  if (!in.ok()) return unreadable("its sections end early");
  if (!functions || !strings) return unreadable("it has no function or no string section");
  KC_ASSIGN(const std::vector<uint64_t> names, read_functions(*functions, version->minor));
  return read_strings(*strings, names);
}

}  // namespace kc::backend::tileiras
