// What a bundle gives back, and that its bytes depend on plan and artifacts alone.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <random>

#include "bundle_support.h"

using namespace kc;
using namespace kc::bundle;
using namespace kc::bundle::testing;

namespace {

void check_same(const Record& got, const Record& wanted) {
  CHECK(got.kernel == wanted.kernel);
  CHECK(got.specialization == wanted.specialization);
  CHECK(got.target == wanted.target);
  CHECK(got.found_target == wanted.found_target);
  CHECK(got.backend == wanted.backend);
  CHECK(got.entry == wanted.entry);
  CHECK(got.symbol == wanted.symbol);
  CHECK(got.is_default == wanted.is_default);
  CHECK(got.compiler == wanted.compiler);
  CHECK(got.compiler_version == wanted.compiler_version);
  CHECK(got.compiler_identity == wanted.compiler_identity);
  CHECK(got.toolkit == wanted.toolkit);
  CHECK(got.lowest_driver == wanted.lowest_driver);
  CHECK(got.content_key == wanted.content_key);
  CHECK(got.facts == wanted.facts);
  CHECK(got.metadata == wanted.metadata);
}

auto key(const Record& record) {
  return std::tuple(record.kernel, record.specialization, record.target);
}

}  // namespace

TEST_CASE("every record and artifact comes back as it was given") {
  const Folder folder;
  Input input = small_input();
  input.info = {"name of the bundle", UINT64_MAX, true, true};
  Record odd = make_record("odd.name-1", "a=%20%2C,b=,c.d=-1.5e+3", "gfx942:sramecc+:xnack-");
  odd.facts.spills = 0;
  odd.facts.scalar_registers = 108;
  odd.facts.required_block = {32, 4, 1};
  odd.facts.arguments.clear();
  odd.facts.wave_size = 64;
  odd.facts.symbol = "another";
  odd.symbol = "_Z3oddPf.kd";
  odd.entry = std::string(4096, 'e');
  odd.toolkit.clear();
  odd.lowest_driver = 0;
  odd.metadata = {{"a", std::string("line\nfeed and \0 zero", 20)}, {"b", ""}, {"c", std::string(5000, 'x')}};
  input.add(odd, noise(1, 9000));
  REQUIRE(input.write(folder / "b.kcb"));

  auto reader = Reader::open(folder / "b.kcb");
  REQUIRE(reader);
  CHECK(reader->info().name == "name of the bundle");
  CHECK(reader->info().release == UINT64_MAX);
  CHECK(reader->info().partial);
  CHECK(reader->info().subset);
  CHECK(reader->file_size() == std::filesystem::file_size(folder / "b.kcb"));
  REQUIRE(reader->record_count() == input.records.size());
  CHECK(reader->verify_all().empty());
  for (size_t i = 0; i < input.records.size(); ++i) {
    const Record& wanted = input.records[i];
    const auto found = reader->find(wanted.kernel, wanted.specialization, wanted.target);
    REQUIRE(found);
    REQUIRE(*found);
    const auto record = reader->record(**found);
    REQUIRE(record);
    check_same(*record, wanted);
    CHECK(record->artifact_size == input.artifacts[i].size());
    CHECK(record->artifact_digest == base::sha256(input.artifacts[i]));
    const auto artifact = reader->artifact(*record);
    REQUIRE(artifact);
    CHECK(*artifact == input.artifacts[i]);
  }
  Record previous = *reader->record(0);
  for (uint32_t i = 1; i < reader->record_count(); ++i) {
    const Record record = *reader->record(i);
    CHECK(key(previous) < key(record));
    previous = record;
  }
}

TEST_CASE("a unit that is not there is not found") {
  const Folder folder;
  REQUIRE(small_input().write(folder / "b.kcb"));
  auto reader = Reader::open(folder / "b.kcb");
  REQUIRE(reader);
  CHECK(!*reader->find("matmul", "", "sm_90"));
  CHECK(!*reader->find("matmul", "TM=64,TN=64", "sm_100"));
  CHECK(!*reader->find("", "", ""));
  CHECK(!*reader->find("zzz", "", "sm_90"));
  CHECK(!reader->record(reader->record_count()));
  CHECK(!reader->frame(reader->frame_count()));
}

