// Arguments at the edge of what each operation accepts, and one beyond: sizes that are too large for any test's memory,
// and messages that have to name the argument.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <string>

#include "internal/answer.hpp"
#include "internal/fake_recorder.hpp"
#include "kernels/attention/attention.hpp"
#include "kernels/conv/conv.hpp"
#include "kernels/gemm/gemm.hpp"
#include "kernels/pool/pool.hpp"
#include "kernels/position/rope.hpp"
#include "kernels/resize/resize.hpp"
#include "kernels/shape/shape.hpp"
#include "planning/status.hpp"

namespace tuff {
namespace {

class OperationChecks : public testing::Test {
 protected:
  OperationChecks() {
    for (Buffer& buffer : buffers_) buffer.allocation = std::make_shared<Nowhere>(), buffer.bytes = uint64_t{1} << 62;
  }
  std::array<Buffer, 5> buffers_;
};

// NOLINTNEXTLINE(cppcoreguidelines-macro-usage): the line of the call is what matters
#define EXPECT_ANSWER(call, word)                                  \
  {                                                                \
    const std::string answered = (call);                           \
    EXPECT_NE(answered.find(word), std::string::npos) << answered; \
  }

TEST_F(OperationChecks, Convolutions) {
  const auto checked = [&](const std::function<void(ConvArgs&)>& change) {
    ConvArgs args;
    args.input = &buffers_[0], args.filter = &buffers_[1], args.output = &buffers_[2];
    args.in_shape = {{2, 6}, {1, 9, 8}}, args.filter_shape = {{4, 6}, {1, 3, 3}}, args.out_shape = {{2, 4}, {1, 7, 6}};
    change(args);
    return answer([&] { check_conv(args); });
  };
  EXPECT_ANSWER(checked([](ConvArgs&) {}), "accepted");
  EXPECT_ANSWER(checked([](ConvArgs& args) { args.stride[1] = 0; }), "stride[0] is 0");
  EXPECT_ANSWER(checked([](ConvArgs& args) { args.stride[2] = 0; }), "stride[1] is 0");
  // With dilation 0 the window would span one element.
  EXPECT_ANSWER(checked([](ConvArgs& args) { args.dilation[2] = 0, args.out_shape.extents[2] = 8; }),
                "dilation[1] is 0");
  EXPECT_ANSWER(checked([](ConvArgs& args) { args.filter_shape.extents[1] = 0; }), "needs at least 1");
  EXPECT_ANSWER(checked([](ConvArgs& args) { args.filter_shape.extents[1] = 10; }), "spans 10");
  EXPECT_ANSWER(checked([](ConvArgs& args) { args.filter_shape.extents[1] = 9, args.out_shape.extents[1] = 1; }),
                "accepted");
  EXPECT_ANSWER(checked([](ConvArgs& args) { args.padding[2] = 1; }), "out_shape is");
  EXPECT_ANSWER(checked([](ConvArgs& args) { args.padding_end[2] = 1, args.out_shape.extents[2] = 7; }), "accepted");
  EXPECT_ANSWER(checked([](ConvArgs& args) { args.groups = 4; }), "groups is 4");
  EXPECT_ANSWER(checked([](ConvArgs& args) { args.groups = 3, args.filter_shape.outer = {4, 2}; }), "groups is 3");
  EXPECT_ANSWER(checked([](ConvArgs& args) { args.groups = 2, args.filter_shape.outer = {4, 3}; }), "accepted");
  EXPECT_ANSWER(checked([](ConvArgs& args) { args.layout = 7; }), "layout is 7");
  EXPECT_ANSWER(checked([](ConvArgs& args) { args.activation = 99; }), "activation");
  EXPECT_ANSWER(checked([](ConvArgs& args) { args.precision = 1; }), "precision is 1");
  const auto transposed = [&](uint64_t output_padding, uint64_t padding, uint64_t out) {
    return checked([&](ConvArgs& args) {
      args.transposed = true, args.filter_shape = {{6, 4}, {1, 3, 3}}, args.stride = {1, 2, 2};
      args.output_padding = {0, 0, output_padding}, args.padding = {0, 0, padding};
      args.out_shape = {{2, 4}, {1, 19, out}};
    });
  };
  EXPECT_ANSWER(transposed(0, 0, 17), "accepted");
  EXPECT_ANSWER(transposed(1, 0, 18), "accepted");
  EXPECT_ANSWER(transposed(2, 0, 19), "output_padding[1] is 2");
  EXPECT_ANSWER(transposed(0, 17, 0), "accepted");
  EXPECT_ANSWER(transposed(0, 18, 0), "padding removes 18");
}

TEST_F(OperationChecks, Pools) {
  const auto checked = [&](const std::function<void(PoolArgs&)>& change) {
    PoolArgs args{};
    args.dtype = TUFF_F32, args.maximum = true;
    args.input = &buffers_[0], args.output = &buffers_[1];
    args.batch = args.channels = 1, args.spatial = 1;
    args.in_shape = {20}, args.out_shape = {19}, args.kernel = {2}, args.stride = {1};
    change(args);
    return answer([&] { check_pool(args); });
  };
  constexpr uint64_t kMax = 0x3fffffff;
  EXPECT_ANSWER(checked([](PoolArgs&) {}), "accepted");
  EXPECT_ANSWER(checked([](PoolArgs& args) { args.in_shape = {kMax}, args.out_shape = {kMax - 1}; }), "accepted");
  EXPECT_ANSWER(checked([](PoolArgs& args) { args.in_shape = {kMax + 1}, args.out_shape = {kMax}; }), "too large");
  EXPECT_ANSWER(checked([](PoolArgs& args) { args.padding = {1}, args.out_shape = {21}; }), "accepted");
  EXPECT_ANSWER(checked([](PoolArgs& args) { args.padding = {2}, args.out_shape = {23}; }), "padding[0] is 2");
  EXPECT_ANSWER(
      checked([](PoolArgs& args) { args.in_shape = {kMax}, args.padding = {2}, args.out_shape = {kMax + 3}; }),
      "padding[0] is 2");
  EXPECT_ANSWER(checked([](PoolArgs& args) { args.dilation = {19}, args.out_shape = {1}; }), "accepted");
  EXPECT_ANSWER(checked([](PoolArgs& args) { args.dilation = {20}, args.out_shape = {1}; }), "the window spans 21");
  EXPECT_ANSWER(checked([](PoolArgs& args) { args.maximum = false, args.dilation = {2}, args.out_shape = {18}; }),
                "dilation[0] is 2");
  EXPECT_ANSWER(checked([](PoolArgs& args) { args.in_shape = {0}; }), "in_shape[0] is 0");
  EXPECT_ANSWER(checked([](PoolArgs& args) { args.kernel = {0}; }), "kernel[0] is 0");
  EXPECT_ANSWER(checked([](PoolArgs& args) { args.spatial = 4; }), "spatial is 4");
  EXPECT_ANSWER(checked([](PoolArgs& args) { args.ceil_mode = 2; }), "ceil_mode is 2");
  EXPECT_ANSWER(checked([](PoolArgs& args) { args.count_include_pad = 1; }), "count_include_pad is set");
  const auto adaptive = [&](uint64_t in, uint64_t out, uint64_t PoolArgs::*, int32_t include) {
    return checked([&](PoolArgs& args) {
      args.adaptive = 1, args.maximum = false, args.kernel = args.stride = {0};
      args.in_shape = {in}, args.out_shape = {out}, args.count_include_pad = include;
    });
  };
  EXPECT_ANSWER(adaptive(20, 7, nullptr, 0), "accepted");
  EXPECT_ANSWER(adaptive(20, 0, nullptr, 0), "out_shape[0] is 0");
  EXPECT_ANSWER(adaptive(20, 7, nullptr, 1), "adaptive is set");
  EXPECT_ANSWER(adaptive(kMax / 3, 2, nullptr, 0), "accepted");
  EXPECT_ANSWER(adaptive(kMax / 3 + 1, 2, nullptr, 0), "too large");
}

TEST_F(OperationChecks, Rope) {
  const auto checked = [&](const std::function<void(RopeArgs&)>& change) {
    RopeArgs args{};
    args.dtype = TUFF_F32, args.base = 10000;
    args.input = &buffers_[0], args.output = &buffers_[1];
    args.batch = args.heads = args.seq = 2, args.head_dim = args.rotary_dim = 8;
    args.input_strides = args.output_strides = {32, 16, 8};
    change(args);
    return answer([&] { check_rope(args); });
  };
  EXPECT_ANSWER(checked([](RopeArgs&) {}), "accepted");
  EXPECT_ANSWER(checked([](RopeArgs& args) { args.output_strides = {31, 16, 8}; }), "rows of the output overlap");
  EXPECT_ANSWER(checked([](RopeArgs& args) { args.output_strides = {32, 15, 8}; }), "rows of the output overlap");
  EXPECT_ANSWER(checked([](RopeArgs& args) { args.output_strides = {32, 16, 7}; }), "rows of the output overlap");
  EXPECT_ANSWER(checked([](RopeArgs& args) { args.output_strides = {8, 16, 32}; }), "accepted");
  EXPECT_ANSWER(checked([](RopeArgs& args) { args.seq = 1, args.output_strides = {16, 8, 0}; }), "accepted");
  EXPECT_ANSWER(checked([](RopeArgs& args) { args.rotary_dim = 10; }), "rotary_dim is 10");
  EXPECT_ANSWER(checked([](RopeArgs& args) { args.rotary_dim = 7; }), "rotary_dim is 7");
  EXPECT_ANSWER(checked([](RopeArgs& args) { args.base = 1; }), "base is 1");
  EXPECT_ANSWER(checked([](RopeArgs& args) { args.interleaved = 2; }), "interleaved is 2");
  EXPECT_ANSWER(checked([](RopeArgs& args) { args.offset = INT32_MAX - 1; }), "accepted");
  EXPECT_ANSWER(checked([](RopeArgs& args) { args.offset = INT32_MAX; }), "positions need to fit 32 bits");
  EXPECT_ANSWER(checked([](RopeArgs& args) { args.offset = INT32_MIN; }), "accepted");
  EXPECT_ANSWER(checked([](RopeArgs& args) { args.offset = int64_t{INT32_MIN} - 1; }), "offset is");
}

TEST_F(OperationChecks, Attention) {
  const auto checked = [&](const std::function<void(AttentionArgs&)>& change) {
    AttentionArgs args;
    args.dtype = TUFF_F16;
    args.q = &buffers_[0], args.k = &buffers_[1], args.v = &buffers_[2], args.o = &buffers_[3];
    args.batch = 2, args.heads = 6, args.kv_heads = 3, args.seq_q = 5, args.seq_kv = 7, args.head_dim = 16;
    change(args);
    return answer([&] {
      complete_attention(args, true);
      check_attention(args);
    });
  };
  EXPECT_ANSWER(checked([](AttentionArgs&) {}), "accepted");
  EXPECT_ANSWER(checked([](AttentionArgs& args) { args.bias_type = TUFF_F32; }), "bias_type is set");
  EXPECT_ANSWER(checked([&](AttentionArgs& args) { args.bias = &buffers_[4], args.bias_type = TUFF_F32; }), "accepted");
  EXPECT_ANSWER(checked([&](AttentionArgs& args) { args.bias = &buffers_[4], args.bias_type = TUFF_BF16; }),
                "bias_type is");
  EXPECT_ANSWER(checked([](AttentionArgs& args) { args.kv_heads = 4; }), "kv_heads is 4");
  EXPECT_ANSWER(checked([](AttentionArgs& args) { args.seq_q = 0; }), "seq_q is 0");
  EXPECT_ANSWER(checked([](AttentionArgs& args) { args.seq_kv = 0; }), "seq_kv is 0");
  EXPECT_ANSWER(checked([](AttentionArgs& args) { args.head_dim = 1024; }), "accepted");
  EXPECT_ANSWER(checked([](AttentionArgs& args) { args.head_dim = 1025; }), "head_dim is 1025");
  EXPECT_ANSWER(checked([](AttentionArgs& args) { args.head_dim_v = 1025; }), "head_dim_v is 1025");
}

TEST_F(OperationChecks, Resizing) {
  const auto checked = [&](uint64_t in, uint64_t out, double scale, int32_t mode = TUFF_RESIZE_LINEAR) {
    ResizeArgs args{};
    args.dtype = TUFF_F32, args.mode = mode;
    args.input = &buffers_[0], args.output = &buffers_[1];
    args.batch = args.channels = args.spatial = 1;
    args.in_shape = {in}, args.out_shape = {out}, args.scale = {scale};
    return answer([&] { check_resize(args); });
  };
  constexpr uint64_t kMax = (uint64_t{1} << 29) - 1;
  EXPECT_ANSWER(checked(kMax, 5, 0), "accepted");
  EXPECT_ANSWER(checked(kMax + 1, 5, 0), "in_shape[0] is");
  EXPECT_ANSWER(checked(5, kMax, 0), "accepted");
  EXPECT_ANSWER(checked(5, kMax + 1, 0), "out_shape[0] is");
  EXPECT_ANSWER(checked(0, 5, 0), "in_shape[0] is 0");
  EXPECT_ANSWER(checked(5, 0, 0), "out_shape[0] is 0");
  EXPECT_ANSWER(checked(5, 5, static_cast<double>(kMax)), "accepted");
  EXPECT_ANSWER(checked(5, 5, static_cast<double>(kMax + 1)), "too small or too large");
  EXPECT_ANSWER(checked(5, 5, -1), "scale[0] is -1");
  // The last output's position in the input is below 2^30.
  EXPECT_ANSWER(checked(5, (1 << 20) - 2, 0x1p-10), "accepted");
  EXPECT_ANSWER(checked(5, (1 << 20) - 1, 0x1p-10), "too small or too large");
  EXPECT_ANSWER(checked(5, 5, 0, 9), "mode is 9");
}

// An axis is left alone if it has one element or a step of one. Both backends ask the same function, so comparing them
// does not notice an error.
TEST_F(OperationChecks, AxesThatResizingLeavesAlone) {
  const auto resized = [&](uint64_t in, uint64_t out, double scale, bool corners = false) {
    ResizeArgs args{};
    args.dtype = TUFF_F32, args.mode = TUFF_RESIZE_LINEAR, args.align_corners = corners ? 1 : 0;
    args.batch = args.channels = args.spatial = 1;
    args.in_shape = {in}, args.out_shape = {out}, args.scale = {scale};
    return resize_shape(args).rank == 1;
  };
  EXPECT_FALSE(resized(4, 4, 0) || resized(4, 4, 1) || resized(4, 4, 0, true));
  EXPECT_FALSE(resized(1, 1, 0) || resized(1, 1, 3) || resized(1, 1, 0, true));
  EXPECT_TRUE(resized(4, 4, 1.5) && resized(4, 4, 0.5));
  EXPECT_TRUE(resized(4, 5, 0) && resized(4, 5, 1) && resized(1, 2, 0) && resized(2, 1, 0));
}

TEST_F(OperationChecks, Slices) {
  const auto checked = [&](uint64_t start, int64_t step, uint64_t out) {
    const uint64_t shape[] = {10};
    SliceArgs args{};
    args.dtype = TUFF_F32, args.rank = 1;
    args.input = &buffers_[0], args.output = &buffers_[1];
    args.shape = shape, args.start = &start, args.step = &step, args.out_shape = &out;
    return answer([&] { check_slice(args); });
  };
  EXPECT_ANSWER(checked(1, 3, 3), "accepted");
  EXPECT_ANSWER(checked(1, 3, 4), "gives at most 3");
  EXPECT_ANSWER(checked(8, -3, 3), "accepted");
  EXPECT_ANSWER(checked(8, -3, 4), "gives at most 3");
  EXPECT_ANSWER(checked(9, 1, 1), "accepted");
  EXPECT_ANSWER(checked(10, 1, 1), "start[0] is 10");
  EXPECT_ANSWER(checked(10, 1, 0), "accepted");
  EXPECT_ANSWER(checked(0, INT64_MIN, 1), "accepted");
  EXPECT_ANSWER(checked(0, 0, 1), "step[0] is 0");
}

// Arrays of matrices: any of them may overlap a part of the residual, of the bias, or of an input.
TEST_F(OperationChecks, ArraysOfMatrices) {
  constexpr uint64_t kMatrix = 6 * 5 * 4, kFirst = 1 << 20;
  const auto checked = [&](const std::function<void(GemmArgs&, std::array<Buffer, 3>&)>& change) {
    std::array<Buffer, 3> outputs;
    for (Buffer& buffer : outputs) {
      buffer.allocation = std::make_shared<Nowhere>(), buffer.offset = kFirst, buffer.bytes = kMatrix;
    }
    const Buffer* const a[] = {&buffers_[0], &buffers_[0], &buffers_[0]};
    const Buffer* const b[] = {&buffers_[1], &buffers_[1], &buffers_[1]};
    const Buffer* const c[] = {&outputs[0], &outputs[1], &outputs[2]};
    GemmArgs args{};
    args.a_type = args.b_type = args.c_type = args.accumulate = TUFF_F32;
    args.m = 6, args.n = 5, args.k = 4, args.alpha = 1, args.batch_count = 3;
    args.lda = 4, args.ldb = args.ldc = 5;
    args.a_array = a, args.b_array = b, args.c_array = c;
    Buffer residual = buffers_[2];
    args.epilogue.residual = &residual, args.epilogue.ld_residual = 5, args.epilogue.stride_residual = 30;
    change(args, outputs);
    return answer([&] { check_gemm(args); });
  };
  EXPECT_ANSWER(checked([](GemmArgs&, auto&) {}), "accepted");
  const auto place = [](GemmArgs& args, const Buffer& output, uint64_t offset) {
    Buffer& residual = const_cast<Buffer&>(*args.epilogue.residual);
    residual.allocation = output.allocation, residual.offset = offset;
  };
  for (const uint64_t i : {0, 1, 2}) {
    // The residual's matrix i is C's, which is allowed; one element further it is not.
    EXPECT_ANSWER(checked([&](GemmArgs& args, auto& c) { place(args, c[i], kFirst - i * kMatrix); }), "accepted");
    EXPECT_ANSWER(checked([&](GemmArgs& args, auto& c) { place(args, c[i], kFirst - i * kMatrix + 4); }), "overlap");
    EXPECT_ANSWER(checked([&](GemmArgs& args, auto& c) {
                    place(args, c[i], kFirst - i * kMatrix), args.epilogue.ld_residual = 6;
                    args.epilogue.stride_residual = 36;
                    const_cast<Buffer&>(*args.epilogue.residual).offset = kFirst - i * 36 * 4;
                  }),
                  "overlap");
    // One residual for all, which is C's matrix i.
    EXPECT_ANSWER(
        checked([&](GemmArgs& args, auto& c) { place(args, c[i], kFirst), args.epilogue.stride_residual = 0; }),
        "overlap");
    EXPECT_ANSWER(checked([&](GemmArgs& args, auto& c) {
                    place(args, c[i], kFirst + kMatrix), args.epilogue.stride_residual = 0;
                  }),
                  "accepted");
  }
  // A single matrix has no stride.
  EXPECT_ANSWER(checked([&](GemmArgs& args, auto& c) {
                  place(args, c[0], kFirst), args.batch_count = 1, args.epilogue.stride_residual = 0;
                }),
                "accepted");
  // With k = 0, inputs are not read: they may be anywhere.
  EXPECT_ANSWER(checked([&](GemmArgs& args, auto& c) {
                  args.k = 0, args.lda = 1, args.epilogue.residual = nullptr;
                  const_cast<Buffer&>(*args.a_array[0]).allocation = c[1].allocation;
                }),
                "accepted");
}

TEST_F(OperationChecks, TypesOfSums) {
  const auto checked = [&](int32_t a, int32_t b, int32_t c, int32_t sums) {
    GemmArgs args{};
    args.a_type = a, args.b_type = b, args.c_type = c, args.accumulate = sums;
    args.m = args.n = args.k = args.lda = args.ldb = args.ldc = 4, args.alpha = 1, args.batch_count = 1;
    args.a = &buffers_[0], args.b = &buffers_[1], args.c = &buffers_[2];
    return answer([&] { check_gemm(args); });
  };
  EXPECT_ANSWER(checked(TUFF_F16, TUFF_F16, TUFF_F16, TUFF_F32), "accepted");
  EXPECT_ANSWER(checked(TUFF_F16, TUFF_F16, TUFF_F16, TUFF_F16), "accepted");
  EXPECT_ANSWER(checked(TUFF_F16, TUFF_F16, TUFF_F16, TUFF_BF16), "accumulate is bf16");
  EXPECT_ANSWER(checked(TUFF_F32, TUFF_F16, TUFF_F32, TUFF_F16), "accumulate is f16");
  EXPECT_ANSWER(checked(TUFF_F16, TUFF_F32, TUFF_F32, TUFF_F16), "accumulate is f16");
  EXPECT_ANSWER(checked(TUFF_I8, TUFF_I8, TUFF_I32, TUFF_I32), "accepted");
  EXPECT_ANSWER(checked(TUFF_I8, TUFF_I8, TUFF_F32, TUFF_I32), "accepted");
  EXPECT_ANSWER(checked(TUFF_I8, TUFF_F32, TUFF_F32, TUFF_F32), "not supported");
  EXPECT_ANSWER(checked(TUFF_F64, TUFF_F64, TUFF_F64, TUFF_F64), "accepted");
  EXPECT_ANSWER(checked(TUFF_F64, TUFF_F64, TUFF_F32, TUFF_F64), "not supported");
}

TEST_F(OperationChecks, ScalesOfIntegers) {
  const auto checked = [&](double alpha, double beta, int32_t c = TUFF_I32) {
    GemmArgs args{};
    args.a_type = args.b_type = TUFF_I8, args.c_type = c, args.accumulate = TUFF_I32;
    args.m = args.n = args.k = args.lda = args.ldb = args.ldc = 4, args.batch_count = 1;
    args.alpha = alpha, args.beta = beta;
    args.a = &buffers_[0], args.b = &buffers_[1], args.c = &buffers_[2];
    return answer([&] { check_gemm(args); });
  };
  for (const double value : {-0x1p31, 0x1p31 - 1, 0.0, -1.0}) {
    EXPECT_ANSWER(checked(value, 0), "accepted");
    EXPECT_ANSWER(checked(1, value), "accepted");
  }
  for (const double value : {-0x1p31 - 1, 0x1p31, 0.5, -0.5, static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    EXPECT_ANSWER(checked(value, 0), "alpha is");
    EXPECT_ANSWER(checked(1, value), "beta is");
  }
  EXPECT_ANSWER(checked(0.5, 0x1p31, TUFF_F32), "accepted");
}

#undef EXPECT_ANSWER

}  // namespace
}  // namespace tuff
