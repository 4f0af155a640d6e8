// O = softmax(scale * Q * K^T) * V of f32 with the wgmma instructions of Hopper GPUs, which multiply numbers of 16
// bits.
//
// Each number is split into three bf16, which are exactly it (kernels/native/planes.hpp; gemm_split.cpp has the
// errors): x = h + m + l. Of the nine parts of a product, six are computed, the smaller ones first:
//
//   l h + h l + m m  +  m h + h m  +  h h
//
// For scores, m and l of queries and keys are 2^8 and 2^16 times as large, so that small numbers keep their bits, and
// the three sums are added in f32. For outputs they are not: a weight is in 0 to 2^-16, and what a value below 2^-110
// loses is below the outputs' least bit. The tensor cores do not round sums, they cut bits off: each sum is over at
// most 128 of head_dim or 64 keys, starts with 0, and is then added in f32.
//
//   group 0      loads f32 into registers, splits, writes three planes of queries, keys, values
//   groups 1, 2  compute 64 query rows each, 64 keys a step
//
//   group 1   | Q K0 | softmax 0 | W0 V0 | add  | Q K1 | ...
//   group 2          | Q K0      | softmax 0    | W0 V0 | add ...
//
// The groups take turns, so that the tensor cores work for one while the other computes weights, splits them and adds
// outputs. Six products take six times as long as one of bf16, so these are hidden. Three planes of 128 queries and of
// 64 keys and values with head_dim 128 take 192 KiB: keys are loaded while values are multiplied, and the other way
// around.
//
// Softmax and the end of a tile are those of attention_wgmma.cpp. Rows with a number that is not finite, or that bf16
// rounds to infinity, have outputs that are not finite, and are computed again in f32, key by key.
#include "kernels/attention/native/attention_planes.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "kernels/attention/native/wgmma_frame.hpp"
#include "kernels/native/elements.hpp"
#include "kernels/native/hopper.hpp"
#include "kernels/native/legal_values.hpp"
#include "kernels/native/planes.hpp"
#include "kernels/native/ptx.hpp"

namespace tuff::attention {
namespace {

using ptx::F32;
using ptx::if_true;
using ptx::kFlag;
using ptx::kPlanes;
using ptx::kQuad;
using ptx::kRowBytes;
using ptx::multiply_add;
using ptx::number;
using ptx::Pred;
using ptx::Ring;
using ptx::Type;
using ptx::U32;
using ptx::U64;

constexpr uint32_t kQuads = 16;                   // of a block of 64 numbers
constexpr uint32_t kPass = ptx::kGroup / kQuads;  // rows that the group loads at once
constexpr uint32_t kFlying = 2;                   // parts that are loaded while others are split
constexpr uint32_t kLoaderRegisters = 88, kComputingRegisters = 208;

class Kernel : WgmmaFrame {
 public:
  explicit Kernel(const Planes& options) : WgmmaFrame(options, "attention_planes"), planes_(options) {}

  std::string write() {
    return WgmmaFrame::write(
        {planes_.q_bytes(), stage_bytes(), planes_.stages(), kLoaderRegisters, kComputingRegisters}, [&] { load(); },
        [&] { compute(); });
  }

 private:
  uint32_t stage_bytes() const { return planes_.k_bytes() + planes_.v_bytes(); }

  // --- the group that loads ---------------------------------------------------------------------------------------

  // The rows of a tensor that are loaded next. The thread has a quad of every kPass-th of them.
  struct Source {
    uint32_t dim, padded;  // numbers of a row; up to `padded`, zeros are stored
    uint32_t rows;         // that a block of 64 numbers has in shared memory
    uint32_t plane_bytes;
    bool scaled, reordered;
    U32 first, end;  // the thread's first row, a variable; rows from `end` on are zeros
    U64 at;          // of the thread's quad in its first row, a variable
    U32 row_bytes;
  };
  using Quads = std::vector<F32>;

