"""How many elements are between edges."""

from __future__ import annotations

import builtins
import math
from typing import TYPE_CHECKING, Callable, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import _elementwise as elementwise
from . import _protocol as protocol
from . import _reductions as reductions
from . import _searching as searching
from . import _shape as shapes
from . import _sorting as sorting
from . import raw
from ._checked import is_whole, real, sequence, whole
from ._error import check
from ._expression import expr
from ._operands import dtype_of, require_array, same_context
from ._planes import by_parts
from ._storage import Storage
from ._types import complex_of, is_complex, is_float, part_of

if TYPE_CHECKING:
    from ._array import Array

    Bins = Union[int, str, Sequence[float]]
    Range = Optional[Tuple[float, float]]

__all__ = ["digitize", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd"]


# Edges as values of the elements' type. Those are compared with edges as if both were exact.


def _rounded(edges: np.ndarray, dtype: np.dtype, up: bool) -> np.ndarray:
    """The numbers of a type of floats that are next to the edges, upwards or downwards."""
    with np.errstate(over="ignore"):
        near = edges.astype(dtype)
    exact = near.astype(np.float64)
    wrong = exact < edges if up else exact > edges
    return np.where(wrong, np.nextafter(near, dtype.type(np.inf if up else -np.inf)), near)


def _thresholds(edges: np.ndarray, dtype: np.dtype, strict: bool) -> Tuple[np.ndarray, int]:
    """Ascending edges so that for each element "edge <= x", or if strict "edge < x", has not changed; and how many more edges
    there are below all numbers of an integer type. Edges above all of them are left out."""
    if is_float(dtype):
        return _rounded(edges, dtype, not strict), 0
    info = np.iinfo(dtype)
    limits = [builtins.min(builtins.max(one, float(info.min) - 1e20), float(info.max) + 1e20) for one in edges.tolist()]
    integers = [math.floor(one) if strict else math.ceil(one) for one in limits]
    inside = [one for one in integers if info.min <= one <= info.max]
    return np.array(inside, dtype), sum(one < info.min for one in integers)


def _comparable(x: Array) -> Array:
    """The elements in a type that is searched: bools as uint8, 16-bit floats as float32."""
    if is_complex(x.dtype):
        raise TypeError(f"x is an array of {x.dtype}: needs real numbers")
    if x.dtype == np.bool_:
        return x.astype(np.uint8)
    return x.astype(np.float32) if is_float(x.dtype) and x.dtype.itemsize < 4 else x


#: Edges that one kernel compares elements with, and how many are compared like this: others are searched in log2 steps.
_AT_ONCE = 12
_MOST_COMPARED = 48


def _passed(x: Array, edges: np.ndarray, strict: bool) -> Array:
    """For each element how many of the edges are up to it, or if strict before it, as int32. NaN has passed all."""
    limits, below = _thresholds(edges, x.dtype, strict)
    if limits.size > _MOST_COMPARED:
        found = searching.search(x.context.array(limits, x.dtype), x, strict)
        return found + below if below else found
    found = x.context.full(x.shape, below, np.int32)
    for begin in range(0, limits.size, _AT_ONCE):
        some = {f"t{place}": one for place, one in enumerate(limits[begin : begin + _AT_ONCE])}
        passed = " + ".join(f"i32(!(x {'<=' if strict else '<'} {name}))" for name in some)
        found = expr(f"p + {passed}", dtype=np.int32, x=x, p=found, **some)
    return found


def digitize(x: Array, bins: Union[Array, Sequence[float]], right: bool = False) -> Array:
    """For each element the number of its bin, as int64: i with bins[i - 1] <= x < bins[i], or bins[i - 1] < x <= bins[i] if
    right; for descending bins the other way round. Bins are a list or an array on the device; whether they are in order is
    waited for."""
    require_array(x, "x")
    values = _comparable(x)
    if isinstance(bins, Storage):
        return _digitized(values, bins, bool(right))
    edges = np.array([real(one, "a bin") for one in sequence(bins, "bins", "an array or a list")], np.float64)
    steps = np.diff(edges)
    if np.all(steps >= 0):
        return _passed(values, edges, bool(right)).astype(np.int64)
    if not np.all(steps <= 0):
        raise ValueError("bins must be monotonically increasing or decreasing")
    return edges.size - _passed(values, edges[::-1].copy(), bool(right)).astype(np.int64)


def _digitized(x: Array, bins: Array, right: bool) -> Array:
    same_context(x.context, bins.context)
    if bins.ndim != 1:
        raise ValueError(f"bins has shape {bins.shape}, needs one axis")
    bins = _comparable(bins)
    descends = False
    if bins.size > 1:
        steps = [reductions.all(function(bins[1:], bins[:-1])) for function in (elementwise.greater_equal, elementwise.less_equal)]
        up, down = protocol.stack(steps).numpy().tolist()
        if not (up or down):
            raise ValueError("bins must be monotonically increasing or decreasing")
        descends = not up
    ordered = bins[::-1].copy() if descends else bins
    found = searching.searchsorted(ordered, x, "left" if right else "right")
    return bins.size - found if descends else found


# Bins.


def _limits(x: Array, wanted: Range, ordered: bool = False) -> Tuple[float, float]:
    """Where the first bin begins and the last one ends. The elements may be in order."""
    if wanted is not None:
        low, high = (real(one, "range") for one in sequence(wanted, "range", "two numbers"))
        if not low <= high:
            raise ValueError(f"range is {low} to {high}, needs an ascending one")
    elif x.size == 0:
        low, high = 0.0, 1.0
    else:
        ends = shapes.concat([x[:1], x[-1:]], 0) if ordered else protocol.stack([x.min(), x.max()])
        low, high = (float(one) for one in ends.numpy())
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError(f"the range from {low} to {high} is not finite")
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def _listed_edges(bins: Sequence[float]) -> np.ndarray:
    edges = np.array([real(one, "an edge") for one in sequence(bins, "bins", "a number or edges")])
    if edges.size < 2:
        raise ValueError(f"bins has {edges.size} edges, needs at least two")
    if not np.all(edges[:-1] <= edges[1:]):
        raise ValueError("bins are not in ascending order")
    return edges


def _edges(x: Array, bins: Bins, wanted: Range, weighted: bool, ordered: bool = False) -> np.ndarray:
    if isinstance(bins, str):
        if bins not in _WIDTHS:
            raise ValueError(f"{bins!r} is not a valid estimator for `bins`: needs one of {list(_WIDTHS)}")
        if weighted:
            raise TypeError("Automated estimation of the number of bins is not supported for weighted data")
        limits = _limits(x, wanted, ordered)
        bins = _number_of_bins(x, bins, limits, wanted is not None)
    elif not is_whole(bins):
        return _listed_edges(bins)
    else:
        whole(bins, "bins", 1, 2**31 - 2)
        limits = _limits(x, wanted, ordered)
    return np.linspace(*limits, int(bins) + 1, dtype=np.float64).astype(x.dtype if is_float(x.dtype) else np.float64)


def histogram_bin_edges(
    a: Array, bins: Bins = 10, range: Range = None, weights: Optional[Array] = None  # noqa: A002
) -> np.ndarray:
    """The edges that histogram() would have, as a NumPy array. bins may also be the name of a rule: "auto", "doane", "fd",
    "rice", "scott", "sqrt", "stone" or "sturges"."""
    require_array(a, "a")
    return _edges(_comparable(a.ravel()), bins, range, weights is not None)


# Rules for the width of bins. Each is of the vector x, the largest less the smallest element, and the range.


def _of_size(width: Callable[[int], float]) -> Callable[[Array, float, Tuple[float, float]], float]:
    return lambda x, extent, _: extent / width(x.size)


def _scott(x: Array, extent: float, _: Tuple[float, float]) -> float:
    return (24 * math.sqrt(math.pi) / x.size) ** (1 / 3) * float(x.std())


def _doane(x: Array, extent: float, _: Tuple[float, float]) -> float:
    n = x.size
    if n <= 2:
        return 0.0
    deviation = x.std()
    cubes = expr("mean(((x - m) / s) ** 3)", x=x, m=x.mean(), s=deviation)
    skewness, sigma = (float(one) for one in protocol.stack([cubes, deviation]).numpy())
    if not sigma > 0:
        return 0.0
    of_skewness = math.sqrt(6 * (n - 2) / ((n + 1) * (n + 3)))
    return extent / (1 + math.log2(n) + math.log2(1 + abs(skewness) / of_skewness))


def _freedman_diaconis(x: Array, extent: float, _: Tuple[float, float]) -> float:
    low, high = (float(one) for one in sorting.quantile(x, [0.25, 0.75]).numpy())
    return 2 * (high - low) * x.size ** (-1 / 3)


def _stone(x: Array, extent: float, limits: Tuple[float, float]) -> float:
    """By cross-validation of the integrated squared error (Stone, An asymptotically optimal histogram selection rule, 1984)."""
    n, most = x.size, builtins.max(100, int(math.sqrt(x.size)))
    if n <= 1 or extent == 0:
        return 0.0
    ordered = sorting.sort(x)

    def risk(bins: int) -> float:
        edges = np.linspace(*limits, bins + 1).astype(x.dtype if is_float(x.dtype) else np.float64)
        shares = _counts(ordered, edges).numpy() / n
        return (2 - (n + 1) * float(shares @ shares)) * bins / extent

    return extent / builtins.min(range(1, most + 1), key=risk)


def _auto(x: Array, extent: float, limits: Tuple[float, float]) -> float:
    of_size = _WIDTHS["sturges"](x, extent, limits)
    return builtins.min(_freedman_diaconis(x, extent, limits) or of_size, of_size)


_WIDTHS: Dict[str, Callable[[Array, float, Tuple[float, float]], float]] = {
    "auto": _auto,
    "doane": _doane,
    "fd": _freedman_diaconis,
    "rice": _of_size(lambda n: 2 * n ** (1 / 3)),
    "scott": _scott,
    "sqrt": _of_size(math.sqrt),
    "stone": _stone,
    "sturges": _of_size(lambda n: math.log2(n) + 1),
}


def _number_of_bins(x: Array, rule: str, limits: Tuple[float, float], cut: bool) -> int:
    if cut:
        lower, upper = _thresholds(np.array([limits[0]]), x.dtype, False), _thresholds(np.array([limits[1]]), x.dtype, True)
        if lower[0].size == 0 and lower[1] == 0:
            return 1
        inside = expr("x >= a", dtype=np.bool_, x=x, a=lower[0][0]) if lower[0].size else x.context.full(x.shape, True, np.bool_)
        if upper[0].size:
            inside = elementwise.logical_and(inside, expr("x <= a", dtype=np.bool_, x=x, a=upper[0][0]))
        x = searching.elements_where(x, inside)
    if x.size == 0:
        return 1
    low, high = (float(one) for one in protocol.stack([x.min(), x.max()]).numpy())
    width = _WIDTHS[rule](x, high - low, limits)
    if not is_float(x.dtype) and 0 < width < 1:
        width = 1.0
    return builtins.max(math.ceil((limits[1] - limits[0]) / width), 1) if width else 1


# Counts.


def _before(ordered: Array, edges: np.ndarray, left: bool) -> Array:
    """For each edge the number of sorted elements before it, as int32; without `left`, of those up to it."""
    context = ordered.context
    limits, below = _thresholds(edges, ordered.dtype, not left)
    places = searching.search(ordered, context.array(limits, ordered.dtype), left)
    above = edges.size - limits.size - below
    if not below and not above:
        return places
    ends = (context.zeros(below, np.int32), context.full((above,), ordered.size, np.int32))
    return shapes.concat([ends[0], places, ends[1]], 0)


def _counts(ordered: Array, edges: np.ndarray) -> Array:
    if ordered.size == 0:
        return ordered.context.zeros(edges.size - 1, np.int64)
    begins = _before(ordered, edges[:-1], True)
    end = _before(ordered, edges[-1:], False)
    both = shapes.concat([begins, end], 0)
    return elementwise.arithmetic("a - b", both[1:], both[:-1], None).astype(np.int64)


#: Edges for which the elements are counted, each time all of them; with more edges they are sorted instead.
_MOST_COUNTED = 17


def _counted(x: Array, edges: np.ndarray) -> Array:
    """The counts of unsorted elements: differences between the numbers of elements from each edge on."""
    limits, below = _thresholds(edges, x.dtype, False)
    last, last_below = _thresholds(edges[-1:], x.dtype, True)
    if x.size == 0:
        return x.context.zeros(edges.size - 1, np.int64)
    everything, nothing = (x.context.full((), number, np.int64) for number in (x.size, 0))
    above = [expr("count_nonzero(x >= t)", dtype=np.int64, x=x, t=one) for one in limits]
    beyond = expr("count_nonzero(x > t)", dtype=np.int64, x=x, t=last[0]) if last.size else everything if last_below else nothing
    numbers = [everything] * below + above + [nothing] * (edges.size - below - len(above)) + [beyond]
    reached = protocol.stack(numbers)
    # The last bin has its right edge too: it ends beyond that one.
    return expr("a - b", dtype=np.int64, a=reached[:-2], b=shapes.concat([reached[1:-2], reached[-1:]], 0))


def _bins_of(x: Array, edges: np.ndarray) -> Array:
    """For each element the number of its bin, from 1 on, as int32; 0 and the number of edges are outside."""
    passed = _passed(x, edges, False)
    last, below = _thresholds(edges[-1:], x.dtype, True)
    if last.size == 0:
        return passed
    # The last bin has its right edge too.
    return expr("p == n && x <= e ? n - 1 : p", dtype=np.int32, p=passed, x=x, n=np.int32(edges.size), e=last[0])


def _sums(places: Array, weights: Array, size: int) -> Array:
    """The sums of the weights at each of `size` places, of the weights' type."""
    if is_complex(weights.dtype):
        return by_parts(lambda part: _sums(places, part.copy(), size), weights)
    sums = places.context.zeros(size, weights.dtype)
    if places.size == 0:
        return sums
    desc = raw.ScatterDesc(dtype=dtype_of(weights), index_type=dtype_of(places), op=raw.SCATTER_ADD, rank=1, elementwise=1)
    desc.shape[0], desc.index_shape[0] = size, places.size
    desc.indices, desc.updates, desc.output = places.buffer.handle, weights.buffer.handle, sums.buffer.handle
    check(raw.tuff_scatter(places.context.stream_handle, desc))
    return sums


def _weights(weights: Array, shape: Tuple[int, ...], like: Array) -> Array:
    require_array(weights, "weights")
    same_context(like.context, weights.context)
    if weights.shape != shape:
        raise ValueError(f"weights should have the same shape as a: {weights.shape} and {shape}")
    return weights.ravel().astype(np.int64) if weights.dtype == np.bool_ else weights.ravel()


def _densities(counts: Array, widths: np.ndarray, *samples: Array) -> Array:
    """Counts divided by the sizes of their bins and by their sum, in float64 if anything is."""
    wide = np.float64 in [part_of(one.dtype) for one in (counts, *samples)]
    kind = np.dtype(np.float64 if wide else np.float32)
    if is_complex(counts.dtype):
        kind = complex_of(kind)
    shares = counts if counts.dtype == kind else counts.astype(kind)
    return expr("c / w / t", dtype=kind, c=shares, w=counts.context.array(widths, part_of(kind)), t=shares.sum())


def _is_small(bins: object) -> bool:
    if isinstance(bins, str):
        return False
    return (bins + 1 if is_whole(bins) else len(bins) if hasattr(bins, "__len__") else _MOST_COUNTED + 1) <= _MOST_COUNTED


def histogram(
    x: Array,
    bins: Bins = 10,
    range: Range = None,  # noqa: A002
    density: Optional[bool] = None,
    weights: Optional[Array] = None,
) -> Tuple[Array, np.ndarray]:
    """How many elements are in each bin, as an int64 array, and the bins' edges, as a NumPy array. bins is their number,
    from the smallest to the largest element or over a range, their edges, or a rule of histogram_bin_edges(). A bin has its
    left edge, the last one both. With weights, their sums; with density, what gives 1 if it is integrated over the bins."""
    require_array(x, "x")
    flat = _comparable(x.ravel())
    if weights is None and _is_small(bins):
        edges = _edges(flat, bins, range, False)
        counts = _counted(flat, edges)
    elif weights is None:
        # Of sorted elements the ends are the smallest and the largest one.
        ordered = sorting.sort(flat)
        edges = _edges(ordered, bins, range, False, True)
        counts = _counts(ordered, edges)
    else:
        values = _weights(weights, x.shape, x)
        edges = _edges(flat, bins, range, True)
        counts = _sums(_bins_of(flat, edges), values, edges.size + 1)[1:-1].copy()
    if density:
        counts = _densities(counts, np.diff(edges).astype(np.float64), flat)
    return counts, edges


# Several dimensions.


def _columns(sample: Union[Array, Sequence[Array]]) -> List[Array]:
    if isinstance(sample, Storage):
        if sample.ndim > 2:
            raise ValueError(f"sample has shape {sample.shape}, needs (elements, dimensions)")
        return [sample.ravel()] if sample.ndim < 2 else [sample[:, index].copy() for index in builtins.range(sample.shape[1])]
    columns = list(sequence(sample, "sample", "an array or several"))
    for place, one in enumerate(columns):
        require_array(one, f"array {place} of sample")
        if one.ndim != 1 or one.size != columns[0].size:
            raise ValueError(f"array {place} of sample has shape {one.shape}, needs a vector of {columns[0].size} elements")
    return columns


def _of_each(bins: object, dimensions: int) -> List[object]:
    if is_whole(bins):
        return [bins] * dimensions
    listed = list(sequence(bins, "bins", "a number, or for each dimension a number or edges"))
    if len(listed) != dimensions:
        raise ValueError("The dimension of bins must be equal to the dimension of the sample x.")
    return listed


def histogramdd(
    sample: Union[Array, Sequence[Array]],
    bins: object = 10,
    range: Optional[Sequence[Range]] = None,  # noqa: A002
    density: Optional[bool] = None,
    weights: Optional[Array] = None,
) -> Tuple[Array, Tuple[np.ndarray, ...]]:
    """How many points are in each cell of a grid, as float32, or the sums of their weights, and for each dimension the edges,
    as NumPy arrays. sample is an array (points, dimensions) or a vector for each dimension; bins is a number, or for each
    dimension a number or edges; range has for each dimension None or two ends. density: as of histogram()."""
    columns = [_comparable(one) for one in _columns(sample)]
    if not columns:
        raise ValueError("sample has no dimensions")
    points = columns[0].size
    same_context(*(one.context for one in columns))
    ranges = [None] * len(columns) if range is None else list(sequence(range, "range", "two ends for each dimension"))
    if len(ranges) != len(columns):
        raise ValueError("range argument must have one entry per dimension")
    edges = []
    for place, (one, count, ends) in enumerate(zip(columns, _of_each(bins, len(columns)), ranges)):
        if not is_whole(count):
            edges.append(_listed_edges(count))
        elif count < 1:
            raise ValueError(f"`bins[{place}]` must be positive, when an integer")
        else:
            edges.append(np.linspace(*_limits(one, ends), int(count) + 1))
    sizes = [one.size + 1 for one in edges]
    cells = math.prod(sizes)
    kind = np.int32 if cells < 2**31 else np.int64
    places: Optional[Array] = None
    for one, limits, size in zip(columns, edges, sizes):
        number = _bins_of(one, limits)
        places = number if places is None else expr("p * s + b", dtype=kind, p=places, b=number, s=kind(size))
    if weights is None:
        found = searching.bincount(places, minlength=cells)
        found = found.astype(np.float32)
    else:
        found = _sums(places, _weights(weights, (points,), columns[0]), cells)
        found = found if not found.dtype.kind in "iu" else found.astype(np.float32)
    counts = found.reshape(sizes)[(slice(1, -1),) * len(sizes)].copy()
    if density:
        volumes = np.array(1.0)
        for one in edges:
            volumes = volumes[..., None] * np.diff(one)
        counts = _densities(counts, volumes)
    return counts, tuple(edges)


def histogram2d(
    x: Array,
    y: Array,
    bins: object = 10,
    range: Optional[Sequence[Range]] = None,  # noqa: A002
    density: Optional[bool] = None,
    weights: Optional[Array] = None,
) -> Tuple[Array, np.ndarray, np.ndarray]:
    """How many points (x, y) are in each cell of a grid, as float32, or the sums of their weights, and the edges along both
    axes, as NumPy arrays. bins is a number or edges for both, or two of these; range has two ends for each."""
    for one, name in ((x, "x"), (y, "y")):
        require_array(one, name)
    if x.shape[:1] != y.shape[:1]:
        raise ValueError("x and y must have the same length.")
    if not is_whole(bins) and len(listed := list(sequence(bins, "bins", "a number or edges"))) not in (1, 2):
        bins = [listed, listed]
    elif not is_whole(bins) and len(listed) == 1:
        bins = [listed[0], listed[0]]
    counts, edges = histogramdd([x, y], bins, range, density, weights)
    return counts, edges[0], edges[1]


protocol.FUNCTIONS.update(
    digitize=digitize,
    histogram=lambda a, bins=10, range=None, density=None, weights=None: histogram(a, bins, range, density, weights),
    histogram2d=histogram2d,
    histogram_bin_edges=histogram_bin_edges,
    histogramdd=histogramdd,
)
