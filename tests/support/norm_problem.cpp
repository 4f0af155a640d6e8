#include "support/norm_problem.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "support/bounds.hpp"

namespace tuff_test {

// A device's mean is off by at most `mean`: sums and merges of means below the largest |x|, with four roundings each.
// The squares have as many roundings, and are taken about means that are off themselves: by Cauchy's inequality that
// adds n mean sigma each, within a lane's steps, over the lanes and over the segments.
NormErrors norm_errors(bool centred, uint64_t n, double largest, double variance, double with_epsilon) {
  const double roundings = 4 * sum_depth(n) + 16, mean = centred ? gamma(roundings) * largest : 0;
  const double off = gamma(roundings) * variance + 12 * mean * std::sqrt(variance) + 12 * mean * mean;
  const double ratio = off / with_epsilon;
  return {mean, (ratio < 1 ? 1 / std::sqrt(1 - ratio) - 1 : INFINITY) + 8 * kU};
}

double NormErrors::normal(double distance, double exact_scale) const {
  return exact_scale * (mean * (1 + scale) + distance * scale + 6 * kU * (distance + mean) * (1 + scale));
}

// y = d s w + b with d = x - mean, s = 1 / sqrt(v + epsilon).
void solve_norm(const NormRow& row, const std::vector<float>& x, const std::vector<float>& weight,
                const std::vector<float>& bias, Expected& expected) {
  const uint64_t first = row.first, n = row.n;
  double mean = 0, squares = 0, largest = 0;
  for (uint64_t j = 0; j < n; ++j) {
    mean += row.centred ? x[first + j] : 0;
    largest = std::max(largest, std::fabs(static_cast<double>(x[first + j])));
  }
  mean /= static_cast<double>(n);
  for (uint64_t j = 0; j < n; ++j) squares += (x[first + j] - mean) * (x[first + j] - mean);
  const double variance = squares / static_cast<double>(n), with_epsilon = variance + static_cast<float>(row.epsilon);
  const NormErrors off = norm_errors(row.centred, n, largest, variance, with_epsilon);
  const double scale = 1 / std::sqrt(with_epsilon);
  for (uint64_t j = 0; j < n; ++j) {
    const uint64_t channel = row.channel + j / row.inner;
    const double w = weight.empty() ? 1 : weight[channel], b = bias.empty() ? 0 : bias[channel];
    const double d = x[first + j] - mean, y = d * scale * w + b;
    expected.value[first + j] = y;
    expected.bound[first + j] =
        std::fabs(w) * off.normal(std::fabs(d), scale) + 2 * kU * (std::fabs(b) + std::fabs(y)) + FLT_MIN;
  }
}

}  // namespace tuff_test
