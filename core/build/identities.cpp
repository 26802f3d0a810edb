#include "build/identities.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <utility>

#include "base/files.h"
#include "build/lock_file.h"
#include "bundle/bundle.h"
#include "util/text.h"

namespace kc::build {
namespace {

using base::Error;
using base::ErrorKind;
using base::Result;

constexpr std::string_view kRenew = "`kc lock` records what is found now";

// What of identities a bundle holds: backend -> identity.
Result<std::map<std::string, base::Digest>> identities_in(const std::string& path) {
  KC_ASSIGN(bundle::Reader reader, bundle::Reader::open(path));
  std::map<std::string, base::Digest> out;
  for (uint32_t i = 0; i < reader.record_count(); ++i) {
    KC_ASSIGN(const bundle::Record record, reader.record(i));
    const auto [at, is_new] = out.try_emplace(record.backend, record.compiler_identity);
    if (is_new || at->second == record.compiler_identity) continue;
    return base::fail_at(
        ErrorKind::kInput, {path},
        util::format("holds code of two {} compilers, {} and {}, so it does not tell which one to build for",
                     util::escape(record.backend), at->second.hex(), record.compiler_identity.hex()),
        "name a bundle of one compiler");
  }
  return out;
}

class Finder {
 public:
  Finder(const std::string& folder, const Options& options, const State* earlier, Listener& listener,
         std::vector<Error>& errors)
      : path_(lock_path(folder)),
        options_(options),
        earlier_(earlier),
        listener_(listener),
        errors_(errors) {}

  Identities run(const std::vector<std::string>& backends) {
    read_lock();
    out_.locked = lock_.has_value();
    for (const std::string& backend : backends) find(backend);
    return std::move(out_);
  }

 private:
  void read_lock();
  void find(const std::string& backend);
  void check(const backend::Compiler& found);
  void stand_in(const std::string& backend, Error why);
  bool needs_lock();
  const LockedCompiler* locked(const std::string& backend);
  std::optional<base::Digest> in_bundle(const std::string& backend);
  void refuse(std::string message, std::string_view hint = kRenew) {
    errors_.push_back({ErrorKind::kEnvironment, std::move(message), {path_}, std::string(hint)});
  }

