"""Derivatives, interpolation and phases of samples."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import _composed as composed
from . import _elementwise as elementwise
from . import _protocol as protocol
from . import _reductions as reductions
from . import _searching as searching
from . import _shape as shapes
from . import _sorting as sorting
from ._checked import is_scalar, is_whole, real, whole
from ._expression import expr
from ._operands import given, named_axes, require_array, whole_axis
from ._storage import Storage, Strided
from ._types import common_type, complex_of, is_complex, is_float, part_of

if TYPE_CHECKING:
    from ._array import Array, Axis

__all__ = ["gradient", "interp", "unwrap"]


# Derivatives.


def gradient(f: Array, *varargs: Union[float, Array], axis: Axis = None, edge_order: int = 1) -> Union[Array, Tuple[Array, ...]]:
    """The derivatives along axes, by default each, by differences of second order inside and of first or second order at
    the ends, as numpy.gradient. varargs: nothing, a distance, or for each axis a distance or the samples' coordinates. Of one
    axis an array, of several a tuple."""
    require_array(f, "f")
    axes = list(range(f.ndim)) if axis is None else named_axes(axis, f.ndim)
    if f.dtype == np.bool_:
        raise TypeError("f is an array of bool: needs numbers")
    if not is_float(f.dtype) and not is_complex(f.dtype):
        f = f.astype(np.float32)
    steps = _steps(f, varargs, axes)
    order = whole(edge_order, "edge_order", 1)
    if order > 2:
        raise ValueError("'edge_order' greater than 2 not supported")
    for one in axes:
        if f.shape[one] < order + 1:
            raise ValueError(
                "Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) elements are required"
                f": axis {one} of shape {f.shape}"
            )
    found = tuple(_derivative(f, step, one, order) for one, step in zip(axes, steps))
    return found[0] if len(axes) == 1 else found


def _steps(f: Array, given_steps: Sequence[object], axes: Sequence[int]) -> List[Union[float, Array]]:
    """For each axis a distance, or the samples' coordinates."""
    if not given_steps:
        return [1.0] * len(axes)
    steps = list(given_steps)
    alone = len(steps) == 1 and (is_scalar(steps[0]) or (isinstance(steps[0], Storage) and steps[0].ndim == 0))
    if alone:
        steps = steps * len(axes)
    if len(steps) != len(axes):
        raise TypeError(f"invalid number of arguments: {len(given_steps)} distances for {len(axes)} axes")
    found: List[Union[float, Array]] = []
    for step, axis in zip(steps, axes):
        if is_scalar(step):
            found.append(real(step, "a distance"))
            continue
        places = given(step, f, "a distance")
        if places.ndim > 1:
            raise ValueError("distances must be either scalars or 1d")
        if places.ndim == 1 and places.shape[0] != f.shape[axis]:
            raise ValueError("when 1d, distances must match the length of the corresponding dimension")
        found.append(places)
    return found


#: At one end, from three neighbours of which the first is nearest to it: of first and of second order, `d` apart, or at the
#: distances `d` and `e` of the neighbours.
_EDGES = {1: "(b - a) / d", 2: "(-1.5 * a + 2 * b - 0.5 * c) / d"}
_UNEVEN_EDGES = {1: "(b - a) / d", 2: "-(2 * d + e) / (d * (d + e)) * a + (d + e) / (d * e) * b - d / (e * (d + e)) * c"}
#: Between two neighbours.
_INSIDE = "(c - a) / (2 * d)"
_UNEVEN_INSIDE = "-e / (d * (d + e)) * a + (e - d) / (d * e) * b + d / (e * (d + e)) * c"

#: The length of an axis from which on all lines are computed as one vector, ends included.
_FLAT = 8


