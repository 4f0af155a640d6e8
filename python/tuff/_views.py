"""Arrays whose elements are not adjacent in memory."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Sequence, Tuple, Union

import numpy as np

from . import _protocol as protocol
from ._array import Array
from ._buffer import Buffer
from ._checked import element, is_scalar, whole
from ._types import part_of
from ._layout import Layout, ReadOnlyLayout, copy_elements, dense_strides, layout_of, may_share, require_writable, same_elements
from ._operands import require_array, same_kind, whole_axis
from ._storage import Storage, Strided, TransposedStorage, as_numpy, as_shape
from ._tracing import differentiable, is_traced

if TYPE_CHECKING:
    from ._context import Context

__all__ = ["broadcast_to", "diagonal"]


def viewed(layout: Layout, shape: Tuple[int, ...], dtype: np.dtype) -> Array:
    """An array of these elements: a dense one where they are adjacent and in order."""
    base, first, strides = layout
    size = math.prod(shape)
    if size == 0:
        return Array(base.view(0, 0), shape, dtype)
    read_only = isinstance(layout, ReadOnlyLayout)
    if not read_only and all(have == want for have, want, n in zip(strides, dense_strides(shape), shape) if n != 1):
        return Array(base.view(first * dtype.itemsize, size * dtype.itemsize), shape, dtype)
    return View._at(layout, shape, dtype)


def _part(x: Array, index: int) -> Array:
    """The real parts (0) or the imaginary ones (1) of complex numbers, through which they can be written."""
    base, first, strides = layout_of(x)
    return viewed(Layout(base, 2 * first + index, tuple(2 * stride for stride in strides)), x.shape, part_of(x.dtype))


def _no_part(x: Array) -> Array:
    """The imaginary parts of real numbers: one zero, repeated, which nobody can write."""
    zero = x.context.zeros((1,), x.dtype)
    return viewed(ReadOnlyLayout(zero.buffer, 0, (0,) * x.ndim), x.shape, x.dtype)


protocol.PARTS.update(part=_part, none=_no_part)


class View(Strided, Array):
    """Elements of another array at distances: the result of slices with steps, of newaxis and of functions such as
    flip(). Writing to it writes to that array. Formulas, + and the like read and write it in place; other operations
    read a dense copy, which the device makes for them."""

    __slots__ = ("layout", "_dense")

    @classmethod
    def _at(cls, layout: Layout, shape: Tuple[int, ...], dtype: np.dtype) -> View:
        view = object.__new__(cls)
        view.layout, view.shape, view.dtype = layout, shape, dtype
        view._dense = {}
        return view

    @property
    def buffer(self) -> Buffer:
        """Memory with a dense copy of the elements as they are now, for reading. It belongs to the view."""
        stream = self.context.stream_handle
        dense = self._dense.get(stream)  # streams are not ordered, so each has its own
        if dense is None:
            dense = self._dense[stream] = self.context.empty(self.shape, self.dtype)
        copy_elements(self, dense)
        return dense.buffer

    @property
    def context(self) -> Context:
        return self.layout.base.context

    def copy(self) -> Array:
        result = self.context.empty(self.shape, self.dtype)
        copy_elements(self, result)
        return result

    def to(self, context: Context) -> Array:
        """Returns a dense copy in another context."""
        return self.copy().to(context)

    def reshape(self, *shape: Union[int, Sequence[int]]) -> Array:
        """Returns the elements in another shape: a view if only axes of one element come or go, otherwise a copy."""
        several = len(shape) == 1 and not isinstance(shape[0], (int, np.integer))
        sizes = tuple(shape[0] if several else shape)
        if sizes.count(-1) == 1:
            known = math.prod(size for size in sizes if size != -1)
            sizes = tuple(size if size != -1 else self.size // known if known else 0 for size in sizes)
        steps = [stride for stride, n in zip(self.layout.strides, self.shape) if n != 1]
        if all(isinstance(n, (int, np.integer)) for n in sizes):
            if [n for n in sizes if n != 1] == [n for n in self.shape if n != 1]:
                rest = iter(steps)
                strides = tuple(0 if n == 1 else next(rest) for n in sizes)
                return viewed(self.layout._replace(strides=strides), as_shape(sizes), self.dtype)
        return self.copy().reshape(*shape)

    def ravel(self) -> Array:
        """Returns a copy with a single axis."""
        return self.copy().ravel()

    def assign(self, value: object) -> Array:
        """Overwrites the elements with a number, an Array or a NumPy array that broadcasts to the shape."""
        require_writable(self)
        if any(stride == 0 and n > 1 for stride, n in zip(self.layout.strides, self.shape)):
            raise ValueError("the view repeats elements, and is for reading only")
        if is_scalar(value):
            element(value, self.dtype)  # refuses what the type does not hold
            value = self.context.full((), value, self.dtype)
        elif not isinstance(value, Storage):
            value = self.context.array(np.broadcast_to(as_numpy(value, self.dtype), self.shape), self.dtype)
        same_kind(self, value)
        if value.ndim > self.ndim or np.broadcast_shapes(value.shape, self.shape) != self.shape:
            raise ValueError(f"an array of shape {value.shape} does not broadcast to {self.shape}")
        if not same_elements(value, self):
            copy_elements(value.copy() if may_share(value, self) else value, self)
        return self

    def copy_from_async(self, source: np.ndarray) -> Array:
        raise ValueError("an upload needs dense memory, and this is a view with strides")


class Transposed(TransposedStorage, View):
    """A matrix, or a stack of matrices, with the last two axes exchanged: what a.T and a.mT are. No elements are moved. @
    reads it in place; for others it is a view like any other."""

    __slots__ = ("base",)

    def __init__(self, base: Array) -> None:
        self.base, self.dtype, self._dense = base, base.dtype, {}
        *batch, rows, columns = base.shape
        self.shape = (*batch, columns, rows)

    @property
    def layout(self) -> Layout:
        of = layout_of(self.base)
        return of._replace(strides=(*of.strides[:-2], of.strides[-1], of.strides[-2]))

    @property
    def context(self) -> Context:
        return self.base.context

    @property
    def T(self) -> Array:
        if self.ndim != 2:
            raise ValueError(f".T needs a matrix, this is of shape {self.shape}; .mT is for stacks of them")
        return self.base

    @property
    def mT(self) -> Array:
        return self.base

    def copy(self) -> Array:
        """Returns a new array with the transposed elements, moved on the device."""
        return self.base.swapaxes(-1, -2)

    def __copy__(self) -> Transposed:
        return Transposed(self.base.copy())

    def __deepcopy__(self, memo: object) -> Transposed:
        return Transposed(self.base.copy())

    def reshape(self, *shape: Union[int, Sequence[int]]) -> Array:
        return self.copy().reshape(*shape) if is_traced(self) else super().reshape(*shape)

    def numpy(self) -> np.ndarray:
        """Waits for the stream's work so far and copies the transposed matrix to the host."""
        return np.ascontiguousarray(np.swapaxes(self.base.numpy(), -1, -2))


