#include "backend/search_tools.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "base/files.h"
#include "base/parallel.h"
#include "util/text.h"

namespace kc::backend {
namespace {

// Compilers are up to 100 MB: they are hashed in pieces that stay in the processor's cache.
constexpr size_t kHashPiece = 1U << 20;
constexpr unsigned kHashThreads = 4;  // an installation has a handful of files

// Numbers in names compare as numbers, so that cuda-13.10 is newer than cuda-13.4, and python3.11 than
// python3.9.
bool is_newer(std::string_view a, std::string_view b) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      size_t end_a = i;
      size_t end_b = j;
      while (end_a < a.size() && is_digit(a[end_a])) ++end_a;
      while (end_b < b.size() && is_digit(b[end_b])) ++end_b;
      while (i + 1 < end_a && a[i] == '0') ++i;
      while (j + 1 < end_b && b[j] == '0') ++j;
      const std::string_view number_a = a.substr(i, end_a - i);
      const std::string_view number_b = b.substr(j, end_b - j);
      if (number_a.size() != number_b.size()) return number_a.size() > number_b.size();
      if (number_a != number_b) return number_a > number_b;
      i = end_a;
      j = end_b;
    } else {
      if (a[i] != b[j]) return a[i] > b[j];
      ++i;
      ++j;
    }
  }
  return a.size() - i > b.size() - j;
}

// The digest of what `fd` leads to, read once in pieces.
base::Result<base::Digest> hash_descriptor(int fd, const std::string& path) {
  base::Sha256 hasher;
  base::Bytes piece(kHashPiece);
  for (;;) {
    const ssize_t got = read(fd, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return base::fail_errno(base::ErrorKind::kEnvironment, "read", path, errno);
    if (got == 0) return hasher.finish();
    hasher.update(base::ByteView(piece.data(), static_cast<size_t>(got)));
  }
}

base::Result<IdentityFile> identify_one(const Component& component, const Inspect& inspect) {
  IdentityFile out{component.role, component.path, {}, {}};
  KC_ASSIGN(const base::FileDescriptor fd,
            base::open_at(AT_FDCWD, component.path, O_RDONLY, 0, base::ErrorKind::kEnvironment));
  struct stat before {};
  struct stat after {};
  if (fstat(fd.get(), &before) != 0) {
    return base::fail_errno(base::ErrorKind::kEnvironment, "stat", component.path, errno);
  }
  if (inspect) KC_TRY(inspect(component, fd.get()));
  KC_ASSIGN(out.digest, hash_descriptor(fd.get(), component.path));
  if (fstat(fd.get(), &after) != 0) {
    return base::fail_errno(base::ErrorKind::kEnvironment, "stat", component.path, errno);
  }
  out.tuple = base::tuple_of(after);
  if (out.tuple != base::tuple_of(before)) {
    return base::fail(base::ErrorKind::kEnvironment,
                      util::format("{} changed while it was read", util::escape(component.path)));
  }
  return out;
}

}  // namespace

bool is_set(const std::optional<std::string>& variable) {
  return variable && !variable->empty();
}

std::optional<std::string> resolve(const std::string& path) {
  const std::unique_ptr<char, decltype(&free)> real(realpath(path.c_str(), nullptr), &free);
  if (!real) return std::nullopt;
  return std::string(real.get());
}

bool is_regular(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

bool is_directory(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

std::vector<std::string> newest_first(const std::string& folder, std::string_view pattern) {
  const auto names = base::list_directory(AT_FDCWD, folder);
  std::vector<std::string> out;
  for (const std::string& name : names.value_or(std::vector<std::string>{})) {
    if (util::glob_match(pattern, name)) out.push_back(name);
  }
  std::ranges::sort(out, is_newer);
  return out;
}

std::vector<std::string> site_packages_of(const std::string& root) {
  constexpr std::string_view kPythons = "python3*";
  const std::string lib = base::join_path(root, "lib");
  std::vector<std::string> pythons = newest_first(lib, kPythons);
  if (pythons.empty()) pythons.emplace_back(kPythons);
  for (std::string& python : pythons) {
    python = base::join_path(base::join_path(lib, python), "site-packages");
  }
  return pythons;
}

std::string private_environment(const SearchVariables& variables) {
  return base::join_path(base::parent_path(variables.program_folder), "venv");
}

std::optional<IdentityFile> remembered(const Component& component, const KnownDigest& known) {
  if (!known) return std::nullopt;
  const auto tuple = base::stat_tuple(component.path);
  if (!tuple) return std::nullopt;
  const auto digest = known(component.path, *tuple);
  if (!digest) return std::nullopt;
  return IdentityFile{component.role, component.path, *tuple, *digest};
}

base::Result<std::vector<IdentityFile>> identify(const std::vector<Component>& components,
                                                 const KnownDigest& known, const Inspect& inspect) {
  std::vector<IdentityFile> out(components.size());
  // An unchanged build knows them all, and then not even a thread is started.
  std::vector<size_t> unknown;
  for (size_t i = 0; i < components.size(); ++i) {
    if (auto file = remembered(components[i], known)) {
      out[i] = std::move(*file);
    } else {
      unknown.push_back(i);
    }
  }
  std::vector<std::optional<base::Error>> errors(unknown.size());
  base::parallel_for(unknown.size(), kHashThreads, [&](size_t i) {
    auto file = identify_one(components[unknown[i]], inspect);
    if (file) {
      out[unknown[i]] = std::move(*file);
    } else {
      errors[i] = std::move(file).error();
    }
  });
  for (auto& error : errors) {
    if (error) return std::unexpected(std::move(*error));
  }
  return out;
}

base::Result<Compiler> take_first(const std::vector<Place>& places, const Search& search,
                                  std::vector<SearchStep>& steps) {
  for (const Place& place : places) {
    const std::string path = place.is_named ? search.file_of(place) : place.path;
    auto reason = search.why_unusable(path);
    std::string hint;
    if (!reason) {
      auto compiler = search.identify(path);
      if (compiler) {
        steps.push_back({place.where, "found"});
        return compiler;
      }
      hint = compiler.error().hint;
      reason = hint.empty() ? compiler.error().text() : compiler.error().message;
    }
    steps.push_back({place.where, *reason});
    if (place.is_named) {
      return base::fail(base::ErrorKind::kEnvironment,
                        util::format("{}: {}", util::escape(place.where), util::escape(*reason)),
                        hint.empty() ? std::string(search.named_hint) : hint);
    }
  }
  return base::fail(base::ErrorKind::kEnvironment,
                    util::format("no {} found; looked in: {}", search.what, listed(steps)),
                    std::string(search.install_hint));
}

std::string listed(const std::vector<SearchStep>& steps) {
  std::string out;
  for (const SearchStep& step : steps) {
    if (!out.empty()) out += "; ";
    out += util::format("{} ({})", util::escape(step.where), util::escape(step.outcome));
  }
  return out;
}

}  // namespace kc::backend
