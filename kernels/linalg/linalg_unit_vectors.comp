// Complex vectors as the caller gets them: of length 1, and turned so that the component of largest magnitude, of
// several the first, is real. A workgroup has a vector, which is two rows of slot 0, its real and its imaginary parts.
// The second of two conjugate values has the conjugate of the first one's vector. Vectors of matrices with a NaN or an
// infinity, or whose values were not all found, become NaN.
#include "kernels/linalg/linalg_schur.glsl"
#include "kernels/common/lanes.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(4)
  TUFF_INDEX stride;               // of slot 0, from one matrix to the next
  TUFF_INDEX y_row, y_stride;      // of slot 3, in complex numbers
  uint n;
  uint matrices;
} push;

TUFF_READ(0, X, TUFF_VALUE, TUFF_VALUE_BYTES)
TUFF_READ(1, Roots, TUFF_VALUE, TUFF_VALUE_BYTES)
TUFF_READ(2, State, int, 4)
TUFF_WRITE(3, Y, TUFF_VALUE, TUFF_VALUE_BYTES)

TUFF_TREE(tree_largest, larger)

// The same bits wherever it is computed, so that the largest one is found again.
TUFF_VALUE square_of(TUFF_VALUE a, TUFF_VALUE b) {
  precise const TUFF_VALUE square = a * a + b * b;
  return square;
}

void main() {
  const uint n = push.n, group = tuff_group(), matrix = group / n, e = group % n;
  const uint thread = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
  if (matrix >= push.matrices) return;
  const TUFF_VALUE imaginary = TUFF_AT(Roots, 2 * (TUFF_INDEX(matrix) * TUFF_INDEX(n) + e) + 1);
  const uint from = imaginary < TUFF_ZERO ? e - 1 : e, state = matrix * STATE_WORDS;
  const bool none = TUFF_AT(State, state + BAD) != 0 || TUFF_AT(State, state + FOUND) < int(n);
  const TUFF_INDEX re = TUFF_INDEX(matrix) * push.stride + 2 * TUFF_INDEX(from) * n, im = re + n;
  TUFF_VALUE squares = TUFF_ZERO, largest = TUFF_ZERO;
  for (uint j = thread; j < n; j += TUFF_LANES) {
    const TUFF_VALUE square = square_of(TUFF_AT(X, re + j), TUFF_AT(X, im + j));
    squares += square;
    largest = larger(largest, square);
  }
  const TUFF_VALUE inverse = divide(TUFF_ONE, root(tree_sum(squares)));
  largest = tree_largest(largest);
  TUFF_VALUE rest = TUFF_ZERO;  // rows from the first largest one on
  for (uint j = thread; j < n; j += TUFF_LANES) {
    if (square_of(TUFF_AT(X, re + j), TUFF_AT(X, im + j)) == largest) rest = max(rest, TUFF_VALUE(n - j));
  }
  const uint place = min(n - uint(tree_largest(rest)), n - 1);
  TUFF_VALUE cosine = TUFF_ONE, sine = TUFF_ZERO;
  if (imaginary != TUFF_ZERO) {
    const TUFF_VALUE length = root(largest);
    cosine = divide(TUFF_AT(X, re + place), length), sine = divide(TUFF_AT(X, im + place), length);
  }
  for (uint j = thread; j < n; j += TUFF_LANES) {
    const TUFF_VALUE a = TUFF_AT(X, re + j) * inverse, b = TUFF_AT(X, im + j) * inverse;
    const TUFF_VALUE turned = j == place || imaginary == TUFF_ZERO ? TUFF_ZERO : b * cosine - a * sine;
    const TUFF_INDEX to = 2 * (TUFF_INDEX(matrix) * push.y_stride + TUFF_INDEX(j) * push.y_row + e);
    TUFF_AT(Y, to) = none ? NOT_A_NUMBER : a * cosine + b * sine;
    TUFF_AT(Y, to + 1) = none ? NOT_A_NUMBER : imaginary < TUFF_ZERO ? -turned : turned;
  }
}
