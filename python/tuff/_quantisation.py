"""Quantised arrays: integers of 4 and 8 bits with scales, and ggml's blocks; calibration; products with quantised weights."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import _functions as functions
from . import _histograms as histograms
from . import _shape as shapes
from . import _sorting as sorting
from . import raw
from ._checked import choice, real, whole
from ._elementwise import expr
from ._error import check
from ._layout import dense
from ._operands import dtype_of, require_array, require_dense, result_of, whole_axis
from ._operations import _ACTIVATIONS, FLOATS
from ._storage import DTYPES, as_shape

if TYPE_CHECKING:
    from ._array import Array
    from ._context import Context

__all__ = ["Quantized", "calibrate", "dequantize", "qmatmul", "quantize"]

#: Number, bits and range of the formats of integers.
_INTEGERS = {
    "int8": (raw.QUANT_I8, 8, -128, 127),
    "uint8": (raw.QUANT_U8, 8, 0, 255),
    "int4": (raw.QUANT_I4, 4, -8, 7),
    "uint4": (raw.QUANT_U4, 4, 0, 15),
}
#: Number, numbers and bytes of a block.
_BLOCKS = {
    "q4_0": (raw.QUANT_Q4_0, 32, 18),
    "q4_1": (raw.QUANT_Q4_1, 32, 20),
    "q5_0": (raw.QUANT_Q5_0, 32, 22),
    "q5_1": (raw.QUANT_Q5_1, 32, 24),
    "q8_0": (raw.QUANT_Q8_0, 32, 34),
    "q4_K": (raw.QUANT_Q4_K, 256, 144),
    "q5_K": (raw.QUANT_Q5_K, 256, 176),
    "q6_K": (raw.QUANT_Q6_K, 256, 210),
}
_FORMATS = {name: name for name in (*_INTEGERS, *_BLOCKS)}
_PRECISIONS = {None: 0, "f32": raw.F32, "f16": raw.F16, "bf16": raw.BF16}


class Quantized:
    """A quantised array: bytes on the device, and how to read them.

    format is "int8", "uint8", "int4" or "uint4", with scales (and zero_points, in the same format); or one of ggml's
    blocks as in GGUF files: "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q4_K", "q5_K", "q6_K", without them. data are the bytes:
    an array of uint8 (or int8), for 4 bits two numbers a byte, the first one in its low half. One scale is for the whole
    array; with an axis, there is one for each index along it, or with a block_size one for so many neighbours along it.
    Arrays that are not on a device yet are uploaded to context.
    """

    __slots__ = ("format", "shape", "data", "scales", "zero_points", "axis", "block_size")

    def __init__(
        self,
        format: str,  # noqa: A002
        shape: Union[int, Sequence[int]],
        data: object,
        scales: object = None,
        zero_points: object = None,
        *,
        axis: Optional[int] = None,
        block_size: Optional[int] = None,
        context: Optional[Context] = None,
    ) -> None:
        self.format = choice(format, "format", _FORMATS)
        self.shape = as_shape(shape)
        if not self.shape:
            raise ValueError("shape is (), needs at least one axis")
        self.axis, self.block_size = _granularity(self.shape, axis, block_size)
        if self.format in _BLOCKS:
            if scales is not None or zero_points is not None or axis is not None or block_size is not None:
                raise ValueError(f"{self.format} has its scales within its blocks: give neither scales nor an axis")
            if self.shape[-1] % _BLOCKS[self.format][1] != 0:
                raise ValueError(f"the last axis has {self.shape[-1]} elements, not a multiple of {_BLOCKS[self.format][1]}")
        elif scales is None:
            raise ValueError(f"{self.format} needs scales")
        context = context or next((x.context for x in (data, scales, zero_points) if hasattr(x, "context")), None)
        if context is None:
            raise ValueError("nothing here is on a device: name the context")
        self.data = _bytes(context, data, "data")
        needed = _stored(self.format, self.size)
        if self.data.size != needed:
            raise ValueError(f"data has {self.data.size} bytes, {self.format} of shape {self.shape} has {needed}")
        self.scales = self.zero_points = None
        if scales is not None:
            self.scales = _scales(context, scales, _scale_shape(self.shape, self.axis, self.block_size))
            if zero_points is not None:
                self.zero_points = _zeros(context, zero_points, self.format, self.scales.size)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of the numbers, their scales and their zero points."""
        return self.data.nbytes + sum(x.nbytes for x in (self.scales, self.zero_points) if x is not None)

    @property
    def context(self) -> Context:
        return self.data.context

    def integers(self) -> np.ndarray:
        """The quantised integers, on the host, as int8 or uint8."""
        if self.format in _BLOCKS:
            raise ValueError(f"{self.format} consists of blocks, which have no integers of their own: use dequantize()")
        return unpacked(self.format, self.data.numpy(), self.size).reshape(self.shape)

    def dequantize(self, dtype: object = np.float32, *, out: Optional[Array] = None) -> Array:
        return dequantize(self, dtype, out=out)

    def __repr__(self) -> str:
        along = "" if self.axis is None else f", axis={self.axis}"
        along += "" if self.block_size is None else f", block_size={self.block_size}"
        return f"tuff.Quantized({self.format}, shape={self.shape}{along})"

    def _describe(self, desc: object) -> None:
        desc.format = (_INTEGERS.get(self.format) or _BLOCKS[self.format])[0]
        if self.scales is not None:
            desc.scales, desc.scale_type = self.scales.buffer.handle, dtype_of(self.scales)
            desc.granularity = _number(self.axis, self.block_size)
            desc.block_size = self.block_size or 0
            if self.zero_points is not None:
                desc.zero_points = self.zero_points.buffer.handle


