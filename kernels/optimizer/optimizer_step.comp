// A step of an optimiser for a tensor or a list of them; tuff.h has the formulas. A lane reads a block of each operand,
// computes its step and writes what has changed; then it takes its next one (tensors.glsl). LAMB takes two passes, because
// the length of a step depends on the whole tensor: the first updates m and v, and sums the squares of w and u; the second
// computes u again from them.
//
//# TUFF_TYPE : 1..3 : of the parameters, as in tuff.h
//# TUFF_GRADIENT_TYPE : 1..3 : of the gradients
//# TUFF_ALGORITHM : 0..3 : as in tuff.h
//# TUFF_PASS : 0..2 : 0: all at once; LAMB: 1: m, v and sums; 2: parameters
//# TUFF_MASTER : 0|1 : 1: steps are made on f32 copies of the parameters
//# TUFF_MOMENTUM : 0..2 : SGD: 0: none; 1: with momentum; 2: Nesterov's
//# TUFF_DECAY : 0|1 : 1: weights decay
//# TUFF_STATE : 0|1 : 1: optimizer_state.comp has computed the numbers that change from step to step
#include "kernels/elementwise/blocks.glsl"
#include "kernels/elementwise/math.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(8)
  uint n, groups, run;
  uint place;  // LAMB: of the dispatch's first tensor in the ratios
  // Without TUFF_STATE: gradients are multiplied by scale; correction1 is 1 / (1 - beta1^t), correction2 is
  // 1 / sqrt(1 - beta2^t).
  float scale, rate, correction1, correction2;
  float momentum;  // 1 - beta1 for others than SGD
  float beta2, rest2;  // rest2 is 1 - beta2
  float epsilon, decay;
} push;

// Parameters and masters are read and written by one slot each: a block is read by the lane that writes it, before.
#if TUFF_MASTER
TUFF_BLOCKS_READ_BACK(4, W, TUFF_F32)
TUFF_BLOCKS_WRITE(4, Master, TUFF_F32)
#else
TUFF_BLOCKS_READ_BACK(0, W, TUFF_TYPE)
#endif
TUFF_BLOCKS_WRITE(0, P, TUFF_TYPE)
#define TUFF_GRADIENTS (TUFF_PASS != 2)
#define TUFF_FIRST (TUFF_ALGORITHM != 0 || TUFF_MOMENTUM != 0)
#define TUFF_SECOND (TUFF_ALGORITHM != 0)
#if TUFF_GRADIENTS
TUFF_BLOCKS_READ(1, G, TUFF_GRADIENT_TYPE)
#endif
#if TUFF_FIRST
TUFF_BLOCKS_READ_BACK(2, M, TUFF_F32)
TUFF_BLOCKS_WRITE(2, NextM, TUFF_F32)
#endif
#if TUFF_SECOND
TUFF_BLOCKS_READ_BACK(3, V, TUFF_F32)
TUFF_BLOCKS_WRITE(3, NextV, TUFF_F32)
#endif
#define TUFF_TABLE_SLOT 5
#include "kernels/optimizer/tensors.glsl"
#if TUFF_STATE
TUFF_READ(6, State, uint, 4)  // scale, rate, correction1 and correction2, and whether to skip the step
#endif
#include "kernels/optimizer/squares.glsl"
#if TUFF_PASS == 1
#include "kernels/common/lanes.glsl"
TUFF_WRITE(7, Sums, float, 4)  // six for each workgroup: those of w, then those of u
#elif TUFF_PASS == 2
TUFF_READ(7, Ratios, float, 4)  // |w| / |u| of each tensor
#endif

float scale, rate, correction1, correction2, ratio = 1.0;
#if TUFF_PASS == 1
Squares of_weights, of_updates;
#endif

// Adam's direction.
vec4 direction(vec4 m, vec4 v) {
  return tuff_divide(m * correction1, tuff_sqrt(v) * correction2 + push.epsilon);
}

// The new w, and the new m and v.
vec4 stepped(vec4 w, vec4 g, inout vec4 m, inout vec4 v) {
  g *= scale;
#if TUFF_DECAY && TUFF_ALGORITHM <= 1
  g += push.decay * w;
#endif
#if TUFF_ALGORITHM == 0
#if TUFF_MOMENTUM != 0
  m = push.momentum * m + g;
  g = TUFF_MOMENTUM == 2 ? g + push.momentum * m : m;
#endif
  return w - rate * g;
#else
#if TUFF_PASS != 2
  m += push.momentum * (g - m);
  v = push.beta2 * v + push.rest2 * (g * g);
#endif
  vec4 u = direction(m, v);
#if TUFF_ALGORITHM == 2 && TUFF_DECAY
  w *= 1.0 - rate * push.decay;
#elif TUFF_ALGORITHM == 3 && TUFF_DECAY
  u += push.decay * w;
#endif
#if TUFF_PASS == 1
  add_squares(of_weights, w);
  add_squares(of_updates, u);
#endif
  return w - (rate * ratio) * u;
#endif
}

