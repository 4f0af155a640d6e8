#include "support/norm_problem.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "support/bounds.hpp"

namespace tuff_test {

// y = d s w + b with d = x - mean, s = 1 / sqrt(v + epsilon). A device's mean is off by at most `shift`: sums and
// merges of means below the largest |x|, with four roundings each. The squares have as many roundings, and are taken
// about means that are off themselves: by Cauchy's inequality that adds n shift sigma each, within a lane's steps,
// over the lanes and over the segments.
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
  const double roundings = 4 * sum_depth(n) + 16;
  const double shift = row.centred ? gamma(roundings) * largest : 0;
  const double off = gamma(roundings) * variance + 12 * shift * std::sqrt(variance) + 12 * shift * shift;
  const double ratio = off / with_epsilon, scale = 1 / std::sqrt(with_epsilon);
  const double scale_error = (ratio < 1 ? 1 / std::sqrt(1 - ratio) - 1 : INFINITY) + 8 * kU;
  for (uint64_t j = 0; j < n; ++j) {
    const uint64_t channel = row.channel + j / row.inner;
    const double w = weight.empty() ? 1 : weight[channel], b = bias.empty() ? 0 : bias[channel];
    const double d = x[first + j] - mean, y = d * scale * w + b;
    const double far = std::fabs(d) + shift, normal = std::fabs(w) * scale * far * (1 + scale_error);
    expected.value[first + j] = y;
    expected.bound[first + j] = std::fabs(w) * scale * (shift * (1 + scale_error) + std::fabs(d) * scale_error) +
                                6 * kU * normal + 2 * kU * (std::fabs(b) + std::fabs(y)) + FLT_MIN;
  }
}

}  // namespace tuff_test
