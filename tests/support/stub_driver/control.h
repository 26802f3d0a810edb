// What the stand-ins for GPU drivers share (stub_cuda, stub_hip): what a test tells them, and what they
// count.
//
// A driver is told by lines of text (or parts separated by `;`), in the environment variable KC_STUB_CUDA or
// KC_STUB_HIP, read at the first call, or through kc_stub_tell() of the library itself, which begins anew:
//
//     version 12080                       as the driver says it; default 13000 (CUDA), 60241133 (HIP)
//     device 12.1 NVIDIA GB10             one more device: compute capability (CUDA) or gcnArchName (HIP),
//                                         then its name. Without such a line: one sm_90 or gfx942 device.
//                                         `device none`: no device at all
//     fail FUNCTION CODE [at N | from N] [sm S | mach M] [symbol NAME]
//                                         answers CODE: at the N-th call that the rest fits, from the N-th
//                                         on, or always; only for images of that SM (e_flags, bits 8 to 15)
//                                         or processor (low 8 bits); only for functions asked for by NAME
//     slow FUNCTION MILLISECONDS          sleeps in each call
//     hold FUNCTION                       calls wait until kc_stub_tell() or kc_stub_release()
//     text CODE WORDS                     what cuGetErrorString or hipGetErrorString says of CODE
//     jit WORDS                           what a failed load writes into the caller's error log
//     log PATH                            a line a call is appended there: function, image, symbol, answer
//
// A line that is none of these ends the process with status 70: a test must not pass by a misspelling.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace kc::stub {

struct StubDevice {
  std::string architecture;
  std::string name;
};

/// What a call is about, as far as rules ask for it.
struct Call {
  std::string function;
  uint32_t image = 0;  // SM or processor number
  std::string symbol;
};

/// Begins anew with what `text` says; counters are zero again, live things stay counted.
void tell(std::string_view text);
/// The text of the environment variable, once, when nobody has told anything.
void tell_from_environment(const char* variable);

int version(int otherwise);
std::vector<StubDevice> devices(const StubDevice& otherwise);
std::string text_of(int code);  // empty: nothing was told
std::string jit_text();

/// Counts the call, waits as told, and gives the code to fail with, 0 for none.
int enter(const Call& call);
/// Ends all waiting in held calls, and holds no more.
void release();

/// A value that each thread has for itself. Not thread_local: LeakSanitizer stumbles over the thread-local
/// storage of libraries that were unloaded.
template <typename T>
class OfThread {
 public:
  T& get() {
    const std::lock_guard lock(mutex_);
    return values_[std::this_thread::get_id()];
  }

 private:
  std::mutex mutex_;
  std::map<std::thread::id, T> values_;  // references into it stay right
};

/// Calls of a function, or a gauge.
long count(std::string_view name);
void add(std::string_view gauge, long amount);
/// All gauges are zero again.
void forget();

}  // namespace kc::stub

/// Exported by the libraries beside the driver's own functions, for tests in the same process.
extern "C" {
__attribute__((visibility("default"))) void kc_stub_tell(const char* text);
__attribute__((visibility("default"))) void kc_stub_release();
/// Calls of the named function since kc_stub_tell(), or one of these: `modules`, loaded now; `primaries`,
/// retained now; `misuse`, calls with handles that are not alive or in a wrong context; `waiting`, held now.
__attribute__((visibility("default"))) long kc_stub_count(const char* name);
/// Drops all that is alive, as if nobody had ever called.
__attribute__((visibility("default"))) void kc_stub_reset();
}