TEST_CASE("a bundle without units is whole") {
  const Folder folder;
  Input input;
  input.info.name = "";
  REQUIRE(input.write(folder / "b.kcb"));
  auto reader = Reader::open(folder / "b.kcb");
  REQUIRE(reader);
  CHECK(reader->record_count() == 0);
  CHECK(reader->frame_count() == 0);
  CHECK(!*reader->find("matmul", "", "sm_90"));
  CHECK(reader->verify_all().empty());
}

TEST_CASE("threads change no byte") {
  const Folder folder;
  Input input = many_input(7, 40, 3000);
  input.options.frame_size = 16384;
  REQUIRE(input.write(folder / "1.kcb"));
  for (const unsigned threads : {2U, 8U}) {
    input.options.threads = threads;
    REQUIRE(input.write(folder / "n.kcb"));
    CHECK(read_all(folder / "1.kcb") == read_all(folder / "n.kcb"));
  }
}

TEST_CASE("the order of records changes no byte") {
  const Folder folder;
  const Input input = small_input();
  REQUIRE(input.write(folder / "1.kcb"));
  std::mt19937 random(5);
  for (int round = 0; round < 5; ++round) {
    std::vector<size_t> order(input.records.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    Input shuffled;
    for (const size_t i : order) shuffled.add(input.records[i], input.artifacts[i]);
    REQUIRE(shuffled.write(folder / "2.kcb"));
    CHECK(read_all(folder / "1.kcb") == read_all(folder / "2.kcb"));
  }
}

TEST_CASE("known digests and sizes change no byte and spare a second reading") {
  const Folder folder;
  Input input = small_input();
  REQUIRE(input.write(folder / "1.kcb"));
  for (size_t i = 0; i < input.records.size(); ++i) {
    input.records[i].artifact_size = input.artifacts[i].size();
    input.records[i].artifact_digest = base::sha256(input.artifacts[i]);
  }
  std::atomic<size_t> reads{0};
  const base::FileDescriptor fd(
      ::open((folder / "2.kcb").c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  REQUIRE(write_bundle(
      fd.get(), input.info, input.records,
      [&](size_t i) {
        ++reads;
        return input.artifacts[i];
      },
      input.options));
  CHECK(reads == input.records.size());
  CHECK(read_all(folder / "1.kcb") == read_all(folder / "2.kcb"));
  input.records[3].artifact_digest = base::sha256("another");
  const auto wrong = input.write(folder / "3.kcb");
  REQUIRE(!wrong);
  CHECK(contains(wrong.error().message, input.records[3].unit()));
}

TEST_CASE("identical artifacts are stored once") {
  const Folder folder;
  Input once;
  Input twenty;
  for (int i = 0; i < 20; ++i) {
    const Record record =
        make_record("kernel_" + std::to_string(i), "TM=" + std::to_string(i), i % 2 == 0 ? "sm_80" : "sm_90");
    if (i == 0) once.add(record, noise(3, 50'000));
    twenty.add(record, noise(3, 50'000));
  }
  REQUIRE(once.write(folder / "1.kcb"));
  REQUIRE(twenty.write(folder / "20.kcb"));
  CHECK(std::filesystem::file_size(folder / "20.kcb") < std::filesystem::file_size(folder / "1.kcb") + 8192);
  auto reader = Reader::open(folder / "20.kcb");
  REQUIRE(reader);
  CHECK(reader->frame_count() == 1);
  CHECK(reader->verify_all().empty());
  for (uint32_t i = 0; i < 20; ++i) CHECK(*reader->artifact(*reader->record(i)) == noise(3, 50'000));
}

TEST_CASE("what cannot be compressed is stored raw and comes back") {
  const Folder folder;
  Input input;
  input.add(make_record("noise", "", "sm_90"), noise(1, 30'000));
  REQUIRE(input.write(folder / "b.kcb"));
  auto reader = Reader::open(folder / "b.kcb");
  REQUIRE(reader);
  const auto frame = reader->frame(0);
  REQUIRE(frame);
  CHECK(frame->stored_size == 30'000);
  CHECK(frame->raw_size == 30'000);
  CHECK(*reader->artifact(*reader->record(0)) == noise(1, 30'000));
}

TEST_CASE("a search among ten thousand records reads few pages") {
  const Folder folder;
  Input input;
  const base::Bytes code = noise(1, 100);
  for (int k = 0; k < 100; ++k) {
    for (int s = 0; s < 100; ++s) {
      input.add(make_record("kernel_" + std::to_string(k), "TK=32,TM=64,TN=" + std::to_string(s), "sm_90"),
                code);
    }
  }
  REQUIRE(input.write(folder / "b.kcb"));
  uint64_t most = 0;
  uint64_t sum = 0;
  for (int i = 0; i < 100; ++i) {
    auto reader = Reader::open(folder / "b.kcb");
    REQUIRE(reader);
    CHECK(reader->page_loads() == 0);
    const Record& wanted = input.records[static_cast<size_t>(i) * 97];
    REQUIRE(*reader->find(wanted.kernel, wanted.specialization, wanted.target));
    most = std::max(most, reader->page_loads());
    sum += reader->page_loads();
  }
  MESSAGE("pages read: " << sum / 100 << " on average, " << most << " at most");
  CHECK(most <= 16);
}

TEST_CASE("the writer refuses what the format does not hold") {
  const Folder folder;
  const auto message = [&](const Input& input) {
    const auto result = input.write(folder / "b.kcb");
    REQUIRE(!result);
    return result.error().message;
  };
  Input twice = small_input();
  twice.add(twice.records[4], code_object(99));
  CHECK(contains(message(twice), "two bundle records of one unit, " + twice.records[4].unit()));

  Input name = small_input();
  name.info.name = "\x1b[2J";
  CHECK(contains(message(name), "name"));
  name.info.name = std::string(256, 'n');
  CHECK(contains(message(name), "name"));

  Input empty = small_input();
  empty.artifacts[2].clear();
  CHECK(contains(message(empty), "is empty"));

  Input level = small_input();
  level.options.level = 20;
  CHECK(contains(message(level), "level"));
  Input frame = small_input();
  frame.options.frame_size = 100;
  CHECK(contains(message(frame), "frame size"));

  Input grammar = small_input();
  grammar.records[0].kernel = "no spaces";
  CHECK(contains(message(grammar), "kernel's name"));
  Input metadata = small_input();
  metadata.records[0].metadata = {{"note", std::string(kMaxMetadataSize, 'x')}};
  CHECK(contains(message(metadata), "1 MiB"));

  REQUIRE(small_input().write(folder / "b.kcb"));
  const base::FileDescriptor used(::open((folder / "b.kcb").c_str(), O_RDWR | O_CLOEXEC));
  const Input input = small_input();
  CHECK(!write_bundle(
      used.get(), input.info, input.records, [&](size_t i) { return input.artifacts[i]; }, input.options));
}

TEST_CASE("an artifact that cannot be read or changes between readings fails the bundle") {
  const Folder folder;
  Input input = many_input(3, 3, 600);
  input.options.threads = 2;
  const auto write_with = [&](const ArtifactSource& source) {
    std::filesystem::remove(folder / "b.kcb");
    const base::FileDescriptor fd(
        ::open((folder / "b.kcb").c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    return write_bundle(fd.get(), input.info, input.records, source, input.options);
  };
  const auto unreadable = write_with([&](size_t i) -> base::Result<base::Bytes> {
    if (i == 5) return base::fail(base::ErrorKind::kEnvironment, "the spool is gone");
    return input.artifacts[i];
  });
  REQUIRE(!unreadable);
  CHECK(unreadable.error().message == "the spool is gone");
  std::atomic<int> calls{0};
  const auto changing = write_with([&](size_t) { return noise(static_cast<uint32_t>(++calls), 600); });
  REQUIRE(!changing);
  CHECK(contains(changing.error().message, "changed while packing"));
  CHECK(changing.error().kind == base::ErrorKind::kEnvironment);
}

TEST_CASE("level and frame size are told in the bundle's metadata") {
  const Folder folder;
  Input input = small_input();
  input.options.level = 19;
  input.options.frame_size = 65536;
  REQUIRE(input.write(folder / "b.kcb"));
  auto reader = Reader::open(folder / "b.kcb");
  REQUIRE(reader);
  const auto metadata = reader->metadata();
  REQUIRE(metadata);
  REQUIRE(metadata->size() == 3);
  CHECK(metadata->at(0).first == "compressor");
  CHECK(metadata->at(1) == std::pair<std::string, std::string>("frame_size", "65536"));
  CHECK(metadata->at(2) == std::pair<std::string, std::string>("level", "19"));
}
