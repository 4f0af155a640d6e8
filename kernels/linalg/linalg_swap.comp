// Exchanges rows: for k from `first` on, one after another, row k with row pivots[k]. An invocation has a column of one
// matrix, so that no other one reads or writes what it moves. The columns of a panel, which linalg_lu.comp has exchanged
// already, are left out:
//
//   columns   0 … skip_first - 1 | skipped | skip_first + skip_columns …
//
// A pivot that is no row below `rows` exchanges nothing.
//
// With TUFF_TOGETHER all exchanges become one permutation of the rows that take part, each of which has a slot: first the
// rows first ..., then the other pivots. Invocation 0 exchanges slots instead of rows. An invocation then reads all
// elements that move before it writes one, and so waits for memory once, not once for each exchange.
//
// With TUFF_PANEL more workgroups bring the panel back to its place in the matrix, at row and column `first`, from a copy
// whose columns are contiguous. Each has TILE rows.
//
//# TUFF_TOGETHER : 0|1 : 1: at most MOST_TOGETHER exchanges, as one permutation
//# TUFF_PANEL : 0|1 : 1: slot 2 has copies of the panels of skip_columns columns; needs TUFF_TOGETHER
//# TUFF_REVERSE : 0|1 : 1: from the last row to the first, which undoes it
//# TUFF_TYPE : 1|4 : element type, as in tuff.h
#define TUFF_VALUE_OF TUFF_TYPE
#include "kernels/common/types.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(3)
  TUFF_INDEX row_stride, stride, stride_pivots;
  uint rows;
  uint first, count;              // the rows that are exchanged
  uint columns;                   // without those that are skipped
  uint skip_first, skip_columns;
  uint groups, panel_groups;      // workgroups for each matrix
  uint matrices;
} push;

TUFF_READ_WRITE(0, A, TUFF_VALUE, TUFF_VALUE_BYTES)
TUFF_READ(1, Pivots, int, 4)
#if TUFF_PANEL
TUFF_READ(2, Panel, TUFF_VALUE, TUFF_VALUE_BYTES)
#endif

#if TUFF_TOGETHER
//# constant MOST_TOGETHER : the largest number of exchanges that become one permutation
const uint MOST_TOGETHER = 32;
const uint SLOTS = 2 * MOST_TOGETHER;
shared uint pivot_rows[MOST_TOGETHER], pivot_slots[MOST_TOGETHER];
shared uint sources[SLOTS];  // the slot whose row's elements come to this one

uint row_of(uint slot) { return slot < MOST_TOGETHER ? push.first + slot : pivot_rows[slot - MOST_TOGETHER]; }

void find_sources(TUFF_INDEX pivots) {
  const uint thread = gl_LocalInvocationID.x, threads = gl_WorkGroupSize.x, count = push.count;
  for (uint s = thread; s < SLOTS; s += threads) sources[s] = s;
  for (uint s = thread; s < count; s += threads) pivot_rows[s] = uint(TUFF_AT(Pivots, pivots + push.first + s));
  barrier();
  for (uint s = thread; s < count; s += threads) {
    const uint row = pivot_rows[s];
    uint slot = s;  // itself, if there is no such row
    if (row - push.first < count) {
      slot = row - push.first;
    } else if (row < push.rows) {
      slot = MOST_TOGETHER + s;
      for (uint other = s; other-- > 0;) slot = pivot_rows[other] == row ? MOST_TOGETHER + other : slot;
    }
    pivot_slots[s] = slot;
  }
  barrier();
  if (thread == 0) {
    for (uint step = 0; step < count; ++step) {
      const uint k = TUFF_REVERSE != 0 ? count - 1 - step : step, slot = pivot_slots[k], source = sources[k];
      sources[k] = sources[slot];
      sources[slot] = source;
    }
  }
  barrier();
}
#endif

#if TUFF_PANEL
//# constant TILE : rows of the panel that a workgroup brings back
const uint TILE = 64;
const uint MOST_COLUMNS = 32, TILE_PITCH = TILE + 1;
shared TUFF_VALUE tile[MOST_COLUMNS * TILE_PITCH];  // by columns

void bring_back(uint matrix, uint number) {
  const uint thread = gl_LocalInvocationID.x, threads = gl_WorkGroupSize.x, columns = push.skip_columns;
  const uint rows = push.rows - push.first, first = number * TILE, count = min(TILE, rows - first);
  const TUFF_INDEX from = TUFF_INDEX(matrix) * (TUFF_INDEX(rows) * columns) + first;
  for (uint e = thread; e < TILE * columns; e += threads) {
    const uint i = e % TILE, j = e / TILE;
    if (i < count) tile[j * TILE_PITCH + i] = TUFF_AT(Panel, from + TUFF_INDEX(j) * rows + i);
  }
  barrier();
  const TUFF_INDEX to = TUFF_INDEX(matrix) * push.stride + TUFF_INDEX(push.first + first) * push.row_stride + push.first;
  for (uint e = thread; e < count * MOST_COLUMNS; e += threads) {
    const uint i = e / MOST_COLUMNS, j = e % MOST_COLUMNS;
    if (j < columns) TUFF_AT(A, to + TUFF_INDEX(i) * push.row_stride + j) = tile[j * TILE_PITCH + i];
  }
}
#endif

void main() {
  const uint group = tuff_group(), groups = push.groups + push.panel_groups, matrix = group / groups;
  const uint number = group - matrix * groups;
  uint column = number * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
  if (matrix >= push.matrices) return;
#if TUFF_PANEL
  if (number >= push.groups) {
    bring_back(matrix, number - push.groups);
    return;
  }
#endif
  const TUFF_INDEX pivots = TUFF_INDEX(matrix) * push.stride_pivots;
#if TUFF_TOGETHER
  find_sources(pivots);
#endif
  if (column >= push.columns) return;
  if (column >= push.skip_first) column += push.skip_columns;
  const TUFF_INDEX base = TUFF_INDEX(matrix) * push.stride + column, row_stride = push.row_stride;
#if TUFF_TOGETHER
  TUFF_VALUE values[SLOTS];
  [[unroll]] for (uint s = 0; s < SLOTS; ++s) {
    if (sources[s] != s) values[s] = TUFF_AT(A, base + TUFF_INDEX(row_of(sources[s])) * row_stride);
  }
  [[unroll]] for (uint s = 0; s < SLOTS; ++s) {
    if (sources[s] != s) TUFF_AT(A, base + TUFF_INDEX(row_of(s)) * row_stride) = values[s];
  }
#else
  for (uint step = 0; step < push.count; ++step) {
    const uint k = push.first + (TUFF_REVERSE != 0 ? push.count - 1 - step : step);
    const uint pivot = uint(TUFF_AT(Pivots, pivots + k));
    if (pivot < push.rows && pivot != k) {
      const TUFF_INDEX here = base + TUFF_INDEX(k) * row_stride, there = base + TUFF_INDEX(pivot) * row_stride;
      const TUFF_VALUE value = TUFF_AT(A, here);
      TUFF_AT(A, here) = TUFF_AT(A, there);
      TUFF_AT(A, there) = value;
    }
  }
#endif
}
