// A build or plan as JSON lines (docs/json.md is the contract): one object with `event` a line.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "build/listener.h"
#include "util/json.h"

namespace kc::report {

/// Gets one object at a time, in the order of the events.
using JsonSink = std::function<void(const util::Json&)>;

util::Json facts_json(const artifact::KernelFacts& facts);
/// 64 hexadecimal digits.
util::Json digest_or_null(const std::optional<base::Digest>& digest);
util::Json diagnostics_json(const std::vector<artifact::Diagnostic>& diagnostics);
/// An object of names that differ from one another, in linear time (a bundle's metadata may have 200,000).
util::Json pairs_json(const std::vector<std::pair<std::string, std::string>>& pairs);

/// Unit and summary events go to the sink; everything else (errors, progress) is left to `rest`, which must
/// outlive it.
class JsonLines final : public build::Listener {
 public:
  enum class Kind : uint8_t { kBuild, kPlan, kPlanSummary };  // kPlanSummary: a line a kernel, not a unit
  JsonLines(Kind kind, JsonSink sink, build::Listener& rest)
      : kind_(kind), sink_(std::move(sink)), rest_(rest) {}

  void error(const base::Error& error) override { rest_.error(error); }
  void warning(const base::Error& warning) override { rest_.warning(warning); }
  void note(const std::string& text) override { rest_.note(text); }
  void progress(const build::Progress& progress) override { rest_.progress(progress); }
  void failed(const manifest::Plan& plan, const manifest::Unit& unit,
              const build::UnitResult& result) override {
    rest_.failed(plan, unit, result);
  }
  void unit(const manifest::Plan& plan, const manifest::Unit& unit, const build::UnitResult& result) override;
  void summary(const build::Summary& summary) override;

 private:
  void plan_summary(const build::Summary& summary);

  Kind kind_;
  JsonSink sink_;
  build::Listener& rest_;
};

}  // namespace kc::report
