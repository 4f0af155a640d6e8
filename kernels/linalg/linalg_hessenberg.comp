// Hessenberg form: H = Q^T A Q has zeros below its first subdiagonal. Step k reflects rows and columns k + 1 … n - 1:
//
//   | h  h  h  h   x is column k from row k + 2 on, a the element above it. With b = -sign(a) sqrt(a^2 + x . x),
//   | h  h  h  h   v = (1, x / (a - b)) and tau = (b - a) / b, the reflection I - tau v v^T takes (a, x) to (b, 0). It
//   |    a  A  A   is applied to the columns behind k and those of Q^T, then from the right to all rows. A column whose
//   |    x  A  A   x is negligible has tau = 0.
//
// Column k keeps x until its step is over, so that every workgroup can read v there. Stages:
//
//   0  all steps, in one workgroup for each matrix: invocations have columns, then rows
//   1  step k from the left: an invocation has a column; the first workgroup writes v, tau and b
//   2  step k from the right: a workgroup has a row
//   3  after all steps of stages 1 and 2: b and the zeros of each column; a workgroup has a column
//
//# TUFF_STAGE : 0..3 : the stage
//# TUFF_VECTORS : 0|1 : 1: slot 1 has Q^T, an identity at first
#include "kernels/linalg/linalg_schur.glsl"
#include "kernels/common/lanes.glsl"
#include "kernels/linalg/linalg_held.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(4)
  TUFF_INDEX stride;  // from one matrix to the next, of H and of Q
  uint n, step;
  uint groups;        // workgroups for each matrix
  uint matrices;
} push;

#if TUFF_STAGE == 0
TUFF_DECLARE(coherent, 0, H, TUFF_VALUE, TUFF_VALUE_BYTES)
#else
TUFF_READ_WRITE(0, H, TUFF_VALUE, TUFF_VALUE_BYTES)
#endif
#if TUFF_VECTORS
TUFF_READ_WRITE(1, Q, TUFF_VALUE, TUFF_VALUE_BYTES)
#endif
#if TUFF_STAGE != 0
TUFF_READ_WRITE(2, V, TUFF_VALUE, TUFF_VALUE_BYTES)         // v of the current step
TUFF_READ_WRITE(3, Factors, TUFF_VALUE, TUFF_VALUE_BYTES)   // tau and b of each step
#endif

#define Q_AT(i, j) TUFF_AT(Q, h_base + TUFF_INDEX(i) * h_row + (j))

struct Reflection {
  TUFF_VALUE tau, factor, beta;  // v is x times the factor
};

// One of `columns`, from row k + 1 on.
#define REFLECT_COLUMN(X, column)                                                           \
  {                                                                                         \
    TUFF_VALUE sum = X(k + 1, column);                                                      \
    for (uint i = k + 2; i < n; ++i) sum += H_AT(i, k) * r.factor * X(i, column);           \
    sum *= r.tau;                                                                           \
    X(k + 1, column) -= sum;                                                                \
    for (uint i = k + 2; i < n; ++i) X(i, column) -= sum * (H_AT(i, k) * r.factor);         \
  }

Reflection reflection_of(TUFF_INDEX h_base, uint h_row, uint n, uint k, uint thread) {
  TUFF_VALUE squares = TUFF_ZERO;
  for (uint i = k + 2 + thread; i < n; i += TUFF_LANES) squares += H_AT(i, k) * H_AT(i, k);
  squares = tree_sum(squares);
  const TUFF_VALUE alpha = H_AT(k + 1, k);
  if (!(squares > LEAST)) return Reflection(TUFF_ZERO, TUFF_ZERO, alpha);
  const TUFF_VALUE size = root(alpha * alpha + squares), beta = alpha < TUFF_ZERO ? size : -size;
  return Reflection(divide(beta - alpha, beta), divide(TUFF_ONE, alpha - beta), beta);
}

