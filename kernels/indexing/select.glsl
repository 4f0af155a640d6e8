// Shared by select_count.comp and select_write.comp. What is judged is a sequence of elements X: a mask, of which those
// that are not 0 are selected, or elements that are compared with the one before. It is cut into chunks:
//
//   select_count   counts[chunk], how many are selected in each
//   scan_rows      the running sums of the counts: how many are selected up to the end of the chunk
//   select_write   writes those that are selected, and the number of all of them
//
// A long sequence is taken in pieces. Each has these dispatches, and begins where the sum of the earlier ones ends.
//
//# TUFF_OP : 1|2 : TUFF_SELECT_* of tuff.h
//# TUFF_FORM : 0..3 : TUFF_OP 2: elements are 0: integers; 1: floats; 2: bool; 3: complex numbers
//# TUFF_WIDTH : 1|2|4|8|16 : bytes of an element of X
//# TUFF_LANES : 0..128 : 0: a workgroup shares a chunk; otherwise each invocation has a chunk, and this is the size of workgroups
//# TUFF_BLOCKS : 0|1 : 1, with TUFF_OP 1 and TUFF_WIDTH 1: X is read in blocks of 16 elements, at which chunks begin
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_8bit_storage : require
#include "kernels/common/pointer.glsl"
#include "kernels/common/joined.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(7)
  uint n;                      // elements of the piece
  uint before;                 // 1: X begins with the element before the piece
  uint chunks, chunk;          // their number, and the elements of one; the last has the rest
  uint magnitude, magnitude_high;  // the bits of an element, or of its part, that are 0 in 0 and -0; in both words if it has more
  uint infinity;               // the largest magnitude that is no NaN (its high word)
  uint equal_nan;
  uint first, first_high;      // the place of the piece's first element
  uint room, room_high;        // elements for which there is room
} push;

#if TUFF_WIDTH == 1
#define STORED uint8_t
#define BITS uint
#elif TUFF_WIDTH == 2
#define STORED uint16_t
#define BITS uint
#elif TUFF_WIDTH == 4
#define STORED uint
#define BITS uint
#elif TUFF_WIDTH == 8
#define STORED uvec2
#define BITS uvec2
#else
#define STORED uvec4
#define BITS uvec4
#endif
TUFF_READ(0, X, STORED, TUFF_WIDTH)
#if TUFF_BLOCKS
TUFF_READ(0, X16, uvec4, 16)
#endif

#if TUFF_OP == 1
bool is_zero(uint bits) { return (bits & push.magnitude) == 0u; }
bool is_zero(uvec2 bits) { return ((bits.x & push.magnitude) | (bits.y & push.magnitude_high)) == 0u; }
bool is_zero(uvec4 bits) { return is_zero(bits.xy) && is_zero(bits.zw); }
#elif TUFF_FORM == 1 || TUFF_FORM == 3
// A part is a word, or two of f64.
bool parts_differ(uint a, uint b) { return a != b && ((a | b) & push.magnitude) != 0u; }
bool parts_differ(uvec2 a, uvec2 b) {
  return a != b && (((a.x | b.x) & push.magnitude) | ((a.y | b.y) & push.magnitude_high)) != 0u;
}
bool is_nan(uint a) { return (a & push.magnitude) > push.infinity; }
bool is_nan(uvec2 a) {
  const uint high = a.y & push.magnitude_high;
  return high > push.infinity || (high == push.infinity && a.x != 0u);
}
#if TUFF_FORM == 3 && TUFF_WIDTH == 8
#define HOLDS_NAN(a) (is_nan(a.x) || is_nan(a.y))
#define ANY_DIFFERS(a, b) (parts_differ(a.x, b.x) || parts_differ(a.y, b.y))
#elif TUFF_FORM == 3
#define HOLDS_NAN(a) (is_nan(a.xy) || is_nan(a.zw))
#define ANY_DIFFERS(a, b) (parts_differ(a.xy, b.xy) || parts_differ(a.zw, b.zw))
#else
#define HOLDS_NAN(a) is_nan(a)
#define ANY_DIFFERS(a, b) parts_differ(a, b)
#endif
#endif

