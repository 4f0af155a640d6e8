"""Reductions and scans: operations along the axes of an array."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Dict, Optional, Tuple

import numpy as np

from . import _core as core
from . import _elementwise as elementwise
from . import _planes as composed
from . import _shape as shapes
from . import raw
from ._checked import real, sequence
from ._error import check
from ._expression import RESULT_TYPES
from ._operands import dtype_of, operation_number, require_array, require_rank, result_of, sizes_of, whole_axis
from ._storage import DTYPES, as_dtype
from ._tracing import RULES, differentiable, is_traced, without_transposed
from ._types import is_complex

if TYPE_CHECKING:
    from ._array import Array, Axis

__all__ = [
    "all",
    "any",
    "count_nonzero",
    "cummax",
    "cummin",
    "cumprod",
    "cumlogsumexp",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "reduce",
]

#: Reductions of integers that give integers; those that give indices, truths and counts.
_SUMS = (raw.REDUCE_SUM, raw.REDUCE_PROD, raw.REDUCE_SUM_SQUARES, raw.REDUCE_L1)
_INDICES = (raw.REDUCE_ARGMAX, raw.REDUCE_ARGMIN)
_TRUTHS = (raw.REDUCE_ANY, raw.REDUCE_ALL)

#: Reductions whose result is one of the elements. From kernels/reduce/reduce.def, by scripts/api/generate.py.
SELECTS = (raw.REDUCE_MAX, raw.REDUCE_MIN)


def reduced_type(op: int, dtype: np.dtype) -> np.dtype:
    """The type of a reduction's result, as in the array API standard: int64 or uint64 for sums of integers, float32 for what
    only floats have."""
    if op in _TRUTHS:
        return np.dtype(np.bool_)
    if op in _INDICES or op == raw.REDUCE_COUNT_NONZERO:
        return np.dtype(np.int64)
    if op in SELECTS or elementwise.is_float(dtype):
        return dtype
    if op in _SUMS:
        return np.dtype(np.uint64 if dtype.kind == "u" else np.int64)
    return np.dtype(np.float32)


RESULT_TYPES.append(reduced_type)

#: What reduced_type() has said before.
_reduced_types: Dict[Tuple[int, np.dtype], np.dtype] = {}


def reduce(op: int, x: Array, axis: Axis = None, keepdims: bool = False, *, correction: float = 0.0) -> Array:
    """Applies a raw.REDUCE_* along one axis, several, or all (None). keepdims keeps the reduced axes with size 1. correction
    is that of raw.REDUCE_VAR and raw.REDUCE_STD."""
    require_array(x, "x")
    correction = real(correction, "correction")
    if is_complex(x.dtype):
        return _reduce_complex(op, x, axis, keepdims)
    if correction == 0 and type(op) is int:
        key = (op, x.dtype)
        dtype = _reduced_types.get(key)
        if dtype is None:
            dtype = _reduced_types[key] = reduced_type(op, x.dtype)
        done = core.reduce(op, x, axis, keepdims, dtype)
        if done is not None:
            return done
    axes = _named_axes(x, axis)
    if is_traced(x):
        return RULES["reduce"](op, without_transposed(x), tuple(axes), keepdims, correction)
    kept = [size for index, size in enumerate(x.shape) if index not in axes]
    if len(axes) == x.ndim:
        result = _reduce_one(op, x.ravel(), 0, correction)
    elif not axes:
        result = _reduce_one(op, x.reshape((x.size, 1)), 1, correction)
    elif axes[-1] - axes[0] == len(axes) - 1:
        sizes = (*x.shape[: axes[0]], math.prod(x.shape[axes[0] : axes[-1] + 1]), *x.shape[axes[-1] + 1 :])
        result = _reduce_one(op, x.reshape(sizes), axes[0], correction)
    elif op in SELECTS or (op in (raw.REDUCE_SUM, raw.REDUCE_PROD) and x.dtype.itemsize >= 4):
        result = x
        for one in reversed(axes):
            result = _reduce_one(op, result, one, correction)
    else:
        # In one step after a permutation: intermediate results would be rounded, or are of another kind than the elements.
        order = [index for index in range(x.ndim) if index not in axes]
        moved = shapes.permute(x, order + axes).reshape((*kept, math.prod(x.shape[index] for index in axes)))
        result = _reduce_one(op, moved, len(kept), correction)
    return result.reshape([1 if index in axes else size for index, size in enumerate(x.shape)] if keepdims else kept)


def _named_axes(x: Array, axis: Axis) -> list[int]:
    if axis is None:
        return list(range(x.ndim))
    named = (axis,) if isinstance(axis, (int, np.integer)) else sequence(axis, "axis", "an integer, several, or None")
    axes = sorted(whole_axis(one, x.ndim) for one in named)
    if len(set(axes)) != len(axes):
        raise ValueError(f"axis {axis} names one axis twice")
    return axes


def _reduce_complex(op: int, x: Array, axis: Axis, keepdims: bool) -> Array:
    axes = _named_axes(x, axis)
    result = composed.reduced(operation_number(op), x, tuple(axes), lambda part: reduce(op, part, tuple(axes), True))
    return result if keepdims else result.reshape([size for index, size in enumerate(x.shape) if index not in axes])


def any(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """Whether an element is not zero, over axes, as bools. False without elements."""
    return reduce(raw.REDUCE_ANY, x, axis, keepdims)


def all(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """Whether no element is zero, over axes, as bools. True without elements."""
    return reduce(raw.REDUCE_ALL, x, axis, keepdims)


def count_nonzero(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """How many elements are not zero, over axes, as int64."""
    return reduce(raw.REDUCE_COUNT_NONZERO, x, axis, keepdims)


def arg_reduce(op: int, x: Array, axis: Optional[int] = None, keepdims: bool = False) -> Array:
    """Applies raw.REDUCE_ARGMAX or raw.REDUCE_ARGMIN: indices along one axis, or in the flattened array, as int64."""
    require_array(x, "x")
    return reduce(op, x, None if axis is None else whole_axis(axis, x.ndim), keepdims)


def _reduce_one(op: int, x: Array, axis: int, correction: float = 0.0) -> Array:
    require_rank(x, "x")
    dtype = reduced_type(operation_number(op), x.dtype)
    result = x.context.empty(x.shape[:axis] + x.shape[axis + 1 :], dtype)
    if dtype == x.dtype and correction == 0 and op not in _INDICES:  # the usual result of every such operation, by the cheaper call
        check(
            raw.tuff_reduce(
                *(x.context.stream_handle, dtype_of(x), op, x.buffer.handle, result.buffer.handle, sizes_of(x.shape), x.ndim, axis)
            )
        )
        return result
    desc = raw.ReduceDesc(
        dtype=dtype_of(x),
        op=op,
        rank=x.ndim,
        input=x.buffer.handle,
        output=result.buffer.handle,
        shape=x.shape,
        axis=axis,
        output_type=DTYPES[dtype],
        correction=correction,
    )
    check(raw.tuff_reduce_ex(x.context.stream_handle, desc))
    return result


@differentiable
def cumsum(
    x: Array,
    axis: Optional[int] = None,
    *,
    exclusive: bool = False,
    reverse: bool = False,
    out: Optional[Array] = None,
) -> Array:
    """Cumulative sums along one axis, or, as in NumPy, of the flattened array; out may be x.

    exclusive: an element does not count in its own result; the first result is 0. reverse: scan from the end. Sums of integers
    and bools are int64, those of unsigned integers uint64, unless out has their own type; they wrap.
    """
    return _scan(raw.tuff_cumsum, x, axis, exclusive, reverse, out)


def cumprod(
    x: Array,
    axis: Optional[int] = None,
    *,
    exclusive: bool = False,
    reverse: bool = False,
    out: Optional[Array] = None,
) -> Array:
    """Cumulative products, with the arguments of cumsum. With exclusive, the first result is 1."""
    return _scan(raw.tuff_cumprod, x, axis, exclusive, reverse, out)


def cummax(
    x: Array,
    axis: Optional[int] = None,
    *,
    exclusive: bool = False,
    reverse: bool = False,
    out: Optional[Array] = None,
) -> Array:
    """Cumulative maxima, with the arguments of cumsum: the largest element so far; NaN from the first NaN on. The type is x's.
    With exclusive, the first result is the type's lowest value."""
    return _scan(raw.tuff_cummax, x, axis, exclusive, reverse, out)


