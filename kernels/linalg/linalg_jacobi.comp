// A step of Jacobi's method: a workgroup takes two parts of the columns of a matrix (linalg_pairs.glsl), forms their
// symmetric matrix S in shared memory, and makes its off-diagonal elements smaller by a sweep of plane rotations, whose
// product U linalg_rotate.comp applies to the columns. The rotations of a round concern different rows and columns:
//
//   invocation t has the angle of game t; all invocations share the elements of
//   S(:, p), S(:, q) = c S(:, p) - s S(:, q), s S(:, p) + c S(:, q)    then the same for rows; then for columns of U
//
// With TUFF_GRAM S is X^T X of the columns of X, which become orthogonal (the one-sided method, for singular values);
// then the larger column comes first, which makes graded matrices converge soon. Otherwise S is a block of the symmetric
// matrix X, of which the lower triangle is read. An element needs no rotation if it is below the rounding errors: with f =
// eps / 8 times the Frobenius norm of all of X,
//
//   |S(p, q)| <= f                                    or, with TUFF_GRAM and columns p and q of length l(p) >= l(q),
//   |S(p, q)| <= l(p) * max(f, eps * sqrt(columns) * l(q))
//
// With TUFF_ALONE S is all of X: sweeps are repeated, and X receives its diagonal. Then only the columns that there are
// take part, and only as many rows and columns of U are set.
//
//# TUFF_GRAM : 0|1 : 1: S is X^T X
//# TUFF_ALONE : 0|1 : 1: there are only two parts, whose sweeps are repeated up to MOST_SWEEPS times
//# TUFF_THREADS : 8|16|32|64|128|256 : invocations of a workgroup
#include "kernels/linalg/linalg_pairs.glsl"

layout(local_size_x = TUFF_THREADS) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(5)
  TUFF_INDEX x_row, x_column, x_stride;
  TUFF_INDEX u_stride;   // from one matrix's products to the next's
  uint columns;          // of X, and its rows
  uint parts;            // of the columns, an even number
  uint round, sweep;
  uint matrices;
} push;

TUFF_READ_WRITE(0, X, TUFF_VALUE, TUFF_VALUE_BYTES)
TUFF_WRITE(1, U, TUFF_VALUE, TUFF_VALUE_BYTES)
TUFF_READ_WRITE(2, State, int, 4)
TUFF_READ(3, Norm, TUFF_VALUE, TUFF_VALUE_BYTES)
TUFF_WRITE(4, Moved, int, 4)  // of each pair: whether U is not the identity

shared TUFF_VALUE s_block[WHOLE * WHOLE_PITCH], u_block[WHOLE * WHOLE_PITCH];
shared TUFF_VALUE cosines[HALF], sines[HALF];
shared uvec2 opponents[HALF];
shared uint rotations;

#define S(i, j) s_block[(i) * WHOLE_PITCH + (j)]
#define W(i, j) u_block[(i) * WHOLE_PITCH + (j)]

#if TUFF_TYPE == 1
const TUFF_VALUE EPSILON = 1.1920929e-7;
const TUFF_VALUE STEEP = 1e9;
#else
const TUFF_VALUE EPSILON = 2.220446049250313e-16lf;
const TUFF_VALUE STEEP = 1e30lf;
#endif

TUFF_VALUE x_at(TUFF_INDEX base, uint i, uint j) {
  if (i >= push.columns || j >= push.columns) return TUFF_ZERO;
  return TUFF_AT(X, base + TUFF_INDEX(i) * push.x_row + TUFF_INDEX(j) * push.x_column);
}

// Columns that take part: an even number, and the power of two from there on, which makes indices of elements quick.
struct Width {
  uint players, bits, mask;
};
#define SQUARE(width) ((width).players << (width).bits)  // indices of a square: row e >> bits, column e & mask

