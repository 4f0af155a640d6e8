// Several steps of a recurrent layer: a workgroup computes all units of a few sequences in one direction from step to
// step, and waits for no other workgroup. h is in shared memory, once for reading and once for writing:
//
//   h(k) of ROWS sequences, LANES at a time      x  weights [k][gate][unit], of which a lane has four neighbouring units
//
// For CPU devices: the workgroup is a subgroup, whose lanes read h(k) of LANES k and hand them to each other.
//
//# TUFF_ROWS : 1|2|4|8 : sequences of a workgroup
//# TUFF_LANES : 1..64 : invocations of a workgroup, which is one subgroup
//# TUFF_CAPACITY : 64.. : numbers for h of a sequence in shared memory: hidden, rounded up to a multiple of LANES and more
#include "kernels/common/types.glsl"
#include "kernels/rnn/rnn_cells.glsl"
#include "kernels/common/pointer.glsl"

layout(local_size_x = TUFF_LANES) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(7)
  uint y_at[2], y_batch, y_step;  // the first step's first sequence of each direction; the next sequence and step in time
  uint x_at[2], x_batch, x_step;  // the same for the products of the input
  uint t[2];                      // the first step of each direction
  uint backwards;                 // a bit for each direction that goes back in time
  uint directions, batch, hidden, steps;
  float clip;
} push;

#include "kernels/rnn/rnn_operands.glsl"
TUFF_READ(1, R, vec4, 16)

//# constant SHARED_NUMBERS : of h in shared memory
const uint SHARED_NUMBERS = 2 * TUFF_ROWS * TUFF_CAPACITY;
shared float numbers[SHARED_NUMBERS];
#define H(half, row, k) numbers[((half) * TUFF_ROWS + (row)) * TUFF_CAPACITY + (k)]

