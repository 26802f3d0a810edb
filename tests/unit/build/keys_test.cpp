// Content keys: each field counts, nothing else does, and they stay what they were (tests/golden/keys).
#include "build/keys.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "build/prepare.h"
#include "build_support.h"

namespace {

namespace build = kc::build;
using kc::base::Digest;
using kc::base::sha256;

// What goes into one key.
struct Parts {
  kc::manifest::Unit unit;
  kc::backend::Description backend;
  Digest compiler = sha256("a compiler");
  build::InputDigests inputs = {{sha256("first"), sha256("second")}, {}, {}};

  Parts() {
    unit.name = "matmul:T=64@sm_90";
    unit.target = *kc::target::parse_target("sm_90");
    unit.entry = "matmul";
    unit.options = {{"debug", "false"}, {"opt", "3"}};
    unit.sources = {0, 1};
    backend.name = "tileiras";
    backend.adapter_revision = 1;
  }
  Digest key() const { return build::content_key(unit, backend, compiler, inputs); }
};

template <typename Change>
Digest changed(Change change) {
  Parts parts;
  change(parts);
  return parts.key();
}

// The compiler of the golden keys: four files whose bytes stand here, so that nothing else decides its
// identity.
kc::backend::SearchVariables golden_compiler(const kc::test::TempFolder& folder) {
  const std::string program = folder.write("golden/bin/tileiras", "#!the golden tileiras\n");
  const std::string ptxas = folder.write("golden/bin/ptxas", "the golden ptxas\n");
  folder.write("golden/lib/libnvvm.so.4", "the golden libnvvm\n");
  folder.write("golden/nvvm/libdevice/libdevice.10.bc", "the golden libdevice\n");
  REQUIRE(chmod(program.c_str(), 0755) == 0);
  REQUIRE(chmod(ptxas.c_str(), 0755) == 0);
  kc::backend::SearchVariables out;
  out.kc_tileiras = program;
  return out;
}

build::Prepared prepared(const std::string& manifest, const kc::backend::SearchVariables& search) {
  build::Options options;
  options.manifest = manifest;
  options.search = search;
  kc::test::Heard heard;
  auto out = build::prepare(options, nullptr, heard);
  REQUIRE_MESSAGE(out, (heard.errors.empty() ? std::string() : heard.errors.front()));
  return std::move(*out);
}

constexpr std::string_view kHeader{"\x7FTileIR\0\x0D\x03\0\0", 12};

// The one key of a manifest with one kernel, given the lines of the kernel after its first.
std::string only_key(std::string_view kernel, const std::vector<std::string>& flags = {}) {
  const kc::test::TempFolder folder;
  folder.write("a.tilebc", std::string(kHeader) + "a");
  folder.write("b.tilebc", std::string(kHeader) + "b");
  const std::string manifest =
      folder.write("kernels.yaml", "version: 1\ntargets: [sm_90]\nkernels:\n" + std::string(kernel));
  build::Options options;
  options.manifest = manifest;
  options.search = golden_compiler(folder);
  if (!flags.empty()) options.timeout = std::chrono::seconds(1);
  kc::test::Heard heard;
  auto out = build::prepare(options, nullptr, heard);
  REQUIRE_MESSAGE(out, (heard.errors.empty() ? std::string() : heard.errors.front()));
  REQUIRE(out->units.size() == 1);
  return out->units[0].key.hex();
}

}  // namespace

TEST_CASE("every field of a key changes it and no two changes give the same") {
  std::set<Digest> keys;
  keys.insert(Parts().key());
  CHECK(Parts().key() == Parts().key());
  keys.insert(changed([](Parts& p) { p.backend.name = "tileirat"; }));
  keys.insert(changed([](Parts& p) { p.backend.adapter_revision = 2; }));
  keys.insert(changed([](Parts& p) { p.compiler = sha256("another compiler"); }));
  keys.insert(changed([](Parts& p) { p.unit.target = *kc::target::parse_target("sm_90a"); }));
  keys.insert(changed([](Parts& p) { p.unit.entry = "matmuL"; }));
  keys.insert(changed([](Parts& p) { p.unit.options[1].second = "2"; }));
  keys.insert(changed([](Parts& p) { p.unit.options[0].second = "true"; }));
  keys.insert(changed([](Parts& p) { p.unit.options[1].first = "opu"; }));
  keys.insert(changed([](Parts& p) { p.unit.options.push_back({"sanitize", "none"}); }));
  keys.insert(changed([](Parts& p) { p.unit.options.pop_back(); }));
  keys.insert(changed([](Parts& p) { p.inputs.sources[1] = sha256("seconD"); }));
  keys.insert(changed([](Parts& p) { std::swap(p.inputs.sources[0], p.inputs.sources[1]); }));
  keys.insert(changed([](Parts& p) { p.inputs.sources.pop_back(); }));
  keys.insert(changed([](Parts& p) { p.inputs.sources.push_back(sha256("third")); }));
  keys.insert(changed([](Parts& p) { p.inputs.libraries = {sha256("third")}; }));
  keys.insert(changed([](Parts& p) { p.inputs.libraries = {sha256("third"), sha256("fourth")}; }));
  keys.insert(changed([](Parts& p) { p.inputs.libraries = {sha256("fourth"), sha256("third")}; }));
  keys.insert(changed([](Parts& p) { p.inputs.depends = {{"a.json", sha256("third")}}; }));
  keys.insert(changed([](Parts& p) { p.inputs.depends = {{"b.json", sha256("third")}}; }));
  keys.insert(changed([](Parts& p) { p.inputs.depends = {{"a.json", sha256("fourth")}}; }));
  CHECK(keys.size() == 21);
}

