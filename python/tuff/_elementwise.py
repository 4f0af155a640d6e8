"""NumPy's element-wise functions as formulas: comparisons, logic, bits, integers, and arithmetic of unlike types. Each
call is one kernel (docs/expressions.md)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Dict, Optional, Tuple, Union

import numpy as np

from ._checked import is_complex_number, is_scalar, real
from ._expression import expr, repeated
from ._operands import require_array
from ._storage import Storage
from ._types import BOOL, common_type, complex_of, is_complex, is_float, part_of, require_real

if TYPE_CHECKING:
    from ._array import Array

    Operand = Union[Array, float, int, bool, np.generic]

__all__ = [
    "angle",
    "atan2",
    "bitwise_and",
    "bitwise_count",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "clip",
    "copysign",
    "deg2rad",
    "degrees",
    "divmod",
    "equal",
    "float_power",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "gcd",
    "greater",
    "greater_equal",
    "heaviside",
    "hypot",
    "isclose",
    "iscomplex",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "lcm",
    "less",
    "less_equal",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "modf",
    "nan_to_num",
    "nextafter",
    "not_equal",
    "positive",
    "rad2deg",
    "radians",
    "real_if_close",
    "remainder",
    "signbit",
    "sinc",
]

def is_operand(value: object) -> bool:
    """Whether a value can stand beside an array: another array, a number, True or False."""
    return isinstance(value, (Storage, bool, np.bool_)) or is_scalar(value)


def type_of(*values: Operand) -> np.dtype:
    """The common type of arrays and numbers. A Python number adopts the arrays' type; a fraction with integers gives
    float32, and a complex number with real arrays complex64, or complex128 with float64. A NumPy number has its own
    type."""
    known = [value.dtype for value in values if isinstance(value, (Storage, np.generic))]
    if not any(isinstance(value, Storage) for value in values):
        raise TypeError("one operand must be a tuff.Array")
    dtype = known[0]
    for other in known[1:]:
        dtype = common_type(dtype, other)
    plain = [value for value in values if not isinstance(value, (Storage, np.generic))]
    if any(isinstance(value, complex) for value in plain):
        return complex_of(dtype)
    if any(isinstance(value, float) for value in plain) and not is_float(dtype) and not is_complex(dtype):
        return np.dtype(np.float32)
    if dtype == BOOL and any(type(value) is int for value in plain):
        return np.dtype(np.int32)
    return dtype


def adopted(value: Operand, dtype: np.dtype) -> Operand:
    """A Python number beside operands of a type: an integer must fit an integer type; a float is as precise as they are."""
    if type(value) is float and part_of(dtype) == np.float64:
        return np.float64(value)
    if is_complex_number(value):
        return (np.complex128 if part_of(dtype) == np.float64 else np.complex64)(value)
    if type(value) is int and dtype.kind in "iu":
        info = np.iinfo(dtype)
        if not info.min <= value <= info.max:
            raise OverflowError(f"{value} is beyond {dtype}, which has {info.min} to {info.max}")
        return dtype.type(value)
    return value


def _checked(*operands: Operand) -> None:
    for index, value in enumerate(operands):
        if not is_operand(value):
            require_array(value, f"operand {index + 1}")


def arithmetic(formula: str, a: Operand, b: Operand, out: Optional[Array], dtype: Optional[np.dtype] = None) -> Array:
    """A formula of a and b whose result has their common type, or dtype. The type of out must hold it."""
    _checked(a, b)
    kind = type_of(a, b)
    result = kind if dtype is None else dtype
    if out is not None:
        require_array(out, "out")
        if common_type(result, out.dtype) != out.dtype and not (is_float(result) and is_float(out.dtype)):
            raise TypeError(f"the result is {result}, and out is an array of {out.dtype}")
        result = out.dtype
    return expr(formula, dtype=result, out=out, a=adopted(a, kind), b=adopted(b, kind))


def wrapped(x: Array, dtype: np.dtype) -> Array:
    """x as another type; integers modulo 2**bits, where astype() saturates."""
    if x.dtype == dtype:
        return x
    if x.dtype.kind not in "iu" or dtype.kind not in "iu" or dtype.itemsize == 8:
        return x.astype(dtype)
    bits = 8 * dtype.itemsize
    half = 2 ** (bits - 1) if dtype.kind == "i" else 0
    formula = "((x + h) & m) - h" if half else "x & m"
    numbers = {"m": x.dtype.type(2**bits - 1), **({"h": x.dtype.type(half)} if half else {})}
    return expr(formula, dtype=dtype, x=x, **numbers)


def _integers(formula: str, a: Operand, b: Operand, out: Optional[Array]) -> Array:
    _checked(a, b)
    kind = type_of(a, b)
    if kind.kind not in "biu":
        raise TypeError(f"operands of {kind}: needs integers or bools")
    return arithmetic(formula, a, b, out)


def _floats(formula: str, a: Operand, b: Operand, out: Optional[Array]) -> Array:
    _checked(a, b)
    kind = type_of(a, b)
    if is_complex(kind):
        raise TypeError(f"operands of {kind}: needs real numbers")
    return arithmetic(formula, a, b, out, kind if is_float(kind) else np.dtype(np.float32))


def _compared(value: Operand, dtype: np.dtype) -> Operand:
    """A Python number beside operands of a type that it is only compared with. An integer may be beyond the type; if
    no integer type holds both, it is as good as the nearest float."""
    if type(value) is not int or dtype.kind not in "iu":
        return adopted(value, dtype)
    info = np.iinfo(dtype)
    if info.min <= value <= info.max:
        return dtype.type(value)
    return value if dtype.itemsize < 8 and -(2**63) <= value < 2**63 else math.copysign(math.inf, value)


def _truth(formula: str, out: Optional[Array], **operands: Operand) -> Array:
    _checked(*operands.values())
    kind = type_of(*operands.values())
    operands = {name: _compared(value, kind) for name, value in operands.items()}
    return expr(formula, dtype=BOOL if out is None else None, out=out, **operands)


def truth(formula: str, x: Array, numbers: Dict[str, Operand]) -> Array:
    """A formula of an array x and numbers that it is compared with, as bools."""
    return _truth(formula, None, x=x, **numbers)


# Comparisons. NaN is unequal to everything.


@repeated
def equal(a: Operand, b: Operand, *, out: Optional[Array] = None) -> Array:
    """a == b of each pair of elements, as bools."""
    return _truth("a == b", out, a=a, b=b)


@repeated
def not_equal(a: Operand, b: Operand, *, out: Optional[Array] = None) -> Array:
    """a != b of each pair of elements, as bools."""
    return _truth("a != b", out, a=a, b=b)


@repeated
def less(a: Operand, b: Operand, *, out: Optional[Array] = None) -> Array:
    """a < b of each pair of elements, as bools."""
    return _truth("a < b", out, a=a, b=b)


@repeated
def less_equal(a: Operand, b: Operand, *, out: Optional[Array] = None) -> Array:
    """a <= b of each pair of elements, as bools."""
    return _truth("a <= b", out, a=a, b=b)


@repeated
def greater(a: Operand, b: Operand, *, out: Optional[Array] = None) -> Array:
    """a > b of each pair of elements, as bools."""
    return _truth("a > b", out, a=a, b=b)


@repeated
def greater_equal(a: Operand, b: Operand, *, out: Optional[Array] = None) -> Array:
    """a >= b of each pair of elements, as bools."""
    return _truth("a >= b", out, a=a, b=b)


def isclose(
    a: Operand, b: Operand, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False, *, out: Optional[Array] = None
) -> Array:
    """Whether |a - b| <= atol + rtol * |b|, for each pair of elements; infinities are close to themselves."""
    formula = "a == b || (isfinite(a) && isfinite(b) && abs(a - b) <= atol + rtol * abs(b))"
    if equal_nan:
        formula += " || (isnan(a) && isnan(b))"
    return _truth(formula, out, a=a, b=b, rtol=float(rtol), atol=float(atol))


# Logic, on any type: what is not zero is true.


@repeated
def logical_and(a: Operand, b: Operand, *, out: Optional[Array] = None) -> Array:
    """Whether both are not zero."""
    return _truth("a && b", out, a=a, b=b)


@repeated
def logical_or(a: Operand, b: Operand, *, out: Optional[Array] = None) -> Array:
    """Whether either is not zero."""
    return _truth("a || b", out, a=a, b=b)


@repeated
def logical_xor(a: Operand, b: Operand, *, out: Optional[Array] = None) -> Array:
    """Whether exactly one is not zero."""
    return _truth("xor(bool(a), bool(b))", out, a=a, b=b)


@repeated
def logical_not(x: Array, *, out: Optional[Array] = None) -> Array:
    """Whether an element is zero."""
    return _truth("!x", out, x=x)


@repeated
def isnan(x: Array, *, out: Optional[Array] = None) -> Array:
    """Whether an element is NaN."""
    return _truth("isnan(x)", out, x=x)


@repeated
def isinf(x: Array, *, out: Optional[Array] = None) -> Array:
    """Whether an element is infinite."""
    return _truth("isinf(x)", out, x=x)


@repeated
def isfinite(x: Array, *, out: Optional[Array] = None) -> Array:
    """Whether an element is neither infinite nor NaN."""
    return _truth("isfinite(x)", out, x=x)


@repeated
def signbit(x: Array, *, out: Optional[Array] = None) -> Array:
    """Whether an element's sign is negative, that of -0 included."""
    return _truth("signbit(x)", out, x=x)


