// A store that is filled by many short processes, as a CI machine's is: nobody keeps a total anywhere, each
// put draws whether its process collects, and still the limit holds.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

#include "store/collector.h"
#include "unit/store/fixture.h"

namespace kc::store::test {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KC_IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define KC_IS_SANITIZED 1
#endif
#endif
#ifdef KC_IS_SANITIZED
constexpr bool kIsSanitized = true;
#else
constexpr bool kIsSanitized = false;
#endif

// The limit is 64 MiB for 100,000 puts, and shrinks with them: what matters is how often it is filled, and
// how many processes draw. A sanitizer makes a process ten times as dear.
struct Form {
  uint64_t limit;
  int puts;
};
Form form() {
  const char* is_long = std::getenv("KC_TEST_LONG");
  const int shorter = (is_long != nullptr && std::string(is_long) == "1" ? 1 : 10) * (kIsSanitized ? 10 : 1);
  return {(64ULL << 20) / static_cast<uint64_t>(shorter), 100'000 / shorter};
}

constexpr int kPutsPerProcess = 5;
constexpr uint64_t kEntryBytes = 8192;

// An entry that takes two blocks of 4 KiB, with code that does not compress.
Entry small_entry(int number) {
  Entry entry = sample_entry(std::to_string(number));
  std::mt19937_64 random(static_cast<uint64_t>(number));
  entry.artifact.code.resize(7000);
  for (size_t i = 0; i < entry.artifact.code.size(); i += 8) {
    const uint64_t bits = random();
    std::memcpy(entry.artifact.code.data() + i, &bits, sizeof bits);
  }
  return entry;
}

// One process: some puts, then what a build does at its end. False when a put failed.
bool put_in_process(const fs::path& root, uint64_t limit, int first) {
  const pid_t child = fork();
  if (child == 0) {
    bool all = true;
    {
      const auto store = open_store(root, Mode::kReadWrite, limit);
      for (int i = 0; i < kPutsPerProcess; ++i) all = store->put(small_entry(first + i)) && all;
      store->collect_if_due();
      all = all && store->counters().soft_errors == 0;
    }
    _exit(all ? 0 : 1);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

// What `du` would say of all entries.
uint64_t entry_bytes(const Layout& layout) {
  uint64_t sum = 0;
  for (unsigned shard = 0; shard < kShards; ++shard) {
    const auto visited =
        visit_shard(layout, Kind::kEntry, shard, [&](int folder, const char* name, const base::Digest&) {
          struct stat status;
          if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0) sum += counted_bytes(status);
        });
    REQUIRE(visited.has_value());
  }
  return sum;
}

struct Outcome {
  uint64_t most = 0;  // that can have been there at any moment
  double mean = 0;    // of samples
};

// Ends early once `enough` bytes are there.
Outcome run(const fs::path& root, uint64_t limit, int puts, uint64_t enough) {
  open_store(root);
  // Else every process would set up libcrypto for itself, which takes longer than five puts.
  (void)small_entry(0);
  const auto layout = Layout::open(root.string(), Access::kRead);
  REQUIRE(layout.has_value());
  // So many processes between two looks put a sixteenth of the limit that is meant.
  const int processes = std::max(1, puts / 1000);
  Outcome out;
  uint64_t last = 0;
  double sum = 0;
  int samples = 0, done = 0;
  while (done < puts && last <= enough) {
    const int before = done;
    for (int i = 0; i < processes; ++i, done += kPutsPerProcess) {
      REQUIRE(put_in_process(root, limit, done));
    }
    // Between two looks there was never more than at the first with all that was put since.
    out.most = std::max(out.most, last + static_cast<uint64_t>(done - before) * kEntryBytes);
    last = entry_bytes(**layout);
    if (before == 0) CHECK(last == static_cast<uint64_t>(done) * kEntryBytes);
    sum += static_cast<double>(last);
    ++samples;
  }
  out.mean = sum / samples;
  return out;
}

TEST_CASE("processes of five puts keep a store below 1.5 times its limit and on average below it") {
  const Form form = test::form();
  const TemporaryFolder folder;
  const Outcome outcome = run(folder / "s", form.limit, form.puts, ~0ULL);
  const auto limit = static_cast<double>(form.limit);
  MESSAGE("at most " << static_cast<double>(outcome.most) / limit << " of the limit, on average "
                     << outcome.mean / limit);
  CHECK(static_cast<double>(outcome.most) <= 1.5 * limit);
  CHECK(outcome.mean <= limit);
  CHECK(outcome.mean >= 0.5 * limit);  // and it is used
}

TEST_CASE("the same puts without collections exceed 10 times that limit") {
  const Form form = test::form();
  const TemporaryFolder folder;
  const Outcome outcome = run(folder / "s", 0, form.puts, 10 * form.limit);
  MESSAGE("at most " << static_cast<double>(outcome.most) / static_cast<double>(form.limit));
  CHECK(outcome.most > 10 * form.limit);
}

}  // namespace
}  // namespace kc::store::test
