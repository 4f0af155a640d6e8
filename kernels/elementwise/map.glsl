// The loop of unary.comp and binary.comp: output element i = tuff_apply(element i of each input), for i < n.
//
// Elements are processed in blocks of W = TUFF_ELEMENTS (16 bytes). Each workgroup has RUN * (workgroup size)
// consecutive blocks. In step s lane l processes block s * (workgroup size) + l of them, so that neighbouring lanes
// access neighbouring memory:
//
//   workgroup g:  | lanes 0 1 2 … | lanes 0 1 2 … | … RUN times
//
// The n % W elements after the last whole block are one item each and follow the blocks.
//# TUFF_TYPE : types : element type of all operands, as in tuff.h
//# TUFF_UNROLL : 1|4 : blocks that a lane has in flight; divides RUN
//# TUFF_TAIL_BLOCKS : 0|1 : 0: the last, partial workgroup processes all its elements one by one, which halves the code
//   for a slow compiler; 1: by blocks as far as they are whole
//# TUFF_RUN : 0.. : blocks that a lane processes one after another; 0: push.run says
//
// Loops here must not be [[unroll]]: spirv-opt drops the NoContraction that `precise` stands for when it unrolls one.
layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(TUFF_INPUTS + 1)
  uint n, run;
  float alpha;  // parameter of an operation with one input
} push;

TUFF_BLOCKS_READ(0, A, TUFF_TYPE)
#if TUFF_INPUTS == 2
TUFF_BLOCKS_READ(1, B, TUFF_TYPE)
TUFF_BLOCKS_WRITE(2, Y, TUFF_TYPE)
#else
TUFF_BLOCKS_WRITE(1, Y, TUFF_TYPE)
#endif

TuffBlock result_block(uint i) {
  TuffBlock a = A_load_block(i);
#if TUFF_INPUTS == 2
  TuffBlock b = B_load_block(i);
#define TUFF_APPLY_PART(p) a.part[p] = tuff_apply(a.part[p], b.part[p])
#else
#define TUFF_APPLY_PART(p) a.part[p] = tuff_apply(a.part[p], push.alpha)
#endif
  TUFF_APPLY_PART(0);
#if TUFF_PARTS == 2
  TUFF_APPLY_PART(1);
#endif
  return a;
}

TUFF_VALUE result(uint i) {
#if TUFF_INPUTS == 2
  return tuff_apply(TUFF_VALUE4(A_load(i)), TUFF_VALUE4(B_load(i))).x;
#else
  return tuff_apply(TUFF_VALUE4(A_load(i)), push.alpha).x;
#endif
}

void main() {
  const uint lanes = gl_WorkGroupSize.x;
  uint blocks = push.n / TUFF_ELEMENTS;
  uint begin = tuff_group() * (lanes * RUN);
  uint i = begin + gl_LocalInvocationID.x;
  if (begin + lanes * RUN <= blocks) {
    for (uint step = 0; step < RUN; step += TUFF_UNROLL) {
      TuffBlock first = result_block(i);
#if TUFF_UNROLL == 4
      TuffBlock second = result_block(i + lanes), third = result_block(i + 2 * lanes),
                fourth = result_block(i + 3 * lanes);
      Y_store_block(i + lanes, second);
      Y_store_block(i + 2 * lanes, third);
      Y_store_block(i + 3 * lanes, fourth);
#endif
      Y_store_block(i, first);
      i += lanes * TUFF_UNROLL;
    }
  } else {
#if TUFF_TAIL_BLOCKS
    uint items = blocks + push.n % TUFF_ELEMENTS;
    for (uint step = 0; step < RUN && i < items; ++step, i += lanes) {
      if (i < blocks) {
        Y_store_block(i, result_block(i));
      } else {
        uint element = TUFF_ELEMENTS * blocks + (i - blocks);
        Y_store(element, result(element));
      }
    }
#else
    for (uint element = TUFF_ELEMENTS * begin + gl_LocalInvocationID.x; element < push.n; element += lanes) {
      Y_store(element, result(element));
    }
#endif
  }
}
