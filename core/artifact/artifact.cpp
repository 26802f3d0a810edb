#include "artifact/artifact.h"

#include <algorithm>
#include <utility>

namespace kc::artifact {
namespace {

// The fewest bytes that one of each takes as written: what a count of them is checked against.
constexpr size_t kLeastArgument = 8;
constexpr size_t kLeastKernel = 45;
constexpr size_t kLeastDiagnostic = 21;

// Which of the facts that not every code object tells are there.
constexpr int kHasSpills = 1;
constexpr int kHasScalarRegisters = 2;

std::string read_text(base::ByteReader& in, size_t most) {
  const uint32_t size = in.u32();
  if (size > most) in.fail();
  return std::string(base::as_text(in.raw(size)));
}

uint32_t read_count(base::ByteReader& in, size_t least_bytes_each, uint32_t most) {
  const uint32_t count = in.count(least_bytes_each);
  if (count <= most) return count;
  in.fail();
  return 0;
}

base::Bytes read_blob(base::ByteReader& in) {
  const base::ByteView view = in.blob();
  return base::Bytes(view.begin(), view.end());
}

}  // namespace

std::string_view severity_name(Severity severity) {
  switch (severity) {
    case Severity::kNote:
      return "note";
    case Severity::kRemark:
      return "remark";
    case Severity::kWarning:
      return "warning";
    case Severity::kError:
      break;
  }
  return "error";
}

const KernelFacts* Facts::find(std::string_view symbol) const {
  const auto found = std::find_if(kernels.begin(), kernels.end(),
                                  [&](const KernelFacts& kernel) { return kernel.symbol == symbol; });
  return found == kernels.end() ? nullptr : &*found;
}

void write_kernel_facts(base::ByteWriter& out, const KernelFacts& facts) {
  out.text(facts.symbol);
  out.u32(facts.registers);
  out.u32(facts.local_memory);
  out.u8(static_cast<uint8_t>((facts.spills ? kHasSpills : 0) |
                              (facts.scalar_registers ? kHasScalarRegisters : 0)));
  if (facts.spills) out.u32(*facts.spills);
  if (facts.scalar_registers) out.u32(*facts.scalar_registers);
  out.u32(facts.shared_memory);
  out.u32(facts.argument_bytes);
  out.u32(static_cast<uint32_t>(facts.arguments.size()));
  for (const Argument& argument : facts.arguments) {
    out.u32(argument.offset);
    out.u32(argument.size);
  }
  for (const uint32_t extent : facts.required_block) out.u32(extent);
  out.u32(facts.max_threads);
  out.u32(facts.wave_size);
}

KernelFacts read_kernel_facts(base::ByteReader& in) {
  KernelFacts facts;
  facts.symbol = read_text(in, kMaxSymbol);
  facts.registers = in.u32();
  facts.local_memory = in.u32();
  const uint8_t known = in.u8();
  if ((known & ~(kHasSpills | kHasScalarRegisters)) != 0) in.fail();
  if ((known & kHasSpills) != 0) facts.spills = in.u32();
  if ((known & kHasScalarRegisters) != 0) facts.scalar_registers = in.u32();
  facts.shared_memory = in.u32();
  facts.argument_bytes = in.u32();
  facts.arguments.resize(read_count(in, kLeastArgument, kMaxArguments));
  for (Argument& argument : facts.arguments) {
    argument.offset = in.u32();
    argument.size = in.u32();
  }
  for (uint32_t& extent : facts.required_block) extent = in.u32();
  facts.max_threads = in.u32();
  facts.wave_size = in.u32();
  return in.ok() ? facts : KernelFacts{};
}

void write_facts(base::ByteWriter& out, const Facts& facts) {
  out.text(facts.found_target);
  out.text(facts.toolkit);
  out.u32(static_cast<uint32_t>(facts.kernels.size()));
  for (const KernelFacts& kernel : facts.kernels) write_kernel_facts(out, kernel);
}

Facts read_facts(base::ByteReader& in) {
  Facts facts;
  facts.found_target = read_text(in, kMaxName);
  facts.toolkit = read_text(in, kMaxName);
  const uint32_t count = read_count(in, kLeastKernel, kMaxKernels);
  facts.kernels.reserve(count);
  for (uint32_t i = 0; i < count && in.ok(); ++i) facts.kernels.push_back(read_kernel_facts(in));
  return in.ok() ? facts : Facts{};
}

void write_diagnostics(base::ByteWriter& out, const std::vector<Diagnostic>& diagnostics) {
  const size_t count = std::min<size_t>(diagnostics.size(), kMaxDiagnostics);
  out.u32(static_cast<uint32_t>(count));
  for (size_t i = 0; i < count; ++i) {
    const Diagnostic& diagnostic = diagnostics[i];
    out.u8(static_cast<uint8_t>(diagnostic.severity));
    out.text(std::string_view(diagnostic.code).substr(0, kMaxName));
    out.text(std::string_view(diagnostic.message).substr(0, kMaxMessage));
    out.text(std::string_view(diagnostic.file).substr(0, kMaxPath));
    out.u32(diagnostic.line);
    out.u32(diagnostic.column);
  }
}

std::vector<Diagnostic> read_diagnostics(base::ByteReader& in) {
  std::vector<Diagnostic> diagnostics;
  const uint32_t count = read_count(in, kLeastDiagnostic, kMaxDiagnostics);
  diagnostics.reserve(count);
  for (uint32_t i = 0; i < count && in.ok(); ++i) {
    Diagnostic diagnostic;
    const uint8_t severity = in.u8();
    if (severity > static_cast<uint8_t>(Severity::kError)) in.fail();
    diagnostic.severity = static_cast<Severity>(severity);
    diagnostic.code = read_text(in, kMaxName);
    diagnostic.message = read_text(in, kMaxMessage);
    diagnostic.file = read_text(in, kMaxPath);
    diagnostic.line = in.u32();
    diagnostic.column = in.u32();
    diagnostics.push_back(std::move(diagnostic));
  }
  if (!in.ok()) diagnostics.clear();
  return diagnostics;
}

void write_artifact(base::ByteWriter& out, const Artifact& artifact) {
  out.blob(artifact.code);
  write_facts(out, artifact.facts);
  write_diagnostics(out, artifact.diagnostics);
  out.blob(artifact.report);
  out.text(artifact.compiler);
  out.text(artifact.compiler_version);
}

Artifact read_artifact(base::ByteReader& in) {
  Artifact artifact;
  artifact.code = read_blob(in);
  artifact.facts = read_facts(in);
  artifact.diagnostics = read_diagnostics(in);
  artifact.report = read_blob(in);
  artifact.compiler = read_text(in, kMaxName);
  artifact.compiler_version = read_text(in, kMaxName);
  return in.ok() ? artifact : Artifact{};
}

}  // namespace kc::artifact
