// What attention requires of its arguments.
#include <fmt/format.h>

#include <cmath>
#include <string>

#include "kernels/attention/attention.hpp"
#include "kernels/common/check.hpp"

namespace tuff {
namespace {

constexpr uint64_t kMaxHeadDim = 1024;

}  // namespace

void check_attention(const AttentionArgs& args) {
  check_f32_only(args.dtype);
  require(
      args.causal == TUFF_CAUSAL_NONE || args.causal == TUFF_CAUSAL_TOP_LEFT || args.causal == TUFF_CAUSAL_BOTTOM_RIGHT,
      "causal is {}, must be TUFF_CAUSAL_NONE, TUFF_CAUSAL_TOP_LEFT or TUFF_CAUSAL_BOTTOM_RIGHT", args.causal);
  // The kernels scale in f32, where 1e300 is infinite and 1e-300 zero.
  const float scale = static_cast<float>(args.scale);
  require(std::isfinite(scale) && scale > 0, "scale is {}, must be finite and positive in f32", args.scale);
  require(args.seq_q > 0, "seq_q is 0, needs at least 1");
  require(args.seq_kv > 0, "seq_kv is 0, needs at least 1");
  require(args.head_dim > 0, "head_dim is 0, needs at least 1");
  if (args.head_dim > kMaxHeadDim) {
    fail(TUFF_ERROR_UNSUPPORTED, "head_dim is {}, this version does at most {}", args.head_dim, kMaxHeadDim);
  }
  if (args.batch == 0 || args.heads == 0) return;

  const auto elements = [&](uint64_t seq, const char* name) {
    const uint64_t factors[] = {args.batch, args.heads, seq, args.head_dim};
    return checked_product(factors, name);
  };
  const uint64_t q = elements(args.seq_q, "q"), kv = elements(args.seq_kv, "k");
  const auto check = [&](const Buffer* buffer, const char* name, const char* seq_name, uint64_t seq, uint64_t needed) {
    check_operand(buffer, name, needed, args.dtype, [&] {
      return fmt::format("batch={} heads={} {}={} head_dim={}", args.batch, args.heads, seq_name, seq, args.head_dim);
    });
  };
  check(args.q, "q", "seq_q", args.seq_q, q);
  check(args.k, "k", "seq_kv", args.seq_kv, kv);
  check(args.v, "v", "seq_kv", args.seq_kv, kv);
  check(args.o, "o", "seq_q", args.seq_q, q);
  // The operands hold these many bytes, so the products below cannot wrap.
  const uint64_t size = dtype_size(args.dtype);
  check_overlap(args.o, "o", q * size, args.q, "q", q * size, false);
  check_overlap(args.o, "o", q * size, args.k, "k", kv * size, false);
  check_overlap(args.o, "o", q * size, args.v, "v", kv * size, false);
}

}  // namespace tuff