def _derivative(f: Array, step: Union[float, Array], axis: int, order: int) -> Array:
    def part(begin: Optional[int], end: Optional[int], by: int = 1) -> Tuple[slice, ...]:
        return (slice(None),) * axis + (slice(begin, end, by),)

    n = f.shape[axis]
    uneven = isinstance(step, Storage) and step.ndim == 1
    if uneven:
        gaps = composed.diff(step.astype(f.dtype) if not is_complex(f.dtype) else step)
        gaps = gaps.reshape((-1, *(1,) * (f.ndim - axis - 1)))
    distance = step if isinstance(step, Storage) else elementwise.adopted(step, f.dtype)
    result = f.context.empty(f.shape, f.dtype)
    inner = math.prod(f.shape[axis + 1 :])
    if n > 2 and uneven:
        inside = {"a": f[part(None, -2)], "b": f[part(1, -1)], "c": f[part(2, None)]}
        expr(_UNEVEN_INSIDE, out=result[part(1, -1)], **inside, d=gaps[:-1], e=gaps[1:])
    elif n >= _FLAT and f.size and not isinstance(f, Strided):
        # Differences across two lines are at the ends of lines, and are overwritten below.
        flat = f.ravel()
        expr(_INSIDE, out=result.ravel()[inner:-inner], a=flat[: -2 * inner], c=flat[2 * inner :], d=distance)
    elif n > 2:
        expr(_INSIDE, out=result[part(1, -1)], a=f[part(None, -2)], c=f[part(2, None)], d=distance)
    if n > 2 and order == 1:
        # Both ends at once: the first two samples and the last two.
        ends = {"a": f[part(0, n - 1, n - 2)], "b": f[part(1, n, n - 2)]}
        expr(_EDGES[1], out=result[part(0, n, n - 1)], **ends, d=gaps[:: n - 2] if uneven else distance)
        return result
    # The last end is the first one of the samples in reverse, with distances below 0.
    for sign, places in ((1, (0, 1, 2)), (-1, (n - 1, n - 2, n - 3))):
        near = {name: f[part(at, at + 1)] for name, at in zip("abc", places[: order + 1])}
        out = result[part(places[0], places[0] + 1)]
        if uneven:
            ends = {"d": gaps[:1], "e": gaps[1:2]} if sign == 1 else {"d": gaps[-1:], "e": gaps[-2:-1]}
            formula = _UNEVEN_EDGES[order] if sign == 1 else f"-({_UNEVEN_EDGES[order]})"
            expr(formula, out=out, **near, **({"d": ends["d"]} if order == 1 else ends))
        else:
            formula = _EDGES[order] if sign == 1 else f"-({_EDGES[order]})"
            expr(formula, out=out, **near, d=distance)
    return result


# Interpolation.


def interp(
    x: Array,
    xp: Union[Array, Sequence[float]],
    fp: Union[Array, Sequence[float]],
    left: Union[None, float, complex] = None,
    right: Union[None, float, complex] = None,
    period: Optional[float] = None,
) -> Array:
    """The piecewise linear function through the points (xp, fp), with ascending xp, at x, as numpy.interp. left and right are
    its values beyond the points, by default those of the first and the last one. With a period, x and xp are taken modulo
    it, and xp need not be in order."""
    arrays = [one for one in (x, xp, fp) if isinstance(one, Storage)]
    if not arrays:
        require_array(x, "x")
    x, xp, fp = (given(one, arrays[0], name) for one, name in ((x, "x"), (xp, "xp"), (fp, "fp")))
    if xp.ndim != 1 or fp.ndim != 1:
        raise ValueError(f"xp has shape {xp.shape} and fp {fp.shape}, which need one axis")
    if xp.size == 0:
        raise ValueError("array of sample points is empty")
    if xp.size != fp.size:
        raise ValueError(f"fp and xp are not of the same length: {fp.size} and {xp.size}")
    for one, name in ((x, "x"), (xp, "xp")):
        if is_complex(one.dtype):
            raise TypeError(f"{name} is an array of {one.dtype}: needs real numbers")
    kind = common_type(np.dtype(np.float32), common_type(common_type(x.dtype, xp.dtype), part_of(fp.dtype)))
    x, xp = (one if one.dtype == kind else one.astype(kind) for one in (x, xp))
    values = complex_of(kind) if is_complex(fp.dtype) or any(isinstance(one, complex) for one in (left, right)) else kind
    fp = fp if fp.dtype == values else fp.astype(values)
    if period is not None:
        x, xp, fp = _periodic(x, xp, fp, period)
        left = right = None
    return _interpolated(x, xp, fp, left, right)


