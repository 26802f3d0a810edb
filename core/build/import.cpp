#include "build/import.h"

#include <memory>
#include <utility>

#include "base/digest.h"
#include "bundle/signature.h"
#include "store/archive.h"
#include "store/entry_codec.h"
#include "store/listing.h"
#include "store/record_codec.h"
#include "util/text.h"

namespace kc::build {
namespace {

using base::ByteView;
using base::Digest;
using base::ErrorKind;
using base::Result;
using store::Kind;

// Puts the items of one archive into one store.
class Import {
 public:
  static Result<Import> open(const std::string& path, std::string signer, const store::Options& options,
                             const std::function<void(const base::Error&)>& refused) {
    KC_ASSIGN(auto store, store::Store::open(options));
    KC_ASSIGN(store::Listing listing, store::Listing::open(options.directory));
    Import out(path, refused, std::move(store), std::move(listing));
    out.report_.signer = std::move(signer);
    return out;
  }

  Result<void> item(Kind kind, const Digest& key, ByteView file) {
    return kind == Kind::kEntry ? entry(key, file) : record(key, file);
  }

  ImportReport finish() {
    store_->collect_if_due();
    return std::move(report_);
  }

 private:
  Import(const std::string& path, const std::function<void(const base::Error&)>& refused,
         std::unique_ptr<store::Store> store, store::Listing listing)
      : path_(path), refused_(refused), store_(std::move(store)), listing_(std::move(listing)) {}

  Result<void> entry(const Digest& key, ByteView file) {
    auto entry = store::decode_entry(file, key);
    if (!entry) {
      refuse(Kind::kEntry, key, entry.error().why);
      return {};
    }
    entry->origin.imported = true;
    entry->origin.signer = report_.signer;
    // Whole, not by its header alone: a damaged one is to be replaced.
    const auto there = listing_.whole_entry(key);
    if (there && *there && stays((*there)->origin.imported, (*there)->origin.signer)) {
      ++report_.entries_there;
      return {};
    }
    return count(store_->put(*entry), Kind::kEntry, key);
  }

  Result<void> record(const Digest& key, ByteView file) {
    auto record = store::decode_record(file, key);
    if (!record) {
      refuse(Kind::kRecord, key, record.error().why);
      return {};
    }
    record->imported = true;
    record->signer = report_.signer;
    const auto there = listing_.record(key);
    if (there && there->second && stays(there->second->imported, there->second->signer)) {
      ++report_.records_there;
      return {};
    }
    return count(store_->put_record(*record), Kind::kRecord, key);
  }

  // Whether what is in the store stays: not when nobody vouches for it and somebody does for the archive.
  // Then the store lets it be replaced.
  bool stays(bool imported, const std::string& signer) const {
    return !imported || !signer.empty() || report_.signer.empty();
  }

  Result<void> count(bool is_put, Kind kind, const Digest& key) {
    if (is_put) {
      ++(kind == Kind::kEntry ? report_.entries : report_.records);
    } else if (store_->counters().soft_errors != 0) {
      // A full disk or the like: the others would fare no better.
      return base::fail(ErrorKind::kEnvironment, "cannot import into the store: " + store_->first_trouble());
    } else {
      refuse(kind, key,
             "the store has no place for it: it is larger than 80 % of the limit, or a newer one is there");
    }
    return {};
  }

  void refuse(Kind kind, const Digest& key, const std::string& why) {
    ++(kind == Kind::kEntry ? report_.entries_refused : report_.records_refused);
    refused_(
        {ErrorKind::kFailed,
         util::format("not imported: {} {}: {}", kind == Kind::kEntry ? "entry" : "record", key.hex(), why),
         {path_}});
  }

  const std::string& path_;
  const std::function<void(const base::Error&)>& refused_;
  std::unique_ptr<store::Store> store_;
  store::Listing listing_;
  ImportReport report_;
};

}  // namespace

Result<ImportReport> import_archive(const std::string& path, const Trust& trust,
                                    const store::Options& options,
                                    const std::function<void(const base::Error&)>& refused) {
  KC_ASSIGN(const store::ArchiveReader archive, store::ArchiveReader::open(path));
  auto signatures = bundle::read_blocks(archive.blocks());
  if (!signatures) {
    base::Error error = std::move(signatures).error();
    if (error.place.file.empty()) error.place.file = path;
    return std::unexpected(std::move(error));
  }
  KC_ASSIGN(std::string signer,
            trusted_signer(trust, *signatures, bundle::archive_message(archive.content_digest()), path));
  KC_ASSIGN(Import import, Import::open(path, std::move(signer), options, refused));
  KC_TRY(archive.visit_items(
      [&](Kind kind, const Digest& key, ByteView file) { return import.item(kind, key, file); }));
  return import.finish();
}

}  // namespace kc::build
