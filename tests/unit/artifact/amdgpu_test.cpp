#include <doctest/doctest.h>
#include <elf.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "artifact/elf/elf_facts.h"
#include "base/files.h"
#include "support/hsaco_writer.h"
#include "util/json.h"

namespace {

using kc::artifact::Argument;
using kc::artifact::Facts;
using kc::artifact::KernelFacts;
using kc::artifact::elf::read_amdgpu;
using kc::base::Bytes;
using kc::base::ByteView;
using kc::test::Hsaco;
using kc::test::HsacoKernel;
using kc::test::write_hsaco;
using kc::util::Json;

// tests/golden/hsaco/kernels.cl by clang 19.1.7 and LLD 14:
//   clang -x cl -cl-std=CL1.2 -target amdgcn-amd-amdhsa -mcpu=gfx1100 -mcode-object-version=4 -nogpulib -O2
//     -Wl,-s -o kernels_gfx1100.hsaco kernels.cl
// and with -mcpu=gfx90a:sramecc+:xnack- -DSGPRS=32. The numbers expected of them are those that
// `llvm-readelf --notes` prints.
Bytes golden(const std::string& name) {
  const auto bytes = kc::base::read_file(std::string(KC_SOURCE_DIR "/tests/golden/hsaco/") + name, 1 << 20);
  REQUIRE(bytes);
  return *bytes;
}

Facts facts_of(const Hsaco& hsaco) {
  const auto facts = read_amdgpu(write_hsaco(hsaco));
  REQUIRE_MESSAGE(facts, facts.error().text());
  return *facts;
}

std::string why_not(ByteView code) {
  const auto facts = read_amdgpu(code);
  REQUIRE_FALSE(facts);
  CHECK(facts.error().kind == kc::base::ErrorKind::kFailed);
  CHECK(facts.error().message.starts_with("not a whole AMD code object: "));
  return facts.error().message;
}
std::string why_not(const Hsaco& hsaco) {
  return why_not(write_hsaco(hsaco));
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Hsaco for_target(std::string target) {
  Hsaco out;
  out.target = std::move(target);
  return out;
}

// Metadata of one kernel as the writer makes them, for tests that change them.
Json plain_metadata() {
  Json argument;
  argument[".offset"] = 0U;
  argument[".size"] = 8U;
  argument[".value_kind"] = "by_value";
  Json kernel;
  kernel[".args"].push_back(argument);
  kernel[".group_segment_fixed_size"] = 16U;
  kernel[".kernarg_segment_align"] = 8U;
  kernel[".kernarg_segment_size"] = 8U;
  kernel[".max_flat_workgroup_size"] = 64U;
  kernel[".name"] = "kernel";
  kernel[".private_segment_fixed_size"] = 0U;
  kernel[".sgpr_count"] = 14U;
  kernel[".symbol"] = "kernel.kd";
  kernel[".vgpr_count"] = 4U;
  kernel[".wavefront_size"] = 32U;
  Json out;
  out["amdhsa.kernels"].push_back(kernel);
  out["amdhsa.target"] = "amdgcn-amd-amdhsa--gfx1100";
  out["amdhsa.version"] = Json::array({1U, 2U});
  return out;
}

Bytes with_metadata(const Json& metadata) {
  Hsaco hsaco;
  hsaco.metadata = Json::to_msgpack(metadata);
  return write_hsaco(hsaco);
}

template <typename Value>
Bytes with_field(size_t offset, Value value) {
  Bytes out = write_hsaco(Hsaco());
  std::memcpy(out.data() + offset, &value, sizeof value);
  return out;
}

}  // namespace

TEST_CASE("a real AMD code object gives the facts that llvm-readelf prints") {
  const auto gfx1100 = read_amdgpu(golden("kernels_gfx1100.hsaco"));
  REQUIRE_MESSAGE(gfx1100, gfx1100.error().text());
  CHECK(gfx1100->found_target == "gfx1100");
  CHECK(gfx1100->toolkit.empty());
  REQUIRE(gfx1100->kernels.size() == 2);
  const KernelFacts& crowded = gfx1100->kernels[0];
  CHECK(crowded.symbol == "crowded");
  CHECK(crowded.registers == 16);
  CHECK(crowded.scalar_registers == 20U);
  CHECK(crowded.spills == 7U);  // 5 VGPRs, 2 SGPRs
  CHECK(crowded.local_memory == 120);
  CHECK(crowded.shared_memory == 0);
  CHECK(crowded.argument_bytes == 24);
  CHECK(crowded.arguments == std::vector<Argument>{{0, 8}, {8, 8}, {16, 4}, {20, 4}});
  CHECK(crowded.required_block == std::array<uint32_t, 3>{0, 0, 0});
  CHECK(crowded.max_threads == 256);
  CHECK(crowded.wave_size == 32);
  const KernelFacts& reversed = gfx1100->kernels[1];
  CHECK(reversed.symbol == "reversed");
  CHECK(reversed.registers == 3);
  CHECK(reversed.scalar_registers == 10U);
  CHECK(reversed.spills == 0U);
  CHECK(reversed.shared_memory == 256);
  CHECK(reversed.argument_bytes == 88);  // with the hidden ones
  CHECK(reversed.arguments == std::vector<Argument>{{0, 8}, {8, 4}, {16, 8}, {24, 4}, {28, 1}});
  CHECK(reversed.required_block == std::array<uint32_t, 3>{64, 2, 1});
  CHECK(reversed.max_threads == 128);

  const auto gfx90a = read_amdgpu(golden("kernels_gfx90a.hsaco"));
  REQUIRE_MESSAGE(gfx90a, gfx90a.error().text());
  CHECK(gfx90a->found_target == "gfx90a:sramecc+:xnack-");
  CHECK(gfx90a->kernels.at(0).spills == 4U);
  CHECK(gfx90a->kernels.at(0).registers == 29);
  CHECK(gfx90a->kernels.at(0).wave_size == 64);
}

TEST_CASE("every field of the metadata reaches its fact") {
  HsacoKernel zeta;
  zeta.symbol = "zeta";
  zeta.vgprs = 255;
  zeta.sgprs = 108;
  zeta.vgpr_spills = 40;
  zeta.sgpr_spills = 2;
  zeta.group_segment = 65536;
  zeta.private_segment = 4096;
  zeta.argument_bytes = 48;
  // Out of order, and with two that the runtime fills in.
  zeta.arguments = {{"b", 8, 4, "by_value"},
                    {"", 16, 8, "hidden_global_offset_x"},
                    {"a", 0, 8, "global_buffer"},
                    {"", 24, 8, "hidden_none"},
                    {"c", 12, 0, "by_value"}};
  zeta.required_block = {64, 2, 1};
  zeta.max_threads = 128;
  zeta.wave_size = 64;
  HsacoKernel alpha;
  alpha.symbol = "alpha";
  alpha.vgpr_spills = 3;
  HsacoKernel unnamed;
  unnamed.symbol = "descriptor_only";
  unnamed.has_metadata = false;
  Hsaco hsaco = for_target("gfx950:xnack+");
  hsaco.kernels = {zeta, alpha, unnamed};

  const Facts facts = facts_of(hsaco);
  CHECK(facts.found_target == "gfx950:xnack+");
  REQUIRE(facts.kernels.size() == 2);
  CHECK(facts.kernels[0].symbol == "alpha");
  CHECK(facts.kernels[0].spills == 3U);
  CHECK(facts.kernels[0].arguments.empty());
  const KernelFacts& kernel = facts.kernels[1];
  CHECK(kernel.symbol == "zeta");
  CHECK(kernel.registers == 255);
  CHECK(kernel.scalar_registers == 108U);
  CHECK(kernel.spills == 42U);
  CHECK(kernel.shared_memory == 65536);
  CHECK(kernel.local_memory == 4096);
  CHECK(kernel.argument_bytes == 48);
  CHECK(kernel.arguments == std::vector<Argument>{{0, 8}, {8, 4}, {12, 0}});
  CHECK(kernel.required_block == std::array<uint32_t, 3>{64, 2, 1});
  CHECK(kernel.max_threads == 128);
  CHECK(kernel.wave_size == 64);
}

TEST_CASE("spills are unknown where neither count is there") {
  CHECK(facts_of(Hsaco()).kernels.at(0).spills == std::nullopt);
}

TEST_CASE("features are named only when they are on or off") {
  // xnack in bits 8 and 9 and sramecc in bits 10 and 11: unsupported 0 and any 1 and off 2 and on 3.
  const std::pair<uint32_t, std::string> cases[] = {{0x04c, "gfx942"},
                                                    {0x54c, "gfx942"},
                                                    {0x64c, "gfx942:xnack-"},
                                                    {0x74c, "gfx942:xnack+"},
                                                    {0x94c, "gfx942:sramecc-"},
                                                    {0xd4c, "gfx942:sramecc+"},
                                                    {0xe4c, "gfx942:sramecc+:xnack-"},
                                                    {0xb4c, "gfx942:sramecc-:xnack+"}};
  for (const auto& [flags, target] : cases) {
    CAPTURE(target);
    Hsaco hsaco = for_target(target);
    hsaco.flags = flags;
    CHECK(facts_of(hsaco).found_target == target);
  }
  Hsaco wrong = for_target("gfx1100");
  wrong.flags = 0x741;
  CHECK(contains(why_not(wrong), "its header names gfx1100:xnack+, which kc does not know"));
}

TEST_CASE("a processor is known by the number that LLVM gives it") {
  // Those that core/target knows; the numbers are LLVM's EF_AMDGPU_MACH_AMDGCN_*.
  const std::pair<uint32_t, std::string> cases[] = {{0x2c, "gfx900"},
                                                    {0x2d, "gfx902"},
                                                    {0x2e, "gfx904"},
                                                    {0x2f, "gfx906"},
                                                    {0x30, "gfx908"},
                                                    {0x31, "gfx909"},
                                                    {0x32, "gfx90c"},
                                                    {0x33, "gfx1010"},
                                                    {0x34, "gfx1011"},
                                                    {0x35, "gfx1012"},
                                                    {0x36, "gfx1030"},
                                                    {0x37, "gfx1031"},
                                                    {0x38, "gfx1032"},
                                                    {0x39, "gfx1033"},
                                                    {0x3d, "gfx1035"},
                                                    {0x3e, "gfx1034"},
                                                    {0x3f, "gfx90a"},
                                                    {0x40, "gfx940"},
                                                    {0x41, "gfx1100"},
                                                    {0x42, "gfx1013"},
                                                    {0x43, "gfx1150"},
                                                    {0x44, "gfx1103"},
                                                    {0x45, "gfx1036"},
                                                    {0x46, "gfx1101"},
                                                    {0x47, "gfx1102"},
                                                    {0x48, "gfx1200"},
                                                    {0x49, "gfx1250"},
                                                    {0x4a, "gfx1151"},
                                                    {0x4b, "gfx941"},
                                                    {0x4c, "gfx942"},
                                                    {0x4e, "gfx1201"},
                                                    {0x4f, "gfx950"},
                                                    {0x55, "gfx1152"},
                                                    {0x58, "gfx1153"},
                                                    {0x5a, "gfx1251"},
                                                    {0x5c, "gfx1172"},
                                                    {0x5d, "gfx1170"},
                                                    {0x5e, "gfx1171"},
                                                    {0x01000051, "gfx9-generic"},
                                                    {0x01000052, "gfx10-1-generic"},
                                                    {0x01000053, "gfx10-3-generic"},
                                                    {0x01000054, "gfx11-generic"},
                                                    {0x01000059, "gfx12-generic"},
                                                    {0x0100005b, "gfx12-5-generic"},
                                                    {0x0100005f, "gfx9-4-generic"},
                                                    {0x02000062, "gfx11-7-generic"}};
  for (const auto& [flags, target] : cases) {
    CAPTURE(target);
    Hsaco hsaco = for_target(target);
    hsaco.flags = flags;
    CHECK(facts_of(hsaco).found_target == target);
  }
  Hsaco old;
  old.flags = 0x2a;
  CHECK(contains(why_not(old), "its header names gfx803, which kc does not know"));
  for (const uint32_t unknown : {0x00U, 0x01U, 0x27U, 0x4dU, 0x64U, 0xffU}) {
    Hsaco hsaco;
    hsaco.flags = unknown;
    CHECK(contains(why_not(hsaco), "its header names processor number 0x"));
  }
  Hsaco hsaco;
  hsaco.flags = 0x4d;
  CHECK(contains(why_not(hsaco), "0x4d"));
}

TEST_CASE("a generic processor needs a version and code object version 6") {
  Hsaco hsaco = for_target("gfx11-generic");
  hsaco.flags = 0x54;
  CHECK(contains(why_not(hsaco), "it is for gfx11-generic and has the generic version 0"));
  hsaco.flags = 0x01000054;
  hsaco.abi_version = 3;
  CHECK(contains(why_not(hsaco), "which code objects have from version 6 on"));
  Hsaco plain;
  plain.flags = 0x01000041;
  CHECK(contains(why_not(plain), "it is for gfx1100 and has the generic version 1"));
}

TEST_CASE("code objects of version 4 to 6 are read and others refused by number") {
  for (const uint8_t version : {uint8_t{2}, uint8_t{3}, uint8_t{4}}) {
    Hsaco hsaco;
    hsaco.abi_version = version;
    CHECK(facts_of(hsaco).found_target == "gfx1100");
  }
  for (const uint8_t version : {uint8_t{0}, uint8_t{1}, uint8_t{5}, uint8_t{255}}) {
    Hsaco hsaco;
    hsaco.abi_version = version;
    CHECK(contains(why_not(hsaco), "its ABI version is " + std::to_string(version)));
  }
}

TEST_CASE("metadata for another processor or feature than the header says are refused") {
  Hsaco hsaco = for_target("gfx1101");
  hsaco.flags = 0x41;
  CHECK(contains(why_not(hsaco), "its metadata is for gfx1101, its header for gfx1100"));
  hsaco = for_target("gfx942:xnack+");
  hsaco.flags = 0x54c;
  CHECK(contains(why_not(hsaco), "its metadata is for gfx942:xnack+, its header for gfx942"));
}

TEST_CASE("the environment in the metadata and the order of features say nothing") {
  Json metadata = plain_metadata();
  metadata["amdhsa.target"] = "amdgcn-amd-amdhsa-unknown-gfx942:xnack-:sramecc+";
  Hsaco hsaco = for_target("gfx942:sramecc+:xnack-");
  hsaco.metadata = Json::to_msgpack(metadata);
  CHECK(facts_of(hsaco).found_target == "gfx942:sramecc+:xnack-");
}

TEST_CASE("files that are no AMD code objects are refused with what they are") {
  CHECK(contains(why_not(ByteView{}), "ELF header"));
  CHECK(contains(why_not(with_field<uint16_t>(offsetof(Elf64_Ehdr, e_machine), EM_X86_64)), "machine is 62"));
  CHECK(contains(why_not(with_field<uint16_t>(offsetof(Elf64_Ehdr, e_type), ET_REL)), "it is not linked"));
  CHECK(contains(why_not(with_field<uint8_t>(EI_OSABI, 0)), "its OS/ABI is 0, not 64 (HSA)"));
  CHECK(contains(why_not(with_field<uint8_t>(EI_CLASS, ELFCLASS32)), "64-bit"));
  CHECK_FALSE(kc::artifact::elf::read_cubin(write_hsaco(Hsaco())));
}

TEST_CASE("a kernel without its descriptor in the file is refused") {
  Hsaco hsaco;
  hsaco.kernels[0].has_descriptor = false;
  CHECK(contains(why_not(hsaco), "it has no descriptor kernel.kd"));

  // The symbols of the plain one: the empty one and the code and the descriptor.
  const Bytes whole = write_hsaco(Hsaco());
  Elf64_Ehdr header;
  std::memcpy(&header, whole.data(), sizeof header);
  Elf64_Shdr table;
  std::memcpy(&table, whole.data() + header.e_shoff + 2 * sizeof table, sizeof table);
  REQUIRE(table.sh_type == SHT_DYNSYM);
  const size_t at = table.sh_offset + 2 * sizeof(Elf64_Sym);
  const auto changed = [&](auto change) {
    Bytes bytes = whole;
    Elf64_Sym symbol;
    std::memcpy(&symbol, bytes.data() + at, sizeof symbol);
    change(symbol);
    std::memcpy(bytes.data() + at, &symbol, sizeof symbol);
    return why_not(bytes);
  };
  CHECK(contains(changed([](Elf64_Sym& s) { s.st_shndx = SHN_UNDEF; }), "no descriptor"));
  CHECK(contains(changed([](Elf64_Sym& s) { s.st_size = 32; }), "no descriptor"));
  CHECK(contains(changed([](Elf64_Sym& s) { s.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC); }),
                 "no descriptor"));
  CHECK(contains(changed([](Elf64_Sym& s) { s.st_value = 1U << 20; }), "kernel.kd lies outside the file"));
  CHECK(contains(changed([](Elf64_Sym& s) { s.st_value = UINT64_MAX - 8; }),
                 "kernel.kd lies outside the file"));
  // Elsewhere in the file: what stands there as the way to the code leads nowhere.
  CHECK(contains(changed([](Elf64_Sym& s) { s.st_value = 0; }), "the code of kernel lies outside the file"));
}

