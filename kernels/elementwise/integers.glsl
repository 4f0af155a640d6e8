// Functions of two integers, modulo 2^32.
TUFF_VALUE4 tuff_add(TUFF_VALUE4 a, TUFF_VALUE4 b) { return a + b; }
TUFF_VALUE4 tuff_sub(TUFF_VALUE4 a, TUFF_VALUE4 b) { return a - b; }
TUFF_VALUE4 tuff_mul(TUFF_VALUE4 a, TUFF_VALUE4 b) { return a * b; }
TUFF_VALUE4 tuff_max(TUFF_VALUE4 a, TUFF_VALUE4 b) { return max(a, b); }
TUFF_VALUE4 tuff_min(TUFF_VALUE4 a, TUFF_VALUE4 b) { return min(a, b); }
