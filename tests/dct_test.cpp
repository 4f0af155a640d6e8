// Cosine and sine transforms, compared with their definition in long double.
#include <cmath>
#include <limits>
#include <numbers>
#include <string>

#include "support/fft_problem.hpp"
#include "support/tensor.hpp"

namespace tuff_test::dct_test {
namespace {

constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT, kUnsupported = TUFF_ERROR_UNSUPPORTED;

struct DctCase {
  std::vector<uint64_t> shape;
  int32_t kind = TUFF_DCT_2;
  uint32_t axes = 0;
  bool orthogonal = false;
  int32_t norm = TUFF_FFT_NORM_NONE;
  int32_t dtype = TUFF_F32;
  uint64_t shift = 0;  // elements before the first
  bool strided = false, in_place = false;

  bool transforms(size_t axis) const { return axes == 0 ? axis + 1 == shape.size() : (axes >> axis & 1) != 0; }
  uint64_t size_of_norm(uint64_t n) const {
    return kind == TUFF_DCT_1 ? 2 * (n - 1) : kind == TUFF_DST_1 ? 2 * (n + 1) : 2 * n;
  }
  std::string name() const {
    std::string text = name_of(dtype);
    text += (kind < TUFF_DST_1 ? "_dct" : "_dst") + std::to_string((kind - 1) % 4 + 1);
    for (const uint64_t size : shape) text += "_" + std::to_string(size);
    if (axes != 0) text += "_axes" + std::to_string(axes);
    text += orthogonal ? "_orthogonal" : "";
    text += norm == TUFF_FFT_NORM_SIZE ? "_size" : norm == TUFF_FFT_NORM_ROOT ? "_root" : "";
    if (shift != 0) text += "_shift" + std::to_string(shift);
    return text + (strided ? "_strided" : "") + (in_place ? "_inplace" : "");
  }
  double work() const {
    double count = 100;
    for (const uint64_t size : shape) count *= static_cast<double>(size);
    return count;
  }
};

// Both operands have all numbers of the shape, real ones.
FftOperand operand_of(const DctCase& row) {
  return fft_input({.shape = row.shape, .kind = TUFF_FFT_REAL, .strided = row.strided});
}

// Element (j, k) of the matrix, as the header defines it.
long double element_of(const DctCase& row, uint64_t n, uint64_t j, uint64_t k) {
  const long double pi = std::numbers::pi_v<long double>, a = static_cast<long double>(j),
                    b = static_cast<long double>(k), m = static_cast<long double>(n);
  const long double more = row.orthogonal ? std::numbers::sqrt2_v<long double> : 1, less = 1 / more;
  const bool first = j == 0, last = j + 1 == n, starts = k == 0, ends = k + 1 == n;
  switch (row.kind) {
    case TUFF_DCT_1: return (first || last ? more : 2) * (starts || ends ? less : 1) * std::cos(pi * a * b / (m - 1));
    case TUFF_DCT_2: return 2 * (starts ? less : 1) * std::cos(pi * (2 * a + 1) * b / (2 * m));
    case TUFF_DCT_3: return (first ? more : 2) * std::cos(pi * a * (2 * b + 1) / (2 * m));
    case TUFF_DCT_4: return 2 * std::cos(pi * (2 * a + 1) * (2 * b + 1) / (4 * m));
    case TUFF_DST_1: return 2 * std::sin(pi * (a + 1) * (b + 1) / (m + 1));
    case TUFF_DST_2: return 2 * (ends ? less : 1) * std::sin(pi * (2 * a + 1) * (b + 1) / (2 * m));
    case TUFF_DST_3: return (last ? more : 2) * std::sin(pi * (a + 1) * (2 * b + 1) / (2 * m));
    default: return 2 * std::sin(pi * (2 * a + 1) * (2 * b + 1) / (4 * m));
  }
}

std::vector<Complex> reference(const DctCase& row, const std::vector<Complex>& input) {
  std::vector<Complex> x = input;
  long double size = 1;
  uint64_t inner = 1;
  for (size_t axis = row.shape.size(); axis-- > 0; inner *= row.shape[axis]) {
    if (!row.transforms(axis)) continue;
    const uint64_t n = row.shape[axis];
    size *= static_cast<long double>(row.size_of_norm(n));
    std::vector<long double> matrix(n * n);
    for (uint64_t k = 0; k < n; ++k) {
      for (uint64_t j = 0; j < n; ++j) matrix[k * n + j] = element_of(row, n, j, k);
    }
    std::vector<long double> line(n);
    for (uint64_t i = 0; i < x.size() / n; ++i) {
      Complex* const at = x.data() + i / inner * inner * n + i % inner;
      for (uint64_t j = 0; j < n; ++j) line[j] = at[j * inner].real();
      for (uint64_t k = 0; k < n; ++k) {
        long double sum = 0;
        for (uint64_t j = 0; j < n; ++j) sum += matrix[k * n + j] * line[j];
        at[k * inner] = sum;
      }
    }
  }
  const long double scale = row.norm == TUFF_FFT_NORM_SIZE   ? 1 / size
                            : row.norm == TUFF_FFT_NORM_ROOT ? 1 / std::sqrt(size)
                                                             : 1;
  for (Complex& number : x) number *= scale;
  return x;
}

// The header's promise, relative to the results in the Euclidean norm.
double bound_of(const DctCase& row) {
  double digits = 0;
  for (size_t axis = 0; axis < row.shape.size(); ++axis) {
    if (!row.transforms(axis)) continue;
    const uint64_t n = row.shape[axis], size = row.size_of_norm(n);
    const bool mirrored = row.kind == TUFF_DCT_1 || row.kind == TUFF_DST_1;
    uint64_t rest = mirrored ? size / 2 : n;
    for (uint64_t p = 2; p <= 31; ++p) {
      while (rest % p == 0) rest /= p;
    }
    digits += (rest == 1 ? 4 : 12) * std::log2(static_cast<double>(size)) + 8;
  }
  return digits * (row.dtype == TUFF_F64 ? 0x1p-53 : 0x1p-24) + unit_roundoff(row.dtype);
}

tuff_dct_desc descriptor(const DctCase& row, tuff_buffer input, tuff_buffer output) {
  tuff_dct_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = row.dtype, desc.kind = row.kind, desc.orthogonal = row.orthogonal ? 1 : 0, desc.norm = row.norm;
  desc.rank = static_cast<uint32_t>(row.shape.size()), desc.axes = row.axes;
  desc.input = input, desc.output = output;
  std::copy(row.shape.begin(), row.shape.end(), desc.shape);
  if (row.strided) {
    const FftOperand operand = operand_of(row);
    std::copy(operand.strides.begin(), operand.strides.end(), desc.input_strides);
    std::copy(operand.strides.begin(), operand.strides.end(), desc.output_strides);
  }
  return desc;
}

std::vector<DctCase> cases() {
  std::vector<DctCase> all;
  uint32_t turn = 0;
  const auto add = [&](DctCase row) {
    ++turn;
    row.orthogonal = turn % 2 == 0;
    row.norm = static_cast<int32_t>(turn / 2 % 3);
    all.push_back(std::move(row));
  };
  for (int32_t kind = TUFF_DCT_1; kind <= TUFF_DST_4; ++kind) {
    // Even and odd sizes, directly and by Bluestein's algorithm (37, and 38, 36 of kind 1), in one pass and in several.
    for (const uint64_t n : {1, 2, 3, 4, 5, 8, 9, 15, 16, 36, 37, 38, 64, 100, 243, 257}) {
      if (kind != TUFF_DCT_1 || n > 1) add({.shape = {3, n}, .kind = kind});
    }
    for (const int32_t dtype : {TUFF_F16, TUFF_BF16, TUFF_F64}) {
      add({.shape = {2, 24}, .kind = kind, .dtype = dtype, .shift = 1});
      add({.shape = {2, 37}, .kind = kind, .dtype = dtype});
      add({.shape = {12, 3}, .kind = kind, .axes = 3, .dtype = dtype});
    }
    // Several axes, batches before, between and behind them, strides, in place.
    add({.shape = {12, 20}, .kind = kind, .axes = 3});
    add({.shape = {3, 8, 5, 9}, .kind = kind, .axes = 6});
    add({.shape = {6, 4, 10}, .kind = kind, .axes = 5});
    add({.shape = {64, 6}, .kind = kind, .axes = 1});
    add({.shape = {2, 3, 2, 3, 2, 3, 2, 3}, .kind = kind, .axes = 0xa5});
    add({.shape = {5, 12, 3}, .kind = kind, .axes = 2, .strided = true});
    add({.shape = {4, 15, 6}, .kind = kind, .axes = 6, .shift = 1, .strided = true});
    add({.shape = {3, 2, 12, 2}, .kind = kind, .axes = 4, .dtype = TUFF_BF16, .shift = 1, .strided = true});
    add({.shape = {4, 16}, .kind = kind, .in_place = true});
    add({.shape = {12, 4}, .kind = kind, .axes = 3, .in_place = true});
    add({.shape = {3, 12, 4}, .kind = kind, .axes = 2, .shift = 1, .strided = true, .in_place = true});
  }
  return all;
}

using FftDct = Table<DctCase>;

TEST_P(FftDct, WithinBound) {
  const DctCase& s = row();
  int32_t supported = 0;
  ASSERT_OK(tuff_supports(context(), (std::string("dct.") + name_of(s.dtype)).c_str(), &supported));
  if (supported == 0) GTEST_SKIP() << "does not run on this device";
  const FftOperand operand = operand_of(s);
  const std::vector<Complex> x = fft_numbers(operand, s.dtype, 7);
  const Bytes stored = fft_stored(operand, s.dtype, x);
  Bytes empty(operand.elements() * size_of(s.dtype));
  poison_all(s.dtype, empty);
  const TypedTensor input(context(), s.dtype, stored, s.shift), output(context(), s.dtype, empty, s.shift);
  const tuff_dct_desc desc = descriptor(s, input, s.in_place ? input : output);
  ASSERT_OK(tuff_dct(context(), &desc));
  const Bytes result = s.in_place ? input.read() : output.read();
  EXPECT_LE(fft_error(fft_read(operand, s.dtype, result), reference(s, x)), bound_of(s));
  // Nothing between the numbers is written, and no input.
  Bytes gaps = result;
  for (const uint64_t i : operand.places()) {
    std::copy_n(empty.begin() + static_cast<int64_t>(i * size_of(s.dtype)), size_of(s.dtype),
                gaps.begin() + static_cast<int64_t>(i * size_of(s.dtype)));
  }
  EXPECT_EQ(gaps, empty);
  if (!s.in_place) {
    EXPECT_EQ(input.read(), stored);
  }
}
TUFF_TABLE(FftDct, DctCase, cases());

class FftDctOnce : public OnBackend {
 protected:
  std::vector<Complex> run(const DctCase& row, const std::vector<Complex>& x) {
    const FftOperand operand = operand_of(row);
    Bytes empty(operand.elements() * size_of(row.dtype));
    poison_all(row.dtype, empty);
    const TypedTensor input(context(), row.dtype, fft_stored(operand, row.dtype, x)),
        output(context(), row.dtype, empty);
    const tuff_dct_desc desc = descriptor(row, input, output);
    EXPECT_OK(tuff_dct(context(), &desc));
    return fft_read(operand, row.dtype, output.read());
  }
};

// An orthogonal transform keeps the Euclidean norm, and its inverse gives the numbers back, over several pieces of the
// batch.
TEST_P(FftDctOnce, KeepTheNormAndComeBack) {
  for (int32_t kind = TUFF_DCT_1; kind <= TUFF_DST_4; ++kind) {
    const DctCase row{
        .shape = {vulkan() ? 600ull : 20ull, 256}, .kind = kind, .orthogonal = true, .norm = TUFF_FFT_NORM_ROOT};
    SCOPED_TRACE(row.name());
    const std::vector<Complex> x = fft_numbers(operand_of(row), TUFF_F32, 3), y = run(row, x);
    long double before = 0, after = 0;
    for (uint64_t i = 0; i < x.size(); ++i) before += std::norm(x[i]), after += std::norm(y[i]);
    EXPECT_NEAR(static_cast<double>(after / before), 1, 2 * bound_of(row));
    DctCase back = row;
    if (kind == TUFF_DCT_2 || kind == TUFF_DST_2) ++back.kind;
    if (kind == TUFF_DCT_3 || kind == TUFF_DST_3) --back.kind;
    EXPECT_LE(fft_error(run(back, y), x), 2 * bound_of(row));
  }
}

TEST_P(FftDctOnce, ALongLine) {
  if (!vulkan() || reduced()) GTEST_SKIP() << "takes long";
  // A number alone in its line gives a column of the matrix.
  for (const int32_t kind : {TUFF_DCT_1, TUFF_DST_2, TUFF_DCT_3, TUFF_DCT_4}) {
    const uint64_t n = kind == TUFF_DCT_1 ? 4097 : 4096, j = 1234;
    const DctCase row{.shape = {n}, .kind = kind};
    SCOPED_TRACE(row.name());
    std::vector<Complex> x(n), wanted(n);
    x[j] = 1;
    for (uint64_t k = 0; k < n; ++k) wanted[k] = element_of(row, n, j, k);
    EXPECT_LE(fft_error(run(row, x), wanted), bound_of(row));
  }
}

TEST_P(FftDctOnce, ANaNStaysInItsLine) {
  for (int32_t kind = TUFF_DCT_1; kind <= TUFF_DST_4; ++kind) {
    for (const uint64_t n : {16, 9}) {
      const DctCase row{.shape = {3, n}, .kind = kind};
      SCOPED_TRACE(row.name());
      std::vector<Complex> x = fft_numbers(operand_of(row), TUFF_F32, 2);
      x[n + 5] = std::numeric_limits<long double>::quiet_NaN();
      const std::vector<Complex> y = run(row, x);
      for (uint64_t i = 0; i < 3 * n; ++i) EXPECT_EQ(std::isnan(y[i].real()), i / n == 1) << i;
    }
  }
}

// A batch without numbers, and an input that is repeated along an axis.
TEST_P(FftDctOnce, EmptyAndRepeated) {
  const Tensor x(context(), std::vector<float>{1, 2, 3}), y(context(), 12);
  tuff_dct_desc desc = descriptor({.shape = {0, 3}}, 0, 0);
  EXPECT_OK(tuff_dct(context(), &desc));
  desc.input = x, desc.output = y;
  EXPECT_OK(tuff_dct(context(), &desc));
  y.expect_poisoned();
  desc.shape[0] = 4;
  desc.input_strides[0] = 0, desc.input_strides[1] = 1;
  ASSERT_OK(tuff_dct(context(), &desc));
  const std::vector<float> result = y.read();
  for (uint64_t i = 3; i < 12; ++i) EXPECT_EQ(result[i], result[i % 3]);
  EXPECT_NEAR(result[0], 12, 1e-5);
}

TEST_P(FftDctOnce, BadCallsSayWhatIsWrong) {
  const Tensor x(context(), 1000), y(context(), 48);
  const auto bad = [&](tuff_status status, const char* text, auto change) {
    tuff_dct_desc desc = descriptor({.shape = {3, 16}}, x, y);
    change(desc);
    EXPECT_FAILS(tuff_dct(context(), &desc), status, "tuff_dct", text);
  };
  tuff_dct_desc good = descriptor({.shape = {3, 16}}, x, y);
  EXPECT_OK(tuff_dct(context(), &good));
  bad(kArgument, "rank", [](auto& d) { d.rank = 0; });
  bad(kArgument, "rank", [](auto& d) { d.rank = 9; });
  bad(kArgument, "kind", [](auto& d) { d.kind = 0; });
  bad(kArgument, "kind", [](auto& d) { d.kind = 9; });
  bad(kArgument, "orthogonal", [](auto& d) { d.orthogonal = 2; });
  bad(kArgument, "norm", [](auto& d) { d.norm = 3; });
  bad(kArgument, "axes", [](auto& d) { d.axes = 4; });
  bad(kArgument, "reserved", [](auto& d) { d.reserved = 1; });
  bad(kArgument, "shape[1] is 0", [](auto& d) { d.shape[1] = 0; });
  bad(kArgument, "shape[1] is 1", [](auto& d) { d.shape[1] = 1, d.kind = TUFF_DCT_1; });
  bad(kArgument, "output", [](auto& d) { d.shape[0] = 6; });
  bad(kArgument, "input", [](auto& d) { d.shape[0] = 70; });
  bad(TUFF_ERROR_INVALID_HANDLE, "input", [](auto& d) { d.input = 0; });
  bad(kArgument, "shape", [](auto& d) { d.shape[0] = uint64_t{1} << 62; });
  bad(kArgument, "input_strides", [](auto& d) { d.input_strides[0] = UINT64_MAX; });
  bad(kArgument, "output_strides", [](auto& d) { d.output_strides[0] = 15, d.output_strides[1] = 1; });
  bad(kUnsupported, "2^28", [](auto& d) { d.shape[1] = (uint64_t{1} << 28) + 1; });
  bad(kUnsupported, "2^28", [](auto& d) { d.shape[0] = d.shape[1] = uint64_t{1} << 15, d.axes = 3; });
  bad(kUnsupported, "2^27", [](auto& d) { d.shape[1] = uint64_t{1} << 27, d.kind = TUFF_DST_1; });
  bad(kUnsupported, "dtype", [](auto& d) { d.dtype = TUFF_I32; });
  bad(kArgument, "dtype", [](auto& d) { d.dtype = 77; });
  bad(kArgument, "struct_size", [](auto& d) { d.struct_size = 200; });
  // Only an output with the same strides may be the input.
  bad(kArgument, "overlaps input", [&](auto& d) { d.output = x, d.output_strides[0] = 20, d.output_strides[1] = 1; });
}
TUFF_ON_BACKENDS(FftDctOnce);

}  // namespace
}  // namespace tuff_test::dct_test
