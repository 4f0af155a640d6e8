// Gradients of attention against the formulas of tuff.h in double, with a bound for each element; finite differences
// check the formulas themselves.
#include <cfloat>
#include <cmath>
#include <cstddef>

#include "support/attention_problem.hpp"
#include "support/bounds.hpp"
#include "support/stored.hpp"

namespace tuff_test::attention_backward_test {
namespace {

constexpr int32_t kTopLeft = TUFF_CAUSAL_TOP_LEFT, kBottomRight = TUFF_CAUSAL_BOTTOM_RIGHT;
constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT;

// Which gradients are wanted.
struct Wanted {
  bool dq = true, dk = true, dv = true, dbias = false;
};

struct Row {
  AttentionShape shape;
  Wanted wanted{};
  std::string name() const {
    return shape.name() + (wanted.dq ? "" : "_nodq") + (wanted.dk ? "" : "_nodk") + (wanted.dv ? "" : "_nodv") +
           (wanted.dbias ? "_dbias" : "");
  }
  double work() const { return 3 * shape.work(); }
};

// What the call reads. Tensors are [batch][heads][seq][dim], whatever the layout.
struct Inputs {
  std::vector<float> q, k, v, o, lse, d_o;
};
struct Gradients {
  Expected dq, dk, dv, dbias;  // dbias has the places of the bias
};

// A score with the error that a device may have made, and its slope by scale * (q . k).
struct Score {
  double value, error, slope, slope_error;
};
Score score_of(const AttentionShape& s, const AttentionExtras& extras, const float* q, const float* k, uint64_t b,
               uint64_t h, uint64_t i, uint64_t j) {
  double sum = 0, size = 0;
  for (uint64_t e = 0; e < s.head_dim; ++e) {
    const double term = static_cast<double>(q[e]) * k[e];
    sum += term, size += std::fabs(term);
  }
  const double scale = s.scale_used();
  Score score{scale * sum, gamma(static_cast<double>(s.head_dim) + 3) * scale * size, 1, 0};
  if (s.softcap != 0) {
    // A division, tanh to 4 ULP, a product; then the square of what is divided once more.
    score.error += kU * std::fabs(score.value);
    const double ratio = std::tanh(score.value / s.softcap);
    score.value = s.softcap * ratio;
    score.error += 10 * kU * std::fabs(score.value);
    const double ratio_error = score.error / s.softcap + kU * std::fabs(ratio);
    score.slope = 1 - ratio * ratio;
    score.slope_error = 2 * std::fabs(ratio) * ratio_error + ratio_error * ratio_error + 2 * kU;
  }
  if (!extras.bias.empty()) {
    score.value += extras.bias[attention_extra_at(s, b, h, i, j)];
    score.error += kU * std::fabs(score.value);
  }
  return score;
}

// The forward pass in double: o and lse, unrounded.
struct Forward {
  std::vector<double> o, lse;
};
template <typename Number>
Forward forward_of(const AttentionShape& s, const AttentionExtras& extras, const std::vector<Number>& q,
                   const std::vector<Number>& k, const std::vector<Number>& v, const std::vector<double>& bias) {
  const uint64_t d = s.head_dim, dv = s.dim_v(), sharing = s.heads / s.heads_of_kv();
  Forward result{std::vector<double>(s.results()), {}};
  std::vector<double> scores(s.seq_kv);
  for (uint64_t row = 0; row < s.batch * s.heads * s.seq_q; ++row) {
    const uint64_t b = row / (s.heads * s.seq_q), h = row / s.seq_q % s.heads, i = row % s.seq_q;
    const uint64_t kv_row0 = (b * s.heads_of_kv() + h / sharing) * s.seq_kv;
    double highest = -INFINITY, total = 0;
    for (uint64_t j = 0; j < s.seq_kv; ++j) {
      scores[j] = -INFINITY;
      if (!attention_sees(s, extras, b, h, i, j)) continue;
      double sum = 0;
      for (uint64_t e = 0; e < d; ++e)
        sum += static_cast<double>(q[row * d + e]) * static_cast<double>(k[(kv_row0 + j) * d + e]);
      scores[j] = sum * s.scale_used();
      if (s.softcap != 0) scores[j] = s.softcap * std::tanh(scores[j] / s.softcap);
      if (!bias.empty()) scores[j] += bias[attention_extra_at(s, b, h, i, j)];
      highest = std::max(highest, scores[j]);
    }
    for (uint64_t j = 0; j < s.seq_kv && highest != -INFINITY; ++j) {
      const double weight = std::exp(scores[j] - highest);
      total += weight;
      for (uint64_t e = 0; e < dv && weight != 0; ++e) {
        result.o[row * dv + e] += weight * static_cast<double>(v[(kv_row0 + j) * dv + e]);
      }
    }
    for (uint64_t e = 0; e < dv && total != 0; ++e) result.o[row * dv + e] /= total;
    result.lse.push_back(highest + std::log(total));
  }
  return result;
}

// How kernels for NVIDIA's matrix units round besides: weights, which f16 holds times 2^15, and slopes, to the type of
// the operands. Other kernels leave them in f32.
struct Rounding {
  double relative = 0, weight = 0, slope = 0;  // weight, slope: of numbers below the type's normal ones
  double power = 0;                            // of a weight's exponent
};
// 2 |d_o| max(|v|, |o|), of the largest rows.
double slope_bound(const AttentionShape& s, const Inputs& in) {
  const auto longest = [&](const std::vector<float>& rows) {
    double most = 0;
    for (uint64_t i = 0; i < rows.size(); i += s.dim_v()) {
      double sum = 0;
      for (uint64_t e = i; e < i + s.dim_v(); ++e) sum += static_cast<double>(rows[e]) * rows[e];
      if (std::isfinite(sum)) most = std::max(most, sum);
    }
    return std::sqrt(most);
  };
  return 2 * longest(in.d_o) * std::max(longest(in.v), longest(in.o));
}
Rounding rounding_of(tuff_context context, const AttentionShape& s, const Inputs& in) {
  const int32_t dtype = s.dtype;
  int32_t ptx = 0;
  if (dtype == TUFF_F32) return {};
  EXPECT_OK(tuff_supports(context, "ptx", &ptx));
  if (ptx == 0) return {};
  // To the exponent of two 15 is added, which two roundings see: 2 * 15 * ln(2) < 21. Slopes are multiplied by a power
  // of two that makes their bound 2^13 at least: the error of 2^-25 is then 2^-38 of the bound.
  if (dtype == TUFF_F16) return {unit_roundoff(dtype), 0x1p-40, 0x1p-38 * slope_bound(s, in), 21 * kU};
  return {unit_roundoff(dtype), FLT_MIN, FLT_MIN, 0};
}

// The bounds. A weight p = exp(s - lse) is off by what the error of s, the difference, its product with log2(e) and exp
// make of it; below FLT_MIN it may vanish. Dot products of n terms have gamma(n + 1). The sums of a gradient have one
// term for each key, or for each row of all heads that share the key; factors of 2^-24 more than the roundings there
// are.
Gradients solve(const AttentionShape& s, const AttentionExtras& extras, const Inputs& in,
                const Rounding& rounding = {}) {
  const uint64_t d = s.head_dim, dv = s.dim_v(), sharing = s.heads / s.heads_of_kv();
  const double scale = s.scale_used();
  Gradients found;
  const auto clear = [](Expected& of, uint64_t count) { of.value.assign(count, 0), of.bound.assign(count, 0); };
  clear(found.dq, s.queries()), clear(found.dk, s.keys()), clear(found.dv, s.values());
  clear(found.dbias, extras.bias.size());
  // Adds factor * x, where the factor has an error and `terms` of these are added up.
  const auto add = [](Expected& to, uint64_t at, double factor, double error, const float* x, uint64_t size,
                      double terms) {
    for (uint64_t e = 0; e < size; ++e) {
      to.value[at + e] += factor * x[e];
      to.bound[at + e] +=
          (error + gamma(terms + 4) * (std::fabs(factor) + error)) * std::fabs(static_cast<double>(x[e]));
    }
  };
  const float one = 1;
  const double sharing_bias = static_cast<double>(s.batch * s.heads * s.seq_q * s.seq_kv) /
                              static_cast<double>(std::max<size_t>(extras.bias.size(), 1));
  const double keys = static_cast<double>(s.seq_kv), rows = static_cast<double>(s.seq_q * sharing);
  for (uint64_t row = 0; row < s.batch * s.heads * s.seq_q; ++row) {
    const uint64_t b = row / (s.heads * s.seq_q), h = row / s.seq_q % s.heads, i = row % s.seq_q;
    const uint64_t kv_row0 = (b * s.heads_of_kv() + h / sharing) * s.seq_kv;
    const double lse = in.lse[row];
    if (lse == -INFINITY) continue;
    const float *const slope = &in.d_o[row * dv], *const out = &in.o[row * dv];
    double inner = 0, inner_size = 0;
    for (uint64_t e = 0; e < dv; ++e) {
      const double term = static_cast<double>(slope[e]) * out[e];
      inner += term, inner_size += std::fabs(term);
    }
    for (uint64_t j = 0; j < s.seq_kv; ++j) {
      if (!attention_sees(s, extras, b, h, i, j)) continue;
      const Score score = score_of(s, extras, &in.q[row * d], &in.k[(kv_row0 + j) * d], b, h, i, j);
      const double power = score.value - lse, exact = std::exp(power), p = std::min(exact, 1.0);
      const double off = std::expm1(score.error + 3 * kU * (std::fabs(power) + std::fabs(score.value)) +
                                    exp_error(power) + rounding.power);
      const double p_error = p * off + FLT_MIN;
      const double stored_error = p_error + rounding.relative * (p + p_error) + rounding.weight;
      double by_weight = 0, size = 0;
      for (uint64_t e = 0; e < dv; ++e) {
        const double term = static_cast<double>(slope[e]) * in.v[(kv_row0 + j) * dv + e];
        by_weight += term, size += std::fabs(term);
      }
      const double difference = by_weight - inner;
      const double difference_error =
          gamma(static_cast<double>(dv) + 4) * (size + inner_size) + kU * std::fabs(difference);
      const double ds = p * difference * score.slope;
      const double product_error = p_error * (std::fabs(difference) + difference_error) + p * difference_error;
      const double ds_error = product_error * (score.slope + score.slope_error) +
                              p * std::fabs(difference) * score.slope_error + 3 * kU * std::fabs(ds);
      const double stored_ds_error = ds_error + rounding.relative * (std::fabs(ds) + ds_error) + rounding.slope;
      if (!extras.bias.empty()) {
        add(found.dbias, attention_extra_at(s, b, h, i, j), p * difference,
            product_error + 3 * kU * p * std::fabs(difference), &one, 1, sharing_bias);
      }
      add(found.dq, row * d, scale * ds, scale * stored_ds_error, &in.k[(kv_row0 + j) * d], d, keys);
      add(found.dk, (kv_row0 + j) * d, scale * ds, scale * stored_ds_error, &in.q[row * d], d, rows);
      add(found.dv, (kv_row0 + j) * dv, p, stored_error, slope, dv, rows);
    }
  }
  return found;
}

std::vector<float> as_floats(const std::vector<double>& values) { return {values.begin(), values.end()}; }

Inputs inputs_of(const AttentionShape& s, const AttentionExtras& extras) {
  Inputs in;
  in.q = rounded(s.dtype, uniforms(s.queries(), -s.spread, s.spread, 1));
  in.k = rounded(s.dtype, uniforms(s.keys(), -s.spread, s.spread, 2));
  in.v = rounded(s.dtype, uniforms(s.values(), -1, 1, 3));
  in.d_o = rounded(s.dtype, uniforms(s.results(), -1, 1, 6));
  const Forward forward = forward_of(s, extras, in.q, in.k, in.v, {extras.bias.begin(), extras.bias.end()});
  in.o = rounded(s.dtype, as_floats(forward.o)), in.lse = as_floats(forward.lse);
  return in;
}

void set_shape(tuff_attention_backward_desc& desc, const AttentionShape& s) {
  desc.struct_size = sizeof desc;
  desc.dtype = s.dtype;
  desc.batch = s.batch, desc.heads = s.heads, desc.seq_q = s.seq_q, desc.seq_kv = s.seq_kv, desc.head_dim = s.head_dim;
  desc.kv_heads = s.kv_heads, desc.head_dim_v = s.head_dim_v;
  desc.scale = s.scale_used(), desc.causal = s.causal, desc.softcap = s.softcap;
  desc.window_left = s.left, desc.window_right = s.right;
}

// dbias with gaps between rows in the roomy layout: where the bias's element i is.
struct BiasPlaces {
  std::array<uint64_t, 3> of;
  uint64_t count, keys, row;
  uint64_t at(uint64_t i) const { return i / keys * row + i % keys; }
};
BiasPlaces bias_places(const AttentionShape& s, const AttentionExtras& extras,
                       const tuff_attention_backward_desc& desc) {
  const uint64_t row = s.layout == Layout::roomy ? s.seq_kv + 3 : s.seq_kv;
  BiasPlaces places{{}, extras.bias.size() / s.seq_kv * row, s.seq_kv, row};
  for (size_t i = 0; i < 3; ++i) places.of[i] = desc.bias_strides[i] / s.seq_kv * row;
  return places;
}

// Runs the call and compares; returns what it wrote, dq, dk and dv after one another.
std::vector<float> run(tuff_context context, const AttentionShape& s, const AttentionExtras& extras, const Inputs& in,
                       const Wanted& wanted = {}) {
  const uint64_t kv = s.heads_of_kv(), shift = s.shift / size_of(s.dtype);
  const RowPlaces at_q = row_places(s.layout, s.batch, s.heads, s.seq_q, s.head_dim),
                  at_k = row_places(s.layout, s.batch, kv, s.seq_kv, s.head_dim),
                  at_v = row_places(s.layout, s.batch, kv, s.seq_kv, s.dim_v()),
                  at_o = row_places(s.layout, s.batch, s.heads, s.seq_q, s.dim_v());
  const auto stored = [&](const RowPlaces& places, uint64_t heads, uint64_t rows, uint64_t dim,
                          const std::vector<float>& values) {
    return StoredTensor(context, s.dtype, placed_rows(places, s.batch, heads, rows, dim, values), shift);
  };
  const auto poisoned = [](uint64_t count) { return std::vector<float>(count, poison()); };
  const StoredTensor q = stored(at_q, s.heads, s.seq_q, s.head_dim, in.q),
                     k = stored(at_k, kv, s.seq_kv, s.head_dim, in.k), v = stored(at_v, kv, s.seq_kv, s.dim_v(), in.v),
                     o = stored(at_o, s.heads, s.seq_q, s.dim_v(), in.o),
                     d_o = stored(at_o, s.heads, s.seq_q, s.dim_v(), in.d_o),
                     dq = stored(at_q, s.heads, s.seq_q, s.head_dim, poisoned(s.queries())),
                     dk = stored(at_k, kv, s.seq_kv, s.head_dim, poisoned(s.keys())),
                     dv = stored(at_v, kv, s.seq_kv, s.dim_v(), poisoned(s.values()));
  const Tensor lse(context, in.lse, 4);
  const StoredExtras told(context, s, extras);
  tuff_attention_backward_desc desc{};
  set_shape(desc, s);
  desc.q = q, desc.k = k, desc.v = v, desc.o = o, desc.d_o = d_o, desc.lse = lse;
  if (wanted.dq) desc.dq = dq;
  if (wanted.dk) desc.dk = dk;
  if (wanted.dv) desc.dv = dv;
  if (s.layout != Layout::heads_first) {
    std::copy_n(at_q.of.begin(), 3, desc.q_strides), std::copy_n(at_q.of.begin(), 3, desc.dq_strides);
    std::copy_n(at_k.of.begin(), 3, desc.k_strides), std::copy_n(at_k.of.begin(), 3, desc.dk_strides);
    std::copy_n(at_v.of.begin(), 3, desc.v_strides), std::copy_n(at_v.of.begin(), 3, desc.dv_strides);
    std::copy_n(at_o.of.begin(), 3, desc.o_strides), std::copy_n(at_o.of.begin(), 3, desc.d_o_strides);
  }
  told.tell(desc);
  const BiasPlaces at_bias = bias_places(s, extras, desc);
  const int32_t bias_type = s.bias_type != 0 ? s.bias_type : s.dtype;
  const StoredTensor dbias(context, bias_type, poisoned(at_bias.count), s.shift / size_of(bias_type));
  if (wanted.dbias) desc.dbias = dbias;
  if (wanted.dbias && s.layout == Layout::roomy) std::copy_n(at_bias.of.begin(), 3, desc.dbias_strides);
  EXPECT_OK(tuff_attention_backward(context, &desc));
  Gradients expected = solve(s, extras, in, rounding_of(context, s, in));
  std::vector<float> all;
  const auto check = [&](const char* name, const StoredTensor& of, const RowPlaces& places, uint64_t heads,
                         uint64_t rows, uint64_t dim, Expected& right, bool is_wanted) {
    SCOPED_TRACE(name);
    const std::vector<float> got = gathered_rows(places, s.batch, heads, rows, dim, of.read());
    if (!is_wanted) return expect_same_bits(got, poisoned(got.size()));
    add_storage(right, s.dtype);
    expect_matches(got, right);
    all.insert(all.end(), got.begin(), got.end());
  };
  check("dq", dq, at_q, s.heads, s.seq_q, s.head_dim, expected.dq, wanted.dq);
  check("dk", dk, at_k, kv, s.seq_kv, s.head_dim, expected.dk, wanted.dk);
  check("dv", dv, at_v, kv, s.seq_kv, s.dim_v(), expected.dv, wanted.dv);
  if (wanted.dbias) {
    SCOPED_TRACE("dbias");
    std::vector<float> rest = dbias.read(), got;
    for (uint64_t i = 0; i < extras.bias.size(); ++i) {
      got.push_back(rest[at_bias.at(i)]);
      rest[at_bias.at(i)] = poison();
    }
    expect_same_bits(rest, poisoned(rest.size()));
    add_storage(expected.dbias, bias_type);
    expect_matches(got, expected.dbias);
    all.insert(all.end(), got.begin(), got.end());
  }
  return all;
}

std::vector<Row> cases() {
  return {
      {{.seq_q = 1, .seq_kv = 1, .head_dim = 1}},
      {{.seq_q = 3, .seq_kv = 5, .head_dim = 4}},
      {{.batch = 2, .heads = 3, .seq_q = 20, .seq_kv = 35, .head_dim = 16}},
      {{.heads = 2, .seq_q = 33, .seq_kv = 31, .head_dim = 13}, {.dk = false, .dv = false}},
      {{.heads = 2, .seq_q = 33, .seq_kv = 31, .head_dim = 32}, {.dq = false, .dv = false}},
      {{.heads = 2, .seq_q = 33, .seq_kv = 31, .head_dim = 32}, {.dq = false, .dk = false}},
      {{.heads = 2, .seq_q = 70, .seq_kv = 130, .head_dim = 64}, {.dq = false}},
      {{.seq_q = 65, .seq_kv = 64, .head_dim = 65, .shift = 4}, {.dk = false}},
      {{.seq_q = 64, .seq_kv = 129, .head_dim = 80}, {.dv = false}},
      // beyond one tile's columns, and values of another size
      {{.seq_q = 40, .seq_kv = 50, .head_dim = 128}},
      {{.seq_q = 40, .seq_kv = 50, .head_dim = 200, .head_dim_v = 72}},
      {{.seq_q = 20, .seq_kv = 33, .head_dim = 12, .head_dim_v = 256}},
      {{.seq_q = 10, .seq_kv = 9, .head_dim = 520, .head_dim_v = 30}},
      // causal, windows, lengths
      {{.heads = 2, .seq_q = 90, .seq_kv = 90, .head_dim = 32, .causal = kTopLeft}},
      {{.heads = 2, .seq_q = 70, .seq_kv = 40, .head_dim = 32, .causal = kTopLeft}},
      {{.heads = 2, .seq_q = 70, .seq_kv = 120, .head_dim = 16, .causal = kBottomRight}},
      {{.heads = 2, .seq_q = 90, .seq_kv = 30, .head_dim = 16, .causal = kBottomRight}},
      {{.heads = 2, .seq_q = 150, .seq_kv = 150, .head_dim = 16, .left = 7}},
      {{.heads = 2, .seq_q = 150, .seq_kv = 150, .head_dim = 16, .left = 5, .right = 3}},
      {{.heads = 2, .seq_q = 90, .seq_kv = 170, .head_dim = 16, .causal = kBottomRight, .left = 20}},
      {{.heads = 1, .seq_q = 140, .seq_kv = 25, .head_dim = 16, .right = 1}},
      {{.heads = 1, .seq_q = 190, .seq_kv = 20, .head_dim = 16, .left = 1}},
      {{.batch = 6, .heads = 2, .seq_q = 70, .seq_kv = 100, .head_dim = 16, .lengths = true}},
      {{.batch = 6, .heads = 2, .seq_q = 40, .seq_kv = 80, .head_dim = 16, .causal = kBottomRight, .lengths = true}},
      {{.batch = 6,
        .heads = 2,
        .seq_q = 80,
        .seq_kv = 40,
        .head_dim = 16,
        .causal = kTopLeft,
        .left = 9,
        .lengths = true}},
      // heads that share keys, layouts
      {{.batch = 2, .heads = 6, .seq_q = 9, .seq_kv = 20, .head_dim = 16, .kv_heads = 2}},
      {{.batch = 2, .heads = 4, .seq_q = 70, .seq_kv = 40, .head_dim = 16, .causal = kTopLeft, .kv_heads = 1}},
      {{.batch = 2,
        .heads = 3,
        .seq_q = 9,
        .seq_kv = 20,
        .head_dim = 24,
        .head_dim_v = 8,
        .layout = Layout::rows_first}},
      {{.batch = 2,
        .heads = 4,
        .seq_q = 19,
        .seq_kv = 33,
        .head_dim = 8,
        .causal = kTopLeft,
        .kv_heads = 2,
        .layout = Layout::roomy}},
      {{.batch = 2, .heads = 4, .seq_q = 1, .seq_kv = 300, .head_dim = 32, .kv_heads = 2, .layout = Layout::roomy}},
      // mask, bias, soft cap
      {{.batch = 2, .heads = 3, .seq_q = 40, .seq_kv = 70, .head_dim = 16, .mask = true}},
      {{.batch = 2,
        .heads = 3,
        .seq_q = 20,
        .seq_kv = 35,
        .head_dim = 16,
        .causal = kTopLeft,
        .mask = true,
        .same = Same::queries}},
      {{.batch = 2, .heads = 3, .seq_q = 20, .seq_kv = 35, .head_dim = 16, .mask = true, .same = Same::all}},
      {{.batch = 2, .heads = 3, .seq_q = 20, .seq_kv = 35, .head_dim = 16, .bias_type = TUFF_F32}},
      {{.batch = 2,
        .heads = 3,
        .seq_q = 20,
        .seq_kv = 35,
        .head_dim = 16,
        .scale = 2,
        .bias_type = TUFF_F32,
        .same = Same::heads}},
      {{.batch = 2, .heads = 3, .seq_q = 20, .seq_kv = 35, .head_dim = 16, .spread = 5, .softcap = 2}},
      // types
      {{.heads = 2, .seq_q = 33, .seq_kv = 31, .head_dim = 32, .dtype = TUFF_F16}},
      {{.heads = 2, .seq_q = 17, .seq_kv = 40, .head_dim = 24, .causal = kBottomRight, .shift = 2, .dtype = TUFF_BF16}},
      {{.batch = 2, .heads = 3, .seq_q = 7, .seq_kv = 11, .head_dim = 13, .dtype = TUFF_BF16}},
      {{.heads = 2, .seq_q = 130, .seq_kv = 150, .head_dim = 64, .dtype = TUFF_F16, .kv_heads = 1}},
      // those that kernels for NVIDIA's matrix units take
      {{.heads = 2, .seq_q = 128, .seq_kv = 128, .head_dim = 64, .dtype = TUFF_F16}},
      {{.heads = 2, .seq_q = 200, .seq_kv = 330, .head_dim = 128, .dtype = TUFF_BF16}},
      {{.batch = 2, .heads = 2, .seq_q = 321, .seq_kv = 190, .head_dim = 80, .dtype = TUFF_F16, .head_dim_v = 72}},
      {{.heads = 2, .seq_q = 90, .seq_kv = 70, .head_dim = 24, .dtype = TUFF_BF16, .head_dim_v = 128}, {.dk = false}},
      {{.heads = 2, .seq_q = 90, .seq_kv = 70, .head_dim = 128, .dtype = TUFF_F16}, {.dq = false, .dv = false}},
      {{.heads = 2, .seq_q = 33, .seq_kv = 32, .head_dim = 8, .dtype = TUFF_F16}, {.dk = false, .dv = false}},
      {{.heads = 6, .seq_q = 300, .seq_kv = 300, .head_dim = 64, .causal = kTopLeft, .dtype = TUFF_F16, .kv_heads = 2}},
      {{.heads = 2, .seq_q = 150, .seq_kv = 290, .head_dim = 128, .causal = kBottomRight, .dtype = TUFF_F16}},
      {{.heads = 2, .seq_q = 290, .seq_kv = 150, .head_dim = 64, .causal = kBottomRight, .dtype = TUFF_BF16}},
      {{.heads = 2, .seq_q = 400, .seq_kv = 400, .head_dim = 64, .dtype = TUFF_BF16, .left = 40, .right = 30}},
      {{.batch = 6,
        .heads = 4,
        .seq_q = 170,
        .seq_kv = 230,
        .head_dim = 64,
        .causal = kBottomRight,
        .dtype = TUFF_F16,
        .kv_heads = 2,
        .layout = Layout::rows_first,
        .left = 90,
        .lengths = true}},
      {{.batch = 6,
        .heads = 2,
        .seq_q = 140,
        .seq_kv = 140,
        .head_dim = 128,
        .causal = kTopLeft,
        .dtype = TUFF_BF16,
        .layout = Layout::roomy,
        .lengths = true}},
      // together
      {{.batch = 6,
        .heads = 4,
        .seq_q = 33,
        .seq_kv = 47,
        .head_dim = 20,
        .causal = kBottomRight,
        .dtype = TUFF_F16,
        .kv_heads = 2,
        .head_dim_v = 12,
        .layout = Layout::rows_first,
        .softcap = 3,
        .bias_type = TUFF_F16,
        .mask = true,
        .same = Same::heads,
        .left = 30,
        .lengths = true}},
      {{.batch = 6,
        .heads = 2,
        .seq_q = 60,
        .seq_kv = 112,
        .head_dim = 40,
        .dtype = TUFF_BF16,
        .softcap = 4,
        .bias_type = TUFF_BF16,
        .mask = true,
        .right = 30,
        .lengths = true}},
      {{.batch = 2,
        .heads = 2,
        .seq_q = 9,
        .seq_kv = 30,
        .head_dim = 9,
        .dtype = TUFF_BF16,
        .bias_type = TUFF_F32,
        .same = Same::queries,
        .right = 4}},
      // the gradient by the bias: each pair has its own element, or some share one; more than one block of rows and
      // keys
      {{.batch = 2, .heads = 3, .seq_q = 9, .seq_kv = 14, .head_dim = 5, .bias_type = TUFF_F32}, {.dbias = true}},
      {{.batch = 2,
        .heads = 4,
        .seq_q = 9,
        .seq_kv = 14,
        .head_dim = 5,
        .dtype = TUFF_F16,
        .kv_heads = 2,
        .bias_type = TUFF_F16},
       {.dq = false, .dk = false, .dv = false, .dbias = true}},
      {{.batch = 3,
        .heads = 4,
        .seq_q = 17,
        .seq_kv = 30,
        .head_dim = 8,
        .kv_heads = 2,
        .softcap = 3,
        .bias_type = TUFF_F32,
        .same = Same::batches},
       {.dbias = true}},
      {{.batch = 3,
        .heads = 4,
        .seq_q = 17,
        .seq_kv = 30,
        .head_dim = 8,
        .dtype = TUFF_BF16,
        .kv_heads = 2,
        .bias_type = TUFF_BF16,
        .same = Same::heads},
       {.dk = false, .dbias = true}},
      {{.batch = 3,
        .heads = 4,
        .seq_q = 17,
        .seq_kv = 30,
        .head_dim = 8,
        .dtype = TUFF_F16,
        .kv_heads = 2,
        .layout = Layout::roomy,
        .softcap = 2,
        .bias_type = TUFF_F16,
        .same = Same::queries},
       {.dq = false, .dbias = true}},
      {{.batch = 3,
        .heads = 4,
        .seq_q = 17,
        .seq_kv = 30,
        .head_dim = 8,
        .layout = Layout::roomy,
        .bias_type = TUFF_F32,
        .same = Same::all},
       {.dv = false, .dbias = true}},
      {{.batch = 6,
        .heads = 4,
        .seq_q = 33,
        .seq_kv = 47,
        .head_dim = 20,
        .causal = kBottomRight,
        .dtype = TUFF_F16,
        .kv_heads = 2,
        .layout = Layout::roomy,
        .softcap = 3,
        .bias_type = TUFF_F32,
        .mask = true,
        .same = Same::heads,
        .left = 30,
        .lengths = true},
       {.dbias = true}},
      {{.heads = 2, .seq_q = 300, .seq_kv = 290, .head_dim = 8, .causal = kTopLeft, .bias_type = TUFF_F32, .left = 40},
       {.dbias = true}},
      {{.batch = 2,
        .heads = 2,
        .seq_q = 300,
        .seq_kv = 290,
        .head_dim = 8,
        .dtype = TUFF_BF16,
        .bias_type = TUFF_BF16,
        .same = Same::batches},
       {.dbias = true}},
      {{.batch = 2,
        .heads = 2,
        .seq_q = 300,
        .seq_kv = 290,
        .head_dim = 8,
        .causal = kTopLeft,
        .bias_type = TUFF_F32,
        .same = Same::all},
       {.dbias = true}},
      {{.batch = 700,
        .heads = 2,
        .seq_q = 2,
        .seq_kv = 3,
        .head_dim = 2,
        .dtype = TUFF_F16,
        .kv_heads = 1,
        .bias_type = TUFF_F16,
        .same = Same::batches},
       {.dbias = true}},
      // bias and mask of tiles in 16 bits: windows begin anywhere; rows of the bias that begin at multiples of 16, 4
      // and 2 bytes
      {{.batch = 2,
        .heads = 4,
        .seq_q = 300,
        .seq_kv = 288,
        .head_dim = 64,
        .dtype = TUFF_F16,
        .kv_heads = 2,
        .bias_type = TUFF_F16,
        .mask = true,
        .left = 41},
       {.dbias = true}},
      {{.batch = 2,
        .heads = 2,
        .seq_q = 150,
        .seq_kv = 132,
        .head_dim = 128,
        .dtype = TUFF_BF16,
        .bias_type = TUFF_BF16,
        .same = Same::heads,
        .left = 9,
        .right = 5},
       {.dbias = true}},
      {{.heads = 2,
        .seq_q = 150,
        .seq_kv = 133,
        .head_dim = 72,
        .causal = kTopLeft,
        .dtype = TUFF_F16,
        .bias_type = TUFF_F16,
        .left = 70},
       {.dbias = true}},
      {{.heads = 2,
        .seq_q = 130,
        .seq_kv = 200,
        .head_dim = 128,
        .causal = kBottomRight,
        .dtype = TUFF_F16,
        .mask = true}},
      // more rows, or keys, than the loops of a CPU driver allow, also by the heads that share keys
      {{.seq_q = 30'001, .seq_kv = 7, .head_dim = 4, .left = 8000}},
      {{.seq_q = 5, .seq_kv = 30'001, .head_dim = 4, .causal = kBottomRight, .left = 25'000}},
      {{.heads = 5, .seq_q = 6000, .seq_kv = 5, .head_dim = 3, .kv_heads = 1}},
  };
}

using AttentionBackward = Table<Row>;
TEST_P(AttentionBackward, WithinBound) {
  const AttentionExtras extras = attention_extras(row().shape);
  run(context(), row().shape, extras, inputs_of(row().shape, extras), row().wanted);
}
TUFF_TABLE(AttentionBackward, Row, cases());

// The formulas, by central differences of the forward pass in double.
TEST(AttentionBackwardFormulas, AreTheSlopes) {
  const AttentionShape shapes[] = {
      {.batch = 2, .heads = 2, .seq_q = 4, .seq_kv = 5, .head_dim = 3, .head_dim_v = 2},
      {.heads = 4,
       .seq_q = 5,
       .seq_kv = 4,
       .head_dim = 3,
       .causal = kBottomRight,
       .kv_heads = 2,
       .softcap = 1.5,
       .bias_type = TUFF_F32},
      {.batch = 2,
       .heads = 2,
       .seq_q = 3,
       .seq_kv = 4,
       .head_dim = 2,
       .softcap = 1.5,
       .bias_type = TUFF_F32,
       .same = Same::batches},
      {.batch = 6,
       .heads = 2,
       .seq_q = 6,
       .seq_kv = 7,
       .head_dim = 2,
       .causal = kTopLeft,
       .mask = true,
       .left = 3,
       .lengths = true},
  };
  for (const AttentionShape& s : shapes) {
    SCOPED_TRACE(s.name());
    const AttentionExtras extras = attention_extras(s);
    Inputs in = inputs_of(s, extras);
    const Gradients found = solve(s, extras, in);
    std::vector<double> operands[] = {{in.q.begin(), in.q.end()},
                                      {in.k.begin(), in.k.end()},
                                      {in.v.begin(), in.v.end()},
                                      {extras.bias.begin(), extras.bias.end()}};
    const auto value = [&] {
      const Forward forward = forward_of(s, extras, operands[0], operands[1], operands[2], operands[3]);
      double sum = 0;
      for (size_t i = 0; i < forward.o.size(); ++i) sum += forward.o[i] * in.d_o[i];
      return sum;
    };
    const Expected* const gradients[] = {&found.dq, &found.dk, &found.dv, &found.dbias};
    for (size_t which = 0; which < 4; ++which) {
      for (size_t i = 0; i < operands[which].size(); ++i) {
        const double step = 1e-4, before = operands[which][i];
        operands[which][i] = before + step;
        const double above = value();
        operands[which][i] = before - step;
        const double below = value();
        operands[which][i] = before;
        // The difference's third derivative, times step^2 / 6, is below 1e-6; o and lse are rounded to f32, which the
        // bound does not know: 2^-23 of products of at most 4.
        EXPECT_NEAR(gradients[which]->value[i], (above - below) / (2 * step), gradients[which]->bound[i] + 3e-6)
            << "operand " << which << " element " << i;
      }
    }
  }
}

class AttentionBackwardCalls : public OnBackend {
 protected:
  // 2 x 4 heads with 3 rows and 5 keys, head_dim 8.
  tuff_attention_backward_desc desc() {
    tuff_attention_backward_desc d{};
    d.struct_size = sizeof d;
    d.dtype = TUFF_F32;
    d.batch = 2, d.heads = 4, d.seq_q = 3, d.seq_kv = 5, d.head_dim = 8;
    d.q = d.k = d.v = d.o = d.d_o = d.lse = in_;
    d.dq = dq_, d.dk = dk_, d.dv = dv_;
    return d;
  }
  Tensor in_{context(), std::vector<float>(400, 0.5f)}, dq_{context(), 400}, dk_{context(), 400}, dv_{context(), 400},
      dbias_{context(), 400};
};

TEST_P(AttentionBackwardCalls, RefuseWhatIsWrong) {
  const auto wrong = [&](auto change, const char* word, tuff_status status = kArgument) {
    tuff_attention_backward_desc d = desc();
    change(d);
    EXPECT_FAILS(tuff_attention_backward(context(), &d), status, "tuff_attention_backward", word);
  };
  wrong([](auto& d) { d.dtype = TUFF_F64; }, "f64", TUFF_ERROR_UNSUPPORTED);
  wrong([](auto& d) { d.dtype = 77; }, "dtype");
  wrong([](auto& d) { d.causal = 7; }, "causal");
  wrong([](auto& d) { d.seq_q = 0; }, "seq_q");
  wrong([](auto& d) { d.seq_kv = 0; }, "seq_kv");
  wrong([](auto& d) { d.head_dim = 0; }, "head_dim");
  wrong([](auto& d) { d.head_dim = 1025; }, "head_dim", TUFF_ERROR_UNSUPPORTED);
  wrong([](auto& d) { d.head_dim_v = 1025; }, "head_dim_v", TUFF_ERROR_UNSUPPORTED);
  wrong([](auto& d) { d.kv_heads = 3; }, "kv_heads");
  wrong([](auto& d) { d.scale = -1; }, "scale");
  wrong([](auto& d) { d.softcap = NAN; }, "softcap");
  wrong([](auto& d) { d.bias_type = TUFF_F16; }, "bias_type");
  wrong([](auto& d) { d.dq = d.dk = d.dv = 0; }, "dq");
  wrong([&](auto& d) { d.dbias = dbias_; }, "bias is TUFF_NULL_HANDLE");
  const auto wrong_bias = [&](auto change, const char* word) {
    wrong(
        [&](auto& d) {
          d.bias = d.q, d.bias_strides[1] = 15, d.bias_strides[2] = 5, d.dbias = dbias_;
          change(d);
        },
        word);
  };
  wrong_bias([](auto& d) { d.dbias_strides[2] = 4; }, "rows of dbias overlap");
  wrong_bias([](auto& d) { d.dbias_strides[1] = 300; }, "dbias");
  wrong_bias([](auto& d) { d.dbias_strides[1] = ~uint64_t{0}; }, "dbias");
  wrong_bias([](auto& d) { d.bias_strides[1] = 5; }, "rows of dbias overlap");
  wrong_bias([](auto& d) { d.dbias = d.bias; }, "dbias");
  wrong_bias([](auto& d) { d.dbias = d.dq; }, "dq");
  using Desc = tuff_attention_backward_desc;
  const std::pair<tuff_buffer Desc::*, const char*> needed[] = {
      {&Desc::q, "q"}, {&Desc::k, "k"}, {&Desc::v, "v"}, {&Desc::o, "o"}, {&Desc::lse, "lse"}, {&Desc::d_o, "d_o"}};
  for (const auto& [handle, name] : needed) {
    wrong([at = handle](auto& d) { d.*at = 0; }, name, TUFF_ERROR_INVALID_HANDLE);
  }
  const OwnBuffer one(context(), 4);
  wrong([&](auto& d) { d.lse = one; }, "lse");
  wrong([&](auto& d) { d.o = one; }, "o");
  wrong([&](auto& d) { d.d_o = one; }, "d_o");
  wrong([&](auto& d) { d.dv = one; }, "dv");
  wrong([&](auto& d) { d.kv_lengths = one; }, "kv_lengths");
  wrong([](auto& d) { d.q_strides[1] = 1000; }, "q");
  wrong([](auto& d) { d.d_o_strides[0] = 1000; }, "d_o");
  wrong([](auto& d) { d.dk_strides[2] = 1000; }, "dk");
  wrong([](auto& d) { d.dq_strides[0] = ~uint64_t{0}; }, "dq");
  wrong([](auto& d) { d.dq_strides[2] = 7; }, "dq_strides");
  wrong([](auto& d) { d.dk_strides[1] = 16; }, "dk_strides");
  wrong([](auto& d) { d.dv_strides[0] = 8; }, "dv_strides");
  wrong([](auto& d) { d.mask = d.q, d.mask_strides[0] = 4000; }, "mask");
  // Not even in place: a row's gradient is written while other workgroups still read it.
  wrong([](auto& d) { d.q = d.dq; }, "dq");
  wrong([](auto& d) { d.k = d.dk; }, "dk");
  wrong([](auto& d) { d.d_o = d.dq; }, "dq");
  wrong([](auto& d) { d.dq = d.dv; }, "dv");
  wrong([](auto& d) { d.lse = d.dv; }, "dv");
  wrong([](auto& d) { d.bias = d.dk; }, "dk");
  wrong([](auto& d) { d.q_lengths = d.dq; }, "dq");
  for (const Tensor* out : {&dq_, &dk_, &dv_, &dbias_}) out->expect_poisoned();
  in_.expect_unchanged(std::vector<float>(400, 0.5f));
}

TEST_P(AttentionBackwardCalls, NothingToDo) {
  for (int which : {0, 1}) {
    tuff_attention_backward_desc d = desc();
    (which == 0 ? d.batch : d.heads) = 0;
    d.q = d.k = d.v = d.o = d.d_o = d.lse = d.dq = d.dk = d.dv = 0;
    EXPECT_OK(tuff_attention_backward(context(), &d));
  }
  dq_.expect_poisoned();
}

// Of no pairs a bias that all share has a gradient of 0, and one of each batch element (or head) has none.
TEST_P(AttentionBackwardCalls, NoPairsHaveNoSlopes) {
  for (int which : {0, 1}) {
    for (const bool shared : {true, false}) {
      SCOPED_TRACE(testing::Message() << which << shared);
      const Tensor bias(context(), std::vector<float>(60, 0.5f)), dbias(context(), 60);
      tuff_attention_backward_desc d = desc();
      (which == 0 ? d.batch : d.heads) = 0;
      d.q = d.k = d.v = d.o = d.d_o = d.lse = d.dq = d.dk = d.dv = 0;
      d.bias = bias, d.dbias = dbias, d.bias_strides[2] = 5;
      if (!shared) d.bias_strides[which] = 15;
      EXPECT_OK(tuff_attention_backward(context(), &d));
      if (!shared) {
        dbias.expect_poisoned();
        continue;
      }
      const std::vector<float> found = dbias.read();
      for (size_t i = 0; i < 15; ++i) EXPECT_EQ(found[i], 0) << i;
      for (size_t i = 15; i < 60; ++i) EXPECT_TRUE(std::isnan(found[i])) << i;
    }
  }
}

TEST_P(AttentionBackwardCalls, WithoutHeadsLengthsAreCheckedAllTheSame) {
  const Tensor bias(context(), std::vector<float>(15, 0.5f));
  const OwnBuffer one(context(), 4);
  tuff_attention_backward_desc d = desc();
  d.heads = 0, d.dq = d.dk = d.dv = 0;
  d.bias = bias, d.dbias = dbias_, d.bias_strides[2] = 5;
  for (const auto& [lengths, name] : {std::pair{&d.q_lengths, "q_lengths"}, {&d.kv_lengths, "kv_lengths"}}) {
    for (const tuff_buffer wrong : {static_cast<tuff_buffer>(one), static_cast<tuff_buffer>(dbias_)}) {
      *lengths = wrong;
      EXPECT_FAILS(tuff_attention_backward(context(), &d), kArgument, "tuff_attention_backward", name);
    }
    *lengths = 0;
  }
  dbias_.expect_poisoned();
}

// What is masked may hold anything: keys and values beyond a length, rows beyond one, and masked keys.
TEST_P(AttentionBackwardCalls, MaskedNaNsStayHidden) {
  for (const int32_t dtype : {TUFF_F32, TUFF_F16}) {
    for (const uint64_t size : {35u, 64u}) {
      SCOPED_TRACE(testing::Message() << "type " << dtype << ", " << size << " keys");
      AttentionShape s{.seq_q = size, .seq_kv = size, .head_dim = 16, .dtype = dtype};
      s.lengths = true, s.mask = true, s.same = Same::all;
      AttentionExtras extras{.mask = std::vector<unsigned char>(size, 1), .q_lengths = {20}, .kv_lengths = {30}};
      extras.mask[7] = extras.mask[8] = 0;
      Inputs in = inputs_of(s, extras);
      const auto spoil = [&](std::vector<float>& x, uint64_t row) {
        std::fill_n(x.begin() + static_cast<ptrdiff_t>(row * s.head_dim), s.head_dim, NAN);
      };
      for (const uint64_t key : {7u, 8u, 30u, 34u}) spoil(in.k, key), spoil(in.v, key);
      for (const uint64_t row : {20u, 34u}) spoil(in.q, row), spoil(in.d_o, row), in.lse[row] = NAN;
      run(context(), s, extras, in);
    }
  }
}

// The same where a kernel has tiles in 16 bits, with a bias of -infinity too, and without weights in a row.
TEST_P(AttentionBackwardCalls, MaskedNaNsStayHiddenInTiles) {
  for (const int32_t dtype : {TUFF_F16, TUFF_BF16}) {
    SCOPED_TRACE(testing::Message() << "type " << dtype);
    AttentionShape s{.seq_q = 140, .seq_kv = 208, .head_dim = 64, .dtype = dtype};
    s.bias_type = dtype, s.mask = true;
    AttentionExtras extras = attention_extras(s);
    extras.mask.assign(extras.mask.size(), 1);
    for (uint64_t row = 0; row < s.seq_q; ++row) {
      extras.bias[row * s.seq_kv + 60] = extras.bias[row * s.seq_kv + 207] = -INFINITY;
      extras.mask[row * s.seq_kv + 61] = extras.mask[row * s.seq_kv + 150] = 0;
    }
    std::fill_n(extras.mask.begin() + 100 * 208, 208, 0);
    Inputs in = inputs_of(s, extras);
    const auto spoil = [&](std::vector<float>& x, uint64_t row, float with) {
      std::fill_n(x.begin() + static_cast<ptrdiff_t>(row * s.head_dim), s.head_dim, with);
    };
    for (const uint64_t key : {60u, 61u, 150u, 207u}) spoil(in.k, key, NAN), spoil(in.v, key, INFINITY);
    spoil(in.q, 100, INFINITY), spoil(in.d_o, 100, NAN);
    for (const float x : run(context(), s, extras, in, {.dbias = true})) ASSERT_TRUE(std::isfinite(x));
  }
}

// The lowest finite number as a bias: of a key, which then counts for nothing, and of all keys of a row.
TEST_P(AttentionBackwardCalls, LowestBiasInTiles) {
  AttentionShape s{.seq_q = 70, .seq_kv = 96, .head_dim = 32, .dtype = TUFF_F16};
  s.bias_type = TUFF_F16;
  AttentionExtras extras = attention_extras(s);
  for (uint64_t row = 0; row < s.seq_q; ++row) extras.bias[row * s.seq_kv + 7] = -65504;
  std::fill_n(extras.bias.begin() + 50 * 96, 96, -65504.0f);
  for (const float x : run(context(), s, extras, inputs_of(s, extras))) ASSERT_TRUE(std::isfinite(x));
}

// A NaN in a row reaches that row's dq and the keys that it sees, and nothing else.
TEST_P(AttentionBackwardCalls, NaNsReachWhatTheyTouch) {
  const AttentionShape s{.seq_q = 40, .seq_kv = 40, .head_dim = 4, .causal = kTopLeft};
  Inputs in = inputs_of(s, {});
  std::fill_n(in.d_o.begin() + 20 * 4, 4, NAN);
  const std::vector<float> all = run(context(), s, {}, in);
  for (uint64_t row = 0; row < 40; ++row) {
    EXPECT_EQ(std::isnan(all[row * 4]), row == 20) << "dq " << row;
    EXPECT_EQ(std::isnan(all[(40 + row) * 4]), row <= 20) << "dk " << row;
    EXPECT_EQ(std::isnan(all[(80 + row) * 4]), row <= 20) << "dv " << row;
  }
}

// Slopes that f16 does not hold: far above its range, and below. The gradients are in range.
TEST_P(AttentionBackwardCalls, SlopesBeyondTheRangeOfHalves) {
  const AttentionShape s{.heads = 2, .seq_q = 130, .seq_kv = 140, .head_dim = 64, .dtype = TUFF_F16};
  struct Factors {
    float d_o, v, q_and_k, lse;
  };
  // Weights of 1 and slopes of some 2e5; weights of 1 / 140 and slopes of some 1e-6.
  for (const Factors& by : {Factors{1000, 100, 0x1p-5f, -10}, Factors{0x1p-14f, 1, 1, std::log(140.0f)}}) {
    SCOPED_TRACE(by.d_o);
    Inputs in = inputs_of(s, {});
    const auto multiply = [&](std::vector<float>& x, float factor) {
      for (float& one : x) one *= factor;
      x = rounded(s.dtype, x);
    };
    multiply(in.d_o, by.d_o), multiply(in.v, by.v), multiply(in.q, by.q_and_k), multiply(in.k, by.q_and_k);
    for (float& x : in.lse) x = by.lse;
    for (const float x : run(context(), s, {}, in)) ASSERT_TRUE(std::isfinite(x));
  }
}

// The same where a kernel has tiles in 16 bits: rows and keys that lengths hide, a row that some keys of its tile do
// not see, and a key that some rows of its tile do not see.
TEST_P(AttentionBackwardCalls, NaNsInTilesReachWhatTheyTouch) {
  for (const int32_t dtype : {TUFF_F16, TUFF_BF16}) {
    SCOPED_TRACE(testing::Message() << "type " << dtype);
    AttentionShape s{.seq_q = 200, .seq_kv = 210, .head_dim = 64, .causal = kTopLeft, .dtype = dtype};
    s.lengths = true;
    const AttentionExtras extras{.q_lengths = {150}, .kv_lengths = {170}};
    const auto spoil = [&](std::vector<float>& x, uint64_t row, float with) {
      std::fill_n(x.begin() + static_cast<ptrdiff_t>(row * s.head_dim), s.head_dim, with);
    };
    Inputs hidden = inputs_of(s, extras);
    for (const uint64_t key : {150u, 169u, 170u, 209u}) spoil(hidden.k, key, NAN), spoil(hidden.v, key, INFINITY);
    for (const uint64_t row : {150u, 199u}) {
      spoil(hidden.q, row, INFINITY), spoil(hidden.d_o, row, NAN), hidden.lse[row] = NAN;
    }
    std::vector<float> all = run(context(), s, extras, hidden);
    const auto unspoilt = [&](uint64_t first, uint64_t rows) {  // of all gradients' rows
      for (uint64_t i = first * 64; i < (first + rows) * 64; ++i) ASSERT_TRUE(std::isfinite(all[i])) << i;
    };
    const uint64_t keys = 200, values = 410;  // where the rows of dk and dv are
    unspoilt(0, 200), unspoilt(keys, 150), unspoilt(values, 150);

    Inputs in = inputs_of(s, extras);
    spoil(in.d_o, 100, NAN);
    all = run(context(), s, extras, in);
    unspoilt(0, 100), unspoilt(101, 99), unspoilt(keys + 101, 109), unspoilt(values + 101, 109);
    for (uint64_t i = 0; i < 64; ++i) {
      for (const uint64_t row : {uint64_t{100}, keys, keys + 100, values + 64, values + 100}) {
        EXPECT_TRUE(std::isnan(all[row * 64 + i])) << row;
      }
    }
    in = inputs_of(s, extras);
    spoil(in.k, 60, NAN);
    all = run(context(), s, extras, in);
    unspoilt(0, 60), unspoilt(150, 50), unspoilt(keys, 60), unspoilt(keys + 61, 149), unspoilt(values, 60);
    unspoilt(values + 61, 149);
    for (const uint64_t row : {uint64_t{60}, uint64_t{149}, keys + 60, values + 60}) {
      EXPECT_TRUE(std::isnan(all[row * 64])) << row;
    }
  }
}

// A weight is at most 1, although lse is below the scores.
TEST_P(AttentionBackwardCalls, WrongSumsStayFinite) {
  const AttentionShape shapes[] = {{.seq_q = 9, .seq_kv = 11, .head_dim = 8},
                                   {.seq_q = 90, .seq_kv = 110, .head_dim = 64, .dtype = TUFF_F16}};
  for (const AttentionShape& s : shapes) {
    Inputs in = inputs_of(s, {});
    for (float& x : in.lse) x = -200;
    for (const float x : run(context(), s, {}, in)) EXPECT_TRUE(std::isfinite(x));
  }
}

TEST_P(AttentionBackwardCalls, SameBitsEachTime) {
  for (const int32_t dtype : {TUFF_F32, TUFF_F16}) {
    const AttentionShape s{.batch = 2,
                           .heads = 4,
                           .seq_q = 70,
                           .seq_kv = 90,
                           .head_dim = 48,
                           .causal = kBottomRight,
                           .dtype = dtype,
                           .kv_heads = 2};
    const Inputs in = inputs_of(s, {});
    const std::vector<float> once = run(context(), s, {}, in);
    expect_same_bits(run(context(), s, {}, in), once);
  }
}

// With o and lse as tuff_attention_ex() writes them.
TEST_P(AttentionBackwardCalls, AfterTheForwardPass) {
  const AttentionShape s{.heads = 2, .seq_q = 20, .seq_kv = 30, .head_dim = 16, .causal = kBottomRight};
  Inputs in = inputs_of(s, {});
  const Tensor q(context(), in.q), k(context(), in.k), v(context(), in.v), o(context(), s.results()),
      lse(context(), in.lse.size());
  tuff_attention_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = TUFF_F32, desc.q = q, desc.k = k, desc.v = v, desc.o = o, desc.lse = lse;
  desc.batch = 1, desc.heads = 2, desc.seq_q = 20, desc.seq_kv = 30, desc.head_dim = 16, desc.causal = kBottomRight;
  ASSERT_OK(tuff_attention_ex(context(), &desc));
  in.o = o.read(), in.lse = lse.read();
  run(context(), s, {}, in);
}
TUFF_ON_BACKENDS(AttentionBackwardCalls);

}  // namespace
}  // namespace tuff_test::attention_backward_test