  const std::string path_;
  const Options& options_;
  const State* earlier_;
  Listener& listener_;
  std::vector<Error>& errors_;
  Identities out_;
  std::optional<LockFile> lock_;
  std::optional<Error> lock_fault_;  // there is one that cannot be read
  bool is_fault_told_ = false;
  std::optional<std::map<std::string, base::Digest>> bundle_;  // of --identity-from, when it was read
  bool is_bundle_read_ = false;
};

void Finder::read_lock() {
  const std::string absolute = base::absolute_path(path_).value_or(path_);
  manifest::Input input{absolute, {}, {}, {}};
  const auto bytes = base::read_file(path_, kMaxLockBytes, &input.tuple);
  if (!bytes) {
    if (bytes.error().sys_errno == ENOENT || bytes.error().sys_errno == ENOTDIR) {
      out_.no_lock = absolute;
    } else {
      lock_fault_ = bytes.error();
    }
    return;
  }
  input.digest = base::sha256(*bytes);
  out_.inputs.push_back(std::move(input));
  auto lock = parse_lock(path_, base::as_text(*bytes));
  if (lock) {
    lock_ = std::move(*lock);
  } else {
    lock_fault_ = lock.error();
  }
}

// Whether kc.lock can be asked; that it cannot although it must is told once.
bool Finder::needs_lock() {
  if (lock_) return true;
  if (!std::exchange(is_fault_told_, true)) {
    if (lock_fault_) {
      errors_.push_back(*lock_fault_);
    } else {
      refuse("there is no kc.lock, which --locked compares with", "`kc lock` writes it");
    }
  }
  return false;
}

const LockedCompiler* Finder::locked(const std::string& backend) {
  const LockedCompiler* locked = lock_ ? lock_->find(backend) : nullptr;
  out_.locked = out_.locked && locked != nullptr && is_of_our_keys(*locked);
  return locked;
}

void Finder::find(const std::string& backend) {
  const auto known = earlier_ != nullptr ? known_digests(earlier_->compilers, earlier_->recorded_ns)
                                         : backend::KnownDigest();
  const backend::Compiler* before = nullptr;
  if (earlier_ != nullptr) {
    const auto at = std::ranges::find(earlier_->compilers, backend, &backend::Compiler::backend);
    if (at != earlier_->compilers.end()) before = &*at;
  }
  auto found = backend::find_compiler(backend, options_.search, known, nullptr, before);
  if (found) {
    check(*found);
    out_.found.push_back(std::move(*found));
  } else if (backend::is_named(backend, options_.search)) {
    errors_.push_back(found.error());
  } else {
    stand_in(backend, std::move(found).error());
  }
}

// A compiler that was found against the one that kc.lock names.
void Finder::check(const backend::Compiler& found) {
  if (options_.locked && !needs_lock()) return;
  if (lock_fault_ && !std::exchange(is_fault_told_, true)) {
    Error warning = *lock_fault_;
    warning.kind = ErrorKind::kFailed;
    listener_.warning(warning);
  }
  const LockedCompiler* locked = this->locked(found.backend);
  if (locked == nullptr) {
    if (options_.locked) refuse(util::format("says nothing of {} on this kind of machine", found.backend));
    return;
  }
  const std::string differs = difference(*locked, found);
  if (!differs.empty()) {
    out_.locked = false;
    if (options_.locked) {
      refuse(util::format("names another {}: {}", found.backend, differs));
    } else {
      listener_.note(util::format("{} names another {} ({}); `kc lock` records this one", path_,
                                  found.backend, differs));
    }
  } else if (!is_of_our_keys(*locked)) {
    if (options_.locked) {
      refuse(util::format("was written for keys of another format than this kc makes for {}", found.backend));
    } else {
      listener_.note(util::format("{} was written for keys of another format; `kc lock` renews it", path_));
    }
  }
}

std::optional<base::Digest> Finder::in_bundle(const std::string& backend) {
  if (!options_.identity_from) return std::nullopt;
  if (!std::exchange(is_bundle_read_, true)) {
    const std::string& path = *options_.identity_from;
    // Its tuple alone tells whether it is still that bundle: it may be too large to be hashed for this.
    const auto tuple = base::stat_tuple(path);
    auto inside = identities_in(path);
    if (inside) {
      bundle_ = std::move(*inside);
      out_.inputs.push_back(
          {base::absolute_path(path).value_or(path), {}, tuple.value_or(base::FileTuple()), {}});
    } else {
      errors_.push_back(inside.error());
    }
  }
  if (!bundle_) return std::nullopt;
  const auto at = bundle_->find(backend);
  return at == bundle_->end() ? std::nullopt : std::optional(at->second);
}

// No compiler was found: who else knows its identity?
void Finder::stand_in(const std::string& backend, Error why) {
  if ((options_.locked || lock_fault_) && !needs_lock()) return;
  std::string source;
  backend::Compiler compiler;
  if (const LockedCompiler* locked = this->locked(backend)) {
    if (!is_of_our_keys(*locked)) {
      if (options_.locked) {
        refuse(util::format("was written for keys of another format than this kc makes for {}", backend));
        return;
      }
      listener_.note(
          util::format("{} was written for keys of another format: what is in a store of that kc is "
                       "not found",
                       path_));
    }
    compiler = without_files(*locked);
    source = path_;
  } else if (options_.locked) {
    refuse(util::format("says nothing of {} on this kind of machine", backend));
    return;
  } else if (const auto identity = in_bundle(backend)) {
    compiler.backend = backend;
    compiler.identity = *identity;
    source = *options_.identity_from;
  } else {
    const bool is_told = options_.identity_from && !bundle_;
    if (is_told) return;
    why.hint += util::format(
        "; without a compiler, what it made is found in the store when kc.lock (`kc lock`) or "
        "--identity-from "
        "tells its identity");
    errors_.push_back(std::move(why));
    return;
  }
  listener_.note(
      util::format("no {} found: the store is searched for code of the one that {} names", backend, source));
  out_.absent.push_back({std::move(compiler), std::move(why)});
}

}  // namespace

std::string lock_path(const std::string& folder) {
  return folder.empty() || folder == "." ? std::string(kLockName) : base::join_path(folder, kLockName);
}

Identities find_identities(const std::vector<std::string>& backends, const std::string& folder,
                           const Options& options, const State* earlier, Listener& listener,
                           std::vector<Error>& errors) {
  return Finder(folder, options, earlier, listener, errors).run(backends);
}

}  // namespace kc::build
