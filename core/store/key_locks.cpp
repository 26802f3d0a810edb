#include "store/key_locks.h"

#include "base/lock.h"

namespace kc::store {

uint64_t lock_offset(const base::Digest& key) {
  uint64_t first = 0;
  for (size_t i = 0; i < sizeof first; ++i) first = first << 8 | key.bytes[i];
  return first >> 2;
}

KeyLocks::Answer KeyLocks::try_lock(const base::Digest& key) {
  const uint64_t offset = lock_offset(key);
  const std::lock_guard guard(mutex_);
  if (held_.contains(offset)) return Answer::kBusy;
  const auto locked = base::try_lock_byte(file_.get(), offset);
  if (!locked) return Answer::kUnavailable;
  if (!*locked) return Answer::kBusy;
  held_.insert(offset);
  return Answer::kHeld;
}

void KeyLocks::unlock(const base::Digest& key) {
  const uint64_t offset = lock_offset(key);
  const std::lock_guard guard(mutex_);
  // An unlock that fails leaves the byte locked until the process ends, which others answer by compiling.
  if (held_.erase(offset) != 0) (void)base::unlock_byte(file_.get(), offset);
}

}  // namespace kc::store
