// The largest sizes that planners and checks accept: each limit at it, and one beyond. What is planned is planned for a
// device that could run any of it; what is refused is refused before anything is recorded.
#include <gtest/gtest.h>

#include <functional>

#include "internal/fake_recorder.hpp"
#include "kernels/common/loop_limit.hpp"
#include "kernels/conv/conv.hpp"
#include "kernels/gemm/gemm.hpp"
#include "kernels/norm/norm.hpp"
#include "kernels/pool/pool.hpp"
#include "kernels/position/rope.hpp"
#include "kernels/reduce/reduce.hpp"
#include "kernels/shape/shape.hpp"
#include "kernels/softmax/softmax.hpp"
#include "planning/dispatch.hpp"
#include "planning/status.hpp"

namespace tuff {
namespace {

class PlannerRefusals : public testing::Test {
 protected:
  PlannerRefusals() {
    buffer_.allocation = std::make_shared<Nowhere>(), buffer_.bytes = uint64_t{1} << 62;
    traits_.max_range = uint64_t{1} << 62;
  }
  tuff_status planned(const std::function<void(Recorder&)>& plan) {
    FakeRecorder recorder(traits_);
    try {
      plan(recorder);
    } catch (const Error& error) {
      EXPECT_TRUE(recorder.kernels.empty());
      return error.code();
    }
    return TUFF_OK;
  }
  // `plan` takes a size: `most` is planned, and one more is refused.
  void expect_limit(uint64_t most, tuff_status refusal, const std::function<void(Recorder&, uint64_t)>& plan) {
    EXPECT_EQ(planned([&](Recorder& recorder) { plan(recorder, most); }), TUFF_OK) << most;
    EXPECT_EQ(planned([&](Recorder& recorder) { plan(recorder, most + 1); }), refusal) << most + 1;
  }
  void expect_limit(uint64_t most, const std::function<void(Recorder&, uint64_t)>& plan) {
    expect_limit(most, TUFF_ERROR_UNSUPPORTED, plan);
  }
  // The same for a check, which refuses with INVALID_ARGUMENT.
  static void expect_checked(uint64_t most, const std::function<void(uint64_t)>& check) {
    EXPECT_NO_THROW(check(most)) << most;
    EXPECT_THROW(check(most + 1), Error) << most + 1;
  }
  Buffer buffer_;
  DeviceTraits traits_ = a_gpu();
};

TEST_F(PlannerRefusals, Workgroups) {
  traits_.max_groups[0] = 1000, traits_.max_groups[1] = 7;
  for (const uint64_t total : {1u, 999u, 1000u, 1001u, 1999u, 2000u, 2001u, 6999u, 7000u}) {
    Dispatch dispatch("any");
    dispatch.groups_linear(total, traits_);
    const auto& groups = dispatch.group_counts();
    EXPECT_EQ(dispatch.group_rows(), total > 1000);
    EXPECT_GE(uint64_t{groups[0]} * groups[1], total);
    EXPECT_LT(uint64_t{groups[0]} * groups[1], total + groups[1]) << "less than a column too many";
    EXPECT_LE(groups[0], 1000u);
    EXPECT_LE(groups[1], 7u);
  }
  expect_limit(7000, TUFF_ERROR_LIMIT_EXCEEDED,
               [&](Recorder&, uint64_t total) { Dispatch("any").groups_linear(total, traits_); });
}

TEST_F(PlannerRefusals, Norms) {
  const auto normalised = [&](Recorder& recorder, uint64_t rows, uint64_t channels, uint64_t inner, uint64_t groups) {
    NormArgs args{};
    args.dtype = args.weight_type = TUFF_F32, args.centred = true, args.grouped = inner != 1 || groups != 1;
    args.input = args.output = &buffer_;
    args.rows = rows, args.channels = channels, args.inner = inner, args.groups = groups, args.epsilon = 1;
    record_norm(recorder, args);
  };
  expect_limit(0x7fffffff, [&](Recorder& r, uint64_t size) { normalised(r, 3, size, 1, 1); });
  expect_limit(0x7fffffff, [&](Recorder& r, uint64_t size) { normalised(r, 3, 1, size, 1); });
  expect_limit(0x7fffffff, [&](Recorder& r, uint64_t size) { normalised(r, 3, size, 1, size); });
  expect_limit(0x7fffffff / 5, [&](Recorder& r, uint64_t size) { normalised(r, 3, 15, size, 3); });
  const auto batch = [&](Recorder& recorder, uint64_t channels, uint64_t inner) {
    BatchNormArgs args{};
    args.dtype = args.weight_type = TUFF_F32;
    args.input = args.output = args.mean = args.variance = &buffer_;
    args.batch = 1, args.channels = channels, args.inner = inner, args.epsilon = 1;
    record_batch_norm(recorder, args);
  };
  expect_limit(0x3fffffff, [&](Recorder& r, uint64_t size) { batch(r, size, 1); });
  expect_limit(0x3fffffff, [&](Recorder& r, uint64_t size) { batch(r, 1, size); });
}

TEST_F(PlannerRefusals, MasksOfSoftmax) {
  const auto masked = [&](Recorder& recorder, uint64_t outer, uint64_t axis) {
    const uint64_t shape[] = {outer, axis};
    SoftmaxArgs args{};
    args.dtype = TUFF_F32, args.input = args.output = &buffer_;
    args.shape = shape, args.rank = 2, args.axis = 1, args.scale = 1;
    args.mask = {&buffer_, TUFF_F32, 1, 1};
    record_softmax(recorder, args);
  };
  expect_limit(0x7fffffff, [&](Recorder& r, uint64_t size) { masked(r, size, 2); });
  expect_limit(0x7fffffff, [&](Recorder& r, uint64_t size) { masked(r, 2, size); });
}

TEST_F(PlannerRefusals, PlacesOfMaxima) {
  const auto reduced = [&](Recorder& recorder, uint64_t axis, uint64_t inner) {
    const uint64_t shape[] = {axis, inner};
    record_reduce(recorder, {TUFF_F32, TUFF_REDUCE_ARGMAX, &buffer_, &buffer_, shape, 2, 0});
  };
  expect_limit(0x7fffffff, [&](Recorder& r, uint64_t size) { reduced(r, size, 1); });
  expect_limit(0x7fffffff, [&](Recorder& r, uint64_t size) { reduced(r, 2, size); });
  // Places are 32-bit numbers.
  expect_checked(0xffffffff, [&](uint64_t size) {
    const uint64_t shape[] = {size, 1};
    Buffer output = buffer_;
    output.offset = uint64_t{1} << 50;
    check_reduce({TUFF_F32, TUFF_REDUCE_ARGMAX, &buffer_, &output, shape, 2, 0});
  });
}

TEST_F(PlannerRefusals, SizesAndStridesOfRope) {
  const auto call = [&] {
    RopeArgs args{};
    args.dtype = TUFF_F32, args.base = 10000, args.input = args.output = &buffer_;
    args.batch = 1, args.heads = args.seq = 1, args.head_dim = args.rotary_dim = 2;
    args.input_strides = args.output_strides = {2, 2, 2};
    return args;
  };
  const auto with = [&](auto member) {
    expect_limit(0x7fffffff, [&](Recorder& recorder, uint64_t size) {
      RopeArgs args = call();
      member(args) = size;
      record_rope(recorder, args);
    });
  };
  with([](RopeArgs& args) -> uint64_t& { return args.seq; });
  with([](RopeArgs& args) -> uint64_t& { return args.positions_stride; });
  // Blocks of one batch element: of eight heads each.
  expect_limit((1 << 15) - 1, [&](Recorder& recorder, uint64_t seq) {
    RopeArgs args = call();
    args.heads = 8 << 16, args.seq = seq;
    record_rope(recorder, args);
  });
  for (const size_t i : {1, 2}) {
    with([i](RopeArgs& args) -> uint64_t& { return args.input_strides[i]; });
    with([i](RopeArgs& args) -> uint64_t& { return args.output_strides[i]; });
  }
}

TEST_F(PlannerRefusals, PoolsAndTheirWindows) {
  const auto call = [&](uint64_t in, uint64_t kernel, uint64_t stride, uint64_t dilation, uint64_t padding) {
    PoolArgs args{};
    args.dtype = TUFF_F32, args.maximum = true, args.input = args.output = &buffer_;
    args.batch = args.channels = args.spatial = 1;
    args.in_shape[0] = in, args.kernel[0] = kernel, args.stride[0] = stride, args.dilation[0] = dilation;
    args.padding[0] = padding;
    const uint64_t span = dilation * (kernel - 1) + 1;
    args.out_shape[0] = in + 2 * padding >= span ? (in + 2 * padding - span) / stride + 1 : 0;
    return args;
  };
  Buffer output = buffer_;
  output.offset = uint64_t{1} << 50;
  const auto checked = [&](PoolArgs args) {
    args.output = &output;
    check_pool(args);
  };
  constexpr uint64_t kMax = 0x3fffffff;
  expect_checked(kMax, [&](uint64_t size) { checked(call(size, 1, 1, 1, 0)); });
  expect_checked(kMax, [&](uint64_t size) { checked(call(kMax, size, 1, 1, 0)); });
  expect_checked(kMax, [&](uint64_t size) { checked(call(5, 1, size, 1, 0)); });
  expect_checked(kMax, [&](uint64_t size) { checked(call(5, 1, 1, size, 0)); });
  expect_checked(kMax - 1, [&](uint64_t size) { checked(call(kMax, 2, 1, size, 0)); });  // spans one more
  for (const uint64_t kernel : {1u, 2u, 5u, 6u}) {
    expect_checked(kernel / 2, [&](uint64_t size) { checked(call(9, kernel, 1, 1, size)); });
  }
  for (const uint64_t out : {1u, 2u, 1000u}) {
    expect_checked(kMax / (out + 1), [&](uint64_t in) {
      PoolArgs args = call(in, 1, 1, 1, 0);
      args.kernel = args.stride = args.dilation = {};
      args.adaptive = 1, args.out_shape[0] = out;
      checked(args);
    });
  }
  // The planes that a kernel counts, and on a CPU device the elements of a window.
  expect_limit(kMax, [&](Recorder& recorder, uint64_t size) {
    PoolArgs args = call(size, 2, 2, 1, 0);
    args.spatial = 2, args.in_shape[1] = args.out_shape[1] = args.kernel[1] = 1;
    record_pool(recorder, args);
  });
  traits_.cpu = true;
  expect_limit(kMaxLoopIterationsCpu / 2,
               [&](Recorder& recorder, uint64_t size) { record_pool(recorder, call(1 << 20, size, 1, 1, 0)); });
}

TEST_F(PlannerRefusals, GatheredRows) {
  const auto gathered = [&](Recorder& recorder, uint64_t units) {
    const uint64_t shape[] = {3, units * 4};
    GatherArgs args{};
    args.dtype = TUFF_F32, args.index_type = TUFF_U32;
    args.input = args.indices = args.output = &buffer_;
    args.shape = shape, args.rank = 2, args.axis = 0, args.count = 2;
    record_gather(recorder, args);
  };
  expect_limit(1u << 30, gathered);
  // Element by element: the distance along the axis.
  expect_limit(0x7fffffff, [&](Recorder& recorder, uint64_t inner) {
    const uint64_t shape[] = {3, inner}, index_shape[] = {5, 1};
    GatherArgs args{};
    args.dtype = TUFF_F32, args.index_type = TUFF_U32;
    args.input = args.indices = args.output = &buffer_;
    args.shape = shape, args.index_shape = index_shape, args.rank = 2, args.axis = 0;
    record_gather(recorder, args);
  });
  // And the distance of elements along another axis.
  expect_limit(0x7fffffff, [&](Recorder& recorder, uint64_t inner) {
    const uint64_t shape[] = {2, inner}, index_shape[] = {2, 1};
    GatherArgs args{};
    args.dtype = TUFF_F32, args.index_type = TUFF_U32;
    args.input = args.indices = args.output = &buffer_;
    args.shape = shape, args.index_shape = index_shape, args.rank = 2, args.axis = 1;
    record_gather(recorder, args);
  });
}

// The kernel takes seven axes. With eight, each element of the outermost has a dispatch of its own.
TEST_F(PlannerRefusals, AxesOfGatheredElements) {
  for (const uint32_t rank : {1u, 6u, 7u, 8u}) {
    const uint64_t shape[8] = {3, 3, 3, 3, 3, 3, 3, 3}, index_shape[8] = {2, 2, 2, 2, 2, 2, 2, 2};
    GatherArgs args{};
    args.dtype = TUFF_F32, args.index_type = TUFF_U32;
    args.input = args.indices = args.output = &buffer_;
    args.shape = shape, args.index_shape = index_shape, args.rank = rank, args.axis = rank - 1;
    FakeRecorder recorder(a_gpu());
    record_gather(recorder, args);
    EXPECT_EQ(recorder.kernels.size(), rank == 8 ? 2u : 1u) << rank;
  }
}

TEST_F(PlannerRefusals, Convolutions) {
  constexpr uint64_t kMax = (uint64_t{1} << 30) - 1;
  const auto call = [&](uint64_t in, uint64_t front, uint64_t back, uint64_t stride) {
    ConvArgs args;
    args.rank = 1, args.input = args.filter = args.output = &buffer_;
    args.in_shape = {{1, 3}, {1, 1, in}}, args.filter_shape = {{4, 3}, {1, 1, 2}};
    args.padding[2] = front, args.padding_end[2] = back, args.stride[2] = stride;
    args.out_shape = {{1, 4}, {1, 1, (in + front + back - 2) / stride + 1}};
    return args;
  };
  expect_limit(kMax, [&](Recorder& r, uint64_t size) { record_conv(r, call(size, 0, 0, 60'000)); });
  expect_limit(kMax - 5, [&](Recorder& r, uint64_t size) { record_conv(r, call(size, 2, 3, 60'000)); });
  expect_limit(kMax - 5, [&](Recorder& r, uint64_t size) { record_conv(r, call(2, size, 3, 60'000)); });
  expect_limit(kMax - 5, [&](Recorder& r, uint64_t size) { record_conv(r, call(2, 3, size, 60'000)); });
  // The outputs of an image.
  expect_limit((uint64_t{1} << 31) / 4 - 1, [&](Recorder& recorder, uint64_t size) {
    ConvArgs args;
    args.input = args.filter = args.output = &buffer_;
    args.in_shape = {{1, 3}, {1, 5, size + 1}}, args.filter_shape = {{4, 3}, {1, 2, 2}};
    args.out_shape = {{1, 4}, {1, 4, size}};
    record_conv(recorder, args);
  });
}

TEST_F(PlannerRefusals, LongSumsWithASecondPass) {
  const auto call = [&](uint64_t k) {
    GemmArgs args{};
    args.a_type = args.b_type = TUFF_F16, args.c_type = TUFF_F32, args.accumulate = args.sum_type();
    args.m = args.n = 4, args.k = k, args.alpha = 1;
    args.a = args.b = args.c = &buffer_;
    args.lda = k, args.ldb = args.ldc = 4;
    return args;
  };
  expect_limit(1u << 30, TUFF_ERROR_LIMIT_EXCEEDED, [&](Recorder& recorder, uint64_t k) {
    GemmArgs args = call(k);
    args.epilogue.activation = TUFF_ACTIVATION_GELU;
    record_gemm(recorder, args);
  });
  EXPECT_EQ(planned([&](Recorder& recorder) { record_gemm(recorder, call((1u << 30) + 1)); }), TUFF_OK) << "in parts";
}

}  // namespace
}  // namespace tuff
