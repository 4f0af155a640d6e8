#include "kernels/expression/formula_text.hpp"

#include <cctype>
#include <iterator>

namespace tuff::expression {
namespace {

// Longer ones first.
constexpr std::string_view kSigns[] = {"//", "**", "==", "!=", "<=", ">=", "<<", ">>", "&&", "||",
                                       "+",  "-",  "*",  "/",  "%",  "^",  "<",  ">",  "&",  "|",
                                       "!",  "~",  "?",  ":",  "(",  ")",  ",",  ";",  "="};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

void FormulaText::next() {
  while (place_ < text_.size() &&
         (text_[place_] == ' ' || text_[place_] == '\t' || text_[place_] == '\n' || text_[place_] == '\r')) {
    ++place_;
  }
  token_ = {Token::end, {}, place_};
  if (place_ == text_.size()) return;
  const char c = text_[place_];
  if (is_letter(c)) {
    while (place_ < text_.size() && (is_letter(text_[place_]) || is_digit(text_[place_]))) ++place_;
    token_.kind = Token::name;
  } else if (is_digit(c) || (c == '.' && place_ + 1 < text_.size() && is_digit(text_[place_ + 1]))) {
    number();
  } else {
    const auto* found = std::find_if(std::begin(kSigns), std::end(kSigns),
                                     [&](std::string_view sign) { return text_.substr(place_).starts_with(sign); });
    if (found == std::end(kSigns)) {
      if (c > ' ' && c < 127) wrong(place_, "unexpected '{}'", c);
      wrong(place_, "unexpected byte {:#04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    }
    place_ += found->size();
    token_.kind = Token::sign;
  }
  token_.text = text_.substr(token_.at, place_ - token_.at);
}

void FormulaText::digits() {
  while (place_ < text_.size() && is_digit(text_[place_])) ++place_;
}

void FormulaText::number() {
  token_.kind = Token::integer;
  if (text_.substr(place_).starts_with("0x") || text_.substr(place_).starts_with("0X")) {
    place_ += 2;
    while (place_ < text_.size() && std::isxdigit(static_cast<unsigned char>(text_[place_])) != 0) ++place_;
  } else {
    digits();
    if (place_ < text_.size() && text_[place_] == '.') {
      token_.kind = Token::real;
      ++place_;
      digits();
    }
    if (place_ < text_.size() && (text_[place_] == 'e' || text_[place_] == 'E')) {
      token_.kind = Token::real;
      ++place_;
      if (place_ < text_.size() && (text_[place_] == '+' || text_[place_] == '-')) ++place_;
      if (place_ == text_.size() || !is_digit(text_[place_])) wrong(token_.at, "a number's exponent has no digits");
      digits();
    }
  }
  if (place_ < text_.size() && (is_letter(text_[place_]) || text_[place_] == '.')) {
    wrong(place_, "unexpected '{}' behind a number", text_[place_]);
  }
}

void FormulaText::expect(std::string_view sign) {
  if (!is_sign(sign)) {
    if (token_.kind == Token::end) wrong(token_.at, "expected \"{}\", got the end", sign);
    wrong(token_.at, "expected \"{}\", got \"{}\"", sign, token_.text);
  }
  next();
}

bool FormulaText::assigns() const {
  const size_t behind = text_.find_first_not_of(" \t\r\n", place_);
  return behind != std::string_view::npos && text_[behind] == '=' && text_.substr(behind, 2) != "==";
}

}  // namespace tuff::expression
