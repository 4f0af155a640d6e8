// C = alpha * A * B + beta * C for A in CSR, or sums of the entries of rows. A lane has a chunk of the merge path
// (path.glsl) and TUFF_WIDTH columns of B. The rows that begin and end inside the chunk are complete, and written. A row
// that goes on in other chunks leaves a partial sum in each, which sparse_fold.comp adds in order:
//
//   list of chunk p    2 p: the end of a row that began before; 2 p + 1: the beginning, or the middle, of the last row
//
//# TUFF_TYPE : 1..4 : element type, as in tuff.h
//# TUFF_EMPTY : 0|1 : 1: there are no entries
//# TUFF_PERMUTED : 0|1 : 1: entry e is number P[e] of indices and values
//# TUFF_SUMS : 0|1 : 1: B is a vector of ones, and there are no indices
//# TUFF_WIDTH : 1..8 : columns of a lane
#define TUFF_VALUE_OF TUFF_TYPE
#include "kernels/common/types.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(9)
  uint lanes;          // parts * blocks
  uint blocks;         // of TUFF_WIDTH columns, in this dispatch
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

// For this lane.
TUFF_INDEX extent, values_at, b_row;
TUFF_INDEX b_at[TUFF_WIDTH], c_at[TUFF_WIDTH];
TUFF_INDEX c_row;
uint width;  // columns that there are
TUFF_VALUE sums[TUFF_WIDTH];

void add_entries(TUFF_INDEX entry, TUFF_INDEX end) {
#if !TUFF_EMPTY
  for (; entry < end; ++entry) {
#if TUFF_PERMUTED
    const TUFF_INDEX from = TUFF_INDEX(TUFF_AT(P, entry));
#else
    const TUFF_INDEX from = entry;
#endif
    const TUFF_VALUE a = LOADED(TUFF_AT(A, values_at + from));
#if TUFF_SUMS
    sums[0] += a;
#else
    // A product that is left out is not multiplied by 0, which an infinity would make a NaN.
    TUFF_INDEX column;
    const bool is = names(TUFF_AT(I, from), extent, column);
    column = is ? column * b_row : TUFF_INDEX(0);
    [[unroll]] for (uint w = 0; w < TUFF_WIDTH; ++w) {
      const TUFF_VALUE product = a * LOADED(TUFF_AT(B, b_at[w] + column));
      sums[w] += is ? product : TUFF_ZERO;
    }
#endif
  }
#endif
}

void clear() {
  [[unroll]] for (uint w = 0; w < TUFF_WIDTH; ++w) sums[w] = TUFF_ZERO;
}

void write_row(TUFF_INDEX row) {
  [[unroll]] for (uint w = 0; w < TUFF_WIDTH; ++w) {
    if (w < width) {
      write_result(c_at[w] + row * c_row, sums[w]);
    }
  }
}

void write_partial(uint place, uint block, uint key) {
  if (block == 0u) TUFF_AT(K, TUFF_INDEX(place)) = key;
  [[unroll]] for (uint w = 0; w < TUFF_WIDTH; ++w) {
    TUFF_AT(V, TUFF_INDEX(place) * (push.blocks * TUFF_WIDTH) + block * TUFF_WIDTH + w) = sums[w];
  }
}

const uint TURN = 16;  // entries that a lane takes before it lets others of its subgroup end their rows

void main() {
  const uint lane = tuff_group() * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
  if (lane >= push.lanes) return;
  const uint part = lane / push.blocks, block = lane - part * push.blocks;
  path_rows = NUMBER(0), path_nnz = NUMBER(1), extent = NUMBER(2);
  b_row = NUMBER(3), c_row = NUMBER(5);
  const uint all_blocks = push.first + block, matrix = all_blocks / push.matrix_blocks;
  const uint column = (all_blocks - matrix * push.matrix_blocks) * TUFF_WIDTH;
  width = push.n - column;
  values_at = matrix * NUMBER(7);
  [[unroll]] for (uint w = 0; w < TUFF_WIDTH; ++w) {
    const uint at = column + min(w, width - 1u);  // of the last column if there are no more
    b_at[w] = matrix * NUMBER(8) + at * NUMBER(4);
    c_at[w] = matrix * NUMBER(9) + at * NUMBER(6);
  }
  const TUFF_INDEX steps = path_rows + path_nnz, begin = TUFF_INDEX(part) * push.chunk;
  TUFF_INDEX row, entry, last_row, last_entry;
  path_at(begin, row, entry);
  path_at(min(begin + push.chunk, steps), last_row, last_entry);
  // No more than the chunk, should offsets decrease.
  last_entry = min(last_entry, entry + push.chunk);
  // Row 0 has no entries before its own.
  TUFF_INDEX row_begin = row < path_rows ? offset(row) : path_nnz;
  bool continued = entry > row_begin;
  entry = max(entry, row_begin);
  clear();
  uint head = NONE;
  while (row < last_row) {
    const TUFF_INDEX row_end = min(offset(row + 1), last_entry), stop = min(row_end, entry + TURN);
    add_entries(entry, stop);
    entry = max(entry, stop);
    if (entry >= row_end) {
      if (continued) {
        head = uint(row);
        write_partial(2u * part, block, head);
        continued = false;
      } else {
        write_row(row);
      }
      clear();
      ++row;
      row_begin = row < path_rows ? row_end : path_nnz;
    }
  }
  if (head == NONE && block == 0u) TUFF_AT(K, TUFF_INDEX(2u * part)) = NONE;
  add_entries(entry, last_entry);
  const bool tail = row < path_rows && last_entry > row_begin;
  write_partial(2u * part + 1u, block, tail ? uint(row) : NONE);
}
