// What libkcload costs beside the work that nobody can leave out, both in one process and by turns:
//
//   loader_bench open BUNDLE KEY RUNS    kc_open() with a demanded signature | open, pread and SHA-256 of
//   header and page
//                                        table, one Ed25519 check
//   loader_bench find BUNDLE KEY RUNS    kc_find() and kc_entry_read() of one entry, the bundle just opened |
//   pread, SHA-256 and
//                                        ZSTD_decompress of the same frame, SHA-256 of the same code object
//   loader_bench load BUNDLE KEY RUNS    as find, with kc_load() on the first CUDA device | and the driver's
//   own
//                                        cuLibraryLoadData() and cuLibraryGetKernel()
//
//   loader_bench grow BUNDLE OUT COUNT   writes a bundle of COUNT entries, those of BUNDLE again and again
//   under new names, for
//                                        `load` with real code; identical code is stored once
//
// Prints a line a run, "SECONDS SECONDS", each of one operation: the least of a few right after one another,
// since both sides take some tens of microseconds and the machine now and then more. Exit 77: there is no
// CUDA device.
#include <dlfcn.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/digest.h"
#include "bundle/bundle.h"
#include "kc/loader.h"

namespace {

constexpr int kTries = 9;  // of which the least counts

using Bytes = std::vector<uint8_t>;

[[noreturn]] void die(const std::string& why) {
  std::fprintf(stderr, "loader_bench: %s\n", why.c_str());
  std::exit(1);
}

void must(kc_status status, kc_error* error) {
  if (status != KC_OK) die(kc_error_message(error));
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <typename Operation>
double seconds_of(Operation&& operation) {
  const double start = seconds_now();
  operation();
  return seconds_now() - start;
}

// --- by hand -----------------------------------------------------------------------------------------------

void read_at(int fd, uint64_t offset, void* out, size_t size) {
  if (pread(fd, out, size, static_cast<off_t>(offset)) != static_cast<ssize_t>(size))
    die("the bundle ends early");
}

std::array<uint8_t, 32> sha256(const uint8_t* bytes, size_t size) {
  static EVP_MD* const md = EVP_MD_fetch(nullptr, "SHA2-256", nullptr);
  static EVP_MD_CTX* const context = EVP_MD_CTX_new();
  std::array<uint8_t, 32> out;
  if (EVP_DigestInit_ex2(context, md, nullptr) != 1 || EVP_DigestUpdate(context, bytes, size) != 1 ||
      EVP_DigestFinal_ex(context, out.data(), nullptr) != 1) {
    die("no SHA-256");
  }
  return out;
}

EVP_PKEY* read_key(const char* path) {
  FILE* file = std::fopen(path, "r");
  if (file == nullptr) die(std::string("cannot open ") + path);
  EVP_PKEY* key = PEM_read_PUBKEY(file, nullptr, nullptr, nullptr);
  std::fclose(file);
  if (key == nullptr) die(std::string("no public key in ") + path);
  return key;
}

// docs/bundle-format.md: header, page table, and the signature in the first block behind the content.
constexpr size_t kHeaderSize = 640;
constexpr size_t kBlockSize = 192;
constexpr size_t kSignatureAt = 48 + 32;

struct Places {
  uint64_t table_offset, table_size, content_size;
};

Places places_in(const uint8_t* header) {
  const kc::base::ByteView bytes(header, kHeaderSize);
  return {kc::base::load_le<uint64_t>(bytes, 48), kc::base::load_le<uint64_t>(bytes, 56),
          kc::base::load_le<uint64_t>(bytes, 40)};
}

void open_by_hand(const char* path, EVP_PKEY* key) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) die(std::string("cannot open ") + path);
  std::array<uint8_t, kHeaderSize> header;
  read_at(fd, 0, header.data(), header.size());
  const std::array<uint8_t, 32> digest = sha256(header.data(), kHeaderSize - 32);
  const Places places = places_in(header.data());
  Bytes table(places.table_size);
  read_at(fd, places.table_offset, table.data(), table.size());
  const std::array<uint8_t, 32> table_digest = sha256(table.data(), table.size());
  std::array<uint8_t, kBlockSize> block;
  read_at(fd, places.content_size, block.data(), block.size());
  close(fd);

  std::array<uint8_t, 17 + 32> message{};
  std::memcpy(message.data(), "kcb-signature-v1", 17);
  std::memcpy(message.data() + 17, digest.data(), digest.size());
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  const bool is_right =
      std::memcmp(digest.data(), header.data() + kHeaderSize - 32, 32) == 0 &&
      std::memcmp(table_digest.data(), header.data() + 176, 32) == 0 &&
      EVP_DigestVerifyInit_ex(context, nullptr, nullptr, nullptr, nullptr, key, nullptr) == 1 &&
      EVP_DigestVerify(context, block.data() + kSignatureAt, 64, message.data(), message.size()) == 1;
  EVP_MD_CTX_free(context);
  if (!is_right) die("a digest or the signature is wrong");
}

