#include "support/attention_problem.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "support/bounds.hpp"

namespace tuff_test {

float AttentionShape::scale_used() const {
  return static_cast<float>(scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(head_dim)));
}

uint64_t AttentionShape::visible(uint64_t query) const {
  if (causal == TUFF_CAUSAL_NONE) return seq_kv;
  if (causal == TUFF_CAUSAL_TOP_LEFT) return std::min(seq_kv, query + 1);
  return query + seq_kv + 1 <= seq_q ? 0 : std::min(seq_kv, query + seq_kv + 1 - seq_q);
}

std::string AttentionShape::name() const {
  std::string result = "b" + std::to_string(batch) + "_h" + std::to_string(heads) + "_q" + std::to_string(seq_q) +
                       "_kv" + std::to_string(seq_kv) + "_d" + std::to_string(head_dim);
  if (causal == TUFF_CAUSAL_TOP_LEFT) result += "_topleft";
  if (causal == TUFF_CAUSAL_BOTTOM_RIGHT) result += "_bottomright";
  if (scale != 0) result += "_scaled";
  if (spread != 1) result += "_spread" + std::to_string(static_cast<int>(spread));
  if (shift != 0) result += "_shift" + std::to_string(shift);
  return result;
}

double AttentionShape::work() const {
  return static_cast<double>(batch * heads * head_dim) * static_cast<double>(seq_q) * static_cast<double>(seq_kv) * 2 +
         static_cast<double>(2 * queries() + 2 * keys());
}

// The bound. A score s_j in f32 is off by at most d_j = gamma_{d+2} scale sum |q k| (products, sums, the
// scaling and what remains of it). Its weight exp(s_j - m) then is the true one times e^{t} with
//   |t| <= d_j + u |s_j - m| + exp's own error + that of rescaling,
// where m cancels between numerator and denominator. Rescaling: an online softmax multiplies what it has by
// exp(m_old - m_new) once for each block of at least eight keys; the arguments add up to at most the range
// of the scores. With e = max t, O' = sum w e^{t_j} v / sum w e^{t_j} is within
//   sum p_j |v_j| (e^{t_j + e} - 1)
// of O. The two sums over keys and the division add gamma_{2 n + 2} sum p |v|. Weights below FLT_MIN may
// vanish: FLT_MIN sum |v|.
Expected solve_attention(const AttentionShape& s, const std::vector<float>& q, const std::vector<float>& k,
                         const std::vector<float>& v) {
  const uint64_t d = s.head_dim;
  const double scale = s.scale_used();
  Expected expected;
  expected.value.assign(s.queries(), 0);
  expected.bound.assign(s.queries(), 0);
  std::vector<double> score(s.seq_kv), error(s.seq_kv), weight(s.seq_kv);
  for (uint64_t head = 0; head < s.batch * s.heads; ++head) {
    for (uint64_t i = 0; i < s.seq_q; ++i) {
      const uint64_t keys = s.visible(i);
      const float* const query = &q[(head * s.seq_q + i) * d];
      double* const out = &expected.value[(head * s.seq_q + i) * d];
      double* const bound = &expected.bound[(head * s.seq_q + i) * d];
      if (keys == 0) continue;  // zero, exactly
      double highest = -INFINITY, lowest = INFINITY;
      bool invalid = false;
      for (uint64_t j = 0; j < keys; ++j) {
        const float* const key = &k[(head * s.seq_kv + j) * d];
        double sum = 0, size = 0;
        for (uint64_t x = 0; x < d; ++x) {
          const double term = static_cast<double>(query[x]) * key[x];
          sum += term, size += std::fabs(term);
        }
        score[j] = scale * sum;
        error[j] = gamma(static_cast<double>(d) + 2) * scale * size;
        invalid = invalid || std::isnan(score[j]);
        highest = std::max(highest, score[j]), lowest = std::min(lowest, score[j]);
      }
      if (invalid) {
        std::fill_n(out, d, NAN);
        continue;
      }
      const double range = highest - lowest, blocks = std::ceil(static_cast<double>(keys) / 8);
      const double rescaling = blocks * exp_error(0) + 4 * kU * range + blocks * kU;
      double total = 0, largest = 0;
      for (uint64_t j = 0; j < keys; ++j) {
        weight[j] = std::exp(score[j] - highest);
        total += weight[j];
        error[j] += kU * (highest - score[j]) + exp_error(highest - score[j]) + rescaling;
        largest = std::max(largest, error[j]);
      }
      for (uint64_t j = 0; j < keys; ++j) {
        const double p = weight[j] / total;
        const double allowed =
            p * (std::expm1(error[j] + largest) + gamma(2 * static_cast<double>(keys) + 2)) + FLT_MIN;
        const float* const value = &v[(head * s.seq_kv + j) * d];
        for (uint64_t x = 0; x < d; ++x) {
          out[x] += p * value[x];
          bound[x] += allowed * std::fabs(value[x]);
        }
      }
    }
  }
  return expected;
}

tuff_status call_attention(tuff_stream stream, const AttentionShape& s, tuff_buffer q, tuff_buffer k, tuff_buffer v,
                           tuff_buffer o) {
  return tuff_attention(stream, TUFF_F32, q, k, v, o, s.batch, s.heads, s.seq_q, s.seq_kv, s.head_dim, s.scale_used(),
                        s.causal);
}

void run_attention(tuff_context context, const AttentionShape& shape) {
  const std::vector<float> hq = uniforms(shape.queries(), -shape.spread, shape.spread, 1),
                           hk = uniforms(shape.keys(), -shape.spread, shape.spread, 2), hv = spreads(shape.keys(), 3);
  const Tensor q(context, hq, shape.shift), k(context, hk, shape.shift), v(context, hv, shape.shift),
      o(context, shape.queries(), shape.shift);
  ASSERT_OK(call_attention(context, shape, q, k, v, o));
  expect_matches(o.read(), solve_attention(shape, hq, hk, hv));
  q.expect_unchanged(hq);
  k.expect_unchanged(hk);
  v.expect_unchanged(hv);
}

}  // namespace tuff_test
