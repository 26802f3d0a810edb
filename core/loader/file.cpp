// One bundle behind its policy.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "base/digest.h"
#include "base/file_system.h"
#include "base/files.h"
#include "bundle/format.h"
#include "loader/bundles.h"
#include "loader/text.h"

namespace kc::loader {
namespace {

// A larger frame is decompressed anew for each of its code objects: a host should not have to keep it.
constexpr bundle::ReadOptions kReading{.largest_kept_frame = 4U << 20};
// Kernels whose place is remembered: more than any program uses, 40 bytes and the name each.
constexpr size_t kMostRemembered = 4096;

// The beginning of a file that was refused: is it one of a newer kc?
bool is_newer(int fd, const std::string& name) {
  struct stat status;
  if (base::file_system().fstat(fd, &status) != 0 || status.st_size < 0) return false;
  const auto size = std::min(static_cast<uint64_t>(status.st_size), bundle::kMaxHeaderSize);
  const base::Result<base::Bytes> start = base::pread_exact(fd, 0, size, name);
  return start && bundle::is_newer_bundle(*start);
}
bool is_newer(const std::string& path) {
  const base::Result<base::FileDescriptor> fd = base::open_at(AT_FDCWD, path, O_RDONLY | O_NONBLOCK);
  return fd && is_newer(fd->get(), path);
}
bool is_newer(base::ByteView memory) {
  return bundle::is_newer_bundle(memory.first(std::min<size_t>(memory.size(), bundle::kMaxHeaderSize)));
}

std::string ids(const std::vector<bundle::PublicKey>& keys) {
  std::vector<std::string> out;
  for (const bundle::PublicKey& key : keys) out.push_back(key.id());
  return listed(out);
}

// Keys of the policy that have signed, in its order.
Result<std::vector<bundle::PublicKey>> find_signers(bundle::Reader& reader, const Policy& policy) {
  std::vector<bundle::PublicKey> out;
  if (policy.keys.empty()) return out;
  KC_ASSIGN(const std::vector<bundle::Signature> signatures, from_base(reader.signatures()));
  const base::Bytes message = bundle::bundle_message(reader.header_digest());
  bool is_forged = false;
  std::vector<bundle::PublicKey> others;
  for (const bundle::PublicKey& key : policy.keys) {
    const bool has_signed = std::ranges::any_of(signatures, [&](const bundle::Signature& signature) {
      if (signature.key != key) return false;
      if (bundle::is_valid(signature, message)) return true;
      is_forged = true;
      return false;
    });
    if (has_signed) out.push_back(key);
  }
  if (out.size() >= policy.required_signatures) return out;
  for (const bundle::Signature& signature : signatures) {
    if (std::ranges::find(others, signature.key) == others.end()) others.push_back(signature.key);
  }
  std::string text = reader.path() + ": the bundle is not signed as the policy demands: " +
                     std::to_string(policy.required_signatures) + " of the keys " + ids(policy.keys) +
                     " must have signed it, " + std::to_string(out.size()) + " did; ";
  text += others.empty() ? "it has no signature" : "it names signatures by " + ids(others);
  if (is_forged) text += ", and one by a trusted key is not valid for this bundle";
  return fail(KC_ERROR_UNTRUSTED, std::move(text));
}

Result<void> check_policy(const bundle::Reader& reader, const Policy& policy) {
  const bundle::Info& info = reader.info();
  const auto refuse = [&](const std::string& why) {
    return fail(KC_ERROR_POLICY, reader.path() + ": refused by the policy: " + why);
  };
  if (policy.name && info.name != *policy.name) {
    return refuse("it is the bundle " + in_quotes(info.name) + ", not " + in_quotes(*policy.name));
  }
  if (info.release < policy.min_release) {
    return refuse("its release is " + std::to_string(info.release) + ", at least " +
                  std::to_string(policy.min_release) + " is demanded");
  }
  if ((info.partial || info.subset) && !policy.allow_partial) {
    return refuse(info.partial ? "it is partial: units of its plan are missing (allow_partial takes it)"
                               : "it is a subset: made of a part of its plan (allow_partial takes it)");
  }
  return {};
}

}  // namespace

struct File::Impl {
  explicit Impl(bundle::Reader from) : reader(std::move(from)) {}

