// Tile IR bytecode as far as kc looks into it: header, entries.
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "backend/tileiras/tileiras.h"
#include "fuzz/fuzz.h"

namespace kc::fuzz {

namespace tileiras = backend::tileiras;

bool check(base::ByteView input) {
  constexpr std::string_view kFile = "kernels/a.tilebc";
  const auto version = tileiras::bytecode_version(input);
  const base::Result<void> source = tileiras::check_source(kFile, input);
  KC_PROMISE(source.has_value() == version.has_value());
  if (!source) {
    KC_PROMISE(source.error().kind == base::ErrorKind::kInput);
    KC_PROMISE(source.error().place.file == kFile);
    KC_PROMISE(!source.error().message.empty());
  }
  const base::Result<std::vector<std::string>> entries = tileiras::entries_of(input);
  const auto through_backend = backend::entries_of(tileiras::kName, kFile, input);
  KC_PROMISE(through_backend.has_value() == entries.has_value());
  if (!entries) {
    KC_PROMISE(!entries.error().message.empty());
    return false;
  }
  KC_PROMISE(version);
  KC_PROMISE(*through_backend == *entries);
  // A function takes five bytes of its table at least; names are copied from the bytes.
  KC_PROMISE(entries->size() <= input.size() / 5);
  for (const std::string& name : *entries) {
    KC_PROMISE(name.empty() || base::as_text(input).find(name) != std::string_view::npos);
  }
  return true;
}

}  // namespace kc::fuzz
