"""Functions of elements and reductions. Generated from the tables of operations (kernels/*/*.def) by
scripts/api/generate.py: not to be edited."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

from . import _operations as operations
from . import _reductions as reductions
from . import raw

if TYPE_CHECKING:
    from ._array import Array, Axis
    from ._operands import Operand

__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cbrt",
    "ceil",
    "cos",
    "cosh",
    "cube",
    "digamma",
    "divide",
    "elu",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "gelu",
    "gelu_tanh",
    "hardsigmoid",
    "hardswish",
    "leaky_relu",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "log_sigmoid",
    "maximum",
    "minimum",
    "mish",
    "multiply",
    "neg",
    "power",
    "reciprocal",
    "relu",
    "round",
    "rsqrt",
    "selu",
    "sigmoid",
    "sign",
    "silu",
    "sin",
    "sinh",
    "softplus",
    "softsign",
    "sqrt",
    "square",
    "subtract",
    "tan",
    "tanh",
    "trunc",
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


def square(x: Array, *, out: Optional[Array] = None) -> Array:
    """x * x"""
    return operations.unary(raw.UNARY_SQUARE, x, out=out)


def cube(x: Array, *, out: Optional[Array] = None) -> Array:
    """x * x * x"""
    return operations.unary(raw.UNARY_CUBE, x, out=out)


def sign(x: Array, *, out: Optional[Array] = None) -> Array:
    """-1, 0 or 1; 0 for zeros of either sign; NaN stays NaN"""
    return operations.unary(raw.UNARY_SIGN, x, out=out)


def floor(x: Array, *, out: Optional[Array] = None) -> Array:
    """the largest integer that is not above x; zeros keep their sign"""
    return operations.unary(raw.UNARY_FLOOR, x, out=out)


def ceil(x: Array, *, out: Optional[Array] = None) -> Array:
    """the smallest integer that is not below x; -0 above -1"""
    return operations.unary(raw.UNARY_CEIL, x, out=out)


def round(x: Array, *, out: Optional[Array] = None) -> Array:
    """the nearest integer, of two the even one; a zero has the sign of x"""
    return operations.unary(raw.UNARY_ROUND, x, out=out)


def trunc(x: Array, *, out: Optional[Array] = None) -> Array:
    """x without its fraction; a zero has the sign of x"""
    return operations.unary(raw.UNARY_TRUNC, x, out=out)


def reciprocal(x: Array, *, out: Optional[Array] = None) -> Array:
    """1 / x; infinity with the sign of x at zeros"""
    return operations.unary(raw.UNARY_RECIPROCAL, x, out=out)


def rsqrt(x: Array, *, out: Optional[Array] = None) -> Array:
    """1 / sqrt(x); NaN below zero, infinity with the sign of x at zeros"""
    return operations.unary(raw.UNARY_RSQRT, x, out=out)


def cbrt(x: Array, *, out: Optional[Array] = None) -> Array:
    """the cube root of x, of any sign"""
    return operations.unary(raw.UNARY_CBRT, x, out=out)


def exp2(x: Array, *, out: Optional[Array] = None) -> Array:
    """2^x"""
    return operations.unary(raw.UNARY_EXP2, x, out=out)


def expm1(x: Array, *, out: Optional[Array] = None) -> Array:
    """exp(x) - 1, accurate near zero"""
    return operations.unary(raw.UNARY_EXPM1, x, out=out)


def log2(x: Array, *, out: Optional[Array] = None) -> Array:
    """logarithm to base 2; NaN below zero, -inf at zero"""
    return operations.unary(raw.UNARY_LOG2, x, out=out)


def log10(x: Array, *, out: Optional[Array] = None) -> Array:
    """logarithm to base 10; NaN below zero, -inf at zero"""
    return operations.unary(raw.UNARY_LOG10, x, out=out)


def log1p(x: Array, *, out: Optional[Array] = None) -> Array:
    """log(1 + x), accurate near zero; NaN below -1, -inf at -1"""
    return operations.unary(raw.UNARY_LOG1P, x, out=out)


def tan(x: Array, *, out: Optional[Array] = None) -> Array:
    """the tangent of x, for arguments of any magnitude; NaN for infinities"""
    return operations.unary(raw.UNARY_TAN, x, out=out)


def asin(x: Array, *, out: Optional[Array] = None) -> Array:
    """the inverse of the sine, in [-pi/2, pi/2]; NaN beyond [-1, 1]"""
    return operations.unary(raw.UNARY_ASIN, x, out=out)


def acos(x: Array, *, out: Optional[Array] = None) -> Array:
    """the inverse of the cosine, in [0, pi]; NaN beyond [-1, 1]"""
    return operations.unary(raw.UNARY_ACOS, x, out=out)


def atan(x: Array, *, out: Optional[Array] = None) -> Array:
    """the inverse of the tangent, in [-pi/2, pi/2]"""
    return operations.unary(raw.UNARY_ATAN, x, out=out)


def sinh(x: Array, *, out: Optional[Array] = None) -> Array:
    """sinh of each element."""
    return operations.unary(raw.UNARY_SINH, x, out=out)


def cosh(x: Array, *, out: Optional[Array] = None) -> Array:
    """cosh of each element."""
    return operations.unary(raw.UNARY_COSH, x, out=out)


def asinh(x: Array, *, out: Optional[Array] = None) -> Array:
    """the inverse of sinh"""
    return operations.unary(raw.UNARY_ASINH, x, out=out)


def acosh(x: Array, *, out: Optional[Array] = None) -> Array:
    """the inverse of cosh that is not negative; NaN below 1"""
    return operations.unary(raw.UNARY_ACOSH, x, out=out)


def atanh(x: Array, *, out: Optional[Array] = None) -> Array:
    """the inverse of tanh; infinite at -1 and 1, NaN beyond"""
    return operations.unary(raw.UNARY_ATANH, x, out=out)


def erfc(x: Array, *, out: Optional[Array] = None) -> Array:
    """1 - erf(x), accurate where that is small"""
    return operations.unary(raw.UNARY_ERFC, x, out=out)


def selu(x: Array, *, out: Optional[Array] = None) -> Array:
    """1.0507009873554805 * (x if x > 0, otherwise 1.6732632423543772 * (exp(x) - 1))"""
    return operations.unary(raw.UNARY_SELU, x, out=out)


def softsign(x: Array, *, out: Optional[Array] = None) -> Array:
    """x / (1 + |x|); -1 and 1 for infinities"""
    return operations.unary(raw.UNARY_SOFTSIGN, x, out=out)


def hardsigmoid(x: Array, *, out: Optional[Array] = None) -> Array:
    """min(max(x + 3, 0), 6) / 6"""
    return operations.unary(raw.UNARY_HARDSIGMOID, x, out=out)


def mish(x: Array, *, out: Optional[Array] = None) -> Array:
    """x * tanh(log(1 + exp(x))); 0 at -inf"""
    return operations.unary(raw.UNARY_MISH, x, out=out)


def erfinv(x: Array, *, out: Optional[Array] = None) -> Array:
    """the inverse of erf; infinite at -1 and 1, NaN beyond"""
    return operations.unary(raw.UNARY_ERFINV, x, out=out)


def lgamma(x: Array, *, out: Optional[Array] = None) -> Array:
    """log(|gamma(x)|); infinite at integers below 1 and for infinities"""
    return operations.unary(raw.UNARY_LGAMMA, x, out=out)


def digamma(x: Array, *, out: Optional[Array] = None) -> Array:
    """the derivative of lgamma; NaN at negative integers and -inf, -inf at 0, inf at -0"""
    return operations.unary(raw.UNARY_DIGAMMA, x, out=out)


def log_sigmoid(x: Array, *, out: Optional[Array] = None) -> Array:
    """-log(1 + exp(-x)), the logarithm of the sigmoid; -0 at inf"""
    return operations.unary(raw.UNARY_LOG_SIGMOID, x, out=out)


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

    def square(self) -> Array:
        """x * x"""
        return square(self)

    def cube(self) -> Array:
        """x * x * x"""
        return cube(self)

    def sign(self) -> Array:
        """-1, 0 or 1; 0 for zeros of either sign; NaN stays NaN"""
        return sign(self)

    def floor(self) -> Array:
        """the largest integer that is not above x; zeros keep their sign"""
        return floor(self)

    def ceil(self) -> Array:
        """the smallest integer that is not below x; -0 above -1"""
        return ceil(self)

    def round(self) -> Array:
        """the nearest integer, of two the even one; a zero has the sign of x"""
        return round(self)

    def trunc(self) -> Array:
        """x without its fraction; a zero has the sign of x"""
        return trunc(self)

    def reciprocal(self) -> Array:
        """1 / x; infinity with the sign of x at zeros"""
        return reciprocal(self)

    def rsqrt(self) -> Array:
        """1 / sqrt(x); NaN below zero, infinity with the sign of x at zeros"""
        return rsqrt(self)

    def cbrt(self) -> Array:
        """the cube root of x, of any sign"""
        return cbrt(self)

    def exp2(self) -> Array:
        """2^x"""
        return exp2(self)

    def expm1(self) -> Array:
        """exp(x) - 1, accurate near zero"""
        return expm1(self)

    def log2(self) -> Array:
        """logarithm to base 2; NaN below zero, -inf at zero"""
        return log2(self)

    def log10(self) -> Array:
        """logarithm to base 10; NaN below zero, -inf at zero"""
        return log10(self)

    def log1p(self) -> Array:
        """log(1 + x), accurate near zero; NaN below -1, -inf at -1"""
        return log1p(self)

    def tan(self) -> Array:
        """the tangent of x, for arguments of any magnitude; NaN for infinities"""
        return tan(self)

    def asin(self) -> Array:
        """the inverse of the sine, in [-pi/2, pi/2]; NaN beyond [-1, 1]"""
        return asin(self)

    def acos(self) -> Array:
        """the inverse of the cosine, in [0, pi]; NaN beyond [-1, 1]"""
        return acos(self)

    def atan(self) -> Array:
        """the inverse of the tangent, in [-pi/2, pi/2]"""
        return atan(self)

    def sinh(self) -> Array:
        """sinh of each element."""
        return sinh(self)

    def cosh(self) -> Array:
        """cosh of each element."""
        return cosh(self)

    def asinh(self) -> Array:
        """the inverse of sinh"""
        return asinh(self)

    def acosh(self) -> Array:
        """the inverse of cosh that is not negative; NaN below 1"""
        return acosh(self)

    def atanh(self) -> Array:
        """the inverse of tanh; infinite at -1 and 1, NaN beyond"""
        return atanh(self)

    def erfc(self) -> Array:
        """1 - erf(x), accurate where that is small"""
        return erfc(self)

    def selu(self) -> Array:
        """1.0507009873554805 * (x if x > 0, otherwise 1.6732632423543772 * (exp(x) - 1))"""
        return selu(self)

    def softsign(self) -> Array:
        """x / (1 + |x|); -1 and 1 for infinities"""
        return softsign(self)

    def hardsigmoid(self) -> Array:
        """min(max(x + 3, 0), 6) / 6"""
        return hardsigmoid(self)

    def mish(self) -> Array:
        """x * tanh(log(1 + exp(x))); 0 at -inf"""
        return mish(self)

    def erfinv(self) -> Array:
        """the inverse of erf; infinite at -1 and 1, NaN beyond"""
        return erfinv(self)

    def lgamma(self) -> Array:
        """log(|gamma(x)|); infinite at integers below 1 and for infinities"""
        return lgamma(self)

    def digamma(self) -> Array:
        """the derivative of lgamma; NaN at negative integers and -inf, -inf at 0, inf at -0"""
        return digamma(self)

    def log_sigmoid(self) -> Array:
        """-log(1 + exp(-x)), the logarithm of the sigmoid; -0 at inf"""
        return log_sigmoid(self)

    def sum(self, axis: Axis = None, keepdims: bool = False) -> Array:
        """The sum over axes: all of them (None), one (an int) or several (a tuple)."""
        return reductions.reduce(raw.REDUCE_SUM, self, axis, keepdims)

    def max(self, axis: Axis = None, keepdims: bool = False) -> Array:
        """The max over axes: all of them (None), one (an int) or several (a tuple). NaN if any is NaN."""
        return reductions.reduce(raw.REDUCE_MAX, self, axis, keepdims)

    def min(self, axis: Axis = None, keepdims: bool = False) -> Array:
        """The min over axes: all of them (None), one (an int) or several (a tuple). NaN if any is NaN."""
        return reductions.reduce(raw.REDUCE_MIN, self, axis, keepdims)

    def mean(self, axis: Axis = None, keepdims: bool = False) -> Array:
        """The mean over axes: all of them (None), one (an int) or several (a tuple)."""
        return reductions.reduce(raw.REDUCE_MEAN, self, axis, keepdims)

    def prod(self, axis: Axis = None, keepdims: bool = False) -> Array:
        """The prod over axes: all of them (None), one (an int) or several (a tuple)."""
        return reductions.reduce(raw.REDUCE_PROD, self, axis, keepdims)

    def argmax(self, axis: Optional[int] = None, keepdims: bool = False) -> Array:
        """The index of the largest value, as int64: the first of equal values, or the first NaN."""
        return reductions.arg_reduce(raw.REDUCE_ARGMAX, self, axis, keepdims)

    def argmin(self, axis: Optional[int] = None, keepdims: bool = False) -> Array:
        """The index of the smallest value, as int64: the first of equal values, or the first NaN."""
        return reductions.arg_reduce(raw.REDUCE_ARGMIN, self, axis, keepdims)

    def any(self, axis: Axis = None, keepdims: bool = False) -> Array:
        """Whether some element is not zero; over axes: all of them (None), one (an int) or several (a tuple)."""
        return reductions.reduce(raw.REDUCE_ANY, self, axis, keepdims)

    def all(self, axis: Axis = None, keepdims: bool = False) -> Array:
        """Whether no element is zero; over axes: all of them (None), one (an int) or several (a tuple)."""
        return reductions.reduce(raw.REDUCE_ALL, self, axis, keepdims)

    def count_nonzero(self, axis: Axis = None, keepdims: bool = False) -> Array:
        """The number of elements that are not zero; over axes: all of them (None), one (an int) or several (a tuple)."""
        return reductions.reduce(raw.REDUCE_COUNT_NONZERO, self, axis, keepdims)

    def sum_squares(self, axis: Axis = None, keepdims: bool = False) -> Array:
        """The sum of x * x; over axes: all of them (None), one (an int) or several (a tuple)."""
        return reductions.reduce(raw.REDUCE_SUM_SQUARES, self, axis, keepdims)

    def l1(self, axis: Axis = None, keepdims: bool = False) -> Array:
        """The sum of |x|; over axes: all of them (None), one (an int) or several (a tuple)."""
        return reductions.reduce(raw.REDUCE_L1, self, axis, keepdims)

    def l2(self, axis: Axis = None, keepdims: bool = False) -> Array:
        """The square root of the sum of x * x; over axes: all of them (None), one (an int) or several (a tuple)."""
        return reductions.reduce(raw.REDUCE_L2, self, axis, keepdims)

    def var(self, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Array:
        """The sum of (x - mean)^2, divided by the number of elements less a correction; over axes: all of them (None), one (an int) or several (a tuple)."""
        return reductions.reduce(raw.REDUCE_VAR, self, axis, keepdims, correction=correction)

    def std(self, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Array:
        """The square root of var; over axes: all of them (None), one (an int) or several (a tuple)."""
        return reductions.reduce(raw.REDUCE_STD, self, axis, keepdims, correction=correction)

    def logsumexp(self, axis: Axis = None, keepdims: bool = False) -> Array:
        """Log(sum of exp(x)), computed from the largest x so that no exp overflows; over axes: all of them (None), one (an int) or several (a tuple)."""
        return reductions.reduce(raw.REDUCE_LOGSUMEXP, self, axis, keepdims)
