#include "support/attention_problem.hpp"

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <cstring>

#include "support/bounds.hpp"
#include "support/stored.hpp"

namespace tuff_test {

RowPlaces row_places(Layout layout, uint64_t batch, uint64_t heads, uint64_t rows, uint64_t dim) {
  RowPlaces s{};
  switch (layout) {
    case Layout::heads_first: s.of = {heads * rows * dim, rows * dim, dim}; break;
    case Layout::rows_first: s.of = {rows * heads * dim, dim, heads * dim}; break;
    case Layout::roomy: {
      const uint64_t row = dim + 4, head = (rows + 3) * row;
      s.of = {heads * head + 8, head, row};
      break;
    }
  }
  if (batch * heads != 0) s.count = s.at(batch - 1, heads - 1, rows - 1) + dim;
  return s;
}

std::vector<float> placed_rows(const RowPlaces& s, uint64_t batch, uint64_t heads, uint64_t rows, uint64_t dim,
                               const std::vector<float>& values) {
  std::vector<float> result(s.count, from_bits(kGuard));
  size_t from = 0;
  for (uint64_t b = 0; b < batch; ++b) {
    for (uint64_t h = 0; h < heads; ++h) {
      for (uint64_t i = 0; i < rows; ++i, from += dim) {
        std::copy_n(values.begin() + static_cast<ptrdiff_t>(from), dim,
                    result.begin() + static_cast<ptrdiff_t>(s.at(b, h, i)));
      }
    }
  }
  return result;
}

std::vector<float> gathered_rows(const RowPlaces& s, uint64_t batch, uint64_t heads, uint64_t rows, uint64_t dim,
                                 const std::vector<float>& raw) {
  std::vector<float> result, between = raw;
  for (uint64_t row = 0; row < batch * heads * rows; ++row) {
    const auto from = static_cast<ptrdiff_t>(s.at(row / (heads * rows), row / rows % heads, row % rows));
    result.insert(result.end(), raw.begin() + from, raw.begin() + from + static_cast<ptrdiff_t>(dim));
    std::fill_n(between.begin() + from, dim, from_bits(kGuard));
  }
  // A guard rounded to 16 bits is some NaN; the guards must have exactly the bits that were stored.
  expect_same_bits(between, std::vector<float>(between.size(), from_bits(kGuard)));
  return result;
}

namespace {

// The strides of bias and mask: 0 along dimensions that share one.
std::array<uint64_t, 3> extra_strides(const AttentionShape& s) {
  const bool b = s.same != Same::batches && s.same != Same::all, h = s.same != Same::heads && s.same != Same::all,
             q = s.same != Same::queries && s.same != Same::all;
  const uint64_t row = s.seq_kv, head = row * (q ? s.seq_q : 1), batch = head * (h ? s.heads : 1);
  return {b ? batch : 0, h ? head : 0, q ? row : 0};
}
uint64_t extra_count(const AttentionShape& s) {
  const auto strides = extra_strides(s);
  return (s.batch - 1) * strides[0] + (s.heads - 1) * strides[1] + (s.seq_q - 1) * strides[2] + s.seq_kv;
}

}  // namespace

uint64_t attention_extra_at(const AttentionShape& s, uint64_t b, uint64_t h, uint64_t i, uint64_t j) {
  const auto strides = extra_strides(s);
  return b * strides[0] + h * strides[1] + i * strides[2] + j;
}

bool attention_sees(const AttentionShape& s, const AttentionExtras& x, uint64_t b, uint64_t h, uint64_t i, uint64_t j) {
  const auto length = [&](const std::vector<int32_t>& lengths, uint64_t most) {
    if (lengths.empty() || lengths[b] > static_cast<int64_t>(most)) return static_cast<int64_t>(most);
    return std::max<int64_t>(lengths[b], 0);
  };
  const int64_t rows = length(x.q_lengths, s.seq_q), keys = length(x.kv_lengths, s.seq_kv);
  const auto row = static_cast<int64_t>(i), key = static_cast<int64_t>(j);
  const int64_t place = row + (s.causal == TUFF_CAUSAL_BOTTOM_RIGHT ? keys - rows : 0);
  if (row >= rows || key >= keys) return false;
  if (s.causal != TUFF_CAUSAL_NONE && key > place) return false;
  if (s.left != 0 && key <= place - static_cast<int64_t>(s.left)) return false;
  if (s.right != 0 && key >= place + static_cast<int64_t>(s.right)) return false;
  if (!x.mask.empty() && x.mask[attention_extra_at(s, b, h, i, j)] == 0) return false;
  return x.bias.empty() || x.bias[attention_extra_at(s, b, h, i, j)] != -INFINITY;
}

float AttentionShape::scale_used() const {
  return static_cast<float>(scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(head_dim)));
}