TEST_CASE("metadata that say nothing of a field that every kernel has are refused with its name") {
  const char* const required[] = {".group_segment_fixed_size",
                                  ".kernarg_segment_size",
                                  ".max_flat_workgroup_size",
                                  ".name",
                                  ".sgpr_count",
                                  ".symbol",
                                  ".private_segment_fixed_size",
                                  ".vgpr_count",
                                  ".wavefront_size"};
  CHECK(read_amdgpu(with_metadata(plain_metadata())));
  for (const char* name : required) {
    Json metadata = plain_metadata();
    metadata["amdhsa.kernels"][0].erase(name);
    CHECK(contains(why_not(with_metadata(metadata)), std::string("has no ") + name));
    for (const Json& wrong : {Json(nullptr), Json(-1), Json(1.5), Json::array(), Json::object(), Json(true),
                              Json(uint64_t{1} << 32), Json("")}) {
      metadata["amdhsa.kernels"][0][name] = wrong;
      CHECK(contains(why_not(with_metadata(metadata)), std::string(name) + " of "));
    }
  }
  for (const char* name : {"amdhsa.target", "amdhsa.version"}) {
    Json metadata = plain_metadata();
    metadata.erase(name);
    CHECK(contains(why_not(with_metadata(metadata)), std::string("the code object has no ") + name));
  }
}

