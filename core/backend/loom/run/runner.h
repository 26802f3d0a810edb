// The running half of the Loom backend: compiles in the engine's own process, any number at once.
#pragma once

#include <memory>

#include "backend/loom/run/index_cache.h"
#include "backend/run.h"

namespace kc::backend::loom {

base::Result<std::unique_ptr<Runner>> open(const Compiler& compiler, IndexCache::Limits limits = {});

}  // namespace kc::backend::loom
