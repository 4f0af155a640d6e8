// One pass of Fourier transforms along an axis: a step of Stockham's algorithm with a large radix (Govindaraju et al.
// 2008, "High performance discrete Fourier transforms on graphics processors"). A line of N numbers takes passes of
// radices R1, R2, … whose product is N. In a pass of radix R after passes of product P, a lane has one of N / R columns,
// with place = column % P:
//
//   reads     column + r N / R                                  for r < R
//   computes  R numbers: their Fourier transform, after number r is multiplied by exp(-2 pi i r place / (P R))
//   writes    (column - place) R + place + k P                  for k < R
//
// kernels/fft/fft_codelet.cpp generates the transform of R numbers, in place of the line with TUFF_BODY below: it calls
// fft_load(r), fft_unit(r) and fft_store(k, v). Lanes are numbered by axes: those of the batch, column / P and place.
//
// With TUFF_LANES, R is larger: a column has that many lanes, and its transform takes steps of the same algorithm with smaller
// radices, between which the numbers are in shared memory. Only the first step reads the input, and only the last writes the
// output. Which lanes of a workgroup have which column may differ between the two, so that neighbours access neighbours:
//
//   TUFF_READ_ACROSS, TUFF_WRITE_ACROSS  0  lanes  0 1 2 3 ... of column 0, then those of column 1, ...
//                                        1  lane 0 of columns 0 1 2 3 ..., then lane 1 of them, ...
//
// In Bluestein's algorithm (1970) n numbers become a convolution of M >= 2 n - 1, with the chirp
// c[j] = exp(-pi i j^2 / n): X[k] = c[k] sum of (x[j] c[j]) conj(c[k - j]).
// A line of n real numbers, n even, is a line of n / 2 complex ones, whose transform Z gives the first half of X (and the way
// back): X[k] = (Z[k] + conj(Z[n/2 - k])) / 2 + exp(-2 pi i k / n) (Z[k] - conj(Z[n/2 - k])) / 2i.
//# TUFF_INPUT : 1..4 : element type of the input, as in tuff.h
//# TUFF_OUTPUT : 1..4 : that of the output
//# TUFF_INPUT_PAIRS : 0..2 : a complex number is read as 0: two elements; 1: one aligned pair; 2: f32 alone, 64 bits
//# TUFF_OUTPUT_PAIRS : 0..2 : the same for the output
//# TUFF_LOAD : 0..7 : 0: numbers; 1: real numbers; 2: numbers that mirror each other, from the first half of them; 3: conj(c) in a circle, without an input; 4: conj(input * factor); 5: pairs of real numbers; 6: Z, from the first half of X; 7: X, from Z
//# TUFF_STORE : 0..4 : 0: numbers; 1: the first half of them; 2: their real parts; 3: pairs of real numbers; 4: the first half of X, from Z
//# TUFF_CHIRP : 0..2 : 1: the first n numbers are read and multiplied by c, the others are 0; 2: the conjugates of the results are multiplied by c, and the first n written
//# TUFF_TWIDDLES : 0|1 : 0: P is 1
//# TUFF_LANES = 0 : 0..1024 : lanes of a column; 0: one, which has all its numbers in registers
//# TUFF_COLUMNS = 1 : 1..1024 : with TUFF_LANES, columns of a workgroup
//# TUFF_READ_ACROSS = 0 : 0|1 : see above
//# TUFF_WRITE_ACROSS = 0 : 0|1 : see above
//# TUFF_RUN : 0.. : columns that a lane has one after another; 0: push.run says
#if TUFF_INPUT == 4
#define TUFF_VALUE_OF 4
#endif
#include "kernels/common/types.glsl"
#include "kernels/common/division.glsl"
#if TUFF_INPUT_PAIRS == 2 || TUFF_OUTPUT_PAIRS == 2
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#endif

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(4)
  uint lanes, run;
  uint rank;                      // axes of lanes
  uint column_axis, place_axis;   // which of them are column / P and place; others are 8
  uint columns;                   // N / R
  uint passed;                    // P
  uint span;                      // P R
  float quarter;                  // 4 / span
  uint angle[2];                  // pi / 2 / span: as the sum of two floats, or a double
  uint scale[2];                  // of results: a float or a double
  float input_sign, output_sign;  // -1: imaginary parts change their signs
  uint n;                         // numbers with the chirp, or that mirror each other
  float chirp_quarter;            // 4 / (2 n)
  uint chirp_angle[2];            // pi / 2 / (2 n)
} push;

