/* Tuff: a compute runtime behind a flat C ABI.
 *
 * This header is the reference documentation. It compiles as C99 and later and as C++98 and later,
 * needs <stdint.h> and <stddef.h> alone, and shows nothing of Vulkan.
 *
 * What holds for every function, and is not repeated below:
 *
 *   Result          Returns tuff_status: TUFF_OK (0) or a negative TUFF_ERROR_*. Results go through
 *                   pointers and are written only on success. After a failure tuff_last_error() holds
 *                   one line for this thread that names the function, the argument, what it got and
 *                   what it needed. A call that fails has no other effect; a copy that ends by
 *                   TIMEOUT or DEVICE_LOST may have been done in part.
 *   Errors          Beside those a function names, each may return INVALID_HANDLE (stale, forged, of
 *                   the wrong kind, or of another context), INVALID_ARGUMENT (a null pointer where one
 *                   is required, an unknown enumerator, a malformed structure), OUT_OF_HOST_MEMORY,
 *                   DEVICE_LOST (sticky for that context: whoever waits is told within a second),
 *                   TIMEOUT (where it had to wait for the device, for longer than
 *                   tuff_limits.wait_milliseconds; the message says what is under way, which goes on),
 *                   and NOT_INITIALIZED in a child process after fork(). docs/errors.md.
 *   Threads         Any function may be called from any thread at any time. Operations on one stream
 *                   take effect in the order of the calls, whichever threads made them. docs/threads.md.
 *   Pointers        May be NULL only where a function or a field says so. What is const is read, what is not is
 *                   written; a structure that a function fills has its struct_size set before.
 *   Ownership       Pointers passed in are read during the call only. A context owns its buffers, kernels,
 *                   streams, events and graphs.
 *   Structures      Begin with struct_size, which the caller sets to sizeof(the structure); zero in any
 *                   other field means its default. Fields are only ever appended. struct_size is the size
 *                   that the structure had in some version, and nothing behind it is read or written; any
 *                   smaller number is INVALID_ARGUMENT, and the message says which are taken. A structure
 *                   larger than the library knows, by up to 4096 bytes, is accepted only if the part it
 *                   does not know is zero; in one that is written, that part becomes zero.
 *   Layout          Tensors are dense and row-major unless a leading dimension or stride says otherwise.
 *                   Sizes, leading dimensions and strides count elements; offsets and "bytes" count bytes.
 *   Buffers         The handle TUFF_NULL_HANDLE may stand for an operand that has no elements.
 *                   A byte offset that is a multiple of the element size is aligned enough everywhere.
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
/* Counts incompatible changes of this header; the same number as in the name libtuff.so.1. */
#define TUFF_ABI_VERSION 1

/* ---------------------------------------------------------------------------------------------
 * Types and named constants
 *
 * Constants come in groups, each named by a type that is an int32_t or, of flags that are combined, an uint32_t.
 * Functions and structures take that integer, so a constant needs no conversion. Each group of int32_t but the status
 * codes has an _INVALID, -1, which no function accepts: by it compilers, and tools that make bindings, see that the
 * constants are signed. Version 0.9.0 added it and the names of the groups.
 * ------------------------------------------------------------------------------------------- */

/* Handles are plain numbers, checked on every use; 0 is never valid. They are not pointers, may be
 * stored and copied freely, and never come back for another object once theirs is gone. */
typedef uint64_t tuff_context; /* an open device */
typedef uint64_t tuff_buffer;  /* memory of a context, or a view of it */
/* Wherever a tuff_stream is expected, a tuff_context may be passed: its default stream. */
typedef uint64_t tuff_stream;
typedef uint64_t tuff_kernel; /* a custom kernel; since 0.7.0 */
typedef uint64_t tuff_event;  /* a point in a stream; since 0.8.0 */
typedef uint64_t tuff_graph;  /* operations that were captured; since 0.8.0 */
/* No handle: the macro for C and C++, the constant for tools that make bindings, which cannot read a cast. */
static const uint64_t TUFF_NULL_HANDLE = 0;
#define TUFF_NULL_HANDLE ((uint64_t)0)

/* What functions return. */
typedef int32_t tuff_status;
enum {
  TUFF_OK = 0,
  TUFF_ERROR_INVALID_ARGUMENT = -1,     /* an argument is outside what the function accepts */
  TUFF_ERROR_INVALID_HANDLE = -2,       /* a handle is stale, forged, of the wrong kind or context */
  TUFF_ERROR_NOT_INITIALIZED = -3,      /* used in a child process after fork() */
  TUFF_ERROR_UNSUPPORTED = -4,          /* valid, but this device or this version cannot do it */
  TUFF_ERROR_OUT_OF_DEVICE_MEMORY = -5, /* the device has no room; everything live stays usable */
  TUFF_ERROR_OUT_OF_HOST_MEMORY = -6,   /* the process has no room */
  TUFF_ERROR_DEVICE_LOST = -7,          /* the device stopped; make a new context */
  TUFF_ERROR_NO_DEVICE = -8,            /* no Vulkan loader, driver or suitable device */
  TUFF_ERROR_COMPILE_FAILED = -9,       /* a kernel did not compile; the message carries the log */
  TUFF_ERROR_TIMEOUT = -10,             /* the device did not finish in time */
  TUFF_ERROR_LIMIT_EXCEEDED = -11,      /* beyond a limit of the device or of tuff_limits */
  TUFF_ERROR_IO = -12,                  /* a file could not be read or written */
  TUFF_ERROR_INTERNAL = -13             /* a defect in Tuff or the driver */
};

/* Element types. Products take all but the unsigned; what moves elements (permute, cast, slice, concat, gather) takes
 * all; every other operation TUFF_F32, TUFF_F16 and TUFF_BF16, tuff_reduce() TUFF_I32 too. tuff_supports() tells what a
 * device can do. */
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
  TUFF_U8 = 8
};

/* How a stored matrix enters a product. CONJ_TRANS is the same as TRANS for real types. */
typedef int32_t tuff_transpose;
enum { TUFF_TRANSPOSE_INVALID = -1, TUFF_NO_TRANS = 0, TUFF_TRANS = 1, TUFF_CONJ_TRANS = 2 };

/* Which keys a query row may see, with query i and key j counted from 0:
 * NONE all; TOP_LEFT j <= i; BOTTOM_RIGHT j <= i + seq_kv - seq_q. */
typedef int32_t tuff_causal;
enum { TUFF_CAUSAL_INVALID = -1, TUFF_CAUSAL_NONE = 0, TUFF_CAUSAL_TOP_LEFT = 1, TUFF_CAUSAL_BOTTOM_RIGHT = 2 };

/* Functions of one number. */
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
  /* Since 0.3.0. alpha is tuff_unary_desc's. */
  TUFF_UNARY_GELU = 9,        /* x * (1 + erf(x / sqrt(2))) / 2 */
  TUFF_UNARY_GELU_TANH = 10,  /* x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2 */
  TUFF_UNARY_SILU = 11,       /* x * sigmoid(x) */
  TUFF_UNARY_LEAKY_RELU = 12, /* x above zero, else alpha * x */
  TUFF_UNARY_ELU = 13,        /* x above zero, else alpha * (exp(x) - 1) */
  TUFF_UNARY_HARDSWISH = 14,  /* x * min(max(x + 3, 0), 6) / 6; 0 at -inf */
  TUFF_UNARY_SOFTPLUS = 15,   /* log(1 + exp(x)) */
  TUFF_UNARY_SIN = 16,        /* of any argument; NaN of an infinite one */
  TUFF_UNARY_COS = 17,
  TUFF_UNARY_ERF = 18 /* the error function: 2 / sqrt(pi) * (integral of exp(-t^2) from 0 to x); since 0.9.0 */
};

/* Functions of two numbers. */
typedef int32_t tuff_binary_op;
enum {
  TUFF_BINARY_INVALID = -1,
  TUFF_BINARY_ADD = 1,
  TUFF_BINARY_SUB = 2,
  TUFF_BINARY_MUL = 3,
  TUFF_BINARY_DIV = 4,
  TUFF_BINARY_MAX = 5, /* NaN if either is NaN */
  TUFF_BINARY_MIN = 6, /* NaN if either is NaN */
  TUFF_BINARY_POW = 7  /* a^b as IEEE 754's pow; since 0.3.0 */
};

/* What becomes of the numbers along an axis. */
typedef int32_t tuff_reduce_op;
enum {
  TUFF_REDUCE_INVALID = -1,
  TUFF_REDUCE_SUM = 1,
  TUFF_REDUCE_MAX = 2, /* NaN if any is NaN */
  TUFF_REDUCE_MIN = 3, /* NaN if any is NaN */
  TUFF_REDUCE_MEAN = 4,
  TUFF_REDUCE_PROD = 5,
  /* Where along the axis the largest or smallest value is, of several the first; the first NaN, if any is. The output
   * is of TUFF_U32, whatever the input. Since 0.4.0. */
  TUFF_REDUCE_ARGMAX = 6,
  TUFF_REDUCE_ARGMIN = 7
};

/* What a product is put through before it is stored. */
typedef int32_t tuff_activation;
enum {
  TUFF_ACTIVATION_INVALID = -1,
  TUFF_ACTIVATION_NONE = 0,
  TUFF_ACTIVATION_RELU = 1,
  TUFF_ACTIVATION_GELU = 2,      /* x * (1 + erf(x / sqrt(2))) / 2 */
  TUFF_ACTIVATION_GELU_TANH = 3, /* the usual approximation of it by tanh */
  TUFF_ACTIVATION_SILU = 4,      /* x * sigmoid(x) */
  TUFF_ACTIVATION_RELU6 = 5      /* min(max(x, 0), 6); NaN stays NaN; since 0.5.0 */
};

/* One value of a bias for each row, or for each column, of C. */
typedef int32_t tuff_bias_axis;
enum { TUFF_BIAS_INVALID = -1, TUFF_BIAS_NONE = 0, TUFF_BIAS_ROWS = 1, TUFF_BIAS_COLUMNS = 2 };

/* How the tensors of a convolution lie in memory: batch, channels, height, width; or channels last. Shapes are always
 * given in the order N, C, H, W. Since 0.4.0. */
typedef int32_t tuff_layout;
enum { TUFF_LAYOUT_INVALID = -1, TUFF_LAYOUT_NCHW = 0, TUFF_LAYOUT_NHWC = 1 };

/* Which elements of the input one of the output comes from. Since 0.5.0. */
typedef int32_t tuff_resize_mode;
enum {
  TUFF_RESIZE_INVALID = -1,
  TUFF_RESIZE_NEAREST = 0,       /* the one that its corner lies in: floor(o * in / out) */
  TUFF_RESIZE_NEAREST_EXACT = 1, /* the one that its centre lies in: floor((o + 1/2) * in / out) */
  TUFF_RESIZE_LINEAR = 2         /* those around it along each axis, by their distances */
};

/* What a product may be computed by that is less accurate than its types: f32 inputs rounded before they are multiplied
 * (sums stay in f32), of tuff_gemm_ex() and tuff_batched_gemm_ex(); Winograd's minimal filtering. */
typedef int32_t tuff_precision;
enum {
  TUFF_PRECISION_INVALID = -1,
  TUFF_PRECISION_DEFAULT = 0, /* nothing: what the types say */
  TUFF_PRECISION_ALLOW_F16 = 1,
  TUFF_PRECISION_ALLOW_BF16 = 2,
  TUFF_PRECISION_ALLOW_WINOGRAD = 3 /* of tuff_conv2d_ex(); since 0.6.0 */
};

/* Kinds of devices. */
typedef int32_t tuff_device_type;
enum {
  TUFF_DEVICE_INVALID = -1,
  TUFF_DEVICE_OTHER = 0,
  TUFF_DEVICE_INTEGRATED = 1,
  TUFF_DEVICE_DISCRETE = 2,
  TUFF_DEVICE_VIRTUAL = 3,
  TUFF_DEVICE_CPU = 4, /* a Vulkan driver that runs on the processor, such as Mesa's lavapipe */
  TUFF_DEVICE_HOST = 5 /* the host backend: no Vulkan at all */
};

