"""Common parts of the operations on images: per-axis numbers and memory layouts."""

from __future__ import annotations

from typing import Sequence, Tuple, Union

from . import raw
from ._checked import I64, choice, is_whole, wholes

# One number, or one for each spatial axis.
Numbers = Union[int, Sequence[int]]

LAYOUTS = {"nchw": raw.LAYOUT_NCHW, "nhwc": raw.LAYOUT_NHWC}


def numbers(value: Numbers, axes: int, name: str, least: int = 0) -> Tuple[int, ...]:
    """Returns one number for each spatial axis."""
    each = wholes(value, name, least, I64)
    if is_whole(value):
        return each * axes
    if len(each) != axes:
        raise ValueError(f"{name} is one number or {axes}, not {value!r}")
    return each


def require_layout(layout: str) -> None:
    choice(layout, "layout", LAYOUTS)


def channels_second(shape: Sequence[int], layout: str) -> Tuple[int, ...]:
    """Converts a shape as stored to the library's order N, C, …"""
    return tuple(shape) if layout == "nchw" else (shape[0], shape[-1], *shape[1:-1])


def as_stored(shape: Sequence[int], layout: str) -> Tuple[int, ...]:
    """Converts a shape in the library's order to the shape as stored."""
    return tuple(shape) if layout == "nchw" else (shape[0], *shape[2:], shape[1])
