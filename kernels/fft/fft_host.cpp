// The host's Fourier transforms, in doubles: along one axis after the other, a line is cut into its prime factors, of
// which large ones are convolutions.
#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <vector>

#include "kernels/common/elements.hpp"
#include "kernels/fft/fft_host.hpp"

namespace tuff {
using fft::Number;

// Cosine and sine are of an angle of at most an eighth turn, so that they are accurate.
Number fft::root_of(uint64_t k, uint64_t n) {
  const uint64_t quarter = (4 * k + n / 2) / n;
  const double angle = 2 * std::numbers::pi * (static_cast<double>(4 * k) - static_cast<double>(quarter * n)) /
                       (4 * static_cast<double>(n));
  const double c = std::cos(angle), s = std::sin(angle);
  const Number turned[] = {{c, -s}, {-s, -c}, {-c, s}, {s, c}};
  return turned[quarter % 4];
}

std::vector<Number> fft::roots_of(uint64_t n) {
  std::vector<Number> roots(n);
  for (uint64_t k = 0; k < n; ++k) roots[k] = root_of(k, n);
  return roots;
}

namespace {

using fft::roots_of;

uint64_t smallest_prime(uint64_t n) {
  for (uint64_t p = 2; p * p <= n; ++p) {
    if (n % p == 0) return p;
  }
  return n;
}

// The same for a large prime, by Bluestein's algorithm (1970): as a circular convolution with exp(-pi i j^2 / n).
void transform_prime(uint64_t n, const Number* x, uint64_t stride, Number* y) {
  const uint64_t m = std::bit_ceil(2 * n - 1);
  const std::vector<Number> turns = roots_of(2 * n), roots = roots_of(m);
  std::vector<Number> chirp(n), a(m), b(m), product(m);
  for (uint64_t j = 0; j < n; ++j) {
    chirp[j] = turns[j * j % (2 * n)];
    product[j] = x[j * stride] * chirp[j];
  }
  fft::transform(m, product.data(), 1, a.data(), roots);
  std::fill(product.begin(), product.end(), 0);
  for (uint64_t j = 0; j < n; ++j) product[j] = product[(m - j) % m] = std::conj(chirp[j]);
  fft::transform(m, product.data(), 1, b.data(), roots);
  for (uint64_t k = 0; k < m; ++k) product[k] = std::conj(a[k] * b[k]);
  fft::transform(m, product.data(), 1, a.data(), roots);
  for (uint64_t k = 0; k < n; ++k) y[k] = std::conj(a[k]) * chirp[k] / static_cast<double>(m);
}

}  // namespace

void fft::transform(uint64_t n, const Number* x, uint64_t stride, Number* y, const std::vector<Number>& roots) {
  if (n == 1) {
    y[0] = x[0];
    return;
  }
  const uint64_t p = smallest_prime(n), m = n / p, step = roots.size() / n;
  if (m == 1 && p > 64) return transform_prime(n, x, stride, y);
  for (uint64_t j = 0; j < p; ++j) transform(m, x + j * stride, stride * p, y + j * m, roots);
  std::vector<Number> parts(p);
  for (uint64_t k = 0; k < m; ++k) {
    for (uint64_t j = 0; j < p; ++j) parts[j] = y[j * m + k];
    for (uint64_t q = 0; q < p; ++q) {
      Number sum = parts[0];
      uint64_t turn = 0;  // j (k + q m) modulo n
      for (uint64_t j = 1; j < p; ++j) {
        turn = (turn + k + q * m) % n;
        sum += parts[j] * roots[step * turn];
      }
      y[q * m + k] = sum;
    }
  }
}

namespace {

// A dense tensor of complex numbers.
struct Tensor {
  std::array<uint64_t, 8> sizes;
  uint32_t rank;
  std::vector<Number> numbers;
};

// Transforms the tensor along an axis to n numbers each, of which it keeps the first `kept`. If `mirrored`, the axis
// holds the first half of n numbers whose second half is the conjugate of the first.
void transform_axis(Tensor& tensor, uint32_t axis, uint64_t n, uint64_t kept, bool mirrored) {
  const uint64_t given = tensor.sizes[axis];
  uint64_t outer = 1, inner = 1;
  for (uint32_t i = 0; i < tensor.rank; ++i) (i < axis ? outer : inner) *= i == axis ? 1 : tensor.sizes[i];
  const std::vector<Number> roots = roots_of(n);
  std::vector<Number> line(n), result(n), numbers(outer * kept * inner);
  for (uint64_t o = 0; o < outer; ++o) {
    for (uint64_t i = 0; i < inner; ++i) {
      for (uint64_t j = 0; j < given; ++j) line[j] = tensor.numbers[(o * given + j) * inner + i];
      if (mirrored) {
        line[0] = line[0].real();
        if (n % 2 == 0) line[n / 2] = line[n / 2].real();
        for (uint64_t j = given; j < n; ++j) line[j] = std::conj(line[n - j]);
      }
      fft::transform(n, line.data(), 1, result.data(), roots);
      for (uint64_t k = 0; k < kept; ++k) numbers[(o * kept + k) * inner + i] = result[k];
    }
  }
  tensor.sizes[axis] = kept;
  tensor.numbers = std::move(numbers);
}

}  // namespace

void host_fft(const FftArgs& args) {
  const fft::Shape shape = fft::shape_of(args);
  if (shape.output.span == 0) return;
  const bool from_real = args.kind == TUFF_FFT_REAL, to_real = args.kind == TUFF_FFT_TO_REAL;
  Tensor tensor{shape.input.sizes, args.rank, {}};
  with_element_type(args.dtype, [&]<typename T>(T) {
    const T* const input = args.input->host<T>();
    T* const output = args.output->host<T>();
    fft::for_each_number(shape.input, args.rank, [&](uint64_t, uint64_t place) {
      const auto real = static_cast<double>(input[from_real ? place : 2 * place]);
      const double imaginary = from_real ? 0 : static_cast<double>(input[2 * place + 1]);
      tensor.numbers.emplace_back(real, args.inverse != 0 ? -imaginary : imaginary);
    });
    // The mirrored axis first if the input is real, last if the output is. The inverse is the conjugate of the
    // transform of the conjugate.
    if (!to_real) transform_axis(tensor, shape.last, args.shape[shape.last], shape.output.sizes[shape.last], false);
    for (uint32_t i = 0; i < args.rank; ++i) {
      if (i != shape.last && (shape.axes >> i & 1) != 0) transform_axis(tensor, i, args.shape[i], args.shape[i], false);
    }
    if (to_real) transform_axis(tensor, shape.last, args.shape[shape.last], args.shape[shape.last], true);
    fft::for_each_number(shape.output, args.rank, [&](uint64_t dense, uint64_t place) {
      const Number number = tensor.numbers[dense] * shape.scale;
      if (to_real) {
        output[place] = T(number.real());
        return;
      }
      output[2 * place] = T(number.real());
      output[2 * place + 1] = T(args.inverse != 0 ? -number.imag() : number.imag());
    });
  });
}

}  // namespace tuff
