"""Gradients of functions of arrays, in reverse mode.

    def loss(weights, bias):
        return tuff.grad.cross_entropy(images @ weights + bias, labels)

    value, (dw, db) = tuff.grad.value_and_grad(loss, (0, 1))(weights, bias)

The function is called once with arrays that note what is done with them; then the notes are read backwards. A formula's
gradient is a formula too, so each is one kernel. docs/gradients.md says which operations have rules; any other is an error.
"""

from __future__ import annotations

import functools
import math
import sys
import threading
from typing import Any, Callable, Dict, List, NoReturn, Optional, Sequence, Tuple, Union

import numpy as np

from . import _attention, _convolution, _indexing, _norms, _pool, raw
from . import _elementwise as elementwise
from . import _expression as expression
from . import _functions as functions
from . import _operations as operations
from . import _reductions as reductions
from . import _shape as shapes
from . import _views as views
from ._array import Array
from ._buffer import Buffer
from ._checked import is_whole, real, whole
from ._context import Context
from ._convolution import _paddings
from ._derivative import derivative
from ._images import channels_second, numbers
from ._operands import whole_axis
from ._storage import Storage, Strided
from ._tracing import RULES, Mark, any_traced
from ._types import is_float
from ._views import Transposed

__all__ = ["SGD", "Adam", "clip_norm", "constant", "cross_entropy", "grad", "mean_squared_error", "value_and_grad", "vjp"]

expr = expression.expr
#: From the result's gradient to that of one operand.
Pull = Callable[[Array], Array]


# --- The tape


class _Tape:
    """What was computed from the arguments, in order: for each value, the values that it depends on, and how its gradient
    reaches them. level: how many tapes of the thread are around this one."""

    def __init__(self) -> None:
        self.level = getattr(_depth, "now", 0)
        self.notes: List[Sequence[Tuple[int, Pull]]] = []

    def add(self, value: Array, pulls: Sequence[Tuple[int, Pull]] = ()) -> Traced:
        self.notes.append(pulls)
        return Traced._made(self, value, len(self.notes) - 1)

    def gradients(self, last: int, seed: Array) -> Dict[int, Array]:
        found = {last: seed}
        for place in range(last, -1, -1):
            if place not in found or not self.notes[place]:
                continue
            gradient = found.pop(place)
            for operand, pull in self.notes[place]:
                part = pull(gradient)
                found[operand] = functions.add(found[operand], part) if operand in found else part
        return found


_depth = threading.local()


class Traced(Mark, Array):
    """An array whose uses are noted. It has a value, and no buffer, so that no operation can use it unnoticed."""

    __slots__ = ("tape", "value", "place")

    @classmethod
    def _made(cls, tape: _Tape, value: Array, place: int) -> Traced:
        made = object.__new__(cls)
        made.tape, made.value, made.place = tape, value, place
        made.shape, made.dtype = value.shape, value.dtype
        return made

    @property
    def buffer(self) -> Buffer:
        frame, name = sys._getframe(1), "this operation"
        while frame is not None and frame.f_globals.get("__package__") == __package__:
            name, frame = f"{frame.f_code.co_name}()", frame.f_back
        raise TypeError(f"{name} has no rule for gradients; tuff.grad.constant(x) is x without one")

    @property
    def context(self) -> Context:
        return self.value.context

    def __repr__(self) -> str:
        return f"<tuff.grad of {self.value!r}>"

    def numpy(self) -> np.ndarray:
        return self.value.numpy()

    def reshape(self, *shape: Union[int, Sequence[int]]) -> Array:
        value = self.value.reshape(*shape)
        return _noted(self, lambda x: value, lambda g: _dense(g).reshape(self.shape))

    def ravel(self) -> Array:
        return self.reshape(self.size)

    def copy(self) -> Array:
        return _noted(self, lambda x: x.copy(), lambda g: g)

    def assign(self, value: object) -> NoReturn:
        raise TypeError("an array that is being differentiated cannot be overwritten; compute a new one")

    def __setitem__(self, key: object, value: object) -> NoReturn:
        self.assign(value)


def _tape_of(*values: object) -> _Tape:
    """The innermost tape of the operands: for it, the values of the others are constants."""
    bases = (value.base if isinstance(value, Transposed) else value for value in values)
    return max((value.tape for value in bases if isinstance(value, Traced)), key=lambda tape: tape.level)


def _value(tape: _Tape, x: Any) -> Any:
    """An operand without this tape."""
    if isinstance(x, Transposed):
        return Transposed(_value(tape, x.base))
    return x.value if isinstance(x, Traced) and x.tape is tape else x


