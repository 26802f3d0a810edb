// kc store show: all that is known of some entries and records.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/store_choice.h"
#include "cli/stored_names.h"
#include "cli/table.h"
#include "cli/times.h"
#include "report/stored_json.h"
#include "store/listing.h"
#include "util/text.h"

namespace kc::cli {
namespace {

using base::Digest;
using base::ErrorKind;
using base::Result;
using store::Checked;
using store::EntryHeader;
using store::Kind;
using store::Listed;
using store::Listing;

using Leading = std::map<Digest, std::vector<report::LeadingRecord>>;

// Lines of a label and a text that is not trusted.
class Lines {
 public:
  explicit Lines(Console& console) : console_(console) {}

  void head(std::string_view what, const Digest& key) {
    console_.result(console_.styled(Console::Style::kBold, util::format("{} {}", what, key.hex())));
  }
  void say(std::string_view label, std::string_view text) {
    // A digest still fits 80 columns behind it.
    const std::string start = util::format("  {:<10} ", label);
    for (const std::string& line : wrap(start, util::escape(text), console_.width(), start.size())) {
      console_.result(line);
    }
  }

 private:
  Console& console_;
};

std::string signed_text(const std::string& signer) {
  return signer.empty() ? std::string("imported, signed by nobody who is trusted")
                        : util::format("imported, signed by {}", signer);
}

std::string made_text(const store::Origin& origin) {
  std::string out = util::format("{} by kc {}", time_text(origin.time_s), origin.kc_version);
  if (!origin.host.empty()) out += " on " + origin.host;
  if (!origin.user.empty()) out += ", user " + origin.user;
  return out;
}

std::string facts_text(const artifact::KernelFacts& facts) {
  std::string out = util::format("{}: {} registers", facts.symbol, facts.registers);
  if (facts.scalar_registers) out += util::format(", {} scalar", *facts.scalar_registers);
  out += util::format(", {} B local", facts.local_memory);
  if (facts.spills) out += util::format(", {} spills", *facts.spills);
  out += util::format(", {} B shared, {} arguments in {} B", facts.shared_memory, facts.arguments.size(),
                      facts.argument_bytes);
  const auto& block = facts.required_block;
  if (block[0] != 0) out += util::format(", block {}x{}x{}", block[0], block[1], block[2]);
  if (facts.max_threads != 0) out += util::format(", at most {} threads", facts.max_threads);
  if (facts.wave_size != 0) out += util::format(", wave size {}", facts.wave_size);
  return out;
}

std::string diagnostic_text(const artifact::Diagnostic& diagnostic) {
  const base::Place place{diagnostic.file, diagnostic.line, diagnostic.column};
  std::string out = place.text();
  if (!out.empty()) out += ": ";
  out += artifact::severity_name(diagnostic.severity);
  if (!diagnostic.code.empty()) out += " " + diagnostic.code;
  return out + ": " + diagnostic.message;
}

void print_entry(const Listed& listed, const EntryHeader& header, const store::Entry& entry,
                 const std::vector<report::LeadingRecord>& records, Console& console) {
  const artifact::Artifact& artifact = entry.artifact;
  Lines lines(console);
  lines.head("entry", listed.key);
  lines.say("unit", entry.kernel);
  lines.say("target", entry.unsupported ? entry.target + ": the compiler has no code for it"
                                        : entry.target + ", found " + artifact.facts.found_target);
  lines.say("entry", entry.entry);
  lines.say("backend", entry.backend);
  lines.say("compiler", artifact.compiler + " " + artifact.compiler_version);
  if (!artifact.facts.toolkit.empty()) lines.say("toolkit", artifact.facts.toolkit);
  lines.say("origin", entry.origin.imported ? signed_text(entry.origin.signer) : "compiled here");
  lines.say("made", made_text(entry.origin));
  lines.say("used", time_text(listed.used_s));
  std::string took = util::duration_text(entry.seconds);
  if (entry.peak_bytes != 0) took += ", " + util::size_text(entry.peak_bytes) + " at most";
  lines.say("took", took);
  lines.say("size", util::format("{} in the store, {} B code, {} B report",
                                 util::size_text(listed.disk_bytes), header.code_size, header.report_size));
  if (!entry.unsupported) lines.say("digest", header.code_digest.hex());
  for (const artifact::KernelFacts& facts : artifact.facts.kernels) lines.say("kernel", facts_text(facts));
  for (const artifact::Diagnostic& diagnostic : artifact.diagnostics) {
    lines.say("diagnostic", diagnostic_text(diagnostic));
  }
  for (const auto& [name, value] : entry.key_fields) lines.say("key field", name + ": " + value);
  for (const auto& [request, unit] : records) lines.say("record", request.hex() + " " + unit);
}

void print_record(const Listed& listed, const store::Record& record, bool has_entry, Console& console) {
  Lines lines(console);
  lines.head("record", listed.key);
  lines.say("unit", record.unit);
  lines.say("leads to", record.content.hex() + (has_entry ? "" : ", which is not in the store"));
  lines.say("origin", record.imported ? signed_text(record.signer) : "made here");
  lines.say("made", time_text(record.time_s));
  lines.say("used", time_text(listed.used_s));
  lines.say("size", util::size_text(listed.disk_bytes) + " in the store");
  for (const auto& [name, value] : record.key_fields) lines.say("key field", name + ": " + value);
}

class Shower {
 public:
  Shower(const Listing& listing, Console& console) : listing_(listing), console_(console) {}

