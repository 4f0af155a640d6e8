#include "support/fft_problem.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "support/tensor.hpp"

namespace tuff_test {
namespace {

uint32_t axes_of(const FftCase& row) { return row.axes != 0 ? row.axes : 1u << (row.shape.size() - 1); }
size_t last_axis(const FftCase& row) {
  size_t last = 0;
  for (size_t i = 0; i < row.shape.size(); ++i) last = (axes_of(row) >> i & 1) != 0 ? i : last;
  return last;
}

FftOperand operand_of(const FftCase& row, bool half, bool real, bool strided) {
  FftOperand operand{row.shape, std::vector<uint64_t>(row.shape.size()), real};
  const size_t last = last_axis(row), rank = row.shape.size();
  if (half) operand.sizes[last] = operand.sizes[last] / 2 + 1;
  uint64_t next = strided ? 2 : 1;
  for (size_t i = 0; i < rank; ++i) {
    const size_t axis = strided ? (i + rank / 2) % rank : rank - 1 - i;
    operand.strides[axis] = next;
    next = next * operand.sizes[axis] + (strided ? i + 1 : 0);
  }
  return operand;
}

// Along one axis: the definition, of lines of n numbers; the second half of `mirrored` ones follows from the first.
std::vector<Complex> transformed(const std::vector<Complex>& x, std::vector<uint64_t>& sizes, size_t axis, uint64_t n,
                                 uint64_t kept, bool mirrored, bool inverse) {
  const uint64_t given = sizes[axis];
  uint64_t outer = 1, inner = 1;
  for (size_t i = 0; i < sizes.size(); ++i) (i < axis ? outer : inner) *= i == axis ? 1 : sizes[i];
  std::vector<Complex> roots(n);
  for (uint64_t k = 0; k < n; ++k) {
    const long double angle =
        2 * std::numbers::pi_v<long double> * static_cast<long double>(k) / static_cast<long double>(n);
    roots[k] = {std::cos(angle), inverse ? std::sin(angle) : -std::sin(angle)};
  }
  std::vector<Complex> y(outer * kept * inner), line(n);
  for (uint64_t o = 0; o < outer; ++o) {
    for (uint64_t i = 0; i < inner; ++i) {
      for (uint64_t j = 0; j < given; ++j) line[j] = x[(o * given + j) * inner + i];
      if (mirrored) {
        line[0] = line[0].real();
        if (n % 2 == 0) line[n / 2] = line[n / 2].real();
        for (uint64_t j = given; j < n; ++j) line[j] = std::conj(line[n - j]);
      }
      for (uint64_t k = 0; k < kept; ++k) {
        long double real = 0, imaginary = 0;
        for (uint64_t j = 0, turn = 0; j < n; ++j) {
          const Complex &a = line[j], &w = roots[turn];
          real += a.real() * w.real() - a.imag() * w.imag();
          imaginary += a.real() * w.imag() + a.imag() * w.real();
          turn += k;
          if (turn >= n) turn -= n;
        }
        y[(o * kept + k) * inner + i] = {real, imaginary};
      }
    }
  }
  sizes[axis] = kept;
  return y;
}

}  // namespace

std::string FftCase::name() const {
  std::string text = name_of(dtype);
  text += kind == TUFF_FFT_REAL ? "_real" : kind == TUFF_FFT_TO_REAL ? "_toreal" : "";
  for (const uint64_t size : shape) text += "_" + std::to_string(size);
  if (axes != 0) text += "_axes" + std::to_string(axes);
  text += inverse ? "_inverse" : "";
  text += norm == TUFF_FFT_NORM_SIZE ? "_size" : norm == TUFF_FFT_NORM_ROOT ? "_root" : "";
  if (shift != 0) text += "_shift" + std::to_string(shift);
  return text + (strided ? "_strided" : "") + (in_place ? "_inplace" : "");
}

double FftCase::work() const {
  double count = 100;
  for (const uint64_t size : shape) count *= static_cast<double>(size);
  return count;
}

uint64_t FftCase::length() const {
  uint64_t n = 1;
  for (size_t i = 0; i < shape.size(); ++i) n *= (axes_of(*this) >> i & 1) != 0 ? shape[i] : 1;
  return n;
}

uint64_t FftOperand::count() const {
  uint64_t result = 1;
  for (const uint64_t size : sizes) result *= size;
  return result;
}

uint64_t FftOperand::elements() const {
  if (count() == 0) return 0;
  uint64_t span = 1;
  for (size_t i = 0; i < sizes.size(); ++i) span += (sizes[i] - 1) * strides[i];
  return span * (real ? 1 : 2);
}

std::vector<uint64_t> FftOperand::places() const {
  std::vector<uint64_t> all(count());
  for (uint64_t i = 0; i < all.size(); ++i) {
    uint64_t rest = i;
    for (size_t axis = sizes.size(); axis-- > 0;) {
      all[i] += rest % sizes[axis] * strides[axis];
      rest /= sizes[axis];
    }
  }
  return all;
}

FftOperand fft_input(const FftCase& row) {
  return operand_of(row, row.kind == TUFF_FFT_TO_REAL, row.kind == TUFF_FFT_REAL, row.strided);
}
FftOperand fft_output(const FftCase& row) {
  return operand_of(row, row.kind == TUFF_FFT_REAL, row.kind == TUFF_FFT_TO_REAL, row.strided);
}

std::vector<Complex> fft_numbers(const FftOperand& operand, int32_t dtype, uint64_t seed) {
  Random random(seed);
  const auto draw = [&]() -> long double {
    const float value = random.uniform(-1, 1);
    // Digits that an f32 lacks.
    return dtype == TUFF_F64 ? static_cast<double>(value) * 1.000000123 : static_cast<double>(rounded(dtype, value));
  };
  std::vector<Complex> numbers(operand.count());
  for (Complex& number : numbers) {
    const long double real = draw();
    number = {real, operand.real ? 0 : draw()};
  }
  return numbers;
}

Bytes fft_stored(const FftOperand& operand, int32_t dtype, const std::vector<Complex>& numbers) {
  Bytes bytes(operand.elements() * size_of(dtype));
  poison_all(dtype, bytes);
  const std::vector<uint64_t> places = operand.places();
  for (uint64_t i = 0; i < numbers.size(); ++i) {
    const auto real = static_cast<double>(numbers[i].real()), imaginary = static_cast<double>(numbers[i].imag());
    set_element(dtype, bytes, places[i] * (operand.real ? 1 : 2), real);
    if (!operand.real) set_element(dtype, bytes, places[i] * 2 + 1, imaginary);
  }
  return bytes;
}

std::vector<Complex> fft_read(const FftOperand& operand, int32_t dtype, const Bytes& bytes) {
  std::vector<Complex> numbers(operand.count());
  const std::vector<uint64_t> places = operand.places();
  for (uint64_t i = 0; i < numbers.size(); ++i) {
    const double real = element(dtype, bytes, places[i] * (operand.real ? 1 : 2));
    numbers[i] = {real, operand.real ? 0 : element(dtype, bytes, places[i] * 2 + 1)};
  }
  return numbers;
}

std::vector<Complex> fft_reference(const FftCase& row, const std::vector<Complex>& input) {
  std::vector<Complex> x = input;
  std::vector<uint64_t> sizes = fft_input(row).sizes;
  const size_t last = last_axis(row);
  const uint64_t n = row.shape[last];
  if (row.kind == TUFF_FFT_REAL) x = transformed(x, sizes, last, n, n / 2 + 1, false, row.inverse);
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    if ((axes_of(row) >> axis & 1) == 0 || (axis == last && row.kind != TUFF_FFT_COMPLEX)) continue;
    x = transformed(x, sizes, axis, row.shape[axis], row.shape[axis], false, row.inverse);
  }
  if (row.kind == TUFF_FFT_TO_REAL) x = transformed(x, sizes, last, n, n, true, row.inverse);
  const auto all = static_cast<long double>(row.length());
  const long double scale = row.norm == TUFF_FFT_NORM_SIZE   ? 1 / all
                            : row.norm == TUFF_FFT_NORM_ROOT ? 1 / std::sqrt(all)
                                                             : 1;
  for (Complex& number : x) number = row.kind == TUFF_FFT_TO_REAL ? Complex(number.real() * scale) : number * scale;
  return x;
}

