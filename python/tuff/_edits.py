"""Elements that are replaced, left out, inserted and chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import _elementwise as elementwise
from . import _indexing as indexing
from . import _namespace as namespace
from . import _operations as operations
from . import _protocol as protocol
from . import _reductions as reductions
from . import _searching as searching
from . import _shape as shapes
from . import _sorting as sorting
from . import _views as views
from ._checked import choice, is_scalar, is_whole, sequence
from ._expression import expr
from ._layout import Layout, layout_of
from ._operands import given, require_array, stored, whole_axis
from ._storage import Storage, Strided
from ._types import common_type

if TYPE_CHECKING:
    from ._array import Array, Axis

    Values = Union[Array, float, Sequence[float]]
    Indices = Union[Array, np.ndarray, Sequence[int], int, slice]

__all__ = ["choose", "copyto", "delete", "fill_diagonal", "insert", "piecewise", "place", "put", "putmask", "trim_zeros"]


def _cycled(values: Array, count: int) -> Array:
    """The elements of an array that is not empty, repeated or cut to a number of elements."""
    flat = values.ravel()
    return flat if flat.size == count else operations.cycled(flat, count)


def _of_type(values: Array, like: Array) -> Array:
    """Values that are assigned; real ones of a complex number cannot be left out in silence."""
    return values if values.dtype == like.dtype else values.astype(like.dtype)


def _flat_edit(a: Array, edit: Callable[[Array], None]) -> None:
    """Lets a function write to the flattened array."""
    if isinstance(a, Strided):
        copy = a.copy()
        edit(copy.ravel())
        a.assign(copy)
    else:
        edit(a.ravel())


# Elements that are replaced in place.


def copyto(dst: Array, src: Values, casting: str = "same_kind", where: Union[bool, Array] = True) -> None:
    """Overwrites elements of dst, all or those where a mask is true, with those of src, which broadcast to its shape. casting
    says which conversions are allowed, as in NumPy."""
    require_array(dst, "dst")
    values = src if is_scalar(src) else given(src, dst, "src")
    kind = np.min_scalar_type(src) if is_scalar(src) else values.dtype
    if not np.can_cast(kind, dst.dtype, casting):
        raise TypeError(f"Cannot cast array data from {kind!r} to {dst.dtype!r} according to the rule '{casting}'")
    if isinstance(values, Storage):
        _require_fits(values.shape, dst.shape, "src")
        values = _of_type(values, dst)
    if isinstance(where, (bool, np.bool_)):
        if where:
            dst.assign(values)
        return
    mask = given(where, dst, "where")
    if mask.dtype != np.bool_:
        raise TypeError(f"where is an array of {mask.dtype}: needs bools")
    _require_fits(mask.shape, dst.shape, "where")
    elementwise.where(mask, values, dst, out=dst)


def _require_fits(shape: Tuple[int, ...], into: Tuple[int, ...], name: str) -> None:
    extra = len(shape) - len(into)
    if any(n != 1 for n in shape[: max(extra, 0)]) or any(
        n not in (1, wanted) for n, wanted in zip(shape[max(extra, 0) :], into[max(-extra, 0) :])
    ):
        raise ValueError(f"could not broadcast {name} from shape {shape} into shape {into}")


def putmask(a: Array, mask: Array, values: Values) -> None:
    """Overwrites the elements of a where a mask of its size is not zero with the values at the same places of the flattened
    arrays; values of another size are repeated."""
    require_array(a, "a")
    condition = given(mask, a, "mask")
    if condition.size != a.size:
        raise ValueError("putmask: mask and data must be the same size")
    found = given(values, a, "values")
    if found.size and a.size:
        new = found.reshape(()) if found.size == 1 else _cycled(found, a.size).reshape(a.shape)
        elementwise.where(condition.reshape(a.shape), _of_type(new, a), a, out=a)


def place(arr: Array, mask: Array, vals: Values) -> None:
    """Overwrites the elements of arr where a mask of its size is not zero with the values, one after another, repeated if
    there are fewer. It waits for their number."""
    require_array(arr, "arr")
    condition = given(mask, arr, "mask")
    if condition.size != arr.size:
        raise ValueError("place: mask and data must be the same size")
    values = given(vals, arr, "vals")
    places = searching.true_places(searching.flat_mask(condition))
    if places.size == 0:
        return
    if values.size == 0:
        raise ValueError("Cannot insert from an empty array!")
    new = _of_type(_cycled(values, places.size), arr)
    _flat_edit(arr, lambda flat: indexing.put(flat, places, new))


def put(a: Array, ind: Indices, v: Values, mode: str = "raise") -> None:
    """Overwrites the elements of the flattened array at indices with values, which are repeated if there are fewer. Indices
    of the host are checked, those on the device that are out of range are skipped; with mode "wrap" they are taken modulo
    the size, with "clip" they are cut to the range."""
    require_array(a, "a")
    how = choice(mode, "mode", {"raise": 0, "wrap": 1, "clip": 2})
    places = ind if isinstance(ind, (Storage, np.ndarray)) else np.asarray(ind)
    if places.size == 0:
        return
    if places.dtype.kind not in "iu":
        raise TypeError(f"Cannot cast array data from {places.dtype!r} to {np.dtype(np.int64)!r} according to the rule 'safe'")
    if a.size == 0:
        raise IndexError("cannot replace elements of an empty array")
    if how and isinstance(places, Storage):
        wide = places.astype(np.int64)
        formula = "i % n" if how == 1 else "clamp(i, 0, n - 1)"
        places = expr(formula, dtype=np.int64, i=wide, n=np.int64(a.size))
    elif how:
        places = places % a.size if how == 1 else np.clip(places, 0, a.size - 1)
    values = given(v, a, "v")
    if values.size:
        new = _of_type(_cycled(values, places.size), a)
        _flat_edit(a, lambda flat: indexing.put(flat, places.ravel(), new))


def fill_diagonal(a: Array, val: Values, wrap: bool = False) -> None:
    """Overwrites the main diagonal of an array, of equal sizes if it has more than two axes, with values, which are repeated
    if there are fewer. wrap: in a matrix with more rows the diagonal begins again after a row."""
    require_array(a, "a")
    if a.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if a.ndim > 2 and len(set(a.shape)) != 1:
        raise ValueError(f"All dimensions of input must be of equal length: the shape is {a.shape}")
    values = given(val, a, "val")
    rows, columns = a.shape[:2]
    if values.size == 0 or a.size == 0:
        return
    if wrap and a.ndim == 2 and rows > columns + 1:
        step = columns + 1
        count = -(-a.size // step)

        def every(flat: Array) -> None:
            flat[::step] = _of_type(_cycled(values, count), a)

        _flat_edit(a, every)
        return
    layout = layout_of(a)
    count = min(a.shape)
    diagonal = views.viewed(Layout(layout.base, layout.first, (sum(layout.strides),)), (count,), a.dtype)
    diagonal.assign(_of_type(_cycled(values, count), a))


# Elements that are left out or inserted.


def _along(arr: Array, axis: Optional[int]) -> Tuple[Array, int]:
    require_array(arr, "arr")
    return (arr.ravel(), 0) if axis is None else (arr, whole_axis(axis, arr.ndim))


def _host_indices(obj: object, size: int, axis: int) -> Optional[np.ndarray]:
    """Indices of the host, from 0 on, or the places of a mask's true elements."""
    if isinstance(obj, Storage):
        return None
    if isinstance(obj, slice):
        return np.arange(size)[obj]
    found = np.asarray(obj)
    if found.size == 0 and not isinstance(obj, np.ndarray):
        return np.zeros(0, np.int64)
    if found.dtype == np.bool_:
        if found.ndim != 1:
            raise ValueError("a mask must be one-dimensional")
        return np.flatnonzero(found)
    if found.dtype.kind not in "iu":
        raise IndexError("arrays used as indices must be of integer (or boolean) type")
    found = found.astype(np.int64)
    return np.where(found < 0, found + size, found)


