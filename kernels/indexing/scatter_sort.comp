// One pass of a stable radix sort of indices by the places that they name. Each lane has `chunk` consecutive entries,
// and counts of its own: T[digit][lane]. TUFF_STAGE 1 counts; then the counts are summed up (kernels/scan), which gives
// where each lane's entries of each digit go; TUFF_STAGE 2 moves them, in order. Nothing depends on the order in which
// lanes run.
//# TUFF_STAGE : 1|2 : 1: counts; 2: moves
//# TUFF_NUMBERED : 0|1 : 1: the indices are 0, 1, 2 … (the first pass); 0: P holds them
layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(5)
  uint n, lanes, chunk;
  uint shift, mask;  // of the digit
} push;

TUFF_READ(0, K, uint, 4)
TUFF_READ(1, P, uint, 4)
TUFF_READ_WRITE(2, T, uint, 4)
TUFF_WRITE(3, K2, uint, 4)
TUFF_WRITE(4, P2, uint, 4)

void main() {
  const uint lane = tuff_group() * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
  if (lane >= push.lanes) return;
  const uint begin = lane * push.chunk, end = min(begin + push.chunk, push.n);
#if TUFF_STAGE == 1
  for (uint digit = 0; digit <= push.mask; ++digit) TUFF_AT(T, digit * push.lanes + lane) = 0u;
#endif
  for (uint i = begin; i < end; ++i) {
    const uint key = TUFF_AT(K, i), count = (key >> push.shift & push.mask) * push.lanes + lane;
    const uint at = TUFF_AT(T, count);
    TUFF_AT(T, count) = at + 1u;
#if TUFF_STAGE == 2
    TUFF_AT(K2, at) = key;
#if TUFF_NUMBERED
    TUFF_AT(P2, at) = i;
#else
    TUFF_AT(P2, at) = TUFF_AT(P, i);
#endif
#endif
  }
}
