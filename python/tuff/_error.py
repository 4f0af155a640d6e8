"""Turns a status into an exception."""

from __future__ import annotations

import ctypes

from . import raw


class TuffError(RuntimeError):
    """A call that the library refused or could not do.

    status   the TUFF_ERROR_* number
    name     its name, such as "TUFF_ERROR_INVALID_ARGUMENT"
    message  the library's line: function, argument, what it got, what it needed
    hint     what a person can do about it
    """

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        self.name = raw.tuff_status_name(status).decode()
        self.hint = raw.tuff_status_hint(status).decode()
        self.message = message
        super().__init__(f"{self.name}: {message}")

    def __reduce__(self) -> tuple:
        return (TuffError, (self.status, self.message))


def last_error() -> str:
    """This thread's last message from the library; empty if nothing has failed."""
    length = ctypes.c_uint64()
    raw.tuff_last_error(None, 0, ctypes.byref(length))
    text = ctypes.create_string_buffer(length.value + 1)
    raw.tuff_last_error(text, len(text), None)
    return text.value.decode(errors="replace")


def check(status: int) -> None:
    """Raises TuffError unless status is TUFF_OK."""
    if status != raw.OK:
        raise TuffError(status, last_error())
