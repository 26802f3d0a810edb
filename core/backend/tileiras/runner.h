// The running half of the tileiras backend: one child process a compile.
#pragma once

#include <memory>

#include "backend/run.h"
#include "backend/tileiras/tileiras.h"

namespace kc::backend::tileiras {

base::Result<std::unique_ptr<Runner>> open(const Compiler& compiler);

}  // namespace kc::backend::tileiras
