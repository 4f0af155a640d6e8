// The triangle T of a block reflector: H(0) H(1) … H(n - 1) = I - V T V^T, from S = V^T V and each reflection's tau.
// An invocation has a row of one matrix's T:
//
//   T(i, i) = tau(i)     T(i, k) = -tau(k) * sum of T(i, l) * S(l, k) over i <= l < k     and zeros below the diagonal
//
// T is stored by columns, so that neighbouring invocations have neighbouring elements.
#include "kernels/linalg/linalg.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(3)
  TUFF_INDEX s_stride, tau_stride, t_stride;
  uint n;         // extent of T; rows of S and columns of T are n elements apart
  uint groups;    // workgroups for each matrix
  uint matrices;
} push;

TUFF_READ(0, S, TUFF_VALUE, TUFF_VALUE_BYTES)
TUFF_READ(1, Tau, TUFF_VALUE, TUFF_VALUE_BYTES)
TUFF_READ_WRITE(2, T, TUFF_VALUE, TUFF_VALUE_BYTES)

void main() {
  const uint group = tuff_group(), matrix = group / push.groups, n = push.n;
  const uint i = (group - matrix * push.groups) * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
  if (matrix >= push.matrices || i >= n) return;
  const TUFF_INDEX s = TUFF_INDEX(matrix) * push.s_stride, tau = TUFF_INDEX(matrix) * push.tau_stride;
  const TUFF_INDEX t = TUFF_INDEX(matrix) * push.t_stride + i;
  for (uint k = 0; k < n; ++k) {
    TUFF_VALUE sum = TUFF_ZERO;
    for (uint l = i; l < k; ++l) sum += TUFF_AT(T, t + l * n) * TUFF_AT(S, s + l * n + k);
    const TUFF_VALUE factor = TUFF_AT(Tau, tau + k);
    TUFF_AT(T, t + k * n) = k < i ? TUFF_ZERO : k == i ? factor : -factor * sum;
  }
}
