#include "cli/build_run.h"

#include "build/build.h"
#include "report/json_lines.h"
#include "util/signals.h"

namespace kc::cli {

int run_build(const build::Options& options, Console& console, BuildText::What what) {
  util::SignalWatch signals;
  using Kind = report::JsonLines::Kind;
  const Kind kind = !what.is_plan ? Kind::kBuild : what.is_plan_summary ? Kind::kPlanSummary : Kind::kPlan;
  what.results = !console.is_json();
  BuildText text(console, what);
  report::JsonLines json(
      kind, [&](const util::Json& object) { console.json(object); }, text);
  build::Listener& listener = console.is_json() ? static_cast<build::Listener&>(json) : text;
  const int code = what.is_plan ? build::plan(options, listener) : build::build(options, listener, signals);
  if (const auto signal = signals.pending()) return 128 + *signal;
  return code;
}

}  // namespace kc::cli
