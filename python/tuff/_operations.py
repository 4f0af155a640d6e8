"""The operations on arrays. Each checks its operands, allocates the result and makes one library call."""

from __future__ import annotations

import builtins
import math
from typing import TYPE_CHECKING, Callable, Dict, Optional, Sequence, Tuple, Union

import numpy as np

from . import _elementwise as elementwise
from . import _shape as shapes
from . import raw
from . import _core as core
from . import _planes as composed
from ._checked import choice, is_number, is_scalar, real, sequence, whole
from ._types import is_complex, part_of
from ._error import check
from ._expression import repeated
from ._layout import Strided, beside
from ._operands import base_of, dtype_of, operation_number, require_array, require_rank, result_of, same_kind, sizes_of, whole_axis
from ._storage import DTYPES, Storage, TransposedStorage, as_dtype, as_shape

if TYPE_CHECKING:
    from ._array import Array, Axis
    from ._context import Context
    from ._operands import Matrix, Operand

__all__ = [
    "all",
    "any",
    "batch_norm",
    "binary",
    "count_nonzero",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "log_softmax",
    "matmul",
    "reduce",
    "rms_norm",
    "softmax",
    "unary",
]

#: Types that every operation takes.
FLOATS = (raw.F32, raw.F16, raw.BF16)

#: Reductions of integers that give integers; those that give indices, truths and counts.
_SUMS = (raw.REDUCE_SUM, raw.REDUCE_PROD, raw.REDUCE_SUM_SQUARES, raw.REDUCE_L1)
_INDICES = (raw.REDUCE_ARGMAX, raw.REDUCE_ARGMIN)
_TRUTHS = (raw.REDUCE_ANY, raw.REDUCE_ALL)

_UNARY_NAMES = {value: name[6:].lower() for name, value in vars(raw).items() if name.startswith("UNARY_") and value > 0}
_OF_INTEGERS = ("abs", "neg", "sign", "square", "floor", "ceil", "round", "trunc")
_BINARY_FORMULAS = {
    raw.BINARY_ADD: "a + b",
    raw.BINARY_SUB: "a - b",
    raw.BINARY_MUL: "a * b",
    raw.BINARY_DIV: "a / b",
    raw.BINARY_MAX: "max(a, b)",
    raw.BINARY_MIN: "min(a, b)",
    raw.BINARY_POW: "a ** b",
}

#: Reductions whose result is one of the elements. From kernels/reduce/reduce.def, by scripts/api/generate.py.
SELECTS = (raw.REDUCE_MAX, raw.REDUCE_MIN)


# Element-wise operations.


def unary(op: int, x: Array, *, alpha: float = 0.0, out: Optional[Array] = None) -> Array:
    """Applies a raw.UNARY_* to each element: out[i] = op(x[i]). alpha is for leaky_relu and elu; 0 is its default."""
    done = core.unary(op, x, alpha, out)
    if done is not None:
        return done
    require_array(x, "x")
    if DTYPES[x.dtype] not in FLOATS or isinstance(x, Strided) or isinstance(out, Strided):
        return _unary_formula(op, x, alpha, out)
    result = result_of(out, x, x.shape)
    desc = raw.UnaryDesc(
        dtype=dtype_of(x), op=operation_number(op), input=x.buffer.handle, output=result.buffer.handle, n=x.size, alpha=real(alpha, "alpha")
    )
    check(raw.tuff_unary_ex(x.context.stream_handle, desc))
    return result


def _unary_formula(op: int, x: Array, alpha: float, out: Optional[Array]) -> Array:
    """A function of integers, bools, float64 or complex numbers. Those that are not defined on integers give float32."""
    name = _UNARY_NAMES.get(operation_number(op))
    if name is None:
        raise ValueError(f"op is {op}, not a raw.UNARY_*")
    if is_complex(x.dtype):
        kind = part_of(x.dtype) if name == "abs" else x.dtype
        return elementwise.expr(f"{name}(x)", dtype=kind if out is None else None, out=out, x=x)
    keeps = elementwise.is_float(x.dtype) or (name in _OF_INTEGERS and x.dtype != np.bool_)
    formula = f"{name}(x, {real(alpha, 'alpha')!r})" if alpha else f"{name}(x)"
    return elementwise.expr(formula, dtype=(x.dtype if keeps else np.float32) if out is None else None, out=out, x=x)


def binary(op: int, a: Operand, b: Operand, *, out: Optional[Array] = None) -> Array:
    """Applies a raw.BINARY_* to pairs of elements: out[i] = op(a[i], b[i]). Shapes broadcast without being expanded.
    Operands of unlike types, and of types that the operation itself does not take, are a formula: the result has their
    common type."""
    done = core.binary(op, a, b, out)
    if done is not None:
        return done
    if type(op) is int and op in _BINARY:
        return _BINARY[op](a, b, out=out)
    return _binary(op, a, b, out)


