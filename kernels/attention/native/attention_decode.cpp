// O = softmax(scale * Q * K^T) * V for few query rows, which is bound by memory: a block computes a part of the keys of
// one kv head for a tile of the rows of all heads that share it, and attention_merge.comp adds up the parts.
//
//              16 keys of a warp                 Each of the four warps works by itself: it takes every fourth step of
//             +------------------+               16 keys, and keeps a ring of steps on their way from memory (cp.async)
//   head_dim  |      keys^T      |               of its own, so that nothing waits for another warp until the end.
//       +---+ +------------------+
//    16 | q | |      scores      |               The tile has 16 rows, as mma.sync has, or 8 and 8 of zeros: row i of
//       +---+ +------------------+               head h is row i * sharing + h. The layout of scores in registers is
//             +------------------+               the one in which the weights are read.
//             |      values      |
//             +------------------+                 load       2   3   4   ...
//             |     outputs      |                 multiply   0   1   2   ...
//             +------------------+
//
// Tiles of 32 and 64 rows have teams of two and four warps, which load a step together and compute 16 rows each.
//
// Keys and values that are quantised arrive as they are stored, and are dequantised where the operands are read.
//
// At the end the teams' outputs are added up in shared memory. online_softmax.hpp explains weights and references, and
// which rows are computed again: here those of the block's part. score_options.hpp explains bias, mask and soft cap.
// Keys that some rows see and others do not have weight 0 there: if such a value is NaN, the row's sums are, and it is
// computed again.
#include "kernels/attention/native/attention_decode.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/attention/attention.hpp"
#include "kernels/attention/native/attention_wgmma.hpp"
#include "kernels/attention/native/online_softmax.hpp"
#include "kernels/attention/native/score_options.hpp"
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
using ptx::kWarp;
using ptx::max_signed;
using ptx::max_with_nan;
using ptx::min_signed;
using ptx::multiply_add;
using ptx::number;
using ptx::Pred;
using ptx::Type;
using ptx::U32;
using ptx::U64;
using ptx::Writer;

constexpr uint32_t kMaxStages = 6;       // of a warp of a team
constexpr uint32_t kStatistics = 3 * 4;  // a row's reference, total and `again`, of a team
// With bf16, scores from here on may have left the range of f32; see the planner on the scale.
constexpr float kLargestScore = 0x1p100f;
// Parts of f16, whose weights have no headroom of 2^-24, get it when they are stored: attention_merge.comp expects it.
constexpr float kPartHeadroom = 0x1p-24f;

class Kernel {
 public:
  explicit Kernel(const Decode& options)
      : o_(options),
        w_("sm_90a", "attention_decode"),
        options_(w_, {options.type, options.bias, options.mask, options.cap, options.pieces, Decode::kKeys}) {}

  std::string write() {
    q_ = w_.pointer("q"), k_ = w_.pointer("k"), v_ = w_.pointer("v"), out_ = w_.pointer("o");
    if ((o_.lengths & Wgmma::kRowLengths) != 0) row_lengths_ = w_.pointer("q_lengths");
    if ((o_.lengths & Wgmma::kKeyLengths) != 0) key_lengths_ = w_.pointer("kv_lengths");
    if (o_.options()) options_.declare();
    w_.block("push", sizeof(Decode::Push));
    thread_ = w_.special("%tid.x");
    lane_ = thread_ & (kWarp - 1), warp_ = thread_ >> 5, quad_ = lane_ & 3, group_ = lane_ >> 2;
    team_ = warp_ / o_.team(), own_row_ = (warp_ & (o_.team() - 1)) * Decode::kWarpRows + group_;
    own_key_ = o_.options() ? options_.first_key(quad_) : quad_ << 1;
    memory_ = ptx::aligned_memory(w_);
    sharing_ = number_at(offsetof(Decode::Push, sharing));
    q_row_ = number_at(offsetof(Decode::Push, q_row)), o_row_ = number_at(offsetof(Decode::Push, o_row));
    k_row_ = number_at(offsetof(Decode::Push, k_row)), v_row_ = number_at(offsetof(Decode::Push, v_row));
    locate();
    softmax_.emplace(w_, o_.type, w_.parameter_float("push", offsetof(Decode::Push, scale_log2)), o_.bias != 0);
    if (o_.options()) {
      options_.read_numbers();
      options_.make(extras_);
    }
    if (o_.k_stored != 0) stored_keys_.emplace(w_, o_.k_stored, o_.type);
    if (o_.v_stored != 0) stored_values_.emplace(w_, o_.v_stored, o_.type);
    read_queries();
    for (uint32_t i = 0; i < o_.head_dim_v / 2; ++i) sums_.push_back(w_.variable(number(w_, 0)));
    for (uint32_t half = 0; half < halves(); ++half) {
      softmax_->make(rows_[half]);
      softmax_->start(rows_[half]);
      start_row(half);
    }
    each_step();
    add_up();
    return w_.text(Decode::kThreads);
  }

 private:
  U32 number_at(size_t offset) { return w_.parameter("push", offset); }
  uint32_t halves() const { return o_.rows == 8 ? 1 : 2; }
  uint32_t team_keys() const { return Decode::kKeys * o_.teams(); }  // from a team's step to its next

  // The end of the keys that a query row sees, and the first of them: mirrors attention_common.glsl.
  U32 keys_end(const U32& row) {
    const U32 zero = w_.constant(0);
    const U32 end =
        min_signed(max_signed(row + diagonal_ + number_at(offsetof(Decode::Push, right)), zero), keys_here_);
    return (o_.lengths & Wgmma::kRowLengths) != 0 ? select(row < rows_here_, end, zero) : end;
  }
  U32 first_key(const U32& row) {
    return max_signed(row + diagonal_ - number_at(offsetof(Decode::Push, left)) + 1, w_.constant(0));
  }

