#include "build/spool.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <vector>

#include "support/faulty_file_system.h"
#include "support/temp_folder.h"

namespace {

using kc::base::Bytes;
using kc::build::Spool;
using kc::test::TempFolder;

// The descriptor of this process that leads to an unlinked file of `folder`.
int descriptor_in(const std::string& folder) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string target = std::filesystem::read_symlink(entry.path(), error).string();
    if (target.starts_with(folder + "/")) return std::stoi(entry.path().filename().string());
  }
  return -1;
}

}  // namespace

TEST_CASE("what is added comes back in any order") {
  const TempFolder folder;
  auto spool = Spool::create(folder.path());
  REQUIRE(spool);
  const std::vector<Bytes> contents = {{1, 2, 3}, {}, Bytes(100'000, 7), {9}};
  std::vector<Spool::Place> places;
  for (const Bytes& content : contents) {
    const auto place = spool->add(content, kc::base::sha256(content));
    REQUIRE(place);
    places.push_back(*place);
  }
  for (const size_t i : {3, 0, 2, 1}) {
    const auto back = spool->read(places[i]);
    REQUIRE(back);
    CHECK(*back == contents[i]);
  }
}

TEST_CASE("a spool has no name in its folder") {
  const TempFolder folder;
  auto spool = Spool::create(folder.path());
  REQUIRE(spool);
  REQUIRE(spool->add(Bytes{1}, kc::base::sha256(Bytes{1})));
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("what is in the file and what is yet to be written there both come back") {
  const TempFolder folder;
  auto spool = Spool::create(folder.path());
  REQUIRE(spool);
  std::vector<Bytes> contents;
  std::vector<Spool::Place> places;
  for (uint8_t i = 0; i < 10; ++i) {
    contents.emplace_back(300'000 + i, i);
    const auto place = spool->add(contents.back(), kc::base::sha256(contents.back()));
    REQUIRE(place);
    CHECK(place->digest == kc::base::sha256(contents.back()));
    places.push_back(*place);
  }
  struct stat file;
  REQUIRE(fstat(descriptor_in(folder.path()), &file) == 0);
  CHECK(file.st_size > 0);
  CHECK(file.st_size < 3'000'000);
  for (size_t i = 0; i < contents.size(); ++i) {
    const auto back = spool->read(places[i]);
    REQUIRE(back);
    CHECK(*back == contents[i]);
  }
}

TEST_CASE("loss of what was added is found") {
  const TempFolder folder;
  auto spool = Spool::create(folder.path());
  REQUIRE(spool);
  const auto place = spool->add(Bytes(2'000'000, 1), kc::base::sha256(Bytes(2'000'000, 1)));
  REQUIRE(place);
  const int fd = descriptor_in(folder.path());
  REQUIRE(fd >= 0);
  REQUIRE(ftruncate(fd, 5) == 0);
  CHECK_FALSE(spool->read(*place));
}

TEST_CASE("a folder that is not there is an error of the machine") {
  const TempFolder folder;
  const auto spool = Spool::create(folder / "missing");
  REQUIRE_FALSE(spool);
  CHECK(spool.error().kind == kc::base::ErrorKind::kEnvironment);
}

TEST_CASE("whatever operation of a spool fails its bytes are right or it says so and it leaves no name") {
  using kc::test::FaultyFileSystem;
  FaultyFileSystem faulty;
  const Bytes content(3U << 20, 7);  // more than waits in memory
  for (const int error : {ENOSPC, EIO, EDQUOT, EACCES, EMFILE, ESTALE, EINTR, EOPNOTSUPP}) {
    CAPTURE(error);
    const uint64_t points = kc::test::at_each_operation(faulty, [&](uint64_t n) {
      CAPTURE(n);
      const TempFolder folder;
      faulty.fail(n, error);
      kc::base::Result<Bytes> back;
      {
        const kc::base::ReplacedFileSystem replaced(faulty);
        back = [&]() -> kc::base::Result<Bytes> {
          KC_ASSIGN(Spool spool, Spool::create(folder.path()));
          KC_ASSIGN(const Spool::Place place, spool.add(content, kc::base::sha256(content)));
          return spool.read(place);
        }();
      }
      if (back) CHECK(*back == content);
      if (!back) CHECK(back.error().kind == kc::base::ErrorKind::kEnvironment);
      if (error == EINTR) CHECK(back);
      // Without O_TMPFILE a file with a name serves.
      if (faulty.failed() == kc::test::Operation::kOpen) CHECK(back);
      CHECK(std::filesystem::is_empty(folder.path()));
    });
    CHECK(points >= 3);
  }
}

TEST_CASE("where files cannot be made without a name a spool takes its name away") {
  kc::test::FaultyFileSystem faulty;
  const TempFolder folder;
  faulty.start();
  faulty.fail_from(1, EOPNOTSUPP, 1);
  {
    const kc::base::ReplacedFileSystem replaced(faulty);
    REQUIRE(Spool::create(folder.path()));
    CHECK(faulty.count(kc::test::Operation::kUnlink) == 1);
  }
  CHECK(std::filesystem::is_empty(folder.path()));
}