def _periodic(x: Array, xp: Array, fp: Array, period: float) -> Tuple[Array, Array, Array]:
    """The arguments within one period, with a point of the neighbouring ones at each end."""
    length = abs(real(period, "period"))
    if length == 0:
        raise ValueError("period must be a non-zero value")
    p = elementwise.adopted(length, xp.dtype)
    x, xp = (elementwise.remainder(one, p) for one in (x, xp))
    order = sorting.argsort(xp)
    xp, fp = (shapes.take(one, order, 0) for one in (xp, fp))
    return x, shapes.concat([xp[-1:] - p, xp, xp[:1] + p], 0), shapes.concat([fp[-1:], fp, fp[:1]], 0)


def _interpolated(x: Array, xp: Array, fp: Array, left: object, right: object) -> Array:
    n = xp.size
    passed = searching.searchsorted(xp, x, "right")  # points up to x: all for NaN
    # The last of them, and the next one; where there is none, the two ends.
    before = expr("clamp(p - 1, 0, m)", p=passed, m=np.int64(max(n - 2, 0)))
    after = expr("min(p + 1, m)", p=before, m=np.int64(n - 1))
    chosen_points = (("u", xp, before), ("v", xp, after), ("f", fp, before), ("g", fp, after))
    near = {name: shapes.take(one, at, 0) for name, one, at in chosen_points}

    def end(value: object, default: Array, name: str) -> object:
        if value is None:
            return default.reshape(())
        return fp.dtype.type(value) if is_scalar(value) else given(value, fp, name).astype(fp.dtype)

    # As in NumPy: where an infinite value makes the line NaN, it is tried from its other end.
    line = "s = (g - f) / (v - u); y = s * (x - u) + f; z = y == y ? y : s * (x - v) + g; w = z == z ? z : f == g ? f : z"
    chosen = "p == 0 ? l : p == n && x > v ? r : p == n ? g : x == u ? f : w"
    if n > 1:  # one point alone is what NumPy gives for NaN too
        chosen = f"x != x ? x * g : {chosen}"
    ends = {"l": end(left, fp[:1], "left"), "r": end(right, fp[-1:], "right")}
    return expr(f"{line}; {chosen}", dtype=fp.dtype, x=x, p=passed, n=np.int64(n), **near, **ends)


# Phases.


def unwrap(p: Array, discont: Optional[float] = None, axis: int = -1, *, period: float = 2 * math.pi) -> Array:
    """p with multiples of a period added along an axis, so that neighbours are no more than half a period apart, as
    numpy.unwrap. Differences up to discont remain, if that is more than half a period. Integers with a whole period give
    integers."""
    require_array(p, "p")
    if is_complex(p.dtype) or p.dtype == np.bool_:
        raise TypeError(f"p is an array of {p.dtype}: needs real numbers")
    along = whole_axis(axis, p.ndim)
    length = real(period, "period")
    if length == 0:
        raise ValueError("period is 0")
    limit = length / 2 if discont is None else real(discont, "discont")
    integers = p.dtype.kind in "iu" and is_whole(period)
    kind = np.dtype(np.int64) if integers else p.dtype if is_float(p.dtype) else np.dtype(np.float32)
    x = p if p.dtype == kind else p.astype(kind)
    if p.shape[along] < 2:
        return x.copy() if x is p else x
    whole_length = whole(period, "period", -(2**62), 2**62) if integers else 0
    numbers = (whole_length // 2, whole_length) if integers else (length / 2, length)
    half, step = (elementwise.adopted(one, kind) for one in numbers)
    before = (slice(None),) * along
    later, earlier = x[(*before, slice(1, None))], x[(*before, slice(None, -1))]
    # How many periods each difference is to change by, in whole numbers: their sums are exact.
    turns = expr(
        "d = b - a; s = d + h; q = s // p; abs(d) < limit ? 0 : -q + (even && s - q * p == 0 && d > 0 ? 1 : 0)",
        dtype=kind, a=earlier, b=later, h=half, p=step, even=whole_length % 2 == 0,
        limit=elementwise.adopted(limit, kind),
    )  # fmt: skip
    total = reductions.cumsum(turns, along)
    result = x.copy()
    part = result[(*before, slice(1, None))]
    expr("x + t * p", out=part, x=part, t=total, p=step)
    return result if not integers or p.dtype == kind else elementwise.wrapped(result, p.dtype)


protocol.FUNCTIONS.update(gradient=gradient, interp=interp, unwrap=unwrap)
