/* Tuff's plug-ins: a shared library that computes Tuff's operations, or some of them, on memory of the process.
 *
 * A plug-in exports one function, tuff_backend_entry(), which returns a structure of functions. Tuff does everything
 * else: it checks each call and its handles, reports errors, orders the calls of all streams, holds the buffers, copies
 * and profiles. A plug-in therefore sees only valid calls, one at a time for each device that it has open. What it
 * does not compute, Tuff's host backend computes; it is a complete device with a single function of its own.
 *
 * Callers of Tuff do not need this header: tuff_backend_register() and tuff_context_desc.backend are in tuff.h.
 * docs/backends.md describes how plug-ins are found, and examples/backend/ is a complete one.
 *
 * Since 0.9.0.
 */
#ifndef TUFF_BACKEND_H
#define TUFF_BACKEND_H

#include "tuff/tuff.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Incremented with every incompatible change of this header. Tuff refuses plug-ins of another number. */
#define TUFF_BACKEND_ABI_VERSION 1

/* Computes one call of an operation.
 *   device   what tuff_backend.open returned
 *   call     the operation's descriptor, complete (below)
 * Returns TUFF_OK after the results are written; TUFF_ERROR_UNSUPPORTED, with every input as it was, to have Tuff compute
 * the call; or TUFF_ERROR_OUT_OF_HOST_MEMORY, with every operand as it was, since a call that fails changes nothing. So a
 * function allocates before it writes. The caller of Tuff sees any other status as TUFF_ERROR_INTERNAL. No exception leaves
 * the function. */
typedef tuff_status (*tuff_backend_function)(void* device, const void* call);

/* What a function for an operation gets as its call. Each is the descriptor of the operation's function in tuff.h, with
 * these differences:
 *   buffers    A tuff_buffer is the address of its first byte in the process, as a number; 0 for an operand that the
 *              call does not have. It is aligned to its element type. Outputs may be exactly an input where tuff.h says
 *              so, and overlap none otherwise
 *   defaults   Every field has its value: a zero that selects a default is replaced by what it selects. struct_size is
 *              that of the structure in the library. A plug-in returns TUFF_ERROR_UNSUPPORTED if struct_size is not the
 *              one that it was built with, or a field has a value that it does not know
 *   empty      A call with no results is not passed on
 *
 *   operation              call
 *   gemm, batched_gemm     tuff_batched_gemm_desc; a_array, b_array and c_array are NULL, and dtype is that of A
 *   conv1d, conv2d,        tuff_backend_conv
 *   conv3d, conv_transpose2d
 *   attention              tuff_attention_desc
 *   reduce                 tuff_reduce_desc; axis_count is not 0
 *   softmax                tuff_softmax_desc; mask_rows is 0 without a mask
 *   unary, binary          tuff_unary_desc, tuff_binary_desc; n of binary is the number of results, and its rank is 0
 *                          unless an operand is repeated
 *   max_pool, avg_pool     tuff_pool_desc with spatial 3, missing axes in front; `adaptive` too if a window covers the
 *                          whole plane
 *   layer_norm, rms_norm, group_norm, batch_norm
 *                          tuff_layer_norm_desc, tuff_rms_norm_desc, tuff_group_norm_desc, tuff_batch_norm_desc
 *   permute, cast          tuff_permute_desc, tuff_cast_desc
 *   gather                 tuff_backend_gather, for indices along one axis
 *   expr                   tuff_backend_expr
 *   spmm, spgemm, sparse_triangular_solve
 *                          tuff_spmm_desc, tuff_spgemm_desc and tuff_sparse_triangular_solve_desc. Offsets and indices may
 *                          have any values: they are read as tuff.h says, and never lead out of a buffer
 * Tuff does not ask a plug-in for other operations yet. */

/* A convolution in three dimensions; missing ones are in front, with extent 1, stride 1 and no padding. */
typedef struct tuff_backend_conv {
  uint32_t struct_size;
  int32_t dtype;
  tuff_buffer input, filter, output, bias, residual;
  uint64_t in_shape[5];     /* N, C, D, H, W, whatever the layout */
  uint64_t filter_shape[5]; /* K, C / groups, T, R, S; transposed: C, K / groups, T, R, S */
  uint64_t out_shape[5];    /* N, K, O, P, Q */
  uint64_t stride[3], dilation[3];
  uint64_t padding[3], padding_end[3]; /* before and after */
  uint64_t output_padding[3];          /* transposed: additional outputs at the end */
  uint64_t groups;
  int32_t layout;     /* TUFF_LAYOUT_* */
  int32_t activation; /* TUFF_ACTIVATION_* */
  int32_t precision;  /* TUFF_PRECISION_* */
  int32_t transposed; /* 1: conv_transpose2d */
} tuff_backend_conv;

/* output[o][j][i] = input[o][indices[j]][i], for o < outer, j < count, i < inner. An index that is not below `size`
 * gives zeros; with `negative`, an index below 0 counts from the end. */
typedef struct tuff_backend_gather {
  uint32_t struct_size;
  int32_t dtype, index_type;
  int32_t negative;
  tuff_buffer input, indices, output;
  uint64_t outer, size, inner, count;
} tuff_backend_gather;

