"""What moves elements, and changes their type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional, Sequence

import numpy as np

from . import _array as arrays
from . import _operations as operations
from . import raw
from ._error import check

if TYPE_CHECKING:
    from ._array import Array


def permute(x: Array, order: Sequence[int], *, out: Optional[Array] = None) -> Array:
    """x with axis order[i] as axis i, in new memory: numpy.transpose."""
    operations._require_array(x, "x")
    axes = [int(axis) + x.ndim if axis < 0 else int(axis) for axis in order]
    if sorted(axes) != list(range(x.ndim)):
        raise ValueError(f"order is {tuple(order)}, needs each of the axes of shape {x.shape} once")
    result = operations._result(out, x, tuple(x.shape[axis] for axis in axes))
    if x.ndim == 0:
        result.assign(x)
        return result
    desc = raw.PermuteDesc(dtype=operations._dtype(x), input=x.buffer.handle, output=result.buffer.handle)
    desc.rank = x.ndim
    desc.shape[: x.ndim] = x.shape
    desc.order[: x.ndim] = axes
    check(raw.tuff_permute_ex(x.context.handle, desc))
    return result


def cast(x: Array, dtype: object, *, out: Optional[Array] = None) -> Array:
    """x as numbers of another dtype, in new memory; rounding and range as in Array.astype."""
    operations._require_array(x, "x")
    target = np.dtype(dtype)
    if out is None:
        out = x.context.empty(x.shape, target)
    operations._require_array(out, "out")
    if out.context is not x.context:
        raise ValueError("operands are of different contexts")
    if out.shape != x.shape or out.dtype != target:
        raise ValueError(f"out is {out.shape} {out.dtype}, the result {x.shape} {target}")
    desc = raw.CastDesc(input_type=operations._dtype(x), output_type=arrays.DTYPES[target], n=x.size)
    desc.input, desc.output = x.buffer.handle, out.buffer.handle
    check(raw.tuff_cast_ex(x.context.handle, desc))
    return out