/* How much tuff_set_log() sends; each level what is of the ones above it too. */
typedef int32_t tuff_log_level;
enum {
  TUFF_LOG_INVALID = -1,
  TUFF_LOG_OFF = 0,
  TUFF_LOG_ERROR = 1,
  TUFF_LOG_WARNING = 2,
  TUFF_LOG_INFO = 3,
  TUFF_LOG_DEBUG = 4,
  TUFF_LOG_DISPATCH = 5 /* one line for each kernel: the variant chosen and why */
};

/* ---------------------------------------------------------------------------------------------
 * Library
 * ------------------------------------------------------------------------------------------- */

/* The library's TUFF_VERSION, and the TUFF_ABI_VERSION it implements. Compare the second with the
 * header's at start-up. Never fail. */
TUFF_API uint32_t tuff_version(void);
TUFF_API uint32_t tuff_abi_version(void);

/* One line about how the library was built: version, compiler, shader compiler. Static storage. */
TUFF_API const char* tuff_build_info(void);

/* The constant's name, such as "TUFF_ERROR_INVALID_ARGUMENT"; for an unknown number
 * "TUFF_ERROR_UNKNOWN". Static storage. */
TUFF_API const char* tuff_status_name(tuff_status status);

/* What a person can do about it, as one sentence. Static storage. */
TUFF_API const char* tuff_status_hint(tuff_status status);

/* Copies this thread's last error message into buffer.
 *   buffer    receives at most capacity bytes, always NUL-terminated if capacity > 0; may be NULL if
 *             capacity is 0
 *   length    receives the message's whole length without the NUL; may be NULL
 * Successful calls leave the message as it is; with no failure so far it is empty. A message longer
 * than the buffer is cut, which is no error. */
TUFF_API tuff_status tuff_last_error(char* buffer, uint64_t capacity, uint64_t* length);

/* level is a TUFF_LOG_*; message is NUL-terminated, one line, valid during the call. Called from any
 * thread; it must not call Tuff. */
typedef void (*tuff_log_callback)(void* user, int32_t level, const char* message);

/* Sends messages of at most this level to callback, which may be NULL: that, and TUFF_LOG_OFF, turns it off.
 * By default Tuff says nothing. The environment variable TUFF_LOG=error|warning|info|debug|dispatch
 * writes to stderr instead, for as long as no callback is set; any other value counts as warning. Contexts
 * warn of each variable that cannot have its value, which is then as good as unset (docs/building.md). */
TUFF_API tuff_status tuff_set_log(tuff_log_callback callback, void* user, int32_t level);

/* ---------------------------------------------------------------------------------------------
 * Devices and contexts
 * ------------------------------------------------------------------------------------------- */

/* What a family of queues takes, as bits of tuff_queue_family.flags; others may be set. Vulkan's own numbers.
 * Since 0.8.0. */
typedef uint32_t tuff_queue_flags;
enum { TUFF_QUEUE_GRAPHICS = 1, TUFF_QUEUE_COMPUTE = 2, TUFF_QUEUE_TRANSFER = 4, TUFF_QUEUE_SPARSE_BINDING = 8 };

/* What the invocations of a subgroup can do together, as bits of tuff_device_properties.subgroup_operations; others
 * may be set. Vulkan's own numbers. Since 0.8.0. */
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

/* How many of them tuff_device_properties has room for. Since 0.8.0. */
enum { TUFF_MAX_QUEUE_FAMILIES = 8, TUFF_MAX_MATRIX_SHAPES = 32 };

/* Queues of a device that are all of one kind. Since 0.8.0. */
typedef struct tuff_queue_family {
  uint32_t flags; /* TUFF_QUEUE_* */
  uint32_t count;
  uint32_t timestamp_bits; /* that are valid in a time stamp; 0: it has none */
  uint32_t reserved;       /* zero */
} tuff_queue_family;

/* A product that the matrix units compute at once, by the invocations of one subgroup: m x n += m x k times k x n.
 * Since 0.8.0. */
typedef struct tuff_matrix_shape {
  uint32_t m, n, k;
  int32_t a_type, b_type; /* TUFF_* of the factors */
  int32_t c_type;         /* of what is added to, and of the result */
} tuff_matrix_shape;

/* What a device is and can do. Strings are NUL-terminated UTF-8. */
typedef struct tuff_device_properties {
  uint32_t struct_size;
  int32_t type; /* TUFF_DEVICE_* */
  char name[256];
  char vendor[64];
  char driver[256];                 /* the driver's name and version in its own words */
  char backend[16];                 /* "vulkan" or "host" */
  uint8_t uuid[16];                 /* of the device; zero for the host backend */
  uint32_t vendor_id;               /* PCI vendor */
  uint32_t device_id;               /* PCI device */
  uint32_t api_version;             /* Vulkan's, as VK_MAKE_API_VERSION; 0 for the host backend */
  uint32_t driver_version;          /* the driver's own encoding */
  uint64_t memory_bytes;            /* largest device-local heap */
  uint64_t memory_free_bytes;       /* of it, what the driver says is left; 0 if it does not say */
  uint64_t max_allocation_bytes;    /* largest single tuff_alloc */
  uint64_t max_storage_range_bytes; /* largest descriptor range; larger buffers work all the same */
  uint32_t max_workgroup_invocations;
  uint32_t max_workgroup_count[3];
  uint32_t max_shared_memory_bytes; /* for each workgroup */
  uint32_t max_push_constant_bytes;
  uint32_t subgroup_size;
  int32_t supports_f16; /* arithmetic and 16-bit storage; 1 yes, 0 no */
  int32_t supports_bf16;
  int32_t supports_f64;
  int32_t supports_int8;
  int32_t supports_matrix_cores;
  int32_t supports_addresses;        /* buffer device addresses */
  int32_t unified_memory;            /* all device memory can be mapped by the host */
  int32_t binding;                   /* how kernels that stream reach buffers: 0 descriptors, 1 addresses;
                                        measured, for contexts only */
  double bandwidth_bytes_per_second; /* measured, by the first tuff_profile_begin(); 0 if not known */
  double f32_flops_per_second;       /* likewise */
  /* Since 0.8.0; all but those that say otherwise are 0 for the host backend. */
  uint32_t max_workgroup_size[3]; /* invocations along each dimension */
  uint32_t subgroup_size_min;     /* what a kernel can ask for lies between these; 1 for the host backend */
  uint32_t subgroup_size_max;
  uint32_t subgroup_operations;   /* TUFF_SUBGROUP_* */
  uint32_t compute_units;         /* multiprocessors, cores; 0 if the driver does not say */
  uint32_t min_storage_alignment; /* of a descriptor's offset; buffers may begin anywhere all the same */
  uint64_t host_import_alignment; /* of what tuff_buffer_import_host() takes; 0: nothing. The host backend's too */
  double timestamp_nanoseconds;   /* of one tick of the device's clock */
  uint8_t driver_uuid[16];        /* memory goes by file descriptor where uuid and this are the same */
  uint32_t queue_family_count;
  uint32_t matrix_shape_count; /* of the element types that Tuff has; 0 without matrix cores */
  tuff_queue_family queue_families[TUFF_MAX_QUEUE_FAMILIES]; /* in the driver's order, the first ones */
  tuff_matrix_shape matrix_shapes[TUFF_MAX_MATRIX_SHAPES];   /* likewise */
} tuff_device_properties;

/* How a context is made. Zero everywhere, or a null descriptor, means the best Vulkan device. */
typedef struct tuff_context_desc {
  uint32_t struct_size;
  int32_t validation;          /* 1: load the Khronos validation layer; its messages go to the log at
                                  TUFF_LOG_ERROR and are counted in tuff_stats. Also TUFF_VALIDATION=1. */
  const char* device;          /* index ("0") or part of a name ("nvidia"), case-insensitive; since 0.8.0 a UUID too, or
                                  its beginning if no other device's is the same (hexadecimal, four digits or more,
                                  dashes allowed); NULL: TUFF_DEVICE from the environment, else the first: discrete,
                                  integrated, virtual, then CPU, unless TUFF_VISIBLE_DEVICES orders them */
  const char* backend;         /* "vulkan", "host", or "auto": Vulkan, or host if there is none; NULL: "vulkan" */
  uint64_t memory_limit_bytes; /* as tuff_limits.memory_bytes */
  /* Since 0.7.0. */
  int32_t prewarm;  /* 1: a thread compiles the kernels that earlier contexts of such a device have asked
                       for, as a list on disk has them, while the caller goes on. Also TUFF_PREWARM=1.
                       Destroying the context ends it within one kernel; "host" has nothing to compile */
  int32_t reserved; /* zero */
} tuff_context_desc;

/* Counts the usable Vulkan devices. 0 with TUFF_OK where there is no loader or driver at all.
 * Since 0.8.0 the environment variable TUFF_VISIBLE_DEVICES decides which devices there are and in which order, for all
 * of the library: a list, separated by commas, of what tuff_context_desc.device takes, where a part of a name stands
 * for all devices of that name and indices are those without the variable. An empty list leaves none. It is read when
 * devices are first asked for.
 * Errors: INVALID_ARGUMENT if an entry of TUFF_VISIBLE_DEVICES matches nothing, or a UUID's beginning several; the
 * message says what there is. So do tuff_device_info() and tuff_context_create(), but for backend "host". */
TUFF_API tuff_status tuff_device_count(uint32_t* count);

/* Describes device index, 0 <= index < tuff_device_count(), best first. info->struct_size must be set.
 * Errors: INVALID_ARGUMENT for an index out of range. */
TUFF_API tuff_status tuff_device_info(uint32_t index, tuff_device_properties* info);

/* Copies a text for a person into buffer, as tuff_last_error() does: the devices that were passed over, one a line,
 * each with all that it lacks (what is needed, and what it reports), or that TUFF_VISIBLE_DEVICES hides it; where there
 * is no loader or driver, that. Empty if every device is usable. buffer may be NULL if capacity is 0, and length may be
 * NULL. Since 0.8.0. */
TUFF_API tuff_status tuff_device_refusals(char* buffer, uint64_t capacity, uint64_t* length);

/* Opens a device. desc may be NULL.
 * Errors: NO_DEVICE (the message says what was found and what each lacked), UNSUPPORTED (validation
 * asked for and the layer is not installed). Freed by tuff_context_destroy(). */
TUFF_API tuff_status tuff_context_create(const tuff_context_desc* desc, tuff_context* context);

/* Waits for the context's work, then frees it with every buffer made from it, in any order, from any
 * thread. All those handles are stale from here on. A lost device is freed all the same. A device that does not finish
 * within tuff_limits.wait_milliseconds is waited for no longer: the call returns TUFF_OK, and what the device works on
 * is freed once it has finished, when another context is made or destroyed; a warning in the log says so. */
TUFF_API tuff_status tuff_context_destroy(tuff_context context);

/* Describes the context's device. info->struct_size must be set. */
TUFF_API tuff_status tuff_context_info(tuff_context context, tuff_device_properties* info);

/* Blocks until everything given to the stream before has finished; of a context, everything given to any of its
 * streams. Errors: DEVICE_LOST, TIMEOUT. */
TUFF_API tuff_status tuff_synchronize(tuff_stream stream);

/* Asks for a feature by name: *yes is 1 or 0. Names: an element type ("f32", "f16", "bf16", "f64",
 * "i8"), an operation ("gemm", "attention", …), one with a type ("gemm.bf16"), "matrix_cores",
 * "addresses", "unified_memory", "memory_budget", "import_host", "memory_fd", "custom_kernels", "robust_kernels"
 * (TUFF_KERNEL_ROBUST). It tells what Tuff's operations do on this device; what the device itself could do is in
 * tuff_device_properties. A name this library does not know is not supported: 0. */
TUFF_API tuff_status tuff_supports(tuff_context context, const char* feature, int32_t* yes);

/* The names of this library's operations, as tuff_supports() takes them, by number from 0 on; NULL behind the last. In
 * the library's memory, for as long as it is loaded. Since 0.9.0. */
TUFF_API const char* tuff_operation_name(uint32_t index);

