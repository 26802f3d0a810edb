#include "cli/build_options.h"

#include "base/files.h"
#include "cli/key_choice.h"
#include "cli/store_choice.h"
#include "util/process.h"

namespace kc::cli {

base::Result<build::Options> build_options(const Common& common, const BuildArguments& arguments) {
  const config::Environment& environment = common.environment;
  build::Options options;
  options.manifest = arguments.manifest;
  options.output = arguments.output;
  options.units = arguments.units;
  options.targets = arguments.targets;
  options.jobs = arguments.jobs ? arguments.jobs : environment.jobs;
  options.keep_going = arguments.keep_going ? arguments.keep_going : environment.keep_going;
  options.timeout = arguments.timeout ? arguments.timeout : environment.timeout;
  options.level = arguments.level ? arguments.level : environment.level;
  options.frame_size = arguments.frame_size ? arguments.frame_size : environment.frame_size;
  options.release = arguments.release;
  options.lock_timeout = arguments.lock_timeout;
  options.dry_run = arguments.dry_run;
  options.require_cached = arguments.require_cached;
  options.allow_partial = arguments.allow_partial;
  options.locked = arguments.locked;
  options.identity_from = arguments.identity_from;
  options.sign = arguments.sign;
  options.passphrase = environment.key_passphrase;
  if (options.sign) {
    KC_ASSIGN(options.trust, choose_trust(common, arguments.keys));
  }
  const config::UserSettings& user = common.settings;
  options.defaults = {user.keep_going, user.timeout, user.level, user.frame_size};
  options.store = choose_store(common, arguments.store);
  KC_ASSIGN(options.program, util::self_path());
  options.search = {environment.tileiras,
                    environment.cutile_tileiras_path,
                    environment.virtual_env,
                    environment.path,
                    environment.cuda_home,
                    environment.loom_library,
                    environment.hrx_loom_library,
                    environment.library_path,
                    base::parent_path(options.program)};
  return options;
}

}  // namespace kc::cli
