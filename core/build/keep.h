// What a build leaves in the store: what compilers made, the records that lead to it, and what is needed to
// see a failure again. Inner to core/build.
#pragma once

#include <cstdint>
#include <string>

#include "base/digest.h"
#include "base/error.h"
#include "build/work.h"
#include "engine/wire.h"

namespace kc::build {

/// Without a store each call does nothing. `index` is of a unit in Work::prepared. One thread only; `work`
/// must outlive it.
class Keeper {
 public:
  explicit Keeper(Work& work);

  /// The content key of what a job made. A compiler that has no code for a target may say so before it has
  /// made a module: then nothing but the target and the options was looked at, and the key is over those.
  base::Digest content_of(uint32_t index, const engine::Done& done) const;

  /// Puts the entry of what `done` holds, and the record that leads to it. `code_digest` is that of its code;
  /// without code (`unsupported`) it is zero.
  void put(uint32_t index, const base::Digest& content, engine::Done& done, const base::Digest& code_digest,
           bool unsupported);
  /// Of a unit with two keys. Without its entry, which the store may have declined, it does no harm.
  void put_record(uint32_t index, const base::Digest& content);

  /// Keeps what the compiler printed, and of a compiler that did what no source may make it do all that is
  /// needed to see that again: `details` says where, the hint of `error` how.
  void keep_failure(uint32_t index, const engine::Done& done, base::Error& error, UnitResult& details);

 private:
  const InputFiles& files_of(uint32_t index);

  Work& work_;
  InputFiles files_;  // of `listed_`
  const manifest::Unit* listed_ =
      nullptr;  // the last that files_of() was asked for: others often have the same
  const std::string host_;
  const std::string user_;  // a number: names would need a look-up, which may hang
};

}  // namespace kc::build
