"""Operations of elements, and products of matrices. As in the other modules of operations, each checks its operands, allocates
the result and makes one library call."""

from __future__ import annotations

import math
from typing import Callable, Optional, Sequence, TYPE_CHECKING, Tuple, Union

import numpy as np

from . import _elementwise as elementwise
from . import raw
from . import _core as core
from . import _planes as composed
from ._checked import choice, is_number, is_scalar, real
from ._types import is_complex, part_of
from ._error import check
from ._expression import repeated
from ._layout import MAX_AXES, Strided, beside, copy_elements
from ._operands import base_of, dtype_of, operation_number, require_array, result_of, same_context, same_kind
from ._storage import DTYPES, SparseStorage, Storage, TransposedStorage, as_shape
from ._tracing import RULES, any_traced, differentiable, is_traced

if TYPE_CHECKING:
    from ._array import Array
    from ._context import Context
    from ._operands import Matrix, Operand

__all__ = [
    "binary",
    "matmul",
    "unary",
]

#: Types that every operation takes.
FLOATS = (raw.F32, raw.F16, raw.BF16)

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


# Element-wise operations.


def unary(op: int, x: Array, *, alpha: float = 0.0, out: Optional[Array] = None) -> Array:
    """Applies a raw.UNARY_* to each element: out[i] = op(x[i]). alpha is for leaky_relu and elu; 0 is its default."""
    done = core.unary(op, x, alpha, out)
    if done is not None:
        return done
    require_array(x, "x")
    if DTYPES[x.dtype] not in FLOATS or isinstance(x, Strided) or isinstance(out, Strided) or is_traced(x):
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
            fits = value.dtype == like.dtype and not isinstance(value, Strided) and not is_traced(value)
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


@differentiable
def repeated_to(a: Array, shape: Union[int, Sequence[int]]) -> Array:
    """Repeats a to a shape by NumPy's rules, bit for bit, in new memory. Returns a itself if it has that shape."""
    require_array(a, "a")
    shape = as_shape(shape)
    if a.shape == shape:
        return a
    sizes = [1] * (len(shape) - a.ndim) + list(a.shape)
    if len(sizes) != len(shape) or any(size not in (1, wanted) for size, wanted in zip(sizes, shape)):
        raise ValueError(f"shape {a.shape} does not broadcast to {shape}")
    result = a.context.empty(shape, a.dtype)
    if 0 in shape:
        return result
    if sum(n != 1 for n in shape) <= MAX_AXES:
        copy_elements(a, result)
        return result
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


