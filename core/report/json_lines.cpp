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
    case build::UnitState::kSkipped:
      return "skipped";
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

Json number_or_null(const std::optional<double>& number) {
  return number ? Json(*number) : Json(nullptr);
}

// Of each part that came from elsewhere who signed it, null for nobody.
Json signers_json(const std::vector<std::string>& signers) {
  Json out = Json::array();
  for (const std::string& signer : signers) out.push_back(signer.empty() ? Json(nullptr) : Json(signer));
  return out;
}

// What is new against the last build, of a unit that was compiled.
Json changes_json(const build::UnitResult& result) {
  Json out = Json::array();
  if (result.state != build::UnitState::kCompiled || !result.last) return out;
  for (const artifact::Change& change :
       artifact::changes(*result.last, artifact::numbers_of(result.facts, result.code_bytes))) {
    out.push_back({{"metric", artifact::metric_name(change.metric)},
                   {"before", change.before},
                   {"after", change.after}});
  }
  return out;
}

}  // namespace

Json digest_or_null(const std::optional<base::Digest>& digest) {
  return digest ? Json(digest->hex()) : Json(nullptr);
}

// Appended: an object of util::Json is a list, which a setter would look through for each pair.
Json pairs_json(const std::vector<std::pair<std::string, std::string>>& pairs) {
  Json::object_t out;
  out.reserve(pairs.size());
  for (const auto& [name, value] : pairs) out.emplace_back(name, value);
  return Json(std::move(out));
}

Json facts_json(const artifact::KernelFacts& facts) {
  Json arguments = Json::array();
  for (const artifact::Argument& argument : facts.arguments) {
    arguments.push_back({{"offset", argument.offset}, {"size", argument.size}});
  }
  return {{"symbol", facts.symbol},
          {"registers", facts.registers},
          {"scalar_registers", facts.scalar_registers ? Json(*facts.scalar_registers) : Json(nullptr)},
          {"local_memory", facts.local_memory},
          {"spills", facts.spills ? Json(*facts.spills) : Json(nullptr)},
          {"shared_memory", facts.shared_memory},
          {"argument_bytes", facts.argument_bytes},
          {"arguments", std::move(arguments)},
          {"required_block", facts.required_block},
          {"max_threads", facts.max_threads},
          {"wave_size", facts.wave_size}};
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

void JsonLines::unit(const manifest::Plan& plan, const manifest::Unit& unit,
                     const build::UnitResult& result) {
  if (kind_ == Kind::kPlanSummary) return rest_.unit(plan, unit, result);
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
  out["request_key"] = digest_or_null(result.request_key);
  out["key"] = digest_or_null(result.key);
  out["state"] = state_name(result.state);
  if (kind_ == Kind::kPlan) out["expected_seconds"] = number_or_null(result.expected_seconds);
  if (kind_ == Kind::kBuild) {
    const bool has_code =
        result.state == build::UnitState::kHit || result.state == build::UnitState::kCompiled;
    out["seconds"] = result.seconds;
    out["peak_bytes"] = result.peak_bytes;
    out["code_bytes"] = result.code_bytes;
    out["facts"] = has_code ? facts_json(result.facts) : Json::object();
    out["changes"] = changes_json(result);
    out["diagnostics"] = diagnostics_json(result.diagnostics);
    out["signers"] = signers_json(result.signers);
  }
  // A plan does not read the answers that it finds in the store.
  const bool has_error = result.state == build::UnitState::kFailed ||
                         (result.state == build::UnitState::kSkipped && kind_ == Kind::kBuild);
  if (has_error) out["error"] = result.error.text();
  sink_(out);
  rest_.unit(plan, unit, result);
}

void JsonLines::plan_summary(const build::Summary& summary) {
  if (kind_ == Kind::kPlanSummary) {
    for (const build::KernelSummary& kernel : summary.kernels) {
      sink_({{"event", "kernel"},
             {"kernel", kernel.name},
             {"units", kernel.units},
             {"hits", kernel.hits},
             {"misses", kernel.misses()},
             {"skipped", kernel.skipped},
             {"failed", kernel.failed},
             {"targets", kernel.targets},
             {"expected_seconds", number_or_null(kernel.expected_seconds)}});
    }
  }
  sink_({{"event", "summary"},
         {"units", summary.units},
         {"hits", summary.hits},
         {"misses", summary.units - summary.hits - summary.skipped - summary.failed},
         {"skipped", summary.skipped},
         {"failed", summary.failed},
         {"expected_seconds", number_or_null(summary.expected_seconds)}});
}

void JsonLines::summary(const build::Summary& summary) {
  if (kind_ != Kind::kBuild) {
    plan_summary(summary);
  } else {
    sink_({{"event", "summary"},
           {"units", summary.units},
           {"hits", summary.hits},
           {"compiled", summary.compiled},
           {"failed", summary.failed},
           {"skipped", summary.skipped},
           {"not_tried", summary.not_tried},
           {"warnings", summary.warnings},
           {"seconds", summary.seconds},
           {"pack_seconds", summary.pack_seconds},
           {"output", summary.output.empty() ? Json(nullptr) : Json(summary.output)},
           {"output_state", state_name(summary.output_state)}});
  }
  rest_.summary(summary);
}

}  // namespace kc::report