bool AttentionShape::plain() const {
  return (kv_heads == 0 || kv_heads == heads) && (head_dim_v == 0 || head_dim_v == head_dim) &&
         layout == Layout::heads_first && softcap == 0 && bias_type == 0 && !mask && left == 0 && right == 0 &&
         !lengths && !lse;
}

std::string AttentionShape::name() const {
  static constexpr const char* kSame[] = {"", "_samebatch", "_samehead", "_samequery", "_sameall"};
  std::string result = dtype == TUFF_F32 ? "" : name_of(dtype) + std::string("_");
  result += "b" + std::to_string(batch) + "_h" + std::to_string(heads) + "_q" + std::to_string(seq_q) + "_kv" +
            std::to_string(seq_kv) + "_d" + std::to_string(head_dim);
  if (kv_heads != 0) result += "_kvheads" + std::to_string(kv_heads);
  if (head_dim_v != 0) result += "_dv" + std::to_string(head_dim_v);
  if (layout != Layout::heads_first) result += layout == Layout::rows_first ? "_rowsfirst" : "_roomy";
  if (causal == TUFF_CAUSAL_TOP_LEFT) result += "_topleft";
  if (causal == TUFF_CAUSAL_BOTTOM_RIGHT) result += "_bottomright";
  if (scale != 0) result += "_scaled";
  if (spread != 1) result += "_spread" + std::to_string(static_cast<int>(spread));
  if (softcap != 0) result += "_cap";
  if (bias_type != 0) result += std::string("_bias") + name_of(bias_type);
  if (mask) result += "_mask";
  result += kSame[static_cast<int>(same)];
  if (left != 0) result += "_left" + std::to_string(left);
  if (right != 0) result += "_right" + std::to_string(right);
  if (lengths) result += "_lengths";
  if (lse) result += "_lse";
  if (shift != 0) result += "_shift" + std::to_string(shift);
  return result;
}

double AttentionShape::work() const {
  return static_cast<double>(batch * heads * (head_dim + dim_v())) * static_cast<double>(seq_q) *
             static_cast<double>(seq_kv) +
         static_cast<double>(queries() + keys() + values() + results());
}

AttentionExtras attention_extras(const AttentionShape& s) {
  AttentionExtras extras;
  if (s.bias_type != 0) {
    extras.bias = rounded(s.bias_type, uniforms(extra_count(s), -2, 2, 4));
    for (size_t i = 0; i < extras.bias.size(); i += 7) extras.bias[i] = -INFINITY;
  }
  if (s.mask) {
    Random random(5);
    extras.mask.resize(extra_count(s));
    for (unsigned char& byte : extras.mask)
      byte = static_cast<unsigned char>(random.next() % 3 == 0 ? 0 : random.next() | 1);
    // One row that sees nothing, if each row has its own mask.
    if (extra_strides(s)[2] != 0 && s.seq_q > 2)
      std::fill_n(extras.mask.begin() + static_cast<ptrdiff_t>(s.seq_kv), s.seq_kv, 0);
  }
  if (s.lengths) {
    // All rows or keys, more than all, some, one, none, fewer than none.
    const int64_t q = static_cast<int64_t>(s.seq_q), kv = static_cast<int64_t>(s.seq_kv);
    const int64_t of_q[] = {q, q / 2 + 1, q + 7, q, 1, -3},
                  of_kv[] = {kv / 2 + 1, kv, kv + 1'000'000, 0, kv / 3 + 1, kv};
    for (uint64_t b = 0; b < s.batch; ++b) {
      extras.q_lengths.push_back(static_cast<int32_t>(of_q[b % 6]));
      extras.kv_lengths.push_back(static_cast<int32_t>(of_kv[b % 6]));
    }
  }
  return extras;
}

