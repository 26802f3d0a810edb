// That a damaged bundle, or one that changes while it is open, makes calls fail and never gives a wrong byte.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "bundles_support.h"

using namespace kc;
using namespace kc::loader::testing;

namespace {

struct Small {
  Folder folder;
  Input input = small_frames();
  std::string path = folder / "b.kcb";
  Small() { REQUIRE(input.write(path)); }
};

// Reads every entry; each is right or refused. Gives the units that were refused.
std::vector<std::string> refused_units(const BundleHandle& bundle, const Input& input) {
  std::vector<std::string> out;
  for (size_t i = 0; i < kc_entry_count(bundle.get()); ++i) {
    const auto entry = entry_at(bundle, i);
    if (entry.status != KC_OK) {
      CHECK((entry.status == KC_ERROR_DAMAGED || entry.status == KC_ERROR_IO));
      out.push_back("entry " + std::to_string(i));
      continue;
    }
    const std::string unit = kc_entry_get_info(entry.handle.get())->unit;
    const auto code = read(entry.handle.get());
    if (code.status == KC_OK) {
      CHECK(code.bytes == code_of(input, unit));
    } else {
      CHECK((code.status == KC_ERROR_DAMAGED || code.status == KC_ERROR_IO));
      out.push_back(unit);
    }
  }
  return out;
}

void overwrite(const std::string& path, uint64_t offset, base::ByteView bytes) {
  const base::FileDescriptor fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  REQUIRE(fd);
  REQUIRE(base::pwrite_all(fd.get(), bytes, offset, path));
}

}  // namespace

TEST_CASE("one flipped byte in a frame refuses what lies in it and nothing else") {
  const Small small;
  const Image image(small.path);
  auto reader = bundle::Reader::open(small.path);
  REQUIRE(reader);
  std::map<uint32_t, std::vector<std::string>> units;  // of each frame
  for (uint32_t i = 0; i < reader->record_count(); ++i) {
    const auto record = reader->record(i);
    REQUIRE(record);
    units[record->frame].push_back(record->unit());
  }
  REQUIRE(units.size() > 3);
  for (const auto& [frame, in_frame] : units) {
    const auto place = reader->frame(frame);
    REQUIRE(place);
    for (const uint64_t at :
         {place->offset, place->offset + place->stored_size / 2, place->offset + place->stored_size - 1}) {
      Image changed = image;
      changed.bytes[at] ^= 0x10;
      write_file(small.folder / "c.kcb", changed.bytes);
      const auto by_path = open_path(small.folder / "c.kcb");
      REQUIRE(by_path.status == KC_OK);
      CHECK(refused_units(by_path.handle, small.input) == in_frame);
      const auto from_memory = open_memory(changed.bytes);
      REQUIRE(from_memory.status == KC_OK);
      CHECK(refused_units(from_memory.handle, small.input) == in_frame);
      kc_error* error = nullptr;
      CHECK(kc_verify(by_path.handle.get(), &error) == KC_ERROR_DAMAGED);
      CHECK(contains(kc_error_message(error), "frame " + std::to_string(frame)));
      kc_error_free(error);
    }
  }
}

TEST_CASE("one flipped byte in a page refuses what is on it and nothing else") {
  const Folder folder;
  const Input input = bundle::testing::many_input(10, 20, 200);
  REQUIRE(input.write(folder / "b.kcb"));
  Image image(folder / "b.kcb");
  const auto page_of = [&](uint64_t offset) { return (offset - image.u64(64)) / bundle::kPageSize; };
  const uint64_t page = page_of(image.detail(100));
  image.bytes[image.detail(100) + 3] ^= 1;
  const auto opened = open_memory(image.bytes);
  REQUIRE(opened.status == KC_OK);
  size_t refused = 0;
  for (uint32_t i = 0; i < 200; ++i) {
    CAPTURE(i);
    const bool is_on_page = page_of(image.detail(i)) == page || page_of(image.detail(i + 1) - 1) == page;
    const auto entry = entry_at(opened.handle, i);
    CHECK(entry.status == (is_on_page ? KC_ERROR_DAMAGED : KC_OK));
    if (is_on_page) {
      CHECK(contains(entry.message, "the digest of page " + std::to_string(page)));
      ++refused;
    } else {
      CHECK(read(entry.handle.get()).status == KC_OK);
    }
  }
  CHECK(refused >= 25);
  CHECK(refused <= 27);
  CHECK(kc_verify(opened.handle.get(), nullptr) == KC_ERROR_DAMAGED);
}

TEST_CASE("a flipped byte anywhere never gives a wrong byte") {
  const Small small;
  const Image image(small.path);
  for (size_t at = 0; at < image.bytes.size(); at += 53) {
    Image changed = image;
    changed.bytes[at] ^= 0x04;
    CAPTURE(at);
    const auto opened = open_memory(changed.bytes);
    if (opened.status != KC_OK) {
      CHECK(opened.status == KC_ERROR_DAMAGED);
      continue;
    }
    refused_units(opened.handle, small.input);
    const auto searched = find(opened.handle, "matmul", nullptr, "sm_90");
    if (searched.status == KC_OK) {
      CHECK(std::string(kc_entry_get_info(searched.handle.get())->unit) == "matmul:TM=64,TN=64@sm_90");
    } else {
      CHECK(searched.status == KC_ERROR_DAMAGED);
    }
    CHECK(kc_verify(opened.handle.get(), nullptr) == KC_ERROR_DAMAGED);
  }
}

