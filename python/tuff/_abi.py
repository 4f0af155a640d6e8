"""The tables of tuff.raw. Generated from include/tuff/tuff.h by scripts/api/generate.py: not to be edited."""

from __future__ import annotations

import ctypes
from ctypes import (
    CFUNCTYPE,
    POINTER,
    c_char,
    c_char_p,
    c_double,
    c_int32,
    c_int64,
    c_uint32,
    c_uint64,
    c_uint8,
    c_void_p,
)

from ._structure import Structure

VERSION_MAJOR = 0
VERSION_MINOR = 9
VERSION_PATCH = 0
VERSION = 2304
ABI_VERSION = 1
NULL_HANDLE = 0
KERNEL_MAX_BINDINGS = 32
OP_MAX_ARGUMENTS = 64
MAX_QUEUE_FAMILIES = 8
MAX_MATRIX_SHAPES = 32
EXPR_MAX_INPUTS = 16
EXPR_MAX_OUTPUTS = 8
EXPR_MAX_BUFFERS = 10

# tuff_status
OK = 0
ERROR_INVALID_ARGUMENT = -1
ERROR_INVALID_HANDLE = -2
ERROR_NOT_INITIALIZED = -3
ERROR_UNSUPPORTED = -4
ERROR_OUT_OF_DEVICE_MEMORY = -5
ERROR_OUT_OF_HOST_MEMORY = -6
ERROR_DEVICE_LOST = -7
ERROR_NO_DEVICE = -8
ERROR_COMPILE_FAILED = -9
ERROR_TIMEOUT = -10
ERROR_LIMIT_EXCEEDED = -11
ERROR_IO = -12
ERROR_INTERNAL = -13

# tuff_dtype
DTYPE_INVALID = -1
F32 = 1
F16 = 2
BF16 = 3
F64 = 4
I32 = 5
U32 = 6
I8 = 7
U8 = 8
I64 = 9
U64 = 10
I16 = 11
U16 = 12
BOOL = 13
F8_E4M3 = 14
F8_E5M2 = 15
C64 = 16
C128 = 17

# tuff_transpose
TRANSPOSE_INVALID = -1
NO_TRANS = 0
TRANS = 1
CONJ_TRANS = 2

# tuff_causal
CAUSAL_INVALID = -1
CAUSAL_NONE = 0
CAUSAL_TOP_LEFT = 1
CAUSAL_BOTTOM_RIGHT = 2

# tuff_unary_op
UNARY_INVALID = -1
UNARY_RELU = 1
UNARY_SIGMOID = 2
UNARY_TANH = 3
UNARY_EXP = 4
UNARY_LOG = 5
UNARY_SQRT = 6
UNARY_ABS = 7
UNARY_NEG = 8
UNARY_GELU = 9
UNARY_GELU_TANH = 10
UNARY_SILU = 11
UNARY_LEAKY_RELU = 12
UNARY_ELU = 13
UNARY_HARDSWISH = 14
UNARY_SOFTPLUS = 15
UNARY_SIN = 16
UNARY_COS = 17
UNARY_ERF = 18
UNARY_SQUARE = 19
UNARY_CUBE = 20
UNARY_SIGN = 21
UNARY_FLOOR = 22
UNARY_CEIL = 23
UNARY_ROUND = 24
UNARY_TRUNC = 25
UNARY_RECIPROCAL = 26
UNARY_RSQRT = 27
UNARY_CBRT = 28
UNARY_EXP2 = 29
UNARY_EXPM1 = 30
UNARY_LOG2 = 31
UNARY_LOG10 = 32
UNARY_LOG1P = 33
UNARY_TAN = 34
UNARY_ASIN = 35
UNARY_ACOS = 36
UNARY_ATAN = 37
UNARY_SINH = 38
UNARY_COSH = 39
UNARY_ASINH = 40
UNARY_ACOSH = 41
UNARY_ATANH = 42
UNARY_ERFC = 43
UNARY_SELU = 44
UNARY_SOFTSIGN = 45
UNARY_HARDSIGMOID = 46
UNARY_MISH = 47
UNARY_ERFINV = 48
UNARY_LGAMMA = 49
UNARY_DIGAMMA = 50
UNARY_LOG_SIGMOID = 51

# tuff_binary_op
BINARY_INVALID = -1
BINARY_ADD = 1
BINARY_SUB = 2
BINARY_MUL = 3
BINARY_DIV = 4
BINARY_MAX = 5
BINARY_MIN = 6
BINARY_POW = 7

# tuff_reduce_op
REDUCE_INVALID = -1
REDUCE_SUM = 1
REDUCE_MAX = 2
REDUCE_MIN = 3
REDUCE_MEAN = 4
REDUCE_PROD = 5
REDUCE_ARGMAX = 6
REDUCE_ARGMIN = 7
REDUCE_ANY = 8
REDUCE_ALL = 9
REDUCE_COUNT_NONZERO = 10
REDUCE_SUM_SQUARES = 11
REDUCE_L1 = 12
REDUCE_L2 = 13
REDUCE_VAR = 14
REDUCE_STD = 15
REDUCE_LOGSUMEXP = 16

# tuff_activation
ACTIVATION_INVALID = -1
ACTIVATION_NONE = 0
ACTIVATION_RELU = 1
ACTIVATION_GELU = 2
ACTIVATION_GELU_TANH = 3
ACTIVATION_SILU = 4
ACTIVATION_RELU6 = 5

# tuff_bias_axis
BIAS_INVALID = -1
BIAS_NONE = 0
BIAS_ROWS = 1
BIAS_COLUMNS = 2

# tuff_layout
LAYOUT_INVALID = -1
LAYOUT_NCHW = 0
LAYOUT_NHWC = 1

# tuff_resize_mode
RESIZE_INVALID = -1
RESIZE_NEAREST = 0
RESIZE_NEAREST_EXACT = 1
RESIZE_LINEAR = 2

# tuff_random_distribution
RANDOM_INVALID = -1
RANDOM_BITS = 1
RANDOM_INTEGERS = 2
RANDOM_BERNOULLI = 3
RANDOM_UNIFORM = 4
RANDOM_NORMAL = 5
RANDOM_EXPONENTIAL = 6

# tuff_variates_distribution
VARIATES_INVALID = -1
VARIATES_GAMMA = 1
VARIATES_LOG_GAMMA = 2
VARIATES_VONMISES = 3
VARIATES_POISSON = 4
VARIATES_BINOMIAL = 5
VARIATES_HYPERGEOMETRIC = 6
VARIATES_ZIPF = 7

# tuff_quant_format
QUANT_INVALID = -1
QUANT_I8 = 1
QUANT_U8 = 2
QUANT_I4 = 3
QUANT_U4 = 4
QUANT_Q4_0 = 16
QUANT_Q4_1 = 17
QUANT_Q5_0 = 18
QUANT_Q5_1 = 19
QUANT_Q8_0 = 20
QUANT_Q4_K = 24
QUANT_Q5_K = 25
QUANT_Q6_K = 26

# tuff_quant_granularity
QUANT_GRANULARITY_INVALID = -1
QUANT_PER_TENSOR = 0
QUANT_PER_AXIS = 1
QUANT_PER_BLOCK = 2

# tuff_triangle
TRIANGLE_INVALID = -1
TRIANGLE_LOWER = 0
TRIANGLE_UPPER = 1

# tuff_side
SIDE_INVALID = -1
SIDE_LEFT = 0
SIDE_RIGHT = 1

# tuff_fft_kind
FFT_INVALID = -1
FFT_COMPLEX = 1
FFT_REAL = 2
FFT_TO_REAL = 3

# tuff_fft_norm
FFT_NORM_INVALID = -1
FFT_NORM_NONE = 0
FFT_NORM_SIZE = 1
FFT_NORM_ROOT = 2

# tuff_dct_kind
DCT_INVALID = -1
DCT_1 = 1
DCT_2 = 2
DCT_3 = 3
DCT_4 = 4
DST_1 = 5
DST_2 = 6
DST_3 = 7
DST_4 = 8

# tuff_rnn_cell
RNN_CELL_INVALID = -1
RNN_CELL_LSTM = 0
RNN_CELL_GRU = 1
RNN_CELL_TANH = 2
RNN_CELL_RELU = 3

# tuff_rnn_direction
RNN_DIRECTION_INVALID = -1
RNN_DIRECTION_FORWARD = 0
RNN_DIRECTION_REVERSE = 1
RNN_DIRECTION_BOTH = 2

# tuff_rnn_gates
RNN_GATES_INVALID = -1
RNN_GATES_TORCH = 0
RNN_GATES_ONNX = 1

# tuff_precision
PRECISION_INVALID = -1
PRECISION_DEFAULT = 0
PRECISION_ALLOW_F16 = 1
PRECISION_ALLOW_BF16 = 2
PRECISION_ALLOW_WINOGRAD = 3
PRECISION_ALLOW_TF32 = 4

# tuff_device_type
DEVICE_INVALID = -1
DEVICE_OTHER = 0
DEVICE_INTEGRATED = 1
DEVICE_DISCRETE = 2
DEVICE_VIRTUAL = 3
DEVICE_CPU = 4
DEVICE_HOST = 5

# tuff_log_level
LOG_INVALID = -1
LOG_OFF = 0
LOG_ERROR = 1
LOG_WARNING = 2
LOG_INFO = 3
LOG_DEBUG = 4
LOG_DISPATCH = 5

# tuff_queue_flags
QUEUE_GRAPHICS = 1
QUEUE_COMPUTE = 2
QUEUE_TRANSFER = 4
QUEUE_SPARSE_BINDING = 8

# tuff_subgroup_flags
SUBGROUP_BASIC = 1
SUBGROUP_VOTE = 2
SUBGROUP_ARITHMETIC = 4
SUBGROUP_BALLOT = 8
SUBGROUP_SHUFFLE = 16
SUBGROUP_SHUFFLE_RELATIVE = 32
SUBGROUP_CLUSTERED = 64
SUBGROUP_QUAD = 128

