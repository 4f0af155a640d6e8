// What dct_before.comp and dct_after.comp share. Between them a Fourier transform turns the numbers that one writes into those
// that the other reads, in dense scratch memory. For a line x of n numbers, DCTs are (SciPy's and FFTW's definitions)
//
//   FORM   Fourier transform                 before                                     after
//   0  I   complex, of N / 2                 x mirrored, N real numbers as pairs        the real parts of the N numbers' transform
//   1  II  real, of n (Makhoul 1980)         x[0], x[2], …, and x[1], x[3], … backwards 2 Re and 2 Im of V[k] exp(-pi i k / 2n)
//   2  III to real, of n: II backwards       (x[k] - i x[n - k]) exp(pi i k / 2n)       numbers in the order of x again
//   3  IV  complex, of n / 2, for n even     (x[2j] + i x[n - 1 - 2j]) exp(-pi i j / n) 2 Z[k] exp(-pi i (4k + 1) / 4n)
//   4  IV  complex, of n, for n odd          x[j] exp(-pi i j / 2n)                     the real parts of the same, with signs
//
// with N = 2 (n - 1), and x mirrored x[0 .. n - 1], x[n - 2 .. 1]. DSTs are DCTs of numbers whose order or every other sign is changed, before and after; that of kind I mirrors with another sign.
//# TUFF_FORM : 0..4 : see above
//# TUFF_SINE : 0|1 : a DST
//# TUFF_ENDS : 0|1 : numbers at the ends of a line are weighted, so that the transform is orthogonal
//# TUFF_RUN : 0.. : numbers, or pairs of them, that a lane has one after another; 0: push.run says
#include "kernels/common/division.glsl"

layout(local_size_x_id = 0) in;
// For lanes: the number of axes, and which of them is along a line (8: none). Constants, so that loops over axes
// are unrolled.
layout(constant_id = 1) const uint RANK = 1;
layout(constant_id = 2) const uint LINE = 0;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(3)
  uint lanes, run;
  uint n;         // numbers of a line
  uint mirrored;  // N of form 0
  uint span;      // of roots
  float quarter;  // 4 / span
  uint angle[2];  // pi / 2 / span: as the sum of two floats, or a double
  uint scale[2];  // of results: a float or a double
} push;

#include "kernels/fft/fft_roots.glsl"

#if TUFF_VALUE_TYPE == 4
#define ROOT_OF_2 1.41421356237309504880lf
#define ROOT_OF_HALF 0.70710678118654752440lf
#define SCALE packDouble2x32(uvec2(push.scale[0], push.scale[1]))
#else
#define ROOT_OF_2 1.41421356237309504880
#define ROOT_OF_HALF 0.70710678118654752440
#define SCALE uintBitsToFloat(push.scale[0])
#endif

// Strides are two words each: those along a line, of the operand and of scratch memory; then for each axis of lanes, innermost
// first, its size, the multiplier and the shift that divide by it, and its two strides. Those of the line are not used.
TUFF_READ(2, Table, uint, 4)

uint dct_at;  // of the lane along the line
TUFF_INDEX dct_operand, dct_dense;  // where the line is
#define OPERAND(i) (dct_operand + TUFF_INDEX(i) * dct_operand_step)
#define DENSE(i) (dct_dense + TUFF_INDEX(i) * dct_dense_step)

// The table, which is read once for all of a lane's numbers.
TUFF_INDEX dct_operand_step, dct_dense_step, dct_operand_strides[8], dct_dense_strides[8];
uint dct_sizes[8], dct_multipliers[8], dct_shifts[8];

void dct_read() {
  dct_operand_step = STRIDE(0), dct_dense_step = STRIDE(2);
  for (uint d = 0; d < RANK; ++d) {
    const uint word = 4 + 7 * d;
    dct_sizes[d] = TUFF_AT(Table, word), dct_multipliers[d] = TUFF_AT(Table, word + 1);
    dct_shifts[d] = TUFF_AT(Table, word + 2);
    dct_operand_strides[d] = STRIDE(word + 3), dct_dense_strides[d] = STRIDE(word + 5);
  }
}

NUMBER dct_root(uint m) { return fft_root(m, push.span, push.quarter, ANGLE(push.angle)); }

void dct_find(uint lane) {
  dct_operand = 0, dct_dense = 0, dct_at = 0;
  for (uint d = 0; d < RANK; ++d) {
    uint along = lane;
    if (d + 1 < RANK) {
      lane = tuff_divide(lane, dct_multipliers[d], dct_shifts[d]);
      along -= lane * dct_sizes[d];
    }
    if (d == LINE) {
      dct_at = along;
    } else {
      dct_operand += TUFF_INDEX(along) * dct_operand_strides[d];
      dct_dense += TUFF_INDEX(along) * dct_dense_strides[d];
    }
  }
}

void dct_lane();

void main() {
  const uint lanes = gl_WorkGroupSize.x;
  dct_read();
  uint i = tuff_group() * (lanes * RUN) + gl_LocalInvocationID.x;
  for (uint step = 0; step < RUN && i < push.lanes; ++step, i += lanes) {
    dct_find(i);
    dct_lane();
  }
}
