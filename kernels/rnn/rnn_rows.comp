// Several steps of a recurrent layer: a workgroup computes all units of a few sequences in one direction from step to
// step, and waits for no other workgroup. h is in shared memory, once for reading and once for writing:
//
//   h(k) of a sequence  x  weights [unit][gate][k], which an invocation keeps in variables for all steps
//
// An invocation has UNITS neighbouring units, which buffers have as a vector. For CPU devices: their compilers keep
// variables on the stack, as vectors of a subgroup, which take a fraction of the time of a load from a buffer: that is one
// load for each lane. The lanes read h(k) of 4 * LANES k and hand them to each other.
//
//# TUFF_ROWS : 1..64 : sequences of a workgroup
//# TUFF_LANES : 1..64 : invocations of a subgroup
//# TUFF_SUBGROUPS : 1..64 : subgroups of a workgroup
//# TUFF_UNITS : 1|2|4 : units of an invocation, which divide hidden
//# TUFF_WIDTH : 4.. : hidden, rounded up to a multiple of 4
//# TUFF_Y_VECTORS : 0|1 : 1: slot 6 is f32, in vectors too
#include "kernels/common/types.glsl"
#include "kernels/rnn/rnn_cells.glsl"
#include "kernels/common/pointer.glsl"

layout(local_size_x = TUFF_LANES * TUFF_SUBGROUPS) in;

// Counts are of vectors of UNITS numbers; those of y only with TUFF_Y_VECTORS.
layout(push_constant, std430) uniform Push {
  TUFF_BASES(7)
  uint y_at[2], y_batch, y_step;  // the first step's first sequence of each direction; the next sequence and step in time
  uint x_at[2], x_batch, x_step;  // the same for the products of the input
  uint t[2];                      // the first step of each direction
  uint backwards;                 // a bit for each direction that goes back in time
  uint directions, batch, hidden, steps;  // hidden: in numbers
  float clip;
} push;

#define RNN_BYTES (4 * TUFF_UNITS)
#if TUFF_UNITS == 4
#define RNN_VECTOR vec4
vec4 spread(vec4 v) { return v; }
vec4 narrowed(vec4 v) { return v; }
#elif TUFF_UNITS == 2
#define RNN_VECTOR vec2
vec4 spread(vec2 v) { return vec4(v, 0, 0); }
vec2 narrowed(vec4 v) { return v.xy; }
#else
#define RNN_VECTOR float
vec4 spread(float v) { return vec4(v, 0, 0, 0); }
float narrowed(vec4 v) { return v.x; }
#endif
#if TUFF_Y_VECTORS
#define Y_STORED RNN_VECTOR
#define Y_BYTES RNN_BYTES
#else
#define Y_STORED TUFF_STORED(TUFF_TYPE)
#define Y_BYTES TUFF_BYTES(TUFF_TYPE)
#endif
#include "kernels/rnn/rnn_operands.glsl"
TUFF_READ(1, R, vec4, 16)

#define BLOCKS (TUFF_WIDTH / 4)
#define THREADS (TUFF_LANES * TUFF_SUBGROUPS)
//# constant SHARED_NUMBERS : of h in shared memory
const uint SHARED_NUMBERS = 2 * TUFF_ROWS * TUFF_WIDTH;
shared vec4 numbers[SHARED_NUMBERS / 4];
#define H(half, row, block) numbers[((half) * TUFF_ROWS + (row)) * BLOCKS + (block)]

// The UNITS numbers of h from unit j on.
vec4 units_of(uint part, uint row, uint j) {
#if TUFF_UNITS == 4
  return H(part, row, j / 4);
#else
  const vec4 four = H(part, row, j / 4);
  vec4 h = vec4(0);
  [[unroll]] for (uint u = 0; u < TUFF_UNITS; ++u) h[u] = four[j % 4 + u];
  return h;
#endif
}
void keep(uint part, uint row, uint j, vec4 h) {
#if TUFF_UNITS == 4
  H(part, row, j / 4) = h;
#else
  [[unroll]] for (uint u = 0; u < TUFF_UNITS; ++u) H(part, row, j / 4)[j % 4 + u] = h[u];
#endif
}

