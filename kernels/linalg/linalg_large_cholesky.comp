// Cholesky factorisation A = L * L^T of a block on the diagonal of each matrix of a batch, as linalg_cholesky.comp, for
// larger blocks on GPUs. A workgroup has one matrix, and each invocation a row, in registers, from column k on: it moves by
// one place in each step, so that no index of a register depends on k.
//
//        k                 step k has one barrier: before it, invocation i computes and stores l(i, k), and invocation
//   | L                    k + 1 stores A(k + 1, k + 1) as it is before this step; behind it, every invocation computes
//   | L  d                 the next pivot from these, and A(i, j) -= l(i) * l(j) for j > k
//   | L  l  A
//
// Columns come from memory and go there by way of shared memory, BLOCK at a time, so that neighbouring invocations access
// neighbouring elements. The block's other triangle is set to zero. A pivot that is not above zero makes everything behind
// it NaN.
//
//# TUFF_INFO : 0|1 : 1: slot 1 has each matrix's first failure, counted from 1, or 0
//# TUFF_EXTENT : 64|128 : the block's largest extent, and the invocations of a workgroup
#include "kernels/linalg/linalg.glsl"
#include "kernels/common/times.glsl"

layout(local_size_x = TUFF_EXTENT) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  TUFF_INDEX row_stride, column_stride, stride;
  uint n;         // extent of the block
  uint first;     // the place of the block on the diagonal, for info
  uint matrices;
} push;

TUFF_READ_WRITE(0, A, TUFF_VALUE, TUFF_VALUE_BYTES)
#if TUFF_INFO
TUFF_READ_WRITE(1, Info, int, 4)
#endif

// A column's pivot: its root, and the root's reciprocal, or 0.
struct Root {
  TUFF_VALUE value, inverse;
};
Root root_of(TUFF_VALUE pivot) {
  Root result;
#if TUFF_TYPE == 1 && !TUFF_EXACT_ARITHMETIC
  // Both from one estimate, if the pivot is far from the limits of f32. The root is corrected by its residual.
  const uint exponent = upper_of(pivot) >> FRACTION & MOST;
  if (exponent > MOST / 4 && exponent < MOST / 4 * 3) {
    result.inverse = inversesqrt(pivot);
    precise const float first = pivot * result.inverse;
    precise const float residual = fma(-first, first, pivot);
    precise const float corrected = fma(residual, 0.5 * result.inverse, first);
    result.value = corrected;
    return result;
  }
#endif
  result.value = root(pivot);
  result.inverse = reciprocal(result.value);
  return result;
}

const uint EXTENT = TUFF_EXTENT;
shared TUFF_VALUE columns[EXTENT * PITCH];  // BLOCK columns, on their way from memory or to it
shared TUFF_VALUE4 below[2][EXTENT / 4];    // the column in hand from its diagonal on, and then zeros
shared TUFF_VALUE diagonals[2];             // the next pivot, from which the column in hand is still to be subtracted

// Which of BLOCK columns' elements this invocation moves as its element e: a row and a column.
uvec2 moved(uint e) {
  const uint i = e * EXTENT + gl_LocalInvocationID.x;
  return push.column_stride == TUFF_INDEX(1) ? uvec2(i / BLOCK, i % BLOCK) : uvec2(i % EXTENT, i / EXTENT);
}
// Brings the block to `held`: first so that neighbouring invocations read neighbouring elements, then by rows.
#define FETCH(j) \
  { \
    const uvec2 at = moved((j) % BLOCK) + uvec2(0, (j) / BLOCK * BLOCK); \
    held[j] = TUFF_ZERO; \
    if (at.x < n && at.y <= at.x) held[j] = TUFF_AT(A, PLACE(at.x, at.y)); \
  }
#define PUT(j) \
  { \
    const uvec2 at = moved((j) % BLOCK); \
    columns[at.x * PITCH + at.y] = held[j]; \
  }
#define GET(j) held[j] = columns[i * PITCH + (j) % BLOCK];
#define TURN(left) \
  TUFF_TIMES_32(PUT, left) \
  barrier(); \
  TUFF_TIMES_32(GET, left) \
  barrier();

// The steps of BLOCK columns from column `left` on. A macro, because every index of `held` has to be known when the kernel
// is compiled. What lies behind the last column is never used.
#define UPDATE(q) \
  { \
    const TUFF_VALUE4 quad = below[turn][q]; \
    if ((q) > 0) held[max(4 * (q), 1) - 1] = held[4 * (q)] - own * quad.x; \
    held[4 * (q)] = held[4 * (q) + 1] - own * quad.y; \
    held[4 * (q) + 1] = held[4 * (q) + 2] - own * quad.z; \
    held[4 * (q) + 2] = held[4 * (q) + 3] - own * quad.w; \
  }
#define STEPS(left, quads) \
  if (left < n) { \
    for (uint k = left; k < min(n, left + BLOCK); ++k) { \
      const bool good = !is_nan(pivot) && pivot > TUFF_ZERO; \
      const Root diagonal = root_of(pivot); \
      if (!good && failure == 0) failure = push.first + k + 1; \
      const TUFF_VALUE number = i == k ? diagonal.value : quotient(held[0], diagonal.value, diagonal.inverse); \
      const TUFF_VALUE own = i < k ? TUFF_ZERO : good ? number : NOT_A_NUMBER; \
      const uint turn = k & 1u, place = i >= k ? i - k : EXTENT - 1 - i; \
      columns[i * PITCH + k - left] = own; \
      below[turn][place / 4][place % 4] = own; \
      if (i == k + 1) diagonals[turn] = held[1]; \
      barrier(); \
      pivot = diagonals[turn] - below[turn][0].y * below[turn][0].y; \
      TUFF_PASTE(TUFF_TIMES_, quads)(UPDATE, 0) \
    } \
    barrier(); \
    [[unroll]] for (uint e = 0; e < BLOCK; ++e) { \
      const uvec2 at = moved(e); \
      if (at.x < n && left + at.y < n) TUFF_AT(A, PLACE(at.x, left + at.y)) = columns[at.x * PITCH + at.y]; \
    } \
    barrier(); \
  }

#define PLACE(row, column) (base + TUFF_INDEX(row) * push.row_stride + TUFF_INDEX(column) * push.column_stride)

void main() {
  const uint matrix = tuff_group(), i = gl_LocalInvocationID.x, n = push.n;
  if (matrix >= push.matrices) return;
  const TUFF_INDEX base = TUFF_INDEX(matrix) * push.stride;
  TUFF_VALUE held[EXTENT];
  TUFF_PASTE(TUFF_TIMES_, TUFF_EXTENT)(FETCH, 0)
  TURN(0)
  TURN(32)
#if TUFF_EXTENT > 64
  TURN(64)
  TURN(96)
#endif
  uint failure = 0;
  if (i == 0) diagonals[0] = held[0];
  barrier();
  TUFF_VALUE pivot = diagonals[0];
  barrier();
#if TUFF_EXTENT == 64
  STEPS(0u, 16)
  STEPS(32u, 8)
#else
  STEPS(0u, 32)
  STEPS(32u, 24)
  STEPS(64u, 16)
  STEPS(96u, 8)
#endif
#if TUFF_INFO
  if (i == 0) {
    const uint earlier = push.first == 0 ? 0 : uint(TUFF_AT(Info, matrix));
    TUFF_AT(Info, matrix) = int(earlier != 0 ? earlier : failure);
  }
#endif
}
