#include "bundle/strings.h"

namespace kc::bundle {

Ref StringArea::add(base::ByteView item) {
  if (item.empty()) return {};
  std::string key(base::as_text(item));
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  if (bytes_.size() + item.size() > kMaxStringsSize) {
    full_ = true;
    return {};
  }
  const Ref ref = {static_cast<uint32_t>(bytes_.size()), static_cast<uint32_t>(item.size())};
  bytes_.insert(bytes_.end(), item.begin(), item.end());
  known_.emplace(std::move(key), ref);
  return ref;
}

}  // namespace kc::bundle
