"""Kinds of types, and the type that two have in common."""

from __future__ import annotations

import numpy as np

from . import raw
from ._storage import DTYPES

BOOL = np.dtype(np.bool_)
_FLOATS = (raw.F16, raw.BF16, raw.F32, raw.F64)
_SIGNED = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}

#: The types of the parts of complex types.
_PARTS = {np.dtype(np.complex64): np.dtype(np.float32), np.dtype(np.complex128): np.dtype(np.float64)}
_WHOLES = {part: whole for whole, part in _PARTS.items()}


def is_complex(dtype: np.dtype) -> bool:
    return dtype in _PARTS


def part_of(dtype: np.dtype) -> np.dtype:
    """The type of the parts of a complex type; the type itself of a real one."""
    return _PARTS.get(dtype, dtype)


def complex_of(dtype: np.dtype) -> np.dtype:
    """The complex type of parts of a type: complex64 but for float64."""
    return _WHOLES.get(part_of(dtype), np.dtype(np.complex64))


def has_complex(dtype: np.dtype) -> bool:
    """Whether there is a complex type with parts of exactly this type."""
    return dtype in _WHOLES


def require_real(x: object, name: str = "x") -> None:
    """Raises for an array of complex numbers, of which a function would only see the real parts."""
    if is_complex(x.dtype):
        raise TypeError(f"{name} is an array of {x.dtype}: needs real numbers")


def is_float(dtype: np.dtype) -> bool:
    return DTYPES[dtype] in _FLOATS


def common_type(first: np.dtype, second: np.dtype) -> np.dtype:
    """The type of an operation on two: the larger of one kind; the float of an integer and a float; the smallest signed
    type that holds both of a signed and an unsigned one; bool gives way. With a complex type a complex one, complex128 if
    float64 or complex128 is among them."""
    if first == second:
        return first
    if first == BOOL or second == BOOL:
        return second if first == BOOL else first
    if is_complex(first) or is_complex(second):
        return np.dtype(np.complex128 if np.float64 in (part_of(first), part_of(second)) else np.complex64)
    if is_float(first) or is_float(second):
        if not (is_float(first) and is_float(second)):
            return first if is_float(first) else second
        if first.itemsize == second.itemsize:  # float16 and bfloat16
            return np.dtype(np.float32)
        return first if first.itemsize > second.itemsize else second
    if not {first.kind, second.kind} <= {"i", "u"}:  # 8-bit floats
        raise TypeError(f"operands of {first} and {second}: convert one of them by astype")
    if first.kind == second.kind:
        return first if first.itemsize > second.itemsize else second
    signed, unsigned = (first, second) if first.kind == "i" else (second, first)
    size = max(signed.itemsize, 2 * unsigned.itemsize)
    if size > 8:
        raise TypeError(f"operands of {first} and {second}: no integer type holds both; convert one of them by astype")
    return np.dtype(_SIGNED[size])
