// The row and the column of each entry, as numbers of 32 bits: R and S. An entry of which one is out of range, or that
// belongs to no row, has `rows` and `columns` instead, so that it comes last when entries are sorted.
//
//# TUFF_OFFSETS : 0|1 : 0: X and I are the rows and columns; 1: X is offsets, I the columns, in chunks of the merge path
//# TUFF_RUN : 0.. : TUFF_OFFSETS 0: entries that a lane processes; 0: push.run says
layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(4)
  uint n;  // entries
  uint rows, columns;
  uint run;    // TUFF_OFFSETS 1: steps of a lane
  uint lanes;  // TUFF_OFFSETS 1
} push;

#define TUFF_EMPTY 0
#include "kernels/sparse/numbers.glsl"

TUFF_READ(0, O, NAME, TUFF_INDEX_BYTES)
TUFF_READ(1, I, NAME, TUFF_INDEX_BYTES)
TUFF_WRITE(2, R, uint, 4)
TUFF_WRITE(3, S, uint, 4)

void write(TUFF_INDEX entry, bool is, TUFF_INDEX row, TUFF_INDEX column) {
  TUFF_AT(R, entry) = is ? uint(row) : push.rows;
  TUFF_AT(S, entry) = is ? uint(column) : push.columns;
}

#if TUFF_OFFSETS
TUFF_INDEX path_rows, path_nnz;
#include "kernels/sparse/path.glsl"

void main() {
  const uint lane = tuff_group() * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
  if (lane >= push.lanes) return;
  path_rows = TUFF_INDEX(push.rows), path_nnz = TUFF_INDEX(push.n);
  const TUFF_INDEX steps = path_rows + path_nnz, begin = TUFF_INDEX(lane) * push.run;
  TUFF_INDEX row, entry, last_row, last_entry;
  path_at(begin, row, entry);
  path_at(min(begin + push.run, steps), last_row, last_entry);
  last_entry = min(last_entry, entry + push.run);
  TUFF_INDEX row_begin = row < path_rows ? offset(row) : path_nnz, row_end = row < path_rows ? offset(row + 1) : path_nnz;
  for (; entry < last_entry; ++entry) {
    while (row < last_row && row_end <= entry) {
      ++row;
      row_begin = row < path_rows ? offset(row) : path_nnz;
      row_end = row < path_rows ? offset(row + 1) : path_nnz;
    }
    TUFF_INDEX column;
    const bool is = names(TUFF_AT(I, entry), TUFF_INDEX(push.columns), column);
    write(entry, is && row < path_rows && entry >= row_begin && entry < row_end, row, column);
  }
}
#else
void main() {
  const uint lanes = gl_WorkGroupSize.x;
  uint i = tuff_group() * (lanes * RUN) + gl_LocalInvocationID.x;
  for (uint step = 0; step < RUN && i < push.n; ++step, i += lanes) {
    TUFF_INDEX row, column;
    const bool row_is = names(TUFF_AT(O, TUFF_INDEX(i)), TUFF_INDEX(push.rows), row);
    const bool column_is = names(TUFF_AT(I, TUFF_INDEX(i)), TUFF_INDEX(push.columns), column);
    write(TUFF_INDEX(i), row_is && column_is, row, column);
  }
}
#endif
