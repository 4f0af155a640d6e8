"""Resizing of images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional, Sequence, Union

from . import raw
from ._checked import choice, is_number, real, sequence
from ._error import check
from ._images import LAYOUTS, Numbers, as_stored, channels_second, numbers, require_layout
from ._operands import dtype_of, require_array, result_of
from ._tracing import differentiable

if TYPE_CHECKING:
    from ._array import Array

__all__ = ["resize"]

MODES = {
    "nearest": raw.RESIZE_NEAREST,
    "nearest_exact": raw.RESIZE_NEAREST_EXACT,
    "linear": raw.RESIZE_LINEAR,
}


@differentiable
def resize(
    x: Array,
    shape: Numbers,
    mode: str = "linear",
    *,
    align_corners: bool = False,
    scale: Union[None, float, Sequence[float]] = None,
    layout: str = "nchw",
    out: Optional[Array] = None,
) -> Array:
    """Resizes the one to three spatial axes of x (N, C, …), or (N, …, C) with layout "nhwc", to the sizes in shape.

    mode is "nearest", "nearest_exact" or "linear" (bilinear for two axes), with the coordinates of PyTorch's
    interpolate. scale replaces the ratio of the sizes in the computation of positions.
    """
    require_array(x, "x")
    which = choice(mode, "mode", MODES)
    require_layout(layout)
    if not 3 <= x.ndim <= 5:
        raise ValueError(f"resize needs (N, C, …) with one to three spatial axes, not {x.shape}")
    axes, (batch, channels, *spatial) = x.ndim - 2, channels_second(x.shape, layout)
    sizes = numbers(shape, axes, "shape")
    result = result_of(out, x, as_stored((batch, channels, *sizes), layout))
    desc = raw.ResizeDesc(dtype=dtype_of(x), batch=batch, channels=channels, spatial=axes)
    desc.input, desc.output = x.buffer.handle, result.buffer.handle
    desc.in_shape[:axes], desc.out_shape[:axes] = spatial, sizes
    if scale is not None:
        each = (scale,) * axes if is_number(scale) else sequence(scale, "scale", "one number or several")
        scales = [real(number, "scale") for number in each]
        if len(scales) != axes or not min(scales) > 0:
            raise ValueError(f"scale is {scale!r}, needs one positive number or {axes}")
        desc.scale[:axes] = scales
    desc.mode, desc.layout, desc.align_corners = which, LAYOUTS[layout], int(bool(align_corners))
    check(raw.tuff_resize(x.context.stream_handle, desc))
    return result
