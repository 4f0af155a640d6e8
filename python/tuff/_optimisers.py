"""What changes parameters by their gradients. tuff.grad exports it."""

from __future__ import annotations

import functools
import math
from typing import Any, List, Tuple

from . import _functions as functions
from ._array import Array
from ._checked import real
from ._expression import expr
from ._tape import leaves_of, wide_type, widened, with_leaves

# --- Optimisers. They overwrite the parameters.


def _beside(form: object, gradients: object, found: List[Array]) -> None:
    """The gradients in the order of the parameters, which are nested alike."""
    if isinstance(form, Array):
        if not isinstance(gradients, Array) or gradients.shape != form.shape:
            what = f"shape {gradients.shape}" if isinstance(gradients, Array) else type(gradients).__name__
            raise ValueError(f"a gradient of {what} for a parameter of shape {form.shape}")
        found.append(gradients)
    elif form is None:  # a field of a named tuple, as the bias of a layer without one
        if gradients is not None:
            raise ValueError(f"a gradient, {type(gradients).__name__}, for a parameter that is None")
    elif isinstance(form, dict):
        if not isinstance(gradients, dict) or gradients.keys() != form.keys():
            raise ValueError(f"gradients are nested otherwise than the parameters, a dictionary of {list(form)}")
        for key, one in form.items():
            _beside(one, gradients[key], found)
    else:
        if not isinstance(gradients, (list, tuple)) or len(gradients) != len(form):
            raise ValueError(f"gradients are nested otherwise than the parameters, a {type(form).__name__} of {len(form)}")
        for one, gradient in zip(form, gradients):
            _beside(one, gradient, found)


def _checked_gradients(parameters: object, gradients: object) -> List[Array]:
    found: List[Array] = []
    _beside(parameters, gradients, found)
    return found


def clip_norm(gradients: Any, limit: float) -> Any:
    """The gradients, all scaled alike if the length of all of them together is above the limit."""
    leaves: List[Array] = []
    leaves_of(gradients, leaves)
    limit = real(limit, "limit")
    if not limit > 0:
        raise ValueError(f"limit is {limit!r}, needs to be above 0")
    if not leaves:
        return gradients
    squares = functools.reduce(functions.add, (widened(one).sum_squares() for one in leaves))
    factor = expr("s > l * l ? l * rsqrt(s) : 1", s=squares, l=limit)
    return with_leaves(gradients, iter([expr("g * f", dtype=one.dtype, g=one, f=factor) for one in leaves]))


class SGD:
    """Stochastic gradient descent: v = momentum * v + g + weight_decay * w; w -= rate * v."""

    def __init__(self, parameters: object, rate: float, *, momentum: float = 0.0, weight_decay: float = 0.0) -> None:
        self.parameters: List[Array] = []
        leaves_of(parameters, self.parameters)
        self._form = parameters
        self.rate, self.momentum, self.weight_decay = real(rate, "rate"), real(momentum, "momentum"), real(weight_decay, "weight_decay")
        self._velocity = [one.context.zeros(one.shape, wide_type(one)) for one in self.parameters] if momentum else []

    def step(self, gradients: object) -> None:
        """Changes the parameters by gradients, which are nested as they are."""
        for at, (w, g) in enumerate(zip(self.parameters, _checked_gradients(self._form, gradients))):
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
        self,
        parameters: object,
        rate: float = 1e-3,
        *,
        betas: Tuple[float, float] = (0.9, 0.999),
        epsilon: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        self.parameters: List[Array] = []
        leaves_of(parameters, self.parameters)
        self._form = parameters
        self.rate, self.epsilon, self.weight_decay = real(rate, "rate"), real(epsilon, "epsilon"), real(weight_decay, "weight_decay")
        self.betas = tuple(real(beta, "betas") for beta in betas)
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas are {betas!r}, needs two numbers from 0 to below 1")
        self.steps = 0
        self._moments = [[one.context.zeros(one.shape, wide_type(one)) for one in self.parameters] for _ in range(2)]

    def step(self, gradients: object) -> None:
        """Changes the parameters by gradients, which are nested as they are."""
        found = _checked_gradients(self._form, gradients)
        self.steps += 1
        (b1, b2), step = self.betas, float(self.rate)
        scale, root = step / (1 - b1**self.steps), 1 / math.sqrt(1 - b2**self.steps)
        for w, g, m, v in zip(self.parameters, found, *self._moments):
            expr("b * m + (1 - b) * g", out=m, m=m, g=g, b=b1)
            expr("b * v + (1 - b) * g * g", out=v, v=v, g=g, b=b2)
            expr("w - d * w - s * m / (sqrt(v) * q + e)", out=w, w=w, m=m, v=v, d=step * self.weight_decay, s=scale, q=root, e=self.epsilon)
