"""Distributions of tuff.Generator: formulas of uniform, exponential and normal numbers, and those of tuff_variates()."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Callable, Dict, Optional, Sequence, Tuple, Union

import numpy as np

from . import linalg, raw
from ._checked import I32, choice, real, whole, wholes
from ._einsum import einsum
from ._expression import expr
from ._layout import Strided, dense
from ._protocol import stack
from ._storage import Storage
from ._types import is_complex
from ._views import broadcast_to

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
ABOVE_ONE: _Condition = (lambda x: x > 1, "numbers above 1")
RATE: _Condition = (lambda x: (x >= 0) & (x <= 2**31 - 2**20), "numbers from 0 to 2^31 - 2^20")
COUNT: _Condition = (lambda x: (x >= 0) & (x < 2**31) & (x == np.floor(x)), "integers from 0 to 2^31 - 1")


class Parameters:
    """The parameters of a call, broadcast against each other and to its size: numbers, and arrays on the device. Those of
    the host are checked; what those of the device hold is not looked at."""

    def __init__(self, context: Context, size: Size, **given: Tuple[Parameter, _Condition]) -> None:
        self.context = context
        self.values: Dict[str, Union[float, Array]] = {}
        shapes = []
        for name, (value, condition) in given.items():
            holds, words = condition
            kind = np.int32 if condition is COUNT else np.float32
            if isinstance(value, Storage):
                if value.context is not context:
                    raise ValueError(f"{name} is of another context")
                if is_complex(value.dtype):
                    raise TypeError(f"{name} is of {value.dtype}, needs real numbers")
                self.values[name] = value if value.dtype == kind else value.astype(kind)
                shapes.append(value.shape)
                continue
            found = np.asarray(value)
            if found.dtype.kind not in "fiub":
                raise TypeError(f"{name} is of {found.dtype}, needs real numbers")
            found = found.astype(np.float64)
            if not holds(found).all():
                raise ValueError(f"{name} is {value}, needs {words}")
            shapes.append(found.shape)
            self.values[name] = float(found) if found.ndim == 0 else context.array(found, kind)
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

    def _variates(self, distribution: int, given: Parameters, dtype: object = np.int32, out: Optional[Array] = None) -> Array:
        """Numbers of tuff_variates() with these parameters, in their order."""
        result = self._context.empty(given.shape, dtype) if out is None else out
        fields, kept = {}, []
        for field, value in zip(("first", "second", "third"), given.values.values()):
            if isinstance(value, Storage):
                kept.append(dense(broadcast_to(value, given.shape)))
                fields[field] = kept[-1].buffer.handle
            else:
                fields[f"{field}_value"] = value
        return self._record(raw.tuff_variates, raw.VariatesDesc, distribution, result, **fields)

    def _counts(self, distribution: int, given: Parameters) -> Array:
        return self._variates(distribution, given).astype(np.int64)

    def _gamma(self, shape: Union[float, Array], size: Tuple[int, ...], distribution: int = raw.VARIATES_GAMMA) -> Array:
        """Gamma numbers of a shape that has been checked."""
        return self._variates(distribution, Parameters(self._context, size, shape=(shape, NOT_NEGATIVE)), np.float32)

    def standard_gamma(self, shape: Parameter, size: Size = None, dtype: object = np.float32, out: Optional[Array] = None) -> Array:
        """Gamma numbers of a shape and scale 1, the same on every device. Numbers below 1.2e-38 are 0."""
        given = Parameters(self._context, self._size(size, out), shape=(shape, NOT_NEGATIVE))
        if out is not None and out.context is not self._context:
            raise ValueError("out is of another context")
        if out is not None and (isinstance(out, Strided) or out.dtype != np.float32):
            out[...] = self._variates(raw.VARIATES_GAMMA, given, np.float32)
            return out
        drawn = self._variates(raw.VARIATES_GAMMA, given, np.float32, out)
        return drawn if out is not None or np.dtype(dtype) == np.float32 else drawn.astype(dtype)

    def gamma(self, shape: Parameter, scale: Parameter = 1.0, size: Size = None) -> Array:
        """Gamma numbers of a shape and a scale: of density x^(shape - 1) exp(-x / scale)."""
        given = Parameters(self._context, size, shape=(shape, NOT_NEGATIVE), scale=(scale, NOT_NEGATIVE))
        return self._gamma(given.values["shape"], given.shape) * given.values["scale"]

    def chisquare(self, df: Parameter, size: Size = None) -> Array:
        """Sums of squares of df standard normal numbers, df above 0, also between integers."""
        given = Parameters(self._context, size, df=(df, ABOVE_ZERO))
        return self._gamma(given.values["df"] * 0.5, given.shape) * 2.0

    def f(self, dfnum: Parameter, dfden: Parameter, size: Size = None) -> Array:
        """Ratios of two chi-squared numbers, each divided by its degrees of freedom."""
        given = Parameters(self._context, size, dfnum=(dfnum, ABOVE_ZERO), dfden=(dfden, ABOVE_ZERO))
        x, y = (self._gamma(one * 0.5, given.shape) for one in given.values.values())
        return expr("x / dfnum * (dfden / y)", x=x, y=y, **given.values)

    def standard_t(self, df: Parameter, size: Size = None) -> Array:
        """Numbers of Student's t distribution with df degrees of freedom."""
        given = Parameters(self._context, size, df=(df, ABOVE_ZERO))
        y = self._gamma(given.values["df"] * 0.5, given.shape)
        return expr("z * sqrt(0.5 * df / y)", z=self.standard_normal(given.shape), y=y, **given.values)

    def noncentral_chisquare(self, df: Parameter, nonc: Parameter, size: Size = None) -> Array:
        """Chi-squared numbers of df + 2 k degrees of freedom, where k is Poisson of mean nonc / 2."""
        given = Parameters(self._context, size, df=(df, ABOVE_ZERO), nonc=(nonc, NOT_NEGATIVE))
        k = self._variates(raw.VARIATES_POISSON, Parameters(self._context, given.shape, nonc=(given.values["nonc"] * 0.5, RATE)))
        shape = expr("0.5 * df + f32(k)", dtype=np.float32, k=k, df=given.values["df"])
        return self._gamma(shape, given.shape) * 2.0

    def noncentral_f(self, dfnum: Parameter, dfden: Parameter, nonc: Parameter, size: Size = None) -> Array:
        """Ratios of a noncentral chi-squared number to a chi-squared one, each divided by its degrees of freedom."""
        given = Parameters(
            self._context, size, dfnum=(dfnum, ABOVE_ZERO), dfden=(dfden, ABOVE_ZERO), nonc=(nonc, NOT_NEGATIVE)
        )
        top, bottom = given.values["dfnum"], given.values["dfden"]
        x = self.noncentral_chisquare(top, given.values["nonc"], given.shape)
        return expr("x / top * (bottom / (2 * y))", x=x, y=self._gamma(bottom * 0.5, given.shape), top=top, bottom=bottom)

    def beta(self, a: Parameter, b: Parameter, size: Size = None) -> Array:
        """Numbers from 0 to 1 of density x^(a - 1) (1 - x)^(b - 1): x / (x + y) of two gamma numbers, of their logarithms where
        a or b is below 1 and both may be 0."""
        given = Parameters(self._context, size, a=(a, ABOVE_ZERO), b=(b, ABOVE_ZERO))
        numbers = not any(isinstance(one, Storage) for one in given.values.values())
        formulas = {raw.VARIATES_GAMMA: "x / (x + y)", raw.VARIATES_LOG_GAMMA: "1 / (1 + exp(y - x))"}
        if numbers:  # one of the two is enough
            del formulas[raw.VARIATES_LOG_GAMMA if min(given.values.values()) >= 1 else raw.VARIATES_GAMMA]
        found = []
        for distribution, formula in formulas.items():
            x, y = (self._gamma(one, given.shape, distribution) for one in given.values.values())
            found.append(expr(formula, x=x, y=y))
        return found[0] if numbers else expr("min(a, b) >= 1 ? x : y", dtype=np.float32, x=found[0], y=found[1], **given.values)

    def dirichlet(self, alpha: Parameter, size: Size = None) -> Array:
        """Vectors of numbers from 0 to 1 whose sum is 1, (*size, k), with k weights alpha: the softmax of logarithms of gamma
        numbers."""
        given = Parameters(self._context, None, alpha=(alpha, ABOVE_ZERO))
        if len(given.shape) != 1 or given.shape[0] == 0:
            raise ValueError(f"alpha has the shape {given.shape}, needs one axis and a number")
        shape = (*(() if size is None else wholes(size, "size")), *given.shape)
        return self._gamma(given.values["alpha"], shape, raw.VARIATES_LOG_GAMMA).softmax(-1)

    def vonmises(self, mu: Parameter, kappa: Parameter, size: Size = None) -> Array:
        """Angles from -pi to pi of density exp(kappa cos(x - mu))."""
        given = Parameters(self._context, size, mu=(mu, ANY), kappa=(kappa, NOT_NEGATIVE))
        around = Parameters(self._context, given.shape, kappa=(given.values["kappa"], NOT_NEGATIVE))
        x = self._variates(raw.VARIATES_VONMISES, around, np.float32)
        return expr("t = x + mu; t - 2 * pi * floor((t + pi) / (2 * pi))", x=x, mu=given.values["mu"])

    def poisson(self, lam: Parameter = 1.0, size: Size = None) -> Array:
        """How many events occur where lam are expected, up to 2^31 - 2^20, as int64; the same on every device. -1 where an array
        of the device holds a lam out of range, as of every method that counts."""
        return self._counts(raw.VARIATES_POISSON, Parameters(self._context, size, lam=(lam, RATE)))

    def binomial(self, n: Parameter, p: Parameter, size: Size = None) -> Array:
        """How many of n trials, below 2^31, succeed with probability p each, as int64; the same on every device."""
        return self._counts(raw.VARIATES_BINOMIAL, Parameters(self._context, size, n=(n, COUNT), p=(p, PROBABILITY)))

    def negative_binomial(self, n: Parameter, p: Parameter, size: Size = None) -> Array:
        """How many failures precede success number n, as int64: Poisson numbers whose mean is (1 - p) / p times a gamma number of
        shape n. -1 where that is beyond 2^31 - 2^20."""
        given = Parameters(self._context, size, n=(n, ABOVE_ZERO), p=(p, CHANCE))
        rate = expr("g * ((1 - p) / p)", g=self._gamma(given.values["n"], given.shape), p=given.values["p"])
        return self._counts(raw.VARIATES_POISSON, Parameters(self._context, given.shape, rate=(rate, RATE)))

    def hypergeometric(self, ngood: Parameter, nbad: Parameter, nsample: Parameter, size: Size = None) -> Array:
        """How many of nsample that are drawn without replacement from ngood + nbad, below 2^31, are good ones, as int64; the
        same on every device."""
        given = Parameters(self._context, size, ngood=(ngood, COUNT), nbad=(nbad, COUNT), nsample=(nsample, COUNT))
        given.require(lambda ngood, nbad, nsample: nsample <= ngood + nbad <= I32, "nsample <= ngood + nbad < 2^31")
        return self._counts(raw.VARIATES_HYPERGEOMETRIC, given)

    def multivariate_hypergeometric(
        self, colors: Sequence[int], nsample: int, size: Size = None, method: str = "marginals"
    ) -> Array:
        """How many of each colour are among nsample that are drawn without replacement, (*size, colours), as int64. Whatever
        method is, the colours are drawn one after another."""
        choice(method, "method", {"marginals": 0, "count": 0})
        counts = [whole(int(one) if isinstance(one, np.integer) else one, "colors", 0, I32) for one in
                  (colors.numpy() if isinstance(colors, Storage) else colors)]  # fmt: skip
        rest = sum(counts)
        if not counts or rest > I32:
            raise ValueError(f"colors is {colors}, needs integers whose sum is below 2^31")
        shape = () if size is None else wholes(size, "size")
        left = self._context.full(shape, whole(nsample, "nsample", 0, rest), np.int32)
        found = []
        for count in counts[:-1]:
            rest -= count
            given = Parameters(self._context, shape, ngood=(count, COUNT), nbad=(rest, COUNT), nsample=(left, COUNT))
            found.append(self._variates(raw.VARIATES_HYPERGEOMETRIC, given))
            left = left - found[-1]
        return stack([*found, left], -1).astype(np.int64)

    def zipf(self, a: Parameter, size: Size = None) -> Array:
        """Integers k of at least 1, with probability k^-a / zeta(a), as int64; the same on every device. Numbers beyond 2^31 - 1
        are 2^31 - 1; of those beyond 2^24, the first 24 bits are random."""
        return self._counts(raw.VARIATES_ZIPF, Parameters(self._context, size, a=(a, ABOVE_ONE)))

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