def _noted(x: Traced, function: Callable[[Array], Array], pull: Pull) -> Array:
    """The result of a function of one array."""
    return x.tape.add(function(x.value), ((x.place, pull),))


def _dense(x: Array) -> Array:
    return x.copy() if isinstance(x, Strided) else x


def _summed_to(gradient: Array, shape: Tuple[int, ...], dtype: np.dtype) -> Array:
    """A gradient of a value that was repeated to a shape, as that of the value."""
    if gradient.shape != shape:
        extra = gradient.ndim - len(shape)
        axes = tuple(range(extra)) + tuple(i + extra for i, n in enumerate(shape) if n == 1 and gradient.shape[i + extra] != 1)
        gradient = (gradient.sum(axes) if axes else gradient).reshape(shape)
    return gradient if gradient.dtype == dtype else gradient.astype(dtype)


def _refuse_out(out: object, what: str) -> None:
    if out is not None:
        raise TypeError(f"{what} of an array that is being differentiated has no out, and does nothing in place")


def rule(name: str) -> Callable[[Callable], Callable]:
    def kept(function: Callable) -> Callable:
        RULES[name] = function
        return function

    return kept


# --- What a user calls


def _leaves(value: object, found: List[Array]) -> None:
    """The arrays in lists, tuples and dictionaries."""
    if isinstance(value, Array):
        found.append(value)
    elif isinstance(value, (list, tuple)):
        for one in value:
            _leaves(one, found)
    elif isinstance(value, dict):
        for one in value.values():
            _leaves(one, found)
    else:
        raise TypeError(f"an argument to differentiate by is {type(value).__name__}: needs arrays, also in lists, tuples and dictionaries")


def _with(value: object, leaves: Any) -> Any:
    """The same lists, tuples and dictionaries, with other arrays."""
    if isinstance(value, Array):
        return next(leaves)
    if isinstance(value, dict):
        return {key: _with(one, leaves) for key, one in value.items()}
    parts = [_with(one, leaves) for one in value]
    return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)


def vjp(function: Callable[..., Array], *arguments: object) -> Tuple[Array, Callable[[Array], tuple]]:
    """The function's result, and a function from a gradient of that result to those of the arguments: the product of a
    vector and the Jacobian. Arguments are arrays of floats, also in lists, tuples and dictionaries."""
    leaves: List[Array] = []
    _leaves(arguments, leaves)
    for leaf in leaves:
        if not is_float(leaf.dtype):
            raise TypeError(f"an argument to differentiate by is of {leaf.dtype}: needs real floats")
    _depth.now = getattr(_depth, "now", 0) + 1
    try:
        tape = _Tape()
        inputs = [tape.add(leaf) for leaf in leaves]
        result = function(*_with(arguments, iter(inputs)))
    finally:
        _depth.now -= 1
    if not isinstance(result, Array):
        raise TypeError(f"the function returned {type(result).__name__}, not a tuff.Array")
    traced = isinstance(result, Traced) and result.tape is tape
    value = result.value if traced else result

    def pull(gradient: Array) -> tuple:
        if gradient.shape != value.shape or gradient.dtype != value.dtype:
            raise ValueError(f"the gradient is {gradient.shape} {gradient.dtype}, the result {value.shape} {value.dtype}")
        found = tape.gradients(result.place, gradient) if traced else {}
        whole = (found[at] if at in found else leaf.context.zeros(leaf.shape, leaf.dtype) for at, leaf in enumerate(leaves))
        return _with(arguments, (_dense(one) for one in whole))

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


def constant(x: Array) -> Array:
    """The array without its history: no gradient flows through it."""
    while isinstance(x, Traced):
        x = x.value
    return x


# --- Rules: formulas, and with them every function of elements


@rule("expr")
def _expr(formula: str, dtype: object, out: object, inputs: Dict[str, Any]) -> Array:
    _refuse_out(out, "a formula")
    tape = _tape_of(*inputs.values())
    values = {name: _value(tape, x) for name, x in inputs.items()}
    result = expr(formula, dtype=dtype, **values)
    if not is_float(result.dtype):
        return result
    factor = "g"
    while factor in inputs or factor in formula:
        factor += "g"
    pulls = []
    for name, x in inputs.items():
        if isinstance(x, Traced) and x.tape is tape:
            slope = derivative(formula, name, factor)
            if slope is not None:
                pulls.append((x.place, functools.partial(_pulled, slope, factor, values, x.shape, x.dtype)))
    return tape.add(result, pulls)


