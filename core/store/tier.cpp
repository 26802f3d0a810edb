#include "store/tier.h"

#include "util/text.h"

namespace kc::store {
namespace {

using base::Digest;

// An operation that the switched-off tier was not asked for: like a file of a newer version, it is not there
// for this process, and nothing is counted.
std::unexpected<Refusal> not_asked() {
  return std::unexpected(Refusal{Flaw::kNewer, "is not asked any more"});
}

}  // namespace

void Ledger::note(std::atomic<uint64_t>& count, const std::string& what) {
  ++count;
  const std::lock_guard guard(mutex_);
  if (trouble_.empty()) trouble_ = what;
}

Counters Ledger::counters() const {
  return {.hits = hits,
          .misses = misses,
          .puts = puts,
          .corrupt = corrupt,
          .soft_errors = soft_errors,
          .declined = declined,
          .saved_ms = saved_ms};
}

std::string Ledger::first_trouble() const {
  const std::lock_guard guard(mutex_);
  return trouble_;
}

std::string Tier::trouble() const {
  {
    const std::lock_guard guard(mutex_);
    if (!why_off_.empty()) return why_off_;
  }
  return ledger_.first_trouble();
}

void Tier::switch_off(const std::string& why) {
  if (off_.exchange(true)) return;
  const std::string what =
      util::format("{} is not asked any more in this run: {}", label_.empty() ? "it" : label_, why);
  {
    const std::lock_guard guard(mutex_);
    why_off_ = what;
  }
  ledger_.survived(what);
}

// An answer in time, whatever it is, shows that the tier is there again.
void Tier::judge(bool failed, bool late, const std::string& why) {
  if (!failed) failed_ = 0;
  if (!late) late_ = 0;
  if (failed && ++failed_ >= patience_.failed && patience_.failed != 0) {
    switch_off(util::format("{} failed in a row, the last with \"{}\"",
                            util::counted(patience_.failed, "operation"), why));
  }
  if (late && ++late_ >= patience_.late && patience_.late != 0) {
    switch_off(util::format("{} in a row took too long", util::counted(patience_.late, "operation")));
  }
}

template <typename Operation>
auto Tier::ask(Counting counting, std::chrono::milliseconds time, Operation operation)
    -> decltype(operation(Deadline{})) {
  if (off_) return not_asked();
  const Deadline deadline = now() + time;
  auto answer = operation(deadline);
  const bool failed = !answer && answer.error().flaw == Flaw::kUnreadable;
  if (!answer && counting == Counting::kAll) {
    if (failed) survived(answer.error().why);
    if (answer.error().flaw == Flaw::kDamaged) damaged(answer.error().why);
  }
  judge(failed, now() > deadline, failed ? answer.error().why : std::string());
  return answer;
}

std::optional<Entry> Tier::get(const Digest& key) {
  if (off_) return std::nullopt;
  auto entry = ask(Counting::kAll, patience_.operation, [&](Deadline by) { return do_get(key, by); });
  const bool is_hit = entry && *entry;
  ++(is_hit ? ledger_.hits : ledger_.misses);
  return is_hit ? std::move(*entry) : std::nullopt;
}

std::optional<Record> Tier::get_record(const Digest& request) {
  auto record =
      ask(Counting::kAll, patience_.operation, [&](Deadline by) { return do_get_record(request, by); });
  return record ? std::move(*record) : std::nullopt;
}

Held Tier::holds(const Digest& key) {
  return ask(Counting::kNothing, patience_.operation, [&](Deadline by) { return do_holds(key, by); })
      .value_or(Held::kNothing);
}

std::optional<Digest> Tier::recorded(const Digest& request) {
  return ask(Counting::kNothing, patience_.operation, [&](Deadline by) { return do_recorded(request, by); })
      .value_or(std::nullopt);
}

template <typename Operation>
bool Tier::put_with(bool is_entry, Operation operation) {
  if (off_) return false;
  const Checked<Put> put = ask(Counting::kAll, patience_.operation, operation);
  // A newer version that is in the place declines it, too.
  if (put ? *put == Put::kDeclined : put.error().flaw == Flaw::kNewer) ++ledger_.declined;
  if (is_entry && put && *put == Put::kNew) ++ledger_.puts;
  return put && *put != Put::kDeclined;
}

bool Tier::put(const Entry& entry) {
  return put_with(true, [&](Deadline by) { return do_put(entry, by); });
}

bool Tier::put_record(const Record& record) {
  return put_with(false, [&](Deadline by) { return do_put_record(record, by); });
}

bool Tier::remove(Kind kind, const Digest& key) {
  return ask(Counting::kAll, patience_.operation, [&](Deadline by) { return do_remove(kind, key, by); })
      .value_or(false);
}

bool Tier::list(Kind kind, std::chrono::milliseconds time, const Visit& visit) {
  return ask(Counting::kAll, time, [&](Deadline by) { return do_list(kind, visit, by); }).has_value();
}

}  // namespace kc::store
