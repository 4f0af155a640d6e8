// Combines 32-bit integers with the elements of the output that they belong to, by atomics. These operations give the same
// bits in every order.
//
// With TUFF_TABLE a workgroup combines its updates in shared memory first, so that few atomics meet at an element of an
// output with few places. With TUFF_JOIN the lanes of a subgroup whose element is that of its first lane are one atomic:
// where most updates belong to one element, they would wait for each other.
//
//# TUFF_OP : 2|4|5 : TUFF_SCATTER_* of tuff.h
//# TUFF_SIGN : 0|1 : 1: integers are signed
//# TUFF_TABLE : 0|1 : 1, with TUFF_SINGLE: there are at most PLACES places
//# TUFF_JOIN : 0|1 : 1, with TUFF_SINGLE, without TUFF_TABLE
#include "kernels/indexing/scatter_rows.glsl"

#if TUFF_SIGN
#define NUMBER int
#else
#define NUMBER uint
#endif
TUFF_READ(0, U, NUMBER, 4)
TUFF_READ_WRITE(3, Y, NUMBER, 4)

#if TUFF_OP == 2
#define IDENTITY NUMBER(0)
#define COMBINE atomicAdd
#define JOINED(x) subgroupAdd(x)
#elif TUFF_OP == 4
#define IDENTITY NUMBER(TUFF_SIGN != 0 ? 0x80000000u : 0u)
#define COMBINE atomicMax
#define JOINED(x) subgroupMax(x)
#else
#define IDENTITY NUMBER(TUFF_SIGN != 0 ? 0x7fffffffu : 0xffffffffu)
#define COMBINE atomicMin
#define JOINED(x) subgroupMin(x)
#endif

//# constant PLACES : the places of a table in shared memory
const uint PLACES = 2048;
#if TUFF_TABLE
shared NUMBER table[PLACES];
#endif

#if TUFF_JOIN
// All lanes of a subgroup come here together.
void combine(uint i, bool there) {
  uint row, key = push.none;
  TUFF_INDEX from, to = TUFF_INDEX(0);
  if (there) locate(i, row, key, from, to);
  const bool inside = key < push.none;
  NUMBER update = IDENTITY;
  if (inside) update = TUFF_AT(U, from);
  const bool joins = key == subgroupBroadcastFirst(key);
  const NUMBER all = JOINED(joins ? update : IDENTITY);
  const bool elected = subgroupElect();
  if (inside && (elected || !joins)) COMBINE(TUFF_AT(Y, to), joins ? all : update);
}
#else
void combine(uint i) {
  uint row, key;
  TUFF_INDEX from, to;
  locate(i, row, key, from, to);
  if (key >= push.none) return;
#if TUFF_TABLE
  COMBINE(table[key], TUFF_AT(U, from));
#else
  COMBINE(TUFF_AT(Y, to), TUFF_AT(U, from));
#endif
}
#endif

void main() {
  const uint lanes = gl_WorkGroupSize.x, lane = gl_LocalInvocationID.x;
#if TUFF_TABLE
  for (uint place = lane; place < push.none; place += lanes) table[place] = IDENTITY;
  barrier();
#endif
  uint i = tuff_group() * (lanes * RUN) + lane;
#if TUFF_JOIN
  for (uint step = 0; step < RUN; ++step, i += lanes) combine(i, i < push.n);
#else
  for (uint step = 0; step < RUN && i < push.n; ++step, i += lanes) combine(i);
#endif
#if TUFF_TABLE
  barrier();
  for (uint place = lane; place < push.none; place += lanes) {
    const NUMBER all = table[place];
    if (all != IDENTITY) COMBINE(TUFF_AT(Y, TUFF_INDEX(place)), all);
  }
#endif
}
