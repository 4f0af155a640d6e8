// O = softmax(scale * Q * K^T) * V with the wgmma instructions of Hopper GPUs: 16-bit tensors, scores and sums in f32,
// one pass with online softmax.
//
//              keys (128)
//            +------------+          A block computes 128 query rows at a time, tile after tile. It has three
//   head_dim |   keys^T   |          warp groups:
//      +---+ +------------+
//      |   | |  scores 1  |            group 0   loads: cp.async, the tile's queries, then 128 keys and values a step;
//  128 | Q | +------------+            group 1   computes the upper 64 rows;
//      |   | |  scores 2  |            group 2   computes the lower 64 rows.
//      +---+ +------------+
//               weights              Scores, weights and outputs stay in registers: the layout of the scores that one
//            +------------+          wgmma leaves is the one in which the next reads the weights.
//            |   values   |
//            +------------+          In a step, a group starts the scores of the next keys, then the outputs of the
//            |   output   |          last ones; while the latter run, it turns the scores into weights:
//            +------------+
//   scores     | Q K0 |      | Q K1 |              | Q K2 |
//   outputs           |             | W0 V0        |      | W1 V1        |
//   weights           | softmax 0 | |      | softmax 1  |      | softmax 2  |
//
// and the groups take turns, so that the tensor cores work for one while the other computes weights.
//
// online_softmax.hpp explains weights and references, and which rows are computed again at the end. In tiles that
// hide a key from some row, values that are NaN or infinite count as 0, because 0 * NaN is NaN; the loading group
// replaces them, and the rows are computed again, too.
//
// With a bias, a mask or a soft cap (score_options.hpp), the computing threads read bias and mask of their scores
// while those are computed; the loading group has told the second-level cache before. Any tile may then hide keys, so
// rows whose outputs are not finite are computed again instead.
#include "kernels/attention/native/attention_wgmma.hpp"

#include <array>
#include <string>
#include <vector>

#include "kernels/attention/native/wgmma_frame.hpp"
#include "kernels/attention/native/wgmma_rows.hpp"
#include "kernels/native/elements.hpp"
#include "kernels/native/hopper.hpp"
#include "kernels/native/legal_values.hpp"
#include "kernels/native/ptx.hpp"
#include "planning/status.hpp"
#include "tuff/tuff.h"

namespace tuff::attention {
namespace {

using ptx::F32;
using ptx::if_true;
using ptx::kFlag;
using ptx::kHalves;
using ptx::kRowBytes;
using ptx::kWarp;
using ptx::multiply_add;
using ptx::Pred;
using ptx::Ring;
using ptx::Type;
using ptx::U32;
using ptx::U64;

constexpr uint32_t kLag = 2;  // tensors in flight while the next one is started
constexpr uint32_t kLoaderRegisters = 40, kComputingRegisters = 232;

class Kernel : WgmmaFrame {
 public:
  explicit Kernel(const Wgmma& options) : WgmmaFrame(options, "attention_wgmma") {}

  std::string write() {
    return WgmmaFrame::write(
        {o_.q_bytes(), stage_bytes(), o_.stages(), kLoaderRegisters, kComputingRegisters}, [&] { load(); },
        [&] { compute(); });
  }

 private:
  uint32_t stage_bytes() const { return o_.k_bytes() + o_.v_bytes(); }

  // --- the group that loads ---------------------------------------------------------------------------------------

  // Starts loading `rows` rows of a tensor from `first` on to `place`, in blocks of 64 elements. Rows from `end` on,
  // and elements up to `padded`, become zeros.
  void load_rows(const U64& base, const Tensor& x, const U32& first, const U32& end, uint32_t rows, uint32_t dim,
                 uint32_t padded, const U32& place, bool reordered = false) {
    const U32 row = thread_ >> 3, piece = thread_ & 7;
    const U32 to = ptx::piece_at(place, row, piece);
    // From one pass to the next: 16 rows, or, in the order of ScoreOptions, 4 keys.
    const uint32_t further = reordered ? kPassRows / 4 : kPassRows;
    const U32 own = first + (reordered ? options_.key_of_row(row) : row);
    const U64 step = ptx::multiply_wide(x.row, w_.constant(further));
    const U64 at = w_.variable(multiply_add(own, x.row, multiply_add(piece, 16, base)));
    start_loading({to, piece, own, end, at, step, further, rows, dim, padded});
  }