def cycled(flat: Array, count: int) -> Array:
    """The elements of a vector that is not empty, repeated or cut to a number of elements."""
    times = -(-count // flat.size)
    return repeated_to(flat.reshape((1, flat.size)), (times, flat.size)).reshape(times * flat.size)[:count]


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
    if all(short):
        return np.dtype(np.float32)
    if any(short):
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
    same_context(context, scale.context)
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

    a (…, m, k) and b (…, k, n) give (…, m, n); a.T and a.mT are read in place. Stacks broadcast; with out, bias or another
    option they have equal shapes, or one operand is a single matrix. A vector is a row on the left and a column on the
    right, and its axis is dropped. beta requires out.

    float16 and float32 may be mixed: sums are float32 and the result has NumPy's type, or out's. int8 @ int8 is summed
    in int32, modulo 2**32; float64 @ float64 in float64. Other integers give their common type, modulo 2**bits, and
    complex numbers, also beside real ones, theirs; both take no options. bias has one value for each column, (n,), or each row, (m, 1),
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
    alone = plain and is_number(alpha) and is_number(beta) and alpha == 1 and beta == 0
    if alone and isinstance(b, SparseStorage):
        return b.__rmatmul__(a)
    if alone and isinstance(a, SparseStorage):
        return a @ b
    if any_traced((a, b, bias, residual, scale_a, scale_b, scale_out)):
        options = dict(bias=bias, residual=residual, activation=activation, precision=precision, scale_a=scale_a, scale_b=scale_b,
                       scale_out=scale_out)  # fmt: skip
        return RULES["matmul"](a, b, out, alpha, beta, {name: value for name, value in options.items() if value is not None})
    for value, name in ((a, "a"), (b, "b")):
        require_array(value, name)
    composite = _composite(a, b, alone)
    if composite is not None:
        return composite
    if plain and _stacks_differ(a, b):
        a, b = _same_stacks(a, b)
    product = _Product(a, b)
    alpha, beta = real(alpha, "alpha"), real(beta, "beta")
    desc = raw.BatchedGemmDesc(
        alpha=alpha,
        beta=beta,
        activation=choice(activation, "activation", _ACTIVATIONS),
        precision=choice(precision, "precision", _PRECISIONS),
    )
    if beta != 0 and out is None:
        raise ValueError("beta needs out")
    result = product.result(out)
    desc.c_type, desc.c = dtype_of(result), result.buffer.handle
    if bias is not None:
        product.describe_bias(desc, bias, result)
    if residual is not None:
        _describe_residual(desc, residual, result)
    product.describe(desc)
    kept: list[Array] = []  # until the call
    desc.scale_a = _scale_handle(product.context, scale_a, "scale_a", kept)
    desc.scale_b = _scale_handle(product.context, scale_b, "scale_b", kept)
    desc.scale_c = _scale_handle(product.context, scale_out, "scale_out", kept)
    check(raw.tuff_batched_gemm_ex(product.context.stream_handle, desc))
    return result


def _composite(a: Matrix, b: Matrix, alone: bool) -> Optional[Array]:
    """The product of complex numbers or of integers, which tuff_batched_gemm_ex does not take; None for other types.
    alone: without out, alpha, beta and all other options."""
    if is_complex(a.dtype) or is_complex(b.dtype):
        if not alone:
            raise TypeError(f"@ of {a.dtype} and {b.dtype} takes two operands and no options")
        kind = elementwise.common_type(a.dtype, b.dtype)
        a, b = (x if x.dtype == kind else _plain(x).astype(kind) for x in (a, b))
        return composed.matmul(*(_same_stacks(a, b) if _stacks_differ(a, b) else (a, b)), matmul)
    integers = a.dtype.kind in "iu" and b.dtype.kind in "iu" and not a.dtype == b.dtype == np.int8
    return _matmul_integers(a, b) if alone and integers else None


def _stacks_differ(a: Matrix, b: Matrix) -> bool:
    return a.ndim > 2 and b.ndim > 2 and a.shape[:-2] != b.shape[:-2]


class _Product:
    """a @ b as matrices: sizes, stacks, and the shape and type of the result."""

    def __init__(self, a: Matrix, b: Matrix) -> None:
        self.dtype = _product_dtype(a.dtype, b.dtype)
        self.context = base_of(a).context
        same_context(self.context, base_of(b).context)
        if a.ndim == 0 or b.ndim == 0:
            raise ValueError(f"@ of shapes {a.shape} and {b.shape}: use * to multiply by a number")
        self.a = a.reshape(1, -1) if a.ndim == 1 else a
        self.b = b.reshape(-1, 1) if b.ndim == 1 else b
        *self.a_batch, self.m, self.k = self.a.shape
        *self.b_batch, b_k, self.n = self.b.shape
        if self.k != b_k:
            raise ValueError(f"@ of shapes {a.shape} and {b.shape}: {self.k} columns meet {b_k} rows")
        if self.a_batch and self.b_batch and self.a_batch != self.b_batch:
            raise ValueError(f"@ of shapes {a.shape} and {b.shape}: the stacks differ")
        self.batch = self.a_batch or self.b_batch
        self.shape = (*self.batch, *([self.m] if a.ndim > 1 else []), *([self.n] if b.ndim > 1 else []))

    def result(self, out: Optional[Array]) -> Array:
        """out, checked, or a new array."""
        if out is None:
            return self.context.empty(self.shape, self.dtype)
        require_array(out, "out")
        result = result_of(out, out, self.shape)
        same_context(self.context, result.context)
        return result

    def describe_bias(self, desc: raw.BatchedGemmDesc, bias: Array, result: Array) -> None:
        require_array(bias, "bias")
        same_kind(result, bias)
        m, n, batch = self.m, self.n, self.batch
        own = bool(batch) and bias.ndim == len(batch) + 2 and list(bias.shape[:-2]) == batch
        if bias.shape not in ((n,), (m, 1)) and not (own and bias.shape[-2:] in ((1, n), (m, 1))):
            raise ValueError(f"bias has shape {bias.shape}, needs ({n},), ({m}, 1), or a stack of (1, {n}) or ({m}, 1)")
        desc.bias = bias.buffer.handle
        desc.bias_axis = raw.BIAS_COLUMNS if bias.shape[-1] == n and bias.shape[-2:] != (m, 1) else raw.BIAS_ROWS
        desc.stride_bias = bias.shape[-2] * bias.shape[-1] if own else 0

    def describe(self, desc: raw.BatchedGemmDesc) -> None:
        """The operands and their sizes. desc has its bias already."""
        a_trans, b_trans = isinstance(self.a, TransposedStorage), isinstance(self.b, TransposedStorage)
        desc.a_type, desc.b_type = dtype_of(self.a), dtype_of(self.b)
        desc.a, desc.b = base_of(self.a).buffer.handle, base_of(self.b).buffer.handle
        desc.ta, desc.tb = int(a_trans), int(b_trans)
        m, n, k, count = self.m, self.n, self.k, math.prod(self.batch)
        if self.batch and not self.b_batch and not a_trans and desc.bias_axis != raw.BIAS_ROWS and desc.stride_bias == 0:
            m, count = m * count, 1  # with a single b, the stack of a is one tall matrix
        desc.m, desc.n, desc.k, desc.batch_count = m, n, k, count
        desc.lda, desc.ldb, desc.ldc = max(1, m if a_trans else k), max(1, k if b_trans else n), max(1, n)
        desc.stride_a, desc.stride_b = m * k if self.a_batch else 0, k * n if self.b_batch else 0
        desc.stride_c = desc.stride_residual = m * n
        desc.ld_residual = max(1, n)


def _describe_residual(desc: raw.BatchedGemmDesc, residual: Array, result: Array) -> None:
    require_array(residual, "residual")
    same_kind(result, residual)
    if residual.shape != result.shape:
        raise ValueError(f"residual has shape {residual.shape}, the result {result.shape}")
    desc.residual = residual.buffer.handle


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


#: Products of pairs that _matmul_integers() keeps at a time, unless the result has more elements.
_MOST_PRODUCTS = 2**24


def _matmul_integers(a: Matrix, b: Matrix) -> Array:
    """The product of matrices of integers, modulo 2**bits of their common type."""
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError(f"@ of shapes {a.shape} and {b.shape}: use * to multiply by a number")
    x, y = _plain(a), _plain(b)
    if x.shape[-1] != y.shape[0 if y.ndim == 1 else -2]:
        raise ValueError(f"@ of shapes {a.shape} and {b.shape}: the columns of one are not the rows of the other")
    kind = elementwise.common_type(x.dtype, y.dtype)
    wide = np.uint64 if kind.kind == "u" else np.int64
    rows, columns = x.astype(wide).reshape((*x.shape, 1)), y.astype(wide)
    if y.ndim == 1:
        columns = columns.reshape((*y.shape, 1))
    elif x.ndim > 1:
        columns = columns.reshape((*y.shape[:-2], 1, *y.shape[-2:]))
    # In pieces of k, so that the products of pairs need no more memory than the result, or these many elements.
    k = x.shape[-1]
    *stack, _, n = np.broadcast_shapes((*rows.shape[:-2], 1, 1), (*columns.shape[:-2], 1, columns.shape[-1]))
    step = max(1, _MOST_PRODUCTS // max(1, math.prod(stack) * n))
    product = (rows[..., :step, :] * columns[..., :step, :]).sum(-2)
    for begin in range(step, k, step):
        product += (rows[..., begin : begin + step, :] * columns[..., begin : begin + step, :]).sum(-2)
    return elementwise.wrapped(product.reshape(product.shape[:-1]) if y.ndim == 1 else product, kind)
