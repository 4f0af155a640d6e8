// Reference attention: scores of one query row in double, softmax with the row maximum subtracted, weighted sum.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "kernels/attention/attention_host.hpp"
#include "kernels/common/elements.hpp"
#include "kernels/quant/quant.hpp"
#include "tuff/tuff.h"

namespace tuff {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double bias_at(const AttentionArgs& args, uint64_t i) {
  double value = 0;
  with_float_type(args.bias_type, [&]<typename T>(T) { value = args.bias->host<T>()[i]; });
  return value;
}

template <typename T>
struct Rows {
  const T* first;
  AttentionStrides strides;
};

// Keys or values as f32, dense, if they are quantised.
struct Dequantised {
  std::vector<float> numbers;
  AttentionStrides strides;
};
Dequantised dequantised(const AttentionArgs& args, const Buffer& from, const AttentionStrides& strides,
                        const AttentionStored& stored, uint64_t length) {
  Dequantised to{{}, {args.kv_heads * args.seq_kv * length, args.seq_kv * length, length}};
  to.numbers.resize(args.batch * to.strides.batch);
  float* out = to.numbers.data();
  for (uint64_t row = 0; row < args.batch * args.kv_heads * args.seq_kv; ++row, out += length) {
    const uint64_t b = row / args.seq_kv / args.kv_heads, h = row / args.seq_kv % args.kv_heads, j = row % args.seq_kv;
    const uint64_t first = attention::at(strides, b, h, j);
    if (attention::in_blocks(stored.as)) {
      for (uint64_t e = 0; e < length; e += attention::kStoredBlock) {
        quant::decode_block(stored.as, from.host<uint8_t>() + args.bytes_of(stored.as, first + e), out + e);
      }
      continue;
    }
    const float scale = stored.scales == nullptr
                            ? 1
                            : stored.scales->host<float>()[attention::at(stored.scale_strides, b, h, j)];
    with_any_type(stored.as, [&]<typename T>(T) {
      if constexpr (std::is_same_v<T, FloatE4M3> || std::is_same_v<T, FloatE5M2>) {
        const T* numbers = from.host<T>() + first;
        for (uint64_t e = 0; e < length; ++e) {
          out[e] = static_cast<float>(static_cast<double>(numbers[e])) * scale;
        }
      }
    });
  }
  return to;
}

}  // namespace

namespace attention {

uint64_t length(const Buffer* lengths, uint64_t batch, uint64_t most) {
  if (lengths == nullptr) return most;
  return std::min(most, static_cast<uint64_t>(std::max(lengths->host<int32_t>()[batch], 0)));
}

Score score_of(const AttentionArgs& args, double dot, const Pair& pair) {
  const auto [batch, head, row, key] = pair;
  if (args.mask != nullptr && args.mask->host<uint8_t>()[at(args.mask_strides, batch, head, row) + key] == 0) {
    return {-kInfinity, 0};
  }
  Score score{dot * args.scale, 1};
  if (args.softcap != 0) {
    const double ratio = std::tanh(score.value / args.softcap);
    score = {args.softcap * ratio, 1 - ratio * ratio};
  }
  if (args.bias != nullptr) {
    const double bias = bias_at(args, at(args.bias_strides, batch, head, row) + key);
    if (bias == -kInfinity) return {bias, 0};
    score.value += bias;
  }
  // A finite maximum avoids inf - inf when the row's maximum is subtracted.
  if (!std::isnan(score.value)) score.value = std::min(score.value, 1e300);
  return score;
}

}  // namespace attention

