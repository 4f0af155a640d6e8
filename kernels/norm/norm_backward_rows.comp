// The gradients of layer and RMS norm, of rows held in registers: one read of the input and of the output's gradient, and one
// write of the input's gradient. The sums for weight and bias are kept in registers, too, while a row after the other is processed.
//
// TUFF_LANES invocations share a row, and take rows r, r + push.teams, … one after another. Lane l holds blocks l, l + LANES, …
// of W = TUFF_ELEMENTS elements, TUFF_BLOCKS of them, of each row: always the same columns. At the end it writes their sums over
// its rows: T[team * extent + column] gets those of G and of G * n, with n the normalised input.
//
//# TUFF_TYPE : types : element type of the tensors, as in tuff.h
//# TUFF_WEIGHT_TYPE : types : type of the weight
//# TUFF_CENTRED : 0|1 : 1: the mean is subtracted; 0: RMS norm
//# TUFF_WEIGHT : 0|1 : 1: there is a weight
//# TUFF_INPUT : 0|1 : 1: the gradient by the input is wanted, in Y, which may be X or G
//# TUFF_SUMS : 0|1 : 1: sums of columns are wanted, in T
//# TUFF_BLOCKS : 1..8|12|16|24 : blocks of a lane; TUFF_LANES * TUFF_BLOCKS * W >= extent, which is a multiple of W
#define TUFF_VALUE_OF TUFF_TYPE
#include "kernels/elementwise/blocks.glsl"
#include "kernels/elementwise/math.glsl"
#include "kernels/norm/norm.def"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(5)
  uint rows;
  uint extent;  // elements of a row
  uint teams;   // of TUFF_LANES invocations
  uint each;    // rows of a team
  float epsilon;
} push;

TUFF_BLOCKS_READ(0, X, TUFF_TYPE)
TUFF_BLOCKS_READ(1, G, TUFF_TYPE)
#if TUFF_WEIGHT
TUFF_BLOCKS_READ(2, W, TUFF_WEIGHT_TYPE)
#endif
TUFF_BLOCKS_WRITE(3, Y, TUFF_TYPE)
TUFF_WRITE(4, T, vec2, 8)

#include "kernels/common/lanes.glsl"
#include "kernels/norm/factors.glsl"

#define TUFF_PLACE(b) (lane + (b) * TUFF_LANES)
#define TUFF_PRESENT(b) (TUFF_PLACE(b) < push.extent / TUFF_ELEMENTS)

