// YAML that may be hostile, read within bounds. yaml-cpp is used through its events and only in
// yaml_reader.cpp; every bound is checked as the events arrive, before a tree exists.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "config/yaml_document.h"

namespace kc::config {

struct YamlLimits {
  uint64_t bytes = 8ULL << 20;  // of the file; also of all scalars, an alias as all that it stands for
  uint32_t nodes = 1'000'000;   // keys count; an alias counts as all that it stands for
  // Lists and maps without brackets: yaml-cpp keeps some 50 bytes for each until the text ends.
  uint32_t block_collections = 500'000;
  uint32_t depth = 64;  // collections within one another; a scalar adds none; yaml-cpp ends at 500
};

struct YamlRead {
  /// Unset when the text could not be read to its end; then `errors` holds the one reason.
  std::optional<YamlDocument> document;
  /// In order of place. Beside a document: duplicate keys (all of them are in the document), keys that are no
  /// scalar, tags; the rest of the document can still be checked.
  std::vector<base::Error> errors;
};

/// Reads exactly one document from `text`. `file` is what errors call it; all of them are
/// ErrorKind::kInput. An empty text, or one without any node, is an error. `number` becomes the
/// YamlPlace::file of every node.
YamlRead read_yaml(const std::string& file, std::string_view text, const YamlLimits& limits = {},
                   uint32_t number = 0);

}  // namespace kc::config
