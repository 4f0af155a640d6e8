"""Gradients of softmax, normalisations, attention, positions, convolutions, pooling and resizing: the rules of tuff.grad."""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

import numpy as np

from . import _attention, _convolution, _indexing, _norms, _pool, _position, _resize
from . import _elementwise as elementwise
from . import _functions as functions
from . import _operations as operations
from ._array import Array
from ._checked import is_number, real, whole
from ._expression import expr
from ._gradients import activated
from ._images import channels_second, numbers
from ._tape import (
    Tape,
    Traced,
    constant,
    dense,
    forgetting,
    noted,
    pulls_of,
    refuse_out,
    rule,
    summed_to,
    tape_of,
    value_in,
    widened,
)
from ._tracing import any_traced

# --- Rules: softmax, normalisations, attention


def _softmax(x: Any, axis: int, scale: float, mask: Any, out: object, logarithm: bool) -> Array:
    refuse_out(out, "softmax")
    if any_traced((mask,)):  # an added mask is a term
        return _softmax(x * scale + mask, axis, 1.0, None, None, logarithm)
    function = _norms.log_softmax if logarithm else _norms.softmax
    y = function(x.value, axis, scale=scale, mask=mask)

    def pull(g: Array) -> Array:
        if not any_traced((g, y)):
            return _norms.softmax_gradient(y, dense(g), axis, scale, logarithm)
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


def _by_one_call(
    tape: Tape,
    y: Array,
    operands: Dict[str, Any],
    gradients: Callable[[Array, List[str]], Dict[str, Array]],
    composed: Callable[..., Array],
) -> Array:
    """Notes y, whose gradients by all operands one call computes, given that by y and the names of those that are wanted.
    `composed` is the same function of the operands, of operations that have rules, for gradients of gradients."""
    values = {name: value_in(tape, one) for name, one in operands.items()}
    wanted = [name for name, one in operands.items() if isinstance(one, Traced) and one.tape is tape]
    last: List[Any] = []  # a gradient, and those by the operands

    def pull(name: str, g: Array) -> Array:
        if any_traced((g,)):  # the gradients are linear in this one, which is being differentiated by
            inner = Tape()
            leaves = {key: None if one is None else inner.add(one) for key, one in values.items()}
            return inner.gradients(composed(*leaves.values()).place, g)[leaves[name].place]
        if not last or last[0] is not g:
            last[:] = [g, gradients(dense(g), wanted)]
        return last[1][name]

    pulls = [(operands[name].place, lambda g, name=name: pull(name, g)) for name in wanted]
    return tape.add(y, forgetting(pulls, last))


def _normalised(
    kind: str, x: Any, weight: Any, bias: Any, forward: Callable[..., Array], composed: Callable[..., Array], **options: Any
) -> Array:  # fmt: skip
    """A normalisation by its own kernels, and its gradients by tuff_norm_backward; `composed` is the same of operations that
    have rules, for gradients of gradients and for float64. Both functions take x, weight and bias."""
    tape = tape_of(x, weight, bias)
    v, w, b = (value_in(tape, one) for one in (x, weight, bias))
    if any_traced((v, w, b)) or x.dtype == np.float64:
        return composed(x, weight, bias)
    given = [one for one in (w, b) if one is not None]
    options.update(weight=w, weight_dtype=given[0].dtype if given else x.dtype)

    def gradients(g: Array, wanted: List[str]) -> Dict[str, Array]:
        return _norms.norm_gradients(kind, v, g, wanted, **options)

    return _by_one_call(tape, forward(v, w, b), {"x": x, "weight": weight, "bias": bias}, gradients, composed)


def _mean_and_variance(x: Array) -> Dict[str, Array]:
    return {"x": x, "m": x.mean(-1, True), "v": x.var(-1, 0.0, True)}


_NORMAL = "(x - m) * rsqrt(v + e)"


