"""Distributions that tuff.Generator makes of uniform, exponential and normal numbers, each by one formula."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Callable, Dict, Sequence, Tuple, Union

import numpy as np

from . import linalg, raw
from ._checked import choice, real, wholes
from ._einsum import einsum
from ._expression import expr
from ._storage import Storage
from ._types import is_complex

if TYPE_CHECKING:
    from ._array import Array
    from ._context import Context
    from ._random import Size

    Parameter = Union[float, Sequence[float], np.ndarray, Array]

#: What a parameter's numbers have to be: the condition, and its words.
_Condition = Tuple[Callable[[np.ndarray], np.ndarray], str]
ANY: _Condition = (lambda x: x == x, "numbers, not NaN")
ABOVE_ZERO: _Condition = (lambda x: x > 0, "numbers above 0")
NOT_NEGATIVE: _Condition = (lambda x: x >= 0, "numbers that are not negative")
PROBABILITY: _Condition = (lambda x: (x >= 0) & (x <= 1), "numbers from 0 to 1")
CHANCE: _Condition = (lambda x: (x > 0) & (x <= 1), "numbers above 0, at most 1")
SHARE: _Condition = (lambda x: (x >= 0) & (x < 1), "numbers from 0, below 1")


class Parameters:
    """The parameters of a call, broadcast against each other and to its size: numbers, and arrays on the device. Those of
    the host are checked; what those of the device hold is not looked at."""

    def __init__(self, context: Context, size: Size, **given: Tuple[Parameter, _Condition]) -> None:
        self.context = context
        self.values: Dict[str, Union[float, Array]] = {}
        shapes = []
        for name, (value, (holds, words)) in given.items():
            if isinstance(value, Storage):
                if value.context is not context:
                    raise ValueError(f"{name} is of another context")
                if is_complex(value.dtype):
                    raise TypeError(f"{name} is of {value.dtype}, needs real numbers")
                self.values[name] = value if value.dtype == np.float32 else value.astype(np.float32)
                shapes.append(value.shape)
                continue
            found = np.asarray(value)
            if found.dtype.kind not in "fiub":
                raise TypeError(f"{name} is of {found.dtype}, needs real numbers")
            found = found.astype(np.float64)
            if not holds(found).all():
                raise ValueError(f"{name} is {value}, needs {words}")
            shapes.append(found.shape)
            self.values[name] = float(found) if found.ndim == 0 else context.array(found, np.float32)
        together = np.broadcast_shapes(*shapes)
        self.shape: Tuple[int, ...] = together if size is None else wholes(size, "size")
        padded = (1,) * (len(self.shape) - len(together)) + together
        if len(padded) != len(self.shape) or any(one not in (1, all_) for one, all_ in zip(padded, self.shape)):
            raise ValueError(f"size is {size}, and the parameters have the shape {together}")

    def require(self, holds: Callable[..., object], words: str) -> None:
        """Raises unless the condition holds for all numbers, where all of them are numbers of the host."""
        if not any(isinstance(one, Storage) for one in self.values.values()) and not holds(**self.values):
            raise ValueError(", ".join(f"{name} is {one}" for name, one in self.values.items()) + f": needs {words}")


class Distributions:
    """The methods of tuff.Generator whose parameters may be arrays."""

    __slots__ = ()

    def _of(self, formula: str, parameters: Parameters, draws: str, dtype: object = np.float32) -> Array:
        """A formula of parameters and of independent numbers: u and v are uniform, e exponential, z and w normal."""
        makes = {"u": self.random, "v": self.random, "e": self.standard_exponential, "z": self.standard_normal,
                 "w": self.standard_normal}  # fmt: skip
        drawn = {name: makes[name](parameters.shape) for name in draws}
        return expr(formula, dtype=dtype, **drawn, **parameters.values)

    def standard_exponential(self, size: Size = None, dtype: object = np.float32, method: str = "zig", out: Array = None) -> Array:
        """Exponentially distributed numbers of mean 1. Whatever method is, they are logarithms of uniform numbers."""
        choice(method, "method", {"zig": 0, "inv": 0})
        return self._draw(raw.RANDOM_EXPONENTIAL, size, dtype, out)

    def lognormal(self, mean: Parameter = 0.0, sigma: Parameter = 1.0, size: Size = None) -> Array:
        """Numbers whose logarithms are normal, of mean `mean` and standard deviation sigma."""
        given = Parameters(self._context, size, mean=(mean, ANY), sigma=(sigma, NOT_NEGATIVE))
        return self._of("exp(mean + sigma * z)", given, "z")

    def laplace(self, loc: Parameter = 0.0, scale: Parameter = 1.0, size: Size = None) -> Array:
        """Numbers of the Laplace distribution: of density exp(-|x - loc| / scale) / (2 scale)."""
        given = Parameters(self._context, size, loc=(loc, ANY), scale=(scale, NOT_NEGATIVE))
        return self._of("loc + (u < 0.5 ? -e : e) * scale", given, "ue")

    def logistic(self, loc: Parameter = 0.0, scale: Parameter = 1.0, size: Size = None) -> Array:
        """Numbers of the logistic distribution: P(x <= t) = 1 / (1 + exp(-(t - loc) / scale))."""
        given = Parameters(self._context, size, loc=(loc, ANY), scale=(scale, NOT_NEGATIVE))
        return self._of("loc - scale * log(expm1(e))", given, "e")

    def gumbel(self, loc: Parameter = 0.0, scale: Parameter = 1.0, size: Size = None) -> Array:
        """Numbers of the Gumbel distribution: P(x <= t) = exp(-exp(-(t - loc) / scale))."""
        given = Parameters(self._context, size, loc=(loc, ANY), scale=(scale, NOT_NEGATIVE))
        return self._of("loc - scale * log(e)", given, "e")

    def rayleigh(self, scale: Parameter = 1.0, size: Size = None) -> Array:
        """Numbers of the Rayleigh distribution: lengths of vectors of two normal numbers of deviation scale."""
        return self._of("scale * sqrt(2 * e)", Parameters(self._context, size, scale=(scale, NOT_NEGATIVE)), "e")

    def weibull(self, a: Parameter, size: Size = None) -> Array:
        """Numbers of the Weibull distribution of scale 1: P(x > t) = exp(-t^a)."""
        return self._of("a == 0 ? 0 : e ** (1 / a)", Parameters(self._context, size, a=(a, NOT_NEGATIVE)), "e")

    def pareto(self, a: Parameter, size: Size = None) -> Array:
        """Numbers of the Lomax distribution, as NumPy's pareto: P(x > t) = (1 + t)^-a."""
        return self._of("expm1(e / a)", Parameters(self._context, size, a=(a, ABOVE_ZERO)), "e")

    def power(self, a: Parameter, size: Size = None) -> Array:
        """Numbers from 0 to 1 of density a x^(a - 1)."""
        return self._of("exp(-e / a)", Parameters(self._context, size, a=(a, ABOVE_ZERO)), "e")

    def standard_cauchy(self, size: Size = None) -> Array:
        """Numbers of the Cauchy distribution: ratios of two normal numbers."""
        return self._of("z / w", Parameters(self._context, size if size is not None else ()), "zw")

    def triangular(self, left: Parameter, mode: Parameter, right: Parameter, size: Size = None) -> Array:
        """Numbers from left to right, whose density rises in a straight line up to mode, and then falls."""
        given = Parameters(self._context, size, left=(left, ANY), mode=(mode, ANY), right=(right, ANY))
        given.require(lambda left, mode, right: left <= mode <= right and left < right, "left <= mode <= right, and left < right")
        width = "s = right - left; "
        lower, upper = "left + sqrt(u * s * (mode - left))", "right - sqrt((1 - u) * s * (right - mode))"
        return self._of(f"{width}u * s < mode - left ? {lower} : {upper}", given, "u")

    def wald(self, mean: Parameter, scale: Parameter, size: Size = None) -> Array:
        """Numbers of the inverse Gaussian distribution. Of the two roots of Michael, Schucany and Haas (1976), the smaller one
        is computed without cancellation, and the other is mean^2 divided by it."""
        given = Parameters(self._context, size, mean=(mean, ABOVE_ZERO), scale=(scale, ABOVE_ZERO))
        smaller = "t = mean * z * z / scale; r = 1 + t / 2 + sqrt(t + t * t / 4); "
        return self._of(f"{smaller}u * (1 + r) <= r ? mean / r : mean * r", given, "uz")

    def geometric(self, p: Parameter, size: Size = None) -> Array:
        """How many trials it takes until the first success of probability p, as int64. Of numbers beyond 2^24, the first 24
        bits are random."""
        given = Parameters(self._context, size, p=(p, CHANCE))
        return self._of("p == 1 ? 1 : max(1, ceil(e / -log1p(-p)))", given, "e", np.int64)

    def logseries(self, p: Parameter, size: Size = None) -> Array:
        """Integers k of at least 1, with probability -p^k / (k log(1 - p)), as int64, by Kemp's algorithm LK (1981). Of numbers
        beyond 2^24, the first 24 bits are random."""
        given = Parameters(self._context, size, p=(p, SHARE))
        # v is moved to the middle of its step: its logarithm is finite.
        found = "t = v + 2.98023224e-8; q = -expm1(u * log1p(-p)); "
        return self._of(f"{found}t >= p || t >= q ? 1 : t > q * q ? 2 : max(1, floor(1 + log(t) / log(q)))", given, "uv", np.int64)

    def multivariate_normal(
        self,
        mean: Parameter,
        cov: Union[Array, np.ndarray, Sequence[Sequence[float]]],
        size: Size = None,
        check_valid: str = "warn",
        tol: float = 1e-4,
        *,
        method: str = "svd",
    ) -> Array:
        """Normal vectors of a mean (d,) and a covariance (d, d), as (*size, d). method "cholesky" needs a positive definite one;
        "svd" and "eigh" both take its eigenvectors. check_valid "warn" or "raise" compares the factor's product with cov, within
        tol, and waits for it; "ignore" does not."""
        checks = choice(check_valid, "check_valid", {"warn": 1, "raise": 2, "ignore": 0})
        by_cholesky = choice(method, "method", {"svd": False, "eigh": False, "cholesky": True})
        tol = real(tol, "tol")
        mean, cov = (one if isinstance(one, Storage) else self._context.array(np.asarray(one, np.float32)) for one in (mean, cov))
        if mean.ndim != 1 or cov.shape != 2 * mean.shape:
            raise ValueError(f"mean has shape {mean.shape} and cov {cov.shape}, needs (d,) and (d, d)")
        if by_cholesky:
            factor = linalg.cholesky(cov)
        else:
            values, vectors = linalg.eigh(cov)
            factor = vectors * expr("sqrt(max(x, 0))", x=values)
        if checks and not np.allclose((factor @ factor.T).numpy(), cov.numpy(), tol, tol):
            if checks == 2:
                raise ValueError("cov is not symmetric and positive semidefinite")
            warnings.warn("cov is not symmetric and positive semidefinite", RuntimeWarning, stacklevel=2)
        shape = () if size is None else wholes(size, "size")
        drawn = self.standard_normal((*shape, *mean.shape))
        return einsum("...j,ij->...i", drawn, factor) + mean
