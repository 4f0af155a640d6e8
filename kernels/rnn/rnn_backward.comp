// One step of a recurrent layer that keeps what its gradients need, and the gradients of one step: an invocation computes
// a unit of one sequence and direction. All numbers are in f32, in one buffer:
//
//   sums     [direction][step][sequence][gate][hidden]  products of the input; forwards they become the gates' sums, and
//            backwards the gradients by them. If a GRU's reset gate multiplies a product (AFTER), gate NEW has W x + b
//            forwards, and backwards the gradient by the product
//   extra    [direction][step][sequence][hidden]        GRU: what the reset gate multiplies (AFTER), which becomes the
//            gradient by gate NEW's sum; or r * h. LSTM with a projection: what it multiplies
//   h, c     [direction][steps + 1][sequence][width or hidden]  before and after each step, in the order of time
//   dy       [direction][step][sequence][width]         the gradient by h that y adds; with a projection, backwards: all of it
//   dh, dc   [direction][sequence][width or hidden]     the gradients by h and c after the step, which become those before it
//   product  [direction][sequence][…]                   of the GEMM before this kernel
//   dp       [direction][sequence][3][hidden]           sums so far of the gradients by peepholes
//
// GEMM adds the products of R with the gradients by the sums to dh.
//
// Forwards, stage 0 is a step; 1 and 2 are the parts of a GRU's step before and after its second product; 3 keeps h of an
// LSTM with a projection where the sequence has ended. Backwards, 4 is the gradient by what a projection gives; 5 the step,
// or of a GRU whose reset gate multiplies h what precedes its product; 6 what follows.
//
//# TUFF_STAGE : 0..6 : see above
//# TUFF_PROJECTED : 0|1 : LSTM: 1: h is a product
//# TUFF_BIAS : 0|1 : 1: there is a bias
//# TUFF_PEEPHOLES : 0|1 : 1: there are peepholes
//# TUFF_SLOPES : 0|1 : 1: sums gradients by peepholes
//# TUFF_LENGTHS : 0|1 : 1: slot 1 has the lengths of sequences
//# TUFF_KEEPS : 0|1 : 1: GEMM adds to dh; 0: it overwrites it
#include "kernels/common/types.glsl"
#include "kernels/rnn/rnn_cells.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  uint sums, extra, h, c, dy, dh, dc, product, dp, bias, peepholes;  // the first number of each
  uint t[2];       // the step of each direction
  uint backwards;  // a bit for each direction that goes back in time
  uint rows, steps, batch, hidden, width;
  uint skipped;    // so many sequences, the first ones, belong to another part of the batch: as if they had ended
  float clip;
} push;

TUFF_READ_WRITE(0, S, float, 4)
#if TUFF_LENGTHS
TUFF_READ(1, Lengths, int, 4)
#endif
#define AT(i) TUFF_AT(S, i)

float sigma(float sum) { return tuff_sigmoid(limited(vec4(sum), push.clip)).x; }
float hyperbolic(float sum) { return tuff_tanh(limited(vec4(sum), push.clip)).x; }
// A gradient by a gate, times the slope of what limits its sum: none beyond the limit.
float within(float sum, float slope) {
#if TUFF_CLIP
  if (abs(sum) > push.clip) return 0;
#endif
  return slope;
}
float slope_of_sigma(float sum, float value) { return within(sum, value * (1 - value)); }
float slope_of_tanh(float sum, float value) { return within(sum, 1 - value * value); }