  void load() {
    const Ring ring = ptx::make_ring(w_, 1);
    const U32 last = w_.variable(w_.constant(0)), issued = w_.variable(w_.constant(0));
    const U32 last_hides = w_.variable(w_.constant(0)), queries_parity = w_.variable(w_.constant(1));
    each_tile([&](const Tile& tile) {
      w_.when(tile.begin < tile.end, [&] {
        const U64 q = base_of(q_, tile, tile.head), k = base_of(k_, tile, tile.kv_head);
        const U64 v = base_of(v_, tile, tile.kv_head);
        const U32 key = w_.variable(tile.begin);
        ScoreOptions::Rows extras;
        if (o_.bias != 0 || o_.mask) {
          extras = options_.find(tile.batch, tile.head, min(tile.row + thread_, seq_q_ - 1));
        }
        w_.repeat([&] { return key < tile.end; },
                  [&] {
                    if (o_.bias != 0 || o_.mask) options_.prefetch(extras, key, tile.end);
                    const U32 stage = stages_ + ring.stage * w_.constant(stage_bytes());
                    ptx::wait_at(keys_empty_, ring);
                    load_rows(k, k_, key, tile.keys_here, keys(), o_.head_dim, padded(o_.head_dim), stage,
                              o_.options());
                    // The queries arrive together with the first keys.
                    w_.when(key == tile.begin, [&] {
                      ptx::wait_at(queries_empty_, queries_parity);
                      w_.assign(queries_parity, queries_parity ^ 1);
                      load_rows(q, q_, tile.row, seq_q_, kRows, o_.head_dim, padded(o_.head_dim), memory_);
                    });
                    w_.emit("cp.async.commit_group;");
                    w_.emit("cp.async.wait_group {};", kLag);
                    w_.when(issued != 0u, [&] { keys_arrived(last); });
                    ptx::wait_at(values_empty_, ring);
                    load_rows(v, v_, key, tile.keys_here, keys(), o_.head_dim_v, o_.head_dim_v, stage + o_.k_bytes(),
                              o_.options());
                    w_.emit("cp.async.commit_group;");
                    w_.emit("cp.async.wait_group {};", kLag);
                    w_.when(issued != 0u, [&] { values_arrived(last, last_hides); });
                    w_.assign(issued, w_.constant(1));
                    w_.assign(last, ring.stage);
                    if (partial()) {
                      const Pred hides = key < tile.all_from || tile.all_to < key + keys();
                      w_.assign(last_hides, select(hides, w_.constant(1), w_.constant(0)));
                    }
                    ptx::advance(ring, o_.stages());
                    w_.assign(key, key + keys());
                  });
        // The computing groups leave the queries only after the last step, so nothing may be held back.
        w_.emit("cp.async.wait_all;");
        keys_arrived(last);
        values_arrived(last, last_hides);
        w_.assign(issued, w_.constant(0));
      });
    });
  }

  void keys_arrived(const U32& stage) { ptx::arrive_with_writes(keys_full_, stage, elected_); }

  void values_arrived(const U32& stage, const U32& hides) {
    if (partial()) {
      const U32 found = w_.variable(w_.constant(0));
      w_.when(hides != 0u, [&] { replace_not_finite(stage, found); });
      const Pred mine = found != 0u, any = w_.make<Type::pred>();
      w_.emit("vote.sync.any.pred {}, {}, 0xffffffff;", any.text, mine.text);
      const U32 flag = select(any, w_.constant(1), w_.constant(0));
      const U32 at = flags_ + stage * kFlagBytes + ((thread_ >> 5) << 2);
      w_.emit(if_true(elected_), "st.shared.u32 [{}], {};", at.text, flag.text);
    }
    ptx::arrive_with_writes(values_full_, stage, elected_);
  }

