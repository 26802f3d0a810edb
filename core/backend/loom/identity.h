// What the search and the identity of a Loom library share.
#pragma once

#include <string>
#include <vector>

#include "backend/search_tools.h"
#include "base/error.h"
#include "util/elf_object.h"

namespace kc::backend::loom {

/// Where the dynamic linker looks at last, in its order.
const std::vector<std::string>& standard_folders();

/// As components_of(), without what the files need: no file is opened.
base::Result<std::vector<Component>> components_without_needed(const std::string& library);

}  // namespace kc::backend::loom
