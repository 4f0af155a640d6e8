// What the kernels that add up products share: the table T of numbers of 64 bits, the elements of C, and what becomes of
// a sum. push has alpha and beta. READS_C 0, which a kernel may define: beta is 0.
#if TUFF_WIDE
#define NUMBER(i) (uint64_t(TUFF_AT(T, 2 * (i) + 1)) << 32 | uint64_t(TUFF_AT(T, 2 * (i))))
#else
#define NUMBER(i) TUFF_AT(T, 2 * (i))
#endif

#define LOADED(x) TUFF_VALUE(TUFF_NUMBER(TUFF_TYPE, TUFF_LOADED(TUFF_TYPE, x)))
// Element i of an operand that TUFF_READ_TEXELS declares.
#if TUFF_TEXELS
#define VALUE_AT(operand, i) LOADED(TUFF_OF_TEXEL(TUFF_TYPE, TUFF_TEXEL(operand, i)))
#else
#define VALUE_AT(operand, i) LOADED(TUFF_AT(operand, i))
#endif
#define ROUNDED(x) TUFF_ROUNDED(TUFF_TYPE, TUFF_OF_VALUE(TUFF_TYPE, x))
#if TUFF_VALUE_TYPE == 4
#define SCALAR(words) packDouble2x32(uvec2(words[0], words[1]))
#else
#define SCALAR(words) uintBitsToFloat(words[0])
#endif

#ifndef READS_C
#define READS_C 1
#endif

const uint NONE = 0xffffffffu;  // as a row: no partial sum

void write_result(TUFF_INDEX at, TUFF_VALUE sum) {
  TUFF_VALUE result = SCALAR(push.alpha) * sum;
#if READS_C
  if (SCALAR(push.beta) != TUFF_ZERO) result += SCALAR(push.beta) * LOADED(TUFF_AT(C, at));
#endif
  TUFF_AT(C, at) = ROUNDED(result);
}
