// The gradient of attention by the bias: adds up the slopes of pairs of rows and keys that share an element of it. An
// invocation has RUN elements of the gradient, those of successive keys, and adds in a fixed order.
//
//   zero    all elements become 0
//   write   elements become the slopes of a block of pairs, each of which has an element of its own
//   add     adds the slopes of a block to sums in f32
//   round   elements become sums in f32, which are dense
//
//# MODE : 0..3 : zero, write, add, round
//# RUN  : 1|16 : CPU devices: 16, since what an invocation finds out about its place is as much work as an element
//# TYPE : 1..3 : TUFF_* type of what is written
#include "kernels/common/types.glsl"

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  TUFF_INDEX batch, head, row;  // strides of what is written, in elements; 0 along what is shared
  uint items;                   // runs of elements
  uint first, units;            // write, add: kv heads of all batch elements, whose blocks these are; otherwise batch elements and
  uint heads;                   // heads of what is written; write, add: kv heads of a batch element
  uint sharing, sharer;         // heads that share a kv head, and which of them these are
  uint shared_axes;             // 1: batch elements share an element, 2: heads, 3: both
  uint row0, rows;              // rows of a block; rows that an element has
  uint key0, keys;
} push;
TUFF_READ(0, Slopes, float, 4)
TUFF_READ_WRITE(1, Gradient, TUFF_STORED(TYPE), TUFF_BYTES(TYPE))

layout(local_size_x_id = 0) in;

void main() {
  const uint item = tuff_group() * gl_WorkGroupSize.x + gl_LocalInvocationIndex;
  if (item >= push.items) return;
  const uint keys = push.keys, rows = push.rows, runs = (keys + RUN - 1) / RUN;
  const uint key = item % runs * RUN, row = item / runs % rows, slot = item / runs / rows;
#if MODE == 0 || MODE == 3
  const uint number = push.first + slot, batch = number / push.heads, head = number % push.heads;
#else
  // The units that share the element: from `unit` on, in steps.
  uint unit = slot, count = 1, step = 1, batch = 0, head = 0;
  if (push.shared_axes == 0) {
    batch = (push.first + slot) / push.heads;
    head = (push.first + slot) % push.heads * push.sharing + push.sharer;
  } else if (push.shared_axes == 1) {
    step = push.heads;
    count = (push.units - slot + step - 1) / step;
    head = (push.first + slot) % push.heads * push.sharing + push.sharer;
  } else if (push.shared_axes == 2) {
    batch = push.first / push.heads + slot;
    const uint begin = max(batch * push.heads, push.first), end = min((batch + 1) * push.heads, push.first + push.units);
    unit = begin - push.first;
    count = end - begin;
  } else {
    count = push.units;
  }
#endif
  const TUFF_INDEX at = batch * push.batch + head * push.head + (push.row0 + row) * push.row + push.key0 + key;
#if MODE == 3
  const TUFF_INDEX from = (TUFF_INDEX(number) * rows + row) * keys + key;
#elif MODE != 0
  const uint from = (unit * rows + row) * keys + key, other = step * rows * keys;
#endif
  [[dont_unroll]] for (uint j = 0; j < min(RUN, keys - key); ++j) {
#if MODE == 0
    TUFF_AT(Gradient, at + j) = TUFF_ROUNDED(TYPE, 0.0);
#elif MODE == 3
    TUFF_AT(Gradient, at + j) = TUFF_ROUNDED(TYPE, TUFF_AT(Slopes, from + j));
#else
    float sum = 0.0;
    [[dont_unroll]] for (uint i = 0; i < count; ++i) sum += TUFF_AT(Slopes, from + i * other + j);
#if MODE == 2
    sum += TUFF_LOADED(TYPE, TUFF_AT(Gradient, at + j));
#endif
    TUFF_AT(Gradient, at + j) = TUFF_ROUNDED(TYPE, sum);
#endif
  }
}
