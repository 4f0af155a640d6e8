"""Custom compute shaders."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Optional, Sequence, Tuple, Union

import numpy as np

from . import raw
from ._operands import require_dense
from ._array import Array
from ._buffer import Buffer, _require_context
from ._checked import U32, OnDevice, host_array, real, text, whole, wholes
from ._error import check
from ._handle import own

if TYPE_CHECKING:
    from ._context import Context

Number = Union[bool, int, float, np.generic]
_LANGUAGES = {"glsl": raw.KERNEL_GLSL, "spirv": raw.KERNEL_SPIRV, "ptx": raw.KERNEL_PTX}


def _bits(value: Number) -> int:
    """Returns a constant's bits: a Python number as bool, 32-bit int or float, a NumPy scalar in its own type."""
    if isinstance(value, (bool, np.bool_)):
        return int(value)
    if isinstance(value, int):
        if not -(2**31) <= value < 2**32:
            raise ValueError(f"{value} is not a 32-bit constant; use np.int64 or np.uint64 for a wider one")
        return value & 0xFFFFFFFF
    data = np.asarray(value, np.float32 if isinstance(value, float) and not isinstance(value, np.generic) else None)
    if data.ndim != 0 or data.dtype.kind not in "iuf" or data.dtype.itemsize > 8:
        raise TypeError(f"a constant is a number, not {value!r}")
    return int.from_bytes(data.tobytes(), "little" if np.little_endian else "big")


def kernel_desc(
    source: Union[str, bytes, np.ndarray],
    *,
    name: Optional[str] = None,
    defines: Optional[Mapping[str, object]] = None,
    constants: Optional[Mapping[int, Number]] = None,
    entry: Optional[str] = None,
    robust: bool = False,
    untrusted: bool = False,
    max_source_bytes: int = 0,
    compile_seconds: float = 0,
    compile_memory_bytes: int = 0,
    language: Optional[str] = None,
    workgroup_size: Union[int, Sequence[int]] = (0, 0, 0),
    shared_bytes: int = 0,
) -> raw.KernelDesc:
    """The tuff_kernel_desc of a kernel's source and options, which it keeps alive."""
    if language is None:
        language = "glsl" if isinstance(source, str) else "spirv"
    if language not in _LANGUAGES:
        raise ValueError(f"language is {language!r}, needs one of {', '.join(_LANGUAGES)}")
    data = source.encode() if isinstance(source, str) else _bytes(source, "source")
    threads = wholes(workgroup_size, "workgroup_size", most=U32)
    if not 1 <= len(threads) <= 3:
        raise ValueError(f"workgroup_size is {workgroup_size!r}, needs one to three numbers")
    texts = [
        (text(key, "a define's name"), text(str(value), f"the define {key}"))
        for key, value in _items(defines, "defines")
    ]
    values = [
        (whole(key, "a constant's id", most=U32), 0, _bits(value)) for key, value in _items(constants, "constants")
    ]
    compile_milliseconds = 1000 * real(compile_seconds, "compile_seconds")
    if not 0 <= compile_milliseconds < 2**63:
        raise ValueError(f"compile_seconds is {compile_seconds!r}")
    desc = raw.KernelDesc(
        language=_LANGUAGES[language],
        source=ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p),
        source_bytes=len(data),
        name=None if name is None else os.fsencode(name),
        entry=None if entry is None else text(entry, "entry"),
        defines=(raw.KernelDefine * len(texts))(*texts),
        define_count=len(texts),
        constants=(raw.KernelConstant * len(values))(*values),
        constant_count=len(values),
        flags=raw.KERNEL_ROBUST * bool(robust) | raw.KERNEL_UNTRUSTED * bool(untrusted),
        max_source_bytes=whole(max_source_bytes, "max_source_bytes"),
        compile_milliseconds=round(compile_milliseconds),
        compile_memory_bytes=whole(compile_memory_bytes, "compile_memory_bytes"),
        workgroup_size=(ctypes.c_uint32 * 3)(*(*threads, 1, 1)[:3]) if any(threads) else (ctypes.c_uint32 * 3)(),
        shared_bytes=whole(shared_bytes, "shared_bytes", most=U32),
    )
    desc.kept = data  # source is only its address
    return desc


