// Single flight: at most one process and one thread compiles a key at a time (FORMATS: single flight).
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "base/digest.h"
#include "base/files.h"

namespace kc::store {

/// Offset of the byte that stands for `key`: its first 62 bits. 62, because file offsets are signed and the
/// byte at kProbeOffset, behind all of them, must exist too.
uint64_t lock_offset(const base::Digest& key);
inline constexpr uint64_t kProbeOffset = 1ULL << 62;

/// Byte-range locks over one file for other processes, a table of keys for the threads of this one.
/// Thread-safe. Locks are freed when the process ends, however it ends.
class KeyLocks {
 public:
  explicit KeyLocks(base::FileDescriptor file) : file_(std::move(file)) {}

  enum class Answer : uint8_t { kHeld, kBusy, kUnavailable };
  /// Never waits. kUnavailable: no working locks here; compile without.
  Answer try_lock(const base::Digest& key);
  /// Precondition: this object holds `key`.
  void unlock(const base::Digest& key);

 private:
  base::FileDescriptor file_;
  std::mutex mutex_;
  // By byte offset, not by key: two keys that share an offset exclude each other, which is safe and never
  // seen.
  std::unordered_set<uint64_t> held_;
};

}  // namespace kc::store