#include "kernels/fft/fft_roots.glsl"

#define PAIR_1 vec2
#define PAIR_BYTES_1 8
#define PAIR_LOAD_1(x) (x)
#define PAIR_STORE_1(v) (v)
#define PAIR_2 uint
#define PAIR_BYTES_2 4
#define PAIR_LOAD_2(x) unpackHalf2x16(x)
#define PAIR_STORE_2(v) tuff_f16_pair(v)
#define PAIR_3 uint
#define PAIR_BYTES_3 4
#define PAIR_LOAD_3(x) uintBitsToFloat(uvec2((x) << 16, (x) & 0xffff0000u))
#define PAIR_STORE_3(v) tuff_bf16_pair(v)
#define PAIR_4 dvec2
#define PAIR_BYTES_4 16
#define PAIR_LOAD_4(x) (x)
#define PAIR_STORE_4(v) (v)

#if TUFF_INPUT_PAIRS == 2
TUFF_READ(0, X, uint64_t, 8)
#define LOAD_PAIR(i) uintBitsToFloat(unpackUint2x32(TUFF_AT(X, i)))
#elif TUFF_INPUT_PAIRS == 1
TUFF_READ(0, X, TUFF_PASTE(PAIR_, TUFF_INPUT), TUFF_PASTE(PAIR_BYTES_, TUFF_INPUT))
#define LOAD_PAIR(i) TUFF_PASTE(PAIR_LOAD_, TUFF_INPUT)(TUFF_AT(X, i))
#else
TUFF_READ(0, X, TUFF_STORED(TUFF_INPUT), TUFF_BYTES(TUFF_INPUT))
#define LOAD_ONE(i) TUFF_LOADED(TUFF_INPUT, TUFF_AT(X, i))
#define LOAD_PAIR(i) NUMBER(LOAD_ONE(2 * (i)), LOAD_ONE(2 * (i) + 1))
#endif
#if TUFF_OUTPUT_PAIRS == 2
TUFF_WRITE(1, Y, uint64_t, 8)
#define STORE_PAIR(i, v) TUFF_AT(Y, i) = packUint2x32(floatBitsToUint(v))
#elif TUFF_OUTPUT_PAIRS == 1
TUFF_WRITE(1, Y, TUFF_PASTE(PAIR_, TUFF_OUTPUT), TUFF_PASTE(PAIR_BYTES_, TUFF_OUTPUT))
#define STORE_PAIR(i, v) TUFF_AT(Y, i) = TUFF_PASTE(PAIR_STORE_, TUFF_OUTPUT)(v)
#else
TUFF_WRITE(1, Y, TUFF_STORED(TUFF_OUTPUT), TUFF_BYTES(TUFF_OUTPUT))
#define STORE_ONE(i, x) TUFF_AT(Y, i) = TUFF_ROUNDED(TUFF_OUTPUT, x)
#define STORE_PAIR(i, v) STORE_ONE(2 * (i), (v).x); STORE_ONE(2 * (i) + 1, (v).y)
#endif
#if TUFF_LOAD == 4
TUFF_READ(2, Factor, NUMBER, 2 * TUFF_VALUE_BYTES)
#endif
// Strides are two words each, low and high: those of r and of k, and of the line in both operands; then for each axis of
// lanes, innermost first, its size, the multiplier and the shift that divide by it, and its strides in both operands.
TUFF_READ(3, Table, uint, 4)

