#include "support/winograd.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace tuff_test {
namespace {

// The absolute values of A^T, B^T and G (Lavin and Gray 2015).
template <size_t tile>
struct Form;
template <>
struct Form<2> {
  static constexpr std::array<std::array<double, 4>, 2> output{{{1, 1, 1, 0}, {0, 1, 1, 1}}};
  static constexpr std::array<std::array<double, 4>, 4> input{{{1, 0, 1, 0}, {0, 1, 1, 0}, {0, 1, 1, 0}, {0, 1, 0, 1}}};
  static constexpr std::array<std::array<double, 3>, 4> filter{{{1, 0, 0}, {.5, .5, .5}, {.5, .5, .5}, {0, 0, 1}}};
};
template <>
struct Form<4> {
  static constexpr std::array<std::array<double, 6>, 4> output{
      {{1, 1, 1, 1, 1, 0}, {0, 1, 1, 2, 2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, 1, 8, 8, 1}}};
  static constexpr std::array<std::array<double, 6>, 6> input{{{4, 0, 5, 0, 1, 0},
                                                               {0, 4, 4, 1, 1, 0},
                                                               {0, 4, 4, 1, 1, 0},
                                                               {0, 2, 1, 2, 1, 0},
                                                               {0, 2, 1, 2, 1, 0},
                                                               {0, 4, 0, 5, 0, 1}}};
  static constexpr std::array<std::array<double, 3>, 6> filter{{{1. / 4, 0, 0},
                                                                {1. / 6, 1. / 6, 1. / 6},
                                                                {1. / 6, 1. / 6, 1. / 6},
                                                                {1. / 24, 1. / 12, 1. / 6},
                                                                {1. / 24, 1. / 12, 1. / 6},
                                                                {0, 0, 1}}};
};

// matrix * values * matrix^T
template <size_t to, size_t from>
std::array<std::array<double, to>, to> transformed(const std::array<std::array<double, from>, to>& matrix,
                                                   const std::array<std::array<double, from>, from>& values) {
  std::array<std::array<double, to>, to> result{};
  for (size_t i = 0; i < to; ++i) {
    for (size_t j = 0; j < to; ++j) {
      for (size_t a = 0; a < from; ++a) {
        for (size_t b = 0; b < from; ++b) result[i][j] += matrix[i][a] * values[a][b] * matrix[j][b];
      }
    }
  }
  return result;
}

template <size_t tile>
void take_larger(const ConvProblem& problem, std::vector<double>& sizes) {
  constexpr size_t span = tile + 2;
  const ConvShape& s = problem.shape;
  const bool last = s.layout == TUFF_LAYOUT_NHWC;
  const uint64_t height = s.extent(0), width = s.extent(1);
  const auto at = [&](uint64_t outer, uint64_t inner, uint64_t inners, uint64_t y, uint64_t x, uint64_t rows,
                      uint64_t cols) {
    return last ? ((outer * rows + y) * cols + x) * inners + inner : ((outer * inners + inner) * rows + y) * cols + x;
  };
  using Square = std::array<std::array<double, span>, span>;
  std::vector<Square> filters(s.filters * s.channels), inputs(s.channels);
  for (uint64_t k = 0; k < s.filters; ++k) {
    for (uint64_t c = 0; c < s.channels; ++c) {
      std::array<std::array<double, 3>, 3> window{};
      for (uint64_t r = 0; r < 3; ++r) {
        for (uint64_t t = 0; t < 3; ++t) {
          window[r][t] = std::fabs(static_cast<double>(problem.filter[at(k, c, s.channels, r, t, 3, 3)]));
        }
      }
      filters[k * s.channels + c] = transformed(Form<tile>::filter, window);
    }
  }
  for (uint64_t n = 0; n < s.batch; ++n) {
    for (uint64_t p = 0; p < height; p += tile) {
      for (uint64_t q = 0; q < width; q += tile) {
        for (uint64_t c = 0; c < s.channels; ++c) {
          Square values{};
          for (size_t i = 0; i < span; ++i) {
            for (size_t j = 0; j < span; ++j) {
              const uint64_t y = p + i - s.padding[0], x = q + j - s.padding[1];  // negative values wrap
              if (y >= s.height || x >= s.width) continue;
              const uint64_t place = at(n, c, s.channels, y, x, s.height, s.width);
              values[i][j] = std::fabs(static_cast<double>(problem.input[place]));
            }
          }
          inputs[c] = transformed(Form<tile>::input, values);
        }
        for (uint64_t k = 0; k < s.filters; ++k) {
          Square sums{};
          for (uint64_t c = 0; c < s.channels; ++c) {
            for (size_t i = 0; i < span; ++i) {
              for (size_t j = 0; j < span; ++j) sums[i][j] += filters[k * s.channels + c][i][j] * inputs[c][i][j];
            }
          }
          const auto outputs = transformed(Form<tile>::output, sums);
          for (uint64_t i = 0; i < std::min<uint64_t>(tile, height - p); ++i) {
            for (uint64_t j = 0; j < std::min<uint64_t>(tile, width - q); ++j) {
              double& size = sizes[at(n, k, s.filters, p + i, q + j, height, width)];
              size = std::max(size, outputs[i][j]);
            }
          }
        }
      }
    }
  }
}

}  // namespace

std::vector<double> winograd_sizes(const ConvProblem& problem) {
  std::vector<double> sizes(problem.shape.outputs(), 0);
  take_larger<2>(problem, sizes);
  take_larger<4>(problem, sizes);
  return sizes;
}

}  // namespace tuff_test
