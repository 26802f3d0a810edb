// That nothing wrong with a bundle goes unseen, and that hostile numbers take no memory.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "bundle_support.h"

using namespace kc;
using namespace kc::bundle;
using namespace kc::bundle::testing;

namespace {

struct Small {
  Folder folder;
  std::string path = folder / "b.kcb";
  Small() { REQUIRE(small_input().write(path)); }
  Image image() const { return Image(path); }
  std::string faults(const Image& image) const { return image.faults(folder / "changed.kcb"); }
};

}  // namespace

TEST_CASE("every flipped byte of a small bundle is found") {
  const Small small;
  Image image = small.image();
  const base::Bytes block = signature_block(1, noise(1, 96));
  image.bytes.insert(image.bytes.end(), block.begin(), block.end());
  REQUIRE(small.faults(image).empty());
  const base::FileDescriptor fd(::open((small.folder / "changed.kcb").c_str(), O_RDWR | O_CLOEXEC));
  size_t unseen = 0;
  for (size_t i = 0; i < image.bytes.size(); ++i) {
    const auto flipped = static_cast<uint8_t>(image.bytes[i] ^ (1U << (i % 8)));
    REQUIRE(pwrite(fd.get(), &flipped, 1, static_cast<off_t>(i)) == 1);
    if (faults_of(small.folder / "changed.kcb").empty()) {
      ++unseen;
      MESSAGE("byte " << i);
    }
    REQUIRE(pwrite(fd.get(), &image.bytes[i], 1, static_cast<off_t>(i)) == 1);
  }
  CHECK(unseen == 0);
}

TEST_CASE("every truncation of a small bundle is found") {
  const Small small;
  Image image = small.image();
  const size_t content = image.bytes.size();
  const base::Bytes block = signature_block(1, noise(1, 96));
  image.bytes.insert(image.bytes.end(), block.begin(), block.end());
  const std::string path = small.folder / "cut.kcb";
  write_file(path, image.bytes);
  for (size_t size = image.bytes.size(); size-- > 0;) {
    REQUIRE(truncate(path.c_str(), static_cast<off_t>(size)) == 0);
    CAPTURE(size);
    // Without its last signature block it is a bundle with fewer signatures.
    CHECK(faults_of(path).empty() == (size == content));
  }
}

TEST_CASE("what is no bundle is told apart from what is a damaged one") {
  const Folder folder;
  write_file(folder / "empty", {});
  write_file(folder / "elf", base::as_bytes("\x7f"
                                            "ELF and more"));
  write_file(folder / "short", base::as_bytes("KCB"));
  write_file(folder / "start", base::as_bytes("KCBUNDLE"));
  CHECK(contains(faults_of(folder / "empty"), "is empty"));
  CHECK(contains(faults_of(folder / "elf"), "is not a bundle"));
  CHECK(contains(faults_of(folder / "short"), "is not a bundle"));
  CHECK(contains(faults_of(folder / "start"), "ends early"));
  CHECK(contains(faults_of(folder / "missing"), "missing"));
  CHECK(contains(faults_of(folder / "."), "is a directory"));
  CHECK(Reader::open(folder / "missing").error().kind == base::ErrorKind::kInput);
  CHECK(Reader::open(folder / "elf").error().kind == base::ErrorKind::kFailed);
  REQUIRE(mkfifo((folder / "fifo").c_str(), 0600) == 0);
  CHECK(contains(faults_of(folder / "fifo"), "not a regular file"));

  CHECK(looks_like_bundle(folder / "start"));
  for (const char* name : {"empty", "elf", "short", "missing", ".", "fifo"}) {
    CHECK(!looks_like_bundle(folder / name));
  }
}

TEST_CASE("a newer bundle is refused as newer and a damaged one as damaged") {
  const Small small;
  Image image = small.image();
  image.put<uint16_t>(8, 9);
  CHECK(contains(small.faults(image), "damaged"));
  CHECK(contains(small.faults(image.seal_header()),
                 "made by a newer kc: its format is 9.0, this kc reads 1.x"));
  CHECK(looks_like_bundle(small.folder / "changed.kcb"));
  image.put<uint16_t>(8, 0);
  CHECK(contains(small.faults(image.seal_header()), "unknown format 0.0"));
}

TEST_CASE("a newer major may have a header of another size") {
  const Small small;
  Image image = small.image();
  image.put<uint16_t>(8, 2);
  image.put<uint32_t>(12, 1024);
  image.digest_of(0, 992, 992);
  CHECK(contains(small.faults(image), "newer kc"));
  image.put<uint16_t>(8, 1);
  image.digest_of(0, 992, 992);
  CHECK(contains(small.faults(image), "claims to have 1024 bytes"));
  image.put<uint32_t>(12, 1U << 30);
  CHECK(contains(small.faults(image), "claims to have 1073741824 bytes"));
}