  // A row of the tile: a head's query row. Those that do not exist repeat the last one.
  struct Place {
    U32 head, row;  // head: of those that share keys
  };
  Place place_of(const U32& row) {
    const U32 all = ptx::min(tile_row_ + row, all_rows_ - 1), query_row = all / sharing_;
    return {all - query_row * sharing_, query_row};
  }

  // Which keys this block reads, for which rows.
  void locate() {
    const U32 block = w_.special("%ctaid.x"), parts = number_at(offsetof(Decode::Push, parts));
    const U32 tile = block / parts, part = block - tile * parts;
    const U32 row_tiles = number_at(offsetof(Decode::Push, row_tiles)), group = tile / row_tiles;
    const U32 kv_heads = number_at(offsetof(Decode::Push, kv_heads));
    batch_ = group / kv_heads;
    const U32 kv_head = group - batch_ * kv_heads;
    first_head_ = kv_head * sharing_;
    const U32 seq_q = number_at(offsetof(Decode::Push, seq_q)), seq_kv = number_at(offsetof(Decode::Push, seq_kv));
    all_rows_ = seq_q * sharing_;
    tile_row_ = (tile - group * row_tiles) * o_.rows;
    keys_here_ = seq_kv, diagonal_ = number_at(offsetof(Decode::Push, diagonal)), rows_here_ = seq_q;
    if ((o_.lengths & Wgmma::kRowLengths) != 0) rows_here_ = length(row_lengths_, batch_, seq_q);
    if ((o_.lengths & Wgmma::kKeyLengths) != 0) keys_here_ = length(key_lengths_, batch_, seq_kv);
    if ((o_.lengths & Wgmma::kDiagonalByLengths) != 0) diagonal_ = keys_here_ - rows_here_;
    find_keys(part);
    const auto base = [&](const U64& from, size_t batch_at, const U32& head, size_t head_at) {
      return from + widen(batch_) * w_.parameter64("push", batch_at) + widen(head) * w_.parameter64("push", head_at);
    };
    q_head_ = w_.parameter64("push", offsetof(Decode::Push, q_head));
    q_ = base(q_, offsetof(Decode::Push, q_batch), first_head_, offsetof(Decode::Push, q_head));
    k_ = base(k_, offsetof(Decode::Push, k_batch), kv_head, offsetof(Decode::Push, k_head));
    v_ = base(v_, offsetof(Decode::Push, v_batch), kv_head, offsetof(Decode::Push, v_head));
    if (!o_.parts) {
      o_head_ = w_.parameter64("push", offsetof(Decode::Push, o_head));
      out_ = base(out_, offsetof(Decode::Push, o_batch), first_head_, offsetof(Decode::Push, o_head));
      return;
    }
    const uint32_t numbers = o_.rows * o_.head_dim_v + (2 * o_.rows + 3) / 4 * 4;
    out_ = multiply_add(block, numbers * 4, out_);
  }

  // The keys of the part that some row of the tile sees, and those that all rows see.
  void find_keys(const U32& part) {
    const U32 first_row = place_of(w_.constant(0)).row, last_row = place_of(w_.constant(o_.rows - 1)).row;
    U32 last_here = last_row;
    if ((o_.lengths & Wgmma::kRowLengths) != 0) {
      last_here = ptx::min(last_row, ptx::max(rows_here_, w_.constant(1)) - 1);
    }
    U32 end = keys_end(last_here);
    if ((o_.lengths & Wgmma::kRowLengths) != 0) end = select(first_row < rows_here_, end, w_.constant(0));
    const U32 part_keys = number_at(offsetof(Decode::Push, part_keys)), part_first = part * part_keys;
    U32 begin = ptx::max(part_first, first_key(first_row));
    // Pieces of bias and mask have at most 16 keys, those of blocks that follow each other at most 8.
    if (o_.options() || o_.packed()) begin = begin & ~15u;
    begin_ = w_.variable(begin);
    end_ = w_.variable(ptx::min(part_first + part_keys, end));
    if (!o_.hiding) return;
    all_from_ = w_.variable(first_key(last_row));
    all_to_ = keys_end(first_row);
    if ((o_.lengths & Wgmma::kRowLengths) != 0) {
      all_to_ = select(last_row < rows_here_, all_to_, w_.constant(0));
    }
    all_to_ = w_.variable(ptx::min(all_to_, end_));
  }

  // A length is at least 0, and at most that of the tensor.
  U32 length(const U64& lengths, const U32& batch, const U32& most) {
    const U32 wanted = w_.make<Type::u32>();
    w_.emit("ld.global.s32 {}, [{}];", wanted.text, multiply_add(batch, 4, lengths).text);
    return min_signed(max_signed(wanted, w_.constant(0)), most);
  }

  U64 query_of(const Place& place) { return q_ + widen(place.head) * q_head_ + ptx::multiply_wide(place.row, q_row_); }

