"""Device memory."""

from __future__ import annotations

import contextlib
import ctypes
from typing import TYPE_CHECKING, Iterator, Optional

import numpy as np

from . import raw
from ._checked import OnDevice, host_array, text, whole
from ._core import BufferCore
from ._error import check

if TYPE_CHECKING:
    from ._context import Context


def _require_context(context: object) -> None:
    if not hasattr(context, "_session"):
        raise TypeError(f"context is {context!r}, not a tuff.Context")


def _require_target(target: np.ndarray, method: str) -> None:
    host_array(target, "target")
    if not (target.flags.c_contiguous and target.flags.writeable):
        raise ValueError(f"{method} needs a writeable C-contiguous array")


class HostMemory:
    """What buffers over one allocation for the host have in common (Buffer._memory)."""

    __slots__ = ()


class Buffer(OnDevice, BufferCore):
    """Device memory of one context, freed with the object. ``ctx.alloc()`` creates one.

    context  the Context that it belongs to and keeps alive
    handle   the tuff_buffer, for tuff.raw
    nbytes   the size in bytes
    """

    __slots__ = ("__weakref__",)  # BufferCore has the others

    def __init__(
        self,
        context: Context,
        nbytes: int,
        *,
        host_visible: bool = False,
        uninitialized: bool = False,
        name: Optional[str] = None,
        host_pinned: bool = False,
        exportable: bool = False,
    ) -> None:
        """Allocates nbytes, initialised to zero unless uninitialized. host_visible and host_pinned buffers can be
        mapped; the latter are in pinned host memory. export_fd() requires exportable. name appears in debugging tools
        and messages."""
        _require_context(context)
        nbytes = whole(nbytes, "nbytes")
        flags = raw.ALLOC_HOST_VISIBLE * bool(host_visible) | raw.ALLOC_UNINITIALIZED * bool(uninitialized)
        flags |= raw.ALLOC_HOST_PINNED * bool(host_pinned) | raw.ALLOC_EXPORTABLE * bool(exportable)
        desc = raw.AllocDesc(flags=flags, bytes=nbytes, name=text(name, "name") if name else None)
        handle = ctypes.c_uint64()
        check(raw.tuff_alloc_ex(context.handle, desc, handle))
        memory = HostMemory() if host_visible or host_pinned else None
        self._adopt(context, context._session, handle.value, nbytes, memory, 0)

    @classmethod
    def _of(cls, context: Context, handle: int, nbytes: int, memory: object, offset: int = 0) -> Buffer:
        """Takes ownership of a handle. memory is the same object in every view of one allocation, offset is that of the
        view in it."""
        buffer = object.__new__(cls)
        buffer._adopt(context, context._session, handle, nbytes, memory, offset)
        return buffer

    def export_fd(self) -> raw.MemoryFd:
        """Waits for the work so far and exports the memory as a file descriptor, for ``Context.import_fd`` in another
        process or for another API. The caller closes the descriptor, the field fd."""
        info = raw.MemoryFd()
        check(raw.tuff_buffer_export_fd(self.handle, info))
        return info

    def view(self, offset: int, nbytes: int) -> Buffer:
        """Returns a second handle for bytes [offset, offset + nbytes). The memory stays until the last handle is
        freed."""
        offset, nbytes = whole(offset, "offset"), whole(nbytes, "nbytes")
        handle = ctypes.c_uint64()
        check(raw.tuff_view(self.handle, offset, nbytes, handle))
        return Buffer._of(self.context, handle.value, nbytes, self._memory, self._offset + offset)

    def same_range(self, other: Buffer) -> bool:
        """Whether both cover the same bytes of the same memory."""
        return (
            self._memory is other._memory and self._offset == other._offset and self.nbytes == other.nbytes
        )

    def upload(self, source: np.ndarray, offset: int = 0) -> None:
        """Copies a NumPy array's bytes to a byte offset."""
        data, offset = np.ascontiguousarray(host_array(source, "source")), whole(offset, "offset")
        check(raw.tuff_copy_htod(self.context.stream_handle, self.handle, offset, data.ctypes.data, data.nbytes))

    def download(self, target: np.ndarray, offset: int = 0) -> np.ndarray:
        """Waits for the stream's work so far and fills target, a C-contiguous array, from a byte offset."""
        _require_target(target, "download")
        offset = whole(offset, "offset")
        check(raw.tuff_copy_dtoh(self.context.stream_handle, target.ctypes.data, self.handle, offset, target.nbytes))
        return target

    def upload_async(self, source: np.ndarray, offset: int = 0) -> None:
        """Like upload(), but returns at once. source is a C-contiguous array in pinned memory (``ctx.pinned()`` or part
        of one). It must not be written before the copy is complete; wait for an event recorded after it."""
        if not host_array(source, "source").flags.c_contiguous:
            raise ValueError("upload_async needs a C-contiguous array")
        data, offset = source.ctypes.data, whole(offset, "offset")
        check(raw.tuff_copy_htod_async(self.context.stream_handle, self.handle, offset, data, source.nbytes))

    def download_async(self, target: np.ndarray, offset: int = 0) -> np.ndarray:
        """Like download(), but returns at once. target is in pinned memory and is valid when the copy is complete; wait
        for an event recorded after it."""
        _require_target(target, "download_async")
        data, offset = target.ctypes.data, whole(offset, "offset")
        check(raw.tuff_copy_dtoh_async(self.context.stream_handle, data, self.handle, offset, target.nbytes))
        return target

    def copy_from(self, source: Buffer, offset: int = 0, source_offset: int = 0, nbytes: Optional[int] = None) -> None:
        """Copies from a buffer of this or another context, which may be on another device. By default nbytes is
        everything in source after source_offset."""
        if not isinstance(source, Buffer):
            raise TypeError(f"source is {type(source).__name__}, not a tuff.Buffer")
        offset = whole(offset, "offset")
        source_offset = whole(source_offset, "source_offset", most=source.nbytes)
        count = source.nbytes - source_offset if nbytes is None else whole(nbytes, "nbytes")
        to, of = self.context.stream_handle, source.context.stream_handle
        check(raw.tuff_copy_peer(to, self.handle, offset, of, source.handle, source_offset, count))

    def fill(self, pattern: bytes, offset: int = 0, nbytes: Optional[int] = None) -> None:
        """Fills with a pattern of 1, 2, 4, 8 or 16 bytes, by default up to the end."""
        if not isinstance(pattern, (bytes, bytearray, memoryview)):
            raise TypeError(f"pattern is {type(pattern).__name__}, needs bytes")
        pattern, offset = bytes(pattern), whole(offset, "offset", most=self.nbytes)
        count = self.nbytes - offset if nbytes is None else whole(nbytes, "nbytes")
        check(raw.tuff_fill(self.context.stream_handle, self.handle, offset, count, pattern, len(pattern)))

    @contextlib.contextmanager
    def map(self) -> Iterator[np.ndarray]:
        """Maps a host_visible buffer as a uint8 array, which is valid only inside the with block."""
        pointer = ctypes.c_void_p()
        check(raw.tuff_map(self.handle, pointer))
        try:
            block = (ctypes.c_uint8 * self.nbytes).from_address(pointer.value or 0) if self.nbytes else b""
            yield np.frombuffer(block, np.uint8)
        finally:
            if not self.context.closed:  # closing, also at exit, has ended the mapping
                check(raw.tuff_unmap(self.handle))

    def __repr__(self) -> str:
        return f"<tuff.Buffer of {self.nbytes} bytes>"
