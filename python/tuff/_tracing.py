"""Where tuff.grad meets the operations. An operation on an array that is being differentiated is done by a rule of
tuff.grad instead; one without a rule fails, because such an array has no buffer."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Callable, Dict, Iterable, TypeVar

from ._storage import TransposedStorage

if TYPE_CHECKING:
    Function = TypeVar("Function", bound=Callable)


class Mark:
    """Base of the arrays that are being differentiated (tuff.grad)."""

    __slots__ = ()


#: What does an operation on such arrays, by the operation's name. tuff.grad fills it in.
RULES: Dict[str, Callable] = {}


def is_traced(value: object) -> bool:
    return isinstance(value.base if isinstance(value, TransposedStorage) else value, Mark)


def any_traced(values: Iterable[object]) -> bool:
    """Whether one of the values, or of the lists among them, is an array that is being differentiated."""
    return any(any_traced(value) if isinstance(value, (list, tuple)) else is_traced(value) for value in values)


def without_transposed(value: object) -> object:
    """An argument of a rule: a transposed array that is being differentiated as a new array, which has a gradient."""
    if isinstance(value, (list, tuple)):
        parts = map(without_transposed, value)
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value.base.swapaxes(-1, -2) if isinstance(value, TransposedStorage) and is_traced(value) else value


def differentiable(function: Function) -> Function:
    """An operation that has a rule of its name."""

    @functools.wraps(function)
    def call(*arguments: object, **named: object) -> object:
        # Without tuff.grad there are neither rules nor such arrays.
        if RULES and (any_traced(arguments) or (named and any_traced(named.values()))):
            named = {name: without_transposed(value) for name, value in named.items()}
            rule = RULES.get(function.__name__, function)  # without a rule the function fails
            return rule(*map(without_transposed, arguments), **named)
        return function(*arguments, **named)

    return call