# tuff_alloc_flags
ALLOC_HOST_VISIBLE = 1
ALLOC_UNINITIALIZED = 2
ALLOC_HOST_PINNED = 4
ALLOC_EXPORTABLE = 8

# tuff_norm_kind
NORM_INVALID = -1
NORM_LAYER = 0
NORM_RMS = 1
NORM_GROUP = 2
NORM_BATCH = 3

# tuff_scatter_op
SCATTER_INVALID = -1
SCATTER_SET = 1
SCATTER_ADD = 2
SCATTER_MUL = 3
SCATTER_MAX = 4
SCATTER_MIN = 5

# tuff_select_op
SELECT_INVALID = -1
SELECT_NONZERO = 1
SELECT_UNIQUE = 2

# tuff_pad_mode
PAD_INVALID = -1
PAD_CONSTANT = 0
PAD_EDGE = 1
PAD_REFLECT = 2
PAD_SYMMETRIC = 3
PAD_WRAP = 4

# tuff_optimizer
OPTIMIZER_INVALID = -1
OPTIMIZER_SGD = 0
OPTIMIZER_ADAM = 1
OPTIMIZER_ADAMW = 2
OPTIMIZER_LAMB = 3

# tuff_sparse_format
SPARSE_INVALID = -1
SPARSE_COO = 0
SPARSE_CSR = 1
SPARSE_CSC = 2
SPARSE_DENSE = 3
SPARSE_BSR = 4

# tuff_block_order
BLOCK_ORDER_INVALID = -1
BLOCK_ORDER_ROW_MAJOR = 0
BLOCK_ORDER_COLUMN_MAJOR = 1

# tuff_expr_flags
EXPR_SCALAR = 1

# tuff_event_flags
EVENT_NO_TIMING = 1

# tuff_kernel_language
KERNEL_LANGUAGE_INVALID = -1
KERNEL_GLSL = 0
KERNEL_SPIRV = 1
KERNEL_PTX = 2

# tuff_kernel_flags
KERNEL_ROBUST = 1
KERNEL_UNTRUSTED = 2

# tuff_op_kind
OP_KIND_INVALID = -1
OP_BUFFER = 1
OP_SCALAR = 2

# tuff_op_access
OP_ACCESS_INVALID = -1
OP_NO_ACCESS = 0
OP_READ = 1
OP_WRITE = 2
OP_READ_WRITE = 3


class QueueFamily(ctypes.Structure):
    """tuff_queue_family"""

    _fields_ = [
        ("flags", c_uint32),
        ("count", c_uint32),
        ("timestamp_bits", c_uint32),
        ("reserved", c_uint32),
    ]


class MatrixShape(ctypes.Structure):
    """tuff_matrix_shape"""

    _fields_ = [
        ("m", c_uint32),
        ("n", c_uint32),
        ("k", c_uint32),
        ("a_type", c_int32),
        ("b_type", c_int32),
        ("c_type", c_int32),
    ]


class DeviceProperties(Structure):
    """tuff_device_properties"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("type", c_int32),
        ("name", c_char * 256),
        ("vendor", c_char * 64),
        ("driver", c_char * 256),
        ("backend", c_char * 16),
        ("uuid", c_uint8 * 16),
        ("vendor_id", c_uint32),
        ("device_id", c_uint32),
        ("api_version", c_uint32),
        ("driver_version", c_uint32),
        ("memory_bytes", c_uint64),
        ("memory_free_bytes", c_uint64),
        ("max_allocation_bytes", c_uint64),
        ("max_storage_range_bytes", c_uint64),
        ("max_workgroup_invocations", c_uint32),
        ("max_workgroup_count", c_uint32 * 3),
        ("max_shared_memory_bytes", c_uint32),
        ("max_push_constant_bytes", c_uint32),
        ("subgroup_size", c_uint32),
        ("supports_f16", c_int32),
        ("supports_bf16", c_int32),
        ("supports_f64", c_int32),
        ("supports_int8", c_int32),
        ("supports_matrix_cores", c_int32),
        ("supports_addresses", c_int32),
        ("unified_memory", c_int32),
        ("binding", c_int32),
        ("bandwidth_bytes_per_second", c_double),
        ("f32_flops_per_second", c_double),
        ("max_workgroup_size", c_uint32 * 3),
        ("subgroup_size_min", c_uint32),
        ("subgroup_size_max", c_uint32),
        ("subgroup_operations", c_uint32),
        ("compute_units", c_uint32),
        ("min_storage_alignment", c_uint32),
        ("host_import_alignment", c_uint64),
        ("timestamp_nanoseconds", c_double),
        ("driver_uuid", c_uint8 * 16),
        ("queue_family_count", c_uint32),
        ("matrix_shape_count", c_uint32),
        ("queue_families", QueueFamily * 8),
        ("matrix_shapes", MatrixShape * 32),
    ]


class ContextDesc(Structure):
    """tuff_context_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("validation", c_int32),
        ("device", c_char_p),
        ("backend", c_char_p),
        ("memory_limit_bytes", c_uint64),
        ("prewarm", c_int32),
        ("reserved", c_int32),
    ]


class Stats(Structure):
    """tuff_stats"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("live_buffers", c_uint32),
        ("bytes_in_use", c_uint64),
        ("bytes_reserved", c_uint64),
        ("bytes_peak", c_uint64),
        ("allocations", c_uint64),
        ("dispatches", c_uint64),
        ("submissions", c_uint64),
        ("barriers", c_uint64),
        ("bytes_uploaded", c_uint64),
        ("bytes_downloaded", c_uint64),
        ("shaders_compiled", c_uint64),
        ("shader_cache_hits", c_uint64),
        ("pipelines_created", c_uint64),
        ("vulkan_objects_created", c_uint64),
        ("validation_messages", c_uint64),
        ("kernel_cache_hits", c_uint64),
        ("bytes_staged", c_uint64),
        ("kernels_prewarmed", c_uint64),
        ("kernels_to_prewarm", c_uint64),
        ("pipelines_live", c_uint64),
        ("pipelines_evicted", c_uint64),
    ]


class Limits(Structure):
    """tuff_limits"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("memory_bytes", c_uint64),
        ("wait_milliseconds", c_uint64),
        ("pipelines", c_uint64),
    ]


class AllocDesc(Structure):
    """tuff_alloc_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("flags", c_uint32),
        ("bytes", c_uint64),
        ("name", c_char_p),
    ]


class MemoryStats(Structure):
    """tuff_memory_stats"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("blocks", c_uint32),
        ("bytes_in_use", c_uint64),
        ("bytes_reserved", c_uint64),
        ("bytes_peak", c_uint64),
        ("bytes_free", c_uint64),
        ("bytes_largest_free", c_uint64),
        ("live_allocations", c_uint64),
        ("allocations", c_uint64),
        ("hits", c_uint64),
        ("misses", c_uint64),
        ("fragmentation", c_double),
        ("bytes_limit", c_uint64),
        ("heap_bytes", c_uint64),
        ("heap_budget_bytes", c_uint64),
        ("heap_used_bytes", c_uint64),
        ("bytes_imported", c_uint64),
    ]


class CompactDesc(Structure):
    """tuff_compact_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("max_bytes", c_uint64),
        ("max_milliseconds", c_uint64),
    ]


class Compaction(Structure):
    """tuff_compaction"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("done", c_int32),
        ("bytes_moved", c_uint64),
        ("buffers_moved", c_uint64),
        ("buffers_fixed", c_uint64),
        ("largest_free_before", c_uint64),
        ("largest_free_after", c_uint64),
        ("fragmentation_before", c_double),
        ("fragmentation_after", c_double),
    ]


class MemoryPressure(Structure):
    """tuff_memory_pressure"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("status", c_int32),
        ("bytes_requested", c_uint64),
        ("bytes_needed", c_uint64),
    ]


class MemoryFd(Structure):
    """tuff_memory_fd"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("fd", c_int32),
        ("memory_bytes", c_uint64),
        ("offset", c_uint64),
        ("bytes", c_uint64),
        ("memory_type", c_uint32),
        ("dedicated", c_int32),
        ("device_uuid", c_uint8 * 16),
        ("driver_uuid", c_uint8 * 16),
    ]


class GemmDesc(Structure):
    """tuff_gemm_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("ta", c_int32),
        ("tb", c_int32),
        ("m", c_uint64),
        ("n", c_uint64),
        ("k", c_uint64),
        ("alpha", c_double),
        ("beta", c_double),
        ("a", c_uint64),
        ("b", c_uint64),
        ("c", c_uint64),
        ("lda", c_uint64),
        ("ldb", c_uint64),
        ("ldc", c_uint64),
        ("a_type", c_int32),
        ("b_type", c_int32),
        ("c_type", c_int32),
        ("accumulate", c_int32),
        ("precision", c_int32),
        ("activation", c_int32),
        ("bias_axis", c_int32),
        ("reserved", c_int32),
        ("bias", c_uint64),
        ("residual", c_uint64),
        ("ld_residual", c_uint64),
        ("scale_a", c_uint64),
        ("scale_b", c_uint64),
        ("scale_c", c_uint64),
    ]


class BatchedGemmDesc(Structure):
    """tuff_batched_gemm_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("ta", c_int32),
        ("tb", c_int32),
        ("m", c_uint64),
        ("n", c_uint64),
        ("k", c_uint64),
        ("alpha", c_double),
        ("beta", c_double),
        ("a", c_uint64),
        ("b", c_uint64),
        ("c", c_uint64),
        ("lda", c_uint64),
        ("ldb", c_uint64),
        ("ldc", c_uint64),
        ("stride_a", c_uint64),
        ("stride_b", c_uint64),
        ("stride_c", c_uint64),
        ("batch_count", c_uint64),
        ("a_type", c_int32),
        ("b_type", c_int32),
        ("c_type", c_int32),
        ("accumulate", c_int32),
        ("precision", c_int32),
        ("activation", c_int32),
        ("bias_axis", c_int32),
        ("reserved", c_int32),
        ("bias", c_uint64),
        ("residual", c_uint64),
        ("ld_residual", c_uint64),
        ("stride_bias", c_uint64),
        ("stride_residual", c_uint64),
        ("a_array", POINTER(c_uint64)),
        ("b_array", POINTER(c_uint64)),
        ("c_array", POINTER(c_uint64)),
        ("scale_a", c_uint64),
        ("scale_b", c_uint64),
        ("scale_c", c_uint64),
    ]


