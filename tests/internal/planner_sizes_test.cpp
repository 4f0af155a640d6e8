// Planners on shapes that are too large for any test's memory: beyond what a kernel counts in 32 bits they return
// UNSUPPORTED, before anything is recorded.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "internal/fake_recorder.hpp"
#include "kernels/gemm/gemm.hpp"
#include "kernels/reduce/reduce.hpp"
#include "kernels/softmax/softmax.hpp"
#include "planning/dispatch.hpp"
#include "planning/status.hpp"
#include "shaders/gemm_finish.hpp"

namespace tuff {
namespace {

class PlannerSizes : public testing::Test {
 protected:
  PlannerSizes() { buffer_.allocation = std::make_shared<Nowhere>(), buffer_.bytes = ~uint64_t{0} >> 1; }

  // The status of planning; checks that nothing is recorded unless it is TUFF_OK.
  template <typename Plan>
  tuff_status planned(const Plan& plan) {
    DeviceTraits traits = a_gpu();
    traits.max_range = ~uint64_t{0} >> 1;
    FakeRecorder recorder(traits);
    try {
      plan(recorder);
    } catch (const Error& error) {
      EXPECT_TRUE(recorder.kernels.empty());
      return error.code();
    }
    EXPECT_FALSE(recorder.kernels.empty());
    return TUFF_OK;
  }
  tuff_status reduced(std::vector<uint64_t> shape, uint32_t axis, int32_t dtype) {
    return planned([&](Recorder& recorder) {
      const auto rank = static_cast<uint32_t>(shape.size());
      record_reduce(recorder, {dtype, TUFF_REDUCE_SUM, &buffer_, &buffer_, shape.data(), rank, axis});
    });
  }
  tuff_status normalised(std::vector<uint64_t> shape, uint32_t axis, int32_t dtype) {
    return planned([&](Recorder& recorder) {
      SoftmaxArgs args{};
      args.dtype = dtype, args.input = args.output = &buffer_;
      args.shape = shape.data(), args.rank = static_cast<uint32_t>(shape.size()), args.axis = axis;
      args.scale = 1, args.mask.type = dtype, args.mask.repeat = 1;
      record_softmax(recorder, args);
    });
  }
  Buffer buffer_;
};

constexpr uint64_t kFar = (uint64_t{1} << 32) + 8;

// Regression: row and lane counts were truncated to 32 bits, so a sum over 2^32 + 8 rows was one over eight.
TEST_F(PlannerSizes, ColumnsThatAreCountedBeyond32Bits) {
  for (const int32_t dtype : {TUFF_F32, TUFF_F16}) {
    EXPECT_EQ(reduced({kFar, 2}, 0, dtype), TUFF_ERROR_UNSUPPORTED);
    EXPECT_EQ(reduced({2, kFar * 8}, 0, dtype), TUFF_ERROR_UNSUPPORTED);
    EXPECT_EQ(normalised({kFar, 2}, 0, dtype), TUFF_ERROR_UNSUPPORTED);
    EXPECT_EQ(normalised({2, kFar * 8}, 0, dtype), TUFF_ERROR_UNSUPPORTED);
    for (const uint64_t size : {uint64_t{5}, uint64_t{1} << 20, uint64_t{1} << 31}) {
      EXPECT_EQ(reduced({size, 2}, 0, dtype), TUFF_OK);
      EXPECT_EQ(reduced({2, size}, 0, dtype), TUFF_OK);
      EXPECT_EQ(normalised({size, 2}, 0, dtype), TUFF_OK);
      EXPECT_EQ(normalised({2, size}, 0, dtype), TUFF_OK);
    }
    EXPECT_EQ(reduced({0xffff0000, 3}, 0, dtype), TUFF_OK);
    EXPECT_EQ(reduced({0xffff0001, 3}, 0, dtype), TUFF_ERROR_UNSUPPORTED);
    EXPECT_EQ(normalised({0xffff0000, 3}, 0, dtype), TUFF_OK);
    EXPECT_EQ(normalised({0xffff0001, 3}, 0, dtype), TUFF_ERROR_UNSUPPORTED);
    // Reductions along rows are split into pieces, whatever their length.
    EXPECT_EQ(reduced({2, kFar}, 1, dtype), TUFF_OK);
    EXPECT_EQ(normalised({2, kFar}, 1, dtype), TUFF_OK);
  }
}

// Regression: columns were truncated to 32 bits where A and B are not read, so that biases and residuals of others were
// added, and rows of C written elsewhere.
TEST_F(PlannerSizes, ColumnsThatAreOnlyScaledBeyond32Bits) {
  using Push = shaders::GemmFinish::Push<uint64_t, float, true>;
  for (const bool biased : {true, false}) {
    GemmArgs args{};
    args.a_type = args.b_type = args.c_type = args.accumulate = TUFF_F32;
    args.a = args.b = args.c = &buffer_;
    args.m = 2, args.n = kFar, args.ldb = kFar, args.ldc = kFar + 1, args.batch_count = 1;
    if (biased) args.epilogue.bias = &buffer_, args.epilogue.bias_axis = TUFF_BIAS_COLUMNS;
    DeviceTraits traits = a_gpu();
    traits.max_range = ~uint64_t{0} >> 1;
    FakeRecorder recorder(traits);
    uint64_t columns = 0;
    recorder.seen = [&](const KernelRequest& kernel, const Dispatch& dispatch) {
      Push push;
      ASSERT_TRUE(kernel.is_wide());
      ASSERT_EQ(dispatch.push_bytes(), sizeof push);
      std::memcpy(&push, dispatch.push_data(), sizeof push);
      EXPECT_EQ(push.matrix, 2 * uint64_t{push.n});
      EXPECT_EQ(push.ldc, kFar + 1);
      EXPECT_EQ(dispatch.operands()[1].buffer->offset, columns * sizeof(float));
      EXPECT_EQ(dispatch.operands()[2].buffer != nullptr, biased);
      if (const Buffer* bias = dispatch.operands()[2].buffer) {
        EXPECT_EQ(bias->offset, columns * sizeof(float));
      }
      columns += push.n;
    };
    record_gemm(recorder, args);
    EXPECT_EQ(columns, kFar);
  }
}

}  // namespace
}  // namespace tuff
