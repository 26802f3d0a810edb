// kc store export and import.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "build/build.h"
#include "build/import.h"
#include "bundle/signature.h"
#include "cli/build_options.h"
#include "cli/build_text.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/key_choice.h"
#include "cli/store_choice.h"
#include "report/json_lines.h"
#include "store/archive.h"
#include "store/listing.h"
#include "util/signals.h"
#include "util/text.h"

namespace kc::cli {
namespace {

using base::Digest;
using base::ErrorKind;
using base::Result;
using store::Kind;
using store::Listing;

constexpr int kFailed = static_cast<int>(ErrorKind::kFailed);

std::string counts_text(uint64_t entries, uint64_t records) {
  return util::format("{} and {}", util::counted(entries, "entry", "entries"),
                      util::counted(records, "record"));
}

// What a plan says of its units: which keys the store has, and which units it has nothing of.
class NeededUnits final : public build::Listener {
 public:
  struct Missing {
    std::string unit, why;
    std::optional<Digest> request_key, key;
  };

  explicit NeededUnits(build::Listener& rest) : rest_(rest) {}

  void error(const base::Error& error) override { rest_.error(error); }
  void warning(const base::Error& warning) override { rest_.warning(warning); }
  void note(const std::string& text) override { rest_.note(text); }
  void progress(const build::Progress& progress) override { rest_.progress(progress); }
  // Of a plan: a look at the sources shows that the unit cannot be compiled. So it has no entry either.
  void failed(const manifest::Plan&, const manifest::Unit&, const build::UnitResult&) override {}
  void unit(const manifest::Plan&, const manifest::Unit& unit, const build::UnitResult& result) override {
    const bool is_there =
        result.state == build::UnitState::kHit || result.state == build::UnitState::kSkipped;
    if (is_there && result.key) {
      items_.emplace(std::pair(Kind::kEntry, *result.key), unit.name);
      if (result.request_key) items_.emplace(std::pair(Kind::kRecord, *result.request_key), unit.name);
    } else {
      missing_.push_back({unit.name, result.error.message, result.request_key, result.key});
    }
  }
  void summary(const build::Summary&) override {}

  /// With the first unit that needs each, in the order of an archive.
  using Items = std::map<std::pair<Kind, Digest>, std::string>;
  const Items& items() const { return items_; }
  const std::vector<Missing>& missing() const { return missing_; }

 private:
  build::Listener& rest_;
  Items items_;
  std::vector<Missing> missing_;
};

class Export {
 public:
  Export(const Common& common, const ExportArguments& arguments, Console& console)
      : common_(common), arguments_(arguments), console_(console) {}

  /// kc's exit code; 128 + n when a signal ended it: then there is no archive.
  Result<int> run() {
    KC_TRY(check_arguments());
    KC_ASSIGN(const std::optional<bundle::PrivateKey> key, signing_key());
    KC_ASSIGN(const std::string folder, store_folder(common_, arguments_.build.store));
    KC_TRY(open_store(folder));
    KC_ASSIGN(store::ArchiveWriter writer, store::ArchiveWriter::create(arguments_.archive));
    if (arguments_.manifest) {
      const int code = add_needed(writer);
      if (code != 0) return code;
    } else {
      KC_TRY(add_all(writer));
    }
    // The temporary file goes with the writer.
    if (const auto signal = signals_.pending()) return 128 + *signal;
    if (missing_ != 0 && !arguments_.build.allow_partial) {
      console_.note(util::format("kc: {} was not written; --allow-partial leaves out what is missing",
                                 util::escape(arguments_.archive)));
      return kFailed;
    }
    KC_ASSIGN(const Digest digest, writer.finish());
    if (key) {
      bundle::Signature signature{key->public_key(), {}};
      KC_ASSIGN(signature.bytes, key->sign(bundle::archive_message(digest)));
      KC_TRY(writer.append_block(bundle::encode_block(signature)));
    }
    if (const auto signal = signals_.pending()) return 128 + *signal;
    KC_TRY(writer.commit());
    finish(writer, digest, key ? key->public_key().id() : std::string());
    return left_out_ == 0 ? 0 : kFailed;
  }

