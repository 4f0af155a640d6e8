#include "kernels/native/ptx.hpp"

#include <bit>

namespace tuff::ptx {
namespace {

U32 number(const U32& like, uint64_t value) { return like.writer->constant(static_cast<uint32_t>(value)); }
U64 number(const U64& like, uint64_t value) { return {like.writer, std::to_string(value), true, value}; }

U32 operation(const char* name, const U32& a, const U32& b) {
  Writer& writer = *(a.writer != nullptr ? a.writer : b.writer);
  return writer.result<Type::u32>(name, a, b);
}

Pred compare(const char* name, const U32& a, const U32& b) { return a.writer->result<Type::pred>(name, a, b); }

bool is_power_of_2(const U32& a) { return a.constant && std::has_single_bit(a.number); }
uint32_t log2(const U32& a) { return static_cast<uint32_t>(std::countr_zero(a.number)); }

}  // namespace

const char* Writer::name(Type type) {
  constexpr const char* kNames[] = {"pred", "b16", "u32", "u64", "f32", "f64"};
  return kNames[static_cast<size_t>(type)];
}

const char* Writer::prefix(Type type) {
  constexpr const char* kPrefixes[] = {"p", "h", "r", "d", "f", "g"};
  return kPrefixes[static_cast<size_t>(type)];
}

U64 Writer::pointer(const std::string& name) {
  parameters_ += fmt::format("{}  .param .u64 {}", parameters_.empty() ? "" : ",\n", name);
  U64 made = make<Type::u64>();
  emit("ld.param.u64 {}, [{}];", made.text, name);
  return made;
}

void Writer::block(const std::string& name, uint32_t bytes) {
  parameters_ += fmt::format("{}  .param .align 8 .b8 {}[{}]", parameters_.empty() ? "" : ",\n", name, bytes);
}

U32 Writer::parameter(const std::string& block, size_t offset) {
  U32 made = make<Type::u32>();
  emit("ld.param.u32 {}, [{}+{}];", made.text, block, offset);
  return made;
}

U64 Writer::parameter64(const std::string& block, size_t offset) {
  U64 made = make<Type::u64>();
  emit("ld.param.u64 {}, [{}+{}];", made.text, block, offset);
  return made;
}

F32 Writer::parameter_float(const std::string& block, size_t offset) {
  F32 made = make<Type::f32>();
  emit("ld.param.f32 {}, [{}+{}];", made.text, block, offset);
  return made;
}

F64 Writer::parameter_double(const std::string& block, size_t offset) {
  F64 made = make<Type::f64>();
  emit("ld.param.f64 {}, [{}+{}];", made.text, block, offset);
  return made;
}

U32 Writer::special(const std::string& name) {
  U32 made = make<Type::u32>();
  emit("mov.u32 {}, {};", made.text, name);
  return made;
}

std::string Writer::text(uint32_t threads, uint32_t blocks) const {
  // Packed pairs of 16-bit floats have no type.
  constexpr const char* kRegisters[] = {"pred", "b16", "b32", "b64", "f32", "f64"};
  std::string registers;
  for (size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] == 0) continue;
    registers += fmt::format(".reg .{} %{}<{}>;\n", kRegisters[i], prefix(static_cast<Type>(i)), counts_[i]);
  }
  return fmt::format(
      ".version 8.0\n.target {}\n.address_size 64\n.extern .shared .align 1024 .b8 shared[];\n"
      ".visible .entry {}(\n{})\n.maxntid {}, 1, 1\n.minnctapersm {}\n{{\n{}{}ret;\n}}\n",
      architecture_, entry_, parameters_, threads, blocks, registers, body_);
}

U32 operator+(const U32& a, const U32& b) {
  if (a.constant && b.constant) return number(a, a.number + b.number);
  if (b.constant && b.number == 0) return a;
  if (a.constant && a.number == 0) return b;
  return operation("add.u32", a, b);
}
U32 operator-(const U32& a, const U32& b) {
  if (a.constant && b.constant) return number(a, a.number - b.number);
  if (b.constant && b.number == 0) return a;
  return operation("sub.u32", a, b);
}
U32 operator*(const U32& a, const U32& b) {
  if (a.constant && b.constant) return number(a, a.number * b.number);
  if (is_power_of_2(b)) return a << log2(b);
  return operation("mul.lo.u32", a, b);
}
U32 operator/(const U32& a, const U32& b) {
  if (is_power_of_2(b)) return a >> log2(b);
  return operation("div.u32", a, b);
}
U32 operator&(const U32& a, const U32& b) { return operation("and.b32", a, b); }
U32 operator|(const U32& a, const U32& b) { return operation("or.b32", a, b); }
U32 operator^(const U32& a, const U32& b) { return operation("xor.b32", a, b); }
U32 operator<<(const U32& a, uint32_t bits) {
  if (bits == 0) return a;
  if (a.constant) return number(a, a.number << bits);
  return operation("shl.b32", a, number(a, bits));
}
U32 operator>>(const U32& a, uint32_t bits) {
  if (bits == 0) return a;
  if (a.constant) return number(a, a.number >> bits);
  return operation("shr.u32", a, number(a, bits));
}
U32 min(const U32& a, const U32& b) { return operation("min.u32", a, b); }
U32 max(const U32& a, const U32& b) { return operation("max.u32", a, b); }
U32 select(const Pred& condition, const U32& a, const U32& b) {
  return condition.writer->result<Type::u32>("selp.b32", a, b, condition);
}
Pred operator<(const U32& a, const U32& b) { return compare("setp.lt.u32", a, b); }
Pred operator>=(const U32& a, const U32& b) { return compare("setp.ge.u32", a, b); }
Pred operator==(const U32& a, const U32& b) { return compare("setp.eq.u32", a, b); }
Pred operator!=(const U32& a, const U32& b) { return compare("setp.ne.u32", a, b); }
Pred operator&&(const Pred& a, const Pred& b) { return a.writer->result<Type::pred>("and.pred", a, b); }
Pred operator||(const Pred& a, const Pred& b) { return a.writer->result<Type::pred>("or.pred", a, b); }
U32 min_signed(const U32& a, const U32& b) { return operation("min.s32", a, b); }
U32 max_signed(const U32& a, const U32& b) { return operation("max.s32", a, b); }