  // In the pieces of values that this thread has loaded.
  void replace_not_finite(const U32& stage, const U32& found) {
    const U32 row = thread_ >> 3, piece = thread_ & 7;
    const U32 place = ptx::piece_at(stages_ + stage * w_.constant(stage_bytes()) + o_.k_bytes(), row, piece);
    const uint32_t stored = o_.head_dim_v / Wgmma::kPiece;
    const auto each_piece = [&](const auto& body) {
      for (uint32_t block = 0; block * 8 < stored; ++block) {
        const auto pieces = [&] {
          for (uint32_t pass = 0; pass < keys() / kPassRows; ++pass) {
            const uint32_t offset = (block * keys() + pass * kPassRows) * kRowBytes;
            std::array<U32, 4> word;
            for (U32& one : word) one = w_.make<Type::u32>();
            w_.emit("ld.shared.v4.b32 {{{}, {}, {}, {}}}, [{}+{}];", word[0].text, word[1].text, word[2].text,
                    word[3].text, place.text, offset);
            body(word, offset);
          }
        };
        if (block * 8 + 8 > stored) {
          w_.when(piece < stored - block * 8, pieces);
        } else {
          pieces();
        }
      }
    };
    each_piece([&](const std::array<U32, 4>& word, uint32_t) {
      for (const U32& one : word) w_.assign(found, found | ptx::not_finite(o_.type, one));
    });
    w_.when(found != 0u, [&] {
      each_piece([&](std::array<U32, 4>& word, uint32_t offset) {
        for (U32& one : word) {
          const U32 bad = (ptx::not_finite(o_.type, one) >> 15) * w_.constant(0xffff);
          one = one & (bad ^ 0xffffffffu);
        }
        w_.emit("st.shared.v4.b32 [{}+{}], {{{}, {}, {}, {}}};", place.text, offset, word[0].text, word[1].text,
                word[2].text, word[3].text);
      });
    });
  }

  // --- the groups that compute ------------------------------------------------------------------------------------

  void compute() {
    const U32 thread = start_group();
    const U32 high = w_.variable(w_.constant(ptx::kMatrixHigh));
    // The descriptors' low words. Blocks of 64 elements of values follow one another along n.
    const U32 q = (memory_ + group_ * (kGroupRows * kRowBytes)) >> 4;
    const U32 q_first = q | 1u << 16;
    const U32 k_first = (stages_ >> 4) | 1u << 16;
    const U32 v_first = ((stages_ + o_.k_bytes()) >> 4) | (keys() * kRowBytes / 16) << 16;
    make_scores_and_sums();
    for (uint32_t i = 0; i < keys() / 4; ++i) weights_.push_back(w_.make<Type::u32>());
    make_rows();
    start_turns();

    const Ring ring = ptx::make_ring(w_, 0);
    each_tile([&](Tile tile) {
      find_common_keys(tile, tile.row + group_ * kGroupRows, kGroupRows);
      start_rows(tile, thread);
      w_.when(tile.begin < tile.end, [&] {
        const U32 key = w_.variable(tile.begin);
        ptx::wait_at(keys_full_, ring);
        w_.emit("wgmma.fence.sync.aligned;");
        multiply_scores(q_first, k_first + ring.stage * w_.constant(stage_bytes() / 16), high);
        w_.emit("wgmma.commit_group.sync.aligned;");
        load_extras(tile, key);
        w_.emit("wgmma.wait_group.sync.aligned 0;");
        ptx::arrive_at(keys_empty_ + (ring.stage << 3), if_true(elected_));
        soften(tile, key);
        pack_weights();
        w_.assign(key, key + keys());
        const Ring next{w_.variable(ring.stage), w_.variable(ring.parity)};
        w_.repeat([&] { return key < tile.end; },
                  [&] {
                    ptx::advance(next, o_.stages());
                    ptx::wait_at(keys_full_, next);
                    take_turn();
                    w_.emit("wgmma.fence.sync.aligned;");
                    multiply_scores(q_first, k_first + next.stage * w_.constant(stage_bytes() / 16), high);
                    w_.emit("wgmma.commit_group.sync.aligned;");
                    ptx::wait_at(values_full_, ring);
                    read_flags(ring);
                    w_.emit("wgmma.fence.sync.aligned;");
                    multiply_values(v_first + ring.stage * w_.constant(stage_bytes() / 16), high);
                    w_.emit("wgmma.commit_group.sync.aligned;");
                    end_turn();
                    load_extras(tile, key);
                    w_.emit("wgmma.wait_group.sync.aligned 1;");
                    ptx::arrive_at(keys_empty_ + (next.stage << 3), if_true(elected_));
                    const Pred far = soften(tile, key);
                    w_.emit("wgmma.wait_group.sync.aligned 0;");
                    ptx::arrive_at(values_empty_ + (ring.stage << 3), if_true(elected_));
                    w_.when(far, [&] { rescale(); });
                    pack_weights();
                    w_.assign(ring.stage, next.stage);
                    w_.assign(ring.parity, next.parity);
                    w_.assign(key, key + keys());
                  });
        ptx::arrive_at(queries_empty_, if_true(elected_));
        ptx::wait_at(values_full_, ring);
        read_flags(ring);
        w_.emit("wgmma.fence.sync.aligned;");
        multiply_values(v_first + ring.stage * w_.constant(stage_bytes() / 16), high);
        w_.emit("wgmma.commit_group.sync.aligned;");
        w_.emit("wgmma.wait_group.sync.aligned 0;");
        ptx::arrive_at(values_empty_ + (ring.stage << 3), if_true(elected_));
        ptx::advance(ring, o_.stages());
      });
      store(tile);
    });
  }

