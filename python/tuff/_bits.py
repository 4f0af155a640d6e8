"""What is in the bits of numbers: exponents and fractions of floats, and the bits of bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from . import _indexing as indexing
from . import _namespace as namespace
from . import _protocol as protocol
from ._array import Array
from ._checked import choice, is_whole, real, whole
from ._expression import expr
from ._layout import dense
from ._operands import require_array, whole_axis
from ._types import is_float, require_real

if TYPE_CHECKING:
    from ._operands import Operand

__all__ = ["frexp", "ldexp", "packbits", "spacing", "unpackbits"]


class _Format(NamedTuple):
    """A binary format of IEEE 754."""

    bits: np.dtype  #: integers of its size
    fraction: int  #: bits of the fraction
    special: int  #: the exponent field of infinities and NaN

    @property
    def bias(self) -> int:
        return self.special // 2


_FORMATS = {
    np.dtype(np.float16): _Format(np.dtype(np.int16), 10, 31),
    np.dtype(np.float32): _Format(np.dtype(np.int32), 23, 255),
    np.dtype(np.float64): _Format(np.dtype(np.int64), 52, 2047),
}


def _real_floats(x: Array) -> Array:
    """An array of floats; of integers and bools as float32."""
    require_array(x, "x")
    require_real(x)
    return x if is_float(x.dtype) else x.astype(np.float32)


def _format_of(x: Array) -> _Format:
    found = _FORMATS.get(x.dtype)
    if found is None:
        raise TypeError(f"x is an array of {x.dtype}: needs float16, float32 or float64")
    return found


def _bits_of(x: Array, form: _Format) -> Array:
    """The same memory as integers."""
    whole_memory = dense(x)
    return Array(whole_memory.buffer, whole_memory.shape, form.bits)


def frexp(x: Array) -> Tuple[Array, Array]:
    """Fractions from 0.5 to 1, with the sign of x, and int32 exponents: x = fraction * 2**exponent. Zeros, infinities and NaN
    are fractions of their own with exponent 0. Denormal numbers are not flushed."""
    x = _real_floats(x)
    given = x.dtype
    if given == np.float16 or given not in _FORMATS:
        x = x.astype(np.float32)  # in which it has no denormal numbers
    form = _format_of(x)
    bits, kind, shift = _bits_of(x, form), form.bits.type, form.fraction
    numbers = {"mask": kind(2**shift - 1), "special": kind(form.special)}
    # The length of a denormal number's fraction: the number of bits below its highest one, and that one.
    spread = "m = b & mask; e = (b >> k) & special; "
    spread += "s1 = m | m >> 1; s2 = s1 | s1 >> 2; s4 = s2 | s2 >> 4; s8 = s4 | s4 >> 8; s16 = s8 | s8 >> 16; "
    spread += "s = s16 | s16 >> 32" if form.bits.itemsize == 8 else "s = s16"
    spread += "; n = popcount(s); alone = e == special || (e == 0 && m == 0)"
    exponents = expr(
        f"{spread}; alone ? 0 : e == 0 ? n - least : e - bias", dtype=np.int32, b=bits, k=kind(shift), **numbers,
        least=kind(form.bias + shift - 1), bias=kind(form.bias - 1),
    )  # fmt: skip
    fractions = expr(
        f"{spread}; f = e == 0 ? (m << (k + 1 - n)) & mask : m; alone ? b : b - (e << k) - m + f + half",
        dtype=form.bits, b=bits, k=kind(shift), **numbers, half=kind((form.bias - 1) << shift),
    )  # fmt: skip
    found = Array(fractions.buffer, x.shape, x.dtype)
    return (found if given == x.dtype else found.astype(given)), exponents


def ldexp(a: Operand, b: Union[Array, int], *, out: Optional[Array] = None) -> Array:
    """a * 2**b for integers b, without overflow in between. Integers a give float32."""
    a = a if isinstance(a, (float, int, np.generic)) else _real_floats(a)
    if is_whole(b):
        require_array(a, "a")
        exponent = min(max(int(b), -(2**31)), 2**31 - 1)
    else:
        require_array(b, "b")
        if b.dtype.kind not in "iub":
            raise TypeError(f"b is an array of {b.dtype}: needs integers")
        exponent = b if b.dtype == np.int32 else b.astype(np.int32)
    if not isinstance(a, Array):
        a = real(a, "a")
    kind = a.dtype if isinstance(a, Array) else np.dtype(np.float32)
    wide = kind == np.float64
    # Each step is by a power of two that is a normal number; the result is between a and what a larger exponent gives.
    top, largest = (11, 512) if wide else (8, 64)
    steps = [f"e = clamp(n, {1 - 2 ** (top + 1)}, {2 ** (top + 1) - 1}); m = abs(e); y{top + 1} = a * 1.0"]
    for bit in range(top, -1, -1):
        power = 2**bit
        each, times = min(power, largest), max(power // largest, 1)
        up, down = (f"y{bit + 1}" + f" * {2.0 ** (sign * each)!r}" * times for sign in (1, -1))
        steps.append(f"y{bit} = (m & {power}) == 0 ? y{bit + 1} : e < 0 ? {down} : {up}")
    return expr("; ".join([*steps, "y0"]), dtype=kind if out is None else None, out=out, a=a, n=exponent)


def spacing(x: Array, *, out: Optional[Array] = None) -> Array:
    """The distance from x to the next number of its type away from 0, with the sign of x; NaN for infinities. Denormal
    distances are not flushed."""
    x = _real_floats(x)
    form = _format_of(x)
    kind = form.bits.type
    formula = (
        "e = (b >> k) & special; "
        "r = e > k ? (e - k) << k : e > 0 ? one << (e - one) : one; "
        "e == special ? nan_bits : b < 0 && b + b != 0 ? r | sign : r"
    )
    found = expr(
        formula, dtype=form.bits, b=_bits_of(x, form), k=kind(form.fraction), special=kind(form.special), one=kind(1),
        nan_bits=kind((2 * form.special + 1) << (form.fraction - 1)), sign=kind(np.iinfo(form.bits).min),
    )  # fmt: skip
    result = Array(found.buffer, x.shape, x.dtype)
    return result if out is None else out.assign(result)


# The bits of bytes.


def _bit_places(bitorder: str) -> Sequence[int]:
    """How far the bits of a byte, in order, are from its lowest one."""
    return choice(bitorder, "bitorder", {"big": range(7, -1, -1), "little": range(8)})


def _last(x: Array, axis: Optional[int]) -> Tuple[Array, int]:
    """x, flattened if axis is None, with the axis as the last one; and the axis."""
    if axis is None:
        return x.ravel(), 0
    along = whole_axis(axis, x.ndim)
    return (x if along == x.ndim - 1 else namespace.moveaxis(x, along, -1)), along


def packbits(a: Array, axis: Optional[int] = None, bitorder: str = "big") -> Array:
    """Whether elements are not zero, eight of an axis, or of the flattened array, in each uint8; zeros fill up the last.
    bitorder: the first of eight is the highest bit ("big") or the lowest one."""
    require_array(a, "a")
    if a.dtype.kind not in "iub":
        raise TypeError(f"a is an array of {a.dtype}: needs integers or bools")
    places = _bit_places(bitorder)
    x, along = _last(a, axis)
    truths = expr("x != 0", dtype=np.bool_, x=x)
    if x.shape[-1] % 8:
        truths = indexing.pad(truths, [(0, 0)] * (x.ndim - 1) + [(0, -x.shape[-1] % 8)])
    # Eight bytes of memory as one integer, of which the first byte is the lowest one.
    eights = Array(truths.buffer, (*truths.shape[:-1], truths.shape[-1] // 8), np.uint64)
    packed = expr(" | ".join(f"u32((w >> {8 * at} & 1) << {place})" for at, place in enumerate(places)), dtype=np.uint8, w=eights)
    return packed if along == packed.ndim - 1 else namespace.moveaxis(packed, -1, along)


def unpackbits(a: Array, axis: Optional[int] = None, count: Optional[int] = None, bitorder: str = "big") -> Array:
    """The bits of uint8 elements along an axis, or of the flattened array, as uint8; the inverse of packbits(). count: how
    many bits, where zeros follow if there are fewer; a negative one leaves out so many at the end."""
    require_array(a, "a")
    if a.dtype != np.uint8:
        raise TypeError(f"a is an array of {a.dtype}: needs uint8")
    places = _bit_places(bitorder)
    x, along = _last(a, axis)
    spread = " | ".join(f"(w >> {place} & 1) << {8 * at}" for at, place in enumerate(places))
    eights = expr(f"w = u64(x); {spread}", dtype=np.uint64, x=x)
    bits = Array(eights.buffer, (*x.shape[:-1], 8 * x.shape[-1]), np.uint8)
    if count is not None:
        have = bits.shape[-1]
        wanted = whole(count, "count", -(2**63), 2**63 - 1)
        if wanted < -have:
            raise ValueError(f"count is {count}, and there are {have} bits to leave out")
        added = wanted - have if wanted >= 0 else wanted
        bits = indexing.pad(bits, [(0, 0)] * (bits.ndim - 1) + [(0, added)])
    return bits if along == bits.ndim - 1 else namespace.moveaxis(bits, -1, along)


protocol.UFUNCS.update(frexp=frexp, ldexp=ldexp, spacing=spacing)
protocol.FUNCTIONS.update(packbits=packbits, unpackbits=unpackbits)
