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
  if (choice_.directory.empty()) return open_temporary("neither HOME nor XDG_CACHE_HOME is set");
  store::Options options{choice_.directory, choice_.mode, choice_.limit_bytes};
  auto opened = store::Store::open(options);
  if (opened) {
    store_ = std::move(*opened);
    return {};
  }
  // A refusal for safety is the user's to decide; what merely does not work never fails a build.
  if (choice_.strict || opened.error().sys_errno == 0) return std::unexpected(opened.error());
  return open_temporary(opened.error().message);
}

Result<void> StoreHolder::open_temporary(const std::string& why) {
  const std::string folder = base::join_path(choice_.temporary_folder, base::unique_name("kc-store-"));
  store::Options options{folder, store::Mode::kReadWrite, 0};
  auto opened = store::Store::open(options);
  std::string what = why + "; a temporary store serves this build alone";
  if (opened) {
    temporary_ = folder;
    store_ = std::move(*opened);
  } else {
    what = why + "; this build keeps nothing";
  }
  listener_.warning(
      {ErrorKind::kEnvironment, what, {}, "set KC_STORE_DIR or --store to a folder of your own"});
  return {};
}

}  // namespace kc::build