  // scores = Q K^T, 16 elements of head_dim at a time.
  void multiply_scores(const U32& q, const U32& k, const U32& high) {
    const char* const type = ptx::name_of_half(o_.type);
    for (uint32_t i = 0; i < padded(o_.head_dim) / 16; ++i) {
      const uint32_t block = i / 4, in_block = i % 4 * 2;
      const U64 a = ptx::matrix(q + (block * kRows * kRowBytes / 16 + in_block), high);
      const U64 b = ptx::matrix(k + (block * keys() * kRowBytes / 16 + in_block), high);
      w_.emit("wgmma.mma_async.sync.aligned.m64n{}k16.f32.{}.{} {{{}}}, {}, {}, {}, 1, 1, 0, 0;", keys(), type, type,
              ptx::list(scores_), a.text, b.text, (i == 0 ? never_ : always_).text);
    }
  }

  // sums += weights V, 16 keys at a time.
  void multiply_values(const U32& v, const U32& high) {
    const char* const type = ptx::name_of_half(o_.type);
    for (uint32_t i = 0; i < keys() / 16; ++i) {
      const U64 b = ptx::matrix(v + i * (16 * kRowBytes / 16), high);
      w_.emit("wgmma.mma_async.sync.aligned.m64n{}k16.f32.{}.{} {{{}}}, {{{}, {}, {}, {}}}, {}, {}, 1, 1, 1;",
              o_.head_dim_v, type, type, ptx::list(sums_), weights_[i * 4].text, weights_[i * 4 + 1].text,
              weights_[i * 4 + 2].text, weights_[i * 4 + 3].text, b.text, always_.text);
    }
  }

  void read_flags(const Ring& ring) {
    if (!partial()) return;
    std::array<U32, 4> flag;
    for (U32& one : flag) one = w_.make<Type::u32>();
    w_.emit("ld.shared.v4.u32 {{{}, {}, {}, {}}}, [{}];", flag[0].text, flag[1].text, flag[2].text, flag[3].text,
            (flags_ + ring.stage * kFlagBytes).text);
    w_.assign(incomplete_, incomplete_ | flag[0] | flag[1] | flag[2] | flag[3]);
  }

