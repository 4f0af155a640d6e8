// QR factorisation by Householder reflections of a panel: `columns` columns, at most BLOCK, of all rows from the diagonal
// down. A workgroup has the panel of one matrix. Invocation t has the rows t, t + (invocations) … and no other invocation
// reads or writes them, so that only what passes from one to another is in shared memory:
//
//        k
//   | R  R  R      step k: x is column k from row k + 1 on, scaled by a power of two. One pass over the rows adds x . x
//   | v  a  r      and x . A(:, j) for every j > k. With b = -sign(a) sqrt(a^2 + x . x), v = (1, x / (a - b)) and
//   | v  x  A      tau = (b - a) / b, I - tau v v^T takes column k to (b, 0), and is applied to the columns behind it.
//   | v  x  A      A column that is zero already has tau = 0.
//
// The vectors v below the diagonal are then moved out of A, and leave zeros.
//
//# TUFF_VECTORS : 0..2 : 0: the vectors are not needed
//   1: slot 1 receives the vectors V, with their ones and zeros, and slot 2 each tau
//   2: slot 1 receives Q, of at most BLOCK columns: the product of the reflections, from the last to the first
#include "kernels/linalg/linalg.glsl"
#include "kernels/common/lanes.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(3)
  TUFF_INDEX row_stride, stride;       // of A
  TUFF_INDEX v_row_stride, v_stride;   // of V or Q
  TUFF_INDEX tau_stride;
  uint rows, columns;
  uint above;      // rows of V above the panel, which are zero
  uint q_columns;
  uint matrices;
} push;

TUFF_READ_WRITE(0, A, TUFF_VALUE, TUFF_VALUE_BYTES)
#if TUFF_VECTORS != 0
TUFF_READ_WRITE(1, V, TUFF_VALUE, TUFF_VALUE_BYTES)
#endif
#if TUFF_VECTORS == 1
TUFF_WRITE(2, Tau, TUFF_VALUE, TUFF_VALUE_BYTES)
#endif

TUFF_TREE(tree_largest, larger)

// Sums of up to BLOCK columns: those of each subgroup, for four columns at once, then those of all.
//# constant MOST_SUBGROUPS : the largest number of subgroups in a workgroup
const uint MOST_SUBGROUPS = 32;
shared TUFF_VALUE4 quads[BLOCK / 4 * MOST_SUBGROUPS];
shared TUFF_VALUE totals[BLOCK], pivot_row[BLOCK];
#if TUFF_VECTORS == 2
shared TUFF_VALUE taus[BLOCK];
#endif

void keep_quad(uint quad, TUFF_VALUE4 sum) {
  for (uint mask = 1; mask < min(TUFF_LANES, gl_SubgroupSize); mask *= 2) {
    [[unroll]] for (uint c = 0; c < 4; ++c) sum[c] += TUFF_SHUFFLE_XOR(sum[c], mask);
  }
  if (gl_SubgroupInvocationID == 0) quads[quad * gl_NumSubgroups + gl_SubgroupID] = sum;
}

void add_quads(uint thread, uint first, uint columns) {
  barrier();
  for (uint j = first + thread; j < columns; j += TUFF_LANES) {
    TUFF_VALUE sum = TUFF_ZERO;
    for (uint s = 0; s < gl_NumSubgroups; ++s) sum += quads[j / 4 * gl_NumSubgroups + s][j % 4];
    totals[j] = sum;
  }
  barrier();
}

// The first row after k that an invocation has.
uint after(uint k, uint thread) { return k < thread ? thread : thread + ((k - thread) / TUFF_LANES + 1) * TUFF_LANES; }

#define A_AT(r, j) TUFF_AT(A, base + TUFF_INDEX(r) * row_stride + (j))
#define V_AT(r, j) TUFF_AT(V, v_base + TUFF_INDEX(r) * v_row_stride + (j))

