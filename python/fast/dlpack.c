/* Tensors of DLPack (https://dmlc.github.io/dlpack): capsules over memory that Python keeps. tuff/_dlpack.py decides
 * what they say. They are freed by whoever uses the memory, on any thread and also while an exception is being raised,
 * which functions in Python could not do. */
#include "fast.h"

#include <stdlib.h>

/* dlpack.h, version 1.1 */
typedef struct {
  int32_t type, number;
} Device;
typedef struct {
  uint8_t code, bits;
  uint16_t lanes;
} Type;
typedef struct {
  void* data;
  Device device;
  int32_t ndim;
  Type dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} Tensor;
typedef struct Managed {
  Tensor tensor;
  void* context;
  void (*deleter)(struct Managed*);
} Managed;
typedef struct Versioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(struct Versioned*);
  uint64_t flags;
  Tensor tensor;
} Versioned;

/* Calls the function that Python gave, and drops it. */
static void let_go(void* context) {
  if (!Py_IsInitialized()) return; /* the process ends */
  const PyGILState_STATE state = PyGILState_Ensure();
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyObject* release = (PyObject*)context;
  PyObject* result = PyObject_CallObject(release, NULL);
  if (result == NULL) PyErr_WriteUnraisable(release);
  Py_XDECREF(result);
  Py_DECREF(release);
  PyErr_Restore(type, value, trace);
  PyGILState_Release(state);
}

static void delete_managed(Managed* managed) {
  let_go(managed->context);
  free(managed);
}

static void delete_versioned(Versioned* versioned) {
  let_go(versioned->context);
  free(versioned);
}

/* Of a capsule whose tensor nobody took; takers rename it. */
static void end_managed(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, "dltensor")) return;
  Managed* managed = (Managed*)PyCapsule_GetPointer(capsule, "dltensor");
  managed->deleter(managed);
}

static void end_versioned(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, "dltensor_versioned")) return;
  Versioned* versioned = (Versioned*)PyCapsule_GetPointer(capsule, "dltensor_versioned");
  versioned->deleter(versioned);
}

/* The shape and the strides behind a structure of `size` bytes. */
static int fill(Tensor* tensor, void* after, PyObject* shape, PyObject* strides) {
  tensor->shape = (int64_t*)after;
  tensor->strides = tensor->shape + tensor->ndim;
  for (int32_t axis = 0; axis < tensor->ndim; ++axis) {
    tensor->shape[axis] = PyLong_AsLongLong(PyTuple_GetItem(shape, axis));
    tensor->strides[axis] = PyLong_AsLongLong(PyTuple_GetItem(strides, axis));
    if (PyErr_Occurred()) return 0;
  }
  return 1;
}

/* export_tensor(release, address, shape, strides, code, bits, minor, flags): a capsule over the host's memory at an
 * address. release() is called when it is no longer used. minor: that of the version 1.x of the capsule; -1: one
 * without a version, which has no flags. */
PyObject* export_tensor(PyObject* module, PyObject* arguments) {
  PyObject *release, *shape, *strides;
  unsigned long long address, flags;
  unsigned char code, bits;
  int minor;
  (void)module;
  if (!PyArg_ParseTuple(arguments, "OKO!O!bbiK", &release, &address, &PyTuple_Type, &shape, &PyTuple_Type, &strides,
                        &code, &bits, &minor, &flags))
    return NULL;
  const Py_ssize_t ndim = PyTuple_Size(shape);
  if (ndim != PyTuple_Size(strides) || ndim > 1 << 16) {
    PyErr_SetString(PyExc_ValueError, "as many strides as sizes are needed");
    return NULL;
  }
  const size_t structure = minor < 0 ? sizeof(Managed) : sizeof(Versioned);
  void* memory = malloc(structure + 2 * (size_t)ndim * sizeof(int64_t));
  if (memory == NULL) return PyErr_NoMemory();
  memset(memory, 0, structure);
  Tensor* tensor = minor < 0 ? &((Managed*)memory)->tensor : &((Versioned*)memory)->tensor;
  tensor->data = (void*)(uintptr_t)address;
  tensor->device.type = 1; /* kDLCPU */
  tensor->ndim = (int32_t)ndim;
  tensor->dtype.code = code, tensor->dtype.bits = bits, tensor->dtype.lanes = 1;
  PyObject* capsule = NULL;
  if (fill(tensor, (char*)memory + structure, shape, strides)) {
    if (minor < 0) {
      Managed* managed = (Managed*)memory;
      managed->context = release, managed->deleter = delete_managed;
      capsule = PyCapsule_New(memory, "dltensor", end_managed);
    } else {
      Versioned* versioned = (Versioned*)memory;
      versioned->major = 1, versioned->minor = (uint32_t)minor, versioned->flags = flags;
      versioned->context = release, versioned->deleter = delete_versioned;
      capsule = PyCapsule_New(memory, "dltensor_versioned", end_versioned);
    }
  }
  if (capsule == NULL)
    free(memory);
  else
    Py_INCREF(release);
  return capsule;
}
