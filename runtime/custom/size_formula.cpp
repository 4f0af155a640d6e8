#include "runtime/custom/size_formula.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "planning/status.hpp"

namespace tuff {

// Writes the program while it reads. Each level of parentheses needs at most three places on the stack: a sum, a
// product, and the value that is being read.
class SizeParser {
 public:
  SizeParser(SizeFormula& formula, std::span<const std::string> names)
      : formula_(formula), names_(names), text_(formula.text_) {}

  void parse() {
    sum();
    skip();
    if (at_ != text_.size()) fail_here("an operator or the end");
  }

 private:
  using Step = SizeFormula::Step;

  [[noreturn]] void fail_here(const char* wanted) {
    skip();
    if (at_ == text_.size()) {
      fail(TUFF_ERROR_INVALID_ARGUMENT, "{}, \"{}\": it ends where {} is needed", formula_.what_, text_, wanted);
    }
    fail(TUFF_ERROR_INVALID_ARGUMENT, "{}, \"{}\": there is '{}' at position {}, needs {}", formula_.what_, text_,
         text_[at_], at_, wanted);
  }
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void need(char c, const char* wanted) {
    if (!take(c)) fail_here(wanted);
  }
  void add(Step step, uint64_t number = 0) { formula_.program_.push_back({step, number}); }

  void sum() {
    if (++depth_ > SizeFormula::kMaxDepth) {
      fail(TUFF_ERROR_INVALID_ARGUMENT, "{}, \"{}\": its parentheses are nested more than {} deep", formula_.what_,
           text_, SizeFormula::kMaxDepth);
    }
    product();
    while (true) {
      if (take('+')) {
        product(), add(Step::add);
      } else if (take('-')) {
        product(), add(Step::subtract);
      } else {
        break;
      }
    }
    --depth_;
  }
  void product() {
    value();
    while (true) {
      if (take('*')) {
        value(), add(Step::multiply);
      } else if (take('/')) {
        value(), add(Step::divide);
      } else if (take('%')) {
        value(), add(Step::remainder);
      } else {
        return;
      }
    }
  }
  void value() {
    if (take('(')) {
      sum();
      need(')', "')'");
      return;
    }
    skip();
    const std::string_view rest = std::string_view(text_).substr(at_);
    if (!rest.empty() && is_digit(rest[0])) return number(rest);
    if (!rest.empty() && is_name_start(rest[0])) return name(rest);
    fail_here("a number, a name or '('");
  }
  void number(std::string_view rest) {
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    const auto length = static_cast<size_t>(end - rest.data());
    if (error != std::errc{} || (length < rest.size() && is_name_start(rest[length]))) {
      fail_here("an integer below 2^64");
    }
    at_ += length;
    add(Step::number, value);
  }
  void name(std::string_view rest) {
    const auto end = std::find_if_not(rest.begin(), rest.end(), is_name_character);
    const std::string_view word = rest.substr(0, static_cast<size_t>(end - rest.begin()));
    if (SizeFormula::is_function(word)) {
      at_ += word.size();
      need('(', "'('");
      sum();
      need(',', "','");
      sum();
      need(')', "')'");
      return add(word == "min" ? Step::least : word == "max" ? Step::most : Step::ceil_div);
    }
    const auto found = std::find(names_.begin(), names_.end(), word);
    require(found != names_.end(), "{}, \"{}\": {} is neither a scalar of an integer type nor a buffer", formula_.what_,
            text_, word);
    at_ += word.size();
    add(Step::name, static_cast<uint64_t>(found - names_.begin()));
  }

  SizeFormula& formula_;
  std::span<const std::string> names_;
  const std::string& text_;
  size_t at_ = 0, depth_ = 0;
};

bool SizeFormula::is_function(std::string_view name) { return name == "min" || name == "max" || name == "ceil_div"; }

SizeFormula::SizeFormula(std::string what, std::string_view text, std::span<const std::string> names)
    : what_(std::move(what)), text_(text), names_(names.begin(), names.end()) {
  require(text.size() <= kMaxText, "{} is a text of {} bytes, at most {}", what_, text.size(), kMaxText);
  SizeParser(*this, names).parse();
}

// Says the values of the names, which are what is wrong.
void SizeFormula::fail_at(std::span<const SizeValue> values, const std::string& why) const {
  std::string known;
  std::vector<bool> shown(names_.size());
  for (const Instruction& instruction : program_) {
    if (instruction.step != Step::name || shown[instruction.number]) continue;
    shown[instruction.number] = true;
    const SizeValue& value = values[instruction.number];
    known += fmt::format("{}{} = {}{}", known.empty() ? "" : ", ", names_[instruction.number],
                         value.negative ? "-" : "", value.bits);
  }
  fail(TUFF_ERROR_INVALID_ARGUMENT, "{}, \"{}\": {}{}{}", what_, text_, why, known.empty() ? "" : ", with ", known);
}

uint64_t SizeFormula::combine(Step step, uint64_t a, uint64_t b, std::span<const SizeValue> values) const {
  uint64_t result = 0;
  switch (step) {
    case Step::add:
      if (__builtin_add_overflow(a, b, &result)) fail_at(values, fmt::format("{} + {} is beyond 2^64", a, b));
      return result;
    case Step::subtract:
      if (a < b) fail_at(values, fmt::format("{} - {} is below 0", a, b));
      return a - b;
    case Step::multiply:
      if (__builtin_mul_overflow(a, b, &result)) fail_at(values, fmt::format("{} * {} is beyond 2^64", a, b));
      return result;
    case Step::least: return std::min(a, b);
    case Step::most: return std::max(a, b);
    default: break;
  }
  if (b == 0) fail_at(values, fmt::format("{} is divided by 0", a));
  return step == Step::remainder ? a % b : step == Step::divide ? a / b : a / b + (a % b != 0 ? 1 : 0);
}

uint64_t SizeFormula::evaluate(std::span<const SizeValue> values) const {
  std::array<uint64_t, kMaxStack> stack;
  size_t count = 0;
  for (const Instruction& instruction : program_) {
    if (instruction.step == Step::number) {
      stack[count++] = instruction.number;
    } else if (instruction.step == Step::name) {
      const SizeValue& value = values[instruction.number];
      if (value.negative) fail_at(values, fmt::format("{} is negative", names_[instruction.number]));
      stack[count++] = value.bits;
    } else {
      --count;
      stack[count - 1] = combine(instruction.step, stack[count - 1], stack[count], values);
    }
  }
  return stack[0];
}

}  // namespace tuff
