#include <doctest/doctest.h>

#include "store/frozen.h"
#include "store/sealed.h"
#include "unit/store/fixture.h"

namespace kc::store::test {
namespace {

using base::Bytes;

const base::Digest kId = base::sha256("manifest and output");

fs::path state_path(const fs::path& root) {
  return root / "v1/state" / kId.hex();
}

TEST_CASE("a state is loaded as it was saved and replaced by the next") {
  const TemporaryFolder folder;
  const auto store = open_store(folder / "s");
  CHECK_FALSE(store->load_state(kId));
  for (const std::string& text : {std::string("first"), std::string(), std::string(100'000, 'x')}) {
    CHECK(store->save_state(kId, base::as_bytes(text)));
    const auto back = open_store(folder / "s", Mode::kReadOnly)->load_state(kId);
    REQUIRE(back.has_value());
    CHECK(base::as_text(*back) == text);
  }
  CHECK(names_in(folder / "s/v1/tmp").empty());
  CHECK(names_in(folder / "s/v1/state").size() == 1);
}

TEST_CASE("every byte flip and every truncation of a state is found") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  const auto store = open_store(root);
  REQUIRE(store->save_state(kId, base::as_bytes("what the last build saw")));
  Bytes bytes = slurp(state_path(root));
  for (size_t at = 0; at < bytes.size(); ++at) {
    bytes[at] ^= 0xff;
    spill(state_path(root), bytes);
    REQUIRE_FALSE(store->load_state(kId));
    bytes[at] ^= 0xff;
    spill(state_path(root), base::ByteView(bytes).first(at));
    REQUIRE_FALSE(store->load_state(kId));
  }
  CHECK(store->counters().corrupt == 2 * bytes.size());
  CHECK(store->save_state(kId, base::as_bytes("new")));
  CHECK(store->load_state(kId).has_value());
}

TEST_CASE("a state under another name or of another kind or version is ignored") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  const auto store = open_store(root);
  const base::Digest other = base::sha256("other");
  REQUIRE(store->save_state(other, base::as_bytes("x")));
  fs::rename(root / "v1/state" / other.hex(), state_path(root));
  CHECK_FALSE(store->load_state(kId));
  spill(state_path(root), seal(kFailureMagic, kId, base::as_bytes("x")));
  CHECK_FALSE(store->load_state(kId));
  CHECK(store->counters().corrupt == 2);
  spill(state_path(root), build_header(kStateMagic, kVersion + 1, 0, Bytes(64, 1), 0));
  CHECK_FALSE(store->load_state(kId));
  CHECK(store->counters().corrupt == 2);
  spill(state_path(root), build_header(kStateMagic, kVersion, 0, Bytes(65, 1), 0));
  CHECK_FALSE(store->load_state(kId));
  CHECK(store->counters().corrupt == 3);
}

TEST_CASE("a sealed file larger than its reader accepts is refused before memory is taken") {
  const TemporaryFolder folder;
  const Bytes bytes = seal(kStateMagic, kId, Bytes(100));
  spill(folder / "f", bytes);
  const auto fd = base::open_at(AT_FDCWD, folder / "f", O_RDONLY);
  REQUIRE(fd.has_value());
  CHECK(unseal(fd->get(), kStateMagic, kId, bytes.size(), 100).has_value());
  CHECK_FALSE(unseal(fd->get(), kStateMagic, kId, bytes.size(), 99).has_value());
}

TEST_CASE("loading a state sets its time of last use at most once a day") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  const auto store = open_store(root);
  REQUIRE(store->save_state(kId, base::as_bytes("x")));
  set_age(state_path(root), 80'000);
  CHECK(store->load_state(kId).has_value());
  CHECK(age_of(state_path(root)) >= 80'000);
  set_age(state_path(root), 90'000);
  CHECK(open_store(root, Mode::kReadOnly)->load_state(kId).has_value());
  CHECK(age_of(state_path(root)) >= 90'000);
  CHECK(store->load_state(kId).has_value());
  CHECK(age_of(state_path(root)) < 60);
}

}  // namespace
}  // namespace kc::store::test
