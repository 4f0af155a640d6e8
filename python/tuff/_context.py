"""Devices and contexts."""

from __future__ import annotations

import ctypes
import math
import os
import threading
import uuid
import weakref
from dataclasses import dataclass
from typing import Callable, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import raw
from ._array import Array, Transposed, as_dtype, as_numpy, as_shape
from ._buffer import Buffer
from ._checked import I32, OnDevice, element, host_array, text, whole
from ._error import check, text_of
from ._kernel import Kernel
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
    """What a device is and can do: the fields of tuff_device_properties that a program asks for most.
    properties holds them all."""

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
        """As TUFF_DEVICE and TUFF_VISIBLE_DEVICES take it."""
        return str(uuid.UUID(bytes=bytes(self.properties.uuid)))

    @property
    def queue_families(self) -> List[Dict[str, int]]:
        """Each with flags (raw.QUEUE_*), count and timestamp_bits."""
        found = self.properties.queue_families[: self.properties.queue_family_count]
        return [{name: getattr(family, name) for name in ("flags", "count", "timestamp_bits")} for family in found]

    @property
    def matrix_shapes(self) -> List[Tuple[int, int, int, str, str, str]]:
        """What the matrix units multiply: (m, n, k) and the types of the factors and of the sum, such as "f16"."""
        found = self.properties.matrix_shapes[: self.properties.matrix_shape_count]
        name = {raw.F32: "f32", raw.F16: "f16", raw.BF16: "bf16", raw.F64: "f64"}
        name.update({raw.I32: "i32", raw.U32: "u32", raw.I8: "i8", raw.U8: "u8"})
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
    """How many Vulkan devices are usable; 0 where there is no driver."""
    count = ctypes.c_uint32()
    check(raw.tuff_device_count(count))
    return count.value


def devices() -> List[Device]:
    """The usable Vulkan devices, best first, or as TUFF_VISIBLE_DEVICES has them."""
    found = []
    for index in range(device_count()):
        properties = raw.DeviceProperties()
        check(raw.tuff_device_info(index, properties))
        found.append(Device._of(properties))
    return found


def device_refusals() -> List[str]:
    """A line for each device that was passed over: all that it lacks, or that TUFF_VISIBLE_DEVICES hides it."""
    return text_of(raw.tuff_device_refusals).splitlines()


def version() -> Tuple[int, int, int]:
    """The library's version."""
    number = raw.tuff_version()
    return number >> 16, (number >> 8) & 255, number & 255


_log_callbacks: List[object] = []  # kept for good: another thread may be inside an old one


def set_log(callback: Optional[Callable[[int, str], None]], level: int = raw.LOG_INFO) -> None:
    """Sends the library's messages of at most this raw.LOG_* level to callback(level, message); None stops
    them. The callback runs on any thread and must not call Tuff."""
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


class _Session:
    """A context's handle, apart from the Context so that finalizers can hold it."""

    def __init__(self, handle: int) -> None:
        self.handle = handle
        self.process = os.getpid()
        self.is_open = True
        self._lock = threading.RLock()  # a finalizer may run in the thread that has it
        self._pins = 0  # pinned NumPy arrays, whose memory must not go under them
        self._left = raw.NULL_HANDLE  # closed, and to be destroyed with the last of them

    def close(self) -> None:
        with self._lock:
            if not self.is_open:
                return
            self.is_open = False
            if self._pins > 0:
                self._left, self.handle = self.handle, raw.NULL_HANDLE
        if self.process == os.getpid():  # a forked child has no device to close
            check(raw.tuff_synchronize(self._left) if self._left else raw.tuff_context_destroy(self.handle))

    def pin(self) -> None:
        with self._lock:
            self._pins += 1

    def unpin(self) -> None:
        with self._lock:
            self._pins -= 1
            left = self._left if self._pins == 0 else raw.NULL_HANDLE
        if left and self.process == os.getpid():
            raw.tuff_context_destroy(left)


