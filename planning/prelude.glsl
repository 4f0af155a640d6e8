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
//
// A batch may come as buffers by the hundred (Dispatch::operand_each). TUFF_EACH then has a bit for each slot that is
// one buffer for each matrix; their bases lie in a table in slot TUFF_TABLE, behind all others, matrix by matrix, and
// TUFF_TAKE(i) makes matrix i's those that TUFF_AT goes by. It is nothing where TUFF_EACH is 0.
// A kernel of which anything is precise is precise in all of its arithmetic, but for fma (runtime/vulkan/precise_spirv.hpp).
// Where an invocation takes several items one after another, RUN is how many: TUFF_RUN, or push.run where that is 0.
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_shuffle : require

#ifndef TUFF_EACH
#define TUFF_EACH 0
#endif

#ifdef TUFF_RUN
#if TUFF_RUN == 0
#define RUN push.run
#else
#define RUN TUFF_RUN
#endif
#endif

#if TUFF_ADDRESSES
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require

#define TUFF_BASE_TYPE uint64_t
#define TUFF_DECLARE(qualifier, slot, name, type, size)                                        \
  const uint name##_slot = slot;                                                               \
  const uint name##_size = size;                                                               \
  layout(buffer_reference, std430, buffer_reference_align = size) qualifier buffer name##_ref { \
    type v[];                                                                                  \
  };
#if TUFF_WIDE
#define TUFF_INDEX uint64_t
#define TUFF_AT(name, i) name##_ref(TUFF_BASE(name##_slot) + uint64_t(i) * name##_size).v[0]
#else
#define TUFF_INDEX uint
#define TUFF_AT(name, i) name##_ref(TUFF_BASE(name##_slot)).v[i]
#endif

#else

#define TUFF_BASE_TYPE uvec2
#define TUFF_DECLARE(qualifier, slot, name, type, size) \
  const uint name##_slot = slot;                        \
  const uint name##_size = size;                        \
  layout(std430, set = 0, binding = slot) qualifier buffer name##_block { type v[]; } name##_buffer;
#define TUFF_INDEX uint
#define TUFF_AT(name, i) name##_buffer.v[(i) + TUFF_BASE(name##_slot).x / name##_size]

#endif

#if TUFF_EACH
#define TUFF_BASES(count) TUFF_BASE_TYPE tuff_base[count + 1];
TUFF_BASE_TYPE tuff_each_base[TUFF_TABLE];
#define TUFF_BASE(slot) ((TUFF_EACH >> slot & 1) != 0 ? tuff_each_base[slot] : push.tuff_base[slot])
#if TUFF_ADDRESSES
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer tuff_table_ref { TUFF_BASE_TYPE v[]; };
#define TUFF_TABLE_AT(i) tuff_table_ref(push.tuff_base[TUFF_TABLE]).v[i]
#else
layout(std430, set = 0, binding = TUFF_TABLE) readonly buffer tuff_table_block { TUFF_BASE_TYPE v[]; } tuff_table;
#define TUFF_TABLE_AT(i) tuff_table.v[(i) + push.tuff_base[TUFF_TABLE].x / 8]
#endif
#define TUFF_TAKE(i)                                                                    \
  {                                                                                     \
    uint tuff_at = uint(i) * bitCount(uint(TUFF_EACH));                                 \
    [[unroll]] for (int tuff_slot = 0; tuff_slot < TUFF_TABLE; ++tuff_slot) {           \
      if ((TUFF_EACH >> tuff_slot & 1) != 0) {                                          \
        tuff_each_base[tuff_slot] = TUFF_TABLE_AT(tuff_at);                             \
        ++tuff_at;                                                                      \
      }                                                                                 \
    }                                                                                   \
  }
#else
#define TUFF_BASES(count) TUFF_BASE_TYPE tuff_base[count];
#define TUFF_BASE(slot) push.tuff_base[slot]
#define TUFF_TAKE(i)
#endif

#define TUFF_READ(slot, name, type, size) TUFF_DECLARE(readonly, slot, name, type, size)
#define TUFF_WRITE(slot, name, type, size) TUFF_DECLARE(writeonly, slot, name, type, size)
#define TUFF_READ_WRITE(slot, name, type, size) TUFF_DECLARE(, slot, name, type, size)

// This group's number in a dispatch made by Dispatch::groups_linear. TUFF_GROUP_ROWS 1: one row did not hold the groups.
// What asks for the number of groups waits for it on an H200: 0.25 us of a small operation's 2.1.
#if TUFF_GROUP_ROWS
uint tuff_group() { return gl_WorkGroupID.x + gl_NumWorkGroups.x * gl_WorkGroupID.y; }
#else
uint tuff_group() { return gl_WorkGroupID.x; }
#endif

#define TUFF_INFINITY uintBitsToFloat(0x7f800000u)
#define TUFF_NAN uintBitsToFloat(0x7fc00000u)

// The drivers' isnan may be folded away under fast-math rules; the bits never are.
bool tuff_isnan(float x) { return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u; }
