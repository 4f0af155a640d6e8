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
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/attention/native/online_softmax.hpp"
#include "kernels/attention/native/score_options.hpp"
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
using ptx::kGroup;
using ptx::kHalves;
using ptx::kRowBytes;
using ptx::kWarp;
using ptx::Label;
using ptx::max_signed;
using ptx::min_signed;
using ptx::multiply_add;
using ptx::number;
using ptx::Pred;
using ptx::Ring;
using ptx::Type;
using ptx::U32;
using ptx::U64;
using ptx::Writer;

constexpr uint32_t kRows = Wgmma::kRows, kGroupRows = 64;
constexpr uint32_t kLoaders = kGroup, kComputing = 2 * kGroup;
constexpr uint32_t kMaxStages = 4, kFlagBytes = 16;  // a flag of each loading warp
constexpr uint32_t kControlBytes = 512;              // flags and barriers
constexpr uint32_t kLag = 2;                         // tensors in flight while the next one is started
constexpr uint32_t kLoaderRegisters = 40, kComputingRegisters = 232;

class Kernel {
 public:
  explicit Kernel(const Wgmma& options)
      : o_(options),
        w_("sm_90a", "attention_wgmma"),
        options_(w_, {options.type, options.bias, options.mask, options.cap, options.pieces, options.keys}) {}

  std::string write() {
    for (Tensor* x : {&q_, &k_, &v_, &out_}) x->base = w_.pointer(x->name);
    if (o_.lse) lse_ = w_.pointer("lse");
    if ((o_.lengths & Wgmma::kRowLengths) != 0) row_lengths_ = w_.pointer("q_lengths");
    if ((o_.lengths & Wgmma::kKeyLengths) != 0) key_lengths_ = w_.pointer("kv_lengths");
    if (o_.options()) options_.declare();
    w_.block("push", sizeof(Wgmma::Push));
    read_parameters();
    thread_ = w_.special("%tid.x");
    memory_ = ptx::aligned_memory(w_);
    stages_ = memory_ + o_.q_bytes();
    flags_ = stages_ + o_.stages() * stage_bytes();
    const U32 barriers = flags_ + kMaxStages * kFlagBytes;
    keys_full_ = barriers;
    keys_empty_ = barriers + kMaxStages * ptx::kBarrierBytes;
    values_full_ = barriers + 2 * kMaxStages * ptx::kBarrierBytes;
    values_empty_ = barriers + 3 * kMaxStages * ptx::kBarrierBytes;
    queries_empty_ = barriers + 4 * kMaxStages * ptx::kBarrierBytes;
    w_.when(thread_ == 0, [&] {
      for (uint32_t s = 0; s < o_.stages(); ++s) {
        for (const U32& full : {keys_full_, values_full_}) {
          ptx::make_barrier(full + s * ptx::kBarrierBytes, kLoaders / kWarp);
        }
        for (const U32& empty : {keys_empty_, values_empty_}) {
          ptx::make_barrier(empty + s * ptx::kBarrierBytes, kComputing / kWarp);
        }
      }
      ptx::make_barrier(queries_empty_, kComputing / kWarp);
    });
    w_.emit("bar.sync 0;");
    lane_ = thread_ & (kWarp - 1);
    elected_ = lane_ == 0u;
    ptx::divide_work(
        thread_, kLoaderRegisters, kComputingRegisters, [&] { load(); }, [&] { compute(); });
    return w_.text(Wgmma::kThreads);
  }

 private:
  struct Tensor {
    const char* name;
    size_t batch_at, head_at, row_at;  // of the strides in the push block
    U64 base, batch, head;
    U32 row;  // bytes
  };

  uint32_t stage_bytes() const { return o_.k_bytes() + o_.v_bytes(); }
  uint32_t keys() const { return o_.keys; }
  bool partial() const { return o_.hiding || o_.lengths != 0; }  // whether some rows may not see keys that others see

  void read_parameters() {
    for (Tensor* x : {&q_, &k_, &v_, &out_}) {
      x->batch = w_.parameter64("push", x->batch_at);
      x->head = w_.parameter64("push", x->head_at);
      x->row = w_.parameter("push", x->row_at);
    }
    const auto number = [this](size_t offset) { return w_.parameter("push", offset); };
    seq_q_ = number(offsetof(Wgmma::Push, seq_q));
    seq_kv_ = number(offsetof(Wgmma::Push, seq_kv));
    heads_ = number(offsetof(Wgmma::Push, heads));
    sharing_ = number(offsetof(Wgmma::Push, sharing));
    row_tiles_ = number(offsetof(Wgmma::Push, row_tiles));
    tiles_ = number(offsetof(Wgmma::Push, tiles));
    diagonal_ = number(offsetof(Wgmma::Push, diagonal));
    left_ = number(offsetof(Wgmma::Push, left));
    right_ = number(offsetof(Wgmma::Push, right));
    scale_ = w_.parameter_float("push", offsetof(Wgmma::Push, scale_log2));
  }

