// The objects behind the handles of the C API. Counted as the real ones are: releasing the last handle frees,
// and what an object needs it retains itself. A misuse that would be a race or a use after free in a real
// library (a workspace on two threads) ends the process with a message, so that a test sees it.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "support/hostile_loom/module_text.h"
#include "support/loom_abi/abi.h"

namespace kc::test::hostile {

using namespace loom;

struct Counted {
  std::atomic<uint32_t> count{1};
};

template <typename T>
T* retain(T* object) {
  if (object != nullptr) object->count.fetch_add(1, std::memory_order_relaxed);
  return object;
}
template <typename T>
void release(T* object) {
  if (object != nullptr && object->count.fetch_sub(1, std::memory_order_acq_rel) == 1) delete object;
}

/// Owns one count.
template <typename T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* object) : object_(retain(object)) {}
  Ref(const Ref& other) : object_(retain(other.object_)) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { release(object_); }
  T* get() const { return object_; }
  T* operator->() const { return object_; }

 private:
  T* object_ = nullptr;
};

struct Environment : Counted {};
struct PassProgram : Counted {};
struct Context : Counted {
  Ref<Environment> environment;
};
struct Compiler : Counted {
  Ref<Context> context;
};
struct Linker : Counted {
  Ref<Context> context;
  Allocator allocator{};
};
struct Profile : Counted {
  Ref<Environment> environment;
  std::string target;  // with the features as a target's name has them
  uint32_t processor_mode = 0;
};
struct Workspace : Counted {
  std::atomic<bool> is_busy{false};
};
struct Source : Counted {
  std::string identifier;
  uint32_t format = kText;
  base::Bytes contents;
};
struct IndexFile {
  Ref<Source> source;
  std::shared_ptr<const ModuleText> text;
};
struct Index : Counted {
  std::vector<IndexFile> files;
};
struct Builder : Counted {
  std::vector<IndexFile> files;
};
/// A linked module: one root with all that it reaches, its configuration applied.
struct Module : Counted {
  Ref<Workspace> workspace;
  std::vector<IndexFile> files;  // those that the root reaches; the root's own first
  std::string root;
  std::string export_name;
  std::map<std::string, std::string> values;  // of the configuration that it reads
  Ref<Profile> profile;                       // that it was lowered for, where emit_module gets none (G2, G3)
  bool is_lowered = false;
};

struct Diagnostic {
  uint32_t severity = kError;
  std::string code;
  std::string message;
  std::string formatted;
  Ref<Source> source;
  uint32_t line = 0;
  uint32_t column = 0;
  alignas(DiagnosticRow4) unsigned char row[sizeof(DiagnosticRow4)] = {};  // as the generation has it
};
struct ByteSequence : Counted {
  ByteSequence();
  ~ByteSequence();
  base::Bytes bytes;
};
struct Artifact {
  uint32_t kind = kExecutable;
  std::string format;
  std::string identifier;
  Ref<ByteSequence> contents;
  ArtifactRow row{};
};
struct Result : Counted {
  bool is_failed = false;
  std::vector<std::unique_ptr<Diagnostic>> diagnostics;
  std::vector<std::unique_ptr<Artifact>> artifacts;

  void add(Diagnostic diagnostic);
  void add(const Problem& problem, Source* source);
  void add(uint32_t kind, std::string format, std::string identifier, base::Bytes bytes);
  /// Makes the rows that callers see: to be called when nothing is added any more.
  Result* finish();
};

/// Holds a workspace for one call.
class Exclusive {
 public:
  explicit Exclusive(Workspace* workspace);
  ~Exclusive();
  Exclusive(const Exclusive&) = delete;
  Exclusive& operator=(const Exclusive&) = delete;

 private:
  Workspace* workspace_;
};

/// Changes bytes of every artifact that is alive.
void spoil_artifacts();

/// A status with a text; loomc_status_free gives it back.
Status fail(Code code, const std::string& message);
std::string status_text(Status status);
void free_status(Status status);
/// The rules of the real library for option structs: type 0 or its own, size 0 or large enough.
Status check_options(const Header& header, Type type, size_t size, const char* what);

/// The object behind a handle in an option struct.
template <typename T>
T* object(Handle handle) {
  return static_cast<T*>(handle);
}

inline std::string text_of(StringView view) {
  return view.data == nullptr ? std::string() : std::string(view.data, view.size);
}
inline StringView view_of(const std::string& text) {
  return {text.data(), text.size()};
}

}  // namespace kc::test::hostile