def _pulled(slope: Tuple[str, frozenset], factor: str, values: Dict[str, Any], shape: tuple, dtype: np.dtype, g: Array) -> Array:
    formula, names = slope
    if formula != factor:
        g = expr(formula, dtype=g.dtype if g.shape != shape else dtype, **{factor: g},
                 **{name: value for name, value in values.items() if name in names})  # fmt: skip
    return _summed_to(g, shape, dtype)


# --- Rules: products


def _turned(x: Array) -> Any:
    """A stack of matrices transposed, as an operand."""
    return x.base if isinstance(x, Transposed) else Transposed(x)


@rule("matmul")
def _matmul(a: Any, b: Any, out: object, alpha: float, beta: float, options: Dict[str, Any]) -> Array:
    _refuse_out(out, "@")
    if beta != 0:
        raise ValueError("beta needs out")
    if any(name.startswith("scale") for name in options):
        raise TypeError("@ of an array that is being differentiated takes no scales")
    precision = options.pop("precision", None)
    if options or alpha != 1:
        result = operations.matmul(a, b, precision=precision)
        result = result if alpha == 1 else result * real(alpha, "alpha")
        for name in ("bias", "residual"):
            if name in options:
                result = result + options[name]
        return _activated(result, options.get("activation"))
    if a.ndim == 1 or b.ndim == 1:
        rows = a.reshape(1, -1) if a.ndim == 1 else a
        columns = b.reshape(-1, 1) if b.ndim == 1 else b
        result = operations.matmul(rows, columns, precision=precision)
        kept = [n for n, drop in zip(result.shape[-2:], (a.ndim == 1, b.ndim == 1)) if not drop]
        return result.reshape(*result.shape[:-2], *kept)
    tape = _tape_of(a, b)
    x, y = _value(tape, a), _value(tape, b)
    product = functools.partial(operations.matmul, precision=precision)

    def of_a(g: Array) -> Array:  # g @ b.mT, or its transposed
        g = _like(g, y)
        return product(y, _turned(g)) if isinstance(a, Transposed) else product(g, _turned(y))

    def of_b(g: Array) -> Array:
        g = _like(g, x)
        if isinstance(b, Transposed):
            return product(_turned(g), x)
        if y.ndim == 2 and x.ndim > 2 and not isinstance(x, Transposed):  # one product instead of a stack that is summed
            return product(_turned(_dense(x).reshape(-1, x.shape[-1])), g.reshape(-1, g.shape[-1]))
        return product(_turned(x), g)

    pulls = []
    for operand, pull in ((a, of_a), (b, of_b)):
        base = operand.base if isinstance(operand, Transposed) else operand
        if isinstance(base, Traced) and base.tape is tape:
            pulls.append((base.place, lambda g, pull=pull, base=base: _summed_to(pull(g), base.shape, base.dtype)))
    return tape.add(product(x, y), pulls)


def _like(g: Array, other: Any) -> Array:
    """The gradient of a product as the other factor's type: float64 and bfloat16 stand beside themselves only."""
    return _dense(g if g.dtype == other.dtype else g.astype(other.dtype))


def _activated(x: Array, activation: Optional[str]) -> Array:
    if activation is None:
        return x
    return elementwise.clip(x, 0.0, 6.0) if activation == "relu6" else getattr(functions, activation)(x)


# --- Rules: reductions and scans


@rule("reduce")
def _reduce(op: int, x: Traced, axes: Tuple[int, ...], keepdims: bool, correction: float) -> Array:
    kept = tuple(1 if axis in axes else n for axis, n in enumerate(x.shape))
    count = math.prod(x.shape[axis] for axis in axes)
    v, name = x.value, _NAMES.get(op)
    y = reductions.reduce(op, v, axes, True, correction=correction)
    result = y if keepdims else y.reshape([n for axis, n in enumerate(x.shape) if axis not in axes])
    if not is_float(result.dtype):
        return result
    if name == "prod":
        return _product(x, axes, keepdims)

    def pull(g: Array) -> Array:
        g = _dense(g).reshape(kept)
        if name == "sum":
            return views.broadcast_to(g, x.shape)
        if name == "mean":
            return views.broadcast_to(g * (1 / count), x.shape)
        if name in ("max", "min"):  # shared by all that are the largest
            equal = expr("x == y", dtype=x.dtype, x=v, y=y)
            return expr("e * g / n", e=equal, g=g, n=equal.sum(axes, True))
        if name in ("var", "std"):
            mean = v.mean(axes, True)
            slope = "g * 2 * (x - m) / n" if name == "var" else "y == 0 ? 0 : g * (x - m) / (n * y)"
            operands = {"y": y} if name == "std" else {}
            return expr(slope, dtype=x.dtype, x=v, g=g, m=mean, n=float(count - correction), **operands)
        return expr(_REDUCED[name], dtype=x.dtype, x=v, g=g, **({"y": y} if "y" in _REDUCED[name] else {}))

    return x.tape.add(result, ((x.place, pull),))