void main() {
  const uint group = tuff_group(), row_blocks = (push.batch + TUFF_ROWS - 1) / TUFF_ROWS;
  if (group >= push.directions * row_blocks) return;
  const uint direction = group / row_blocks, first = (group - direction * row_blocks) * TUFF_ROWS;
  const uint lane = gl_SubgroupInvocationID, hidden = push.hidden, rows = min(push.batch - first, TUFF_ROWS);
  const uint blocks = (hidden + 3) / 4, width = (hidden + TUFF_LANES - 1) / TUFF_LANES * TUFF_LANES;
  const uint at = (direction * push.batch + first) * hidden, at_c = push.directions * push.batch * hidden + at;
  const bool back = (push.backwards >> direction & 1u) != 0u;
  // Rows that no sequence has are computed with zeros, and not stored.
  [[unroll]] for (uint r = 0; r < TUFF_ROWS; ++r) {
    for (uint k = lane; k < width; k += TUFF_LANES) {
      const float h = r < rows && k < hidden ? TUFF_AT(State, at + r * hidden + k) : 0.0;
      H(0, r, k) = h;
      H(1, r, k) = 0.0;
    }
  }
  barrier();
  TUFF_POINTER(R, weights, direction * width * GATES * blocks);
  uint half_now = 0;
  [[dont_unroll]] for (uint s = 0; s < push.steps; ++s) {
    const uint t = back ? push.t[direction] - s : push.t[direction] + s;
    const uint turn = back ? 0u - s : s;
    // All lanes take every turn, as they read for each other.
    [[dont_unroll]] for (uint block0 = 0; block0 < blocks; block0 += TUFF_LANES) {
      const uint block = min(block0 + lane, blocks - 1), j = 4 * block;
      const uint count = block0 + lane < blocks ? min(hidden - j, 4) : 0;
      vec4 sums[TUFF_ROWS][GATES];
      [[unroll]] for (uint r = 0; r < TUFF_ROWS; ++r) {
        [[unroll]] for (uint gate = 0; gate < GATES; ++gate) sums[r][gate] = vec4(0);
      }
      uint w_at = block;
      [[dont_unroll]] for (uint k = 0; k < width; k += TUFF_LANES) {
        float h[TUFF_ROWS];
        [[unroll]] for (uint r = 0; r < TUFF_ROWS; ++r) h[r] = H(half_now, r, k + lane);
        [[unroll]] for (uint q = 0; q < TUFF_LANES; ++q) {
          vec4 w[GATES];
          [[unroll]] for (uint gate = 0; gate < GATES; ++gate) w[gate] = TUFF_FROM(R, weights, w_at + gate * blocks);
          w_at += GATES * blocks;
          [[unroll]] for (uint r = 0; r < TUFF_ROWS; ++r) {
            const vec4 factor = vec4(subgroupShuffle(h[r], q));
            [[unroll]] for (uint gate = 0; gate < GATES; ++gate) sums[r][gate] = TUFF_FMA(w[gate], factor, sums[r][gate]);
          }
        }
      }
      vec4 peepholes[3] = vec4[3](vec4(0), vec4(0), vec4(0));
#if TUFF_CELL == 0
      [[unroll]] for (uint which = 0; which < 3; ++which) peepholes[which] = peephole(direction, which, j, count);
#endif
      vec4 bias[BIAS_ROWS];
      [[unroll]] for (uint i = 0; i < BIAS_ROWS; ++i) {
#if TUFF_BIAS
        LOAD4(b, Bias, (direction * BIAS_ROWS + i) * hidden + j, count)
        bias[i] = b;
#else
        bias[i] = vec4(0);
#endif
      }
      [[unroll]] for (uint r = 0; r < TUFF_ROWS; ++r) {
        if (r < rows) {
          const uint b = first + r;
          vec4 before = vec4(0);
          [[unroll]] for (uint e = 0; e < 4; ++e) {
            if (e < count) before[e] = H(half_now, r, j + e);
          }
          vec4 h = before;
#if TUFF_LENGTHS
          const bool runs = int(t) < TUFF_AT(Lengths, b);
#else
          const bool runs = true;
#endif
          if (runs) {
            Sums of;
            const uint x = push.x_at[direction] + b * push.x_batch + turn * push.x_step + j;
            [[unroll]] for (uint gate = 0; gate < GATES; ++gate) {
              LOAD4(of_input, X, x + gate * hidden, count)
              of.gate[gate] = of_input + bias[gate];
            }
#if TUFF_CELL == 1
            of.gate[RESET] += sums[r][RESET];
            of.gate[UPDATE] += sums[r][UPDATE];
            of.inner = sums[r][NEW] + bias[BIAS_ROWS - 1];
#else
            [[unroll]] for (uint gate = 0; gate < GATES; ++gate) of.gate[gate] += sums[r][gate];
            of.inner = vec4(0);
#endif
            vec4 c = vec4(0);
#if TUFF_CELL == 0
            LOAD4(kept, State, at_c + r * hidden + j, count)
            c = kept;
#endif
            h = stepped(of, peepholes, push.clip, h, c);
#if TUFF_CELL == 0
            [[unroll]] for (uint e = 0; e < 4; ++e) {
              if (e < count) TUFF_AT(State, at_c + r * hidden + j + e) = c[e];
            }
#endif
          }
          [[unroll]] for (uint e = 0; e < 4; ++e) {
            if (e < count) H(1 - half_now, r, j + e) = h[e];
          }
#if TUFF_OUTPUT
          const uint y = push.y_at[direction] + b * push.y_batch + turn * push.y_step + j;
          [[unroll]] for (uint e = 0; e < 4; ++e) {
            if (e < count) TUFF_AT(Y, y + e) = TUFF_ROUNDED(TUFF_TYPE, runs ? h[e] : 0.0);
          }
#endif
        }
      }
    }
    barrier();
    half_now = 1 - half_now;
  }
  [[unroll]] for (uint r = 0; r < TUFF_ROWS; ++r) {
    if (r < rows) {
      for (uint k = lane; k < hidden; k += TUFF_LANES) TUFF_AT(State, at + r * hidden + k) = H(half_now, r, k);
    }
  }
}
