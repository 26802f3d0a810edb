// Artifacts become results, and results a bundle.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "build/work.h"
#include "build_support.h"
#include "bundle/bundle.h"

namespace {

namespace build = kc::build;
using build::UnitState;
using kc::base::Bytes;
using kc::base::Digest;
using kc::base::ErrorKind;
using kc::base::sha256;
using kc::test::TempFolder;

kc::artifact::Artifact artifact_of(const std::string& symbol, Bytes code) {
  kc::artifact::Artifact out;
  out.code = std::move(code);
  out.facts.found_target = "sm_90a";
  out.facts.toolkit = "13.4";
  kc::artifact::KernelFacts kernel;
  kernel.symbol = symbol;
  kernel.registers = 40;
  kernel.local_memory = 16;
  kernel.shared_memory = 1024;
  out.facts.kernels = {kernel};
  out.diagnostics = {{kc::artifact::Severity::kWarning, "", "slow", "", 0, 0}};
  out.compiler = "tileiras";
  out.compiler_version = "13.4.92";
  return out;
}

// Kernels a, b, c ... with a unit each for sm_90, their keys by name unless two share one.
class Bench {
 public:
  explicit Bench(const std::vector<std::string>& kernels, const std::vector<std::string>& keys = {})
      : work{options, heard, signals, nullptr, {}, {}, {}, {}, {}, {}, {}, {}} {
    work.prepared.plan.name = "bench";
    for (size_t i = 0; i < kernels.size(); ++i) {
      kc::manifest::Kernel kernel;
      kernel.name = kernels[i];
      kernel.backend = "tileiras";
      kernel.place = {"kernels.yaml", static_cast<uint32_t>(i + 4), 5};
      work.prepared.plan.kernels.push_back(kernel);
      kc::manifest::Unit unit;
      unit.name = kernels[i] + "@sm_90";
      unit.kernel = static_cast<uint32_t>(i);
      unit.target = *kc::target::parse_target("sm_90");
      unit.entry = "entry";
      unit.is_default = true;
      unit.limits = static_cast<uint32_t>(i);
      work.prepared.plan.limits.emplace_back();
      work.prepared.plan.units.push_back(unit);
      build::ChosenUnit chosen;
      chosen.unit = static_cast<uint32_t>(i);
      chosen.key = sha256(keys.empty() ? kernels[i] : keys[i]);
      work.by_key[chosen.key].push_back(static_cast<uint32_t>(i));
      work.prepared.units.push_back(chosen);
    }
    kc::backend::Compiler compiler;
    compiler.backend = "tileiras";
    compiler.identity = sha256("a compiler");
    work.prepared.compilers = {compiler};
    work.results.resize(kernels.size());
    work.places.resize(kernels.size());
    auto spool = build::Spool::create(folder.path());
    REQUIRE(spool);
    work.spool = std::move(*spool);
  }
  void take(const std::string& key, const kc::artifact::Artifact& artifact) {
    REQUIRE(accept(work, sha256(key), artifact, {UnitState::kCompiled, 2.5, 77, sha256(artifact.code), {}}));
  }

  TempFolder folder;
  build::Options options;
  kc::test::Heard heard;
  kc::util::SignalWatch signals;
  build::Work work;
};

build::UnitResult result_of(uint32_t registers, uint32_t local, std::optional<uint32_t> spills,
                            uint32_t shared, uint64_t code) {
  build::UnitResult out;
  out.facts.registers = registers;
  out.facts.local_memory = local;
  out.facts.spills = spills;
  out.facts.shared_memory = shared;
  out.code_bytes = code;
  return out;
}

}  // namespace

TEST_CASE("facts at their limits keep them and facts above are all named") {
  kc::manifest::Limits limits;
  const kc::base::Place place{"kernels.yaml", 7, 5};
  CHECK_FALSE(build::exceeded_limits(limits, place, result_of(255, 1 << 20, 99, 1 << 20, 1 << 30)));
  limits.registers = 96;
  limits.local_memory = 0;
  limits.spills = 2;
  limits.shared_memory = 1024;
  limits.code = 4096;
  CHECK_FALSE(build::exceeded_limits(limits, place, result_of(96, 0, 2, 1024, 4096)));

  const auto all = build::exceeded_limits(limits, place, result_of(97, 1, 3, 1025, 4097));
  REQUIRE(all);
  CHECK(all->kind == ErrorKind::kFailed);
  CHECK(all->place == place);
  CHECK_FALSE(all->hint.empty());
  CHECK(all->message ==
        "exceeds its limits: registers 97, at most 96; local memory 1 bytes, at most 0; spills 3, at most 2; "
        "shared memory 1025 bytes, at most 1024; code 4097 bytes, at most 4096");

  const auto one = build::exceeded_limits(limits, place, result_of(96, 0, 0, 1024, 5000));
  REQUIRE(one);
  CHECK(one->message == "exceeds its limits: code 5000 bytes, at most 4096");
}

