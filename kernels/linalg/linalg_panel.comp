// LU factorisation with partial pivoting of a panel on a GPU: `columns` columns of all rows from the diagonal down. A
// workgroup has the panel of one matrix. Invocation t has the rows t, t + TUFF_THREADS ..., and keeps TUFF_COLUMNS of
// their elements in registers. Each step moves these by one place: the column in hand is always the first, and no index
// of a register depends on the step. A panel of more columns is taken in such parts, from left to right:
//
//     finished | part |
//   U  U  U  U | u  u |   update  for each earlier pivot k: A(i, part) -= L(i, k) * U(k, part)
//   L  U  U  U | p  r |   step k  the largest magnitude of column k is found by its bits, in subgroups and then among
//   L  L  L  U | l  A |           them; l = A(i, k) / p, then A(i, j) -= l * r(j) for j > k
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
shared TUFF_VALUE pivot_rows[2][PART];

Candidate candidate_of(TUFF_VALUE value, uint place) {
#if TUFF_TYPE == 1
  const uint high = floatBitsToUint(value) & 0x7fffffffu, low = 0u;
#else
  const uvec2 bits = unpackDouble2x32(value);
  const uint high = bits.y & 0x7fffffffu, low = bits.x;
#endif
  const bool nan = is_nan(value);
  return Candidate(nan ? NOWHERE : high, nan ? NOWHERE : low, place);
}

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

void main() {
  const uint matrix = tuff_group(), thread = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
  if (matrix >= push.matrices) return;
  const uint rows = push.rows, columns = push.columns;
  const TUFF_INDEX row_stride = push.row_stride, column_stride = push.column_stride;
  const TUFF_INDEX base = TUFF_INDEX(matrix) * push.stride;
  const TUFF_INDEX pivots = TUFF_INDEX(matrix) * push.stride_pivots + push.first;
  uint failure = 0, position[ROWS];
  [[unroll]] for (uint r = 0; r < ROWS; ++r) {
    position[r] = thread + r * TUFF_THREADS < rows ? thread + r * TUFF_THREADS : NOWHERE;
  }
  TUFF_VALUE part[ROWS][PART];
  for (uint left = 0; left < columns; left += PART) {
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
      [[unroll]] for (uint j = 0; j < PART; ++j) {
        part[r][j] = TUFF_ZERO;
        if (position[r] != NOWHERE && left + j < columns) part[r][j] = TUFF_AT(A, OWN(r, left + j));
      }
    }
    TUFF_VALUE factors[ROWS];
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
      factors[r] = TUFF_ZERO;
      if (position[r] != NOWHERE && left != 0) factors[r] = TUFF_AT(A, OWN(r, 0));
    }
    for (uint k = 0; k < left; ++k) {
      const uint turn = k & 1u;
      [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        if (position[r] == k) {
          [[unroll]] for (uint j = 0; j < PART; ++j) pivot_rows[turn][j] = part[r][j];
        }
      }
      barrier();
      [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        const TUFF_VALUE factor = factors[r];
        // The next one is under way while this one is used.
        if (position[r] != NOWHERE && k + 1 < left) factors[r] = TUFF_AT(A, OWN(r, k + 1));
        if (position[r] > k) {
          [[unroll]] for (uint j = 0; j < PART; ++j) part[r][j] -= factor * pivot_rows[turn][j];
        }
      }
    }
    // The part's elements of U in the rows of earlier pivots are finished.
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
      [[unroll]] for (uint j = 0; j < PART; ++j) {
        if (position[r] < left && left + j < columns) TUFF_AT(A, OWN(r, left + j)) = part[r][j];
      }
    }
    const uint end = min(left + PART, columns);
    for (uint k = left; k < end; ++k) {
      Candidate best = Candidate(0u, 0u, NOWHERE);
      [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        Candidate own = candidate_of(part[r][0], position[r]);
        const bool counts = position[r] >= k;
        own = Candidate(counts ? own.high : 0u, counts ? own.low : 0u, counts ? own.place : NOWHERE);
        best = better(own, best);
      }
      best = best_of_subgroup(best);
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
            pivot_rows[0][j] = part[r][j];
            if (k + j < end) TUFF_AT(A, OWN(r, k + j)) = part[r][j];
          }
        }
        position[r] = position[r] == pivot ? k : position[r] == k ? pivot : position[r];
      }
      if (thread == 0) TUFF_AT(Pivots, pivots + k) = int(push.first + pivot);
      barrier();
      const TUFF_VALUE largest = pivot_rows[0][0];
      const bool zero = !is_nan(largest) && largest == TUFF_ZERO;
      if (zero && failure == 0) failure = push.first + k + 1;
      [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        const TUFF_VALUE factor = zero ? part[r][0] : divide(part[r][0], largest);
        if (position[r] > k && position[r] != NOWHERE) TUFF_AT(A, OWN(r, k)) = factor;
        [[unroll]] for (uint j = 1; j < PART; ++j) part[r][j - 1] = part[r][j] - factor * pivot_rows[0][j];
        part[r][PART - 1] = TUFF_ZERO;
      }
    }
    barrier();  // pivot_rows[0] has been read
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
