"""Pooling over one to three spatial axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional, Tuple, Union

import numpy as np

from . import raw
from ._error import check
from ._images import Numbers, as_stored, channels_second, numbers, require_layout
from ._operands import dtype_of, require_array
from ._tracing import differentiable

if TYPE_CHECKING:
    from ._array import Array

__all__ = ["adaptive_avg_pool", "adaptive_max_pool", "avg_pool", "max_pool"]


def _spatial(x: Array, layout: str, indices: bool = False) -> int:
    require_array(x, "x")
    require_layout(layout)
    if not 3 <= x.ndim <= 5:
        raise ValueError(f"pooling needs (N, C, …) with one to three spatial axes, not {x.shape}")
    if layout == "nhwc" and x.ndim == 5:
        raise ValueError(f"pooling with layout 'nhwc' needs one or two spatial axes, not {x.shape}")
    if layout == "nhwc" and indices:
        raise ValueError("indices are of planes, so they need layout 'nchw'")
    return x.ndim - 2


def _pool(
    function: object, x: Array, shape: Tuple[int, ...], indices: bool, layout: str, **fields: object
) -> Union[Array, Tuple[Array, Array]]:
    n, channels, *in_shape = channels_second(x.shape, layout)
    result = x.context.empty(as_stored((n, channels, *shape), layout), x.dtype)
    places = x.context.empty(result.shape, np.uint32) if indices else None
    desc = raw.PoolDesc(dtype=dtype_of(x), batch=n, channels=channels, spatial=len(shape))
    if layout == "nhwc":
        # Channels are one more spatial axis, whose windows have one element.
        desc.channels, desc.spatial = 1, len(shape) + 1
        in_shape, shape = [*in_shape, channels], (*shape, channels)
        alone = {"kernel": 1, "stride": 1, "padding": 0, "dilation": 1}
        fields = {name: (*value, alone[name]) if name in alone else value for name, value in fields.items()}
    axes = len(shape)
    desc.input, desc.output = x.buffer.handle, result.buffer.handle
    desc.in_shape[:axes], desc.out_shape[:axes] = in_shape, shape
    if places is not None:
        desc.indices = places.buffer.handle
    for name, value in fields.items():
        if isinstance(value, tuple):
            getattr(desc, name)[:axes] = value
        else:
            setattr(desc, name, value)
    check(function(x.context.stream_handle, desc))
    return result if places is None else (result, places)


def _windows(
    x: Array,
    kernel: Numbers,
    stride: Optional[Numbers],
    padding: Numbers,
    dilation: Numbers,
    ceil: bool,
    layout: str,
    indices: bool = False,
) -> dict:
    axes = _spatial(x, layout, indices)
    kernels, dilations = numbers(kernel, axes, "kernel", 1), numbers(dilation, axes, "dilation", 1)
    strides = kernels if stride is None else numbers(stride, axes, "stride", 1)
    paddings = numbers(padding, axes, "padding")
    shape = []
    for n, k, s, p, d in zip(channels_second(x.shape, layout)[2:], kernels, strides, paddings, dilations):
        free = n + 2 * p - d * (k - 1) - 1
        if free < 0:
            raise ValueError(f"a window of {d * (k - 1) + 1} is larger than the padded axis of {n + 2 * p}")
        size = (free + (s - 1 if ceil else 0)) // s + 1
        shape.append(size - 1 if ceil and (size - 1) * s >= n + p else size)
    return {
        "shape": tuple(shape),
        "kernel": kernels,
        "stride": strides,
        "padding": paddings,
        "dilation": dilations,
        "ceil_mode": int(bool(ceil)),
    }


@differentiable
def max_pool(
    x: Array,
    kernel: Numbers,
    *,
    stride: Optional[Numbers] = None,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    ceil_mode: bool = False,
    indices: bool = False,
    layout: str = "nchw",
) -> Union[Array, Tuple[Array, Array]]:
    """The largest value of each window of x (N, C, …), or NaN if any is NaN. stride defaults to kernel.

    With indices, also returns the index of each maximum in its plane as uint32; the first of several. With layout
    "nhwc", x and the result are (N, …, C).
    """
    fields = _windows(x, kernel, stride, padding, dilation, ceil_mode, layout, indices)
    return _pool(raw.tuff_max_pool, x, fields.pop("shape"), indices, layout, **fields)


@differentiable
def avg_pool(
    x: Array,
    kernel: Numbers,
    *,
    stride: Optional[Numbers] = None,
    padding: Numbers = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = False,
    layout: str = "nchw",
) -> Array:
    """The mean of each window of x (N, C, …). stride defaults to kernel. With count_include_pad, the divisor counts the
    padding. With layout "nhwc", x and the result are (N, …, C)."""
    fields = _windows(x, kernel, stride, padding, 1, ceil_mode, layout)
    fields["count_include_pad"] = int(bool(count_include_pad))
    return _pool(raw.tuff_avg_pool, x, fields.pop("shape"), False, layout, **fields)


def adaptive_max_pool(
    x: Array, shape: Numbers, *, indices: bool = False, layout: str = "nchw"
) -> Union[Array, Tuple[Array, Array]]:
    """Max pooling with windows that divide the spatial axes of x (N, C, …) into `shape` parts; 1 is global pooling."""
    parts = numbers(shape, _spatial(x, layout, indices), "shape")
    return _pool(raw.tuff_max_pool, x, parts, indices, layout, adaptive=1)


@differentiable
def adaptive_avg_pool(x: Array, shape: Numbers, *, layout: str = "nchw") -> Array:
    """Average pooling with windows that divide the spatial axes of x (N, C, …) into `shape` parts; 1 is global."""
    return _pool(raw.tuff_avg_pool, x, numbers(shape, _spatial(x, layout), "shape"), False, layout, adaptive=1)
