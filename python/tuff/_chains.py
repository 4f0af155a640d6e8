"""Products of several matrices, in the order that needs the fewest multiplications."""

from __future__ import annotations

from typing import TYPE_CHECKING, List, Optional, Sequence, Tuple

from . import _operations as operations
from ._matrices import LinAlgError
from ._operands import require_array
from ._storage import Storage

if TYPE_CHECKING:
    from ._array import Array

__all__ = ["multi_dot"]


def _splits(sizes: Sequence[int]) -> List[List[int]]:
    """For the product of matrices i to j, whose sizes are sizes[i] x sizes[i + 1] ..., the last one of its left factor (Cormen,
    Leiserson, Rivest and Stein, Introduction to Algorithms, matrix-chain multiplication)."""
    n = len(sizes) - 1
    cost, split = [[0] * n for _ in range(n)], [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            ends = sizes[i] * sizes[j + 1]
            cost[i][j], split[i][j] = min((cost[i][k] + cost[k + 1][j] + ends * sizes[k + 1], k) for k in range(i, j))
    return split


def multi_dot(arrays: Sequence[Array], *, out: Optional[Array] = None) -> Array:
    """The product of two or more matrices in the order that needs the fewest multiplications. The first one may be a vector,
    which is a row, and the last one a vector, which is a column."""
    factors = [arrays[index] for index in range(len(arrays))] if isinstance(arrays, Storage) else list(arrays)
    if len(factors) < 2:
        raise ValueError("Expecting at least two arrays.")
    for place, one in enumerate(factors):
        require_array(one, f"array {place}")
        vector = one.ndim == 1 and place in (0, len(factors) - 1)
        if one.ndim != 2 and not vector:
            raise LinAlgError(f"array {place} has shape {one.shape}. Array must be two-dimensional")
    shape: Tuple[int, ...] = (*factors[0].shape[:-1], *factors[-1].shape[1:])
    factors[0] = factors[0].reshape(1, -1) if factors[0].ndim == 1 else factors[0]
    factors[-1] = factors[-1].reshape(-1, 1) if factors[-1].ndim == 1 else factors[-1]
    for place, (left, right) in enumerate(zip(factors, factors[1:])):
        if left.shape[1] != right.shape[0]:
            columns, rows = left.shape[1], right.shape[0]
            raise ValueError(f"{columns} columns of array {place} meet {rows} rows of array {place + 1}")
    split = _splits([factors[0].shape[0], *(one.shape[1] for one in factors)])

    def product(i: int, j: int) -> Array:
        return factors[i] if i == j else operations.matmul(product(i, split[i][j]), product(split[i][j] + 1, j))

    result = product(0, len(factors) - 1).reshape(shape)
    if out is None:
        return result
    require_array(out, "out")
    if out.shape != shape or out.dtype != result.dtype:
        raise ValueError(f"out has shape {out.shape} and {out.dtype}, the result {shape} and {result.dtype}")
    return out.assign(result)
