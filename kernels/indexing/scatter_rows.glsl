// What the kernels share that go through the rows of updates: unit i of updates [outer][rows][inner], counted from the
// first row of the dispatch, belongs to output [outer][places][inner], in the row that its key says.
//# TUFF_SINGLE : 0|1 : 1: outer and inner are 1
//# TUFF_RUN : 0.. : units that a lane takes one after another; 0: push.run says
layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(4)
  uint n, run;
  uint none;   // the key of an index out of range, and the number of places
  uint first;  // number of the first row
  uint sizes[2], multipliers[2], shifts[2];  // inner, rows: kernels/common/division.glsl
  uint from_stride, from_stride_high, to_stride, to_stride_high;  // from one outer index to the next, in units
} push;

#include "kernels/common/division.glsl"
TUFF_READ(1, K, uint, 4)

#if TUFF_WIDE
#define STRIDE(name) (uint64_t(push.name##_high) << 32 | uint64_t(push.name))
#else
#define STRIDE(name) push.name
#endif

// The row and the key of unit i; its places in the updates and, if the key is below `none`, in the output.
void locate(uint i, out uint row, out uint key, out TUFF_INDEX from, out TUFF_INDEX to) {
#if TUFF_SINGLE
  row = i;
  key = TUFF_AT(K, TUFF_INDEX(i));
  from = TUFF_INDEX(i);
  to = TUFF_INDEX(key);
#else
  const uint each = tuff_divide(i, push.multipliers[0], push.shifts[0]);
  const uint outer = tuff_divide(each, push.multipliers[1], push.shifts[1]);
  const uint place = i - each * push.sizes[0];
  row = each - outer * push.sizes[1];
  key = TUFF_AT(K, TUFF_INDEX(row));
  from = TUFF_INDEX(outer) * STRIDE(from_stride) + TUFF_INDEX(row) * push.sizes[0] + place;
  to = TUFF_INDEX(outer) * STRIDE(to_stride) + TUFF_INDEX(key) * push.sizes[0] + place;
#endif
}
