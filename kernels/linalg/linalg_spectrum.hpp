// What the planners of eigenvalues and singular values share: scratch memory of a call, and matrices that are brought
// to it, scaled (linalg_load.comp).
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/linalg/linalg_plan.hpp"

namespace tuff::linalg {

// Hands out scratch memory for `matrices` matrices, in elements. Integers take as much as an element.
class Layout {
 public:
  Layout(const Batch& batch, const Buffer* buffer, uint64_t matrices)
      : batch_(batch), buffer_(buffer), matrices_(matrices) {}
  View take(uint64_t rows, uint64_t columns) {
    const View view{buffer_, used_, rows > 1 ? columns : 0, batch_.count > 1 ? rows * columns : 0};
    used_ += rows * columns * matrices_;
    return view;
  }
  uint64_t used() const { return used_; }

 private:
  const Batch& batch_;
  const Buffer* buffer_;
  uint64_t matrices_, used_ = 0;
};

// Whether a call has nothing to decompose: it is recorded then.
template <typename Args>
bool is_empty(Recorder& recorder, const Args& args, uint64_t extent) {
  if (args.batch_count != 0 && extent != 0) return false;
  require_device(recorder, args.dtype, 0);
  if (args.batch_count != 0) record_no_failures(recorder, args.info, args.batch_count);
  return true;
}

// The values of a call's matrices, each of which has a row of them.
template <typename Args>
View values_of(const Args& args) {
  return {args.values, 0, 0, args.batch_count > 1 ? args.stride_values : 0};
}

// Parts of a batch for whose matrices there is scratch memory. take(layout, part) takes that of a matrix; `elements`
// are the most that an operand has.
template <typename Take>
class PartsInScratch {
 public:
  PartsInScratch(const Batch& batch, uint64_t elements, const Take& take) : batch_(batch), take_(take) {
    Layout one(batch, nullptr, 1);
    take(one, batch);
    used_ = one.used();
    most_ = matrices_at_once(batch, used_);
    require_device(batch.recorder, batch.dtype, std::max(elements, used_));
  }
  // Calls body(part, its first matrix, what take() returned, the scratch memory, the number of matrices that it is
  // for).
  template <typename Body>
  void each(uint64_t groups, const Body& body) const {
    const Buffer& scratch = batch_.recorder.scratch(used_ * most_ * batch_.size(), Scratch::outer);
    for_each_part(batch_, groups, most_, [&](const Batch& part, uint64_t first) {
      Layout layout(part, &scratch, most_);
      body(part, first, take_(layout, part), scratch, most_);
    });
  }

 private:
  const Batch& batch_;
  const Take& take_;
  uint64_t used_, most_;
};

// Operands of `each` integers of 4 bytes, or numbers, for each matrix, in memory of a Layout.
void integer_operand(const Batch& batch, Dispatch& dispatch, const View& view, uint64_t each, Access access);
void number_operand(const Batch& batch, Dispatch& dispatch, const View& view, uint64_t each, Access access);

// Invocations that share `extent` elements. On CPU devices loops are bounded (kernels/common/loop_limit.hpp).
uint32_t lanes_for(const Batch& batch, uint64_t extent);

// What is known about scaled matrices: their Frobenius norms, and the state of linalg_pairs.glsl, state_words()
// integers for each.
struct ScaledMemory {
  View row_values, norm, state;
};
uint64_t state_words();
ScaledMemory take_scaled(Layout& layout, uint64_t rows);

// Copies rows x columns matrices, each scaled by a power of two. `triangles` as TUFF_TRIANGLES.
void record_scaled(const Batch& batch, const View& from, const View& to, uint64_t rows, uint64_t columns, int triangles,
                   const ScaledMemory& memory);

}  // namespace tuff::linalg
