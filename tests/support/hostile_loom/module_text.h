// What the stand-in understands of Loom text: enough to know a syntax error, what is exported, which
// definitions a kernel reaches, and which configuration it declares and reads. Lexical, line by line: it is
// for sources that tests write, one operation a line.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "support/directives.h"

namespace kc::test::hostile {

/// One `config.decl` or `config.def`.
struct Declaration {
  std::string type;                          // `index`, `i32`, `f32`, `i1`, ...
  std::optional<std::string> default_value;  // of a config.def
  std::optional<std::pair<int64_t, int64_t>> range;
  std::optional<int64_t> multiple;
};

struct Problem {
  std::string code;
  std::string message;
  uint32_t line = 0;  // 0: no place
  uint32_t column = 0;
};

struct ModuleText {
  std::string identifier;
  std::string text;
  std::map<std::string, std::string> exports;  // symbol of a kernel -> name in the code object
  std::set<std::string> definitions;           // kernels and functions
  std::set<std::string> references;
  std::map<std::string, Declaration> configuration;
  std::set<std::string> reads;  // config.get
  Directives directives;        // of lines `//! @name ...`
  std::optional<Problem> problem;
};

ModuleText read_module(std::string identifier, std::string_view text);

/// The line of the first `//!` that says `@name`; 0: none does.
uint32_t line_of(std::string_view text, std::string_view name);

/// What is wrong with a value from outside, or nothing.
std::optional<Problem> check_value(const std::string& key, const Declaration& declaration,
                                   const std::string& value);

}  // namespace kc::test::hostile
