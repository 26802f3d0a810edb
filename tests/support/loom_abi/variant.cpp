#include "support/loom_abi/variant.h"

namespace kc::test::loom {

const Variant kVariant{LOOM_GENERATION, LOOM_PROCESSOR_MODE};

}  // namespace kc::test::loom
