#include "cli/build_text.h"

#include <cmath>

#include "cli/table.h"
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

// `about 2 min 20 s`: an estimate has no fractions.
std::string about(double seconds) {
  const double whole = std::round(seconds);
  if (whole < 1) return "under 1 s";
  return whole < 60 ? util::format("about {:.0f} s", whole) : "about " + util::duration_text(whole);
}

}  // namespace

void BuildText::progress(const build::Progress& p) {
  // What matters most comes first: a narrow terminal loses the end.
  std::vector<std::string> parts{util::format("[{}/{}]", p.done, p.units)};
  if (p.failed != 0) parts.push_back(util::format("{} failed", p.failed));
  parts.push_back(util::format("{} running", p.running));
  if (p.hits != 0) parts.push_back(util::counted(p.hits, "hit"));
  if (p.seconds_left && *p.seconds_left >= 1) {
    parts.push_back(about(*p.seconds_left) + " left");
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
  // As wide as the digits of a key; a unit that only an engine can tell the key of has none.
  constexpr size_t kDigits = 16;
  std::string key = result.key ? result.key->hex().substr(0, kDigits) : "-";
  key.resize(kDigits, ' ');
  switch (result.state) {
    case UnitState::kPending:
      console_.result(util::format("miss  {}  {}", key, unit.name));
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
    case UnitState::kSkipped:
      if (what_.is_dry_run) break;
      console_.result(what_.is_plan ? util::format("skip  {}  {}", key, unit.name)
                                    : util::format("{}: skipped", unit.name));
      break;
    case UnitState::kFailed:
      if (!what_.is_plan) break;  // was said when it happened
      console_.result(util::format("fail  {}  {}  {}", key, unit.name, util::escape(result.error.message)));
      break;
    case UnitState::kNotTried:
      break;
  }
}

// Against the last build: what a change of a source or a compiler did.
void BuildText::compare(const manifest::Unit& unit, const build::UnitResult& result) {
  if (result.state != UnitState::kCompiled || !result.last) return;
  const auto changes = artifact::changes(*result.last, artifact::numbers_of(result.facts, result.code_bytes));
  if (changes.empty()) return;
  if (++changed_ > kCompared && console_.verbosity() <= 0) return;
  console_.note(util::format("{}: {}", unit.name, artifact::text_of(changes)));
}

void BuildText::unit(const manifest::Plan& /*plan*/, const manifest::Unit& unit,
                     const build::UnitResult& result) {
  compare(unit, result);
  if (result.state == UnitState::kFailed && !what_.is_plan) {
    ++failed_;
    if (failures_.size() < kRepeated) {
      failures_.push_back(
          result.output_path.empty() ? unit.name : util::format("{}  ({})", unit.name, result.output_path));
    }
  }
  if (!what_.results) return;
  if (what_.list_units || (console_.verbosity() > 0 && !what_.is_plan_summary)) list(unit, result);
  if (result.state != UnitState::kHit && result.state != UnitState::kCompiled) return;
  for (const artifact::Diagnostic& diagnostic : result.diagnostics) {
    if (diagnostic.severity != artifact::Severity::kWarning) continue;
    console_.warning({base::ErrorKind::kFailed,
                      util::format("{}: {}{}{}", unit.name, diagnostic.code,
                                   diagnostic.code.empty() ? "" : ": ", diagnostic.message),
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

void BuildText::kernels(const build::Summary& s) {
  // On a narrow terminal the targets go first, then the times.
  constexpr size_t kLeastName = 16;
  constexpr size_t kMostTargets = 40;
  const bool is_terminal = console_.width() != 0;
  Table table({{"KERNEL"},
               {"UNITS", true},
               {"HITS", true},
               {"MISSES", true},
               {"SKIPPED", true, 0, s.skipped != 0},
               {"FAILED", true, 0, s.failed != 0},
               {"TARGETS", false, 2},
               {"EXPECTED", false, 1}},
              kLeastName);
  const auto row = [&](const build::KernelSummary& kernel) -> Table::Row {
    const std::string targets = util::join(kernel.targets, ",");
    return {kernel.name,
            std::to_string(kernel.units),
            std::to_string(kernel.hits),
            std::to_string(kernel.misses()),
            std::to_string(kernel.skipped),
            std::to_string(kernel.failed),
            is_terminal ? elide(targets, kMostTargets) : targets,
            kernel.misses() != 0 && kernel.expected_seconds ? about(*kernel.expected_seconds) : "-"};
  };
  for (const build::KernelSummary& kernel : s.kernels) table.measure(row(kernel));
  table.fit(console_.width());
  console_.result(table.head());
  for (const build::KernelSummary& kernel : s.kernels) console_.result(table.line(row(kernel)));
}

void BuildText::plan_summary(const build::Summary& s) {
  if (what_.is_plan_summary) kernels(s);
  const uint64_t misses = s.units - s.hits - s.skipped - s.failed;
  std::string text = util::format("kc: {}, {}, {}", util::counted(s.units, "unit"),
                                  util::counted(s.hits, "hit"), util::counted(misses, "miss", "misses"));
  if (misses != 0 && s.expected_seconds)
    text += util::format(" ({} of compiling)", about(*s.expected_seconds));
  if (s.skipped != 0) text += util::format(", {} skipped", s.skipped);
  if (s.failed != 0) text += util::format(", {} failed", s.failed);
  console_.result(text);
}

void BuildText::build_summary(const build::Summary& s) {
  const std::string output = util::escape(s.output);
  const std::string units = util::counted(s.units, "unit");
  const std::string skipped = s.skipped != 0 ? util::format(", {} skipped", s.skipped) : "";
  if (s.nothing_to_do) {
    console_.result(util::format("kc: {} is up to date ({}{})", output, units, skipped));
    return;
  }
  std::string text = util::format("kc: {}: ", units);
  if (!what_.is_pack) text += util::format("{} compiled, ", s.compiled);
  text += util::counted(s.hits, "hit") + skipped;
  if (s.failed != 0) text += util::format(", {} failed", s.failed);
  if (s.not_tried != 0) text += util::format(", {} {}", s.not_tried, what_.is_pack ? "missing" : "not tried");
  text += util::format(" in {}; ", util::duration_text(s.seconds));
  switch (s.output_state) {
    case build::OutputState::kWritten:
      text += "wrote " + output;
      break;
    case build::OutputState::kUnchanged:
      text += output + " is unchanged";
      break;
    case build::OutputState::kNone:
      text += s.interrupted   ? "interrupted; what was compiled is kept"
              : s.packs       ? "no bundle was written"
              : what_.is_warm ? "the store has what was compiled"
                              : "nothing is packed without -o";
      break;
  }
  if (s.partial) text += " (partial)";
  if (s.subset && s.output_state != build::OutputState::kNone) text += " (subset)";
  console_.result(text);
}

void BuildText::summary(const build::Summary& s) {
  if (changed_ > kCompared && console_.verbosity() <= 0) {
    console_.note(util::format("and {} that differ from the last build (-v names all)",
                               util::counted(changed_ - kCompared, "more unit", "more units")));
  }
  repeat_failures();
  if (!what_.results || console_.verbosity() < 0) return;
  if (what_.is_plan) {
    plan_summary(s);
  } else if (what_.is_dry_run) {
    console_.result(
        util::format("kc: {} of {} would be compiled", s.not_tried, util::counted(s.units, "unit")));
  } else {
    build_summary(s);
  }
}

}  // namespace kc::cli
