// The demo's kernels on a real NVIDIA GPU: each entry of the bundle that fits the device is loaded through
// libkcload, launched, and what it computes is compared with the same in double precision on the CPU. Then
// what must not load: a flipped byte, another key, a lower release, a partial bundle.
//
//   demo_gpu FOLDER    as `demo.py BUILD --prepare FOLDER` makes it, on a machine that has the compiler; here
//   only the driver is needed
//
// Exit 77 and `not run: ...` where there is no device. The parameter block is laid out by the bundle's own
// launch facts.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bundle/bundle.h"
#include "gpu/cuda.h"
#include "gpu/numbers.h"
#include "kc/loader.h"
#include "support/temp_folder.h"

namespace {

using kc::test::Cuda;
using kc::test::decode;
using kc::test::Element;
using kc::test::element_named;
using kc::test::encode;
using kc::test::size_of;
using kc::test::step_of;

int failures = 0;

void fail(const std::string& what) {
  std::printf("FAILED: %s\n", what.c_str());
  ++failures;
}

struct Close {
  void operator()(kc_bundle* bundle) const { kc_close(bundle); }
  void operator()(kc_entry* entry) const { kc_entry_free(entry); }
  void operator()(kc_kernel* kernel) const { kc_kernel_release(kernel); }
};
using Bundle = std::unique_ptr<kc_bundle, Close>;
using Entry = std::unique_ptr<kc_entry, Close>;
using Kernel = std::unique_ptr<kc_kernel, Close>;

std::string take_message(kc_error* error) {
  std::string out = kc_error_message(error);
  kc_error_free(error);
  return out;
}

// --- arrays ------------------------------------------------------------------------------------------------

// An array on the device and, in double precision, on the host; 64 bytes behind it must stay as they are.
class Array {
 public:
  Array(const Cuda& cuda, Element element, std::vector<uint32_t> lengths)
      : cuda_(cuda), element_(element), lengths_(std::move(lengths)) {
    size_t count = 1;
    for (const uint32_t length : lengths_) count *= length;
    values.resize(count);
    pointer_ = cuda_.allocate(count * size_of(element_) + kGuard);
  }
  ~Array() { cuda_.release(pointer_); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  // Values that every element type of the demo holds exactly: sums of their products are exact in float32.
  void fill(std::mt19937& random) {
    std::uniform_int_distribution<int> eighths(-8, 8);
    for (double& value : values) value = eighths(random) / 4.0;
    upload();
  }

  void upload() const {
    std::vector<uint8_t> bytes(values.size() * size_of(element_) + kGuard, kGuardByte);
    for (size_t i = 0; i < values.size(); ++i) {
      const uint32_t bits = encode(values[i], element_);
      std::memcpy(bytes.data() + i * size_of(element_), &bits, size_of(element_));
    }
    cuda_.upload(pointer_, bytes.data(), bytes.size());
  }

  // What the device holds; false when something behind the array was written.
  bool download(std::vector<double>& out) const {
    std::vector<uint8_t> bytes(values.size() * size_of(element_) + kGuard);
    cuda_.download(pointer_, bytes.data(), bytes.size());
    out.resize(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      uint32_t bits = 0;
      std::memcpy(&bits, bytes.data() + i * size_of(element_), size_of(element_));
      out[i] = decode(bits, element_);
    }
    return std::all_of(bytes.end() - kGuard, bytes.end(), [](uint8_t byte) { return byte == kGuardByte; });
  }

  // As manifests/demo/README.md says: pointer, lengths, strides.
  void append_to(std::vector<uint64_t>& arguments) const {
    arguments.push_back(pointer_);
    for (const uint32_t length : lengths_) arguments.push_back(length);
    for (size_t i = 0; i < lengths_.size(); ++i) {
      uint64_t stride = 1;
      for (size_t k = i + 1; k < lengths_.size(); ++k) stride *= lengths_[k];
      arguments.push_back(stride);
    }
  }

  Element element() const { return element_; }
  std::vector<double> values;

 private:
  static constexpr int kGuard = 64;
  static constexpr uint8_t kGuardByte = 0xA5;

  const Cuda& cuda_;
  Element element_;
  std::vector<uint32_t> lengths_;
  uint64_t pointer_ = 0;
};

// --- kernels -----------------------------------------------------------------------------------------------

struct Context {
  const Cuda& cuda;
  void* function;
  const kc_entry_info& info;
  std::map<std::string, std::string, std::less<>> configuration;
  std::mt19937 random{1};
  double worst = 0;  // error, as a part of what is allowed
  int cases = 0;

