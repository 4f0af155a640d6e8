// Repeats a macro: TUFF_TIMES_4(M, 8) is M(8) M(8 + 1) M(8 + 2) M(8 + 3). For arrays that have to be in registers: drivers
// keep them in memory if they do not unroll every loop over them, whatever the hint says.
#define TUFF_TIMES_4(M, i) M(i) M((i) + 1) M((i) + 2) M((i) + 3)
#define TUFF_TIMES_8(M, i) TUFF_TIMES_4(M, i) TUFF_TIMES_4(M, (i) + 4)
#define TUFF_TIMES_16(M, i) TUFF_TIMES_8(M, i) TUFF_TIMES_8(M, (i) + 8)
#define TUFF_TIMES_24(M, i) TUFF_TIMES_16(M, i) TUFF_TIMES_8(M, (i) + 16)
#define TUFF_TIMES_32(M, i) TUFF_TIMES_16(M, i) TUFF_TIMES_16(M, (i) + 16)
#define TUFF_TIMES_64(M, i) TUFF_TIMES_32(M, i) TUFF_TIMES_32(M, (i) + 32)
#define TUFF_TIMES_128(M, i) TUFF_TIMES_64(M, i) TUFF_TIMES_64(M, (i) + 64)