// An entry and where its code lies.
struct Wanted {
  std::string kernel, configuration, symbol;
  uint64_t offset, stored_size, raw_size, code_offset, code_size;
};

Bytes read_by_hand(int fd, const Wanted& wanted) {
  Bytes stored(wanted.stored_size);
  read_at(fd, wanted.offset, stored.data(), stored.size());
  sha256(stored.data(), stored.size());
  Bytes raw(wanted.raw_size);
  if (wanted.stored_size == wanted.raw_size) {
    raw = std::move(stored);
  } else if (ZSTD_decompress(raw.data(), raw.size(), stored.data(), stored.size()) != raw.size()) {
    die("a frame does not decompress");
  }
  sha256(raw.data() + wanted.code_offset, wanted.code_size);
  return raw;
}

// Up to `count` entries for the target, no two of one frame.
std::vector<Wanted> choose(const char* path, std::string_view target, size_t count) {
  auto reader = kc::bundle::Reader::open(path);
  if (!reader) die(reader.error().text());
  std::vector<uint32_t> order(reader->record_count());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), std::mt19937(1));
  std::vector<bool> used(reader->frame_count());
  std::vector<Wanted> out;
  for (const uint32_t index : order) {
    if (out.size() == count) break;
    const auto record = reader->record(index);
    if (!record) die(record.error().text());
    if (record->target != target || used[record->frame]) continue;
    used[record->frame] = true;
    const auto frame = reader->frame(record->frame);
    if (!frame) die(frame.error().text());
    out.push_back({record->kernel, record->specialization, record->symbol, frame->offset, frame->stored_size,
                   frame->raw_size, record->frame_offset, record->artifact_size});
  }
  if (out.empty()) die("the bundle has nothing for " + std::string(target));
  return out;
}

// --- the library -------------------------------------------------------------------------------------------

kc_bundle* open_bundle(const char* path, const char* key) {
  kc_policy policy = KC_POLICY_INIT;
  policy.key_files = &key;
  policy.key_file_count = 1;
  kc_bundle* bundle = nullptr;
  kc_error* error = nullptr;
  must(kc_open(path, &policy, &bundle, &error), error);
  return bundle;
}

// With the key read beforehand, as by hand.
kc_bundle* open_bundle(const char* path, const std::array<uint8_t, 32>& key) {
  kc_policy policy = KC_POLICY_INIT;
  policy.keys = key.data();
  policy.key_count = 1;
  kc_bundle* bundle = nullptr;
  kc_error* error = nullptr;
  must(kc_open(path, &policy, &bundle, &error), error);
  return bundle;
}

void print_run(double ours, double by_hand) {
  std::printf("%.9f %.9f\n", ours, by_hand);
}

void measure_open(const char* path, EVP_PKEY* key, int runs) {
  std::array<uint8_t, 32> raw;
  size_t size = raw.size();
  if (EVP_PKEY_get_raw_public_key(key, raw.data(), &size) != 1) die("the key is none of Ed25519");
  for (int run = -1; run < runs; ++run) {  // the first one warms up
    double ours = 1e9;
    double by_hand = 1e9;
    for (int i = 0; i < kTries; ++i) {
      kc_bundle* bundle = nullptr;
      ours = std::min(ours, seconds_of([&] {
                        bundle = open_bundle(path, raw);
                        kc_close(bundle);
                      }));
      by_hand = std::min(by_hand, seconds_of([&] { open_by_hand(path, key); }));
    }
    if (run >= 0) print_run(ours, by_hand);
  }
}

void measure_find(const char* path, const char* key, int runs, const std::vector<Wanted>& wanted,
                  const char* target) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  for (int run = -1; run < runs; ++run) {
    const Wanted& one = wanted[static_cast<size_t>(run + 1) % wanted.size()];
    double ours = 1e9;
    double by_hand = 1e9;
    for (int i = 0; i < kTries; ++i) {
      kc_bundle* bundle = open_bundle(path, key);
      ours = std::min(
          ours, seconds_of([&] {
            kc_entry* entry = nullptr;
            kc_error* error = nullptr;
            must(kc_find(bundle, one.kernel.c_str(), one.configuration.c_str(), target, &entry, &error),
                 error);
            Bytes code(kc_entry_get_info(entry)->code_size);
            must(kc_entry_read(entry, code.data(), code.size(), &error), error);
            kc_entry_free(entry);
          }));
      kc_close(bundle);
      by_hand = std::min(by_hand, seconds_of([&] { read_by_hand(fd, one); }));
    }
    if (run >= 0) print_run(ours, by_hand);
  }
  close(fd);
}

// --- the driver by hand ------------------------------------------------------------------------------------

// From NVIDIA's "CUDA Driver API": the calls that a program cannot do without.
struct Cuda {
  int (*init)(unsigned) = nullptr;
  int (*retain)(void**, int) = nullptr;
  int (*set_current)(void*) = nullptr;
  int (*load)(void**, const void*, void*, void*, unsigned, void*, void*, unsigned) = nullptr;
  int (*kernel)(void**, void*, const char*) = nullptr;
  int (*function)(void**, void*) = nullptr;
  int (*unload)(void*) = nullptr;
};

