// Which kernels attention selects on devices unlike the one that runs the test, and the sizes it passes to them.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "internal/fake_recorder.hpp"
#include "kernels/attention/attention.hpp"
#include "kernels/attention/native/attention_wgmma.hpp"
#include "planning/status.hpp"

namespace tuff {
namespace {

using Kernels = std::vector<std::string>;
const Kernels kTile{"attention_tile"}, kMatrix{"attention_matrix"}, kSplit{"attention_split", "attention_merge"},
    kMatrixSplit{"attention_matrix", "attention_merge"};

DeviceTraits with_matrices(uint32_t shared_bytes = 48 << 10) {
  DeviceTraits traits = a_gpu();
  traits.subgroup_ballot = true;
  traits.shared_bytes = shared_bytes;
  traits.matrix_shapes[0] = {16, 16, 16, TUFF_F16, TUFF_F16, TUFF_F32};
  traits.matrix_shapes[1] = {16, 16, 16, TUFF_BF16, TUFF_BF16, TUFF_F32};
  traits.matrix_shape_count = 2;
  return traits;
}

class AttentionPlanner : public testing::Test {
 protected:
  AttentionPlanner() { buffer_.allocation = std::make_shared<Nowhere>(), buffer_.bytes = ~uint64_t{0} >> 1; }

