#include "kernels/native/elements.hpp"

namespace tuff::ptx {

F32 load_element(int32_t dtype, const U64& at, uint32_t offset, const Pred* exists) {
  Writer& w = *at.writer;
  const Guard guard = exists != nullptr ? if_true(*exists) : Guard{};
  if (dtype == TUFF_F32) {
    const F32 value = w.make<Type::f32>();
    if (exists != nullptr) w.emit("mov.f32 {}, 0f00000000;", value.text);
    w.emit(guard, "ld.global.f32 {}, [{}+{}];", value.text, at.text, offset);
    return value;
  }
  const B16 bits = w.make<Type::b16>();
  if (exists != nullptr) w.emit("mov.b16 {}, 0;", bits.text);
  w.emit(guard, "ld.global.b16 {}, [{}+{}];", bits.text, at.text, offset);
  return float_of(dtype, bits);
}

F32 float_of(int32_t dtype, const B16& bits) {
  Writer& w = *bits.writer;
  if (dtype == TUFF_F16) return w.result<Type::f32>("cvt.f32.f16", bits);
  const F32 value = w.make<Type::f32>();
  w.emit("mov.b32 {}, {{0, {}}};", value.text, bits.text);
  return value;
}

U32 packed_pair(int32_t dtype, const F32& low, const F32& high) {
  return low.writer->result<Type::u32>(dtype == TUFF_BF16 ? "cvt.rn.bf16x2.f32" : "cvt.rn.f16x2.f32", high, low);
}

B16 packed_bytes(int32_t dtype, const F32& low, const F32& high) {
  return low.writer->result<Type::b16>(
      dtype == TUFF_F8_E5M2 ? "cvt.rn.satfinite.e5m2x2.f32" : "cvt.rn.satfinite.e4m3x2.f32", high, low);
}

void store_element(int32_t dtype, const U64& at, const F32& value, const Guard& guard) {
  Writer& w = *at.writer;
  if (dtype == TUFF_F32) {
    w.emit(guard, "st.global.f32 [{}], {};", at.text, value.text);
    return;
  }
  const B16 rounded = halves_of(packed_pair(dtype, value, value))[0];
  w.emit(guard, "st.global.b16 [{}], {};", at.text, rounded.text);
}

U32 not_finite(int32_t dtype, const U32& pair) {
  const uint32_t rest = dtype == TUFF_F16 ? 0x8000 - 0x7c00 : 0x8000 - 0x7f80;
  return ((pair & 0x7fff7fffu) + (rest << 16 | rest)) & 0x80008000u;
}

std::array<U32, 2> pairs_of_bytes(int32_t dtype, const U32& four, int32_t half_type) {
  Writer& w = *four.writer;
  const std::array<B16, 2> two = halves_of(four);
  std::array<U32, 2> pairs;
  for (uint32_t i = 0; i < 2; ++i) {
    pairs[i] = w.result<Type::u32>(dtype == TUFF_F8_E5M2 ? "cvt.rn.f16x2.e5m2x2" : "cvt.rn.f16x2.e4m3x2", two[i]);
    if (half_type != TUFF_BF16) continue;
    const std::array<B16, 2> halves = halves_of(pairs[i]);
    const F32 low = float_of(TUFF_F16, halves[0]), high = float_of(TUFF_F16, halves[1]);
    pairs[i] = packed_pair(TUFF_BF16, low, high);
  }
  return pairs;
}

std::array<U64, 3> scale_pointers(Writer& w) {
  return {w.pointer("scale_a"), w.pointer("scale_b"), w.pointer("scale_c")};
}

Scales read_scales(const std::array<U64, 3>& pointers, const F32& alpha) {
  Writer& w = *alpha.writer;
  const auto scale = [&](const U64& pointer) {
    const F32 value = w.make<Type::f32>();
    const Pred given = w.make<Type::pred>();
    w.emit("mov.f32 {}, 0f3F800000;", value.text);
    w.emit("setp.ne.u64 {}, {}, 0;", given.text, pointer.text);
    w.emit(if_true(given), "ld.global.f32 {}, [{}];", value.text, pointer.text);
    return value;
  };
  const F32 factor = w.variable(alpha * scale(pointers[0]) * scale(pointers[1]));
  return {factor, scale(pointers[2])};
}

namespace {

F32 rectified(const F32& x, int32_t activation) {
  Writer& w = *x.writer;
  const Pred negative = w.make<Type::pred>();
  w.emit("setp.lt.f32 {}, {}, 0f00000000;", negative.text, x.text);
  F32 y = w.make<Type::f32>();
  w.emit("selp.f32 {}, 0f00000000, {}, {};", y.text, x.text, negative.text);
  if (activation == TUFF_ACTIVATION_RELU6) {
    const Pred large = w.make<Type::pred>();
    w.emit("setp.gt.f32 {}, {}, 0f40C00000;", large.text, y.text);
    const F32 z = w.make<Type::f32>();
    w.emit("selp.f32 {}, 0f40C00000, {}, {};", z.text, y.text, large.text);
    y = z;
  }
  return y;
}

// 1 / x of a moderate x: an approximation, and a step of Newton's method.
F32 inverse_of(const F32& x) {
  Writer& w = *x.writer;
  const F32 near = w.result<Type::f32>("rcp.approx.ftz.f32", x);
  return multiply_add(multiply_add(near * number(w, -1), x, number(w, 1)), near, near);
}

// e^(x + rest) of x from -2^17 to 0 and a small rest, times 2^more. The product with log2(e) is kept as a sum of two
// floats, as its rounding alone would cost |x| ULP. ex2.approx has an error of 2 ULP (exp2f in the CUDA C++ Programming
// Guide, which is this instruction).
F32 exponential(const F32& x, const F32& rest, const F32& more) {
  Writer& w = *x.writer;
  constexpr float kLog2e = 1.44269504088896341f, kLog2eRest = 1.92596299112661746e-8f, kLn2 = 0.6931471805599453f;
  const F32 exponent = x * number(w, kLog2e), minus_exponent = exponent * number(w, -1);
  const F32 tail = multiply_add(x, number(w, kLog2eRest), multiply_add(x, number(w, kLog2e), minus_exponent));
  const F32 power = w.result<Type::f32>("ex2.approx.f32", exponent + more);
  return multiply_add(power, multiply_add(tail, number(w, kLn2), rest), power);
}

// x sigmoid(t), where t has the sign of x.
F32 times_sigmoid(const F32& x, const F32& magnitude_of_t) {
  Writer& w = *x.writer;
  constexpr float kEnd = -1000;  // from here on e^-|t| is 0: -infinity * 0 would be NaN
  // Where e^-|t| may be denormal, 2^24 times that is computed, and its product with x scaled back.
  const Pred tiny = number(w, 80) < magnitude_of_t;
  const F32 power =
      exponential(magnitude_of_t * number(w, -1), number(w, 0), select(tiny, number(w, 24), number(w, 0)));
  const F32 back = select(tiny, number(w, 0x1p-24f), number(w, 1));
  const F32 below = (largest_of(x, number(w, kEnd)) * power) * back;
  return select(x < number(w, 0), below, x) * inverse_of(power + number(w, 1));
}

// As tuff_gelu of activations.glsl, which explains it.
F32 gelu(const F32& x) {
  Writer& w = *x.writer;
  constexpr float kCoefficients[] = {0.000160803582f, -0.000357920449f, -0.0013957069f, 0.00121741055f,
                                     0.00868915953f,  -0.00801896304f,  -0.0542119592f, 0.164049461f,
                                     -0.166031092f,   -0.0927637592f,   1.27697837f};
  const F32 a = smallest_of(magnitude(x), number(w, 100)), z = a * number(w, 0.70710678118654752440f);
  const F32 s = (z - number(w, 2)) * inverse_of(z + number(w, 2));
  F32 p = number(w, 6.33694581e-05f);
  for (const float coefficient : kCoefficients) p = multiply_add(s, p, number(w, coefficient));
  const F32 factor = ((a * number(w, 0.5f)) * p) * inverse_of(multiply_add(z, number(w, 2), number(w, 1)));
  const F32 square = a * a, rest = multiply_add(a, a, square * number(w, -1));
  const F32 below = factor * exponential(square * number(w, -0.5f), rest * number(w, -0.5f), number(w, 0));
  return select(x < number(w, 0), below * number(w, -1), x - below);
}

// The sigmoid of t is (1 + tanh(t / 2)) / 2.
F32 gelu_tanh(const F32& x) {
  Writer& w = *x.writer;
  const F32 a = smallest_of(magnitude(x), number(w, 40));  // e^-t is 0 long before
  const F32 cubic = multiply_add(a * a, number(w, 0.044715f), number(w, 1));
  return times_sigmoid(x, (a * number(w, 1.59576912160573071176f)) * cubic);
}

}  // namespace

F32 activated(const F32& x, int32_t activation) {
  switch (activation) {
    case TUFF_ACTIVATION_NONE: return x;
    case TUFF_ACTIVATION_GELU: return gelu(x);
    case TUFF_ACTIVATION_GELU_TANH: return gelu_tanh(x);
    case TUFF_ACTIVATION_SILU: return times_sigmoid(x, smallest_of(magnitude(x), number(*x.writer, 1000)));
    default: return rectified(x, activation);
  }
}

bool activates(int32_t activation, int32_t c_type) {
  const bool exact =
      activation == TUFF_ACTIVATION_NONE || activation == TUFF_ACTIVATION_RELU || activation == TUFF_ACTIVATION_RELU6;
  return exact || c_type != TUFF_F32;
}

// As tuff_sigmoid of math.glsl. From 100 on e^-|x| is below all numbers that count beside 1, and the least ones.
F32 sigmoid(const F32& x) {
  Writer& w = *x.writer;
  const F32 power = exponential(smallest_of(magnitude(x), number(w, 100)) * number(w, -1), number(w, 0), number(w, 0));
  const F32 y = select(x < number(w, 0), power, number(w, 1)) * inverse_of(power + number(w, 1));
  return select(x == x, y, x);
}

// As tuff_tanh of math.glsl: a polynomial near 0, elsewhere 1 - 2 e^-2a / (1 + e^-2a).
F32 hyperbolic_tangent(const F32& x) {
  Writer& w = *x.writer;
  constexpr float kCoefficients[] = {2.06390887954e-2f, -5.37397155531e-2f, 1.33314422036e-1f, -3.33332819422e-1f};
  const F32 a = magnitude(x), square = a * a;
  F32 p = number(w, -5.70498872745e-3f);
  for (const float coefficient : kCoefficients) p = multiply_add(p, square, number(w, coefficient));
  const F32 near = multiply_add(p * square, a, a);
  const F32 power = exponential(smallest_of(a, number(w, 10)) * number(w, -2), number(w, 0), number(w, 0));
  const F32 far = multiply_add(power * number(w, -2), inverse_of(power + number(w, 1)), number(w, 1));
  const F32 y = select(a < number(w, 0.625f), near, far);
  return select(x < number(w, 0), y * number(w, -1), select(x == x, y, x));
}

U32 joined(const B16& low, const B16& high) {
  Writer& w = *low.writer;
  const U32 made = w.make<Type::u32>();
  w.emit("mov.b32 {}, {{{}, {}}};", made.text, low.text, high.text);
  return made;
}

std::array<B16, 2> halves_of(const U32& pair) {
  Writer& w = *pair.writer;
  const std::array<B16, 2> made{w.make<Type::b16>(), w.make<Type::b16>()};
  w.emit("mov.b32 {{{}, {}}}, {};", made[0].text, made[1].text, pair.text);
  return made;
}

U32 permuted(const U32& x, const U32& y, const char* selector) {
  const U32 made = x.writer->make<Type::u32>();
  x.writer->emit("prmt.b32 {}, {}, {}, {};", made.text, x.text, y.text, selector);
  return made;
}

U32 inserted(const U32& x, uint32_t mask, uint32_t bits) {
  const U32 made = x.writer->make<Type::u32>();
  x.writer->emit("lop3.b32 {}, {}, {}, {}, 0x6a;", made.text, x.text, mask, bits);
  return made;
}

U32 on_halves(const char* operation, int32_t dtype, const U32& x, const U32& y) {
  const U32 made = x.writer->make<Type::u32>();
  x.writer->emit("{}.{}x2 {}, {}, {};", operation, name_of_half(dtype), made.text, x.text, y.text);
  return made;
}

}  // namespace tuff::ptx
