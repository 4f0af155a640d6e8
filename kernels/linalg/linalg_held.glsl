// Where a workgroup that has all of a matrix keeps it: in shared memory, or in the memory it came from.
//# TUFF_HELD : 0|32|64 : the largest n of a matrix in shared memory; 0: it stays in device memory
#if TUFF_HELD
shared TUFF_VALUE held[TUFF_HELD * (TUFF_HELD + 1)];
#define H_AT(i, j) held[(i) * (TUFF_HELD + 1) + (j)]
#define PUBLISH() barrier()
#else
#define H_AT(i, j) TUFF_AT(H, h_base + TUFF_INDEX(i) * h_row + (j))
#define PUBLISH()        \
  do {                   \
    memoryBarrierBuffer(); \
    barrier();           \
  } while (false)
#endif
