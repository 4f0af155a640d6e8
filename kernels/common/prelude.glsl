// Put in front of every kernel, after #version and the kernel's defines.
//
// Operands are reached in one of two ways, chosen by the recorder from what this driver is faster with
// and how large the operands are; a kernel is written once for both:
//   TUFF_ADDRESSES 0: storage buffers (push descriptors); the base is the byte distance from the
//                     aligned start of the descriptor
//   TUFF_ADDRESSES 1: buffer device addresses; the base is the address
// TUFF_WIDE 1 computes element addresses with 64 bits (implies TUFF_ADDRESSES).
//
// A kernel declares its push block first, then its operands by slot (several views of one slot may
// differ in type), then uses TUFF_AT:
//
//   layout(push_constant, std430) uniform Push { TUFF_BASES(2) uint n; } push;
//   TUFF_READ(0, X, float, 4)
//   TUFF_READ(0, X4, vec4, 16)
//   TUFF_WRITE(1, Y, float, 4)
//   … TUFF_AT(Y, i) = max(TUFF_AT(X, i), 0.0);
//
// The last number is the element's size in bytes. TUFF_INDEX is the type for element indices: uint, or
// uint64_t when wide.
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_shuffle : require

#if TUFF_ADDRESSES
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require

#define TUFF_BASES(count) uint64_t tuff_base[count];
#define TUFF_DECLARE(qualifier, slot, name, type, size)                                        \
  const uint name##_slot = slot;                                                               \
  const uint name##_size = size;                                                               \
  layout(buffer_reference, std430, buffer_reference_align = size) qualifier buffer name##_ref { \
    type v[];                                                                                  \
  };
#if TUFF_WIDE
#define TUFF_INDEX uint64_t
#define TUFF_AT(name, i) name##_ref(push.tuff_base[name##_slot] + uint64_t(i) * name##_size).v[0]
#else
#define TUFF_INDEX uint
#define TUFF_AT(name, i) name##_ref(push.tuff_base[name##_slot]).v[i]
#endif

#else

#define TUFF_BASES(count) uvec2 tuff_base[count];
#define TUFF_DECLARE(qualifier, slot, name, type, size) \
  const uint name##_slot = slot;                        \
  const uint name##_size = size;                        \
  layout(std430, set = 0, binding = slot) qualifier buffer name##_block { type v[]; } name##_buffer;
#define TUFF_INDEX uint
#define TUFF_AT(name, i) name##_buffer.v[(i) + push.tuff_base[name##_slot].x / name##_size]

#endif

#define TUFF_READ(slot, name, type, size) TUFF_DECLARE(readonly, slot, name, type, size)
#define TUFF_WRITE(slot, name, type, size) TUFF_DECLARE(writeonly, slot, name, type, size)
#define TUFF_READ_WRITE(slot, name, type, size) TUFF_DECLARE(, slot, name, type, size)

// This group's number in a dispatch made by Dispatch::groups_linear.
uint tuff_group() { return gl_WorkGroupID.x + gl_NumWorkGroups.x * gl_WorkGroupID.y; }

#define TUFF_INFINITY uintBitsToFloat(0x7f800000u)
#define TUFF_NAN uintBitsToFloat(0x7fc00000u)

// The drivers' isnan may be folded away under fast-math rules; the bits never are.
bool tuff_isnan(float x) { return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u; }
