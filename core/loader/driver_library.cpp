#include "loader/driver_library.h"

#include <dlfcn.h>
#include <link.h>
#include <cstring>

namespace kc::loader {
namespace {

void set(const Symbol& symbol, void* address) {
  // Not an assignment through void**: the slot is a pointer to some function type.
  std::memcpy(symbol.slot, &address, sizeof address);
}

std::string linker_error(std::string_view place) {
  const char* const error = dlerror();
  std::string_view text = error != nullptr ? error : "no reason was given";
  // The linker's own texts begin with the name; ours do anyway.
  if (text.starts_with(place) && text.substr(place.size()).starts_with(": ")) {
    text.remove_prefix(place.size() + 2);
  }
  return plain_text(text);
}

std::string path_of(void* library, const char* place) {
  link_map* map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr || map->l_name == nullptr ||
      map->l_name[0] == 0) {
    return place;
  }
  return plain_text(map->l_name);
}

// What of `symbols` is needed and `library` lacks, "" for nothing; the slots are set.
std::string bind(void* library, std::span<const Symbol> symbols) {
  std::string missing;
  const auto miss = [&](const std::string& names) { missing += (missing.empty() ? "" : ", ") + names; };
  for (size_t i = 0; i < symbols.size(); ++i) {
    std::string names;  // of a run of alternatives, until one is found
    bool found = false;
    const size_t first = i;
    for (;; ++i) {
      void* const address = dlsym(library, symbols[i].name);
      set(symbols[i], address);
      found = found || address != nullptr;
      names += (i == first ? "" : " or ") + std::string(symbols[i].name);
      const bool goes_on =
          symbols[i].need == Need::kEither && i + 1 < symbols.size() && symbols[i + 1].need == Need::kEither;
      if (!goes_on) break;
    }
    if (!found && symbols[i].need != Need::kOptional) miss(names);
  }
  return missing;
}

}  // namespace

std::string plain_text(std::string_view text, bool lines) {
  std::string out;
  for (const char c : text) {
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
    if (control && !(lines && c == '\n')) {
      out += c == '\t' || c == '\n' ? ' ' : '?';
    } else {
      out += c;
    }
  }
  out.erase(out.find_last_not_of(" \n") + 1);
  return out;
}

Result<std::string> open_driver_library(std::string_view product, std::span<const char* const> places,
                                        std::span<const Symbol> symbols, std::string_view cure) {
  std::string tried;
  for (const char* const place : places) {
    void* const library = dlopen(place, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      tried += "\n  " + std::string(place) + ": " + linker_error(place);
      continue;
    }
    const std::string path = path_of(library, place);
    const std::string missing = bind(library, symbols);
    if (missing.empty()) return path;
    tried += "\n  " + std::string(place) + ": " + path + " lacks " + missing;
    dlclose(library);
  }
  for (const Symbol& symbol : symbols) set(symbol, nullptr);
  return fail(KC_ERROR_NO_DRIVER, "no library of the " + std::string(product) + " can be used (" +
                                      std::string(cure) + "); tried:" + tried);
}

}  // namespace kc::loader
