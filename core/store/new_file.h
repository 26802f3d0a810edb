// A file of the store while it is written: it lies in tmp/ until it is whole.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/atomic_file.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/files.h"
#include "store/layout.h"

namespace kc::store {

/// Order of calls: write() once, then place() or replace(), each at most once, or nothing. Whatever happens,
/// the name in tmp/ is gone when the object is. No fsync unless asked for: readers check digests. `layout`
/// must outlive it.
class NewFile {
 public:
  /// All of `bytes` in a new file of tmp/. With Sync::kFull they are on disk before it gets its name; the
  /// name is for the caller to sync.
  static base::Result<NewFile> write(const Layout& layout, base::ByteView bytes, mode_t mode,
                                     base::Sync sync = base::Sync::kNone);
  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();

  /// Gives the file its name in `folder`. False when something has that name already: nothing was changed.
  base::Result<bool> place(int folder, const std::string& name);
  /// Gives the file its name in `folder`, whatever had it before.
  base::Result<void> replace(int folder, const std::string& name);

 private:
  NewFile(int directory, std::string name) : directory_(directory), name_(std::move(name)) {}

  int directory_;
  std::string name_;  // empty once renamed or moved from
};

}  // namespace kc::store
