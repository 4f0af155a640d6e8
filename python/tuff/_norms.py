"""Softmax and normalisations."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Dict, Optional, Sequence, Tuple, Union

import numpy as np

from . import raw
from ._checked import real, whole
from ._error import check
from ._operands import dtype_of, require_array, require_rank, result_of, same_context, same_kind, whole_axis
from ._storage import DTYPES
from ._tracing import differentiable

if TYPE_CHECKING:
    from ._array import Array

__all__ = [
    "batch_norm",
    "batch_norm_training",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "log_softmax",
    "rms_norm",
    "softmax",
]


@differentiable
def softmax(
    x: Array,
    axis: int = -1,
    *,
    scale: float = 1.0,
    mask: Optional[Array] = None,
    out: Optional[Array] = None,
) -> Array:
    """exp(z - max) / sum(exp(z - max)) along one axis, where z = scale * x + mask; out may be x.

    A mask of x's dtype is added. A uint8 or bool mask hides elements where it is 0; their results are 0. The mask's shape is
    that of the last axes of x, starting at or before `axis`; it repeats over the others.
    """
    return _softmax(x, axis, scale, mask, out, logarithm=False)


@differentiable
def log_softmax(
    x: Array,
    axis: int = -1,
    *,
    scale: float = 1.0,
    mask: Optional[Array] = None,
    out: Optional[Array] = None,
) -> Array:
    """The logarithm of softmax, computed directly; -inf where the mask hides."""
    return _softmax(x, axis, scale, mask, out, logarithm=True)


def _softmax(
    x: Array, axis: int, scale: float, mask: Optional[Array], out: Optional[Array], logarithm: bool
) -> Array:
    require_array(x, "x")
    if x.ndim == 0:
        raise ValueError("softmax of a 0-d array")
    require_rank(x, "x")
    scale = real(scale, "scale")
    if scale == 0:
        raise ValueError("softmax with a scale of 0")
    result = result_of(out, x, x.shape)
    along = whole_axis(axis, x.ndim)
    desc = raw.SoftmaxDesc(
        dtype=dtype_of(x),
        input=x.buffer.handle,
        output=result.buffer.handle,
        shape=x.shape,
        rank=x.ndim,
        axis=along,
        scale=scale,
        logarithm=logarithm,
    )
    if mask is not None:
        require_array(mask, "mask")
        same_context(x.context, mask.context)
        if mask.dtype not in (x.dtype, np.uint8, np.bool_):
            raise TypeError(f"mask is of {mask.dtype}, needs {x.dtype}, uint8 or bool")
        if mask.ndim < x.ndim - along or mask.shape != x.shape[x.ndim - mask.ndim :]:
            raise ValueError(f"mask has shape {mask.shape}, needs the last {x.ndim - along} or more axes of {x.shape}")
        desc.mask = mask.buffer.handle
        desc.mask_type = raw.U8 if mask.dtype == np.bool_ else DTYPES[mask.dtype]
        desc.mask_rows = math.prod(mask.shape[: mask.ndim - (x.ndim - along)])
    check(raw.tuff_softmax_ex(x.context.stream_handle, desc))
    return result


def softmax_gradient(y: Array, g: Array, axis: int, scale: float, logarithm: bool) -> Array:
    """The gradient by the input of softmax or log_softmax, of the output y and the gradient by that."""
    result = y.context.empty(y.shape, y.dtype)
    desc = raw.SoftmaxBackwardDesc(
        dtype=dtype_of(y), output=y.buffer.handle, output_gradient=g.buffer.handle, gradient=result.buffer.handle, shape=y.shape,
        rank=y.ndim, axis=whole_axis(axis, y.ndim), scale=scale, logarithm=int(logarithm),
    )  # fmt: skip
    check(raw.tuff_softmax_backward(y.context.stream_handle, desc))
    return result


def _weights(desc: object, x: Array, size: int, **given: Optional[Array]) -> None:
    """Sets weight, bias, … of shape (size,) in a descriptor. All have x's dtype, or all are float32."""
    present = {name: array for name, array in given.items() if array is not None}
    for name, array in present.items():
        require_array(array, name)
        same_context(x.context, array.context)
        if array.dtype not in (x.dtype, np.float32) or array.dtype != next(iter(present.values())).dtype:
            raise TypeError(f"{name} is of {array.dtype}, needs {x.dtype}, or float32 like the other parameters")
        if array.shape != (size,):
            raise ValueError(f"{name} has shape {array.shape}, needs ({size},)")
        setattr(desc, name, array.buffer.handle)
        desc.weight_type = dtype_of(array)


