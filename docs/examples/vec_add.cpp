// Opens a bundle, loads a kernel of it, launches it and checks its numbers: kc/loader.hpp and the CUDA driver
// API, without a header of CUDA. The kernel is vec_add of manifests/demo.
//
//     c++ -std=c++17 vec_add.cpp $(pkg-config --cflags --libs kcload) -ldl -o vec_add
//     ./vec_add demo.kcb [release.pub]
//
// With a public key, the bundle must be signed by it. Exit codes: 0 the numbers are right; 1 something
// failed; 77 there is no device, so nothing was run.
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <kc/loader.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr int kTile = 256;
constexpr int kCount = 50 * 1000 + 3;  // not a multiple of the tile

// What of the driver is called here, as cuda.h declares it.
using CUresult = int;
using CUcontext = struct CUctx_st*;
using CUfunction = struct CUfunc_st*;
using CUdeviceptr = unsigned long long;

class Cuda {
 public:
  // libkcload has loaded the library already: this finds it again.
  explicit Cuda(const char* library) : driver_(dlopen(library, RTLD_NOW | RTLD_LOCAL)) {
    if (driver_ == nullptr) throw std::runtime_error(dlerror());
  }

  // The types of the arguments must be those of cuda.h.
  template <typename... Arguments>
  void call(const char* name, Arguments... arguments) const {
    const auto function = reinterpret_cast<CUresult (*)(Arguments...)>(dlsym(driver_, name));
    if (function == nullptr) throw std::runtime_error(std::string("the driver has no ") + name);
    const CUresult result = function(arguments...);
    if (result != 0) throw std::runtime_error(std::string(name) + ": CUDA error " + std::to_string(result));
  }

 private:
  void* driver_;
};

std::vector<float> add(const kcload::Kernel& kernel, const kcload::Device& device,
                       const std::vector<float>& a, const std::vector<float>& b) {
  const Cuda cuda(device.info().library);
  const size_t bytes = a.size() * sizeof(float);
  CUcontext context = nullptr;
  cuda.call("cuDevicePrimaryCtxRetain", &context, device.info().ordinal);
  cuda.call("cuCtxSetCurrent", context);
  CUdeviceptr on_device[3] = {};
  for (CUdeviceptr& memory : on_device) cuda.call("cuMemAlloc_v2", &memory, bytes);
  cuda.call("cuMemcpyHtoD_v2", on_device[0], static_cast<const void*>(a.data()), bytes);
  cuda.call("cuMemcpyHtoD_v2", on_device[1], static_cast<const void*>(b.data()), bytes);

  // An array of a tile kernel is a pointer, its lengths and its strides; the block is (1, 1, 1).
  std::int32_t length = static_cast<std::int32_t>(a.size());
  std::int32_t stride = 1;
  void* arguments[] = {&on_device[0], &length,       &stride, &on_device[1], &length,
                       &stride,       &on_device[2], &length, &stride};
  const unsigned grid = static_cast<unsigned>((a.size() + kTile - 1) / kTile);
  cuda.call("cuLaunchKernel", kernel.function<CUfunction>(), grid, 1U, 1U, 1U, 1U, 1U, 0U,
            static_cast<void*>(nullptr), static_cast<void**>(arguments), static_cast<void**>(nullptr));
  cuda.call("cuCtxSynchronize");

  std::vector<float> sum(a.size());
  cuda.call("cuMemcpyDtoH_v2", static_cast<void*>(sum.data()), on_device[2], bytes);
  for (const CUdeviceptr memory : on_device) cuda.call("cuMemFree_v2", memory);
  cuda.call("cuDevicePrimaryCtxRelease_v2", device.info().ordinal);
  return sum;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2 && argc != 3) {
    std::fprintf(stderr, "usage: vec_add BUNDLE [KEY]\n");
    return 2;
  }
  kcload::Policy policy;
  if (argc == 3) policy.key_files.push_back(argv[2]);
  const kcload::Bundle bundle = kcload::Bundle::open(argv[1], policy);
  for (const kcload::Entry& entry : bundle) {
    if (entry.kernel() == "vec_add") std::printf("the bundle has %s\n", entry.info().unit);
  }

  kcload::Error error;
  const kcload::Device device = kcload::Device::get(KC_CUDA, 0, error);
  if (error.status() == KC_ERROR_NO_DRIVER || error.status() == KC_ERROR_NO_DEVICE) {
    std::printf("not run: no device\n");
    return 77;
  }
  if (error) throw error;

  const kcload::Kernel kernel = bundle.load("vec_add", "T=f32,TILE=256", device);
  std::vector<float> a(kCount), b(kCount);
  for (int i = 0; i < kCount; ++i) {
    a[i] = 0.5F * static_cast<float>(i % 1000);
    b[i] = 3.0F - static_cast<float>(i % 321);
  }
  const std::vector<float> sum = add(kernel, device, a, b);
  for (int i = 0; i < kCount; ++i) {
    if (sum[i] != a[i] + b[i]) {
      std::fprintf(stderr, "element %d: %.9g, expected %.9g\n", i, double{sum[i]}, double{a[i] + b[i]});
      return 1;
    }
  }
  std::printf("ok: %s on %s\n", kernel.entry().info().unit, device.info().name);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