def cummin(
    x: Array,
    axis: Optional[int] = None,
    *,
    exclusive: bool = False,
    reverse: bool = False,
    out: Optional[Array] = None,
) -> Array:
    """Cumulative minima, with the arguments of cummax."""
    return _scan(raw.tuff_cummin, x, axis, exclusive, reverse, out)


def cumlogsumexp(
    x: Array,
    axis: Optional[int] = None,
    *,
    exclusive: bool = False,
    reverse: bool = False,
    out: Optional[Array] = None,
) -> Array:
    """Cumulative log(sum(exp(x))), with the arguments of cumsum, computed from the largest element so far, so that nothing
    overflows: numpy.logaddexp.accumulate. Integers give float32. With exclusive, the first result is -infinity."""
    require_array(x, "x")
    if x.dtype.kind in "biu":
        x = shapes.cast(x, np.float32)
    return _scan(raw.tuff_cumlogsumexp, x, axis, exclusive, reverse, out)


def cumulative_sum(x: Array, *, axis: Optional[int] = None, dtype: Optional[object] = None, include_initial: bool = False) -> Array:
    """The array API standard's cumulative sum. axis may be left out for one dimension only; include_initial puts a 0 before
    the first result."""
    return _cumulative(raw.tuff_cumsum, x, axis, dtype, include_initial)


