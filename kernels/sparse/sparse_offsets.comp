// The offsets of sorted entries: Y[i] is the number of entries whose major number is below i, for i up to `majors`.
//
//# TUFF_DENSE : 0|1 : 1: the entries are those of a dense matrix, `minors` for each major number; K is not read
//# TUFF_SUMMED : 0|1 : 1: entries of the result are counted, by F (sparse_take.comp)
//# TUFF_SOME : 0|1 : 0: there are no entries (n is 0), and nothing is read
//# TUFF_RUN : 0.. : offsets that a lane computes; 0: push.run says
layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(3)
  uint n, run;
  uint majors, minors;
} push;

#include "kernels/sparse/numbers.glsl"
#include "kernels/sparse/search.glsl"

TUFF_READ(0, K, uint, 4)
TUFF_READ(1, F, uint, 4)
TUFF_WRITE(2, Y, NAME, TUFF_INDEX_BYTES)

void main() {
  const uint lanes = gl_WorkGroupSize.x;
  uint i = tuff_group() * (lanes * RUN) + gl_LocalInvocationID.x;
  for (uint step = 0; step < RUN && i <= push.majors; ++step, i += lanes) {
    uint before = 0u;
#if TUFF_SOME
#if TUFF_DENSE
    before = i * push.minors;
#else
    FIRST_NOT_BELOW(K, i, 0u, push.n, before)
#endif
#if TUFF_SUMMED
    if (before != 0u) before = TUFF_AT(F, TUFF_INDEX(before - 1u));
#endif
#endif
    TUFF_AT(Y, TUFF_INDEX(i)) = STORED_NAME(before);
  }
}
