#include "kernels/attention/native/online_softmax.hpp"

#include "kernels/attention/native/stored_rows.hpp"
#include "kernels/native/elements.hpp"
#include "kernels/native/hopper.hpp"
#include "planning/element_type.hpp"

namespace tuff::attention {
namespace {

using ptx::F32;
using ptx::kWarp;
using ptx::Label;
using ptx::max_with_nan;
using ptx::multiply_add;
using ptx::number;
using ptx::Pred;
using ptx::Type;
using ptx::U32;
using ptx::U64;

constexpr float kSlack = 8;  // scores exceed the row's reference by at most this power of two
// |reference * scale_log2|: beyond, c is off by so much that weights could leave the range of f16.
constexpr float kLargestExponent = 0x1p26f;
// With bf16 and f32, scores of less than this may have been cut to -infinity; see the planner on the scale.
constexpr float kLowest = -0x1p100f;
// The factor of a score that is computed again because it overflowed: see attention_common.glsl.
constexpr float kShrink = 0x1p-70f, kGrow = 0x1p70f;

}  // namespace

OnlineSoftmax::OnlineSoftmax(ptx::Writer& w, int32_t type, const F32& scale_log2, bool distant)
    : w_(w), type_(type), distant_(distant), scale_(scale_log2), slack_(w.make<Type::f32>()) {
  w_.emit("div.rn.f32 {}, {}, {};", slack_.text, number(w_, kSlack).text, scale_.text);
}

void OnlineSoftmax::make(Row& row) const {
  row.reference = w_.make<Type::f32>(), row.c = w_.make<Type::f32>(), row.limit = w_.make<Type::f32>();
  row.total = w_.make<Type::f32>(), row.shrink = w_.make<Type::f32>(), row.again = w_.make<Type::u32>();
  if (distant_) row.distant = w_.make<Type::u32>();
}

void OnlineSoftmax::start(const Row& row) const {
  w_.assign(row.reference, number(w_, -kInfinity));
  w_.assign(row.limit, number(w_, -kInfinity));
  w_.assign(row.c, number(w_, 0));
  w_.assign(row.total, number(w_, 0));
  w_.assign(row.shrink, number(w_, 1));
  w_.assign(row.again, w_.constant(0));
  if (distant_) w_.assign(row.distant, w_.constant(0));
}

void OnlineSoftmax::raise(const Row& row, F32 largest) const {
  for (const uint32_t distance : {1u, 2u}) largest = max_with_nan(largest, ptx::from_neighbour(largest, distance));
  largest = max_with_nan(largest, row.reference);
  const F32 exponent = largest * scale_;
  const Pred good = ptx::magnitude(exponent) <= number(w_, kLargestExponent);
  const Pred none = largest == number(w_, -kInfinity);
  const F32 minus_scale = number(w_, -1) * scale_, room = number(w_, headroom());
  const F32 c = select(good, multiply_add(largest, minus_scale, room), number(w_, distant_ ? headroom() : 0));
  const Pred first = row.reference == number(w_, -kInfinity);
  Pred fine = good || none;
  F32 change = c - row.c;
  if (distant_) {
    // Weights are 2^(score * scale + c), those of distant rows 2^((score - reference) * scale + room).
    const Pred finite = ptx::magnitude(largest) <= number(w_, kLargest), was = row.distant != 0u;
    const U32 distant = select(finite, select(good, w_.constant(0), w_.constant(1)), w_.constant(0));
    const F32 from_distant = multiply_add(row.reference, scale_, c - room);
    const F32 to_distant = multiply_add(largest, minus_scale, room - row.c);
    const F32 stays_distant = (row.reference - largest) * scale_;
    change = select(distant != 0u, select(was, stays_distant, to_distant), select(was, from_distant, change));
    w_.assign(row.distant, distant);
    fine = fine || finite;
  }
  const F32 shrink = select(first, number(w_, 1), ptx::power_of_2(change));
  w_.assign(row.shrink, shrink);
  w_.assign(row.total, row.total * shrink);
  w_.assign(row.c, c);
  w_.assign(row.reference, largest);
  w_.assign(row.again, select(fine, row.again, w_.constant(1)));
  w_.assign(row.limit, select(row.again == 0u, largest + slack_, number(w_, kInfinity)));
}

void OnlineSoftmax::check_range(const Row& row) const {
  if (!wide()) return;
  w_.assign(row.again, select(row.reference < number(w_, kLowest), w_.constant(1), row.again));
}

F32 OnlineSoftmax::exponent(const Row& row, const F32& score, bool near) const {
  const F32 plain = multiply_add(score, scale_, row.c);
  if (near) return plain;
  return select(row.distant != 0u, multiply_add(score - row.reference, scale_, number(w_, headroom())), plain);
}

F32 OnlineSoftmax::log_of_sum(const Row& row, const F32& total) const {
  const F32 log = log_of_2(total) - row.c;  // a distant row's c is the headroom
  if (!distant_) return log;
  return select(row.distant != 0u, multiply_add(row.reference, scale_, log), log);
}

F32 OnlineSoftmax::log_of_2(const F32& x) const { return w_.result<Type::f32>("lg2.approx.f32", x); }

F32 OnlineSoftmax::inverse(const F32& total) const {
  const Pred empty = total == number(w_, 0);
  const F32 inverse = w_.make<Type::f32>();
  w_.emit("rcp.rn.f32 {}, {};", inverse.text, total.text);
  return select(empty, number(w_, 0), inverse);
}

F32 OnlineSoftmax::in_range(const F32& sum, const F32& inverse) const {
  const float most = type_ == TUFF_F16 ? 65504.0f : type_ == TUFF_BF16 ? 0x1.fep127f : kLargest;
  const F32 result = sum * inverse;
  const F32 clamped = largest_of(smallest_of(result, number(w_, most)), number(w_, -most));
  return select(ptx::magnitude(sum) <= number(w_, kLargest), clamped, result);
}

F32 OnlineSoftmax::saturated(const F32& x) const {
  const F32 largest = w_.make<Type::f32>();
  w_.emit("copysign.f32 {}, {}, {};", largest.text, x.text, number(w_, kLargest).text);
  return select(number(w_, kLargest) < ptx::magnitude(x), largest, x);
}

F32 OnlineSoftmax::sum_of_lanes(F32 x) const {
  for (const uint32_t distance : {16u, 8u, 4u, 2u, 1u}) x = x + ptx::from_neighbour(x, distance);
  return x;
}

OnlineSoftmax::Result OnlineSoftmax::one_by_one(const U64& query, const Tensor& keys, const Tensor& values,
                                                const U32& lane, const U32& first, const U32& end,
                                                const Applied& applied) const {
  // Elements lane, lane + 32, ... of a row; zeros beyond the last.
  const auto size = static_cast<uint32_t>(dtype_size(type_));
  const auto elements = [&](const U64& at, uint32_t dim, int32_t stored = 0) {
    std::vector<F32> all;
    for (uint32_t n = 0; n * kWarp < dim; ++n) {
      Pred exists;
      if ((n + 1) * kWarp > dim) exists = lane < dim - n * kWarp;
      const Pred* const existing = exists.writer != nullptr ? &exists : nullptr;
      all.push_back(stored == 0 ? ptx::load_element(type_, at, n * kWarp * size, existing)
                                : stored_element(stored, at, lane, n, existing));
    }
    return all;
  };
  const std::vector<F32> x = elements(query, keys.dim);
  const F32 shrink_once = number(w_, kShrink);
  Result row;
  for (uint32_t n = 0; n * kWarp < values.dim; ++n) row.sums.push_back(w_.variable(number(w_, 0)));
  row.reference = w_.variable(number(w_, -kLargest)), row.total = w_.variable(number(w_, 0));
  const U32 key = w_.variable(first);
  w_.repeat([&] { return key < end; },
            [&] {
              const std::vector<F32> y = elements(multiply_add(key, keys.row, keys.at), keys.dim, keys.stored);
              F32 plain = number(w_, 0), shrunk = number(w_, 0);
              for (uint32_t n = 0; n < x.size(); ++n) {
                plain = multiply_add(x[n], y[n], plain);
                if (wide()) shrunk = multiply_add(x[n] * shrink_once, y[n] * shrink_once, shrunk);
              }
              F32 score = sum_of_lanes(plain);
              if (wide()) {
                const F32 whole = sum_of_lanes(shrunk);
                F32 grown = saturated(saturated(whole * number(w_, kGrow)) * number(w_, kGrow));
                grown = select(whole == number(w_, -kInfinity), whole, grown);
                score = select(ptx::magnitude(score) <= number(w_, kLargest), score, grown);
              }
              score = select(number(w_, kLargest) < score, number(w_, kLargest), score);
              if (applied) score = applied(score, key);
              // An infinite query or key hides it.
              const Label hidden = w_.label();
              w_.jump_if(score == number(w_, -kInfinity), hidden);
              const F32 larger = select(row.reference < score, score, row.reference);
              const F32 shrink = ptx::power_of_2((row.reference - larger) * scale_);
              const F32 weight = ptx::power_of_2(multiply_add(score - larger, scale_, number(w_, headroom())));
              w_.assign(row.reference, larger);
              w_.assign(row.total, multiply_add(row.total, shrink, weight));
              const std::vector<F32> value =
                  elements(multiply_add(key, values.row, values.at), values.dim, values.stored);
              for (uint32_t n = 0; n < value.size(); ++n) {
                w_.assign(row.sums[n], multiply_add(weight, value[n], row.sums[n] * shrink));
              }
              w_.place(hidden);
              w_.assign(key, key + 1);
            });
  return row;
}

}  // namespace tuff::attention