def cumulative_prod(x: Array, *, axis: Optional[int] = None, dtype: Optional[object] = None, include_initial: bool = False) -> Array:
    """The array API standard's cumulative product, with the arguments of cumulative_sum; the initial result is 1."""
    return _cumulative(raw.tuff_cumprod, x, axis, dtype, include_initial)


def _cumulative(function: object, x: Array, axis: Optional[int], dtype: Optional[object], include_initial: bool) -> Array:
    require_array(x, "x")
    if axis is None and x.ndim != 1:
        raise ValueError(f"x has {x.ndim} dimensions, and axis is needed for all but one")
    if dtype is not None:
        x = shapes.cast(x, as_dtype(dtype))
    along = whole_axis(0 if axis is None else axis, x.ndim)
    if dtype is not None and x.dtype.kind in "biu":
        result = _scan(function, x, along, False, False, x.context.empty(x.shape, x.dtype))
    else:
        result = _scan(function, x, along, False, False, None)
    if not include_initial:
        return result
    first = x.context.full((*x.shape[:along], 1, *x.shape[along + 1 :]), int(function is raw.tuff_cumprod), result.dtype)
    return shapes.concat([first, result], along)


def _scan(
    function: object, x: Array, axis: Optional[int], exclusive: bool, reverse: bool, out: Optional[Array]
) -> Array:
    require_array(x, "x")
    if axis is None:
        x = x.ravel()
    elif x.ndim == 0:
        raise ValueError("a 0-d array has no axis")
    require_rank(x, "x")
    if is_complex(x.dtype):
        return _scan_complex(function, x, 0 if axis is None else whole_axis(axis, x.ndim), exclusive or reverse, out)
    sums = function in (raw.tuff_cumsum, raw.tuff_cumprod)
    if sums and not elementwise.is_float(x.dtype) and (out is None or out.dtype != x.dtype or x.dtype == np.bool_):
        # A conversion, and a scan in place.
        x = shapes.cast(x, reduced_type(raw.REDUCE_SUM, x.dtype))
        out = x if out is None else out
    result = result_of(out, x, x.shape)
    desc = raw.ScanDesc(
        dtype=dtype_of(x),
        input=x.buffer.handle,
        output=result.buffer.handle,
        shape=x.shape,
        rank=x.ndim,
        axis=0 if axis is None else whole_axis(axis, x.ndim),
        exclusive=bool(exclusive),
        reverse=bool(reverse),
    )
    check(function(x.context.stream_handle, desc))
    return result


def _scan_complex(function: object, x: Array, axis: int, turned: bool, out: Optional[Array]) -> Array:
    if function not in (raw.tuff_cumsum, raw.tuff_cumprod) or turned:
        raise TypeError(f"{x.dtype} has no such scan: complex numbers have cumulative sums and products, forward and inclusive")
    if function is raw.tuff_cumsum:
        result = composed.by_parts(lambda part: _scan(function, part, axis, False, False, None), x)
    else:
        result = composed.cumulative_product(x, axis)
    return result if out is None else result_of(out, x, x.shape).assign(result)
