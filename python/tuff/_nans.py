"""Places, scans and quantiles of what is not NaN."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Dict, List, NamedTuple, Optional, Sequence, Union

import numpy as np

from . import _composed as composed
from . import _elementwise as elementwise
from . import _protocol as protocol
from . import _reductions as reductions
from . import _shape as shapes
from . import _sorting as sorting
from ._checked import choice, real
from ._expression import expr
from ._operands import require_array, stored
from ._types import is_float, require_real

if TYPE_CHECKING:
    from ._array import Array, Axis

__all__ = ["nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmedian", "nanpercentile", "nanquantile"]


def _nan_place(a: Array, name: str, axis: Optional[int], out: Optional[Array], keepdims: bool) -> Array:
    require_array(a, "a")
    require_real(a, "a")
    if is_float(a.dtype):
        if a.size and bool(reductions.any(reductions.all(elementwise.isnan(a), axis))):
            raise ValueError("All-NaN slice encountered")
        a = composed.without_nan(a, -math.inf if name == "argmax" else math.inf)
    return stored(getattr(a, name)(axis, keepdims), out)


def nanargmax(a: Array, axis: Optional[int] = None, out: Optional[Array] = None, *, keepdims: bool = False) -> Array:
    """The index of the largest element that is not NaN, along one axis or of all, as int64. A ValueError if all along the
    axis are NaN, for which it waits."""
    return _nan_place(a, "argmax", axis, out, bool(keepdims))


def nanargmin(a: Array, axis: Optional[int] = None, out: Optional[Array] = None, *, keepdims: bool = False) -> Array:
    """The index of the smallest element that is not NaN, as nanargmax()."""
    return _nan_place(a, "argmin", axis, out, bool(keepdims))


def _nan_scan(a: Array, name: str, start: float, axis: Optional[int], dtype: object, out: Optional[Array]) -> Array:
    require_array(a, "a")
    if a.dtype.kind == "c":
        a = expr("z != z ? s : z", dtype=a.dtype, z=a, s=start)
    elif is_float(a.dtype):
        a = composed.without_nan(a, start)
    return protocol.FUNCTIONS[name](a, axis, dtype, out)


def nancumsum(a: Array, axis: Optional[int] = None, dtype: object = None, out: Optional[Array] = None) -> Array:
    """Cumulative sums along one axis, or of the flattened array, in which NaN counts as 0."""
    return _nan_scan(a, "cumsum", 0.0, axis, dtype, out)


def nancumprod(a: Array, axis: Optional[int] = None, dtype: object = None, out: Optional[Array] = None) -> Array:
    """Cumulative products along one axis, or of the flattened array, in which NaN counts as 1."""
    return _nan_scan(a, "cumprod", 1.0, axis, dtype, out)


class _Method(NamedTuple):
    """Which sorted element a quantile is, and how far from it to the next one: formulas of `f`, a place in units of 2**-31, and
    for float64 of `at`, the place as a float64."""

    place: str
    part: str
    wide_place: str
    wide_part: str


_METHODS = {
    "linear": _Method("f >> 31", "f32(f & mask) * unit", "floor(at)", "at - floor(at)"),
    "lower": _Method("f >> 31", "", "floor(at)", ""),
    "higher": _Method("(f >> 31) + i64((f & mask) != 0)", "", "ceil(at)", ""),
    "midpoint": _Method("f >> 31", "f32((f & mask) != 0) * 0.5", "floor(at)", "f64(at != floor(at)) * 0.5"),
    "nearest": _Method("(f + half - one + ((f >> 31) & one)) >> 31", "", "round(at)", ""),  # half to even
}


def _placed(counts: Array, q: float, what: str, dtype: type) -> Array:
    """A formula of the place q * (count - 1), as an integer of 64 bits: float32 would lose places of long axes. q is in units of
    2**-62, in two halves."""
    fixed = int(q * 2**62)
    integers = {"a": fixed >> 31, "b": fixed & (2**31 - 1), "half": 2**30, "one": 1, "mask": 2**31 - 1}
    numbers: Dict[str, object] = {name: np.int64(value) for name, value in integers.items() if name != "mask" or "mask" in what}
    if "unit" in what:
        numbers["unit"] = 2.0**-31
    return expr(f"n = max(c - one, 0); f = a * n + ((b * n + half) >> 31); {what}", dtype=dtype, c=counts, **numbers)


def _placed_wide(counts: Array, q: float, what: str, dtype: type) -> Array:
    """The same in float64, which NumPy uses."""
    return expr(f"n = max(c - 1, 0); at = q * f64(n); {what}", dtype=dtype, c=counts, q=np.float64(q))


def _nan_quantiles(x: Array, fractions: Sequence[float], method: str) -> List[Array]:
    """A quantile for each fraction, along the last axis, which keeps the size 1."""
    how, along = choice(method, "method", _METHODS), x.ndim - 1
    if x.shape[along] == 0:
        return [x.context.full((*x.shape[:along], 1), math.nan, x.dtype) for _ in fractions]
    ordered = sorting.sort(x, along)  # NaN come last
    counts = reductions.count_nonzero(expr("x == x", dtype=np.bool_, x=x), along, True)
    wide = x.dtype == np.float64
    at, place, part = (_placed_wide, how.wide_place, how.wide_part) if wide else (_placed, how.place, how.part)
    found = []
    for q in fractions:
        low = shapes.gather(ordered, at(counts, q, place, np.int64), along)
        if not part:
            found.append(low)
            continue
        high = shapes.gather(ordered, at(counts, q, f"min(i64({place}) + i64(1), n)", np.int64), along)
        share = at(counts, q, part, x.dtype.type if wide else np.float32)
        found.append(expr(sorting.BETWEEN, dtype=x.dtype, a=low, b=high, t=share))
    return found


def _checked(a: Array) -> Array:
    require_array(a, "a")
    require_real(a, "a")
    return a


def nanquantile(
    a: Array,
    q: Union[float, Sequence[float]],
    axis: Axis = None,
    out: Optional[Array] = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
) -> Array:
    """Quantiles over axes, or of all elements, of what is not NaN, for q from 0 to 1, with the methods of quantile(); NaN if
    all are NaN. Several q give a first axis of their number."""
    x = _checked(a)
    if x.size == 0 and not is_float(x.dtype):
        x = x.astype(np.float32)  # of nothing NaN
    if not is_float(x.dtype):
        return stored(sorting.quantile(x, q, axis, method=method, keepdims=bool(keepdims)), out)
    fractions, several = sorting.fractions_of(q)

    def along_last(moved: Array) -> Array:
        found = _nan_quantiles(moved, fractions, method)
        found = [one.reshape(one.shape[:-1]) for one in found]
        if not found:
            return moved.context.empty((0, *moved.shape[:-1]), moved.dtype)
        return protocol.stack(found, 0) if several else found[0]

    axes = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    return stored(sorting.over_axes(along_last, x, axes, bool(keepdims)), out)


def nanpercentile(
    a: Array,
    q: Union[float, Sequence[float]],
    axis: Axis = None,
    out: Optional[Array] = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
) -> Array:
    """Percentiles of what is not NaN: nanquantile() with q from 0 to 100."""
    several = not isinstance(q, (str, bytes)) and hasattr(q, "__iter__") and getattr(q, "ndim", 1) != 0
    fractions = [real(one, "q") / 100 for one in q] if several else real(q, "q") / 100
    return nanquantile(a, fractions, axis, out, overwrite_input, method, keepdims)


def nanmedian(
    a: Array, axis: Axis = None, out: Optional[Array] = None, overwrite_input: bool = False, keepdims: bool = False
) -> Array:
    """The median over axes, or of all elements, of what is not NaN; NaN if all are NaN."""
    return nanquantile(a, 0.5, axis, out, overwrite_input, "linear", keepdims)


protocol.FUNCTIONS.update(
    nanargmax=nanargmax,
    nanargmin=nanargmin,
    nancumprod=nancumprod,
    nancumsum=nancumsum,
    nanmedian=nanmedian,
    nanpercentile=nanpercentile,
    nanquantile=nanquantile,
)
