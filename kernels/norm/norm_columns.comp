// For the columns of a matrix [rows][columns], over the rows of a chunk: the sums of G and G * n, with n the normalised
// input, or the moments of the input. T[chunk * columns + column] gets the sums, P alike the moments, as norm_split_rows has
// them.
//
//# TUFF_TYPE : types : element type of the tensors, as in tuff.h
//# TUFF_MOMENTS : 0|1 : 1: moments of X: mean, sum of squared deviations, factor; 0: sums
//# TUFF_BY_COLUMN : 0|1 : 1: columns have statistics; 0: rows, or parts of rows, have
//
// A workgroup has TUFF_COLUMNS lanes along the columns, each with W = TUFF_ELEMENTS of them, or one with TUFF_PEEL, times
// TUFF_SLICES, which take rows in turn. Their sums are added in shared memory.
//# TUFF_COLUMNS : 1..64 : lanes along the columns
//# TUFF_SLICES : 1|2|4|8|16|32 : lanes that share a column
//# TUFF_PEEL : 0|1 : 1: columns are not a multiple of W
#define TUFF_VALUE_OF TUFF_TYPE
#include "kernels/elementwise/blocks.glsl"
#include "kernels/elementwise/math.glsl"
#include "kernels/norm/norm.def"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(4)
  uint rows;
  uint columns;
  uint chunk;   // rows of a chunk; the last has the rest
  uint tiles;   // of columns
  uint chunks;
  uint first;   // the first row of this dispatch
  uint extent;  // columns that share a row's statistics
  uint groups;  // of these in a row
} push;

TUFF_BLOCKS_READ(0, X, TUFF_TYPE)
#if TUFF_MOMENTS
TUFF_WRITE(3, P, vec4, 16)
#else
TUFF_BLOCKS_READ(1, G, TUFF_TYPE)
TUFF_READ(2, S, vec4, 16)
TUFF_WRITE(3, T, vec2, 8)
#endif

#if TUFF_PEEL
#define COUNT 1
#define NUMBERS float
#else
#define COUNT TUFF_PARTS
#define NUMBERS vec4
#endif
#define WIDTH (TUFF_PEEL != 0 ? 1 : TUFF_ELEMENTS)

struct Columns {
  NUMBERS part[COUNT];
};

Columns all_of(float value) {
  Columns c;
  [[unroll]] for (uint p = 0; p < COUNT; ++p) c.part[p] = NUMBERS(value);
  return c;
}

Columns X_columns(TUFF_INDEX row, uint item) {
  Columns c;
#if TUFF_PEEL
  c.part[0] = X_load(row * push.columns + item);
#else
  const TuffBlock block = X_load_block(row * (push.columns / TUFF_ELEMENTS) + item);
  [[unroll]] for (uint p = 0; p < COUNT; ++p) c.part[p] = block.part[p];
#endif
  return c;
}

#if !TUFF_MOMENTS
Columns G_columns(TUFF_INDEX row, uint item) {
  Columns c;
#if TUFF_PEEL
  c.part[0] = G_load(row * push.columns + item);
#else
  const TuffBlock block = G_load_block(row * (push.columns / TUFF_ELEMENTS) + item);
  [[unroll]] for (uint p = 0; p < COUNT; ++p) c.part[p] = block.part[p];
#endif
  return c;
}
#endif

#if TUFF_PEEL
#define EACH(c, k) c.part[0]
#else
#define EACH(c, k) c.part[(k) / 4][(k) % 4]
#endif

#if TUFF_SLICES > 1
shared Columns slices[TUFF_SLICES * TUFF_COLUMNS];
// The sum over the slices of a column, or the largest.
Columns over_slices(Columns mine, uint slice, uint thread, bool largest) {
  barrier();  // earlier values have been read
  slices[thread] = mine;
  barrier();
  [[unroll]] for (uint width = TUFF_SLICES / 2; width > 0; width /= 2) {
    if (slice < width) {
      [[unroll]] for (uint p = 0; p < COUNT; ++p) {
        const NUMBERS a = slices[thread].part[p], b = slices[thread + width * TUFF_COLUMNS].part[p];
        slices[thread].part[p] = largest ? max(a, b) : a + b;
      }
    }
    barrier();
  }
  return slices[thread % TUFF_COLUMNS];
}
#else
Columns over_slices(Columns mine, uint slice, uint thread, bool largest) { return mine; }
#endif

#if TUFF_MOMENTS
// The factor of a column: like that of a row (factors.glsl), but from the largest magnitude, before anything is squared.
// From 2^60 on squares could leave the range; below 2^-34 small ones could matter that vanish.
#define TUFF_SHRINK 2.0194839173657902e-28  // 2^-92
#define TUFF_GROW 4951760157141521099596496896.0  // 2^92
#endif

