"""NumPy's functions that are made of others: joins, splits, products, differences and what ignores NaN."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Callable, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import _convolution as convolution
from . import _einsum as products
from . import _elementwise as elementwise
from . import _functions as functions
from . import _namespace as namespace
from . import _operations as operations
from . import _reductions as reductions
from . import _protocol as protocol
from . import _shape as shapes
from ._array import Array
from ._checked import choice, is_whole, sequence, whole
from ._expression import expr
from ._operands import given, require_array, whole_axis

if TYPE_CHECKING:
    from ._array import Axis
    from ._context import Context

__all__ = [
    "append",
    "argmax",
    "argmin",
    "array_equiv",
    "array_split",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "average",
    "column_stack",
    "convolve",
    "correlate",
    "diff",
    "dot",
    "dsplit",
    "dstack",
    "ediff1d",
    "fliplr",
    "flipud",
    "geomspace",
    "hsplit",
    "hstack",
    "inner",
    "logspace",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
    "negative",
    "pow",
    "ptp",
    "rollaxis",
    "rot90",
    "select",
    "split",
    "trapezoid",
    "tri",
    "vander",
    "vdot",
    "vsplit",
    "vstack",
]


def _all_arrays(arrays: Sequence[Array]) -> List[Array]:
    found = list(arrays) if not isinstance(arrays, Array) else [arrays[i] for i in range(len(arrays))]
    for index, one in enumerate(found):
        require_array(one, f"array {index}")
    return found


# Names that NumPy and the array API have for functions of another name.


def negative(x: Array, *, out: Optional[Array] = None) -> Array:
    """-x"""
    return functions.neg(x, out=out)


def pow(a: Union[Array, float], b: Union[Array, float], *, out: Optional[Array] = None) -> Array:
    """a to the power of b."""
    return functions.power(a, b, out=out)


def argmax(x: Array, axis: Optional[int] = None, keepdims: bool = False) -> Array:
    """The index of the largest element along one axis, or of all, as int64: the first of equal ones, or the first NaN."""
    require_array(x, "x")
    return x.argmax(axis, keepdims)


def argmin(x: Array, axis: Optional[int] = None, keepdims: bool = False) -> Array:
    """The index of the smallest element along one axis, or of all, as int64: the first of equal ones, or the first NaN."""
    require_array(x, "x")
    return x.argmin(axis, keepdims)


# Joins and splits.


def _raised(arrays: Tuple[Array, ...], raise_one: Callable[[Array], Array]) -> Union[Array, List[Array]]:
    raised = [raise_one(one) for one in _all_arrays(arrays)]
    return raised[0] if len(raised) == 1 else raised


def atleast_1d(*arrays: Array) -> Union[Array, List[Array]]:
    """Views with at least one axis: of one array the view, of several a list."""
    return _raised(arrays, lambda x: x.reshape(1) if x.ndim == 0 else x)


def atleast_2d(*arrays: Array) -> Union[Array, List[Array]]:
    """Views with at least two axes: a vector becomes a row."""
    return _raised(arrays, lambda x: x.reshape(1, x.size) if x.ndim < 2 else x)


def atleast_3d(*arrays: Array) -> Union[Array, List[Array]]:
    """Views with at least three axes: a vector (n,) becomes (1, n, 1), a matrix (m, n) becomes (m, n, 1)."""
    return _raised(arrays, lambda x: x.reshape(1, x.size, 1) if x.ndim < 2 else x.reshape(*x.shape, 1) if x.ndim == 2 else x)


def vstack(arrays: Sequence[Array]) -> Array:
    """Joins matrices below each other; vectors are rows."""
    return shapes.concat([atleast_2d(one) for one in _all_arrays(arrays)], 0)


def hstack(arrays: Sequence[Array]) -> Array:
    """Joins matrices beside each other, and vectors end to end."""
    found = [atleast_1d(one) for one in _all_arrays(arrays)]
    return shapes.concat(found, 0 if found and found[0].ndim == 1 else 1)


def dstack(arrays: Sequence[Array]) -> Array:
    """Joins along the third axis."""
    return shapes.concat([atleast_3d(one) for one in _all_arrays(arrays)], 2)


def column_stack(arrays: Sequence[Array]) -> Array:
    """Joins matrices beside each other; vectors are columns."""
    return shapes.concat([one.reshape(one.size, 1) if one.ndim < 2 else one for one in _all_arrays(arrays)], 1)


def append(x: Array, values: Array, axis: Optional[int] = None) -> Array:
    """x and then values along an axis; without one, both are flattened first."""
    require_array(x, "x")
    require_array(values, "values")
    return shapes.concat([x.ravel(), values.ravel()], 0) if axis is None else shapes.concat([x, values], axis)


def array_split(x: Array, sections: Union[int, Sequence[int]], axis: int = 0) -> List[Array]:
    """Parts along an axis: as many as sections, of sizes that differ by one at most, or parts that begin at the given
    indices."""
    require_array(x, "x")
    along = whole_axis(axis, x.ndim)
    size = x.shape[along]
    if is_whole(sections):
        count = whole(sections, "sections", 1)
        each, longer = np.divmod(size, count)
        bounds = [0, *np.cumsum([each + 1] * longer + [each] * (count - longer)).tolist()]
    else:
        bounds = [0, *(whole(at, "an index", -(2**63), 2**63 - 1) for at in sequence(sections, "sections", "indices")), size]
    before = (slice(None),) * along
    return [shapes.section(x, (*before, slice(begin, end))) for begin, end in zip(bounds, bounds[1:])]


def split(x: Array, sections: Union[int, Sequence[int]], axis: int = 0) -> List[Array]:
    """As array_split(), but a number of sections must divide the axis."""
    require_array(x, "x")
    if is_whole(sections) and x.shape[whole_axis(axis, x.ndim)] % whole(sections, "sections", 1) != 0:
        raise ValueError(f"{sections} sections do not divide axis {axis} of shape {x.shape}")
    return array_split(x, sections, axis)


def _require_axes(x: Array, least: int) -> None:
    require_array(x, "x")
    if x.ndim < least:
        raise ValueError(f"x has shape {x.shape}, needs at least {least} axes")


def vsplit(x: Array, sections: Union[int, Sequence[int]]) -> List[Array]:
    """split() along the first of at least two axes."""
    _require_axes(x, 2)
    return split(x, sections, 0)


def hsplit(x: Array, sections: Union[int, Sequence[int]]) -> List[Array]:
    """split() along the second axis, or the only one."""
    _require_axes(x, 1)
    return split(x, sections, 1 if x.ndim > 1 else 0)


def dsplit(x: Array, sections: Union[int, Sequence[int]]) -> List[Array]:
    """split() along the third axis."""
    _require_axes(x, 3)
    return split(x, sections, 2)


# Shapes.


def fliplr(x: Array) -> Array:
    """The columns in reverse."""
    _require_axes(x, 2)
    return namespace.flip(x, 1)


def flipud(x: Array) -> Array:
    """The rows in reverse."""
    _require_axes(x, 1)
    return namespace.flip(x, 0)


def rot90(x: Array, k: int = 1, axes: Tuple[int, int] = (0, 1)) -> Array:
    """Turned by 90 degrees k times, from the first of two axes towards the second, into a new array."""
    _require_axes(x, 2)
    first, second = (whole_axis(axis, x.ndim) for axis in sequence(axes, "axes", "two axes"))
    if first == second:
        raise ValueError(f"axes are {axes}, needs two different ones")
    times = whole(k, "k", -(2**63), 2**63 - 1) % 4
    if times == 0:
        return x.copy()
    if times == 2:
        return namespace.flip(x, (first, second))
    return namespace.flip(x, second).swapaxes(first, second) if times == 1 else namespace.flip(x.swapaxes(first, second), second)


def rollaxis(x: Array, axis: int, start: int = 0) -> Array:
    """Moves an axis to stand before another, start, in a new array."""
    require_array(x, "x")
    along = whole_axis(axis, x.ndim)
    at = whole(start, "start", -x.ndim, x.ndim)
    at += x.ndim if at < 0 else 0
    return namespace.moveaxis(x, along, at - 1 if along < at else at)


# Products.


def dot(a: Union[Array, float], b: Union[Array, float]) -> Array:
    """As numpy.dot: the product of matrices and vectors, or a * b if one has no axes. Of a stack b the products of a with each
    of its matrices, along new axes: matmul() multiplies stacks in pairs."""
    if any(not isinstance(value, Array) or value.ndim == 0 for value in (a, b)):
        return functions.multiply(a, b)
    if b.ndim > 2:
        return products.tensordot(a, b, ((-1,), (-2,)))
    return operations.matmul(a, b)


def inner(a: Union[Array, float], b: Union[Array, float]) -> Array:
    """Sums of products along the last axes of both."""
    if any(not isinstance(value, Array) or value.ndim == 0 for value in (a, b)):
        return functions.multiply(a, b)
    if a.shape[-1] != b.shape[-1]:
        raise ValueError(f"inner of shapes {a.shape} and {b.shape}: the last sizes differ")
    return products.tensordot(a, b, ((-1,), (-1,)))


def vdot(a: Array, b: Array) -> Array:
    """The sum of products of the elements of two flattened arrays, of the conjugates of a."""
    require_array(a, "a")
    require_array(b, "b")
    return inner(a.ravel().conj(), b.ravel())


_MODES = {"full": 2, "same": 1, "valid": 0}


def _slid(a: Array, v: Array, mode: str) -> Array:
    """Cross-correlation of vectors of floats; v is the shorter one."""
    how, taps = choice(mode, "mode", _MODES), v.size
    padding = (taps - 1, taps - 1) if how == 2 else (taps // 2, taps - 1 - taps // 2) if how == 1 else (0, 0)
    return convolution.conv1d(a.reshape(1, 1, a.size), v.reshape(1, 1, taps), padding=(padding,)).ravel()


def _vectors(a: Array, v: Array) -> Tuple[Array, Array]:
    for value, name in ((a, "a"), (v, "v")):
        require_array(value, name)
        if value.ndim != 1 or value.size == 0:
            raise ValueError(f"{name} has shape {value.shape}, needs a vector with elements")
    kind = elementwise.type_of(a, v)
    kind = kind if elementwise.is_float(kind) else np.dtype(np.float32)
    return namespace.astype(a, kind, copy=False), namespace.astype(v, kind, copy=False)


def convolve(a: Array, v: Array, mode: str = "full") -> Array:
    """The convolution of two vectors, in float32 for integers: all sums that have a term ("full"), those where both
    overlap wholly ("valid"), or as many as the longer vector has elements ("same")."""
    a, v = _vectors(a, v)
    long, short = (v, a) if v.size > a.size else (a, v)
    return _slid(long, namespace.flip(short), mode)


def correlate(a: Array, v: Array, mode: str = "valid") -> Array:
    """The cross-correlation of two vectors: sums of a[n + k] * v[n], with the modes of convolve()."""
    a, v = _vectors(a, v)
    return _slid(a, v, mode) if v.size <= a.size else namespace.flip(_slid(v, a, mode))


# Sums, differences, and what ignores NaN.


def ptp(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """The largest minus the smallest element over axes."""
    require_array(x, "x")
    return x.max(axis, keepdims) - x.min(axis, keepdims)


def average(
    x: Array, axis: Axis = None, weights: Optional[Array] = None, keepdims: bool = False, *, returned: bool = False
) -> Union[Array, Tuple[Array, Array]]:
    """The mean over axes, of weighted elements if there are weights, of the shape of x or, along one axis, a vector. returned:
    also the sums of the weights, which count 1 if there are none."""
    require_array(x, "x")
    mean = _average(x, axis, weights, keepdims)
    if not returned:
        return mean
    if weights is None:
        return mean, namespace.full_like(mean, x.size / mean.size if mean.size else 0)
    total = weights.sum(axis, keepdims) if weights.shape == x.shape else weights.sum()
    return mean, operations.repeated_to(total.astype(mean.dtype), mean.shape)


def _average(x: Array, axis: Axis, weights: Optional[Array], keepdims: bool) -> Array:
    if weights is None:
        return namespace.mean(x, axis, keepdims)
    require_array(weights, "weights")
    if weights.shape != x.shape:
        if not is_whole(axis) or weights.shape != (x.shape[whole_axis(axis, x.ndim)],):
            raise ValueError(f"weights have shape {weights.shape}, x {x.shape}: needs the same, or a vector along one axis")
        column = weights.reshape(-1, *(1,) * (x.ndim - whole_axis(axis, x.ndim) - 1))
        return (x * column).sum(axis, keepdims) / weights.sum()
    return (x * weights).sum(axis, keepdims) / weights.sum(axis, keepdims)


def diff(
    x: Array, n: int = 1, axis: int = -1, prepend: Union[None, float, Array] = None, append: Union[None, float, Array] = None
) -> Array:
    """The differences of neighbours along an axis, n times, after prepend and append, arrays or numbers, are joined to it."""
    require_array(x, "x")
    along = whole_axis(axis, x.ndim)

    single = tuple(1 if one == along else size for one, size in enumerate(x.shape))

    def end(value: Union[float, Array], name: str) -> Array:
        part = given(value, x, name)
        return part if part.ndim else operations.repeated_to(part, single)

    parts = [x] if prepend is None else [end(prepend, "prepend"), x]
    if append is not None:
        parts.append(end(append, "append"))
    if len(parts) > 1:
        x = shapes.concat(parts, along)
    before = (slice(None),) * along
    for _ in range(whole(n, "n")):
        later, earlier = (shapes.section(x, (*before, part)) for part in (slice(1, None), slice(None, -1)))
        x = elementwise.not_equal(later, earlier) if x.dtype == np.bool_ else later - earlier
    return x


def ediff1d(
    x: Array, to_end: Union[None, float, Sequence[float], Array] = None, to_begin: Union[None, float, Sequence[float], Array] = None
) -> Array:
    """The differences of neighbours of the flattened array, after to_begin and before to_end, which are of its type."""
    require_array(x, "x")
    inner = diff(x.ravel())
    if to_end is None and to_begin is None:
        return inner

    def end(value: Union[float, Sequence[float], Array], name: str) -> Array:
        part = given(value, x, name).ravel()
        if not np.can_cast(part.dtype, x.dtype, "same_kind"):
            raise TypeError(f"dtype of `{name}` must be compatible with input `ary` under the `same_kind` rule.")
        return part.astype(inner.dtype)

    before = [] if to_begin is None else [end(to_begin, "to_begin")]
    after = [] if to_end is None else [end(to_end, "to_end")]
    return shapes.concat([*before, inner, *after], 0)


def trapezoid(y: Array, x: Optional[Array] = None, dx: float = 1.0, axis: int = -1) -> Array:
    """The integral along an axis by the trapezoidal rule, at the places x, a vector or of the shape of y, or dx apart."""
    require_array(y, "y")
    along = whole_axis(axis, y.ndim)
    before = (slice(None),) * along
    later, earlier = (shapes.section(y, (*before, part)) for part in (slice(1, None), slice(None, -1)))
    if x is None:
        return ((later + earlier) * (0.5 * dx)).sum(along)
    require_array(x, "x")
    steps = diff(x, axis=along if x.ndim == y.ndim else -1)
    if x.ndim == 1:
        steps = steps.reshape(-1, *(1,) * (y.ndim - along - 1))
    return ((later + earlier) * steps * 0.5).sum(along)


def without_nan(x: Array, value: float) -> Array:
    require_array(x, "x")
    elementwise.require_real(x)
    if not elementwise.is_float(x.dtype):
        return x
    return expr("isnan(x) ? v : x", x=x, v=elementwise.adopted(value, x.dtype))


def _reduced(name: str, value: str, x: Array, axis: Axis, keepdims: bool, dtype: object, **inputs: object) -> Array:
    """A reduction over axes of a formula of x, in one kernel: the values are not stored."""
    axes = range(x.ndim) if axis is None else (axis,) if is_whole(axis) else sequence(axis, "axis", "an integer, several, or None")
    named = ", ".join(str(whole_axis(one, x.ndim)) for one in axes)
    if named and x.size:
        return expr(f"{name}({value}, axis=({named}))", dtype=dtype, keepdims=keepdims, x=x, **inputs)
    values = expr(value, dtype=dtype if name in ("sum", "prod", "max", "min") else np.bool_, x=x, **inputs)
    return getattr(values, name)(axis, keepdims)


def _counted(x: Array, axis: Axis, keepdims: bool, dtype: np.dtype) -> Array:
    return _reduced("count_nonzero", "!isnan(x)", x, axis, keepdims, np.int64).astype(dtype)


def _folded_without_nan(x: Array, name: str, value: float, axis: Axis, keepdims: bool) -> Array:
    require_array(x, "x")
    elementwise.require_real(x)
    if not elementwise.is_float(x.dtype):
        return getattr(x, name)(axis, keepdims)
    return _reduced(name, "isnan(x) ? v : x", x, axis, keepdims, x.dtype, v=elementwise.adopted(value, x.dtype))


def nansum(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """The sum over axes of what is not NaN."""
    return _folded_without_nan(x, "sum", 0.0, axis, keepdims)


def nanprod(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """The product over axes of what is not NaN."""
    return _folded_without_nan(x, "prod", 1.0, axis, keepdims)


def _extreme(x: Array, name: str, axis: Axis, keepdims: bool) -> Array:
    require_array(x, "x")
    elementwise.require_real(x)
    if not elementwise.is_float(x.dtype):
        return getattr(x, name)(axis, keepdims)
    found = _folded_without_nan(x, name, -math.inf if name == "max" else math.inf, axis, keepdims)
    empty = _reduced("all", "isnan(x)", x, axis, keepdims, np.bool_)
    return elementwise.where(empty, x.dtype.type(math.nan), found)


def nanmax(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """The largest element over axes that is not NaN; NaN if there is none."""
    return _extreme(x, "max", axis, keepdims)


def nanmin(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """The smallest element over axes that is not NaN; NaN if there is none."""
    return _extreme(x, "min", axis, keepdims)


def nanmean(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """The mean over axes of what is not NaN."""
    require_array(x, "x")
    elementwise.require_real(x)
    if not elementwise.is_float(x.dtype):
        return namespace.mean(x, axis, keepdims)
    return nansum(x, axis, keepdims) / _counted(x, axis, keepdims, x.dtype)


def nanvar(x: Array, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Array:
    """The variance over axes of what is not NaN; divided by their number less the correction."""
    require_array(x, "x")
    elementwise.require_real(x)
    if not elementwise.is_float(x.dtype):
        return namespace.var(x, axis, correction, keepdims)
    squares = _reduced("sum", "isnan(x) ? 0 : (x - m) ** 2", x, axis, keepdims, x.dtype, m=nanmean(x, axis, True))
    return squares / (_counted(x, axis, keepdims, x.dtype) - correction)


def nanstd(x: Array, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Array:
    """The square root of nanvar()."""
    return functions.sqrt(nanvar(x, axis, correction, keepdims))


def array_equiv(a: Array, b: Array) -> bool:
    """Whether two arrays are equal after broadcasting. It waits."""
    require_array(a, "a")
    require_array(b, "b")
    try:
        np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        return False
    return bool(reductions.all(elementwise.equal(a, b)))


def select(conditions: Sequence[Array], values: Sequence[Union[Array, float]], default: float = 0) -> Array:
    """The elements of the first of the values whose condition is true, or default."""
    conditions, values = list(conditions), list(values)
    if len(conditions) != len(values) or not conditions:
        raise ValueError(f"{len(conditions)} conditions for {len(values)} values")
    result = default
    for condition, value in zip(conditions[::-1], values[::-1]):
        result = elementwise.where(condition, value, result)
    return result


# Creation.


def logspace(
    start: float, stop: float, num: int = 50, endpoint: bool = True, base: float = 10.0, dtype: object = None, *, device: Optional[Context] = None
) -> Array:
    """base to the power of num numbers from start to stop at equal distances, by default float32."""
    power = np.logspace(start, stop, num, endpoint, base)
    return namespace.array(power, np.float32 if dtype is None else dtype, device=device)


def geomspace(
    start: float, stop: float, num: int = 50, endpoint: bool = True, dtype: object = None, *, device: Optional[Context] = None
) -> Array:
    """num numbers from start to stop at equal ratios, by default float32."""
    return namespace.array(np.geomspace(start, stop, num, endpoint), np.float32 if dtype is None else dtype, device=device)


def tri(n: int, m: Optional[int] = None, k: int = 0, dtype: object = np.float32, *, device: Optional[Context] = None) -> Array:
    """An n x m matrix with ones at and below a diagonal, k to the right of the main one."""
    return namespace.tril(namespace.ones((n, n if m is None else m), dtype, device=device), k)


def vander(x: Array, n: Optional[int] = None, increasing: bool = False) -> Array:
    """The powers of a vector's elements as columns, the highest first unless increasing."""
    require_array(x, "x")
    if x.ndim != 1:
        raise ValueError(f"x has shape {x.shape}, needs a vector")
    elementwise.require_real(x)
    count = x.size if n is None else whole(n, "n")
    powers = np.arange(count, dtype=np.int32)
    dtype = x.dtype if elementwise.is_float(x.dtype) else np.dtype(np.float32)
    exponents = x.context.array(powers if increasing else powers[::-1].copy())
    formula = f"n == 0 ? 1 : {'f64' if dtype == np.float64 else 'f32'}(x) ** n"
    return expr(formula, dtype=dtype, x=x.reshape(x.size, 1), n=exponents)


