/* tuff_unary_ex() and tuff_binary_ex() on arrays. */
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
