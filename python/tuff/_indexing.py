"""What stands in brackets: slices, integers, newaxis and an ellipsis give views; masks and arrays of integers gather and
scatter elements, as in NumPy."""

from __future__ import annotations

import builtins
import math
from typing import TYPE_CHECKING, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from . import _elementwise as elementwise
from . import _protocol as protocol
from . import _searching as searching
from . import raw
from ._array import Array
from ._checked import element, is_scalar, is_whole
from ._types import is_complex
from ._error import check
from ._expression import expr
from ._layout import dense, layout_of, memory_of
from ._operands import dtype_of, require_array, require_dense, require_rank, same_kind, whole_axis
from ._shape import gather
from ._planes import joined
from ._storage import Storage, Strided, as_dtype, as_numpy
from ._views import broadcast_to, permuted, viewed
from ._tracing import differentiable

if TYPE_CHECKING:
    Indices = Union[Array, np.ndarray, Sequence[int], int]

__all__ = ["one_hot", "pad", "put_along_axis", "scatter", "take_along_axis"]

_INDEX_TYPES = (np.dtype(np.int32), np.dtype(np.uint32), np.dtype(np.int64), np.dtype(np.uint64))
BOOL = np.dtype(np.bool_)


def _is_indices(key: object) -> bool:
    """Whether a part of a key is a mask or an array of integers."""
    return isinstance(key, (Storage, np.ndarray, list, bool, np.bool_))


def _expanded(keys: Tuple[object, ...], ndim: int) -> List[object]:
    """The parts of a key, with slices in place of the ellipsis and of axes that are not named."""
    used = 0
    for key in keys:
        if key is None or key is Ellipsis:
            continue
        used += key.ndim if isinstance(key, (Storage, np.ndarray)) and key.dtype == BOOL else 1
    at = [place for place, key in enumerate(keys) if key is Ellipsis]
    if len(at) > 1:
        raise IndexError("an index has at most one ellipsis")
    if used > ndim:
        raise IndexError(f"{used} indices for {ndim} axes")
    rest = [slice(None)] * (ndim - used)
    return [*keys[: at[0]], *rest, *keys[at[0] + 1 :]] if at else [*keys, *rest]


def basic(x: Array, keys: Sequence[object]) -> Array:
    """The view that integers, slices and None select, one for each axis but None."""
    layout = layout_of(x)
    first, strides = layout.first, layout.strides
    shape, steps, axis, empty = [], [], 0, x.size == 0
    for key in keys:
        if key is None:
            shape.append(1)
            steps.append(0)
            continue
        size, stride = x.shape[axis], strides[axis]
        if isinstance(key, slice):
            taken = range(*key.indices(size))
            if len(taken):
                first += taken.start * stride
            shape.append(len(taken))
            steps.append(taken.step * stride)
        elif is_whole(key):
            if not -size <= key < size:
                raise IndexError(f"index {key} is out of axis {axis} of size {size}")
            first += int(key) % size * stride
        else:
            raise TypeError(f"an index is {type(key).__name__}: needs integers, slices, None, an ellipsis, masks or arrays of integers")
        axis += 1
    return viewed(layout._replace(first=0 if empty else first, strides=tuple(steps)), tuple(shape), x.dtype)


def _numbered(key: object, shape: Tuple[int, ...], axis: int, x: Array) -> List[object]:
    """An array of indices as it is, a mask as the indices of its true elements along each of its axes."""
    if isinstance(key, Storage):
        if key.context is not x.context:
            raise ValueError("an index is of another context")
    else:
        data = np.asarray(key)
        if isinstance(key, (bool, np.bool_)) or (data.ndim == 0 and data.dtype == BOOL):
            raise IndexError("True and False are no indices; a mask has at least one axis")
        key = data.astype(np.int32) if data.size == 0 and not isinstance(key, np.ndarray) else data
    if key.dtype != BOOL:
        if key.dtype.kind not in "iu":
            raise IndexError(f"an index is an array of {key.dtype}: needs integers or bools")
        return [key]
    if key.ndim == 0:
        raise IndexError("True and False are no indices; a mask has at least one axis")
    if key.shape != shape[axis : axis + key.ndim]:
        raise IndexError(f"a mask has shape {key.shape}, and the axes that it indexes {shape[axis : axis + key.ndim]}")
    if isinstance(key, np.ndarray):
        return list(np.nonzero(key))
    if key.size >= 2**31:
        raise ValueError(f"a mask of {key.size} elements: at most 2**31 - 1")
    return searching.coordinates(searching.true_places(key.ravel()), key.shape)


