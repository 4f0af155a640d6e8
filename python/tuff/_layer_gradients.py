"""Gradients of softmax, normalisations, attention, convolutions and pooling: the rules of tuff.grad."""

from __future__ import annotations

import math
from typing import Any, List, Optional, Tuple, Union

import numpy as np

from . import _attention, _convolution, _indexing, _norms, _pool
from . import _elementwise as elementwise
from . import _functions as functions
from . import _operations as operations
from ._array import Array
from ._checked import real, whole
from ._convolution import _paddings
from ._expression import expr
from ._gradients import activated
from ._images import numbers
from ._tape import (
    Traced,
    constant,
    dense,
    forgetting,
    pulls_of,
    refuse_out,
    rule,
    summed_to,
    tape_of,
    value_in,
    widened,
)
from ._tracing import any_traced
from ._views import Transposed

# --- Rules: softmax, normalisations, attention


def _softmax(x: Any, axis: int, scale: float, mask: Any, out: object, logarithm: bool) -> Array:
    refuse_out(out, "softmax")
    if any_traced((mask,)):  # an added mask is a term
        return _softmax(x * scale + mask, axis, 1.0, None, None, logarithm)
    function = _norms.log_softmax if logarithm else _norms.softmax
    y = function(x.value, axis, scale=scale, mask=mask)

    def pull(g: Array) -> Array:
        total = (g if logarithm else g * y).sum(axis, True)
        slope = "s * (g - exp(y) * t)" if logarithm else "s * y * (g - t)"
        return expr(slope, dtype=x.dtype, g=g, y=y, t=total, s=float(scale))

    return x.tape.add(y, ((x.place, pull),))


@rule("softmax")
def _(x: Any, axis: int = -1, *, scale: float = 1.0, mask: Any = None, out: object = None) -> Array:
    return _softmax(x, axis, scale, mask, out, False)


@rule("log_softmax")
def _(x: Any, axis: int = -1, *, scale: float = 1.0, mask: Any = None, out: object = None) -> Array:
    return _softmax(x, axis, scale, mask, out, True)


def _scaled(x: Array, weight: Optional[Array], bias: Optional[Array], shape: Tuple[int, ...]) -> Array:
    x = x if weight is None else x * weight.astype(np.float32).reshape(shape)
    return x if bias is None else x + bias.astype(np.float32).reshape(shape)


def _added(x: Array, residual: Optional[Array], sum_out: object, out: object) -> Array:
    refuse_out(out, "a normalisation")
    refuse_out(sum_out, "a normalisation")
    return x if residual is None else x + residual


def _rows_norm(x: Array, weight: Any, bias: Any, epsilon: float, centred: bool) -> Optional[Array]:
    """layer_norm or rms_norm by one kernel, with n = (x - mean) * r, r = 1 / sqrt(variance + epsilon), and the slope of x
    r * (h - mean(h) - n * mean(h * n)), h = g * weight; of rms_norm without mean(h). None: for gradients of gradients."""
    tape = tape_of(x, weight, bias)
    v, w, b = (value_in(tape, one) for one in (x, weight, bias))
    if any_traced((v, w, b)):
        return None
    y = _norms.layer_norm(v, w, b, epsilon=epsilon) if centred else _norms.rms_norm(v, w, epsilon=epsilon)
    wide, n = widened(v), float(v.shape[-1])
    mean = wide.mean(-1, True) if centred else None
    squares = wide.var(-1, 0.0, True) if centred else wide.sum_squares(-1, True)
    of = {"x": v, "s": squares, "e": epsilon, **({"m": mean} if centred else {"n": n})}
    normal = "u = (x - m) * rsqrt(s + e); " if centred else "u = x * rsqrt(s / n + e); "
    root = "rsqrt(s + e)" if centred else "rsqrt(s / n + e)"
    kind = wide.dtype

    def of_x(g: Array) -> Array:
        scaled = {"g": g} if w is None else {"g": g, "w": w}
        h = "g" if w is None else "g * w"
        along = expr(f"{normal}{h} * u", dtype=kind, **scaled, **of).mean(-1, True)
        if not centred:
            return expr(f"{normal}{root} * ({h} - u * a)", dtype=v.dtype, a=along, **scaled, **of)
        level = (g if w is None else expr(h, dtype=kind, **scaled)).mean(-1, True)
        return expr(f"{normal}{root} * ({h} - c - u * a)", dtype=v.dtype, a=along, c=level, **scaled, **of)

    rules = (
        (x, of_x),
        (weight, lambda g: summed_to(expr(f"{normal}g * u", dtype=kind, g=g, **of), w.shape, w.dtype)),
        (bias, lambda g: summed_to(dense(g), b.shape, b.dtype)),
    )
    return tape.add(y, pulls_of(tape, rules))


