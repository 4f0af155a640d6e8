// Attention.
#include <algorithm>
#include <cmath>

#include "fuzz/draft.hpp"
#include "fuzz/epilogue.hpp"
#include "fuzz/numbers.hpp"
#include "support/bounds.hpp"

namespace tuff_fuzz {
namespace {

using tuff_test::gamma;
using tuff_test::kU;

constexpr uint64_t kMaxHeadDim = 1024;  // longer rows are unsupported

// Draws [batch][heads][seq][size], or [batch][seq][heads][size] with gaps, and sets strides unless it is dense.
std::vector<Axis> draw_tensor(Draft& d, const char* strides, bool spread, uint64_t batch, uint64_t heads, uint64_t seq,
                              uint64_t size) {
  if (!spread) return {{batch, heads * seq * size}, {heads, seq * size}, {seq, size}, {size, 1}};
  const uint64_t row = size + d.loose().below(3), next = heads * row + d.loose().below(3);
  const uint64_t numbers[3] = {seq * next, row, next};
  d.list(strides, numbers);
  return {{batch, numbers[0]}, {heads, numbers[1]}, {seq, numbers[2]}, {size, 1}};
}

void draw_attention(Draft& d) {
  Draw& draw = d.shape;
  const int32_t dtype = draw_float(draw);
  const bool desc = d.has("kv_heads");
  const uint64_t batch = d.extent(draw_size(draw, 3), 0, 3), shared = desc ? d.extent(draw.between(1, 2), 1, 4) : 1;
  const uint64_t kv_heads = d.extent(draw.between(1, 2), 1, 2);
  const uint64_t heads = shared * kv_heads, seq_q = d.extent(draw.between(1, 9), 1);
  const uint64_t seq_kv = d.extent(draw.between(1, draw.one_in(4) ? 40 : 9), 1);
  const uint64_t size = std::min(d.extent(draw.between(1, 20), 1), kMaxHeadDim);
  const uint64_t values = desc && draw.one_in(3) ? std::min(d.extent(draw.between(1, 20), 1), kMaxHeadDim) : size;
  const double scale = desc && draw.one_in(4) ? 0 : draw.of({1.0, 0.5, 0.25});
  d.set("dtype", dtype), d.set("batch", batch), d.set("heads", heads), d.set("seq_q", seq_q), d.set("seq_kv", seq_kv);
  d.set("head_dim", size), d.real("scale", scale);
  d.set("causal", static_cast<int32_t>(draw.below(3)));
  if (desc && shared != 1) d.set("kv_heads", kv_heads);
  if (values != size) d.set("head_dim_v", values);
  const bool spread = desc && batch != 0 && draw.one_in(3);
  const auto q = draw_tensor(d, "q_strides", spread, batch, heads, seq_q, size);
  const auto k = draw_tensor(d, "k_strides", spread, batch, kv_heads, seq_kv, size);
  const auto v = draw_tensor(d, "v_strides", spread, batch, kv_heads, seq_kv, values);
  const auto o = draw_tensor(d, "o_strides", spread, batch, heads, seq_q, values);
  d.input("q", dtype, footprint(q), Fill::integers, 2), d.input("k", dtype, footprint(k), Fill::integers, 2);
  d.input("v", dtype, footprint(v), Fill::integers, 4);
  d.output("o", dtype, footprint(o)).axes = o;
  double softcap = 0;
  if (desc && batch != 0) {
    if (draw.one_in(4)) d.real("softcap", softcap = draw.of({2.0, 30.0}));
    for (const char* name : {"bias", "mask"}) {
      if (!draw.one_in(4)) continue;
      const bool bias = name[0] == 'b', wide = bias && draw.one_in(2);
      uint64_t strides[3] = {draw.one_in(2) ? 0 : heads * seq_q * seq_kv, draw.one_in(2) ? 0 : seq_q * seq_kv,
                             draw.one_in(3) ? 0 : seq_kv};
      const Axis axes[] = {{batch, strides[0]}, {heads, strides[1]}, {seq_q, strides[2]}, {seq_kv, 1}};
      d.list(bias ? "bias_strides" : "mask_strides", strides);
      if (bias && draw.one_in(2)) d.set("bias_type", wide ? int32_t{TUFF_F32} : dtype);
      const int32_t type = !bias                          ? int32_t{TUFF_U8}
                           : d.call.get("bias_type") == 0 ? dtype
                                                          : static_cast<int32_t>(d.call.get("bias_type"));
      d.input(name, type, footprint(axes), bias ? Fill::integers : Fill::booleans);
    }
    if (draw.one_in(4)) d.set("window_left", draw.between(1, 5));
    if (draw.one_in(4)) d.set("window_right", draw.between(1, 5));
    if (draw.one_in(4)) d.input("q_lengths", TUFF_I32, batch, Fill::indices, static_cast<double>(seq_q) + 2);
    if (draw.one_in(4)) d.input("kv_lengths", TUFF_I32, batch, Fill::indices, static_cast<double>(seq_kv) + 2);
    if (draw.one_in(3)) d.output("lse", TUFF_F32, batch * heads * seq_q);
  }
  // The error of a score: gamma of its sum, plus what tanh and the bias add. The error of a weight: e^(2 d) - 1 and an
  // exp of 4 ULP, rescaled at most once for each key. Then the sums over the keys, and the quotient.
  const auto error = [&d, size, seq_kv, softcap, scale] {
    const double by = scale == 0 ? 1 / std::sqrt(static_cast<double>(size)) : scale;
    const double terms = static_cast<double>(size), keys = static_cast<double>(seq_kv);
    const double largest = by * terms * d.of("q").seen.most * d.of("k").seen.most;
    double score = gamma(terms + 4) * largest + 10 * kU * (softcap + 1);
    double bias = 0;
    for (const Operand& operand : d.operands) {
      if (std::string_view(operand.name) == "bias") bias = operand.seen.most;
    }
    score += 2 * kU * (largest + bias);
    return std::expm1(2 * score + 4 * kU * (largest + bias)) + gamma(12 * keys + 40);
  };
  for (Operand& operand : d.operands) {
    if (!operand.written) continue;
    const bool log = operand.dtype == TUFF_F32 && operand.name[0] == 'l';
    const int32_t type = operand.dtype;
    operand.allowed = [&d, error, log, type](uint64_t, double y) {
      if (std::isinf(y)) return 0.0;
      if (log) return error() + 8 * kU * (8 + std::fabs(y));
      // With cooperative matrices, weights are rounded to the type of v (half a unit of 1).
      const double weights = type == TUFF_F32 ? 0 : spacing(type, 1) / 2;
      return (2 * error() + weights) * d.of("v").seen.most + rounded(type, 8, y);
    };
  }
  d.suits = [&d] {
    for (const Operand& operand : d.operands) {
      const std::string_view name = operand.name;
      if (!operand.read || operand.elements == 0 || name == "mask" || name.ends_with("lengths")) continue;
      if (!operand.seen.integral || operand.seen.most > 8) return false;
    }
    return true;
  };
}

constexpr Description kAttention[] = {{"tuff_attention", "attention", draw_attention},
                                      {"tuff_attention_ex", "attention", draw_attention}};

}  // namespace

std::span<const Description> describe_attention() { return kAttention; }

}  // namespace tuff_fuzz
