// The rounding error of convolution by Winograd's minimal filtering: F(2 x 2, 3 x 3) and F(4 x 4, 3 x 3).
#pragma once

#include <vector>

#include "support/conv_problem.hpp"

namespace tuff_test {

// Roundings of the input's, the filter's and the output's transforms, each along two axes. One line of them takes 3
// (two products added to a third number, without fused operations), 6 (the constants count too) and 3 roundings.
inline constexpr double kWinogradRoundings = 2 * (3 + 6 + 3);

// The magnitude that each output's rounding errors are relative to: |A|^T ((|G| |g| |G|^T) . (|B|^T |d| |B|)) |A|,
// summed over the channels; the larger one of both variants. Filters are 3 x 3 with stride, dilation and groups 1.
std::vector<double> winograd_sizes(const ConvProblem& problem);

}  // namespace tuff_test