  uint32_t number(const char* key) const { return static_cast<uint32_t>(std::stoul(configuration.at(key))); }
  Element element() const {
    return element_named(configuration.contains("T") ? configuration.at("T") : "e4m3");
  }
};

// Values laid out by the bundle's launch facts.
std::vector<uint8_t> block_of(const kc_entry_info& info, const std::vector<uint64_t>& values) {
  std::vector<uint8_t> out(info.argument_bytes);
  if (values.size() != info.argument_count) {
    fail(std::string(info.unit) + " takes " + std::to_string(info.argument_count) + " arguments, not " +
         std::to_string(values.size()));
    return out;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const kc_argument& argument = info.arguments[i];
    std::memcpy(out.data() + argument.offset, &values[i], std::min<size_t>(argument.size, sizeof values[i]));
  }
  return out;
}

using Expected = std::vector<std::pair<double, double>>;  // a value, and how far from it the device may be

void compare(Context& context, const Array& array, const Expected& expected, const std::string& shape) {
  std::vector<double> got;
  const std::string where = std::string(context.info.unit) + " " + shape;
  if (!array.download(got)) fail(where + " writes behind its output");
  for (size_t i = 0; i < got.size(); ++i) {
    const double error = std::fabs(got[i] - expected[i].first);
    if (!(error <= expected[i].second)) {
      fail(where + ": element " + std::to_string(i) + " is " + std::to_string(got[i]) + ", not " +
           std::to_string(expected[i].first));
      return;
    }
    if (expected[i].second > 0) context.worst = std::max(context.worst, error / expected[i].second);
  }
  ++context.cases;
}

void launch(Context& context, uint32_t grid_x, uint32_t grid_y, const std::vector<uint64_t>& arguments) {
  const int answer = context.cuda.launch(context.function, grid_x, grid_y, block_of(context.info, arguments));
  if (answer != 0) fail(std::string(context.info.unit) + ": launch: CUDA error " + std::to_string(answer));
}

uint32_t tiles(uint32_t length, uint32_t tile) {
  return (length + tile - 1) / tile;
}

void vec_add(Context& context) {
  for (const uint32_t n : {1U, 1000U, 4099U}) {
    Array a(context.cuda, context.element(), {n});
    Array b(context.cuda, context.element(), {n});
    const Array c(context.cuda, context.element(), {n});
    a.fill(context.random);
    b.fill(context.random);
    c.upload();
    std::vector<uint64_t> arguments;
    for (const Array* array : {&std::as_const(a), &std::as_const(b), &c}) array->append_to(arguments);
    launch(context, tiles(n, context.number("TILE")), 1, arguments);
    Expected expected;
    for (uint32_t i = 0; i < n; ++i) expected.emplace_back(a.values[i] + b.values[i], 0);
    compare(context, c, expected, std::to_string(n));
  }
}

void matmul(Context& context) {
  const uint32_t tile_m = context.configuration.contains("TM") ? context.number("TM") : 64;
  struct Shape {
    uint32_t m, n, k;
  };
  for (const auto& [m, n, k] : {Shape{128, 128, 128}, Shape{72, 96, 208}, Shape{1, 16, 16}}) {
    Array a(context.cuda, context.element(), {m, k});
    Array b(context.cuda, context.element(), {k, n});
    const Array c(context.cuda, Element::kF32, {m, n});
    a.fill(context.random);
    b.fill(context.random);
    c.upload();
    std::vector<uint64_t> arguments;
    for (const Array* array : {&std::as_const(a), &std::as_const(b), &c}) array->append_to(arguments);
    launch(context, tiles(m, tile_m), tiles(n, context.number("TN")), arguments);
    Expected expected;
    for (uint32_t i = 0; i < m; ++i) {
      for (uint32_t j = 0; j < n; ++j) {
        double sum = 0;
        for (uint32_t l = 0; l < k; ++l) sum += a.values[i * k + l] * b.values[l * n + j];
        expected.emplace_back(sum, 0);  // exact in float32
      }
    }
    compare(context, c, expected, std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k));
  }
}

void softmax(Context& context) {
  for (const uint32_t n : {1024U, 1000U, 8U}) {
    constexpr uint32_t kRows = 3;
    Array x(context.cuda, context.element(), {kRows, n});
    const Array y(context.cuda, context.element(), {kRows, n});
    x.fill(context.random);
    y.upload();
    std::vector<uint64_t> arguments;
    x.append_to(arguments);
    y.append_to(arguments);
    launch(context, kRows, 1, arguments);
    Expected expected;
    for (uint32_t i = 0; i < kRows; ++i) {
      const double* row = &x.values[i * n];
      const double most = *std::max_element(row, row + n);
      double sum = 0;
      for (uint32_t j = 0; j < n; ++j) sum += std::exp(row[j] - most);
      for (uint32_t j = 0; j < n; ++j) {
        const double value = std::exp(row[j] - most) / sum;
        // Rounding to the type, its least step where it is subnormal, and exp and sum in float32.
        const double least = context.element() == Element::kF16 ? 0x1p-24 : 0;
        expected.emplace_back(value, value * (step_of(context.element()) + 1e-5) + least);
      }
    }
    compare(context, y, expected, std::to_string(n));
  }
}

void layer_norm(Context& context) {
  for (const uint32_t n : {512U, 1000U, 8U}) {
    constexpr uint32_t kRows = 3;
    constexpr float kEpsilon = 1e-5F;
    Array x(context.cuda, context.element(), {kRows, n});
    Array g(context.cuda, Element::kF32, {n});
    Array b(context.cuda, Element::kF32, {n});
    const Array y(context.cuda, context.element(), {kRows, n});
    for (Array* array : {&x, &g, &b}) array->fill(context.random);
    y.upload();
    std::vector<uint64_t> arguments;
    for (const Array* array : {&std::as_const(x), &std::as_const(g), &std::as_const(b), &y}) {
      array->append_to(arguments);
    }
    arguments.push_back(std::bit_cast<uint32_t>(kEpsilon));
    launch(context, kRows, 1, arguments);
    Expected expected;
    for (uint32_t i = 0; i < kRows; ++i) {
      const double* row = &x.values[i * n];
      double mean = 0;
      for (uint32_t j = 0; j < n; ++j) mean += row[j] / n;
      double variance = 0;
      for (uint32_t j = 0; j < n; ++j) variance += (row[j] - mean) * (row[j] - mean) / n;
      for (uint32_t j = 0; j < n; ++j) {
        const double scaled = (row[j] - mean) / std::sqrt(variance + kEpsilon) * g.values[j];
        const double value = scaled + b.values[j];
        expected.emplace_back(value,
                              std::fabs(value) * step_of(context.element()) + (std::fabs(scaled) + 1) * 1e-5);
      }
    }
    compare(context, y, expected, std::to_string(n));
  }
}

void row_sum(Context& context) {
  for (const uint32_t n : {512U, 1000U, 4096U}) {
    constexpr uint32_t kRows = 3;
    Array x(context.cuda, context.element(), {kRows, n});
    const Array s(context.cuda, Element::kF32, {kRows});
    x.fill(context.random);
    s.upload();
    std::vector<uint64_t> arguments;
    x.append_to(arguments);
    s.append_to(arguments);
    launch(context, kRows, 1, arguments);
    Expected expected;
    for (uint32_t i = 0; i < kRows; ++i) {
      double sum = 0;
      for (uint32_t j = 0; j < n; ++j) sum += x.values[i * n + j];
      expected.emplace_back(sum, 0);  // exact in float32
    }
    compare(context, s, expected, std::to_string(n));
  }
}

const std::map<std::string_view, void (*)(Context&)> kKernels = {
    {"vec_add", vec_add}, {"matmul", matmul},   {"matmul_small", matmul},   {"matmul_fp8", matmul},
    {"softmax", softmax}, {"row_sum", row_sum}, {"layer_norm", layer_norm},
};

std::map<std::string, std::string, std::less<>> pairs_of(std::string_view text) {
  std::map<std::string, std::string, std::less<>> out;
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), pair.size() + 1));
    const size_t equals = pair.find('=');
    out.emplace(pair.substr(0, equals), pair.substr(equals + 1));
  }
  return out;
}

