"""Arrays of other libraries, by DLPack: memory of the host that both sides use, or copies of it.

A device's memory is mapped for the host while another library uses it, and tuff.h allows no operation on it meanwhile. So
memory is shared where that is asked for: of arrays in memory that was allocated for the host, or with copy=False."""

from __future__ import annotations

import ctypes
import enum
import threading
from typing import TYPE_CHECKING, Dict, Optional, Tuple

import numpy as np

from . import raw
from ._buffer import Buffer, HostMemory
from ._context import Context, devices
from ._core import collect_capsules, export_tensor
from ._error import TuffError, check
from ._layout import ReadOnlyLayout, dense_strides, layout_of, memory_of
from ._storage import DLPACK, EXTENSION_TYPES, Storage, as_dtype

if TYPE_CHECKING:
    from ._array import Array

__all__ = ["from_dlpack"]


class DLDeviceType(enum.IntEnum):
    """Where memory is, as DLPack has it."""

    kDLCPU = 1
    kDLCUDAHost = 3
    kDLVulkan = 7
    kDLROCMHost = 11


_HOST = (DLDeviceType.kDLCPU, 0)
_READABLE = (DLDeviceType.kDLCPU, DLDeviceType.kDLCUDAHost, DLDeviceType.kDLROCMHost)

#: Flags of a tensor with a version.
_READ_ONLY, _IS_COPIED = 1, 2

#: DLPack's codes of types, by NumPy's kind, and of those of ml_dtypes.
_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_EXTENSION_CODES = {"bfloat16": 4, "float8_e4m3fn": 10, "float8_e5m2": 12}
_KINDS = {code: kind for kind, code in _CODES.items()}
_EXTENSION_NAMES = {code: name for name, code in _EXTENSION_CODES.items()}

#: 8-bit floats have codes since 1.1.
_NEWEST = (1, 1)


# Exports.


class _Mapping:
    """Memory of a context that is mapped while somebody uses it."""

    def __init__(self, buffer: Buffer) -> None:
        self.memory = buffer._memory  # kept, so that its id() stays its own
        # A handle of its own: the memory stays if the array's is freed.
        self.view = buffer.view(0, buffer.nbytes)
        self.begin = buffer._offset
        self.users = 0
        pointer = ctypes.c_void_p()
        check(raw.tuff_map(self.view.handle, pointer))
        self.address = pointer.value
        self.session = buffer.context._session
        self.session.pin()

    def release(self) -> None:
        with _lock:
            self.users -= 1
            if self.users:
                return
        # Not under the lock: the library has its own. Whoever wants to map the memory again waits until this is done.
        try:
            try:
                if self.session.is_open:
                    check(raw.tuff_unmap(self.view.handle))
            finally:
                self.view.free()
                self.session.unpin()
        finally:
            with _lock:
                del _mappings[id(self.memory)]
                _released.notify_all()


#: By the id() of the memory. One without users is being released.
_mappings: Dict[int, _Mapping] = {}
_lock = threading.RLock()  # the collector may release one in the thread that holds it
_released = threading.Condition(_lock)


def _mapped(buffer: Buffer) -> Tuple[_Mapping, int]:
    """The mapping of a buffer's memory, with one more user, and the address of the buffer's first byte."""
    with _lock:
        _released.wait_for(lambda: id(buffer._memory) not in _mappings or _mappings[id(buffer._memory)].users)
        mapping = _mappings.get(id(buffer._memory))
        if mapping is None:
            try:
                mapping = _Mapping(buffer)
            except TuffError as error:
                raise BufferError(f"the memory cannot be shared without a copy: {error.message}") from None
            _mappings[id(mapping.memory)] = mapping
        mapping.users += 1
        return mapping, mapping.address + buffer._offset - mapping.begin


class _Kept:
    """Keeps a copy for as long as somebody uses it."""

    def __init__(self, values: np.ndarray) -> None:
        self.values: Optional[np.ndarray] = values

    def release(self) -> None:
        self.values = None


def _described(x: Storage) -> Tuple[Buffer, int, Tuple[int, ...], bool]:
    """The buffer that has an array's elements, the first one's number, the strides, and whether they are for reading only."""
    layout = layout_of(x)
    repeats = any(stride == 0 and n > 1 for stride, n in zip(layout.strides, x.shape))
    return layout.base, layout.first, tuple(layout.strides), repeats or isinstance(layout, ReadOnlyLayout)


