// What the parts of a record may look like: the grammar of a manifest (docs/manifest.md), held by writer and
// reader alike.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "bundle/bundle.h"
#include "bundle/format.h"

namespace kc::bundle {

inline constexpr uint32_t kMaxNameLength = 255;  // of a bundle: a file name's stem
inline constexpr uint32_t kMaxKernelLength = 128;
inline constexpr uint32_t kMaxTargetLength = 128;

bool is_kernel_name(std::string_view text);
/// Canonical text of a configuration: sorted keys, values escaped where they must be and nowhere else.
bool is_specialization(std::string_view text);
/// The byte that `%XX` at the beginning of `text` stands for; nothing when there is none.
std::optional<char> escaped_byte(std::string_view text);
/// At most `limit` bytes, no control characters of ASCII.
bool is_plain_text(std::string_view text, size_t limit);
/// Plain names, strictly ascending.
bool is_metadata(const Pairs& pairs);

/// What is wrong with a record, as a clause without the unit's name; nothing when it is right.
std::optional<std::string> fault_of(const Record& record);

}  // namespace kc::bundle