// For the lane's column.
TUFF_INDEX fft_input_at, fft_output_at, fft_input_step, fft_output_step;
uint fft_column, fft_place;
#if TUFF_LANES
bool fft_exists;  // the lane's column
#endif

NUMBER fft_unit(uint r) { return fft_root(r * fft_place, push.span, push.quarter, ANGLE(push.angle)); }

#if TUFF_LOAD == 6 || TUFF_LOAD == 7 || TUFF_STORE == 4
// exp(-2 pi i k / n)
NUMBER fft_real_root(uint k) { return fft_root(2 * k, 2 * push.n, push.chirp_quarter, ANGLE(push.chirp_angle)); }
#endif

#if TUFF_CHIRP != 0 || TUFF_LOAD == 3
// c[j]: the angle is that of j^2 modulo 2 n.
NUMBER fft_chirp(uint j) {
  const uint circle = 2 * push.n;
  uint square = j * j;
  if (j < 65536) {
    square %= circle;
  } else {
    square = 0;
    for (int bit = findMSB(j); bit >= 0; --bit) {
      square *= 2;
      square = square >= circle ? square - circle : square;
      square += (j >> bit & 1u) != 0 ? j : 0;
      square = square >= circle ? square - circle : square;
    }
  }
  return fft_root(square, circle, push.chirp_quarter, ANGLE(push.chirp_angle));
}
#endif

NUMBER fft_load(uint r) {
#if TUFF_LANES
  if (!fft_exists) return NUMBER(0);
#endif
  const uint at = fft_column + r * push.columns;  // in the line
#if TUFF_LOAD == 3
  const uint size = push.span * push.columns, distance = min(at, size - at);
  if (distance >= push.n) return NUMBER(0);
  NUMBER v = fft_chirp(distance);
  v.y = -v.y;
  return v;
#elif TUFF_LOAD == 5
#if TUFF_INPUT_PAIRS
  return LOAD_PAIR(fft_input_at / 2 + at);
#else
  const TUFF_INDEX pair = fft_input_at + TUFF_INDEX(2 * at) * fft_input_step;
  return NUMBER(LOAD_ONE(pair), LOAD_ONE(pair + fft_input_step));
#endif
#elif TUFF_LOAD == 6
  const uint half_n = push.n / 2;
  NUMBER a = LOAD_PAIR(fft_input_at + TUFF_INDEX(at) * fft_input_step);
  NUMBER b = LOAD_PAIR(fft_input_at + TUFF_INDEX(half_n - at) * fft_input_step);
  if (at == 0) a.y = TUFF_ZERO, b.y = TUFF_ZERO;
  a.y *= TUFF_VALUE(push.input_sign);
  b.y *= -TUFF_VALUE(push.input_sign);
  const NUMBER v = fft_product(fft_real_root(at), a - b);
  return NUMBER(a.x + b.x - v.y, a.y + b.y + v.x);
#elif TUFF_LOAD == 7
  const uint half_n = push.n / 2;
  const NUMBER a = LOAD_PAIR(fft_input_at + TUFF_INDEX(at == half_n ? 0 : at) * fft_input_step);
  const NUMBER b = LOAD_PAIR(fft_input_at + TUFF_INDEX(at == 0 ? 0 : half_n - at) * fft_input_step);
  return fft_join(a, b, fft_real_root(at));
#else
#if TUFF_CHIRP == 1
  if (at >= push.n) return NUMBER(0);
#endif
#if TUFF_LOAD == 2
  const bool second = at > push.n / 2;
  NUMBER v = LOAD_PAIR(fft_input_at + TUFF_INDEX(second ? push.n - at : at) * fft_input_step);
  if (second) v.y = -v.y;
  if (at == 0 || 2 * at == push.n) v.y = TUFF_ZERO;
#elif TUFF_LOAD == 1
  NUMBER v = NUMBER(LOAD_ONE(fft_input_at + TUFF_INDEX(r) * fft_input_step), 0);
#else
  NUMBER v = LOAD_PAIR(fft_input_at + TUFF_INDEX(r) * fft_input_step);
#endif
  v.y *= TUFF_VALUE(push.input_sign);
#if TUFF_LOAD == 4
  v = fft_product(v, TUFF_AT(Factor, at));
  v.y = -v.y;
#endif
#if TUFF_CHIRP == 1
  v = fft_product(v, fft_chirp(at));
#endif
  return v;
#endif
}

