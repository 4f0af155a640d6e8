// Checks of the operation tables that neither a compiler nor a generator makes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/elementwise/elementwise_ops.hpp"
#include "kernels/reduce/reduce_ops.hpp"

namespace tuff {
namespace {

struct UnaryRow {
  int32_t number;
  const char* name;
  double ulps, measured, measured_gpu, alpha, low, high;
  double (*y)(double x, double alpha);
  double (*dy)(double x, double y, double alpha);
};

using namespace elementwise;

constexpr UnaryRow kRows[] = {
#define UNARY(number, NAME, name, file, ulps, measured, measured_gpu, flops, alpha_by_default, low, high, y_, dy) \
  {number,                                                                                                        \
   #name,                                                                                                         \
   ulps,                                                                                                          \
   measured,                                                                                                      \
   measured_gpu,                                                                                                  \
   alpha_by_default,                                                                                              \
   low,                                                                                                           \
   high,                                                                                                          \
   [](double x, [[maybe_unused]] double alpha) -> double { return y_; },                                          \
   []([[maybe_unused]] double x, [[maybe_unused]] double y, [[maybe_unused]] double alpha) -> double { return dy; }},
#include "kernels/elementwise/unary.def"
};

// Compares with the central difference over 2 h. Its error is h^2/6 of the third derivative, which is at most 20 times
// f on this range (for log at 0.1: 2 / x^3), plus the rounding errors of two values divided by 2 h. Functions that have
// a pole at each end of a narrow range are compared in its inner nine tenths.
TEST(OperationTables, DerivativesAreThoseOfTheFunctions) {
  constexpr double h = 1e-5;
  for (const UnaryRow& row : kRows) {
    int points = 0;
    const bool narrow = row.high - row.low < 3;
    const double edge = narrow ? (row.high - row.low) / 20 : 0;
    for (double x = -7.91; x < 7.99;
         x += narrow ? 0.087 : 0.37) {  // avoids points where the function or derivative jumps
      if (x < row.low + edge || x > row.high - edge) continue;
      ++points;
      const double y = row.y(x, row.alpha);
      const double difference = (row.y(x + h, row.alpha) - row.y(x - h, row.alpha)) / (2 * h);
      const double bound = h * h * (2000 + 20 * std::fabs(y)) / 6 + 4 * 0x1p-52 * (1 + std::fabs(y)) / h;
      EXPECT_NEAR(row.dy(x, y, row.alpha), difference, bound) << row.name << " at " << x;
    }
    EXPECT_GT(points, 10) << row.name;
  }
}

TEST(OperationTables, NumbersFollowOneAnotherAndPromisesAreKept) {
  int32_t number = 0;
  for (const UnaryRow& row : kRows) {
    EXPECT_EQ(row.number, ++number) << row.name;
    EXPECT_LT(row.low, row.high) << row.name;
    if (row.number != TUFF_UNARY_GELU_TANH) {  // its bound grows where the argument is large
      EXPECT_LE(std::max(row.measured, row.measured_gpu), row.ulps) << row.name;
    }
    EXPECT_EQ(row.ulps == 0, row.measured == 0) << row.name;
  }
  number = 0;
  for (const BinaryOp& op : kBinaryOps) EXPECT_EQ(op.op, ++number) << op.name;
  number = 0;
  for (const reduce::Op& op : reduce::table::kOps) EXPECT_EQ(op.op, ++number) << op.name;
}

TEST(OperationTables, WhatGathersIsARowThatGathersItself) {
  for (const reduce::Op& op : reduce::table::kOps) {
    if (op.result == reduce::Result::place) {
      EXPECT_EQ(op.gathers, 0) << op.name;
    } else {
      ASSERT_NE(reduce::find(op.gathers), nullptr) << op.name;
      EXPECT_EQ(reduce::find(op.gathers)->gathers, op.gathers) << op.name;
    }
  }
}

}  // namespace
}  // namespace tuff