// With l = ceil(log2(d)) and f = floor(2^(31 + l) / d) + 1, which has 32 bits, a / d is a * f >> (31 + l) for all a
// below 2^31.
Divider make_divider(const U32& number) {
  Writer& w = *number.writer;
  const U32 zeros = w.make<Type::u32>(), factor = w.make<Type::u32>();
  w.emit("clz.b32 {}, {};", zeros.text, (number - 1).text);
  const U32 shift = w.constant(63) - zeros;
  const U64 power = w.make<Type::u64>(), divided = w.make<Type::u64>();
  w.emit("shl.b64 {}, 1, {};", power.text, shift.text);
  w.emit("div.u64 {}, {}, {};", divided.text, power.text, widen(number).text);
  w.emit("cvt.u32.u64 {}, {};", factor.text, (divided + 1).text);
  return {number, factor, shift};
}
U32 quotient(const U32& a, const Divider& by) {
  Writer& w = *by.factor.writer;
  const U64 product = multiply_wide(a, by.factor), shifted = w.make<Type::u64>();
  const U32 result = w.make<Type::u32>();
  w.emit("shr.u64 {}, {}, {};", shifted.text, product.text, by.shift.text);
  w.emit("cvt.u32.u64 {}, {};", result.text, shifted.text);
  return result;
}

U64 widen(const U32& a) { return a.writer->result<Type::u64>("cvt.u64.u32", a); }
U64 operator+(const U64& a, const U64& b) { return a.writer->result<Type::u64>("add.u64", a, b); }
U64 operator+(const U64& a, uint64_t b) {
  if (b == 0) return a;
  return a + number(a, b);
}
U64 operator*(const U64& a, const U64& b) { return a.writer->result<Type::u64>("mul.lo.u64", a, b); }
U64 operator*(const U64& a, uint64_t b) { return a * number(a, b); }
U64 multiply_wide(const U32& a, const U32& b) { return a.writer->result<Type::u64>("mul.wide.u32", a, b); }
U64 multiply_add(const U32& a, uint32_t b, const U64& c) {
  return a.writer->result<Type::u64>("mad.wide.u32", a, number(a, b), c);
}
U64 multiply_add(const U32& a, const U32& b, const U64& c) {
  return a.writer->result<Type::u64>("mad.wide.u32", a, b, c);
}

Pred truth(Writer& w, bool value) {
  const Pred made = w.make<Type::pred>();
  w.emit("setp.{}.u32 {}, 0, 0;", value ? "eq" : "ne", made.text);
  return made;
}

F32 number(Writer& w, float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return {&w, fmt::format("0f{:08X}", bits), true, bits};
}
F32 operator+(const F32& a, const F32& b) { return a.writer->result<Type::f32>("add.rn.f32", a, b); }
F32 operator-(const F32& a, const F32& b) { return a.writer->result<Type::f32>("sub.rn.f32", a, b); }
F32 operator*(const F32& a, const F32& b) { return a.writer->result<Type::f32>("mul.rn.f32", a, b); }
F32 multiply_add(const F32& a, const F32& b, const F32& c) {
  return a.writer->result<Type::f32>("fma.rn.f32", a, b, c);
}
F32 select(const Pred& condition, const F32& a, const F32& b) {
  return condition.writer->result<Type::f32>("selp.f32", a, b, condition);
}
F32 magnitude(const F32& a) { return a.writer->result<Type::f32>("abs.f32", a); }
F32 largest_of(const F32& a, const F32& b) { return a.writer->result<Type::f32>("max.f32", a, b); }
F32 smallest_of(const F32& a, const F32& b) { return a.writer->result<Type::f32>("min.f32", a, b); }
F32 max_with_nan(const F32& a, const F32& b) { return a.writer->result<Type::f32>("max.NaN.f32", a, b); }
F32 power_of_2(const F32& a) { return a.writer->result<Type::f32>("ex2.approx.ftz.f32", a); }
Pred operator<(const F32& a, const F32& b) { return a.writer->result<Type::pred>("setp.lt.f32", a, b); }
Pred operator<=(const F32& a, const F32& b) { return a.writer->result<Type::pred>("setp.le.f32", a, b); }
Pred operator==(const F32& a, const F32& b) { return a.writer->result<Type::pred>("setp.eq.f32", a, b); }
F64 operator*(const F64& a, const F64& b) { return a.writer->result<Type::f64>("mul.rn.f64", a, b); }
F64 multiply_add(const F64& a, const F64& b, const F64& c) {
  return a.writer->result<Type::f64>("fma.rn.f64", a, b, c);
}

}  // namespace tuff::ptx