  // Pairs of elements of rows lane / 4 and lane / 4 + 8, as mma.sync takes them.
  void read_queries() {
    for (uint32_t half = 0; half < halves(); ++half) {
      const bool stored = stored_keys_.has_value();
      const uint32_t per_quad = stored ? stored_keys_->pairs_per_quad() * 2 : 4;
      const U64 at = multiply_add(quad_, per_quad, query_of(place_of(own_row_ + half * 8)));
      for (uint32_t i = 0; i < o_.head_dim / 8; ++i) {
        const U32 pair = w_.make<Type::u32>();
        const uint32_t place =
            stored ? (i / 4 * StoredRows::kNumbers + stored_keys_->place_of_pair(i % 4)) * 2 : i * 16;
        w_.emit("ld.global.b32 {}, [{}+{}];", pair.text, at.text, place);
        queries_[half].push_back(pair);
      }
    }
    if (halves() == 1) queries_[1].assign(queries_[0].size(), w_.variable(w_.constant(0)));
  }

  // Which of this thread's keys a row sees, and its bias and mask.
  void start_row(uint32_t half) {
    ScoreRow& row = rows_[half];
    const Place place = place_of(own_row_ + half * 8);
    row.end = end_ - own_key_;
    if (o_.hiding) {
      row.end = w_.variable(min_signed(keys_end(place.row), end_) - own_key_);
      row.first = w_.variable(first_key(place.row) - own_key_);
    }
    if (o_.options()) options_.start(extras_[half], batch_, first_head_ + place.head, place.row, quad_);
  }

  // --- loading ------------------------------------------------------------------------------------------------------

  // What a thread loads of 16 rows of a tensor: one piece of every `rows_at_once`-th.
  struct Loads {
    U64 at, between, step;
    U32 to, row;
    Pred exists;  // if there are fewer pieces than threads
    uint32_t rows_at_once, row_bytes, piece;
  };
  // `place` of the first row in a stage.
  Loads prepare(const Decode::Rows& rows, const U64& base, const U32& row_stride, uint32_t place) {
    const uint32_t piece_bytes = rows.piece, row_bytes = rows.stage_bytes();
    if (piece_bytes == 0) return prepare_packed(base, row_bytes, place);
    Loads all;
    const uint32_t pieces = rows.bytes() / piece_bytes, lanes = std::bit_ceil(pieces);
    const U32 thread = thread_of_team(), piece = thread & (lanes - 1);
    all.rows_at_once = team_threads() / lanes;
    all.row_bytes = row_bytes;
    all.piece = piece_bytes;
    all.row = thread / lanes;
    const U32 first = begin_ + team_ * w_.constant(Decode::kKeys) + all.row;
    if (pieces != lanes) all.exists = piece < pieces;
    if (all.rows_at_once > Decode::kKeys) {
      const Pred row = all.row < Decode::kKeys;
      all.exists = pieces != lanes ? all.exists && row : row;
    }
    all.at = w_.variable(multiply_add(first, row_stride, multiply_add(piece, piece_bytes, base)));
    all.between = w_.variable(ptx::multiply_wide(row_stride, w_.constant(all.rows_at_once)));
    all.step = w_.variable(ptx::multiply_wide(row_stride, w_.constant(team_keys())));
    all.to = all.row * row_bytes + (ring_ + place + piece * w_.constant(piece_bytes));
    return all;
  }
  // Of rows that follow each other: every `threads`-th piece of 16 bytes of all of them.
  Loads prepare_packed(const U64& base, uint32_t row_bytes, uint32_t place) {
    Loads all;
    const U32 thread = thread_of_team(), first = begin_ + team_ * w_.constant(Decode::kKeys);
    all.piece = 0, all.row_bytes = row_bytes, all.rows_at_once = 0;
    all.row = w_.variable(thread << 4);  // its place in the rows
    all.at = w_.variable(multiply_add(first, row_bytes, multiply_add(thread, 16, base)));
    all.step = w_.variable(widen(w_.constant(team_keys() * row_bytes)));
    all.to = w_.variable(all.row + (ring_ + place));
    return all;
  }

  // Starts loading 16 rows from `key` on. Rows from the part's end on become zeros.
  void load(const Loads& all, const U32& stage, const U32& key) {
    if (all.piece == 0) return load_packed(all, stage, key);
    const U32 to = all.to + stage, first = key + all.row;
    U64 from = all.at;
    for (uint32_t row = 0; row < Decode::kKeys; row += all.rows_at_once) {
      if (row != 0) from = from + all.between;
      const U32 bytes = select(first + row < end_, w_.constant(all.piece), w_.constant(0));
      const ptx::Guard guard = all.exists.writer != nullptr ? if_true(all.exists) : ptx::Guard{};
      copy(guard, to, row * all.row_bytes, from, 0, all.piece, bytes);
    }
    w_.assign(all.at, all.at + all.step);
  }
  void load_packed(const Loads& all, const U32& stage, const U32& key) {
    const uint32_t threads = team_threads(), pieces = all.row_bytes * Decode::kKeys / 16;
    const U32 to = all.to + stage, left = ptx::min(end_ - key, w_.constant(Decode::kKeys)) * all.row_bytes - all.row;
    for (uint32_t i = 0; i < pieces; i += threads) {
      const U32 bytes = min_signed(max_signed(left - i * 16, w_.constant(0)), w_.constant(16));
      const ptx::Guard guard = i + threads > pieces ? if_true(all.row < (pieces - i) * 16) : ptx::Guard{};
      copy(guard, to, i * 16, all.at, i * 16, 16, bytes);
    }
    w_.assign(all.at, all.at + all.step);
  }
  // `bytes` of a piece of memory, and zeros for the rest of it.
  void copy(const ptx::Guard& guard, const U32& to, uint32_t to_offset, const U64& from, uint32_t from_offset,
            uint32_t piece, const U32& bytes) {
    w_.emit(guard, "cp.async.{}.shared.global.L2::128B [{}+{}], [{}+{}], {}, {};", piece == 16 ? "cg" : "ca", to.text,
            to_offset, from.text, from_offset, piece, bytes.text);
  }
  uint32_t team_threads() const { return o_.team() * kWarp; }
  U32 thread_of_team() const { return thread_ & (team_threads() - 1); }

