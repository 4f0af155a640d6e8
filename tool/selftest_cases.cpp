#include "tool/selftest_cases.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace tool {
namespace {

Tensor magnitude(Tensor values) {
  for (auto& value : values) value = std::fabs(value);
  return values;
}

}  // namespace

double gamma(double n) { return n * kRounding / (1 - n * kRounding); }
double exp_error(double x) { return (3 + 2 * std::fabs(x)) * 2 * kRounding; }

Tensor Random::uniform(uint64_t count, double low, double high) {
  Tensor values(count);
  for (auto& value : values) value = static_cast<float>(low + (high - low) * unit());
  return values;
}

Tensor Random::integers(uint64_t count, int magnitude) {
  Tensor values(count);
  for (auto& value : values) value = static_cast<float>(static_cast<int>(unit() * (2 * magnitude + 1)) - magnitude);
  return values;
}

double Random::unit() {  // splitmix64
  uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

Tensor poison(uint64_t count) { return Tensor(count, std::numeric_limits<float>::quiet_NaN()); }

ErrorBound accumulated(double n, Call over_magnitudes) {
  return [n, over_magnitudes](const Problem& problem, const Tensor& reference, const HostRun& host) {
    std::vector<Tensor> inputs;
    for (const auto& input : problem.inputs) inputs.push_back(magnitude(input));
    const Tensor sums = host(over_magnitudes, inputs, magnitude(problem.output));
    Bound bound(reference.size());
    for (size_t i = 0; i < bound.size(); ++i) {
      bound[i] = gamma(n) * sums[i] * (1 + 2 * kRounding) + kRounding * std::fabs(static_cast<double>(reference[i]));
    }
    return bound;
  };
}

Bound exact(const Problem&, const Tensor& reference, const HostRun&) { return Bound(reference.size(), 0.0); }

Case exact_case(std::string operation, std::string shape, std::vector<uint64_t> inputs, uint64_t results, Call call) {
  Case entry{std::move(operation), std::move(shape), {}};
  entry.make = [=](uint64_t seed) {
    Random random(seed);
    Problem problem{entry.operation, entry.shape, {}, poison(results), call, exact};
    for (const uint64_t count : inputs) problem.inputs.push_back(random.uniform(count, -300, 300));
    return problem;
  };
  return entry;
}

Case within(Case entry, double bound) {
  entry.make = [make = entry.make, bound](uint64_t seed) {
    Problem problem = make(seed);
    problem.bound = [bound](const Problem&, const Tensor& reference, const HostRun&) {
      return Bound(reference.size(), bound);
    };
    return problem;
  };
  return entry;
}

std::vector<Case> selftest_cases() {
  std::vector<Case> cases;
  add_product_cases(cases);
  add_row_cases(cases);
  add_elementwise_cases(cases);
  add_shape_cases(cases);
  add_type_cases(cases);
  add_linalg_cases(cases);
  add_sparse_cases(cases);
  std::stable_sort(cases.begin(), cases.end(), [](const Case& a, const Case& b) { return a.operation < b.operation; });
  return cases;
}

}  // namespace tool
