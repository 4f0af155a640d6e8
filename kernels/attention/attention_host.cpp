// The reference: scores of one query row in double, softmax with the row maximum subtracted, weighted sum.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/attention/attention.hpp"
#include "tuff/tuff.h"

namespace tuff {
namespace {

// How many keys, from key 0 on, query row i may see.
uint64_t visible_keys(const AttentionArgs& args, uint64_t i) {
  switch (args.causal) {
    case TUFF_CAUSAL_TOP_LEFT: return std::min(args.seq_kv, i + 1);
    case TUFF_CAUSAL_BOTTOM_RIGHT: {  // key <= i + seq_kv - seq_q
      const uint64_t limit = i + 1 + args.seq_kv;
      return limit <= args.seq_q ? 0 : std::min(args.seq_kv, limit - args.seq_q);
    }
    default: return args.seq_kv;
  }
}

}  // namespace

void host_attention(const AttentionArgs& args) {
  if (args.batch == 0 || args.heads == 0) return;
  const uint64_t d = args.head_dim;
  const float* q = args.q->host<float>();
  const float* k = args.k->host<float>();
  const float* v = args.v->host<float>();
  float* o = args.o->host<float>();
  std::vector<double> weights(args.seq_kv), sums(d);

  for (uint64_t head = 0; head < args.batch * args.heads; ++head) {
    for (uint64_t i = 0; i < args.seq_q; ++i) {
      const float* query = q + (head * args.seq_q + i) * d;
      float* out = o + (head * args.seq_q + i) * d;
      const uint64_t keys = visible_keys(args, i);
      double maximum = -std::numeric_limits<double>::infinity();
      for (uint64_t j = 0; j < keys; ++j) {
        const float* key = k + (head * args.seq_kv + j) * d;
        double dot = 0;
        for (uint64_t e = 0; e < d; ++e) dot += static_cast<double>(query[e]) * static_cast<double>(key[e]);
        // A product of infinities is beyond what can be ordered; a finite limit keeps inf - inf out of the row.
        weights[j] = std::isnan(dot) ? dot : std::clamp(dot * args.scale, -1e300, 1e300);
        maximum = std::max(maximum, weights[j]);
      }
      double total = 0;
      std::fill(sums.begin(), sums.end(), 0.0);
      for (uint64_t j = 0; j < keys; ++j) {
        const double weight = std::exp(weights[j] - maximum);
        const float* value = v + (head * args.seq_kv + j) * d;
        total += weight;
        for (uint64_t e = 0; e < d; ++e) sums[e] += weight * static_cast<double>(value[e]);
      }
      for (uint64_t e = 0; e < d; ++e) out[e] = keys == 0 ? 0.0f : static_cast<float>(sums[e] / total);
    }
  }
}

}  // namespace tuff
