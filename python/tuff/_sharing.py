"""Whether arrays have memory in common, from where their elements are: nothing is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

import numpy as np

from . import _protocol as protocol
from ._layout import layout_of, may_share, memory_of
from ._operands import require_array

if TYPE_CHECKING:
    from ._array import Array

__all__ = ["may_share_memory", "shares_memory"]


class _Place:
    """An array as NumPy's solver sees it: its place in an address space of its own, at which nothing is read."""

    def __init__(self, x: Array) -> None:
        base, first, strides = layout_of(x)
        item = x.dtype.itemsize
        self.__array_interface__ = {
            "version": 3,
            "shape": x.shape,
            "typestr": f"|V{item}",
            "strides": tuple(stride * item for stride in strides),
            "data": (2**46 + base._offset + first * item, False),
        }


def may_share_memory(a: Array, b: Array, max_work: Optional[int] = None) -> bool:
    """Whether the ranges of two arrays in memory overlap. max_work is there for NumPy's sake."""
    require_array(a, "a")
    require_array(b, "b")
    return may_share(a, b)


def shares_memory(a: Array, b: Array, max_work: Optional[int] = None) -> bool:
    """Whether two arrays have an element in common. max_work is that of numpy.shares_memory, whose solver decides."""
    require_array(a, "a")
    require_array(b, "b")
    if a.size == 0 or b.size == 0 or memory_of(a) is not memory_of(b):
        return False
    return bool(np.shares_memory(np.asarray(_Place(a)), np.asarray(_Place(b)), max_work))


protocol.FUNCTIONS.update(may_share_memory=may_share_memory, shares_memory=shares_memory)