@rule("layer_norm")
def _(x: Array, weight: Any = None, bias: Any = None, *, epsilon: float = 1e-5, residual: Any = None, sum_out: object = None, out: object = None) -> Array:
    x = _added(x, residual, sum_out, out)
    epsilon = real(epsilon, "epsilon")

    def composed(x: Array, weight: Any, bias: Any) -> Array:
        normal = expr(_NORMAL, e=epsilon, **_mean_and_variance(widened(x)))
        return _scaled(normal, weight, bias, (-1,)).astype(x.dtype)

    return _normalised("layer", x, weight, bias, lambda x, w, b: _norms.layer_norm(x, w, b, epsilon=epsilon), composed, epsilon=epsilon)


@rule("rms_norm")
def _(x: Array, weight: Any = None, *, epsilon: float = 1e-5, residual: Any = None, sum_out: object = None, out: object = None) -> Array:
    x = _added(x, residual, sum_out, out)
    epsilon = real(epsilon, "epsilon")

    def composed(x: Array, weight: Any, bias: Any) -> Array:
        wide = widened(x)
        normal = expr("x * rsqrt(s + e)", x=wide, s=functions.square(wide).mean(-1, True), e=epsilon)
        return _scaled(normal, weight, None, (-1,)).astype(x.dtype)

    return _normalised("rms", x, weight, None, lambda x, w, b: _norms.rms_norm(x, w, epsilon=epsilon), composed, epsilon=epsilon)


def _along_channels(x: Array) -> Tuple[int, ...]:
    return (x.shape[1], *(1,) * (x.ndim - 2))


@rule("group_norm")
def _(x: Array, groups: int, weight: Any = None, bias: Any = None, *, epsilon: float = 1e-5, out: object = None) -> Array:
    refuse_out(out, "group_norm")
    groups, epsilon = whole(groups, "groups", 1), real(epsilon, "epsilon")

    def composed(x: Array, weight: Any, bias: Any) -> Array:
        normal = expr(_NORMAL, e=epsilon, **_mean_and_variance(widened(x).reshape(x.shape[0] * groups, -1))).reshape(x.shape)
        return _scaled(normal, weight, bias, _along_channels(x)).astype(x.dtype)

    def forward(x: Array, weight: Any, bias: Any) -> Array:
        return _norms.group_norm(x, groups, weight, bias, epsilon=epsilon)

    return _normalised("group", x, weight, bias, forward, composed, epsilon=epsilon, groups=groups)


@rule("batch_norm")
def _(x: Array, mean: Array, variance: Array, weight: Any = None, bias: Any = None, *, epsilon: float = 1e-5, out: object = None) -> Array:
    refuse_out(out, "batch_norm")
    epsilon = real(epsilon, "epsilon")

    def composed(x: Array, weight: Any, bias: Any) -> Array:
        shape = _along_channels(x)
        given = [one.astype(np.float32).reshape(shape) for one in (mean, variance)]
        normal = expr(_NORMAL, dtype=widened(x).dtype, x=x, m=given[0], v=given[1], e=epsilon)
        return _scaled(normal, weight, bias, shape).astype(x.dtype)

    def forward(x: Array, weight: Any, bias: Any) -> Array:
        return _norms.batch_norm(x, mean, variance, weight, bias, epsilon=epsilon)

    if any_traced((mean, variance)):  # gradients by these
        return composed(x, weight, bias)
    return _normalised("batch", x, weight, bias, forward, composed, epsilon=epsilon, mean=mean, variance=variance, frozen=True)


@rule("batch_norm_training")
def _(
    x: Array, weight: Any = None, bias: Any = None, *, running_mean: Any = None, running_variance: Any = None, momentum: float = 0.1,
    epsilon: float = 1e-5, statistics: bool = False, out: object = None
) -> Any:  # fmt: skip
    """The statistics that the forward pass finds are those of the backward pass; as results of their own they are constants."""
    refuse_out(out, "batch_norm_training")
    epsilon = real(epsilon, "epsilon")
    if any_traced((running_mean, running_variance)):
        raise TypeError("batch_norm_training has no gradient by running_mean or running_variance")
    result, mean, variance = _norms.batch_norm_training(
        *(constant(one) for one in (x, weight, bias)), running_mean=running_mean, running_variance=running_variance, momentum=momentum,
        epsilon=epsilon, statistics=True,
    )  # fmt: skip

    def composed(x: Array, weight: Any, bias: Any) -> Array:
        by_channel = widened(x).swapaxes(0, 1)
        normal = expr(_NORMAL, e=epsilon, **_mean_and_variance(by_channel.reshape(x.shape[1], -1)))
        return _scaled(normal.reshape(by_channel.shape).swapaxes(0, 1), weight, bias, _along_channels(x)).astype(x.dtype)

    y = _normalised("batch", x, weight, bias, lambda *_: result, composed, epsilon=epsilon, mean=mean, variance=variance)
    return (y, mean, variance) if statistics else y


