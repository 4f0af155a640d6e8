"""Sets of elements, and orders by several keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import _elementwise as elementwise
from . import _protocol as protocol
from . import _searching as searching
from . import _shape as shapes
from . import _sorting as sorting
from ._expression import expr
from ._operands import given, require_array, whole_axis
from ._storage import Storage
from ._types import common_type, complex_of, has_complex, is_complex, part_of

if TYPE_CHECKING:
    from ._array import Array

    Values = Union[Array, float, Sequence[float]]

__all__ = ["in1d", "intersect1d", "isin", "lexsort", "setdiff1d", "setxor1d", "sort_complex", "union1d"]


def _both(a: Values, b: Values, names: Tuple[str, str]) -> Tuple[Array, Array]:
    """Two sets as vectors of their common type; one of them is an array."""
    like = a if isinstance(a, Storage) else b
    require_array(like, names[0])
    a, b = (given(one, like, name).ravel() for one, name in zip((a, b), names))
    kind = common_type(a.dtype, b.dtype)
    return tuple(one if one.dtype == kind else one.astype(kind) for one in (a, b))


def _kept(x: Array, mask: Array) -> Array:
    return searching.elements_where(x, mask)


def union1d(ar1: Values, ar2: Values) -> Array:
    """The different elements of both arrays, sorted."""
    return searching.unique(shapes.concat(_both(ar1, ar2, ("ar1", "ar2")), 0))


def _counted(ar1: Values, ar2: Values) -> Tuple[Array, Array]:
    """The different elements of both arrays, sorted, and in how many of them each is. A NaN is in one only."""
    sets = [searching.unique(one) for one in _both(ar1, ar2, ("ar1", "ar2"))]
    values, _, _, counts = searching.unique_parts(shapes.concat(sets, 0), False, True, False)
    return values, counts


def intersect1d(
    ar1: Values, ar2: Values, assume_unique: bool = False, return_indices: bool = False
) -> Union[Array, Tuple[Array, Array, Array]]:
    """The different elements that are in both arrays, sorted, and if wanted the place of the first of each in both, as
    int64. assume_unique is for elements that are: the result is the same."""
    if not return_indices:
        values, counts = _counted(ar1, ar2)
        return _kept(values, elementwise.equal(counts, 2))
    sets = [searching.unique(one, return_index=True) for one in _both(ar1, ar2, ("ar1", "ar2"))]
    (first, of_first), (second, of_second) = sets
    in_both = isin(first, second)
    common = _kept(first, in_both)
    return common, _kept(of_first, in_both), _kept(of_second, isin(second, common))


def setxor1d(ar1: Values, ar2: Values, assume_unique: bool = False) -> Array:
    """The different elements that are in one of the arrays only, sorted."""
    values, counts = _counted(ar1, ar2)
    return _kept(values, elementwise.equal(counts, 1))


def setdiff1d(ar1: Values, ar2: Values, assume_unique: bool = False) -> Array:
    """The different elements of ar1 that are not in ar2, sorted; in ar1's order, and all of them, if assume_unique."""
    like = ar1 if isinstance(ar1, Storage) else ar2
    require_array(like, "ar1")
    first = given(ar1, like, "ar1").ravel()
    first = first if assume_unique else searching.unique(first)
    return _kept(first, isin(first, ar2, invert=True))


#: Test elements of the host that are compared one by one, in one kernel.
_FEW = 12


def isin(
    element: Values, test_elements: Values, assume_unique: bool = False, invert: bool = False, *, kind: Optional[str] = None
) -> Array:
    """Whether each element is among the test elements, as bools, or whether it is not (invert). NaN is not. kind is there
    for NumPy's sake."""
    if kind not in (None, "sort", "table"):
        raise ValueError(f"Invalid kind: '{kind}'. Please use None, 'sort' or 'table'.")
    like = element if isinstance(element, Storage) else test_elements
    require_array(like, "element")
    x = given(element, like, "element")
    few = _few(test_elements, x)
    if few == []:
        return x.context.full(x.shape, bool(invert), np.bool_)
    if few is not None:
        names = [f"t{place}" for place in range(len(few))]
        formula = " || ".join(f"x == {name}" for name in names)
        numbers = dict(zip(names, few))
        return elementwise.truth(f"!({formula})" if invert else formula, x, numbers)
    tests = given(test_elements, like, "test_elements").ravel()
    common = common_type(x.dtype, tests.dtype)
    x, tests = (one if one.dtype == common else one.astype(common) for one in (x, tests))
    if tests.size == 0 or x.size == 0:
        return x.context.full(x.shape, bool(invert), np.bool_)
    return _found_complex(x, tests, bool(invert)) if is_complex(common) else _found(x, tests, bool(invert))


