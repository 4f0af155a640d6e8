"""Random numbers."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import _indexing as indexing
from . import _searching as searching
from . import _shape as shapes
from . import _sorting as sorting
from . import raw
from ._array import Array
from ._checked import U32, U64, I32, I64, is_number, is_whole, real, whole, wholes
from ._distributions import ANY, NOT_NEGATIVE, Distributions, Parameters
from ._error import check
from ._expression import expr
from ._operands import dtype_of, require_array, require_dense, require_rank, result_of, whole_axis
from ._storage import Storage
from ._tracing import differentiable

if TYPE_CHECKING:
    from ._context import Context
    from ._distributions import Parameter

    Size = Union[None, int, Sequence[int]]

__all__ = ["Generator"]


class Generator(Distributions):
    """Draws random numbers on a device: tuff.Generator(ctx, seed), with the methods of numpy.random.Generator.

    The same seed gives the same numbers on every device. Without a seed, the operating system chooses one. Each call
    continues the sequence where the last one ended; `seed`, `sequence` and `offset` say where that is, and may be given
    to begin there. Generators that differ in seed or sequence are independent, for threads and workers. The numbers are
    not NumPy's: the generator is Philox4x32-10.
    """

    __slots__ = ("_context", "_spawned", "offset", "seed", "sequence")

    def __init__(self, context: Context, seed: Optional[int] = None, *, sequence: int = 0, offset: int = 0) -> None:
        if not hasattr(context, "stream_handle"):
            raise TypeError(f"context is {type(context).__name__}, not a tuff.Context")
        self._context = context
        self.seed = int.from_bytes(os.urandom(8), "little") if seed is None else whole(seed, "seed", 0, U64)
        self.sequence = whole(sequence, "sequence", 0, U64)
        self.offset = whole(offset, "offset", 0, U64)
        self._spawned = 0

    def __repr__(self) -> str:
        return f"tuff.Generator(seed={self.seed}, sequence={self.sequence}, offset={self.offset})"

    def random(self, size: Size = None, dtype: object = np.float32, out: Optional[Array] = None) -> Array:
        """Uniform numbers from 0 to 1, without 1."""
        return self._draw(raw.RANDOM_UNIFORM, size, dtype, out, low=0.0, high=1.0)

    def uniform(
        self, low: Parameter = 0.0, high: Parameter = 1.0, size: Size = None, dtype: object = np.float32, out: Optional[Array] = None
    ) -> Array:
        """Uniform numbers from low to high, which may be arrays."""
        if not (is_number(low) and is_number(high)):
            given = Parameters(self._context, self._size(size, out), low=(low, ANY), high=(high, ANY))
            return expr("low + (high - low) * u", dtype=None if out is not None else dtype, out=out, u=self.random(given.shape), **given.values)
        low, high = real(low, "low"), real(high, "high")
        if low == high == 0:
            return self.uniform(0.0, 1.0, size, dtype, out) * 0.0  # in the descriptor, both 0 stand for 0 and 1
        return self._draw(raw.RANDOM_UNIFORM, size, dtype, out, low=low, high=high)

    def standard_normal(self, size: Size = None, dtype: object = np.float32, out: Optional[Array] = None) -> Array:
        """Normal numbers of mean 0 and standard deviation 1."""
        return self._draw(raw.RANDOM_NORMAL, size, dtype, out)

    def normal(
        self, loc: Parameter = 0.0, scale: Parameter = 1.0, size: Size = None, dtype: object = np.float32, out: Optional[Array] = None
    ) -> Array:
        """Normal numbers of mean loc and standard deviation scale, above 0. Both may be arrays; those may hold 0."""
        if not (is_number(loc) and is_number(scale)):
            given = Parameters(self._context, self._size(size, out), loc=(loc, ANY), scale=(scale, NOT_NEGATIVE))
            return expr("loc + scale * z", dtype=None if out is not None else dtype, out=out, z=self.standard_normal(given.shape), **given.values)
        return self._draw(raw.RANDOM_NORMAL, size, dtype, out, mean=real(loc, "loc"), deviation=_above_zero(scale))

    def exponential(
        self, scale: Parameter = 1.0, size: Size = None, dtype: object = np.float32, out: Optional[Array] = None
    ) -> Array:
        """Exponentially distributed numbers of mean scale, above 0. It may be an array, which may hold 0."""
        if not is_number(scale):
            given = Parameters(self._context, self._size(size, out), scale=(scale, NOT_NEGATIVE))
            return expr("scale * e", dtype=None if out is not None else dtype, out=out, e=self.standard_exponential(given.shape), **given.values)
        return self._draw(raw.RANDOM_EXPONENTIAL, size, dtype, out, scale=_above_zero(scale))

    def integers(
        self,
        low: int,
        high: Optional[int] = None,
        size: Size = None,
        dtype: object = np.int32,
        endpoint: bool = False,
        out: Optional[Array] = None,
    ) -> Array:
        """Integers from low to high, without high unless endpoint; from 0 to low if high is None."""
        if high is None:
            low, high = 0, low
        most = whole(high, "high", -I64, I64) - (0 if endpoint else 1)
        least = whole(low, "low", -I64, I64)
        if least > most:
            raise ValueError(f"low is {low} and high is {high}: there is no integer between")
        return self._draw(raw.RANDOM_INTEGERS, size, dtype, out, least=least, most=most)

    def bytes(self, length: int) -> bytes:
        """Random bytes, on the host: it waits for them."""
        return self._draw(raw.RANDOM_BITS, whole(length, "length", 0, I64), np.uint8, None).numpy().tobytes()

    def spawn(self, n_children: int) -> List[Generator]:
        """Independent generators, for threads and workers. Their seeds and sequences, 128 bits, are hashes of this one's and of
        how many it has spawned, by NumPy's SeedSequence; they do not depend on its offset."""
        first, self._spawned = self._spawned, self._spawned + whole(n_children, "n_children", 0, U32)
        children = []
        for number in range(first, self._spawned):
            hashed = np.random.SeedSequence([self.seed, self.sequence], spawn_key=(number,)).generate_state(2, np.uint64)
            children.append(Generator(self._context, int(hashed[0]), sequence=int(hashed[1])))
        return children

    def bernoulli(self, p: float = 0.5, size: Size = None, dtype: object = np.uint8, out: Optional[Array] = None) -> Array:
        """1 with probability p, otherwise 0."""
        return self._draw(raw.RANDOM_BERNOULLI, size, dtype, out, probability=real(p, "p"))

    @differentiable
    def dropout(self, x: Array, p: float = 0.5, *, mask: bool = False, out: Optional[Array] = None) -> Union[Array, Tuple[Array, Array]]:
        """x / (1 - p), but 0 with probability p, for each element; out may be x. With mask, also bools which say what was
        kept. The gradient with respect to x is g / (1 - p) where the mask is true, otherwise 0: a generator of the same seed,
        sequence and offset makes it of g."""
        require_array(x, "x")
        result = result_of(out, x, x.shape)
        kept = x.context.empty(x.shape, np.bool_) if mask else None
        if x.context is not self._context:
            raise ValueError("x is of another context")
        desc = raw.DropoutDesc(
            dtype=dtype_of(x),
            input=x.buffer.handle,
            output=result.buffer.handle,
            mask=raw.NULL_HANDLE if kept is None else kept.buffer.handle,
            n=x.size,
            seed=self.seed,
            sequence=self.sequence,
            offset=self.offset,
            probability=real(p, "p"),
        )
        check(raw.tuff_dropout(self._context.stream_handle, desc))
        self.offset += (x.size + 3) // 4 * 4
        return result if kept is None else (result, kept)

    # Orders. An element's place is that of its key of 64 random bits among all keys; of n elements, all orders are equally
    # likely to n^2 / 2^65, the probability that two keys are equal (their elements keep their order).

    def permutation(self, x: Union[int, Array], axis: int = 0) -> Array:
        """The slices of an array along an axis in random order, in a new array; of an integer n the numbers from 0 to
        n - 1, as int64."""
        if is_whole(x):
            return self._order((whole(x, "x", 0, I64),), 0)
        require_array(x, "x")
        along = whole_axis(axis, x.ndim)
        return shapes.take(x, self._order((x.shape[along],), 0), along)

    def shuffle(self, x: Array, axis: int = 0) -> None:
        """Brings the slices of an array along an axis into random order, in place."""
        require_array(x, "x")
        x.assign(self.permutation(x, axis))

    def permuted(self, x: Array, axis: Optional[int] = None) -> Array:
        """The elements in random order along an axis, each row in an order of its own, in a new array; the elements of all
        axes if axis is None."""
        require_array(x, "x")
        if axis is None:
            return shapes.take(x.ravel(), self._order((x.size,), 0), 0).reshape(x.shape)
        along = whole_axis(axis, x.ndim)
        require_rank(x, "x")
        return shapes.gather(x, self._order(x.shape, along), along)

    def choice(
        self,
        a: Union[int, Array],
        size: Size = None,
        replace: bool = True,
        p: Union[None, Array, Sequence[float]] = None,
        axis: int = 0,
        shuffle: bool = True,
    ) -> Array:
        """Random slices of an array along an axis, or of an integer n numbers from 0 to n - 1, as int64: with replacement,
        or all different. p has their probabilities, by default equal ones; of a device's p, the host waits for it. Those of
        choices with replacement are rounded to multiples of 2^-32. Without replacement, each choice is one of those that are
        left, with probabilities in proportion to p. shuffle changes nothing: choices are always in random order."""
        if is_whole(a):
            n, along = whole(a, "a", 0, 2**31), 0
        else:
            require_array(a, "a")
            along = whole_axis(axis, a.ndim)
            n = whole(a.shape[along], f"the size of axis {along}", 0, 2**31)
        shape: Tuple[int, ...] = () if size is None else wholes(size, "size")
        count = math.prod(shape)
        if n == 0 and count != 0:
            raise ValueError("a has nothing to choose from")
        if not replace and count > n:
            raise ValueError(f"size is {size}, and a has {n}: without replacement there are no more choices than these")
        weights = None if p is None else _probabilities(p, n)
        if count == 0:
            chosen = self._context.empty(shape, np.int64)
        elif replace:
            chosen = self.integers(0, n, shape) if weights is None else self._categories(self._context.array(_thresholds(weights), np.uint32), shape)
        elif weights is None:
            order = self._order((n,), 0)
            chosen = order if count == n else order[:count].copy()  # not a view, which would keep all n
        else:
            chosen = self._first(weights, count)
        chosen = chosen.reshape(shape)
        if not is_whole(a):
            return shapes.take(a, chosen, along)
        return chosen if chosen.dtype == np.int64 else chosen.astype(np.int64)

    def multinomial(self, n: int, pvals: Union[Array, Sequence[float]], size: Size = None) -> Array:
        """How often each of several outcomes is drawn in n draws, as int64, (*size, outcomes). pvals has the probabilities
        of all but the last outcome; the last one has the rest of 1, whatever is there. They are rounded to multiples of
        2^-32. All n draws are made: 2^22 at a time."""
        n = whole(n, "n", 0, I32)
        given = _numbers(pvals, "pvals")
        if given.size == 0:
            raise ValueError("pvals is empty")
        if not (given[:-1] >= 0).all() or not given[:-1].sum() <= 1 + 1e-12:
            raise ValueError("pvals needs numbers from 0 to 1, whose sum without the last one is at most 1")
        given[-1] = max(1.0 - given[:-1].sum(), 0.0)
        thresholds, outcomes = self._context.array(_thresholds(given), np.uint32), given.size
        shape: Tuple[int, ...] = () if size is None else wholes(size, "size")
        rows = math.prod(shape)
        counts = self._context.zeros((rows, outcomes), np.int32)
        together = max(_DRAWS // max(n, 1), 1)  # rows
        for first in range(0, rows if n else 0, together):
            last = min(first + together, rows)
            row = self._context.array(np.arange(first, last, dtype=np.int32).reshape(-1, 1))
            for begin in range(0, n, _DRAWS):
                drawn = self._categories(thresholds, (last - first, min(_DRAWS, n - begin)))
                indexing.scatter(counts, (row, drawn), 1, "add")
        return counts.astype(np.int64).reshape(*shape, outcomes)

    def _order(self, shape: Tuple[int, ...], axis: int) -> Array:
        """Random orders along an axis: indices, as int64."""
        size = math.prod(shape)
        words = self._draw(raw.RANDOM_BITS, (size, 2), np.uint32, None)
        if self._context.supports("sort.u64"):
            return sorting.argsort(Array(words.buffer, shape, np.uint64), axis)
        # The same by the lower halves of the keys, and then by the upper ones: sorts are stable.
        lower, upper = (words[:, half].copy().reshape(shape) for half in (0, 1))
        order = sorting.argsort(lower, axis)
        return shapes.gather(order, sorting.argsort(shapes.gather(upper, order, axis), axis), axis)

    def _categories(self, thresholds: Array, shape: Tuple[int, ...]) -> Array:
        """How many thresholds a random word reaches, for each element of a shape. Integers: all devices agree."""
        words = self._draw(raw.RANDOM_BITS, shape, np.uint32, None)
        return searching.searchsorted(thresholds, words, "right")

    def _first(self, weights: np.ndarray, count: int) -> Array:
        """`count` different choices. Exponentially distributed times of these rates: the first is i with probability
        w[i] / sum(w), and so is the next one of the rest (Efraimidis and Spirakis 2006). The products of f32 are rounded
        alike on every device."""
        if np.count_nonzero(weights) < count:
            raise ValueError(f"p has {np.count_nonzero(weights)} numbers above 0, fewer than the {count} to be chosen")
        with np.errstate(divide="ignore"):
            slower = np.where(weights > 0, np.minimum(weights.max() / weights, _SLOWEST), np.inf)
        times = self.exponential(1.0, weights.size) * self._context.array(slower, np.float32)
        return sorting.topk(times, count, largest=False)[1]

    def _size(self, size: Size, out: Optional[Array]) -> Size:
        """The size, or the shape of out."""
        if out is None:
            return size
        require_array(out, "out")
        if size is not None and out.shape != wholes(size, "size"):
            raise ValueError(f"out has shape {out.shape}, size is {size}")
        return out.shape

    def _draw(self, distribution: int, size: Size, dtype: object, out: Optional[Array], **parameters: Union[int, float]) -> Array:
        if out is None:
            shape: Tuple[int, ...] = () if size is None else wholes(size, "size")
            result = self._context.empty(shape, dtype)
        else:
            require_array(out, "out")
            require_dense(out, "out")
            if out.context is not self._context:
                raise ValueError("out is of another context")
            self._size(size, out)
            result = out
        return self._record(raw.tuff_random, raw.RandomDesc, distribution, result, **parameters)

    def _record(self, function: object, describe: object, distribution: int, result: Array, **parameters: Union[int, float]) -> Array:
        """Fills an array with the next numbers, by tuff_random() or tuff_variates()."""
        desc = describe(
            dtype=dtype_of(result),
            distribution=distribution,
            output=result.buffer.handle,
            n=result.size,
            seed=self.seed,
            sequence=self.sequence,
            offset=self.offset,
            **parameters,
        )
        check(function(self._context.stream_handle, desc))
        # An element's numbers never serve two calls: calls begin at whole blocks.
        self.offset += (result.size + 3) // 4 * 4
        return result


#: How many draws of multinomial() are in memory at the same time.
_DRAWS = 1 << 22

#: With this factor every time is still finite: exponential numbers are below 32.
_SLOWEST = float(np.finfo(np.float32).max) / 32


def _numbers(values: object, name: str) -> np.ndarray:
    """A vector of numbers in double precision; one on a device is downloaded."""
    found = values.numpy() if isinstance(values, Storage) else np.asarray(values)
    if found.dtype.kind in "cOSUMm":
        raise TypeError(f"{name} is of {found.dtype}, needs real numbers")
    if found.ndim != 1:
        raise ValueError(f"{name} has shape {found.shape}, needs one axis")
    return found.astype(np.float64)


def _probabilities(p: object, n: int) -> np.ndarray:
    values = _numbers(p, "p")
    if values.size != n:
        raise ValueError(f"p has {values.size} numbers, and a has {n}")
    if not np.isfinite(values).all() or (values < 0).any():
        raise ValueError("p needs finite numbers, none of them negative")
    # NumPy's tolerance: the square root of the type's epsilon.
    dtype = getattr(p, "dtype", np.dtype(np.float64))
    epsilon = np.finfo(dtype).eps if np.dtype(dtype) in (np.float16, np.float32) else np.finfo(np.float64).eps
    if n and abs(values.sum() - 1) > math.sqrt(epsilon):
        raise ValueError(f"p has the sum {values.sum()}, needs 1")
    return values


def _thresholds(weights: np.ndarray) -> np.ndarray:
    """Cumulative probabilities in units of 2^-32, rounded: outcome i is where a random word is at or beyond i of them. Those
    that no word reaches are left out."""
    sums = np.cumsum(weights)
    units = np.rint(sums / sums[-1] * 2.0**32)
    return units[units < 2.0**32].astype(np.uint32)


def _above_zero(scale: object) -> float:
    value = real(scale, "scale")
    if not value > 0:
        raise ValueError(f"scale is {scale}, needs a number above 0")
    return value
