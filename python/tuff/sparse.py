"""Sparse matrices, with the names of scipy.sparse: csr_array, csc_array, coo_array and bsr_array of float32, float64,
float16 or bfloat16, with indices of int32 or int64.

    a = tuff.sparse.from_scipy(scipy_matrix)      # or from_dense(array), or coo_array((data, (row, col)), shape)
    y = a @ x                                     # x: a vector, a matrix, or a stack of matrices on the same context
    c = a @ a.T                                   # the product of two sparse matrices is a sparse one
    s = (a + 2 * a.T).tocsr()[10:20].todense()

The arrays that a matrix consists of are on a device, and their contents are not checked: an entry with an index out of
range is ignored. A matrix does not change; operations give new ones, which may share arrays with it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Callable, Dict, Optional, Sequence, Tuple, Union

import numpy as np

from . import raw
from ._array import Array
from ._checked import I64, is_number, whole
from ._context import Context
from ._default import default_context
from ._error import check
from ._functions import maximum, minimum
from ._operands import dtype_of, require_array, same_context
from ._shape import concat
from ._sparse_places import combined
from ._storage import SparseStorage, as_dtype

if TYPE_CHECKING:
    Shape = Tuple[int, int]

__all__ = ["TriangularSolver", "bsr_array", "coo_array", "csc_array", "csr_array", "eye", "from_dense", "from_scipy", "issparse", "sampled_product", "spsolve_triangular"]

_INDICES = (np.dtype(np.int32), np.dtype(np.int64))


def _is_value_type(dtype: np.dtype) -> bool:
    return dtype in (np.float32, np.float64, np.float16) or dtype.name == "bfloat16"


def _shape_of(shape: object) -> Shape:
    if not isinstance(shape, (tuple, list)) or len(shape) != 2:
        raise ValueError(f"shape is {shape!r}, needs (rows, columns)")
    return whole(shape[0], "shape[0]"), whole(shape[1], "shape[1]")


def _uploaded(values: object, name: str, context: Optional[Context], dtype: object = None) -> Array:
    """An array on a device as it is, or anything that NumPy accepts, uploaded."""
    if isinstance(values, Array):
        if context is not None and values.context is not context:
            raise ValueError(f"{name} is of another context")
        return values if dtype is None or values.dtype == dtype else values.astype(dtype)
    if isinstance(values, SparseStorage):
        raise TypeError(f"{name} is {type(values).__name__}, not an array")
    return (context or default_context()).array(values, dtype)


def _uploaded_indices(values: object, name: str, context: Optional[Context]) -> Array:
    """As _uploaded(); integers keep their type, or become int64."""
    if isinstance(values, (Array, SparseStorage)):
        return _uploaded(values, name, context)
    host = np.asarray(values)
    if host.dtype.kind not in "iu" and host.size:
        raise TypeError(f"{name} is {host.dtype}, needs int32 or int64")
    if host.dtype == np.uint64 and host.size and int(host.max()) > I64:
        raise ValueError(f"{name} has {host.max()}, which is beyond int64")
    return (context or default_context()).array(host, host.dtype if host.dtype in _INDICES else np.int64)


def _given(arrays: object, context: Optional[Context], instead: str) -> Tuple[Array, Array, Array]:
    """data, indices and indptr that a caller gave, on the device."""
    if not isinstance(arrays, (tuple, list)) or len(arrays) != 3:
        raise TypeError(f"the first argument is (data, indices, indptr); {instead}")
    for value in arrays:
        context = value.context if context is None and isinstance(value, Array) else context
    data = _uploaded(arrays[0], "data", context)
    indices, indptr = (_uploaded_indices(v, n, data.context) for v, n in zip(arrays[1:], ("indices", "indptr")))
    return data, indices, indptr


def _check_contexts(data: Array, indices: Array, indptr: Array) -> None:
    if indices.context is not data.context or indptr.context is not data.context:
        raise ValueError("data, indices and indptr are of different contexts")


def _count_between(indptr: Array) -> int:
    """How many entries or blocks the offsets span. Waits for it."""
    ends = concat([indptr[:1], indptr[indptr.size - 1 :]]).numpy()
    return int(ends[1]) - int(ends[0])


def _check_value_type(x: Array) -> None:
    if not _is_value_type(x.dtype):
        raise TypeError(f"data is {x.dtype}, and sparse matrices take float32, float64, float16 and bfloat16")


def _check_vector(x: Array, name: str) -> None:
    if x.ndim != 1:
        raise ValueError(f"{name} has shape {x.shape}, needs one axis")


def _check_values(x: Array) -> None:
    _check_vector(x, "data")
    _check_value_type(x)


def _check_indices(x: Array, name: str, index: Optional[np.dtype] = None) -> None:
    _check_vector(x, name)
    if x.dtype not in _INDICES:
        raise TypeError(f"{name} is {x.dtype}, needs int32 or int64")
    if index is not None and x.dtype != index:
        raise TypeError(f"{name} is {x.dtype}, and the other indices are {index}")


def _handle(x: Optional[Array]) -> int:
    return 0 if x is None or x.size == 0 else x.buffer.handle


class _Matrix(SparseStorage):
    """What the formats have in common."""

    __slots__ = ("_shape", "data", "_count")
    __array_ufunc__ = None
    __array_priority__ = 20
    __hash__ = None
    format = ""

    data: Array

    @property
    def shape(self) -> Shape:
        return self._shape

    @property
    def ndim(self) -> int:
        return 2

    @property
    def dtype(self) -> np.dtype:
        return self.data.dtype

    @property
    def context(self) -> Context:
        return self.data.context

    def __repr__(self) -> str:
        rows, columns = self._shape
        return f"<tuff.sparse.{type(self).__name__} of {self.dtype}, {rows} x {columns}, room for {self.data.size} entries>"

    def __bool__(self) -> bool:
        raise ValueError("the truth value of a sparse matrix is ambiguous")

    def __len__(self) -> int:
        raise TypeError("the length of a sparse matrix is ambiguous; use .shape[0] or .nnz")

    # Conversions.

    def _converted(self, form: str) -> _Matrix:
        return _convert(self, form)

    def tocsr(self) -> csr_array:
        """The matrix in CSR, with sorted columns and without duplicates, which are summed; itself if it is in CSR."""
        return self if isinstance(self, csr_array) else self._converted("csr")

    def tocsc(self) -> csc_array:
        """The matrix in CSC, with sorted rows and without duplicates, which are summed; itself if it is in CSC."""
        return self if isinstance(self, csc_array) else self._converted("csc")

    def tocoo(self) -> coo_array:
        """The matrix in COO, sorted by row and column and without duplicates, which are summed; itself if it is in COO."""
        return self if isinstance(self, coo_array) else self._converted("coo")

    def tobsr(self, blocksize: Tuple[int, int], *, order: str = "C") -> bsr_array:
        """The matrix in BSR: with a block of this shape, which divides the matrix's, wherever there is an entry, sorted and
        without duplicates, which are summed. order says in which order a block's elements are stored, "C" by rows or "F" by
        columns; data has the shape (blocks, *blocksize) or that with the last two axes exchanged. Waits for the device to
        count the blocks."""
        size, order = _block_size(blocksize, self._shape), _block_order(order)
        if isinstance(self, bsr_array) and (self.blocksize, self.order) == (size, order):
            return self
        if self.data.size == 0:
            return _to_blocks(self, size, order, 0)[0]
        count = int(_to_blocks(self, size, order, 0)[1].numpy()[0])
        return _to_blocks(self, size, order, count)[0]

    def sum_duplicates(self) -> _Matrix:
        """A new matrix of the same format whose entries are sorted, with those of the same place summed."""
        return self._converted(self.format)

    def todense(self) -> Array:
        """The matrix as an array."""
        return _convert(self, "dense")

    toarray = todense

    def astype(self, dtype: object) -> _Matrix:
        """The matrix with values of another type."""
        wanted = as_dtype(dtype)
        if not _is_value_type(wanted):
            raise TypeError(f"dtype is {wanted}, and sparse matrices take float32, float64, float16 and bfloat16")
        return self if wanted == self.dtype else self._with(self.data.astype(wanted))

    def _with(self, data: Array) -> _Matrix:
        """The same places with other values."""
        raise NotImplementedError

    @property
    def T(self) -> _Matrix:
        """The transposed matrix, which shares all arrays."""
        raise NotImplementedError

    def transpose(self) -> _Matrix:
        """.T"""
        return self.T

    # Products.

    def __matmul__(self, other: object) -> Union[Array, _Matrix]:
        """The product with a dense array, which is dense, or with a sparse matrix, which is sparse: in CSC if both are,
        otherwise in CSR, without duplicates and with sorted indices. For the latter it waits, to know how many terms and
        entries there are."""
        return _multiplied(self, other) if isinstance(other, _Matrix) else _product(self, other, right=False)

    def __rmatmul__(self, other: object) -> Array:
        return _product(self, other, right=True)

    def dot(self, other: object) -> Union[Array, _Matrix]:
        """a @ other."""
        return self @ other

    # Arithmetic.

    def _scaled(self, factor: object) -> _Matrix:
        return self._with(self.data * factor)

    def __mul__(self, other: object) -> _Matrix:
        if not is_number(other):
            raise TypeError(f"a sparse matrix is multiplied by a number, not {type(other).__name__}; @ is the matrix product")
        return self._scaled(other)

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> _Matrix:
        if not is_number(other):
            raise TypeError(f"a sparse matrix is divided by a number, not {type(other).__name__}")
        return self._with(self.data / other)

    def __neg__(self) -> _Matrix:
        return self._with(-self.data)

    def __add__(self, other: object) -> csr_array:
        return _added(self, other, 1)

    def __sub__(self, other: object) -> csr_array:
        return _added(self, other, -1)

    # Functions of two matrices, place by place.

    def multiply(self, other: object) -> _Matrix:
        """The product of the elements at each place, in CSR, where it is not zero; or with a number, a * other. An infinity
        or NaN where the other matrix has no entry is left out."""
        return self * other if is_number(other) else _by_places(self, other, lambda a, b: a * b, both=True)

    def maximum(self, other: object) -> csr_array:
        """The larger element of two matrices at each place, in CSR, where it is not zero."""
        return _by_places(self, other, maximum)

    def minimum(self, other: object) -> csr_array:
        """The smaller element of two matrices at each place, in CSR, where it is not zero."""
        return _by_places(self, other, minimum)

    def sum(self, axis: Optional[int] = None) -> Array:
        """Sums over the columns (axis 1 or -1), the rows (axis 0 or -2) or all entries, as dense arrays."""
        if axis is None:
            return (self @ self.context.ones((self._shape[1],), self.dtype)).sum()
        axis = whole(axis, "axis", -2, 1) % 2
        ones = self.context.ones((self._shape[axis],), self.dtype)
        return self @ ones if axis == 1 else ones @ self


class _Compressed(_Matrix):
    """A matrix with offsets of lines: rows in CSR, columns in CSC."""

    __slots__ = ("indices", "indptr")

    indices: Array
    indptr: Array

    def __init__(self, arrays: Sequence[object], shape: object, *, context: Optional[Context] = None) -> None:
        """arrays: (data, indices, indptr), on a device or anything that NumPy accepts."""
        parts = _given(arrays, context, "from_dense() takes a dense array, from_scipy() SciPy's matrices")
        self._set(*parts, _shape_of(shape))

    def _set(self, data: Array, indices: Array, indptr: Array, shape: Shape) -> None:
        _check_values(data)
        _check_indices(indptr, "indptr")
        _check_indices(indices, "indices", indptr.dtype)
        if indices.shape != data.shape:
            raise ValueError(f"indices has shape {indices.shape}, data {data.shape}")
        lines = shape[self._axis]
        if indptr.size != lines + 1:
            raise ValueError(f"indptr has {indptr.size} elements, needs {lines + 1} for shape {shape}")
        _check_contexts(data, indices, indptr)
        self.data, self.indices, self.indptr, self._shape, self._count = data, indices, indptr, shape, None

    @classmethod
    def _made(cls, data: Array, indices: Array, indptr: Array, shape: Shape) -> _Compressed:
        result = cls.__new__(cls)
        result._set(data, indices, indptr, shape)
        return result

    @property
    def nnz(self) -> int:
        """The number of entries, from the offsets, for which it waits."""
        if self._count is None:
            self._count = _count_between(self.indptr)
        return self._count

    def _with(self, data: Array) -> _Compressed:
        return type(self)._made(data, self.indices, self.indptr, self._shape)

    @property
    def T(self) -> _Compressed:
        """The transposed matrix, which shares all arrays: a csc_array of a csr_array, and the reverse."""
        other = csc_array if isinstance(self, csr_array) else csr_array
        return other._made(self.data, self.indices, self.indptr, self._shape[::-1])


class csr_array(_Compressed):
    """A matrix in CSR: indices are the columns of the entries data, and row i has those from indptr[i] to indptr[i + 1]."""

    __slots__ = ()
    format = "csr"
    _axis = 0

    def __getitem__(self, key: object) -> csr_array:
        """Rows, by a slice of step 1: a view, which shares all arrays."""
        if isinstance(key, (int, np.integer)) and not isinstance(key, (bool, np.bool_)):
            row = int(key)
            if not -self._shape[0] <= row < self._shape[0]:
                raise IndexError(f"row {row} is out of range for shape {self._shape}")
            row %= self._shape[0]
            key = slice(row, row + 1)
        if not isinstance(key, slice):
            raise TypeError("a sparse matrix is indexed by a row or a slice of rows, a[i] or a[i:j]")
        begin, end, step = key.indices(self._shape[0])
        if step != 1:
            raise ValueError(f"rows are sliced with step 1, this is {step}")
        end = max(begin, end)
        return csr_array._made(self.data, self.indices, self.indptr[begin : end + 1], (end - begin, self._shape[1]))


class csc_array(_Compressed):
    """A matrix in CSC: indices are the rows of the entries data, and column j has those from indptr[j] to indptr[j + 1]."""

    __slots__ = ()
    format = "csc"
    _axis = 1


class coo_array(_Matrix):
    """A matrix in COO: the entries data at the places (row, col), in any order. Those of the same place count as their
    sum."""

    __slots__ = ("row", "col")
    format = "coo"

    row: Array
    col: Array

    def __init__(self, arrays: Sequence[object], shape: object, *, context: Optional[Context] = None) -> None:
        """arrays: (data, (row, col)), on a device or anything that NumPy accepts."""
        pairs = isinstance(arrays, (tuple, list)) and len(arrays) == 2 and isinstance(arrays[1], (tuple, list))
        if not pairs or len(arrays[1]) != 2:
            raise TypeError("the first argument is (data, (row, col)); from_dense() takes a dense array, from_scipy() SciPy's matrices")
        given = (arrays[0], arrays[1][0], arrays[1][1])
        for value in given:
            context = value.context if context is None and isinstance(value, Array) else context
        data = _uploaded(given[0], "data", context)
        row, col = (_uploaded_indices(v, n, context) for v, n in zip(given[1:], ("row", "col")))
        self._set(data, row, col, _shape_of(shape), None)

    def _set(self, data: Array, row: Array, col: Array, shape: Shape, count: object) -> None:
        _check_values(data)
        _check_indices(row, "row")
        _check_indices(col, "col", row.dtype)
        if row.shape != data.shape or col.shape != data.shape:
            raise ValueError(f"data, row and col have shapes {data.shape}, {row.shape} and {col.shape}")
        for x in (row, col):
            if x.context is not data.context:
                raise ValueError("data, row and col are of different contexts")
        self.data, self.row, self.col, self._shape, self._count = data, row, col, shape, count

    @classmethod
    def _made(cls, data: Array, row: Array, col: Array, shape: Shape, count: object = None) -> coo_array:
        result = cls.__new__(cls)
        result._set(data, row, col, shape, count)
        return result

    @property
    def nnz(self) -> int:
        """The number of entries, those of the same place counted each. A result's is known on the device, for which it
        waits."""
        if self._count is None:
            return self.data.size
        if isinstance(self._count, Array):
            self._count = int(self._count.numpy()[0])
        return self._count

    def _with(self, data: Array) -> coo_array:
        return coo_array._made(data, self.row, self.col, self._shape, self._count)

    @property
    def T(self) -> coo_array:
        """The transposed matrix, which shares all arrays."""
        return coo_array._made(self.data, self.col, self.row, self._shape[::-1], self._count)


def _block_order(order: object) -> str:
    if order not in ("C", "F"):
        raise ValueError(f"order is {order!r}, needs 'C' or 'F'")
    return order


def _block_size(blocksize: object, shape: Shape) -> Shape:
    if not isinstance(blocksize, (tuple, list)) or len(blocksize) != 2:
        raise ValueError(f"blocksize is {blocksize!r}, needs (rows, columns)")
    size = tuple(whole(x, f"blocksize[{i}]", 1, 2**32 - 1) for i, x in enumerate(blocksize))
    if shape[0] % size[0] or shape[1] % size[1]:
        raise ValueError(f"blocks of {size} do not divide shape {shape}")
    return size


class bsr_array(_Matrix):
    """A matrix in BSR, CSR of dense blocks: indices are the columns of blocks, and row i of blocks has those from indptr[i]
    to indptr[i + 1]. data has the shape (blocks, rows of a block, columns of a block), or with order "F", where the elements
    of a block are stored by columns, (blocks, columns of a block, rows of a block)."""

    __slots__ = ("indices", "indptr", "order")
    format = "bsr"

    indices: Array
    indptr: Array
    order: str

    def __init__(self, arrays: Sequence[object], shape: object, *, order: str = "C", context: Optional[Context] = None) -> None:
        """arrays: (data, indices, indptr), on a device or anything that NumPy accepts."""
        parts = _given(arrays, context, ".tobsr(blocksize) converts other matrices")
        self._set(*parts, _shape_of(shape), _block_order(order))

    def _set(self, data: Array, indices: Array, indptr: Array, shape: Shape, order: str) -> None:
        if data.ndim != 3:
            raise ValueError(f"data has shape {data.shape}, needs three axes: blocks, and the rows and columns of a block")
        _check_value_type(data)
        _check_indices(indptr, "indptr")
        _check_indices(indices, "indices", indptr.dtype)
        if indices.size != data.shape[0]:
            raise ValueError(f"indices has {indices.size} elements, and data {data.shape[0]} blocks")
        size = _block_size(data.shape[1:] if order == "C" else data.shape[:0:-1], shape)
        if indptr.size != shape[0] // size[0] + 1:
            raise ValueError(f"indptr has {indptr.size} elements, needs {shape[0] // size[0] + 1} for shape {shape} and blocks of {size}")
        _check_contexts(data, indices, indptr)
        self.data, self.indices, self.indptr, self._shape, self.order, self._count = data, indices, indptr, shape, order, None

    @classmethod
    def _made(cls, data: Array, indices: Array, indptr: Array, shape: Shape, order: str) -> bsr_array:
        result = cls.__new__(cls)
        result._set(data, indices, indptr, shape, order)
        return result

    @property
    def blocksize(self) -> Shape:
        """The rows and columns of a block."""
        return self.data.shape[1:] if self.order == "C" else self.data.shape[:0:-1]

    @property
    def nnz(self) -> int:
        """The number of elements in blocks, from the offsets, for which it waits."""
        if self._count is None:
            self._count = _count_between(self.indptr) * math.prod(self.blocksize)
        return self._count

    def _with(self, data: Array) -> bsr_array:
        return bsr_array._made(data, self.indices, self.indptr, self._shape, self.order)

    def sum_duplicates(self) -> bsr_array:
        """A new matrix whose blocks are sorted, with those of the same place summed."""
        return _to_blocks(self, self.blocksize, self.order, self.data.shape[0])[0]

    @property
    def T(self) -> bsr_array:
        """The transposed matrix, of transposed blocks, which are sorted by column for it."""
        return _to_blocks(self.tocsc().T, self.blocksize[::-1], self.order, self.data.shape[0])[0]


_FORMATS: Dict[str, int] = {
    "coo": raw.SPARSE_COO,
    "csr": raw.SPARSE_CSR,
    "csc": raw.SPARSE_CSC,
    "dense": raw.SPARSE_DENSE,
    "bsr": raw.SPARSE_BSR,
}
_ORDERS: Dict[str, int] = {"C": raw.BLOCK_ORDER_ROW_MAJOR, "F": raw.BLOCK_ORDER_COLUMN_MAJOR}


def _arrays_of(matrix: Union[_Matrix, Array]) -> Tuple[Optional[Array], Optional[Array], Array]:
    """Rows, columns and values, as tuff_sparse_convert() takes them."""
    if isinstance(matrix, (csr_array, bsr_array)):
        return matrix.indptr, matrix.indices, matrix.data
    if isinstance(matrix, csc_array):
        return matrix.indices, matrix.indptr, matrix.data
    if isinstance(matrix, coo_array):
        return matrix.row, matrix.col, matrix.data
    return None, None, matrix


def _source_desc(matrix: Union[_Matrix, Array], form: str, index: np.dtype, capacity: int) -> raw.SparseConvertDesc:
    rows, columns, values = _arrays_of(matrix)
    source = "dense" if isinstance(matrix, Array) else matrix.format
    desc = raw.SparseConvertDesc(dtype=dtype_of(values), from_format=_FORMATS[source], to_format=_FORMATS[form])
    desc.index_type = raw.I64 if index == np.int64 else raw.I32
    desc.rows, desc.columns = matrix.shape
    desc.nnz, desc.capacity = values.size, capacity
    desc.from_rows, desc.from_columns, desc.from_values = _handle(rows), _handle(columns), _handle(values)
    if isinstance(matrix, bsr_array):
        desc.nnz = values.shape[0]
        desc.from_block_rows, desc.from_block_columns = matrix.blocksize
        desc.from_block_order = _ORDERS[matrix.order]
    return desc


def _to_blocks(matrix: _Matrix, size: Shape, order: str, capacity: int) -> Tuple[bsr_array, Array]:
    """A matrix in BSR with room for `capacity` blocks, and how many there are."""
    context, index = matrix.context, _arrays_of(matrix)[1].dtype
    desc = _source_desc(matrix, "bsr", index, capacity)
    desc.to_block_rows, desc.to_block_columns = size
    desc.to_block_order = _ORDERS[order]
    indptr, indices = context.empty((matrix.shape[0] // size[0] + 1,), index), context.empty((capacity,), index)
    values = context.empty((capacity, *(size if order == "C" else size[::-1])), matrix.dtype)
    count = context.empty((1,), np.int64)
    desc.to_rows, desc.to_columns, desc.to_values, desc.count = _handle(indptr), _handle(indices), _handle(values), _handle(count)
    check(raw.tuff_sparse_convert(context.stream_handle, desc))
    return bsr_array._made(values, indices, indptr, matrix.shape, order), count


def _convert(
    matrix: Union[_Matrix, Array], form: str, index: Optional[np.dtype] = None, capacity: Optional[int] = None
) -> Union[_Matrix, Array]:
    rows, columns = matrix.shape
    from_rows, from_columns, values = _arrays_of(matrix)
    context = values.context
    if index is None:
        index = np.dtype(np.int32) if from_rows is None else from_rows.dtype
    if capacity is None:
        capacity = values.size
    desc = _source_desc(matrix, form, index, capacity)
    if form == "dense":
        result = context.empty((rows, columns), values.dtype)
        desc.to_values = _handle(result)
        check(raw.tuff_sparse_convert(context.stream_handle, desc))
        return result
    to_rows = context.empty((rows + 1 if form == "csr" else capacity,), index)
    to_columns = context.empty((columns + 1 if form == "csc" else capacity,), index)
    to_values = context.empty((capacity,), values.dtype)
    desc.to_rows, desc.to_columns, desc.to_values = _handle(to_rows), _handle(to_columns), _handle(to_values)
    count = context.empty((1,), np.int64)
    desc.count = count.buffer.handle
    check(raw.tuff_sparse_convert(context.stream_handle, desc))
    if form == "coo":
        return coo_array._made(to_values, to_rows, to_columns, (rows, columns), count)
    if form == "csr":
        return csr_array._made(to_values, to_columns, to_rows, (rows, columns))
    return csc_array._made(to_values, to_rows, to_columns, (rows, columns))


def _require_same(a: _Matrix, b: Union[_Matrix, Array]) -> None:
    if a.dtype != b.dtype:
        raise TypeError(f"operands of {a.dtype} and {b.dtype}")
    same_context(a.context, b.context)


def _product(a: _Matrix, x: object, right: bool) -> Array:
    require_array(x, "the dense operand")
    _require_same(a, x)
    rows, columns = a.shape
    inner, outer = (rows, columns) if right else (columns, rows)
    if x.ndim == 0 or x.shape[-1 if right or x.ndim == 1 else -2] != inner:
        shapes = (x.shape, a.shape) if right else (a.shape, x.shape)
        raise ValueError(f"@ of shapes {shapes[0]} and {shapes[1]}: {inner} is needed beside the sparse matrix")
    a = a.tocsr() if isinstance(a, coo_array) else a
    transposed = isinstance(a, csc_array)  # the buffers are those of the transposed matrix in CSR
    desc = raw.SpmmDesc(dtype=dtype_of(x), alpha=1.0, beta=0.0, batch_count=1)
    desc.index_type = dtype_of(a.indptr)
    desc.transpose = raw.TRANS if transposed else raw.NO_TRANS
    desc.side = raw.SIDE_RIGHT if right else raw.SIDE_LEFT
    desc.rows, desc.columns = (columns, rows) if transposed else (rows, columns)
    desc.nnz, desc.offsets, desc.indices, desc.values = a.indices.size, _handle(a.indptr), _handle(a.indices), _handle(a.data)
    if isinstance(a, bsr_array):
        desc.block_rows, desc.block_columns = a.blocksize
        desc.block_order = _ORDERS[a.order]
    if x.ndim == 1:
        n, shape, batch = 1, (outer,), 1
    elif right:
        # Stacked rows are the rows of one matrix.
        shape, batch = (*x.shape[:-1], outer), 1
        n = math.prod(x.shape[:-1])
    else:
        n, shape = x.shape[-1], (*x.shape[:-2], outer, x.shape[-1])
        batch = math.prod(x.shape[:-2])
    result = x.context.empty(shape, x.dtype)
    desc.n, desc.batch_count, desc.stride_b, desc.stride_c = n, batch, inner * n, outer * n
    desc.b, desc.c = _handle(x), _handle(result)
    if result.size != 0:
        check(raw.tuff_spmm(x.context.stream_handle, desc))
    return result


def _with_index(a: csr_array, index: np.dtype) -> csr_array:
    return a if a.indptr.dtype == index else csr_array._made(a.data, a.indices.astype(index), a.indptr.astype(index), a.shape)


def _multiplied(a: _Matrix, b: _Matrix) -> _Matrix:
    _require_same(a, b)
    if a.shape[1] != b.shape[0]:
        raise ValueError(f"@ of shapes {a.shape} and {b.shape}: the columns of the first are the rows of the second")
    if isinstance(a, csc_array) and isinstance(b, csc_array):  # the buffers are those of the transposed matrices in CSR
        return _multiplied(b.T, a.T).T
    left, right, context = a.tocsr(), b.tocsr(), a.context
    index = np.promote_types(left.indptr.dtype, right.indptr.dtype)
    left, right = _with_index(left, index), _with_index(right, index)
    shape = (a.shape[0], b.shape[1])
    desc = raw.SpgemmDesc(dtype=dtype_of(a.data), index_type=dtype_of(left.indptr))
    desc.rows, desc.inner, desc.columns = *a.shape, b.shape[1]
    desc.a_nnz, desc.b_nnz = left.data.size, right.data.size
    desc.a_offsets, desc.a_indices, desc.a_values = _handle(left.indptr), _handle(left.indices), _handle(left.data)
    desc.b_offsets, desc.b_indices, desc.b_values = _handle(right.indptr), _handle(right.indices), _handle(right.data)
    offsets, number = context.empty((shape[0] + 1,), index), context.empty((1,), np.int64)
    desc.c_offsets, desc.terms = offsets.buffer.handle, number.buffer.handle
    check(raw.tuff_spgemm(context.stream_handle, desc))
    terms = int(number.numpy()[0])
    if terms == 0:
        return csr_array._made(context.empty((0,), a.dtype), context.empty((0,), index), offsets, shape)
    capacity = min(terms, shape[0] * shape[1])
    indices, values = context.empty((capacity,), index), context.empty((capacity,), a.dtype)
    desc.max_terms, desc.capacity, desc.terms, desc.count = terms, capacity, 0, number.buffer.handle
    desc.c_indices, desc.c_values = indices.buffer.handle, values.buffer.handle
    check(raw.tuff_spgemm(context.stream_handle, desc))
    count = int(number.numpy()[0])
    if count < capacity:  # room for all terms is several times the result
        indices, values = indices[:count].copy(), values[:count].copy()
    return csr_array._made(values, indices, offsets, shape)


class TriangularSolver:
    """Solves systems with the lower or the upper triangle of a sparse matrix. What order its rows can be solved in is found
    once, on the device; entries of the other triangle are ignored, and with unit_diagonal those on the diagonal too.

        solver = TriangularSolver(l, unit_diagonal=True)
        x = solver.solve(b)
    """

    __slots__ = ("_matrix", "_lower", "_unit", "_levels")

    def __init__(self, a: _Matrix, *, lower: bool = True, unit_diagonal: bool = False) -> None:
        if not isinstance(a, _Matrix):
            raise TypeError(f"a is {type(a).__name__}, needs a sparse matrix")
        if a.shape[0] != a.shape[1]:
            raise ValueError(f"a has shape {a.shape}, needs as many columns as rows")
        self._matrix, self._lower, self._unit = a.tocsr(), bool(lower), bool(unit_diagonal)
        self._levels = self._matrix.context.empty((2 * a.shape[0] + 1,), np.int32)
        if a.shape[0] != 0:
            check(raw.tuff_sparse_triangular_solve(a.context.stream_handle, self._desc()))

    def _desc(self) -> raw.SparseTriangularSolveDesc:
        a = self._matrix
        desc = raw.SparseTriangularSolveDesc(dtype=dtype_of(a.data), rows=a.shape[0], nnz=a.data.size, alpha=1.0)
        desc.index_type = dtype_of(a.indptr)
        desc.triangle = raw.TRIANGLE_LOWER if self._lower else raw.TRIANGLE_UPPER
        desc.unit_diagonal, desc.levels = int(self._unit), _handle(self._levels)
        desc.offsets, desc.indices, desc.values = _handle(a.indptr), _handle(a.indices), _handle(a.data)
        return desc

    @property
    def levels(self) -> int:
        """How many steps a solution takes, in each of which rows are solved side by side. Waits for the device."""
        rows = self._matrix.shape[0]
        return int(np.searchsorted(self._levels.numpy()[: rows + 1], rows)) if rows else 0

    def solve(self, b: Array) -> Array:
        """x with a @ x = b, for a vector b or the columns of a matrix."""
        require_array(b, "b")
        _require_same(self._matrix, b)
        rows = self._matrix.shape[0]
        if b.ndim not in (1, 2) or b.shape[0] != rows:
            raise ValueError(f"b has shape {b.shape}, needs ({rows},) or ({rows}, n)")
        x = b.context.empty(b.shape, b.dtype)
        if x.size != 0:
            desc = self._desc()
            desc.n, desc.levels_ready = (1 if b.ndim == 1 else b.shape[1]), 1
            desc.b, desc.x = _handle(b), _handle(x)
            check(raw.tuff_sparse_triangular_solve(b.context.stream_handle, desc))
        return x


def spsolve_triangular(a: _Matrix, b: Array, lower: bool = True, *, unit_diagonal: bool = False) -> Array:
    """x with a @ x = b, where of a sparse matrix the lower or the upper triangle is taken. TriangularSolver keeps what this
    finds out about the matrix, for several b."""
    return TriangularSolver(a, lower=lower, unit_diagonal=unit_diagonal).solve(b)


def sampled_product(places: _Matrix, a: Array, b: Array, *, transposed: bool = False, weighted: bool = False) -> _Matrix:
    """a @ b, or a @ b.T if transposed is set, computed at the places of a sparse matrix only: a matrix with the same places.
    weighted: each element is multiplied by the value that the sparse matrix has there. Places that occur several times
    get as many elements, which count as their sum."""
    if not isinstance(places, _Matrix):
        raise TypeError(f"places is {type(places).__name__}, needs a sparse matrix")
    for name, x in (("a", a), ("b", b)):
        require_array(x, name)
        if x.ndim != 2:
            raise ValueError(f"{name} has shape {x.shape}, needs two axes")
        _require_same(places, x)
    k = a.shape[1]
    wanted = ((places.shape[0], k), (places.shape[1], k) if transposed else (k, places.shape[1]))
    if (a.shape, b.shape) != wanted:
        raise ValueError(f"a and b have shapes {a.shape} and {b.shape}, need {wanted[0]} and {wanted[1]} for places of {places.shape}")
    places = places.tocsr() if isinstance(places, bsr_array) else places
    rows, columns = places.shape
    if isinstance(places, csc_array):  # the buffers are those of the transposed places in CSR, and the product is transposed
        a, b, rows, columns, transposed = b if transposed else b.T, a, columns, rows, True
    coo = isinstance(places, coo_array)
    place_rows, place_columns = (places.row, places.col) if coo else (places.indptr, places.indices)
    values = places.context.zeros(places.data.shape, places.dtype)  # entries that belong to no row are not written
    if values.size == 0:
        return places._with(values)
    desc = raw.SddmmDesc(dtype=dtype_of(values), alpha=1.0, beta=0.0, batch_count=1)
    desc.index_type = dtype_of(place_rows)
    desc.place_format = raw.SPARSE_COO if coo else raw.SPARSE_CSR
    desc.transpose = raw.TRANS if transposed else raw.NO_TRANS
    desc.rows, desc.columns, desc.nnz, desc.k = rows, columns, values.size, k
    desc.place_rows, desc.place_columns = _handle(place_rows), _handle(place_columns)
    desc.a, desc.b, desc.values = _handle(a), _handle(b), _handle(values)
    desc.scales = _handle(places.data) if weighted else 0
    check(raw.tuff_sddmm(values.context.stream_handle, desc))
    return places._with(values)


def _same_index(a: coo_array, b: coo_array) -> Tuple[coo_array, coo_array]:
    if a.row.dtype == b.row.dtype:
        return a, b
    return tuple(coo_array._made(x.data, x.row.astype(np.int64), x.col.astype(np.int64), x.shape, x._count) for x in (a, b))


def _by_places(a: _Matrix, b: object, function: Callable[[Array, Array], Array], both: bool = False) -> csr_array:
    if not isinstance(b, _Matrix):
        raise TypeError(f"a sparse matrix is combined with another one, not with {type(b).__name__}; .todense() makes it dense")
    if a.shape != b.shape:
        raise ValueError(f"matrices of shapes {a.shape} and {b.shape}")
    _require_same(a, b)
    # Sorted, with each place once. Conversions leave the index -1 where there is no entry.
    first, second = _same_index(*(x.sum_duplicates() if isinstance(x, coo_array) else x.tocoo() for x in (a, b)))
    data, row, col = combined(function, (first.data, first.row, first.col), (second.data, second.row, second.col), a.shape[1], both)
    return coo_array._made(data, row, col, a.shape).tocsr()


def _added(a: _Matrix, b: object, sign: int) -> csr_array:
    if not isinstance(b, _Matrix):
        raise TypeError(f"a sparse matrix is added to another one, not to {type(b).__name__}; .todense() makes it dense")
    if a.shape != b.shape:
        raise ValueError(f"matrices of shapes {a.shape} and {b.shape}")
    _require_same(a, b)
    first, second = _same_index(a.tocoo(), b.tocoo())
    joined = [concat([x, y]) for x, y in ((first.data, second.data if sign > 0 else -second.data), (first.row, second.row), (first.col, second.col))]
    return coo_array._made(joined[0], joined[1], joined[2], a.shape).tocsr()


def issparse(x: object) -> bool:
    """Whether x is a sparse matrix of this module."""
    return isinstance(x, _Matrix)


def from_dense(a: Array, format: str = "csr", *, index_dtype: object = np.int32) -> _Matrix:
    """The elements of a matrix that are not zero, as "csr", "csc" or "coo". Waits for the device to count them."""
    require_array(a, "a")
    if a.ndim != 2:
        raise ValueError(f"a has shape {a.shape}, needs two axes")
    if not _is_value_type(a.dtype):
        raise TypeError(f"a is {a.dtype}, and sparse matrices take float32, float64, float16 and bfloat16")
    if format not in ("csr", "csc", "coo"):
        raise ValueError(f"format is {format!r}, needs 'csr', 'csc' or 'coo'")
    index = np.dtype(index_dtype)
    if index not in _INDICES:
        raise TypeError(f"index_dtype is {index}, needs int32 or int64")
    count = _convert(a, "coo", index, 0).nnz
    return _convert(a, format, index, count)


def from_scipy(matrix: object, *, context: Optional[Context] = None, dtype: object = None) -> _Matrix:
    """Uploads a matrix of scipy.sparse in CSR, CSC, COO or BSR, or anything with the same attributes. Values of float64 and of
    integers become float32 unless dtype says otherwise."""
    form = getattr(matrix, "format", None)
    if form not in ("csr", "csc", "coo", "bsr"):
        raise TypeError(f"matrix is {type(matrix).__name__}, needs one of SciPy's in CSR, CSC, COO or BSR: .tocsr() converts others")
    data = np.asarray(matrix.data)
    if dtype is None:
        dtype = data.dtype if _is_value_type(data.dtype) and data.dtype != np.float64 else np.float32
    context = context or default_context()
    values = context.array(data, dtype)

    names = ("row", "col") if form == "coo" else ("indices", "indptr")
    if form == "bsr":
        indices, indptr = (_uploaded_indices(np.asarray(getattr(matrix, name)), name, context) for name in ("indices", "indptr"))
        return bsr_array._made(values, indices, indptr, _shape_of(tuple(matrix.shape)), "C")
    made = {"coo": coo_array, "csr": csr_array, "csc": csc_array}[form]
    numbers = (_uploaded_indices(np.asarray(getattr(matrix, name)), name, context) for name in names)
    return made._made(values, *numbers, _shape_of(tuple(matrix.shape)))


def eye(n: int, *, dtype: object = np.float32, context: Optional[Context] = None) -> csr_array:
    """The identity matrix of n rows and columns."""
    n, context = whole(n, "n", 0, 2**31 - 2), context or default_context()
    return csr_array._made(context.ones((n,), dtype), context.array(np.arange(n, dtype=np.int32)), context.array(np.arange(n + 1, dtype=np.int32)), (n, n))
