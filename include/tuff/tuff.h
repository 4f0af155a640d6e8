/* Tuff: a compute runtime behind a flat C ABI.
 *
 * This header is the reference documentation. It compiles as C99 and later and as C++98 and later, includes only
 * <stdint.h> and <stddef.h>, and exposes nothing of Vulkan.
 *
 * The following holds for every function and is not repeated below.
 *
 *   Result          Functions return tuff_status: TUFF_OK (0) or a negative TUFF_ERROR_*. Results are returned
 *                   through pointers, which are written only on success. After a failure, tuff_last_error()
 *                   returns this thread's one-line message, which names the function and the argument, the value
 *                   it got and the value it needed. A call that fails has no other effect. The exception is a
 *                   copy that ends with TIMEOUT or DEVICE_LOST: part of it may have been done.
 *   Errors          Any function may return the following, in addition to the errors that its comment lists:
 *                   INVALID_HANDLE for a handle that is stale, forged, of the wrong kind or of another context;
 *                   INVALID_ARGUMENT for a null pointer where one is required, an unknown enumerator or a
 *                   malformed structure; OUT_OF_HOST_MEMORY; DEVICE_LOST, which is permanent for that context and
 *                   reaches waiting threads within a second; TIMEOUT if the call had to wait for the device for
 *                   longer than tuff_limits.wait_milliseconds (the message says what is still running; the work
 *                   continues); NOT_INITIALIZED in a child process after fork(). See docs/errors.md.
 *   Threads         Any function may be called from any thread at any time. Operations on one stream take effect
 *                   in call order, whichever threads call them. See docs/threads.md.
 *   Pointers        A pointer may be NULL only where its function or field says so. Pointers to const are inputs;
 *                   others are outputs. The caller sets struct_size of a structure before a function fills it.
 *   Ownership       Pointers are used during the call only, except callbacks with their user pointers, the host
 *                   memory of the _async copies, and imported memory. A context owns its buffers, kernels, streams,
 *                   events, graphs, expressions and operations.
 *   Structures      Structures begin with struct_size, which the caller sets to sizeof(the structure). Zero in any
 *                   other field selects its default. Fields are only ever appended. struct_size must be the size
 *                   that the structure had in some version; the library neither reads nor writes beyond it. Any
 *                   other smaller value is INVALID_ARGUMENT, and the message lists the accepted sizes. A structure
 *                   may be up to 4096 bytes larger than the library knows. On input, the part that the library
 *                   does not know must be zero; on output, the library sets it to zero.
 *   Layout          Tensors are dense and row-major unless a leading dimension or stride says otherwise.
 *                   Sizes, leading dimensions and strides count elements; offsets and "bytes" count bytes.
 *   Buffers         TUFF_NULL_HANDLE may stand for an operand that has no elements. Any byte offset that is a
 *                   multiple of the element size is sufficiently aligned for every operation.
 *   Since           0.1.0, unless a function says otherwise.
 */
#ifndef TUFF_TUFF_H
#define TUFF_TUFF_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32) && !defined(TUFF_STATIC)
#ifdef TUFF_BUILD
#define TUFF_API __declspec(dllexport)
#else
#define TUFF_API __declspec(dllimport)
#endif
#elif defined(__GNUC__)
#define TUFF_API __attribute__((visibility("default")))
#else
#define TUFF_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define TUFF_VERSION_MAJOR 0
#define TUFF_VERSION_MINOR 9
#define TUFF_VERSION_PATCH 0
/* (major << 16) | (minor << 8) | patch */
#define TUFF_VERSION ((TUFF_VERSION_MAJOR << 16) | (TUFF_VERSION_MINOR << 8) | TUFF_VERSION_PATCH)
/* Incremented with every incompatible change of this header. The same number is in the file name libtuff.so.1. */
#define TUFF_ABI_VERSION 1

/* ---------------------------------------------------------------------------------------------
 * Types and named constants
 *
 * Constants come in groups. Each group is named by a type: int32_t, or uint32_t for flags that can be combined.
 * Functions and structures use the plain integer, so constants need no conversion. Each int32_t group except the status
 * codes has an _INVALID constant, -1, which no function accepts. It shows compilers and binding generators that the
 * constants are signed. Version 0.9.0 added the _INVALID constants and the names of the groups.
 * ------------------------------------------------------------------------------------------- */

/* Handles are plain numbers, not pointers, and are checked on every use. 0 is never valid. They may be stored and
 * copied freely. A handle is never reused for another object after its own is destroyed. */
typedef uint64_t tuff_context; /* an open device */
typedef uint64_t tuff_buffer;  /* memory of a context, or a view of it */
/* A tuff_context may be passed wherever a tuff_stream is expected; it stands for the context's default stream. */
typedef uint64_t tuff_stream;
typedef uint64_t tuff_kernel; /* a custom kernel; since 0.7.0 */
typedef uint64_t tuff_event;  /* a point in a stream; since 0.8.0 */
typedef uint64_t tuff_graph;  /* captured operations; since 0.8.0 */
typedef uint64_t tuff_expr;   /* a formula; since 0.9.0 */
typedef uint64_t tuff_op;     /* a registered operation; since 0.9.0 */
/* No handle. The macro is for C and C++; the constant is for binding generators, which cannot evaluate a cast. */
static const uint64_t TUFF_NULL_HANDLE = 0;
#define TUFF_NULL_HANDLE ((uint64_t)0)

/* What every function returns: TUFF_OK or an error. */
typedef int32_t tuff_status;
enum {
  TUFF_OK = 0,
  TUFF_ERROR_INVALID_ARGUMENT = -1,     /* an argument is outside what the function accepts */
  TUFF_ERROR_INVALID_HANDLE = -2,       /* a handle is stale, forged, or of the wrong kind or context */
  TUFF_ERROR_NOT_INITIALIZED = -3,      /* used in a child process after fork() */
  TUFF_ERROR_UNSUPPORTED = -4,          /* valid, but this device or this version cannot do it */
  TUFF_ERROR_OUT_OF_DEVICE_MEMORY = -5, /* the device is out of memory; existing objects stay usable */
  TUFF_ERROR_OUT_OF_HOST_MEMORY = -6,   /* the process is out of memory */
  TUFF_ERROR_DEVICE_LOST = -7,          /* the device stopped working; create a new context */
  TUFF_ERROR_NO_DEVICE = -8,            /* no Vulkan loader, driver or suitable device */
  TUFF_ERROR_COMPILE_FAILED = -9,       /* a kernel did not compile; the message contains the log */
  TUFF_ERROR_TIMEOUT = -10,             /* the device did not finish in time */
  TUFF_ERROR_LIMIT_EXCEEDED = -11,      /* beyond a limit of the device or of tuff_limits */
  TUFF_ERROR_IO = -12,                  /* a file could not be read or written */
  TUFF_ERROR_INTERNAL = -13             /* a bug in Tuff or the driver */
};

/* Element types. GEMM takes all floats and TUFF_I8 (and TUFF_I32 for C). Operations that move elements (permute,
 * cast, slice, concat, gather, scatter, pad, copy_strided) take all types, sort all real ones. Expressions take all but
 * 8-bit floats, and tuff_random() says what it takes. tuff_reduce() takes all real types but 8-bit floats, scans all of
 * those but TUFF_BOOL, linear algebra TUFF_F32 and TUFF_F64. All others take TUFF_F32, TUFF_F16, TUFF_BF16; tuff_fft()
 * and tuff_dct() also take TUFF_F64, and tuff_binary() TUFF_I32. tuff_supports() tells what a device can do.
 *
 * TUFF_BOOL is one byte. Tuff writes 0 and 1; any byte other than 0 is read as 1. The 8-bit floats are those of the OCP
 * specification (OFP8) and of ONNX: E4M3 has 4 bits of exponent and 3 of fraction, no infinity, NaN 0x7f and 0xff, and
 * a largest number of 448 (PyTorch: float8_e4m3fn). E5M2 has 5 and 2, infinities and NaNs like TUFF_F16, and a largest
 * number of 57344.
 *
 * A complex element is its real part, then its imaginary part, as in C and NumPy: TUFF_C64 two TUFF_F32, TUFF_C128 two
 * TUFF_F64. It is aligned to its size, 8 or 16 bytes, wherever an operation takes one of these types. tuff_fft() reads
 * and writes such elements under the type of their parts: TUFF_F32 for TUFF_C64, TUFF_F64 for TUFF_C128. */
typedef int32_t tuff_dtype;
enum {
  TUFF_DTYPE_INVALID = -1,
  TUFF_F32 = 1,
  TUFF_F16 = 2,
  TUFF_BF16 = 3,
  TUFF_F64 = 4,
  TUFF_I32 = 5,
  TUFF_U32 = 6,
  TUFF_I8 = 7,
  TUFF_U8 = 8,
  /* Since 0.9.0. */
  TUFF_I64 = 9,
  TUFF_U64 = 10,
  TUFF_I16 = 11,
  TUFF_U16 = 12,
  TUFF_BOOL = 13,
  TUFF_F8_E4M3 = 14,
  TUFF_F8_E5M2 = 15,
  TUFF_C64 = 16,
  TUFF_C128 = 17
};

/* How a stored matrix enters a GEMM. CONJ_TRANS is the same as TRANS for real types. */
typedef int32_t tuff_transpose;
enum { TUFF_TRANSPOSE_INVALID = -1, TUFF_NO_TRANS = 0, TUFF_TRANS = 1, TUFF_CONJ_TRANS = 2 };

/* The keys that a query row sees, with query i and key j counted from 0.
 * NONE: all keys. TOP_LEFT: j <= i. BOTTOM_RIGHT: j <= i + seq_kv - seq_q. */
typedef int32_t tuff_causal;
enum { TUFF_CAUSAL_INVALID = -1, TUFF_CAUSAL_NONE = 0, TUFF_CAUSAL_TOP_LEFT = 1, TUFF_CAUSAL_BOTTOM_RIGHT = 2 };

/* Element-wise functions of one operand. */
typedef int32_t tuff_unary_op;
enum {
  TUFF_UNARY_INVALID = -1,
  TUFF_UNARY_RELU = 1,    /* max(x, 0); NaN stays NaN */
  TUFF_UNARY_SIGMOID = 2, /* 1 / (1 + exp(-x)) */
  TUFF_UNARY_TANH = 3,
  TUFF_UNARY_EXP = 4,
  TUFF_UNARY_LOG = 5, /* natural logarithm; NaN below zero, -inf at zero */
  TUFF_UNARY_SQRT = 6,
  TUFF_UNARY_ABS = 7,
  TUFF_UNARY_NEG = 8,
  /* Since 0.3.0. alpha is the field of tuff_unary_desc. */
  TUFF_UNARY_GELU = 9,        /* x * (1 + erf(x / sqrt(2))) / 2; 0 at -inf */
  TUFF_UNARY_GELU_TANH = 10,  /* x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2; 0 at -inf */
  TUFF_UNARY_SILU = 11,       /* x * sigmoid(x); 0 at -inf */
  TUFF_UNARY_LEAKY_RELU = 12, /* x if x > 0, otherwise alpha * x */
  TUFF_UNARY_ELU = 13,        /* x if x > 0, otherwise alpha * (exp(x) - 1) */
  TUFF_UNARY_HARDSWISH = 14,  /* x * min(max(x + 3, 0), 6) / 6; 0 at -inf */
  TUFF_UNARY_SOFTPLUS = 15,   /* log(1 + exp(x)) */
  TUFF_UNARY_SIN = 16,        /* the sine of x, for arguments of any magnitude; NaN for infinities */
  TUFF_UNARY_COS = 17,
  TUFF_UNARY_ERF = 18, /* the error function: 2 / sqrt(pi) * (integral of exp(-t^2) from 0 to x); since 0.9.0 */
  /* Since 0.9.0. */
  TUFF_UNARY_SQUARE = 19,     /* x * x */
  TUFF_UNARY_CUBE = 20,       /* x * x * x */
  TUFF_UNARY_SIGN = 21,       /* -1, 0 or 1; 0 for zeros of either sign; NaN stays NaN */
  TUFF_UNARY_FLOOR = 22,      /* the largest integer that is not above x; zeros keep their sign */
  TUFF_UNARY_CEIL = 23,       /* the smallest integer that is not below x; -0 above -1 */
  TUFF_UNARY_ROUND = 24,      /* the nearest integer, of two the even one; a zero has the sign of x */
  TUFF_UNARY_TRUNC = 25,      /* x without its fraction; a zero has the sign of x */
  TUFF_UNARY_RECIPROCAL = 26, /* 1 / x; infinity with the sign of x at zeros */
  TUFF_UNARY_RSQRT = 27,      /* 1 / sqrt(x); NaN below zero, infinity with the sign of x at zeros */
  TUFF_UNARY_CBRT = 28,       /* the cube root of x, of any sign */
  TUFF_UNARY_EXP2 = 29,       /* 2^x */
  TUFF_UNARY_EXPM1 = 30,      /* exp(x) - 1, accurate near zero */
  TUFF_UNARY_LOG2 = 31,       /* logarithm to base 2; NaN below zero, -inf at zero */
  TUFF_UNARY_LOG10 = 32,      /* logarithm to base 10; NaN below zero, -inf at zero */
  TUFF_UNARY_LOG1P = 33,      /* log(1 + x), accurate near zero; NaN below -1, -inf at -1 */
  TUFF_UNARY_TAN = 34,        /* the tangent of x, for arguments of any magnitude; NaN for infinities */
  TUFF_UNARY_ASIN = 35,       /* the inverse of the sine, in [-pi/2, pi/2]; NaN beyond [-1, 1] */
  TUFF_UNARY_ACOS = 36,       /* the inverse of the cosine, in [0, pi]; NaN beyond [-1, 1] */
  TUFF_UNARY_ATAN = 37,       /* the inverse of the tangent, in [-pi/2, pi/2] */
  TUFF_UNARY_SINH = 38,
  TUFF_UNARY_COSH = 39,
  TUFF_UNARY_ASINH = 40,       /* the inverse of sinh */
  TUFF_UNARY_ACOSH = 41,       /* the inverse of cosh that is not negative; NaN below 1 */
  TUFF_UNARY_ATANH = 42,       /* the inverse of tanh; infinite at -1 and 1, NaN beyond */
  TUFF_UNARY_ERFC = 43,        /* 1 - erf(x), accurate where that is small */
  TUFF_UNARY_SELU = 44,        /* 1.0507009873554805 * (x if x > 0, otherwise 1.6732632423543772 * (exp(x) - 1)) */
  TUFF_UNARY_SOFTSIGN = 45,    /* x / (1 + |x|); -1 and 1 for infinities */
  TUFF_UNARY_HARDSIGMOID = 46, /* min(max(x + 3, 0), 6) / 6 */
  TUFF_UNARY_MISH = 47,        /* x * tanh(log(1 + exp(x))); 0 at -inf */
  TUFF_UNARY_ERFINV = 48,      /* the inverse of erf; infinite at -1 and 1, NaN beyond */
  TUFF_UNARY_LGAMMA = 49,      /* log(|gamma(x)|); infinite at integers below 1 and for infinities */
  TUFF_UNARY_DIGAMMA = 50,     /* the derivative of lgamma; NaN at negative integers and -inf, -inf at 0, inf at -0 */
  TUFF_UNARY_LOG_SIGMOID = 51  /* -log(1 + exp(-x)), the logarithm of the sigmoid; -0 at inf */
};

/* Element-wise functions of two operands. */
typedef int32_t tuff_binary_op;
enum {
  TUFF_BINARY_INVALID = -1,
  TUFF_BINARY_ADD = 1,
  TUFF_BINARY_SUB = 2,
  TUFF_BINARY_MUL = 3,
  TUFF_BINARY_DIV = 4,
  TUFF_BINARY_MAX = 5, /* NaN if either is NaN */
  TUFF_BINARY_MIN = 6, /* NaN if either is NaN */
  TUFF_BINARY_POW = 7  /* a^b as defined by IEEE 754 pow; since 0.3.0 */
};

/* How the elements along an axis are reduced. */
typedef int32_t tuff_reduce_op;
enum {
  TUFF_REDUCE_INVALID = -1,
  TUFF_REDUCE_SUM = 1,
  TUFF_REDUCE_MAX = 2, /* NaN if any is NaN */
  TUFF_REDUCE_MIN = 3, /* NaN if any is NaN */
  TUFF_REDUCE_MEAN = 4,
  TUFF_REDUCE_PROD = 5,
  /* The index along the axis of the largest or smallest value: the first such index, or that of the first NaN if there
   * is one. The output is TUFF_U32, whatever the input type. Since 0.4.0. */
  TUFF_REDUCE_ARGMAX = 6,
  TUFF_REDUCE_ARGMIN = 7,
  /* Since 0.9.0. NaN is not zero. */
  TUFF_REDUCE_ANY = 8,            /* whether some element is not zero */
  TUFF_REDUCE_ALL = 9,            /* whether no element is zero */
  TUFF_REDUCE_COUNT_NONZERO = 10, /* the number of elements that are not zero */
  TUFF_REDUCE_SUM_SQUARES = 11,   /* the sum of x * x */
  TUFF_REDUCE_L1 = 12,            /* the sum of |x| */
  TUFF_REDUCE_L2 = 13,            /* the square root of the sum of x * x */
  TUFF_REDUCE_VAR = 14,           /* the sum of (x - mean)^2, divided by the number of elements less a correction */
  TUFF_REDUCE_STD = 15,           /* the square root of VAR */
  TUFF_REDUCE_LOGSUMEXP = 16      /* log(sum of exp(x)), computed from the largest x so that no exp overflows */
};

/* The activation that an epilogue applies before the result is stored. */
typedef int32_t tuff_activation;
enum {
  TUFF_ACTIVATION_INVALID = -1,
  TUFF_ACTIVATION_NONE = 0,
  TUFF_ACTIVATION_RELU = 1,
  TUFF_ACTIVATION_GELU = 2,      /* x * (1 + erf(x / sqrt(2))) / 2 */
  TUFF_ACTIVATION_GELU_TANH = 3, /* the usual tanh approximation of GELU */
  TUFF_ACTIVATION_SILU = 4,      /* x * sigmoid(x) */
  TUFF_ACTIVATION_RELU6 = 5      /* min(max(x, 0), 6); NaN stays NaN; since 0.5.0 */
};

/* Whether the bias has one value for each row or for each column of C. */
typedef int32_t tuff_bias_axis;
enum { TUFF_BIAS_INVALID = -1, TUFF_BIAS_NONE = 0, TUFF_BIAS_ROWS = 1, TUFF_BIAS_COLUMNS = 2 };

/* Memory layout of the tensors of a convolution: batch, channels, height, width; or channels last. Shapes are always
 * given in the order N, C, H, W. Since 0.4.0. */
typedef int32_t tuff_layout;
enum { TUFF_LAYOUT_INVALID = -1, TUFF_LAYOUT_NCHW = 0, TUFF_LAYOUT_NHWC = 1 };

/* Which input elements an output element is computed from. Since 0.5.0. */
typedef int32_t tuff_resize_mode;
enum {
  TUFF_RESIZE_INVALID = -1,
  TUFF_RESIZE_NEAREST = 0,       /* the one that contains its corner: floor(o * in / out) */
  TUFF_RESIZE_NEAREST_EXACT = 1, /* the one that contains its centre: floor((o + 1/2) * in / out) */
  TUFF_RESIZE_LINEAR = 2         /* the neighbours along each axis, weighted by distance */
};

/* Distributions of tuff_random(). Since 0.9.0. */
typedef int32_t tuff_random_distribution;
enum {
  TUFF_RANDOM_INVALID = -1,
  TUFF_RANDOM_BITS = 1,       /* integers whose bits are all random */
  TUFF_RANDOM_INTEGERS = 2,   /* integers from least to most, both inclusive, equally likely to 2^-32 */
  TUFF_RANDOM_BERNOULLI = 3,  /* 1 with the given probability (rounded to a multiple of 2^-32), otherwise 0 */
  TUFF_RANDOM_UNIFORM = 4,    /* low + (high - low) * u, with u in [0, 1) */
  TUFF_RANDOM_NORMAL = 5,     /* mean + deviation * z, with z standard normal */
  TUFF_RANDOM_EXPONENTIAL = 6 /* scale * e, with e exponential of mean 1 */
};

/* Distributions of tuff_variates(). Since 0.9.0. */
typedef int32_t tuff_variates_distribution;
enum {
  TUFF_VARIATES_INVALID = -1,
  TUFF_VARIATES_GAMMA = 1,          /* f32. first: the shape, 0 ... (f32); the scale is 1 */
  TUFF_VARIATES_LOG_GAMMA = 2,      /* f32. The logarithm of GAMMA, which may be far below the smallest f32 */
  TUFF_VARIATES_VONMISES = 3,       /* f32, -pi ... pi. first: the concentration, 0 ... (f32); the mode is 0 */
  TUFF_VARIATES_POISSON = 4,        /* i32. first: the rate, 0 ... 2^31 - 2^20 (f32) */
  TUFF_VARIATES_BINOMIAL = 5,       /* i32. first: the trials, 0 ... (i32); second: their probability, 0 ... 1 (f32) */
  TUFF_VARIATES_HYPERGEOMETRIC = 6, /* i32: the good ones among those drawn. first: how many are good; second: how many
                                       are bad; third: how many are drawn, 0 ... good + bad (i32); good + bad < 2^31 */
  TUFF_VARIATES_ZIPF = 7            /* i32, 1 ...: k with probability k^-a / zeta(a). first: a, above 1 (f32) */
};

/* How quantised numbers are stored. The first four are integers of 8 and 4 bits, which come with scales and, if wanted,
 * zero points in buffers of their own. Two 4-bit numbers are a byte, the first one in its low half (as in ONNX). The
 * others are ggml's blocks, as they lie in a GGUF file: each has its scales within it. Since 0.9.0. */
typedef int32_t tuff_quant_format;
enum {
  TUFF_QUANT_INVALID = -1,
  TUFF_QUANT_I8 = 1,
  TUFF_QUANT_U8 = 2,
  TUFF_QUANT_I4 = 3,
  TUFF_QUANT_U4 = 4,
  TUFF_QUANT_Q4_0 = 16, /* 32 numbers in 18 bytes */
  TUFF_QUANT_Q4_1 = 17, /* 32 numbers in 20 bytes */
  TUFF_QUANT_Q5_0 = 18, /* 32 numbers in 22 bytes */
  TUFF_QUANT_Q5_1 = 19, /* 32 numbers in 24 bytes */
  TUFF_QUANT_Q8_0 = 20, /* 32 numbers in 34 bytes */
  TUFF_QUANT_Q4_K = 24, /* 256 numbers in 144 bytes */
  TUFF_QUANT_Q5_K = 25, /* 256 numbers in 176 bytes */
  TUFF_QUANT_Q6_K = 26  /* 256 numbers in 210 bytes */
};

/* Which elements of a tensor share a scale and a zero point. Since 0.9.0. */
typedef int32_t tuff_quant_granularity;
enum {
  TUFF_QUANT_GRANULARITY_INVALID = -1,
  TUFF_QUANT_PER_TENSOR = 0, /* all: there is one scale */
  TUFF_QUANT_PER_AXIS = 1,   /* those of equal index along the axis: there are shape[axis] scales */
  TUFF_QUANT_PER_BLOCK = 2   /* block_size neighbours along the axis: the scales have the tensor's shape, but
                                ceil(shape[axis] / block_size) along the axis */
};

/* Which triangle of a matrix is meant. Since 0.9.0. */
typedef int32_t tuff_triangle;
enum {
  TUFF_TRIANGLE_INVALID = -1,
  TUFF_TRIANGLE_LOWER = 0, /* row >= column */
  TUFF_TRIANGLE_UPPER = 1  /* row <= column */
};

/* On which side of the unknowns the matrix of a linear system is. Since 0.9.0. */
typedef int32_t tuff_side;
enum {
  TUFF_SIDE_INVALID = -1,
  TUFF_SIDE_LEFT = 0, /* op(A) * X = B */
  TUFF_SIDE_RIGHT = 1 /* X * op(A) = B */
};

/* Kinds of Fourier transforms. Since 0.9.0. */
typedef int32_t tuff_fft_kind;
enum {
  TUFF_FFT_INVALID = -1,
  TUFF_FFT_COMPLEX = 1, /* complex numbers to complex numbers */
  TUFF_FFT_REAL = 2,    /* real numbers to the first half of their transform, n / 2 + 1 complex numbers */
  TUFF_FFT_TO_REAL = 3  /* n / 2 + 1 complex numbers, which stand for n, to real numbers */
};

/* What a Fourier transform of n numbers is multiplied by: the product of the sizes of the transformed axes is n, for
 * tuff_dct() that of their N. Since 0.9.0. */
typedef int32_t tuff_fft_norm;
enum {
  TUFF_FFT_NORM_INVALID = -1,
  TUFF_FFT_NORM_NONE = 0,  /* 1 */
  TUFF_FFT_NORM_SIZE = 1,  /* 1 / n */
  TUFF_FFT_NORM_ROOT = 2   /* 1 / sqrt(n) */
};

/* Kinds of tuff_dct(): real transforms of n numbers, as SciPy and FFTW define them. Each is a sum over the numbers j of a
 * line, 0 <= j < n, for each 0 <= k < n; w is 2, but 1 where said. N is what norms take as the size. Since 0.9.0. */
typedef int32_t tuff_dct_kind;
enum {
  TUFF_DCT_INVALID = -1,
  TUFF_DCT_1 = 1, /* w x[j] cos(pi j k / (n - 1)), w is 1 for the first and the last j; N = 2 (n - 1), n >= 2 */
  TUFF_DCT_2 = 2, /* 2 x[j] cos(pi (2 j + 1) k / (2 n)); N = 2 n */
  TUFF_DCT_3 = 3, /* w x[j] cos(pi j (2 k + 1) / (2 n)), w is 1 for the first j; N = 2 n */
  TUFF_DCT_4 = 4, /* 2 x[j] cos(pi (2 j + 1) (2 k + 1) / (4 n)); N = 2 n */
  TUFF_DST_1 = 5, /* 2 x[j] sin(pi (j + 1) (k + 1) / (n + 1)); N = 2 (n + 1) */
  TUFF_DST_2 = 6, /* 2 x[j] sin(pi (2 j + 1) (k + 1) / (2 n)); N = 2 n */
  TUFF_DST_3 = 7, /* w x[j] sin(pi (j + 1) (2 k + 1) / (2 n)), w is 1 for the last j; N = 2 n */
  TUFF_DST_4 = 8  /* 2 x[j] sin(pi (2 j + 1) (2 k + 1) / (4 n)); N = 2 n */
};

/* What tuff_rnn() computes from the sums of a step. Since 0.9.0. */
typedef int32_t tuff_rnn_cell;
enum {
  TUFF_RNN_CELL_INVALID = -1,
  TUFF_RNN_CELL_LSTM = 0, /* 4 gates: input, forget, cell, output */
  TUFF_RNN_CELL_GRU = 1,  /* 3 gates: reset, update, new */
  TUFF_RNN_CELL_TANH = 2, /* 1: h = tanh(sum) */
  TUFF_RNN_CELL_RELU = 3  /* 1: h = max(sum, 0) */
};

/* In which order tuff_rnn() walks along a sequence. Since 0.9.0. */
typedef int32_t tuff_rnn_direction;
enum {
  TUFF_RNN_DIRECTION_INVALID = -1,
  TUFF_RNN_DIRECTION_FORWARD = 0,
  TUFF_RNN_DIRECTION_REVERSE = 1, /* from the last step of each sequence to the first */
  TUFF_RNN_DIRECTION_BOTH = 2     /* two directions, each with weights and states of its own: forward, then reverse */
};

/* The order of the gates in weights and biases. Since 0.9.0. */
typedef int32_t tuff_rnn_gates;
enum {
  TUFF_RNN_GATES_INVALID = -1,
  TUFF_RNN_GATES_TORCH = 0, /* PyTorch's. LSTM: input, forget, cell, output; GRU: reset, update, new */
  TUFF_RNN_GATES_ONNX = 1   /* ONNX's. LSTM: input, output, forget, cell; GRU: update, reset, new */
};

/* Permission to compute less accurately than the types imply. ALLOW_F16 and ALLOW_BF16 let tuff_gemm_ex() and
 * tuff_batched_gemm_ex() round f32 inputs to that type before multiplying; sums stay in f32. ALLOW_TF32 lets them
 * truncate f32 inputs to 10 bits of fraction (with f32's exponents, a relative error below 2^-10), which only devices
 * with TF32 tensor cores do. ALLOW_WINOGRAD lets convolutions use Winograd's minimal filtering. */
typedef int32_t tuff_precision;
enum {
  TUFF_PRECISION_INVALID = -1,
  TUFF_PRECISION_DEFAULT = 0, /* as accurate as the types imply */
  TUFF_PRECISION_ALLOW_F16 = 1,
  TUFF_PRECISION_ALLOW_BF16 = 2,
  TUFF_PRECISION_ALLOW_WINOGRAD = 3, /* for tuff_conv2d_ex(); since 0.6.0 */
  TUFF_PRECISION_ALLOW_TF32 = 4      /* since 0.9.0 */
};

/* Kinds of devices. */
typedef int32_t tuff_device_type;
enum {
  TUFF_DEVICE_INVALID = -1,
  TUFF_DEVICE_OTHER = 0,
  TUFF_DEVICE_INTEGRATED = 1,
  TUFF_DEVICE_DISCRETE = 2,
  TUFF_DEVICE_VIRTUAL = 3,
  TUFF_DEVICE_CPU = 4, /* a Vulkan driver that runs on the CPU, such as Mesa's lavapipe */
  TUFF_DEVICE_HOST = 5 /* the host backend or a plug-in: no Vulkan */
};

/* Log levels, for tuff_set_log(). Each level includes the ones above it in this list. */
typedef int32_t tuff_log_level;
enum {
  TUFF_LOG_INVALID = -1,
  TUFF_LOG_OFF = 0,
  TUFF_LOG_ERROR = 1,
  TUFF_LOG_WARNING = 2,
  TUFF_LOG_INFO = 3,
  TUFF_LOG_DEBUG = 4,
  TUFF_LOG_DISPATCH = 5 /* one line for each dispatch: the variant chosen and why */
};

/* ---------------------------------------------------------------------------------------------
 * Library
 * ------------------------------------------------------------------------------------------- */

/* tuff_version() returns the library's TUFF_VERSION, tuff_abi_version() the TUFF_ABI_VERSION that it implements.
 * Compare the latter with the header's at start-up. These functions never fail. */
TUFF_API uint32_t tuff_version(void);
TUFF_API uint32_t tuff_abi_version(void);

/* Returns one line about how the library was built: version, compiler, shader compiler. The string is static. */
TUFF_API const char* tuff_build_info(void);

/* Returns the constant's name, such as "TUFF_ERROR_INVALID_ARGUMENT", or "TUFF_ERROR_UNKNOWN" for an unknown number.
 * The string is static. */
TUFF_API const char* tuff_status_name(tuff_status status);

/* Returns one sentence of advice on how to resolve the error. The string is static. */
TUFF_API const char* tuff_status_hint(tuff_status status);

/* Copies this thread's last error message into buffer.
 *   buffer    receives at most capacity bytes, always NUL-terminated if capacity > 0; may be NULL if
 *             capacity is 0
 *   length    receives the length of the whole message without the NUL; may be NULL
 * The message is empty until the first failure; successful calls do not change it. A message longer than the buffer is
 * truncated, which is not an error. */
TUFF_API tuff_status tuff_last_error(char* buffer, uint64_t capacity, uint64_t* length);

/* Receives one log message.
 *   level     a TUFF_LOG_*
 *   message   one line, NUL-terminated, valid during the call
 * It may be called from any thread and must not call Tuff. */
typedef void (*tuff_log_callback)(void* user, int32_t level, const char* message);

/* Sends messages of this level and the ones included in it to callback. Logging is off if level is TUFF_LOG_OFF or
 * there is no callback: callback may be NULL. By default Tuff logs nothing. While no callback is set, the environment
 * variable TUFF_LOG=error|warning|info|debug|dispatch sends the log to stderr; any other value counts as warning.
 * Contexts log a warning for each environment variable whose value is invalid, and ignore that variable
 * (docs/building.md).
 *   level   a TUFF_LOG_*
 *   user    passed to callback unchanged */
