"""Functions of the array API standard (2024.12) that are not operations of their own: arrays on a default context,
shapes, statistics and types."""

from __future__ import annotations

import builtins
import math
from typing import TYPE_CHECKING, Any, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import _elementwise as elementwise
from . import _functions as functions
from . import _operations as operations
from . import _protocol as protocol
from . import _shape as shapes
from . import _views as views
from ._array import Array
from ._types import complex_of
from ._checked import is_complex_number, is_whole, real, sequence, whole
from ._context import Context
from ._default import default_context
from ._expression import expr
from ._layout import may_share
from ._operands import named_axes, require_array, whole_axis
from ._storage import as_dtype, as_shape

if TYPE_CHECKING:
    from ._array import Axis

    Shape = Union[int, Sequence[int]]

__all__ = [
    "arange",
    "array",
    "asarray",
    "asarray_chkfinite",
    "astype",
    "broadcast_arrays",
    "can_cast",
    "e",
    "empty",
    "empty_like",
    "expand_dims",
    "eye",
    "flip",
    "full",
    "full_like",
    "inf",
    "linspace",
    "logsumexp",
    "max",
    "mean",
    "meshgrid",
    "min",
    "moveaxis",
    "nan",
    "newaxis",
    "ones",
    "ones_like",
    "permute_dims",
    "pi",
    "prod",
    "repeat",
    "reshape",
    "result_type",
    "roll",
    "squeeze",
    "stack",
    "std",
    "sum",
    "tile",
    "tril",
    "triu",
    "unstack",
    "var",
    "zeros",
    "zeros_like",
]

e, inf, nan, newaxis, pi = math.e, math.inf, math.nan, None, math.pi

# Arrays on a context: `device`, which is a tuff.Context, or the default one.


def _context(device: Optional[Context]) -> Context:
    if device is None:
        return default_context()
    if not isinstance(device, Context):
        raise TypeError(f"device is {type(device).__name__}, not a tuff.Context")
    return device


def array(values: object, dtype: object = None, *, device: Optional[Context] = None) -> Array:
    """Uploads anything that NumPy accepts; of a tuff.Array, returns a copy."""
    if isinstance(values, Array):
        values = values if device is None or device is values.context else values.to(device)
        return values.copy() if dtype is None or as_dtype(dtype) == values.dtype else values.astype(dtype)
    return _context(device).array(values, dtype)


def asarray(values: object, dtype: object = None, *, device: Optional[Context] = None, copy: Optional[bool] = None) -> Array:
    """As array(), but returns a tuff.Array of the dtype itself unless copy is True. Integers of Python, also in lists, are
    int64, as the standard's default."""
    kept = isinstance(values, Array) and device in (None, values.context) and (dtype is None or as_dtype(dtype) == values.dtype)
    if kept and not copy:
        return values
    if copy is False:
        raise ValueError("these values reach a device, or another type, only as a copy")
    if dtype is None and not isinstance(values, (Array, np.ndarray, np.generic)):
        values = np.asarray(values)
        dtype = values.dtype if values.dtype.kind in "iu" else None
    return array(values, dtype, device=device)


def asarray_chkfinite(a: object, dtype: object = None, *, device: Optional[Context] = None) -> Array:
    """As asarray(), but a ValueError if an element is infinite or NaN, for which it waits."""
    result = asarray(a, dtype, device=device)
    if result.dtype.kind not in "biu" and not builtins.bool(elementwise.isfinite(result).all()):
        raise ValueError("array must not contain infs or NaNs")
    return result


def empty(shape: Shape, dtype: object = np.float32, *, device: Optional[Context] = None) -> Array:
    """A new array whose elements are not set."""
    return _context(device).empty(shape, np.float32 if dtype is None else dtype)


def zeros(shape: Shape, dtype: object = np.float32, *, device: Optional[Context] = None) -> Array:
    """A new array of zeros."""
    return _context(device).zeros(shape, np.float32 if dtype is None else dtype)


def ones(shape: Shape, dtype: object = np.float32, *, device: Optional[Context] = None) -> Array:
    """A new array of ones."""
    return _context(device).ones(shape, np.float32 if dtype is None else dtype)


#: The types that Python's numbers have where nothing else says one.
_DEFAULTS = {bool: np.bool_, int: np.int64, float: np.float32, complex: np.complex64}


