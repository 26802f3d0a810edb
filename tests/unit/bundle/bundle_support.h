// What the bundle's tests share: records and code objects made from numbers, bundles in a folder of their
// own, and a file image whose digests can be made right again after a change.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/files.h"
#include "bundle/bundle.h"
#include "bundle/format.h"

namespace kc::bundle::testing {

class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "kc-bundle-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// Bytes that no compressor makes smaller, the same for the same seed.
inline base::Bytes noise(uint32_t seed, size_t size) {
  base::Bytes out(size);
  uint64_t state = seed * 0x9E3779B97F4A7C15ULL + 1;
  for (uint8_t& byte : out) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    byte = static_cast<uint8_t>(state >> 32);
  }
  return out;
}

/// A code object as compilers make them: mostly what its siblings hold, a little of its own.
inline base::Bytes code_object(uint32_t seed, size_t size = 600) {
  base::Bytes out = noise(7, size);
  const base::Bytes own = noise(seed + 100, std::min<size_t>(size, 40));
  std::copy(own.begin(), own.end(),
            out.begin() + static_cast<std::ptrdiff_t>((seed * 16) % (size - own.size() + 1)));
  return out;
}

inline Record make_record(const std::string& kernel, const std::string& specialization,
                          const std::string& target) {
  Record record;
  record.kernel = kernel;
  record.specialization = specialization;
  record.target = target;
  record.found_target = target == "sm_90" ? "sm_90a" : target;
  record.backend = "tileiras";
  record.entry = kernel;
  record.symbol = kernel;
  record.compiler = "tileiras";
  record.compiler_version = "13.4.92";
  record.compiler_identity = base::sha256("compiler");
  record.toolkit = "13.4";
  record.lowest_driver = 580;
  record.content_key = base::sha256(record.unit());
  record.facts.symbol = kernel;
  record.facts.registers = 96;
  record.facts.local_memory = 8;
  record.facts.shared_memory = 4096;
  record.facts.argument_bytes = 24;
  record.facts.arguments = {{0, 8}, {8, 8}, {16, 4}};
  record.facts.max_threads = 1024;
  record.facts.wave_size = 32;
  return record;
}

struct Input {
  Info info{"demo", 12, false, false};
  std::vector<Record> records;
  std::vector<base::Bytes> artifacts;
  WriteOptions options;

  void add(Record record, base::Bytes artifact) {
    records.push_back(std::move(record));
    artifacts.push_back(std::move(artifact));
  }
  base::Result<void> write(const std::string& path) const {
    std::filesystem::remove(path);
    const base::FileDescriptor fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    REQUIRE(fd);
    return write_bundle(
        fd.get(), info, records, [this](size_t i) { return artifacts[i]; }, options);
  }
};

/// Three kernels, two of them in several specializations, over three targets; two frames are shared.
inline Input small_input() {
  Input input;
  uint32_t seed = 0;
  for (const char* target : {"sm_90", "sm_80", "gfx1151"}) {
    input.add(make_record("vec_add", "", target), code_object(seed++));
    for (const char* specialization : {"TM=64,TN=64", "TM=64,TN=128", "TM=128,TN=64"}) {
      Record record = make_record("matmul", specialization, target);
      record.is_default = record.specialization == "TM=64,TN=64";
      record.metadata = {{"owner", "attention"}};
      input.add(record, code_object(seed++));
    }
  }
  return input;
}

inline Input many_input(uint32_t kernels, uint32_t specializations, size_t size) {
  Input input;
  uint32_t seed = 0;
  for (uint32_t k = 0; k < kernels; ++k) {
    for (uint32_t s = 0; s < specializations; ++s) {
      input.add(make_record("kernel_" + std::to_string(k), "TM=" + std::to_string(s), "sm_90"),
                code_object(seed++, size));
    }
  }
  return input;
}

inline base::Bytes read_all(const std::string& path) {
  auto bytes = base::read_file(path, 1U << 30);
  REQUIRE(bytes);
  return std::move(*bytes);
}

inline void write_file(const std::string& path, base::ByteView bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  REQUIRE(out.flush());
}

/// All faults of a file on one line each: of opening it, or else of verifying it.
inline std::string faults_of(const std::string& path) {
  auto reader = Reader::open(path);
  if (!reader) return reader.error().text();
  std::string out;
  for (const base::Error& fault : reader->verify_all()) out += fault.text() + "\n";
  return out;
}

/// A bundle in memory: change it, `seal` it (all digests of the chain are computed anew), save it.
struct Image {
  base::Bytes bytes;

  explicit Image(const std::string& path) : bytes(read_all(path)) {}
  uint64_t u64(uint64_t offset) const { return base::load_le<uint64_t>(bytes, offset); }
  uint32_t u32(uint64_t offset) const { return base::load_le<uint32_t>(bytes, offset); }
  template <typename T>
  void put(uint64_t offset, T value) {
    std::memcpy(bytes.data() + offset, &value, sizeof value);
  }
  uint64_t index(uint32_t record) const { return u64(80) + record * kIndexSize; }
  uint64_t detail(uint32_t record) const { return u64(96) + record * kDetailSize; }
  uint64_t frame_entry(uint32_t frame) const { return u64(112) + frame * kFrameEntrySize; }
  uint64_t strings() const { return u64(128); }

  void digest_of(uint64_t offset, uint64_t size, uint64_t to) {
    const base::Digest digest = base::sha256(base::ByteView(bytes).subspan(offset, size));
    std::copy(digest.bytes.begin(), digest.bytes.end(), bytes.begin() + static_cast<std::ptrdiff_t>(to));
  }
  Image& seal() {
    for (uint64_t page = 0; page < u64(72) / kPageSize; ++page) {
      digest_of(u64(64) + page * kPageSize, kPageSize, u64(48) + page * kDigestSize);
    }
    digest_of(u64(48), u64(56), 176);
    digest_of(u64(160), u64(168), 208);
    return seal_header();
  }
  Image& seal_header() {
    digest_of(0, kHeaderSize - kDigestSize, kHeaderSize - kDigestSize);
    return *this;
  }
  /// Makes the digest in the frame table right for the stored bytes.
  Image& seal_frame(uint32_t frame) {
    const uint64_t at = frame_entry(frame);
    digest_of(u64(at), u64(at + 8), at + 32);
    return *this;
  }
  std::string faults(const std::string& path) const {
    write_file(path, bytes);
    return faults_of(path);
  }
};

inline base::Bytes signature_block(uint32_t type, base::ByteView payload) {
  base::ByteWriter out;
  out.raw(base::as_bytes(kSignatureMagic));
  out.u32(type);
  out.u32(static_cast<uint32_t>(payload.size()));
  out.raw(base::Sha256().update(out.bytes()).update(payload).finish().view());
  out.raw(payload);
  out.pad_to(kAlignment);
  return out.take();
}

inline bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace kc::bundle::testing