TUFF_API tuff_status tuff_set_log(tuff_log_callback callback, void* user, int32_t level);

/* ---------------------------------------------------------------------------------------------
 * Devices and contexts
 * ------------------------------------------------------------------------------------------- */

/* What a queue family supports, as bits of tuff_queue_family.flags. Other bits may be set. The values are Vulkan's.
 * Since 0.8.0. */
typedef uint32_t tuff_queue_flags;
enum { TUFF_QUEUE_GRAPHICS = 1, TUFF_QUEUE_COMPUTE = 2, TUFF_QUEUE_TRANSFER = 4, TUFF_QUEUE_SPARSE_BINDING = 8 };

/* Subgroup operations that a device supports, as bits of tuff_device_properties.subgroup_operations. Other bits may be
 * set. The values are Vulkan's. Since 0.8.0. */
typedef uint32_t tuff_subgroup_flags;
enum {
  TUFF_SUBGROUP_BASIC = 1,
  TUFF_SUBGROUP_VOTE = 2,
  TUFF_SUBGROUP_ARITHMETIC = 4,
  TUFF_SUBGROUP_BALLOT = 8,
  TUFF_SUBGROUP_SHUFFLE = 16,
  TUFF_SUBGROUP_SHUFFLE_RELATIVE = 32,
  TUFF_SUBGROUP_CLUSTERED = 64,
  TUFF_SUBGROUP_QUAD = 128
};

/* Sizes of the arrays in tuff_device_properties. Since 0.8.0. */
enum { TUFF_MAX_QUEUE_FAMILIES = 8, TUFF_MAX_MATRIX_SHAPES = 32 };

/* A Vulkan queue family. Since 0.8.0. */
typedef struct tuff_queue_family {
  uint32_t flags;          /* TUFF_QUEUE_* */
  uint32_t count;          /* number of queues */
  uint32_t timestamp_bits; /* valid bits of a timestamp; 0: timestamps are not supported */
  uint32_t reserved;       /* zero */
} tuff_queue_family;

/* A cooperative matrix shape: one subgroup computes C += A * B with A m x k, B k x n, C m x n.
 * Since 0.8.0. */
typedef struct tuff_matrix_shape {
  uint32_t m, n, k;
  int32_t a_type, b_type; /* TUFF_* of A and B */
  int32_t c_type;         /* of C: the accumulator and the result */
} tuff_matrix_shape;

/* Properties of a device. Strings are NUL-terminated UTF-8. */
typedef struct tuff_device_properties {
  uint32_t struct_size;
  int32_t type; /* TUFF_DEVICE_* */
  char name[256];
  char vendor[64];
  char driver[256];        /* the driver's name and version as it reports them */
  char backend[16];        /* "vulkan", "host" or a plug-in's name */
  uint8_t uuid[16];        /* of the device; zero for the host backend */
  uint32_t vendor_id;      /* PCI vendor */
  uint32_t device_id;      /* PCI device */
  uint32_t api_version;    /* Vulkan's, as VK_MAKE_API_VERSION; 0 for the host backend */
  uint32_t driver_version; /* in the driver's own encoding */
  uint64_t memory_bytes;   /* size of the largest device-local heap */
  uint64_t memory_free_bytes;          /* free bytes of that heap as the driver reports; 0 if it does not */
  uint64_t max_allocation_bytes;       /* of one buffer: the most that tuff_alloc tries */
  uint64_t max_storage_range_bytes;    /* largest descriptor range; larger buffers work as well */
  uint32_t max_workgroup_invocations;
  uint32_t max_workgroup_count[3];
  uint32_t max_shared_memory_bytes;    /* per workgroup */
  uint32_t max_push_constant_bytes;
  uint32_t subgroup_size;
  int32_t supports_f16;                /* arithmetic and 16-bit storage; 1 yes, 0 no */
  int32_t supports_bf16;
  int32_t supports_f64;
  int32_t supports_int8;
  int32_t supports_matrix_cores;       /* cooperative matrices */
  int32_t supports_addresses;          /* buffer device addresses */
  int32_t unified_memory;              /* all device memory can be mapped by the host */
  int32_t binding;                     /* how streaming kernels access buffers: 0 descriptors, 1 addresses;
                                          measured, set only for contexts */
  double bandwidth_bytes_per_second;   /* measured by the first tuff_profile_begin(); 0 if not known */
  double f32_flops_per_second;         /* likewise */
  /* Since 0.8.0; all are 0 for the host backend unless noted otherwise. */
  uint32_t max_workgroup_size[3];      /* invocations along each dimension */
  uint32_t subgroup_size_min;          /* kernels can request sizes between min and max; 1 for the host backend */
  uint32_t subgroup_size_max;
  uint32_t subgroup_operations;        /* TUFF_SUBGROUP_* */
  uint32_t compute_units;              /* multiprocessors or cores; 0 if the driver does not report them */
  uint32_t min_storage_alignment;      /* of a descriptor's offset, in bytes; buffers may still begin anywhere */
  uint64_t host_import_alignment;      /* for tuff_buffer_import_host(); 0: not supported. The host backend's too */
  double timestamp_nanoseconds;        /* one tick of the device's clock */
  uint8_t driver_uuid[16];             /* memory can be shared by file descriptor if uuid and driver_uuid match */
  uint32_t queue_family_count;
  uint32_t matrix_shape_count;         /* shapes whose element types Tuff has; 0 without cooperative matrices */
  tuff_queue_family queue_families[TUFF_MAX_QUEUE_FAMILIES]; /* the first ones, in the driver's order */
  tuff_matrix_shape matrix_shapes[TUFF_MAX_MATRIX_SHAPES];   /* likewise */
} tuff_device_properties;

/* Options of tuff_context_create(). All fields zero, or a null descriptor, select the best Vulkan device. */
typedef struct tuff_context_desc {
  uint32_t struct_size;
  int32_t validation;  /* 1: load the Khronos validation layer; its messages go to the log at TUFF_LOG_ERROR and
                          are counted in tuff_stats. TUFF_VALIDATION=1 does the same */
  const char* device;  /* index ("0") or part of a name ("nvidia"), case-insensitive; since 0.8.0 a UUID too, or
                          a unique prefix of one (at least four hexadecimal digits, dashes allowed).
                          NULL: TUFF_DEVICE from the environment if set, otherwise the first device in the order
                          discrete, integrated, virtual, CPU, unless TUFF_VISIBLE_DEVICES gives another.
                          Ignored with a backend other than Vulkan */
  const char* backend; /* "vulkan", "host", or "auto": Vulkan, or host if there is no device; since 0.9.0 the name of a
                          plug-in, such as "cpu" (tuff_backend_register). NULL: "vulkan", or, if `device` is part of a
                          plug-in's device's name and of no Vulkan device's, that plug-in */
  uint64_t memory_limit_bytes; /* as tuff_limits.memory_bytes */
  /* Since 0.7.0. */
  int32_t prewarm;     /* 1: a background thread compiles the kernels that earlier contexts on such a device
                          requested, from a list on disk. TUFF_PREWARM=1 does the same. Destroying the context
                          stops the thread after the kernel that it is compiling. No effect on the host backend */
  int32_t reserved;    /* zero */
} tuff_context_desc;

/* Counts the usable Vulkan devices. Returns TUFF_OK and a count of 0 if there is no loader or driver.
 * Since 0.8.0 the environment variable TUFF_VISIBLE_DEVICES selects and orders the devices for the whole library. It is
 * a comma-separated list of what tuff_context_desc.device accepts. Part of a name selects all devices with that name;
 * indices are those without the variable. An empty list hides all devices. The variable is read when the library first
 * enumerates devices.
 * Errors: INVALID_ARGUMENT if an entry of TUFF_VISIBLE_DEVICES matches nothing, or a UUID prefix matches several
 * devices; the message lists the devices. tuff_device_info() and tuff_context_create() return the same error, except
 * for the backend "host". */
TUFF_API tuff_status tuff_device_count(uint32_t* count);

/* Describes a device. Devices are listed best first. info->struct_size must be set.
 *   index   0 <= index < tuff_device_count()
 * Errors: INVALID_ARGUMENT for an index out of range. */
TUFF_API tuff_status tuff_device_info(uint32_t index, tuff_device_properties* info);

/* Explains why devices are not usable, as text for a person. There is one line for each rejected device, with
 * everything that it lacks (what is required and what the device reports) or the fact that TUFF_VISIBLE_DEVICES hides
 * it. If there is no loader or driver, the text says so. It is empty if every device is usable.
 *   buffer    receives at most capacity bytes, always NUL-terminated if capacity > 0; may be NULL if capacity is 0
 *   length    receives the length of the whole text without the NUL; may be NULL
 * Since 0.8.0. */
TUFF_API tuff_status tuff_device_refusals(char* buffer, uint64_t capacity, uint64_t* length);

/* Loads a plug-in: a shared library that computes Tuff's operations on memory of the process (tuff/backend.h,
 * docs/backends.md). It is then opened by tuff_context_desc.backend, and stays loaded until the process ends. Plug-ins
 * named libtuff-*.so in the folder tuff-backends beside the library need not be registered. Loading a library runs its
 * code: it is as trusted as the program. Registering a file twice does nothing.
 *   path   of the file
 * Since 0.9.0. Errors: IO if the file does not load; INVALID_ARGUMENT if it is no plug-in or a faulty one; UNSUPPORTED if
 * it was built for another version of tuff/backend.h or cannot be used on this machine. The message gives the reason. */
TUFF_API tuff_status tuff_backend_register(const char* path);

/* Counts the plug-ins: registered ones and those in the folder beside the library, which is read by the first call that
 * needs to know. Since 0.9.0. */
TUFF_API tuff_status tuff_backend_count(uint32_t* count);

/* Describes a plug-in's device; info->backend is the name that opens it. info->struct_size must be set.
 *   index   0 <= index < tuff_backend_count()
 * Since 0.9.0. Errors: INVALID_ARGUMENT for an index out of range. */
TUFF_API tuff_status tuff_backend_info(uint32_t index, tuff_device_properties* info);

/* Explains why plug-ins in the folder beside the library were refused, as text for a person: one line for each, with the
 * file and the reason. It is empty if none was.
 *   buffer    receives at most capacity bytes, always NUL-terminated if capacity > 0; may be NULL if capacity is 0
 *   length    receives the length of the whole text without the NUL; may be NULL
 * Since 0.9.0. */
TUFF_API tuff_status tuff_backend_refusals(char* buffer, uint64_t capacity, uint64_t* length);

/* Opens a device. desc may be NULL. The context is freed by tuff_context_destroy().
 * Errors: NO_DEVICE (the message says which devices were found and what each lacks), UNSUPPORTED (validation
 * was requested and the layer is not installed). */
TUFF_API tuff_status tuff_context_create(const tuff_context_desc* desc, tuff_context* context);

/* Waits for the context's work, then frees the context and everything created from it. Any thread may call it, and
 * nothing need be freed before; all those handles are stale afterwards. A lost device is freed as well. If the device
 * does not finish within tuff_limits.wait_milliseconds, the call returns TUFF_OK and logs a warning. What the device
 * still uses is then freed after it has finished, when another context is created or destroyed. */
TUFF_API tuff_status tuff_context_destroy(tuff_context context);

/* Describes the context's device. info->struct_size must be set. */
TUFF_API tuff_status tuff_context_info(tuff_context context, tuff_device_properties* info);

/* Blocks until all work submitted to the stream so far has finished. For a context, this includes all of its streams.
 * Errors: DEVICE_LOST, TIMEOUT. */
TUFF_API tuff_status tuff_synchronize(tuff_stream stream);

/* Queries a feature by name and sets *yes to 1 or 0. Features are what Tuff's operations support on this device;
 * tuff_device_properties describes the device itself.
 *   feature   an element type ("f32", "f16", "bf16", "f64", "i8"), an operation ("gemm", "attention", …), an operation
 *             with a type ("gemm.bf16"), "matrix_cores", "addresses", "unified_memory", "memory_budget", "import_host",
 *             "memory_fd", "custom_kernels", "robust_kernels" (TUFF_KERNEL_ROBUST) or, since 0.9.0, "ptx" (kernels
 *             for the tensor cores of NVIDIA's Hopper GPUs are used), "ptx_driver" (the driver loads PTX) and
 *             "ptx_queue" (Tuff's queues belong to a family that only computes, as those kernels need), "cpu_plugin"
 *             (the device is the processor, and a plug-in computes the calls that it knows) or the name of an
 *             operation of the context (tuff_op_register). Unknown names give 0 */
TUFF_API tuff_status tuff_supports(tuff_context context, const char* feature, int32_t* yes);

/* Returns the name of operation number index, counted from 0, as tuff_supports() takes it, or NULL past the last one.
 * The string is valid for as long as the library is loaded. Since 0.9.0. */
TUFF_API const char* tuff_operation_name(uint32_t index);

/* Counters of a context since its creation. */
typedef struct tuff_stats {
  uint32_t struct_size;
  uint32_t live_buffers;           /* handles not freed yet, including views */
  uint64_t bytes_in_use;           /* held by live buffers and by unfinished work */
  uint64_t bytes_reserved;         /* allocated from the device */
  uint64_t bytes_peak;             /* the largest bytes_in_use so far */
  uint64_t allocations;            /* successful tuff_alloc calls */
  uint64_t dispatches;             /* kernels recorded */
  uint64_t submissions;            /* batches submitted to the device */
  uint64_t barriers;               /* recorded because byte ranges conflicted */
  uint64_t bytes_uploaded;
  uint64_t bytes_downloaded;
  uint64_t shaders_compiled;       /* GLSL to SPIR-V in this context */
  uint64_t shader_cache_hits;      /* SPIR-V read from disk instead */
  uint64_t pipelines_created;
  uint64_t vulkan_objects_created; /* every vkCreate and vkAllocate call; constant in the steady state */
  uint64_t validation_messages;    /* from the validation layer; 0 if it is not loaded */
  /* Since 0.7.0. */
  uint64_t kernel_cache_hits;      /* requests for kernels that already existed */
  uint64_t bytes_staged;           /* uploaded and downloaded bytes that passed through staging memory */
  uint64_t kernels_prewarmed;      /* compiled in the background so far (tuff_context_desc.prewarm) */
  uint64_t kernels_to_prewarm;     /* still to be compiled there; 0: done */
  /* Since 0.9.0. */
  uint64_t pipelines_live;         /* of library kernels; at most tuff_limits.pipelines, plus those in graphs */
  uint64_t pipelines_evicted;      /* least recently used ones that were destroyed; they are recreated on demand */
} tuff_stats;

/* Reads the context's counters. stats->struct_size must be set. */
TUFF_API tuff_status tuff_context_stats(tuff_context context, tuff_stats* stats);

/* Limits that a context enforces. */
typedef struct tuff_limits {
  uint32_t struct_size;
  uint32_t reserved;          /* zero */
  uint64_t memory_bytes;      /* allocations beyond it fail with LIMIT_EXCEEDED; memory that the context itself
                                 needs for partial results counts too; 0: no limit */
  uint64_t wait_milliseconds; /* maximum wait for the device before TIMEOUT; 0: 300,000. CPU drivers compile kernels
                                 during the first wait for them, which takes seconds on a cold cache */
  /* Since 0.9.0. */
  uint64_t pipelines;         /* maximum number of the library's own pipelines, each for certain shapes. Beyond it,
                                 the least recently used ones are destroyed once the device is done with them,
                                 unless a graph holds them. 0: 512 */
} tuff_limits;

/* Replaces the context's limits. Existing buffers are kept even if they exceed the new limit. */
TUFF_API tuff_status tuff_context_set_limits(tuff_context context, const tuff_limits* limits);

/* Sets the tuning table by which later operations choose their kernel variants. `tuff tune` measures such a table on a
 * device; docs/tuning.md describes the format. A new context loads the table that the environment variable TUFF_TUNING
 * names, a path or "off". If TUFF_TUNING is not set, it loads the user's table, tuning.json in the cache folder. A
 * table that is missing, damaged or for another device is then ignored, with a message in the log. Choices that the
 * device's limits or the operands rule out are ignored as well. With one table, results are bit-identical from call to
 * call. With another table they may differ, but stay within the same error bounds.
 *   json   the table, NUL-terminated; NULL: no table, only the built-in choices
 * Since 0.3.0. Errors: INVALID_ARGUMENT if the text is not a tuning table or has no entries for this device (the
 * message says why, and the previous table stays in use); UNSUPPORTED for a table on the host backend, which has no
 * variants. */
TUFF_API tuff_status tuff_context_set_tuning(tuff_context context, const char* json);

/* ---------------------------------------------------------------------------------------------
 * Buffers
 * ------------------------------------------------------------------------------------------- */

/* Allocates device memory, initialised to zero.
 *   bytes   may be 0, which gives a valid buffer with no elements
 * Errors: LIMIT_EXCEEDED (beyond the device's largest allocation, the context's limit, or what the driver reports as
 * available to this process), OUT_OF_DEVICE_MEMORY. The message gives the bytes requested, the bytes free and the
 * largest free range. */
TUFF_API tuff_status tuff_alloc(tuff_context context, uint64_t bytes, tuff_buffer* buffer);

/* Properties of a buffer, as bits of tuff_alloc_desc.flags. */
typedef uint32_t tuff_alloc_flags;
enum {
  TUFF_ALLOC_HOST_VISIBLE = 1, /* tuff_map() works on it */
  TUFF_ALLOC_UNINITIALIZED = 2, /* contents are undefined, which saves clearing the memory */
  /* Pinned host memory: the host reads and writes it at full speed, and the device accesses it over its bus. Meant for
   * staging data that tuff_copy_dtod() moves to or from device buffers. With HOST_VISIBLE alone the memory may be the
   * device's own. Implies HOST_VISIBLE. Since 0.7.0. */
  TUFF_ALLOC_HOST_PINNED = 4,
  /* tuff_buffer_export_fd() works on it. The buffer gets a memory allocation of its own, rounded up to a multiple of
   * 2 MiB, which returns to the device with its last handle. Errors: UNSUPPORTED where tuff_supports "memory_fd" says
   * no. Since 0.7.0. */
  TUFF_ALLOC_EXPORTABLE = 8
};

/* Options of tuff_alloc_ex(). */
typedef struct tuff_alloc_desc {
  uint32_t struct_size;
  uint32_t flags; /* TUFF_ALLOC_* */
  uint64_t bytes;
  const char* name; /* for debugging tools and error messages; may be NULL */
} tuff_alloc_desc;

/* tuff_alloc() with a descriptor. */
TUFF_API tuff_status tuff_alloc_ex(tuff_context context, const tuff_alloc_desc* desc, tuff_buffer* buffer);

/* Creates a second handle for bytes [offset, offset + bytes) of a buffer or view. Its lifetime is its own: the memory
 * stays until the last handle to it is freed. Every operation accepts any offset that is a multiple of the element
 * size.
 * Errors: INVALID_ARGUMENT if the range exceeds the buffer. */
TUFF_API tuff_status tuff_view(tuff_buffer buffer, uint64_t offset, uint64_t bytes, tuff_buffer* view);

/* Frees the handle and returns at once. The memory is released when the device is done with it.
 * TUFF_NULL_HANDLE is accepted and does nothing. */
TUFF_API tuff_status tuff_free(tuff_buffer buffer);

/* Returns the buffer's size in bytes, as it was requested. */
TUFF_API tuff_status tuff_buffer_size(tuff_buffer buffer, uint64_t* bytes);

/* Copies host memory into a buffer, in stream order. src may be reused when the call returns. bytes 0 does nothing.
 * Errors: INVALID_ARGUMENT if the range exceeds the buffer. */
TUFF_API tuff_status tuff_copy_htod(tuff_stream stream, tuff_buffer dst, uint64_t dst_offset, const void* src,
                                    uint64_t bytes);

/* Copies a buffer into host memory, after all earlier work of the stream. dst is complete when the call returns.
 * Errors: INVALID_ARGUMENT if the range exceeds the buffer. */
TUFF_API tuff_status tuff_copy_dtoh(tuff_stream stream, void* dst, tuff_buffer src, uint64_t src_offset,
                                    uint64_t bytes);

/* Copies between buffers of one context, in stream order. Offsets and sizes may be any number of bytes.
 * Errors: INVALID_ARGUMENT if a range exceeds its buffer or the two ranges overlap. */
TUFF_API tuff_status tuff_copy_dtod(tuff_stream stream, tuff_buffer dst, uint64_t dst_offset, tuff_buffer src,
                                    uint64_t src_offset, uint64_t bytes);

/* Copies between buffers of any two contexts: on different devices, on one device, or on a device and the host backend.
 * The copy follows all earlier work of src_stream. Work submitted to dst_stream afterwards follows the copy. src may be
 * overwritten when the call returns. Within one context the function is the same as tuff_copy_dtod().
 * Offsets and sizes may be any number of bytes. If both contexts use one device and driver that share memory by file
 * descriptor (tuff_supports "memory_fd"), the data stays on the device. Otherwise it passes through host memory, which
 * one side fills while the other empties it. Above 256 KiB the call waits for the work of both contexts, sometimes on a
 * second thread. It keeps up to 64 MiB of memory for the next copy in the same direction, until tuff_context_trim() or
 * the destruction of either context. Threads may copy in opposite directions at the same time.
 * Overlap is not detected between buffers of different contexts over the same shared memory (tuff_buffer_import_fd()).
 * Since 0.8.0. Errors: INVALID_ARGUMENT if a range exceeds its buffer, a buffer is mapped, or the ranges overlap within
 * one context; INVALID_HANDLE if dst does not belong to dst_stream's context or src to src_stream's. */
TUFF_API tuff_status tuff_copy_peer(tuff_stream dst_stream, tuff_buffer dst, uint64_t dst_offset,
                                    tuff_stream src_stream, tuff_buffer src, uint64_t src_offset, uint64_t bytes);

/* Fills bytes [offset, offset + bytes) with a repeated pattern, in stream order.
 *   pattern_bytes   1, 2, 4, 8 or 16
 * Errors: INVALID_ARGUMENT for any other pattern size, or if offset or bytes is not a multiple of it. */
TUFF_API tuff_status tuff_fill(tuff_stream stream, tuff_buffer buffer, uint64_t offset, uint64_t bytes,
                               const void* pattern, uint64_t pattern_bytes);

/* Waits for all work submitted to the context so far and gives the host access to the buffer's memory until
 * tuff_unmap(). Meanwhile operations and copies on the buffer, and on views of the same memory, are INVALID_ARGUMENT.
 * Errors: INVALID_ARGUMENT if the buffer is already mapped, was allocated with no bytes, or was not created with
 * TUFF_ALLOC_HOST_VISIBLE, and from tuff_unmap() if it is not mapped by this handle. */
TUFF_API tuff_status tuff_map(tuff_buffer buffer, void** pointer);
TUFF_API tuff_status tuff_unmap(tuff_buffer buffer);

/* ---------------------------------------------------------------------------------------------
 * Memory: what a context has allocated from its device, and what happens when it runs short. docs/memory.md
 * ------------------------------------------------------------------------------------------- */

/* The memory behind a context's buffers. The context allocates blocks from the device and cuts buffers out of them.
 * Freed ranges are kept for later buffers. Sizes count as allocated: in multiples of 256 bytes for buffers of up to
 * 16 MiB, and of 2 MiB for larger ones. Since 0.7.0. */
typedef struct tuff_memory_stats {
  uint32_t struct_size;
  uint32_t blocks;             /* memory blocks allocated from the device */
  uint64_t bytes_in_use;       /* live buffers, freed buffers that unfinished work uses, and the context's own memory */
  uint64_t bytes_reserved;     /* size of all blocks */
  uint64_t bytes_peak;         /* largest bytes_in_use since the context's creation or tuff_context_reset_peak() */
  uint64_t bytes_free;         /* bytes of all blocks that are not in use */
  uint64_t bytes_largest_free; /* the largest contiguous free range */
  uint64_t live_allocations;   /* ranges that make up bytes_in_use */
  uint64_t allocations;        /* ranges handed out so far: buffers, staging, partial results */
  uint64_t hits;               /* allocations that were cut from an existing block */
  uint64_t misses;             /* allocations that needed a new block: allocations = hits + misses */
  double fragmentation;        /* 1 - bytes_largest_free / bytes_free; 0 if nothing is free */
  uint64_t bytes_limit;        /* tuff_limits.memory_bytes; 0: none */
  uint64_t heap_bytes;         /* size of the device heap that buffers come from */
  uint64_t heap_budget_bytes;  /* how much of the heap this process may use, and uses, as the driver reports now */
  uint64_t heap_used_bytes;    /* (VK_EXT_memory_budget); both 0 if it does not: tuff_supports "memory_budget" */
  uint64_t bytes_imported;     /* live buffers over memory that is not the context's; counted in no other field */
} tuff_memory_stats;

/* Reads the context's memory statistics. stats->struct_size must be set. Since 0.7.0. */
TUFF_API tuff_status tuff_context_memory(tuff_context context, tuff_memory_stats* stats);

/* Releases memory that is not in use: empty blocks, the memory for partial results and that of tuff_copy_peer(). The
 * call does not wait, so memory used by unfinished work is released only if tuff_synchronize() was called before. Later
 * allocations are slower. Since 0.7.0. */
TUFF_API tuff_status tuff_context_trim(tuff_context context);

/* Limits of tuff_context_compact(). Since 0.9.0. */
typedef struct tuff_compact_desc {
  uint32_t struct_size;
  uint32_t reserved;         /* zero */
  uint64_t max_bytes;        /* to move; 0: no limit. A buffer is moved as a whole or not; none has more than 16 MiB */
  uint64_t max_milliseconds; /* after which no more is moved; 0: no limit. It is looked at after every 16 MiB */
} tuff_compact_desc;

/* What tuff_context_compact() has done. Since 0.9.0. */
typedef struct tuff_compaction {
  uint32_t struct_size;
  int32_t done;                 /* 1: no buffer can be moved closer to others; 0: another call may move more, unless no
                                   buffer was moved: then what is left has more than max_bytes, or others use it */
  uint64_t bytes_moved;
  uint64_t buffers_moved;       /* views of one memory count as one */
  uint64_t buffers_fixed;       /* buffers that have to stay where they are */
  uint64_t largest_free_before; /* tuff_memory_stats.bytes_largest_free, before and after */
  uint64_t largest_free_after;
  double fragmentation_before;  /* tuff_memory_stats.fragmentation, likewise */
  double fragmentation_after;
} tuff_compaction;

/* Moves live buffers together, so that what is free is in few large ranges, and blocks become empty, which
 * tuff_context_trim() then gives back to the device. Handles, views and contents stay as they are. The call waits for all
 * work submitted to the context so far, and for its own copies; other threads may use the context meanwhile. These
 * buffers stay where they are: mapped ones; exportable and imported ones; pinned ones and others in memory of the host;
 * those that a graph has captured, or a stream is capturing; and those of more than 16 MiB, which have memory of their
 * own. Buffers that other threads use in the meantime are left for another call.
 *   desc         limits; NULL: none
 *   compaction   compaction->struct_size must be set
 * The host backend and plug-ins have a piece of memory for each buffer, and move nothing. Since 0.9.0. */
TUFF_API tuff_status tuff_context_compact(tuff_context context, const tuff_compact_desc* desc,
                                          tuff_compaction* compaction);

/* Resets bytes_peak, here and in tuff_stats, to the current bytes_in_use. Since 0.7.0. */
TUFF_API tuff_status tuff_context_reset_peak(tuff_context context);

/* Describes a failing allocation. Since 0.7.0. */
typedef struct tuff_memory_pressure {
  uint32_t struct_size;     /* set by the library */
  tuff_status status;       /* what the call returns unless memory is freed: TUFF_ERROR_LIMIT_EXCEEDED,
                               TUFF_ERROR_OUT_OF_DEVICE_MEMORY or TUFF_ERROR_OUT_OF_HOST_MEMORY */
  uint64_t bytes_requested; /* the requested size */
  uint64_t bytes_needed;    /* minimum number of bytes to free; more if free memory is fragmented */
} tuff_memory_pressure;

/* Frees memory when the context runs short. It must not throw, and must return. pressure is valid during the call.
 * Since 0.7.0. */
typedef void (*tuff_memory_callback)(void* user, const tuff_memory_pressure* pressure);

/* Sets a callback that is invoked before an allocation fails, in tuff_alloc() or in any other call that needs memory.
 * The library first releases empty blocks and waits for freed memory, then invokes the callback, then tries once more.
 * The call succeeds if enough was freed. A request that can never fit fails without invoking the callback.
 *   callback   runs on the calling thread, which holds no lock; several threads may be inside it at once. It may call
 *              any function of Tuff on any context: free, synchronize, allocate. If an allocation inside the callback
 *              is itself short of memory in the same context, it fails at once. NULL: no callback, the default
 *   user       passed to callback unchanged
 * The call returns when no other thread is inside the previous callback, so that callback's user data may then be
 * freed. Called from inside a callback, it does not wait. Since 0.7.0. */
TUFF_API tuff_status tuff_context_set_memory_callback(tuff_context context, tuff_memory_callback callback, void* user);

/* Creates a buffer over the caller's own memory without copying it; the contents are kept. The buffer is host-visible.
 * The host may access the memory only between tuff_map(), which returns memory itself, and tuff_unmap().
 *   memory, bytes   both multiples of the alignment that the device requires, which the error message states: 4096 with
 *                   every driver seen, at most 65536. Memory-mapped files may be rejected
 * memory must stay valid until the buffer and all its views are freed and a tuff_synchronize() after that has returned,
 * or until the context is destroyed. It counts towards no limit. Importing the same memory twice gives two independent
 * buffers, and operations on one are not ordered with operations on the other.
 * Since 0.7.0. Errors: INVALID_ARGUMENT for an unsuitable address or size; UNSUPPORTED where tuff_supports
 * "import_host" says no. */
TUFF_API tuff_status tuff_buffer_import_host(tuff_context context, void* memory, uint64_t bytes, tuff_buffer* buffer);

/* A buffer's memory as a file descriptor, for another process or another API (CUDA's external memory) on the same
 * device. The importer needs all fields unchanged, except that fd has another number in another process.
 * Since 0.7.0. */
typedef struct tuff_memory_fd {
  uint32_t struct_size;
  int32_t fd;
  uint64_t memory_bytes; /* size of the memory behind fd */
  uint64_t offset;       /* where the buffer begins in it, in bytes */
  uint64_t bytes;        /* size of the buffer */
  uint32_t memory_type;  /* Vulkan's memory type index */
  int32_t dedicated;     /* 1: a dedicated allocation for one buffer, which CUDA must be told */
  uint8_t device_uuid[16]; /* of the device and driver that can import it */
  uint8_t driver_uuid[16];
} tuff_memory_fd;

/* Exports the memory of a buffer created with TUFF_ALLOC_EXPORTABLE, or of a view of one, after waiting for all work
 * submitted to the context so far. Each call creates a new close-on-exec descriptor. The caller owns and closes it; it
 * keeps the memory alive even after the buffer is freed. info->struct_size must be set.
 * Accesses by the users of shared memory are not ordered. Before another user reads or writes, the current one calls
 * tuff_synchronize(), or its own API's equivalent.
 * Since 0.7.0. Errors: INVALID_ARGUMENT for any other buffer, UNSUPPORTED on the host backend. */
TUFF_API tuff_status tuff_buffer_export_fd(tuff_buffer buffer, tuff_memory_fd* info);

/* Creates a buffer over memory that tuff_buffer_export_fd() exported, in this process or another. The contents are
 * kept. It counts towards no limit. The caller keeps fd and may close it after the call. Input from another process is
 * validated as far as possible without reading from a descriptor that might block. fd must refer to device memory as a
 * driver exports it. For a CPU driver it must be a memory file (memfd_create) that holds memory_bytes, has that
 * driver's header and cannot shrink: F_SEAL_SHRINK is set if it is missing. A descriptor of the same driver with a
 * different size is left to the driver to reject. One thing cannot be checked: every process that shares the memory can
 * write to all of it at any time, including the driver's own data in it (docs/memory.md).
 * Since 0.7.0. Errors: INVALID_ARGUMENT for memory of another device or driver, for inconsistent sizes and for a
 * descriptor that is not memory; UNSUPPORTED where tuff_supports "memory_fd" says no. */