def _row_norm(
    function: object, desc: object, x: Array, residual: Optional[Array], sum_out: Optional[Array], out: Optional[Array]
) -> Array:
    result = result_of(out, x, x.shape)
    desc.dtype = dtype_of(x)
    desc.input, desc.output = x.buffer.handle, result.buffer.handle
    desc.cols = x.shape[-1]
    desc.rows = math.prod(x.shape[:-1])
    if residual is None and sum_out is not None:
        raise ValueError("sum_out needs residual")
    for array, name in ((residual, "residual"), (sum_out, "sum_out")):
        if array is None:
            continue
        require_array(array, name)
        same_kind(x, array)
        if array.shape != x.shape:
            raise ValueError(f"{name} has shape {array.shape}, needs {x.shape}")
        setattr(desc, "residual" if name == "residual" else "sum", array.buffer.handle)
    check(function(x.context.stream_handle, desc))
    return result


def _require_axis(x: object, name: str) -> None:
    require_array(x, "x")
    if x.ndim == 0 or x.shape[-1] == 0:
        raise ValueError(f"{name} of shape {x.shape}")


@differentiable
def layer_norm(
    x: Array,
    weight: Optional[Array] = None,
    bias: Optional[Array] = None,
    *,
    epsilon: float = 1e-5,
    residual: Optional[Array] = None,
    sum_out: Optional[Array] = None,
    out: Optional[Array] = None,
) -> Array:
    """(x - mean) / sqrt(variance + epsilon) * weight + bias along the last axis; out may be x.

    With residual, x + residual is normalised, and stored in sum_out if given, which may be x or residual.
    """
    _require_axis(x, "layer_norm")
    desc = raw.LayerNormDesc(epsilon=real(epsilon, "epsilon"))
    _weights(desc, x, x.shape[-1], weight=weight, bias=bias)
    return _row_norm(raw.tuff_layer_norm_ex, desc, x, residual, sum_out, out)


@differentiable
def rms_norm(
    x: Array,
    weight: Optional[Array] = None,
    *,
    epsilon: float = 1e-5,
    residual: Optional[Array] = None,
    sum_out: Optional[Array] = None,
    out: Optional[Array] = None,
) -> Array:
    """x / sqrt(mean(x * x) + epsilon) * weight along the last axis; residual and sum_out as in layer_norm."""
    _require_axis(x, "rms_norm")
    desc = raw.RmsNormDesc(epsilon=real(epsilon, "epsilon"))
    _weights(desc, x, x.shape[-1], weight=weight)
    return _row_norm(raw.tuff_rms_norm_ex, desc, x, residual, sum_out, out)


def _image(x: object, name: str) -> Tuple[int, int, int]:
    """Returns the numbers of images, channels and elements per channel."""
    require_array(x, "x")
    if x.ndim < 2:
        raise ValueError(f"{name} of shape {x.shape}: needs (N, C, …)")
    return x.shape[0], x.shape[1], math.prod(x.shape[2:])


@differentiable
def group_norm(
    x: Array,
    groups: int,
    weight: Optional[Array] = None,
    bias: Optional[Array] = None,
    *,
    epsilon: float = 1e-5,
    out: Optional[Array] = None,
) -> Array:
    """Normalises each group of C / groups adjacent channels of x (N, C, …) separately; weight and bias (C,)."""
    batch, channels, inner = _image(x, "group_norm")
    groups, epsilon = whole(groups, "groups", 1), real(epsilon, "epsilon")
    result = result_of(out, x, x.shape)
    desc = raw.GroupNormDesc(dtype=dtype_of(x), batch=batch, channels=channels, inner=inner, groups=groups, epsilon=epsilon)
    desc.input, desc.output = x.buffer.handle, result.buffer.handle
    _weights(desc, x, channels, weight=weight, bias=bias)
    check(raw.tuff_group_norm_ex(x.context.stream_handle, desc))
    return result


def instance_norm(
    x: Array,
    weight: Optional[Array] = None,
    bias: Optional[Array] = None,
    *,
    epsilon: float = 1e-5,
    out: Optional[Array] = None,
) -> Array:
    """Normalises each channel of each image of x (N, C, …) separately."""
    return group_norm(x, max(1, _image(x, "instance_norm")[1]), weight, bias, epsilon=epsilon, out=out)


