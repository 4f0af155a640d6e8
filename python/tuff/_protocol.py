"""NumPy's functions on arrays: those that run on the device, and an error for the others, instead of a silent copy to
the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, NoReturn, Tuple

import numpy as np

from . import _elementwise as elementwise
from . import _functions as functions
from . import _operations as operations
from . import _reductions as reductions
from . import _searching as searching
from . import _shape as shapes
from . import _sorting as sorting
from ._expression import expr
from ._layout import dense
from ._operands import require_array, whole_axis
from ._storage import Storage

if TYPE_CHECKING:
    from ._array import Array

#: NumPy's names of ufuncs that have another name here.
_UFUNCS = {
    "absolute": "abs",
    "fabs": "abs",
    "negative": "neg",
    "true_divide": "divide",
    "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift",
    "right_shift": "bitwise_right_shift",
    "mod": "remainder",
    "rint": "round",
    **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "tan2", "sinh", "cosh", "tanh")},
}


def _refuse(name: str) -> NoReturn:
    raise TypeError(f"numpy.{name} does not run on a device; .numpy() copies an array to the host")


def ufunc(function: np.ufunc, method: str, *inputs: object, **options: object) -> object:
    """Array.__array_ufunc__"""
    name = function.__name__
    if name == "conjugate" and method == "__call__" and len(inputs) == 1 and not options:
        return inputs[0].conj()
    if method == "accumulate" and name in _ACCUMULATED:
        return _accumulate(name, *inputs, **options)
    if method == "at" and name in _AT and not options and len(inputs) == 3 and isinstance(inputs[0], Storage):
        INDEXING["scatter"](*inputs, _AT[name])
        return None
    if method != "__call__":
        _refuse(f"{name}.{method}")
    known = _UFUNCS.get(name, name)
    if known in UFUNCS:
        return _call(name, UFUNCS[known], inputs, options)
    for module in (elementwise, functions, operations):
        if known in module.__all__:
            return _call(name, getattr(module, known), inputs, options)
    _refuse(name)


def _call(name: str, called: Callable[..., object], inputs: Tuple[object, ...], options: Dict[str, object]) -> object:
    out, dtype = options.pop("out", (None,)), options.pop("dtype", None)
    if dtype is not None:
        inputs = tuple(one.astype(dtype) if isinstance(one, Storage) else one for one in inputs)
    if options:
        raise TypeError(f"numpy.{name} on a device takes no {', '.join(options)}")
    if len(out) > 1 and any(one is not None for one in out):
        raise TypeError(f"numpy.{name} on a device takes no out")
    return called(*inputs, **({} if out[0] is None else {"out": out[0]}))


#: Ufuncs whose accumulate() is a scan.
_ACCUMULATED = {"add": "cumsum", "multiply": "cumprod", "maximum": "cummax", "minimum": "cummin", "logaddexp": "cumlogsumexp"}


#: Ufuncs whose at() is a scatter.
_AT = {"add": "add", "multiply": "multiply", "maximum": "maximum", "minimum": "minimum"}


def _accumulate(name: str, array: Array, axis: int = 0, dtype: object = None, out: object = (None,)) -> Array:
    if dtype is not None:
        raise TypeError(f"numpy.{name}.accumulate on a device takes no dtype")
    if not isinstance(axis, (int, np.integer)):
        raise TypeError(f"axis is {axis!r}, not an integer")
    return getattr(reductions, _ACCUMULATED[name])(array, axis, out=out[0] if isinstance(out, tuple) else out)


def _concatenate(arrays: object, axis: object = 0, out: object = None) -> Array:
    for index, array in enumerate(arrays):
        require_array(array, f"array {index}")
    return shapes.concat(arrays, axis, out=out)


def stack(arrays: object, axis: int = 0, out: object = None) -> Array:
    arrays = list(arrays)
    for index, array in enumerate(arrays):
        require_array(array, f"array {index}")
    return _concatenate([expand_dims(array, axis) for array in arrays], axis, out)


def expand_dims(array: Array, axis: int) -> Array:
    at = whole_axis(axis, array.ndim + 1)
    return array.reshape((*array.shape[:at], 1, *array.shape[at:]))


def squeeze(array: Array, axis: object = None) -> Array:
    if axis is None:
        return array.reshape(tuple(size for size in array.shape if size != 1))
    axes = {whole_axis(one, array.ndim) for one in (axis if isinstance(axis, tuple) else (axis,))}
    for one in axes:
        if array.shape[one] != 1:
            raise ValueError(f"axis {one} has size {array.shape[one]}, not 1")
    return array.reshape(tuple(size for at, size in enumerate(array.shape) if at not in axes))


def _reduction(name: str) -> Callable[..., Array]:
    def call(array: Array, axis: object = None, out: object = None, keepdims: object = False) -> Array:
        if out is not None:
            raise TypeError(f"numpy.{name} on a device takes no out")
        return getattr(array, name)(axis, bool(keepdims) if isinstance(keepdims, (bool, np.bool_)) else False)

    return call


def _folded(name: str) -> Callable[..., Array]:
    """sum, prod and mean, whose dtype comes before out."""

    def call(array: Array, axis: object = None, dtype: object = None, out: object = None, keepdims: object = False) -> Array:
        if out is not None:
            raise TypeError(f"numpy.{name} on a device takes no out")
        keeps = bool(keepdims) if isinstance(keepdims, (bool, np.bool_)) else False
        if dtype is None:
            return getattr(array, name)(axis, keeps)
        return array.astype(dtype).mean(axis, keeps) if name == "mean" else getattr(array, name)(axis, keeps, dtype=dtype)

    return call


def _from_numpy(scan: Callable[..., Array]) -> Callable[..., Array]:
    """A scan with NumPy's out."""

    def call(x: Array, *, out: object = None, **options: object) -> Array:
        if out is not None:
            raise TypeError(f"numpy.{scan.__name__} on a device takes no out")
        return scan(x, **options)

    return call


