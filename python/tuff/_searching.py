"""Searching and sets: what follows from sorted elements and from places of elements that are not zero."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from . import _elementwise as elementwise
from . import _reductions as reductions
from . import _shape as shapes
from . import _sorting as sorting
from . import raw
from ._checked import choice, is_whole, whole
from ._error import check
from ._expression import expr
from ._operands import dtype_of, require_array, same_context, whole_axis
from ._storage import DTYPES
from ._tracing import is_traced
from ._types import is_complex

if TYPE_CHECKING:
    from ._array import Array
    from ._context import Context
    from ._operands import Operand

__all__ = [
    "argwhere",
    "bincount",
    "compress",
    "extract",
    "flatnonzero",
    "nonzero",
    "searchsorted",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "where",
]

UniqueParts = Tuple["Array", Optional["Array"], Optional["Array"], Optional["Array"]]
UniqueAll = NamedTuple("UniqueAll", [("values", "Array"), ("indices", "Array"), ("inverse_indices", "Array"), ("counts", "Array")])
UniqueCounts = NamedTuple("UniqueCounts", [("values", "Array"), ("counts", "Array")])
UniqueInverse = NamedTuple("UniqueInverse", [("values", "Array"), ("inverse_indices", "Array")])


# Elements that are not zero. How many there are is read from the device, because it is the result's size.


#: Bytes of results for which there is room at once. If all elements take more, they are counted first.
_AT_ONCE = 2**28


def selected(
    judged: Array, op: int, values: Optional[Array], kind: Optional[np.dtype], equal_nan: bool = False
) -> Tuple[Optional[Array], Optional[Array]]:
    """tuff_select() of a 1-d array: the elements of `values` that are selected, and their places as integers of a type; None
    for what is not wanted. It waits for their number."""
    context, size = judged.context, judged.size
    types = [values.dtype if values is not None else None, kind]
    count = context.empty(1, np.uint64)
    desc = raw.SelectDesc(op=op, dtype=dtype_of(values if values is not None else judged), equal_nan=equal_nan, n=size)
    if op == raw.SELECT_NONZERO:
        desc.mask, desc.mask_type = judged.buffer.handle, dtype_of(judged)
    if values is not None or op == raw.SELECT_UNIQUE:
        desc.input = (values if values is not None else judged).buffer.handle
    desc.count = count.buffer.handle

    def found() -> int:
        check(raw.tuff_select(context.stream_handle, desc))
        return int(count.numpy()[0])

    # One call for all, in memory for as many elements as there may be, or two for what would take much of it.
    room = size if size * sum(one.itemsize for one in types if one is not None) <= _AT_ONCE else found()
    results = [context.empty(room, one) if one is not None else None for one in types]
    desc.capacity = room
    for name, one in zip(("output", "indices"), results):
        if one is not None:
            setattr(desc, name, one.buffer.handle)
    if kind is not None:
        desc.index_type = DTYPES[kind]
    number = found()
    return tuple(one if one is None else _first(one, number) for one in results)


def _first(x: Array, number: int) -> Array:
    """The first elements of an array that nothing else refers to. Few of them do not keep its memory."""
    if number == x.size:
        return x
    return x[:number] if 4 * number >= x.size else x[:number].copy()


def true_places(mask: Array, kind: Optional[np.dtype] = None) -> Array:
    """The places of the elements of a 1-d array that are not zero, as int32 (int64 of 2**31 elements or more), or of another
    type of integers that holds them."""
    if kind is None:
        kind = np.dtype(np.int64 if mask.size >= 2**31 else np.int32)
    return selected(mask, raw.SELECT_NONZERO, None, kind)[1]


def flat_mask(x: Array) -> Array:
    """The elements of an array of any type, of which those that are not zero are true."""
    require_array(x, "x")
    return x.ravel()


def elements_where(x: Array, mask: Array) -> Array:
    """The elements of a 1-d array where a mask of its size is not zero."""
    same_context(x.context, mask.context)
    if is_traced(x):
        return shapes.take(x, true_places(mask), 0)  # which has a gradient
    return selected(mask, raw.SELECT_NONZERO, x, None)[0]


def flatnonzero(x: Array) -> Array:
    """The places of the elements of the flattened array that are not zero, as int64."""
    return true_places(flat_mask(x), np.dtype(np.int64))


def nonzero(x: Array) -> Tuple[Array, ...]:
    """The indices of the elements that are not zero, as an int64 array for each axis, in row-major order."""
    require_array(x, "x")
    if x.ndim == 0:
        raise ValueError("nonzero of a 0-d array")
    if x.ndim == 1:
        return (flatnonzero(x),)
    return tuple(coordinates(true_places(flat_mask(x)), x.shape, np.dtype(np.int64)))


def where(
    condition: Array, a: Optional[Operand] = None, b: Optional[Operand] = None, *, out: Optional[Array] = None
) -> Union[Array, Tuple[Array, ...]]:
    """a where the condition is not zero, elsewhere b; of a condition alone, nonzero(condition)."""
    if a is None and b is None and out is None:
        return nonzero(condition)
    return elementwise.where(condition, a, b, out=out)


def argwhere(x: Array) -> Array:
    """The indices of the elements that are not zero, as the rows of an int64 array (count, axes)."""
    require_array(x, "x")
    places = true_places(flat_mask(x))
    if x.ndim == 0:
        return x.context.empty((places.size, 0), np.int64)
    columns = coordinates(places, x.shape)
    return shapes.concat([one.reshape(places.size, 1) for one in columns], 1).astype(np.int64)


def coordinates(places: Array, shape: Sequence[int], kind: Optional[np.dtype] = None) -> List[Array]:
    """Places in a flattened array as indices along each axis, of the same type, or of int64."""
    kind = places.dtype if kind is None else kind
    if len(shape) == 1:
        return [places if places.dtype == kind else places.astype(kind)]
    found, stride, number = [], 1, places.dtype.type
    for axis in reversed(range(len(shape))):
        if places.size == 0:
            found.append(places.astype(kind))
            continue
        # Along the outermost axis no place is beyond the end.
        index = "i" if stride == 1 else "i // s"
        index = index if axis == 0 else f"{index} % n"
        operands = {name: number(value) for name, value in (("s", stride), ("n", shape[axis])) if f" {name}" in index}
        found.append(expr(index if kind == places.dtype else f"i64({index})", dtype=kind, i=places, **operands))
        stride *= shape[axis]
    return found[::-1]


def compress(condition: Array, x: Array, axis: Optional[int] = None) -> Array:
    """The slices of x along an axis, or of the flattened array, for which the 1-d condition is not zero. A condition
    shorter than the axis leaves out what is beyond it."""
    require_array(x, "x")
    require_array(condition, "condition")
    if condition.ndim != 1:
        raise ValueError(f"condition has shape {condition.shape}, needs one axis")
    x, along = (x.ravel(), 0) if axis is None else (x, whole_axis(axis, x.ndim))
    if x.ndim == 1 and condition.size == x.size:
        return elements_where(x, flat_mask(condition))
    places = true_places(flat_mask(condition))
    if condition.size > x.shape[along] and places.size and int(places[-1:].max()) >= x.shape[along]:
        raise IndexError(f"the condition is true beyond axis {along} of size {x.shape[along]}")
    return shapes.take(x, places, along)


def extract(condition: Array, x: Array) -> Array:
    """The elements of x, in row-major order, for which the condition, of the same size, is not zero."""
    require_array(x, "x")
    require_array(condition, "condition")
    if condition.size != x.size:
        raise ValueError(f"condition has shape {condition.shape}, and x {x.shape}")
    return elements_where(x.ravel(), flat_mask(condition))


# Searching in sorted elements.


def searchsorted(a: Array, v: Array, side: str = "left", sorter: Optional[Array] = None) -> Array:
    """Where the elements of v belong in the sorted 1-d array a, as int64: the number of elements of a that are smaller,
    or with side "right" smaller or equal. NaNs are the largest. sorter: indices that sort a."""
    require_array(a, "a")
    require_array(v, "v")
    if a.ndim != 1:
        raise ValueError(f"a has shape {a.shape}, needs one axis")
    if sorter is not None:
        a = shapes.take(a, sorter, 0)
    if a.dtype != v.dtype:
        kind = elementwise.common_type(a.dtype, v.dtype)
        a, v = a.astype(kind), v.astype(kind)
    left = choice(side, "side", {"left": True, "right": False})
    return search(a, v, left).astype(np.int64)


def search(a: Array, v: Array, left: bool) -> Array:
    """searchsorted() as int32: a binary search of all v at the same time, one bit of the result after another."""
    if a.size >= 2**31:
        raise ValueError(f"a has {a.size} elements, needs fewer than 2**31")
    if v.size == 0 or a.size == 0:
        return v.context.zeros(v.shape, np.int32)

    def before(name: str) -> str:
        if not elementwise.is_float(a.dtype):
            return f"{name} < v" if left else f"{name} <= v"
        return f"({name} < v || (isnan(v) && !isnan({name})))" if left else f"({name} <= v || isnan(v))"

    # A step moves on if the last of the elements that it would pass comes before v. Those beyond the array read as 0.
    bits = a.size.bit_length()
    places = _first_steps(a, v, before, builtins.min(bits, _FIRST_STEPS))
    formula = f"p <= n && {before('a')} ? p + b : p"
    for bit in reversed(range(bits - _FIRST_STEPS)):
        step = 1 << bit
        passed = shapes.take(a[step - 1 :], places, 0)
        places = expr(formula, dtype=np.uint32, p=places, a=passed, v=v, n=np.uint32(a.size - step), b=np.uint32(step))
    return type(places)(places.buffer, v.shape, np.int32)  # the same numbers; unsigned ones are gathered in one pass


#: Steps of a search that are one formula: it reads the elements that they may compare with, 7 of 3 steps.
_FIRST_STEPS = 3


def _first_steps(a: Array, v: Array, before: Callable[[str], str], steps: int) -> Array:
    """The places after so many steps, as uint32, in units of the last step: the formula is the same for most sizes."""
    pivots: Dict[str, Array] = {}
    unit = 1 << (a.size.bit_length() - steps)

    def after(place: int, step: int) -> str:
        if step == 0:
            return f"{place} * s"
        last = (place + step) * unit - 1
        if last >= a.size:
            return after(place, step // 2)
        name = f"a{len(pivots)}"
        pivots[name] = a[last]
        return f"({before(name)} ? {after(place + step, step // 2)} : {after(place, step // 2)})"

    formula = after(0, 1 << (steps - 1))
    return expr(formula, dtype=np.uint32, v=v, s=np.uint32(unit), **pivots)


def bincount(x: Array, weights: Optional[Array] = None, minlength: int = 0) -> Array:
    """How often each number from 0 to the largest occurs in a 1-d array of integers, as int64, of at least minlength
    numbers; with weights, the sums of the weights of its occurrences, as float32, or float64 for weights of float64."""
    if weights is not None and is_whole(weights):  # as once: bincount(x, 5)
        weights, minlength = None, weights
    require_array(x, "x")
    if x.dtype.kind not in "iub":
        raise TypeError(f"x is of {x.dtype}, needs integers")
    if x.ndim != 1:
        raise ValueError(f"x has shape {x.shape}, needs one axis")
    size = whole(minlength, "minlength", 0, 2**31 - 1)
    kind = np.dtype(np.int64)
    if weights is not None:
        require_array(weights, "weights")
        if weights.shape != x.shape:
            raise ValueError(f"weights have shape {weights.shape}, and x {x.shape}")
        if is_complex(weights.dtype):
            raise TypeError(f"weights are {weights.dtype}, need real numbers")
        kind = np.dtype(np.float64 if weights.dtype == np.float64 else np.float32)
    if x.size == 0:
        return x.context.zeros(size, kind)
    if weights is None and x.size >= 2**32:
        raise ValueError(f"x has {x.size} elements, needs fewer than 2**32")  # counts have 32 bits
    integers = x.astype(np.uint8) if x.dtype == np.bool_ else x
    if weights is not None:
        same_context(x.context, weights.context)
    least, most = _ends(integers)
    if least < 0:
        raise ValueError(f"x has {least}, needs no negative numbers")
    size = builtins.max(size, most + 1)
    places = integers.astype(np.int32) if integers.dtype.itemsize < 4 else integers
    if weights is not None:
        return _combined(places, weights.astype(kind), x.context.zeros(size, kind), raw.SCATTER_ADD)
    return _counts(places, size).astype(np.int64)


def _ends(x: Array) -> Tuple[int, int]:
    """The least and the largest of integers, of which there are some. They are waited for once."""
    return tuple(int(one) for one in shapes.concat([x.min().reshape(1), x.max().reshape(1)], 0).numpy())


def _combined(places: Array, updates: Array, results: Array, op: int) -> Array:
    """Combines updates with the results at their places, which are indices."""
    desc = raw.ScatterDesc(dtype=DTYPES[results.dtype], index_type=DTYPES[places.dtype], op=op, rank=1, count=places.size)
    desc.shape[0] = results.size
    desc.indices, desc.updates, desc.output = places.buffer.handle, updates.buffer.handle, results.buffer.handle
    check(raw.tuff_scatter(results.context.stream_handle, desc))
    return results


def _counts(places: Array, size: int) -> Array:
    """How often each number below `size` is among the places, as uint32: fewer than 2**32 of them."""
    ones = places.context.full(places.shape, 1, np.uint32)
    return _combined(places, ones, places.context.zeros(size, np.uint32), raw.SCATTER_ADD)


# Integers of a small range: what is asked of each number is in a table.

#: Elements from which a table is worth its fixed costs.
_LEAST_TABLED = 4096


def table_range(x: Array, most: int) -> Optional[Tuple[int, int]]:
    """The least of a vector's integers and how many numbers there are up to the largest, if these are at most `most`. Of
    integers of 32 and 64 bits the ends are waited for."""
    if x.dtype.kind not in "iub" or x.size == 0 or most < _LEAST_TABLED:
        return None
    if x.dtype.itemsize <= 2:
        least, end = (0, 1) if x.dtype == np.bool_ else (np.iinfo(x.dtype).min, np.iinfo(x.dtype).max)
    else:
        least, end = _ends(x)
    numbers = int(end) - int(least) + 1
    return (int(least), numbers) if numbers <= builtins.min(most, _MOST_TABLED) else None


#: Numbers in a table at most: what tuff_scatter() goes through at once.
_MOST_TABLED = 2**28


def table_keys(x: Array, least: int, numbers: int, beyond: int) -> Array:
    """The elements' places in a table of so many numbers from `least` on, as uint32; `beyond` for those not in it."""
    # The types of 8 and 16 bits, and differences of them, are exact as int32.
    kind = x.dtype.type if x.dtype.itemsize > 2 else np.int32
    limits = dict(low=kind(least), high=kind(least + numbers - 1), o=np.uint32(beyond))
    number = "x" if x.dtype.itemsize > 2 else "i32(x)"
    return expr(f"{number} >= low && {number} <= high ? u32({number} - low) : o", dtype=np.uint32, x=x, **limits)


