// Normalisations of rows, solved in f64 with a bound for each element.
#pragma once

#include <cstdint>
#include <vector>

#include "support/tensor.hpp"

namespace tuff_test {

// How far a device's numbers may be off.
struct NormErrors {
  double mean, scale;  // scale: of 1 / sqrt(variance + epsilon), relatively
  // (x - mean) * scale, for an x at this distance from the mean.
  double normal(double distance, double exact_scale) const;
};
// For n elements of at most this magnitude. Without centring, the mean is 0.
NormErrors norm_errors(bool centred, uint64_t n, double largest, double variance, double with_epsilon);

// Solves elements first … first + n - 1 as one row, into the same elements of expected: y = (x - mean) / sqrt(variance
// + epsilon) * weight + bias. Without centring, mean is 0. Element j uses weight and bias channel + j / inner; 1 and 0
// if there are none.
struct NormRow {
  bool centred = true;
  double epsilon = 0;
  uint64_t first = 0, n = 0, channel = 0, inner = 1;
};
void solve_norm(const NormRow& row, const std::vector<float>& x, const std::vector<float>& weight,
                const std::vector<float>& bias, Expected& expected);

}  // namespace tuff_test
