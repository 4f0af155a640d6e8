"""NumPy arrays in pinned memory, which the device copies without the host."""

from __future__ import annotations

import ctypes
import math
import weakref
from typing import TYPE_CHECKING, Tuple

import numpy as np

from . import raw
from ._buffer import Buffer
from ._error import check

if TYPE_CHECKING:
    from ._context import Context


class _PinnedMemory:
    """The base object of a pinned array: a mapped buffer that is freed with the last array over it."""

    def __init__(self, context: Context, shape: Tuple[int, ...], dtype: np.dtype) -> None:
        self._buffer = Buffer(context, math.prod(shape) * dtype.itemsize, host_pinned=True)
        pointer = ctypes.c_void_p()
        check(raw.tuff_map(self._buffer.handle, pointer))
        self.__array_interface__ = {
            "version": 3,
            "shape": shape,
            "typestr": dtype.str,
            "data": (pointer.value, False),
        }
        context._session.pin()
        weakref.finalize(self, context._session.unpin).atexit = False


def pinned(context: Context, shape: Tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Returns zeros in pinned memory. The context is destroyed after the array, even if it is closed before."""
    if dtype.hasobject:
        raise TypeError(f"pinned memory holds numbers, not {dtype}")
    if math.prod(shape) * dtype.itemsize == 0:
        return np.zeros(shape, dtype)
    return np.asarray(_PinnedMemory(context, shape, dtype))
