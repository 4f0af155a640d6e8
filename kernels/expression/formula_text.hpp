// Reads a formula's text: its tokens, one after another, and messages that say where something is wrong.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "planning/status.hpp"

namespace tuff::expression {

struct Token {
  enum Kind : uint8_t { end, name, integer, real, sign } kind = end;
  std::string_view text;
  size_t at = 0;  // position in the formula
};

class FormulaText {
 public:
  explicit FormulaText(std::string_view text) : text_(text) {}

  // The message names the character, counted from 1, and quotes what is around it.
  template <typename... Args>
  [[noreturn]] void stop(tuff_status code, size_t at, fmt::format_string<Args...> format, Args&&... args) const {
    constexpr size_t kAround = 40;
    const size_t begin = at > kAround ? at - kAround : 0, end = std::min(at + kAround, text_.size());
    std::string quoted(text_.substr(begin, end - begin));
    for (char& c : quoted) c = static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    fail(code, "formula, character {}: {} in \"{}{}{}\"", at + 1, fmt::format(format, std::forward<Args>(args)...),
         begin > 0 ? "..." : "", quoted, end < text_.size() ? "..." : "");
  }
  template <typename... Args>
  [[noreturn]] void wrong(size_t at, fmt::format_string<Args...> format, Args&&... args) const {
    stop(TUFF_ERROR_INVALID_ARGUMENT, at, format, std::forward<Args>(args)...);
  }

  // Reads the next token.
  void next();

  bool is_sign(std::string_view sign) const { return token_.kind == Token::sign && token_.text == sign; }
  // Reads the next token behind this sign.
  void expect(std::string_view sign);
  // Whether `=` follows the token: it is the name of an assignment.
  bool assigns() const;

 protected:
  const std::string_view text_;
  Token token_;

 private:
  void digits();
  void number();

  size_t place_ = 0;  // behind the token
};

}  // namespace tuff::expression
