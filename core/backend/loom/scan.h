// What kc reads out of Loom text without the compiler: names, found by a lexical scan. Source of the lexical
// rules and of the form of a kernel's head: what the compiler answers.
//
// Text that is no Loom gives names too, or none; the compiler says what is wrong with it. One pass, memory in
// proportion to what is found; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace kc::backend::loom {

/// Kernels that `kernel.def ... export("name") @symbol` exports: their symbols without `@`, in the order of
/// the text, each once. The symbol is what a compile is asked for; the name in the code object may be
/// another one, even one that several kernels share, each for its own target.
std::vector<std::string> exported_kernels(std::string_view text);

/// Keys of `config.decl @key` and `config.def @key`, without `@`: sorted, each once.
std::vector<std::string> declared_keys(std::string_view text);

/// Kernels that `kernel.def @symbol` defines without `export("name")`: private ones, which no compile can be
/// asked for.
std::vector<std::string> private_kernels(std::string_view text);

/// An `export("name")` whose name no code object can have; nothing when all are fine. Source of the grammar:
/// what the compiler says when it emits. An empty name stands for the kernel's symbol.
struct BadExport {
  size_t at = 0;  // of the quotation mark before the name
  std::string name;
};
std::optional<BadExport> find_bad_export(std::string_view text);

/// Where a key is declared, from 1, and the declaration's first line from `config.` on, without a comment.
struct Declaration {
  uint32_t line = 0;
  uint32_t column = 0;
  std::string text;
};
std::optional<Declaration> find_declaration(std::string_view text, std::string_view key);

/// When `entry` is a private kernel of `text`: that it needs export("name"); else empty.
std::string missing_export_hint(std::string_view entry, std::string_view text);

/// The place of the byte `at` of `text`.
base::Place place_in(std::string_view name, std::string_view text, size_t at);

/// Cuts Loom text into tokens.
class Lexer {
 public:
  enum class Kind : uint8_t {
    kEnd,
    kWord,    // `config.decl`, `index`
    kSymbol,  // `@tuner.scale`
    kString,  // with its quotes; one that is not closed ends with its line
    kOther,   // `(`, `%value`, a digit, any other character; a run of bytes beyond ASCII
  };
  struct Token {
    Kind kind = Kind::kEnd;
    std::string_view text;  // of the source
  };

  explicit Lexer(std::string_view text) : text_(text) {}

  /// The next token behind white space and comments; kEnd again and again at the end.
  Token next();

 private:
  void skip_space_and_comments();
  Token take(Kind kind, size_t size);

  const std::string_view text_;
  size_t at_ = 0;
};

}  // namespace kc::backend::loom