/* Counters of a context since it was made. */
typedef struct tuff_stats {
  uint32_t struct_size;
  uint32_t live_buffers;   /* handles not freed yet, views included */
  uint64_t bytes_in_use;   /* held by live buffers and work not finished */
  uint64_t bytes_reserved; /* taken from the device */
  uint64_t bytes_peak;     /* the largest bytes_in_use so far */
  uint64_t allocations;    /* tuff_alloc calls that succeeded */
  uint64_t dispatches;     /* kernels recorded */
  uint64_t submissions;    /* batches handed to the device */
  uint64_t barriers;       /* recorded because ranges conflicted */
  uint64_t bytes_uploaded;
  uint64_t bytes_downloaded;
  uint64_t shaders_compiled;  /* GLSL to SPIR-V in this context */
  uint64_t shader_cache_hits; /* SPIR-V read from disk instead */
  uint64_t pipelines_created;
  uint64_t vulkan_objects_created; /* every vkCreate and vkAllocate: constant in the steady state */
  uint64_t validation_messages;    /* of the validation layer; 0 where it is not loaded */
  /* Since 0.7.0. */
  uint64_t kernel_cache_hits;  /* kernels that were there already when they were asked for */
  uint64_t bytes_staged;       /* of those uploaded and downloaded, what was copied once more in between */
  uint64_t kernels_prewarmed;  /* compiled in the background so far (tuff_context_desc.prewarm) */
  uint64_t kernels_to_prewarm; /* left to do there; 0: done */
  /* Since 0.9.0. */
  uint64_t pipelines_live;    /* of the library's own kernels, at most tuff_limits.pipelines beside those of graphs */
  uint64_t pipelines_evicted; /* that were not used for longest; asked for again, they are made again */
} tuff_stats;

/* Reads the counters. stats->struct_size must be set. */
TUFF_API tuff_status tuff_context_stats(tuff_context context, tuff_stats* stats);

/* Bounds that a context keeps. */
typedef struct tuff_limits {
  uint32_t struct_size;
  uint32_t reserved;          /* zero */
  uint64_t memory_bytes;      /* tuff_alloc beyond it gives LIMIT_EXCEEDED; counts what the context itself
                                 needs for partial results too; 0: no bound */
  uint64_t wait_milliseconds; /* a wait for the device longer than this gives TIMEOUT; 0: 300,000. A CPU driver compiles
                                 kernels within the first wait for them: seconds, on a cold cache */
  /* Since 0.9.0. */
  uint64_t pipelines; /* kernels of the library's own that are kept ready, each for some shapes; beyond that, those
                         not used for longest go once the device is done with them, unless a graph holds them.
                         0: 512 */
} tuff_limits;

/* Replaces the context's limits. Buffers already made are kept, even beyond the new bound. */
TUFF_API tuff_status tuff_context_set_limits(tuff_context context, const tuff_limits* limits);

/* Which variants of the kernels are taken, for operations from here on, by a table that `tuff tune` measured on this
 * device; docs/tuning.md has its format. A context begins with the table of the environment variable TUFF_TUNING, a
 * path or "off"; else with the user's, tuning.json in the cache folder; a table of those that is missing, damaged or
 * of another device is ignored, with a message to the log. Choices that the device's limits or the operands do not
 * allow are ignored. Results are the same from call to call, bit for bit, as long as the table is the same one;
 * with another they are within the same bounds.
 *   json   the table, NUL-terminated; NULL: none, the built-in choices
 * Since 0.3.0. Errors: INVALID_ARGUMENT for a text that is no table or has nothing for this device (the message says
 * why; the table before stays); UNSUPPORTED for a table on the host backend, which has no variants. */
TUFF_API tuff_status tuff_context_set_tuning(tuff_context context, const char* json);

/* ---------------------------------------------------------------------------------------------
 * Buffers
 * ------------------------------------------------------------------------------------------- */

/* Allocates device memory that reads as zero. bytes may be 0: a valid buffer with no elements.
 * Errors: LIMIT_EXCEEDED (beyond the device's largest allocation, the context's limit, or what the driver says is left
 * for this process), OUT_OF_DEVICE_MEMORY; the message says what was asked for, what is free, and in which piece. */
TUFF_API tuff_status tuff_alloc(tuff_context context, uint64_t bytes, tuff_buffer* buffer);

/* What a buffer is to be, as bits of tuff_alloc_desc.flags. */
typedef uint32_t tuff_alloc_flags;
enum {
  TUFF_ALLOC_HOST_VISIBLE = 1,  /* tuff_map() works on it */
  TUFF_ALLOC_UNINITIALIZED = 2, /* contents are undefined: saves the clearing */
  /* In the host's memory, held in place, which the host reads and writes at its full speed and the device reaches over
   * its bus: where data waits for tuff_copy_dtod() to or from buffers of the device's. HOST_VISIBLE alone may be the
   * device's own memory. Implies HOST_VISIBLE. Since 0.7.0. */
  TUFF_ALLOC_HOST_PINNED = 4,
  /* tuff_buffer_export_fd() works on it. Memory of its own, in steps of 2 MiB, that goes back to the device with its
   * last handle. Errors: UNSUPPORTED where tuff_supports "memory_fd" says no. Since 0.7.0. */
  TUFF_ALLOC_EXPORTABLE = 8
};

typedef struct tuff_alloc_desc {
  uint32_t struct_size;
  uint32_t flags; /* TUFF_ALLOC_* */
  uint64_t bytes;
  const char* name; /* for tools and error messages; may be NULL */
} tuff_alloc_desc;

/* As tuff_alloc(), with a descriptor. */
TUFF_API tuff_status tuff_alloc_ex(tuff_context context, const tuff_alloc_desc* desc, tuff_buffer* buffer);

/* A second handle on bytes [offset, offset + bytes) of a buffer (or view), with a life of its own: the
 * memory stays until the last handle on it is freed. Any offset that is a multiple of the element size
 * works in every operation.
 * Errors: INVALID_ARGUMENT if the range leaves the buffer. */
TUFF_API tuff_status tuff_view(tuff_buffer buffer, uint64_t offset, uint64_t bytes, tuff_buffer* view);

/* Ends the handle's life and returns at once; the memory goes back when the device is done with it.
 * TUFF_NULL_HANDLE is accepted and does nothing. */
TUFF_API tuff_status tuff_free(tuff_buffer buffer);

/* The buffer's size in bytes as it was asked for. */
TUFF_API tuff_status tuff_buffer_size(tuff_buffer buffer, uint64_t* bytes);

/* Copies host memory into a buffer, in stream order. src may be reused when the call returns.
 * Errors: INVALID_ARGUMENT if the range leaves the buffer. bytes 0 does nothing. */
TUFF_API tuff_status tuff_copy_htod(tuff_stream stream, tuff_buffer dst, uint64_t dst_offset, const void* src,
                                    uint64_t bytes);

/* Copies a buffer into host memory, after everything given to the stream before; dst is complete when
 * the call returns. */
TUFF_API tuff_status tuff_copy_dtoh(tuff_stream stream, void* dst, tuff_buffer src, uint64_t src_offset,
                                    uint64_t bytes);

/* Copies between buffers of one context, in stream order. Any offsets and sizes, of one byte even.
 * Errors: INVALID_ARGUMENT if a range leaves its buffer or the two ranges overlap. */
TUFF_API tuff_status tuff_copy_dtod(tuff_stream stream, tuff_buffer dst, uint64_t dst_offset, tuff_buffer src,
                                    uint64_t src_offset, uint64_t bytes);

/* Copies between buffers of any two contexts: on different devices, on one, on a device and on the host backend. After
 * everything given to src_stream before, and in order with dst_stream: what is given to it afterwards comes after the
 * copy. src may be written to when the call returns. Of one context it is tuff_copy_dtod().
 * Any offsets and sizes. The data stays on the device where both contexts are of one device and driver that share
 * memory by file descriptor (tuff_supports "memory_fd"); else it goes through memory of the host's, which the one fills
 * while the other empties it. Above 256 KiB the call waits for the work of both contexts, at times on a second thread,
 * and up to 64 MiB of memory are kept for the next copy of the same direction, until tuff_context_trim() of either
 * context or its end. Threads may copy in opposite directions at once.
 * Buffers over one memory that contexts share (tuff_buffer_import_fd()) are not seen to overlap.
 * Since 0.8.0. Errors: INVALID_ARGUMENT if a range leaves its buffer, a buffer is mapped, or, of one context, the
 * ranges overlap; INVALID_HANDLE if dst is not of dst_stream's context, or src of src_stream's. */
TUFF_API tuff_status tuff_copy_peer(tuff_stream dst_stream, tuff_buffer dst, uint64_t dst_offset,
                                    tuff_stream src_stream, tuff_buffer src, uint64_t src_offset, uint64_t bytes);

/* Fills bytes [offset, offset + bytes) with a repeated pattern of 1, 2, 4, 8 or 16 bytes.
 * Errors: INVALID_ARGUMENT for another pattern size, or if offset or bytes is no multiple of it. */
TUFF_API tuff_status tuff_fill(tuff_stream stream, tuff_buffer buffer, uint64_t offset, uint64_t bytes,
                               const void* pattern, uint64_t pattern_bytes);

/* Waits for the work given to the context so far and gives the buffer's memory to the host until
 * tuff_unmap(). Operations and copies on it (and on views of the same memory) meanwhile are
 * INVALID_ARGUMENT.
 * Errors: INVALID_ARGUMENT if it is mapped already or was not made with TUFF_ALLOC_HOST_VISIBLE. */
TUFF_API tuff_status tuff_map(tuff_buffer buffer, void** pointer);
TUFF_API tuff_status tuff_unmap(tuff_buffer buffer);

/* ---------------------------------------------------------------------------------------------
 * Memory: what a context has taken from its device, and what happens when it is short. docs/memory.md
 * ------------------------------------------------------------------------------------------- */

/* The memory behind a context's buffers. The context takes blocks from the device and cuts buffers out of them; what is
 * freed is kept for the next ones. Bytes count as they are taken: buffers up to 16 MiB in steps of 256 bytes, larger
 * ones in steps of 2 MiB. Since 0.7.0. */
typedef struct tuff_memory_stats {
  uint32_t struct_size;
  uint32_t blocks;         /* pieces of memory taken from the device and held */
  uint64_t bytes_in_use;   /* live buffers, freed ones that unfinished work uses, and what the context itself needs */
  uint64_t bytes_reserved; /* of all blocks */
  uint64_t bytes_peak;     /* the largest bytes_in_use since the context was made, or tuff_context_reset_peak() */
  uint64_t bytes_free;     /* of all blocks, in use by nobody */
  uint64_t bytes_largest_free; /* the largest range of it that lies together */
  uint64_t live_allocations;   /* ranges that make up bytes_in_use */
  uint64_t allocations;        /* ranges handed out so far: buffers, staging, partial results */
  uint64_t hits;               /* of them, those that were cut out of a block that was there */
  uint64_t misses;             /* those that took a new block from the device: allocations = hits + misses */
  double fragmentation;        /* 1 - bytes_largest_free / bytes_free; 0 where nothing is free */
  uint64_t bytes_limit;        /* tuff_limits.memory_bytes; 0: none */
  uint64_t heap_bytes;         /* of the device's heap that buffers come from */
  uint64_t heap_budget_bytes;  /* how much of it this process may use, and uses, as the driver says now */
  uint64_t heap_used_bytes;    /* (VK_EXT_memory_budget); both 0 where it does not say: tuff_supports "memory_budget" */
  uint64_t bytes_imported;     /* of live buffers over memory that is not the context's; in no other field */
} tuff_memory_stats;

/* Reads them. stats->struct_size must be set. Since 0.7.0. */
TUFF_API tuff_status tuff_context_memory(tuff_context context, tuff_memory_stats* stats);

/* Gives back what nobody uses: empty blocks, the memory of partial results and that of tuff_copy_peer(). Waits for
 * nothing: what unfinished work uses is given back only after tuff_synchronize(). The next allocations are slower.
 * Since 0.7.0. */
TUFF_API tuff_status tuff_context_trim(tuff_context context);

/* Makes bytes_in_use of now the peak, here and in tuff_stats. Since 0.7.0. */
TUFF_API tuff_status tuff_context_reset_peak(tuff_context context);

/* What an allocation lacks. Since 0.7.0. */
typedef struct tuff_memory_pressure {
  uint32_t struct_size;     /* the library's */
  tuff_status status;       /* what the call answers with unless memory is freed: TUFF_ERROR_LIMIT_EXCEEDED,
                               TUFF_ERROR_OUT_OF_DEVICE_MEMORY or TUFF_ERROR_OUT_OF_HOST_MEMORY */
  uint64_t bytes_requested; /* the size that was asked for */
  uint64_t bytes_needed;    /* how much has to be freed at the least; where what is free is in pieces, more */
} tuff_memory_pressure;

