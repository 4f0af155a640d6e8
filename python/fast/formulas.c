/* Formulas that have been run before. A Formula stands for one function of the package, such as tuff.less. It
 * remembers, for each session and each combination of operands' types, which tuff_expr the function ran and what its
 * result's type was; run() then repeats that. The combination has every property of the operands that the functions in
 * Python decide by: the types of arrays, and for numbers whether it is a bool, a float, or an integer and which integer
 * types hold it. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "fast.h"

typedef struct {
  PyObject_HEAD uint64_t id;
} Formula;

/* How a number is passed: as an integer, as a float, or as a float rounded to 16 bits. */
enum { AS_INTEGER = 1, AS_FLOAT, AS_HALF };

struct FormulaEntry {
  uint64_t formula; /* its id, with the type of out in the lowest 8 bits; 0: the entry is empty */
  uint64_t operands;
  uint64_t expr;
  PyObject *compiled, *dtype; /* the owner of expr, and the result's type */
  uint8_t code, item;
  uint8_t passed[MAX_OPERANDS];
};

/* Entries of a session, before all of them are dropped. */
enum { MOST_ENTRIES = 4096 };

typedef struct {
  Array* array; /* NULL for a number */
  double value;
  int64_t integer;
} Operand;

/* Kinds of numbers. Those of arrays are the codes of their types, which are smaller. */
enum { KIND_FLOAT = 64, KIND_BOOL, KIND_INTEGER };

/* The operand's kind, or 0 for what calls here do not take. */
static uint8_t classify(PyObject* given, Operand* operand) {
  operand->array = NULL;
  if (Py_TYPE(given) == array_type) {
    operand->array = (Array*)given;
    return operand->array->code;
  }
  if (PyFloat_CheckExact(given)) {
    operand->value = PyFloat_AsDouble(given);
    return KIND_FLOAT;
  }
  if (PyBool_Check(given)) {
    operand->integer = given == Py_True;
    operand->value = (double)operand->integer;
    return KIND_BOOL;
  }
  if (!PyLong_CheckExact(given)) return 0;
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(given, &overflow);
  if (overflow != 0) return 0;
  operand->integer = value;
  operand->value = (double)value;
  /* The bits that the number needs, without its sign: integer types begin to hold it at 7, 8, 15, 16, 31, 32 and 63. */
  uint64_t magnitude = value < 0 ? ~(uint64_t)value : (uint64_t)value;
  uint8_t bits = 0;
  while (magnitude != 0) magnitude >>= 1, ++bits;
  static const uint8_t limits[] = {7, 8, 15, 16, 31, 32};
  uint8_t level = 0;
  while (level < sizeof limits && bits > limits[level]) ++level;
  return (uint8_t)(KIND_INTEGER + 2 * level + (value < 0));
}

/* The nearest float16, ties to even: 11 bits of fraction, and none below 2^-24. */
static double rounded_to_half(double value) {
  if (!isfinite(value) || value == 0) return value;
  int exponent;
  frexp(value, &exponent);
  const int unit = exponent - 11 < -24 ? -24 : exponent - 11;
  const double rounded = ldexp(nearbyint(ldexp(value, -unit)), unit);
  return fabs(rounded) >= 65520 ? copysign(HUGE_VAL, value) : copysign(rounded, value);
}

static uint64_t hashed(uint64_t formula, uint64_t operands) {
  uint64_t hash = formula * UINT64_C(0x9E3779B97F4A7C15) ^ operands;
  hash ^= hash >> 29;
  hash *= UINT64_C(0xBF58476D1CE4E5B9);
  return hash ^ hash >> 32;
}

/* The entry of a key, or the empty one where it belongs; NULL without a table. */
static FormulaEntry* find(const Session* session, uint64_t formula, uint64_t operands) {
  if (session->entries == NULL) return NULL;
  const uint32_t mask = session->capacity - 1;
  for (uint32_t at = (uint32_t)hashed(formula, operands) & mask;; at = (at + 1) & mask) {
    FormulaEntry* entry = session->entries + at;
    if (entry->formula == 0 || (entry->formula == formula && entry->operands == operands)) return entry;
  }
}