@rule("layer_norm")
def _(x: Array, weight: Any = None, bias: Any = None, *, epsilon: float = 1e-5, residual: Any = None, sum_out: object = None, out: object = None) -> Array:
    x = _added(x, residual, sum_out, out)
    epsilon = real(epsilon, "epsilon")
    result = _rows_norm(x, weight, bias, epsilon, True)
    if result is not None:
        return result
    wide = widened(x)
    normal = expr("(x - m) * rsqrt(v + e)", x=wide, m=wide.mean(-1, True), v=wide.var(-1, 0.0, True), e=epsilon)
    return _scaled(normal, weight, bias, (-1,)).astype(x.dtype)


@rule("rms_norm")
def _(x: Array, weight: Any = None, *, epsilon: float = 1e-5, residual: Any = None, sum_out: object = None, out: object = None) -> Array:
    x = _added(x, residual, sum_out, out)
    epsilon = real(epsilon, "epsilon")
    result = _rows_norm(x, weight, None, epsilon, False)
    if result is not None:
        return result
    wide = widened(x)
    normal = expr("x * rsqrt(s + e)", x=wide, s=functions.square(wide).mean(-1, True), e=epsilon)
    return _scaled(normal, weight, None, (-1,)).astype(x.dtype)


@rule("group_norm")
def _(x: Array, groups: int, weight: Any = None, bias: Any = None, *, epsilon: float = 1e-5, out: object = None) -> Array:
    refuse_out(out, "group_norm")
    rows = widened(x).reshape(x.shape[0] * whole(groups, "groups", 1), -1)
    mean, variance = rows.mean(-1, True), rows.var(-1, 0.0, True)
    normal = expr("(x - m) * rsqrt(v + e)", x=rows, m=mean, v=variance, e=real(epsilon, "epsilon")).reshape(x.shape)
    return _scaled(normal, weight, bias, (x.shape[1], *(1,) * (x.ndim - 2))).astype(x.dtype)


@rule("batch_norm")
def _(x: Array, mean: Array, variance: Array, weight: Any = None, bias: Any = None, *, epsilon: float = 1e-5, out: object = None) -> Array:
    refuse_out(out, "batch_norm")
    shape = (x.shape[1], *(1,) * (x.ndim - 2))
    given = [one.astype(np.float32).reshape(shape) for one in (mean, variance)]
    normal = expr("(x - m) * rsqrt(v + e)", dtype=widened(x).dtype, x=x, m=given[0], v=given[1], e=real(epsilon, "epsilon"))
    return _scaled(normal, weight, bias, shape).astype(x.dtype)


