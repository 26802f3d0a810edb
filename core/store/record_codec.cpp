#include "store/record_codec.h"

#include <string>
#include <utility>
#include <vector>

namespace kc::store {
namespace {

using base::ByteReader;
using base::Bytes;
using base::ByteView;
using base::ByteWriter;
using base::Digest;

Checked<Record> decode_fields(ByteView header, const Frozen& frozen, const Digest& request) {
  if (frozen.payload_size != 0) return damaged("has a payload, which a record has not");
  ByteReader in(header.subspan(kFrozenSize));
  Record record;
  record.request = read_digest(in);
  record.content = read_digest(in);
  record.time_s = in.i64();
  record.unit = in.text();
  record.imported = (frozen.flags & kFlagImported) != 0;
  if (record.imported) record.signer = in.text();
  const uint32_t count = in.count(8);  // two lengths
  record.key_fields.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    std::string name = in.text();
    record.key_fields.emplace_back(std::move(name), in.text());
  }
  if (!in.complete()) return damaged("has header fields that do not add up");
  if (record.request != request) return damaged("holds the record of another key");
  if (record.content.is_zero()) return damaged("leads to no entry");
  return record;
}

void write_key_fields(ByteWriter& out, const std::vector<std::pair<std::string, std::string>>& fields) {
  out.u32(static_cast<uint32_t>(fields.size()));
  for (const auto& [name, value] : fields) {
    out.text(name);
    out.text(value);
  }
}

}  // namespace

base::Result<Bytes> encode_record(const Record& record) {
  if (record.content.is_zero()) return base::fail(base::ErrorKind::kInternal, "a record leads to an entry");
  ByteWriter out;
  out.raw(record.request.view());
  out.raw(record.content.view());
  out.i64(record.time_s);
  out.text(record.unit);
  if (record.imported) out.text(record.signer);
  const size_t listing = out.size();
  write_key_fields(out, record.key_fields);
  if (out.size() + kFrozenSize > kMaxHeader) {
    // Of some thousand files. What only listings show must not cost a hit.
    out.bytes().resize(listing);
    write_key_fields(out, {});
  }
  if (out.size() + kFrozenSize > kMaxHeader) {
    return base::fail(base::ErrorKind::kFailed, "the names in the record are longer than a record may hold");
  }
  return build_header(kRecordMagic, kVersion, record.imported ? kFlagImported : 0, out.bytes(), 0);
}

Checked<Record> read_record(int fd, const Digest& request, uint64_t file_size) {
  KC_ASSIGN(const HeaderBytes header, read_header(fd, kRecordMagic, kRecordFlags, file_size));
  return decode_fields(header.bytes, header.frozen, request);
}

Checked<Record> decode_record(ByteView file, const Digest& request) {
  KC_ASSIGN(const Frozen frozen, read_frozen(file, kRecordMagic, file.size()));
  const ByteView header = file.first(static_cast<size_t>(frozen.header_size));
  KC_TRY(check_header(header, frozen, kRecordFlags, file.size()));
  return decode_fields(header, frozen, request);
}

}  // namespace kc::store
