// The grammars of names, and canonical text. One place for manifest, `--set` and whoever else takes a name.
#pragma once

#include <cstddef>
#include <string_view>

namespace kc::manifest {

inline constexpr size_t kMaxNameBytes = 128;    // of a kernel, a configuration key
inline constexpr size_t kMaxValueBytes = 1024;  // of a configuration value, an entry, a symbol

/// [A-Za-z0-9_][A-Za-z0-9_.-]{0,127}: kernels, bundles.
bool is_kernel_name(std::string_view text);
/// [A-Za-z_][A-Za-z0-9_.]{0,127}
bool is_configuration_key(std::string_view text);
/// A key of a specialization: a configuration key, which beyond `option.` is one too.
bool is_specialization_key(std::string_view text);
/// An entry or a symbol: 1 to 1,024 bytes, no blanks, no control bytes. What a symbol may be called beyond
/// that is the compiler's to say (mangled names).
bool is_symbol(std::string_view text);

/// Whether `pattern`, as a command line names units, names `unit` of `kernel`: the unit, the unit without
/// `@target`, its kernel, or a glob over unit or kernel.
bool is_named(std::string_view pattern, std::string_view unit, std::string_view kernel);

}  // namespace kc::manifest
