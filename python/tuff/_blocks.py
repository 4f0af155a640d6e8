"""Arrays built of blocks and diagonals, and functions applied along axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, List, Sequence, Union

import numpy as np

from . import _namespace as namespace
from . import _protocol as protocol
from . import _shape as shapes
from . import _views as views
from ._checked import is_scalar, is_whole, sequence, whole
from ._operands import given, require_array, whole_axis
from ._storage import Storage

if TYPE_CHECKING:
    from ._array import Array, Axis

__all__ = ["apply_along_axis", "apply_over_axes", "block", "diag", "diagflat"]


# Blocks.


def _depth(arrays: object, where: str = "arrays") -> int:
    """How deep lists are nested, which is the same everywhere."""
    if isinstance(arrays, tuple):
        raise TypeError(f"{where} is a tuple. Only lists can be used to arrange blocks")
    if not isinstance(arrays, list):
        return 0
    if not arrays:
        raise ValueError(f"List at {where} cannot be empty")
    depths = [_depth(one, f"{where}[{place}]") for place, one in enumerate(arrays)]
    for place, one in enumerate(depths):
        if one != depths[0]:
            raise ValueError(f"List depths are mismatched. {where}[0] has depth {depths[0]}, and {where}[{place}] has {one}")
    return depths[0] + 1


def _leaves(arrays: object) -> List[object]:
    return [leaf for one in arrays for leaf in _leaves(one)] if isinstance(arrays, list) else [arrays]


def block(arrays: object) -> Array:
    """Joins nested lists of arrays: the innermost lists along the last axis, those around them along the one before, and so
    on. Numbers are blocks of one element."""
    depth, leaves = _depth(arrays), _leaves(arrays)
    known = [one for one in leaves if isinstance(one, Storage)]
    if not known:
        require_array(leaves[0], "arrays")
    rank = max(depth, max(one.ndim for one in known))

    def joined(part: object, level: int) -> Array:
        if isinstance(part, list):
            return shapes.concat([joined(one, level - 1) for one in part], rank - level)
        x = given(part, known[0], "a block")
        return x.reshape((1,) * (rank - x.ndim) + x.shape)

    result = joined(arrays, depth)
    return result if depth else result.copy()


# Diagonals.


def diag(v: Array, k: int = 0) -> Array:
    """A matrix with the elements of a vector on its k-th diagonal, or the k-th diagonal of a matrix, as a new array."""
    require_array(v, "v")
    offset = whole(k, "k", -(2**31), 2**31)
    if v.ndim == 2:
        return views.diagonal(v, offset).copy()
    if v.ndim != 1:
        raise ValueError("Input must be 1- or 2-d.")
    n = v.size + abs(offset)
    result = v.context.zeros((n, n), v.dtype)
    if v.size:
        views.diagonal(result, offset).assign(v)
    return result


def diagflat(v: Array, k: int = 0) -> Array:
    """A matrix with the elements of a flattened array on its k-th diagonal."""
    require_array(v, "v")
    return diag(v.ravel(), k)


# Functions along axes.


def apply_along_axis(func1d: Callable[..., object], axis: int, arr: Array, *args: object, **kwargs: object) -> Array:
    """What a function gives for each vector along an axis, in place of the axis. It is called for one vector after another:
    functions that take an axis are faster."""
    require_array(arr, "arr")
    along = whole_axis(axis, arr.ndim)
    others = arr.shape[:along] + arr.shape[along + 1 :]
    if 0 in others:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    found = []
    for index in np.ndindex(others):
        result = func1d(arr[(*index[:along], slice(None), *index[along:])], *args, **kwargs)
        found.append(result if isinstance(result, Storage) else _uploaded(result, arr))
        if found[-1].shape != found[0].shape:
            raise ValueError(f"func1d gave shape {found[0].shape}, and {found[-1].shape} at {index}")
    shape = found[0].shape
    whole_result = protocol.stack(found, 0).reshape((*others, *shape))
    axes = list(range(len(others)))
    order = [*axes[:along], *range(len(others), len(others) + len(shape)), *axes[along:]]
    return whole_result if order == sorted(order) else shapes.permute(whole_result, order)


def _uploaded(result: object, like: Array) -> Array:
    if not is_scalar(result) and not isinstance(result, (list, tuple)):
        require_array(result, "a result of func1d")
    return namespace.asarray(result, device=like.context)


def apply_over_axes(func: Callable[..., Array], a: Array, axes: Axis) -> Array:
    """A function of an array and an axis, applied to its own result for one axis after another; each axis remains, with the
    size 1 if the function drops it."""
    require_array(a, "a")
    named = (axes,) if is_whole(axes) else sequence(axes, "axes", "an integer or several")
    result: Array = a
    for axis in (whole_axis(one, a.ndim) for one in named):
        found: Union[Array, Sequence[float]] = func(result, axis)
        require_array(found, "a result of func")
        if found.ndim == result.ndim - 1:
            found = protocol.expand_dims(found, axis)
        if found.ndim != result.ndim:
            raise ValueError("function is not returning an array of the correct shape")
        result = found
    return result


protocol.FUNCTIONS.update(
    apply_along_axis=apply_along_axis,
    apply_over_axes=apply_over_axes,
    block=block,
    diag=diag,
    diagflat=diagflat,
)
