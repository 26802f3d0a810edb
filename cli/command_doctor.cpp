// kc doctor: what kc finds on this machine and where it has looked. Nothing is changed.
#include <algorithm>
#include <filesystem>
#include <kc/loader.hpp>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "base/atomic_file.h"
#include "base/files.h"
#include "cli/build_options.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/loader_devices.h"
#include "cli/store_choice.h"
#include "engine/supervisor.h"
#include "store/stats.h"
#include "util/limits.h"
#include "util/text.h"

namespace kc::cli {
namespace {

using base::Error;
using base::ErrorKind;
using base::Result;

bool others_can_read(const std::string& folder) {
  using std::filesystem::perms;
  std::error_code missing;
  const auto status = std::filesystem::status(folder, missing);
  if (missing || status.type() != std::filesystem::file_type::directory) return false;
  return (status.permissions() & (perms::group_read | perms::others_read)) != perms::none;
}

class Doctor {
 public:
  Doctor(build::Options options, Console& console) : options_(std::move(options)), console_(console) {}

  /// Whether kc can work here at all: without compilers and devices it can.
  bool run(const Result<std::string>& store) {
    engine();
    for (const backend::Description& backend : backend::descriptions()) {
      if (backend.available) compiler(backend.name);
    }
    this->store(store);
    limits();
    devices(KC_CUDA, "cuda");
    devices(KC_HIP, "hip");
    return is_well_;
  }

 private:
  void line(std::string_view label, std::string_view text) {
    if (!console_.is_json()) console_.result(util::format("{:<10} {}", label, text));
  }
  void event(const util::Json& event) {
    if (console_.is_json()) console_.json(event);
  }
  // What keeps kc from working.
  void fault(const Error& error) {
    is_well_ = false;
    console_.error(error);
  }

  void engine() {
    const std::string path = engine::engine_path(options_.program);
    const Result<void> started = start_engine(path);
    line("kc-engine", started ? util::format("{}, starts", util::escape(path))
                              : util::format("{}, does not start", util::escape(path)));
    event({{"event", "engine"}, {"path", path}, {"ok", started.has_value()}});
    if (!started) fault(started.error());
  }

  Result<void> start_engine(const std::string& path) const {
    engine::EngineSpec spec;
    spec.program = path;
    spec.setup.store_mode = store::Mode::kOff;
    spec.setup.work_folder =
        base::join_path(options_.store.temporary_folder, base::unique_name("kc-doctor-"));
    KC_TRY(base::make_directories(spec.setup.work_folder, 0700));
    KC_TRY(engine::Supervisor::start(spec));
    return {};
  }

  void compiler(const std::string& name) {
    std::vector<backend::SearchStep> steps;
    const auto found = backend::find_compiler(name, options_.search, {}, &steps);
    line(name,
         found ? util::format("{}, identity {}", util::escape(found->program), found->identity.hex())
               : util::format("not found{}{}", found.error().hint.empty() ? "" : ": ", found.error().hint));
    util::Json searched = util::Json::array();
    for (const backend::SearchStep& step : steps) {
      line("", util::format("{}: {}", util::escape(step.where), util::escape(step.outcome)));
      searched.push_back({{"where", step.where}, {"outcome", step.outcome}});
    }
    event({{"event", "compiler"},
           {"backend", name},
           {"program", found ? util::Json(found->program) : util::Json()},
           {"identity", found ? util::Json(found->identity.hex()) : util::Json()},
           {"hint", found || found.error().hint.empty() ? util::Json() : util::Json(found.error().hint)},
           {"searched", std::move(searched)}});
  }

  void store(const Result<std::string>& folder) {
    if (!folder) {
      line("store", "none is named: each build has one of its own");
      event({{"event", "store"}, {"path", nullptr}});
      console_.warning(folder.error());
      return;
    }
    const auto stats = store::stats(*folder);
    if (!stats) {
      line("store", util::format("{}, cannot be used", util::escape(*folder)));
      event({{"event", "store"}, {"path", *folder}, {"ok", false}});
      return fault(stats.error());
    }
    const uint64_t limit = options_.store.limit_bytes;
    line("store", util::format("{}, {} in {}, {}{}", util::escape(*folder), util::size_text(stats->bytes),
                               util::counted(stats->entries, "entry", "entries"),
                               limit == 0 ? "no limit" : "at most " + util::size_text(limit),
                               stats->has_locks == false ? "; no locks: builds may compile twice" : ""));
    const bool is_readable_by_others = others_can_read(*folder);
    if (is_readable_by_others) {
      line("",
           util::format("others can read it: `chmod 700 {}` where that is not meant", util::escape(*folder)));
    }
    event({{"event", "store"},
           {"path", *folder},
           {"ok", true},
           {"readable_by_others", is_readable_by_others},
           {"entries", stats->entries},
           {"bytes", stats->bytes},
           {"limit", limit},
           {"locks", stats->has_locks ? util::Json(*stats->has_locks) : util::Json()}});
  }

  void limits() {
    const unsigned cpus = util::allowed_cpus();
    const uint64_t memory = util::available_memory();
    const uint64_t files = util::open_files_limit();
    const auto processes = util::processes_left();
    line("limits", util::format("{}, {} of memory, {} open files, {}", util::counted(cpus, "CPU"),
                                util::size_text(memory), files,
                                processes ? util::format("{} more processes", *processes)
                                          : std::string("any number of processes")));
    event({{"event", "limits"},
           {"cpus", cpus},
           {"memory", memory},
           {"open_files", files},
           {"processes_left", processes ? util::Json(*processes) : util::Json()}});
  }

  void devices(kc_api api, const char* name) {
    kcload::Error error;
    const std::vector<kcload::Device> found = kcload::Device::all(api, error);
    const std::string problem = error ? error.what() : found.empty() ? "its driver has no device" : "";
    // The text has a line for each place that was looked at.
    std::string_view rest = problem;
    for (std::string_view label = name; !rest.empty(); label = "") {
      const std::string_view one = rest.substr(0, rest.find('\n'));
      line(label, util::escape(one));
      rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    }
    event({{"event", "driver"},
           {"api", name},
           {"devices", found.size()},
           {"message", problem.empty() ? util::Json() : util::Json(problem)}});
    for (const kcload::Device& device : found) {
      const kc_device_info& info = device.info();
      line(name_of(device), util::format("{}, {}, {}, {}, {}", util::escape(info.name),
                                         util::escape(info.target), util::size_text(info.memory),
                                         util::escape(info.driver_text), util::escape(info.library)));
      event(device_json(device));
    }
  }

  const build::Options options_;
  Console& console_;
  bool is_well_ = true;
};

}  // namespace

int command_doctor(const Common& common, const StoreArguments& arguments, Console& console) {
  BuildArguments build;
  build.store = arguments;
  auto options = build_options(common, build);
  if (!options) return console.fail(options.error());
  const bool is_well = Doctor(std::move(*options), console).run(store_folder(common, arguments));
  return is_well ? 0 : static_cast<int>(ErrorKind::kEnvironment);
}

}  // namespace kc::cli
