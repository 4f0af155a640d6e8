"""Recurrent networks: LSTM, GRU and plain cells, of any number of layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from . import raw
from ._checked import choice, real, sequence
from ._error import check
from ._operands import dtype_of, require_array, same_context, same_kind
from ._tracing import differentiable

if TYPE_CHECKING:
    from ._array import Array
    from ._context import Context
    from ._random import Generator

__all__ = ["RnnLayer", "gru", "lstm", "rnn", "rnn_layers"]


class RnnLayer(NamedTuple):
    """The weights of one layer, with D directions (1, or 2: forward and reverse) and G gates.

    w           (D, G * hidden, input); if D is 1 it may be omitted in all of them
    r           (D, G * hidden, proj or hidden)
    bias_w, bias_r
                (D, G * hidden)
    peepholes   (D, 3 * hidden), of the input, output and forget gates of an LSTM
    projection  (D, proj, hidden), of an LSTM
    """

    w: Array
    r: Array
    bias_w: Optional[Array] = None
    bias_r: Optional[Array] = None
    peepholes: Optional[Array] = None
    projection: Optional[Array] = None


Layers = Union[RnnLayer, Sequence[RnnLayer]]

_GATES = {raw.RNN_CELL_LSTM: 4, raw.RNN_CELL_GRU: 3, raw.RNN_CELL_TANH: 1, raw.RNN_CELL_RELU: 1}
_ORDERS = {"torch": raw.RNN_GATES_TORCH, "onnx": raw.RNN_GATES_ONNX}
_ACTIVATIONS = {"tanh": raw.RNN_CELL_TANH, "relu": raw.RNN_CELL_RELU}


@differentiable
def lstm(
    x: Array,
    layers: Layers,
    *,
    h0: Optional[Array] = None,
    c0: Optional[Array] = None,
    lengths: Optional[Array] = None,
    batch_first: bool = False,
    reverse: bool = False,
    order: str = "torch",
    clip: float = 0.0,
    dropout: float = 0.0,
    generator: Optional[Generator] = None,
) -> Tuple[Array, Tuple[Array, Array]]:
    """Long short-term memory. Returns (y, (hn, cn)), as torch.nn.LSTM does.

    x is (steps, batch, input), or (batch, steps, input) with batch_first, or (steps, input) without a batch. layers is
    an RnnLayer, or one for each layer; the input of each after the first is the output of the one before. y has the
    directions of the last layer side by side: (steps, batch, D * hidden), in x's layout. h0 and hn are (layers * D, batch, hidden), with a projection (layers * D, batch, proj),
    c0 and cn (layers * D, batch, hidden); None is zeros.

    lengths  (batch,), int32: the steps of each sequence, which need not be sorted. Outputs beyond are 0
    reverse  a layer with one direction goes from the end to the beginning
    order    of the gates in the weights: "torch" (input, forget, cell, output) or "onnx" (input, output, forget, cell)
    clip     sums are limited to -clip … clip; 0: they are not
    dropout  the outputs of every layer but the last are dropped with this probability, by generator, a tuff.Generator; 0 for
             inference
    """
    y, hn, cn = _run(raw.RNN_CELL_LSTM, x, layers, h0, c0, lengths, batch_first, reverse, order, clip, False, (dropout, generator))
    return y, (hn, cn)


@differentiable
def gru(
    x: Array,
    layers: Layers,
    *,
    h0: Optional[Array] = None,
    lengths: Optional[Array] = None,
    batch_first: bool = False,
    reverse: bool = False,
    order: str = "torch",
    linear_before_reset: bool = True,
    clip: float = 0.0,
    dropout: float = 0.0,
    generator: Optional[Generator] = None,
) -> Tuple[Array, Array]:
    """Gated recurrent units, with the arguments of lstm(). Returns (y, hn), as torch.nn.GRU does.

    order is "torch" (reset, update, new) or "onnx" (update, reset, new). linear_before_reset: the reset gate multiplies
    the product with h and its bias, as in PyTorch; without it h itself, as ONNX does by default.
    """
    y, hn, _ = _run(
        raw.RNN_CELL_GRU, x, layers, h0, None, lengths, batch_first, reverse, order, clip, bool(linear_before_reset),
        (dropout, generator),
    )  # fmt: skip
    return y, hn


@differentiable
def rnn(
    x: Array,
    layers: Layers,
    *,
    activation: str = "tanh",
    h0: Optional[Array] = None,
    lengths: Optional[Array] = None,
    batch_first: bool = False,
    reverse: bool = False,
    clip: float = 0.0,
    dropout: float = 0.0,
    generator: Optional[Generator] = None,
) -> Tuple[Array, Array]:
    """h = activation(w @ x + bias_w + r @ h + bias_r) from step to step, with the arguments of lstm(). Returns (y, hn),
    as torch.nn.RNN does. activation is "tanh" or "relu".
    """
    cell = choice(activation, "activation", _ACTIVATIONS)
    y, hn, _ = _run(cell, x, layers, h0, None, lengths, batch_first, reverse, "torch", clip, False, (dropout, generator))
    return y, hn


def rnn_layers(state: Mapping[str, object], context: Optional[Context] = None) -> List[RnnLayer]:
    """The weights of a torch.nn.LSTM, GRU or RNN: state is what its state_dict() returns, or any mapping from those
    names ("weight_ih_l0", "weight_hh_l0_reverse" …) to what numpy.asarray() takes."""
    from ._default import default_context

    context = default_context() if context is None else context
    left = set(state)
    layers: List[RnnLayer] = []
    while f"weight_ih_l{len(layers)}" in state:
        number = len(layers)
        suffixes = [f"l{number}"] + ([f"l{number}_reverse"] if f"weight_ih_l{number}_reverse" in state else [])
        fields: Dict[str, Array] = {}
        for field, prefix in _NAMES.items():
            names = [f"{prefix}_{suffix}" for suffix in suffixes]
            if names[0] not in state:
                continue
            missing = [name for name in names if name not in state]
            if missing:
                raise ValueError(f"{missing[0]} is missing")
            left.difference_update(names)
            values = np.stack([np.asarray(state[name]) for name in names])
            fields[field] = context.array(values, dtype=values.dtype)
        if "r" not in fields:
            raise ValueError(f"weight_hh_l{number} is missing")
        layers.append(RnnLayer(**fields))
    if not layers:
        raise ValueError("weight_ih_l0 is missing")
    if left:
        raise ValueError(f"{min(left)} is not the name of a recurrent layer's weights")
    return layers


_NAMES = {"w": "weight_ih", "r": "weight_hh", "bias_w": "bias_ih", "bias_r": "bias_hh", "projection": "weight_hr"}


def listed_layers(layers: Layers) -> List[RnnLayer]:
    """One layer, or several, as a list of at least one."""
    listed = [layers] if isinstance(layers, RnnLayer) else sequence(layers, "layers", "an RnnLayer, or one for each layer")
    if not listed:
        raise ValueError("layers is empty, needs at least one")
    for number, layer in enumerate(listed):
        if not isinstance(layer, tuple):
            raise TypeError(f"layer {number} is {type(layer).__name__}, not an RnnLayer")
    return [RnnLayer(*layer) for layer in listed]


def common_sizes(layers: Sequence[RnnLayer], cell: int, first: int = 0) -> Tuple[int, int, int]:
    """The directions, hidden units and size of h, which are those of every layer."""
    sizes = [_sizes(layer, _GATES[cell], f" of layer {first + number}") for number, layer in enumerate(layers)]
    for number, each in enumerate(sizes):
        if each != sizes[0]:
            raise ValueError(f"layer {first + number} has other sizes than layer {first}: {each}")
    return sizes[0]


def checked_dropout(dropout: object, generator: Optional[Generator]) -> float:
    probability = real(dropout, "dropout")
    if not 0 <= probability <= 1:
        raise ValueError(f"dropout is {probability}, needs 0 to 1")
    if probability != 0 and generator is None:
        raise TypeError("dropout needs a generator, a tuff.Generator")
    return probability


def _steps_and_batch(x: Array, batch_first: bool) -> Tuple[int, int]:
    if x.ndim != 3:
        return x.shape[0], 1
    return (x.shape[1], x.shape[0]) if batch_first else (x.shape[0], x.shape[1])


def _run(
    cell: int,
    x: Array,
    layers: Layers,
    h0: Optional[Array],
    c0: Optional[Array],
    lengths: Optional[Array],
    batch_first: bool,
    reverse: bool,
    order: str,
    clip: float,
    linear_before_reset: bool,
    dropping: Tuple[float, Optional[Generator]],
    first: int = 0,
) -> Tuple[Array, Array, Optional[Array]]:
    """first: the number of the first of the layers, for errors."""
    require_array(x, "x")
    if x.ndim not in (2, 3):
        raise ValueError(f"x has shape {x.shape}, needs (steps, batch, input) or (steps, input)")
    gates = choice(order, "order", _ORDERS)
    listed = listed_layers(layers)
    directions, hidden, width = common_sizes(listed, cell, first)
    batched = x.ndim == 3
    _, batch = _steps_and_batch(x, batch_first)
    if lengths is not None:
        require_array(lengths, "lengths")
        if lengths.shape != (batch,) or lengths.dtype != np.int32:
            raise ValueError(f"lengths is {lengths.shape} of {lengths.dtype}, needs ({batch},) of int32")
        same_context(x.context, lengths.context)
    generator = dropping[1]
    probability = checked_dropout(*dropping)
    rows = len(listed) * directions
    shapes = {"h": (rows, batch, width) if batched else (rows, width), "c": (rows, batch, hidden) if batched else (rows, hidden)}
    for given, name in ((h0, "h"), (c0, "c")):
        if given is None:
            continue
        require_array(given, name + "0")
        same_kind(x, given)
        if given.shape != shapes[name]:
            raise ValueError(f"{name}0 has shape {given.shape}, needs {shapes[name]}")
    hn = x.context.empty(shapes["h"], x.dtype)
    cn = x.context.empty(shapes["c"], x.dtype) if cell == raw.RNN_CELL_LSTM else None
    size = x.dtype.itemsize
    rest = (lengths, batch_first, reverse, gates, clip, linear_before_reset)
    for number, layer in enumerate(listed):
        y = x.context.empty(x.shape[:-1] + (directions * width,), x.dtype)
        desc = raw.RnnDesc(y=y.buffer.handle)
        desc.y_strides[:] = _describe(desc, cell, x, layer, f" of layer {first + number}", *rest)
        views = []  # live until the call has returned
        for name, state, of in (("h0", h0, width), ("c0", c0, hidden), ("hn", hn, width), ("cn", cn, hidden)):
            if state is not None:
                each = directions * batch * of * size
                views.append(state.buffer.view(number * each, each))
                setattr(desc, name, views[-1].handle)
        check(raw.tuff_rnn(x.context.stream_handle, desc))
        if probability != 0 and generator is not None and number + 1 != len(listed):
            generator.dropout(y, probability, out=y)
        x = y
    return x, hn, cn


def _describe(
    desc: Union[raw.RnnDesc, raw.RnnBackwardDesc],
    cell: int,
    x: Array,
    layer: RnnLayer,
    suffix: str,
    lengths: Optional[Array],
    batch_first: bool,
    reverse: bool,
    gates: int,
    clip: float,
    linear_before_reset: bool,
) -> Tuple[int, int, int]:
    """Fills in a layer, but for its initial states, and returns the strides of its outputs."""
    count = _GATES[cell]
    directions, hidden, width = _sizes(layer, count, suffix)
    inputs = x.shape[-1]
    steps, batch = _steps_and_batch(x, batch_first)
    desc.dtype, desc.cell, desc.gate_order = dtype_of(x), cell, gates
    desc.direction = raw.RNN_DIRECTION_BOTH if directions == 2 else int(bool(reverse))
    desc.linear_before_reset = int(linear_before_reset)
    desc.batch, desc.steps, desc.input_size, desc.hidden_size = batch, steps, inputs, hidden
    desc.proj_size = 0 if layer.projection is None else width
    desc.clip = real(clip, "clip")
    desc.x = x.buffer.handle
    for name, shape in _shapes(directions, count, hidden, width, inputs).items():
        operand = getattr(layer, name)
        if operand is None:
            continue
        require_array(operand, f"{name}{suffix}")
        same_kind(x, operand)
        if operand.shape != shape and (directions != 1 or operand.shape != shape[1:]):
            raise ValueError(f"{name}{suffix} has shape {operand.shape}, needs {shape}")
        setattr(desc, name, operand.buffer.handle)
    if lengths is not None:
        desc.lengths = lengths.buffer.handle
    if x.ndim != 3 or not batch_first:
        return (0, 0, 0)
    desc.x_strides[:] = (inputs, steps * inputs)
    return (directions * width, steps * directions * width, width)


#: What a layer is differentiated by: fields of RnnLayer, and x, h0 and c0.
OPERANDS = ("x", "h0", "c0", *RnnLayer._fields)


def layer_gradients(
    cell: int,
    values: Mapping[str, Optional[Array]],
    given: Mapping[str, Optional[Array]],
    wanted: Sequence[str],
    *rest: Any,
) -> Dict[str, Array]:
    """Gradients of one layer by the operands `wanted`. given: by y, hn and cn. rest: as _describe() takes it."""
    x, layer = values["x"], RnnLayer(*(values[name] for name in RnnLayer._fields))
    assert x is not None
    desc = raw.RnnBackwardDesc()
    strides = _describe(desc, cell, x, layer, "", *rest)
    desc.dy_strides[:] = strides
    desc.dx_strides[:] = tuple(desc.x_strides)
    for name in ("h0", "c0"):
        state = values[name]
        if state is not None:
            setattr(desc, name, state.buffer.handle)
    for name, gradient in given.items():
        if gradient is not None:
            setattr(desc, "d" + name, gradient.buffer.handle)
    made = {}
    for name in wanted:
        operand = values[name]
        assert operand is not None
        made[name] = operand.context.empty(operand.shape, operand.dtype)
        setattr(desc, "d" + name, made[name].buffer.handle)
    check(raw.tuff_rnn_backward(x.context.stream_handle, desc))
    return made


def _shapes(directions: int, gates: int, hidden: int, width: int, inputs: int) -> Dict[str, Tuple[int, ...]]:
    return {
        "w": (directions, gates * hidden, inputs),
        "r": (directions, gates * hidden, width),
        "bias_w": (directions, gates * hidden),
        "bias_r": (directions, gates * hidden),
        "peepholes": (directions, 3 * hidden),
        "projection": (directions, width, hidden),
    }


def _sizes(layer: RnnLayer, gates: int, suffix: str) -> Tuple[int, int, int]:
    """The directions, hidden units and size of h of a layer. suffix: which one, for errors."""
    w, r = f"w{suffix}", f"r{suffix}"
    require_array(layer.w, w)
    require_array(layer.r, r)
    for array, name in ((layer.w, w), (layer.r, r)):
        if array.ndim not in (2, 3) or array.ndim == 3 and array.shape[0] not in (1, 2):
            raise ValueError(f"{name} has shape {array.shape}, needs (directions, {gates} * hidden, columns)")
    directions = layer.w.shape[0] if layer.w.ndim == 3 else 1
    if layer.w.shape[-2] % gates != 0:
        raise ValueError(f"{w} has shape {layer.w.shape}, its rows are not a multiple of {gates}")
    hidden = layer.w.shape[-2] // gates
    if layer.projection is None and layer.r.shape[-1] != hidden:
        raise ValueError(f"{r} has shape {layer.r.shape}, needs {hidden} columns, or a projection")
    return directions, hidden, layer.r.shape[-1]
