// output[i] = op(a[…], b[…]) for elements i < n of the dense output. Operands may be repeated along some axes: their
// stride there is 0 (kernels/common/coordinates.glsl).
//
// Elements are processed in blocks of W = TUFF_ELEMENTS (16 bytes); those after the last whole block are processed one
// by one. An item is TUFF_REPEAT blocks, or one such element. Each workgroup has RUN * (workgroup size) consecutive
// items; in step s, lane l processes item s * (workgroup size) + l.
//# TUFF_TYPE : types : element type of all operands, as in tuff.h
//# TUFF_REPEAT : 1|4 : consecutive blocks in one item, which share one computation of coordinates
//# TUFF_A : 0..3 : how a block of the first operand is read, see the modes below
//# TUFF_B : 0..3 : the same for the second operand
//# TUFF_RUN : 0.. : items that a lane processes one after another; 0: push.run says
// TUFF_REPEAT is 4 only if neither mode is 3 and the innermost axis is a multiple of four blocks. Modes:
//     0   dense, like the output
//     1   as a block: W divides the size of the innermost axis and every stride except the innermost
//     2   one element per block: the operand is repeated along the innermost axis, whose size W divides
//     3   element by element, each with its own coordinates
#define TUFF_VALUE_OF TUFF_TYPE
#include "kernels/elementwise/blocks.glsl"
#include "kernels/elementwise/binary.def"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint RANK = 1;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(3)
  uint n, run;
  uint sizes[5], multipliers[5], shifts[2];
  int a_strides[6], b_strides[6];
} push;

TUFF_BLOCKS_READ(0, A, TUFF_TYPE)
TUFF_BLOCKS_READ(1, B, TUFF_TYPE)
TUFF_BLOCKS_WRITE(2, Y, TUFF_TYPE)

#include "kernels/common/coordinates.glsl"

struct Place {
  TUFF_INDEX a, b;
};

Place place_of(uint n) {
  Place place = Place(TUFF_INDEX(0), TUFF_INDEX(0));
  for (uint d = 0; d < RANK; ++d) {
    TUFF_NEXT_COORDINATE(n, c, d)
    place.a += TUFF_INDEX(TUFF_ALONG(c, push.a_strides[d]));
    place.b += TUFF_INDEX(TUFF_ALONG(c, push.b_strides[d]));
  }
  return place;
}

#define OPERAND_BLOCK_0(X, x, r) X##_load_block(TUFF_REPEAT * i + r)
#define OPERAND_BLOCK_1(X, x, r) X##_load_block(first.x / TUFF_ELEMENTS + r)
#define OPERAND_BLOCK_2(X, x, r) x##_once
#define OPERAND_BLOCK_3(X, x, r) X##_gathered(i)
#define OPERAND_BLOCK(mode, X, x, r) TUFF_PASTE(OPERAND_BLOCK_, mode)(X, x, r)

#define GATHERED(X, x)                                               \
  TuffBlock X##_gathered(uint i) {                                   \
    TuffBlock block;                                                 \
    [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {               \
      [[unroll]] for (uint c = 0; c < 4; ++c) {                      \
        block.part[p][c] = X##_load(place_of(TUFF_ELEMENTS * i + (4 * p + c)).x); \
      }                                                              \
    }                                                                \
    return block;                                                    \
  }
#if TUFF_A == 3
GATHERED(A, a)
#endif
#if TUFF_B == 3
GATHERED(B, b)
#endif

void compute_block(uint i) {
#if TUFF_A == 1 || TUFF_A == 2 || TUFF_B == 1 || TUFF_B == 2
  const Place first = place_of(TUFF_REPEAT * TUFF_ELEMENTS * i);
#endif
#if TUFF_A == 2
  const TuffBlock a_once = tuff_block(A_load(first.a));
#endif
#if TUFF_B == 2
  const TuffBlock b_once = tuff_block(B_load(first.b));
#endif
  // No [[unroll]] loops: see map.glsl.
#if TUFF_PARTS == 2
#define SECOND_PART y.part[1] = tuff_apply(y.part[1], b.part[1]);
#else
#define SECOND_PART
#endif
#define COMPUTE(r)                                         \
  {                                                        \
    TuffBlock y = OPERAND_BLOCK(TUFF_A, A, a, r);          \
    const TuffBlock b = OPERAND_BLOCK(TUFF_B, B, b, r);    \
    y.part[0] = tuff_apply(y.part[0], b.part[0]);          \
    SECOND_PART                                            \
    Y_store_block(TUFF_REPEAT * i + r, y);                 \
  }
  COMPUTE(0)
#if TUFF_REPEAT == 4
  COMPUTE(1)
  COMPUTE(2)
  COMPUTE(3)
#endif
}

void main() {
  const uint lanes = gl_WorkGroupSize.x, size = TUFF_REPEAT * TUFF_ELEMENTS, blocks = push.n / size,
             items = blocks + push.n % size;
  uint i = tuff_group() * (lanes * RUN) + gl_LocalInvocationID.x;
  for (uint step = 0; step < RUN && i < items; ++step, i += lanes) {
    if (i < blocks) {
      compute_block(i);
    } else {
      const uint element = size * blocks + (i - blocks);
      const Place place = place_of(element);
      Y_store(TUFF_INDEX(element), tuff_apply(TUFF_VALUE4(A_load(place.a)), TUFF_VALUE4(B_load(place.b))).x);
    }
  }
}