// The bound. A score s_j in f32 is off by at most d_j = gamma_{d+2} scale sum |q k| (products, sums, and the scaling
// with its own error). Its weight exp(s_j - m) is then the exact one times e^{t} with
//   |t| <= d_j + u |s_j - m| + the error of exp + the error of rescaling,
// where m cancels between numerator and denominator. Rescaling: an online softmax multiplies its running sums by
// exp(m_old - m_new) once for each block of at least eight keys; the arguments add up to at most the range of the
// scores. A separate scaling, the soft cap (whose slope is at most 1; a division, tanh to 4 ULP, a product) and the
// bias (a sum) add their roundings to d_j. With cooperative matrices, weights are rounded to the type of v before the
// second GEMM. With e = max t, O' = sum w e^{t_j} v / sum w e^{t_j} is within
//   sum p_j |v_j| (e^{t_j + e} - 1)
// of O. The two sums over keys and the division add gamma_{2 n + 2} sum p |v|. Weights below FLT_MIN may vanish:
// FLT_MIN sum |v|.
Expected solve_attention(const AttentionShape& s, const std::vector<float>& q, const std::vector<float>& k,
                         const std::vector<float>& v, const AttentionExtras& extras, Expected* lse) {
  const uint64_t d = s.head_dim, dv = s.dim_v(), sharing = s.heads == 0 ? 1 : s.heads / s.heads_of_kv();
  const double scale = s.scale_used(), of_weights = s.dtype == TUFF_F32 ? 0 : unit_roundoff(s.dtype);
  const double vanishing = FLT_MIN + (s.dtype == TUFF_F16 ? 0x1p-25 : 0);
  const double of_stored = s.rounds_stored ? unit_roundoff(s.dtype) : 0;
  const double vanishing_stored = s.rounds_stored && s.dtype == TUFF_F16 ? 0x1p-25 : 0;
  Expected expected;
  expected.value.assign(s.results(), 0);
  expected.bound.assign(s.results(), 0);
  std::vector<double> score(s.seq_kv), error(s.seq_kv), weight(s.seq_kv);
  std::vector<uint64_t> seen;
  for (uint64_t row = 0; row < s.batch * s.heads * s.seq_q; ++row) {
    const uint64_t b = row / (s.heads * s.seq_q), h = row / s.seq_q % s.heads, i = row % s.seq_q;
    const uint64_t kv_row0 = (b * s.heads_of_kv() + h / sharing) * s.seq_kv;
    const float* const query = &q[row * d];
    double* const out = &expected.value[row * dv];
    double* const bound = &expected.bound[row * dv];
    seen.clear();
    for (uint64_t j = 0; j < s.seq_kv; ++j) {
      if (attention_sees(s, extras, b, h, i, j)) seen.push_back(j);
    }
    if (seen.empty()) {  // exactly zero
      if (lse != nullptr) lse->value.push_back(-INFINITY), lse->bound.push_back(0);
      continue;
    }
    double highest = -INFINITY, lowest = INFINITY;
    bool invalid = false;
    for (const uint64_t j : seen) {
      const float* const key = &k[(kv_row0 + j) * d];
      double sum = 0, size = 0, tiny = 0;
      for (uint64_t x = 0; x < d; ++x) {
        const double term = static_cast<double>(query[x]) * key[x];
        sum += term, size += std::fabs(term);
        tiny += vanishing_stored * std::fabs(query[x]);
      }
      score[j] = scale * sum;
      error[j] = (gamma(static_cast<double>(d) + 3) + of_stored) * scale * size + scale * tiny;
      if (s.softcap != 0) {
        error[j] += kU * std::fabs(score[j]);
        score[j] = s.softcap * std::tanh(score[j] / s.softcap);
        error[j] += 10 * kU * std::fabs(score[j]);
      }
      if (!extras.bias.empty()) {
        score[j] += extras.bias[attention_extra_at(s, b, h, i, j)];
        error[j] += kU * std::fabs(score[j]);
      }
      invalid = invalid || std::isnan(score[j]);
      highest = std::max(highest, score[j]), lowest = std::min(lowest, score[j]);
    }
    if (invalid) {
      std::fill_n(out, dv, NAN);
      if (lse != nullptr) lse->value.push_back(NAN), lse->bound.push_back(0);
      continue;
    }
    const double keys = static_cast<double>(seen.size());
    const double range = highest - lowest, blocks = std::ceil(static_cast<double>(s.seq_kv) / 8);
    const double rescaling = blocks * exp_error(0) + 4 * kU * range + blocks * kU;
    double total = 0, largest = 0;
    for (const uint64_t j : seen) {
      weight[j] = std::exp(score[j] - highest);
      total += weight[j];
      error[j] += kU * (highest - score[j]) + exp_error(highest - score[j]) + rescaling;
      largest = std::max(largest, error[j]);
    }
    for (const uint64_t j : seen) {
      const double p = weight[j] / total;
      const double allowed =
          p * (std::expm1(error[j] + largest) + gamma(2 * keys + 2) + of_weights + of_stored) + vanishing;
      const float* const value = &v[(kv_row0 + j) * dv];
      for (uint64_t x = 0; x < dv; ++x) {
        out[x] += p * value[x];
        bound[x] += allowed * std::fabs(value[x]) + p * vanishing_stored;
      }
    }
    if (lse != nullptr) {
      // m + log(total): the error of the sum, log2 to 3 ULP (2^-21 near 1), products and a sum.
      const double result = highest + std::log(total);
      lse->value.push_back(result);
      lse->bound.push_back(largest + std::expm1(gamma(2 * keys + 2)) + 8 * kU * std::log(total) + 0x1p-21 +
                           4 * kU * (std::fabs(highest) + std::fabs(result)));
    }
  }
  return expected;
}