def _binary(op: int, a: Operand, b: Operand, out: Optional[Array]) -> Array:
    a_number, b_number = is_scalar(a), is_scalar(b)
    if a_number and b_number:
        raise TypeError("one operand must be a tuff.Array")
    if not a_number:
        require_array(a, "a")
    if not b_number:
        require_array(b, "b")
    like = b if a_number else a
    if isinstance(out, Strided) or not _is_native(op, like, a, b):
        return _binary_formula(op, a, b, out)
    if a_number or b_number or a.shape == b.shape:
        shape = like.shape
    else:
        shape = np.broadcast_shapes(a.shape, b.shape)
    if out is not None and isinstance(out, Storage):
        a, b = (beside(value, out) if isinstance(value, Storage) else value for value in (a, b))
    if a_number or b_number:
        if like.context._has_formulas and DTYPES[like.dtype] != raw.BF16:  # of which NumPy has no numbers
            return _binary_of_number(op, a, b, like, out)
        a, b = (_scalar(a, like), b) if a_number else (a, _scalar(b, like))
    else:
        same_kind(a, b)
    result = result_of(out, like, shape)
    desc = raw.BinaryDesc(dtype=dtype_of(like), op=operation_number(op), n=result.size)
    desc.a, desc.b, desc.output = a.buffer.handle, b.buffer.handle, result.buffer.handle
    if a.shape != b.shape:
        if len(shape) > 8:
            raise ValueError(f"shapes {a.shape} and {b.shape}: at most 8 axes broadcast")
        desc.rank = len(shape)
        desc.a_shape[: desc.rank] = (1,) * (len(shape) - a.ndim) + a.shape
        desc.b_shape[: desc.rank] = (1,) * (len(shape) - b.ndim) + b.shape
    check(raw.tuff_binary_ex(like.context.stream_handle, desc))
    return result


def _repeated_binary(op: int) -> Callable[..., Array]:
    return repeated(lambda a, b, *, out=None: _binary(op, a, b, out))


_BINARY = {op: _repeated_binary(op) for op in _BINARY_FORMULAS}


def _is_native(op: int, like: Array, a: Operand, b: Operand) -> bool:
    """Whether tuff_binary() takes the operands: arrays of one of its types, and numbers that adopt it."""
    dtype = DTYPES[like.dtype]
    if dtype not in FLOATS and (dtype != raw.I32 or op in (raw.BINARY_DIV, raw.BINARY_POW)):
        return False
    for value in (a, b):
        if isinstance(value, Storage):
            fits = value.dtype == like.dtype and not isinstance(value, Strided)
        elif dtype in FLOATS:
            fits = type(value) in (float, int)
        else:
            fits = type(value) is int and -(2**31) <= value < 2**31
        if not fits:
            return False
    return True


def _binary_formula(op: int, a: Operand, b: Operand, out: Optional[Array]) -> Array:
    formula = _BINARY_FORMULAS.get(operation_number(op))
    if formula is None:
        raise ValueError(f"op is {op}, not a raw.BINARY_*")
    kind = elementwise.type_of(a, b)
    whole = kind.kind in "biu"
    return elementwise.arithmetic(formula, a, b, out, np.dtype(np.float32) if formula == "a / b" and whole else None)


def _binary_of_number(op: int, a: Operand, b: Operand, like: Array, out: Optional[Array]) -> Array:
    """An operation that tuff_binary() takes, of an array and a number that adopts its type, as a formula: that needs no
    memory for the number."""
    if out is not None:
        result_of(out, like, like.shape)  # raises if it does not fit
    kind = like.dtype

    def adopted(value: Operand) -> Operand:
        if isinstance(value, Storage):
            return value
        number = real(value, "the number")
        return number if kind == np.float32 else kind.type(number if kind == np.float16 else value)

    return elementwise.expr(_BINARY_FORMULAS[op], dtype=kind, out=out, a=adopted(a), b=adopted(b))


def _scalar(value: float, like: Array) -> Array:
    """Returns a number as an array without axes."""
    return like.context.full((), value, like.dtype)


def repeated_to(a: Array, shape: Union[int, Sequence[int]]) -> Array:
    """Repeats a to a shape by NumPy's rules, bit for bit, in new memory. Returns a itself if it has that shape."""
    require_array(a, "a")
    shape = as_shape(shape)
    if a.shape == shape:
        return a
    sizes = [1] * (len(shape) - a.ndim) + list(a.shape)
    if len(sizes) != len(shape) or builtins.any(size not in (1, wanted) for size, wanted in zip(sizes, shape)):
        raise ValueError(f"shape {a.shape} does not broadcast to {shape}")
    if 0 in shape:
        return a.context.empty(shape, a.dtype)
    # One run of adjacent repeated axes at a time, the last run first: (outer, 1, inner) -> (outer, times, inner).
    end = len(shape)
    while end > 0:
        start = end
        while start > 0 and sizes[start - 1] != shape[start - 1]:
            start -= 1
        if start < end:
            a = _repeat(a, math.prod(sizes[:start]), math.prod(shape[start:end]), math.prod(sizes[end:]))
            sizes[start:end] = shape[start:end]
        end = min(start, end - 1)
    return a.reshape(shape)


