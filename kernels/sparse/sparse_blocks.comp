// C = alpha * A * B + beta * C for A in BSR. As in sparse_merge.comp, a lane has a chunk of the merge path, here through
// rows of blocks and blocks, and leaves partial sums for sparse_fold.comp. It has TUFF_TALL rows of each block and
// TUFF_WIDTH columns of B, so that an element of B serves all of these rows, one of A all of these columns, and an index
// the whole block:
//
//   block row of A   TUFF_TALL rows of each block   x   B: TUFF_WIDTH columns
//   tiles of lanes   row tile t, column tile w      of column_tiles: number t * column_tiles + w of the matrix
//
//# TUFF_TYPE : 1..4 : element type, as in tuff.h
//# TUFF_PERMUTED : 0|1 : 1: block e is number P[e] of indices and values
//# TUFF_TALL : 1..4 : rows of a lane
//# TUFF_WIDTH : 1..4 : columns of a lane
#define TUFF_VALUE_OF TUFF_TYPE
#define TUFF_EMPTY 0
#include "kernels/common/types.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(9)
  uint lanes;          // parts * blocks
  uint blocks;         // tiles, in this dispatch
  uint first;          // the first of them
  uint matrix_blocks;  // of one matrix of the batch
  uint n;              // columns of one matrix
  uint chunk;          // steps of a lane
  uint alpha[2], beta[2];  // the bits of a value
} push;

// Numbers of 64 bits, as low and high word.
TUFF_READ(8, T, uint, 4)

#include "kernels/sparse/numbers.glsl"

