#include "loader/text.h"

#include <algorithm>

namespace kc::loader {
namespace {

constexpr size_t kShownBytes = 200;  // longer than kernel, configuration and target of any kernel in use
constexpr size_t kShownNames = 8;    // what is read at a glance

}  // namespace

std::string in_quotes(std::string_view text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text.substr(0, kShownBytes)) {
    if (c >= ' ' && c <= '~') {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  if (text.size() > kShownBytes) out += "...";
  return out += '"';
}

std::string listed(const std::vector<std::string>& names) {
  // One more than are shown is shown rather than counted.
  const size_t shown = names.size() <= kShownNames + 1 ? names.size() : kShownNames;
  std::string out;
  for (size_t i = 0; i < shown; ++i) {
    if (i > 0) out += i + 1 == names.size() ? " and " : ", ";
    out += in_quotes(names[i]);
  }
  if (shown < names.size()) out += " and " + std::to_string(names.size() - shown) + " more";
  return out;
}

}  // namespace kc::loader
