// Writes PTX, NVIDIA's assembly language, with registers as C++ values: `row * 16 + column` emits two instructions and
// returns the register with the result. A kernel's text is written at run time, for the shapes and types at hand, and
// the driver assembles it (VK_NVX_binary_import). PTX ISA, NVIDIA's manual, describes the instructions.
//
// Constants fold at once: `row * 16` is a shift, and `x + 0` is x.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tuff::ptx {

class Writer;

enum class Type : uint8_t { pred, b16, u32, u64, f32, f64 };

// A register, or a constant: an immediate operand.
template <Type type>
struct Value {
  Writer* writer = nullptr;
  std::string text;
  bool constant = false;
  uint64_t number = 0;  // of a constant
};
using Pred = Value<Type::pred>;
using B16 = Value<Type::b16>;
using U32 = Value<Type::u32>;
using U64 = Value<Type::u64>;
using F32 = Value<Type::f32>;
using F64 = Value<Type::f64>;

struct Label {
  uint32_t number;
};

// Text that an instruction is executed under: "@%p1 ".
struct Guard {
  std::string text;
};

class Writer {
 public:
  // `architecture` is a target such as sm_90a; `entry` names the kernel.
  Writer(std::string architecture, std::string entry)
      : architecture_(std::move(architecture)), entry_(std::move(entry)) {}
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // Parameters, in the order in which the launch passes them.
  U64 pointer(const std::string& name);
  // A structure passed by value; its members are read by parameter().
  void block(const std::string& name, uint32_t bytes);
  U32 parameter(const std::string& block, size_t offset);
  U64 parameter64(const std::string& block, size_t offset);
  F32 parameter_float(const std::string& block, size_t offset);
  F64 parameter_double(const std::string& block, size_t offset);

  // New registers, whose contents are undefined.
  template <Type type>
  Value<type> make() {
    return {this, fmt::format("%{}{}", prefix(type), counts_[static_cast<size_t>(type)]++), false, 0};
  }
  U32 constant(uint32_t number) { return {this, std::to_string(number), true, number}; }
  U32 special(const std::string& name);  // "%tid.x"
  // A register that can be assigned to.
  template <Type type>
  Value<type> variable(const Value<type>& initial) {
    Value<type> made = make<type>();
    assign(made, initial);
    return made;
  }
  template <Type type>
  void assign(const Value<type>& variable, const Value<type>& value) {
    emit("mov.{} {}, {};", name(type), variable.text, value.text);
  }

  // One instruction, or a line of a comment.
  template <typename... Args>
  void emit(fmt::format_string<Args...> format, Args&&... args) {
    line(fmt::format(format, std::forward<Args>(args)...));
  }
  template <typename... Args>
  void emit(const Guard& guard, fmt::format_string<Args...> format, Args&&... args) {
    line(guard.text + fmt::format(format, std::forward<Args>(args)...));
  }
  void comment(const char* text) { line(std::string("// ") + text); }
  // One with one result.
  template <Type type, typename... Args>
  Value<type> result(const char* operation, const Args&... args) {
    Value<type> made = make<type>();
    std::string operands = made.text;
    ((operands += ", " + args.text), ...);
    emit("{} {};", operation, operands);
    return made;
  }

  Label label() { return {labels_++}; }
  void place(Label label) { line(fmt::format("L{}:", label.number)); }
  void jump(Label label) { emit("bra.uni L{};", label.number); }
  void jump_if(const Pred& condition, Label label) { emit("@{} bra L{};", condition.text, label.number); }
  void jump_unless(const Pred& condition, Label label) { emit("@!{} bra L{};", condition.text, label.number); }
  template <typename Body>
  void when(const Pred& condition, const Body& body) {
    const Label end = label();
    jump_unless(condition, end);
    body();
    place(end);
  }
  // Repeats body() while condition() holds; both emit code.
  template <typename Condition, typename Body>
  void repeat(const Condition& condition, const Body& body) {
    const Label begin = label(), end = label();
    place(begin);
    jump_unless(condition(), end);
    body();
    jump(begin);
    place(end);
  }

  // The module: the kernel is launched in blocks of `threads`, with dynamic shared memory `shared`, and has so few
  // registers that `blocks` of them fit a multiprocessor.
  std::string text(uint32_t threads, uint32_t blocks = 1) const;
  static const char* name(Type type);

 private:
  static const char* prefix(Type type);
  void line(const std::string& text) { body_ += text + '\n'; }

