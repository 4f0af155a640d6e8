// Unary and binary operations.
#include "tool/selftest_cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tool {
namespace {

using tuff::DType;

// n units in the last place of the reference, plus the one rounding of the reference itself.
auto ulps(double n) {
  return [n](const Problem&, const Tensor& reference, const HostRun&) {
    Bound bound;
    bound.reserve(reference.size());
    for (const float value : reference) {
      bound.push_back((n + 0.5) * std::max(2 * kRounding * std::fabs(static_cast<double>(value)), kSmallest));
    }
    return bound;
  };
}

template <typename Op>
struct Elementwise {
  const char* name;
  Op op;
  double low, high;
  double error_in_ulps;  // 0: exact
};

// The library's tables of operations, with the errors that they promise.
constexpr Elementwise<tuff::Unary> kUnary[] = {
#define UNARY(number, NAME, name, file, ulps, measured, measured_gpu, flops, alpha, low, high, y, dy) \
  {#name, tuff::Unary::name, low, high, ulps},
#include "kernels/elementwise/unary.def"
};
constexpr Elementwise<tuff::Binary> kBinary[] = {
#define BINARY(number, NAME, name, python, file, ulps, measured, measured_gpu, flops, integers, low, high, y) \
  {#name, tuff::Binary::name, low, high, ulps},
#include "kernels/elementwise/binary.def"
};

void call(const tuff::Context& context, tuff::Unary op, const Buffers& in, const tuff::Buffer& out, uint64_t n) {
  context.unary(DType::f32, op, in[0], out, n);
}
void call(const tuff::Context& context, tuff::Binary op, const Buffers& in, const tuff::Buffer& out, uint64_t n) {
  context.binary(DType::f32, op, in[0], in[1], out, n);
}

// The error that gelu_tanh's own argument adds to its bound, in units in the last place (docs/accuracy.md). The result
// is x times the sigmoid of t, and t takes seven roundings. The sigmoid scales a relative error of t by t (1 -
// sigmoid(t)).
double gelu_tanh_ulps(double x) {
  const double t = std::sqrt(8 / std::acos(-1.0)) * (x + 0.044715 * x * x * x);
  return 7 * std::fabs(t) / (1 + std::exp(t));
}

Case with_gelu_tanh_bound(Case entry, double error_in_ulps) {
  entry.make = [make = entry.make, error_in_ulps](uint64_t seed) {
    Problem problem = make(seed);
    problem.bound = [error_in_ulps](const Problem& self, const Tensor& reference, const HostRun& host) {
      Bound bound = ulps(1)(self, reference, host);
      for (size_t i = 0; i < bound.size(); ++i) {
        bound[i] *= error_in_ulps + gelu_tanh_ulps(self.inputs[0][i]);
      }
      return bound;
    };
    return problem;
  };
  return entry;
}

template <typename Op>
Case elementwise_case(const char* family, const Elementwise<Op>& e, size_t operands, uint64_t n) {
  Case entry{fmt::format("{} {}", family, e.name), fmt::format("n={}", n), {}};
  entry.make = [=](uint64_t seed) {
    Random random(seed);
    Problem problem;
    problem.operation = entry.operation;
    problem.shape = entry.shape;
    for (size_t i = 0; i < operands; ++i) problem.inputs.push_back(random.uniform(n, e.low, e.high));
    problem.output = poison(n);
    problem.call = [=](const tuff::Context& context, const Buffers& in, const tuff::Buffer& out) {
      call(context, e.op, in, out, n);
    };
    if (e.error_in_ulps == 0) {
      problem.bound = exact;
    } else {
      problem.bound = ulps(e.error_in_ulps);
    }
    return problem;
  };
  return entry;
}

}  // namespace

void add_elementwise_cases(std::vector<Case>& cases) {
  for (const uint64_t n : {1, 1023, 100003}) {
    for (const auto& unary : kUnary) {
      cases.push_back(elementwise_case("unary", unary, 1, n));
      if (unary.op == tuff::Unary::gelu_tanh) cases.back() = with_gelu_tanh_bound(cases.back(), unary.error_in_ulps);
    }
    for (const auto& binary : kBinary) cases.push_back(elementwise_case("binary", binary, 2, n));
  }
}

}  // namespace tool
