"""Sums of products over named axes, and the products that are cases of it. Contractions are matrix products."""

from __future__ import annotations

import math
from string import ascii_letters
from typing import TYPE_CHECKING, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import _functions as functions
from . import _operations as operations
from . import _protocol as protocol
from . import _shape as shapes
from ._checked import is_whole, sequence, whole
from ._elementwise import wrapped
from ._namespace import result_type
from ._namespace import sum as total
from ._layout import may_share
from ._operands import require_array, stored, whole_axis
from ._storage import Storage

if TYPE_CHECKING:
    from ._array import Array

__all__ = ["cross", "einsum", "kron", "matrix_transpose", "matvec", "outer", "tensordot", "trace", "vecdot", "vecmat"]


def _moved(x: Array, order: Sequence[int]) -> Array:
    return x if list(order) == list(range(x.ndim)) else shapes.permute(x, order)


def diagonal(x: Array, offset: int = 0) -> Array:
    """The diagonals of a stack of matrices, offset to the right of the main one, along the last axis: a view."""
    require_array(x, "x")
    if x.ndim < 2:
        raise ValueError(f"x has shape {x.shape}, needs at least two axes")
    return protocol.FUNCTIONS["diagonal"](x, offset, -2, -1)


def trace(x: Array, offset: int = 0, *, dtype: object = None) -> Array:
    """The sum of each matrix's diagonal, offset to the right of the main one, of the types of tuff.sum."""
    return total(diagonal(x, offset), axis=-1, dtype=dtype)


def matrix_transpose(x: Array) -> Array:
    """A stack of matrices, each transposed, as a new array; x.mT is the same without moving elements, for @."""
    require_array(x, "x")
    if x.ndim < 2:
        raise ValueError(f"x has shape {x.shape}, needs at least two axes")
    return x.swapaxes(-1, -2)


class _Term:
    """An operand with a label for each axis."""

    def __init__(self, x: Array, labels: List[object]) -> None:
        self.x, self.labels = x, labels

    def size(self, label: object) -> int:
        return self.x.shape[self.labels.index(label)]

    def arranged(self, *groups: Sequence[object]) -> Array:
        """The operand with its labels in this order, those of each group as one axis."""
        order = [self.labels.index(label) for group in groups for label in group]
        return _moved(self.x, order).reshape(tuple(math.prod(self.size(label) for label in group) for group in groups))

    def without_repeats(self) -> _Term:
        """Takes the diagonal of axes with the same label."""
        term = self
        for label in dict.fromkeys(self.labels):
            while term.labels.count(label) > 1:
                first, second = [place for place, one in enumerate(term.labels) if one == label][:2]
                rest = [place for place in range(len(term.labels)) if place not in (first, second)]
                x = diagonal(_moved(term.x, [*rest, first, second]))
                term = _Term(x, [term.labels[place] for place in rest] + [label])
        return term

    def summed(self, kept: set) -> _Term:
        """Sums over the labels that nothing else has."""
        gone = [label for label in self.labels if label not in kept]
        if not gone:
            return self
        rest = [label for label in self.labels if label in kept]
        shape = tuple(self.size(label) for label in rest)
        return _Term(self.arranged(rest, gone).sum(axis=1).reshape(shape), rest)


def _contract(a: _Term, b: _Term, kept: set) -> _Term:
    """The product of two terms, summed over the labels of both that are not kept."""
    shared = [label for label in a.labels if label in b.labels]
    batch, inner = [label for label in shared if label in kept], [label for label in shared if label not in kept]
    only_a = [label for label in a.labels if label not in shared]
    only_b = [label for label in b.labels if label not in shared]
    labels = [*batch, *only_a, *only_b]
    shape = tuple((a if label in a.labels else b).size(label) for label in labels)
    if not inner:
        ones = [1] * len(only_b)
        left = _moved(a.x, [a.labels.index(label) for label in (*batch, *only_a)]).reshape((*shape[: len(batch) + len(only_a)], *ones))
        right = _moved(b.x, [b.labels.index(label) for label in (*batch, *only_b)])
        right = right.reshape((*shape[: len(batch)], *([1] * len(only_a)), *shape[len(batch) + len(only_a) :]))
        return _Term(functions.multiply(left, right), labels)
    left, right = _matrices(a, batch, only_a, inner), _matrices(b, batch, inner, only_b)
    return _Term(operations.matmul(left, right).reshape(shape), labels)


