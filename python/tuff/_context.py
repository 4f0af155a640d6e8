"""Devices and contexts."""

from __future__ import annotations

import ctypes
import functools
import math
import os
import threading
import uuid
import weakref
from dataclasses import dataclass
from typing import Callable, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import raw
from ._array import Array, as_dtype, as_natural, as_numpy, as_shape
from ._buffer import Buffer
from ._core import allocate
from ._checked import I32, U32, OnDevice, element, host_array, is_complex_number, is_whole, real, text, whole
from ._error import check, text_of
from ._handle import Session
from ._kernel import Kernel
from ._registered import Operation
from ._pinned import pinned
from ._profile import Profile
from ._stream import Event, Graph, Stream, current_stream

_TYPES = {
    raw.DEVICE_OTHER: "other",
    raw.DEVICE_INTEGRATED: "integrated",
    raw.DEVICE_DISCRETE: "discrete",
    raw.DEVICE_VIRTUAL: "virtual",
    raw.DEVICE_CPU: "cpu",
    raw.DEVICE_HOST: "host",
}

Shape = Union[int, Sequence[int]]


@dataclass(frozen=True)
class Device:
    """The most commonly used fields of tuff_device_properties. properties has all of them."""

    name: str
    type: str
    backend: str
    vendor: str
    driver: str
    memory_bytes: int
    subgroup_size: int
    properties: raw.DeviceProperties

    @property
    def uuid(self) -> str:
        """The UUID in the form that TUFF_DEVICE and TUFF_VISIBLE_DEVICES accept."""
        return str(uuid.UUID(bytes=bytes(self.properties.uuid)))

    @property
    def queue_families(self) -> List[Dict[str, int]]:
        """The queue families, each with flags (raw.QUEUE_*), count and timestamp_bits."""
        found = self.properties.queue_families[: self.properties.queue_family_count]
        return [{name: getattr(family, name) for name in ("flags", "count", "timestamp_bits")} for family in found]

    @property
    def matrix_shapes(self) -> List[Tuple[int, int, int, str, str, str]]:
        """Cooperative matrix shapes: (m, n, k) and the types of A, B and C, such as "f16"."""
        found = self.properties.matrix_shapes[: self.properties.matrix_shape_count]
        name = {raw.F32: "f32", raw.F16: "f16", raw.BF16: "bf16", raw.F64: "f64"}
        name.update({raw.I32: "i32", raw.U32: "u32", raw.I8: "i8", raw.U8: "u8"})
        name.update({raw.I16: "i16", raw.U16: "u16", raw.F8_E4M3: "f8_e4m3", raw.F8_E5M2: "f8_e5m2"})
        return [(s.m, s.n, s.k, name[s.a_type], name[s.b_type], name[s.c_type]) for s in found]

    @classmethod
    def _of(cls, properties: raw.DeviceProperties) -> Device:
        return cls(
            name=properties.name.decode(errors="replace"),
            type=_TYPES.get(properties.type, "other"),
            backend=properties.backend.decode(),
            vendor=properties.vendor.decode(errors="replace"),
            driver=properties.driver.decode(errors="replace"),
            memory_bytes=properties.memory_bytes,
            subgroup_size=properties.subgroup_size,
            properties=properties,
        )


def device_count() -> int:
    """Returns the number of usable Vulkan devices; 0 without a driver."""
    count = ctypes.c_uint32()
    check(raw.tuff_device_count(count))
    return count.value


def devices() -> List[Device]:
    """Returns the usable Vulkan devices, best first or in the order of TUFF_VISIBLE_DEVICES."""
    found = []
    for index in range(device_count()):
        properties = raw.DeviceProperties()
        check(raw.tuff_device_info(index, properties))
        found.append(Device._of(properties))
    return found


