// The calls of the CUDA driver API that launch a kernel and compare what it computed, by dlopen: a test
// machine may have no CUDA. What loads kernels is libkcload; it is not here. Source of the declarations:
// NVIDIA's "CUDA Driver API".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kc::test {

/// The driver, with the primary context of device 0 current on this thread.
class Cuda {
 public:
  /// Nothing, and `why`, where there is no driver or no device.
  static std::optional<Cuda> open(std::string& why);

  uint64_t allocate(size_t bytes) const;
  void release(uint64_t pointer) const;
  void upload(uint64_t pointer, const void* bytes, size_t size) const;
  void download(uint64_t pointer, void* bytes, size_t size) const;
  /// One launch with block (1, 1, 1), and the wait for it; the driver's answer, 0 when all went well.
  int launch(void* function, unsigned grid_x, unsigned grid_y, std::vector<uint8_t> arguments) const;

 private:
  int (*mem_alloc_)(uint64_t*, size_t) = nullptr;
  int (*mem_free_)(uint64_t) = nullptr;
  int (*to_device_)(uint64_t, const void*, size_t) = nullptr;
  int (*to_host_)(void*, uint64_t, size_t) = nullptr;
  int (*launch_)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                 void**) = nullptr;
  int (*synchronize_)() = nullptr;
};

}  // namespace kc::test
