// All planners with random calls of all sizes: whatever check_…() accepts is either planned or rejected. A division by
// zero would end the process. Dispatches must stay within their operands.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <optional>
#include <vector>

#include "internal/fake_recorder.hpp"
#include "kernels/attention/attention.hpp"
#include "kernels/common/check.hpp"
#include "kernels/conv/conv.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/gemm/gemm.hpp"
#include "kernels/norm/norm.hpp"
#include "kernels/pool/pool.hpp"
#include "kernels/position/rope.hpp"
#include "kernels/reduce/reduce.hpp"
#include "kernels/reduce/reduce_ops.hpp"
#include "kernels/resize/resize.hpp"
#include "kernels/shape/shape.hpp"
#include "kernels/softmax/softmax.hpp"
#include "planning/status.hpp"
#include "support/tensor.hpp"

namespace tuff {
namespace {

DeviceTraits a_cpu() {
  DeviceTraits traits;
  traits.cpu = true;
  traits.subgroup_size = 8;
  traits.subgroup_arithmetic = traits.subgroup_shuffle = traits.subgroup_ballot = true;
  traits.cores = 2;
  traits.max_invocations = 1024;
  traits.max_local_size[0] = 1024;
  traits.shared_bytes = 32 << 10;
  traits.addresses = traits.storage16 = traits.storage8 = traits.f64 = true;
  return traits;
}

// Typical devices, and devices with the minimum capabilities.
std::vector<DeviceTraits> devices() {
  std::vector<DeviceTraits> all = {a_cpu(), a_cpu(), a_gpu(), a_gpu(), a_gpu()};
  all[1].addresses = false;
  all[1].cores = 0;
  all[1].subgroup_size = 4;
  all[3].subgroup_ballot = true;
  all[3].matrix_shapes[0] = {16, 16, 16, TUFF_F16, TUFF_F16, TUFF_F32};
  all[3].matrix_shapes[1] = {16, 16, 16, TUFF_BF16, TUFF_BF16, TUFF_F32};
  all[3].matrix_shapes[2] = {16, 16, 32, TUFF_I8, TUFF_I8, TUFF_I32};
  all[3].matrix_shape_count = 3;
  all[4] = DeviceTraits{};
  all[4].storage16 = all[4].storage8 = true;
  return all;
}

class Planners : public testing::Test {
 protected:
  Planners() {
    for (size_t i = 0; i < buffers_.size(); ++i) {
      buffers_[i].allocation = std::make_shared<Nowhere>();
      buffers_[i].bytes = uint64_t{1} << 62;
    }
  }
  // Mostly small sizes, and now and then ones that do not fit 31 or 32 bits.
  uint64_t size() {
    static constexpr uint64_t kSmall[] = {1, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 24, 31, 32, 33, 64, 0};
    static constexpr uint64_t kLarge[] = {100, 255, 256, 1000, 1024, 4097, 65'536, 1u << 20, 0x7fffffff, 1u << 31};
    const uint64_t word = random_.next();
    if (word % 40 == 0) return kLarge[word / 64 % std::size(kLarge)];
    return kSmall[word / 64 % std::size(kSmall)];
  }
  uint64_t below(uint64_t n) { return random_.next() % n; }
  bool coin(uint64_t of = 2) { return below(of) == 0; }
  int32_t floating() { return std::array{TUFF_F32, TUFF_F16, TUFF_BF16}[below(3)]; }
  int32_t type() { return static_cast<int32_t>(1 + below(8)); }
  template <size_t n>
  std::array<uint64_t, n> sizes() {
    std::array<uint64_t, n> result;
    for (uint64_t& one : result) one = size();
    return result;
  }
  // A separate buffer, at an offset that may or may not be a multiple of 16 bytes.
  const Buffer* operand(uint64_t element = 8) {
    Buffer& buffer = buffers_[next_++ % buffers_.size()];
    buffer.offset = coin() ? 0 : below(9) * element;
    return &buffer;
  }
  const Buffer* perhaps(uint64_t element = 8) { return coin() ? nullptr : operand(element); }

  // True if the call would be planned in too many pieces to test.
  static bool endless(std::initializer_list<uint64_t> sizes) {
    double product = 1;
    for (const uint64_t one : sizes) product *= static_cast<double>(std::max<uint64_t>(one, 1));
    return product > 0x1p34;
  }

  // `plan` makes one random call: it checks and records it.
  void run(uint64_t times, const std::function<void(Recorder&)>& plan) {
    uint64_t planned = 0;
    const std::vector<DeviceTraits> all = devices();
    for (uint64_t i = 0; i < times; ++i) {
      FakeRecorder recorder(all[i % all.size()]);
      recorder.seen = [](const KernelRequest& kernel, const Dispatch& dispatch) {
        for (uint32_t j = 0; j < dispatch.operand_count(); ++j) {
          const Dispatch::Operand& operand = dispatch.operands()[j];
          if (operand.each != nullptr || operand.buffer == nullptr || operand.bytes == 0) continue;
          const uint64_t end = operand.offset + operand.bytes;
          EXPECT_TRUE(end > operand.offset && end <= operand.buffer->bytes)
              << kernel.source().name << ", operand " << j << ": bytes " << operand.offset << " to " << end << " of "
              << operand.buffer->bytes;
        }
      };
      try {
        plan(recorder);
        planned += recorder.kernels.empty() ? 0 : 1;
      } catch (const Error& error) {
        EXPECT_NE(error.code(), TUFF_ERROR_INTERNAL) << error.what();
      }
      if (HasFailure()) return;
    }
    EXPECT_GT(planned, times / 20) << "hardly any call was valid";
  }

  tuff_test::Random random_{11};
  std::array<Buffer, 16> buffers_;
  size_t next_ = 0;
};

constexpr uint64_t kTimes = 4000;

TEST_F(Planners, Attention) {
  run(2 * kTimes, [&](Recorder& recorder) {
    AttentionArgs args{};
    args.dtype = floating();
    args.q = operand(), args.k = operand(), args.v = operand(), args.o = operand();
    args.batch = size(), args.kv_heads = size(), args.heads = args.kv_heads * (1 + below(9));
    args.seq_q = coin() ? 1 : size(), args.seq_kv = size(), args.head_dim = size();
    args.head_dim_v = coin() ? 0 : size();
    args.causal = static_cast<int32_t>(below(3));
    args.lse = perhaps(), args.mask = coin(4) ? operand() : nullptr;
    complete_attention(args, true);
    check_attention(args);
    record_attention(recorder, args);
  });
}

TEST_F(Planners, Convolution) {
  run(2 * kTimes, [&](Recorder& recorder) {
    ConvArgs args;
    args.dtype = floating();
    args.layout = coin() ? TUFF_LAYOUT_NCHW : TUFF_LAYOUT_NHWC;
    args.rank = static_cast<uint32_t>(1 + below(3));
    args.transposed = args.rank == 2 && coin(3);
    const bool plain = coin(3);  // has special variants
    args.groups = plain || coin() ? 1 : 1 + below(6);
    const uint64_t channels = coin(5) ? 0 : coin(4) ? 16 * (1 + below(9)) : 1 + below(3);
    const uint64_t filters = coin(4) ? 16 * (1 + below(9)) : 1 + below(4);
    args.in_shape.outer = {size(), args.groups * channels};
    args.filter_shape.outer = {args.groups * filters, channels};
    if (args.transposed) args.filter_shape.outer = {args.groups * channels, filters};
    args.out_shape.outer = {args.in_shape.outer[0], args.groups * filters};
    for (uint32_t axis = kConvAxes - args.rank; axis < kConvAxes; ++axis) {
      const uint64_t taps = plain ? 3 : 1 + below(7), stride = plain ? 1 : coin(9) ? 1 + size() : 1 + below(3);
      const uint64_t dilation = plain ? 1 : coin(9) ? 1 + size() : 1 + below(3);
      const uint64_t in = size(), front = coin(9) ? size() : below(4), back = args.transposed ? front : below(4);
      const uint64_t span = dilation * (taps - 1) + 1, padded = in + front + back;
      args.in_shape.extents[axis] = in, args.filter_shape.extents[axis] = taps;
      args.stride[axis] = stride, args.dilation[axis] = dilation;
      args.padding[axis] = front, args.padding_end[axis] = back;
      args.out_shape.extents[axis] = args.transposed ? in == 0 ? 0 : (in - 1) * stride + span - front - back
                                     : padded < span ? 0
                                                     : (padded - span) / stride + 1;
    }
    // Each phase is planned separately.
    if (args.transposed && args.stride[1] * args.stride[2] > 1000) return;
    args.input = operand(), args.filter = operand(), args.output = operand(), args.bias = perhaps();
    args.residual = perhaps(), args.activation = static_cast<int32_t>(below(6));
    args.precision = coin() ? TUFF_PRECISION_DEFAULT : TUFF_PRECISION_ALLOW_WINOGRAD;
    check_conv(args);
    // The image would be split into too many pieces.
    if (endless({args.out_shape.elements()}) || endless({args.in_shape.elements()})) return;
    record_conv(recorder, args);
  });
}

TEST_F(Planners, Products) {
  const auto extent = [&] { return coin(4) ? 16 * (1 + below(40)) : size(); };
  run(3 * kTimes, [&](Recorder& recorder) {
    static constexpr int32_t kTypes[] = {TUFF_F32, TUFF_F16, TUFF_BF16, TUFF_F64, TUFF_I8, TUFF_I32};
    GemmArgs args{};
    args.a_type = kTypes[below(6)], args.b_type = coin(4) ? kTypes[below(6)] : args.a_type;
    args.c_type = coin(4) ? kTypes[below(6)] : args.a_type == TUFF_I8 ? TUFF_I32 : args.a_type;
    args.accumulate = args.sum_type();
    args.precision = static_cast<int32_t>(below(3));
    args.ta = static_cast<int32_t>(below(2)), args.tb = static_cast<int32_t>(below(2));
    args.m = extent(), args.n = extent(), args.k = extent();
    args.alpha = 1, args.beta = coin() ? 0 : 1;
    const uint64_t gap = coin() ? 0 : below(3);
    args.lda = (args.ta != 0 ? args.m : args.k) + gap, args.ldb = (args.tb != 0 ? args.k : args.n) + gap;
    args.ldc = args.n + gap;
    args.batch_count = coin() ? 1 : size();
    args.stride_a = (args.ta != 0 ? args.k : args.m) * args.lda;
    args.stride_b = coin() ? 0 : (args.tb != 0 ? args.n : args.k) * args.ldb;
    args.stride_c = args.m * args.ldc;
    args.a = operand(), args.b = operand(), args.c = operand();
    if (coin()) {
      GemmEpilogue& epilogue = args.epilogue;
      epilogue.activation = static_cast<int32_t>(below(args.c_type == TUFF_I32 ? 2 : 6));
      epilogue.bias_axis = static_cast<int32_t>(below(3));
      if (epilogue.bias_axis != TUFF_BIAS_NONE) epilogue.bias = operand();
      epilogue.residual = perhaps();
      epilogue.ld_residual = args.ldc;
      epilogue.stride_residual = args.stride_c, epilogue.stride_bias = coin() ? 0 : std::max(args.m, args.n);
    }
    const bool arrays = args.batch_count > 1 && args.batch_count < 100 && args.epilogue.bias == nullptr &&
                        args.epilogue.residual == nullptr && coin(3);
    const std::vector<const Buffer*> each_a(arrays ? args.batch_count : 0, args.a);
    const std::vector<const Buffer*> each_b(each_a.size(), args.b);
    std::vector<Buffer> outputs(each_a.size());
    std::vector<const Buffer*> each_c;
    for (Buffer& output : outputs) {
      output.allocation = std::make_shared<Nowhere>();
      output.bytes = uint64_t{1} << 62;
      each_c.push_back(&output);
    }
    if (arrays) {
      args.a_array = each_a.data(), args.b_array = each_b.data(), args.c_array = each_c.data();
      args.stride_a = args.stride_b = args.stride_c = 0;
    }
    check_gemm(args);
    const double results = static_cast<double>(args.m) * static_cast<double>(args.n);
    if (results * static_cast<double>(args.batch_count) > 1e11 || static_cast<double>(args.k) > 1e7) return;
    record_gemm(recorder, args);
  });
}

TEST_F(Planners, ReductionsAndSoftmax) {
  run(kTimes, [&](Recorder& recorder) {
    const auto shape = sizes<3>();
    const auto op = static_cast<int32_t>(1 + below(16));
    const auto dtype = static_cast<int32_t>(1 + below(13));
    const ReduceArgs args{dtype, op, operand(), operand(), shape.data(), 3, static_cast<uint32_t>(below(3))};
    check_reduce(args);
    if (endless({shape[0], shape[1], shape[2]})) return;
    record_reduce(recorder, args);
  });
  run(kTimes, [&](Recorder& recorder) {
    const auto shape = sizes<3>();
    SoftmaxArgs args{floating(),
                     operand(),
                     operand(),
                     shape.data(),
                     3,
                     static_cast<uint32_t>(below(3)),
                     1,
                     static_cast<int32_t>(below(2)),
                     {nullptr, 0, 0, 1}};
    if (coin()) args.mask = {operand(), coin() ? args.dtype : static_cast<int32_t>(TUFF_U8), below(3), 1 + below(3)};
    check_softmax(args);
    if (endless({shape[0], shape[1], shape[2]})) return;
    record_softmax(recorder, args);
  });
}

TEST_F(Planners, Norms) {
  run(kTimes, [&](Recorder& recorder) {
    NormArgs args{};
    args.dtype = floating(), args.weight_type = coin() ? args.dtype : static_cast<int32_t>(TUFF_F32);
    args.centred = coin(), args.grouped = coin();
    args.input = operand(), args.output = operand(), args.weight = perhaps(), args.bias = perhaps();
    args.residual = perhaps();
    args.sum = args.residual != nullptr ? perhaps() : nullptr;
    args.rows = size(), args.channels = size(), args.inner = args.grouped ? size() : 1;
    args.groups = args.grouped ? 1 + below(4) : 1;
    args.epsilon = 1e-5;
    check_norm(args);
    if (endless({args.rows, args.channels, args.inner})) return;
    record_norm(recorder, args);
  });
  run(kTimes, [&](Recorder& recorder) {
    BatchNormArgs args{};
    args.dtype = args.weight_type = floating();
    args.input = operand(), args.output = operand(), args.mean = operand(), args.variance = operand();
    args.weight = perhaps(), args.bias = perhaps();
    args.batch = size(), args.channels = size(), args.inner = size();
    args.epsilon = 1e-5;
    check_batch_norm(args);
    if (endless({args.batch, args.channels, args.inner})) return;
    record_batch_norm(recorder, args);
  });
}

TEST_F(Planners, PoolsAndResizing) {
  run(2 * kTimes, [&](Recorder& recorder) {
    PoolArgs args{};
    args.dtype = floating(), args.maximum = coin();
    args.input = operand(), args.output = operand(), args.indices = args.maximum ? perhaps() : nullptr;
    args.batch = size(), args.channels = size(), args.spatial = static_cast<uint32_t>(1 + below(3));
    args.adaptive = static_cast<int32_t>(below(2));
    args.ceil_mode = args.adaptive == 0 ? static_cast<int32_t>(below(2)) : 0;
    for (uint32_t i = 0; i < args.spatial; ++i) {
      const uint64_t in = args.in_shape[i] = size();
      if (args.adaptive != 0) {
        args.out_shape[i] = size();
        continue;
      }
      const uint64_t kernel = args.kernel[i] = 1 + below(6), stride = args.stride[i] = below(4);
      const uint64_t dilation = args.dilation[i] = args.maximum ? below(3) : 0;
      const uint64_t span = std::max<uint64_t>(dilation, 1) * (kernel - 1) + 1;
      args.padding[i] = below(span / 2 + 1);
      const uint64_t padded = in + 2 * args.padding[i], step = stride == 0 ? kernel : stride;
      uint64_t out = padded < span ? 0 : (padded - span + (args.ceil_mode != 0 ? step - 1 : 0)) / step + 1;
      if (args.ceil_mode != 0 && out != 0 && (out - 1) * step >= in + args.padding[i]) --out;
      args.out_shape[i] = out;
    }
    check_pool(args);
    const PoolShape shape = pool_shape(args);
    if (endless({shape.planes, std::max(shape.inputs(), shape.outputs())})) return;
    record_pool(recorder, args);
  });
  run(2 * kTimes, [&](Recorder& recorder) {
    ResizeArgs args{};
    args.dtype = floating(), args.mode = static_cast<int32_t>(TUFF_RESIZE_NEAREST + below(3));
    args.layout = coin() ? TUFF_LAYOUT_NCHW : TUFF_LAYOUT_NHWC;
    args.input = operand(), args.output = operand();
    args.batch = size(), args.channels = size(), args.spatial = static_cast<uint32_t>(1 + below(3));
    args.align_corners = args.mode == TUFF_RESIZE_LINEAR ? static_cast<int32_t>(below(2)) : 0;
    for (uint32_t i = 0; i < args.spatial; ++i) {
      args.in_shape[i] = size(), args.out_shape[i] = coin(3) ? args.in_shape[i] : size();
      static constexpr double kScales[] = {0, 0, 1, 0.5, 2, 1.5, 0.3, 1e-8, 0x1.000001p-29, 1e8, 5e8};
      if (args.align_corners == 0) args.scale[i] = kScales[below(std::size(kScales))];
    }
    check_resize(args);
    std::array<uint64_t, 3> most{};
    for (uint32_t i = 0; i < args.spatial; ++i) most[i] = std::max(args.in_shape[i], args.out_shape[i]);
    if (endless({args.batch, args.channels, most[0], most[1], most[2]})) return;
    record_resize(recorder, args);
  });
}

TEST_F(Planners, Rope) {
  run(kTimes, [&](Recorder& recorder) {
    RopeArgs args{};
    args.dtype = floating();
    args.input = operand(), args.output = operand(), args.positions = perhaps();
    args.batch = size(), args.heads = size(), args.seq = size(), args.head_dim = size();
    args.rotary_dim = coin() ? args.head_dim / 2 * 2 : below(args.head_dim / 2 + 1) * 2;
    const uint64_t row = args.head_dim + below(3);
    args.input_strides = args.output_strides = {args.heads * args.seq * row, args.seq * row, row};
    args.positions_stride = coin() ? 0 : args.seq;
    args.base = 10000;
    check_rope(args);
    if (endless({args.batch, args.heads, args.seq, args.head_dim})) return;
    record_rope(recorder, args);
  });
}

TEST_F(Planners, Elementwise) {
  run(kTimes, [&](Recorder& recorder) {
    const UnaryArgs args{floating(), static_cast<int32_t>(1 + below(17)), operand(), operand(), size() * size(), 0};
    check_unary(args);
    if (endless({args.n})) return;
    record_unary(recorder, args);
  });
  run(kTimes, [&](Recorder& recorder) {
    auto a = sizes<8>(), b = a;
    const auto rank = static_cast<uint32_t>(1 + below(8));
    for (uint32_t i = 0; i < rank; ++i) {
      if (coin(3)) (coin() ? a : b)[i] = 1;
    }
    const BinaryArgs args{
        floating(), static_cast<int32_t>(1 + below(7)), operand(), operand(), operand(), 0, rank, a.data(), b.data()};
    check_binary(args);
    const uint64_t count = result_count(args);
    if (endless({count})) return;
    repeats_an_operand(args) ? record_binary_broadcast(recorder, args) : record_binary(recorder, args);
  });
}

TEST_F(Planners, WhatMovesElements) {
  run(kTimes, [&](Recorder& recorder) {
    const auto shape = sizes<4>();
    std::array<uint32_t, 4> order = {0, 1, 2, 3};
    for (uint32_t i = 3; i > 0; --i) std::swap(order[i], order[below(i + 1)]);
    const PermuteArgs args{type(), operand(), operand(), shape.data(), order.data(), 4};
    check_permute(args);
    if (endless({shape[0], shape[1], shape[2], shape[3]})) return;
    record_permute(recorder, args);
  });
  run(kTimes, [&](Recorder& recorder) {
    const auto shape = sizes<3>();
    std::array<uint64_t, 3> start{}, out{};
    std::array<int64_t, 3> step{};
    for (int i = 0; i < 3; ++i) {
      if (shape[i] == 0) return;
      start[i] = below(shape[i]);
      step[i] = static_cast<int64_t>(1 + below(3)) * (coin() ? 1 : -1);
      const uint64_t ahead = step[i] > 0 ? shape[i] - 1 - start[i] : start[i];
      out[i] = 1 + below(ahead / static_cast<uint64_t>(std::llabs(step[i])) + 1);
    }
    const SliceArgs args{type(), operand(), operand(), shape.data(), start.data(), out.data(), step.data(), 3};
    check_slice(args);
    if (endless({out[0], out[1], out[2]})) return;
    record_slice(recorder, args);
  });
  run(kTimes, [&](Recorder& recorder) {
    auto shape = sizes<3>();
    const auto parts = sizes<3>();
    const auto axis = static_cast<uint32_t>(below(3));
    shape[axis] = parts[0] + parts[1] + parts[2];
    const std::array<const Buffer*, 3> inputs = {operand(), operand(), operand()};
    const ConcatArgs args{type(), inputs, parts.data(), operand(), shape.data(), 3, axis};
    check_concat(args);
    if (endless({shape[0], shape[1], shape[2]})) return;
    record_concat(recorder, args);
  });
  run(2 * kTimes, [&](Recorder& recorder) {
    const auto shape = sizes<3>();
    auto index_shape = shape;
    const bool elementwise = coin();
    static constexpr int32_t kIndexTypes[] = {TUFF_U32, TUFF_I32, TUFF_I64, TUFF_U64};
    GatherArgs args{type(), kIndexTypes[below(4)],           operand(), operand(), operand(), shape.data(),
                    3,      static_cast<uint32_t>(below(3)), size(),    nullptr};
    index_shape[args.axis] = size();
    if (elementwise) args.index_shape = index_shape.data();
    if (shape[args.axis] == 0 && coin()) args.input = nullptr;
    check_gather(args);
    if (endless({shape[0], shape[1], shape[2], args.count, index_shape[args.axis]})) return;
    record_gather(recorder, args);
  });
  run(kTimes, [&](Recorder& recorder) {
    const CastArgs args{type(), type(), operand(), operand(), size() * size()};
    check_cast(args);
    if (endless({args.n})) return;
    record_cast(recorder, args);
  });
}

}  // namespace
}  // namespace tuff
