"""Operations that move elements or change their type."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Optional, Sequence, Union

import numpy as np

from . import _core as core
from . import raw
from ._checked import is_whole, sequence
from ._types import common_type
from ._error import check
from ._operands import dtype_of, require_array, require_dense, require_rank, result_of, same_context, same_kind, sizes_of, whole_axis
from ._storage import DTYPES, Storage, as_dtype
from ._tracing import RULES, differentiable, is_traced, without_transposed

if TYPE_CHECKING:
    from ._array import Array

    Indices = Union[Array, np.ndarray, Sequence[int], int]

__all__ = ["cast", "concat", "embedding", "gather", "permute", "section", "take"]


@differentiable
def permute(x: Array, order: Sequence[int], *, out: Optional[Array] = None) -> Array:
    """Permutes the axes into a new array: axis i of the result is axis order[i] of x. Like numpy.transpose."""
    require_array(x, "x")
    require_rank(x, "x")
    order = sequence(order, "order", "axes")
    axes = [whole_axis(axis, x.ndim) for axis in order]
    if sorted(axes) != list(range(x.ndim)):
        raise ValueError(f"order is {order}, needs each of the axes of shape {x.shape} once")
    result = result_of(out, x, tuple(x.shape[axis] for axis in axes))
    if x.ndim == 0:
        result.assign(x)
        return result
    desc = raw.PermuteDesc(dtype=dtype_of(x), input=x.buffer.handle, output=result.buffer.handle)
    desc.rank = x.ndim
    desc.shape[: x.ndim] = x.shape
    desc.order[: x.ndim] = axes
    check(raw.tuff_permute_ex(x.context.stream_handle, desc))
    return result


def cast(x: Array, dtype: object, *, out: Optional[Array] = None) -> Array:
    """Converts x to another dtype in a new array; rounding and range are as in Array.astype."""
    require_array(x, "x")
    target = as_dtype(dtype)
    if x.dtype.kind == "c" and target.kind not in "cb":
        raise TypeError(f"{target} has no imaginary parts: .real of an array of {x.dtype} is an array of its real ones")
    if is_traced(x):
        return RULES["cast"](without_transposed(x), target, out)
    if out is None:
        done = core.cast(x, target)
        if done is not None:
            return done
        out = x.context.empty(x.shape, target)
    require_array(out, "out")
    require_dense(out, "out")
    same_context(x.context, out.context)
    if out.shape != x.shape or out.dtype != target:
        raise ValueError(f"out is {out.shape} {out.dtype}, the result {x.shape} {target}")
    desc = raw.CastDesc(input_type=dtype_of(x), output_type=DTYPES[target], n=x.size)
    desc.input, desc.output = x.buffer.handle, out.buffer.handle
    check(raw.tuff_cast_ex(x.context.stream_handle, desc))
    return out


@differentiable
def section(x: Array, key: object, *, out: Optional[Array] = None) -> Array:
    """Copies x[key] to a new array. key is integers, slices of any step and an ellipsis, such as
    np.s_[1:3, ..., ::-2]."""
    require_array(x, "x")
    require_rank(x, "x")
    keys = list(key) if isinstance(key, tuple) else [key]
    ellipses = [place for place, index in enumerate(keys) if index is Ellipsis]  # not ==, which arrays overload
    if len(ellipses) > 1:
        raise IndexError("an index has at most one ellipsis")
    at = ellipses[0] if ellipses else len(keys)
    if not ellipses:
        keys.append(Ellipsis)
    missing = x.ndim - (len(keys) - 1)
    if missing < 0:
        raise IndexError(f"{len(keys) - 1} indices for shape {x.shape}")
    keys[at : at + 1] = [slice(None)] * missing
    starts, steps, sizes, shape = [], [], [], []
    for axis, (index, size) in enumerate(zip(keys, x.shape)):
        if isinstance(index, slice):
            taken = range(*index.indices(size))
            shape.append(len(taken))
        elif is_whole(index):
            if not -size <= index < size:
                raise IndexError(f"index {index} is out of axis {axis} of size {size}")
            taken = range(int(index) % size, int(index) % size + 1)
        else:
            raise TypeError("an index is integers, slices and an ellipsis")
        starts.append(max(taken.start, 0))
        steps.append(taken.step)
        sizes.append(len(taken))
    result = result_of(out, x, tuple(shape))
    if x.ndim == 0:
        result.assign(x)
        return result
    desc = raw.SliceDesc(dtype=dtype_of(x), input=x.buffer.handle, output=result.buffer.handle, rank=x.ndim)
    desc.shape[: x.ndim] = x.shape
    desc.start[: x.ndim] = starts
    desc.step[: x.ndim] = steps
    desc.out_shape[: x.ndim] = sizes
    check(raw.tuff_slice_ex(x.context.stream_handle, desc))
    return result


@differentiable
def concat(arrays_: Sequence[Array], axis: Optional[int] = 0, *, out: Optional[Array] = None) -> Array:
    """Concatenates arrays along an axis, or flattened ones if axis is None. Like numpy.concatenate: the result has
    their common type."""
    parts = sequence(arrays_, "arrays", "a sequence of arrays")
    if not parts:
        raise ValueError("concat of no arrays")
    for part in parts:
        require_array(part, "each operand")
    kind = functools.reduce(common_type, (part.dtype for part in parts))
    parts = tuple(part if part.dtype == kind else cast(part, kind) for part in parts)
    same_kind(*parts)
    if axis is None:
        parts, axis = tuple(part.ravel() for part in parts), 0
    first = parts[0]
    require_rank(first, "the first array")
    along = whole_axis(axis, first.ndim)
    for part in parts:
        if part.ndim != first.ndim or any(
            size != wanted for d, (size, wanted) in enumerate(zip(part.shape, first.shape)) if d != along
        ):
            raise ValueError(f"concat of shapes {first.shape} and {part.shape} along axis {along}")
    sizes = [part.shape[along] for part in parts]
    shape = (*first.shape[:along], sum(sizes), *first.shape[along + 1 :])
    result = result_of(out, first, shape)
    handles = sizes_of([part.buffer.handle for part in parts])
    desc = raw.ConcatDesc(dtype=dtype_of(first), inputs=handles, sizes=sizes_of(sizes))
    desc.count, desc.rank, desc.axis, desc.output = len(parts), first.ndim, along, result.buffer.handle
    desc.shape[: first.ndim] = shape
    check(raw.tuff_concat_ex(first.context.stream_handle, desc))
    return result


def _gather(x: Array, indices: Array, axis: int, shape: Sequence[int], elementwise: bool, out: Optional[Array]) -> Array:
    require_array(x, "x")
    require_array(indices, "indices")
    if indices.dtype not in (np.int32, np.uint32, np.int64, np.uint64):
        raise TypeError(f"indices of {indices.dtype}, needs int32, uint32, int64 or uint64")
    same_context(x.context, indices.context)
    require_rank(x, "x")
    result = result_of(out, x, tuple(shape))
    desc = raw.GatherDesc(dtype=dtype_of(x), index_type=dtype_of(indices), rank=x.ndim, axis=axis, negative=1)
    desc.input, desc.indices, desc.output = x.buffer.handle, indices.buffer.handle, result.buffer.handle
    desc.shape[: x.ndim] = x.shape
    if elementwise:
        desc.elementwise = 1
        desc.index_shape[: x.ndim] = indices.shape
    else:
        desc.count = indices.size
    check(raw.tuff_gather_ex(x.context.stream_handle, desc))
    return result


def _indices_of(indices: Indices, x: Array, axis: int) -> Array:
    """Returns indices along an axis of x as an array on the device. Those that the host holds are integers within the
    axis, negative ones from its end; they are uploaded."""
    if isinstance(indices, Storage):
        return indices
    host = np.asarray(indices)
    if host.size == 0 and not isinstance(indices, np.ndarray):
        host = host.astype(np.int32)
    if host.dtype.kind not in "iu":
        raise TypeError(f"indices are {type(indices).__name__} of {host.dtype}, need integers")
    size = x.shape[axis]
    wrong = host[np.asarray((host < -size) | (host >= size))]
    if wrong.size != 0:
        raise IndexError(f"index {wrong[0]} is out of axis {axis} of size {size}")
    whole = host.astype(np.int64)
    return x.context.array(np.where(whole < 0, whole + size, whole), np.uint32 if size <= 2**32 else np.int64)


@differentiable
def take(x: Array, indices: Indices, axis: int = 0, *, out: Optional[Array] = None) -> Array:
    """Gathers along an axis, like numpy.take; negative indices count from the end. For an array on the device, integers
    of 32 or 64 bits, an index out of range gives zeros; in a list or NumPy array it is an IndexError."""
    require_array(x, "x")
    along = whole_axis(axis, x.ndim)
    indices = _indices_of(indices, x, along)
    return _gather(x, indices, along, (*x.shape[:along], *indices.shape, *x.shape[along + 1 :]), False, out)


@differentiable
def embedding(table: Array, indices: Indices, *, out: Optional[Array] = None) -> Array:
    """Looks up rows of a table (entries, size) by indices of any shape. The result is (*indices.shape, size)."""
    return take(table, indices, 0, out=out)


@differentiable
def gather(x: Array, indices: Indices, axis: int, *, out: Optional[Array] = None) -> Array:
    """Gathers element by element, like numpy.take_along_axis. indices, as for take, has x's number of axes and the
    result's shape."""
    require_array(x, "x")
    along = whole_axis(axis, x.ndim)
    indices = _indices_of(indices, x, along)
    if indices.ndim != x.ndim:
        raise ValueError(f"indices have shape {indices.shape}, and x {x.shape}")
    return _gather(x, indices, along, indices.shape, True, out)