/* Must not throw, and must return. pressure is valid during the call. Since 0.7.0. */
typedef void (*tuff_memory_callback)(void* user, const tuff_memory_pressure* pressure);

/* Has callback called before memory is refused: by tuff_alloc() and by any call that needs some itself, after empty
 * blocks were given back and what was freed was waited for. The call then tries once more, and succeeds if enough
 * was freed. A size that no freeing could make room for is refused without it.
 *   callback   runs on the thread that made the call, which holds no lock; threads may be inside it at once. It may
 *              call any function of Tuff on any context: free, synchronize, allocate. An allocation of its own that
 *              is short of memory in the same context is refused at once. NULL: none, as at first
 *   user       is passed on
 * Returns when no other thread is inside the callback that was there before, so that what its user points to may go;
 * called from inside a callback it does not wait. Since 0.7.0. */
TUFF_API tuff_status tuff_context_set_memory_callback(tuff_context context, tuff_memory_callback callback, void* user);

/* A buffer over memory of the caller's: nothing is copied. The contents are what they are. It is host-visible: between
 * tuff_map(), which gives memory itself, and tuff_unmap() the host may read and write it, at no other time.
 *   memory, bytes   both multiples of what the device asks for, which the message of an error states: 4096 with every
 *                   driver seen, at most 65536. Memory that a file is mapped to may be refused
 * memory has to stay until the buffer, and views of it, were freed and a tuff_synchronize() after that has returned, or
 * the context was destroyed. It counts for no limit. The same memory imported twice is two buffers: what is done to
 * one is in no order with what is done to the other.
 * Since 0.7.0. Errors: UNSUPPORTED where tuff_supports "import_host" says no. */
TUFF_API tuff_status tuff_buffer_import_host(tuff_context context, void* memory, uint64_t bytes, tuff_buffer* buffer);

/* A buffer's memory as a file descriptor, for another process or another API (CUDA's external memory) on the same
 * device. Whoever imports it needs all the fields, just as they are; fd alone is another number in another process.
 * Since 0.7.0. */
typedef struct tuff_memory_fd {
  uint32_t struct_size;
  int32_t fd;
  uint64_t memory_bytes;   /* of the memory behind fd, of which */
  uint64_t offset;         /* the buffer begins here */
  uint64_t bytes;          /* and has this size */
  uint32_t memory_type;    /* Vulkan's index of it */
  int32_t dedicated;       /* 1: the memory was made for one buffer alone, which CUDA is to be told */
  uint8_t device_uuid[16]; /* of the device and driver that can import it */
  uint8_t driver_uuid[16];
} tuff_memory_fd;

/* Exports the memory of a buffer that was made with TUFF_ALLOC_EXPORTABLE, or of a view of one. Waits for the work
 * given to the context so far. Each call makes a new descriptor, closed on exec, which the caller owns and closes; it
 * keeps the memory alive even when the buffer is freed. info->struct_size must be set. Nothing orders the work of those
 * who share memory: tuff_synchronize(), and what the other has for it, before the other reads or writes. Since 0.7.0.
 * Errors: INVALID_ARGUMENT for any other buffer, UNSUPPORTED on the host backend. */
TUFF_API tuff_status tuff_buffer_export_fd(tuff_buffer buffer, tuff_memory_fd* info);

/* A buffer over memory that a tuff_buffer_export_fd() exported, in this process or another. The contents are what they
 * are. It counts for no limit. fd stays the caller's, who may close it when the call has returned. What came from
 * elsewhere is checked as far as it can be, without reading from what may have nothing to read: fd has to be of memory,
 * as a device's driver gives it, or, of a driver for processors, a memory file (memfd_create) that holds memory_bytes,
 * begins as that driver's do, and cannot be made shorter: F_SEAL_SHRINK is set where it is missing. A descriptor of the
 * same driver's memory of another size is otherwise the driver's to refuse. What cannot be checked: whoever shares the
 * memory can write to all of it at any time, what the driver keeps there included (docs/memory.md). Since 0.7.0.
 * Errors: INVALID_ARGUMENT for memory of another device or driver, for sizes that do not fit and for what is no
 * descriptor of memory; UNSUPPORTED where tuff_supports "memory_fd" says no. */
TUFF_API tuff_status tuff_buffer_import_fd(tuff_context context, const tuff_memory_fd* info, tuff_buffer* buffer);

/* ---------------------------------------------------------------------------------------------
 * Operations
 *
 * Each is queued and returns; results are there for whatever follows in the stream. A call is checked
 * whole before anything is queued. An output may not overlap an input, except that an element-wise
 * output may be exactly an input. Any outer size of 0 is a success that touches nothing. Where nothing else is said,
 * dtype is TUFF_F32, TUFF_F16 or TUFF_BF16, others are UNSUPPORTED: all operands are of that type, values and sums are
 * f32, and each result is rounded once, to nearest even. (Since 0.3.0 for reduce, unary, binary and softmax, since
 * 0.4.0 for attention and convolutions.)
 *
 * tuff_<op>_ex takes the same arguments in a descriptor, and what goes beyond them.
 * ------------------------------------------------------------------------------------------- */

/* C = alpha * op(A) * op(B) + beta * C, with op(A) m x k, op(B) k x n, C m x n.
 *   ta, tb          TUFF_NO_TRANS: stored as m x k, k x n; TUFF_TRANS: stored as k x m, n x k
 *   lda, ldb, ldc   elements from one stored row to the next, at least the stored row's length
 *   dtype           of A, B and C; TUFF_I8: of A and B, and C is of TUFF_I32. See tuff_gemm_desc for what is
 *                   computed in; since 0.2.0 others than TUFF_F32
 * Bytes between rows are never written. k = 0 or alpha = 0: A and B are not read. beta = 0: C is not
 * read, so NaN in it does not survive. alpha and beta are rounded to f32 (f64 for f64) first: 1e-300 is zero. */
TUFF_API tuff_status tuff_gemm(tuff_stream stream, int32_t dtype, int32_t ta, int32_t tb, uint64_t m, uint64_t n,
                               uint64_t k, double alpha, tuff_buffer a, uint64_t lda, tuff_buffer b, uint64_t ldb,
                               double beta, tuff_buffer c, uint64_t ldc);

/* With a descriptor: C = activation(alpha * op(A) * op(B) + beta * C + bias + residual), and types apart.
 *   a, b, c types                  sums in
 *   f32, f16, bf16, in any mixture f32
 *   i8, i8, and i32, f32, f16, bf16  i32, modulo 2^32; for an i32 C alpha and beta are whole numbers of
 *                                  32 bits, all is modulo 2^32, and the activation is none or relu
 *   f64, f64, f64                  f64, where tuff_supports says "gemm.f64"
 * Inputs are converted exactly; alpha * sum and what follows is computed in f32 (f64 for f64), and the result
 * rounded once, to nearest even. An activation of f32 is the unary operation of its name, bit for bit. bias and
 * residual are of c_type. C may be exactly the residual, of the same leading dimension (and stride). accumulate and
 * precision permit less accuracy, they do not demand it. Errors: UNSUPPORTED for another mixture, or types the device
 * lacks (the message says which); INVALID_ARGUMENT for a precision with inputs that are not f32. */
typedef struct tuff_gemm_desc {
  uint32_t struct_size;
  int32_t dtype;
  int32_t ta, tb;
  uint64_t m, n, k;
  double alpha; /* zero means zero, here and in beta */
  double beta;
  tuff_buffer a, b, c;
  uint64_t lda, ldb, ldc; /* 0: dense */
  /* Since 0.2.0; all may be zero. */
  int32_t a_type, b_type, c_type; /* TUFF_*; 0: dtype (c_type where dtype is TUFF_I8: TUFF_I32) */
  int32_t accumulate;             /* what sums are kept in; 0: see above; TUFF_F16 allows f16 for two f16 inputs */
  int32_t precision;              /* TUFF_PRECISION_* */
  int32_t activation;             /* TUFF_ACTIVATION_* */
  int32_t bias_axis;              /* TUFF_BIAS_*: whether bias has m or n elements */
  int32_t reserved;               /* zero */
  tuff_buffer bias;               /* of c_type */
  tuff_buffer residual;           /* an m x n matrix of c_type that is added; TUFF_NULL_HANDLE: none */
  uint64_t ld_residual;           /* 0: dense */
} tuff_gemm_desc;
TUFF_API tuff_status tuff_gemm_ex(tuff_stream stream, const tuff_gemm_desc* desc);

/* batch_count products: C[i] = alpha * op(A[i]) * op(B[i]) + beta * C[i], matrix i starting i * stride
 * elements into its buffer. stride_a or stride_b 0 repeats one matrix. The matrices of C must not
 * overlap each other: stride_c is at least one matrix's footprint, if batch_count > 1. */
TUFF_API tuff_status tuff_batched_gemm(tuff_stream stream, int32_t dtype, int32_t ta, int32_t tb, uint64_t m,
                                       uint64_t n, uint64_t k, double alpha, tuff_buffer a, uint64_t lda,
                                       uint64_t stride_a, tuff_buffer b, uint64_t ldb, uint64_t stride_b, double beta,
                                       tuff_buffer c, uint64_t ldc, uint64_t stride_c, uint64_t batch_count);

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
  int32_t a_type, b_type, c_type; /* TUFF_*; 0: dtype (c_type where dtype is TUFF_I8: TUFF_I32) */
  int32_t accumulate;             /* what sums are kept in; 0: see above; TUFF_F16 allows f16 for two f16 inputs */
  int32_t precision;              /* TUFF_PRECISION_* */
  int32_t activation;             /* TUFF_ACTIVATION_* */
  int32_t bias_axis;              /* TUFF_BIAS_*: whether bias has m or n elements */
  int32_t reserved;               /* zero */
  tuff_buffer bias;               /* of c_type */
  tuff_buffer residual;           /* an m x n matrix of c_type that is added; TUFF_NULL_HANDLE: none */
  uint64_t ld_residual;           /* 0: dense */
  uint64_t stride_bias, stride_residual; /* 0 repeats one for the whole batch */
  /* batch_count handles each, instead of strides: matrix i is the start of a_array[i]. All three, and a, b, c and their
   * strides are then zero; NULL: none. */
  const tuff_buffer *a_array, *b_array, *c_array;
} tuff_batched_gemm_desc;
TUFF_API tuff_status tuff_batched_gemm_ex(tuff_stream stream, const tuff_batched_gemm_desc* desc);

/* What tables of tuned choices can say of a product (tuff_gemm_ex's too: batch_count 1). Nothing is computed.
 *   json     receives at most capacity bytes, NUL-terminated if capacity > 0; may be NULL if capacity is 0. An entry
 *            as tables have them, with the slices that are tuned (0: none are), and the variants that are worth
 *            measuring, the one that would be taken now first, the others by what is expected of them:
 *            {"operation": "gemm", "form": "nn f32 f32 f32", "sizes": [64, 64, 64, 1], "slices": 0,
 *             "variants": ["tile_32x32", ...]}
 *   length   receives the text's whole length without the NUL; may be NULL
 * Since 0.3.0. Errors: those of tuff_batched_gemm_ex; UNSUPPORTED on the host backend. */
TUFF_API tuff_status tuff_batched_gemm_variants(tuff_stream stream, const tuff_batched_gemm_desc* desc, char* json,
                                                uint64_t capacity, uint64_t* length);

/* Cross-correlation: output[n][k][p][q] = sum over c, r, s of
 *   input[n][c][p * stride[0] - padding[0] + r][q * stride[1] - padding[1] + s] * filter[k][c][r][s],
 * zero outside the input.
 *   in_shape      N, C, H, W
 *   filter_shape  K, C, R, S
 *   out_shape     N, K, P, Q with P = floor((H + 2 * padding[0] - R) / stride[0]) + 1, Q likewise
 *   stride        vertical, horizontal; at least 1
 *   padding       zeros on each side, vertical and horizontal
 * Errors: INVALID_ARGUMENT for another out_shape (the message states the expected one), for channels or
 * batch that disagree, for a filter larger than the padded input. */
