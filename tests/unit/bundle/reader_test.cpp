// The ways to open a bundle and to look something up in it, what they cost, and that threads can share a
// reader.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "base/file_system.h"
#include "bundle_support.h"

using namespace kc;
using namespace kc::bundle;
using namespace kc::bundle::testing;

namespace {

struct Bundle {
  Folder folder;
  std::string path = folder / "b.kcb";
  explicit Bundle(const Input& input) { REQUIRE(input.write(path)); }
  Reader open(const ReadOptions& options = {}) const {
    auto reader = Reader::open(path, options);
    REQUIRE(reader);
    return std::move(*reader);
  }
  base::FileDescriptor descriptor() const {
    return base::FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  }
};

// Counts what is read from files.
class CountingFiles final : public base::FileSystem {
 public:
  ssize_t pread(int fd, void* out, size_t size, off_t offset) override {
    ++reads;
    bytes += size;
    return base::FileSystem::pread(fd, out, size, offset);
  }
  std::atomic<uint64_t> reads = 0;
  std::atomic<uint64_t> bytes = 0;
};

Input large_frames() {
  Input input;
  for (uint32_t i = 0; i < 4; ++i) {
    input.add(make_record("k", "N=" + std::to_string(i), "sm_90"), noise(i, 3U << 20));
  }
  input.options.frame_size = 16U << 20;
  return input;
}

}  // namespace

TEST_CASE("a bundle says the same by path and descriptor and from memory") {
  const Input input = small_input();
  const Bundle bundle(input);
  const base::Bytes bytes = read_all(bundle.path);
  std::vector<Reader> readers;
  readers.push_back(bundle.open());
  readers.push_back(*Reader::open(bundle.descriptor(), "a descriptor"));
  readers.push_back(*Reader::open(base::ByteView(bytes), "some memory"));
  CHECK(readers[1].path() == "a descriptor");
  CHECK(readers[2].path() == "some memory");
  for (Reader& reader : readers) {
    CHECK(reader.file_size() == bytes.size());
    CHECK(reader.header_digest() == readers[0].header_digest());
    CHECK(reader.verify_all().empty());
    CHECK(reader.metadata().has_value());
    CHECK(reader.signatures()->empty());
    for (uint32_t i = 0; i < reader.record_count(); ++i) {
      const auto record = reader.record(i);
      REQUIRE(record);
      const auto code = reader.code(*record);
      REQUIRE(code);
      CHECK(base::sha256(code->bytes) == record->artifact_digest);
    }
  }
}

TEST_CASE("only a bundle that was opened by path takes a signature") {
  const Bundle bundle(small_input());
  const base::Bytes bytes = read_all(bundle.path);
  for (auto* open :
       {+[](const Bundle&b, const base::Bytes&) { return Reader::open(b.descriptor(), b.path); },
        +[](const Bundle&b, const base::Bytes&m) { return Reader::open(base::ByteView(m), b.path); }}) {
    auto reader = open(bundle, bytes);
    REQUIRE(reader);
    const auto added = reader->add_signature(Signature{});
    REQUIRE_FALSE(added);
    CHECK(added.error().kind == base::ErrorKind::kInternal);
  }
  CHECK(read_all(bundle.path) == bytes);
}

TEST_CASE("a descriptor that cannot be read or is no file is refused") {
  CHECK_FALSE(Reader::open(base::FileDescriptor(), "none"));
  CHECK_FALSE(Reader::open(base::FileDescriptor(::open("/", O_RDONLY | O_CLOEXEC)), "folder"));
  CHECK_FALSE(Reader::open(base::FileDescriptor(::open("/dev/zero", O_RDONLY | O_CLOEXEC)), "device"));
  CHECK_FALSE(Reader::open(base::ByteView(), "nothing"));
}

