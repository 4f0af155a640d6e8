// A dense matrix from one in CSR whose columns ascend within each row: each element is looked up in its row.
//
//# TUFF_TYPE : 1..4 : element type, as in tuff.h
//# TUFF_SOME : 0|1 : 0: there are no entries, and nothing is read
//# TUFF_RUN : 0.. : elements that a lane writes; 0: push.run says
#define TUFF_VALUE_OF TUFF_TYPE
#include "kernels/common/types.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(4)
  uint n, run;  // elements
  uint columns;
  uint ld, ld_high;
} push;

TUFF_READ(0, O, uint, 4)
TUFF_READ(1, I, uint, 4)
TUFF_READ(2, A, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
TUFF_WRITE(3, Y, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))

#include "kernels/common/joined.glsl"
#include "kernels/sparse/search.glsl"

void main() {
  const uint lanes = gl_WorkGroupSize.x;
  uint i = tuff_group() * (lanes * RUN) + gl_LocalInvocationID.x;
  for (uint step = 0; step < RUN && i < push.n; ++step, i += lanes) {
    const uint row = i / push.columns, column = i - row * push.columns;
    TUFF_VALUE value = TUFF_ZERO;
#if TUFF_SOME
    const uint begin = TUFF_AT(O, TUFF_INDEX(row)), end = TUFF_AT(O, TUFF_INDEX(row + 1u));
    uint at;
    FIRST_NOT_BELOW(I, column, begin, end, at)
    if (at < end) {
      if (TUFF_AT(I, TUFF_INDEX(at)) == column) {
        value = TUFF_VALUE(TUFF_NUMBER(TUFF_TYPE, TUFF_LOADED(TUFF_TYPE, TUFF_AT(A, TUFF_INDEX(at)))));
      }
    }
#endif
    TUFF_AT(Y, row * JOINED(ld) + column) = TUFF_ROUNDED(TUFF_TYPE, TUFF_OF_VALUE(TUFF_TYPE, value));
  }
}
