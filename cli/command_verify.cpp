// kc verify: checks every byte of a bundle.
#include <cstdint>
#include <string>
#include <vector>

#include "bundle/bundle.h"
#include "cli/command.h"
#include "cli/console.h"
#include "util/text.h"

namespace kc::cli {
namespace {

void print_fault(const base::Error& fault, Console& console) {
  console.error(fault);
  if (console.is_json()) console.json({{"event", "fault"}, {"message", fault.message}});
}

void print_sound(const std::string& path, const bundle::Reader& reader, size_t signatures, Console& console) {
  const bundle::Info& info = reader.info();
  std::string line =
      util::format("{}: ok, {} in {}, {}", util::escape(path), util::counted(reader.record_count(), "unit"),
                   util::counted(reader.frame_count(), "frame"), util::size_text(reader.file_size()));
  // The digests prove that nothing changed since it was written; who wrote it only a signature can prove.
  line += signatures == 0 ? ", not signed"
                          : ", " + util::counted(signatures, "signature block") + " (not checked)";
  if (info.partial) line += ", partial";
  if (info.subset) line += ", subset";
  console.result(line);
}

}  // namespace

int command_verify(const Common&, const BundleArguments& arguments, Console& console) {
  auto reader = bundle::Reader::open(arguments.bundle);
  std::vector<base::Error> faults;
  if (!reader) {
    faults.push_back(reader.error());
  } else {
    faults = reader->verify_all();
  }
  for (const base::Error& fault : faults) print_fault(fault, console);
  if (console.is_json()) {
    util::Json out{
        {"event", "summary"}, {"path", arguments.bundle}, {"ok", faults.empty()}, {"faults", faults.size()}};
    if (reader) {
      out["records"] = reader->record_count();
      out["frames"] = reader->frame_count();
      out["bytes"] = reader->file_size();
    }
    console.json(out);
  } else if (faults.empty()) {
    const auto blocks = reader->signature_blocks();
    print_sound(arguments.bundle, *reader, blocks ? blocks->size() : 0, console);
  } else if (faults.size() > 1) {
    console.result(
        util::format("{}: {}", util::escape(arguments.bundle), util::counted(faults.size(), "fault")));
  }
  return faults.empty() ? 0 : static_cast<int>(faults.front().kind);
}

}  // namespace kc::cli
