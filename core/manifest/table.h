// Tables of specializations: CSV by RFC 4180 in UTF-8 with a header row; a byte order mark is allowed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "manifest/draft.h"
#include "manifest/plan.h"

namespace kc::manifest {

inline constexpr uint64_t kMaxTableBytes = 64ULL << 20;
/// Of all tables of a manifest: a cell is kept as key and value of about 100 bytes.
inline constexpr uint64_t kMaxTableCells = 2'000'000;

/// Reads each table once and appends it to `inputs`. Not for concurrent use; the references must outlive it.
class Tables {
 public:
  /// `folder` is the top manifest's, as opened.
  Tables(std::string folder, std::vector<Input>& inputs, Faults& faults, uint64_t most_cells = kMaxTableCells)
      : folder_(std::move(folder)), inputs_(inputs), faults_(faults), cells_left_(most_cells) {}

  /// The rows of the table at `path`, relative to `base`, in order; valid as long as this object. An empty
  /// cell means that the row has not that key; a column `target` restricts its row; columns `when.*` are
  /// selection data. Null, and reported, when the file cannot be read (wherever it is named) or any row is at
  /// fault (once; what is wrong in it is named by its own file, line and column). The place of a key is its
  /// column's header, that of a value its cell, that of a selection the row's first cell.
  const std::vector<TableRow>* rows(const Text& path, const std::string& base, bool allow_absolute);

 private:
  // Nothing when the table is at fault, and reported.
  std::optional<std::vector<TableRow>> parse(std::string_view text, const std::string& opened);

  std::string folder_;
  std::vector<Input>& inputs_;
  Faults& faults_;
  std::unordered_map<std::string, std::optional<std::vector<TableRow>>> tables_;  // by identifier
  uint64_t cells_left_;
};

}  // namespace kc::manifest