# Bits of integers; of bools, logic.


@repeated
def bitwise_and(a: Operand, b: Operand, *, out: Optional[Array] = None) -> Array:
    """The bits that both have."""
    return _integers("a & b", a, b, out)


@repeated
def bitwise_or(a: Operand, b: Operand, *, out: Optional[Array] = None) -> Array:
    """The bits that either has."""
    return _integers("a | b", a, b, out)


@repeated
def bitwise_xor(a: Operand, b: Operand, *, out: Optional[Array] = None) -> Array:
    """The bits that exactly one has."""
    return _integers("xor(a, b)", a, b, out)


@repeated
def bitwise_left_shift(a: Operand, b: Operand, *, out: Optional[Array] = None) -> Array:
    """a * 2**b, modulo 2**bits; 0 if b is negative or at least the number of bits."""
    return _integers("a << b", a, b, out)


@repeated
def bitwise_right_shift(a: Operand, b: Operand, *, out: Optional[Array] = None) -> Array:
    """floor(a / 2**b); 0, or -1 for negative a, if b is negative or at least the number of bits."""
    return _integers("a >> b", a, b, out)


@repeated
def bitwise_invert(x: Array, *, out: Optional[Array] = None) -> Array:
    """The bits that an element lacks; of bools, logical_not."""
    require_array(x, "x")
    if x.dtype.kind not in "biu":
        raise TypeError(f"x is an array of {x.dtype}: needs integers or bools")
    return expr("!x" if x.dtype == BOOL else "~x", out=out, x=x)


