// Writes the discrete Fourier transform of up to 64 numbers as straight-line GLSL. A composite size is cut into two
// (Cooley and Tukey 1965); a prime is computed by its definition, from sums and differences of the numbers that mirror
// each other. Sines and cosines are literals. Larger transforms are steps of these, with the numbers in shared memory
// between two steps (fft_pass.comp).
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <memory>
#include <numbers>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "kernels/fft/fft.hpp"
#include "planning/kernel_request.hpp"

namespace tuff {
namespace {

class Writer {
 public:
  explicit Writer(bool f64) : suffix_(f64 ? "lf" : "") {}

  std::string write(uint32_t radix) {
    text_ = "void fft_transform() {\n";
    Numbers x;
    for (uint32_t r = 0; r < radix; ++r) x.push_back(define(fmt::format("fft_load({}u)", r)));
    text_ += "#if TUFF_TWIDDLES\n";
    twiddle(x, "fft_unit({}u)");
    text_ += "#endif\n";
    const Numbers y = transform(x);
    text_ += "#if TUFF_STORE == 4\n";
    for (uint32_t k = 0; k <= radix; ++k) {
      const auto angle = std::numbers::pi_v<long double> * k / radix;
      text_ += fmt::format("  fft_store({}u, fft_join(v{}, v{}, NUMBER({:.20e}{}, {:.20e}{})));\n", k, y[k % radix],
                           y[(radix - k) % radix], std::cos(angle), suffix_, -std::sin(angle), suffix_);
    }
    text_ += "#else\n";
    for (uint32_t k = 0; k < radix; ++k) text_ += fmt::format("  fft_store({}u, v{});\n", k, y[k]);
    return text_ + "#endif\n}\n";
  }

  std::string write_steps(std::span<const uint32_t> radices) {
    uint32_t size = 1;
    for (const uint32_t radix : radices) size *= radix;
    const uint32_t line = fft::line_of(size);
    text_ = fmt::format(
        "shared NUMBER fft_number[TUFF_COLUMNS * {0}u];\nuint fft_at(uint i) {{ return fft_line * {0}u + i + i / {1}u; "
        "}}\n",
        line, radices[0] == 32 ? 32 : 16);
    std::string calls = "  fft_take(bool(TUFF_READ_ACROSS));\n";
    uint32_t passed = 1;
    for (uint32_t step = 0; step < radices.size(); ++step) {
      const bool last = step + 1 == radices.size();
      if (last) calls += "  if (TUFF_READ_ACROSS != TUFF_WRITE_ACROSS) fft_take(bool(TUFF_WRITE_ACROSS));\n";
      calls += fmt::format("  fft_step{}();\n", step);
      write_step(step, size, radices[step], passed, last);
      passed *= radices[step];
    }
    // Numbers k and size - k of a transform of real numbers come from the same two.
    calls += fmt::format(
        "#if TUFF_STORE == 4\n"
        "  for (uint k = fft_lane; k <= {1}u; k += TUFF_LANES) {{\n"
        "    const NUMBER a = fft_number[fft_at(k)], b = fft_number[fft_at(k == 0 ? 0 : {0}u - k)];\n"
        "    const NUMBER root = fft_real_root(k);\n"
        "    fft_store(k, fft_join(a, b, root));\n"
        "    if (2 * k != {0}u) fft_store({0}u - k, fft_join(b, a, NUMBER(-root.x, root.y)));\n"
        "  }}\n"
        "#endif\n",
        size, size / 2);
    return text_ + "void fft_transform() {\n" + calls + "}\n";
  }

 private:
  using Numbers = std::vector<int>;  // variables

