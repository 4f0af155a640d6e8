"""Cosine and sine transforms, with the names and arguments of scipy.fft: tuff.fft has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict, Optional, Sequence, Tuple

from . import raw
from ._array import Array
from ._checked import sequence, whole, wholes
from ._error import check
from ._operands import MAX_AXES, dtype_of, require_array, whole_axis
from ._shape import concat
from ._types import is_complex

if TYPE_CHECKING:
    Axes = Optional[Sequence[int]]

__all__ = ["dct", "dctn", "dst", "dstn", "idct", "idctn", "idst", "idstn"]

_FORWARD_NORMS: Dict[Optional[str], int] = {
    None: raw.FFT_NORM_NONE, "backward": raw.FFT_NORM_NONE, "ortho": raw.FFT_NORM_ROOT, "forward": raw.FFT_NORM_SIZE,
}  # fmt: skip
_INVERSE_NORMS: Dict[Optional[str], int] = {
    None: raw.FFT_NORM_SIZE, "backward": raw.FFT_NORM_SIZE, "ortho": raw.FFT_NORM_ROOT, "forward": raw.FFT_NORM_NONE,
}  # fmt: skip
_COSINES, _SINES = (raw.DCT_1, raw.DCT_2, raw.DCT_3, raw.DCT_4), (raw.DST_1, raw.DST_2, raw.DST_3, raw.DST_4)
_INVERSES = {1: 1, 2: 3, 3: 2, 4: 4}


def dct(
    x: Array, type: int = 2, n: Optional[int] = None, axis: int = -1, norm: Optional[str] = None, *, orthogonalize: Optional[bool] = None
) -> Array:
    """The cosine transform of type 1 to 4 along one axis, of n numbers: x is cut, or padded with zeros."""
    return _along(x, type, n, axis, norm, orthogonalize, _COSINES, False)


def idct(
    x: Array, type: int = 2, n: Optional[int] = None, axis: int = -1, norm: Optional[str] = None, *, orthogonalize: Optional[bool] = None
) -> Array:
    """The inverse of dct of the same type."""
    return _along(x, type, n, axis, norm, orthogonalize, _COSINES, True)


def dst(
    x: Array, type: int = 2, n: Optional[int] = None, axis: int = -1, norm: Optional[str] = None, *, orthogonalize: Optional[bool] = None
) -> Array:
    """The sine transform of type 1 to 4 along one axis, of n numbers: x is cut, or padded with zeros."""
    return _along(x, type, n, axis, norm, orthogonalize, _SINES, False)


def idst(
    x: Array, type: int = 2, n: Optional[int] = None, axis: int = -1, norm: Optional[str] = None, *, orthogonalize: Optional[bool] = None
) -> Array:
    """The inverse of dst of the same type."""
    return _along(x, type, n, axis, norm, orthogonalize, _SINES, True)


def dctn(
    x: Array, type: int = 2, s: Optional[Sequence[int]] = None, axes: Axes = None, norm: Optional[str] = None, *,
    orthogonalize: Optional[bool] = None,
) -> Array:  # fmt: skip
    """The cosine transform along several axes, all by default, of s numbers each."""
    return _transform(x, type, s, axes, norm, orthogonalize, _COSINES, False)


def idctn(
    x: Array, type: int = 2, s: Optional[Sequence[int]] = None, axes: Axes = None, norm: Optional[str] = None, *,
    orthogonalize: Optional[bool] = None,
) -> Array:  # fmt: skip
    """The inverse of dctn of the same type."""
    return _transform(x, type, s, axes, norm, orthogonalize, _COSINES, True)


def dstn(
    x: Array, type: int = 2, s: Optional[Sequence[int]] = None, axes: Axes = None, norm: Optional[str] = None, *,
    orthogonalize: Optional[bool] = None,
) -> Array:  # fmt: skip
    """The sine transform along several axes, all by default, of s numbers each."""
    return _transform(x, type, s, axes, norm, orthogonalize, _SINES, False)


def idstn(
    x: Array, type: int = 2, s: Optional[Sequence[int]] = None, axes: Axes = None, norm: Optional[str] = None, *,
    orthogonalize: Optional[bool] = None,
) -> Array:  # fmt: skip
    """The inverse of dstn of the same type."""
    return _transform(x, type, s, axes, norm, orthogonalize, _SINES, True)


def norm_of(norm: Optional[str], inverse: bool) -> int:
    """FFT_NORM_* of a norm's name."""
    if norm is not None and not isinstance(norm, str) or norm not in _FORWARD_NORMS:
        raise ValueError(f'norm is {norm!r}, needs "backward", "ortho" or "forward"')
    return (_INVERSE_NORMS if inverse else _FORWARD_NORMS)[norm]


