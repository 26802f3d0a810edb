// Keys: each field counts, nothing else does, and they stay what they were (tests/golden/keys).
#include "build/keys.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "build/prepare.h"
#include "build/rules.h"
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
  build::InputFiles inputs = {{{"a", sha256("first")}, {"b", sha256("second")}}, {}, {}};

  Parts() {
    unit.name = "matmul:T=64@sm_90";
    unit.target = *kc::target::parse_target("sm_90");
    unit.entry = "matmul";
    unit.options = {{"debug", "false"}, {"opt", "3"}};
    unit.sources = {0, 1};
    backend.name = "tileiras";
    backend.adapter_revision = 1;
  }
  Digest key() const {
    return kc::backend::content_key(build::content_key_inputs(unit, backend, compiler, inputs));
  }
  Digest request() const { return build::request_key(unit, backend, compiler, inputs); }
};

const build::InputFile kThird{"c", sha256("third")};
const build::InputFile kFourth{"d", sha256("fourth")};

template <typename Change>
Digest changed(Change change) {
  Parts parts;
  change(parts);
  return parts.key();
}

template <typename Change>
Digest request_of(Change change) {
  Parts parts;
  change(parts);
  return parts.request();
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
  keys.insert(changed([](Parts& p) { p.inputs.sources[1].digest = sha256("seconD"); }));
  keys.insert(changed([](Parts& p) { std::swap(p.inputs.sources[0], p.inputs.sources[1]); }));
  keys.insert(changed([](Parts& p) { p.inputs.sources.pop_back(); }));
  keys.insert(changed([](Parts& p) { p.inputs.sources.push_back(kThird); }));
  keys.insert(changed([](Parts& p) { p.inputs.depends = {kThird}; }));
  keys.insert(changed([](Parts& p) { p.inputs.depends = {{"b.json", kThird.digest}}; }));
  keys.insert(changed([](Parts& p) { p.inputs.depends = {{kThird.identifier, kFourth.digest}}; }));
  CHECK(keys.size() == 18);
}

TEST_CASE("every field of a request key changes it and no two changes give the same") {
  std::set<Digest> keys;
  keys.insert(Parts().request());
  keys.insert(Parts().key());
  CHECK(Parts().request() == Parts().request());
  keys.insert(request_of([](Parts& p) { p.backend.name = "tileirat"; }));
  keys.insert(request_of([](Parts& p) { p.backend.adapter_revision = 2; }));
  keys.insert(request_of([](Parts& p) { p.compiler = sha256("another compiler"); }));
  keys.insert(request_of([](Parts& p) { p.unit.target = *kc::target::parse_target("sm_90a"); }));
  keys.insert(request_of([](Parts& p) { p.unit.entry = "matmuL"; }));
  keys.insert(request_of([](Parts& p) { p.unit.options[1].second = "2"; }));
  keys.insert(request_of([](Parts& p) { p.unit.options.pop_back(); }));
  keys.insert(request_of([](Parts& p) { p.unit.config = {{"T", "64"}}; }));
  keys.insert(request_of([](Parts& p) { p.unit.config = {{"T", "65"}}; }));
  keys.insert(request_of([](Parts& p) { p.unit.config = {{"U", "64"}}; }));
  // A pair of the configuration is not the same as one of the options.
  keys.insert(request_of([](Parts& p) { p.unit.options.push_back({"T", "64"}); }));
  // Files by their part, name and content, in their order.
  keys.insert(request_of([](Parts& p) { p.inputs.sources[1].digest = sha256("seconD"); }));
  keys.insert(request_of([](Parts& p) { p.inputs.sources[1].identifier = "B"; }));
  keys.insert(request_of([](Parts& p) { std::swap(p.inputs.sources[0], p.inputs.sources[1]); }));
  keys.insert(request_of([](Parts& p) { p.inputs.sources.pop_back(); }));
  keys.insert(request_of([](Parts& p) { p.inputs.sources.push_back(kThird); }));
  keys.insert(request_of([](Parts& p) { p.inputs.libraries = {kThird}; }));
  keys.insert(request_of([](Parts& p) { p.inputs.depends = {kThird}; }));
  keys.insert(request_of([](Parts& p) { p.inputs.libraries = {kThird, kFourth}; }));
  keys.insert(request_of([](Parts& p) { p.inputs.libraries = {kFourth, kThird}; }));
  keys.insert(request_of([](Parts& p) { p.inputs.depends = {{kThird.identifier, kFourth.digest}}; }));
  keys.insert(request_of([](Parts& p) { p.inputs.depends = {{kFourth.identifier, kThird.digest}}; }));
  CHECK(keys.size() == 24);
}

TEST_CASE("what a compiler cannot see is not in a request key") {
  const Digest key = Parts().request();
  CHECK(request_of([](Parts& p) { p.unit.name = "other@sm_90"; }) == key);
  CHECK(request_of([](Parts& p) { p.unit.kernel = 5; }) == key);
  CHECK(request_of([](Parts& p) { p.unit.symbol = "renamed"; }) == key);
  CHECK(request_of([](Parts& p) { p.unit.specialization = {{"T", "64"}}; }) == key);
  CHECK(request_of([](Parts& p) { p.unit.timeout = std::chrono::seconds(1); }) == key);
}

