"""What changes parameters by their gradients. tuff.grad exports it."""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
import operator
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from . import _functions as functions
from . import raw
from ._array import Array
from ._checked import real
from ._error import check
from ._expression import expr
from ._operands import dtype_of, require_array, sizes_of
from ._storage import DTYPES, Strided
from ._tape import leaves_of, wide_type, widened, with_leaves
from ._tracing import any_traced

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


# --- Lists of tensors, as the C functions take them.

_LISTED = (raw.F32, raw.F16, raw.BF16)


def _is_listed(x: Array) -> bool:
    return DTYPES.get(x.dtype) in _LISTED and not isinstance(x, Strided)


def _handles(arrays: Sequence[Array]) -> ctypes.Array:
    return sizes_of([one.buffer.handle for one in arrays])


def _groups(arrays: Sequence[Array], beside: Optional[Sequence[Array]] = None) -> List[List[int]]:
    """The places of arrays that one call takes: of one context and type, as those beside them, and none twice."""
    found: Dict[tuple, List[int]] = {}
    seen: Dict[int, int] = {}
    for at, one in enumerate(arrays):
        times = seen[one.buffer.handle] = seen.get(one.buffer.handle, 0) + 1
        found.setdefault((one.context, one.dtype, None if beside is None else beside[at].dtype, times), []).append(at)
    return list(found.values())


def _number(value: Optional[Array], name: str, dtype: type) -> int:
    """The handle of an array of one element; 0 for None."""
    if value is None:
        return 0
    require_array(value, name)
    if value.size != 1 or value.dtype != dtype:
        raise ValueError(f"{name} has shape {value.shape} and is of {value.dtype}: needs one element of {np.dtype(dtype)}")
    return value.buffer.handle


def _scale(value: float) -> float:
    scale = real(value, "scale")
    if scale == 0 or not math.isfinite(scale):  # in C 0 is 1
        raise ValueError(f"scale is {scale!r}, needs to be finite and not 0")
    return scale


def _natural(value: float, name: str) -> float:
    number = real(value, name)
    if not 0 <= number < math.inf:
        raise ValueError(f"{name} is {number!r}, needs to be at least 0 and finite")
    return number


def gradient_norm(
    gradients: Any, limit: Optional[float] = None, *, scale: float = 1.0, factor: Optional[Array] = None
) -> Tuple[Array, Array, Array]:
    """(norm, factor, found): the length of all gradients together, times scale and the given factor; what they are to be
    multiplied by so that it is at most the limit, a factor for an optimiser's step; and 1 if one is infinite or NaN, its skip.

    Each is an array of one element, of float32, float32 and int32, which nothing waits for. Gradients are arrays, nested
    in any way, of float32 or 16-bit floats.
    """
    leaves: List[Array] = []
    leaves_of(gradients, leaves)
    scale, limit = _scale(scale), 0.0 if limit is None else real(limit, "limit")
    if not leaves:
        raise ValueError("gradients hold no array")
    for one in leaves:
        if not _is_listed(one):
            raise TypeError(f"a gradient is of {one.dtype}, needs float32, float16 or bfloat16 in dense memory")
        if one.context is not leaves[0].context:
            raise ValueError("gradients are of different contexts")
    context = leaves[0].context
    norm, result = context.empty(1, np.float32), context.empty(1, np.float32)
    found = context.empty(1, np.int32)
    groups = _groups(leaves)
    for number, places in enumerate(groups):
        listed = [leaves[at] for at in places]
        desc = raw.GradientNormDesc(
            dtype=dtype_of(listed[0]), accumulate=int(number != 0), count=len(listed), sizes=sizes_of([one.size for one in listed]),
            gradients=_handles(listed), gradient_scale=scale, limit=limit,
            gradient_factor=_number(factor, "factor", np.float32), norm=norm.buffer.handle, found=found.buffer.handle,
        )  # fmt: skip
        if number + 1 == len(groups):  # by the norm of all
            desc.factor = result.buffer.handle
        check(raw.tuff_gradient_norm(context.stream_handle, desc))
    return norm, result, found


def clip_norm(gradients: Any, limit: float) -> Any:
    """The gradients, all scaled alike if the length of all of them together is above the limit."""
    leaves: List[Array] = []
    leaves_of(gradients, leaves)
    limit = real(limit, "limit")
    if not limit > 0:
        raise ValueError(f"limit is {limit!r}, needs to be above 0")
    if not leaves:
        return gradients
    if not any_traced(leaves) and all(_is_listed(one) for one in leaves):
        factor = gradient_norm(leaves, limit)[1]
    else:
        squares = functools.reduce(functions.add, (widened(one).sum_squares() for one in leaves))
        factor = expr("s <= l * l ? 1 : l * rsqrt(s)", s=squares, l=limit)
    return with_leaves(gradients, iter([expr("g * f", dtype=one.dtype, g=one, f=factor) for one in leaves]))


