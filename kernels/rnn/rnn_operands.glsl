// The operands that rnn_gates.comp and rnn_rows.comp share; slot 1 has their weights. Included after the push block.
// They read the products of the input, the state and the bias as RNN_VECTOR, of RNN_BYTES, and write Y_STORED.
//
//# TUFF_BIAS : 0|1 : 1: there is a bias
//# TUFF_PEEPHOLES : 0|1 : 1: there are peepholes
//# TUFF_LENGTHS : 0|1 : 1: sequences have lengths
//# TUFF_OUTPUT : 0|1 : 1: h of each step goes to slot 6 too
//# TUFF_TYPE : 1..3 : element type of peepholes and output, as in tuff.h
TUFF_READ(0, X, RNN_VECTOR, RNN_BYTES)
TUFF_READ_WRITE(2, State, RNN_VECTOR, RNN_BYTES)
#if TUFF_BIAS
TUFF_READ(3, Bias, RNN_VECTOR, RNN_BYTES)
#endif
#if TUFF_PEEPHOLES
TUFF_READ(4, Peepholes, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
#endif
#if TUFF_LENGTHS
TUFF_READ(5, Lengths, int, 4)
#endif
#if TUFF_OUTPUT
TUFF_WRITE(6, Y, Y_STORED, Y_BYTES)
#endif

vec4 peephole(uint direction, uint which, uint j, uint count) {
  vec4 p = vec4(0);
#if TUFF_PEEPHOLES
  [[unroll]] for (uint e = 0; e < 4; ++e) {
    if (e < count) p[e] = TUFF_LOADED(TUFF_TYPE, TUFF_AT(Peepholes, (direction * 3 + which) * push.hidden + j + e));
  }
#endif
  return p;
}