TUFF_READ(0, O, NAME, TUFF_INDEX_BYTES)
TUFF_READ(1, I, NAME, TUFF_INDEX_BYTES)
TUFF_READ(2, A, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
TUFF_READ(3, P, uint, 4)
TUFF_READ(4, B, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
TUFF_READ_WRITE(5, C, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
TUFF_WRITE(6, K, uint, 4)
TUFF_WRITE(7, V, TUFF_VALUE, TUFF_VALUE_BYTES)

#include "kernels/sparse/sums.glsl"

TUFF_INDEX path_rows, path_nnz;
#include "kernels/sparse/path.glsl"

//# constant SUMS : sums of a lane: row by row
const uint SUMS = TUFF_TALL * TUFF_WIDTH;

// For this lane.
TUFF_INDEX extent, b_row, c_row, elements, column_stride;
TUFF_INDEX a_at[TUFF_TALL], b_at[TUFF_WIDTH], c_at[TUFF_WIDTH];
uint block_rows, block_columns;
uint top;            // the first row of a block
uint height, width;  // rows and columns that there are
TUFF_VALUE sums[SUMS];

void add_blocks(TUFF_INDEX entry, TUFF_INDEX end) {
  for (; entry < end; ++entry) {
#if TUFF_PERMUTED
    const TUFF_INDEX from = TUFF_INDEX(TUFF_AT(P, entry));
#else
    const TUFF_INDEX from = entry;
#endif
    TUFF_INDEX column;
    const uint count = names(TUFF_AT(I, from), extent, column) ? block_columns : 0u;
    TUFF_INDEX a = from * elements, b = column * block_columns * b_row;
    for (uint k = 0u; k < count; ++k, a += column_stride, b += b_row) {
      TUFF_VALUE right[TUFF_WIDTH];
      [[unroll]] for (uint w = 0; w < TUFF_WIDTH; ++w) right[w] = LOADED(TUFF_AT(B, b_at[w] + b));
      [[unroll]] for (uint t = 0; t < TUFF_TALL; ++t) {
        const TUFF_VALUE left = LOADED(TUFF_AT(A, a_at[t] + a));
        [[unroll]] for (uint w = 0; w < TUFF_WIDTH; ++w) sums[t * TUFF_WIDTH + w] += left * right[w];
      }
    }
  }
}

void clear() {
  [[unroll]] for (uint i = 0; i < SUMS; ++i) sums[i] = TUFF_ZERO;
}

void write_row(TUFF_INDEX row) {
  [[unroll]] for (uint t = 0; t < TUFF_TALL; ++t) {
    [[unroll]] for (uint w = 0; w < TUFF_WIDTH; ++w) {
      if (t < height && w < width) {
        write_result(c_at[w] + (row * block_rows + (top + t)) * c_row, sums[t * TUFF_WIDTH + w]);
      }
    }
  }
}

void write_partial(uint place, uint block, uint key) {
  if (block == 0u) TUFF_AT(K, TUFF_INDEX(place)) = key;
  [[unroll]] for (uint i = 0; i < SUMS; ++i) {
    TUFF_AT(V, TUFF_INDEX(place) * (push.blocks * SUMS) + block * SUMS + i) = sums[i];
  }
}

void take_tile(uint block) {
  const uint all_blocks = push.first + block, matrix = all_blocks / push.matrix_blocks;
  const uint tile = all_blocks - matrix * push.matrix_blocks, column_tiles = (push.n + TUFF_WIDTH - 1u) / TUFF_WIDTH;
  const uint row_tile = tile / column_tiles, column = (tile - row_tile * column_tiles) * TUFF_WIDTH;
  top = row_tile * TUFF_TALL;
  height = block_rows - top, width = push.n - column;
  // Of the last row or column if there are no more.
  const TUFF_INDEX row_stride = NUMBER(12), values_at = matrix * NUMBER(7);
  [[unroll]] for (uint t = 0; t < TUFF_TALL; ++t) a_at[t] = values_at + (top + min(t, height - 1u)) * row_stride;
  [[unroll]] for (uint w = 0; w < TUFF_WIDTH; ++w) {
    const uint at = column + min(w, width - 1u);
    b_at[w] = matrix * NUMBER(8) + at * NUMBER(4);
    c_at[w] = matrix * NUMBER(9) + at * NUMBER(6);
  }
}

void main() {
  const uint lane = tuff_group() * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
  if (lane >= push.lanes) return;
  const uint part = lane / push.blocks, block = lane - part * push.blocks;
  path_rows = NUMBER(0), path_nnz = NUMBER(1), extent = NUMBER(2);
  b_row = NUMBER(3), c_row = NUMBER(5);
  block_rows = uint(NUMBER(10)), block_columns = uint(NUMBER(11)), column_stride = NUMBER(13);
  elements = TUFF_INDEX(block_rows * block_columns);
  take_tile(block);
  const TUFF_INDEX steps = path_rows + path_nnz, begin = TUFF_INDEX(part) * push.chunk;
  TUFF_INDEX row, entry, last_row, last_entry;
  path_at(begin, row, entry);
  path_at(min(begin + push.chunk, steps), last_row, last_entry);
  // No more than the chunk, should offsets decrease.
  last_entry = min(last_entry, entry + push.chunk);
  TUFF_INDEX row_begin = row < path_rows ? offset(row) : path_nnz;
  bool continued = entry > row_begin;
  entry = max(entry, row_begin);
  clear();
  uint head = NONE;
  for (; row < last_row; ++row) {
    const TUFF_INDEX row_end = min(offset(row + 1), last_entry);
    add_blocks(entry, row_end);
    entry = max(entry, row_end);
    if (continued) {
      head = uint(row);
      write_partial(2u * part, block, head);
      continued = false;
    } else {
      write_row(row);
    }
    clear();
    row_begin = row + 1 < path_rows ? row_end : path_nnz;
  }
  if (head == NONE && block == 0u) TUFF_AT(K, TUFF_INDEX(2u * part)) = NONE;
  add_blocks(entry, last_entry);
  const bool tail = row < path_rows && last_entry > row_begin;
  write_partial(2u * part + 1u, block, tail ? uint(row) : NONE);
}
