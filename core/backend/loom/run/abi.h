// The binary interface of libloomc, as far as kc uses it: layouts and numbers of the generations G3 and G4.
//
// The library promises no stable interface, so nothing here comes from its headers: it was measured on
// libraries and read in bindings of them. x86-64 only: on other hosts kc has no layouts that anybody has
// tried (library.cpp says so at run time), though these happen to be the same on every 64-bit little-endian
// one.
//
// Options begin with {type, structure_size, next}. A structure_size larger than the library's own is
// accepted, a smaller one refused, so where generations differ only in a tail of zeros the longer layout is
// sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kc::backend::loom::abi {

using Handle = void*;
/// Low five bits: the code, 0 = OK. The rest: a message that belongs to whoever got it, or nothing.
using Status = uintptr_t;

enum Code : uint32_t {
  kOk = 0,
  kInvalidArgument = 3,
  kNotFound = 5,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kIncompatible = 18,
};
constexpr Code code_of(Status status) {
  return static_cast<Code>(status & 31U);
}

struct View {
  const char* data = nullptr;
  size_t size = 0;
};
inline View view(std::string_view text) {
  return {text.empty() ? nullptr : text.data(), text.size()};
}

enum AllocatorCommand : int { kMalloc = 0, kCalloc = 1, kRealloc = 2, kFree = 3 };
struct Allocator {
  void* self;
  Status (*control)(void* self, int command, const void* parameters, void** pointer);
};

enum Type : uint32_t {
  kSourceType = 1,
  kContextType = 3,
  kLinkType = 6,
  kSerializeType = 7,
  kCompileType = 10,
  kContextTargetType = 12,
  kPipelineType = 13,
  kSpecializationType = 16,
  kEmitType = 18,
  kProfileType = 28,
  kReportType = 31,
  kCompileArtifactType = 42,  // G4; the same number as an extension of a profile below
};
/// What vendor builds call the extension of a profile that holds the processor mode, newest first.
inline constexpr uint32_t kProcessorModeTypes[] = {44, 42, 41};

struct Header {
  uint32_t type = 0;
  size_t structure_size = 0;
  const void* next = nullptr;
};

enum SourceFormat : uint32_t { kText = 1, kBytecode = 2 };
enum SourceStorage : uint32_t { kBorrowed = 0 };
struct SourceOptions {
  Header header;
  uint32_t format = 0;
  View identifier;
  View contents;
  uint32_t storage = kBorrowed;
  void* release = nullptr;
  void* user_data = nullptr;
};

struct ContextTargetOptions {
  Header header;
  Handle environment = nullptr;
};
enum SourceRetention : uint32_t { kWholeSources = 0, kNamesAndPlaces = 1 };
struct ContextOptions {  // 24 bytes before G4, which keeps whole sources
  Header header;
  uint32_t source_retention = kWholeSources;
};

struct ProfileOptions {
  Header header;
  View identifier;
  View target;
  uint32_t sramecc = 0;  // FeatureState
  uint32_t xnack = 0;
};
enum FeatureState : uint32_t { kAny = 0, kOff = 2, kOn = 3 };
struct ProcessorModeOptions {
  Header header;
  uint32_t mode = 0;
};
enum ProcessorMode : uint32_t { kDefaultMode = 0, kComputeUnit = 1, kWorkgroupProcessor = 2 };

enum PipelineKind : uint32_t { kPreparedLow = 0 };
struct PipelineOptions {
  Header header;
  View identifier;
  uint32_t kind = kPreparedLow;
  uint32_t control_flow = 0;  // CFG
  uint32_t max_errors = 0;
};

enum IndexRole : uint32_t { kRoot = 0, kLibrary = 1 };
struct IndexSourceOptions {
  View provider_name;
  uint32_t role = kRoot;
};

struct ConfigBinding {
  View key;
  View value;
};
enum ConfigFlag : uint32_t { kRequireResolved = 1 };
struct ConfigOptions {
  const ConfigBinding* bindings = nullptr;
  size_t binding_count = 0;
  View json;
  uint32_t flags = 0;
};

enum LinkMode : uint32_t { kLink = 1 };
enum LinkFlag : uint32_t { kAllowUnresolved = 2 };
struct LinkOptions {
  Header header;
  Handle index = nullptr;
  View module_name;
  uint32_t mode = 0;
  const View* roots = nullptr;
  size_t root_count = 0;
  uint32_t flags = 0;
  ConfigOptions config;
  const size_t* providers = nullptr;
  size_t provider_count = 0;
};

