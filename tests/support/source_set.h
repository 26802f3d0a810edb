// Source sets of one file, for tests of compilers that take one.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "backend/run.h"
#include "base/bytes.h"

namespace kc::test {

inline std::shared_ptr<const backend::SourceSet> one_source(std::string identifier, base::Bytes bytes) {
  static uint32_t last = 0;
  auto out = std::make_shared<backend::SourceSet>();
  out->id = ++last;
  out->files.push_back({std::move(identifier), backend::Role::kSource, std::move(bytes)});
  return out;
}

/// The same file with other bytes.
inline std::shared_ptr<const backend::SourceSet> changed(const std::shared_ptr<const backend::SourceSet>& set,
                                                         const std::function<void(base::Bytes&)>& change) {
  base::Bytes bytes = set->files.front().bytes;
  change(bytes);
  return one_source(set->files.front().identifier, std::move(bytes));
}

}  // namespace kc::test
