#include "backend/run.h"

#include "backend/loom/loom.h"
#include "backend/loom/run/runner.h"
#include "backend/tileiras/runner.h"
#include "util/text.h"

namespace kc::backend {

base::Result<std::unique_ptr<Runner>> open_runner(const Compiler& compiler) {
  if (compiler.backend == tileiras::kName) return tileiras::open(compiler);
  if (compiler.backend == loom::kName) return loom::open(compiler);
  return base::fail(base::ErrorKind::kEnvironment,
                    util::format("backend {} is not built into this kc", util::escape(compiler.backend)));
}

}  // namespace kc::backend
