// What the searches for compilers share: places, names by version, and files by content.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "base/error.h"

namespace kc::backend {

/// A place that might hold a compiler.
struct Place {
  std::string where;      // for people
  std::string path;       // of the file that is looked for
  bool is_named = false;  // a variable names the compiler itself: take it or fail
};

/// A file of an installation by the part it plays, path resolved.
struct Component {
  std::string role;
  std::string path;

  bool operator==(const Component&) const = default;
};

/// A variable that is set but empty counts as not set.
bool is_set(const std::optional<std::string>& variable);

/// Absolute, without symbolic links; nothing, with errno, when there is no such file.
std::optional<std::string> resolve(const std::string& path);
bool is_regular(const std::string& path);
bool is_directory(const std::string& path);

/// Names in `folder` that match `pattern`, newest version first: numbers in names compare as numbers. Empty
/// for a folder that cannot be read.
std::vector<std::string> newest_first(const std::string& folder, std::string_view pattern);

/// `root`/lib/python3*/site-packages of a virtual environment, newest Python first; when there is none, the
/// pattern itself, so that a search can say where it looked.
std::vector<std::string> site_packages_of(const std::string& root);
/// Where bootstrap makes kc's own virtual environment.
std::string private_environment(const SearchVariables& variables);

/// Looked at while a file is open, before it is hashed: why it cannot be what it is taken for.
using Inspect = std::function<base::Result<void>(const Component& component, int fd)>;

/// Digests of all files, in the order given, in parallel; those whose digest `known` gives are not opened. A
/// file that changes while it is read is an error. ErrorKind::kEnvironment.
base::Result<std::vector<IdentityFile>> identify(const std::vector<Component>& components,
                                                 const KnownDigest& known, const Inspect& inspect);
/// Nothing when `known` is empty or does not know it.
std::optional<IdentityFile> remembered(const Component& component, const KnownDigest& known);

/// How the search for one compiler goes on at each place.
struct Search {
  std::string_view what;          // `tileiras`, `Loom library`: what is not found
  std::string_view named_hint;    // for a variable that names something else
  std::string_view install_hint;  // when there is none at all
  /// The file itself, where a variable names the folder that holds it.
  std::function<std::string(const Place& place)> file_of;
  std::function<std::optional<std::string>(const std::string& path)> why_unusable;
  std::function<base::Result<Compiler>(const std::string& path)> identify;
};

/// The first of `places` that is usable. One that a variable names is obeyed or an error, never passed over;
/// every place is a step, behind those that `steps` has. ErrorKind::kEnvironment.
base::Result<Compiler> take_first(const std::vector<Place>& places, const Search& search,
                                  std::vector<SearchStep>& steps);

/// `where (outcome); where (outcome)`, safe to print.
std::string listed(const std::vector<SearchStep>& steps);

}  // namespace kc::backend