  Source source_of(const Tensor& x, const U64& base, const U32& first, const U32& end, uint32_t dim, bool values,
                   bool reordered) {
    Source made;
    made.dim = dim, made.padded = values ? dim : padded(dim);
    made.rows = keys();
    made.plane_bytes = (values ? planes_.v_bytes() : planes_.k_bytes()) / kPlanes;
    made.scaled = !values;
    made.reordered = reordered;
    made.end = end;
    made.row_bytes = x.row;
    made.first = w_.variable(first + (reordered ? options_.key_of_row(own_thread_row_) : own_thread_row_));
    made.at = w_.variable(multiply_add(made.first, x.row, multiply_add(own_quad_, kQuad * 4, base)));
    return made;
  }

  // `rows` rows from row `from` on, of a block of 64 numbers.
  struct Part {
    uint32_t block, from, rows;
  };

  // Halves of the keys, then of the values.
  std::vector<Part> parts_of_step() const {
    std::vector<Part> parts;
    for (const uint32_t dim : {o_.head_dim, o_.head_dim_v}) {
      for (uint32_t block = 0; block < blocks(dim); ++block) {
        for (const uint32_t from : {0u, keys() / 2}) parts.push_back({block, from, keys() / 2});
      }
    }
    return parts;
  }

  // Loads the thread's quads.
  void load_part(const Source& x, const Part& part, const Quads& to) {
    const auto [block, from, rows] = part;
    const uint32_t further = x.reordered ? kPass / 4 : kPass;
    const uint32_t quads = x.dim / kQuad - block * kQuads;
    for (uint32_t pass = 0; pass < rows / kPass; ++pass) {
      const uint32_t down = (from / kPass + pass) * further;
      Pred exists = x.first + down < x.end;
      if (quads < kQuads) exists = exists && own_quad_ < quads;
      const U64 at = down == 0 ? x.at : multiply_add(x.row_bytes, down, x.at);
      ptx::load_quad(at, block * kRowBytes * 2, &to[pass * kQuad], &exists);
    }
  }

  // Splits them and writes them to the planes, which begin at `place`.
  void split_part(const Source& x, const Part& part, const U32& place, const Quads& quads) {
    const auto [block, from, rows] = part;
    const F32 scale = number(w_, 256);
    const uint32_t stored = x.padded / kQuad - block * kQuads;
    ptx::Guard guard;
    if (stored < kQuads) guard = if_true(own_quad_ < stored);
    for (uint32_t pass = 0; pass < rows / kPass; ++pass) {
      const uint32_t offset = (block * x.rows + from + pass * kPass) * kRowBytes;
      ptx::store_planes(place, offset, x.plane_bytes, &quads[pass * kQuad], x.scaled ? &scale : nullptr, guard);
    }
  }

