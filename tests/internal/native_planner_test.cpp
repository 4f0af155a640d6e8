// Which calls take kernels in PTX on a GPU that runs them, and what happens if the driver refuses one. No GPU is
// needed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "internal/fake_recorder.hpp"
#include "kernels/attention/attention.hpp"
#include "kernels/attention/attention_backward.hpp"
#include "kernels/attention/native/attention_backward_wgmma.hpp"
#include "kernels/attention/native/attention_decode.hpp"
#include "kernels/attention/native/attention_wgmma.hpp"
#include "kernels/conv/conv_backward.hpp"
#include "kernels/gemm/gemm.hpp"
#include "kernels/native/refusals.hpp"
#include "kernels/quant/native/qgemm_wgmma.hpp"
#include "kernels/quant/quant.hpp"
#include "kernels/rnn/rnn.hpp"
#include "planning/status.hpp"

namespace tuff {
namespace {

using Kernels = std::vector<std::string>;

class NativePlanner : public testing::Test {
 protected:
  NativePlanner() {
    traits_.hopper = traits_.subgroup_ballot = true;
    buffer_.allocation = std::make_shared<Nowhere>(), buffer_.bytes = ~uint64_t{0} >> 1;
  }
  AttentionArgs attention(int32_t dtype, uint64_t seq_q, uint64_t seq_kv, uint64_t dim) {
    AttentionArgs args{};
    args.dtype = dtype;
    args.q = args.k = args.v = args.o = &buffer_;
    args.batch = 2, args.heads = 8, args.kv_heads = 4;
    args.seq_q = seq_q, args.seq_kv = seq_kv, args.head_dim = dim;
    return args;
  }
  Kernels planned(AttentionArgs args) {
    complete_attention(args, true);
    FakeRecorder recorder(traits_);
    try {
      record_attention(recorder, args);
    } catch (const Error&) {
      return {"refused"};
    }
    return recorder.kernels;
  }
  bool is_native(const AttentionArgs& args) { return planned(args) == Kernels{"attention_wgmma"}; }
  Kernels planned(AttentionBackwardArgs args) {
    complete_attention_backward(args);
    FakeRecorder recorder(traits_);
    record_attention_backward(recorder, args);
    return recorder.kernels;
  }

  // f32 with the permission to use TF32, or f64.
  GemmArgs product(int32_t type, uint64_t m, uint64_t n, uint64_t k, const char* transposes = "NN") {
    GemmArgs args{};
    args.a_type = args.b_type = args.c_type = type;
    args.precision = type == TUFF_F32 ? TUFF_PRECISION_ALLOW_TF32 : TUFF_PRECISION_DEFAULT;
    args.m = m, args.n = n, args.k = k, args.alpha = 1;
    args.ta = transposes[0] == 'T' ? TUFF_TRANS : TUFF_NO_TRANS;
    args.tb = transposes[1] == 'T' ? TUFF_TRANS : TUFF_NO_TRANS;
    args.a = args.b = args.c = &buffer_;
    args.lda = transposes[0] == 'T' ? m : k, args.ldb = transposes[1] == 'T' ? k : n, args.ldc = n;
    return args;
  }
  Kernels planned(const GemmArgs& args) {
    FakeRecorder recorder(traits_);
    record_gemm(recorder, args);
    return recorder.kernels;
  }

  // For integers with scales for 32 numbers, or ggml's blocks.
  QgemmArgs quantised(int32_t format, uint64_t m, uint64_t n, uint64_t k) {
    QgemmArgs args{};
    args.format = format;
    args.a_type = args.c_type = args.scale_type = TUFF_F16;
    args.m = m, args.n = n, args.k = args.lda = k, args.ldc = n, args.alpha = 1;
    args.a = args.weights = args.c = &buffer_;
    if (format < TUFF_QUANT_Q4_0) {
      args.granularity = TUFF_QUANT_PER_BLOCK, args.block_size = 32;
      args.scales = &buffer_;
    }
    return args;
  }
  Kernels planned(const QgemmArgs& args) {
    FakeRecorder recorder(traits_);
    record_qgemm(recorder, args);
    return recorder.kernels;
  }

