// Digests made right again after bytes were changed: otherwise every changed file is refused at its first
// digest, and what lies behind it is never tried.
#pragma once

#include "base/bytes.h"

namespace kc::fuzz {

/// An entry of the store with the digests that its bytes have, and the payload size that its file has. What
/// is no entry at all comes back as it is.
base::Bytes repair_entry(base::ByteView file);

/// A record of the store with the header digest that its bytes have, and no payload.
base::Bytes repair_record(base::ByteView file);

/// An archive with the sizes that its file has, and right digests from its items outwards. Signature blocks
/// are taken to be what lies behind the last item.
base::Bytes repair_archive(base::ByteView file);

/// A bundle likewise: of artifacts, frames, pages, page table, metadata, header and signature blocks.
base::Bytes repair_bundle(base::ByteView file);

}  // namespace kc::fuzz