def full(
    shape: Shape, fill_value: Union[float, int, complex], dtype: object = None, *, device: Optional[Context] = None
) -> Array:
    """A new array of one value: by default bool, int64, float32 or complex64, as the value is."""
    return _context(device).full(shape, fill_value, _DEFAULTS.get(type(fill_value)) if dtype is None else dtype)


def empty_like(x: Array, dtype: object = None, *, device: Optional[Context] = None) -> Array:
    """A new array of the shape and, by default, the dtype and the device of x, whose elements are not set."""
    require_array(x, "x")
    return _context_like(x, device).empty(x.shape, x.dtype if dtype is None else dtype)


def full_like(
    x: Array, fill_value: Union[float, int, complex], dtype: object = None, *, device: Optional[Context] = None
) -> Array:
    """A new array of one value, of the shape and, by default, the dtype and the device of x."""
    require_array(x, "x")
    return _context_like(x, device).full(x.shape, fill_value, x.dtype if dtype is None else dtype)


def zeros_like(x: Array, dtype: object = None, *, device: Optional[Context] = None) -> Array:
    """A new array of zeros, of the shape and, by default, the dtype and the device of x."""
    return full_like(x, 0, dtype, device=device)


def ones_like(x: Array, dtype: object = None, *, device: Optional[Context] = None) -> Array:
    """A new array of ones, of the shape and, by default, the dtype and the device of x."""
    return full_like(x, 1, dtype, device=device)


def _context_like(x: Array, device: Optional[Context]) -> Context:
    return x.context if device is None else _context(device)


def _numbers(values: np.ndarray, dtype: object, device: Optional[Context]) -> Array:
    """Numbers computed on the host; by default int64 if they are integers, otherwise float32."""
    return _context(device).array(values, dtype if dtype is not None else values.dtype if values.dtype.kind == "i" else np.float32)


def _end(value: object, name: str, with_complex: bool = False) -> Any:
    """A number that says where a range ends, or an array of one: libraries pass those that they have computed."""
    if isinstance(value, Array) and value.ndim == 0:
        value = value.item()
    if not (with_complex and is_complex_number(value)):
        real(value, name)
    return value


def arange(
    start: float, stop: Optional[float] = None, step: float = 1, dtype: object = None, *, device: Optional[Context] = None
) -> Array:
    """Numbers from start to stop, without stop, at a distance; from 0 to start if stop is None."""
    if stop is None:
        start, stop = 0, start
    start, stop, step = (_end(value, name) for value, name in ((start, "start"), (stop, "stop"), (step, "step")))
    if step == 0:
        raise ValueError("step is 0")
    return _numbers(np.arange(start, stop, step), dtype, device)


def linspace(
    start: float, stop: float, num: int, dtype: object = None, *, endpoint: bool = True, device: Optional[Context] = None
) -> Array:
    """num numbers from start to stop at equal distances, by default float32."""
    ends = [_end(value, name, True) for value, name in ((start, "start"), (stop, "stop"))]
    values = np.linspace(*ends, whole(num, "num"), endpoint=endpoint)
    natural = np.complex64 if values.dtype.kind == "c" else np.float32
    return _numbers(values, natural if dtype is None else dtype, device)


def eye(n: int, m: Optional[int] = None, k: int = 0, dtype: object = None, *, device: Optional[Context] = None) -> Array:
    """An n x m matrix with ones on a diagonal, k to the right of the main one."""
    context, columns = _context(device), whole(n if m is None else m, "m")
    row = _counted(context, columns)
    column = _counted(context, whole(n, "n")).reshape(-1, 1)
    return expr("c - r == k", dtype=as_dtype(np.float32 if dtype is None else dtype), c=row, r=column, k=_offset(k))


def _counted(context: Context, n: int) -> Array:
    return context.array(np.arange(n, dtype=np.int64))


def _offset(k: object) -> np.int64:
    if not is_whole(k):
        raise TypeError(f"k is {k!r}, not an integer")
    return np.int64(k)


def _triangle(formula: str, x: Array, k: int) -> Array:
    require_array(x, "x")
    if x.ndim < 2:
        raise ValueError(f"x has shape {x.shape}, needs at least two axes")
    row, column = _counted(x.context, x.shape[-1]), _counted(x.context, x.shape[-2]).reshape(-1, 1)
    return expr(formula, dtype=x.dtype, x=x, c=row, r=column, k=_offset(k))


