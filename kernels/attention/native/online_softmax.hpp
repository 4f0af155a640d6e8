// Softmax while keys are read, in kernels in PTX: what they know of a row, and the exact but slow way for rows with
// unusual scores.
//
// A weight is 2^(score * scale_log2 + c). c belongs to the row's reference, its largest score or up to 2^SLACK less:
// sums are rescaled only if a score is far above it, which is rare after the first keys.
//
// Rows for which that is not accurate are computed again, key by key: those with a score that is NaN, infinite or
// enormous, or, with bf16 and f32, with no score in the range of f32. That is slow and very rare.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "kernels/native/ptx.hpp"
#include "tuff/tuff.h"

namespace tuff::attention {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kLargest = std::numeric_limits<float>::max();

class OnlineSoftmax {
 public:
  // `type` of the tensors; scores * scale_log2 are exponents of two. With `distant`, rows whose scores are all enormous
  // are not computed again: their weights are 2^((score - reference) * scale_log2).
  OnlineSoftmax(ptx::Writer& w, int32_t type, const ptx::F32& scale_log2, bool distant = false);

  struct Row {
    ptx::F32 reference;  // a score
    ptx::F32 c;          // of the weights
    ptx::F32 limit;      // the largest score for which the reference is good
    ptx::F32 total;      // the sum of this thread's weights
    ptx::F32 shrink;     // what the sums are rescaled by
    ptx::U32 again;      // whether the row has to be computed again
    ptx::U32 distant;    // whether its reference is enormous
  };
  void make(Row& row) const;
  void start(const Row& row) const;
  // Weights, and thus sums, have this power of two, so that a sum of weight * value stays finite for 2^24 keys whatever
  // the values are. f16 weights could not represent it, and f16 values need none.
  float headroom() const { return wide() ? -24 : 0; }
  // A new reference: the row's largest score so far. `largest` is this thread's; the four that share the row exchange.
  void raise(const Row& row, ptx::F32 largest) const;
  // At the row's end: scores below the range of f32 may have been cut.
  void check_range(const Row& row) const;

  // The exponent of a score's weight. If no row of the warp may be distant, `near`.
  ptx::F32 exponent(const Row& row, const ptx::F32& score, bool near) const;
  // The logarithm to base two of the sum over e^score, if weights add up to `total`.
  ptx::F32 log_of_sum(const Row& row, const ptx::F32& total) const;
  ptx::F32 log_of_2(const ptx::F32& x) const;
  // 1 / total, or 0 if the row saw no key.
  ptx::F32 inverse(const ptx::F32& total) const;
  // sum * inverse, which is in the type's range if the sum is finite: rounded weights may add up to slightly more than
  // their total.
  ptx::F32 in_range(const ptx::F32& sum, const ptx::F32& inverse) const;
  // Beyond the range of f32: the largest number. NaN stays.
  ptx::F32 saturated(const ptx::F32& x) const;

  // A row computed by one warp key by key. Each lane has every 32nd element, of the query and of keys and values, whose
  // addresses are those of the lane's first one. `applied` changes the score of a key, if there is such a function.
  struct Result {
    std::vector<ptx::F32> sums;
    ptx::F32 reference, total;
  };
  struct Tensor {
    ptx::U64 at;
    ptx::U32 row;  // bytes
    uint32_t dim;
    int32_t stored = 0;  // a format of stored_rows.hpp: then `at` is the address of the row's beginning
  };
  using Applied = std::function<ptx::F32(const ptx::F32& score, const ptx::U32& key)>;
  Result one_by_one(const ptx::U64& query, const Tensor& keys, const Tensor& values, const ptx::U32& lane,
                    const ptx::U32& first, const ptx::U32& end, const Applied& applied = {}) const;

 private:
  bool wide() const { return type_ != TUFF_F16; }  // as f32 is
  ptx::F32 sum_of_lanes(ptx::F32 x) const;

  ptx::Writer& w_;
  int32_t type_;
  bool distant_;
  ptx::F32 scale_, slack_;
};

}  // namespace tuff::attention
