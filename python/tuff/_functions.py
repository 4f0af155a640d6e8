"""Functions of elements and reductions. Generated from the tables of operations (kernels/*/*.def) by
scripts/api/generate.py: not to be edited."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

from . import _operations as operations
from . import raw

if TYPE_CHECKING:
    from ._array import Array, Axis
    from ._operands import Operand

__all__ = [
    "abs",
    "add",
    "cos",
    "divide",
    "elu",
    "erf",
    "exp",
    "gelu",
    "gelu_tanh",
    "hardswish",
    "leaky_relu",
    "log",
    "maximum",
    "minimum",
    "multiply",
    "neg",
    "power",
    "relu",
    "sigmoid",
    "silu",
    "sin",
    "softplus",
    "sqrt",
    "subtract",
    "tanh",
]


def relu(x: Array, *, out: Optional[Array] = None) -> Array:
    """max(x, 0); NaN stays NaN"""
    return operations.unary(raw.UNARY_RELU, x, out=out)


def sigmoid(x: Array, *, out: Optional[Array] = None) -> Array:
    """1 / (1 + exp(-x))"""
    return operations.unary(raw.UNARY_SIGMOID, x, out=out)


def tanh(x: Array, *, out: Optional[Array] = None) -> Array:
    """tanh of each element."""
    return operations.unary(raw.UNARY_TANH, x, out=out)


def exp(x: Array, *, out: Optional[Array] = None) -> Array:
    """exp of each element."""
    return operations.unary(raw.UNARY_EXP, x, out=out)


def log(x: Array, *, out: Optional[Array] = None) -> Array:
    """natural logarithm; NaN below zero, -inf at zero"""
    return operations.unary(raw.UNARY_LOG, x, out=out)


def sqrt(x: Array, *, out: Optional[Array] = None) -> Array:
    """sqrt of each element."""
    return operations.unary(raw.UNARY_SQRT, x, out=out)


def abs(x: Array, *, out: Optional[Array] = None) -> Array:
    """abs of each element."""
    return operations.unary(raw.UNARY_ABS, x, out=out)


def neg(x: Array, *, out: Optional[Array] = None) -> Array:
    """neg of each element."""
    return operations.unary(raw.UNARY_NEG, x, out=out)


def gelu(x: Array, *, out: Optional[Array] = None) -> Array:
    """x * (1 + erf(x / sqrt(2))) / 2; 0 at -inf"""
    return operations.unary(raw.UNARY_GELU, x, out=out)


def gelu_tanh(x: Array, *, out: Optional[Array] = None) -> Array:
    """x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2; 0 at -inf"""
    return operations.unary(raw.UNARY_GELU_TANH, x, out=out)


def silu(x: Array, *, out: Optional[Array] = None) -> Array:
    """x * sigmoid(x); 0 at -inf"""
    return operations.unary(raw.UNARY_SILU, x, out=out)


def leaky_relu(x: Array, alpha: float = 0.01, *, out: Optional[Array] = None) -> Array:
    """x if x > 0, otherwise alpha * x"""
    return operations.unary(raw.UNARY_LEAKY_RELU, x, alpha=alpha, out=out) if alpha else relu(x, out=out)


def elu(x: Array, alpha: float = 1.0, *, out: Optional[Array] = None) -> Array:
    """x if x > 0, otherwise alpha * (exp(x) - 1)"""
    return operations.unary(raw.UNARY_ELU, x, alpha=alpha, out=out) if alpha else relu(x, out=out)


def hardswish(x: Array, *, out: Optional[Array] = None) -> Array:
    """x * min(max(x + 3, 0), 6) / 6; 0 at -inf"""
    return operations.unary(raw.UNARY_HARDSWISH, x, out=out)


def softplus(x: Array, *, out: Optional[Array] = None) -> Array:
    """log(1 + exp(x))"""
    return operations.unary(raw.UNARY_SOFTPLUS, x, out=out)


def sin(x: Array, *, out: Optional[Array] = None) -> Array:
    """the sine of x, for arguments of any magnitude; NaN for infinities"""
    return operations.unary(raw.UNARY_SIN, x, out=out)


def cos(x: Array, *, out: Optional[Array] = None) -> Array:
    """cos of each element."""
    return operations.unary(raw.UNARY_COS, x, out=out)


def erf(x: Array, *, out: Optional[Array] = None) -> Array:
    """the error function: 2 / sqrt(pi) * (integral of exp(-t^2) from 0 to x)"""
    return operations.unary(raw.UNARY_ERF, x, out=out)


def add(a: Operand, b: Operand, *, out: Optional[Array] = None) -> Array:
    """a + b"""
    return operations.binary(raw.BINARY_ADD, a, b, out=out)


def subtract(a: Operand, b: Operand, *, out: Optional[Array] = None) -> Array:
    """a - b"""
    return operations.binary(raw.BINARY_SUB, a, b, out=out)


def multiply(a: Operand, b: Operand, *, out: Optional[Array] = None) -> Array:
    """a * b"""
    return operations.binary(raw.BINARY_MUL, a, b, out=out)


def divide(a: Operand, b: Operand, *, out: Optional[Array] = None) -> Array:
    """a / b"""
    return operations.binary(raw.BINARY_DIV, a, b, out=out)


def maximum(a: Operand, b: Operand, *, out: Optional[Array] = None) -> Array:
    """maximum of each pair: NaN if either is NaN"""
    return operations.binary(raw.BINARY_MAX, a, b, out=out)


def minimum(a: Operand, b: Operand, *, out: Optional[Array] = None) -> Array:
    """minimum of each pair: NaN if either is NaN"""
    return operations.binary(raw.BINARY_MIN, a, b, out=out)


def power(a: Operand, b: Operand, *, out: Optional[Array] = None) -> Array:
    """power of each pair: a^b as defined by IEEE 754 pow"""
    return operations.binary(raw.BINARY_POW, a, b, out=out)


class Functions:
    """The methods of Array that are functions of each element, or reductions."""

    __slots__ = ()

    def relu(self) -> Array:
        """max(x, 0); NaN stays NaN"""
        return relu(self)

    def sigmoid(self) -> Array:
        """1 / (1 + exp(-x))"""
        return sigmoid(self)

    def tanh(self) -> Array:
        """tanh of each element."""
        return tanh(self)

    def exp(self) -> Array:
        """exp of each element."""
        return exp(self)

    def log(self) -> Array:
        """natural logarithm; NaN below zero, -inf at zero"""
        return log(self)

    def sqrt(self) -> Array:
        """sqrt of each element."""
        return sqrt(self)

    def abs(self) -> Array:
        """abs of each element."""
        return abs(self)

    def neg(self) -> Array:
        """neg of each element."""
        return neg(self)

    def gelu(self) -> Array:
        """x * (1 + erf(x / sqrt(2))) / 2; 0 at -inf"""
        return gelu(self)

    def gelu_tanh(self) -> Array:
        """x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2; 0 at -inf"""
        return gelu_tanh(self)

    def silu(self) -> Array:
        """x * sigmoid(x); 0 at -inf"""
        return silu(self)

    def leaky_relu(self, alpha: float = 0.01) -> Array:
        """x if x > 0, otherwise alpha * x"""
        return leaky_relu(self, alpha)

    def elu(self, alpha: float = 1.0) -> Array:
        """x if x > 0, otherwise alpha * (exp(x) - 1)"""
        return elu(self, alpha)

    def hardswish(self) -> Array:
        """x * min(max(x + 3, 0), 6) / 6; 0 at -inf"""
        return hardswish(self)

    def softplus(self) -> Array:
        """log(1 + exp(x))"""
        return softplus(self)

    def sin(self) -> Array:
        """the sine of x, for arguments of any magnitude; NaN for infinities"""
        return sin(self)

    def cos(self) -> Array:
        """cos of each element."""
        return cos(self)

    def erf(self) -> Array:
        """the error function: 2 / sqrt(pi) * (integral of exp(-t^2) from 0 to x)"""
        return erf(self)

    def sum(self, axis: Axis = None, keepdims: bool = False) -> Array:
        """The sum over axes: all of them (None), one (an int) or several (a tuple)."""
        return operations.reduce(raw.REDUCE_SUM, self, axis, keepdims)

    def max(self, axis: Axis = None, keepdims: bool = False) -> Array:
        """The max over axes: all of them (None), one (an int) or several (a tuple). NaN if any is NaN."""
        return operations.reduce(raw.REDUCE_MAX, self, axis, keepdims)

    def min(self, axis: Axis = None, keepdims: bool = False) -> Array:
        """The min over axes: all of them (None), one (an int) or several (a tuple). NaN if any is NaN."""
        return operations.reduce(raw.REDUCE_MIN, self, axis, keepdims)

    def mean(self, axis: Axis = None, keepdims: bool = False) -> Array:
        """The mean over axes: all of them (None), one (an int) or several (a tuple)."""
        return operations.reduce(raw.REDUCE_MEAN, self, axis, keepdims)

    def prod(self, axis: Axis = None, keepdims: bool = False) -> Array:
        """The prod over axes: all of them (None), one (an int) or several (a tuple)."""
        return operations.reduce(raw.REDUCE_PROD, self, axis, keepdims)

    def argmax(self, axis: Optional[int] = None, keepdims: bool = False) -> Array:
        """The index of the largest value, as uint32: the first of equal values, or the first NaN."""
        return operations.arg_reduce(raw.REDUCE_ARGMAX, self, axis, keepdims)

    def argmin(self, axis: Optional[int] = None, keepdims: bool = False) -> Array:
        """The index of the smallest value, as uint32: the first of equal values, or the first NaN."""
        return operations.arg_reduce(raw.REDUCE_ARGMIN, self, axis, keepdims)
