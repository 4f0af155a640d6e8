// A product of a long matrix L (rows x k) and a short one S (k x SHORT), out (rows x SHORT): matrix x vector and
// its neighbours, bound by reading L once. Either operand of gemm may be the long one; the other way round all
// is transposed, which the strides of S and of the output express.
//
// Workgroups are numbered by block of rows, then matrix of the batch, then slice of k, as for the tiles.
//
// Defines: SHORT  columns of S, 1 to 4
//          PAIRS  see gemm_pointer.glsl
#if PAIRS
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#endif
#include "kernels/gemm/gemm_pointer.glsl"
layout(push_constant, std430) uniform Push {
  TUFF_BASES(3)
  TUFF_INDEX ld;                          // of L, as stored
  TUFF_INDEX s_k, s_col, out_row, out_col;  // elements from one to the next
  TUFF_INDEX stride_l, stride_s, stride_out;
  uint rows, k;
  uint batch_count, slices, k_slice, row_blocks;
  float alpha, beta;
} push;
TUFF_READ(0, L, float, 4)
TUFF_READ(0, L4, GEMM_FOUR, 16)
TUFF_READ(1, S, float, 4)
TUFF_READ(1, S4, GEMM_FOUR, 16)
TUFF_READ_WRITE(2, Out, float, 4)

struct Block {
  bool exists;
  uint row_block;
  TUFF_INDEX l, s, out_;
  uint k_begin, k_end;
};

Block this_block() {
  uint group = tuff_group();
  uint matrix = group / push.row_blocks;
  uint slice = matrix / push.batch_count, batch = matrix % push.batch_count;
  Block block;
  block.exists = slice < push.slices;
  block.row_block = group % push.row_blocks;
  block.l = TUFF_INDEX(batch) * push.stride_l;
  block.s = TUFF_INDEX(batch) * push.stride_s;
  block.out_ = TUFF_INDEX(matrix) * push.stride_out;
  block.k_begin = slice * push.k_slice;
  block.k_end = min(push.k, block.k_begin + push.k_slice);
  return block;
}

void store(TUFF_INDEX at, float sum) {
  float value = push.alpha * sum;
  if (push.beta != 0.0) value = fma(push.beta, TUFF_AT(Out, at), value);
  TUFF_AT(Out, at) = value;
}
