#include "store/tier.h"

#include <doctest/doctest.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/local_tier.h"
#include "unit/store/fixture.h"

namespace kc::store::test {
namespace {

using base::Digest;
using std::chrono::milliseconds;

// A place far away: what it has is in memory, and each operation takes as long and fails as it is told. Its
// clock goes only while it works.
class DistantTier final : public Tier {
 public:
  explicit DistantTier(Patience patience) : Tier("the distant store", patience) {}

  std::map<Digest, Entry> entries;
  std::map<Digest, Record> records;
  milliseconds takes{1};
  std::optional<Flaw> flaw;  // what each operation answers with
  int asked = 0;
  std::vector<milliseconds> given;  // the time that each operation had

 private:
  std::optional<Refusal> work(Deadline deadline) {
    ++asked;
    given.push_back(std::chrono::duration_cast<milliseconds>(deadline - clock_));
    clock_ += takes;
    return flaw ? std::optional(Refusal{*flaw, "no answer"}) : std::nullopt;
  }
  Checked<std::optional<Entry>> do_get(const Digest& key, Deadline by) override {
    if (auto refusal = work(by)) return std::unexpected(*refusal);
    const auto found = entries.find(key);
    return found == entries.end() ? std::nullopt : std::optional(found->second);
  }
  Checked<std::optional<Record>> do_get_record(const Digest& request, Deadline by) override {
    if (auto refusal = work(by)) return std::unexpected(*refusal);
    const auto found = records.find(request);
    return found == records.end() ? std::nullopt : std::optional(found->second);
  }
  Checked<Held> do_holds(const Digest& key, Deadline by) override {
    if (auto refusal = work(by)) return std::unexpected(*refusal);
    return entries.contains(key) ? Held::kCode : Held::kNothing;
  }
  Checked<std::optional<Digest>> do_recorded(const Digest& request, Deadline by) override {
    if (auto refusal = work(by)) return std::unexpected(*refusal);
    const auto found = records.find(request);
    return found == records.end() ? std::nullopt : std::optional(found->second.content);
  }
  Checked<Put> do_put(const Entry& entry, Deadline by) override {
    if (auto refusal = work(by)) return std::unexpected(*refusal);
    return entries.try_emplace(entry.key, entry).second ? Put::kNew : Put::kThere;
  }
  Checked<Put> do_put_record(const Record& record, Deadline by) override {
    if (auto refusal = work(by)) return std::unexpected(*refusal);
    records[record.request] = record;
    return Put::kNew;
  }
  Checked<bool> do_remove(Kind kind, const Digest& key, Deadline by) override {
    if (auto refusal = work(by)) return std::unexpected(*refusal);
    return (kind == Kind::kEntry ? entries.erase(key) : records.erase(key)) != 0;
  }
  Checked<void> do_list(Kind, const Visit& visit, Deadline by) override {
    if (auto refusal = work(by)) return std::unexpected(*refusal);
    for (const auto& [key, entry] : entries) visit(key, entry.artifact.code.size());
    return {};
  }
  Deadline now() const override { return clock_; }

