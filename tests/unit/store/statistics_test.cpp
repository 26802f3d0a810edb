#include "store/statistics.h"

#include <doctest/doctest.h>

#include "unit/store/fixture.h"

namespace kc::store::test {
namespace {

Layout make_layout(const fs::path& root) {
  auto layout = Layout::open(root.string(), Access::kMake);
  REQUIRE(layout.has_value());
  REQUIRE(layout->has_value());
  return std::move(**layout);
}

TEST_CASE("tallies of many processes add up before and after they are folded") {
  const TemporaryFolder folder;
  const Layout layout = make_layout(folder / "s");
  CHECK(read_tallies(layout) == Counters{});
  write_tally(layout, {});
  CHECK(names_in(folder / "s/v1/stats.d").empty());
  for (int i = 0; i < 3; ++i) {
    write_tally(
        layout,
        {.hits = 1, .misses = 2, .puts = 3, .corrupt = 4, .soft_errors = 5, .declined = 6, .saved_ms = 7});
  }
  const Counters sum{
      .hits = 3, .misses = 6, .puts = 9, .corrupt = 12, .soft_errors = 15, .declined = 18, .saved_ms = 21};
  CHECK(read_tallies(layout) == sum);
  CHECK(names_in(folder / "s/v1/stats.d").size() == 3);
  fold_tallies(layout);
  CHECK(names_in(folder / "s/v1/stats.d") == std::vector<std::string>{"total"});
  CHECK(read_tallies(layout) == sum);
  write_tally(layout, {.hits = 1});
  fold_tallies(layout);
  CHECK(read_tallies(layout).hits == 4);
}

TEST_CASE("files of counters that make no sense count nothing") {
  const TemporaryFolder folder;
  const Layout layout = make_layout(folder / "s");
  const fs::path stats = folder / "s/v1/stats.d";
  const std::string name = "1-0-0123456789abcde";
  spill(stats / (name + "0"), std::string("hits many\n"));
  spill(stats / (name + "1"), std::string("hits 99999999999999999999\n"));
  spill(stats / (name + "2"), std::string(5000, 'x'));
  spill(stats / (name + "3"), std::string("hits 7\nunknown 1\nhitsx 4\n"));
  spill(stats / "foreign", std::string("hits 100\n"));
  fs::create_symlink(stats / "foreign", stats / (name + "4"));
  CHECK(read_tallies(layout) == Counters{.hits = 7});
}

TEST_CASE("a store leaves its counters once when it closes and a read only one none") {
  const TemporaryFolder folder;
  const fs::path root = folder / "s";
  {
    const auto store = open_store(root);
    CHECK(store->put(sample_entry("a")));
    CHECK(store->get(key_of("a")).has_value());
  }
  const Counters once{.hits = 1, .puts = 1, .saved_ms = 1500};
  CHECK(read_tallies(make_layout(root)) == once);
  open_store(root);
  open_store(root, Mode::kReadOnly)->get(key_of("a"));
  CHECK(read_tallies(make_layout(root)) == once);
}

}  // namespace
}  // namespace kc::store::test
