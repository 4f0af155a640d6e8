"""What operations on images have in common: numbers for each axis, and how images lie in memory."""

from __future__ import annotations

from typing import Sequence, Tuple, Union

import numpy as np

from . import raw

# One number, or one for each spatial axis.
Numbers = Union[int, Sequence[int]]

LAYOUTS = {"nchw": raw.LAYOUT_NCHW, "nhwc": raw.LAYOUT_NHWC}


def numbers(value: Numbers, axes: int, name: str, least: int = 0) -> Tuple[int, ...]:
    """One number for each spatial axis."""
    each = (value,) * axes if isinstance(value, (int, np.integer)) else tuple(value)
    if len(each) != axes:
        raise ValueError(f"{name} is one number or {axes}, not {value!r}")
    if min(each) < least:
        raise ValueError(f"{name} is {value!r}, needs at least {least}")
    return tuple(int(number) for number in each)


def require_layout(layout: str) -> None:
    if layout not in LAYOUTS:
        raise ValueError(f"layout is {layout!r}, not one of {list(LAYOUTS)}")


def channels_second(shape: Sequence[int], layout: str) -> Tuple[int, ...]:
    """A shape as the library has it, whatever the layout."""
    return tuple(shape) if layout == "nchw" else (shape[0], shape[-1], *shape[1:-1])


def as_stored(shape: Sequence[int], layout: str) -> Tuple[int, ...]:
    """The opposite."""
    return tuple(shape) if layout == "nchw" else (shape[0], *shape[2:], shape[1])
