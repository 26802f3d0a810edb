#include "artifact/artifact.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace kc::artifact;
using kc::base::ByteReader;
using kc::base::Bytes;
using kc::base::ByteView;
using kc::base::ByteWriter;

namespace {

KernelFacts kernel(std::string symbol) {
  KernelFacts facts;
  facts.symbol = std::move(symbol);
  facts.registers = 40;
  facts.local_memory = 16;
  facts.spills = 3;
  facts.scalar_registers = 18;
  facts.shared_memory = 49152;
  facts.argument_bytes = 24;
  facts.arguments = {{0, 8}, {8, 8}, {16, 4}};
  facts.required_block = {128, 1, 2};
  facts.max_threads = 1024;
  facts.wave_size = 32;
  return facts;
}

Artifact sample() {
  Artifact artifact;
  artifact.code = {0x7f, 'E', 'L', 'F', 0, 255};
  artifact.facts = {"sm_90a", "13.4", {kernel("add"), kernel("mul")}};
  artifact.facts.kernels[1].spills.reset();
  artifact.facts.kernels[1].scalar_registers.reset();
  artifact.facts.kernels[1].arguments.clear();
  artifact.diagnostics = {{Severity::kWarning, "W12", "unused value", "a.mlir", 3, 7},
                          {Severity::kNote, "", "see \xff here", "", 0, 0}};
  artifact.report = {1, 2, 3};
  artifact.compiler = "tileiras";
  artifact.compiler_version = "13.4.92";
  return artifact;
}

Bytes written(const Artifact& artifact) {
  ByteWriter out;
  write_artifact(out, artifact);
  return out.take();
}

}  // namespace

TEST_CASE("an artifact reads back as it was written") {
  const Artifact artifact = sample();
  const Bytes bytes = written(artifact);
  ByteReader in(bytes);
  CHECK(read_artifact(in) == artifact);
  CHECK(in.complete());
}

TEST_CASE("an empty artifact reads back as it was written") {
  const Bytes bytes = written(Artifact{});
  ByteReader in(bytes);
  CHECK(read_artifact(in) == Artifact{});
  CHECK(in.complete());
}

TEST_CASE("spills and scalar registers are known each on its own") {
  for (const std::optional<uint32_t> spills : {std::optional<uint32_t>(), std::optional<uint32_t>(0)}) {
    for (const std::optional<uint32_t> scalar : {std::optional<uint32_t>(), std::optional<uint32_t>(106)}) {
      KernelFacts facts = kernel("add");
      facts.spills = spills;
      facts.scalar_registers = scalar;
      ByteWriter out;
      write_kernel_facts(out, facts);
      ByteReader in(out.bytes());
      CHECK(read_kernel_facts(in) == facts);
      CHECK(in.complete());
    }
  }
}

TEST_CASE("equal artifacts are written as equal bytes") {
  CHECK(written(sample()) == written(sample()));
}

TEST_CASE("a truncation to any length is refused") {
  const Bytes bytes = written(sample());
  for (size_t size = 0; size < bytes.size(); ++size) {
    ByteReader in(ByteView(bytes).first(size));
    CHECK(read_artifact(in) == Artifact{});
    CHECK_FALSE(in.ok());
  }
}

TEST_CASE("a flip of any bit is refused or reads as something that writes back") {
  const Bytes bytes = written(sample());
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    Bytes flipped = bytes;
    flipped[bit / 8] = static_cast<uint8_t>(flipped[bit / 8] ^ (1U << bit % 8));
    ByteReader in(flipped);
    const Artifact read = read_artifact(in);
    if (!in.ok()) {
      CHECK(read == Artifact{});
    } else if (in.complete()) {
      CHECK(read != sample());
      CHECK(written(read) == flipped);
    }
  }
}

TEST_CASE("a count is refused before memory is taken for it") {
  for (const uint32_t count : {1U, kMaxKernels + 1, 0xffffffffU}) {
    ByteWriter out;
    out.text("sm_90");
    out.text("13.4");
    out.u32(count);
    ByteReader in(out.bytes());
    CHECK(read_facts(in) == Facts{});
    CHECK_FALSE(in.ok());
  }
}

TEST_CASE("more kernels than the limit are refused although their bytes are there") {
  Facts facts;
  facts.kernels.resize(kMaxKernels);
  ByteWriter at_limit;
  write_facts(at_limit, facts);
  ByteReader in(at_limit.bytes());
  CHECK(read_facts(in) == facts);
  CHECK(in.complete());
  facts.kernels.emplace_back();
  ByteWriter beyond;
  write_facts(beyond, facts);
  ByteReader refused(beyond.bytes());
  CHECK(read_facts(refused) == Facts{});
  CHECK_FALSE(refused.ok());
}

TEST_CASE("a name longer than the limit is refused") {
  for (const size_t size : {kMaxName, kMaxName + 1}) {
    Facts facts;
    facts.found_target = std::string(size, 'x');
    ByteWriter out;
    write_facts(out, facts);
    ByteReader in(out.bytes());
    CHECK((read_facts(in) == facts) == (size == kMaxName));
    CHECK(in.ok() == (size == kMaxName));
  }
}

TEST_CASE("an unknown severity and a boolean that is neither are refused") {
  ByteWriter out;
  write_diagnostics(out, {{Severity::kError, "", "m", "", 1, 1}});
  Bytes bytes = out.take();
  bytes[4] = 4;  // behind the count
  ByteReader severity(bytes);
  CHECK(read_diagnostics(severity).empty());
  CHECK_FALSE(severity.ok());

  ByteWriter facts;
  write_kernel_facts(facts, KernelFacts{});
  Bytes flags = facts.take();
  flags[12] = 4;  // behind symbol length, registers, local memory: a fact that this reader does not know
  ByteReader in(flags);
  CHECK(read_kernel_facts(in) == KernelFacts{});
  CHECK_FALSE(in.ok());
}

TEST_CASE("diagnostics beyond the limits are cut so that they can be read") {
  const Diagnostic one = {Severity::kError,
                          std::string(kMaxName + 1, 'c'),
                          std::string(kMaxMessage + 1, 'm'),
                          std::string(kMaxPath + 1, 'f'),
                          1,
                          1};
  ByteWriter out;
  write_diagnostics(out, {one});
  ByteReader in(out.bytes());
  const std::vector<Diagnostic> read = read_diagnostics(in);
  REQUIRE(read.size() == 1);
  CHECK(in.complete());
  CHECK(read[0].message.size() == kMaxMessage);
  CHECK(read[0].code.size() == kMaxName);
  CHECK(read[0].file.size() == kMaxPath);

  ByteWriter many;
  write_diagnostics(many, std::vector<Diagnostic>(kMaxDiagnostics + 5));
  ByteReader all(many.bytes());
  CHECK(read_diagnostics(all).size() == kMaxDiagnostics);
  CHECK(all.complete());
}

TEST_CASE("a kernel is found by its symbol alone") {
  const Facts facts = sample().facts;
  REQUIRE(facts.find("mul") != nullptr);
  CHECK(facts.find("mul")->symbol == "mul");
  CHECK(facts.find("mu") == nullptr);
  CHECK(facts.find("") == nullptr);
}

TEST_CASE("severities have the names that compilers print") {
  CHECK(severity_name(Severity::kNote) == "note");
  CHECK(severity_name(Severity::kRemark) == "remark");
  CHECK(severity_name(Severity::kWarning) == "warning");
  CHECK(severity_name(Severity::kError) == "error");
}
