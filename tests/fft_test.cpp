// Fourier transforms, compared with their definition in long double.
#include <cmath>
#include <limits>
#include <string>

#include "support/fft_problem.hpp"
#include "support/sample.hpp"
#include "support/tensor.hpp"

namespace tuff_test::fft_test {
namespace {

constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT, kUnsupported = TUFF_ERROR_UNSUPPORTED;
constexpr int32_t kReal = TUFF_FFT_REAL, kToReal = TUFF_FFT_TO_REAL, kComplex = TUFF_FFT_COMPLEX;

std::vector<FftCase> cases() {
  std::vector<FftCase> all;
  uint32_t turn = 0;
  const auto add = [&](FftCase row) {
    ++turn;
    row.inverse = turn % 2 == 0;
    row.norm = static_cast<int32_t>(turn % 3);
    all.push_back(std::move(row));
  };
  // Sizes that are transformed directly and by Bluestein's algorithm (31 and 37), in one pass and in several: powers,
  // products of small primes, primes and their squares.
  std::vector<uint64_t> sizes;
  for (uint64_t n = 1; n <= 200; ++n) {
    if (n <= 50 || n % 3 == 0) sizes.push_back(n);
  }
  for (const uint64_t n : {211, 256,  257,  289,  343,  361,  512,  529,  625,  640,  719, 841,
                           961, 1001, 1009, 1024, 1155, 1331, 2048, 2187, 2310, 4096, 4099}) {
    sizes.push_back(n);
  }
  for (const uint64_t n : sizes) {
    const uint64_t lines = n <= 1024 ? 3 : 1;
    add({.shape = {lines, n}});
    if (n <= 24 || n % 7 == 0) add({.shape = {lines, n}, .kind = n % 2 == 0 ? kReal : kToReal});
    if (n % 9 == 0) add({.shape = {n, 2}, .axes = 1, .kind = n % 2 == 0 ? kToReal : kReal});
  }
  // Element types.
  for (const int32_t dtype : {TUFF_F16, TUFF_BF16, TUFF_F64}) {
    for (const uint64_t n : {1, 2, 12, 37, 64, 240, 1000, 1009}) {
      add({.shape = {2, n}, .dtype = dtype});
      add({.shape = {2, n}, .kind = kReal, .dtype = dtype, .shift = n % 2});
      add({.shape = {2, n}, .kind = kToReal, .dtype = dtype, .shift = n % 3});
      add({.shape = {n, 5}, .axes = 1, .dtype = dtype, .shift = 1});
    }
  }
  // Several axes, batches before, between and behind them.
  for (const int32_t kind : {kComplex, kReal, kToReal}) {
    add({.shape = {12, 20}, .axes = 3, .kind = kind});
    add({.shape = {3, 8, 5, 9}, .axes = 6, .kind = kind});
    add({.shape = {6, 4, 10}, .axes = 5, .kind = kind});
    add({.shape = {6, 4, 10}, .axes = 7, .kind = kind});
    add({.shape = {64, 2, 128}, .axes = 5, .kind = kind});
    add({.shape = {2, 37, 41}, .axes = 6, .kind = kind});
    add({.shape = {2, 3, 2, 3, 2, 3, 2, 3}, .axes = 0xa5, .kind = kind});
    add({.shape = {2, 3, 2, 3, 2, 3, 2, 3}, .axes = 0xff, .kind = kind});
    add({.shape = {130, 100}, .axes = 1, .kind = kind});
    add({.shape = {1, 1, 1}, .axes = 7, .kind = kind});
    add({.shape = {300, 6}, .axes = 1, .kind = kind, .dtype = TUFF_F16});
    add({.shape = {12, 20}, .axes = 3, .kind = kind, .dtype = TUFF_F64});
  }
  // Strides, and odd starts, with one pass and with several.
  for (const int32_t kind : {kComplex, kReal, kToReal}) {
    for (const uint64_t n : {12, 43, 250}) {
      add({.shape = {5, n, 3}, .axes = 2, .kind = kind, .strided = true});
      add({.shape = {5, n, 3}, .axes = 2, .kind = kind, .dtype = TUFF_BF16, .shift = 1, .strided = true});
      add({.shape = {4, n, 6}, .axes = 6, .kind = kind, .shift = 1, .strided = true});
      add({.shape = {3, 2, n, 2}, .axes = 4, .kind = kind, .dtype = TUFF_F64, .shift = 1, .strided = true});
    }
  }
  for (const uint64_t n : {7, 64, 100, 53, 480}) {
    add({.shape = {4, n}, .in_place = true});
    add({.shape = {n, 4}, .axes = 3, .in_place = true});
    add({.shape = {3, n, 4}, .axes = 2, .shift = 1, .strided = true, .in_place = true});
  }
  return all;
}

using Fft = Table<FftCase>;

TEST_P(Fft, WithinBound) {
  const FftCase& s = row();
  int32_t supported = 0;
  ASSERT_OK(tuff_supports(context(), (std::string("fft.") + name_of(s.dtype)).c_str(), &supported));
  if (supported == 0) GTEST_SKIP() << "does not run on this device";
  const FftOperand from = fft_input(s), to = fft_output(s);
  const std::vector<Complex> x = fft_numbers(from, s.dtype, 7);
  const Bytes stored = fft_stored(from, s.dtype, x);
  Bytes empty(to.elements() * size_of(s.dtype));
  poison_all(s.dtype, empty);
  const TypedTensor input(context(), s.dtype, stored, s.shift), output(context(), s.dtype, empty, s.shift);
  const tuff_fft_desc desc = fft_descriptor(s, input, s.in_place ? input : output);
  ASSERT_OK(tuff_fft(context(), &desc));
  const Bytes result = s.in_place ? input.read() : output.read();
  EXPECT_LE(fft_error(fft_read(to, s.dtype, result), fft_reference(s, x)), fft_bound(s));
  // Nothing between the numbers is written, and no input.
  Bytes gaps = result;
  for (const uint64_t place : to.places()) {
    for (uint64_t part = 0; part < (to.real ? 1 : 2); ++part) {
      const uint64_t i = place * (to.real ? 1 : 2) + part;
      std::copy_n(empty.begin() + static_cast<int64_t>(i * size_of(s.dtype)), size_of(s.dtype),
                  gaps.begin() + static_cast<int64_t>(i * size_of(s.dtype)));
    }
  }
  EXPECT_EQ(gaps, empty);
  if (!s.in_place) {
    EXPECT_EQ(input.read(), stored);
  }
}
TUFF_TABLE(Fft, FftCase, cases());

class FftOnce : public OnBackend {
 protected:
  std::vector<Complex> run(const FftCase& row, const std::vector<Complex>& x) {
    const FftOperand from = fft_input(row), to = fft_output(row);
    Bytes empty(to.elements() * size_of(row.dtype));
    poison_all(row.dtype, empty);
    const TypedTensor input(context(), row.dtype, fft_stored(from, row.dtype, x)), output(context(), row.dtype, empty);
    const tuff_fft_desc desc = fft_descriptor(row, input, output);
    EXPECT_OK(tuff_fft(context(), &desc));
    return fft_read(to, row.dtype, output.read());
  }
};

TEST_P(FftOnce, AnImpulseGivesRootsOfUnity) {
  for (const uint64_t n : {1, 2, 30, 64, 127, 1000, 4096, 10'007}) {
    if (!vulkan() && n > 5000) continue;
    SCOPED_TRACE(n);
    std::vector<Complex> x(n);
    x[0] = 1;
    const std::vector<Complex> ones = run({.shape = {n}}, x);
    for (const Complex& number : ones) EXPECT_LE(std::abs(number - Complex(1)), n == 127 || n == 10'007 ? 1e-5 : 0);
    if (n == 1) continue;
    x[0] = 0, x[1] = 1;
    const std::vector<Complex> roots = run({.shape = {n}}, x);
    long double worst = 0;
    for (uint64_t k = 0; k < n; ++k) {
      const long double angle = -2 * std::acos(-1.0L) * static_cast<long double>(k) / static_cast<long double>(n);
      worst = std::max(worst, std::abs(roots[k] - Complex(std::cos(angle), std::sin(angle))));
    }
    EXPECT_LE(worst, n == 127 || n == 10'007 ? 1e-5 : 8 * 0x1p-24);
  }
}

// By Parseval's identity, a sample of the numbers, and the way back.
TEST_P(FftOnce, LongTransforms) {
  struct Long {
    uint64_t n;
    int32_t dtype;
  };
  for (const Long& line : std::vector<Long>{{1 << 20, TUFF_F32},
                                            {1 << 20, TUFF_F64},
                                            {1'000'000, TUFF_F32},
                                            {3 * 5 * 7 * 11 * 13 * 17, TUFF_F32},
                                            {100'003, TUFF_F32},
                                            {100'003, TUFF_F64}}) {
    const bool prime = line.n == 100'003;
    if (!vulkan() && (prime || reduced())) continue;
    // A CPU device takes seconds for each of these kernels, of f64 many.
    const std::string name = std::to_string(line.n) + (line.dtype == TUFF_F64 ? " of f64" : " of f32");
    if (line.n != 1 << 20 || line.dtype == TUFF_F64) {
      if (!in_sample(name, line.dtype == TUFF_F64 ? 6 : 3)) continue;
    }
    SCOPED_TRACE(name);
    const FftCase row{.shape = {line.n}, .dtype = line.dtype};
    const std::vector<Complex> x = fft_numbers(fft_input(row), line.dtype, 3), y = run(row, x);
    long double before = 0, after = 0, difference = 0, sampled = 0;
    for (uint64_t i = 0; i < line.n; ++i) before += std::norm(x[i]), after += std::norm(y[i]);
    const double bound = fft_bound(row);
    EXPECT_NEAR(static_cast<double>(after / before / static_cast<long double>(line.n)), 1, 2 * bound);
    for (const uint64_t k : {uint64_t{0}, uint64_t{1}, line.n / 2, line.n - 1, line.n / 3, 7 * line.n / 11}) {
      const Complex wanted = fft_number(x, k);
      difference += std::norm(y[k] - wanted), sampled += std::norm(wanted);
    }
    EXPECT_LE(static_cast<double>(std::sqrt(difference / sampled)), 2 * bound);
    FftCase back = row;
    back.inverse = true, back.norm = TUFF_FFT_NORM_SIZE;
    EXPECT_LE(fft_error(run(back, y), x), 2 * bound);
  }
}

TEST_P(FftOnce, ManyLinesAndPieces) {
  // Scratch memory holds a piece of the batch.
  for (const FftCase& row : std::vector<FftCase>{{.shape = {700, 512}},
                                                 {.shape = {33, 512, 17}, .axes = 2},
                                                 {.shape = {9, 5, 512, 11}, .axes = 4, .kind = kReal},
                                                 {.shape = {300, 601}}}) {
    SCOPED_TRACE(row.name());
    const FftOperand from = fft_input(row), to = fft_output(row);
    const std::vector<Complex> x = fft_numbers(from, TUFF_F32, 5), y = run(row, x);
    // One line of every few, by the definition.
    const size_t axis = row.axes == 2 ? 1 : row.axes == 4 ? 2 : row.shape.size() - 1;
    uint64_t inner = 1;
    for (size_t i = axis + 1; i < row.shape.size(); ++i) inner *= row.shape[i];
    const uint64_t n = row.shape[axis], kept = to.sizes[axis], lines = from.count() / n;
    for (uint64_t line = 0; line < lines; line += 1 + lines / 20) {
      const uint64_t o = line / inner, i = line % inner;
      std::vector<Complex> in(n), out(kept);
      for (uint64_t j = 0; j < n; ++j) in[j] = x[(o * n + j) * inner + i];
      for (uint64_t k = 0; k < kept; ++k) out[k] = y[(o * kept + k) * inner + i];
      EXPECT_LE(fft_error(out, fft_reference({.shape = {n}, .kind = row.kind}, in)), fft_bound(row)) << line;
    }
  }
}

TEST_P(FftOnce, ANaNStaysInItsLine) {
  for (const uint64_t n : {16, 41, 480}) {
    const FftCase row{.shape = {3, n}};
    std::vector<Complex> x = fft_numbers(fft_input(row), TUFF_F32, 2);
    x[n + 5] = {std::numeric_limits<long double>::quiet_NaN(), 0};
    const std::vector<Complex> y = run(row, x);
    for (uint64_t i = 0; i < 3 * n; ++i) {
      EXPECT_EQ(std::isnan(y[i].real()) || std::isnan(y[i].imag()), i / n == 1) << i;
    }
  }
}

// The imaginary parts that a real result leaves no room for are ignored, whatever they are.
TEST_P(FftOnce, ToRealIgnoresTwoImaginaryParts) {
  for (const uint64_t n : {1, 2, 9, 24, 82}) {
    const FftCase row{.shape = {n}, .kind = kToReal, .inverse = true};
    std::vector<Complex> x = fft_numbers(fft_input(row), TUFF_F32, 2);
    const std::vector<Complex> wanted = run(row, x);
    x[0] = {x[0].real(), std::numeric_limits<long double>::quiet_NaN()};
    if (n % 2 == 0) x[n / 2] = {x[n / 2].real(), std::numeric_limits<long double>::infinity()};
    const std::vector<Complex> got = run(row, x);
    for (uint64_t i = 0; i < n; ++i) EXPECT_EQ(got[i].real(), wanted[i].real()) << n << " " << i;
  }
}

// A batch without numbers, and an input that is repeated along an axis.
TEST_P(FftOnce, EmptyAndRepeated) {
  const Tensor x(context(), std::vector<float>{1, 2, 3, 4, 5, 6}), y(context(), 24);
  tuff_fft_desc desc = fft_descriptor({.shape = {0, 3}}, 0, 0);
  EXPECT_OK(tuff_fft(context(), &desc));
  desc.input = x, desc.output = y;
  EXPECT_OK(tuff_fft(context(), &desc));
  y.expect_poisoned();
  desc.shape[0] = 4;
  desc.input_strides[0] = 0, desc.input_strides[1] = 1;
  ASSERT_OK(tuff_fft(context(), &desc));
  const std::vector<float> result = y.read();
  for (uint64_t i = 6; i < 24; ++i) EXPECT_EQ(result[i], result[i % 6]);
  EXPECT_NEAR(result[0], 9, 1e-5);
  EXPECT_NEAR(result[1], 12, 1e-5);
}

TEST_P(FftOnce, BadCallsSayWhatIsWrong) {
  const Tensor x(context(), 1000), y(context(), 99);
  const auto bad = [&](tuff_status status, const char* text, auto change) {
    tuff_fft_desc desc = fft_descriptor({.shape = {3, 16}}, x, y);
    change(desc);
    EXPECT_FAILS(tuff_fft(context(), &desc), status, "tuff_fft", text);
  };
  tuff_fft_desc good = fft_descriptor({.shape = {3, 16}}, x, y);
  EXPECT_OK(tuff_fft(context(), &good));
  bad(kArgument, "rank", [](auto& d) { d.rank = 0; });
  bad(kArgument, "rank", [](auto& d) { d.rank = 9; });
  bad(kArgument, "kind", [](auto& d) { d.kind = 0; });
  bad(kArgument, "kind", [](auto& d) { d.kind = 4; });
  bad(kArgument, "inverse", [](auto& d) { d.inverse = 2; });
  bad(kArgument, "norm", [](auto& d) { d.norm = 3; });
  bad(kArgument, "norm", [](auto& d) { d.norm = -1; });
  bad(kArgument, "axes", [](auto& d) { d.axes = 4; });
  bad(kArgument, "reserved", [](auto& d) { d.reserved = 1; });
  bad(kArgument, "shape[1]", [](auto& d) { d.shape[1] = 0; });
  bad(kArgument, "output", [](auto& d) { d.shape[0] = 4; });
  bad(kArgument, "input", [](auto& d) { d.shape[0] = 40; });
  bad(TUFF_ERROR_INVALID_HANDLE, "input", [](auto& d) { d.input = 0; });
  bad(kArgument, "shape", [](auto& d) { d.shape[0] = uint64_t{1} << 62; });
  bad(kArgument, "input_strides", [](auto& d) { d.input_strides[0] = UINT64_MAX; });
  bad(kArgument, "output_strides", [](auto& d) { d.output_strides[0] = 15, d.output_strides[1] = 1; });
  bad(kArgument, "output_strides", [](auto& d) { d.output_strides[1] = 1; });
  bad(kArgument, "output", [](auto& d) { d.output_strides[0] = 40, d.output_strides[1] = 1; });
  bad(kUnsupported, "shape[1]", [](auto& d) { d.shape[1] = (uint64_t{1} << 29) + 2; });
  bad(kUnsupported, "prime", [](auto& d) { d.shape[1] = (uint64_t{1} << 28) + 3; });
  bad(kUnsupported, "dtype", [](auto& d) { d.dtype = TUFF_I32; });
  bad(kArgument, "dtype", [](auto& d) { d.dtype = 77; });
  bad(kArgument, "struct_size", [](auto& d) { d.struct_size = 200; });
  // Only an output of the same form may be the input.
  bad(kArgument, "overlaps input", [&](auto& d) { d.output = x, d.kind = kReal; });
  bad(kArgument, "overlaps input", [&](auto& d) { d.output = x, d.output_strides[0] = 20, d.output_strides[1] = 1; });
}
TUFF_ON_BACKENDS(FftOnce);

}  // namespace
}  // namespace tuff_test::fft_test