class Kernel(OnDevice):
    """A compute shader. ``ctx.kernel(source)`` compiles one; calling it launches it:

        double = ctx.kernel(source, name="double.comp")
        double(x, y, groups=16, push=struct.pack("If", n, 0.5))

    context  the Context that it belongs to and keeps alive
    handle   the tuff_kernel, for tuff.raw
    """

    __slots__ = ("context", "handle", "_info", "_finalizer", "__weakref__")

    def __init__(
        self,
        context: Context,
        source: Union[str, bytes, np.ndarray],
        *,
        name: Optional[str] = None,
        defines: Optional[Mapping[str, object]] = None,
        constants: Optional[Mapping[int, Number]] = None,
        entry: Optional[str] = None,
        robust: bool = False,
        untrusted: bool = False,
        max_source_bytes: int = 0,
        compile_seconds: float = 0,
        compile_memory_bytes: int = 0,
        language: Optional[str] = None,
        workgroup_size: Union[int, Sequence[int]] = (0, 0, 0),
        shared_bytes: int = 0,
    ) -> None:
        """source: GLSL as str, SPIR-V as bytes or an array, or PTX. language: "glsl", "spirv" or "ptx"; by default GLSL
        for str and SPIR-V otherwise. name: for messages. defines: macros, name to value. constants: specialisation
        constants, id to value. workgroup_size and shared_bytes are for PTX, such as Triton's: workgroup_size=32 *
        metadata.num_warps and shared_bytes=metadata.shared. All others are as in tuff_kernel_desc."""
        _require_context(context)
        desc = kernel_desc(
            source,
            name=name,
            defines=defines,
            constants=constants,
            entry=entry,
            robust=robust,
            untrusted=untrusted,
            max_source_bytes=max_source_bytes,
            compile_seconds=compile_seconds,
            compile_memory_bytes=compile_memory_bytes,
            language=language,
            workgroup_size=workgroup_size,
            shared_bytes=shared_bytes,
        )
        handle = ctypes.c_uint64()
        check(raw.tuff_kernel_create(context.handle, desc, handle))
        self.context = context
        self.handle = handle.value
        self._finalizer = own(self, context._session, raw.tuff_kernel_destroy, handle.value)
        self._info = raw.KernelProperties()
        check(raw.tuff_kernel_info(self.handle, self._info))

    @property
    def properties(self) -> raw.KernelProperties:
        """The kernel's reflected interface."""
        return self._info

    @property
    def bindings(self) -> int:
        """The number of buffers that a launch takes."""
        return self._info.binding_count

    @property
    def push_bytes(self) -> int:
        return self._info.push_bytes

    @property
    def workgroup_size(self) -> Tuple[int, int, int]:
        x, y, z = self._info.workgroup_size
        return x, y, z

    def __call__(
        self,
        *buffers: Union[None, Array, Buffer],
        groups: Union[int, Sequence[int]] = 1,
        push: object = b"",
    ) -> None:
        """Launches the kernel. groups is the number of workgroups, one to three numbers. Buffer i goes to binding i;
        pass None for an unused binding. push holds the push constants: bytes, or a NumPy array or structured scalar."""
        sizes = wholes(groups, "groups", most=U32)
        if not 1 <= len(sizes) <= 3:
            raise ValueError(f"groups is {groups!r}, needs one to three numbers")
        handles = (ctypes.c_uint64 * len(buffers))(*(handle_of(one, "an operand") for one in buffers))
        data = _bytes(push if isinstance(push, (bytes, bytearray, memoryview)) else np.asarray(push), "push")
        x, y, z = (*sizes, 1, 1)[:3]
        check(
            raw.tuff_kernel_launch(self.context.stream_handle, self.handle, handles, len(buffers), data, len(data), x, y, z)
        )

    def free(self) -> None:
        """Frees the kernel now instead of with the object; launches continue to the end."""
        self._finalizer()

    def __repr__(self) -> str:
        return f"<tuff.Kernel {self._info.name.decode(errors='replace')} of {self.bindings} buffers>"


def _bytes(value: object, name: str) -> bytes:
    """Returns the bytes of a bytes-like object, or of an array or structured scalar of numbers."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    data = host_array(value, name)
    if data.dtype.kind in "US":
        raise TypeError(f"{name} is text, needs bytes or numbers")
    return data.tobytes()


def _items(given: Optional[Mapping], name: str) -> list:
    if given is None:
        return []
    if not isinstance(given, Mapping):
        raise TypeError(f"{name} is {given!r}, not a dict")
    return list(given.items())


def handle_of(operand: object, name: str) -> int:
    """The handle of an array's buffer, of a buffer, or of none. name: for errors."""
    if operand is None:
        return raw.NULL_HANDLE
    if isinstance(operand, Array):
        require_dense(operand, name)
        return operand.buffer.handle
    if isinstance(operand, Buffer):
        return operand.handle
    raise TypeError(f"{name} is {operand!r}, needs an array, a buffer or None")
