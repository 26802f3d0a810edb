#include "build/spool.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

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
    const auto place = spool->add(content);
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
  REQUIRE(spool->add(Bytes{1}));
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("damage and loss of what was added are found") {
  const TempFolder folder;
  auto spool = Spool::create(folder.path());
  REQUIRE(spool);
  const auto first = spool->add(Bytes{1, 2, 3});
  const auto second = spool->add(Bytes{4, 5, 6});
  REQUIRE(first);
  REQUIRE(second);
  const int fd = descriptor_in(folder.path());
  REQUIRE(fd >= 0);
  REQUIRE(pwrite(fd, "\xFF", 1, 1) == 1);
  const auto damaged = spool->read(*first);
  REQUIRE_FALSE(damaged);
  CHECK(damaged.error().kind == kc::base::ErrorKind::kEnvironment);
  CHECK(spool->read(*second));
  REQUIRE(ftruncate(fd, 5) == 0);
  CHECK_FALSE(spool->read(*second));
}

TEST_CASE("a folder that is not there is an error of the machine") {
  const TempFolder folder;
  const auto spool = Spool::create(folder / "missing");
  REQUIRE_FALSE(spool);
  CHECK(spool.error().kind == kc::base::ErrorKind::kEnvironment);
}