class Conv2dDesc(Structure):
    """tuff_conv2d_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("input", c_uint64),
        ("filter", c_uint64),
        ("output", c_uint64),
        ("in_shape", c_uint64 * 4),
        ("filter_shape", c_uint64 * 4),
        ("out_shape", c_uint64 * 4),
        ("stride", c_uint64 * 2),
        ("padding", c_uint64 * 2),
        ("dilation", c_uint64 * 2),
        ("padding_end", c_uint64 * 2),
        ("groups", c_uint64),
        ("asymmetric", c_int32),
        ("layout", c_int32),
        ("activation", c_int32),
        ("precision", c_int32),
        ("bias", c_uint64),
        ("residual", c_uint64),
    ]


class Conv1dDesc(Structure):
    """tuff_conv1d_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("input", c_uint64),
        ("filter", c_uint64),
        ("output", c_uint64),
        ("in_shape", c_uint64 * 3),
        ("filter_shape", c_uint64 * 3),
        ("out_shape", c_uint64 * 3),
        ("stride", c_uint64 * 1),
        ("padding", c_uint64 * 1),
        ("dilation", c_uint64 * 1),
        ("padding_end", c_uint64 * 1),
        ("groups", c_uint64),
        ("asymmetric", c_int32),
        ("layout", c_int32),
        ("activation", c_int32),
        ("reserved", c_int32),
        ("bias", c_uint64),
        ("residual", c_uint64),
    ]


class Conv3dDesc(Structure):
    """tuff_conv3d_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("input", c_uint64),
        ("filter", c_uint64),
        ("output", c_uint64),
        ("in_shape", c_uint64 * 5),
        ("filter_shape", c_uint64 * 5),
        ("out_shape", c_uint64 * 5),
        ("stride", c_uint64 * 3),
        ("padding", c_uint64 * 3),
        ("dilation", c_uint64 * 3),
        ("padding_end", c_uint64 * 3),
        ("groups", c_uint64),
        ("asymmetric", c_int32),
        ("layout", c_int32),
        ("activation", c_int32),
        ("reserved", c_int32),
        ("bias", c_uint64),
        ("residual", c_uint64),
    ]


class ConvTranspose2dDesc(Structure):
    """tuff_conv_transpose2d_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("input", c_uint64),
        ("filter", c_uint64),
        ("output", c_uint64),
        ("in_shape", c_uint64 * 4),
        ("filter_shape", c_uint64 * 4),
        ("out_shape", c_uint64 * 4),
        ("stride", c_uint64 * 2),
        ("padding", c_uint64 * 2),
        ("output_padding", c_uint64 * 2),
        ("dilation", c_uint64 * 2),
        ("groups", c_uint64),
        ("layout", c_int32),
        ("activation", c_int32),
        ("reserved", c_int64),
        ("bias", c_uint64),
    ]


class ConvBackwardDesc(Structure):
    """tuff_conv_backward_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("input", c_uint64),
        ("filter", c_uint64),
        ("doutput", c_uint64),
        ("dinput", c_uint64),
        ("dfilter", c_uint64),
        ("dbias", c_uint64),
        ("in_shape", c_uint64 * 5),
        ("filter_shape", c_uint64 * 5),
        ("out_shape", c_uint64 * 5),
        ("stride", c_uint64 * 3),
        ("padding", c_uint64 * 3),
        ("dilation", c_uint64 * 3),
        ("padding_end", c_uint64 * 3),
        ("groups", c_uint64),
        ("spatial", c_uint32),
        ("asymmetric", c_int32),
        ("layout", c_int32),
        ("reserved", c_int32),
    ]


class AttentionDesc(Structure):
    """tuff_attention_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("q", c_uint64),
        ("k", c_uint64),
        ("v", c_uint64),
        ("o", c_uint64),
        ("batch", c_uint64),
        ("heads", c_uint64),
        ("seq_q", c_uint64),
        ("seq_kv", c_uint64),
        ("head_dim", c_uint64),
        ("scale", c_double),
        ("causal", c_int32),
        ("reserved", c_int32),
        ("kv_heads", c_uint64),
        ("head_dim_v", c_uint64),
        ("q_strides", c_uint64 * 3),
        ("k_strides", c_uint64 * 3),
        ("v_strides", c_uint64 * 3),
        ("o_strides", c_uint64 * 3),
        ("softcap", c_double),
        ("bias", c_uint64),
        ("bias_strides", c_uint64 * 3),
        ("mask", c_uint64),
        ("mask_strides", c_uint64 * 3),
        ("bias_type", c_int32),
        ("reserved2", c_int32),
        ("window_left", c_uint64),
        ("window_right", c_uint64),
        ("q_lengths", c_uint64),
        ("kv_lengths", c_uint64),
        ("lse", c_uint64),
        ("k_format", c_int32),
        ("v_format", c_int32),
        ("k_type", c_int32),
        ("v_type", c_int32),
        ("k_scales", c_uint64),
        ("v_scales", c_uint64),
        ("k_scale_strides", c_uint64 * 3),
        ("v_scale_strides", c_uint64 * 3),
    ]


class AttentionBackwardDesc(Structure):
    """tuff_attention_backward_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("q", c_uint64),
        ("k", c_uint64),
        ("v", c_uint64),
        ("o", c_uint64),
        ("lse", c_uint64),
        ("d_o", c_uint64),
        ("dq", c_uint64),
        ("dk", c_uint64),
        ("dv", c_uint64),
        ("batch", c_uint64),
        ("heads", c_uint64),
        ("seq_q", c_uint64),
        ("seq_kv", c_uint64),
        ("head_dim", c_uint64),
        ("kv_heads", c_uint64),
        ("head_dim_v", c_uint64),
        ("scale", c_double),
        ("softcap", c_double),
        ("causal", c_int32),
        ("bias_type", c_int32),
        ("bias", c_uint64),
        ("mask", c_uint64),
        ("q_lengths", c_uint64),
        ("kv_lengths", c_uint64),
        ("window_left", c_uint64),
        ("window_right", c_uint64),
        ("q_strides", c_uint64 * 3),
        ("k_strides", c_uint64 * 3),
        ("v_strides", c_uint64 * 3),
        ("o_strides", c_uint64 * 3),
        ("d_o_strides", c_uint64 * 3),
        ("dq_strides", c_uint64 * 3),
        ("dk_strides", c_uint64 * 3),
        ("dv_strides", c_uint64 * 3),
        ("bias_strides", c_uint64 * 3),
        ("mask_strides", c_uint64 * 3),
        ("dbias", c_uint64),
        ("dbias_strides", c_uint64 * 3),
    ]


class ReduceDesc(Structure):
    """tuff_reduce_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("op", c_int32),
        ("rank", c_uint32),
        ("input", c_uint64),
        ("output", c_uint64),
        ("shape", c_uint64 * 8),
        ("axis", c_uint32),
        ("reserved", c_uint32),
        ("axis_count", c_uint32),
        ("output_type", c_int32),
        ("correction", c_double),
    ]


class ScanDesc(Structure):
    """tuff_scan_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("input", c_uint64),
        ("output", c_uint64),
        ("shape", c_uint64 * 8),
        ("rank", c_uint32),
        ("axis", c_uint32),
        ("exclusive", c_int32),
        ("reverse", c_int32),
    ]


class SortDesc(Structure):
    """tuff_sort_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("input", c_uint64),
        ("values", c_uint64),
        ("indices", c_uint64),
        ("shape", c_uint64 * 8),
        ("rank", c_uint32),
        ("axis", c_uint32),
        ("k", c_uint64),
        ("index_type", c_int32),
        ("descending", c_int32),
    ]


class UnaryDesc(Structure):
    """tuff_unary_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("op", c_int32),
        ("reserved", c_int32),
        ("input", c_uint64),
        ("output", c_uint64),
        ("n", c_uint64),
        ("alpha", c_double),
    ]


class BinaryDesc(Structure):
    """tuff_binary_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("op", c_int32),
        ("reserved", c_int32),
        ("a", c_uint64),
        ("b", c_uint64),
        ("output", c_uint64),
        ("n", c_uint64),
        ("rank", c_uint32),
        ("reserved2", c_uint32),
        ("a_shape", c_uint64 * 8),
        ("b_shape", c_uint64 * 8),
    ]


class SoftmaxDesc(Structure):
    """tuff_softmax_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("input", c_uint64),
        ("output", c_uint64),
        ("shape", c_uint64 * 8),
        ("rank", c_uint32),
        ("axis", c_uint32),
        ("scale", c_double),
        ("logarithm", c_int32),
        ("mask_type", c_int32),
        ("mask", c_uint64),
        ("mask_rows", c_uint64),
        ("mask_repeat", c_uint64),
    ]


class RandomDesc(Structure):
    """tuff_random_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("distribution", c_int32),
        ("reserved", c_int32),
        ("output", c_uint64),
        ("n", c_uint64),
        ("seed", c_uint64),
        ("sequence", c_uint64),
        ("offset", c_uint64),
        ("low", c_double),
        ("high", c_double),
        ("mean", c_double),
        ("deviation", c_double),
        ("scale", c_double),
        ("probability", c_double),
        ("least", c_int64),
        ("most", c_int64),
    ]


class VariatesDesc(Structure):
    """tuff_variates_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("distribution", c_int32),
        ("reserved", c_int32),
        ("output", c_uint64),
        ("n", c_uint64),
        ("seed", c_uint64),
        ("sequence", c_uint64),
        ("offset", c_uint64),
        ("first", c_uint64),
        ("second", c_uint64),
        ("third", c_uint64),
        ("first_value", c_double),
        ("second_value", c_double),
        ("third_value", c_double),
    ]


class DropoutDesc(Structure):
    """tuff_dropout_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("input", c_uint64),
        ("output", c_uint64),
        ("mask", c_uint64),
        ("n", c_uint64),
        ("seed", c_uint64),
        ("sequence", c_uint64),
        ("offset", c_uint64),
        ("probability", c_double),
    ]


