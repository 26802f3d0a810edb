// Generation G3: compiling and emitting are two calls, diagnostics have 104 bytes.
#include <utility>

#include "backend/loom/run/api.h"

namespace kc::backend::loom {
namespace {

class ApiG3 final : public LoomApi {
 public:
  explicit ApiG3(Library library) : LoomApi(std::move(library)) {
    compile_module_ = reinterpret_cast<CompileModule>(this->library().find("loomc_compile_module"));
    emit_module_ = reinterpret_cast<EmitModule>(this->library().find("loomc_emit_module"));
  }

  std::vector<Reply> generate(const GenerateRequest& request) const override {
    const abi::Specialization row{abi::view(request.root), request.profile};
    abi::SpecializationOptions specialization;
    specialization.header = {abi::kSpecializationType, sizeof specialization, nullptr};
    specialization.rows = &row;
    specialization.row_count = 1;
    abi::CompileOptions compile;
    compile.header = {abi::kCompileType, sizeof compile, &specialization};
    std::vector<Reply> out;
    Object compiled = object(f().result_release);
    const abi::Status compile_status =
        compile_module_(compiler(), request.workspace, program(), request.module, &compile,
                        counting_allocator(), compiled.out());
    out.push_back(reply(compile_status, std::move(compiled)));
    if (!out.back().succeeded) return out;

    abi::ReportOptions report;
    report.header = {abi::kReportType, sizeof report, nullptr};
    report.mode = request.report;
    abi::EmitOptions emit;
    // The target went in with the compile: here it is refused.
    emit.header = {abi::kEmitType, sizeof emit, request.report == abi::kNoReport ? nullptr : &report};
    emit.format = abi::view(abi::kHsacoFormat);
    emit.artifact_flags = abi::kPrimary;
    Object emitted = object(f().result_release);
    const abi::Status emit_status = emit_module_(environment(), request.workspace, request.module, &emit,
                                                 counting_allocator(), emitted.out());
    out.push_back(reply(emit_status, std::move(emitted)));
    return out;
  }

 protected:
  Row row_of(const void* diagnostic) const override {
    const auto& row = *static_cast<const abi::DiagnosticG3*>(diagnostic);
    return {&row.range, row.related, row.related_count, row.omitted_count};
  }

 private:
  using CompileModule = abi::Status (*)(abi::Handle compiler, abi::Handle workspace, abi::Handle program,
                                        abi::Handle module, const abi::CompileOptions*, abi::Allocator,
                                        abi::Handle* result);
  using EmitModule = abi::Status (*)(abi::Handle environment, abi::Handle workspace, abi::Handle module,
                                     const abi::EmitOptions*, abi::Allocator, abi::Handle* result);
  CompileModule compile_module_ = nullptr;
  EmitModule emit_module_ = nullptr;
};

}  // namespace

std::unique_ptr<LoomApi> make_g3(Library library) {
  return std::make_unique<ApiG3>(std::move(library));
}

}  // namespace kc::backend::loom
