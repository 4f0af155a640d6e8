// Shared by reduce_rows.comp and expression_rows.comp: the results of the TUFF_LANES invocations of a piece become one.
//# TUFF_LANES : 1..1024 : lanes of a piece: a power of two up to the subgroup's size, or the whole workgroup
//# TUFF_SHARED : 0|1 : 1: LANES is the workgroup and larger than a subgroup
#if TUFF_SHARED
shared TUFF_RESULT parts[TUFF_LANES];
#endif

// Shuffles and shared memory use the subgroup's own numbering.
uint tuff_thread() { return gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID; }

TUFF_RESULT result_of_lanes(TUFF_RESULT result) {
#if TUFF_SHARED
  for (uint mask = 1; mask < gl_SubgroupSize; mask *= 2) result = combine(result, TUFF_RESULT_XOR(result, mask));
  const uint thread = tuff_thread();
  if (gl_SubgroupInvocationID == 0) parts[gl_SubgroupID] = result;
  barrier();
  for (uint width = gl_NumSubgroups / 2; width > 0; width /= 2) {
    if (thread < width) parts[thread] = combine(parts[thread], parts[thread + width]);
    barrier();
  }
  return parts[0];
#else
  [[unroll]] for (uint mask = 1; mask < TUFF_LANES; mask *= 2) {
    result = combine(result, TUFF_RESULT_XOR(result, mask));
  }
  return result;
#endif
}
