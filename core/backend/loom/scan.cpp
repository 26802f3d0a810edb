#include "backend/loom/scan.h"

#include <algorithm>
#include <set>

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

// Behind `kernel.def`: `retain target(@t) export("name") @symbol`, all but the last optional. Gives the
// symbol of an exported kernel, else an empty text. `token` is the first that does not belong to it any more.
std::string_view take_head(Lexer& lexer, Token& token) {
  bool is_exported = false;
  token = lexer.next();
  while (token.kind == Kind::kWord && token.text.find('.') == std::string_view::npos) {
    const std::string_view word = token.text;
    token = lexer.next();
    if (token.text != "(") continue;
    token = lexer.next();
    is_exported = is_exported || (word == "export" && token.kind == Kind::kString);
    if (token.text != ")") skip_parentheses(lexer);
    token = lexer.next();
  }
  if (token.kind != Kind::kSymbol) return {};
  const std::string_view symbol = token.text.substr(1);
  token = lexer.next();
  return is_exported ? symbol : std::string_view();
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
  std::vector<std::string> out;
  std::set<std::string_view> seen;  // not hashed: who writes the text could choose what collides
  Lexer lexer(text);
  for (Token token = lexer.next(); token.kind != Kind::kEnd;) {
    if (token.kind != Kind::kWord || token.text != "kernel.def") {
      token = lexer.next();
      continue;
    }
    const std::string_view symbol = take_head(lexer, token);
    if (!symbol.empty() && seen.insert(symbol).second) out.emplace_back(symbol);
  }
  return out;
}

std::vector<std::string> declared_keys(std::string_view text) {
  std::vector<std::string_view> found;
  Lexer lexer(text);
  for (Token token = lexer.next(); token.kind != Kind::kEnd;) {
    const bool declares =
        token.kind == Kind::kWord && (token.text == "config.decl" || token.text == "config.def");
    token = lexer.next();
    if (declares && token.kind == Kind::kSymbol) found.push_back(token.text.substr(1));
  }
  std::ranges::sort(found);
  const auto [first, last] = std::ranges::unique(found);
  return {found.begin(), first};
}

}  // namespace kc::backend::loom