def _repeat(a: Array, outer: int, times: int, inner: int) -> Array:
    """(outer, inner) -> (outer, times, inner), by gathering index 0 of (outer, 1, inner) `times` times."""
    result = a.context.empty((outer, times, inner), a.dtype)
    desc = raw.GatherDesc(dtype=dtype_of(a), index_type=raw.U32, rank=3, axis=1, count=times)
    desc.input, desc.indices, desc.output = a.buffer.handle, a.context._zero_indices(times), result.buffer.handle
    desc.shape[:3] = (outer, 1, inner)
    check(raw.tuff_gather_ex(a.context.stream_handle, desc))
    return result


# Matrix multiplication.

_ACTIVATIONS = {
    None: raw.ACTIVATION_NONE,
    "relu": raw.ACTIVATION_RELU,
    "gelu": raw.ACTIVATION_GELU,
    "gelu_tanh": raw.ACTIVATION_GELU_TANH,
    "silu": raw.ACTIVATION_SILU,
    "relu6": raw.ACTIVATION_RELU6,
}
_PRECISIONS = {
    None: raw.PRECISION_DEFAULT,
    "f16": raw.PRECISION_ALLOW_F16,
    "bf16": raw.PRECISION_ALLOW_BF16,
    "tf32": raw.PRECISION_ALLOW_TF32,
}


_FLOAT8 = (raw.F8_E4M3, raw.F8_E5M2)


def _product_dtype(a: np.dtype, b: np.dtype) -> np.dtype:
    """The result type of matmul without out: NumPy's type, but int32 for int8. 8-bit floats give float32, and beside
    another type that type."""
    if a == b == np.int8:
        return np.dtype(np.int32)
    short = [DTYPES[x] in _FLOAT8 for x in (a, b)]
    if builtins.all(short):
        return np.dtype(np.float32)
    if builtins.any(short):
        other = b if short[0] else a
        if DTYPES[other] not in (raw.F32, raw.F16, raw.BF16):
            raise TypeError(f"operands of {a} and {b}")
        return other
    halves = (np.float16, np.float32)
    if a != b and not (a in halves and b in halves):
        raise TypeError(f"operands of {a} and {b}")
    return np.result_type(a, b)


def _scale_handle(context: Context, scale: Optional[Union[Array, float]], name: str, kept: list[Array]) -> int:
    """The buffer of a scale: an array with one float32, or a number, for which one is made."""
    if scale is None:
        return 0
    if is_number(scale):
        scale = context.array([real(scale, name)], np.float32)
    require_array(scale, name)
    if scale.size != 1 or scale.dtype != np.float32:
        raise ValueError(f"{name} has shape {scale.shape} and type {scale.dtype}, needs one float32")
    if scale.context is not context:
        raise ValueError("operands are of different contexts")
    kept.append(scale)
    return scale.buffer.handle