  bundle::Reader reader;
  std::vector<bundle::PublicKey> signers;
  uint64_t max_code_size = 0;
  std::mutex mutex;
  std::unordered_map<std::string, KernelPlace> kernels;  // guarded by mutex
};

File::File(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
File::~File() = default;

template <typename Open, typename IsNewer>
Result<std::shared_ptr<File>> File::checked(const Policy& policy, const Open& open,
                                            const IsNewer& is_newer_one) {
  if (!base::digests_available()) {
    return fail(
        KC_ERROR_INTERNAL,
        "libcrypto offers no SHA-256, without which no bundle can be checked: its default provider is "
        "missing or damaged");
  }
  if (!policy.keys.empty() && !bundle::signatures_available()) {
    return fail(KC_ERROR_INTERNAL, "libcrypto offers no Ed25519, without which no signature can be checked");
  }
  base::Result<bundle::Reader> reader = open();
  if (!reader) {
    Failure failure = failure_of(reader.error());
    if (failure.status == KC_ERROR_DAMAGED && is_newer_one()) failure.status = KC_ERROR_VERSION;
    return std::unexpected(std::move(failure));
  }
  if (policy.max_file_size != 0 && reader->file_size() > policy.max_file_size) {
    return fail(KC_ERROR_POLICY, reader->path() + ": refused by the policy: it has " +
                                     std::to_string(reader->file_size()) + " bytes, at most " +
                                     std::to_string(policy.max_file_size) + " are allowed");
  }
  KC_ASSIGN(std::vector<bundle::PublicKey> signers, find_signers(*reader, policy));
  KC_TRY(check_policy(*reader, policy));
  auto impl = std::make_unique<Impl>(std::move(*reader));
  impl->signers = std::move(signers);
  impl->max_code_size = policy.max_code_size;
  return std::shared_ptr<File>(new File(std::move(impl)));
}

Result<std::shared_ptr<File>> File::open(const std::string& path, const Policy& policy) {
  return checked(
      policy, [&] { return bundle::Reader::open(path, kReading); }, [&] { return is_newer(path); });
}

Result<std::shared_ptr<File>> File::open(int fd, const Policy& policy) {
  const std::string name = "fd " + std::to_string(fd);
  if (fd < 0) return fail(KC_ERROR_ARGUMENT, name + " is no file descriptor");
  base::FileDescriptor own(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!own)
    return std::unexpected(
        failure_of(base::fail_errno(base::ErrorKind::kInput, "duplicate", name, errno).error()));
  return checked(
      policy, [&] { return bundle::Reader::open(std::move(own), name, kReading); },
      [&] { return is_newer(fd, name); });
}

Result<std::shared_ptr<File>> File::open(base::ByteView bytes, const Policy& policy) {
  return checked(
      policy, [&] { return bundle::Reader::open(bytes, "memory", kReading); },
      [&] { return is_newer(bytes); });
}

const bundle::Info& File::info() const {
  return impl_->reader.info();
}
const std::string& File::path() const {
  return impl_->reader.path();
}
const std::vector<bundle::PublicKey>& File::signers() const {
  return impl_->signers;
}
bundle::Reader& File::reader() {
  return impl_->reader;
}
uint64_t File::max_code_size() const {
  return impl_->max_code_size;
}

Result<std::optional<File::KernelPlace>> File::kernel(std::string_view name) {
  const std::string key(name);
  {
    const std::lock_guard lock(impl_->mutex);
    if (const auto known = impl_->kernels.find(key); known != impl_->kernels.end()) return known->second;
  }
  bundle::Reader& reader = impl_->reader;
  KC_ASSIGN(const uint32_t begin, from_base(reader.lower_bound(name, "", "")));
  if (begin == reader.record_count()) return std::nullopt;
  KC_ASSIGN(const bundle::Reader::Names first, from_base(reader.names(begin)));
  if (first.kernel != name) return std::nullopt;
  KC_ASSIGN(const std::optional<uint32_t> first_default, from_base(reader.first_default(begin)));
  const KernelPlace place{begin, first_default};
  const std::lock_guard lock(impl_->mutex);
  if (impl_->kernels.size() < kMostRemembered) impl_->kernels.emplace(key, place);
  return place;
}

Result<bundle::Code> Entry::image() const {
  const uint64_t most = file->max_code_size();
  if (most != 0 && record.artifact_size > most) {
    return fail(KC_ERROR_POLICY, file->path() + ": refused by the policy: the code of " +
                                     in_quotes(record.unit()) + " has " +
                                     std::to_string(record.artifact_size) + " bytes, at most " +
                                     std::to_string(most) + " are allowed");
  }
  return from_base(file->reader().code(record));
}

Result<base::Bytes> Entry::code() const {
  KC_ASSIGN(const bundle::Code found, image());
  return base::Bytes(found.bytes.begin(), found.bytes.end());
}

}  // namespace kc::loader