@rule("attention")
def _attention_rule(
    q: Any, k: Any, v: Any, *, scale: Optional[float] = None, causal: Union[bool, str] = False, layout: str = "bhsd",
    keys: Optional[int] = None, mask: Any = None, bias: Any = None, window: Any = None, softcap: Optional[float] = None,
    q_lengths: Any = None, kv_lengths: Any = None, return_lse: bool = False, k_scales: Any = None, v_scales: Any = None,
    out: object = None
) -> Array:  # fmt: skip
    """By tuff_attention_backward: the weights are computed anew from the sums of each row, which the forward pass keeps."""
    refuse_out(out, "attention")
    if return_lse:
        raise TypeError("attention() with return_lse has no rule for gradients")
    if k_scales is not None or v_scales is not None or any(_attention.is_stored(x) for x in (k, v)):
        raise TypeError("attention() with quantised keys or values has no gradients")
    tape = tape_of(q, k, v, bias)
    x, y, z, b = (value_in(tape, one) for one in (q, k, v, bias))
    others: Dict[str, Any] = dict(keys=keys, window=window, q_lengths=q_lengths, kv_lengths=kv_lengths)

    def by_definition(q: Any, k: Any, v: Any, bias: Any) -> Array:
        given = [name for name, value in others.items() if value is not None]
        if given:
            raise TypeError(f"attention() with {', '.join(given)} has no gradients of gradients")
        return _attention_by_definition(q, k, v, scale, causal, layout, mask, bias, softcap)

    if any_traced((x, y, z, b)):  # gradients of gradients
        return by_definition(q, k, v, bias)
    options: Dict[str, Any] = dict(scale=scale, causal=causal, layout=layout, mask=mask, bias=b, softcap=softcap, **others)
    o, sums = _attention.attention(x, y, z, return_lse=True, **options)

    def gradients(g: Array, wanted: List[str]) -> Dict[str, Array]:
        return _attention.attention_gradients(x, y, z, o, sums, g, wanted, **options)

    return _by_one_call(tape, o, {"q": q, "k": k, "v": v, "bias": bias}, gradients, by_definition)


def _attention_by_definition(
    q: Any, k: Any, v: Any, scale: Optional[float], causal: Union[bool, str], layout: str, mask: Any, bias: Any, softcap: Optional[float]
) -> Array:
    """All scores in memory, by operations that have rules of their own."""
    if layout == "bshd" and q.ndim > 2:
        swapped = [x.swapaxes(-3, -2) for x in (q, k, v)]
        return _attention_by_definition(*swapped, scale, causal, "bhsd", mask, bias, softcap).swapaxes(-3, -2)
    heads = q.shape[-3] // k.shape[-3] if q.ndim > 2 and k.ndim > 2 and k.shape[-3] else 1
    if heads > 1:
        k, v = (_by_heads(x, heads) for x in (k, v))
    factor = 1 / math.sqrt(max(1, q.shape[-1])) if scale is None else real(scale, "scale")
    return _norms.softmax(_scores(q, k, bias, factor, softcap, _seen(q, k, causal, mask)), -1) @ v


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


