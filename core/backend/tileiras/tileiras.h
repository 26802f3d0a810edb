// The describing half of the tileiras backend: what backend.h asks of it, and what its running half shares.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "backend/search_tools.h"

namespace kc::backend::tileiras {

inline constexpr std::string_view kName = "tileiras";
/// How its pinned packages are installed; the three must share major.minor.
inline constexpr std::string_view kInstallHint =
    "pip install nvidia-cuda-tileiras==13.4.92 nvidia-cuda-nvcc==13.4.92 nvidia-nvvm==13.4.92, or set "
    "KC_TILEIRAS to the program";

Description description();

/// Looks in the places of DESIGN's search order and takes the first installation that is usable. A variable
/// that names the compiler itself (KC_TILEIRAS, CUTILE_TILEIRAS_PATH) is obeyed or an error, never passed
/// over.
base::Result<Compiler> find(const SearchVariables& variables, const KnownDigest& known,
                            std::vector<SearchStep>* steps);

/// What runs when the resolved `program` is started: itself, the ptxas beside it, the libnvvm and libdevice
/// that it would open. Files that are missing are left out.
std::vector<Component> components_of(const std::string& program);

/// The version in a Tile IR bytecode header.
struct BytecodeVersion {
  uint8_t major = 0;
  uint8_t minor = 0;

  bool operator==(const BytecodeVersion&) const = default;
};
/// Nothing when `bytes` do not begin with a whole Tile IR bytecode header.
std::optional<BytecodeVersion> bytecode_version(base::ByteView bytes);

base::Result<void> check_source(std::string_view name, base::ByteView bytes);
/// Entry functions in the order of the file. Reads the Func and String sections of versions 13.1 to 13.5.
base::Result<std::vector<std::string>> entries_of(base::ByteView bytes);

}  // namespace kc::backend::tileiras
