// Attention.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

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

struct Options {
  double softcap = 0;
  int32_t bias_type = 0;  // 0: no bias
  std::array<uint64_t, 3> bias_strides{};
};
// Draws the soft cap, bias, mask, windows and lengths.
Options draw_options(Draft& d, int32_t dtype, uint64_t batch, uint64_t heads, uint64_t seq_q, uint64_t seq_kv,
                     bool masks = true) {
  Draw& draw = d.shape;
  Options options;
  if (draw.one_in(4)) d.real("softcap", options.softcap = draw.of({2.0, 30.0}));
  for (const char* name : {"bias", "mask"}) {
    if (!draw.one_in(4)) continue;
    if (name[0] == 'm' && !masks) continue;
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
    if (bias) options.bias_type = type, options.bias_strides = std::to_array(strides);
  }
  if (draw.one_in(4)) d.set("window_left", draw.between(1, 5));
  if (draw.one_in(4)) d.set("window_right", draw.between(1, 5));
  if (draw.one_in(4)) d.input("q_lengths", TUFF_I32, batch, Fill::indices, static_cast<double>(seq_q) + 2);
  if (draw.one_in(4)) d.input("kv_lengths", TUFF_I32, batch, Fill::indices, static_cast<double>(seq_kv) + 2);
  return options;
}

// How keys or values are stored: as dtype (0), as 8-bit floats, or in blocks.
int32_t draw_stored(Draw& draw) {
  return draw.of<int32_t>({0, TUFF_F8_E4M3, TUFF_F8_E5M2, TUFF_QUANT_Q4_0, TUFF_QUANT_Q8_0});
}
bool in_blocks(int32_t stored) { return stored >= TUFF_QUANT_Q4_0; }

// Keys ("k") or values. Words of blocks are small integers, so that scales and numbers are below 8.
void draw_stored_rows(Draft& d, const char* const (&names)[5], int32_t stored, int32_t dtype, uint64_t elements,
                      uint64_t batch, uint64_t kv_heads, uint64_t seq_kv, double most) {
  const auto [name, type, format, scales, strides] = names;
  Draw& draw = d.shape;
  if (stored == 0) {
    d.input(name, dtype, elements, Fill::integers, most);
    return;
  }
  d.set(in_blocks(stored) ? format : type, stored);
  if (in_blocks(stored)) {
    d.input(name, TUFF_U16, elements / 32 * (stored == TUFF_QUANT_Q4_0 ? 9 : 17), Fill::positive, most);
    return;
  }
  d.input(name, stored, elements, Fill::integers, most);
  if (draw.one_in(2)) return;
  const uint64_t by[3] = {draw.one_in(2) ? 0 : kv_heads * seq_kv, draw.one_in(2) ? 0 : seq_kv,
                          draw.one_in(2) ? 0 : uint64_t{1}};
  const Axis axes[] = {{batch, by[0]}, {kv_heads, by[1]}, {seq_kv, by[2]}};
  d.list(strides, by);
  d.input(scales, TUFF_F32, footprint(axes), Fill::powers);
}

// The largest magnitude of keys or values, scaled.
double largest_of(const Draft& d, std::string_view name, std::string_view scales) {
  double most = d.of(name).seen.most;
  for (const Operand& operand : d.operands) {
    if (operand.name == scales) most *= operand.seen.most;
  }
  return most;
}

