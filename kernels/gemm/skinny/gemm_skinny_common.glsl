// Skinny GEMM: out (rows x cols) = L (rows x k) times S (k x cols), where L is long and S has few columns. Like matrix
// times vector it is bound by reading L once. Either operand of gemm may be L; if B is, everything is transposed. Both
// are read as they are stored, whatever their types.
//
// Workgroups are numbered by block of rows, then matrix of the batch, then split-K part, as for the tiles.
//
//# L_TYPE : 1..5|7|14..15 : TUFF_* type of L
//# S_TYPE : 1..5|7|14..15 : TUFF_* type of S
//# SHORT : 1..4|8|16 : columns of S that are summed
//# PADDED : 0|1 : 1: S has fewer columns (push.cols) than SHORT
//# TRANSPOSED : 0|1 : 1: out is stored as cols x rows
//# group skinny : L_TYPE S_TYPE SUM_TYPE SHORT PADDED TRANSPOSED PAIRS : the operands, whichever kernel reads them
#include "kernels/gemm/common/gemm_stored.glsl"
#include "kernels/gemm/common/gemm_number.glsl"

layout(push_constant, std430) uniform Push {
#if EPILOGUE
  TUFF_BASES(5)
#else
  TUFF_BASES(3)
#endif
  TUFF_INDEX ld;                  // leading dimension of L, as stored
  TUFF_INDEX s_k, s_col, ld_out;  // strides of S along k and columns; leading dimension of out, as stored
  TUFF_INDEX stride_l, stride_s, stride_out;
#if EPILOGUE
  TUFF_INDEX ld_residual, stride_bias, stride_residual;
#endif
  uint rows, cols, k;
  uint batch_count, k_slice, row_blocks;
  NUMBER alpha, beta;
} push;

#define C_SLOT 2
#include "kernels/gemm/common/gemm_epilogue.glsl"

TUFF_READ(0, L, TUFF_STORED(L_TYPE), TUFF_BYTES(L_TYPE))
TUFF_READ(0, L4, GEMM_RAW(L_TYPE), GEMM_RAW_BYTES(L_TYPE))
TUFF_READ(1, S, TUFF_STORED(S_TYPE), TUFF_BYTES(S_TYPE))
TUFF_READ(1, S4, GEMM_RAW(S_TYPE), GEMM_RAW_BYTES(S_TYPE))
#define LOAD_SCALAR_L(pointer, i) TUFF_LOADED(L_TYPE, TUFF_FROM(L, pointer, i))
#define LOAD_SCALAR_S(pointer, i) TUFF_LOADED(S_TYPE, TUFF_FROM(S, pointer, i))
#define LOAD_VECTOR_L(pointer, i) GEMM_UNPACK(L_TYPE, TUFF_FROM(L4, pointer, i))
#define LOAD_VECTOR_S(pointer, i) GEMM_UNPACK(S_TYPE, TUFF_FROM(S4, pointer, i))

struct Block {
  bool exists;
  uint row_block;
  TUFF_INDEX l, s, out_, bias, residual;
  uint k_begin, k_end;
};

Block this_block() {
  uint group = tuff_group();
  uint matrix = group / push.row_blocks;
  uint slice = matrix / push.batch_count, batch = matrix % push.batch_count;
  TUFF_TAKE(batch)
  Block block;
  block.row_block = group % push.row_blocks;
  block.l = TUFF_INDEX(batch) * push.stride_l;
  block.s = TUFF_INDEX(batch) * push.stride_s;
  block.out_ = TUFF_INDEX(matrix) * push.stride_out;
#if EPILOGUE
  block.bias = TUFF_INDEX(batch) * push.stride_bias;
  block.residual = TUFF_INDEX(batch) * push.stride_residual;
#else
  block.bias = block.residual = 0;
#endif
  block.k_begin = slice * push.k_slice;
  block.k_end = min(push.k, block.k_begin + push.k_slice);
  block.exists = block.k_begin < push.k;  // surplus workgroups fall into a part past the last one
  return block;
}

// The column of S that is read as column j: columns beyond the last read the last one and are not stored.
#if PADDED
#define COLUMN(j) min(j, push.cols - 1)
#define HAS_COLUMN(j) (j < push.cols)
#else
#define COLUMN(j) (j)
#define HAS_COLUMN(j) true
#endif

void store(Block block, uint row, uint col, SCALAR sum) {
  // Row and column of gemm's C.
  const uint c_row = TRANSPOSED != 0 ? col : row, c_col = TRANSPOSED != 0 ? row : col;
#if EPILOGUE
  const TUFF_INDEX residual = block.residual + TUFF_INDEX(c_row) * push.ld_residual + c_col;
#else
  const TUFF_INDEX residual = 0;
#endif
  gemm_store(push.alpha * NUMBER(sum), push.beta, block.out_ + TUFF_INDEX(c_row) * push.ld_out + c_col,
             block.bias + (BIAS_AXIS == 1 ? c_row : c_col), residual);
}