void forget_formulas(Session* session) {
  FormulaEntry* entries = session->entries;
  const uint32_t capacity = session->capacity;
  session->entries = NULL;
  session->capacity = session->count = 0;
  for (uint32_t i = 0; entries != NULL && i < capacity; ++i) {
    Py_XDECREF(entries[i].compiled);
    Py_XDECREF(entries[i].dtype);
  }
  free(entries);
}

/* Makes room for one more entry. */
static int reserve(Session* session) {
  if (session->count >= MOST_ENTRIES) forget_formulas(session);
  if (session->entries != NULL && session->count + 1 <= session->capacity / 2) return 1;
  const uint32_t capacity = session->entries == NULL ? 64 : 2 * session->capacity;
  FormulaEntry* entries = calloc(capacity, sizeof *entries);
  if (entries == NULL) return 0;
  FormulaEntry* old = session->entries;
  const uint32_t before = session->capacity;
  session->entries = entries;
  session->capacity = capacity;
  for (uint32_t i = 0; old != NULL && i < before; ++i) {
    if (old[i].formula != 0) *find(session, old[i].formula, old[i].operands) = old[i];
  }
  free(old);
  return 1;
}

typedef struct {
  Operand operands[MAX_OPERANDS];
  Array* arrays[MAX_OPERANDS];
  int count, array_count;
  Buffer* first;
  uint64_t formula, kinds;
} Call;

/* Reads (out, operand…). False for what calls here do not take. */
static int read_call(const Formula* formula, PyObject* out, PyObject* const* given, Py_ssize_t count, Call* call) {
  if (count < 1 || count > MAX_OPERANDS) return 0;
  call->count = (int)count;
  call->array_count = 0;
  call->first = NULL;
  call->kinds = 0;
  for (int i = 0; i < call->count; ++i) {
    const uint8_t kind = classify(given[i], call->operands + i);
    if (kind == 0) return 0;
    call->kinds = call->kinds << 8 | kind;
    Array* array = call->operands[i].array;
    if (array == NULL) continue;
    Buffer* buffer = plain_buffer(array);
    if (buffer == NULL || (call->first != NULL && buffer->session != call->first->session)) return 0;
    if (call->first == NULL) call->first = buffer;
    call->arrays[call->array_count++] = array;
  }
  if (call->first == NULL || (out != Py_None && Py_TYPE(out) != array_type)) return 0;
  call->formula = formula->id << 8 | (out == Py_None ? 0 : ((Array*)out)->code);
  return 1;
}

static void set_strides(tuff_expr_operand* operand, const Array* array, int rank) {
  int64_t stride = 1;
  operand->strided = 1;
  for (int axis = rank - 1; axis >= 0; --axis) {
    const int own = axis - (rank - array->rank);
    operand->strides[axis] = own < 0 || array->dims[own] == 1 ? 0 : stride;
    if (own >= 0) stride *= (int64_t)array->dims[own];
  }
}

