// A pointer to an operand's element, computed once: on a CPU driver, reading push constants and bases again for each
// access costs as much as the access itself. Views of several elements count in their own units.
//
//   TUFF_POINTER(X4, rows, first)          declares the pointer `rows`
//   TUFF_FROM(X4, rows, i)                 is element first + i of X4
#if TUFF_ADDRESSES
#define TUFF_POINTER(view, pointer, first) \
  view##_ref pointer = view##_ref(TUFF_BASE(view##_slot) + uint64_t(first) * view##_size)
#if TUFF_WIDE || TUFF_FAR
#define TUFF_FROM(view, pointer, i) view##_ref(uint64_t(pointer) + uint64_t(i) * view##_size).v[0]
#else
#define TUFF_FROM(view, pointer, i) pointer.v[i]
#endif
#else
#define TUFF_POINTER(view, pointer, first) uint pointer = (first) + TUFF_BASE(view##_slot).x / view##_size
#define TUFF_FROM(view, pointer, i) view##_buffer.v[pointer + (i)]
#endif