TEST_CASE("a limit of spills that nobody can check fails the unit and says how it could be") {
  kc::manifest::Limits limits;
  CHECK_FALSE(build::exceeded_limits(limits, {}, result_of(96, 0, std::nullopt, 0, 1)));
  limits.spills = 2;
  const auto unknown = build::exceeded_limits(limits, {}, result_of(96, 0, std::nullopt, 0, 1));
  REQUIRE(unknown);
  CHECK(unknown->message.find("spills") != std::string::npos);
  CHECK(unknown->hint.find("report") != std::string::npos);
}

TEST_CASE("an artifact fills the result of its unit and the spool") {
  Bench bench({"a"});
  bench.take("a", artifact_of("entry", {1, 2, 3}));
  const build::UnitResult& result = bench.work.results[0];
  CHECK(result.state == UnitState::kCompiled);
  CHECK(result.key == sha256("a"));
  CHECK(result.seconds == 2.5);
  CHECK(result.peak_bytes == 77);
  CHECK(result.code_bytes == 3);
  CHECK(result.compiler_version == "13.4.92");
  CHECK(result.toolkit == "13.4");
  CHECK(result.found_target == "sm_90a");
  CHECK(result.facts.registers == 40);
  CHECK(result.diagnostics.size() == 1);
  const auto code = bench.work.spool->read(bench.work.places[0]);
  REQUIRE(code);
  CHECK(*code == Bytes{1, 2, 3});
  CHECK(bench.work.progress.done == 1);
  CHECK(bench.heard.failures.empty());
}

TEST_CASE("units with one key share its code and each has its own limits") {
  Bench bench({"a", "b", "c"}, {"same", "same", "other"});
  bench.work.prepared.plan.limits[1].registers = 39;
  bench.take("same", artifact_of("entry", {1, 2, 3}));
  CHECK(bench.work.results[0].state == UnitState::kCompiled);
  CHECK(bench.work.results[1].state == UnitState::kFailed);
  CHECK(bench.work.results[1].error.message == "exceeds its limits: registers 40, at most 39");
  CHECK(bench.work.results[2].state == UnitState::kPending);
  CHECK(bench.heard.failures ==
        std::vector<std::string>{"b@sm_90: exceeds its limits: registers 40, at most 39"});
  CHECK(bench.work.progress.done == 2);
  CHECK(bench.work.progress.failed == 1);
  CHECK(bench.work.places[0].offset == bench.work.places[1].offset);
  // Kept once: what comes next lies right behind it.
  bench.take("other", artifact_of("entry", {4}));
  CHECK(bench.work.places[2].offset == 3);
}

TEST_CASE("a code object without the asked kernel fails its unit") {
  Bench bench({"a", "b"}, {"same", "same"});
  bench.work.prepared.plan.units[1].symbol = "renamed";
  bench.take("same", artifact_of("renamed", {1}));
  CHECK(bench.work.results[0].state == UnitState::kFailed);
  CHECK(bench.work.results[0].error.message == "its code object has no kernel \"entry\"; it has renamed");
  CHECK(bench.work.results[0].error.place == bench.work.prepared.plan.kernels[0].place);
  CHECK(bench.work.results[1].state == UnitState::kCompiled);
}