TEST_CASE("the content key of a backend with a front half is over its module in place of files and values") {
  Parts parts;
  parts.backend.has_front_half = true;
  const auto key_of = [](const Parts& p, std::string_view module) {
    auto inputs = build::content_key_inputs(p.unit, p.backend, p.compiler, p.inputs);
    inputs.module = sha256(module);
    return kc::backend::content_key(inputs);
  };
  const Digest key = key_of(parts, "linked");
  CHECK(key_of(parts, "linked otherwise") != key);
  CHECK(key != parts.key());
  Parts other = parts;
  other.inputs = {{{"z", sha256("z")}}, {kThird}, {kFourth}};
  other.unit.config = {{"T", "64"}};
  CHECK(key_of(other, "linked") == key);
  other.unit.entry = "other";
  CHECK(key_of(other, "linked") != key);
  other = parts;
  other.unit.target = *kc::target::parse_target("gfx942");
  CHECK(key_of(other, "linked") != key);
  other = parts;
  other.unit.options[0].second = "true";
  CHECK(key_of(other, "linked") != key);
}

TEST_CASE("the fields of a request key for people name each file with its content") {
  Parts parts;
  parts.inputs.libraries = {kThird};
  parts.unit.config = {{"T", "64"}};
  const auto fields = build::request_key_fields(parts.unit, parts.backend, parts.compiler, parts.inputs);
  using Field = std::pair<std::string, std::string>;
  const auto has = [&](const Field& first, const Field& second) {
    const Field both[] = {first, second};
    return std::search(fields.begin(), fields.end(), std::begin(both), std::end(both)) != fields.end();
  };
  CHECK(fields.front() == Field{"backend", "tileiras"});
  CHECK(has({"source", "a"}, {"content", sha256("first").hex()}));
  CHECK(has({"library", "c"}, {"content", kThird.digest.hex()}));
  CHECK(has({"config", "T"}, {"value", "64"}));
  CHECK(has({"option", "opt"}, {"value", "3"}));
}

TEST_CASE("only a domain that this kc does not make keys of is another key format") {
  CHECK_FALSE(build::is_another_key_format(build::key_domains()));
  CHECK_FALSE(build::is_another_key_format(kc::backend::kContentDomain));  // of a kc without front halves
  CHECK(build::is_another_key_format(std::string_view("kc-content-v0\0", 14)));
  CHECK(build::is_another_key_format(build::key_domains() + "kc-more-v1"));
  CHECK(build::is_another_key_format(std::string(kc::backend::kContentDomain) + "kc-request-v0"));
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

// What a list of golden keys begins with: the domain without its zero.
std::string first_line(std::string_view domain) {
  REQUIRE(domain.back() == '\0');
  return std::string(domain.substr(0, domain.size() - 1)) + "\n";
}

// A cache whose keys change without a word loses every hit after an upgrade. When they are meant to change,
// the domain (kContentDomain, kRequestDomain) and the list change together.
TEST_CASE("the keys of the golden manifest are those of the golden list") {
#if defined(__x86_64__)
  const kc::test::TempFolder folder;
  const std::string golden = KC_SOURCE_DIR "/tests/golden/keys/";
  const build::Prepared now = prepared(golden + "kernels.yaml", golden_compiler(folder));
  std::string text = first_line(kc::backend::kContentDomain);
  for (size_t i = 0; i < now.units.size(); ++i) {
    CHECK_FALSE(now.units[i].has_request);
    text += now.unit(i).name + " " + now.units[i].key.hex() + "\n";
  }
  CHECK(text == kc::test::content_of(golden + "keys.txt"));
#else
  MESSAGE("not run: the host's architecture is part of a key and the golden list is of x86_64");
#endif
}

// Not with a library that is found: the host's libm is part of what identifies Loom.
TEST_CASE("the request keys of the golden Loom manifest are those of their golden list") {
#if defined(__x86_64__)
  const std::string golden = KC_SOURCE_DIR "/tests/golden/keys_loom/";
  kc::manifest::Loaded loaded = kc::manifest::load(golden + "kernels.yaml", build::backend_rules());
  REQUIRE_MESSAGE(loaded.plan, (loaded.errors.empty() ? std::string() : loaded.errors.front().text()));
  build::Prepared now;
  now.plan = std::move(*loaded.plan);
  for (const kc::manifest::Source& source : now.plan.sources) {
    now.sources.emplace_back().digest = sha256(kc::test::content_of(source.path));
  }
  std::string text = first_line(build::kRequestDomain);
  for (uint32_t i = 0; i < now.plan.units.size(); ++i) {
    now.units.emplace_back().unit = i;
    const Digest key = build::request_key(now.unit(i), *kc::backend::find_description("loom"),
                                          sha256("the golden loom"), now.input_files(i));
    text += now.unit(i).name + " " + key.hex() + "\n";
  }
  CHECK(text == kc::test::content_of(golden + "keys.txt"));
#else
  MESSAGE("not run: the host's architecture is part of a key and the golden list is of x86_64");
#endif
}