Cuda open_cuda() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  Cuda out;
  const auto symbol = [&](const char* name, auto& pointer) {
    void* address = library != nullptr ? dlsym(library, name) : nullptr;
    std::memcpy(&pointer, &address, sizeof address);
    return address != nullptr;
  };
  void* context = nullptr;
  const bool is_there = symbol("cuInit", out.init) && symbol("cuDevicePrimaryCtxRetain", out.retain) &&
                        symbol("cuCtxSetCurrent", out.set_current) && symbol("cuLibraryLoadData", out.load) &&
                        symbol("cuLibraryGetKernel", out.kernel) &&
                        symbol("cuKernelGetFunction", out.function) && symbol("cuLibraryUnload", out.unload);
  if (!is_there || out.init(0) != 0 || out.retain(&context, 0) != 0 || out.set_current(context) != 0) {
    std::fprintf(stderr, "loader_bench: there is no CUDA device\n");
    std::exit(77);
  }
  return out;
}

void measure_load(const char* path, const char* key, int runs) {
  const Cuda cuda = open_cuda();
  const kc_device* device = nullptr;
  kc_error* error = nullptr;
  must(kc_device_get(KC_CUDA, 0, &device, &error), error);
  std::vector<Wanted> wanted =
      choose(path, kc_device_get_info(device)->target, static_cast<size_t>(runs) + 2);
  // By hand the context is there already; so it is here, as long as a kernel is loaded.
  const Wanted other = wanted.back();
  wanted.pop_back();
  if (wanted.empty()) die("the bundle has too few frames for this device");
  kc_bundle* kept_open = open_bundle(path, key);
  kc_kernel* kept = nullptr;
  must(kc_load(kept_open, other.kernel.c_str(), other.configuration.c_str(), device, nullptr, &kept, &error),
       error);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  for (int run = -1; run < runs; ++run) {
    const Wanted& one = wanted[static_cast<size_t>(run + 1) % wanted.size()];
    double ours = 1e9;
    double by_hand = 1e9;
    for (int i = 0; i < kTries; ++i) {
      kc_bundle* bundle = open_bundle(path, key);
      kc_kernel* kernel = nullptr;
      ours = std::min(ours, seconds_of([&] {
                        must(kc_load(bundle, one.kernel.c_str(), one.configuration.c_str(), device, nullptr,
                                     &kernel, &error),
                             error);
                      }));
      kc_kernel_release(kernel);
      kc_close(bundle);
      void* library = nullptr;
      by_hand = std::min(by_hand, seconds_of([&] {
                           const Bytes raw = read_by_hand(fd, one);
                           void* handle = nullptr;
                           void* function = nullptr;
                           if (cuda.load(&library, raw.data() + one.code_offset, nullptr, nullptr, 0, nullptr,
                                         nullptr, 0) != 0 ||
                               cuda.kernel(&handle, library, one.symbol.c_str()) != 0 ||
                               cuda.function(&function, handle) != 0) {
                             die("the driver refuses " + one.kernel);
                           }
                         }));
      cuda.unload(library);
    }
    if (run >= 0) print_run(ours, by_hand);
  }
  close(fd);
  kc_kernel_release(kept);
  kc_close(kept_open);
}

void grow(const char* path, const char* out, size_t count) {
  auto reader = kc::bundle::Reader::open(path);
  if (!reader) die(reader.error().text());
  std::vector<kc::bundle::Record> records;
  for (size_t i = 0; i < count; ++i) {
    auto record = reader->record(static_cast<uint32_t>(i % reader->record_count()));
    if (!record) die(record.error().text());
    record->kernel += "_" + std::to_string(i / reader->record_count());
    records.push_back(std::move(*record));
  }
  const int fd = open(out, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) die(std::string("cannot make ") + out);
  std::vector<kc::bundle::Record> sources = records;
  const auto written =
      kc::bundle::write_bundle(fd, reader->info(), std::move(records),
                               [&](size_t index) { return reader->artifact(sources[index]); }, {});
  if (!written) die(written.error().text());
  close(fd);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 5) die("usage: loader_bench open|find|load BUNDLE KEY RUNS, or grow BUNDLE OUT COUNT");
  const std::string_view what = arguments[1];
  const char* path = arguments[2];
  const char* key = arguments[3];
  const int runs = std::atoi(arguments[4]);
  if (what == "open") {
    measure_open(path, read_key(key), runs);
  } else if (what == "find") {
    const char* target = "sm_90";
    measure_find(path, key, runs, choose(path, target, static_cast<size_t>(runs) + 1), target);
  } else if (what == "grow") {
    grow(path, key, static_cast<size_t>(runs));
  } else if (what == "load") {
    measure_load(path, key, runs);
  } else {
    die("there is no \"" + std::string(what) + "\"");
  }
}
