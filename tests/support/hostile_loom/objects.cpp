#include "support/hostile_loom/objects.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>

#include "support/loom_abi/variant.h"

namespace kc::test::hostile {
namespace {

std::mutex g_sequences_mutex;
std::set<ByteSequence*> g_sequences;

// Its address leaves the low five bits free for the code.
struct alignas(32) StatusText {
  std::string text;
};
constexpr Status kCodeBits = 31;

template <typename Row>
void fill(Diagnostic& diagnostic, Row row) {
  row.head = {diagnostic.severity, 0, view_of(diagnostic.code), view_of(diagnostic.message)};
  row.range = {diagnostic.source.get(), 0, 0, diagnostic.line, diagnostic.column, diagnostic.line,
               diagnostic.column};
  std::memcpy(diagnostic.row, &row, sizeof row);
}

}  // namespace

ByteSequence::ByteSequence() {
  const std::lock_guard lock(g_sequences_mutex);
  g_sequences.insert(this);
}

ByteSequence::~ByteSequence() {
  const std::lock_guard lock(g_sequences_mutex);
  g_sequences.erase(this);
}

void spoil_artifacts() {
  const std::lock_guard lock(g_sequences_mutex);
  for (ByteSequence* sequence : g_sequences) {
    for (size_t at = 0x1000; at < sequence->bytes.size() && at < 0x1010; ++at) sequence->bytes[at] ^= 0xFF;
  }
}

void Result::add(Diagnostic diagnostic) {
  if (diagnostic.severity == kError) is_failed = true;
  diagnostics.push_back(std::make_unique<Diagnostic>(std::move(diagnostic)));
}

void Result::add(const Problem& problem, Source* source) {
  Diagnostic out;
  out.code = problem.code;
  out.message = problem.message;
  if (problem.line != 0) {
    out.source = Ref(source);
    out.line = problem.line;
    out.column = problem.column;
    out.formatted = source->identifier + ":" + std::to_string(problem.line) + ":" +
                    std::to_string(problem.column) + ": error [" + problem.code + "]: " + problem.message +
                    "\n";
  }
  add(std::move(out));
}

void Result::add(uint32_t kind, std::string format, std::string identifier, base::Bytes bytes) {
  auto* sequence = new ByteSequence;
  sequence->bytes = std::move(bytes);
  auto artifact = std::make_unique<Artifact>();
  artifact->kind = kind;
  artifact->format = std::move(format);
  artifact->identifier = std::move(identifier);
  artifact->contents = Ref(sequence);
  release(sequence);
  artifacts.push_back(std::move(artifact));
}

Result* Result::finish() {
  for (const auto& diagnostic : diagnostics) {
    if (kVariant.generation >= 4) {
      DiagnosticRow4 row{};
      row.formatted_text = view_of(diagnostic->formatted);
      fill(*diagnostic, row);
    } else if (kVariant.generation == 3) {
      fill(*diagnostic, DiagnosticRow3{});
    } else {
      fill(*diagnostic, DiagnosticRow2{});
    }
  }
  for (const auto& artifact : artifacts) {
    artifact->row = {artifact->kind, 0, view_of(artifact->format), view_of(artifact->identifier),
                     artifact->contents.get()};
  }
  return this;
}

Exclusive::Exclusive(Workspace* workspace) : workspace_(workspace) {
  if (workspace_ != nullptr && workspace_->is_busy.exchange(true)) {
    std::fputs("hostile loom: a workspace is used by two threads at once\n", stderr);
    std::abort();
  }
}

Exclusive::~Exclusive() {
  if (workspace_ != nullptr) workspace_->is_busy = false;
}

Status fail(Code code, const std::string& message) {
  return reinterpret_cast<Status>(new StatusText{message}) | static_cast<Status>(code);
}

std::string status_text(Status status) {
  constexpr const char* kNames[] = {
      "OK",        "CANCELLED",       "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
      "NOT_FOUND", "ALREADY_EXISTS",  "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
      "ABORTED",   "OUT_OF_RANGE",    "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
      "DATA_LOSS", "UNAUTHENTICATED", "DEFERRED",          "INCOMPATIBLE"};
  const Status code = status & kCodeBits;
  std::string out = std::string("hostile/loom.c:1: ") + (code < std::size(kNames) ? kNames[code] : "?");
  if (const auto* text = reinterpret_cast<const StatusText*>(status & ~kCodeBits)) out += "; " + text->text;
  return out;
}

void free_status(Status status) {
  delete reinterpret_cast<StatusText*>(status & ~kCodeBits);
}

Status check_options(const Header& header, Type type, size_t size, const char* what) {
  if (header.type != 0 && header.type != type) {
    return fail(kInvalidArgument, std::string(what) + " have an unknown structure type");
  }
  if (header.size != 0 && header.size < size) {
    return fail(kInvalidArgument, std::string(what) + " structure_size is too small");
  }
  return 0;
}

}  // namespace kc::test::hostile
