#include "backend/backend.h"

#include <algorithm>
#include <expected>

#include "backend/cutile/cutile.h"
#include "backend/loom/loom.h"
#include "backend/loom/scan.h"
#include "backend/tileiras/tileiras.h"
#include "util/text.h"

namespace kc::backend {
namespace {

// Keys and the state depend on the identity: a change of what goes into it changes this name too.
constexpr std::string_view kIdentityDomain{"kc-compiler-v1\0", 15};
enum IdentityField : uint8_t { kBackendField = 1, kRoleField = 2, kDigestField = 3 };

std::unexpected<base::Error> not_available(std::string_view backend) {
  return base::fail(base::ErrorKind::kEnvironment,
                    util::format("backend {} is not built into this kc", util::escape(backend)));
}

}  // namespace

const std::vector<Description>& descriptions() {
  static const std::vector<Description> all = {tileiras::description(), loom::description(),
                                               cutile::description()};
  return all;
}

const Description* find_description(std::string_view name) {
  const auto& all = descriptions();
  const auto found = std::ranges::find(all, name, &Description::name);
  return found == all.end() ? nullptr : &*found;
}

base::Result<Compiler> find_compiler(std::string_view backend, const SearchVariables& variables,
                                     const KnownDigest& known, std::vector<SearchStep>* steps,
                                     const Compiler* earlier) {
  if (backend != tileiras::kName && backend != loom::kName) return not_available(backend);
  KC_ASSIGN(Compiler compiler, backend == tileiras::kName ? tileiras::find(variables, known, steps)
                                                          : loom::find(variables, known, steps, earlier));
  compiler.identity = identity_of(compiler);
  return compiler;
}

bool is_named(std::string_view backend, const SearchVariables& variables) {
  if (backend == tileiras::kName) {
    return is_set(variables.kc_tileiras) || is_set(variables.cutile_tileiras_path);
  }
  if (backend == loom::kName) {
    return is_set(variables.kc_loom_library) || is_set(variables.hrx_loom_library);
  }
  return false;
}

base::Digest identity_of(const Compiler& compiler) {
  base::KeyHasher hasher(kIdentityDomain);
  hasher.field(kBackendField, compiler.backend);
  for (const IdentityFile& file : compiler.files) {
    hasher.field(kRoleField, file.role);
    hasher.field(kDigestField, file.digest.view());
  }
  return hasher.finish();
}

std::string_view identity_domain() {
  return kIdentityDomain;
}

bool is_unchanged(const Compiler& compiler) {
  for (const IdentityFile& file : compiler.files) {
    const auto tuple = base::stat_tuple(file.path);
    if (!tuple || *tuple != file.tuple) return false;
  }
  // The same files must still be the ones that would run: a link that leads elsewhere now, or a libnvvm that
  // appeared in a place that is looked at first, changes no tuple of the old ones.
  std::vector<Component> now;
  if (compiler.backend == loom::kName) {
    auto components = loom::components_of(compiler.program);
    if (!components) return false;
    now = std::move(*components);
  } else {
    now = tileiras::components_of(compiler.program);
  }
  return std::ranges::equal(now, compiler.files, [](const Component& component, const IdentityFile& then) {
    return component.role == then.role && component.path == then.path;
  });
}

std::string change_of(const Compiler& compiler) {
  for (const IdentityFile& file : compiler.files) {
    const auto tuple = base::stat_tuple(file.path);
    if (!tuple || *tuple != file.tuple) {
      return util::format("the compiler changed during the build: {} is not the file it was",
                          util::escape(file.path));
    }
  }
  return util::format("the compiler changed during the build: {} has other files beside it now",
                      util::escape(compiler.program));
}

base::Result<void> check_source(std::string_view backend, std::string_view name, base::ByteView bytes) {
  if (backend == tileiras::kName) return tileiras::check_source(name, bytes);
  if (backend == loom::kName) return loom::check_source(name, bytes);
  return not_available(backend);
}

base::Result<std::vector<std::string>> entries_of(std::string_view backend, std::string_view name,
                                                  base::ByteView bytes) {
  if (backend == tileiras::kName) return tileiras::entries_of(bytes);
  if (backend == loom::kName && !loom::is_bytecode(name)) return loom::exported_kernels(base::as_text(bytes));
  if (backend == loom::kName || backend == cutile::kName) {
    return base::fail(base::ErrorKind::kInput, "only the compiler can tell the entries of this source",
                      "name each entry in the manifest");
  }
  return not_available(backend);
}

std::string missing_export_hint(std::string_view backend, std::string_view entry, std::string_view name,
                                base::ByteView bytes) {
  if (backend != loom::kName || loom::is_bytecode(name)) return {};
  return loom::missing_export_hint(entry, base::as_text(bytes));
}

std::optional<std::vector<std::string>> declared_keys_of(std::string_view backend, std::string_view name,
                                                         base::ByteView bytes) {
  if (backend != loom::kName || loom::is_bytecode(name)) return std::nullopt;
  return loom::declared_keys(base::as_text(bytes));
}

void write_compiler(base::ByteWriter& out, const Compiler& compiler) {
  out.text(compiler.backend);
  out.text(compiler.program);
  out.u32(static_cast<uint32_t>(compiler.files.size()));
  for (const IdentityFile& file : compiler.files) {
    out.text(file.role);
    out.text(file.path);
    base::write_tuple(out, file.tuple);
    out.raw(file.digest.view());
  }
  out.raw(compiler.identity.view());
}

Compiler read_compiler(base::ByteReader& in) {
  constexpr size_t kLeastFile = 4 + 4 + 40 + 32;  // two empty texts, a tuple, a digest
  Compiler out;
  out.backend = in.text();
  out.program = in.text();
  const uint32_t count = in.count(kLeastFile);
  for (uint32_t i = 0; i < count && in.ok(); ++i) {
    IdentityFile file;
    file.role = in.text();
    file.path = in.text();
    file.tuple = base::read_tuple(in);
    file.digest = base::read_digest(in);
    out.files.push_back(std::move(file));
  }
  out.identity = base::read_digest(in);
  if (in.ok() && out.identity != identity_of(out)) in.fail();
  return out;
}

}  // namespace kc::backend
