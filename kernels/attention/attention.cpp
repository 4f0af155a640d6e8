#include "kernels/attention/attention.hpp"

#include <fmt/format.h>

#include "kernels/attention/attention_backward.hpp"
#include "kernels/quant/quant.hpp"

namespace tuff {
namespace {

CallText describe(const AttentionArgs& args) {
  CallText text{fmt::format("{} batch {} heads {} {}x{} of {}{}", dtype_name(args.dtype), args.batch, args.heads,
                            args.seq_q, args.seq_kv, args.head_dim, args.causal == TUFF_CAUSAL_NONE ? "" : " causal"),
                args.dtype};
  for (const auto& [stored, name] : {std::pair{args.k_stored.as, "k"}, {args.v_stored.as, "v"}}) {
    if (stored == 0) continue;
    text.shape +=
        fmt::format(" {} {}", name, attention::in_blocks(stored) ? quant::format_of(stored).name : dtype_name(stored));
  }
  return text;
}

CallText describe_backward(const AttentionBackwardArgs& args) {
  CallText text = describe(args.forward);
  for (const auto& [output, name] :
       {std::pair{args.dq, " dq"}, {args.dk, " dk"}, {args.dv, " dv"}, {args.dbias, " dbias"}}) {
    if (output != nullptr) text.shape += name;
  }
  return text;
}

}  // namespace

namespace operations {
const OperationOf<AttentionArgs> attention =
    define_operation<AttentionArgs, check_attention, host_attention, record_attention, describe, nullptr,
                     offer_attention>("attention", kFloatTypes);
const OperationOf<AttentionBackwardArgs> attention_backward =
    define_operation<AttentionBackwardArgs, check_attention_backward, host_attention_backward,
                     record_attention_backward, describe_backward>("attention_backward", kFloatTypes);
}  // namespace operations

}  // namespace tuff