def _matrices(term: _Term, batch: List[object], rows: List[object], columns: List[object]) -> Array:
    """The operand as a stack of matrices; one whose axes are the other way round is read in place."""
    if term.labels == [*batch, *columns, *rows] and rows and columns:
        return term.arranged(batch, columns, rows).mT
    return term.arranged(batch, rows, columns)


def _labels(text: str, ndim: int, where: str) -> List[object]:
    """The labels of one operand: letters, and numbers for the axes of an ellipsis, counted from their end."""
    before, dots, after = text.partition("...")
    if not all(letter.isalpha() and letter.isascii() for letter in before + after):
        raise ValueError(f"subscripts {text!r} of {where} are not letters with at most one ellipsis")
    missing = ndim - len(before) - len(after)
    if missing < 0 or (missing > 0 and not dots):
        raise ValueError(f"subscripts {text!r} of {where}, which has {ndim} axes")
    return [*before, *range(-missing, 0), *after]


def _lettered(arguments: Sequence[object]) -> Tuple[str, Tuple[Array, ...]]:
    """Subscripts and operands of operands that are each followed by a list of their axes, and perhaps the result's."""

    def text(axes: object) -> str:
        listed = sequence(axes, "a list of axes", "integers and an ellipsis")
        return "".join("..." if one is Ellipsis else ascii_letters[whole(one, "an axis", 0, len(ascii_letters) - 1)] for one in listed)

    pairs = list(zip(arguments[::2], arguments[1::2]))
    inputs = ",".join(text(axes) for _, axes in pairs)
    output = f"->{text(arguments[-1])}" if len(arguments) % 2 else ""
    return inputs + output, tuple(x for x, _ in pairs)


def einsum(
    subscripts: Union[str, Array], *operands: Union[Array, Sequence[object]], out: Optional[Array] = None, optimize: object = True
) -> Array:
    """Sums of products over named axes, as numpy.einsum: einsum("bij,bjk->bik", a, b), or einsum(a, [0, 1], b, [1, 2]). Axes that
    are summed over both
    operands of a pair are a matrix product; of several operands, the pair with the smallest product comes first (optimize
    is there for NumPy's sake). Integers and bools are computed as int64, or uint64."""
    if isinstance(subscripts, Storage) and operands and not isinstance(operands[0], str):
        subscripts, operands = _lettered((subscripts, *operands))
    if not isinstance(subscripts, str):
        raise TypeError(f"subscripts are {type(subscripts).__name__}, not a str")
    for place, one in enumerate(operands):
        require_array(one, f"operand {place}")
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    texts = inputs.split(",")
    if not operands or len(texts) != len(operands):
        raise ValueError(f"subscripts {subscripts!r} are of {len(texts)} operands, and {len(operands)} are given")
    dtype = np.dtype(result_type(*operands))
    dtype = np.dtype(np.uint64 if dtype.kind == "u" else np.int64) if dtype.kind in "biu" else dtype
    terms = []
    for place, (text, x) in enumerate(zip(texts, operands)):
        labels = _labels(text, x.ndim, f"operand {place}")
        terms.append(_Term(x if x.dtype == dtype else x.astype(dtype), labels))
    sizes: Dict[object, int] = {}
    for place, term in enumerate(terms):
        for label, size in zip(term.labels, term.x.shape):
            known = sizes.get(label, 1)
            if 1 not in (size, known) and size != known:
                raise ValueError(f"axis {label!r} of operand {place} has {size} elements, and elsewhere {known}")
            sizes[label] = size if known == 1 else known
    numbers = sorted(label for label in sizes if not isinstance(label, str))
    if arrow:
        before, dots, after = output.partition("...")
        wanted = [*before, *(numbers if dots else []), *after]
        unknown = [label for label in wanted if label not in sizes]
        if unknown or len(set(wanted)) != len(wanted) or (numbers and not dots):
            raise ValueError(f"the output of subscripts {subscripts!r} needs each of its letters once, from the operands'")
    else:
        letters = [label for term in terms for label in term.labels if isinstance(label, str)]
        wanted = [*numbers, *sorted(label for label in set(letters) if letters.count(label) == 1)]
    # An axis of one element that meets a longer one is repeated: it is left out.
    for term in terms:
        kept = [place for place, label in enumerate(term.labels) if term.x.shape[place] == sizes[label]]
        if len(kept) != len(term.labels):
            term.x = term.x.reshape(tuple(term.x.shape[place] for place in kept))
            term.labels = [term.labels[place] for place in kept]
    terms = [term.without_repeats() for term in terms]
    result = _reduced(terms, wanted)
    x = _moved(result.x, [result.labels.index(label) for label in wanted])
    if any(may_share(x, one) for one in operands):
        x = x.copy()
    return stored(x, out)


