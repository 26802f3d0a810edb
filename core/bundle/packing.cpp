#include "bundle/packing.h"

#include <unordered_map>
#include <unordered_set>

#include "bundle/format.h"

namespace kc::bundle {
namespace {

bool same_group(const PackItem& a, const PackItem& b) {
  return a.family == b.family && a.kernel == b.kernel;
}

uint64_t end_with(uint64_t raw_size, const PackItem& item) {
  return align_to(raw_size, kAlignment) + item.size;
}

class Packer {
 public:
  Packer(std::span<const PackItem> items, uint64_t frame_size) : items_(items), frame_size_(frame_size) {
    packing_.places.resize(items.size());
  }

  /// Items [begin, end) are one kernel and family.
  void add_group(size_t begin, size_t end) {
    if (!open_ || items_[begin].family != family_ || group_end(begin, end) > frame_size_) start_frame(begin);
    for (size_t i = begin; i < end; ++i) add(i);
  }
  Packing take() { return std::move(packing_); }

 private:
  // Where the frame at hand would end if it took the whole group.
  uint64_t group_end(size_t begin, size_t end) const {
    uint64_t raw_size = packing_.frames.back().raw_size;
    std::unordered_set<base::Digest> seen;
    for (size_t i = begin; i < end; ++i) {
      if (stored_.contains(items_[i].digest) || !seen.insert(items_[i].digest).second) continue;
      raw_size = end_with(raw_size, items_[i]);
    }
    return raw_size;
  }

  // The frame itself is made by the first artifact that needs it: a group may be stored elsewhere as a whole.
  void start_frame(size_t item) {
    open_ = false;
    family_ = items_[item].family;
  }

  void add(size_t i) {
    if (const auto known = stored_.find(items_[i].digest); known != stored_.end()) {
      packing_.places[i] = known->second;
      return;
    }
    if (!open_ || end_with(packing_.frames.back().raw_size, items_[i]) > frame_size_) {
      packing_.frames.emplace_back();
      open_ = true;
    }
    PackedFrame& frame = packing_.frames.back();
    const PackPlace place = {static_cast<uint32_t>(packing_.frames.size() - 1),
                             static_cast<uint32_t>(align_to(frame.raw_size, kAlignment))};
    frame.raw_size = end_with(frame.raw_size, items_[i]);
    frame.items.push_back(static_cast<uint32_t>(i));
    packing_.places[i] = place;
    stored_.emplace(items_[i].digest, place);
  }

  std::span<const PackItem> items_;
  uint64_t frame_size_;
  Packing packing_;
  bool open_ = false;  // the last frame may take more
  std::string_view family_;
  std::unordered_map<base::Digest, PackPlace> stored_;
};

}  // namespace

Packing pack(std::span<const PackItem> items, uint64_t frame_size) {
  Packer packer(items, frame_size);
  for (size_t begin = 0; begin < items.size();) {
    size_t end = begin + 1;
    while (end < items.size() && same_group(items[begin], items[end])) ++end;
    packer.add_group(begin, end);
    begin = end;
  }
  return packer.take();
}

}  // namespace kc::bundle
