// Adds the partial sums of rows that sparse_merge.comp left: a list of entries, each the number of a row and a value for
// each column, ordered by row. A lane has one column of a chunk of consecutive entries. Rows that begin and end inside
// the chunk are written; the first and the last row of a chunk may go on in others, and become two entries of a shorter
// list, which the next dispatch folds in the same way. In the last dispatch there is one chunk, and all rows are written.
// Entries whose number is NONE are passed over.
//
//# TUFF_TYPE : 1..4 : element type, as in tuff.h
//# TUFF_LAST : 0|1 : 1: there is one chunk
//# TUFF_WIDTH : 1..16 : columns of a block, as in sparse_merge.comp; with TUFF_TALL, sums of a lane of sparse_blocks.comp
//# TUFF_TALL : 0..4 : rows of a lane of sparse_blocks.comp, whose rows are those of blocks; 0: of sparse_merge.comp
#define TUFF_VALUE_OF TUFF_TYPE
#include "kernels/common/types.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(6)
  uint lanes;          // chunks * columns
  uint columns;        // of the list
  uint entries, chunk;
  uint first, matrix_blocks, n;  // as in sparse_merge.comp
  uint alpha[2], beta[2];
} push;

TUFF_READ(0, K, uint, 4)
TUFF_READ(1, V, TUFF_VALUE, TUFF_VALUE_BYTES)
TUFF_READ_WRITE(2, C, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
TUFF_WRITE(3, K2, uint, 4)
TUFF_WRITE(4, V2, TUFF_VALUE, TUFF_VALUE_BYTES)
TUFF_READ(5, T, uint, 4)  // as in sparse_merge.comp

#include "kernels/sparse/sums.glsl"

void main() {
  const uint lane = tuff_group() * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
  if (lane >= push.lanes) return;
  const uint chunk = lane / push.columns, x = lane - chunk * push.columns;
  const uint block = push.first + x / TUFF_WIDTH, matrix = block / push.matrix_blocks;
#if TUFF_TALL
  const uint across = TUFF_WIDTH / TUFF_TALL, column_tiles = (push.n + across - 1u) / across;
  const uint tile = block - matrix * push.matrix_blocks, row_tile = tile / column_tiles;
  const uint column = (tile - row_tile * column_tiles) * across + x % across;
  const uint below = row_tile * TUFF_TALL + x % TUFF_WIDTH / across;  // the row in the row of blocks
  const bool is = column < push.n && TUFF_INDEX(below) < NUMBER(10);
  const TUFF_INDEX at = matrix * NUMBER(9) + column * NUMBER(6) + below * NUMBER(5), c_row = NUMBER(5) * NUMBER(10);
#else
  const uint column = (block - matrix * push.matrix_blocks) * TUFF_WIDTH + x % TUFF_WIDTH;
  const bool is = column < push.n;  // otherwise the last block has fewer columns
  const TUFF_INDEX at = matrix * NUMBER(9) + column * NUMBER(6), c_row = NUMBER(5);
#endif
  const TUFF_INDEX rows = NUMBER(0);
  const uint begin = chunk * push.chunk, end = min(begin + push.chunk, push.entries);
  uint key = NONE;
  TUFF_VALUE sum = TUFF_ZERO;
  bool head = true;
  for (uint entry = begin; entry <= end; ++entry) {
    const uint next = entry < end ? TUFF_AT(K, TUFF_INDEX(entry)) : NONE;
    if (entry < end && next == NONE) continue;
    const TUFF_VALUE value = entry < end ? TUFF_AT(V, TUFF_INDEX(entry) * push.columns + x) : TUFF_ZERO;
    if (next == key && entry < end) {
      sum += value;
      continue;
    }
    if (key != NONE) {
      bool complete = true;
#if !TUFF_LAST
      complete = !head && entry < end;
      if (!complete) {
        const uint place = 2u * chunk + uint(entry == end);
        if (x == 0u) TUFF_AT(K2, TUFF_INDEX(place)) = key;
        TUFF_AT(V2, TUFF_INDEX(place) * push.columns + x) = sum;
      }
      // A chunk with entries of one row has none for the list's first place.
      if (head && entry == end && x == 0u) TUFF_AT(K2, TUFF_INDEX(2u * chunk)) = NONE;
#endif
      if (complete && is && TUFF_INDEX(key) < rows) {
        write_result(at + TUFF_INDEX(key) * c_row, sum);
      }
      head = false;
    }
    key = next;
    sum = value;
  }
#if !TUFF_LAST
  if (head && x == 0u) {
    TUFF_AT(K2, TUFF_INDEX(2u * chunk)) = NONE;
    TUFF_AT(K2, TUFF_INDEX(2u * chunk + 1u)) = NONE;
  }
#endif
}
