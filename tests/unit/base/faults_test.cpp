// What becomes of a file that is written atomically when one operation goes wrong, and after a power cut.
#include <doctest/doctest.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "base/atomic_file.h"
#include "support/faulty_file_system.h"
#include "support/temp_folder.h"

namespace {

using kc::base::AtomicFile;
using kc::base::ReplacedFileSystem;
using kc::base::Result;
using kc::base::Sync;
using kc::test::at_each_operation;
using kc::test::content_of;
using kc::test::FaultyFileSystem;
using kc::test::Lost;
using kc::test::Operation;
using kc::test::TempFolder;

constexpr int kErrors[] = {ENOSPC, EIO, EDQUOT, EACCES, EMFILE, ESTALE, EINTR, ENOLCK};

Result<void> write_new(const std::string& path, Sync sync) {
  KC_ASSIGN(AtomicFile file, AtomicFile::create(AT_FDCWD, path, 0600));
  KC_TRY(file.write(kc::base::as_bytes("new, ")));
  KC_TRY(file.write(kc::base::as_bytes("and longer than the old")));
  return file.commit(sync);
}
constexpr const char* kNew = "new, and longer than the old";

size_t files_in(const std::string& folder) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

}  // namespace

TEST_CASE("whatever operation of an atomic write fails the name leads to the old content or the new") {
  FaultyFileSystem faulty;
  for (const int error : kErrors) {
    CAPTURE(error);
    const uint64_t points = at_each_operation(faulty, [&](uint64_t n) {
      CAPTURE(n);
      const TempFolder folder;
      const std::string path = folder.write("f", "old");
      faulty.fail(n, error);
      Result<void> written;
      {
        const ReplacedFileSystem replaced(faulty);
        written = write_new(path, Sync::kFull);
      }
      const std::string content = content_of(path);
      CHECK((content == "old" || content == kNew));
      if (written) CHECK(content == kNew);
      if (!written) CHECK_FALSE(written.error().message.empty());
      // Interrupted is not failed.
      if (error == EINTR && faulty.failed() && *faulty.failed() != Operation::kRename) CHECK(written);
      if (faulty.failed() != Operation::kUnlink) CHECK(files_in(folder.path()) == 1);
    });
    CHECK(points >= 7);
  }
}

TEST_CASE("short writes and interruptions do not change what is written") {
  const TempFolder folder;
  const std::string path = folder / "f";
  FaultyFileSystem faulty;
  faulty.start();
  faulty.hinder();
  const ReplacedFileSystem replaced(faulty);
  REQUIRE(write_new(path, Sync::kFull));
  const auto read = kc::base::read_file(path, 100);
  REQUIRE(read);
  CHECK(kc::base::as_text(*read) == kNew);
  CHECK(faulty.count(Operation::kWrite) > 4);
  CHECK(faulty.count(Operation::kRead) > 4);
}

TEST_CASE("a replacement whose answer is lost is there all the same") {
  FaultyFileSystem faulty;
  at_each_operation(faulty, [&](uint64_t n) {
    CAPTURE(n);
    const TempFolder folder;
    const std::string path = folder.write("f", "old");
    faulty.lose_answer(n);
    const ReplacedFileSystem replaced(faulty);
    const auto written = write_new(path, Sync::kFull);
    if (faulty.failed() == Operation::kRename) CHECK(content_of(path) == kNew);
    if (!written) CHECK(faulty.failed() == Operation::kRename);
    CHECK(files_in(folder.path()) == 1);
  });
}

TEST_CASE("after a power cut an atomic file is the old one or the new one and after commit the new one") {
  FaultyFileSystem faulty;
  uint64_t old_ones = 0;
  for (const Lost lost : kc::test::kLosses) {
    CAPTURE(static_cast<int>(lost));
    const uint64_t points = at_each_operation(faulty, [&](uint64_t n) {
      CAPTURE(n);
      const TempFolder folder;
      const TempFolder morgue;
      const std::string path = folder.write("f", "old");
      faulty.cut_power(n, morgue.path());
      bool is_committed = false;
      {
        const ReplacedFileSystem replaced(faulty);
        is_committed = write_new(path, Sync::kFull).has_value();
      }
      faulty.lose(lost);
      const std::string content = content_of(path);
      CHECK((content == "old" || content == kNew));
      if (is_committed) CHECK(content == kNew);
      if (content == "old") ++old_ones;
    });
    CHECK(points >= 7);
  }
  CHECK(old_ones > 0);
}

TEST_CASE("a power cut tears what was written without a sync or takes its name") {
  FaultyFileSystem faulty;
  const std::string expected[] = {"", std::string(std::string(kNew).size(), '\0'), "old", "old"};
  for (const Lost lost : kc::test::kLosses) {
    CAPTURE(static_cast<int>(lost));
    const TempFolder folder;
    const TempFolder morgue;
    const std::string path = folder.write("f", "old");
    faulty.start();
    faulty.cut_power(1'000, morgue.path());
    {
      const ReplacedFileSystem replaced(faulty);
      REQUIRE(write_new(path, Sync::kNone));
    }
    faulty.lose(lost);
    CHECK(content_of(path) == expected[static_cast<size_t>(lost)]);
  }
}