  void each_step() {
    const uint32_t stages = o_.stages(), ahead = stages - 1, stage_bytes = o_.stage_bytes();
    ring_ = w_.variable(memory_ + team_ * w_.constant(o_.team_bytes()));
    const uint32_t k_row = o_.keys().stage_bytes(), v_row = o_.values().stage_bytes(), v_place = Decode::kKeys * k_row;
    const Loads keys = prepare(o_.keys(), k_, k_row_, 0), values = prepare(o_.values(), v_, v_row_, v_place);
    const U32 key = w_.variable(begin_ + team_ * w_.constant(Decode::kKeys));
    ScoreOptions::Rows of_lane;
    if (o_.bias != 0 || o_.mask) {
      const Place place = place_of(own_row_ - group_ + (lane_ & (Decode::kWarpRows - 1)));
      of_lane = options_.find(batch_, first_head_ + place.head, place.row);
    }
    const auto load_step = [&](const U32& stage, const U32& first) {
      w_.when(first < end_, [&] {
        load(keys, stage, first);
        load(values, stage, first);
        if (o_.bias != 0 || o_.mask) options_.prefetch(of_lane, first, end_);
      });
      w_.emit("cp.async.commit_group;");
    };
    for (uint32_t i = 0; i < ahead; ++i) load_step(w_.constant(i * stage_bytes), key + i * team_keys());
    // ldmatrix: lanes 8 i to 8 i + 7 have the addresses of the rows of matrix i. For keys, matrices 0 and 1 are of the
    // same keys; for values, matrices 0 and 1 are of the same columns.
    const U32 matrix = lane_ >> 3, in_matrix = lane_ & 7;
    const auto key_of = [&](const U32& eight) { return key_in_order(in_matrix + (eight << 3)); };
    U32 read_keys, read_values;
    if (o_.k_stored == 0) {
      read_keys = w_.variable(ring_ + key_of(matrix >> 1) * k_row + ((matrix & 1) << 4));
    } else {
      const auto place = [&](uint32_t eight) { return key_in_order(group_ + 8 * eight) * k_row; };
      for (uint32_t eight = 0; eight < 2; ++eight) key_rows_[eight] = w_.variable(ring_ + place(eight));
    }
    if (o_.v_stored == 0) {
      read_values = w_.variable(ring_ + v_place + key_of(matrix & 1) * v_row + ((matrix >> 1) << 4));
    } else {
      for (uint32_t i = 0; i < 4; ++i) {
        const U32 of_value = key_in_order((quad_ << 1) + (i / 2 * 8 + i % 2));
        value_rows_[i] = w_.variable(ring_ + v_place + of_value * v_row);
      }
    }
    const U32 stage = w_.variable(w_.constant(0));
    w_.repeat([&] { return key < end_; },
              [&] {
                if (o_.options()) options_.load(extras_, key, end_ - key - own_key_);
                w_.emit("cp.async.wait_group {};", ahead - 1);
                join_team();  // all threads' pieces have arrived, and the last step has been read
                const U32 free = select(stage == 0u, w_.constant(ahead * stage_bytes), stage - stage_bytes);
                load_step(free, key + ahead * team_keys());
                o_.k_stored == 0 ? multiply_keys(read_keys + stage) : multiply_stored_keys(stage);
                soften(key);
                o_.v_stored == 0 ? multiply_values(read_values + stage) : multiply_stored_values(stage);
                const U32 next = stage + stage_bytes;
                w_.assign(stage, select(next == stages * stage_bytes, w_.constant(0), next));
                w_.assign(key, key + team_keys());
              });
    w_.emit("cp.async.wait_all;");
  }

  // Waits until all threads of the team are here.
  void join_team() {
    if (o_.team() == 1) {
      w_.emit("bar.warp.sync 0xffffffff;");
    } else {
      w_.emit("bar.sync {}, {};", (team_ + 1).text, o_.team() * kWarp);
    }
  }

  // The key of a step that is the operands' number so and so.
  U32 key_in_order(const U32& row) const { return o_.options() ? options_.key_of_row(row) : row; }

  // --- multiplying --------------------------------------------------------------------------------------------------

  std::array<U32, 4> load_matrices(const U32& at, uint32_t offset, const char* transposed) {
    std::array<U32, 4> x;
    for (U32& one : x) one = w_.make<Type::u32>();
    w_.emit("ldmatrix.sync.aligned.m8n8.x4{}.shared.b16 {{{}, {}, {}, {}}}, [{}+{}];", transposed, x[0].text, x[1].text,
            x[2].text, x[3].text, at.text, offset);
    return x;
  }

  // Eight keys each: of rows lane / 4 and lane / 4 + 8, keys 2 * (lane % 4) and the next. With options, keys are in the
  // order of ScoreOptions.
  const F32& score(uint32_t eight, uint32_t half, uint32_t i) const { return scores_[eight * 4 + half * 2 + i]; }

  void start_scores() {
    scores_.clear();
    for (uint32_t i = 0; i < Decode::kKeys / 2; ++i) scores_.push_back(w_.variable(number(w_, 0)));
  }
  std::array<U32, 4> queries_of(uint32_t i) const {
    return {queries_[0][2 * i], queries_[1][2 * i], queries_[0][2 * i + 1], queries_[1][2 * i + 1]};
  }

