#include "kernels/native/elements.hpp"

namespace tuff::ptx {

F32 load_element(int32_t dtype, const U64& at, uint32_t offset, const Pred* exists) {
  Writer& w = *at.writer;
  const F32 value = w.make<Type::f32>();
  const Guard guard = exists != nullptr ? if_true(*exists) : Guard{};
  if (dtype == TUFF_F32) {
    if (exists != nullptr) w.emit("mov.f32 {}, 0f00000000;", value.text);
    w.emit(guard, "ld.global.f32 {}, [{}+{}];", value.text, at.text, offset);
    return value;
  }
  const B16 bits = w.make<Type::b16>();
  if (exists != nullptr) w.emit("mov.b16 {}, 0;", bits.text);
  w.emit(guard, "ld.global.b16 {}, [{}+{}];", bits.text, at.text, offset);
  if (dtype == TUFF_F16) {
    w.emit("cvt.f32.f16 {}, {};", value.text, bits.text);
  } else {
    w.emit("mov.b32 {}, {{0, {}}};", value.text, bits.text);
  }
  return value;
}

U32 packed_pair(int32_t dtype, const F32& low, const F32& high) {
  return low.writer->result<Type::u32>(dtype == TUFF_BF16 ? "cvt.rn.bf16x2.f32" : "cvt.rn.f16x2.f32", high, low);
}

B16 packed_bytes(int32_t dtype, const F32& low, const F32& high) {
  return low.writer->result<Type::b16>(
      dtype == TUFF_F8_E5M2 ? "cvt.rn.satfinite.e5m2x2.f32" : "cvt.rn.satfinite.e4m3x2.f32", high, low);
}

std::array<U32, 2> pairs_of_bytes(int32_t dtype, const U32& four, int32_t half_type) {
  Writer& w = *four.writer;
  const std::array<B16, 2> two = halves_of(four);
  std::array<U32, 2> pairs;
  for (uint32_t i = 0; i < 2; ++i) {
    pairs[i] = w.result<Type::u32>(dtype == TUFF_F8_E5M2 ? "cvt.rn.f16x2.e5m2x2" : "cvt.rn.f16x2.e4m3x2", two[i]);
    if (half_type != TUFF_BF16) continue;
    const std::array<B16, 2> halves = halves_of(pairs[i]);
    const F32 low = w.result<Type::f32>("cvt.f32.f16", halves[0]), high = w.result<Type::f32>("cvt.f32.f16", halves[1]);
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

F32 rectified(const F32& x, int32_t activation) {
  if (activation == TUFF_ACTIVATION_NONE) return x;
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

}  // namespace tuff::ptx