TEST_CASE("verification names the first faults and how many more there are") {
  Small small;
  Image image(small.path);
  auto reader = bundle::Reader::open(small.path);
  REQUIRE(reader);
  for (uint32_t frame = 0; frame < reader->frame_count(); ++frame)
    image.bytes[reader->frame(frame)->offset] ^= 1;
  const uint32_t frames = reader->frame_count();
  REQUIRE(frames > 3);
  const auto opened = open_memory(image.bytes);
  std::vector<kc_bundle*> four(4, opened.handle.get());
  const auto set = join(four);
  kc_error* error = nullptr;
  CHECK(kc_verify(set.handle.get(), &error) == KC_ERROR_DAMAGED);
  const ErrorHandle owned(error);
  const std::string text = kc_error_message(error);
  CHECK(std::ranges::count(text, '\n') == 10);
  CHECK(contains(text, "\nand " + std::to_string(4 * frames - 10) + " more"));
}

TEST_CASE("a file that is cut while it is open gives right bytes or errors") {
  for (const bool read_before : {false, true}) {
    const Small small;
    const auto opened = open_path(small.path);
    REQUIRE(opened.status == KC_OK);
    if (read_before) CHECK(refused_units(opened.handle, small.input).empty());
    const uint64_t size = read_all(small.path).size();
    for (const uint64_t left : {size - 1, size / 2, uint64_t{5000}, uint64_t{640}, uint64_t{0}}) {
      REQUIRE(::truncate(small.path.c_str(), static_cast<off_t>(left)) == 0);
      refused_units(opened.handle, small.input);
    }
    CHECK(!refused_units(opened.handle, small.input).empty());
    kc_error* error = nullptr;
    CHECK(kc_verify(opened.handle.get(), &error) == KC_ERROR_DAMAGED);
    CHECK(contains(kc_error_message(error), "ends early"));
    kc_error_free(error);
  }
}

TEST_CASE("a file that is rewritten in place while it is open gives right bytes or errors") {
  const Small small;
  // The same names and sizes, other code.
  Input other = small.input;
  for (base::Bytes& code : other.artifacts) code[200] ^= 0xFF;
  REQUIRE(other.write(small.folder / "other.kcb"));
  const base::Bytes bytes = read_all(small.folder / "other.kcb");
  const auto opened = open_path(small.path);
  REQUIRE(opened.status == KC_OK);
  const auto entry = find(opened.handle, "vec_add", "", "sm_90");
  REQUIRE(entry.status == KC_OK);
  overwrite(small.path, 0, bytes);
  CHECK(read(entry.handle.get()).status == KC_ERROR_DAMAGED);
  CHECK(refused_units(opened.handle, small.input).size() == 12);
  CHECK(kc_verify(opened.handle.get(), nullptr) == KC_ERROR_DAMAGED);
}

TEST_CASE("a file that is replaced while it is open goes on as it was") {
  const Small small;
  const auto opened = open_path(small.path);
  REQUIRE(opened.status == KC_OK);
  Input other;
  other.add(make_record("vec_add", "", "sm_90"), bundle::testing::code_object(99));
  REQUIRE(other.write(small.folder / "other.kcb"));
  std::filesystem::rename(small.folder / "other.kcb", small.path);
  CHECK(refused_units(opened.handle, small.input).empty());
  CHECK(kc_verify(opened.handle.get(), nullptr) == KC_OK);
  std::filesystem::remove(small.path);
  CHECK(refused_units(opened.handle, small.input).empty());
}

TEST_CASE("a match that is damaged fails the search where it is the best and is left out where it is not") {
  // Details lie 160 bytes apart, 25 on a page: the two records of k are on different ones.
  Input input;
  for (int i = 0; i < 40; ++i) {
    input.add(make_record("a" + std::to_string(100 + i), "", "sm_80"),
              bundle::testing::code_object(static_cast<uint32_t>(i)));
  }
  std::vector<std::string> targets = {"sm_80", "sm_86"};
  for (const std::string& target : targets) {
    bundle::Record record = make_record("k", "", target);
    record.found_target = target;
    input.add(record, bundle::testing::code_object(target == "sm_80" ? 200 : 201));
  }
  const Folder folder;
  REQUIRE(input.write(folder / "b.kcb"));
  const auto with_damage_at = [&](uint32_t record) {
    Image image(folder / "b.kcb");
    // Alone of its page: a field that the record's check refuses, with all digests made right again.
    image.put<uint32_t>(image.detail(record) + 152, 0x80);
    image.seal();
    const std::string path = folder / ("damaged-" + std::to_string(record) + ".kcb");
    write_file(path, image.bytes);
    auto file = loader::File::open(path, loader::Policy{});
    REQUIRE(file);
    return loader::Set({*file}).candidates("k", "", *target::parse_target("sm_86"));
  };
  const auto worse = with_damage_at(40);
  REQUIRE(worse);
  REQUIRE(worse->size() == 1);
  CHECK(worse->front().record.unit() == "k@sm_86");
  const auto best = with_damage_at(41);
  REQUIRE_FALSE(best);
  CHECK(best.error().status == KC_ERROR_DAMAGED);
}
