// Makes the seeds of tests/fuzz/corpus that kc's own writers make.
//
// usage: make_corpus tests/fuzz/corpus
//
// Run it when a format has changed (then the tests of the corpora fail: the old seeds are whole no more), and
// commit what it wrote. Files of other names stay: texts written by hand, and inputs that broke a promise
// once. Only compressed parts differ from one version of zstd to the next.
#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "base/error.h"
#include "base/files.h"
#include "bundle/bundle.h"
#include "bundle/format.h"
#include "bundle/signature.h"
#include "engine/wire.h"
#include "fuzz/memory_file.h"
#include "store/archive.h"
#include "store/entry_codec.h"
#include "store/record_codec.h"
#include "support/cubin_writer.h"
#include "support/hsaco_writer.h"

namespace {

using kc::base::Bytes;
using kc::base::ByteView;
using kc::base::ByteWriter;

std::string root;

// Whatever fails here is a fault of this program: it ends.
template <typename T>
T need(kc::base::Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "make_corpus: %s\n", result.error().text().c_str());
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

void save(const std::string& format, const std::string& name, ByteView bytes) {
  const std::string folder = kc::base::join_path(root, format);
  need(kc::base::make_directories(folder));
  const auto fd = need(kc::base::open_at(AT_FDCWD, kc::base::join_path(folder, "whole-" + name),
                                         O_WRONLY | O_CREAT | O_TRUNC, 0644));
  need(kc::base::write_all(fd.get(), bytes, name));
}

kc::artifact::KernelFacts facts_of(const std::string& symbol) {
  kc::artifact::KernelFacts out;
  out.symbol = symbol;
  out.registers = 96;
  out.local_memory = 8;
  out.shared_memory = 4096;
  out.argument_bytes = 20;
  out.arguments = {{0, 8}, {8, 8}, {16, 4}};
  out.required_block = {128, 1, 1};
  out.max_threads = 128;
  out.wave_size = 32;
  return out;
}

kc::artifact::Artifact artifact(size_t code_size) {
  kc::artifact::Artifact out;
  for (size_t i = 0; i < code_size; ++i) out.code.push_back(static_cast<uint8_t>(i * i >> 3));
  out.facts.found_target = "sm_90a";
  out.facts.toolkit = "13.4";
  out.facts.kernels = {facts_of("matmul")};
  out.diagnostics = {{kc::artifact::Severity::kWarning, "W1", "spills", "kernels/a.py", 3, 4}};
  out.report = {'r', 'e', 'p', 'o', 'r', 't'};
  out.compiler = "tileiras";
  out.compiler_version = "13.4.92";
  return out;
}

void make_wire() {
  namespace engine = kc::engine;
  const engine::Greeting greeting{engine::kProtocolVersion, "0.1.0+0123456789abcdef"};
  engine::Setup setup;
  setup.store_directory = "/home/a/.cache/kc";
  setup.read_only_directories = {"/usr/share/kc"};
  setup.work_folder = "/home/a/.cache/kc/v1/tmp/w";
  setup.slots = 2;
  const engine::Sources sources{3,
                                {{"kernels/matmul.loom", kc::backend::Role::kSource, {1, 2, 3, 4}},
                                 {"kernels/tiles.loom", kc::backend::Role::kLibrary, {5}}}};
  engine::Job job;
  job.id = 7;
  job.backend = "tileiras";
  job.unit = "matmul:TM=64@sm_90";
  job.key = kc::base::sha256("key");
  job.entry = "matmul";
  job.target = "sm_90";
  job.options = {{"debug", "false"}, {"opt", "3"}};
  job.config = {{"TM", "64"}};
  job.sources = 3;
  job.timeout = std::chrono::seconds(600);
  const engine::Started started{7};
  const engine::Group group{7, 4711, true};
  engine::Done done;
  done.id = 7;
  done.state = engine::JobState::kCompiled;
  done.module = kc::base::sha256("module");
  done.content_key = kc::base::sha256("content");
  done.artifact = artifact(40);
  done.message = "compiled";
  done.output = "remark: fine\n";
  done.seconds = 1.5;
  done.peak_bytes = 1 << 20;
  done.holds_key = true;
  const engine::Release release{7};
  const engine::Forget forget{3};

  Bytes conversation;
  const std::pair<const char*, engine::Message> messages[] = {
      {"greeting", greeting}, {"setup", setup}, {"sources", sources}, {"job", job},      {"started", started},
      {"group", group},       {"done", done},   {"release", release}, {"forget", forget}};
  for (const auto& [name, message] : messages) {
    const Bytes frame = engine::encode(message);
    save("wire", name, frame);
    conversation.insert(conversation.end(), frame.begin(), frame.end());
  }
  save("wire", "conversation", conversation);
}

// An archive of these; `sign` puts a signature of a made-up key behind it.
Bytes archive(const std::vector<kc::store::Entry>& entries, const std::vector<kc::store::Record>& records,
              bool sign) {
  const std::string path = kc::base::join_path(root, "archive.new");
  auto writer = need(kc::store::ArchiveWriter::create(path));
  for (const auto& entry : entries) {
    need(writer.add(kc::store::Kind::kEntry, entry.key, need(kc::store::encode_entry(entry))));
  }
  for (const auto& record : records) {
    need(writer.add(kc::store::Kind::kRecord, record.request, need(kc::store::encode_record(record))));
  }
  need(writer.finish());
  if (sign) {
    kc::bundle::Signature signature;
    signature.key.bytes.fill(3);
    signature.bytes.fill(4);
    need(writer.append_block(kc::bundle::encode_block(signature)));
  }
  need(writer.commit());
  Bytes bytes = need(kc::base::read_file(path, 1U << 20));
  std::remove(path.c_str());
  return bytes;
}

void make_archives(const kc::store::Entry& entry, const kc::store::Record& record) {
  save("archive", "empty", archive({}, {}, false));
  save("archive", "entry", archive({entry}, {}, false));
  save("archive", "record", archive({}, {record}, false));
  save("archive", "signed", archive({entry}, {record}, true));
  kc::store::Entry other = entry;
  other.key = kc::base::sha256("other key");
  other.origin.imported = true;
  kc::store::Record imported = record;
  imported.request = kc::base::sha256("imported");
  imported.imported = true;
  imported.signer = std::string(64, 'a');
  std::vector<kc::store::Entry> entries = {entry, other};
  std::vector<kc::store::Record> records = {record, imported};
  std::ranges::sort(entries, {}, &kc::store::Entry::key);
  std::ranges::sort(records, {}, &kc::store::Record::request);
  save("archive", "several", archive(entries, records, false));
}

void make_entries() {
  kc::store::Entry entry;
  entry.key = kc::base::sha256("key");
  entry.backend = "tileiras";
  entry.target = "sm_90";
  entry.entry = "matmul";
  entry.kernel = "matmul";
  entry.seconds = 1.5;
  entry.peak_bytes = 1 << 20;
  entry.origin.kc_version = "0.1.0";
  entry.origin.time_s = 1'700'000'000;
  entry.origin.host = "builder";
  entry.origin.user = "1000";
  entry.key_fields = {{"backend", "tileiras"}, {"target", "sm_90"}};
  entry.artifact = artifact(32);
  entry.artifact.report.clear();
  save("entry", "plain", need(kc::store::encode_entry(entry)));
  entry.artifact = artifact(0);
  entry.artifact.code.assign(2000, 0xAB);
  save("entry", "compressed", need(kc::store::encode_entry(entry)));
  entry.artifact = artifact(0);
  entry.artifact.facts = {};
  entry.unsupported = true;
  save("entry", "unsupported", need(kc::store::encode_entry(entry)));
  kc::store::Record record;
  record.request = kc::base::sha256("request");
  record.content = entry.key;
  record.unit = "matmul:T=64@gfx942";
  record.time_s = entry.origin.time_s;
  record.key_fields = {{"backend", "loom"}, {"source", "a.loom"}, {"content", "00"}};
  save("entry", "record", need(kc::store::encode_record(record)));
  make_archives(entry, record);
  record.imported = true;
  record.signer = std::string(64, 'a');
  save("entry", "record-imported", need(kc::store::encode_record(record)));
}

kc::bundle::Record record(const std::string& kernel, const std::string& specialization,
                          const std::string& target) {
  kc::bundle::Record out;
  out.kernel = kernel;
  out.specialization = specialization;
  out.target = target;
  out.found_target = target == "sm_90" ? "sm_90a" : target;
  out.backend = "tileiras";
  out.entry = kernel;
  out.symbol = kernel;
  out.compiler = "tileiras";
  out.compiler_version = "13.4.92";
  out.compiler_identity = kc::base::sha256("compiler");
  out.toolkit = "13.4";
  out.lowest_driver = 580;
  out.content_key = kc::base::sha256(out.unit());
  out.facts = facts_of(kernel);
  out.metadata = {{"owner", "attention"}};
  return out;
}

Bytes bundle(const kc::bundle::Info& info, const std::vector<kc::bundle::Record>& records,
             const std::vector<Bytes>& codes) {
  kc::bundle::WriteOptions options;
  options.frame_size = kc::bundle::kLeastFrameSize;
  const kc::fuzz::MemoryFile file;
  need(kc::bundle::write_bundle(
      file.fd(), info, records, [&](size_t i) { return codes[i]; }, options));
  return need(kc::base::read_descriptor(file.fd(), "bundle", 1U << 20));
}

// For the reader and for the library that is made of it.
void save_bundle(const std::string& name, const Bytes& bytes) {
  save("bundle", name, bytes);
  save("loader", name, bytes);
}

void make_bundles() {
  save_bundle("empty", bundle({"empty", 0, false, false}, {}, {}));
  const Bytes incompressible = {0x17, 0x2A, 0x91, 0x5C, 0xE3};
  Bytes one = bundle({"one", 3, true, true}, {record("vec_add", "", "sm_90")}, {incompressible});
  save_bundle("one", one);

  ByteWriter block;
  block.raw(kc::base::as_bytes(kc::bundle::kSignatureMagic));
  block.u32(kc::bundle::kSignatureEd25519);
  block.u32(kc::bundle::kEd25519PayloadSize);
  const Bytes payload(kc::bundle::kEd25519PayloadSize, 0x5A);
  const auto digest = kc::base::Sha256().update(block.bytes()).update(payload).finish();
  block.raw(digest.view());
  block.raw(payload);
  block.pad_to(kc::bundle::kAlignment);
  one.insert(one.end(), block.bytes().begin(), block.bytes().end());
  save_bundle("signature-block", one);

  kc::bundle::Record small = record("matmul", "TM=64,TN=64", "sm_90");
  small.is_default = true;
  const std::vector<kc::bundle::Record> records = {small, record("matmul", "TM=64,TN=128", "sm_90"),
                                                   record("matmul", "TM=64,TN=128", "gfx1151"),
                                                   record("vec_add", "", "sm_100")};
  const Bytes large(3000, 0xAB);
  save_bundle("frames", bundle({"demo", 12, false, false}, records, {large, Bytes(2000, 3), large, {1}}));
}

void make_cubins() {
  using kc::test::Cubin;
  using kc::test::CubinKernel;
  Cubin cubin;
  save("elf", "plain", write_cubin(cubin));
  CubinKernel kernel;
  kernel.symbol = "matmul";
  kernel.frame_size = 16;
  kernel.min_stack = 32;
  kernel.shared_memory = 4096;
  kernel.parameters = {{0, 8}, {8, 8}, {16, 4}};
  kernel.parameter_bytes = 20;
  kernel.required_block = {128, 1, 1};
  kernel.max_threads = {1024, 1, 1};
  CubinKernel other;
  other.symbol = "softmax";
  other.has_new_parameter_records = true;
  other.parameters = {{0, 8}};
  other.parameter_bytes = 8;
  CubinKernel device;
  device.symbol = "helper";
  device.is_entry = false;
  cubin.kernels = {kernel, other, device};
  save("elf", "kernels", write_cubin(cubin));
  cubin.architecture.clear();
  cubin.kernels = {other};
  save("elf", "without-note", write_cubin(cubin));
  cubin.kernels.clear();
  save("elf", "without-kernels", write_cubin(cubin));
}

void make_hsacos() {
  using kc::test::Hsaco;
  using kc::test::HsacoKernel;
  save("elf", "amd-plain", write_hsaco(Hsaco()));
  HsacoKernel kernel;
  kernel.symbol = "matmul";
  kernel.vgpr_spills = 3;
  kernel.sgpr_spills = 1;
  kernel.group_segment = 4096;
  kernel.private_segment = 16;
  kernel.argument_bytes = 32;
  kernel.arguments = {
      {"n", 0, 8, "by_value"}, {"a", 8, 8, "global_buffer"}, {"", 16, 8, "hidden_global_offset_x"}};
  kernel.required_block = {64, 2, 1};
  kernel.max_threads = 128;
  kernel.text = Bytes(64, 0);
  HsacoKernel other;
  other.symbol = "softmax";
  other.wave_size = 64;
  other.text = Bytes(64, 0);
  Hsaco hsaco;
  hsaco.target = "gfx942:sramecc+:xnack-";
  hsaco.abi_version = 2;
  hsaco.kernels = {kernel, other};
  save("elf", "amd-kernels", write_hsaco(hsaco));
  hsaco.target = "gfx11-generic";
  hsaco.abi_version = 4;
  hsaco.kernels.clear();
  save("elf", "amd-generic", write_hsaco(hsaco));
}

// Numbers below 128 are their own LEB128.
Bytes tile_ir(uint8_t minor, const std::vector<std::string>& names, const Bytes& attributes, uint8_t flags) {
  ByteWriter functions;
  functions.u8(static_cast<uint8_t>(names.size()));
  for (size_t i = 0; i < names.size(); ++i) {
    functions.u8(static_cast<uint8_t>(i));
    functions.u8(9);  // signature
    functions.u8(flags);
    functions.u8(1);  // location
    functions.raw(attributes);
    functions.u8(3);
    functions.raw(Bytes{1, 2, 3});  // body
  }
  ByteWriter strings;
  strings.u8(static_cast<uint8_t>(names.size()));
  strings.pad_to(4);
  uint32_t offset = 0;
  for (const std::string& name : names) {
    strings.u32(offset);
    offset += static_cast<uint32_t>(name.size());
  }
  for (const std::string& name : names) strings.raw(kc::base::as_bytes(name));

  ByteWriter out;
  out.raw(kc::base::as_bytes(std::string_view{"\x7FTileIR\0", 8}));
  out.u8(13);
  out.u8(minor);
  out.u16(0);
  const auto section = [&](uint8_t id, uint8_t alignment, const Bytes& data) {
    out.u8(id | 0x80);
    out.u8(static_cast<uint8_t>(data.size()));
    out.u8(alignment);
    out.pad_to(alignment);
    out.raw(data);
  };
  section(2, 8, functions.bytes());
  section(1, 4, strings.bytes());
  out.u8(0);
  return out.take();
}

void make_tile_ir() {
  constexpr uint8_t kEntry = 2, kHints = 4;
  // optimization_hints = { sm_90 = { occupancy = 2 : i32, flag = true, names = ["a"] } }
  const Bytes hints = {11, 1, 0, 10, 3, 1, 1, 3, 2, 1, 3, 1, 2, 6, 1, 5, 0};
  save("tile_ir", "plain", tile_ir(3, {"row_sum", "matmul"}, {}, kEntry));
  save("tile_ir", "hints", tile_ir(3, {"row_sum", "matmul"}, hints, kEntry | kHints));
  Bytes both = hints;
  both.insert(both.end(), {6, 0});  // argument attributes: an empty array
  save("tile_ir", "hints-without-flag", tile_ir(5, {"row_sum"}, both, kEntry));
  save("tile_ir", "without-entries", tile_ir(1, {"helper"}, {}, 0));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  root = argv[1];
  make_wire();
  make_entries();
  make_bundles();
  make_cubins();
  make_hsacos();
  make_tile_ir();
}