  Deadline clock_{};
};

TEST_CASE("a tier counts what it was asked for and hands each operation its deadline") {
  DistantTier tier(Patience{milliseconds(50), 3, 3});
  const Entry entry = sample_entry("a");
  CHECK_FALSE(tier.get(entry.key));
  CHECK(tier.put(entry));
  CHECK(tier.put(entry));
  CHECK(tier.put_record(sample_record("r", "a")));
  CHECK(tier.get(entry.key).has_value());
  CHECK(tier.holds(entry.key) == Held::kCode);
  CHECK(tier.recorded(key_of("r")) == key_of("a"));
  CHECK(tier.get_record(key_of("r")).has_value());
  size_t listed = 0;
  CHECK(tier.list(Kind::kEntry, milliseconds(7000), [&](const Digest&, uint64_t) { ++listed; }));
  CHECK(listed == 1);
  CHECK(tier.remove(Kind::kEntry, entry.key));
  CHECK_FALSE(tier.remove(Kind::kEntry, entry.key));
  const Counters counted = tier.counters();
  CHECK(counted.hits == 1);
  CHECK(counted.misses == 1);
  CHECK(counted.puts == 1);
  CHECK(counted.soft_errors == 0);
  CHECK(tier.trouble().empty());
  REQUIRE(tier.given.size() == 11);
  for (size_t i = 0; i < tier.given.size(); ++i) CHECK(tier.given[i] == milliseconds(i == 8 ? 7000 : 50));
}

TEST_CASE("a tier that fails again and again is not asked any more and says so once") {
  DistantTier tier(Patience{milliseconds(50), 3, 4});
  tier.entries.emplace(key_of("a"), sample_entry("a"));
  tier.flaw = Flaw::kUnreadable;
  for (int i = 0; i < 10; ++i) CHECK_FALSE(tier.get(key_of("a")));
  CHECK(tier.is_off());
  CHECK(tier.asked == 4);
  CHECK(tier.counters().soft_errors == 5);  // each failure, and that it is off
  CHECK(tier.counters().misses == 4);
  CHECK(tier.trouble() ==
        "the distant store is not asked any more in this run: 4 operations failed in a row, the last with "
        "\"no answer\"");
  tier.flaw.reset();
  CHECK_FALSE(tier.get(key_of("a")));
  CHECK_FALSE(tier.get_record(key_of("a")));
  CHECK(tier.holds(key_of("a")) == Held::kNothing);
  CHECK_FALSE(tier.recorded(key_of("a")));
  CHECK_FALSE(tier.put(sample_entry("b")));
  CHECK_FALSE(tier.put_record(sample_record("r", "a")));
  CHECK_FALSE(tier.remove(Kind::kEntry, key_of("a")));
  CHECK_FALSE(tier.list(Kind::kEntry, milliseconds(50), [](const Digest&, uint64_t) {}));
  CHECK(tier.asked == 4);
  CHECK(tier.counters().soft_errors == 5);
  CHECK(tier.counters().declined == 0);
}

TEST_CASE("a tier that is late again and again is not asked any more though its answers were used") {
  DistantTier tier(Patience{milliseconds(50), 3, 3});
  tier.entries.emplace(key_of("a"), sample_entry("a"));
  tier.takes = milliseconds(51);
  CHECK(tier.get(key_of("a")).has_value());
  CHECK(tier.holds(key_of("a")) == Held::kCode);
  CHECK_FALSE(tier.is_off());
  CHECK(tier.counters().soft_errors == 0);
  CHECK(tier.get(key_of("a")).has_value());
  CHECK(tier.is_off());
  CHECK_FALSE(tier.get(key_of("a")));
  CHECK(tier.counters().soft_errors == 1);
  CHECK(tier.trouble() ==
        "the distant store is not asked any more in this run: 3 operations in a row took too long");
}

TEST_CASE("one good answer in time forgives a tier what it failed before") {
  DistantTier tier(Patience{milliseconds(50), 2, 2});
  for (int i = 0; i < 5; ++i) {
    tier.flaw = Flaw::kUnreadable;
    CHECK_FALSE(tier.get(key_of("a")));
    tier.flaw.reset();
    CHECK_FALSE(tier.get(key_of("a")));
    tier.takes = milliseconds(60);
    CHECK_FALSE(tier.get(key_of("a")));
    tier.takes = milliseconds(50);
    CHECK_FALSE(tier.get(key_of("a")));
  }
  CHECK_FALSE(tier.is_off());
  CHECK(tier.counters().soft_errors == 5);
}

TEST_CASE("damage and newer versions are no reason to switch a tier off") {
  DistantTier tier(Patience{milliseconds(50), 2, 2});
  for (int i = 0; i < 5; ++i) {
    tier.flaw = Flaw::kDamaged;
    CHECK_FALSE(tier.get(key_of("a")));
    tier.flaw = Flaw::kNewer;
    CHECK_FALSE(tier.get(key_of("a")));
    CHECK_FALSE(tier.put(sample_entry("a")));
  }
  CHECK_FALSE(tier.is_off());
  CHECK(tier.counters().corrupt == 5);
  CHECK(tier.counters().declined == 5);
  CHECK(tier.counters().soft_errors == 0);
  CHECK(tier.trouble() == "the distant store: no answer");
}

TEST_CASE("a tier without limits of patience is asked for ever") {
  DistantTier tier(Patience{milliseconds(50), 0, 0});
  tier.flaw = Flaw::kUnreadable;
  tier.takes = milliseconds(60);
  for (int i = 0; i < 50; ++i) CHECK_FALSE(tier.get(key_of("a")));
  CHECK_FALSE(tier.is_off());
  CHECK(tier.asked == 50);
}

LocalTier make_tier(const fs::path& root, Mode mode) {
  auto layout = Layout::open(root.string(), mode == Mode::kReadOnly ? Access::kRead : Access::kMake);
  REQUIRE(layout.has_value());
  REQUIRE(layout->has_value());
  return LocalTier(std::move(**layout), mode, 0, "", Patience{});
}

TEST_CASE("a tier of this machine lists and removes what was put") {
  const TemporaryFolder folder;
  LocalTier tier = make_tier(folder / "s", Mode::kReadWrite);
  for (const char* name : {"a", "b", "c"}) {
    REQUIRE(tier.put(sample_entry(name)));
    REQUIRE(tier.put_record(sample_record(std::string("r") + name, name)));
  }
  spill(path_of(folder / "s", key_of("a")).parent_path() / "foreign", std::string("x"));
  for (const Kind kind : kKinds) {
    std::vector<Digest> keys;
    uint64_t bytes = 0;
    CHECK(tier.list(kind, milliseconds(60000), [&](const Digest& key, uint64_t size) {
      keys.push_back(key);
      bytes += size;
    }));
    CHECK(keys.size() == 3);
    CHECK(bytes >= 3 * 300);
  }
  CHECK(tier.remove(Kind::kEntry, key_of("a")));
  CHECK_FALSE(tier.remove(Kind::kEntry, key_of("a")));
  CHECK(tier.remove(Kind::kRecord, key_of("ra")));
  CHECK_FALSE(tier.get(key_of("a")));
  CHECK_FALSE(tier.get_record(key_of("ra")));
  LocalTier reader = make_tier(folder / "s", Mode::kReadOnly);
  CHECK_FALSE(reader.remove(Kind::kEntry, key_of("b")));
  CHECK_FALSE(reader.put(sample_entry("a")));
  CHECK_FALSE(reader.put_record(sample_record("ra", "a")));
  CHECK(reader.get(key_of("b")).has_value());
  CHECK_FALSE(reader.take_due());
}

TEST_CASE(
    "what was imported without a trusted signer makes way for anything better and never takes its place") {
  const TemporaryFolder folder;
  LocalTier tier = make_tier(folder / "s", Mode::kReadWrite);
  Entry unsigned_one = sample_entry("a"), signed_one = sample_entry("a"), own = sample_entry("a");
  unsigned_one.origin.imported = true;
  unsigned_one.seconds = 2;
  signed_one.origin.imported = true;
  signed_one.origin.signer = std::string(64, 'a');
  signed_one.seconds = 3;
  REQUIRE(tier.put(unsigned_one));
  CHECK(tier.put(unsigned_one));
  CHECK(tier.get(own.key)->seconds == 2);
  CHECK(tier.put(signed_one));
  CHECK(tier.get(own.key)->seconds == 3);
  CHECK(tier.put(own));
  CHECK(tier.put(unsigned_one));
  CHECK(tier.get(own.key)->seconds == 3);
  CHECK(tier.counters().puts == 2);

  Record bad = sample_record("r", "other"), good = sample_record("r", "a");
  bad.imported = true;
  REQUIRE(tier.put_record(bad));
  CHECK(tier.recorded(good.request) == key_of("other"));
  CHECK(tier.put_record(good));
  CHECK(tier.recorded(good.request) == key_of("a"));
  CHECK(tier.put_record(bad));
  CHECK(tier.recorded(good.request) == key_of("a"));
}

}  // namespace
}  // namespace kc::store::test
