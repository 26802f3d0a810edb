// libkcload for C++17 and newer: kc/loader.h with handles that release themselves. Header only; the library
// behind it is the same one, so a program needs no particular compiler.
//
//     kcload::Bundle bundle = kcload::Bundle::open("demo.kcb");
//     kcload::Device device = kcload::Device::get(KC_CUDA, 0);
//     kcload::Kernel kernel = bundle.load("matmul", "TM=64,TN=128", device);
//     cuLaunchKernel(kernel.function<CUfunction>(), ...);
//
// Errors. Each function that can fail comes in two forms, as those of std::filesystem do: one throws
// kcload::Error; the other takes an Error& as its last argument, throws nothing (where its results need
// memory of the caller's side, std::bad_alloc), sets the Error, to "no error" on success, and returns an
// empty handle, or what its comment says, on failure. Programs that are compiled without exceptions
// (-fno-exceptions) have the second form alone.
//
// Handles (Bundle, Entry, Kernel) can be moved, not copied. An empty one (made by its default constructor,
// moved from, or returned with an error) is false; nothing but that, assignment and release may be done with
// it. What loader.h says of threads, of lifetimes and of how long texts live holds here too: a
// std::string_view that an EntryView gives lives as long as the entry, or kernel, that it came from.
#ifndef KC_LOADER_HPP
#define KC_LOADER_HPP

#include <kc/loader.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#if defined(__cpp_exceptions)
#define KCLOAD_HAS_EXCEPTIONS 1
#else
#define KCLOAD_HAS_EXCEPTIONS 0
#endif

namespace kcload {

/// What went wrong; false when nothing did. Copies share one description.
class Error : public std::exception {
 public:
  Error() noexcept = default;
  /// Takes `error`, which may be NULL (then there is no more to say than `status`).
  Error(kc_status status, kc_error* error) : status_(status), error_(error, &kc_error_free) {}

  explicit operator bool() const noexcept { return status_ != KC_OK; }
  kc_status status() const noexcept { return status_; }
  /// CUresult or hipError_t; 0 when no driver was asked.
  int driver_code() const noexcept { return kc_error_driver_code(error_.get()); }
  /// The whole explanation; may have several lines.
  const char* what() const noexcept override {
    if (status_ == KC_OK) return "no error";
    return error_ != nullptr || status_ == KC_ERROR_MEMORY ? kc_error_message(error_.get())
                                                           : kc_status_name(status_);
  }

 private:
  kc_status status_ = KC_OK;
  std::shared_ptr<kc_error> error_;
};

namespace detail {

template <typename Handle, void (*release)(Handle*)>
struct Releaser {
  void operator()(Handle* handle) const noexcept { release(handle); }
};
template <typename Handle, void (*release)(Handle*)>
using Owned = std::unique_ptr<Handle, Releaser<Handle, release>>;

/// Calls a C function that takes a kc_error** and tells `error` how it went; true on success.
template <typename Call>
bool done(Error& error, Call&& call) {
  kc_error* raw = nullptr;
  const kc_status status = call(&raw);
  error = status == KC_OK ? Error() : Error(status, raw);
  return status == KC_OK;
}

#if KCLOAD_HAS_EXCEPTIONS
/// Runs the form that takes an Error& and throws what it was told.
template <typename Call>
auto or_throw(Call&& call) {
  Error error;
  auto result = call(error);
  if (error) throw error;
  return result;
}
#endif

inline std::string_view view(const char* text) {
  return text == nullptr ? std::string_view() : std::string_view(text);
}

}  // namespace detail

/// What a bundle must be to be opened: kc_policy with texts and keys of its own.
struct Policy {
  std::vector<std::string> key_files;              // PEM files of public keys
  std::vector<std::array<std::uint8_t, 32>> keys;  // raw Ed25519 public keys
  std::size_t required_signatures = 0;             // with keys 0 means 1; without it must be 0
  std::optional<std::string> name;                 // the bundle's own; none: any
  std::uint64_t min_release = 0;                   // a lower release is refused
  bool allow_partial = false;                      // also one that lacks units of its plan
  std::uint64_t max_file_size = 0;                 // bytes; 0: no limit
  std::uint64_t max_code_size = 0;                 // bytes of one code object; 0: no limit
};

/// One of the machine's GPUs: a plain value, valid as long as the process.
class Device {
 public:
  /// Of no device: false.
  Device() noexcept = default;
  explicit Device(const kc_device* device) noexcept : device_(device) {}

  explicit operator bool() const noexcept { return device_ != nullptr; }
  const kc_device_info& info() const noexcept { return *kc_device_get_info(device_); }
  std::string_view name() const noexcept { return info().name; }
  /// "sm_90", "gfx942:sramecc+:xnack-"
  std::string_view target() const noexcept { return info().target; }
  const kc_device* get() const noexcept { return device_; }