def _merged(x: Array, keys: List[object]) -> Tuple[Array, List[object]]:
    """An array and a key, in which a mask of several axes is one of their elements: dense memory need not know them."""
    axis = 0
    for place, key in enumerate(keys):
        masks = isinstance(key, (Storage, np.ndarray)) and key.dtype == BOOL
        if masks and key.ndim > 1 and not isinstance(x, Strided) and key.shape == x.shape[axis : axis + key.ndim]:
            x = x.reshape((*x.shape[:axis], key.size, *x.shape[axis + key.ndim :]))
            keys = [*keys[:place], key.reshape(key.size), *keys[place + 1 :]]
            key = keys[place]
        axis += key.ndim if masks else key is not None
    return x, keys


class _Selection(NamedTuple):
    """What masks and arrays of integers select: places along `count` axes of a view, from `axis` on."""

    view: Array
    axis: int
    count: int
    indices: Array  # [number][count]
    shape: Tuple[int, ...]  # of the indices, in place of those axes
    wraps: bool

    @property
    def result(self) -> Tuple[int, ...]:
        return (*self.view.shape[: self.axis], *self.shape, *self.view.shape[self.axis + self.count :])


def _on_device(index: Union[Array, np.ndarray], size: int, axis: int, x: Array) -> Union[Array, np.ndarray]:
    """Indices along an axis: of the host, checked and from 0 on; of the device, of a type that the library takes."""
    if isinstance(index, Storage):
        return index if index.dtype in _INDEX_TYPES else index.astype(np.int32)
    wrong = index[np.asarray((index < -size) | (index >= size))]
    if wrong.size:
        raise IndexError(f"index {wrong.flat[0]} is out of axis {axis} of size {size}")
    whole = index.astype(np.int64)
    return np.where(whole < 0, whole + size, whole)


def _select(x: Array, keys: Tuple[object, ...]) -> _Selection:
    # Each part of the key as it is, with masks as one array for each of their axes.
    parts: List[object] = []
    axis = 0
    x, expanded = _merged(x, list(_expanded(keys, x.ndim)))
    for key in expanded:
        if _is_indices(key):
            numbered = _numbered(key, x.shape, axis, x)
            parts += numbered
            axis += len(numbered)
        else:
            parts.append(key)
            axis += key is not None
    # Integers count as arrays where it is decided whether all indices stand side by side.
    places = [place for place, key in enumerate(parts) if _is_indices(key) or is_whole(key)]
    together = places == list(range(places[0], places[-1] + 1))
    view = basic(x, [slice(None) if _is_indices(key) else key for key in parts])
    arrays, axes, at, axis = [], [], 0, 0
    before = 0  # axes of the view before the indices
    for place, key in enumerate(parts):
        if _is_indices(key):
            arrays.append(_on_device(key, x.shape[axis], axis, x))
            axes.append(at)
        if place < places[0] and not is_whole(key):
            before += 1
        at += not is_whole(key)
        axis += key is not None
    if not together:
        before = 0
    others = [one for one in range(view.ndim) if one not in axes]
    order = [*others[:before], *axes, *others[before:]]
    if order != list(range(view.ndim)):
        view = permuted(view, order)
    require_rank(view, "the indexed array")
    shape = np.broadcast_shapes(*(one.shape for one in arrays))
    wraps = any(isinstance(one, Storage) and one.dtype.kind == "i" for one in arrays)
    return _Selection(view, before, len(axes), _stacked(arrays, shape, x), shape, wraps)


def _stacked(arrays: List[Union[Array, np.ndarray]], shape: Tuple[int, ...], x: Array) -> Array:
    """Index arrays that broadcast to a shape, side by side: [number][arrays]."""
    if all(isinstance(one, np.ndarray) for one in arrays):
        host = np.stack([np.broadcast_to(one, shape).reshape(-1) for one in arrays], -1)
        small = host.size == 0 or host.max() < 2**31
        return x.context.array(host, np.int32 if small else np.int64)
    if len(arrays) == 1:
        return arrays[0]
    kinds = {one.dtype for one in arrays if isinstance(one, Storage)}
    small = kinds == {np.dtype(np.int32)} and all(one.size == 0 or one.max() < 2**31 for one in arrays if isinstance(one, np.ndarray))
    kind = np.dtype(np.int32 if small else np.int64)
    result = x.context.empty((*shape, len(arrays)), kind)
    for place, one in enumerate(arrays):
        part = one if isinstance(one, Storage) else x.context.array(one, kind)
        result[(..., place)] = part if part.dtype == kind else part.astype(kind)
    return result