  // --- which keys rows see: mirrors attention_common.glsl ---------------------------------------------------------

  // A tile of query rows, and the keys that it sees.
  struct Tile {
    U32 row, batch, head, kv_head;
    U32 rows_here, keys_here, diagonal;
    U32 begin, end;        // keys that some row sees
    U32 all_from, all_to;  // keys that all rows see
  };

  // The end of the keys that a row sees, and the first of them.
  U32 keys_end(const Tile& tile, const U32& row) {
    U32 end = tile.keys_here;
    if (o_.hiding) {
      end = min_signed(max_signed(row + tile.diagonal + right_, w_.constant(0)), end);
    }
    if ((o_.lengths & Wgmma::kRowLengths) != 0) end = select(row < tile.rows_here, end, w_.constant(0));
    return end;
  }
  U32 first_key(const Tile& tile, const U32& row) {
    if (!o_.hiding) return w_.constant(0);
    return max_signed(row + tile.diagonal - left_ + 1, w_.constant(0));
  }

  // The keys that all of `rows` rows see.
  void find_common_keys(Tile& tile, const U32& row, uint32_t rows) {
    const U32 last = min(row + (rows - 1), seq_q_ - 1);
    tile.all_from = first_key(tile, last);
    tile.all_to = keys_end(tile, row);
    if ((o_.lengths & Wgmma::kRowLengths) != 0) {
      tile.all_to = select(last < tile.rows_here, tile.all_to, w_.constant(0));
    }
  }

  // A length is at least 0, and at most that of the tensor.
  U32 length(const U64& lengths, const U32& batch, const U32& most) {
    const U32 wanted = w_.make<Type::u32>();
    w_.emit("ld.global.s32 {}, [{}];", wanted.text, multiply_add(batch, 4, lengths).text);
    return min_signed(max_signed(wanted, w_.constant(0)), most);
  }

  Tile locate(const U32& number) {
    Tile tile;
    const U32 group = number / row_tiles_;
    // With a causal mask the last rows see the most keys, so they start first.
    tile.row = (row_tiles_ - 1 - (number - group * row_tiles_)) * kRows;
    tile.batch = group / heads_;
    tile.head = group - tile.batch * heads_;
    tile.kv_head = tile.head / sharing_;
    tile.rows_here = seq_q_, tile.keys_here = seq_kv_, tile.diagonal = diagonal_;
    if ((o_.lengths & Wgmma::kRowLengths) != 0) tile.rows_here = length(row_lengths_, tile.batch, seq_q_);
    if ((o_.lengths & Wgmma::kKeyLengths) != 0) tile.keys_here = length(key_lengths_, tile.batch, seq_kv_);
    if ((o_.lengths & Wgmma::kDiagonalByLengths) != 0) tile.diagonal = tile.keys_here - tile.rows_here;
    U32 last = min(tile.row + (kRows - 1), seq_q_ - 1);
    if ((o_.lengths & Wgmma::kRowLengths) != 0) last = min(last, ptx::max(tile.rows_here, w_.constant(1)) - 1);
    tile.begin = first_key(tile, tile.row);
    // Pieces of bias and mask have at most 16 keys.
    if (o_.options() && o_.hiding) tile.begin = tile.begin & ~15u;
    tile.end = keys_end(tile, last);
    if ((o_.lengths & Wgmma::kRowLengths) != 0) {
      tile.end = select(tile.row < tile.rows_here, tile.end, w_.constant(0));
    }
    find_common_keys(tile, tile.row, kRows);
    return tile;
  }

  // Calls body(tile) for each of the block's tiles. Every other round goes backwards, so that blocks with long tiles
  // get short ones next.
  template <typename Body>
  void each_tile(const Body& body) {
    const U32 blocks = w_.special("%nctaid.x"), block = w_.special("%ctaid.x");
    const U32 first = w_.variable(w_.constant(0)), odd = w_.variable(w_.constant(0));
    w_.repeat([&] { return first < tiles_; },
              [&] {
                const U32 number = first + select(odd != 0u, blocks - 1 - block, block);
                w_.when(number < tiles_, [&] { body(locate(number)); });
                w_.assign(first, first + blocks);
                w_.assign(odd, odd ^ 1);
              });
  }

