#include "support/sample.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace tuff_test {

uint64_t Sample::rank(std::string_view row) const {
  uint64_t hash = 0xcbf29ce484222325u ^ seed;  // FNV-1a
  for (const char c : row) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  // Its last characters reach the low bits only: mixes them (the finaliser of MurmurHash3).
  for (const uint64_t factor : {0xff51afd7ed558ccdu, 0xc4ceb9fe1a85ec53u}) hash = (hash ^ hash >> 33) * factor;
  return hash ^ hash >> 33;
}

bool Sample::keeps(std::string_view row, uint64_t one_in) const { return rank(row) <= ~uint64_t{0} / one_in; }

const Sample& sample() {
  static const Sample chosen = [] {
    Sample result;
    const char* variable = std::getenv("TUFF_TEST_SAMPLE");
    if (variable == nullptr) variable = "1";  // TUFF_TEST_SAMPLE_OF_TESTS needs a seed, too
    char* end = nullptr;
    result.share = std::strtoull(variable, &end, 10);
    if (*end == ':') {
      result.seed = std::strtoull(end + 1, &end, 10);
    } else if (const char* const common = std::getenv("TUFF_TEST_SAMPLE_SEED")) {
      char* rest = nullptr;
      result.seed = std::strtoull(common, &rest, 10);
      if (rest == common || *rest != '\0') {
        std::fprintf(stderr, "TUFF_TEST_SAMPLE_SEED: %s is no number\n", common);
        std::exit(2);
      }
    } else {
      result.seed = std::random_device{}();
    }
    if (result.share == 0 || *end != '\0') {
      std::fprintf(stderr, "TUFF_TEST_SAMPLE: %s is neither N nor N:seed\n", variable);
      std::exit(2);
    }
    return result;
  }();
  return chosen;
}

uint64_t share_of_tests() {
  const char* const variable = std::getenv("TUFF_TEST_SAMPLE_OF_TESTS");
  if (variable == nullptr) return 1;
  char* end = nullptr;
  const uint64_t share = std::strtoull(variable, &end, 10);
  if (share == 0 || *end != '\0') {
    std::fprintf(stderr, "TUFF_TEST_SAMPLE_OF_TESTS: %s is no number of tests\n", variable);
    std::exit(2);
  }
  return share;
}

bool in_sample(std::string_view row, uint64_t most) {
  const uint64_t share = sample().share, fewer = std::max<uint64_t>(share / kUsualShare, 1);
  return sample().keeps(row, std::min(share, most * fewer));
}

}  // namespace tuff_test
