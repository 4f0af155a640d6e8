// UNIT is the type of one or several elements in memory, HELD that of the same in a register.
//# TUFF_UNIT : 1|2|4|8|16 : bytes of a unit
//# TUFF_LONG = 0 : 0|1 : 1: units of 8 and 16 bytes are 64-bit integers (kernels/elementwise/blocks.glsl says why)
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_8bit_storage : require
#if TUFF_LONG
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#endif
#if TUFF_UNIT == 1
#define UNIT uint8_t
#define HELD uint
#elif TUFF_UNIT == 2
#define UNIT uint16_t
#define HELD uint
#elif TUFF_UNIT == 4
#define UNIT uint
#elif TUFF_UNIT == 8
#if TUFF_LONG
#define UNIT uint64_t
#else
#define UNIT uvec2
#endif
#elif TUFF_LONG
#define UNIT u64vec2
#else
#define UNIT uvec4
#endif
#ifndef HELD
#define HELD UNIT
#endif