class LayerNormDesc(Structure):
    """tuff_layer_norm_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("input", c_uint64),
        ("weight", c_uint64),
        ("bias", c_uint64),
        ("output", c_uint64),
        ("rows", c_uint64),
        ("cols", c_uint64),
        ("epsilon", c_double),
        ("weight_type", c_int32),
        ("reserved", c_int32),
        ("residual", c_uint64),
        ("sum", c_uint64),
    ]


class RmsNormDesc(Structure):
    """tuff_rms_norm_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("input", c_uint64),
        ("weight", c_uint64),
        ("output", c_uint64),
        ("rows", c_uint64),
        ("cols", c_uint64),
        ("epsilon", c_double),
        ("weight_type", c_int32),
        ("reserved", c_int32),
        ("residual", c_uint64),
        ("sum", c_uint64),
    ]


class GroupNormDesc(Structure):
    """tuff_group_norm_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("input", c_uint64),
        ("weight", c_uint64),
        ("bias", c_uint64),
        ("output", c_uint64),
        ("batch", c_uint64),
        ("channels", c_uint64),
        ("inner", c_uint64),
        ("groups", c_uint64),
        ("epsilon", c_double),
        ("weight_type", c_int32),
        ("reserved", c_int32),
    ]


class BatchNormDesc(Structure):
    """tuff_batch_norm_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("input", c_uint64),
        ("mean", c_uint64),
        ("variance", c_uint64),
        ("weight", c_uint64),
        ("bias", c_uint64),
        ("output", c_uint64),
        ("batch", c_uint64),
        ("channels", c_uint64),
        ("inner", c_uint64),
        ("epsilon", c_double),
        ("weight_type", c_int32),
        ("reserved", c_int32),
    ]


class NormBackwardDesc(Structure):
    """tuff_norm_backward_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("kind", c_int32),
        ("weight_type", c_int32),
        ("statistics_type", c_int32),
        ("frozen", c_int32),
        ("batch", c_uint64),
        ("channels", c_uint64),
        ("inner", c_uint64),
        ("groups", c_uint64),
        ("epsilon", c_double),
        ("input", c_uint64),
        ("weight", c_uint64),
        ("output_gradient", c_uint64),
        ("mean", c_uint64),
        ("variance", c_uint64),
        ("input_gradient", c_uint64),
        ("weight_gradient", c_uint64),
        ("bias_gradient", c_uint64),
    ]


class BatchNormTrainingDesc(Structure):
    """tuff_batch_norm_training_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("weight_type", c_int32),
        ("reserved", c_int32),
        ("batch", c_uint64),
        ("channels", c_uint64),
        ("inner", c_uint64),
        ("epsilon", c_double),
        ("momentum", c_double),
        ("input", c_uint64),
        ("weight", c_uint64),
        ("bias", c_uint64),
        ("output", c_uint64),
        ("mean", c_uint64),
        ("variance", c_uint64),
        ("running_mean", c_uint64),
        ("running_variance", c_uint64),
    ]


class PermuteDesc(Structure):
    """tuff_permute_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("input", c_uint64),
        ("output", c_uint64),
        ("shape", c_uint64 * 8),
        ("order", c_uint32 * 8),
        ("rank", c_uint32),
        ("reserved", c_uint32),
    ]


class CastDesc(Structure):
    """tuff_cast_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("input_type", c_int32),
        ("output_type", c_int32),
        ("reserved", c_int32),
        ("input", c_uint64),
        ("output", c_uint64),
        ("n", c_uint64),
    ]


class SliceDesc(Structure):
    """tuff_slice_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("input", c_uint64),
        ("output", c_uint64),
        ("shape", c_uint64 * 8),
        ("start", c_uint64 * 8),
        ("step", c_int64 * 8),
        ("out_shape", c_uint64 * 8),
        ("rank", c_uint32),
        ("reserved", c_uint32),
    ]


class ConcatDesc(Structure):
    """tuff_concat_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("inputs", POINTER(c_uint64)),
        ("sizes", POINTER(c_uint64)),
        ("count", c_uint32),
        ("rank", c_uint32),
        ("output", c_uint64),
        ("shape", c_uint64 * 8),
        ("axis", c_uint32),
        ("reserved", c_uint32),
    ]


class GatherDesc(Structure):
    """tuff_gather_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("index_type", c_int32),
        ("elementwise", c_int32),
        ("input", c_uint64),
        ("indices", c_uint64),
        ("output", c_uint64),
        ("shape", c_uint64 * 8),
        ("rank", c_uint32),
        ("axis", c_uint32),
        ("count", c_uint64),
        ("index_shape", c_uint64 * 8),
        ("coordinates", c_uint32),
        ("negative", c_int32),
    ]


class ScatterDesc(Structure):
    """tuff_scatter_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("index_type", c_int32),
        ("op", c_int32),
        ("input", c_uint64),
        ("indices", c_uint64),
        ("updates", c_uint64),
        ("output", c_uint64),
        ("shape", c_uint64 * 8),
        ("index_shape", c_uint64 * 8),
        ("count", c_uint64),
        ("rank", c_uint32),
        ("axis", c_uint32),
        ("coordinates", c_uint32),
        ("elementwise", c_int32),
        ("negative", c_int32),
        ("reserved", c_int32),
    ]


class SelectDesc(Structure):
    """tuff_select_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("op", c_int32),
        ("mask_type", c_int32),
        ("index_type", c_int32),
        ("equal_nan", c_int32),
        ("input", c_uint64),
        ("mask", c_uint64),
        ("output", c_uint64),
        ("indices", c_uint64),
        ("count", c_uint64),
        ("n", c_uint64),
        ("capacity", c_uint64),
    ]


class PadDesc(Structure):
    """tuff_pad_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("mode", c_int32),
        ("rank", c_uint32),
        ("input", c_uint64),
        ("output", c_uint64),
        ("shape", c_uint64 * 8),
        ("before", c_int64 * 8),
        ("after", c_int64 * 8),
        ("value", c_double),
        ("integer", c_int64),
    ]


class CopyStridedDesc(Structure):
    """tuff_copy_strided_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("input", c_uint64),
        ("output", c_uint64),
        ("input_first", c_uint64),
        ("output_first", c_uint64),
        ("input_strides", c_int64 * 8),
        ("output_strides", c_int64 * 8),
        ("shape", c_uint64 * 8),
        ("rank", c_uint32),
        ("reserved", c_uint32),
    ]


class PoolDesc(Structure):
    """tuff_pool_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("input", c_uint64),
        ("output", c_uint64),
        ("indices", c_uint64),
        ("batch", c_uint64),
        ("channels", c_uint64),
        ("in_shape", c_uint64 * 3),
        ("out_shape", c_uint64 * 3),
        ("kernel", c_uint64 * 3),
        ("stride", c_uint64 * 3),
        ("padding", c_uint64 * 3),
        ("dilation", c_uint64 * 3),
        ("spatial", c_uint32),
        ("ceil_mode", c_int32),
        ("count_include_pad", c_int32),
        ("adaptive", c_int32),
    ]


class PoolBackwardDesc(Structure):
    """tuff_pool_backward_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("maximum", c_int32),
        ("spatial", c_uint32),
        ("input", c_uint64),
        ("indices", c_uint64),
        ("doutput", c_uint64),
        ("dinput", c_uint64),
        ("batch", c_uint64),
        ("channels", c_uint64),
        ("in_shape", c_uint64 * 3),
        ("out_shape", c_uint64 * 3),
        ("kernel", c_uint64 * 3),
        ("stride", c_uint64 * 3),
        ("padding", c_uint64 * 3),
        ("dilation", c_uint64 * 3),
        ("ceil_mode", c_int32),
        ("count_include_pad", c_int32),
        ("adaptive", c_int32),
        ("reserved", c_int32),
    ]


class ResizeDesc(Structure):
    """tuff_resize_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("input", c_uint64),
        ("output", c_uint64),
        ("batch", c_uint64),
        ("channels", c_uint64),
        ("in_shape", c_uint64 * 3),
        ("out_shape", c_uint64 * 3),
        ("scale", c_double * 3),
        ("spatial", c_uint32),
        ("mode", c_int32),
        ("align_corners", c_int32),
        ("layout", c_int32),
    ]


class RopeDesc(Structure):
    """tuff_rope_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("input", c_uint64),
        ("output", c_uint64),
        ("positions", c_uint64),
        ("batch", c_uint64),
        ("heads", c_uint64),
        ("seq", c_uint64),
        ("head_dim", c_uint64),
        ("rotary_dim", c_uint64),
        ("input_strides", c_uint64 * 3),
        ("output_strides", c_uint64 * 3),
        ("positions_stride", c_uint64),
        ("offset", c_int64),
        ("base", c_double),
        ("interleaved", c_int32),
        ("reserved", c_int32),
    ]


class CholeskyDesc(Structure):
    """tuff_cholesky_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("triangle", c_int32),
        ("reserved", c_int32),
        ("n", c_uint64),
        ("a", c_uint64),
        ("lda", c_uint64),
        ("stride_a", c_uint64),
        ("info", c_uint64),
        ("batch_count", c_uint64),
    ]


class LuDesc(Structure):
    """tuff_lu_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("m", c_uint64),
        ("n", c_uint64),
        ("a", c_uint64),
        ("lda", c_uint64),
        ("stride_a", c_uint64),
        ("pivots", c_uint64),
        ("stride_pivots", c_uint64),
        ("info", c_uint64),
        ("batch_count", c_uint64),
    ]


class TriangularSolveDesc(Structure):
    """tuff_triangular_solve_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("side", c_int32),
        ("triangle", c_int32),
        ("transpose", c_int32),
        ("unit_diagonal", c_int32),
        ("m", c_uint64),
        ("n", c_uint64),
        ("a", c_uint64),
        ("b", c_uint64),
        ("lda", c_uint64),
        ("ldb", c_uint64),
        ("stride_a", c_uint64),
        ("stride_b", c_uint64),
        ("batch_count", c_uint64),
    ]


