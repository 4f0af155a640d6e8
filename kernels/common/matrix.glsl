// Subgroup matrices (cooperative matrices), under one set of names. Debian 12's glslang knows the NV extension
// alone: with TUFF_KHR_MATRICES 0 a kernel is written in it, and the runtime rewrites the module to the KHR
// instructions (runtime/vulkan/matrix_spirv.hpp), which is what the device is given either way.
//
// NV has one matrix type where KHR has three by use: dimensions are specialisation constants of their own
// for each use, so that the three stay apart until then.
//
//   MATRIX_A, MATRIX_B, MATRIX_C        the types: MM x MK, MK x MN, MM x MN
//   MATRIX_LOAD(x, array, index, stride, column_major)
//   MATRIX_STORE(x, array, index, stride)     row by row
//   MATRIX_MULTIPLY_ADD(a, b, c)
//
//# MM : 8|16|32 : rows of a matrix of sums, and of A: the device's shape
//# MN : 8|16|32 : columns of a matrix of sums, and of B
//# MK : 8|16|32 : columns of A, rows of B
// From the runtime, by KernelRequest::matrices(): TUFF_KHR_MATRICES, and TUFF_MATRICES_INT8, 1: 8-bit integers summed in
// 32; 0: 16-bit numbers summed in f32 (as f16; bf16 is made of it when the module is rewritten).
#extension GL_KHR_memory_scope_semantics : require
#if TUFF_KHR_MATRICES
#extension GL_KHR_cooperative_matrix : require
#if TUFF_MATRICES_INT8
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#define MATRIX_ELEMENT int8_t
#define MATRIX_SUM int
#else
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#define MATRIX_ELEMENT float16_t
#define MATRIX_SUM float
#endif
#define MATRIX_A coopmat<MATRIX_ELEMENT, gl_ScopeSubgroup, MM, MK, gl_MatrixUseA>
#define MATRIX_B coopmat<MATRIX_ELEMENT, gl_ScopeSubgroup, MK, MN, gl_MatrixUseB>
#define MATRIX_C coopmat<MATRIX_SUM, gl_ScopeSubgroup, MM, MN, gl_MatrixUseAccumulator>
#define MATRIX_LOAD(x, array, index, stride, column_major) \
  coopMatLoad(x, array, index, stride,                     \
              (column_major) ? gl_CooperativeMatrixLayoutColumnMajor : gl_CooperativeMatrixLayoutRowMajor)
#define MATRIX_STORE(x, array, index, stride) coopMatStore(x, array, index, stride, gl_CooperativeMatrixLayoutRowMajor)
#define MATRIX_MULTIPLY_ADD(a, b, c) coopMatMulAdd(a, b, c)
#else
#extension GL_NV_cooperative_matrix : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
layout(constant_id = 100) const uint matrix_a_rows = MM;
layout(constant_id = 101) const uint matrix_a_cols = MK;
layout(constant_id = 102) const uint matrix_b_rows = MK;
layout(constant_id = 103) const uint matrix_b_cols = MN;
layout(constant_id = 104) const uint matrix_c_rows = MM;
layout(constant_id = 105) const uint matrix_c_cols = MN;
#if TUFF_MATRICES_INT8
#extension GL_NV_integer_cooperative_matrix : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#define MATRIX_A icoopmatNV<8, gl_ScopeSubgroup, matrix_a_rows, matrix_a_cols>
#define MATRIX_B icoopmatNV<8, gl_ScopeSubgroup, matrix_b_rows, matrix_b_cols>
#define MATRIX_C icoopmatNV<32, gl_ScopeSubgroup, matrix_c_rows, matrix_c_cols>
#else
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#define MATRIX_A fcoopmatNV<16, gl_ScopeSubgroup, matrix_a_rows, matrix_a_cols>
#define MATRIX_B fcoopmatNV<16, gl_ScopeSubgroup, matrix_b_rows, matrix_b_cols>
#define MATRIX_C fcoopmatNV<32, gl_ScopeSubgroup, matrix_c_rows, matrix_c_cols>
#endif
#define MATRIX_LOAD(x, array, index, stride, column_major) coopMatLoadNV(x, array, index, stride, column_major)
#define MATRIX_STORE(x, array, index, stride) coopMatStoreNV(x, array, index, stride, false)
#define MATRIX_MULTIPLY_ADD(a, b, c) coopMatMulAddNV(a, b, c)
#endif