void main() {
  const uint group = tuff_group(), row_blocks = (push.batch + TUFF_ROWS - 1) / TUFF_ROWS;
  if (group >= push.directions * row_blocks) return;
  const uint direction = group / row_blocks, first = (group - direction * row_blocks) * TUFF_ROWS;
  const uint lane = gl_SubgroupInvocationID, index = gl_SubgroupID * TUFF_LANES + lane;
  const uint j = index * TUFF_UNITS, vectors = push.hidden / TUFF_UNITS, rows = min(push.batch - first, TUFF_ROWS);
  const bool has = j < push.hidden;
  const uint at = (direction * push.batch + first) * vectors + index, at_c = push.directions * push.batch * vectors + at;
  const bool back = (push.backwards >> direction & 1u) != 0u;
  // Beyond hidden, weights and h are 0.
  [[dont_unroll]] for (uint i = index; i < SHARED_NUMBERS / 4; i += THREADS) numbers[i] = vec4(0);
  vec4 w[TUFF_UNITS][GATES][BLOCKS];
  TUFF_POINTER(R, weights, direction * (TUFF_UNITS * GATES * BLOCKS * THREADS));
  [[unroll]] for (uint u = 0; u < TUFF_UNITS; ++u) {
    [[unroll]] for (uint gate = 0; gate < GATES; ++gate) {
      [[unroll]] for (uint k = 0; k < BLOCKS; ++k) {
        w[u][gate][k] = TUFF_FROM(R, weights, ((u * GATES + gate) * BLOCKS + k) * THREADS + index);
      }
    }
  }
  vec4 peepholes[3] = vec4[3](vec4(0), vec4(0), vec4(0)), bias[BIAS_ROWS];
#if TUFF_PEEPHOLES
  [[unroll]] for (uint i = 0; i < 3; ++i) peepholes[i] = peephole(direction, i, j, has ? TUFF_UNITS : 0);
#endif
  [[unroll]] for (uint i = 0; i < BIAS_ROWS; ++i) {
    bias[i] = vec4(0);
#if TUFF_BIAS
    if (has) bias[i] = spread(TUFF_AT(Bias, (direction * BIAS_ROWS + i) * vectors + index));
#endif
  }
  barrier();
  if (has) {
    [[dont_unroll]] for (uint r = 0; r < rows; ++r) keep(0, r, j, spread(TUFF_AT(State, at + r * vectors)));
  }
  barrier();
  uint half_now = 0;
  [[dont_unroll]] for (uint s = 0; s < push.steps; ++s) {
    const uint t = back ? push.t[direction] - s : push.t[direction] + s;
    const uint turn = back ? 0u - s : s;
    // All lanes take every turn, as they read for each other.
    [[dont_unroll]] for (uint r = 0; r < rows; ++r) {
      float sums[TUFF_UNITS][GATES];
      [[unroll]] for (uint u = 0; u < TUFF_UNITS; ++u) {
        [[unroll]] for (uint gate = 0; gate < GATES; ++gate) sums[u][gate] = 0;
      }
      vec4 read = vec4(0);
      [[unroll]] for (uint k = 0; k < BLOCKS; ++k) {
        if (k % TUFF_LANES == 0) read = H(half_now, r, min(k + lane, BLOCKS - 1));
        [[unroll]] for (uint e = 0; e < 4; ++e) {
          const float factor = subgroupShuffle(read[e], k % TUFF_LANES);
          [[unroll]] for (uint u = 0; u < TUFF_UNITS; ++u) {
            [[unroll]] for (uint gate = 0; gate < GATES; ++gate) {
              sums[u][gate] = TUFF_FMA(w[u][gate][k][e], factor, sums[u][gate]);
            }
          }
        }
      }
      if (has) {
        const uint b = first + r;
        vec4 h = units_of(half_now, r, j);
#if TUFF_LENGTHS
        const bool runs = int(t) < TUFF_AT(Lengths, b);
#else
        const bool runs = true;
#endif
        if (runs) {
          Sums of;
          const uint x = push.x_at[direction] + b * push.x_batch + turn * push.x_step + index;
          [[unroll]] for (uint gate = 0; gate < GATES; ++gate) {
            of.gate[gate] = spread(TUFF_AT(X, x + gate * vectors)) + bias[gate];
          }
          of.inner = vec4(0);
          [[unroll]] for (uint u = 0; u < TUFF_UNITS; ++u) {
#if TUFF_CELL == 1
            of.gate[RESET][u] += sums[u][RESET];
            of.gate[UPDATE][u] += sums[u][UPDATE];
            of.inner[u] = sums[u][NEW] + bias[BIAS_ROWS - 1][u];
#else
            [[unroll]] for (uint gate = 0; gate < GATES; ++gate) of.gate[gate][u] += sums[u][gate];
#endif
          }
          vec4 c = vec4(0);
#if TUFF_CELL == 0
          c = spread(TUFF_AT(State, at_c + r * vectors));
#endif
          h = stepped(of, peepholes, push.clip, h, c);
#if TUFF_CELL == 0
          TUFF_AT(State, at_c + r * vectors) = narrowed(c);
#endif
        }
        keep(1 - half_now, r, j, h);
#if TUFF_OUTPUT
        const uint y = push.y_at[direction] + b * push.y_batch + turn * push.y_step;
#if TUFF_Y_VECTORS
        TUFF_AT(Y, y + index) = narrowed(runs ? h : vec4(0));
#else
        [[unroll]] for (uint u = 0; u < TUFF_UNITS; ++u) {
          TUFF_AT(Y, y + j + u) = TUFF_ROUNDED(TUFF_TYPE, runs ? h[u] : 0.0);
        }
#endif
#endif
      }
    }
    barrier();
    half_now = 1 - half_now;
  }
  if (has) {
    [[dont_unroll]] for (uint r = 0; r < rows; ++r) TUFF_AT(State, at + r * vectors) = narrowed(units_of(half_now, r, j));
  }
}
