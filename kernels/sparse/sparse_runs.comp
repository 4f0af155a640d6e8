// Adds the partial sums that sparse_tiles.comp or sparse_block_rows.comp left: a lane for each share and column looks
// whether the share's last row began in it. If it did, the lane adds what the shares up to the row's end left. Runs over
// many shares are added by all lanes of a subgroup.
//
//# TUFF_TYPE : 1..4 : element type, as in tuff.h
//# TUFF_BLOCKS : 0|1 : 1: rows are rows of blocks, and the list's columns as in sparse_block_rows.comp
#define TUFF_VALUE_OF TUFF_TYPE
#include "kernels/common/types.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(5)
  uint lanes;          // parts * columns
  uint parts, columns; // of the list
  uint first, matrix_blocks;  // as in sparse_tiles.comp
  uint chunk;
  uint alpha[2], beta[2];
} push;

TUFF_READ(4, T, uint, 4)  // as in sparse_tiles.comp

#include "kernels/sparse/numbers.glsl"

TUFF_READ(0, O, NAME, TUFF_INDEX_BYTES)
TUFF_READ(1, K, uint, 4)
TUFF_READ(2, V, TUFF_VALUE, TUFF_VALUE_BYTES)
TUFF_READ_WRITE(3, C, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))

#include "kernels/sparse/sums.glsl"

const uint FEW = 8;  // shares that a lane adds

// What share p left for a row, if p is before the last share; and share `last`.
TUFF_VALUE part_of(uint p, uint last, uint row, uint x) {
  const TUFF_INDEX place = 2u * TUFF_INDEX(p) + (p == last ? 0u : 1u);
  const TUFF_VALUE value = TUFF_AT(V, place * push.columns + x);
  return TUFF_AT(K, place) == row ? value : TUFF_ZERO;
}

void main() {
  const uint lane = tuff_group() * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
  const bool exists = lane < push.lanes;
  const uint part = exists ? lane / push.columns : 0u, x = exists ? lane - part * push.columns : 0u;
  const TUFF_INDEX list = 2u * TUFF_INDEX(part), path_nnz = NUMBER(1), rows = NUMBER(0);
  uint row = NONE;
  if (exists) row = TUFF_AT(K, list + 1u);
  // With an entry for the row in the share before and none that ends there, it began earlier.
  if (row != NONE && part > 0u && TUFF_AT(K, list) == NONE && TUFF_AT(K, list - 1u) == row) row = NONE;
  uint last = part;
  if (row != NONE) {
    // The step at which the row ends, and whose share that is.
    const TUFF_INDEX end = clamped(NAME_AT(O, TUFF_INDEX(row) + 1), path_nnz) + row;
    last = max(uint(min(end / push.chunk, TUFF_INDEX(push.parts - 1u))), part);
  }
  TUFF_VALUE sum = TUFF_ZERO;
  // In the share `part` itself the row has its beginning, also if it is the last one.
  if (row != NONE) sum = TUFF_AT(V, (list + 1u) * push.columns + x);
  const bool is_long = last - part > FEW;
  if (!is_long) {
    for (uint p = part + 1u; p <= last; ++p) sum += part_of(p, last, row, x);
  }
  uvec4 those = subgroupBallot(is_long);
  while (those != uvec4(0)) {
    const uint which = subgroupBallotFindLSB(those);
    const uint from = subgroupShuffle(part, which), to = subgroupShuffle(last, which), r = subgroupShuffle(row, which),
               column = subgroupShuffle(x, which);
    TUFF_VALUE of_lane = TUFF_ZERO;
    for (uint p = from + 1u + gl_SubgroupInvocationID; p <= to; p += gl_SubgroupSize) of_lane += part_of(p, to, r, column);
    of_lane = subgroupAdd(of_lane);
    if (gl_SubgroupInvocationID == which) sum += of_lane;
    those[which / 32u] &= ~(1u << (which % 32u));
  }
  if (row != NONE && TUFF_INDEX(row) < rows) {
#if TUFF_BLOCKS
    const uint rows_of_block = uint(NUMBER(10));
#else
    const uint rows_of_block = 1u;
#endif
    const uint of_list = x / rows_of_block, block = push.first + of_list, matrix = block / push.matrix_blocks;
    const uint column = block - matrix * push.matrix_blocks;
    const TUFF_INDEX c_row = TUFF_INDEX(row) * rows_of_block + (x - of_list * rows_of_block);
    write_result(matrix * NUMBER(9) + column * NUMBER(6) + c_row * NUMBER(5), sum);
  }
}
