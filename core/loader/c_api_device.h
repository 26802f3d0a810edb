// The handles of devices and kernels.
#pragma once

#include <memory>

#include "kc/loader.h"
#include "loader/c_api.h"
#include "loader/driver.h"
#include "loader/modules.h"

/// Made once for each device of a driver and never destroyed.
struct kc_device {
  explicit kc_device(kc::loader::Device from);
  kc_device(const kc_device&) = delete;
  kc_device& operator=(const kc_device&) = delete;

  kc::loader::Device device;
  kc_device_info info{};
};

struct kc_kernel {
  explicit kc_kernel(std::unique_ptr<kc::loader::Kernel> loaded)
      : kernel(std::move(loaded)), entry(kernel->entry()) {}

  std::unique_ptr<kc::loader::Kernel> kernel;
  kc_entry entry;
};
