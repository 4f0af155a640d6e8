// Eigenvectors of a matrix in real Schur form, by back-substitution. A workgroup has a value w, in the block B on the
// diagonal, and the vector x whose rows below the block are 0:
//
//   | T  C  .  |   | y |        | y |
//   |    B  .  | * | b |  =  w  | b |      b is the vector of B;  (T - w I) y = -C b
//   |       .  |   | 0 |        | 0 |
//
// Invocation t has the rows t, t + (invocations) … of x, at first with the right side. From the last block of T up, all
// invocations solve the block's system of one or two unknowns, whose right side passes through shared memory, and each
// subtracts the block's columns from its rows.
//
// All arithmetic of x is complex; for a real value the imaginary parts are 0. Of conjugate values only the first has a
// vector. A divisor below the rounding errors of T becomes one of their size. Vectors that grow are scaled by powers of
// two.
//
// Slot 2 receives x as two rows, its real and its imaginary parts.
#include "kernels/linalg/linalg_schur.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(4)
  TUFF_INDEX stride;  // from one matrix to the next, of H
  uint n;
  uint matrices;
} push;

TUFF_READ(0, H, TUFF_VALUE, TUFF_VALUE_BYTES)
TUFF_READ(1, Roots, TUFF_VALUE, TUFF_VALUE_BYTES)
TUFF_READ_WRITE(2, X, TUFF_VALUE, TUFF_VALUE_BYTES)
TUFF_READ(3, Norm, TUFF_VALUE, TUFF_VALUE_BYTES)

#define T_AT(i, j) TUFF_AT(H, base + TUFF_INDEX(i) * push.n + (j))
#define COMPLEX TUFF_VALUE2

const TUFF_VALUE LARGE = TUFF_VALUE(1048576);  // from which on vectors are scaled: far from overflow in two divisions

shared COMPLEX sides[2][2];  // of the block in hand, of an even and of an odd step

