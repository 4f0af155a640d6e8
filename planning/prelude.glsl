// Prepended to every kernel, after #version and the kernel's defines.
//
// Operands are accessed in one of two ways. The recorder chooses by what is faster with the driver and by how large the
// operands are; a kernel is written once for both:
//   TUFF_ADDRESSES 0: storage buffers (push descriptors); the base is the operand's byte offset from the
//                     aligned start of the descriptor
//   TUFF_ADDRESSES 1: buffer device addresses; the base is the address
// TUFF_WIDE 1 computes element indices and addresses with 64 bits (implies TUFF_ADDRESSES).
// TUFF_FAR 1 computes addresses with 64 bits, from indices of 32 bits: some operand is larger than 4 GiB. Without it,
// NVIDIA's compiler computes an array's offsets in bytes with 32 bits.
//
// A kernel declares its push block first, then its operands by slot (one slot may have several views
// of different types), then uses TUFF_AT:
//
//   layout(push_constant, std430) uniform Push { TUFF_BASES(2) uint n; } push;
//   TUFF_READ(0, X, float, 4)
//   TUFF_READ(0, X4, vec4, 16)
//   TUFF_WRITE(1, Y, float, 4)
//   … TUFF_AT(Y, i) = max(TUFF_AT(X, i), 0.0);
//
// The last argument is the element size in bytes. TUFF_INDEX is the type of element indices: uint, or uint64_t if wide.
//
// TUFF_TEXELS 1: operands declared by TUFF_READ_TEXELS are texel buffers, with texels of their elements' size, and read by
// TUFF_TEXEL(name, i), a uvec4 whose first words are the element's bits. Otherwise they are declared by TUFF_READ, and read
// by TUFF_AT. KernelRequest::texels() lists them. Mesa's CPU driver reads the elements of a storage buffer lane by lane,
// each with a branch, and gathers those of a texel buffer by a vector instruction: a third of the time (measured with Mesa
// 22.3 and AVX2).
//
// An operand may have one buffer per matrix of a batch (Dispatch::operand_each). TUFF_EACH has a bit for each slot of
// that kind. Their bases are in a table in slot TUFF_TABLE, which follows all other slots, ordered by matrix;
// TUFF_TAKE(i) makes TUFF_AT use those of matrix i. It expands to nothing if TUFF_EACH is 0.
//
// If anything in a kernel is declared precise, all of the kernel's arithmetic is precise, except fma
// (runtime/vulkan/precise_spirv.hpp).
//
// RUN is the number of items that an invocation processes one after another: TUFF_RUN, or push.run if TUFF_RUN is 0.
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
#else
#define TUFF_INDEX uint
#endif
#if TUFF_WIDE || TUFF_FAR
#define TUFF_AT(name, i) name##_ref(TUFF_BASE(name##_slot) + uint64_t(i) * name##_size).v[0]
#else
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

#ifndef TUFF_TEXELS
#define TUFF_TEXELS 0
#endif
#if TUFF_TEXELS
#define TUFF_READ_TEXELS(slot, name, type, size) \
  const uint name##_slot = slot;                 \
  const uint name##_size = size;                 \
  layout(set = 0, binding = slot) uniform usamplerBuffer name##_texels;
#define TUFF_TEXEL(name, i) texelFetch(name##_texels, int((i) + TUFF_BASE(name##_slot).x / name##_size))
#else
#define TUFF_READ_TEXELS(slot, name, type, size) TUFF_READ(slot, name, type, size)
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

// This workgroup's index in a dispatch sized by Dispatch::groups_linear. TUFF_GROUP_ROWS 1: the workgroups take more
// than one row. Reading gl_NumWorkGroups is avoided otherwise: its latency on an H200 is 0.25 us of a small operation's
// 2.1 us.
#if TUFF_GROUP_ROWS
uint tuff_group() { return gl_WorkGroupID.x + gl_NumWorkGroups.x * gl_WorkGroupID.y; }
#else
uint tuff_group() { return gl_WorkGroupID.x; }
#endif

#define TUFF_INFINITY uintBitsToFloat(0x7f800000u)
#define TUFF_NAN uintBitsToFloat(0x7fc00000u)

// Drivers may fold isnan() away under fast-math rules, but not this test of the bits.
bool tuff_isnan(float x) { return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u; }
