#include "support/hostile_loom/module_text.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace kc::test::hostile {
namespace {

constexpr std::string_view kDirectiveMark = "//!";

bool is_symbol_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// Line without its comment; a `//` inside a string is none.
std::string_view code_of(std::string_view line) {
  bool in_string = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') in_string = !in_string;
    if (!in_string && line.substr(i).starts_with("//")) return line.substr(0, i);
  }
  return line;
}

std::vector<std::string> symbols_in(std::string_view code) {
  std::vector<std::string> out;
  for (size_t at = code.find('@'); at < code.size(); at = code.find('@', at)) {
    const size_t end = static_cast<size_t>(
        std::find_if_not(code.begin() + static_cast<ptrdiff_t>(at) + 1, code.end(), is_symbol_character) -
        code.begin());
    if (end > at + 1) out.emplace_back(code.substr(at + 1, end - at - 1));
    at = end;
  }
  return out;
}

std::string_view word_at(std::string_view text) {
  return text.substr(0, text.find_first_of(" \t(){}[],:=@\""));
}

std::optional<int64_t> integer(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

// The arguments of `name(%value, ...)` behind the first.
std::vector<int64_t> constraint(std::string_view code, std::string_view name) {
  std::vector<int64_t> out;
  size_t at = code.find(std::string(name) + "(");
  if (at == std::string_view::npos) return out;
  std::string_view inside = code.substr(at + name.size() + 1);
  inside = inside.substr(0, inside.find(')'));
  while ((at = inside.find(',')) != std::string_view::npos) {
    inside = inside.substr(at + 1);
    if (const auto value = integer(trimmed(inside.substr(0, inside.find(','))))) out.push_back(*value);
  }
  return out;
}

Declaration declaration_of(std::string_view code) {
  Declaration out;
  if (code.starts_with("config.def")) {
    const size_t equals = std::min(code.find('='), code.size() - 1);
    const size_t colon = std::min(code.rfind(':'), code.size());
    out.default_value = std::string(trimmed(code.substr(equals + 1, colon - equals - 1)));
    out.type = std::string(word_at(trimmed(code.substr(std::min(colon + 1, code.size())))));
  } else {
    // config.decl @key : %value: index where [range(%value, 1, 256)]
    const size_t colon = code.find(':', std::min(code.find('%'), code.size()));
    out.type = colon == std::string_view::npos ? "" : std::string(word_at(trimmed(code.substr(colon + 1))));
  }
  if (const auto bounds = constraint(code, "range"); bounds.size() == 2) out.range = {bounds[0], bounds[1]};
  if (const auto factor = constraint(code, "mul"); factor.size() == 1) out.multiple = factor[0];
  return out;
}

// As the real parser puts it where an operation should begin or a bracket should close.
std::optional<Problem> syntax_problem(std::string_view line, std::string_view code, int depth) {
  const size_t first = std::min(code.find_first_not_of(" \t"), code.size());
  const std::string_view word = word_at(code.substr(first));
  if (depth == 0 && !word.empty() && word.find('.') == std::string_view::npos) {
    return Problem{"PARSE/003", "unexpected token '" + std::string(word) + "', expected op name", 0,
                   static_cast<uint32_t>(first + 1)};
  }
  const auto opened = std::ranges::count(code, '[');
  if (opened > std::ranges::count(code, ']')) {
    const size_t colon = std::min(line.find(" :"), line.size() - 1) + 1;
    return Problem{"PARSE/003", "unexpected token ':', expected ']'", 0, static_cast<uint32_t>(colon + 1)};
  }
  return std::nullopt;
}

void read_line(std::string_view code, ModuleText& out) {
  const std::vector<std::string> symbols = symbols_in(code);
  if (symbols.empty()) return;
  const std::string& first = symbols[0];
  if (code.starts_with("kernel.def")) {
    std::string name = first;
    if (const size_t at = code.find("export(\""); at != std::string_view::npos) {
      const std::string_view rest = code.substr(at + 8);
      name = rest.substr(0, rest.find('"'));
    }
    out.exports[first] = name;
    out.definitions.insert(first);
  } else if (code.starts_with("func.def")) {
    out.definitions.insert(first);
  } else if (code.starts_with("config.de")) {
    out.configuration[first] = declaration_of(code);
  } else if (code.find("config.get") != std::string_view::npos) {
    out.reads.insert(symbols.begin(), symbols.end());
  } else {
    out.references.insert(symbols.begin(), symbols.end());
  }
}

template <typename Visit>
void each_line(std::string_view text, Visit visit) {
  uint32_t number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    visit(++number, text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

bool is_integer_type(std::string_view type) {
  return type == "index" || type == "offset" || (type.starts_with('i') && type != "i1");
}

}  // namespace

ModuleText read_module(std::string identifier, std::string_view text) {
  ModuleText out;
  out.identifier = std::move(identifier);
  out.text = text;
  std::string directives;
  ptrdiff_t depth = 0;
  each_line(text, [&](uint32_t number, std::string_view line) {
    if (const std::string_view whole = trimmed(line); whole.starts_with(kDirectiveMark)) {
      directives += std::string(whole.substr(kDirectiveMark.size())) + "\n";
      return;
    }
    const std::string_view code = code_of(line);
    if (!out.problem && !trimmed(code).starts_with('}')) {
      out.problem = syntax_problem(line, code, static_cast<int>(depth));
      if (out.problem) out.problem->line = number;
    }
    read_line(trimmed(code), out);
    depth += std::ranges::count(code, '{') - std::ranges::count(code, '}');
  });
  out.directives = Directives(directives);
  return out;
}

uint32_t line_of(std::string_view text, std::string_view name) {
  uint32_t out = 0;
  each_line(text, [&](uint32_t number, std::string_view line) {
    const bool says = trimmed(line).starts_with(kDirectiveMark) &&
                      line.find("@" + std::string(name)) != std::string_view::npos;
    if (out == 0 && says) out = number;
  });
  return out;
}

std::optional<Problem> check_value(const std::string& key, const Declaration& declaration,
                                   const std::string& value) {
  if (declaration.type == "i1") {
    constexpr std::string_view kTruth[] = {"true", "false", "0", "1"};
    if (std::ranges::find(kTruth, value) != std::end(kTruth)) return std::nullopt;
    return Problem{"CONFIG/INVALID",
                   "config '" + key + "' expects i1 value true/false/0/1, got '" + value + "'"};
  }
  if (!is_integer_type(declaration.type)) return std::nullopt;
  const auto number = integer(value);
  if (!number) {
    return Problem{"CONFIG/INVALID", "config '" + key + "' expects integer value, got '" + value + "'"};
  }
  const auto violates = [&](std::string_view what) {
    return Problem{"CONFIG/INVALID", "symbol '@" + key + "' value " + value + " violates constraint '" +
                                         std::string(what) + "'"};
  };
  if (declaration.range && (*number < declaration.range->first || *number > declaration.range->second)) {
    return violates("range");
  }
  if (declaration.multiple && *number % *declaration.multiple != 0) return violates("mul");
  return std::nullopt;
}

}  // namespace kc::test::hostile
