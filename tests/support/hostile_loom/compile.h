// The stand-in's linker and code generator: what a root reaches, and a code object that depends on exactly
// that.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "support/hostile_loom/faults.h"
#include "support/hostile_loom/objects.h"

namespace kc::test::hostile {

/// What marks bytecode; behind it stands the text of a module.
inline constexpr std::string_view kBytecodeMagic{"LOOM\0hostile\n", 13};

/// The text of a source, of either format.
std::string text_of(const Source& source);

/// Links `root` out of the index: its file, then those that define what is referred to, again and again, in
/// the order of the index. Sets `out.files`, `export_name`, `values`; what is wrong goes into `result`.
void link_root(const Index& index, const std::string& root, const ConfigOptions& config, Module& out,
               Result& result);

/// The linked module as bytecode: equal for equal reached files and equal values that they read.
base::Bytes serialized(const Module& module);

/// A function that is called and not defined, with its place.
std::optional<Problem> unresolved_call(const Module& module);

/// A well-formed code object unless the directives want another, or nothing (@output=none).
std::optional<base::Bytes> code_object(const Module& module, const Profile& profile,
                                       const Occasion& occasion);

/// A compile report as October's libraries write it, as far as a reader may look.
std::string report(const Module& module, const Profile& profile, bool is_failed);

/// True when the library "knows" the processor.
bool knows_target(const std::string& target);
/// gfx942 and its like: those whose sramecc and xnack may be chosen.
bool has_features(const std::string& target);

}  // namespace kc::test::hostile
