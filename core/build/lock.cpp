#include "build/lock.h"

#include <cerrno>
#include <optional>
#include <set>
#include <utility>

#include "base/atomic_file.h"
#include "base/files.h"
#include "build/identities.h"
#include "build/rules.h"
#include "bundle/bundle.h"
#include "manifest/plan.h"
#include "util/text.h"

namespace kc::build {
namespace {

using base::Error;
using base::ErrorKind;
using base::Result;

// A compiler tells its version only when it runs. What it made remembers it: the bundle of the last build, if
// that has code of exactly this one.
std::string version_in(bundle::Reader& reader, const backend::Compiler& compiler) {
  for (uint32_t i = 0; i < reader.record_count(); ++i) {
    auto record = reader.record(i);
    if (!record) return {};
    if (record->backend == compiler.backend && record->compiler_identity == compiler.identity) {
      return std::move(record->compiler_version);
    }
  }
  return {};
}

// What is in kc.lock; nothing when there is none.
Result<std::optional<LockFile>> read_lock(const std::string& path) {
  const auto bytes = base::read_file(path, kMaxLockBytes);
  if (!bytes) {
    const int code = bytes.error().sys_errno;
    if (code == ENOENT || code == ENOTDIR) return std::optional<LockFile>();
    return std::unexpected(bytes.error());
  }
  KC_ASSIGN(LockFile lock, parse_lock(path, base::as_text(*bytes)));
  return std::optional(std::move(lock));
}

Result<void> write_lock(const std::string& path, const LockFile& lock) {
  KC_ASSIGN(base::AtomicFile file, base::AtomicFile::create(AT_FDCWD, path, 0666));
  KC_TRY(file.write(base::as_bytes(lock_text(lock))));
  return file.commit(base::Sync::kFull);
}

// Equal but for the version, which is for people.
bool says_the_same(const LockedCompiler& a, LockedCompiler b) {
  b.version = a.version;
  return a == b;
}

}  // namespace

std::expected<LockOutcome, ErrorKind> lock_compilers(const Options& options, bool check_only,
                                                     Listener& listener) {
  const auto fail = [&](const Error& error) {
    listener.error(error);
    return std::unexpected(error.kind);
  };
  manifest::Loaded loaded = manifest::load(options.manifest, backend_rules());
  for (const Error& warning : loaded.warnings) listener.warning(warning);
  for (const Error& error : loaded.errors) listener.error(error);
  if (!loaded.plan) return std::unexpected(ErrorKind::kInput);
  const manifest::Plan& plan = *loaded.plan;

  std::set<std::string> backends;
  for (const manifest::Unit& unit : plan.units) backends.insert(plan.kernels[unit.kernel].backend);
  std::vector<backend::Compiler> found;
  bool all = true;
  for (const std::string& backend : backends) {
    auto compiler = backend::find_compiler(backend, options.search, {});
    if (compiler) {
      found.push_back(std::move(*compiler));
    } else {
      listener.error(compiler.error());
      all = false;
    }
  }
  if (!all) return std::unexpected(ErrorKind::kEnvironment);

  LockOutcome out;
  out.path = lock_path(plan.folder);
  auto read = read_lock(out.path);
  if (!read) return fail(read.error());
  const std::optional<LockFile> before = std::move(*read);
  LockFile after = before.value_or(LockFile());
  auto bundle = bundle::Reader::open(plan.output);
  bool is_current = before.has_value();
  for (const backend::Compiler& compiler : found) {
    const LockedCompiler* known = before ? before->find(compiler.backend) : nullptr;
    std::string version = bundle ? version_in(*bundle, compiler) : std::string();
    if (version.empty() && known != nullptr && known->identity == compiler.identity) version = known->version;
    LockedCompiler now = locked_from(compiler, std::move(version));
    LockOutcome::Compiler told{now, known == nullptr, {}};
    if (known != nullptr && !says_the_same(*known, now)) {
      told.change = difference(*known, compiler);
      if (told.change.empty()) told.change = "keys of another format";
    }
    is_current = is_current && !told.is_new && told.change.empty();
    after.set(std::move(now));
    out.compilers.push_back(std::move(told));
  }
  if (check_only) {
    if (!is_current) out.file = LockOutcome::File::kOutdated;
    return out;
  }
  if (before && before->compilers == after.compilers) return out;
  if (auto written = write_lock(out.path, after); !written) return fail(written.error());
  out.file = LockOutcome::File::kWritten;
  return out;
}

}  // namespace kc::build