def delete(arr: Array, obj: Indices, axis: Optional[int] = None) -> Array:
    """A new array without the slices at indices, a slice or a mask along an axis, or of the flattened array. Indices and
    masks on the device are counted there, and waited for; those out of range are skipped."""
    x, along = _along(arr, axis)
    n = x.shape[along]
    listed = isinstance(obj, (list, tuple)) and any(isinstance(one, (bool, np.bool_)) for one in obj)
    is_mask = listed or getattr(obj, "dtype", None) == np.bool_
    if is_mask and np.shape(obj) != (n,):
        raise ValueError(f"boolean array argument obj to delete must be one-dimensional and match the axis length of {n}")
    gone = _host_indices(obj, n, along)
    if gone is None:
        if is_mask:
            keep = elementwise.logical_not(obj)
        elif obj.dtype.kind not in "iu":
            raise IndexError("arrays used as indices must be of integer (or boolean) type")
        else:
            keep = x.context.full((n,), True, np.bool_)
            keep[obj.ravel()] = False
        return shapes.take(x, searching.true_places(keep), along)
    wrong = gone[np.asarray((gone < 0) | (gone >= n))]
    if wrong.size:
        raise IndexError(f"index {obj if is_whole(obj) else wrong.flat[0]} is out of bounds for axis {along} with size {n}")
    kept = np.ones(n, np.bool_)
    kept[gone] = False
    return _runs(x, np.flatnonzero(kept), along)


