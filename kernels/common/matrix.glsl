// Cooperative matrices, with one set of names for two extensions. Debian 12's glslang supports only the NV extension.
// With TUFF_KHR_MATRICES 0 a kernel is compiled with it, and the runtime rewrites the module to the KHR instructions
// (runtime/vulkan/matrix_spirv.hpp), so that the device gets these either way.
//
// NV has a single matrix type where KHR has three, by use. Each use has its own specialisation constants for the
// dimensions, so that the rewriting can tell the three apart.
//
//   MATRIX_A, MATRIX_B, MATRIX_C        the types: MM x MK, MK x MN, MM x MN
//   MATRIX_LOAD(x, array, index, stride, column_major)
//   MATRIX_STORE(x, array, index, stride)     row by row
//   MATRIX_MULTIPLY_ADD(a, b, c)
//
//# MM : 8|16|32 : rows of the accumulator and of A, of a shape that the device supports
//# MN : 8|16|32 : columns of the accumulator and of B
//# MK : 8|16|32 : columns of A, rows of B
// The runtime sets, by KernelRequest::matrices(): TUFF_KHR_MATRICES; and TUFF_MATRICES_INT8, 1: 8-bit integers with
// 32-bit sums; 0: 16-bit numbers with sums in f32 (compiled as f16; the module is rewritten for bf16).
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
