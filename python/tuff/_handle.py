"""What objects that own a handle of the library have in common."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Callable

if TYPE_CHECKING:
    from ._context import _Session


def _release(session: _Session, destroy: Callable[[int], int], handle: int) -> None:
    # A closed context has freed what was made from it already. A failure has nobody to be told to.
    if session.is_open:
        destroy(handle)


def own(owner: object, session: _Session, destroy: Callable[[int], int], handle: int) -> weakref.finalize:
    """Has destroy(handle) called when owner goes, or the result is called, unless the session has ended before."""
    finalizer = weakref.finalize(owner, _release, session, destroy, handle)
    finalizer.atexit = False  # closing the context frees what is left at exit
    return finalizer