/* What a node of an expression is. Since 0.9.0. */
enum {
  TUFF_BACKEND_EXPR_INVALID = -1,
  TUFF_BACKEND_EXPR_INPUT = 1,   /* an element of the input of number `index` */
  TUFF_BACKEND_EXPR_LITERAL = 2, /* `number`, or `integer` if the type is no float */
  TUFF_BACKEND_EXPR_CALL = 3,    /* `function` of args, which have the type of the first of them; of TUFF_BOOL: eq, ne,
                                    lt, le, bitand, bitor and xor */
  TUFF_BACKEND_EXPR_CONVERT = 4, /* args[0] as `type`, as tuff_cast() converts */
  TUFF_BACKEND_EXPR_SELECT = 5,  /* args[1] if args[0] is true, otherwise args[2] */
  TUFF_BACKEND_EXPR_ROUND = 6    /* args[0] rounded to `index`, TUFF_F16 or TUFF_BF16, as f32 */
};

/* A value that an expression computes at each index, from those of nodes before it. */
typedef struct tuff_backend_expr_node {
  int32_t kind;         /* TUFF_BACKEND_EXPR_... */
  int32_t type;         /* TUFF_F32, TUFF_F64, TUFF_BOOL or an integer type: what the value is rounded or wrapped to */
  const char* function; /* its name in docs/expressions.md; operators have those of functions: add, sub, mul, ... */
  uint32_t index, arg_count;
  uint32_t args[3]; /* numbers of nodes */
  uint32_t reserved;
  double number;    /* a literal; the alpha of a function that has one */
  int64_t integer;  /* a literal */
} tuff_backend_expr_node;

/* An input or output of an expression. An element is converted to the type of the nodes that read it, f16 and bf16 to
 * f32, without rounding; a result to the type of the output. */
typedef struct tuff_backend_expr_operand {
  tuff_buffer first;  /* of the element at index 0 of every axis; 0: a scalar */
  int32_t dtype, scalar;
  int64_t strides[8]; /* in elements, of either sign; 0 repeats an input */
  double number;      /* a scalar of a float type */
  int64_t integer;    /* a scalar of an integer type or bool; for u64 its bits */
} tuff_backend_expr_operand;

/* An expression without reductions and complex numbers. An output may be exactly an input, and overlaps none otherwise:
 * all inputs at an index are read before the outputs at that index are written. */
typedef struct tuff_backend_expr {
  uint32_t struct_size;
  uint32_t rank;     /* 0 to 8 */
  uint64_t shape[8]; /* 1 or more along each axis */
  uint64_t program;  /* the same number means the same nodes and results, in every call of the process */
  const tuff_backend_expr_node* nodes;
  const tuff_backend_expr_operand* inputs;
  const tuff_backend_expr_operand* outputs;
  const uint32_t* results; /* of each output: the node that is its value */
  uint32_t node_count, input_count, output_count;
  uint32_t reserved;
} tuff_backend_expr;

/* A plug-in. It stays loaded until the process ends, and so does this structure. Functions may be called from any
 * thread; those that take a device are called one at a time for it. Functions that are NULL are not called. None of
 * these functions, nor the library's constructors, may call Tuff, which would wait for itself. */
typedef struct tuff_backend {
  uint32_t struct_size;
  uint32_t abi_version;  /* TUFF_BACKEND_ABI_VERSION */
  /* What tuff_context_desc.backend chooses it by: 1 to 15 of a-z, 0-9, - and _, and not "vulkan", "host" or "auto". */
  const char* name;
  /* Fills in what is known of name, vendor, driver, driver_version, memory_bytes, compute_units and the rates; Tuff sets
   * the rest. Required. If the device cannot be used here, such as a processor that lacks an instruction, it returns
   * TUFF_ERROR_UNSUPPORTED and the reason in properties->name. */
  tuff_status (*describe)(tuff_device_properties* properties);
  /* Opens the device for a context, and closes it. Required. On failure, TUFF_ERROR_OUT_OF_HOST_MEMORY or
   * TUFF_ERROR_UNSUPPORTED. */
  tuff_status (*open)(void** device);
  void (*close)(void* device);
  /* The function for an operation, by its name as tuff_operation_name() gives it; NULL: Tuff computes it. Called for
   * each operation when a device is opened. Required. */
  tuff_backend_function (*function)(void* device, const char* operation);
  /* Memory for buffers: `bytes` > 0 from an address that is a multiple of 256; if `zeroed` is 1, with zeros. NULL if there
   * is none. Both or neither: without them, Tuff allocates. They may be called from several threads at once. */
  void* (*allocate)(void* device, uint64_t bytes, int32_t zeroed);
  void (*release)(void* device, void* memory, uint64_t bytes);
  /* Whether `function`, one of those that `function` above returned, would compute this call: TUFF_OK or
   * TUFF_ERROR_UNSUPPORTED. No operand is read or written. NULL: nobody can ask. */
  tuff_status (*accepts)(void* device, tuff_backend_function function, const void* call);
} tuff_backend;

/* The function that a plug-in defines and exports. */
#if defined(_WIN32)
#define TUFF_BACKEND_EXPORT __declspec(dllexport)
#elif defined(__GNUC__)
#define TUFF_BACKEND_EXPORT __attribute__((visibility("default")))
#else
#define TUFF_BACKEND_EXPORT
#endif
TUFF_BACKEND_EXPORT const tuff_backend* tuff_backend_entry(void);

#ifdef __cplusplus
}
#endif
#endif /* TUFF_BACKEND_H */
