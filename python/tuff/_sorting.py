"""Sorting, and what follows from sorted elements: order statistics."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Callable, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import _elementwise as elementwise
from . import _shape as shapes
from . import raw
from ._checked import choice, real, sequence, whole, wholes
from ._error import check
from ._expression import expr
from ._operands import dtype_of, named_axes, require_array, require_rank, result_of, whole_axis
from ._tracing import differentiable

if TYPE_CHECKING:
    from ._array import Array, Axis

__all__ = [
    "argpartition",
    "argsort",
    "median",
    "partition",
    "percentile",
    "quantile",
    "sort",
    "topk",
]

# The value at t of the way from a to b, from the nearer end: half of the way to an infinity is that infinity, as in NumPy.
BETWEEN = "t == 0 ? a : t < 0.5 ? a + (b - a) * t : b - (b - a) * (1 - t)"


@differentiable
def sort(x: Array, axis: Optional[int] = -1, *, descending: bool = False, stable: bool = True, out: Optional[Array] = None) -> Array:
    """The elements in order along an axis, or of the flattened array if axis is None. The sort is stable, whatever
    `stable` is, and NaNs follow all numbers in both directions."""
    x, along = _along(x, axis)
    result = result_of(out, x, x.shape)
    record(x, along, descending, 0, result, None)
    return result


def argsort(x: Array, axis: Optional[int] = -1, *, descending: bool = False, stable: bool = True) -> Array:
    """The indices of the elements in order along an axis, as int64: tuff.gather(x, argsort(x), -1) is sort(x)."""
    x, along = _along(x, axis)
    indices = x.context.empty(x.shape, np.int64)
    record(x, along, descending, 0, None, indices)
    return indices


@differentiable
def topk(x: Array, k: int, axis: int = -1, *, largest: bool = True) -> Tuple[Array, Array]:
    """The k largest or smallest elements along an axis, in order, and their indices as int64. NaNs come after all
    numbers."""
    x, along = _along(x, axis)
    k = whole(k, "k", 0, x.shape[along])
    shape = (*x.shape[:along], k, *x.shape[along + 1 :])
    values, indices = x.context.empty(shape, x.dtype), x.context.empty(shape, np.int64)
    if k != 0:
        record(x, along, largest, k, values, indices)
    return values, indices


def partition(x: Array, kth: Union[int, Sequence[int]], axis: Optional[int] = -1) -> Array:
    """The elements with the kth ones at their places in the order, like numpy.partition. All are sorted."""
    _check_kth(x, kth, axis)
    return sort(x, axis)


def argpartition(x: Array, kth: Union[int, Sequence[int]], axis: Optional[int] = -1) -> Array:
    """The indices that partition x, like numpy.argpartition. All elements are sorted."""
    _check_kth(x, kth, axis)
    return argsort(x, axis)


def median(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """The median over axes, or of all elements: the middle element, or the mean of the two middle ones. NaN if any
    element is NaN. Integers give float32."""
    return quantile(x, 0.5, axis, keepdims=keepdims)


def percentile(
    x: Array, q: Union[float, Sequence[float]], axis: Axis = None, *, method: str = "linear", keepdims: bool = False
) -> Array:
    """Percentiles: quantile() with q from 0 to 100."""
    if isinstance(q, (str, bytes)) or not hasattr(q, "__iter__"):
        return quantile(x, real(q, "q") / 100, axis, method=method, keepdims=keepdims)
    return quantile(x, [real(one, "q") / 100 for one in q], axis, method=method, keepdims=keepdims)


def quantile(
    x: Array, q: Union[float, Sequence[float]], axis: Axis = None, *, method: str = "linear", keepdims: bool = False
) -> Array:
    """Quantiles over axes, or of all elements, for q from 0 to 1: the elements at the places q * (n - 1) of the
    sorted ones. Several q give a first axis of their number. method says what is between two places: "linear",
    "lower", "higher", "midpoint" or "nearest". NaN if any element is NaN. Integers give float32."""
    require_array(x, "x")
    if isinstance(axis, (tuple, list)):
        return over_axes(lambda moved: quantile(moved, q, -1, method=method), x, axis, keepdims)
    ndim, dropped = x.ndim, axis
    x, along = _along(x, axis)
    size = x.shape[along]
    if size == 0:
        raise ValueError("an axis of no elements has no quantiles")
    fractions, several = fractions_of(q)
    lower, upper, parts = _places(fractions, size, method)
    if not elementwise.is_float(x.dtype):
        x = x.astype(np.float32)
    ordered = sort(x, along)
    # The three are of shape (..., number of q, ...).
    low, high = shapes.take(ordered, lower, along), shapes.take(ordered, upper, along)
    last = shapes.take(ordered, [size - 1], along)
    part = x.context.array(np.asarray(parts).reshape([-1 if one == along else 1 for one in range(x.ndim)]), np.float64 if x.dtype == np.float64 else np.float32)
    result = expr(f"where(isnan(z), z, ({BETWEEN}))", dtype=x.dtype, a=low, b=high, z=last, t=part)
    kept = [1] * ndim if dropped is None else [1 if one == along else n for one, n in enumerate(x.shape)]
    if not keepdims:
        kept = [] if dropped is None else kept[:along] + kept[along + 1 :]
    if not several:
        return result.reshape(kept)
    if dropped is not None:
        result = shapes.permute(result, [along, *(one for one in range(x.ndim) if one != along)])
    return result.reshape([len(fractions), *kept])


def fractions_of(q: Union[float, Sequence[float]]) -> Tuple[List[float], bool]:
    """The argument q of quantiles as numbers from 0 to 1, and whether it is a list."""
    q = q.item() if isinstance(q, np.ndarray) and q.ndim == 0 else q
    several = not isinstance(q, (str, bytes)) and hasattr(q, "__iter__")
    fractions = [real(one, "q") for one in (sequence(q, "q", "numbers") if several else (q,))]
    for one in fractions:
        if not 0 <= one <= 1:
            raise ValueError(f"q is {one}, needs 0 to 1 (percentile: 0 to 100)")
    return fractions, several


def over_axes(function: Callable[[Array], Array], x: Array, axis: Sequence[int], keepdims: bool) -> Array:
    """What a function of the last axis gives for several axes, joined to one. Its result may have axes before the others."""
    axes = named_axes(axis, x.ndim)
    rest = [one for one in range(x.ndim) if one not in axes]
    order = [*rest, *sorted(axes)]
    moved = x if order == list(range(x.ndim)) else shapes.permute(x, order)
    sizes = [x.shape[one] for one in rest]
    result = function(moved.reshape((*sizes, math.prod(x.shape[one] for one in axes))))
    if not keepdims:
        return result
    kept = [1 if one in axes else n for one, n in enumerate(x.shape)]
    return result.reshape((*result.shape[: result.ndim - len(rest)], *kept))


def _places(fractions: Sequence[float], size: int, method: str) -> Tuple[list, list, list]:
    """For each fraction two places of the sorted elements, and how far from the first to the second the result is."""
    choose = choice(
        method,
        "method",
        {
            "linear": lambda at: (math.floor(at), at % 1),
            "lower": lambda at: (math.floor(at), 0.0),
            "higher": lambda at: (math.ceil(at), 0.0),
            "midpoint": lambda at: (math.floor(at), 0.5 if at % 1 else 0.0),
            "nearest": lambda at: (round(at), 0.0),  # half to even
        },
    )
    found = [choose(one * (size - 1)) for one in fractions]
    lower = [place for place, _ in found]
    return lower, [min(place + 1, size - 1) for place in lower], [part for _, part in found]


def _along(x: Array, axis: Optional[int]) -> Tuple[Array, int]:
    """x, flattened if axis is None, and the axis."""
    require_array(x, "x")
    if axis is None:
        return x.ravel(), 0
    if x.ndim == 0:
        raise ValueError("a 0-d array has no axis")
    require_rank(x, "x")
    return x, whole_axis(axis, x.ndim)


def _check_kth(x: Array, kth: Union[int, Sequence[int]], axis: Optional[int]) -> None:
    x, along = _along(x, axis)
    size = x.shape[along]
    if size != 0:
        wholes(kth, "kth", -size, size - 1)


def record(x: Array, axis: int, descending: bool, k: int, values: Optional[Array], indices: Optional[Array]) -> None:
    """tuff_sort(): k of 0 means all; indices of int32 or int64."""
    desc = raw.SortDesc(dtype=dtype_of(x), index_type=dtype_of(indices) if indices is not None else raw.I64, rank=x.ndim, axis=axis, k=k, descending=bool(descending))
    desc.shape[: x.ndim] = x.shape
    desc.input = x.buffer.handle
    desc.values = values.buffer.handle if values is not None else 0
    desc.indices = indices.buffer.handle if indices is not None else 0
    check(raw.tuff_sort(x.context.stream_handle, desc))
