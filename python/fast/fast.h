/* The compiled part of the Python package: the objects behind contexts, buffers and arrays, and the shortest way from a
 * call in Python to the library. It has no rules of its own. What a call here does not recognise, and what fails, it
 * leaves to the package's Python code by returning None; that code then does all of it, or raises the error. Without
 * this part tuff/_plain.py takes its place.
 *
 * Python's limited API of 3.9: one file serves every later CPython. The library is reached by the addresses of its
 * functions, which setup() receives, so that nothing is linked. */
#ifndef TUFF_PYTHON_FAST_H
#define TUFF_PYTHON_FAST_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03090000
#include <Python.h>
#include <structmember.h>
#include <tuff/tuff.h>

/* The limited API has this name since 3.10; the convention is that of 3.7. */
#ifndef METH_FASTCALL
#define METH_FASTCALL 0x0080
#endif

enum { MAX_RANK = 8, MAX_OPERANDS = 8 };

typedef struct FormulaEntry FormulaEntry;

/* A context's handle, and the formulas that were run in it. */
typedef struct {
  PyObject_HEAD uint64_t handle;
  char is_open;
  unsigned int allocation; /* TUFF_ALLOC_* of every array */
  FormulaEntry* entries; /* a hash table with open addressing; NULL without entries */
  uint32_t capacity;     /* a power of two */
  uint32_t count;
} Session;

/* What owns a tuff_buffer. */
typedef struct {
  PyObject_HEAD PyObject* context;
  PyObject* memory; /* the same object in every view of one allocation; NULL until somebody asks */
  Session* session;
  uint64_t handle, nbytes, offset;
  char owned;
} Buffer;

/* A buffer with a shape and a dtype. */
typedef struct {
  PyObject_HEAD PyObject *buffer, *shape, *dtype;
  uint64_t size;           /* the number of elements */
  uint64_t dims[MAX_RANK]; /* the first `rank` */
  int8_t rank;             /* -1 if the shape is none that calls here take */
  uint8_t code;            /* TUFF_F32 and so on; 0 for a dtype that setup() was not told of */
  uint8_t item;            /* bytes of an element */
} Array;

/* The library's functions that calls here use. */
typedef struct {
  tuff_status (*alloc)(tuff_context, const tuff_alloc_desc*, tuff_buffer*);
  tuff_status (*free)(tuff_buffer);
  tuff_status (*unary)(tuff_stream, const tuff_unary_desc*);
  tuff_status (*binary)(tuff_stream, const tuff_binary_desc*);
  tuff_status (*expr_run)(tuff_stream, tuff_expr, const tuff_expr_run_desc*);
  tuff_status (*reduce)(tuff_stream, const tuff_reduce_desc*);
  tuff_status (*cast)(tuff_stream, const tuff_cast_desc*);
  tuff_status (*gemm)(tuff_stream, const tuff_batched_gemm_desc*);
} Library;

extern Library library;
extern PyTypeObject *array_type, *buffer_type; /* tuff.Array and tuff.Buffer */

/* The library's type of a dtype, or 0. */
uint8_t dtype_code(PyObject* dtype, uint8_t* item);

/* The stream that this thread's operations use; 0 if it cannot be told. */
uint64_t stream_of(const Buffer* buffer);

/* The buffer of an array that calls here take: open, dense, of at most eight axes. NULL for others. */
Buffer* plain_buffer(const Array* array);

/* A result that is allocated and filled without the GIL, and becomes an array with it. */
typedef struct {
  Buffer* like;
  Array* out; /* the array to write to, or NULL */
  uint64_t handle, nbytes;
} Result;

/* Describes the result: `out`, if it is an array of this code and these sizes, or a new one. False: neither. */
int begin_result(Result* result, Buffer* like, PyObject* out, uint8_t code, const uint64_t* dims, int rank,
                 uint64_t nbytes);
/* Without the GIL: allocates what is needed. */
tuff_status allocate_result(Result* result);
/* Frees what was allocated, after a failure. */
void abandon_result(Result* result);
/* A new reference to the array. */
PyObject* end_result(Result* result, PyObject* shape, PyObject* dtype);

/* The tuple of sizes: that of an operand which has them all, or a new one. */
PyObject* shape_tuple(Array* const* arrays, int count, const uint64_t* dims, int rank);

/* The sizes of operands after broadcasting, as in NumPy. False if they do not fit. `same`: all have the same ones. */
int broadcast(Array* const* arrays, int count, uint64_t* dims, int* rank, uint64_t* size, int* same);

/* Forgets all formulas of a session. */
void forget_formulas(Session* session);

PyObject* call_unary(PyObject* module, PyObject* const* arguments, Py_ssize_t count);
PyObject* call_binary(PyObject* module, PyObject* const* arguments, Py_ssize_t count);
PyObject* call_reduce(PyObject* module, PyObject* const* arguments, Py_ssize_t count);
PyObject* call_cast(PyObject* module, PyObject* const* arguments, Py_ssize_t count);
PyObject* call_matmul(PyObject* module, PyObject* const* arguments, Py_ssize_t count);
PyObject* export_tensor(PyObject* module, PyObject* arguments);

int add_objects(PyObject* module);
int add_formulas(PyObject* module);

#endif