  void load() {
    own_thread_row_ = thread_ >> 4, own_quad_ = thread_ & (kQuads - 1);
    const U32 own_place = ptx::piece_at(memory_, own_thread_row_, own_quad_ >> 1) + ((own_quad_ & 1) << 3);
    const Ring ring = ptx::make_ring(w_, 1);
    const U32 queries_parity = w_.variable(w_.constant(1));
    const std::vector<Part> parts = parts_of_step();
    const auto k_parts = 2 * blocks(o_.head_dim), all = static_cast<uint32_t>(parts.size());
    for (Quads& set : sets_) {
      for (uint32_t i = 0; i < keys() / 2 / kPass * kQuad; ++i) set.push_back(w_.make<Type::f32>());
    }
    each_tile([&](const Tile& tile) {
      w_.when(tile.begin < tile.end, [&] {
        load_queries(tile, own_place, queries_parity);
        const U32 key = w_.variable(tile.begin);
        ScoreOptions::Rows extras;
        if (o_.bias != 0 || o_.mask) {
          extras = options_.find(tile.batch, tile.head, min(tile.row + thread_, seq_q_ - 1));
        }
        const Source k = source_of(k_, base_of(k_, tile, tile.kv_head), tile.begin, tile.keys_here, o_.head_dim, false,
                                   o_.options());
        const Source v = source_of(v_, base_of(v_, tile, tile.kv_head), tile.begin, tile.keys_here, o_.head_dim_v, true,
                                   o_.options());
        const auto load_next = [&](uint32_t i) {
          const Source& x = i < k_parts ? k : v;
          load_part(x, parts[i], sets_[i % kFlying]);
          if (i + 1 != k_parts && i + 1 != all) return;
          w_.assign(x.first, x.first + keys());
          w_.assign(x.at, multiply_add(x.row_bytes, keys(), x.at));
        };
        for (uint32_t i = 0; i < kFlying; ++i) load_next(i);
        w_.repeat([&] { return key < tile.end; },
                  [&] {
                    if (o_.bias != 0 || o_.mask) options_.prefetch(extras, key, tile.end);
                    const U32 stage = own_place + planes_.q_bytes() + ring.stage * w_.constant(stage_bytes());
                    const U32 next = key + keys();
                    const Pred more = next < tile.end;
                    for (uint32_t i = 0; i < all; ++i) {
                      const bool of_keys = i < k_parts;
                      if (i == 0 || i == k_parts) ptx::wait_at(of_keys ? keys_empty_ : values_empty_, ring);
                      split_part(of_keys ? k : v, parts[i], of_keys ? stage : stage + planes_.k_bytes(),
                                 sets_[i % kFlying]);
                      if (i + 1 == k_parts) ptx::arrive_with_writes(keys_full_, ring.stage, elected_);
                      if (i + 1 == all) ptx::arrive_with_writes(values_full_, ring.stage, elected_);
                      if (i + kFlying < all) {
                        load_next(i + kFlying);
                      } else {
                        w_.when(more, [&] { load_next(i + kFlying - all); });
                      }
                    }
                    ptx::advance(ring, planes_.stages());
                    w_.assign(key, next);
                  });
      });
    });
  }

  // They arrive together with the first keys.
  void load_queries(const Tile& tile, const U32& place, const U32& parity) {
    Source q = source_of(q_, base_of(q_, tile, tile.head), tile.row, seq_q_, o_.head_dim, false, false);
    q.rows = kRows, q.plane_bytes = planes_.q_bytes() / kPlanes;
    const uint32_t rows = keys() >= 64 ? 32 : 16;
    std::vector<Part> parts;
    for (uint32_t block = 0; block < blocks(o_.head_dim); ++block) {
      for (uint32_t from = 0; from < kRows; from += rows) parts.push_back({block, from, rows});
    }
    for (uint32_t i = 0; i < kFlying; ++i) load_part(q, parts[i], sets_[i]);
    ptx::wait_at(queries_empty_, parity);
    w_.assign(parity, parity ^ 1);
    for (uint32_t i = 0; i < parts.size(); ++i) {
      split_part(q, parts[i], place, sets_[i % kFlying]);
      if (i + kFlying < parts.size()) load_part(q, parts[i + kFlying], sets_[i % kFlying]);
    }
  }

  static uint32_t blocks(uint32_t dim) { return (dim + 63) / 64; }

  // --- the groups that compute ------------------------------------------------------------------------------------

  // The planes that are multiplied, the smaller parts first, in three sums.
  static constexpr uint32_t kTerms[3][3][2] = {{{2, 0}, {0, 2}, {1, 1}}, {{1, 0}, {0, 1}}, {{0, 0}}};
  static constexpr uint32_t kTermsOfSum[3] = {3, 2, 1};

