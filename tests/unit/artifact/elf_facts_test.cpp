#include "artifact/elf/elf_facts.h"

#include <doctest/doctest.h>
#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/files.h"
#include "support/cubin_writer.h"

namespace {

using kc::artifact::Argument;
using kc::artifact::Facts;
using kc::artifact::KernelFacts;
using kc::artifact::elf::read_cubin;
using kc::base::Bytes;
using kc::base::ByteView;
using kc::test::Cubin;
using kc::test::CubinKernel;
using kc::test::write_cubin;

// manifests/demo/bytecode/vec_add_f32_256.tilebc, compiled by tileiras 13.4.92 at -O3 for sm_80 and sm_90.
// The numbers expected of them are those that cuobjdump 13.4 prints (--dump-resource-usage, -elf).
Bytes golden(const std::string& name) {
  const auto bytes = kc::base::read_file(std::string(KC_SOURCE_DIR "/tests/golden/cubin/") + name, 1 << 20);
  REQUIRE(bytes);
  return *bytes;
}

Facts facts_of(const Cubin& cubin) {
  const auto facts = read_cubin(write_cubin(cubin));
  REQUIRE_MESSAGE(facts, facts.error().text());
  return *facts;
}

std::string why_not(ByteView code) {
  const auto facts = read_cubin(code);
  REQUIRE_FALSE(facts);
  CHECK(facts.error().kind == kc::base::ErrorKind::kFailed);
  return facts.error().message;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a real cubin gives the facts that cuobjdump prints") {
  const std::vector<Argument> arguments = {{0, 8},  {8, 4},  {12, 4}, {16, 8}, {24, 4},
                                           {28, 4}, {32, 8}, {40, 4}, {44, 4}};
  const auto sm_90 = read_cubin(golden("vec_add_sm_90a.cubin"));
  REQUIRE(sm_90);
  CHECK(sm_90->found_target == "sm_90a");
  CHECK(sm_90->toolkit == "13.4");
  REQUIRE(sm_90->kernels.size() == 1);
  const KernelFacts& kernel = sm_90->kernels[0];
  CHECK(kernel.symbol == "vec_add");
  CHECK(kernel.registers == 19);
  CHECK(kernel.local_memory == 0);
  CHECK(kernel.spills == std::nullopt);
  CHECK(kernel.shared_memory == 0);
  CHECK(kernel.argument_bytes == 48);
  CHECK(kernel.arguments == arguments);
  CHECK(kernel.required_block == std::array<uint32_t, 3>{128, 1, 1});
  CHECK(kernel.max_threads == 0);
  CHECK(kernel.wave_size == 32);

  const auto sm_80 = read_cubin(golden("vec_add_sm_80.cubin"));
  REQUIRE(sm_80);
  CHECK(sm_80->found_target == "sm_80");
  CHECK(sm_80->kernels.at(0).registers == 14);
  CHECK(sm_80->kernels.at(0).arguments == arguments);
}

TEST_CASE("every kind of record reaches its fact") {
  Cubin cubin;
  cubin.architecture = "sm_120f";
  cubin.sm = 120;
  cubin.toolkit = 131;
  CubinKernel old_records;
  old_records.symbol = "zeta";
  old_records.registers = 255;
  old_records.frame_size = 48;
  old_records.min_stack = 16;
  old_records.shared_memory = 107800;
  old_records.parameters = {{0, 8}, {8, 4}, {16, 4096}};
  old_records.parameter_bytes = 4112;
  old_records.required_block = {64, 2, 1};
  CubinKernel new_records;
  new_records.symbol = "alpha";
  new_records.frame_size = 16;
  new_records.min_stack = 64;
  new_records.parameters = {{0, 8}, {8, 30000}};
  new_records.has_new_parameter_records = true;
  new_records.parameter_bytes = 30008;
  new_records.max_threads = {256, 2, 1};
  cubin.kernels = {old_records, new_records};

  const Facts facts = facts_of(cubin);
  CHECK(facts.found_target == "sm_120f");
  CHECK(facts.toolkit == "13.1");
  REQUIRE(facts.kernels.size() == 2);
  const KernelFacts& alpha = facts.kernels[0];
  CHECK(alpha.symbol == "alpha");
  CHECK(alpha.local_memory == 64);
  CHECK(alpha.arguments == std::vector<Argument>{{0, 8}, {8, 30000}});
  CHECK(alpha.argument_bytes == 30008);
  CHECK(alpha.max_threads == 512);
  CHECK(alpha.required_block == std::array<uint32_t, 3>{0, 0, 0});
  const KernelFacts& zeta = facts.kernels[1];
  CHECK(zeta.registers == 255);
  CHECK(zeta.local_memory == 48);
  CHECK(zeta.shared_memory == 107800);
  CHECK(zeta.arguments == std::vector<Argument>{{0, 8}, {8, 4}, {16, 4096}});
  CHECK(zeta.required_block == std::array<uint32_t, 3>{64, 2, 1});
}

TEST_CASE("a device function is not an entry") {
  Cubin cubin;
  CubinKernel helper;
  helper.symbol = "helper";
  helper.is_entry = false;
  cubin.kernels.push_back(helper);
  const Facts facts = facts_of(cubin);
  REQUIRE(facts.kernels.size() == 1);
  CHECK(facts.kernels[0].symbol == "kernel");
}

TEST_CASE("the architecture comes from the tool's arguments and from the header only without them") {
  Cubin cubin;
  cubin.tool_options = "-arch sm_80 -O 3";  // the last one counts, as for ptxas
  cubin.architecture = "sm_90a";
  CHECK(facts_of(cubin).found_target == "sm_90a");
  cubin.architecture = "sm_90";
  CHECK(facts_of(cubin).found_target == "sm_90");
  cubin.architecture.clear();  // no note at all
  CHECK(facts_of(cubin).found_target == "sm_90");
  cubin.sm = 0;
  CHECK(contains(why_not(write_cubin(cubin)), "its header names SM 0"));
}

TEST_CASE("an architecture that contradicts the header is refused") {
  Cubin cubin;
  cubin.architecture = "sm_80";
  CHECK(contains(why_not(write_cubin(cubin)), "says sm_80, its header SM 90"));
  cubin.architecture = "gfx1100";
  CHECK(contains(why_not(write_cubin(cubin)), "gfx1100"));
}

TEST_CASE("other files are refused with what they are not") {
  CHECK(contains(why_not({}), "ELF header"));
  CHECK(contains(
      why_not(kc::base::as_bytes("hello, this is a text file that is long enough to hold a header ......")),
      "ELF header"));
  Bytes other = write_cubin({});
  const uint16_t machine = EM_X86_64;
  std::memcpy(other.data() + offsetof(Elf64_Ehdr, e_machine), &machine, sizeof machine);
  CHECK(contains(why_not(other), "machine is 62"));
}

TEST_CASE("a parameter outside its block is refused") {
  Cubin cubin;
  cubin.kernels[0].parameters = {{0, 8}, {8, 8}};
  cubin.kernels[0].parameter_bytes = 12;
  CHECK(contains(why_not(write_cubin(cubin)), "outside its parameter block of 12 bytes"));
}

TEST_CASE("a cubin cut short at any length is refused") {
  for (const Bytes& whole : {golden("vec_add_sm_90a.cubin"), write_cubin({})}) {
    REQUIRE(read_cubin(whole));
    for (size_t length = 0; length < whole.size(); ++length) {
      // A copy of exactly that size, so that a read beyond its end is seen by the sanitizer.
      const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
      if (read_cubin(cut)) FAIL("accepted when cut to " << length << " of " << whole.size());
    }
  }
}

TEST_CASE("no flipped byte of a cubin makes the reader fail otherwise than by an error") {
  for (const Bytes& whole : {golden("vec_add_sm_80.cubin"), write_cubin({})}) {
    size_t refused = 0;
    for (size_t at = 0; at < whole.size(); ++at) {
      for (const unsigned mask : {0x01U, 0x80U, 0xFFU}) {
        Bytes flipped = whole;
        flipped[at] = static_cast<uint8_t>(flipped[at] ^ mask);
        const auto facts = read_cubin(flipped);
        if (!facts) ++refused;
      }
    }
    CHECK(refused > 0);
  }
}

TEST_CASE("sections may share bytes but not so many that reading them costs time") {
  const Bytes plain = write_cubin({});
  // With `count` sections more, each of them the whole of the plain file.
  const auto with_sections = [&](size_t count) {
    Bytes bytes = plain;
    Elf64_Ehdr header;
    std::memcpy(&header, bytes.data(), sizeof header);
    const size_t old = header.e_shnum * sizeof(Elf64_Shdr);
    const auto table = plain.begin() + static_cast<std::ptrdiff_t>(header.e_shoff);
    bytes.resize((bytes.size() + 7) / 8 * 8);
    header.e_shoff = bytes.size();
    header.e_shnum = static_cast<Elf64_Half>(header.e_shnum + count);
    std::memcpy(bytes.data(), &header, sizeof header);
    bytes.insert(bytes.end(), table, table + static_cast<std::ptrdiff_t>(old));
    Elf64_Shdr whole{};
    whole.sh_type = SHT_PROGBITS;
    whole.sh_size = plain.size();
    const auto* raw = reinterpret_cast<const uint8_t*>(&whole);
    for (size_t i = 0; i < count; ++i) bytes.insert(bytes.end(), raw, raw + sizeof whole);
    return bytes;
  };
  const auto facts = read_cubin(with_sections(2));
  REQUIRE(facts);
  CHECK(*facts == *read_cubin(plain));
  CHECK(contains(why_not(with_sections(40)), "its sections overlap"));
}

TEST_CASE("section headers that claim more than the file is long are refused before memory is taken") {
  Bytes cubin = write_cubin({});
  Elf64_Ehdr header;
  std::memcpy(&header, cubin.data(), sizeof header);
  for (uint16_t i = 1; i < header.e_shnum; ++i) {
    Bytes changed = cubin;
    const uint64_t huge = uint64_t{1} << 62;
    const size_t at = header.e_shoff + i * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_size);
    std::memcpy(changed.data() + at, &huge, sizeof huge);
    CHECK_FALSE(read_cubin(changed));
  }
}
