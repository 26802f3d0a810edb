// One place where entries and records lie: a folder of this machine (local_tier.h) or, later, a server. A
// Store looks into its own tier first and then into those under it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/digest.h"
#include "store/frozen.h"
#include "store/layout.h"
#include "store/store.h"

namespace kc::store {

/// What happened in one place, and the first trouble in words. Thread-safe.
class Ledger {
 public:
  /// Counts one soft error.
  void survived(const std::string& what) { note(soft_errors, what); }
  /// Counts one damaged file.
  void damaged(const std::string& what) { note(corrupt, what); }

  Counters counters() const;
  std::string first_trouble() const;

  std::atomic<uint64_t> hits{0}, misses{0}, puts{0}, declined{0}, saved_ms{0};

 private:
  void note(std::atomic<uint64_t>& count, const std::string& what);

  std::atomic<uint64_t> corrupt{0}, soft_errors{0};
  mutable std::mutex mutex_;
  std::string trouble_;  // guarded by mutex_
};

/// How long a tier is waited for, and how often it may fail, before this process does without it.
struct Patience {
  std::chrono::milliseconds operation{10'000};  // the deadline of one operation, but list()
  // So many operations one after another that ended after their deadline, or that the place refused, switch
  // the tier off; 0: never.
  unsigned late = 3;
  unsigned failed = 3;
};

/// A derived class does the operations (`do_...`); this one measures, counts and switches off. Whatever goes
/// wrong is an answer like "nothing there", never an error. Any thread may call; a derived class must allow
/// that.
class Tier {
 public:
  using Clock = std::chrono::steady_clock;
  using Deadline = Clock::time_point;

  /// `label` is what the tier is called where its troubles are told; empty for the user's own.
  Tier(std::string label, Patience patience) : label_(std::move(label)), patience_(patience) {}
  virtual ~Tier() = default;
  Tier(const Tier&) = delete;
  Tier& operator=(const Tier&) = delete;

  /// A verified entry or record, or nothing.
  std::optional<Entry> get(const base::Digest& key);
  std::optional<Record> get_record(const base::Digest& request);
  /// As Store::holds() and Store::recorded(): nothing is moved, and only a tier that is switched off is
  /// counted.
  Held holds(const base::Digest& key);
  std::optional<base::Digest> recorded(const base::Digest& request);
  /// True when it is there afterwards.
  bool put(const Entry& entry);
  bool put_record(const Record& record);
  /// False when there was none, or it could not be removed.
  bool remove(Kind kind, const base::Digest& key);
  /// Calls `visit` for everything of a kind that is there by its name; false when some of it may be missing.
  /// The tier should be done after `time`.
  using Visit = std::function<void(const base::Digest& key, uint64_t bytes)>;
  bool list(Kind kind, std::chrono::milliseconds time, const Visit& visit);

  /// Of this tier alone: `hits` and `misses` of get(), `puts` of put().
  Counters counters() const { return ledger_.counters(); }
  /// The first trouble in words, or why it is switched off; empty when there was none.
  std::string trouble() const;
  /// Nothing is asked of it any more.
  bool is_off() const { return off_; }

 protected:
  enum class Put : uint8_t { kNew, kThere, kDeclined };

  // An operation comes back by its deadline where it can. A Refusal says in `why` what it is about.
  virtual Checked<std::optional<Entry>> do_get(const base::Digest& key, Deadline deadline) = 0;
  virtual Checked<std::optional<Record>> do_get_record(const base::Digest& request, Deadline deadline) = 0;
  virtual Checked<Held> do_holds(const base::Digest& key, Deadline deadline) = 0;
  virtual Checked<std::optional<base::Digest>> do_recorded(const base::Digest& request,
                                                           Deadline deadline) = 0;
  virtual Checked<Put> do_put(const Entry& entry, Deadline deadline) = 0;
  virtual Checked<Put> do_put_record(const Record& record, Deadline deadline) = 0;
  virtual Checked<bool> do_remove(Kind kind, const base::Digest& key, Deadline deadline) = 0;
  virtual Checked<void> do_list(Kind kind, const Visit& visit, Deadline deadline) = 0;
  virtual Deadline now() const { return Clock::now(); }

  // For what an operation met besides its answer.
  void survived(const std::string& what) { ledger_.survived(told(what)); }
  void damaged(const std::string& what) { ledger_.damaged(told(what)); }

 private:
  enum class Counting : uint8_t { kAll, kNothing };
  template <typename Operation>
  auto ask(Counting counting, std::chrono::milliseconds time, Operation operation)
      -> decltype(operation(Deadline{}));
  template <typename Operation>
  bool put_with(bool is_entry, Operation operation);
  void judge(bool failed, bool late, const std::string& why);
  void switch_off(const std::string& why);
  std::string told(const std::string& what) const { return label_.empty() ? what : label_ + ": " + what; }

  const std::string label_;
  const Patience patience_;
  Ledger ledger_;
  std::atomic<unsigned> late_{0}, failed_{0};  // one after another
  std::atomic<bool> off_{false};
  mutable std::mutex mutex_;
  std::string why_off_;  // guarded by mutex_
};

}  // namespace kc::store