#: Runs of elements that are copied one by one; more are gathered.
_FEW_RUNS = 8


def _runs(x: Array, kept: np.ndarray, along: int) -> Array:
    """The slices of x at ascending places: a few runs of neighbours, or single ones."""
    begins = np.flatnonzero(np.diff(kept, prepend=-2) != 1)
    if len(begins) > _FEW_RUNS:
        return shapes.take(x, kept, along)
    ends = [*begins[1:], len(kept)]
    before = (slice(None),) * along
    parts = [x[(*before, slice(int(kept[b]), int(kept[e - 1]) + 1))] for b, e in zip(begins, ends)]
    return shapes.concat(parts or [x[(*before, slice(0, 0))]], along)


def insert(arr: Array, obj: Indices, values: Values, axis: Optional[int] = None) -> Array:
    """A new array with values before the indices along an axis, or of the flattened array, as numpy.insert: one index has
    all values before it, of several each has its own. Indices of the host are checked."""
    x, along = _along(arr, axis)
    n = x.shape[along]
    new = _of_type(given(values, x, "values"), x)
    if new.ndim < x.ndim:
        new = new.reshape((1,) * (x.ndim - new.ndim) + new.shape)
    single = is_whole(obj) or (isinstance(obj, (Storage, np.ndarray)) and obj.ndim == 0)
    places = _host_indices(obj, n, along)
    if single and new.ndim == x.ndim:
        new = new if along == 0 else namespace.moveaxis(new, 0, along)
    count = new.shape[along] if single or _length(obj, places) == 1 else _length(obj, places)
    sizes = [count if one == along else size for one, size in enumerate(x.shape)]
    _require_fits(new.shape, tuple(sizes), "values")
    wide = views.broadcast_to(new.reshape(new.shape[new.ndim - x.ndim :]), sizes)
    if places is not None:
        _require_places(places, n, along)
        if places.size <= _FEW_RUNS:
            return _spliced(x, wide, places.ravel(), along)
    both = shapes.concat([x, wide], along)
    if places is not None:
        order = _inserted(places.ravel(), n)
    else:
        order = _inserted_on_device(obj, n, count)
    return shapes.take(both, order, along)


def _length(obj: Indices, places: Optional[np.ndarray]) -> int:
    return obj.size if places is None else places.size


