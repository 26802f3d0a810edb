#include "gpu/cuda.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace kc::test {
namespace {

void must(int answer, const char* call) {
  if (answer == 0) return;
  std::fprintf(stderr, "%s: CUDA error %d\n", call, answer);
  std::exit(1);
}

}  // namespace

std::optional<Cuda> Cuda::open(std::string& why) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    why = dlerror();
    return std::nullopt;
  }
  std::string missing;
  const auto symbol = [&](const char* name, auto& pointer) {
    void* address = dlsym(library, name);
    if (address == nullptr) missing = name;
    std::memcpy(&pointer, &address, sizeof address);
  };
  Cuda out;
  int (*init)(unsigned) = nullptr;
  int (*count)(int*) = nullptr;
  int (*retain)(void**, int) = nullptr;
  int (*set_current)(void*) = nullptr;
  symbol("cuInit", init);
  symbol("cuDeviceGetCount", count);
  symbol("cuDevicePrimaryCtxRetain", retain);
  symbol("cuCtxSetCurrent", set_current);
  symbol("cuMemAlloc_v2", out.mem_alloc_);
  symbol("cuMemFree_v2", out.mem_free_);
  symbol("cuMemcpyHtoD_v2", out.to_device_);
  symbol("cuMemcpyDtoH_v2", out.to_host_);
  symbol("cuLaunchKernel", out.launch_);
  symbol("cuCtxSynchronize", out.synchronize_);
  if (!missing.empty()) {
    why = "libcuda.so.1 has no " + missing;
    return std::nullopt;
  }
  int devices = 0;
  void* context = nullptr;
  const int answer = init(0);
  if (answer != 0 || count(&devices) != 0 || devices == 0 || retain(&context, 0) != 0 ||
      set_current(context) != 0) {
    why = "no CUDA device (cuInit: " + std::to_string(answer) + ", " + std::to_string(devices) + " devices)";
    return std::nullopt;
  }
  return out;
}

uint64_t Cuda::allocate(size_t bytes) const {
  uint64_t out = 0;
  must(mem_alloc_(&out, bytes), "cuMemAlloc");
  return out;
}

void Cuda::release(uint64_t pointer) const {
  must(mem_free_(pointer), "cuMemFree");
}

void Cuda::upload(uint64_t pointer, const void* bytes, size_t size) const {
  must(to_device_(pointer, bytes, size), "cuMemcpyHtoD");
}

void Cuda::download(uint64_t pointer, void* bytes, size_t size) const {
  must(to_host_(bytes, pointer, size), "cuMemcpyDtoH");
}

int Cuda::launch(void* function, unsigned grid_x, unsigned grid_y, std::vector<uint8_t> arguments) const {
  size_t size = arguments.size();
  // CU_LAUNCH_PARAM_BUFFER_POINTER, _BUFFER_SIZE, _END
  void* extra[] = {reinterpret_cast<void*>(1), arguments.data(), reinterpret_cast<void*>(2), &size, nullptr};
  const int answer = launch_(function, grid_x, grid_y, 1, 1, 1, 1, 0, nullptr, nullptr, extra);
  return answer != 0 ? answer : synchronize_();
}

}  // namespace kc::test
