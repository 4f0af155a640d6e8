// The implicit double shift QR algorithm: sweeps make the subdiagonal elements of a Hessenberg matrix H small, until
// the blocks on its diagonal are of 1 x 1 and 2 x 2. A workgroup has a matrix.
//
//   | x  x  x  x  x  x    The block from row `low`, before which the subdiagonal element is small, to row `last`, after
//   |    h  h  h  h  x    which all values have been found, is swept: the shifts s1 and s2 are the values of its last
//   |    h  h  h  h  x    2 x 2 block. A reflection of three rows and columns, that of the first column of
//   |       h  h  h  x    (H - s1 I)(H - s2 I), makes a bulge at row m; one for each following row moves it down and,
//   |          h  h  x    at the end, out. If a block stays whole, every tenth sweep has other shifts, and elements
//   |                x    count as small that are below the rounding errors of the whole matrix.
//
// An iteration of the loop is the beginning of a sweep, with its first reflection, or another of its reflections. A
// dispatch has push.steps of them and stops anywhere: what follows is in the matrix's state. In a reflection each
// invocation first has columns of H, then rows of H and Q.
//
// Golub and Van Loan, Matrix Computations, section 7.5, describe the method; Wilkinson, The Algebraic Eigenvalue Problem,
// the tests for small elements.
//
//# TUFF_VECTORS : 0|1 : 1: slot 1 has Q^T, and rows and columns are whole; 0: only the block matters
#include "kernels/linalg/linalg_schur.glsl"
#include "kernels/common/lanes.glsl"
#include "kernels/linalg/linalg_held.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(4)
  TUFF_INDEX stride;  // from one matrix to the next, of H and of Q
  uint n;
  uint steps;         // iterations of this dispatch
  uint matrices;
} push;

TUFF_DECLARE(coherent, 0, H, TUFF_VALUE, TUFF_VALUE_BYTES)
#if TUFF_VECTORS
TUFF_READ_WRITE(1, Q, TUFF_VALUE, TUFF_VALUE_BYTES)
#endif
TUFF_READ_WRITE(2, State, int, 4)
TUFF_READ(3, Norm, TUFF_VALUE, TUFF_VALUE_BYTES)

TUFF_TREE(tree_largest, larger)

const uint STUBBORN = 10;  // sweeps of a block after which it gets other shifts, and more elements count as small

struct Block {
  TUFF_INDEX base;
  uint row;          // elements from one row to the next
  uint low, last;    // its first and its last row
};
#define B_AT(i, j) h_at(b, i, j)
TUFF_VALUE h_at(Block b, uint i, uint j) {
  const TUFF_INDEX h_base = b.base;
  const uint h_row = b.row;
  return H_AT(i, j);
}

// The last row up to `last` before which the subdiagonal element is small; 0: there is none.
uint small_before(Block b, uint tries, TUFF_VALUE norm, uint thread) {
  const TUFF_VALUE least = (tries >= STUBBORN ? EPSILON : LEAST) * norm;
  TUFF_VALUE found = TUFF_ZERO;
  for (uint i = 1 + thread; i <= b.last; i += TUFF_LANES) {
    const TUFF_VALUE neighbours = abs(B_AT(i - 1, i - 1)) + abs(B_AT(i, i));
    if (abs(B_AT(i, i - 1)) <= max(EPSILON * neighbours, least)) found = TUFF_VALUE(i);
  }
  return uint(tree_largest(found));
}