/* run(out, operand…): the result, or None. */
static PyObject* formula_run(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  Call call;
  if (count < 2 || !read_call((Formula*)self, arguments[0], arguments + 1, count - 1, &call)) Py_RETURN_NONE;
  const FormulaEntry* entry = find(call.first->session, call.formula, call.kinds);
  if (entry == NULL || entry->formula == 0) Py_RETURN_NONE;

  tuff_expr_operand inputs[MAX_OPERANDS], output;
  tuff_expr_run_desc desc;
  memset(inputs, 0, (size_t)call.count * sizeof *inputs);
  memset(&output, 0, sizeof output);
  memset(&desc, 0, sizeof desc);
  uint64_t dims[MAX_RANK], size;
  int rank, same;
  if (!broadcast(call.arrays, call.array_count, dims, &rank, &size, &same)) Py_RETURN_NONE;
  for (int i = 0; i < call.count; ++i) {
    const Operand* operand = call.operands + i;
    if (operand->array != NULL) {
      inputs[i].buffer = ((Buffer*)operand->array->buffer)->handle;
      if (!same) set_strides(inputs + i, operand->array, rank);
    } else if (entry->passed[i] == AS_INTEGER) {
      inputs[i].integer = operand->integer;
    } else {
      inputs[i].value = entry->passed[i] == AS_HALF ? rounded_to_half(operand->value) : operand->value;
    }
  }
  const uint64_t stream = stream_of(call.first);
  Result result;
  if (stream == 0 || !begin_result(&result, call.first, arguments[0], entry->code, dims, rank, size * entry->item))
    Py_RETURN_NONE;
  PyObject* shape = shape_tuple(call.arrays, call.array_count, dims, rank);
  if (shape == NULL) return NULL;
  desc.struct_size = sizeof desc;
  desc.inputs = inputs, desc.outputs = &output;
  desc.input_count = (uint32_t)call.count, desc.output_count = 1;
  if (same) { /* dense operands are one axis */
    desc.rank = 1;
    desc.shape[0] = size;
  } else {
    desc.rank = (uint32_t)rank;
    memcpy(desc.shape, dims, (size_t)rank * sizeof *dims);
  }
  const uint64_t expr = entry->expr;
  PyObject *compiled = entry->compiled, *dtype = entry->dtype; /* another thread may drop the entry */
  Py_INCREF(compiled);
  Py_INCREF(dtype);
  tuff_status status;
  Py_BEGIN_ALLOW_THREADS;
  status = allocate_result(&result);
  if (status == TUFF_OK) {
    output.buffer = result.handle;
    status = library.expr_run(stream, expr, &desc);
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
  Py_DECREF(compiled);
  Py_DECREF(dtype);
  return made;
}

/* learn(out, operands, expr, compiled, dtype, passed): what the function did with such operands. passed has a byte for
 * each: AS_… for numbers, 0 for arrays. */
static PyObject* formula_learn(PyObject* self, PyObject* arguments) {
  PyObject *out, *operands, *compiled, *dtype;
  unsigned long long expr;
  const char* passed;
  Py_ssize_t passed_count;
  if (!PyArg_ParseTuple(arguments, "OO!KOOy#", &out, &PyTuple_Type, &operands, &expr, &compiled, &dtype, &passed,
                        &passed_count)) {
    return NULL;
  }
  PyObject* given[MAX_OPERANDS];
  const Py_ssize_t count = PyTuple_Size(operands);
  if (count > MAX_OPERANDS || passed_count != count) Py_RETURN_FALSE;
  for (Py_ssize_t i = 0; i < count; ++i) given[i] = PyTuple_GetItem(operands, i);
  Call call;
  uint8_t item;
  const uint8_t code = dtype_code(dtype, &item);
  if (code == 0 || !read_call((Formula*)self, out, given, count, &call) || !reserve(call.first->session))
    Py_RETURN_FALSE;
  for (int i = 0; i < call.count; ++i) {
    const int known = passed[i] >= AS_INTEGER && passed[i] <= AS_HALF;
    if (known != (call.operands[i].array == NULL)) Py_RETURN_FALSE;
  }
  FormulaEntry* entry = find(call.first->session, call.formula, call.kinds);
  if (entry->formula != 0) Py_RETURN_FALSE; /* another thread was first */
  call.first->session->count++;
  entry->formula = call.formula;
  entry->operands = call.kinds;
  entry->expr = expr;
  Py_INCREF(compiled), entry->compiled = compiled;
  Py_INCREF(dtype), entry->dtype = dtype;
  entry->code = code, entry->item = item;
  memcpy(entry->passed, passed, (size_t)count);
  Py_RETURN_TRUE;
}

static void formula_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

static PyObject* formula_new(PyTypeObject* type, PyObject* arguments, PyObject* named) {
  static uint64_t last;
  (void)arguments, (void)named;
  Formula* formula = (Formula*)PyType_GenericAlloc(type, 0);
  if (formula != NULL) formula->id = ++last;
  return (PyObject*)formula;
}

static PyMethodDef formula_methods[] = {
    {"run", (PyCFunction)(void (*)(void))formula_run, METH_FASTCALL, NULL},
    {"learn", formula_learn, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot formula_slots[] = {
    {Py_tp_new, (void*)formula_new},
    {Py_tp_dealloc, (void*)formula_dealloc},
    {Py_tp_methods, formula_methods},
    {0, NULL},
};
static PyType_Spec formula_spec = {"tuff._fast.Formula", sizeof(Formula), 0, Py_TPFLAGS_DEFAULT, formula_slots};

int add_formulas(PyObject* module) {
  PyObject* type = PyType_FromSpec(&formula_spec);
  if (type == NULL) return -1;
  return PyModule_AddObject(module, "Formula", type);
}