TEST_CASE("of a backend that names kernels itself the only one of a code object is the unit's") {
  Bench bench({"a", "b", "c"});
  for (auto& kernel : bench.work.prepared.plan.kernels) kernel.backend = "loom";
  bench.work.prepared.plan.units[1].symbol = "second";
  bench.take("a", artifact_of("another_name", {1}));
  CHECK(bench.work.results[0].state == UnitState::kCompiled);
  CHECK(bench.work.results[0].facts.symbol == "another_name");

  kc::artifact::Artifact two = artifact_of("entry", {2});
  two.facts.kernels.push_back(two.facts.kernels.front());
  two.facts.kernels.back().symbol = "second";
  two.facts.kernels.back().registers = 41;
  bench.take("b", two);
  CHECK(bench.work.results[1].state == UnitState::kCompiled);
  CHECK(bench.work.results[1].facts.registers == 41);
  bench.take("c", two);  // that one of them has the entry's name means nothing
  CHECK(bench.work.results[2].state == UnitState::kFailed);
  CHECK(bench.work.results[2].error.message == "its code object has 2 kernels: entry and second");
  CHECK(bench.work.results[2].error.hint == "say with `symbol` which of them it is");
  CHECK(bench.work.results[2].error.place == bench.work.prepared.plan.kernels[2].place);
}

TEST_CASE("a code object without kernels fails a unit of any backend") {
  Bench bench({"a", "b"});
  bench.work.prepared.plan.kernels[1].backend = "loom";
  kc::artifact::Artifact none = artifact_of("entry", {1});
  none.facts.kernels.clear();
  for (const char* name : {"a", "b"}) bench.take(name, none);
  for (const build::UnitResult& result : bench.work.results) {
    CHECK(result.state == UnitState::kFailed);
    CHECK(result.error.message == "its code object has no kernel \"entry\"; it has none");
  }
}

TEST_CASE("a unit with two keys is told by both as far as they are known") {
  Bench bench({"a", "b", "c", "d"});
  for (build::ChosenUnit& unit : bench.work.prepared.units) unit.has_request = true;
  for (auto& kernel : bench.work.prepared.plan.kernels) kernel.skip_unsupported = true;
  const Digest content = sha256("content");
  REQUIRE(accept(bench.work, sha256("a"), artifact_of("entry", {1}), {UnitState::kHit, 0, 0, {}, content}));
  build::set_keys(bench.work, 1, content);  // its record said so
  reject(bench.work, sha256("b"), {ErrorKind::kFailed, "no", {}, {}}, {});
  build::UnitResult details;
  details.key = content;
  CHECK(skip(bench.work, sha256("c"), {ErrorKind::kFailed, "no", {}, {}}, details));
  reject(bench.work, sha256("d"), {ErrorKind::kFailed, "no", {}, {}}, {});
  for (const size_t i : {0, 1, 2}) CHECK(bench.work.results[i].key == content);
  CHECK_FALSE(bench.work.results[3].key);
  for (size_t i = 0; i < 4; ++i) {
    CHECK(bench.work.results[i].request_key == bench.work.prepared.units[i].key);
  }
}

TEST_CASE("a record that leads to the entry of another target is a miss") {
  Bench bench({"a", "b"});
  kc::store::Options options;
  options.directory = bench.folder / "store";
  const auto store = kc::store::Store::open(options);
  REQUIRE(store);
  bench.work.store = store->get();
  bench.work.by_key.clear();
  for (const std::string name : {"a", "b"}) {
    kc::store::Entry entry;
    entry.key = sha256("content of " + name);
    entry.backend = "tileiras";
    entry.target = name == "a" ? "sm_90" : "sm_80";
    entry.entry = "entry";
    entry.kernel = name;
    entry.artifact = artifact_of("entry", {1});
    REQUIRE((*store)->put(entry));
    kc::store::Record record;
    record.request = sha256(name);
    record.content = entry.key;
    record.unit = name;
    REQUIRE((*store)->put_record(record));
  }
  for (build::ChosenUnit& chosen : bench.work.prepared.units) chosen.has_request = true;
  REQUIRE(look_up(bench.work));
  CHECK(bench.work.results[0].state == UnitState::kHit);
  CHECK(bench.work.results[1].state == UnitState::kPending);
  CHECK_FALSE(bench.work.results[1].key);
}

TEST_CASE("a rejected key fails every unit of it") {
  Bench bench({"a", "b"}, {"same", "same"});
  build::UnitResult details;
  details.output = "printed";
  reject(bench.work, sha256("same"), {ErrorKind::kFailed, "no such tile", {}, {}}, details);
  for (const build::UnitResult& result : bench.work.results) {
    CHECK(result.state == UnitState::kFailed);
    CHECK(result.key == sha256("same"));
    CHECK(result.error.message == "no such tile");
    CHECK(result.output == "printed");
  }
  CHECK(bench.work.progress.failed == 2);
  CHECK(bench.heard.failures.size() == 2);
}