  U64 base_of(const Tensor& x, const Tile& tile, const U32& head) {
    return x.base + widen(tile.batch) * x.batch + widen(head) * x.head;
  }

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

  static uint32_t padded(uint32_t dim) { return (dim + 15) / 16 * 16; }

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

  const F32& score(uint32_t eight, uint32_t half, uint32_t i) const { return scores_[eight * 4 + half * 2 + i]; }

  void compute() {
    const U32 thread = thread_ - kLoaders;
    group_ = thread >> 7;
    quad_ = lane_ & 3;
    never_ = ptx::truth(w_, false), always_ = ptx::truth(w_, true);
    const U32 high = w_.variable(w_.constant(ptx::kMatrixHigh));
    // The descriptors' low words. Blocks of 64 elements of values follow one another along n.
    const U32 q = (memory_ + group_ * (kGroupRows * kRowBytes)) >> 4;
    const U32 q_first = q | 1u << 16;
    const U32 k_first = (stages_ >> 4) | 1u << 16;
    const U32 v_first = ((stages_ + o_.k_bytes()) >> 4) | (keys() * kRowBytes / 16) << 16;
    for (uint32_t i = 0; i < keys() / 2; ++i) scores_.push_back(w_.make<Type::f32>());
    for (uint32_t i = 0; i < o_.head_dim_v / 2; ++i) sums_.push_back(w_.make<Type::f32>());
    for (uint32_t i = 0; i < keys() / 4; ++i) weights_.push_back(w_.make<Type::u32>());
    softmax_.emplace(w_, o_.type, scale_, o_.bias != 0);
    for (ScoreRow& row : rows_) softmax_->make(row);
    if (o_.options()) {
      options_.read_numbers();
      options_.make(extras_);
    }
    own_key_ = o_.options() ? options_.first_key(quad_) : quad_ << 1;
    incomplete_ = w_.make<Type::u32>();
    // The second group lets the first one start.
    w_.when(group_ == 1u, [&] { w_.emit("bar.arrive 1, {};", kComputing); });
    const U32 own_turn = group_ + 1, others_turn = select(group_ == 0u, w_.constant(2), w_.constant(1));

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
                    w_.emit("bar.sync {}, {};", own_turn.text, kComputing);
                    w_.emit("wgmma.fence.sync.aligned;");
                    multiply_scores(q_first, k_first + next.stage * w_.constant(stage_bytes() / 16), high);
                    w_.emit("wgmma.commit_group.sync.aligned;");
                    ptx::wait_at(values_full_, ring);
                    read_flags(ring);
                    w_.emit("wgmma.fence.sync.aligned;");
                    multiply_values(v_first + ring.stage * w_.constant(stage_bytes() / 16), high);
                    w_.emit("wgmma.commit_group.sync.aligned;");
                    w_.emit("bar.arrive {}, {};", others_turn.text, kComputing);
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

  void start_rows(const Tile& tile, const U32& thread) {
    own_row_ = tile.row + group_ * kGroupRows + (((thread >> 5) & 3) << 4);  // the warp's first
    for (uint32_t half = 0; half < 2; ++half) {
      ScoreRow& row = rows_[half];
      const U32 at = own_row_ + (lane_ >> 2) + half * 8;
      row.end = keys_end(tile, at) - own_key_;
      if (o_.hiding) row.first = first_key(tile, at) - own_key_;
      softmax_->start(row);
      if (o_.options()) options_.start(extras_[half], tile.batch, tile.head, min(at, seq_q_ - 1), quad_);
    }
    for (const F32& sum : sums_) w_.assign(sum, number(w_, 0));
    w_.assign(incomplete_, w_.constant(0));
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

  // How many of this thread's keys from `key` on exist, if positive.
  U32 keys_left(const Tile& tile, const U32& key) { return tile.keys_here - key - own_key_; }

  void load_extras(const Tile& tile, const U32& key) {
    if (o_.options()) options_.load(extras_, key, keys_left(tile, key));
  }

  // Turns scores into weights, which are not rounded yet. Returns whether sums have to be rescaled.
  Pred soften(const Tile& tile, const U32& key) {
    if (o_.options()) options_.apply(scores_, extras_, key, keys_left(tile, key), rows_[0], rows_[1]);
    const Label seen = w_.label();
    Pred hides = tile.all_to < key + keys();
    if (o_.hiding) hides = hides || key < tile.all_from;
    w_.jump_unless(hides, seen);
    hide_scores(scores_, rows_, key, o_.options());
    w_.place(seen);
    std::array<Pred, 2> above;
    std::array<F32, 2> largest;
    for (uint32_t half = 0; half < 2; ++half) {
      std::array<F32, 2> most{score(0, half, 0), score(0, half, 1)};
      for (uint32_t eight = 1; eight < keys() / 8; ++eight) {
        for (uint32_t i = 0; i < 2; ++i) most[i] = max_with_nan(most[i], score(eight, half, i));
      }
      largest[half] = max_with_nan(most[0], most[1]);
      above[half] = w_.make<Type::pred>();
      w_.emit("setp.gtu.f32 {}, {}, {};", above[half].text, largest[half].text, rows_[half].limit.text);
    }
    const Pred far = w_.make<Type::pred>();
    w_.emit("vote.sync.any.pred {}, {}, 0xffffffff;", far.text, (above[0] || above[1]).text);
    w_.when(far, [&] {
      for (uint32_t half = 0; half < 2; ++half) softmax_->raise(rows_[half], largest[half]);
    });
    if (o_.bias == 0) {
      weigh(true);
      return far;
    }
    const Pred distant = w_.make<Type::pred>();
    const Label away = w_.label(), done = w_.label();
    w_.emit("vote.sync.any.pred {}, {}, 0xffffffff;", distant.text, ((rows_[0].distant | rows_[1].distant) != 0u).text);
    w_.jump_if(distant, away);
    weigh(true);
    w_.jump(done);
    w_.place(away);
    weigh(false);
    w_.place(done);
    return far;
  }

  void weigh(bool near) {
    for (uint32_t half = 0; half < 2; ++half) {
      ScoreRow& row = rows_[half];
      std::array<F32, 2> total;
      for (uint32_t eight = 0; eight < keys() / 8; ++eight) {
        for (uint32_t i = 0; i < 2; ++i) {
          const F32& x = score(eight, half, i);
          w_.assign(x, ptx::power_of_2(softmax_->exponent(row, x, near)));
          total[i] = eight == 0 ? x : total[i] + x;
        }
      }
      w_.assign(row.total, row.total + (total[0] + total[1]));
    }
  }

  void rescale() {
    for (uint32_t i = 0; i < sums_.size(); ++i) w_.assign(sums_[i], sums_[i] * rows_[i / 2 % 2].shrink);
  }

  void pack_weights() {
    for (uint32_t i = 0; i < weights_.size(); ++i) {
      const uint32_t eight = i / 2, half = i % 2;
      w_.assign(weights_[i], ptx::packed_pair(o_.type, score(eight, half, 0), score(eight, half, 1)));
    }
  }

  // --- the end of a tile ------------------------------------------------------------------------------------------

  void store(const Tile& tile) {
    const U64 base = base_of(out_, tile, tile.head);
    for (uint32_t half = 0; half < 2; ++half) {
      ScoreRow& row = rows_[half];
      for (const uint32_t distance : {1u, 2u})
        w_.assign(row.total, row.total + ptx::from_neighbour(row.total, distance));
      const F32 inverse = softmax_->inverse(row.total);
      const U32 at = own_row_ + (lane_ >> 2) + half * 8;
      const Pred exists = at < seq_q_;
      const auto result = [&](uint32_t eight, uint32_t i) {
        return softmax_->in_range(sums_[eight * 4 + half * 2 + i], inverse);
      };
      const U64 begin = multiply_add(at, out_.row, base);
      const U64 pairs = multiply_add(quad_, 4, begin), eights = multiply_add(quad_, 16, begin);
      const Pred odd = (quad_ & 1) != 0u, high = (quad_ & 2) != 0u;
      store_row(o_.type, {pairs, eights, odd, high, exists}, o_.head_dim_v / 8, result);
      if (o_.lse) {
        store_lse(tile, at, (quad_ == 0u) && exists, softmax_->log_of_sum(row, row.total), row.total);
      }
      if (o_.options()) {
        check_sums(row, half);
      } else {
        softmax_->check_range(row);
      }
    }
    compute_again(tile);
  }

  // A hidden value may have been NaN or infinite.
  void check_sums(const ScoreRow& row, uint32_t half) {
    F32 zero = number(w_, 0);
    for (uint32_t i = half * 2; i < sums_.size(); i += 4) {
      for (uint32_t e = 0; e < 2; ++e) zero = multiply_add(sums_[i + e], number(w_, 0), zero);
    }
    w_.assign(row.again, select(zero == number(w_, 0), row.again, w_.constant(1)));
  }

  // exponent: the logarithm to base two.
  void store_lse(const Tile& tile, const U32& row, const Pred& stores, const F32& exponent, const F32& total) {
    F32 result = softmax_->saturated(exponent * number(w_, 0.6931471805599453f));
    result = select(total == number(w_, 0), number(w_, -kInfinity), result);
    const U64 head = widen(tile.batch) * widen(heads_) + widen(tile.head);
    const U64 at = (head * widen(seq_q_) + widen(row)) * U64{&w_, "4", true, 4} + lse_;
    w_.emit(if_true(stores), "st.global.f32 [{}], {};", at.text, result.text);
  }

  // The warp computes those of its rows again that need it, key by key. Each lane has every 32nd element.
  void compute_again(const Tile& tile) {
    std::array<U32, 2> wanted;
    for (uint32_t half = 0; half < 2; ++half) {
      const Pred mine = (partial() ? rows_[half].again | incomplete_ : rows_[half].again) != 0u;
      wanted[half] = w_.make<Type::u32>();
      w_.emit("vote.sync.ballot.b32 {}, {}, 0xffffffff;", wanted[half].text, mine.text);
    }
    w_.when((wanted[0] | wanted[1]) != 0u, [&] {
      w_.emit("bar.warp.sync 0xffffffff;");  // what the lanes stored comes first
      const U32 i = w_.variable(w_.constant(0));
      w_.repeat([&] { return i < 16u; },
                [&] {
                  const U32 bits = w_.make<Type::u32>();
                  w_.emit("shr.u32 {}, {}, {};", bits.text, select(i < 8u, wanted[0], wanted[1]).text,
                          ((i & 7) << 2).text);
                  const U32 row = own_row_ + i;
                  w_.when((bits & 15) != 0u && row < seq_q_, [&] { compute_again(tile, row); });
                  w_.assign(i, i + 1);
                });
    });
  }

  void compute_again(const Tile& tile, const U32& row) {
    const auto lane_at = [&](const U64& base) { return multiply_add(lane_, 2, base); };
    OnlineSoftmax::Applied applied;
    if (o_.options()) {
      applied = [&, extras = options_.find(tile.batch, tile.head, row)](const F32& score, const U32& key) {
        return options_.applied(*softmax_, score, extras, key);
      };
    }
    const auto [sum, reference, total] =
        softmax_->one_by_one(multiply_add(row, q_.row, lane_at(base_of(q_, tile, tile.head))),
                             {lane_at(base_of(k_, tile, tile.kv_head)), k_.row, o_.head_dim},
                             {lane_at(base_of(v_, tile, tile.kv_head)), v_.row, o_.head_dim_v}, lane_,
                             first_key(tile, row), keys_end(tile, row), applied);
    const F32 inverse = softmax_->inverse(total);
    const U64 to = multiply_add(row, out_.row, lane_at(base_of(out_, tile, tile.head)));
    for (uint32_t n = 0; n < sum.size(); ++n) {
      const F32 result = softmax_->in_range(sum[n], inverse);
      const ptx::B16 rounded = ptx::halves_of(ptx::packed_pair(o_.type, result, result))[0];
      const bool whole = (n + 1) * kWarp <= o_.head_dim_v;
      const ptx::Guard guard = whole ? ptx::Guard{} : if_true(lane_ < o_.head_dim_v - n * kWarp);
      w_.emit(guard, "st.global.b16 [{}+{}], {};", to.text, n * kWarp * 2, rounded.text);
    }
    if (o_.lse) {
      F32 exponent = multiply_add(reference, scale_, softmax_->log_of_2(total) - number(w_, softmax_->headroom()));
      // An infinite score counts as the largest f32.
      exponent = select(number(w_, kLargest) <= reference, number(w_, kInfinity), exponent);
      // NaN, unless the row is.
      exponent = select(total == total, exponent, total);
      store_lse(tile, row, elected_, exponent, total);
    }
  }

  const Wgmma o_;
  Writer w_;
  ScoreOptions options_;
  Tensor q_{
      "q", offsetof(Wgmma::Push, q_batch), offsetof(Wgmma::Push, q_head), offsetof(Wgmma::Push, q_row), {}, {}, {}, {}};
  Tensor k_{
      "k", offsetof(Wgmma::Push, k_batch), offsetof(Wgmma::Push, k_head), offsetof(Wgmma::Push, k_row), {}, {}, {}, {}};
  Tensor v_{
      "v", offsetof(Wgmma::Push, v_batch), offsetof(Wgmma::Push, v_head), offsetof(Wgmma::Push, v_row), {}, {}, {}, {}};
  Tensor out_{
      "o", offsetof(Wgmma::Push, o_batch), offsetof(Wgmma::Push, o_head), offsetof(Wgmma::Push, o_row), {}, {}, {}, {}};
  U64 lse_, row_lengths_, key_lengths_;
  U32 seq_q_, seq_kv_, heads_, sharing_, row_tiles_, tiles_, diagonal_, left_, right_;
  F32 scale_;
  std::optional<OnlineSoftmax> softmax_;
  U32 thread_, lane_, group_, quad_, own_row_;
  U32 own_key_;  // the first of a step's keys that this thread has
  std::array<ScoreOptions::Rows, 2> extras_;
  Pred elected_, never_, always_;
  U32 memory_, stages_, flags_;                                              // queries, then the stages
  U32 keys_full_, keys_empty_, values_full_, values_empty_, queries_empty_;  // barriers
  std::vector<F32> scores_, sums_;
  std::vector<U32> weights_;      // pairs
  std::array<ScoreRow, 2> rows_;  // a thread's, 8 apart
  U32 incomplete_;                // values of hidden keys were replaced
};

NativeKernel write_wgmma(const KernelRequest& request) {
  const Wgmma options = Wgmma::read(request);
  return {Kernel(options).write(), "attention_wgmma", Wgmma::kThreads, options.shared_bytes()};
}

constexpr auto kDims = ptx::multiples<Wgmma::kPiece, Wgmma::kMaxHeadDim>();
constexpr LegalRange kKeys[] = {{32, 32}, {48, 48}, {64, 64}, {80, 80}, {96, 96}, {112, 112}, {128, 128}};
constexpr LegalRange kLengths[] = {{0, 3}, {5, 7}};
constexpr LegalRange kBias[] = {{0, 0}, {TUFF_F32, TUFF_F32}, {TUFF_F16, TUFF_BF16}};
constexpr DefineInfo kDefines[] = {{"BIAS", kBias},   {"CAP", kFlag},    {"HEAD_DIM", kDims},   {"HEAD_DIM_V", kDims},
                                   {"HIDING", kFlag}, {"KEYS", kKeys},   {"LENGTHS", kLengths}, {"LSE", kFlag},
                                   {"MASK", kFlag},   {"PIECES", kFlag}, {"TYPE", kHalves}};

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
  made.define("BIAS", bias).define("CAP", cap).define("MASK", mask).define("PIECES", pieces);
  made.define("HEAD_DIM", head_dim).define("HEAD_DIM_V", head_dim_v).define("HIDING", hiding);
  made.define("KEYS", keys).define("LENGTHS", lengths).define("LSE", lse).define("TYPE", type);
  return made;
}

Wgmma Wgmma::read(const KernelRequest& request) {
  Wgmma options;
  options.type = static_cast<int32_t>(request.value_of("TYPE"));
  options.head_dim = static_cast<uint32_t>(request.value_of("HEAD_DIM"));
  options.head_dim_v = static_cast<uint32_t>(request.value_of("HEAD_DIM_V"));
  options.keys = static_cast<uint32_t>(request.value_of("KEYS"));
  options.hiding = request.value_of("HIDING") != 0;
  options.lengths = static_cast<uint32_t>(request.value_of("LENGTHS"));
  options.lse = request.value_of("LSE") != 0;
  options.bias = static_cast<int32_t>(request.value_of("BIAS"));
  options.mask = request.value_of("MASK") != 0;
  options.cap = request.value_of("CAP") != 0;
  options.pieces = request.value_of("PIECES") != 0;
  if (options.keys > options.max_keys()) {
    fail(TUFF_ERROR_INTERNAL, "attention_wgmma: {} keys for head_dim {} and {}", options.keys, options.head_dim,
         options.head_dim_v);
  }
  return options;
}

const KernelSource wgmma_source = {"attention_wgmma", nullptr, kDefines, write_wgmma};

}  // namespace tuff::attention
