// What the tests of the store share: a folder of their own, entries, and looking at and damaging files.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/atomic_file.h"
#include "base/files.h"
#include "store/layout.h"
#include "store/store.h"

namespace kc::store::test {

namespace fs = std::filesystem;

/// A folder that is gone when the object is.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_(fs::canonical(fs::temp_directory_path()) / base::unique_name("kc-store-test-")) {
    fs::create_directory(path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  fs::path operator/(const char* name) const { return path_ / name; }

 private:
  fs::path path_;
};

inline base::Digest key_of(const std::string& text) {
  return base::sha256(text);
}

inline Entry sample_entry(const std::string& name, size_t code_size = 300) {
  Entry entry;
  entry.key = key_of(name);
  entry.backend = "tileiras";
  entry.target = "sm_90";
  entry.entry = "kernel_" + name;
  entry.kernel = name;
  // Repeats, so that it compresses, and differs from the code of any other name.
  for (size_t i = 0; i < code_size; ++i) entry.artifact.code.push_back(entry.key.bytes[i % 32]);
  entry.artifact.facts.found_target = "sm_90";
  entry.artifact.facts.toolkit = "13.4";
  artifact::KernelFacts kernel;
  kernel.symbol = entry.entry;
  kernel.registers = 96;
  kernel.arguments = {{0, 8}, {8, 4}};
  entry.artifact.facts.kernels.push_back(kernel);
  entry.artifact.diagnostics.push_back({artifact::Severity::kWarning, "W1", "odd", "a.py", 3, 4});
  entry.artifact.report = {'r', 'e', 'p'};
  entry.artifact.compiler = "tileiras";
  entry.artifact.compiler_version = "13.4.92";
  entry.seconds = 1.5;
  entry.peak_bytes = 123456;
  entry.origin.kc_version = "0.1.0";
  entry.origin.time_s = 1'700'000'000;
  entry.origin.host = "builder";
  entry.origin.user = "1000";
  entry.key_fields = {{"backend", "tileiras"}, {"target", "sm_90"}};
  return entry;
}

inline void check_equal(const Entry& a, const Entry& b) {
  CHECK(a.key == b.key);
  CHECK(a.backend == b.backend);
  CHECK(a.target == b.target);
  CHECK(a.entry == b.entry);
  CHECK(a.kernel == b.kernel);
  CHECK(a.artifact == b.artifact);
  CHECK(a.unsupported == b.unsupported);
  CHECK(a.seconds == b.seconds);
  CHECK(a.peak_bytes == b.peak_bytes);
  CHECK(a.origin.imported == b.origin.imported);
  CHECK(a.origin.signer == b.origin.signer);
  CHECK(a.origin.kc_version == b.origin.kc_version);
  CHECK(a.origin.time_s == b.origin.time_s);
  CHECK(a.origin.host == b.origin.host);
  CHECK(a.origin.user == b.origin.user);
  CHECK(a.key_fields == b.key_fields);
}

inline Record sample_record(const std::string& request, const std::string& content) {
  Record record;
  record.request = key_of(request);
  record.content = key_of(content);
  record.unit = "kernel:T=64@gfx942";
  record.time_s = 1'700'000'000;
  record.key_fields = {{"backend", "loom"}, {"source", "a.loom"}, {"content", key_of("source").hex()}};
  return record;
}

inline void check_equal(const Record& a, const Record& b) {
  CHECK(a.request == b.request);
  CHECK(a.content == b.content);
  CHECK(a.unit == b.unit);
  CHECK(a.time_s == b.time_s);
  CHECK(a.key_fields == b.key_fields);
}

inline std::unique_ptr<Store> open_store(const fs::path& root, Mode mode = Mode::kReadWrite,
                                         uint64_t limit = 5ULL << 30) {
  auto store = Store::open({root.string(), mode, limit});
  if (!store) FAIL(store.error().text());
  return std::move(*store);
}

inline fs::path path_of(const fs::path& root, const base::Digest& key, Kind kind = Kind::kEntry) {
  return root / "v1" / stored_path(kind, key);
}

inline base::Bytes slurp(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// Replaces a file, whatever its mode.
inline void spill(const fs::path& path, base::ByteView bytes) {
  fs::remove(path);
  std::ofstream out(path, std::ios::binary);
  const std::string_view text = base::as_text(bytes);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  REQUIRE(out.good());
}
inline void spill(const fs::path& path, const std::string& text) {
  spill(path, base::as_bytes(text));
}

inline void set_age(const fs::path& path, int64_t seconds) {
  const int64_t then = base::wall_clock_ns() - seconds * kSecondNs;
  const timespec time{then / kSecondNs, then % kSecondNs};
  const timespec times[2] = {time, time};
  REQUIRE(utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW) == 0);
}
inline int64_t age_of(const fs::path& path) {
  struct stat status;
  REQUIRE(lstat(path.c_str(), &status) == 0);
  return (base::wall_clock_ns() - mtime_ns(status)) / kSecondNs;
}

/// Names in a folder that start with `prefix`.
inline std::vector<std::string> names_in(const fs::path& folder, const std::string& prefix = "") {
  std::vector<std::string> out;
  for (const auto& item : fs::directory_iterator(folder)) {
    const std::string name = item.path().filename().string();
    if (name.starts_with(prefix)) out.push_back(name);
  }
  return out;
}

}  // namespace kc::store::test