  Result<int> run(const std::vector<std::string>& names) {
    KC_ASSIGN(const StoredNames found, find_stored(listing_, names));
    KC_TRY(find_leading(found));
    for (const Digest& key : found.entries) show_entry(key);
    // A unit is its entries, with the records that lead to them; records alone are shown where nothing else
    // is.
    for (const Digest& key : found.entries.empty() ? found.records : found.records_by_key) show_record(key);
    return code_;
  }

 private:
  Result<void> find_leading(const StoredNames& found) {
    if (found.entries.empty()) return {};
    const auto unread = listing_.records([&](const Listed& listed, const Checked<store::Record>& record) {
      if (record && found.entries.contains(record->content)) {
        leading_[record->content].emplace_back(listed.key, record->unit);
      }
      return true;
    });
    if (unread.empty()) return {};
    return base::fail(ErrorKind::kEnvironment, unread.front());
  }

  void show_entry(const Digest& key) {
    const auto seen = listing_.entry(key);
    if (!seen) return;  // collected since
    const auto& [listed, header] = *seen;
    if (!header) return refused(listed, header.error());
    const auto entry = listing_.whole_entry(key);
    if (!entry) return refused(listed, entry.error());
    if (!*entry) return;
    if (console_.is_json()) {
      console_.json(report::whole_entry_json(listed, *header, **entry, leading_[key]));
    } else {
      print_entry(listed, *header, **entry, leading_[key], console_);
    }
  }

  void show_record(const Digest& key) {
    const auto seen = listing_.record(key);
    if (!seen) return;
    const auto& [listed, record] = *seen;
    if (!record) return refused(listed, record.error());
    const auto entry = listing_.entry(record->content);
    const bool has_entry = entry && entry->second;
    if (console_.is_json()) {
      console_.json(report::stored_record_json(listed, *record, has_entry));
    } else {
      print_record(listed, *record, has_entry, console_);
    }
  }

  void refused(const Listed& listed, const store::Refusal& refusal) {
    code_ =
        console_.fail({ErrorKind::kFailed, store::stored_path(listed.kind, listed.key) + ": " + refusal.why});
  }

  const Listing& listing_;
  Console& console_;
  Leading leading_;
  int code_ = 0;
};

}  // namespace

int command_store_show(const Common& common, const StoredArguments& arguments, Console& console) {
  const auto folder = store_folder(common, arguments.store);
  if (!folder) return console.fail(folder.error());
  const auto listing = Listing::open(*folder);
  if (!listing) return console.fail(listing.error());
  const Result<int> code = Shower(*listing, console).run(arguments.names);
  return code ? *code : console.fail(code.error());
}

}  // namespace kc::cli