def matmul(
    a: Matrix,
    b: Matrix,
    *,
    out: Optional[Array] = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    bias: Optional[Array] = None,
    residual: Optional[Array] = None,
    activation: Optional[str] = None,
    precision: Optional[str] = None,
    scale_a: Optional[Union[Array, float]] = None,
    scale_b: Optional[Union[Array, float]] = None,
    scale_out: Optional[Union[Array, float]] = None,
) -> Array:
    """activation(alpha * a @ b + beta * out + bias + residual).

    a (…, m, k) and b (…, k, n) give (…, m, n); a.T and a.mT are read in place. Either the stacks have equal shapes or
    one operand is a single matrix. A vector is a row on the left and a column on the right, and its axis is dropped.
    beta requires out.

    float16 and float32 may be mixed: sums are float32 and the result has NumPy's type, or out's. int8 @ int8 is summed
    in int32, modulo 2**32; float64 @ float64 in float64. bias has one value for each column, (n,), or each row, (m, 1),
    or one such bias for each matrix of the stack, (…, 1, n) or (…, m, 1). residual has the result's shape. Both have
    the result's dtype. activation is "relu", "relu6", "gelu", "gelu_tanh" or "silu".

    precision permits a faster product of float32 whose inputs are rounded first where the device's tensor cores take
    that type: "f16", "bf16" or "tf32" (10 bits of fraction, float32's range). Sums stay in float32.

    8-bit floats (the types of ml_dtypes) are multiplied with each other and with float16, bfloat16 and float32. a and b
    count as scale_a * a and scale_b * b, and the result is multiplied by scale_out before it is rounded: each is a number
    or an array with one float32, which is read on the device.
    """
    plain = out is bias is residual is activation is precision is scale_a is scale_b is scale_out is None
    if plain and type(alpha) is type(beta) is float and alpha == 1.0 and beta == 0.0:
        a_trans, b_trans = isinstance(a, TransposedStorage), isinstance(b, TransposedStorage)
        done = core.matmul(a.base if a_trans else a, a_trans, b.base if b_trans else b, b_trans)
        if done is not None:
            return done
    for value, name in ((a, "a"), (b, "b")):
        if not isinstance(value, TransposedStorage):
            require_array(value, name)
    if is_complex(a.dtype) or is_complex(b.dtype):
        if not plain or alpha != 1 or beta != 0:
            raise TypeError(f"@ of {a.dtype} and {b.dtype} takes two operands and no options")
        kind = elementwise.common_type(a.dtype, b.dtype)
        a, b = (x if x.dtype == kind else _plain(x).astype(kind) for x in (a, b))
        if a.ndim > 2 and b.ndim > 2 and a.shape[:-2] != b.shape[:-2]:
            a, b = _same_stacks(a, b)
        return composed.matmul(a, b, matmul)
    if plain and alpha == 1 and a.dtype.kind in "iu" and b.dtype.kind in "iu" and not a.dtype == b.dtype == np.int8:
        return _matmul_integers(a, b)
    if plain and a.ndim > 2 and b.ndim > 2 and a.shape[:-2] != b.shape[:-2]:
        return matmul(*_same_stacks(a, b), alpha=alpha)
    dtype = _product_dtype(a.dtype, b.dtype)
    if base_of(a).context is not base_of(b).context:
        raise ValueError("operands are of different contexts")
    alpha, beta = real(alpha, "alpha"), real(beta, "beta")
    applied = choice(activation, "activation", _ACTIVATIONS)
    permission = choice(precision, "precision", _PRECISIONS)
    if beta != 0 and out is None:
        raise ValueError("beta needs out")
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError(f"@ of shapes {a.shape} and {b.shape}: use * to multiply by a number")
    a_matrix = a.reshape(1, -1) if a.ndim == 1 else a
    b_matrix = b.reshape(-1, 1) if b.ndim == 1 else b
    *a_batch, m, k = a_matrix.shape
    *b_batch, b_k, n = b_matrix.shape
    if k != b_k:
        raise ValueError(f"@ of shapes {a.shape} and {b.shape}: {k} columns meet {b_k} rows")
    if a_batch and b_batch and a_batch != b_batch:
        raise ValueError(f"@ of shapes {a.shape} and {b.shape}: the stacks differ")
    batch = a_batch or b_batch
    shape = (*batch, *([m] if a.ndim > 1 else []), *([n] if b.ndim > 1 else []))
    context = base_of(a).context
    if out is None:
        result = context.empty(shape, dtype)
    else:
        require_array(out, "out")
        result = result_of(out, out, shape)
    if result.context is not context:
        raise ValueError("operands are of different contexts")

    a_trans, b_trans = isinstance(a_matrix, TransposedStorage), isinstance(b_matrix, TransposedStorage)
    count = math.prod(batch)
    desc = raw.BatchedGemmDesc(
        a_type=dtype_of(a),
        b_type=dtype_of(b),
        c_type=dtype_of(result),
        ta=int(a_trans),
        tb=int(b_trans),
        alpha=alpha,
        beta=beta,
        a=base_of(a_matrix).buffer.handle,
        b=base_of(b_matrix).buffer.handle,
        c=result.buffer.handle,
        activation=applied,
        precision=permission,
    )
    if bias is not None:
        require_array(bias, "bias")
        same_kind(result, bias)
        own = bool(batch) and bias.ndim == len(batch) + 2 and list(bias.shape[:-2]) == batch
        if bias.shape not in ((n,), (m, 1)) and not (own and bias.shape[-2:] in ((1, n), (m, 1))):
            raise ValueError(f"bias has shape {bias.shape}, needs ({n},), ({m}, 1), or a stack of (1, {n}) or ({m}, 1)")
        desc.bias = bias.buffer.handle
        desc.bias_axis = raw.BIAS_COLUMNS if bias.shape[-1] == n and bias.shape[-2:] != (m, 1) else raw.BIAS_ROWS
        desc.stride_bias = bias.shape[-2] * bias.shape[-1] if own else 0
    if residual is not None:
        require_array(residual, "residual")
        same_kind(result, residual)
        if residual.shape != shape:
            raise ValueError(f"residual has shape {residual.shape}, the result {shape}")
        desc.residual = residual.buffer.handle
    if batch and not b_batch and not a_trans and desc.bias_axis != raw.BIAS_ROWS and desc.stride_bias == 0:
        m, count = m * count, 1  # with a single b, the stack of a is one tall matrix
    kept: list[Array] = []  # until the call
    desc.scale_a = _scale_handle(context, scale_a, "scale_a", kept)
    desc.scale_b = _scale_handle(context, scale_b, "scale_b", kept)
    desc.scale_c = _scale_handle(context, scale_out, "scale_out", kept)
    desc.m, desc.n, desc.k, desc.batch_count = m, n, k, count
    desc.lda, desc.ldb, desc.ldc = max(1, m if a_trans else k), max(1, k if b_trans else n), max(1, n)
    desc.stride_a, desc.stride_b = m * k if a_batch else 0, k * n if b_batch else 0
    desc.stride_c = desc.stride_residual = m * n
    desc.ld_residual = max(1, n)
    check(raw.tuff_batched_gemm_ex(context.stream_handle, desc))
    return result


def _plain(x: Matrix) -> Array:
    return x.copy() if isinstance(x, TransposedStorage) else x


def _same_stacks(a: Matrix, b: Matrix) -> Tuple[Array, Array]:
    """Stacks of matrices repeated to a common shape."""
    try:
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise ValueError(f"@ of shapes {a.shape} and {b.shape}: the stacks differ") from None
    dense = (_plain(x) for x in (a, b))
    return tuple(repeated_to(x, (*batch, *x.shape[-2:])) for x in dense)