@repeated
def bitwise_count(x: Array, *, out: Optional[Array] = None) -> Array:
    """The number of bits of an element that are 1, as uint8."""
    require_array(x, "x")
    return expr("popcount(x)", dtype=np.uint8 if out is None else None, out=out, x=x)


# Integers and remainders.


@repeated
def floor_divide(a: Operand, b: Operand, *, out: Optional[Array] = None) -> Array:
    """floor(a / b); 0 for integers by zero."""
    return arithmetic("a // b", a, b, out)


@repeated
def remainder(a: Operand, b: Operand, *, out: Optional[Array] = None) -> Array:
    """a - b * floor(a / b), with the sign of b, as % in Python; 0 for integers by zero."""
    return arithmetic("a % b", a, b, out)


@repeated
def fmod(a: Operand, b: Operand, *, out: Optional[Array] = None) -> Array:
    """a - b * trunc(a / b), with the sign of a, as % in C; 0 for integers by zero."""
    return arithmetic("fmod(a, b)", a, b, out)


@repeated
def gcd(a: Operand, b: Operand, *, out: Optional[Array] = None) -> Array:
    """The greatest common divisor of integers."""
    return _integers("gcd(a, b)", a, b, out)


@repeated
def lcm(a: Operand, b: Operand, *, out: Optional[Array] = None) -> Array:
    """The least common multiple of integers, modulo 2**bits."""
    return _integers("lcm(a, b)", a, b, out)


# Floats. Integers become float32.


@repeated
def atan2(a: Operand, b: Operand, *, out: Optional[Array] = None) -> Array:
    """The angle of the point (b, a), from -pi to pi."""
    return _floats("atan2(a, b)", a, b, out)