// Mean (0 for RMS norm) and variance of the row; absent elements are zeros.
void moments(TuffBlock x[TUFF_BLOCKS], uint lane, out float mean, out float variance) {
  mean = 0.0;
#if TUFF_CENTRED
  vec4 s = vec4(0.0);
  [[unroll]] for (uint b = 0; b < TUFF_BLOCKS; ++b) {
    [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) s += x[b].part[p];
  }
  mean = tuff_divide_moderate(vec4(tree_sum(sum4(s))), vec4(float(push.extent))).x;
#endif
  vec4 squares = vec4(0.0);
  [[unroll]] for (uint b = 0; b < TUFF_BLOCKS; ++b) {
    [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {
      vec4 d = x[b].part[p] - mean;
      d = TUFF_PRESENT(b) ? d : vec4(0.0);
      squares += d * d;
    }
  }
  variance = tuff_divide(vec4(tree_sum(sum4(squares))), vec4(float(push.extent))).x;
}

void main() {
  const uint thread = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID, lane = thread % TUFF_LANES;
  const uint team = tuff_group() * (gl_WorkGroupSize.x / TUFF_LANES) + thread / TUFF_LANES;
  const uint blocks = push.extent / TUFF_ELEMENTS;
#if TUFF_SUMS
  TuffBlock level_of[TUFF_BLOCKS], along_of[TUFF_BLOCKS];
  [[unroll]] for (uint b = 0; b < TUFF_BLOCKS; ++b) {
    level_of[b] = tuff_block(0.0);
    along_of[b] = tuff_block(0.0);
  }
#endif
  // Teams without a row left take part in the trees, with gradients of 0.
  for (uint k = 0; k < push.each; ++k) {
    uint row = k * push.teams + team;
    const bool live = team < push.teams && row < push.rows;
    row = live ? row : 0;
    TuffBlock x[TUFF_BLOCKS], g[TUFF_BLOCKS];
    [[unroll]] for (uint b = 0; b < TUFF_BLOCKS; ++b) {
      x[b] = tuff_block(0.0);
      g[b] = tuff_block(0.0);
      if (live && TUFF_PRESENT(b)) {
        x[b] = X_load_block(row * blocks + TUFF_PLACE(b));
        g[b] = G_load_block(row * blocks + TUFF_PLACE(b));
      }
    }
    float mean, variance, used = 1.0;
    moments(x, lane, mean, variance);
    // A loop rather than a branch: Mesa 22.3 executes both sides of a branch, but skips a loop that no lane enters.
    // Rows of the same subgroup that need no factor are computed again with 1.
    [[dont_unroll]] for (float factor = live ? factor_of(mean, variance) : 1.0; TUFF_ANY_ROW(factor != used);) {
      used = factor;
      [[unroll]] for (uint b = 0; b < TUFF_BLOCKS; ++b) {
        [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {
          precise vec4 scaled = x[b].part[p] * factor;
          x[b].part[p] = scaled;
        }
      }
      moments(x, lane, mean, variance);
    }
    const float scale = reciprocal_deviation(variance, used);
    vec4 level4 = vec4(0.0), along4 = vec4(0.0);
    [[unroll]] for (uint b = 0; b < TUFF_BLOCKS; ++b) {
      if (!(live && TUFF_PRESENT(b))) continue;
#if TUFF_WEIGHT && TUFF_INPUT
      const TuffBlock w = W_load_block(TUFF_PLACE(b));
#endif
      [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {
        const vec4 n = (x[b].part[p] - mean) * scale;
        x[b].part[p] = n;
#if TUFF_SUMS
        level_of[b].part[p] += g[b].part[p];
        along_of[b].part[p] += g[b].part[p] * n;
#endif
#if TUFF_INPUT
#if TUFF_WEIGHT
        g[b].part[p] *= w.part[p];
#endif
        level4 += g[b].part[p];
        along4 += g[b].part[p] * n;
#endif
      }
    }
#if TUFF_INPUT
#if TUFF_CENTRED
    const float level = tuff_divide(vec4(tree_sum(sum4(level4))), vec4(float(push.extent))).x;
#else
    const float level = 0.0;
#endif
    const float along = tuff_divide(vec4(tree_sum(sum4(along4))), vec4(float(push.extent))).x;
    [[unroll]] for (uint b = 0; b < TUFF_BLOCKS; ++b) {
      if (!(live && TUFF_PRESENT(b))) continue;
      [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {
        precise vec4 of_scaled = (g[b].part[p] - level - x[b].part[p] * along) * scale;
        precise vec4 y = of_scaled * used;
        g[b].part[p] = y;
      }
      Y_store_block(row * blocks + TUFF_PLACE(b), g[b]);
    }
#endif
  }
#if TUFF_SUMS
  if (team >= push.teams) return;
  [[unroll]] for (uint b = 0; b < TUFF_BLOCKS; ++b) {
    if (!TUFF_PRESENT(b)) continue;
    [[unroll]] for (uint c = 0; c < TUFF_ELEMENTS; ++c) {
      TUFF_AT(T, team * push.extent + TUFF_PLACE(b) * TUFF_ELEMENTS + c) =
          vec2(level_of[b].part[c / 4][c % 4], along_of[b].part[c / 4][c % 4]);
    }
  }
#endif
}