def packed(format: str, values: np.ndarray) -> np.ndarray:  # noqa: A002
    """Integers as the bytes of a format."""
    flat = np.asarray(values).ravel()
    low, high = _INTEGERS[format][2:]
    if flat.dtype.kind not in "iu":
        raise TypeError(f"the numbers are {flat.dtype}, and {format} needs integers")
    if flat.size and not (low <= int(flat.min()) and int(flat.max()) <= high):
        raise ValueError(f"the integers are {int(flat.min())} to {int(flat.max())}, and {format} holds {low} to {high}")
    if _INTEGERS[format][1] == 8:
        return flat.astype(np.int64).astype(np.uint8)
    halves = np.zeros(flat.size + flat.size % 2, np.uint8)
    halves[: flat.size] = flat.astype(np.int64) & 15
    return halves[::2] | halves[1::2] << 4


def unpacked(format: str, data: np.ndarray, count: int) -> np.ndarray:  # noqa: A002
    data = data.ravel().view(np.uint8)
    if _INTEGERS[format][1] == 4:
        data = np.stack([data & 15, data >> 4], -1).ravel()[:count]
        return ((data ^ 8).astype(np.int8) - 8) if format == "int4" else data
    return data.view(np.int8) if format == "int8" else data


def _stored(format: str, count: int) -> int:  # noqa: A002
    if format in _BLOCKS:
        _, numbers, size = _BLOCKS[format]
        return count // numbers * size
    return (count * _INTEGERS[format][1] + 7) // 8


def _granularity(shape: Tuple[int, ...], axis: Optional[int], block_size: Optional[int]) -> Tuple[Optional[int], Optional[int]]:
    if axis is not None:
        axis = whole_axis(axis, len(shape))
    if block_size is not None:
        if axis is None:
            raise ValueError("block_size needs an axis")
        block_size = whole(block_size, "block_size", 1)
    return axis, block_size


def _number(axis: Optional[int], block_size: Optional[int]) -> int:
    if axis is None:
        return raw.QUANT_PER_TENSOR
    return raw.QUANT_PER_AXIS if block_size is None else raw.QUANT_PER_BLOCK


