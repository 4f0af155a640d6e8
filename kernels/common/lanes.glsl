// Shared by row kernels: reduction trees over the TUFF_LANES invocations of a row, by shuffles and, with TUFF_SHARED,
// across the subgroups of the workgroup. Every lane gets the result. TUFF_TREE(name, COMBINE) defines one. Values are
// TUFF_VALUE (types.glsl, included before).
//# TUFF_LANES : 1..1024 : invocations that share a row: a power of two up to the subgroup size, or the whole workgroup
//# TUFF_SHARED : 0|1 : 1: TUFF_LANES is the whole workgroup, which is larger than a subgroup

// TUFF_ANY_ROW(condition): whether the condition, which is the same in all lanes of a row, holds for any row of the
// subgroup. A tree in a loop needs it: all lanes of a subgroup have to take part in the same iterations.
#if TUFF_SHARED
#define TUFF_ANY_ROW(condition) (condition)
#else
#define TUFF_ANY_ROW(condition) (subgroupBallot(condition) != uvec4(0))
#endif
#if TUFF_SHARED
shared TUFF_VALUE parts[TUFF_LANES];
#define TUFF_ACROSS(COMBINE)                                                           \
  uint thread = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;             \
  barrier();                                                                           \
  if (gl_SubgroupInvocationID == 0) parts[gl_SubgroupID] = value;                      \
  barrier();                                                                           \
  for (uint width = gl_NumSubgroups / 2; width > 0; width /= 2) {                      \
    if (thread < width) parts[thread] = COMBINE(parts[thread], parts[thread + width]); \
    barrier();                                                                         \
  }                                                                                    \
  value = parts[0];
#else
#define TUFF_ACROSS(COMBINE)
#endif

#define TUFF_TREE(name, COMBINE)                                              \
  TUFF_VALUE name(TUFF_VALUE value) {                                         \
    for (uint mask = 1; mask < min(TUFF_LANES, gl_SubgroupSize); mask *= 2) { \
      value = COMBINE(value, TUFF_SHUFFLE_XOR(value, mask));                  \
    }                                                                         \
    TUFF_ACROSS(COMBINE)                                                      \
    return value;                                                             \
  }

TUFF_VALUE sum(TUFF_VALUE a, TUFF_VALUE b) { return TUFF_ADD(a, b); }
TUFF_TREE(tree_sum, sum)
TUFF_VALUE sum4(TUFF_VALUE4 v) { return (v.x + v.y) + (v.z + v.w); }