class _Group:
    """Parameters that one call takes, and what is the same in each of its steps."""

    def __init__(self, places: List[int], w: List[Array], g: Array, moments: Sequence[Sequence[Array]]) -> None:
        self.places, self.context = places, w[0].context
        self.fixed = dict(
            dtype=dtype_of(w[0]), gradient_type=dtype_of(g), count=len(w), sizes=sizes_of([one.size for one in w]),
            parameters=_handles(w),
        )  # fmt: skip
        for name, arrays in zip(("first_moments", "second_moments"), moments):
            self.fixed[name] = _handles([arrays[at] for at in places])


class _Plan:
    """How a step with gradients like these is divided: `groups` by lists, and the places of the others."""

    def __init__(self, parameters: List[Array], moments: Sequence[Sequence[Array]], gradients: List[Array]) -> None:
        self._arrays = [*parameters, *itertools.chain(*moments)]
        self._kinds = self._kinds_of(gradients)
        listed = [at for at, (w, g) in enumerate(zip(parameters, gradients))
                  if _is_listed(w) and _is_listed(g) and g.dtype in (w.dtype, np.float32)]  # fmt: skip
        self.others = sorted(set(range(len(gradients))) - set(listed))
        self.groups: List[_Group] = []
        for group in _groups([parameters[at] for at in listed], [gradients[at] for at in listed]):
            places = [listed[at] for at in group]
            self.groups.append(_Group(places, [parameters[at] for at in places], gradients[places[0]], moments))

    @staticmethod
    def _kinds_of(gradients: List[Array]) -> list:
        return [*map(type, gradients), *(one.dtype for one in gradients)]

    def fits(self, parameters: List[Array], moments: Sequence[Sequence[Array]], gradients: List[Array]) -> bool:
        """Whether the arrays are the same ones, and gradients of the same types."""
        arrays = [*parameters, *itertools.chain(*moments)]
        return (len(arrays) == len(self._arrays) and all(map(operator.is_, arrays, self._arrays))
                and self._kinds_of(gradients) == self._kinds)  # fmt: skip


class _Optimiser:
    """What the optimisers share: parameters, their moments, and steps by lists."""

    _algorithm: int

    def __init__(self, parameters: object, rate: float, weight_decay: float) -> None:
        self.parameters: List[Array] = []
        leaves_of(parameters, self.parameters)
        self._form = parameters
        self.rate, self.weight_decay = real(rate, "rate"), real(weight_decay, "weight_decay")
        self.steps = 0
        self._moments: List[List[Array]] = []
        self._plan: Optional[_Plan] = None

    def _add_moments(self, count: int) -> None:
        self._moments = [[one.context.zeros(one.shape, wide_type(one)) for one in self.parameters] for _ in range(count)]

    def step(
        self, gradients: object, *, scale: float = 1.0, factor: Optional[Array] = None, skip: Optional[Array] = None
    ) -> None:
        """Changes the parameters by gradients, which are nested as they are.

        scale   gradients are multiplied by this, as by 1 / s if the loss was multiplied by s
        factor  an array of one float32 that they are multiplied by, too, such as gradient_norm() gives
        skip    an array of one int32: unless it is 0, nothing changes, but that `steps` counts the step
        """
        found = _checked_gradients(self._form, gradients)
        scale = _scale(scale)
        factor, skip = _number(factor, "factor", np.float32), _number(skip, "skip", np.int32)
        self._check()
        moments, step = self._used_moments(), self.steps + 1
        if self._plan is None or not self._plan.fits(self.parameters, moments, found):
            self._plan = _Plan(self.parameters, moments, found)
        plan = self._plan
        if plan.others and (factor or skip):
            raise TypeError(
                "factor and skip are for dense parameters of float32 and 16-bit floats with gradients of that type or float32"
            )
        if len(plan.groups) + len(plan.others) > 1:  # the call for one list refuses them itself, before it changes anything
            for w, g in zip(self.parameters, found):
                if g.context is not w.context:
                    raise ValueError("parameters and their gradients are of different contexts")
        for group in plan.groups:
            desc = raw.OptimizerDesc(
                algorithm=self._algorithm, gradients=_handles([found[at] for at in group.places]), rate=float(self.rate),
                weight_decay=float(self.weight_decay), gradient_scale=scale, gradient_factor=factor, skip=skip, **group.fixed,
            )  # fmt: skip
            self._describe(desc, step)
            check(raw.tuff_optimizer_step(group.context.stream_handle, desc))
        for at in plan.others:
            g = found[at] if scale == 1 else expr("s * g", dtype=found[at].dtype, s=scale, g=found[at])
            self._step_one(self.parameters[at], g, step, *(arrays[at] for arrays in moments))
        self.steps = step

    def _check(self) -> None:
        """The numbers, which may have been changed since the last step."""
        _natural(self.rate, "rate")
        _natural(self.weight_decay, "weight_decay")

    def _used_moments(self) -> Sequence[Sequence[Array]]:
        return self._moments

    def _describe(self, desc: Any, step: int) -> None:
        raise NotImplementedError

    def _step_one(self, w: Array, g: Array, step: int, *moments: Array) -> None:
        """The same by formulas, for types that lists do not take."""
        raise NotImplementedError