class LuSolveDesc(Structure):
    """tuff_lu_solve_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("transpose", c_int32),
        ("reserved", c_int32),
        ("n", c_uint64),
        ("nrhs", c_uint64),
        ("a", c_uint64),
        ("pivots", c_uint64),
        ("b", c_uint64),
        ("lda", c_uint64),
        ("ldb", c_uint64),
        ("stride_a", c_uint64),
        ("stride_pivots", c_uint64),
        ("stride_b", c_uint64),
        ("batch_count", c_uint64),
    ]


class LuDeterminantDesc(Structure):
    """tuff_lu_determinant_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("n", c_uint64),
        ("a", c_uint64),
        ("pivots", c_uint64),
        ("lda", c_uint64),
        ("stride_a", c_uint64),
        ("stride_pivots", c_uint64),
        ("determinant", c_uint64),
        ("sign", c_uint64),
        ("log_magnitude", c_uint64),
        ("batch_count", c_uint64),
    ]


class QrDesc(Structure):
    """tuff_qr_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("m", c_uint64),
        ("n", c_uint64),
        ("a", c_uint64),
        ("lda", c_uint64),
        ("stride_a", c_uint64),
        ("q", c_uint64),
        ("columns_q", c_uint64),
        ("ldq", c_uint64),
        ("stride_q", c_uint64),
        ("batch_count", c_uint64),
    ]


class EighDesc(Structure):
    """tuff_eigh_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("triangle", c_int32),
        ("reserved", c_int32),
        ("n", c_uint64),
        ("a", c_uint64),
        ("lda", c_uint64),
        ("stride_a", c_uint64),
        ("values", c_uint64),
        ("stride_values", c_uint64),
        ("vectors", c_uint64),
        ("ld_vectors", c_uint64),
        ("stride_vectors", c_uint64),
        ("info", c_uint64),
        ("batch_count", c_uint64),
    ]


class EigDesc(Structure):
    """tuff_eig_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("n", c_uint64),
        ("a", c_uint64),
        ("lda", c_uint64),
        ("stride_a", c_uint64),
        ("values", c_uint64),
        ("stride_values", c_uint64),
        ("vectors", c_uint64),
        ("ld_vectors", c_uint64),
        ("stride_vectors", c_uint64),
        ("info", c_uint64),
        ("batch_count", c_uint64),
    ]


class SvdDesc(Structure):
    """tuff_svd_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("m", c_uint64),
        ("n", c_uint64),
        ("a", c_uint64),
        ("lda", c_uint64),
        ("stride_a", c_uint64),
        ("values", c_uint64),
        ("stride_values", c_uint64),
        ("u", c_uint64),
        ("ldu", c_uint64),
        ("stride_u", c_uint64),
        ("vt", c_uint64),
        ("ldvt", c_uint64),
        ("stride_vt", c_uint64),
        ("info", c_uint64),
        ("batch_count", c_uint64),
    ]


class FftDesc(Structure):
    """tuff_fft_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("kind", c_int32),
        ("inverse", c_int32),
        ("norm", c_int32),
        ("rank", c_uint32),
        ("axes", c_uint32),
        ("reserved", c_int32),
        ("input", c_uint64),
        ("output", c_uint64),
        ("shape", c_uint64 * 8),
        ("input_strides", c_uint64 * 8),
        ("output_strides", c_uint64 * 8),
    ]


class DctDesc(Structure):
    """tuff_dct_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("kind", c_int32),
        ("orthogonal", c_int32),
        ("norm", c_int32),
        ("rank", c_uint32),
        ("axes", c_uint32),
        ("reserved", c_int32),
        ("input", c_uint64),
        ("output", c_uint64),
        ("shape", c_uint64 * 8),
        ("input_strides", c_uint64 * 8),
        ("output_strides", c_uint64 * 8),
    ]


class RnnDesc(Structure):
    """tuff_rnn_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("cell", c_int32),
        ("direction", c_int32),
        ("gate_order", c_int32),
        ("linear_before_reset", c_int32),
        ("batch", c_uint64),
        ("steps", c_uint64),
        ("input_size", c_uint64),
        ("hidden_size", c_uint64),
        ("proj_size", c_uint64),
        ("clip", c_double),
        ("x", c_uint64),
        ("x_strides", c_uint64 * 2),
        ("w", c_uint64),
        ("r", c_uint64),
        ("bias_w", c_uint64),
        ("bias_r", c_uint64),
        ("bias_stride", c_uint64),
        ("peepholes", c_uint64),
        ("projection", c_uint64),
        ("lengths", c_uint64),
        ("h0", c_uint64),
        ("c0", c_uint64),
        ("y", c_uint64),
        ("y_strides", c_uint64 * 3),
        ("hn", c_uint64),
        ("cn", c_uint64),
    ]


class RnnBackwardDesc(Structure):
    """tuff_rnn_backward_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("cell", c_int32),
        ("direction", c_int32),
        ("gate_order", c_int32),
        ("linear_before_reset", c_int32),
        ("batch", c_uint64),
        ("steps", c_uint64),
        ("input_size", c_uint64),
        ("hidden_size", c_uint64),
        ("proj_size", c_uint64),
        ("clip", c_double),
        ("x", c_uint64),
        ("x_strides", c_uint64 * 2),
        ("w", c_uint64),
        ("r", c_uint64),
        ("bias_w", c_uint64),
        ("bias_r", c_uint64),
        ("bias_stride", c_uint64),
        ("peepholes", c_uint64),
        ("projection", c_uint64),
        ("lengths", c_uint64),
        ("h0", c_uint64),
        ("c0", c_uint64),
        ("dy", c_uint64),
        ("dy_strides", c_uint64 * 3),
        ("dhn", c_uint64),
        ("dcn", c_uint64),
        ("dx", c_uint64),
        ("dx_strides", c_uint64 * 2),
        ("dw", c_uint64),
        ("dr", c_uint64),
        ("dbias_w", c_uint64),
        ("dbias_r", c_uint64),
        ("dpeepholes", c_uint64),
        ("dprojection", c_uint64),
        ("dh0", c_uint64),
        ("dc0", c_uint64),
    ]


class OptimizerDesc(Structure):
    """tuff_optimizer_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("algorithm", c_int32),
        ("gradient_type", c_int32),
        ("nesterov", c_int32),
        ("reserved", c_int32),
        ("count", c_uint64),
        ("sizes", POINTER(c_uint64)),
        ("parameters", POINTER(c_uint64)),
        ("gradients", POINTER(c_uint64)),
        ("masters", POINTER(c_uint64)),
        ("first_moments", POINTER(c_uint64)),
        ("second_moments", POINTER(c_uint64)),
        ("rate", c_double),
        ("momentum", c_double),
        ("beta1", c_double),
        ("beta2", c_double),
        ("epsilon", c_double),
        ("weight_decay", c_double),
        ("gradient_scale", c_double),
        ("step", c_uint64),
        ("steps", c_uint64),
        ("rate_factor", c_uint64),
        ("gradient_factor", c_uint64),
        ("skip", c_uint64),
    ]


class GradientNormDesc(Structure):
    """tuff_gradient_norm_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("accumulate", c_int32),
        ("reserved", c_int32),
        ("count", c_uint64),
        ("sizes", POINTER(c_uint64)),
        ("gradients", POINTER(c_uint64)),
        ("gradient_scale", c_double),
        ("limit", c_double),
        ("gradient_factor", c_uint64),
        ("norm", c_uint64),
        ("factor", c_uint64),
        ("found", c_uint64),
    ]


class CrossEntropyDesc(Structure):
    """tuff_cross_entropy_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("label_type", c_int32),
        ("ignores", c_int32),
        ("ignore_index", c_int64),
        ("shape", c_uint64 * 8),
        ("rank", c_uint32),
        ("axis", c_uint32),
        ("label_smoothing", c_double),
        ("gradient_scale", c_double),
        ("logits", c_uint64),
        ("labels", c_uint64),
        ("gradient_factor", c_uint64),
        ("loss_gradient", c_uint64),
        ("loss", c_uint64),
        ("gradient", c_uint64),
    ]


class SoftmaxBackwardDesc(Structure):
    """tuff_softmax_backward_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("output", c_uint64),
        ("output_gradient", c_uint64),
        ("gradient", c_uint64),
        ("shape", c_uint64 * 8),
        ("rank", c_uint32),
        ("axis", c_uint32),
        ("scale", c_double),
        ("logarithm", c_int32),
        ("reserved", c_int32),
    ]


class SpmmDesc(Structure):
    """tuff_spmm_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("index_type", c_int32),
        ("transpose", c_int32),
        ("side", c_int32),
        ("reserved", c_int32),
        ("rows", c_uint64),
        ("columns", c_uint64),
        ("nnz", c_uint64),
        ("n", c_uint64),
        ("alpha", c_double),
        ("beta", c_double),
        ("offsets", c_uint64),
        ("indices", c_uint64),
        ("values", c_uint64),
        ("b", c_uint64),
        ("c", c_uint64),
        ("ldb", c_uint64),
        ("ldc", c_uint64),
        ("stride_values", c_uint64),
        ("stride_b", c_uint64),
        ("stride_c", c_uint64),
        ("batch_count", c_uint64),
        ("block_rows", c_uint32),
        ("block_columns", c_uint32),
        ("block_order", c_int32),
        ("reserved2", c_int32),
    ]


class SparseConvertDesc(Structure):
    """tuff_sparse_convert_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("index_type", c_int32),
        ("from_format", c_int32),
        ("to_format", c_int32),
        ("reserved", c_int32),
        ("rows", c_uint64),
        ("columns", c_uint64),
        ("nnz", c_uint64),
        ("capacity", c_uint64),
        ("from_rows", c_uint64),
        ("from_columns", c_uint64),
        ("from_values", c_uint64),
        ("to_rows", c_uint64),
        ("to_columns", c_uint64),
        ("to_values", c_uint64),
        ("from_ld", c_uint64),
        ("to_ld", c_uint64),
        ("count", c_uint64),
        ("from_block_rows", c_uint32),
        ("from_block_columns", c_uint32),
        ("to_block_rows", c_uint32),
        ("to_block_columns", c_uint32),
        ("from_block_order", c_int32),
        ("to_block_order", c_int32),
    ]


