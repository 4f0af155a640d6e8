// Planners on devices with Vulkan's minimum limits or without some feature, and calls that are refused: regressions
// found by tuff_planner_cases (tests/planners).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <vector>

#include "internal/fake_recorder.hpp"
#include "kernels/attention/attention.hpp"
#include "kernels/conv/conv.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/gemm/gemm.hpp"
#include "kernels/norm/norm.hpp"
#include "kernels/position/rope.hpp"
#include "kernels/shape/shape.hpp"
#include "planning/dry_run.hpp"
#include "planning/status.hpp"
#include "runtime/vulkan/shader_compiler.hpp"
#include "shaders/conv_pixels.hpp"

namespace tuff {
namespace {

class PlannerLimits : public testing::Test {
 protected:
  PlannerLimits() {
    for (Buffer& buffer : buffers_) buffer.allocation = std::make_shared<Nowhere>(), buffer.bytes = uint64_t{1} << 62;
  }
  GemmArgs product(uint64_t m, uint64_t n, uint64_t k, int32_t type = TUFF_F32) {
    GemmArgs args{};
    args.a_type = args.b_type = args.c_type = type, args.accumulate = args.sum_type();
    args.m = m, args.n = n, args.k = k, args.alpha = 1;
    args.a = &buffers_[0], args.b = &buffers_[1], args.c = &buffers_[2];
    args.lda = k, args.ldb = args.ldc = n;
    return args;
  }
  std::array<Buffer, 4> buffers_;
};

// The cost model computed the invocations of a shared tile for subgroup tiles, which no GPU uses by itself: a division
// by zero on every GPU with subgroups of 2 to 16 lanes.
TEST_F(PlannerLimits, GemmsOnGpusWithSmallSubgroups) {
  for (const uint32_t lanes : {2u, 4u, 8u, 16u}) {
    DeviceTraits traits = a_gpu();
    traits.subgroup_size = lanes;
    for (const uint64_t size : {20, 200, 2000}) {
      FakeRecorder recorder(traits);
      record_gemm(recorder, product(size, size, size));
      EXPECT_FALSE(recorder.kernels.empty());
    }
  }
}

// A device may allow 1024 invocations in a workgroup, but only 128 along x. Planners considered the first limit only.
TEST_F(PlannerLimits, WorkgroupsAlongX) {
  DeviceTraits traits = a_gpu();
  traits.max_local_size[0] = 128;
  FakeRecorder recorder(traits);
  uint32_t widest = 0;
  recorder.seen = [&](const KernelRequest& kernel, const Dispatch&) {
    for (uint32_t i = 0; i < kernel.constant_count(); ++i) {
      if (kernel.constants()[i].id == 0) widest = std::max(widest, kernel.constants()[i].value);
    }
    for (uint32_t i = 0; i < kernel.define_count(); ++i) {
      if (kernel.defines()[i].name == std::string_view("LOCAL_SIZE")) {
        widest = std::max(widest, static_cast<uint32_t>(kernel.defines()[i].value));
      }
    }
  };
  const Buffer *in = &buffers_[0], *out = &buffers_[1];
  record_unary(recorder, {TUFF_F32, TUFF_UNARY_RELU, in, out, 10'000'000, 0});
  NormArgs norm{};
  norm.dtype = norm.weight_type = TUFF_F32, norm.centred = true, norm.input = in, norm.output = out;
  norm.rows = 4, norm.channels = 40'000, norm.epsilon = 1e-5;
  record_norm(recorder, norm);
  GemmArgs converted = product(2048, 2048, 2048, TUFF_F16);  // with conversions and a second pass
  record_gemm(recorder, converted);
  EXPECT_GT(widest, 0u);
  EXPECT_LE(widest, 128u);
}

// Some of the inputs were copied in words before one was refused whose size is not a multiple of a word.
TEST_F(PlannerLimits, ConcatIsRefusedWhole) {
  DeviceTraits traits = a_gpu();
  traits.storage16 = false;
  const std::array<const Buffer*, 2> inputs = {&buffers_[0], &buffers_[1]};
  const uint64_t sizes[] = {8, 3}, shape[] = {11};
  for (const bool cpu : {false, true}) {
    traits.cpu = cpu;
    FakeRecorder recorder(traits);
    EXPECT_THROW(record_concat(recorder, {TUFF_F16, inputs, sizes, &buffers_[2], shape, 1, 0}), Error);
    EXPECT_TRUE(recorder.kernels.empty());
  }
}

// Phases with one tap were computed before one was refused whose taps are 65,536 or more apart.
TEST_F(PlannerLimits, TransposedConvolutionIsRefusedWhole) {
  ConvArgs args;
  args.transposed = true;
  args.input = &buffers_[0], args.filter = &buffers_[1], args.output = &buffers_[2];
  args.in_shape.outer = {1, 1}, args.in_shape.extents = {1, 14, 6};
  args.filter_shape.outer = {1, 2}, args.filter_shape.extents = {1, 3, 6};
  args.out_shape.outer = {1, 2}, args.out_shape.extents = {1, 13 * 4 + 510 * 2 + 1, 5 * 3 + 262'146 * 5 + 1};
  args.stride = {1, 4, 3}, args.dilation = {1, 510, 262'146};
  check_conv(args);
  FakeRecorder recorder(a_gpu());
  EXPECT_THROW(record_conv(recorder, args), Error);
  EXPECT_TRUE(recorder.kernels.empty());
}

// Rows were split, but columns were not, and the sums of a single row took 8 GiB.
TEST_F(PlannerLimits, SumsOfLongRowsAreCut) {
  GemmArgs args = product(21, uint64_t{1} << 31, 6, TUFF_F64);
  args.epilogue.bias_axis = TUFF_BIAS_COLUMNS, args.epilogue.bias = &buffers_[3];
  DeviceTraits traits = a_gpu();
  traits.max_range = ~uint64_t{0} >> 1;
  FakeRecorder recorder(traits);
  record_gemm(recorder, args);
  EXPECT_LE(recorder.largest_scratch, uint64_t{2} << 30);
}

// Batches were cut to a number of workgroups that any device runs, single matrices were not.
TEST_F(PlannerLimits, ProductsOfMoreTilesThanWorkgroups) {
  DeviceTraits traits = a_gpu();
  traits.max_range = ~uint64_t{0} >> 1;
  FakeRecorder recorder(traits);
  record_gemm(recorder, product(uint64_t{1} << 24, uint64_t{1} << 24, 2));
  EXPECT_GT(recorder.kernels.size(), 1u);
  uint64_t groups = 0;
  for (const uint64_t each : recorder.groups) groups += each;
  EXPECT_GE(groups, uint64_t{1} << 34) << "tiles of 128 x 128 at most";
}

// With cooperative matrices, the sums of a product indexed with 64 bits were kept whole if it had a bias or residual.
TEST_F(PlannerLimits, SumsOfWideProductsByCooperativeMatricesAreCut) {
  GemmArgs args = product(16384, uint64_t{1} << 18, 512, TUFF_F16);
  args.c_type = args.accumulate = TUFF_F32;
  args.epilogue.residual = &buffers_[3], args.epilogue.ld_residual = args.ldc;
  DeviceTraits traits = a_gpu();
  traits.max_range = ~uint64_t{0} >> 1;
  traits.matrix_shapes[0] = {16, 16, 16, TUFF_F16, TUFF_F16, TUFF_F32};
  traits.matrix_shape_count = 1;
  FakeRecorder recorder(traits);
  record_gemm(recorder, args);
  EXPECT_GT(std::count(recorder.kernels.begin(), recorder.kernels.end(), "gemm_matrix"), 0);
  EXPECT_LE(recorder.largest_scratch, uint64_t{2} << 30);
}

// The sums of a piece took as much memory as there are filters: a terabyte for 2^24. They were allocated even where no
// second pass reads them.
TEST_F(PlannerLimits, SumsOfManyFiltersAreCut) {
  DeviceTraits traits = a_gpu();
  traits.cpu = traits.subgroup_ballot = true;
  traits.max_range = ~uint64_t{0} >> 1;
  for (const bool activated : {true, false}) {
    ConvArgs args;
    args.rank = 1, args.layout = TUFF_LAYOUT_NHWC;
    args.activation = activated ? TUFF_ACTIVATION_GELU : TUFF_ACTIVATION_NONE;
    args.input = &buffers_[0], args.filter = &buffers_[1], args.output = &buffers_[2];
    const uint64_t filters = uint64_t{1} << 21;
    args.in_shape.outer = {1, 100}, args.in_shape.extents = {1, 1, 20'000};
    args.filter_shape.outer = {filters, 100}, args.filter_shape.extents = {1, 1, 3};
    args.out_shape.outer = {1, filters}, args.out_shape.extents = {1, 1, 19'998};
    check_conv(args);
    FakeRecorder recorder(traits);
    record_conv(recorder, args);
    EXPECT_EQ(recorder.kernels.front(), "conv_patches");
    EXPECT_LE(recorder.largest_scratch, uint64_t{2} << 30) << activated;
  }
}

// The stride, which is irrelevant there, was cut to 32 bits on its way to the kernel that copies pixels.
TEST_F(PlannerLimits, StridesBeyond32BitsOfASingleOutput) {
  DeviceTraits traits = a_gpu();
  traits.subgroup_ballot = traits.f16 = true;
  traits.matrix_shapes[0] = {16, 16, 16, TUFF_F16, TUFF_F16, TUFF_F32};
  traits.matrix_shape_count = 1;
  ConvArgs args;
  args.rank = 1, args.dtype = TUFF_F16, args.layout = TUFF_LAYOUT_NHWC;
  args.input = &buffers_[0], args.filter = &buffers_[1], args.output = &buffers_[2];
  args.in_shape.outer = {64, 96}, args.in_shape.extents = {1, 1, 1};
  args.filter_shape.outer = {4096, 96}, args.filter_shape.extents = {1, 1, 1};
  args.out_shape.outer = {64, 4096}, args.out_shape.extents = {1, 1, 1};
  args.stride = {1, 1, (uint64_t{1} << 32) + 2}, args.padding = args.padding_end = {0, 0, 2};
  check_conv(args);
  FakeRecorder recorder(traits);
  uint32_t copies = 0;
  recorder.seen = [&](const KernelRequest& kernel, const Dispatch& dispatch) {
    if (kernel.source().name != std::string_view("conv_pixels")) return;
    shaders::ConvPixels::Push push;
    ASSERT_EQ(dispatch.push_bytes(), sizeof push);
    std::memcpy(&push, dispatch.push_data(), sizeof push);
    EXPECT_EQ(push.every_x, 1u);
    ++copies;
  };
  record_conv(recorder, args);
  EXPECT_GT(copies, 0u);
}

// Only input and output decided whether indices have 64 bits.
TEST_F(PlannerLimits, LongFilterOfADepthwiseConvolution) {
  ConvArgs args;
  args.rank = 1, args.groups = uint64_t{1} << 28;
  args.input = &buffers_[0], args.filter = &buffers_[1], args.output = &buffers_[2];
  args.in_shape.outer = {1, args.groups}, args.in_shape.extents = {1, 1, 5};
  args.filter_shape.outer = {2 * args.groups, 1}, args.filter_shape.extents = {1, 1, 5};
  args.out_shape.outer = {1, 2 * args.groups};
  check_conv(args);
  FakeRecorder recorder(a_gpu());
  bool wide = false;
  recorder.seen = [&](const KernelRequest& kernel, const Dispatch&) { wide = kernel.is_wide(); };
  record_conv(recorder, args);
  EXPECT_EQ(recorder.kernels.back(), "conv_depthwise");
  EXPECT_TRUE(wide);
}

// Only input and output decided whether indices have 64 bits.
TEST_F(PlannerLimits, PositionsOfRopeThatLieFarApart) {
  RopeArgs args{};
  args.dtype = TUFF_F32, args.base = 10000;
  args.input = &buffers_[0], args.output = &buffers_[1], args.positions = &buffers_[2];
  args.batch = 3, args.heads = 1, args.seq = 4, args.head_dim = args.rotary_dim = 2;
  args.input_strides = args.output_strides = {8, 2, 2};
  args.positions_stride = uint64_t{1} << 30;
  FakeRecorder recorder(a_gpu());
  bool wide = false;
  recorder.seen = [&](const KernelRequest& kernel, const Dispatch&) { wide = kernel.is_wide(); };
  record_rope(recorder, args);
  EXPECT_TRUE(wide);
}

// A workgroup had eight subgroups, however large they were.
TEST_F(PlannerLimits, TinyGemmsOnCpusWithLargeSubgroups) {
  DeviceTraits traits = a_gpu();
  traits.cpu = true, traits.subgroup_size = 128, traits.max_invocations = 128, traits.max_local_size[0] = 128;
  GemmArgs args = product(3, 3, 4);
  args.batch_count = 2000, args.stride_a = 12, args.stride_b = 12, args.stride_c = 9;
  FakeRecorder recorder(traits);
  recorder.seen = [&](const KernelRequest& kernel, const Dispatch&) {
    for (uint32_t i = 0; i < kernel.define_count(); ++i) {
      if (kernel.defines()[i].name != std::string_view("LOCAL_SIZE")) continue;
      EXPECT_LE(kernel.defines()[i].value, 128);
    }
  };
  record_gemm(recorder, args);
  EXPECT_EQ(recorder.kernels, std::vector<std::string>{"gemm_tiny"});
}

// The transposed copy that cooperative matrices read is written by workgroups of 256, which was not checked.
TEST_F(PlannerLimits, TransposedCopiesNeedTheirWorkgroup) {
  DeviceTraits traits = a_gpu();
  traits.matrix_shapes[0] = {16, 16, 32, TUFF_I8, TUFF_I8, TUFF_I32};
  traits.matrix_shape_count = 1;
  GemmArgs args = product(4096, 4096, 512, TUFF_I8);
  args.c_type = TUFF_I32;
  for (const uint32_t most : {1024u, 128u}) {
    traits.max_local_size[0] = most;
    FakeRecorder recorder(traits);
    record_gemm(recorder, args);
    EXPECT_EQ(std::count(recorder.kernels.begin(), recorder.kernels.end(), "gemm_transpose"), most == 1024 ? 1 : 0);
  }
}

// Rows of bytes were gathered in units of two bytes, which needs 16-bit storage.
TEST_F(PlannerLimits, GatheredBytesWithout16BitStorage) {
  for (const bool storage16 : {true, false}) {
    DeviceTraits traits = a_gpu();
    traits.storage16 = storage16;
    const uint64_t shape[] = {7, 6};
    GatherArgs args{};
    args.dtype = TUFF_U8, args.index_type = TUFF_U32;
    args.input = &buffers_[0], args.indices = &buffers_[1], args.output = &buffers_[2];
    args.shape = shape, args.rank = 2, args.count = 3;
    FakeRecorder recorder(traits);
    int64_t unit = 0;
    recorder.seen = [&](const KernelRequest& kernel, const Dispatch&) {
      for (uint32_t i = 0; i < kernel.define_count(); ++i) {
        if (std::string_view(kernel.defines()[i].name) == "TUFF_UNIT") unit = kernel.defines()[i].value;
      }
    };
    record_gather(recorder, args);
    EXPECT_EQ(unit, storage16 ? 2 : 1);
  }
}

// So were slices of bytes, which were refused there although they can be copied one by one.
TEST_F(PlannerLimits, SlicedBytesWithout16BitStorage) {
  for (const bool storage16 : {true, false}) {
    DeviceTraits traits = a_gpu();
    traits.storage8 = true, traits.storage16 = storage16;
    const uint64_t shape[] = {7, 6}, start[] = {0, 2}, out_shape[] = {7, 2};
    const int64_t step[] = {1, 1};
    SliceArgs args{};
    args.dtype = TUFF_U8, args.input = &buffers_[0], args.output = &buffers_[1];
    args.shape = shape, args.start = start, args.out_shape = out_shape, args.step = step, args.rank = 2;
    FakeRecorder recorder(traits);
    uint64_t bytes = 0;
    recorder.seen = [&](const KernelRequest&, const Dispatch& dispatch) { bytes = dispatch.operands()[1].bytes; };
    EXPECT_NO_THROW(record_slice(recorder, args)) << "16-bit storage: " << storage16;
    EXPECT_EQ(bytes, 14u);
  }
}

// Attention names the size of a bias or mask that it does not have: descriptors had to hold it.
TEST_F(PlannerLimits, OperandsWithoutABufferHaveNoBytes) {
  AttentionArgs args{};
  args.dtype = TUFF_F32;
  args.q = &buffers_[0], args.k = &buffers_[1], args.v = &buffers_[2], args.o = &buffers_[3];
  args.batch = 1, args.heads = 2, args.seq_q = 4000, args.seq_kv = 4000, args.head_dim = 64;
  complete_attention(args, true);
  FakeRecorder recorder(a_gpu());
  recorder.seen = [&](const KernelRequest& kernel, const Dispatch& dispatch) {
    for (uint32_t i = 0; i < dispatch.operand_count(); ++i) {
      const Dispatch::Operand& operand = dispatch.operands()[i];
      if (operand.buffer != nullptr || operand.each != nullptr) continue;
      EXPECT_EQ(operand.bytes, 0u) << kernel.source().name << ", operand " << i;
    }
  };
  record_attention(recorder, args);
  EXPECT_FALSE(recorder.kernels.empty());
}

// Where elements are not loaded as 64-bit integers, the kernel's vec4 variables had names that a macro cannot have.
TEST_F(PlannerLimits, AttentionOnACpuWithoutAddressesCompiles) {
  DeviceTraits traits = a_gpu();
  traits.cpu = traits.subgroup_ballot = true, traits.addresses = false, traits.subgroup_size = 8;
  for (const int32_t dtype : {TUFF_F32, TUFF_F16}) {
    AttentionArgs args{};
    args.dtype = dtype;
    args.q = &buffers_[0], args.k = &buffers_[1], args.v = &buffers_[2], args.o = &buffers_[3];
    args.batch = 1, args.heads = 2, args.seq_q = 40, args.seq_kv = 40, args.head_dim = 64;
    complete_attention(args, true);
    FakeRecorder recorder(traits);
    recorder.seen = [&](const KernelRequest& kernel, const Dispatch& dispatch) {
      const std::string text = kernel_text(kernel, {dispatch.operand_count(), false, false}, {});
      EXPECT_NO_THROW(compile_glsl(kernel.source().name, text));
    };
    record_attention(recorder, args);
    EXPECT_EQ(recorder.kernels, std::vector<std::string>{"attention_subgroup"});
  }
}

// GEMM with packed operands was chosen because A was too large for a descriptor. Its kernel, which needs addresses, was
// then compiled for descriptors, because the copy of A that it reads was not.
TEST_F(PlannerLimits, PanelsWhereDescriptorsArePreferred) {
  DeviceTraits traits = a_gpu();
  traits.cpu = true, traits.subgroup_size = 8, traits.push_bytes = 256;
  for (const bool descriptors : {false, true}) {
    FakeRecorder recorder(traits);
    recorder.descriptors = descriptors;
    uint64_t panels = 0;
    recorder.seen = [&](const KernelRequest& kernel, const Dispatch& dispatch) {
      if (kernel.source().name != std::string_view("gemm_panels")) return;
      ++panels;
      EXPECT_TRUE(recorder.binds_addresses(kernel.reads(), dispatch));
    };
    record_gemm(recorder, product(8192, 8192, 8192));
    EXPECT_EQ(panels == 0, descriptors);
  }
}

// Without buffer addresses an operand may exceed a descriptor's range. Then nothing is recorded, not even pieces that
// would fit (VulkanStream::run).
TEST_F(PlannerLimits, DryRunRefusesWhatADescriptorCannotSpan) {
  class Descriptors final : public Recorder {
   public:
    explicit Descriptors(const DeviceTraits& traits) : traits_(traits) {}
    const DeviceTraits& traits() const noexcept override { return traits_; }
    bool binds_addresses(Reads, const Dispatch& dispatch) const noexcept override {
      for (uint32_t i = 0; i < dispatch.operand_count(); ++i) {
        if (dispatch.operands()[i].bytes > traits_.max_range) return true;
      }
      return false;
    }
    void dispatch(const KernelRequest&, const Dispatch&) override { ADD_FAILURE() << "was recorded"; }
    void copy_rows(const Rows&, const Rows&, uint64_t, uint64_t) override { ADD_FAILURE() << "was recorded"; }
    const Buffer& scratch(uint64_t, Scratch) override { return buffer_; }
    const Buffer& parameters(const void*, uint32_t) override { return buffer_; }

   private:
    DeviceTraits traits_;
    Buffer buffer_;
  };
  DeviceTraits traits = a_gpu();
  traits.addresses = false;
  Descriptors recorder(traits);
  DryRun dry(recorder);
  const std::array<const Buffer*, 2> inputs = {&buffers_[0], &buffers_[1]};
  const uint64_t fitting[] = {8, 1000}, far[] = {8, uint64_t{1} << 32};
  const uint64_t shape[] = {1008}, far_shape[] = {far[0] + far[1]};
  EXPECT_NO_THROW(record_concat(dry, {TUFF_F32, inputs, fitting, &buffers_[2], shape, 1, 0}));
  EXPECT_THROW(record_concat(dry, {TUFF_F32, inputs, far, &buffers_[2], far_shape, 1, 0}), Error);
}

}  // namespace
}  // namespace tuff
