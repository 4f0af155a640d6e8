"""Validation of arguments before they reach ctypes, which silently reduces numbers modulo 2**64 (or 2**32), truncates
text at a NUL, and has unhelpful messages."""

from __future__ import annotations

import ctypes
import math
import numbers
from typing import TYPE_CHECKING, NoReturn, Tuple, TypeVar

import numpy as np

if TYPE_CHECKING:
    from typing import Iterable, Mapping

T = TypeVar("T")

#: The largest numbers of C's types.
U64, I64, U32, I32 = 2**64 - 1, 2**63 - 1, 2**32 - 1, 2**31 - 1


def is_whole(value: object) -> bool:
    """Whether the value is a Python or NumPy integer, not a bool."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def whole(value: object, name: str, least: int = 0, most: int = U64) -> int:
    """Returns an integer from least to most as an int, or raises."""
    if type(value) is int and least <= value <= most:  # the common case
        return value
    if not is_whole(value):
        raise TypeError(f"{name} is {value!r}, not an integer")
    if value < least:
        raise ValueError(f"{name} is {value}, needs at least {least}")
    if value > most:
        raise ValueError(f"{name} is {value}, needs at most {most}")
    return int(value)


def wholes(value: object, name: str, least: int = 0, most: int = U64) -> Tuple[int, ...]:
    """Returns one integer or several, each from least to most, as a tuple."""
    each = (value,) if is_whole(value) else sequence(value, name, "integers")
    return tuple(whole(one, name, least, most) for one in each)


def sequence(value: Iterable[T], name: str, of: str) -> Tuple[T, ...]:
    """Returns an iterable as a tuple."""
    try:
        return tuple(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}, needs {of}") from None


def checked_integer(kind: type) -> type:
    """Returns an entry of ctypes' argtypes that accepts what an integer type of ctypes accepts, within its range."""
    bits, signed = 8 * ctypes.sizeof(kind), kind(-1).value < 0
    least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    convert = kind.from_param

    class Checked:
        @staticmethod
        def from_param(value: object) -> object:
            if isinstance(value, int) and not least <= value <= most:
                raise ValueError(f"{value} is not from {least} to {most}")
            return convert(value)

    return Checked


def is_number(value: object) -> bool:
    """Whether the value is a real number or a bool of Python or NumPy."""
    return isinstance(value, (float, int, np.floating, np.integer, np.bool_, numbers.Real))


def is_complex_number(value: object) -> bool:
    """Whether the value is a number of Python or NumPy of a complex type."""
    return isinstance(value, (complex, np.complexfloating))


def is_scalar(value: object) -> bool:
    """Whether the value is a number of Python or NumPy, real or complex."""
    return is_number(value) or is_complex_number(value)


def real(value: object, name: str) -> float:
    """Returns a number as a float."""
    if type(value) is float:
        return value
    if not is_number(value):
        raise TypeError(f"{name} is {value!r}, not a number")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{name} is beyond float64") from None


def element(value: object, dtype: np.dtype) -> bytes:
    """Returns the bytes of a number as an element of a dtype. A number beyond an integer dtype's range is an error; it
    is not wrapped."""
    if dtype.kind == "c" and is_complex_number(value):
        return np.asarray(value, dtype).tobytes()
    number = real(value, "the value")
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        if not math.isfinite(number) or not info.min <= int(value) <= info.max:
            raise ValueError(f"{value} is beyond {dtype}, which has {info.min} to {info.max}")
        value = int(value)
    return np.asarray(value, dtype).tobytes()


def text(value: object, name: str) -> bytes:
    """Returns text encoded for C; a NUL in it is an error."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is {value!r}, not a str")
    if "\0" in value:
        raise ValueError(f"{name} is {value!r}, which has a NUL in it")
    return value.encode()


def choice(value: object, name: str, choices: Mapping[object, T]) -> T:
    """Returns the value that a name stands for."""
    try:
        return choices[value]
    except (KeyError, TypeError):  # TypeError: the value is not hashable
        raise ValueError(f"{name} is {value!r}, not one of {list(choices)}") from None


def host_array(value: object, name: str) -> np.ndarray:
    """Requires a NumPy array of numbers; the bytes of an object array would be pointers."""
    if not isinstance(value, np.ndarray):
        raise TypeError(f"{name} is {type(value).__name__}, not a NumPy array")
    if value.dtype.hasobject:
        raise TypeError(f"{name} is an array of {value.dtype}, not of numbers")
    return value


class OnDevice:
    """Base of objects on a device. Only arrays can be pickled and copied by the copy module."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(f"a tuff.{type(self).__name__} lives on a device and cannot be pickled or copied")