  void pack_weights() {
    for (uint32_t i = 0; i < weights_.size(); ++i) {
      const uint32_t eight = i / 2, half = i % 2;
      w_.assign(weights_[i], ptx::packed_pair(o_.type, score(eight, half, 0), score(eight, half, 1)));
    }
  }

  std::vector<U32> weights_;  // pairs
};

NativeKernel write_wgmma(const KernelRequest& request) {
  const Wgmma options = Wgmma::read(request);
  return {Kernel(options).write(), "attention_wgmma", Wgmma::kThreads, options.shared_bytes()};
}

constexpr auto kDims = ptx::multiples<Wgmma::kPiece, Wgmma::kMaxHeadDim>();
constexpr LegalRange kKeys[] = {{32, 32}, {48, 48}, {64, 64}, {80, 80}, {96, 96}, {112, 112}, {128, 128}};
constexpr DefineInfo kDefines[] = {{"BIAS", kBiasTypes},      {"CAP", kFlag},    {"HEAD_DIM", kDims},
                                   {"HEAD_DIM_V", kDims},     {"HIDING", kFlag}, {"KEYS", kKeys},
                                   {"LENGTHS", kLengthForms}, {"LSE", kFlag},    {"MASK", kFlag},
                                   {"PIECES", kFlag},         {"TYPE", kHalves}};

}  // namespace

uint32_t Wgmma::max_keys() const {
  // The bias and mask of a step are kept in registers, too.
  const bool wide = std::max(head_dim, head_dim_v) > 128;
  if (wide) return bias != 0 || mask ? 32 : 64;
  if (bias == TUFF_F32) return 64;
  const bool more = std::max(head_dim, head_dim_v) > 64 || mask || cap || hiding || lengths != 0 || lse;
  return bias != 0 && more ? 96 : 128;
}

uint32_t Wgmma::stages() const {
  const uint32_t rest = ptx::kSharedBytes - ptx::kSharedAlignment - kControlBytes - q_bytes();
  return std::min(rest / (k_bytes() + v_bytes()), kMaxStages);
}

uint32_t Wgmma::shared_bytes() const {
  return q_bytes() + stages() * (k_bytes() + v_bytes()) + ptx::kSharedAlignment + kControlBytes;
}

KernelRequest Wgmma::request() const {
  KernelRequest made(wgmma_source);
  define_in(made.define("TYPE", type));
  return made;
}

void Wgmma::define_in(KernelRequest& request) const {
  request.define("BIAS", bias).define("CAP", cap).define("MASK", mask).define("PIECES", pieces);
  request.define("HEAD_DIM", head_dim).define("HEAD_DIM_V", head_dim_v).define("HIDING", hiding);
  request.define("KEYS", keys).define("LENGTHS", lengths).define("LSE", lse);
}

void Wgmma::read_from(const KernelRequest& request) {
  head_dim = static_cast<uint32_t>(request.value_of("HEAD_DIM"));
  head_dim_v = static_cast<uint32_t>(request.value_of("HEAD_DIM_V"));
  keys = static_cast<uint32_t>(request.value_of("KEYS"));
  hiding = request.value_of("HIDING") != 0;
  lengths = static_cast<uint32_t>(request.value_of("LENGTHS"));
  lse = request.value_of("LSE") != 0;
  bias = static_cast<int32_t>(request.value_of("BIAS"));
  mask = request.value_of("MASK") != 0;
  cap = request.value_of("CAP") != 0;
  pieces = request.value_of("PIECES") != 0;
}

void Wgmma::check_keys(const char* kernel, uint32_t most) const {
  if (keys <= most) return;
  fail(TUFF_ERROR_INTERNAL, "{}: {} keys for head_dim {} and {}", kernel, keys, head_dim, head_dim_v);
}

Wgmma Wgmma::read(const KernelRequest& request) {
  Wgmma options;
  options.type = static_cast<int32_t>(request.value_of("TYPE"));
  options.read_from(request);
  options.check_keys("attention_wgmma", options.max_keys());
  return options;
}

const KernelSource wgmma_source = {"attention_wgmma", nullptr, kDefines, write_wgmma};

}  // namespace tuff::attention
