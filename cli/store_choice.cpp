#include "cli/store_choice.h"

#include "base/files.h"

namespace kc::cli {
store::Mode parse_mode(std::string_view text) {
  if (text == "ro") return store::Mode::kReadOnly;
  if (text == "off") return store::Mode::kOff;
  if (text == "refresh") return store::Mode::kRefresh;
  return store::Mode::kReadWrite;
}

build::StoreChoice choose_store(const Common& common, const StoreArguments& arguments) {
  const config::Environment& environment = common.environment;
  const std::string directory = config::store_directory(arguments.directory, environment);
  build::StoreChoice choice;
  if (!directory.empty()) choice.directory = base::absolute_path(directory).value_or(directory);
  choice.read_only_directories = environment.store_read_only_dirs.value_or(std::vector<std::string>{});
  choice.mode = arguments.mode.value_or(environment.store_mode ? parse_mode(*environment.store_mode)
                                                               : store::Mode::kReadWrite);
  choice.limit_bytes = environment.store_limit.value_or(config::kDefaultStoreLimit);
  choice.strict = arguments.strict;
  choice.temporary_folder = config::temporary_folder(environment);
  return choice;
}

base::Result<std::string> store_folder(const Common& common, const StoreArguments& arguments) {
  std::string folder = choose_store(common, arguments).directory;
  if (!folder.empty()) return folder;
  return base::fail(base::ErrorKind::kEnvironment, "no store: neither HOME nor XDG_CACHE_HOME is set",
                    "name one with --store or KC_STORE_DIR");
}

}  // namespace kc::cli
