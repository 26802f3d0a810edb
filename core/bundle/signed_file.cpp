// Signatures into bundle files: of one that was just written, and behind one that is there.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/atomic_file.h"
#include "base/file_system.h"
#include "bundle/bundle.h"
#include "bundle/format.h"
#include "bundle/reader_impl.h"

namespace kc::bundle {
namespace {

using base::Result;

// A bundle may be larger than memory.
constexpr uint64_t kCopyChunk = 1U << 20;

}  // namespace

Result<Signature> sign_bundle(int fd, const PrivateKey& key, std::string_view name) {
  struct stat status;
  if (base::file_system().fstat(fd, &status) != 0) {
    return base::fail_errno(base::ErrorKind::kEnvironment, "stat", name, errno);
  }
  KC_ASSIGN(const base::Bytes header, base::pread_exact(fd, 0, kHeaderSize, name));
  const base::Digest digest = base::digest_from(base::ByteView(header).last(kDigestSize));
  Signature signature{key.public_key(), {}};
  KC_ASSIGN(signature.bytes, key.sign(bundle_message(digest)));
  KC_TRY(base::pwrite_all(fd, encode_block(signature), static_cast<uint64_t>(status.st_size), name));
  return signature;
}

Result<bool> Reader::add_signature(const Signature& signature) {
  const std::string& path = impl_->path();
  if (!impl_->is_of_path) {
    return base::fail_at(base::ErrorKind::kInternal, {path}, "was not opened by path: it cannot be replaced");
  }
  const base::Bytes message = bundle_message(header_digest());
  if (!is_valid(signature, message)) {
    return base::fail_at(base::ErrorKind::kFailed, {path},
                         "the signature by " + signature.key.id() + " is not one of this bundle");
  }
  KC_ASSIGN(const std::vector<SignatureBlock> blocks, signature_blocks());
  KC_ASSIGN(const std::vector<Signature> there, signatures());
  // One of the same key that is not valid counts for nothing.
  const auto is_same = [&](const Signature& other) {
    return other.key == signature.key && is_valid(other, message);
  };
  if (std::ranges::any_of(there, is_same)) return false;
  if (blocks.size() >= kMaxSignatures) {
    return base::fail_at(
        base::ErrorKind::kFailed, {path},
        "it has " + std::to_string(blocks.size()) + " signature blocks already, the most there may be");
  }
  struct stat status;
  if (base::file_system().fstat(impl_->source->fd(), &status) != 0) {
    return base::fail_errno(base::ErrorKind::kInput, "stat", path, errno);
  }
  KC_ASSIGN(base::AtomicFile file, base::AtomicFile::create(AT_FDCWD, path, status.st_mode & 0777));
  for (uint64_t at = 0; at < file_size(); at += kCopyChunk) {
    const uint64_t size = std::min(kCopyChunk, file_size() - at);
    KC_ASSIGN(const Piece part, impl_->source->read(at, size));
    KC_TRY(file.write(part.bytes));
  }
  KC_TRY(file.write(encode_block(signature)));
  KC_TRY(file.commit(base::Sync::kFull));
  return true;
}

}  // namespace kc::bundle
