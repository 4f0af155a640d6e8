// What the GEMM planner selects or rejects on devices unlike the one that runs the test.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "internal/fake_recorder.hpp"
#include "kernels/gemm/gemm.hpp"
#include "planning/status.hpp"
#include "planning/tuning_table.hpp"
#include "shaders/gemm_finish.hpp"

namespace tuff {
namespace {

// A planner that omits a group of defines, or a define of the group, does not compile.
template <typename Defines>
concept Whole = requires(shaders::GemmEpilogue end) {
  Defines{.dense = 0, .epilogue = end, .items = 1, .local_size = 64, .scales = 0, .sum_type = 1};
};
template <typename Defines>
concept WithoutGroup = requires {
  Defines{.dense = 0, .items = 1, .local_size = 64, .scales = 0, .sum_type = 1};
};
template <typename Epilogue>
concept WithoutResidual = requires {
  Epilogue{.activation = 0, .bias_axis = 0, .c_type = 1, .exact_arithmetic = 0};
};
static_assert(Whole<shaders::GemmFinish::Defines> && !WithoutGroup<shaders::GemmFinish::Defines>);
static_assert(!WithoutResidual<shaders::GemmEpilogue>);

GemmArgs product(const Buffer& buffer, int32_t in, int32_t out, uint64_t m, uint64_t n, uint64_t k) {
  GemmArgs args{};
  args.a_type = args.b_type = in;
  args.c_type = out;
  args.m = m, args.n = n, args.k = k;
  args.alpha = 1;
  args.a = args.b = args.c = &buffer;
  args.lda = k, args.ldb = args.ldc = n;
  return args;
}

class GemmPlanner : public testing::Test {
 protected:
  GemmPlanner() { buffer_.allocation = std::make_shared<Nowhere>(), buffer_.bytes = ~uint64_t{0} >> 1; }
  std::vector<std::string> planned(const DeviceTraits& traits, const GemmArgs& args) {
    FakeRecorder recorder(traits);
    record_gemm(recorder, args);
    for (const size_t bytes : recorder.push_bytes) EXPECT_LE(bytes, 128u);
    EXPECT_LE(recorder.largest_scratch, uint64_t{2} << 30);
    return recorder.kernels;
  }
  void expect_refused(const DeviceTraits& traits, const GemmArgs& args, const std::string& word) {
    FakeRecorder recorder(traits);
    try {
      record_gemm(recorder, args);
      ADD_FAILURE() << "was not refused for " << word;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), TUFF_ERROR_UNSUPPORTED);
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    }
    EXPECT_TRUE(recorder.kernels.empty());
  }
  Buffer buffer_;
};

TEST_F(GemmPlanner, RefusesTypesThatTheDeviceLacks) {
  DeviceTraits traits = a_gpu();
  traits.storage16 = false;
  expect_refused(traits, product(buffer_, TUFF_F16, TUFF_F32, 8, 8, 8), "a is f16");
  expect_refused(traits, product(buffer_, TUFF_F32, TUFF_BF16, 8, 8, 8), "c is bf16");
  GemmArgs mixed = product(buffer_, TUFF_F32, TUFF_F32, 8, 8, 8);
  mixed.b_type = TUFF_F16;
  expect_refused(traits, mixed, "b is f16");
  expect_refused(traits, product(buffer_, TUFF_BF16, TUFF_BF16, 0, 0, 0), "16-bit storage");
  traits.storage8 = false;
  expect_refused(traits, product(buffer_, TUFF_I8, TUFF_I32, 8, 8, 8), "8-bit storage");
  traits.f64 = false;
  expect_refused(traits, product(buffer_, TUFF_F64, TUFF_F64, 8, 8, 8), "64-bit arithmetic");
  EXPECT_EQ(planned(traits, product(buffer_, TUFF_F32, TUFF_F32, 64, 64, 64)).size(), 1u);
}

