// W[place] = the last index that names the place. Before, it is any of them (places.comp). Only where indices repeat
// does any of them compare larger, so atomics are rare.
//# TUFF_RUN : 0.. : indices that a lane processes one after another; 0: push.run says
layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  uint n, run;
  uint none;  // the place of an index out of range, and the number of places
} push;

TUFF_READ(0, K, uint, 4)
TUFF_READ_WRITE(1, W, uint, 4)

void main() {
  const uint lanes = gl_WorkGroupSize.x;
  uint i = tuff_group() * (lanes * RUN) + gl_LocalInvocationID.x;
  for (uint step = 0; step < RUN && i < push.n; ++step, i += lanes) {
    const uint key = TUFF_AT(K, i);
    if (key < push.none && TUFF_AT(W, key) < i) atomicMax(TUFF_AT(W, key), i);
  }
}
