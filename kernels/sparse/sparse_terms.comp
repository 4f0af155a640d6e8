// The terms of a product of two sparse matrices, each an entry of A in column k times one of B in row k: their rows M,
// columns N and products V. The entries of B are taken by column, and for each of them the entries of A in its column, so
// that terms are sorted by column, and need only be sorted by row:
//
//   entry of B, by column      0         1      2       E[i]: the terms of the entries up to i, the running sums of
//   its entries of A           a b c     (none) d e           sparse_lengths.comp
//   term                       0 1 2            3 4
//
// Places without a term have the row `rows` and the column `columns`, and 0.
//
//# TUFF_TYPE : 1..4 : element type of A and B, as in tuff.h
//# TUFF_RUN : 0.. : terms that a lane processes; 0: push.run says
#define TUFF_VALUE_OF TUFF_TYPE
#include "kernels/common/types.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(11)
  uint n, run;   // places for terms
  uint entries;  // of B
  uint inner;    // rows of B
  uint rows, columns;
} push;

TUFF_READ(0, E, uint, 4)
TUFF_READ(1, K, uint, 4)   // the columns of B's entries, sorted, and then their rows
TUFF_READ(2, PB, uint, 4)  // which entry of B each is
TUFF_READ(3, OA, uint, 4)  // offsets of A's columns
TUFF_READ(4, PA, uint, 4)  // the entries of A by column
TUFF_READ(5, RA, uint, 4)  // the row of each entry of A
TUFF_READ(6, VA, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
TUFF_READ(7, VB, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
TUFF_WRITE(8, M, uint, 4)
TUFF_WRITE(9, N, uint, 4)
TUFF_WRITE(10, V, TUFF_VALUE, TUFF_VALUE_BYTES)

#include "kernels/sparse/search.glsl"

#define LOADED(x) TUFF_VALUE(TUFF_NUMBER(TUFF_TYPE, TUFF_LOADED(TUFF_TYPE, x)))

void main() {
  const uint lanes = gl_WorkGroupSize.x;
  uint t = tuff_group() * (lanes * RUN) + gl_LocalInvocationID.x;
  uint entry = 0u;  // that of the lane's last term, or 0
  const uint terms = TUFF_AT(E, TUFF_INDEX(push.entries - 1u));
  for (uint step = 0; step < RUN && t < push.n; ++step, t += lanes) {
    uint row = push.rows, column = push.columns;
    TUFF_VALUE product = TUFF_ZERO;
    if (t < terms) {
      if (TUFF_AT(E, TUFF_INDEX(entry)) <= t) {
        // In steps that double, because the next term is near.
        uint low = entry + 1u, high = low, distance = 1u;
        while (high < push.entries && TUFF_AT(E, TUFF_INDEX(min(high, push.entries - 1u))) <= t) {
          low = high + 1u;
          high += distance;
          distance *= 2u;
        }
        FIRST_NOT_BELOW(E, t + 1u, low, min(high, push.entries), entry)
      }
      const uint before = entry == 0u ? 0u : TUFF_AT(E, TUFF_INDEX(entry - 1u));
      const uint inner = min(TUFF_AT(K, TUFF_INDEX(push.entries + entry)), push.inner - 1u);  // as in sparse_lengths.comp
      const uint a = TUFF_AT(PA, TUFF_INDEX(TUFF_AT(OA, TUFF_INDEX(inner)) + (t - before)));
      row = TUFF_AT(RA, TUFF_INDEX(a));
      column = TUFF_AT(K, TUFF_INDEX(entry));
      product = LOADED(TUFF_AT(VA, TUFF_INDEX(a))) * LOADED(TUFF_AT(VB, TUFF_INDEX(TUFF_AT(PB, TUFF_INDEX(entry)))));
    }
    TUFF_AT(M, TUFF_INDEX(t)) = row;
    TUFF_AT(N, TUFF_INDEX(t)) = column;
    TUFF_AT(V, TUFF_INDEX(t)) = product;
  }
}
