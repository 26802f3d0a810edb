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

Repro sample_repro() {
  Repro repro;
  repro.output = {'s', 'a', 'i', 'd'};
  repro.inputs = {{"k.loom", {'k'}}, {"lib/sub/l.loom", {'l'}}, {"lib/m.loom", {}}};
  repro.manifest = "version: 1\n";
  repro.command = "kc build\n";
  return repro;
}

TEST_CASE("all that is needed to see a failure again lies in the folder of its key") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  const auto store = open_store(root);
  const std::string kept = store->keep_repro(key_of("a"), sample_repro());
  const fs::path path = root / "v1/repro" / key_of("a").hex();
  CHECK(kept == path.string());
  CHECK(base::as_text(slurp(path / "output.txt")) == "said");
  CHECK(base::as_text(slurp(path / "kernels.yaml")) == "version: 1\n");
  CHECK(base::as_text(slurp(path / "command.txt")) == "kc build\n");
  CHECK(base::as_text(slurp(path / "inputs/k.loom")) == "k");
  CHECK(base::as_text(slurp(path / "inputs/lib/sub/l.loom")) == "l");
  CHECK(slurp(path / "inputs/lib/m.loom").empty());
  CHECK(fs::exists(path / "inputs/lib/m.loom"));
  // Another failure of the key leaves nothing of the first.
  Repro other = sample_repro();
  other.inputs = {{"other.loom", {'o'}}};
  other.output.clear();
  CHECK_FALSE(store->keep_repro(key_of("a"), other).empty());
  CHECK(names_in(path / "inputs") == std::vector<std::string>{"other.loom"});
  CHECK_FALSE(fs::exists(path / "output.txt"));
  CHECK(store->counters().soft_errors == 0);
}

TEST_CASE("an input that would lie outside the folder is refused and nothing is written") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  const auto store = open_store(root);
  uint64_t refused = 0;
  for (const std::string& path :
       {std::string("../x"), std::string("a/../../x"), std::string("/x"), std::string(), std::string("a//b"),
        std::string("./a"), std::string("a/"), std::string(".."), std::string("a\0b", 3)}) {
    CAPTURE(path);
    Repro repro = sample_repro();
    repro.inputs = {{path, {'x'}}};
    CHECK(store->keep_repro(key_of("a"), repro).empty());
    CHECK(store->counters().soft_errors == ++refused);
    CHECK_FALSE(fs::exists(root / "v1/repro"));
  }
}

TEST_CASE("old folders go with all that is in them and links in them lead nowhere") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s", repro = root / "v1/repro", outside = folder / "outside";
  fs::create_directory(outside);
  spill(outside / "keep", std::string("keep"));
  const auto store = open_store(root);
  for (int i = 0; i < 22; ++i) {
    const base::Digest key = key_of(std::to_string(i));
    REQUIRE_FALSE(store->keep_repro(key, sample_repro()).empty());
    if (i == 0) fs::create_directory_symlink(outside, repro / key.hex() / "inputs/link");
    set_age(repro / key.hex(), 1000 - i);
  }
  CHECK(names_in(repro).size() == kReprosKept);
  CHECK_FALSE(fs::exists(repro / key_of("1").hex()));
  CHECK(fs::exists(outside / "keep"));
  // A folder that is a link is not written through.
  fs::remove_all(repro / key_of("5").hex());
  fs::create_directory_symlink(outside, repro / key_of("5").hex());
  CHECK_FALSE(store->keep_repro(key_of("5"), sample_repro()).empty());
  CHECK(names_in(outside) == std::vector<std::string>{"keep"});
  CHECK_FALSE(fs::is_symlink(repro / key_of("5").hex()));
}

}  // namespace
}  // namespace kc::store::test
