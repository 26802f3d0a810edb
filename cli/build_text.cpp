#include "cli/build_text.h"

#include <cmath>

#include "util/text.h"

namespace kc::cli {
namespace {

using build::UnitState;

const artifact::Diagnostic* first_error(const std::vector<artifact::Diagnostic>& diagnostics) {
  for (const artifact::Diagnostic& diagnostic : diagnostics) {
    if (diagnostic.severity == artifact::Severity::kError) return &diagnostic;
  }
  return nullptr;
}

std::string diagnostic_text(const artifact::Diagnostic& diagnostic) {
  const base::Place place{diagnostic.file, diagnostic.line, diagnostic.column};
  std::string out = place.text();
  if (!out.empty()) out += ": ";
  out += artifact::severity_name(diagnostic.severity);
  if (!diagnostic.code.empty()) out += " " + diagnostic.code;
  return out + ": " + diagnostic.message;
}

std::string facts_text(const build::UnitResult& result) {
  return util::format("{} registers, {} B local, {} shared, code {}", result.facts.registers,
                      result.facts.local_memory, util::size_text(result.facts.shared_memory),
                      util::size_text(result.code_bytes));
}

}  // namespace

void BuildText::progress(const build::Progress& p) {
  // What matters most comes first: a narrow terminal loses the end.
  std::vector<std::string> parts{util::format("[{}/{}]", p.done, p.units)};
  if (p.failed != 0) parts.push_back(util::format("{} failed", p.failed));
  parts.push_back(util::format("{} running", p.running));
  if (p.hits != 0) parts.push_back(util::counted(p.hits, "hit"));
  if (p.seconds_left && *p.seconds_left >= 1) {
    parts.push_back(util::format("about {} left", util::duration_text(std::round(*p.seconds_left))));
  }
  console_.status(parts);
}

void BuildText::failed(const manifest::Plan& /*plan*/, const manifest::Unit& unit,
                       const build::UnitResult& result) {
  base::Error error = result.error;
  error.message = unit.name + ": " + error.message;
  const artifact::Diagnostic* first = first_error(result.diagnostics);
  console_.error(error);
  // The message may be the first error already; its place is then all that there is to add.
  const bool is_new = first != nullptr && (!first->file.empty() || !error.message.ends_with(first->message));
  if (is_new) console_.block(diagnostic_text(*first));
  size_t others = 0;
  for (const artifact::Diagnostic& diagnostic : result.diagnostics) {
    if (&diagnostic == first) continue;
    if (console_.verbosity() > 0) {
      console_.block(diagnostic_text(diagnostic));
    } else if (diagnostic.severity == artifact::Severity::kError) {
      ++others;
    }
  }
  if (first == nullptr || console_.verbosity() > 0) {
    if (!result.output.empty()) console_.block(result.output);
  }
  if (others != 0)
    console_.block(util::format("and {} (-v shows all)", util::counted(others, "more error", "more errors")));
}

void BuildText::list(const manifest::Unit& unit, const build::UnitResult& result) {
  const std::string key = result.key.hex().substr(0, 16);
  switch (result.state) {
    case UnitState::kPending:
      if (!result.error.message.empty()) {
        console_.result(util::format("fail  {}  {}  {}", key, unit.name, util::escape(result.error.message)));
      } else {
        console_.result(util::format("miss  {}  {}", key, unit.name));
      }
      break;
    case UnitState::kHit:
      if (what_.is_dry_run) break;
      console_.result(what_.is_plan ? util::format("hit   {}  {}", key, unit.name)
                                    : util::format("{}: {} (hit)", unit.name, facts_text(result)));
      break;
    case UnitState::kCompiled:
      console_.result(util::format("{}: {} (compiled in {})", unit.name, facts_text(result),
                                   util::duration_text(result.seconds)));
      break;
    case UnitState::kFailed:
    case UnitState::kNotTried:
      break;
  }
}

void BuildText::unit(const manifest::Plan& /*plan*/, const manifest::Unit& unit,
                     const build::UnitResult& result) {
  if (result.state == UnitState::kFailed) {
    ++failed_;
    if (failures_.size() < kRepeated) {
      failures_.push_back(
          result.output_path.empty() ? unit.name : util::format("{}  ({})", unit.name, result.output_path));
    }
  }
  if (!what_.results) return;
  if (what_.list_units || console_.verbosity() > 0) list(unit, result);
  if (result.state != UnitState::kHit && result.state != UnitState::kCompiled) return;
  for (const artifact::Diagnostic& diagnostic : result.diagnostics) {
    if (diagnostic.severity != artifact::Severity::kWarning) continue;
    console_.warning({base::ErrorKind::kFailed,
                      unit.name + ": " + diagnostic.message,
                      {diagnostic.file, diagnostic.line, diagnostic.column},
                      {}});
  }
}

void BuildText::repeat_failures() {
  if (failures_.empty()) return;
  console_.note(util::format("failed: {}", util::counted(failed_, "unit")));
  for (const std::string& name : failures_) console_.block(name);
  if (failed_ > failures_.size()) console_.block(util::format("and {} more", failed_ - failures_.size()));
}

void BuildText::summary(const build::Summary& s) {
  repeat_failures();
  if (!what_.results || console_.verbosity() < 0) return;
  if (what_.is_plan) {
    console_.result(util::format("kc: {}, {}, {}", util::counted(s.units, "unit"),
                                 util::counted(s.hits, "hit"),
                                 util::counted(s.units - s.hits, "miss", "misses")));
    return;
  }
  if (what_.is_dry_run) {
    console_.result(
        util::format("kc: {} of {} would be compiled", s.not_tried, util::counted(s.units, "unit")));
    return;
  }
  const std::string output = util::escape(s.output);
  if (s.nothing_to_do) {
    console_.result(util::format("kc: {} is up to date ({})", output, util::counted(s.units, "unit")));
    return;
  }
  std::string text = util::format("kc: {}: {} compiled, {}", util::counted(s.units, "unit"), s.compiled,
                                  util::counted(s.hits, "hit"));
  if (s.failed != 0) text += util::format(", {} failed", s.failed);
  if (s.not_tried != 0) text += util::format(", {} not tried", s.not_tried);
  text += util::format(" in {}; ", util::duration_text(s.seconds));
  switch (s.output_state) {
    case build::OutputState::kWritten:
      text += "wrote " + output;
      break;
    case build::OutputState::kUnchanged:
      text += output + " is unchanged";
      break;
    case build::OutputState::kNone:
      text += s.interrupted ? "interrupted; what was compiled is kept"
              : s.packs     ? "no bundle was written"
                            : "nothing is packed without -o";
      break;
  }
  if (s.partial) text += " (partial)";
  if (s.subset && s.output_state != build::OutputState::kNone) text += " (subset)";
  console_.result(text);
}

}  // namespace kc::cli
