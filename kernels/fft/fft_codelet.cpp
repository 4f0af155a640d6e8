// Writes the discrete Fourier transform of up to 64 numbers as straight-line GLSL. A composite size is cut into two
// (Cooley and Tukey 1965); a prime is computed by its definition, from sums and differences of the numbers that mirror
// each other. Sines and cosines are literals.
#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <numbers>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "kernels/fft/fft.hpp"
#include "planning/kernel_request.hpp"

namespace tuff {
namespace {

class Writer {
 public:
  Writer(uint32_t radix, bool f64) : radix_(radix), suffix_(f64 ? "lf" : "") {}

  std::string write() {
    text_ = "void fft_transform() {\n";
    std::vector<int> x;
    for (uint32_t r = 0; r < radix_; ++r) x.push_back(define(fmt::format("fft_load({}u)", r)));
    twiddle(x);
    const std::vector<int> y = transform(x);
    for (uint32_t k = 0; k < radix_; ++k) text_ += fmt::format("  fft_store({}u, v{});\n", k, y[k]);
    return text_ + "}\n";
  }

 private:
  using Numbers = std::vector<int>;  // variables

  int define(const std::string& value) {
    text_ += fmt::format("  NUMBER v{} = {};\n", next_, value);
    return next_++;
  }
  int add(int a, int b) { return define(fmt::format("v{} + v{}", a, b)); }
  int subtract(int a, int b) { return define(fmt::format("v{} - v{}", a, b)); }
  std::string literal(long double value) const { return fmt::format("{:.20g}{}", value, suffix_); }
  // Adds "x * 1.5" to a sum.
  void add_term(std::string& sum, const std::string& of, long double factor) const {
    const char* const sign = factor < 0 ? (sum.empty() ? "-" : " - ") : (sum.empty() ? "" : " + ");
    sum += fmt::format("{}{} * {}", sign, of, literal(std::fabs(factor)));
  }

  // The factors exp(-2 pi i r place / span) of a later pass. fft_unit computes those of r below a power of two and of
  // its multiples; the others are products of two.
  void twiddle(Numbers& x) {
    text_ += "#if TUFF_TWIDDLES\n";
    uint32_t low = 1;
    while (low * low < radix_) low *= 2;
    for (uint32_t r = 1; r < radix_; ++r) {
      if (r < low || r % low == 0) text_ += fmt::format("  const NUMBER w{} = fft_unit({}u);\n", r, r);
    }
    for (uint32_t r = 1; r < radix_; ++r) {
      const std::string factor = r < low || r % low == 0 ? fmt::format("w{}", r)
                                                         : fmt::format("fft_product(w{}, w{})", r % low, r / low * low);
      text_ += fmt::format("  v{0} = fft_product(v{0}, {1});\n", x[r], factor);
    }
    text_ += "#endif\n";
  }

  // v * exp(-2 pi i e / n)
  int turned(int v, uint32_t e, uint32_t n) {
    e %= n;
    if (e == 0) return v;
    if (8 * e % n == 0) {
      static constexpr const char* kTurns[] = {"",
                                               "{0} * NUMBER(v{1}.x + v{1}.y, v{1}.y - v{1}.x)",
                                               "NUMBER(v{1}.y, -v{1}.x)",
                                               "{0} * NUMBER(v{1}.y - v{1}.x, -v{1}.x - v{1}.y)",
                                               "-v{1}",
                                               "-{0} * NUMBER(v{1}.x + v{1}.y, v{1}.y - v{1}.x)",
                                               "NUMBER(-v{1}.y, v{1}.x)",
                                               "{0} * NUMBER(v{1}.x - v{1}.y, v{1}.x + v{1}.y)"};
      return define(fmt::format(fmt::runtime(kTurns[8 * e / n]), literal(std::numbers::sqrt2_v<long double> / 2), v));
    }
    const long double c = cosine(e, n), s = sine(e, n);
    const std::string x = fmt::format("v{}.x", v), y = fmt::format("v{}.y", v);
    std::string real, imaginary;
    add_term(real, x, c), add_term(real, y, s);
    add_term(imaginary, y, c), add_term(imaginary, x, -s);
    return define(fmt::format("NUMBER({}, {})", real, imaginary));
  }