def _matmul_integers(a: Matrix, b: Matrix) -> Array:
    """The product of matrices of integers, modulo 2**bits of their common type."""
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError(f"@ of shapes {a.shape} and {b.shape}: use * to multiply by a number")
    x, y = _plain(a), _plain(b)
    if x.shape[-1] != y.shape[0 if y.ndim == 1 else -2]:
        raise ValueError(f"@ of shapes {a.shape} and {b.shape}: the columns of one are not the rows of the other")
    kind = elementwise.common_type(x.dtype, y.dtype)
    wide = np.uint64 if kind.kind == "u" else np.int64
    rows = x.astype(wide).reshape((*x.shape, 1))
    columns = y.astype(wide)
    if y.ndim == 1:
        columns = columns.reshape((*y.shape, 1))
    elif x.ndim > 1:
        columns = columns.reshape((*y.shape[:-2], 1, *y.shape[-2:]))
    product = (rows * columns).sum(-2)
    return elementwise.wrapped(product.reshape(product.shape[:-1]) if y.ndim == 1 else product, kind)


# Operations along an axis.


def reduced_type(op: int, dtype: np.dtype) -> np.dtype:
    """The type of a reduction's result, as in the array API standard: int64 or uint64 for sums of integers, float32 for what
    only floats have."""
    if op in _TRUTHS:
        return np.dtype(np.bool_)
    if op in _INDICES or op == raw.REDUCE_COUNT_NONZERO:
        return np.dtype(np.int64)
    if op in SELECTS or elementwise.is_float(dtype):
        return dtype
    if op in _SUMS:
        return np.dtype(np.uint64 if dtype.kind == "u" else np.int64)
    return np.dtype(np.float32)


#: What reduced_type() has said before.
_reduced_types: Dict[Tuple[int, np.dtype], np.dtype] = {}


def reduce(op: int, x: Array, axis: Axis = None, keepdims: bool = False, *, correction: float = 0.0) -> Array:
    """Applies a raw.REDUCE_* along one axis, several, or all (None). keepdims keeps the reduced axes with size 1. correction
    is that of raw.REDUCE_VAR and raw.REDUCE_STD."""
    require_array(x, "x")
    correction = real(correction, "correction")
    if is_complex(x.dtype):
        return _reduce_complex(op, x, axis, keepdims)
    if correction == 0 and type(op) is int:
        key = (op, x.dtype)
        dtype = _reduced_types.get(key)
        if dtype is None:
            dtype = _reduced_types[key] = reduced_type(op, x.dtype)
        done = core.reduce(op, x, axis, keepdims, dtype)
        if done is not None:
            return done
    axes = _named_axes(x, axis)
    kept = [size for index, size in enumerate(x.shape) if index not in axes]
    if len(axes) == x.ndim:
        result = _reduce_one(op, x.ravel(), 0, correction)
    elif not axes:
        result = _reduce_one(op, x.reshape((x.size, 1)), 1, correction)
    elif axes[-1] - axes[0] == len(axes) - 1:
        sizes = (*x.shape[: axes[0]], math.prod(x.shape[axes[0] : axes[-1] + 1]), *x.shape[axes[-1] + 1 :])
        result = _reduce_one(op, x.reshape(sizes), axes[0], correction)
    elif op in SELECTS or (op in (raw.REDUCE_SUM, raw.REDUCE_PROD) and x.dtype.itemsize >= 4):
        result = x
        for one in reversed(axes):
            result = _reduce_one(op, result, one, correction)
    else:
        # In one step after a permutation: intermediate results would be rounded, or are of another kind than the elements.
        order = [index for index in range(x.ndim) if index not in axes]
        moved = shapes.permute(x, order + axes).reshape((*kept, math.prod(x.shape[index] for index in axes)))
        result = _reduce_one(op, moved, len(kept), correction)
    return result.reshape([1 if index in axes else size for index, size in enumerate(x.shape)] if keepdims else kept)


def _named_axes(x: Array, axis: Axis) -> list[int]:
    if axis is None:
        return list(range(x.ndim))
    named = (axis,) if isinstance(axis, (int, np.integer)) else sequence(axis, "axis", "an integer, several, or None")
    axes = sorted(whole_axis(one, x.ndim) for one in named)
    if len(set(axes)) != len(axes):
        raise ValueError(f"axis {axis} names one axis twice")
    return axes


def _reduce_complex(op: int, x: Array, axis: Axis, keepdims: bool) -> Array:
    axes = _named_axes(x, axis)
    result = composed.reduced(operation_number(op), x, tuple(axes), lambda part: reduce(op, part, tuple(axes), True))
    return result if keepdims else result.reshape([size for index, size in enumerate(x.shape) if index not in axes])