namespace {

Bytes bytes_of(const std::vector<int32_t>& lengths) {
  Bytes result(lengths.size() * 4);
  if (!lengths.empty()) std::memcpy(result.data(), lengths.data(), result.size());
  return result;
}

}  // namespace

// Bias and mask begin where kernels may read 16 bytes at a time, and where they may not.
StoredExtras::StoredExtras(tuff_context context, const AttentionShape& s, const AttentionExtras& extras)
    : strides_(extra_strides(s)),
      bias_type_(s.bias_type),
      has_mask_(s.mask),
      has_q_lengths_(!extras.q_lengths.empty()),
      has_kv_lengths_(!extras.kv_lengths.empty()),
      bias_(context, s.bias_type == 0 ? TUFF_F32 : s.bias_type, extras.bias, s.seq_kv % 16 == 0 ? 16 : 1),
      mask_(context, TUFF_U8, extras.mask, s.seq_kv % 16 == 0 ? 16 : 3),
      q_lengths_(context, TUFF_I32, bytes_of(extras.q_lengths), 1),
      kv_lengths_(context, TUFF_I32, bytes_of(extras.kv_lengths), 2) {}

tuff_status call_attention(tuff_stream stream, const AttentionShape& s, tuff_buffer q, tuff_buffer k, tuff_buffer v,
                           tuff_buffer o) {
  return tuff_attention(stream, s.dtype, q, k, v, o, s.batch, s.heads, s.seq_q, s.seq_kv, s.head_dim, s.scale_used(),
                        s.causal);
}

