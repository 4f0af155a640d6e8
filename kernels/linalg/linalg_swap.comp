// Exchanges rows: for k from `first` on, one after another, row k with row pivots[k]. An invocation has a column of one
// matrix, so that no other one reads or writes what it moves. The columns of a panel, which linalg_lu.comp has exchanged
// already, are left out:
//
//   columns   0 … skip_first - 1 | skipped | skip_first + skip_columns …
//
// A pivot that is no row below `rows` exchanges nothing.
//
//# TUFF_REVERSE : 0|1 : 1: from the last row to the first, which undoes it
//# TUFF_TYPE : 1|4 : element type, as in tuff.h
#define TUFF_VALUE_OF TUFF_TYPE
#include "kernels/common/types.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  TUFF_INDEX row_stride, stride, stride_pivots;
  uint rows;
  uint first, count;              // the rows that are exchanged
  uint columns;                   // without those that are skipped
  uint skip_first, skip_columns;
  uint groups;                    // workgroups for each matrix
  uint matrices;
} push;

TUFF_READ_WRITE(0, A, TUFF_VALUE, TUFF_VALUE_BYTES)
TUFF_READ(1, Pivots, int, 4)

void main() {
  const uint group = tuff_group(), matrix = group / push.groups;
  uint column = (group - matrix * push.groups) * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
  if (matrix >= push.matrices || column >= push.columns) return;
  if (column >= push.skip_first) column += push.skip_columns;
  const TUFF_INDEX base = TUFF_INDEX(matrix) * push.stride + column, row_stride = push.row_stride;
  const TUFF_INDEX pivots = TUFF_INDEX(matrix) * push.stride_pivots;
  for (uint step = 0; step < push.count; ++step) {
    const uint k = push.first + (TUFF_REVERSE != 0 ? push.count - 1 - step : step);
    const uint pivot = uint(TUFF_AT(Pivots, pivots + k));
    if (pivot < push.rows && pivot != k) {
      const TUFF_INDEX here = base + TUFF_INDEX(k) * row_stride, there = base + TUFF_INDEX(pivot) * row_stride;
      const TUFF_VALUE value = TUFF_AT(A, here);
      TUFF_AT(A, here) = TUFF_AT(A, there);
      TUFF_AT(A, there) = value;
    }
  }
}