def any(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """Whether an element is not zero, over axes, as bools. False without elements."""
    return reduce(raw.REDUCE_ANY, x, axis, keepdims)


def all(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """Whether no element is zero, over axes, as bools. True without elements."""
    return reduce(raw.REDUCE_ALL, x, axis, keepdims)


def count_nonzero(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """How many elements are not zero, over axes, as int64."""
    return reduce(raw.REDUCE_COUNT_NONZERO, x, axis, keepdims)


def arg_reduce(op: int, x: Array, axis: Optional[int] = None, keepdims: bool = False) -> Array:
    """Applies raw.REDUCE_ARGMAX or raw.REDUCE_ARGMIN: indices along one axis, or in the flattened array, as int64."""
    require_array(x, "x")
    return reduce(op, x, None if axis is None else whole_axis(axis, x.ndim), keepdims)


def _reduce_one(op: int, x: Array, axis: int, correction: float = 0.0) -> Array:
    require_rank(x, "x")
    dtype = reduced_type(operation_number(op), x.dtype)
    result = x.context.empty(x.shape[:axis] + x.shape[axis + 1 :], dtype)
    if dtype == x.dtype and correction == 0 and op not in _INDICES:  # the usual result of every such operation, by the cheaper call
        check(
            raw.tuff_reduce(
                *(x.context.stream_handle, dtype_of(x), op, x.buffer.handle, result.buffer.handle, sizes_of(x.shape), x.ndim, axis)
            )
        )
        return result
    desc = raw.ReduceDesc(
        dtype=dtype_of(x),
        op=op,
        rank=x.ndim,
        input=x.buffer.handle,
        output=result.buffer.handle,
        shape=x.shape,
        axis=axis,
        output_type=DTYPES[dtype],
        correction=correction,
    )
    check(raw.tuff_reduce_ex(x.context.stream_handle, desc))
    return result


def cumsum(
    x: Array,
    axis: Optional[int] = None,
    *,
    exclusive: bool = False,
    reverse: bool = False,
    out: Optional[Array] = None,
) -> Array:
    """Cumulative sums along one axis, or, as in NumPy, of the flattened array; out may be x.

    exclusive: an element does not count in its own result; the first result is 0. reverse: scan from the end. Sums of integers
    and bools are int64, those of unsigned integers uint64, unless out has their own type; they wrap.
    """
    return _scan(raw.tuff_cumsum, x, axis, exclusive, reverse, out)


def cumprod(
    x: Array,
    axis: Optional[int] = None,
    *,
    exclusive: bool = False,
    reverse: bool = False,
    out: Optional[Array] = None,
) -> Array:
    """Cumulative products, with the arguments of cumsum. With exclusive, the first result is 1."""
    return _scan(raw.tuff_cumprod, x, axis, exclusive, reverse, out)


def cummax(
    x: Array,
    axis: Optional[int] = None,
    *,
    exclusive: bool = False,
    reverse: bool = False,
    out: Optional[Array] = None,
) -> Array:
    """Cumulative maxima, with the arguments of cumsum: the largest element so far; NaN from the first NaN on. The type is x's.
    With exclusive, the first result is the type's lowest value."""
    return _scan(raw.tuff_cummax, x, axis, exclusive, reverse, out)


def cummin(
    x: Array,
    axis: Optional[int] = None,
    *,
    exclusive: bool = False,
    reverse: bool = False,
    out: Optional[Array] = None,
) -> Array:
    """Cumulative minima, with the arguments of cummax."""
    return _scan(raw.tuff_cummin, x, axis, exclusive, reverse, out)


def cumulative_sum(x: Array, *, axis: Optional[int] = None, dtype: Optional[object] = None, include_initial: bool = False) -> Array:
    """The array API standard's cumulative sum. axis may be left out for one dimension only; include_initial puts a 0 before
    the first result."""
    return _cumulative(raw.tuff_cumsum, x, axis, dtype, include_initial)


def cumulative_prod(x: Array, *, axis: Optional[int] = None, dtype: Optional[object] = None, include_initial: bool = False) -> Array:
    """The array API standard's cumulative product, with the arguments of cumulative_sum; the initial result is 1."""
    return _cumulative(raw.tuff_cumprod, x, axis, dtype, include_initial)


def _cumulative(function: object, x: Array, axis: Optional[int], dtype: Optional[object], include_initial: bool) -> Array:
    require_array(x, "x")
    if axis is None and x.ndim != 1:
        raise ValueError(f"x has {x.ndim} dimensions, and axis is needed for all but one")
    if dtype is not None:
        x = shapes.cast(x, as_dtype(dtype))
    along = whole_axis(0 if axis is None else axis, x.ndim)
    if dtype is not None and x.dtype.kind in "biu":
        result = _scan(function, x, along, False, False, x.context.empty(x.shape, x.dtype))
    else:
        result = _scan(function, x, along, False, False, None)
    if not include_initial:
        return result
    first = x.context.full((*x.shape[:along], 1, *x.shape[along + 1 :]), int(function is raw.tuff_cumprod), result.dtype)
    return shapes.concat([first, result], along)


def _scan(
    function: object, x: Array, axis: Optional[int], exclusive: bool, reverse: bool, out: Optional[Array]
) -> Array:
    require_array(x, "x")
    if axis is None:
        x = x.ravel()
    elif x.ndim == 0:
        raise ValueError("a 0-d array has no axis")
    require_rank(x, "x")
    if is_complex(x.dtype):
        return _scan_complex(function, x, 0 if axis is None else whole_axis(axis, x.ndim), exclusive or reverse, out)
    sums = function in (raw.tuff_cumsum, raw.tuff_cumprod)
    if sums and not elementwise.is_float(x.dtype) and (out is None or out.dtype != x.dtype or x.dtype == np.bool_):
        # A conversion, and a scan in place.
        x = shapes.cast(x, reduced_type(raw.REDUCE_SUM, x.dtype))
        out = x if out is None else out
    result = result_of(out, x, x.shape)
    desc = raw.ScanDesc(
        dtype=dtype_of(x),
        input=x.buffer.handle,
        output=result.buffer.handle,
        shape=x.shape,
        rank=x.ndim,
        axis=0 if axis is None else whole_axis(axis, x.ndim),
        exclusive=bool(exclusive),
        reverse=bool(reverse),
    )
    check(function(x.context.stream_handle, desc))
    return result


def _scan_complex(function: object, x: Array, axis: int, turned: bool, out: Optional[Array]) -> Array:
    if function not in (raw.tuff_cumsum, raw.tuff_cumprod) or turned:
        raise TypeError(f"{x.dtype} has no such scan: complex numbers have cumulative sums and products, forward and inclusive")
    if function is raw.tuff_cumsum:
        result = composed.by_parts(lambda part: _scan(function, part, axis, False, False, None), x)
    else:
        result = composed.cumulative_product(x, axis)
    return result if out is None else result_of(out, x, x.shape).assign(result)


def softmax(
    x: Array,
    axis: int = -1,
    *,
    scale: float = 1.0,
    mask: Optional[Array] = None,
    out: Optional[Array] = None,
) -> Array:
    """exp(z - max) / sum(exp(z - max)) along one axis, where z = scale * x + mask; out may be x.

    A mask of x's dtype is added. A uint8 or bool mask hides elements where it is 0; their results are 0. The mask's shape is
    that of the last axes of x, starting at or before `axis`; it repeats over the others.
    """
    return _softmax(x, axis, scale, mask, out, logarithm=False)


def log_softmax(
    x: Array,
    axis: int = -1,
    *,
    scale: float = 1.0,
    mask: Optional[Array] = None,
    out: Optional[Array] = None,
) -> Array:
    """The logarithm of softmax, computed directly; -inf where the mask hides."""
    return _softmax(x, axis, scale, mask, out, logarithm=True)


def _softmax(
    x: Array, axis: int, scale: float, mask: Optional[Array], out: Optional[Array], logarithm: bool
) -> Array:
    require_array(x, "x")
    if x.ndim == 0:
        raise ValueError("softmax of a 0-d array")
    require_rank(x, "x")
    scale = real(scale, "scale")
    if scale == 0:
        raise ValueError("softmax with a scale of 0")
    result = result_of(out, x, x.shape)
    along = whole_axis(axis, x.ndim)
    desc = raw.SoftmaxDesc(
        dtype=dtype_of(x),
        input=x.buffer.handle,
        output=result.buffer.handle,
        shape=x.shape,
        rank=x.ndim,
        axis=along,
        scale=scale,
        logarithm=logarithm,
    )
    if mask is not None:
        require_array(mask, "mask")
        if mask.context is not x.context:
            raise ValueError("operands are of different contexts")
        if mask.dtype not in (x.dtype, np.uint8, np.bool_):
            raise TypeError(f"mask is of {mask.dtype}, needs {x.dtype}, uint8 or bool")
        if mask.ndim < x.ndim - along or mask.shape != x.shape[x.ndim - mask.ndim :]:
            raise ValueError(f"mask has shape {mask.shape}, needs the last {x.ndim - along} or more axes of {x.shape}")
        desc.mask = mask.buffer.handle
        desc.mask_type = raw.U8 if mask.dtype == np.bool_ else DTYPES[mask.dtype]
        desc.mask_rows = math.prod(mask.shape[: mask.ndim - (x.ndim - along)])
    check(raw.tuff_softmax_ex(x.context.stream_handle, desc))
    return result


# Normalisations.


def _weights(desc: object, x: Array, size: int, **given: Optional[Array]) -> None:
    """Sets weight, bias, … of shape (size,) in a descriptor. All have x's dtype, or all are float32."""
    present = {name: array for name, array in given.items() if array is not None}
    for name, array in present.items():
        require_array(array, name)
        if array.context is not x.context:
            raise ValueError("operands are of different contexts")
        if array.dtype not in (x.dtype, np.float32) or array.dtype != next(iter(present.values())).dtype:
            raise TypeError(f"{name} is of {array.dtype}, needs {x.dtype}, or float32 like the other parameters")
        if array.shape != (size,):
            raise ValueError(f"{name} has shape {array.shape}, needs ({size},)")
        setattr(desc, name, array.buffer.handle)
        desc.weight_type = dtype_of(array)


def _row_norm(
    function: object, desc: object, x: Array, residual: Optional[Array], sum_out: Optional[Array], out: Optional[Array]
) -> Array:
    result = result_of(out, x, x.shape)
    desc.dtype = dtype_of(x)
    desc.input, desc.output = x.buffer.handle, result.buffer.handle
    desc.cols = x.shape[-1]
    desc.rows = math.prod(x.shape[:-1])
    if residual is None and sum_out is not None:
        raise ValueError("sum_out needs residual")
    for array, name in ((residual, "residual"), (sum_out, "sum_out")):
        if array is None:
            continue
        require_array(array, name)
        same_kind(x, array)
        if array.shape != x.shape:
            raise ValueError(f"{name} has shape {array.shape}, needs {x.shape}")
        setattr(desc, "residual" if name == "residual" else "sum", array.buffer.handle)
    check(function(x.context.stream_handle, desc))
    return result


def _require_axis(x: object, name: str) -> None:
    require_array(x, "x")
    if x.ndim == 0 or x.shape[-1] == 0:
        raise ValueError(f"{name} of shape {x.shape}")


def layer_norm(
    x: Array,
    weight: Optional[Array] = None,
    bias: Optional[Array] = None,
    *,
    epsilon: float = 1e-5,
    residual: Optional[Array] = None,
    sum_out: Optional[Array] = None,
    out: Optional[Array] = None,
) -> Array:
    """(x - mean) / sqrt(variance + epsilon) * weight + bias along the last axis; out may be x.

    With residual, x + residual is normalised, and stored in sum_out if given, which may be x or residual.
    """
    _require_axis(x, "layer_norm")
    desc = raw.LayerNormDesc(epsilon=real(epsilon, "epsilon"))
    _weights(desc, x, x.shape[-1], weight=weight, bias=bias)
    return _row_norm(raw.tuff_layer_norm_ex, desc, x, residual, sum_out, out)


def rms_norm(
    x: Array,
    weight: Optional[Array] = None,
    *,
    epsilon: float = 1e-5,
    residual: Optional[Array] = None,
    sum_out: Optional[Array] = None,
    out: Optional[Array] = None,
) -> Array:
    """x / sqrt(mean(x * x) + epsilon) * weight along the last axis; residual and sum_out as in layer_norm."""
    _require_axis(x, "rms_norm")
    desc = raw.RmsNormDesc(epsilon=real(epsilon, "epsilon"))
    _weights(desc, x, x.shape[-1], weight=weight)
    return _row_norm(raw.tuff_rms_norm_ex, desc, x, residual, sum_out, out)


def _image(x: object, name: str) -> Tuple[int, int, int]:
    """Returns the numbers of images, channels and elements per channel."""
    require_array(x, "x")
    if x.ndim < 2:
        raise ValueError(f"{name} of shape {x.shape}: needs (N, C, …)")
    return x.shape[0], x.shape[1], math.prod(x.shape[2:])


def group_norm(
    x: Array,
    groups: int,
    weight: Optional[Array] = None,
    bias: Optional[Array] = None,
    *,
    epsilon: float = 1e-5,
    out: Optional[Array] = None,
) -> Array:
    """Normalises each group of C / groups adjacent channels of x (N, C, …) separately; weight and bias (C,)."""
    batch, channels, inner = _image(x, "group_norm")
    groups, epsilon = whole(groups, "groups", 1), real(epsilon, "epsilon")
    result = result_of(out, x, x.shape)
    desc = raw.GroupNormDesc(dtype=dtype_of(x), batch=batch, channels=channels, inner=inner, groups=groups, epsilon=epsilon)
    desc.input, desc.output = x.buffer.handle, result.buffer.handle
    _weights(desc, x, channels, weight=weight, bias=bias)
    check(raw.tuff_group_norm_ex(x.context.stream_handle, desc))
    return result


def instance_norm(
    x: Array,
    weight: Optional[Array] = None,
    bias: Optional[Array] = None,
    *,
    epsilon: float = 1e-5,
    out: Optional[Array] = None,
) -> Array:
    """Normalises each channel of each image of x (N, C, …) separately."""
    return group_norm(x, max(1, _image(x, "instance_norm")[1]), weight, bias, epsilon=epsilon, out=out)


def batch_norm(
    x: Array,
    mean: Array,
    variance: Array,
    weight: Optional[Array] = None,
    bias: Optional[Array] = None,
    *,
    epsilon: float = 1e-5,
    out: Optional[Array] = None,
) -> Array:
    """(x - mean) / sqrt(variance + epsilon) * weight + bias for x (N, C, …), with given statistics of shape (C,)."""
    batch, channels, inner = _image(x, "batch_norm")
    result = result_of(out, x, x.shape)
    desc = raw.BatchNormDesc(dtype=dtype_of(x), batch=batch, channels=channels, inner=inner)
    desc.epsilon = real(epsilon, "epsilon")
    desc.input, desc.output = x.buffer.handle, result.buffer.handle
    require_array(mean, "mean")
    require_array(variance, "variance")
    _weights(desc, x, channels, mean=mean, variance=variance, weight=weight, bias=bias)
    check(raw.tuff_batch_norm_ex(x.context.stream_handle, desc))
    return result
