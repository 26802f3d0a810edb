// Where a build keeps the code objects of its units until they are packed: one unlinked file in the output's
// folder, so that no collection, full disk elsewhere or store mode can cost a build its results, and a crash
// leaves nothing.
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/files.h"

namespace kc::build {

/// add() from one thread; read() from any, also while another reads, but not while one adds.
class Spool {
 public:
  struct Place {
    uint64_t offset = 0;
    uint64_t size = 0;
    base::Digest digest;
  };
  /// ErrorKind::kEnvironment when no file can be made in `folder`.
  static base::Result<Spool> create(const std::string& folder);

  /// `digest` is that of `bytes`.
  base::Result<Place> add(base::ByteView bytes, const base::Digest& digest);
  /// What was added, for somebody who checks it against its digest.
  base::Result<base::Bytes> read(const Place& place) const;

 private:
  explicit Spool(base::FileDescriptor fd) : fd_(std::move(fd)) {}
  base::Result<void> write_waiting();

  base::FileDescriptor fd_;
  uint64_t written_ = 0;  // bytes in the file
  base::Bytes waiting_;   // what comes behind them
};

}  // namespace kc::build