struct SerializeOptions {
  Header header;
  uint32_t format = 0;
  View identifier;
  uint32_t presentation = 0;
  View reserved;  // some generations have one field more: zero means none
};

struct Specialization {
  View function;
  Handle profile = nullptr;
};
struct SpecializationOptions {  // G3, chained to the compile options
  Header header;
  const Specialization* rows = nullptr;
  size_t row_count = 0;
  const Specialization* bindings = nullptr;
  size_t binding_count = 0;
};
struct CompileOptions {  // G3
  Header header;
  View module_name;
  uint32_t artifact_flags = 0;
  uint32_t config_flags = 0;
  Handle config_module = nullptr;
};

enum EmitFlag : uint32_t { kPrimary = 1 };
struct EmitOptions {
  Header header;
  View format;
  View identifier;
  uint32_t artifact_flags = 0;
};
enum ReportMode : uint32_t { kNoReport = 0, kSummary = 1, kDetails = 2 };
struct ReportOptions {  // chained to the emit options
  Header header;
  uint32_t mode = 0;
  uint32_t format = 0;  // G4: JSON is 0; before it, padding
  View identifier;
};
struct CompileArtifactOptions {  // G4
  Header header;
  const View* roots = nullptr;
  size_t root_count = 0;
  const View* excluded_roots = nullptr;
  size_t excluded_count = 0;
  Handle profile = nullptr;
  const ConfigOptions* config = nullptr;
  const EmitOptions* emit = nullptr;
  uint32_t artifact_flags = 0;
};

struct SourceRange {
  Handle source = nullptr;
  size_t start = 0;
  size_t end = 0;
  uint32_t start_line = 0;  // from 1, 0 = unknown
  uint32_t start_column = 0;
  uint32_t end_line = 0;
  uint32_t end_column = 0;
};
struct RelatedLocation {
  View label;
  SourceRange range;
};
enum Severity : uint32_t { kNote = 0, kWarning = 1, kError = 2 };
/// What every generation has in front.
struct DiagnosticHead {
  uint32_t severity = 0;
  View code;
  View message;
};
struct DiagnosticG3 {
  DiagnosticHead head;
  SourceRange range;
  const RelatedLocation* related = nullptr;
  size_t related_count = 0;
  size_t omitted_count = 0;
};
struct DiagnosticG4 {
  DiagnosticHead head;
  View formatted_text;
  SourceRange range;
  const RelatedLocation* related = nullptr;
  size_t related_count = 0;
  size_t omitted_count = 0;
  const void* parameters = nullptr;
  size_t parameter_count = 0;
};

enum ArtifactKind : uint32_t { kExecutable = 0, kReport = 2 };
inline constexpr std::string_view kHsacoFormat = "amdgpu-hsaco";
inline constexpr std::string_view kReportFormat = "loom-compile-report-json";
struct Artifact {
  uint32_t kind = 0;
  View format;
  View identifier;
  Handle contents = nullptr;  // a byte sequence
};

#if defined(__x86_64__)
static_assert(sizeof(View) == 16 && sizeof(Allocator) == 16 && sizeof(Header) == 24);
static_assert(sizeof(SourceOptions) == 88 && offsetof(SourceOptions, format) == 24 &&
              offsetof(SourceOptions, identifier) == 32 && offsetof(SourceOptions, contents) == 48 &&
              offsetof(SourceOptions, storage) == 64 && offsetof(SourceOptions, release) == 72 &&
              offsetof(SourceOptions, user_data) == 80);
static_assert(sizeof(ContextTargetOptions) == 32 && offsetof(ContextTargetOptions, environment) == 24);
static_assert(sizeof(ContextOptions) == 32 && offsetof(ContextOptions, source_retention) == 24);
static_assert(sizeof(ProfileOptions) == 64 && offsetof(ProfileOptions, identifier) == 24 &&
              offsetof(ProfileOptions, target) == 40 && offsetof(ProfileOptions, sramecc) == 56 &&
              offsetof(ProfileOptions, xnack) == 60);
static_assert(sizeof(ProcessorModeOptions) == 32 && offsetof(ProcessorModeOptions, mode) == 24);
static_assert(sizeof(PipelineOptions) == 56 && offsetof(PipelineOptions, identifier) == 24 &&
              offsetof(PipelineOptions, kind) == 40 && offsetof(PipelineOptions, control_flow) == 44 &&
              offsetof(PipelineOptions, max_errors) == 48);
