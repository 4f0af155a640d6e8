"""Roots of polynomials, all at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from . import _elementwise as elementwise
from . import _functions as functions
from . import _operations as operations
from . import _protocol as protocol
from . import _reductions as reductions
from . import _shape as shapes
from ._expression import expr
from ._matrices import LinAlgError
from ._operands import require_array
from ._types import complex_of, is_complex, is_float, part_of

if TYPE_CHECKING:
    from ._array import Array

__all__ = ["roots"]

#: Steps, before it is an error, and how many are made before it is asked whether all roots have been found.
_MOST_STEPS = 400
_STEPS = 8


def roots(p: Array) -> Array:
    """The complex roots of the polynomial with these coefficients, that of the highest power first, in no order: by Aberth's
    and Ehrlich's method, each until the polynomial is as small as its rounding errors. It waits: for the number of
    coefficients without zeros at both ends, and for the roots."""
    require_array(p, "p")
    if p.ndim > 1:
        raise ValueError("Input must be a rank-1 array.")
    p = p.reshape(p.size)
    kind = complex_of(p.dtype if is_float(p.dtype) or is_complex(p.dtype) else np.dtype(np.float32))
    if p.size == 0:
        return p.context.zeros((0,), kind)
    mask = expr("p != 0", dtype=np.bool_, p=p)
    known = expr("all(isfinite(p))", dtype=np.bool_, p=p)
    ends = [known.astype(np.int64), reductions.any(mask).astype(np.int64), mask.argmax(), mask[::-1].argmax()]
    finite, there, first, zeros = protocol.stack(ends).numpy().tolist()
    if not finite:
        raise LinAlgError("Array must not contain infs or NaNs")
    if not there:
        return p.context.zeros((0,), kind)
    coefficients = p[first : p.size - zeros].astype(kind)
    found = _found(coefficients) if coefficients.size > 1 else p.context.zeros((0,), kind)
    return shapes.concat([found, p.context.zeros((zeros,), kind)], 0) if zeros else found


class _Values(NamedTuple):
    """A polynomial p, with coefficients from the highest power down, as columns of products with the powers w**0 ... w**n: of p
    and its derivative at w = z, for |z| up to 1, and of the reversed polynomial at w = 1 / z, where powers of z would overflow."""

    columns: Array
    sizes: Array  #: the magnitudes of the first and the third column


def _values(p: Array) -> _Values:
    n = p.size - 1
    powers = p.context.array(np.arange(n, 0, -1), part_of(p.dtype))
    none = p.context.zeros((1,), p.dtype)
    inside = [p[::-1].copy(), shapes.concat([expr("p * n", dtype=p.dtype, p=p[:-1], n=powers)[::-1], none], 0)]
    outside = [p.copy(), shapes.concat([expr("p * n", dtype=p.dtype, p=p[1:][::-1], n=powers)[::-1], none], 0)]
    columns = protocol.stack([*inside, *outside], 1)
    return _Values(columns, functions.abs(protocol.stack([inside[0], outside[0]], 1)))


def _powers(w: Array, count: int) -> Array:
    """The powers from 0 to count - 1 of each element, as columns."""
    result, top = w.context.ones((w.size, 1), w.dtype), w.reshape((w.size, 1))
    while result.shape[1] < count:
        result = shapes.concat([result, result * top], 1)
        top = top * top
    return result[:, :count].copy()


def _start(p: Array) -> Array:
    """Points on a circle whose radius is the geometric mean of the roots' magnitudes, at no symmetric angles."""
    n = p.size - 1
    turns = np.exp(1j * (2 * np.pi * np.arange(n) / n + 0.4))
    circle, share = p.context.array(turns, p.dtype), elementwise.adopted(1 / n, p.dtype)
    return expr("r = exp((log(abs(c)) - log(abs(a))) * s); z * r", dtype=p.dtype, z=circle, c=p[-1], a=p[0], s=share)


def _found(p: Array) -> Array:
    n, values, z = p.size - 1, _values(p), _start(p)
    # Rounding errors of a sum of n + 1 products of powers, each of up to 2 log2(n) + 2 complex products (Higham, chapter 3).
    unit = float(np.finfo(part_of(p.dtype)).eps) / 2
    noise, degree = (elementwise.adopted(one, p.dtype) for one in (4 * unit * (n + 1), float(n)))
    for step in range(_MOST_STEPS):
        w = expr("abs(z) <= 1 ? z : 1 / z", dtype=p.dtype, z=z)
        powers = _powers(w, n + 1)
        of_all, of_sizes = operations.matmul(powers, values.columns), operations.matmul(functions.abs(powers), values.sizes)
        named = {name: of_all[:, place] for place, name in enumerate("abcd")}
        named.update({name: of_sizes[:, place] for place, name in enumerate("uv")})
        large = {key: named[key] for key in "acuv"}
        left = expr("abs(z) <= 1 ? !(abs(a) <= e * u) : !(abs(c) <= e * v)", dtype=np.bool_, z=z, **large, e=noise)
        if step % _STEPS == 0 and not bool(reductions.any(left)):
            return z
        # The logarithmic derivative p' / p, less that of the product of z less the other roots.
        parts = {key: named[key] for key in "abcd"}
        slope = expr("abs(z) <= 1 ? b / a : w * (n - w * d / c)", dtype=p.dtype, z=z, w=w, **parts, n=degree)
        others = _others(z)
        z = expr("t = z - 1 / (s - o); m && !isnan(t) && !isinf(t) ? t : z", dtype=p.dtype, z=z, s=slope, o=others, m=left)
    raise LinAlgError(f"{_MOST_STEPS} steps did not find all roots")


def _others(z: Array) -> Array:
    """The sums of 1 / (z - each other root)."""
    column = z.reshape((z.size, 1))
    parts = [
        expr(f"d = z - y; q = d == 0 ? 0 : {part}(1 / d); sum(q, axis=1)", dtype=part_of(z.dtype), z=column, y=z)
        for part in ("real", "imag")
    ]
    return expr("complex(a, b)", dtype=z.dtype, a=parts[0], b=parts[1])


protocol.FUNCTIONS["roots"] = roots
