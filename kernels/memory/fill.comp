// Fills a range of 4-byte words with a repeated pattern of two or four words. (The device's own fill command handles
// patterns of up to one word.) Each invocation writes RUN words, LOCAL_SIZE apart.
layout(local_size_x_id = 0) in;  // LOCAL_SIZE

const uint RUN = 4;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(1)
  uvec4 pattern;  // word i of the range is pattern[i % 4]
  uint words;
} push;
TUFF_WRITE(0, words_out, uint, 4)

void main() {
  const uint first = tuff_group() * (gl_WorkGroupSize.x * RUN) + gl_LocalInvocationID.x;
  [[unroll]] for (uint step = 0; step < RUN; ++step) {
    const uint i = first + step * gl_WorkGroupSize.x;
    if (i < push.words) TUFF_AT(words_out, i) = push.pattern[i & 3u];
  }
}
