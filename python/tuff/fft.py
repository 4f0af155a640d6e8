"""Fourier transforms, with the names and norms of numpy.fft, and cosine and sine transforms, with those of scipy.fft.

Complex numbers are arrays of complex64 or complex128, and transforms of real numbers of float32 and float64 give such. Of
float16 and bfloat16, which have no complex type, complex numbers are arrays whose last axis is (real part, imaginary part);
`axis` and `axes` count without that last axis. Arrays of pairs of float32 and float64 are taken as well, where complex
numbers are wanted, and the result has pairs too. `pairs` uploads NumPy's complex numbers so, and `numbers` downloads them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Optional, Sequence, Tuple, Union

import numpy as np

from . import _protocol as protocol
from . import raw
from ._array import Array
from ._checked import real, whole
from ._dct import chosen_axes, dct, dctn, dst, dstn, idct, idctn, idst, idstn, norm_of, resized, strides_of
from ._default import default_context
from ._error import check
from ._namespace import roll
from ._operands import MAX_AXES, dtype_of, require_array, whole_axis
from ._types import complex_of, has_complex, is_complex, part_of

if TYPE_CHECKING:
    from ._context import Context

    Axes = Optional[Sequence[int]]

__all__ = [
    "dct",
    "dctn",
    "dst",
    "dstn",
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "idct",
    "idctn",
    "idst",
    "idstn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "numbers",
    "pairs",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]


def pairs(values: object, *, context: Optional[Context] = None, dtype: object = None) -> Array:
    """Uploads complex numbers as an array whose last axis is (real part, imaginary part).

    dtype is that of the parts: float32 by default, and float64 for complex128.
    """
    source = np.asarray(values)
    if source.dtype.kind not in "fciu":
        raise TypeError(f"the values are {source.dtype}, not numbers")
    if dtype is None:
        dtype = np.float64 if source.dtype == np.complex128 else np.float32
    parts = np.stack([source.real, source.imag], axis=-1)
    return (context or default_context()).array(parts, dtype)


def numbers(x: Array) -> np.ndarray:
    """Downloads an array whose last axis is (real part, imaginary part) as NumPy's complex numbers; also a complex one."""
    require_array(x, "x")
    if is_complex(x.dtype):
        return x.numpy()
    _complex_shape(x)
    parts = x.numpy()
    result = np.empty(parts.shape[:-1], np.complex128 if parts.dtype == np.float64 else np.complex64)
    result.real, result.imag = parts[..., 0], parts[..., 1]
    return result


def fft(a: Array, n: Optional[int] = None, axis: int = -1, norm: Optional[str] = None) -> Array:
    """The discrete Fourier transform along one axis, of n numbers: a is cut, or padded with zeros."""
    return _along(a, n, axis, norm, raw.FFT_COMPLEX, False)


def ifft(a: Array, n: Optional[int] = None, axis: int = -1, norm: Optional[str] = None) -> Array:
    """The inverse of fft."""
    return _along(a, n, axis, norm, raw.FFT_COMPLEX, True)


def rfft(a: Array, n: Optional[int] = None, axis: int = -1, norm: Optional[str] = None) -> Array:
    """The first n // 2 + 1 numbers of the transform of real numbers: complex ones, or pairs of float16."""
    return _along(a, n, axis, norm, raw.FFT_REAL, False)


def irfft(a: Array, n: Optional[int] = None, axis: int = -1, norm: Optional[str] = None) -> Array:
    """The inverse of rfft: n real numbers, by default 2 (m - 1) from m."""
    return _along(a, n, axis, norm, raw.FFT_TO_REAL, True)


def hfft(a: Array, n: Optional[int] = None, axis: int = -1, norm: Optional[str] = None) -> Array:
    """The real transform of n numbers that mirror each other, given the first n // 2 + 1."""
    return _along(a, n, axis, norm, raw.FFT_TO_REAL, False)


def ihfft(a: Array, n: Optional[int] = None, axis: int = -1, norm: Optional[str] = None) -> Array:
    """The inverse of hfft."""
    return _along(a, n, axis, norm, raw.FFT_REAL, True)