def resized(a: Array, axis: int, size: int) -> Array:
    """Padded with zeros along the axis."""
    if a.shape[axis] >= size:
        return a
    shape = list(a.shape)
    shape[axis] = size - shape[axis]
    return concat([a, a.context.zeros(tuple(shape), a.dtype)], axis=axis)


def strides_of(sizes: Sequence[int]) -> Tuple[int, ...]:
    result, step = [], 1
    for size in reversed(sizes):
        result.append(step)
        step *= size
    return tuple(reversed(result))


def chosen_axes(s: Optional[Sequence[int]], axes: Axes, rank: int) -> Tuple[list, Optional[Sequence[int]]]:
    """The axes that are transformed, and their sizes where given."""
    counts = None if s is None else wholes(s, "s", 1)
    if axes is None:
        chosen = list(range(rank)) if counts is None else list(range(rank - len(counts), rank))
        if chosen and chosen[0] < 0:
            raise ValueError(f"s has {len(counts or ())} sizes, and the array has {rank} axes")
    else:
        chosen = [whole_axis(axis, rank) for axis in sequence(axes, "axes", "integers")]
    if not chosen:
        raise ValueError("axes is empty")
    if len(set(chosen)) != len(chosen):
        raise ValueError(f"axes has an axis twice: {tuple(chosen)}")
    if counts is not None and len(counts) != len(chosen):
        raise ValueError(f"s has {len(counts)} sizes for {len(chosen)} axes")
    return chosen, counts


def _along(x: Array, type: int, n: Optional[int], axis: int, norm: Optional[str], orthogonalize: Optional[bool],
           kinds: Tuple[int, ...], inverse: bool) -> Array:  # fmt: skip
    return _transform(x, type, None if n is None else (whole(n, "n", 1),), (axis,), norm, orthogonalize, kinds, inverse)


def _transform(x: Array, type: int, s: Optional[Sequence[int]], axes: Axes, norm: Optional[str], orthogonalize: Optional[bool],
               kinds: Tuple[int, ...], inverse: bool) -> Array:  # fmt: skip
    scaled = norm_of(norm, inverse)
    number = whole(type, "type", 1, 4)
    require_array(x, "x")
    if is_complex(x.dtype):
        raise TypeError(f"x is an array of {x.dtype}, and this transform is of real numbers")
    if not 1 <= x.ndim <= MAX_AXES:
        raise ValueError(f"x has {x.ndim} axes, needs 1 to {MAX_AXES}")
    chosen, counts = chosen_axes(s, axes, x.ndim)
    sizes = list(x.shape)
    least = 2 if kinds is _COSINES and number == 1 else 1
    for i, axis in enumerate(chosen):
        if counts is not None:
            sizes[axis] = counts[i]
        if sizes[axis] < least:
            raise ValueError(f"axis {axis} has {sizes[axis]} numbers, and this transform needs at least {least}")
        x = resized(x, axis, sizes[axis])
    result = x.context.empty(tuple(sizes), x.dtype)
    kind = kinds[(_INVERSES[number] if inverse else number) - 1]
    weighted = norm == "ortho" if orthogonalize is None else bool(orthogonalize)
    desc = raw.DctDesc(dtype=dtype_of(x), kind=kind, orthogonal=int(weighted), norm=scaled, rank=x.ndim)
    desc.input, desc.output = x.buffer.handle, result.buffer.handle
    desc.axes = sum(1 << axis for axis in chosen)
    from_strides, to_strides = strides_of(x.shape), strides_of(sizes)
    for i in range(x.ndim):
        desc.shape[i], desc.input_strides[i], desc.output_strides[i] = sizes[i], from_strides[i], to_strides[i]
    check(raw.tuff_dct(x.context.stream_handle, desc))
    return result