// Two shifts, real or conjugate: their sum, and what (H - s1 I)(H - s2 I) needs.
struct Shifts {
  TUFF_VALUE re1, re2, im;
};
Shifts shifts_of(Block b, uint tries) {
  TUFF_VALUE p = B_AT(b.last - 1, b.last - 1), q = B_AT(b.last - 1, b.last), r = B_AT(b.last, b.last - 1);
  TUFF_VALUE s = B_AT(b.last, b.last);
  if (tries % STUBBORN == 0) {
    const bool at_end = tries % (2 * STUBBORN) == 0;
    const uint i = at_end ? b.last - 2 : b.low;
    const TUFF_VALUE size = abs(B_AT(i + 1, i)) + abs(B_AT(i + 2, i + 1));
    p = s = TUFF_VALUE(0.75) * size + (at_end ? s : B_AT(b.low, b.low));
    q = TUFF_VALUE(-0.4375) * size;
    r = size;
  }
  const TUFF_VALUE size = abs(p) + abs(q) + abs(r) + abs(s);
  if (size == TUFF_ZERO) return Shifts(TUFF_ZERO, TUFF_ZERO, TUFF_ZERO);
  p = divide(p, size), q = divide(q, size), r = divide(r, size), s = divide(s, size);
  const TUFF_VALUE middle = (p + s) * TUFF_VALUE(0.5), determinant = (p - middle) * (s - middle) - q * r;
  const TUFF_VALUE width = root(abs(determinant));
  if (determinant >= TUFF_ZERO) return Shifts(middle * size, middle * size, width * size);
  // Of real shifts the one nearer to the last element, twice.
  const TUFF_VALUE one = middle + width, other = middle - width;
  const TUFF_VALUE nearer = (abs(one - s) <= abs(other - s) ? one : other) * size;
  return Shifts(nearer, nearer, TUFF_ZERO);
}

// A vector along the first column of (H - s1 I)(H - s2 I) of the block from row m on.
struct Triple {
  TUFF_VALUE x, y, z;
};
Triple scaled(Triple v) {
  const TUFF_VALUE size = abs(v.x) + abs(v.y) + abs(v.z);
  if (size == TUFF_ZERO) return v;
  return Triple(divide(v.x, size), divide(v.y, size), divide(v.z, size));
}
Triple first_column(Block b, Shifts shifts, uint m) {
  const TUFF_VALUE h = B_AT(m, m), below = B_AT(m + 1, m), next = B_AT(m + 1, m + 1);
  const TUFF_VALUE size = abs(h - shifts.re2) + abs(shifts.im) + abs(below);
  if (size == TUFF_ZERO) return Triple(TUFF_ONE, TUFF_ZERO, TUFF_ZERO);
  const TUFF_VALUE small = divide(below, size);
  return scaled(Triple(small * B_AT(m, m + 1) + (h - shifts.re1) * divide(h - shifts.re2, size) +
                           shifts.im * divide(shifts.im, size),
                       small * (h + next - shifts.re1 - shifts.re2), small * B_AT(m + 2, m + 1)));
}

// Where the sweep begins: the last row before which two subdiagonal elements in a row are so small that their product
// is negligible in what a bulge from there on leaves before it.
uint start_of(Block b, Shifts shifts, uint thread) {
  TUFF_VALUE found = TUFF_VALUE(b.low);
  for (uint m = b.low + 1 + thread; m + 2 <= b.last; m += TUFF_LANES) {
    const Triple v = first_column(b, shifts, m);
    const TUFF_VALUE neighbours = abs(B_AT(m - 1, m - 1)) + abs(B_AT(m, m)) + abs(B_AT(m + 1, m + 1));
    if (abs(B_AT(m, m - 1)) * (abs(v.y) + abs(v.z)) <= EPSILON * abs(v.x) * neighbours) found = TUFF_VALUE(m);
  }
  return uint(tree_largest(found));
}

// I - tau (1, y, z)^T (1, y, z), which takes v to (beta, 0, 0).
struct Reflection {
  TUFF_VALUE tau, y, z, beta;
};
Reflection reflection_of(Triple given) {
  const Triple v = scaled(given);
  const TUFF_VALUE squares = v.y * v.y + v.z * v.z;
  if (!(squares > LEAST)) return Reflection(TUFF_ZERO, TUFF_ZERO, TUFF_ZERO, given.x);
  const TUFF_VALUE size = root(v.x * v.x + squares), beta = v.x < TUFF_ZERO ? size : -size;
  const TUFF_VALUE factor = divide(TUFF_ONE, v.x - beta);
  return Reflection(divide(beta - v.x, beta), v.y * factor, v.z * factor,
                    beta * (abs(given.x) + abs(given.y) + abs(given.z)));
}

// Applies it to three elements, or to two of them.
#define REFLECT(r, three, A, B, C)                   \
  {                                                  \
    TUFF_VALUE sum = A + r.y * B;                    \
    if (three) sum += r.z * C;                       \
    sum *= r.tau;                                    \
    A -= sum;                                        \
    B -= sum * r.y;                                  \
    if (three) C -= sum * r.z;                       \
  }