  void multiply_keys(const U32& at) {
    start_scores();
    for (uint32_t i = 0; i < o_.head_dim / 16; ++i) {
      const std::array<U32, 4> b = load_matrices(at, i * 32, ""), a = queries_of(i);
      ptx::multiply_16x8(o_.type, &scores_[0], a, b[0], b[1]);
      ptx::multiply_16x8(o_.type, &scores_[4], a, b[2], b[3]);
    }
  }

  void multiply_stored_keys(const U32& stage) {
    start_scores();
    for (uint32_t eight = 0; eight < 2; ++eight) {
      const U32 row = key_rows_[eight] + stage;
      for (uint32_t block = 0; block < o_.head_dim / StoredRows::kNumbers; ++block) {
        const auto operands = stored_keys_->keys(row, quad_, block);
        for (uint32_t i = 0; i < 2; ++i) {
          ptx::multiply_16x8(o_.type, &scores_[4 * eight], queries_of(2 * block + i), operands[i].low,
                             operands[i].high);
        }
      }
    }
  }

  // Rows with scores of bf16 that may have left the range of f32 are computed again. ScoreOptions sees to it otherwise.
  void check_scores() {
    if (o_.type != TUFF_BF16 || o_.options()) return;
    for (uint32_t half = 0; half < halves(); ++half) {
      F32 largest = ptx::magnitude(score(0, half, 0));
      for (uint32_t i = 1; i < 4; ++i) {
        largest = largest_of(largest, ptx::magnitude(score(i / 2, half, i % 2)));
      }
      const U32& again = rows_[half].again;
      w_.assign(again, select(number(w_, kLargestScore) <= largest, w_.constant(1), again));
    }
  }

  // Turns scores into weights.
  void soften(const U32& key) {
    check_scores();
    if (o_.options()) options_.apply(scores_, extras_, key, end_ - key - own_key_, rows_[0], rows_[1]);
    Pred hides = (o_.hiding ? all_to_ : end_) < key + Decode::kKeys;
    if (o_.hiding) hides = hides || key < all_from_;
    w_.when(hides, [&] { hide_scores(scores_, std::span(rows_).first(halves()), key, o_.options()); });
    Pred any_above;
    std::array<F32, 2> largest;
    for (uint32_t half = 0; half < halves(); ++half) {
      const F32 one = max_with_nan(score(0, half, 0), score(0, half, 1));
      const F32 other = max_with_nan(score(1, half, 0), score(1, half, 1));
      largest[half] = max_with_nan(one, other);
      const Pred above = w_.make<Type::pred>();
      w_.emit("setp.gtu.f32 {}, {}, {};", above.text, largest[half].text, rows_[half].limit.text);
      any_above = half == 0 ? above : any_above || above;
    }
    const Pred far = w_.make<Type::pred>();
    w_.emit("vote.sync.any.pred {}, {}, 0xffffffff;", far.text, any_above.text);
    w_.when(far, [&] {
      for (uint32_t half = 0; half < halves(); ++half) {
        softmax_->raise(rows_[half], largest[half]);
        for (uint32_t i = 0; i < sums_.size(); i += 4) {
          for (uint32_t e = 0; e < 2; ++e) {
            const F32& sum = sums_[i + half * 2 + e];
            w_.assign(sum, sum * rows_[half].shrink);
          }
        }
      }
    });
    if (o_.bias == 0) return weigh(true);
    const Pred distant = w_.make<Type::pred>();
    const ptx::Label away = w_.label(), done = w_.label();
    w_.emit("vote.sync.any.pred {}, {}, 0xffffffff;", distant.text, ((rows_[0].distant | rows_[1].distant) != 0u).text);
    w_.jump_if(distant, away);
    weigh(true);
    w_.jump(done);
    w_.place(away);
    weigh(false);
    w_.place(done);
  }

  void weigh(bool near) {
    for (uint32_t half = 0; half < halves(); ++half) {
      const ScoreRow& row = rows_[half];
      for (uint32_t eight = 0; eight < 2; ++eight) {
        for (uint32_t i = 0; i < 2; ++i) {
          const F32& x = score(eight, half, i);
          w_.assign(x, ptx::power_of_2(softmax_->exponent(row, x, near)));
        }
      }
      const F32 total = (score(0, half, 0) + score(0, half, 1)) + (score(1, half, 0) + score(1, half, 1));
      w_.assign(row.total, row.total + total);
    }
  }

  std::array<U32, 4> packed_weights() {
    std::array<U32, 4> weights;
    for (uint32_t half = 0; half < 2; ++half) {
      for (uint32_t eight = 0; eight < 2; ++eight) {
        weights[eight * 2 + half] = half < halves()
                                        ? ptx::packed_pair(o_.type, score(eight, half, 0), score(eight, half, 1))
                                        : queries_[1][0];  // zeros
      }
    }
    return weights;
  }

  void multiply_values(const U32& at) {
    const std::array<U32, 4> weights = packed_weights();
    for (uint32_t i = 0; i < o_.head_dim_v / 16; ++i) {
      const std::array<U32, 4> b = load_matrices(at, i * 32, ".trans");
      ptx::multiply_16x8(o_.type, &sums_[i * 8], weights, b[0], b[1]);
      ptx::multiply_16x8(o_.type, &sums_[i * 8 + 4], weights, b[2], b[3]);
    }
  }

