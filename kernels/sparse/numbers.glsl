// Indices and offsets of sparse matrices as they are stored, taken so that any content is harmless.
//
//# TUFF_INDEX_BYTES : 4|8 : bytes of an index and of an offset, signed
#if TUFF_INDEX_BYTES == 8
#define NAME uvec2  // low and high word
#else
#define NAME uint
#endif

// Number i of an operand of indices or offsets.
#if !TUFF_TEXELS
#define NAME_AT(operand, i) TUFF_AT(operand, i)
#elif TUFF_INDEX_BYTES == 8
#define NAME_AT(operand, i) TUFF_TEXEL(operand, i).xy
#else
#define NAME_AT(operand, i) TUFF_TEXEL(operand, i).x
#endif

// Whether `name` is an index below `extent`, which is then `at`. In kernels that are not wide, extents are below 2^31.
bool names(NAME name, TUFF_INDEX extent, out TUFF_INDEX at) {
#if TUFF_WIDE
#if TUFF_INDEX_BYTES == 8
  at = uint64_t(name.y) << 32 | uint64_t(name.x);  // a negative number is beyond every extent
  return at < extent && int(name.y) >= 0;
#else
  at = uint64_t(name);
  return int(name) >= 0 && at < extent;
#endif
#elif TUFF_INDEX_BYTES == 8
  at = name.x;
  return name.y == 0u && at < extent;
#else
  at = name;
  return at < extent;
#endif
}

// An offset as the nearest number from 0 to `most`.
TUFF_INDEX clamped(NAME name, TUFF_INDEX most) {
#if TUFF_INDEX_BYTES == 8
  if (int(name.y) < 0) return TUFF_INDEX(0);
#if TUFF_WIDE
  return min(uint64_t(name.y) << 32 | uint64_t(name.x), most);
#else
  return name.y != 0u ? most : min(name.x, most);
#endif
#else
  return int(name) < 0 ? TUFF_INDEX(0) : min(TUFF_INDEX(name), most);
#endif
}

#if TUFF_INDEX_BYTES == 8
#define STORED_NAME(x) uvec2(uint(x), 0u)
#define NO_NAME uvec2(0xffffffffu)
#else
#define STORED_NAME(x) uint(x)
#define NO_NAME 0xffffffffu
#endif