  void compute() {
    const U32 thread = start_group();
    const U32 high = w_.variable(w_.constant(ptx::kMatrixHigh));
    const U32 q = ((memory_ + group_ * (kGroupRows * kRowBytes)) >> 4) | 1u << 16;
    const U32 k = (stages_ >> 4) | 1u << 16;
    const U32 v = ((stages_ + planes_.k_bytes()) >> 4) | (keys() * kRowBytes / 16) << 16;
    make_scores_and_sums();
    for (size_t i = 0; i < sums_.size(); ++i) parts_.push_back(w_.make<Type::f32>());
    for (std::vector<F32>& sum : low_scores_) {
      for (size_t i = 0; i < scores_.size(); ++i) sum.push_back(w_.make<Type::f32>());
    }
    for (std::vector<U32>& plane : weights_) {
      for (uint32_t i = 0; i < keys() / 4; ++i) plane.push_back(w_.make<Type::u32>());
    }
    make_rows();
    start_turns();
    const auto in_turn = [&](const auto& multiply) {
      take_turn();
      w_.emit("wgmma.fence.sync.aligned;");
      multiply();
      w_.emit("wgmma.commit_group.sync.aligned;");
      end_turn();
    };

    const Ring ring = ptx::make_ring(w_, 0);
    each_tile([&](Tile tile) {
      find_common_keys(tile, tile.row + group_ * kGroupRows, kGroupRows);
      start_rows(tile, thread);
      const U32 key = w_.variable(tile.begin);
      w_.repeat([&] { return key < tile.end; },
                [&] {
                  const U32 stage = ring.stage * w_.constant(stage_bytes() / 16);
                  ptx::wait_at(keys_full_, ring);
                  in_turn([&] { multiply_scores(q, k + stage, high); });
                  load_extras(tile, key);
                  w_.emit("wgmma.wait_group.sync.aligned 0;");
                  ptx::arrive_at(keys_empty_ + (ring.stage << 3), if_true(elected_));
                  w_.when(key + keys() >= tile.end, [&] { ptx::arrive_at(queries_empty_, if_true(elected_)); });
                  add_parts_of_scores();
                  const Pred far = soften(tile, key);
                  w_.assign(key, key + keys());
                  w_.when(far, [&] { rescale(); });
                  split_weights();
                  ptx::wait_at(values_full_, ring);
                  in_turn([&] { multiply_values(v + stage, high); });
                  w_.emit("wgmma.wait_group.sync.aligned 0;");
                  ptx::arrive_at(values_empty_ + (ring.stage << 3), if_true(elected_));
                  for (size_t i = 0; i < sums_.size(); ++i) w_.assign(sums_[i], sums_[i] + parts_[i]);
                  ptx::advance(ring, planes_.stages());
                });
      store(tile);
    });
  }

  // The three sums of Q K^T, 16 of head_dim at a time.
  void multiply_scores(const U32& q, const U32& k, const U32& high) {
    const uint32_t q_plane = planes_.q_bytes() / kPlanes, k_plane = planes_.k_bytes() / kPlanes;
    for (uint32_t sum = 0; sum < 3; ++sum) {
      const std::string sums = ptx::list(sum == 2 ? scores_ : low_scores_[sum]);
      for (uint32_t term = 0; term < kTermsOfSum[sum]; ++term) {
        const auto [of_q, of_k] = kTerms[sum][term];
        for (uint32_t i = 0; i < padded(o_.head_dim) / 16; ++i) {
          const uint32_t block = i / 4, in_block = i % 4 * 2;
          const U64 a = ptx::matrix(q + ((of_q * q_plane + block * kRows * kRowBytes) / 16 + in_block), high);
          const U64 b = ptx::matrix(k + ((of_k * k_plane + block * keys() * kRowBytes) / 16 + in_block), high);
          w_.emit("wgmma.mma_async.sync.aligned.m64n{}k16.f32.bf16.bf16 {{{}}}, {}, {}, {}, 1, 1, 0, 0;", keys(), sums,
                  a.text, b.text, (term + i == 0 ? never_ : always_).text);
        }
      }
    }
  }

  void add_parts_of_scores() {
    const F32 scale = number(w_, 0x1p-8f);
    for (size_t i = 0; i < scores_.size(); ++i) {
      const F32 low = multiply_add(low_scores_[0][i], scale, low_scores_[1][i]);
      w_.assign(scores_[i], multiply_add(low, scale, scores_[i]));
    }
  }