  // All lanes take part, since they meet at barriers; surplus ones compute the last column again and store nothing.
  void write_step(uint32_t step, uint32_t size, uint32_t radix, uint32_t passed, bool last) {
    const uint32_t columns = size / radix;
    next_ = 0;
    text_ += fmt::format("void fft_step{}() {{\n  const uint j = min(fft_lane, {}u), place = j % {}u;\n", step,
                         columns - 1, passed);
    Numbers x;
    for (uint32_t r = 0; r < radix; ++r) {
      x.push_back(define(step == 0 ? fmt::format("fft_load(j + {}u)", r * columns)
                                   : fmt::format("fft_number[fft_at(j + {}u)]", r * columns)));
    }
    if (step == 0) {
      text_ += "#if TUFF_TWIDDLES\n";
      for (uint32_t r = 0; r < radix; ++r) {
        text_ += fmt::format("  v{0} = fft_product(v{0}, fft_unit(j + {1}u));\n", x[r], r * columns);
      }
      text_ += "#endif\n";
    } else {
      twiddle(x, "fft_root({}u * place, " + root_arguments(passed * radix) + ")");
    }
    const Numbers y = transform(x);
    if (last) {
      text_ += fmt::format("#if TUFF_STORE != 4\n  if (fft_lane < {}u) {{\n", columns);
      for (uint32_t k = 0; k < radix; ++k) text_ += fmt::format("    fft_store(j + {}u, v{});\n", k * columns, y[k]);
      text_ += "  }\n#else\n";
    }
    if (step != 0) text_ += "  barrier();\n";
    text_ += fmt::format("  if (fft_lane < {}u) {{\n", columns);
    for (uint32_t k = 0; k < radix; ++k) {
      text_ += fmt::format("    fft_number[fft_at((j - place) * {}u + place + {}u)] = v{};\n", radix, k * passed, y[k]);
    }
    text_ += "  }\n  barrier();\n";
    text_ += last ? "#endif\n}\n" : "}\n";
  }

  // The arguments of fft_root for this span, but the first.
  std::string root_arguments(uint32_t span) const {
    const double angle = std::numbers::pi / 2 / span;
    const auto quarter = static_cast<float>(4.0 / span), high = static_cast<float>(angle);
    const auto low = static_cast<float>(angle - static_cast<double>(high));
    const auto word = [](float x) { return std::bit_cast<uint32_t>(x); };
    if (!suffix_.empty()) return fmt::format("{}u, uintBitsToFloat({}u), {}", span, word(quarter), literal(angle));
    return fmt::format("{}u, uintBitsToFloat({}u), uintBitsToFloat(uvec2({}u, {}u))", span, word(quarter), word(high),
                       word(low));
  }

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

  // The factors exp(-2 pi i r place / span) of a later pass. `unit` computes those of 1 and of a power of two near the
  // square root of the radix; the others are products of these, of at most five.
  void twiddle(Numbers& x, const std::string& unit) {
    const auto radix = static_cast<uint32_t>(x.size());
    uint32_t low = 1;
    while (low * low < radix) low *= 2;
    const auto product = [&](uint32_t r, uint32_t a, uint32_t b) {
      text_ += fmt::format("  const NUMBER w{} = fft_product(w{}, w{});\n", r, a, b);
    };
    for (uint32_t r = 1; r < radix; ++r) {
      if (r == 1 || r == low) {
        text_ += fmt::format("  const NUMBER w{} = {};\n", r, fmt::format(fmt::runtime(unit), r));
      } else if (r < low) {
        product(r, r / 2, r - r / 2);
      } else if (r % low == 0) {
        product(r, r / low / 2 * low, r - r / low / 2 * low);
      } else {
        product(r, r % low, r / low * low);
      }
    }
    for (uint32_t r = 1; r < radix; ++r) text_ += fmt::format("  v{0} = fft_product(v{0}, w{1});\n", x[r], r);
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

  std::string suffix_, text_;
  int next_ = 0;
};

}  // namespace

// Threads that write the same text at once do so twice; one is kept. None is destroyed, because a thread may still use
// it while the process ends.
const std::shared_ptr<const KernelBody>& fft::codelet(std::span<const uint32_t> radices, bool f64) {
  struct Written {
    std::array<uint32_t, kMaxSteps> radices{};
    bool f64 = false;
    std::shared_ptr<const KernelBody> body;
    const Written* next = nullptr;
  };
  static std::atomic<const Written*> all{nullptr};
  std::array<uint32_t, kMaxSteps> wanted{};
  std::copy(radices.begin(), radices.end(), wanted.begin());
  const auto find = [&](const Written* from, const Written* until) {
    while (from != until && (from->f64 != f64 || from->radices != wanted)) from = from->next;
    return from == until ? nullptr : from;
  };
  const Written* first = all.load(std::memory_order_acquire);
  const Written* found = find(first, nullptr);
  if (found != nullptr) return found->body;
  Writer writer(f64);
  auto written = std::make_unique<Written>();
  written->radices = wanted, written->f64 = f64;
  written->body =
      std::make_shared<const KernelBody>(radices.size() == 1 ? writer.write(radices[0]) : writer.write_steps(radices));
  while (true) {
    written->next = first;
    if (all.compare_exchange_weak(first, written.get(), std::memory_order_acq_rel)) return written.release()->body;
    found = find(first, written->next);
    if (found != nullptr) return found->body;
  }
}

}  // namespace tuff
