// Attention by two products of matrices for each tile of query rows: the scores of all keys that some row of the tile
// sees, and the sum of the values, weighted by their exponentials. Scores and weights are in f32, everything between
// them in double precision.
//
// The product with the values also multiplies those of hidden keys, by zero. It therefore needs finite values. Tiles
// with others, and with scores or sums that are not finite, are computed key by key, by the definition.
//
// All memory is allocated before the first tile is written, and no tile is left to Tuff, which may lack memory for it.
#include "backends/cpu/vector_math.hpp"

#include <cfloat>
#include <limits>

#include "backends/cpu/device.hpp"
#include "backends/cpu/exponentials.hpp"

namespace tuff_cpu {
namespace {

using Call = tuff_attention_desc;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLargestScore = 1e300;
constexpr uint64_t kMaxRows = 64, kMaxScores = 1 << 18;  // of a tile

uint64_t place(const uint64_t (&strides)[3], uint64_t batch, uint64_t head, uint64_t row) {
  return batch * strides[0] + head * strides[1] + row * strides[2];
}

// Rows of an operand for one batch element and head, in f32.
struct Rows {
  const float* data;
  uint64_t ld;
};

// Keys or values. Those of 16 bits are converted into a dense copy.
class Sequence {
 public:
  Sequence(const Call& call, tuff_buffer address, const uint64_t (&strides)[3], uint64_t length)
      : data_(at<const float>(address)) {
    std::copy_n(strides, 3, strides_);
    if (call.dtype == TUFF_F32) return;
    const uint64_t rows = call.batch * call.kv_heads * call.seq_kv;
    copy_ = Scratch<float>(rows * length);
    data_ = copy_.get();
    with_float(call.dtype, [&]<typename T>(T) {
      for_each(rows, length, [&](uint64_t i) {
        const uint64_t row = i % call.seq_kv, head = i / call.seq_kv % call.kv_heads,
                       b = i / call.seq_kv / call.kv_heads;
        widen(at<const T>(address) + place(strides_, b, head, row), copy_.get() + i * length, length);
      });
    });
    strides_[2] = length;
    strides_[1] = call.seq_kv * length;
    strides_[0] = call.kv_heads * strides_[1];
  }

  Rows rows(uint64_t batch, uint64_t head) const { return {data_ + place(strides_, batch, head, 0), strides_[2]}; }

 private:
  const float* data_;
  uint64_t strides_[3];
  Scratch<float> copy_;
};

struct Keys {
  uint64_t first, end;
};

uint64_t length_at(tuff_buffer lengths, uint64_t batch, uint64_t most) {
  if (lengths == 0) return most;
  return std::min(most, static_cast<uint64_t>(std::max(at<const int32_t>(lengths)[batch], 0)));
}

// The keys that a row sees by its position: causal rule, window and lengths.
Keys keys_of(const Call& call, uint64_t row, uint64_t rows, uint64_t keys) {
  if (row >= rows) return {0, 0};
  constexpr int64_t kLimit = int64_t{1} << 62;  // sequences are far shorter
  const auto last = static_cast<int64_t>(keys);
  auto position = static_cast<int64_t>(row);
  if (call.causal == TUFF_CAUSAL_BOTTOM_RIGHT) position += last - static_cast<int64_t>(rows);
  const auto window = [](uint64_t size) {
    return size == 0 ? kLimit : static_cast<int64_t>(std::min(size, static_cast<uint64_t>(kLimit)));
  };
  const int64_t right = call.causal != TUFF_CAUSAL_NONE ? 1 : window(call.window_right);
  const int64_t end = std::clamp<int64_t>(position + right, 0, last);
  const int64_t first = std::clamp<int64_t>(position - window(call.window_left) + 1, 0, end);
  return {static_cast<uint64_t>(first), static_cast<uint64_t>(end)};
}

// Whether elements 0 ... length - 1 of some rows are finite.
bool finite(Rows rows, uint64_t first, uint64_t end, uint64_t length) {
  uint32_t bad = 0;
  for (uint64_t r = first; r < end; ++r) {
    const float* x = rows.data + r * rows.ld;
    for (uint64_t i = 0; i < length; ++i) bad += std::fabs(x[i]) <= FLT_MAX ? 0 : 1;
  }
  return bad == 0;
}

void multiply(char transpose, uint64_t m, uint64_t n, uint64_t k, const float* a, uint64_t lda, Rows b, float* c) {
  // For a single row the leading dimension is not used, but checked.
  const uint64_t ldb = std::max(b.ld, transpose == 'N' ? n : k);
  multiply_matrices({'N', transpose, m, n, k, 1, a, lda, b.data, ldb, 0, c, n});
}

// Query rows first ... first + rows - 1 of a batch element and head.
struct Tile {
  uint64_t batch, head, first, rows;
};

// What each thread needs for a tile of all keys.
struct Memory {
  Memory(const Call& call, int threads, uint64_t rows)
      : q(threads, rows * call.head_dim),
        scores(threads, rows * call.seq_kv),
        sums(threads, rows * call.head_dim_v),
        z(threads, call.seq_kv),
        exact_sums(threads, call.head_dim_v) {}
  PerThread<float> q, scores, sums;
  PerThread<double> z, exact_sums;  // of a row
};

class TileWork {
 public:
  TileWork(const Call& call, const Sequence& k, const Sequence& v, const Tile& tile, const Memory& memory)
      : call_(call),
        tile_(tile),
        kv_head_(tile.head / (call.heads / call.kv_heads)),
        k_(k.rows(tile.batch, kv_head_)),
        v_(v.rows(tile.batch, kv_head_)),
        memory_(memory) {}

