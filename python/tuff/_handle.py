"""A context's handle, and ownership of other handles by Python objects."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Callable

from . import raw
from ._core import SessionCore
from ._error import check


class Session(SessionCore):
    """A context's handle, separate from the Context so that finalizers can hold it."""

    def __init__(self, handle: int) -> None:
        self.handle = handle
        self.process = os.getpid()
        self.is_open = True
        self.allocation = 0
        self.forget_formulas()
        self._lock = threading.RLock()  # a finalizer may run in the thread that holds it
        self._pins = 0  # live pinned NumPy arrays, which must not lose their memory
        self._left = raw.NULL_HANDLE  # a closed context, to be destroyed with the last pinned array

    def close(self) -> None:
        with self._lock:
            if not self.is_open:
                return
            self.is_open = False
            if self._pins > 0:
                self._left, self.handle = self.handle, raw.NULL_HANDLE
        if self.process == os.getpid():  # a forked child has no device to close
            check(raw.tuff_synchronize(self._left) if self._left else raw.tuff_context_destroy(self.handle))
        self.forget_formulas()

    def pin(self) -> None:
        with self._lock:
            self._pins += 1

    def unpin(self) -> None:
        with self._lock:
            self._pins -= 1
            left = self._left if self._pins == 0 else raw.NULL_HANDLE
        if left and self.process == os.getpid():
            raw.tuff_context_destroy(left)


def _release(session: Session, destroy: Callable[[int], int], handle: int) -> None:
    # A closed context has already freed everything created from it. Errors are ignored: a finalizer cannot report them.
    if session.is_open:
        destroy(handle)


def own(owner: object, session: Session, destroy: Callable[[int], int], handle: int) -> weakref.finalize:
    """Arranges that destroy(handle) is called when owner is collected or the result is called, unless the session has
    ended before."""
    finalizer = weakref.finalize(owner, _release, session, destroy, handle)
    finalizer.atexit = False  # at exit, closing the context frees everything
    return finalizer