def _require_places(places: np.ndarray, n: int, axis: int) -> None:
    wrong = places[np.asarray((places < 0) | (places > n))]
    if wrong.size:
        raise IndexError(f"index {wrong[0]} is out of bounds for axis {axis} with size {n}")


def _spliced(x: Array, values: Array, places: np.ndarray, axis: int) -> Array:
    """Runs of elements and, between them, each value, or all of them at a single place."""
    before = (slice(None),) * axis
    parts, end = [], 0
    for place in np.argsort(places, kind="stable").tolist():
        at = int(places[place])
        parts += [x[(*before, slice(end, at))], values if places.size == 1 else values[(*before, slice(place, place + 1))]]
        end = at
    return shapes.concat([*parts, x[(*before, slice(end, None))]], axis)


def _inserted(places: np.ndarray, n: int) -> np.ndarray:
    """Which of n elements and the values after them is at each place of the result."""
    # Values before an element: a stable sort of the places of both.
    keys = np.concatenate([2 * np.arange(n) + 1, 2 * places])
    return np.argsort(keys, kind="stable")


def _inserted_on_device(places: Array, n: int, count: int) -> Array:
    if places.dtype == np.bool_:
        places = searching.flatnonzero(places)
    if places.dtype.kind not in "iu":
        raise IndexError("arrays used as indices must be of integer (or boolean) type")
    flat = places.ravel().astype(np.int64)
    if flat.size == 1:
        flat = views.broadcast_to(flat, (count,))
    elements = flat.context.array(2 * np.arange(n, dtype=np.int64) + 1, np.int64)
    after = expr("2 * (p < 0 ? p + n : p)", dtype=np.int64, p=flat, n=np.int64(n))
    return sorting.argsort(shapes.concat([elements, after], 0))


def trim_zeros(filt: Array, trim: str = "fb", axis: Axis = None) -> Array:
    """A view without the zeros at the front ("f") and the back ("b") of an array's axes, by default all. It waits for their
    numbers."""
    require_array(filt, "filt")
    ends = trim.lower() if isinstance(trim, str) else trim
    if ends not in ("fb", "bf", "f", "b"):
        raise ValueError(f"unexpected character(s) in `trim`: {trim!r}")
    named = range(filt.ndim) if axis is None else (axis,) if is_whole(axis) else sequence(axis, "axis", "an integer or several")
    axes = [whole_axis(one, filt.ndim) for one in named]
    if filt.size == 0 or not axes:
        return filt
    mask = elementwise.not_equal(filt, 0)
    bounds = []
    for one in axes:
        others = tuple(other for other in range(filt.ndim) if other != one)
        line = reductions.any(mask, others) if others else mask
        bounds += [reductions.any(line).astype(np.int64), line.argmax(), namespace.flip(line).argmax()]
    numbers = protocol.stack(bounds).numpy().reshape(len(axes), 3)
    key = [slice(None)] * filt.ndim
    for one, (there, first, last) in zip(axes, numbers.tolist()):
        n = filt.shape[one]
        if not there:
            key[one] = slice(0, 0)
        else:
            key[one] = slice(first if "f" in ends else 0, n - last if "b" in ends else n)
    return filt[tuple(key)]


# Elements that are chosen.

#: Arrays that one formula chooses from: of its ten buffers three are the index, the result and what was chosen before.
_AT_ONCE = 7


