// Which calls take kernels in PTX on a GPU that runs them, and what happens if the driver refuses one. No GPU is
// needed.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "internal/fake_recorder.hpp"
#include "kernels/attention/attention.hpp"
#include "kernels/attention/native/attention_wgmma.hpp"
#include "kernels/native/refusals.hpp"
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

  DeviceTraits traits_ = a_gpu();
  Buffer buffer_;
};

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

TEST_F(NativePlanner, AttentionThatOtherKernelsCompute) {
  EXPECT_FALSE(is_native(attention(TUFF_F32, 4096, 4096, 64)));
  EXPECT_FALSE(is_native(attention(TUFF_F16, 47, 4096, 64))) << "few rows";
  EXPECT_FALSE(is_native(attention(TUFF_F16, 4096, 4096, 68))) << "rows of 136 bytes";
  EXPECT_FALSE(is_native(attention(TUFF_F16, 4096, 4096, 264))) << "too many registers";
  using Change = void (*)(AttentionArgs&, const Buffer&);
  const Change changes[] = {
      [](AttentionArgs& args, const Buffer& buffer) {
        args.bias = &buffer, args.bias_strides = {0, 0, 4096};
      },
      [](AttentionArgs& args, const Buffer& buffer) {
        args.mask = &buffer, args.mask_strides = {0, 0, 4096};
      },
      [](AttentionArgs& args, const Buffer&) { args.softcap = 30; },
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