@rule("attention")
def _attention_rule(
    q: Any, k: Any, v: Any, *, scale: Optional[float] = None, causal: Union[bool, str] = False, layout: str = "bhsd",
    mask: Any = None, bias: Any = None, softcap: Optional[float] = None, out: object = None, **others: object
) -> Array:  # fmt: skip
    """By the sums of each row, which the forward pass keeps: the weights are exp(score - lse), computed anew."""
    refuse_out(out, "attention")
    others = {name: value for name, value in others.items() if value not in (None, False)}
    if others:
        raise TypeError(f"attention() with {', '.join(others)} has no rule for gradients")
    if layout == "bshd" and q.ndim > 2:
        swapped = [x.swapaxes(-3, -2) for x in (q, k, v)]
        options = dict(scale=scale, causal=causal, mask=mask, bias=bias, softcap=softcap)
        return _attention.attention(*swapped, **options).swapaxes(-3, -2)
    heads = q.shape[-3] // k.shape[-3] if q.ndim > 2 and k.ndim > 2 and k.shape[-3] else 1
    if heads > 1:
        k, v = (_by_heads(x, heads) for x in (k, v))
    factor = 1 / math.sqrt(max(1, q.shape[-1])) if scale is None else real(scale, "scale")
    tape, seen = tape_of(q, k, v, bias), _seen(q, k, causal, mask)
    x, y, z = (value_in(tape, one) for one in (q, k, v))
    if bias is not None or softcap or any_traced((x, y, z)):  # by the definition
        return _norms.softmax(_scores(q, k, bias, factor, softcap, seen), -1) @ v
    o, sums = _attention.attention(x, y, z, scale=scale, causal=causal, mask=mask, return_lse=True)
    last: List[Tuple[Array, Array, Array]] = []  # what the three gradients have in common

    def common(g: Array) -> Tuple[Array, Array]:
        """The weights, and the gradient by the scores."""
        if not last or last[0][0] is not g:
            scores = operations.matmul(x, Transposed(y), alpha=factor)
            shown = {} if seen is None else {"m": seen}
            weights = expr("m ? exp(s - l) : 0" if shown else "exp(s - l)", dtype=x.dtype, s=scores, l=sums[..., None], **shown)
            inner = expr("a * b", dtype=np.float32, a=g, b=o).sum(-1, True)
            slopes = expr("p * (d - i)", dtype=x.dtype, p=weights, d=operations.matmul(dense(g), Transposed(z)), i=inner)
            last[:] = [(g, weights, slopes)]
        return last[0][1:]

    rules = (
        (q, lambda g: operations.matmul(common(g)[1], y, alpha=factor)),
        (k, lambda g: operations.matmul(Transposed(common(g)[1]), x, alpha=factor)),
        (v, lambda g: operations.matmul(Transposed(common(g)[0]), dense(g))),
    )
    return tape.add(o, forgetting(pulls_of(tape, rules), last))  # which is as large as the scores


def _scores(q: Any, k: Any, bias: Any, factor: float, softcap: Optional[float], seen: Any) -> Array:
    scores = operations.matmul(q, k.mT) * factor
    if softcap:
        scores = functions.tanh(scores * (1 / softcap)) * softcap
    scores = scores if bias is None else scores + bias.astype(scores.dtype)
    return scores if seen is None else elementwise.where(seen, scores, -math.inf)


def _seen(q: Array, k: Array, causal: Union[bool, str], mask: Any) -> Optional[Array]:
    """Which keys a query sees, as bools or bytes; None: all."""
    if causal not in (True, "top_left", "bottom_right"):
        return mask
    rows, columns = q.shape[-2], k.shape[-2]
    first = np.arange(rows).reshape(-1, 1) + (columns - rows if causal == "bottom_right" else 0)
    i, j = (q.context.array(one, np.int64) for one in (first, np.arange(columns)))
    return expr("j <= i", dtype=np.bool_, i=i, j=j) if mask is None else expr("m && j <= i", dtype=np.bool_, i=i, j=j, m=mask)


def _by_heads(x: Array, times: int) -> Array:
    wide = operations.repeated_to(x.reshape((*x.shape[:-2], 1, *x.shape[-2:])), (*x.shape[:-2], times, *x.shape[-2:]))
    return wide.reshape((*x.shape[:-3], x.shape[-3] * times, *x.shape[-2:]))


@rule("dropout")
def _(generator: Any, x: Traced, p: float = 0.5, *, mask: bool = False, out: object = None) -> Any:
    refuse_out(out, "dropout")
    y, kept = generator.dropout(x.value, p, mask=True)
    scale = 1 / (1 - p) if p < 1 else 0.0
    result = x.tape.add(y, ((x.place, lambda g: expr("m ? g * s : 0", dtype=x.dtype, m=kept, g=g, s=float(scale))),))
    return (result, kept) if mask else result


# --- Rules: convolutions and pooling


def _to_nchw(x: Array) -> Array:
    return x.transpose(0, x.ndim - 1, *range(1, x.ndim - 1))


