"""Pooling over one to three spatial axes, and its gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional, Sequence, Tuple, Union

import numpy as np

from . import raw
from ._checked import wholes
from ._error import check
from ._images import Numbers, as_stored, channels_second, numbers, require_layout
from ._operands import dtype_of, require_array
from ._tracing import differentiable

if TYPE_CHECKING:
    from ._array import Array

__all__ = ["adaptive_avg_pool", "adaptive_max_pool", "avg_pool", "avg_pool_backward", "max_pool", "max_pool_backward"]


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


def _describe(
    desc: Union[raw.PoolDesc, raw.PoolBackwardDesc], x_shape: Sequence[int], shape: Tuple[int, ...], layout: str, fields: dict
) -> None:
    """Sets all but types and operands, for an input of a shape as stored."""
    n, channels, *in_shape = channels_second(x_shape, layout)
    desc.batch, desc.channels = n, channels
    if layout == "nhwc":
        # Channels are one more spatial axis, whose windows have one element.
        desc.channels = 1
        in_shape, shape = [*in_shape, channels], (*shape, channels)
        alone = {"kernel": 1, "stride": 1, "padding": 0, "dilation": 1}
        fields = {name: (*value, alone[name]) if name in alone else value for name, value in fields.items()}
    axes = desc.spatial = len(shape)
    desc.in_shape[:axes], desc.out_shape[:axes] = in_shape, shape
    for name, value in fields.items():
        if isinstance(value, tuple):
            getattr(desc, name)[:axes] = value
        else:
            setattr(desc, name, value)


def _pool(
    function: object, x: Array, shape: Tuple[int, ...], indices: bool, layout: str, **fields: object
) -> Union[Array, Tuple[Array, Array]]:
    n, channels = channels_second(x.shape, layout)[:2]
    result = x.context.empty(as_stored((n, channels, *shape), layout), x.dtype)
    places = x.context.empty(result.shape, np.uint32) if indices else None
    desc = raw.PoolDesc(dtype=dtype_of(x), input=x.buffer.handle, output=result.buffer.handle)
    _describe(desc, x.shape, shape, layout, fields)
    if places is not None:
        desc.indices = places.buffer.handle
    check(function(x.context.stream_handle, desc))
    return result if places is None else (result, places)


def _gradient(dy: Array, places: Optional[Array], shape: Sequence[int], fields: dict, layout: str) -> Array:
    out = fields.pop("shape")
    pooled = as_stored((*channels_second(shape, layout)[:2], *out), layout)
    if dy.shape != pooled:
        raise ValueError(f"dy has shape {dy.shape}, and pooling of {tuple(shape)} gives {pooled}")
    result = dy.context.empty(shape, dy.dtype)
    desc = raw.PoolBackwardDesc(dtype=dtype_of(dy), doutput=dy.buffer.handle, dinput=result.buffer.handle)
    if places is not None:
        desc.maximum, desc.indices = 1, places.buffer.handle
    _describe(desc, shape, out, layout, fields)
    check(raw.tuff_pool_backward(dy.context.stream_handle, desc))
    return result


def _windows(
    x_shape: Sequence[int],
    axes: int,
    kernel: Numbers,
    stride: Optional[Numbers],
    padding: Numbers,
    dilation: Numbers,
    ceil: bool,
    layout: str,
) -> dict:
    kernels, dilations = numbers(kernel, axes, "kernel", 1), numbers(dilation, axes, "dilation", 1)
    strides = kernels if stride is None else numbers(stride, axes, "stride", 1)
    paddings = numbers(padding, axes, "padding")
    shape = []
    for n, k, s, p, d in zip(channels_second(x_shape, layout)[2:], kernels, strides, paddings, dilations):
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


def windows_of(
    x: Array,
    kernel: Numbers,
    *,
    stride: Optional[Numbers] = None,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    ceil_mode: bool = False,
    indices: bool = False,
    layout: str = "nchw",
) -> dict:
    """Fields that describe max_pool's windows."""
    return _windows(x.shape, _spatial(x, layout, indices), kernel, stride, padding, dilation, ceil_mode, layout)


def parts_of(x: Array, shape: Numbers, *, indices: bool = False, layout: str = "nchw") -> dict:
    """Fields that describe adaptive windows."""
    return {"shape": numbers(shape, _spatial(x, layout, indices), "shape"), "adaptive": 1}