TEST_CASE("unknown required flags refuse and unknown optional flags do not") {
  const Small small;
  Image image = small.image();
  image.put<uint32_t>(20, 0xFFFFFFFF);
  CHECK(small.faults(image.seal_header()) == "");
  image.put<uint32_t>(16, 4);
  CHECK(contains(small.faults(image.seal_header()), "required flags 4"));
}

TEST_CASE("a newer minor is read and verify says what it cannot check") {
  const Small small;
  Image image = small.image();
  image.put<uint16_t>(10, 1);
  image.put<uint8_t>(600, 7);
  image.put<uint8_t>(image.index(0) + 60, 7);
  CHECK(small.faults(image.seal()) == "");
  image.bytes.resize(image.bytes.size() + 64, 1);
  image.put<uint64_t>(40, image.bytes.size());
  CHECK(contains(small.faults(image.seal()), "cannot be checked"));
  auto reader = Reader::open(small.folder / "changed.kcb");
  REQUIRE(reader);
  CHECK(*reader->find("vec_add", "", "sm_90"));
}

TEST_CASE("hostile numbers in the header are refused before memory is taken") {
  const Small small;
  rusage before;
  getrusage(RUSAGE_SELF, &before);
  for (uint64_t at = 32; at < 176; at += at < 40 ? 4 : 8) {
    for (const uint64_t value : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 31, (uint64_t{1} << 40) + 64,
                                 uint64_t{1} << 63, UINT64_MAX, UINT64_MAX - 63}) {
      Image image = small.image();
      const uint64_t old = at < 40 ? image.u32(at) : image.u64(at);
      if (at < 40) {
        image.put(at, static_cast<uint32_t>(value));
        if (static_cast<uint32_t>(value) == old) continue;
      } else {
        image.put(at, value);
      }
      CAPTURE(at);
      CAPTURE(value);
      const std::string text = small.faults(image.seal_header());
      // A size of the strings that leaves the layout as it is shows in the records.
      const bool refused = contains(text, "header is damaged") || contains(text, "ends early");
      CHECK((refused || (at == 136 && contains(text, "lies outside the strings"))));
    }
  }
  rusage after;
  getrusage(RUSAGE_SELF, &after);
  CHECK(after.ru_maxrss - before.ru_maxrss < 64 * 1024);  // KiB
}

TEST_CASE("hostile frame sizes are refused before memory is taken") {
  const Small small;
  for (const uint64_t raw : {uint64_t{0}, uint64_t{kMaxFrameBytes} + 1, UINT64_MAX}) {
    Image image = small.image();
    image.put(image.frame_entry(0) + 16, raw);
    CHECK(contains(small.faults(image.seal()), "frame 0: it claims to hold"));
  }
  Image zip = small.image();  // zstd's own size disagrees
  zip.put(zip.frame_entry(0) + 16, uint64_t{kMaxFrameBytes});
  CHECK(contains(small.faults(zip.seal()), "frame 0: compressed data does not have the size"));
  for (const uint64_t stored : {uint64_t{0}, uint64_t{1} << 40, UINT64_MAX}) {
    Image image = small.image();
    image.put(image.frame_entry(1) + 8, stored);
    CHECK(contains(small.faults(image.seal()), "frame 1: it claims"));
  }
  for (const uint64_t offset : {uint64_t{0}, uint64_t{1} << 40, UINT64_MAX - 63}) {
    Image image = small.image();
    image.put(image.frame_entry(1), offset);
    CHECK(contains(small.faults(image.seal()), "frame 1: it lies outside"));
  }
}

TEST_CASE("a malformed name and reserved fields of the header are refused") {
  const Small small;
  const auto faults = [&](auto change) {
    Image image = small.image();
    change(image);
    return small.faults(image.seal_header());
  };
  CHECK(contains(faults([](Image& i) { i.put<uint8_t>(243, 1); }), "reserved"));
  CHECK(contains(faults([](Image& i) { i.put<uint8_t>(607, 1); }), "reserved"));
  CHECK(contains(faults([](Image& i) { i.put<uint8_t>(256, 0x1b); }), "name is malformed"));
  CHECK(contains(faults([](Image& i) { i.put<uint8_t>(300, 'x'); }), "name is malformed"));
  CHECK(contains(faults([](Image& i) { i.put<uint16_t>(240, 256); }), "name is malformed"));
}

