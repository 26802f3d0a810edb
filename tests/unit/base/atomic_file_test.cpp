#include "base/atomic_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/temp_folder.h"

using namespace kc::base;
using kc::test::content_of;
using kc::test::TempFolder;

namespace {

std::vector<std::string> names_in(const TempFolder& folder) {
  return list_directory(AT_FDCWD, folder.path()).value();
}

}  // namespace

TEST_CASE("a name leads to the old content until commit and to the new one after it") {
  const TempFolder folder;
  const std::string path = folder.write("out", "old");
  for (const Sync sync : {Sync::kNone, Sync::kFull}) {
    folder.write("out", "old");
    auto file = AtomicFile::create(AT_FDCWD, path, 0644);
    REQUIRE(file.has_value());
    CHECK(file->write(as_bytes("ne")).has_value());
    CHECK(file->write(as_bytes("w")).has_value());
    CHECK(content_of(path) == "old");
    CHECK(file->commit(sync).has_value());
    CHECK(content_of(path) == "new");
    CHECK(names_in(folder) == std::vector<std::string>{"out"});
  }
}

TEST_CASE("without commit the temporary file is removed and the old content stays") {
  const TempFolder folder;
  const std::string path = folder.write("out", "old");
  {
    auto file = AtomicFile::create(AT_FDCWD, path, 0644);
    REQUIRE(file.has_value());
    CHECK(file->write(as_bytes("new")).has_value());
    CHECK(names_in(folder).size() == 2);
    const AtomicFile moved = std::move(*file);  // still one owner
    CHECK(names_in(folder).size() == 2);
  }
  CHECK(names_in(folder) == std::vector<std::string>{"out"});
  CHECK(content_of(path) == "old");
}

TEST_CASE("names are relative to the directory that was opened") {
  const TempFolder folder;
  const FileDescriptor directory = open_at(AT_FDCWD, folder.path(), O_RDONLY | O_DIRECTORY).value();
  auto file = AtomicFile::create(directory.get(), "out", 0444);
  REQUIRE(file.has_value());
  CHECK(file->write(as_bytes("x")).has_value());
  CHECK(names_in(folder).front().starts_with(".out.kc-tmp-"));
  CHECK(file->commit(Sync::kFull).has_value());
  CHECK(content_of(folder / "out") == "x");
  struct stat status {};
  REQUIRE(stat((folder / "out").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0444);
}

TEST_CASE("a commit that fails leaves no temporary file") {
  const TempFolder folder;
  folder.write("out/inside", "");  // a directory cannot be replaced by a file
  {
    auto file = AtomicFile::create(AT_FDCWD, folder / "out", 0644);
    REQUIRE(file.has_value());
    const auto result = file->commit(Sync::kNone);
    REQUIRE_FALSE(result.has_value());
    CHECK(result.error().kind == ErrorKind::kEnvironment);
  }
  CHECK(names_in(folder) == std::vector<std::string>{"out"});
}

TEST_CASE("a folder that is missing is an error of the environment") {
  const TempFolder folder;
  const auto file = AtomicFile::create(AT_FDCWD, folder / "missing/out", 0644);
  REQUIRE_FALSE(file.has_value());
  CHECK(file.error().kind == ErrorKind::kEnvironment);
}

TEST_CASE("a name of the longest length that a directory takes can be written") {
  const TempFolder folder;
  const std::string name(255, 'n');
  auto file = AtomicFile::create(AT_FDCWD, folder / name, 0644);
  REQUIRE(file.has_value());
  CHECK(file->commit(Sync::kNone).has_value());
  CHECK(names_in(folder) == std::vector<std::string>{name});
}

TEST_CASE("unique names differ between threads and calls") {
  std::vector<std::vector<std::string>> made(4);
  {
    std::vector<std::jthread> threads;
    for (auto& names : made) {
      threads.emplace_back([&names] {
        for (int i = 0; i < 100; ++i) names.push_back(unique_name("t-"));
      });
    }
  }
  std::set<std::string> all;
  for (const auto& names : made) all.insert(names.begin(), names.end());
  CHECK(all.size() == 400);
  CHECK(all.begin()->starts_with("t-"));
  CHECK(random_u64() != random_u64());
}