@rule("conv1d")
def _(x: Array, w: Array, *, stride: Any = 1, padding: Any = 0, dilation: Any = 1, layout: str = "nchw", **options: Any) -> Array:
    """A convolution of images with one row."""
    at = 2 if layout == "nchw" else 1
    high = [one.reshape((*one.shape[:at], 1, *one.shape[at:])) for one in (x, w)]
    (begin,), (end,) = _paddings(padding, 1)
    pairs = ((0, 0), (begin, end))
    if options.get("residual") is not None:
        residual = options["residual"]
        options["residual"] = residual.reshape((*residual.shape[:at], 1, *residual.shape[at:]))
    one = [(1, *numbers(value, 1, name, 1)) for value, name in ((stride, "stride"), (dilation, "dilation"))]
    result = _conv2d(*high, stride=one[0], padding=pairs, dilation=one[1], layout=layout, **options)
    return result.reshape((*result.shape[:at], *result.shape[at + 1 :]))


@rule("conv2d")
def _conv2d(
    x: Any, w: Any, *, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1, bias: Any = None,
    activation: Optional[str] = None, residual: Any = None, layout: str = "nchw", winograd: bool = False, out: object = None
) -> Array:  # fmt: skip
    refuse_out(out, "conv2d")
    if layout == "nhwc":
        images, filters = _to_nchw(x), _to_nchw(w)
        result = _conv2d(images, filters, stride=stride, padding=padding, dilation=dilation, groups=groups, winograd=winograd)
        result = result.transpose(0, 2, 3, 1)
        along = (-1,)
    elif bias is not None or residual is not None or activation is not None:
        result = _conv2d(x, w, stride=stride, padding=padding, dilation=dilation, groups=groups, winograd=winograd)
        along = (-1, 1, 1)
    else:
        return _correlated(x, w, numbers(stride, 2, "stride", 1), _paddings(padding, 2), numbers(dilation, 2, "dilation", 1),
                           whole(groups, "groups", 1), winograd)  # fmt: skip
    result = result if bias is None else result + bias.reshape(along)
    result = result if residual is None else result + residual
    return activated(result, activation)


def _correlated(
    x: Any, w: Any, stride: tuple, padding: Tuple[tuple, tuple], dilation: tuple, groups: int, winograd: bool
) -> Array:
    """conv2d of (N, C, H, W) without additions."""
    if not any_traced((x, w)):
        return _convolution.conv2d(x, w, stride=stride, padding=tuple(zip(*padding)), dilation=dilation, groups=groups)
    tape = tape_of(x, w)
    images, filters = value_in(tape, x), value_in(tape, w)
    form = {"stride": stride, "dilation": dilation, "groups": groups}
    result = _convolution.conv2d(images, filters, padding=tuple(zip(*padding)), winograd=winograd, **form)

    def of_images(g: Array) -> Array:
        # The transposed convolution reaches from the first padded element to the last one that a window reads.
        whole = _convolution.conv_transpose2d(dense(g), filters, **form)
        cut = [(-begin, n + begin - reached) for begin, n, reached in zip(padding[0], x.shape[2:], whole.shape[2:])]
        return _indexing.pad(whole, [(0, 0), (0, 0), *cut])

    rules = ((x, of_images), (w, lambda g: _by_filters(images, dense(g), w.shape[2:], padding=padding, **form)))
    return tape.add(result, pulls_of(tape, rules))


def _by_filters(
    images: Array, g: Array, taps: Tuple[int, int], *, stride: tuple, padding: Tuple[tuple, tuple], dilation: tuple, groups: int
) -> Array:
    """The gradient of a convolution by its filters. Element (k, c, r, s) is the sum over images and results of g and the
    element of the image that r, s reads: a convolution of the images with g, in which images and channels, strides and
    dilations have changed places."""
    n, channels, *spatial = images.shape
    each = channels // groups
    moved = images.reshape((n, groups, each, *spatial)).transpose(2, 1, 0, 3, 4).reshape((each, groups * n, *spatial))
    pairs = tuple(zip(*padding))
    sums = _convolution.conv2d(moved, g.transpose(1, 0, 2, 3), stride=dilation, padding=pairs, dilation=stride, groups=groups)
    return sums[:, :, : taps[0], : taps[1]].transpose(1, 0, 2, 3)


