"""Bytes on a device."""

from __future__ import annotations

import contextlib
import ctypes
from typing import TYPE_CHECKING, Iterator, Optional

import numpy as np

from . import raw
from ._checked import OnDevice, host_array, text, whole
from ._error import check
from ._handle import own

if TYPE_CHECKING:
    from ._context import Context


def _require_context(context: object) -> None:
    if not hasattr(context, "_session"):
        raise TypeError(f"context is {context!r}, not a tuff.Context")


def _require_target(target: np.ndarray, method: str) -> None:
    host_array(target, "target")
    if not (target.flags.c_contiguous and target.flags.writeable):
        raise ValueError(f"{method} needs a writeable C-contiguous array")


class Buffer(OnDevice):
    """Device memory of one context, freed with the object. ``ctx.alloc()`` makes one.

    context  the Context it belongs to, kept alive
    handle   the tuff_buffer, for tuff.raw
    nbytes   its size
    """

    __slots__ = ("context", "handle", "nbytes", "_memory", "_offset", "_finalizer", "__weakref__")

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
        """Allocates nbytes that read as zero, or hold anything if uninitialized; host_visible ones can be
        mapped, and so can host_pinned ones, which lie in the host's memory; export_fd() works on exportable ones;
        name appears in tools and messages."""
        _require_context(context)
        nbytes = whole(nbytes, "nbytes")
        flags = raw.ALLOC_HOST_VISIBLE * bool(host_visible) | raw.ALLOC_UNINITIALIZED * bool(uninitialized)
        flags |= raw.ALLOC_HOST_PINNED * bool(host_pinned) | raw.ALLOC_EXPORTABLE * bool(exportable)
        desc = raw.AllocDesc(flags=flags, bytes=nbytes, name=text(name, "name") if name else None)
        handle = ctypes.c_uint64()
        check(raw.tuff_alloc_ex(context.handle, desc, handle))
        self._adopt(context, handle.value, nbytes, memory=object(), offset=0)

    def _adopt(self, context: Context, handle: int, nbytes: int, memory: object, offset: int) -> None:
        self.context = context
        self.handle = handle
        self.nbytes = nbytes
        self._memory = memory  # the same object in every view of one allocation
        self._offset = offset  # of this view in it
        self._finalizer = own(self, context._session, raw.tuff_free, handle)

    @classmethod
    def _of(cls, context: Context, handle: int, nbytes: int, memory: object) -> Buffer:
        """Takes ownership of a handle."""
        buffer = object.__new__(cls)
        buffer._adopt(context, handle, nbytes, memory, offset=0)
        return buffer

    def export_fd(self) -> raw.MemoryFd:
        """Waits for the work so far and gives the memory as a file descriptor, for ``Context.import_fd`` in another
        process or for another API. The descriptor, its field fd, is the caller's to close."""
        info = raw.MemoryFd()
        check(raw.tuff_buffer_export_fd(self.handle, info))
        return info

    def view(self, offset: int, nbytes: int) -> Buffer:
        """A second handle on bytes [offset, offset + nbytes); the memory stays until the last one goes."""
        offset, nbytes = whole(offset, "offset"), whole(nbytes, "nbytes")
        handle = ctypes.c_uint64()
        check(raw.tuff_view(self.handle, offset, nbytes, handle))
        view = object.__new__(Buffer)
        view._adopt(self.context, handle.value, nbytes, self._memory, self._offset + offset)
        return view

    def same_range(self, other: Buffer) -> bool:
        """Whether both are the same bytes of the same memory."""
        return (
            self._memory is other._memory and self._offset == other._offset and self.nbytes == other.nbytes
        )

    def free(self) -> None:
        """Gives the memory back now rather than with the object. Using it afterwards is a TuffError."""
        self._finalizer()

    def upload(self, source: np.ndarray, offset: int = 0) -> None:
        """Copies a NumPy array's bytes to byte offset."""
        data, offset = np.ascontiguousarray(host_array(source, "source")), whole(offset, "offset")
        check(raw.tuff_copy_htod(self.context.stream_handle, self.handle, offset, data.ctypes.data, data.nbytes))

    def download(self, target: np.ndarray, offset: int = 0) -> np.ndarray:
        """Waits for the stream's work so far and fills target, a C-contiguous array, from byte offset."""
        _require_target(target, "download")
        offset = whole(offset, "offset")
        check(raw.tuff_copy_dtoh(self.context.stream_handle, target.ctypes.data, self.handle, offset, target.nbytes))
        return target

    def upload_async(self, source: np.ndarray, offset: int = 0) -> None:
        """As upload(), and returns at once. source is a C-contiguous array in pinned memory (``ctx.pinned()``, or
        a part of one) and must not be written before the copy has happened: an event recorded behind it says when."""
        if not host_array(source, "source").flags.c_contiguous:
            raise ValueError("upload_async needs a C-contiguous array")
        data, offset = source.ctypes.data, whole(offset, "offset")
        check(raw.tuff_copy_htod_async(self.context.stream_handle, self.handle, offset, data, source.nbytes))

    def download_async(self, target: np.ndarray, offset: int = 0) -> np.ndarray:
        """As download(), and returns at once. target, in pinned memory, holds nothing of use before the copy has
        happened: an event recorded behind it says when."""
        _require_target(target, "download_async")
        data, offset = target.ctypes.data, whole(offset, "offset")
        check(raw.tuff_copy_dtoh_async(self.context.stream_handle, data, self.handle, offset, target.nbytes))
        return target

    def copy_from(self, source: Buffer, offset: int = 0, source_offset: int = 0, nbytes: Optional[int] = None) -> None:
        """Copies from a buffer of this context or another, on whatever device; nbytes is by default all of source after
        source_offset."""
        if not isinstance(source, Buffer):
            raise TypeError(f"source is {type(source).__name__}, not a tuff.Buffer")
        offset = whole(offset, "offset")
        source_offset = whole(source_offset, "source_offset", most=source.nbytes)
        count = source.nbytes - source_offset if nbytes is None else whole(nbytes, "nbytes")
        to, of = self.context.stream_handle, source.context.stream_handle
        check(raw.tuff_copy_peer(to, self.handle, offset, of, source.handle, source_offset, count))

    def fill(self, pattern: bytes, offset: int = 0, nbytes: Optional[int] = None) -> None:
        """Repeats a pattern of 1, 2, 4, 8 or 16 bytes, by default to the end."""
        if not isinstance(pattern, (bytes, bytearray, memoryview)):
            raise TypeError(f"pattern is {type(pattern).__name__}, needs bytes")
        pattern, offset = bytes(pattern), whole(offset, "offset", most=self.nbytes)
        count = self.nbytes - offset if nbytes is None else whole(nbytes, "nbytes")
        check(raw.tuff_fill(self.context.stream_handle, self.handle, offset, count, pattern, len(pattern)))

    @contextlib.contextmanager
    def map(self) -> Iterator[np.ndarray]:
        """The bytes of a host_visible buffer as a uint8 array, for the length of a with block and no longer."""
        pointer = ctypes.c_void_p()
        check(raw.tuff_map(self.handle, pointer))
        try:
            block = (ctypes.c_uint8 * self.nbytes).from_address(pointer.value or 0) if self.nbytes else b""
            yield np.frombuffer(block, np.uint8)
        finally:
            if not self.context.closed:  # which has ended the mapping, at exit too
                check(raw.tuff_unmap(self.handle))

    def __repr__(self) -> str:
        return f"<tuff.Buffer of {self.nbytes} bytes>"
