// kc verify: checks every byte of a bundle, and who signed it.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "bundle/bundle.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/loader_policy.h"
#include "util/text.h"

namespace kc::cli {
namespace {

using base::Error;
using base::ErrorKind;

struct Signer {
  bundle::PublicKey key;
  bool is_valid = false;
  bool is_asked_for = false;  // one of --key
};

struct Found {
  std::vector<Signer> signers;
  size_t unknown_blocks = 0;  // of kinds that a newer kc knows
};

base::Result<Found> find_signers(bundle::Reader& reader, const std::vector<bundle::PublicKey>& keys) {
  Found found;
  KC_ASSIGN(const auto blocks, reader.signature_blocks());
  KC_ASSIGN(const std::vector<bundle::Signature> signatures, reader.signatures());
  const base::Bytes message = bundle::bundle_message(reader.header_digest());
  for (const bundle::Signature& signature : signatures) {
    found.signers.push_back({signature.key, bundle::is_valid(signature, message),
                             std::ranges::find(keys, signature.key) != keys.end()});
  }
  found.unknown_blocks = blocks.size() - signatures.size();
  return found;
}

std::vector<std::string> ids_of(const std::vector<Signer>& signers) {
  std::vector<std::string> out;
  for (const Signer& signer : signers) {
    if (signer.is_valid) out.push_back(signer.key.id());
  }
  return out;
}

// What a sound bundle is, and what it should be.
void check_policy(const PolicyArguments& arguments, const bundle::Reader& reader, const Found& found,
                  bool has_keys, std::vector<Error>& faults) {
  const auto fault = [&](std::string what, std::string hint = {}) {
    faults.push_back({ErrorKind::kFailed, std::move(what), {arguments.bundle}, std::move(hint)});
  };
  for (const Signer& signer : found.signers) {
    if (!signer.is_valid) fault("the signature by " + signer.key.id() + " is not one of this bundle");
  }
  const bool is_signed = std::ranges::any_of(
      found.signers, [](const Signer& signer) { return signer.is_valid && signer.is_asked_for; });
  if (has_keys && !is_signed) {
    const std::vector<std::string> ids = ids_of(found.signers);
    fault(ids.empty() ? "it is not signed"
                      : "it is signed by " + util::listed(ids) + ", and by none of the keys");
  }
  const bundle::Info& info = reader.info();
  if (arguments.name && info.name != *arguments.name) {
    fault(util::format("its name is \"{}\", not \"{}\"", info.name, *arguments.name));
  }
  if (arguments.min_release && info.release < *arguments.min_release) {
    fault(util::format("its release is {}, and {} is the least", info.release, *arguments.min_release));
  }
  if (has_keys && !arguments.allow_partial && (info.partial || info.subset)) {
    fault(info.partial ? "it is partial: units of its manifest are missing"
                       : "it is a subset: it was made of a part of its manifest",
          "--allow-partial takes it");
  }
}

void print_sound(const std::string& path, const bundle::Reader& reader, const Found& found, bool has_keys,
                 Console& console) {
  const bundle::Info& info = reader.info();
  std::string line =
      util::format("{}: ok, {} in {}, {}", util::escape(path), util::counted(reader.record_count(), "unit"),
                   util::counted(reader.frame_count(), "frame"), util::size_text(reader.file_size()));
  // The digests prove that nothing changed since it was written; who wrote it only a signature of a known key
  // can.
  if (found.signers.empty()) line += ", not signed";
  if (found.unknown_blocks != 0) {
    line += util::format(", {} of a newer kc", util::counted(found.unknown_blocks, "signature block"));
  }
  if (info.partial) line += ", partial";
  if (info.subset) line += ", subset";
  console.result(line);
  for (const Signer& signer : found.signers) {
    console.result(util::format("  signed by {}{}", signer.key.id(),
                                signer.is_asked_for ? ""
                                : has_keys          ? " (not asked for)"
                                                    : " (not checked whose)"));
  }
}

util::Json signers_json(const Found& found) {
  util::Json out = util::Json::array();
  for (const Signer& signer : found.signers) {
    out.push_back({{"key", signer.key.id()}, {"valid", signer.is_valid}, {"asked_for", signer.is_asked_for}});
  }
  return out;
}

}  // namespace

int command_verify(const Common&, const PolicyArguments& arguments, Console& console) {
  const auto keys = read_keys(arguments.keys);
  if (!keys) return console.fail(keys.error());
  const bool has_keys = !keys->empty();
  auto reader = bundle::Reader::open(arguments.bundle);
  std::vector<Error> faults;
  Found found;
  if (!reader) {
    faults.push_back(reader.error());
  } else {
    faults = reader->verify_all();
    if (auto signers = find_signers(*reader, *keys)) {
      found = std::move(*signers);
      check_policy(arguments, *reader, found, has_keys, faults);
    }  // else verify_all() has said why
  }
  for (const Error& fault : faults) {
    console.error(fault);
    if (console.is_json()) console.json({{"event", "fault"}, {"message", fault.message}});
  }
  if (console.is_json()) {
    util::Json out{
        {"event", "summary"}, {"path", arguments.bundle}, {"ok", faults.empty()}, {"faults", faults.size()}};
    if (reader) {
      out["records"] = reader->record_count();
      out["frames"] = reader->frame_count();
      out["bytes"] = reader->file_size();
      out["name"] = reader->info().name;
      out["release"] = reader->info().release;
      out["signers"] = signers_json(found);
    }
    console.json(out);
  } else if (faults.empty()) {
    print_sound(arguments.bundle, *reader, found, has_keys, console);
  } else if (faults.size() > 1) {
    console.result(
        util::format("{}: {}", util::escape(arguments.bundle), util::counted(faults.size(), "fault")));
  }
  return faults.empty() ? 0 : static_cast<int>(faults.front().kind);
}

}  // namespace kc::cli