TEST_CASE("a code object outside its frame or with another digest is not given") {
  const Small small;
  Image image = small.image();
  image.put<uint64_t>(image.index(2) + 40, 100'000);
  image.put<uint8_t>(image.detail(3), static_cast<uint8_t>(image.bytes[image.detail(3)] ^ 1));
  write_file(small.folder / "c.kcb", image.seal().bytes);
  auto reader = Reader::open(small.folder / "c.kcb");
  REQUIRE(reader);
  CHECK(contains(reader->artifact(*reader->record(2)).error().message, "lies outside it"));
  CHECK(contains(reader->artifact(*reader->record(3)).error().message, "the digest of the code object of"));
  CHECK(reader->artifact(*reader->record(4)).has_value());
}

TEST_CASE("room behind the last frame is found") {
  const Small small;
  Image image = small.image();
  const uint64_t frames_end = image.u64(144) + image.u64(152);
  image.bytes.insert(image.bytes.begin() + static_cast<std::ptrdiff_t>(frames_end), 64, 0);
  image.put<uint64_t>(152, image.u64(152) + 64);
  image.put<uint64_t>(160, image.u64(160) + 64);
  image.put<uint64_t>(40, image.u64(40) + 64);
  CHECK(contains(small.faults(image.seal()), "belong to nothing"));
}

TEST_CASE("records that are swapped or there twice are found") {
  const Small small;
  Image image = small.image();
  std::swap_ranges(image.bytes.begin() + static_cast<std::ptrdiff_t>(image.index(0)),
                   image.bytes.begin() + static_cast<std::ptrdiff_t>(image.index(1)),
                   image.bytes.begin() + static_cast<std::ptrdiff_t>(image.index(1)));
  CHECK(contains(small.faults(image.seal()), "not in its place"));
  image = small.image();
  std::copy_n(image.bytes.begin() + static_cast<std::ptrdiff_t>(image.index(0)), kIndexSize,
              image.bytes.begin() + static_cast<std::ptrdiff_t>(image.index(1)));
  CHECK(contains(small.faults(image.seal()), "is there twice"));
}

TEST_CASE("a record with a wrong field is named") {
  const Small small;
  const auto faults = [&](auto change) {
    Image image = small.image();
    change(image);
    return small.faults(image.seal());
  };
  const std::string outside =
      "record 2 at offset " + std::to_string(small.image().index(2)) + ": a name lies outside";
  CHECK(contains(faults([](Image& i) { i.put<uint32_t>(i.index(2), 0xFFFFFFF0); }), outside));
  CHECK(contains(faults([](Image& i) { i.put<uint32_t>(i.index(2) + 24, 65536); }), outside));
  CHECK(contains(faults([](Image& i) { i.put<uint16_t>(i.index(2) + 16, 0); }), "record 2"));
  CHECK(contains(faults([](Image& i) { i.put<uint8_t>(i.index(2) + 22, 1); }), "reserved"));
  CHECK(contains(faults([](Image& i) { i.put<uint8_t>(i.index(2) + 28, 2); }), "reserved"));
  CHECK(contains(faults([](Image& i) { i.put<uint32_t>(i.index(2) + 32, 99); }), "no place in a frame"));
  CHECK(contains(faults([](Image& i) { i.put<uint32_t>(i.index(2) + 36, 1); }), "no place in a frame"));
  CHECK(contains(faults([](Image& i) { i.put<uint64_t>(i.index(2) + 40, 0); }), "no place in a frame"));
  CHECK(contains(faults([](Image& i) { i.put<uint64_t>(i.index(2) + 40, UINT64_MAX); }),
                 "no place in a frame"));
  CHECK(contains(faults([](Image& i) { i.put<uint64_t>(i.index(2) + 40, 100'000); }), "lies outside it"));
  // A number of scalar registers whose flag does not say that it is known, and a flag of no meaning.
  CHECK(contains(faults([](Image& i) { i.put<uint8_t>(i.detail(2) + 156, 1); }), "reserved"));
  CHECK(contains(faults([](Image& i) { i.put<uint8_t>(i.detail(2) + 152, 4); }), "reserved"));
  CHECK(contains(faults([](Image& i) { i.put<uint32_t>(i.detail(2) + 88, 0x7FFFFFFF); }),
                 "a text lies outside"));
  CHECK(contains(faults([](Image& i) { i.put<uint32_t>(i.detail(2) + 92, 5); }), "tool item"));
  CHECK(contains(faults([](Image& i) { i.put<uint32_t>(i.detail(2) + 100, 7); }), "arguments item"));
  CHECK(contains(faults([](Image& i) { i.put<uint32_t>(i.detail(2) + 108, 5); }), "metadata item"));
  CHECK(contains(faults([](Image& i) { i.put<uint8_t>(i.strings(), ' '); }), "kernel's name"));
  CHECK(contains(faults([](Image& i) { i.put<uint8_t>(i.detail(2), 1); }),
                 "the digest of the code object of record 2"));
}

TEST_CASE("bytes that nothing covers are found wherever they lie") {
  const Small small;
  const auto faults = [&](auto change) {
    Image image = small.image();
    change(image);
    return small.faults(image.seal());
  };
  const Image sound = small.image();
  const uint64_t table_end = sound.u64(48) + sound.u64(56);
  if (table_end < sound.u64(64)) {
    CHECK(contains(faults([&](Image& i) { i.bytes[table_end] = 1; }), "padding behind the page table"));
  }
  CHECK(contains(faults([&](Image& i) { i.bytes[i.u64(64) + i.u64(72) - 1] = 1; }),
                 "padding behind the strings"));
  CHECK(contains(faults([&](Image& i) { i.bytes.back() = 1; }), "padding behind the metadata"));
  CHECK(contains(faults([&](Image& i) {
                   const uint64_t at = i.frame_entry(0);
                   i.bytes[i.u64(at) + i.u64(at + 8)] = 1;
                 }),
                 "padding behind frame 0"));
  // One more byte in the strings that no record leads to.
  CHECK(contains(faults([&](Image& i) {
                   i.bytes[i.u64(128) + i.u64(136)] = 'x';
                   i.put<uint64_t>(136, i.u64(136) + 1);
                 }),
                 "not referred to by any record"));
  // No record leads to the second artifact of the first frame any more.
  CHECK(contains(faults([&](Image& i) {
                   for (uint32_t r = 0; r < 12; ++r) {
                     if (i.u32(i.index(r) + 32) == 0 && i.u32(i.index(r) + 36) != 0) {
                       i.put<uint32_t>(i.index(r) + 36, 0);
                     }
                   }
                 }),
                 "frame 0: its bytes overlap, or are not referred to"));
}

TEST_CASE("a frame that moved is found") {
  const Small small;
  Image image = small.image();
  image.put<uint64_t>(image.frame_entry(1), image.u64(image.frame_entry(0)));
  CHECK(contains(small.faults(image.seal()), "frame 1: it does not follow the one before it"));
}

TEST_CASE("an artifact stored twice and padding inside a frame are found") {
  const Folder folder;
  Input input;
  base::Bytes first = noise(1, 60);
  input.add(make_record("a", "", "sm_90"), first);
  input.add(make_record("b", "", "sm_90"), noise(2, 60));
  REQUIRE(input.write(folder / "b.kcb"));
  Image image(folder / "b.kcb");
  const uint64_t frame = image.u64(image.frame_entry(0));
  REQUIRE(image.u64(image.frame_entry(0) + 8) == 124);  // stored raw: 60, padding 4, 60
  image.bytes[frame + 61] = 1;
  CHECK(contains(image.seal_frame(0).seal().faults(folder / "c.kcb"),
                 "padding before the code object of record 1"));
  image.bytes[frame + 61] = 0;
  std::copy(first.begin(), first.end(), image.bytes.begin() + static_cast<std::ptrdiff_t>(frame + 64));
  std::copy_n(image.bytes.begin() + static_cast<std::ptrdiff_t>(image.detail(0)), 32,
              image.bytes.begin() + static_cast<std::ptrdiff_t>(image.detail(1)));
  CHECK(contains(image.seal_frame(0).seal().faults(folder / "c.kcb"), "is stored twice"));
}

TEST_CASE("several faults are all reported and each once") {
  const Small small;
  Image image = small.image();
  image.bytes[image.index(3)] ^= 1;
  const uint64_t frame = image.u64(image.frame_entry(1));
  image.bytes[frame + 5] ^= 1;
  image.bytes[image.u64(160) + 6] ^= 1;
  image.bytes.push_back('x');
  write_file(small.folder / "c.kcb", image.bytes);
  auto reader = Reader::open(small.folder / "c.kcb");
  REQUIRE(reader);
  const std::vector<base::Error> faults = reader->verify_all();
  std::string text;
  for (const base::Error& fault : faults) text += fault.text() + "\n";
  CAPTURE(text);
  CHECK(contains(text, "the digest of page 0"));
  CHECK(contains(text, "metadata"));
  CHECK(contains(text, "no signature block") != contains(text, "cut short"));
  for (const base::Error& fault : faults) CHECK(fault.kind == base::ErrorKind::kFailed);
  CHECK(!reader->record(3));
  CHECK(!reader->find("vec_add", "", "sm_90"));
}

TEST_CASE("a damaged frame spoils its own artifacts alone") {
  const Small small;
  Image image = small.image();
  image.bytes[image.u64(image.frame_entry(1)) + 5] ^= 1;
  write_file(small.folder / "c.kcb", image.bytes);
  auto reader = Reader::open(small.folder / "c.kcb");
  REQUIRE(reader);
  for (uint32_t i = 0; i < reader->record_count(); ++i) {
    const Record record = *reader->record(i);
    const auto artifact = reader->artifact(record);
    CHECK(artifact.has_value() == (record.frame != 1));
    if (!artifact) CHECK(contains(artifact.error().message, "frame 1: its digest is wrong"));
  }
  CHECK(reader->verify_all().size() == 1);
}

TEST_CASE("a bundle of nothing but faults gives a thousand of them") {
  const Folder folder;
  Input input = many_input(1, 1200, 60);
  REQUIRE(input.write(folder / "b.kcb"));
  Image image(folder / "b.kcb");
  for (uint32_t i = 0; i < 1200; ++i) image.put<uint64_t>(image.index(i) + 40, 0);
  const auto path = folder / "c.kcb";
  write_file(path, image.seal().bytes);
  auto reader = Reader::open(path);
  REQUIRE(reader);
  const auto faults = reader->verify_all();
  CHECK(faults.size() == 1001);
  CHECK(contains(faults.back().message, "more faults are not listed"));
}

TEST_CASE("signature blocks are walked and unknown ones are reported") {
  const Small small;
  Image image = small.image();
  const uint64_t content = image.bytes.size();
  for (const base::Bytes& block :
       {signature_block(77, noise(1, 1000)), signature_block(1, noise(2, 96)), signature_block(3, {})}) {
    image.bytes.insert(image.bytes.end(), block.begin(), block.end());
  }
  CHECK(small.faults(image) == "");
  auto reader = Reader::open(small.folder / "changed.kcb");
  REQUIRE(reader);
  const auto blocks = reader->signature_blocks();
  REQUIRE(blocks);
  REQUIRE(blocks->size() == 3);
  CHECK(blocks->at(0).type == 77);
  CHECK(blocks->at(0).offset == content);
  CHECK(blocks->at(0).payload_size == 1000);
  CHECK(blocks->at(1).type == 1);
  CHECK(blocks->at(2).payload_size == 0);
  // The header does not speak of them.
  CHECK(reader->header_digest() == Reader::open(small.path)->header_digest());
}

TEST_CASE("malformed signature blocks and bytes behind the content are faults") {
  const Small small;
  const auto faults_with = [&](const base::Bytes& tail) {
    Image image = small.image();
    image.bytes.insert(image.bytes.end(), tail.begin(), tail.end());
    return small.faults(image);
  };
  CHECK(contains(faults_with(base::Bytes(1)), "cut short"));
  CHECK(contains(faults_with(base::Bytes(64)), "64 bytes from offset"));
  CHECK(contains(faults_with(noise(1, 500)), "no signature block"));
  CHECK(contains(faults_with(signature_block(1, noise(1, 95))), "an Ed25519 block has 96 bytes, not 95"));
  CHECK(contains(faults_with(signature_block(9, noise(1, 65'537))), "claims 65537 bytes"));
  base::Bytes block = signature_block(9, noise(1, 10));
  block[20] ^= 1;
  CHECK(contains(faults_with(block), "digest is wrong"));
  block[20] ^= 1;
  block.back() = 1;
  CHECK(contains(faults_with(block), "padding is not zero"));
  block.back() = 0;
  block.pop_back();
  CHECK(contains(faults_with(block), "cut short"));
  base::Bytes many;
  const base::Bytes one = signature_block(9, {});
  for (uint32_t i = 0; i <= kMaxSignatures; ++i) many.insert(many.end(), one.begin(), one.end());
  CHECK(contains(faults_with(many), "more than 1024 signature blocks"));
}

TEST_CASE("a file that is cut after it was opened gives an error and no byte") {
  const Small small;
  auto reader = Reader::open(small.path);
  REQUIRE(reader);
  REQUIRE(truncate(small.path.c_str(), 700) == 0);
  const auto record = reader->record(0);
  REQUIRE(!record);
  CHECK(contains(record.error().message, "ends early"));
  CHECK(!reader->verify_all().empty());
}