  DeviceTraits traits_ = a_gpu();
  Buffer buffer_;
};

// Few rows of A beside integers take one kernel, other products another, and very many rows of slower formats GEMM.
TEST_F(NativePlanner, QuantisedProducts) {
  const Kernels few{"qgemm_mma"}, many{"qgemm_wgmma"};
  traits_.cores = 132;
  EXPECT_EQ(planned(quantised(TUFF_QUANT_I4, 1, 16384, 16384)), few);
  EXPECT_EQ(planned(quantised(TUFF_QUANT_I4, 16, 16384, 16384)), few);
  EXPECT_EQ(planned(quantised(TUFF_QUANT_I4, 17, 16384, 16384)), many) << "all multiprocessors are busy";
  EXPECT_EQ(planned(quantised(TUFF_QUANT_I4, 32, 1024, 4096)), few);
  EXPECT_EQ(planned(quantised(TUFF_QUANT_I8, 32, 16384, 16384)), few);
  EXPECT_EQ(planned(quantised(TUFF_QUANT_U8, 33, 512, 512)), many);
  for (const int32_t format : {TUFF_QUANT_U4, TUFF_QUANT_Q4_0, TUFF_QUANT_Q8_0, TUFF_QUANT_Q4_K}) {
    EXPECT_EQ(planned(quantised(format, 128, 4096, 4096)), many) << format;
  }
  EXPECT_EQ(planned(quantised(TUFF_QUANT_Q4_0, 8, 16384, 16384)), many);
  EXPECT_EQ(planned(quantised(TUFF_QUANT_Q4_0, 1, 512, 4096)), Kernels{"qgemm_rows"});
  const Kernels first{"dequantize_blocks", "gemm_wgmma"};
  EXPECT_EQ(planned(quantised(TUFF_QUANT_Q8_0, 4096, 4096, 4096)), first);
  EXPECT_EQ(planned(quantised(TUFF_QUANT_Q6_K, 1024, 4096, 4096)), first) << "a format that it does not read";
}

// Integers of 8 bits beside weights with scales of blocks: one kernel adds up all blocks.
TEST_F(NativePlanner, IntegersWithScalesOfBlocks) {
  const Kernels blocks{"qgemm_blocks", "qgemm_scale"};
  const auto product = [&](uint64_t k, uint64_t block) {
    QgemmArgs args = quantised(TUFF_QUANT_I8, 300, 512, k);
    args.a_type = TUFF_I8, args.a_scales = &buffer_, args.block_size = block, args.scale_type = TUFF_F16;
    return args;
  };
  for (const uint64_t block : {32, 64, 128, 384}) EXPECT_EQ(planned(product(1040, block)), blocks) << block;
  EXPECT_NE(planned(product(1040, 96)), blocks);
  EXPECT_NE(planned(product(1040, 16)), blocks);
  EXPECT_NE(planned(product(1032, 128)), blocks) << "rows of weights that begin between pieces of 16 bytes";
  EXPECT_NE(planned(product(128, 128)), blocks) << "one block";
  QgemmArgs args = product(1040, 128);
  args.lda = 1048;
  EXPECT_NE(planned(args), blocks) << "rows of A that begin between pieces of 16 bytes";
  for (const Buffer* QgemmArgs::*const operand : {&QgemmArgs::zero_points, &QgemmArgs::a_zero_points}) {
    args = product(1040, 128), args.*operand = &buffer_;
    EXPECT_NE(planned(args), blocks) << "zero points";
  }
  args = product(1040, 128), args.a_type = TUFF_U8;
  EXPECT_NE(planned(args), blocks) << "integers without sign";
  Buffer shifted = buffer_;
  shifted.offset = 8;
  for (const Buffer* QgemmArgs::*const operand : {&QgemmArgs::a, &QgemmArgs::weights}) {
    args = product(1040, 128), args.*operand = &shifted;
    EXPECT_NE(planned(args), blocks);
  }
  traits_.hopper = false;
  EXPECT_NE(planned(product(1040, 128)), blocks);
}

// The kernel counts pieces of 16 bytes in 32 bits, and steps of k with those beyond it.
TEST_F(NativePlanner, SumsOfBlocksBeyondItsNumbersAreLeft) {
  const quant::BlockSums good{&buffer_, &buffer_, &buffer_, &buffer_, TUFF_F32, 200, 300, 4096, 4096, 4096, 128};
  const auto computes = [&](quant::BlockSums sums) {
    FakeRecorder recorder(traits_);
    return quant::record_block_sums(recorder, sums);
  };
  EXPECT_TRUE(computes(good));
  constexpr uint64_t kFar = uint64_t{1} << 26;  // 1024 such rows are 2^32 pieces
  quant::BlockSums sums = good;
  sums.rows = 1023, sums.lda = kFar;
  EXPECT_TRUE(computes(sums));
  sums.rows = 1024;
  EXPECT_FALSE(computes(sums));
  sums = good, sums.columns = 1023, sums.ldw = kFar;
  EXPECT_TRUE(computes(sums));
  sums.columns = 1024;
  EXPECT_FALSE(computes(sums));
  for (const uint64_t block : {uint64_t{128}, uint64_t{32}, uint64_t{1} << 20}) {
    const uint64_t beyond = 4 * std::max<uint64_t>(block, 128), last = (UINT32_MAX - beyond) / 16 * 16;
    sums = good, sums.rows = sums.columns = 1, sums.block = block;
    sums.k = sums.lda = sums.ldw = last;
    EXPECT_TRUE(computes(sums)) << block;
    sums.k = sums.lda = sums.ldw = last + 16;
    EXPECT_FALSE(computes(sums)) << block;
  }
}

TEST_F(NativePlanner, QuantisedProductsThatCannotBeLoaded) {
  const auto is_native = [&](const QgemmArgs& args) { return planned(args) == Kernels{"qgemm_wgmma"}; };
  const QgemmArgs good = quantised(TUFF_QUANT_U4, 300, 512, 1024);
  EXPECT_TRUE(is_native(good));
  QgemmArgs args = good;
  args.zero_points = &buffer_, args.scale_type = TUFF_F32;
  EXPECT_TRUE(is_native(args));
  args = good, args.k = args.lda = 1056;
  EXPECT_FALSE(is_native(args)) << "half a step";
  args = good, args.lda = 1028;
  EXPECT_FALSE(is_native(args)) << "rows of A that begin between pieces of 16 bytes";
  args = good, args.lda = 1032, args.ldc = 515;
  EXPECT_TRUE(is_native(args)) << "C is stored element by element";
  args = good, args.block_size = 48;
  EXPECT_FALSE(is_native(args));
  args = good, args.block_size = 8;
  EXPECT_FALSE(is_native(args));
  args = good, args.a_type = TUFF_F32;
  EXPECT_FALSE(is_native(args));
  Buffer shifted = buffer_;
  shifted.offset = 8;
  for (const Buffer* QgemmArgs::*const operand : {&QgemmArgs::a, &QgemmArgs::weights}) {
    args = good, args.*operand = &shifted;
    EXPECT_FALSE(is_native(args));
  }
  shifted.offset = 2;
  args = good, args.scales = &shifted;
  EXPECT_FALSE(is_native(args));
  args = good, args.c = args.bias = &shifted;
  EXPECT_TRUE(is_native(args));
  args = quantised(TUFF_QUANT_Q4_0, 300, 512, 1024), args.weights = &shifted;
  EXPECT_FALSE(is_native(args));
  traits_.hopper = false;
  EXPECT_FALSE(is_native(good));
}

TEST_F(NativePlanner, QuantisedProductsOfFewRowsThatCannotBeLoaded) {
  const auto is_native = [&](const QgemmArgs& args) { return planned(args) == Kernels{"qgemm_mma"}; };
  const QgemmArgs good = quantised(TUFF_QUANT_U4, 4, 512, 1024);
  const auto changed = [&](const std::function<void(QgemmArgs&)>& change) {
    QgemmArgs args = good;
    change(args);
    return is_native(args);
  };
  EXPECT_TRUE(is_native(good));
  // A thread's 32 integers have one scale, which a shift finds.
  for (const uint64_t block : {uint64_t{32}, uint64_t{64}, uint64_t{1024}}) {
    EXPECT_TRUE(changed([&](QgemmArgs& args) { args.block_size = block; })) << block;
  }
  for (const uint64_t block : {8, 16, 31, 33, 48, 96}) {
    EXPECT_FALSE(changed([&](QgemmArgs& args) { args.block_size = block; })) << block;
  }
  EXPECT_TRUE(changed([](QgemmArgs& args) { args.k = args.lda = 1056; }));
  EXPECT_FALSE(changed([](QgemmArgs& args) { args.k = args.lda = 1040; })) << "half of what a thread loads";
  EXPECT_TRUE(changed([](QgemmArgs& args) { args.lda = 1032; }));
  EXPECT_FALSE(changed([](QgemmArgs& args) { args.lda = 1028; })) << "rows of A between pieces of 16 bytes";
  EXPECT_TRUE(changed([](QgemmArgs& args) { args.m = 1, args.lda = 1028; })) << "a single row";
  EXPECT_FALSE(changed([](QgemmArgs& args) { args.a_type = TUFF_F32; }));
  Buffer shifted = buffer_;
  shifted.offset = 8;
  for (const Buffer* QgemmArgs::*const operand : {&QgemmArgs::a, &QgemmArgs::weights}) {
    EXPECT_FALSE(changed([&](QgemmArgs& args) { args.*operand = &shifted; }));
  }
  traits_.max_groups[0] = 31;  // of 16 rows of weights
  EXPECT_EQ(is_native(good), 512 / 32 >= traits_.cores);
  traits_.hopper = false;
  EXPECT_FALSE(is_native(good));
}

// Scales are loaded 16 bytes at once where rows of them consist of such pieces; tiles that fit have no conditions.
TEST_F(NativePlanner, OptionsOfQuantisedProducts) {
  const auto kernel_of = [&](const QgemmArgs& args) {
    FakeRecorder recorder(traits_);
    quant::Wgmma kernel;
    recorder.seen = [&](const KernelRequest& request, const Dispatch&) {
      ASSERT_STREQ(request.source().name, "qgemm_wgmma");
      kernel = quant::Wgmma::read(request);
    };
    record_qgemm(recorder, args);
    return kernel;
  };
  traits_.cores = 132;
  QgemmArgs args = quantised(TUFF_QUANT_I4, 1024, 4096, 4096);
  const quant::Wgmma kernel = kernel_of(args);
  EXPECT_EQ(kernel.columns, 256u);
  EXPECT_EQ(kernel.per_step, 2u);
  EXPECT_EQ(kernel.period, 4u) << "eight scales for 32 numbers";
  EXPECT_TRUE(!kernel.edge && kernel.vector);
  args.m = 128, args.n = args.ldc = 4095;
  EXPECT_TRUE(kernel_of(args).edge);
  EXPECT_FALSE(kernel_of(args).vector);
  args.k = args.lda = 4160;
  EXPECT_EQ(kernel_of(args).period, 0u) << "rows of 130 scales";
  args.k = args.lda = 4096, args.scale_type = TUFF_F32;
  EXPECT_EQ(kernel_of(args).period, 2u);
  args.block_size = 128;
  EXPECT_EQ(kernel_of(args).period, 8u);
  EXPECT_EQ(kernel_of(args).per_step, 1u);
  args.granularity = TUFF_QUANT_PER_AXIS, args.block_size = 0;
  EXPECT_EQ(kernel_of(args).period, 0u);
  EXPECT_EQ(kernel_of(args).scales, 1u);
  args = quantised(TUFF_QUANT_I4, 1024, 4096, 4096), args.activation = TUFF_ACTIVATION_GELU;
  EXPECT_TRUE(kernel_of(args).edge) << "too many registers without";
}

// In f32 windows are read in place with channels last, and from a copy with channels last otherwise.
TEST_F(NativePlanner, ConvolutionsOfFloats) {
  traits_.cores = 132;
  const auto planned_conv = [&](int32_t layout, uint64_t channels, uint64_t filters, uint64_t extent, uint64_t window,
                                uint64_t stride = 1, uint64_t dilation = 1, uint64_t batch = 32) {
    ConvArgs conv;
    conv.dtype = TUFF_F32;
    conv.layout = layout;
    conv.in_shape = {{batch, channels}, {1, extent, extent}};
    conv.filter_shape = {{filters, channels}, {1, window, window}};
    const uint64_t out = (extent - 1) / stride + 1, before = dilation * (window / 2);
    conv.out_shape = {{batch, filters}, {1, out, out}};
    conv.stride = {1, stride, stride};
    conv.dilation = {1, dilation, dilation};
    conv.padding = conv.padding_end = {0, before, before};
    conv.input = conv.filter = conv.output = &buffer_;
    FakeRecorder recorder(traits_);
    record_conv(recorder, conv);
    return recorder.kernels;
  };
  const auto last = [&](auto... args) { return planned_conv(TUFF_LAYOUT_NHWC, args...); };
  const auto first = [&](auto... args) { return planned_conv(TUFF_LAYOUT_NCHW, args...); };
  const std::string split = "gemm_split";
  EXPECT_EQ(last(64, 64, 56, 3), Kernels{split});
  EXPECT_EQ(last(36, 64, 56, 5), Kernels{split});
  EXPECT_EQ(last(256, 512, 56, 1, 2), Kernels{split});
  EXPECT_EQ(first(64, 64, 56, 3).size(), 3u) << "filters and images are permuted";
  EXPECT_EQ(first(64, 64, 56, 3).back(), split);
  EXPECT_EQ(first(512, 2048, 7, 1).back(), split) << "images of 49 pixels are one matrix";
  EXPECT_EQ(first(512, 2048, 7, 1).size(), 2u) << "filters of one pixel are as they are";
  EXPECT_EQ(first(64, 256, 56, 1), Kernels{split}) << "a batched GEMM";
  EXPECT_EQ(last(28, 64, 56, 3), Kernels{"conv_tile"}) << "taps of 28 channels";
  EXPECT_EQ(last(34, 64, 56, 3), Kernels{"conv_tile"}) << "pixels of 136 bytes";
  EXPECT_EQ(last(64, 64, 56, 7), Kernels{"conv_tile"}) << "49 taps";
  EXPECT_EQ(last(64, 64, 56, 3, 1, 2), Kernels{"conv_tile"}) << "dilation";
  EXPECT_EQ(last(64, 64, 14, 3, 1, 1, 1).front(), "conv_tile") << "little work";
  traits_.hopper = false;
  EXPECT_EQ(last(64, 64, 56, 3), Kernels{"conv_tile"});
}

// Gradients by the filter read the windows in place, and those by the input of one pixel read the filter as it is.
TEST_F(NativePlanner, GradientsOfConvolutions) {
  const auto described = [&](uint64_t channels, uint64_t filters, uint64_t extent, uint64_t window, uint64_t stride) {
    ConvBackwardArgs args;
    ConvArgs& conv = args.conv;
    conv.dtype = TUFF_F16;
    conv.layout = TUFF_LAYOUT_NHWC;
    conv.in_shape = {{32, channels}, {1, extent, extent}};
    conv.filter_shape = {{filters, channels}, {1, window, window}};
    conv.out_shape = {{32, filters}, {1, (extent - 1) / stride + 1, (extent - 1) / stride + 1}};
    conv.stride = {1, stride, stride};
    conv.padding = conv.padding_end = {0, window / 2, window / 2};
    conv.input = conv.filter = args.doutput = args.dinput = args.dfilter = &buffer_;
    return args;
  };
  const auto by_filter = [&](const ConvBackwardArgs& args) {
    FakeRecorder recorder(traits_);
    record_conv_backward_filter(recorder, args);
    return recorder.kernels;
  };
  const auto by_input = [&](const ConvBackwardArgs& args) {
    FakeRecorder recorder(traits_);
    record_conv_backward_data(recorder, args);
    return recorder.kernels;
  };
  const std::string wgmma = "gemm_wgmma", finish = "gemm_finish", order = "conv_transpose_filter";
  EXPECT_EQ(by_filter(described(64, 64, 56, 3, 1)), (Kernels{wgmma, finish}));
  EXPECT_EQ(by_filter(described(128, 128, 56, 3, 2)).front(), wgmma);
  EXPECT_EQ(by_filter(described(256, 512, 56, 1, 2)).front(), wgmma);
  EXPECT_EQ(by_filter(described(40, 64, 56, 5, 1)).front(), wgmma) << "25 taps";
  EXPECT_EQ(by_filter(described(64, 64, 56, 7, 1)).front(), "conv_backward_tile") << "49 taps";
  EXPECT_EQ(by_filter(described(36, 64, 56, 3, 1)).front(), "conv_backward_tile") << "pixels of 72 bytes";
  ConvBackwardArgs dilated = described(64, 64, 56, 3, 1);
  dilated.conv.dilation = {1, 2, 2};
  dilated.conv.padding = dilated.conv.padding_end = {0, 2, 2};
  EXPECT_EQ(by_filter(dilated).front(), "conv_backward_tile");
  EXPECT_EQ(by_input(described(64, 256, 56, 1, 1)), Kernels{wgmma});
  EXPECT_EQ(by_input(described(256, 512, 56, 1, 2)), (Kernels{wgmma, "conv_interleave"})) << "three phases are zeros";
  EXPECT_EQ(by_input(described(64, 64, 56, 3, 1)), Kernels{wgmma}) << "the filter as it is stored";
  EXPECT_EQ(by_input(described(128, 128, 56, 3, 2)), (Kernels{wgmma, wgmma, wgmma, wgmma, "conv_interleave"}));
  EXPECT_EQ(by_input(described(64, 96, 56, 3, 1)), (Kernels{order, wgmma})) << "a step of k belongs to two taps";
  EXPECT_EQ(by_input(described(60, 64, 56, 3, 1)), (Kernels{order, wgmma})) << "rows of 120 bytes";
  // Of four taps, which are 480 bytes.
  const auto of_four_taps = [&](uint64_t channels) {
    ConvBackwardArgs args = described(channels, 64, 56, 2, 1);
    args.conv.padding_end = {};
    return by_input(args);
  };
  EXPECT_EQ(of_four_taps(64), Kernels{wgmma});
  EXPECT_EQ(of_four_taps(60), (Kernels{order, wgmma})) << "taps of 120 bytes";
}

TEST_F(NativePlanner, GemmOfF64) {
  for (const char* transposes : {"NN", "NT", "TN", "TT"}) {
    EXPECT_EQ(planned(product(TUFF_F64, 4096, 4096, 4096, transposes)), Kernels{"gemm_dmma"}) << transposes;
    EXPECT_EQ(planned(product(TUFF_F64, 4095, 4097, 333, transposes)), Kernels{"gemm_dmma"}) << "rows of odd length";
  }
  EXPECT_EQ(planned(product(TUFF_F64, 256, 256, 65536)), (Kernels{"gemm_dmma", "gemm_finish"})) << "split-K";
  EXPECT_NE(planned(product(TUFF_F64, 31, 4096, 4096)).front(), "gemm_dmma") << "few rows";
  EXPECT_NE(planned(product(TUFF_F64, 4096, 4096, 15)).front(), "gemm_dmma") << "short k";
  EXPECT_NE(planned(product(TUFF_F64, 32768, 65536, 65536)).front(), "gemm_dmma") << "offsets of A exceed 32 bits";
  traits_.hopper = false;
  EXPECT_EQ(planned(product(TUFF_F64, 4096, 4096, 4096)).front(), "gemm_tile");
}

TEST_F(NativePlanner, GemmOfTf32) {
  const std::string transpose = "gemm_transpose", multiply = "gemm_wgmma";
  EXPECT_EQ(planned(product(TUFF_F32, 4096, 4096, 4096, "NT")), Kernels{multiply});
  EXPECT_EQ(planned(product(TUFF_F32, 4096, 4096, 4096, "NN")), (Kernels{transpose, multiply}));
  EXPECT_EQ(planned(product(TUFF_F32, 4096, 4096, 4096, "TT")), (Kernels{transpose, multiply}));
  EXPECT_EQ(planned(product(TUFF_F32, 4096, 4096, 4096, "TN")), (Kernels{transpose, transpose, multiply}));
  EXPECT_EQ(planned(product(TUFF_F32, 128, 128, 128, "NT")).front(), multiply);
  EXPECT_EQ(planned(product(TUFF_F32, 128, 128, 128, "NN")).front(), "gemm_tile") << "too small to transpose B first";
  EXPECT_EQ(planned(product(TUFF_F32, 4096, 4096, 4095, "NT")).front(), "gemm_split") << "rows of 16380 bytes";
  for (const int32_t precision : {TUFF_PRECISION_DEFAULT, TUFF_PRECISION_ALLOW_F16, TUFF_PRECISION_ALLOW_BF16}) {
    GemmArgs args = product(TUFF_F32, 4096, 4096, 4096, "NT");
    args.precision = precision;
    EXPECT_NE(planned(args).back(), multiply) << "was not allowed";
  }
  traits_.max_invocations = 255;
  EXPECT_EQ(planned(product(TUFF_F32, 4096, 4096, 4096, "NN")).size(), 1u) << "no workgroups of 256 to transpose with";
  EXPECT_EQ(planned(product(TUFF_F32, 4096, 4096, 4096, "NT")), Kernels{multiply});
  traits_.hopper = false;
  EXPECT_EQ(planned(product(TUFF_F32, 4096, 4096, 4096, "NT")), Kernels{"gemm_tile"});
}

// f32 takes the tensor cores of 16 bits wherever there is enough work, whatever its layout.
TEST_F(NativePlanner, GemmOfFloats) {
  const Kernels split{"gemm_split"};
  traits_.cores = 132;
  const auto floats = [&](uint64_t m, uint64_t n, uint64_t k, const char* transposes = "NN") {
    GemmArgs args = product(TUFF_F32, m, n, k, transposes);
    args.precision = TUFF_PRECISION_DEFAULT;
    return args;
  };
  for (const char* transposes : {"NN", "NT", "TN", "TT"}) {
    EXPECT_EQ(planned(floats(4096, 4096, 4096, transposes)), split) << transposes;
    EXPECT_EQ(planned(floats(4095, 4097, 4093, transposes)), split) << transposes;
  }
  EXPECT_EQ(planned(floats(768, 768, 768)), (Kernels{"gemm_split", "gemm_finish"})) << "split-K";
  EXPECT_EQ(planned(floats(32, 4096, 4096)).front(), "gemm_split");
  EXPECT_NE(planned(floats(31, 4096, 4096)).front(), "gemm_split");
  EXPECT_NE(planned(floats(256, 256, 256)).front(), "gemm_split") << "little work";
  GemmArgs args = floats(32, 32, 64);
  args.batch_count = 10000;
  args.stride_a = args.stride_b = 32 * 64, args.stride_c = 32 * 32;
  EXPECT_NE(planned(args).front(), "gemm_split") << "a sixteenth of a tile";
  Buffer shifted = buffer_;
  shifted.offset = 4;
  args = floats(4096, 4096, 4096);
  args.a = &shifted, args.lda = 4099;
  EXPECT_EQ(planned(args), split);
  args.lda = uint64_t{1} << 30;
  EXPECT_NE(planned(args).front(), "gemm_split") << "rows of 2^32 bytes";
  args = floats(4096, 4096, 4096);
  for (const int32_t precision : {TUFF_PRECISION_ALLOW_F16, TUFF_PRECISION_ALLOW_BF16}) {
    args.precision = precision;
    EXPECT_NE(planned(args).back(), "gemm_split") << "16 bits are faster";
  }
  args.precision = TUFF_PRECISION_DEFAULT;
  traits_.hopper = false;
  EXPECT_EQ(planned(args), Kernels{"gemm_tile"});
}

TEST_F(NativePlanner, GemmOfFewRows) {
  const std::string narrow = "gemm_narrow", wgmma = "gemm_wgmma";
  for (const int32_t type : {TUFF_F16, TUFF_BF16}) {
    for (const char* transposes : {"NN", "NT"}) {
      for (const uint64_t few : {1, 4, 5, 8, 17, 32, 33, 64}) {
        EXPECT_EQ(planned(product(type, few, 4096, 4096, transposes)), Kernels{narrow}) << few << transposes;
        EXPECT_EQ(planned(product(type, few, 4096, 4088, transposes)), Kernels{narrow}) << few << transposes;
      }
      EXPECT_EQ(planned(product(type, 4096, 16, 4096, transposes)), Kernels{narrow}) << transposes;
      EXPECT_EQ(planned(product(type, 8, 256, 256, transposes)), Kernels{narrow}) << transposes;
    }
    EXPECT_EQ(planned(product(type, 8, 4096, 4096, "TN")), Kernels{narrow});
    EXPECT_NE(planned(product(type, 7, 4096, 4096, "TN")).front(), narrow) << "A's rows of 14 bytes";
    EXPECT_NE(planned(product(type, 8, 4097, 4096, "NN")).front(), narrow) << "B's rows of 8194 bytes";
    EXPECT_NE(planned(product(type, 8, 4096, 4097, "NT")).front(), narrow) << "rows of 8194 bytes";
    EXPECT_EQ(planned(product(type, 64, 16384, 4096, "NT")), Kernels{narrow});
    EXPECT_EQ(planned(product(type, 64, 16385, 4096, "NT")), Kernels{wgmma}) << "enough work for wgmma";
    EXPECT_EQ(planned(product(type, 64, 4096, 8192, "NT")), Kernels{narrow});
    EXPECT_EQ(planned(product(type, 64, 4096, 8200, "NT")).front(), wgmma);
    EXPECT_EQ(planned(product(type, 32, 4096, 12288, "NT")), Kernels{narrow});
    EXPECT_EQ(planned(product(type, 65, 4096, 4096, "NT")).front(), wgmma);
    EXPECT_EQ(planned(product(type, 8, 256, 65536, "NT")), (Kernels{narrow, "gemm_finish"})) << "split-K";
    EXPECT_NE(planned(product(type, 4, 1023, 2048, "NT")).front(), narrow) << "little to read";
    EXPECT_EQ(planned(product(type, 4, 1024, 2048, "NT")).front(), narrow);
    EXPECT_NE(planned(product(type, 8, 255, 4096, "NT")).front(), narrow);
    EXPECT_NE(planned(product(type, 8, 4096, 248, "NT")).front(), narrow);
  }
  EXPECT_NE(planned(product(TUFF_F32, 8, 4096, 4096, "NT")).front(), narrow);
  GemmArgs args = product(TUFF_F16, 8, 4096, 4096, "NT");
  args.epilogue.activation = TUFF_ACTIVATION_RELU;
  EXPECT_EQ(planned(args), Kernels{narrow});
  for (const int32_t activation : {TUFF_ACTIVATION_GELU, TUFF_ACTIVATION_GELU_TANH, TUFF_ACTIVATION_SILU}) {
    args.epilogue.activation = activation, args.c_type = TUFF_F16;
    EXPECT_EQ(planned(args), Kernels{narrow});
    args.c_type = TUFF_F32;
    EXPECT_EQ(planned(args), (Kernels{narrow, "gemm_finish"})) << "the bits of the unary operation";
    GemmArgs large = product(TUFF_BF16, 512, 4096, 4096, "NT");
    large.epilogue.activation = activation;
    EXPECT_EQ(planned(large), activation == TUFF_ACTIVATION_SILU ? Kernels{wgmma} : (Kernels{wgmma, "gemm_finish"}));
  }
  traits_.hopper = false;
  EXPECT_NE(planned(product(TUFF_F16, 8, 4096, 4096, "NT")).front(), narrow);
}

TEST_F(NativePlanner, GemmOfFewRowsOfFloats8) {
  const std::string narrow = "gemm_narrow", transpose = "gemm_transpose", convert = "gemm_convert";
  const auto mixed = [&](int32_t a, int32_t b, uint64_t m, uint64_t n, const char* transposes) {
    GemmArgs args = product(TUFF_F16, m, n, 4096, transposes);
    args.a_type = a, args.b_type = b;
    return args;
  };
  for (const int32_t type : {TUFF_F8_E4M3, TUFF_F8_E5M2}) {
    for (const uint64_t few : {1, 8, 32, 64}) {
      EXPECT_EQ(planned(mixed(type, TUFF_F8_E4M3, few, 4096, "NT")), Kernels{narrow}) << few;
      EXPECT_EQ(planned(mixed(type, TUFF_F8_E4M3, few, 4096, "NN")), Kernels{narrow}) << few;
      EXPECT_EQ(planned(mixed(TUFF_F8_E5M2, type, 4096, few, "TT")), Kernels{narrow}) << few;
      EXPECT_EQ(planned(mixed(TUFF_F16, type, few, 4096, "NT")), Kernels{narrow}) << few << ", f16 rows";
      EXPECT_EQ(planned(mixed(TUFF_BF16, type, few, 4096, "NN")), Kernels{narrow}) << few << ", bf16 rows";
    }
    EXPECT_EQ(planned(mixed(type, type, 8, 4096, "TT")), (Kernels{transpose, narrow})) << "the few rows across k";
    EXPECT_EQ(planned(mixed(type, type, 7, 4096, "TT")), (Kernels{transpose, narrow})) << "… of 7 bytes";
    EXPECT_EQ(planned(mixed(type, TUFF_F16, 4096, 8, "NN")), (Kernels{transpose, narrow}));
    EXPECT_EQ(planned(mixed(type, TUFF_F16, 8, 4096, "NT")), (Kernels{convert, narrow})) << "weights of f16";
    EXPECT_NE(planned(mixed(type, type, 8, 4104, "NN")).front(), narrow) << "B's rows of 4104 bytes";
    EXPECT_NE(planned(mixed(type, TUFF_F32, 8, 4096, "NT")).back(), narrow);
    GemmArgs args = mixed(type, type, 8, 4096, "NT");
    args.c_type = type, args.epilogue.scale_a = args.epilogue.scale_c = &buffer_;
    EXPECT_EQ(planned(args), Kernels{narrow}) << "scales, C of 8 bits";
    args.epilogue.bias = &buffer_, args.epilogue.bias_axis = TUFF_BIAS_COLUMNS;
    EXPECT_EQ(planned(args), (Kernels{narrow, "gemm_finish"})) << "a bias of 8 bits";
    args.c_type = TUFF_BF16;
    EXPECT_EQ(planned(args), Kernels{narrow});
  }
  traits_.max_invocations = 255;
  EXPECT_EQ(planned(mixed(TUFF_F8_E4M3, TUFF_F8_E4M3, 8, 4096, "NT")), Kernels{narrow});
  EXPECT_NE(planned(mixed(TUFF_F8_E4M3, TUFF_F8_E4M3, 8, 4096, "TT")).back(), narrow) << "no workgroups of 256";
  traits_.hopper = false;
  EXPECT_NE(planned(mixed(TUFF_F8_E4M3, TUFF_F8_E4M3, 8, 4096, "NT")).front(), narrow);
}

TEST_F(NativePlanner, AttentionOfManyRows) {
  for (const int32_t dtype : {TUFF_F16, TUFF_BF16}) {
    for (const uint64_t dim : {8, 64, 72, 128, 256}) {
      EXPECT_TRUE(is_native(attention(dtype, 4096, 4096, dim))) << dim;
      EXPECT_TRUE(is_native(attention(dtype, 48, 17, dim))) << dim;
    }
  }
  AttentionArgs lengths = attention(TUFF_F16, 100, 300, 64);
  lengths.q_lengths = lengths.kv_lengths = lengths.lse = &buffer_;
  lengths.causal = TUFF_CAUSAL_BOTTOM_RIGHT, lengths.window_left = 20;
  EXPECT_TRUE(is_native(lengths));
  for (const double scale : {1e-25, 1e25}) {
    AttentionArgs scaled = attention(TUFF_F16, 4096, 4096, 64);
    scaled.scale = scale;
    EXPECT_TRUE(is_native(scaled)) << scale;
  }
}

// Bias, mask and soft cap: what is read in pieces, and the keys of a step.
TEST_F(NativePlanner, AttentionWithScoreOptions) {
  const auto planned_kernel = [&](AttentionArgs args) {
    complete_attention(args, true);
    FakeRecorder recorder(traits_);
    attention::Wgmma kernel;
    recorder.seen = [&](const KernelRequest& request, const Dispatch& dispatch) {
      ASSERT_STREQ(request.source().name, "attention_wgmma");
      kernel = attention::Wgmma::read(request);
      const uint32_t operands = 5 + (kernel.bias != 0 ? 1 : 0) + (kernel.mask ? 1 : 0);
      EXPECT_EQ(dispatch.operand_count(), operands) << "the last one has the strides";
    };
    record_attention(recorder, args);
    return kernel;
  };
  AttentionArgs args = attention(TUFF_F16, 100, 4096, 128);
  args.softcap = 30, args.scale = 0x1p40;
  attention::Wgmma kernel = planned_kernel(args);
  EXPECT_TRUE(kernel.cap && !kernel.mask && !kernel.pieces && kernel.bias == 0);
  EXPECT_EQ(kernel.keys, 128u);
  args = attention(TUFF_F16, 100, 4096, 128);
  args.mask = &buffer_, args.mask_strides = {0, 0, 4096}, args.scale = 1e25;
  kernel = planned_kernel(args);
  EXPECT_TRUE(kernel.mask && kernel.pieces && !kernel.cap && kernel.bias == 0);
  EXPECT_EQ(kernel.keys, 128u);
  args.scale = 1, args.bias = &buffer_, args.bias_type = TUFF_F16;
  kernel = planned_kernel(args);
  EXPECT_TRUE(kernel.mask && kernel.pieces && kernel.bias == TUFF_F16);
  EXPECT_EQ(kernel.keys, 96u);
  args.mask = nullptr;
  EXPECT_EQ(planned_kernel(args).keys, 96u);
  AttentionArgs narrow = attention(TUFF_F16, 100, 4096, 64);
  narrow.bias = &buffer_, narrow.bias_type = TUFF_F16;
  EXPECT_EQ(planned_kernel(narrow).keys, 128u);
  args.causal = TUFF_CAUSAL_TOP_LEFT;
  EXPECT_EQ(planned_kernel(args).keys, 96u) << "more registers for what rows see";
  args.bias_type = TUFF_F32;
  EXPECT_EQ(planned_kernel(args).keys, 64u);
  args.head_dim_v = 256, args.v_strides = args.o_strides = {};
  EXPECT_EQ(planned_kernel(args).keys, 32u);
  args.seq_kv = 16;
  EXPECT_EQ(planned_kernel(args).keys, 32u) << "not 16";
  // Pieces of 16 bytes.
  AttentionArgs even = attention(TUFF_F16, 100, 4096, 64);
  even.bias = &buffer_, even.bias_type = TUFF_F32, even.bias_strides = {4, 8, 12};
  EXPECT_TRUE(planned_kernel(even).pieces);
  for (const auto change : std::initializer_list<void (*)(AttentionArgs&)>{
           [](AttentionArgs& a) { a.bias_strides.batch = 2; }, [](AttentionArgs& a) { a.bias_strides.head = 10; },
           [](AttentionArgs& a) { a.bias_strides.row = 11; }, [](AttentionArgs& a) { a.bias_type = TUFF_F16; },
           [](AttentionArgs& a) { a.seq_kv = 4094; },
           [](AttentionArgs& a) { a.mask = a.bias, a.mask_strides.row = 15; }}) {
    AttentionArgs uneven = even;
    change(uneven);
    EXPECT_FALSE(planned_kernel(uneven).pieces);
  }
}

TEST_F(NativePlanner, AttentionOfFloats) {
  const Kernels planes{"attention_planes"};
  for (const uint64_t dim : {8, 64, 72, 128}) {
    EXPECT_EQ(planned(attention(TUFF_F32, 4096, 4096, dim)), planes) << dim;
    EXPECT_EQ(planned(attention(TUFF_F32, 48, 17, dim)), planes) << dim;
  }
  AttentionArgs args = attention(TUFF_F32, 4096, 4096, 64);
  args.head_dim = 60, args.head_dim_v = 64;
  EXPECT_EQ(planned(args), planes) << "rows of 240 bytes";
  args = attention(TUFF_F32, 4096, 4096, 128);
  args.bias = args.mask = &buffer_, args.bias_type = TUFF_F32, args.softcap = 30;
  args.q_lengths = args.kv_lengths = args.lse = &buffer_, args.causal = TUFF_CAUSAL_TOP_LEFT;
  EXPECT_EQ(planned(args), planes);
  EXPECT_NE(planned(attention(TUFF_F32, 47, 4096, 64)), planes) << "few rows";
  EXPECT_NE(planned(attention(TUFF_F32, 4096, 4096, 60)), planes) << "values whose rows are no multiple of 8 numbers";
  EXPECT_NE(planned(attention(TUFF_F32, 4096, 4096, 136)), planes) << "too many registers";
  args.v_strides.row = 130;
  EXPECT_NE(planned(args), planes) << "rows of 520 bytes";
  traits_.hopper = false;
  EXPECT_NE(planned(attention(TUFF_F32, 4096, 4096, 64)), planes);
}

TEST_F(NativePlanner, AttentionThatOtherKernelsCompute) {
  EXPECT_FALSE(is_native(attention(TUFF_F16, 47, 4096, 64))) << "few rows";
  EXPECT_FALSE(is_native(attention(TUFF_F16, 4096, 4096, 68))) << "rows of 136 bytes";
  EXPECT_FALSE(is_native(attention(TUFF_F16, 4096, 4096, 264))) << "too many registers";
  using Change = void (*)(AttentionArgs&, const Buffer&);
  const Change changes[] = {
      [](AttentionArgs& args, const Buffer&) { args.softcap = 30, args.scale = 0x1.001p40; },
      [](AttentionArgs& args, const Buffer& buffer) {
        args.bias = &buffer, args.bias_strides = {0, 0, 4096}, args.scale = 0x1.001p40;
      },
      [](AttentionArgs& args, const Buffer&) { args.scale = 1e-26; },
      [](AttentionArgs& args, const Buffer&) { args.scale = 1e26; },
      [](AttentionArgs& args, const Buffer&) { args.k_strides.row = uint64_t{1} << 31; },
      [](AttentionArgs& args, const Buffer&) { args.v_strides.row = 68; },
      [](AttentionArgs& args, const Buffer&) { args.heads = args.kv_heads = uint64_t{1} << 27; },
  };
  for (const Change& change : changes) {
    AttentionArgs args = attention(TUFF_F16, 4096, 4096, 64);
    change(args, buffer_);
    EXPECT_FALSE(is_native(args)) << "change " << &change - changes;
  }
  traits_.hopper = false;
  EXPECT_FALSE(is_native(attention(TUFF_F16, 4096, 4096, 64)));
}

TEST_F(NativePlanner, GradientsOfAttention) {
  const std::string sums = "attention_backward_sums", native = "attention_backward_wgmma";
  AttentionBackwardArgs args{};
  const auto start = [&](int32_t dtype, uint64_t seq_q, uint64_t seq_kv, uint64_t dim) {
    args = {};
    args.forward = attention(dtype, seq_q, seq_kv, dim);
    args.forward.lse = args.d_o = args.dq = args.dk = args.dv = &buffer_;
  };
  for (const int32_t dtype : {TUFF_F16, TUFF_BF16}) {
    // Slopes of f16 are bounded: the bounds start at 0.
    const auto expected = [&](uint32_t kernels) {
      Kernels all = dtype == TUFF_F16 ? Kernels{"fill", sums} : Kernels{sums};
      all.insert(all.end(), kernels, native);
      return all;
    };
    for (const uint64_t dim : {8, 64, 72, 128}) {
      start(dtype, 4096, 4096, dim);
      EXPECT_EQ(planned(args), expected(2)) << dim;
    }
    start(dtype, 32, 33, 64);
    args.forward.q_lengths = args.forward.kv_lengths = &buffer_;
    args.forward.causal = TUFF_CAUSAL_BOTTOM_RIGHT, args.forward.window_left = 20;
    EXPECT_EQ(planned(args), expected(2));
    args.dq = nullptr;
    EXPECT_EQ(planned(args), expected(1));
    args.dk = nullptr, args.forward.head_dim_v = 128;
    EXPECT_EQ(planned(args), expected(1));
    args.dv = nullptr, args.dq = &buffer_;
    EXPECT_EQ(planned(args), expected(1));
    start(dtype, 4096, 4096, 112);
    args.forward.head_dim_v = 128;
    EXPECT_EQ(planned(args), expected(3)) << "too many registers for dk and dv together";
  }
  const auto is_native = [&] {
    const Kernels kernels = planned(args);
    return kernels.back() == native;
  };
  start(TUFF_F32, 4096, 4096, 64);
  EXPECT_FALSE(is_native());
  start(TUFF_F16, 31, 4096, 64);
  EXPECT_FALSE(is_native()) << "few rows";
  start(TUFF_F16, 4096, 31, 64);
  EXPECT_FALSE(is_native()) << "few keys";
  start(TUFF_F16, 4096, 4096, 68);
  EXPECT_FALSE(is_native()) << "rows of 136 bytes";
  start(TUFF_F16, 4096, 4096, 136);
  EXPECT_FALSE(is_native()) << "too many registers";
  using Change = void (*)(AttentionBackwardArgs&, const Buffer&);
  const Change changes[] = {
      [](AttentionBackwardArgs& a, const Buffer&) { a.forward.softcap = 30; },
      [](AttentionBackwardArgs& a, const Buffer& buffer) { a.forward.bias = &buffer, a.forward.bias_type = TUFF_F32; },
      [](AttentionBackwardArgs& a, const Buffer& buffer) {
        a.forward.bias = &buffer, a.forward.bias_type = TUFF_F16, a.forward.bias_strides.row = 4097;
      },
      [](AttentionBackwardArgs& a, const Buffer& buffer) {
        a.forward.mask = &buffer, a.forward.mask_strides.row = 4098;
      },
      [](AttentionBackwardArgs& a, const Buffer&) { a.forward.scale = 1e-26; },
      [](AttentionBackwardArgs& a, const Buffer&) { a.forward.scale = 1e26; },
      [](AttentionBackwardArgs& a, const Buffer&) { a.forward.k_strides.row = uint64_t{1} << 31; },
      [](AttentionBackwardArgs& a, const Buffer&) { a.d_o_strides.row = 68; },
      [](AttentionBackwardArgs& a, const Buffer&) { a.dk_strides.row = 68; },
  };
  for (const Change& change : changes) {
    start(TUFF_F16, 4096, 4096, 64);
    traits_.storage8 = true;
    change(args, buffer_);
    EXPECT_FALSE(is_native()) << "change " << &change - changes;
  }
  traits_.hopper = false;
  start(TUFF_F16, 4096, 4096, 64);
  EXPECT_FALSE(is_native());
}

TEST_F(NativePlanner, GradientsOfAttentionWithBiasAndMask) {
  const std::string sums = "attention_backward_sums", native = "attention_backward_wgmma",
                    bias = "attention_backward_bias";
  traits_.storage8 = true;
  AttentionBackwardArgs args{};
  const auto start = [&](uint64_t heads, uint64_t seq_q, uint64_t seq_kv, uint64_t dim) {
    args = {};
    args.forward = attention(TUFF_BF16, seq_q, seq_kv, dim);
    args.forward.batch = 1, args.forward.heads = args.forward.kv_heads = heads;
    args.forward.lse = args.d_o = args.dq = args.dk = args.dv = &buffer_;
  };
  const auto with_bias = [&](int32_t type) {
    args.forward.bias = &buffer_, args.forward.bias_type = type;
    args.forward.bias_strides = {args.forward.heads * args.forward.seq_q * args.forward.seq_kv,
                                 args.forward.seq_q * args.forward.seq_kv, args.forward.seq_kv};
  };
  const auto with_mask = [&] {
    args.forward.mask = &buffer_;
    args.forward.mask_strides = {0, 0, args.forward.seq_kv};
  };
  for (const uint64_t keys : {64, 100, 4096}) {
    start(4, 4096, keys, 64);
    with_bias(TUFF_F16);
    EXPECT_EQ(planned(args), (Kernels{sums, native, native})) << keys;
    with_mask();
    EXPECT_EQ(planned(args), (Kernels{sums, native, native})) << keys;
    start(4, 4096, keys, 128);
    with_mask();
    EXPECT_EQ(planned(args), (Kernels{sums, native, native, native})) << keys << ": too many registers for dk and dv";
    with_bias(TUFF_BF16);
    EXPECT_NE(planned(args).back(), native) << keys << ": too much shared memory";
  }
  // Slopes of some heads at a time: 2^30 bytes are those of 16 heads.
  start(40, 4096, 4096, 64);
  with_bias(TUFF_BF16);
  args.dbias = &buffer_, args.dbias_strides = args.forward.bias_strides;
  EXPECT_EQ(planned(args), (Kernels{sums, native, bias, native, bias, native, bias, native, bias}))
      << "zeros first, and the slopes of 16, 16 and 8 heads";
  args.forward.causal = TUFF_CAUSAL_TOP_LEFT;
  EXPECT_EQ(planned(args), (Kernels{sums, native, bias, "fill", native, bias, "fill", native, bias, "fill", native, bias}));
  args.forward.causal = TUFF_CAUSAL_NONE;
  args.forward.bias_strides.batch = args.forward.bias_strides.head = 0;
  args.dbias_strides = args.forward.bias_strides;
  EXPECT_EQ(planned(args), (Kernels{sums, native, bias, native, bias, native, bias, native, bias, bias}))
      << "sums of bf16 are f32 first";
  args.dq = nullptr;
  EXPECT_NE(planned(args)[1], native) << "the kernel for dq has the slopes";
  start(1, 16384, 16512, 64);
  with_bias(TUFF_BF16);
  args.dbias = &buffer_, args.dbias_strides = args.forward.bias_strides;
  EXPECT_NE(planned(args)[1], native) << "the slopes of a head are more than 2^30 bytes";
}

TEST_F(NativePlanner, AttentionOfOneRow) {
  const std::string decode = "attention_decode", merge = "attention_merge";
  for (const int32_t dtype : {TUFF_F16, TUFF_BF16}) {
    for (const uint64_t dim : {16, 64, 80, 128, 256}) {
      EXPECT_EQ(planned(attention(dtype, 1, 100000, dim)), (Kernels{decode, merge})) << dim;
      EXPECT_EQ(planned(attention(dtype, 1, 100, dim)), Kernels{decode}) << dim << ": one part";
    }
  }
  AttentionArgs args = attention(TUFF_F16, 1, 100, 64);
  args.lse = &buffer_;
  EXPECT_EQ(planned(args), (Kernels{decode, merge})) << "the merge stores the log-sum-exp";
  args = attention(TUFF_F16, 1, 1024, 64), args.batch = 1000;
  EXPECT_EQ(planned(args), Kernels{decode}) << "there is enough work for all multiprocessors";
  args = attention(TUFF_F16, 1, 300, 64), args.heads = 32;
  EXPECT_EQ(planned(args).front(), decode);
  args.q_lengths = args.kv_lengths = &buffer_, args.causal = TUFF_CAUSAL_BOTTOM_RIGHT, args.window_left = 20;
  EXPECT_EQ(planned(args).front(), decode);
  args.heads = 68, args.kv_heads = 4;
  EXPECT_NE(planned(args).front(), decode) << "17 heads share keys";

  EXPECT_NE(planned(attention(TUFF_F32, 1, 300, 64)).front(), decode);
  EXPECT_NE(planned(attention(TUFF_F16, 1, 300, 72)).front(), decode) << "not a multiple of 16";
  EXPECT_NE(planned(attention(TUFF_F16, 1, 300, 272)).front(), decode);
  args = attention(TUFF_F16, 1, 300, 64), args.k_strides.row = uint64_t{1} << 31;
  EXPECT_NE(planned(args).front(), decode);
  traits_.subgroup_arithmetic = false;
  EXPECT_NE(planned(attention(TUFF_F16, 1, 300, 64)).front(), decode) << "parts could not be merged";
  traits_.subgroup_arithmetic = true, traits_.hopper = false;
  EXPECT_NE(planned(attention(TUFF_F16, 1, 300, 64)).front(), decode);
}

// A few rows, and one with bias, mask or soft cap: the tile's rows, and whether rows see different keys.
TEST_F(NativePlanner, AttentionOfFewRows) {
  const auto planned_kernel = [&](AttentionArgs args) {
    complete_attention(args, true);
    FakeRecorder recorder(traits_);
    attention::Decode kernel;
    recorder.seen = [&](const KernelRequest& request, const Dispatch& dispatch) {
      if (std::string(request.source().name) == "attention_merge") return;
      ASSERT_STREQ(request.source().name, "attention_decode");
      kernel = attention::Decode::read(request);
      const uint32_t options = (kernel.bias != 0 ? 1 : 0) + (kernel.mask ? 1 : 0) + (kernel.options() ? 1 : 0);
      EXPECT_EQ(dispatch.operand_count(), 4 + options);
    };
    record_attention(recorder, args);
    return kernel;
  };
  const auto rows = [&](uint64_t seq_q, uint64_t heads) {
    AttentionArgs args = attention(TUFF_F16, seq_q, 300, 64);
    args.heads = heads;  // on 4
    return planned_kernel(args).rows;
  };
  EXPECT_EQ(rows(1, 8), 8u);
  EXPECT_EQ(rows(4, 8), 8u);
  EXPECT_EQ(rows(5, 8), 16u);
  EXPECT_EQ(rows(8, 12), 32u);
  EXPECT_EQ(rows(33, 4), 64u);
  EXPECT_EQ(rows(47, 64), 64u);
  AttentionArgs args = attention(TUFF_F16, 5, 300, 64);
  EXPECT_FALSE(planned_kernel(args).hiding);
  args.causal = TUFF_CAUSAL_BOTTOM_RIGHT;
  EXPECT_TRUE(planned_kernel(args).hiding);
  args.seq_q = 1;
  EXPECT_FALSE(planned_kernel(args).hiding) << "one row";
  args.softcap = 30;
  attention::Decode kernel = planned_kernel(args);
  EXPECT_TRUE(kernel.cap && kernel.hiding && !kernel.pieces);
  EXPECT_EQ(kernel.rows, 16u) << "as bias and mask have";
  args = attention(TUFF_BF16, 2, 300, 128);
  args.mask = &buffer_, args.mask_strides = {0, 0, 300};
  EXPECT_TRUE(planned_kernel(args).pieces);
  args.mask_strides.row = 302;
  EXPECT_FALSE(planned_kernel(args).pieces);
  args = attention(TUFF_F16, 2, 300, 256);
  EXPECT_EQ(planned_kernel(args).rows, 8u);
  args.softcap = 30;
  EXPECT_NE(planned(args).front(), "attention_decode") << "too many registers";
  args = attention(TUFF_F16, 2, 300, 64), args.softcap = 30, args.scale = 0x1.001p40;
  EXPECT_NE(planned(args).front(), "attention_decode");
  EXPECT_EQ(planned(attention(TUFF_F16, 48, 300, 64)).front(), "attention_wgmma") << "many rows";
}

// A layer of dense operands.
class RnnPlanner : public NativePlanner {
 protected:
  RnnPlanner() {
    traits_.cores = 132;
    layer_.dtype = TUFF_F16, layer_.cell = TUFF_RNN_CELL_LSTM;
    layer_.batch = 64, layer_.steps = 32, layer_.input_size = 16, layer_.hidden_size = 1024;
    layer_.x = layer_.w = layer_.r = layer_.y = &buffer_;
  }
  // How many launches of all steps it has; each has a second one for those that have been refused.
  size_t launches() {
    RnnArgs args = layer_;
    complete_rnn(args);
    FakeRecorder recorder(traits_);
    record_rnn(recorder, args);
    const auto persistent = std::ranges::count(recorder.kernels, "rnn_persistent");
    const auto gates = std::ranges::count(recorder.kernels, "rnn_gates");
    EXPECT_EQ(gates == 0, persistent != 0);
    EXPECT_EQ(persistent % 2, 0);
    return static_cast<size_t>(persistent) / 2;
  }

