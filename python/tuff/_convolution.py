"""Convolutions in one to three dimensions, their gradients, and transposed convolution."""

from __future__ import annotations

from typing import TYPE_CHECKING, List, Optional, Sequence, Tuple, Union

from . import raw
from ._checked import choice, is_whole, sequence, whole, wholes
from ._error import check
from ._images import LAYOUTS, Numbers, as_stored, channels_second, numbers, require_layout
from ._operations import _ACTIVATIONS
from ._operands import dtype_of, require_array, result_of, same_kind
from ._tracing import differentiable

if TYPE_CHECKING:
    from ._array import Array

__all__ = ["conv1d", "conv2d", "conv3d", "conv_backward_data", "conv_backward_filter", "conv_transpose2d"]

# Each padding may be a pair (before, after).
Paddings = Union[int, Sequence[Union[int, Tuple[int, int]]]]


def _paddings(value: Paddings, rank: int) -> Tuple[Tuple[int, ...], Tuple[int, ...]]:
    """Returns the paddings before and after each axis."""
    each = value if is_whole(value) else sequence(value, "padding", "numbers or pairs of them")
    if is_whole(value) or all(is_whole(one) for one in each):
        both = numbers(each, rank, "padding", 0)
        return both, both
    pairs = [(one, one) if is_whole(one) else sequence(one, "padding", "numbers or pairs of them") for one in each]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError(f"padding is numbers or pairs of them, not {value!r}")
    first, second = ([pair[i] for pair in pairs] for i in range(2))
    return numbers(first, rank, "padding", 0), numbers(second, rank, "padding", 0)


def _check(x: Array, w: Array, rank: int, name: str, layout: str, activation: Optional[str]) -> None:
    require_array(x, "x")
    require_array(w, "w")
    same_kind(x, w)
    require_layout(layout)
    choice(activation, "activation", _ACTIVATIONS)
    if x.ndim != rank + 2 or w.ndim != rank + 2:
        raise ValueError(f"{name} needs arrays of {rank + 2} dimensions, not {x.shape} and {w.shape}")


def _added(value: Optional[Array], name: str, like: Array, shape: Tuple[int, ...]) -> int:
    """Returns the handle of an optional operand, or 0."""
    if value is None:
        return 0
    require_array(value, name)
    same_kind(like, value)
    if value.shape != shape:
        raise ValueError(f"{name} has shape {value.shape}, needs {shape}")
    return value.buffer.handle