static_assert(sizeof(IndexSourceOptions) == 24 && offsetof(IndexSourceOptions, role) == 16);
static_assert(sizeof(ConfigBinding) == 32 && offsetof(ConfigBinding, value) == 16);
static_assert(sizeof(ConfigOptions) == 40 && offsetof(ConfigOptions, binding_count) == 8 &&
              offsetof(ConfigOptions, json) == 16 && offsetof(ConfigOptions, flags) == 32);
static_assert(sizeof(LinkOptions) == 136 && offsetof(LinkOptions, index) == 24 &&
              offsetof(LinkOptions, module_name) == 32 && offsetof(LinkOptions, mode) == 48 &&
              offsetof(LinkOptions, roots) == 56 && offsetof(LinkOptions, root_count) == 64 &&
              offsetof(LinkOptions, flags) == 72 && offsetof(LinkOptions, config) == 80 &&
              offsetof(LinkOptions, providers) == 120 && offsetof(LinkOptions, provider_count) == 128);
static_assert(sizeof(SerializeOptions) == 72 && offsetof(SerializeOptions, format) == 24 &&
              offsetof(SerializeOptions, identifier) == 32 &&
              offsetof(SerializeOptions, presentation) == 48 && offsetof(SerializeOptions, reserved) == 56);
static_assert(sizeof(Specialization) == 24 && offsetof(Specialization, profile) == 16);
static_assert(sizeof(SpecializationOptions) == 56 && offsetof(SpecializationOptions, rows) == 24 &&
              offsetof(SpecializationOptions, row_count) == 32 &&
              offsetof(SpecializationOptions, bindings) == 40 &&
              offsetof(SpecializationOptions, binding_count) == 48);
static_assert(sizeof(CompileOptions) == 56 && offsetof(CompileOptions, module_name) == 24 &&
              offsetof(CompileOptions, artifact_flags) == 40 &&
              offsetof(CompileOptions, config_flags) == 44 && offsetof(CompileOptions, config_module) == 48);
static_assert(sizeof(EmitOptions) == 64 && offsetof(EmitOptions, format) == 24 &&
              offsetof(EmitOptions, identifier) == 40 && offsetof(EmitOptions, artifact_flags) == 56);
static_assert(sizeof(ReportOptions) == 48 && offsetof(ReportOptions, mode) == 24 &&
              offsetof(ReportOptions, format) == 28 && offsetof(ReportOptions, identifier) == 32);
static_assert(sizeof(CompileArtifactOptions) == 88 && offsetof(CompileArtifactOptions, roots) == 24 &&
              offsetof(CompileArtifactOptions, root_count) == 32 &&
              offsetof(CompileArtifactOptions, excluded_roots) == 40 &&
              offsetof(CompileArtifactOptions, excluded_count) == 48 &&
              offsetof(CompileArtifactOptions, profile) == 56 &&
              offsetof(CompileArtifactOptions, config) == 64 &&
              offsetof(CompileArtifactOptions, emit) == 72 &&
              offsetof(CompileArtifactOptions, artifact_flags) == 80);
static_assert(sizeof(SourceRange) == 40 && offsetof(SourceRange, start_line) == 24 &&
              offsetof(SourceRange, start_column) == 28);
static_assert(sizeof(RelatedLocation) == 56 && offsetof(RelatedLocation, range) == 16);
static_assert(offsetof(DiagnosticHead, code) == 8 && offsetof(DiagnosticHead, message) == 24);
static_assert(sizeof(DiagnosticG3) == 104 && offsetof(DiagnosticG3, range) == 40 &&
              offsetof(DiagnosticG3, related) == 80 && offsetof(DiagnosticG3, related_count) == 88);
static_assert(sizeof(DiagnosticG4) == 136 && offsetof(DiagnosticG4, formatted_text) == 40 &&
              offsetof(DiagnosticG4, range) == 56 && offsetof(DiagnosticG4, related) == 96 &&
              offsetof(DiagnosticG4, related_count) == 104 && offsetof(DiagnosticG4, parameter_count) == 128);
static_assert(sizeof(Artifact) == 48 && offsetof(Artifact, format) == 8 &&
              offsetof(Artifact, identifier) == 24 && offsetof(Artifact, contents) == 40);
#endif

}  // namespace kc::backend::loom::abi