TUFF_API tuff_status tuff_buffer_import_fd(tuff_context context, const tuff_memory_fd* info, tuff_buffer* buffer);

/* ---------------------------------------------------------------------------------------------
 * Operations
 *
 * Each call queues its operation and returns; later work on the stream sees the results. All arguments are checked
 * before anything is queued. An output must not overlap an input, except that the output of an element-wise operation
 * may be exactly an input. If an outer size is 0, the call succeeds and accesses no memory. Unless noted otherwise,
 * dtype is TUFF_F32, TUFF_F16 or TUFF_BF16 and is the type of all operands; other types are UNSUPPORTED. Values and
 * sums are computed in f32, and each result is rounded once, to nearest even. (f16 and bf16: since 0.3.0 for reduce,
 * unary, binary and softmax, since 0.4.0 for attention and convolutions.)
 *
 * Any operation may return INVALID_HANDLE for TUFF_NULL_HANDLE in place of an operand with elements; INVALID_ARGUMENT
 * for a buffer that is too small, mapped or not aligned to the element size, for an overlap that is not allowed, and
 * for sizes whose product overflows 64 bits; UNSUPPORTED for types that the device lacks and for sizes beyond the index
 * range of its kernels (the message states the limit).
 *
 * tuff_<op>_ex takes the same arguments in a descriptor, and more options.
 * ------------------------------------------------------------------------------------------- */

/* C = alpha * op(A) * op(B) + beta * C, with op(A) m x k, op(B) k x n, C m x n.
 *   ta, tb          TUFF_NO_TRANS: stored as m x k and k x n; TUFF_TRANS: stored as k x m and n x k
 *   lda, ldb, ldc   elements from one stored row to the next; at least the length of a stored row
 *   dtype           the type of A, B and C. TUFF_I8: the type of A and B, with C in TUFF_I32. tuff_gemm_desc lists the
 *                   types of the sums. Since 0.2.0 types other than TUFF_F32; since 0.9.0 8-bit floats
 * Memory between rows is never written. If k = 0 or alpha = 0, A and B are not read. If beta = 0, C is not read, so
 * NaNs in it do not propagate. alpha and beta are first rounded to f32 (f64 for f64): 1e-300 becomes zero.
 * Errors: INVALID_ARGUMENT for a leading dimension that is too small, a buffer that is too small, or C overlapping A or
 * B; UNSUPPORTED for other types, or types that the device lacks. */
TUFF_API tuff_status tuff_gemm(tuff_stream stream, int32_t dtype, int32_t ta, int32_t tb, uint64_t m, uint64_t n,
                               uint64_t k, double alpha, tuff_buffer a, uint64_t lda, tuff_buffer b, uint64_t ldb,
                               double beta, tuff_buffer c, uint64_t ldc);

/* GEMM with a descriptor: C = activation(alpha * op(A) * op(B) + beta * C + bias + residual), with independent types.
 *     A, B                               C                        sums
 *     f32, f16, bf16, f8 in any mixture  f32, f16, bf16, f8       f32
 *     i8                                 i32, f32, f16, bf16, f8  i32, modulo 2^32
 *     f64                                f64                      f64, where tuff_supports says "gemm.f64"
 * Inputs are converted exactly. alpha * sum and the epilogue are computed in f32 (f64 for an f64 C), and the result is
 * rounded once, to nearest even. For an i32 C, alpha and beta must be integers of 32 bits, all arithmetic is modulo
 * 2^32, and the activation is none or relu. In f32, an activation gives the same bits as the unary operation of its
 * name, unless the CPU plug-in computes one of the two and not the other (docs/cpu.md). bias and residual have type
 * c_type. C may be exactly the residual, with the same leading dimension (and stride). accumulate and precision permit
 * lower accuracy, but do not require it.
 * f8 stands for the 8-bit floats, which are taken since 0.9.0 and usually come with a scale for each tensor:
 *   C = scale_c * activation(alpha * scale_a * scale_b * op(A) * op(B) + beta * C + bias + residual)
 * The scales are read on the device, when the operation runs, so they may be results of operations before it. C, bias
 * and residual are taken as they are stored. An f8 C saturates as in tuff_cast(). If both inputs are f8, the sums of up
 * to 128 products may have 13 bits of fraction, as in NVIDIA's tensor cores, before they are added up in f32;
 * docs/accuracy.md has the bound.
 * Errors: UNSUPPORTED for any other combination of types, or types that the device lacks (the message says which);
 * INVALID_ARGUMENT for a precision with inputs other than f32, for a scale with a C of i32 or f64, or for C overlapping
 * a scale. */
typedef struct tuff_gemm_desc {
  uint32_t struct_size;
  int32_t dtype;
  int32_t ta, tb;
  uint64_t m, n, k;
  double alpha; /* zero means zero, for beta too */
  double beta;
  tuff_buffer a, b, c;
  uint64_t lda, ldb, ldc; /* 0: dense */
  /* Since 0.2.0; all may be zero. */
  int32_t a_type, b_type, c_type; /* TUFF_*; 0: dtype (TUFF_I32 for c_type if dtype is TUFF_I8) */
  int32_t accumulate;             /* type of the sums; 0: see above; TUFF_F16 permits f16 for two f16 inputs, and sums
                                   * with 13 bits of fraction over all of k for two f8 inputs */
  int32_t precision;              /* TUFF_PRECISION_* */
  int32_t activation;             /* TUFF_ACTIVATION_* */
  int32_t bias_axis;              /* TUFF_BIAS_*: whether bias has m or n elements */
  int32_t reserved;               /* zero */
  tuff_buffer bias;               /* of c_type */
  tuff_buffer residual;           /* an m x n matrix of c_type that is added; TUFF_NULL_HANDLE: none */
  uint64_t ld_residual;           /* 0: dense */
  /* Since 0.9.0. One f32 each; TUFF_NULL_HANDLE: 1. */
  tuff_buffer scale_a, scale_b, scale_c;
} tuff_gemm_desc;
TUFF_API tuff_status tuff_gemm_ex(tuff_stream stream, const tuff_gemm_desc* desc);

/* batch_count independent GEMMs: C[i] = alpha * op(A[i]) * op(B[i]) + beta * C[i]. Matrix i starts i * stride elements
 * into its buffer. A stride_a or stride_b of 0 uses one matrix for the whole batch. Other arguments and errors are
 * those of tuff_gemm().
 * Errors: INVALID_ARGUMENT if matrices of C overlap, that is, if batch_count > 1 and stride_c is smaller than one
 * matrix's footprint. */
TUFF_API tuff_status tuff_batched_gemm(tuff_stream stream, int32_t dtype, int32_t ta, int32_t tb, uint64_t m,
                                       uint64_t n, uint64_t k, double alpha, tuff_buffer a, uint64_t lda,
                                       uint64_t stride_a, tuff_buffer b, uint64_t ldb, uint64_t stride_b, double beta,
                                       tuff_buffer c, uint64_t ldc, uint64_t stride_c, uint64_t batch_count);

/* Batched GEMM with a descriptor. Fields not described here are those of tuff_gemm_desc. */
typedef struct tuff_batched_gemm_desc {
  uint32_t struct_size;
  int32_t dtype;
  int32_t ta, tb;
  uint64_t m, n, k;
  double alpha;
  double beta;
  tuff_buffer a, b, c;
  uint64_t lda, ldb, ldc; /* 0: dense */
  uint64_t stride_a, stride_b, stride_c;
  uint64_t batch_count;
  /* Since 0.2.0; all may be zero. */
  int32_t a_type, b_type, c_type; /* TUFF_*; 0: dtype (TUFF_I32 for c_type if dtype is TUFF_I8) */
  int32_t accumulate;             /* type of the sums; 0: see above; TUFF_F16 permits f16 for two f16 inputs, and sums
                                   * with 13 bits of fraction over all of k for two f8 inputs */
  int32_t precision;              /* TUFF_PRECISION_* */
  int32_t activation;             /* TUFF_ACTIVATION_* */
  int32_t bias_axis;              /* TUFF_BIAS_*: whether bias has m or n elements */
  int32_t reserved;               /* zero */
  tuff_buffer bias;               /* of c_type */
  tuff_buffer residual;           /* an m x n matrix of c_type that is added; TUFF_NULL_HANDLE: none */
  uint64_t ld_residual;           /* 0: dense */
  uint64_t stride_bias, stride_residual; /* 0: one bias or residual for the whole batch */
  /* Arrays of batch_count handles each, instead of strides: matrix i is at the start of a_array[i]. If they are used,
   * all three are required, and a, b, c and their strides are zero. NULL: none. */
  const tuff_buffer *a_array, *b_array, *c_array;
  /* Since 0.9.0. One f32 each, for the whole batch; TUFF_NULL_HANDLE: 1. */
  tuff_buffer scale_a, scale_b, scale_c;
} tuff_batched_gemm_desc;
TUFF_API tuff_status tuff_batched_gemm_ex(tuff_stream stream, const tuff_batched_gemm_desc* desc);

/* Describes a GEMM as tuning tables do (a tuff_gemm_ex() call has batch_count 1). Nothing is computed.
 *   json     receives at most capacity bytes, NUL-terminated if capacity > 0; may be NULL if capacity is 0. The text is
 *            an entry of a tuning table. "slices" is the tuned split-K count (0: not tuned). "variants" lists the
 *            variants worth measuring: first the one that would be used now, then the others by expected speed:
 *            {"operation": "gemm", "form": "nn f32 f32 f32", "sizes": [64, 64, 64, 1], "slices": 0,
 *             "variants": ["tile_32x32", ...]}
 *   length   receives the length of the whole text without the NUL; may be NULL
 * Since 0.3.0. Errors: those of tuff_batched_gemm_ex(); UNSUPPORTED on the host backend. */
TUFF_API tuff_status tuff_batched_gemm_variants(tuff_stream stream, const tuff_batched_gemm_desc* desc, char* json,
                                                uint64_t capacity, uint64_t* length);

/* 2-D convolution, computed as cross-correlation:
 *   output[n][k][p][q] = sum over c, r, s of
 *     input[n][c][p * stride[0] - padding[0] + r][q * stride[1] - padding[1] + s] * filter[k][c][r][s]
 * The input counts as zero outside its bounds.
 *   in_shape      N, C, H, W
 *   filter_shape  K, C, R, S
 *   out_shape     N, K, P, Q with P = floor((H + 2 * padding[0] - R) / stride[0]) + 1, Q likewise
 *   stride        vertical, horizontal; at least 1
 *   padding       zeros added on each side, vertical and horizontal
 * Errors: INVALID_ARGUMENT for any other out_shape (the message states the expected one), for channel or batch sizes
 * that disagree, and for a filter larger than the padded input. */
TUFF_API tuff_status tuff_conv2d(tuff_stream stream, int32_t dtype, tuff_buffer input, const uint64_t in_shape[4],
                                 tuff_buffer filter, const uint64_t filter_shape[4], tuff_buffer output,
                                 const uint64_t out_shape[4], const uint64_t stride[2], const uint64_t padding[2]);

/* Convolution with a descriptor. Everything beyond the fields of tuff_conv2d() is available since 0.4.0:
 *   output[n][k] = activation(sum[n][k] + bias[k] + residual[n][k])
 * The sum is the cross-correlation of tuff_conv2d() with dilation * r and dilation * s in place of r and s. Filter k
 * sees only the C / groups channels of its group, k / (K / groups). groups = C is a depthwise convolution. All operands
 * have type dtype, which may also be TUFF_F16 or TUFF_BF16. Sums and the epilogue are computed in f32 and the result is
 * rounded once, to nearest even. output may be exactly the residual.
 *   P = floor((H + padding[0] + padding_end[0] - (dilation[0] * (R - 1) + 1)) / stride[0]) + 1, Q likewise
 * layout is the memory layout of input, output and residual, and of the filters:
 * TUFF_LAYOUT_NCHW [K][C / groups][R][S], TUFF_LAYOUT_NHWC [K][R][S][C / groups].
 * The precision TUFF_PRECISION_ALLOW_WINOGRAD permits Winograd's minimal filtering for 3 x 3 windows with stride,
 * dilation and groups 1: tiles of up to 6 x 6 inputs are transformed first, and a quarter to a half of the
 * multiplications remain. An output's rounding error then depends on every value of its tile, not only on its own
 * window, and integer inputs need not give exact results.
 * Errors: INVALID_ARGUMENT unless groups divides C and K; UNSUPPORTED for a stride or dilation above 65,535 that is
 * actually applied. */
typedef struct tuff_conv2d_desc {
  uint32_t struct_size;
  int32_t dtype;
  tuff_buffer input, filter, output;
  uint64_t in_shape[4];     /* N, C, H, W, whatever the layout */
  uint64_t filter_shape[4]; /* K, C / groups, R, S */
  uint64_t out_shape[4];    /* N, K, P, Q */
  uint64_t stride[2];   /* 0: 1 */
  uint64_t padding[2];
  uint64_t dilation[2]; /* distance between filter taps; 0: 1. P and Q use dilation * (R - 1) + 1 in place of R */
  /* Since 0.4.0; all may be zero. */
  uint64_t padding_end[2]; /* if asymmetric: zeros added below and to the right; padding is above and to the left */
  uint64_t groups;         /* 0: 1 */
  int32_t asymmetric;      /* 0: padding applies to both sides and padding_end is zero; 1: see padding_end */
  int32_t layout;          /* TUFF_LAYOUT_* */
  int32_t activation;      /* TUFF_ACTIVATION_* */
  int32_t precision;       /* TUFF_PRECISION_DEFAULT or _ALLOW_WINOGRAD; since 0.6.0, zero before */
  tuff_buffer bias;        /* K elements; TUFF_NULL_HANDLE: none */
  tuff_buffer residual;    /* added to the sum; of the output's shape and layout; TUFF_NULL_HANDLE: none */
} tuff_conv2d_desc;
TUFF_API tuff_status tuff_conv2d_ex(tuff_stream stream, const tuff_conv2d_desc* desc);

/* 1-D convolution: input N, C, W, filter K, C, S, output N, K, Q. Since 0.4.0. Arguments and errors are those of
 * tuff_conv2d(). */
TUFF_API tuff_status tuff_conv1d(tuff_stream stream, int32_t dtype, tuff_buffer input, const uint64_t in_shape[3],
                                 tuff_buffer filter, const uint64_t filter_shape[3], tuff_buffer output,
                                 const uint64_t out_shape[3], uint64_t stride, uint64_t padding);

/* All fields are as in tuff_conv2d_desc; TUFF_LAYOUT_NHWC is N, W, C. Since 0.4.0. */
typedef struct tuff_conv1d_desc {
  uint32_t struct_size;
  int32_t dtype;
  tuff_buffer input, filter, output;
  uint64_t in_shape[3];     /* N, C, W, whatever the layout */
  uint64_t filter_shape[3]; /* K, C / groups, S */
  uint64_t out_shape[3];    /* N, K, Q */
  uint64_t stride[1];       /* 0: 1 */
  uint64_t padding[1];
  uint64_t dilation[1];     /* 0: 1 */
  uint64_t padding_end[1];
  uint64_t groups;          /* 0: 1 */
  int32_t asymmetric, layout, activation, reserved;
  tuff_buffer bias, residual;
} tuff_conv1d_desc;
TUFF_API tuff_status tuff_conv1d_ex(tuff_stream stream, const tuff_conv1d_desc* desc);

/* 3-D convolution: input N, C, D, H, W, filter K, C, T, R, S, output N, K, O, P, Q. Since 0.4.0. Arguments and errors
 * are those of tuff_conv2d(); stride and padding are given for depth, height, width. */
TUFF_API tuff_status tuff_conv3d(tuff_stream stream, int32_t dtype, tuff_buffer input, const uint64_t in_shape[5],
                                 tuff_buffer filter, const uint64_t filter_shape[5], tuff_buffer output,
                                 const uint64_t out_shape[5], const uint64_t stride[3], const uint64_t padding[3]);

/* All fields are as in tuff_conv2d_desc; TUFF_LAYOUT_NHWC is N, D, H, W, C. Since 0.4.0. */
typedef struct tuff_conv3d_desc {
  uint32_t struct_size;
  int32_t dtype;
  tuff_buffer input, filter, output;
  uint64_t in_shape[5];     /* N, C, D, H, W, whatever the layout */
  uint64_t filter_shape[5]; /* K, C / groups, T, R, S */
  uint64_t out_shape[5];    /* N, K, O, P, Q */
  uint64_t stride[3];       /* 0: 1 */
  uint64_t padding[3];
  uint64_t dilation[3];     /* 0: 1 */
  uint64_t padding_end[3];
  uint64_t groups;          /* 0: 1 */
  int32_t asymmetric, layout, activation, reserved;
  tuff_buffer bias, residual;
} tuff_conv3d_desc;
TUFF_API tuff_status tuff_conv3d_ex(tuff_stream stream, const tuff_conv3d_desc* desc);

/* Transposed 2-D convolution, which maps an output shape of tuff_conv2d() back to its input shape. Each input pixel
 * (y, x) adds its value times the filter to the outputs starting at (y, x) * stride - padding:
 *   output[n][k][p][q] = sum of input[n][c][y][x] * filter[c][k][r][s] over c, r, s and all y, x with
 *     y * stride[0] + r = p + padding[0] and x * stride[1] + s = q + padding[1]
 *   in_shape        N, C, H, W
 *   filter_shape    C, K, R, S
 *   out_shape       N, K, P, Q with P = (H - 1) * stride[0] + R - 2 * padding[0] + output_padding[0], Q likewise
 *   stride          vertical, horizontal; at least 1
 *   padding         outputs cut off on each side
 *   output_padding  additional outputs at the bottom and right; less than the stride or the dilation
 * Since 0.4.0. Errors: those of tuff_conv2d(); INVALID_ARGUMENT for padding that cuts off more than the output has. */
TUFF_API tuff_status tuff_conv_transpose2d(tuff_stream stream, int32_t dtype, tuff_buffer input,
                                           const uint64_t in_shape[4], tuff_buffer filter,
                                           const uint64_t filter_shape[4], tuff_buffer output,
                                           const uint64_t out_shape[4], const uint64_t stride[2],
                                           const uint64_t padding[2], const uint64_t output_padding[2]);

/* Transposed convolution with a descriptor: output = activation(sum + bias). Types, groups and layouts are as in
 * tuff_conv2d_desc. In the formulas of tuff_conv_transpose2d(), dilation[0] * r replaces r and
 * dilation[0] * (R - 1) + 1 replaces R; s and S likewise. The filter is stored as
 * TUFF_LAYOUT_NCHW [C][K / groups][R][S], TUFF_LAYOUT_NHWC [C][R][S][K / groups]. Since 0.4.0. */
typedef struct tuff_conv_transpose2d_desc {
  uint32_t struct_size;
  int32_t dtype;
  tuff_buffer input, filter, output;
  uint64_t in_shape[4];     /* N, C, H, W, whatever the layout */
  uint64_t filter_shape[4]; /* C, K / groups, R, S */
  uint64_t out_shape[4];    /* N, K, P, Q */
  uint64_t stride[2];       /* 0: 1 */
  uint64_t padding[2];
  uint64_t output_padding[2];
  uint64_t dilation[2];     /* 0: 1 */
  uint64_t groups;          /* 0: 1 */
  int32_t layout, activation;
  int64_t reserved;         /* zero */
  tuff_buffer bias;         /* K elements; TUFF_NULL_HANDLE: none */
} tuff_conv_transpose2d_desc;
TUFF_API tuff_status tuff_conv_transpose2d_ex(tuff_stream stream, const tuff_conv_transpose2d_desc* desc);

/* Options of tuff_conv_backward_data() and tuff_conv_backward_filter(), which take the same description of a convolution
 * in one to three dimensions: that of tuff_conv1d_ex(), tuff_conv2d_ex() or tuff_conv3d_ex(), without what is done to
 * the sums. A gradient has the shape, layout and type of what it is the gradient of. Since 0.9.0. */
typedef struct tuff_conv_backward_desc {
  uint32_t struct_size;
  int32_t dtype;       /* of all operands: TUFF_F32, TUFF_F16 or TUFF_BF16 */
  tuff_buffer input;   /* the filter's gradient reads it */
  tuff_buffer filter;  /* the input's gradient reads it */
  tuff_buffer doutput; /* the gradient by the output, which both read */
  tuff_buffer dinput;  /* out, tuff_conv_backward_data() */
  tuff_buffer dfilter; /* out, tuff_conv_backward_filter(); TUFF_NULL_HANDLE: not wanted, as dbias; not both */
  tuff_buffer dbias;   /* out, tuff_conv_backward_filter(): K elements */
  /* As in tuff_conv3d_desc: the first 2 + spatial of these sizes are used, the others are ignored. */
  uint64_t in_shape[5];     /* N, C, spatial sizes, whatever the layout */
  uint64_t filter_shape[5]; /* K, C / groups, window */
  uint64_t out_shape[5];    /* N, K, spatial sizes */
  uint64_t stride[3];       /* 0: 1; the first `spatial` of these and the following are used */
  uint64_t padding[3];
  uint64_t dilation[3];     /* 0: 1 */
  uint64_t padding_end[3];  /* if asymmetric: at the end of each axis; padding is at its beginning */
  uint64_t groups;          /* 0: 1 */
  uint32_t spatial;         /* number of spatial axes: 1, 2 or 3 */
  int32_t asymmetric;       /* 0: padding applies to both sides and padding_end is zero; 1: see padding_end */
  int32_t layout;           /* TUFF_LAYOUT_* */
  int32_t reserved;         /* zero */
} tuff_conv_backward_desc;

/* The gradient of a function of a convolution's output by its input, given that by the output. In two dimensions:
 *   dinput[n][c][y][x] = sum of doutput[n][k][p][q] * filter[k][c][r][s] over k, r, s and all p, q with
 *     p * stride[0] + dilation[0] * r = y + padding[0] and q * stride[1] + dilation[1] * s = x + padding[1]
 * An element that no window reads has the gradient 0. input, dfilter and dbias are not used. This is the transposed
 * convolution of doutput, in one to three dimensions. Sums are computed in f32, and each is rounded once. Since 0.9.0.
 * Errors: those of tuff_conv2d_ex(), and INVALID_ARGUMENT for another number of axes; dinput shares no memory with
 * doutput or filter. UNSUPPORTED on devices for filters of 2^31 elements or more, for images of 2^30 elements or more
 * with strides in three dimensions, and for sizes beyond those of tuff_conv_transpose2d_ex(). */
TUFF_API tuff_status tuff_conv_backward_data(tuff_stream stream, const tuff_conv_backward_desc* desc);

/* The gradients of a function of a convolution's output by the filter, by the bias, or by both. In two dimensions:
 *   dfilter[k][c][r][s] = sum over n, p, q of doutput[n][k][p][q] *
 *     input[n][c][p * stride[0] - padding[0] + dilation[0] * r][q * stride[1] - padding[1] + dilation[1] * s]
 *   dbias[k] = sum over n, p, q of doutput[n][k][p][q]
 * Without images both are 0. filter and dinput are not used, and input is not if only dbias is wanted. Sums are computed
 * in f32, in an order that depends on sizes and the device only, and each is rounded once. Since 0.9.0.
 * The gradient of a transposed convolution by its filter is this one, with the transposed convolution's doutput as
 * `input` and its input as `doutput`; that by its input is the convolution of its doutput.
 * Errors: those of tuff_conv2d_ex(), and INVALID_ARGUMENT for another number of axes or if neither gradient is wanted;
 * the gradients share no memory with each other or with what is read. UNSUPPORTED on devices for filters of 2^32
 * elements or more, and for a dbias that adds up 2^32 - 2^16 or more pixels or planes. */
TUFF_API tuff_status tuff_conv_backward_filter(tuff_stream stream, const tuff_conv_backward_desc* desc);

/* Attention: O = softmax(scale * Q * K^T + mask) * V for each batch element and head.
 *   q, o     [batch][heads][seq_q][head_dim]
 *   k, v     [batch][heads][seq_kv][head_dim]
 *   scale    finite and positive in f32
 *   causal   TUFF_CAUSAL_*
 * A row that sees no key is zero. A NaN score makes its own row NaN. A score of -infinity has no weight, whatever
 * caused it; a row with only such scores is zero. A score of +infinity counts as the largest finite number.
 * Errors: INVALID_ARGUMENT if seq_q, seq_kv or head_dim is 0; UNSUPPORTED if head_dim is over 1024. */
TUFF_API tuff_status tuff_attention(tuff_stream stream, int32_t dtype, tuff_buffer q, tuff_buffer k, tuff_buffer v,
                                    tuff_buffer o, uint64_t batch, uint64_t heads, uint64_t seq_q, uint64_t seq_kv,
                                    uint64_t head_dim, double scale, int32_t causal);

/* Options of tuff_attention_ex(). */
typedef struct tuff_attention_desc {
  uint32_t struct_size;
  int32_t dtype; /* of q, k, v and o: TUFF_F32; since 0.4.0 TUFF_F16 and TUFF_BF16 too, with sums in f32 */
  tuff_buffer q, k, v, o;
  uint64_t batch, heads, seq_q, seq_kv, head_dim;
  double scale; /* 0: 1 / sqrt(head_dim) */
  int32_t causal;
  int32_t reserved; /* zero */

  /* Since 0.4.0. */
  uint64_t kv_heads;   /* heads of k and v, a divisor of heads: query head h reads head h / (heads / kv_heads);
                          0: heads */
  uint64_t head_dim_v; /* of v and o, at most 1024; 0: head_dim */
  /* Strides in elements from one batch element, head and row to the next. The elements of a row are contiguous. A
   * stride of 0 is that of the dense layout [batch][heads][seq][head_dim]. With strides, [batch][seq][heads][head_dim]
   * and a key/value cache longer than seq_kv can be used in place. The rows of o must not overlap. */
  uint64_t q_strides[3], k_strides[3], v_strides[3], o_strides[3];

  /* What is applied to a score s = scale * (q . k), in this order. */
  double softcap;           /* s = softcap * tanh(s / softcap); positive and normal in f32; 0: none */
  tuff_buffer bias;         /* s = s + bias[...][key]; -infinity hides the key. TUFF_NULL_HANDLE: none */
  uint64_t bias_strides[3]; /* elements from one batch element, head and query to the next; 0: the same for all */
  tuff_buffer mask;         /* one byte per key; 0 hides the key. TUFF_NULL_HANDLE: none */
  uint64_t mask_strides[3]; /* as bias_strides */
  int32_t bias_type;        /* dtype (or 0), or TUFF_F32 */
  int32_t reserved2;        /* zero */

  /* Sliding window: the number of keys that a row sees to the left and to the right of its position; both numbers
   * include the key at the position itself. 0: all. Row i has the position of key i, or with TUFF_CAUSAL_BOTTOM_RIGHT
   * that of key i + seq_kv - seq_q. */
  uint64_t window_left, window_right;

  /* Lengths of the sequences of each batch element: [batch] numbers of type TUFF_I32 (or TUFF_U32 below 2^31);
   * TUFF_NULL_HANDLE: seq_q and seq_kv. Lengths are clamped to 0 ... seq_q or seq_kv. No row sees the keys beyond
   * kv_lengths, and rows beyond q_lengths see no key. TUFF_CAUSAL_BOTTOM_RIGHT aligns these ends. */
  tuff_buffer q_lengths, kv_lengths;

  /* Output: log(sum over keys of exp(s)) for each row, TUFF_F32 [batch][heads][seq_q]; -infinity for a row that sees no
   * key. TUFF_NULL_HANDLE: not computed */
  tuff_buffer lse;

  /* Since 0.9.0. Quantised keys and values; q and o are of dtype. They are dequantised in f32, or, where matrix units
   * multiply f16 or bf16, rounded to dtype once: there numbers beyond the range of f16 may count as infinite.
   *   k_format, v_format   TUFF_QUANT_Q8_0 or TUFF_QUANT_Q4_0: blocks of 32 numbers along head_dim, at any even byte; 0:
   *                        none. head_dim (head_dim_v) is a multiple of 32. Strides count numbers, and are multiples of 32
   *   k_type, v_type       without a format: TUFF_F8_E4M3 or TUFF_F8_E5M2; dtype (or 0): not quantised
   *   k_scales, v_scales   with 8-bit floats: TUFF_F32, by which all numbers of a key or value are multiplied;
   *                        TUFF_NULL_HANDLE: 1
   *   k_scale_strides, v_scale_strides
   *                        elements from one batch element, kv head and key to the next; 0: the same for all */
  int32_t k_format, v_format, k_type, v_type;
  tuff_buffer k_scales, v_scales;
  uint64_t k_scale_strides[3], v_scale_strides[3];
} tuff_attention_desc;
/* tuff_attention() with the options of the descriptor. Masked keys contribute nothing; their NaNs do not propagate.
 * Errors: those of tuff_attention(); INVALID_ARGUMENT if kv_heads does not divide heads, if rows of o overlap, if an
 * output overlaps an operand, or for quantised sizes and strides that are not those of whole blocks; UNSUPPORTED for
 * other types and formats, for a mask or 8-bit floats on a device without 8-bit storage, and on devices for more than five
 * of k_scales, v_scales, bias, mask, lse, q_lengths and kv_lengths. */
TUFF_API tuff_status tuff_attention_ex(tuff_stream stream, const tuff_attention_desc* desc);

/* Options of tuff_attention_backward(). Since 0.9.0. Fields with names of tuff_attention_desc mean the same, and a stride
 * of 0 is that of the dense layout. A gradient has the shape of what it is the gradient of, and the same type. */
typedef struct tuff_attention_backward_desc {
  uint32_t struct_size;
  int32_t dtype;          /* of q, k, v, o, d_o, dq, dk and dv: TUFF_F32, TUFF_F16 or TUFF_BF16, with sums in f32 */
  tuff_buffer q, k, v;    /* what tuff_attention_ex() read, */
  tuff_buffer o, lse;     /* ... and what it wrote; lse is TUFF_F32 [batch][heads][seq_q] */
  tuff_buffer d_o;        /* the gradient by o */
  tuff_buffer dq, dk, dv; /* out: the gradients by q, k and v; TUFF_NULL_HANDLE: not wanted. One, or dbias, is given */
  uint64_t batch, heads, seq_q, seq_kv, head_dim;
  uint64_t kv_heads;      /* 0: heads */
  uint64_t head_dim_v;    /* 0: head_dim */
  double scale;           /* 0: 1 / sqrt(head_dim) */
  double softcap;         /* 0: none */
  int32_t causal;         /* TUFF_CAUSAL_* */
  int32_t bias_type;      /* dtype (or 0), or TUFF_F32 */
  tuff_buffer bias, mask; /* TUFF_NULL_HANDLE: none */
  tuff_buffer q_lengths, kv_lengths; /* TUFF_NULL_HANDLE: seq_q and seq_kv */
  uint64_t window_left, window_right; /* 0: all */
  /* Elements from one batch element, head and row to the next. The rows of dq, of dk and of dv must not overlap. */
  uint64_t q_strides[3], k_strides[3], v_strides[3], o_strides[3], d_o_strides[3];
  uint64_t dq_strides[3], dk_strides[3], dv_strides[3];
  uint64_t bias_strides[3], mask_strides[3]; /* 0: the same for all */
  tuff_buffer dbias;      /* out: the gradient by the bias, of bias_type; TUFF_NULL_HANDLE: not wanted */
  /* As bias_strides. Where one of those is 0, dbias has one element for all, and its stride is not used; elsewhere 0 is
   * that of the bias. Elements of dbias must not overlap. */
  uint64_t dbias_strides[3];
} tuff_attention_backward_desc;

