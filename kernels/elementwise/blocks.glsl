// Access to operands four elements at a time, in the way that the device and the alignment allow.
//   TUFF_VECTOR 0   four loads of one element: any offset that is a multiple of 4 bytes
//   TUFF_VECTOR 1   one 16-byte load; the operand starts at a multiple of 16 bytes
//   TUFF_VECTOR 2   the same, as two 64-bit integers: a driver that runs lanes of a processor's vector one
//                   after another for each component (Mesa's lavapipe) needs half as many steps (measured:
//                   13 to 26 GB/s instead of 7 to 10)
// After TUFF_BLOCKS_READ(slot, X) or TUFF_BLOCKS_WRITE(slot, Y): X_scalar and X_block are views for
// TUFF_AT, and TUFF_LOAD4(X, block), TUFF_STORE4(Y, block, value) move elements 4 * block … + 3.
#if TUFF_VECTOR == 2
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#define TUFF_BLOCK_TYPE u64vec2
vec4 tuff_unpack(u64vec2 b) { return uintBitsToFloat(uvec4(unpackUint2x32(b.x), unpackUint2x32(b.y))); }
u64vec2 tuff_pack(vec4 v) {
  uvec4 b = floatBitsToUint(v);
  return u64vec2(packUint2x32(b.xy), packUint2x32(b.zw));
}
#else
#define TUFF_BLOCK_TYPE vec4
vec4 tuff_unpack(vec4 b) { return b; }
vec4 tuff_pack(vec4 v) { return v; }
#endif

#define TUFF_BLOCKS_READ(slot, name) TUFF_READ(slot, name##_scalar, float, 4) TUFF_READ(slot, name##_block, TUFF_BLOCK_TYPE, 16)
#define TUFF_BLOCKS_WRITE(slot, name) TUFF_WRITE(slot, name##_scalar, float, 4) TUFF_WRITE(slot, name##_block, TUFF_BLOCK_TYPE, 16)

#if TUFF_VECTOR
#define TUFF_LOAD4(name, i) tuff_unpack(TUFF_AT(name##_block, i))
#define TUFF_STORE4(name, i, value) TUFF_AT(name##_block, i) = tuff_pack(value)
#else
#define TUFF_LOAD4(name, i)                                                                              \
  vec4(TUFF_AT(name##_scalar, 4 * (i)), TUFF_AT(name##_scalar, 4 * (i) + 1), TUFF_AT(name##_scalar, 4 * (i) + 2), \
       TUFF_AT(name##_scalar, 4 * (i) + 3))
#define TUFF_STORE4(name, i, value)                 \
  {                                                 \
    vec4 tuff_stored = value;                       \
    TUFF_AT(name##_scalar, 4 * (i)) = tuff_stored.x;     \
    TUFF_AT(name##_scalar, 4 * (i) + 1) = tuff_stored.y; \
    TUFF_AT(name##_scalar, 4 * (i) + 2) = tuff_stored.z; \
    TUFF_AT(name##_scalar, 4 * (i) + 3) = tuff_stored.w; \
  }
#endif