  static long double cosine(uint32_t e, uint32_t n) {
    return std::cos(2 * std::numbers::pi_v<long double> * (e % n) / n);
  }
  static long double sine(uint32_t e, uint32_t n) {
    return std::sin(2 * std::numbers::pi_v<long double> * (e % n) / n);
  }

  Numbers transform(const Numbers& x) {
    const auto n = static_cast<uint32_t>(x.size());
    if (n == 1) return x;
    if (n == 2) return {add(x[0], x[1]), subtract(x[0], x[1])};
    if (n == 4) return transform4(x);
    uint32_t first = n % 4 == 0 ? 4 : 2;
    while (n % first != 0) ++first;
    return first == n ? transform_prime(x) : transform_parts(x, first);
  }

  Numbers transform4(const Numbers& x) {
    const int a = add(x[0], x[2]), b = subtract(x[0], x[2]), c = add(x[1], x[3]), d = subtract(x[1], x[3]);
    const int e = define(fmt::format("NUMBER(v{0}.x + v{1}.y, v{0}.y - v{1}.x)", b, d));
    const int f = define(fmt::format("NUMBER(v{0}.x - v{1}.y, v{0}.y + v{1}.x)", b, d));
    return {add(a, c), e, subtract(a, c), f};
  }

  // X[k], X[p - k] = x[0] + sum of (x[j] + x[p - j]) cos(2 pi j k / p) -+ i sum of (x[j] - x[p - j]) sin(2 pi j k / p)
  Numbers transform_prime(const Numbers& x) {
    const auto p = static_cast<uint32_t>(x.size());
    const uint32_t half = p / 2;
    Numbers sums, differences, result(p);
    std::string total = fmt::format("v{}", x[0]);
    for (uint32_t j = 1; j <= half; ++j) {
      sums.push_back(add(x[j], x[p - j]));
      differences.push_back(subtract(x[j], x[p - j]));
      total += fmt::format(" + v{}", sums.back());
    }
    result[0] = define(total);
    for (uint32_t k = 1; k <= half; ++k) {
      std::string even = fmt::format("v{}", x[0]), odd;
      for (uint32_t j = 1; j <= half; ++j) {
        add_term(even, fmt::format("v{}", sums[j - 1]), cosine(j * k, p));
        add_term(odd, fmt::format("v{}", differences[j - 1]), sine(j * k, p));
      }
      const int a = define(even), b = define(odd);
      result[k] = define(fmt::format("NUMBER(v{0}.x + v{1}.y, v{0}.y - v{1}.x)", a, b));
      result[p - k] = define(fmt::format("NUMBER(v{0}.x - v{1}.y, v{0}.y + v{1}.x)", a, b));
    }
    return result;
  }

  // Transforms of a numbers that are n / a apart, turned, then of n / a numbers.
  Numbers transform_parts(const Numbers& x, uint32_t a) {
    const auto n = static_cast<uint32_t>(x.size());
    const uint32_t b = n / a;
    std::vector<Numbers> columns(a, Numbers(b));
    for (uint32_t j = 0; j < b; ++j) {
      Numbers part;
      for (uint32_t i = 0; i < a; ++i) part.push_back(x[j + b * i]);
      part = transform(part);
      for (uint32_t k = 0; k < a; ++k) columns[k][j] = turned(part[k], j * k, n);
    }
    Numbers result(n);
    for (uint32_t k = 0; k < a; ++k) {
      const Numbers part = transform(columns[k]);
      for (uint32_t m = 0; m < b; ++m) result[k + a * m] = part[m];
    }
    return result;
  }

  uint32_t radix_;
  std::string suffix_, text_;
  int next_ = 0;
};

}  // namespace

const std::shared_ptr<const KernelBody>& fft::codelet(uint32_t radix, bool f64) {
  // Threads that write the same one at once write the same text; one of them is kept. None is destroyed, because a
  // thread may still use it while the process ends.
  using Body = std::shared_ptr<const KernelBody>;
  static std::array<std::array<std::atomic<const Body*>, kMaxRadix + 1>, 2> bodies{};
  std::atomic<const Body*>& body = bodies[f64 ? 1 : 0][radix];
  const Body* found = body.load(std::memory_order_acquire);
  if (found == nullptr) {
    auto written = std::make_unique<const Body>(std::make_shared<const KernelBody>(Writer(radix, f64).write()));
    if (body.compare_exchange_strong(found, written.get(), std::memory_order_acq_rel)) found = written.release();
  }
  return *found;
}

}  // namespace tuff