/* The gradients of a function of tuff_attention_ex()'s output o by q, k, v and the bias, given that by o. With the weights
 * p = exp(s - lse) and dp = d_o . v of a row and a key, and D = d_o . o of a row:
 *
 *   ds = p * (dp - D)      times the slope of the soft cap
 *   dv = sum over rows of p * d_o,  dk = scale * (sum over rows of ds * q),  dq = scale * (sum over keys of ds * k)
 *   dbias = p * (dp - D), added up over what shares an element of the bias
 *
 * Sums for dk and dv are over the rows of all heads that share the key. The weights are computed anew from q, k and lse,
 * so that no memory grows with seq_q * seq_kv (FlashAttention), but that of dbias: in 16 bits and shared, it is added up
 * in f32 first. A pair of a row and a key that is masked, also by a bias of -infinity, contributes nothing, whatever the
 * operands hold there; the gradient of a row that sees no key is 0, as is that of a key that no row sees. An error of lse
 * is one of all weights of its row: lse is as exact as f32 holds it, so a weight is off by |lse| * 2^-24 of itself. A
 * weight is at most 1, whatever lse holds.
 * Since 0.9.0. Sums are made in an order that depends on sizes and the device only: the same bits run after run.
 * Errors: those of tuff_attention_ex(); INVALID_ARGUMENT if neither dq nor dk nor dv nor dbias is given, for dbias
 * without a bias, if rows of an output (elements of dbias) overlap, or if an output overlaps another operand. */
TUFF_API tuff_status tuff_attention_backward(tuff_stream stream, const tuff_attention_backward_desc* desc);

/* Reduces one axis. The output has the input's shape without that axis.
 *   op      TUFF_REDUCE_*
 *   shape   rank sizes of the input, 1 <= rank <= 8
 *   axis    0 <= axis < rank
 * Since 0.9.0 dtype is any real type but the 8-bit floats, where tuff_supports() says so ("reduce.i64"). The output's
 * type is the first of its row here; with tuff_reduce_desc it may be any of the row:
 *   operation                    input                   output
 *   MAX, MIN                     any                     the input's type
 *   SUM, PROD, SUM_SQUARES, L1   f32, f16, bf16          the input's type, f32, f64
 *                                f64                     f64
 *                                integers                the input's type, any other integer type
 *                                bool                    i32, any other integer type
 *   MEAN, L2, VAR, STD,          f32, f16, bf16          the input's type, f32, f64
 *   LOGSUMEXP                    f64                     f64
 *                                integers, bool          f32, f64
 *   ARGMAX, ARGMIN               any                     u32, i64
 *   ANY, ALL                     any                     bool
 *   COUNT_NONZERO                any                     i64, i32, u32, u64
 * Sums of integers that have a row with integer results are exact modulo 2^n, for a result of n bits: they wrap. If the
 * result is f64, everything is computed in f64; other floats are computed in f32 on devices, and integers whose result
 * is a float are first converted to that type. If an intermediate sum or product leaves the range of f32 (or f64), the
 * result is infinite or NaN, even if the exact mean or norm would not be. The host backend sums in f64 or wider.
 * Reducing an empty axis gives 0 for SUM, COUNT_NONZERO, SUM_SQUARES, L1, L2 and ANY, 1 for PROD and ALL, -infinity for
 * LOGSUMEXP, and NaN for MEAN, VAR and STD. VAR and STD take the mean first and then read the input again. They are NaN
 * if an element is infinite or NaN.
 * Errors: INVALID_ARGUMENT for MAX, MIN, ARGMAX and ARGMIN of an empty axis; UNSUPPORTED for other pairs of types, and
 * for 64-bit types (of the input or the output) that the device lacks. */
TUFF_API tuff_status tuff_reduce(tuff_stream stream, int32_t dtype, int32_t op, tuff_buffer input, tuff_buffer output,
                                 const uint64_t* shape, uint32_t rank, uint32_t axis);

/* tuff_reduce() with a descriptor. */
typedef struct tuff_reduce_desc {
  uint32_t struct_size;
  int32_t dtype;
  int32_t op;
  uint32_t rank;
  tuff_buffer input, output;
  uint64_t shape[8];
  uint32_t axis;
  uint32_t reserved; /* zero */
  /* Since 0.9.0. */
  uint32_t axis_count; /* neighbouring axes that are reduced together, from `axis` on; 0: one. The output has none of
                          them, and ARGMAX and ARGMIN count along all of them */
  int32_t output_type; /* one of the table above; 0: the first */
  double correction;   /* of VAR and STD: the sum is divided by the number of elements less this, 1 for an unbiased
                          estimate. If that is 0 or less, the result is NaN for a sum of 0 and infinite for others */
} tuff_reduce_desc;
/* Errors: those of tuff_reduce(); INVALID_ARGUMENT for axes beyond rank, and for a correction that is not finite, or not
 * 0 with another operation. */
TUFF_API tuff_status tuff_reduce_ex(tuff_stream stream, const tuff_reduce_desc* desc);

/* Options of tuff_cumsum(), tuff_cumprod(), tuff_cummax(), tuff_cummin() and tuff_cumlogsumexp(). dtype is any real type
 * but bool and 8-bit floats, where tuff_supports() says so ("cumsum.i64"). Since 0.9.0. */
typedef struct tuff_scan_desc {
  uint32_t struct_size;
  int32_t dtype;
  tuff_buffer input, output;
  uint64_t shape[8]; /* the first `rank` sizes, 1 <= rank <= 8 */
  uint32_t rank;
  uint32_t axis;     /* less than rank */
  int32_t exclusive; /* not 0: an element does not count in its own result; the first result is 0 for sums, 1 for
                        products, the type's lowest value for maxima and its highest one for minima (of floats: -infinity
                        and infinity), and -infinity for tuff_cumlogsumexp() */
  int32_t reverse;   /* not 0: scans from the end of the axis to its beginning */
} tuff_scan_desc;
/* Cumulative sum along an axis: output[..., i, ...] = input[..., 0, ...] + ... + input[..., i, ...]. output has the
 * input's shape and may be exactly the input. Devices compute floats in f32, and f64 in f64, and round each result once.
 * The error is at most c * 2^-24 * (sum of magnitudes), or c * 2^-53 for f64, where c is the smaller of the axis's size
 * and 6000. If an intermediate sum leaves the range of that type, the result is infinite or NaN. A NaN in the input
 * affects only the results from its position onwards. Sums of integers of n bits are exact and wrap modulo 2^n.
 * Since 0.9.0. Errors: UNSUPPORTED for other types, and for 64-bit types that the device lacks. */
TUFF_API tuff_status tuff_cumsum(tuff_stream stream, const tuff_scan_desc* desc);
/* Cumulative product along an axis, with the arguments of tuff_cumsum(). Products are formed as a tree. If an
 * intermediate product leaves the range of f32 (or f64), the result may be infinite, 0 or NaN even if the exact result is
 * not. Products of integers are exact and wrap. Since 0.9.0. */
TUFF_API tuff_status tuff_cumprod(tuff_stream stream, const tuff_scan_desc* desc);
/* Cumulative maximum along an axis, with the arguments of tuff_cumsum(): the largest element so far. Exact. Results from
 * the position of a NaN onwards are NaN. Since 0.9.0. */
TUFF_API tuff_status tuff_cummax(tuff_stream stream, const tuff_scan_desc* desc);
/* Cumulative minimum along an axis, with the arguments of tuff_cumsum(): the smallest element so far. Exact. Results from
 * the position of a NaN onwards are NaN. Since 0.9.0. */
TUFF_API tuff_status tuff_cummin(tuff_stream stream, const tuff_scan_desc* desc);
/* Cumulative logarithm of sums of exponentials, with the arguments of tuff_cumsum(), of TUFF_F32, TUFF_F16, TUFF_BF16 and
 * TUFF_F64: output[..., i, ...] = log(exp(input[..., 0, ...]) + ... + exp(input[..., i, ...])). What is carried along is
 * the largest element so far and a sum of exponentials relative to it, so that nothing overflows, and the error of a
 * result y with the largest element m is at most 2^-20 (c + |y| + |m|), where c is the smaller of the number of elements
 * so far and 6000 (f64: 2^-49 instead of 2^-20), before it is rounded to dtype. Results from the position of a NaN
 * onwards are NaN, and infinite from that of infinity. Since 0.9.0. Errors: UNSUPPORTED for other types. */
TUFF_API tuff_status tuff_cumlogsumexp(tuff_stream stream, const tuff_scan_desc* desc);

/* Options of tuff_sort(). Since 0.9.0. */
typedef struct tuff_sort_desc {
  uint32_t struct_size;
  int32_t dtype;       /* any real type */
  tuff_buffer input;
  tuff_buffer values;  /* of dtype; TUFF_NULL_HANDLE: not wanted */
  tuff_buffer indices; /* of index_type; TUFF_NULL_HANDLE: not wanted */
  uint64_t shape[8];   /* of the input: the first `rank` sizes, 1 <= rank <= 8 */
  uint32_t rank;
  uint32_t axis;       /* less than rank */
  uint64_t k;          /* how many of the sorted elements are wanted: at most the axis's size; 0: all */
  int32_t index_type;  /* TUFF_I32, TUFF_U32, TUFF_I64 or TUFF_U64; 0: TUFF_I32 */
  int32_t descending;  /* not 0: from the largest to the smallest */
} tuff_sort_desc;
/* Sorts along an axis: values[..., j, ...] is the element that has rank j along the axis, and indices[..., j, ...] its
 * place in the input, for j < k; the outputs' axis has the size k. With k, these are the k smallest elements, or with
 * descending the k largest. The sort is stable in both directions: equal elements keep their order, so results are the
 * same on every device. NaNs are equal to one another and follow all numbers, also with descending; -0 and +0 are
 * equal; any TUFF_BOOL byte other than 0 counts as 1. Elements are moved with their bits unchanged. The input is not
 * written, and may not overlap an output. Devices need scratch memory of up to twice the size of the outputs of a whole
 * sort, or of as many slices along the axis as have 2^26 elements.
 * Errors: INVALID_ARGUMENT if neither output is wanted, or if index_type does not hold the places; UNSUPPORTED for an
 * axis of more than 2^32 - 2^22 elements, and for elements of a width that the device cannot store. Since 0.9.0. */
TUFF_API tuff_status tuff_sort(tuff_stream stream, const tuff_sort_desc* desc);

/* Applies a function to each element: output[i] = op(input[i]) for i < n.
 *   op   TUFF_UNARY_* */
TUFF_API tuff_status tuff_unary(tuff_stream stream, int32_t dtype, int32_t op, tuff_buffer input, tuff_buffer output,
                                uint64_t n);

/* tuff_unary() with a descriptor. */
typedef struct tuff_unary_desc {
  uint32_t struct_size;
  int32_t dtype;
  int32_t op;
  int32_t reserved; /* zero */
  tuff_buffer input, output;
  uint64_t n;
  double alpha; /* for LEAKY_RELU and ELU; 0: 0.01 and 1. Rounded to f32; a value that underflows is 0. Since 0.3.0 */
} tuff_unary_desc;
TUFF_API tuff_status tuff_unary_ex(tuff_stream stream, const tuff_unary_desc* desc);

/* Applies a function to pairs of elements: output[i] = op(a[i], b[i]) for i < n.
 *   op   TUFF_BINARY_*
 * Since 0.9.0 ADD, SUB, MUL, MAX and MIN also take TUFF_I32 where tuff_supports() says "binary.i32": exactly, modulo
 * 2^32. */
TUFF_API tuff_status tuff_binary(tuff_stream stream, int32_t dtype, int32_t op, tuff_buffer a, tuff_buffer b,
                                 tuff_buffer output, uint64_t n);

/* tuff_binary() with a descriptor, and with broadcasting. */
typedef struct tuff_binary_desc {
  uint32_t struct_size;
  int32_t dtype;
  int32_t op;
  int32_t reserved; /* zero */
  tuff_buffer a, b, output;
  uint64_t n;
  /* Since 0.4.0; all may be zero. With rank > 0, a and b have shapes of rank <= 8 sizes each and are broadcast as in
   * NumPy: along each axis the sizes are equal, or one of them is 1 and that operand is repeated. Pad the shorter shape
   * with leading sizes of 1. n is then 0 or the number of results. output may be exactly an operand that is not
   * repeated. */
  uint32_t rank;
  uint32_t reserved2; /* zero */
  uint64_t a_shape[8], b_shape[8];
} tuff_binary_desc;
TUFF_API tuff_status tuff_binary_ex(tuff_stream stream, const tuff_binary_desc* desc);

/* Softmax along one axis: output = exp(input - max) / sum(exp(input - max)). shape, rank and axis are as in
 * tuff_reduce(). output has the input's shape and may be exactly the input. A slice is NaN if it contains a NaN or
 * +infinity, or if all of its elements are -infinity, for which the formula is 0 / 0. */
TUFF_API tuff_status tuff_softmax(tuff_stream stream, int32_t dtype, tuff_buffer input, tuff_buffer output,
                                  const uint64_t* shape, uint32_t rank, uint32_t axis);

/* tuff_softmax() with a descriptor.
 * Errors: UNSUPPORTED for a TUFF_U8 mask on a device without 8-bit storage. */
typedef struct tuff_softmax_desc {
  uint32_t struct_size;
  int32_t dtype;
  tuff_buffer input, output;
  uint64_t shape[8];
  uint32_t rank;
  uint32_t axis;
  /* Since 0.3.0; all may be zero. Softmax is applied to z = scale * input + mask: */
  double scale;        /* finite, and not zero in f32; 0: 1 */
  int32_t logarithm;   /* 1: the output is z - max - log(sum(exp(z - max))), the logarithm of the result */
  int32_t mask_type;   /* dtype (or 0): the mask is added. TUFF_U8: elements whose mask is 0 are hidden. A hidden
                          element gives 0 (-infinity for the logarithm), also if its whole slice is hidden. If the
                          visible elements make the slice NaN, including when they are all -infinity, its hidden
                          elements are NaN too */
  tuff_buffer mask;    /* [mask_rows][size of axis][sizes after it]; TUFF_NULL_HANDLE: none */
  uint64_t mask_rows;  /* 0: the product of the sizes before the axis, that is, a mask of the input's shape */
  uint64_t mask_repeat; /* index i before the axis uses row (i / mask_repeat) % mask_rows; 0: 1 */
} tuff_softmax_desc;
TUFF_API tuff_status tuff_softmax_ex(tuff_stream stream, const tuff_softmax_desc* desc);

/* Options of tuff_random(). Fields of other distributions are ignored. Since 0.9.0. */
typedef struct tuff_random_desc {
  uint32_t struct_size;
  int32_t dtype;        /* BITS, INTEGERS: an integer type; UNIFORM, NORMAL, EXPONENTIAL: TUFF_F32, TUFF_F16 or
                           TUFF_BF16; BERNOULLI: any of these */
  int32_t distribution; /* TUFF_RANDOM_* */
  int32_t reserved;     /* zero */
  tuff_buffer output;
  uint64_t n;
  uint64_t seed;      /* with sequence: chooses one of 2^128 sequences of random numbers */
  uint64_t sequence;
  uint64_t offset;    /* the output is elements offset ... offset + n - 1 of the sequence; offset + n < 2^64 */
  double low, high;   /* UNIFORM: low <= high; both 0: 0 and 1 */
  double mean;        /* NORMAL */
  double deviation;   /* NORMAL: at least 0; 0: 1 */
  double scale;       /* EXPONENTIAL: at least 0; 0: 1 */
  double probability; /* BERNOULLI: 0 ... 1 */
  int64_t least, most; /* INTEGERS: least <= most, both in the range of dtype */
} tuff_random_desc;
/* Fills a buffer with random numbers: output[i] = element offset + i of the sequence, for i < n. The generator is
 * Philox4x32-10 with the seed as its key: element e is made from word e % 4 of the counter (e / 4, sequence); NORMAL
 * makes two from two, and INTEGERS takes the same word of the counter (e / 4 + 2^63, sequence), too. A sequence may
 * therefore be drawn in parts, in any order. The same arguments give the same bits on every device and on the host.
 * UNIFORM: u has 24 random bits for TUFF_F32, 11 for TUFF_F16 and 8 for TUFF_BF16, so it is never 1; rounding
 * low + (high - low) * u may give high. NORMAL: |z| is at most 6.77, by Box and Muller's transform. EXPONENTIAL:
 * e is at most 22.88. Both are computed in f32 from 32 random bits and rounded once to dtype. Parameters are rounded to
 * f32.
 * Errors: INVALID_ARGUMENT for parameters that are not finite in f32; UNSUPPORTED for other types. Since 0.9.0. */
TUFF_API tuff_status tuff_random(tuff_stream stream, const tuff_random_desc* desc);

/* Options of tuff_variates(). Since 0.9.0. */
typedef struct tuff_variates_desc {
  uint32_t struct_size;
  int32_t dtype;        /* that of the distribution: TUFF_F32 or TUFF_I32 */
  int32_t distribution; /* TUFF_VARIATES_*, which say what the parameters are */
  int32_t reserved;     /* zero */
  tuff_buffer output;
  uint64_t n;
  uint64_t seed; /* with sequence: chooses one of 2^128 sequences of random numbers */
  uint64_t sequence;
  uint64_t offset; /* the output is elements offset ... offset + n - 1 of the sequence; offset + n <= 2^56 */
  tuff_buffer first, second, third; /* [n]: a parameter of each element; TUFF_NULL_HANDLE: the number below for all */
  double first_value, second_value, third_value; /* read where the buffer is TUFF_NULL_HANDLE; rounded to f32, or whole */
} tuff_variates_desc;
/* Fills a buffer with random numbers whose parameters may differ: output[i] = element offset + i of a sequence, of the
 * distribution with parameters first[i], second[i], third[i], for i < n. A number depends on its parameters, seed,
 * sequence and place alone: the same arguments give the same bits on every device and on the host. Its random words are
 * Philox4x32-10 of the counters (2^62 + 2^56 b + place, sequence), b < 64, which tuff_random() does not use: the same
 * seed and sequence may serve both. output may be exactly one of the buffers.
 * A parameter outside its range, and NaN, gives NaN, or -1 for counts. GAMMA by Marsaglia and Tsang's method: numbers
 * below the smallest normal f32 are 0. POISSON and BINOMIAL by waiting times for means below 10, otherwise by Hörmann's
 * PTRS and BTRS. HYPERGEOMETRIC by an urn for up to 9 draws, otherwise by Stadlober's ratio of uniforms. VONMISES by Best
 * and Fisher's method, ZIPF by Devroye's: numbers beyond 2^31 - 1 become 2^31 - 1, and those beyond 2^24 have 24 random
 * bits. Formulas are of f32: probabilities are within some 10^-6 of themselves. Of 128 attempts (GAMMA: 64) the last one
 * is taken if all are rejected, which has a probability below 2^-50.
 * Errors: INVALID_ARGUMENT for values that are not finite in f32, or no integers of i32, where these are wanted, for a
 * buffer of a parameter that the distribution does not have, and for operands that overlap otherwise; UNSUPPORTED for
 * other types. Since 0.9.0. */
TUFF_API tuff_status tuff_variates(tuff_stream stream, const tuff_variates_desc* desc);

/* Options of tuff_dropout(). Since 0.9.0. */
typedef struct tuff_dropout_desc {
  uint32_t struct_size;
  int32_t dtype; /* TUFF_F32, TUFF_F16 or TUFF_BF16 */
  tuff_buffer input, output;
  tuff_buffer mask;   /* n bytes: 1 where an element is kept, otherwise 0; TUFF_NULL_HANDLE: none */
  uint64_t n;
  /* An element is dropped where tuff_random() gives 1 with the same seed, sequence, offset and probability and
   * TUFF_RANDOM_BERNOULLI. offset + n < 2^64. */
  uint64_t seed, sequence, offset;
  double probability; /* of being dropped: 0 ... 1, rounded to a multiple of 2^-32 */
} tuff_dropout_desc;
/* Sets elements to 0 at random and scales the others: output[i] = input[i] / (1 - probability), or 0 where the element is
 * dropped, even if it is infinite or NaN. output may be exactly the input. 1 / (1 - probability) is rounded to f32, its
 * product with the element too, and the result once to dtype. The same arguments give the same bits on every device and
 * on the host (a device that flushes denormals of f32 may give 0 for them). With the same seed, sequence and offset, the
 * gradient of the input is tuff_dropout() of the output's.
 * Errors: INVALID_ARGUMENT for a probability outside 0 ... 1, and for operands that overlap otherwise; UNSUPPORTED for
 * other types. Since 0.9.0. */
TUFF_API tuff_status tuff_dropout(tuff_stream stream, const tuff_dropout_desc* desc);

/* ---------------------------------------------------------------------------------------------
 * Normalisations. Since 0.3.0.
 *
 * y = (x - mean) / sqrt(variance + epsilon) * weight + bias, where variance = mean((x - mean)^2). dtype is TUFF_F32,
 * TUFF_F16 or TUFF_BF16. weight and bias may be TUFF_NULL_HANDLE, which stands for 1 and 0. epsilon is finite and not
 * negative, and is rounded to f32. output may be exactly the input. A NaN makes everything normalised with it NaN. So
 * does an infinity, except for RMS norm, where its own result is NaN and the others are zero. Means and variances are
 * summed about a value near the mean, so that a large mean costs no digits of the variance. The whole range of f32 and
 * bf16 is supported: rows whose squares overflow or underflow f32 are summed again, scaled by a power of two.
 * ------------------------------------------------------------------------------------------- */

/* Layer norm: normalises each row of input [rows][cols] by its own mean and variance. weight and bias are [cols].
 * Errors: INVALID_ARGUMENT for cols = 0. */
TUFF_API tuff_status tuff_layer_norm(tuff_stream stream, int32_t dtype, tuff_buffer input, tuff_buffer weight,
                                     tuff_buffer bias, tuff_buffer output, uint64_t rows, uint64_t cols,
                                     double epsilon);

/* tuff_layer_norm() with a descriptor. */
typedef struct tuff_layer_norm_desc {
  uint32_t struct_size;
  int32_t dtype;
  tuff_buffer input, weight, bias, output;
  uint64_t rows, cols;
  double epsilon;       /* zero means zero */
  int32_t weight_type;  /* of weight and bias: dtype (or 0) or TUFF_F32 */
  int32_t reserved;     /* zero */
  tuff_buffer residual; /* [rows][cols]: input + residual, rounded to dtype, is normalised; TUFF_NULL_HANDLE: none */
  tuff_buffer sum;      /* receives input + residual; may be exactly input or residual; TUFF_NULL_HANDLE: not
                           stored */
} tuff_layer_norm_desc;
TUFF_API tuff_status tuff_layer_norm_ex(tuff_stream stream, const tuff_layer_norm_desc* desc);

/* RMS norm: y = x / sqrt(mean(x^2) + epsilon) * weight for each row of input [rows][cols]. weight is [cols]; there is
 * no bias. */
TUFF_API tuff_status tuff_rms_norm(tuff_stream stream, int32_t dtype, tuff_buffer input, tuff_buffer weight,
                                   tuff_buffer output, uint64_t rows, uint64_t cols, double epsilon);

/* tuff_rms_norm() with a descriptor. */
typedef struct tuff_rms_norm_desc {
  uint32_t struct_size;
  int32_t dtype;
  tuff_buffer input, weight, output;
  uint64_t rows, cols;
  double epsilon;       /* zero means zero */
  int32_t weight_type;  /* dtype (or 0) or TUFF_F32 */
  int32_t reserved;     /* zero */
  tuff_buffer residual; /* as in tuff_layer_norm_desc */
  tuff_buffer sum;
} tuff_rms_norm_desc;
TUFF_API tuff_status tuff_rms_norm_ex(tuff_stream stream, const tuff_rms_norm_desc* desc);

/* Group norm: normalises each group of channels / groups adjacent channels of each image of input
 * [batch][channels][inner] by its own mean and variance. weight and bias are [channels]. groups = channels is instance
 * norm.
 * Errors: INVALID_ARGUMENT unless groups divides channels, and for channels = 0 or inner = 0. */
TUFF_API tuff_status tuff_group_norm(tuff_stream stream, int32_t dtype, tuff_buffer input, tuff_buffer weight,
                                     tuff_buffer bias, tuff_buffer output, uint64_t batch, uint64_t channels,
                                     uint64_t inner, uint64_t groups, double epsilon);

/* tuff_group_norm() with a descriptor. */
typedef struct tuff_group_norm_desc {
  uint32_t struct_size;
  int32_t dtype;
  tuff_buffer input, weight, bias, output;
  uint64_t batch, channels, inner;
  uint64_t groups;     /* 0: channels, which is instance norm */
  double epsilon;      /* zero means zero */
  int32_t weight_type; /* dtype (or 0) or TUFF_F32 */
  int32_t reserved;    /* zero */
} tuff_group_norm_desc;
TUFF_API tuff_status tuff_group_norm_ex(tuff_stream stream, const tuff_group_norm_desc* desc);

/* Batch norm for inference: normalises input [batch][channels][inner] by the given statistics. mean, variance, weight
 * and bias are [channels]. */
TUFF_API tuff_status tuff_batch_norm(tuff_stream stream, int32_t dtype, tuff_buffer input, tuff_buffer mean,
                                     tuff_buffer variance, tuff_buffer weight, tuff_buffer bias, tuff_buffer output,
                                     uint64_t batch, uint64_t channels, uint64_t inner, double epsilon);

/* tuff_batch_norm() with a descriptor. */
typedef struct tuff_batch_norm_desc {
  uint32_t struct_size;
  int32_t dtype;
  tuff_buffer input, mean, variance, weight, bias, output;
  uint64_t batch, channels, inner;
  double epsilon;      /* zero means zero */
  int32_t weight_type; /* of mean, variance, weight and bias: dtype (or 0) or TUFF_F32 */
  int32_t reserved;    /* zero */
} tuff_batch_norm_desc;
TUFF_API tuff_status tuff_batch_norm_ex(tuff_stream stream, const tuff_batch_norm_desc* desc);

/* The normalisations of tuff_norm_backward(). Since 0.9.0. */
typedef int32_t tuff_norm_kind;
enum {
  TUFF_NORM_INVALID = -1,
  TUFF_NORM_LAYER = 0, /* of tuff_layer_norm() */
  TUFF_NORM_RMS = 1,   /* of tuff_rms_norm() */
  TUFF_NORM_GROUP = 2, /* of tuff_group_norm() */
  TUFF_NORM_BATCH = 3  /* of tuff_batch_norm_training(), and, with `frozen`, of tuff_batch_norm() */
};

/* Options of tuff_norm_backward(). Since 0.9.0. */
typedef struct tuff_norm_backward_desc {
  uint32_t struct_size;
  int32_t dtype;           /* of input and both its gradients: TUFF_F32, TUFF_F16 or TUFF_BF16 */
  int32_t kind;            /* TUFF_NORM_* */
  int32_t weight_type;     /* of weight, weight_gradient and bias_gradient: dtype (or 0) or TUFF_F32 */
  int32_t statistics_type; /* of mean and variance: TUFF_F32 (or 0) or weight_type */
  int32_t frozen;          /* BATCH: 1: mean and variance are constants */
  uint64_t batch, channels, inner; /* input is [batch][channels][inner]. LAYER, RMS: rows, cols and 1 */
  uint64_t groups;                 /* GROUP: 0: channels, which is instance norm. Otherwise 0 */
  double epsilon;                  /* zero means zero */
  tuff_buffer input;
  tuff_buffer weight;          /* [channels]; TUFF_NULL_HANDLE: ones */
  tuff_buffer output_gradient; /* like input */
  tuff_buffer mean, variance;  /* BATCH: [channels]; TUFF_NULL_HANDLE: computed from input again, unless frozen */
  tuff_buffer input_gradient;  /* out: like input; may be exactly input or output_gradient; or TUFF_NULL_HANDLE */
  tuff_buffer weight_gradient, bias_gradient; /* out: [channels]; TUFF_NULL_HANDLE: not wanted */
} tuff_norm_backward_desc;

/* The gradients of a function of a normalisation's output by its input x, weight w and bias, given those by the output,
 * dy. With n = (x - mean) / sqrt(variance + epsilon), as the normalisation has it, and h = dy * w:
 *
 *   dx = (h - mean(h) - n * mean(h * n)) / sqrt(variance + epsilon), by the means over all that is normalised together;
 *        RMS: without mean(h); frozen: h / sqrt(variance + epsilon)
 *   dw = the sum of dy * n over all elements of a channel (LAYER, RMS: of a column); without any, 0
 *   db = the sum of dy alike; not of RMS
 *
 * The gradient by a residual that was added to the input equals input_gradient; `input` is then the sum. Statistics are
 * those of `input`, computed anew, in its whole range as by the normalisations; or, for BATCH, those that are given,
 * which tuff_batch_norm_training() stores. Sums are in f32, in an order that depends on the sizes and the device only.
 * Gradients are infinite or NaN if dy * w or a sum of dy * w or dy * n leaves the range of f32, or the result that of its
 * type. A NaN or an infinity among x or dy makes the input gradients of all that is normalised with it NaN or infinite
 * (frozen: its own), and so does epsilon = 0 where x does not vary. Gradients by weights and biases are what the sums
 * above make of such numbers.
 * Errors: INVALID_ARGUMENT if no gradient is wanted; for cols = 0, and for channels or inner of 0 of GROUP; for a mean
 * without a variance or the reverse, for frozen without them, and for what other kinds do not take. UNSUPPORTED for other
 * types, and, on a device, where the elements that are normalised together, the sets of these, channels, inner or, with
 * inner above 1, batch * channels are 2^31 or more. Since 0.9.0. */
TUFF_API tuff_status tuff_norm_backward(tuff_stream stream, const tuff_norm_backward_desc* desc);

/* Options of tuff_batch_norm_training(). Since 0.9.0. */
typedef struct tuff_batch_norm_training_desc {
  uint32_t struct_size;
  int32_t dtype;       /* of input and output: TUFF_F32, TUFF_F16 or TUFF_BF16 */
  int32_t weight_type; /* of weight, bias, running_mean and running_variance: dtype (or 0) or TUFF_F32 */
  int32_t reserved;    /* zero */
  uint64_t batch, channels, inner;
  double epsilon;      /* zero means zero */
  double momentum;     /* from 0 to 1: the share of this batch in the running statistics */
  tuff_buffer input;
  tuff_buffer weight, bias;   /* [channels]; TUFF_NULL_HANDLE: ones and zeros */
  tuff_buffer output;         /* out: may be exactly input; TUFF_NULL_HANDLE: not wanted */
  tuff_buffer mean, variance; /* out: TUFF_F32 [channels]; TUFF_NULL_HANDLE: not wanted */
  tuff_buffer running_mean, running_variance; /* in and out: [channels]; TUFF_NULL_HANDLE: none */
} tuff_batch_norm_training_desc;

/* Batch norm for training: normalises each channel of input [batch][channels][inner] by its own mean and variance over
 * batch and inner. mean and variance are those, for tuff_norm_backward(). The running statistics, for tuff_batch_norm(),
 * become r + momentum * (statistic - r), where the statistic of running_variance is the unbiased variance,
 * m / (m - 1) * variance of m = batch * inner elements: momentum is PyTorch's; ONNX's is 1 - momentum. Variances beyond
 * the range of f32 are stored as infinity, and output is still that of their true value.
 * Errors: INVALID_ARGUMENT for batch or inner of 0, for m = 1 with running_variance, and if no output is wanted.
 * UNSUPPORTED as by tuff_norm_backward(). Since 0.9.0. */
TUFF_API tuff_status tuff_batch_norm_training(tuff_stream stream, const tuff_batch_norm_training_desc* desc);

/* ---------------------------------------------------------------------------------------------
 * Shapes and types: operations that move elements without computing. Since 0.4.0.
 *
 * They take every dtype and copy bits unchanged, NaNs included, unless noted otherwise.
 * Errors: UNSUPPORTED for 8-bit or 16-bit elements on a device without storage of that size.
 * ------------------------------------------------------------------------------------------- */

/* Permutes the axes of the input: axis i of the output is axis order[i] of the input.
 *   shape   rank sizes of the input, 1 <= rank <= 8
 *   order   each of 0 ... rank - 1 once
 * output must not overlap input. */
