// Formulas for sizes, in the declarations of registered operations: exact arithmetic with integers from 0 to 2^64 - 1.
//
//   formula  = product (("+" | "-") product)*
//   product  = value (("*" | "/" | "%") value)*
//   value    = number | name | function "(" formula "," formula ")" | "(" formula ")"
//   function = min | max | ceil_div
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tuff {

// Of ASCII only: what a letter is does not depend on the program's locale.
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
constexpr bool is_name_character(char c) { return is_name_start(c) || is_digit(c); }

// An integer that a name in a formula stands for.
struct SizeValue {
  uint64_t bits = 0;      // of its amount
  bool negative = false;  // and then no formula may use it
};

class SizeFormula {
 public:
  // `what` names the formula in messages: "the elements of x". names[i] is the name that stands for values[i]; it is
  // empty where there is no integer. Throws INVALID_ARGUMENT.
  SizeFormula(std::string what, std::string_view text, std::span<const std::string> names);

  // Throws INVALID_ARGUMENT if a value on the way is not from 0 to 2^64 - 1.
  uint64_t evaluate(std::span<const SizeValue> values) const;

  const std::string& what() const { return what_; }
  const std::string& text() const { return text_; }

  static bool is_function(std::string_view name);

 private:
  friend class SizeParser;
  enum class Step : uint8_t { number, name, add, subtract, multiply, divide, remainder, least, most, ceil_div };
  struct Instruction {
    Step step;
    uint64_t number = 0;  // or the index of a name
  };
  static constexpr size_t kMaxText = 1024, kMaxDepth = 32;

  [[noreturn]] void fail_at(std::span<const SizeValue> values, const std::string& why) const;
  uint64_t combine(Step step, uint64_t a, uint64_t b, std::span<const SizeValue> values) const;

  std::string what_, text_;
  std::vector<std::string> names_;
  std::vector<Instruction> program_;  // in reverse Polish notation; needs kMaxStack places at most
  static constexpr size_t kMaxStack = 3 * kMaxDepth;
};

}  // namespace tuff