def sensors(index: int = 0) -> Dict[str, Union[None, str, int, float]]:
    """Returns what the system measures of a device now, by the names in tuff_device_sensors; None where no driver tells."""
    now = raw.DeviceSensors()
    check(raw.tuff_device_read_sensors(whole(index, "index", most=U32), now))
    found = {}
    for name, kind in raw.DeviceSensors._fields_:
        value = getattr(now, name)
        if name in ("struct_size", "reserved"):
            continue
        if name == "pci_address":
            found[name] = value.decode() or None
        elif kind is ctypes.c_double:
            found[name] = None if math.isnan(value) else value
        else:
            found[name] = value if name == "heap_bytes" or now.heap_budget_bytes else None
    return found


def device_refusals() -> List[str]:
    """Returns one line for each rejected device: everything that it lacks, or that TUFF_VISIBLE_DEVICES hides it."""
    return text_of(raw.tuff_device_refusals).splitlines()


def backends() -> List[Device]:
    """Returns the devices of plug-ins; Context(backend=device.backend) opens one."""
    count = ctypes.c_uint32()
    check(raw.tuff_backend_count(count))
    found = []
    for index in range(count.value):
        properties = raw.DeviceProperties()
        check(raw.tuff_backend_info(index, properties))
        found.append(Device._of(properties))
    return found


def backend_register(path: Union[str, bytes, os.PathLike]) -> None:
    """Loads a plug-in from a file."""
    name = os.fsencode(path)
    if b"\0" in name:
        raise ValueError(f"path is {path!r}, which has a NUL in it")
    check(raw.tuff_backend_register(name))


def backend_refusals() -> List[str]:
    """Returns one line for each plug-in beside the library that was refused: the file and the reason."""
    return text_of(raw.tuff_backend_refusals).splitlines()


def version() -> Tuple[int, int, int]:
    """Returns the library's version."""
    number = raw.tuff_version()
    return number >> 16, (number >> 8) & 255, number & 255


def _float32_holds(value: int) -> bool:
    return abs(value) <= 2**24 or (abs(value) < 2**128 - 2**103 and int(np.float32(value)) == value)


_log_callbacks: List[object] = []  # never freed: another thread may be inside an old callback


def set_log(callback: Optional[Callable[[int, str], None]], level: int = raw.LOG_INFO) -> None:
    """Sends the library's messages up to this raw.LOG_* level to callback(level, message); None turns logging off.
    The callback may run on any thread and must not call Tuff."""
    if callback is None:
        check(raw.tuff_set_log(raw.LogCallback(), None, raw.LOG_OFF))
        return

    def forward(_user: object, message_level: int, message: bytes) -> None:
        callback(message_level, message.decode(errors="replace"))

    if not callable(callback):
        raise TypeError(f"callback is {callback!r}, which cannot be called")
    level = whole(level, "level", -I32, I32)
    _log_callbacks.append(raw.LogCallback(forward))
    check(raw.tuff_set_log(_log_callbacks[-1], None, level))


