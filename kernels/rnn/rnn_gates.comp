// One step of a recurrent layer, given the products of its weights with the input and with the state before: an
// invocation computes four neighbouring units of one sequence and direction.
//
// The state is in f32: h [direction][batch][width], c [direction][batch][hidden] for an LSTM, and what a step in two
// parts passes from one to the other, [direction][batch][hidden] each: an LSTM with a projection h before it, a GRU whose
// reset gate multiplies h that product and the update gate.
//
//# TUFF_PART : 0..2 : 0: the step; 1: what precedes its second product; 2: what follows
//# TUFF_PROJECTED : 0|1 : LSTM: 1: h is a product, which part 2 reads
#include "kernels/common/types.glsl"
#include "kernels/rnn/rnn_cells.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(7)
  TUFF_INDEX y_at[2], y_batch;  // of this step: the first sequence of each direction; the next sequence
  uint x_at[2], x_batch;        // the same for the products of the input
  uint t[2];                    // the step of each direction
  uint rows, batch, hidden, width;
  float clip;
} push;

#define RNN_VECTOR float
#define RNN_BYTES 4
#define Y_STORED TUFF_STORED(TUFF_TYPE)
#define Y_BYTES TUFF_BYTES(TUFF_TYPE)
#include "kernels/rnn/rnn_operands.glsl"
TUFF_READ(1, Product, float, 4)

vec4 state(uint at, uint count) {
  LOAD4(v, State, at, count)
  return v;
}
void keep(uint at, uint count, vec4 v) {
  [[unroll]] for (uint e = 0; e < 4; ++e) {
    if (e < count) TUFF_AT(State, at + e) = v[e];
  }
}
vec4 of_input(uint at, uint count) {
  LOAD4(v, X, at, count)
  return v;
}
vec4 of_state(uint at, uint count) {
  LOAD4(v, Product, at, count)
  return v;
}
vec4 bias(uint direction, uint row, uint j, uint count) {
#if TUFF_BIAS
  LOAD4(v, Bias, (direction * BIAS_ROWS + row) * push.hidden + j, count)
  return v;
#else
  return vec4(0);
#endif
}
void main() {
#if TUFF_PROJECTED && TUFF_PART == 2
  const uint units = push.width;
#else
  const uint units = push.hidden;
#endif
  const uint blocks = (units + 3) / 4, item = tuff_group() * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
  if (item >= push.rows * blocks) return;
  const uint row = item / blocks, j = 4 * (item - row * blocks), count = min(units - j, 4);
  const uint direction = row / push.batch, b = row - direction * push.batch;
  const uint at_h = row * push.width + j;
  const uint at_c = push.rows * push.width + row * push.hidden + j;  // of a GRU: what it passes on
  const uint passed = push.rows * push.hidden;                       // from c to the next
#if TUFF_LENGTHS
  const bool runs = int(push.t[direction]) < TUFF_AT(Lengths, b);
#else
  const bool runs = true;
#endif
  vec4 h = vec4(0);
  if (runs) {
    // A GRU's step in two parts has the sums of two gates in the first, and of one in the second.
    const uint gates = TUFF_CELL == 1 && TUFF_PART != 0 ? 2 : GATES;
    const uint x = push.x_at[direction] + b * push.x_batch + j, product = row * (gates * push.hidden) + j;
#define SUM(row)                                                                                     \
  (of_input(x + (row) * push.hidden, count) + of_state(product + (row) * push.hidden, count) + \
   bias(direction, row, j, count))
#if TUFF_PROJECTED && TUFF_PART == 2
    h = of_state(at_h, count);
#elif TUFF_CELL == 1 && TUFF_PART == 1
    h = state(at_h, count);
    keep(at_c, count, tuff_sigmoid(limited(SUM(RESET), push.clip)) * h);
    keep(at_c + passed, count, tuff_sigmoid(limited(SUM(UPDATE), push.clip)));
#elif TUFF_CELL == 1 && TUFF_PART == 2
    const vec4 sum = of_input(x + NEW * push.hidden, count) + of_state(at_h, count) + bias(direction, NEW, j, count);
    h = updated(state(at_c + passed, count), tuff_tanh(limited(sum, push.clip)), state(at_h, count));
#else
    Sums sums;
    [[unroll]] for (uint gate = 0; gate < GATES; ++gate) sums.gate[gate] = SUM(gate);
    sums.inner = vec4(0);
    vec4 peepholes[3] = vec4[3](vec4(0), vec4(0), vec4(0)), c = vec4(0);
#if TUFF_CELL == 0
    [[unroll]] for (uint which = 0; which < 3; ++which) peepholes[which] = peephole(direction, which, j, count);
    c = state(at_c, count);
#elif TUFF_CELL == 1
    sums.gate[NEW] = of_input(x + NEW * push.hidden, count) + bias(direction, NEW, j, count);
    sums.inner = of_state(product + NEW * push.hidden, count) + bias(direction, GATES, j, count);
    h = state(at_h, count);
#endif
    h = stepped(sums, peepholes, push.clip, h, c);
#if TUFF_CELL == 0
    keep(at_c, count, c);
#endif
#if TUFF_CELL == 0 && TUFF_PART == 1
    keep(at_c + passed, count, h);
#endif
#endif
#if TUFF_PART != 1
    keep(at_h, count, h);
#endif
  }
#if TUFF_OUTPUT
  const TUFF_INDEX y = push.y_at[direction] + TUFF_INDEX(b) * push.y_batch + j;
  [[unroll]] for (uint e = 0; e < 4; ++e) {
    if (e < count) TUFF_AT(Y, y + e) = TUFF_ROUNDED(TUFF_TYPE, h[e]);
  }
#endif
}