_REDUCED = {"sum_squares": "2 * x * g", "l1": "sign(x) * g", "l2": "y == 0 ? 0 : x / y * g", "logsumexp": "exp(x - y) * g"}
_NAMES = {value: name[7:].lower() for name, value in vars(raw).items() if name.startswith("REDUCE_")}


def _product(x: Traced, axes: Tuple[int, ...], keepdims: bool) -> Array:
    """The product: each element's slope is the product of those before it and of those behind it, also if one is 0."""
    others = [axis for axis in range(x.ndim) if axis not in axes]
    flat = shapes.permute(x, (*others, *axes)).reshape((*(x.shape[axis] for axis in others), -1)) if x.ndim else x.reshape(1)
    v, last = flat.value, flat.ndim - 1

    def pull(g: Array) -> Array:
        before = reductions.cumprod(v, last, exclusive=True)
        behind = reductions.cumprod(v, last, exclusive=True, reverse=True)
        return expr("g * a * b", dtype=x.dtype, g=_dense(g).reshape((*flat.shape[:-1], 1)), a=before, b=behind)

    result = flat.tape.add(v.prod(last), ((flat.place, pull),))
    return result.reshape([1 if axis in axes else n for axis, n in enumerate(x.shape)]) if keepdims else result


@rule("cumsum")
def _cumsum(x: Traced, axis: Optional[int] = None, *, exclusive: bool = False, reverse: bool = False, out: object = None) -> Array:
    _refuse_out(out, "cumsum")
    if axis is None:
        return _cumsum(x.ravel(), 0, exclusive=exclusive, reverse=reverse)
    scan = functools.partial(reductions.cumsum, axis=axis, exclusive=exclusive)
    return _noted(x, lambda v: scan(v, reverse=reverse), lambda g: scan(_dense(g), reverse=not reverse))


# --- Rules: shapes and indices


@rule("cast")
def _cast(x: Traced, dtype: np.dtype, out: object) -> Array:
    _refuse_out(out, "a conversion")
    if not is_float(dtype):
        return x.value.astype(dtype)
    return _noted(x, lambda v: v.astype(dtype), lambda g: g.astype(x.dtype))


@rule("permute")
def _permute(x: Traced, order: Sequence[int], *, out: object = None) -> Array:
    _refuse_out(out, "permute")
    axes = [whole_axis(axis, x.ndim) for axis in order]
    return _noted(x, lambda v: shapes.permute(v, axes), lambda g: shapes.permute(_dense(g), np.argsort(axes).tolist()))


RULES["permuted"] = _permute


@rule("broadcast_to")
def _broadcast_to(x: Traced, shape: Union[int, Sequence[int]]) -> Array:
    return _noted(x, lambda v: views.broadcast_to(v, shape), lambda g: _summed_to(_dense(g), x.shape, x.dtype))


@rule("repeated_to")
def _repeated_to(x: Traced, shape: Union[int, Sequence[int]]) -> Array:
    return _noted(x, lambda v: operations.repeated_to(v, shape), lambda g: _summed_to(_dense(g), x.shape, x.dtype))


def _put(x: Traced, key: object) -> Pull:
    """The gradient at the places that a key selects, added up where it selects one twice; elsewhere zeros."""
    return lambda g: _indexing.scatter(x.context.zeros(x.shape, x.dtype), key, g, "add")


@rule("get")
def _get(x: Any, key: object) -> Array:
    keys = tuple(constant(one) if isinstance(one, Array) else one for one in (key if isinstance(key, tuple) else (key,)))
    return _noted(x, lambda v: v[keys], _put(x, keys)) if isinstance(x, Traced) else x[keys]


@rule("section")
def _section(x: Traced, key: object, *, out: object = None) -> Array:
    _refuse_out(out, "section")
    return _noted(x, lambda v: shapes.section(v, key), _put(x, key))


