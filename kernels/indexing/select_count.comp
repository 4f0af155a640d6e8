// C[chunk] = how many elements of the chunk are selected: see select.glsl.
#include "kernels/indexing/select.glsl"

TUFF_WRITE(2, C, uint, 4)

#if TUFF_LANES
void main() {
  const uint chunk = tuff_group() * TUFF_LANES + gl_LocalInvocationID.x;
  if (chunk >= push.chunks) return;
  const uint begin = chunk * push.chunk, end = begin + min(push.chunk, push.n - begin);
  uint count = 0;
#define COUNT(i, selected) count += bitCount(selected);
  FOR_CHUNK(begin, end, COUNT)
  TUFF_AT(C, TUFF_INDEX(chunk)) = count;
}
#else
const uint UNROLL = 4;  // elements in flight
shared uint total;

void main() {
  const uint thread = gl_LocalInvocationID.x, threads = gl_WorkGroupSize.x, chunk = tuff_group();
  if (chunk >= push.chunks) return;
  const uint begin = chunk * push.chunk, end = begin + min(push.chunk, push.n - begin);
  if (thread == 0) total = 0;
  barrier();
  uint count = 0;
#if TUFF_BLOCKS
  const uint blocks = (end - begin) / 16, rest = begin + blocks * 16;
  for (uint b = thread; b < blocks; b += threads) count += bitCount(selected_bits(TUFF_AT(X16, TUFF_INDEX(begin / 16 + b))));
  if (rest + thread < end) count += is_selected(rest + thread) ? 1u : 0u;
#else
  uint i = begin + thread;
  for (; i + (UNROLL - 1) * threads < end; i += UNROLL * threads) {
    [[unroll]] for (uint u = 0; u < UNROLL; ++u) count += is_selected(i + u * threads) ? 1u : 0u;
  }
  for (; i < end; i += threads) count += is_selected(i) ? 1u : 0u;
#endif
  atomicAdd(total, count);
  barrier();
  if (thread == 0) TUFF_AT(C, TUFF_INDEX(chunk)) = total;
}
#endif