def _is_lone_mask(key: object) -> bool:
    """Whether the key is an array with a bool and without axes, which selects all of an array or nothing."""
    return isinstance(key, Storage) and key.ndim == 0 and key.dtype == BOOL


@differentiable
def get(x: Array, key: object) -> Array:
    """x[key]"""
    if _is_lone_mask(key):
        return get(x.reshape((1, *x.shape)), key.reshape((1,)))
    keys = key if isinstance(key, tuple) else (key,)
    if not any(_is_indices(one) for one in keys):
        return basic(x, _expanded(keys, x.ndim))
    if len(keys) == 1 and isinstance(keys[0], Storage) and keys[0].dtype == BOOL and keys[0].shape == x.shape:
        return searching.elements_where(x.ravel(), keys[0].ravel())
    chosen = _select(x, keys)
    result = x.context.empty(chosen.result, x.dtype)
    view, indices = chosen.view, chosen.indices
    desc = raw.GatherDesc(dtype=dtype_of(x), index_type=dtype_of(indices), rank=view.ndim, axis=chosen.axis)
    desc.count, desc.negative = math.prod(chosen.shape), int(chosen.wraps)
    desc.coordinates = chosen.count if chosen.count > 1 else 0
    desc.shape[: view.ndim] = view.shape
    desc.input, desc.indices, desc.output = view.buffer.handle, indices.buffer.handle, result.buffer.handle
    check(raw.tuff_gather_ex(x.context.stream_handle, desc))
    return result


def _scatter_rows(target: Array, indices: Array, updates: Array, axis: int, count: int, op: int, wraps: bool) -> None:
    """Scatters into dense memory, along `count` axes from `axis` on."""
    require_dense(target, "the array")
    desc = raw.ScatterDesc(dtype=dtype_of(target), index_type=dtype_of(indices), op=op, rank=target.ndim, axis=axis)
    desc.count, desc.negative = indices.size // count, int(wraps)
    desc.coordinates = count if count > 1 else 0
    desc.shape[: target.ndim] = target.shape
    desc.indices, desc.updates, desc.output = indices.buffer.handle, updates.buffer.handle, target.buffer.handle
    check(raw.tuff_scatter(target.context.stream_handle, desc))


def _updates(x: Array, value: object, shape: Tuple[int, ...]) -> Array:
    """A value that is assigned, as a dense array of a shape and of the type of x."""
    if is_scalar(value):
        element(value, x.dtype)  # refuses what the type does not hold
        return x.context.full(shape, value, x.dtype)
    if not isinstance(value, Storage):
        return x.context.array(np.broadcast_to(as_numpy(value, x.dtype), shape), x.dtype)
    same_kind(x, value)
    # As in NumPy, axes of size 1 in front do not matter.
    while value.ndim > len(shape) and value.shape[0] == 1:
        value = value.reshape(value.shape[1:])
    repeated = broadcast_to(value, shape)
    return repeated.copy() if isinstance(repeated, Strided) or memory_of(repeated) is memory_of(x) else repeated


def _accumulate(x: Array, keys: Tuple[object, ...], value: object, op: int) -> None:
    chosen = _select(x, keys)
    updates = _updates(x, value, chosen.result)
    view, indices = chosen.view, chosen.indices
    target = dense(view)
    if memory_of(indices) is memory_of(target):
        indices = indices.copy()
    _scatter_rows(target, indices, updates, chosen.axis, chosen.count, op, chosen.wraps)
    if target is not view:
        view.assign(target)


def put(x: Array, key: object, value: object) -> None:
    """x[key] = value"""
    if _is_lone_mask(key):
        put(x.reshape((1, *x.shape)), key.reshape((1,)), value)
        return
    keys = key if isinstance(key, tuple) else (key,)
    if not any(_is_indices(one) for one in keys):
        basic(x, _expanded(keys, x.ndim)).assign(value)
        return
    if len(keys) == 1 and isinstance(keys[0], (Storage, np.ndarray)) and keys[0].dtype == BOOL and keys[0].shape == x.shape:
        # One value for all, or one for each element of x: no element moves.
        one = is_scalar(value) or (isinstance(value, Storage) and (value.shape == x.shape or value.shape == ()))
        if one and x.ndim:
            if is_scalar(value):
                element(value, x.dtype)
            else:
                same_kind(x, value)
            mask = keys[0] if isinstance(keys[0], Storage) else x.context.array(keys[0])
            elementwise.where(mask, value, x, out=x)
            return
    _accumulate(x, keys, value, raw.SCATTER_SET)


