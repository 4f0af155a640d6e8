// What the host's Fourier, cosine and sine transforms share.
#pragma once

#include <array>
#include <complex>
#include <cstdint>
#include <vector>

#include "kernels/fft/fft.hpp"

namespace tuff::fft {

using Number = std::complex<double>;

// exp(-2 pi i k / n)
Number root_of(uint64_t k, uint64_t n);
// That for all k < n.
std::vector<Number> roots_of(uint64_t n);

// y[k] = sum over j < n of x[stride j] exp(-2 pi i j k / n): p transforms of n / p numbers, which p-point sums combine.
// `roots` are those of a multiple of n.
void transform(uint64_t n, const Number* x, uint64_t stride, Number* y, const std::vector<Number>& roots);

// Calls body(place in the dense tensor, place in the operand) for each number of the operand.
template <typename Body>
void for_each_number(const fft::Operand& operand, uint32_t rank, const Body& body) {
  std::array<uint64_t, 8> at{};
  uint64_t dense = 0, place = 0;
  while (true) {
    body(dense++, place);
    uint32_t i = rank;
    while (i-- > 0) {
      place += operand.strides[i];
      if (++at[i] < operand.sizes[i]) break;
      place -= operand.strides[i] * at[i];
      at[i] = 0;
      if (i == 0) return;
    }
  }
}

}  // namespace tuff::fft
