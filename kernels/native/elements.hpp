// Elements of Tuff's types in kernels in PTX.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/native/ptx.hpp"
#include "tuff/tuff.h"

namespace tuff::ptx {

// An f32, f16 or bf16 in memory, as f32; 0 if the condition does not hold.
F32 load_element(int32_t dtype, const U64& at, uint32_t offset, const Pred* exists);
// An f16 or bf16.
F32 float_of(int32_t dtype, const B16& bits);
// Two neighbouring elements of f16 or bf16, rounded to nearest even.
U32 packed_pair(int32_t dtype, const F32& low, const F32& high);
// Two neighbouring elements of an 8-bit float, rounded to nearest even and saturated.
B16 packed_bytes(int32_t dtype, const F32& low, const F32& high);

// Rounds to f16 or bf16, to nearest even; or an f32.
void store_element(int32_t dtype, const U64& at, const F32& value, const Guard& guard = {});
// The bits 15 and 31 that tell which of two f16 or bf16 are NaN or infinite.
U32 not_finite(int32_t dtype, const U32& pair);

// Four 8-bit floats, the first in the lowest byte, as two pairs of f16 or bf16, which have all their values.
std::array<U32, 2> pairs_of_bytes(int32_t dtype, const U32& four, int32_t half_type);

// The scales of a GEMM's matrices: the parameters scale_a, scale_b and scale_c, of which those that are missing are
// null.
std::array<U64, 3> scale_pointers(Writer& w);
struct Scales {
  F32 factor;  // of sums: alpha times those of A and B
  F32 after;   // of results
};
Scales read_scales(const std::array<U64, 3>& pointers, const F32& alpha);

// Any activation. NaN and -0 stay as they are. none, relu and relu6 are exact. gelu, gelu_tanh and silu are as accurate
// as the unary operations (docs/accuracy.md), but not the same bits, which an f32 result would have to be.
F32 activated(const F32& x, int32_t activation);
// Whether a kernel may compute this activation of results that it stores as `c_type`.
bool activates(int32_t activation, int32_t c_type);

// 1 / (1 + e^-x) and tanh(x), with an error of at most 4 ULP. NaN stays NaN.
F32 sigmoid(const F32& x);
F32 hyperbolic_tangent(const F32& x);

std::array<B16, 2> halves_of(const U32& pair);
U32 joined(const B16& low, const B16& high);
// Four of the eight bytes of x and y; each hexadecimal digit of the selector is the number of one.
U32 permuted(const U32& x, const U32& y, const char* selector);
// (x & mask) ^ bits, in one instruction.
U32 inserted(const U32& x, uint32_t mask, uint32_t bits);
// An operation of two pairs of f16 or bf16.
U32 on_halves(const char* operation, int32_t dtype, const U32& x, const U32& y);
// The type in the names of instructions, of f16 or bf16.
inline const char* name_of_half(int32_t dtype) { return dtype == TUFF_BF16 ? "bf16" : "f16"; }

}  // namespace tuff::ptx