def _over_axes(function: Callable[..., Array]) -> Callable[..., Array]:
    return lambda a, axis=None, *, keepdims=False: function(a, axis, keepdims=bool(keepdims))


def _folded_over_axes(function: Callable[..., Array]) -> Callable[..., Array]:
    """For those whose third argument is dtype in NumPy; that of the others is out."""

    def call(a: Array, axis: object = None, dtype: object = None, *, keepdims: bool = False) -> Array:
        return function(a if dtype is None or a.dtype == dtype else a.astype(dtype), axis, keepdims=bool(keepdims))

    return call


def _spread_over_axes(function: Callable[..., Array]) -> Callable[..., Array]:
    return lambda a, axis=None, *, ddof=0, keepdims=False: function(a, axis, ddof, bool(keepdims))


protocol.FUNCTIONS.update(
    {
        "append": append,
        "array_equiv": array_equiv,
        "array_split": array_split,
        "atleast_1d": atleast_1d,
        "atleast_2d": atleast_2d,
        "atleast_3d": atleast_3d,
        "average": lambda a, axis=None, weights=None, returned=False, *, keepdims=False: average(
            a, axis, weights, bool(keepdims), returned=bool(returned)
        ),
        "column_stack": column_stack,
        "convolve": convolve,
        "correlate": correlate,
        "diff": diff,
        "dot": dot,
        "dsplit": dsplit,
        "dstack": dstack,
        "ediff1d": ediff1d,
        "fliplr": fliplr,
        "flipud": flipud,
        "hsplit": hsplit,
        "hstack": hstack,
        "inner": inner,
        "isneginf": elementwise.isneginf,
        "isposinf": elementwise.isposinf,
        "nan_to_num": lambda x, copy=True, nan=0.0, posinf=None, neginf=None: elementwise.nan_to_num(x, nan, posinf, neginf),
        "nanmax": _over_axes(nanmax),
        "nanmean": _folded_over_axes(nanmean),
        "nanmin": _over_axes(nanmin),
        "nanprod": _folded_over_axes(nanprod),
        "nanstd": _spread_over_axes(nanstd),
        "nansum": _folded_over_axes(nansum),
        "nanvar": _spread_over_axes(nanvar),
        "ptp": _over_axes(ptp),
        "rollaxis": rollaxis,
        "rot90": rot90,
        "select": select,
        "sinc": elementwise.sinc,
        "split": split,
        "trapezoid": trapezoid,
        "trapz": trapezoid,
        "vander": vander,
        "vdot": vdot,
        "vsplit": vsplit,
        "vstack": vstack,
    }
)