protocol.PARTS["transposed"] = Transposed


@differentiable
def broadcast_to(x: Storage, shape: Union[int, Sequence[int]]) -> Array:
    """x repeated to a shape by NumPy's rules: a view for reading, or x itself if it has that shape."""
    require_array(x, "x")
    shape = as_shape(shape)
    if x.shape == shape:
        return x
    extra = len(shape) - x.ndim
    if extra < 0 or any(n not in (1, wanted) for n, wanted in zip(x.shape, shape[extra:])):
        raise ValueError(f"shape {x.shape} does not broadcast to {shape}")
    layout = layout_of(x)
    strides = (0,) * extra + tuple(0 if n == 1 else stride for n, stride in zip(x.shape, layout.strides))
    return viewed(layout._replace(strides=strides), shape, x.dtype)


@differentiable
def permuted(x: Storage, order: Sequence[int]) -> Array:
    """A view with the axes in another order."""
    layout = layout_of(x)
    strides = tuple(layout.strides[axis] for axis in order)
    return viewed(layout._replace(strides=strides), tuple(x.shape[axis] for axis in order), x.dtype)


@differentiable
def diagonal(x: Array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """A view of the elements whose indices along two axes differ by offset, along a new last axis."""
    require_array(x, "x")
    first, second = whole_axis(axis1, x.ndim), whole_axis(axis2, x.ndim)
    if first == second:
        raise ValueError(f"axis1 and axis2 are both {axis1}")
    whole(offset, "offset", -(2**63), 2**63 - 1)
    row, column = (-offset, 0) if offset < 0 else (0, offset)
    size = max(0, min(x.shape[first] - row, x.shape[second] - column))
    layout = layout_of(x)
    start, strides = layout.first, layout.strides
    if size:
        start += row * strides[first] + column * strides[second]
    others = [axis for axis in range(x.ndim) if axis not in (first, second)]
    shape = (*(x.shape[axis] for axis in others), size)
    steps = (*(strides[axis] for axis in others), strides[first] + strides[second])
    return viewed(layout._replace(first=start, strides=steps), shape, x.dtype)


protocol.FUNCTIONS.update(
    broadcast_to=broadcast_to,
    diagonal=lambda array, offset=0, axis1=0, axis2=1: diagonal(array, offset, axis1, axis2),
)
