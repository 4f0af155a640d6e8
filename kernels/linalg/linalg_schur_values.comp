// The eigenvalues of matrices in real Schur form, and info: an invocation has a value. A 2 x 2 block has two of them,
//
//   | p  q |    with d = (p - s) / 2 and z = sqrt(d^2 + q r), which is computed so that nothing cancels:
//   | r  s |    s + d + sign(d) z and s - q r / (d + sign(d) z), or s + d +- i sqrt(-d^2 - q r)
//
// Slot 1 receives their parts, in pairs, in the scale of the Schur form, for the vectors; slot 3 in that of A. A matrix
// with a NaN or an infinity, or whose values were not all found, gets NaN.
//
//# TUFF_INFO : 0|1 : 1: slot 4 receives each matrix's info
#include "kernels/linalg/linalg_schur.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(5)
  TUFF_INDEX stride;         // from one matrix to the next
  TUFF_INDEX values_stride;  // of slot 3, in complex numbers
  uint n;
  uint groups;               // workgroups for each matrix
  uint matrices;
} push;

TUFF_READ(0, H, TUFF_VALUE, TUFF_VALUE_BYTES)
TUFF_WRITE(1, Roots, TUFF_VALUE, TUFF_VALUE_BYTES)
TUFF_READ(2, State, int, 4)
TUFF_WRITE(3, Values, TUFF_VALUE, TUFF_VALUE_BYTES)
#if TUFF_INFO
TUFF_WRITE(4, Info, int, 4)
#endif

TUFF_VALUE2 of_block(TUFF_VALUE p, TUFF_VALUE q, TUFF_VALUE r, TUFF_VALUE s, bool second) {
  const TUFF_VALUE d = (p - s) * TUFF_VALUE(0.5), larger_one = max(abs(q), abs(r)), size = max(abs(d), larger_one);
  const TUFF_VALUE smaller_one = min(abs(q), abs(r));
  const TUFF_VALUE product = (q < TUFF_ZERO) == (r < TUFF_ZERO) ? smaller_one : -smaller_one;
  const TUFF_VALUE square = divide(d, size) * d + divide(larger_one, size) * product;  // of z, divided by size
  const TUFF_VALUE z = root(size) * root(abs(square));
  if (square < TUFF_ZERO) return TUFF_VALUE2(s + d, second ? -z : z);
  const TUFF_VALUE sum = d < TUFF_ZERO ? d - z : d + z;
  if (!second) return TUFF_VALUE2(s + sum, TUFF_ZERO);
  return TUFF_VALUE2(sum == TUFF_ZERO ? s : s - divide(larger_one, sum) * product, TUFF_ZERO);
}

void main() {
  const uint group = tuff_group(), matrix = group / push.groups, n = push.n, state = matrix * STATE_WORDS;
  const uint i = (group - matrix * push.groups) * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
  if (matrix >= push.matrices || i >= n) return;
  const TUFF_INDEX base = TUFF_INDEX(matrix) * push.stride + TUFF_INDEX(i) * TUFF_INDEX(n + 1);  // of element (i, i)
  const bool bad = TUFF_AT(State, state + BAD) != 0, missing = TUFF_AT(State, state + FOUND) < int(n);
  TUFF_VALUE2 value = TUFF_VALUE2(TUFF_AT(H, base), TUFF_ZERO);
  // The element before the block's row is 0, unless values are missing.
  const bool second = i > 0 && TUFF_AT(H, base - 1) != TUFF_ZERO;
  const bool first = !second && i + 1 < n && TUFF_AT(H, base + n) != TUFF_ZERO;
  if (first || second) {
    const TUFF_INDEX of_first = second ? base - (n + 1) : base;
    value = of_block(TUFF_AT(H, of_first), TUFF_AT(H, of_first + 1), TUFF_AT(H, of_first + n),
                     TUFF_AT(H, of_first + n + 1), second);
  }
  const TUFF_INDEX place = 2 * (TUFF_INDEX(matrix) * TUFF_INDEX(n) + i);
  TUFF_AT(Roots, place) = value.x;
  TUFF_AT(Roots, place + 1) = value.y;
  const TUFF_VALUE scale = power_of_two(TUFF_AT(State, state + EXPONENT));
  const bool none = bad || missing;
  const TUFF_INDEX to = 2 * (TUFF_INDEX(matrix) * push.values_stride + i);
  TUFF_AT(Values, to) = none ? NOT_A_NUMBER : value.x * scale;
  TUFF_AT(Values, to + 1) = none ? NOT_A_NUMBER : value.y * scale;
#if TUFF_INFO
  if (i == 0) TUFF_AT(Info, matrix) = bad ? 1 : missing ? 2 : 0;
#endif
}
