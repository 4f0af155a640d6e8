"""Gradients of recurrent networks: the rules of tuff.grad."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from . import _recurrent, _shape, raw
from ._array import Array
from ._checked import choice
from ._operands import require_array
from ._recurrent import _ACTIVATIONS, _ORDERS, OPERANDS, RnnLayer, checked_dropout, common_sizes, layer_gradients, listed_layers
from ._tape import Traced, dense, forgetting, rule, tape_of, value_in
from ._tracing import any_traced

Result = Tuple[Array, Array, Optional[Array]]


def _layer(
    cell: int, number: int, operands: Dict[str, Any], lengths: Any, batch_first: bool, reverse: bool, order: str, clip: float, before: bool
) -> Result:
    """One layer, of this number. Each of its outputs is a value of its own: the gradients by the operands are linear in those by outputs."""
    rest = (lengths, batch_first, reverse, order, clip, before)

    def run(given: Dict[str, Any]) -> Result:
        layer = RnnLayer(*(given[name] for name in RnnLayer._fields))
        return _recurrent._run(cell, given["x"], layer, given["h0"], given["c0"], *rest, (0.0, None), number)

    if not any_traced(operands.values()):
        return run(operands)
    tape = tape_of(*operands.values())
    values = {name: value_in(tape, one) for name, one in operands.items()}
    if any_traced(values.values()):
        raise TypeError("a recurrent network has no gradients of gradients")
    outputs = run(values)
    traced = {name: one.place for name, one in operands.items() if isinstance(one, Traced) and one.tape is tape}
    described = (lengths, batch_first, reverse, choice(order, "order", _ORDERS), clip, before)

    def noted(output: str, value: Optional[Array]) -> Any:
        last: List[Any] = []  # a gradient, and those by all operands, which one call computes

        def pull(name: str, g: Array) -> Array:
            if not last or last[0] is not g:
                last[:] = [g, layer_gradients(cell, values, {output: dense(g)}, list(traced), *described)]
            return last[1][name]

        pulls = [(place, lambda g, name=name: pull(name, g)) for name, place in traced.items()]
        return None if value is None else tape.add(value, forgetting(pulls, last))

    return tuple(noted(output, value) for output, value in zip(("y", "hn", "cn"), outputs))  # type: ignore[return-value]


def _layers(cell: int, x: Any, layers: Any, h0: Any, c0: Any, dropout: float, generator: Any, *rest: Any) -> Result:
    listed = listed_layers(layers)
    directions, _, _ = common_sizes(listed, cell)
    probability = checked_dropout(dropout, generator)
    for state, name in ((h0, "h0"), (c0, "c0")):
        if state is None:
            continue
        require_array(state, name)
        if len(listed) != 1 and state.shape[:1] != (len(listed) * directions,):
            raise ValueError(f"{name} has shape {state.shape}, needs {len(listed) * directions} rows")
    states: List[Tuple[Array, Optional[Array]]] = []
    for number, layer in enumerate(listed):
        operands = dict(zip(OPERANDS, (x, h0, c0, *layer)))
        if len(listed) != 1:
            for name in ("h0", "c0"):
                if operands[name] is not None:
                    operands[name] = operands[name][number * directions : (number + 1) * directions]
        x, hn, cn = _layer(cell, number, operands, *rest)
        states.append((hn, cn))
        if probability != 0 and number + 1 != len(listed):
            x = generator.dropout(x, probability)
    if len(states) == 1:
        return x, *states[0]
    cells = [cn for _, cn in states if cn is not None]
    return x, _shape.concat([hn for hn, _ in states]), _shape.concat(cells) if cells else None


@rule("lstm")
def _(
    x: Any, layers: Any, *, h0: Any = None, c0: Any = None, lengths: Any = None, batch_first: bool = False, reverse: bool = False,
    order: str = "torch", clip: float = 0.0, dropout: float = 0.0, generator: Any = None
) -> Tuple[Array, Tuple[Array, Array]]:  # fmt: skip
    rest = (lengths, batch_first, reverse, order, clip, False)
    y, hn, cn = _layers(raw.RNN_CELL_LSTM, x, layers, h0, c0, dropout, generator, *rest)
    return y, (hn, cn)  # type: ignore[return-value]


@rule("gru")
def _(
    x: Any, layers: Any, *, h0: Any = None, lengths: Any = None, batch_first: bool = False, reverse: bool = False,
    order: str = "torch", linear_before_reset: bool = True, clip: float = 0.0, dropout: float = 0.0, generator: Any = None
) -> Tuple[Array, Array]:  # fmt: skip
    rest = (lengths, batch_first, reverse, order, clip, bool(linear_before_reset))
    return _layers(raw.RNN_CELL_GRU, x, layers, h0, None, dropout, generator, *rest)[:2]


@rule("rnn")
def _(
    x: Any, layers: Any, *, activation: str = "tanh", h0: Any = None, lengths: Any = None, batch_first: bool = False,
    reverse: bool = False, clip: float = 0.0, dropout: float = 0.0, generator: Any = None
) -> Tuple[Array, Array]:  # fmt: skip
    rest = (lengths, batch_first, reverse, "torch", clip, False)
    return _layers(choice(activation, "activation", _ACTIVATIONS), x, layers, h0, None, dropout, generator, *rest)[:2]
