// What the softmax kernels for rows share: trees over the TUFF_LANES invocations of a row, in which every
// lane gets the result, by shuffles and, with TUFF_SHARED, across the subgroups of the workgroup.
//
// NaN: the maximum may drop it or keep it; either way the sum of the exponentials is NaN, and then so is
// every result of the row. The same holds for an element of +infinity, as in x - max(x).
#if TUFF_SHARED
shared float parts[TUFF_LANES];
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
  float name(float value) {                                                   \
    for (uint mask = 1; mask < min(TUFF_LANES, gl_SubgroupSize); mask *= 2) { \
      value = COMBINE(value, subgroupShuffleXor(value, mask));                \
    }                                                                         \
    TUFF_ACROSS(COMBINE)                                                      \
    return value;                                                             \
  }

float larger(float a, float b) { return b > a ? b : a; }
float sum(float a, float b) { return a + b; }
TUFF_TREE(tree_maximum, larger)
TUFF_TREE(tree_sum, sum)

float larger4(vec4 v) { return larger(larger(v.x, v.y), larger(v.z, v.w)); }
// The larger of four running maxima and of a block's elements, each with those of its own column.
vec4 larger_block(vec4 m, TuffBlock x) {
  [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) m = mix(m, x.part[p], greaterThan(x.part[p], m));
  return m;
}
float sum4(vec4 v) { return (v.x + v.y) + (v.z + v.w); }

// What is subtracted: the maximum, but nothing while all elements are -infinity, so that e^(x - shift) is 0.
float finite_shift(float maximum) { return maximum == -TUFF_INFINITY ? 0.0 : maximum; }

// 1 / total; a total of 0 (no element above -infinity) gives NaN, as 0 / 0 would.
float reciprocal(float total) { return total > 0.0 ? tuff_divide_moderate(vec4(1.0), vec4(total)).x : TUFF_NAN; }