TEST_CASE("whatever stands in a page a search gives the right record or says what is damaged") {
  Input input;
  std::vector<std::string> configurations;
  for (uint32_t i = 0; i < 600; ++i) configurations.push_back("N=" + std::to_string(1000 + i));
  for (const std::string& one : configurations) input.add(make_record("k", one, "sm_90"), base::Bytes(64, 1));
  const Bundle bundle(input);
  const base::Bytes right = read_all(bundle.path);
  const auto pages_at = base::load_le<uint64_t>(right, 64);
  const auto pages = static_cast<size_t>(base::load_le<uint64_t>(right, 72) / kPageSize);
  const auto page_at = [&](base::Bytes& bytes, size_t number) {
    return bytes.begin() + static_cast<std::ptrdiff_t>(pages_at + number * kPageSize);
  };
  size_t found = 0;
  size_t told = 0;
  for (size_t number = 0; number < pages; ++number) {
    for (const bool is_noise : {false, true}) {
      base::Bytes bytes = right;
      if (is_noise) {
        std::ranges::copy(noise(static_cast<uint32_t>(number), kPageSize), page_at(bytes, number));
      } else {  // well-formed, and leads astray
        std::copy_n(page_at(bytes, (number + 1) % pages), kPageSize, page_at(bytes, number));
      }
      write_file(bundle.path, bytes);
      auto of_file = Reader::open(bundle.path);
      auto of_memory = Reader::open(base::ByteView(bytes), "memory");
      REQUIRE(of_file);
      REQUIRE(of_memory);
      for (uint32_t i = 0; i < configurations.size(); i += 7) {
        for (Reader* reader : {&*of_file, &*of_memory}) {
          const auto index = reader->find("k", configurations[i], "sm_90");
          if (index) {
            CHECK(*index == i);
            ++found;
          } else {
            CHECK(index.error().kind == base::ErrorKind::kFailed);
            ++told;
          }
          const auto absent = reader->find("k", configurations[i] + "0", "sm_90");
          if (absent) CHECK_FALSE(absent->has_value());
        }
      }
    }
  }
  CHECK(found > 1000);
  CHECK(told > 100);
}

TEST_CASE("lower bound is the first record that is not before the names") {
  const Bundle bundle(small_input());
  Reader reader = bundle.open();
  std::vector<Reader::Names> all;
  for (uint32_t i = 0; i < reader.record_count(); ++i) {
    auto names = reader.names(i);
    REQUIRE(names);
    const auto record = reader.record(i);
    REQUIRE(record);
    CHECK(names->kernel == record->kernel);
    CHECK(names->specialization == record->specialization);
    CHECK(names->target == record->target);
    CHECK(names->found_target == record->found_target);
    CHECK(names->is_default == record->is_default);
    CHECK(names->lowest_driver == record->lowest_driver);
    all.push_back(std::move(*names));
  }
  CHECK_FALSE(reader.names(reader.record_count()));
  const char* const kernels[] = {"", "a", "matmul", "matmul_", "matmu", "vec_add", "z"};
  const char* const specializations[] = {"", "TM=128,TN=64", "TM=64,TN=1", "TM=64,TN=64", "ZZ=1"};
  const char* const targets[] = {"", "gfx1151", "sm_80", "sm_9", "sm_90", "sm_900"};
  for (const char* kernel : kernels) {
    for (const char* specialization : specializations) {
      for (const char* target : targets) {
        const auto wanted =
            std::make_tuple(std::string(kernel), std::string(specialization), std::string(target));
        const auto expected = std::ranges::find_if(all, [&](const Reader::Names& n) {
          return std::make_tuple(n.kernel, n.specialization, n.target) >= wanted;
        });
        const auto index = reader.lower_bound(kernel, specialization, target);
        REQUIRE(index);
        CHECK(*index == expected - all.begin());
      }
    }
  }
}

TEST_CASE("the records of a kernel and its default are found by the index alone") {
  Input input = many_input(3, 50, 100);
  input.records[70].is_default = true;  // kernel_1
  const Bundle bundle(input);
  Reader reader = bundle.open();
  CHECK(*reader.next_kernel(0) == 50);
  CHECK(*reader.next_kernel(49) == 50);
  CHECK(*reader.next_kernel(60) == 100);
  CHECK(*reader.next_kernel(149) == 150);
  CHECK(*reader.first_default(0) == std::nullopt);
  const auto found = reader.first_default(50);
  REQUIRE(found);
  REQUIRE(found->has_value());
  CHECK(reader.record(**found)->unit() == input.records[70].unit());
  CHECK(*reader.first_default(**found + 1) == std::nullopt);
  CHECK_FALSE(reader.first_default(150));
}

TEST_CASE("all entries of a frame cost one read of it and large frames are not kept beyond the limit") {
  const Input input = large_frames();
  const Bundle bundle(input);
  for (const bool kept : {true, false}) {
    ReadOptions options;
    if (!kept) options.largest_kept_frame = 4U << 20;
    Reader reader = bundle.open(options);
    REQUIRE(reader.frame_count() == 1);
    const uint64_t stored = reader.frame(0)->stored_size;
    std::vector<Record> records;
    for (uint32_t i = 0; i < 4; ++i) records.push_back(*reader.record(i));
    CountingFiles files;
    const base::ReplacedFileSystem replaced(files);
    std::vector<Code> codes;
    for (const Record& record : records) codes.push_back(*reader.code(record));
    CHECK(files.bytes == (kept ? stored : 4 * stored));
    CHECK((codes[0].owner == codes[3].owner) == kept);
  }
}