void fft_store(uint k, NUMBER v) {
#if TUFF_LANES
  if (!fft_exists) return;
#endif
  const uint at = fft_place + k * push.passed;  // in the line, if this is its last pass
#if TUFF_VALUE_TYPE == 4
  v *= packDouble2x32(uvec2(push.scale[0], push.scale[1]));
#else
  v *= uintBitsToFloat(push.scale[0]);
#endif
#if TUFF_CHIRP == 2
  if (at >= push.n) return;
  v.y = -v.y;
  v = fft_product(v, fft_chirp(at));
#endif
#if TUFF_STORE == 1
  if (at > push.n / 2) return;
#endif
  const TUFF_INDEX to = fft_output_at + TUFF_INDEX(k) * fft_output_step;
#if TUFF_STORE == 2
  STORE_ONE(to, v.x);
#elif TUFF_STORE == 3 && TUFF_OUTPUT_PAIRS
  STORE_PAIR(to / 2, v);
#elif TUFF_STORE == 3
  STORE_ONE(to, v.x);
  STORE_ONE(to + STRIDE(6), v.y);
#else
  v.y *= TUFF_VALUE(push.output_sign);
  STORE_PAIR(to, v);
#endif
}

// Where the lane's column is.
void fft_find(uint lane) {
  fft_input_at = 0, fft_output_at = 0;
  fft_column = 0, fft_place = 0;
  uint word = 8;
  for (uint d = 0; d < push.rank; ++d, word += 7) {
    uint along = lane;
    if (d + 1 < push.rank) {
      lane = tuff_divide(lane, TUFF_AT(Table, word + 1), TUFF_AT(Table, word + 2));
      along -= lane * TUFF_AT(Table, word);
    }
    fft_input_at += TUFF_INDEX(along) * STRIDE(word + 3);
    fft_output_at += TUFF_INDEX(along) * STRIDE(word + 5);
    if (d == push.column_axis) fft_column += along * push.passed;
    if (d == push.place_axis) fft_place = along, fft_column += along;
  }
}

#if TUFF_LANES
// Which lane of which column of the workgroup this is.
uint fft_lane, fft_line;
void fft_take(bool across) {
  const uint i = gl_LocalInvocationID.x;
  fft_lane = across ? i / TUFF_COLUMNS : i % TUFF_LANES;
  fft_line = across ? i % TUFF_COLUMNS : i / TUFF_LANES;
  const uint column = tuff_group() * TUFF_COLUMNS + fft_line;
  fft_exists = column < push.lanes;
  fft_find(min(column, push.lanes - 1));
}
#endif

TUFF_BODY

void main() {
#if TUFF_LOAD == 2 || TUFF_LOAD >= 5
  fft_input_step = STRIDE(4);
#else
  fft_input_step = STRIDE(0);
#endif
  fft_output_step = STRIDE(2);
#if TUFF_LANES
  fft_transform();
#else
  const uint lanes = gl_WorkGroupSize.x;
  uint i = tuff_group() * (lanes * RUN) + gl_LocalInvocationID.x;
  for (uint step = 0; step < RUN && i < push.lanes; ++step, i += lanes) {
    fft_find(i);
    fft_transform();
  }
#endif
}
