// A listener that keeps what it hears, and what a build needs of other layers.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "base/digest.h"
#include "build/listener.h"
#include "support/fake_install.h"
#include "support/temp_folder.h"

namespace kc::test {

class Heard final : public build::Listener {
 public:
  void error(const base::Error& error) override { errors.push_back(error.text()); }
  void warning(const base::Error& warning) override { warnings.push_back(warning.text()); }
  void note(const std::string& text) override { notes.push_back(text); }
  void progress(const build::Progress&) override {}
  void failed(const manifest::Plan&, const manifest::Unit& unit, const build::UnitResult& result) override {
    failures.push_back(unit.name + ": " + result.error.message);
  }
  void unit(const manifest::Plan&, const manifest::Unit& unit, const build::UnitResult&) override {
    units.push_back(unit.name);
  }
  void summary(const build::Summary&) override {}

  std::vector<std::string> errors, warnings, notes, failures, units;
};

/// Where an installation below `root` is looked for; its program has the bytes `program`.
inline backend::SearchVariables install_compiler(const TempFolder& folder, const std::string& root,
                                                 std::string_view program) {
  const auto installed = install_fake_tileiras(folder.write(root + ".program", program), folder / root);
  REQUIRE_MESSAGE(installed, (installed ? std::string() : installed.error().text()));
  backend::SearchVariables out;
  out.kc_tileiras = *installed;
  return out;
}

inline backend::Compiler found_compiler(const backend::SearchVariables& variables) {
  auto compiler = backend::find_compiler("tileiras", variables, {});
  REQUIRE_MESSAGE(compiler, (compiler ? std::string() : compiler.error().text()));
  return std::move(*compiler);
}

}  // namespace kc::test