  void split_weights() {
    for (uint32_t i = 0; i < keys() / 4; ++i) {
      F32 low = score(i / 2, i % 2, 0), high = score(i / 2, i % 2, 1);
      w_.assign(weights_[0][i], ptx::take_plane(low, high, nullptr));
      w_.assign(weights_[1][i], ptx::take_plane(low, high, nullptr));
      w_.assign(weights_[2][i], ptx::packed_pair(TUFF_BF16, low, high));
    }
  }

  // parts = weights V, 16 keys at a time.
  void multiply_values(const U32& v, const U32& high) {
    const std::string sums = ptx::list(parts_);
    for (uint32_t sum = 0; sum < 3; ++sum) {
      for (uint32_t term = 0; term < kTermsOfSum[sum]; ++term) {
        const auto [of_weights, of_v] = kTerms[sum][term];
        const std::vector<U32>& w = weights_[of_weights];
        for (uint32_t i = 0; i < keys() / 16; ++i) {
          const U64 b = ptx::matrix(v + (of_v * planes_.v_bytes() / kPlanes + i * 16 * kRowBytes) / 16, high);
          w_.emit("wgmma.mma_async.sync.aligned.m64n{}k16.f32.bf16.bf16 {{{}}}, {{{}, {}, {}, {}}}, {}, {}, 1, 1, 1;",
                  o_.head_dim_v, sums, w[i * 4].text, w[i * 4 + 1].text, w[i * 4 + 2].text, w[i * 4 + 3].text, b.text,
                  (sum + term + i == 0 ? never_ : always_).text);
        }
      }
    }
  }

  const Planes planes_;
  U32 own_thread_row_, own_quad_;  // of a loading thread
  std::array<Quads, kFlying> sets_;
  std::array<std::vector<F32>, 2> low_scores_;
  std::vector<F32> parts_;                         // of outputs
  std::array<std::vector<U32>, kPlanes> weights_;  // pairs
};

NativeKernel write_planes(const KernelRequest& request) {
  const Planes options = Planes::read(request);
  return {Kernel(options).write(), "attention_planes", Planes::kThreads, options.shared_bytes()};
}

constexpr auto kDims = ptx::multiples<Planes::kPiece, Planes::kMaxHeadDim>();
constexpr auto kDimsV = ptx::multiples<8, Planes::kMaxHeadDim>();
constexpr LegalRange kKeys[] = {{32, 32}, {48, 48}, {64, 64}};
constexpr DefineInfo kDefines[] = {{"BIAS", kBiasTypes},      {"CAP", kFlag},    {"HEAD_DIM", kDims},
                                   {"HEAD_DIM_V", kDimsV},    {"HIDING", kFlag}, {"KEYS", kKeys},
                                   {"LENGTHS", kLengthForms}, {"LSE", kFlag},    {"MASK", kFlag},
                                   {"PIECES", kFlag}};

}  // namespace

uint32_t Planes::max_keys() const {
  if (!options() || std::max(head_dim, head_dim_v) <= 64) return 64;
  // The bias and mask of a step are kept in registers, too.
  return bias == TUFF_F32 ? 32 : 48;
}

uint32_t Planes::stages() const {
  const uint32_t rest = ptx::kSharedBytes - ptx::kSharedAlignment - kControlBytes - q_bytes();
  return std::min(rest / (k_bytes() + v_bytes()), kMaxStages);
}

uint32_t Planes::shared_bytes() const {
  return q_bytes() + stages() * (k_bytes() + v_bytes()) + ptx::kSharedAlignment + kControlBytes;
}

KernelRequest Planes::request() const {
  KernelRequest made(planes_source);
  define_in(made);
  return made;
}

Planes Planes::read(const KernelRequest& request) {
  Planes options;
  options.read_from(request);
  options.check_keys("attention_planes", options.max_keys());
  return options;
}

const KernelSource planes_source = {"attention_planes", nullptr, kDefines, write_planes};

}  // namespace tuff::attention
