"""Arrays on a device."""

from __future__ import annotations

from typing import Optional, Sequence, Union

import numpy as np

from . import _functions as functions
from . import _operations as operations
from . import _shape as shapes
from ._checked import element, is_number
from ._functions import Functions
from ._operands import same_kind, whole_axis
from ._storage import DTYPES, Axis, Storage, TransposedStorage, as_dtype, as_natural, as_numpy, as_shape

__all__ = ["DTYPES", "Array", "Axis", "Transposed", "as_dtype", "as_natural", "as_numpy", "as_shape"]


class Array(Functions, Storage):
    """A dense row-major array on a device: a Buffer with a shape and a dtype.

    Operators, reductions and functions run on the device and return new arrays. Results stay on the device until
    .numpy() copies them. Operands are arrays of one context and dtype, or Python numbers. Shapes broadcast as in
    NumPy. Slices of leading axes are views.
    """

    __slots__ = ()

    #: Makes NumPy defer mixed expressions to the methods below, which raise an error instead of downloading.
    __array_ufunc__ = None

    def assign(self, value: object) -> Array:
        """Overwrites the elements with a number, an Array or a NumPy array that broadcasts to the shape."""
        if is_number(value):
            self.buffer.fill(element(value, self.dtype), 0, self.nbytes)
        elif isinstance(value, Array):
            same_kind(self, value)
            source = operations.broadcast_to(value, self.shape)
            if not source.buffer.same_range(self.buffer):
                self.buffer.copy_from(source.buffer, nbytes=self.nbytes)
        else:
            self.buffer.upload(np.broadcast_to(as_numpy(value, self.dtype), self.shape))
        return self

    # Axes.

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
        element differs from 0."""
        return shapes.cast(self, dtype)

    @property
    def T(self) -> Transposed:
        """The transposed matrix as an operand of @, without moving elements. transpose() returns a new array."""
        if self.ndim != 2:
            raise ValueError(f".T needs a matrix, this is of shape {self.shape}; .mT is for stacks of them")
        return Transposed(self)

    @property
    def mT(self) -> Transposed:
        """A stack of matrices, each transposed, as an operand of @, without moving elements."""
        if self.ndim < 2:
            raise ValueError(f".mT needs at least two axes, this is of shape {self.shape}")
        return Transposed(self)

    def __setitem__(self, key: object, value: object) -> None:
        self[key].assign(value)

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

    def __matmul__(self, other: Union[Array, Transposed]) -> Array:
        return operations.matmul(self, other)

    def __rmatmul__(self, other: object) -> Array:
        return operations.matmul(other, self)

    def __neg__(self) -> Array:
        return functions.neg(self)

    def __pos__(self) -> Array:
        return self.copy()

    def __abs__(self) -> Array:
        return functions.abs(self)

    # Element-wise functions and reductions come from Functions. gelu has an additional argument here.

    def gelu(self, tanh: bool = False) -> Array:
        """x * (1 + erf(x / sqrt(2))) / 2, or its usual tanh approximation."""
        return functions.gelu_tanh(self) if tanh else functions.gelu(self)

    def cumsum(self, axis: Optional[int] = None) -> Array:
        """Cumulative sums along one axis, or of the flattened array."""
        return operations.cumsum(self, axis)

    def cumprod(self, axis: Optional[int] = None) -> Array:
        """Cumulative products along one axis, or of the flattened array."""
        return operations.cumprod(self, axis)

    def softmax(self, axis: int = -1) -> Array:
        """exp(x - max) / sum(exp(x - max)) along one axis."""
        return operations.softmax(self, axis)

    def log_softmax(self, axis: int = -1) -> Array:
        """The logarithm of softmax, computed directly."""
        return operations.log_softmax(self, axis)

    def layer_norm(self, weight: Optional[Array] = None, bias: Optional[Array] = None, epsilon: float = 1e-5) -> Array:
        """(x - mean) / sqrt(variance + epsilon) * weight + bias along the last axis."""
        return operations.layer_norm(self, weight, bias, epsilon=epsilon)

    def rms_norm(self, weight: Optional[Array] = None, epsilon: float = 1e-5) -> Array:
        """x / sqrt(mean(x * x) + epsilon) * weight along the last axis."""
        return operations.rms_norm(self, weight, epsilon=epsilon)


class Transposed(TransposedStorage):
    """A matrix or a stack of matrices with the last two axes exchanged: the result of ``a.T`` and ``a.mT``.

    It can be an operand of @ and can be downloaded. No elements are moved on the device.
    """

    __slots__ = ()

    def copy(self) -> Array:
        """Returns a new array with the transposed elements, moved on the device."""
        return self.base.swapaxes(-1, -2)

    def __matmul__(self, other: Union[Array, Transposed]) -> Array:
        return operations.matmul(self, other)

    def __rmatmul__(self, other: object) -> Array:
        return operations.matmul(other, self)