TUFF_API tuff_status tuff_conv2d(tuff_stream stream, int32_t dtype, tuff_buffer input, const uint64_t in_shape[4],
                                 tuff_buffer filter, const uint64_t filter_shape[4], tuff_buffer output,
                                 const uint64_t out_shape[4], const uint64_t stride[2], const uint64_t padding[2]);

/* With a descriptor, and since 0.4.0:
 *   output[n][k] = activation(sum[n][k] + bias[k] + residual[n][k])
 * where filter k sees the C / groups channels of its group alone, k / (K / groups), and the sums are the
 * cross-correlation above with dilation * r and dilation * s for r and s. groups = C is a depthwise convolution. All
 * operands are of dtype, which may be TUFF_F16 or TUFF_BF16: sums and what follows is computed in f32 and the result
 * rounded once, to nearest even. output may be exactly the residual.
 *   P = floor((H + padding[0] + padding_end[0] - (dilation[0] * (R - 1) + 1)) / stride[0]) + 1, Q likewise
 * layout tells how input, output and residual lie in memory, and filters with them:
 * TUFF_LAYOUT_NCHW [K][C / groups][R][S], TUFF_LAYOUT_NHWC [K][R][S][C / groups].
 * precision TUFF_PRECISION_ALLOW_WINOGRAD permits windows of 3 x 3 with stride, dilation and groups 1 to be computed
 * from tiles of up to 6 x 6 inputs that are transformed first, by a quarter to a half of the multiplications. An
 * output's rounding error then depends on all numbers of its tile, not on its own window's alone, and integers need not
 * come out exactly. Errors: INVALID_ARGUMENT unless groups divides C and K; UNSUPPORTED for a stride or dilation above
 * 65,535 that is gone. */
typedef struct tuff_conv2d_desc {
  uint32_t struct_size;
  int32_t dtype;
  tuff_buffer input, filter, output;
  uint64_t in_shape[4];     /* N, C, H, W, whatever the layout */
  uint64_t filter_shape[4]; /* K, C / groups, R, S */
  uint64_t out_shape[4];    /* N, K, P, Q */
  uint64_t stride[2];       /* 0: 1 */
  uint64_t padding[2];
  uint64_t dilation[2]; /* distance between filter taps; 0: 1. R becomes dilation * (R - 1) + 1 in P, Q */
  /* Since 0.4.0; all may be zero. */
  uint64_t padding_end[2]; /* if asymmetric: zeros below and to the right, and padding those above and to the left */
  uint64_t groups;         /* 0: 1 */
  int32_t asymmetric;      /* 0: padding is on both sides and padding_end zero; 1: see padding_end */
  int32_t layout;          /* TUFF_LAYOUT_* */
  int32_t activation;      /* TUFF_ACTIVATION_* */
  int32_t precision;       /* TUFF_PRECISION_DEFAULT or _ALLOW_WINOGRAD; since 0.6.0, zero before */
  tuff_buffer bias;        /* K elements; TUFF_NULL_HANDLE: none */
  tuff_buffer residual;    /* of the output's shape and layout, is added; TUFF_NULL_HANDLE: none */
} tuff_conv2d_desc;
TUFF_API tuff_status tuff_conv2d_ex(tuff_stream stream, const tuff_conv2d_desc* desc);

/* In one dimension: input N, C, W, filter K, C, S, output N, K, Q. Since 0.4.0. Arguments and errors as in
 * tuff_conv2d(). */
TUFF_API tuff_status tuff_conv1d(tuff_stream stream, int32_t dtype, tuff_buffer input, const uint64_t in_shape[3],
                                 tuff_buffer filter, const uint64_t filter_shape[3], tuff_buffer output,
                                 const uint64_t out_shape[3], uint64_t stride, uint64_t padding);

/* Everything as in tuff_conv2d_desc; TUFF_LAYOUT_NHWC is N, W, C. Since 0.4.0. */
typedef struct tuff_conv1d_desc {
  uint32_t struct_size;
  int32_t dtype;
  tuff_buffer input, filter, output;
  uint64_t in_shape[3];     /* N, C, W, whatever the layout */
  uint64_t filter_shape[3]; /* K, C / groups, S */
  uint64_t out_shape[3];    /* N, K, Q */
  uint64_t stride[1];       /* 0: 1 */
  uint64_t padding[1];
  uint64_t dilation[1]; /* 0: 1 */
  uint64_t padding_end[1];
  uint64_t groups; /* 0: 1 */
  int32_t asymmetric, layout, activation, reserved;
  tuff_buffer bias, residual;
} tuff_conv1d_desc;
TUFF_API tuff_status tuff_conv1d_ex(tuff_stream stream, const tuff_conv1d_desc* desc);

/* In three dimensions: input N, C, D, H, W, filter K, C, T, R, S, output N, K, O, P, Q. Since 0.4.0. Arguments and
 * errors as in tuff_conv2d(); stride and padding are those of depth, height, width. */
TUFF_API tuff_status tuff_conv3d(tuff_stream stream, int32_t dtype, tuff_buffer input, const uint64_t in_shape[5],
                                 tuff_buffer filter, const uint64_t filter_shape[5], tuff_buffer output,
                                 const uint64_t out_shape[5], const uint64_t stride[3], const uint64_t padding[3]);

/* Everything as in tuff_conv2d_desc; TUFF_LAYOUT_NHWC is N, D, H, W, C. Since 0.4.0. */
typedef struct tuff_conv3d_desc {
  uint32_t struct_size;
  int32_t dtype;
  tuff_buffer input, filter, output;
  uint64_t in_shape[5];     /* N, C, D, H, W, whatever the layout */
  uint64_t filter_shape[5]; /* K, C / groups, T, R, S */
  uint64_t out_shape[5];    /* N, K, O, P, Q */
  uint64_t stride[3];       /* 0: 1 */
  uint64_t padding[3];
  uint64_t dilation[3]; /* 0: 1 */
  uint64_t padding_end[3];
  uint64_t groups; /* 0: 1 */
  int32_t asymmetric, layout, activation, reserved;
  tuff_buffer bias, residual;
} tuff_conv3d_desc;
TUFF_API tuff_status tuff_conv3d_ex(tuff_stream stream, const tuff_conv3d_desc* desc);

/* The transposed convolution, which takes an output's shape of tuff_conv2d() back to its input's: every input pixel
 * adds the filter, times its value, to the outputs from (y, x) * stride - padding on:
 *   output[n][k][p][q] = sum over c, r, s and those y, x with y * stride[0] + r = p + padding[0],
 *   x * stride[1] + s = q + padding[1] of input[n][c][y][x] * filter[c][k][r][s].
 *   in_shape        N, C, H, W
 *   filter_shape    C, K, R, S
 *   out_shape       N, K, P, Q with P = (H - 1) * stride[0] + R - 2 * padding[0] + output_padding[0], Q likewise
 *   stride          vertical, horizontal; at least 1
 *   padding         outputs left out on each side
 *   output_padding  further outputs below and to the right, below the stride (or dilation)
 * Since 0.4.0. Errors: as of tuff_conv2d(); INVALID_ARGUMENT for padding that leaves out more than there is. */
TUFF_API tuff_status tuff_conv_transpose2d(tuff_stream stream, int32_t dtype, tuff_buffer input,
                                           const uint64_t in_shape[4], tuff_buffer filter,
                                           const uint64_t filter_shape[4], tuff_buffer output,
                                           const uint64_t out_shape[4], const uint64_t stride[2],
                                           const uint64_t padding[2], const uint64_t output_padding[2]);

/* output = activation(sum + bias), in types, groups and layouts as in tuff_conv2d_desc. With dilation, R becomes
 * dilation[0] * (R - 1) + 1 and r above dilation[0] * r, S and s likewise. Filters lie as
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
  uint64_t dilation[2]; /* 0: 1 */
  uint64_t groups;      /* 0: 1 */
  int32_t layout, activation;
  int64_t reserved; /* zero */
  tuff_buffer bias; /* K elements; TUFF_NULL_HANDLE: none */
} tuff_conv_transpose2d_desc;
TUFF_API tuff_status tuff_conv_transpose2d_ex(tuff_stream stream, const tuff_conv_transpose2d_desc* desc);

/* O = softmax(scale * Q * K^T + mask) * V for each batch and head.
 *   q, o     [batch][heads][seq_q][head_dim]
 *   k, v     [batch][heads][seq_kv][head_dim]
 *   scale    finite and positive in f32
 *   causal   TUFF_CAUSAL_*
 * A row that may see no key is zero; a NaN score makes its own row NaN. A score of minus infinity has no weight,
 * whatever made it: a row of which all are is zero too. One of infinity counts as the largest number. Errors:
 * INVALID_ARGUMENT if seq_q, seq_kv or head_dim is 0; UNSUPPORTED if head_dim is over 1024. */
TUFF_API tuff_status tuff_attention(tuff_stream stream, int32_t dtype, tuff_buffer q, tuff_buffer k, tuff_buffer v,
                                    tuff_buffer o, uint64_t batch, uint64_t heads, uint64_t seq_q, uint64_t seq_kv,
                                    uint64_t head_dim, double scale, int32_t causal);

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
  /* Elements from one batch element, head and row of the sequence to the next; within a row elements lie side by side.
   * Each that is 0 is as in [batch][heads][seq][head_dim]. So [batch][seq][heads][head_dim] is read and written in
   * place, and so is a key/value cache that is longer than seq_kv. The rows of o must not overlap one another. */
  uint64_t q_strides[3], k_strides[3], v_strides[3], o_strides[3];

  /* What becomes of a score s = scale * (q . k), in this order. */
  double softcap;           /* s = softcap * tanh(s / softcap); positive and not denormal in f32; 0: none */
  tuff_buffer bias;         /* s = s + bias[...][key]; minus infinity hides the key. TUFF_NULL_HANDLE: none */
  uint64_t bias_strides[3]; /* elements from one batch element, head and query to the next; 0: all have the same */
  tuff_buffer mask;         /* bytes; the key is hidden where it is 0. TUFF_NULL_HANDLE: none */
  uint64_t mask_strides[3]; /* as bias_strides */
  int32_t bias_type;        /* dtype (or 0), or TUFF_F32 */
  int32_t reserved2;        /* zero */

  /* A sliding window: how many keys a row sees to the left and to the right of its place, the one at its place counted
   * in both; 0: all. The place of row i is key i, with TUFF_CAUSAL_BOTTOM_RIGHT key i + seq_kv - seq_q. */
  uint64_t window_left, window_right;

  /* How much of the sequences of each batch element is there: [batch] numbers of type TUFF_I32 (or TUFF_U32 below
   * 2^31); TUFF_NULL_HANDLE: all of it. Below 0 counts as 0, above seq_q or seq_kv as that. Keys behind the end are
   * seen by no row, rows behind the end see no key, and TUFF_CAUSAL_BOTTOM_RIGHT means these ends. */
  tuff_buffer q_lengths, kv_lengths;

  /* log(sum over keys of exp(s)) for each row, TUFF_F32 [batch][heads][seq_q]; minus infinity for a row that sees no
   * key. TUFF_NULL_HANDLE: not wanted */
  tuff_buffer lse;
} tuff_attention_desc;
/* tuff_attention() with all that the descriptor adds. What a row does not see does not reach it, NaN included.
 * Errors besides those of tuff_attention(): INVALID_ARGUMENT if kv_heads does not divide heads, if rows of o overlap,
 * if an output overlaps an operand; UNSUPPORTED for other types, and for a mask on a device without 8-bit storage. */
TUFF_API tuff_status tuff_attention_ex(tuff_stream stream, const tuff_attention_desc* desc);

/* Reduces one axis: output has shape without it.
 *   op      TUFF_REDUCE_*
 *   shape   rank sizes, 1 <= rank <= 8
 *   axis    0 <= axis < rank
 * An empty axis gives 0 for SUM, 1 for PROD, NaN for MEAN; the others of it are INVALID_ARGUMENT. Sums are made in f32
 * by devices, those of a MEAN too: where they leave its range on the way the result is infinite or NaN, though a mean
 * may not. The host backend sums in f64. TUFF_I32, for which tuff_supports() has the name "reduce.i32", is taken since
 * 0.9.0 by SUM, MAX, MIN and PROD, exactly: sums and products wrap, modulo 2^32. The others of it are UNSUPPORTED. */
