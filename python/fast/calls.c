/* Single operations on arrays: functions of elements, reductions, conversions, products. */
#include <limits.h>
#include <string.h>

#include "fast.h"

static int is_float(uint8_t code) { return code == TUFF_F32 || code == TUFF_F16 || code == TUFF_BF16; }

/* unary(op, x, alpha, out): the result, or None. */
PyObject* call_unary(PyObject* module, PyObject* const* arguments, Py_ssize_t count) {
  (void)module;
  if (count != 4 || !PyLong_CheckExact(arguments[0]) || Py_TYPE(arguments[1]) != array_type ||
      !PyFloat_CheckExact(arguments[2])) {
    Py_RETURN_NONE;
  }
  Array* x = (Array*)arguments[1];
  Buffer* buffer = plain_buffer(x);
  const long op = PyLong_AsLong(arguments[0]);
  if (buffer == NULL || !is_float(x->code) || op < 0 || op > INT32_MAX) {
    PyErr_Clear();
    Py_RETURN_NONE;
  }
  const uint64_t stream = stream_of(buffer);
  Result result;
  if (stream == 0 || !begin_result(&result, buffer, arguments[3], x->code, x->dims, x->rank, x->size * x->item))
    Py_RETURN_NONE;
  tuff_unary_desc desc = {sizeof desc,    x->code, (int32_t)op, 0,
                          buffer->handle, 0,       x->size,     PyFloat_AsDouble(arguments[2])};
  tuff_status status;
  Py_BEGIN_ALLOW_THREADS;
  status = allocate_result(&result);
  if (status == TUFF_OK) {
    desc.output = result.handle;
    status = library.unary(stream, &desc);
    if (status != TUFF_OK) abandon_result(&result);
  }
  Py_END_ALLOW_THREADS;
  if (status != TUFF_OK) Py_RETURN_NONE;
  return end_result(&result, x->shape, x->dtype);
}

/* binary(op, a, b, out): the result, or None. Both are arrays of one type. */
PyObject* call_binary(PyObject* module, PyObject* const* arguments, Py_ssize_t count) {
  (void)module;
  if (count != 4 || !PyLong_CheckExact(arguments[0]) || Py_TYPE(arguments[1]) != array_type ||
      Py_TYPE(arguments[2]) != array_type) {
    Py_RETURN_NONE;
  }
  Array* const operands[] = {(Array*)arguments[1], (Array*)arguments[2]};
  const Array *a = operands[0], *b = operands[1];
  Buffer *first = plain_buffer(a), *second = plain_buffer(b);
  const long op = PyLong_AsLong(arguments[0]);
  PyErr_Clear();
  if (first == NULL || second == NULL || first->session != second->session || a->code != b->code) Py_RETURN_NONE;
  if (op < TUFF_BINARY_ADD || op > TUFF_BINARY_POW) Py_RETURN_NONE;
  const int native = is_float(a->code) || (a->code == TUFF_I32 && op != TUFF_BINARY_DIV && op != TUFF_BINARY_POW);
  uint64_t dims[MAX_RANK], size;
  int rank, same;
  if (!native || !broadcast(operands, 2, dims, &rank, &size, &same)) Py_RETURN_NONE;
  const uint64_t stream = stream_of(first);
  Result result;
  if (stream == 0 || !begin_result(&result, first, arguments[3], a->code, dims, rank, size * a->item)) Py_RETURN_NONE;
  PyObject* shape = shape_tuple(operands, 2, dims, rank);
  if (shape == NULL) return NULL;
  tuff_binary_desc desc;
  memset(&desc, 0, sizeof desc);
  desc.struct_size = sizeof desc;
  desc.dtype = a->code;
  desc.op = (int32_t)op;
  desc.a = first->handle, desc.b = second->handle;
  desc.n = size;
  if (!same) {
    desc.rank = (uint32_t)rank;
    for (int axis = 0; axis < rank; ++axis) {
      const int of_a = axis - (rank - a->rank), of_b = axis - (rank - b->rank);
      desc.a_shape[axis] = of_a < 0 ? 1 : a->dims[of_a];
      desc.b_shape[axis] = of_b < 0 ? 1 : b->dims[of_b];
    }
  }
  tuff_status status;
  Py_BEGIN_ALLOW_THREADS;
  status = allocate_result(&result);
  if (status == TUFF_OK) {
    desc.output = result.handle;
    status = library.binary(stream, &desc);
    if (status != TUFF_OK) abandon_result(&result);
  }
  Py_END_ALLOW_THREADS;
  PyObject* made = Py_None;
  if (status == TUFF_OK) {
    made = end_result(&result, shape, a->dtype);
  } else {
    Py_INCREF(made);
  }
  Py_DECREF(shape);
  return made;
}