def _convolve(
    rank: int,
    x: Array,
    w: Array,
    stride: Numbers,
    padding: Paddings,
    dilation: Numbers,
    groups: int,
    bias: Optional[Array],
    activation: Optional[str],
    residual: Optional[Array],
    layout: str,
    out: Optional[Array],
    winograd: bool = False,
) -> Array:
    _check(x, w, rank, f"conv{rank}d", layout, activation)
    strides, dilations = numbers(stride, rank, "stride", 1), numbers(dilation, rank, "dilation", 1)
    groups = whole(groups, "groups", 1)
    begin, end = _paddings(padding, rank)
    images, filters = channels_second(x.shape, layout), channels_second(w.shape, layout)
    spans = [d * (taps - 1) + 1 for d, taps in zip(dilations, filters[2:])]
    room = [size + p + q - span for size, p, q, span in zip(images[2:], begin, end, spans)]
    if min(room) < 0:
        raise ValueError(f"a filter of {tuple(spans)} taps is larger than the padded image {images[2:]}")
    shape = (images[0], filters[0], *(free // s + 1 for free, s in zip(room, strides)))
    result = result_of(out, x, as_stored(shape, layout))
    describe = (raw.Conv1dDesc, raw.Conv2dDesc, raw.Conv3dDesc)[rank - 1]
    desc = describe(
        dtype=dtype_of(x),
        input=x.buffer.handle,
        filter=w.buffer.handle,
        output=result.buffer.handle,
        in_shape=images,
        filter_shape=filters,
        out_shape=shape,
        stride=strides,
        padding=begin,
        dilation=dilations,
        groups=groups,
        layout=LAYOUTS[layout],
        activation=_ACTIVATIONS[activation],
        bias=_added(bias, "bias", x, (shape[1],)),
        residual=_added(residual, "residual", x, result.shape),
    )
    if winograd:
        desc.precision = raw.PRECISION_ALLOW_WINOGRAD
    if begin != end:
        desc.asymmetric = 1
        desc.padding_end = end
    function = (raw.tuff_conv1d_ex, raw.tuff_conv2d_ex, raw.tuff_conv3d_ex)[rank - 1]
    check(function(x.context.stream_handle, desc))
    return result


@differentiable
def conv1d(
    x: Array,
    w: Array,
    *,
    stride: Numbers = 1,
    padding: Paddings = 0,
    dilation: Numbers = 1,
    groups: int = 1,
    bias: Optional[Array] = None,
    activation: Optional[str] = None,
    residual: Optional[Array] = None,
    layout: str = "nchw",
    out: Optional[Array] = None,
) -> Array:
    """Cross-correlation of sequences x (N, C, W) with filters w (K, C / groups, S): (N, K, Q). See conv2d."""
    return _convolve(1, x, w, stride, padding, dilation, groups, bias, activation, residual, layout, out)


@differentiable
def conv2d(
    x: Array,
    w: Array,
    *,
    stride: Numbers = 1,
    padding: Paddings = 0,
    dilation: Numbers = 1,
    groups: int = 1,
    bias: Optional[Array] = None,
    activation: Optional[str] = None,
    residual: Optional[Array] = None,
    layout: str = "nchw",
    winograd: bool = False,
    out: Optional[Array] = None,
) -> Array:
    """activation(cross-correlation of images x (N, C, H, W) with filters w (K, C / groups, R, S) + bias + residual):
    (N, K, P, Q), with P = floor((H + 2 * padding - dilation * (R - 1) - 1) / stride) + 1, Q likewise.

    stride, dilation and padding are one number or (vertical, horizontal). Each padding may be a pair (before, after).
    bias has shape (K,), residual that of the result. activation is "relu", "relu6", "gelu", "gelu_tanh" or "silu".
    With layout "nhwc", x is (N, H, W, C), w (K, R, S, C / groups) and the result (N, P, Q, K).
    winograd permits fewer multiplications for 3 x 3 windows where that is faster. Rounding errors are then relative to
    all values of a tile of up to 6 x 6, and integer inputs need not give exact results.
    """
    return _convolve(2, x, w, stride, padding, dilation, groups, bias, activation, residual, layout, out, winograd)


@differentiable
def conv3d(
    x: Array,
    w: Array,
    *,
    stride: Numbers = 1,
    padding: Paddings = 0,
    dilation: Numbers = 1,
    groups: int = 1,
    bias: Optional[Array] = None,
    activation: Optional[str] = None,
    residual: Optional[Array] = None,
    layout: str = "nchw",
    out: Optional[Array] = None,
) -> Array:
    """Cross-correlation of volumes x (N, C, D, H, W) with filters w (K, C / groups, T, R, S): (N, K, O, P, Q). See
    conv2d; layout "nhwc" is (N, D, H, W, C)."""
    return _convolve(3, x, w, stride, padding, dilation, groups, bias, activation, residual, layout, out)


@differentiable
def conv_transpose2d(
    x: Array,
    w: Array,
    *,
    stride: Numbers = 1,
    padding: Numbers = 0,
    output_padding: Numbers = 0,
    dilation: Numbers = 1,
    groups: int = 1,
    bias: Optional[Array] = None,
    activation: Optional[str] = None,
    layout: str = "nchw",
    out: Optional[Array] = None,
) -> Array:
    """Transposed convolution of x (N, C, H, W) with w (C, K / groups, R, S): (N, K, P, Q) with
    P = (H - 1) * stride - 2 * padding + dilation * (R - 1) + output_padding + 1, Q likewise.

    With layout "nhwc", x is (N, H, W, C), w (C, R, S, K / groups) and the result (N, P, Q, K). All else is as in
    conv2d.
    """
    _check(x, w, 2, "conv_transpose2d", layout, activation)
    strides, dilations = numbers(stride, 2, "stride", 1), numbers(dilation, 2, "dilation", 1)
    groups = whole(groups, "groups", 1)
    paddings, further = numbers(padding, 2, "padding", 0), numbers(output_padding, 2, "output_padding", 0)
    images, filters = channels_second(x.shape, layout), channels_second(w.shape, layout)
    extents: List[int] = [
        (images[2 + i] - 1) * strides[i] - 2 * paddings[i] + dilations[i] * (filters[2 + i] - 1) + further[i] + 1
        for i in range(2)
    ]
    if min(extents) < 0:
        raise ValueError(f"padding {padding} removes more than the output has: {tuple(extents)}")
    shape = (images[0], filters[1] * groups, *extents)
    result = result_of(out, x, as_stored(shape, layout))
    desc = raw.ConvTranspose2dDesc(
        dtype=dtype_of(x),
        input=x.buffer.handle,
        filter=w.buffer.handle,
        output=result.buffer.handle,
        in_shape=images,
        filter_shape=filters,
        out_shape=shape,
        stride=strides,
        padding=paddings,
        output_padding=further,
        dilation=dilations,
        groups=groups,
        layout=LAYOUTS[layout],
        activation=_ACTIVATIONS[activation],
        bias=_added(bias, "bias", x, (shape[1],)),
    )
    check(raw.tuff_conv_transpose2d_ex(x.context.stream_handle, desc))
    return result


def _backward_desc(
    a: Array,
    b: Array,
    shapes: Sequence[Sequence[int]],
    stride: Numbers,
    padding: Paddings,
    dilation: Numbers,
    groups: int,
    layout: str,
) -> raw.ConvBackwardDesc:
    """The convolution whose gradient is computed: shapes of input, filter and output as stored. a and b are what is read."""
    same_kind(a, b)
    rank = a.ndim - 2
    begin, end = _paddings(padding, rank)
    desc = raw.ConvBackwardDesc(
        dtype=dtype_of(a),
        stride=numbers(stride, rank, "stride", 1),
        padding=begin,
        dilation=numbers(dilation, rank, "dilation", 1),
        groups=whole(groups, "groups", 1),
        spatial=rank,
        layout=LAYOUTS[layout],
    )
    for name, shape in zip(("in_shape", "filter_shape", "out_shape"), shapes):
        getattr(desc, name)[: rank + 2] = channels_second(shape, layout)
    if begin != end:
        desc.asymmetric = 1
        desc.padding_end[:rank] = end
    return desc


def _check_gradient(a: Array, name: str, b: Array, other: str, layout: str) -> None:
    require_array(a, name)
    require_array(b, other)
    require_layout(layout)
    if not 3 <= a.ndim <= 5 or b.ndim != a.ndim:
        raise ValueError(f"gradients of convolutions need {name} and {other} of 3 to 5 dimensions, not {a.shape} and {b.shape}")


@differentiable
def conv_backward_data(
    dy: Array,
    w: Array,
    shape: Sequence[int],
    *,
    stride: Numbers = 1,
    padding: Paddings = 0,
    dilation: Numbers = 1,
    groups: int = 1,
    layout: str = "nchw",
) -> Array:
    """The gradient by x, of this shape, of a function of y = conv1d, conv2d or conv3d(x, w, ...), given that by y: the
    transposed convolution in one to three dimensions. All else is as in conv2d."""
    _check_gradient(dy, "dy", w, "w", layout)
    shape = wholes(shape, "shape", 0)
    if len(shape) != dy.ndim:
        raise ValueError(f"shape {shape} needs {dy.ndim} dimensions, as dy")
    desc = _backward_desc(dy, w, (shape, w.shape, dy.shape), stride, padding, dilation, groups, layout)
    result = dy.context.empty(shape, dy.dtype)
    desc.doutput, desc.filter, desc.dinput = dy.buffer.handle, w.buffer.handle, result.buffer.handle
    check(raw.tuff_conv_backward_data(dy.context.stream_handle, desc))
    return result


@differentiable
def conv_backward_filter(
    x: Array,
    dy: Array,
    window: Numbers,
    *,
    stride: Numbers = 1,
    padding: Paddings = 0,
    dilation: Numbers = 1,
    groups: int = 1,
    layout: str = "nchw",
) -> Array:
    """The gradient by w, which has windows of this size, of a function of y = conv1d, conv2d or conv3d(x, w, ...), given
    that by y. All else is as in conv2d."""
    _check_gradient(x, "x", dy, "dy", layout)
    taps, groups = numbers(window, x.ndim - 2, "window", 1), whole(groups, "groups", 1)
    channels, filters = (channels_second(one.shape, layout)[1] for one in (x, dy))
    shape = as_stored((filters, channels // groups, *taps), layout)
    desc = _backward_desc(x, dy, (x.shape, shape, dy.shape), stride, padding, dilation, groups, layout)
    result = x.context.empty(shape, x.dtype)
    desc.input, desc.doutput, desc.dfilter = x.buffer.handle, dy.buffer.handle, result.buffer.handle
    check(raw.tuff_conv_backward_filter(x.context.stream_handle, desc))
    return result