def _numbered(context: Context, count: int) -> Array:
    """The numbers below `count`, as uint32. Few of them are uploaded."""
    across = 1024
    begins = context.array(np.arange(0, count, across).reshape(-1, 1), np.uint32)
    within = context.array(np.arange(across).reshape(1, -1), np.uint32)
    return expr("b + w", dtype=np.uint32, b=begins, w=within).ravel()[:count]


def _unsigned(places: Array) -> Array:
    """Places as uint32: these are gathered in one pass."""
    return type(places)(places.buffer, places.shape, np.uint32)


def _unique_by_table(flat: Array, least: int, numbers: int, places: bool, counted: bool) -> UniqueParts:
    context, dtype = flat.context, flat.dtype
    keys = table_keys(flat, least, numbers, numbers)
    counts = _counts(keys, numbers)
    found = _unsigned(true_places(counts))
    wide = np.dtype(np.int32) if dtype.itemsize <= 2 else dtype
    values = expr("p + low", dtype=wide, p=found.astype(wide), low=wide.type(least)).astype(dtype)
    counts = shapes.take(counts, found, 0).astype(np.int64) if counted else None
    if not places:
        return values, None, None, counts
    first = context.full(numbers, 2**32 - 1, np.uint32)
    _combined(keys, _numbered(context, flat.size), first, raw.SCATTER_MIN)
    ranks = _combined(found, _numbered(context, found.size), context.zeros(numbers, np.uint32), raw.SCATTER_ADD)
    return values, shapes.take(first, found, 0).astype(np.int64), shapes.take(ranks, keys, 0).astype(np.int64), counts