TEST_CASE("code from memory that is not compressed is not copied") {
  Input input;
  input.add(make_record("k", "", "sm_90"), noise(1, 100'000));
  const Bundle bundle(input);
  const base::Bytes bytes = read_all(bundle.path);
  auto reader = Reader::open(base::ByteView(bytes), "memory");
  REQUIRE(reader);
  const auto code = reader->code(*reader->record(0));
  REQUIRE(code);
  CHECK(code->owner == nullptr);
  CHECK(code->bytes.data() >= bytes.data());
  CHECK(code->bytes.data() + code->bytes.size() <= bytes.data() + bytes.size());
}

TEST_CASE("code outlives its reader") {
  const Bundle bundle(small_input());
  auto reader = std::make_unique<Reader>(bundle.open());
  const auto record = reader->record(0);
  const auto code = reader->code(*record);
  REQUIRE(code);
  reader.reset();
  CHECK(base::sha256(code->bytes) == record->artifact_digest);
}

TEST_CASE("a page of memory is checked once and one of a file is read once") {
  const Bundle bundle(many_input(100, 20, 100));
  const base::Bytes bytes = read_all(bundle.path);
  for (const bool memory : {true, false}) {
    auto reader = memory ? Reader::open(base::ByteView(bytes), "memory") : Reader::open(bundle.path);
    REQUIRE(reader);
    const auto walk = [&] {
      for (uint32_t i = 0; i < reader->record_count(); ++i) REQUIRE(reader->record(i));
    };
    walk();
    const uint64_t loads = reader->page_loads();
    CHECK(loads <= Image(bundle.path).u64(72) / kPageSize);
    walk();
    CHECK(reader->page_loads() == loads);
  }
}

TEST_CASE("a search compares texts that lie across pages") {
  Input input;
  std::vector<std::string> specializations;
  for (int i = 0; i < 40; ++i) {
    std::string value(1000, 'x');
    value += std::to_string(100 + i);
    specializations.push_back("A=" + value);
    input.add(make_record("k", specializations.back(), "sm_90"), code_object(static_cast<uint32_t>(i)));
  }
  const Bundle bundle(input);
  Reader reader = bundle.open();
  for (uint32_t i = 0; i < 40; ++i) {
    CHECK(*reader.find("k", specializations[i], "sm_90") == i);
    CHECK(*reader.find("k", specializations[i] + "0", "sm_90") == std::nullopt);
    CHECK(*reader.find("k", specializations[i].substr(0, 1004), "sm_90") == std::nullopt);
  }
}

TEST_CASE("a sound beginning of a newer format is told from damage") {
  const Bundle bundle(small_input());
  Image image(bundle.path);
  const auto newer = [&] { return is_newer_bundle(base::ByteView(image.bytes).first(kHeaderSize)); };
  CHECK_FALSE(newer());
  image.put<uint16_t>(8, 2);
  CHECK_FALSE(newer());
  image.seal_header();
  CHECK(newer());
  for (size_t size = 0; size < kHeaderSize; ++size) {
    CHECK_FALSE(is_newer_bundle(base::ByteView(image.bytes).first(size)));
  }
  image.put<uint16_t>(8, 0);
  image.seal_header();
  CHECK_FALSE(newer());
  image.put<uint16_t>(8, 1);
  image.put<uint32_t>(16, 8);
  image.seal_header();
  CHECK(newer());
  image.bytes[0] = 'k';
  image.seal_header();
  CHECK_FALSE(newer());
}

TEST_CASE("16 threads share a reader of a file that is damaged in places") {
  const Bundle bundle(small_input());
  Image image(bundle.path);
  image.bytes[bundle.open().frame(0)->offset] ^= 1;
  write_file(bundle.path, image.bytes);
  Reader reader = bundle.open();
  std::vector<std::string> expected;
  for (uint32_t i = 0; i < reader.record_count(); ++i) {
    const auto code = reader.artifact(*reader.record(i));
    expected.push_back(code ? base::sha256(*code).hex() : code.error().text());
  }
  const size_t faults = reader.verify_all().size();
  CHECK(faults == 1);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 16; ++t) {
    threads.emplace_back([&, t] {
      for (uint32_t i = 0; i < 60; ++i) {
        const uint32_t number = (t * 5 + i) % reader.record_count();
        const auto record = reader.record(number);
        if (!record) {
          ++wrong;
          continue;
        }
        const auto code = reader.artifact(*record);
        if ((code ? base::sha256(*code).hex() : code.error().text()) != expected[number]) ++wrong;
        if (i % 20 == t % 20 && reader.verify_all().size() != faults) ++wrong;
        const auto index = reader.find(record->kernel, record->specialization, record->target);
        if (!index || *index != number) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}
