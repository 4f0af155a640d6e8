// A convolution's epilogue: output = activation(sum + bias + residual), rounded to TYPE.
//
// With SLICED the taps are cut into parts (split-K). Each part's sums are stored in f32 (part-major, each laid out like
// the output), and a second pass adds them up. If the sums of all parts would take too much memory, several dispatches
// compute some parts each: the first stores the sums (SLICED = 1), the others add to them (SLICED = 2).
//
//# TYPE : 1..3 : TUFF_* type of all operands
//# SLICED : 0..2 : not 0: see above; BIAS, RESIDUAL and ACTIVATION are then left to the second pass
//# BIAS : 0|1 : 1: slot 3 has one number for each filter
//# RESIDUAL : 0|1 : 1: slot 4 has a number to add to each output
//# group store : ACTIVATION BIAS RESIDUAL TUFF_EXACT_ARITHMETIC : the epilogue
#include "kernels/common/pointer.glsl"
#if SLICED == 2
TUFF_READ_WRITE(2, Output, float, 4)
#elif SLICED
TUFF_WRITE(2, Output, float, 4)
#else
TUFF_WRITE(2, Output, TUFF_STORED(TYPE), TUFF_BYTES(TYPE))
#if BIAS
TUFF_READ(3, Bias, TUFF_STORED(TYPE), TUFF_BYTES(TYPE))
#endif
#if RESIDUAL
TUFF_READ(4, Residual, TUFF_STORED(TYPE), TUFF_BYTES(TYPE))
#endif
#endif

#define NUMBER float
#define C_TYPE TYPE
#include "kernels/gemm/common/gemm_activation.glsl"

// The bias of a filter, 0 without BIAS.
float bias_of(uint filter_index) {
#if BIAS && !SLICED
  return TUFF_LOADED(TYPE, TUFF_AT(Bias, filter_index));
#else
  return 0.0;
#endif
}

// Stores a sum after the epilogue. output is a TUFF_POINTER.
#if SLICED == 2
#define CONV_STORE(output, at, sum, bias) TUFF_FROM(Output, output, at) += sum
#elif SLICED
#define CONV_STORE(output, at, sum, bias) TUFF_FROM(Output, output, at) = sum
#elif RESIDUAL
#define CONV_STORE(output, at, sum, bias)    \
  TUFF_FROM(Output, output, at) = TUFF_ROUNDED( \
      TYPE, gemm_activation((sum) + (bias) + TUFF_LOADED(TYPE, TUFF_AT(Residual, at))))
#elif BIAS
#define CONV_STORE(output, at, sum, bias) \
  TUFF_FROM(Output, output, at) = TUFF_ROUNDED(TYPE, gemm_activation((sum) + (bias)))
#else
#define CONV_STORE(output, at, sum, bias) TUFF_FROM(Output, output, at) = TUFF_ROUNDED(TYPE, gemm_activation(sum))
#endif
