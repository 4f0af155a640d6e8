/* The types: SessionCore, BufferCore and ArrayCore, which the classes in Python extend. */
#include <stddef.h>
#include <string.h>

#include "fast.h"

Library library;
PyTypeObject *array_type, *buffer_type;

/* The dtypes that know_dtype() was told of. NumPy has one object of each of its types, so comparing addresses finds
 * nearly all; another one is looked up by Python. */
enum { MAX_DTYPES = 32 };
static struct {
  PyObject* dtype;
  uint8_t code, item;
} dtypes[MAX_DTYPES];
static int dtype_count;

static int streams_entered;

uint8_t dtype_code(PyObject* dtype, uint8_t* item) {
  for (int i = 0; i < dtype_count; ++i) {
    if (dtypes[i].dtype == dtype) return *item = dtypes[i].item, dtypes[i].code;
  }
  return *item = 0;
}

static void destroy(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_Del(self);
  Py_DECREF(type);
}

/* --- sessions --- */

static int session_traverse(PyObject* self, visitproc visit, void* arg) {
  (void)self;
  Py_VISIT(Py_TYPE(self));
  return 0; /* formulas refer to nothing that refers to a session */
}

static void session_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  forget_formulas((Session*)self);
  destroy(self);
}

static PyObject* session_forget(PyObject* self, PyObject* nothing) {
  (void)nothing;
  forget_formulas((Session*)self);
  Py_RETURN_NONE;
}

