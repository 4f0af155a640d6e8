// How far rounding may take a convolution by Winograd's minimal filtering: F(2 x 2, 3 x 3) and F(4 x 4, 3 x 3).
#pragma once

#include <vector>

#include "support/conv_problem.hpp"

namespace tuff_test {

// Roundings of an input's, a filter's and an output's transforms, each along two axes: of a line 3 (two products added
// to a third number, where a device has no fused instruction), 6 (beside them the constants) and 3.
inline constexpr double kWinogradRoundings = 2 * (3 + 6 + 3);

// For each output what its roundings are relative to: |A|^T ((|G| |g| |G|^T) . (|B|^T |d| |B|)) |A|, summed over the
// channels; of both forms the larger. Windows are 3 x 3, stride, dilation and groups 1.
std::vector<double> winograd_sizes(const ConvProblem& problem);

}  // namespace tuff_test