def choose(a: Array, choices: Union[Array, Sequence[Values]], out: Optional[Array] = None, mode: str = "raise") -> Array:
    """For each index in a the element of that array among the choices, which broadcast with it. Indices are not checked: one
    out of range gives 0, or with mode "wrap" is taken modulo their number, with "clip" cut to the range."""
    require_array(a, "a")
    if a.dtype.kind not in "iub":
        raise TypeError(f"Cannot cast array data from {a.dtype!r} to {np.dtype(np.int64)!r} according to the rule 'safe'")
    how = choice(mode, "mode", {"raise": "i", "wrap": "i % n", "clip": "clamp(i, 0, n - 1)"})
    listed = list(choices) if not isinstance(choices, Storage) else [choices[index] for index in range(len(choices))]
    if not listed:
        raise ValueError("need at least one array to choose from")
    arrays = [given(one, a, f"choice {place}") for place, one in enumerate(listed)]
    kind = arrays[0].dtype
    for one in arrays[1:]:
        kind = common_type(kind, one.dtype)
    index = a.astype(np.int64) if how != "i" and a.dtype != np.int64 else a
    if how != "i":
        index = expr(how, dtype=np.int64, i=index, n=np.int64(len(arrays)))
    elif index.dtype == np.bool_:
        index = index.astype(np.uint8)
    result: Optional[Array] = None
    for begin in range(0, len(arrays), _AT_ONCE):
        part = {f"c{place}": one for place, one in enumerate(arrays[begin : begin + _AT_ONCE])}
        most = np.iinfo(index.dtype).max
        tests = "".join(f"i == {begin + place} ? c{place} : " for place in range(len(part)) if begin + place <= most)
        rest = {} if result is None else {"r": result}
        result = expr(tests + ("0" if result is None else "r"), dtype=kind, i=index, **part, **rest)
    return stored(result, out)


def piecewise(x: Array, condlist: object, funclist: Sequence[object], *args: object, **kw: object) -> Array:
    """What functions, or numbers, give for the elements where their conditions are true, in an array of the shape and the
    type of x; one function more is for all other elements, which are otherwise 0. A function is called with a vector of its
    elements, for whose number it waits."""
    require_array(x, "x")
    functions = list(funclist)
    conditions = _conditions(x, condlist)
    if len(conditions) == len(functions) - 1:
        rest = conditions[0]
        for one in conditions[1:]:
            rest = elementwise.logical_or(rest, one)
        conditions.append(elementwise.logical_not(rest))
    elif len(conditions) != len(functions):
        n = len(conditions)
        raise ValueError(f"with {n} condition(s), either {n} or {n + 1} functions are expected")
    flat, result = x.ravel(), x.context.zeros((x.size,), x.dtype)
    for condition, function in zip(conditions, functions):
        if not callable(function):
            value = given(function, x, "a value") if isinstance(function, Storage) else function
            if isinstance(value, Storage):
                value = _of_type(value, x)
            elementwise.where(condition.ravel(), x.dtype.type(value) if is_scalar(value) else value, result, out=result)
            continue
        places = searching.true_places(condition.ravel())
        if places.size:
            values = function(shapes.take(flat, places, 0), *args, **kw)
            indexing.put(result, places, values if is_scalar(values) else _of_type(given(values, x, "a result"), x))
    return result.reshape(x.shape)


def _conditions(x: Array, condlist: object) -> List[Array]:
    listed: Sequence[object]
    if isinstance(condlist, Storage):
        listed = [condlist] if condlist.shape == x.shape else [condlist[index] for index in range(len(condlist))]
    else:
        listed = [condlist] if is_scalar(condlist) else sequence(condlist, "condlist", "masks")
        if x.ndim and listed and all(isinstance(one, (bool, np.bool_)) for one in listed):
            listed = [list(listed)]  # one mask
    found = []
    for place, one in enumerate(listed):
        mask = given(one, x, f"condition {place}")
        if mask.shape != x.shape:
            raise IndexError(f"condition {place} has shape {mask.shape}, and x {x.shape}")
        found.append(mask if mask.dtype == np.bool_ else elementwise.not_equal(mask, 0))
    if not found:
        raise ValueError("condlist is empty")
    return found


protocol.FUNCTIONS.update(
    choose=choose,
    copyto=copyto,
    delete=delete,
    fill_diagonal=fill_diagonal,
    insert=insert,
    piecewise=piecewise,
    place=place,
    put=put,
    putmask=putmask,
    trim_zeros=trim_zeros,
)