static PyMemberDef session_members[] = {
    {"handle", T_ULONGLONG, offsetof(Session, handle), 0, NULL},
    {"is_open", T_BOOL, offsetof(Session, is_open), 0, NULL},
    {"allocation", T_UINT, offsetof(Session, allocation), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyMethodDef session_methods[] = {
    {"forget_formulas", session_forget, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot session_slots[] = {
    {Py_tp_traverse, (void*)session_traverse},
    {Py_tp_dealloc, (void*)session_dealloc},
    {Py_tp_members, session_members},
    {Py_tp_methods, session_methods},
    {0, NULL},
};
static PyType_Spec session_spec = {"tuff._fast.SessionCore", sizeof(Session), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, session_slots};
static PyTypeObject* session_type;

/* --- buffers --- */

static int buffer_traverse(PyObject* self, visitproc visit, void* arg) {
  Buffer* buffer = (Buffer*)self;
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(buffer->context);
  Py_VISIT(buffer->memory);
  Py_VISIT((PyObject*)buffer->session);
  return 0;
}

/* A closed context has already freed everything. Errors are ignored: nobody is there to be told. */
static void release(Buffer* buffer) {
  if (!buffer->owned) return;
  buffer->owned = 0;
  if (buffer->session == NULL || !buffer->session->is_open) return;
  const uint64_t handle = buffer->handle;
  Py_BEGIN_ALLOW_THREADS;
  library.free(handle);
  Py_END_ALLOW_THREADS;
}

static int buffer_clear(PyObject* self) {
  Buffer* buffer = (Buffer*)self;
  release(buffer);
  Py_CLEAR(buffer->context);
  Py_CLEAR(buffer->memory);
  Py_CLEAR(buffer->session);
  return 0;
}

static void buffer_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  buffer_clear(self);
  destroy(self);
}

/* _adopt(context, session, handle, nbytes, memory, offset): memory None: of its own. */
static PyObject* buffer_adopt(PyObject* self, PyObject* arguments) {
  Buffer* buffer = (Buffer*)self;
  PyObject *context, *session, *memory;
  unsigned long long handle, nbytes, offset;
  if (!PyArg_ParseTuple(arguments, "OOKKOK", &context, &session, &handle, &nbytes, &memory, &offset)) return NULL;
  if (!PyObject_TypeCheck(session, session_type) || buffer->session != NULL) {
    PyErr_SetString(PyExc_TypeError, "a buffer adopts one handle of a session");
    return NULL;
  }
  Py_INCREF(context), buffer->context = context;
  Py_INCREF(session), buffer->session = (Session*)session;
  if (memory != Py_None) Py_INCREF(memory), buffer->memory = memory;
  buffer->handle = handle, buffer->nbytes = nbytes, buffer->offset = offset;
  buffer->owned = 1;
  Py_RETURN_NONE;
}

static PyObject* buffer_free(PyObject* self, PyObject* nothing) {
  (void)nothing;
  release((Buffer*)self);
  Py_RETURN_NONE;
}

static PyObject* buffer_memory(PyObject* self, void* closure) {
  Buffer* buffer = (Buffer*)self;
  (void)closure;
  if (buffer->memory == NULL) {
    buffer->memory = PyObject_CallFunctionObjArgs((PyObject*)&PyBaseObject_Type, NULL);
    if (buffer->memory == NULL) return NULL;
  }
  Py_INCREF(buffer->memory);
  return buffer->memory;
}

static PyMemberDef buffer_members[] = {
    {"context", T_OBJECT, offsetof(Buffer, context), READONLY, NULL},
    {"handle", T_ULONGLONG, offsetof(Buffer, handle), READONLY, NULL},
    {"nbytes", T_ULONGLONG, offsetof(Buffer, nbytes), READONLY, NULL},
    {"_offset", T_ULONGLONG, offsetof(Buffer, offset), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyGetSetDef buffer_getters[] = {
    {"_memory", buffer_memory, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMethodDef buffer_methods[] = {
    {"_adopt", buffer_adopt, METH_VARARGS, NULL},
    {"free", buffer_free, METH_NOARGS,
     "free($self, /)\n--\n\nFrees the memory now instead of with the object. Using the buffer afterwards is a "
     "TuffError."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot buffer_slots[] = {
    {Py_tp_traverse, (void*)buffer_traverse},
    {Py_tp_clear, (void*)buffer_clear},
    {Py_tp_dealloc, (void*)buffer_dealloc},
    {Py_tp_members, buffer_members},
    {Py_tp_getset, buffer_getters},
    {Py_tp_methods, buffer_methods},
    {0, NULL},
};
static PyType_Spec buffer_spec = {"tuff._fast.BufferCore", sizeof(Buffer), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, buffer_slots};

/* --- arrays --- */

static int array_traverse(PyObject* self, visitproc visit, void* arg) {
  Array* array = (Array*)self;
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(array->buffer);
  Py_VISIT(array->shape);
  Py_VISIT(array->dtype);
  return 0;
}

static int array_clear(PyObject* self) {
  Array* array = (Array*)self;
  Py_CLEAR(array->buffer);
  Py_CLEAR(array->shape);
  Py_CLEAR(array->dtype);
  array->rank = -1;
  return 0;
}

static void array_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  array_clear(self);
  destroy(self);
}

/* The sizes of a tuple of integers. What calls here do not take has rank -1; overflow is left to Python too. */
static void read_shape(Array* array) {
  array->rank = -1;
  array->size = 0;
  if (array->shape == NULL || !PyTuple_CheckExact(array->shape)) return;
  const Py_ssize_t rank = PyTuple_Size(array->shape);
  if (rank < 0 || rank > MAX_RANK) return;
  uint64_t size = 1;
  for (Py_ssize_t axis = 0; axis < rank; ++axis) {
    PyObject* one = PyTuple_GetItem(array->shape, axis);
    if (one == NULL || !PyLong_CheckExact(one)) return;
    const long long value = PyLong_AsLongLong(one);
    if (value < 0) {
      PyErr_Clear();
      return;
    }
    array->dims[axis] = (uint64_t)value;
    if (value != 0 && size > UINT64_MAX / 64 / (uint64_t)value) return;
    size *= (uint64_t)value;
  }
  array->size = size;
  array->rank = (int8_t)rank;
}

static PyObject* returned(PyObject* value, const char* name) {
  if (value == NULL) {
    PyErr_SetString(PyExc_AttributeError, name);
    return NULL;
  }
  Py_INCREF(value);
  return value;
}

static int assign(PyObject** to, PyObject* value) {
  PyObject* old = *to;
  Py_XINCREF(value);
  *to = value;
  Py_XDECREF(old);
  return 0;
}

static PyObject* array_get_buffer(PyObject* self, void* closure) {
  (void)closure;
  return returned(((Array*)self)->buffer, "buffer");
}
static PyObject* array_get_shape(PyObject* self, void* closure) {
  (void)closure;
  return returned(((Array*)self)->shape, "shape");
}
static PyObject* array_get_dtype(PyObject* self, void* closure) {
  (void)closure;
  return returned(((Array*)self)->dtype, "dtype");
}
static int array_set_buffer(PyObject* self, PyObject* value, void* closure) {
  (void)closure;
  return assign(&((Array*)self)->buffer, value);
}
static int array_set_shape(PyObject* self, PyObject* value, void* closure) {
  (void)closure;
  assign(&((Array*)self)->shape, value);
  read_shape((Array*)self);
  return 0;
}
static int array_set_dtype(PyObject* self, PyObject* value, void* closure) {
  Array* array = (Array*)self;
  (void)closure;
  array->code = dtype_code(value, &array->item);
  return assign(&array->dtype, value);
}

static PyGetSetDef array_getters[] = {
    {"buffer", array_get_buffer, array_set_buffer, NULL, NULL},
    {"shape", array_get_shape, array_set_shape, NULL, NULL},
    {"dtype", array_get_dtype, array_set_dtype, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot array_slots[] = {
    {Py_tp_traverse, (void*)array_traverse},
    {Py_tp_clear, (void*)array_clear},
    {Py_tp_dealloc, (void*)array_dealloc},
    {Py_tp_getset, array_getters},
    {0, NULL},
};
static PyType_Spec array_spec = {"tuff._fast.ArrayCore", sizeof(Array), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, array_slots};

Buffer* plain_buffer(const Array* array) {
  if (array->rank < 0 || array->code == 0 || array->buffer == NULL || Py_TYPE(array->buffer) != buffer_type)
    return NULL;
  Buffer* buffer = (Buffer*)array->buffer;
  return buffer->session != NULL && buffer->session->is_open ? buffer : NULL;
}

uint64_t stream_of(const Buffer* buffer) {
  if (!streams_entered) return buffer->session->handle;
  PyObject* handle = PyObject_GetAttrString(buffer->context, "stream_handle");
  const uint64_t value = handle == NULL ? 0 : PyLong_AsUnsignedLongLong(handle);
  Py_XDECREF(handle);
  if (PyErr_Occurred() == NULL) return value;
  PyErr_Clear();
  return 0;
}

/* --- results --- */

int begin_result(Result* result, Buffer* like, PyObject* out, uint8_t code, const uint64_t* dims, int rank,
                 uint64_t nbytes) {
  result->like = like, result->out = NULL, result->handle = 0, result->nbytes = nbytes;
  if (out == Py_None) return 1;
  if (Py_TYPE(out) != array_type) return 0;
  Array* array = (Array*)out;
  Buffer* buffer = plain_buffer(array);
  if (buffer == NULL || buffer->session != like->session || array->code != code || array->rank != rank) return 0;
  if (memcmp(array->dims, dims, (size_t)rank * sizeof *dims) != 0) return 0;
  result->out = array, result->handle = buffer->handle;
  return 1;
}

tuff_status allocate_result(Result* result) {
  if (result->out != NULL) return TUFF_OK;
  const Session* session = result->like->session;
  const tuff_alloc_desc desc = {sizeof desc, TUFF_ALLOC_UNINITIALIZED | session->allocation, result->nbytes, NULL};
  return library.alloc(session->handle, &desc, &result->handle);
}

void abandon_result(Result* result) {
  if (result->out == NULL && result->handle != 0) library.free(result->handle);
}

/* An array that owns the handle. */
static PyObject* new_array(PyObject* context, Session* session, uint64_t handle, uint64_t nbytes, PyObject* shape,
                           PyObject* dtype) {
  Buffer* buffer = (Buffer*)PyType_GenericAlloc(buffer_type, 0);
  if (buffer == NULL) {
    library.free(handle);
    return NULL;
  }
  Py_INCREF(context), buffer->context = context;
  Py_INCREF(session), buffer->session = session;
  buffer->handle = handle, buffer->nbytes = nbytes, buffer->owned = 1;
  Array* array = (Array*)PyType_GenericAlloc(array_type, 0);
  if (array == NULL) {
    Py_DECREF(buffer);
    return NULL;
  }
  array->buffer = (PyObject*)buffer;
  Py_INCREF(shape), array->shape = shape;
  Py_INCREF(dtype), array->dtype = dtype;
  read_shape(array);
  array->code = dtype_code(dtype, &array->item);
  return (PyObject*)array;
}

PyObject* end_result(Result* result, PyObject* shape, PyObject* dtype) {
  if (result->out == NULL) {
    return new_array(result->like->context, result->like->session, result->handle, result->nbytes, shape, dtype);
  }
  Py_INCREF(result->out);
  return (PyObject*)result->out;
}

/* allocate(context, session, shape, dtype, flags): an array, the status if the library refuses, or None. */
static PyObject* allocate(PyObject* module, PyObject* const* arguments, Py_ssize_t count) {
  (void)module;
  if (count != 5 || !PyObject_TypeCheck(arguments[1], session_type) || !PyLong_CheckExact(arguments[4])) Py_RETURN_NONE;
  Session* session = (Session*)arguments[1];
  Array sizes = {.shape = arguments[2]};
  read_shape(&sizes);
  const uint8_t code = dtype_code(arguments[3], &sizes.item);
  const unsigned long flags = PyLong_AsUnsignedLong(arguments[4]);
  PyErr_Clear();
  if (sizes.rank < 0 || code == 0 || !session->is_open || array_type == NULL) Py_RETURN_NONE;
  const tuff_alloc_desc desc = {sizeof desc, (uint32_t)flags | session->allocation, sizes.size * sizes.item, NULL};
  tuff_buffer handle = 0;
  tuff_status status;
  Py_BEGIN_ALLOW_THREADS;
  status = library.alloc(session->handle, &desc, &handle);
  Py_END_ALLOW_THREADS;
  if (status != TUFF_OK) return PyLong_FromLong(status);
  return new_array(arguments[0], session, handle, desc.bytes, arguments[2], arguments[3]);
}

PyObject* shape_tuple(Array* const* arrays, int count, const uint64_t* dims, int rank) {
  for (int i = 0; i < count; ++i) {
    if (arrays[i]->rank == rank && memcmp(arrays[i]->dims, dims, (size_t)rank * sizeof *dims) == 0) {
      Py_INCREF(arrays[i]->shape);
      return arrays[i]->shape;
    }
  }
  PyObject* shape = PyTuple_New(rank);
  for (int axis = 0; shape != NULL && axis < rank; ++axis) {
    PyObject* size = PyLong_FromUnsignedLongLong(dims[axis]);
    if (size == NULL) {
      Py_DECREF(shape);
      return NULL;
    }
    PyTuple_SetItem(shape, axis, size);
  }
  return shape;
}

int broadcast(Array* const* arrays, int count, uint64_t* dims, int* rank, uint64_t* size, int* same) {
  const Array* first = arrays[0];
  *same = 1;
  *rank = first->rank;
  for (int i = 1; i < count; ++i) {
    if (arrays[i]->rank > *rank) *rank = arrays[i]->rank;
    if (arrays[i]->rank != first->rank || memcmp(arrays[i]->dims, first->dims, (size_t)first->rank * sizeof *dims) != 0)
      *same = 0;
  }
  if (*same) {
    memcpy(dims, first->dims, (size_t)*rank * sizeof *dims);
    *size = first->size;
    return 1;
  }
  *size = 1;
  for (int axis = 0; axis < *rank; ++axis) {
    uint64_t wanted = 1;
    for (int i = 0; i < count; ++i) {
      const int own = axis - (*rank - arrays[i]->rank);
      const uint64_t found = own < 0 ? 1 : arrays[i]->dims[own];
      if (found == 1) continue;
      if (wanted != 1 && wanted != found) return 0;
      wanted = found;
    }
    dims[axis] = wanted;
    if (wanted != 0 && *size > UINT64_MAX / 64 / wanted) return 0;
    *size *= wanted;
  }
  return 1;
}

/* --- the module's part --- */

/* setup(array_type, buffer_type, (addresses of functions, in the order of Library)) */
static PyObject* setup(PyObject* module, PyObject* arguments) {
  PyObject *array, *buffer, *addresses;
  (void)module;
  if (!PyArg_ParseTuple(arguments, "O!O!O!", &PyType_Type, &array, &PyType_Type, &buffer, &PyTuple_Type, &addresses))
    return NULL;
  uintptr_t found[sizeof(Library) / sizeof(void*)];
  const Py_ssize_t functions = (Py_ssize_t)(sizeof found / sizeof *found);
  if (PyTuple_Size(addresses) != functions) {
    PyErr_SetString(PyExc_ImportError, "tuff._fast is of another version than the package");
    return NULL;
  }
  for (Py_ssize_t i = 0; i < functions; ++i) {
    found[i] = (uintptr_t)PyLong_AsUnsignedLongLong(PyTuple_GetItem(addresses, i));
    if (PyErr_Occurred()) return NULL;
  }
  memcpy(&library, found, sizeof library);
  Py_INCREF(array), array_type = (PyTypeObject*)array;
  Py_INCREF(buffer), buffer_type = (PyTypeObject*)buffer;
  Py_RETURN_NONE;
}

/* know_dtype(dtype, code, bytes of an element) */
static PyObject* know_dtype(PyObject* module, PyObject* arguments) {
  PyObject* dtype;
  unsigned char code, item;
  (void)module;
  if (!PyArg_ParseTuple(arguments, "Obb", &dtype, &code, &item)) return NULL;
  if (dtype_count < MAX_DTYPES) {
    Py_INCREF(dtype); /* for as long as the process */
    dtypes[dtype_count].dtype = dtype;
    dtypes[dtype_count].code = code;
    dtypes[dtype_count++].item = item;
  }
  Py_RETURN_NONE;
}

static PyObject* streams_are_used(PyObject* module, PyObject* nothing) {
  (void)module, (void)nothing;
  streams_entered = 1;
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"setup", setup, METH_VARARGS, NULL},
    {"know_dtype", know_dtype, METH_VARARGS, NULL},
    {"allocate", (PyCFunction)(void (*)(void))allocate, METH_FASTCALL, NULL},
    {"streams_are_used", streams_are_used, METH_NOARGS, NULL},
    {"unary", (PyCFunction)(void (*)(void))call_unary, METH_FASTCALL, NULL},
    {"binary", (PyCFunction)(void (*)(void))call_binary, METH_FASTCALL, NULL},
    {"reduce", (PyCFunction)(void (*)(void))call_reduce, METH_FASTCALL, NULL},
    {"cast", (PyCFunction)(void (*)(void))call_cast, METH_FASTCALL, NULL},
    {"matmul", (PyCFunction)(void (*)(void))call_matmul, METH_FASTCALL, NULL},
    {"export_tensor", export_tensor, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int add_objects(PyObject* module) {
  session_type = (PyTypeObject*)PyType_FromSpec(&session_spec);
  PyObject* buffer = PyType_FromSpec(&buffer_spec);
  PyObject* array = PyType_FromSpec(&array_spec);
  if (session_type == NULL || buffer == NULL || array == NULL) return -1;
  Py_INCREF(session_type);
  if (PyModule_AddIntConstant(module, "VERSION", 3) < 0) return -1; /* that of tuff/_core.py */
  if (PyModule_AddObject(module, "SessionCore", (PyObject*)session_type) < 0) return -1;
  if (PyModule_AddObject(module, "BufferCore", buffer) < 0 || PyModule_AddObject(module, "ArrayCore", array) < 0)
    return -1;
  return 0;
}

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "tuff._fast", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__fast(void) {
  PyObject* module = PyModule_Create(&definition);
  if (module != NULL && (add_objects(module) < 0 || add_formulas(module) < 0)) {
    Py_DECREF(module);
    return NULL;
  }
  return module;
}
