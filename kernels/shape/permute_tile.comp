// Transposes a tile: the input's innermost axis ("across") is not the output's ("along"), so that lanes that read
// neighbours would write far apart. A group reads TILE x TILE elements row by row of the input into shared memory, and
// writes them row by row of the output:
//
//         across →                          along →
//   along ┌────────┐  lanes read a row  across ┌────────┐  lanes write a row
//     ↓   │        │                       ↓   │        │
//         └────────┘                           └────────┘
//
// Rows in shared memory are one element longer than the tile, so that a column lies in as many banks as a row.
//   TUFF_UNIT   bytes of an element: 1, 2, 4, 8
//   TILE        a divisor of the workgroup size, of which a fourth of its square is a multiple
//   BATCH_RANK  axes beside the two
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint TILE = 32;
layout(constant_id = 2) const uint BATCH_RANK = 0;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  uint across, along;              // sizes
  uint across_tiles, along_tiles, groups;
  uint input_stride, output_stride;  // of along in the input, of across in the output
  uint batch_sizes[5];               // innermost first; the outermost is not needed
  uint input_strides[6], output_strides[6];
} push;

#define TUFF_LONG 0
#include "kernels/shape/units.glsl"
TUFF_READ(0, X, UNIT, TUFF_UNIT)
TUFF_WRITE(1, Y, UNIT, TUFF_UNIT)

shared HELD tile[TILE * (TILE + 1)];

void main() {
  uint rest = tuff_group();
  if (rest >= push.groups) return;
  uint next = rest / push.across_tiles;
  const uint across_begin = (rest - next * push.across_tiles) * TILE;
  rest = next;
  next = rest / push.along_tiles;
  const uint along_begin = (rest - next * push.along_tiles) * TILE;
  rest = next;
  TUFF_INDEX input_base = TUFF_INDEX(0), output_base = TUFF_INDEX(0);
  for (uint d = 0; d < BATCH_RANK; ++d) {
    uint c = rest;
    if (d + 1 < BATCH_RANK) {
      rest /= push.batch_sizes[d];
      c -= rest * push.batch_sizes[d];
    }
    input_base += TUFF_INDEX(c) * push.input_strides[d];
    output_base += TUFF_INDEX(c) * push.output_strides[d];
  }
  const uint lane = gl_LocalInvocationID.x, x = lane % TILE, first = lane / TILE, step = gl_WorkGroupSize.x / TILE;
  if (across_begin + x < push.across) {
    const TUFF_INDEX from = input_base + across_begin + x;
    // Four rows in flight; what lies behind the last row is read from it once more, and never written.
    for (uint y = first; y < TILE; y += 4 * step) {
      HELD held[4];
      [[unroll]] for (uint k = 0; k < 4; ++k) {
        const uint row = min(along_begin + y + k * step, push.along - 1);
        held[k] = HELD(TUFF_AT(X, from + TUFF_INDEX(row) * push.input_stride));
      }
      [[unroll]] for (uint k = 0; k < 4; ++k) tile[(y + k * step) * (TILE + 1) + x] = held[k];
    }
  }
  barrier();
  if (along_begin + x < push.along) {
    const TUFF_INDEX to = output_base + along_begin + x;
    for (uint y = first; y < TILE; y += step) {
      if (across_begin + y < push.across) {
        TUFF_AT(Y, to + TUFF_INDEX(across_begin + y) * push.output_stride) = UNIT(tile[x * (TILE + 1) + y]);
      }
    }
  }
}
