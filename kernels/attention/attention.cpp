#include "kernels/attention/attention.hpp"

#include <fmt/format.h>

namespace tuff {
namespace {

CallText describe(const AttentionArgs& args) {
  return {fmt::format("{} batch {} heads {} {}x{} of {}{}", dtype_name(args.dtype), args.batch, args.heads, args.seq_q,
                      args.seq_kv, args.head_dim, args.causal == TUFF_CAUSAL_NONE ? "" : " causal"),
          args.dtype};
}

}  // namespace

namespace operations {
const OperationOf<AttentionArgs> attention =
    define_operation<AttentionArgs, check_attention, host_attention, record_attention, describe, nullptr,
                     offer_attention>("attention", kFloatTypes);
}  // namespace operations

}  // namespace tuff
