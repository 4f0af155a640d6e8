#include "kernels/attention/native/score_options.hpp"

#include <algorithm>
#include <cstddef>

#include "kernels/native/elements.hpp"
#include "tuff/tuff.h"

namespace tuff::attention {
namespace {

using ptx::F32;
using ptx::if_true;
using ptx::Label;
using ptx::multiply_add;
using ptx::number;
using ptx::Pred;
using ptx::Type;
using ptx::U32;
using ptx::U64;

// Below, the polynomial of tanh in math.glsl is used.
constexpr float kNear = 0.625f;
// Scores of bf16 from here on are computed again: scaled by up to 2^40, as the planner sees to, they are far from the
// end of f32, and so are their sums with a bias. Those of f16 are all smaller.
constexpr float kLargestScore = 0x1p60f;

Pred exists(const U32& left, uint32_t key) {
  const Pred made = left.writer->make<Type::pred>();
  left.writer->emit("setp.gt.s32 {}, {}, {};", made.text, left.text, key);
  return made;
}

}  // namespace

uint32_t bytes_of_piece(uint32_t keys, uint32_t size) {
  const uint32_t bytes = keys / 4 * size;
  return std::min(bytes & (~bytes + 1), 16u);
}

void hide_scores(const std::vector<F32>& scores, std::span<const ScoreRow> rows, const U32& key, bool options) {
  ptx::Writer& w = *key.writer;
  for (size_t half = 0; half < rows.size(); ++half) {
    const bool limited = rows[half].first.writer != nullptr;
    const U32 end = rows[half].end - key, first = limited ? rows[half].first - key : U32{};
    for (uint32_t eight = 0; eight < scores.size() / 4; ++eight) {
      for (uint32_t i = 0; i < 2; ++i) {
        const Pred sees = w.make<Type::pred>();
        const uint32_t own = options ? ScoreOptions::key_of(eight, i) : eight * 8 + i;
        w.emit("setp.gt.s32 {}, {}, {};", sees.text, end.text, own);
        if (limited) w.emit("setp.le.and.s32 {}, {}, {}, {};", sees.text, first.text, own, sees.text);
        const F32& x = scores[eight * 4 + half * 2 + i];
        w.assign(x, select(sees, x, number(w, -kInfinity)));
      }
    }
  }
}

void ScoreOptions::declare() {
  if (form_.bias != 0) bias_ = w_.pointer("bias");
  if (form_.mask) mask_ = w_.pointer("mask");
  numbers_ = w_.pointer("numbers");
}

void ScoreOptions::read_numbers() {
  const auto read = [&](size_t offset) {
    const F32 made = w_.make<Type::f32>();
    w_.emit("ld.global.f32 {}, [{}+{}];", made.text, numbers_.text, offset);
    return made;
  };
  if (form_.bias != 0 || form_.cap) scale_ = read(offsetof(ScoreNumbers, scale));
  if (form_.cap) cap_ = read(offsetof(ScoreNumbers, cap)), inner_ = read(offsetof(ScoreNumbers, inner));
  for (uint32_t half = 0; form_.pieces && half < 2; ++half) {
    if (form_.bias != 0) {
      for (uint32_t i = 0; i < own() * size() / 4; ++i) bias_words_[half].push_back(w_.make<Type::u32>());
    }
    if (form_.mask) {
      for (uint32_t i = 0; i < own() / 4; ++i) mask_words_[half].push_back(w_.make<Type::u32>());
    }
  }
}

U32 ScoreOptions::key_of_row(const U32& row) const {
  return first_key((row >> 1) & 3) + (((row >> 3) << 1) + (row & 1));
}

ScoreOptions::Rows ScoreOptions::find(const U32& batch, const U32& head, const U32& row) const {
  const auto at = [&](const U64& base, size_t offset) {
    U64 sum = base;
    const U32* const indices[] = {&batch, &head, &row};
    for (uint32_t i = 0; i < 3; ++i) {
      const U64 stride = w_.make<Type::u64>();
      w_.emit("ld.global.u64 {}, [{}+{}];", stride.text, numbers_.text, offset + 8 * i);
      sum = widen(*indices[i]) * stride + sum;
    }
    return sum;
  };
  Rows rows;
  if (form_.bias != 0) rows.bias = at(bias_, offsetof(ScoreNumbers, bias_batch));
  if (form_.mask) rows.mask = at(mask_, offsetof(ScoreNumbers, mask_batch));
  return rows;
}

void ScoreOptions::make(std::array<Rows, 2>& rows) const {
  for (Rows& one : rows) {
    if (form_.bias != 0) one.bias = w_.make<Type::u64>();
    if (form_.mask) one.mask = w_.make<Type::u64>();
  }
}

void ScoreOptions::start(const Rows& rows, const U32& batch, const U32& head, const U32& row, const U32& quad) const {
  const Rows found = find(batch, head, row);
  const U32 first = first_key(quad);
  if (form_.bias != 0) w_.assign(rows.bias, multiply_add(first, size(), found.bias));
  if (form_.mask) w_.assign(rows.mask, multiply_add(first, 1, found.mask));
}

void ScoreOptions::load_pieces(std::vector<U32>& words, const U64& from, const U32& left, uint32_t element) const {
  const uint32_t bytes = bytes_of_piece(form_.keys, element), count = bytes / 4;
  for (uint32_t i = 0; i < words.size(); i += count) {
    const ptx::Guard guard = if_true(exists(left, i * 4 / element));
    const std::vector<U32> piece(words.begin() + i, words.begin() + i + count);
    const char* const vector = count == 4 ? ".v4" : count == 2 ? ".v2" : "";
    w_.emit(guard, "ld.global{}.b32 {{{}}}, [{}+{}];", vector, ptx::list(piece), from.text, i * 4);
  }
}

void ScoreOptions::load(const std::array<Rows, 2>& rows, const U32& key, const U32& left) {
  if (!form_.pieces) return;
  for (uint32_t half = 0; half < 2; ++half) {
    if (form_.bias != 0) load_pieces(bias_words_[half], multiply_add(key, size(), rows[half].bias), left, size());
    if (form_.mask) {
      // Keys that do not exist are not hidden here, so that the others' path may be taken.
      for (const U32& word : mask_words_[half]) w_.assign(word, w_.constant(0xffffffff));
      load_pieces(mask_words_[half], multiply_add(key, 1, rows[half].mask), left, 1);
    }
  }
}

void ScoreOptions::apply(const std::vector<F32>& scores, const std::array<Rows, 2>& rows, const U32& key,
                         const U32& left, const OnlineSoftmax::Row& first, const OnlineSoftmax::Row& second) {
  if (form_.cap || form_.type != TUFF_F16) {
    std::array<F32, 2> largest;
    for (uint32_t half = 0; half < 2; ++half) {
      for (uint32_t eight = 0; eight < form_.keys / 8; ++eight) {
        for (uint32_t i = 0; i < 2; ++i) {
          const F32 x = ptx::magnitude(scores[eight * 4 + half * 2 + i]);
          largest[half] = eight + i == 0 ? x : largest_of(largest[half], x);
        }
      }
      if (form_.type != TUFF_F16) {
        const OnlineSoftmax::Row& row = half == 0 ? first : second;
        w_.assign(row.again, select(number(w_, kLargestScore) <= largest[half], w_.constant(1), row.again));
      }
    }
    if (form_.cap) apply_cap(scores, largest_of(largest[0], largest[1]));
  }
  if (form_.bias != 0) apply_bias(scores, rows, key, left);
  if (form_.mask) apply_mask(scores, rows, key, left);
}

// tanh by the polynomial: x of the argument, or a multiple of it, whose multiple results. `squared` is the argument's.
F32 ScoreOptions::near_tanh(const F32& squared, const F32& x) const {
  F32 p = multiply_add(number(w_, -5.70498872745e-3f), squared, number(w_, 2.06390887954e-2f));
  p = multiply_add(p, squared, number(w_, -5.37397155531e-2f));
  p = multiply_add(p, squared, number(w_, 1.33314422036e-1f));
  p = multiply_add(p, squared, number(w_, -3.33332819422e-1f));
  return multiply_add(p * squared, x, x);
}

// 1 - 2 / (e^2x + 1), of x >= 0. Beyond the range of e^2x, it is 1.
F32 ScoreOptions::far_tanh(const F32& magnitude) const {
  const F32 power = ptx::power_of_2(magnitude * number(w_, 2.885390081777927f));
  const F32 inverse = w_.result<Type::f32>("rcp.approx.ftz.f32", power + number(w_, 1));
  return multiply_add(inverse, number(w_, -2), number(w_, 1));
}

// Scores are mostly far below the cap: where all of a warp's are, the polynomial suffices.
void ScoreOptions::apply_cap(const std::vector<F32>& scores, const F32& largest) const {
  const Label far = w_.label(), done = w_.label();
  const Pred all = w_.make<Type::pred>();
  w_.emit("vote.sync.all.pred {}, {}, 0xffffffff;", all.text, (largest * inner_ < number(w_, kNear)).text);
  w_.jump_unless(all, far);
  for (const F32& score : scores) {
    const F32 x = score * inner_;
    w_.assign(score, near_tanh(x * x, score * scale_));
  }
  w_.jump(done);
  w_.place(far);
  for (const F32& score : scores) {
    const F32 x = ptx::magnitude(score * inner_), y = far_tanh(x) * cap_;
    const F32 near = near_tanh(x * x, ptx::magnitude(score * scale_)), result = w_.make<Type::f32>();
    w_.emit("copysign.f32 {}, {}, {};", result.text, score.text, select(x < number(w_, kNear), near, y).text);
    w_.assign(score, result);
  }
  w_.place(done);
}

// In pieces: of this thread's key.
F32 ScoreOptions::bias_of(uint32_t half, uint32_t key) const {
  const U32& word = bias_words_[half][key * size() / 4];
  const F32 value = w_.make<Type::f32>();
  if (form_.bias == TUFF_F32) {
    w_.emit("mov.b32 {}, {};", value.text, word.text);
  } else if (form_.bias == TUFF_F16) {
    w_.emit("cvt.f32.f16 {}, {};", value.text, ptx::halves_of(word)[key % 2].text);
  } else {
    w_.emit("mov.b32 {}, {};", value.text, (key % 2 == 0 ? word << 16 : word & 0xffff0000u).text);
  }
  return value;
}

void ScoreOptions::apply_bias(const std::vector<F32>& scores, const std::array<Rows, 2>& rows, const U32& key,
                              const U32& left) const {
  for (uint32_t half = 0; half < 2; ++half) {
    const U64 from = form_.pieces ? U64{} : multiply_add(key, size(), rows[half].bias);
    for (uint32_t eight = 0; eight < form_.keys / 8; ++eight) {
      for (uint32_t i = 0; i < 2; ++i) {
        const F32& score = scores[eight * 4 + half * 2 + i];
        const uint32_t own_key = key_of(eight, i);
        F32 bias;
        if (form_.pieces) {
          bias = bias_of(half, own_key);
        } else {
          const Pred there = exists(left, own_key);
          bias = ptx::load_element(form_.bias, from, own_key * size(), &there);
        }
        w_.assign(score, form_.cap ? score + bias : multiply_add(score, scale_, bias));
      }
    }
  }
}

void ScoreOptions::apply_mask(const std::vector<F32>& scores, const std::array<Rows, 2>& rows, const U32& key,
                              const U32& left) const {
  const F32 hidden = number(w_, -kInfinity);
  const Label done = w_.label();
  if (form_.pieces) {
    // Bit 7 of the lowest byte that is 0, and perhaps of others.
    U32 zeros = w_.constant(0);
    for (const std::vector<U32>& words : mask_words_) {
      for (const U32& word : words) zeros = zeros | ((word - 0x01010101u) & (word ^ 0xffffffffu) & 0x80808080u);
    }
    const Pred any = w_.make<Type::pred>();
    w_.emit("vote.sync.any.pred {}, {}, 0xffffffff;", any.text, (zeros != 0u).text);
    w_.jump_unless(any, done);
  }
  for (uint32_t half = 0; half < 2; ++half) {
    const U64 from = form_.pieces ? U64{} : multiply_add(key, 1, rows[half].mask);
    for (uint32_t eight = 0; eight < form_.keys / 8; ++eight) {
      for (uint32_t i = 0; i < 2; ++i) {
        const F32& score = scores[eight * 4 + half * 2 + i];
        const uint32_t own_key = key_of(eight, i);
        U32 byte;
        if (form_.pieces) {
          byte = mask_words_[half][own_key / 4] & 0xffu << own_key % 4 * 8;
        } else {
          byte = w_.variable(w_.constant(0));
          w_.emit(if_true(exists(left, own_key)), "ld.global.u8 {}, [{}+{}];", byte.text, from.text, own_key);
        }
        w_.assign(score, select(byte == 0u, hidden, score));
      }
    }
  }
  w_.place(done);
}

F32 ScoreOptions::applied(const OnlineSoftmax& softmax, const F32& score, const Rows& rows, const U32& key) const {
  const F32 hidden = number(w_, -kInfinity);
  F32 result = score;
  if (form_.bias != 0 || form_.cap) {
    // What left the range of f32 stays there, whatever the scale is.
    const Pred stays = score == hidden || score == number(w_, kLargest);
    result = select(stays, score, softmax.saturated(score * scale_));
  }
  if (form_.cap) {
    const F32 quotient = w_.result<Type::f32>("div.rn.f32", result, cap_), x = ptx::magnitude(quotient);
    const F32 y = select(x < number(w_, kNear), near_tanh(x * x, x), far_tanh(x)) * cap_;
    const F32 capped = w_.make<Type::f32>();
    w_.emit("copysign.f32 {}, {}, {};", capped.text, quotient.text, y.text);
    result = capped;
  }
  if (form_.bias != 0) {
    const F32 bias = ptx::load_element(form_.bias, multiply_add(key, size(), rows.bias), 0, nullptr);
    const F32 sum = result + bias;
    const F32 kept = select(result == hidden, sum, softmax.saturated(sum));
    result = select(bias == hidden, bias, kept);
  }
  if (form_.mask) {
    const U32 byte = w_.make<Type::u32>();
    w_.emit("ld.global.u8 {}, [{}];", byte.text, multiply_add(key, 1, rows.mask).text);
    result = select(byte == 0u, hidden, result);
  }
  return result;
}

void ScoreOptions::prefetch(const Rows& rows, const U32& key, const U32& end) const {
  const auto lines = [&](const U64& row, uint32_t element) {
    const U64 from = multiply_add(key, element, row);
    for (uint32_t i = 0; i < form_.keys; i += 128 / element) {
      w_.emit(if_true(key + i < end), "prefetch.global.L2 [{}+{}];", from.text, i * element);
    }
  };
  if (form_.bias != 0) lines(rows.bias, size());
  if (form_.mask) lines(rows.mask, 1);
}

}  // namespace tuff::attention