def _is_for_host(x: Storage) -> bool:
    """Whether the memory was allocated for the host, or is the host's."""
    return isinstance(memory_of(x), (HostMemory, np.ndarray))


def device_of(x: Storage) -> Tuple[DLDeviceType, int]:
    """x.__dlpack_device__(): the host, for devices that are CPUs and for memory that the host can map; otherwise Vulkan's
    device of this number in tuff.devices()."""
    if x.context._is_host or _is_for_host(x):
        return _HOST
    own = x.context.device.uuid
    return DLDeviceType.kDLVulkan, next((i for i, one in enumerate(devices()) if one.uuid == own), 0)


def _code_of(dtype: np.dtype, version: Optional[Tuple[int, int]]) -> int:
    if dtype.kind in _CODES and dtype.type.__module__ != "ml_dtypes":
        return _CODES[dtype.kind]
    name = dtype.type.__name__
    if name != "bfloat16" and (version is None or version < (1, 1)):
        raise BufferError(f"{name} has a name in DLPack since version 1.1, and the other library asks for {version or 'none'}")
    return _EXTENSION_CODES[name]


def export(
    x: Storage,
    stream: object,
    max_version: Optional[Tuple[int, int]],
    dl_device: Optional[Tuple[int, int]],
    copy: Optional[bool],
) -> object:
    """x.__dlpack__()."""
    collect_capsules()
    if stream is not None:
        raise ValueError(f"stream is {stream!r}: memory of the host has none, needs None")
    own = device_of(x)
    wanted = None if dl_device is None else (int(dl_device[0]), int(dl_device[1]))
    if wanted not in (None, _HOST, own):
        raise BufferError(f"dl_device is {wanted}, and the array is on {tuple(map(int, own))}: it can be exported to the host, (1, 0)")
    if own != _HOST and wanted != _HOST and not copy:
        raise BufferError("the array is in a device's memory, which has no address for the host: dl_device=(1, 0) or copy=True copies it")
    version = None if max_version is None or max_version[0] < 1 else min((int(max_version[0]), int(max_version[1])), _NEWEST)
    minor = -1 if version is None else version[1]
    code = _code_of(x.dtype, version)
    shape, bits = tuple(x.shape), 8 * x.dtype.itemsize
    base, first, strides, read_only = _described(x)
    # Without a version there is no flag for it.
    silent = read_only and version is None
    if copy is False and silent:
        raise BufferError("the elements are for reading only, which a capsule without a version cannot say: copy=True copies them")
    if copy is False or (copy is None and not silent and _is_for_host(x)):
        flags = _READ_ONLY if read_only else 0
        if x.size == 0:
            return export_tensor(_nothing, 0, shape, strides, code, bits, minor, flags)
        mapping, address = _mapped(base)
        try:
            return export_tensor(mapping.release, address + first * x.dtype.itemsize, shape, strides, code, bits, minor, flags)
        except BaseException:
            mapping.release()
            raise
    kept = _Kept(x.numpy())
    address = kept.values.ctypes.data if kept.values.size else 0
    return export_tensor(kept.release, address, shape, dense_strides(shape), code, bits, minor, _IS_COPIED)


def _nothing() -> None:
    pass


# Imports.


class _Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("number", ctypes.c_int32)]


class _Type(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _Type),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_SetName", ctypes.pythonapi))

#: (name, name once taken, structure); the names stay in memory as long as the capsules.
_FORMS = ((b"dltensor_versioned", b"used_dltensor_versioned", _Versioned), (b"dltensor", b"used_dltensor", _Managed))


