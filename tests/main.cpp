// Runs the tests of the public interface. A message of the validation layer fails the run, from whichever
// test it came.
#include <gtest/gtest.h>

#include <cstdio>

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

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::AddGlobalTestEnvironment(new Contexts);  // gtest owns it
  return RUN_ALL_TESTS();
}