  void multiply_stored_values(const U32& stage) {
    const std::array<U32, 4> weights = packed_weights();
    std::array<U32, 4> rows;
    for (uint32_t i = 0; i < 4; ++i) rows[i] = value_rows_[i] + stage;
    for (uint32_t block = 0; block < o_.head_dim_v / StoredRows::kNumbers; ++block) {
      const auto operands = stored_values_->values(rows, group_, block);
      for (uint32_t i = 0; i < 4; ++i) {
        ptx::multiply_16x8(o_.type, &sums_[block * 16 + i * 4], weights, operands[i].low, operands[i].high);
      }
    }
  }

  // --- the end ------------------------------------------------------------------------------------------------------

  // Numbers that left the range of the type when they were dequantised: all rows are computed again.
  void check_stored() {
    if (!o_.quantised()) return;
    Pred far = ptx::truth(w_, false);
    if (o_.k_stored != 0) far = far || stored_keys_->overflowed();
    if (o_.v_stored != 0) far = far || stored_values_->overflowed();
    const Pred any = w_.make<Type::pred>();
    w_.emit("barrier.cta.red.or.pred {}, 0, {};", any.text, far.text);
    for (uint32_t half = 0; half < halves(); ++half) {
      w_.assign(rows_[half].again, select(any, w_.constant(1), rows_[half].again));
    }
  }

  void add_up() {
    const U32 statistics = memory_ + o_.teams() * o_.team_bytes();  // [team][row]
    join_team();
    check_stored();
    for (uint32_t half = 0; half < halves(); ++half) {
      const ScoreRow& row = rows_[half];
      if (o_.hiding || o_.options()) check_sums(half);
      for (const uint32_t distance : {1u, 2u}) {
        w_.assign(row.total, row.total + ptx::from_neighbour(row.total, distance));
        w_.assign(row.again, row.again | ptx::from_neighbour(row.again, distance));
      }
      const U32 number_of_row = own_row_ + half * 8;
      const U32 at = statistics + (team_ * w_.constant(o_.rows) + number_of_row) * kStatistics;
      w_.emit(if_true(quad_ == 0u), "st.shared.f32 [{}], {};", at.text, row.reference.text);
      w_.emit(if_true(quad_ == 0u), "st.shared.f32 [{}+4], {};", at.text, row.total.text);
      w_.emit(if_true(quad_ == 0u), "st.shared.u32 [{}+8], {};", at.text, row.again.text);
      store_sums(ring_ + number_of_row * o_.output_bytes(), half);
    }
    w_.emit("bar.sync 0;");
    const F32 scale = w_.parameter_float("push", offsetof(Decode::Push, scale_log2));
    const U32 row = w_.variable(warp_), end = w_.variable(ptx::min(all_rows_ - tile_row_, w_.constant(o_.rows)));
    w_.repeat([&] { return row < end; },
              [&] {
                add_up_row(row, statistics, scale);
                w_.assign(row, row + Decode::kWarps);
              });
  }

  void store_sums(const U32& row, uint32_t half) {
    const auto sum = [&](uint32_t i, uint32_t e) { return sums_[i * 4 + half * 2 + e].text; };
    if (o_.v_stored == 0) {
      const U32 to = row + (quad_ << 3);
      for (uint32_t i = 0; i < o_.head_dim_v / 8; ++i) {
        w_.emit("st.shared.v2.f32 [{}+{}], {{{}, {}}};", to.text, i * 32, sum(i, 0), sum(i, 1));
      }
      return;
    }
    const uint32_t apart = stored_values_->outputs_apart() * 4;
    const U32 to = row + quad_ * w_.constant(2 * apart);
    for (uint32_t i = 0; i < o_.head_dim_v / 8; ++i) {
      const uint32_t first = (i / 4 * StoredRows::kNumbers + stored_values_->first_output(i % 4)) * 4;
      for (uint32_t e = 0; e < 2; ++e) w_.emit("st.shared.f32 [{}+{}], {};", to.text, first + e * apart, sum(i, e));
    }
  }

  // A hidden value may have been NaN or infinite.
  void check_sums(uint32_t half) {
    F32 zero = number(w_, 0);
    for (uint32_t i = half * 2; i < sums_.size(); i += 4) {
      for (uint32_t e = 0; e < 2; ++e) zero = multiply_add(sums_[i + e], number(w_, 0), zero);
    }
    const U32& again = rows_[half].again;
    w_.assign(again, select(zero == number(w_, 0), again, w_.constant(1)));
  }

  // A row of the part, by one warp, key by key.
  OnlineSoftmax::Result one_by_one(const Place& place) {
    const auto lane_at = [&](const U64& base, int32_t stored = 0) {
      return stored != 0 ? base : multiply_add(lane_, 2, base);
    };
    U32 first = begin_, end = end_;
    if (o_.hiding) {
      first = max_signed(first_key(place.row), begin_);
      end = min_signed(keys_end(place.row), end_);
    }
    OnlineSoftmax::Applied applied;
    if (o_.options()) {
      applied = [this, rows = options_.find(batch_, first_head_ + place.head, place.row)](
                    const F32& x, const U32& key) { return options_.applied(*softmax_, x, rows, key); };
    }
    return softmax_->one_by_one(lane_at(query_of(place)), {lane_at(k_, o_.k_stored), k_row_, o_.head_dim, o_.k_stored},
                                {lane_at(v_, o_.v_stored), v_row_, o_.head_dim_v, o_.v_stored}, lane_, first, end,
                                applied);
  }