COMPLEX times(COMPLEX a, COMPLEX b) { return COMPLEX(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
TUFF_VALUE size_of(COMPLEX a) { return abs(a.x) + abs(a.y); }
// A quotient by Smith's method, which neither overflows nor underflows where the square of b would.
COMPLEX over(COMPLEX a, COMPLEX b) {
  if (abs(b.x) >= abs(b.y)) {
    const TUFF_VALUE ratio = divide(b.y, b.x), divisor = b.x + b.y * ratio;
    return COMPLEX(divide(a.x + a.y * ratio, divisor), divide(a.y - a.x * ratio, divisor));
  }
  const TUFF_VALUE ratio = divide(b.x, b.y), divisor = b.x * ratio + b.y;
  return COMPLEX(divide(a.x * ratio + a.y, divisor), divide(a.y * ratio - a.x, divisor));
}
COMPLEX divisor_of(COMPLEX a, TUFF_VALUE least) { return size_of(a) < least ? COMPLEX(least, TUFF_ZERO) : a; }

// Solves | p  q | | x1 |   | f1 |  for real q and r.
//        | r  s | | x2 | = | f2 |
void solve_block(COMPLEX p, TUFF_VALUE q, TUFF_VALUE r, COMPLEX s, TUFF_VALUE least, COMPLEX f1, COMPLEX f2,
                 out COMPLEX x1, out COMPLEX x2) {
  if (size_of(p) >= abs(r)) {
    const COMPLEX pivot = divisor_of(p, least), factor = over(COMPLEX(r, TUFF_ZERO), pivot);
    x2 = over(f2 - times(factor, f1), divisor_of(s - factor * q, least));
    x1 = over(f1 - q * x2, pivot);
  } else {
    const COMPLEX pivot = divisor_of(COMPLEX(r, TUFF_ZERO), least), factor = over(p, pivot);
    x2 = over(f1 - times(factor, f2), divisor_of(COMPLEX(q, TUFF_ZERO) - times(factor, s), least));
    x1 = over(f2 - times(s, x2), pivot);
  }
}

// The vector of a 2 x 2 block for one of its values, from the row of the block less the value that is larger, so that
// what cancels in the other one does not matter. Its larger element is about 1.
void block_vector(COMPLEX p, TUFF_VALUE q, TUFF_VALUE r, COMPLEX s, out COMPLEX first, out COMPLEX second) {
  if (size_of(p) + abs(q) >= abs(r) + size_of(s)) {
    first = COMPLEX(q, TUFF_ZERO), second = -p;
  } else {
    first = -s, second = COMPLEX(r, TUFF_ZERO);
  }
  const TUFF_VALUE size = max(size_of(first), size_of(second));
  if (size == TUFF_ZERO) return;
  first = COMPLEX(divide(first.x, size), divide(first.y, size));
  second = COMPLEX(divide(second.x, size), divide(second.y, size));
}

void main() {
  const uint n = push.n, group = tuff_group(), matrix = group / n, e = group % n;
  const uint thread = gl_LocalInvocationID.x, lanes = gl_WorkGroupSize.x;
  if (matrix >= push.matrices) return;
  const TUFF_INDEX base = TUFF_INDEX(matrix) * push.stride, root_place = 2 * (TUFF_INDEX(matrix) * TUFF_INDEX(n) + e);
  const TUFF_INDEX re = 2 * base + 2 * TUFF_INDEX(e) * n, im = re + n;
  const COMPLEX value = COMPLEX(TUFF_AT(Roots, root_place), TUFF_AT(Roots, root_place + 1));
  if (value.y < TUFF_ZERO) {
    for (uint j = thread; j < n; j += lanes) TUFF_AT(X, re + j) = TUFF_AT(X, im + j) = TUFF_ZERO;
    return;
  }
  const bool second = e > 0 && T_AT(e, e - 1) != TUFF_ZERO;
  const bool paired = second || (e + 1 < n && T_AT(e + 1, e) != TUFF_ZERO);
  const uint top = second ? e - 1 : e, bottom = paired ? top + 1 : top;
  COMPLEX at_top = COMPLEX(TUFF_ONE, TUFF_ZERO), at_bottom = COMPLEX(0);
  if (paired) {
    block_vector(COMPLEX(T_AT(top, top), 0) - value, T_AT(top, bottom), T_AT(bottom, top),
                 COMPLEX(T_AT(bottom, bottom), 0) - value, at_top, at_bottom);
  }
  for (uint j = thread; j < n; j += lanes) {
    COMPLEX x = j == top ? at_top : j == bottom ? at_bottom : COMPLEX(0);
    if (j < top) x = -T_AT(j, top) * at_top;
    if (j < top && paired) x -= T_AT(j, bottom) * at_bottom;
    TUFF_AT(X, re + j) = x.x;
    TUFF_AT(X, im + j) = x.y;
  }
  const TUFF_VALUE least = max(EPSILON * TUFF_AT(Norm, matrix), LEAST);
  uint parity = 0;
  for (uint above = top; above > 0;) {  // rows that are not yet solved
    const uint row = above - 1, former = row > 0 ? row - 1 : 0;
    const bool two = row > 0 && T_AT(row, former) != TUFF_ZERO;
    if (row % lanes == thread) sides[parity][0] = COMPLEX(TUFF_AT(X, re + row), TUFF_AT(X, im + row));
    if (two && former % lanes == thread) sides[parity][1] = COMPLEX(TUFF_AT(X, re + former), TUFF_AT(X, im + former));
    barrier();
    const COMPLEX side = sides[parity][0], corner = COMPLEX(T_AT(row, row), 0) - value;
    COMPLEX at_row, at_former = COMPLEX(0);
    if (two) {
      solve_block(COMPLEX(T_AT(former, former), 0) - value, T_AT(former, row), T_AT(row, former), corner, least,
                  sides[parity][1], side, at_former, at_row);
    } else {
      at_row = over(side, divisor_of(corner, least));
    }
    const TUFF_VALUE largest = max(size_of(at_row), size_of(at_former));
    if (largest > LARGE) {
      const TUFF_VALUE scale = power_of_two(-scale_exponent(largest));
      at_row *= scale, at_former *= scale;
      for (uint j = thread; j < n; j += lanes) {
        TUFF_AT(X, re + j) *= scale;
        TUFF_AT(X, im + j) *= scale;
      }
    }
    above = two ? former : row;
    for (uint j = thread; j <= row; j += lanes) {
      COMPLEX x = j == row ? at_row : at_former;
      if (j < above) {
        x = COMPLEX(TUFF_AT(X, re + j), TUFF_AT(X, im + j)) - T_AT(j, row) * at_row;
        if (two) x -= T_AT(j, former) * at_former;
      }
      TUFF_AT(X, re + j) = x.x;
      TUFF_AT(X, im + j) = x.y;
    }
    parity = 1 - parity;
  }
}
