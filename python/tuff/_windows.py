"""Windows, which NumPy computes on the host, and the Bessel function that one of them is made of."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, List, Optional

import numpy as np

from . import _namespace as namespace
from . import _protocol as protocol
from ._checked import real, whole
from ._expression import expr
from ._operands import require_array
from ._types import is_float, require_real

if TYPE_CHECKING:
    from ._array import Array
    from ._context import Context

__all__ = ["bartlett", "blackman", "hamming", "hanning", "i0", "kaiser"]


def _window(values: np.ndarray, dtype: object, device: Optional[Context]) -> Array:
    return namespace.array(values, np.float32 if dtype is None else dtype, device=device)


def _points(count: int) -> int:
    return whole(count, "M", -(2**63), 2**63 - 1)


def bartlett(M: int, dtype: object = None, *, device: Optional[Context] = None) -> Array:  # noqa: N803 (NumPy's name)
    """The triangular window of M points, whose ends are 0, by default float32."""
    return _window(np.bartlett(_points(M)), dtype, device)


def blackman(M: int, dtype: object = None, *, device: Optional[Context] = None) -> Array:  # noqa: N803
    """The Blackman window of M points, by default float32."""
    return _window(np.blackman(_points(M)), dtype, device)


def hamming(M: int, dtype: object = None, *, device: Optional[Context] = None) -> Array:  # noqa: N803
    """The Hamming window of M points, by default float32."""
    return _window(np.hamming(_points(M)), dtype, device)


def hanning(M: int, dtype: object = None, *, device: Optional[Context] = None) -> Array:  # noqa: N803
    """The Hann window of M points, by default float32."""
    return _window(np.hanning(_points(M)), dtype, device)


def kaiser(M: int, beta: float, dtype: object = None, *, device: Optional[Context] = None) -> Array:  # noqa: N803
    """The Kaiser window of M points with a shape parameter, by default float32."""
    return _window(np.kaiser(_points(M), real(beta, "beta")), dtype, device)


def _horner(coefficients: List[float], name: str) -> str:
    """Statements that compute the polynomial with these coefficients, that of the highest power first, at `name`."""
    lines = [f"{name}1 = {coefficients[0]!r} * {name} + {coefficients[1]!r}"]
    for place, number in enumerate(coefficients[2:], 2):
        lines.append(f"{name}{place} = {name}{place - 1} * {name} + {number!r}")
    return "; ".join(lines)


def _bessel(limit: float, unit: float) -> str:
    """I0 up to a limit by its power series in (x / 2)**2, whose terms are all positive, and beyond by its asymptotic series
    in 1 / x (Abramowitz and Stegun, 9.6.12 and 9.7.1). Both end with a term of less than a quarter of the unit roundoff."""
    squared, near, far = (limit / 2) ** 2, [1.0], [1.0]
    total = term = 1.0
    while term > unit / 4 * total:
        k = len(near)
        near.append(near[-1] / k**2)
        term = near[-1] * squared**k
        total += term
    while far[-1] / limit ** (len(far) - 1) > unit / 4:
        k = len(far)
        far.append(far[-1] * (2 * k - 1) ** 2 / (8 * k))
    # e**x overflows before the result does: half of it is multiplied last.
    return (
        f"y = abs(x); t = y * y * 0.25; r = 1 / y; {_horner(near[::-1], 't')}; {_horner(far[::-1], 'r')}; h = exp(0.5 * y); "
        f"y <= {limit!r} ? t{len(near) - 1} : y == inf ? y : h * (r{len(far) - 1} * h / sqrt({2 * math.pi!r} * y))"
    )


#: The terms of the asymptotic series fall until there are 2 x of them, to e**(-2 x).
_BESSEL = {np.dtype(np.float32): _bessel(10.0, 2.0**-24), np.dtype(np.float64): _bessel(21.0, 2.0**-53)}


def i0(x: Array) -> Array:
    """The modified Bessel function of the first kind and order 0."""
    require_array(x, "x")
    require_real(x)
    kind = x.dtype if is_float(x.dtype) else np.dtype(np.float32)
    return expr(_BESSEL[np.dtype(np.float64 if kind == np.float64 else np.float32)], dtype=kind, x=x)


protocol.FUNCTIONS["i0"] = i0