TEST_CASE("metadata of the wrong form are refused with what is wrong") {
  const auto fault = [](auto change) {
    Json metadata = plain_metadata();
    change(metadata, metadata["amdhsa.kernels"][0]);
    return why_not(with_metadata(metadata));
  };
  CHECK(contains(why_not(with_metadata(Json::array())), "its metadata: it is not a map"));
  CHECK(contains(fault([](Json& all, Json&) {
                   all["amdhsa.version"] = Json::array({2U, 0U});
                 }),
                 "its version is 2.0, kc reads 1.x"));
  CHECK(contains(fault([](Json& all, Json&) { all["amdhsa.version"] = Json::array({1U}); }),
                 "amdhsa.version of the code object has not 2 parts"));
  CHECK(contains(fault([](Json& all, Json&) { all["amdhsa.target"] = "gfx1100"; }),
                 "amdhsa.target of the code object is gfx1100"));
  CHECK(contains(fault([](Json& all, Json&) { all["amdhsa.kernels"] = 3U; }), "is not a list"));
  CHECK(contains(fault([](Json& all, Json&) { all["amdhsa.kernels"].push_back(1U); }),
                 "a kernel is not a map"));
  CHECK(contains(fault([](Json& all, Json& k) { all["amdhsa.kernels"].push_back(Json(k)); }),
                 "two kernels are named kernel"));
  CHECK(contains(fault([](Json&, Json& k) { k[".symbol"] = "kernel"; }),
                 ".symbol of kernel is kernel, not its name and .kd"));
  CHECK(contains(fault([](Json&, Json& k) { k[".symbol"] = "other.kd"; }), "not its name and .kd"));
  CHECK(contains(fault([](Json&, Json& k) { k[".wavefront_size"] = 48U; }), "neither 32 nor 64"));
  CHECK(contains(fault([](Json&, Json& k) {
                   k[".reqd_workgroup_size"] = Json::array({64U, 1U});
                 }),
                 "has not 3 parts"));
  CHECK(contains(fault([](Json&, Json& k) {
                   k[".reqd_workgroup_size"] = Json::array({64U, 0U, 1U});
                 }),
                 "has a 0"));
  CHECK(contains(fault([](Json&, Json& k) {
                   k[".reqd_workgroup_size"] = Json::array({64U, 1U, 1U, 1U});
                 }),
                 "has more than 3 parts"));
  CHECK(contains(fault([](Json&, Json& k) { k[".vgpr_spill_count"] = k[".sgpr_spill_count"] = UINT32_MAX; }),
                 "the spills of kernel are out of range"));
  CHECK(
      contains(fault([](Json&, Json& k) { k[".args"] = Json::object(); }), ".args of kernel is not a list"));
  CHECK(contains(fault([](Json&, Json& k) { k[".args"][0] = 1U; }), "has a part that is not a map"));
  CHECK(contains(fault([](Json&, Json& k) { k[".args"][0].erase(".size"); }),
                 "an argument of kernel has no .size"));
  CHECK(contains(fault([](Json&, Json& k) { k[".args"][0][".offset"] = 1U; }),
                 "an argument of kernel lies outside its kernarg segment of 8 bytes"));
  CHECK(contains(fault([](Json&, Json& k) { k[".args"][0][".offset"] = UINT32_MAX; }), "lies outside"));
  CHECK(contains(fault([](Json&, Json& k) { k[".name"] = std::string("kern\0el", 7); }), "is no name"));
}

