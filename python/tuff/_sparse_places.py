"""Element-wise functions of two sparse matrices: entries are matched by their places."""

from __future__ import annotations

from typing import Callable, Tuple

import numpy as np

from ._array import Array
from ._elementwise import where
from ._shape import concat, take
from ._sorting import argsort

#: Values, rows and columns of entries.
Entries = Tuple[Array, Array, Array]


def combined(function: Callable[[Array, Array], Array], a: Entries, b: Entries, columns: int, both: bool) -> Entries:
    """function of the values of each place, of which one that is missing counts as 0; with `both`, places that both have.
    Each of a and b has a place once, besides entries with the row -1, which are none. What is zero gets the row -1 in the
    result, whose places are in no order."""
    data, row, col = (concat([x, y]) for x, y in zip(a, b))
    n = data.size
    if n == 0:
        return data, row, col
    # Equal keys are neighbours after a stable sort, that of a first; those of entries that are none are -1.
    key = where(row < 0, -1, row.astype(np.int64) * columns + col.astype(np.int64))
    order = argsort(key)
    key, data, row, col = (take(x, order) for x in (key, data, row, col))
    no = data.context.zeros((1,), np.bool_)
    again = key[1:] == key[: n - 1]
    paired, second = concat([again, no]), concat([no, again])
    following = concat([data[1:], data.context.zeros((1,), data.dtype)])
    # A value of the second matrix alone stands in its argument, so that functions need not be symmetric.
    of_second = order >= a[0].size
    value = function(where(of_second, 0, data), where(paired, following, where(of_second, data, 0)))
    keep = (value != 0) & ~second & (row >= 0)
    if both:
        keep = keep & paired
    return where(keep, value, 0), where(keep, row, -1), col