TEST_CASE("of one key only the units whose kernels allow it are skipped") {
  Bench bench({"a", "b", "c"}, {"same", "same", "other"});
  for (const size_t i : {1, 2}) bench.work.prepared.plan.kernels[i].skip_unsupported = true;
  build::UnitResult details;
  details.seconds = 0.5;
  CHECK(skip(bench.work, sha256("same"), {ErrorKind::kFailed, "no sm_75", {}, {}}, details));
  CHECK(bench.work.results[0].state == UnitState::kPending);
  CHECK(bench.work.results[1].state == UnitState::kSkipped);
  CHECK(bench.work.results[1].error.message == "no sm_75");
  CHECK(bench.work.results[1].seconds == 0.5);
  CHECK(bench.work.results[1].key == sha256("same"));
  CHECK(bench.work.results[2].state == UnitState::kPending);
  CHECK(bench.work.progress.done == 1);
  // What is decided stays so, whatever comes for the others.
  reject(bench.work, sha256("same"), {ErrorKind::kFailed, "no sm_75", {}, {}}, details);
  CHECK(bench.work.results[0].state == UnitState::kFailed);
  CHECK(bench.work.results[1].state == UnitState::kSkipped);
  CHECK(bench.work.progress.failed == 1);
  bench.take("same", artifact_of("entry", {1}));
  CHECK(bench.work.results[1].state == UnitState::kSkipped);
  CHECK(bench.work.progress.done == 2);
}

TEST_CASE("skipped units are not in the bundle and leave it whole") {
  Bench bench({"a", "b"});
  bench.work.prepared.plan.kernels[1].skip_unsupported = true;
  bench.take("a", artifact_of("entry", {1, 2, 3}));
  CHECK(skip(bench.work, sha256("b"), {ErrorKind::kFailed, "no sm_75", {}, {}}, {}));
  CHECK_FALSE(skip(bench.work, sha256("b"), {ErrorKind::kFailed, "no sm_75", {}, {}}, {}));
  const std::string output = bench.folder / "bench.kcb";
  REQUIRE(pack(bench.work, output, false));
  auto reader = kc::bundle::Reader::open(output);
  REQUIRE(reader);
  CHECK_FALSE(reader->info().partial);
  CHECK(reader->record_count() == 1);
}

TEST_CASE("a compiled unit knows what the last build had of its name and a hit does not") {
  Bench bench({"a", "b", "c"});
  const kc::artifact::Numbers before{96, 0, std::nullopt, 1024, 3};
  const build::UnitMemory a{"a@sm_90", {}, {}, 0, 0, before};
  const build::UnitMemory b{"b@sm_90", {}, {}, 0, 0, before};
  bench.work.memory = {{a.name, &a}, {b.name, &b}};
  bench.take("a", artifact_of("entry", {1, 2, 3}));
  REQUIRE(accept(bench.work, sha256("b"), artifact_of("entry", {1}), {UnitState::kHit, 0, 0, {}, {}}));
  bench.take("c", artifact_of("entry", {1}));
  REQUIRE(bench.work.results[0].last);
  CHECK(*bench.work.results[0].last == before);
  CHECK_FALSE(bench.work.results[1].last);
  CHECK_FALSE(bench.work.results[2].last);
}

TEST_CASE("selection data stands among the metadata in its place") {
  Bench bench({"a", "b"});
  bench.work.prepared.plan.kernels[0].metadata = {{"owner", "me"}, {"year", "1"}};
  bench.work.prepared.plan.units[0].selection = "m=64;m=128";
  bench.take("a", artifact_of("entry", {1, 2, 3}));
  bench.take("b", artifact_of("entry", {4}));
  const std::string output = bench.folder / "bench.kcb";
  REQUIRE(pack(bench.work, output, false));
  auto reader = kc::bundle::Reader::open(output);
  REQUIRE(reader);
  const auto with = reader->record(0);
  REQUIRE(with);
  CHECK(with->metadata == kc::manifest::Pairs{{"owner", "me"}, {"when", "m=64;m=128"}, {"year", "1"}});
  CHECK(reader->record(1)->metadata.empty());

  // The longest that a plan gives, with the largest metadata of a kernel.
  bench.work.prepared.plan.units[0].selection = std::string(kc::manifest::kMaxSelectionBytes, 'x');
  bench.work.prepared.plan.kernels[0].metadata = {
      {"notes", std::string(kc::manifest::kMaxMetadataBytes - 5, 'y')}};
  REQUIRE(pack(bench.work, output, false));
  auto large = kc::bundle::Reader::open(output);
  REQUIRE(large);
  CHECK(large->record(0)->metadata.back().second.size() == kc::manifest::kMaxSelectionBytes);
}

