#include "backend/loom/scan.h"

#include <algorithm>
#include <set>

#include "util/text.h"

namespace kc::backend::loom {
namespace {

using Kind = Lexer::Kind;
using Token = Lexer::Token;

constexpr bool begins_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
}
constexpr bool continues_word(char c) {
  return begins_word(c) || (c >= '0' && c <= '9') || c == '.' || c == '-';
}
constexpr bool is_beyond_ascii(char c) {
  return (static_cast<unsigned char>(c) & 0x80) != 0;
}
// What stands before a name: of a symbol, a value, an encoding, a block.
constexpr bool is_sigil(char c) {
  return c == '@' || c == '%' || c == '#' || c == '^';
}

// Behind a word: what stands in parentheses, without looking into it. Ends behind the last of them.
void skip_parentheses(Lexer& lexer) {
  for (size_t depth = 1; depth > 0;) {
    const Token token = lexer.next();
    if (token.kind == Kind::kEnd) return;
    if (token.text == "(") ++depth;
    if (token.text == ")") --depth;
  }
}

// What follows `kernel.def`: `retain target(@t) export("name") @symbol`, all but the last optional.
struct Head {
  std::string_view symbol;         // empty: this is no kernel's head
  std::string_view exported_name;  // with its quotes, empty: not exported
};

// `token` is the first that does not belong to the head any more.
Head take_head(Lexer& lexer, Token& token) {
  Head out;
  token = lexer.next();
  while (token.kind == Kind::kWord && token.text.find('.') == std::string_view::npos) {
    const std::string_view word = token.text;
    token = lexer.next();
    if (token.text != "(") continue;
    token = lexer.next();
    if (word == "export" && token.kind == Kind::kString) out.exported_name = token.text;
    if (token.text != ")") skip_parentheses(lexer);
    token = lexer.next();
  }
  if (token.kind != Kind::kSymbol) return {};
  out.symbol = token.text.substr(1);
  token = lexer.next();
  return out;
}

// Calls `visit(head)` for each kernel in the order of the text.
template <typename Visit>
void visit_kernels(std::string_view text, const Visit& visit) {
  Lexer lexer(text);
  for (Token token = lexer.next(); token.kind != Kind::kEnd;) {
    if (token.kind != Kind::kWord || token.text != "kernel.def") {
      token = lexer.next();
      continue;
    }
    const Head head = take_head(lexer, token);
    if (!head.symbol.empty()) visit(head);
  }
}

std::vector<std::string> kernels(std::string_view text, bool exported) {
  std::vector<std::string> out;
  std::set<std::string_view> seen;  // not hashed: who writes the text could choose what collides
  visit_kernels(text, [&](const Head& head) {
    if (head.exported_name.empty() == exported) return;
    if (seen.insert(head.symbol).second) out.emplace_back(head.symbol);
  });
  return out;
}

constexpr bool begins_export(char c) {
  return begins_word(c) || c == '.';
}

// Without quotes.
bool is_export_name(std::string_view name) {
  return name.empty() || (begins_export(name.front()) && std::ranges::all_of(name, [](char c) {
                            return begins_export(c) || (c >= '0' && c <= '9');
                          }));
}

bool declares(const Token& token) {
  return token.kind == Kind::kWord && (token.text == "config.decl" || token.text == "config.def");
}

// Up to the line's end or a comment.
std::string first_line(std::string_view text) {
  text = text.substr(0, text.find('\n'));
  return std::string(util::trim(text.substr(0, text.find("//"))));
}

}  // namespace

void Lexer::skip_space_and_comments() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      ++at_;
    } else if (text_.substr(at_, 2) == "//") {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else {
      return;
    }
  }
}

Token Lexer::take(Kind kind, size_t size) {
  const Token out{kind, text_.substr(at_, size)};
  at_ += out.text.size();
  return out;
}

Token Lexer::next() {
  skip_space_and_comments();
  if (at_ == text_.size()) return {};
  const char first = text_[at_];
  const auto name_end = [&](size_t from) {
    while (from < text_.size() && continues_word(text_[from])) ++from;
    return from;
  };
  if (begins_word(first)) return take(Kind::kWord, name_end(at_) - at_);
  if (is_sigil(first)) {
    const size_t size = name_end(at_ + 1) - at_;
    return take(first == '@' && size > 1 ? Kind::kSymbol : Kind::kOther, size);
  }
  if (first != '"') {
    // Bytes beyond ASCII stay together: what they make up is not the scan's to know.
    size_t end = at_ + 1;
    while (is_beyond_ascii(first) && end < text_.size() && is_beyond_ascii(text_[end])) ++end;
    return take(Kind::kOther, end - at_);
  }
  size_t end = at_ + 1;
  while (end < text_.size() && text_[end] != '\n') {
    const char c = text_[end++];
    if (c == '"') break;
    if (c == '\\' && end < text_.size() && text_[end] != '\n') ++end;
  }
  return take(Kind::kString, end - at_);
}

std::vector<std::string> exported_kernels(std::string_view text) {
  return kernels(text, true);
}

std::vector<std::string> private_kernels(std::string_view text) {
  return kernels(text, false);
}

std::optional<BadExport> find_bad_export(std::string_view text) {
  std::optional<BadExport> out;
  visit_kernels(text, [&](const Head& head) {
    const std::string_view quoted = head.exported_name;
    // One that its line's end ends is the compiler's to complain of.
    if (out || quoted.size() < 2 || !quoted.ends_with('"')) return;
    const std::string_view name = quoted.substr(1, quoted.size() - 2);
    if (!is_export_name(name)) out = {static_cast<size_t>(quoted.data() - text.data()), std::string(name)};
  });
  return out;
}

std::vector<std::string> declared_keys(std::string_view text) {
  std::vector<std::string_view> found;
  Lexer lexer(text);
  for (Token token = lexer.next(); token.kind != Kind::kEnd;) {
    const bool is_declaration = declares(token);
    token = lexer.next();
    if (is_declaration && token.kind == Kind::kSymbol) found.push_back(token.text.substr(1));
  }
  std::ranges::sort(found);
  const auto [first, last] = std::ranges::unique(found);
  return {found.begin(), first};
}

std::optional<Declaration> find_declaration(std::string_view text, std::string_view key) {
  Lexer lexer(text);
  for (Token token = lexer.next(); token.kind != Kind::kEnd;) {
    const Token word = token;
    token = lexer.next();
    if (!declares(word) || token.kind != Kind::kSymbol || token.text.substr(1) != key) continue;
    const base::Place place = place_in({}, text, static_cast<size_t>(word.text.data() - text.data()));
    return Declaration{place.line, place.column,
                       first_line(text.substr(static_cast<size_t>(word.text.data() - text.data())))};
  }
  return std::nullopt;
}

std::string missing_export_hint(std::string_view entry, std::string_view text) {
  const std::vector<std::string> found = private_kernels(text);
  if (std::ranges::find(found, entry) == found.end()) return {};
  return util::format("{0} is a private kernel: write `kernel.def export(\"{0}\") @{0}`",
                      util::escape(entry));
}

base::Place place_in(std::string_view name, std::string_view text, size_t at) {
  const std::string_view before = text.substr(0, at);
  const size_t line_begin = before.rfind('\n') + 1;  // npos + 1 is 0
  return {std::string(name), static_cast<uint32_t>(std::ranges::count(before, '\n') + 1),
          static_cast<uint32_t>(at - line_begin + 1)};
}

}  // namespace kc::backend::loom