def pooled(x: Array, layout: str, *, shape: Tuple[int, ...], **fields: object) -> Tuple[Array, Array]:
    """Maxima and their places: with layout "nhwc" those in planes (..., C)."""
    return _pool(raw.tuff_max_pool, x, shape, True, layout, **fields)  # type: ignore[return-value]


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
    fields = windows_of(
        x, kernel, stride=stride, padding=padding, dilation=dilation, ceil_mode=ceil_mode, indices=indices, layout=layout
    )
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
    fields = _windows(x.shape, _spatial(x, layout), kernel, stride, padding, 1, ceil_mode, layout)
    fields["count_include_pad"] = int(bool(count_include_pad))
    return _pool(raw.tuff_avg_pool, x, fields.pop("shape"), False, layout, **fields)


@differentiable
def adaptive_max_pool(
    x: Array, shape: Numbers, *, indices: bool = False, layout: str = "nchw"
) -> Union[Array, Tuple[Array, Array]]:
    """Max pooling with windows that divide the spatial axes of x (N, C, …) into `shape` parts; 1 is global pooling."""
    fields = parts_of(x, shape, indices=indices, layout=layout)
    return _pool(raw.tuff_max_pool, x, fields.pop("shape"), indices, layout, **fields)


@differentiable
def adaptive_avg_pool(x: Array, shape: Numbers, *, layout: str = "nchw") -> Array:
    """Average pooling with windows that divide the spatial axes of x (N, C, …) into `shape` parts; 1 is global."""
    fields = parts_of(x, shape, layout=layout)
    return _pool(raw.tuff_avg_pool, x, fields.pop("shape"), False, layout, **fields)


def gradient_fields(
    dy: Array,
    shape: Sequence[int],
    kernel: Optional[Numbers],
    *,
    stride: Optional[Numbers] = None,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    ceil_mode: bool = False,
    count_include_pad: bool = False,
    layout: str = "nchw",
) -> dict:
    """Fields that describe the windows of the pooling, of an array of this shape, whose result has the gradient dy."""
    axes = _spatial(dy, layout)
    if len(shape) != dy.ndim:
        raise ValueError(f"shape {tuple(shape)} needs {dy.ndim} dimensions, as dy")
    if kernel is None:
        given = any(numbers(padding, axes, "padding")) or any(d != 1 for d in numbers(dilation, axes, "dilation", 1))
        if given or stride is not None or ceil_mode or count_include_pad:
            raise ValueError("kernel None is adaptive pooling, which has no stride, padding, dilation, ceil_mode or count_include_pad")
        return {"shape": channels_second(dy.shape, layout)[2:], "adaptive": 1}
    fields = _windows(shape, axes, kernel, stride, padding, dilation, ceil_mode, layout)
    return {**fields, "count_include_pad": int(bool(count_include_pad))}


@differentiable
def max_pool_backward(
    dy: Array,
    indices: Array,
    shape: Sequence[int],
    kernel: Optional[Numbers],
    *,
    stride: Optional[Numbers] = None,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    ceil_mode: bool = False,
    layout: str = "nchw",
) -> Array:
    """The gradient by x, of this shape, of a function of max_pool(x, kernel, ...), given that by its result and the indices
    that it has returned. kernel None is adaptive_max_pool. With layout "nhwc", indices are those of planes (..., C)."""
    require_array(dy, "dy")
    require_array(indices, "indices")
    if indices.dtype != np.uint32 or indices.shape != dy.shape:
        raise ValueError(f"indices are uint32 of shape {dy.shape}, not {indices.dtype} of shape {indices.shape}")
    shape = wholes(shape, "shape", 0)
    fields = gradient_fields(
        dy, shape, kernel, stride=stride, padding=padding, dilation=dilation, ceil_mode=ceil_mode, layout=layout
    )
    return _gradient(dy, indices, shape, fields, layout)


@differentiable
def avg_pool_backward(
    dy: Array,
    shape: Sequence[int],
    kernel: Optional[Numbers],
    *,
    stride: Optional[Numbers] = None,
    padding: Numbers = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = False,
    layout: str = "nchw",
) -> Array:
    """The gradient by x, of this shape, of a function of avg_pool(x, kernel, ...), given that by its result. kernel None is
    adaptive_avg_pool."""
    require_array(dy, "dy")
    shape = wholes(shape, "shape", 0)
    fields = gradient_fields(
        dy, shape, kernel, stride=stride, padding=padding, ceil_mode=ceil_mode, count_include_pad=count_include_pad, layout=layout
    )
    return _gradient(dy, None, shape, fields, layout)
