// What becomes of the sums of a step, for four neighbouring units of a sequence at a time, and how kernels of recurrent
// layers load four numbers.
//# TUFF_CELL : 0..3 : TUFF_RNN_CELL_*
//# TUFF_AFTER : 0|1 : GRU: 1: the reset gate multiplies the product; the bias has a row more, that of this product
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
#define BIAS_ROWS (GATES + TUFF_AFTER)

// Four elements, of which the last ones may be missing.
#define LOAD4(result, name, at, count)                    \
  vec4 result = vec4(0);                                  \
  [[unroll]] for (uint e = 0; e < 4; ++e) {               \
    if (e < (count)) result[e] = TUFF_AT(name, (at) + e); \
  }

// A NaN stays one.
vec4 limited(vec4 sum, float clip) {
#if TUFF_CLIP
  sum = mix(sum, vec4(clip), greaterThan(sum, vec4(clip)));
  sum = mix(sum, vec4(-clip), lessThan(sum, vec4(-clip)));
#endif
  return sum;
}

// The sums of a step, with biases. In a GRU, `inner` is what the reset gate multiplies, or 0; gate NEW has the rest.
struct Sums {
  vec4 gate[GATES];
  vec4 inner;
};

// (1 - z) n + z h
vec4 updated(vec4 z, vec4 n, vec4 h) { return (1.0 - z) * n + z * h; }

// h after the step, from the h before, c (which becomes that after the step) and the peepholes.
vec4 stepped(Sums sums, vec4 peepholes[3], float clip, vec4 h, inout vec4 c) {
#if TUFF_CELL == 0
  const vec4 i = tuff_sigmoid(limited(sums.gate[INPUT] + peepholes[0] * c, clip));
  const vec4 f = tuff_sigmoid(limited(sums.gate[FORGET] + peepholes[2] * c, clip));
  const vec4 g = tuff_tanh(limited(sums.gate[CELL], clip));
  c = f * c + i * g;
  return tuff_sigmoid(limited(sums.gate[OUTPUT] + peepholes[1] * c, clip)) * tuff_tanh(c);
#elif TUFF_CELL == 1
  const vec4 r = tuff_sigmoid(limited(sums.gate[RESET], clip)), z = tuff_sigmoid(limited(sums.gate[UPDATE], clip));
  return updated(z, tuff_tanh(limited(sums.gate[NEW] + r * sums.inner, clip)), h);
#elif TUFF_CELL == 2
  return tuff_tanh(limited(sums.gate[0], clip));
#else
  return tuff_relu(limited(sums.gate[0], clip));
#endif
}
