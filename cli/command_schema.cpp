// kc schema: the JSON schema of manifests, for editors.
#include <string_view>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/schema_text.h"

namespace kc::cli {

int command_schema(const Common& /*common*/, Console& console) {
  std::string_view text = schema_text();
  if (text.ends_with('\n')) text.remove_suffix(1);  // result() writes it
  console.result(text);
  return 0;
}

}  // namespace kc::cli
