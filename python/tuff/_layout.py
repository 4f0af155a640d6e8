"""Where the elements of arrays are in memory, and copies between arrays of any layout."""

from __future__ import annotations

from typing import NamedTuple, Sequence, Tuple

from . import raw
from ._buffer import Buffer
from ._error import check
from ._operands import MAX_AXES, dtype_of
from ._storage import Storage, Strided
from ._tracing import any_traced


class Layout(NamedTuple):
    """Element i, j, ... of an array is number first + i * strides[0] + j * strides[1] + ... of a buffer."""

    base: Buffer
    first: int
    strides: Tuple[int, ...]


class ReadOnlyLayout(Layout):
    """For elements that are for reading only, also in views of them."""

    __slots__ = ()


def require_writable(x: Storage) -> None:
    if isinstance(x, Strided) and isinstance(x.layout, ReadOnlyLayout):
        raise ValueError("the imaginary parts of a real array are for reading only")


def dense_strides(shape: Sequence[int]) -> Tuple[int, ...]:
    strides, step = [0] * len(shape), 1
    for axis in range(len(shape) - 1, -1, -1):
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)


def layout_of(x: Storage) -> Layout:
    if isinstance(x, Strided):
        return x.layout
    return Layout(x.buffer, 0, dense_strides(x.shape))


def _described(x: Storage, shape: Tuple[int, ...]) -> Tuple[Layout, list]:
    """Where the elements of x are, repeated to a shape with the same axes after new ones: the strides of all axes."""
    layout = layout_of(x)
    extra = len(shape) - x.ndim
    strides = [0] * extra + [0 if n == 1 else stride for n, stride in zip(x.shape, layout.strides)]
    return layout, strides


def copy_elements(source: Storage, target: Storage) -> None:
    """Copies elements, which are bits of one dtype; source broadcasts to target's shape. They share no memory."""
    if target.size == 0:
        return
    (of, from_strides), (to, to_strides) = _described(source, target.shape), _described(target, target.shape)
    axes = [axis for axis, n in enumerate(target.shape) if n != 1]
    if len(axes) > MAX_AXES:
        raise ValueError(f"shape {target.shape} has {len(axes)} axes of more than one element, at most {MAX_AXES}")
    desc = raw.CopyStridedDesc(dtype=dtype_of(target), rank=len(axes), input_first=of.first, output_first=to.first)
    desc.input, desc.output = of.base.handle, to.base.handle
    desc.shape[: len(axes)] = [target.shape[axis] for axis in axes]
    desc.input_strides[: len(axes)] = [from_strides[axis] for axis in axes]
    desc.output_strides[: len(axes)] = [to_strides[axis] for axis in axes]
    check(raw.tuff_copy_strided(target.context.stream_handle, desc))


def memory_of(x: Storage) -> object:
    """The same object for all arrays in one allocation."""
    return (x.layout.base if isinstance(x, Strided) else x.buffer)._memory


def dense(x: Storage) -> Storage:
    """The array itself if its elements are adjacent, otherwise a copy."""
    return x.copy() if isinstance(x, Strided) else x


def may_share(a: Storage, b: Storage) -> bool:
    """Whether two arrays may have elements in common: their ranges of one memory overlap."""
    if a.size == 0 or b.size == 0 or any_traced((a, b)) or memory_of(a) is not memory_of(b):
        return False
    ranges = []
    for x in (a, b):
        base, first, strides = layout_of(x)
        reach = [stride * (n - 1) for stride, n in zip(strides, x.shape)]
        low, high = first + sum(r for r in reach if r < 0), first + sum(r for r in reach if r > 0)
        item = x.dtype.itemsize
        ranges.append((base._offset + low * item, base._offset + (high + 1) * item))
    (begin, end), (other_begin, other_end) = ranges
    return begin < other_end and other_begin < end


def beside(x: Storage, out: Storage) -> Storage:
    """x, or a copy of it if an operation that writes out would change elements of x that it has not read yet."""
    return x.copy() if x is not out and may_share(x, out) and not same_elements(x, out) else x


def same_elements(a: Storage, b: Storage) -> bool:
    """Whether two arrays are the same elements in the same order."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    one, other = layout_of(a), layout_of(b)
    item = a.dtype.itemsize
    return (
        one.base._memory is other.base._memory
        and one.base._offset + one.first * item == other.base._offset + other.first * item
        and all(s == t for s, t, n in zip(one.strides, other.strides, a.shape) if n != 1)
    )
