// Sums of the integers of a matrix's rows, or of blocks of them, modulo 2^32: sum `block` * rows + row is that of
// elements block * part, … of a row. A subgroup adds one.
//
//# TUFF_VECTOR : 0|1 : 1: rows and blocks begin at multiples of four
#include "kernels/common/types.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  uint count, each;  // sums; those of a workgroup
  uint rows, ld;
  uint k, part;      // integers of a row, and of a block
} push;

TUFF_READ(0, X, int8_t, 1)
TUFF_READ(0, X4, uint, 4)
TUFF_WRITE(1, Y, int, 4)

int part_of(TUFF_INDEX from, uint length) {
  int sum = 0;
  const uint lane = gl_SubgroupInvocationID;
#if TUFF_VECTOR
  const uint fours = length / 4u;
  for (uint i = lane; i < fours; i += gl_SubgroupSize) {
    const ivec4 v = tuff_unpack_7(TUFF_AT(X4, from / 4 + i));
    sum += (v.x + v.y) + (v.z + v.w);
  }
  const uint rest = 4u * fours + lane;
  if (rest < length) sum += int(TUFF_AT(X, from + rest));  // fewer than four
#else
  for (uint i = lane; i < length; i += gl_SubgroupSize) sum += int(TUFF_AT(X, from + i));
#endif
  return sum;
}

void main() {
  const uint first = tuff_group() * push.each;
  for (uint i = first + gl_SubgroupID; i < min(first + push.each, push.count); i += gl_NumSubgroups) {
    const uint block = i / push.rows, row = i - block * push.rows, begin = block * push.part;
    const int sum = subgroupAdd(part_of(TUFF_INDEX(row) * push.ld + begin, min(push.part, push.k - begin)));
    if (gl_SubgroupInvocationID == 0u) TUFF_AT(Y, TUFF_INDEX(i)) = sum;
  }
}