def differences(begins: Array, end: int) -> Array:
    """How far each element is from the next one, the last from `end`, as int64."""
    both = shapes.concat([begins, begins.context.full(1, end, begins.dtype)], 0)
    return elementwise.arithmetic("a - b", both[1:], both[:-1], None).astype(np.int64)


# Sets.


def unique_values(x: Array) -> Array:
    """The different elements of an array, sorted. Each NaN is an element of its own, as the array API says."""
    return unique_parts(x, False, False, False)[0]


def unique_counts(x: Array) -> UniqueCounts:
    """The different elements, sorted, and how often each occurs: (values, counts)."""
    values, _, _, counts = unique_parts(x, False, True, False)
    return UniqueCounts(values, counts)


def unique_inverse(x: Array) -> UniqueInverse:
    """The different elements, sorted, and for each element of x its place among them: (values, inverse_indices)."""
    values, _, inverse, _ = unique_parts(x, True, False, False)
    return UniqueInverse(values, inverse)


def unique_all(x: Array) -> UniqueAll:
    """The different elements, sorted; the first place of each in the flattened array; for each element of x its place
    among them; how often each occurs: (values, indices, inverse_indices, counts)."""
    return UniqueAll(*unique_parts(x, True, True, False))


def unique(
    x: Array, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False, *, equal_nan: bool = True
) -> Union[Array, Tuple[Array, ...]]:
    """The different elements of the flattened array, sorted, like numpy.unique: all NaNs count as one if equal_nan. Also
    returns, if wanted, the first place of each, for each element of x its place among them, and how often each occurs."""
    values, indices, inverse, counts = unique_parts(x, return_index or return_inverse, return_counts, equal_nan)
    wanted = [(indices, return_index), (inverse, return_inverse), (counts, return_counts)]
    results = (values, *(one for one, there in wanted if there))
    return results if len(results) > 1 else values


