// Bytes of other layers in an envelope of the store: states, failures, pins (docs/store-format.md: State).
#pragma once

#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "base/digest.h"
#include "store/frozen.h"

namespace kc::store {

/// A file with `id` and `payload`.
base::Bytes seal(std::string_view magic, const base::Digest& id, base::ByteView payload);

/// The payload of such a file, if it is whole, has this id and at most `limit` bytes.
Checked<base::Bytes> unseal(int fd, std::string_view magic, const base::Digest& id, uint64_t file_size,
                            uint64_t limit);

}  // namespace kc::store
