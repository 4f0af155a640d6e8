// Transposes through registers, for CPUs. The input's innermost axis ("across") is not the output's ("along"). An
// invocation reads a 4 x 4 tile as pieces of four rows of the input and writes it as pieces of four rows of the output.
// Eight invocations have a block of 8 along by 16 across, which uses cache lines of the input whole. They proceed
// across, up to 64 elements, and then along, which completes the lines of the output:
//
//             across →                        along →
//     along ┌──┬──┬──┬──┐              across ┌──┬──┐
//       ↓   │ 0│ 1│ 2│ 3│ → and on        ↓   │ 0│ 4│
//           ├──┼──┼──┼──┤                     ├──┼──┤
//           │ 4│ 5│ 6│ 7│                     │ 1│ 5│
//           └──┴──┴──┴──┘                      …
//
// Reading pairs of elements as 64-bit integers, which benefits other kernels on CPUs, costs more here than it saves.
// TUFF_UNIT, the size of an element, is at most 8.
//# TUFF_VEC4S : 0|1 : 1: rows of both operands are aligned vec4s (not for TUFF_UNIT 8)
//# TUFF_RUN : 0.. : blocks along that a workgroup processes; 0: push.run says
layout(local_size_x_id = 0) in;
layout(constant_id = 2) const uint BATCH_RANK = 0;  // number of the other axes

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  uint across, along;                // sizes
  uint across_tiles, along_tiles, groups;  // along_tiles: of RUN blocks
  uint input_stride, output_stride;  // the stride of along in the input, and of across in the output
  uint batch_sizes[5];               // innermost first; the outermost is not needed
  uint input_strides[6], output_strides[6];
  uint run;
} push;

#include "kernels/shape/units.glsl"
#include "kernels/common/pointer.glsl"
TUFF_READ(0, X, UNIT, TUFF_UNIT)
TUFF_WRITE(1, Y, UNIT, TUFF_UNIT)

#if TUFF_VEC4S
#if TUFF_UNIT == 1
#define FOUR uint
#define FOUR_BYTES 4
#elif TUFF_UNIT == 2
#define FOUR uvec2
#define FOUR_BYTES 8
#elif TUFF_UNIT == 4
#define FOUR uvec4
#define FOUR_BYTES 16
#endif
TUFF_READ(0, X4, FOUR, FOUR_BYTES)
TUFF_WRITE(1, Y4, FOUR, FOUR_BYTES)

#if TUFF_UNIT == 4
#define COLUMN(c) FOUR(a[c], b[c], d[c], e[c])
#elif TUFF_UNIT == 2
// Element c of two rows, as one word.
#define PAIR(p, q, c) ((c & 1) == 0 ? (p[c >> 1] & 0xffffu) | (q[c >> 1] << 16) : (p[c >> 1] >> 16) | (q[c >> 1] & 0xffff0000u))
#define COLUMN(c) FOUR(PAIR(a, b, c), PAIR(d, e, c))
#else
#define BYTE(p, c, at) (((p >> (8 * c)) & 0xffu) << (8 * at))
#define COLUMN(c) (BYTE(a, c, 0) | BYTE(b, c, 1) | BYTE(d, c, 2) | BYTE(e, c, 3))
#endif

void transpose(TUFF_INDEX from, TUFF_INDEX to) {
  const TUFF_INDEX in_step = TUFF_INDEX(push.input_stride / 4), out_step = TUFF_INDEX(push.output_stride / 4);
  TUFF_POINTER(X4, x, from / 4);
  TUFF_POINTER(Y4, y, to / 4);
  const FOUR a = TUFF_FROM(X4, x, 0), b = TUFF_FROM(X4, x, in_step), d = TUFF_FROM(X4, x, 2 * in_step),
             e = TUFF_FROM(X4, x, 3 * in_step);
  TUFF_FROM(Y4, y, 0) = COLUMN(0);
  TUFF_FROM(Y4, y, out_step) = COLUMN(1);
  TUFF_FROM(Y4, y, 2 * out_step) = COLUMN(2);
  TUFF_FROM(Y4, y, 3 * out_step) = COLUMN(3);
}
#else
void transpose(TUFF_INDEX from, TUFF_INDEX to) {
  TUFF_POINTER(X, x, from);
  TUFF_POINTER(Y, y, to);
  [[unroll]] for (uint c = 0; c < 4; ++c) {
    [[unroll]] for (uint r = 0; r < 4; ++r) {
      TUFF_FROM(Y, y, TUFF_INDEX(c) * push.output_stride + r) = TUFF_FROM(X, x, TUFF_INDEX(r) * push.input_stride + c);
    }
  }
}
#endif

void main() {
  uint rest = tuff_group();
  if (rest >= push.groups) return;
  uint next = rest / push.along_tiles;
  const uint along_begin = (rest - next * push.along_tiles) * (8 * RUN);
  rest = next;
  next = rest / push.across_tiles;
  const uint across_begin = (rest - next * push.across_tiles) * 64;
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
  const uint items = 8 * ((min(push.across - across_begin, 64u) + 15) / 16);
  for (uint block = 0; block < RUN; ++block) {
    for (uint item = gl_LocalInvocationID.x; item < items; item += gl_WorkGroupSize.x) {
      const uint across = across_begin + 16 * (item >> 3) + 4 * (item & 3u), along = along_begin + 8 * block + (item & 4u);
      const TUFF_INDEX from = input_base + TUFF_INDEX(along) * push.input_stride + across,
                       to = output_base + TUFF_INDEX(across) * push.output_stride + along;
      if (across + 4 <= push.across && along + 4 <= push.along) {
        transpose(from, to);
#if !TUFF_VEC4S
      } else if (across < push.across && along < push.along) {
        const uint columns = min(push.across - across, 4u), rows = min(push.along - along, 4u);
        for (uint i = 0; i < columns * rows; ++i) {
          const uint r = i / columns, c = i - r * columns;
          TUFF_AT(Y, to + TUFF_INDEX(c) * push.output_stride + r) =
              TUFF_AT(X, from + TUFF_INDEX(r) * push.input_stride + c);
        }
#endif
      }
    }
  }
}