  RnnArgs layer_{};
};

TEST_F(RnnPlanner, OneLaunch) {
  EXPECT_EQ(launches(), 1u);
  layer_.steps = 3;
  EXPECT_EQ(launches(), 0u) << "few steps";
  layer_.steps = 4;
  EXPECT_EQ(launches(), 1u);
  layer_.hidden_size = 1022;
  EXPECT_EQ(launches(), 0u) << "rows of R that begin between pieces";
  layer_.hidden_size = 1020;
  EXPECT_EQ(launches(), 1u);
  layer_.proj_size = 64, layer_.projection = &buffer_;
  EXPECT_EQ(launches(), 0u) << "a projection";
  layer_.proj_size = 0, layer_.projection = nullptr;
  layer_.hidden_size = 2048, layer_.batch = 8;
  EXPECT_EQ(launches(), 1u);
  layer_.hidden_size = 2052;
  EXPECT_EQ(launches(), 0u) << "weights have no room";
  layer_.cell = TUFF_RNN_CELL_TANH, layer_.hidden_size = 2112;
  EXPECT_EQ(launches(), 1u);
  layer_.hidden_size = 2116;
  EXPECT_EQ(launches(), 0u) << "more slices than multiprocessors";
  layer_.hidden_size = 1056, layer_.direction = TUFF_RNN_DIRECTION_BOTH;
  EXPECT_EQ(launches(), 1u);
  layer_.hidden_size = 1060;
  EXPECT_EQ(launches(), 0u) << "in both directions";
  layer_.hidden_size = 64, layer_.cell = TUFF_RNN_CELL_RELU;
  EXPECT_EQ(launches(), 0u) << "relu";
  layer_.cell = TUFF_RNN_CELL_GRU;
  EXPECT_EQ(launches(), 0u) << "a second product";
  layer_.linear_before_reset = true;
  EXPECT_EQ(launches(), 1u);
  Buffer moved = buffer_;
  layer_.r = &moved;
  moved.offset = 4;
  EXPECT_EQ(launches(), 0u) << "pieces of R at a multiple of 4 bytes";
  moved.offset = 8;
  EXPECT_EQ(launches(), 1u);
  traits_.hopper = false;
  EXPECT_EQ(launches(), 0u);
}

// Larger ones would need more dispatches than a call can wait for.
TEST_F(RnnPlanner, SizesBeyondThoseOfDevicesAreRefused) {
  const auto refusal = [&](uint64_t RnnArgs::*const size) -> std::string {
    RnnArgs args = layer_;
    args.*size = (uint64_t{1} << 26) + 1;
    complete_rnn(args);
    FakeRecorder recorder(traits_);
    try {
      record_rnn(recorder, args);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), TUFF_ERROR_UNSUPPORTED);
      EXPECT_TRUE(recorder.kernels.empty());
      return error.what();
    }
    return "none";
  };
  EXPECT_EQ(refusal(&RnnArgs::input_size), "input_size is 67108865, at most 67108864");
  EXPECT_EQ(refusal(&RnnArgs::hidden_size), "hidden_size is 67108865, at most 67108864");
  layer_.projection = &buffer_;
  EXPECT_EQ(refusal(&RnnArgs::proj_size), "proj_size is 67108865, at most 67108864");
}