  template <typename T>
  void compute(T) {
    const uint64_t rows = length_at(call_.q_lengths, tile_.batch, call_.seq_q);
    const uint64_t keys = length_at(call_.kv_lengths, tile_.batch, call_.seq_kv);
    Keys seen[kMaxRows];
    Keys all{call_.seq_kv, 0};
    for (uint64_t r = 0; r < tile_.rows; ++r) {
      seen[r] = keys_of(call_, tile_.first + r, rows, keys);
      if (seen[r].first == seen[r].end) continue;
      all = {std::min(all.first, seen[r].first), std::max(all.end, seen[r].end)};
    }
    if (multiply_tile<T>(seen, all)) return;
    for (uint64_t r = 0; r < tile_.rows; ++r) define_row<T>(tile_.first + r, seen[r]);
  }

 private:
  // False, with nothing written, if a value, score or sum is not finite.
  template <typename T>
  bool multiply_tile(const Keys* seen, Keys all) {
    const uint64_t dim = call_.head_dim, dim_v = call_.head_dim_v;
    double totals[kMaxRows] = {}, largest[kMaxRows] = {};
    float* const sums = memory_.sums.mine();
    if (all.first < all.end) {
      if (!finite(v_, all.first, all.end, dim_v)) return false;
      const uint64_t count = all.end - all.first;
      float *const q = memory_.q.mine(), *const scores = memory_.scores.mine();
      for (uint64_t r = 0; r < tile_.rows; ++r) widen(query<T>(tile_.first + r), q + r * dim, dim);
      multiply('T', tile_.rows, count, dim, q, dim, {k_.data + all.first * k_.ld, k_.ld}, scores);
      for (uint64_t r = 0; r < tile_.rows; ++r) {
        if (!weigh<T>(tile_.first + r, seen[r], all, scores + r * count, largest[r], totals[r])) return false;
      }
      multiply('N', tile_.rows, dim_v, count, scores, count, {v_.data + all.first * v_.ld, v_.ld}, sums);
      // The weights are not divided by their sum yet, so the products of large values may exceed f32 where their mean
      // does not.
      if (!finite({sums, dim_v}, 0, tile_.rows, dim_v)) return false;
    }
    for (uint64_t r = 0; r < tile_.rows; ++r) store<T>(tile_.first + r, sums + r * dim_v, largest[r], totals[r]);
    return true;
  }

  template <typename T>
  const T* query(uint64_t row) const {
    return at<const T>(call_.q) + place(call_.q_strides, tile_.batch, tile_.head, row);
  }
  const uint8_t* mask(uint64_t row) const {
    return at<const uint8_t>(call_.mask) + place(call_.mask_strides, tile_.batch, tile_.head, row);
  }

