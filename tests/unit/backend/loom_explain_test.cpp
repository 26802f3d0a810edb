#include "backend/loom/run/explain.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "support/real_loom.h"

namespace {

using kc::artifact::Diagnostic;
using kc::artifact::Severity;
using kc::backend::CompileRequest;
using kc::backend::Status;
using kc::backend::loom::add_places;
using kc::backend::loom::explain;
using kc::test::loom_request;
using kc::test::loom_sources;

Diagnostic error(std::string code, std::string message) {
  return {Severity::kError, std::move(code), std::move(message), {}, 0, 0};
}

CompileRequest request(const char* target = "gfx1100", const char* entry = "subtract") {
  return loom_request(loom_sources({{"a.loom", std::string(kc::test::kSubtract)}}), entry, target);
}

}  // namespace

TEST_CASE("the first error leads and those that follow are counted") {
  const std::vector<Diagnostic> said = {{Severity::kWarning, "W/1", "only a warning", {}, 0, 0},
                                        error("TYPE/003", "first\nwith more lines"),
                                        error("TYPE/001", "second"),
                                        {Severity::kNote, {}, "a note", {}, 0, 0},
                                        error("TYPE/001", "third")};
  CHECK(explain(request(), said).message == "TYPE/003: first (and 2 more errors)");
  CHECK(explain(request(), {said[1], said[2]}).message == "TYPE/003: first (and 1 more error)");
  CHECK(explain(request(), {error("", "no code")}).message == "no code");
  CHECK(explain(request(), {said[0]}).message == "the Loom library failed and gave no error");
  CHECK(explain(request(), {}).status == Status::kFailed);
}

TEST_CASE("only an authored target that does not fit makes a unit unsupported") {
  CHECK(explain(request(), {error("TARGET/052", "x")}).status == Status::kUnsupported);
  CHECK(explain(request(), {error("TARGET/051", "x")}).status == Status::kFailed);
  CHECK(explain(request(), {error("TYPE/003", "x"), error("TARGET/052", "x")}).status == Status::kFailed);
}

TEST_CASE("a private kernel that is asked for gets the hint that it needs an export") {
  auto asked = request("gfx1100", "hidden");
  asked.sources = loom_sources({{"a.loom", "kernel.def @hidden() {\n} launch(%out: buffer) {\n}\n"}});
  const auto why = explain(asked, {error("TARGET/011", "module contains no function")});
  CHECK(why.hint == "hidden is a private kernel: write `kernel.def export(\"hidden\") @hidden`");
  CHECK(kc::backend::missing_export_hint("loom", "hidden", "a.loom",
                                         kc::base::as_bytes("kernel.def @hidden() {\n")) == why.hint);
  CHECK(kc::backend::missing_export_hint("loom", "hidden", "a.loombc",
                                         kc::base::as_bytes("kernel.def @hidden() {\n"))
            .empty());
  CHECK(kc::backend::missing_export_hint("loom", "other", "a.loom",
                                         kc::base::as_bytes("kernel.def @hidden() {\n"))
            .empty());
}

TEST_CASE("a root that is missing gets the hint what the sources export even when that is nothing") {
  const std::vector<Diagnostic> said = {error("LINK/PLAN", "root symbol '@other' was not found")};
  auto asked = request("gfx1100", "other");
  CHECK(explain(asked, said).hint == "the sources export subtract");
  asked.sources = loom_sources({{"a.loom", "kernel.def @hidden() {\n} launch(%out: buffer) {\n}\n"}});
  CHECK(explain(asked, said).hint ==
        "the sources export no kernel: write `kernel.def export(\"name\") @name`");
  asked.sources = loom_sources({{"a.loombc", "LOOM"}});  // nobody here knows what it exports
  CHECK(explain(asked, said).hint.empty());
}

TEST_CASE("a key that two files declare differently gets the places of both") {
  const Diagnostic said =
      error("LINK/PLAN", "duplicate value definition '@k.one' has incompatible contract field 'value'");
  auto asked = request();
  asked.sources = loom_sources({{"a.loom", "\nconfig.decl @k.one : index\n"},
                                {"b.loom", "config.def @k.one = 3 : index\n"},
                                {"c.loom", "config.def @k.two = 3 : index\n"}});
  CHECK(explain(asked, {said}).hint ==
        "k.one is declared in a.loom:2 and b.loom:1: all files of a kernel must declare a key alike");
  asked.sources = loom_sources({{"a.loom", "config.decl @k.one : index\n"}});
  CHECK(explain(asked, {said}).hint.empty());
}

TEST_CASE("a generic target gets a hint when the error is about targets and not otherwise") {
  const auto about = explain(request("gfx11-generic"), {error("LOWERING/034", "no contract for this")});
  CHECK(about.hint.find("gfx11-generic stands for several processors") != std::string::npos);
  CHECK(explain(request("gfx11-generic"), {error("TYPE/003", "x")}).hint.empty());
  CHECK(explain(request("gfx1100"), {error("LOWERING/034", "x")}).hint.empty());
}

TEST_CASE("mistakes of the configuration get the place of the key's declaration") {
  const auto sources = loom_sources({{"a.loom", "// none here\n"},
                                     {"b.loom", "\n  config.decl @k.one : index // why\n"},
                                     {"c.loombc", "LOOM config.decl @k.two : index\n"}});
  std::vector<Diagnostic> said = {
      error("CONFIG/INVALID", "symbol '@k.one' value 3 violates constraint 'range'"),
      error("CONFIG/INVALID", "config 'k.one' expects integer value"),
      error("CONFIG/INVALID", "unresolved config '@k.two' remains"), error("CONFIG/INVALID", "no key in it"),
      error("LINK/PLAN", "symbol '@k.one' is another matter")};
  add_places(*sources, said);
  CHECK(said[0].file == "b.loom");
  CHECK(said[0].line == 2);
  CHECK(said[0].column == 3);
  CHECK(said[1].line == 2);
  for (size_t i = 2; i < said.size(); ++i) CHECK(said[i].line == 0);
}