void run_attention(tuff_context context, const AttentionShape& s) {
  run_attention(context, s, rounded(s.dtype, uniforms(s.queries(), -s.spread, s.spread, 1)),
                rounded(s.dtype, uniforms(s.keys(), -s.spread, s.spread, 2)), rounded(s.dtype, spreads(s.values(), 3)),
                attention_extras(s));
}

void run_attention(tuff_context context, const AttentionShape& s, const std::vector<float>& hq,
                   const std::vector<float>& hk, const std::vector<float>& hv, const AttentionExtras& extras) {
  const uint64_t kv_heads = s.heads_of_kv(), shift = s.shift / size_of(s.dtype);
  const RowPlaces at_q = row_places(s.layout, s.batch, s.heads, s.seq_q, s.head_dim),
                  at_k = row_places(s.layout, s.batch, kv_heads, s.seq_kv, s.head_dim),
                  at_v = row_places(s.layout, s.batch, kv_heads, s.seq_kv, s.dim_v()),
                  at_o = row_places(s.layout, s.batch, s.heads, s.seq_q, s.dim_v());
  const std::vector<float> placed_q = placed_rows(at_q, s.batch, s.heads, s.seq_q, s.head_dim, hq),
                           placed_k = placed_rows(at_k, s.batch, kv_heads, s.seq_kv, s.head_dim, hk),
                           placed_v = placed_rows(at_v, s.batch, kv_heads, s.seq_kv, s.dim_v(), hv);
  const StoredTensor q(context, s.dtype, placed_q, shift), k(context, s.dtype, placed_k, shift),
      v(context, s.dtype, placed_v, shift),
      o(context, s.dtype,
        placed_rows(at_o, s.batch, s.heads, s.seq_q, s.dim_v(), std::vector<float>(s.results(), poison())), shift);
  Expected lse, expected = solve_attention(s, hq, hk, hv, extras, s.lse ? &lse : nullptr);
  add_storage(expected, s.dtype);
  if (s.plain()) {
    ASSERT_OK(call_attention(context, s, q, k, v, o));
  } else {
    tuff_attention_desc desc{};
    desc.struct_size = sizeof desc;
    desc.dtype = s.dtype;
    desc.q = q, desc.k = k, desc.v = v, desc.o = o;
    desc.batch = s.batch, desc.heads = s.heads, desc.seq_q = s.seq_q, desc.seq_kv = s.seq_kv,
    desc.head_dim = s.head_dim;
    desc.scale = s.scale_used();
    desc.causal = s.causal;
    desc.kv_heads = s.kv_heads, desc.head_dim_v = s.head_dim_v;
    if (s.layout != Layout::heads_first) {
      std::copy_n(at_q.of.begin(), 3, desc.q_strides);
      std::copy_n(at_k.of.begin(), 3, desc.k_strides);
      std::copy_n(at_v.of.begin(), 3, desc.v_strides);
      std::copy_n(at_o.of.begin(), 3, desc.o_strides);
    }
    desc.softcap = s.softcap;
    desc.window_left = s.left, desc.window_right = s.right;
    const StoredExtras stored(context, s, extras);
    const Tensor sums(context, s.lse ? s.batch * s.heads * s.seq_q : 0, 4);
    stored.tell(desc);
    if (s.lse) desc.lse = sums;
    ASSERT_OK(tuff_attention_ex(context, &desc));
    if (s.lse) expect_matches(sums.read(), lse);
  }
  expect_matches(gathered_rows(at_o, s.batch, s.heads, s.seq_q, s.dim_v(), o.read()), expected);
  q.expect_unchanged(placed_q);
  k.expect_unchanged(placed_k);
  v.expect_unchanged(placed_v);
}

}  // namespace tuff_test
