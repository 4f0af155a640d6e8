// The samples of rows that support/sample.hpp chooses.
#include "support/sample.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace tuff_test::sample_test {
namespace {

std::string row(int i) { return "On/Table.Row/vulkan_n" + std::to_string(i); }

TEST(Sample, KeepsOneRowInN) {
  constexpr int kRows = 100'000;
  for (const uint64_t share : {1, 2, 3, 10, 40, 1000}) {
    for (const uint64_t seed : {0, 1, 2, 77}) {
      const Sample sample{share, seed};
      int kept = 0;
      for (int i = 0; i < kRows; ++i) kept += sample.keeps(row(i));
      // Six standard deviations of the binomial distribution.
      const double p = 1.0 / static_cast<double>(share), expected = kRows * p;
      EXPECT_NEAR(kept, expected, 6 * std::sqrt(expected * (1 - p))) << share << ":" << seed;
    }
  }
}

TEST(Sample, ALargerShareKeepsSomeOfTheSameRows) {
  const Sample many{10, 5}, few{40, 5};
  for (int i = 0; i < 10'000; ++i) {
    EXPECT_TRUE(many.keeps(row(i)) || !few.keeps(row(i))) << i;
  }
}

TEST(Sample, SeedsKeepDifferentRows) {
  const Sample one{2, 1}, other{2, 2};
  int same = 0;
  for (int i = 0; i < 10'000; ++i) same += one.keeps(row(i)) == other.keeps(row(i));
  EXPECT_NEAR(same, 5000, 300);  // six standard deviations
}

TEST(Sample, AKeptRowIsKeptAgain) {
  const Sample one{3, 9};
  for (int i = 0; i < 100; ++i) EXPECT_EQ(one.keeps(row(i)), Sample(one).keeps(row(i)));
}

}  // namespace
}  // namespace tuff_test::sample_test
