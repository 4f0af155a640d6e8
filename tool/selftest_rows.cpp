// Softmax, reductions and normalisations.
#include "tool/selftest_cases.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

namespace tool {
namespace {

using tuff::DType;

struct Axis {
  std::vector<uint64_t> shape;
  uint32_t axis;
};

std::string axis_text(const Axis& a) { return fmt::format("{} axis {}", fmt::join(a.shape, "x"), a.axis); }

uint64_t product(const std::vector<uint64_t>& shape) {
  uint64_t count = 1;
  for (const uint64_t size : shape) count *= size;
  return count;
}

Case softmax_case(const Axis& a) {
  Case entry{"softmax", axis_text(a), {}};
  entry.make = [=](uint64_t seed) {
    const uint64_t count = product(a.shape);
    constexpr double kRange = 8;
    Problem problem;
    problem.operation = entry.operation;
    problem.shape = entry.shape;
    problem.inputs.push_back(Random(seed).uniform(count, -kRange, kRange));
    problem.output = poison(count);
    problem.call = [=](const tuff::Context& context, const Buffers& in, const tuff::Buffer& out) {
      context.softmax(DType::f32, in[0], out, a.shape, a.axis);
    };
    problem.bound = [=](const Problem&, const Tensor& reference, const HostRun&) {
      // Numerator and denominator each have one subtraction and one exponential; the denominator is also a sum.
      const double each = 2 * kRounding * (2 * kRange) + exp_error(2 * kRange);
      const double relative = std::expm1(2 * each) + gamma(static_cast<double>(a.shape[a.axis]) + 4);
      Bound bound;
      for (const float value : reference) bound.push_back(relative * value + kSmallest);
      return bound;
    };
    return problem;
  };
  return entry;
}

// --- reduce -----------------------------------------------------------------------------------------

enum class Gives { same, sum, real, place, truth, count };  // the types of results
struct Reduction {
  const char* name;
  tuff::Reduce op;
  Gives gives;