  static Device get(kc_api api, int ordinal, Error& error) {
    const kc_device* device = nullptr;
    detail::done(error, [&](kc_error** e) { return kc_device_get(api, ordinal, &device, e); });
    return Device(device);
  }
  /// 0 on failure.
  static int count(kc_api api, Error& error) {
    int out = 0;
    const bool is_done = detail::done(error, [&](kc_error** e) { return kc_device_count(api, &out, e); });
    return is_done ? out : 0;
  }
  /// All devices of an API, by ordinal; none on failure.
  static std::vector<Device> all(kc_api api, Error& error) {
    std::vector<Device> out;
    const int devices = count(api, error);
    for (int i = 0; i < devices; ++i) {
      const Device device = get(api, i, error);
      if (!device) return {};
      out.push_back(device);
    }
    return out;
  }
#if KCLOAD_HAS_EXCEPTIONS
  static Device get(kc_api api, int ordinal) {
    return detail::or_throw([&](Error& error) { return get(api, ordinal, error); });
  }
  static int count(kc_api api) {
    return detail::or_throw([&](Error& error) { return count(api, error); });
  }
  static std::vector<Device> all(kc_api api) {
    return detail::or_throw([&](Error& error) { return all(api, error); });
  }
#endif

 private:
  const kc_device* device_ = nullptr;
};

/// How code is loaded: kc_load_options.
struct LoadOptions {
  kc_context context = KC_CONTEXT_PRIMARY;
  std::uint32_t dynamic_shared_memory = 0;  // bytes a block that launches will ask for

  kc_load_options c() const noexcept {
    kc_load_options out = KC_LOAD_OPTIONS_INIT;
    out.context = context;
    out.dynamic_shared_memory = dynamic_shared_memory;
    return out;
  }
};

/// Loaded code; unloaded with the last Kernel that it serves.
class Kernel;

/// An entry that something else keeps alive: an Entry, or a Kernel.
class EntryView {
 public:
  EntryView() noexcept = default;
  explicit EntryView(const kc_entry* entry) noexcept : entry_(entry) {}

  explicit operator bool() const noexcept { return entry_ != nullptr; }
  /// All that is known of it; lives as long as the entry.
  const kc_entry_info& info() const noexcept { return *kc_entry_get_info(entry_); }
  std::string_view unit() const noexcept { return info().unit; }
  std::string_view kernel() const noexcept { return info().kernel; }
  std::string_view configuration() const noexcept { return info().configuration; }
  std::string_view target() const noexcept { return info().target; }
  std::string_view found_target() const noexcept { return info().found_target; }
  std::string_view symbol() const noexcept { return info().symbol; }
  /// Selection data; nothing without it.
  std::optional<std::string_view> when() const noexcept {
    if (info().when == nullptr) return std::nullopt;
    return std::string_view(info().when);
  }
  /// The value of one piece of metadata, its zero bytes too.
  std::optional<std::string_view> metadata(const std::string& name) const noexcept {
    std::size_t size = 0;
    const char* value = kc_entry_metadata(entry_, name.c_str(), &size);
    if (value == nullptr) return std::nullopt;
    return std::string_view(value, size);
  }

  /// Whether its code runs on a device of `target`. KC_FIT_NONE on failure.
  kc_fit fit(const std::string& target, Error& error) const {
    kc_fit out = KC_FIT_NONE;
    detail::done(error, [&](kc_error** e) { return kc_entry_fit(entry_, target.c_str(), &out, e); });
    return out;
  }
  /// The code object, checked. Empty on failure.
  std::vector<std::uint8_t> read(Error& error) const {
    std::vector<std::uint8_t> out(static_cast<std::size_t>(info().code_size));
    if (!detail::done(error,
                      [&](kc_error** e) { return kc_entry_read(entry_, out.data(), out.size(), e); })) {
      out.clear();
    }
    return out;
  }
  /// Loads the code of this entry and no other.
  inline Kernel load(const Device& device, const LoadOptions& options, Error& error) const;
#if KCLOAD_HAS_EXCEPTIONS
  kc_fit fit(const std::string& target) const {
    return detail::or_throw([&](Error& error) { return fit(target, error); });
  }
  std::vector<std::uint8_t> read() const {
    return detail::or_throw([&](Error& error) { return read(error); });
  }
  inline Kernel load(const Device& device, const LoadOptions& options = {}) const;
#endif

  const kc_entry* get() const noexcept {
    return entry_;
  }

