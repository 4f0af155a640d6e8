// The arithmetic that planners share, and single numbers that they pass to kernels.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "internal/fake_recorder.hpp"
#include "kernels/attention/attention_plan.hpp"
#include "kernels/common/row_plan.hpp"
#include "kernels/common/strided_axes.hpp"
#include "kernels/conv/conv_plan.hpp"
#include "kernels/gemm/implicit_gemm.hpp"
#include "kernels/reduce/reduce.hpp"
#include "kernels/resize/resize.hpp"
#include "kernels/scan/scan.hpp"
#include "kernels/shape/shape.hpp"
#include "kernels/shape/strided_copy.hpp"
#include "planning/arithmetic.hpp"
#include "planning/status.hpp"
#include "shaders/gather.hpp"

namespace tuff {
namespace {

Buffer nowhere(uint64_t offset = 0) {
  Buffer buffer;
  buffer.allocation = std::make_shared<Nowhere>(), buffer.bytes = uint64_t{1} << 62, buffer.offset = offset;
  return buffer;
}

// The status of planning; nothing may be recorded if it is an error.
template <typename Plan>
tuff_status planned(const DeviceTraits& traits, const Plan& plan) {
  FakeRecorder recorder(traits);
  try {
    plan(recorder);
  } catch (const Error& error) {
    EXPECT_TRUE(recorder.kernels.empty());
    return error.code();
  }
  return TUFF_OK;
}

TEST(PlannerValues, Arithmetic) {
  for (uint64_t offset = 0; offset < 48; ++offset) {
    const Buffer buffer = nowhere(4);
    EXPECT_EQ(aligned16(&buffer, offset), (offset + 4) % 16 == 0) << offset;
  }
  EXPECT_TRUE(aligned16(nullptr, 3));
  EXPECT_FALSE(needs_wide(0x7fffffff));
  EXPECT_TRUE(needs_wide(0x80000000));
  for (uint64_t a = 0; a < 40; ++a) {
    for (uint64_t b = 1; b < 10; ++b) {
      EXPECT_EQ(ceil_div(a, b), (a + b - 1) / b);
      EXPECT_EQ(round_up(a, b), (a + b - 1) / b * b);
    }
  }
  EXPECT_EQ(ceil_div(~uint64_t{0}, 2), uint64_t{1} << 63);
  EXPECT_EQ(few_values(0, 1, 64), 1u);
  EXPECT_EQ(few_values(33, 1, 64), 32u);
  EXPECT_EQ(few_values(1000, 1, 64), 64u);
  EXPECT_EQ(column_width(8, TUFF_F16), 8u);
  EXPECT_EQ(column_width(12, TUFF_F16), 4u);
  EXPECT_EQ(column_width(8, TUFF_F32), 4u);
  EXPECT_EQ(column_width(6, TUFF_F32), 1u);
  EXPECT_EQ(block_parts(TUFF_F32), 1u);
  EXPECT_EQ(block_parts(TUFF_BF16), 2u);
}

TEST(PlannerValues, DividersDivide) {
  for (const uint32_t d : {1u, 2u, 3u, 5u, 7u, 64u, 641u, 65535u, 65536u, 1000003u, 0x7fffffffu}) {
    const Divider by = divider(d);
    for (const uint32_t n : {0u, 1u, d - 1, d, d + 1, 2 * d - 1, 12345u, 0x7ffffffeu, 0x7fffffffu}) {
      if (n > 0x7fffffffu) continue;
      const uint64_t high = uint64_t{n} * by.multiplier >> 32;
      EXPECT_EQ((high + n) >> by.shift, n / d) << n << " / " << d;
    }
  }
}

// Pieces of whole blocks, aligned pieces, full workgroups within the device's limits.
TEST(PlannerValues, StreamDevices) {
  for (const bool cpu : {false, true}) {
    for (const uint32_t subgroup : {4u, 32u, 64u, 128u}) {  // of 128: 192 invocations are not whole subgroups
      for (const uint32_t along_x : {128u, 192u, 1024u}) {
        DeviceTraits traits = a_gpu();
        traits.cpu = cpu, traits.subgroup_size = subgroup, traits.max_local_size[0] = along_x, traits.cores = 0;
        const StreamDevice device = stream_device(traits, {}, 4);
        EXPECT_EQ(device.cpu, cpu);
        EXPECT_LE(device.workgroup, along_x);
        EXPECT_LE(device.largest, along_x);
        EXPECT_GE(device.largest, device.workgroup);
        EXPECT_EQ(device.workgroup % subgroup, 0u);
        EXPECT_GE(device.cores, 1u);
        EXPECT_EQ(device.piece % 64, 0u);
        EXPECT_LE(device.piece * 4 + 1024, traits.max_range);
        EXPECT_GE(device.piece * 4 + 2048, traits.max_range);
        EXPECT_TRUE(stream_device(traits, "cpu", 4).cpu);
        EXPECT_FALSE(stream_device(traits, "gpu", 4).cpu);
      }
    }
  }
  DeviceTraits traits = a_gpu();
  EXPECT_EQ(vector_mode(traits, false), 0);
  EXPECT_EQ(vector_mode(traits, true), 1);
  traits.cpu = true;
  EXPECT_EQ(vector_mode(traits, true), 2);
  traits.streams_by_words = true;
  EXPECT_EQ(vector_mode(traits, true), 1);
  traits.storage16 = traits.storage8 = false;
  EXPECT_THROW(require_storage(traits, TUFF_F16), Error);
  EXPECT_THROW(require_storage(traits, TUFF_U8), Error);
  EXPECT_NO_THROW(require_storage(traits, TUFF_F32));
}

// Registers hold every row that they are chosen for, and segments cover each row exactly.
TEST(PlannerValues, RowsAreHeldOrCut) {
  for (const bool cpu : {false, true}) {
    DeviceTraits traits = a_gpu();
    traits.cpu = cpu;
    const StreamDevice device = stream_device(traits, {}, 4);
    for (const uint64_t block : {4, 8}) {
      for (uint64_t extent = 1; extent < 3'000'000; extent += 1 + extent / 3) {
        for (const uint64_t rows : {1, 100, 100'000}) {
          if (const auto held = register_rows(device, rows, extent, block)) {
            EXPECT_GE(uint64_t{held->lanes} * held->blocks * block, extent);
            EXPECT_LE(held->blocks * block, 64u);
            EXPECT_LE(held->lanes, held->workgroup);
            EXPECT_EQ(held->workgroup % held->lanes, 0u);
            EXPECT_EQ(held->shared, held->lanes > device.subgroup);
            EXPECT_TRUE(held->blocks <= 4 || held->blocks % 4 == 0);
          } else {
            EXPECT_GT(extent, (cpu ? device.subgroup * 64 : device.largest * 32) - block);
          }
          const RowSegments segments = cut_rows(device, rows, extent);
          EXPECT_EQ(segments.size % 8, 0u);
          EXPECT_GE(segments.count * segments.size, extent);
          EXPECT_LT((segments.count - 1) * segments.size, extent);
        }
      }
    }
  }
}

TEST(PlannerValues, StridedAxes) {
  StridedAxes<2> axes;
  EXPECT_EQ(axes.count(), 1u);
  EXPECT_EQ(axes.inner_size(), 1u);
  EXPECT_TRUE(axes.dense(0));
  axes.append(5, {60, -12});
  axes.append(1, {7, 7});  // omitted
  axes.append(3, {20, 4});
  axes.append(4, {5, 2});  // continues the axis before it in the first operand only
  axes.append(5, {1, 0});
  EXPECT_EQ(axes.rank, 4u);
  EXPECT_EQ(axes.count(), 300u);
  EXPECT_EQ(axes.inner_size(), 5u);
  EXPECT_EQ(axes.inner_stride(1), 0);
  EXPECT_TRUE(axes.dense(0));
  EXPECT_FALSE(axes.dense(1));
  EXPECT_EQ(axes.span(0).elements, 300u);
  EXPECT_EQ(axes.span(0).first, 0u);
  EXPECT_EQ(axes.span(1).elements, 4u * 12 + 2 * 4 + 3 * 2 + 1);
  EXPECT_EQ(axes.span(1).first, 48u);
  StridedAxes<2> merged;
  merged.append(6, {20, 40});
  merged.append(20, {1, 2});
  EXPECT_EQ(merged.rank, 1u);
  EXPECT_EQ(merged.sizes[0], 120u);
  EXPECT_EQ(merged.inner_stride(1), 2);
  const AxisDividers<8> dividers(axes);
  EXPECT_EQ(dividers.sizes[0], 5u);
  EXPECT_EQ(dividers.sizes[2], 3u);
  EXPECT_EQ(dividers.sizes[3], 0u);
  EXPECT_EQ(dividers.multipliers[2], divider(3).multiplier);
  EXPECT_EQ(dividers.shifts[0], divider(5).shift | divider(4).shift << 8 | divider(3).shift << 16);
}

TEST(PlannerValues, SquareMatrices) {
  DeviceTraits traits;
  traits.matrix_shape_count = 1;
  for (const MatrixShape& shape :
       {MatrixShape{8, 16, 16, TUFF_F16, TUFF_F16, TUFF_F32}, MatrixShape{16, 8, 16, TUFF_F16, TUFF_F16, TUFF_F32},
        MatrixShape{16, 16, 8, TUFF_F16, TUFF_F16, TUFF_F32}, MatrixShape{16, 16, 16, TUFF_BF16, TUFF_F16, TUFF_F32},
        MatrixShape{16, 16, 16, TUFF_F16, TUFF_BF16, TUFF_F32},
        MatrixShape{16, 16, 16, TUFF_F16, TUFF_F16, TUFF_F16}}) {
    traits.matrix_shapes[0] = shape;
    EXPECT_FALSE(traits.multiplies_squares(TUFF_F16));
  }
  traits.matrix_shapes[0] = {16, 16, 16, TUFF_F16, TUFF_F16, TUFF_F32};
  EXPECT_TRUE(traits.multiplies_squares(TUFF_F16));
}

// One bit for each optional operand of an extended call, and the windows and the scale.
TEST(PlannerValues, ShapesOfExtendedAttention) {
  Buffer buffer = nowhere();
  for (uint32_t bits = 0; bits < 16; ++bits) {
    AttentionArgs args;
    args.dtype = TUFF_F32;
    args.q = args.k = args.v = args.o = args.mask = &buffer;
    args.batch = 1, args.heads = args.kv_heads = 2, args.seq_q = 5, args.seq_kv = 9, args.head_dim = 16;
    if (bits & 1) args.lse = &buffer;
    if (bits & 2) args.q_lengths = &buffer;
    if (bits & 4) args.kv_lengths = &buffer;
    if (bits & 8) args.causal = TUFF_CAUSAL_BOTTOM_RIGHT;
    args.window_left = 7;
    complete_attention(args, true);
    FakeRecorder recorder(a_gpu());
    record_attention(recorder, args);
    attention::ExtendedShape<uint32_t> shape;
    ASSERT_EQ(recorder.last_parameters.size(), sizeof shape);
    std::memcpy(&shape, recorder.last_parameters.data(), sizeof shape);
    EXPECT_EQ(shape.present, bits);
    EXPECT_EQ(shape.left, 7u);
    EXPECT_EQ(shape.right, bits & 8 ? 1u : attention::kMaxSequence);
    EXPECT_EQ(shape.scale, 0.25f);
  }
}

TEST(PlannerValues, GatherKnowsHowFarIndicesReach) {
  const Buffer buffer = nowhere();
  for (const uint64_t axis : {uint64_t{7}, uint64_t{1} << 31, (uint64_t{1} << 32) - 1, uint64_t{1} << 33}) {
    for (const int32_t type : {TUFF_I32, TUFF_U32}) {
      const uint64_t shape[] = {axis, 3};
      GatherArgs args{};
      args.dtype = TUFF_F32, args.index_type = type;
      args.input = args.indices = args.output = &buffer;
      args.shape = shape, args.rank = 2, args.count = 5;
      FakeRecorder recorder(a_gpu());
      shaders::Gather::Push<true> push;
      recorder.seen = [&](const KernelRequest&, const Dispatch& dispatch) {
        ASSERT_EQ(dispatch.push_bytes(), sizeof push);
        std::memcpy(&push, dispatch.push_data(), sizeof push);
      };
      record_gather(recorder, args);
      EXPECT_EQ(push.named, static_cast<uint32_t>(std::min(axis, uint64_t{1} << (type == TUFF_I32 ? 31 : 32))));
    }
  }
}

// At the largest sizes that a kernel counts, and one beyond.
TEST(PlannerValues, LimitsAreExact) {
  const Buffer buffer = nowhere();
  DeviceTraits traits = a_gpu();
  traits.max_range = uint64_t{1} << 62;
  const auto scanned = [&](uint64_t extent, uint64_t inner) {
    const uint64_t shape[] = {extent, inner};
    return planned(traits, [&](Recorder& recorder) {
      record_scan(recorder, {ScanOp::sum, TUFF_F32, &buffer, &buffer, shape, 2, 0, false, false});
    });
  };
  EXPECT_EQ(scanned(0xffc00000, 1), TUFF_OK);
  EXPECT_EQ(scanned(0xffc00001, 1), TUFF_ERROR_UNSUPPORTED);
  EXPECT_EQ(scanned(0xffff0000, 3), TUFF_OK);
  EXPECT_EQ(scanned(0xffff0001, 3), TUFF_ERROR_UNSUPPORTED);
  EXPECT_EQ(scanned(2, uint64_t{0xffff0000} * 4), TUFF_OK);
  EXPECT_EQ(scanned(2, uint64_t{0xffff0001} * 4), TUFF_ERROR_UNSUPPORTED);
  const auto resized = [&](uint64_t elements) {
    ResizeArgs args{};
    args.dtype = TUFF_F32, args.mode = TUFF_RESIZE_NEAREST;
    args.input = args.output = &buffer;
    args.batch = args.channels = 1, args.spatial = 2;
    args.in_shape = {2, 2}, args.out_shape = {3, elements / 3};
    return planned(traits, [&](Recorder& recorder) { record_resize(recorder, args); });
  };
  EXPECT_EQ(resized((uint64_t{1} << 30) - 1), TUFF_OK);  // a multiple of three
  EXPECT_EQ(resized((uint64_t{1} << 30) + 2), TUFF_ERROR_UNSUPPORTED);
  const auto attended = [&](uint64_t heads, uint64_t rows, uint64_t keys, AttentionStrides AttentionArgs::*other) {
    AttentionArgs args;
    args.dtype = TUFF_F32;
    args.q = args.k = args.v = args.o = &buffer;
    args.batch = 2, args.heads = args.kv_heads = heads, args.seq_q = rows, args.seq_kv = keys, args.head_dim = 4;
    complete_attention(args, true);
    if (other != nullptr) (args.*other).batch += 4;
    return planned(traits, [&](Recorder& recorder) { record_attention(recorder, args); });
  };
  EXPECT_EQ(attended(1, (1u << 30) - 1, 2, nullptr), TUFF_OK);
  EXPECT_EQ(attended(1, 1u << 30, 2, nullptr), TUFF_ERROR_UNSUPPORTED);
  EXPECT_EQ(attended(1, 2, (1u << 30) - 1, nullptr), TUFF_OK);
  EXPECT_EQ(attended(1, 2, 1u << 30, nullptr), TUFF_ERROR_UNSUPPORTED);
  EXPECT_EQ(attended(65536, 2, 2, nullptr), TUFF_OK);
  for (const auto strides :
       {&AttentionArgs::q_strides, &AttentionArgs::k_strides, &AttentionArgs::v_strides, &AttentionArgs::o_strides}) {
    EXPECT_EQ(attended(65535, 2, 2, strides), TUFF_OK);
    EXPECT_EQ(attended(65536, 2, 2, strides), TUFF_ERROR_UNSUPPORTED);
  }
  const auto transposed = [&](uint64_t filters) {
    ConvArgs args;
    args.transposed = true;
    args.input = args.filter = args.output = &buffer;
    args.in_shape = {{1, 1 << 15}, {1, 1, 1}}, args.filter_shape = {{1 << 15, filters}, {1, 1, 1}};
    args.out_shape = {{1, filters}, {1, 1, 1}};
    return planned(traits, [&](Recorder& recorder) { record_conv(recorder, args); });
  };
  // Strides and dilations have 16 bits, unless they are only multiplied by 0.
  const auto spaced = [&](uint64_t stride, uint64_t dilation, uint64_t taps, uint64_t out) {
    ConvArgs args;
    args.input = args.filter = args.output = &buffer;
    args.stride[2] = stride, args.dilation[2] = dilation;
    args.in_shape = {{1, 3}, {1, 5, (out - 1) * stride + (taps - 1) * dilation + 1}};
    args.filter_shape = {{4, 3}, {1, 2, taps}}, args.out_shape = {{1, 4}, {1, 4, out}};
    return planned(traits, [&](Recorder& recorder) { record_conv(recorder, args); });
  };
  EXPECT_EQ(spaced(65535, 1, 2, 3), TUFF_OK);
  EXPECT_EQ(spaced(65536, 1, 2, 3), TUFF_ERROR_UNSUPPORTED);
  EXPECT_EQ(spaced(65536, 1, 2, 1), TUFF_OK);
  EXPECT_EQ(spaced(1, 65535, 2, 3), TUFF_OK);
  EXPECT_EQ(spaced(1, 65536, 2, 3), TUFF_ERROR_UNSUPPORTED);
  EXPECT_EQ(spaced(1, 65536, 1, 3), TUFF_OK);
  EXPECT_EQ(transposed((1 << 16) - 1), TUFF_OK);
  EXPECT_EQ(transposed(1 << 16), TUFF_ERROR_UNSUPPORTED);
}

tuff_status refusal_of(const std::function<void()>& check) {
  try {
    check();
  } catch (const Error& error) {
    return error.code();
  }
  return TUFF_OK;
}

// Convolutions count positions below 2^30: both sides of each limit, on each axis.
TEST(PlannerValues, PositionsOfConvolutionsAreExact) {
  constexpr uint64_t kLimit = uint64_t{1} << 30, kHuge = uint64_t{1} << 63;
  struct Padded {
    uint64_t in, before, after;
    bool fits;
  };
  const Padded padded[] = {{kLimit - 1, 0, 0, true},  {kLimit, 0, 0, false},     {kLimit - 3, 1, 1, true},
                           {kLimit - 2, 1, 1, false}, {1, kLimit - 3, 1, true},  {1, kLimit - 2, 1, false},
                           {1, 1, kLimit - 3, true},  {1, 1, kLimit - 2, false}, {0, kLimit - 1, 0, true},
                           {0, kLimit, 0, false},     {0, 0, kLimit - 1, true},  {0, 0, kLimit, false},
                           {kHuge, kHuge, 0, false},  {kHuge, 0, kHuge, false},  {0, kHuge, kHuge, false}};
  struct Transposed {
    uint64_t in, out, stride, taps, dilation;
    bool fits;
  };
  const Transposed transposed[] = {
      // The stride counts if there is more than one input or output.
      {2, 1, kLimit - 1, 1, 1, true},
      {2, 1, kLimit, 1, 1, false},
      {1, 2, kLimit - 1, 1, 1, true},
      {1, 2, kLimit, 1, 1, false},
      {1, 1, kLimit, 1, 1, true},
      // The dilation counts if there is more than one tap, and so does its product with the taps.
      {1, 1, 1, 1, kLimit, true},
      {1, 1, 1, 2, kLimit / 2 - 1, true},
      {1, 1, 1, 2, kLimit / 2, false},
      {1, 1, 1, 2, kHuge, false},
      {1, 1, 1, (1 << 15) - 1, 1 << 15, true},
      {1, 1, 1, 1 << 15, 1 << 15, false},
      {1, 1, 1, kLimit - 1, 1, true},
      {1, 1, 1, kLimit, 1, false},
      {1, kLimit - 1, 1, 1, 1, true},
      {1, kLimit, 1, 1, 1, false},
  };
  for (uint32_t axis = 0; axis < kConvAxes; ++axis) {
    for (const Padded& row : padded) {
      for (const bool is_transposed : {false, true}) {
        ConvArgs args;
        args.transposed = is_transposed;
        args.in_shape = args.filter_shape = args.out_shape = {{1, 1}, {1, 1, 1}};
        args.in_shape.extents[axis] = row.in, args.padding[axis] = row.before, args.padding_end[axis] = row.after;
        EXPECT_EQ(refusal_of([&] { conv::check_positions(args); }), row.fits ? TUFF_OK : TUFF_ERROR_UNSUPPORTED)
            << axis << ": " << row.in << " + " << row.before << " + " << row.after;
      }
    }
    for (const Transposed& row : transposed) {
      ConvArgs args;
      args.in_shape = args.filter_shape = args.out_shape = {{1, 1}, {1, 1, 1}};
      args.in_shape.extents[axis] = row.in, args.filter_shape.extents[axis] = row.taps;
      args.out_shape.extents[axis] = row.out;
      args.stride[axis] = row.stride, args.dilation[axis] = row.dilation;
      const auto check = [&] { conv::check_positions(args); };
      EXPECT_EQ(refusal_of(check), TUFF_OK) << "none of these is limited in other convolutions";
      args.transposed = true;
      EXPECT_EQ(refusal_of(check), row.fits ? TUFF_OK : TUFF_ERROR_UNSUPPORTED)
          << axis << ": " << row.in << " to " << row.out << " by " << row.stride << ", " << row.taps << " taps by "
          << row.dilation;
    }
  }
  // The numbers of a phase: channels times taps, filters, channels of all groups, and positions.
  const auto phase = [](uint64_t channels, uint64_t taps, uint64_t filters, uint64_t groups, uint64_t in) {
    conv::Product product;
    product.args.groups = groups;
    product.args.in_shape = {{1, channels}, {1, 1, in}};
    product.args.filter_shape = {{filters, channels / groups}, {1, 1, taps}};
    product.args.out_shape = {{1, filters}, {1, 1, 1}};
    return refusal_of([&] { conv::check_phase(product); });
  };
  EXPECT_EQ(phase(1, 1, 1, 1, 1), TUFF_OK);
  EXPECT_EQ(phase((1 << 15) - 1, 1 << 15, 1, 1, 1), TUFF_OK);
  EXPECT_EQ(phase(1 << 15, 1 << 15, 1, 1, 1), TUFF_ERROR_UNSUPPORTED);
  EXPECT_EQ(phase(1, 1, kLimit - 1, 1, 1), TUFF_OK);
  EXPECT_EQ(phase(1, 1, kLimit, 1, 1), TUFF_ERROR_UNSUPPORTED);
  EXPECT_EQ(phase(kLimit - 2, 1, 2, 2, 1), TUFF_OK);
  EXPECT_EQ(phase(kLimit, 1, 2, 2, 1), TUFF_ERROR_UNSUPPORTED);
  EXPECT_EQ(phase(kLimit - 1, 1, 1, 1, 1), TUFF_OK);
  EXPECT_EQ(phase(kLimit, 1, 1, 1, 1), TUFF_ERROR_UNSUPPORTED);
  EXPECT_EQ(phase(1, 1, 1, 1, kLimit - 1), TUFF_OK);
  EXPECT_EQ(phase(1, 1, 1, 1, kLimit), TUFF_ERROR_UNSUPPORTED);
}

// The kernels pack a window's numbers into 16 and 8 bits.
TEST(PlannerValues, WindowsOfProductsAreExact) {
  DeviceTraits traits = a_gpu();
  traits.hopper = true;
  const Buffer buffer = nowhere();
  const auto runs = [&](const std::function<void(gemm::Windows&)>& change) {
    gemm::Windows windows;
    windows.of_a = true, windows.elements = 1 << 20;
    windows.width = 32, windows.step = windows.channels = 64, windows.tap_row = 64 * 34;
    windows.taps = 3, windows.dilation = 1;
    change(windows);
    GemmArgs args{};
    args.a_type = args.b_type = args.c_type = TUFF_F16, args.accumulate = TUFF_F32;
    args.m = 1024, args.n = 128, args.k = 576, args.alpha = 1, args.batch_count = 1;
    args.a = args.b = args.c = &buffer;
    args.lda = 64 * 34, args.ldb = args.ldc = 128;
    return gemm::runs_windows(traits, args, windows);
  };
  EXPECT_TRUE(runs([](gemm::Windows&) {}));
  EXPECT_TRUE(runs([](gemm::Windows& windows) { windows.width = (1 << 16) - 1; }));
  EXPECT_FALSE(runs([](gemm::Windows& windows) { windows.width = 1 << 16; }));
  EXPECT_TRUE(runs([](gemm::Windows& windows) { windows.step = (1 << 16) - 8; }));
  EXPECT_FALSE(runs([](gemm::Windows& windows) { windows.step = 1 << 16; }));
  EXPECT_TRUE(runs([](gemm::Windows& windows) { windows.channels = (1 << 16) - 8; }));
  EXPECT_FALSE(runs([](gemm::Windows& windows) { windows.channels = 1 << 16; }));
  EXPECT_TRUE(runs([](gemm::Windows& windows) { windows.taps = 255; }));
  EXPECT_FALSE(runs([](gemm::Windows& windows) { windows.taps = 256; }));
  EXPECT_TRUE(runs([](gemm::Windows& windows) { windows.dilation = 255; }));
  EXPECT_FALSE(runs([](gemm::Windows& windows) { windows.dilation = 256; }));
  // Each piece of 16 bytes belongs to one tap, of which a kernel takes no fewer than 32 channels.
  EXPECT_FALSE(runs([](gemm::Windows& windows) { windows.step = 68; }));
  EXPECT_FALSE(runs([](gemm::Windows& windows) { windows.channels = 68; }));
  EXPECT_FALSE(runs([](gemm::Windows& windows) { windows.tap_row = 68; }));
  EXPECT_TRUE(runs([](gemm::Windows& windows) { windows.channels = 32; }));
  EXPECT_FALSE(runs([](gemm::Windows& windows) { windows.channels = 24; }));
  // Padded images: their extents have 16 bits, what is before them and the strides have 8.
  for (const int i : {0, 1}) {
    const auto padded = [&](uint32_t extent, uint32_t before, uint32_t stride) {
      return runs([&](gemm::Windows& windows) {
        windows.padded = true, windows.tap_rows = 3;
        windows.extents[0] = windows.extents[1] = 32, windows.strides[0] = windows.strides[1] = 1;
        windows.extents[i] = extent, windows.before[i] = before, windows.strides[i] = stride;
      });
    };
    EXPECT_TRUE(padded((1 << 16) - 1, 1, 1));
    EXPECT_FALSE(padded(1 << 16, 1, 1));
    EXPECT_TRUE(padded(32, 255, 1));
    EXPECT_FALSE(padded(32, 256, 1));
    EXPECT_TRUE(padded(32, 1, 255));
    EXPECT_FALSE(padded(32, 1, 256));
  }
  const auto padded = [&](uint32_t tap_rows, uint32_t taps) {
    return runs([&](gemm::Windows& windows) {
      windows.padded = true, windows.tap_rows = tap_rows, windows.taps = taps;
      windows.extents[0] = windows.extents[1] = 32, windows.strides[0] = windows.strides[1] = 1;
    });
  };
  EXPECT_TRUE(padded(8, 4)) << "32 taps";
  EXPECT_FALSE(padded(11, 3)) << "33 taps, of which each needs a bit";
}

// As many workgroups as a dispatch may have, one for each head of 65,536 images, and with one more head.
TEST(PlannerValues, WorkgroupsOfAttentionAreExact) {
  const Buffer buffer = nowhere();
  DeviceTraits traits = a_gpu();
  traits.max_groups[0] = INT32_MAX;
  traits.max_range = uint64_t{1} << 62;
  const auto attended = [&](uint64_t heads) {
    AttentionArgs args;
    args.dtype = TUFF_F32;
    args.q = args.k = args.v = args.o = &buffer;
    args.batch = 65536, args.heads = args.kv_heads = heads, args.seq_q = 32, args.seq_kv = 64, args.head_dim = 16;
    complete_attention(args, true);
    return planned(traits, [&](Recorder& recorder) { record_attention(recorder, args); });
  };
  static_assert(attention::kMaxGroups == uint64_t{65535} * 65536);
  EXPECT_EQ(attended(65535), TUFF_OK);
  EXPECT_EQ(attended(65536), TUFF_ERROR_UNSUPPORTED);
}

// Units of an axis may be 2^31 - 1 apart.
TEST(PlannerValues, StridesOfCopiesAreExact) {
  const Buffer buffer = nowhere();
  DeviceTraits traits = a_gpu();
  traits.max_range = uint64_t{1} << 62;
  const auto copied = [&](int64_t stride) {
    StridedCopy copy{"copy", 4, &buffer, &buffer, 0, 0, {}};
    copy.axes.append(3, {5, 6});
    copy.axes.append(2, {stride, 3});
    copy.axes.append(3, {7, 1});
    return planned(traits, [&](Recorder& recorder) { record_strided_copy(recorder, copy); });
  };
  EXPECT_EQ(copied((int64_t{1} << 31) - 1), TUFF_OK);
  EXPECT_EQ(copied(int64_t{1} << 31), TUFF_ERROR_UNSUPPORTED);
}

// One buffer per matrix: as many as fit, and from which size on 32-bit offsets do not reach everything.
TEST(PlannerValues, BuffersOfDispatchesAreExact) {
  constexpr uint64_t kFar = uint64_t{1} << 32;
  for (const uint64_t bytes : {kFar, kFar + 1}) {
    Dispatch one("test"), each("test");
    const Buffer buffer = nowhere();
    const std::vector<const Buffer*> buffers(Dispatch::kMaxEach, &buffer);
    one.operand(&buffer, 0, bytes, Access::read);
    each.operand_each(buffers.data(), Dispatch::kMaxEach, bytes, Access::read);
    EXPECT_EQ(one.is_far(), bytes > kFar);
    EXPECT_EQ(each.is_far(), bytes > kFar);
    EXPECT_EQ(each.each(), 1u);
  }
  Dispatch dispatch("test");
  EXPECT_THROW(dispatch.operand_each(nullptr, Dispatch::kMaxEach + 1, 4, Access::read), Error);
}

// Rows that are no whole number of blocks begin within a block.
TEST(PlannerValues, RowsOfReductionsHaveWholeBlocks) {
  const Buffer buffer = nowhere();
  for (const int32_t dtype : {TUFF_F32, TUFF_F16}) {
    const uint64_t block = dtype == TUFF_F16 ? 8 : 4;
    for (uint64_t length = 2; length <= 40; ++length) {
      const uint64_t shape[] = {1000, length};
      FakeRecorder recorder(a_gpu());
      int64_t peel = -1;
      recorder.seen = [&](const KernelRequest& kernel, const Dispatch&) {
        for (uint32_t i = 0; i < kernel.define_count(); ++i) {
          if (kernel.defines()[i].name == std::string_view("TUFF_PEEL")) peel = kernel.defines()[i].value;
        }
      };
      record_reduce(recorder, {dtype, TUFF_REDUCE_SUM, &buffer, &buffer, shape, 2, 1});
      ASSERT_EQ(recorder.kernels, std::vector<std::string>{"reduce_rows"});
      EXPECT_EQ(peel, length % block != 0 ? 1 : 0) << length;
    }
  }
}

}  // namespace
}  // namespace tuff
