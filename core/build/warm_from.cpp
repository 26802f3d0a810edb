#include "build/warm_from.h"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>

#include "build/prepare.h"
#include "build/stored_state.h"
#include "build/trust.h"
#include "bundle/bundle.h"
#include "store/listing.h"
#include "store/store.h"
#include "util/text.h"

namespace kc::build {
namespace {

using base::Digest;
using base::Error;
using base::ErrorKind;
using base::Result;

// An artifact of the bundle: the records of one content key.
struct Item {
  std::vector<uint32_t> records;  // indices; the first stands for all
  std::vector<artifact::KernelFacts> kernels;
};

class Warmer {
 public:
  Warmer(const Options& options, const std::string& path, Listener& listener)
      : options_(options), path_(path), listener_(listener) {}

  Warmed run(bool plans);

 private:
  Result<void> open_store();
  Result<void> import();
  Result<void> read_records();
  Result<void> group_records();
  Result<void> check_artifacts();
  Result<void> put_items();
  Result<Warmth> put(const Item& item);
  void warn() const;
  void plan();
  std::string reason_of(const Prepared& prepared, size_t index, const ExpectedUnit& unit);

  const Options& options_;
  const std::string& path_;
  Listener& listener_;
  std::unique_ptr<store::Store> store_;
  std::optional<store::Listing> listing_;
  std::optional<bundle::Reader> reader_;
  std::vector<bundle::Record> records_;
  std::vector<Item> items_;  // by place in the bundle, so that each frame is read once
  Warmed out_;
};

Result<void> Warmer::open_store() {
  KC_ASSIGN(store_, store::Store::open(store_options(options_.store)));
  KC_ASSIGN(listing_, store::Listing::open(options_.store.directory));
  return {};
}

Result<void> Warmer::read_records() {
  records_.reserve(reader_->record_count());
  for (uint32_t i = 0; i < reader_->record_count(); ++i) {
    KC_ASSIGN(bundle::Record record, reader_->record(i));
    records_.push_back(std::move(record));
  }
  return {};
}

// Several units may share a key; then they share the code, and differ at most in which of its kernels they
// mean.
Result<void> Warmer::group_records() {
  std::vector<uint32_t> order(records_.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {},
                    [&](uint32_t i) { return std::tuple(records_[i].frame, records_[i].frame_offset, i); });
  std::unordered_map<Digest, size_t> by_key;
  for (const uint32_t i : order) {
    const bundle::Record& record = records_[i];
    if (record.content_key.is_zero()) {
      return base::fail_at(ErrorKind::kFailed, {path_}, "the bundle has no key for " + record.unit());
    }
    const auto [at, is_new] = by_key.try_emplace(record.content_key, items_.size());
    if (is_new) items_.emplace_back();
    Item& item = items_[at->second];
    if (!is_new && records_[item.records.front()].artifact_digest != record.artifact_digest) {
      return base::fail_at(ErrorKind::kFailed, {path_},
                           util::format("the bundle has two code objects under one key: of {} and {}",
                                        records_[item.records.front()].unit(), record.unit()));
    }
    item.records.push_back(i);
    const auto place =
        std::ranges::lower_bound(item.kernels, record.facts.symbol, {}, &artifact::KernelFacts::symbol);
    if (place == item.kernels.end() || place->symbol != record.facts.symbol) {
      item.kernels.insert(place, record.facts);
    }
  }
  return {};
}

// Nothing is put of a bundle that is damaged somewhere.
Result<void> Warmer::check_artifacts() {
  for (const Item& item : items_) KC_TRY(reader_->artifact(records_[item.records.front()]));
  return {};
}

Result<Warmth> Warmer::put(const Item& item) {
  const bundle::Record& record = records_[item.records.front()];
  store::Entry entry;
  entry.key = record.content_key;
  entry.backend = record.backend;
  entry.target = record.target;
  entry.entry = record.entry;
  entry.kernel = record.unit();
  KC_ASSIGN(entry.artifact.code, reader_->artifact(record));
  entry.artifact.facts = {record.found_target, record.toolkit, item.kernels};
  entry.artifact.compiler = record.compiler;
  entry.artifact.compiler_version = record.compiler_version;
  entry.origin.imported = true;
  entry.origin.signer = out_.signer;
  entry.origin.time_s = base::wall_clock_ns() / 1'000'000'000;
  const auto before = listing_->whole_entry(entry.key);
  const bool is_there = before && *before;
  const bool is_same = is_there && (*before)->artifact.code == entry.artifact.code;
  if (!store_->put(entry)) return Warmth::kNotStored;
  if (!is_there || options_.store.mode == store::Mode::kRefresh) return Warmth::kStored;
  const store::Origin& origin = (*before)->origin;
  const bool makes_way = origin.imported && origin.signer.empty() && !out_.signer.empty();  // Store::put()
  return makes_way ? Warmth::kStored : is_same ? Warmth::kThere : Warmth::kOther;
}

Result<void> Warmer::put_items() {
  std::vector<Warmth> states(records_.size());
  for (const Item& item : items_) {
    KC_ASSIGN(const Warmth state, put(item));
    if (state == Warmth::kNotStored && store_->counters().soft_errors != 0) {
      // A full disk or the like: the others would fare no better.
      return base::fail(ErrorKind::kEnvironment, "the store cannot be filled: " + store_->first_trouble());
    }
    for (const uint32_t i : item.records) states[i] = state;
  }
  for (size_t i = 0; i < records_.size(); ++i) {
    out_.units.push_back({records_[i].unit(), records_[i].content_key, states[i]});
    switch (states[i]) {
      case Warmth::kStored:
        ++out_.stored;
        break;
      case Warmth::kThere:
        ++out_.there;
        break;
      case Warmth::kOther:
        ++out_.other;
        break;
      case Warmth::kNotStored:
        ++out_.not_stored;
        break;
    }
  }
  return {};
}

Result<void> Warmer::import() {
  KC_ASSIGN(reader_, bundle::Reader::open(path_));
  KC_ASSIGN(const std::vector<bundle::Signature> signatures, reader_->signatures());
  KC_ASSIGN(out_.signer, trusted_signer(options_.trust, signatures,
                                        bundle::bundle_message(reader_->header_digest()), path_));
  KC_TRY(read_records());
  KC_TRY(group_records());
  KC_TRY(check_artifacts());
  KC_TRY(open_store());
  KC_TRY(put_items());
  store_->collect_if_due();
  return {};
}

void Warmer::warn() const {
  if (out_.other != 0) {
    listener_.warning({ErrorKind::kFailed,
                       util::format("the store has other code than {} for {}; its own is kept", path_,
                                    util::counted(out_.other, "unit")),
                       {},
                       "one of the two was not made by the compiler and sources that its key says"});
  }
  if (out_.not_stored != 0) {
    listener_.warning(
        {ErrorKind::kFailed,
         util::format("{} not stored: too large for the store's limit, or a newer kc's entry is there",
                      util::counted(out_.not_stored, "unit was", "units were"))});
  }
}

std::string Warmer::reason_of(const Prepared& prepared, size_t index, const ExpectedUnit& unit) {
  const manifest::Unit& wanted = prepared.unit(index);
  const manifest::Kernel& kernel = prepared.kernel(index);
  const auto found = reader_->find(kernel.name, wanted.specialization_text, wanted.target.text);
  if (!found || !*found) return "it is not in the bundle";
  const bundle::Record& record = records_[**found];
  if (record.backend != kernel.backend) return "the bundle's is made by " + record.backend;
  if (record.compiler_identity != prepared.compiler(kernel.backend)->identity) {
    return util::format("the bundle's is made by another compiler, {} {}", record.compiler,
                        record.compiler_version);
  }
  if (unit.request_key && !unit.key) {
    return "its code may be there, but no record leads from it to that: it costs a link, and "
           "`kc store export` carries records";
  }
  return "its sources or options are others than those of the bundle";
}

// As Planner of kc plan, with the bundle at hand to say why.
void Warmer::plan() {
  Options options = options_;
  if (!options.identity_from) options.identity_from = path_;
  std::optional<StoredState> stored;
  if (const auto manifest = base::absolute_path(options.manifest)) {
    stored = load_state(*store_, options, *manifest, {}, listener_);
  }
  auto prepared = prepare(options, stored ? &stored->head : nullptr, listener_);
  if (!prepared) {
    out_.code = static_cast<int>(prepared.error());
    return;
  }
  std::vector<ExpectedUnit> units;
  units.reserve(prepared->units.size());
  for (size_t i = 0; i < prepared->units.size(); ++i) {
    const ChosenUnit& chosen = prepared->units[i];
    ExpectedUnit& unit = units.emplace_back();
    unit.unit = prepared->unit(i).name;
    unit.kernel = prepared->kernel(i).name;
    unit.target = prepared->unit(i).target.text;
    if (chosen.has_request) unit.request_key = chosen.key;
    unit.key = chosen.has_request ? store_->recorded(chosen.key) : std::optional(chosen.key);
    const store::Held held = unit.key ? store_->holds(*unit.key) : store::Held::kNothing;
    if (chosen.refused) {
      unit.state = UnitState::kFailed;
      unit.reason = chosen.refused->message;
    } else if (held == store::Held::kCode) {
      unit.state = UnitState::kHit;
    } else if (held == store::Held::kUnsupported && prepared->kernel(i).skip_unsupported) {
      unit.state = UnitState::kSkipped;
    } else {
      unit.reason = reason_of(*prepared, i, unit);
    }
  }
  out_.expected = std::move(units);
}

Warmed Warmer::run(bool plans) {
  if (const auto imported = import(); !imported) {
    listener_.error(imported.error());
    out_.code = static_cast<int>(imported.error().kind);
    return std::move(out_);
  }
  warn();
  if (plans) plan();
  return std::move(out_);
}

}  // namespace

Warmed warm_from(const Options& options, const std::string& bundle, bool plans, Listener& listener) {
  return Warmer(options, bundle, listener).run(plans);
}

}  // namespace kc::build