class Context(OnDevice):
    """An open device. As a context manager it is closed at the end of the block.

    Closing waits for the work, then frees every buffer and array created from it; using one of them afterwards
    is a TuffError. A context that is not closed is freed with its last array, or at exit. Pinned arrays stay valid:
    while one exists, the device's memory is not released.
    """

    def __init__(
        self,
        device: Union[None, int, str] = None,
        *,
        backend: Optional[str] = None,
        validation: bool = False,
        memory_limit_bytes: int = 0,
        prewarm: bool = False,
    ) -> None:
        """device: an index into devices(), a UUID, or part of a name; by default TUFF_DEVICE, otherwise the first.
        backend: "vulkan" (default), "host" (the slow reference), or "auto" (Vulkan, or host if there is no device).
        validation: load the Khronos validation layer. memory_limit_bytes: 0 for no limit.
        prewarm: compile kernels that earlier processes used in the background."""
        desc = raw.ContextDesc(
            validation=int(validation),
            device=None if device is None else text(str(device), "device"),
            backend=None if backend is None else text(backend, "backend"),
            memory_limit_bytes=whole(memory_limit_bytes, "memory_limit_bytes"),
            prewarm=int(prewarm),
        )
        handle = ctypes.c_uint64()
        check(raw.tuff_context_create(desc, handle))
        self._session = Session(handle.value)
        self._finalizer = weakref.finalize(self, self._session.close)
        # The host can use the memory of such devices as it is: tuff.from_dlpack and numpy.from_dlpack.
        self._is_host = self.device.type in ("cpu", "host")
        self._session.allocation = raw.ALLOC_HOST_VISIBLE if self._is_host else 0
        self._lock = threading.Lock()
        self._callbacks: List[object] = []  # all kept: a callback may replace itself
        self._zeros_handle = raw.NULL_HANDLE
        self._zeros_count = 0

    @property
    def handle(self) -> int:
        """The tuff_context, for tuff.raw."""
        return self._session.handle

    @property
    def stream_handle(self) -> int:
        """The tuff_stream that this thread's operations use, for tuff.raw."""
        stream = current_stream(self)
        return self.handle if stream is None else stream.handle

    def close(self) -> None:
        """Waits, then frees the context and everything created from it. Closing again does nothing."""
        self._finalizer.detach()
        self._session.close()

    @property
    def closed(self) -> bool:
        return not self._session.is_open

    def __enter__(self) -> Context:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return "<tuff.Context closed>" if self.closed else f"<tuff.Context on {self.device.name}>"

    # The device.

    @property
    def device(self) -> Device:
        properties = raw.DeviceProperties()
        check(raw.tuff_context_info(self.handle, properties))
        return Device._of(properties)

    def supports(self, feature: str) -> bool:
        """Whether a feature is supported: "f16", "gemm", "gemm.bf16", "matrix_cores" …; False for unknown names."""
        yes = ctypes.c_int32()
        check(raw.tuff_supports(self.handle, text(feature, "feature"), yes))
        return bool(yes.value)

    def synchronize(self) -> None:
        """Blocks until the work of all streams so far has finished."""
        check(raw.tuff_synchronize(self.handle))

    def stats(self) -> Dict[str, int]:
        """Returns the context's counters by their names in tuff_stats."""
        stats = raw.Stats()
        check(raw.tuff_context_stats(self.handle, stats))
        return {name: getattr(stats, name) for name, _ in raw.Stats._fields_ if name != "struct_size"}

    def profile(self) -> Profile:
        """Profiles the block of ``with ctx.profile() as profile:`` with the device's timestamps. print(profile.table())
        and profile.write("trace.json") show the result."""
        return Profile(self)

    def set_limits(self, memory_bytes: int = 0, wait_milliseconds: int = 0, pipelines: int = 0) -> None:
        """Limits the memory, the duration of a wait and the number of pipelines; 0 selects each default."""
        limits = raw.Limits(memory_bytes=whole(memory_bytes, "memory_bytes"))
        limits.wait_milliseconds = whole(wait_milliseconds, "wait_milliseconds")
        limits.pipelines = whole(pipelines, "pipelines")
        check(raw.tuff_context_set_limits(self.handle, limits))

    @functools.cached_property
    def _has_formulas(self) -> bool:
        return self.supports("expr.u8") and self.supports("expr.u16")  # formulas need storage of both sizes

    # Memory.

    def alloc(
        self,
        nbytes: int,
        *,
        host_visible: bool = False,
        uninitialized: bool = False,
        name: Optional[str] = None,
        host_pinned: bool = False,
        exportable: bool = False,
    ) -> Buffer:
        """Allocates bytes on the device, zero unless uninitialized; see Buffer."""
        return Buffer(
            self,
            nbytes,
            host_visible=host_visible,
            uninitialized=uninitialized,
            name=name,
            host_pinned=host_pinned,
            exportable=exportable,
        )

    def memory(self) -> Dict[str, Union[int, float]]:
        """Returns the context's memory statistics by their names in tuff_memory_stats."""
        memory = raw.MemoryStats()
        check(raw.tuff_context_memory(self.handle, memory))
        return {name: getattr(memory, name) for name, _ in raw.MemoryStats._fields_ if name != "struct_size"}

    def usage(self) -> Dict[str, Union[int, float]]:
        """Returns what the context has done and what it holds, by the names in tuff_usage."""
        usage = raw.Usage()
        check(raw.tuff_context_usage(self.handle, usage))
        return {name: getattr(usage, name) for name, _ in raw.Usage._fields_ if name != "struct_size"}

    def trim(self) -> None:
        """Releases unused memory to the device. Memory of unfinished work is released only after synchronize()."""
        check(raw.tuff_context_trim(self.handle))

    def compact(self, max_bytes: int = 0, max_seconds: float = 0) -> Dict[str, Union[int, float]]:
        """Moves live buffers together, so that free memory is in few large ranges, and returns what it has done by the
        names in tuff_compaction. 0: no limit."""
        milliseconds = 1000 * real(max_seconds, "max_seconds")
        if not 0 <= milliseconds < 2**63:
            raise ValueError(f"max_seconds is {max_seconds!r}")
        limits = raw.CompactDesc(max_bytes=whole(max_bytes, "max_bytes"), max_milliseconds=math.ceil(milliseconds))
        report = raw.Compaction()
        check(raw.tuff_context_compact(self.handle, limits, report))
        return {name: getattr(report, name) for name, _ in raw.Compaction._fields_ if name != "struct_size"}

    def reset_peak(self) -> None:
        """Resets the peak to the current bytes_in_use."""
        check(raw.tuff_context_reset_peak(self.handle))

    def set_memory_callback(self, callback: Optional[Callable[[int, int], None]]) -> None:
        """Sets a callback(bytes_requested, bytes_needed) that is invoked before an allocation fails. The allocation
        succeeds if the callback frees enough (``Buffer.free()``). None: no callback. An exception in the callback is
        printed and does not propagate."""

        if callback is not None and not callable(callback):
            raise TypeError(f"callback is {callback!r}, which cannot be called")

        def forward(_user: object, pressure: object) -> None:
            callback(pressure[0].bytes_requested, pressure[0].bytes_needed)

        function = raw.MemoryCallback() if callback is None else raw.MemoryCallback(forward)
        self._callbacks.append(function)
        check(raw.tuff_context_set_memory_callback(self.handle, function, None))

    def import_host(self, array: np.ndarray) -> Buffer:
        """Creates a buffer over the memory of a C-contiguous NumPy array. Its address and size must be multiples of the
        device's alignment (4096 bytes; np.frombuffer(mmap.mmap(-1, n)) satisfies it). Access the array only inside
        ``with buffer.map()``. The buffer keeps the array alive; call synchronize() before both are released."""
        host_array(array, "array")
        if not (array.flags.c_contiguous and array.flags.writeable):
            raise ValueError("import_host needs a writeable C-contiguous array")
        handle = ctypes.c_uint64()
        check(raw.tuff_buffer_import_host(self.handle, array.ctypes.data, array.nbytes, handle))
        return Buffer._of(self, handle.value, array.nbytes, memory=array)

    def import_fd(self, info: raw.MemoryFd) -> Buffer:
        """Creates a buffer over memory that ``Buffer.export_fd()`` exported, in this process or another. The caller
        keeps info.fd."""
        if not isinstance(info, raw.MemoryFd):
            raise TypeError(f"info is {type(info).__name__}, not a raw.MemoryFd")
        handle = ctypes.c_uint64()
        check(raw.tuff_buffer_import_fd(self.handle, info, handle))
        return Buffer._of(self, handle.value, info.bytes, memory=object())

    def array(self, values: object, dtype: object = None) -> Array:
        """Uploads anything that NumPy accepts as an array, converted to dtype. Without one, NumPy's arrays of integers,
        bool, float16, float32 and complex64 keep their type, float64 and lists of numbers become float32, and complex128
        and lists of complex numbers complex64."""
        if isinstance(values, Array):
            raise TypeError("the values are already on a device; .copy() copies them there, .numpy() to the host")
        source = as_natural(values) if dtype is None else as_numpy(values, as_dtype(dtype))
        result = self.empty(source.shape, source.dtype)
        result.buffer.upload(source)
        return result

    def empty(self, shape: Shape, dtype: object = np.float32) -> Array:
        """Returns an array with undefined contents."""
        return self._make(shape, dtype, uninitialized=True)

    def zeros(self, shape: Shape, dtype: object = np.float32) -> Array:
        return self._make(shape, dtype, uninitialized=False)

    def ones(self, shape: Shape, dtype: object = np.float32) -> Array:
        return self.full(shape, 1, dtype)

    def full(self, shape: Shape, value: Union[float, int], dtype: object = None) -> Array:
        """Returns an array filled with one value on the device. Without a dtype it is float32; an integer that this does
        not hold is a ValueError."""
        if dtype is None:
            dtype = np.complex64 if is_complex_number(value) else np.float32
            if is_whole(value) and not _float32_holds(int(value)):
                raise ValueError(f"{value} is no float32; name the type that keeps it, such as dtype=numpy.int32")
        pattern = element(value, as_dtype(dtype))
        result = self.empty(shape, dtype)
        result.buffer.fill(pattern)
        return result

    def pinned(self, shape: Shape, dtype: object = np.float32) -> np.ndarray:
        """Returns an ordinary NumPy array of zeros in pinned memory, for ``Array.copy_from_async`` and
        ``copy_to_async``. Views of it are pinned too, copies are not."""
        return pinned(self, as_shape(shape), np.dtype(dtype))

    # Streams.

    def stream(self, name: Optional[str] = None) -> Stream:
        """Creates a stream; name appears in profiles and messages. ``with stream:`` uses it."""
        return Stream(self, name)

    @property
    def default_stream(self) -> Stream:
        """The stream that operations use outside of any ``with stream:``."""
        return Stream._default(self)

    @property
    def current_stream(self) -> Stream:
        """The stream that this thread's operations use."""
        return current_stream(self) or self.default_stream

    def event(self, timing: bool = True) -> Event:
        """Creates an event that is not recorded yet: ``stream.record(event)``. Without timing, recording costs less."""
        return Event(self, timing)

    def capture(self, stream: Optional[Stream] = None) -> Graph:
        """``with ctx.capture() as graph:`` captures the operations of the block; see Graph."""
        return Graph(self, stream)

    # Kernels.

    def kernel(self, source: Union[str, bytes, np.ndarray], **options: object) -> Kernel:
        """Compiles a compute shader, GLSL as str or SPIR-V as bytes, or loads PTX; see Kernel for the options."""
        return Kernel(self, source, **options)

    def operation(self, name: str, arguments: Sequence[str], **options: object) -> Operation:
        """Adds an operation to the context, by its name and with declared arguments; see Operation for the options."""
        return Operation(self, name, arguments, **options)

    def operations(self) -> List[str]:
        """Returns the context's operations, each as its name and its arguments in a line."""
        return text_of(lambda *to: raw.tuff_op_list(self.handle, *to)).splitlines()

    def _make(self, shape: Shape, dtype: object, uninitialized: bool) -> Array:
        sizes, kind = as_shape(shape), as_dtype(dtype)
        array = allocate(self, self._session, sizes, kind, raw.ALLOC_UNINITIALIZED if uninitialized else 0)
        if type(array) is int:
            check(array)
        if array is not None:
            return array
        nbytes = math.prod(sizes) * kind.itemsize
        return Array._of(Buffer(self, nbytes, uninitialized=uninitialized), sizes, kind)

    def _zero_indices(self, count: int) -> int:
        """Returns a buffer of at least count uint32 zeros, kept for broadcasting. It is a handle and not an Array,
        because the context owns it and an Array would keep the context alive."""
        with self._lock:
            if count > self._zeros_count:
                capacity = max(count, 2 * self._zeros_count, 1024)
                handle = ctypes.c_uint64()
                check(raw.tuff_alloc(self.handle, 4 * capacity, handle))  # its zeros are visible to every stream
                raw.tuff_free(self._zeros_handle)
                self._zeros_handle, self._zeros_count = handle.value, capacity
            return self._zeros_handle
