"""What _core describes, in Python alone."""

from __future__ import annotations

import ctypes
import math
import sys
from typing import Callable, Dict, List, Optional, Tuple

import numpy as np

from . import raw

_free = raw.lib["tuff_free"]
_free.argtypes, _free.restype = [ctypes.c_uint64], ctypes.c_int32
_alloc = raw.lib["tuff_alloc_ex"]
_alloc.argtypes, _alloc.restype = [ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p], ctypes.c_int32
_run = raw.lib["tuff_expr_run"]
_run.argtypes, _run.restype = [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p], ctypes.c_int32

_types: List[type] = []  # tuff.Array and tuff.Buffer
_item_sizes: Dict[object, int] = {}

#: Formulas remembered for a session, before all of them are dropped.
_MOST = 4096


class SessionCore:
    """A context's handle, and the formulas that were run in it."""

    __slots__ = ("allocation", "handle", "is_open", "formulas")

    def forget_formulas(self) -> None:
        self.formulas = {}


class BufferCore:
    """What owns a tuff_buffer."""

    __slots__ = ("context", "handle", "nbytes", "_offset", "_session", "_shared", "_owned")

    def _adopt(self, context: object, session: SessionCore, handle: int, nbytes: int, memory: object, offset: int) -> None:
        self.context, self._session = context, session
        self.handle, self.nbytes = handle, nbytes
        self._shared, self._offset = memory, offset
        self._owned = True

    @property
    def _memory(self) -> object:
        """The same object in every view of one allocation."""
        if self._shared is None:
            self._shared = object()
        return self._shared

    def free(self) -> None:
        """Frees the memory now instead of with the object. Using the buffer afterwards is a TuffError."""
        if self._owned:
            self._owned = False
            if self._session.is_open:  # a closed context has already freed everything
                _free(self.handle)

    def __del__(self) -> None:
        try:
            self.free()
        except AttributeError:  # it never had a handle
            pass


class ArrayCore:
    """A buffer with a shape and a dtype."""

    __slots__ = ("buffer", "shape", "dtype")


def setup(array: type, buffer: type, addresses: Tuple[int, ...]) -> None:
    _types[:] = array, buffer


def know_dtype(dtype: object, code: int, itemsize: int) -> None:
    _item_sizes[dtype] = itemsize


def streams_are_used() -> None:
    pass


def unary(op: int, x: object, alpha: float, out: object) -> None:
    return None


def binary(op: int, a: object, b: object, out: object) -> None:
    return None


def reduce(op: int, x: object, axis: object, keepdims: object, dtype: object) -> None:
    return None


def cast(x: object, dtype: object) -> None:
    return None


def matmul(a: object, a_transposed: bool, b: object, b_transposed: bool) -> None:
    return None


# Capsules of DLPack (fast/dlpack.c has the structures). A function in Python cannot be what ends a capsule, because it may
# end while an exception is being raised. So those that nobody took are found when the next one is wanted.

_Delete = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_exported: Dict[int, Tuple[object, ...]] = {}
_untaken: List[Tuple[object, bytes, int]] = []
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_New", ctypes.pythonapi))
_is_capsule = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))


def _delete(address: int, exported: Dict[int, Tuple[object, ...]] = _exported) -> None:
    exported.pop(address)[0]()


_deleter = _Delete(_delete)
ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_IncRef", ctypes.pythonapi))(_deleter)  # other libraries call it until the end


def collect_capsules() -> None:
    """Ends those that nobody took and nobody has any more."""
    for entry in list(_untaken):
        capsule, name, held = entry
        if not _is_capsule(capsule, name):  # taken: its user deletes it
            _untaken.remove(entry)
        elif sys.getrefcount(capsule) <= 3:  # `entry`, `capsule` and the argument here
            _untaken.remove(entry)
            _delete(held)


