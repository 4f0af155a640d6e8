"""Ownership of library handles by Python objects."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Callable

if TYPE_CHECKING:
    from ._context import _Session


def _release(session: _Session, destroy: Callable[[int], int], handle: int) -> None:
    # A closed context has already freed everything created from it. Errors are ignored: a finalizer cannot report them.
    if session.is_open:
        destroy(handle)


def own(owner: object, session: _Session, destroy: Callable[[int], int], handle: int) -> weakref.finalize:
    """Arranges that destroy(handle) is called when owner is collected or the result is called, unless the session has
    ended before."""
    finalizer = weakref.finalize(owner, _release, session, destroy, handle)
    finalizer.atexit = False  # at exit, closing the context frees everything
    return finalizer