// Whether an element is selected, and of TUFF_OP 2 whether it differs from the one before.
bool selects(BITS bits, BITS earlier) {
#if TUFF_OP == 1
  return !is_zero(bits);
#elif TUFF_FORM == 0
  return bits != earlier;
#elif TUFF_FORM == 2
  return (bits != BITS(0)) != (earlier != BITS(0));
#else
  const bool nan = HOLDS_NAN(bits), earlier_nan = HOLDS_NAN(earlier);
  return nan || earlier_nan ? !(nan && earlier_nan && push.equal_nan != 0u) : ANY_DIFFERS(bits, earlier);
#endif
}

bool is_selected(uint i) {
#if TUFF_OP == 1
  const BITS bits = BITS(TUFF_AT(X, TUFF_INDEX(i)));
  return selects(bits, bits);
#else
  const uint at = i + push.before;
  if (at == 0u) return true;
  return selects(BITS(TUFF_AT(X, TUFF_INDEX(at))), BITS(TUFF_AT(X, TUFF_INDEX(at - 1u))));
#endif
}

#if TUFF_BLOCKS
// The highest bit of each byte of a word that is selected.
uint selected_bytes(uint word) {
  const uint bits = word & push.magnitude;
  return (((bits & 0x7f7f7f7fu) + 0x7f7f7f7fu) | bits) & 0x80808080u;
}
// A bit for each of 16 elements.
uint selected_bits(uvec4 block) {
  uint selected = 0;
  [[unroll]] for (uint w = 0; w < 4; ++w) {
    // The bits of four bytes move together.
    selected |= ((selected_bytes(block[w]) >> 7) * 0x01020408u >> 24 & 0xfu) << (4 * w);
  }
  return selected;
}
#endif

#if TUFF_LANES
// An invocation takes its chunk in blocks of 16 elements: TAKE(i, selected) gets a bit for each of those from i on. What
// loads need is computed once (pointer.glsl), and an element is compared with the one that was loaded before.
#define FOR_CHUNK(begin, end, TAKE)                                                              \
  DECLARE_CHUNK(begin);                                                                          \
  uint i = begin;                                                                                \
  for (; i + 16 <= end; i += 16) {                                                               \
    uint selected = 0;                                                                           \
    SELECT_BLOCK(begin, i, selected)                                                             \
    TAKE(i, selected)                                                                            \
  }                                                                                              \
  if (i < end) {                                                                                 \
    uint selected = 0;                                                                           \
    for (uint u = 0; i + u < end; ++u) selected |= is_selected(i + u) ? 1u << u : 0u;            \
    TAKE(i, selected)                                                                            \
  }
#if TUFF_BLOCKS
#define DECLARE_CHUNK(begin) TUFF_POINTER(X16, from, TUFF_INDEX((begin) / 16))
#define SELECT_BLOCK(begin, i, selected) selected = selected_bits(TUFF_FROM(X16, from, TUFF_INDEX((i) - (begin)) / 16));
#else
#define DECLARE_CHUNK(begin)                                \
  TUFF_POINTER(X, from, TUFF_INDEX((begin) + push.before)); \
  const bool opens = (begin) + push.before == 0u;           \
  BITS earlier = BITS(TUFF_AT(X, TUFF_INDEX(opens ? 0u : (begin) + push.before - 1u)))
#define SELECT_BLOCK(begin, i, selected)                                             \
  [[unroll]] for (uint u = 0; u < 16; ++u) {                                         \
    const BITS bits = BITS(TUFF_FROM(X, from, TUFF_INDEX((i) - (begin) + u)));       \
    selected |= selects(bits, earlier) ? 1u << u : 0u;                               \
    earlier = bits;                                                                  \
  }                                                                                  \
  selected |= TUFF_OP == 2 && opens && (i) == 0u ? 1u : 0u;
#endif
#endif