def _reduced(terms: List[_Term], wanted: List[object]) -> _Term:
    while True:
        for place, term in enumerate(terms):
            others = {label for other, one in enumerate(terms) if other != place for label in one.labels}
            terms[place] = term.summed(others | set(wanted))
        if len(terms) == 1:
            return terms[0]
        pairs = [(i, j) for j in range(len(terms)) for i in range(j)]

        def product(pair: Tuple[int, int]) -> int:
            a, b = terms[pair[0]], terms[pair[1]]
            others = {label for place, one in enumerate(terms) if place not in pair for label in one.labels}
            sizes = {label: one.size(label) for one in (a, b) for label in one.labels if label in others or label in wanted}
            return math.prod(sizes.values())

        first, second = min(pairs, key=product)
        kept = {label for place, one in enumerate(terms) if place not in (first, second) for label in one.labels} | set(wanted)
        joined = _contract(terms[first], terms[second], kept)
        terms = [joined, *(one for place, one in enumerate(terms) if place not in (first, second))]


def tensordot(a: Array, b: Array, axes: Union[int, Sequence[Union[int, Sequence[int]]]] = 2) -> Array:
    """The sum of products over axes, as numpy.tensordot: the last `axes` of a and the first of b, or a pair of lists."""
    require_array(a, "a")
    require_array(b, "b")
    if is_whole(axes):
        count = whole(axes, "axes", 0, min(a.ndim, b.ndim))
        of_a, of_b = list(range(a.ndim - count, a.ndim)), list(range(count))
    else:
        pair = sequence(axes, "axes", "an integer or a pair")
        if len(pair) != 2:
            raise ValueError(f"axes are {axes!r}, need an integer or a pair")
        of_a, of_b = (
            [whole_axis(one, x.ndim) for one in ((some,) if is_whole(some) else sequence(some, "axes", "integers"))]
            for some, x in zip(pair, (a, b))
        )
    if len(of_a) != len(of_b) or len(set(of_a)) != len(of_a) or len(set(of_b)) != len(of_b):
        raise ValueError(f"axes are {axes!r}, which are not as many different ones of a as of b")
    if any(a.shape[i] != b.shape[j] for i, j in zip(of_a, of_b)):
        raise ValueError(f"tensordot of shapes {a.shape} and {b.shape} over axes {of_a} and {of_b}")
    left = list(ascii_letters[: a.ndim])
    right = list(ascii_letters[a.ndim : a.ndim + b.ndim])
    for i, j in zip(of_a, of_b):
        right[j] = left[i]
    kept = [one for place, one in enumerate(left) if place not in of_a] + [one for place, one in enumerate(right) if place not in of_b]
    return _of_operands(einsum(f"{''.join(left)},{''.join(right)}->{''.join(kept)}", a, b), a, b)


def _of_operands(x: Array, a: Array, b: Array) -> Array:
    """x in the common type of a and b: integers wrap, as elsewhere."""
    return wrapped(x, np.dtype(result_type(a, b)))


def vecdot(a: Array, b: Array, *, axis: int = -1) -> Array:
    """The sum of products along an axis, by default the last, of the conjugates of a; the other axes broadcast."""
    require_array(a, "a")
    require_array(b, "b")
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError(f"vecdot of shapes {a.shape} and {b.shape}: needs at least one axis")
    first, second = ((whole_axis(axis, x.ndim), x) for x in (a, b))
    if first[1].shape[first[0]] != second[1].shape[second[0]]:
        raise ValueError(f"vecdot of shapes {a.shape} and {b.shape} along axis {axis}")
    moved = [_moved(x, [*(i for i in range(x.ndim) if i != at), at]) for at, x in (first, second)]
    return _of_operands(einsum("...i,...i->...", moved[0].conj(), moved[1]), a, b)