  // One warp adds up the teams' outputs of a row.
  void add_up_row(const U32& row, const U32& statistics, const F32& scale) {
    const Place place = place_of(row);
    std::array<F32, Decode::kWarps> reference, total;
    U32 again;
    F32 largest = number(w_, -kLargest);
    for (uint32_t i = 0; i < o_.teams(); ++i) {
      const U32 at = statistics + (row + i * o_.rows) * kStatistics, flag = w_.make<Type::u32>();
      reference[i] = w_.make<Type::f32>(), total[i] = w_.make<Type::f32>();
      w_.emit("ld.shared.f32 {}, [{}];", reference[i].text, at.text);
      w_.emit("ld.shared.f32 {}, [{}+4];", total[i].text, at.text);
      w_.emit("ld.shared.u32 {}, [{}+8];", flag.text, at.text);
      again = i == 0 ? flag : again | flag;
      largest = select(largest < reference[i], reference[i], largest);
    }
    const ptx::Label done = w_.label(), plain = w_.label();
    w_.jump_unless(again != 0u, plain);
    const OnlineSoftmax::Result result = one_by_one(place);
    o_.parts ? store_part(row, result) : store(place, result);
    w_.jump(done);
    w_.place(plain);
    OnlineSoftmax::Result sum{{}, largest, number(w_, 0)};
    std::array<F32, Decode::kWarps> factor;
    for (uint32_t i = 0; i < o_.teams(); ++i) {
      factor[i] = ptx::power_of_2((reference[i] - largest) * scale);
      sum.total = multiply_add(total[i], factor[i], sum.total);
    }
    const U32 from = memory_ + row * o_.output_bytes() + (lane_ << 2);
    for (uint32_t n = 0; n * kWarp < o_.head_dim_v; ++n) {
      F32 one = number(w_, 0);
      for (uint32_t i = 0; i < o_.teams(); ++i) {
        const F32 x = w_.make<Type::f32>();
        // Past the last element are the row's 8 numbers that nobody wrote, and other rows.
        w_.emit("ld.shared.f32 {}, [{}+{}];", x.text, from.text, i * o_.team_bytes() + n * kWarp * 4);
        one = multiply_add(x, factor[i], one);
      }
      sum.sums.push_back(one);
    }
    o_.parts ? store_part(row, sum) : store(place, sum);
    w_.place(done);
  }

  void store(const Place& place, const OnlineSoftmax::Result& result) {
    const F32 inverse = softmax_->inverse(result.total);
    const U64 row = out_ + widen(place.head) * o_head_ + ptx::multiply_wide(place.row, o_row_);
    const U64 to = multiply_add(lane_, 2, row);
    for (uint32_t n = 0; n < result.sums.size(); ++n) {
      const F32 one = softmax_->in_range(result.sums[n], inverse);
      const ptx::B16 rounded = ptx::halves_of(ptx::packed_pair(o_.type, one, one))[0];
      w_.emit(existing(n), "st.global.b16 [{}+{}], {};", to.text, n * kWarp * 2, rounded.text);
    }
  }

  // Whether a lane has an element lane + 32 * n.
  ptx::Guard existing(uint32_t n) {
    return (n + 1) * kWarp <= o_.head_dim_v ? ptx::Guard{} : if_true(lane_ < o_.head_dim_v - n * kWarp);
  }

  // The row's part, as attention_merge.comp reads it.
  void store_part(const U32& row, const OnlineSoftmax::Result& result) {
    const F32 headroom = number(w_, o_.type == TUFF_F16 ? kPartHeadroom : 1);
    const U64 to = multiply_add(row, o_.head_dim_v * 4, multiply_add(lane_, 4, out_));
    for (uint32_t n = 0; n < result.sums.size(); ++n) {
      w_.emit(existing(n), "st.global.f32 [{}+{}], {};", to.text, n * kWarp * 4, (result.sums[n] * headroom).text);
    }
    const U64 at = multiply_add(row, 4, out_);
    const uint32_t offset = o_.rows * o_.head_dim_v * 4;
    const Pred elected = lane_ == 0u;
    w_.emit(if_true(elected), "st.global.f32 [{}+{}], {};", at.text, offset, result.reference.text);
    w_.emit(if_true(elected), "st.global.f32 [{}+{}], {};", at.text, offset + o_.rows * 4,
            (result.total * headroom).text);
  }

  const Decode o_;
  Writer w_;
  ScoreOptions options_;
  U64 q_, k_, v_, out_, row_lengths_, key_lengths_, q_head_, o_head_;
  U32 thread_, lane_, warp_, quad_, group_;
  U32 team_, own_row_, own_key_;  // own: the thread's first row of the tile, and key of a step
  U32 memory_, ring_;             // ring_: the team's
  U32 sharing_, q_row_, k_row_, v_row_, o_row_;
  U32 batch_, first_head_;                // first_head_: of those that share the keys
  U32 all_rows_, tile_row_;               // of those heads, and the tile's first
  U32 rows_here_, keys_here_, diagonal_;  // of the batch element
  U32 begin_, end_;                       // the keys of this block
  U32 all_from_, all_to_;                 // those that all rows see
  std::array<ScoreOptions::Rows, 2> extras_;
  std::array<std::vector<U32>, 2> queries_;
  std::vector<F32> scores_, sums_;
  std::optional<StoredRows> stored_keys_, stored_values_;
  std::array<U32, 2> key_rows_;    // the thread's, if keys are quantised
  std::array<U32, 4> value_rows_;  // likewise
  std::optional<OnlineSoftmax> softmax_;
  std::array<ScoreRow, 2> rows_;  // a thread's, 8 apart
};