void main() {
  const uint group = tuff_group(), matrix = group / push.groups, part = group % push.groups;
  const uint thread = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
  if (matrix >= push.matrices) return;
  const uint n = push.n, h_row = n;
  const TUFF_INDEX h_base = TUFF_INDEX(matrix) * push.stride;
#if TUFF_STAGE == 0
#if TUFF_HELD
  for (uint e = thread; e < n * n; e += TUFF_LANES) H_AT(e / n, e % n) = TUFF_AT(H, h_base + e);
  barrier();
#endif
  for (uint k = 0; k + 2 < n; ++k) {
    const Reflection r = reflection_of(h_base, h_row, n, k, thread);
    if (r.tau != TUFF_ZERO) {
      for (uint j = k + 1 + thread; j < n; j += TUFF_LANES) REFLECT_COLUMN(H_AT, j)
#if TUFF_VECTORS
      for (uint j = thread; j < n; j += TUFF_LANES) REFLECT_COLUMN(Q_AT, j)
#endif
      PUBLISH();
      for (uint i = thread; i < n; i += TUFF_LANES) {
        TUFF_VALUE sum = H_AT(i, k + 1);
        for (uint j = k + 2; j < n; ++j) sum += H_AT(i, j) * (H_AT(j, k) * r.factor);
        sum *= r.tau;
        H_AT(i, k + 1) -= sum;
        for (uint j = k + 2; j < n; ++j) H_AT(i, j) -= sum * (H_AT(j, k) * r.factor);
      }
    }
    PUBLISH();
    for (uint i = k + 1 + thread; i < n; i += TUFF_LANES) H_AT(i, k) = i == k + 1 ? r.beta : TUFF_ZERO;
  }
#if TUFF_HELD
  barrier();
  for (uint e = thread; e < n * n; e += TUFF_LANES) TUFF_AT(H, h_base + e) = H_AT(e / n, e % n);
#endif
#elif TUFF_STAGE == 1
  const uint k = push.step;
  const TUFF_INDEX v = TUFF_INDEX(matrix) * TUFF_INDEX(n);
  const Reflection r = reflection_of(h_base, h_row, n, k, thread);
  if (part == 0) {
    for (uint i = k + 1 + thread; i < n; i += TUFF_LANES) {
      TUFF_AT(V, v + i) = i == k + 1 ? TUFF_ONE : H_AT(i, k) * r.factor;
    }
    if (thread == 0) {
      TUFF_AT(Factors, 2 * (v + k)) = r.tau;
      TUFF_AT(Factors, 2 * (v + k) + 1) = r.beta;
    }
  }
  if (r.tau == TUFF_ZERO) return;
  const uint own = part * TUFF_LANES + thread, behind = n - k - 1;
  if (own < behind) {
    REFLECT_COLUMN(H_AT, k + 1 + own)
#if TUFF_VECTORS
  } else if (own < behind + n) {
    REFLECT_COLUMN(Q_AT, own - behind)
#endif
  }
#elif TUFF_STAGE == 2
  const uint k = push.step;
  const TUFF_INDEX v = TUFF_INDEX(matrix) * TUFF_INDEX(n);
  const TUFF_VALUE tau = TUFF_AT(Factors, 2 * (v + k));
  if (tau == TUFF_ZERO) return;
  TUFF_VALUE sum = TUFF_ZERO;
  for (uint j = k + 1 + thread; j < n; j += TUFF_LANES) sum += H_AT(part, j) * TUFF_AT(V, v + j);
  sum = tau * tree_sum(sum);
  for (uint j = k + 1 + thread; j < n; j += TUFF_LANES) H_AT(part, j) -= sum * TUFF_AT(V, v + j);
#else
  const TUFF_VALUE beta = TUFF_AT(Factors, 2 * (TUFF_INDEX(matrix) * TUFF_INDEX(n) + part) + 1);
  for (uint i = part + 1 + thread; i < n; i += TUFF_LANES) H_AT(i, part) = i == part + 1 ? beta : TUFF_ZERO;
#endif
}