def _few(values: object, x: Array) -> Optional[List[float]]:
    """A list of a few numbers of Python; beside integers without those that none is equal to."""
    listed = list(values) if isinstance(values, (list, tuple)) else [values]
    if len(listed) > _FEW or any(type(one) not in (int, float, bool) for one in listed):
        return None
    if x.dtype.kind not in "iu":
        return listed
    return [int(one) for one in listed if isinstance(one, int) or one.is_integer()]


def _found(x: Array, tests: Array, invert: bool) -> Array:
    tabled = searching.table_range(tests, 4 * (x.size + tests.size))
    if tabled is not None:
        return _found_by_table(x, tests, invert, *tabled)
    ordered = sorting.sort(tests)
    places = searching.searchsorted(ordered, x)
    near = shapes.take(ordered, places, 0)  # beyond the last one it is a zero, which the place tells
    formula = "p < n && t == x"
    return expr(f"!({formula})" if invert else formula, dtype=np.bool_, p=places, n=np.int64(tests.size), t=near, x=x)


def _found_by_table(x: Array, tests: Array, invert: bool, least: int, numbers: int) -> Array:
    """A bool for each number of the tests' range, and one for all others."""
    present = x.context.full((numbers + 1,), invert, np.bool_)
    present[searching.table_keys(tests, least, numbers, numbers)] = not invert
    return shapes.take(present, searching.table_keys(x, least, numbers, numbers), 0)


def _found_complex(x: Array, tests: Array, invert: bool) -> Array:
    """Complex numbers have no order to search in: equal ones get the same number."""
    _, _, numbers, _ = searching.unique_parts(shapes.concat([tests, x.ravel()], 0), True, False, False)
    present = x.context.full((numbers.size,), invert, np.bool_)
    present[numbers[: tests.size]] = not invert
    return shapes.take(present, numbers[tests.size :], 0).reshape(x.shape)


def in1d(ar1: Values, ar2: Values, assume_unique: bool = False, invert: bool = False, *, kind: Optional[str] = None) -> Array:
    """isin() of the flattened array."""
    return isin(ar1, ar2, assume_unique, invert, kind=kind).ravel()


# Orders.


def lexsort(keys: Union[Array, Sequence[Array]], axis: int = -1) -> Array:
    """The indices of the elements in order along an axis, as int64, by the last key; those equal in it by the one before, and
    so on."""
    listed = [keys[index] for index in range(len(keys))] if isinstance(keys, Storage) and keys.ndim else keys
    if isinstance(listed, Storage) or len(tuple(listed)) == 0:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    listed = tuple(listed)
    for place, one in enumerate(listed):
        require_array(one, f"key {place}")
        if one.shape != listed[0].shape:
            raise ValueError(f"all keys need to be the same shape: {listed[0].shape} and {one.shape}")
    if listed[0].ndim == 0:
        return listed[0].context.zeros((), np.int64)
    along = whole_axis(axis, listed[0].ndim)
    order = sorting.argsort(listed[0], along)
    for one in listed[1:]:
        again = sorting.argsort(shapes.gather(one, order, along), along)
        order = shapes.gather(order, again, along)
    return order


def sort_complex(a: Array) -> Array:
    """The elements along the last axis as complex numbers, in the order of their real parts and then of their imaginary
    ones; those with a NaN come last."""
    require_array(a, "a")
    if a.ndim == 0:
        raise ValueError("a 0-d array has no axis")
    if not is_complex(a.dtype):
        kind = complex_of(a.dtype if has_complex(a.dtype) else np.dtype(np.float32))
        return sorting.sort(a, -1).astype(kind)
    # Zeros of both signs are equal.
    re, im = (expr("p + 0", dtype=part_of(a.dtype), p=part) for part in (a.real, a.imag))
    lacking = expr("u8(isnan(r)) * 2 + u8(isnan(i))", dtype=np.uint8, r=re, i=im)
    return shapes.gather(a, lexsort((im, re, lacking)), -1)


protocol.FUNCTIONS.update(
    in1d=in1d,
    intersect1d=intersect1d,
    isin=isin,
    lexsort=lexsort,
    setdiff1d=setdiff1d,
    setxor1d=setxor1d,
    sort_complex=sort_complex,
    union1d=union1d,
)