// Loads and runs every entry that fits; how many there were.
int run_all(const Cuda& cuda, kc_bundle* bundle, const kc_device* device) {
  int ran = 0;
  struct Line {
    int entries = 0, cases = 0;
    double worst = 0;
  };
  std::map<std::string, Line> lines;
  for (size_t i = 0; i < kc_entry_count(bundle); ++i) {
    kc_error* error = nullptr;
    kc_entry* raw_entry = nullptr;
    if (kc_entry_at(bundle, i, &raw_entry, &error) != KC_OK) {
      fail(take_message(error));
      continue;
    }
    const Entry entry(raw_entry);
    const kc_entry_info& info = *kc_entry_get_info(entry.get());
    kc_fit fit = KC_FIT_NONE;
    kc_entry_fit(entry.get(), kc_device_get_info(device)->target, &fit, nullptr);
    if (fit == KC_FIT_NONE) continue;
    kc_kernel* raw_kernel = nullptr;
    if (kc_load_entry(entry.get(), device, nullptr, &raw_kernel, &error) != KC_OK) {
      fail(std::string(info.unit) + ": " + take_message(error));
      continue;
    }
    const Kernel kernel(raw_kernel);
    Context context{cuda, kc_kernel_function(kernel.get()), info, pairs_of(info.configuration)};
    kKernels.at(info.kernel)(context);
    Line& line = lines[info.kernel];
    ++line.entries;
    line.cases += context.cases;
    line.worst = std::max(line.worst, context.worst);
    ++ran;
  }
  for (const auto& [name, line] : lines) {
    std::printf("ran: %-12s %3d entries, %3d shapes, largest error %.2f of what is allowed\n", name.c_str(),
                line.entries, line.cases, line.worst);
  }
  return ran;
}