  bool numbers() const { return gives <= Gives::real; }  // the results are f32 for f32
};

constexpr Reduction kReduce[] = {
#define REDUCE(number, NAME, name, gathers, result, output, ...) {#name, tuff::Reduce::name, Gives::output},
#include "kernels/reduce/reduce.def"
};

Case reduce_case(const char* name, tuff::Reduce op, const Axis& a, bool integers = false) {
  Case entry{fmt::format("reduce {}", name), axis_text(a) + (integers ? " integers" : ""), {}};
  const Call call = [=](const tuff::Context& context, const Buffers& in, const tuff::Buffer& out) {
    context.reduce(DType::f32, op, in[0], out, a.shape, a.axis);
  };
  entry.make = [=](uint64_t seed) {
    const uint64_t count = product(a.shape);
    Random random(seed);
    Problem problem{entry.operation, entry.shape, {}, poison(count / a.shape[a.axis]), call, exact};
    const bool product = op == tuff::Reduce::prod;  // of values near 1, so that the product stays in range
    problem.inputs.push_back(integers  ? random.integers(count, 8)
                             : product ? random.uniform(count, 0.99, 1.01)
                                       : random.uniform(count, -1, 1));
    if (product) {
      problem.bound = [n = static_cast<double>(a.shape[a.axis])](const Problem&, const Tensor& reference,
                                                                 const HostRun&) {
        Bound bound;
        for (const float value : reference) bound.push_back(gamma(n + 1) * std::fabs(static_cast<double>(value)));
        return bound;
      };
    }
    const bool sums = op == tuff::Reduce::sum || op == tuff::Reduce::mean;
    // Whatever the tree's shape, no element goes through more additions than there are elements.
    if (sums && !integers) problem.bound = accumulated(static_cast<double>(a.shape[a.axis]) + 1, call);
    // Sums of terms that are not negative. Means, and maxima, are at most 1, and so are the terms' own errors.
    if (op >= tuff::Reduce::sum_squares) {
      problem.bound = [n = static_cast<double>(a.shape[a.axis])](const Problem&, const Tensor& reference,
                                                                 const HostRun&) {
        Bound bound;
        for (const float value : reference)
          bound.push_back(gamma(n + 16) * (std::fabs(static_cast<double>(value)) + 4));
        return bound;
      };
    }
    return problem;
  };
  return entry;
}

// --- normalisations ---------------------------------------------------------------------------------

// Normalises rows by their own mean and variance. The mean of n values of magnitude at most 4 is off by at most
// gamma_n times 4, and so is every difference from it. The deviation's relative error is up to twice that.
Case norm_case(const char* name, bool centred, uint64_t rows, uint64_t cols) {
  Case entry{name, fmt::format("{} rows of {}", rows, cols), {}};
  entry.make = [=](uint64_t seed) {
    Random random(seed);
    Problem problem;
    problem.operation = entry.operation;
    problem.shape = entry.shape;
    constexpr double kRange = 4;
    problem.inputs = {random.uniform(rows * cols, -kRange, kRange), random.uniform(cols, 0.5, 2),
                      random.uniform(cols, -1, 1)};
    problem.output = poison(rows * cols);
    problem.call = [=](const tuff::Context& context, const Buffers& in, const tuff::Buffer& out) {
      if (centred) {
        context.layer_norm(DType::f32, in[0], in[1], in[2], out, rows, cols, 1e-5);
      } else {
        context.rms_norm(DType::f32, in[0], in[1], out, rows, cols, 1e-5);
      }
    };
    problem.bound = [=](const Problem& self, const Tensor& reference, const HostRun&) {
      Bound bound(reference.size());
      for (uint64_t row = 0; row < rows; ++row) {
        const float* x = self.inputs[0].data() + row * cols;
        double mean = 0, squares = 0;
        for (uint64_t i = 0; centred && i < cols; ++i) mean += x[i] / static_cast<double>(cols);
        for (uint64_t i = 0; i < cols; ++i) squares += (x[i] - mean) * (x[i] - mean);
        const double scale = 1 / std::sqrt(squares / static_cast<double>(cols) + 1e-5);
        const double each = gamma(static_cast<double>(cols) + 16);
        for (uint64_t i = 0; i < cols; ++i) {
          const double w = self.inputs[1][i], b = centred ? self.inputs[2][i] : 0;
          const double relative = each * (2 + 4 * kRange * scale);
          bound[row * cols + i] = w * scale * (kRange * each + std::fabs(x[i] - mean) * relative) +
                                  8 * kRounding * (w * scale * std::fabs(x[i] - mean) + std::fabs(b)) + kSmallest;
        }
      }
      return bound;
    };
    return problem;
  };
  return entry;
}

}  // namespace

void add_row_cases(std::vector<Case>& cases) {
  const Axis axes[] = {{{1000}, 0}, {{37, 129}, 1}, {{129, 37}, 0}, {{5, 64, 33}, 1}, {{100003}, 0}};
  for (const Axis& axis : axes) cases.push_back(softmax_case(axis));
  for (const Reduction& row : kReduce) {
    if (!row.numbers()) continue;
    for (const Axis& axis : axes) cases.push_back(reduce_case(row.name, row.op, axis));
  }
  cases.push_back(reduce_case("sum", tuff::Reduce::sum, Axis{{300, 1001}, 1}, true));
  for (const auto& [rows, cols] : {std::pair{uint64_t{300}, uint64_t{64}}, {37, 1025}, {5, 4096}, {2, 50'001}}) {
    cases.push_back(norm_case("layer_norm", true, rows, cols));
    cases.push_back(norm_case("rms_norm", false, rows, cols));
  }
  for (const Reduction& row : kReduce) {
    if (row.numbers()) continue;
    const DType type = row.gives == Gives::place ? DType::u32 : row.gives == Gives::count ? DType::i64 : DType::boolean;
    for (const uint32_t axis : {0, 1}) {
      cases.push_back(exact_case(
          fmt::format("reduce {}", row.name), axis == 0 ? "3000x50 axis 0" : "50x3000 axis 1", {150'000}, 50,
          [op = row.op, type, axis](const tuff::Context& context, const Buffers& in, const auto& out) {
            // Converted to floats, so that the comparison of results treats indices and counts as numbers.
            const tuff::Buffer numbers = context.alloc_bytes(8 * 50);
            const std::vector<uint64_t> shape = {axis == 0 ? uint64_t{3000} : 50, axis == 0 ? uint64_t{50} : 3000};
            context.reduce(DType::f32, op, in[0], numbers, shape, axis);
            context.cast(type, DType::f32, numbers, out, 50);
          }));
    }
  }
}

}  // namespace tool