@rule("rope")
def _(
    x: Traced, positions: Optional[Array] = None, *, offset: int = 0, base: float = 10000.0, rotary_dim: Optional[int] = None,
    interleaved: bool = False, heads_last: bool = False, out: object = None
) -> Array:  # fmt: skip
    """The transpose of a rotation is that by the negative angle, and angles are multiples of positions."""
    refuse_out(out, "rope")
    options = dict(base=base, rotary_dim=rotary_dim, interleaved=interleaved, heads_last=heads_last)
    y = _position.rope(x.value, positions, offset=offset, **options)

    def pull(g: Array) -> Array:
        if positions is None:
            back = x.context.array(-np.arange(x.shape[1 if heads_last else 2], dtype=np.int32))
        else:
            back = expr("-p", dtype=np.int32, p=positions)
        return _position.rope(dense(g), back, offset=-offset, **options)

    return x.tape.add(y, ((x.place, pull),))


@rule("dropout")
def _(generator: Any, x: Traced, p: float = 0.5, *, mask: bool = False, out: object = None) -> Any:
    refuse_out(out, "dropout")
    y, kept = generator.dropout(x.value, p, mask=True)
    scale = 1 / (1 - p) if p < 1 else 0.0
    result = x.tape.add(y, ((x.place, lambda g: expr("m ? g * s : 0", dtype=x.dtype, m=kept, g=g, s=float(scale))),))
    return (result, kept) if mask else result


# --- Rules: convolutions and pooling


# A convolution C(x, w), its gradient by x, D(g, w), and that by w, F(x, g), are linear in both operands, and the gradients of
# each are the others.


def _bilinear(result: Any, a: Any, of_a: Any, b: Any, of_b: Any) -> Array:
    """The value of a function of two arrays, and its gradients, from functions of the gradient and of the other operand."""
    tape = tape_of(a, b)
    x, y = value_in(tape, a), value_in(tape, b)
    return tape.add(result(x, y), pulls_of(tape, ((a, lambda g: of_a(dense(g), y)), (b, lambda g: of_b(dense(g), x)))))


def _window(w: Array, layout: str) -> Tuple[int, ...]:
    return channels_second(w.shape, layout)[2:]


def _convolution_rule(name: str, rank: int) -> None:
    function = getattr(_convolution, name)

    @rule(name)
    def _(
        x: Any, w: Any, *, bias: Any = None, activation: Optional[str] = None, residual: Any = None, winograd: bool = False,
        out: object = None, **form: Any
    ) -> Array:  # fmt: skip
        refuse_out(out, name)
        options = {"winograd": winograd} if winograd else {}
        if any_traced((x, w)):
            result = _bilinear(
                lambda x, w: function(x, w, **options, **form),
                x,
                lambda g, w: _convolution.conv_backward_data(g, w, x.shape, **form),
                w,
                lambda g, x: _convolution.conv_backward_filter(x, g, _window(w, form.get("layout", "nchw")), **form),
            )
        else:
            result = function(x, w, **options, **form)
        along = (-1,) if form.get("layout") == "nhwc" else (-1, *(1,) * rank)
        result = result if bias is None else result + bias.reshape(along)
        result = result if residual is None else result + residual
        return activated(result, activation)


for _name, _rank in (("conv1d", 1), ("conv2d", 2), ("conv3d", 3)):
    _convolution_rule(_name, _rank)


def _conv(x: Any, w: Any, **form: Any) -> Array:
    return (_convolution.conv1d, _convolution.conv2d, _convolution.conv3d)[x.ndim - 3](x, w, **form)


@rule("conv_backward_data")
def _(dy: Any, w: Any, shape: Any, **form: Any) -> Array:
    return _bilinear(
        lambda dy, w: _convolution.conv_backward_data(dy, w, shape, **form),
        dy,
        lambda g, w: _conv(g, w, **form),
        w,
        lambda g, dy: _convolution.conv_backward_filter(g, dy, _window(w, form.get("layout", "nchw")), **form),
    )


@rule("conv_backward_filter")
def _(x: Any, dy: Any, window: Any, **form: Any) -> Array:
    return _bilinear(
        lambda x, dy: _convolution.conv_backward_filter(x, dy, window, **form),
        x,
        lambda g, dy: _convolution.conv_backward_data(dy, g, x.shape, **form),
        dy,
        lambda g, x: _conv(x, g, **form),
    )