class _Taken:
    """A tensor that was taken from a capsule. It is given back with the object, after the work of a context that uses it."""

    def __init__(self, capsule: object) -> None:
        self.used_by: Optional[Context] = None
        self._managed = None
        for name, used, structure in _FORMS:
            if _valid(capsule, name):
                managed = ctypes.cast(_pointer(capsule, name), ctypes.POINTER(structure)).contents
                if structure is _Versioned and managed.major > _NEWEST[0]:
                    raise BufferError(f"the capsule is of DLPack {managed.major}.{managed.minor}, later than {_NEWEST[0]}")
                _rename(capsule, used)
                self._managed = managed
                break
        else:
            raise BufferError("__dlpack__() gave no capsule of DLPack, or one that was taken before")
        self.read_only = bool(getattr(managed, "flags", 0) & _READ_ONLY)

    def view(self) -> np.ndarray:
        """The elements where they are. The array keeps this object."""
        tensor = self._managed.tensor
        if tensor.device.type not in _READABLE:
            raise BufferError(f"the tensor is on DLPack's device {tensor.device.type}, whose memory the host cannot read")
        dtype = _dtype_of(tensor.dtype)
        shape = tuple(tensor.shape[axis] for axis in range(tensor.ndim))
        strides = tuple(tensor.strides[axis] for axis in range(tensor.ndim)) if tensor.strides else dense_strides(shape)
        if 0 in shape:
            return np.empty(shape, dtype)
        reach = [(n - 1) * stride for n, stride in zip(shape, strides)]
        low, high = sum(one for one in reach if one < 0), sum(one for one in reach if one > 0)
        address = tensor.data + tensor.byte_offset
        block = (ctypes.c_ubyte * ((high - low + 1) * dtype.itemsize)).from_address(address + low * dtype.itemsize)
        block.owner = self
        return np.ndarray(shape, dtype, block, -low * dtype.itemsize, tuple(stride * dtype.itemsize for stride in strides))

    def __del__(self) -> None:
        managed, self._managed = self._managed, None
        if managed is None:
            return
        if self.used_by is not None and not self.used_by.closed:
            self.used_by.synchronize()
        if managed.deleter:
            _Deleter(managed.deleter)(ctypes.addressof(managed))


def _dtype_of(kind: _Type) -> np.dtype:
    name = f"code {kind.code}, {kind.bits} bits, {kind.lanes} lanes"
    if kind.lanes != 1:
        raise BufferError(f"the tensor's elements are vectors ({name}), which arrays do not have")
    if kind.code in _EXTENSION_NAMES and kind.bits == 8 * (2 if kind.code == 4 else 1):
        return as_dtype(_EXTENSION_NAMES[kind.code])
    try:
        return as_dtype(f"{_KINDS[kind.code]}{kind.bits // 8}" if kind.bits % 8 == 0 else "")
    except (KeyError, TypeError):
        raise BufferError(f"arrays do not have the type of the tensor's elements: {name}") from None


def _capsule_of(x: object, copy: Optional[bool]) -> object:
    kind = int(x.__dlpack_device__()[0])
    options: Dict[str, object] = {"max_version": _NEWEST}
    if kind not in _READABLE:
        options["dl_device"] = tuple(map(int, _HOST))
    if copy is False:
        options["copy"] = False
    try:
        return x.__dlpack__(**options)
    except TypeError:  # from before 1.0
        if kind not in _READABLE:
            raise BufferError(f"the array is on DLPack's device {kind}, and its library does not copy it to the host") from None
        return x.__dlpack__()


def from_dlpack(x: object, /, *, device: Optional[Context] = None, copy: Optional[bool] = None) -> Array:
    """An array of another library, such as numpy or torch, that has __dlpack__(): uploaded to a context, by default the default
    one. copy=False shares the memory instead, where the device can import it: its address and size are multiples of 4096.
    The other library must then leave it alone, except between map() and its end. For a tuff.Array, the array itself."""
    from ._array import Array
    from ._default import default_context

    if device is not None and not isinstance(device, Context):
        raise TypeError(f"device is {type(device).__name__}, not a tuff.Context")
    if isinstance(x, Storage):
        if device in (None, x.context):
            return x.copy() if copy else x
        if copy is False:
            raise BufferError("the array is of another context, and cannot be had there without a copy")
        return x.to(device)
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        raise TypeError(f"{type(x).__name__} has no __dlpack__(): tuff.asarray takes what NumPy takes")
    context = default_context() if device is None else device
    taken = _Taken(_capsule_of(x, copy))
    values = taken.view()
    if copy is not False:
        return context.array(values, values.dtype)
    if taken.read_only:
        raise BufferError("the tensor is for reading only, and a device's memory is not: it cannot be had without a copy")
    if values.size == 0:
        return context.empty(values.shape, values.dtype)
    try:
        buffer = context.import_host(values)
    except (TuffError, ValueError) as error:
        raise BufferError(f"the memory cannot be shared without a copy: {getattr(error, 'message', error)}") from None
    taken.used_by = context
    return Array(buffer, values.shape, values.dtype)


DLPACK.update(device=device_of, export=export)

assert set(EXTENSION_TYPES) == set(_EXTENSION_CODES)
