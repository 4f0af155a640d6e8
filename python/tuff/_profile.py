"""Profiling of contexts."""

from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING, Union

from . import raw
from ._checked import OnDevice
from ._error import check

if TYPE_CHECKING:
    from ._context import Context


class Profile(OnDevice):
    """A profile of the with block of Context.profile(). table() and write() show it until the context's next profile.
    They may also be called inside the block; they then wait and show the work so far."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._running = False

    def __enter__(self) -> Profile:
        check(raw.tuff_profile_begin(self._context.handle))
        self._running = True
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Waits for the work so far and stops profiling. It does nothing if profiling has ended or the context is
        closed."""
        if self._running and not self._context.closed:
            self._running = False
            check(raw.tuff_profile_end(self._context.handle))

    def write(self, path: Union[str, os.PathLike]) -> None:
        """Writes a trace in Chrome's format, for https://ui.perfetto.dev."""
        check(raw.tuff_profile_write(self._context.handle, os.fsencode(path)))

    def table(self) -> str:
        """Returns the profile as printable text: operations, kernels, counters."""
        length = ctypes.c_uint64()
        text = ctypes.create_string_buffer(1 << 16)
        check(raw.tuff_profile_table(self._context.handle, text, len(text), length))
        while length.value >= len(text):
            text = ctypes.create_string_buffer(length.value + 4096)
            check(raw.tuff_profile_table(self._context.handle, text, len(text), length))
        return text.value.decode(errors="replace")