void main() {
#if TUFF_STAGE == 3 || TUFF_STAGE == 4
  const uint units = push.width;
#else
  const uint units = push.hidden;
#endif
  const uint item = tuff_group() * gl_WorkGroupSize.x + gl_LocalInvocationID.x, row = item / units, j = item - row * units;
  if (row >= push.rows) return;
  const uint hidden = push.hidden, d = row / push.batch, b = row - d * push.batch, t = push.t[d];
  const bool back = (push.backwards >> d & 1u) != 0u;
  bool runs = b >= push.skipped;
#if TUFF_LENGTHS
  runs = runs && int(t) < TUFF_AT(Lengths, b);
#endif
  const uint here = (d * push.steps + t) * push.batch + b;
  const uint before = (d * (push.steps + 1) + t + (back ? 1 : 0)) * push.batch + b;
  const uint after = (d * (push.steps + 1) + t + (back ? 0 : 1)) * push.batch + b;
  const uint sum = push.sums + here * GATES * hidden + j, extra = push.extra + here * hidden + j;
  const uint h_before = push.h + before * push.width + j, h_after = push.h + after * push.width + j;
  const uint c_before = push.c + before * hidden + j, c_after = push.c + after * hidden + j;
  const uint dh = push.dh + row * push.width + j, dc = push.dc + row * hidden + j;
  const uint dy = push.dy + here * push.width + j, one = push.product + row * hidden + j;
  // The places of a gate's sum, and of its product in a step with `gates` of them.
#define SUM(gate) AT(sum + (gate) * hidden)
#define PRODUCT(gate, gates) AT(push.product + (row * (gates) + (gate)) * hidden + j)
#if TUFF_BIAS
#define BIAS(line) AT(push.bias + (d * BIAS_ROWS + (line)) * hidden + j)
#else
#define BIAS(line) 0.0
#endif
#if TUFF_PEEPHOLES
#define PEEPHOLE(which) AT(push.peepholes + (d * 3 + (which)) * hidden + j)
#else
#define PEEPHOLE(which) 0.0
#endif

#if TUFF_STAGE == 3
  if (!runs) AT(h_after) = AT(h_before);
#elif TUFF_STAGE == 4
  if (!runs) {
    AT(h_before) = 0;  // the gradients of r multiply it by 0, which infinities and NaN survive
    return;
  }
  AT(dy) += AT(dh);
#if TUFF_KEEPS
  AT(dh) = 0;
#endif

// Forwards.
#elif TUFF_STAGE == 0 && TUFF_CELL == 0
  if (!runs) {
    AT(c_after) = AT(c_before);
#if TUFF_PROJECTED
    AT(extra) = 0;
#else
    AT(h_after) = AT(h_before);
#endif
    return;
  }
  const float c = AT(c_before);
  float s[4];
  [[unroll]] for (uint gate = 0; gate < 4; ++gate) s[gate] = SUM(gate) + PRODUCT(gate, 4) + BIAS(gate);
  s[INPUT] += PEEPHOLE(0) * c;
  s[FORGET] += PEEPHOLE(2) * c;
  const float next = sigma(s[FORGET]) * c + sigma(s[INPUT]) * hyperbolic(s[CELL]);
  s[OUTPUT] += PEEPHOLE(1) * next;
  const float given = sigma(s[OUTPUT]) * tuff_tanh(vec4(next)).x;
  [[unroll]] for (uint gate = 0; gate < 4; ++gate) SUM(gate) = s[gate];
  AT(c_after) = next;
#if TUFF_PROJECTED
  AT(extra) = given;
#else
  AT(h_after) = given;
#endif
#elif TUFF_STAGE == 0 && TUFF_CELL == 1
  const float h = AT(h_before);
  if (!runs) {
    AT(h_after) = h;
    return;
  }
  const float r = SUM(RESET) + PRODUCT(RESET, 3) + BIAS(RESET), z = SUM(UPDATE) + PRODUCT(UPDATE, 3) + BIAS(UPDATE);
  const float n = SUM(NEW) + BIAS(NEW), inner = PRODUCT(NEW, 3) + BIAS(GATES);
  SUM(RESET) = r;
  SUM(UPDATE) = z;
  SUM(NEW) = n;
  AT(extra) = inner;
  AT(h_after) = updated(vec4(sigma(z)), vec4(hyperbolic(n + sigma(r) * inner)), vec4(h)).x;
#elif TUFF_STAGE == 0
  if (!runs) {
    AT(h_after) = AT(h_before);
    return;
  }
  const float s = SUM(0) + PRODUCT(0, 1) + BIAS(0);
  SUM(0) = s;
#if TUFF_CELL == 2
  AT(h_after) = hyperbolic(s);
#else
  AT(h_after) = tuff_relu(limited(vec4(s), push.clip)).x;
#endif
#elif TUFF_STAGE == 1
  const float r = SUM(RESET) + PRODUCT(RESET, 2) + BIAS(RESET), z = SUM(UPDATE) + PRODUCT(UPDATE, 2) + BIAS(UPDATE);
  SUM(RESET) = r;
  SUM(UPDATE) = z;
  AT(extra) = runs ? sigma(r) * AT(h_before) : 0.0;
#elif TUFF_STAGE == 2
  const float h = AT(h_before);
  if (!runs) {
    AT(h_after) = h;
    return;
  }
  const float n = SUM(NEW) + AT(one) + BIAS(NEW);
  SUM(NEW) = n;
  AT(h_after) = updated(vec4(sigma(SUM(UPDATE))), vec4(hyperbolic(n)), vec4(h)).x;

// Backwards. Where a sequence has ended, gradients pass by.
#elif TUFF_STAGE == 5
  if (!runs) {
    [[unroll]] for (uint gate = 0; gate < GATES; ++gate) SUM(gate) = 0;
#if !TUFF_PROJECTED
    AT(h_before) = 0;  // see stage 4
#endif
#if TUFF_AFTER
    AT(extra) = 0;
#endif
    return;
  }
#if TUFF_PROJECTED
  const float by_h = AT(one);
#else
  const float by_h = AT(dh) + AT(dy);
#endif
#if TUFF_CELL == 0
  const float s_i = SUM(INPUT), s_f = SUM(FORGET), s_g = SUM(CELL), s_o = SUM(OUTPUT), c = AT(c_before), next = AT(c_after);
  const float i = sigma(s_i), f = sigma(s_f), g = hyperbolic(s_g), o = sigma(s_o), of_c = tuff_tanh(vec4(next)).x;
  const float by_o = by_h * of_c * slope_of_sigma(s_o, o);
  const float by_c = AT(dc) + by_h * o * (1 - of_c * of_c) + by_o * PEEPHOLE(1);
  const float by_i = by_c * g * slope_of_sigma(s_i, i), by_f = by_c * c * slope_of_sigma(s_f, f);
  SUM(INPUT) = by_i;
  SUM(FORGET) = by_f;
  SUM(CELL) = by_c * i * slope_of_tanh(s_g, g);
  SUM(OUTPUT) = by_o;
  AT(dc) = by_c * f + by_i * PEEPHOLE(0) + by_f * PEEPHOLE(2);
#if TUFF_SLOPES
  const uint dp = push.dp + row * 3 * hidden + j;
  AT(dp) += by_i * c;
  AT(dp + hidden) += by_o * next;
  AT(dp + 2 * hidden) += by_f * c;
#endif
#if TUFF_KEEPS && !TUFF_PROJECTED
  AT(dh) = 0;
#endif
#elif TUFF_CELL == 1
  const float s_z = SUM(UPDATE), z = sigma(s_z), h = AT(h_before);
#if TUFF_AFTER
  const float s_r = SUM(RESET), r = sigma(s_r), inner = AT(extra), s_n = SUM(NEW) + r * inner;
#else
  const float s_n = SUM(NEW);
#endif
  const float n = hyperbolic(s_n), by_n = by_h * (1 - z) * slope_of_tanh(s_n, n);
  SUM(UPDATE) = by_h * (h - n) * slope_of_sigma(s_z, z);
#if TUFF_AFTER
  SUM(RESET) = by_n * inner * slope_of_sigma(s_r, r);
  SUM(NEW) = by_n * r;
  AT(extra) = by_n;
#else
  SUM(NEW) = by_n;
#endif
  AT(dh) = by_h * z;
#else
  const float s = SUM(0);
#if TUFF_CELL == 2
  SUM(0) = by_h * slope_of_tanh(s, hyperbolic(s));
#else
  SUM(0) = by_h * within(s, s > 0 ? 1.0 : s <= 0 ? 0.0 : s);
#endif
#if TUFF_KEEPS
  AT(dh) = 0;
#endif
#endif
#elif TUFF_STAGE == 6
  if (!runs) return;
  const float s_r = SUM(RESET), r = sigma(s_r), by_reset = AT(one);
  SUM(RESET) = by_reset * AT(h_before) * slope_of_sigma(s_r, r);
  AT(dh) += by_reset * r;
#endif
}