NativeKernel write_decode(const KernelRequest& request) {
  const Decode options = Decode::read(request);
  return {Kernel(options).write(), "attention_decode", Decode::kThreads, options.shared_bytes()};
}

constexpr auto kDims = ptx::multiples<16, Decode::kMaxHeadDim>();
constexpr LegalRange kRows[] = {{8, 8}, {16, 16}, {32, 32}, {64, 64}};
constexpr LegalRange kBias[] = {{0, 0}, {TUFF_F32, TUFF_F32}, {TUFF_F16, TUFF_BF16}};
constexpr LegalRange kLengths[] = {{0, 3}, {5, 7}};
constexpr LegalRange kStored[] = {
    {0, 0}, {TUFF_F8_E4M3, TUFF_F8_E5M2}, {TUFF_QUANT_Q4_0, TUFF_QUANT_Q4_0}, {TUFF_QUANT_Q8_0, TUFF_QUANT_Q8_0}};
constexpr LegalRange kPiece[] = {{0, 0}, {4, 4}, {8, 8}, {16, 16}};
constexpr DefineInfo kDefines[] = {{"BIAS", kBias},   {"CAP", kFlag},      {"HEAD_DIM", kDims},   {"HEAD_DIM_V", kDims},
                                   {"HIDING", kFlag}, {"K_PIECE", kPiece}, {"K_STORED", kStored}, {"LENGTHS", kLengths},
                                   {"MASK", kFlag},   {"PARTS", kFlag},    {"PIECES", kFlag},     {"ROWS", kRows},
                                   {"TYPE", kHalves}, {"V_PIECE", kPiece}, {"V_STORED", kStored}};

// What a block needs besides its stages.
constexpr uint32_t kRest = ptx::kSharedAlignment + Decode::kMaxRows * kStatistics;
constexpr uint32_t kReserved = 1024;  // of each block, by the driver

}  // namespace

uint32_t Decode::blocks_per_core() const {
  const uint32_t half = (ptx::kSharedBytes - kReserved) / 2 - kRest;
  return half / (teams() * stage_bytes()) >= 3 ? 2 : 1;
}

uint32_t Decode::stages() const {
  const uint32_t memory =
      blocks_per_core() == 2 ? (ptx::kSharedBytes - kReserved) / 2 - kRest : ptx::kSharedBytes - kRest;
  return std::min(memory / (teams() * stage_bytes()), kMaxStages * team());
}

bool Decode::legal() const {
  if (!loads(keys()) || !loads(values())) return false;
  // The outputs take the place of a team's stages. With options, and with what dequantising takes, a thread has so many
  // registers for its queries and sums.
  constexpr uint32_t kMaxWithOptions = 160;
  const bool fits = head_dim / 4 + head_dim_v / 2 <= kMaxWithOptions || !(options() || quantised());
  return rows * output_bytes() <= team_bytes() && stages() >= 2 && fits && (rows >= kWarpRows || !options());
}

bool Decode::loads(const Rows& loaded) const {
  if (loaded.stored == 0) return loaded.piece == 16;
  if (loaded.numbers % StoredRows::multiple(loaded.stored) != 0) return false;
  if (loaded.piece == 0) return in_blocks(loaded.stored);
  const uint32_t bytes = loaded.bytes();
  return bytes % loaded.piece == 0 && std::bit_ceil(bytes / loaded.piece) <= team() * ptx::kWarp;
}

uint32_t Decode::shared_bytes() const { return teams() * team_bytes() + kRest; }

KernelRequest Decode::request() const {
  KernelRequest made(decode_source);
  made.define("HEAD_DIM", head_dim).define("HEAD_DIM_V", head_dim_v).define("LENGTHS", lengths);
  made.define("PARTS", parts).define("ROWS", rows).define("TYPE", type).define("HIDING", hiding);
  made.define("BIAS", bias).define("MASK", mask).define("CAP", cap).define("PIECES", pieces);
  made.define("K_STORED", k_stored).define("V_STORED", v_stored).define("K_PIECE", k_piece).define("V_PIECE", v_piece);
  return made;
}

Decode Decode::read(const KernelRequest& request) {
  Decode options;
  options.type = static_cast<int32_t>(request.value_of("TYPE"));
  options.head_dim = static_cast<uint32_t>(request.value_of("HEAD_DIM"));
  options.head_dim_v = static_cast<uint32_t>(request.value_of("HEAD_DIM_V"));
  options.lengths = static_cast<uint32_t>(request.value_of("LENGTHS"));
  options.parts = request.value_of("PARTS") != 0;
  options.rows = static_cast<uint32_t>(request.value_of("ROWS"));
  options.hiding = request.value_of("HIDING") != 0;
  options.bias = static_cast<int32_t>(request.value_of("BIAS"));
  options.mask = request.value_of("MASK") != 0;
  options.cap = request.value_of("CAP") != 0;
  options.pieces = request.value_of("PIECES") != 0;
  options.k_stored = static_cast<int32_t>(request.value_of("K_STORED"));
  options.v_stored = static_cast<int32_t>(request.value_of("V_STORED"));
  options.k_piece = static_cast<uint32_t>(request.value_of("K_PIECE"));
  options.v_piece = static_cast<uint32_t>(request.value_of("V_PIECE"));
  if (!options.legal()) {
    fail(TUFF_ERROR_INTERNAL, "attention_decode: {} rows with head_dim {} and {}", options.rows, options.head_dim,
         options.head_dim_v);
  }
  return options;
}

const KernelSource decode_source = {"attention_decode", nullptr, kDefines, write_decode};

}  // namespace tuff::attention