 private:
  Result<void> check_arguments() const {
    const BuildArguments& b = arguments_.build;
    if (arguments_.manifest) return {};
    if (b.units.empty() && b.targets.empty() && !b.allow_partial && !b.identity_from) return {};
    return base::fail(ErrorKind::kInput, "units and targets are those of a manifest, and none is named",
                      "name it with -f");
  }

  Result<std::optional<bundle::PrivateKey>> signing_key() const {
    if (!arguments_.build.sign) return std::nullopt;
    KC_ASSIGN(const auto passphrase, choose_passphrase(common_, false, false));
    KC_ASSIGN(bundle::PrivateKey key, bundle::PrivateKey::read(*arguments_.build.sign, passphrase));
    return key;
  }

  // What a manifest needs may lie in the stores under the user's own, too.
  Result<void> open_store(const std::string& folder) {
    KC_ASSIGN(Listing own, Listing::open(folder));
    listings_.push_back(std::move(own));
    if (!arguments_.manifest) return {};
    for (const std::string& below : choose_store(common_, arguments_.build.store).read_only_directories) {
      auto listing = Listing::open_read_only(below);
      if (listing) {
        listings_.push_back(std::move(*listing));
      } else {
        console_.warning(listing.error());
      }
    }
    return {};
  }

  // Names of one shard at a time, in the order of an archive.
  Result<void> add_all(store::ArchiveWriter& writer) {
    for (const Kind kind : store::kKinds) {
      for (unsigned shard = 0; shard < store::kShards; ++shard) {
        const auto keys = listings_.front().with_prefix(kind, util::format("{:02x}", shard));
        if (!keys) {
          leave_out({ErrorKind::kEnvironment, keys.error().text()});
          continue;
        }
        for (const Digest& key : *keys) {
          if (signals_.pending()) return {};
          KC_ASSIGN(const bool is_added, add(writer, kind, key));
          (void)is_added;  // what is gone since is nothing that the store has
        }
      }
    }
    return {};
  }

  int add_needed(store::ArchiveWriter& writer) {
    BuildArguments arguments = arguments_.build;
    arguments.manifest = *arguments_.manifest;
    auto options = build_options(common_, arguments);
    if (!options) return console_.fail(options.error());
    options->store.mode = store::Mode::kReadOnly;  // looking changes nothing
    options->sign.reset();
    BuildText text(console_, {.results = false});
    NeededUnits needed(text);
    const int code = build::plan(*options, needed);
    if (code > kFailed) return code;
    for (const auto& missing : needed.missing()) tell_missing(missing);
    for (const auto& [item, unit] : needed.items()) {
      if (signals_.pending()) return 0;
      const auto& [kind, key] = item;
      const auto added = add(writer, kind, key);
      if (!added) return console_.fail(added.error());
      if (!*added) tell_missing({unit, "", {}, key});
    }
    return 0;
  }

  // False when none of the stores has it, or it cannot be believed: then that was told.
  Result<bool> add(store::ArchiveWriter& writer, Kind kind, const Digest& key) {
    for (const Listing& listing : listings_) {
      const auto file = listing.bytes(kind, key);
      if (!file) {
        const std::string what = store::stored_path(kind, key) + ": " + file.error().why;
        if (file.error().flaw == store::Flaw::kNewer) {
          ++newer_;
          console_.note(util::format("kc: note: {}: left out", what));
        } else {
          leave_out({ErrorKind::kFailed, what + ": left out"});
        }
      } else if (*file) {
        KC_TRY(writer.add(kind, key, **file));
        return true;
      }
    }
    return false;
  }

  void leave_out(const base::Error& why) {
    ++left_out_;
    console_.warning(why);
  }

