// Reduces rows: output[row * segments + s] = op over elements s * segment … of the row, at most `segment`
// of them and not beyond `extent`. With segments > 1 these are partial results for another stage.
//
// LANES invocations share one such piece: lane l takes blocks l, l + LANES, … of four elements, gathers
// them in a few independent chains, and the lanes' results meet in a tree, of shuffles up to the subgroup
// and of shared memory beyond:
//
//   piece  | 0 1 2 … LANES-1 | 0 1 2 … LANES-1 | …        blocks and their lanes
//
//   TUFF_LANES    a power of two up to the subgroup's size, or the whole workgroup
//   TUFF_SHARED   1: LANES is the workgroup and larger than a subgroup
//   TUFF_SINGLE   1: LANES is the workgroup
//   TUFF_CUT      1: segments > 1
//   TUFF_PEEL     1: pieces may start anywhere: up to 3 elements before and behind the blocks are single
//   TUFF_UNROLL   blocks in flight: 1, 2, 4, 8 or 16
//   REPEAT        pieces that a lane takes one after another; 1 with TUFF_SHARED
#include "kernels/elementwise/blocks.glsl"
#include "kernels/elementwise/math.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint REPEAT = 1;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  uint pieces;    // rows * segments
  uint extent;    // elements of a row
  uint segments;  // of each row
  uint segment;   // elements of each, a multiple of 4; the last has what is left
  float divisor;
} push;

TUFF_BLOCKS_READ(0, X)
TUFF_WRITE(1, Y, float, 4)

#include "kernels/reduce/reduce.glsl"

#if TUFF_SHARED
shared float parts[TUFF_LANES];
#endif

#define LOAD_BLOCK(i) TUFF_LOAD4(X, i)

void main() {
  // From the subgroup's own numbers, because shuffles count in those.
  uint thread = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
  uint lane = thread % TUFF_LANES;
  for (uint repeat = 0; repeat < REPEAT; ++repeat) {
    // Lanes without a piece repeat the last one: no branch, and every lane has a part in the shuffles.
#if TUFF_SINGLE
    uint piece = min(tuff_group() * REPEAT + repeat, push.pieces - 1);
#else
    uint piece = (tuff_group() * REPEAT + repeat) * (gl_WorkGroupSize.x / TUFF_LANES) + thread / TUFF_LANES;
    piece = min(piece, push.pieces - 1);
#endif
#if TUFF_CUT
    uint row = piece / push.segments;
    uint start = (piece - row * push.segments) * push.segment;
    uint begin = row * push.extent + start;
    uint elements = min(push.segment, push.extent - start);
#else
    uint begin = piece * push.extent;
    uint elements = push.extent;
#endif

    Partial total = empty_partial();
#if TUFF_PEEL
    uint end = begin + elements;
    uint inner_begin = min((begin + 3) & ~3u, end);
    uint inner_end = max(end & ~3u, inner_begin);
    for (uint i = begin + lane; i < inner_begin; i += TUFF_LANES) {
      gather(total, vec4(TUFF_AT(X_scalar, i), TUFF_IDENTITY, TUFF_IDENTITY, TUFF_IDENTITY));
    }
    for (uint i = inner_end + lane; i < end; i += TUFF_LANES) {
      gather(total, vec4(TUFF_AT(X_scalar, i), TUFF_IDENTITY, TUFF_IDENTITY, TUFF_IDENTITY));
    }
    uint blocks = (inner_end - inner_begin) / 4;
    uint block = inner_begin / 4 + lane;
    uint whole = (max(elements, 3u) - 3) / 4 / TUFF_LANES;  // wherever the row begins, every lane has these
#else
    uint blocks = elements / 4;
    uint block = begin / 4 + lane;
    uint whole = blocks / TUFF_LANES;
#endif
    TUFF_GATHER(total, whole, block, TUFF_LANES, LOAD_BLOCK)
    for (uint k = whole * TUFF_LANES + lane; k < blocks; k += TUFF_LANES, block += TUFF_LANES) {
      gather(total, LOAD_BLOCK(block));
    }

    float result = combine4(finish(total));
#if TUFF_SHARED
    for (uint mask = 1; mask < gl_SubgroupSize; mask *= 2) result = combine(result, subgroupShuffleXor(result, mask));
    if (gl_SubgroupInvocationID == 0) parts[gl_SubgroupID] = result;
    barrier();
    for (uint width = gl_NumSubgroups / 2; width > 0; width /= 2) {
      if (thread < width) parts[thread] = combine(parts[thread], parts[thread + width]);
      barrier();
    }
    result = parts[0];
#else
    [[unroll]] for (uint mask = 1; mask < TUFF_LANES; mask *= 2) {
      result = combine(result, subgroupShuffleXor(result, mask));
    }
#endif
    if (lane == 0) TUFF_AT(Y, piece) = scaled(vec4(result)).x;
  }
}
