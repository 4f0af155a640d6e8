"""Arrays on a device."""

from __future__ import annotations

import sys
from typing import Optional, Sequence, Tuple, Union

import numpy as np

from . import _elementwise as elementwise
from . import _functions as functions
from . import _layout as layout
from . import _norms as norms
from . import _operations as operations
from . import _reductions as reductions
from . import _protocol as protocol
from . import _searching as searching
from . import _shape as shapes
from . import _sorting as sorting
from ._checked import element, is_scalar
from ._types import is_complex
from ._buffer import Buffer
from ._core import setup
from ._functions import Functions
from ._operands import same_kind, whole_axis
from ._storage import DTYPES, Axis, Storage, Strided, as_dtype, as_natural, as_numpy, as_shape

__all__ = ["DTYPES", "Array", "Axis", "as_dtype", "as_natural", "as_numpy", "as_shape"]


class Array(Functions, Storage):
    """An array on a device: a Buffer with a shape and a dtype, dense and row-major.

    Operators, reductions and functions run on the device and return new arrays. Results stay on the device until
    .numpy() copies them. Operands are arrays of one context and dtype, or Python numbers. Shapes broadcast as in
    NumPy. Slices, also with steps, are views as in NumPy; those that are not dense have strides instead of a buffer.
    """

    __slots__ = ()

    #: Dask's choice among arrays.
    __array_priority__ = 20.0

    # NumPy's functions run on the device or raise an error; none downloads.

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: object, **options: object) -> object:
        return protocol.ufunc(function, method, *inputs, **options)

    def __array_namespace__(self, *, api_version: Optional[str] = None) -> object:
        """The module with the array API's functions. It has those of 2024.12 that run on a device, not all of them."""
        if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
            raise ValueError(f"api_version is {api_version!r}, needs 2021.12 to 2024.12")
        return sys.modules[__package__]

    def __array_function__(self, function: object, _types: object, arguments: tuple, options: dict) -> object:
        return protocol.function(function, arguments, options, self)

    @property
    def device(self) -> object:
        """The context, as the array API calls it."""
        return self.context

    def to_device(self, device: object, /, *, stream: None = None) -> Array:
        """The array itself if it is of this context, otherwise a copy there."""
        return self if device is self.context else self.to(device)

    def assign(self, value: object) -> Array:
        """Overwrites the elements with a number, an Array or a NumPy array that broadcasts to the shape."""
        if is_scalar(value):
            self.buffer.fill(element(value, self.dtype), 0, self.nbytes)
        elif isinstance(value, Array):
            same_kind(self, value)
            if value.shape != self.shape or isinstance(value, Strided):
                if np.broadcast_shapes(value.shape, self.shape) != self.shape:
                    raise ValueError(f"an array of shape {value.shape} does not broadcast to {self.shape}")
                layout.copy_elements(value.copy() if layout.may_share(value, self) else value, self)
            elif not value.buffer.same_range(self.buffer):
                self.buffer.copy_from((value.copy() if layout.may_share(value, self) else value).buffer, nbytes=self.nbytes)
        else:
            self.buffer.upload(np.broadcast_to(as_numpy(value, self.dtype), self.shape))
        return self

    # The parts of complex numbers.

    @property
    def real(self) -> Array:
        """The real parts: a view of a complex array, through which they can be written; a real array itself."""
        return protocol.PARTS["part"](self, 0) if is_complex(self.dtype) else self

    @real.setter
    def real(self, value: object) -> None:
        self.real.assign(value)

    @property
    def imag(self) -> Array:
        """The imaginary parts: a view of a complex array, through which they can be written; zeros of a real one, for
        reading only."""
        return protocol.PARTS["part"](self, 1) if is_complex(self.dtype) else protocol.PARTS["none"](self)

    @imag.setter
    def imag(self, value: object) -> None:
        if not is_complex(self.dtype):
            raise TypeError(f"an array of {self.dtype} has no imaginary parts to write")
        self.imag.assign(value)

    def conj(self) -> Array:
        """The complex conjugates; a real array itself."""
        return elementwise.expr("conj(x)", x=self) if is_complex(self.dtype) else self

    conjugate = conj

    # Sums and products of another type.

    def sum(self, axis: Axis = None, keepdims: bool = False, *, dtype: object = None) -> Array:
        """The sum over axes: all of them (None), one (an int) or several (a tuple). dtype is the result's."""
        return super().sum(axis, keepdims) if dtype is None else protocol.FUNCTIONS_OF_TYPES["sum"](self, axis, keepdims, dtype=dtype)

    def prod(self, axis: Axis = None, keepdims: bool = False, *, dtype: object = None) -> Array:
        """The product over axes, with the arguments of sum()."""
        return super().prod(axis, keepdims) if dtype is None else protocol.FUNCTIONS_OF_TYPES["prod"](self, axis, keepdims, dtype=dtype)

    # Axes.

    def squeeze(self, axis: Axis = None) -> Array:
        """A view without these axes, which have size 1; without all such axes if axis is None."""
        return protocol.FUNCTIONS["squeeze"](self, axis)

    def transpose(self, *axes: Union[None, int, Sequence[int]]) -> Array:
        """Returns a new array with the axes in another order, by default reversed: a.transpose(0, 2, 1)."""
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], (int, np.integer)) else axes
        reversed_order = order is None or (isinstance(order, tuple) and not order)
        return shapes.permute(self, range(self.ndim)[::-1] if reversed_order else order)

    def swapaxes(self, first: int, second: int) -> Array:
        """Returns a new array with two axes exchanged."""
        order = list(range(self.ndim))
        first, second = whole_axis(first, self.ndim), whole_axis(second, self.ndim)
        order[first], order[second] = order[second], order[first]
        return shapes.permute(self, order)

    def astype(self, dtype: object) -> Array:
        """Returns a new array of another dtype. Conversion to a float rounds to nearest even; to 8-bit floats it
        saturates. Conversion to an integer truncates towards zero and saturates; NaN becomes 0. A bool is whether the
        element differs from 0. Complex numbers become other complex ones, or bools; to a real type convert .real."""
        return shapes.cast(self, dtype)

    @property
    def T(self) -> Array:
        """The transposed matrix: a view, which @ reads in place. transpose() returns a new array."""
        if self.ndim != 2:
            raise ValueError(f".T needs a matrix, this is of shape {self.shape}; .mT is for stacks of them")
        return protocol.PARTS["transposed"](self)

    @property
    def mT(self) -> Array:
        """A stack of matrices, each transposed: a view, which @ reads in place."""
        if self.ndim < 2:
            raise ValueError(f".mT needs at least two axes, this is of shape {self.shape}")
        return protocol.PARTS["transposed"](self)

    def __getitem__(self, key: object) -> Array:
        """Integers, slices of any step, None and an ellipsis give a view: writing to it writes to the array. Masks and
        arrays of integers give a new array. As in NumPy."""
        return protocol.INDEXING["get"](self, key)

    def __setitem__(self, key: object, value: object) -> None:
        protocol.INDEXING["put"](self, key, value)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
        """A view of the elements whose indices along two axes differ by offset."""
        return protocol.FUNCTIONS["diagonal"](self, offset, axis1, axis2)

    # Operators on arrays and numbers.

    def __add__(self, other: object) -> Array:
        return functions.add(self, other)

    def __radd__(self, other: object) -> Array:
        return functions.add(other, self)

    def __sub__(self, other: object) -> Array:
        return functions.subtract(self, other)

    def __rsub__(self, other: object) -> Array:
        return functions.subtract(other, self)

    def __mul__(self, other: object) -> Array:
        return functions.multiply(self, other)

    def __rmul__(self, other: object) -> Array:
        return functions.multiply(other, self)

    def __truediv__(self, other: object) -> Array:
        return functions.divide(self, other)

    def __rtruediv__(self, other: object) -> Array:
        return functions.divide(other, self)

    def __iadd__(self, other: object) -> Array:
        return functions.add(self, other, out=self)

    def __isub__(self, other: object) -> Array:
        return functions.subtract(self, other, out=self)

    def __imul__(self, other: object) -> Array:
        return functions.multiply(self, other, out=self)

    def __itruediv__(self, other: object) -> Array:
        return functions.divide(self, other, out=self)

    def __pow__(self, other: object) -> Array:
        return functions.power(self, other)

    def __rpow__(self, other: object) -> Array:
        return functions.power(other, self)

    def __matmul__(self, other: Array) -> Array:
        return operations.matmul(self, other)

    def __rmatmul__(self, other: object) -> Array:
        return operations.matmul(other, self)

    def __neg__(self) -> Array:
        return functions.neg(self)

    def __pos__(self) -> Array:
        return self.copy()

    def __abs__(self) -> Array:
        return functions.abs(self)

    def __floordiv__(self, other: object) -> Array:
        return elementwise.floor_divide(self, other)

    def __rfloordiv__(self, other: object) -> Array:
        return elementwise.floor_divide(other, self)

    def __mod__(self, other: object) -> Array:
        return elementwise.remainder(self, other)

    def __rmod__(self, other: object) -> Array:
        return elementwise.remainder(other, self)

    def __ifloordiv__(self, other: object) -> Array:
        return elementwise.floor_divide(self, other, out=self)

    def __imod__(self, other: object) -> Array:
        return elementwise.remainder(self, other, out=self)

    def __ipow__(self, other: object) -> Array:
        return functions.power(self, other, out=self)

    # Comparisons of each element, as bools. What is neither an array nor a number is not compared.

    def __eq__(self, other: object) -> Array:
        return elementwise.equal(self, other) if self._compares(other) else NotImplemented

    def __ne__(self, other: object) -> Array:
        return elementwise.not_equal(self, other) if self._compares(other) else NotImplemented

    def __lt__(self, other: object) -> Array:
        return elementwise.less(self, other) if self._compares(other) else NotImplemented

    def __le__(self, other: object) -> Array:
        return elementwise.less_equal(self, other) if self._compares(other) else NotImplemented

    def __gt__(self, other: object) -> Array:
        return elementwise.greater(self, other) if self._compares(other) else NotImplemented

    def __ge__(self, other: object) -> Array:
        return elementwise.greater_equal(self, other) if self._compares(other) else NotImplemented

    #: As NumPy's arrays: equality is element by element, so an array cannot be a key.
    __hash__ = None

    @staticmethod
    def _compares(other: object) -> bool:
        # An array of NumPy is an operand, which the function refuses with the reason.
        return elementwise.is_operand(other) or isinstance(other, np.ndarray)

    # Bits of integers, logic of bools.

    def __and__(self, other: object) -> Array:
        return elementwise.bitwise_and(self, other)

    def __rand__(self, other: object) -> Array:
        return elementwise.bitwise_and(other, self)

    def __or__(self, other: object) -> Array:
        return elementwise.bitwise_or(self, other)

    def __ror__(self, other: object) -> Array:
        return elementwise.bitwise_or(other, self)

    def __xor__(self, other: object) -> Array:
        return elementwise.bitwise_xor(self, other)

    def __rxor__(self, other: object) -> Array:
        return elementwise.bitwise_xor(other, self)

    def __lshift__(self, other: object) -> Array:
        return elementwise.bitwise_left_shift(self, other)

    def __rlshift__(self, other: object) -> Array:
        return elementwise.bitwise_left_shift(other, self)

    def __rshift__(self, other: object) -> Array:
        return elementwise.bitwise_right_shift(self, other)

    def __rrshift__(self, other: object) -> Array:
        return elementwise.bitwise_right_shift(other, self)

    def __invert__(self) -> Array:
        return elementwise.bitwise_invert(self)

    def __iand__(self, other: object) -> Array:
        return elementwise.bitwise_and(self, other, out=self)

    def __ior__(self, other: object) -> Array:
        return elementwise.bitwise_or(self, other, out=self)

    def __ixor__(self, other: object) -> Array:
        return elementwise.bitwise_xor(self, other, out=self)

    def __ilshift__(self, other: object) -> Array:
        return elementwise.bitwise_left_shift(self, other, out=self)

    def __irshift__(self, other: object) -> Array:
        return elementwise.bitwise_right_shift(self, other, out=self)

    def clip(self, min: Optional[object] = None, max: Optional[object] = None) -> Array:
        """The elements, but at least min and at most max."""
        return elementwise.clip(self, min, max)

    # Element-wise functions and reductions come from Functions. gelu has an additional argument here.

    def gelu(self, tanh: bool = False) -> Array:
        """x * (1 + erf(x / sqrt(2))) / 2, or its usual tanh approximation."""
        return functions.gelu_tanh(self) if tanh else functions.gelu(self)

    def cumsum(self, axis: Optional[int] = None) -> Array:
        """Cumulative sums along one axis, or of the flattened array."""
        return reductions.cumsum(self, axis)

    def cumprod(self, axis: Optional[int] = None) -> Array:
        """Cumulative products along one axis, or of the flattened array."""
        return reductions.cumprod(self, axis)

    def sort(self, axis: int = -1) -> None:
        """Sorts the elements along an axis in place; tuff.sort() returns a new array."""
        self.assign(sorting.sort(self, axis))

    def argsort(self, axis: Optional[int] = -1) -> Array:
        """The indices of the elements in order along an axis, or in the flattened array, as int64."""
        return sorting.argsort(self, axis)

    def nonzero(self) -> Tuple[Array, ...]:
        """The indices of the elements that are not zero, as an int64 array for each axis."""
        return searching.nonzero(self)

    def searchsorted(self, v: Array, side: str = "left", sorter: Optional[Array] = None) -> Array:
        """Where the elements of v belong in this sorted array of one axis, as int64."""
        return searching.searchsorted(self, v, side, sorter)

    def softmax(self, axis: int = -1) -> Array:
        """exp(x - max) / sum(exp(x - max)) along one axis."""
        return norms.softmax(self, axis)

    def log_softmax(self, axis: int = -1) -> Array:
        """The logarithm of softmax, computed directly."""
        return norms.log_softmax(self, axis)

    def layer_norm(self, weight: Optional[Array] = None, bias: Optional[Array] = None, epsilon: float = 1e-5) -> Array:
        """(x - mean) / sqrt(variance + epsilon) * weight + bias along the last axis."""
        return norms.layer_norm(self, weight, bias, epsilon=epsilon)

    def rms_norm(self, weight: Optional[Array] = None, epsilon: float = 1e-5) -> Array:
        """x / sqrt(mean(x * x) + epsilon) * weight along the last axis."""
        return norms.rms_norm(self, weight, epsilon=epsilon)


setup(Array, Buffer)
