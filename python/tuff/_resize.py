"""Images at another size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional, Sequence, Union

import numpy as np

from . import _operations as operations
from . import _pool as pools
from . import raw
from ._error import check

if TYPE_CHECKING:
    from ._array import Array

MODES = {
    "nearest": raw.RESIZE_NEAREST,
    "nearest_exact": raw.RESIZE_NEAREST_EXACT,
    "linear": raw.RESIZE_LINEAR,
}
LAYOUTS = {"NCHW": raw.LAYOUT_NCHW, "NHWC": raw.LAYOUT_NHWC}


def resize(
    x: Array,
    shape: Union[int, Sequence[int]],
    mode: str = "linear",
    *,
    align_corners: bool = False,
    scale: Union[None, float, Sequence[float]] = None,
    layout: str = "NCHW",
    out: Optional[Array] = None,
) -> Array:
    """x (N, C, …), or (N, …, C) with layout "NHWC", with one to three spatial axes of the sizes that shape names.

    mode: "nearest", "nearest_exact", or "linear", which is bilinear in two axes; positions as PyTorch's interpolate has
    them. scale: what positions are divided by, where it is not the ratio of the sizes.
    """
    operations._require_array(x, "x")
    if mode not in MODES:
        raise ValueError(f"mode is {mode!r}, needs one of {', '.join(MODES)}")
    if layout not in LAYOUTS:
        raise ValueError(f"layout is {layout!r}, needs NCHW or NHWC")
    if not 3 <= x.ndim <= 5:
        raise ValueError(f"resize needs (N, C, …) with one to three axes behind, not {x.shape}")
    axes, last = x.ndim - 2, layout == "NHWC"
    spatial, channels = (x.shape[1:-1], x.shape[-1]) if last else (x.shape[2:], x.shape[1])
    sizes = pools._each(shape, axes, "shape")
    full = (x.shape[0], *sizes, channels) if last else (x.shape[0], channels, *sizes)
    result = operations._result(out, x, full)
    desc = raw.ResizeDesc(dtype=operations._dtype(x), batch=x.shape[0], channels=channels, spatial=axes)
    desc.input, desc.output = x.buffer.handle, result.buffer.handle
    desc.in_shape[:axes], desc.out_shape[:axes] = spatial, sizes
    if scale is not None:
        scales = (scale,) * axes if isinstance(scale, (int, float, np.floating)) else tuple(scale)
        if len(scales) != axes or min(scales) <= 0:
            raise ValueError(f"scale is {scale!r}, needs one positive number or {axes}")
        desc.scale[:axes] = [float(number) for number in scales]
    desc.mode, desc.layout, desc.align_corners = MODES[mode], LAYOUTS[layout], int(align_corners)
    check(raw.tuff_resize(x.context.handle, desc))
    return result