TEST_CASE("text that moves from one field to the next changes the key") {
  const Digest one = changed([](Parts& p) { p.unit.options = {{"ab", "c"}}; });
  const Digest other = changed([](Parts& p) { p.unit.options = {{"a", "bc"}}; });
  CHECK(one != other);
  CHECK(changed([](Parts& p) {
          p.unit.options = {{"a", "b"}, {"c", "d"}};
        }) != changed([](Parts& p) {
          p.unit.options = {{"a", "bcd"}};
        }));
}

TEST_CASE("what the code generator does not get is not in the key") {
  const Digest key = Parts().key();
  CHECK(changed([](Parts& p) { p.unit.name = "other@sm_90"; }) == key);
  CHECK(changed([](Parts& p) { p.unit.kernel = 5; }) == key);
  CHECK(changed([](Parts& p) { p.unit.symbol = "renamed"; }) == key);
  CHECK(changed([](Parts& p) { p.unit.is_default = true; }) == key);
  CHECK(changed([](Parts& p) {
          p.unit.specialization = {{"T", "64"}};
          p.unit.specialization_text = "T=64";
        }) == key);
  CHECK(changed([](Parts& p) { p.backend.suffixes = {".other"}; }) == key);
}

TEST_CASE("of a manifest the option and entry and source and target reach the key and no more") {
  const std::string key = only_key("  - { name: k, sources: a.tilebc }\n");
  CHECK(only_key("  - { name: k, sources: a.tilebc }\n") == key);  // in another folder
  CHECK(only_key("  - { name: other, sources: a.tilebc, entry: k }\n") == key);
  CHECK(only_key("  - { name: k, sources: a.tilebc, timeout: 7s }\n") == key);
  CHECK(only_key("  - { name: k, sources: a.tilebc }\n", {"--timeout=1s"}) == key);
  CHECK(only_key("  - { name: k, sources: a.tilebc, limits: { registers: 9 } }\n") == key);
  CHECK(only_key("  - { name: k, sources: a.tilebc, metadata: { owner: me } }\n") == key);
  CHECK(only_key("  - { name: k, sources: a.tilebc, options: { opt: 3 } }\n") == key);  // the default

  CHECK(only_key("  - { name: k, sources: a.tilebc, options: { opt: 2 } }\n") != key);
  CHECK(only_key("  - { name: k, sources: b.tilebc }\n") != key);
  CHECK(only_key("  - { name: k, sources: a.tilebc, entry: l }\n") != key);
  CHECK(only_key("  - { name: k, sources: a.tilebc, targets: [sm_80] }\n") != key);
}

TEST_CASE("another file of the compiler is another key") {
  const kc::test::TempFolder folder;
  const std::string manifest = folder.write(
      "kernels.yaml", "version: 1\ntargets: [sm_90]\nkernels: [{ name: k, sources: a.tilebc }]\n");
  folder.write("a.tilebc", std::string(kHeader) + "a");
  const auto search = golden_compiler(folder);
  std::set<Digest> keys;
  keys.insert(prepared(manifest, search).units[0].key);
  for (const char* file : {"golden/bin/tileiras", "golden/bin/ptxas", "golden/lib/libnvvm.so.4",
                           "golden/nvvm/libdevice/libdevice.10.bc"}) {
    std::ofstream(folder / file, std::ios::app) << "changed\n";
    keys.insert(prepared(manifest, search).units[0].key);
  }
  CHECK(keys.size() == 5);
}

// A cache whose keys change without a word loses every hit after an upgrade. When they are meant to change,
// kContentDomain and tests/golden/keys/keys.txt change together.
TEST_CASE("the keys of the golden manifest are those of the golden list") {
#if defined(__x86_64__)
  const kc::test::TempFolder folder;
  const std::string golden = KC_SOURCE_DIR "/tests/golden/keys/";
  const build::Prepared now = prepared(golden + "kernels.yaml", golden_compiler(folder));
  std::string domain(build::kContentDomain);
  REQUIRE(domain.back() == '\0');
  domain.pop_back();
  std::string text = domain + "\n";
  for (size_t i = 0; i < now.units.size(); ++i) {
    text += now.unit(i).name + " " + now.units[i].key.hex() + "\n";
  }
  CHECK(text == kc::test::content_of(golden + "keys.txt"));
#else
  MESSAGE("not run: the host's architecture is part of a key and the golden list is of x86_64");
#endif
}
