"""The checks that operations have in common, and their results."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, List, Optional, Sequence, Tuple, Union

import numpy as np

from ._checked import I32, is_whole, sequence, whole
from ._storage import DTYPES, Storage, Strided, TransposedStorage

if TYPE_CHECKING:
    from ._array import Array, Axis
    from ._context import Context

    Operand = Union[Array, float, int]
    Matrix = Array


#: The maximum rank of the library's shapes.
MAX_AXES = 8


def same_kind(first: Matrix, *others: Matrix) -> None:
    """Raises unless all operands are arrays of one context and dtype."""
    for array in others:
        if array.dtype != first.dtype:
            raise TypeError(f"operands of {first.dtype} and {array.dtype}")
        same_context(base_of(first).context, base_of(array).context)


def same_context(first: Context, *others: Context) -> None:
    if any(other is not first for other in others):
        raise ValueError("operands are of different contexts")


def base_of(matrix: Matrix) -> Array:
    return matrix.base if isinstance(matrix, TransposedStorage) else matrix


def require_array(value: object, name: str) -> None:
    if isinstance(value, Storage):
        return
    if isinstance(value, np.ndarray):
        raise TypeError(f"{name} is a NumPy array; upload it with ctx.array() first")
    raise TypeError(f"{name} is {type(value).__name__}, not a tuff.Array")


def _holds_array(value: object) -> bool:
    return isinstance(value, (list, tuple)) and any(isinstance(one, Storage) or _holds_array(one) for one in value)


def given(value: Union[Operand, Sequence[float]], like: Array, name: str) -> Array:
    """An array beside `like` as it is; a number, or a list of numbers, uploaded. These have the type of `like` if that holds
    them: lists of integers beside floats are int64, lists of fractions float32, or float64 beside float64."""
    if isinstance(value, Storage):
        same_context(like.context, value.context)
        return value
    if isinstance(value, np.ndarray):
        require_array(value, name)
    if _holds_array(value):
        raise TypeError(f"{name} is a list with arrays; tuff.stack() makes an array of them")
    host = np.asarray(value)
    if host.dtype.kind not in "biufc":
        raise TypeError(f"{name} is {value!r}, needs an array, a number or a list of numbers")
    return like.context.array(host, _type_beside(host, like.dtype))


def _type_beside(host: np.ndarray, dtype: np.dtype) -> np.dtype:
    """The type of numbers of Python beside an array's."""
    kind = host.dtype.kind
    if kind == "b":
        return host.dtype
    wide = dtype in (np.float64, np.complex128)
    if kind == "c":
        return np.dtype(np.complex128 if wide else np.complex64)
    of_floats = dtype.kind not in "biu"
    if kind == "f":
        return dtype if of_floats and host.ndim == 0 else np.dtype(np.float64 if wide else np.float32)
    if of_floats and host.ndim == 0:
        return dtype
    fits = dtype.kind in "iu" and (host.size == 0 or (np.iinfo(dtype).min <= host.min() and host.max() <= np.iinfo(dtype).max))
    return dtype if fits else host.dtype


def require_rank(x: Array, name: str) -> None:
    if x.ndim > MAX_AXES:
        raise ValueError(f"{name} has shape {x.shape}, {x.ndim} axes: needs at most {MAX_AXES}")


def operation_number(op: object) -> int:
    return whole(op, "op", -I32, I32)


def dtype_of(array: Matrix) -> int:
    return DTYPES[array.dtype]


def sizes_of(values: Sequence[int]) -> ctypes.Array:
    return (ctypes.c_uint64 * len(values))(*values)


def result_of(out: Optional[Array], like: Array, shape: Tuple[int, ...]) -> Array:
    """Returns out if its shape fits, or a new array."""
    if out is None:
        return like.context.empty(shape, like.dtype)
    require_array(out, "out")
    same_kind(like, out)
    if out.shape != shape:
        raise ValueError(f"out has shape {out.shape}, the result {shape}")
    require_dense(out, "out")
    return out


def stored(result: Array, out: Optional[Array]) -> Array:
    """A result, converted and copied to out if that is given."""
    if out is None:
        return result
    require_array(out, "out")
    if out.shape != result.shape:
        raise ValueError(f"out has shape {out.shape}, the result {result.shape}")
    return out.assign(result)


def named_axes(axis: Axis, ndim: int, wanted: str = "an integer or several") -> List[int]:
    """The numbers of an axis or several, each from 0 on and named once."""
    axes = [whole_axis(one, ndim) for one in ((axis,) if is_whole(axis) else sequence(axis, "axis", wanted))]
    if len(set(axes)) != len(axes):
        raise ValueError(f"axis {axis} names one axis twice")
    return axes


def require_dense(out: Array, name: str) -> None:
    """Raises unless the array's buffer is its own memory, which an operation writes."""
    if isinstance(out, Strided):
        raise ValueError(f"{name} is a view with strides, and this operation writes dense memory: assign its result instead")


class AxisError(ValueError, IndexError):
    """An axis that an array does not have: both errors, as NumPy's."""


def whole_axis(axis: int, ndim: int) -> int:
    if not is_whole(axis):
        raise TypeError(f"axis is {axis!r}, not an integer")
    if not -ndim <= axis < ndim:
        raise AxisError(f"axis {axis} is out of {ndim} axes")
    return int(axis) % ndim