@rule("diagonal")
def _diagonal(x: Traced, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    def pull(g: Array) -> Array:
        zeros = x.context.zeros(x.shape, x.dtype)
        views.diagonal(zeros, offset, axis1, axis2).assign(_dense(g))
        return zeros

    return _noted(x, lambda v: views.diagonal(v, offset, axis1, axis2), pull)


@rule("concat")
def _concat(arrays: Sequence[Array], axis: Optional[int] = 0, *, out: object = None) -> Array:
    _refuse_out(out, "concat")
    if axis is None:
        return _concat([one.ravel() for one in arrays], 0)
    tape = _tape_of(*arrays)
    along, begin, pulls = whole_axis(axis, arrays[0].ndim), 0, []
    for one in arrays:
        key = (*(slice(None),) * along, slice(begin, begin + one.shape[along]))
        begin += one.shape[along]
        if isinstance(one, Traced) and one.tape is tape:
            pulls.append((one.place, lambda g, key=key, one=one: _dense(g)[key].copy().astype(one.dtype)))
    return tape.add(shapes.concat([_value(tape, one) for one in arrays], along), pulls)


@rule("take")
def _take(x: Any, indices: Any, axis: int = 0, *, out: object = None) -> Array:
    _refuse_out(out, "take")
    if not isinstance(x, Traced):
        return shapes.take(x, constant(indices), axis)
    along = whole_axis(axis, x.ndim)
    places = constant(indices) if isinstance(indices, Array) else np.asarray(indices)
    return _noted(x, lambda v: shapes.take(v, places, along), _put(x, (*(slice(None),) * along, places)))


@rule("embedding")
def _embedding(table: Traced, indices: Any, *, out: object = None) -> Array:
    return _take(table, indices, 0, out=out)


@rule("take_along_axis")
def _take_along_axis(x: Any, indices: Any, axis: Optional[int] = -1) -> Array:
    if axis is None:
        return _take_along_axis(x.ravel(), indices, 0)
    if not isinstance(x, Traced):
        return _indexing.take_along_axis(x, constant(indices), axis)
    along = whole_axis(axis, x.ndim)
    places = constant(indices) if isinstance(indices, Array) else x.context.array(np.asarray(indices))

    def pull(g: Array) -> Array:
        # Whatever else is broadcast is a coordinate: an index for every axis.
        grid = [np.arange(n).reshape([-1 if at == one else 1 for at in range(x.ndim)]) for one, n in enumerate(g.shape)]
        grid = [0 * own if x.shape[at] == 1 else own for at, own in enumerate(grid)]
        key = tuple(views.broadcast_to(places, g.shape) if at == along else own for at, own in enumerate(grid))
        return _put(x, key)(g)

    return _noted(x, lambda v: _indexing.take_along_axis(v, places, along), pull)


@rule("pad")
def _pad(x: Traced, pad_width: object, mode: str = "constant", constant_values: Union[float, int] = 0) -> Array:
    if mode != "constant":
        raise TypeError(f"pad() with mode {mode!r} has no rule for gradients")
    back = [(-int(before), -int(after)) for before, after in np.broadcast_to(np.asarray(pad_width), (x.ndim, 2))]
    return _noted(x, lambda v: _indexing.pad(v, pad_width, mode, constant_values), lambda g: _indexing.pad(_dense(g), back))


# --- Rules: softmax, normalisations, attention


def _softmax(x: Any, axis: int, scale: float, mask: Any, out: object, logarithm: bool) -> Array:
    _refuse_out(out, "softmax")
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


def _wide(x: Array) -> Array:
    """Statistics are of float32 at least."""
    return x if x.dtype in (np.float32, np.float64) else x.astype(np.float32)


def _added(x: Array, residual: Optional[Array], sum_out: object, out: object) -> Array:
    _refuse_out(out, "a normalisation")
    _refuse_out(sum_out, "a normalisation")
    return x if residual is None else x + residual


def _rows_norm(x: Array, weight: Any, bias: Any, epsilon: float, centred: bool) -> Optional[Array]:
    """layer_norm or rms_norm by one kernel, with n = (x - mean) * r, r = 1 / sqrt(variance + epsilon), and the slope of x
    r * (h - mean(h) - n * mean(h * n)), h = g * weight; of rms_norm without mean(h). None: for gradients of gradients."""
    tape = _tape_of(x, weight, bias)
    v, w, b = (_value(tape, one) for one in (x, weight, bias))
    if any_traced((v, w, b)):
        return None
    y = _norms.layer_norm(v, w, b, epsilon=epsilon) if centred else _norms.rms_norm(v, w, epsilon=epsilon)
    wide, n = _wide(v), float(v.shape[-1])
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
        (weight, lambda g: _summed_to(expr(f"{normal}g * u", dtype=kind, g=g, **of), w.shape, w.dtype)),
        (bias, lambda g: _summed_to(_dense(g), b.shape, b.dtype)),
    )
    return tape.add(y, [(one.place, pull) for one, pull in rules if isinstance(one, Traced) and one.tape is tape])