/* Runs an operation of this descriptor, which gets its output here. */
typedef tuff_status (*Run)(uint64_t stream, uint64_t output, void* desc);

/* Allocates a new array of these sizes, runs an operation that writes it, and returns it, or None. */
static PyObject* made_by(Run run, void* desc, Buffer* like, PyObject* dtype, const uint64_t* dims, int rank) {
  uint8_t item;
  const uint8_t code = dtype_code(dtype, &item);
  uint64_t size = 1;
  for (int axis = 0; axis < rank; ++axis) {
    if (dims[axis] != 0 && size > UINT64_MAX / 64 / dims[axis]) Py_RETURN_NONE;
    size *= dims[axis];
  }
  const uint64_t stream = stream_of(like);
  Result result;
  if (code == 0 || stream == 0 || !begin_result(&result, like, Py_None, code, dims, rank, size * item)) Py_RETURN_NONE;
  PyObject* shape = shape_tuple(NULL, 0, dims, rank);
  if (shape == NULL) return NULL;
  tuff_status status;
  Py_BEGIN_ALLOW_THREADS;
  status = allocate_result(&result);
  if (status == TUFF_OK) {
    status = run(stream, result.handle, desc);
    if (status != TUFF_OK) abandon_result(&result);
  }
  Py_END_ALLOW_THREADS;
  PyObject* made = Py_None;
  if (status == TUFF_OK) {
    made = end_result(&result, shape, dtype);
  } else {
    Py_INCREF(made);
  }
  Py_DECREF(shape);
  return made;
}

static tuff_status run_reduce(uint64_t stream, uint64_t output, void* desc) {
  ((tuff_reduce_desc*)desc)->output = output;
  return library.reduce(stream, desc);
}

/* reduce(op, x, axis, keepdims, dtype): over one axis, or all of them if axis is None. */
PyObject* call_reduce(PyObject* module, PyObject* const* arguments, Py_ssize_t count) {
  (void)module;
  if (count != 5 || !PyLong_CheckExact(arguments[0]) || Py_TYPE(arguments[1]) != array_type) Py_RETURN_NONE;
  Array* x = (Array*)arguments[1];
  Buffer* buffer = plain_buffer(x);
  const long op = PyLong_AsLong(arguments[0]);
  const int all = arguments[2] == Py_None, keeps = arguments[3] == Py_True;
  long axis = all ? 0 : PyLong_CheckExact(arguments[2]) ? PyLong_AsLong(arguments[2]) : LONG_MIN;
  PyErr_Clear();
  uint8_t item;
  const uint8_t code = dtype_code(arguments[4], &item);
  if (buffer == NULL || code == 0 || op < 0 || op > INT32_MAX || (!keeps && arguments[3] != Py_False)) Py_RETURN_NONE;
  if (!all && (axis < -x->rank || axis >= x->rank)) Py_RETURN_NONE;
  if (axis < 0) axis += x->rank;
  tuff_reduce_desc desc;
  memset(&desc, 0, sizeof desc);
  desc.struct_size = sizeof desc;
  desc.dtype = x->code, desc.op = (int32_t)op, desc.output_type = code;
  desc.input = buffer->handle;
  uint64_t dims[MAX_RANK];
  int rank = 0;
  for (int i = 0; i < x->rank; ++i) {
    if (!all && i != axis) {
      dims[rank++] = x->dims[i];
    } else if (keeps) {
      dims[rank++] = 1;
    }
  }
  if (all) {
    desc.rank = 1;
    desc.shape[0] = x->size;
  } else {
    desc.rank = (uint32_t)x->rank;
    desc.axis = (uint32_t)axis;
    memcpy(desc.shape, x->dims, (size_t)x->rank * sizeof *dims);
  }
  return made_by(run_reduce, &desc, buffer, arguments[4], dims, rank);
}