@rule("conv_transpose2d")
def _(
    x: Any, w: Any, *, padding: Any = 0, output_padding: Any = 0, bias: Any = None, activation: Optional[str] = None,
    layout: str = "nchw", out: object = None, **form: Any
) -> Array:  # fmt: skip
    """The gradient of a convolution by its images: its own gradients are that convolution, and its gradient by the filters."""
    refuse_out(out, "conv_transpose2d")
    edges, further = numbers(padding, 2, "padding", 0), numbers(output_padding, 2, "output_padding", 0)
    if any_traced((x, w)):
        # What output_padding adds takes the place of padding. Beyond that no window of these outputs reads, and a stride of it
        # would be one more output.
        strides = numbers(form.get("stride", 1), 2, "stride", 1)
        beyond = [max(more - p, 0) for p, more in zip(edges, further)]
        left_out = [n if n >= stride else 0 for n, stride in zip(beyond, strides)]
        ends = {"padding": tuple((p, max(p - more, 0)) for p, more in zip(edges, further)), "layout": layout, **form}

        def read(g: Array) -> Array:
            if not any(left_out):
                return g
            cut = tuple(slice(None, -n if n else None) for n in left_out)
            return dense(g[(slice(None), *cut)] if layout == "nhwc" else g[(slice(None), slice(None), *cut)])

        result = _bilinear(
            lambda x, w: _convolution.conv_transpose2d(x, w, padding=edges, output_padding=further, layout=layout, **form),
            x,
            lambda g, w: _convolution.conv2d(read(g), w, **ends),
            w,
            lambda g, x: _convolution.conv_backward_filter(read(g), x, _window(w, layout), **ends),
        )
    else:
        result = _convolution.conv_transpose2d(x, w, padding=edges, output_padding=further, layout=layout, **form)
    return activated(result if bias is None else result + bias.reshape((-1,) if layout == "nhwc" else (-1, 1, 1)), activation)


def _largest(x: Any, layout: str, fields: dict, windows: dict) -> Tuple[Array, Array]:
    """Maxima and their places; windows: how max_pool_backward() names what `fields` has."""
    if not isinstance(x, Traced):
        return _pool.pooled(x, layout, **fields)
    y, places = _largest(x.value, layout, fields, windows)

    def pull(g: Array) -> Array:
        return _pool.max_pool_backward(dense(g), places, x.shape, layout=layout, **windows)

    return x.tape.add(y, ((x.place, pull),)), places


@rule("max_pool")
def _(x: Traced, kernel: Any, *, indices: bool = False, layout: str = "nchw", **options: Any) -> Any:
    fields = _pool.windows_of(x, kernel, indices=indices, layout=layout, **options)
    y, places = _largest(x, layout, fields, {"kernel": kernel, **options})
    return (y, places) if indices else y


@rule("adaptive_max_pool")
def _(x: Traced, shape: Any, *, indices: bool = False, layout: str = "nchw") -> Any:
    y, places = _largest(x, layout, _pool.parts_of(x, shape, indices=indices, layout=layout), {"kernel": None})
    return (y, places) if indices else y


def _in_windows(indices: Array, shape: Tuple[int, ...], layout: str, fields: dict) -> Array:
    """Which indices are of taps of their windows, on arrays of a shape; fields: those of gradient_fields()."""
    first = 2 if layout == "nchw" else 1
    taps = expr("i < plane", dtype=np.bool_, i=indices, plane=math.prod(shape[first:]))
    inner = 1  # elements of a plane from one position along the axis to the next
    for axis in reversed(range(first, len(shape))):
        size, outputs, at = shape[axis], np.arange(indices.shape[axis]), axis - first
        padding, step = 0, 1
        if at == len(fields["shape"]):  # channels that are last are one more axis, whose windows have one element
            begin, end = outputs, outputs + 1
        elif "adaptive" in fields:
            begin, end = outputs * size // len(outputs), -(-(outputs + 1) * size // len(outputs))
        else:
            padding, step = fields["padding"][at], fields["dilation"][at]
            begin = outputs * fields["stride"][at]
            end = begin + step * (fields["kernel"][at] - 1) + 1
        begin, end = (
            indices.context.array(one.astype(np.uint32).reshape(-1, *(1,) * (len(shape) - axis - 1))) for one in (begin, end)
        )
        place = expr("i // inner % size + padding", dtype=np.uint32, i=indices, inner=inner, size=size, padding=padding)
        taps &= expr(
            "begin <= place && place < end && (place - begin) % step == 0",
            dtype=np.bool_, begin=begin, end=end, place=place, step=step,
        )  # fmt: skip
        inner *= size
    return taps