  void tell_missing(const NeededUnits::Missing& missing) {
    ++missing_;
    if (console_.is_json()) {
      console_.json({{"event", "missing"},
                     {"unit", missing.unit},
                     {"request_key", report::digest_or_null(missing.request_key)},
                     {"key", report::digest_or_null(missing.key)}});
    }
    base::Error error{ErrorKind::kFailed, missing.unit + " is not in the store"};
    if (!missing.why.empty()) error.message += ": " + missing.why;
    if (missing_ == 1) error.hint = "`kc warm` compiles what is missing";
    if (arguments_.build.allow_partial) {
      console_.warning(error);
    } else {
      console_.error(error);
    }
  }

  void finish(const store::ArchiveWriter& writer, const Digest& digest, const std::string& signer) {
    const store::ArchiveCounts& counts = writer.counts();
    if (console_.is_json()) {
      console_.json({{"event", "summary"},
                     {"path", arguments_.archive},
                     {"entries", counts.entries},
                     {"records", counts.records},
                     {"bytes", writer.bytes()},
                     {"digest", digest.hex()},
                     {"signer", signer},
                     {"missing", missing_},
                     {"damaged", left_out_},
                     {"newer", newer_}});
      return;
    }
    console_.result(util::format("kc: wrote {}: {}, {}, {}", util::escape(arguments_.archive),
                                 counts_text(counts.entries, counts.records), util::size_text(writer.bytes()),
                                 signer.empty() ? "not signed" : "signed by " + signer));
  }

  const Common& common_;
  const ExportArguments& arguments_;
  Console& console_;
  util::SignalWatch signals_;
  std::vector<Listing> listings_;  // the user's own first
  uint64_t missing_ = 0;           // units of the manifest
  uint64_t left_out_ = 0;          // damaged or unreadable
  uint64_t newer_ = 0;
};

void print(const build::ImportReport& report, const ImportArguments& arguments, Console& console) {
  if (console.is_json()) {
    console.json({{"event", "summary"},
                  {"path", arguments.archive},
                  {"signer", report.signer},
                  {"entries", report.entries},
                  {"records", report.records},
                  {"entries_there", report.entries_there},
                  {"records_there", report.records_there},
                  {"entries_refused", report.entries_refused},
                  {"records_refused", report.records_refused}});
    return;
  }
  std::string text =
      util::format("kc: imported {} from {}, {}", counts_text(report.entries, report.records),
                   util::escape(arguments.archive),
                   report.signer.empty() ? "signed by nobody who is trusted" : "signed by " + report.signer);
  if (report.entries_there + report.records_there != 0) {
    text += util::format("; {} were there", counts_text(report.entries_there, report.records_there));
  }
  if (report.entries_refused + report.records_refused != 0) {
    text += util::format("; {} were refused", counts_text(report.entries_refused, report.records_refused));
  }
  console.result(text);
}

Result<int> import_archive(const Common& common, const ImportArguments& arguments, Console& console) {
  KC_ASSIGN(const build::Trust trust, choose_trust(common, arguments.keys));
  store::Options options;
  KC_ASSIGN(options.directory, store_folder(common, arguments.store));
  options.limit_bytes = choose_store(common, arguments.store).limit_bytes;
  KC_ASSIGN(const build::ImportReport report,
            build::import_archive(arguments.archive, trust, options,
                                  [&](const base::Error& refused) { console.error(refused); }));
  print(report, arguments, console);
  return report.entries_refused + report.records_refused == 0 ? 0 : kFailed;
}

}  // namespace

int command_store_export(const Common& common, const ExportArguments& arguments, Console& console) {
  const Result<int> code = Export(common, arguments, console).run();
  return code ? *code : console.fail(code.error());
}

int command_store_import(const Common& common, const ImportArguments& arguments, Console& console) {
  const Result<int> code = import_archive(common, arguments, console);
  return code ? *code : console.fail(code.error());
}

}  // namespace kc::cli