  // A row by the definition. Keys whose score is -infinity do not count, whatever their values are.
  template <typename T>
  void define_row(uint64_t row, Keys seen) {
    double *const z = memory_.z.mine(), *const sums = memory_.exact_sums.mine();
    const T* const q = query<T>(row);
    double largest = -kInfinity, total = 0;
    for (uint64_t j = seen.first; j < seen.end; ++j) {
      const float* const k = k_.data + j * k_.ld;
      double dot = 0;
      for (uint64_t e = 0; e < call_.head_dim; ++e) dot += static_cast<double>(wide(q[e])) * static_cast<double>(k[e]);
      z[j] = score_of<T>(row, j, dot);
      largest = std::fmax(largest, z[j]);
    }
    std::fill_n(sums, call_.head_dim_v, 0.0);
    for (uint64_t j = seen.first; j < seen.end; ++j) {
      if (z[j] == -kInfinity) continue;
      const double weight = std::exp(z[j] - largest);
      const float* const v = v_.data + j * v_.ld;
      total += weight;
      for (uint64_t e = 0; e < call_.head_dim_v; ++e) sums[e] += weight * static_cast<double>(v[e]);
    }
    store<T>(row, sums, largest, total);
  }

  template <typename T>
  double score_of(uint64_t row, uint64_t key, double dot) const {
    if (call_.mask != 0 && mask(row)[key] == 0) return -kInfinity;
    double score = dot * call_.scale;
    if (call_.softcap != 0) score = call_.softcap * std::tanh(score / call_.softcap);
    if (call_.bias != 0) {
      const uint64_t first = place(call_.bias_strides, tile_.batch, tile_.head, row);
      const float bias = call_.bias_type == TUFF_F32 ? at<const float>(call_.bias)[first + key]
                                                     : wide(at<const T>(call_.bias)[first + key]);
      if (static_cast<double>(bias) == -kInfinity) return -kInfinity;
      score += static_cast<double>(bias);
    }
    // A finite maximum, so that infinity is not subtracted from infinity.
    return score > kLargestScore ? kLargestScore : score;
  }

  // Replaces the scores of a row by its weights. False if one is not finite.
  template <typename T>
  bool weigh(uint64_t row, Keys seen, Keys all, float* scores, double& largest, double& total) {
    double* const z = memory_.z.mine();
    const uint64_t count = seen.end - seen.first;
    largest = -kInfinity;
    total = 0;
    if (count == 0) {
      std::fill_n(scores, all.end - all.first, 0.0F);
      return true;
    }
    float* const of_row = scores + (seen.first - all.first);
    uint32_t bad = 0;
    for (uint64_t j = 0; j < count; ++j) bad += std::fabs(of_row[j]) <= FLT_MAX ? 0 : 1;
    if (bad != 0) return false;
    for (uint64_t j = 0; j < count; ++j) z[j] = static_cast<double>(of_row[j]) * call_.scale;
    if (call_.softcap != 0) {
      for (uint64_t j = 0; j < count; ++j) z[j] = call_.softcap * std::tanh(z[j] / call_.softcap);
    }
    if (call_.bias != 0 && !add_bias<T>(row, seen, z)) return false;
    if (call_.mask != 0) {
      const uint8_t* const shown = mask(row) + seen.first;
      for (uint64_t j = 0; j < count; ++j) z[j] = shown[j] == 0 ? -kInfinity : z[j];
    }
    std::fill(scores, of_row, 0.0F);
    std::fill(of_row + count, scores + (all.end - all.first), 0.0F);
    for (uint64_t j = 0; j < count; ++j) largest = z[j] > largest ? z[j] : largest;
    if (largest == -kInfinity) {  // nothing is seen
      std::fill_n(of_row, count, 0.0F);
      return true;
    }
    for (uint64_t j = 0; j < count; ++j) z[j] -= largest;
    for (uint64_t j = 0; j < count; j += kExpBlock) total += exponentials(z + j, std::min(kExpBlock, count - j));
    for (uint64_t j = 0; j < count; ++j) of_row[j] = static_cast<float>(z[j]);
    return true;
  }