def _order(x: Array) -> Array:
    """The indices of a vector's elements in order, as int32."""
    order = x.context.empty(x.size, np.int32)
    sorting.record(x, 0, False, 0, None, order)
    return order


def _order_complex(x: Array) -> Array:
    """The indices of complex numbers by their real parts, and equal ones by their imaginary parts; those with a NaN come last."""
    # All with a NaN are alike, and so are zeros of both signs.
    re, im = (
        expr("z != z ? nan : part + 0", dtype=part.dtype, z=x, part=part, nan=part.dtype.type(np.nan)) for part in (x.real, x.imag)
    )
    order = _order(im)
    return shapes.take(order, _order(shapes.take(re, order, 0)), 0)


def unique_parts(x: Array, places: bool, counted: bool, equal_nan: bool) -> UniqueParts:
    """Values, and if wanted first places and places among the values; counts."""
    require_array(x, "x")
    flat = x.ravel()
    context, size = flat.context, flat.size
    if size >= 2**31:
        raise ValueError(f"x has {size} elements, needs fewer than 2**31")
    if size == 0:
        none = [context.empty(shape, np.int64) for shape in (0, x.shape, 0)]
        return context.empty(0, flat.dtype), none[0], none[1], none[2]
    tabled = table_range(flat, size)
    if tabled is not None:
        values, indices, inverse, counts = _unique_by_table(flat, *tabled, places, counted)
        return values, indices, inverse if inverse is None else inverse.reshape(x.shape), counts
    if is_complex(flat.dtype):
        order = _order_complex(flat)
        ordered = shapes.take(flat, order, 0)
    else:
        ordered = context.empty(size, flat.dtype)
        order = context.empty(size, np.int32) if places else None
        sorting.record(flat, 0, False, 0, ordered, order)
    # The first element of each run of equal ones.
    kind = np.dtype(np.int32) if counted or places else None
    values, begins = selected(ordered, raw.SELECT_UNIQUE, ordered, kind, equal_nan)
    counts = differences(begins, size) if counted else None
    if not places:
        return values, None, None, counts
    indices = shapes.take(order, begins, 0).astype(np.int64)
    # An element's run is the last that begins at it or before it. Each element of the sorted order has a place of its own.
    runs = context.zeros(size, np.int32)
    if begins.size > 1:
        _combined(begins[1:], context.full(begins.size - 1, 1, np.int32), runs, raw.SCATTER_ADD)
        reductions.cumsum(runs, out=runs)
    inverse = _combined(order, runs, context.zeros(size, np.int32), raw.SCATTER_ADD)
    return values, indices, inverse.astype(np.int64).reshape(x.shape), counts