TUFF_API tuff_status tuff_reduce(tuff_stream stream, int32_t dtype, int32_t op, tuff_buffer input, tuff_buffer output,
                                 const uint64_t* shape, uint32_t rank, uint32_t axis);

typedef struct tuff_reduce_desc {
  uint32_t struct_size;
  int32_t dtype;
  int32_t op;
  uint32_t rank;
  tuff_buffer input, output;
  uint64_t shape[8];
  uint32_t axis;
  uint32_t reserved; /* zero */
} tuff_reduce_desc;
TUFF_API tuff_status tuff_reduce_ex(tuff_stream stream, const tuff_reduce_desc* desc);

/* Scans: running sums and products along one axis, of TUFF_F32, TUFF_F16 and TUFF_BF16. Since 0.9.0. */
typedef struct tuff_scan_desc {
  uint32_t struct_size;
  int32_t dtype;
  tuff_buffer input, output;
  uint64_t shape[8]; /* the first `rank` sizes, 1 <= rank <= 8 */
  uint32_t rank;
  uint32_t axis; /* below rank */
  int32_t
      exclusive;   /* not 0: an element is no part of its own result; the first result is 0 of a sum, 1 of a product */
  int32_t reverse; /* not 0: from the end of the axis to its beginning */
} tuff_scan_desc;
/* output[..., i, ...] = input[..., 0, ...] + ... + input[..., i, ...]; output has the shape of input and may be exactly
 * it. Devices compute in f32 and round each result once: one is off by at most c * 2^-24 * (sum of magnitudes), where c
 * is the smaller of the axis's size and 6000. Sums that leave the range of f32 on the way are infinite or NaN. NaN in
 * the input reaches the results from its place on, and no others. Since 0.9.0. */
TUFF_API tuff_status tuff_cumsum(tuff_stream stream, const tuff_scan_desc* desc);
/* The same for products. They are formed as a tree: one that leaves the range of f32 on the way may be infinite, 0 or
 * NaN though the result is not. Since 0.9.0. */
TUFF_API tuff_status tuff_cumprod(tuff_stream stream, const tuff_scan_desc* desc);

/* output[i] = op(input[i]) for i < n. */
TUFF_API tuff_status tuff_unary(tuff_stream stream, int32_t dtype, int32_t op, tuff_buffer input, tuff_buffer output,
                                uint64_t n);

typedef struct tuff_unary_desc {
  uint32_t struct_size;
  int32_t dtype;
  int32_t op;
  int32_t reserved; /* zero */
  tuff_buffer input, output;
  uint64_t n;
  double alpha; /* LEAKY_RELU, ELU; 0: 0.01, 1. Rounded to f32: a smaller one is a slope of 0. Since 0.3.0 */
} tuff_unary_desc;
TUFF_API tuff_status tuff_unary_ex(tuff_stream stream, const tuff_unary_desc* desc);

/* output[i] = op(a[i], b[i]) for i < n. */
TUFF_API tuff_status tuff_binary(tuff_stream stream, int32_t dtype, int32_t op, tuff_buffer a, tuff_buffer b,
                                 tuff_buffer output, uint64_t n);

typedef struct tuff_binary_desc {
  uint32_t struct_size;
  int32_t dtype;
  int32_t op;
  int32_t reserved; /* zero */
  tuff_buffer a, b, output;
  uint64_t n;
  /* Since 0.4.0; all may be zero. rank > 0: a and b have shapes, of rank <= 8 sizes each, and the result NumPy's for
   * them: sizes are equal, or one of them is 1 and its operand is repeated along that axis (put 1 in front of the
   * shorter shape). n is 0 then, or what the shapes give. output may be exactly an operand that is not repeated. */
  uint32_t rank;
  uint32_t reserved2; /* zero */
  uint64_t a_shape[8], b_shape[8];
} tuff_binary_desc;
TUFF_API tuff_status tuff_binary_ex(tuff_stream stream, const tuff_binary_desc* desc);

/* output = exp(input - max) / sum(exp(input - max)) along one axis; shape, rank and axis as in
 * tuff_reduce(); output has the shape of input and may be exactly it. A NaN makes its own slice NaN, and so do an
 * infinity, and elements that are all minus infinity: there the formula is 0 / 0. */
TUFF_API tuff_status tuff_softmax(tuff_stream stream, int32_t dtype, tuff_buffer input, tuff_buffer output,
                                  const uint64_t* shape, uint32_t rank, uint32_t axis);

typedef struct tuff_softmax_desc {
  uint32_t struct_size;
  int32_t dtype;
  tuff_buffer input, output;
  uint64_t shape[8];
  uint32_t rank;
  uint32_t axis;
  /* Since 0.3.0; all may be zero. With z = scale * input + mask instead of input: */
  double scale;         /* finite, and not zero in f32; 0: 1 */
  int32_t logarithm;    /* 1: output is z - max - log(sum(exp(z - max))), the logarithm of the result */
  int32_t mask_type;    /* dtype (or 0): the mask is added; TUFF_U8: where it is 0 the result is 0 (-inf for the
                           logarithm), in a slice that is hidden whole too, but in one that is NaN, as by what is not
                           hidden if all of that is -inf */
  tuff_buffer mask;     /* [mask_rows][size of axis][sizes behind it]; TUFF_NULL_HANDLE: none */
  uint64_t mask_rows;   /* 0: as many as the sizes before the axis multiply to: a mask of the input's shape */
  uint64_t mask_repeat; /* index i before the axis takes row (i / mask_repeat) % mask_rows; 0: 1 */
} tuff_softmax_desc;
TUFF_API tuff_status tuff_softmax_ex(tuff_stream stream, const tuff_softmax_desc* desc);

/* ---------------------------------------------------------------------------------------------
 * Normalisations. Since 0.3.0.
 *
 * y = (x - mean) / sqrt(variance + epsilon) * weight + bias, where variance = mean((x - mean)^2). They take TUFF_F32,
 * TUFF_F16 and TUFF_BF16 as reductions do. weight and bias may be TUFF_NULL_HANDLE: 1, and 0. epsilon is finite and
 * not negative, and rounded to f32. output may be exactly the input. A NaN makes NaN of what is normalised with it, and
 * so does an infinity, but that of rms norm, where only its own result is NaN and the others are zero. Means and
 * variances are summed about a value near the mean, so that a large mean costs no digits of the variance; and of what
 * f32 and bf16 hold nothing is too large or too small for it: rows whose squares f32 does not hold are gathered again
 * as multiples of a power of two.
 * ------------------------------------------------------------------------------------------- */

/* Each row of input [rows][cols] by its own mean and variance; weight and bias [cols].
 * Errors: INVALID_ARGUMENT for cols = 0. */
TUFF_API tuff_status tuff_layer_norm(tuff_stream stream, int32_t dtype, tuff_buffer input, tuff_buffer weight,
                                     tuff_buffer bias, tuff_buffer output, uint64_t rows, uint64_t cols,
                                     double epsilon);

typedef struct tuff_layer_norm_desc {
  uint32_t struct_size;
  int32_t dtype;
  tuff_buffer input, weight, bias, output;
  uint64_t rows, cols;
  double epsilon;       /* zero means zero */
  int32_t weight_type;  /* of weight and bias: dtype (or 0) or TUFF_F32 */
  int32_t reserved;     /* zero */
  tuff_buffer residual; /* [rows][cols]: input + residual, rounded to dtype, is normalised; TUFF_NULL_HANDLE: none */
  tuff_buffer sum;      /* where input + residual is stored, may be exactly input or residual; TUFF_NULL_HANDLE:
                           nowhere */
} tuff_layer_norm_desc;
TUFF_API tuff_status tuff_layer_norm_ex(tuff_stream stream, const tuff_layer_norm_desc* desc);

/* y = x / sqrt(mean(x^2) + epsilon) * weight for each row. There is no bias. */
TUFF_API tuff_status tuff_rms_norm(tuff_stream stream, int32_t dtype, tuff_buffer input, tuff_buffer weight,
                                   tuff_buffer output, uint64_t rows, uint64_t cols, double epsilon);

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

/* input [batch][channels][inner]: each group of channels / groups neighbouring channels of each image by its own mean
 * and variance; weight and bias [channels]. groups = channels is the instance norm.
 * Errors: INVALID_ARGUMENT unless groups divides channels, and for channels = 0 or inner = 0. */
TUFF_API tuff_status tuff_group_norm(tuff_stream stream, int32_t dtype, tuff_buffer input, tuff_buffer weight,
                                     tuff_buffer bias, tuff_buffer output, uint64_t batch, uint64_t channels,
                                     uint64_t inner, uint64_t groups, double epsilon);

typedef struct tuff_group_norm_desc {
  uint32_t struct_size;
  int32_t dtype;
  tuff_buffer input, weight, bias, output;
  uint64_t batch, channels, inner;
  uint64_t groups;     /* 0: channels, the instance norm */
  double epsilon;      /* zero means zero */
  int32_t weight_type; /* dtype (or 0) or TUFF_F32 */
  int32_t reserved;    /* zero */
} tuff_group_norm_desc;
TUFF_API tuff_status tuff_group_norm_ex(tuff_stream stream, const tuff_group_norm_desc* desc);

/* input [batch][channels][inner] by stored statistics: mean and variance [channels], and weight and bias. Nothing of
 * the input is summed. */
TUFF_API tuff_status tuff_batch_norm(tuff_stream stream, int32_t dtype, tuff_buffer input, tuff_buffer mean,
                                     tuff_buffer variance, tuff_buffer weight, tuff_buffer bias, tuff_buffer output,
                                     uint64_t batch, uint64_t channels, uint64_t inner, double epsilon);

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

/* ---------------------------------------------------------------------------------------------
 * Shapes and types: what moves elements and computes nothing. Since 0.4.0.
 *
 * They take every dtype, and move bits as they are, NaN included, unless they say otherwise. A device that has no
 * storage of 8 or 16 bits gives UNSUPPORTED for elements of that size.
 * ------------------------------------------------------------------------------------------- */

/* The input with its axes in another order: axis i of the output is axis order[i] of the input.
 *   shape   rank sizes of the input, 1 <= rank <= 8
 *   order   each of 0 ... rank - 1 once
 * output may not overlap input. */
TUFF_API tuff_status tuff_permute(tuff_stream stream, int32_t dtype, tuff_buffer input, tuff_buffer output,
                                  const uint64_t* shape, uint32_t rank, const uint32_t* order);

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

/* output[i] = input[i] as a number of another type, for i < n.
 *   to a float      the nearest number, ties to even; beyond the largest one infinity; denormals are kept
 *   to an integer   towards zero; beyond the type's range its end that is nearer; NaN gives 0
 * The same bits on every device but for the payload of a NaN; TUFF_F64 needs no arithmetic of the device. Between equal
 * types it is a copy. output may be exactly input, where both types have the same size. */
TUFF_API tuff_status tuff_cast(tuff_stream stream, int32_t input_type, int32_t output_type, tuff_buffer input,
                               tuff_buffer output, uint64_t n);

typedef struct tuff_cast_desc {
  uint32_t struct_size;
  int32_t input_type, output_type;
  int32_t reserved; /* zero */
  tuff_buffer input, output;
  uint64_t n;
} tuff_cast_desc;
TUFF_API tuff_status tuff_cast_ex(tuff_stream stream, const tuff_cast_desc* desc);

/* Part of the input: output[i, j, ...] = input[start[0] + i * step[0], start[1] + j * step[1], ...].
 *   shape       rank sizes of the input, 1 <= rank <= 8
 *   start       the first element taken of each axis
 *   step        from one to the next, backwards where negative; not 0; NULL: 1 throughout
 *   out_shape   how many are taken of each axis
 * output may not overlap input.
 * Errors: INVALID_ARGUMENT for an element outside the input. */
TUFF_API tuff_status tuff_slice(tuff_stream stream, int32_t dtype, tuff_buffer input, tuff_buffer output,
                                const uint64_t* shape, uint32_t rank, const uint64_t* start, const int64_t* step,
                                const uint64_t* out_shape);

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

/* The inputs one behind another along an axis.
 *   inputs   count buffers; input i has sizes[i] along the axis and is otherwise of the output's shape
 *   shape    rank sizes of the output; sizes[0] + sizes[1] + ... is that of the axis
 * output may not overlap an input. */