TUFF_API tuff_status tuff_permute(tuff_stream stream, int32_t dtype, tuff_buffer input, tuff_buffer output,
                                  const uint64_t* shape, uint32_t rank, const uint32_t* order);

/* tuff_permute() with a descriptor. */
typedef struct tuff_permute_desc {
  uint32_t struct_size;
  int32_t dtype;
  tuff_buffer input, output;
  uint64_t shape[8];
  uint32_t order[8];
  uint32_t rank;
  uint32_t reserved; /* zero */
} tuff_permute_desc;
TUFF_API tuff_status tuff_permute_ex(tuff_stream stream, const tuff_permute_desc* desc);

/* Converts elements to another type: output[i] = input[i] for i < n.
 *   to a float         rounded once to the nearest number, ties to even; infinity on overflow; denormals are kept
 *   to an 8-bit float  the same, but saturated: what is beyond the largest number, infinities too, becomes the largest
 *                      number of its sign (as in ONNX Cast with saturate 1, and CUDA's SATFINITE); NaN stays NaN
 *   to an integer      truncated towards zero; saturated to the type's range; NaN gives 0
 *   to TUFF_BOOL       0 for 0 and -0, 1 for everything else, NaN too
 *   from TUFF_BOOL     0 or 1
 *   to a complex type  a real number has the imaginary part 0; of a complex one both parts are converted
 *   from a complex one to a real type its real part is converted; to TUFF_BOOL 0 only if both parts are zeros
 * Results have the same bits on every device, except for the payloads of NaNs. TUFF_F64, TUFF_I64 and TUFF_U64 do not
 * require 64-bit arithmetic on the device. Between equal types the function is a copy of the bytes. output may be
 * exactly input if both types have the same size. */
TUFF_API tuff_status tuff_cast(tuff_stream stream, int32_t input_type, int32_t output_type, tuff_buffer input,
                               tuff_buffer output, uint64_t n);

/* tuff_cast() with a descriptor. */
typedef struct tuff_cast_desc {
  uint32_t struct_size;
  int32_t input_type, output_type;
  int32_t reserved; /* zero */
  tuff_buffer input, output;
  uint64_t n;
} tuff_cast_desc;
TUFF_API tuff_status tuff_cast_ex(tuff_stream stream, const tuff_cast_desc* desc);

/* Copies part of the input: output[i, j, ...] = input[start[0] + i * step[0], start[1] + j * step[1], ...].
 *   shape       rank sizes of the input, 1 <= rank <= 8
 *   start       index of the first element along each axis
 *   step        from one index to the next; may be negative but not 0; NULL: 1 for every axis
 *   out_shape   number of elements along each axis
 * output must not overlap input.
 * Errors: INVALID_ARGUMENT for an element outside the input. */
TUFF_API tuff_status tuff_slice(tuff_stream stream, int32_t dtype, tuff_buffer input, tuff_buffer output,
                                const uint64_t* shape, uint32_t rank, const uint64_t* start, const int64_t* step,
                                const uint64_t* out_shape);

/* tuff_slice() with a descriptor. */
typedef struct tuff_slice_desc {
  uint32_t struct_size;
  int32_t dtype;
  tuff_buffer input, output;
  uint64_t shape[8];
  uint64_t start[8];
  int64_t step[8]; /* 0: 1 */
  uint64_t out_shape[8];
  uint32_t rank;
  uint32_t reserved; /* zero */
} tuff_slice_desc;
TUFF_API tuff_status tuff_slice_ex(tuff_stream stream, const tuff_slice_desc* desc);

/* Concatenates the inputs along an axis.
 *   inputs   count buffers; input i has size sizes[i] along the axis and otherwise the output's shape
 *   shape    rank sizes of the output; the sum of sizes[0 ... count - 1] is shape[axis]
 * output must not overlap an input. */
TUFF_API tuff_status tuff_concat(tuff_stream stream, int32_t dtype, const tuff_buffer* inputs, const uint64_t* sizes,
                                 uint32_t count, tuff_buffer output, const uint64_t* shape, uint32_t rank,
                                 uint32_t axis);

/* tuff_concat() with a descriptor. */
typedef struct tuff_concat_desc {
  uint32_t struct_size;
  int32_t dtype;
  const tuff_buffer* inputs; /* not NULL */
  const uint64_t* sizes;     /* not NULL */
  uint32_t count;
  uint32_t rank;
  tuff_buffer output;
  uint64_t shape[8];
  uint32_t axis;
  uint32_t reserved; /* zero */
} tuff_concat_desc;
TUFF_API tuff_status tuff_concat_ex(tuff_stream stream, const tuff_concat_desc* desc);

/* Gathers along an axis: output[o, j, i] = input[o, indices[j], i], where o stands for the axes before it and i for
 * those after it. Along axis 0 of a table [entries][size] this is an embedding lookup.
 *   index_type   TUFF_U32, TUFF_I32 or, since 0.9.0, TUFF_I64 or TUFF_U64
 *   indices      count indices
 *   shape        rank sizes of the input; the output has count in place of shape[axis]
 * An index out of range (negative, or shape[axis] or more) gives zeros and reads nothing. shape[axis] may be 0, in
 * which case the input may be TUFF_NULL_HANDLE, and it may exceed the range of index_type. output must not overlap
 * input or indices.
 * Errors: UNSUPPORTED if the axes after the gathered one hold more than 2^30 units. A unit is the largest power of two,
 * up to 16 bytes, that divides their size in bytes and the offsets of both operands. With elementwise: UNSUPPORTED if
 * neighbouring elements of any axis are 2^31 elements or more apart. */
TUFF_API tuff_status tuff_gather(tuff_stream stream, int32_t dtype, int32_t index_type, tuff_buffer input,
                                 tuff_buffer indices, tuff_buffer output, const uint64_t* shape, uint32_t rank,
                                 uint32_t axis, uint64_t count);

/* tuff_gather() with a descriptor. With elementwise 1, indices has a shape index_shape of the input's rank, which is
 * also the output's shape, and each output element has its own index: output[i, j, k] = input[indices[i, j, k], j, k]
 * for axis 0, and so on. Along all other axes index_shape is at most the input's shape. With coordinates k > 1, indices
 * is [count][k], and each row names a place along the k axes from `axis` on, which the output has `count` in place of:
 * output[o, j, i] = input[o, indices[j, 0], ..., indices[j, k - 1], i] (ONNX GatherND). Coordinates and negative indices
 * take 4 bytes of device memory for each index, or 8 if the k axes hold 2^31 places or more. */
typedef struct tuff_gather_desc {
  uint32_t struct_size;
  int32_t dtype;
  int32_t index_type;
  int32_t elementwise;
  tuff_buffer input, indices, output;
  uint64_t shape[8];
  uint32_t rank;
  uint32_t axis;
  uint64_t count;          /* 0 if elementwise */
  uint64_t index_shape[8]; /* only if elementwise */
  /* Since 0.9.0. */
  uint32_t coordinates; /* numbers in each index, at most rank - axis; 0: 1; 0 if elementwise */
  int32_t negative;     /* 1: negative indices count from the end of the axis, -1 is its last element; 0: out of range */
} tuff_gather_desc;
TUFF_API tuff_status tuff_gather_ex(tuff_stream stream, const tuff_gather_desc* desc);

/* How tuff_scatter() combines an element of the output with an update. */
typedef int32_t tuff_scatter_op;
enum {
  TUFF_SCATTER_INVALID = -1,
  TUFF_SCATTER_SET = 1, /* the update; if indices name an element several times, the last of its updates */
  TUFF_SCATTER_ADD = 2,
  TUFF_SCATTER_MUL = 3,
  TUFF_SCATTER_MAX = 4, /* NaN if either is NaN */
  TUFF_SCATTER_MIN = 5  /* NaN if either is NaN */
};

/* Options of tuff_scatter(). */
typedef struct tuff_scatter_desc {
  uint32_t struct_size;
  int32_t dtype;
  int32_t index_type;    /* TUFF_I32, TUFF_U32, TUFF_I64 or TUFF_U64 */
  int32_t op;            /* TUFF_SCATTER_... */
  tuff_buffer input;     /* what the output is before the updates; TUFF_NULL_HANDLE or exactly output: what it holds */
  tuff_buffer indices, updates, output;
  uint64_t shape[8];     /* of input and output */
  uint64_t index_shape[8]; /* elementwise: of indices and updates; at most `shape`, except along the axis */
  uint64_t count;        /* indices; 0 if elementwise */
  uint32_t rank;         /* 1 to 8 */
  uint32_t axis;
  uint32_t coordinates;  /* numbers in each index, at most rank - axis; 0: 1; 0 if elementwise */
  int32_t elementwise;   /* 0 or 1 */
  int32_t negative;      /* 1: negative indices count from the end of the axis; 0: they are out of range */
  int32_t reserved;      /* zero */
} tuff_scatter_desc;

/* Writes or accumulates updates at the places that indices name: the inverse of gather. Since 0.9.0.
 *   rows         updates is [o][count][i], with o the axes before the one of the indices and i those after it:
 *                output[o, indices[j], i] = op(output[o, indices[j], i], updates[o, j, i])
 *   elementwise  output[indices[i, j, k], j, k] = op(..., updates[i, j, k]) for axis 0, and so on (NumPy
 *                put_along_axis, ONNX ScatterElements)
 *   coordinates  indices is [count][coordinates], and each row names a place along as many axes from `axis` on (ONNX
 *                ScatterND)
 * An index out of range is skipped. The result has the same bits in every run, also where indices repeat: SET takes the
 * last update; others are combined in an order that depends on the sizes and the device alone. Floats are combined in
 * f32 (f64 in f64) and rounded once, with an error of at most (n + 1) 2^-24 sum |x| for sums of n updates; integers wrap
 * modulo 2^bits. For TUFF_BOOL, ADD and MAX are `or`, MUL and MIN are `and`.
 * SET takes all types, the others all real ones but 8-bit floats. Without elementwise and coordinates, `axis` alone is
 * indexed.
 * A call needs device memory: SET 4 bytes for each index and for each place (at most 1 GiB for the latter), the others
 * 16 bytes for each index and 1/16 of the size of the updates, at most 2 GiB.
 * output must not overlap indices or updates. */
TUFF_API tuff_status tuff_scatter(tuff_stream stream, const tuff_scatter_desc* desc);

/* Which elements tuff_select() takes. Since 0.9.0. */
typedef int32_t tuff_select_op;
enum {
  TUFF_SELECT_INVALID = -1,
  TUFF_SELECT_NONZERO = 1, /* those whose mask is not 0. NaN is not 0; -0 is. A complex number is 0 if both parts are */
  TUFF_SELECT_UNIQUE = 2   /* those that differ from the element before them, and the first: of each run of equal ones,
                              the first. -0 and +0 are equal, and so are all TUFF_BOOL bytes other than 0 */
};

/* Options of tuff_select(). Since 0.9.0. */
typedef struct tuff_select_desc {
  uint32_t struct_size;
  int32_t dtype;       /* of input and output: any type */
  int32_t op;          /* TUFF_SELECT_... */
  int32_t mask_type;   /* of the mask: any type; 0: dtype */
  int32_t index_type;  /* TUFF_I32, TUFF_U32, TUFF_I64 or TUFF_U64; 0: TUFF_I32 */
  int32_t equal_nan;   /* TUFF_SELECT_UNIQUE: 1: NaNs are equal to one another; 0: a NaN differs from every element. A
                          complex number is NaN if either part is. Ignored for TUFF_SELECT_NONZERO */
  tuff_buffer input;   /* n elements; TUFF_SELECT_NONZERO reads them for output only */
  tuff_buffer mask;    /* n elements; TUFF_NULL_HANDLE for TUFF_SELECT_UNIQUE */
  tuff_buffer output;  /* capacity elements: those that are selected; TUFF_NULL_HANDLE: not wanted */
  tuff_buffer indices; /* capacity numbers of index_type: their places in the input; TUFF_NULL_HANDLE: not wanted */
  tuff_buffer count;   /* TUFF_U64, one: how many are selected; TUFF_NULL_HANDLE: not wanted */
  uint64_t n;          /* elements of input and mask */
  uint64_t capacity;   /* elements for which output and indices have room */
} tuff_select_desc;

/* Selects elements and keeps their order (stream compaction; ONNX Compress, NonZero and Unique; CUB's DeviceSelect).
 * How many there are is known on the device only: count receives the number of all that are selected, also if it is 0
 * or exceeds capacity. Those beyond capacity are not written, and what is left of output and indices keeps its contents.
 * A capacity of n is always enough. Elements are moved with their bits unchanged; results are the same on every device.
 * The lengths of runs are the differences of neighbouring indices.
 * Outputs must not overlap each other, input or mask; mask and input may be the same.
 * Errors: INVALID_ARGUMENT if neither output nor indices nor count is wanted and neither n nor capacity is 0, if
 * index_type does not hold the places, and for a mask with TUFF_SELECT_UNIQUE. UNSUPPORTED for elements or masks of a
 * width that the device cannot store, and on a device without 64-bit integers for an n of 2^31 or more. Since 0.9.0. */
TUFF_API tuff_status tuff_select(tuff_stream stream, const tuff_select_desc* desc);

/* What tuff_pad() puts beyond the edges of the input, for an axis of the elements a b c d. */
typedef int32_t tuff_pad_mode;
enum {
  TUFF_PAD_INVALID = -1,
  TUFF_PAD_CONSTANT = 0,  /* the value */
  TUFF_PAD_EDGE = 1,      /* a a a | a b c d | d d d */
  TUFF_PAD_REFLECT = 2,   /* d c b | a b c d | c b a; an axis of one element repeats it */
  TUFF_PAD_SYMMETRIC = 3, /* c b a | a b c d | d c b */
  TUFF_PAD_WRAP = 4       /* b c d | a b c d | a b c */
};

/* Options of tuff_pad(). */
typedef struct tuff_pad_desc {
  uint32_t struct_size;
  int32_t dtype;
  int32_t mode;  /* TUFF_PAD_... */
  uint32_t rank; /* 1 to 8 */
  tuff_buffer input, output;
  uint64_t shape[8];           /* of the input */
  int64_t before[8], after[8]; /* elements that are added at the ends of each axis; negative: removed */
  double value;                /* CONSTANT: of a float type, rounded to it; of a complex one, the real part */
  int64_t integer;             /* CONSTANT: of an integer type or bool; for u64 its bits */
} tuff_pad_desc;

/* Pads or crops the input: the output has before[d] + shape[d] + after[d] elements along axis d, and the element at
 * coordinates c is the input's at c - before, where the input has it, and otherwise what the mode says. Patterns repeat
 * beyond the first; they are those of the whole input, also where elements are removed. Since 0.9.0.
 * output must not overlap input.
 * Errors: INVALID_ARGUMENT if more is removed than an axis has, and for an empty axis that a mode other than CONSTANT
 * extends. */
TUFF_API tuff_status tuff_pad(tuff_stream stream, const tuff_pad_desc* desc);

/* Options of tuff_copy_strided(). */
typedef struct tuff_copy_strided_desc {
  uint32_t struct_size;
  int32_t dtype;
  tuff_buffer input, output;
  uint64_t input_first, output_first; /* the element at index 0 of every axis, from the beginning of each buffer */
  int64_t input_strides[8];           /* in elements, of either sign; 0 repeats elements */
  int64_t output_strides[8];          /* in elements, of either sign */
  uint64_t shape[8];
  uint32_t rank;     /* 0 to 8; 0: one element */
  uint32_t reserved; /* zero */
} tuff_copy_strided_desc;

/* Copies elements between operands with strides: output[i, j, ...] = input[i, j, ...], where element (i, j, ...) of an
 * operand is number first + i * strides[0] + j * strides[1] + ... of its buffer. Since 0.9.0.
 * The elements of output are distinct: ordered by magnitude, each stride is larger than the reach of the smaller ones.
 * output shares no element with input.
 * Errors: INVALID_ARGUMENT for elements outside a buffer and for overlaps. UNSUPPORTED if neighbouring elements of an
 * inner axis are 2^31 elements or more apart. */
TUFF_API tuff_status tuff_copy_strided(tuff_stream stream, const tuff_copy_strided_desc* desc);

/* ---------------------------------------------------------------------------------------------
 * Pooling. Since 0.4.0.
 *
 * input is [batch][channels][in_shape...] and output [batch][channels][out_shape...], with 1, 2 or 3 spatial axes.
 * dtype is TUFF_F32, TUFF_F16 or TUFF_BF16; means are summed in f32. Along an axis of size n, window o has the taps
 *   o * stride - padding + t * dilation    for t < kernel
 * Only taps inside the input count. The size of the output is
 *   (n + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1
 * rounded down. With ceil_mode it is rounded up, but a window that would begin beyond the input and the padding before
 * it is dropped. With adaptive, window o covers the elements from floor(o * n / out) to ceil((o + 1) * n / out) - 1; an
 * out_shape of 1 is global pooling. output must not overlap input.
 * Errors: INVALID_ARGUMENT for any other out_shape (the message states the expected one), for padding of more than half
 * the window's span, dilation * (kernel - 1) + 1, and for a window larger than the padded input. UNSUPPORTED for planes
 * of 2^30 elements or more.
 * ------------------------------------------------------------------------------------------- */
typedef struct tuff_pool_desc {
  uint32_t struct_size;
  int32_t dtype;
  tuff_buffer input, output;
  tuff_buffer indices; /* max only: receives, as TUFF_U32, the index of each maximum in its plane of the input, counted
                          from 0; the first of several; TUFF_NULL_HANDLE: not computed */
  uint64_t batch, channels;
  uint64_t in_shape[3], out_shape[3]; /* the first `spatial` of these and the following; the others are ignored */
  uint64_t kernel[3];
  uint64_t stride[3];   /* 0: kernel */
  uint64_t padding[3];  /* on each side */
  uint64_t dilation[3]; /* max only; 0: 1 */
  uint32_t spatial;     /* number of spatial axes: 1, 2 or 3 */
  int32_t ceil_mode;
  int32_t count_include_pad; /* avg only; 1: the divisor counts padding, but nothing beyond it; 0: it does not */
  int32_t adaptive;          /* 1: kernel, stride, padding, dilation and the two fields above are zero */
} tuff_pool_desc;

/* Max pooling: the largest value of each window, or NaN if any is NaN. A window without taps in the input gives
 * -infinity and index 0. */
TUFF_API tuff_status tuff_max_pool(tuff_stream stream, const tuff_pool_desc* desc);
/* Average pooling: the mean of each window. Sums behave as in tuff_reduce(). */
TUFF_API tuff_status tuff_avg_pool(tuff_stream stream, const tuff_pool_desc* desc);

/* Options of tuff_pool_backward(). Since 0.9.0. */
typedef struct tuff_pool_backward_desc {
  uint32_t struct_size;
  int32_t dtype;        /* of all operands but indices */
  int32_t maximum;      /* 1: of tuff_max_pool(), 0: of tuff_avg_pool() */
  uint32_t spatial;     /* number of spatial axes: 1, 2 or 3 */
  tuff_buffer input;    /* max without indices: what was pooled */
  tuff_buffer indices;  /* max: what tuff_max_pool() has stored; TUFF_NULL_HANDLE: they are found again in input */
  tuff_buffer doutput;  /* [batch][channels][out_shape...] */
  tuff_buffer dinput;   /* out: [batch][channels][in_shape...] */
  uint64_t batch, channels;
  uint64_t in_shape[3], out_shape[3]; /* these and the following are as in tuff_pool_desc */
  uint64_t kernel[3];
  uint64_t stride[3];   /* 0: kernel */
  uint64_t padding[3];
  uint64_t dilation[3]; /* max only; 0: 1 */
  int32_t ceil_mode;
  int32_t count_include_pad; /* avg only */
  int32_t adaptive;
  int32_t reserved;          /* zero */
} tuff_pool_backward_desc;
/* The gradient of a function of a pooling's output by its input, given that by the output. For a maximum each window's
 * gradient goes to the element that its index names, the first of several largest ones or the first NaN; an index that
 * names no element of its window, as that of a window without taps in the input, has no effect. For a mean each
 * element of a window gets the window's gradient divided by what the sum was divided by. Each element of dinput is the
 * sum over the windows that contain it, in f32 and in their order, and is rounded once. Since 0.9.0.
 * Errors: those of tuff_max_pool() and tuff_avg_pool(); INVALID_ARGUMENT if a maximum is given neither input nor
 * indices, or if a mean is given either; dinput shares no memory with what is read. UNSUPPORTED on CPU devices for
 * elements that are in more windows than one invocation can look at. */
TUFF_API tuff_status tuff_pool_backward(tuff_stream stream, const tuff_pool_backward_desc* desc);

/* ---------------------------------------------------------------------------------------------
 * Resizing. Since 0.5.0.
 *
 * input is [batch][channels][in_shape...] and output [batch][channels][out_shape...], or both are channels last, with
 * 1, 2 or 3 spatial axes. dtype is TUFF_F32, TUFF_F16 or TUFF_BF16; interpolation is in f32. Along an axis, output o is
 * taken from this position in the input, clamped to its last element:
 *   NEAREST         o / scale, rounded down
 *   NEAREST_EXACT   (o + 1/2) / scale, rounded down
 *   LINEAR          (o + 1/2) / scale - 1/2, at least 0, interpolated between the two neighbouring elements; with
 *                   align_corners o * (in - 1) / (out - 1), or 0 if out is 1
 * Linear along two axes is bilinear, along three trilinear. The coordinates are those of PyTorch's interpolate and of
 * ONNX's Resize (asymmetric, half_pixel and align_corners), but are computed exactly in integer arithmetic. An element
 * with weight 0 does not contribute, even if it is NaN. If the sizes are equal and scale is 1, the result is the input.
 * There is no antialiasing: when an axis shrinks to less than half, some input elements are skipped.
 * output must not overlap input.
 * Errors: INVALID_ARGUMENT for a size of 0, or of 2^29 or more; for align_corners with a mode other than LINEAR or with
 * a scale; for a scale that puts the last output at position 2^30 or beyond. UNSUPPORTED for planes (channels last:
 * images) of 2^30 elements or more.
 * ------------------------------------------------------------------------------------------- */
typedef struct tuff_resize_desc {
  uint32_t struct_size;
  int32_t dtype;
  tuff_buffer input, output;
  uint64_t batch, channels;
  uint64_t in_shape[3], out_shape[3]; /* the first `spatial` of these and the following; the others are ignored */
  double scale[3];       /* output elements per input element, used to compute positions; 0: out / in. A decimal number
                            such as 1.5 or 0.3 is taken as the exact fraction that it stands for */
  uint32_t spatial;      /* number of spatial axes: 1, 2 or 3 */
  int32_t mode;          /* TUFF_RESIZE_* */
  int32_t align_corners; /* 1: the first and last elements of input and output coincide */
  int32_t layout;        /* TUFF_LAYOUT_*, for any number of spatial axes; shapes are given in the same order */
} tuff_resize_desc;

/* Resizes images along their spatial axes: output elements are the nearest or interpolated elements of the input. */
TUFF_API tuff_status tuff_resize(tuff_stream stream, const tuff_resize_desc* desc);

/* ---------------------------------------------------------------------------------------------
 * Positions. Since 0.4.0.
 * ------------------------------------------------------------------------------------------- */

/* Rotary position embedding of heads [batch][heads][seq][head_dim]. For each pair (p, q) of elements,
 *   a = position * base^(-2 * i / rotary_dim), output p * cos(a) - q * sin(a) and p * sin(a) + q * cos(a)
 * where pair i < rotary_dim / 2 consists of elements i and i + rotary_dim / 2 of a head. Row s has position offset + s.
 * dtype is TUFF_F32, TUFF_F16 or TUFF_BF16. Computation is in f32, and angles are as accurate at large positions as at
 * small ones. Whole heads are rotated: rotary_dim = head_dim. output may be exactly input. */
TUFF_API tuff_status tuff_rope(tuff_stream stream, int32_t dtype, tuff_buffer input, tuff_buffer output, uint64_t batch,
                               uint64_t heads, uint64_t seq, uint64_t head_dim, int64_t offset, double base);

/* tuff_rope() with a descriptor.
 * Errors: INVALID_ARGUMENT for overlapping output rows; UNSUPPORTED for a size, or a head or row stride, of 2^31 or
 * more. */
typedef struct tuff_rope_desc {
  uint32_t struct_size;
  int32_t dtype;
  tuff_buffer input, output; /* may be exactly the same only with equal strides */
  tuff_buffer positions;     /* TUFF_I32, one per row; offset is added modulo 2^32; TUFF_NULL_HANDLE: 0, 1, 2 ... */
  uint64_t batch, heads, seq, head_dim;
  uint64_t rotary_dim;        /* even; only the first rotary_dim elements of a head are rotated, the others are copied;
                                 0: head_dim */
  uint64_t input_strides[3];  /* of batch, head and row, in elements; all zero: dense. [b][s][h][d] is {seq * heads *
                                 head_dim, head_dim, heads * head_dim} */
  uint64_t output_strides[3]; /* all zero: dense; rows must not overlap */
  uint64_t positions_stride;  /* elements from one batch element's positions to the next; 0: the same for all */
  int64_t offset;             /* it, and without positions the last row's position, must fit in int32_t */
  double base;                /* greater than 1; 0: 10000 */
  int32_t interleaved;        /* 1: pair i is elements 2 * i and 2 * i + 1 */
  int32_t reserved;           /* zero */
} tuff_rope_desc;
TUFF_API tuff_status tuff_rope_ex(tuff_stream stream, const tuff_rope_desc* desc);

/* ---------------------------------------------------------------------------------------------
 * Linear algebra. Since 0.9.0.
 *
 * Factorisations of matrices and solutions of linear systems, for a batch of batch_count matrices each. dtype is
 * TUFF_F32, or TUFF_F64 where tuff_supports says "lu.f64", and is the type of all arithmetic. Matrices are stored as
 * those of tuff_batched_gemm(): row-major, with a leading dimension of at least the row's length (0: dense), matrix i
 * i * stride elements into its buffer. Memory between rows is never written. A stride of 0 uses a matrix that is only
 * read for the whole batch. Matrices, pivots and numbers that are written must not overlap each other or anything that
 * is read; the operations overwrite an operand where they say so. If batch_count or an extent of the matrix that is
 * written is 0, nothing is read or written, except that info and determinants are set as those of an empty matrix.
 *
 * Errors are small in the sense of LAPACK's tests (docs/linear-algebra.md): with n the extent and eps = 2^-23 or 2^-52,
 * ||A - L*L^T|| is below 30 n eps ||A|| and ||B - A*X|| below 30 n eps ||A|| ||X|| for triangular A. The same holds for
 * ||A - P*L*U|| and its solutions, unless elements of U are much larger than those of A; for ||A - Q*R||,
 * ||A - U*S*V^T|| and ||A - V*L*V^T||; and, relative to 1 instead of ||A||, for ||I - Q^T*Q|| of all orthonormal columns
 * and rows. Singular values and eigenvalues of symmetric matrices are within 30 n eps ||A|| of those of A; tuff_eig() says
 * what holds for others. f32 numbers below 2^-126 may be taken as 0. No call returns an error because of a matrix's values: info says what happened, and NaN spreads as it
 * does in arithmetic.
 *
 * Additional errors: INVALID_ARGUMENT for leading dimensions and strides that are too small; UNSUPPORTED for triangles
 * (min(m, n) of tuff_lu() and tuff_qr()) of more than 2^20 rows, min(m, n) above 2^14 in tuff_svd() and n above 2^14 in
 * tuff_eigh(), for other extents of 2^30 or more, and on CPU devices for tuff_lu(), tuff_qr() and tuff_svd() of more rows
 * than their workgroups hold (at least 2^18).
 * ------------------------------------------------------------------------------------------- */

/* Options of tuff_cholesky(). Since 0.9.0. */
typedef struct tuff_cholesky_desc {
  uint32_t struct_size;
  int32_t dtype;
  int32_t triangle;     /* TUFF_TRIANGLE_*: which triangle of A is read and holds the factor */
  int32_t reserved;     /* zero */
  uint64_t n;           /* A is n x n */
  tuff_buffer a;        /* in: a triangle of a symmetric matrix; out: the factor */
  uint64_t lda;         /* 0: n */
  uint64_t stride_a;    /* at least one matrix if batch_count > 1 */
  tuff_buffer info;     /* TUFF_I32, batch_count of them; TUFF_NULL_HANDLE: not wanted */
  uint64_t batch_count;
} tuff_cholesky_desc;

/* Cholesky factorisation of symmetric positive definite matrices, in place: A = L * L^T, or A = U^T * U if triangle is
 * TUFF_TRIANGLE_UPPER. The other triangle of A is not read, and set to zero. info is 0, or as in LAPACK k if the
 * leading k x k matrix is the first that is not positive definite: the factor's elements (i, j) with i and j of k - 1 or
 * more (counted from 0) are then NaN, and those of earlier columns of L (rows of U) are right. */
TUFF_API tuff_status tuff_cholesky(tuff_stream stream, const tuff_cholesky_desc* desc);

/* Options of tuff_lu(). Since 0.9.0. */
typedef struct tuff_lu_desc {
  uint32_t struct_size;
  int32_t dtype;
  uint64_t m, n;          /* A is m x n */
  tuff_buffer a;          /* in: the matrices; out: L below the diagonal, U on it and above */
  uint64_t lda;           /* 0: n */
  uint64_t stride_a;      /* at least one matrix if batch_count > 1 */
  tuff_buffer pivots;     /* out: TUFF_I32, min(m, n) for each matrix */
  uint64_t stride_pivots; /* 0: min(m, n) */
  tuff_buffer info;       /* TUFF_I32, batch_count of them; TUFF_NULL_HANDLE: not wanted */
  uint64_t batch_count;
} tuff_lu_desc;

/* LU factorisation with partial pivoting, in place: A = P * L * U, with L of m x min(m, n) and a diagonal of ones that
 * is not stored, and U of min(m, n) x n. One after another, row k was exchanged with row pivots[k] (both counted from
 * 0): that of the column's largest magnitude on and below the diagonal, of several the first; NaN counts as the largest.
 * info is 0, or k if U(k - 1, k - 1) is the first element of U's diagonal that is 0: the factorisation is complete, and
 * U singular. */
TUFF_API tuff_status tuff_lu(tuff_stream stream, const tuff_lu_desc* desc);

/* Options of tuff_triangular_solve(). Since 0.9.0. */
typedef struct tuff_triangular_solve_desc {
  uint32_t struct_size;
  int32_t dtype;
  int32_t side;          /* TUFF_SIDE_* */
  int32_t triangle;      /* TUFF_TRIANGLE_*: of A as it is stored; the other one is not read */
  int32_t transpose;     /* TUFF_NO_TRANS ...: op(A) is A or its transpose */
  int32_t unit_diagonal; /* 1: the diagonal is taken as ones and not read */
  uint64_t m, n;         /* B is m x n; A is m x m on the left and n x n on the right */
  tuff_buffer a, b;      /* B is overwritten by X */
  uint64_t lda, ldb;     /* 0: dense */
  uint64_t stride_a;     /* 0: one matrix for all */
  uint64_t stride_b;     /* at least one matrix if batch_count > 1 */
  uint64_t batch_count;
} tuff_triangular_solve_desc;

/* Solves triangular systems: op(A) * X = B or X * op(A) = B, where X overwrites B. A zero on the diagonal gives
 * infinities and NaN, as division does. */
TUFF_API tuff_status tuff_triangular_solve(tuff_stream stream, const tuff_triangular_solve_desc* desc);

/* Options of tuff_lu_solve(). Since 0.9.0. */
typedef struct tuff_lu_solve_desc {
  uint32_t struct_size;
  int32_t dtype;
  int32_t transpose;      /* TUFF_NO_TRANS ...: op(A) is A or its transpose */
  int32_t reserved;       /* zero */
  uint64_t n, nrhs;       /* A is n x n, B is n x nrhs */
  tuff_buffer a, pivots;  /* as tuff_lu() left them */
  tuff_buffer b;          /* overwritten by X */
  uint64_t lda, ldb;      /* 0: dense */
  uint64_t stride_a;      /* 0: one matrix for all */
  uint64_t stride_pivots; /* 0: n, or 0 if stride_a is 0 */
  uint64_t stride_b;      /* at least one matrix if batch_count > 1 */
  uint64_t batch_count;
} tuff_lu_solve_desc;