void load(TUFF_INDEX base, uvec2 pair, Width width, uint thread) {
#if TUFF_GRAM
  for (uint e = thread; e < SQUARE(width); e += TUFF_THREADS) S(e >> width.bits, e & width.mask) = TUFF_ZERO;
  // The columns pass through the memory of U, some rows at a time.
  const bool along_rows = push.x_column == TUFF_INDEX(1);
  for (uint first = 0; first < push.columns; first += WHOLE) {
    barrier();
    for (uint e = thread; e < WHOLE * WHOLE; e += TUFF_THREADS) {
      const uint r = along_rows ? e / WHOLE : e % WHOLE, c = along_rows ? e % WHOLE : e / WHOLE;
      W(r, c) = x_at(base, first + r, column_of(pair, c));
    }
    barrier();
    const uint height = min(WHOLE, push.columns - first);
    // Two neighbouring rows and columns of S for each invocation.
    for (uint e = thread; e < SQUARE(width) / 4; e += TUFF_THREADS) {
      const uint i = e >> width.bits - 1 << 1, j = (e & width.mask >> 1) << 1;
      if (j >= width.players) continue;
      TUFF_VALUE4 sum = TUFF_VALUE4(0);
      for (uint r = 0; r < height; ++r) {
        const TUFF_VALUE2 a = TUFF_VALUE2(W(r, i), W(r, i + 1)), b = TUFF_VALUE2(W(r, j), W(r, j + 1));
        sum += TUFF_VALUE4(a.x * b, a.y * b);
      }
      S(i, j) += sum.x;
      S(i, j + 1) += sum.y;
      S(i + 1, j) += sum.z;
      S(i + 1, j + 1) += sum.w;
    }
  }
#else
  for (uint e = thread; e < SQUARE(width); e += TUFF_THREADS) {
    const uint i = e >> width.bits, j = e & width.mask;
    const uint a = column_of(pair, i), b = column_of(pair, j);
    if (j < width.players) S(i, j) = x_at(base, max(a, b), min(a, b));
  }
#endif
  barrier();
  for (uint e = thread; e < SQUARE(width); e += TUFF_THREADS) {
    const uint i = e >> width.bits, j = e & width.mask;
    W(i, j) = i == j ? TUFF_ONE : TUFF_ZERO;
  }
}

// The rotation that makes S(p, q) zero; false: none is needed.
bool angle(uvec2 at, TUFF_VALUE least, TUFF_VALUE relative, out TUFF_VALUE c, out TUFF_VALUE s) {
  const TUFF_VALUE p = S(at.x, at.x), q = S(at.y, at.y), off = S(at.x, at.y);
  c = TUFF_ONE;
  s = TUFF_ZERO;
#if TUFF_GRAM
  const TUFF_VALUE length_p = root(max(p, TUFF_ZERO)), length_q = root(max(q, TUFF_ZERO));
  const TUFF_VALUE most = max(length_p, length_q) * max(least, relative * min(length_p, length_q));
#else
  const TUFF_VALUE most = least;
#endif
  if (!(abs(off) > most)) return false;
  const TUFF_VALUE cotangent = divide(q - p, off + off), size = abs(cotangent);  // of twice the angle
  TUFF_VALUE t = size < STEEP ? divide(TUFF_ONE, size + root(size * size + TUFF_ONE))
                              : divide(TUFF_VALUE(0.5), size);
  if (cotangent < TUFF_ZERO) t = -t;
  c = divide(TUFF_ONE, root(t * t + TUFF_ONE));
  s = t * c;
#if TUFF_GRAM
  if (p < q) {  // a quarter turn more exchanges the columns
    const TUFF_VALUE former = c;
    c = s;
    s = -former;
  }
#endif
  return true;
}

