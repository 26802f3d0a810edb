// A build or plan told to a person: failures as they happen, one status line, one last line.
#pragma once

#include <string>
#include <vector>

#include "build/listener.h"
#include "cli/console.h"

namespace kc::cli {

class BuildText final : public build::Listener {
 public:
  struct What {
    bool results = true;      // say units and summary on stdout (false beside JSON lines)
    bool list_units = false;  // a line a unit (plan, dry run, named units)
    bool is_plan = false;
    bool is_plan_summary = false;  // a line a kernel instead
    bool is_dry_run = false;
    bool is_pack = false;
    bool is_warm = false;
  };
  BuildText(Console& console, What what) : console_(console), what_(what) {}

  void error(const base::Error& error) override { console_.error(error); }
  void warning(const base::Error& warning) override { console_.warning(warning); }
  void note(const std::string& text) override { console_.note(text); }
  void progress(const build::Progress& progress) override;
  void failed(const manifest::Plan& plan, const manifest::Unit& unit,
              const build::UnitResult& result) override;
  void unit(const manifest::Plan& plan, const manifest::Unit& unit, const build::UnitResult& result) override;
  void summary(const build::Summary& summary) override;

 private:
  void list(const manifest::Unit& unit, const build::UnitResult& result);
  void compare(const manifest::Unit& unit, const build::UnitResult& result);
  void repeat_failures();
  void kernels(const build::Summary& summary);
  void plan_summary(const build::Summary& summary);
  void build_summary(const build::Summary& summary);

  Console& console_;
  What what_;
  // Failures are named again at the end; more than a screen of them only counted.
  static constexpr size_t kRepeated = 20;
  std::vector<std::string> failures_;
  uint64_t failed_ = 0;
  // A new compiler changes every unit: more than a screen of these lines only counted.
  static constexpr uint64_t kCompared = 20;
  uint64_t changed_ = 0;
};

}  // namespace kc::cli