void main() {
  const uint thread = gl_LocalInvocationID.x, slice = thread / TUFF_COLUMNS;
  const uint group = tuff_group();
  const uint chunk = group / push.tiles, tile = group - chunk * push.tiles;
  if (chunk >= push.chunks) return;  // the whole workgroup
  uint item = tile * TUFF_COLUMNS + thread % TUFF_COLUMNS;
  const bool live = item < push.columns / WIDTH;
  item = live ? item : 0;
  const uint start = chunk * push.chunk, stop = start + min(push.chunk, push.rows - start);

#if TUFF_MOMENTS
  const float count = float(stop - start);
  Columns factor = all_of(1.0);
#if TUFF_TYPE != TUFF_F16
  Columns largest = all_of(0.0);
  for (uint row = start + slice; row < stop; row += TUFF_SLICES) {
    const Columns x = X_columns(row, item);
    [[unroll]] for (uint p = 0; p < COUNT; ++p) largest.part[p] = max(largest.part[p], abs(x.part[p]));
  }
  largest = over_slices(largest, slice, thread, true);
  [[unroll]] for (uint k = 0; k < WIDTH; ++k) {
    const float most = EACH(largest, k);
    EACH(factor, k) = most >= 1152921504606846976.0 ? TUFF_SHRINK : most < 5.820766091346741e-11 ? TUFF_GROW : 1.0;
  }
#endif
  Columns sum = all_of(0.0);
  for (uint row = start + slice; row < stop; row += TUFF_SLICES) {
    const Columns x = X_columns(row, item);
    [[unroll]] for (uint p = 0; p < COUNT; ++p) {
      precise NUMBERS scaled = x.part[p] * factor.part[p];
      sum.part[p] += scaled;
    }
  }
  Columns mean = over_slices(sum, slice, thread, false);
  [[unroll]] for (uint p = 0; p < COUNT; ++p) mean.part[p] = mean.part[p] / count;
  Columns squares = all_of(0.0);
  for (uint row = start + slice; row < stop; row += TUFF_SLICES) {
    const Columns x = X_columns(row, item);
    [[unroll]] for (uint p = 0; p < COUNT; ++p) {
      precise NUMBERS scaled = x.part[p] * factor.part[p];
      precise NUMBERS d = scaled - mean.part[p];
      squares.part[p] += d * d;
    }
  }
  squares = over_slices(squares, slice, thread, false);
  if (live && slice == 0) {
    [[unroll]] for (uint k = 0; k < WIDTH; ++k) {
      TUFF_AT(P, chunk * push.columns + item * WIDTH + k) =
          vec4(EACH(mean, k), EACH(squares, k), EACH(factor, k), 0.0);
    }
  }
#else
#if TUFF_BY_COLUMN
  Columns mean, scale, factor;
  [[unroll]] for (uint k = 0; k < WIDTH; ++k) {
    const vec4 s = TUFF_AT(S, item * WIDTH + k);
    EACH(mean, k) = s.x, EACH(scale, k) = s.y, EACH(factor, k) = s.z;
  }
#endif
  // Sums of 32 rows are added to those before, so that chains of additions stay short.
  Columns level = all_of(0.0), along = level, part_level = level, part_along = level;
  uint step = 0;
  for (uint row = start + slice; row < stop; row += TUFF_SLICES, ++step) {
    const Columns x = X_columns(row, item), g = G_columns(row, item);
#if TUFF_BY_COLUMN
    [[unroll]] for (uint p = 0; p < COUNT; ++p) {
      const NUMBERS n = (x.part[p] * factor.part[p] - mean.part[p]) * scale.part[p];
      part_level.part[p] += g.part[p];
      part_along.part[p] += g.part[p] * n;
    }
#else
    const uint of_row = (push.first + row) * push.groups;
    [[unroll]] for (uint p = 0; p < COUNT; ++p) {
#if TUFF_PEEL
      const vec4 s = TUFF_AT(S, of_row + item / push.extent);
#else
      // Blocks of columns share the statistics, unless parts of rows are not a multiple of W: then TUFF_PEEL is 1.
      const vec4 s = TUFF_AT(S, of_row + item * WIDTH / push.extent);
#endif
      const NUMBERS n = (x.part[p] * s.z - s.x) * s.y;
      part_level.part[p] += g.part[p];
      part_along.part[p] += g.part[p] * n;
    }
#endif
    if ((step & 31u) == 31u) {
      [[unroll]] for (uint p = 0; p < COUNT; ++p) {
        level.part[p] += part_level.part[p];
        along.part[p] += part_along.part[p];
      }
      part_level = all_of(0.0);
      part_along = all_of(0.0);
    }
  }
  [[unroll]] for (uint p = 0; p < COUNT; ++p) {
    level.part[p] += part_level.part[p];
    along.part[p] += part_along.part[p];
  }
  level = over_slices(level, slice, thread, false);
  along = over_slices(along, slice, thread, false);
  if (live && slice == 0) {
    [[unroll]] for (uint k = 0; k < WIDTH; ++k) {
      TUFF_AT(T, chunk * push.columns + item * WIDTH + k) = vec2(EACH(level, k), EACH(along, k));
    }
  }
#endif
}