  AttentionArgs call(int32_t dtype, uint64_t heads, uint64_t kv_heads, uint64_t seq_q, uint64_t seq_kv, uint64_t dim) {
    AttentionArgs args{};
    args.dtype = dtype;
    args.q = args.k = args.v = args.o = &buffer_;
    args.batch = 1, args.heads = heads, args.kv_heads = kv_heads;
    args.seq_q = seq_q, args.seq_kv = seq_kv, args.head_dim = dim;
    return args;
  }
  FakeRecorder planned(const DeviceTraits& traits, AttentionArgs args, bool quads = true) {
    complete_attention(args, true);
    FakeRecorder recorder(traits);
    recorder.quads = quads;
    record_attention(recorder, args);
    for (const size_t bytes : recorder.push_bytes) EXPECT_LE(bytes, 128u);
    return recorder;
  }
  Buffer buffer_;
};

TEST_F(AttentionPlanner, ManyRowsGoToTheMatrixUnits) {
  for (const bool quads : {true, false}) {
    for (const uint64_t dim : {64, 80, 96, 128}) {
      EXPECT_EQ(planned(with_matrices(), call(TUFF_F16, 32, 32, 4096, 4096, dim), quads).kernels, kMatrix) << dim;
      EXPECT_EQ(planned(with_matrices(), call(TUFF_BF16, 32, 8, 100, 300, dim), quads).kernels, kMatrix) << dim;
    }
  }
  // Cases without a matrix kernel: another type, another head size, misaligned rows, too little shared memory.
  EXPECT_EQ(planned(with_matrices(), call(TUFF_F32, 32, 32, 4096, 4096, 128)).kernels, kTile);
  EXPECT_EQ(planned(with_matrices(), call(TUFF_F16, 32, 32, 4096, 4096, 72)).kernels, kTile);
  EXPECT_EQ(planned(with_matrices(), call(TUFF_F16, 32, 32, 4096, 4096, 256)).kernels, kTile);
  AttentionArgs odd = call(TUFF_F16, 32, 32, 4096, 4096, 128);
  odd.k_strides.row = 132;
  EXPECT_EQ(planned(with_matrices(), odd).kernels, kTile);
  EXPECT_EQ(planned(with_matrices(16 << 10), call(TUFF_F16, 32, 32, 4096, 4096, 128)).kernels, kTile);
}

TEST_F(AttentionPlanner, FewRowsComeInParts) {
  const FakeRecorder decode = planned(with_matrices(), call(TUFF_F32, 32, 8, 1, 32768, 128));
  EXPECT_EQ(decode.kernels, kSplit);
  // Four workgroups for each of 100 cores, as evenly as steps of 32 keys allow; one workgroup for each row.
  EXPECT_GE(decode.groups[0], 8u * 45);
  EXPECT_LE(decode.groups[0], 400u);
  EXPECT_EQ(decode.groups[1], 32u);
  EXPECT_EQ(decode.largest_scratch, decode.groups[0] * (4 * 128 + 8) * 4);
  EXPECT_EQ(planned(with_matrices(), call(TUFF_F32, 4, 4, 8, 5000, 64)).kernels, kSplit);
  EXPECT_EQ(planned(with_matrices(), call(TUFF_F16, 64, 8, 2, 5000, 72)).kernels, kSplit);
  // With enough heads for all cores, or few keys, there is a single part and no merging.
  EXPECT_EQ(planned(with_matrices(), call(TUFF_F32, 512, 512, 1, 4096, 128)).kernels, Kernels{"attention_split"});
  EXPECT_EQ(planned(with_matrices(), call(TUFF_F32, 8, 8, 1, 200, 128)).kernels, Kernels{"attention_split"});
  // Head size 68: f16 rows are not multiples of 16 bytes.
  EXPECT_EQ(planned(with_matrices(), call(TUFF_F16, 8, 8, 1, 4096, 68)).kernels, kTile);
}

TEST_F(AttentionPlanner, FewRowsComeInPartsOnMatrixUnits) {
  const FakeRecorder decode = planned(with_matrices(), call(TUFF_F16, 32, 8, 1, 32768, 128));
  EXPECT_EQ(decode.kernels, kMatrixSplit);
  // Parts are whole blocks of sixteen keys, with scratch memory for sixteen rows each.
  EXPECT_EQ(decode.groups[0] % 8, 0u);
  EXPECT_EQ(decode.groups[1], 32u);
  EXPECT_EQ(decode.largest_scratch, decode.groups[0] * (16 * 128 + 32) * 4);
  EXPECT_EQ(planned(with_matrices(), call(TUFF_F16, 8, 8, 1, 4096, 128)).kernels, kSplit);
  // Five query rows of five heads that share one kv head: two tiles of sixteen.
  const FakeRecorder tiles = planned(with_matrices(), call(TUFF_BF16, 10, 2, 5, 100, 80));
  EXPECT_EQ(tiles.kernels, kMatrixSplit);
  EXPECT_EQ(tiles.groups[0] % 4, 0u);
  EXPECT_EQ(planned(with_matrices(), call(TUFF_F16, 8, 8, 15, 4096, 64)).kernels, kMatrixSplit);
  EXPECT_EQ(planned(with_matrices(), call(TUFF_F16, 8, 8, 16, 4096, 64)).kernels, kMatrix);
}

TEST_F(AttentionPlanner, OptionsFitWhatCanBePushed) {
  for (const uint64_t rows : {1, 64}) {
    for (const int32_t dtype : {TUFF_F32, TUFF_F16}) {
      AttentionArgs args = call(dtype, 32, 8, rows, 8192, 128);
      args.bias = args.mask = args.lse = args.q_lengths = args.kv_lengths = &buffer_;
      args.bias_strides = {0, 0, 8192};
      args.softcap = 30, args.window_left = 100;
      EXPECT_FALSE(planned(with_matrices(), args).kernels.empty());
      args.k_strides.head = uint64_t{1} << 33;  // 64-bit indices
      EXPECT_FALSE(planned(with_matrices(), args).kernels.empty());
    }
  }
}

TEST_F(AttentionPlanner, ManyHeadsBecomeBatchElements) {
  EXPECT_FALSE(planned(a_gpu(), call(TUFF_F32, 70'000, 70'000, 2, 2, 4)).kernels.empty());
  AttentionArgs shared = call(TUFF_F32, 70'000, 35'000, 2, 2, 4);
  EXPECT_THROW(planned(a_gpu(), shared), Error);
}

TEST_F(AttentionPlanner, DevicesThatLackStorage) {
  DeviceTraits traits = with_matrices();
  traits.storage16 = traits.storage8 = false;
  EXPECT_THROW(planned(traits, call(TUFF_F16, 4, 4, 64, 64, 64)), Error);
  AttentionArgs masked = call(TUFF_F32, 4, 4, 64, 64, 64);
  masked.mask = &buffer_;
  EXPECT_THROW(planned(traits, masked), Error);
}

// What the kernel in PTX is told: strides in bytes, tiles, and how many heads share keys.
TEST_F(AttentionPlanner, NumbersOfTheKernelInPtx) {
  DeviceTraits traits = with_matrices();
  traits.hopper = true;
  const auto planned_push = [&](const AttentionArgs& args, uint32_t keys, uint32_t groups) {
    FakeRecorder recorder(traits);
    attention::Wgmma::Push push{};
    recorder.seen = [&](const KernelRequest& kernel, const Dispatch& dispatch) {
      ASSERT_TRUE(kernel.source().native());
      EXPECT_EQ(attention::Wgmma::read(kernel).keys, keys);
      EXPECT_EQ(attention::Wgmma::read(kernel).head_dim_v, args.head_dim_v);
      EXPECT_EQ(dispatch.group_counts()[0], groups);
      ASSERT_EQ(dispatch.push_bytes(), sizeof push);
      std::memcpy(&push, dispatch.push_data(), sizeof push);
    };
    record_attention(recorder, args);
    EXPECT_EQ(recorder.kernels.size(), 1u);
    return push;
  };
  AttentionArgs args = call(TUFF_F16, 6, 2, 300, 200, 64);
  args.batch = 3, args.head_dim_v = 128;
  complete_attention(args, true);
  args.q_strides = {900'000, 300 * 72, 72}, args.k_strides = {40'000, 200 * 80, 80};
  args.v_strides = {70'000, 200 * 136, 136}, args.o_strides = {1'000'000, 300 * 144, 144};
  const attention::Wgmma::Push push = planned_push(args, 112, 54);  // two steps of 112 rather than of 128
  EXPECT_EQ(push.q_batch, 1'800'000u);
  EXPECT_EQ(push.q_head, 300u * 144);
  EXPECT_EQ(push.q_row, 144u);
  EXPECT_EQ(push.k_batch, 80'000u);
  EXPECT_EQ(push.k_head, 200u * 160);
  EXPECT_EQ(push.k_row, 160u);
  EXPECT_EQ(push.v_batch, 140'000u);
  EXPECT_EQ(push.v_head, 200u * 272);
  EXPECT_EQ(push.v_row, 272u);
  EXPECT_EQ(push.o_batch, 2'000'000u);
  EXPECT_EQ(push.o_head, 300u * 288);
  EXPECT_EQ(push.o_row, 288u);
  EXPECT_EQ(push.seq_q, 300u);
  EXPECT_EQ(push.seq_kv, 200u);
  EXPECT_EQ(push.heads, 6u);
  EXPECT_EQ(push.sharing, 3u);
  EXPECT_EQ(push.row_tiles, 3u);
  EXPECT_EQ(push.tiles, 54u);
  args.causal = 1;
  EXPECT_EQ(planned_push(args, 128, 54).seq_kv, 200u) << "rows that see different keys take the largest steps";
  traits.cores = 7;
  EXPECT_EQ(planned_push(args, 128, 7).tiles, 54u);
  // Other kernels compute what it cannot.
  traits.cores = 100;
  const auto by_native = [&](const AttentionArgs& one) {
    FakeRecorder recorder(traits);
    bool native = false;
    recorder.seen = [&](const KernelRequest& kernel, const Dispatch&) { native = kernel.source().native(); };
    record_attention(recorder, one);
    return native;
  };
  EXPECT_TRUE(by_native(args));
  for (const auto change : std::initializer_list<void (*)(AttentionArgs&)>{
           [](AttentionArgs& a) { a.seq_q = 47; }, [](AttentionArgs& a) { a.softcap = 1, a.scale = 1e13; },
           [](AttentionArgs& a) { a.head_dim = 60; }, [](AttentionArgs& a) { a.head_dim_v = 124; },
           [](AttentionArgs& a) { a.head_dim = 264; }, [](AttentionArgs& a) { a.head_dim_v = 264; },
           [](AttentionArgs& a) { a.q_strides.row = 74; }, [](AttentionArgs& a) { a.k_strides.head += 4; },
           [](AttentionArgs& a) { a.v_strides.batch += 4; }, [](AttentionArgs& a) { a.o_strides.row = 145; },
           [](AttentionArgs& a) { a.scale = 1e-26; }, [](AttentionArgs& a) { a.scale = 1e26; },
           [](AttentionArgs& a) { a.dtype = TUFF_F32, a.head_dim_v = 124; },
           [](AttentionArgs& a) { a.q_strides.row = uint64_t{1} << 31; }}) {
    AttentionArgs other = args;
    change(other);
    EXPECT_FALSE(by_native(other));
  }
  args.seq_q = 48;
  EXPECT_TRUE(by_native(args));
}

}  // namespace
}  // namespace tuff
