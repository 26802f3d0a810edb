// The store in a folder of this machine and those under it, as store.cpp (entries and records) and
// local_files.cpp (everything else) implement it. Inner to core/store.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/digest.h"
#include "base/error.h"
#include "store/key_locks.h"
#include "store/local_tier.h"
#include "store/store.h"
#include "store/tier.h"

namespace kc::store {

/// A store in a folder of this machine and those under it. There is no own tier when the mode is kOff, or
/// kReadOnly and the folder is not there; no tier at all means that everything is a miss.
class LocalStore final : public Store {
 public:
  using Tiers = std::vector<std::unique_ptr<LocalTier>>;
  LocalStore(Options options, std::unique_ptr<LocalTier> own, Tiers under, std::unique_ptr<KeyLocks> locks);
  ~LocalStore() override { save_counters(); }

  std::optional<Entry> get(const base::Digest& key) override;
  void found_later(double seconds) override;
  bool put(const Entry& entry) override;
  Held holds(const base::Digest& key) override;
  void touch(const std::vector<base::Digest>& keys) override {
    if (own_ != nullptr) own_->touch(Kind::kEntry, keys);
  }
  std::optional<Record> get_record(const base::Digest& request) override;
  bool put_record(const Record& record) override;
  std::optional<base::Digest> recorded(const base::Digest& request) override;
  void touch_records(const std::vector<base::Digest>& requests) override {
    if (own_ != nullptr) own_->touch(Kind::kRecord, requests);
  }
  KeyLocks* locks() override { return locks_.get(); }
  void remember_failure(const base::Digest& key, base::ByteView what) override;
  std::optional<base::Bytes> recent_failure(const base::Digest& key) override;
  std::string keep_output(const base::Digest& key, base::ByteView output) override;
  std::string keep_repro(const base::Digest& key, const Repro& repro) override;
  base::Result<std::string> make_work_folder() override;
  std::optional<base::Bytes> load_state(const base::Digest& id) override;
  bool save_state(const base::Digest& id, base::ByteView bytes) override;
  void collect_if_due() override;

  Counters counters() const override;
  std::string first_trouble() const override;
  const Options& options() const override { return options_; }

  /// A store under this one that is left out.
  void left_out(const std::string& why) { ledger_.survived(why); }

 private:
  bool writes() const { return own_ != nullptr && own_->writes(); }
  const Layout& layout() const { return own_->layout(); }
  // Counts one soft error; false, so that a put can return it.
  bool survived(const std::string& what) {
    ledger_.survived(what);
    return false;
  }
  std::optional<base::Bytes> read_sealed(int folder, const std::string& name, std::string_view magic,
                                         const base::Digest& id, uint64_t limit, struct stat& status);
  void save_counters();

  const Options options_;
  const std::unique_ptr<LocalTier> own_;
  const Tiers under_;
  std::vector<Tier*> read_;  // those that are looked into, in order
  const std::unique_ptr<KeyLocks> locks_;
  Ledger ledger_;  // of what is no tier's alone
};

}  // namespace kc::store
