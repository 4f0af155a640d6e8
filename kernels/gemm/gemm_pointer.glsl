// An operand from some element on, worked out once before a loop: reading push constants and bases anew for
// each access costs a CPU driver as much as the access. A view of several elements counts in its own units.
#if TUFF_ADDRESSES
#define GEMM_POINTER(view, pointer, first) \
  view##_ref pointer = view##_ref(push.tuff_base[view##_slot] + uint64_t(first) * view##_size)
#if TUFF_WIDE
#define GEMM_AT(view, pointer, i) view##_ref(uint64_t(pointer) + uint64_t(i) * view##_size).v[0]
#else
#define GEMM_AT(view, pointer, i) pointer.v[i]
#endif
#else
#define GEMM_POINTER(view, pointer, first) uint pointer = (first) + push.tuff_base[view##_slot].x / view##_size
#define GEMM_AT(view, pointer, i) view##_buffer.v[pointer + (i)]
#endif

// Four elements at once. PAIRS 1 loads two as one 64-bit number: where a load is a gather (CPU drivers), that
// costs no more than one element.
#if PAIRS
#define GEMM_FOUR u64vec2
vec2 gemm_unpack(uint64_t pair) { return uintBitsToFloat(unpack32(pair)); }
vec4 gemm_unpack(u64vec2 pairs) { return vec4(gemm_unpack(pairs.x), gemm_unpack(pairs.y)); }
#else
#define GEMM_FOUR vec4
vec2 gemm_unpack(vec2 pair) { return pair; }
vec4 gemm_unpack(vec4 vector) { return vector; }
#endif