// One sweep. Returns how many rotations it needed.
uint sweep(Width width, uint thread, TUFF_VALUE least, TUFF_VALUE relative) {
  const uint games = width.players / 2;
  barrier();
  if (thread == 0) rotations = 0;
  barrier();
  uint before = 0;
  for (uint round = 0; round < width.players - 1; ++round) {
    for (uint game = thread; game < games; game += TUFF_THREADS) {
      const uvec2 at = meeting(width.players, round, game);
      TUFF_VALUE c, s;
      if (angle(at, least, relative, c, s)) atomicAdd(rotations, 1);
      cosines[game] = c;
      sines[game] = s;
      opponents[game] = at;
    }
    barrier();
    const uint now = rotations;
    barrier();
    if (now == before) continue;
    before = now;
    for (uint e = thread; e < games << width.bits; e += TUFF_THREADS) {
      const uint game = e >> width.bits, i = e & width.mask;
      const TUFF_VALUE c = cosines[game], s = sines[game];
      if (s == TUFF_ZERO || i >= width.players) continue;
      const uvec2 at = opponents[game];
      const TUFF_VALUE p = S(i, at.x), q = S(i, at.y);
      S(i, at.x) = c * p - s * q;
      S(i, at.y) = s * p + c * q;
      const TUFF_VALUE u = W(i, at.x), v = W(i, at.y);
      W(i, at.x) = c * u - s * v;
      W(i, at.y) = s * u + c * v;
    }
    barrier();
    for (uint e = thread; e < games << width.bits; e += TUFF_THREADS) {
      const uint game = e >> width.bits, j = e & width.mask;
      const TUFF_VALUE c = cosines[game], s = sines[game];
      if (s == TUFF_ZERO || j >= width.players) continue;
      const uvec2 at = opponents[game];
      const TUFF_VALUE p = S(at.x, j), q = S(at.y, j);
      S(at.x, j) = j == at.y ? TUFF_ZERO : c * p - s * q;
      S(at.y, j) = j == at.x ? TUFF_ZERO : s * p + c * q;
    }
    barrier();
  }
  return rotations;
}

void main() {
  const uint games = push.parts / 2, group = tuff_group(), matrix = group / games, game = group % games;
  const uint thread = gl_LocalInvocationID.x;
  if (matrix >= push.matrices) return;
  const uint counts = matrix * STATE_WORDS + COUNTS;
  if (push.sweep > 0 && TUFF_AT(State, counts + push.sweep - 1) == 0) return;  // it has converged
  const uvec2 pair = meeting(push.parts, push.round, game);
  const TUFF_INDEX base = TUFF_INDEX(matrix) * push.x_stride;
  const uint players = TUFF_ALONE != 0 ? (push.columns + 1) / 2 * 2 : WHOLE, bits = uint(findMSB(players - 1)) + 1;
  const Width width = Width(players, bits, (1u << bits) - 1);
  load(base, pair, width, thread);
  const TUFF_VALUE least = TUFF_AT(Norm, matrix) * (EPSILON * TUFF_VALUE(0.125));
  const TUFF_VALUE relative = EPSILON * root(TUFF_VALUE(push.columns));
  uint last = sweep(width, thread, least, relative), all = last;
#if TUFF_ALONE
  for (uint again = 1; again < MOST_SWEEPS && last != 0; ++again) {
    last = sweep(width, thread, least, relative);
    all += last;
  }
#if !TUFF_GRAM
  // X is diagonal if the last sweep needed no rotation. Columns are multiplied by U first, and measured again.
  all = last;
#endif
#endif
  if (thread == 0) {
    TUFF_AT(Moved, matrix * games + game) = all != 0 || TUFF_ALONE != 0 ? 1 : 0;
    if (all != 0) atomicAdd(TUFF_AT(State, counts + push.sweep), int(all));
  }
  if (all == 0 && TUFF_ALONE == 0) return;
  const TUFF_INDEX u = TUFF_INDEX(matrix) * push.u_stride + TUFF_INDEX(game) * TUFF_INDEX(WHOLE * WHOLE);
  for (uint e = thread; e < SQUARE(width); e += TUFF_THREADS) {
    const uint i = e >> width.bits, j = e & width.mask;
    TUFF_AT(U, u + i * WHOLE + j) = W(i, j);
  }
#if TUFF_ALONE && !TUFF_GRAM
  for (uint i = thread; i < push.columns; i += TUFF_THREADS) {
    TUFF_AT(X, base + TUFF_INDEX(i) * (push.x_row + push.x_column)) = S(i, i);
  }
#endif
}
