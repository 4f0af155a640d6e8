// Reference gradients of attention: the formulas of tuff.h in double, pair by pair of a row and a key.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/attention/attention_backward.hpp"
#include "kernels/attention/attention_host.hpp"
#include "kernels/common/elements.hpp"

namespace tuff {
namespace {

template <typename T>
double dot(const T* x, const T* y, uint64_t size) {
  double sum = 0;
  for (uint64_t e = 0; e < size; ++e) sum += static_cast<double>(x[e]) * static_cast<double>(y[e]);
  return sum;
}

template <typename T>
void add(double* sums, double factor, const T* x, uint64_t size) {
  for (uint64_t e = 0; e < size; ++e) sums[e] += factor * static_cast<double>(x[e]);
}

// Rows of sums to an output, if it is wanted.
template <typename T>
void store(const std::vector<double>& sums, double scale, const Buffer* output, const AttentionStrides& strides,
           uint64_t batch, uint64_t head, uint64_t rows, uint64_t size) {
  if (output == nullptr) return;
  for (uint64_t i = 0; i < rows; ++i) {
    T* out = output->host<T>() + attention::at(strides, batch, head, i);
    for (uint64_t e = 0; e < size; ++e) out[e] = T(scale * sums[i * size + e]);
  }
}

// All of dbias, densely: the number of a row in it.
struct BiasRows {
  explicit BiasRows(const AttentionBackwardArgs& args)
      : batch(args.dbias == nullptr ? 0 : args.bias_batch()), heads(args.bias_heads()), rows(args.bias_rows()) {}
  uint64_t batch, heads, rows;
  uint64_t count() const { return batch * heads * rows; }
  uint64_t at(uint64_t b, uint64_t h, uint64_t i) const {
    return (std::min(b, batch - 1) * heads + std::min(h, heads - 1)) * rows + std::min(i, rows - 1);
  }
};
void store_bias(const AttentionBackwardArgs& args, const BiasRows& of, const std::vector<double>& sums) {
  const uint64_t keys = args.forward.seq_kv;
  with_float_type(args.forward.bias_type, [&]<typename T>(T) {
    for (uint64_t row = 0; row < of.count(); ++row) {
      T* out = args.dbias->host<T>() +
               attention::at(args.dbias_strides, row / of.rows / of.heads, row / of.rows % of.heads, row % of.rows);
      for (uint64_t j = 0; j < keys; ++j) out[j] = T(sums[row * keys + j]);
    }
  });
}

}  // namespace

void host_attention_backward(const AttentionBackwardArgs& args) {
  const AttentionArgs& forward = args.forward;
  const BiasRows of_bias(args);
  std::vector<double> dbias(of_bias.count() * forward.seq_kv);
  if (forward.batch == 0 || forward.heads == 0) return store_bias(args, of_bias, dbias);
  const uint64_t size = forward.head_dim, size_v = forward.head_dim_v, sharing = forward.heads / forward.kv_heads;
  std::vector<double> dq(forward.seq_q * size), dk(forward.seq_kv * size), dv(forward.seq_kv * size_v);
  const auto kv_head = [&]<typename T>(T, uint64_t b, uint64_t kv) {
    std::fill(dk.begin(), dk.end(), 0.0);
    std::fill(dv.begin(), dv.end(), 0.0);
    const uint64_t rows = attention::length(forward.q_lengths, b, forward.seq_q),
                   keys = attention::length(forward.kv_lengths, b, forward.seq_kv);
    for (uint64_t h = kv * sharing; h < (kv + 1) * sharing; ++h) {
      std::fill(dq.begin(), dq.end(), 0.0);
      for (uint64_t i = 0; i < rows; ++i) {
        const double lse = forward.lse->host<float>()[(b * forward.heads + h) * forward.seq_q + i];
        if (lse == -std::numeric_limits<double>::infinity()) continue;  // all scores are -infinity
        const T* query = forward.q->host<T>() + attention::at(forward.q_strides, b, h, i);
        const T* slope = args.d_o->host<T>() + attention::at(args.d_o_strides, b, h, i);
        const double inner = dot(slope, forward.o->host<T>() + attention::at(forward.o_strides, b, h, i), size_v);
        const AttentionKeys seen = attention_keys(forward, i, rows, keys);
        for (uint64_t j = seen.first; j < seen.end; ++j) {
          const T* key = forward.k->host<T>() + attention::at(forward.k_strides, b, kv, j);
          const attention::Score score = attention::score_of(forward, dot(query, key, size), {b, h, i, j});
          if (score.value == -std::numeric_limits<double>::infinity()) continue;
          const double exact = std::exp(score.value - lse), weight = exact > 1 ? 1 : exact;
          const T* value = forward.v->host<T>() + attention::at(forward.v_strides, b, kv, j);
          const double by_biased = weight * (dot(slope, value, size_v) - inner), by_score = by_biased * score.slope;
          if (args.dbias != nullptr) dbias[of_bias.at(b, h, i) * forward.seq_kv + j] += by_biased;
          add(&dv[j * size_v], weight, slope, size_v);
          add(&dk[j * size], by_score, query, size);
          add(&dq[i * size], by_score, key, size);
        }
      }
      store<T>(dq, forward.scale, args.dq, args.dq_strides, b, h, forward.seq_q, size);
    }
    store<T>(dk, forward.scale, args.dk, args.dk_strides, b, kv, forward.seq_kv, size);
    store<T>(dv, 1, args.dv, args.dv_strides, b, kv, forward.seq_kv, size_v);
  };
  with_float_type(forward.dtype, [&](auto type) {
    for (uint64_t b = 0; b < forward.batch; ++b) {
      for (uint64_t kv = 0; kv < forward.kv_heads; ++kv) kv_head(type, b, kv);
    }
  });
  store_bias(args, of_bias, dbias);
}

}  // namespace tuff
