// kcload verify: checks every byte of a bundle, and who signed it.
#include <array>
#include <cstdint>
#include <kc/loader.hpp>
#include <string>
#include <utility>

#include "cli/console.h"
#include "cli/kcload/commands.h"
#include "cli/loader_policy.h"
#include "util/text.h"

namespace kc::cli {
namespace {

using base::Result;

Result<kcload::Bundle> verified(const PolicyArguments& arguments) {
  KC_ASSIGN(kcload::Bundle bundle, open_bundle(arguments));
  kcload::Error error;
  bundle.verify(error);
  if (error) return std::unexpected(error_of(error, arguments.bundle));
  return bundle;
}

std::vector<std::string> signers_of(const kc_file_info& file) {
  std::vector<std::string> out;
  for (size_t i = 0; i < file.signer_count; ++i) {
    bundle::PublicKey key;
    std::copy_n(file.signers + i * key.bytes.size(), key.bytes.size(), key.bytes.begin());
    out.push_back(key.id());
  }
  return out;
}

}  // namespace

int verify_bundle(const PolicyArguments& arguments, Console& console) {
  const Result<kcload::Bundle> bundle = verified(arguments);
  if (!bundle) {
    if (console.is_json()) {
      console.json({{"event", "fault"}, {"message", bundle.error().message}});
      console.json({{"event", "summary"}, {"path", arguments.bundle}, {"ok", false}});
    }
    return console.fail(bundle.error());
  }
  const kc_file_info& file = bundle->file();
  const std::vector<std::string> signers = signers_of(file);
  if (console.is_json()) {
    console.json({{"event", "summary"},
                  {"path", arguments.bundle},
                  {"ok", true},
                  {"entries", file.entry_count},
                  {"name", file.name},
                  {"release", file.release},
                  {"signers", signers}});
    return 0;
  }
  if (console.verbosity() < 0) return 0;
  console.result(util::format("{}: ok, {}{}{}", util::escape(arguments.bundle),
                              util::counted(file.entry_count, "unit"), file.partial != 0 ? ", partial" : "",
                              file.subset != 0 ? ", subset" : ""));
  for (const std::string& signer : signers) console.result("  signed by " + signer);
  return 0;
}

}  // namespace kc::cli