// --- what must not load ------------------------------------------------------------------------------------

kc_status open_status(const std::string& path, const kc_policy* policy) {
  kc_bundle* bundle = nullptr;
  kc_error* error = nullptr;
  const kc_status status = kc_open(path.c_str(), policy, &bundle, &error);
  if (status != KC_OK) std::printf("ran: refused: %s\n", take_message(error).c_str());
  kc_close(bundle);
  return status;
}

void expect(kc_status got, kc_status wanted, const char* what) {
  if (got != wanted) fail(std::string(what) + ": " + kc_status_name(got) + ", not " + kc_status_name(wanted));
}

kc_status load_status(kc_bundle* bundle, const char* kernel, const char* configuration,
                      const kc_device* device) {
  kc_kernel* loaded = nullptr;
  kc_error* error = nullptr;
  const kc_status status = kc_load(bundle, kernel, configuration, device, nullptr, &loaded, &error);
  if (status != KC_OK) std::printf("ran: refused: %s\n", take_message(error).c_str());
  kc_kernel_release(loaded);
  return status;
}

void damaged_frame(const std::string& original, const std::string& folder, const kc_device* device) {
  const std::string path = folder + "/flipped.kcb";
  std::filesystem::copy_file(original, path);
  auto reader = kc::bundle::Reader::open(path);
  const auto index = reader->find("softmax", "T=f32,W=1024", "sm_90");
  const auto record = reader->record(**index);
  const auto frame = reader->frame(record->frame);
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    const auto at = static_cast<std::streamoff>(frame->offset + frame->stored_size / 2);
    file.seekg(at);
    const int byte = file.get();
    file.seekp(at);
    file.put(static_cast<char>(byte ^ 1));
  }
  kc_bundle* raw = nullptr;
  kc_error* error = nullptr;
  if (kc_open(path.c_str(), nullptr, &raw, &error) != KC_OK) return fail(take_message(error));
  const Bundle bundle(raw);
  expect(load_status(bundle.get(), "softmax", "T=f32,W=1024", device), KC_ERROR_DAMAGED,
         "a flipped byte in the frame");
  expect(load_status(bundle.get(), "vec_add", "T=f32,TILE=256", device), KC_OK,
         "another kernel of that bundle");
  expect(load_status(bundle.get(), "matmul", "T=f16,TK=32,TM=64,TN=64", device), KC_OK, "a third one");
}

void policies(const std::string& folder) {
  const std::string ours = folder + "/ours.pub";
  const char* key = ours.c_str();
  kc_policy policy = KC_POLICY_INIT;
  policy.key_files = &key;
  policy.key_file_count = 1;
  expect(open_status(folder + "/demo.kcb", &policy), KC_ERROR_UNTRUSTED, "a bundle without a signature");
  expect(open_status(folder + "/theirs.kcb", &policy), KC_ERROR_UNTRUSTED, "one that another key has signed");
  expect(open_status(folder + "/both.kcb", &policy), KC_OK, "one that ours has signed too");
  policy.min_release = 2;
  expect(open_status(folder + "/both.kcb", &policy), KC_ERROR_POLICY, "a lower release");
  expect(open_status(folder + "/subset.kcb", nullptr), KC_ERROR_POLICY, "a bundle of a part of the plan");
}

}  // namespace

int main(int count, char** arguments) {
  std::string why;
  const auto cuda = Cuda::open(why);
  if (!cuda) {
    std::printf("not run: %s\n", why.c_str());
    return 77;
  }
  if (count != 2) {
    std::fprintf(stderr, "usage: demo_gpu FOLDER\n");
    return 2;
  }
  const std::string folder = arguments[1];
  const std::string path = folder + "/demo.kcb";
  kc_error* error = nullptr;
  kc_bundle* raw = nullptr;
  const kc_device* device = nullptr;
  if (kc_open(path.c_str(), nullptr, &raw, &error) != KC_OK ||
      kc_device_get(KC_CUDA, 0, &device, &error) != KC_OK) {
    fail(take_message(error));
    return 1;
  }
  const kc_device_info& info = *kc_device_get_info(device);
  std::printf("ran: on %s, %s, %s\n", info.name, info.target, info.driver_text);
  const Bundle bundle(raw);
  if (run_all(*cuda, bundle.get(), device) == 0) fail("the bundle has nothing for this device");
  const kc::test::TempFolder scratch;
  damaged_frame(folder + "/frames.kcb", scratch.path(), device);
  policies(folder);
  std::printf(failures == 0 ? "ran: all right\n" : "ran: %d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
