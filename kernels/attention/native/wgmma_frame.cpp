#include "kernels/attention/native/wgmma_frame.hpp"

#include "kernels/attention/native/wgmma_rows.hpp"
#include "kernels/native/elements.hpp"
#include "planning/element_type.hpp"
#include "tuff/tuff.h"

namespace tuff::attention {

using ptx::if_true;
using ptx::kWarp;
using ptx::Label;
using ptx::max_signed;
using ptx::max_with_nan;
using ptx::min_signed;
using ptx::multiply_add;
using ptx::number;
using ptx::Type;

void WgmmaFrame::declare(const Layout& layout) {
  for (Tensor* x : {&q_, &k_, &v_, &out_}) x->base = w_.pointer(x->name);
  if (o_.lse) lse_ = w_.pointer("lse");
  if ((o_.lengths & Wgmma::kRowLengths) != 0) row_lengths_ = w_.pointer("q_lengths");
  if ((o_.lengths & Wgmma::kKeyLengths) != 0) key_lengths_ = w_.pointer("kv_lengths");
  if (o_.options()) options_.declare();
  w_.block("push", sizeof(Wgmma::Push));
  read_parameters();
  thread_ = w_.special("%tid.x");
  memory_ = ptx::aligned_memory(w_);
  stages_ = memory_ + layout.q_bytes;
  flags_ = stages_ + layout.stages * layout.stage_bytes;
  const U32 barriers = flags_ + Wgmma::kMaxStages * kFlagBytes;
  keys_full_ = barriers;
  keys_empty_ = barriers + Wgmma::kMaxStages * ptx::kBarrierBytes;
  values_full_ = barriers + 2 * Wgmma::kMaxStages * ptx::kBarrierBytes;
  values_empty_ = barriers + 3 * Wgmma::kMaxStages * ptx::kBarrierBytes;
  queries_empty_ = barriers + 4 * Wgmma::kMaxStages * ptx::kBarrierBytes;
  w_.when(thread_ == 0, [&] {
    for (uint32_t s = 0; s < layout.stages; ++s) {
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
}

void WgmmaFrame::read_parameters() {
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

ptx::U32 WgmmaFrame::keys_end(const Tile& tile, const U32& row) {
  U32 end = tile.keys_here;
  if (o_.hiding) {
    end = min_signed(max_signed(row + tile.diagonal + right_, w_.constant(0)), end);
  }
  if ((o_.lengths & Wgmma::kRowLengths) != 0) end = select(row < tile.rows_here, end, w_.constant(0));
  return end;
}

ptx::U32 WgmmaFrame::first_key(const Tile& tile, const U32& row) {
  if (!o_.hiding) return w_.constant(0);
  return max_signed(row + tile.diagonal - left_ + 1, w_.constant(0));
}

void WgmmaFrame::find_common_keys(Tile& tile, const U32& row, uint32_t rows) {
  const U32 last = min(row + (rows - 1), seq_q_ - 1);
  tile.all_from = first_key(tile, last);
  tile.all_to = keys_end(tile, row);
  if ((o_.lengths & Wgmma::kRowLengths) != 0) {
    tile.all_to = select(last < tile.rows_here, tile.all_to, w_.constant(0));
  }
}

ptx::U32 WgmmaFrame::length(const U64& lengths, const U32& batch, const U32& most) {
  const U32 wanted = w_.make<Type::u32>();
  w_.emit("ld.global.s32 {}, [{}];", wanted.text, multiply_add(batch, 4, lengths).text);
  return min_signed(max_signed(wanted, w_.constant(0)), most);
}

WgmmaFrame::Tile WgmmaFrame::locate(const U32& number) {
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

ptx::U64 WgmmaFrame::base_of(const Tensor& x, const Tile& tile, const U32& head) {
  return x.base + widen(tile.batch) * x.batch + widen(head) * x.head;
}

ptx::U32 WgmmaFrame::start_group() {
  const U32 thread = thread_ - kLoaders;
  group_ = thread >> 7;
  quad_ = lane_ & 3;
  never_ = ptx::truth(w_, false), always_ = ptx::truth(w_, true);
  return thread;
}

void WgmmaFrame::make_scores_and_sums() {
  for (uint32_t i = 0; i < keys() / 2; ++i) scores_.push_back(w_.make<Type::f32>());
  for (uint32_t i = 0; i < o_.head_dim_v / 2; ++i) sums_.push_back(w_.make<Type::f32>());
}

void WgmmaFrame::make_rows() {
  softmax_.emplace(w_, o_.type, scale_, o_.bias != 0);
  for (ScoreRow& row : rows_) softmax_->make(row);
  if (o_.options()) {
    options_.read_numbers();
    options_.make(extras_);
  }
  own_key_ = o_.options() ? options_.first_key(quad_) : quad_ << 1;
  incomplete_ = w_.make<Type::u32>();
}

void WgmmaFrame::start_turns() {
  // The second group lets the first one start.
  w_.when(group_ == 1u, [&] { w_.emit("bar.arrive 1, {};", kComputing); });
  own_turn_ = group_ + 1, others_turn_ = select(group_ == 0u, w_.constant(2), w_.constant(1));
}

void WgmmaFrame::start_rows(const Tile& tile, const U32& thread) {
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

void WgmmaFrame::load_extras(const Tile& tile, const U32& key) {
  if (o_.options()) options_.load(extras_, key, keys_left(tile, key));
}

ptx::Pred WgmmaFrame::soften(const Tile& tile, const U32& key) {
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

void WgmmaFrame::weigh(bool near) {
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

void WgmmaFrame::rescale() {
  for (uint32_t i = 0; i < sums_.size(); ++i) w_.assign(sums_[i], sums_[i] * rows_[i / 2 % 2].shrink);
}

void WgmmaFrame::store(const Tile& tile) {
  const U64 base = base_of(out_, tile, tile.head);
  for (uint32_t half = 0; half < 2; ++half) {
    ScoreRow& row = rows_[half];
    for (const uint32_t distance : {1u, 2u}) w_.assign(row.total, row.total + ptx::from_neighbour(row.total, distance));
    const F32 inverse = softmax_->inverse(row.total);
    const U32 at = own_row_ + (lane_ >> 2) + half * 8;
    const Pred exists = at < seq_q_;
    store_sums(multiply_add(at, out_.row, base), exists, half, inverse);
    if (o_.lse) {
      store_lse(tile, at, (quad_ == 0u) && exists, softmax_->log_of_sum(row, row.total), row.total);
    }
    if (!o_.options()) softmax_->check_range(row);
    if (o_.options() || o_.type == TUFF_F32) check_sums(row, half);
  }
  compute_again(tile);
}

// One of the thread's rows, which begins at `to`.
void WgmmaFrame::store_sums(const U64& to, const Pred& exists, uint32_t half, const F32& inverse) {
  const auto result = [&](uint32_t eight, uint32_t i) {
    return softmax_->in_range(sums_[eight * 4 + half * 2 + i], inverse);
  };
  if (o_.type == TUFF_F32) {
    const U64 own = multiply_add(quad_, 8, to);
    for (uint32_t eight = 0; eight < o_.head_dim_v / 8; ++eight) {
      const F32 first = result(eight, 0), second = result(eight, 1);
      w_.emit(if_true(exists), "st.global.v2.f32 [{}+{}], {{{}, {}}};", own.text, eight * 32, first.text, second.text);
    }
    return;
  }
  const U64 pairs = multiply_add(quad_, 4, to), eights = multiply_add(quad_, 16, to);
  const Pred odd = (quad_ & 1) != 0u, high = (quad_ & 2) != 0u;
  store_row(o_.type, {pairs, eights, odd, high, exists}, o_.head_dim_v / 8, result);
}

void WgmmaFrame::check_sums(const ScoreRow& row, uint32_t half) {
  F32 zero = number(w_, 0);
  for (uint32_t i = half * 2; i < sums_.size(); i += 4) {
    for (uint32_t e = 0; e < 2; ++e) zero = multiply_add(sums_[i + e], number(w_, 0), zero);
  }
  w_.assign(row.again, select(zero == number(w_, 0), row.again, w_.constant(1)));
}

void WgmmaFrame::store_lse(const Tile& tile, const U32& row, const Pred& stores, const F32& exponent,
                           const F32& total) {
  F32 result = softmax_->saturated(exponent * number(w_, 0.6931471805599453f));
  result = select(total == number(w_, 0), number(w_, -kInfinity), result);
  const U64 head = widen(tile.batch) * widen(heads_) + widen(tile.head);
  const U64 at = (head * widen(seq_q_) + widen(row)) * U64{&w_, "4", true, 4} + lse_;
  w_.emit(if_true(stores), "st.global.f32 [{}], {};", at.text, result.text);
}

void WgmmaFrame::compute_again(const Tile& tile) {
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

void WgmmaFrame::compute_again(const Tile& tile, const U32& row) {
  const auto size = static_cast<uint32_t>(dtype_size(o_.type));
  const auto lane_at = [&](const U64& base) { return multiply_add(lane_, size, base); };
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
    const std::string rounded =
        size == 4 ? result.text : ptx::halves_of(ptx::packed_pair(o_.type, result, result))[0].text;
    const bool whole = (n + 1) * kWarp <= o_.head_dim_v;
    const ptx::Guard guard = whole ? ptx::Guard{} : if_true(lane_ < o_.head_dim_v - n * kWarp);
    w_.emit(guard, "st.global.b{} [{}+{}], {};", size * 8, to.text, n * kWarp * size, rounded);
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

}  // namespace tuff::attention
