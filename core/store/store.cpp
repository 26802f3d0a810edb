#include "store/store.h"

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "base/lock.h"
#include "store/local_store.h"
#include "util/text.h"

namespace kc::store {
namespace {

using base::Digest;
using base::ErrorKind;
using base::FileDescriptor;
using base::Result;

// The user's own folder is cheap to ask and may work again at any time (a full disk), so it is not given up
// for operations that fail; one that hangs three times in a row, as a network file system does, would make a
// build endless. The time is what the largest entry takes on a slow disk.
constexpr Patience kOwnPatience{std::chrono::seconds(60), 3, 0};
// What is under it is only read, and is worth less than a compile of a few seconds.
constexpr Patience kReadOnlyPatience{std::chrono::seconds(10), 3, 10};

std::unique_ptr<KeyLocks> open_locks(FileDescriptor file) {
  const auto probe = base::try_lock_byte(file.get(), kProbeOffset);
  if (!probe) return nullptr;
  if (*probe) (void)base::unlock_byte(file.get(), kProbeOffset);
  return std::make_unique<KeyLocks>(std::move(file));
}

// The one file that is opened for writing before anything is put: it tells whether that is possible.
Result<FileDescriptor> open_lock_file(const Layout& layout) {
  auto file =
      base::open_at(layout.version(), "locks", O_RDWR | O_CREAT | O_NOFOLLOW, 0600, ErrorKind::kEnvironment);
  if (file) return file;
  file.error().message = "the store cannot be written: " + file.error().message;
  file.error().place.file = layout.path();
  file.error().hint = "use it with --store-mode=ro, or name another one with --store or KC_STORE_DIR";
  return file;
}

// An entry may claim any number of seconds; no compile took more than a year.
uint64_t saved_ms(double seconds) {
  constexpr double kYear = 365.0 * 24 * 3600;
  return static_cast<uint64_t>(std::min(seconds, kYear) * 1000);
}

std::string label_of(const std::string& directory) {
  return util::format("the read-only store {}", directory);
}

// The user's own store; null when it is not there and `access` does not make it.
Result<std::unique_ptr<LocalTier>> open_own(const Options& options, Access access) {
  auto layout = Layout::open(options.directory, access);
  if (!layout) return std::unexpected(std::move(layout).error());
  if (!*layout) return nullptr;
  return std::make_unique<LocalTier>(std::move(**layout), options.mode, options.limit_bytes, "",
                                     kOwnPatience);
}

// The stores under the own one, in order; those that lie in a folder that came before would be asked twice.
LocalStore::Tiers open_under(const Options& options, const LocalTier* own,
                             std::vector<std::string>& trouble) {
  std::vector<std::string> seen;
  if (own != nullptr) seen.push_back(own->layout().path());
  LocalStore::Tiers out;
  for (const std::string& directory : options.read_only_directories) {
    auto layout = Layout::open_read_only(directory);
    if (!layout) trouble.push_back(label_of(directory) + " is left out: " + layout.error().text());
    if (!layout || !*layout) continue;
    const std::string path = (*layout)->path();
    if (std::find(seen.begin(), seen.end(), path) != seen.end()) continue;
    seen.push_back(path);
    out.push_back(std::make_unique<LocalTier>(std::move(**layout), Mode::kReadOnly, 0, label_of(directory),
                                              kReadOnlyPatience));
  }
  return out;
}

}  // namespace

LocalStore::LocalStore(Options options, std::unique_ptr<LocalTier> own, Tiers under,
                       std::unique_ptr<KeyLocks> locks)
    : options_(std::move(options)), own_(std::move(own)), under_(std::move(under)), locks_(std::move(locks)) {
  if (options_.mode != Mode::kReadWrite && options_.mode != Mode::kReadOnly) return;
  if (own_ != nullptr) read_.push_back(own_.get());
  for (const auto& tier : under_) read_.push_back(tier.get());
}

std::optional<Entry> LocalStore::get(const Digest& key) {
  for (Tier* tier : read_) {
    std::optional<Entry> entry = tier->get(key);
    if (!entry) continue;
    ++ledger_.hits;
    ledger_.saved_ms += saved_ms(entry->seconds);
    return entry;
  }
  ++ledger_.misses;
  return std::nullopt;
}

void LocalStore::found_later(double seconds) {
  uint64_t misses = ledger_.misses;
  while (misses != 0 && !ledger_.misses.compare_exchange_weak(misses, misses - 1)) {
  }
  ++ledger_.hits;
  ledger_.saved_ms += saved_ms(seconds);
}

bool LocalStore::put(const Entry& entry) {
  return writes() && own_->put(entry);
}

Held LocalStore::holds(const Digest& key) {
  for (Tier* tier : read_) {
    if (const Held held = tier->holds(key); held != Held::kNothing) return held;
  }
  return Held::kNothing;
}

std::optional<Record> LocalStore::get_record(const Digest& request) {
  for (Tier* tier : read_) {
    if (std::optional<Record> record = tier->get_record(request)) return record;
  }
  ++ledger_.misses;
  return std::nullopt;
}

std::optional<Digest> LocalStore::recorded(const Digest& request) {
  for (Tier* tier : read_) {
    if (const std::optional<Digest> content = tier->recorded(request)) return content;
  }
  return std::nullopt;
}

bool LocalStore::put_record(const Record& record) {
  return writes() && own_->put_record(record);
}

Counters LocalStore::counters() const {
  Counters sum = ledger_.counters();
  const auto add = [&](const Tier& tier) {
    const Counters one = tier.counters();
    sum.puts += one.puts;
    sum.corrupt += one.corrupt;
    sum.soft_errors += one.soft_errors;
    sum.declined += one.declined;
  };
  if (own_ != nullptr) add(*own_);
  for (const auto& tier : under_) add(*tier);
  return sum;
}

std::string LocalStore::first_trouble() const {
  std::vector<const Tier*> tiers;
  if (own_ != nullptr) tiers.push_back(own_.get());
  for (const auto& tier : under_) tiers.push_back(tier.get());
  for (const Tier* tier : tiers) {
    if (tier->is_off()) return tier->trouble();
  }
  if (std::string trouble = ledger_.first_trouble(); !trouble.empty()) return trouble;
  for (const Tier* tier : tiers) {
    if (std::string trouble = tier->trouble(); !trouble.empty()) return trouble;
  }
  return {};
}

Result<std::unique_ptr<Store>> Store::open(const Options& options) {
  std::unique_ptr<LocalTier> own;
  std::unique_ptr<KeyLocks> locks;
  const bool writes = options.mode == Mode::kReadWrite || options.mode == Mode::kRefresh;
  if (writes || (options.mode == Mode::kReadOnly && !options.directory.empty())) {
    KC_ASSIGN(own, open_own(options, writes ? Access::kMake : Access::kRead));
    if (writes) {
      KC_ASSIGN(auto file, open_lock_file(own->layout()));
      locks = open_locks(std::move(file));
    }
  }
  std::vector<std::string> trouble;
  LocalStore::Tiers under;
  if (options.mode == Mode::kReadWrite || options.mode == Mode::kReadOnly) {
    under = open_under(options, own.get(), trouble);
  }
  auto store = std::make_unique<LocalStore>(options, std::move(own), std::move(under), std::move(locks));
  for (const std::string& what : trouble) store->left_out(what);
  return store;
}

}  // namespace kc::store