TUFF_API tuff_status tuff_concat(tuff_stream stream, int32_t dtype, const tuff_buffer* inputs, const uint64_t* sizes,
                                 uint32_t count, tuff_buffer output, const uint64_t* shape, uint32_t rank,
                                 uint32_t axis);

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

/* What indices name along an axis: output[o, j, i] = input[o, indices[j], i], where o stands for the axes before it and
 * i for those behind. With axis 0 of a table [entries][size] it is an embedding's lookup.
 *   index_type   TUFF_U32 or TUFF_I32
 *   indices      count of them
 *   shape        rank sizes of the input; the output's has count in place of shape[axis]
 * An index that names nothing (shape[axis] or more, or negative) gives zeros, and nothing is read for it; shape[axis]
 * may be 0, and the input TUFF_NULL_HANDLE then, and it may be more than indices can name.
 * output may not overlap input or indices. UNSUPPORTED where the axes behind hold more than 2^30 units, a unit being as
 * many of 1 to 16 bytes as divide them and both operands' offsets; elementwise, where elements of any axis lie 2^31
 * elements or more apart. */
TUFF_API tuff_status tuff_gather(tuff_stream stream, int32_t dtype, int32_t index_type, tuff_buffer input,
                                 tuff_buffer indices, tuff_buffer output, const uint64_t* shape, uint32_t rank,
                                 uint32_t axis, uint64_t count);

/* elementwise 1: indices have a shape of the input's rank, index_shape, which is the output's too, and each element one
 * of its own: output[i, j, k] = input[indices[i, j, k], j, k] for axis 0, and so on. Beside the axis no size is larger
 * than the input's. */
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
  uint64_t index_shape[8]; /* if elementwise */
} tuff_gather_desc;
TUFF_API tuff_status tuff_gather_ex(tuff_stream stream, const tuff_gather_desc* desc);

/* ---------------------------------------------------------------------------------------------
 * Pooling. Since 0.4.0.
 *
 * input [batch][channels][in_shape...], output [batch][channels][out_shape...], with 1, 2 or 3 spatial axes, of
 * TUFF_F32, TUFF_F16 or TUFF_BF16; means are summed in f32. Along an axis of size n, window o has the taps
 *   o * stride - padding + t * dilation    for t < kernel
 * of which only those within the input count, and the output's size is
 *   (n + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1
 * rounded down, or with ceil_mode up, where then a window that would begin behind the input is left out. Adaptive:
 * window o goes from floor(o * n / out) to before ceil((o + 1) * n / out); out_shape of 1 is global pooling.
 * Errors: INVALID_ARGUMENT for another out_shape (the message states the expected one), for a padding of more than half
 * a window's span, for a window larger than the padded input. output may not overlap input.
 * ------------------------------------------------------------------------------------------- */
typedef struct tuff_pool_desc {
  uint32_t struct_size;
  int32_t dtype;
  tuff_buffer input, output;
  tuff_buffer indices; /* max: where in its plane of the input each maximum is, counted from 0, as TUFF_U32; of several
                          the first; TUFF_NULL_HANDLE: not wanted */
  uint64_t batch, channels;
  uint64_t in_shape[3], out_shape[3]; /* the first `spatial` of these and the following; the others are ignored */
  uint64_t kernel[3];
  uint64_t stride[3];   /* 0: kernel */
  uint64_t padding[3];  /* on each side */
  uint64_t dilation[3]; /* max; 0: 1 */
  uint32_t spatial;     /* axes: 1, 2 or 3 */
  int32_t ceil_mode;
  int32_t
      count_include_pad; /* avg; 1: padding counts in the divisor, up to `padding` behind the input; 0: it does not */
  int32_t adaptive;      /* 1: kernel, stride, padding, dilation and the two before are zero */
} tuff_pool_desc;

/* The largest value of each window; NaN if any is NaN. A window without taps in the input gives -infinity, index 0. */
TUFF_API tuff_status tuff_max_pool(tuff_stream stream, const tuff_pool_desc* desc);
/* The mean of each window. Its sum is as that of tuff_reduce(). */
TUFF_API tuff_status tuff_avg_pool(tuff_stream stream, const tuff_pool_desc* desc);

/* ---------------------------------------------------------------------------------------------
 * Resizing. Since 0.5.0.
 *
 * input [batch][channels][in_shape...] and output [batch][channels][out_shape...], or channels last, with 1, 2 or 3
 * spatial axes, of TUFF_F32, TUFF_F16 or TUFF_BF16; blended in f32. Along an axis, output o comes from the position
 *   NEAREST         o / scale, rounded down
 *   NEAREST_EXACT   (o + 1/2) / scale, rounded down
 *   LINEAR          (o + 1/2) / scale - 1/2, not below 0, between the element before it and the one behind; with
 *                   align_corners o * (in - 1) / (out - 1), or 0 if out is 1
 * of the input, at most its last element. Linear along two axes is bilinear, along three trilinear. These are the
 * coordinates of PyTorch's interpolate and of ONNX's Resize (asymmetric, half_pixel and align_corners), but worked out
 * exactly, in whole numbers. An element whose weight is 0 does not count, were it NaN; where sizes stay and scale is 1
 * the result is the input. There is no antialiasing: where an axis shrinks to less than half, elements between are left
 * out. Errors: INVALID_ARGUMENT for a size of 0, or of 2^29 or more; for align_corners in another mode than LINEAR or
 * with a scale; for a scale that takes the last output 2^30 elements far. UNSUPPORTED for planes (channels last:
 * images) of 2^30 elements or more. output may not overlap input.
 * ------------------------------------------------------------------------------------------- */
typedef struct tuff_resize_desc {
  uint32_t struct_size;
  int32_t dtype;
  tuff_buffer input, output;
  uint64_t batch, channels;
  uint64_t in_shape[3], out_shape[3]; /* the first `spatial` of these and the following; the others are ignored */
  double scale[3];  /* elements of the output for each of the input, as the positions take it; 0: out / in. A decimal
                       number such as 1.5 or 0.3 counts as the fraction that it was meant as */
  uint32_t spatial; /* axes: 1, 2 or 3 */
  int32_t mode;     /* TUFF_RESIZE_* */
  int32_t align_corners; /* 1: the first and the last elements keep their places */
  int32_t layout;        /* TUFF_LAYOUT_*, with as many spatial axes as there are; shapes are given in the same order */
} tuff_resize_desc;
TUFF_API tuff_status tuff_resize(tuff_stream stream, const tuff_resize_desc* desc);

/* ---------------------------------------------------------------------------------------------
 * Positions. Since 0.4.0.
 * ------------------------------------------------------------------------------------------- */

/* Rotary position embedding of heads [batch][heads][seq][head_dim]: for each pair (p, q) of elements,
 *   a = position * base^(-2 * i / rotary_dim), output p * cos(a) - q * sin(a) and p * sin(a) + q * cos(a),
 * where pair i < rotary_dim / 2 is elements i and i + rotary_dim / 2 of a head. The position of row s is offset + s.
 * TUFF_F32, TUFF_F16 and TUFF_BF16; computed in f32, with angles as exact at large positions as at small ones. The call
 * without a descriptor takes whole heads. output may be exactly input. */
TUFF_API tuff_status tuff_rope(tuff_stream stream, int32_t dtype, tuff_buffer input, tuff_buffer output, uint64_t batch,
                               uint64_t heads, uint64_t seq, uint64_t head_dim, int64_t offset, double base);

typedef struct tuff_rope_desc {
  uint32_t struct_size;
  int32_t dtype;
  tuff_buffer input, output; /* exactly the same only with the same strides */
  tuff_buffer positions;     /* TUFF_I32, of each row; offset is added, modulo 2^32; TUFF_NULL_HANDLE: 0, 1, 2 ... */
  uint64_t batch, heads, seq, head_dim;
  uint64_t rotary_dim;        /* even; the first elements of a head, the others are copied; 0: head_dim */
  uint64_t input_strides[3];  /* of batch, head and row, in elements; all zero: dense. [b][s][h][d] is {seq * heads *
                                 head_dim, head_dim, heads * head_dim} */
  uint64_t output_strides[3]; /* all zero: dense; rows may not overlap */
  uint64_t positions_stride;  /* from one batch's positions to the next's; 0: the same for all */
  int64_t offset;             /* with the last row's position, within 32 bits */
  double base;                /* above 1; 0: 10000 */
  int32_t interleaved;        /* 1: pair i is elements 2 * i and 2 * i + 1 */
  int32_t reserved;           /* zero */
} tuff_rope_desc;
TUFF_API tuff_status tuff_rope_ex(tuff_stream stream, const tuff_rope_desc* desc);

/* ---------------------------------------------------------------------------------------------
 * Streams and events (since 0.8.0)
 *
 * A stream is an order: what is called on it happens on the device in the order of the calls. Between two streams
 * there is no order: the device takes up one's work while another's goes on, and copies from and to pinned memory run
 * beside both where it has a queue for them. A context's handle stands for its default stream, a stream like the
 * others.
 *
 * What has to come after another stream's work says so by an event: tuff_event_record there, tuff_stream_wait_event
 * here. Two things need none: a buffer's first contents (zeros), and what tuff_copy_htod has put into it, are there for
 * every stream whose call comes later. Freeing a buffer needs none either, whatever streams use it.
 * ------------------------------------------------------------------------------------------- */

typedef struct tuff_stream_desc {
  uint32_t struct_size;
  uint32_t flags;   /* 0 */
  const char* name; /* for profiles and errors; NULL: "stream" and its number */
} tuff_stream_desc;

/* desc may be NULL. LIMIT_EXCEEDED beyond 1,024 live streams of a context, the default one among them. */
TUFF_API tuff_status tuff_stream_create(tuff_context context, const tuff_stream_desc* desc, tuff_stream* stream);
/* Returns at once: what was called on the stream goes on to its end. Does nothing for TUFF_NULL_HANDLE;
 * INVALID_ARGUMENT for a context's default stream. */
TUFF_API tuff_status tuff_stream_destroy(tuff_stream stream);

/* Uploads and downloads that return at once. The host's side is memory that a live TUFF_ALLOC_HOST_PINNED buffer or
 * tuff_buffer_import_host of the same context holds, as tuff_map gives it, and may stay mapped; anywhere else is
 * INVALID_ARGUMENT. It must not be written (htod) or looked at (dtoh) before the copy has happened: tuff_event_wait on
 * an event recorded behind it, or tuff_synchronize, says when. */
TUFF_API tuff_status tuff_copy_htod_async(tuff_stream stream, tuff_buffer dst, uint64_t dst_offset, const void* src,
                                          uint64_t bytes);
TUFF_API tuff_status tuff_copy_dtoh_async(tuff_stream stream, void* dst, tuff_buffer src, uint64_t src_offset,
                                          uint64_t bytes);

/* How an event is made, as bits of tuff_event_desc.flags. */
typedef uint32_t tuff_event_flags;
enum { TUFF_EVENT_NO_TIMING = 1 }; /* tuff_event_elapsed is not needed; recording costs less */

typedef struct tuff_event_desc {
  uint32_t struct_size;
  uint32_t flags;
} tuff_event_desc;

/* A point in a stream, once it is recorded. desc may be NULL. UNSUPPORTED for timing where the device has no
 * timestamps. */
TUFF_API tuff_status tuff_event_create(tuff_context context, const tuff_event_desc* desc, tuff_event* event);
/* Does nothing for TUFF_NULL_HANDLE. What waits for the event goes on waiting. */
TUFF_API tuff_status tuff_event_destroy(tuff_event event);
/* The event now means: all that was called on the stream so far has happened. It may be recorded again, on any stream
 * of its context; who waited before that waits for what it meant then. */
TUFF_API tuff_status tuff_event_record(tuff_stream stream, tuff_event event);
/* What is called on the stream from now on happens after the event. The host does not wait. An event that was never
 * recorded is not waited for. */
TUFF_API tuff_status tuff_stream_wait_event(tuff_stream stream, tuff_event event);
/* *done: 1 if the event has happened, or was never recorded; 0 if not. Never waits. */
TUFF_API tuff_status tuff_event_query(tuff_event event, int32_t* done);
/* Returns when the event has happened. TIMEOUT as tuff_synchronize. */
TUFF_API tuff_status tuff_event_wait(tuff_event event);
/* From one event to another of the same context, on the device's clock; negative if `end` came first. Waits for both.
 * INVALID_ARGUMENT if one was made with TUFF_EVENT_NO_TIMING or never recorded. */
