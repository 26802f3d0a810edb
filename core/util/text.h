// Text: formatting (fmt is included here only; use kc::util::format), escaping for terminals, names that are
// near.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kc::util {

using fmt::format;

/// Makes untrusted text safe to print: control bytes (C0, DEL, C1 as UTF-8), bidirectional controls and
/// invalid UTF-8 become `\xNN`, byte by byte; line feeds and tabs stay when `multi_line`.
std::string escape(std::string_view text, bool multi_line = false);
bool is_valid_utf8(std::string_view text);
/// Bytes of the well-formed UTF-8 sequence at `at`, which must be less than text.size(); 0 when there is
/// none.
size_t utf8_size(std::string_view text, size_t at);

/// The candidate at the least edit distance (optimal string alignment, the case of letters ignored), when
/// that is close enough to be meant: at most a third of the longer one's length, at least 1 (base/nearest.h).
std::optional<std::string> nearest(std::string_view name, std::span<const std::string> candidates);
/// Text for a hint, `did you mean "x"?`, or empty.
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates);

/// `1 unit`, `2 units`.
std::string counted(uint64_t count, std::string_view singular, std::string_view plural = {});
/// `a, b and c`; more than `most` names end in `and N more`.
std::string listed(std::span<const std::string> names, size_t most = 8);
/// Bytes for people: `22.7 KiB`, `3 B`.
std::string size_text(uint64_t bytes);

/// Sizes as a manifest writes them: `64KiB`, `2G`, `4096`, `512B`. K, M, G and Ki, Mi, Gi, with or without B,
/// are powers of 1024. Nothing on overflow or other text.
std::optional<uint64_t> parse_size(std::string_view text);
/// A whole number in [least, most] written in plain decimal digits.
std::optional<uint64_t> parse_number(std::string_view text, uint64_t least, uint64_t most);

/// Matches `*` (any run), `?` (one byte), `[a-z]` and `[!a-z]` against the whole of `text`; a `[` that
/// nothing closes stands for itself. At most pattern length x text length steps.
bool glob_match(std::string_view pattern, std::string_view text);

/// Always one part more than there are separators: `` -> {``}, `a,` -> {`a`, ``}.
std::vector<std::string> split(std::string_view text, char separator);
/// Without the ASCII white space at both ends.
std::string_view trim(std::string_view text);
/// ASCII alone, whatever the locale.
bool is_letter_or_digit(char c);
std::string join(std::span<const std::string> parts, std::string_view separator);

}  // namespace kc::util
