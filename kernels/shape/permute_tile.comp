// Transposes tiles through shared memory. The input's innermost axis ("across") is not the output's ("along"), so lanes
// that read neighbouring elements would write far apart. A workgroup reads TILE x TILE elements row by row of the input
// into shared memory and writes them row by row of the output:
//
//         across →                          along →
//   along ┌────────┐  lanes read a row  across ┌────────┐  lanes write a row
//     ↓   │        │                       ↓   │        │
//         └────────┘                           └────────┘
//
// Rows in shared memory are one element longer than the tile, so that a column is spread over as many banks as a row.
// TUFF_UNIT, the size of an element, is at most 8, and TUFF_LONG is 0.
//# TUFF_PAIRS : 0|1 : 1: elements of two bytes, with even sizes, strides and bases, are read and written as pairs
//   A lane then reads two rows of a pair of columns; shared memory holds pairs along.
layout(local_size_x_id = 0) in;
// Divides the workgroup size; TILE * TILE / 4 is a multiple of the workgroup size.
layout(constant_id = 1) const uint TILE = 32;
layout(constant_id = 2) const uint BATCH_RANK = 0;  // number of the other axes

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  uint across, along;              // sizes
  uint across_tiles, along_tiles, groups;
  uint input_stride, output_stride;  // the stride of along in the input, and of across in the output
  uint batch_sizes[5];               // innermost first; the outermost is not needed
  uint input_strides[6], output_strides[6];
} push;

#include "kernels/shape/units.glsl"
TUFF_READ(0, X, UNIT, TUFF_UNIT)
TUFF_WRITE(1, Y, UNIT, TUFF_UNIT)

#if TUFF_PAIRS
TUFF_READ(0, X2, uint, 4)
TUFF_WRITE(1, Y2, uint, 4)
shared uint tile[TILE * (TILE / 2 + 1)];
#else
shared HELD tile[TILE * (TILE + 1)];
#endif

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
#if TUFF_PAIRS
  const uint half_tile = TILE / 2, pitch = half_tile + 1;
  const uint lane = gl_LocalInvocationID.x, x = lane % half_tile, first = lane / half_tile,
             step = gl_WorkGroupSize.x / half_tile;
  if (across_begin + 2 * x < push.across) {
    const TUFF_INDEX from = (input_base + across_begin) / 2 + x;
    const uint stride = push.input_stride / 2;
    for (uint y = first; y < half_tile; y += 2 * step) {
      uint held[4];
      [[unroll]] for (uint k = 0; k < 4; ++k) {
        const uint row = min(along_begin + 2 * (y + (k >> 1) * step) + (k & 1u), push.along - 1);
        held[k] = TUFF_AT(X2, from + TUFF_INDEX(row) * stride);
      }
      [[unroll]] for (uint k = 0; k < 2; ++k) {
        const uint low = held[2 * k], high = held[2 * k + 1];
        tile[2 * x * pitch + y + k * step] = (low & 0xffffu) | (high << 16);
        tile[(2 * x + 1) * pitch + y + k * step] = (low >> 16) | (high & 0xffff0000u);
      }
    }
  }
  barrier();
  if (along_begin + 2 * x < push.along) {
    const TUFF_INDEX to = (output_base + along_begin) / 2 + x;
    for (uint y = first; y < TILE; y += step) {
      if (across_begin + y < push.across) {
        TUFF_AT(Y2, to + TUFF_INDEX(across_begin + y) * (push.output_stride / 2)) = tile[y * pitch + x];
      }
    }
  }
#else
  const uint lane = gl_LocalInvocationID.x, x = lane % TILE, first = lane / TILE, step = gl_WorkGroupSize.x / TILE;
  if (across_begin + x < push.across) {
    const TUFF_INDEX from = input_base + across_begin + x;
    // Four rows are in flight. Rows beyond the last are read as copies of it and never written.
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
#endif
}
