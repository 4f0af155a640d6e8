// Runs the tests of the public interface. Any message of the validation layer fails the run, whichever test caused it.
#include <fnmatch.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "support/harness.hpp"
#include "support/sample.hpp"

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

// A table is a test with more parameters than this; all other tests always run (support/sample.hpp).
constexpr size_t kMaxWholeTable = 32;

// Whether one of the patterns, which colons separate, matches the whole name, as in --gtest_filter.
bool matches(const std::string& patterns, const std::string& name) {
  for (size_t begin = 0; begin <= patterns.size();) {
    const size_t end = std::min(patterns.find(':', begin), patterns.size());
    if (fnmatch(patterns.substr(begin, end - begin).c_str(), name.c_str(), 0) == 0) return true;
    begin = end + 1;
  }
  return false;
}

// Whether the filter selects a test.
bool selects(const std::string& filter, const std::string& name) {
  const size_t dash = filter.find('-');
  const std::string wanted = filter.substr(0, dash);
  return (wanted.empty() || matches(wanted, name)) &&
         (dash == std::string::npos || !matches(filter.substr(dash + 1), name));
}

void drop(const std::string& names) {
  std::string& filter = testing::GTEST_FLAG(filter);
  filter += (names.empty() || filter.find('-') != std::string::npos ? "" : "-") + names;
}

// Keeps one of this many of the remaining tests and rows, and at least one of each suite, for entries that repeat
// others under other circumstances.
void sample_tests() {
  const tuff_test::Sample& sample = tuff_test::sample();
  const auto share = static_cast<unsigned long long>(tuff_test::share_of_tests());
  if (share == 1) return;
  const std::string filter = testing::GTEST_FLAG(filter);
  std::string dropped;
  size_t kept = 0, count = 0;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    std::vector<std::string> names;
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const std::string name = suite.name() + ("." + std::string(suite.GetTestInfo(j)->name()));
      if (selects(filter, name)) names.push_back(name);
    }
    // Another hash than that of rows, or each that is left would be kept.
    const auto rank = [&](const std::string& name) { return sample.rank("test " + name); };
    const auto earlier = [&](const std::string& a, const std::string& b) { return rank(a) < rank(b); };
    const auto first = std::min_element(names.begin(), names.end(), earlier);
    for (const std::string& name : names) {
      const bool keeps = name == *first || sample.keeps("test " + name, share);
      if (!keeps) dropped += ":" + name;
      kept += keeps ? 1 : 0, ++count;
    }
  }
  drop(dropped);
  std::printf(
      "%zu of %zu tests, one in %llu and one of each suite: TUFF_TEST_SAMPLE=%llu:%llu and "
      "TUFF_TEST_SAMPLE_OF_TESTS=%llu repeat this sample.\n",
      kept, count, share, static_cast<unsigned long long>(sample.share), static_cast<unsigned long long>(sample.seed),
      share);
}

// Keeps the sample of each table that the filter selects rows of, and at least one row of it for each backend.
void sample_tables() {
  const tuff_test::Sample& sample = tuff_test::sample();
  if (sample.share == 1) return;
  const std::string& filter = testing::GTEST_FLAG(filter);
  const std::string wanted = filter.substr(0, filter.find('-'));
  std::string dropped;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    std::map<std::string, size_t> sizes;                       // of tables
    std::map<std::string, std::vector<std::string>> selected;  // rows by table and backend
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const std::string name = suite.GetTestInfo(j)->name(), whole = suite.name() + ("." + name);
      const size_t slash = name.find('/');
      if (slash == std::string::npos) continue;
      ++sizes[name.substr(0, slash)];
      if (matches(wanted, whole)) selected[name.substr(0, name.find('_', slash))].push_back(whole);
    }
    for (const auto& [table, rows] : selected) {
      if (sizes[table.substr(0, table.find('/'))] <= kMaxWholeTable) continue;
      const auto earlier = [&](const std::string& a, const std::string& b) { return sample.rank(a) < sample.rank(b); };
      const std::string first = *std::min_element(rows.begin(), rows.end(), earlier);
      for (const std::string& row : rows) {
        if (!sample.keeps(row) && row != first) dropped += ":" + row;
      }
    }
  }
  drop(dropped);
  const auto share = static_cast<unsigned long long>(sample.share), seed = static_cast<unsigned long long>(sample.seed);
  std::printf("Of tables with more than %zu rows, one row in %llu: TUFF_TEST_SAMPLE=%llu:%llu repeats this sample.\n",
              kMaxWholeTable, share, share, seed);
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  sample_tables();
  sample_tests();
  testing::AddGlobalTestEnvironment(new Contexts);  // gtest owns it
  const int result = RUN_ALL_TESTS();
  // An entry of CTest whose filter names a suite that there no longer is would pass for ever.
  const bool none = testing::UnitTest::GetInstance()->test_to_run_count() == 0 && !testing::GTEST_FLAG(list_tests);
  if (none) std::fputs("The filter selects no test.\n", stderr);
  return none ? 1 : result;
}
