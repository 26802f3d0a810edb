// One small interface over the generations of libloomc: what is the same in all of them done here, what
// differs in one adapter each.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/artifact.h"
#include "backend/backend.h"
#include "backend/loom/run/functions.h"
#include "backend/loom/run/library.h"
#include "backend/loom/run/memory.h"
#include "base/error.h"

namespace kc::backend::loom {

/// A status that is not OK: the library could not do what it was called for.
struct Problem {
  abi::Code code = abi::kOk;
  std::string text;  // as the library words it, one line
};

/// What one step of a compile said.
struct Reply {
  std::optional<Problem> problem;  // then there is no result
  Object result;
  bool succeeded = false;
};

struct LinkRequest {
  abi::Handle workspace = nullptr;
  abi::Handle index = nullptr;
  std::string_view root;
  std::span<const abi::ConfigBinding> config;
};

struct GenerateRequest {
  abi::Handle workspace = nullptr;
  abi::Handle module = nullptr;
  abi::Handle profile = nullptr;
  std::string_view root;
  abi::ReportMode report = abi::kNoReport;
};

/// A library ready to work: environment, context, compiler, linker and pass program are made once and shared.
/// All functions may be called from several threads at once, each with a workspace of its own. Exceptions
/// that the library throws pass through.
class LoomApi {
 public:
  /// Chooses the adapter, makes what is shared, and probes what symbols cannot tell. ErrorKind::kEnvironment.
  static base::Result<std::unique_ptr<LoomApi>> open(Library library);
  virtual ~LoomApi() = default;
  LoomApi(const LoomApi&) = delete;
  LoomApi& operator=(const LoomApi&) = delete;

  const std::string& version() const { return library_.version(); }
  /// That the library has loaded nothing meanwhile that does not belong to it. Costs next to nothing as long
  /// as nothing was loaded at all.
  base::Result<void> check_mapped() const;

  /// Nothing when `profile` was made.
  std::optional<Problem> make_profile(const abi::ProfileOptions& options, Object& profile) const;
  std::optional<Problem> make_workspace(Object& workspace) const;
  void trim(abi::Handle workspace) const { f().workspace_trim(workspace); }

  /// Parses `files`, which must outlive `index`. Errors of syntax are in the reply.
  Reply make_index(std::span<const Source> files, Object& index) const;
  /// The module that `root` reaches, with the configuration applied.
  Reply link(const LinkRequest& request, Object& module) const;
  /// The module as bytecode, which belongs to `source`.
  std::optional<Problem> serialize(abi::Handle module, Object& source, base::ByteView& bytecode) const;
  /// Code for the linked module, which is used up. One reply a call of the library, in order; the last one
  /// says how it went.
  virtual std::vector<Reply> generate(const GenerateRequest& request) const = 0;

  /// Diagnostics of a result, each followed by its related places as notes, appended to `out`.
  void take_diagnostics(abi::Handle result, std::vector<artifact::Diagnostic>& out) const;
  /// Bytes of the first artifact of that kind and format: nothing when there is none.
  std::optional<Problem> take_artifact(abi::Handle result, abi::ArtifactKind kind, std::string_view format,
                                       std::optional<base::Bytes>& out) const;

 protected:
  explicit LoomApi(Library library);

  /// Where a row of the generation has what not all have.
  struct Row {
    const abi::SourceRange* range = nullptr;
    const abi::RelatedLocation* related = nullptr;
    size_t related_count = 0;
    size_t omitted_count = 0;
  };
  virtual Row row_of(const void* diagnostic) const = 0;

  const Functions& f() const { return library_.functions(); }
  const Library& library() const { return library_; }
  /// Takes a status and what came with it apart.
  Reply reply(abi::Status status, Object result) const;
  std::optional<Problem> problem_of(abi::Status status) const;
  Object object(void (*release)(abi::Handle)) const { return Object(release); }

  abi::Handle environment() const { return environment_.get(); }
  abi::Handle compiler() const { return compiler_.get(); }
  abi::Handle program() const { return program_.get(); }

 private:
  base::Result<void> make_shared_objects();
  base::Result<void> probe();
  base::Result<void> checked(const std::optional<Problem>& problem, std::string_view what) const;
  void take_diagnostic(const void* row, std::vector<artifact::Diagnostic>& out) const;
  void set_place(const abi::SourceRange& range, artifact::Diagnostic& out) const;

  Library library_;
  mutable std::atomic<uint64_t> loads_checked_ = 0;  // objects_loaded() when all was well
  Object environment_;
  Object context_;
  Object compiler_;
  Object linker_;
  Object program_;
};

/// For LoomApi::open().
std::unique_ptr<LoomApi> make_g3(Library library);
std::unique_ptr<LoomApi> make_g4(Library library);

}  // namespace kc::backend::loom