@repeated
def hypot(a: Operand, b: Operand, *, out: Optional[Array] = None) -> Array:
    """sqrt(a * a + b * b), without overflow in between."""
    return _floats("hypot(a, b)", a, b, out)


@repeated
def copysign(a: Operand, b: Operand, *, out: Optional[Array] = None) -> Array:
    """The magnitude of a with the sign of b."""
    return _floats("copysign(a, b)", a, b, out)


@repeated
def nextafter(a: Operand, b: Operand, *, out: Optional[Array] = None) -> Array:
    """The number of the type that is next to a towards b; of integers, as float32."""
    return _floats("nextafter(a, b)", a, b, out)


@repeated
def logaddexp(a: Operand, b: Operand, *, out: Optional[Array] = None) -> Array:
    """log(exp(a) + exp(b)), without overflow in between."""
    _checked(a, b)
    if type_of(a, b) == np.float64:
        return _floats("a == b ? a + 0.6931471805599453 : max(a, b) + log1p(exp(-abs(a - b)))", a, b, out)
    return _floats("logaddexp(a, b)", a, b, out)


# Selection.


@repeated
def where(condition: Operand, a: Operand, b: Operand, *, out: Optional[Array] = None) -> Array:
    """a where the condition is not zero, elsewhere b."""
    _checked(condition, a, b)
    values = [value for value in (a, b) if isinstance(value, (Storage, np.generic))]
    if values:
        kind = type_of(a, b) if any(isinstance(value, Storage) for value in values) else values[0].dtype
    elif complex in (type(a), type(b)):
        kind = np.dtype(np.complex64)
    else:
        kind = np.dtype(np.float32 if float in (type(a), type(b)) else BOOL if type(a) is type(b) is bool else np.int32)
    result = kind if out is None else None
    return expr("c ? a : b", dtype=result, out=out, c=condition, a=adopted(a, kind), b=adopted(b, kind))


def clip(x: Array, min: Optional[Operand] = None, max: Optional[Operand] = None, *, out: Optional[Array] = None) -> Array:
    """x, but at least min and at most max; None is no bound."""
    require_array(x, "x")
    bounds = {name: value for name, value in (("low", min), ("high", max)) if value is not None}
    _checked(*bounds.values())
    kind = type_of(x, *bounds.values())
    formula = "x" if min is None else "max(x, low)"
    formula = formula if max is None else f"min({formula}, high)"
    limits = {name: adopted(value, kind) for name, value in bounds.items()}
    return expr(formula, dtype=kind if out is None else None, out=out, x=x, **limits)


# What NumPy makes of those above.


@repeated
def fmax(a: Operand, b: Operand, *, out: Optional[Array] = None) -> Array:
    """The larger of each pair of elements, or the one that is not NaN."""
    return arithmetic("isnan(a) ? b : isnan(b) ? a : max(a, b)", a, b, out)


@repeated
def fmin(a: Operand, b: Operand, *, out: Optional[Array] = None) -> Array:
    """The smaller of each pair of elements, or the one that is not NaN."""
    return arithmetic("isnan(a) ? b : isnan(b) ? a : min(a, b)", a, b, out)


@repeated
def float_power(a: Operand, b: Operand, *, out: Optional[Array] = None) -> Array:
    """a to the power of b, in float32 for integers, in float64 for float64."""
    _checked(a, b)
    kind = "f64" if type_of(a, b) == np.float64 else "f32"
    return _floats(f"{kind}(a) ** {kind}(b)", a, b, out)


@repeated
def heaviside(a: Operand, b: Operand, *, out: Optional[Array] = None) -> Array:
    """0 where a < 0, 1 where a > 0, b where a is 0."""
    return _floats("isnan(a) ? a : a < 0 ? 0 : a > 0 ? 1 : b", a, b, out)


@repeated
def logaddexp2(a: Operand, b: Operand, *, out: Optional[Array] = None) -> Array:
    """log2(2**a + 2**b), without overflow in between."""
    return _floats("a == b ? a + 1 : max(a, b) + 1.4426950408889634 * log1p(exp2(-abs(a - b)))", a, b, out)


def _float_of(formula: str, x: Array, out: Optional[Array]) -> Array:
    require_array(x, "x")
    require_real(x)
    return expr(formula, dtype=(x.dtype if is_float(x.dtype) else np.float32) if out is None else None, out=out, x=x)


