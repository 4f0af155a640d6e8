// Entry u of the result, for each u below `capacity`: its numbers, where its run of sorted entries begins, and from a
// dense matrix its value. F holds the running sums of the flags (sparse_flags.comp), so an entry u begins at each i where
// F[i] = u + 1 is more than the sum before it. Entries that there are not have the numbers -1. Element `capacity` of the
// runs is the end of all. A lane has some numbers i below n, and as many places u.
//
//# TUFF_TYPE : 1..4 : element type, as in tuff.h
//# TUFF_DENSE : 0|1 : 1: from a dense matrix
//# TUFF_MAJOR : 0|1 : 1: M receives the major numbers
//# TUFF_SOME : 0|1 : 0: there are no entries (n is 0), and nothing is read
//# TUFF_ROOM : 0|1 : 0: capacity is 0, and M, N and V are not written
//# TUFF_COUNT : 0|1 : 1: Z receives the number of entries
//# TUFF_RUN : 0.. : entries that a lane processes; 0: push.run says
#define TUFF_VALUE_OF TUFF_TYPE
#include "kernels/common/types.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(10)
  uint n, run;
  uint majors, minors;
  uint capacity;
  uint major_stride, major_stride_high, minor_stride, minor_stride_high;  // TUFF_DENSE 1: in elements
} push;

#include "kernels/sparse/numbers.glsl"
#include "kernels/sparse/search.glsl"

TUFF_READ(0, K, uint, 4)
TUFF_READ(1, P, uint, 4)
TUFF_READ(2, S, uint, 4)
TUFF_READ(3, D, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
TUFF_READ(4, F, uint, 4)
TUFF_WRITE(5, M, NAME, TUFF_INDEX_BYTES)
TUFF_WRITE(6, N, NAME, TUFF_INDEX_BYTES)
TUFF_WRITE(7, V, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
TUFF_WRITE(8, Q, uint, 4)   // beginnings of runs
TUFF_WRITE(9, Z, uvec2, 8)  // a number of 64 bits

#include "kernels/common/joined.glsl"

#if TUFF_SOME
// Entry u begins at i.
void begin(uint u, uint i) {
  if (u > push.capacity) return;
#if TUFF_DENSE
  const uint major = i / push.minors, minor = i - major * push.minors;
#else
  TUFF_AT(Q, TUFF_INDEX(u)) = i;
#endif
#if TUFF_ROOM
  if (u >= push.capacity) return;
#if TUFF_DENSE
  const TUFF_INDEX at = major * JOINED(major_stride) + minor * JOINED(minor_stride);
  const TUFF_VALUE value = TUFF_VALUE(TUFF_NUMBER(TUFF_TYPE, TUFF_LOADED(TUFF_TYPE, TUFF_AT(D, at))));
  TUFF_AT(V, TUFF_INDEX(u)) = TUFF_ROUNDED(TUFF_TYPE, TUFF_OF_VALUE(TUFF_TYPE, value));
#else
  const uint minor = TUFF_AT(S, TUFF_INDEX(TUFF_AT(P, TUFF_INDEX(i))));
#if TUFF_MAJOR
  const uint major = TUFF_AT(K, TUFF_INDEX(i));
#endif
#endif
#if TUFF_MAJOR
  TUFF_AT(M, TUFF_INDEX(u)) = STORED_NAME(major);
#endif
  TUFF_AT(N, TUFF_INDEX(u)) = STORED_NAME(minor);
#endif
}
#endif

// There is no entry u; `end`: the end of all runs.
void leave(uint u, uint end) {
#if !TUFF_DENSE
  TUFF_AT(Q, TUFF_INDEX(u)) = end;
#endif
#if TUFF_ROOM
  if (u >= push.capacity) return;
#if TUFF_MAJOR
  TUFF_AT(M, TUFF_INDEX(u)) = NO_NAME;
#endif
  TUFF_AT(N, TUFF_INDEX(u)) = NO_NAME;
#if TUFF_DENSE
  TUFF_AT(V, TUFF_INDEX(u)) = TUFF_ROUNDED(TUFF_TYPE, TUFF_OF_VALUE(TUFF_TYPE, TUFF_ZERO));
#endif
#endif
}

void main() {
  const uint lanes = gl_WorkGroupSize.x;
  uint i = tuff_group() * (lanes * RUN) + gl_LocalInvocationID.x;
  uint count = 0u;
#if TUFF_SOME
  count = TUFF_AT(F, TUFF_INDEX(push.n - 1u));
#endif
#if TUFF_COUNT
  if (i == 0u) TUFF_AT(Z, 0) = uvec2(count, 0u);
#endif
  const uint items = max(push.n, push.capacity + 1u);
  uint end = 0u;
  bool found = false;
  for (uint step = 0; step < RUN && i < items; ++step, i += lanes) {
#if TUFF_SOME
    if (i < push.n) {
      const uint sum = TUFF_AT(F, TUFF_INDEX(i)), before = i == 0u ? 0u : TUFF_AT(F, TUFF_INDEX(max(i, 1u) - 1u));
      if (sum != before) begin(sum - 1u, i);
    }
#if !TUFF_DENSE
    if (i >= count && i <= push.capacity && !found) {
      // After the last run come the entries that are out of range.
      FIRST_NOT_BELOW(K, push.majors, 0u, push.n, end)
      found = true;
    }
#endif
#endif
    if (i >= count && i <= push.capacity) leave(i, end);
  }
}