TEST_CASE("a bundle holds what was accepted and one whose bytes are the same is not touched") {
  Bench bench({"a", "b"});
  bench.work.prepared.plan.kernels[0].metadata = {{"owner", "me"}};
  bench.take("a", artifact_of("entry", {1, 2, 3}));
  bench.take("b", artifact_of("entry", {4, 5}));
  const std::string output = bench.folder / "bench.kcb";
  const auto written = pack(bench.work, output, false);
  REQUIRE(written);
  CHECK(written->state == build::OutputState::kWritten);
  CHECK(written->tuple == *kc::base::stat_tuple(output));

  auto reader = kc::bundle::Reader::open(output);
  REQUIRE(reader);
  CHECK(reader->info().name == "bench");
  CHECK_FALSE(reader->info().partial);
  CHECK_FALSE(reader->info().subset);
  REQUIRE(reader->record_count() == 2);
  const auto record = reader->record(0);
  REQUIRE(record);
  CHECK(record->unit() == "a@sm_90");
  CHECK(record->entry == "entry");
  CHECK(record->symbol == "entry");
  CHECK(record->is_default);
  CHECK(record->found_target == "sm_90a");
  CHECK(record->compiler == "tileiras");
  CHECK(record->compiler_version == "13.4.92");
  CHECK(record->compiler_identity == sha256("a compiler"));
  CHECK(record->toolkit == "13.4");
  CHECK(record->lowest_driver == 580);
  CHECK(record->content_key == sha256("a"));
  CHECK(record->facts == bench.work.results[0].facts);
  CHECK(record->metadata == kc::manifest::Pairs{{"owner", "me"}});
  const auto code = reader->artifact(*record);
  REQUIRE(code);
  CHECK(*code == Bytes{1, 2, 3});

  const auto again = pack(bench.work, output, false);
  REQUIRE(again);
  CHECK(again->state == build::OutputState::kUnchanged);
  CHECK(again->tuple == written->tuple);
  CHECK(*kc::base::stat_tuple(output) == written->tuple);

  bench.options.release = 5;
  const auto changed = pack(bench.work, output, false);
  REQUIRE(changed);
  CHECK(changed->state == build::OutputState::kWritten);
  CHECK(changed->tuple.inode != written->tuple.inode);
  CHECK(kc::bundle::Reader::open(output)->info().release == 5);
  size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(bench.folder.path())) ++files;
  CHECK(files == 1);
}

TEST_CASE("units that failed are not in the bundle which says that it is partial") {
  Bench bench({"a", "b"});
  bench.options.units = {"a", "b"};
  bench.take("a", artifact_of("entry", {1, 2, 3}));
  bench.take("b", artifact_of("other", {4, 5}));
  const std::string output = bench.folder / "bench.kcb";
  REQUIRE(pack(bench.work, output, true));
  auto reader = kc::bundle::Reader::open(output);
  REQUIRE(reader);
  CHECK(reader->info().partial);
  CHECK(reader->info().subset);
  CHECK(reader->record_count() == 1);
}

TEST_CASE("a bundle that cannot be written leaves the old one") {
  Bench bench({"a"});
  bench.take("a", artifact_of("entry", {1, 2, 3}));
  const auto nowhere = pack(bench.work, bench.folder / "missing/bench.kcb", false);
  CHECK_FALSE(nowhere);
  const std::string output = bench.folder.write("bench.kcb", "the old one");
  bench.work.places[0].digest = sha256("other bytes");  // as if the spool gave back something else
  const auto damaged = pack(bench.work, output, false);
  REQUIRE_FALSE(damaged);
  CHECK(damaged.error().kind == ErrorKind::kEnvironment);
  CHECK(kc::test::content_of(output) == "the old one");
}
