#include "store/repro.h"

#include <doctest/doctest.h>

#include "unit/store/fixture.h"

namespace kc::store::test {
namespace {

TEST_CASE("what a failed compile said is kept under its key and the newest 20 are") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s", repro = root / "v1/repro";
  const auto store = open_store(root);
  for (int i = 0; i < 25; ++i) {
    const base::Digest key = key_of(std::to_string(i));
    const std::string path = store->keep_output(key, base::as_bytes("said " + std::to_string(i)));
    CHECK(path == (repro / key.hex() / "output.txt").string());
    CHECK(base::as_text(slurp(path)) == "said " + std::to_string(i));
    set_age(repro / key.hex(), 1000 - i);
    if (i == 0) fs::create_directory(repro / "notes");
  }
  CHECK(names_in(repro).size() == kReprosKept + 1);
  CHECK(fs::exists(repro / "notes"));
  CHECK_FALSE(fs::exists(repro / key_of("4").hex()));
  CHECK(fs::exists(repro / key_of("5").hex()));
  CHECK(store->keep_output(key_of("5"), base::as_bytes("again")) != "");
  CHECK(base::as_text(slurp(repro / key_of("5").hex() / "output.txt")) == "again");
}

TEST_CASE("output that cannot be kept is a soft error and a read only store keeps none") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  const auto store = open_store(root);
  fs::create_directory_symlink(root, root / "v1/repro");
  CHECK(store->keep_output(key_of("a"), base::as_bytes("x")).empty());
  CHECK(store->counters().soft_errors == 1);
  fs::remove(root / "v1/repro");
  CHECK(open_store(root, Mode::kReadOnly)->keep_output(key_of("a"), base::as_bytes("x")).empty());
  CHECK_FALSE(fs::exists(root / "v1/repro"));
}

}  // namespace
}  // namespace kc::store::test