@differentiable
def batch_norm(
    x: Array,
    mean: Array,
    variance: Array,
    weight: Optional[Array] = None,
    bias: Optional[Array] = None,
    *,
    epsilon: float = 1e-5,
    out: Optional[Array] = None,
) -> Array:
    """(x - mean) / sqrt(variance + epsilon) * weight + bias for x (N, C, …), with given statistics of shape (C,)."""
    batch, channels, inner = _image(x, "batch_norm")
    result = result_of(out, x, x.shape)
    desc = raw.BatchNormDesc(dtype=dtype_of(x), batch=batch, channels=channels, inner=inner)
    desc.epsilon = real(epsilon, "epsilon")
    desc.input, desc.output = x.buffer.handle, result.buffer.handle
    require_array(mean, "mean")
    require_array(variance, "variance")
    _weights(desc, x, channels, mean=mean, variance=variance, weight=weight, bias=bias)
    check(raw.tuff_batch_norm_ex(x.context.stream_handle, desc))
    return result


@differentiable
def batch_norm_training(
    x: Array,
    weight: Optional[Array] = None,
    bias: Optional[Array] = None,
    *,
    running_mean: Optional[Array] = None,
    running_variance: Optional[Array] = None,
    momentum: float = 0.1,
    epsilon: float = 1e-5,
    statistics: bool = False,
    out: Optional[Array] = None,
) -> Union[Array, Tuple[Array, Array, Array]]:
    """Normalises each channel of x (N, C, …) by its own mean and variance over all other axes.

    running_mean and running_variance, of weight's dtype, follow them in place: r += momentum * (statistic - r), with the
    unbiased variance. With statistics=True the result is (y, mean, variance), these of float32 and biased.
    """
    batch, channels, inner = _image(x, "batch_norm_training")
    result = result_of(out, x, x.shape)
    desc = raw.BatchNormTrainingDesc(dtype=dtype_of(x), batch=batch, channels=channels, inner=inner)
    desc.epsilon, desc.momentum = real(epsilon, "epsilon"), real(momentum, "momentum")
    desc.input, desc.output = x.buffer.handle, result.buffer.handle
    _weights(desc, x, channels, weight=weight, bias=bias, running_mean=running_mean, running_variance=running_variance)
    found = [x.context.empty((channels,), np.float32) for _ in range(2)] if statistics else []
    if statistics:
        desc.mean, desc.variance = (one.buffer.handle for one in found)
    check(raw.tuff_batch_norm_training(x.context.stream_handle, desc))
    return (result, *found) if statistics else result


_KINDS = {"layer": raw.NORM_LAYER, "rms": raw.NORM_RMS, "group": raw.NORM_GROUP, "batch": raw.NORM_BATCH}


def norm_gradients(
    kind: str, x: Array, g: Array, wanted: Sequence[str], *, weight: Optional[Array], weight_dtype: np.dtype, epsilon: float,
    groups: int = 0, mean: Optional[Array] = None, variance: Optional[Array] = None, frozen: bool = False
) -> Dict[str, Array]:  # fmt: skip
    """The gradients of a normalisation by those of "x", "weight" and "bias" that are wanted, given that by its output."""
    rows = kind in ("layer", "rms")
    channels = x.shape[-1] if rows else x.shape[1]
    batch, inner = (math.prod(x.shape[:-1]), 1) if rows else (x.shape[0], math.prod(x.shape[2:]))
    desc = raw.NormBackwardDesc(
        dtype=dtype_of(x), kind=_KINDS[kind], weight_type=DTYPES[np.dtype(weight_dtype)], batch=batch, channels=channels, inner=inner,
        groups=groups, epsilon=epsilon, input=x.buffer.handle, output_gradient=g.buffer.handle, frozen=int(frozen),
    )  # fmt: skip
    if weight is not None:
        desc.weight = weight.buffer.handle
    if mean is not None and variance is not None:
        desc.statistics_type = dtype_of(mean)
        desc.mean, desc.variance = mean.buffer.handle, variance.buffer.handle
    found = {}
    for name, field in (("x", "input_gradient"), ("weight", "weight_gradient"), ("bias", "bias_gradient")):
        if name in wanted:
            found[name] = x.context.empty(*((x.shape, x.dtype) if name == "x" else ((channels,), weight_dtype)))
            setattr(desc, field, found[name].buffer.handle)
    check(raw.tuff_norm_backward(x.context.stream_handle, desc))
    return found
