#include "build/store_holder.h"

#include <utility>

#include "base/atomic_file.h"
#include "base/files.h"

namespace kc::build {

using base::ErrorKind;
using base::Result;

StoreHolder::~StoreHolder() {
  store_.reset();
  if (!temporary_.empty()) static_cast<void>(base::remove_tree(temporary_));
}

Result<void> StoreHolder::open() {
  if (choice_.mode == store::Mode::kOff) return {};
  if (choice_.directory.empty()) return open_without("neither HOME nor XDG_CACHE_HOME is set");
  auto opened = store::Store::open(store_options(choice_));
  if (opened) {
    store_ = std::move(*opened);
    return {};
  }
  // A refusal for safety is the user's to decide; what merely does not work never fails a build.
  if (choice_.strict || opened.error().sys_errno == 0) return std::unexpected(opened.error());
  return open_without(opened.error().message);
}

// Without the store that was chosen. What is under it is looked into all the same; in read-only mode nothing
// is made for this build either.
Result<void> StoreHolder::open_without(const std::string& why) {
  const bool writes = choice_.mode != store::Mode::kReadOnly;
  store::Options options{{}, choice_.mode, 0, choice_.read_only_directories};
  std::string what = why + "; this build keeps nothing";
  if (writes) options.directory = base::join_path(choice_.temporary_folder, base::unique_name("kc-store-"));
  auto opened = store::Store::open(options);
  if (opened && writes) {
    temporary_ = options.directory;
    what = why + "; a temporary store serves this build alone";
  }
  if (opened) store_ = std::move(*opened);
  listener_.warning(
      {ErrorKind::kEnvironment, what, {}, "set KC_STORE_DIR or --store to a folder of your own"});
  return {};
}

}  // namespace kc::build
