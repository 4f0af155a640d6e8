"""Converts statuses to exceptions."""

from __future__ import annotations

import ctypes
from typing import Callable

from . import raw


class TuffError(RuntimeError):
    """A library call that failed.

    status   the TUFF_ERROR_* number
    name     its name, such as "TUFF_ERROR_INVALID_ARGUMENT"
    message  the library's message: function, argument, the value it got and the value it needed
    hint     advice on how to resolve the error
    """

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        self.name = raw.tuff_status_name(status).decode()
        self.hint = raw.tuff_status_hint(status).decode()
        self.message = message
        # Whoever has no driver reads this in a traceback.
        super().__init__(f"{self.name}: {message}" + (f". {self.hint}" if status == raw.ERROR_NO_DEVICE else ""))

    def __reduce__(self) -> tuple:
        return (TuffError, (self.status, self.message))


def last_error() -> str:
    """Returns this thread's last error message from the library; empty if nothing has failed."""
    return _text(raw.tuff_last_error, lambda status: None)


def _text(function: Callable[..., int], judge: Callable[[int], None]) -> str:
    length = ctypes.c_uint64()
    judge(function(None, 0, ctypes.byref(length)))
    text = ctypes.create_string_buffer(length.value + 1)
    judge(function(text, len(text), None))
    return text.value.decode(errors="replace")


def text_of(function: Callable[..., int]) -> str:
    """Returns the text that a function with the arguments of tuff_last_error writes."""
    return _text(function, check)


def check(status: int) -> None:
    """Raises TuffError unless status is TUFF_OK."""
    if status != raw.OK:
        raise TuffError(status, last_error())