// As measured on an H200; see gains() in rnn_persistent_vulkan.cpp.
TEST_F(RnnPlanner, ManySequences) {
  layer_.batch = 65;
  EXPECT_EQ(launches(), 2u);
  layer_.batch = 512;
  EXPECT_EQ(launches(), 8u);
  layer_.hidden_size = 512, layer_.batch = 4096, layer_.steps = 8;
  EXPECT_EQ(launches(), 32u);
  layer_.hidden_size = 1024, layer_.batch = 20000;
  EXPECT_EQ(launches(), 0u) << "memory for products of the input of a single step";
  layer_.hidden_size = 64, layer_.batch = 65536;
  EXPECT_EQ(launches(), 0u) << "63 launches, in twice the time";
  layer_.cell = TUFF_RNN_CELL_GRU, layer_.linear_before_reset = true, layer_.hidden_size = 128, layer_.batch = 8192;
  EXPECT_EQ(launches(), 0u) << "16 launches";
  layer_.cell = TUFF_RNN_CELL_TANH, layer_.linear_before_reset = false, layer_.hidden_size = 4, layer_.batch = 100000;
  EXPECT_EQ(launches(), 0u) << "24 launches, in three times the time";
  layer_.batch = 4224;
  EXPECT_EQ(launches(), 1u);
}

TEST(NativeRefusals, AreRememberedByRow) {
  Refusals refusals;
  attention::Wgmma options;
  options.type = TUFF_F16, options.head_dim = options.head_dim_v = 64;
  const KernelRequest kernel = options.request();
  const Dispatch dispatch("attention native");
  FakeRecorder builds(a_gpu()), refuses(a_gpu()), lost(a_gpu());
  refuses.seen = [](const KernelRequest&, const Dispatch&) { fail(TUFF_ERROR_UNSUPPORTED, "not built"); };
  lost.seen = [](const KernelRequest&, const Dispatch&) { fail(TUFF_ERROR_DEVICE_LOST, "lost"); };
  EXPECT_TRUE(refusals.dispatch(builds, kernel, dispatch, "attention", 3));
  EXPECT_FALSE(refusals.has(3));
  EXPECT_THROW(refusals.dispatch(lost, kernel, dispatch, "attention", 3), Error);
  EXPECT_FALSE(refusals.has(3)) << "a lost device says nothing of the kernel";
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(refusals.dispatch(refuses, kernel, dispatch, "attention", 3));
  EXPECT_TRUE(refusals.has(3));
  EXPECT_FALSE(refusals.has(2));
}

}  // namespace
}  // namespace tuff
