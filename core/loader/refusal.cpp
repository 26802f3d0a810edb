#include "loader/refusal.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "loader/text.h"
#include "target/target.h"

namespace kc::loader {
namespace {

// CUresult and hipError_t share these numbers.
constexpr int kInsufficientDriver = 35;
constexpr int kNewerDriverNeeded = 36;
constexpr int kNoDevice = 100;
constexpr int kInvalidDevice = 101;
constexpr int kInvalidImage = 200;
constexpr int kNoBinaryForGpu = 209;
constexpr int kInvalidPtx = 218;  // HIP: invalid kernel file
constexpr int kJitCompilerNotFound = 221;
constexpr int kUnsupportedPtxVersion = 222;
constexpr int kInvalidSource = 300;
constexpr int kFileNotFound = 301;
constexpr int kSharedObjectSymbolNotFound = 302;
constexpr int kSharedObjectInitFailed = 303;
constexpr int kNotFound = 500;
constexpr int kUnknown = 999;
constexpr int kStubLibrary = 34;
constexpr int kHipInvalidDeviceFunction = 98;

struct Advice {
  std::string cause;
  std::string cure;
};

// What is wrong with the machine, the device or the process, whatever was called. Source of the numbers: the
// reference manuals of the CUDA driver API and of HIP.
Advice advice_on_machine(kc_api api, int code) {
  const bool cuda = api == KC_CUDA;
  switch (code) {
    case 2:
      return {"the device has no memory left for it",
              "free device memory, or end other programs that use it"};
    case 3:
    case 4:
      return {"the driver is not started or is shutting down",
              "do not call the library while the process ends"};
    case kStubLibrary:
      return {"the library that was found is the toolkit's stub, which is only there to link with",
              "take the toolkit's folder \"stubs\" out of LD_LIBRARY_PATH"};
    case kInsufficientDriver:
    case kNewerDriverNeeded:
      return {"this driver is older than what was asked of it needs", "update the driver"};
    case 46:
      return {"another process has the device for itself, or it is being reset",
              "end that process, or set the device's compute mode to default"};
    case kNoDevice:
    case kInvalidDevice:
      return cuda
                 ? Advice{"no NVIDIA GPU is visible to this process",
                          "look at CUDA_VISIBLE_DEVICES and whether `nvidia-smi` works; start a container "
                          "with "
                          "its GPUs (`--gpus all`)"}
                 : Advice{
                       "no AMD GPU is visible to this process",
                       "look at HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES, whether /dev/kfd exists (the "
                       "amdgpu kernel module) and may be opened (groups render and video); start a container "
                       "with /dev/kfd and /dev/dri"};
    case 201:
    case 709:
      return {"the context is not one, or was destroyed while kernels were loaded in it",
              "call kc_unload_all() before contexts are destroyed or a device is reset"};
    case 214:
    case 220:
      return {"the device has a memory or link error that it cannot correct", "reset the device or restart"};
    case 304:
      return {"the operating system refused the driver something",
              cuda ? "look at the permissions of /dev/nvidia*"
                   : "look at the permissions of /dev/kfd and /dev/dri"};
    case 802:
      return {"the system is not ready, on machines with NVSwitch because the fabric manager does not run",
              "start nvidia-fabricmanager"};
    case 803:
      return {
          "the driver's library and its kernel module are of different versions",
          "restart after an update of the driver; in a container, let the NVIDIA Container Toolkit bring the "
          "host's own libcuda.so.1 instead of one in the image"};
    case 804:
      return {"the forward compatibility package (cuda-compat) does not support this device",
              "take its folder out of LD_LIBRARY_PATH, or update the driver"};
    case 805:
    case 806:
    case 807:
    case 808:
    case 809:
    case 810:
      return {"the MPS server does not answer or takes no more clients",
              "restart it, or unset CUDA_MPS_PIPE_DIRECTORY"};
    default:
      break;
  }
  if (code >= 700 && code < 800) {
    return {
        "a kernel that ran before this has broken the context",
        "find that kernel (compute-sanitizer, or CUDA_LAUNCH_BLOCKING=1); the process must be started anew"};
  }
  if (code == kUnknown) {
    return {"the driver's files or its device nodes are incomplete",
            cuda
                ? "see whether `nvidia-smi` works and /dev/nvidia-uvm exists; reinstall the driver or restart"
                : "see whether `rocminfo` works; reinstall the driver or restart"};
  }
  return {};
}

std::string number(uint64_t value) {
  return std::to_string(value);
}

// What starts at 13.4: 13; 0 where it is no number.
int major_of(std::string_view version) {
  int value = 0;
  for (const char c : version.substr(0, version.find('.'))) {
    if (c < '0' || c > '9' || value > 1000) return 0;
    value = 10 * value + (c - '0');
  }
  return value;
}

// The first driver branch of each CUDA major version ("CUDA Compatibility", minor version compatibility).
struct Branch {
  int cuda;
  uint32_t branch;
};
constexpr std::array<Branch, 3> kBranches = {{{13, 580}, {12, 525}, {11, 450}}};

int cuda_of_branch(uint32_t branch) {
  for (const Branch& known : kBranches) {
    if (branch >= known.branch) return known.cuda;
  }
  return 0;
}

uint32_t branch_of_cuda(int major) {
  for (const Branch& known : kBranches) {
    if (major == known.cuda) return known.branch;
  }
  return 0;
}

int cuda_major(const Device& device) {
  return device.driver_version / 1000;
}

bool is_too_old(const Device& device, const bundle::Record& record) {
  if (device.api != KC_CUDA) return false;
  return cuda_of_branch(record.lowest_driver) > cuda_major(device) ||
         major_of(record.toolkit) > cuda_major(device);
}

std::string device_text(const Device& device) {
  return (device.api == KC_CUDA ? "cuda:" : "hip:") + std::to_string(device.ordinal) + " (" + device.name +
         ", " + device.target.text + "; driver: " + device.driver_text + ")";
}

std::string toolkit_text(const bundle::Record& record) {
  return record.toolkit.empty() ? "an unknown toolkit" : "toolkit " + record.toolkit;
}

std::string said(const Refusal& refusal) {
  std::string out = "error " + std::to_string(refusal.code);
  if (!refusal.name.empty()) out += ", " + refusal.name;
  if (!refusal.call.empty()) out += ", from " + refusal.call;
  if (!refusal.text.empty()) out += ": " + refusal.text;
  return out;
}

std::string joined(std::vector<std::string> items) {
  // Enough to see the pattern; a kernel for each AMD processor has over forty.
  constexpr size_t kShown = 12;
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
  std::string out;
  for (size_t i = 0; i < items.size() && i < kShown; ++i) out += (i == 0 ? "" : ", ") + items[i];
  if (items.size() > kShown) out += " and " + number(items.size() - kShown) + " more";
  return out;
}

std::string kernel_text(std::string_view kernel, std::string_view configuration) {
  std::string out = "kernel " + in_quotes(kernel);
  if (!configuration.empty()) out += " with " + std::string(configuration);
  return out;
}

// The name to write in a manifest for a device: without features, which a target does not need.
std::string to_add(const target::Target& device) {
  return device.processor;
}

Advice advice_on_code_cuda(int code, const bundle::Record& record, const Device& device, bool asked_exactly) {
  if (is_too_old(device, record)) {
    const int toolkit = std::max(major_of(record.toolkit), cuda_of_branch(record.lowest_driver));
    const uint32_t branch = record.lowest_driver != 0 ? record.lowest_driver : branch_of_cuda(toolkit);
    const std::string wanted = branch != 0 ? "NVIDIA driver " + number(branch) + " or newer"
                                           : "a driver of CUDA " + std::to_string(toolkit) + " or newer";
    return {"the driver (" + device.driver_text + ") is older than the toolkit that made the code (" +
                (record.toolkit.empty() ? "CUDA " + std::to_string(toolkit) : record.toolkit) + ")",
            "install " + wanted + " (`nvidia-smi` shows which one runs)"};
  }
  if (code == kNoBinaryForGpu) {
    if (asked_exactly) {
      return {"the driver knows the device but not code that was assembled for " + record.found_target +
                  " by " + toolkit_text(record),
              "update the NVIDIA driver"};
    }
    return {"the driver does not run code for " + record.found_target + " on " + device.target.text +
                ", although code of the same major version and a lower minor one is meant to run",
            "add " + to_add(device.target) + " to the manifest's targets and build the bundle again"};
  }
  if (code == kNotFound) {
    return {"the code object has no function \"" + record.symbol + "\"", "build the bundle again"};
  }
  std::string cause =
      "the driver is new enough, so its files are incomplete or of different versions; the code is ready "
      "machine "
      "code";
  if (code == kJitCompilerNotFound || code == kUnsupportedPtxVersion) cause += " and needs no JIT compiler";
  return {
      std::move(cause),
      "reinstall the NVIDIA driver, so that libcuda, libnvidia-ptxjitcompiler and libnvidia-nvvm are of one "
      "version; in a container, update the NVIDIA Container Toolkit (nvidia-container-toolkit) on the host "
      "and "
      "have no driver libraries in the image"};
}

Advice advice_on_code_hip(int code, const bundle::Record& record, const Device& device, bool asked_exactly) {
  if (code == kNotFound || code == kHipInvalidDeviceFunction) {
    return {"the code object has no function \"" + record.symbol + "\"", "build the bundle again"};
  }
  if (record.found_target.find("generic") != std::string::npos) {
    return {"the HIP runtime does not know code for generic processors, as ROCm before 6.3 does not",
            "add " + to_add(device.target) +
                " to the manifest's targets and build the bundle again, or update ROCm"};
  }
  if (code == kNoBinaryForGpu && !asked_exactly) {
    return {"the runtime does not run code for " + record.found_target + " on " + device.target.text,
            "add " + to_add(device.target) + " to the manifest's targets and build the bundle again"};
  }
  return {"the HIP runtime is older than the code object's format or does not know " + record.found_target,
          "update ROCm"};
}

}  // namespace

bool speaks_of_code(kc_api api, const Refusal& refusal) {
  switch (refusal.code) {
    case kInvalidImage:
    case kNoBinaryForGpu:
    case kInvalidPtx:
    case kInvalidSource:
    case kFileNotFound:
    case kNotFound:
    case kUnknown:
      return true;
    case kJitCompilerNotFound:
    case kUnsupportedPtxVersion:
      return api == KC_CUDA;
    case kHipInvalidDeviceFunction:
    case kSharedObjectSymbolNotFound:
    case kSharedObjectInitFailed:
      return api == KC_HIP;
    default:
      return false;
  }
}

std::string has_text(std::string_view target, std::string_view found_target) {
  std::string out(target);
  if (found_target != target) out += " (assembled for " + std::string(found_target) + ")";
  return out;
}

Failure explain_refusal(const Refusal& refusal, const Entry& refused, const std::vector<Entry>& tried,
                        const Device& device, const std::vector<std::string>& has) {
  const bundle::Record& record = refused.record;
  const auto found = target::parse_target(record.found_target);
  const bool asked_exactly = found && target::runs_on(*found, device.target) == target::Fit::kExact;
  const bool of_code = speaks_of_code(device.api, refusal);
  Failure out;
  out.driver_code = refusal.code;
  out.status = KC_ERROR_DRIVER;
  Advice advice;
  if (!of_code) {
    advice = advice_on_machine(device.api, refusal.code);
  } else if (device.api == KC_CUDA) {
    advice = advice_on_code_cuda(refusal.code, record, device, asked_exactly);
  } else {
    advice = advice_on_code_hip(refusal.code, record, device, asked_exactly);
  }
  if (of_code && is_too_old(device, record)) {
    out.status = KC_ERROR_DRIVER_TOO_OLD;
  } else if (refusal.code == kNoBinaryForGpu) {
    out.status = KC_ERROR_NO_CODE;
  }

  out.message = kernel_text(record.kernel, record.specialization) + " does not load on " +
                device_text(device) + "\n  the driver refused code for " + record.found_target +
                ", made by " + toolkit_text(record) + ", with " + said(refusal);
  if (!refusal.log.empty()) {
    out.message += "\n  its log: ";
    for (const char c : refusal.log) out.message += c == '\n' ? std::string("\n    ") : std::string(1, c);
  }
  std::vector<std::string> all = has;
  std::vector<std::string> others;
  for (const Entry& entry : tried) {
    if (has.empty()) all.push_back(has_text(entry.record.target, entry.record.found_target));
    if (&entry != &tried.front()) others.push_back(entry.record.found_target);
  }
  if (!all.empty()) out.message += "\n  the bundle has this kernel for: " + joined(std::move(all));
  if (!others.empty()) out.message += "\n  refused too: code for " + joined(std::move(others));
  if (!advice.cause.empty()) out.message += "\n  likely cause: " + advice.cause + "\n  cure: " + advice.cure;
  return out;
}

Failure explain_call(kc_api api, const Refusal& refusal, std::string_view doing, std::string_view library) {
  Failure out;
  out.driver_code = refusal.code;
  out.status = KC_ERROR_DRIVER;
  if (refusal.code == kNoDevice || refusal.code == kInvalidDevice) out.status = KC_ERROR_NO_DEVICE;
  if (api == KC_CUDA && refusal.code == kStubLibrary) out.status = KC_ERROR_NO_DRIVER;
  out.message = std::string("the ") + (api == KC_CUDA ? "NVIDIA driver" : "HIP runtime") + " (" +
                std::string(library) + ") could not " + std::string(doing) + ": " + said(refusal);
  const Advice advice = advice_on_machine(api, refusal.code);
  if (!advice.cause.empty()) out.message += "\n  likely cause: " + advice.cause + "\n  cure: " + advice.cure;
  return out;
}

Failure explain_no_code(std::string_view kernel, std::string_view configuration, const target::Target& device,
                        const std::vector<std::string>& found_targets) {
  Failure out;
  out.status = KC_ERROR_NO_CODE;
  out.message = kernel_text(kernel, configuration) + " has no code that runs on " + device.text;
  if (!found_targets.empty()) out.message += "; it has code for " + joined(found_targets);
  // Names with `a` look as if they fitted.
  for (const std::string& text : found_targets) {
    const auto found = target::parse_target(text);
    if (!found || found->vendor != device.vendor || found->suffix != 'a') continue;
    if (found->sm / 10 != device.sm / 10 || found->sm > device.sm) continue;
    out.message += "\n  code for " + found->text + " runs on " + found->processor + " alone";
    break;
  }
  out.message += "\n  cure: add " + to_add(device) + " to the manifest's targets and build the bundle again";
  return out;
}

}  // namespace kc::loader