class SGD(_Optimiser):
    """Stochastic gradient descent: v = momentum * v + g + weight_decay * w; w -= rate * v. With nesterov
    w -= rate * (g + weight_decay * w + momentum * v)."""

    _algorithm = raw.OPTIMIZER_SGD

    def __init__(
        self, parameters: object, rate: float, *, momentum: float = 0.0, nesterov: bool = False, weight_decay: float = 0.0
    ) -> None:
        super().__init__(parameters, rate, weight_decay)
        self.momentum, self.nesterov = real(momentum, "momentum"), bool(nesterov)
        self._check_momentum()

    def _check(self) -> None:
        super()._check()
        _natural(self.momentum, "momentum")
        self._check_momentum()

    def _check_momentum(self) -> None:
        if self.nesterov and not self.momentum > 0:
            raise ValueError(f"nesterov needs a momentum above 0, not {self.momentum}")
        if self.momentum and not self._moments:
            self._add_moments(1)

    def _used_moments(self) -> Sequence[Sequence[Array]]:
        return self._moments if self.momentum else ()

    def _describe(self, desc: Any, step: int) -> None:
        desc.momentum, desc.nesterov = float(self.momentum), int(self.nesterov)

    def _step_one(self, w: Array, g: Array, step: int, *moments: Array) -> None:
        rate, decay, momentum = float(self.rate), float(self.weight_decay), float(self.momentum)
        if not moments:
            expr("w - r * (g + d * w)", out=w, w=w, g=g, r=rate, d=decay)
            return
        (v,) = moments
        expr("m * v + g + d * w", out=v, v=v, g=g, w=w, m=momentum, d=decay)
        if self.nesterov:
            expr("w - r * (g + d * w + m * v)", out=w, w=w, g=g, v=v, r=rate, d=decay, m=momentum)
        else:
            expr("w - r * v", out=w, w=w, v=v, r=rate)


class Adam(_Optimiser):
    """Adam by Kingma and Ba, with weight decay that is not part of the gradient (AdamW)."""

    _algorithm = raw.OPTIMIZER_ADAMW

    def __init__(
        self,
        parameters: object,
        rate: float = 1e-3,
        *,
        betas: Tuple[float, float] = (0.9, 0.999),
        epsilon: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(parameters, rate, weight_decay)
        self.epsilon = real(epsilon, "epsilon")
        self.betas = tuple(real(beta, "betas") for beta in betas)
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas are {betas!r}, needs two numbers from 0 to below 1")
        self._add_moments(2)

    def _check(self) -> None:
        super()._check()
        _natural(self.epsilon, "epsilon")

    def _describe(self, desc: Any, step: int) -> None:
        (desc.beta1, desc.beta2), desc.epsilon, desc.step = self.betas, float(self.epsilon), step

    def _direction(self, g: Array, step: int, m: Array, v: Array) -> Dict[str, Any]:
        """Updates the moments. The variables of Adam's direction, "s * m / (sqrt(v) * q + e)"."""
        b1, b2 = self.betas
        expr("b * m + (1 - b) * g", out=m, m=m, g=g, b=b1)
        expr("b * v + (1 - b) * g * g", out=v, v=v, g=g, b=b2)
        return dict(m=m, v=v, s=1 / (1 - b1**step), q=1 / math.sqrt(1 - b2**step), e=float(self.epsilon))

    def _step_one(self, w: Array, g: Array, step: int, *moments: Array) -> None:
        names, rate = self._direction(g, step, *moments), float(self.rate)
        expr("w - d * w - r * (s * m / (sqrt(v) * q + e))", out=w, w=w, d=rate * self.weight_decay, r=rate, **names)


class LAMB(Adam):
    """LAMB by You et al.: steps in Adam's direction, with weight decay, as long for each parameter as it is itself,
    times the rate."""

    _algorithm = raw.OPTIMIZER_LAMB

    def __init__(
        self,
        parameters: object,
        rate: float = 1e-3,
        *,
        betas: Tuple[float, float] = (0.9, 0.999),
        epsilon: float = 1e-6,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(parameters, rate, betas=betas, epsilon=epsilon, weight_decay=weight_decay)

    def _step_one(self, w: Array, g: Array, step: int, *moments: Array) -> None:
        names = self._direction(g, step, *moments)
        u = expr("s * m / (sqrt(v) * q + e) + d * w", dtype=wide_type(w), w=w, d=float(self.weight_decay), **names)
        ratio = expr("a == 0 ? 1 : b == 0 ? 1 : sqrt(a) / sqrt(b)", a=widened(w).sum_squares(), b=u.sum_squares())
        expr("w - r * t * u", out=w, w=w, u=u, t=ratio, r=float(self.rate))
