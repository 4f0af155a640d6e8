// Cholesky factorisation A = L * L^T of a block of at most BLOCK x BLOCK on the diagonal of each matrix of a batch; a
// workgroup has one matrix. Element (i, j) of L is row_stride * i + column_stride * j elements into the block, so that a
// caller's upper triangle is the same with the strides exchanged. The workgroup keeps the block in shared memory. Step k
// finishes column k and subtracts its products from the columns behind it:
//
//        k                 invocation (x, y) has the elements x, x + ACROSS … of the rows y, y + (others) …
//   | L
//   | L  d        d = sqrt(A(k, k))
//   | L  l  A     l = A(i, k) / d, then A(i, j) -= l(i) * l(j) for k < j <= i
//
// With TUFF_HELD an invocation keeps a row in registers instead, from column k on: it moves by one place in each step, so
// that no index of a register depends on k.
//
// The block's other triangle is set to zero. A pivot that is not above zero makes everything behind it NaN.
//
//# TUFF_INFO : 0|1 : 1: slot 1 has each matrix's first failure, counted from 1, or 0
//# TUFF_HELD : 0|1 : 1: a workgroup has BLOCK invocations, which keep rows in registers
#include "kernels/linalg/linalg.glsl"

layout(local_size_x_id = 0) in;

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

#if TUFF_HELD
shared TUFF_VALUE pivots[2], below[2][BLOCK];  // below: the column in hand from its diagonal on, and then zeros
#else
shared TUFF_VALUE block[BLOCK * PITCH];
#endif

void main() {
  const uint matrix = tuff_group(), thread = gl_LocalInvocationID.x, threads = gl_WorkGroupSize.x;
  if (matrix >= push.matrices) return;
#if TUFF_HELD
  const uint n = push.n, i = thread;
  const TUFF_INDEX base = TUFF_INDEX(matrix) * push.stride, row = base + i * push.row_stride;
  TUFF_VALUE held[BLOCK];
  [[unroll]] for (uint j = 0; j < BLOCK; ++j) {
    held[j] = i < n && j <= i ? TUFF_AT(A, row + j * push.column_stride) : TUFF_ZERO;
  }
  uint failure = 0;
  for (uint k = 0; k < n; ++k) {
    const uint turn = k & 1u;
    if (i == k) pivots[turn] = held[0];
    barrier();
    const TUFF_VALUE pivot = pivots[turn];
    const bool good = !is_nan(pivot) && pivot > TUFF_ZERO;
    const TUFF_VALUE diagonal = good ? root(pivot) : NOT_A_NUMBER;
    if (!good && failure == 0) failure = push.first + k + 1;
    const TUFF_VALUE own = i == k ? diagonal : good ? divide(held[0], diagonal) : NOT_A_NUMBER;
    if (i < n) TUFF_AT(A, row + k * push.column_stride) = i >= k ? own : TUFF_ZERO;
    below[turn][i >= k ? i - k : BLOCK - 1 - i] = i >= k ? own : TUFF_ZERO;
    barrier();
    [[unroll]] for (uint j = 1; j < BLOCK; ++j) held[j - 1] = held[j] - own * below[turn][j];
    held[BLOCK - 1] = TUFF_ZERO;
  }
#else
  const uint n = push.n, across = min(threads, BLOCK), x = thread % across, y = thread / across, down = threads / across;
  const TUFF_INDEX base = TUFF_INDEX(matrix) * push.stride;
  for (uint i = y; i < n; i += down) {
    for (uint j = x; j <= i; j += across) {
      block[i * PITCH + j] = TUFF_AT(A, base + i * push.row_stride + j * push.column_stride);
    }
  }
  barrier();
  uint failure = 0;
  for (uint k = 0; k < n; ++k) {
    const TUFF_VALUE pivot = block[k * PITCH + k];
    const bool good = !is_nan(pivot) && pivot > TUFF_ZERO;
    const TUFF_VALUE diagonal = good ? root(pivot) : NOT_A_NUMBER;
    if (!good && failure == 0) failure = push.first + k + 1;
    barrier();
    for (uint i = k + thread; i < n; i += threads) {
      const TUFF_VALUE value = block[i * PITCH + k];
      block[i * PITCH + k] = i == k ? diagonal : good ? divide(value, diagonal) : NOT_A_NUMBER;
    }
    barrier();
    for (uint i = k + 1 + y; i < n; i += down) {
      for (uint j = k + 1 + x; j <= i; j += across) {
        block[i * PITCH + j] -= block[i * PITCH + k] * block[j * PITCH + k];
      }
    }
    barrier();
  }
  for (uint i = y; i < n; i += down) {
    for (uint j = x; j < n; j += across) {
      TUFF_AT(A, base + i * push.row_stride + j * push.column_stride) = j <= i ? block[i * PITCH + j] : TUFF_ZERO;
    }
  }
#endif
#if TUFF_INFO
  if (thread == 0) {
    const uint earlier = push.first == 0 ? 0 : uint(TUFF_AT(Info, matrix));
    TUFF_AT(Info, matrix) = int(earlier != 0 ? earlier : failure);
  }
#endif
}
