// Converts a dense index to the coordinates of an operand with strides. The push block holds, for MOST axes
// (AxisDividers of kernels/common/strided_axes.hpp), innermost first:
//   uint sizes[MOST - 1], multipliers[MOST - 1], shifts[2];
//   int …_strides[MOST];
// RANK, a constant, is the actual number of axes.
#include "kernels/common/division.glsl"

#if TUFF_WIDE
#define TUFF_ALONG(coordinate, stride) (int64_t(coordinate) * int64_t(stride))
#else
#define TUFF_ALONG(coordinate, stride) ((coordinate) * uint(stride))
#endif

// Declares c, the coordinate along axis d, and leaves in n the dense index over the outer axes.
#define TUFF_NEXT_COORDINATE(n, c, d)                                                                             \
  uint c = n;                                                                                                     \
  if (d + 1 < RANK) {                                                                                             \
    n = tuff_divide(n, push.multipliers[d], (push.shifts[d >> 2] >> (8 * (d & 3))) & 31u);                        \
    c -= n * push.sizes[d];                                                                                       \
  }
