// What is kept of a unit whose compiler misbehaved.
#include "build/repro.h"

#include <doctest/doctest.h>

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "build/job_files.h"
#include "build/rules.h"
#include "build_support.h"
#include "store/repro.h"

namespace {

namespace build = kc::build;
using kc::base::Bytes;
using kc::test::TempFolder;

Bytes bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}

// What prepare() makes of the manifest at `path`, without a compiler.
build::Prepared planned(const std::string& path) {
  kc::manifest::Loaded loaded = kc::manifest::load(path, build::backend_rules());
  REQUIRE_MESSAGE(loaded.plan, (loaded.errors.empty() ? std::string() : loaded.errors.front().text()));
  build::Prepared out;
  out.plan = std::move(*loaded.plan);
  for (const kc::manifest::Source& source : out.plan.sources) {
    out.sources.emplace_back().bytes = bytes_of(kc::test::content_of(source.path));
  }
  for (uint32_t i = 0; i < out.plan.units.size(); ++i) {
    out.units.emplace_back().unit = i;
    out.units.back().timeout = std::chrono::milliseconds(1500);
  }
  return out;
}

constexpr const char* kText = "config.decl @t.size : index\nconfig.decl @t.mode : index\n";

// Writes the folder of `repro` as a store does.
void write_all(const TempFolder& folder, const kc::store::Repro& repro) {
  for (const kc::store::Repro::File& input : repro.inputs) {
    folder.write("again/inputs/" + input.path, std::string(input.bytes.begin(), input.bytes.end()));
  }
  folder.write("again/kernels.yaml", repro.manifest);
}

}  // namespace

TEST_CASE("the manifest of a failure asks for the same unit of the same files") {
  const TempFolder folder;
  folder.write("sub/k.loom", kText);
  folder.write("sub/other one.loom", "func");
  folder.write("common/lib.loom", "lib");
  const std::string path = folder.write("sub/kernels.yaml", R"yaml(version: 1
targets: [gfx1100, "gfx942:sramecc+:xnack-"]
kernels:
  - name: k
    sources: [k.loom, "other one.loom"]
    libraries: [../common/lib.loom]
    entry: "sym\"bol"
    symbol: "x:y#z"
    config: { t.mode: "a\\b: #c" }
    options: { report: details }
    specializations: { matrix: { t.size: [64, 0128] } }
)yaml");
  const build::Prepared prepared = planned(path);
  REQUIRE(prepared.units.size() == 4);
  const size_t index = 3;
  const kc::store::Repro repro = build::repro_of(prepared, index, "killed by signal 11", "said");
  CHECK(repro.output == bytes_of("said"));
  REQUIRE(repro.inputs.size() == 3);
  CHECK(repro.inputs[0].path == "k.loom");
  CHECK(repro.inputs[0].bytes == bytes_of(kText));
  CHECK(repro.inputs[1].path == "other%20one.loom");
  CHECK(repro.inputs[2].path == "%2E%2E/common/lib.loom");
  CHECK(repro.command.starts_with("kc build -f kernels.yaml --store-mode=off\n"));
  CHECK(repro.command.find("killed by signal 11") != std::string::npos);

  write_all(folder, repro);
  const build::Prepared again = planned(folder / "again/kernels.yaml");
  REQUIRE(again.units.size() == 1);
  const kc::manifest::Unit& before = prepared.unit(index);
  const kc::manifest::Unit& after = again.unit(0);
  CHECK(again.kernel(0).name == "k");
  CHECK(again.kernel(0).backend == "loom");
  CHECK(after.target.text == before.target.text);
  CHECK(after.entry == before.entry);
  CHECK(after.symbol == before.symbol);
  CHECK(after.config == before.config);
  CHECK(after.options == before.options);
  CHECK(after.timeout == std::chrono::milliseconds(1500));
  REQUIRE(after.sources.size() == 2);
  REQUIRE(again.kernel(0).libraries.size() == 1);
  for (size_t i = 0; i < 2; ++i) {
    CHECK(again.sources[after.sources[i]].bytes == prepared.sources[before.sources[i]].bytes);
  }
  CHECK(again.sources[again.kernel(0).libraries[0]].bytes == bytes_of("lib"));
}

TEST_CASE("every identifier has a place of its own inside the folder that no pattern or template changes") {
  const std::vector<std::string> identifiers = {
      "a.loom", "../a.loom", "../../a.loom", "%2E%2E/a.loom", "/a.loom",  "%2F/a.loom", "a b",
      "a%20b",  "@a",        "*.loom",       "{key}.loom",    "[a].loom", "a//b",       "a/%2F/b",
      "a\nb",   "\"a\"",     "a:b",          "a/../b",        "./a",      "\xc3\xa4",   "?"};
  std::set<std::string> places;
  for (const std::string& identifier : identifiers) {
    const std::string place = build::repro_path(identifier);
    CAPTURE(identifier);
    CHECK(kc::store::is_inner_path(place));
    CHECK(place.find_first_of(" *?[{@\"\n:") == std::string::npos);
    CHECK(places.insert(place).second);
  }
  CHECK(build::repro_path("kernels/a-b_c+1.loom") == "kernels/a-b_c+1.loom");
}

TEST_CASE("the command of a failure is one that a shell takes") {
  CHECK(build::repro_command("/s/v1/repro/ab") == "kc build -f /s/v1/repro/ab/kernels.yaml --store-mode=off");
  CHECK(build::repro_command("/my store's") ==
        R"(kc build -f '/my store'\''s/kernels.yaml' --store-mode=off)");
}

TEST_CASE("jobs that have the same files share them until the last has ended") {
  const TempFolder folder;
  for (const char* name : {"a.loom", "b.loom", "lib.loom"}) folder.write(name, name);
  const std::string path = folder.write("kernels.yaml", R"yaml(version: 1
targets: [gfx942, gfx1100]
kernels:
  - { name: k, sources: [a.loom, b.loom], libraries: lib.loom, entry: x }
  - { name: l, sources: [a.loom, b.loom], libraries: lib.loom, entry: y }
  - { name: m, sources: [b.loom, a.loom], libraries: lib.loom, entry: x }
  - { name: n, sources: [a.loom, b.loom, lib.loom], entry: x }
)yaml");
  const build::Prepared prepared = planned(path);
  REQUIRE(prepared.units.size() == 8);
  build::JobFiles files(prepared);
  for (uint32_t i = 0; i < 8; ++i) files.count(i);
  const auto first = files.of(0);
  REQUIRE(first->size() == 3);
  CHECK((*first)[1].identifier == "b.loom");
  CHECK((*first)[1].role == kc::backend::Role::kSource);
  CHECK((*first)[2].identifier == "lib.loom");
  CHECK((*first)[2].role == kc::backend::Role::kLibrary);
  CHECK((*first)[2].bytes == bytes_of("lib.loom"));
  for (const uint32_t same : {1U, 2U, 3U}) CHECK(files.of(same) == first);
  CHECK(files.of(4) != first);
  CHECK(files.of(4) == files.of(5));
  CHECK(files.of(6) != first);
  CHECK((*files.of(6))[2].role == kc::backend::Role::kSource);

  const std::weak_ptr<const std::vector<kc::backend::Source>> alive = files.of(4);
  files.ended(5);
  CHECK_FALSE(alive.expired());
  files.ended(4);
  CHECK(alive.expired());
}