def fftn(a: Array, s: Optional[Sequence[int]] = None, axes: Axes = None, norm: Optional[str] = None) -> Array:
    """The transform along several axes, all by default, of s numbers each."""
    return _transform(a, s, axes, norm, raw.FFT_COMPLEX, False)


def ifftn(a: Array, s: Optional[Sequence[int]] = None, axes: Axes = None, norm: Optional[str] = None) -> Array:
    """The inverse of fftn."""
    return _transform(a, s, axes, norm, raw.FFT_COMPLEX, True)


def rfftn(a: Array, s: Optional[Sequence[int]] = None, axes: Axes = None, norm: Optional[str] = None) -> Array:
    """The transform of real numbers along several axes, of which the last given one keeps n // 2 + 1 numbers."""
    return _transform(a, s, axes, norm, raw.FFT_REAL, False)


def irfftn(a: Array, s: Optional[Sequence[int]] = None, axes: Axes = None, norm: Optional[str] = None) -> Array:
    """The inverse of rfftn."""
    return _transform(a, s, axes, norm, raw.FFT_TO_REAL, True)


def fft2(a: Array, s: Optional[Sequence[int]] = None, axes: Axes = (-2, -1), norm: Optional[str] = None) -> Array:
    """fftn along two axes."""
    return fftn(a, s, axes, norm)


def ifft2(a: Array, s: Optional[Sequence[int]] = None, axes: Axes = (-2, -1), norm: Optional[str] = None) -> Array:
    """ifftn along two axes."""
    return ifftn(a, s, axes, norm)


def rfft2(a: Array, s: Optional[Sequence[int]] = None, axes: Axes = (-2, -1), norm: Optional[str] = None) -> Array:
    """rfftn along two axes."""
    return rfftn(a, s, axes, norm)


def irfft2(a: Array, s: Optional[Sequence[int]] = None, axes: Axes = (-2, -1), norm: Optional[str] = None) -> Array:
    """irfftn along two axes."""
    return irfftn(a, s, axes, norm)


def fftfreq(
    n: int, d: float = 1.0, *, dtype: object = None, device: Optional[Context] = None, context: Optional[Context] = None
) -> Array:
    """The frequencies of a transform of n numbers that are d apart, as float32 or a dtype. device and context are the same."""
    return _frequencies(np.fft.fftfreq(whole(n, "n", 1), real(d, "d")), dtype, device or context)


def rfftfreq(
    n: int, d: float = 1.0, *, dtype: object = None, device: Optional[Context] = None, context: Optional[Context] = None
) -> Array:
    """The frequencies of rfft's result, as float32 or a dtype. device and context are the same."""
    return _frequencies(np.fft.rfftfreq(whole(n, "n", 1), real(d, "d")), dtype, device or context)


def _frequencies(values: np.ndarray, dtype: object, context: Optional[Context]) -> Array:
    return (context or default_context()).array(values, np.float32 if dtype is None else dtype)