class Context(OnDevice):
    """An open device. As a context manager it closes at the end of the block.

    Closing waits for the work, then frees every buffer and array made from it; using one of them afterwards
    is a TuffError. A context that is not closed goes with its last array, or at exit. Pinned arrays stay what they are:
    while one lives, the device's memory is not given back.
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
        """device: an index into devices(), a UUID, or a part of a name; by default TUFF_DEVICE, else the first.
        backend: "vulkan" (default), "host" (the slow reference), or "auto" (Vulkan, or host if there is none).
        validation: load the Khronos validation layer. memory_limit_bytes: 0 for no bound.
        prewarm: compile in the background what earlier processes have used."""
        desc = raw.ContextDesc(
            validation=int(validation),
            device=None if device is None else text(str(device), "device"),
            backend=None if backend is None else text(backend, "backend"),
            memory_limit_bytes=whole(memory_limit_bytes, "memory_limit_bytes"),
            prewarm=int(prewarm),
        )
        handle = ctypes.c_uint64()
        check(raw.tuff_context_create(desc, handle))
        self._session = _Session(handle.value)
        self._finalizer = weakref.finalize(self, self._session.close)
        self._lock = threading.Lock()
        self._memory_callbacks: List[object] = []  # kept: one may be replaced from inside itself
        self._zeros_handle = raw.NULL_HANDLE
        self._zeros_count = 0

    @property
    def handle(self) -> int:
        """The tuff_context, for tuff.raw."""
        return self._session.handle

    @property
    def stream_handle(self) -> int:
        """The tuff_stream that this thread's operations go to, for tuff.raw."""
        stream = current_stream(self)
        return self.handle if stream is None else stream.handle

    def close(self) -> None:
        """Waits, then frees the context and all that was made from it. Closing again does nothing."""
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
        """"f16", "gemm", "gemm.bf16", "matrix_cores" …; a name that the library does not know is False."""
        yes = ctypes.c_int32()
        check(raw.tuff_supports(self.handle, text(feature, "feature"), yes))
        return bool(yes.value)

    def synchronize(self) -> None:
        """Blocks until the work given so far has finished, on all streams."""
        check(raw.tuff_synchronize(self.handle))

    def stats(self) -> Dict[str, int]:
        """The context's counters, by their names in tuff_stats."""
        stats = raw.Stats()
        check(raw.tuff_context_stats(self.handle, stats))
        return {name: getattr(stats, name) for name, _ in raw.Stats._fields_ if name != "struct_size"}

    def profile(self) -> Profile:
        """with ctx.profile() as profile: what the context does in the block is timed, by the device's own clock;
        print(profile.table()) and profile.write("trace.json") show it."""
        return Profile(self)

    def set_limits(self, memory_bytes: int = 0, wait_milliseconds: int = 0, pipelines: int = 0) -> None:
        """Bounds the memory and how long one wait may take; 0 is the default of each."""
        limits = raw.Limits(memory_bytes=whole(memory_bytes, "memory_bytes"))
        limits.wait_milliseconds = whole(wait_milliseconds, "wait_milliseconds")
        limits.pipelines = whole(pipelines, "pipelines")
        check(raw.tuff_context_set_limits(self.handle, limits))

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
        """Bytes on the device, zero unless uninitialized; see Buffer."""
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
        """What the context holds of the device's memory, by the names in tuff_memory_stats."""
        memory = raw.MemoryStats()
        check(raw.tuff_context_memory(self.handle, memory))
        return {name: getattr(memory, name) for name, _ in raw.MemoryStats._fields_ if name != "struct_size"}

    def trim(self) -> None:
        """Gives what nobody uses back to the device; synchronize() first for what unfinished work uses."""
        check(raw.tuff_context_trim(self.handle))

    def reset_peak(self) -> None:
        """Makes bytes_in_use of now the peak."""
        check(raw.tuff_context_reset_peak(self.handle))

    def set_memory_callback(self, callback: Optional[Callable[[int, int], None]]) -> None:
        """Calls callback(bytes_requested, bytes_needed) before memory is refused, which it then is unless the callback
        freed enough (``Buffer.free()``). None: no callback. An exception in it is printed and goes no further."""

        if callback is not None and not callable(callback):
            raise TypeError(f"callback is {callback!r}, which cannot be called")

        def forward(_user: object, pressure: object) -> None:
            callback(pressure[0].bytes_requested, pressure[0].bytes_needed)

        function = raw.MemoryCallback() if callback is None else raw.MemoryCallback(forward)
        self._memory_callbacks.append(function)
        check(raw.tuff_context_set_memory_callback(self.handle, function, None))

    def import_host(self, array: np.ndarray) -> Buffer:
        """A buffer over a C-contiguous NumPy array's own memory, which begins and ends on a boundary that the device
        asks for (4096 bytes; np.frombuffer(mmap.mmap(-1, n)) does). Read and write the array inside ``with buffer.map()``
        alone. The array is kept until the buffer has been freed; synchronize() before it goes."""
        host_array(array, "array")
        if not (array.flags.c_contiguous and array.flags.writeable):
            raise ValueError("import_host needs a writeable C-contiguous array")
        handle = ctypes.c_uint64()
        check(raw.tuff_buffer_import_host(self.handle, array.ctypes.data, array.nbytes, handle))
        return Buffer._of(self, handle.value, array.nbytes, memory=array)

    def import_fd(self, info: raw.MemoryFd) -> Buffer:
        """A buffer over memory that ``Buffer.export_fd()`` exported, here or in another process. info.fd stays the
        caller's."""
        if not isinstance(info, raw.MemoryFd):
            raise TypeError(f"info is {type(info).__name__}, not a raw.MemoryFd")
        handle = ctypes.c_uint64()
        check(raw.tuff_buffer_import_fd(self.handle, info, handle))
        return Buffer._of(self, handle.value, info.bytes, memory=object())

    def array(self, values: object, dtype: object = np.float32) -> Array:
        """Uploads anything that NumPy takes for an array, converted to dtype."""
        if isinstance(values, (Array, Transposed)):
            raise TypeError("the values are on a device already; .copy() stays there, .numpy() brings them back")
        source = as_numpy(values, as_dtype(dtype))
        result = self.empty(source.shape, source.dtype)
        result.buffer.upload(source)
        return result

    def empty(self, shape: Shape, dtype: object = np.float32) -> Array:
        """An array whose elements are whatever they are."""
        return self._make(shape, dtype, uninitialized=True)

    def zeros(self, shape: Shape, dtype: object = np.float32) -> Array:
        return self._make(shape, dtype, uninitialized=False)

    def ones(self, shape: Shape, dtype: object = np.float32) -> Array:
        return self.full(shape, 1, dtype)

    def full(self, shape: Shape, value: Union[float, int], dtype: object = np.float32) -> Array:
        """An array of one value, filled on the device."""
        pattern = element(value, as_dtype(dtype))
        result = self.empty(shape, dtype)
        result.buffer.fill(pattern)
        return result

    def pinned(self, shape: Shape, dtype: object = np.float32) -> np.ndarray:
        """A NumPy array of zeros in pinned memory, which ``Array.copy_from_async``, ``copy_to_async`` and the device's
        copy engines work on. It is an array like others; parts of it are pinned too, copies of it are not."""
        return pinned(self, as_shape(shape), np.dtype(dtype))

    # Streams.

    def stream(self, name: Optional[str] = None) -> Stream:
        """An order of work beside the others; name appears in profiles and messages. ``with stream:`` uses it."""
        return Stream(self, name)

    @property
    def default_stream(self) -> Stream:
        """The one that operations go to outside of any ``with stream:``."""
        return Stream._default(self)

    @property
    def current_stream(self) -> Stream:
        """The one that this thread's operations go to."""
        return current_stream(self) or self.default_stream

    def event(self, timing: bool = True) -> Event:
        """An event that is not recorded yet: ``stream.record(event)``. Without timing it costs less."""
        return Event(self, timing)

    def capture(self, stream: Optional[Stream] = None) -> Graph:
        """``with ctx.capture() as graph:`` captures what is called in the block; see Graph."""
        return Graph(self, stream)

    # Kernels.

    def kernel(self, source: Union[str, bytes, np.ndarray], **options: object) -> Kernel:
        """A compute shader, GLSL as str or SPIR-V as bytes; see Kernel for the options."""
        return Kernel(self, source, **options)

    def _make(self, shape: Shape, dtype: object, uninitialized: bool) -> Array:
        sizes, kind = as_shape(shape), as_dtype(dtype)
        nbytes = math.prod(sizes) * kind.itemsize
        return Array._of(Buffer(self, nbytes, uninitialized=uninitialized), sizes, kind)

    def _zero_indices(self, count: int) -> int:
        """A buffer of at least count uint32 zeros, kept for broadcasting. A handle and no Array: an Array
        would keep its context alive, and this one belongs to it."""
        with self._lock:
            if count > self._zeros_count:
                capacity = max(count, 2 * self._zeros_count, 1024)
                handle = ctypes.c_uint64()
                check(raw.tuff_alloc(self.handle, 4 * capacity, handle))  # every stream sees its zeros
                raw.tuff_free(self._zeros_handle)
                self._zeros_handle, self._zeros_count = handle.value, capacity
            return self._zeros_handle