@rule("layer_norm")
def _(x: Array, weight: Any = None, bias: Any = None, *, epsilon: float = 1e-5, residual: Any = None, sum_out: object = None, out: object = None) -> Array:
    x = _added(x, residual, sum_out, out)
    epsilon = real(epsilon, "epsilon")
    result = _rows_norm(x, weight, bias, epsilon, True)
    if result is not None:
        return result
    wide = _wide(x)
    normal = expr("(x - m) * rsqrt(v + e)", x=wide, m=wide.mean(-1, True), v=wide.var(-1, 0.0, True), e=epsilon)
    return _scaled(normal, weight, bias, (-1,)).astype(x.dtype)


@rule("rms_norm")
def _(x: Array, weight: Any = None, *, epsilon: float = 1e-5, residual: Any = None, sum_out: object = None, out: object = None) -> Array:
    x = _added(x, residual, sum_out, out)
    epsilon = real(epsilon, "epsilon")
    result = _rows_norm(x, weight, None, epsilon, False)
    if result is not None:
        return result
    wide = _wide(x)
    normal = expr("x * rsqrt(s + e)", x=wide, s=functions.square(wide).mean(-1, True), e=epsilon)
    return _scaled(normal, weight, None, (-1,)).astype(x.dtype)


@rule("group_norm")
def _(x: Array, groups: int, weight: Any = None, bias: Any = None, *, epsilon: float = 1e-5, out: object = None) -> Array:
    _refuse_out(out, "group_norm")
    rows = _wide(x).reshape(x.shape[0] * whole(groups, "groups", 1), -1)
    mean, variance = rows.mean(-1, True), rows.var(-1, 0.0, True)
    normal = expr("(x - m) * rsqrt(v + e)", x=rows, m=mean, v=variance, e=real(epsilon, "epsilon")).reshape(x.shape)
    return _scaled(normal, weight, bias, (x.shape[1], *(1,) * (x.ndim - 2))).astype(x.dtype)


@rule("batch_norm")
def _(x: Array, mean: Array, variance: Array, weight: Any = None, bias: Any = None, *, epsilon: float = 1e-5, out: object = None) -> Array:
    _refuse_out(out, "batch_norm")
    shape = (x.shape[1], *(1,) * (x.ndim - 2))
    given = [one.astype(np.float32).reshape(shape) for one in (mean, variance)]
    normal = expr("(x - m) * rsqrt(v + e)", dtype=_wide(x).dtype, x=x, m=given[0], v=given[1], e=real(epsilon, "epsilon"))
    return _scaled(normal, weight, bias, shape).astype(x.dtype)


@rule("attention")
def _attention_rule(
    q: Any, k: Any, v: Any, *, scale: Optional[float] = None, causal: Union[bool, str] = False, layout: str = "bhsd",
    mask: Any = None, bias: Any = None, softcap: Optional[float] = None, out: object = None, **others: object
) -> Array:  # fmt: skip
    """By the sums of each row, which the forward pass keeps: the weights are exp(score - lse), computed anew."""
    _refuse_out(out, "attention")
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
    tape, seen = _tape_of(q, k, v, bias), _seen(q, k, causal, mask)
    x, y, z = (_value(tape, one) for one in (q, k, v))
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
            slopes = expr("p * (d - i)", dtype=x.dtype, p=weights, d=operations.matmul(_dense(g), Transposed(z)), i=inner)
            last[:] = [(g, weights, slopes)]
        return last[0][1:]

    rules = (
        (q, lambda g: operations.matmul(common(g)[1], y, alpha=factor)),
        (k, lambda g: operations.matmul(Transposed(common(g)[1]), x, alpha=factor)),
        (v, lambda g: operations.matmul(Transposed(common(g)[0]), _dense(g))),
    )
    return tape.add(o, [(one.place, pull) for one, pull in rules if isinstance(one, Traced) and one.tape is tape])


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
    _refuse_out(out, "conv2d")
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
    return _activated(result, activation)


