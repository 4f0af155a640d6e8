// What the planners of eigenvalues and singular values share: scratch memory of a call, and matrices that are brought
// to it, scaled (linalg_load.comp).
#pragma once

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