AttentionKeys attention_keys(const AttentionArgs& args, uint64_t row, uint64_t rows, uint64_t keys) {
  if (row >= rows) return {0, 0};
  // Signed, because the position may be before the first key. Sequences are far shorter than 2^62.
  const int64_t limit = int64_t{1} << 62;
  int64_t place = static_cast<int64_t>(row);
  if (args.causal == TUFF_CAUSAL_BOTTOM_RIGHT) place += static_cast<int64_t>(keys) - static_cast<int64_t>(rows);
  const auto window = [&](uint64_t size) {
    return size == 0 ? limit : static_cast<int64_t>(std::min(size, static_cast<uint64_t>(limit)));
  };
  const int64_t right = args.causal != TUFF_CAUSAL_NONE ? 1 : window(args.window_right),
                last = static_cast<int64_t>(keys);
  const int64_t end = std::clamp<int64_t>(place + right, 0, last);
  const int64_t first = std::clamp<int64_t>(place - window(args.window_left) + 1, 0, end);
  return {static_cast<uint64_t>(first), static_cast<uint64_t>(end)};
}

void host_attention(const AttentionArgs& args) {
  if (args.batch == 0 || args.heads == 0 || args.seq_q == 0) return;
  std::vector<double> weights(args.seq_kv), sums(args.head_dim_v);
  // If only keys or only values are quantised, the others are of the operands' type.
  const auto row = [&]<typename T, typename K, typename V>(T, const Rows<K>& k, const Rows<V>& v, uint64_t b,
                                                           uint64_t h, uint64_t i) {
    const uint64_t kv_head = h / (args.heads / args.kv_heads);
    const T* query = args.q->host<T>() + attention::at(args.q_strides, b, h, i);
    T* out = args.o->host<T>() + attention::at(args.o_strides, b, h, i);
    const AttentionKeys keys = attention_keys(args, i, attention::length(args.q_lengths, b, args.seq_q),
                                              attention::length(args.kv_lengths, b, args.seq_kv));
    double maximum = -kInfinity;
    bool nothing = true;
    for (uint64_t j = keys.first; j < keys.end; ++j) {
      const K* key = k.first + attention::at(k.strides, b, kv_head, j);
      double dot = 0;
      for (uint64_t e = 0; e < args.head_dim; ++e) dot += static_cast<double>(query[e]) * static_cast<double>(key[e]);
      weights[j] = attention::score_of(args, dot, {b, h, i, j}).value;
      maximum = std::fmax(maximum, weights[j]);
      nothing = nothing && weights[j] == -kInfinity;
    }
    double total = 0;
    std::fill(sums.begin(), sums.end(), 0.0);
    for (uint64_t j = keys.first; j < keys.end && !nothing; ++j) {
      if (weights[j] == -kInfinity) continue;
      const double weight = std::exp(weights[j] - maximum);
      const V* value = v.first + attention::at(v.strides, b, kv_head, j);
      total += weight;
      for (uint64_t e = 0; e < args.head_dim_v; ++e) sums[e] += weight * static_cast<double>(value[e]);
    }
    for (uint64_t e = 0; e < args.head_dim_v; ++e) out[e] = T(nothing ? 0.0 : sums[e] / total);
    if (args.lse != nullptr) {
      const double finite = std::clamp<double>(maximum + std::log(total), -FLT_MAX, FLT_MAX);
      args.lse->host<float>()[(b * args.heads + h) * args.seq_q + i] =
          nothing ? -std::numeric_limits<float>::infinity() : static_cast<float>(finite);
    }
  };
  const auto all = [&](auto type, const auto& k, const auto& v) {
    for (uint64_t b = 0; b < args.batch; ++b) {
      for (uint64_t h = 0; h < args.heads; ++h) {
        for (uint64_t i = 0; i < args.seq_q; ++i) row(type, k, v, b, h, i);
      }
    }
  };
  with_float_type(args.dtype, [&]<typename T>(T type) {
    const auto with_values = [&](const auto& k) {
      if (args.v_stored.as == 0) return all(type, k, Rows<T>{args.v->host<T>(), args.v_strides});
      const Dequantised v = dequantised(args, *args.v, args.v_strides, args.v_stored, args.head_dim_v);
      all(type, k, Rows<float>{v.numbers.data(), v.strides});
    };
    if (args.k_stored.as == 0) return with_values(Rows<T>{args.k->host<T>(), args.k_strides});
    const Dequantised k = dequantised(args, *args.k, args.k_strides, args.k_stored, args.head_dim);
    with_values(Rows<float>{k.numbers.data(), k.strides});
  });
}

}  // namespace tuff
