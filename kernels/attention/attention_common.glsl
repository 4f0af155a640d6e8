// What every attention kernel is told, and what they share. Mirrors AttentionPush in attention_vulkan.cpp.
//
// RANGES 1: the keys come in several dispatches, a range each. All but the last save what every invocation holds
// (its rows' maxima, sums of weights and outputs so far), and all but the first go on from it.
layout(push_constant, std430) uniform Push {
#if RANGES
  TUFF_BASES(5)
#else
  TUFF_BASES(4)
#endif
  uint seq_q, seq_kv, head_dim;
  int diagonal;       // with CAUSAL query row i sees keys 0 … i + diagonal
  float scale_log2;   // scale * log2(e): weights are powers of two
  uint row_tiles;     // workgroups along the query rows of one head
  uint column_tiles;  // … along head_dim of the output
  uint groups;        // row_tiles * column_tiles * heads * batch
  uint key_begin;     // with RANGES the keys from here, a multiple of KEYS,
  uint key_end;       // … to before here
} push;

TUFF_READ(0, Query, float, 4)
TUFF_READ(0, Query4, vec4, 16)
TUFF_READ(1, Key, float, 4)
TUFF_READ(1, Key4, vec4, 16)
TUFF_READ(2, Value, float, 4)
TUFF_READ(2, Value4, vec4, 16)
TUFF_WRITE(3, Result, float, 4)
TUFF_WRITE(3, Result4, vec4, 16)
#if RANGES
TUFF_READ_WRITE(4, State, float, 4)
#define FIRST_KEY push.key_begin
#define LAST_KEYS(keys) min(keys, push.key_end)
// A value of an invocation: values lie apart by the invocations of a group.
#define STATE(group, values, value, invocations, invocation) \
  TUFF_AT(State, (TUFF_INDEX(group) * (values) + (value)) * (invocations) + (invocation))
#else
#define FIRST_KEY 0u
#define LAST_KEYS(keys) keys
#endif

const float LARGEST = 3.40282347e38;
// Weights carry this power of two, which their sum carries too: a sum of weight * value then stays finite
// for 2^24 keys whatever the values are.
const float HEADROOM = -24.0;

// How many keys, from key 0 on, a query row may see.
uint visible_keys(uint row) {
#if CAUSAL
  return uint(clamp(int(row) + 1 + push.diagonal, 0, int(push.seq_kv)));
#else
  return push.seq_kv;
#endif
}

// The weight of a score, given its row's maximum. The difference comes first: it is exact or nearly so
// where it matters, and -infinity (a hidden key) gives 0.
float weight(float score, float maximum, float scale_log2) {
  return exp2(fma(score - maximum, scale_log2, HEADROOM));
}

float saturate_finite(float x) { return abs(x) > LARGEST ? (x < 0.0 ? -LARGEST : LARGEST) : x; }

// A score whose plain sum leaves the range of f32 although its inputs are finite is summed at 2^-140 of its
// size, both factors times SHRINK, then brought back as far as f32 reaches. NaN if an input is.
const float SHRINK = 8.470329472543003e-22, GROW = 1180591620717411303424.0;  // 2^-70, 2^70
float grown_back(float shrunk) { return saturate_finite(saturate_finite(shrunk * GROW) * GROW); }

// The row's result from its sum of weight * value and its sum of weights; 0 where no key was visible.
float normalised(float sum, float total) {
  float result = total == 0.0 ? 0.0 : sum / total;
  return abs(sum) <= LARGEST ? saturate_finite(result) : result;
}
