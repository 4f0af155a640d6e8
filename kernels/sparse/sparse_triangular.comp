// op(A) X = alpha B for a triangle op(A), level by level (steps.glsl): row i is (alpha b(i) - the sum of a(i, j) x(j)) / a(i, i).
// A workgroup has one column of X, which it keeps in Y as well, in the type that it computes in.
//
// The state of each column: the level; its end and the position in the list of rows; iterations done for the batch at the
// position. H has the sums of the workgroup's lanes where a dispatch ends within a batch.
//
//# TUFF_TYPE : 1..4 : element type, as in tuff.h
//# TUFF_EMPTY : 0|1 : 1: there are no entries
//# TUFF_FORWARD : 0|1 : 1: rows refer to those before them, 0: to those behind
//# TUFF_PERMUTED : 0|1 : 1: entry e is number P[e] of indices and values
//# TUFF_ONES : 0|1 : 1: the diagonal is ones
#define TUFF_VALUE_OF TUFF_TYPE
#include "kernels/common/types.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(10)
  uint rows;
  uint columns;  // of X in this dispatch, `first` being the first of them
  uint first;
  uint budget;  // iterations
  uint ldb, ldb_high, ldx, ldx_high;
  uint alpha[2];  // the bits of a value
} push;

#include "kernels/sparse/numbers.glsl"