def _correlated(
    x: Any, w: Any, stride: tuple, padding: Tuple[tuple, tuple], dilation: tuple, groups: int, winograd: bool
) -> Array:
    """conv2d of (N, C, H, W) without additions."""
    if not any_traced((x, w)):
        return _convolution.conv2d(x, w, stride=stride, padding=tuple(zip(*padding)), dilation=dilation, groups=groups)
    tape = _tape_of(x, w)
    images, filters = _value(tape, x), _value(tape, w)
    pairs = tuple(zip(*padding))
    result = _convolution.conv2d(images, filters, stride=stride, padding=pairs, dilation=dilation, groups=groups, winograd=winograd)

    def of_images(g: Array) -> Array:
        # The transposed convolution reaches from the first padded element to the last one that a window reads.
        whole = _convolution.conv_transpose2d(_dense(g), filters, stride=stride, dilation=dilation, groups=groups)
        cut = [(-begin, n + begin - reached) for begin, n, reached in zip(padding[0], x.shape[2:], whole.shape[2:])]
        return _indexing.pad(whole, [(0, 0), (0, 0), *cut])

    def of_filters(g: Array) -> Array:
        # Element (k, c, r, s) is the sum over images and results of g and the element of x that r, s reads: a convolution of
        # x with g, in which images and channels, strides and dilations have changed places.
        n, channels, *spatial = x.shape
        each = channels // groups
        moved = images.reshape((n, groups, each, *spatial)).transpose(2, 1, 0, 3, 4).reshape((each, groups * n, *spatial))
        turned = _dense(g).transpose(1, 0, 2, 3)
        sums = _convolution.conv2d(moved, turned, stride=dilation, padding=pairs, dilation=stride, groups=groups)
        r, s = w.shape[2:]
        return sums[:, :, :r, :s].transpose(1, 0, 2, 3)

    pulls = [(one.place, pull) for one, pull in ((x, of_images), (w, of_filters)) if isinstance(one, Traced) and one.tape is tape]
    return tape.add(result, pulls)


@rule("max_pool")
def _(x: Traced, kernel: Any, *, indices: bool = False, layout: str = "nchw", **options: Any) -> Any:
    if layout == "nhwc":
        result = _pool.max_pool(_to_nchw(x), kernel, **options)
        return result.transpose(0, *range(2, x.ndim), 1)
    y, places = _pool.max_pool(x.value, kernel, indices=True, **options)
    planes = x.shape[0] * x.shape[1]

    def pull(g: Array) -> Array:
        flat = x.context.zeros((planes, math.prod(x.shape[2:])), x.dtype)
        rows = np.arange(planes).reshape(-1, 1)
        return _indexing.scatter(flat, (rows, places.reshape(planes, -1)), _dense(g).reshape(planes, -1), "add").reshape(x.shape)

    result = x.tape.add(y, ((x.place, pull),))
    return (result, places) if indices else result


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
        share = _dense(g) * (1 / taps)
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


# --- Losses


def mean_squared_error(x: Array, target: Array) -> Array:
    """The mean of (x - target)^2."""
    return expr("square(x - t)", dtype=x.dtype, x=x, t=target).mean()


def cross_entropy(logits: Array, labels: Array, *, label_smoothing: float = 0.0, ignore_index: Optional[int] = None) -> Array:
    """The mean of -log(softmax(logits)) at the labels: logits (…, classes), labels (…) of integers. label_smoothing gives
    that part of the weight to all classes alike; rows with the label ignore_index do not count. A label out of range has
    no class."""
    if labels.shape != logits.shape[:-1] or labels.dtype.kind not in "iu":
        raise ValueError(f"labels are {labels.shape} of {labels.dtype}, needs integers of shape {logits.shape[:-1]}")
    smoothing = real(label_smoothing, "label_smoothing")
    if not 0 <= smoothing <= 1:
        raise ValueError(f"label_smoothing is {label_smoothing!r}, needs 0 to 1")
    classes = logits.shape[-1]
    if classes == 0 or labels.size == 0:
        raise ValueError(f"cross_entropy of logits of shape {logits.shape}")
    each = labels.context.array(np.arange(classes), np.int64)
    rows = labels.reshape((*labels.shape, 1))
    counted = f"i == {whole(ignore_index, 'ignore_index', -(2**63), 2**63 - 1)} ? 0 : " if ignore_index is not None else ""
    weight = expr(f"{counted}(i == c ? 1 - s : 0) + s / n", dtype=logits.dtype, i=rows, c=each, s=smoothing, n=float(classes))
    rows_counted = float(labels.size)
    if ignore_index is not None:
        rows_counted = float((labels != ignore_index).sum().item())
        if rows_counted == 0:
            raise ValueError("cross_entropy: every label is ignore_index")
    return (_norms.log_softmax(logits, -1) * weight).sum() * (-1 / rows_counted)


