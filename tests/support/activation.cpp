#include "support/activation.hpp"

#include <algorithm>
#include <cmath>

#include "support/bounds.hpp"
#include "tuff/tuff.h"

namespace tuff_test {

using Wide = long double;

Wide activated(int32_t activation, Wide x) {
  switch (activation) {
    case TUFF_ACTIVATION_RELU: return std::max<Wide>(x, 0);
    case TUFF_ACTIVATION_GELU: return x * std::erfc(-x / std::sqrt(Wide{2})) / 2;
    case TUFF_ACTIVATION_GELU_TANH: {
      const Wide root = std::sqrt(2 / std::acos(Wide{-1}));
      // (1 + tanh(y)) / 2 equals the sigmoid of 2 y, which does not lose digits to cancellation for negative y.
      return x / (1 + std::exp(-2 * root * (x + Wide{0.044715L} * x * x * x)));
    }
    case TUFF_ACTIVATION_SILU: return x / (1 + std::exp(-x));
    case TUFF_ACTIVATION_RELU6: return std::clamp<Wide>(x, 0, 6);
    default: return x;
  }
}

double activation_error(int32_t activation, double x, double u) {
  const double size = std::fabs(x), exp_of = u / kU;
  switch (activation) {
    case TUFF_ACTIVATION_GELU: {
      // erfc = exp(-x^2/2) * series / (1 + 2 z). The series takes 12 (f64: 27) steps on an argument within [-1, 1],
      // each rounded once; its coefficients' magnitudes add up to less than twice its value. The fit has an error of
      // its own.
      const double relative = exp_error(size * size / 2) * exp_of + (1.5 * size * size + 4 * 27 + 16) * u;
      return size * (std::erfc(size / std::sqrt(2)) / 2 * relative + 4 * u);
    }
    case TUFF_ACTIVATION_GELU_TANH:
    case TUFF_ACTIVATION_SILU: {
      const double y = activation == TUFF_ACTIVATION_SILU ? x : 1.5957691216057308 * (x + 0.044715 * x * x * x);
      const double sigmoid = 1 / (1 + std::exp(-y));
      return size * sigmoid * ((1 - sigmoid) * (exp_error(y) * exp_of + 6 * u * std::fabs(y)) + 8 * u);
    }
    default: return 0;
  }
}

}  // namespace tuff_test