def fftshift(x: Array, axes: Union[None, int, Sequence[int]] = None, *, paired: bool = False) -> Array:
    """Moves the number of frequency 0 to the middle of each axis; paired: the last axis is (real part, imaginary part)."""
    return _shifted(x, axes, paired, lambda n: n // 2)


def ifftshift(x: Array, axes: Union[None, int, Sequence[int]] = None, *, paired: bool = False) -> Array:
    """The inverse of fftshift."""
    return _shifted(x, axes, paired, lambda n: -(n // 2))


def _shifted(x: Array, axes: object, paired: bool, by: object) -> Array:
    require_array(x, "x")
    shape = _complex_shape(x) if paired and not is_complex(x.dtype) else x.shape
    if axes is None:
        chosen: Tuple[int, ...] = tuple(range(len(shape)))
    else:
        given = (axes,) if isinstance(axes, int) else tuple(axes)
        chosen = tuple(whole_axis(axis, len(shape)) for axis in given)
    return roll(x, tuple(by(shape[axis]) for axis in chosen), chosen) if chosen else x.copy()


def _complex_shape(a: Array) -> Tuple[int, ...]:
    require_array(a, "a")
    if a.ndim == 0 or a.shape[-1] != 2:
        raise ValueError(f"a has shape {a.shape}: complex numbers have a last axis of 2, their parts (tuff.fft.pairs)")
    return a.shape[:-1]


def _along(a: Array, n: Optional[int], axis: int, norm: Optional[str], kind: int, inverse: bool) -> Array:
    return _transform(a, None if n is None else (whole(n, "n", 1),), (axis,), norm, kind, inverse)


def _transform(a: Array, s: Optional[Sequence[int]], axes: Axes, norm: Optional[str], kind: int, inverse: bool) -> Array:
    scaled = norm_of(norm, inverse)
    require_array(a, "a")
    whole_numbers = has_complex(a.dtype) if kind == raw.FFT_REAL else is_complex(a.dtype)  # the complex side has a complex type
    if kind == raw.FFT_REAL:
        if is_complex(a.dtype):
            raise TypeError(f"a is an array of {a.dtype}, and this transform is of real numbers")
        shape = list(a.shape)
    else:
        if whole_numbers:
            a = Array(a.buffer, (*a.shape, 2), part_of(a.dtype))  # the same memory
        shape = list(_complex_shape(a))
    rank = len(shape)
    if not 1 <= rank <= MAX_AXES:
        raise ValueError(f"a has {rank} axes of numbers, needs 1 to {MAX_AXES}")
    chosen, counts = chosen_axes(s, axes, rank)
    last = chosen[-1]
    # The sizes of the transform, and the numbers of `a` that it takes: the first ones along each axis.
    sizes = list(shape)
    for i, axis in enumerate(chosen):
        if counts is not None:
            sizes[axis] = counts[i]
        elif kind == raw.FFT_TO_REAL and axis == last:
            sizes[axis] = 2 * (shape[axis] - 1)
        if sizes[axis] < 1:
            raise ValueError(f"axis {axis} has {shape[axis]} numbers: a transform of {max(sizes[axis], 0)} is not defined")
        taken = sizes[axis] // 2 + 1 if kind == raw.FFT_TO_REAL and axis == last else sizes[axis]
        a = resized(a, axis, taken)
    dense = list(a.shape) if kind == raw.FFT_REAL else list(a.shape[:-1])
    result_sizes = list(sizes)
    if kind == raw.FFT_REAL:
        result_sizes[last] = sizes[last] // 2 + 1
    parts = () if kind == raw.FFT_TO_REAL else (2,)
    result = a.context.empty((*result_sizes, *parts), a.dtype)
    # The axis that keeps half of its numbers is the last of those given, which is to be the last of the mask.
    order = [axis for axis in range(rank) if axis != last]
    order.append(last)
    desc = raw.FftDesc(dtype=dtype_of(a), kind=kind, inverse=int(inverse), norm=scaled, rank=rank)
    desc.input, desc.output = a.buffer.handle, result.buffer.handle
    from_strides, to_strides = strides_of(dense), strides_of(result_sizes)
    for i, axis in enumerate(order):
        desc.shape[i], desc.input_strides[i], desc.output_strides[i] = sizes[axis], from_strides[axis], to_strides[axis]
        if axis in chosen:
            desc.axes |= 1 << i
    check(raw.tuff_fft(a.context.stream_handle, desc))
    if not whole_numbers or kind == raw.FFT_TO_REAL:
        return result
    return Array(result.buffer, result.shape[:-1], complex_of(result.dtype))


def _numpys(name: str) -> Callable[..., Array]:
    """numpy.fft's function of this name, which takes real numbers where complex ones are wanted."""
    own = globals()[name]
    if name in ("rfft", "rfft2", "rfftn", "ihfft", "fftshift", "ifftshift"):
        return own

    def call(a: Array, *arguments: object, **options: object) -> Array:
        require_array(a, "a")
        return own(a if is_complex(a.dtype) else a.astype(complex_of(a.dtype)), *arguments, **options)

    return call


protocol.FUNCTIONS.update({f"fft.{name}": _numpys(name) for name in __all__ if hasattr(np.fft, name) and name not in ("fftfreq", "rfftfreq")})