def _scale_shape(shape: Tuple[int, ...], axis: Optional[int], block_size: Optional[int]) -> Tuple[int, ...]:
    if axis is None:
        return ()
    if block_size is None:
        return (shape[axis],)
    return (*shape[:axis], -(-shape[axis] // block_size), *shape[axis + 1 :])


def _bytes(context: Context, data: object, name: str) -> Array:
    if isinstance(data, (bytes, bytearray, memoryview)):
        data = np.frombuffer(data, np.uint8)
    if isinstance(data, np.ndarray):
        data = context.array(np.ascontiguousarray(data).view(np.uint8).ravel())
    require_array(data, name)
    if data.dtype not in (np.dtype(np.uint8), np.dtype(np.int8)):
        raise TypeError(f"{name} is of {data.dtype}, needs uint8 or int8")
    return dense(data)


def _scales(context: Context, scales: object, shape: Tuple[int, ...]) -> Array:
    if not hasattr(scales, "buffer"):
        scales = context.array(np.asarray(scales), None if getattr(scales, "dtype", None) == np.float16 else np.float32)
    require_array(scales, "scales")
    if DTYPES[scales.dtype] not in FLOATS:
        raise TypeError(f"scales are of {scales.dtype}, need float32, float16 or bfloat16")
    if scales.size != math.prod(shape):
        raise ValueError(f"scales have shape {scales.shape}, the granularity needs {shape}")
    return dense(scales)


def _zeros(context: Context, zeros: object, format: str, count: int) -> Array:  # noqa: A002
    if hasattr(zeros, "buffer"):
        zeros = _bytes(context, zeros, "zero_points")
        if zeros.size == _stored(format, count):
            return zeros
        if zeros.size != count:
            raise ValueError(f"zero_points have {zeros.size} bytes, {count} numbers of {format} have {_stored(format, count)}")
        zeros = zeros.numpy()
    zeros = np.asarray(zeros)
    if zeros.size != count:
        raise ValueError(f"zero_points have shape {zeros.shape}, there are {count} scales")
    return context.array(packed(format, zeros))


def quantize(
    x: Array,
    scales: object,
    zero_points: object = None,
    *,
    format: str = "int8",  # noqa: A002
    axis: Optional[int] = None,
    block_size: Optional[int] = None,
    precision: Optional[str] = None,
) -> Quantized:
    """saturate(round(x / scales) + zero_points), as ONNX's QuantizeLinear, to "int8", "uint8", "int4" or "uint4".

    One scale is for all of x; with an axis, there is one for each index along it, or with a block_size one for so many
    neighbours along it. scales and zero_points are arrays, or whatever NumPy accepts as integers or numbers. precision is
    the type that the quotient is rounded to: "f32", "f16" or "bf16", that of the scales by default. calibrate() finds scales.
    """
    require_array(x, "x")
    if DTYPES[x.dtype] not in FLOATS:
        raise TypeError(f"x is of {x.dtype}, quantize takes float32, float16 and bfloat16")
    choice(format, "format", _INTEGERS)
    wanted = choice(precision, "precision", _PRECISIONS)
    shape, x = x.shape or (1,), dense(x)
    result = Quantized.__new__(Quantized)
    result.format, result.shape = format, shape
    result.axis, result.block_size = _granularity(shape, axis, block_size)
    result.scales = _scales(x.context, scales, _scale_shape(shape, result.axis, result.block_size))
    result.zero_points = None if zero_points is None else _zeros(x.context, zero_points, format, result.scales.size)
    result.data = x.context.empty(_stored(format, x.size), np.uint8)
    desc = raw.QuantizeDesc(dtype=dtype_of(x), quotient_type=wanted, rank=len(shape), axis=result.axis or 0)
    result._describe(desc)
    desc.input, desc.output, desc.shape[: len(shape)] = x.buffer.handle, result.data.buffer.handle, shape
    check(raw.tuff_quantize(x.context.stream_handle, desc))
    return result


def dequantize(q: Quantized, dtype: object = np.float32, *, out: Optional[Array] = None) -> Array:
    """The numbers of a quantised array, as float32, float16 or bfloat16."""
    _require_quantized(q, "q")
    result = q.context.empty(q.shape, dtype) if out is None else out
    require_array(result, "out")
    require_dense(result, "out")
    if result.shape != q.shape:
        raise ValueError(f"out has shape {result.shape}, the result {q.shape}")
    desc = raw.DequantizeDesc(dtype=dtype_of(result), rank=q.ndim, axis=q.axis or 0)
    q._describe(desc)
    desc.input, desc.output, desc.shape[: q.ndim] = q.data.buffer.handle, result.buffer.handle, q.shape
    check(raw.tuff_dequantize(q.context.stream_handle, desc))
    return result


def qmatmul(
    a: Union[Array, Quantized],
    weights: Quantized,
    *,
    alpha: float = 1.0,
    bias: Optional[Array] = None,
    residual: Optional[Array] = None,
    activation: Optional[str] = None,
    out: Optional[Array] = None,
) -> Array:
    """activation(alpha * a @ weights.T + bias + residual) for a (…, k) and quantised weights (n, k), a row for each output, as
    in a GGUF file and in PyTorch's Linear. Scales are for the whole, with axis 0 for rows, or for blocks along axis 1. bias
    (n,) and residual (…, n) have the result's type, which is a's or out's.

    a may be quantised too, to int8 or uint8 with one scale or, of two axes, with one for each row (axis 0); weights are int8
    or uint8 then. Products are summed in integers, exactly, and the result is float32 or of out's type."""
    quantised = isinstance(a, Quantized)
    if not quantised:
        require_array(a, "a")
    _require_quantized(weights, "weights")
    if weights.ndim != 2 or a.ndim == 0 or a.shape[-1] != weights.shape[1]:
        raise ValueError(f"a of shape {a.shape} and weights of shape {weights.shape}: needs (…, k) and (n, k)")
    if weights.scales is not None and (weights.axis or 0) != (0 if weights.block_size is None else 1):
        raise ValueError("weights need scales for all, for rows (axis 0), or for blocks along axis 1")
    if quantised:
        _require_rows(a, weights)
    elif DTYPES[a.dtype] not in FLOATS:
        raise TypeError(f"a is of {a.dtype}, qmatmul takes float32, float16 and bfloat16")
    applied = choice(activation, "activation", _ACTIVATIONS)
    factor = real(alpha, "alpha")
    if factor == 0:
        raise ValueError("alpha is 0")
    data = a.data if quantised else dense(a)
    n, k = weights.shape
    shape = (*a.shape[:-1], n)
    if out is None:
        out = a.context.empty(shape, np.float32 if quantised else a.dtype)
    require_array(out, "out")
    result = result_of(out, out, shape)
    a_type = (raw.I8 if a.format == "int8" else raw.U8) if quantised else dtype_of(a)
    desc = raw.QgemmDesc(a_type=a_type, c_type=dtype_of(result), activation=applied, alpha=factor, n=n, k=k)
    desc.m = result.size // n if n else 0
    weights._describe(desc)
    if quantised:
        a_scales, scales = _of_one_type(a.scales, weights.scales)
        desc.a_scales, desc.scales, desc.scale_type = a_scales.buffer.handle, scales.buffer.handle, dtype_of(scales)
        desc.a_granularity = _number(a.axis, None)
        if a.zero_points is not None:
            desc.a_zero_points = a.zero_points.buffer.handle
    desc.a, desc.weights, desc.c = data.buffer.handle, weights.data.buffer.handle, result.buffer.handle
    for value, name, wanted in ((bias, "bias", (n,)), (residual, "residual", shape)):
        if value is None:
            continue
        require_array(value, name)
        if value.shape != wanted or value.dtype != result.dtype:
            raise ValueError(f"{name} is {value.dtype} of shape {value.shape}, needs {result.dtype} of shape {wanted}")
        setattr(desc, name, dense(value).buffer.handle)
    check(raw.tuff_qgemm(a.context.stream_handle, desc))
    return result


def _require_rows(a: Quantized, weights: Quantized) -> None:
    for name, value in (("a", a), ("weights", weights)):
        if value.format not in ("int8", "uint8"):
            raise TypeError(f"{name} are {value.format}, a product of two quantised arrays needs int8 or uint8")
    if a.block_size is not None or (a.axis is not None and (a.ndim != 2 or a.axis != 0)):
        raise ValueError("a needs one scale for all, or of two axes one for each row (axis 0)")


def _of_one_type(first: Array, second: Array) -> Tuple[Array, Array]:
    """Scales in the one type that a call has for them: float32 if they differ, which holds them all."""
    if first.dtype == second.dtype:
        return first, second
    return first.astype(np.float32), second.astype(np.float32)


def _require_quantized(value: object, name: str) -> None:
    if not isinstance(value, Quantized):
        raise TypeError(f"{name} is {type(value).__name__}, not a tuff.Quantized")


# Calibration.

_METHODS = ("minmax", "percentile", "mse", "entropy")


def calibrate(
    x: Array,
    *,
    format: str = "int8",  # noqa: A002
    method: str = "minmax",
    symmetric: Optional[bool] = None,
    axis: Optional[int] = None,
    block_size: Optional[int] = None,
    percentile: float = 99.99,
    steps: int = 40,
    bins: int = 2048,
) -> Tuple[Array, Optional[Array]]:
    """Scales and zero points for quantize(), from sample values: (scales, zero_points), where symmetric ones of signed
    formats have None as zero points.

    minmax maps the whole range of values. percentile leaves out the outermost ones: percentile of them are kept,
    half of the others at each end. mse tries `steps` ranges from that of minmax downwards and takes that of the
    least mean squared error. entropy (symmetric, for all of x) takes the range whose quantised histogram of |x| in
    `bins` bins has the least Kullback-Leibler divergence from the histogram itself, as TensorRT's calibration does.
    symmetric is the default of signed formats: 0 is in the middle, and the range is as long on both sides. NaN and infinities
    raise a ValueError.
    """
    require_array(x, "x")
    choice(format, "format", _INTEGERS)
    choice(method, "method", {name: name for name in _METHODS})
    _, _, low, high = _INTEGERS[format]
    balanced = low < 0 if symmetric is None else bool(symmetric)
    shape = x.shape or (1,)
    axis, block_size = _granularity(shape, axis, block_size)
    if x.size == 0:
        raise ValueError("x has no elements")
    rows = _rows(x.astype(np.float32) if x.dtype != np.float32 else x, shape, axis, block_size)
    if method == "entropy":
        if not balanced or axis is not None:
            raise ValueError("entropy is symmetric, and for all of x: it takes no axis")
        limits = _finite(np.array([_entropy_limit(rows, high - low, bins)]))
        least, most = -limits, limits
    elif method == "percentile":
        kept = real(percentile, "percentile")
        if not 0 < kept <= 100:
            raise ValueError(f"percentile is {kept}, needs more than 0 and at most 100")
        if balanced:
            most = sorting.percentile(functions.abs(rows), kept, 1).numpy()
            least = -most
        else:
            least, most = sorting.percentile(rows, [50 - kept / 2, 50 + kept / 2], 1).numpy()
    else:
        least, most = rows.min(1).numpy(), rows.max(1).numpy()
    least, most = _finite(least), _finite(most)
    scales, zeros = _parameters(least, most, low, high, balanced)
    if method == "mse":
        scales, zeros = _least_error(rows, least, most, format, balanced, whole(steps, "steps", 1, 10_000))
    wanted = _scale_shape(shape, axis, block_size)
    found = x.context.array(scales.reshape(wanted))
    if balanced and low < 0:
        return found, None
    return found, x.context.array(packed(format, zeros))


def _finite(values: np.ndarray) -> np.ndarray:
    values = np.asarray(values, np.float64)
    if not np.all(np.isfinite(values)):
        raise ValueError("x has a NaN or an infinity, which no scale suits")
    return values


def _rows(x: Array, shape: Tuple[int, ...], axis: Optional[int], block_size: Optional[int]) -> Array:
    """The values that share a scale, as a row each. A block that is cut off repeats its last element."""
    x = x.reshape(shape)
    if axis is None:
        return x.reshape(1, -1)
    if block_size is None:
        order = [axis, *(i for i in range(len(shape)) if i != axis)]
        return shapes.permute(x, order).reshape(shape[axis], -1)
    size = shape[axis]
    blocks = -(-size // block_size)
    if blocks * block_size != size:
        x = shapes.take(x, np.minimum(np.arange(blocks * block_size), size - 1).tolist(), axis)
    parts = (*shape[:axis], blocks, block_size, *shape[axis + 1 :])
    order = [i for i in range(len(parts)) if i != axis + 1] + [axis + 1]
    return shapes.permute(x.reshape(parts), order).reshape(-1, block_size)


def _parameters(least: np.ndarray, most: np.ndarray, low: int, high: int, balanced: bool) -> Tuple[np.ndarray, np.ndarray]:
    """The scales, as float32, and zero points of ranges that are extended to contain 0. A range of 0 has the scale 1."""
    least, most = np.minimum(least, 0), np.maximum(most, 0)
    if balanced:
        middle = (low + high + 1) // 2
        scales = np.maximum(-least, most) / (high - middle)
        zeros = np.full(scales.shape, middle)
    else:
        scales = (most - least) / (high - low)
        zeros = None
    scales = np.where(scales > 0, scales, 1).astype(np.float32)
    scales = np.where(scales > 0, scales, np.finfo(np.float32).tiny).astype(np.float32)
    if zeros is None:
        zeros = np.clip(np.rint(low - least / scales.astype(np.float64)), low, high)
    return scales, zeros.astype(np.int64)


def _least_error(
    rows: Array, least: np.ndarray, most: np.ndarray, format: str, balanced: bool, steps: int  # noqa: A002
) -> Tuple[np.ndarray, np.ndarray]:
    _, _, low, high = _INTEGERS[format]
    best = None
    for step in range(steps):
        part = 1 - 0.8 * step / steps  # down to a fifth
        scales, zeros = _parameters(least * part, most * part, low, high, balanced)
        tried = dequantize(quantize(rows, scales, zeros, format=format, axis=0))
        error = expr("(a - b) * (a - b)", a=tried, b=rows).mean(1).numpy().astype(np.float64)
        if best is None:
            best = [error, scales, zeros]
            continue
        better = error < best[0]
        best = [np.where(better, new, old) for new, old in zip((error, scales, zeros), best)]
    return best[1], best[2]


def _entropy_limit(rows: Array, levels: int, bins: int) -> float:
    """Half as many levels as the format has numbers are for magnitudes."""
    bins = whole(bins, "bins", levels, 1 << 20)
    sizes = functions.abs(rows)
    top = float(sizes.max().numpy())
    if not np.isfinite(top) or top == 0:
        return top
    counts = histograms.histogram(sizes, bins, (0.0, top))[0].numpy().astype(np.float64)
    counts[0] = 0  # zeros are exact whatever the range
    levels = (levels + 1) // 2
    best, chosen = np.inf, bins
    for end in range(levels, bins + 1, max(1, bins // 512)):
        kept = counts[:end].copy()
        spread = _merged(kept, levels)
        kept[-1] += counts[end:].sum()
        total, other = kept.sum(), spread.sum()
        if total == 0 or other == 0:
            continue
        p, q = kept / total, spread / other
        where = p > 0
        if np.any(q[where] == 0):
            q = (q + 1e-12) / (1 + 1e-12 * end)
        divergence = float(np.sum(p[where] * np.log(p[where] / q[where])))
        if divergence < best:
            best, chosen = divergence, end
    return (chosen + 0.5) * top / bins if chosen < bins else top


def _merged(counts: np.ndarray, levels: int) -> np.ndarray:
    """Counts in as many groups as there are levels, shared evenly among the bins of a group that are not empty."""
    group = np.arange(counts.size) * levels // counts.size
    full = counts > 0
    sums, present = np.bincount(group, counts, levels), np.bincount(group, full, levels)
    mean: List[float] = np.divide(sums, present, out=np.zeros(levels), where=present > 0)
    return np.where(full, np.asarray(mean)[group], 0.0)
