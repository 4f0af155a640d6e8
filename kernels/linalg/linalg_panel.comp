// LU factorisation with partial pivoting of a panel on a GPU: `columns` columns of all rows from the diagonal down. A
// workgroup has the panel of one matrix. Invocation t has the rows t, t + TUFF_THREADS ..., and keeps TUFF_COLUMNS of
// their elements in registers. Each step moves these by one place: the column in hand is always the first, and no index
// of a register depends on the step. A panel of more columns is taken in such parts, from left to right:
//
//     finished | part |
//   U  U  U  U | u  u |   update  the rows of earlier pivots meet in shared memory, where invocation j computes column j
//   L  U  U  U | p  r |           of u; then A(i, part) -= L(i, k) * u(k) for each of these rows
//   L  L  L  U | l  A |   step k  the largest magnitude of column k is found by its bits, in subgroups and then among
//                                 them; l = A(i, k) / p, then A(i, j) -= l * r(j) for j > k
//
// Neighbouring invocations read neighbouring rows, so a tall panel is a copy whose columns are contiguous. Rows stay
// with their invocations: `position` says where exchanges have brought each, and rows that have moved are stored there
// at the end. The rows' other columns are exchanged afterwards, by linalg_swap.comp.
//
//# TUFF_INFO : 0|1 : 1: slot 2 has each matrix's first pivot that is 0, counted from 1, or 0
//# TUFF_THREADS : 1..1024 : invocations of a workgroup, a power of two, of at most MOST_SUBGROUPS subgroups
//# TUFF_ROWS : 1..16 : rows of an invocation
//# TUFF_COLUMNS : 1..32 : columns of a part
#include "kernels/linalg/linalg.glsl"

layout(local_size_x = TUFF_THREADS) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(3)
  TUFF_INDEX row_stride, column_stride, stride, stride_pivots;
  uint rows, columns;  // at least as many rows as columns
  uint first;          // the place of the panel on the diagonal, for pivots and info
  uint matrices;
} push;

TUFF_READ_WRITE(0, A, TUFF_VALUE, TUFF_VALUE_BYTES)
TUFF_WRITE(1, Pivots, int, 4)
#if TUFF_INFO
TUFF_READ_WRITE(2, Info, int, 4)
#endif

//# constant MOST_SUBGROUPS : the largest number of subgroups in a workgroup
const uint MOST_SUBGROUPS = 32;
const uint ROWS = TUFF_ROWS, PART = TUFF_COLUMNS;
const uint NOWHERE = 0xffffffffu;

// A candidate for the pivot: the bits of its magnitude, NaN being the largest, and its position.
struct Candidate {
  uint high, low, place;
};
shared Candidate candidates[MOST_SUBGROUPS];
const uint QUADS = (PART + 3) / 4;
shared TUFF_VALUE4 pivot_row[QUADS];
#if TUFF_COLUMNS < 32
const uint TOGETHER = 8;  // factors that an invocation loads at once
#define UPPER(k, j) upper[(k) * QUADS + (j) / 4][(j) % 4]
shared TUFF_VALUE4 upper[BLOCK * QUADS];
shared TUFF_VALUE lower[BLOCK * BLOCK];  // the rows of earlier pivots: u, and their factors
#endif

#if TUFF_TYPE == 1
uint high_of(float value) { return floatBitsToUint(value) & 0x7fffffffu; }
#else
uint high_of(double value) { return unpackDouble2x32(value).y & 0x7fffffffu; }
uint low_of(double value) { return unpackDouble2x32(value).x; }
#endif

// Without branches: what follows is computed by whole subgroups.
Candidate better(Candidate a, Candidate b) {
  const bool same = a.high == b.high && a.low == b.low;
  const bool larger = a.high > b.high || (a.high == b.high && a.low > b.low), first = same ? a.place < b.place : larger;
  return Candidate(first ? a.high : b.high, first ? a.low : b.low, first ? a.place : b.place);
}

