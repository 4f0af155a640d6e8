// A GEMM of any element types, with an epilogue, solved in long double: inputs, operands on the device, bounds.
#pragma once

#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "support/gemm_problem.hpp"
#include "support/harness.hpp"

namespace tuff_test {

using Bytes = std::vector<unsigned char>;

inline constexpr int32_t kAllTypes[] = {TUFF_F32,  TUFF_F16,     TUFF_BF16,    TUFF_F64, TUFF_I32, TUFF_U32,
                                        TUFF_I8,   TUFF_U8,      TUFF_I64,     TUFF_U64, TUFF_I16, TUFF_U16,
                                        TUFF_BOOL, TUFF_F8_E4M3, TUFF_F8_E5M2, TUFF_C64, TUFF_C128};
inline constexpr std::span<const int32_t> kRealTypes(kAllTypes, std::size(kAllTypes) - 2);  // the last two are complex

// Reads an element, or writes the one nearest to a value (ties to even), without the library's own conversions.
// Integers of 64 bits are those that f64 holds.
uint64_t size_of(int32_t dtype);
const char* name_of(int32_t dtype);
inline bool is_complex(int32_t dtype) { return dtype == TUFF_C64 || dtype == TUFF_C128; }
// The type of the parts of a complex type; the type itself for a real one.
inline int32_t part_of(int32_t dtype) { return dtype == TUFF_C64 ? TUFF_F32 : dtype == TUFF_C128 ? TUFF_F64 : dtype; }
inline bool is_float8(int32_t dtype) { return dtype == TUFF_F8_E4M3 || dtype == TUFF_F8_E5M2; }
double element(int32_t dtype, const Bytes& bytes, uint64_t i);
void set_element(int32_t dtype, Bytes& bytes, uint64_t i, double value);
// The same of all elements.
template <typename Number>
Bytes as_type(int32_t dtype, const std::vector<Number>& numbers) {
  Bytes bytes(numbers.size() * size_of(dtype));
  for (uint64_t i = 0; i < numbers.size(); ++i) set_element(dtype, bytes, i, static_cast<double>(numbers[i]));
  return bytes;
}
std::vector<double> numbers_of(int32_t dtype, const Bytes& bytes);
float rounded(int32_t dtype, double value);  // to a floating-point type of 32, 16 or 8 bits
// A number as a floating-point type holds it.
inline double held(int32_t dtype, double value) { return dtype == TUFF_F64 ? value : double{rounded(dtype, value)}; }
double unit_roundoff(int32_t dtype);  // 0 for integers
// A pattern that no result has, a quiet NaN for floating-point types: the initial contents of outputs and gaps.
void set_poison(int32_t dtype, Bytes& bytes, uint64_t i);
void poison_all(int32_t dtype, Bytes& bytes);
bool is_poison(int32_t dtype, const Bytes& bytes, uint64_t i);

// Elements in the middle of a larger buffer, surrounded by guards within the range that the library binds.
class TypedTensor {
 public:
  TypedTensor(tuff_context context, int32_t dtype, const Bytes& bytes, uint64_t shift = 0);  // shift: in elements
  operator tuff_buffer() const { return view_; }  // NOLINT(google-explicit-constructor)
  Bytes read() const;                             // also checks the guards

 private:
  tuff_context context_;
  uint64_t bytes_, before_;
  OwnBuffer whole_, view_;
};

enum class Residual { none, own, in_place };

struct TypedGemm {
  int32_t a_type = TUFF_F32, b_type = TUFF_F32, c_type = TUFF_F32;
  int32_t ta = TUFF_NO_TRANS, tb = TUFF_NO_TRANS;
  uint64_t m = 1, n = 1, k = 1;
  double alpha = 1, beta = 0;
  uint64_t pad = 0, shift = 0;  // for every operand: elements after each row, and before the first element
  uint64_t batch = 1;
  bool arrays = false;  // a batch given as arrays of buffers
  int32_t activation = TUFF_ACTIVATION_NONE, bias_axis = TUFF_BIAS_NONE;
  Residual residual = Residual::none;
  double scale_a = 0, scale_b = 0, scale_c = 0;  // 0: none

  bool has_float8_inputs() const { return is_float8(a_type) && is_float8(b_type); }
  bool scaled() const { return scale_a != 0 || scale_b != 0 || scale_c != 0; }
  std::string name() const;
  double work() const { return static_cast<double>(m * n * batch) * static_cast<double>(k); }
};

// Computes the GEMM and compares: exactly for integers whose sums C's type holds, otherwise within the derived bound:
// gamma_(k+5) of the accumulator's type, the activation's error, and one rounding to C's type. Scales take three more
// roundings. Where "ptx" is supported, sums of 8-bit floats may have 13 bits of fraction (docs/accuracy.md).
void run_typed_gemm(tuff_context context, const TypedGemm& shape, Tier tier);

}  // namespace tuff_test