  std::string architecture_, entry_, parameters_, body_;
  std::array<uint32_t, 6> counts_{};
  uint32_t labels_ = 0;
};

inline Guard if_true(const Pred& condition) { return {"@" + condition.text + " "}; }
inline Guard unless(const Pred& condition) { return {"@!" + condition.text + " "}; }

// Unsigned arithmetic modulo 2^32.
U32 operator+(const U32& a, const U32& b);
U32 operator-(const U32& a, const U32& b);
U32 operator*(const U32& a, const U32& b);
U32 operator/(const U32& a, const U32& b);
U32 operator&(const U32& a, const U32& b);
U32 operator|(const U32& a, const U32& b);
U32 operator^(const U32& a, const U32& b);
U32 operator<<(const U32& a, uint32_t bits);
U32 operator>>(const U32& a, uint32_t bits);
U32 min(const U32& a, const U32& b);
U32 max(const U32& a, const U32& b);
U32 select(const Pred& condition, const U32& a, const U32& b);
Pred operator<(const U32& a, const U32& b);
Pred operator>=(const U32& a, const U32& b);
Pred operator==(const U32& a, const U32& b);
Pred operator!=(const U32& a, const U32& b);
Pred operator&&(const Pred& a, const Pred& b);
Pred operator||(const Pred& a, const Pred& b);
// For two's complement numbers.
U32 min_signed(const U32& a, const U32& b);
U32 max_signed(const U32& a, const U32& b);
#define TUFF_PTX_WITH_NUMBER(result, op) \
  inline result operator op(const U32& a, uint32_t b) { return a op a.writer->constant(b); }
TUFF_PTX_WITH_NUMBER(U32, +)
TUFF_PTX_WITH_NUMBER(U32, -)
TUFF_PTX_WITH_NUMBER(U32, *)
TUFF_PTX_WITH_NUMBER(U32, /)
TUFF_PTX_WITH_NUMBER(U32, &)
TUFF_PTX_WITH_NUMBER(U32, |)
TUFF_PTX_WITH_NUMBER(U32, ^)
TUFF_PTX_WITH_NUMBER(Pred, <)
TUFF_PTX_WITH_NUMBER(Pred, >=)
TUFF_PTX_WITH_NUMBER(Pred, ==)
TUFF_PTX_WITH_NUMBER(Pred, !=)
#undef TUFF_PTX_WITH_NUMBER

// Divides numbers below 2^31 by one that is only known at run time, with a multiplication.
struct Divider {
  U32 number, factor, shift;
};
Divider make_divider(const U32& number);
U32 quotient(const U32& a, const Divider& by);

U64 widen(const U32& a);
U64 operator+(const U64& a, const U64& b);
U64 operator+(const U64& a, uint64_t b);
U64 operator*(const U64& a, const U64& b);
U64 operator*(const U64& a, uint64_t b);
U64 multiply_wide(const U32& a, const U32& b);             // all 64 bits
U64 multiply_add(const U32& a, uint32_t b, const U64& c);  // a * b + c with all 64 bits
U64 multiply_add(const U32& a, const U32& b, const U64& c);

Pred truth(Writer& w, bool value);
template <Type type>
std::string list(const std::vector<Value<type>>& registers) {  // "%f1, %f2"
  std::string text;
  for (const Value<type>& one : registers) text += (text.empty() ? "" : ", ") + one.text;
  return text;
}
F32 number(Writer& w, float value);
F32 operator+(const F32& a, const F32& b);
F32 operator-(const F32& a, const F32& b);
F32 operator*(const F32& a, const F32& b);
F32 multiply_add(const F32& a, const F32& b, const F32& c);
F32 select(const Pred& condition, const F32& a, const F32& b);
F32 magnitude(const F32& a);
F32 largest_of(const F32& a, const F32& b);  // if one is NaN, the other
F32 smallest_of(const F32& a, const F32& b);
F32 max_with_nan(const F32& a, const F32& b);  // NaN if either is
F32 power_of_2(const F32& a);                  // 2^a, results below the normal numbers are 0
Pred operator<(const F32& a, const F32& b);    // false if either is NaN, as the others are
Pred operator<=(const F32& a, const F32& b);
Pred operator==(const F32& a, const F32& b);
F64 operator*(const F64& a, const F64& b);
F64 multiply_add(const F64& a, const F64& b, const F64& c);

}  // namespace tuff::ptx