/* Solves linear systems op(A) * X = B from the factors of tuff_lu(), where X overwrites B. A pivot that is no row of A
 * exchanges nothing. With B the identity, X is the inverse. */
TUFF_API tuff_status tuff_lu_solve(tuff_stream stream, const tuff_lu_solve_desc* desc);

/* Options of tuff_lu_determinant(). Since 0.9.0. */
typedef struct tuff_lu_determinant_desc {
  uint32_t struct_size;
  int32_t dtype;
  uint64_t n;                       /* A is n x n */
  tuff_buffer a, pivots;            /* as tuff_lu() left them; only A's diagonal is read */
  uint64_t lda;                     /* 0: n */
  uint64_t stride_a, stride_pivots; /* as in tuff_lu_solve_desc */
  tuff_buffer determinant;          /* of dtype, batch_count of them; TUFF_NULL_HANDLE: not wanted, as the following */
  tuff_buffer sign;                 /* -1, 0 or 1, or NaN */
  tuff_buffer log_magnitude;        /* the natural logarithm of |det A|; -inf for 0 */
  uint64_t batch_count;
} tuff_lu_determinant_desc;

/* Determinants from the factors of tuff_lu(): the product of U's diagonal, and its sign and logarithm, which neither
 * overflow nor underflow. That of an empty matrix is 1. The product is within 2 n eps of the exact product of the
 * diagonal, relative to it, unless it leaves the range of dtype. */
TUFF_API tuff_status tuff_lu_determinant(tuff_stream stream, const tuff_lu_determinant_desc* desc);

/* Options of tuff_qr(). Since 0.9.0. */
typedef struct tuff_qr_desc {
  uint32_t struct_size;
  int32_t dtype;
  uint64_t m, n;       /* A is m x n */
  tuff_buffer a;       /* in: the matrices; out: R, with zeros below its diagonal */
  uint64_t lda;        /* 0: n */
  uint64_t stride_a;   /* at least one matrix if batch_count > 1 */
  tuff_buffer q;       /* out: Q, m x columns_q; TUFF_NULL_HANDLE: not wanted */
  uint64_t columns_q;  /* min(m, n), the reduced form, for which 0 stands too, to m, the complete one */
  uint64_t ldq;        /* 0: columns_q */
  uint64_t stride_q;   /* at least one matrix if batch_count > 1 */
  uint64_t batch_count;
} tuff_qr_desc;

/* QR factorisation by Householder reflections: A = Q * R, where the columns of Q are orthonormal and R, which overwrites
 * A, is an upper triangle or trapezium. R's diagonal may be negative, as in LAPACK. A may have any rank: then R's
 * diagonal has small elements, not necessarily at its end. A NaN or an infinity in A spreads to all of R and Q that
 * depends on it. R does not depend on whether Q is wanted, except for its rounding. */
TUFF_API tuff_status tuff_qr(tuff_stream stream, const tuff_qr_desc* desc);

/* Options of tuff_eigh(). Since 0.9.0. */
typedef struct tuff_eigh_desc {
  uint32_t struct_size;
  int32_t dtype;
  int32_t triangle;        /* TUFF_TRIANGLE_*: which triangle of A is read */
  int32_t reserved;        /* zero */
  uint64_t n;              /* A is n x n */
  tuff_buffer a;           /* a triangle of a symmetric matrix */
  uint64_t lda;            /* 0: n */
  uint64_t stride_a;       /* 0: one matrix for all */
  tuff_buffer values;      /* out: n for each matrix, ascending */
  uint64_t stride_values;  /* 0: n */
  tuff_buffer vectors;     /* out: n x n, column j belongs to value j; TUFF_NULL_HANDLE: not wanted */
  uint64_t ld_vectors;     /* 0: n */
  uint64_t stride_vectors; /* at least one matrix if batch_count > 1 */
  tuff_buffer info;        /* TUFF_I32, batch_count of them; TUFF_NULL_HANDLE: not wanted */
  uint64_t batch_count;
} tuff_eigh_desc;

/* Eigenvalues and eigenvectors of symmetric matrices: A = V * diag(values) * V^T, by Jacobi's method. Vectors have length
 * 1 and are orthogonal; their signs, and their choice for values that are equal, are not specified. info is 0; 1 if A
 * has a NaN or an infinity in the triangle, which makes all results of that matrix NaN; or 2 if the off-diagonal
 * elements did not become small within 30 sweeps: results are then approximations. */
TUFF_API tuff_status tuff_eigh(tuff_stream stream, const tuff_eigh_desc* desc);

/* Options of tuff_eig(). Since 0.9.0. */
typedef struct tuff_eig_desc {
  uint32_t struct_size;
  int32_t dtype;           /* of A: TUFF_F32, or TUFF_F64 where tuff_supports() says "eig.f64" */
  uint64_t n;              /* A is n x n */
  tuff_buffer a;           /* only read */
  uint64_t lda;            /* 0: n */
  uint64_t stride_a;       /* 0: one matrix for all */
  tuff_buffer values;      /* out: n for each matrix, TUFF_C64 of f32 matrices, TUFF_C128 of f64, as vectors */
  uint64_t stride_values;  /* in complex numbers, as the following; 0: n */
  tuff_buffer vectors;     /* out: n x n, column j belongs to value j; TUFF_NULL_HANDLE: not wanted */
  uint64_t ld_vectors;     /* 0: n */
  uint64_t stride_vectors; /* at least one matrix if batch_count > 1 */
  tuff_buffer info;        /* TUFF_I32, batch_count of them; TUFF_NULL_HANDLE: not wanted */
  uint64_t batch_count;
} tuff_eig_desc;

/* Eigenvalues and right eigenvectors of real square matrices: A * V = V * diag(values), by Householder's reduction to
 * Hessenberg form and the implicit double shift QR algorithm of Francis. Values are in no order, but those with an
 * imaginary part are pairs of conjugates, each the one with a positive imaginary part first, and so are their vectors; the
 * imaginary parts of real ones are 0. Vectors have length 1, and the component of largest magnitude is real; their signs are
 * not specified, nor are they independent where A has fewer vectors than values. Matrices are scaled by a power of two, but
 * not balanced: each value and its vector are exact for a matrix within 30 n eps ||A|| of A, which says nothing of their own
 * errors where the value is ill-conditioned. info is 0; 1 if A has a NaN or an infinity; or 2 if the iterations, 30 for each
 * value, did not converge. All results of a matrix are NaN unless its info is 0. UNSUPPORTED: n above 2^11, and complex
 * matrices. */
TUFF_API tuff_status tuff_eig(tuff_stream stream, const tuff_eig_desc* desc);

/* Options of tuff_svd(). Since 0.9.0. */
typedef struct tuff_svd_desc {
  uint32_t struct_size;
  int32_t dtype;
  uint64_t m, n;          /* A is m x n; k is min(m, n) */
  tuff_buffer a;          /* only read */
  uint64_t lda;           /* 0: n */
  uint64_t stride_a;      /* 0: one matrix for all */
  tuff_buffer values;     /* out: k for each matrix, descending, none negative */
  uint64_t stride_values; /* 0: k */
  tuff_buffer u;          /* out: m x k; TUFF_NULL_HANDLE: not wanted, as vt */
  uint64_t ldu;           /* 0: k */
  uint64_t stride_u;      /* at least one matrix if batch_count > 1, as stride_vt */
  tuff_buffer vt;         /* out: k x n */
  uint64_t ldvt;          /* 0: n */
  uint64_t stride_vt;
  tuff_buffer info;       /* as tuff_eigh_desc's */
  uint64_t batch_count;
} tuff_svd_desc;

/* Singular value decomposition A = U * diag(values) * V^T in the reduced form, by a QR factorisation and the one-sided
 * method of Jacobi. The columns of U and the rows of V^T (vt) are orthonormal for matrices of any rank; their signs, and
 * their choice for values that are equal, are not specified. info is as tuff_eigh()'s. */
TUFF_API tuff_status tuff_svd(tuff_stream stream, const tuff_svd_desc* desc);

/* ---------------------------------------------------------------------------------------------
 * Fourier transforms. Since 0.9.0.
 * ------------------------------------------------------------------------------------------- */

/* Options of tuff_fft(). A complex number is two adjacent elements, its real and its imaginary part: with TUFF_F32 it
 * is an element of TUFF_C64, with TUFF_F64 one of TUFF_C128. */
typedef struct tuff_fft_desc {
  uint32_t struct_size;
  int32_t dtype;   /* of elements: TUFF_F32, TUFF_F16, TUFF_BF16, or TUFF_F64 where tuff_supports() says "fft.f64" */
  int32_t kind;    /* TUFF_FFT_* */
  int32_t inverse; /* 0: the exponent is negative; 1: positive */
  int32_t norm;    /* TUFF_FFT_NORM_* */
  uint32_t rank;   /* 1 to 8 */
  uint32_t axes;   /* bit i: axis i is transformed; 0: the last axis. The others are a batch */
  int32_t reserved; /* zero */
  tuff_buffer input, output;
  uint64_t shape[8]; /* the first `rank` sizes of the operands. Along the last of the transformed axes, which has n
                        numbers here, the output of TUFF_FFT_REAL and the input of TUFF_FFT_TO_REAL have only
                        n / 2 + 1 (rounded down) */
  /* From one number to the next along each axis, in numbers: complex or real ones, as the operand has. All 0: the
   * operand is dense and row-major. An input's strides may be 0 along an axis that is repeated. An output's numbers are
   * distinct: ordered by size, each stride is larger than the reach of the smaller ones. */
  uint64_t input_strides[8], output_strides[8];
} tuff_fft_desc;
/* Discrete Fourier transforms along one or more axes:
 *   output[k] = norm * sum over j < n of input[j] * exp(-+ 2 pi i j k / n)
 * along each, with + if `inverse` is set. TUFF_FFT_REAL gives k <= n / 2; the other half is its mirrored conjugate.
 * TUFF_FFT_TO_REAL is given such a half, and takes the numbers 0 and n / 2 along the last transformed axis as real,
 * whatever their imaginary parts. output may be exactly the input if both are complex and have the same strides.
 *
 * Any size is transformed in O(n log n): factors up to 31 directly, others by Bluestein's algorithm. f32, f16 and bf16
 * are computed in f32 and rounded once, f64 in f64. The error is at most 4 * log2(n) * 2^-24 (f64: 2^-53) of the result
 * in the Euclidean norm, 3 times that with Bluestein's algorithm, besides the rounding of the output. An infinity or a
 * NaN makes all numbers that it contributes to NaN or infinite.
 * Errors: INVALID_ARGUMENT for a transformed axis of size 0, and for operands that overlap otherwise. UNSUPPORTED for a
 * transformed axis of more than 2^29 numbers, or 2^28 if its size has a prime factor above 31. */
TUFF_API tuff_status tuff_fft(tuff_stream stream, const tuff_fft_desc* desc);

/* Options of tuff_dct(). */
typedef struct tuff_dct_desc {
  uint32_t struct_size;
  int32_t dtype;      /* TUFF_F32, TUFF_F16, TUFF_BF16, or TUFF_F64 where tuff_supports() says "dct.f64" */
  int32_t kind;       /* TUFF_DCT_* or TUFF_DST_* */
  int32_t orthogonal; /* 1: numbers at the ends of each line are multiplied by a root of 2 or of 1/2, so that the transform
                         is orthogonal with TUFF_FFT_NORM_ROOT */
  int32_t norm;       /* TUFF_FFT_NORM_* */
  uint32_t rank;      /* 1 to 8 */
  uint32_t axes;      /* bit i: axis i is transformed; 0: the last axis. The others are a batch */
  int32_t reserved;   /* zero */
  tuff_buffer input, output; /* real numbers */
  uint64_t shape[8];  /* the first `rank` sizes of both */
  /* From one number to the next along each axis, as tuff_fft_desc's. */
  uint64_t input_strides[8], output_strides[8];
} tuff_dct_desc;
/* Cosine and sine transforms of real numbers, DCT and DST of the kinds I to IV, along one or more axes of any size. The
 * inverse of kind 1 is kind 1, that of 2 is 3, that of 3 is 2 and that of 4 is 4, if the norms of both together divide by
 * N. `orthogonal` multiplies x[0] and x[n - 1] of TUFF_DCT_1 by sqrt(2) and the results y[0] and y[n - 1] by sqrt(1/2);
 * y[0] of TUFF_DCT_2 and y[n - 1] of TUFF_DST_2 by sqrt(1/2); x[0] of TUFF_DCT_3 and x[n - 1] of TUFF_DST_3 by sqrt(2).
 * The other kinds need no such factors. output may be exactly the input if both have the same strides.
 *
 * Each line is a Fourier transform of n real numbers or of n / 2 complex ones; of N real ones for kind 1, of n complex ones
 * for kind 4 if n is odd. f32, f16 and bf16 are computed in f32 and rounded once, also with several axes; f64 in f64. The
 * error is at most (4 * log2(N) + 8) * 2^-24 (f64: 2^-53) of the result in the Euclidean norm, where each axis adds to the
 * sum, 3 times that with Bluestein's algorithm, besides the rounding of the output. An infinity or a NaN makes all numbers
 * that it contributes to NaN or infinite.
 * Errors: INVALID_ARGUMENT for a transformed axis of size 0 (TUFF_DCT_1: below 2), and for operands that overlap
 * otherwise. UNSUPPORTED if the transformed axes have more than 2^28 numbers together, or one that TUFF_DCT_1 or
 * TUFF_DST_1 transforms 2^27 or more. */
TUFF_API tuff_status tuff_dct(tuff_stream stream, const tuff_dct_desc* desc);

/* ---------------------------------------------------------------------------------------------
 * Recurrent networks. Since 0.9.0.
 * ------------------------------------------------------------------------------------------- */

/* Options of tuff_rnn(). D is 1, or 2 for TUFF_RNN_DIRECTION_BOTH; G is the number of the cell's gates (4 for an LSTM, 3
 * for a GRU, 1 for the others); H is hidden_size; P is proj_size, or H without a projection. */
typedef struct tuff_rnn_desc {
  uint32_t struct_size;
  int32_t dtype;      /* of all operands but lengths: TUFF_F32, TUFF_F16 or TUFF_BF16 */
  int32_t cell;       /* TUFF_RNN_CELL_* */
  int32_t direction;  /* TUFF_RNN_DIRECTION_* */
  int32_t gate_order; /* TUFF_RNN_GATES_* */
  int32_t linear_before_reset; /* GRU: 1: the reset gate multiplies the product with h and its bias, as in PyTorch; 0: it
                                  multiplies h. 0 for other cells */
  uint64_t batch, steps, input_size, hidden_size;
  uint64_t proj_size; /* LSTM: h is a product of `projection` and has this size; 0: no projection */
  double clip;        /* positive: sums are limited to -clip ... clip before they become gates; 0: they are not */

  tuff_buffer x;         /* [steps][batch][input_size] */
  uint64_t x_strides[2]; /* elements from one step and one sequence to the next, at least input_size; 0: as dense */
  tuff_buffer w;         /* [D][G * H][input_size], dense as the others below */
  tuff_buffer r;         /* [D][G * H][P] */
  tuff_buffer bias_w, bias_r; /* [D][G * H]; both are added; TUFF_NULL_HANDLE: none */
  uint64_t bias_stride;  /* elements from one direction's bias_w (and bias_r) to the next; 0: G * H */
  tuff_buffer peepholes; /* LSTM: [D][3 * H]: of the input, output and forget gate; TUFF_NULL_HANDLE: none */
  tuff_buffer projection; /* [D][proj_size][H], with proj_size only */
  tuff_buffer lengths;   /* TUFF_I32 [batch]: steps of each sequence; TUFF_NULL_HANDLE: all have all of them */
  tuff_buffer h0;        /* [D][batch][P]; TUFF_NULL_HANDLE: zeros */
  tuff_buffer c0;        /* LSTM: [D][batch][H]; TUFF_NULL_HANDLE: zeros */

  tuff_buffer y; /* out: h after each step, [steps][batch][D * P]; TUFF_NULL_HANDLE: not wanted, as hn and cn */
  uint64_t y_strides[3]; /* elements from one step, sequence and direction to the next; 0: as dense, P for directions */
  tuff_buffer hn;        /* out: the last h, [D][batch][P]; may be exactly h0 */
  tuff_buffer cn;        /* out, LSTM: the last c, [D][batch][H]; may be exactly c0 */
} tuff_rnn_desc;

/* One layer of a recurrent network. With a gate's sum s = W x + bias_w + R h + bias_r, where h is that of the step before,
 * sigma(s) = 1 / (1 + exp(-s)), and o for products of elements:
 *   LSTM  i = sigma(s_i + p_i o c), f = sigma(s_f + p_f o c), g = tanh(s_g), c' = f o c + i o g,
 *         u = sigma(s_o + p_o o c'), h' = u o tanh(c'), or projection * (u o tanh(c')); p are the peepholes
 *   GRU   r = sigma(s_r), z = sigma(s_z), h' = (1 - z) o n + z o h, where n is
 *         tanh(W_n x + bias_w + r o (R_n h + bias_r)) with linear_before_reset, else
 *         tanh(W_n x + bias_w + R_n (r o h) + bias_r)
 *   TANH, RELU  h' = tanh(s), max(s, 0)
 * A sequence of length l takes part in its first l steps only: in the others y is 0 and h and c stay what they are, so
 * that hn and cn are those of its last step. The reverse direction starts at step l - 1. A length below 0 counts as 0,
 * and one beyond `steps` as `steps`. What x has beyond a sequence's length has no effect. Without steps hn and cn are h0
 * and c0.
 *
 * Everything is computed in f32: also for f16 and bf16 h and c are f32 from step to step, and each element of y, hn and
 * cn is rounded once. (The host backend computes in f64.) NaN in a sequence stays in that sequence.
 * Errors: INVALID_ARGUMENT for an input_size or hidden_size of 0, for options of another cell, for strides of x below
 * input_size, for rows of y that overlap, and for outputs that overlap an operand otherwise. UNSUPPORTED for other types,
 * for more than 2^31 - 1 steps, and on devices for sizes of inputs, units or projection beyond 2^26. */
TUFF_API tuff_status tuff_rnn(tuff_stream stream, const tuff_rnn_desc* desc);

/* Options of tuff_rnn_backward(). The layer is described as in tuff_rnn_desc; a gradient has the shape of what it is the
 * gradient of, and the same type. */
typedef struct tuff_rnn_backward_desc {
  uint32_t struct_size;
  int32_t dtype;      /* of all operands but lengths: TUFF_F32, TUFF_F16 or TUFF_BF16 */
  int32_t cell;       /* TUFF_RNN_CELL_* */
  int32_t direction;  /* TUFF_RNN_DIRECTION_* */
  int32_t gate_order; /* TUFF_RNN_GATES_* */
  int32_t linear_before_reset; /* GRU: 0 or 1 */
  uint64_t batch, steps, input_size, hidden_size;
  uint64_t proj_size; /* LSTM: with a projection; 0: none */
  double clip;        /* positive, or 0: none. A sum beyond -clip ... clip has no slope */

  tuff_buffer x;         /* [steps][batch][input_size] */
  uint64_t x_strides[2]; /* elements from one step and one sequence to the next, at least input_size; 0: as dense */
  tuff_buffer w;         /* [D][G * H][input_size] */
  tuff_buffer r;         /* [D][G * H][P] */
  tuff_buffer bias_w, bias_r; /* [D][G * H]; TUFF_NULL_HANDLE: none */
  uint64_t bias_stride;  /* elements from one direction to the next, of dbias_w and dbias_r too; 0: G * H */
  tuff_buffer peepholes; /* LSTM: [D][3 * H]; TUFF_NULL_HANDLE: none */
  tuff_buffer projection; /* [D][proj_size][H], with proj_size only */
  tuff_buffer lengths;   /* TUFF_I32 [batch]; TUFF_NULL_HANDLE: all have all steps */
  tuff_buffer h0;        /* [D][batch][P]; TUFF_NULL_HANDLE: zeros */
  tuff_buffer c0;        /* LSTM: [D][batch][H]; TUFF_NULL_HANDLE: zeros */

  tuff_buffer dy; /* [steps][batch][D * P]; TUFF_NULL_HANDLE: zeros, as dhn and dcn, of which one at least is given */
  uint64_t dy_strides[3]; /* elements from one step, sequence and direction to the next; 0: as dense, P for directions */
  tuff_buffer dhn;        /* [D][batch][P] */
  tuff_buffer dcn;        /* LSTM: [D][batch][H] */

  tuff_buffer dx; /* out: [steps][batch][input_size]; TUFF_NULL_HANDLE: not wanted, as the others below */
  uint64_t dx_strides[2]; /* as x_strides; rows may not overlap */
  tuff_buffer dw, dr;           /* out: as w and r */
  tuff_buffer dbias_w, dbias_r; /* out: [D][G * H], whether or not there is a bias */
  tuff_buffer dpeepholes;       /* out, LSTM: [D][3 * H], whether or not there are peepholes */
  tuff_buffer dprojection;      /* out: [D][proj_size][H], with proj_size only */
  tuff_buffer dh0;              /* out: [D][batch][P]; may be exactly dhn */
  tuff_buffer dc0;              /* out, LSTM: [D][batch][H]; may be exactly dcn */
} tuff_rnn_backward_desc;

/* The gradients of a function of tuff_rnn()'s outputs by its operands, given those by the outputs. The layer's steps are
 * computed anew first, so that the call needs nothing that tuff_rnn() has kept.
 *
 * Gradients by weights are sums over all steps and sequences, those of both biases the same, but for a GRU with
 * linear_before_reset. In steps beyond a sequence's length dx is 0, and dy has no effect, whatever it is. The slope of
 * relu at 0 is 0. Without steps dh0 and dc0 are dhn and dcn, and without steps or sequences the gradients by weights are 0.
 *
 * Everything is computed in f32; each element is rounded once. (The host backend computes in f64.)
 * Errors: as tuff_rnn(). INVALID_ARGUMENT if none of dy, dhn and dcn is given where there are steps and
 * sequences, and for rows of dx that overlap.
 * UNSUPPORTED on devices for a sequence whose steps need 2^30 numbers or more: a step has (G + 3) * D * H of them, and
 * input_size and P. */
TUFF_API tuff_status tuff_rnn_backward(tuff_stream stream, const tuff_rnn_backward_desc* desc);

/* ---------------------------------------------------------------------------------------------
 * Training. Since 0.9.0. docs/training.md has examples.
 *
 * Optimisers and norms of gradients take a list of tensors, as arrays of `count` handles: tensor i is at the start of
 * parameters[i] and has sizes[i] elements, gradients[i] is its gradient, and so on. The tensors of a list share one type;
 * a network with tensors of several types takes a call for each. TUFF_NULL_HANDLE may stand for a tensor without
 * elements.
 * ------------------------------------------------------------------------------------------- */

/* What tuff_optimizer_step() computes. */
typedef int32_t tuff_optimizer;
enum {
  TUFF_OPTIMIZER_INVALID = -1,
  TUFF_OPTIMIZER_SGD = 0,   /* stochastic gradient descent, with momentum if that is not 0 */
  TUFF_OPTIMIZER_ADAM = 1,  /* Adam; weight_decay is added to the gradient */
  TUFF_OPTIMIZER_ADAMW = 2, /* Adam; weights decay by themselves */
  TUFF_OPTIMIZER_LAMB = 3   /* Adam's direction, as long for each tensor as the tensor is */
};

/* Options of tuff_optimizer_step(). Numbers are rounded to f32 on devices; zero means zero, unless noted. */
typedef struct tuff_optimizer_desc {
  uint32_t struct_size;
  int32_t dtype;         /* of the parameters: TUFF_F32, TUFF_F16 or TUFF_BF16 */
  int32_t algorithm;     /* TUFF_OPTIMIZER_* */
  int32_t gradient_type; /* dtype (or 0) or TUFF_F32 */
  int32_t nesterov;      /* SGD: 1: Nesterov's momentum */
  int32_t reserved;      /* zero */
  uint64_t count;        /* tensors */
  const uint64_t* sizes; /* elements of each tensor; may be NULL if count is 0 */
  const tuff_buffer* parameters; /* in and out; with masters: out; may be NULL if count is 0 */
  const tuff_buffer* gradients;  /* may be NULL if count is 0 */
  const tuff_buffer* masters; /* TUFF_F32: the parameters in full precision, which steps are made on; each parameter
                                 becomes its master, rounded. NULL: none */
  const tuff_buffer* first_moments; /* TUFF_F32, in and out: m, or SGD's velocity; zeros before the first step. NULL:
                                       none, for SGD without momentum */
  const tuff_buffer* second_moments; /* TUFF_F32, in and out: v; zeros before the first step. NULL: none, for SGD */
  double rate;           /* at least 0 */
  double momentum;       /* SGD: at least 0 */
  double beta1, beta2;   /* others than SGD: from 0 to below 1 */
  double epsilon;        /* others than SGD: at least 0 */
  double weight_decay;   /* at least 0 */
  double gradient_scale; /* gradients are multiplied by this, as by 1 / s if the loss was multiplied by s; 0: 1 */
  uint64_t step;         /* others than SGD: 1 for the first step, and so on; 0 with `steps` */
  /* Numbers that the device reads when it makes the step, for graphs and for what need not be waited for. Each is one
   * element, or TUFF_NULL_HANDLE. */
  tuff_buffer steps;           /* TUFF_I32, in and out: the steps made so far. The call adds its own */
  tuff_buffer rate_factor;     /* TUFF_F32: the rate is multiplied by this */
  tuff_buffer gradient_factor; /* TUFF_F32: gradients are multiplied by this, too */
  tuff_buffer skip;            /* TUFF_I32: unless it is 0, the call changes nothing */
} tuff_optimizer_desc;

/* Changes parameters by their gradients: one step of an optimiser, for all tensors of a list. With
 * g = gradient * gradient_scale * gradient_factor, r = rate * rate_factor, d = weight_decay, t = step (or steps + 1):
 *   SGD    g += d w. Without momentum w -= r g. With it v = momentum v + g, and w -= r v; with nesterov
 *          w -= r (g + momentum v)
 *   ADAM   g += d w; m += (1 - beta1) (g - m); v = beta2 v + (1 - beta2) g^2;
 *          w -= r / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
 *   ADAMW  the same without g += d w; w is multiplied by 1 - r d first
 *   LAMB   m and v as in ADAMW; u = m / (1 - beta1^t) / (sqrt(v) / sqrt(1 - beta2^t) + epsilon) + d w;
 *          w -= r |w| / |u| * u, where |x| is the Euclidean norm of the tensor, and |w| / |u| is 1 if either is 0
 * The first three are PyTorch's SGD, Adam and AdamW; LAMB is that of You et al. (arXiv:1904.00962) with their function
 * phi(x) = x.
 *
 * Everything is computed in f32 (on the host backend in f64), whatever the type of parameters and gradients; what is
 * stored is rounded once, and m and v are used as they are stored. A list takes about one dispatch for every 80 tensors
 * and one for each very large one, three for LAMB. The norms of LAMB are sums in an order that depends on the sizes only,
 * and leave the range of f32 only if the norm itself does.
 *
 * A call without elements changes nothing, `steps` included. In a graph all numbers of the descriptor stay what they were
 * when it was captured, `step` too: a graph of Adam's steps needs `steps`.
 * Errors: INVALID_ARGUMENT for arrays that the algorithm does not use or lacks, for numbers outside their range or that
 * are not finite in f32, for a step of 0 without `steps` (except for SGD), for another one together with `steps`, and for
 * a tensor that is written and overlaps any other operand; UNSUPPORTED for other types. */
TUFF_API tuff_status tuff_optimizer_step(tuff_stream stream, const tuff_optimizer_desc* desc);

/* Options of tuff_gradient_norm(). */
typedef struct tuff_gradient_norm_desc {
  uint32_t struct_size;
  int32_t dtype;      /* of the gradients: TUFF_F32, TUFF_F16 or TUFF_BF16 */
  int32_t accumulate; /* 1: `norm` and `found` hold those of other gradients, which are counted in */
  int32_t reserved;   /* zero */
  uint64_t count;     /* tensors */
  const uint64_t* sizes;        /* elements of each tensor; may be NULL if count is 0 */
  const tuff_buffer* gradients; /* may be NULL if count is 0 */
  double gradient_scale; /* gradients count multiplied by this; 0: 1 */
  double limit;          /* positive: the longest that gradients may be; 0: any */
  /* One element each; TUFF_NULL_HANDLE: none, or not wanted. One at least of the outputs is given. */
  tuff_buffer gradient_factor; /* TUFF_F32: gradients count multiplied by this, too */
  tuff_buffer norm;   /* out: TUFF_F32 */
  tuff_buffer factor; /* out: TUFF_F32: gradient_factor (or 1), times limit / norm if norm is above the limit */
  tuff_buffer found;  /* out: TUFF_I32: 1 if a gradient is infinite or NaN, otherwise 0 */
} tuff_gradient_norm_desc;

/* The length of a list of gradients, |gradient_scale * gradient_factor * (all elements of all tensors)| by the Euclidean
 * norm, and what follows from it: `factor` and `found` are what tuff_optimizer_step() takes as gradient_factor and skip,
 * so that gradients are clipped, and steps with infinite gradients left out, without waiting for the device.
 *
 * Computed in f32 (on the host backend in f64) for all types, in an order that depends on the sizes only. Squares do not
 * leave the range: the norm is infinite only if it is above f32's largest number. With an infinite gradient norm is
 * infinite, and factor 0 if there is a limit; with a NaN both are NaN. Without elements the norm is 0.
 * Errors: INVALID_ARGUMENT for a gradient_scale that is not finite in f32, for a limit that is negative, that is not
 * finite in f32, or that is neither 0 nor at least f32's smallest normal number, if there is no output or no norm to
 * accumulate, and for an output that overlaps any other operand; UNSUPPORTED for other types. */
TUFF_API tuff_status tuff_gradient_norm(tuff_stream stream, const tuff_gradient_norm_desc* desc);

/* Options of tuff_cross_entropy(). */
typedef struct tuff_cross_entropy_desc {
  uint32_t struct_size;
  int32_t dtype;      /* of logits and gradient: TUFF_F32, TUFF_F16 or TUFF_BF16 */
  int32_t label_type; /* TUFF_I32, TUFF_I64, TUFF_U32 or TUFF_U64 */
  int32_t ignores;    /* 1: rows with the label ignore_index do not count */
  int64_t ignore_index;
  uint64_t shape[8];  /* of the logits */
  uint32_t rank;      /* 1 to 8 */
  uint32_t axis;      /* of the classes; a row is the logits that differ along it only */
  double label_smoothing; /* from 0 to 1: the part of the weight that all classes share alike */
  double gradient_scale;  /* gradients are multiplied by this; 0: 1 */
  tuff_buffer logits;
  tuff_buffer labels;     /* the class of each row: [shape without the axis] */
  tuff_buffer gradient_factor; /* one TUFF_F32 that gradients are multiplied by, too; TUFF_NULL_HANDLE: none */
  tuff_buffer loss_gradient;   /* TUFF_F32, of each row's loss: [shape without the axis]; TUFF_NULL_HANDLE: ones */
  tuff_buffer loss;     /* out: TUFF_F32: [shape without the axis]; TUFF_NULL_HANDLE: not wanted */
  tuff_buffer gradient; /* out: by the logits, of their shape; may be exactly logits; TUFF_NULL_HANDLE: not wanted */
} tuff_cross_entropy_desc;

