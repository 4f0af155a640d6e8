// Parameters shared by the kernels of attention's gradients.
//# TYPE : 1..3 : TUFF_* type of q, k, v, o and of the gradients; sums are f32
//# BIAS : 0..3 : TUFF_* type of the bias; 0: none
//# MASK : 0|1 : 1: there is a mask
//# CAP : 0|1 : 1: there is a soft cap
//# group call : BIAS CAP MASK TUFF_EXACT_ARITHMETIC TYPE : the call's options, for each of its kernels
#include "kernels/common/types.glsl"
#if CAP
#include "kernels/elementwise/math.glsl"
#endif

//# struct AttentionBackwardShape
struct AttentionBackwardShape {
  TUFF_INDEX q_batch, q_head, q_row, k_batch, k_head, k_row; /* strides, in elements */
  TUFF_INDEX v_batch, v_head, v_row, o_batch, o_head, o_row, d_o_batch, d_o_head, d_o_row;
  TUFF_INDEX dq_batch, dq_head, dq_row, dk_batch, dk_head, dk_row, dv_batch, dv_head, dv_row;
  TUFF_INDEX bias_batch, bias_head, bias_row, mask_batch, mask_head, mask_row;
  uint batch, heads, sharing;  // sharing: heads of q that share one of k and v
  uint seq_q, seq_kv, head_dim, head_dim_v;
  int diagonal;      // row i's position is key i + diagonal
  uint left, right;  // keys that a row sees on either side; the one at its position counts in both
  float scale, cap;
  uint present;      // bit 1: lengths of q, 2: lengths of k and v, 3: causal mask bottom-right by the lengths
  uint unused;
};

// The shape is always in memory: it is too large for push constants.
#define EXTENDED 1
#define CAUSAL 0

#if TYPE == TUFF_F32
#define FOUR vec4
#define FOUR_BYTES 16
#define FROM_FOUR(four) (four)
#define TO_FOUR(v) (v)
#else
#define FOUR uvec2
#define FOUR_BYTES 8
#define FROM_FOUR(four) TUFF_UNPACKED(TYPE, four)
#define TO_FOUR(v) TUFF_PACKED(TYPE, v)
#endif
