"""Random numbers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Optional, Sequence, Tuple, Union

import numpy as np

from . import raw
from ._checked import U64, I64, real, whole, wholes
from ._error import check
from ._operands import dtype_of, require_array, require_dense

if TYPE_CHECKING:
    from ._array import Array
    from ._context import Context

    Size = Union[None, int, Sequence[int]]

__all__ = ["Generator"]


class Generator:
    """Draws random numbers on a device: tuff.Generator(ctx, seed), with the methods of numpy.random.Generator.

    The same seed gives the same numbers on every device. Without a seed, the operating system chooses one. Each call
    continues the sequence where the last one ended; `seed`, `sequence` and `offset` say where that is, and may be given
    to begin there. Generators that differ in seed or sequence are independent, for threads and workers. The numbers are
    not NumPy's: the generator is Philox4x32-10.
    """

    __slots__ = ("_context", "offset", "seed", "sequence")

    def __init__(self, context: Context, seed: Optional[int] = None, *, sequence: int = 0, offset: int = 0) -> None:
        if not hasattr(context, "stream_handle"):
            raise TypeError(f"context is {type(context).__name__}, not a tuff.Context")
        self._context = context
        self.seed = int.from_bytes(os.urandom(8), "little") if seed is None else whole(seed, "seed", 0, U64)
        self.sequence = whole(sequence, "sequence", 0, U64)
        self.offset = whole(offset, "offset", 0, U64)

    def __repr__(self) -> str:
        return f"tuff.Generator(seed={self.seed}, sequence={self.sequence}, offset={self.offset})"

    def random(self, size: Size = None, dtype: object = np.float32, out: Optional[Array] = None) -> Array:
        """Uniform numbers from 0 to 1, without 1."""
        return self._draw(raw.RANDOM_UNIFORM, size, dtype, out, low=0.0, high=1.0)

    def uniform(
        self, low: float = 0.0, high: float = 1.0, size: Size = None, dtype: object = np.float32, out: Optional[Array] = None
    ) -> Array:
        """Uniform numbers from low to high."""
        low, high = real(low, "low"), real(high, "high")
        if low == high == 0:
            return self.uniform(0.0, 1.0, size, dtype, out) * 0.0  # in the descriptor, both 0 stand for 0 and 1
        return self._draw(raw.RANDOM_UNIFORM, size, dtype, out, low=low, high=high)

    def standard_normal(self, size: Size = None, dtype: object = np.float32, out: Optional[Array] = None) -> Array:
        """Normal numbers of mean 0 and standard deviation 1."""
        return self._draw(raw.RANDOM_NORMAL, size, dtype, out)

    def normal(
        self, loc: float = 0.0, scale: float = 1.0, size: Size = None, dtype: object = np.float32, out: Optional[Array] = None
    ) -> Array:
        """Normal numbers of mean loc and standard deviation scale, above 0."""
        return self._draw(raw.RANDOM_NORMAL, size, dtype, out, mean=real(loc, "loc"), deviation=_above_zero(scale))

    def exponential(
        self, scale: float = 1.0, size: Size = None, dtype: object = np.float32, out: Optional[Array] = None
    ) -> Array:
        """Exponentially distributed numbers of mean scale, above 0."""
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

    def bernoulli(self, p: float = 0.5, size: Size = None, dtype: object = np.uint8, out: Optional[Array] = None) -> Array:
        """1 with probability p, otherwise 0."""
        return self._draw(raw.RANDOM_BERNOULLI, size, dtype, out, probability=real(p, "p"))

    def _draw(self, distribution: int, size: Size, dtype: object, out: Optional[Array], **parameters: Union[int, float]) -> Array:
        if out is None:
            shape: Tuple[int, ...] = () if size is None else wholes(size, "size")
            result = self._context.empty(shape, dtype)
        else:
            require_array(out, "out")
            require_dense(out, "out")
            if out.context is not self._context:
                raise ValueError("out is of another context")
            if size is not None and out.shape != wholes(size, "size"):
                raise ValueError(f"out has shape {out.shape}, size is {size}")
            result = out
        desc = raw.RandomDesc(
            dtype=dtype_of(result),
            distribution=distribution,
            output=result.buffer.handle,
            n=result.size,
            seed=self.seed,
            sequence=self.sequence,
            offset=self.offset,
            **parameters,
        )
        check(raw.tuff_random(self._context.stream_handle, desc))
        # An element's numbers never serve two calls: calls begin at whole blocks.
        self.offset += (result.size + 3) // 4 * 4
        return result


def _above_zero(scale: object) -> float:
    value = real(scale, "scale")
    if not value > 0:
        raise ValueError(f"scale is {scale}, needs a number above 0")
    return value