Candidate best_of_subgroup(Candidate a) {
  const uint high = subgroupMax(a.high);
#if TUFF_TYPE == 1
  const uint low = 0u;
#else
  const uint low = subgroupMax(a.high == high ? a.low : 0u);
#endif
  return Candidate(high, low, subgroupMin(a.high == high && (TUFF_TYPE == 1 || a.low == low) ? a.place : NOWHERE));
}

#define PLACE(row, c) (base + TUFF_INDEX(row) * row_stride + TUFF_INDEX(c) * column_stride)
#define OWN(r, c) PLACE(thread + (r) * TUFF_THREADS, c)

// Whether row r of the invocation may be the pivot of step k. Rows beyond the panel may not, whatever has become of their
// zeros.
#define IS_LEFT(r, k) (position[r] - (k) < rows - (k))

void main() {
  const uint matrix = tuff_group(), thread = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
  if (matrix >= push.matrices) return;
  const uint rows = push.rows, columns = push.columns;
  const TUFF_INDEX row_stride = push.row_stride, column_stride = push.column_stride;
  const TUFF_INDEX base = TUFF_INDEX(matrix) * push.stride;
  const TUFF_INDEX pivots = TUFF_INDEX(matrix) * push.stride_pivots + push.first;
  uint failure = 0, position[ROWS];
  TUFF_VALUE part[ROWS][PART];
  [[unroll]] for (uint r = 0; r < ROWS; ++r) {
    position[r] = thread + r * TUFF_THREADS < rows ? thread + r * TUFF_THREADS : NOWHERE;
  }
  for (uint left = 0; left < columns; left += PART) {
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
      [[unroll]] for (uint j = 0; j < PART; ++j) {
        part[r][j] = TUFF_ZERO;
        if (position[r] != NOWHERE && left + j < columns) part[r][j] = TUFF_AT(A, OWN(r, left + j));
      }
    }
#if TUFF_COLUMNS < 32
    if (left != 0) {
      [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        if (position[r] < left) {
          [[unroll]] for (uint j = 0; j < PART; ++j) UPPER(position[r], j) = part[r][j];
          for (uint begin = 0; begin < position[r]; begin += TOGETHER) {
            TUFF_VALUE factors[TOGETHER];
            [[unroll]] for (uint c = 0; c < TOGETHER; ++c) {
              if (begin + c < position[r]) factors[c] = TUFF_AT(A, OWN(r, begin + c));
            }
            [[unroll]] for (uint c = 0; c < TOGETHER; ++c) {
              if (begin + c < position[r]) lower[position[r] * BLOCK + begin + c] = factors[c];
            }
          }
        }
      }
      barrier();
      if (thread < PART) {
        for (uint k = 1; k < left; ++k) {
          TUFF_VALUE value = UPPER(k, thread);
          for (uint c = 0; c < k; ++c) value -= lower[k * BLOCK + c] * UPPER(c, thread);
          UPPER(k, thread) = value;
        }
      }
      barrier();
      for (uint k = 0; k < left; ++k) {
        TUFF_VALUE4 u[QUADS];
        [[unroll]] for (uint q = 0; q < QUADS; ++q) u[q] = upper[k * QUADS + q];
        [[unroll]] for (uint r = 0; r < ROWS; ++r) {
          TUFF_VALUE factor = TUFF_ZERO;
          if (position[r] != NOWHERE) factor = TUFF_AT(A, OWN(r, k));
          [[unroll]] for (uint j = 0; j < PART; ++j) part[r][j] -= factor * u[j / 4][j % 4];
        }
      }
      // The part's elements of U in the rows of earlier pivots are finished.
      [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        if (position[r] < left) {
          [[unroll]] for (uint j = 0; j < PART; ++j) {
            if (left + j < columns) TUFF_AT(A, OWN(r, left + j)) = UPPER(position[r], j);
          }
        }
      }
    }
#endif
    barrier();  // also because subgroup operations follow divergent branches
    const uint end = min(left + PART, columns);
    for (uint k = left; k < end; ++k) {
      // The subgroup's best row. Its invocations meet first: a driver may otherwise let some of them be late.
      Candidate best = Candidate(0u, 0u, NOWHERE);
      [[unroll]] for (uint r = 0; r < ROWS; ++r) best.high = max(best.high, IS_LEFT(r, k) ? high_of(part[r][0]) : 0u);
      subgroupBarrier();
      best.high = subgroupMax(best.high);
#if TUFF_TYPE == 4
      [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        const bool same = IS_LEFT(r, k) && high_of(part[r][0]) == best.high;
        best.low = max(best.low, same ? low_of(part[r][0]) : 0u);
      }
      best.low = subgroupMax(best.low);
#endif
      [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        bool same = IS_LEFT(r, k) && high_of(part[r][0]) == best.high;
#if TUFF_TYPE == 4
        same = same && low_of(part[r][0]) == best.low;
#endif
        best.place = min(best.place, same ? position[r] : NOWHERE);
      }
      best.place = subgroupMin(best.place);
      if (gl_SubgroupInvocationID == 0) candidates[gl_SubgroupID] = best;
      barrier();
      best = Candidate(0u, 0u, NOWHERE);
      for (uint s = 0; s < gl_NumSubgroups; s += gl_SubgroupSize) {
        best = better(candidates[min(s + gl_SubgroupInvocationID, gl_NumSubgroups - 1)], best);
      }
      const uint pivot = best_of_subgroup(best).place;
      [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        if (position[r] == pivot) {
          [[unroll]] for (uint j = 0; j < PART; ++j) {
            pivot_row[j / 4][j % 4] = part[r][j];
            if (k + j < end) TUFF_AT(A, OWN(r, k + j)) = part[r][j];
          }
        }
        position[r] = position[r] == pivot ? k : position[r] == k ? pivot : position[r];
      }
      if (thread == 0) TUFF_AT(Pivots, pivots + k) = int(push.first + pivot);
      barrier();
      const TUFF_VALUE largest = pivot_row[0].x;
      const bool zero = !is_nan(largest) && largest == TUFF_ZERO;
      if (zero && failure == 0) failure = push.first + k + 1;
      const TUFF_VALUE inverse = reciprocal(largest);
      TUFF_VALUE4 quads[QUADS];
      [[unroll]] for (uint q = 0; q < QUADS; ++q) quads[q] = pivot_row[q];
      [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        const TUFF_VALUE factor = zero ? part[r][0] : quotient(part[r][0], largest, inverse);
        if (position[r] > k && position[r] != NOWHERE) TUFF_AT(A, OWN(r, k)) = factor;
        [[unroll]] for (uint j = 1; j < PART; ++j) part[r][j - 1] = part[r][j] - factor * quads[j / 4][j % 4];
        part[r][PART - 1] = TUFF_ZERO;
      }
    }
    barrier();  // what is in shared memory has been read
  }
  // What has moved. Rows are read before others overwrite them.
  for (uint left = 0; left < columns; left += PART) {
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
      if (position[r] != NOWHERE && position[r] != thread + r * TUFF_THREADS) {
        [[unroll]] for (uint j = 0; j < PART; ++j) {
          if (left + j < columns) part[r][j] = TUFF_AT(A, OWN(r, left + j));
        }
      }
    }
    groupMemoryBarrier();
    barrier();
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
      if (position[r] != NOWHERE && position[r] != thread + r * TUFF_THREADS) {
        [[unroll]] for (uint j = 0; j < PART; ++j) {
          if (left + j < columns) TUFF_AT(A, PLACE(position[r], left + j)) = part[r][j];
        }
      }
    }
  }
#if TUFF_INFO
  if (thread == 0) {
    const uint earlier = push.first == 0 ? 0 : uint(TUFF_AT(Info, matrix));
    TUFF_AT(Info, matrix) = int(earlier != 0 ? earlier : failure);
  }
#endif
}