class SddmmDesc(Structure):
    """tuff_sddmm_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("index_type", c_int32),
        ("place_format", c_int32),
        ("transpose", c_int32),
        ("reserved", c_int32),
        ("rows", c_uint64),
        ("columns", c_uint64),
        ("nnz", c_uint64),
        ("k", c_uint64),
        ("alpha", c_double),
        ("beta", c_double),
        ("place_rows", c_uint64),
        ("place_columns", c_uint64),
        ("scales", c_uint64),
        ("a", c_uint64),
        ("b", c_uint64),
        ("values", c_uint64),
        ("lda", c_uint64),
        ("ldb", c_uint64),
        ("stride_scales", c_uint64),
        ("stride_a", c_uint64),
        ("stride_b", c_uint64),
        ("stride_values", c_uint64),
        ("batch_count", c_uint64),
    ]


class SpgemmDesc(Structure):
    """tuff_spgemm_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("index_type", c_int32),
        ("reserved", c_int32),
        ("rows", c_uint64),
        ("inner", c_uint64),
        ("columns", c_uint64),
        ("a_nnz", c_uint64),
        ("b_nnz", c_uint64),
        ("max_terms", c_uint64),
        ("capacity", c_uint64),
        ("a_offsets", c_uint64),
        ("a_indices", c_uint64),
        ("a_values", c_uint64),
        ("b_offsets", c_uint64),
        ("b_indices", c_uint64),
        ("b_values", c_uint64),
        ("c_offsets", c_uint64),
        ("c_indices", c_uint64),
        ("c_values", c_uint64),
        ("count", c_uint64),
        ("terms", c_uint64),
    ]


class SparseTriangularSolveDesc(Structure):
    """tuff_sparse_triangular_solve_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("index_type", c_int32),
        ("triangle", c_int32),
        ("transpose", c_int32),
        ("unit_diagonal", c_int32),
        ("levels_ready", c_int32),
        ("reserved", c_int32),
        ("rows", c_uint64),
        ("nnz", c_uint64),
        ("n", c_uint64),
        ("alpha", c_double),
        ("offsets", c_uint64),
        ("indices", c_uint64),
        ("values", c_uint64),
        ("levels", c_uint64),
        ("b", c_uint64),
        ("x", c_uint64),
        ("ldb", c_uint64),
        ("ldx", c_uint64),
    ]


class QuantizeDesc(Structure):
    """tuff_quantize_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("format", c_int32),
        ("dtype", c_int32),
        ("scale_type", c_int32),
        ("quotient_type", c_int32),
        ("granularity", c_int32),
        ("input", c_uint64),
        ("scales", c_uint64),
        ("zero_points", c_uint64),
        ("output", c_uint64),
        ("shape", c_uint64 * 8),
        ("rank", c_uint32),
        ("axis", c_uint32),
        ("block_size", c_uint64),
    ]


class DequantizeDesc(Structure):
    """tuff_dequantize_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("format", c_int32),
        ("dtype", c_int32),
        ("scale_type", c_int32),
        ("granularity", c_int32),
        ("reserved", c_int32),
        ("input", c_uint64),
        ("scales", c_uint64),
        ("zero_points", c_uint64),
        ("output", c_uint64),
        ("shape", c_uint64 * 8),
        ("rank", c_uint32),
        ("axis", c_uint32),
        ("block_size", c_uint64),
    ]


class QgemmDesc(Structure):
    """tuff_qgemm_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("format", c_int32),
        ("a_type", c_int32),
        ("c_type", c_int32),
        ("scale_type", c_int32),
        ("granularity", c_int32),
        ("activation", c_int32),
        ("reserved", c_int32),
        ("m", c_uint64),
        ("n", c_uint64),
        ("k", c_uint64),
        ("alpha", c_double),
        ("a", c_uint64),
        ("weights", c_uint64),
        ("scales", c_uint64),
        ("zero_points", c_uint64),
        ("bias", c_uint64),
        ("residual", c_uint64),
        ("c", c_uint64),
        ("lda", c_uint64),
        ("ldc", c_uint64),
        ("ld_residual", c_uint64),
        ("block_size", c_uint64),
        ("a_scales", c_uint64),
        ("a_zero_points", c_uint64),
        ("a_granularity", c_int32),
        ("reserved2", c_int32),
    ]


class ExprVariable(ctypes.Structure):
    """tuff_expr_variable"""

    _fields_ = [
        ("name", c_char_p),
        ("dtype", c_int32),
        ("flags", c_uint32),
    ]


class ExprDesc(Structure):
    """tuff_expr_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("input_count", c_uint32),
        ("formula", c_char_p),
        ("inputs", POINTER(ExprVariable)),
        ("outputs", POINTER(ExprVariable)),
        ("output_count", c_uint32),
        ("reserved", c_uint32),
    ]


class ExprOperand(ctypes.Structure):
    """tuff_expr_operand"""

    _fields_ = [
        ("buffer", c_uint64),
        ("first", c_uint64),
        ("strides", c_int64 * 8),
        ("strided", c_int32),
        ("reserved", c_int32),
        ("value", c_double),
        ("integer", c_int64),
    ]


class ExprRunDesc(Structure):
    """tuff_expr_run_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("rank", c_uint32),
        ("inputs", POINTER(ExprOperand)),
        ("outputs", POINTER(ExprOperand)),
        ("shape", c_uint64 * 8),
        ("input_count", c_uint32),
        ("output_count", c_uint32),
    ]


class StreamDesc(Structure):
    """tuff_stream_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("flags", c_uint32),
        ("name", c_char_p),
    ]


class EventDesc(Structure):
    """tuff_event_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("flags", c_uint32),
    ]


class KernelDefine(ctypes.Structure):
    """tuff_kernel_define"""

    _fields_ = [
        ("name", c_char_p),
        ("value", c_char_p),
    ]


class KernelConstant(ctypes.Structure):
    """tuff_kernel_constant"""

    _fields_ = [
        ("id", c_uint32),
        ("reserved", c_uint32),
        ("bits", c_uint64),
    ]


class KernelDesc(Structure):
    """tuff_kernel_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("language", c_int32),
        ("source", c_void_p),
        ("source_bytes", c_uint64),
        ("name", c_char_p),
        ("entry", c_char_p),
        ("defines", POINTER(KernelDefine)),
        ("constants", POINTER(KernelConstant)),
        ("define_count", c_uint32),
        ("constant_count", c_uint32),
        ("flags", c_uint32),
        ("reserved", c_uint32),
        ("max_source_bytes", c_uint64),
        ("compile_milliseconds", c_uint64),
        ("compile_memory_bytes", c_uint64),
        ("workgroup_size", c_uint32 * 3),
        ("shared_bytes", c_uint32),
    ]


class KernelProperties(Structure):
    """tuff_kernel_properties"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("binding_count", c_uint32),
        ("used", c_uint32),
        ("read", c_uint32),
        ("written", c_uint32),
        ("push_bytes", c_uint32),
        ("workgroup_size", c_uint32 * 3),
        ("shared_bytes", c_uint32),
        ("subgroup_size", c_uint32),
        ("max_groups", c_uint32 * 3),
        ("buffer_alignment", c_uint32),
        ("robust", c_int32),
        ("max_buffer_bytes", c_uint64),
        ("min_bytes", c_uint64 * 32),
        ("name", c_char * 64),
        ("capabilities", c_char * 256),
    ]


class OpArgument(ctypes.Structure):
    """tuff_op_argument"""

    _fields_ = [
        ("name", c_char_p),
        ("kind", c_int32),
        ("dtype", c_int32),
        ("access", c_int32),
        ("reserved", c_uint32),
        ("elements", c_char_p),
        ("minimum", c_double),
        ("maximum", c_double),
    ]


class OpValue(ctypes.Structure):
    """tuff_op_value"""

    _fields_ = [
        ("buffer", c_uint64),
        ("integer", c_int64),
        ("real", c_double),
    ]


class OpOperand(ctypes.Structure):
    """tuff_op_operand"""

    _fields_ = [
        ("data", c_void_p),
        ("bytes", c_uint64),
        ("integer", c_int64),
        ("real", c_double),
    ]


class OpDesc(Structure):
    """tuff_op_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("argument_count", c_uint32),
        ("name", c_char_p),
        ("arguments", POINTER(OpArgument)),
        ("kernel", POINTER(KernelDesc)),
        ("groups", c_char_p),
        ("invocations", c_char_p),
        ("flops", c_char_p),
    ]


class Usage(Structure):
    """tuff_usage"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("published", c_int32),
        ("calls", c_uint64),
        ("dispatches", c_uint64),
        ("submissions", c_uint64),
        ("submissions_in_flight", c_uint64),
        ("bytes_moved", c_double),
        ("flops", c_double),
        ("bytes_uploaded", c_uint64),
        ("bytes_downloaded", c_uint64),
        ("bytes_in_use", c_uint64),
        ("bytes_reserved", c_uint64),
        ("bytes_peak", c_uint64),
        ("bytes_limit", c_uint64),
    ]


