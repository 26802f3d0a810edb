// A bundle under its name is the old one or the new one, whole, whatever operation fails while it is written
// and whenever the power goes.
#include <doctest/doctest.h>

#include <cerrno>
#include <string>

#include "base/atomic_file.h"
#include "support/faulty_file_system.h"
#include "unit/bundle/bundle_support.h"

namespace kc::bundle::testing {
namespace {

using base::ReplacedFileSystem;
using kc::test::at_each_operation;
using kc::test::FaultyFileSystem;
using kc::test::Lost;
using kc::test::Operation;

constexpr int kErrors[] = {ENOSPC, EIO, EDQUOT, EACCES, EMFILE, ESTALE, EINTR, ENOLCK};

// As core/build packs: a temporary file beside the bundle, written, then given its name.
base::Result<void> pack(const Input& input, const std::string& path) {
  KC_ASSIGN(base::AtomicFile file, base::AtomicFile::create(AT_FDCWD, path, 0666));
  KC_TRY(write_bundle(
      file.descriptor(), input.info, input.records, [&](size_t i) { return input.artifacts[i]; },
      input.options));
  return file.commit(base::Sync::kFull);
}

Input old_input() {
  Input input;
  input.add(make_record("old", "", "sm_90"), code_object(77));
  return input;
}

struct Fixture {
  Folder folder;
  std::string path = folder / "k.kcb";
  Input before = old_input();
  Input after = small_input();
  base::Bytes old_bytes, new_bytes;

  Fixture() {
    after.options.threads = 1;  // so that operations have an order
    REQUIRE(pack(after, path));
    new_bytes = read_all(path);
    reset();
    old_bytes = read_all(path);
    REQUIRE(old_bytes != new_bytes);
  }
  void reset() const { REQUIRE(pack(before, path)); }
  // Old or new, and new when that was said.
  void check(bool is_packed) const {
    const base::Bytes now = read_all(path);
    CHECK((now == new_bytes || (!is_packed && now == old_bytes)));
    CHECK(faults_of(path).empty());
  }
};

size_t files_beside(const std::string& path) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(base::parent_path(path))) {
    count += entry.path() != path ? 1 : 0;
  }
  return count;
}

}  // namespace

TEST_CASE("whatever operation fails while a bundle is written its name leads to a whole one") {
  const Fixture fixture;
  FaultyFileSystem faulty;
  for (const int error : kErrors) {
    CAPTURE(error);
    const uint64_t points = at_each_operation(faulty, [&](uint64_t n) {
      CAPTURE(n);
      fixture.reset();
      faulty.start();
      faulty.fail(n, error);
      base::Result<void> packed;
      {
        const ReplacedFileSystem replaced(faulty);
        packed = pack(fixture.after, fixture.path);
      }
      fixture.check(packed.has_value());
      if (!packed) {
        CHECK(packed.error().kind == base::ErrorKind::kEnvironment);
        CHECK_FALSE(packed.error().message.empty());
      }
      if (error == EINTR && faulty.failed() && kc::test::can_be_interrupted(*faulty.failed())) CHECK(packed);
      if (faulty.failed() != Operation::kUnlink) CHECK(files_beside(fixture.path) == 0);
    });
    CHECK(points > 10);
  }
}

TEST_CASE("short reads and writes and interruptions give the same bundle") {
  const Fixture fixture;
  FaultyFileSystem faulty;
  faulty.start();
  faulty.hinder();
  {
    const ReplacedFileSystem replaced(faulty);
    REQUIRE(pack(fixture.after, fixture.path));
    CHECK(faults_of(fixture.path).empty());
  }
  fixture.check(true);
}

TEST_CASE("after a power cut the bundle is the old one or the new one and the new one once that was said") {
  const Fixture fixture;
  FaultyFileSystem faulty;
  for (const Lost lost : kc::test::kLosses) {
    CAPTURE(static_cast<int>(lost));
    const uint64_t points = at_each_operation(faulty, [&](uint64_t n) {
      CAPTURE(n);
      const Folder morgue;
      fixture.reset();
      faulty.start();
      faulty.cut_power(n, morgue / ".");
      bool is_packed = false;
      {
        const ReplacedFileSystem replaced(faulty);
        is_packed = pack(fixture.after, fixture.path).has_value();
      }
      faulty.lose(lost);
      fixture.check(is_packed);
      for (const auto& entry : std::filesystem::directory_iterator(base::parent_path(fixture.path))) {
        if (entry.path() != fixture.path) std::filesystem::remove(entry.path());
      }
    });
    CHECK(points > 10);
  }
}

}  // namespace kc::bundle::testing
