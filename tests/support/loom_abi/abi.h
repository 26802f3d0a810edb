// Loom's C ABI as callers see it (x86-64): option structs, rows of results, numbers. Of the generations G2 to
// G4; G1 has other link and compile options. Shared by the two libraries that tests have, so written apart
// from kc's own.
#pragma once

#include <cstddef>
#include <cstdint>

#define LOOM_API extern "C" __attribute__((visibility("default")))

namespace kc::test::loom {

using Handle = void*;      // any object of the API
using Status = uintptr_t;  // low five bits: code; the rest: a message, or zero

enum Code : int {
  kOk = 0,
  kInvalidArgument = 3,
  kNotFound = 5,
  kAlreadyExists = 6,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kUnavailable = 14,
  kIncompatible = 18,
};

enum Type : uint32_t {
  kSourceOptions = 1,
  kWorkspaceOptions = 2,
  kContextOptions = 3,
  kBuilderOptions = 4,
  kLinkerOptions = 5,
  kLinkOptions = 6,
  kSerializeOptions = 7,
  kCompilerOptions = 9,
  kCompileOptions = 10,
  kContextTargetOptions = 12,
  kPipelineOptions = 13,
  kSpecializationOptions = 16,
  kEmitOptions = 18,
  kProfileOptions = 28,
  kManifestOptions = 30,
  kReportOptions = 31,
  kArtifactOptions = 42,
};

enum ArtifactKind : uint32_t { kExecutable = 0, kReport = 2 };
enum Severity : uint32_t { kNote = 0, kWarning = 1, kError = 2 };
enum Format : uint32_t { kUnknown = 0, kText = 1, kBytecode = 2 };

struct StringView {
  const char* data;
  size_t size;
};
struct ByteSpan {
  const uint8_t* data;
  size_t size;
};
struct Allocator {
  void* self;
  Status (*control)(void* self, int command, const void* params, void** pointer);
};
enum Command : int { kMalloc, kCalloc, kRealloc, kFree };

struct Header {
  uint32_t type;
  uint32_t pad;
  size_t size;
  const Header* next;
};

struct SourceOptions {
  Header header;
  uint32_t format;
  uint32_t pad0;
  StringView identifier;
  ByteSpan contents;
  uint32_t storage;
  uint32_t pad1;
  void* release;
  void* user_data;
};
struct WorkspaceOptions {
  Header header;
  size_t block_size;
};
struct LinkerOptions {
  Header header;
  StringView module_name;
};
struct ContextOptions {
  Header header;
  uint32_t source_retention;
  uint32_t pad;
};
struct ContextTargetOptions {
  Header header;
  Handle environment;
};
struct ProfileOptions {
  Header header;
  StringView identifier;
  StringView target;
  uint32_t sramecc;
  uint32_t xnack;
};
struct ProcessorModeOptions {
  Header header;
  uint32_t mode;
  uint32_t pad;
};
struct IndexSourceOptions {
  StringView provider_name;
  uint32_t role;
  uint32_t pad;
};
struct ConfigBinding {
  StringView key;
  StringView value;
};
struct ConfigOptions {
  const ConfigBinding* bindings;
  size_t count;
  StringView json;
  uint32_t flags;
  uint32_t pad;
};
struct LinkOptions {
  Header header;
  Handle index;
  StringView module_name;
  uint32_t mode;
  uint32_t pad0;
  const StringView* roots;
  size_t root_count;
  uint32_t flags;
  uint32_t pad1;
  ConfigOptions config;
  const size_t* providers;
  size_t provider_count;
};
struct SerializeOptions {
  Header header;
  uint32_t format;
  uint32_t pad;
  StringView identifier;
  uint64_t text_presentation;
};
struct Specialization {
  StringView function;
  Handle profile;
};
struct SpecializationOptions {
  Header header;
  const Specialization* rows;
  size_t row_count;
  const void* bindings;
  size_t binding_count;
};
struct CompileOptions {
  Header header;
  StringView module_name;
  uint32_t artifact_flags;
  uint32_t config_flags;
  void* config_module;
};
struct EmitOptions {
  Header header;
  StringView format;
  StringView identifier;
  uint32_t artifact_flags;
  uint32_t pad;
};
struct ReportOptions {
  Header header;
  uint32_t mode;
  uint32_t format;
  StringView identifier;
};
struct ArtifactOptions {
  Header header;
  const StringView* roots;
  size_t root_count;
  const StringView* excluded;
  size_t excluded_count;
  Handle profile;
  const ConfigOptions* config;
  const EmitOptions* emit;
  uint32_t artifact_flags;
  uint32_t pad;
};
static_assert(sizeof(SourceOptions) == 88 && sizeof(ProfileOptions) == 64 && sizeof(LinkOptions) == 136);
static_assert(sizeof(SpecializationOptions) == 56 && sizeof(CompileOptions) == 56);
static_assert(sizeof(EmitOptions) == 64 && sizeof(ReportOptions) == 48 && sizeof(ArtifactOptions) == 88);

struct SourceRange {
  Handle source;
  size_t start;
  size_t end;
  uint32_t start_line;
  uint32_t start_column;
  uint32_t end_line;
  uint32_t end_column;
};
struct DiagnosticHead {
  uint32_t severity;
  uint32_t pad;
  StringView code;
  StringView message;
};
struct RelatedRows {
  const void* rows;
  size_t count;
  size_t omitted_count;
};
struct DiagnosticRow2 {
  DiagnosticHead head;
  SourceRange range;
};
struct DiagnosticRow3 {
  DiagnosticHead head;
  SourceRange range;
  RelatedRows related;
};
struct DiagnosticRow4 {
  DiagnosticHead head;
  StringView formatted_text;
  SourceRange range;
  RelatedRows related;
  const void* parameters;
  size_t parameter_count;
};
static_assert(sizeof(SourceRange) == 40 && sizeof(DiagnosticRow2) == 80 && sizeof(DiagnosticRow3) == 104);
static_assert(sizeof(DiagnosticRow4) == 136);

struct ArtifactRow {
  uint32_t kind;
  uint32_t pad;
  StringView format;
  StringView identifier;
  Handle contents;
};
static_assert(sizeof(ArtifactRow) == 48);

}  // namespace kc::test::loom
