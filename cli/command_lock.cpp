// kc lock: which compilers the manifest's units are built with, for whoever must have the same, or has none.
#include "build/lock.h"

#include "cli/build_options.h"
#include "cli/build_text.h"
#include "cli/command.h"
#include "cli/console.h"
#include "util/text.h"

namespace kc::cli {
namespace {

using build::LockOutcome;

// As much of a digest as tells two compilers apart at a glance.
constexpr size_t kShortDigits = 12;

std::string_view state_of(const LockOutcome::Compiler& compiler) {
  if (compiler.is_new) return "new";
  return compiler.change.empty() ? "same" : "changed";
}

std::string_view state_of(LockOutcome::File file) {
  switch (file) {
    case LockOutcome::File::kWritten:
      return "written";
    case LockOutcome::File::kUnchanged:
      return "unchanged";
    case LockOutcome::File::kOutdated:
      break;
  }
  return "outdated";
}

void tell_json(const LockOutcome& outcome, Console& console) {
  for (const LockOutcome::Compiler& compiler : outcome.compilers) {
    util::Json files = util::Json::array();
    for (const auto& file : compiler.locked.files) {
      files.push_back({{"role", file.role}, {"digest", file.digest.hex()}});
    }
    const std::string& version = compiler.locked.version;
    console.json({{"event", "compiler"},
                  {"backend", compiler.locked.backend},
                  {"identity", compiler.locked.identity.hex()},
                  {"compiler_version", version.empty() ? util::Json() : util::Json(version)},
                  {"state", state_of(compiler)},
                  {"files", std::move(files)}});
  }
  console.json({{"event", "summary"}, {"path", outcome.path}, {"state", state_of(outcome.file)}});
}

void tell_text(const LockOutcome& outcome, Console& console) {
  for (const LockOutcome::Compiler& compiler : outcome.compilers) {
    const std::string& version = compiler.locked.version;
    std::string line = util::format("{}  {}", compiler.locked.identity.hex().substr(0, kShortDigits),
                                    compiler.locked.backend);
    if (!version.empty()) line += " " + util::escape(version);
    if (compiler.is_new) line += " (new)";
    if (!compiler.change.empty()) line += util::format(" (changed: {})", compiler.change);
    console.result(line);
  }
  const std::string path = util::escape(outcome.path);
  switch (outcome.file) {
    case LockOutcome::File::kWritten:
      console.result(util::format("kc: wrote {}", path));
      break;
    case LockOutcome::File::kUnchanged:
      console.result(util::format("kc: {} is up to date", path));
      break;
    case LockOutcome::File::kOutdated:
      break;
  }
}

}  // namespace

int command_lock(const Common& common, const LockArguments& arguments, Console& console) {
  BuildArguments asked;
  asked.manifest = arguments.manifest;
  const auto options = build_options(common, asked);
  if (!options) return console.fail(options.error());
  BuildText text(console, {});
  const auto outcome = build::lock_compilers(*options, arguments.check, text);
  if (!outcome) return static_cast<int>(outcome.error());
  if (console.is_json()) {
    tell_json(*outcome, console);
  } else {
    tell_text(*outcome, console);
  }
  if (outcome->file != LockOutcome::File::kOutdated) return 0;
  return console.fail({base::ErrorKind::kFailed,
                       "does not name the compilers that are found here",
                       {outcome->path},
                       "`kc lock` records them"});
}

}  // namespace kc::cli
