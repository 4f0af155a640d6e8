// The levels of a triangle's rows: a row that refers to no other has level 0, and another one the highest level of those it
// refers to, plus 1. Kahn's algorithm in one workgroup: the rows of a level tell those that refer to them, of which D has
// the number of references that are not yet known. Rows of the next level follow in the queue Q, in any order.
//
// The state: rows looked at for references; the queue's end; position and end of the level in it; iterations done for the
// batch at the position; the level.
//
//# TUFF_FORWARD : 0|1 : 1: rows refer to those before them, 0: to those behind
//# TUFF_PERMUTED : 0|1 : 1: entry e is number P[e] of I
layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(7)
  uint rows;
  uint budget;  // iterations
} push;

TUFF_READ(0, O, uint, 4)  // row i is referred to by the entries O[i] to O[i + 1] - 1
TUFF_READ(1, P, uint, 4)
TUFF_READ(2, I, uint, 4)  // the row that refers
TUFF_DECLARE(coherent, 3, D, uint, 4)
TUFF_DECLARE(coherent, 4, Q, uint, 4)
TUFF_WRITE(5, L, uint, 4)
TUFF_READ_WRITE(6, Z, uint, 4)

#include "kernels/sparse/steps.glsl"

shared uint tail;

void push_row(uint row, uint level) {
  const uint at = atomicAdd(tail, 1u);
  if (at >= push.rows) return;  // cannot be, unless offsets decrease
  TUFF_AT(Q, TUFF_INDEX(at)) = row;
  TUFF_AT(L, TUFF_INDEX(row)) = level;
}

void tell(uint row, uint e, uint level) {
#if TUFF_PERMUTED
  e = TUFF_AT(P, TUFF_INDEX(e));
#endif
  const uint other = TUFF_AT(I, TUFF_INDEX(e));
  const bool refers = TUFF_FORWARD != 0 ? other > row && other < push.rows : other < row;
  if (refers && atomicAdd(TUFF_AT(D, TUFF_INDEX(other)), 0xffffffffu) == 1u) push_row(other, level);
}

void main() {
  const uint lanes = gl_WorkGroupSize.x, lane = lane_of_workgroup();
  if (tuff_group() != 0u) return;
  uint looked = TUFF_AT(Z, 0), position = TUFF_AT(Z, 2), end = TUFF_AT(Z, 3), done = TUFF_AT(Z, 4), level = TUFF_AT(Z, 5);
  if (looked >= push.rows && position == end) return;  // finished
  if (lane == 0u) tail = TUFF_AT(Z, 1);
  memoryBarrierBuffer();
  barrier();
  uint used = 0u;
  if (looked < push.rows) {
    while (looked < push.rows && used < push.budget) {
      const uint row = looked + lane;
      if (row < push.rows) {
        if (TUFF_AT(D, TUFF_INDEX(row)) == 0u) push_row(row, 0u);
      }
      looked += lanes;
      ++used;
    }
    memoryBarrierBuffer();
    barrier();
    if (looked >= push.rows) end = min(tail, push.rows);
  }
  while (position < end && used < push.budget) {
    const uint left = end - position, each = lanes_of_row(left), count = min(lanes / each, left);
    const uint which = lane / each, part = lane % each;
    uint row = 0u, first = 0u, last = 0u;
    if (which < count) {
      row = min(TUFF_AT(Q, TUFF_INDEX(position + which)), push.rows - 1u);
      first = TUFF_AT(O, TUFF_INDEX(row)), last = max(TUFF_AT(O, TUFF_INDEX(row + 1u)), first);
    }
    const uint need = most_iterations(lane, last - first, each), todo = min(need - done, push.budget - used);
    for (uint k = 0u; k < todo; ++k) {
      const uint e = first + part + (done + k) * UNROLL * each;
      UNROLLED(if (e + u * each < last) tell(row, e + u * each, level + 1u))
    }
    used += max(todo, 1u), done += todo;
    if (done >= need) {
      done = 0u, position += count;
      if (position == end) {
        memoryBarrierBuffer();
        barrier();
        end = min(tail, push.rows), ++level;
      }
    }
  }
  barrier();
  if (lane == 0u) {
    TUFF_AT(Z, 0) = min(looked, push.rows);
    TUFF_AT(Z, 1) = tail;
    TUFF_AT(Z, 2) = position;
    TUFF_AT(Z, 3) = end;
    TUFF_AT(Z, 4) = done;
    TUFF_AT(Z, 5) = level;
  }
}
