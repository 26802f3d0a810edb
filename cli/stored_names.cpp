#include "cli/stored_names.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "manifest/names.h"
#include "report/stored_json.h"
#include "util/text.h"

namespace kc::cli {
namespace {

using base::Digest;
using base::ErrorKind;
using base::Result;
using store::Kind;

// Fewer digits are more likely meant as a name, and name too many files.
constexpr size_t kLeastDigits = 6;
constexpr size_t kDigits = 64;

// Work for hints, in pairs of bytes that are compared: a quarter of a second.
constexpr uint64_t kMostSteps = 100'000'000;

bool is_key(std::string_view name) {
  return name.size() >= kLeastDigits && name.size() <= kDigits &&
         name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Adds what the start of a key names; false when it names nothing.
Result<bool> find_key(const store::Listing& listing, const std::string& name, StoredNames& out) {
  KC_ASSIGN(const std::vector<Digest> entries, listing.with_prefix(Kind::kEntry, name));
  KC_ASSIGN(const std::vector<Digest> records, listing.with_prefix(Kind::kRecord, name));
  if (entries.size() + records.size() > 1 && name.size() < kDigits) {
    std::vector<std::string> found;
    for (const Digest& key : entries) found.push_back("entry " + key.hex());
    for (const Digest& key : records) found.push_back("record " + key.hex());
    return base::fail(
        ErrorKind::kInput,
        util::format("\"{}\" is the start of {} keys: {}", name, found.size(), util::listed(found)),
        "write more of its digits");
  }
  out.entries.insert(entries.begin(), entries.end());
  out.records.insert(records.begin(), records.end());
  out.records_by_key.insert(records.begin(), records.end());
  return entries.size() + records.size() > 0;
}

}  // namespace

bool PatternCheck::is_named(const std::string& unit) {
  bool named = patterns_.empty();
  const std::string kernel = report::kernel_of(unit);
  for (size_t p = 0; p < patterns_.size(); ++p) {
    const std::string& pattern = patterns_[p];
    if (manifest::is_named(pattern, unit, kernel)) {
      used_[p] = true;
      named = true;
    }
    if (used_[p] || steps_ > kMostSteps) continue;
    // The best so far is asked about again each time: so no list of all names is made.
    const std::array<std::string, 4> candidates = {kernel, unit.substr(0, unit.rfind('@')), unit, best_[p]};
    const size_t count = candidates.size() - (best_[p].empty() ? 1 : 0);
    best_[p] = util::nearest(pattern, std::span(candidates).first(count)).value_or(best_[p]);
    for (const std::string& candidate : candidates) steps_ += pattern.size() * candidate.size();
  }
  return named;
}

Result<void> PatternCheck::finish() const {
  const auto unused = std::find(used_.begin(), used_.end(), false);
  if (unused == used_.end()) return {};
  const auto p = static_cast<size_t>(unused - used_.begin());
  const std::string& pattern = patterns_[p];
  std::string hint = best_[p].empty() ? std::string() : util::did_you_mean(pattern, std::span(&best_[p], 1));
  if (hint.empty()) hint = "`kc store ls` lists what is there";
  const bool looks_like_key = pattern.find_first_not_of("0123456789abcdef") == std::string::npos;
  return base::fail(ErrorKind::kInput,
                    util::format("nothing in the store is named \"{}\"{}", util::escape(pattern),
                                 looks_like_key ? ", and no key that starts so" : ""),
                    std::move(hint));
}

Result<StoredNames> find_stored(const store::Listing& listing, const std::vector<std::string>& names) {
  StoredNames out;
  std::vector<std::string> patterns;
  for (const std::string& name : names) {
    if (is_key(name)) {
      KC_ASSIGN(const bool found, find_key(listing, name, out));
      if (found) continue;
    }
    patterns.push_back(name);
  }
  if (patterns.empty()) return out;
  PatternCheck check(patterns);
  std::vector<std::string> unread =
      listing.entries([&](const store::Listed& listed, const store::Checked<store::EntryHeader>& header) {
        if (!header) {
          out.damaged += header.error().flaw == store::Flaw::kNewer ? 0 : 1;
        } else if (check.is_named(header->entry.kernel)) {
          out.entries.insert(listed.key);
        }
        return true;
      });
  if (unread.empty()) {
    unread = listing.records([&](const store::Listed& listed, const store::Checked<store::Record>& record) {
      if (!record) {
        out.damaged += record.error().flaw == store::Flaw::kNewer ? 0 : 1;
      } else if (check.is_named(record->unit)) {
        out.records.insert(listed.key);
      }
      return true;
    });
  }
  if (!unread.empty()) return base::fail(ErrorKind::kEnvironment, std::move(unread.front()));
  KC_TRY(check.finish());
  return out;
}

}  // namespace kc::cli