 protected:
  const kc_entry* entry_ = nullptr;
};

/// An entry with what keeps it readable: it may outlive its bundle.
class Entry : public EntryView {
 public:
  Entry() noexcept = default;
  /// Takes `entry`.
  explicit Entry(kc_entry* entry) noexcept : EntryView(entry), owned_(entry) {}
  Entry(Entry&& other) noexcept : EntryView(other), owned_(std::move(other.owned_)) {
    other.entry_ = nullptr;
  }
  Entry& operator=(Entry&& other) noexcept {
    owned_ = std::move(other.owned_);
    entry_ = owned_.get();
    other.entry_ = other.owned_.get();
    return *this;
  }

 private:
  detail::Owned<kc_entry, &kc_entry_free> owned_;
};

class Kernel {
 public:
  Kernel() noexcept = default;
  /// Takes `kernel`.
  explicit Kernel(kc_kernel* kernel) noexcept : kernel_(kernel) {}

  explicit operator bool() const noexcept { return kernel_ != nullptr; }
  /// CUfunction or hipFunction_t; nullptr after unload_all().
  void* function() const noexcept { return kc_kernel_function(kernel_.get()); }
  template <typename Function>
  Function function() const noexcept {
    return static_cast<Function>(function());
  }
  /// What was loaded; valid as long as this kernel.
  EntryView entry() const noexcept { return EntryView(kc_kernel_entry(kernel_.get())); }
  const kc_kernel* get() const noexcept { return kernel_.get(); }
  /// Releases it now.
  void release() noexcept { kernel_.reset(); }

 private:
  detail::Owned<kc_kernel, &kc_kernel_release> kernel_;
};

inline Kernel EntryView::load(const Device& device, const LoadOptions& options, Error& error) const {
  kc_kernel* out = nullptr;
  const kc_load_options how = options.c();
  detail::done(error, [&](kc_error** e) { return kc_load_entry(entry_, device.get(), &how, &out, e); });
  return Kernel(out);
}
#if KCLOAD_HAS_EXCEPTIONS
inline Kernel EntryView::load(const Device& device, const LoadOptions& options) const {
  return detail::or_throw([&](Error& error) { return load(device, options, error); });
}
#endif

/// An open bundle, or several as one.
class Bundle {
 public:
  Bundle() noexcept = default;
  /// Takes `bundle`.
  explicit Bundle(kc_bundle* bundle) noexcept : bundle_(bundle) {}

  explicit operator bool() const noexcept { return bundle_ != nullptr; }
  const kc_bundle* get() const noexcept { return bundle_.get(); }
  /// Releases it now.
  void close() noexcept { bundle_.reset(); }

  static Bundle open(const std::string& path, const Policy& policy, Error& error) {
    return opened(policy, error, [&](const kc_policy* p, kc_bundle** out, kc_error** e) {
      return kc_open(path.c_str(), p, out, e);
    });
  }
  /// The descriptor is duplicated: the caller's own may be closed at once.
  static Bundle open_fd(int fd, const Policy& policy, Error& error) {
    return opened(policy, error, [&](const kc_policy* p, kc_bundle** out, kc_error** e) {
      return kc_open_fd(fd, p, out, e);
    });
  }
  /// Nothing is copied: `data` must outlive the bundle and all entries and kernels that come from it.
  static Bundle open_memory(const void* data, std::size_t size, const Policy& policy, Error& error) {
    return opened(policy, error, [&](const kc_policy* p, kc_bundle** out, kc_error** e) {
      return kc_open_memory(data, size, p, out, e);
    });
  }
  /// Several as one, the earlier ones first where two fit equally well. Those given may be closed.
  static Bundle join(const std::vector<const Bundle*>& bundles, Error& error) {
    std::vector<kc_bundle*> raw;
    for (const Bundle* bundle : bundles) raw.push_back(bundle == nullptr ? nullptr : bundle->bundle_.get());
    kc_bundle* out = nullptr;
    detail::done(error, [&](kc_error** e) { return kc_join(raw.data(), raw.size(), &out, e); });
    return Bundle(out);
  }

  /// Reads and checks every byte. False on failure.
  bool verify(Error& error) const {
    return detail::done(error, [&](kc_error** e) { return kc_verify(bundle_.get(), e); });
  }

  /// Of how many files it is made, and what each of them is (index below that).
  std::size_t file_count() const noexcept { return kc_file_count(bundle_.get()); }
  const kc_file_info& file(std::size_t index = 0) const noexcept {
    return *kc_file_get_info(bundle_.get(), index);
  }