TUFF_API tuff_status tuff_event_elapsed(tuff_event start, tuff_event end, double* milliseconds);

/* ---------------------------------------------------------------------------------------------
 * Graphs (since 0.8.0)
 *
 * Operations that are called again and again can be called once, between tuff_graph_begin and tuff_graph_end: they are
 * checked and planned then, not carried out, and a launch carries them all out in one call that plans nothing.
 *
 * A graph keeps what it uses: buffers and kernels may go after they were captured. What is captured is what happens on
 * the device: operations, custom kernels, tuff_copy_dtod, tuff_fill, copies from and to pinned memory. What needs the
 * host meanwhile is refused on that stream as UNSUPPORTED, and the capture goes on without it: tuff_copy_htod,
 * tuff_copy_dtoh, tuff_synchronize, events, launches of graphs. Other streams are not concerned.
 * ------------------------------------------------------------------------------------------- */

/* UNSUPPORTED on the host backend; INVALID_ARGUMENT if the stream is capturing already. */
TUFF_API tuff_status tuff_graph_begin(tuff_stream stream);
/* INVALID_ARGUMENT if the stream is not capturing. */
TUFF_API tuff_status tuff_graph_end(tuff_stream stream, tuff_graph* graph);
/* In order with the stream's other work, as if its operations were called there now. The graph's launches run one after
 * another, on whatever streams: they share the memory for partial results. INVALID_ARGUMENT if a buffer that it
 * computes with is mapped; pinned memory that it only copies may be. */
TUFF_API tuff_status tuff_graph_launch(tuff_stream stream, tuff_graph graph);
/* From the next launch on, what was captured with memory of `captured` (the buffer, or views of it) uses the same place
 * in `replacement`, which the graph keeps too; `captured` in place of itself undoes it. Launches made before keep what
 * they had. INVALID_ARGUMENT if the graph does not use `captured`, if an operand lies partly in it, if it overlaps
 * another buffer that is replaced, if `replacement` is smaller or not aligned in the same way to 16 bytes (where the
 * graph has custom kernels: to tuff_kernel_properties.buffer_alignment), or if an output would come to overlap another
 * operand. UNSUPPORTED for an operand of tuff_batched_gemm_ex's arrays. */
TUFF_API tuff_status tuff_graph_bind(tuff_graph graph, tuff_buffer captured, tuff_buffer replacement);
/* Returns at once; launches go on to their end. Does nothing for TUFF_NULL_HANDLE. */
TUFF_API tuff_status tuff_graph_destroy(tuff_graph graph);

/* ---------------------------------------------------------------------------------------------
 * Profiling (docs/profiling.md)
 * ------------------------------------------------------------------------------------------- */

/* Profiles the context from here on: each call, and each command that the device runs for it, by the device's own
 * timestamps. What an earlier profile held is forgotten. The first time it measures what the device reaches, which
 * takes a fraction of a second, and seconds where kernels are compiled for it: tuff_context_info() has it then. Results
 * are the same bits; calls take a few microseconds more. Calls of other threads that are under way count, or do not.
 * Since 0.7.0. Errors: INVALID_ARGUMENT if the context is being profiled; UNSUPPORTED if the device's queue has no
 * timestamps. */
TUFF_API tuff_status tuff_profile_begin(tuff_context context);

/* Waits for the work so far, and profiles no more. What was seen is kept until the next tuff_profile_begin().
 * Since 0.7.0. Errors: INVALID_ARGUMENT if the context is not being profiled. */
TUFF_API tuff_status tuff_profile_end(tuff_context context);

/* Writes the profile to a file, in Chrome's trace format: https://ui.perfetto.dev opens it. While the context is being
 * profiled it waits for the work so far, and writes that. On the host backend there are calls, and no device.
 *   path   replaced if it is there; UTF-8
 * Since 0.7.0. Errors: INVALID_ARGUMENT if the context was never profiled; IO if the file cannot be written. */
TUFF_API tuff_status tuff_profile_write(tuff_context context, const char* path);

/* The profile as text for a person: a line for each operation, one for each kernel, variant and shape, and counters.
 *   text     receives at most capacity bytes, NUL-terminated if capacity > 0; may be NULL if capacity is 0. A table
 *            that is longer is cut, which is no error
 *   length   receives the table's whole length without the NUL; may be NULL. It may be longer at the next call if the
 *            context is still being profiled
 * Since 0.7.0. Errors: INVALID_ARGUMENT if the context was never profiled. */
TUFF_API tuff_status tuff_profile_table(tuff_context context, char* text, uint64_t capacity, uint64_t* length);

/* ---------------------------------------------------------------------------------------------
 * Custom kernels. Since 0.7.0.
 *
 * A compute shader of the caller's own, as GLSL or as SPIR-V, in order with everything else in a stream. It reaches
 * buffers as storage buffers, layout(set = 0, binding = i), and small parameters as push constants; what it declares
 * is read from the compiled module, so that a launch can be checked and only real conflicts make it wait.
 * docs/custom-kernels.md has a complete program. On the host backend all of this is UNSUPPORTED.
 * ------------------------------------------------------------------------------------------- */

/* Bindings are numbered below this. */
#define TUFF_KERNEL_MAX_BINDINGS 32

/* What a kernel's source is. */
typedef int32_t tuff_kernel_language;
enum {
  TUFF_KERNEL_LANGUAGE_INVALID = -1,
  TUFF_KERNEL_GLSL = 0, /* a compute shader with its #version line; entry point main */
  TUFF_KERNEL_SPIRV = 1 /* a module of version 1.0 to 1.5 for Vulkan 1.2, words in this machine's byte order */
};

/* How a kernel is made, as bits of tuff_kernel_desc.flags. */
typedef uint32_t tuff_kernel_flags;
enum {
  /* Elements beyond the end of a buffer read as zero, and writes to them do nothing. Since 0.9.0 an index beyond an
   * array of the kernel's own (shared, private, push constants), a vector or a matrix is taken for the last one. */
  TUFF_KERNEL_ROBUST = 1,
  /* The source comes from someone who is not trusted: it is compiled and reflected in a process of its own (the program
   * tuff-compile, installed with the library), with the limits below on time and memory. Without this flag the compiler
   * runs in the caller's process, which is faster by the start of a program and needs no other file, but a source made
   * to that end can use up its time, memory and stack. Since 0.9.0 the driver too compiles what comes out in a process
   * of its own first, so that what it dies of is COMPILE_FAILED, and indices are bounded as for TUFF_KERNEL_ROBUST,
   * those of buffers where the device can. */
  TUFF_KERNEL_UNTRUSTED = 2
};

/* #define name value, of GLSL. */
typedef struct tuff_kernel_define {
  const char* name;  /* not NULL */
  const char* value; /* NULL: "1" */
} tuff_kernel_define;

/* layout(constant_id = id) const: the bits of its value, in the low bytes (a bool: 0 or another number). */
typedef struct tuff_kernel_constant {
  uint32_t id;
  uint32_t reserved; /* zero */
  uint64_t bits;
} tuff_kernel_constant;

typedef struct tuff_kernel_desc {
  uint32_t struct_size;
  int32_t language;                      /* TUFF_KERNEL_GLSL or TUFF_KERNEL_SPIRV */
  const void* source;                    /* text, or SPIR-V at any address; not NULL */
  uint64_t source_bytes;                 /* 0, of GLSL: up to the NUL */
  const char* name;                      /* for messages, "name:line: error: ...", and the log; NULL: "kernel" */
  const char* entry;                     /* of SPIR-V with several entry points; NULL: "main" */
  const tuff_kernel_define* defines;     /* NULL: none */
  const tuff_kernel_constant* constants; /* each id once, and known to the kernel; NULL: none */
  uint32_t define_count;
  uint32_t constant_count;
  uint32_t flags;                /* TUFF_KERNEL_ROBUST, TUFF_KERNEL_UNTRUSTED */
  uint32_t reserved;             /* zero */
  uint64_t max_source_bytes;     /* of source and defines together; 0: 1 MiB; at most 64 MiB */
  uint64_t compile_milliseconds; /* of untrusted source; 0: 10,000; at most 3,600,000 */
  uint64_t compile_memory_bytes; /* of untrusted source, address space of its process; 0: 512 MiB; at least 64 MiB */
} tuff_kernel_desc;

/* What was found in the kernel. */
typedef struct tuff_kernel_properties {
  uint32_t struct_size;
  uint32_t binding_count; /* buffers that a launch takes: the highest binding declared, plus one */
  uint32_t used;          /* bit i: binding i is used; where not, the handle may be TUFF_NULL_HANDLE */
  uint32_t read;          /* bit i: binding i is read */
  uint32_t written;       /* bit i: binding i is written */
  uint32_t push_bytes;    /* of push constants: the end of the block's last member */
  uint32_t workgroup_size[3];
  uint32_t shared_bytes;                        /* of shared variables, for each workgroup */
  uint32_t subgroup_size;                       /* that the device runs it with */
  uint32_t max_groups[3];                       /* that a launch may ask for */
  uint32_t buffer_alignment;                    /* buffers (views) begin at a multiple of it */
  int32_t robust;                               /* 1: made with TUFF_KERNEL_ROBUST */
  uint64_t max_buffer_bytes;                    /* that can be bound at once */
  uint64_t min_bytes[TUFF_KERNEL_MAX_BINDINGS]; /* that each buffer holds at least: its block, with one element of an
                                                   array that is declared without a size */
  char name[64];
  char capabilities[256]; /* of SPIR-V that it needs beside Shader, such as "Float64 GroupNonUniformArithmetic" */
} tuff_kernel_properties;

/* Compiles a kernel; what was compiled before comes from the cache on disk, as the library's own kernels do.
 * Errors: COMPILE_FAILED (the compiler's text with file and line, SPIRV-Tools' for a module that is not valid);
 * LIMIT_EXCEEDED (source too long, the time or memory of untrusted source, workgroup size, shared memory, push
 * constants or number of buffers beyond the device's, more than 64 KiB of variables in each invocation, an untrusted
 * kernel of more than 1 MiB as SPIR-V, any of more than 16 MiB); UNSUPPORTED (images, samplers, uniform buffers, sets
 * other than 0, arrays of buffers, entry points that are no compute shaders, capabilities that the device does not
 * have or that are not enabled, TUFF_KERNEL_ROBUST without such checks in the device, TUFF_KERNEL_UNTRUSTED without
 * tuff-compile). #include is COMPILE_FAILED. Freed by tuff_kernel_destroy(), or with its context. */
TUFF_API tuff_status tuff_kernel_create(tuff_context context, const tuff_kernel_desc* desc, tuff_kernel* kernel);

/* Describes the kernel. info->struct_size must be set. */
TUFF_API tuff_status tuff_kernel_info(tuff_kernel kernel, tuff_kernel_properties* info);

/* Runs gx * gy * gz workgroups.
 *   buffers      count handles, buffers[i] for binding i; each is bound whole
 *   count        the kernel's binding_count
 *   push         push_bytes bytes of push constants, read during the call; may be NULL if there are none
 *   push_bytes   the kernel's push_bytes
 *   gx, gy, gz   if any is 0, nothing is run
 * A buffer that the kernel writes may not overlap another one that it uses.
 * Errors: INVALID_ARGUMENT for another count or push_bytes, for a buffer that is too small, mapped, or begins at no
 * multiple of buffer_alignment, for overlaps; LIMIT_EXCEEDED for more groups than max_groups, for a buffer of more than
 * max_buffer_bytes. What a kernel does beyond the end of a buffer is not checked, unless it was made with
 * TUFF_KERNEL_ROBUST. */
TUFF_API tuff_status tuff_kernel_launch(tuff_stream stream, tuff_kernel kernel, const tuff_buffer* buffers,
                                        uint32_t count, const void* push, uint32_t push_bytes, uint32_t gx, uint32_t gy,
                                        uint32_t gz);

/* Ends the handle's life and returns at once; launches that were made go on. TUFF_NULL_HANDLE is accepted and does
 * nothing. */
TUFF_API tuff_status tuff_kernel_destroy(tuff_kernel kernel);

#ifdef __cplusplus
}
#endif

#endif /* TUFF_TUFF_H */