@rule("conv_transpose2d")
def _conv_transpose2d(
    x: Any, w: Any, *, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, dilation: Any = 1, groups: int = 1, bias: Any = None,
    activation: Optional[str] = None, layout: str = "nchw", out: object = None
) -> Array:  # fmt: skip
    refuse_out(out, "conv_transpose2d")
    form = {"stride": stride, "padding": padding, "output_padding": output_padding, "dilation": dilation, "groups": groups}
    if layout == "nhwc":
        result = _convolution.conv_transpose2d(_to_nchw(x), _to_nchw(w), **form).transpose(0, 2, 3, 1)
        return activated(result if bias is None else result + bias, activation)
    if bias is not None or activation is not None:
        result = _convolution.conv_transpose2d(x, w, **form)
        return activated(result if bias is None else result + bias.reshape(-1, 1, 1), activation)
    tape = tape_of(x, w)
    images, filters = value_in(tape, x), value_in(tape, w)
    result = _convolution.conv_transpose2d(images, filters, **form)
    steps, wide = numbers(stride, 2, "stride", 1), numbers(dilation, 2, "dilation", 1)
    # It is the gradient of a convolution by its images: its own is that convolution. What output_padding adds at the end is
    # read by no window.
    edges = numbers(padding, 2, "padding", 0)
    form = {"stride": steps, "dilation": wide, "groups": whole(groups, "groups", 1)}
    rows, columns = x.shape[2:]
    pulls = (
        (x, lambda g: _convolution.conv2d(dense(g), filters, padding=edges, **form)[:, :, :rows, :columns].copy()),
        (w, lambda g: _by_filters(dense(g), images, w.shape[2:], padding=(edges, edges), **form)),
    )
    return tape.add(result, pulls_of(tape, pulls))


@rule("max_pool")
def _(x: Traced, kernel: Any, *, indices: bool = False, layout: str = "nchw", **options: Any) -> Any:
    if layout == "nhwc":
        result = _pool.max_pool(_to_nchw(x), kernel, **options)
        return result.transpose(0, *range(2, x.ndim), 1)
    y, places = _pool.max_pool(constant(x), kernel, indices=True, **options)
    planes = x.shape[0] * x.shape[1]
    # The first of several largest elements of a window, as an index array says.
    rows = np.arange(planes).reshape(-1, 1)
    largest = x.reshape(planes, -1)[rows, places.reshape(planes, -1)].reshape(y.shape)
    return (largest, places) if indices else largest


@rule("avg_pool")
def _(x: Traced, kernel: Any, *, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = False, layout: str = "nchw") -> Array:
    if x.ndim != 4 or ceil_mode:
        raise TypeError("avg_pool() has a rule for gradients with two spatial axes and without ceil_mode")
    if layout == "nhwc":
        options = dict(stride=stride, padding=padding, count_include_pad=count_include_pad)
        return _pool.avg_pool(_to_nchw(x), kernel, **options).transpose(0, 2, 3, 1)
    size, pads = numbers(kernel, 2, "kernel", 1), numbers(padding, 2, "padding")
    steps = size if stride is None else numbers(stride, 2, "stride", 1)
    options = dict(stride=steps, padding=pads)
    y = _pool.avg_pool(x.value, size, count_include_pad=count_include_pad, **options)

    def pull(g: Array) -> Array:
        channels, taps = x.shape[1], math.prod(size)
        share = dense(g) * (1 / taps)
        if not count_include_pad and any(pads):  # the part of a window that is no padding
            inside = _pool.avg_pool(x.context.ones((1, 1, *x.shape[2:]), x.dtype), size, count_include_pad=True, **options)
            share = share / inside
        whole = _convolution.conv_transpose2d(share, x.context.ones((channels, 1, *size), x.dtype), stride=steps, groups=channels)
        return _indexing.pad(whole, [(0, 0), (0, 0), *((-p, n + p - m) for p, n, m in zip(pads, x.shape[2:], whole.shape[2:]))])

    return x.tape.add(y, ((x.place, pull),))


@rule("adaptive_avg_pool")
def _(x: Traced, shape: Any, *, layout: str = "nchw") -> Array:
    axes = x.ndim - 2
    if any(n != 1 for n in numbers(shape, axes, "shape")):
        raise TypeError("adaptive_avg_pool() has a rule for gradients where the shape is 1")
    return x.mean(tuple(range(2, x.ndim)) if layout == "nchw" else tuple(range(1, x.ndim - 1)), True)
