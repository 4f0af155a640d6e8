// The cells of recurrent networks: what becomes of the sums of a step, for four neighbouring units at a time.
//# TUFF_CELL : 0..3 : TUFF_RNN_CELL_*
//# TUFF_ONNX : 0|1 : 1: gates are in ONNX's order
//# TUFF_CLIP : 0|1 : 1: sums are limited
#include "kernels/elementwise/math.glsl"

// Places of the gates in weights, biases and sums. LSTM: input, forget, cell, output; GRU: reset, update, new.
#if TUFF_CELL == 0
#define GATES 4
const uint INPUT = 0, FORGET = TUFF_ONNX != 0 ? 2 : 1, CELL = TUFF_ONNX != 0 ? 3 : 2, OUTPUT = TUFF_ONNX != 0 ? 1 : 3;
#elif TUFF_CELL == 1
#define GATES 3
const uint RESET = TUFF_ONNX != 0 ? 1 : 0, UPDATE = TUFF_ONNX != 0 ? 0 : 1, NEW = 2;
#else
#define GATES 1
#endif

// A NaN stays one.
vec4 limited(vec4 sum, float clip) {
#if TUFF_CLIP
  sum = mix(sum, vec4(clip), greaterThan(sum, vec4(clip)));
  sum = mix(sum, vec4(-clip), lessThan(sum, vec4(-clip)));
#endif
  return sum;
}

// (1 - z) n + z h
vec4 updated(vec4 z, vec4 n, vec4 h) { return (1.0 - z) * n + z * h; }
