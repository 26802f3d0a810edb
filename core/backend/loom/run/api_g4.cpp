// Generation G4: one call compiles and emits, diagnostics have 136 bytes.
#include <utility>

#include "backend/loom/run/api.h"

namespace kc::backend::loom {
namespace {

class ApiG4 final : public LoomApi {
 public:
  explicit ApiG4(Library library) : LoomApi(std::move(library)) {
    compile_artifact_ = reinterpret_cast<CompileArtifact>(this->library().find("loomc_compile_artifact"));
  }

  std::vector<Reply> generate(const GenerateRequest& request) const override {
    abi::ReportOptions report;
    report.header = {abi::kReportType, sizeof report, nullptr};
    report.mode = request.report;
    abi::EmitOptions emit;
    emit.header = {abi::kEmitType, sizeof emit, request.report == abi::kNoReport ? nullptr : &report};
    emit.format = abi::view(abi::kHsacoFormat);
    emit.artifact_flags = abi::kPrimary;
    const abi::View root = abi::view(request.root);
    abi::CompileArtifactOptions options;
    options.header = {abi::kCompileArtifactType, sizeof options, nullptr};
    options.roots = &root;
    options.root_count = 1;
    options.profile = request.profile;
    options.emit = &emit;
    Object result = object(f().result_release);
    const abi::Status status = compile_artifact_(compiler(), request.workspace, program(), request.module,
                                                 &options, counting_allocator(), result.out());
    std::vector<Reply> out;
    out.push_back(reply(status, std::move(result)));
    return out;
  }

 protected:
  Row row_of(const void* diagnostic) const override {
    const auto& row = *static_cast<const abi::DiagnosticG4*>(diagnostic);
    return {&row.range, row.related, row.related_count, row.omitted_count};
  }

 private:
  using CompileArtifact = abi::Status (*)(abi::Handle compiler, abi::Handle workspace, abi::Handle program,
                                          abi::Handle module, const abi::CompileArtifactOptions*,
                                          abi::Allocator, abi::Handle* result);
  CompileArtifact compile_artifact_ = nullptr;
};

}  // namespace

std::unique_ptr<LoomApi> make_g4(Library library) {
  return std::make_unique<ApiG4>(std::move(library));
}

}  // namespace kc::backend::loom