  std::size_t entry_count() const noexcept { return kc_entry_count(bundle_.get()); }
  Entry entry(std::size_t index, Error& error) const {
    kc_entry* out = nullptr;
    detail::done(error, [&](kc_error** e) { return kc_entry_at(bundle_.get(), index, &out, e); });
    return Entry(out);
  }
  /// The entry of a kernel that runs best on a device of `target`. `configuration`: pairs in any order, ""
  /// for a kernel without, nothing for the kernel's default.
  Entry find(const std::string& kernel, const std::optional<std::string>& configuration,
             const std::string& target, Error& error) const {
    kc_entry* out = nullptr;
    detail::done(error, [&](kc_error** e) {
      return kc_find(bundle_.get(), kernel.c_str(), c_str(configuration), target.c_str(), &out, e);
    });
    return Entry(out);
  }
  /// The kernel's best code for the device, loaded.
  Kernel load(const std::string& kernel, const std::optional<std::string>& configuration,
              const Device& device, const LoadOptions& options, Error& error) const {
    kc_kernel* out = nullptr;
    const kc_load_options how = options.c();
    detail::done(error, [&](kc_error** e) {
      return kc_load(bundle_.get(), kernel.c_str(), c_str(configuration), device.get(), &how, &out, e);
    });
    return Kernel(out);
  }

#if KCLOAD_HAS_EXCEPTIONS
  static Bundle open(const std::string& path, const Policy& policy = {}) {
    return detail::or_throw([&](Error& error) { return open(path, policy, error); });
  }
  static Bundle open_fd(int fd, const Policy& policy = {}) {
    return detail::or_throw([&](Error& error) { return open_fd(fd, policy, error); });
  }
  static Bundle open_memory(const void* data, std::size_t size, const Policy& policy = {}) {
    return detail::or_throw([&](Error& error) { return open_memory(data, size, policy, error); });
  }
  static Bundle join(const std::vector<const Bundle*>& bundles) {
    return detail::or_throw([&](Error& error) { return join(bundles, error); });
  }
  void verify() const {
    detail::or_throw([&](Error& error) { return verify(error); });
  }
  Entry entry(std::size_t index) const {
    return detail::or_throw([&](Error& error) { return entry(index, error); });
  }
  Entry find(const std::string& kernel, const std::optional<std::string>& configuration,
             const std::string& target) const {
    return detail::or_throw([&](Error& error) { return find(kernel, configuration, target, error); });
  }
  Kernel load(const std::string& kernel, const std::optional<std::string>& configuration,
              const Device& device, const LoadOptions& options = {}) const {
    return detail::or_throw(
        [&](Error& error) { return load(kernel, configuration, device, options, error); });
  }

  /// Goes over all entries; each step reads one and throws when it cannot be read. The bundle must stay.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Entry;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = Entry;

    Iterator(const Bundle* bundle, std::size_t index) noexcept : bundle_(bundle), index_(index) {}
    Entry operator*() const { return bundle_->entry(index_); }
    Iterator& operator++() noexcept {
      ++index_;
      return *this;
    }
    Iterator operator++(int) noexcept {
      Iterator before = *this;
      ++index_;
      return before;
    }
    bool operator==(const Iterator& other) const noexcept { return index_ == other.index_; }
    bool operator!=(const Iterator& other) const noexcept { return index_ != other.index_; }

   private:
    const Bundle* bundle_;
    std::size_t index_;
  };
  Iterator begin() const noexcept {
    return {this, 0};
  }
  Iterator end() const noexcept {
    return {this, entry_count()};
  }
#endif

 private:
  static const char* c_str(const std::optional<std::string>& text) noexcept {
    return text ? text->c_str() : nullptr;
  }

  template <typename Open>
  static Bundle opened(const Policy& policy, Error& error, Open&& open) {
    std::vector<const char*> files;
    for (const std::string& file : policy.key_files) files.push_back(file.c_str());
    std::vector<std::uint8_t> keys;
    for (const auto& key : policy.keys) keys.insert(keys.end(), key.begin(), key.end());
    kc_policy raw = KC_POLICY_INIT;
    raw.key_files = files.data();
    raw.key_file_count = files.size();
    raw.keys = keys.data();
    raw.key_count = policy.keys.size();
    raw.required_signatures = policy.required_signatures;
    raw.name = c_str(policy.name);
    raw.min_release = policy.min_release;
    raw.allow_partial = policy.allow_partial ? 1 : 0;
    raw.max_file_size = policy.max_file_size;
    raw.max_code_size = policy.max_code_size;
    kc_bundle* out = nullptr;
    detail::done(error, [&](kc_error** e) { return open(&raw, &out, e); });
    return Bundle(out);
  }

  detail::Owned<kc_bundle, &kc_close> bundle_;
};

/// kc_unload_all().
inline void unload_all() noexcept {
  kc_unload_all();
}

}  // namespace kcload

#endif