# Functions.

_OPS = {"set": raw.SCATTER_SET, "add": raw.SCATTER_ADD, "multiply": raw.SCATTER_MUL, "maximum": raw.SCATTER_MAX, "minimum": raw.SCATTER_MIN}


def scatter(x: Array, key: object, value: object, op: str = "add") -> Array:
    """x[key] = op(x[key], value), for every index in turn also where indices repeat, as numpy.add.at and its kin. op is
    "set", "add", "multiply", "maximum" or "minimum". Returns x."""
    require_array(x, "x")
    if op not in _OPS:
        raise ValueError(f"op is {op!r}, not one of {list(_OPS)}")
    keys = key if isinstance(key, tuple) else (key,)
    if any(_is_indices(one) for one in keys):
        _accumulate(x, keys, value, _OPS[op])
    else:
        part = basic(x, _expanded(keys, x.ndim))
        part.assign(value) if op == "set" else getattr(_functions(), op)(part, value, out=part)
    return x


def _functions() -> object:
    from . import _functions as functions

    return functions


def _along(x: Array, indices: Indices, axis: Optional[int]) -> Tuple[Array, Array, int]:
    """An array, indices with as many axes, and the axis that they are along; None: of the flattened array."""
    require_array(x, "x")
    if axis is None:
        x, axis = x.ravel(), 0
    along = whole_axis(axis, x.ndim)
    require_rank(x, "x")
    if not isinstance(indices, Storage):
        host = np.asarray(indices)
        if host.dtype.kind not in "iu":
            raise IndexError(f"indices are of {host.dtype}, need integers")
        indices = x.context.array(_on_device(host, x.shape[along], along, x), np.int64)
    if indices.dtype.kind not in "iu":
        raise IndexError(f"indices are of {indices.dtype}, need integers")
    if indices.dtype not in _INDEX_TYPES:
        indices = indices.astype(np.int32)
    if indices.ndim != x.ndim:
        raise ValueError(f"indices have shape {indices.shape}, and x {x.shape}")
    return x, indices, along


def _sizes(x: Array, indices: Array, along: int) -> Tuple[int, ...]:
    """The shape that both have, but for the axis: that of the indices there."""
    others = [tuple(1 if axis == along else n for axis, n in enumerate(one.shape)) for one in (x, indices)]
    shape = list(np.broadcast_shapes(*others))
    shape[along] = indices.shape[along]
    return tuple(shape)


@differentiable
def take_along_axis(x: Array, indices: Indices, axis: Optional[int] = -1) -> Array:
    """Elements of x by an index for each element of the result, along one axis, as numpy.take_along_axis. Negative indices
    count from the end. For an array on the device, an index out of range gives 0."""
    x, indices, along = _along(x, indices, axis)
    shape = _sizes(x, indices, along)
    wide = broadcast_to(x, tuple(x.shape[along] if one == along else n for one, n in enumerate(shape)))
    return gather(wide, broadcast_to(indices, shape), along)


def put_along_axis(x: Array, indices: Indices, values: object, axis: Optional[int] = -1) -> None:
    """Overwrites elements of x by an index for each value, along one axis, as numpy.put_along_axis. Of several values for
    an element the last one remains; an index out of range in an array on the device is skipped."""
    require_array(x, "x")
    if axis is None and isinstance(x, Strided):
        flat = x.copy().ravel()
        put_along_axis(flat, indices, values, 0)
        x.assign(flat.reshape(x.shape))
        return
    target, indices, along = _along(x, indices, axis)
    shape = _sizes(target, indices, along)
    if any(n > target.shape[one] for one, n in enumerate(shape) if one != along):
        raise ValueError(f"indices of shape {indices.shape} are larger than x, {target.shape}")
    updates, wide = _updates(target, values, shape), broadcast_to(indices, shape)
    written = dense(target)
    desc = raw.ScatterDesc(dtype=dtype_of(x), index_type=dtype_of(wide), op=raw.SCATTER_SET, rank=written.ndim, axis=along)
    desc.elementwise, desc.negative = 1, 1
    desc.shape[: written.ndim], desc.index_shape[: written.ndim] = written.shape, shape
    desc.indices, desc.updates, desc.output = wide.buffer.handle, updates.buffer.handle, written.buffer.handle
    check(raw.tuff_scatter(x.context.stream_handle, desc))
    if written is not target:
        target.assign(written)