@rule("max_pool_backward")
def _(dy: Traced, indices: Array, shape: Any, kernel: Any, *, layout: str = "nchw", **options: Any) -> Array:
    value = _pool.max_pool_backward(dy.value, indices, shape, kernel, layout=layout, **options)

    def pull(g: Array) -> Array:
        fields = _pool.gradient_fields(dy, value.shape, kernel, layout=layout, **options)
        taps = _in_windows(indices, value.shape, layout, fields)
        first = 1 if layout == "nhwc" else 2
        planes, outputs, inputs = math.prod(dy.shape[:first]), math.prod(dy.shape[first:]), math.prod(value.shape[first:])
        rows = np.arange(planes).reshape(-1, 1)
        places = expr("t ? i : 0", dtype=np.uint32, t=taps, i=indices)
        found = g.reshape(planes, inputs)[rows, places.reshape(planes, outputs)].reshape(dy.shape)
        return elementwise.where(taps, found, 0.0)

    return dy.tape.add(value, ((dy.place, pull),))


@rule("avg_pool")
def _(x: Traced, kernel: Any, **options: Any) -> Array:
    return noted(x, lambda v: _pool.avg_pool(v, kernel, **options),
                 lambda g: _pool.avg_pool_backward(dense(g), x.shape, kernel, **options))  # fmt: skip


@rule("adaptive_avg_pool")
def _(x: Traced, shape: Any, *, layout: str = "nchw") -> Array:
    return noted(x, lambda v: _pool.adaptive_avg_pool(v, shape, layout=layout),
                 lambda g: _pool.avg_pool_backward(dense(g), x.shape, None, layout=layout))  # fmt: skip


@rule("avg_pool_backward")
def _(dy: Traced, shape: Any, kernel: Any, **options: Any) -> Array:
    def pull(g: Array) -> Array:
        layout = options.get("layout", "nchw")
        if kernel is None:
            return _pool.adaptive_avg_pool(dense(g), channels_second(dy.shape, layout)[2:], layout=layout)
        return _pool.avg_pool(dense(g), kernel, **options)

    return noted(dy, lambda v: _pool.avg_pool_backward(v, shape, kernel, **options), pull)


@rule("resize")
def _(
    x: Traced, shape: Any, mode: str = "linear", *, align_corners: bool = False, scale: Any = None, layout: str = "nchw", out: object = None
) -> Array:  # fmt: skip
    """What an axis becomes is a product with a matrix, which the resized identity is; its gradient is one with the transpose."""
    refuse_out(out, "resize")
    y = _resize.resize(x.value, shape, mode, align_corners=align_corners, scale=scale, layout=layout)
    axes = x.ndim - 2
    sizes = numbers(shape, axes, "shape")
    scales = [None] * axes if scale is None else [scale] * axes if is_number(scale) else list(scale)
    first = 2 if layout == "nchw" else 1

    def along(g: Array, i: int) -> Array:
        size = x.shape[first + i]
        eye = x.context.array(np.eye(size, dtype=np.float32)).reshape(1, size, size)
        matrix = _resize.resize(eye, sizes[i], mode, align_corners=align_corners, scale=scales[i])[0]  # (in, out)
        last = g.ndim - 1
        moved = dense(g.swapaxes(first + i, last))
        return (moved.astype(np.float32) @ matrix.astype(np.float32).mT).swapaxes(first + i, last)

    def pull(g: Array) -> Array:
        for i in range(axes):
            g = along(g, i)
        return g.astype(x.dtype)

    return x.tape.add(y, ((x.place, pull),))
