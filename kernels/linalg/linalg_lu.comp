// LU factorisation with partial pivoting of a panel: `columns` columns, at most BLOCK, of all rows from the diagonal
// down. A workgroup has the panel of one matrix. Invocation t has the rows t, t + (invocations) … and no other invocation
// reads or writes them, so that only what passes from one to another is in shared memory:
//
//        k
//   | U  U  U      step k: each invocation finds the largest magnitude of its part of column k, a tree finds the
//   | L  p  r      largest of all. The owners of that row and of row k exchange them by way of shared memory.
//   | L  l  A      l = A(i, k) / p, then A(i, j) -= l * r(j) for j > k
//
// The rows' other columns are exchanged afterwards, by linalg_swap.comp.
//
//# TUFF_INFO : 0|1 : 1: slot 2 has each matrix's first pivot that is 0, counted from 1, or 0
//# TUFF_THREADS : 1..256 : invocations of a workgroup, a power of two
#include "kernels/linalg/linalg.glsl"

layout(local_size_x = TUFF_THREADS) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(3)
  TUFF_INDEX row_stride, stride, stride_pivots;
  uint rows, columns;
  uint first;     // the place of the panel on the diagonal, for pivots and info
  uint matrices;
} push;

TUFF_READ_WRITE(0, A, TUFF_VALUE, TUFF_VALUE_BYTES)
TUFF_WRITE(1, Pivots, int, 4)
#if TUFF_INFO
TUFF_READ_WRITE(2, Info, int, 4)
#endif

// The candidate of each invocation: NaN counts as larger than infinity, which the upper bit of its row says.
shared TUFF_VALUE sizes[TUFF_THREADS];
shared uint places[TUFF_THREADS];
shared TUFF_VALUE pivot_row[BLOCK], former_row[BLOCK];
const uint NAN_BIT = 0x80000000u;

// Whether candidate a comes before b: it is larger, or as large and in an earlier row.
bool precedes(TUFF_VALUE size_a, uint place_a, TUFF_VALUE size_b, uint place_b) {
  const bool nan_a = (place_a & NAN_BIT) != 0, nan_b = (place_b & NAN_BIT) != 0;
  if (nan_a != nan_b) return nan_a;
  if (!nan_a && size_a != size_b) return size_a > size_b;
  return place_a < place_b;
}

#define ROW(r) (base + TUFF_INDEX(r) * row_stride)

void main() {
  const uint matrix = tuff_group(), thread = gl_LocalInvocationID.x;
  if (matrix >= push.matrices) return;
  const uint rows = push.rows, columns = push.columns, steps = min(rows, columns);
  const TUFF_INDEX row_stride = push.row_stride, base = TUFF_INDEX(matrix) * push.stride;
  uint failure = 0;
  for (uint k = 0; k < steps; ++k) {
    // The first of this invocation's rows from k on.
    const uint from = k <= thread ? thread : thread + (k - thread + TUFF_THREADS - 1) / TUFF_THREADS * TUFF_THREADS;
    TUFF_VALUE size = TUFF_VALUE(-1);
    uint place = NAN_BIT - 1;
    for (uint r = from; r < rows; r += TUFF_THREADS) {
      const TUFF_VALUE value = TUFF_AT(A, ROW(r) + k);
      const bool nan = is_nan(value);
      const TUFF_VALUE other = nan ? TUFF_ZERO : abs(value);
      const uint other_place = nan ? r | NAN_BIT : r;
      if (precedes(other, other_place, size, place)) {
        size = other;
        place = other_place;
      }
    }
    sizes[thread] = size;
    places[thread] = place;
    barrier();
    for (uint width = TUFF_THREADS / 2; width > 0; width /= 2) {
      if (thread < width && precedes(sizes[thread + width], places[thread + width], sizes[thread], places[thread])) {
        sizes[thread] = sizes[thread + width];
        places[thread] = places[thread + width];
      }
      barrier();
    }
    const uint pivot = places[0] & ~NAN_BIT;
    const bool owns_pivot = pivot % TUFF_THREADS == thread, owns_k = k % TUFF_THREADS == thread;
    if (owns_pivot) {
      for (uint j = 0; j < columns; ++j) pivot_row[j] = TUFF_AT(A, ROW(pivot) + j);
    }
    if (owns_k && pivot != k) {
      for (uint j = 0; j < columns; ++j) former_row[j] = TUFF_AT(A, ROW(k) + j);
    }
    barrier();
    if (owns_k && pivot != k) {
      for (uint j = 0; j < columns; ++j) TUFF_AT(A, ROW(k) + j) = pivot_row[j];
    }
    if (owns_pivot && pivot != k) {
      for (uint j = 0; j < columns; ++j) TUFF_AT(A, ROW(pivot) + j) = former_row[j];
    }
    const TUFF_VALUE largest = pivot_row[k];
    const bool zero = !is_nan(largest) && largest == TUFF_ZERO;
    if (zero && failure == 0) failure = push.first + k + 1;
    if (thread == 0) {
      TUFF_AT(Pivots, TUFF_INDEX(matrix) * push.stride_pivots + push.first + k) = int(push.first + pivot);
    }
    const uint below = from == k ? from + TUFF_THREADS : from;
    for (uint r = below; r < rows; r += TUFF_THREADS) {
      const TUFF_INDEX at = ROW(r);
      const TUFF_VALUE value = TUFF_AT(A, at + k), factor = zero ? value : divide(value, largest);
      TUFF_AT(A, at + k) = factor;
      for (uint j = k + 1; j < columns; ++j) TUFF_AT(A, at + j) -= factor * pivot_row[j];
    }
  }
#if TUFF_INFO
  if (thread == 0) {
    const uint earlier = push.first == 0 ? 0 : uint(TUFF_AT(Info, matrix));
    TUFF_AT(Info, matrix) = int(earlier != 0 ? earlier : failure);
  }
#endif
}
