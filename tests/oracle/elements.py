"""Element types: how they are stored, how numbers are rounded to them, and when a result is right.

References are float64 (or wider). A result is right if it is between the rounded ends of the interval that the
promised bound allows: `round_to(value - bound) <= got <= round_to(value + bound)`. That allows one rounding to the
type of the result, whatever its width, and no further tolerance: with a bound of 0 the result must be correctly
rounded, bit for bit (except for the sign of a zero).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

U32 = 2.0**-24  # unit roundoff of f32
U64 = 2.0**-53
FLT_MIN = 2.0**-126


@dataclass(frozen=True)
class Type:
    name: str
    code: int  # tuff_dtype
    storage: np.dtype
    digits: int = 0  # of the significand; 0: an integer
    least: int = 0  # exponent of the smallest normal number
    most: float = 0.0  # the largest number of a float that NumPy does not have, and whose overflow...
    saturates: bool = False  # ... gives that number, not infinity

    @property
    def size(self) -> int:
        return self.storage.itemsize

    @property
    def float(self) -> bool:
        return self.digits != 0


TYPES = {
    t.name: t
    for t in (
        Type("f32", 1, np.dtype(np.float32), 24, -126),
        Type("f16", 2, np.dtype(np.float16), 11, -14),
        Type("bf16", 3, np.dtype(np.uint16), 8, -126, float.fromhex("0x1.fep127")),
        Type("f64", 4, np.dtype(np.float64), 53, -1022),
        Type("i32", 5, np.dtype(np.int32)),
        Type("u32", 6, np.dtype(np.uint32)),
        Type("i8", 7, np.dtype(np.int8)),
        Type("u8", 8, np.dtype(np.uint8)),
        Type("i64", 9, np.dtype(np.int64)),
        Type("u64", 10, np.dtype(np.uint64)),
        Type("i16", 11, np.dtype(np.int16)),
        Type("u16", 12, np.dtype(np.uint16)),
        Type("bool", 13, np.dtype(np.uint8)),
        Type("f8_e4m3", 14, np.dtype(np.uint8), 4, -6, 448.0, True),
        Type("f8_e5m2", 15, np.dtype(np.uint8), 3, -14, 57344.0, True),
    )
}

# The complex types, by that of their parts.
COMPLEX = {
    "f32": Type("c64", 16, np.dtype(np.complex64), 24, -126),
    "f64": Type("c128", 17, np.dtype(np.complex128), 53, -1022),
}


def _numbers(t: Type) -> np.ndarray:
    """The numbers of an 8-bit float by their bytes: sign, exponent and fraction as the OCP specification defines them."""
    byte = np.arange(256)
    fraction, field = byte & (2 ** (t.digits - 1) - 1), (byte & 127) >> (t.digits - 1)
    size = np.where(
        field == 0,
        np.ldexp(fraction, t.least - t.digits + 1),
        np.ldexp(1 + np.ldexp(fraction, 1 - t.digits), field - 1 + t.least),
    )
    beyond = np.where((t.name == "f8_e5m2") & (fraction == 0), np.inf, np.nan)
    return np.where(byte & 128, -1.0, 1.0) * np.where(size > t.most, beyond, size)


def decode(t: Type, raw: np.ndarray) -> np.ndarray:
    """The exact stored values, as float64 (int64 for integers, uint64 for u64, complex128 for complex types)."""
    if t.storage.kind == "c":
        return raw.astype(np.complex128)
    if t.name == "bool":
        return (raw != 0).astype(np.int64)
    if not t.float:
        return raw if t.name == "u64" else raw.astype(np.int64)
    if t.size == 1:
        return _numbers(t)[raw]
    if t.name == "bf16":
        raw = np.asarray(np.left_shift(raw.astype(np.uint32), np.uint32(16), dtype=np.uint32)).view(np.float32)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        x = raw.astype(np.float64)
        return np.where(np.isnan(x), np.nan, x)


def round_to(t: Type, x: np.ndarray) -> np.ndarray:
    """The nearest number of the type, ties to even, as float64; infinity above the largest number, or the largest one if
    the type saturates."""
    x = np.asarray(x)
    if not t.float:
        return x
    with np.errstate(all="ignore"):
        if not t.most:
            return x.astype(t.storage).astype(np.float64)
        x = x.astype(np.longdouble if x.dtype.kind in "iu" else np.float64)
        _, exponent = np.frexp(x)  # |x| in [2^(e-1), 2^e)
        step = np.ldexp(1.0, np.maximum(exponent - 1, t.least) - (t.digits - 1))
        y = np.where(np.isfinite(x), np.rint(x / step) * step, x)
        beyond = np.copysign(t.most if t.saturates else np.inf, y)
        return np.where(np.abs(y) > t.most, beyond, y).astype(np.float64)


def encode(t: Type, x: np.ndarray) -> np.ndarray:
    """The stored form, rounded once."""
    if t.name == "bool":
        return (np.asarray(x) != 0).astype(t.storage)
    if t.float and t.size == 1:
        y, most = round_to(t, x), int(np.flatnonzero(_numbers(t) == t.most)[0])
        byte = np.searchsorted(_numbers(t)[: most + 1], np.where(np.isnan(y), 0.0, np.abs(y)))
        nan = 0x7F if t.name == "f8_e4m3" else 0x7E
        return (np.where(np.isnan(y), nan, byte) | np.where(np.signbit(y), 0x80, 0)).astype(t.storage)
    if t.name != "bf16":
        with np.errstate(all="ignore"):
            return np.asarray(x).astype(t.storage)
    y = np.asarray(round_to(t, x), dtype=np.float32)
    return np.where(np.isnan(y), np.uint16(0x7FC0), (y.view(np.uint32) >> 16).astype(np.uint16)).astype(np.uint16)


def ulp(t: Type, x: np.ndarray) -> np.ndarray:
    """One unit in the last place at x."""
    with np.errstate(all="ignore"):
        _, exponent = np.frexp(np.where(np.isfinite(x), x, 0.0))
        return np.ldexp(1.0, np.maximum(exponent - 1, t.least) - (t.digits - 1))


def gamma(n, u: float = U32):
    """n successive roundings change a value by a factor within 1 +- gamma(n): Higham, Accuracy and Stability, chapter
    3."""
    return n * u / (1 - n * u)


def sum_depth(n: int) -> float:
    """Roundings on the longest path of a reduction's sum of n terms: a lane's serial additions, below 256 over all
    stages (docs/accuracy.md: the longest chain of additions), then a tree."""
    return float(min(n, (int(n - 1).bit_length() if n > 1 else 0) + 256))


@dataclass
class Near:
    """An output's values with bounds. others: results that are also right if a denormal operand was flushed to zero
    (tuff.h's promise: preserved, or flushed with the sign kept)."""

    value: np.ndarray
    bound: np.ndarray | float = 0.0
    others: list = field(default_factory=list)

    def wrong(self, t: Type, raw: np.ndarray) -> tuple[np.ndarray, float]:
        """The elements that are wrong, and the largest share of its interval that a right element used."""
        got = decode(t, raw)
        if not t.float:
            return got != np.asarray(self.value), 0.0
        right, used = _within(t, got, self.value, self.bound)
        for value, bound in self.others:
            right |= _within(t, got, value, bound)[0]
        return ~right, used


@dataclass
class Bits:
    """An output's exact bits, as stored; nan: any payload of a NaN is right."""

    raw: np.ndarray
    nan: bool = False

    def wrong(self, t: Type, raw: np.ndarray) -> tuple[np.ndarray, float]:
        unsigned = np.dtype(f"u{t.size}")
        different = np.ascontiguousarray(raw).view(unsigned) != np.ascontiguousarray(self.raw).view(unsigned)
        if self.nan and t.float:
            different &= ~(np.isnan(decode(t, raw)) & np.isnan(decode(t, self.raw)))
        return different, 0.0

    @property
    def value(self) -> np.ndarray:
        return self.raw


def _within(t: Type, got, value, bound) -> tuple[np.ndarray, float]:
    with np.errstate(all="ignore"):
        value = np.asarray(value)
        bound = np.where(np.isfinite(value), bound, 0.0)
        if not np.all(np.isfinite(bound)):
            raise AssertionError("the oracle has no finite bound for a finite result")
        right = (got >= round_to(t, value - bound)) & (got <= round_to(t, value + bound))
        right |= np.isnan(got) & np.isnan(value)
        # Denormals may be flushed to zero: those of f32, in which everything is computed, and those of the type.
        right |= (got == 0) & (np.abs(value) - bound < 2.0**t.least)
        finite = np.isfinite(got) & np.isfinite(value) & right & (bound > 0)
        room = bound + ulp(t, np.abs(value) + bound)
        used = np.max(np.abs(got - value)[finite] / room[finite], initial=0.0) if finite.any() else 0.0
    return right, float(used)