def export_tensor(
    release: Callable[[], None], address: int, shape: Tuple[int, ...], strides: Tuple[int, ...], code: int, bits: int, minor: int, flags: int
) -> object:
    ndim = len(shape)
    sizes = (ctypes.c_int64 * (2 * ndim))(*shape, *strides)
    where = ctypes.addressof(sizes)
    kind = code | bits << 8 | 1 << 16
    # data, device, ndim and dtype, shape, strides, byte_offset
    tensor = (address, 1, ndim | kind << 32, where, where + 8 * ndim, 0)
    end = ctypes.cast(_deleter, ctypes.c_void_p).value
    words = (*tensor, 0, end) if minor < 0 else (1 | minor << 32, 0, end, flags, *tensor)
    structure = (ctypes.c_uint64 * len(words))(*words)
    held = ctypes.addressof(structure)
    name = b"dltensor" if minor < 0 else b"dltensor_versioned"
    _exported[held] = release, structure, sizes
    capsule = _new_capsule(held, name, None)
    _untaken.append((capsule, name, held))
    return capsule


def allocate(context: object, session: SessionCore, shape: Tuple[int, ...], dtype: object, flags: int) -> Optional[object]:
    """An array of a shape and a dtype that are known to be valid, or the status if the library refuses."""
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes >= 2**63:
        return None
    desc, handle = raw.AllocDesc(flags=flags | session.allocation, bytes=nbytes), ctypes.c_uint64()
    status = _alloc(session.handle, ctypes.addressof(desc), ctypes.addressof(handle))
    if status != raw.OK:
        return status
    buffer = object.__new__(_types[1])
    buffer._adopt(context, session, handle.value, nbytes, None, 0)
    array = object.__new__(_types[0])
    array.buffer, array.shape, array.dtype = buffer, shape, dtype
    return array


def _kind(value: object) -> object:
    """Every property of a number that the functions decide by; None for what is no number of Python's."""
    if type(value) is int:
        bits = (~value if value < 0 else value).bit_length()
        return None if bits > 63 else (value < 0, next(limit for limit in (7, 8, 15, 16, 31, 32, 63) if bits <= limit))
    return type(value) if type(value) in (float, bool) else None


class Formula:
    """A function of the package that runs one formula. It remembers which, for each session and each combination of
    operands' types; run() then repeats that."""

    __slots__ = ("__weakref__",)

    def _key(self, out: object, operands: Tuple[object, ...]) -> Optional[Tuple[SessionCore, tuple]]:
        session, key = None, [self, None if out is None else out.dtype]
        for value in operands:
            if type(value) is _types[0]:
                own = value.buffer._session
                if session is not None and own is not session:
                    return None
                session = own
                key.append(value.dtype)
            else:
                kind = _kind(value)
                if kind is None:
                    return None
                key.append(kind)
        return None if session is None or not session.is_open else (session, tuple(key))

    def run(self, out: object, *operands: object) -> Optional[object]:
        if out is not None and type(out) is not _types[0]:
            return None
        found = self._key(out, operands)
        known = None if found is None else found[0].formulas.get(found[1])
        if known is None:
            return None
        expr, _, dtype, passed = known
        arrays = [value for value in operands if type(value) is _types[0]]
        shape = arrays[0].shape
        for array in arrays:
            if array.shape != shape:
                return None  # broadcasting is for the general code
        context = arrays[0].buffer.context
        if out is None:
            result = allocate(context, found[0], shape, dtype, raw.ALLOC_UNINITIALIZED)
            if type(result) is not _types[0]:
                return None
        elif out.shape == shape and out.buffer._session is found[0]:
            result = out
        else:
            return None
        inputs = (raw.ExprOperand * len(operands))()
        for operand, value, how in zip(inputs, operands, passed):
            if how == 0:
                operand.buffer = value.buffer.handle
            elif how == 1:
                operand.integer = value
            else:
                operand.value = float(np.float16(value)) if how == 3 else value
        output = raw.ExprOperand(buffer=result.buffer.handle)
        desc = raw.ExprRunDesc(rank=1, input_count=len(operands), output_count=1)
        desc.inputs, desc.outputs = inputs, ctypes.pointer(output)
        desc.shape[0] = math.prod(shape)
        return result if _run(context.stream_handle, expr, ctypes.addressof(desc)) == raw.OK else None

    def learn(self, out: object, operands: tuple, expr: int, compiled: object, dtype: object, passed: bytes) -> bool:
        """What the function did with such operands. passed has a byte for each: 0 for an array, 1 for a number that is
        passed as an integer, 2 as a float, 3 as a float rounded to 16 bits."""
        found = self._key(out, operands)
        if found is None:
            return False
        if len(found[0].formulas) >= _MOST:
            found[0].forget_formulas()
        found[0].formulas[found[1]] = expr, compiled, dtype, passed
        return True
