// The compiler of the library's kernels.
#include "runtime/vulkan/shader_compiler.hpp"

#include <gtest/gtest.h>

#include <new>
#include <string>

#include "planning/status.hpp"
#include "support/allocation_count.hpp"

namespace tuff {
namespace {

// shaderc catches what its allocations throw, and gives an internal error without a message.
TEST(ShaderCompiler, MemoryThatRunsOutIsNoErrorOfTheKernel) {
  if (!tuff_test::counts_allocations()) GTEST_SKIP() << "the sanitizer has operator new";
  const std::string text = "#version 460\nlayout(local_size_x = 1) in;\nvoid main() {}\n";
  EXPECT_FALSE(compile_glsl("first", text).empty());
  size_t failures = 0;
  for (uint64_t n = 1; n <= 60; ++n) {
    tuff_status status = TUFF_OK;
    try {
      const tuff_test::FailingAllocations failing(n);
      compile_glsl("kernel", text);
    } catch (const Error& error) {
      status = error.code();
    } catch (const std::bad_alloc&) {
      status = TUFF_ERROR_OUT_OF_HOST_MEMORY;
    }
    if (status == TUFF_OK) continue;
    ++failures;
    EXPECT_EQ(status, TUFF_ERROR_OUT_OF_HOST_MEMORY) << "allocation " << n;
  }
  EXPECT_GT(failures, 20u);
  EXPECT_THROW(
      {
        try {
          compile_glsl("wrong", "#version 460\nvoid main() { x; }\n");
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), TUFF_ERROR_COMPILE_FAILED);
          throw;
        }
      },
      Error);
}

}  // namespace
}  // namespace tuff