TUFF_READ(0, O, uint, 4)
TUFF_READ(1, I, NAME, TUFF_INDEX_BYTES)
TUFF_READ(2, A, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
TUFF_READ(3, P, uint, 4)
TUFF_READ(4, L, uint, 4)  // rows + 1 offsets of levels, and the rows by level
TUFF_READ(5, B, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
TUFF_WRITE(6, X, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
TUFF_DECLARE(coherent, 7, Y, TUFF_VALUE, TUFF_VALUE_BYTES)
TUFF_READ_WRITE(8, Z, uint, 4)
TUFF_READ_WRITE(9, H, TUFF_VALUE, TUFF_VALUE_BYTES)

#include "kernels/common/joined.glsl"
#include "kernels/sparse/steps.glsl"

#if TUFF_VALUE_TYPE == 4
#define SCALAR(words) packDouble2x32(uvec2(words[0], words[1]))
TUFF_VALUE divide(TUFF_VALUE a, TUFF_VALUE b) { return a / b; }
#else
#define SCALAR(words) uintBitsToFloat(words[0])
#include "kernels/elementwise/math.glsl"
TUFF_VALUE divide(TUFF_VALUE a, TUFF_VALUE b) { return tuff_divide(vec4(a), vec4(b)).x; }
#endif

#define LOADED(x) TUFF_VALUE(TUFF_NUMBER(TUFF_TYPE, TUFF_LOADED(TUFF_TYPE, x)))

TUFF_VALUE sum, diagonal;  // of this lane

#if !TUFF_EMPTY
// Entry e of row `row`, if there is one.
void add(uint e, bool is, uint row, TUFF_INDEX y) {
  e = is ? e : 0u;
#if TUFF_PERMUTED
  e = TUFF_AT(P, TUFF_INDEX(e));
#endif
  TUFF_INDEX column;
  is = names(TUFF_AT(I, TUFF_INDEX(e)), TUFF_INDEX(push.rows), column) && is;
  const TUFF_VALUE a = LOADED(TUFF_AT(A, TUFF_INDEX(e)));
  const bool refers = is && (TUFF_FORWARD != 0 ? column < row : column > row);
  const TUFF_VALUE product = a * TUFF_AT(Y, y + (refers ? column : TUFF_INDEX(row)));
  sum += refers ? product : TUFF_ZERO;
  diagonal += is && column == row ? a : TUFF_ZERO;
}
#endif

// The sums of the lanes that share a row: each step adds those of the lanes at a distance of d. Not a loop, which Mesa's
// compiler would keep and count (steps.glsl).
#if TUFF_SHARE > 1
void add_from(uint d, uint each) {
  const TUFF_VALUE other_sum = subgroupShuffleXor(sum, d), other_diagonal = subgroupShuffleXor(diagonal, d);
  if (d < each) sum += other_sum, diagonal += other_diagonal;
}
#endif
void add_lanes(uint each) {
#if TUFF_SHARE > 1
  add_from(1u, each);
#endif
#if TUFF_SHARE > 2
  add_from(2u, each);
#endif
#if TUFF_SHARE > 4
  add_from(4u, each);
#endif
#if TUFF_SHARE > 8
  add_from(8u, each);
#endif
#if TUFF_SHARE > 16
  add_from(16u, each);
#endif
#if TUFF_SHARE > 32
  add_from(32u, each);
#endif
#if TUFF_SHARE > 64
  add_from(64u, each);
#endif
}

void main() {
  const uint lanes = gl_WorkGroupSize.x, lane = lane_of_workgroup(), group = tuff_group();
  if (group >= push.columns) return;
  const uint z = group * STATE, h = (group * lanes + lane) * 2u;
  const TUFF_INDEX y = TUFF_INDEX(group) * push.rows;
  uint level = TUFF_AT(Z, z), position = TUFF_AT(Z, z + 1u), end = TUFF_AT(Z, z + 2u), done = TUFF_AT(Z, z + 3u);
  if (position >= push.rows) return;  // finished
  sum = TUFF_ZERO, diagonal = TUFF_ZERO;
  if (done != 0u) sum = TUFF_AT(H, h), diagonal = TUFF_AT(H, h + 1u);
  barrier();
  uint used = 0u;
  while (used < push.budget) {
    if (position == end) {
      if (end >= push.rows || level >= push.rows) break;
      ++level;
      end = clamp(TUFF_AT(L, TUFF_INDEX(level)), end, push.rows);
      // What lower levels have solved.
      memoryBarrierBuffer();
      barrier();
      if (position == end) {
        ++used;
        continue;
      }
    }
    const uint left = end - position, each = lanes_of_row(left), count = min(lanes / each, left);
    const uint which = lane / each, part = lane % each;
    uint row = push.rows, first = 0u, last = 0u;
    if (which < count) row = TUFF_AT(L, TUFF_INDEX(push.rows + 1u) + (position + which));
    const bool is_row = row < push.rows;
    row = is_row ? row : 0u;
    if (is_row) first = TUFF_AT(O, TUFF_INDEX(row)), last = max(TUFF_AT(O, TUFF_INDEX(row + 1u)), first);
    const uint need = most_iterations(lane, last - first, each), todo = min(need - done, push.budget - used);
#if !TUFF_EMPTY
    for (uint k = 0u; k < todo; ++k) {
      const uint e = first + part + (done + k) * UNROLL * each;
      UNROLLED(add(e + u * each, e + u * each < last, row, y))
    }
#endif
    used += max(todo, 1u), done += todo;
    if (done < need) continue;
    add_lanes(each);
    if (is_row && part == 0u) {
      const uint column = push.first + group;
      const TUFF_VALUE right = SCALAR(push.alpha) * LOADED(TUFF_AT(B, row * JOINED(ldb) + column));
#if TUFF_ONES
      const TUFF_VALUE solved = right - sum;
#else
      const TUFF_VALUE solved = divide(right - sum, diagonal);
#endif
      TUFF_AT(Y, y + row) = solved;
      TUFF_AT(X, row * JOINED(ldx) + column) = TUFF_ROUNDED(TUFF_TYPE, TUFF_OF_VALUE(TUFF_TYPE, solved));
    }
    sum = TUFF_ZERO, diagonal = TUFF_ZERO;
    done = 0u, position += count;
  }
  if (done != 0u) TUFF_AT(H, h) = sum, TUFF_AT(H, h + 1u) = diagonal;
  barrier();
  if (lane == 0u) {
    TUFF_AT(Z, z) = level;
    TUFF_AT(Z, z + 1u) = position;
    TUFF_AT(Z, z + 2u) = end;
    TUFF_AT(Z, z + 3u) = done;
  }
}