TEST_F(GemmPlanner, ConvertsForTilesAndReadsNativelyForFewColumns) {
  using Kernels = std::vector<std::string>;
  const DeviceTraits traits = a_gpu();
  EXPECT_EQ(planned(traits, product(buffer_, TUFF_F16, TUFF_F16, 2048, 2048, 512)),
            (Kernels{"gemm_convert", "gemm_convert", "gemm_tile", "gemm_finish"}));
  EXPECT_EQ(planned(traits, product(buffer_, TUFF_I8, TUFF_I32, 2048, 2048, 512)),
            (Kernels{"gemm_convert", "gemm_convert", "gemm_tile"}));
  EXPECT_EQ(planned(traits, product(buffer_, TUFF_F64, TUFF_F64, 2048, 2048, 512)), (Kernels{"gemm_tile"}));
  for (const uint64_t n : {1, 4, 16}) {
    EXPECT_EQ(planned(traits, product(buffer_, TUFF_BF16, TUFF_F16, 500'000, n, 64)), (Kernels{"gemm_cols"}));
    EXPECT_EQ(planned(traits, product(buffer_, TUFF_F16, TUFF_F16, 500'000, n, 512)), (Kernels{"gemm_rows"}));
  }
  // Without conversion, tiles are used from five columns on, where gemm_rows would read the columns element by
  // element.
  EXPECT_EQ(planned(traits, product(buffer_, TUFF_F32, TUFF_F32, 500'000, 4, 512)), (Kernels{"gemm_rows"}));
  EXPECT_EQ(planned(traits, product(buffer_, TUFF_F32, TUFF_F32, 500'000, 8, 512)), (Kernels{"gemm_tile"}));
  EXPECT_EQ(planned(traits, product(buffer_, TUFF_F32, TUFF_F32, 500'000, 16, 512)), (Kernels{"gemm_tile"}));
}

// Cooperative matrices are used if the device lists the types' shape. Covers which operands are copied first, and
// which GEMMs stay with the other kernels.
TEST_F(GemmPlanner, MatrixUnitsTakeWhatTheyKnow) {
  using Kernels = std::vector<std::string>;
  DeviceTraits traits = a_gpu();
  traits.matrix_shapes[0] = {16, 16, 16, TUFF_F16, TUFF_F16, TUFF_F32};
  traits.matrix_shapes[1] = {16, 16, 32, TUFF_I8, TUFF_I8, TUFF_I32};
  traits.matrix_shape_count = 2;
  const auto of = [&](int32_t in, int32_t out, uint64_t m, uint64_t n, uint64_t k) {
    return planned(traits, product(buffer_, in, out, m, n, k));
  };
  EXPECT_EQ(of(TUFF_F16, TUFF_F16, 2048, 2048, 512), (Kernels{"gemm_matrix"}));
  EXPECT_EQ(of(TUFF_F16, TUFF_F32, 2048, 2048, 512), (Kernels{"gemm_matrix"}));
  EXPECT_EQ(of(TUFF_F16, TUFF_F16, 2048, 2048, 511), (Kernels{"gemm_convert", "gemm_matrix"})) << "a is unaligned";
  EXPECT_EQ(of(TUFF_F16, TUFF_F16, 1, 2048, 512).front(), "gemm_cols");
  EXPECT_EQ(of(TUFF_BF16, TUFF_F16, 2048, 2048, 512),
            (Kernels{"gemm_convert", "gemm_convert", "gemm_tile", "gemm_finish"}))
      << "this device has no bf16";
  EXPECT_EQ(of(TUFF_I8, TUFF_I32, 4096, 4096, 512), (Kernels{"gemm_transpose", "gemm_matrix"})) << "b runs along n";
  EXPECT_EQ(of(TUFF_I8, TUFF_F16, 64, 2048, 256).back(), "gemm_matrix");
  EXPECT_EQ(of(TUFF_F32, TUFF_F32, 2048, 2048, 512), (Kernels{"gemm_tile"}));
  GemmArgs allowed = product(buffer_, TUFF_F32, TUFF_F32, 2048, 2048, 512);
  allowed.precision = TUFF_PRECISION_ALLOW_F16;
  EXPECT_EQ(planned(traits, allowed), (Kernels{"gemm_convert", "gemm_convert", "gemm_matrix"}));
  allowed.precision = TUFF_PRECISION_ALLOW_BF16;
  EXPECT_EQ(planned(traits, allowed), (Kernels{"gemm_tile"})) << "this device has no bf16";
  // Bias and residual are fused into the GEMM, unless 64-bit indices take their place in the push constants.
  GemmArgs fused = product(buffer_, TUFF_F16, TUFF_F16, 2048, 2048, 512);
  fused.epilogue = {TUFF_ACTIVATION_RELU, TUFF_BIAS_ROWS, &buffer_, &buffer_, 2048, 0, 0};
  EXPECT_EQ(planned(traits, fused), (Kernels{"gemm_matrix"}));
  // A device with little shared memory or small workgroups gets tiles that fit.
  traits.shared_bytes = 10'000;
  EXPECT_EQ(of(TUFF_F16, TUFF_F16, 2048, 2048, 512), (Kernels{"gemm_matrix"}));
  traits.shared_bytes = 9'000;
  EXPECT_EQ(of(TUFF_F16, TUFF_F16, 2048, 2048, 512).back(), "gemm_finish");
}

// Each workgroup computes several matrices, read as they are stored, with the epilogue fused.
TEST_F(GemmPlanner, TinyMatricesShareWorkgroups) {
  using Kernels = std::vector<std::string>;
  const auto batch = [&](int32_t in, int32_t out, uint64_t m, uint64_t n, uint64_t k, uint64_t count) {
    GemmArgs args = product(buffer_, in, out, m, n, k);
    args.batch_count = count;
    args.stride_a = m * k, args.stride_b = k * n, args.stride_c = m * n;
    return args;
  };
  DeviceTraits traits = a_gpu();
  traits.matrix_shapes[0] = {16, 16, 16, TUFF_F16, TUFF_F16, TUFF_F32};
  traits.matrix_shape_count = 1;
  for (const bool cpu : {false, true}) {
    traits.cpu = cpu;
    if (cpu) traits.subgroup_size = 8;
    for (const int32_t type : {TUFF_F32, TUFF_F16, TUFF_BF16, TUFF_F64}) {
      EXPECT_EQ(planned(traits, batch(type, type, 8, 8, 8, 10'000)), (Kernels{"gemm_tiny"}));
      EXPECT_EQ(planned(traits, batch(type, type, 1, 3, 2, 100'000)), (Kernels{"gemm_tiny"}));
    }
    EXPECT_EQ(planned(traits, batch(TUFF_I8, TUFF_BF16, 16, 16, 16, 1000)), (Kernels{"gemm_tiny"}));
    GemmArgs args = batch(TUFF_F16, TUFF_F16, 16, 7, 16, 1000);
    args.epilogue = {TUFF_ACTIVATION_GELU, TUFF_BIAS_ROWS, &buffer_, &buffer_, 7, 16, 112};
    EXPECT_EQ(planned(traits, args), cpu ? (Kernels{"gemm_tiny", "gemm_finish"}) : (Kernels{"gemm_tiny"}));
    args.epilogue.activation = TUFF_ACTIVATION_RELU;
    EXPECT_EQ(planned(traits, args), (Kernels{"gemm_tiny"}));
    args.stride_a = 1u << 30;  // 64-bit indices leave no room for the epilogue's operands
    EXPECT_EQ(planned(traits, args), (Kernels{"gemm_tiny", "gemm_finish"}));
    // Few matrices, larger ones and long k use other kernels.
    EXPECT_NE(planned(traits, batch(TUFF_F32, TUFF_F32, 8, 8, 8, 4)).front(), "gemm_tiny");
    EXPECT_NE(planned(traits, batch(TUFF_F32, TUFF_F32, 8, 17, 8, 1000)).front(), "gemm_tiny");
    EXPECT_NE(planned(traits, batch(TUFF_F32, TUFF_F32, 8, 8, 65, 1000)).front(), "gemm_tiny");
  }
}

// Push constants fit in 128 bytes for all types and sizes; planned() checks that.
TEST_F(GemmPlanner, ParametersFitPushConstants) {
  for (const int32_t type : {TUFF_F32, TUFF_F64}) {
    for (const uint64_t m : {uint64_t{1}, uint64_t{40}, uint64_t{3} << 28}) {
      for (const uint64_t n : {uint64_t{2}, uint64_t{50}}) {
        GemmArgs args = product(buffer_, type, type, m, n, 64);
        for (const bool epilogue : {false, true}) {
          if (epilogue) {
            args.epilogue = {TUFF_ACTIVATION_RELU, TUFF_BIAS_ROWS, &buffer_, &buffer_, n, 0, 0};
          }
          EXPECT_FALSE(planned(a_gpu(), args).empty());
        }
      }
    }
  }
}

// Scratch memory stays bounded even if copies and sums would be many times a device's memory.
TEST_F(GemmPlanner, LargeProductsAreMadeInPieces) {
  EXPECT_GT(planned(a_gpu(), product(buffer_, TUFF_F16, TUFF_F16, 100'000, 100'000, 4096)).size(), 16u);
  GemmArgs batch = product(buffer_, TUFF_BF16, TUFF_F16, 128, 128, 128);
  batch.batch_count = 1 << 20;
  batch.stride_a = batch.stride_b = batch.stride_c = 128 * 128;
  EXPECT_GT(planned(a_gpu(), batch).size(), 16u);
  // Copies of one operand, which is much larger than the other and C.
  for (const bool tall : {true, false}) {
    const uint64_t m = tall ? 2048 : 16, n = tall ? 16 : 2048, k = 1024;
    GemmArgs copied = product(buffer_, TUFF_BF16, TUFF_F16, m, n, k);
    copied.batch_count = 1 << 14;
    copied.stride_a = m * k, copied.stride_b = n * k, copied.stride_c = m * n;
    EXPECT_GT(planned(a_gpu(), copied).size(), 4u);
    constexpr uint64_t kFew = 512, kMany = 1 << 18, kLong = 1 << 14;
    const GemmArgs one = product(buffer_, TUFF_BF16, TUFF_F16, tall ? kMany : kFew, tall ? kFew : kMany, kLong);
    EXPECT_GT(planned(a_gpu(), one).size(), 4u);
  }
}

// What is left out of C depends on a tile's row and column in all of C, so pieces of rows or columns are complete.
TEST_F(GemmPlanner, PiecesOfTriangles) {
  DeviceTraits traits = a_gpu();
  traits.max_range = ~uint64_t{0} >> 1;
  const auto parts_of = [&](const DeviceTraits& device, uint64_t m, uint64_t n, uint64_t k) {
    GemmArgs args = product(buffer_, TUFF_F32, TUFF_F32, m, n, k);
    args.c_part = GemmPart::lower;
    FakeRecorder recorder(device);
    std::set<int64_t> parts;
    recorder.seen = [&](const KernelRequest& kernel, const Dispatch&) {
      if (std::string_view(kernel.source().name) == "gemm_tile") parts.insert(kernel.value_of("PART"));
    };
    record_gemm(recorder, args);
    return parts;
  };
  constexpr uint64_t kMost = uint64_t{1} << 30;  // rows or columns of a piece
  const std::set<int64_t> whole = {0}, part = {1};
  EXPECT_EQ(parts_of(traits, 4096, 4096, 64), part);
  EXPECT_EQ(parts_of(traits, kMost + 64, 64, 64), whole);
  EXPECT_EQ(parts_of(traits, 64, kMost + 64, 64), whole);
}

// Tuned choices apply if they can run here, to GEMMs of about the same size and the same form only.
class GemmTuned : public GemmPlanner {
 protected:
  GemmTuned() { device_ = tuning_device({}, TUFF_VERSION), device_.name = device_.driver = "a driver"; }
  // A table whose only choice is for this GEMM.
  TuningTable table_for(const GemmArgs& args, const std::string& variant, uint64_t slices) {
    const FakeRecorder recorder(a_gpu());
    std::string entry = gemm_variants(recorder, args);
    entry.resize(entry.find(", \"slices\""));
    return TuningTable(
        "{\"tuff_tuning\": 1, \"devices\": [{\"uuid\": \"" + device_.uuid +
            "\", \"name\": \"a driver\", \"driver\": \"a driver\", \"driver_version\": 0, \"library\": \"" +
            device_.library + "\", \"choices\": [" + entry + ", \"variant\": \"" + variant +
            "\", \"slices\": " + std::to_string(slices) + "}]}]}",
        device_);
  }
  // The workgroups of the first kernel.
  uint64_t groups(const DeviceTraits& traits, const GemmArgs& args, const TuningTable* table) {
    FakeRecorder recorder(traits);
    recorder.table = table;
    record_gemm(recorder, args);
    EXPECT_LE(recorder.largest_scratch, uint64_t{2} << 30);
    kernels_ = recorder.kernels;
    return recorder.groups.front();
  }
  TuningDevice device_;
  std::vector<std::string> kernels_;
};

TEST_F(GemmTuned, IsTakenForTheBucketAndTheForm) {
  const GemmArgs args = product(buffer_, TUFF_F32, TUFF_F32, 2048, 2048, 2048);
  const TuningTable table = table_for(args, "tile_64x64", 4);
  EXPECT_NE(groups(a_gpu(), args, nullptr), 4 * 32 * 32u);
  EXPECT_EQ(groups(a_gpu(), args, &table), 4 * 32 * 32u);
  EXPECT_EQ(kernels_, (std::vector<std::string>{"gemm_tile", "gemm_finish"})) << "k is cut as tuned";
  const GemmArgs near = product(buffer_, TUFF_F32, TUFF_F32, 1984, 2112, 2048);
  EXPECT_EQ(groups(a_gpu(), near, &table), 4 * 31 * 33u);
  // Half an octave away, transposed, or of another type: the model chooses.
  const GemmArgs far = product(buffer_, TUFF_F32, TUFF_F32, 2944, 2048, 2048);
  EXPECT_EQ(groups(a_gpu(), far, &table), groups(a_gpu(), far, nullptr));
  GemmArgs transposed = args;
  transposed.tb = TUFF_TRANS;
  EXPECT_EQ(groups(a_gpu(), transposed, &table), groups(a_gpu(), transposed, nullptr));
  const GemmArgs wider = product(buffer_, TUFF_F64, TUFF_F64, 2048, 2048, 2048);
  EXPECT_EQ(groups(a_gpu(), wider, &table), groups(a_gpu(), wider, nullptr));
}

TEST_F(GemmTuned, WhatDoesNotRunIsIgnored) {
  const GemmArgs args = product(buffer_, TUFF_F32, TUFF_F32, 2048, 2048, 2048);
  for (const char* variant : {"matrix_128x128", "skinny", "panels", "subgroup_4x2", "no_such_variant", "wide"}) {
    const TuningTable table = table_for(args, variant, 0);
    EXPECT_EQ(groups(a_gpu(), args, &table), groups(a_gpu(), args, nullptr)) << variant;
    EXPECT_TRUE(table.find(gemm_key(args))->reported) << variant;
  }
  // A variant that runs on one device can be too large for another.
  const TuningTable large = table_for(args, "tile_64x64", 0);
  EXPECT_EQ(groups(a_gpu(), args, &large), 32 * 32u);
  DeviceTraits small = a_gpu();
  small.shared_bytes = 8 << 10;
  EXPECT_EQ(groups(small, args, &large), groups(small, args, nullptr));
  small = a_gpu();
  small.max_invocations = small.max_local_size[0] = 64;
  EXPECT_EQ(groups(small, args, &large), groups(small, args, nullptr));
  // Split-K whose partial sums would fill the device's memory: the planner decides.
  const GemmArgs wide = product(buffer_, TUFF_F32, TUFF_F32, 16384, 16384, 16384);
  const TuningTable sliced = table_for(wide, "tile_128x128", 256);
  EXPECT_EQ(groups(a_gpu(), wide, &sliced), 128 * 128u);
  EXPECT_EQ(kernels_, (std::vector<std::string>{"gemm_tile"}));
  // Split-K for a kernel that does not support it.
  DeviceTraits cpu = a_gpu();
  cpu.cpu = true;
  cpu.subgroup_size = 8;
  const TuningTable panels = table_for(args, "panels", 4);
  FakeRecorder on_cpu(cpu);
  on_cpu.table = &panels;
  EXPECT_NE(gemm_variants(on_cpu, args).find("\"slices\": 0, \"variants\": [\"panels\""), std::string::npos);
  // More parts than k has steps.
  const GemmArgs flat = product(buffer_, TUFF_F32, TUFF_F32, 64, 64, 64);
  const TuningTable many = table_for(flat, "tile_64x64", 256);
  EXPECT_EQ(groups(a_gpu(), flat, &many), 2u);
}

TEST_F(GemmTuned, ListsWhatCouldBeChosen) {
  const FakeRecorder recorder(a_gpu());
  EXPECT_EQ(
      gemm_variants(recorder, product(buffer_, TUFF_F32, TUFF_F32, 4, 256, 64))
          .find(
              R"({"operation": "gemm", "form": "nn f32 f32 f32", "sizes": [4, 256, 64, 1], "slices": 0, "variants": ["skinny", "tile_)"),
      0u);
  // A batch that is equivalent to one tall GEMM is looked up as that; a GEMM that is not computed has no variants.
  GemmArgs batch = product(buffer_, TUFF_F32, TUFF_F32, 8, 64, 64);
  batch.batch_count = 4;
  batch.stride_a = batch.stride_c = 8 * 64;
  EXPECT_NE(gemm_variants(recorder, batch).find("\"sizes\": [32, 64, 64, 1]"), std::string::npos);
  batch.alpha = 0;
  EXPECT_NE(gemm_variants(recorder, batch).find("\"variants\": []"), std::string::npos);
  DeviceTraits old = a_gpu();
  old.storage16 = false;
  EXPECT_THROW(gemm_variants(FakeRecorder(old), product(buffer_, TUFF_F16, TUFF_F16, 8, 8, 8)), Error);
}

}  // namespace
}  // namespace tuff
