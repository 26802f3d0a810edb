// Bundles: opening, searching, handing out and verifying agree, and what verifies can be written again.
#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "bundle/bundle.h"
#include "bundle/format.h"
#include "fuzz/fuzz.h"
#include "fuzz/memory_file.h"
#include "fuzz/repair.h"

namespace kc::fuzz {
namespace {

using bundle::Reader;
using bundle::Record;

void check_error(const base::Error& error) {
  KC_PROMISE(error.kind == base::ErrorKind::kFailed);
  KC_PROMISE(!error.message.empty());
  KC_PROMISE(!error.place.file.empty());
}

auto order_of(const Record& record) {
  return std::tie(record.kernel, record.specialization, record.target);
}

// Everything that a record says but where its artifact lies, which is the writer's to choose.
bool same_but_for_place(const Record& a, const Record& b) {
  const auto said = [](const Record& r) {
    return std::tie(r.kernel, r.specialization, r.target, r.found_target, r.backend, r.entry, r.symbol,
                    r.is_default, r.compiler, r.compiler_version, r.compiler_identity, r.toolkit,
                    r.lowest_driver, r.content_key, r.facts, r.metadata, r.artifact_digest, r.artifact_size);
  };
  return said(a) == said(b);
}

struct Content {
  std::vector<Record> records;
  std::vector<base::Bytes> artifacts;
  bool whole = true;  // everything could be read
};

// All that a reader hands out, each piece checked against what was said of it.
Content content_of(Reader& reader) {
  Content out;
  for (uint32_t i = 0; i < reader.record_count(); ++i) {
    auto record = reader.record(i);
    if (!record) {
      check_error(record.error());
      out.whole = false;
      continue;
    }
    auto code = reader.artifact(*record);
    if (!code) {
      check_error(code.error());
      out.whole = false;
      continue;
    }
    KC_PROMISE(code->size() == record->artifact_size);
    KC_PROMISE(base::sha256(*code) == record->artifact_digest);
    out.records.push_back(std::move(*record));
    out.artifacts.push_back(std::move(*code));
  }
  for (uint32_t i = 0; i < reader.frame_count(); ++i) {
    const auto frame = reader.frame(i);
    if (!frame) {
      check_error(frame.error());
      out.whole = false;
    } else {
      KC_PROMISE(frame->offset + frame->stored_size <= reader.file_size());
      KC_PROMISE(frame->raw_size <= bundle::kMaxFrameBytes);
    }
  }
  if (const auto metadata = reader.metadata(); !metadata) {
    check_error(metadata.error());
    out.whole = false;
  }
  const auto blocks = reader.signature_blocks();
  const auto signatures = reader.signatures();
  KC_PROMISE(blocks.has_value() == signatures.has_value());
  if (!blocks) {
    check_error(blocks.error());
    out.whole = false;
  } else {
    KC_PROMISE(std::ranges::count(*blocks, bundle::kSignatureEd25519, &Reader::SignatureBlock::type) ==
               static_cast<std::ptrdiff_t>(signatures->size()));
  }
  return out;
}

void check_whole(Reader& reader, const Content& content) {
  KC_PROMISE(content.whole);
  for (uint32_t i = 0; i < reader.record_count(); ++i) {
    const Record& record = content.records[i];
    KC_PROMISE(i == 0 || order_of(content.records[i - 1]) < order_of(record));
    const auto found = reader.find(record.kernel, record.specialization, record.target);
    KC_PROMISE(found && *found == i);
  }
  const auto missing = reader.find("no such kernel, by its blanks", "", "sm_90");
  KC_PROMISE(missing && !missing->has_value());
}

// Writing what was read gives a bundle that says the same.
void check_rewritten(const Reader& reader, const Content& content) {
  bundle::WriteOptions options;
  options.level = 1;
  options.frame_size = bundle::kLeastFrameSize;
  MemoryFile file;
  const auto written = bundle::write_bundle(
      file.fd(), reader.info(), content.records, [&](size_t i) { return content.artifacts[i]; }, options);
  KC_PROMISE(written);
  auto again = Reader::open(file.path());
  KC_PROMISE(again);
  KC_PROMISE(again->verify_all().empty());
  KC_PROMISE(again->info().name == reader.info().name && again->info().release == reader.info().release);
  KC_PROMISE(again->info().partial == reader.info().partial && again->info().subset == reader.info().subset);
  const Content copy = content_of(*again);
  KC_PROMISE(std::ranges::equal(copy.records, content.records, same_but_for_place));
  KC_PROMISE(copy.artifacts == content.artifacts);
}

bool check_file(base::ByteView bytes) {
  static MemoryFile file;
  file.fill(bytes);
  auto reader = Reader::open(file.path());
  if (!reader) {
    check_error(reader.error());
    return false;
  }
  KC_PROMISE(bundle::looks_like_bundle(file.path()));
  KC_PROMISE(reader->file_size() == bytes.size());
  const Content content = content_of(*reader);
  const std::vector<base::Error> faults = reader->verify_all();
  for (const base::Error& fault : faults) check_error(fault);
  KC_PROMISE(content.whole || !faults.empty());
  if (!faults.empty()) return false;
  check_whole(*reader, content);
  check_rewritten(*reader, content);
  return true;
}

}  // namespace

bool check(base::ByteView input) {
  const bool whole = check_file(input);
  if (!whole) check_file(repair_bundle(input));
  return whole;
}

}  // namespace kc::fuzz