def matvec(x1: Array, x2: Array) -> Array:
    """The products of stacks of matrices (..., m, n) and of vectors (..., n), which broadcast: (..., m)."""
    require_array(x1, "x1")
    require_array(x2, "x2")
    if x1.ndim < 2 or x2.ndim < 1 or x1.shape[-1] != x2.shape[-1]:
        raise ValueError(f"matvec of shapes {x1.shape} and {x2.shape}: needs (..., m, n) and (..., n)")
    product = operations.matmul(x1, x2.reshape((*x2.shape, 1)))
    return product.reshape(product.shape[:-1])


def vecmat(x1: Array, x2: Array) -> Array:
    """The products of the conjugates of stacks of vectors (..., m) and of matrices (..., m, n), which broadcast: (..., n)."""
    require_array(x1, "x1")
    require_array(x2, "x2")
    if x1.ndim < 1 or x2.ndim < 2 or x1.shape[-1] != x2.shape[-2]:
        raise ValueError(f"vecmat of shapes {x1.shape} and {x2.shape}: needs (..., m) and (..., m, n)")
    rows = x1.conj()
    product = operations.matmul(rows.reshape((*rows.shape[:-1], 1, rows.shape[-1])), x2)
    return product.reshape((*product.shape[:-2], product.shape[-1]))


def cross(a: Array, b: Array, *, axis: int = -1) -> Array:
    """The cross products of vectors of three elements along an axis, by default the last; the other axes broadcast. Integers
    wrap."""
    for x, name in ((a, "a"), (b, "b")):
        require_array(x, name)
        if x.shape[whole_axis(axis, x.ndim)] != 3:
            raise ValueError(f"{name} has shape {x.shape}, and axis {axis} needs three elements")

    def part(x: Array, index: int) -> Array:
        return x[(slice(None),) * whole_axis(axis, x.ndim) + (index,)]

    def product(i: int, j: int) -> Array:
        return functions.multiply(part(a, i), part(b, j))

    parts = [functions.subtract(product(i, j), product(j, i)) for i, j in ((1, 2), (2, 0), (0, 1))]
    return protocol.stack(parts, axis if axis < 0 else whole_axis(axis, parts[0].ndim + 1))


def _cross(a: Array, b: Array, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Optional[int] = None) -> Array:
    """numpy.cross of vectors of three elements."""
    if axis is not None:
        axisa = axisb = axisc = axis
    require_array(a, "a")
    require_array(b, "b")
    a, b = (_moved(x, [*(i for i in range(x.ndim) if i != whole_axis(at, x.ndim)), whole_axis(at, x.ndim)]) for x, at in ((a, axisa), (b, axisb)))
    result = cross(a, b)
    at, order = whole_axis(axisc, result.ndim), list(range(result.ndim - 1))
    return _moved(result, [*order[:at], result.ndim - 1, *order[at:]])


def outer(a: Array, b: Array) -> Array:
    """The products of each element of a with each of b, both flattened."""
    require_array(a, "a")
    require_array(b, "b")
    return _of_operands(einsum("i,j->ij", a.ravel(), b.ravel()), a, b)


def kron(a: Array, b: Array) -> Array:
    """The Kronecker product: blocks of b, one for each element of a and multiplied by it."""
    require_array(a, "a")
    require_array(b, "b")
    rank = max(a.ndim, b.ndim)
    left, right = ((1,) * (rank - x.ndim) + x.shape for x in (a, b))
    product = functions.multiply(
        a.reshape([size for one in left for size in (one, 1)]), b.reshape([size for one in right for size in (1, one)])
    )
    return product.reshape(tuple(i * j for i, j in zip(left, right)))


def _trace(array: Array, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: object = None, out: object = None) -> Array:
    if out is not None:
        raise TypeError("numpy.trace on a device takes no out")
    return total(protocol.FUNCTIONS["diagonal"](array, offset, axis1, axis2), axis=-1, dtype=dtype)


def _numpys_einsum(*arguments: object, dtype: object = None, **options: object) -> Array:
    if dtype is not None:
        arguments = tuple(one.astype(dtype) if isinstance(one, Storage) else one for one in arguments)
    return einsum(*arguments, **options)


protocol.UFUNCS.update(matvec=matvec, vecdot=vecdot, vecmat=vecmat)
protocol.FUNCTIONS.update(matrix_transpose=matrix_transpose, trace=_trace, cross=_cross, einsum=_numpys_einsum, kron=kron, outer=outer, tensordot=tensordot)
