// Attention whose state between ranges of keys does not fit into scratch memory all at once.
#include <gtest/gtest.h>

#include <vector>

#include "capi/objects.hpp"
#include "kernels/attention/attention.hpp"
#include "support/tensor.hpp"

namespace tuff_test {
namespace {

using tuff::AttentionArgs;

constexpr uint64_t kBatch = 2, kHeads = 3, kRows = 40, kKeys = 20001, kHeadDim = 4;

template <uint64_t max_state>
void record_some(tuff::Recorder& recorder, const AttentionArgs& args) {
  tuff::record_attention(recorder, args, max_state);
}
tuff::CallText describe(const AttentionArgs&) { return {}; }

template <uint64_t max_state>
const tuff::OperationOf<AttentionArgs> attention_by =
    tuff::define_operation<AttentionArgs, tuff::check_attention, tuff::host_attention, record_some<max_state>,
                           describe>("attention", tuff::kFloatTypes);

std::vector<float> run(const tuff::OperationOf<AttentionArgs>& attention, int32_t causal) {
  const OwnContext own("vulkan");
  const auto numbers = [](uint64_t rows, uint64_t seed) {
    return uniforms(kBatch * kHeads * rows * kHeadDim, -1, 1, seed);
  };
  const Tensor q(own, numbers(kRows, 1)), k(own, numbers(kKeys, 2)), v(own, numbers(kKeys, 3));
  const Tensor o(own, kBatch * kHeads * kRows * kHeadDim);
  const auto context = tuff::capi::acquire_context(own);
  const auto buffer = [&](tuff_buffer handle) { return tuff::capi::acquire_buffer(context, handle, "operand"); };
  const auto q_object = buffer(q), k_object = buffer(k), v_object = buffer(v), o_object = buffer(o);
  AttentionArgs args{};
  args.dtype = TUFF_F32;
  args.batch = kBatch, args.heads = args.kv_heads = kHeads;
  args.seq_q = kRows, args.seq_kv = kKeys, args.head_dim = args.head_dim_v = kHeadDim;
  args.causal = causal;
  args.q = &q_object->buffer(), args.k = &k_object->buffer(), args.v = &v_object->buffer();
  args.o = &o_object->buffer();
  tuff::complete_attention(args, true);
  context->default_stream().run(attention(args));
  return o.read();
}

// Each workgroup computes the same numbers in the same order, so not a bit may differ.
TEST(AttentionState, WorkgroupsWhoseStateDoesNotFitComeLater) {
  for (const int32_t causal : {TUFF_CAUSAL_NONE, TUFF_CAUSAL_BOTTOM_RIGHT}) {
    const std::vector<float> expected = run(attention_by<uint64_t{1} << 40>, causal);
    expect_same_bits(run(attention_by<1>, causal), expected);
    expect_same_bits(run(attention_by<100000>, causal), expected);
  }
}

}  // namespace
}  // namespace tuff_test