_PADS = {"constant": raw.PAD_CONSTANT, "edge": raw.PAD_EDGE, "reflect": raw.PAD_REFLECT, "symmetric": raw.PAD_SYMMETRIC,
         "wrap": raw.PAD_WRAP}  # fmt: skip


@differentiable
def pad(x: Array, pad_width: object, mode: str = "constant", constant_values: Union[float, int] = 0) -> Array:
    """x with elements added at the ends of its axes, as numpy.pad: pad_width is a number, (before, after), or one such pair
    for each axis. mode is "constant", "edge", "reflect", "symmetric" or "wrap". Negative numbers remove elements."""
    require_array(x, "x")
    if mode not in _PADS:
        raise ValueError(f"mode is {mode!r}, not one of {list(_PADS)}")
    widths = np.asarray(pad_width)
    if widths.dtype.kind not in "iu":
        raise TypeError(f"pad_width is {pad_width!r}, needs integers")
    try:
        pairs = [(int(before), int(after)) for before, after in np.broadcast_to(widths, (x.ndim, 2))]
    except ValueError:
        raise ValueError(f"pad_width is {pad_width!r}, needs a number, a pair, or a pair for each of {x.ndim} axes") from None
    require_rank(x, "x")
    if not is_scalar(constant_values):
        raise TypeError(f"constant_values is {constant_values!r}, needs one number")
    bits = element(constant_values, x.dtype)
    if x.ndim == 0:
        return x.copy()
    shape = tuple(n + before + after for n, (before, after) in zip(x.shape, pairs))
    for n, (before, after) in zip(x.shape, pairs):
        if builtins.min(before, 0) + builtins.min(after, 0) < -n:
            raise ValueError(f"pad_width is {pad_width!r}, which removes more than shape {x.shape} has")
        if n == 0 and mode != "constant" and (before > 0 or after > 0):
            raise ValueError(f"mode {mode!r} cannot extend an empty axis of shape {x.shape}")
    result = x.context.empty(shape, x.dtype)
    desc = raw.PadDesc(dtype=dtype_of(x), mode=_PADS[mode], rank=x.ndim)
    desc.shape[: x.ndim] = x.shape
    desc.before[: x.ndim], desc.after[: x.ndim] = [b for b, _ in pairs], [a for _, a in pairs]
    if x.dtype.kind in "iu":
        desc.integer = int.from_bytes(bits, "little", signed=x.dtype.kind == "i" or x.dtype.itemsize == 8)
    elif x.dtype == BOOL:
        desc.integer = int(bits != b"\0")
    elif is_complex(x.dtype) and complex(constant_values).imag != 0:
        return joined(pad(x.real, pad_width, mode, constant_values=complex(constant_values).real),
                      pad(x.imag, pad_width, mode, constant_values=complex(constant_values).imag))  # fmt: skip
    else:
        desc.value = complex(constant_values).real
    desc.input, desc.output = x.buffer.handle, result.buffer.handle
    check(raw.tuff_pad(x.context.stream_handle, desc))
    return result


def one_hot(indices: Array, classes: int, dtype: object = np.float32) -> Array:
    """1 at the index and 0 elsewhere, along a new last axis of so many classes; all 0 for an index out of range."""
    require_array(indices, "indices")
    if indices.dtype.kind not in "iu":
        raise TypeError(f"indices are of {indices.dtype}, need integers")
    if not is_whole(classes) or classes < 0:
        raise ValueError(f"classes is {classes!r}, needs a whole number from 0 on")
    each = indices.context.array(np.arange(classes, dtype=indices.dtype if classes <= np.iinfo(indices.dtype).max + 1 else np.int64))
    return expr("i == c", dtype=as_dtype(dtype), i=indices[..., None], c=each)


protocol.INDEXING.update(get=get, put=put, scatter=scatter)
protocol.FUNCTIONS.update(
    pad=pad,
    put_along_axis=put_along_axis,
    take_along_axis=lambda arr, indices, axis=-1: take_along_axis(arr, indices, axis),
)