void main() {
  const uint matrix = tuff_group(), thread = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
  if (matrix >= push.matrices) return;
  const uint n = push.n, h_row = n, state = matrix * STATE_WORDS;
  const TUFF_INDEX h_base = TUFF_INDEX(matrix) * push.stride;
  const TUFF_VALUE norm = TUFF_AT(Norm, matrix);
  uint found = uint(TUFF_AT(State, state + FOUND)), next = uint(TUFF_AT(State, state + NEXT));
  uint tries = uint(TUFF_AT(State, state + TRIES)), low = uint(TUFF_AT(State, state + LOW));
  if (found >= n) return;
#if TUFF_HELD
  for (uint e = thread; e < n * n; e += TUFF_LANES) H_AT(e / n, e % n) = TUFF_AT(H, h_base + e);
#endif
  barrier();
  for (uint step = 0; step < push.steps && found < n; ++step) {
    Block b = Block(h_base, h_row, low, n - 1 - found);
    const bool begins = next == 0;
    uint k = next - 1;
    Triple v = Triple(TUFF_ZERO, TUFF_ZERO, TUFF_ZERO);
    if (begins) {
      b.low = low = small_before(b, tries, norm, thread);
      barrier();
      if (b.low + 1 >= b.last) {
        if (thread == 0 && low > 0) H_AT(low, low - 1) = TUFF_ZERO;
        found += b.last - low + 1;
        tries = 0;
        continue;
      }
      ++tries;
      const Shifts shifts = shifts_of(b, tries);
      k = start_of(b, shifts, thread);
      v = first_column(b, shifts, k);
      barrier();
    } else {
      v = Triple(H_AT(k, k - 1), H_AT(k + 1, k - 1), TUFF_ZERO);
      if (k + 2 <= b.last) v.z = H_AT(k + 2, k - 1);
    }
    const bool three = k + 2 <= b.last;
    const uint third = three ? k + 2 : k + 1;
    const Reflection r = reflection_of(v);
    const uint end = TUFF_VECTORS != 0 ? n : b.last + 1;
    for (uint j = k + thread; j < end; j += TUFF_LANES) REFLECT(r, three, H_AT(k, j), H_AT(k + 1, j), H_AT(third, j))
    PUBLISH();
    if (thread == 0) {
      // Elements of column k - 1, which no other invocation needs before the next barrier.
      if (!begins) {
        H_AT(k, k - 1) = r.beta;
        H_AT(k + 1, k - 1) = TUFF_ZERO;
        if (three) H_AT(k + 2, k - 1) = TUFF_ZERO;
      } else if (k > low) {
        H_AT(k, k - 1) *= TUFF_ONE - r.tau;
      }
      if (begins && low > 0) H_AT(low, low - 1) = TUFF_ZERO;
    }
    const uint rows = min(k + 3, b.last) + 1;
    for (uint i = (TUFF_VECTORS != 0 ? 0 : low) + thread; i < rows; i += TUFF_LANES) {
      REFLECT(r, three, H_AT(i, k), H_AT(i, k + 1), H_AT(i, third))
    }
#if TUFF_VECTORS
    const TUFF_INDEX q = h_base + TUFF_INDEX(k) * n, q1 = q + n, q2 = three ? q1 + n : q1;
    for (uint i = thread; i < n; i += TUFF_LANES) {
      REFLECT(r, three, TUFF_AT(Q, q + i), TUFF_AT(Q, q1 + i), TUFF_AT(Q, q2 + i))
    }
#endif
    PUBLISH();
    next = k + 1 == b.last ? 0 : k + 2;
  }
#if TUFF_HELD
  barrier();
  for (uint e = thread; e < n * n; e += TUFF_LANES) TUFF_AT(H, h_base + e) = H_AT(e / n, e % n);
#endif
  if (thread == 0) {
    TUFF_AT(State, state + FOUND) = int(found);
    TUFF_AT(State, state + NEXT) = int(next);
    TUFF_AT(State, state + TRIES) = int(tries);
    TUFF_AT(State, state + LOW) = int(low);
  }
}