/* Cross-entropy of rows of logits x and their labels y, the gradient by the logits, or both in one pass. With C classes,
 * p = softmax(x), s = label_smoothing and q_j = (1 - s) * (1 if j is y, else 0) + s / C:
 *   loss      -sum over j of q_j * log(p_j) = log(sum(exp(x - max))) - (1 - s) * (x_y - max) - s * mean(x - max)
 *   gradient  loss_gradient * gradient_scale * gradient_factor * (p_j - q_j)
 * For the mean over rows that count, let gradient_factor be 1 / their number.
 *
 * A row that is ignored has a loss and gradients of 0, whatever its logits are. A row is NaN, its gradients too, if
 * softmax() of it is, and if its label is out of range and not ignored: indices are checked nowhere else. Without
 * smoothing, logits of -infinity of other classes count as weights of 0; that of the label makes the loss infinite.
 *
 * Computed in f32 (on the host backend in f64); each result is rounded once. loss is f32 for all types.
 * Errors: INVALID_ARGUMENT for a label_smoothing outside 0 ... 1, for a gradient_scale that is not finite in f32, if
 * neither loss nor gradient is wanted, if an option of the gradient is given without it, and for outputs that overlap
 * another operand otherwise. UNSUPPORTED for other types, and on devices for 2^31 classes or more, or as
 * many elements after them. */
TUFF_API tuff_status tuff_cross_entropy(tuff_stream stream, const tuff_cross_entropy_desc* desc);

/* Options of tuff_softmax_backward(). */
typedef struct tuff_softmax_backward_desc {
  uint32_t struct_size;
  int32_t dtype; /* of all operands: TUFF_F32, TUFF_F16 or TUFF_BF16 */
  tuff_buffer output;          /* of tuff_softmax(), with a mask or without */
  tuff_buffer output_gradient; /* by output */
  tuff_buffer gradient; /* out: by the input; may be exactly output or output_gradient */
  uint64_t shape[8];    /* of all three */
  uint32_t rank;        /* 1 to 8 */
  uint32_t axis;
  double scale;      /* of the input, as in tuff_softmax_desc; 0: 1 */
  int32_t logarithm; /* 1: output is the logarithm of the softmax */
  int32_t reserved;  /* zero */
} tuff_softmax_backward_desc;

/* The gradient by the input of tuff_softmax(), from its output y and the gradient dy by that, along one axis:
 *   softmax    scale * y * (dy - sum(dy * y))
 *   logarithm  scale * (dy - exp(y) * sum(dy))
 * Elements that a mask hides have an output of 0 (-infinity), and so by softmax a gradient of 0. With an added mask the
 * gradient by the mask is that by the input with a scale of 1.
 *
 * Computed in f32 (on the host backend in f64); each element is rounded once.
 * Errors: INVALID_ARGUMENT for a scale that is not finite or is zero in f32, and for operands that overlap gradient
 * otherwise. UNSUPPORTED for other types, and on devices for 2^31 elements or more along the axis, or after it. */
TUFF_API tuff_status tuff_softmax_backward(tuff_stream stream, const tuff_softmax_backward_desc* desc);

/* ---------------------------------------------------------------------------------------------
 * Sparse matrices. Since 0.9.0. docs/sparse.md has examples.
 *
 * A sparse matrix is described by buffers. Its entries have an index of a row, one of a column and a value:
 *
 *   TUFF_SPARSE_COO    rows, columns and values: nnz of each, in any order; entries of the same place are summed
 *   TUFF_SPARSE_CSR    rows is rows + 1 offsets: row i has the entries rows[i] to rows[i + 1] - 1 of columns and values,
 *                      in any order within the row; entries of the same place are summed
 *   TUFF_SPARSE_CSC    columns is columns + 1 offsets: column j has the entries columns[j] to columns[j + 1] - 1 of rows
 *                      and values. These are the buffers of the transposed matrix in CSR
 *   TUFF_SPARSE_DENSE  values is a dense row-major matrix, with a leading dimension
 *   TUFF_SPARSE_BSR    CSR of dense blocks, all of block_rows x block_columns elements, which divide the matrix's rows and
 *                      columns: rows is rows / block_rows + 1 offsets, columns has the column of blocks of each block,
 *                      and values block_rows * block_columns elements of each, one block after another. What counts
 *                      entries counts blocks here. Blocks of the same place are summed
 *
 * Indices and offsets are all TUFF_I32 or all TUFF_I64. The contents of buffers are not checked by the call, because they
 * are on the device, and no content reads or writes anything outside the operands: an entry with an index out of range
 * is ignored, and an offset is taken as the nearest number from 0 to nnz. Offsets that decrease are an error that is not
 * reported: which entries the rows then have is not specified. Offsets need not begin at 0 nor end at nnz, so the
 * offsets of some consecutive rows, as a view, describe those rows with the indices and values of the whole matrix.
 *
 * Sums are made in an order that depends on sizes, offsets and the device only: the same bits run after run.
 * ------------------------------------------------------------------------------------------- */

/* Formats of sparse matrices. Since 0.9.0. */
typedef int32_t tuff_sparse_format;
enum {
  TUFF_SPARSE_INVALID = -1,
  TUFF_SPARSE_COO = 0,
  TUFF_SPARSE_CSR = 1,
  TUFF_SPARSE_CSC = 2,
  TUFF_SPARSE_DENSE = 3,
  TUFF_SPARSE_BSR = 4
};

/* The order of the elements in a block of TUFF_SPARSE_BSR. Since 0.9.0. */
typedef int32_t tuff_block_order;
enum { TUFF_BLOCK_ORDER_INVALID = -1, TUFF_BLOCK_ORDER_ROW_MAJOR = 0, TUFF_BLOCK_ORDER_COLUMN_MAJOR = 1 };

/* Options of tuff_spmm(). Since 0.9.0. */
typedef struct tuff_spmm_desc {
  uint32_t struct_size;
  int32_t dtype;          /* of values, B and C: TUFF_F32, TUFF_F16, TUFF_BF16 or TUFF_F64 */
  int32_t index_type;     /* of offsets and indices: TUFF_I32 or TUFF_I64 */
  int32_t transpose;      /* TUFF_NO_TRANS ...: op(A) is A or its transpose */
  int32_t side;           /* TUFF_SIDE_LEFT: op(A) * B; TUFF_SIDE_RIGHT: B * op(A) */
  int32_t reserved;       /* zero */
  uint64_t rows, columns; /* of A, as it is stored */
  uint64_t nnz;           /* entries that indices and values hold */
  uint64_t n;             /* the columns of B and C on the left, their rows on the right; 1: a vector */
  double alpha, beta;
  tuff_buffer offsets;    /* rows + 1 */
  tuff_buffer indices;    /* the column of each entry */
  tuff_buffer values;
  tuff_buffer b, c;       /* dense, row-major */
  uint64_t ldb, ldc;      /* 0: dense */
  uint64_t stride_values; /* 0: one matrix for all; offsets and indices are always shared */
  uint64_t stride_b;      /* 0: one B for all */
  uint64_t stride_c;      /* at least one C if batch_count > 1 */
  uint64_t batch_count;
  uint32_t block_rows, block_columns; /* of TUFF_SPARSE_BSR; 0: 1. Blocks of 1 x 1 are CSR */
  int32_t block_order;    /* TUFF_BLOCK_ORDER_* */
  int32_t reserved2;      /* zero */
} tuff_spmm_desc;

/* Multiplies a sparse matrix in CSR or BSR with dense ones: C = alpha * op(A) * B + beta * C, or C = alpha * B * op(A) +
 * beta * C. A matrix in CSC is the transpose of the one in CSR with the same buffers.
 *
 * With blocks, rows and columns are still those of the matrix's elements. nnz is the number of blocks, offsets has
 * rows / block_rows + 1 numbers, indices nnz columns of blocks, and values nnz * block_rows * block_columns elements for
 * each matrix of the batch. An element of B is read once for several rows of a block, and an index once for the block.
 *
 * Work is divided by rows and entries together (Merrill and Garland's merge path), so that a long row, and many empty
 * ones, cost what they have. f16 and bf16 are summed in f32 and rounded once. If beta is 0, C is not read; if alpha is 0,
 * A and B are not read. A^T * B and B * A sort the entries by column in every call, which takes several times as long as
 * the product itself: programs that repeat it convert the matrix once, by tuff_sparse_convert() to TUFF_SPARSE_CSC.
 * Errors: INVALID_ARGUMENT if C overlaps another operand, and for blocks that do not divide rows and columns. UNSUPPORTED
 * on a device for 2^32 - 1 or more rows of the product, for an n of 2^31 or more, where entries are sorted for 2^31 or
 * more entries, rows or columns, for blocks of more than 1024 rows or columns, and for a product that takes more than
 * 2^16 dispatches. */
TUFF_API tuff_status tuff_spmm(tuff_stream stream, const tuff_spmm_desc* desc);

/* Options of tuff_sparse_convert(). Since 0.9.0. */
typedef struct tuff_sparse_convert_desc {
  uint32_t struct_size;
  int32_t dtype;            /* TUFF_F32, TUFF_F16, TUFF_BF16 or TUFF_F64 */
  int32_t index_type;       /* of all indices and offsets: TUFF_I32 or TUFF_I64 */
  int32_t from_format;      /* TUFF_SPARSE_* */
  int32_t to_format;        /* TUFF_SPARSE_* */
  int32_t reserved;         /* zero */
  uint64_t rows, columns;   /* of the matrix */
  uint64_t nnz;             /* entries (TUFF_SPARSE_BSR: blocks) of the source; ignored for TUFF_SPARSE_DENSE */
  uint64_t capacity;        /* entries (TUFF_SPARSE_BSR: blocks) that the result's buffers hold; ignored for _DENSE */
  tuff_buffer from_rows, from_columns, from_values; /* as the format says; TUFF_NULL_HANDLE where it has none */
  tuff_buffer to_rows, to_columns, to_values;
  uint64_t from_ld, to_ld;  /* of dense matrices; 0: columns */
  tuff_buffer count;        /* TUFF_I64, one: the entries of the whole result; TUFF_NULL_HANDLE: not wanted */
  uint32_t from_block_rows, from_block_columns; /* of TUFF_SPARSE_BSR; 0: 1. Otherwise ignored */
  uint32_t to_block_rows, to_block_columns;     /* the same */
  int32_t from_block_order, to_block_order; /* TUFF_BLOCK_ORDER_* */
} tuff_sparse_convert_desc;

/* Converts a matrix from one format to another, or to the same. The result is sorted: by row and then column, in CSC by
 * column and then row. Entries of the same place become one, their sum in the order of the source, also if it is zero;
 * entries out of range are left out. From a dense matrix the elements other than zero are taken (NaN is one).
 *
 * How many entries there are is known on the device only: count receives it. Offsets are those of the whole result, of
 * which the first `capacity` entries are written; nnz of the source, or rows * columns of a dense one, is always enough.
 * If there are fewer, the indices of the remaining entries are -1 and their values 0, so that `capacity` may be passed
 * as the nnz of later calls.
 *
 * To TUFF_SPARSE_BSR there is a block wherever the source has an entry, and the block's other elements are 0; the entries
 * of each place are summed as above. capacity and count are numbers of blocks. From TUFF_SPARSE_BSR all elements of the
 * blocks are entries, also zeros: nnz * from_block_rows * from_block_columns is always enough.
 * Errors: INVALID_ARGUMENT if operands of the result overlap others, and for blocks that do not divide rows and columns.
 * UNSUPPORTED on a device for 2^31 or more entries, elements (also of blocks), rows or columns, and for a capacity of
 * 2^31 - 1 or more. */
TUFF_API tuff_status tuff_sparse_convert(tuff_stream stream, const tuff_sparse_convert_desc* desc);

/* Options of tuff_sddmm(). Since 0.9.0. */
typedef struct tuff_sddmm_desc {
  uint32_t struct_size;
  int32_t dtype;          /* of A, B, scales and values: TUFF_F32, TUFF_F16, TUFF_BF16 or TUFF_F64 */
  int32_t index_type;     /* of place_rows and place_columns: TUFF_I32 or TUFF_I64 */
  int32_t place_format;   /* TUFF_SPARSE_COO or TUFF_SPARSE_CSR */
  int32_t transpose;      /* of B. TUFF_NO_TRANS: B is k x columns; TUFF_TRANS, TUFF_CONJ_TRANS: columns x k */
  int32_t reserved;       /* zero */
  uint64_t rows, columns; /* of the product, in which the places are */
  uint64_t nnz;           /* places */
  uint64_t k;             /* the columns of A */
  double alpha, beta;
  tuff_buffer place_rows; /* TUFF_SPARSE_COO: nnz rows; TUFF_SPARSE_CSR: rows + 1 offsets */
  tuff_buffer place_columns;
  tuff_buffer scales;     /* nnz of each matrix, which the products are multiplied by; TUFF_NULL_HANDLE: ones */
  tuff_buffer a, b;       /* dense, row-major; A is rows x k */
  tuff_buffer values;     /* nnz of each matrix; may be scales */
  uint64_t lda, ldb;      /* 0: dense */
  uint64_t stride_scales; /* 0: the same for all */
  uint64_t stride_a, stride_b; /* 0: one matrix for all */
  uint64_t stride_values; /* at least nnz if batch_count > 1 */
  uint64_t batch_count;
} tuff_sddmm_desc;

/* Computes a product of two dense matrices at the places of a sparse one (sampled dense-dense matrix multiplication): for
 * entry e with row i and column j, values[e] = alpha * scales[e] * (sum over k of A[i, k] * op(B)[k, j]) + beta * values[e].
 *
 * With a row or a column out of range the sum is 0. In CSR, values that belong to no row are not written. Places may be in
 * any order and occur repeatedly; each has a value of its own. f16 and bf16 are summed in f32 and rounded once. If beta is
 * 0, values is not read; if alpha is 0, A, B and scales are not read. If values is scales, stride_values must be
 * stride_scales.
 * Errors: INVALID_ARGUMENT if values overlaps another operand otherwise. UNSUPPORTED on a device for 2^31 or more places,
 * rows or columns, and on a CPU device for a k above 2^17. */
TUFF_API tuff_status tuff_sddmm(tuff_stream stream, const tuff_sddmm_desc* desc);

/* Options of tuff_spgemm(). Since 0.9.0. */
typedef struct tuff_spgemm_desc {
  uint32_t struct_size;
  int32_t dtype;          /* TUFF_F32, TUFF_F16, TUFF_BF16 or TUFF_F64 */
  int32_t index_type;     /* of all indices and offsets: TUFF_I32 or TUFF_I64 */
  int32_t reserved;       /* zero */
  uint64_t rows, inner, columns; /* A is rows x inner, B inner x columns, C rows x columns */
  uint64_t a_nnz, b_nnz;  /* entries that the indices and values of A and B hold */
  uint64_t max_terms;     /* products that there is room for in scratch memory */
  uint64_t capacity;      /* entries that c_indices and c_values hold */
  tuff_buffer a_offsets, a_indices, a_values; /* CSR */
  tuff_buffer b_offsets, b_indices, b_values; /* CSR */
  tuff_buffer c_offsets, c_indices, c_values; /* CSR: rows + 1, capacity, capacity */
  tuff_buffer count;      /* TUFF_I64, one: the entries of the whole result; TUFF_NULL_HANDLE: not wanted */
  tuff_buffer terms;      /* TUFF_I64, one: the products of entries; TUFF_NULL_HANDLE: not wanted */
} tuff_spgemm_desc;

/* Multiplies two sparse matrices in CSR: C = A * B, in CSR with sorted columns (sparse general matrix-matrix
 * multiplication). Entries of the same place become one, their sum, also if it is zero; entries of A and B that are out
 * of range are left out. As in tuff_sparse_convert(), count receives the number of entries, offsets are those of the whole
 * result, of which the first `capacity` entries are written, and what is left of the room has the index -1 and the value 0.
 *
 * The product is a sum of terms, each of an entry of A in column k and an entry of B in row k. All of them are listed,
 * sorted and added, in scratch memory of about 30 bytes for each of max_terms, whether there are as many or not. How many
 * there are is known on the device only, and terms receives it. If there are more than max_terms, nothing is multiplied:
 * C has no entries, and count is 0. So a program calls once with max_terms and capacity 0 and c_offsets, reads terms, and
 * calls again with this max_terms; as capacity the same number is always enough. A bound that is known beforehand, such
 * as a_nnz times the entries of B's longest row, does without the first call.
 * f16 and bf16 are multiplied and summed in f32 and rounded once.
 * Errors: INVALID_ARGUMENT if operands of the result overlap others. UNSUPPORTED on a device for 2^31 or more rows, columns,
 * entries of A or B, or inner, for a max_terms of 2^31 or more, and for a capacity of 2^31 - 1 or more. */
TUFF_API tuff_status tuff_spgemm(tuff_stream stream, const tuff_spgemm_desc* desc);

/* Options of tuff_sparse_triangular_solve(). Since 0.9.0. */
typedef struct tuff_sparse_triangular_solve_desc {
  uint32_t struct_size;
  int32_t dtype;          /* of values, B and X: TUFF_F32, TUFF_F16, TUFF_BF16 or TUFF_F64 */
  int32_t index_type;     /* of offsets and indices: TUFF_I32 or TUFF_I64 */
  int32_t triangle;       /* TUFF_TRIANGLE_*: of A as it is stored; entries of the other one are ignored */
  int32_t transpose;      /* TUFF_NO_TRANS ...: op(A) is A or its transpose */
  int32_t unit_diagonal;  /* 1: the diagonal is taken as ones, and entries on it are ignored */
  int32_t levels_ready;   /* 1: levels is what an earlier call for the same places left; 0: it is found, and written */
  int32_t reserved;       /* zero */
  uint64_t rows;          /* A is rows x rows */
  uint64_t nnz;           /* entries that indices and values hold */
  uint64_t n;             /* columns of B and X; 0: only levels is written */
  double alpha;
  tuff_buffer offsets;    /* rows + 1 */
  tuff_buffer indices;    /* the column of each entry */
  tuff_buffer values;
  tuff_buffer levels;     /* TUFF_I32, 2 * rows + 1; TUFF_NULL_HANDLE: not wanted */
  tuff_buffer b, x;       /* dense, row-major, rows x n; x may be b */
  uint64_t ldb, ldx;      /* 0: dense */
} tuff_sparse_triangular_solve_desc;

/* Solves a triangular system with a sparse matrix in CSR: op(A) * X = alpha * B. Entries of the same place count as their
 * sum. A diagonal that is zero or missing is divided by all the same, which gives infinities and NaN.
 *
 * A row can be solved when those are that it refers to. Rows are therefore divided into levels: rows of level 0 refer to
 * none, and the others to rows of lower levels only. Levels are solved one after another, their rows side by side, so the
 * time is that of the number of levels rather than of rows; one workgroup solves a column of X. Finding the levels takes
 * longer than solving, and sorts the entries by column. Programs that solve several times with the same places pass
 * `levels`, which the first call writes, and set levels_ready in later ones. levels has rows + 1 offsets, the rows of
 * level i being those at offsets i to i + 1 of the list of rows that follows. With levels that are those of other places,
 * X is not specified. A transposed solve sorts in every call: convert the matrix once instead.
 * f16 and bf16 are computed in f32, in which rows that are solved are kept, and rounded once.
 * Errors: INVALID_ARGUMENT if x or levels overlap another operand otherwise. UNSUPPORTED on a device for 2^31 or more rows,
 * entries or columns, and for a call that takes more than 2^16 dispatches. */
TUFF_API tuff_status tuff_sparse_triangular_solve(tuff_stream stream, const tuff_sparse_triangular_solve_desc* desc);

/* ---------------------------------------------------------------------------------------------
 * Quantisation. Since 0.9.0.
 *
 * x is about (q - zero_point) * scale, where q is an integer of 4 or 8 bits. docs/quantisation.md describes the formats.
 * A buffer of quantised numbers has 1 byte for each number of 8 bits, and ceil(n / 2) bytes for n of 4 bits: they are
 * packed in the order of the tensor's elements, across rows. Zero points are stored in the same way. Blocks of ggml's
 * formats lie along the last axis, whose size is a multiple of a block's; their buffer starts at an even byte.
 * Scales are data, which no call can check beforehand: tuff_quantize() says what becomes of zeros and NaN.
 * ------------------------------------------------------------------------------------------- */

/* Options of tuff_quantize(). */
typedef struct tuff_quantize_desc {
  uint32_t struct_size;
  int32_t format;          /* TUFF_QUANT_I8, TUFF_QUANT_U8, TUFF_QUANT_I4 or TUFF_QUANT_U4 */
  int32_t dtype;           /* of the input: TUFF_F32, TUFF_F16 or TUFF_BF16 */
  int32_t scale_type;      /* likewise; 0: dtype */
  int32_t quotient_type;   /* likewise: the type that input / scale is computed in; 0: scale_type */
  int32_t granularity;     /* TUFF_QUANT_PER_TENSOR, TUFF_QUANT_PER_AXIS or TUFF_QUANT_PER_BLOCK */
  tuff_buffer input;
  tuff_buffer scales;
  tuff_buffer zero_points; /* of the format; TUFF_NULL_HANDLE: all 0 */
  tuff_buffer output;      /* of the format */
  uint64_t shape[8];       /* of input and output: the first `rank` sizes, 1 <= rank <= 8 */
  uint32_t rank;
  uint32_t axis;           /* less than rank */
  uint64_t block_size;     /* PER_BLOCK: at least 1; otherwise 0 */
} tuff_quantize_desc;
/* Quantises, as ONNX's QuantizeLinear does, to the same bits on every device:
 *   output = saturate(round(input / scale) + zero_point)
 * Input and scale are converted to quotient_type, the quotient is rounded to that type as IEEE 754 says, and then to an
 * integer, both to nearest and ties to even. The sum is exact, and saturates to the range of the format: -128 to 127,
 * 0 to 255, -8 to 7, 0 to 15. Denormals are not flushed. A scale may be negative. A NaN among quotients (NaN inputs or
 * scales, 0 / 0, infinity / infinity) counts as 0, so that its result is the zero point; other numbers divided by a
 * scale of 0 are infinite and saturate.
 * The four bits that remain of the last byte of an odd number of 4-bit results are 0. output may not overlap another
 * operand.
 * Errors: INVALID_ARGUMENT for other formats, an axis that is not below rank, a block_size of 0 with PER_BLOCK or not 0
 * without; UNSUPPORTED for other types, for an axis, or a product of the sizes of the axes after it, of 2^31 or more
 * with PER_AXIS or PER_BLOCK, and on devices without storage of 8 bits (and of 16 bits for 16-bit types). */
TUFF_API tuff_status tuff_quantize(tuff_stream stream, const tuff_quantize_desc* desc);

/* Options of tuff_dequantize(). */
typedef struct tuff_dequantize_desc {
  uint32_t struct_size;
  int32_t format;          /* TUFF_QUANT_* */
  int32_t dtype;           /* of the output: TUFF_F32, TUFF_F16 or TUFF_BF16 */
  int32_t scale_type;      /* likewise; 0: dtype */
  int32_t granularity;     /* as in tuff_quantize_desc; 0 for formats of blocks */
  int32_t reserved;        /* zero */
  tuff_buffer input;       /* of the format */
  tuff_buffer scales;      /* TUFF_NULL_HANDLE for formats of blocks */
  tuff_buffer zero_points; /* of the format; TUFF_NULL_HANDLE: all 0 */
  tuff_buffer output;
  uint64_t shape[8];       /* the first `rank` sizes, 1 <= rank <= 8 */
  uint32_t rank;
  uint32_t axis;           /* less than rank */
  uint64_t block_size;     /* PER_BLOCK: at least 1; otherwise 0 */
} tuff_dequantize_desc;
/* The inverse, as ONNX's DequantizeLinear: output = (input - zero_point) * scale. The product is rounded to f32, and that
 * to dtype, to nearest even. Formats of blocks give what ggml computes in f32, rounded to dtype. The bits are the same
 * on every device, and denormals are not flushed. output may not overlap another operand.
 * Errors: those of tuff_quantize(); INVALID_ARGUMENT for a last axis that is not a multiple of a block, and for scales,
 * zero points, a granularity or a block_size with a format of blocks. */
TUFF_API tuff_status tuff_dequantize(tuff_stream stream, const tuff_dequantize_desc* desc);

/* Options of tuff_qgemm(). */
typedef struct tuff_qgemm_desc {
  uint32_t struct_size;
  int32_t format;          /* TUFF_QUANT_*, of the weights */
  int32_t a_type, c_type;  /* TUFF_F32, TUFF_F16 or TUFF_BF16; c_type 0: a_type. a_type also TUFF_I8 or TUFF_U8: A is
                            * quantised; c_type 0: TUFF_F32 */
  int32_t scale_type;      /* TUFF_F32, TUFF_F16 or TUFF_BF16; 0: a_type, or TUFF_F32 if A is quantised */
  int32_t granularity;     /* PER_AXIS: one scale for each row of the weights; PER_BLOCK: block_size numbers of a row */
  int32_t activation;      /* TUFF_ACTIVATION_* */
  int32_t reserved;        /* zero */
  uint64_t m, n, k;
  double alpha;            /* 0: 1 */
  tuff_buffer a;           /* [m][k] */
  tuff_buffer weights;     /* [n][k], of the format */
  tuff_buffer scales;      /* as in tuff_dequantize_desc, for the shape [n][k] */
  tuff_buffer zero_points; /* likewise */
  tuff_buffer bias;        /* [n], of c_type; TUFF_NULL_HANDLE: none */
  tuff_buffer residual;    /* [m][n], of c_type; TUFF_NULL_HANDLE: none */
  tuff_buffer c;           /* [m][n] */
  uint64_t lda, ldc, ld_residual; /* 0: dense */
  uint64_t block_size;     /* PER_BLOCK: at least 1; otherwise 0 */
  /* If A is quantised; otherwise zero. */
  tuff_buffer a_scales;      /* of scale_type: one, or one for each row of A */
  tuff_buffer a_zero_points; /* of a_type, as many; TUFF_NULL_HANDLE: all 0 */
  int32_t a_granularity;     /* PER_TENSOR, or PER_AXIS: each row of A has a scale */
  int32_t reserved2;         /* zero */
} tuff_qgemm_desc;
/* Product with quantised weights: C = activation(alpha * A * W^T + bias + residual), where W[n][k] are the weights as
 * tuff_dequantize() gives them: a row for each output, as in GGUF files and in a linear layer of PyTorch. Sums and the
 * epilogue are computed in f32, and the result is rounded once. For A of 16 bits, weights may first be rounded to A's
 * type. The error is at most (k + 3) * 2^-24 * |alpha| * |A| * |W|^T before the epilogue, and 2^-11 (f16) or 2^-8 (bf16)
 * of the same product more for weights that are rounded; weights beyond f16's range may become infinite.
 * C may be exactly the residual, with the same leading dimension, and may overlap no other operand. With k = 0, the sums
 * are 0. Needs device memory for weights that are dequantised first: at most 2^26 elements of A's type, or one row.
 *
 * A of TUFF_I8 or TUFF_U8 is quantised too, with weights of TUFF_QUANT_I8 or TUFF_QUANT_U8:
 *   C[i][j] = activation(alpha * a_scales[i] * (sum over blocks b of scales[j][b] * S[b]) + bias[j] + residual[i][j])
 *   S[b] = sum over p in block b of (A[i][p] - a_zero_points[i]) * (W[j][p] - zero_points[j][b])
 * where W are the integers, and all of k is one block without PER_BLOCK. S is an integer of 32 bits, modulo 2^32: it is
 * exact for blocks of up to 33,025 numbers, and for 131,071 of TUFF_I8 by TUFF_QUANT_I8 without zero points. The rest is
 * computed in f32. With B blocks the error is at most (B + 4) * 2^-24 * |alpha * a_scales| * (sum of |scales * S|) before
 * the epilogue. Scales and zero points are read on the device, when the operation runs. Needs device memory for up to
 * 2^26 products at a time, unless there is one scale of f32 for each operand and no zero point.
 * Errors: those of tuff_dequantize(); INVALID_ARGUMENT for an alpha that is not finite in f32, for leading dimensions
 * that are too small, and for a_scales, a_zero_points or an a_granularity if A is not quantised; UNSUPPORTED for other
 * weights if it is, and on a device for more than 2^16 products of blocks. */
TUFF_API tuff_status tuff_qgemm(tuff_stream stream, const tuff_qgemm_desc* desc);

/* ---------------------------------------------------------------------------------------------
 * Expressions. Since 0.9.0.
 *
 * An expression is a formula over named inputs that one kernel computes for each element: "gelu(a * x + b)". It is
 * parsed and checked when it is created, compiled when it first runs on operands of some layout, and cached like every
 * other kernel. docs/expressions.md has the grammar, every function and examples.
 *
 *   Statements   name = value; name = value. Each output is assigned once; other names are temporaries. If there is one
 *                output, the last statement may be a value alone, which is assigned to it.
 *   Operators    as in C, by precedence: ?:  ||  &&  |  &  == !=  < <= > >=  << >>  + -  * / // %  unary + - ! ~
 *                ** ^. Both ** and ^ are the power, which binds to the right and closer than a sign; xor(a, b) is a
 *                function. // is the floor of the quotient, and % has the sign of the divisor, as in Python.
 *   Functions    every TUFF_UNARY_* and TUFF_BINARY_* in lower case; abs neg sign square floor ceil round (half to
 *                even) trunc isnan isinf isfinite signbit copysign nextafter atan2 hypot logaddexp mod (as %) fmod and
 *                remainder (sign of the dividend, as in C) floor_divide max min pow clamp(x, low, high) fma(a, b, c)
 *                (rounded after the product too) lerp(a, b, t) = a + t * (b - a) where(condition, a, b) gcd lcm
 *                popcount xor; and the types as casts: f32(x), i32(x), bool(x) ...
 *   Types        A stored element has its own type, except that f16 and bf16 are read as f32. Values are bool, i8 to
 *                i64, u8 to u64, f32, f64, c64 or c128. Two types give the smallest type of their kind that holds
 *                both: i8 and u8 give i16; bool gives way to any other; an integer with a float gives the float, and a
 *                complex type with any other a complex one: c128 if f64 or c128 is among them. i64 is wanted for i32
 *                with u32, and there is none for u64 with a signed integer. A number without a type adopts that of the
 *                other operand. Comparisons, logical operators and is...() give bool. Functions that are not defined on
 *                integers take them as f32; so does /.
 *   Complex      complex(re, im) makes one; real(z), imag(z), abs(z) and arg(z) are of the type of its parts; conj(z).
 *                + - * / == != neg where pow sqrt exp log, trigonometric and hyperbolic functions and their inverses
 *                take complex numbers; docs/expressions.md lists all, and their errors. Those with an order (< max
 *                floor ...) do not. Scalars are real: pass two, and write complex(a, b).
 *   Reductions   the value of an output may be sum(value, axis=1), or another of sum mean prod max min any all
 *                count_nonzero sum_squares l1 l2 argmax argmin var std logsumexp. axis=-1 is the last; axis=(0, 2) are
 *                several; without axis= all are reduced. correction=1 is that of var and std. Nothing is done with the
 *                result. The output is of a type that tuff_reduce() gives for the value's, or f16 or bf16 where it gives
 *                f32. Accumulated as by tuff_reduce(), with its errors. Since 0.9.0.
 *   Integers     wrap modulo 2^bits of their type. A quotient or remainder by zero is 0. Shifts by a negative amount or
 *                by the width or more give 0, or -1 for >> of a negative number.
 *   Floats       Each operation rounds to its type. The elementary functions take f32 only, within the errors of
 *                docs/accuracy.md.
 *   Conversions  are those of tuff_cast(), in casts and where a result is stored as another type. To bool: not zero.
 *                bool is stored as 0 or 1.
 * ------------------------------------------------------------------------------------------- */

/* Most inputs and outputs of an expression, and the most of them together that are in buffers. */
enum { TUFF_EXPR_MAX_INPUTS = 16, TUFF_EXPR_MAX_OUTPUTS = 8, TUFF_EXPR_MAX_BUFFERS = 10 };

/* Properties of an input, as bits of tuff_expr_variable.flags. */
typedef uint32_t tuff_expr_flags;
enum {
  TUFF_EXPR_SCALAR = 1 /* one value, passed with each call and not in a buffer */
};

/* A name in a formula. */
typedef struct tuff_expr_variable {
  const char* name; /* letters, digits and _, at most 64, not beginning with a digit; not NULL. It hides a function */
  int32_t dtype;
  uint32_t flags; /* TUFF_EXPR_SCALAR, for inputs of a real type */
} tuff_expr_variable;