  template <typename T>
  bool add_bias(uint64_t row, Keys seen, double* z) {
    bool good = true;
    const auto add = [&](const auto* bias) {
      bias += place(call_.bias_strides, tile_.batch, tile_.head, row) + seen.first;
      for (uint64_t j = 0; j < seen.end - seen.first; ++j) {
        const float b = wide(bias[j]);
        good = good && (std::fabs(b) <= FLT_MAX || b == -std::numeric_limits<float>::infinity());
        z[j] += static_cast<double>(b);
      }
    };
    if (call_.bias_type == TUFF_F32) {
      add(at<const float>(call_.bias));
    } else {
      add(at<const T>(call_.bias));
    }
    return good;
  }

  template <typename T, typename Sum>
  void store(uint64_t row, const Sum* sums, double largest, double total) {
    const bool nothing = total == 0;
    T* out = at<T>(call_.o) + place(call_.o_strides, tile_.batch, tile_.head, row);
    for (uint64_t e = 0; e < call_.head_dim_v; ++e) {
      round_to(nothing ? 0.0F : static_cast<float>(static_cast<double>(sums[e]) / total), out[e]);
    }
    if (call_.lse == 0) return;
    const double lse = std::clamp<double>(largest + std::log(total), -FLT_MAX, FLT_MAX);
    at<float>(call_.lse)[(tile_.batch * call_.heads + tile_.head) * call_.seq_q + row] =
        nothing ? -std::numeric_limits<float>::infinity() : static_cast<float>(lse);
  }

  const Call& call_;
  const Tile tile_;
  const uint64_t kv_head_;
  const Rows k_, v_;
  const Memory& memory_;
};

bool knows_options(const Call& call) {
  const bool causal =
      call.causal == TUFF_CAUSAL_NONE || call.causal == TUFF_CAUSAL_TOP_LEFT || call.causal == TUFF_CAUSAL_BOTTOM_RIGHT;
  return causal && (call.bias == 0 || call.bias_type == call.dtype || call.bias_type == TUFF_F32);
}

// sgemm needs rows that do not overlap. Those of 16 bits are copied.
bool has_rows_apart(const Call& call) {
  return call.dtype != TUFF_F32 || call.seq_kv == 1 ||
         (call.k_strides[2] >= call.head_dim && call.v_strides[2] >= call.head_dim_v);
}

}  // namespace

tuff_status attention(Device& device, const Call& call) {
  if (!is_float(call.dtype) || !knows_options(call) || !has_rows_apart(call)) return TUFF_ERROR_UNSUPPORTED;
  if (device.asked) return TUFF_OK;
  if (!onednn_available()) return TUFF_ERROR_UNSUPPORTED;
  const double products = static_cast<double>(call.batch * call.heads * call.seq_q) * static_cast<double>(call.seq_kv) *
                          static_cast<double>(call.head_dim + call.head_dim_v);
  const Threads threads(products < kFewProducts ? 1 : device.threads);
  const Sequence k(call, call.k, call.k_strides, call.head_dim), v(call, call.v, call.v_strides, call.head_dim_v);
  const uint64_t rows =
      std::clamp<uint64_t>(kMaxScores / call.seq_kv, 1, std::clamp<uint64_t>(call.seq_q, 1, kMaxRows));
  const uint64_t tiles = (call.seq_q + rows - 1) / rows, units = call.batch * call.heads * tiles;
  const Memory memory(call, threads.count(), rows);
#pragma omp parallel for schedule(dynamic)
  for (int64_t i = 0; i < static_cast<int64_t>(units); ++i) {
    const auto unit = static_cast<uint64_t>(i);
    const uint64_t first = unit % tiles * rows;
    const Tile tile{unit / tiles / call.heads, unit / tiles % call.heads, first, std::min(rows, call.seq_q - first)};
    with_float(call.dtype, [&](auto type) { TileWork(call, k, v, tile, memory).compute(type); });
  }
  return TUFF_OK;
}

}  // namespace tuff_cpu
