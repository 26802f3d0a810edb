// Answers that are not believed yet (docs/architecture.md: processes, beside).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/files.h"
#include "engine/wire.h"

namespace kc::engine {

/// Keeps answers, the first of them in memory, those beyond a bound in an unlinked file that goes with this
/// object. One thread only.
class HeldAnswers {
 public:
  /// Beside a compile of a minute thousands of small ones end: their code objects, of 10 KB each, fit in.
  static constexpr size_t kMostInMemory = 64U << 20;

  explicit HeldAnswers(std::string folder, size_t most_in_memory = kMostInMemory)
      : folder_(std::move(folder)), most_in_memory_(most_in_memory) {}

  /// Gives the number to take() it by. Where no file can be made or written, it stays in memory.
  uint64_t put(Done done);
  /// Nothing when its file cannot be read any more. Each number once.
  std::optional<Done> take(uint64_t number);
  size_t bytes_in_memory() const { return in_memory_; }

 private:
  struct Place {
    uint64_t offset = 0;
    size_t size = 0;
  };
  struct Kept {
    std::optional<Done> done;  // unset: in the file
    size_t bytes = 0;          // in memory
    Place place;
  };
  std::optional<Place> spill(const Done& done);

  std::string folder_;
  size_t most_in_memory_;
  size_t in_memory_ = 0;
  base::FileDescriptor file_;
  uint64_t file_end_ = 0;
  size_t in_file_ = 0;  // answers
  uint64_t last_ = 0;
  std::unordered_map<uint64_t, Kept> kept_;
};

}  // namespace kc::engine