@repeated
def deg2rad(x: Array, *, out: Optional[Array] = None) -> Array:
    """Degrees as radians: x * pi / 180."""
    return _float_of("x * (pi / 180)", x, out)


@repeated
def rad2deg(x: Array, *, out: Optional[Array] = None) -> Array:
    """Radians as degrees: x * 180 / pi."""
    return _float_of("x * (180 / pi)", x, out)


radians, degrees = deg2rad, rad2deg


@repeated
def sinc(x: Array, *, out: Optional[Array] = None) -> Array:
    """sin(pi * x) / (pi * x); 1 at 0."""
    return _float_of("x == 0 ? 1 : sin(pi * x) / (pi * x)", x, out)


@repeated
def positive(x: Array, *, out: Optional[Array] = None) -> Array:
    """A copy of x."""
    return expr("x", out=out, x=x)


@repeated
def isposinf(x: Array, *, out: Optional[Array] = None) -> Array:
    """Whether an element is +inf."""
    return _truth("isinf(x) && x > 0", out, x=x)


@repeated
def isneginf(x: Array, *, out: Optional[Array] = None) -> Array:
    """Whether an element is -inf."""
    return _truth("isinf(x) && x < 0", out, x=x)


def divmod(a: Operand, b: Operand) -> Tuple[Array, Array]:
    """floor_divide(a, b) and remainder(a, b)."""
    return floor_divide(a, b), remainder(a, b)


def modf(x: Array) -> Tuple[Array, Array]:
    """The fractions and the whole parts of x, both with its sign."""
    return _float_of("copysign(isinf(x) ? 0 : x - trunc(x), x)", x, None), _float_of("trunc(x)", x, None)


def nan_to_num(x: Array, nan: float = 0.0, posinf: Optional[float] = None, neginf: Optional[float] = None) -> Array:
    """x with other numbers in place of NaN and the infinities; by default 0 and the type's largest magnitudes."""
    require_array(x, "x")
    require_real(x)
    if not is_float(x.dtype):
        return positive(x)
    if posinf is None or neginf is None:
        info = np.finfo(x.dtype)
        posinf, neginf = info.max if posinf is None else posinf, info.min if neginf is None else neginf
    numbers = {name: real(value, name) for name, value in (("nan", nan), ("posinf", posinf), ("neginf", neginf))}
    wide = {name: adopted(value, x.dtype) for name, value in numbers.items()}
    return expr("isnan(x) ? c : isinf(x) ? (x > 0 ? p : n) : x", x=x, c=wide["nan"], p=wide["posinf"], n=wide["neginf"])


# Complex numbers.


def angle(z: Array, deg: bool = False) -> Array:
    """The angles of complex numbers, from -pi to pi, or in degrees; of negative real ones pi, of others 0."""
    require_array(z, "z")
    kind = part_of(z.dtype) if is_complex(z.dtype) else z.dtype if is_float(z.dtype) else np.dtype(np.float32)
    formula = "atan2(imag(z), real(z))" if is_complex(z.dtype) else "z != z ? z : atan2(0, z)"
    return expr(f"({formula}) * (180 / pi)" if deg else formula, dtype=kind, z=z)


def iscomplex(x: Array) -> Array:
    """Whether the imaginary part of an element is not 0, as bools."""
    require_array(x, "x")
    return _truth("imag(x) != 0", None, x=x) if is_complex(x.dtype) else x.context.zeros(x.shape, BOOL)


def isreal(x: Array) -> Array:
    """Whether the imaginary part of an element is 0, as bools."""
    require_array(x, "x")
    return _truth("imag(x) == 0", None, x=x) if is_complex(x.dtype) else x.context.full(x.shape, True, BOOL)


def real_if_close(a: Array, tol: float = 100) -> Array:
    """The real parts of an array whose imaginary parts are all closer to 0 than tol, or tol times the type's epsilon if tol
    is above 1, for which it waits; otherwise the array itself."""
    require_array(a, "a")
    limit = real(tol, "tol")
    if not is_complex(a.dtype):
        return a
    limit = limit * float(np.finfo(part_of(a.dtype)).eps) if limit > 1 else limit
    close = expr("all(abs(imag(z)) < t)", dtype=BOOL, z=a, t=adopted(limit, a.dtype))
    return a.real.copy() if bool(close) else a