def _cumulated(name: str) -> Callable[..., Array]:
    def call(array: Array, axis: object = None, dtype: object = None, out: object = None) -> Array:
        if dtype is None:
            return getattr(reductions, name)(array, axis, out=out)
        if out is not None:
            raise TypeError(f"numpy.{name} on a device takes dtype or out, not both")
        same = reductions.cumulative_sum if name == "cumsum" else reductions.cumulative_prod
        return same(array.ravel() if axis is None else array, axis=0 if axis is None else axis, dtype=dtype)

    return call


def _spread(name: str) -> Callable[..., Array]:
    def call(array: Array, axis: object = None, dtype: object = None, out: object = None, ddof: float = 0, keepdims: object = False) -> Array:
        if dtype is not None or out is not None:
            raise TypeError(f"numpy.{name} on a device takes neither dtype nor out")
        return getattr(array, name)(axis, ddof, bool(keepdims) if isinstance(keepdims, (bool, np.bool_)) else False)

    return call


def _allclose(a: object, b: object, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    return bool(elementwise.isclose(a, b, rtol, atol, equal_nan).all())


def _array_equal(a: object, b: object) -> bool:
    require_array(a, "a1")
    require_array(b, "a2")
    return a.shape == b.shape and bool((a == b).all())


def _full_like(array: Array, value: object, dtype: object = None, shape: object = None) -> Array:
    return array.context.full(array.shape if shape is None else shape, value, array.dtype if dtype is None else dtype)


def _round(array: Array, decimals: int = 0, out: object = None) -> Array:
    """As NumPy rounds: of a multiple by a power of ten."""
    if decimals == 0 or array.dtype.kind in "iu":
        if decimals < 0:
            raise TypeError("numpy.round of integers on a device takes no negative decimals")
        return functions.round(array, out=out)
    scale = (np.float64 if array.dtype == np.float64 else float)(10.0 ** abs(decimals))
    return expr("round(x * s) / s" if decimals > 0 else "round(x / s) * s", x=array, s=scale, out=out)


def _as_places(indices: Array, name: str) -> Array:
    """Integers as int64: their own type may hold less than a shape's number of elements."""
    if indices.dtype.kind not in "iub":
        raise TypeError(f"numpy.{name} of {indices.dtype}, needs integers")
    return indices.astype(np.int64)


def _unravel_index(indices: Array, shape: object, order: str = "C") -> Tuple[Array, ...]:
    """Coordinates of places in a shape. Places out of range are not looked for: they give coordinates beyond the shape."""
    if order != "C":
        raise TypeError("numpy.unravel_index on a device takes order C")
    indices = _as_places(indices, "unravel_index")
    found = []
    for size in reversed(shape if isinstance(shape, (tuple, list)) else (shape,)):
        found.append(indices % int(size) if size else indices)
        indices = indices // max(int(size), 1)
    return tuple(reversed(found))


def _ravel_multi_index(multi_index: Any, dims: object, mode: str = "raise", order: str = "C") -> Array:
    """Places in a shape, of coordinates within it."""
    if mode != "raise" or order != "C":
        raise TypeError("numpy.ravel_multi_index on a device takes order C, and no mode")
    place: Any = 0
    for index, size in zip(multi_index, dims if isinstance(dims, (tuple, list)) else (dims,)):
        place = place * int(size) + (_as_places(index, "ravel_multi_index") if isinstance(index, Storage) else index)
    return place


#: What makes arrays with like= of values.
_OF_VALUES = ("array", "asarray", "asanyarray", "ascontiguousarray")
#: What makes arrays of a shape or of numbers: from _namespace, which needs this module.
MAKERS: Dict[str, Callable[..., Array]] = {}


def made_like(name: str, like: Array, *arguments: Any, dtype: object = None, **options: object) -> Array:
    """numpy.asarray(values, like=array) and the like: an array on the device of an array. An array is returned as it is only
    by those that NumPy lets do so: not by array(), and by ascontiguousarray() only if its elements are adjacent."""
    for ignored in ("order", "subok", "device"):
        options.pop(ignored, None)
    if name in _OF_VALUES:
        copies, axes = options.pop("copy", name == "array"), options.pop("ndmin", 0)
        if options or axes != 0 or len(arguments) > 2:
            raise TypeError(f"numpy.{name} with like= on a device takes values and a dtype")
        values, dtype = arguments[0], arguments[1] if len(arguments) == 2 else dtype
        if isinstance(values, Storage):
            if dtype is not None and values.dtype != dtype:
                return values.astype(dtype)
            if copies:
                return values.copy()
            return dense(values) if name == "ascontiguousarray" else values
        if isinstance(values, (tuple, list)) and any(isinstance(one, Storage) for one in values):
            stacked = FUNCTIONS["stack"](values)
            return stacked if dtype is None else stacked.astype(dtype)
        return like.context.array(np.asarray(values), dtype)
    options.pop("copy", None)
    if "M" in options:  # numpy.eye
        options["m"] = options.pop("M")
    if dtype is not None:  # otherwise it may be among the arguments
        options["dtype"] = dtype
    return MAKERS[name](*arguments, device=like.context, **options)


def _where(condition: object, *values: object) -> Array:
    if not values:
        return searching.nonzero(condition)
    if len(values) != 2:
        raise TypeError("where takes a condition, or a condition and two values")
    return elementwise.where(condition, *values)


#: What Array[key] and Array[key] = value do: "get" and "put", from _indexing, which needs Array.
INDEXING: Dict[str, Callable[..., Any]] = {}

#: What Array.real and Array.imag are: "part" of a complex array, and "none", the imaginary parts of a real one, from _views.
PARTS: Dict[str, Callable[..., Any]] = {}

#: Array.sum() and prod() with a dtype, from _namespace.
FUNCTIONS_OF_TYPES: Dict[str, Callable[..., Any]] = {}

#: Ufuncs that are neither formulas nor operations. Modules that import this one fill it.
UFUNCS: Dict[str, Callable[..., Any]] = {}

#: By the names after "numpy.". Modules that import this one add theirs.
FUNCTIONS: Dict[str, Callable[..., Any]] = {
    "angle": elementwise.angle,
    **{name: _reduction(name) for name in ("max", "min", "any", "all", "argmax", "argmin")},
    **{name: _folded(name) for name in ("sum", "prod", "mean")},
    "amax": _reduction("max"),
    "amin": _reduction("min"),
    "var": _spread("var"),
    "std": _spread("std"),
    "allclose": _allclose,
    "array_equal": _array_equal,
    "argpartition": lambda array, kth, axis=-1: sorting.argpartition(array, kth, axis),
    "argsort": lambda array, axis=-1, kind=None, order=None: sorting.argsort(array, axis),
    "argwhere": searching.argwhere,
    "bincount": lambda array, weights=None, minlength=0: searching.bincount(array, weights, minlength),
    "clip": lambda array, min=None, max=None, out=None: elementwise.clip(array, min, max, out=out),
    "compress": lambda condition, array, axis=None: searching.compress(condition, array, axis),
    "concatenate": _concatenate,
    "copy": lambda array: array.copy(),
    "count_nonzero": lambda array, axis=None, keepdims=False: reductions.count_nonzero(array, axis, keepdims),
    "cumprod": _cumulated("cumprod"),
    "cumsum": _cumulated("cumsum"),
    "cumulative_prod": _from_numpy(reductions.cumulative_prod),
    "cumulative_sum": _from_numpy(reductions.cumulative_sum),
    "empty_like": lambda array, dtype=None: array.context.empty(array.shape, array.dtype if dtype is None else dtype),
    "expand_dims": expand_dims,
    "extract": searching.extract,
    "flatnonzero": searching.flatnonzero,
    "full_like": _full_like,
    "isclose": elementwise.isclose,
    "median": lambda array, axis=None, keepdims=False: sorting.median(array, axis, keepdims),
    "iscomplex": elementwise.iscomplex,
    "isreal": elementwise.isreal,
    "ndim": lambda array: array.ndim,
    "nonzero": searching.nonzero,
    "ones_like": lambda array, dtype=None, shape=None: _full_like(array, 1, dtype, shape),
    "partition": lambda array, kth, axis=-1: sorting.partition(array, kth, axis),
    "percentile": lambda array, q, axis=None, method="linear", keepdims=False: sorting.percentile(
        array, q, axis, method=method, keepdims=keepdims
    ),
    "quantile": lambda array, q, axis=None, method="linear", keepdims=False: sorting.quantile(
        array, q, axis, method=method, keepdims=keepdims
    ),
    "imag": lambda array: array.imag,
    "ravel": lambda array: array.ravel(),
    "ravel_multi_index": _ravel_multi_index,
    "real": lambda array: array.real,
    "real_if_close": elementwise.real_if_close,
    "reshape": lambda array, shape: array.reshape(shape),
    **{name: _round for name in ("round", "round_", "around")},  # by version of NumPy
    "searchsorted": searching.searchsorted,
    "shape": lambda array: array.shape,
    "size": lambda array: array.size,
    "sort": lambda array, axis=-1, kind=None, order=None: sorting.sort(array, axis),
    "squeeze": squeeze,
    "stack": stack,
    "swapaxes": lambda array, axis1, axis2: array.swapaxes(axis1, axis2),
    "take": lambda array, indices, axis=None, out=None: shapes.take(
        array.ravel() if axis is None else array, indices, 0 if axis is None else axis, out=out
    ),
    "transpose": lambda array, axes=None: array.transpose(axes),
    "unique": searching.unique,
    "unique_all": searching.unique_all,
    "unique_counts": searching.unique_counts,
    "unique_inverse": searching.unique_inverse,
    "unique_values": searching.unique_values,
    "unravel_index": _unravel_index,
    "where": _where,
    "zeros_like": lambda array, dtype=None, shape=None: _full_like(array, 0, dtype, shape),
}


def function(called: Callable[..., object], arguments: Tuple[object, ...], options: Dict[str, object], like: Array) -> object:
    """Array.__array_function__ of `like`, which is an argument, or what was passed as like= to a function that makes arrays."""
    name = called.__name__ if called.__module__ == "numpy" else f"{called.__module__.removeprefix('numpy.')}.{called.__name__}"
    if name in _OF_VALUES or name in MAKERS:
        return made_like(name, like, *arguments, **options)
    if name not in FUNCTIONS:
        _refuse(name)
    if arguments and isinstance(arguments[0], np.ndarray):
        require_array(arguments[0], "the first operand")
    return FUNCTIONS[name](*arguments, **options)