/* Options of tuff_expr_create(). */
typedef struct tuff_expr_desc {
  uint32_t struct_size;
  uint32_t input_count;               /* at most TUFF_EXPR_MAX_INPUTS */
  const char* formula;                /* at most 64 KiB; not NULL */
  const tuff_expr_variable* inputs;   /* NULL if there are none */
  const tuff_expr_variable* outputs;  /* not NULL */
  uint32_t output_count;              /* 1 to TUFF_EXPR_MAX_OUTPUTS */
  uint32_t reserved;                  /* zero */
} tuff_expr_desc;

/* Creates an expression. It is freed by tuff_expr_destroy() or with its context.
 * Errors: INVALID_ARGUMENT if the formula or a name is wrong; for the formula the message says where, as in
 * `formula, character 5: unknown name "bb" in "a + bb * c"`. LIMIT_EXCEEDED for too long a formula, more than 64 levels
 * of nesting, more than 4096 operations, or too many operands. UNSUPPORTED for a function that does not take f64, and
 * for f64 or 64-bit integers on a device without them. */
TUFF_API tuff_status tuff_expr_create(tuff_context context, const tuff_expr_desc* desc, tuff_expr* expr);

/* The elements of an input or output of tuff_expr_run(). */
typedef struct tuff_expr_operand {
  tuff_buffer buffer; /* TUFF_NULL_HANDLE for a scalar */
  uint64_t first;     /* the element at index 0 of every axis, counted from the beginning of the buffer */
  int64_t strides[8]; /* the first `rank`, in elements, of either sign; 0 repeats an input along the axis */
  int32_t strided;    /* 1: strides are used; 0: the operand is dense and row-major */
  int32_t reserved;   /* zero */
  double value;       /* a scalar of a float type */
  int64_t integer;    /* a scalar of an integer type or bool; for u64 its bits */
} tuff_expr_operand;

/* Options of tuff_expr_run(). */
typedef struct tuff_expr_run_desc {
  uint32_t struct_size;
  uint32_t rank;                    /* 0 to 8; 0: one element */
  const tuff_expr_operand* inputs;  /* as many as the expression has, in its order; NULL if there are none */
  const tuff_expr_operand* outputs; /* likewise; not NULL */
  uint64_t shape[8];                /* sizes of all operands, after broadcasting */
  uint32_t input_count;             /* the expression's */
  uint32_t output_count;            /* the expression's */
} tuff_expr_run_desc;

/* Computes a formula over operands with strides: every output, at every index of the shape. An output may be exactly an
 * input: the same elements in the same order and of the same size. Otherwise outputs share no element with inputs, nor
 * with each other. The elements of an output are distinct: ordered by magnitude, each stride is larger than the reach
 * of the smaller ones.
 * The output of a reduction has one element for each index of the axes that are not reduced: its strides along the others
 * are 0, or it is dense in the shape without them. With a reduction no output shares an element with inputs. Without
 * elements the results are those of tuff_reduce().
 * Errors: INVALID_ARGUMENT for other counts, elements outside a buffer, overlaps, an axis that the rank lacks or that is
 * named twice (the message says at which character), and max, min, argmax or argmin of no elements. UNSUPPORTED on a
 * device without 8-bit and 16-bit storage, and for the place of an element among 2^32 and more. */
TUFF_API tuff_status tuff_expr_run(tuff_stream stream, tuff_expr expr, const tuff_expr_run_desc* desc);

/* Destroys the handle and returns at once; calls and graphs that use the expression continue. TUFF_NULL_HANDLE is
 * accepted and does nothing. */
TUFF_API tuff_status tuff_expr_destroy(tuff_expr expr);

/* ---------------------------------------------------------------------------------------------
 * Streams and events (since 0.8.0)
 *
 * A stream executes its operations on the device in call order. Different streams are not ordered: the device may
 * interleave their work, and copies to and from pinned memory run concurrently where the device has a queue for them. A
 * context's handle stands for its default stream, which is like any other stream.
 *
 * Events order work between streams: tuff_event_record() on the one, tuff_stream_wait_event() on the other. Two things
 * need no event: a buffer's initial contents (zeros) and what tuff_copy_htod() wrote are visible to every stream that
 * is used later. Freeing a buffer needs no event either, whichever streams use it.
 * ------------------------------------------------------------------------------------------- */

/* Options of tuff_stream_create(). */
typedef struct tuff_stream_desc {
  uint32_t struct_size;
  uint32_t flags;   /* 0 */
  const char* name; /* for profiles and error messages; NULL: "stream" and its number */
} tuff_stream_desc;

/* Creates a stream. desc may be NULL.
 * Errors: LIMIT_EXCEEDED beyond 1,024 live streams in a context, including the default stream. */
TUFF_API tuff_status tuff_stream_create(tuff_context context, const tuff_stream_desc* desc, tuff_stream* stream);
/* Destroys a stream and returns at once; its work continues to the end. TUFF_NULL_HANDLE is accepted and does nothing.
 * Errors: INVALID_ARGUMENT for a context's default stream. */
TUFF_API tuff_status tuff_stream_destroy(tuff_stream stream);

/* Asynchronous uploads and downloads: they return at once, and the device copies in stream order. The host side must
 * lie in a live TUFF_ALLOC_HOST_PINNED or tuff_buffer_import_host() buffer of the same context, addressed as tuff_map()
 * returns it; the buffer may stay mapped. Do not write src (htod) or read dst (dtoh) until the copy is complete, which
 * tuff_event_wait() on a later event of the stream or tuff_synchronize() guarantees.
 * Errors: INVALID_ARGUMENT if the host side is any other memory. */
TUFF_API tuff_status tuff_copy_htod_async(tuff_stream stream, tuff_buffer dst, uint64_t dst_offset, const void* src,
                                          uint64_t bytes);
TUFF_API tuff_status tuff_copy_dtoh_async(tuff_stream stream, void* dst, tuff_buffer src, uint64_t src_offset,
                                          uint64_t bytes);

/* Properties of an event, as bits of tuff_event_desc.flags. */
typedef uint32_t tuff_event_flags;
enum { TUFF_EVENT_NO_TIMING = 1 }; /* not for tuff_event_elapsed(); recording costs less */

/* Options of tuff_event_create(). */
typedef struct tuff_event_desc {
  uint32_t struct_size;
  uint32_t flags;
} tuff_event_desc;

/* Creates an event, which marks a point in a stream once it is recorded. desc may be NULL.
 * Errors: UNSUPPORTED for an event with timing if the device has no timestamps. */
TUFF_API tuff_status tuff_event_create(tuff_context context, const tuff_event_desc* desc, tuff_event* event);
/* Destroys an event. Work and threads that wait for it continue to wait. TUFF_NULL_HANDLE is accepted and does
 * nothing. */
TUFF_API tuff_status tuff_event_destroy(tuff_event event);
/* Records the event: it completes when all earlier calls on the stream have completed. An event may be recorded again,
 * on any stream of its context. Existing waits still wait for the earlier recording. */
TUFF_API tuff_status tuff_event_record(tuff_stream stream, tuff_event event);
/* Makes later calls on the stream wait for the event. The host does not wait. An event that was never recorded counts
 * as complete. */
TUFF_API tuff_status tuff_stream_wait_event(tuff_stream stream, tuff_event event);
/* Sets *done to 1 if the event is complete or was never recorded, otherwise to 0. It never waits. */
TUFF_API tuff_status tuff_event_query(tuff_event event, int32_t* done);
/* Blocks until the event is complete.
 * Errors: TIMEOUT, as for tuff_synchronize(). */
TUFF_API tuff_status tuff_event_wait(tuff_event event);
/* Measures the time between two events of one context on the device's clock. The result is negative if `end` came
 * first. The call waits for both events.
 * Errors: INVALID_ARGUMENT if an event has TUFF_EVENT_NO_TIMING or was never recorded. */
TUFF_API tuff_status tuff_event_elapsed(tuff_event start, tuff_event end, double* milliseconds);

/* ---------------------------------------------------------------------------------------------
 * Graphs (since 0.8.0)
 *
 * A graph captures a sequence of operations that is executed repeatedly. Calls between tuff_graph_begin() and
 * tuff_graph_end() are checked and planned but not executed. A launch executes all of them in one call without
 * planning.
 *
 * A graph keeps what it uses: captured buffers and kernels may be freed. Work on the device can be captured:
 * operations, custom kernels, tuff_copy_dtod(), tuff_fill(), and copies to and from pinned memory. Calls that involve
 * the host are UNSUPPORTED on a capturing stream, and the capture continues: tuff_copy_htod(), tuff_copy_dtoh(),
 * tuff_synchronize(), events, graph launches. Other streams are not affected.
 *
 * The host backend and plug-ins have graphs since 0.9.0: a launch computes the calls one after another. So it does with
 * calls that a plug-in computes for a Vulkan device (docs/cpu.md): it returns when the last of them is done. If one of
 * them fails, such as for lack of memory, those before it have been computed.
 * ------------------------------------------------------------------------------------------- */

/* Begins to capture the calls on a stream.
 * Errors: INVALID_ARGUMENT if the stream is already capturing. */
TUFF_API tuff_status tuff_graph_begin(tuff_stream stream);
/* Ends the capture and returns the graph.
 * Errors: INVALID_ARGUMENT if the stream is not capturing. */
TUFF_API tuff_status tuff_graph_end(tuff_stream stream, tuff_graph* graph);
/* Executes the graph in stream order, as if its operations were called now. Launches of one graph run one after
 * another, on whichever streams, because they share the memory for partial results.
 * Errors: INVALID_ARGUMENT if a buffer that the graph computes with is mapped. Pinned memory that it only copies may
 * stay mapped. */
TUFF_API tuff_status tuff_graph_launch(tuff_stream stream, tuff_graph graph);
/* Replaces a captured buffer for later launches: operands in the memory of `captured`, including views of it, move to
 * the same place in `replacement`, which the graph then keeps too. Binding `captured` to itself restores it. Earlier
 * launches are not affected.
 * Errors: INVALID_ARGUMENT if the graph does not use `captured`, if an operand lies only partly in it, if it overlaps
 * another replaced buffer, if `replacement` is smaller or has another alignment, or if an output would then overlap
 * another operand. The alignment is the offset from a multiple of 16 bytes, or, in a graph with custom kernels, of
 * tuff_kernel_properties.buffer_alignment if that is larger. UNSUPPORTED for an operand in arrays of
 * tuff_batched_gemm_ex() whose matrices one kernel computes, which an array of one matrix is not, for one in the lists
 * of tuff_optimizer_step() and tuff_gradient_norm(), and for a replacement without an address in this process where the
 * CPU plug-in computes a call with it (docs/cpu.md). */
TUFF_API tuff_status tuff_graph_bind(tuff_graph graph, tuff_buffer captured, tuff_buffer replacement);
/* Destroys a graph and returns at once; launches continue to the end. TUFF_NULL_HANDLE is accepted and does nothing. */
TUFF_API tuff_status tuff_graph_destroy(tuff_graph graph);

/* ---------------------------------------------------------------------------------------------
 * Profiling (docs/profiling.md)
 * ------------------------------------------------------------------------------------------- */

/* Starts profiling the context: every call, and every command that the device executes for it, timed by the device's
 * timestamps. The previous profile is discarded. The first profile of a device also measures its bandwidth and f32
 * rate, which tuff_context_info() then reports. That takes a fraction of a second, or seconds if kernels must be
 * compiled. Results are bit-identical with and without profiling; calls take a few microseconds longer. Calls in
 * progress on other threads may or may not be included.
 * Since 0.7.0. Errors: INVALID_ARGUMENT if the context is already being profiled; UNSUPPORTED if the device's queue has
 * no timestamps. */
TUFF_API tuff_status tuff_profile_begin(tuff_context context);

/* Waits for the work so far and stops profiling. The profile is kept until the next tuff_profile_begin().
 * Since 0.7.0. Errors: INVALID_ARGUMENT if the context is not being profiled. */
TUFF_API tuff_status tuff_profile_end(tuff_context context);

/* Writes the profile to a file in Chrome's trace format, which https://ui.perfetto.dev opens. While the context is
 * being profiled, the call waits for the work so far and writes that. On the host backend the trace contains calls but
 * no device work.
 *   path   UTF-8; an existing file is replaced
 * Since 0.7.0. Errors: INVALID_ARGUMENT if the context was never profiled; IO if the file cannot be written. */
TUFF_API tuff_status tuff_profile_write(tuff_context context, const char* path);

/* Formats the profile as text for a person: one line for each operation, one for each kernel, variant and shape, and
 * counters.
 *   text     receives at most capacity bytes, NUL-terminated if capacity > 0; may be NULL if capacity is 0. A longer
 *            table is truncated, which is not an error
 *   length   receives the length of the whole table without the NUL; may be NULL. While the context is being profiled,
 *            the next call's table may be longer
 * Since 0.7.0. Errors: INVALID_ARGUMENT if the context was never profiled. */
TUFF_API tuff_status tuff_profile_table(tuff_context context, char* text, uint64_t capacity, uint64_t* length);

/* ---------------------------------------------------------------------------------------------
 * Custom kernels. Since 0.7.0.
 *
 * A custom kernel is the caller's own compute shader, in GLSL or SPIR-V, ordered with all other work of a stream. It
 * accesses buffers as storage buffers, layout(set = 0, binding = i), and small parameters as push constants. Its
 * interface is reflected from the compiled module, so that launches are checked and wait only for real conflicts.
 * docs/custom-kernels.md has a complete program. On the host backend custom kernels are UNSUPPORTED.
 *
 * Since 0.9.0 a kernel may also be PTX, such as Triton's and nvcc's compilers write, on devices where tuff_supports()
 * says "ptx". The entry point's parameters take the place of bindings and push constants: pointers (marked .ptr; if
 * none is marked, every parameter of type .u64 or .b64) take the buffers, in order, and all others take the push
 * constants, in order, each aligned to its own size, as members of a C structure are. A pointer that the kernel names
 * counts as read and written, so launches that use the same buffer wait for each other; buffers may overlap. Pointers
 * to memory that is not in one of the launch's buffers are not ordered, and may be freed under the kernel.
 * ------------------------------------------------------------------------------------------- */

/* Binding numbers are less than this. */
#define TUFF_KERNEL_MAX_BINDINGS 32

/* The source language of a kernel. */
typedef int32_t tuff_kernel_language;
enum {
  TUFF_KERNEL_LANGUAGE_INVALID = -1,
  TUFF_KERNEL_GLSL = 0, /* a compute shader with its #version line; entry point main */
  TUFF_KERNEL_SPIRV = 1, /* a module of version 1.0 to 1.5 for Vulkan 1.2, in the host's byte order */
  TUFF_KERNEL_PTX = 2    /* NVIDIA's assembly language, with addresses of 64 bits; since 0.9.0 */
};

/* Properties of a kernel, as bits of tuff_kernel_desc.flags. */
typedef uint32_t tuff_kernel_flags;
enum {
  /* Reads beyond the end of a buffer return zero, and writes beyond it do nothing. Since 0.9.0 out-of-range indices
   * into the kernel's own arrays (shared, private, push constants), vectors and matrices are clamped to the last
   * element. */
  TUFF_KERNEL_ROBUST = 1,
  /* The source is not trusted. It is compiled and reflected in a separate process (the program tuff-compile, installed
   * with the library), within the time and memory limits of tuff_kernel_desc. Without this flag the compiler runs in
   * the caller's process. That saves starting a process and needs no additional file, but a malicious source can
   * exhaust the caller's time, memory and stack. Since 0.9.0 the driver also compiles the result in a separate process
   * first, so that a crash of the driver's compiler is COMPILE_FAILED, and indices are bounded as for
   * TUFF_KERNEL_ROBUST; those into buffers only where the device can. */
  TUFF_KERNEL_UNTRUSTED = 2
};

/* A GLSL macro: #define name value. */
typedef struct tuff_kernel_define {
  const char* name;  /* not NULL */
  const char* value; /* NULL: "1" */
} tuff_kernel_define;

/* The value of a specialisation constant, layout(constant_id = id) const. bits holds the value's bits in its low bytes;
 * for a bool, 0 or any other number. */
typedef struct tuff_kernel_constant {
  uint32_t id;
  uint32_t reserved; /* zero */
  uint64_t bits;
} tuff_kernel_constant;

/* Options of tuff_kernel_create(). */
typedef struct tuff_kernel_desc {
  uint32_t struct_size;
  int32_t language;      /* TUFF_KERNEL_GLSL, TUFF_KERNEL_SPIRV or TUFF_KERNEL_PTX */
  const void* source;    /* text, or SPIR-V at any address; not NULL */
  uint64_t source_bytes; /* 0: text up to the NUL */
  const char* name;      /* for messages ("name:line: error: ...") and the log; NULL: "kernel" */
  const char* entry;     /* the entry point, for modules with several; NULL: "main", or the only one of PTX */
  const tuff_kernel_define* defines;     /* NULL: none */
  const tuff_kernel_constant* constants; /* each id at most once and declared by the kernel; NULL: none */
  uint32_t define_count;
  uint32_t constant_count;
  uint32_t flags;    /* TUFF_KERNEL_ROBUST, TUFF_KERNEL_UNTRUSTED */
  uint32_t reserved; /* zero */
  uint64_t max_source_bytes;     /* limit on source and defines together; 0: 1 MiB; at most 64 MiB */
  uint64_t compile_milliseconds; /* for untrusted source; 0: 10,000; at most 3,600,000 */
  uint64_t compile_memory_bytes; /* for untrusted source, the process's address space; 0: 512 MiB; at least 64 MiB */
  /* Since 0.9.0, for PTX only, zeros otherwise: */
  uint32_t workgroup_size[3]; /* threads in a block; zeros: as the entry point requires (.reqntid) */
  uint32_t shared_bytes;      /* size of the module's .extern .shared memory */
} tuff_kernel_desc;

/* The interface of a compiled kernel. */
typedef struct tuff_kernel_properties {
  uint32_t struct_size;
  uint32_t binding_count; /* buffers that a launch takes: the highest declared binding plus one */
  uint32_t used;          /* bit i: binding i is used; for an unused one the handle may be TUFF_NULL_HANDLE */
  uint32_t read;          /* bit i: binding i is read */
  uint32_t written;       /* bit i: binding i is written */
  uint32_t push_bytes;    /* size of the push constants: the end of the block's last member */
  uint32_t workgroup_size[3];
  uint32_t shared_bytes;   /* shared memory per workgroup */
  uint32_t subgroup_size;  /* with which the device runs the kernel */
  uint32_t max_groups[3];  /* maximum gx, gy and gz of a launch */
  uint32_t buffer_alignment; /* buffers (views) must begin at a multiple of it, in bytes */
  int32_t robust;            /* 1: created with TUFF_KERNEL_ROBUST */
  uint64_t max_buffer_bytes; /* largest buffer that can be bound */
  uint64_t min_bytes[TUFF_KERNEL_MAX_BINDINGS]; /* minimum size of each buffer: its block, with one element of an
                                                   array declared without a size */
  char name[64];
  char capabilities[256]; /* SPIR-V capabilities needed beside Shader, such as "Float64 GroupNonUniformArithmetic" */
} tuff_kernel_properties;

/* Compiles a kernel. Compiled code comes from the disk cache if it is there, as for the library's own kernels. The
 * kernel is freed by tuff_kernel_destroy() or with its context.
 * Errors: COMPILE_FAILED with the compiler's messages by file and line, or those of SPIRV-Tools for an invalid module;
 * #include is COMPILE_FAILED too. LIMIT_EXCEEDED if the source is too long; if untrusted source exceeds its time or
 * memory; if workgroup size, shared memory, push constants or the number of buffers exceed the device's limits; for
 * more than 64 KiB of variables per invocation; for SPIR-V of more than 16 MiB, or 1 MiB if untrusted. UNSUPPORTED for
 * images, samplers, uniform buffers, sets other than 0, arrays of buffers, entry points that are not compute shaders,
 * and capabilities that the device lacks or that are not enabled; for TUFF_KERNEL_ROBUST if the device has no such
 * checks; for TUFF_KERNEL_UNTRUSTED without tuff-compile. For PTX: UNSUPPORTED where tuff_supports() denies "ptx", with
 * either flag, and for clusters; INVALID_ARGUMENT for an entry point or workgroup size that the module does not have;
 * COMPILE_FAILED if the driver refuses the text, without its reason, which ptxas prints. */
TUFF_API tuff_status tuff_kernel_create(tuff_context context, const tuff_kernel_desc* desc, tuff_kernel* kernel);

/* Describes the kernel. info->struct_size must be set. */
TUFF_API tuff_status tuff_kernel_info(tuff_kernel kernel, tuff_kernel_properties* info);

/* Launches gx * gy * gz workgroups.
 *   buffers      count handles, buffers[i] for binding i; each is bound whole
 *   count        the kernel's binding_count
 *   push         push_bytes bytes of push constants, read during the call; may be NULL if there are none
 *   push_bytes   the kernel's push_bytes
 *   gx, gy, gz   if any is 0, nothing is launched
 * A buffer that the kernel writes must not overlap another one that it uses. Accesses beyond the end of a buffer are
 * not checked unless the kernel has TUFF_KERNEL_ROBUST.
 * Errors: INVALID_ARGUMENT for any other count or push_bytes, for a buffer that is too small, mapped or not aligned to
 * buffer_alignment, and for overlaps; LIMIT_EXCEEDED for more workgroups than max_groups and for a buffer larger than
 * max_buffer_bytes. */
TUFF_API tuff_status tuff_kernel_launch(tuff_stream stream, tuff_kernel kernel, const tuff_buffer* buffers,
                                        uint32_t count, const void* push, uint32_t push_bytes, uint32_t gx, uint32_t gy,
                                        uint32_t gz);

/* Destroys the kernel's handle and returns at once; launches continue to the end. TUFF_NULL_HANDLE is accepted and does
 * nothing. */
TUFF_API tuff_status tuff_kernel_destroy(tuff_kernel kernel);

/* ---------------------------------------------------------------------------------------------
 * Extensions: operations that a program or a library adds to a context, by name. Since 0.9.0.
 *
 * A custom kernel takes bindings and bytes. An operation made of one has a name, and arguments that are declared: their
 * types, what is done with them, which values are legal, how large a buffer has to be. Tuff checks each call against
 * the declaration before anything is recorded, and its messages name the argument. The number of workgroups follows from
 * the arguments. Graphs capture such operations, profiles show them by their names, and tuff_supports() and
 * tuff_op_list() know them. docs/custom-kernels.md has a complete program.
 * ------------------------------------------------------------------------------------------- */

/* An operation has at most so many arguments. */
#define TUFF_OP_MAX_ARGUMENTS 64

/* Kinds of arguments. */
typedef int32_t tuff_op_kind;
enum {
  TUFF_OP_KIND_INVALID = -1,
  TUFF_OP_BUFFER = 1, /* buffer i of the list, not counting scalars, is the kernel's binding i */
  TUFF_OP_SCALAR = 2  /* a member of the kernel's push constants, in the order of the list, each aligned to its size */
};

/* What an operation does with a buffer. */
typedef int32_t tuff_op_access;
enum {
  TUFF_OP_ACCESS_INVALID = -1,
  TUFF_OP_NO_ACCESS = 0, /* for scalars */
  TUFF_OP_READ = 1,
  TUFF_OP_WRITE = 2,
  TUFF_OP_READ_WRITE = 3
};

/* An argument of an operation. Formulas are integer arithmetic: numbers; the names of scalars of integer types, which
 * stand for their values; the names of buffers, which stand for the number of elements that the caller's buffer holds;
 * + - * / (rounded down) % and parentheses; min(a, b), max(a, b) and ceil_div(a, b). Each value on the way must be from
 * 0 to 2^64 - 1; otherwise the call fails. */
typedef struct tuff_op_argument {
  const char* name;     /* a C identifier of at most 63 bytes, different from all others and from the functions; not
                           NULL */
  int32_t kind;         /* TUFF_OP_BUFFER or TUFF_OP_SCALAR */
  int32_t dtype;        /* of the elements, any type; or of the scalar: TUFF_F32, F64, I32, U32, I64, U64 */
  int32_t access;       /* of a buffer: TUFF_OP_READ, TUFF_OP_WRITE or TUFF_OP_READ_WRITE */
  uint32_t reserved;    /* zero */
  const char* elements; /* of a buffer: a formula for the number of elements that it needs at least; NULL: 1 */
  double minimum;       /* of a scalar: the range of legal values, both inclusive, NaN never being legal; both 0: any */
  double maximum;
} tuff_op_argument;

/* An argument of a call. The field that the argument's declaration calls for is set; the others are zero. */
typedef struct tuff_op_value {
  tuff_buffer buffer;
  int64_t integer; /* a scalar of an integer type; for TUFF_U64 its bits */
  double real;     /* a scalar of type TUFF_F32, rounded to nearest, or TUFF_F64 */
} tuff_op_value;

/* An argument as a host function sees it. */
typedef struct tuff_op_operand {
  void* data;     /* a buffer's memory; NULL: a scalar, or a buffer without memory */
  uint64_t bytes; /* its size */
  int64_t integer;
  double real;
} tuff_op_operand;

/* Computes an operation on the host: for contexts of the host backend and of plug-ins. The arguments have been checked.
 * It runs during tuff_op_run(), with the context's lock held, so it must not call Tuff, and it must not throw. *status is
 * TUFF_OK; what it sets it to becomes the result of the call. */
typedef void (*tuff_op_host)(void* user, const tuff_op_operand* arguments, uint32_t count, tuff_status* status);

/* Declares an operation. groups and invocations are one to three formulas, for x, y and z, separated by commas:
 * "columns, ceil_div(rows, 4)". The dimensions that are left out have 1. Exactly one of the two is given where there is a
 * kernel: groups counts workgroups, invocations is divided by the kernel's workgroup size and rounded up, so that a
 * kernel has to test whether its invocation is within. If one is 0, nothing is launched. */
typedef struct tuff_op_desc {
  uint32_t struct_size;
  uint32_t argument_count; /* 1 to TUFF_OP_MAX_ARGUMENTS, of which at most TUFF_KERNEL_MAX_BINDINGS are buffers */
  const char* name;        /* as in "acme.saxpy": two or more words of a-z, 0-9 and _, joined by full stops, at most 63
                              bytes. The first is not the name of an operation or an element type of Tuff; not NULL */
  const tuff_op_argument* arguments; /* argument_count of them; not NULL */
  const tuff_kernel_desc* kernel; /* NULL: the operation has only a host function */
  const char* groups;             /* NULL: invocations are given */
  const char* invocations;        /* NULL: groups are given */
  const char* flops; /* a formula for the arithmetic operations of a call, for profiles and `tuff top`; NULL: unknown */
} tuff_op_desc;

/* Adds an operation to a context, where nothing else of that name is registered. Its kernel is compiled as by
 * tuff_kernel_create(), whose errors apply, and compared with the declaration.
 *   host   computes it where the context computes on the host, until the operation is destroyed and no call of it is
 *          running; NULL: such contexts refuse the operation
 *   user   passed to host unchanged
 * Errors: INVALID_ARGUMENT for a name that is malformed or taken, for a malformed declaration or formula, and for a
 * kernel whose bindings, accesses or push constants are not those that are declared (an access that is declared must
 * cover what the kernel does; for PTX that is not known); UNSUPPORTED if the operation has no kernel and the context
 * needs one, or no host function and the context computes on the host. */
TUFF_API tuff_status tuff_op_register(tuff_context context, const tuff_op_desc* desc, tuff_op_host host, void* user,
                                      tuff_op* op);

/* Finds an operation of the context by its name. The handle is the one that tuff_op_register() returned.
 * Errors: INVALID_ARGUMENT if there is none; the message lists those that there are. */
TUFF_API tuff_status tuff_op_find(tuff_context context, const char* name, tuff_op* op);

/* Lists the context's operations in the order of their names, a line for each: its name, and its arguments as they are
 * declared, as in "acme.saxpy(n: u32 1..4294967295, a: f32, x: read f32[n], y: read_write f32[n])".
 *   buffer    receives at most capacity bytes, always NUL-terminated if capacity > 0; may be NULL if capacity is 0
 *   length    receives the length of the whole text without the NUL; may be NULL */
TUFF_API tuff_status tuff_op_list(tuff_context context, char* buffer, uint64_t capacity, uint64_t* length);

/* Calls an operation, in stream order.
 *   arguments   count values, in the order of the declaration
 *   count       the operation's argument_count
 * A buffer that the operation writes must not overlap another of its buffers. TUFF_NULL_HANDLE may stand for a buffer
 * only if nothing is launched and it needs no elements.
 * Errors: INVALID_ARGUMENT for another count, a value outside its range, in the wrong field or beyond its type; a buffer
 * that is too small, mapped, or does not begin at a multiple of its element size and of what the device binds; an
 * overlap; a formula whose value is out of range. LIMIT_EXCEEDED for more workgroups, or a larger buffer, than the device
 * takes. Whatever the host function returns. */
TUFF_API tuff_status tuff_op_run(tuff_stream stream, tuff_op op, const tuff_op_value* arguments, uint32_t count);

/* Removes the operation from its context and returns at once; calls continue to the end, and graphs that have captured
 * it keep working. TUFF_NULL_HANDLE is accepted and does nothing. */
TUFF_API tuff_status tuff_op_destroy(tuff_op op);

/* ---------------------------------------------------------------------------------------------
 * Monitoring: what contexts do, and how the device fares. Since 0.9.0. docs/monitoring.md
 * ------------------------------------------------------------------------------------------- */

/* What a context has done since its creation, and what it holds. The counts of work are what planners estimate for
 * Tuff's own kernels; for a custom kernel bytes_moved is the size of its buffers. A graph's launch counts all that was
 * captured. The host backend and plug-ins count neither. */
typedef struct tuff_usage {
  uint32_t struct_size;
  int32_t published;   /* 1: the context is in the page that `tuff top` reads, and these are the numbers there; 0: not */
  uint64_t calls;      /* on streams: operations, copies, fills, launches of kernels and graphs; while a stream
                          captures, its calls are not counted */
  uint64_t dispatches; /* kernels */
  uint64_t submissions;           /* batches submitted to the device */
  uint64_t submissions_in_flight; /* of those, the ones that the device has not finished */
  double bytes_moved;  /* by kernels, copies and fills on the device */
  double flops;        /* arithmetic operations */
  uint64_t bytes_uploaded;
  uint64_t bytes_downloaded;
  uint64_t bytes_in_use; /* these four as in tuff_memory_stats */
  uint64_t bytes_reserved;
  uint64_t bytes_peak;
  uint64_t bytes_limit;
} tuff_usage;

/* Reads what the context has used. usage->struct_size must be set. */
TUFF_API tuff_status tuff_context_usage(tuff_context context, tuff_usage* usage);

/* What the system measures of a device now. NaN stands for what no driver tells: NVIDIA's own driver tells none of the
 * system's sensors, Mesa's CPU driver has no device of its own. */
typedef struct tuff_device_sensors {
  uint32_t struct_size;
  uint32_t reserved;            /* zero */
  char pci_address[16];         /* as in "0000:03:00.0"; empty if the driver does not tell (VK_EXT_pci_bus_info) */
  uint64_t heap_bytes;          /* size of the largest device-local heap */
  uint64_t heap_budget_bytes;   /* of it, what this process may use, and uses (VK_EXT_memory_budget); both 0 if the */
  uint64_t heap_used_bytes;     /* driver does not tell */
  double temperature_celsius;   /* of the GPU */
  double power_watts;
  double core_hertz;            /* the clock of its cores */
  double memory_hertz;          /* the clock of its memory */
  double busy;                  /* the share of time in which it works, from 0 to 1 */
} tuff_device_sensors;

/* Reads the sensors of a device. sensors->struct_size must be set.
 *   index   0 <= index < tuff_device_count()
 * Errors: INVALID_ARGUMENT for an index out of range. */
TUFF_API tuff_status tuff_device_read_sensors(uint32_t index, tuff_device_sensors* sensors);

#ifdef __cplusplus
}
#endif

#endif /* TUFF_TUFF_H */
