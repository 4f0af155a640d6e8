// Finds out which elements of 16 x 16 matrices an invocation holds: loads a matrix of inputs and a matrix of sums whose
// elements are their own positions, row * 16 + column, and stores each invocation's elements. A subgroup of 32.
//# TYPE : 2|3 : TUFF_* type of the inputs
#define MM 16
#define MN 16
#define MK 16
#include "kernels/common/matrix.glsl"
#include "kernels/common/types.glsl"

layout(push_constant, std430) uniform Push {
  TUFF_BASES(1)
} push;
TUFF_WRITE(0, Place, uint, 4)
layout(local_size_x = 32) in;

shared uvec4 inputs[32], sums[64];

#if TYPE == TUFF_F16
#define TO_PAIR(x, y) tuff_f16_pair(vec2(x, y))
#else
#define TO_PAIR(x, y) tuff_bf16_pair(vec2(x, y))
#endif

void main() {
  const uint lane = gl_SubgroupInvocationID;
  [[unroll]] for (uint w = 0; w < 4; ++w) {
    const float place = float(lane * 8 + w * 2);
    inputs[lane][w] = TO_PAIR(place, place + 1.0);
    sums[lane][w] = floatBitsToUint(float(lane * 4 + w));
    sums[lane + 32][w] = floatBitsToUint(float(lane * 4 + w + 128));
  }
  barrier();
  MATRIX_A a;
  MATRIX_B b;
  MATRIX_C c;
  MATRIX_LOAD(a, inputs, 0, 2, false);
  MATRIX_LOAD(b, inputs, 0, 2, false);
  MATRIX_LOAD(c, sums, 0, 4, false);
  const MATRIX_C product = MATRIX_MULTIPLY_ADD(a, b, c);
  [[unroll]] for (uint e = 0; e < 8; ++e) {
    TUFF_AT(Place, lane * 8 + e) = uint(float(a[e]));
    TUFF_AT(Place, 256 + lane * 8 + e) = uint(c[e]);
    // Only keeps the multiplication, by which the three uses of matrices are told apart, from being removed.
    TUFF_AT(Place, 512 + lane * 8 + e) = floatBitsToUint(product[e]);
  }
}
