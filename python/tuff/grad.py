"""Gradients of functions of arrays, in reverse mode.

    def loss(weights, bias):
        return tuff.grad.cross_entropy(images @ weights + bias, labels)

    value, (dw, db) = tuff.grad.value_and_grad(loss, (0, 1))(weights, bias)

The function is called once with arrays that note what is done with them; then the notes are read backwards. A formula's
gradient is a formula too, so each is one kernel. docs/gradients.md says which operations have rules; any other is an error.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import _gradients, _layer_gradients, _losses, _norms, _recurrent_gradients  # noqa: F401  the rules
from ._array import Array
from ._checked import is_whole, real, whole
from ._expression import expr
from ._optimisers import LAMB, SGD, Adam, clip_norm, gradient_norm
from ._tape import Tape, Traced, constant, dense, depth, leaves_of, with_leaves
from ._types import is_float

__all__ = [
    "LAMB", "SGD", "Adam", "clip_norm", "constant", "cross_entropy", "grad", "gradient_norm", "mean_squared_error", "value_and_grad", "vjp",
]  # fmt: skip


def vjp(function: Callable[..., Array], *arguments: object) -> Tuple[Array, Callable[[Array], tuple]]:
    """The function's result, and a function from a gradient of that result to those of the arguments: the product of a
    vector and the Jacobian. Arguments are arrays of floats, also in lists, tuples and dictionaries."""
    leaves: List[Array] = []
    leaves_of(arguments, leaves)
    for leaf in leaves:
        if not is_float(leaf.dtype):
            raise TypeError(f"an argument to differentiate by is of {leaf.dtype}: needs real floats")
    depth.now = getattr(depth, "now", 0) + 1
    try:
        tape = Tape()
        inputs = [tape.add(leaf) for leaf in leaves]
        result = function(*with_leaves(arguments, iter(inputs)))
    finally:
        depth.now -= 1
    if not isinstance(result, Array):
        raise TypeError(f"the function returned {type(result).__name__}, not a tuff.Array")
    traced = isinstance(result, Traced) and result.tape is tape
    value = result.value if traced else result

    def pull(gradient: Array) -> tuple:
        if gradient.shape != value.shape or gradient.dtype != value.dtype:
            raise ValueError(f"the gradient is {gradient.shape} {gradient.dtype}, the result {value.shape} {value.dtype}")
        found = tape.gradients(result.place, gradient) if traced else {}
        whole = (found[at] if at in found else leaf.context.zeros(leaf.shape, leaf.dtype) for at, leaf in enumerate(leaves))
        return with_leaves(arguments, (dense(one) for one in whole))

    return value, pull


def value_and_grad(function: Callable[..., Array], argnums: Union[int, Sequence[int]] = 0) -> Callable[..., Tuple[Array, Any]]:
    """A function that returns the value of `function`, an array with one element, and its gradients by the arguments of
    these numbers: arrays, or lists, tuples and dictionaries of them, as the arguments are."""
    single = is_whole(argnums)
    chosen = (argnums,) if single else tuple(argnums)

    @functools.wraps(function)
    def call(*arguments: object, **named: object) -> Tuple[Array, Any]:
        for number in chosen:
            if not is_whole(number) or not 0 <= number < len(arguments):
                raise ValueError(f"argnums is {argnums!r}, and there are {len(arguments)} arguments")
        if len(set(chosen)) != len(chosen):
            raise ValueError(f"argnums {argnums!r} names one argument twice")

        def of_chosen(*values: object) -> Array:
            all_of_them = list(arguments)
            for number, value in zip(chosen, values):
                all_of_them[number] = value
            return function(*all_of_them, **named)

        value, pull = vjp(of_chosen, *(arguments[number] for number in chosen))
        if value.size != 1 or not is_float(value.dtype):
            raise ValueError(f"the function returned shape {value.shape} of {value.dtype}: a gradient is of one real number")
        gradients = pull(value.context.ones(value.shape, value.dtype))
        return value, gradients[0] if single else gradients

    return call


def grad(function: Callable[..., Array], argnums: Union[int, Sequence[int]] = 0) -> Callable[..., Any]:
    """As value_and_grad(), without the value."""
    both = value_and_grad(function, argnums)
    return functools.wraps(function)(lambda *arguments, **named: both(*arguments, **named)[1])


def mean_squared_error(x: Array, target: Array) -> Array:
    """The mean of (x - target)^2."""
    return expr("square(x - t)", dtype=x.dtype, x=x, t=target).mean()


def cross_entropy(logits: Array, labels: Array, *, label_smoothing: float = 0.0, ignore_index: Optional[int] = None) -> Array:
    """The mean of -log(softmax(logits)) at the labels: logits (…, classes), labels (…) of integers. label_smoothing gives
    that part of the weight to all classes alike; rows with the label ignore_index do not count. The mean is NaN if a label
    is out of range, or if all are ignored. Nothing waits."""
    if labels.shape != logits.shape[:-1] or labels.dtype.kind not in "iu":
        raise ValueError(f"labels are {labels.shape} of {labels.dtype}, needs integers of shape {logits.shape[:-1]}")
    smoothing = real(label_smoothing, "label_smoothing")
    if not 0 <= smoothing <= 1:
        raise ValueError(f"label_smoothing is {label_smoothing!r}, needs 0 to 1")
    classes = logits.shape[-1]
    if classes == 0 or labels.size == 0:
        raise ValueError(f"cross_entropy of logits of shape {logits.shape}")
    ignored = None if ignore_index is None else whole(ignore_index, "ignore_index", -(2**63), 2**63 - 1)
    found = _losses.cross_entropy(logits, labels, smoothing, ignored)
    if found is not None:
        return found
    each = labels.context.array(np.arange(classes), np.int64)
    rows = labels.reshape((*labels.shape, 1))
    weight = "l >= 0 && l < n ? (l == c ? 1 - s : 0) + s / n : nan"
    if ignored is not None:
        weight = f"l == {ignored} ? 0 : ({weight})"
    each_weight = expr(weight, dtype=logits.dtype, l=rows, c=each, s=smoothing, n=float(classes))
    total = (_norms.log_softmax(logits, -1) * each_weight).sum()
    if ignored is None:
        return total * (-1 / labels.size)
    return expr("-t / n", dtype=logits.dtype, t=total, n=expr("l == i ? 0 : 1", dtype=logits.dtype, l=labels, i=ignored).sum())
