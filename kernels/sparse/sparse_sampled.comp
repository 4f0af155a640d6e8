// Elements of a product of two dense matrices: C[e] = alpha * S[e] * (A * op(B))[i, j] + beta * C[e] for place e, which is at
// (i, j). A lane has a place, or the lanes of a subgroup share one.
//
//# TUFF_TYPE : 1..4 : element type, as in tuff.h
//# TUFF_OFFSETS : 0|1 : 0: O is the rows of the places; 1: the offsets of rows, in which a place's row is looked up
//# TUFF_SOME : 0|1 : 0: there is nothing to add up, and I, A, B, S and the rows of places are not read
//# TUFF_SCALED : 0|1 : 0: S is ones
//# TUFF_BETA : 0|1 : 0: beta is 0, and C is not read
//# TUFF_SHARED : 0|1 : 1: a subgroup's lanes add every gl_SubgroupSize-th product of a place
//# TUFF_RUN : 0.. : places that a worker (a lane or a subgroup) has; 0: push.run says
#define TUFF_VALUE_OF TUFF_TYPE
#include "kernels/common/types.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(7)
  uint n, run;     // places of a matrix
  uint k;
  uint groups;     // workgroups that have places: per_matrix for each matrix
  uint per_matrix;
  uint first;      // the first matrix
  uint alpha[2], beta[2];  // the bits of a value
} push;

TUFF_READ(6, T, uint, 4)  // numbers of 64 bits

#define TUFF_EMPTY 0
#include "kernels/sparse/numbers.glsl"

TUFF_READ_TEXELS(0, O, NAME, TUFF_INDEX_BYTES)
TUFF_READ_TEXELS(1, I, NAME, TUFF_INDEX_BYTES)
TUFF_READ_TEXELS(2, A, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
TUFF_READ_TEXELS(3, B, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
TUFF_READ(4, S, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
TUFF_READ_WRITE(5, C, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))

#define READS_C TUFF_BETA
#include "kernels/sparse/sums.glsl"

TUFF_INDEX path_rows, path_nnz;
#if TUFF_OFFSETS
#include "kernels/sparse/path.glsl"

// The last row that begins at the place or before it and ends after it.
bool find_row(uint place, out TUFF_INDEX row) {
  TUFF_INDEX low = TUFF_INDEX(0), high = path_rows;
  while (low < high) {
    const TUFF_INDEX middle = (low + high) / 2;
    if (offset(middle + 1) <= TUFF_INDEX(place)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  row = low;
  return low < path_rows && offset(min(low, path_rows - 1)) <= TUFF_INDEX(place);
}
#endif

#if TUFF_SOME
// The products from `from` on, four at a time that are `step` apart. Loops with the condition last cost less on Mesa's
// driver (sparse_rows.comp); k is not 0.
TUFF_VALUE add_up(TUFF_INDEX a, TUFF_INDEX b, TUFF_INDEX b_step, uint from, uint step) {
  TUFF_VALUE sums[4];
  [[unroll]] for (uint i = 0; i < 4; ++i) sums[i] = TUFF_ZERO;
  uint k = from;
  do {
    [[unroll]] for (uint i = 0; i < 4; ++i) {
      const uint at = k + i * step;
      const TUFF_INDEX clipped = TUFF_INDEX(min(at, push.k - 1u));
      const TUFF_VALUE product = VALUE_AT(A, a + clipped) * VALUE_AT(B, b + clipped * b_step);
      sums[i] += at < push.k ? product : TUFF_ZERO;
    }
    k += 4u * step;
  } while (k < push.k);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}
#endif

void write_place(uint place, uint matrix, uint lane, uint lanes) {
  TUFF_INDEX row, column;
#if TUFF_OFFSETS
  if (!find_row(place, row)) return;  // of no row
  const bool has_row = true;
#elif TUFF_SOME
  const bool has_row = names(NAME_AT(O, TUFF_INDEX(place)), path_rows, row);
#endif
  TUFF_VALUE sum = TUFF_ZERO;
#if TUFF_SOME
  const bool has_column = names(NAME_AT(I, TUFF_INDEX(place)), NUMBER(1), column), is = has_row && has_column;
  row = is ? row : TUFF_INDEX(0), column = is ? column : TUFF_INDEX(0);
  sum = add_up(matrix * NUMBER(6) + row * NUMBER(2), matrix * NUMBER(7) + column * NUMBER(3), NUMBER(4), lane, lanes);
#if TUFF_SHARED
  sum = subgroupAdd(sum);
#endif
  sum = is ? sum : TUFF_ZERO;
#if TUFF_SCALED
  if (is) sum *= LOADED(TUFF_AT(S, matrix * NUMBER(5) + place));
#endif
#endif
  if (lane == 0u) write_result(matrix * NUMBER(8) + place, sum);
}

void main() {
  const uint group = tuff_group();
  if (group >= push.groups) return;
  path_rows = NUMBER(0), path_nnz = TUFF_INDEX(push.n);
  const uint of_dispatch = group / push.per_matrix, matrix = push.first + of_dispatch;
#if TUFF_SHARED
  const uint workers = gl_NumSubgroups, worker = gl_SubgroupID, lane = gl_SubgroupInvocationID, lanes = gl_SubgroupSize;
#else
  const uint workers = gl_WorkGroupSize.x, worker = gl_LocalInvocationID.x, lane = 0u, lanes = 1u;
#endif
  uint place = (group - of_dispatch * push.per_matrix) * (workers * RUN) + worker;
  for (uint step = 0; step < RUN && place < push.n; ++step, place += workers) write_place(place, matrix, lane, lanes);
}
