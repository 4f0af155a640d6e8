// Copies the rows of updates that win to the places that their indices name: unit i of updates [outer][rows][inner] to
// output [outer][places][inner], if W of the place is the row's index. Units have 1 to 16 bytes.
#include "kernels/indexing/scatter_rows.glsl"
#include "kernels/shape/units.glsl"
TUFF_READ(0, U, UNIT, TUFF_UNIT)
TUFF_READ(2, W, uint, 4)
TUFF_WRITE(3, Y, UNIT, TUFF_UNIT)

void main() {
  const uint lanes = gl_WorkGroupSize.x;
  uint i = tuff_group() * (lanes * RUN) + gl_LocalInvocationID.x;
  for (uint step = 0; step < RUN && i < push.n; ++step, i += lanes) {
    uint row, key;
    TUFF_INDEX from, to;
    locate(i, row, key, from, to);
    if (key < push.none && TUFF_AT(W, TUFF_INDEX(key)) == row + push.first) TUFF_AT(Y, to) = TUFF_AT(U, from);
  }
}