TEST_CASE("a code object without metadata or with two is refused") {
  Hsaco other;
  other.note_owner = "OTHER";
  CHECK(contains(why_not(other), "it has no metadata note"));
  // A second segment over the same note.
  Bytes twice = write_hsaco(Hsaco());
  Elf64_Ehdr header;
  std::memcpy(&header, twice.data(), sizeof header);
  const size_t last = header.e_phoff + (header.e_phnum - 1U) * sizeof(Elf64_Phdr);
  std::memcpy(twice.data() + header.e_phoff, twice.data() + last, sizeof(Elf64_Phdr));
  CHECK(contains(why_not(twice), "it has metadata twice"));
}

TEST_CASE("metadata that are damaged or nested or huge are refused before memory is taken") {
  const auto fault = [](const Bytes& metadata) {
    Hsaco hsaco;
    hsaco.metadata = metadata;
    return why_not(hsaco);
  };
  CHECK(contains(fault({}), "it is damaged"));
  CHECK(contains(fault({0xdd, 0xff, 0xff, 0xff, 0xff}), "more than 1048576 values"));
  CHECK(contains(fault({0xdf, 0xff, 0xff, 0xff, 0xff}), "more than 128 keys"));
  CHECK(contains(fault({0xdb, 0xff, 0xff, 0xff, 0xff, 'a'}), "it is damaged"));
  CHECK(contains(fault(Bytes(100'000, 0x91)), "nested deeper than 16"));
}

TEST_CASE("an AMD code object cut short at any length is refused") {
  for (const Bytes& whole : {golden("kernels_gfx1100.hsaco"), write_hsaco(Hsaco())}) {
    REQUIRE(read_amdgpu(whole));
    for (size_t length = 0; length < whole.size(); ++length) {
      // A copy of exactly that size, so that a read beyond its end is seen by the sanitizer.
      const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
      if (read_amdgpu(cut)) FAIL("accepted when cut to " << length << " of " << whole.size());
    }
  }
}

TEST_CASE("no flipped byte of an AMD code object makes the reader fail otherwise than by an error") {
  const Bytes whole = golden("kernels_gfx90a.hsaco");
  size_t refused = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const unsigned mask : {0x01U, 0x80U, 0xFFU}) {
      Bytes flipped = whole;
      flipped[at] = static_cast<uint8_t>(flipped[at] ^ mask);
      if (!read_amdgpu(flipped)) ++refused;
    }
  }
  CHECK(refused > 0);
}
