#include "cli/needed_keys.h"

#include <memory>
#include <utility>

#include "bundle/bundle.h"
#include "cli/build_options.h"
#include "cli/build_text.h"
#include "cli/console.h"
#include "cli/store_choice.h"

namespace kc::cli {
namespace {

using base::ErrorKind;
using base::Result;

// What the store knows of the keys; null when it is not there yet.
Result<std::unique_ptr<store::Store>> open_to_look(const std::string& folder) {
  store::Options options;
  options.directory = folder;
  options.mode = store::Mode::kReadOnly;
  return store::Store::open(options);
}

}  // namespace

std::expected<build::Needed, int> needed_keys(const Common& common, const StoreArguments& store,
                                              const std::string& file,
                                              const std::vector<std::string>& targets, Console& console) {
  const auto folder = store_folder(common, store);
  if (!folder) return std::unexpected(console.fail(folder.error()));
  if (bundle::looks_like_bundle(file)) {
    if (!targets.empty()) {
      return std::unexpected(console.fail({ErrorKind::kInput,
                                           "--target chooses among the units of a manifest",
                                           {file},
                                           "leave it out: of a bundle all units are meant"}));
    }
    auto needed = build::needed_by_bundle(file, *folder);
    if (!needed) return std::unexpected(console.fail(needed.error()));
    return std::move(*needed);
  }
  BuildArguments arguments;
  arguments.manifest = file;
  arguments.targets = targets;
  arguments.store = store;
  const auto options = build_options(common, arguments);
  if (!options) return std::unexpected(console.fail(options.error()));
  const auto opened = open_to_look(*folder);
  if (!opened) return std::unexpected(console.fail(opened.error()));
  BuildText listener(console, {.results = false});
  auto needed = build::needed_by_manifest(*options, opened->get(), listener);
  if (!needed) return std::unexpected(static_cast<int>(needed.error()));
  return std::move(*needed);
}

}  // namespace kc::cli
