#include "report/json_lines.h"

namespace kc::report {
namespace {

using util::Json;

std::string_view state_name(build::UnitState state) {
  switch (state) {
    case build::UnitState::kHit:
      return "hit";
    case build::UnitState::kCompiled:
      return "compiled";
    case build::UnitState::kFailed:
      return "failed";
    case build::UnitState::kNotTried:
      return "not_tried";
    case build::UnitState::kPending:
      return "miss";
  }
  return "failed";
}

std::string_view state_name(build::OutputState state) {
  switch (state) {
    case build::OutputState::kNone:
      return "none";
    case build::OutputState::kWritten:
      return "written";
    case build::OutputState::kUnchanged:
      return "unchanged";
  }
  return "none";
}

Json diagnostics_json(const std::vector<artifact::Diagnostic>& diagnostics) {
  Json out = Json::array();
  for (const artifact::Diagnostic& diagnostic : diagnostics) {
    out.push_back({{"severity", artifact::severity_name(diagnostic.severity)},
                   {"code", diagnostic.code},
                   {"message", diagnostic.message},
                   {"file", diagnostic.file},
                   {"line", diagnostic.line},
                   {"column", diagnostic.column}});
  }
  return out;
}

Json pairs_json(const manifest::Pairs& pairs) {
  Json out = Json::object();
  for (const auto& [name, value] : pairs) out[name] = value;
  return out;
}

}  // namespace

Json facts_json(const artifact::KernelFacts& facts) {
  Json arguments = Json::array();
  for (const artifact::Argument& argument : facts.arguments) {
    arguments.push_back({{"offset", argument.offset}, {"size", argument.size}});
  }
  return {{"symbol", facts.symbol},
          {"registers", facts.registers},
          {"local_memory", facts.local_memory},
          {"spills", facts.spills ? Json(*facts.spills) : Json(nullptr)},
          {"shared_memory", facts.shared_memory},
          {"argument_bytes", facts.argument_bytes},
          {"arguments", std::move(arguments)},
          {"required_block", facts.required_block},
          {"max_threads", facts.max_threads},
          {"wave_size", facts.wave_size}};
}

void JsonLines::unit(const manifest::Plan& plan, const manifest::Unit& unit,
                     const build::UnitResult& result) {
  Json out{{"event", "unit"},
           {"unit", unit.name},
           {"kernel", plan.kernels[unit.kernel].name},
           {"target", unit.target.text},
           {"config", pairs_json(unit.specialization)}};
  if (kind_ == Kind::kPlan) {
    Json sources = Json::array();
    for (const uint32_t source : unit.sources) sources.push_back(plan.sources[source].identifier);
    out["sources"] = std::move(sources);
  }
  out["request_key"] = nullptr;  // units with one key have none
  out["key"] = result.key.hex();
  out["state"] = state_name(result.state);
  if (kind_ == Kind::kBuild) {
    const bool has_code =
        result.state == build::UnitState::kHit || result.state == build::UnitState::kCompiled;
    out["seconds"] = result.seconds;
    out["peak_bytes"] = result.peak_bytes;
    out["code_bytes"] = result.code_bytes;
    out["facts"] = has_code ? facts_json(result.facts) : Json::object();
    out["diagnostics"] = diagnostics_json(result.diagnostics);
    if (result.state == build::UnitState::kFailed) out["error"] = result.error.text();
  }
  sink_(out);
  rest_.unit(plan, unit, result);
}

void JsonLines::summary(const build::Summary& summary) {
  if (kind_ == Kind::kPlan) {
    sink_({{"event", "summary"},
           {"units", summary.units},
           {"hits", summary.hits},
           {"misses", summary.units - summary.hits}});
  } else {
    sink_({{"event", "summary"},
           {"units", summary.units},
           {"hits", summary.hits},
           {"compiled", summary.compiled},
           {"failed", summary.failed},
           {"skipped", 0},
           {"not_tried", summary.not_tried},
           {"warnings", summary.warnings},
           {"seconds", summary.seconds},
           {"output", summary.output.empty() ? Json(nullptr) : Json(summary.output)},
           {"output_state", state_name(summary.output_state)}});
  }
  rest_.summary(summary);
}

}  // namespace kc::report
