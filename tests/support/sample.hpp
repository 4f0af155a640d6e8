// Which rows of large tables a run takes.
//
// TUFF_TEST_SAMPLE=N[:seed] keeps each row with probability 1 / N, decided by a hash of the row's name and the seed. So
// all processes with the same seed agree, and those with a larger N keep some of the rows of the others, whose kernels
// the cache has by then. Without a seed, TUFF_TEST_SAMPLE_SEED gives one (scripts/test.sh), and without either it is a
// fresh one. The program prints it.
#pragma once

#include <cstdint>
#include <string_view>

namespace tuff_test {

struct Sample {
  uint64_t share = 1;  // one row in this many; 1 means all
  uint64_t seed = 0;

  // The lower, the earlier a row is kept.
  uint64_t rank(std::string_view row) const;
  bool keeps(std::string_view row) const { return keeps(row, share); }
  bool keeps(std::string_view row, uint64_t one_in) const;
};

// Ends the process with status 2 if the variable is malformed.
const Sample& sample();

// TUFF_TEST_SAMPLE_OF_TESTS=N keeps one in N of all tests that remain, by the same seed (main.cpp); 1 without it.
uint64_t share_of_tests();

// For a test with a loop over many rows, each of which needs a kernel of its own: whether it runs this row, one in
// `most`, or more if the run's sample is larger, and in proportion fewer if its share is several times kUsualShare. All,
// if the run takes no sample.
bool in_sample(std::string_view row, uint64_t most);
inline constexpr uint64_t kUsualShare = 24;  // CTest's TUFF_TEST_SAMPLE

}  // namespace tuff_test