Complex fft_number(const std::vector<Complex>& x, uint64_t k) {
  const uint64_t n = x.size();
  Complex sum = 0;
  for (uint64_t j = 0; j < n; ++j) {
    const uint64_t turn = j * k % n;
    const long double angle =
        -2 * std::numbers::pi_v<long double> * static_cast<long double>(turn) / static_cast<long double>(n);
    sum += x[j] * Complex(std::cos(angle), std::sin(angle));
  }
  return sum;
}

double fft_bound(const FftCase& row) {
  bool direct = true;
  for (size_t i = 0; i < row.shape.size(); ++i) {
    uint64_t n = (axes_of(row) >> i & 1) != 0 ? row.shape[i] : 1;
    for (uint64_t p = 2; p <= 31; ++p) {
      while (n % p == 0) n /= p;
    }
    direct = direct && n == 1;
  }
  const double digits = std::max(std::log2(static_cast<double>(row.length())), 1.0) * (direct ? 4 : 12);
  const double rounding = row.dtype == TUFF_F64 ? 0x1p-53 : 0x1p-24;
  return digits * rounding + unit_roundoff(row.dtype);
}

double fft_error(const std::vector<Complex>& got, const std::vector<Complex>& wanted) {
  long double difference = 0, size = 0;
  for (uint64_t i = 0; i < wanted.size(); ++i) {
    difference += std::norm(got[i] - wanted[i]);
    size += std::norm(wanted[i]);
  }
  return size == 0 && difference == 0 ? 0 : static_cast<double>(std::sqrt(difference / size));
}

tuff_fft_desc fft_descriptor(const FftCase& row, tuff_buffer input, tuff_buffer output) {
  tuff_fft_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = row.dtype, desc.kind = row.kind, desc.inverse = row.inverse ? 1 : 0, desc.norm = row.norm;
  desc.rank = static_cast<uint32_t>(row.shape.size()), desc.axes = row.axes;
  desc.input = input, desc.output = output;
  std::copy(row.shape.begin(), row.shape.end(), desc.shape);
  if (row.strided) {
    const FftOperand from = fft_input(row), to = fft_output(row);
    std::copy(from.strides.begin(), from.strides.end(), desc.input_strides);
    std::copy(to.strides.begin(), to.strides.end(), desc.output_strides);
  }
  return desc;
}

}  // namespace tuff_test
