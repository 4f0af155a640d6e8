// A Fourier transform: its descriptor, its operands, and its results by the definition in long double.
#pragma once

#include <complex>
#include <cstdint>
#include <string>
#include <vector>

#include "support/typed_gemm.hpp"

namespace tuff_test {

struct FftCase {
  std::vector<uint64_t> shape;
  uint32_t axes = 0;
  int32_t kind = TUFF_FFT_COMPLEX;
  bool inverse = false;
  int32_t norm = TUFF_FFT_NORM_NONE;
  int32_t dtype = TUFF_F32;
  uint64_t shift = 0;    // elements before the first
  bool strided = false;  // the axes of both operands are in another order, with gaps
  bool in_place = false;

  std::string name() const;
  double work() const;
  uint64_t length() const;  // of all transformed axes
};

using Complex = std::complex<long double>;

// The numbers of an operand, in row-major order, and where they are in its buffer.
struct FftOperand {
  std::vector<uint64_t> sizes, strides;
  bool real = false;
  uint64_t count() const;
  uint64_t elements() const;  // of the buffer
  std::vector<uint64_t> places() const;
};
FftOperand fft_input(const FftCase& row);
FftOperand fft_output(const FftCase& row);

// Numbers near 1 in magnitude, as the type holds them.
std::vector<Complex> fft_numbers(const FftOperand& operand, int32_t dtype, uint64_t seed);
Bytes fft_stored(const FftOperand& operand, int32_t dtype, const std::vector<Complex>& numbers);
std::vector<Complex> fft_read(const FftOperand& operand, int32_t dtype, const Bytes& bytes);

std::vector<Complex> fft_reference(const FftCase& row, const std::vector<Complex>& input);
// sum over j of x[j] exp(-2 pi i j k / n), n = x.size()
Complex fft_number(const std::vector<Complex>& x, uint64_t k);

// The header's promise, relative to the results in the Euclidean norm.
double fft_bound(const FftCase& row);
// ||got - wanted|| / ||wanted||
double fft_error(const std::vector<Complex>& got, const std::vector<Complex>& wanted);

tuff_fft_desc fft_descriptor(const FftCase& row, tuff_buffer input, tuff_buffer output);

}  // namespace tuff_test