void draw_attention(Draft& d) {
  Draw& draw = d.shape;
  const int32_t dtype = draw_float(draw);
  const bool desc = d.has("kv_heads");
  const uint64_t batch = d.extent(draw_size(draw, 3), 0, 3), shared = desc ? d.extent(draw.between(1, 2), 1, 4) : 1;
  const uint64_t kv_heads = d.extent(draw.between(1, 2), 1, 2);
  const uint64_t heads = shared * kv_heads, seq_q = d.extent(draw.between(1, 9), 1);
  const uint64_t seq_kv = d.extent(draw.between(1, draw.one_in(4) ? 40 : 9), 1);
  const bool quantised = desc && batch != 0 && draw.one_in(3);
  const int32_t k_stored = quantised ? draw_stored(draw) : 0, v_stored = quantised ? draw_stored(draw) : 0;
  const auto whole = [](int32_t stored, uint64_t length) {
    return in_blocks(stored) ? (length + 31) / 32 * 32 : length;
  };
  const uint64_t size = whole(k_stored, std::min(d.extent(draw.between(1, 20), 1), kMaxHeadDim));
  const uint64_t values =
      whole(v_stored, desc && draw.one_in(3) ? std::min(d.extent(draw.between(1, 20), 1), kMaxHeadDim) : size);
  const double scale = desc && draw.one_in(4) ? 0 : draw.of({1.0, 0.5, 0.25});
  d.set("dtype", dtype), d.set("batch", batch), d.set("heads", heads), d.set("seq_q", seq_q), d.set("seq_kv", seq_kv);
  d.set("head_dim", size), d.real("scale", scale);
  d.set("causal", static_cast<int32_t>(draw.below(3)));
  if (desc && shared != 1) d.set("kv_heads", kv_heads);
  if (values != size) d.set("head_dim_v", values);
  // Gaps would leave rows that do not begin with a block.
  const bool spread = desc && batch != 0 && !in_blocks(k_stored) && !in_blocks(v_stored) && draw.one_in(3);
  const auto q = draw_tensor(d, "q_strides", spread, batch, heads, seq_q, size);
  const auto k = draw_tensor(d, "k_strides", spread, batch, kv_heads, seq_kv, size);
  const auto v = draw_tensor(d, "v_strides", spread, batch, kv_heads, seq_kv, values);
  const auto o = draw_tensor(d, "o_strides", spread, batch, heads, seq_q, values);
  d.input("q", dtype, footprint(q), Fill::integers, 2);
  draw_stored_rows(d, {"k", "k_type", "k_format", "k_scales", "k_scale_strides"}, k_stored, dtype, footprint(k), batch,
                   kv_heads, seq_kv, 2);
  draw_stored_rows(d, {"v", "v_type", "v_format", "v_scales", "v_scale_strides"}, v_stored, dtype, footprint(v), batch,
                   kv_heads, seq_kv, 4);
  d.output("o", dtype, footprint(o)).axes = o;
  double softcap = 0;
  if (desc && batch != 0) {
    // Devices take five of the scales and these.
    const bool scaled = std::any_of(d.operands.begin(), d.operands.end(), [](const Operand& operand) {
      return std::string_view(operand.name).ends_with("scales");
    });
    softcap = draw_options(d, dtype, batch, heads, seq_q, seq_kv, !scaled).softcap;
    if (draw.one_in(3) && !scaled) d.output("lse", TUFF_F32, batch * heads * seq_q);
  }
  // The error of a score: gamma of its sum, plus what tanh and the bias add. The error of a weight: e^(2 d) - 1 and an
  // exp of 4 ULP, rescaled at most once for each key. Then the sums over the keys, and the quotient.
  const auto error = [&d, size, seq_kv, softcap, scale] {
    const double by = scale == 0 ? 1 / std::sqrt(static_cast<double>(size)) : scale;
    const double terms = static_cast<double>(size), keys = static_cast<double>(seq_kv);
    const double largest = by * terms * d.of("q").seen.most * largest_of(d, "k", "k_scales");
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
      return (2 * error() + weights) * largest_of(d, "v", "v_scales") + rounded(type, 8, y);
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

// The gradients. Weights are at most 1, whatever lse is.
void draw_attention_backward(Draft& d) {
  Draw& draw = d.shape;
  const int32_t dtype = draw_float(draw);
  const uint64_t batch = d.extent(draw_size(draw, 3), 0, 3), shared = d.extent(draw.between(1, 2), 1, 4);
  const uint64_t kv_heads = d.extent(draw.between(1, 2), 1, 2);
  const uint64_t heads = shared * kv_heads, seq_q = d.extent(draw.between(1, draw.one_in(4) ? 40 : 9), 1);
  const uint64_t seq_kv = d.extent(draw.between(1, draw.one_in(4) ? 40 : 9), 1);
  const uint64_t size = std::min(d.extent(draw.between(1, 20), 1), kMaxHeadDim);
  const uint64_t values = draw.one_in(3) ? std::min(d.extent(draw.between(1, 20), 1), kMaxHeadDim) : size;
  const double scale = draw.one_in(4) ? 0 : draw.of({1.0, 0.5, 0.25});
  d.set("dtype", dtype), d.set("batch", batch), d.set("heads", heads), d.set("seq_q", seq_q), d.set("seq_kv", seq_kv);
  d.set("head_dim", size), d.real("scale", scale);
  d.set("causal", static_cast<int32_t>(draw.below(3)));
  if (shared != 1) d.set("kv_heads", kv_heads);
  if (values != size) d.set("head_dim_v", values);
  const bool spread = batch != 0 && draw.one_in(3);
  struct Tensor {
    const char *name, *strides;
    uint64_t heads, rows, size;
  };
  const Tensor read[] = {{"q", "q_strides", heads, seq_q, size},
                         {"k", "k_strides", kv_heads, seq_kv, size},
                         {"v", "v_strides", kv_heads, seq_kv, values},
                         {"o", "o_strides", heads, seq_q, values},
                         {"d_o", "d_o_strides", heads, seq_q, values}};
  for (const Tensor& t : read) {
    d.input(t.name, dtype, footprint(draw_tensor(d, t.strides, spread, batch, t.heads, t.rows, t.size)), Fill::integers,
            2);
  }
  d.input("lse", TUFF_F32, batch * heads * seq_q, Fill::positive, 8);
  const Options options = batch == 0 ? Options{} : draw_options(d, dtype, batch, heads, seq_q, seq_kv);
  const double softcap = options.softcap;
  // A weight's error, as in attention; that of the difference of two sums of d_o * v and d_o * o, and of the cap's
  // slope.
  struct Errors {
    double weight, largest, slope;  // slope: of a pair, which is at most `largest`
  };
  // Matrix units take weights and slopes of the operands' type.
  const double unit = dtype == TUFF_F32 ? 0 : dtype == TUFF_F16 ? 0x1p-11 : 0x1p-8;
  const auto errors = [&d, size, values, softcap, scale, unit] {
    const double by = scale == 0 ? 1 / std::sqrt(static_cast<double>(size)) : scale;
    const double terms = static_cast<double>(size), score = by * terms * d.of("q").seen.most * d.of("k").seen.most;
    double bias = 0;
    for (const Operand& operand : d.operands) {
      if (std::string_view(operand.name) == "bias") bias = operand.seen.most;
    }
    const double largest = score + bias + d.of("lse").seen.most;
    const double error = gamma(terms + 4) * score + 10 * kU * (softcap + 1) + 4 * kU * largest;
    Errors e{};
    e.weight = std::expm1(error + (3 + 2 * largest) * 2 * kU + (unit == 0 ? 0 : 21 * kU)) + 2 * unit;
    e.largest = static_cast<double>(values) * d.of("d_o").seen.most * (d.of("v").seen.most + d.of("o").seen.most);
    const double ratio = softcap == 0 ? 0 : error / softcap + kU;
    e.slope = (e.weight + gamma(2 * static_cast<double>(values) + 8) + 2 * ratio + ratio * ratio + 4 * kU) *
                  (1 + e.weight) * e.largest +
              2 * unit * e.largest;
    return e;
  };
  const double by = scale == 0 ? 1 / std::sqrt(static_cast<double>(size)) : scale;
  struct Gradient {
    const char *name, *strides;
    uint64_t heads, rows, size, terms;
    const char* times;  // the other factor of its terms
  };
  const Gradient gradients[] = {{"dq", "dq_strides", heads, seq_q, size, seq_kv, "k"},
                                {"dk", "dk_strides", kv_heads, seq_kv, size, seq_q * shared, "q"},
                                {"dv", "dv_strides", kv_heads, seq_kv, values, seq_q * shared, "d_o"}};
  // The largest number and the error of a gradient.
  const auto bound = [&d, errors, by](const Gradient& g) {
    const Errors e = errors();
    const bool of_values = g.name[1] == 'v';
    const double most = of_values ? 1 : by * e.largest, error = of_values ? e.weight : by * e.slope;
    const double all = static_cast<double>(g.terms) * d.of(g.times).seen.most;
    return std::pair{all * most, all * (error + gamma(static_cast<double>(g.terms) + 6) * (most + error))};
  };
  double by_bias = 0;  // terms of a gradient by the bias
  const size_t needed = draw.below(3);
  for (size_t i = 0; i < 3; ++i) {
    const Gradient g = gradients[i];
    if (i != needed && draw.one_in(3)) continue;
    const auto axes = draw_tensor(d, g.strides, spread, batch, g.heads, g.rows, g.size);
    Operand& output = d.output(g.name, dtype, footprint(axes));
    output.axes = axes;
    output.allowed = [bound, g, dtype](uint64_t, double y) {
      const double error = bound(g).second;
      return error + rounded(dtype, 2, std::fabs(y) + error);
    };
  }
  if (options.bias_type != 0 && draw.one_in(2)) {
    // One element for all that share one: with the bias's strides, or densely.
    const bool dense = draw.one_in(3);
    std::array<uint64_t, 3> sizes{batch, heads, seq_q}, strides = options.bias_strides;
    double terms = 1;
    uint64_t step = seq_kv;
    for (size_t i = 3; i-- > 0;) {
      if (strides[i] == 0) terms *= static_cast<double>(sizes[i]), sizes[i] = 1;
      if (strides[i] != 0 && dense) strides[i] = step;
      step *= sizes[i];
    }
    if (dense) d.list("dbias_strides", strides);
    const std::vector<Axis> axes{{sizes[0], strides[0]}, {sizes[1], strides[1]}, {sizes[2], strides[2]}, {seq_kv, 1}};
    Operand& output = d.output("dbias", options.bias_type, footprint(axes));
    output.axes = axes;
    output.allowed = [errors, terms, type = options.bias_type](uint64_t, double y) {
      const Errors e = errors();
      const double error = terms * (e.slope + gamma(terms + 6) * (e.largest + e.slope));
      return error + rounded(type, 2, std::fabs(y) + error);
    };
    by_bias = terms;
  }
  d.suits = [&d, bound, by_bias, errors, gradients = std::to_array(gradients), dtype] {
    for (const Operand& operand : d.operands) {
      const std::string_view name = operand.name;
      if (!operand.read || operand.elements == 0 || name == "mask" || name.ends_with("lengths")) continue;
      if (!operand.seen.integral || operand.seen.most > 8) return false;
    }
    const Errors e = errors();
    if (by_bias * (e.largest + e.slope) * 2 >= (dtype == TUFF_F16 ? 6e4 : 1e30)) return false;
    return std::ranges::all_of(gradients, [&](const Gradient& g) {
      const auto [most, error] = bound(g);
      return most + error < (dtype == TUFF_F16 ? 6e4 : 1e30);
    });
  };
}

constexpr Description kAttention[] = {{"tuff_attention", "attention", draw_attention},
                                      {"tuff_attention_ex", "attention", draw_attention},
                                      {"tuff_attention_backward", "attention_backward", draw_attention_backward}};

}  // namespace

std::span<const Description> describe_attention() { return kAttention; }

}  // namespace tuff_fuzz
