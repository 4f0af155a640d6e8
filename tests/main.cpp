// Runs the tests of the public interface. Any message of the validation layer fails the run, whichever test caused it.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "support/harness.hpp"

namespace {

void print_message(void*, int32_t, const char* message) { std::fprintf(stderr, "tuff: %s\n", message); }

class Contexts : public testing::Environment {
 public:
  void SetUp() override {
    if (!tuff_test::validating()) return;
    ASSERT_OK(tuff_set_log(print_message, nullptr, TUFF_LOG_ERROR));
  }
  void TearDown() override { tuff_test::destroy_shared_contexts(); }
};

// TUFF_TEST_SAMPLE=N[:seed] keeps each row of a table with probability 1 / N. A table is a test with more parameters
// than this; all other tests always run. Without a seed a fresh one is used and printed, so that the sample can be
// repeated.
constexpr size_t kMaxWholeTable = 32;

void sample_tables() {
  const char* const variable = std::getenv("TUFF_TEST_SAMPLE");
  if (variable == nullptr) return;
  char* end = nullptr;
  const unsigned long share = std::strtoul(variable, &end, 10);
  const bool has_seed = *end == ':';
  const unsigned long seed = has_seed ? std::strtoul(end + 1, &end, 10) : std::random_device{}();
  if (share == 0 || *end != '\0') {
    std::fprintf(stderr, "TUFF_TEST_SAMPLE: %s is neither N nor N:seed\n", variable);
    std::exit(2);
  }
  std::map<std::string, std::vector<std::string>> tables;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const std::string name = suite.GetTestInfo(j)->name();
      const size_t slash = name.find('/');
      if (slash == std::string::npos) continue;
      const std::string prefix = std::string(suite.name()) + ".";
      tables[prefix + name.substr(0, slash)].push_back(prefix + name);
    }
  }
  std::mt19937 random(static_cast<uint32_t>(seed));
  std::string dropped;
  for (const auto& [name, rows] : tables) {
    if (rows.size() <= kMaxWholeTable) continue;
    for (const std::string& row : rows) {
      if (random() % share != 0) dropped += ":" + row;
    }
  }
  if (dropped.empty()) return;
  std::string& filter = testing::GTEST_FLAG(filter);
  filter += (filter.find('-') == std::string::npos ? "-" : "") + dropped;
  std::printf("Of tables with more than %zu rows, one row in %lu: TUFF_TEST_SAMPLE=%lu:%lu repeats this sample.\n",
              kMaxWholeTable, share, share, seed);
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  sample_tables();
  testing::AddGlobalTestEnvironment(new Contexts);  // gtest owns it
  return RUN_ALL_TESTS();
}