class DeviceSensors(Structure):
    """tuff_device_sensors"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("pci_address", c_char * 16),
        ("heap_bytes", c_uint64),
        ("heap_budget_bytes", c_uint64),
        ("heap_used_bytes", c_uint64),
        ("temperature_celsius", c_double),
        ("power_watts", c_double),
        ("core_hertz", c_double),
        ("memory_hertz", c_double),
        ("busy", c_double),
    ]


LogCallback = CFUNCTYPE(None, c_void_p, c_int32, c_char_p)
MemoryCallback = CFUNCTYPE(None, c_void_p, POINTER(MemoryPressure))
OpHost = CFUNCTYPE(None, c_void_p, POINTER(OpOperand), c_uint32, POINTER(c_int32))

#: name: (result, arguments), for every function of tuff.h.
FUNCTIONS = {
    # Library
    "tuff_version": (c_uint32, []),
    "tuff_abi_version": (c_uint32, []),
    "tuff_build_info": (c_char_p, []),
    "tuff_status_name": (c_char_p, [c_int32]),
    "tuff_status_hint": (c_char_p, [c_int32]),
    "tuff_last_error": (c_int32, [c_char_p, c_uint64, POINTER(c_uint64)]),
    "tuff_set_log": (c_int32, [LogCallback, c_void_p, c_int32]),
    # Devices and contexts
    "tuff_device_count": (c_int32, [POINTER(c_uint32)]),
    "tuff_device_info": (c_int32, [c_uint32, POINTER(DeviceProperties)]),
    "tuff_device_refusals": (c_int32, [c_char_p, c_uint64, POINTER(c_uint64)]),
    "tuff_backend_register": (c_int32, [c_char_p]),
    "tuff_backend_count": (c_int32, [POINTER(c_uint32)]),
    "tuff_backend_info": (c_int32, [c_uint32, POINTER(DeviceProperties)]),
    "tuff_backend_refusals": (c_int32, [c_char_p, c_uint64, POINTER(c_uint64)]),
    "tuff_context_create": (c_int32, [POINTER(ContextDesc), POINTER(c_uint64)]),
    "tuff_context_destroy": (c_int32, [c_uint64]),
    "tuff_context_info": (c_int32, [c_uint64, POINTER(DeviceProperties)]),
    "tuff_synchronize": (c_int32, [c_uint64]),
    "tuff_supports": (c_int32, [c_uint64, c_char_p, POINTER(c_int32)]),
    "tuff_operation_name": (c_char_p, [c_uint32]),
    "tuff_context_stats": (c_int32, [c_uint64, POINTER(Stats)]),
    "tuff_context_set_limits": (c_int32, [c_uint64, POINTER(Limits)]),
    "tuff_context_set_tuning": (c_int32, [c_uint64, c_char_p]),
    # Buffers
    "tuff_alloc": (c_int32, [c_uint64, c_uint64, POINTER(c_uint64)]),
    "tuff_alloc_ex": (c_int32, [c_uint64, POINTER(AllocDesc), POINTER(c_uint64)]),
    "tuff_view": (c_int32, [c_uint64, c_uint64, c_uint64, POINTER(c_uint64)]),
    "tuff_free": (c_int32, [c_uint64]),
    "tuff_buffer_size": (c_int32, [c_uint64, POINTER(c_uint64)]),
    "tuff_copy_htod": (c_int32, [c_uint64, c_uint64, c_uint64, c_void_p, c_uint64]),
    "tuff_copy_dtoh": (c_int32, [c_uint64, c_void_p, c_uint64, c_uint64, c_uint64]),
    "tuff_copy_dtod": (c_int32, [c_uint64, c_uint64, c_uint64, c_uint64, c_uint64, c_uint64]),
    "tuff_copy_peer": (c_int32, [c_uint64, c_uint64, c_uint64, c_uint64, c_uint64, c_uint64, c_uint64]),
    "tuff_fill": (c_int32, [c_uint64, c_uint64, c_uint64, c_uint64, c_void_p, c_uint64]),
    "tuff_map": (c_int32, [c_uint64, POINTER(c_void_p)]),
    "tuff_unmap": (c_int32, [c_uint64]),
    # Memory
    "tuff_context_memory": (c_int32, [c_uint64, POINTER(MemoryStats)]),
    "tuff_context_trim": (c_int32, [c_uint64]),
    "tuff_context_compact": (c_int32, [c_uint64, POINTER(CompactDesc), POINTER(Compaction)]),
    "tuff_context_reset_peak": (c_int32, [c_uint64]),
    "tuff_context_set_memory_callback": (c_int32, [c_uint64, MemoryCallback, c_void_p]),
    "tuff_buffer_import_host": (c_int32, [c_uint64, c_void_p, c_uint64, POINTER(c_uint64)]),
    "tuff_buffer_export_fd": (c_int32, [c_uint64, POINTER(MemoryFd)]),
    "tuff_buffer_import_fd": (c_int32, [c_uint64, POINTER(MemoryFd), POINTER(c_uint64)]),
    # Operations
    "tuff_gemm": (
        c_int32,
        [
            c_uint64, c_int32, c_int32, c_int32, c_uint64, c_uint64, c_uint64, c_double, c_uint64, c_uint64,
            c_uint64, c_uint64, c_double, c_uint64, c_uint64,
        ],
    ),
    "tuff_gemm_ex": (c_int32, [c_uint64, POINTER(GemmDesc)]),
    "tuff_batched_gemm": (
        c_int32,
        [
            c_uint64, c_int32, c_int32, c_int32, c_uint64, c_uint64, c_uint64, c_double, c_uint64, c_uint64,
            c_uint64, c_uint64, c_uint64, c_uint64, c_double, c_uint64, c_uint64, c_uint64, c_uint64,
        ],
    ),
    "tuff_batched_gemm_ex": (c_int32, [c_uint64, POINTER(BatchedGemmDesc)]),
    "tuff_batched_gemm_variants": (
        c_int32,
        [
            c_uint64, POINTER(BatchedGemmDesc), c_char_p, c_uint64, POINTER(c_uint64),
        ],
    ),
    "tuff_conv2d": (
        c_int32,
        [
            c_uint64, c_int32, c_uint64, POINTER(c_uint64), c_uint64, POINTER(c_uint64), c_uint64,
            POINTER(c_uint64), POINTER(c_uint64), POINTER(c_uint64),
        ],
    ),
    "tuff_conv2d_ex": (c_int32, [c_uint64, POINTER(Conv2dDesc)]),
    "tuff_conv1d": (
        c_int32,
        [
            c_uint64, c_int32, c_uint64, POINTER(c_uint64), c_uint64, POINTER(c_uint64), c_uint64,
            POINTER(c_uint64), c_uint64, c_uint64,
        ],
    ),
    "tuff_conv1d_ex": (c_int32, [c_uint64, POINTER(Conv1dDesc)]),
    "tuff_conv3d": (
        c_int32,
        [
            c_uint64, c_int32, c_uint64, POINTER(c_uint64), c_uint64, POINTER(c_uint64), c_uint64,
            POINTER(c_uint64), POINTER(c_uint64), POINTER(c_uint64),
        ],
    ),
    "tuff_conv3d_ex": (c_int32, [c_uint64, POINTER(Conv3dDesc)]),
    "tuff_conv_transpose2d": (
        c_int32,
        [
            c_uint64, c_int32, c_uint64, POINTER(c_uint64), c_uint64, POINTER(c_uint64), c_uint64,
            POINTER(c_uint64), POINTER(c_uint64), POINTER(c_uint64), POINTER(c_uint64),
        ],
    ),
    "tuff_conv_transpose2d_ex": (c_int32, [c_uint64, POINTER(ConvTranspose2dDesc)]),
    "tuff_conv_backward_data": (c_int32, [c_uint64, POINTER(ConvBackwardDesc)]),
    "tuff_conv_backward_filter": (c_int32, [c_uint64, POINTER(ConvBackwardDesc)]),
    "tuff_attention": (
        c_int32,
        [
            c_uint64, c_int32, c_uint64, c_uint64, c_uint64, c_uint64, c_uint64, c_uint64, c_uint64, c_uint64,
            c_uint64, c_double, c_int32,
        ],
    ),
    "tuff_attention_ex": (c_int32, [c_uint64, POINTER(AttentionDesc)]),
    "tuff_attention_backward": (c_int32, [c_uint64, POINTER(AttentionBackwardDesc)]),
    "tuff_reduce": (c_int32, [c_uint64, c_int32, c_int32, c_uint64, c_uint64, POINTER(c_uint64), c_uint32, c_uint32]),
    "tuff_reduce_ex": (c_int32, [c_uint64, POINTER(ReduceDesc)]),
    "tuff_cumsum": (c_int32, [c_uint64, POINTER(ScanDesc)]),
    "tuff_cumprod": (c_int32, [c_uint64, POINTER(ScanDesc)]),
    "tuff_cummax": (c_int32, [c_uint64, POINTER(ScanDesc)]),
    "tuff_cummin": (c_int32, [c_uint64, POINTER(ScanDesc)]),
    "tuff_cumlogsumexp": (c_int32, [c_uint64, POINTER(ScanDesc)]),
    "tuff_sort": (c_int32, [c_uint64, POINTER(SortDesc)]),
    "tuff_unary": (c_int32, [c_uint64, c_int32, c_int32, c_uint64, c_uint64, c_uint64]),
    "tuff_unary_ex": (c_int32, [c_uint64, POINTER(UnaryDesc)]),
    "tuff_binary": (c_int32, [c_uint64, c_int32, c_int32, c_uint64, c_uint64, c_uint64, c_uint64]),
    "tuff_binary_ex": (c_int32, [c_uint64, POINTER(BinaryDesc)]),
    "tuff_softmax": (c_int32, [c_uint64, c_int32, c_uint64, c_uint64, POINTER(c_uint64), c_uint32, c_uint32]),
    "tuff_softmax_ex": (c_int32, [c_uint64, POINTER(SoftmaxDesc)]),
    "tuff_random": (c_int32, [c_uint64, POINTER(RandomDesc)]),
    "tuff_variates": (c_int32, [c_uint64, POINTER(VariatesDesc)]),
    "tuff_dropout": (c_int32, [c_uint64, POINTER(DropoutDesc)]),
    # Normalisations
    "tuff_layer_norm": (
        c_int32,
        [
            c_uint64, c_int32, c_uint64, c_uint64, c_uint64, c_uint64, c_uint64, c_uint64, c_double,
        ],
    ),
    "tuff_layer_norm_ex": (c_int32, [c_uint64, POINTER(LayerNormDesc)]),
    "tuff_rms_norm": (c_int32, [c_uint64, c_int32, c_uint64, c_uint64, c_uint64, c_uint64, c_uint64, c_double]),
    "tuff_rms_norm_ex": (c_int32, [c_uint64, POINTER(RmsNormDesc)]),
    "tuff_group_norm": (
        c_int32,
        [
            c_uint64, c_int32, c_uint64, c_uint64, c_uint64, c_uint64, c_uint64, c_uint64, c_uint64, c_uint64,
            c_double,
        ],
    ),
    "tuff_group_norm_ex": (c_int32, [c_uint64, POINTER(GroupNormDesc)]),
    "tuff_batch_norm": (
        c_int32,
        [
            c_uint64, c_int32, c_uint64, c_uint64, c_uint64, c_uint64, c_uint64, c_uint64, c_uint64, c_uint64,
            c_uint64, c_double,
        ],
    ),
    "tuff_batch_norm_ex": (c_int32, [c_uint64, POINTER(BatchNormDesc)]),
    "tuff_norm_backward": (c_int32, [c_uint64, POINTER(NormBackwardDesc)]),
    "tuff_batch_norm_training": (c_int32, [c_uint64, POINTER(BatchNormTrainingDesc)]),
    # Shapes and types
    "tuff_permute": (c_int32, [c_uint64, c_int32, c_uint64, c_uint64, POINTER(c_uint64), c_uint32, POINTER(c_uint32)]),
    "tuff_permute_ex": (c_int32, [c_uint64, POINTER(PermuteDesc)]),
    "tuff_cast": (c_int32, [c_uint64, c_int32, c_int32, c_uint64, c_uint64, c_uint64]),
    "tuff_cast_ex": (c_int32, [c_uint64, POINTER(CastDesc)]),
    "tuff_slice": (
        c_int32,
        [
            c_uint64, c_int32, c_uint64, c_uint64, POINTER(c_uint64), c_uint32, POINTER(c_uint64),
            POINTER(c_int64), POINTER(c_uint64),
        ],
    ),
    "tuff_slice_ex": (c_int32, [c_uint64, POINTER(SliceDesc)]),
    "tuff_concat": (
        c_int32,
        [
            c_uint64, c_int32, POINTER(c_uint64), POINTER(c_uint64), c_uint32, c_uint64, POINTER(c_uint64),
            c_uint32, c_uint32,
        ],
    ),
    "tuff_concat_ex": (c_int32, [c_uint64, POINTER(ConcatDesc)]),
    "tuff_gather": (
        c_int32,
        [
            c_uint64, c_int32, c_int32, c_uint64, c_uint64, c_uint64, POINTER(c_uint64), c_uint32, c_uint32,
            c_uint64,
        ],
    ),
    "tuff_gather_ex": (c_int32, [c_uint64, POINTER(GatherDesc)]),
    "tuff_scatter": (c_int32, [c_uint64, POINTER(ScatterDesc)]),
    "tuff_select": (c_int32, [c_uint64, POINTER(SelectDesc)]),
    "tuff_pad": (c_int32, [c_uint64, POINTER(PadDesc)]),
    "tuff_copy_strided": (c_int32, [c_uint64, POINTER(CopyStridedDesc)]),
    # Pooling
    "tuff_max_pool": (c_int32, [c_uint64, POINTER(PoolDesc)]),
    "tuff_avg_pool": (c_int32, [c_uint64, POINTER(PoolDesc)]),
    "tuff_pool_backward": (c_int32, [c_uint64, POINTER(PoolBackwardDesc)]),
    # Resizing
    "tuff_resize": (c_int32, [c_uint64, POINTER(ResizeDesc)]),
    # Positions
    "tuff_rope": (
        c_int32,
        [
            c_uint64, c_int32, c_uint64, c_uint64, c_uint64, c_uint64, c_uint64, c_uint64, c_int64, c_double,
        ],
    ),
    "tuff_rope_ex": (c_int32, [c_uint64, POINTER(RopeDesc)]),
    # Linear algebra
    "tuff_cholesky": (c_int32, [c_uint64, POINTER(CholeskyDesc)]),
    "tuff_lu": (c_int32, [c_uint64, POINTER(LuDesc)]),
    "tuff_triangular_solve": (c_int32, [c_uint64, POINTER(TriangularSolveDesc)]),
    "tuff_lu_solve": (c_int32, [c_uint64, POINTER(LuSolveDesc)]),
    "tuff_lu_determinant": (c_int32, [c_uint64, POINTER(LuDeterminantDesc)]),
    "tuff_qr": (c_int32, [c_uint64, POINTER(QrDesc)]),
    "tuff_eigh": (c_int32, [c_uint64, POINTER(EighDesc)]),
    "tuff_eig": (c_int32, [c_uint64, POINTER(EigDesc)]),
    "tuff_svd": (c_int32, [c_uint64, POINTER(SvdDesc)]),
    # Fourier transforms
    "tuff_fft": (c_int32, [c_uint64, POINTER(FftDesc)]),
    "tuff_dct": (c_int32, [c_uint64, POINTER(DctDesc)]),
    # Recurrent networks
    "tuff_rnn": (c_int32, [c_uint64, POINTER(RnnDesc)]),
    "tuff_rnn_backward": (c_int32, [c_uint64, POINTER(RnnBackwardDesc)]),
    # Training
    "tuff_optimizer_step": (c_int32, [c_uint64, POINTER(OptimizerDesc)]),
    "tuff_gradient_norm": (c_int32, [c_uint64, POINTER(GradientNormDesc)]),
    "tuff_cross_entropy": (c_int32, [c_uint64, POINTER(CrossEntropyDesc)]),
    "tuff_softmax_backward": (c_int32, [c_uint64, POINTER(SoftmaxBackwardDesc)]),
    # Sparse matrices
    "tuff_spmm": (c_int32, [c_uint64, POINTER(SpmmDesc)]),
    "tuff_sparse_convert": (c_int32, [c_uint64, POINTER(SparseConvertDesc)]),
    "tuff_sddmm": (c_int32, [c_uint64, POINTER(SddmmDesc)]),
    "tuff_spgemm": (c_int32, [c_uint64, POINTER(SpgemmDesc)]),
    "tuff_sparse_triangular_solve": (c_int32, [c_uint64, POINTER(SparseTriangularSolveDesc)]),
    # Quantisation
    "tuff_quantize": (c_int32, [c_uint64, POINTER(QuantizeDesc)]),
    "tuff_dequantize": (c_int32, [c_uint64, POINTER(DequantizeDesc)]),
    "tuff_qgemm": (c_int32, [c_uint64, POINTER(QgemmDesc)]),
    # Expressions
    "tuff_expr_create": (c_int32, [c_uint64, POINTER(ExprDesc), POINTER(c_uint64)]),
    "tuff_expr_run": (c_int32, [c_uint64, c_uint64, POINTER(ExprRunDesc)]),
    "tuff_expr_destroy": (c_int32, [c_uint64]),
    # Streams and events
    "tuff_stream_create": (c_int32, [c_uint64, POINTER(StreamDesc), POINTER(c_uint64)]),
    "tuff_stream_destroy": (c_int32, [c_uint64]),
    "tuff_copy_htod_async": (c_int32, [c_uint64, c_uint64, c_uint64, c_void_p, c_uint64]),
    "tuff_copy_dtoh_async": (c_int32, [c_uint64, c_void_p, c_uint64, c_uint64, c_uint64]),
    "tuff_event_create": (c_int32, [c_uint64, POINTER(EventDesc), POINTER(c_uint64)]),
    "tuff_event_destroy": (c_int32, [c_uint64]),
    "tuff_event_record": (c_int32, [c_uint64, c_uint64]),
    "tuff_stream_wait_event": (c_int32, [c_uint64, c_uint64]),
    "tuff_event_query": (c_int32, [c_uint64, POINTER(c_int32)]),
    "tuff_event_wait": (c_int32, [c_uint64]),
    "tuff_event_elapsed": (c_int32, [c_uint64, c_uint64, POINTER(c_double)]),
    # Graphs
    "tuff_graph_begin": (c_int32, [c_uint64]),
    "tuff_graph_end": (c_int32, [c_uint64, POINTER(c_uint64)]),
    "tuff_graph_launch": (c_int32, [c_uint64, c_uint64]),
    "tuff_graph_bind": (c_int32, [c_uint64, c_uint64, c_uint64]),
    "tuff_graph_destroy": (c_int32, [c_uint64]),
    # Profiling
    "tuff_profile_begin": (c_int32, [c_uint64]),
    "tuff_profile_end": (c_int32, [c_uint64]),
    "tuff_profile_write": (c_int32, [c_uint64, c_char_p]),
    "tuff_profile_table": (c_int32, [c_uint64, c_char_p, c_uint64, POINTER(c_uint64)]),
    # Custom kernels
    "tuff_kernel_create": (c_int32, [c_uint64, POINTER(KernelDesc), POINTER(c_uint64)]),
    "tuff_kernel_info": (c_int32, [c_uint64, POINTER(KernelProperties)]),
    "tuff_kernel_launch": (
        c_int32,
        [
            c_uint64, c_uint64, POINTER(c_uint64), c_uint32, c_void_p, c_uint32, c_uint32, c_uint32, c_uint32,
        ],
    ),
    "tuff_kernel_destroy": (c_int32, [c_uint64]),
    # Extensions
    "tuff_op_register": (c_int32, [c_uint64, POINTER(OpDesc), OpHost, c_void_p, POINTER(c_uint64)]),
    "tuff_op_find": (c_int32, [c_uint64, c_char_p, POINTER(c_uint64)]),
    "tuff_op_list": (c_int32, [c_uint64, c_char_p, c_uint64, POINTER(c_uint64)]),
    "tuff_op_run": (c_int32, [c_uint64, c_uint64, POINTER(OpValue), c_uint32]),
    "tuff_op_destroy": (c_int32, [c_uint64]),
    # Monitoring
    "tuff_context_usage": (c_int32, [c_uint64, POINTER(Usage)]),
    "tuff_device_read_sensors": (c_int32, [c_uint32, POINTER(DeviceSensors)]),
}