static tuff_status run_cast(uint64_t stream, uint64_t output, void* desc) {
  ((tuff_cast_desc*)desc)->output = output;
  return library.cast(stream, desc);
}

/* cast(x, dtype) */
PyObject* call_cast(PyObject* module, PyObject* const* arguments, Py_ssize_t count) {
  (void)module;
  if (count != 2 || Py_TYPE(arguments[0]) != array_type) Py_RETURN_NONE;
  Array* x = (Array*)arguments[0];
  Buffer* buffer = plain_buffer(x);
  uint8_t item;
  const uint8_t code = dtype_code(arguments[1], &item);
  if (buffer == NULL || code == 0) Py_RETURN_NONE;
  tuff_cast_desc desc = {sizeof desc, x->code, code, 0, buffer->handle, 0, x->size};
  return made_by(run_cast, &desc, buffer, arguments[1], x->dims, x->rank);
}

static tuff_status run_gemm(uint64_t stream, uint64_t output, void* desc) {
  ((tuff_batched_gemm_desc*)desc)->c = output;
  return library.gemm(stream, desc);
}

/* matmul(a, a is transposed, b, b is transposed): of matrices and vectors of one type that is also the result's. */
PyObject* call_matmul(PyObject* module, PyObject* const* arguments, Py_ssize_t count) {
  (void)module;
  if (count != 4 || Py_TYPE(arguments[0]) != array_type || Py_TYPE(arguments[2]) != array_type) Py_RETURN_NONE;
  const Array *a = (Array*)arguments[0], *b = (Array*)arguments[2];
  const int ta = arguments[1] == Py_True, tb = arguments[3] == Py_True;
  Buffer *first = plain_buffer(a), *second = plain_buffer(b);
  if (first == NULL || second == NULL || first->session != second->session || a->code != b->code) Py_RETURN_NONE;
  if (a->code != TUFF_F32 && a->code != TUFF_F16 && a->code != TUFF_F64) Py_RETURN_NONE;
  if (a->rank < 1 || a->rank > 2 || b->rank < 1 || b->rank > 2) Py_RETURN_NONE;
  const uint64_t a_rows = a->rank == 2 ? a->dims[0] : 1, a_cols = a->dims[a->rank - 1];
  const uint64_t b_rows = b->dims[0], b_cols = b->rank == 2 ? b->dims[1] : 1;
  const uint64_t m = ta ? a_cols : a_rows, k = ta ? a_rows : a_cols, n = tb ? b_rows : b_cols;
  if (k != (tb ? b_cols : b_rows)) Py_RETURN_NONE;
  tuff_batched_gemm_desc desc;
  memset(&desc, 0, sizeof desc);
  desc.struct_size = sizeof desc;
  desc.a_type = desc.b_type = desc.c_type = a->code;
  desc.ta = ta, desc.tb = tb;
  desc.m = m, desc.n = n, desc.k = k;
  desc.alpha = 1;
  desc.a = first->handle, desc.b = second->handle;
  desc.lda = a_cols > 0 ? a_cols : 1, desc.ldb = b_cols > 0 ? b_cols : 1, desc.ldc = n > 0 ? n : 1;
  desc.batch_count = 1;
  uint64_t dims[2];
  int rank = 0;
  if (a->rank == 2) dims[rank++] = m;
  if (b->rank == 2) dims[rank++] = n;
  return made_by(run_gemm, &desc, first, a->dtype, dims, rank);
}