def tril(x: Array, k: int = 0) -> Array:
    """x with zeros above its k-th diagonal, for each matrix of a stack."""
    return _triangle("c - r <= k ? x : 0", x, k)


def triu(x: Array, k: int = 0) -> Array:
    """x with zeros below its k-th diagonal, for each matrix of a stack."""
    return _triangle("c - r >= k ? x : 0", x, k)


def meshgrid(*arrays: Array, indexing: str = "xy", sparse: bool = False) -> List[Array]:
    """Vectors repeated to the coordinates of a grid, as numpy.meshgrid. sparse: not repeated, but of shapes that broadcast."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f'indexing is {indexing!r}, not "xy" or "ij"')
    for index, one in enumerate(arrays):
        require_array(one, f"array {index}")
        if one.ndim != 1:
            raise ValueError(f"array {index} has shape {one.shape}, not one axis")
    order = list(range(len(arrays)))
    if indexing == "xy" and len(arrays) > 1:
        order[:2] = 1, 0
    shape = tuple(arrays[axis].shape[0] for axis in order)
    along = [[-1 if axis == place else 1 for axis in order] for place in range(len(arrays))]
    grids = [one.reshape(sizes) for one, sizes in zip(arrays, along)]
    if not sparse:
        grids = [operations.repeated_to(grid, shape) for grid in grids]
    return [grid.copy() if may_share(grid, one) else grid for grid, one in zip(grids, arrays)]


# Shapes.


def reshape(x: Array, shape: Shape, *, copy: Optional[bool] = None) -> Array:
    """Another shape of the same size; one size may be -1. A view if the elements are adjacent, unless copy is True."""
    require_array(x, "x")
    result = x.reshape(shape)
    shares = may_share(result, x)
    if copy is False and not shares and x.size:
        raise ValueError("these elements have this shape only as a copy")
    return result.copy() if copy and shares else result


def permute_dims(x: Array, axes: Sequence[int]) -> Array:
    """Permutes the axes into a new array: axis i of the result is axis axes[i] of x."""
    return shapes.permute(x, axes)


def moveaxis(x: Array, source: Axis, destination: Axis) -> Array:
    """Moves axes to other places, into a new array; the others keep their order."""
    require_array(x, "x")
    source, destination = named_axes(source, x.ndim), named_axes(destination, x.ndim)
    if len(source) != len(destination):
        raise ValueError(f"{len(source)} axes of source and {len(destination)} of destination")
    order = [axis for axis in range(x.ndim) if axis not in source]
    for to, axis in sorted(zip(destination, source)):
        order.insert(to, axis)
    return shapes.permute(x, order)


def expand_dims(x: Array, axis: int = 0) -> Array:
    """A view with an axis of size 1 more."""
    require_array(x, "x")
    return protocol.expand_dims(x, axis)


def squeeze(x: Array, axis: Axis = None) -> Array:
    """A view without these axes, which have size 1; without all such axes if axis is None."""
    require_array(x, "x")
    return protocol.squeeze(x, axis)


def stack(arrays: Sequence[Array], axis: int = 0) -> Array:
    """Joins arrays of one shape along a new axis."""
    return protocol.stack(arrays, axis)


def unstack(x: Array, axis: int = 0) -> Tuple[Array, ...]:
    """The arrays along an axis, as views."""
    require_array(x, "x")
    before = (slice(None),) * whole_axis(axis, x.ndim)
    return tuple(x[(*before, index)] for index in range(x.shape[len(before)]))


def flip(x: Array, axis: Axis = None) -> Array:
    """A view with the elements along axes, by default all, in reverse order."""
    require_array(x, "x")
    axes = range(x.ndim) if axis is None else named_axes(axis, x.ndim)
    key = tuple(slice(None, None, -1 if index in axes else 1) for index in range(x.ndim))
    return x[key]


def roll(x: Array, shift: Union[int, Sequence[int]], axis: Axis = None) -> Array:
    """Moves the elements along axes by shift; what leaves at one end enters at the other. None: of the flattened array."""
    require_array(x, "x")
    if axis is None:
        return roll(x.ravel(), shift, 0).reshape(x.shape)
    named = (axis,) if is_whole(axis) else sequence(axis, "axis", "an integer or several")
    shifts = (shift,) * len(named) if is_whole(shift) else sequence(shift, "shift", "integers")
    if len(shifts) != len(named):
        raise ValueError(f"{len(shifts)} shifts and {len(named)} axes")
    result = x.copy()
    for one, by in zip(named, shifts):
        at = whole_axis(one, x.ndim)
        size = x.shape[at]
        cut = -whole(by, "shift", -(2**63), 2**63 - 1) % size if size else 0
        if cut:
            before = (slice(None),) * at
            parts = [shapes.section(result, (*before, slice(cut, None))), shapes.section(result, (*before, slice(None, cut)))]
            result = shapes.concat(parts, at)
    return result


def repeat(x: Array, repeats: Union[int, Array], axis: Optional[int] = None) -> Array:
    """Repeats each element along an axis, or of the flattened array, into a new array. An array has a number for each
    element, and is downloaded."""
    require_array(x, "x")
    if axis is None:
        return repeat(x.ravel(), repeats, 0)
    if isinstance(repeats, Array):
        return _repeat_each(x, repeats, whole_axis(axis, x.ndim))
    at, times = whole_axis(axis, x.ndim), whole(repeats, "repeats")
    before, size, after = x.shape[:at], x.shape[at], x.shape[at + 1 :]
    wide = operations.repeated_to(x.reshape((math.prod(before), size, 1, math.prod(after))), (math.prod(before), size, times, math.prod(after)))
    return (wide.copy() if may_share(wide, x) else wide).reshape((*before, size * times, *after))


def _repeat_each(x: Array, repeats: Array, axis: int) -> Array:
    if repeats.dtype.kind not in "iu" or repeats.shape not in ((), (1,), (x.shape[axis],)):
        raise TypeError(f"repeats are of shape {repeats.shape} and {repeats.dtype}, need an integer for each of {x.shape[axis]} elements")
    counts = np.broadcast_to(repeats.numpy(), (x.shape[axis],))
    if np.any(counts < 0):
        raise ValueError("repeats has a negative number")
    return shapes.take(x, x.context.array(np.repeat(np.arange(x.shape[axis], dtype=np.int64), counts)), axis)


def tile(x: Array, repetitions: Union[int, Sequence[int]]) -> Array:
    """Repeats the whole array along its axes, the last ones first, into a new array."""
    require_array(x, "x")
    times = as_shape(repetitions)
    rank = builtins.max(len(times), x.ndim)
    times, sizes = (1,) * (rank - len(times)) + times, (1,) * (rank - x.ndim) + x.shape
    result = x.reshape(sizes)
    for axis in range(rank - 1, -1, -1):
        if times[axis] != 1:
            before, rest = math.prod(sizes[:axis]), result.size // builtins.max(math.prod(sizes[:axis]), 1)
            wide = operations.repeated_to(result.reshape((before, 1, rest)), (before, times[axis], rest))
            result = wide
    return (result.copy() if may_share(result, x) else result).reshape(tuple(t * s for t, s in zip(times, sizes)))


def broadcast_arrays(*arrays: Array) -> List[Array]:
    """The arrays repeated to a common shape, as views for reading; one that has it is returned itself."""
    for index, one in enumerate(arrays):
        require_array(one, f"array {index}")
    shape = np.broadcast_shapes(*(one.shape for one in arrays))
    return [views.broadcast_to(one, shape) for one in arrays]


# Statistics over axes: all of them (None), one (an int) or several (a tuple).


def sum(x: Array, axis: Axis = None, keepdims: bool = False, *, dtype: object = None) -> Array:  # noqa: A001
    """The sum over axes. Sums of integers and bools are int64, those of unsigned integers uint64, unless dtype names another
    type; integers are modulo 2**bits of it."""
    return _folded("sum", x, axis, keepdims, dtype)


def prod(x: Array, axis: Axis = None, keepdims: bool = False, *, dtype: object = None) -> Array:
    """The product over axes, of the types of sum."""
    return _folded("prod", x, axis, keepdims, dtype)


def _folded(name: str, x: Array, axis: Axis, keepdims: bool, dtype: object) -> Array:
    require_array(x, "x")
    if dtype is None:
        return getattr(x, name)(axis, keepdims)
    kind = as_dtype(dtype)
    wide = x if kind.kind in "biu" or kind == x.dtype else x.astype(kind)
    total = getattr(wide, name)(axis, keepdims)
    if total.dtype.kind in "iu" and kind.kind in "iu":  # 64 bits: of the other sign they are the same number modulo 2**64
        total = Array(total.buffer, total.shape, np.dtype(f"{kind.kind}8"))
    return elementwise.wrapped(total, kind)


def mean(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """The mean over axes."""
    require_array(x, "x")
    return x.mean(axis, keepdims)


def max(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:  # noqa: A001
    """The largest element over axes; NaN if any is NaN."""
    require_array(x, "x")
    return x.max(axis, keepdims)


def min(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:  # noqa: A001
    """The smallest element over axes; NaN if any is NaN."""
    require_array(x, "x")
    return x.min(axis, keepdims)


def var(x: Array, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Array:
    """The variance over axes: the sum of (x - mean)**2, divided by the number of elements less the correction."""
    require_array(x, "x")
    return x.var(axis, correction, keepdims)


def std(x: Array, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Array:
    """The square root of the variance."""
    require_array(x, "x")
    return x.std(axis, correction, keepdims)


def logsumexp(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """log(sum(exp(x))) over axes, computed from the largest element, so that nothing overflows."""
    require_array(x, "x")
    return x.logsumexp(axis, keepdims)


# Types.


def astype(x: Array, dtype: object, *, copy: bool = True, device: Optional[Context] = None) -> Array:
    """x as another dtype; x itself if it has it and copy is False. On another device always a copy."""
    require_array(x, "x")
    if device is not None and device is not x.context:
        return x.to(_context(device)).astype(dtype)
    if as_dtype(dtype) == x.dtype:
        return x.copy() if copy else x
    return x.astype(dtype)


#: Numbers of Python, which adopt a type.
_PLAIN = (bool, int, float, complex)


def result_type(*values: object) -> np.dtype:
    """The type of an operation on arrays, dtypes and numbers."""
    plain = [value for value in values if type(value) in _PLAIN]
    kinds = [value.dtype if isinstance(value, (Array, np.generic)) else as_dtype(value) for value in values if type(value) not in _PLAIN]
    if not kinds:
        raise TypeError("needs an array or a dtype")
    kind = kinds[0]
    for other in kinds[1:]:
        kind = elementwise.common_type(kind, other)
    if complex in map(type, plain):
        return complex_of(kind)
    if float in map(type, plain) and kind.kind in "biu":
        return np.dtype(np.float32)
    return np.dtype(np.int32) if kind == np.bool_ and int in map(type, plain) else kind


def can_cast(value: object, to: object) -> bool:
    """Whether a type gives way to another by promotion."""
    kind, target = value.dtype if isinstance(value, Array) else as_dtype(value), as_dtype(to)
    try:
        return elementwise.common_type(kind, target) == target
    except TypeError:
        return False


def _resized(a: Array, new_shape: Shape) -> Array:
    """numpy.resize: the elements in another shape, repeated or cut."""
    require_array(a, "a")
    shape = as_shape(new_shape)
    size, flat = math.prod(shape), a.ravel()
    if flat.size == 0 or size == 0:
        return a.context.zeros(shape, a.dtype)
    wide = operations.cycled(flat, size)
    return (wide.copy() if may_share(wide, a) else wide).reshape(shape)


def _fix(x: Array, out: Optional[Array] = None) -> Array:
    return functions.trunc(x, out=out)


protocol.FUNCTIONS.update(
    astype=lambda x, dtype, *, copy=True, device=None: astype(x, dtype, copy=copy, device=device),
    broadcast_arrays=lambda *args, subok=False: broadcast_arrays(*args),
    can_cast=lambda from_, to, casting="safe": can_cast(from_, to),
    fix=_fix,
    flip=lambda m, axis=None: flip(m, axis),
    meshgrid=lambda *xi, copy=True, sparse=False, indexing="xy": meshgrid(*xi, indexing=indexing, sparse=sparse),
    moveaxis=lambda a, source, destination: moveaxis(a, source, destination),
    repeat=lambda a, repeats, axis=None: repeat(a, repeats, axis),
    resize=_resized,
    result_type=result_type,
    roll=lambda a, shift, axis=None: roll(a, shift, axis),
    tile=lambda A, reps: tile(A, reps),  # noqa: N803 (NumPy's name)
    tril=lambda m, k=0: tril(m, k),
    triu=lambda m, k=0: triu(m, k),
    unstack=lambda x, *, axis=0: unstack(x, axis),
)

protocol.FUNCTIONS_OF_TYPES.update(sum=sum, prod=prod)

protocol.MAKERS.update(ones=ones, zeros=zeros, full=full, empty=empty, arange=arange, eye=eye, identity=eye)