# --- Optimisers. They overwrite the parameters.


def _checked_gradients(parameters: List[Array], gradients: object) -> List[Array]:
    found: List[Array] = []
    _leaves(gradients, found)
    shapes_of = [[one.shape for one in arrays] for arrays in (parameters, found)]
    if shapes_of[0] != shapes_of[1]:
        raise ValueError(f"gradients of shapes {shapes_of[1]}, and parameters of {shapes_of[0]}")
    return found


def clip_norm(gradients: Any, limit: float) -> Any:
    """The gradients, all scaled alike if the length of all of them together is above the limit."""
    leaves: List[Array] = []
    _leaves(gradients, leaves)
    limit = real(limit, "limit")
    if not limit > 0:
        raise ValueError(f"limit is {limit!r}, needs to be above 0")
    if not leaves:
        return gradients
    squares = functools.reduce(functions.add, (_wide(one).sum_squares() for one in leaves))
    factor = expr("s > l * l ? l * rsqrt(s) : 1", s=squares, l=limit)
    return _with(gradients, iter([expr("g * f", dtype=one.dtype, g=one, f=factor) for one in leaves]))


class SGD:
    """Stochastic gradient descent: v = momentum * v + g + weight_decay * w; w -= rate * v."""

    def __init__(self, parameters: object, rate: float, *, momentum: float = 0.0, weight_decay: float = 0.0) -> None:
        self.parameters: List[Array] = []
        _leaves(parameters, self.parameters)
        self.rate, self.momentum, self.weight_decay = real(rate, "rate"), real(momentum, "momentum"), real(weight_decay, "weight_decay")
        self._velocity = [one.context.zeros(one.shape, _wide_type(one)) for one in self.parameters] if momentum else []

    def step(self, gradients: object) -> None:
        """Changes the parameters by gradients, which are nested as they are."""
        for at, (w, g) in enumerate(zip(self.parameters, _checked_gradients(self.parameters, gradients))):
            step, decay = float(self.rate), float(self.weight_decay)
            if not self._velocity:
                expr("w - r * (g + d * w)", out=w, w=w, g=g, r=step, d=decay)
                continue
            v = self._velocity[at]
            expr("m * v + g + d * w", out=v, v=v, g=g, w=w, m=float(self.momentum), d=decay)
            expr("w - r * v", out=w, w=w, v=v, r=step)


class Adam:
    """Adam by Kingma and Ba, with weight decay that is not part of the gradient (AdamW)."""

    def __init__(
        self, parameters: object, rate: float = 1e-3, *, betas: Tuple[float, float] = (0.9, 0.999), epsilon: float = 1e-8, weight_decay: float = 0.0
    ) -> None:
        self.parameters: List[Array] = []
        _leaves(parameters, self.parameters)
        self.rate, self.epsilon, self.weight_decay = real(rate, "rate"), real(epsilon, "epsilon"), real(weight_decay, "weight_decay")
        self.betas = tuple(real(beta, "betas") for beta in betas)
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas are {betas!r}, needs two numbers from 0 to below 1")
        self.steps = 0
        self._moments = [[one.context.zeros(one.shape, _wide_type(one)) for one in self.parameters] for _ in range(2)]

    def step(self, gradients: object) -> None:
        """Changes the parameters by gradients, which are nested as they are."""
        found = _checked_gradients(self.parameters, gradients)
        self.steps += 1
        (b1, b2), step = self.betas, float(self.rate)
        scale, root = step / (1 - b1**self.steps), 1 / math.sqrt(1 - b2**self.steps)
        for w, g, m, v in zip(self.parameters, found, *self._moments):
            expr("b * m + (1 - b) * g", out=m, m=m, g=g, b=b1)
            expr("b * v + (1 - b) * g * g", out=v, v=v, g=g, b=b2)
            expr("w - d * w - s * m / (sqrt(v) * q + e)", out=w, w=w, m=m, v=v, d=step * self.weight_decay, s=scale, q=root, e=self.epsilon)


def _wide_type(x: Array) -> np.dtype:
    return np.dtype(np.float64 if x.dtype == np.float64 else np.float32)
