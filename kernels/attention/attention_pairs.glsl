// Which pairs of a row and a key count, and their scores: for attention and for its gradients. What includes it declares
// the options (attention_common.glsl), SHAPE, Bias and Mask, SCALE by which scores are multiplied, and with EXTENDED the
// lengths of a batch element's sequences, QUERY_LENGTH(batch) and KEY_LENGTH(batch).

// Whether scores are scaled before the maximum is taken. Otherwise the scale is applied when weights are computed.
#define SCALED (BIAS || CAP)

const float LARGEST = 3.40282347e38;

// The batch element and the head of q that a tile belongs to. The functions below are about them.
uint batch_element, head;
uint rows_here, keys_here;  // rows from rows_here on see no keys
int diagonal;

void find_lengths() {
  rows_here = SHAPE.seq_q;
  keys_here = SHAPE.seq_kv;
  diagonal = SHAPE.diagonal;
#if EXTENDED
  const uint present = SHAPE.present;
  if ((present & 2u) != 0) rows_here = min(rows_here, uint(max(QUERY_LENGTH(batch_element), 0)));
  if ((present & 4u) != 0) keys_here = min(keys_here, uint(max(KEY_LENGTH(batch_element), 0)));
  if ((present & 8u) != 0) diagonal = int(keys_here) - int(rows_here);
#endif
}

// The end of the keys that a row may see, and the first of them. Neither decreases from one row to the next, up to
// rows_here.
uint keys_end_of(uint row) {
#if EXTENDED
  const uint end = uint(clamp(int(row) + diagonal + int(SHAPE.right), 0, int(keys_here)));
  return row < rows_here ? end : 0u;
#elif CAUSAL
  return uint(clamp(int(row) + 1 + diagonal, 0, int(keys_here)));
#else
  return keys_here;
#endif
}
uint first_key_of(uint row) {
#if EXTENDED
  return uint(max(int(row) + diagonal - int(SHAPE.left) + 1, 0));
#else
  return 0u;
#endif
}

float saturate_finite(float x) { return abs(x) > LARGEST ? (x < 0.0 ? -LARGEST : LARGEST) : x; }

#if SCALED || MASK
// Scales and caps four scores: of one row for neighbouring keys, or of neighbouring rows for one key.
vec4 scaled_scores(vec4 scores) {
#if SCALED
  [[unroll]] for (int e = 0; e < 4; ++e) {
    const float scaled = saturate_finite(scores[e] * SCALE);
    // What left the range of f32 stays there, whatever the scale is.
    scores[e] = scores[e] == -TUFF_INFINITY || scores[e] == LARGEST ? scores[e] : scaled;
  }
#endif
#if CAP
  scores = SHAPE.cap * tuff_tanh(scores / SHAPE.cap);
#endif
  return scores;
}
// Applies bias and mask to a scaled score. Row and key must exist.
float masked_score(float score, uint row, uint key) {
#if BIAS
  const float bias = TUFF_LOADED(BIAS, TUFF_AT(Bias, batch_element * SHAPE.bias_batch + head * SHAPE.bias_head +
                                                         row * SHAPE.bias_row + key));
  const float sum = score + bias;
  score = bias == -TUFF_INFINITY ? bias : score == -TUFF_INFINITY ? sum : saturate_finite(sum);
#endif
#if MASK
  const uint seen = uint(TUFF_AT(Mask, batch_element * SHAPE.mask_batch + head * SHAPE.mask_head +
                                           row * SHAPE.mask_row + key));
  score = seen == 0 ? -TUFF_INFINITY : score;
#endif
  return score;
}
#endif