void main() {
  const uint matrix = tuff_group(), thread = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
  if (matrix >= push.matrices) return;
  const uint rows = push.rows, columns = push.columns, steps = min(rows, columns);
  const TUFF_INDEX row_stride = push.row_stride, base = TUFF_INDEX(matrix) * push.stride;
  for (uint k = 0; k < steps; ++k) {
    const uint from = after(k, thread);
    const bool owns_k = k % TUFF_LANES == thread;
    TUFF_VALUE largest = TUFF_ZERO;
    for (uint r = from; r < rows; r += TUFF_LANES) largest = larger(largest, abs(A_AT(r, k)));
    if (owns_k) {
      for (uint j = k; j < columns; ++j) pivot_row[j] = A_AT(k, j);
      largest = larger(largest, abs(A_AT(k, k)));
    }
    largest = tree_largest(largest);
    const int exponent = scale_exponent(largest);
    const TUFF_VALUE down = power_of_two(-exponent);
    for (uint j = k / 4 * 4; j < columns; j += 4) {
      TUFF_VALUE4 sum = TUFF_VALUE4(0);
      for (uint r = from; r < rows; r += TUFF_LANES) {
        const TUFF_VALUE x = A_AT(r, k) * down;
        [[unroll]] for (uint c = 0; c < 4; ++c) {
          const uint column = min(j + c, columns - 1);
          sum[c] += x * (column == k ? x : A_AT(r, column));
        }
      }
      keep_quad(j / 4, sum);
    }
    add_quads(thread, k, columns);
    const TUFF_VALUE squares = totals[k], alpha = pivot_row[k] * down;
    const bool reflects = is_nan(squares) || squares != TUFF_ZERO;
    const TUFF_VALUE size = root(alpha * alpha + squares), beta = alpha < TUFF_ZERO ? size : -size;
    const TUFF_VALUE tau = reflects ? divide(beta - alpha, beta) : TUFF_ZERO;
    const TUFF_VALUE factor = reflects ? divide(TUFF_ONE, alpha - beta) : TUFF_ZERO;
    for (uint j = k + 1 + thread; j < columns; j += TUFF_LANES) {
      totals[j] = reflects ? tau * (pivot_row[j] + totals[j] * factor) : TUFF_ZERO;
    }
    barrier();
    if (owns_k) {
      if (reflects) A_AT(k, k) = beta * power_of_two(exponent);
      // Not from pivot_row, which has the same numbers: the owner of row k + 1 may be writing its own row there already.
      for (uint j = k + 1; j < columns; ++j) A_AT(k, j) -= totals[j];
#if TUFF_VECTORS == 1
      TUFF_AT(Tau, TUFF_INDEX(matrix) * push.tau_stride + k) = tau;
#elif TUFF_VECTORS == 2
      taus[k] = tau;
#endif
    }
    for (uint r = from; r < rows; r += TUFF_LANES) {
      const TUFF_VALUE v = A_AT(r, k) * down * factor;
      A_AT(r, k) = v;
      for (uint j = k + 1; j < columns; ++j) A_AT(r, j) -= totals[j] * v;
    }
  }
#if TUFF_VECTORS != 0
  const TUFF_INDEX v_row_stride = push.v_row_stride, v_base = TUFF_INDEX(matrix) * push.v_stride;
#endif
#if TUFF_VECTORS == 1
  for (uint r = thread; r < push.above; r += TUFF_LANES) {
    for (uint j = 0; j < steps; ++j) V_AT(r, j) = TUFF_ZERO;
  }
#endif
  for (uint r = thread; r < rows; r += TUFF_LANES) {
#if TUFF_VECTORS != 0
    const uint width = TUFF_VECTORS == 1 ? steps : push.q_columns;
    for (uint j = 0; j < width; ++j) {
      V_AT(r + push.above, j) = r == j ? TUFF_ONE : r > j && j < steps ? A_AT(r, j) : TUFF_ZERO;
    }
#endif
    for (uint j = 0; j < min(r, steps); ++j) A_AT(r, j) = TUFF_ZERO;
  }
#if TUFF_VECTORS == 2
  // Reflection k changes the rows from k on of the columns from k on, of which column k was the vector, and is the
  // reflection of the unit vector k.
  for (uint k = steps; k-- > 0;) {
    const uint from = after(k, thread), width = push.q_columns;
    for (uint j = (k + 1) / 4 * 4; j < width; j += 4) {
      TUFF_VALUE4 sum = TUFF_VALUE4(0);
      for (uint r = from; r < rows; r += TUFF_LANES) {
        const TUFF_VALUE v = V_AT(r, k);
        [[unroll]] for (uint c = 0; c < 4; ++c) sum[c] += v * V_AT(r, min(j + c, width - 1));
      }
      keep_quad(j / 4, sum);
    }
    add_quads(thread, k + 1, width);
    const TUFF_VALUE tau = taus[k];
    for (uint r = from; r < rows; r += TUFF_LANES) {
      const TUFF_VALUE v = tau * V_AT(r, k);
      for (uint j = k + 1; j < width; ++j) V_AT(r, j) -= totals[j] * v;
      V_AT(r, k) = -v;
    }
    if (k % TUFF_LANES == thread) {
      for (uint j = k + 1; j < width; ++j) V_AT(k, j) = -tau * totals[j];
      V_AT(k, k) = TUFF_ONE - tau;
    }
  }
#endif
}