// What is not read counts as zeros.
#if TUFF_GRADIENTS
#define TUFF_LOAD_G(load, i) G##load(i)
#else
#define TUFF_LOAD_G(load, i) zero
#endif
#if TUFF_FIRST
#define TUFF_LOAD_M(load, i) M##load(i)
#else
#define TUFF_LOAD_M(load, i) zero
#endif
#if TUFF_SECOND
#define TUFF_LOAD_V(load, i) V##load(i)
#else
#define TUFF_LOAD_V(load, i) zero
#endif

void step_block(uint i) {
  const TuffBlock zero = tuff_block(0.0);
  TuffBlock w = W_load_block(i), g = TUFF_LOAD_G(_load_block, i), m = TUFF_LOAD_M(_load_block, i),
            v = TUFF_LOAD_V(_load_block, i);
  [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) w.part[p] = stepped(w.part[p], g.part[p], m.part[p], v.part[p]);
#if TUFF_FIRST && TUFF_PASS != 2
  NextM_store_block(i, m);
#endif
#if TUFF_SECOND && TUFF_PASS != 2
  NextV_store_block(i, v);
#endif
#if TUFF_PASS != 1
#if TUFF_MASTER
  Master_store_block(i, w);
#endif
  P_store_block(i, w);
#endif
}

void step_element(uint i) {
  const float zero = 0.0;
  // The other places are zeros, which add nothing to sums.
  vec4 m = vec4(TUFF_LOAD_M(_load, i), 0.0, 0.0, 0.0), v = vec4(TUFF_LOAD_V(_load, i), 0.0, 0.0, 0.0);
  const vec4 w = stepped(vec4(W_load(i), 0.0, 0.0, 0.0), vec4(TUFF_LOAD_G(_load, i), 0.0, 0.0, 0.0), m, v);
#if TUFF_FIRST && TUFF_PASS != 2
  NextM_store(i, m.x);
#endif
#if TUFF_SECOND && TUFF_PASS != 2
  NextV_store(i, v.x);
#endif
#if TUFF_PASS != 1
#if TUFF_MASTER
  Master_store(i, w.x);
#endif
  P_store(i, w.x);
#endif
}

void main() {
  const uint group = tuff_group(), lanes = gl_WorkGroupSize.x;
  if (group >= push.groups) return;
#if TUFF_STATE
  if (TUFF_AT(State, 4) != 0) return;
  scale = uintBitsToFloat(TUFF_AT(State, 0));
  rate = uintBitsToFloat(TUFF_AT(State, 1));
  correction1 = uintBitsToFloat(TUFF_AT(State, 2));
  correction2 = uintBitsToFloat(TUFF_AT(State, 3));
#else
  scale = push.scale, rate = push.rate, correction1 = push.correction1, correction2 = push.correction2;
#endif
  const Share share = share_of(group);
  TUFF_TAKE(share.tensor)
#if TUFF_PASS == 1
  of_weights = no_squares();
  of_updates = no_squares();
  const uint lane = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
#else
  const uint lane = gl_LocalInvocationID.x;
#endif
#if TUFF_PASS == 2
  ratio = TUFF_AT(Ratios, push.place + share.tensor);
#endif
  const uint blocks = share.elements / TUFF_ELEMENTS;
  // Steps in which every lane has a block are counted, because loops in which lanes differ are slow on CPU devices.
  const uint whole = min(push.run, (max(blocks, share.first) - share.first) / lanes);
  uint i = share.first + lane;
#if TUFF_PASS == 1
  // Sums of 32 blocks are added to those before, so that chains of additions stay short.
  Squares all_weights = no_squares(), all_updates = no_squares();
#endif
  [[dont_unroll]] for (uint step = 0; step < whole; ++step, i += lanes) {
    step_block(i);
#if TUFF_PASS == 1
    if ((step & 31u) == 31u) {
      add_squares(all_weights, of_weights);
      add_squares(all_updates, of_updates);
      of_weights = no_squares();
      of_updates = no_squares();
    }
#endif
  }
  if (whole < push.run && i < blocks) step_block(i);
  if (share.group == share.last) {
    [[dont_unroll]] for (uint rest = TUFF_ELEMENTS * blocks + lane; rest < share.elements; rest += lanes) {
      step_element(rest);
    }
  }
#if TUFF_PASS == 1
  add_squares(all_weights, of_weights);
  add_squares(all_updates, of_updates);
  const float sums[6] = float[6](tree_sum(sum4(all_weights.small)), tree_sum(sum4(all_weights.middle)),
                                 tree_sum(sum4(all_weights.large)), tree_sum(sum4(all_updates.small)),
                                 tree_sum(sum4(all_updates.middle)), tree_sum(sum4(all_updates.large)));
  if (lane == 0) {
    [[unroll]] for (uint s = 0; s < 6; ++s) TUFF_AT(Sums, 6 * group + s) = sums[s];
  }
#endif
}
